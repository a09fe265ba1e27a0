#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs a measurement in Python with the virtual environment of the tests; see BUILD.bazel.
set -euo pipefail
venv=$(dirname "$(readlink -f ../python/pyvenv.cfg)")
exec "$venv/bin/python" "$@"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
exec /usr/bin/python3 "$(dirname "$0")/coroutine_condition_test.py"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs pytest on the files given, as one Bazel test whose test.xml has every case. The interpreter is
# the virtual environment of third_party/install --python; see pytest.bzl.
set -euo pipefail

venv=$(dirname "$(readlink -f "$TEST_SRCDIR/python/pyvenv.cfg")")
export PYTHONPATH=${SB_PYTHON_IMPORTS:-}${PYTHONPATH:+:$PYTHONPATH}
export PYTHONDONTWRITEBYTECODE=1
# Tests write below the directory that Bazel gives them and nowhere else.
export HOME=$TEST_TMPDIR

only=()
[[ -z ${TESTBRIDGE_TEST_ONLY:-} ]] || only=(-k "$TESTBRIDGE_TEST_ONLY")
exec "$venv/bin/python" -m pytest -p no:cacheprovider --import-mode=importlib --rootdir="$PWD" \
  --basetemp="$TEST_TMPDIR/pytest" --strict-markers -rs -o asyncio_default_fixture_loop_scope=function \
  --junitxml="$XML_OUTPUT_FILE" "${only[@]}" "$@"

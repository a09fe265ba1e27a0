#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Checks that the committed docs/upstream-errors.md is the one that the rules make.
set -euo pipefail
if ! diff -u docs/upstream-errors.md <(tests/docs/upstream_errors_md); then
  echo "run: bazel run //tests/docs:upstream_errors_md > docs/upstream-errors.md" >&2
  exit 1
fi

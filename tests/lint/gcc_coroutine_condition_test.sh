#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Is the reproduction still true? Says so when a newer g++ has mended it, because then the guards may
# go. Does nothing on a machine without g++ 12.
set -euo pipefail
source_file="$(dirname "$0")/gcc_coroutine_condition.cc"
compiler=$(command -v g++-12 || true)
if [[ -z "$compiler" ]]; then
  echo "no g++-12 here: nothing to check"
  exit 0
fi
out=${TEST_TMPDIR:-$(mktemp -d)}
run() {
  "$compiler" -std=c++20 -w "$@" "$source_file" -o "$out/program"
  "$out/program" || true
}
[[ "$(run -DLOCAL_VARIABLE)" == "got 1" ]] || {
  echo "a local variable does not cure the miscompile any more: the rule in net/task.h is wrong"
  exit 1
}
if [[ "$(run)" == "got 1" ]]; then
  echo "$("$compiler" -dumpfullversion) compiles the pattern correctly: the guards may go"
fi

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Are the two miscompiles still there, and do the cures cure? Says so when a newer g++ has mended
# one, because then its guard may go. Does nothing on a machine without g++ 12.
set -euo pipefail
source_file="$(dirname "$0")/gcc_coroutines_proof.cc"
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
for pattern in 1 2; do
  [[ "$(run -DPATTERN=$pattern -DCURED)" == "got 1" ]] || {
    echo "pattern $pattern: the cure does not cure any more; the rule in net/task.h is wrong"
    exit 1
  }
  if [[ "$(run -DPATTERN=$pattern)" == "got 1" ]]; then
    echo "pattern $pattern: g++ $("$compiler" -dumpfullversion) compiles it correctly; its guard may go"
  else
    echo "pattern $pattern: still miscompiled"
  fi
done

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs gcc_coroutines.py over every C++ source of the repository. Finds the repository through
# the link that Bazel makes to this file, and so needs to run outside of a sandbox.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
root=$(realpath "$here/../..")
[[ -f "$root/WORKSPACE" ]] || { echo "no WORKSPACE in $root"; exit 1; }
cd "$root"
mapfile -t sources < <(find bridge frontends tests -name '*.cc' -o -name '*.h' 2>/dev/null |
  grep -v '^tests/lint/gcc_coroutines_proof.cc$' | sort)
((${#sources[@]} > 30)) || { echo "only ${#sources[@]} sources in $root"; exit 1; }
/usr/bin/python3 "$here/gcc_coroutines.py" "${sources[@]}"
echo "${#sources[@]} sources are fine"

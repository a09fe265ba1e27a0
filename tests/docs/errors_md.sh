#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# errors_md.sh [--check]: prints docs/errors.md, or checks the committed one.
set -euo pipefail
if [[ "${1:-}" == --check ]]; then
  set -- --check docs/errors.md
else
  set --
fi
exec /usr/bin/python3 tests/docs/errors_md.py tests/docs/error_rows \
  frontends/astrabox/src/astrabox_sandbox_bridge/failures.py "$@"

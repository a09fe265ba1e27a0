#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs pytest beside a real OpenSandbox; see with_opensandbox.py. A runner for pytest_test() with
# //tests/integration/opensandbox:rig among its data. The server's program is found in its virtual
# environment, of which Bazel knows the pyvenv.cfg only.
set -euo pipefail

venv=$(dirname "$(readlink -f "$TEST_SRCDIR/opensandbox_server/pyvenv.cfg")")
export OPENSANDBOX_SERVER=$venv/bin/opensandbox-server
export EXECD_BINARY=bridge/local/execd/execd BOOTSTRAP_BINARY=bridge/local/runtime/bootstrap
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$PWD/tests/runner
# Bazel tests do not see the directories of dockerd, iptables and mount.
export PATH=$PATH:/usr/sbin:/sbin
exec /usr/bin/python3 tests/integration/opensandbox/with_opensandbox.py tests/runner/pytest.sh "$@"

# SPDX-License-Identifier: Apache-2.0
"""AstraBox sandboxes through the sandbox bridge.

`provider` is what AstraBox loads; it needs the package `astrabox`. `client` is an async client of
the bridge for everybody; it needs nothing of AstraBox. This module imports neither.
"""

__version__ = "0.1.0"

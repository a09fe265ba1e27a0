# SPDX-License-Identifier: Apache-2.0
"""A bridge in Python for tests of its clients: it answers as the .proto files say, records what it
was asked, and fails on command. Its one "sandbox" is this machine; use it for nothing else.

    upstream = Upstream()
    async with FakeBridge(upstream) as bridge:      # a replica; several may share an upstream
        bridge.fail("GetSandbox", "UPSTREAM_TIMEOUT", times=1)
        ... bridge.address, bridge.asked("GetSandbox") ...
"""

from .server import FakeBridge
from .upstream import Upstream

__all__ = ["FakeBridge", "Upstream"]

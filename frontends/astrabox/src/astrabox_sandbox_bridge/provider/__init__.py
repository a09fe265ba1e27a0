# SPDX-License-Identifier: Apache-2.0
"""The provider that AstraBox loads: entry point `astrabox.providers.sandbox` → `sandbox_bridge`.

base.py        what all parts share: settings, clients by loop, capabilities
creation.py    create_sandbox: what is refused, the request, set-up, reclaiming
lifecycle.py   connect, kill, probe, lease, pause, ownership
inventory.py   lists, descriptions, diagnostics
network.py     egress policy and posture
isolation.py   isolated sessions
workspace.py   persistent workspaces
"""

from __future__ import annotations

from astrabox.seams.sandbox import SandboxProvider

from .creation import Creation
from .inventory import Inventory
from .isolation import IsolatedSessions
from .lifecycle import Lifecycle
from .network import Network

__all__ = ["SandboxBridgeProvider"]


class SandboxBridgeProvider(
    Creation, Lifecycle, Inventory, Network, IsolatedSessions, SandboxProvider
):
    """Sandboxes of an OpenSandbox behind the sandbox bridge.

    One object a process, used from any event loop. Flags below are what this provider implements;
    an object narrows those that depend on the backend to what the bridge says of it.
    """

    name = "sandbox_bridge"

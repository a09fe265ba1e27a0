# SPDX-License-Identifier: Apache-2.0
"""What the parts of the provider share."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import threading
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from astrabox.seams.sandbox import SandboxRuntimeDefaults

from astrabox_sandbox_bridge import names
from astrabox_sandbox_bridge.box import Box
from astrabox_sandbox_bridge.client import (
    BridgeClient,
    BridgeError,
    ConfigurationError,
    v1,
)
from astrabox_sandbox_bridge.handle import SandboxBridgeHandle
from astrabox_sandbox_bridge.loops import LoopClients
from astrabox_sandbox_bridge.settings import OWNED, SettingError, Settings

log = logging.getLogger("astrabox_sandbox_bridge")

# Seconds that shutdown waits for sandboxes that are being destroyed.
_SHUTDOWN_GRACE = 30.0

# A flag that depends on the backend → the bridge's feature (docs/capabilities.md), and what holds
# while the bridge has not been asked: common things are taken for granted and refused in the call
# if need be; rare ones are not offered.
BACKEND_FLAGS: Mapping[str, tuple[str, bool]] = MappingProxyType(
    {
        "supports_create_network_policy": ("sandboxes.network_policy", True),
        "supports_pause": ("sandboxes.pause", True),
        "supports_process_sessions": ("processes", True),
        "supports_isolated_sessions": ("isolation", False),
        "supports_isolated_session_recovery": ("isolation", False),
    }
)

# What a sandbox was made for; see ProviderBase.wiring.
WIRING_METADATA_KEY = "astrabox.network-wiring"

VOLUMES = "sandboxes.volumes"
# Every upstream that can be reached says whether it has this.
SNAPSHOTS = "sandboxes.snapshots"
ISOLATION = "isolation"


class ProviderBase:
    """State and declarations. Any thread; asynchronous methods on any loop."""

    name: str
    supports_correlated_create = True
    supports_inventory_listing = True
    supports_create_network_policy = True
    supports_pause = True
    supports_process_sessions = True
    supports_isolated_sessions = True
    supports_isolated_session_recovery = True
    supports_egress_credential_injection = False
    supports_client_pool = False
    supports_turn_preparation = False
    supported_permission_levels: tuple[str, ...] = ("default", "advanced")
    # Every sandbox is made with a lease that the upstream enforces.
    created_sandboxes_self_expire = True
    # Volumes are mounted by the upstream while it makes a sandbox.
    uses_create_oss_mounts = True
    # Nothing in a sandbox answers the sidecar's HTTP route; a command does the same.
    conversation_bootstrap_transport = "sandbox_command_script"
    owned_settings: tuple[str, ...] = OWNED

    def __init__(self) -> None:
        wrong = names.differences()
        if wrong:
            raise RuntimeError(
                "astrabox-sandbox-bridge does not fit the installed astrabox; correct "
                "astrabox_sandbox_bridge/names.py: " + "; ".join(wrong)
            )
        self.settings = Settings()
        self._clients = LoopClients(lambda: BridgeClient(self.settings.connection()))
        # feature → level, as the bridge last said. Empty: not asked, or no answer.
        self._features: Mapping[str, v1.Capability.Level.ValueType] = {}
        for flag, (_, assumed) in BACKEND_FLAGS.items():
            setattr(self, flag, assumed)
        self.supported_permission_levels = ("default",)
        if self.settings.enabled:
            self._ask_at_start()

    # --- the bridge -------------------------------------------------------------------------------

    def client(self) -> BridgeClient:
        """The running loop's client. Raises SettingError, ConfigurationError."""
        return self._clients.current()

    @property
    def secrets(self) -> tuple[str, ...]:
        return self.settings.secrets()

    def handle(self, sandbox: v1.Sandbox) -> SandboxBridgeHandle:
        box = Box(sandbox.sandbox_id, sandbox.incarnation, self.client, self.settings)
        return SandboxBridgeHandle(
            box, backend=self.name, keeps_processes=self.supports_process_sessions
        )

    async def shutdown_current_loop_resources(self) -> None:
        """Waits for sandboxes that are being destroyed, then closes the loop's channel."""
        await self._clients.close_current(grace=_SHUTDOWN_GRACE)

    # --- what the backend can ---------------------------------------------------------------------

    def has(self, feature: str) -> bool | None:
        """Whether the backend has a feature; None when the bridge has not said or cannot know."""
        level = self._features.get(feature, v1.Capability.LEVEL_UNSPECIFIED)
        known = level != v1.Capability.LEVEL_UNSPECIFIED
        return level != v1.Capability.LEVEL_NONE if known else None

    async def learn_capabilities(self) -> None:
        """Asks the bridge what its backend can until it could say; a failure leaves things as they
        are."""
        unanswered = v1.Capability.LEVEL_UNSPECIFIED
        if self._features and self._features.get(SNAPSHOTS) != unanswered:
            return
        try:
            self._take(await self.client().bridge.capabilities())
        except BridgeError as error:
            log.info("the bridge did not say what it can: %s", error.reason)

    def _ask_at_start(self) -> None:
        """The same without an event loop, briefly: flags are read right after registration."""
        try:
            patience = self.settings.seconds("START_TIMEOUT_SECONDS", zero=True)
            if patience:
                self._take(_ask(self.settings, patience))
        except (SettingError, ConfigurationError, BridgeError, TimeoutError) as error:
            log.warning(
                "%s: the bridge could not be asked what it can (%s); flags stay as declared",
                self.name,
                type(error).__name__ if isinstance(error, TimeoutError) else error,
            )

    def _take(self, answer: v1.GetCapabilitiesResponse) -> None:
        self._features = {c.feature: c.level for c in answer.capabilities}
        for flag, (feature, assumed) in BACKEND_FLAGS.items():
            known = self._wanted(feature)
            setattr(self, flag, assumed if known is None else known)
        advanced = ("advanced",) if self.supports_isolated_sessions else ()
        self.supported_permission_levels = ("default", *advanced)

    def _wanted(self, feature: str) -> bool | None:
        """As has(); what a deployment knows better goes first."""
        if feature == ISOLATION:
            setting = self.settings.choice("ISOLATED_SESSIONS", ("auto", "true", "false"))
            if setting != "auto":
                return setting == "true"
        return self.has(feature)

    def wiring(self) -> str:
        """Stands for the addresses of this deployment that a sandbox is made with; it is of use as
        long as they hold."""
        facts = "\n".join((self.settings.callback_base, *self.settings.denied_addresses))
        return hashlib.sha256(facts.encode()).hexdigest()[:32]

    # --- declarations that need settings ----------------------------------------------------------

    def runtime_defaults(self) -> SandboxRuntimeDefaults:
        return SandboxRuntimeDefaults(
            runtime_image=self.settings.image or None,
            agent_command=self.settings.text("AGENT_COMMAND"),
        )

    def owns_sandbox(self, sandbox: Any) -> bool:
        return type(sandbox) is SandboxBridgeHandle

    # Members of older revisions of the contract, abstract there: harmless where they are gone.

    def connection_config(self, **_: Any) -> None:
        """There is no SDK to configure."""
        return

    def secret_material(self, *, settings: Any) -> str:
        """There is no key of the SDK's; the bridge's token never leaves this package."""
        return ""

    def build_dataplane(self, **_: Any) -> Any:
        raise RuntimeError(
            f"{self.name} reaches sandboxes through their handles (files, commands, processes)"
        )


def _ask(settings: Settings, patience: float) -> v1.GetCapabilitiesResponse:
    """GetCapabilities without using the caller's event loop, if it has one: in one of its own, in a
    thread of its own."""
    answer: list[v1.GetCapabilitiesResponse | BaseException] = []

    async def ask() -> v1.GetCapabilitiesResponse:
        async with asyncio.timeout(patience), BridgeClient(settings.connection()) as client:
            return await client.bridge.capabilities(timeout=patience)

    def work() -> None:
        try:
            answer.append(asyncio.run(ask()))
        except (SettingError, ConfigurationError, BridgeError, TimeoutError) as error:
            answer.append(error)

    thread = threading.Thread(target=work, name="sandbox-bridge-start", daemon=True)
    thread.start()
    thread.join(patience + 1.0)
    if not answer:
        raise TimeoutError("no answer")
    if isinstance(answer[0], BaseException):
        raise answer[0]
    return answer[0]

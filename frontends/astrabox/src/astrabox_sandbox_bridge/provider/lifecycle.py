# SPDX-License-Identifier: Apache-2.0
"""A sandbox by its id: binding, destruction with proof, looks, lease, pause, ownership."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING

from astrabox.common.utils.errors import APIError
from astrabox.seams.sandbox import (
    SANDBOX_INSTALLATION_METADATA_KEY,
    SANDBOX_LIFECYCLE_PROBE_FAILED,
    SANDBOX_LIFECYCLE_PROBE_NOT_FOUND,
    SANDBOX_LIFECYCLE_PROBE_OK,
    SANDBOX_MANAGED_BY_METADATA_KEY,
    SANDBOX_MANAGED_BY_METADATA_VALUE,
    SANDBOX_SESSION_ID_METADATA_KEY,
    SandboxDescriptor,
    SandboxLifecycleProbeResult,
    sandbox_installation_id,
)
from astrabox.seams.sandbox_disposal import SandboxClaim, claim_from_metadata
from astrabox.seams.storage import WorkspaceRoute

from astrabox_sandbox_bridge import labels
from astrabox_sandbox_bridge.client import BridgeError, ConfigurationError, moment, v1
from astrabox_sandbox_bridge.failures import rendered, scrub
from astrabox_sandbox_bridge.settings import SettingError

from .base import VOLUMES, WIRING_METADATA_KEY, ProviderBase, log
from .workspace import DirectWorkspaceRoute

if TYPE_CHECKING:
    from astrabox_sandbox_bridge.handle import SandboxBridgeHandle

_PROXIED = re.compile(r"/sandboxes/([A-Za-z0-9][A-Za-z0-9._-]*)/proxy/\d+(?:[/?#]|$)")
# The backend could not be asked, for whatever reason.
_UNASKED = (BridgeError, SettingError, ConfigurationError, UnicodeEncodeError)
# The backend was asked and did not destroy it: nothing is proven, nothing is broken.
_NOT_DESTROYED = frozenset({"CONFLICT", "SANDBOX_NOT_RUNNING", "UPSTREAM_FAILED"})


def state_word(sandbox: v1.Sandbox) -> str:
    """The platform's lower-case word for a state; the upstream's own for one unknown here."""
    if sandbox.state in (v1.SANDBOX_STATE_UNKNOWN, v1.SANDBOX_STATE_UNSPECIFIED):
        return sandbox.upstream_state.lower() or "unknown"
    return v1.SandboxState.Name(sandbox.state).removeprefix("SANDBOX_STATE_").lower()


class Lifecycle(ProviderBase):
    async def connect(self, sandbox_id: str) -> SandboxBridgeHandle:
        """A handle of a running sandbox; anything else is SANDBOX_GONE, on which the platform
        provisions anew."""
        with rendered("connect", secrets=self.secrets, gone=True):
            sandbox = await self.client().sandboxes.get(sandbox_id)
        if sandbox.state != v1.SANDBOX_STATE_RUNNING:
            raise _gone(sandbox_id, f"is {state_word(sandbox)}, not running")
        if sandbox.metadata.get(WIRING_METADATA_KEY, self.wiring()) != self.wiring():
            raise _gone(sandbox_id, "was made for addresses that this deployment had before")
        return self.handle(sandbox)

    async def kill(self, sandbox_id: str) -> bool:
        """True only when the sandbox is proven gone."""
        with rendered("kill", secrets=self.secrets):
            try:
                answer = await self.client().sandboxes.delete(sandbox_id)
            except BridgeError as error:
                if error.reason not in _NOT_DESTROYED:
                    raise
                log.warning(
                    "%s: %s was not destroyed: %s",
                    self.name,
                    sandbox_id,
                    scrub(str(error), self.secrets),
                )
                return False
        return answer.verdict in (
            v1.DeleteSandboxResponse.VERDICT_CONFIRMED_GONE,
            v1.DeleteSandboxResponse.VERDICT_ALREADY_GONE,
        )

    async def probe(self, sandbox_id: str) -> SandboxLifecycleProbeResult:
        """What can be seen. Never raises because of what it sees."""
        try:
            seen = await self.client().sandboxes.probe(sandbox_id)
        except _UNASKED as error:
            return _unseen(scrub(str(error), self.secrets))
        match seen.WhichOneof("observation"):
            case "exists":
                return SandboxLifecycleProbeResult(
                    probe_status=SANDBOX_LIFECYCLE_PROBE_OK,
                    sandbox_state=state_word(seen.exists.sandbox),
                )
            case "not_found":
                return SandboxLifecycleProbeResult(probe_status=SANDBOX_LIFECYCLE_PROBE_NOT_FOUND)
            case "failed":
                text = f"{seen.failed.reason}: {seen.failed.message}"
                return _unseen(scrub(text, self.secrets))
            case _:
                return _unseen("the bridge observed nothing")

    async def data_plane_unreachable(self, sandbox_id: str) -> bool:
        """A sandbox that is called running and whose daemon is silent; the platform asks for it
        where a provider has it."""
        with rendered("probe", secrets=self.secrets):
            seen = await self.client().sandboxes.probe(sandbox_id, check_daemon=True)
        return seen.exists.daemon == v1.ProbeSandboxResponse.DAEMON_STATE_SILENT

    async def discard_snapshots(self, sandbox_id: str) -> int:
        """Deletes the snapshots of a sandbox, which outlive it; how many there were. The platform
        asks for it before it destroys a sandbox, where a provider has it."""
        names: list[str] = []
        token = ""
        with rendered("snapshots", secrets=self.secrets):
            sandboxes = self.client().sandboxes
            try:
                while True:
                    page = await sandboxes.snapshots(sandbox_id, page_token=token)
                    names += (snapshot.snapshot_id for snapshot in page.snapshots)
                    token = page.next_page_token
                    if not token:
                        break
            except BridgeError as error:
                if error.reason == "UNSUPPORTED_FEATURE":
                    return 0  # where there are none, none is left
                raise
            for name in names:
                try:
                    await sandboxes.delete_snapshot(name)
                except BridgeError as error:
                    if error.reason != "SNAPSHOT_NOT_FOUND":
                        raise
        return len(names)

    # --- lease ------------------------------------------------------------------------------------

    async def renew(self, sandbox_id: str, ttl_seconds: int) -> datetime | None:
        """Lengthens the lease, never shortens it; the expiry that the upstream stored."""
        try:
            with rendered("renew", secrets=self.secrets):
                answer = await self.client().sandboxes.set_expiration(
                    sandbox_id, ttl=ttl_seconds, never_shorten=True
                )
        except APIError as error:
            if error.cause_code == "NO_EXPIRY":
                return None
            raise
        return moment(answer.expires_at) if answer.HasField("expires_at") else None

    async def expires_at(self, sandbox_id: str) -> datetime | None:
        """None: never. A missing sandbox is an error, not None."""
        with rendered("describe", secrets=self.secrets):
            sandbox = await self.client().sandboxes.get(sandbox_id)
        return moment(sandbox.expires_at) if sandbox.HasField("expires_at") else None

    # --- pause ------------------------------------------------------------------------------------

    async def pause(self, sandbox_id: str) -> bool:
        """True when it is paused; False when that was accepted and has not settled."""
        with rendered("pause", secrets=self.secrets):
            answer = await self.client().sandboxes.pause(
                sandbox_id, wait=self.settings.seconds("SETTLE_TIMEOUT_SECONDS")
            )
        return answer.settled and answer.sandbox.state == v1.SANDBOX_STATE_PAUSED

    async def resume(self, sandbox_id: str) -> bool:
        """True when it runs and its daemon answers; endpoints are new then, handles go on."""
        with rendered("pause", secrets=self.secrets):
            answer = await self.client().sandboxes.resume(
                sandbox_id, wait=self.settings.seconds("SETTLE_TIMEOUT_SECONDS")
            )
        return answer.settled and answer.sandbox.state == v1.SANDBOX_STATE_RUNNING

    # --- ownership and addresses ------------------------------------------------------------------

    async def claim_of(
        self, sandbox_id: str, *, expected_session_id: str | None = None
    ) -> SandboxClaim:
        """Whose sandbox it is by its own labels; UNKNOWN when they cannot be read."""
        try:
            sandbox = await self.client().sandboxes.get(sandbox_id)
            metadata = labels.restore(sandbox.metadata)
        except labels.DamagedMetadata as error:
            return SandboxClaim.unknown(sandbox_id, detail=str(error))
        except _UNASKED as error:
            detail = scrub(str(error), self.secrets)
            if isinstance(error, BridgeError) and error.reason == "SANDBOX_NOT_FOUND":
                return SandboxClaim.unclaimed(sandbox_id, detail=detail)
            return SandboxClaim.unknown(sandbox_id, detail=detail)
        return claim_from_metadata(
            sandbox_id=sandbox_id,
            metadata=metadata,
            expected_session_id=expected_session_id,
            session_id_key=SANDBOX_SESSION_ID_METADATA_KEY,
            managed_by_key=SANDBOX_MANAGED_BY_METADATA_KEY,
            managed_by_value=SANDBOX_MANAGED_BY_METADATA_VALUE,
            installation_key=SANDBOX_INSTALLATION_METADATA_KEY,
            installation_value=await sandbox_installation_id(),
        )

    def endpoint_names_sandbox(self, endpoint: str) -> str | None:
        """The id in an endpoint that goes through the upstream's proxy; other addresses name no
        sandbox."""
        found = _PROXIED.search(endpoint)
        return found[1] if found else None

    def created_with_current_network_wiring(self, descriptor: SandboxDescriptor) -> bool:
        """False for a sandbox with addresses baked in that this deployment no longer has."""
        made = descriptor.metadata.get(WIRING_METADATA_KEY)
        return made is None or made == self.wiring()

    def workspace_route(self) -> WorkspaceRoute | None:
        """How persistent workspaces are mounted; None where the upstream mounts none."""
        wanted = self.settings.choice("WORKSPACE_MOUNTS", ("auto", "true", "false"))
        offered = wanted == "true" or (wanted == "auto" and bool(self.has(VOLUMES)))
        return DirectWorkspaceRoute() if offered else None


def _gone(sandbox_id: str, why: str) -> APIError:
    return APIError("SANDBOX_GONE", f"sandbox {sandbox_id} {why}", 404)


def _unseen(text: str) -> SandboxLifecycleProbeResult:
    return SandboxLifecycleProbeResult(probe_status=SANDBOX_LIFECYCLE_PROBE_FAILED, error_text=text)

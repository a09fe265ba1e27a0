# SPDX-License-Identifier: Apache-2.0
"""The base class of providers; `astrabox.seams.sandbox` re-exports it."""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Any, NoReturn

from astrabox.common.utils.errors import APIError
from astrabox.seams import _sandbox_types as t
from astrabox.seams.egress_credentials import SandboxEgressCredentialPlan
from astrabox.seams.sandbox_disposal import SandboxClaim, SandboxDestruction
from astrabox.seams.storage import WorkspaceRoute


def _unsupported(code: str, what: str) -> NoReturn:
    raise APIError(code, f"this backend has no {what}", 501)


class SandboxProvider(ABC):
    name: str

    supports_correlated_create: bool = False
    supports_egress_credential_injection: bool = False
    supports_isolated_sessions: bool = False
    supports_isolated_session_recovery: bool = False
    supports_create_network_policy: bool = False
    supports_pause: bool = False
    supports_client_pool: bool = False
    supports_turn_preparation: bool = False
    turn_preparation_contract_version: int | None = None
    turn_preparation_validity_seconds: float | None = None
    supports_process_sessions: bool = False
    supports_inventory_listing: bool = False
    owned_settings: tuple[str, ...] = ()
    supported_permission_levels: tuple[str, ...] = ("default",)
    sandbox_is_profile_exclusive: bool = False
    created_sandboxes_self_expire: bool = False
    uses_create_oss_mounts: bool = False
    conversation_bootstrap_transport: str = "sidecar_http"
    requires_https_git: bool = False

    @abstractmethod
    async def create_sandbox(self, spec: t.SandboxCreateSpec) -> t.SandboxHandle: ...

    @abstractmethod
    async def connect(self, sandbox_id: str) -> t.SandboxHandle: ...

    @abstractmethod
    async def kill(self, sandbox_id: str) -> bool: ...

    async def probe(self, sandbox_id: str) -> t.SandboxLifecycleProbeResult:
        raise NotImplementedError

    async def confirm_destroyed(self, sandbox_id: str) -> SandboxDestruction:
        """kill, then a second look; only what both allow is called gone."""
        if not sandbox_id:
            return SandboxDestruction.nothing_named(detail="no id")
        killed, detail = False, "the kill was accepted"
        try:
            killed = await self.kill(sandbox_id)
        except Exception as error:  # recorded: the second look may still prove it
            detail = f"the kill failed: {error}"
        end = asyncio.get_running_loop().time() + t.DESTRUCTION_SETTLE_BUDGET_S
        while True:
            try:
                seen = await self.probe(sandbox_id)
            except NotImplementedError:
                if killed:
                    return SandboxDestruction.confirmed_gone(sandbox_id, detail="killed")
                return SandboxDestruction.unconfirmed(sandbox_id, detail=detail)
            except Exception as error:
                return SandboxDestruction.unconfirmed(sandbox_id, detail=f"no look: {error}")
            if seen.probe_status == t.SANDBOX_LIFECYCLE_PROBE_NOT_FOUND:
                return SandboxDestruction.confirmed_gone(sandbox_id, detail="nothing is there")
            still = asyncio.get_running_loop().time() < end
            if seen.probe_status == t.SANDBOX_LIFECYCLE_PROBE_OK and killed and still:
                await asyncio.sleep(t.DESTRUCTION_SETTLE_INTERVAL_S)
                continue
            return SandboxDestruction.unconfirmed(sandbox_id, detail=seen.error_text or detail)

    async def claim_of(
        self, sandbox_id: str, *, expected_session_id: str | None = None
    ) -> SandboxClaim:
        return SandboxClaim.unknown(sandbox_id, detail="this backend does not tell")

    async def renew(self, sandbox_id: str, ttl_seconds: int) -> datetime | None:
        return None

    async def expires_at(self, sandbox_id: str) -> datetime | None:
        raise NotImplementedError

    async def pause(self, sandbox_id: str) -> bool:
        _unsupported("SANDBOX_PAUSE_UNSUPPORTED", "pause")

    async def resume(self, sandbox_id: str) -> bool:
        _unsupported("SANDBOX_PAUSE_UNSUPPORTED", "pause")

    def endpoint_names_sandbox(self, endpoint: str) -> str | None:
        return None

    def workspace_route(self) -> WorkspaceRoute | None:
        return None

    async def list_sandboxes(
        self, *, page: int = 1, page_size: int = 50, metadata: Mapping[str, str] | None = None
    ) -> t.SandboxPage:
        _unsupported("SANDBOX_LISTING_UNSUPPORTED", "listing")

    async def describe_sandbox(self, sandbox_id: str) -> t.SandboxDescriptor:
        _unsupported("SANDBOX_DESCRIBE_UNSUPPORTED", "description")

    async def find_sandbox_by_assignment(self, assignment_id: str) -> t.SandboxDescriptor | None:
        _unsupported("SANDBOX_CORRELATED_CREATE_UNSUPPORTED", "correlated create")

    async def read_diagnostics(self, sandbox_id: str, *, scope: str) -> t.SandboxDiagnostics:
        _unsupported("SANDBOX_DIAGNOSTICS_UNSUPPORTED", "diagnostics")

    async def read_security_posture(self, sandbox_id: str) -> t.SandboxSecurityPosture:
        return t.SandboxSecurityPosture(sandbox_id=sandbox_id, available=False)

    def created_with_current_network_wiring(self, descriptor: t.SandboxDescriptor) -> bool:
        return True

    async def admit_runtime_egress(
        self,
        sandbox: Any,
        *,
        network_policy: t.SandboxNetworkPolicy,
        vault_write: SandboxEgressCredentialPlan | None,
    ) -> None:
        raise NotImplementedError

    async def apply_credential_vault(
        self,
        sandbox: Any,
        *,
        vault_write: SandboxEgressCredentialPlan,
        managed_credential_names: tuple[str, ...] = (),
        managed_binding_names: tuple[str, ...] = (),
        create_if_missing: bool = True,
    ) -> None:
        raise NotImplementedError

    async def patch_egress_rules(
        self, sandbox_id: str, *, rules: tuple[tuple[str, str], ...]
    ) -> None:
        _unsupported("SANDBOX_EGRESS_MUTATION_UNSUPPORTED", "egress mutation")

    async def delete_egress_rules(self, sandbox_id: str, *, targets: tuple[str, ...]) -> None:
        _unsupported("SANDBOX_EGRESS_MUTATION_UNSUPPORTED", "egress mutation")

    def owns_unclaimed_sandbox(self, descriptor: t.SandboxDescriptor) -> bool:
        return False

    async def read_isolation_capability(self, sandbox_id: str) -> t.SandboxIsolationCapability:
        return t.SandboxIsolationCapability(sandbox_id=sandbox_id, available=False)

    async def prepare_isolated_workspace(
        self, sandbox_id: str, *, workspace_dir: str, uid: int, gid: int
    ) -> None:
        _unsupported("SANDBOX_ISOLATION_UNSUPPORTED", "isolated sessions")

    async def open_isolated_session(
        self,
        sandbox_id: str,
        *,
        workspace_dir: str,
        workspace_source_dir: str,
        uid: int | None = None,
        gid: int | None = None,
        share_net: bool = True,
        extra_writable: list[str] | None = None,
        extra_binds: list[tuple[str, str]] | None = None,
    ) -> t.SandboxIsolatedSession:
        _unsupported("SANDBOX_ISOLATION_UNSUPPORTED", "isolated sessions")

    async def run_in_isolated_session(
        self,
        sandbox_id: str,
        session_id: str,
        *,
        code: str,
        envs: Mapping[str, str] | None = None,
        timeout_s: float | None = 60.0,
    ) -> tuple[int, str, str]:
        _unsupported("SANDBOX_ISOLATION_UNSUPPORTED", "isolated sessions")

    def stream_in_isolated_session(
        self,
        sandbox_id: str,
        session_id: str,
        *,
        code: str,
        envs: Mapping[str, str] | None = None,
        timeout_s: float | None = 300.0,
    ) -> AsyncIterator[dict[str, Any]]:
        _unsupported("SANDBOX_ISOLATION_UNSUPPORTED", "isolated sessions")

    async def close_isolated_session(self, sandbox_id: str, session_id: str) -> None:
        _unsupported("SANDBOX_ISOLATION_UNSUPPORTED", "isolated sessions")

    async def find_isolated_sessions_by_workspace(
        self, sandbox_id: str, *, workspace_source_dir: str
    ) -> tuple[t.SandboxIsolatedSession, ...]:
        _unsupported("SANDBOX_ISOLATION_UNSUPPORTED", "isolated sessions")

    async def count_active_isolated_sessions(self, sandbox_id: str) -> int:
        _unsupported("SANDBOX_ISOLATION_UNSUPPORTED", "isolated sessions")

    async def read_memory_headroom(self, sandbox_id: str) -> tuple[int, int]:
        """(limit, used) in bytes, through the box's own commands; (0, 0) proves nothing."""
        box = await self.connect(sandbox_id)
        ran = await box.commands.run(
            "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory.current", timeout=10.0
        )
        words = ran.stdout.split()
        if ran.exit_code != 0 or len(words) != 2 or not all(word.isdigit() for word in words):
            return (0, 0)
        return (int(words[0]), int(words[1]))

    async def read_listening_ports(self, sandbox_id: str) -> set[int]:
        box = await self.connect(sandbox_id)
        ran = await box.commands.run("cat /proc/net/tcp /proc/net/tcp6", timeout=10.0)
        found = re.findall(r"^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) \S+ 0A ", ran.stdout, re.MULTILINE)
        return {int(port, 16) for port in found}

    async def prepare_turn(self, *, context: t.SandboxTurnContext) -> None:
        return None

    def owns_sandbox(self, sandbox: Any) -> bool:
        return False

    def validate_environment_configuration(self, payload: Mapping[str, Any]) -> None:
        return None

    def runtime_defaults(self) -> t.SandboxRuntimeDefaults:
        return t.SandboxRuntimeDefaults()

    async def shutdown_current_loop_resources(self) -> None:
        return None

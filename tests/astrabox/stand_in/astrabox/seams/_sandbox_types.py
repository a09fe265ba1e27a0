# SPDX-License-Identifier: Apache-2.0
"""Constants and values of the sandbox contract; `astrabox.seams.sandbox` re-exports them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol, runtime_checkable

from astrabox.seams.egress_credentials import SandboxEgressCredentialPlan
from astrabox.seams.sandbox_data import (
    SandboxCommands,
    SandboxFiles,
    SandboxProcesses,
    UnsupportedSandboxProcesses,
)

ENTRY_POINT_GROUP = "astrabox.providers.sandbox"
SANDBOX_LIFECYCLE_PROBE_OK = "OK"
SANDBOX_LIFECYCLE_PROBE_NOT_FOUND = "NOT_FOUND"
SANDBOX_LIFECYCLE_PROBE_FAILED = "PROBE_FAILED"
SANDBOX_NETWORK_UNRESTRICTED = "unrestricted"
SANDBOX_NETWORK_LIMITED = "limited"
DESTRUCTION_SETTLE_BUDGET_S = 20.0
DESTRUCTION_SETTLE_INTERVAL_S = 1.0
SANDBOX_SESSION_ID_METADATA_KEY = "astrabox.session-id"
SANDBOX_MANAGED_BY_METADATA_KEY = "astrabox.managed-by"
SANDBOX_MANAGED_BY_METADATA_VALUE = "astrabox"
SANDBOX_ASSIGNMENT_ID_METADATA_KEY = "astrabox.assignment-id"
SANDBOX_INSTALLATION_METADATA_KEY = "astrabox.installation"
SANDBOX_DIAGNOSTIC_SCOPES = ("summary", "inspect", "events", "logs")
SANDBOX_PERMISSION_LEVELS = ("default", "advanced", "privileged")
TURN_PREPARATION_CONTRACT_VERSION = 1


@dataclass(frozen=True, slots=True)
class SandboxNetworkPolicy:
    mode: Literal["unrestricted", "limited"]
    allowed_hosts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.mode not in ("unrestricted", "limited"):
            raise ValueError(f"unknown network mode {self.mode!r}")
        if self.mode == "unrestricted" and self.allowed_hosts:
            raise ValueError("an unrestricted policy names no hosts")


@dataclass(frozen=True)
class SandboxEndpoint:
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)


@runtime_checkable
class SandboxHandle(Protocol):
    @property
    def sandbox_id(self) -> str: ...

    @property
    def files(self) -> SandboxFiles: ...

    @property
    def commands(self) -> SandboxCommands: ...

    @property
    def processes(self) -> SandboxProcesses | UnsupportedSandboxProcesses: ...

    async def get_endpoint(self, port: int) -> SandboxEndpoint: ...

    async def get_signed_endpoint(self, port: int, *, expires_at: datetime) -> SandboxEndpoint: ...


class SandboxLifecycleProbeResult:
    __slots__ = ("error_text", "probe_status", "sandbox_state")

    def __init__(
        self,
        *,
        probe_status: str,
        sandbox_state: str | None = None,
        error_text: str | None = None,
    ) -> None:
        self.probe_status = probe_status
        self.sandbox_state = sandbox_state
        self.error_text = error_text


@dataclass(frozen=True)
class SandboxCreateSpec:
    session_id: str
    assignment_id: str
    resource_limits: dict[str, str]
    resource_requests: dict[str, str]
    image: str | None = None
    entrypoint: tuple[str, ...] | None = None
    cwd: str | None = None
    env: dict[str, str] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    workspace_mounts: tuple[tuple[str, str], ...] = ()
    workspace_volume: str | None = None
    workspace_volume_create_if_missing: bool = True
    publish_ports: tuple[int, ...] = ()
    wait_for_inbox_service_port: int | None = None
    requires_command_channel: bool = False
    death_callback_url: str | None = None
    network_policy: SandboxNetworkPolicy | None = None
    permission_level: str = "default"
    credential_proxy_enabled: bool = False
    vault_write: SandboxEgressCredentialPlan | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for what, amounts in (
            ("resource_limits", self.resource_limits),
            ("resource_requests", self.resource_requests),
        ):
            if not amounts or not all(k.strip() and v.strip() for k, v in amounts.items()):
                raise ValueError(f"{what} must name resources and amounts")
        if not all(k.strip() and v.strip() for k, v in self.metadata.items()):
            raise ValueError("metadata keys and values must not be blank")


@dataclass(frozen=True)
class SandboxRuntimeDefaults:
    runtime_image: str | None = None
    agent_command: str | None = None


@dataclass(frozen=True, slots=True)
class SandboxDescriptor:
    sandbox_id: str
    state: str
    created_at: datetime | None = None
    expires_at: datetime | None = None
    image: str | None = None
    entrypoint: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    session_id: str | None = None
    endpoint: str | None = None


@dataclass(frozen=True, slots=True)
class SandboxPage:
    items: tuple[SandboxDescriptor, ...]
    page: int
    page_size: int
    total_items: int
    total_pages: int
    has_next_page: bool


@dataclass(frozen=True, slots=True)
class SandboxSecurityPosture:
    sandbox_id: str
    available: bool
    default_action: str | None = None
    egress_rules: tuple[tuple[str, str], ...] = ()
    credential_names: tuple[str, ...] = ()
    binding_names: tuple[str, ...] = ()
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class SandboxIsolationCapability:
    sandbox_id: str
    available: bool
    isolator: str | None = None
    version: str | None = None
    setpriv_available: bool = False
    userns_available: bool = False
    commit_supported: bool = False
    diff_supported: bool = False
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class SandboxIsolatedSession:
    sandbox_id: str
    session_id: str
    uid: int | None = None
    gid: int | None = None
    workspace_dir: str | None = None
    workspace_source_dir: str | None = None


@dataclass(frozen=True, slots=True)
class SandboxDiagnostics:
    sandbox_id: str
    scope: str
    content_type: str
    text: str
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class SandboxTurnContext:
    sandbox_backend: str
    sandbox_id: str
    session_id: str
    principal_id: str = field(repr=False)
    turn_id: str
    engine_kind: str
    dispatch_attempt_id: str
    sandbox_handle: Any | None = None

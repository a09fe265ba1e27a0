# SPDX-License-Identifier: Apache-2.0
"""create_sandbox: refusals before anything is allocated, one request that is safe to repeat, set-up
inside the new sandbox, and no sandbox left behind when any of it fails or is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from astrabox.common.utils.errors import APIError
from astrabox.seams.sandbox import (
    SANDBOX_ASSIGNMENT_ID_METADATA_KEY,
    SANDBOX_INSTALLATION_METADATA_KEY,
    SANDBOX_MANAGED_BY_METADATA_KEY,
    SANDBOX_MANAGED_BY_METADATA_VALUE,
    SANDBOX_SESSION_ID_METADATA_KEY,
    SandboxCreateSpec,
    sandbox_installation_id,
)

from astrabox_sandbox_bridge import labels
from astrabox_sandbox_bridge.client import BridgeError, Collected, collect, command, duration, v1
from astrabox_sandbox_bridge.failures import api_error, config_error, leak, rendered, scrub

from . import network
from .base import VOLUMES, WIRING_METADATA_KEY, ProviderBase, log

if TYPE_CHECKING:
    from astrabox_sandbox_bridge.handle import SandboxBridgeHandle

_OWN_KEYS = frozenset(
    {
        SANDBOX_ASSIGNMENT_ID_METADATA_KEY,
        SANDBOX_INSTALLATION_METADATA_KEY,
        SANDBOX_MANAGED_BY_METADATA_KEY,
        SANDBOX_SESSION_ID_METADATA_KEY,
        WIRING_METADATA_KEY,
    }
)
# Read by the upstream's egress sidecar: a caller could turn the policy off with them.
_RESERVED_ENV = "OPENSANDBOX_EGRESS_"
# Lets the sandbox's daemon make namespaces.
_ISOLATION_EXTENSION = {"bootstrap.execd.isolation": "enable"}
_LAST_PORT = 65535
# The assignment's sandbox is there and cannot be used.
_NEVER_USABLE = frozenset({"SANDBOX_FAILED", "READY_TIMEOUT"})
# Seconds for a command that does nothing in a fresh sandbox.
_COMMAND_TIMEOUT = 20.0

# Ends with 0 once something inside listens on a port. The kernel's table is read, so that the
# service sees no connection: by grep, or where there is none by the shell alone, which makes a
# system call for each byte.
_WAIT_FOR_PORT = """\
if command -v grep >/dev/null; then
  listens() {{ grep -qE ':{port:04X} [0-9A-F]+:[0-9A-F]+ 0A ' "$1" 2>/dev/null; }}
else
  listens() {{
    while read -r _ local _ state _; do
      case "$local/$state" in *:{port:04X}/0A) return 0 ;; esac
    done 2>/dev/null < "$1"
    return 1
  }}
fi
until listens /proc/net/tcp || listens /proc/net/tcp6; do
  sleep 0.2 2>/dev/null || sleep 1
done
"""


class Creation(ProviderBase):
    async def create_sandbox(self, spec: SandboxCreateSpec) -> SandboxBridgeHandle:
        """One usable sandbox for one assignment, however often it is asked for."""
        with rendered("create", secrets=self.secrets):
            self.client()  # a wrong setting is told before anything else
            await self.learn_capabilities()
            self._refuse_what_cannot_be(spec)
            installation = await sandbox_installation_id()
            request = self._request(spec, installation)
            ready = self.settings.seconds("READY_TIMEOUT_SECONDS")
        request_id = labels.request_id(installation, spec.assignment_id)
        try:
            made = await self.client().sandboxes.create(
                request, request_id=request_id, ready_timeout=ready
            )
        except BridgeError as error:
            return await self._after_failed_create(spec, request_id, error)
        except BaseException:  # cancelled: the answer may have been on its way
            await self._reclaim_request(request_id)
            raise
        return await self._set_up(spec, made.sandbox)

    # --- refusals ---------------------------------------------------------------------------------

    def _refuse_what_cannot_be(self, spec: SandboxCreateSpec) -> None:
        if not spec.session_id or not spec.assignment_id:
            raise config_error("a sandbox needs a session id and an assignment id")
        _refuse_blank("resource_limits", spec.resource_limits)
        _refuse_blank("resource_requests", spec.resource_requests)
        if spec.entrypoint is not None and not (
            spec.entrypoint and all(part.strip() for part in spec.entrypoint)
        ):
            raise config_error("the entrypoint is empty or has an empty part")
        if spec.cwd and not _is_path(spec.cwd):
            raise config_error(f"the working directory is no absolute path: {spec.cwd!r}")
        port = spec.wait_for_inbox_service_port
        if port is not None and not 1 <= port <= _LAST_PORT:
            raise config_error(f"nothing can listen on port {port}")
        if not (spec.image or self.settings.image):
            raise config_error(
                "no image is named: set ASTRABOX_SANDBOX_BRIDGE_IMAGE or ASTRABOX_AGENT_IMAGE"
            )
        reserved = sorted(name for name in spec.env if name.startswith(_RESERVED_ENV))
        if reserved:
            raise config_error(f"environment names are reserved: {', '.join(reserved)}")
        collisions = sorted(_OWN_KEYS.intersection(spec.metadata))
        if collisions:
            raise config_error(f"metadata keys are the provider's own: {', '.join(collisions)}")
        if spec.permission_level not in self.supported_permission_levels:
            raise APIError(
                "UNSUPPORTED_SANDBOX_PERMISSION_LEVEL",
                f"the level {spec.permission_level!r} is none of "
                f"{', '.join(self.supported_permission_levels)}",
                409,
            )
        if spec.credential_proxy_enabled or (spec.vault_write and not spec.vault_write.is_empty):
            raise config_error("this backend does not inject credentials at the egress")
        if spec.workspace_mounts and not spec.workspace_volume:
            raise config_error("workspace mounts are asked for and no volume is named")
        if spec.workspace_mounts and self.has(VOLUMES) is False:
            raise config_error("this backend mounts no volumes")
        policy = network.policy_of(spec.network_policy, self.settings.denied_addresses)
        if policy is not None and not self.supports_create_network_policy:
            raise config_error("this backend enforces no network policy")

    # --- the request ------------------------------------------------------------------------------

    def _request(self, spec: SandboxCreateSpec, installation: str) -> v1.SandboxSpec:
        metadata = {
            **spec.metadata,
            SANDBOX_SESSION_ID_METADATA_KEY: spec.session_id,
            SANDBOX_MANAGED_BY_METADATA_KEY: SANDBOX_MANAGED_BY_METADATA_VALUE,
            SANDBOX_ASSIGNMENT_ID_METADATA_KEY: spec.assignment_id,
            SANDBOX_INSTALLATION_METADATA_KEY: installation,
            WIRING_METADATA_KEY: self.wiring(),
        }
        advanced = spec.permission_level == "advanced"
        return v1.SandboxSpec(
            image=spec.image or self.settings.image,
            entrypoint=spec.entrypoint or self.settings.entrypoint,
            env=[v1.EnvVar(name=name, value=value) for name, value in spec.env.items()],
            metadata=labels.project(metadata),
            ttl=duration(self.settings.seconds("LEASE_SECONDS"), "ttl"),
            resource_limits=spec.resource_limits,
            resource_requests=spec.resource_requests,
            network_policy=network.policy_of(spec.network_policy, self.settings.denied_addresses),
            secure_access=self.settings.flag("SECURE_ACCESS"),
            volumes=_volumes(spec),
            extensions=_ISOLATION_EXTENSION if advanced else {},
        )

    # --- set-up -----------------------------------------------------------------------------------

    async def _set_up(self, spec: SandboxCreateSpec, sandbox: v1.Sandbox) -> SandboxBridgeHandle:
        try:
            with rendered("create", secrets=self.secrets):
                await self._prepare(spec, sandbox)
                return self.handle(sandbox)
        except APIError as error:
            raise await self._reclaim_because(sandbox.sandbox_id, error) from None
        except BaseException:
            await self._reclaim(sandbox.sandbox_id)
            raise

    async def _prepare(self, spec: SandboxCreateSpec, sandbox: v1.Sandbox) -> None:
        client = self.client()
        if spec.permission_level == "advanced":
            isolation = await client.isolation.get(sandbox.sandbox_id)
            if not isolation.available:
                raise APIError(
                    "SANDBOX_ISOLATION_UNSUPPORTED",
                    f"the sandbox does not isolate sessions: {isolation.detail}",
                    409,
                )
        if spec.cwd:
            await client.files.make_directory(
                sandbox.sandbox_id, spec.cwd, parents=True, incarnation=sandbox.incarnation
            )
        if spec.requires_command_channel:
            await self._run(sandbox, "true", _COMMAND_TIMEOUT, "no command could be run")
        if spec.wait_for_inbox_service_port is not None:
            port = spec.wait_for_inbox_service_port
            await self._run(
                sandbox,
                _WAIT_FOR_PORT.format(port=port),
                self.settings.seconds("PORT_TIMEOUT_SECONDS"),
                f"nothing in the sandbox listens on port {port}",
            )

    async def _run(self, sandbox: v1.Sandbox, line: str, timeout: float, failure: str) -> None:
        events = self.client().execs.execute(
            sandbox.sandbox_id, command(line, timeout=timeout), incarnation=sandbox.incarnation
        )
        ran: Collected = await collect(events, limit=1 << 16)
        if ran.outcome.WhichOneof("kind") != "exit_code" or ran.outcome.exit_code != 0:
            raise APIError(
                "AGENT_RUNTIME_ERROR", f"{failure} within {timeout:g} s", 502, retryable=True
            )

    # --- failure ----------------------------------------------------------------------------------

    async def _after_failed_create(
        self, spec: SandboxCreateSpec, request_id: str, error: BridgeError
    ) -> SandboxBridgeHandle:
        """Adopts the sandbox of a repeated assignment, or leaves nothing behind and raises."""
        existing = error.metadata.get("existing_sandbox_id")
        if error.reason == "REQUEST_ID_REUSED" and existing:
            return await self._adopt(spec, existing, error)
        failure = api_error(error, "create", secrets=self.secrets)
        unusable = error.metadata.get("sandbox_id")
        if unusable and error.reason in _NEVER_USABLE and failure.data is None:
            # What the bridge made in this call it has removed; one of an earlier call it leaves.
            raise await self._reclaim_because(unusable, failure) from None
        if error.outcome_unknown and "leaked_sandbox_id" not in error.metadata:
            survivors = await self._reclaim_request(request_id)
            if survivors:
                failure = api_error(error, "create", secrets=self.secrets, data=leak(survivors[0]))
        raise failure from None

    async def _adopt(
        self, spec: SandboxCreateSpec, sandbox_id: str, error: BridgeError
    ) -> SandboxBridgeHandle:
        """The assignment has a sandbox that was asked for in other words (an environment that is
        made anew each time, say). The same owner gets it; nobody gets a second one."""
        with rendered("create", secrets=self.secrets):
            seen = await self.client().sandboxes.probe(sandbox_id, check_daemon=True)
            sandbox = seen.exists.sandbox
            owner = labels.restore(sandbox.metadata).get(SANDBOX_SESSION_ID_METADATA_KEY)
        if not seen.HasField("exists") or owner != spec.session_id:
            raise api_error(error, "create", secrets=self.secrets)
        usable = (
            sandbox.state == v1.SANDBOX_STATE_RUNNING
            and seen.exists.daemon == v1.ProbeSandboxResponse.DAEMON_STATE_ANSWERS
        )
        if not usable:
            raise await self._reclaim_because(sandbox_id, _unusable(sandbox))
        return await self._set_up(spec, sandbox)

    async def _reclaim_because(self, sandbox_id: str, error: APIError) -> APIError:
        """Destroys a sandbox; the error, with its id if it could not be proven gone."""
        if await self._reclaim(sandbox_id):
            return error
        return APIError(
            error.code,
            f"{error.message}; its sandbox could not be proven gone",
            error.status_code,
            leak(sandbox_id),
            retryable=error.retryable,
            evidence=error.evidence,
            cause_code=error.cause_code,
        )

    async def _reclaim(self, sandbox_id: str) -> bool:
        """Destroys a sandbox whatever happens to the caller. True when it is proven gone."""
        work = self._clients.keep(self._destroy(sandbox_id))
        return await asyncio.shield(work)

    async def _destroy(self, sandbox_id: str) -> bool:
        try:
            answer = await self.client().sandboxes.delete(sandbox_id)
        except BridgeError as error:
            log.error(
                "%s: sandbox %s may be left behind until its lease ends: %s",
                self.name,
                sandbox_id,
                scrub(str(error), self.secrets),
            )
            return False
        gone = answer.verdict in (
            v1.DeleteSandboxResponse.VERDICT_CONFIRMED_GONE,
            v1.DeleteSandboxResponse.VERDICT_ALREADY_GONE,
        )
        if not gone:
            log.error("%s: sandbox %s is not proven gone", self.name, sandbox_id)
        return gone

    async def _reclaim_request(self, request_id: str) -> list[str]:
        """Destroys what a create of this request_id may have made; the ids that may survive."""
        return await asyncio.shield(self._clients.keep(self._destroy_request(request_id)))

    async def _destroy_request(self, request_id: str) -> list[str]:
        try:
            found = [box async for box in self.client().sandboxes.list(request_id=request_id)]
        except BridgeError as error:
            log.error(
                "%s: a sandbox may be left behind until its lease ends: %s",
                self.name,
                scrub(str(error), self.secrets),
            )
            return []
        return [box.sandbox_id for box in found if not await self._destroy(box.sandbox_id)]


def _unusable(sandbox: v1.Sandbox) -> APIError:
    return APIError(
        "AGENT_RUNTIME_ERROR",
        f"the assignment's sandbox {sandbox.sandbox_id} exists and cannot be used "
        f"(state {sandbox.upstream_state or 'unknown'}); it was destroyed",
        502,
    )


def _refuse_blank(what: str, amounts: Mapping[str, str]) -> None:
    if not amounts or not all(k.strip() and v.strip() for k, v in amounts.items()):
        raise config_error(f"{what} must name resources and amounts")


def _is_path(text: str) -> bool:
    """Absolute, and such that a file system can have it."""
    try:
        return text.startswith("/") and b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def _volumes(spec: SandboxCreateSpec) -> list[v1.Volume]:
    return [
        v1.Volume(
            name=f"astrabox-workspace-{index}",
            mount_path=mount_path,
            sub_path=sub_path,
            named=v1.Volume.NamedVolume(
                claim=spec.workspace_volume or "",
                create_if_missing=spec.workspace_volume_create_if_missing,
                delete_with_sandbox=False,
            ),
        )
        for index, (mount_path, sub_path) in enumerate(spec.workspace_mounts)
    ]

# SPDX-License-Identifier: Apache-2.0
"""SandboxService, BridgeService and IsolationService of the fake bridge."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from astrabox_sandbox_bridge._generated import (
    bridge_pb2_grpc,
    isolation_pb2_grpc,
    sandboxes_pb2_grpc,
)
from astrabox_sandbox_bridge.client import v1

from .errors import Fault
from .execs import run_locally
from .upstream import Kept

if TYPE_CHECKING:
    from .server import FakeBridge

_D = v1.DeleteSandboxResponse
_P = v1.ProbeSandboxResponse
_LEVELS = {
    True: v1.Capability.LEVEL_FULL,
    False: v1.Capability.LEVEL_NONE,
    None: v1.Capability.LEVEL_UNSPECIFIED,
}


class FakeBridgeInfo(bridge_pb2_grpc.BridgeServiceServicer):
    def __init__(self, bridge: FakeBridge) -> None:
        self._bridge = bridge

    async def GetServerInfo(self, request: Any, context: Any) -> v1.ServerInfo:  # noqa: N802
        return v1.ServerInfo(version="0.0.0-fake")

    async def GetCapabilities(self, request: Any, context: Any) -> v1.GetCapabilitiesResponse:  # noqa: N802
        return v1.GetCapabilitiesResponse(
            capabilities=[
                v1.Capability(
                    feature=feature,
                    level=_LEVELS[has],
                )
                for feature, has in self._bridge.capabilities.items()
            ]
        )


class FakeSandboxes(sandboxes_pb2_grpc.SandboxServiceServicer):
    def __init__(self, bridge: FakeBridge) -> None:
        self._bridge = bridge
        self._upstream = bridge.upstream

    async def CreateSandbox(  # noqa: N802
        self, request: v1.CreateSandboxRequest, context: Any
    ) -> v1.CreateSandboxResponse:
        if request.request_id:
            matches = [
                kept
                for kept in self._upstream.sandboxes.values()
                if kept.sandbox.request_id == request.request_id
            ]
            if len(matches) > 1:
                raise Fault("AMBIGUOUS_ASSIGNMENT", matches=str(len(matches)))
            if matches:
                return self._adopted(matches[0], request.spec)
        sandbox = self._upstream.create(request.spec, request.request_id)
        return v1.CreateSandboxResponse(sandbox=sandbox)

    @staticmethod
    def _adopted(kept: Kept, spec: v1.SandboxSpec) -> v1.CreateSandboxResponse:
        name, state = kept.sandbox.sandbox_id, kept.sandbox.state
        if kept.spec != spec:
            raise Fault("REQUEST_ID_REUSED", existing_sandbox_id=name)
        if state in (v1.SANDBOX_STATE_FAILED, v1.SANDBOX_STATE_TERMINATED):
            raise Fault("SANDBOX_FAILED", sandbox_id=name, state=kept.sandbox.upstream_state)
        # The bridge waits for it to become usable; another call made it, so it deletes nothing.
        if state != v1.SANDBOX_STATE_RUNNING or not kept.daemon_answers:
            raise Fault("READY_TIMEOUT", sandbox_id=name, last_probe="it does not answer")
        return v1.CreateSandboxResponse(sandbox=kept.sandbox, adopted=True)

    def _find(self, request: Any, *, running: bool = False) -> Kept:
        return self._upstream.find(
            request.sandbox_id, request.expected_incarnation, running=running
        )

    async def GetSandbox(self, request: Any, context: Any) -> v1.Sandbox:  # noqa: N802
        return self._find(request).sandbox

    async def ListSandboxes(  # noqa: N802
        self, request: v1.ListSandboxesRequest, context: Any
    ) -> v1.ListSandboxesResponse:
        wanted = dict(request.metadata)
        matches = [
            kept.sandbox
            for kept in reversed(self._upstream.sandboxes.values())
            if wanted.items() <= dict(kept.sandbox.metadata).items()
            and request.request_id in ("", kept.sandbox.request_id)
        ]
        size = request.page_size or 50
        start = int(request.page_token or request.skip)
        token = str(start + size) if start + size < len(matches) else ""
        return v1.ListSandboxesResponse(
            sandboxes=matches[start : start + size],
            next_page_token=token,
            total_size=len(matches) if self._bridge.capabilities.get("count", True) else None,
        )

    async def CreateSnapshot(self, request: Any, context: Any) -> v1.Snapshot:  # noqa: N802
        self._find(request)
        snapshot = v1.Snapshot(
            snapshot_id=f"snap-{len(self._upstream.snapshots)}", sandbox_id=request.sandbox_id
        )
        self._upstream.snapshots[snapshot.snapshot_id] = snapshot
        return snapshot

    async def ListSnapshots(self, request: Any, context: Any) -> v1.ListSnapshotsResponse:  # noqa: N802
        """One a page."""
        found = [
            snapshot
            for snapshot in self._upstream.snapshots.values()
            if request.sandbox_id in ("", snapshot.sandbox_id)
        ]
        at = int(request.page_token or 0)
        return v1.ListSnapshotsResponse(
            snapshots=found[at : at + 1],
            next_page_token=str(at + 1) if at + 1 < len(found) else "",
        )

    async def DeleteSnapshot(self, request: Any, context: Any) -> v1.DeleteSnapshotResponse:  # noqa: N802
        if self._upstream.snapshots.pop(request.snapshot_id, None) is None:
            raise Fault("SNAPSHOT_NOT_FOUND")
        return v1.DeleteSnapshotResponse()

    async def DeleteSandbox(self, request: Any, context: Any) -> v1.DeleteSandboxResponse:  # noqa: N802
        kept = self._upstream.sandboxes.get(request.sandbox_id)
        if kept is None:
            return _D(verdict=_D.VERDICT_ALREADY_GONE)
        if kept.immortal:
            return _D(verdict=_D.VERDICT_ACCEPTED_UNCONFIRMED)
        del self._upstream.sandboxes[request.sandbox_id]
        self._upstream.deleted.append(request.sandbox_id)
        return _D(verdict=_D.VERDICT_CONFIRMED_GONE)

    async def ProbeSandbox(  # noqa: N802
        self, request: v1.ProbeSandboxRequest, context: Any
    ) -> v1.ProbeSandboxResponse:
        kept = self._upstream.sandboxes.get(request.sandbox_id)
        if kept is None:
            return _P(not_found=_P.NotFound())
        daemon = _P.DAEMON_STATE_UNSPECIFIED
        if request.check_daemon:
            alive = kept.daemon_answers
            daemon = _P.DAEMON_STATE_ANSWERS if alive else _P.DAEMON_STATE_SILENT
        return _P(exists=_P.Exists(sandbox=kept.sandbox, daemon=daemon))

    async def SetExpiration(  # noqa: N802
        self, request: v1.SetExpirationRequest, context: Any
    ) -> v1.SetExpirationResponse:
        sandbox = self._find(request).sandbox
        if not sandbox.HasField("expires_at"):
            raise Fault("NO_EXPIRY")
        wanted = datetime.now(UTC) + timedelta(seconds=max(request.ttl.seconds, 60))
        unchanged = request.never_shorten and sandbox.expires_at.ToDatetime(UTC) >= wanted
        if not unchanged:
            sandbox.expires_at.FromDatetime(wanted)
        return v1.SetExpirationResponse(
            expires_at=sandbox.expires_at,
            clamped=request.ttl.seconds < 60,
            unchanged=unchanged,
        )

    async def PauseSandbox(self, request: Any, context: Any) -> v1.PauseSandboxResponse:  # noqa: N802
        sandbox = self._find(request, running=True).sandbox
        self._upstream.set_state(sandbox.sandbox_id, "Paused")
        return v1.PauseSandboxResponse(sandbox=sandbox, settled=True)

    async def ResumeSandbox(self, request: Any, context: Any) -> v1.ResumeSandboxResponse:  # noqa: N802
        sandbox = self._find(request).sandbox
        self._upstream.set_state(sandbox.sandbox_id, "Running")
        return v1.ResumeSandboxResponse(sandbox=sandbox, settled=True)

    async def UpdateMetadata(self, request: Any, context: Any) -> v1.Sandbox:  # noqa: N802
        sandbox = self._find(request).sandbox
        for key in request.delete:
            sandbox.metadata.pop(key, None)
        sandbox.metadata.update(request.set)
        return sandbox

    async def GetEndpoint(self, request: Any, context: Any) -> v1.Endpoint:  # noqa: N802
        self._find(request, running=True)
        if not 1 <= request.port <= 65535:
            raise Fault("INVALID_ARGUMENT", "port: 1..65535", field="port")
        header = v1.Endpoint.Header(name="X-Route", value=f"secret-of-{request.sandbox_id}")
        return v1.Endpoint(
            url=f"http://127.0.0.1:{request.port}/p/", headers=[header], route=request.route
        )

    async def CreateSignedEndpoint(self, request: Any, context: Any) -> v1.Endpoint:  # noqa: N802
        self._find(request, running=True)
        expires = request.expires_at.seconds
        return v1.Endpoint(url=f"http://127.0.0.1:{request.port}/signed/{expires}/")

    async def GetNetworkPolicy(self, request: Any, context: Any) -> v1.NetworkPolicyStatus:  # noqa: N802
        kept = self._find(request)
        if kept.policy is None:
            raise Fault("UNSUPPORTED_FEATURE", feature="network_policy")
        return v1.NetworkPolicyStatus(policy=kept.policy, enforcement="dns+nft")

    async def PatchNetworkPolicy(self, request: Any, context: Any) -> v1.NetworkPolicyStatus:  # noqa: N802
        kept = self._find(request)
        if kept.policy is None:
            raise Fault("UNSUPPORTED_FEATURE", feature="network_policy")
        rules = [r for r in kept.policy.rules if r.target not in request.remove_targets]
        kept.policy = v1.NetworkPolicy(
            default_action=kept.policy.default_action, rules=[*rules, *request.add]
        )
        return v1.NetworkPolicyStatus(policy=kept.policy)

    async def GetDiagnostics(self, request: Any, context: Any) -> v1.GetDiagnosticsResponse:  # noqa: N802
        self._find(request)
        kind = v1.GetDiagnosticsRequest.Kind.Name(request.kind)
        return v1.GetDiagnosticsResponse(text=f"{kind} \udcff".encode("utf-8", "surrogateescape"))


class FakeIsolation(isolation_pb2_grpc.IsolationServiceServicer):
    """Sessions that isolate nothing: for the client's and the provider's tests of the calls."""

    def __init__(self, bridge: FakeBridge) -> None:
        self._upstream = bridge.upstream

    def _find(self, request: Any) -> Kept:
        return self._upstream.find(request.sandbox_id, request.expected_incarnation, running=True)

    async def GetIsolation(self, request: Any, context: Any) -> v1.Isolation:  # noqa: N802
        self._find(request)
        return v1.Isolation(available=True, isolator="none", version="0")

    async def OpenIsolatedSession(self, request: Any, context: Any) -> v1.IsolatedSession:  # noqa: N802
        kept = self._find(request)
        session = v1.IsolatedSession(
            session_id=f"s-{len(kept.sessions)}",
            workspace_path=request.workspace_path,
            workspace_source_path=request.workspace_source_path,
            user=request.user if request.HasField("user") else None,
        )
        kept.sessions[session.session_id] = session
        return session

    async def ListIsolatedSessions(  # noqa: N802
        self, request: Any, context: Any
    ) -> v1.ListIsolatedSessionsResponse:
        wanted = request.workspace_source_path
        sessions = [
            session
            for session in self._find(request).sessions.values()
            if wanted in ("", session.workspace_source_path)
        ]
        return v1.ListIsolatedSessionsResponse(sessions=sessions)

    async def RunInIsolatedSession(  # noqa: N802
        self, request: Any, context: Any
    ) -> AsyncIterator[v1.ExecEvent]:
        if request.session_id not in self._find(request).sessions:
            raise Fault("PROCESS_NOT_FOUND")
        spec = v1.ExecSpec(shell=request.script, env=request.env)
        if request.HasField("timeout"):
            spec.timeout.CopyFrom(request.timeout)
        async for event in run_locally(spec):
            yield event

    async def CloseIsolatedSession(  # noqa: N802
        self, request: Any, context: Any
    ) -> v1.CloseIsolatedSessionResponse:
        existed = self._find(request).sessions.pop(request.session_id, None) is not None
        return v1.CloseIsolatedSessionResponse(existed=existed)

# SPDX-License-Identifier: Apache-2.0
"""SandboxService and BridgeService: sandboxes from birth to proven death."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, cast

from .._generated import bridge_pb2_grpc, sandboxes_pb2_grpc
from . import v1
from .connection import Connection
from .times import duration, timestamp

if TYPE_CHECKING:
    from .._generated.bridge_pb2_grpc import BridgeServiceAsyncStub
    from .._generated.sandboxes_pb2_grpc import SandboxServiceAsyncStub

# Seconds that a call may take beyond the time that the bridge itself is asked to wait.
_MARGIN = 30.0


class Bridge:
    """What the bridge is and can do."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        stub = bridge_pb2_grpc.BridgeServiceStub(connection.channel)
        self._stub = cast("BridgeServiceAsyncStub", stub)

    async def info(self) -> v1.ServerInfo:
        request = v1.GetServerInfoRequest()
        return await self._connection.unary(self._stub.GetServerInfo, request, repeatable=True)

    async def capabilities(
        self, sandbox_id: str = "", *, timeout: float | None = None
    ) -> v1.GetCapabilitiesResponse:
        request = v1.GetCapabilitiesRequest(sandbox_id=sandbox_id)
        return await self._connection.unary(
            self._stub.GetCapabilities, request, timeout=timeout, repeatable=True
        )


class Sandboxes:
    """One method a call; `incarnation`, where given, fences the call (STALE_INCARNATION)."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        stub = sandboxes_pb2_grpc.SandboxServiceStub(connection.channel)
        self._stub = cast("SandboxServiceAsyncStub", stub)

    async def create(
        self, spec: v1.SandboxSpec, *, request_id: str = "", ready_timeout: float = 60.0
    ) -> v1.CreateSandboxResponse:
        """With a `request_id` the call is repeated when the connection breaks; it makes one sandbox
        all the same."""
        request = v1.CreateSandboxRequest(
            spec=spec, request_id=request_id, ready_timeout=duration(ready_timeout, "ready_timeout")
        )
        return await self._connection.unary(
            self._stub.CreateSandbox,
            request,
            timeout=ready_timeout + _MARGIN,
            repeatable=bool(request_id),
        )

    async def get(self, sandbox_id: str, *, incarnation: str = "") -> v1.Sandbox:
        request = v1.GetSandboxRequest(sandbox_id=sandbox_id, expected_incarnation=incarnation)
        return await self._connection.unary(self._stub.GetSandbox, request, repeatable=True)

    async def page(
        self,
        *,
        metadata: Mapping[str, str] | None = None,
        states: Iterable[v1.SandboxState.ValueType] = (),
        request_id: str = "",
        page_size: int = 0,
        page_token: str = "",
        skip: int = 0,
    ) -> v1.ListSandboxesResponse:
        request = v1.ListSandboxesRequest(
            metadata=metadata,
            states=states,
            request_id=request_id,
            page_size=page_size,
            page_token=page_token,
            skip=skip,
        )
        return await self._connection.unary(self._stub.ListSandboxes, request, repeatable=True)

    async def list(
        self,
        *,
        metadata: Mapping[str, str] | None = None,
        states: Sequence[v1.SandboxState.ValueType] = (),
        request_id: str = "",
        page_size: int = 200,
    ) -> AsyncIterator[v1.Sandbox]:
        """All that match, page by page; each sandbox once."""
        token, seen = "", set[str]()
        while True:
            answer = await self.page(
                metadata=metadata,
                states=states,
                request_id=request_id,
                page_size=page_size,
                page_token=token,
            )
            for sandbox in answer.sandboxes:
                if sandbox.sandbox_id not in seen:
                    seen.add(sandbox.sandbox_id)
                    yield sandbox
            if not answer.next_page_token or answer.next_page_token == token:
                return
            token = answer.next_page_token

    async def delete(
        self, sandbox_id: str, *, incarnation: str = "", wait_for_proof: float = 20.0
    ) -> v1.DeleteSandboxResponse:
        request = v1.DeleteSandboxRequest(
            sandbox_id=sandbox_id,
            expected_incarnation=incarnation,
            wait_for_proof=duration(wait_for_proof, "wait_for_proof"),
        )
        return await self._connection.unary(
            self._stub.DeleteSandbox, request, timeout=wait_for_proof + _MARGIN, repeatable=True
        )

    async def probe(
        self, sandbox_id: str, *, incarnation: str = "", check_daemon: bool = False
    ) -> v1.ProbeSandboxResponse:
        request = v1.ProbeSandboxRequest(
            sandbox_id=sandbox_id, expected_incarnation=incarnation, check_daemon=check_daemon
        )
        return await self._connection.unary(self._stub.ProbeSandbox, request, repeatable=True)

    async def set_expiration(
        self,
        sandbox_id: str,
        *,
        ttl: float | None,
        never_shorten: bool = False,
        incarnation: str = "",
    ) -> v1.SetExpirationResponse:
        """`ttl` in seconds from now on the server's clock; None asserts that it never expires."""
        request = v1.SetExpirationRequest(
            sandbox_id=sandbox_id, expected_incarnation=incarnation, never_shorten=never_shorten
        )
        if ttl is None:
            request.never = True
        else:
            request.ttl.CopyFrom(duration(ttl, "ttl"))
        return await self._connection.unary(self._stub.SetExpiration, request, repeatable=True)

    async def pause(
        self, sandbox_id: str, *, wait: float = 30.0, incarnation: str = ""
    ) -> v1.PauseSandboxResponse:
        request = v1.PauseSandboxRequest(
            sandbox_id=sandbox_id, expected_incarnation=incarnation, wait=duration(wait, "wait")
        )
        return await self._connection.unary(
            self._stub.PauseSandbox, request, timeout=wait + _MARGIN, repeatable=True
        )

    async def resume(
        self, sandbox_id: str, *, wait: float = 60.0, incarnation: str = ""
    ) -> v1.ResumeSandboxResponse:
        request = v1.ResumeSandboxRequest(
            sandbox_id=sandbox_id, expected_incarnation=incarnation, wait=duration(wait, "wait")
        )
        return await self._connection.unary(
            self._stub.ResumeSandbox, request, timeout=wait + _MARGIN, repeatable=True
        )

    async def update_metadata(
        self,
        sandbox_id: str,
        *,
        set_keys: Mapping[str, str] | None = None,
        delete_keys: Iterable[str] = (),
        incarnation: str = "",
    ) -> v1.Sandbox:
        request = v1.UpdateMetadataRequest(
            sandbox_id=sandbox_id,
            expected_incarnation=incarnation,
            set=set_keys,
            delete=delete_keys,
        )
        return await self._connection.unary(self._stub.UpdateMetadata, request, repeatable=True)

    async def endpoint(
        self,
        sandbox_id: str,
        port: int,
        *,
        route: v1.EndpointRoute.ValueType = v1.ENDPOINT_ROUTE_UNSPECIFIED,
        incarnation: str = "",
    ) -> v1.Endpoint:
        request = v1.GetEndpointRequest(
            sandbox_id=sandbox_id, expected_incarnation=incarnation, port=port, route=route
        )
        return await self._connection.unary(self._stub.GetEndpoint, request, repeatable=True)

    async def signed_endpoint(
        self, sandbox_id: str, port: int, *, expires_at: datetime, incarnation: str = ""
    ) -> v1.Endpoint:
        request = v1.CreateSignedEndpointRequest(
            sandbox_id=sandbox_id,
            expected_incarnation=incarnation,
            port=port,
            expires_at=timestamp(expires_at),
        )
        return await self._connection.unary(
            self._stub.CreateSignedEndpoint, request, repeatable=True
        )

    async def network_policy(
        self, sandbox_id: str, *, incarnation: str = ""
    ) -> v1.NetworkPolicyStatus:
        request = v1.GetNetworkPolicyRequest(
            sandbox_id=sandbox_id, expected_incarnation=incarnation
        )
        return await self._connection.unary(self._stub.GetNetworkPolicy, request, repeatable=True)

    async def patch_network_policy(
        self,
        sandbox_id: str,
        *,
        add: Iterable[v1.NetworkPolicy.Rule] = (),
        remove_targets: Iterable[str] = (),
        incarnation: str = "",
    ) -> v1.NetworkPolicyStatus:
        request = v1.PatchNetworkPolicyRequest(
            sandbox_id=sandbox_id,
            expected_incarnation=incarnation,
            add=add,
            remove_targets=remove_targets,
        )
        return await self._connection.unary(self._stub.PatchNetworkPolicy, request, repeatable=True)

    async def diagnostics(
        self,
        sandbox_id: str,
        kind: v1.GetDiagnosticsRequest.Kind.ValueType,
        *,
        tail: int = 0,
        incarnation: str = "",
    ) -> v1.GetDiagnosticsResponse:
        request = v1.GetDiagnosticsRequest(
            sandbox_id=sandbox_id, expected_incarnation=incarnation, kind=kind, tail=tail
        )
        return await self._connection.unary(self._stub.GetDiagnostics, request, repeatable=True)

    async def resource_usage(self, sandbox_id: str, *, incarnation: str = "") -> v1.ResourceUsage:
        request = v1.GetResourceUsageRequest(
            sandbox_id=sandbox_id, expected_incarnation=incarnation
        )
        return await self._connection.unary(self._stub.GetResourceUsage, request, repeatable=True)

    def watch_resource_usage(
        self, sandbox_id: str, *, incarnation: str = ""
    ) -> AsyncIterator[v1.ResourceUsage]:
        request = v1.WatchResourceUsageRequest(
            sandbox_id=sandbox_id, expected_incarnation=incarnation
        )
        return self._connection.stream(
            self._stub.WatchResourceUsage, request, silence=self._connection.options.silence_timeout
        )

    async def create_snapshot(
        self, sandbox_id: str, name: str, *, wait: float = 60.0, incarnation: str = ""
    ) -> v1.Snapshot:
        request = v1.CreateSnapshotRequest(
            sandbox_id=sandbox_id,
            expected_incarnation=incarnation,
            name=name,
            wait=duration(wait, "wait"),
        )
        return await self._connection.unary(
            self._stub.CreateSnapshot, request, timeout=wait + _MARGIN
        )

    async def snapshots(
        self, sandbox_id: str = "", *, page_size: int = 0, page_token: str = ""
    ) -> v1.ListSnapshotsResponse:
        request = v1.ListSnapshotsRequest(
            sandbox_id=sandbox_id, page_size=page_size, page_token=page_token
        )
        return await self._connection.unary(self._stub.ListSnapshots, request, repeatable=True)

    async def delete_snapshot(self, snapshot_id: str) -> None:
        request = v1.DeleteSnapshotRequest(snapshot_id=snapshot_id)
        await self._connection.unary(self._stub.DeleteSnapshot, request)

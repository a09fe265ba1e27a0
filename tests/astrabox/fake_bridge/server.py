# SPDX-License-Identifier: Apache-2.0
"""The fake bridge's server: recording, faults and gates around every call."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import Any, Self

import grpc
import grpc.aio
from astrabox_sandbox_bridge._generated import (
    bridge_pb2_grpc,
    exec_pb2_grpc,
    files_pb2_grpc,
    isolation_pb2_grpc,
    processes_pb2_grpc,
    sandboxes_pb2_grpc,
)

from .errors import Fault, abort
from .execs import FakeExecs
from .files import FakeFiles
from .processes import FakeProcesses
from .sandboxes import FakeBridgeInfo, FakeIsolation, FakeSandboxes
from .upstream import Upstream


class FakeBridge:
    def __init__(self, upstream: Upstream, *, port: int = 0, isolation: bool = True) -> None:
        self.upstream = upstream
        self.port = port
        # feature → whether it is there; None: not known.
        self.capabilities: dict[str, bool | None] = dict.fromkeys(
            (
                "sandboxes.network_policy",
                "sandboxes.pause",
                "sandboxes.volumes",
                "processes",
                "isolation",
            ),
            True,
        )
        # (method, request, metadata) in order of arrival.
        self.calls: list[tuple[str, Any, dict[str, str | bytes]]] = []
        # method → seconds to the deadline of its last call.
        self.time_left: dict[str, float] = {}
        self._faults: dict[str, list[Fault]] = {}
        self._gates: dict[str, asyncio.Event] = {}
        # Set when a call arrives at its gate.
        self.waiting: dict[str, asyncio.Event] = {}
        self._isolation = isolation
        self._server: grpc.aio.Server | None = None

    # --- what tests say and ask -------------------------------------------------------------------

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def fail(self, method: str, reason: str, *args: str, times: int = 1, **details: Any) -> None:
        """The next `times` calls of a method fail."""
        faults = [Fault(reason, *args, **details) for _ in range(times)]
        self._faults.setdefault(method, []).extend(faults)

    def hold(self, method: str) -> asyncio.Event:
        """Calls of a method do their work and answer only when the event is set."""
        self.waiting[method] = asyncio.Event()
        return self._gates.setdefault(method, asyncio.Event())

    def asked(self, method: str) -> list[Any]:
        """The requests of a method so far."""
        return [request for name, request, _ in self.calls if name == method]

    # --- life -------------------------------------------------------------------------------------

    async def start(self) -> Self:
        server = grpc.aio.server(interceptors=[_Around(self)], options=[("grpc.so_reuseport", 0)])
        sandboxes_pb2_grpc.add_SandboxServiceServicer_to_server(FakeSandboxes(self), server)  # type: ignore[abstract]
        bridge_pb2_grpc.add_BridgeServiceServicer_to_server(FakeBridgeInfo(self), server)
        exec_pb2_grpc.add_ExecServiceServicer_to_server(FakeExecs(self), server)  # type: ignore[abstract]
        files_pb2_grpc.add_FileServiceServicer_to_server(FakeFiles(self), server)  # type: ignore[abstract]
        processes_pb2_grpc.add_ProcessServiceServicer_to_server(FakeProcesses(self), server)  # type: ignore[abstract]
        if self._isolation:
            isolation_pb2_grpc.add_IsolationServiceServicer_to_server(FakeIsolation(self), server)
        self.port = server.add_insecure_port(f"127.0.0.1:{self.port}")
        await server.start()
        self._server = server
        return self

    async def stop(self) -> None:
        """As a crash: what runs is cut."""
        if self._server is not None:
            await self._server.stop(None)
            self._server = None

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    # --- around every call ------------------------------------------------------------------------

    def take_fault(self, method: str) -> Fault | None:
        faults = self._faults.get(method)
        return faults.pop(0) if faults else None

    async def gate(self, method: str) -> None:
        gate = self._gates.get(method)
        if gate is not None:
            self.waiting[method].set()
            await gate.wait()


class _Around(grpc.aio.ServerInterceptor):
    def __init__(self, bridge: FakeBridge) -> None:
        self._bridge = bridge

    async def intercept_service(
        self,
        continuation: Callable[[Any], Awaitable[Any]],
        details: grpc.HandlerCallDetails,
    ) -> Any:
        handler = await continuation(details)
        if handler is None:
            return None
        method = details.method.rpartition("/")[2]
        metadata = dict(details.invocation_metadata)
        wrap = self._stream if handler.response_streaming else self._unary
        make = {
            (False, False): grpc.unary_unary_rpc_method_handler,
            (False, True): grpc.unary_stream_rpc_method_handler,
            (True, False): grpc.stream_unary_rpc_method_handler,
            (True, True): grpc.stream_stream_rpc_method_handler,
        }[handler.request_streaming, handler.response_streaming]
        behaviour = next(
            b
            for b in (
                handler.unary_unary,
                handler.unary_stream,
                handler.stream_unary,
                handler.stream_stream,
            )
            if b is not None
        )
        return make(
            wrap(method, behaviour, metadata),
            request_deserializer=handler.request_deserializer,
            response_serializer=handler.response_serializer,
        )

    def _unary(
        self, method: str, behaviour: Any, metadata: dict[str, str | bytes]
    ) -> Callable[[Any, Any], Awaitable[Any]]:
        async def call(request: Any, context: Any) -> Any:
            self._bridge.calls.append((method, request, metadata))
            self._bridge.time_left[method] = context.time_remaining()
            fault = self._bridge.take_fault(method)
            try:
                if fault is not None:
                    raise fault
                answer = await behaviour(request, context)
                await self._bridge.gate(method)
                return answer
            except Fault as raised:
                await abort(context, raised)

        return call

    def _stream(
        self, method: str, behaviour: Any, metadata: dict[str, str | bytes]
    ) -> Callable[[Any, Any], AsyncIterator[Any]]:
        async def call(request: Any, context: Any) -> AsyncIterator[Any]:
            self._bridge.calls.append((method, request, metadata))
            fault = self._bridge.take_fault(method)
            try:
                if fault is not None:
                    raise fault
                async with contextlib.aclosing(behaviour(request, context)) as events:
                    async for event in events:
                        yield event
                await self._bridge.gate(method)
            except Fault as raised:
                await abort(context, raised)

        return call

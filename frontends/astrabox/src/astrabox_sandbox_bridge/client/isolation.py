# SPDX-License-Identifier: Apache-2.0
"""IsolationService: several users' work in one sandbox, kept apart."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from .._generated import isolation_pb2_grpc
from . import v1
from .connection import Connection
from .times import duration

if TYPE_CHECKING:
    from .._generated.isolation_pb2_grpc import IsolationServiceAsyncStub


class Isolation:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        stub = isolation_pb2_grpc.IsolationServiceStub(connection.channel)
        self._stub = cast("IsolationServiceAsyncStub", stub)

    async def get(self, sandbox_id: str, *, incarnation: str = "") -> v1.Isolation:
        request = v1.GetIsolationRequest(sandbox_id=sandbox_id, expected_incarnation=incarnation)
        return await self._connection.unary(self._stub.GetIsolation, request, repeatable=True)

    async def open(
        self,
        sandbox_id: str,
        *,
        workspace_path: str,
        workspace_source_path: str = "",
        user: tuple[int, int | None] | None = None,
        share_network: bool = True,
        extra_writable: Iterable[str] = (),
        binds: Iterable[tuple[str, str]] = (),
        incarnation: str = "",
    ) -> v1.IsolatedSession:
        """`user` is (uid, gid); `binds` are (source, destination), writable."""
        request = v1.OpenIsolatedSessionRequest(
            sandbox_id=sandbox_id,
            expected_incarnation=incarnation,
            workspace_path=workspace_path,
            workspace_source_path=workspace_source_path,
            user=None if user is None else v1.User.Ids(uid=user[0], gid=user[1]),
            share_network=share_network,
            extra_writable=extra_writable,
            binds=[
                v1.OpenIsolatedSessionRequest.Bind(source=source, destination=destination)
                for source, destination in binds
            ],
        )
        return await self._connection.unary(self._stub.OpenIsolatedSession, request)

    async def list(
        self, sandbox_id: str, *, workspace_source_path: str = "", incarnation: str = ""
    ) -> Sequence[v1.IsolatedSession]:
        request = v1.ListIsolatedSessionsRequest(
            sandbox_id=sandbox_id,
            expected_incarnation=incarnation,
            workspace_source_path=workspace_source_path,
        )
        answer = await self._connection.unary(
            self._stub.ListIsolatedSessions, request, repeatable=True
        )
        return answer.sessions

    def run(
        self,
        sandbox_id: str,
        session_id: str,
        script: str,
        *,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        incarnation: str = "",
    ) -> AsyncIterator[v1.ExecEvent]:
        """Runs a script in a session; yields its events. Leaving the iteration kills it."""
        request = v1.RunInIsolatedSessionRequest(
            sandbox_id=sandbox_id,
            expected_incarnation=incarnation,
            session_id=session_id,
            script=script,
            env=[v1.EnvVar(name=name, value=value) for name, value in (env or {}).items()],
            timeout=None if timeout is None else duration(timeout, "timeout"),
        )
        return self._connection.stream(
            self._stub.RunInIsolatedSession,
            request,
            silence=self._connection.options.silence_timeout,
        )

    async def close(self, sandbox_id: str, session_id: str, *, incarnation: str = "") -> bool:
        """False when there was none of this id."""
        request = v1.CloseIsolatedSessionRequest(
            sandbox_id=sandbox_id, expected_incarnation=incarnation, session_id=session_id
        )
        answer = await self._connection.unary(
            self._stub.CloseIsolatedSession, request, repeatable=True
        )
        return answer.existed

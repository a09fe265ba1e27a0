# SPDX-License-Identifier: Apache-2.0
"""Several users' work in one sandbox, kept apart, where the sandbox's daemon can."""

from __future__ import annotations

import codecs
import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from astrabox.common.utils.errors import APIError
from astrabox.seams.sandbox import SandboxIsolatedSession, SandboxIsolationCapability

from astrabox_sandbox_bridge.client import BridgeError, collect, v1
from astrabox_sandbox_bridge.failures import config_error, rendered, scrub

from .base import ProviderBase

# States of a sandbox in which nothing of it runs, nor will.
_ENDED = frozenset({"terminated", "failed"})
_STREAMS = {v1.OUTPUT_STREAM_STDOUT: "stdout", v1.OUTPUT_STREAM_STDERR: "stderr"}


class IsolatedSessions(ProviderBase):
    async def read_isolation_capability(self, sandbox_id: str) -> SandboxIsolationCapability:
        """A "no" is an answer."""
        with rendered("isolation", secrets=self.secrets):
            try:
                found = await self.client().isolation.get(sandbox_id)
            except BridgeError as error:
                if error.reason != "UNSUPPORTED_FEATURE":
                    raise
                return SandboxIsolationCapability(
                    sandbox_id=sandbox_id,
                    available=False,
                    detail=scrub(error.message, self.secrets),
                )
        return SandboxIsolationCapability(
            sandbox_id=sandbox_id,
            available=found.available,
            isolator=found.isolator or None,
            version=found.version or None,
            setpriv_available=found.setpriv_available,
            userns_available=found.user_namespace_available,
            detail=found.detail or None,
        )

    async def prepare_isolated_workspace(
        self, sandbox_id: str, *, workspace_dir: str, uid: int, gid: int
    ) -> None:
        """A directory of the user's own, which nobody else can read, existing or not. A link on
        the way to it is refused: it would give its user whatever it points to."""
        _absolute(workspace_dir)
        with rendered("isolation", secrets=self.secrets, gone=True):
            await self._refuse_links(sandbox_id, workspace_dir)
            files = self.client().files
            owner, group = str(uid), str(gid)
            made = await files.make_directory(
                sandbox_id, workspace_dir, mode=0o700, owner=owner, group=group, parents=True
            )
            if not made:
                await files.set_attributes(
                    sandbox_id, workspace_dir, mode=0o700, owner=owner, group=group
                )

    async def _refuse_links(self, sandbox_id: str, path: str) -> None:
        """Looks at every part of a path, from the top."""
        whole = PurePosixPath(path)
        for part in (*reversed(whole.parents[:-1]), whole):
            try:
                info = await self.client().files.stat(sandbox_id, str(part))
            except BridgeError as error:
                if error.reason == "PATH_NOT_FOUND":
                    return  # what is not there is made, as directories
                raise
            if info.type == v1.FILE_TYPE_SYMLINK:
                raise APIError("INVALID_REQUEST", f"{part} is a symbolic link", 400)

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
    ) -> SandboxIsolatedSession:
        if uid is None and gid is not None:
            raise config_error("a session with a group and no user cannot be opened")
        with rendered("isolation", secrets=self.secrets, gone=True):
            session = await self.client().isolation.open(
                sandbox_id,
                workspace_path=workspace_dir,
                workspace_source_path=workspace_source_dir,
                user=None if uid is None else (uid, gid),
                share_network=share_net,
                extra_writable=extra_writable or (),
                binds=extra_binds or (),
            )
        return SandboxIsolatedSession(
            sandbox_id=sandbox_id,
            session_id=session.session_id,
            uid=uid,
            gid=gid,
            workspace_dir=workspace_dir,
            workspace_source_dir=workspace_source_dir,
        )

    async def run_in_isolated_session(
        self,
        sandbox_id: str,
        session_id: str,
        *,
        code: str,
        envs: Mapping[str, str] | None = None,
        timeout_s: float | None = 60.0,
    ) -> tuple[int, str, str]:
        """(exit code, stdout, stderr). Beyond `timeout_s` it is stopped and TimeoutError raised."""
        with self._session(session_id):
            events = self.client().isolation.run(
                sandbox_id, session_id, code, env=envs, timeout=timeout_s
            )
            ran = await collect(events, limit=self.settings.count("MAX_OUTPUT_BYTES"))
        code_, error = exit_of(ran.outcome, timeout_s)
        if error is not None:
            raise error
        return code_, ran.stdout.decode("utf-8", "replace"), ran.stderr.decode("utf-8", "replace")

    async def stream_in_isolated_session(
        self,
        sandbox_id: str,
        session_id: str,
        *,
        code: str,
        envs: Mapping[str, str] | None = None,
        timeout_s: float | None = 300.0,
    ) -> AsyncIterator[dict[str, Any]]:
        """stdout and stderr events, perhaps an __error__, at last __done__. Leaving it stops the
        script."""
        decoders = {stream: codecs.getincrementaldecoder("utf-8")("replace") for stream in _STREAMS}
        outcome = v1.Outcome()
        with self._session(session_id):
            events = self.client().isolation.run(
                sandbox_id, session_id, code, env=envs, timeout=timeout_s
            )
            async for event in events:
                for output in event.output_batch.outputs:
                    text = decoders[output.stream].decode(output.data)
                    if text:
                        yield {"type": _STREAMS[output.stream], "text": text}
                if event.HasField("exited"):
                    outcome = event.exited.outcome
        for stream, decoder in decoders.items():
            if rest := decoder.decode(b"", final=True):
                yield {"type": _STREAMS[stream], "text": rest}
        exit_code, error = exit_of(outcome, timeout_s)
        if error is not None:
            yield {"type": "__error__", "name": type(error).__name__, "value": str(error)}
        yield {"type": "__done__", "exit_code": exit_code}

    async def close_isolated_session(self, sandbox_id: str, session_id: str) -> None:
        """Gone already, with its sandbox or without, is success."""
        with rendered("isolation", secrets=self.secrets):
            try:
                await self.client().isolation.close(sandbox_id, session_id)
            except BridgeError as error:
                ended = error.metadata.get("state", "").lower() in _ENDED
                if not ended and error.reason not in {"SANDBOX_NOT_FOUND", "STALE_INCARNATION"}:
                    raise

    async def find_isolated_sessions_by_workspace(
        self, sandbox_id: str, *, workspace_source_dir: str
    ) -> tuple[SandboxIsolatedSession, ...]:
        if not workspace_source_dir.startswith("/"):
            raise APIError(
                "CONVERSATION_IDENTITY_INVALID",
                f"a workspace's directory is not absolute: {workspace_source_dir!r}",
                500,
            )
        with rendered("isolation", secrets=self.secrets, gone=True):
            sessions = await self.client().isolation.list(
                sandbox_id, workspace_source_path=workspace_source_dir
            )
        return tuple(
            SandboxIsolatedSession(
                sandbox_id=sandbox_id,
                session_id=session.session_id,
                uid=session.user.uid if session.HasField("user") else None,
                gid=session.user.gid if session.user.HasField("gid") else None,
                workspace_dir=session.workspace_path or None,
                workspace_source_dir=session.workspace_source_path or None,
            )
            for session in sessions
        )

    async def count_active_isolated_sessions(self, sandbox_id: str) -> int:
        """Raises when it cannot be asked: "unknown" must not read as "none"."""
        with rendered("isolation", secrets=self.secrets, gone=True):
            return len(await self.client().isolation.list(sandbox_id))

    @contextlib.contextmanager
    def _session(self, session_id: str) -> Any:
        """As rendered(), with the code that tells an absent session from an absent sandbox."""
        with rendered("isolation", secrets=self.secrets, gone=True):
            try:
                yield
            except BridgeError as error:
                if error.reason != "PROCESS_NOT_FOUND":
                    raise
                raise APIError(
                    "SANDBOX_ISOLATED_SESSION_NOT_FOUND", f"no session {session_id}", 409
                ) from None


def exit_of(outcome: v1.Outcome, timeout_s: float | None) -> tuple[int, Exception | None]:
    """An exit code, and the error where the end is none of the script's own."""
    match outcome.WhichOneof("kind"):
        case "exit_code":
            return outcome.exit_code, None
        case "signal":
            return 128 + outcome.signal.number, None
        case "timed_out":
            return 124, TimeoutError(f"the script ran longer than {timeout_s or 0:g} s")
        case _:
            return 255, APIError("AGENT_RUNTIME_ERROR", "the script's end is not known", 502)


def _absolute(path: str) -> None:
    if not path.startswith("/"):
        raise APIError("INVALID_REQUEST", f"the path is not absolute: {path!r}", 400)

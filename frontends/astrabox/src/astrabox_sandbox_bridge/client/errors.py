# SPDX-License-Identifier: Apache-2.0
"""Failures of the bridge as one exception with the bridge's own word for what happened."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar, cast

import grpc
import grpc.aio
from google.rpc import error_details_pb2, status_pb2

T = TypeVar("T")

DOMAIN = "sandbox.bridge.v1"

# The one word that is not in errors.proto, because a bridge cannot say it: no bridge answered.
BRIDGE_UNREACHABLE = "BRIDGE_UNREACHABLE"

# What a status without details means: made by gRPC itself, a proxy, or a bridge that does not know
# the service. UNAVAILABLE is the transport's own failure.
_REASON_OF_CODE = {
    grpc.StatusCode.UNAVAILABLE: BRIDGE_UNREACHABLE,
    grpc.StatusCode.UNIMPLEMENTED: "UNSUPPORTED_FEATURE",
    grpc.StatusCode.DEADLINE_EXCEEDED: "DEADLINE_EXCEEDED",
    # A cancellation of ours is a CancelledError. The peer's is the one word that gRPC's server has
    # for a call that meets its end, and that a proxy has for many things.
    grpc.StatusCode.CANCELLED: BRIDGE_UNREACHABLE,
    grpc.StatusCode.UNAUTHENTICATED: "CALLER_UNAUTHENTICATED",
    grpc.StatusCode.PERMISSION_DENIED: "CALLER_UNAUTHENTICATED",
    grpc.StatusCode.INVALID_ARGUMENT: "INVALID_ARGUMENT",
    grpc.StatusCode.RESOURCE_EXHAUSTED: "TOO_MANY_STREAMS",
}

# How gRPC begins what it says when it had no connection to put a call on. That it says so in words
# only is why a change of these words makes us repeat too little, never too much.
_NO_CONNECTION = ("connections to all backends failing", "failed to connect to all addresses")

# What gRPC says, here or there, of a message that is larger than it may be. What the bridge sends
# is far below any limit, so it is the request.
_TOO_LARGE = "message larger than max"

_WRITE_FAILED = (grpc.StatusCode.INTERNAL, "Internal error from Core")
# How long the peer's status may be behind a write that failed.
_STATUS_SECONDS = 1.0

_NO_METADATA: Mapping[str, str] = MappingProxyType({})


class BridgeError(Exception):
    """A call failed.

    `reason` is the name of an ErrorReason ("SANDBOX_NOT_FOUND") or BRIDGE_UNREACHABLE: branch on
    it. `metadata` has what errors.proto names at the reason. `retry_after` is in seconds, None when
    the bridge named no delay. `field` is the path of the offending field of an INVALID_ARGUMENT.
    """

    def __init__(
        self,
        reason: str,
        message: str,
        *,
        code: grpc.StatusCode = grpc.StatusCode.UNKNOWN,
        metadata: Mapping[str, str] = _NO_METADATA,
        retry_after: float | None = None,
        field: str | None = None,
    ) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message
        self.code = code
        self.metadata = MappingProxyType(dict(metadata))
        self.retry_after = retry_after
        self.field = field

    @property
    def not_sent(self) -> bool:
        """No bridge took the call up: repeating it elsewhere or later cannot do it twice."""
        return (self.reason == "DRAINING" and not self._interrupted) or (
            self.reason == BRIDGE_UNREACHABLE and self.message.startswith(_NO_CONNECTION)
        )

    @property
    def outcome_unknown(self) -> bool:
        """The call broke off: the bridge may have done what was asked, or part of it."""
        return self._interrupted or self.reason in {
            BRIDGE_UNREACHABLE,
            "DEADLINE_EXCEEDED",
            "CANCELLED",
            "INTERNAL",
        }

    @property
    def _interrupted(self) -> bool:
        """The bridge went away in the middle of the call, rather than refusing it."""
        return self.reason == "DRAINING" and "waiting_for" in self.metadata


def from_rpc_error(error: grpc.aio.AioRpcError) -> BridgeError:
    """What a failed call stands for. The caller chains it: `raise ... from error`."""
    return _from_parts(
        error.code(), error.details() or "", _details(error.trailing_metadata() or ())
    )


class PeerStatus:
    """The status that the bridge gave a call on which one writes.

    grpc.aio takes a write to a stream that the peer has ended for a failure of its own, and puts
    that in the place of the peer's status, whether it has come before or comes a moment later. Make
    this together with the call; it remembers the one that counts.
    """

    def __init__(self, call: grpc.aio.Call) -> None:
        self._seen: tuple[grpc.StatusCode, str, status_pb2.Status] | None = None
        self._came = asyncio.Event()
        call.add_done_callback(self._note)

    def _note(self, call: grpc.aio.Call) -> None:
        # These coroutines do not wait once there is a status.
        code, text = _at_once(call.code()), _at_once(call.details()) or ""
        if (code, text) != _WRITE_FAILED:
            self._seen = (code, text, _details(_at_once(call.trailing_metadata()) or ()))
            self._came.set()

    async def failure(self, error: grpc.aio.AioRpcError) -> BridgeError:
        """What a failed call stands for, in the bridge's words if it said any."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STATUS_SECONDS):
                await self._came.wait()
        return from_rpc_error(error) if self._seen is None else _from_parts(*self._seen)


def _at_once(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that does not wait."""
    try:
        work.send(None)
    except StopIteration as result:
        return cast("T", result.value)
    work.close()
    raise RuntimeError("the coroutine waits")


def _details(metadata: Iterable[tuple[str, str | bytes]]) -> status_pb2.Status:
    status = status_pb2.Status()
    for key, value in metadata:
        if key == "grpc-status-details-bin" and isinstance(value, bytes):
            try:
                status.ParseFromString(value)
            except ValueError:  # not ours, or damaged: the code and the text are what is left
                status.Clear()
    return status


def _from_parts(code: grpc.StatusCode, text: str, status: status_pb2.Status) -> BridgeError:
    reason, metadata, retry_after, field = "", {}, None, None
    info = error_details_pb2.ErrorInfo()
    retry = error_details_pb2.RetryInfo()
    bad = error_details_pb2.BadRequest()
    for detail in status.details:
        if detail.Unpack(info):
            if info.domain == DOMAIN:
                reason, metadata = info.reason, dict(info.metadata)
        elif detail.Unpack(retry):
            retry_after = retry.retry_delay.seconds + retry.retry_delay.nanos / 1e9
        elif detail.Unpack(bad) and bad.field_violations:
            field = bad.field_violations[0].field
    if not reason:
        reason, text = _without_reason(code, text)
    return BridgeError(
        reason,
        text or f"the call failed with {code.name} and no words",
        code=code,
        metadata=metadata,
        retry_after=retry_after,
        field=field,
    )


def _without_reason(code: grpc.StatusCode, text: str) -> tuple[str, str]:
    """The reason of a failure that gRPC or somebody on the way told, and words that help."""
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED and _TOO_LARGE in text:
        return "INVALID_ARGUMENT", (
            f"the request is larger than any bridge takes ({text}); send files and input in parts"
        )
    if code is grpc.StatusCode.CANCELLED:
        text = (
            "the bridge, or a proxy before it, ended the call without a reason "
            f"({text or code.name}); it may be shutting down"
        )
    return _REASON_OF_CODE.get(code, "INTERNAL"), text

# SPDX-License-Identifier: Apache-2.0
"""Failures as the bridge sends them; codes are read from the product's own catalogue."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NoReturn

import grpc
import grpc.aio
from google.rpc import error_details_pb2, status_pb2

_CATALOGUE = Path(__file__).parents[3] / "bridge" / "base" / "error_catalog.cc"
_CODE_NAMES = {
    "InvalidArgument": grpc.StatusCode.INVALID_ARGUMENT,
    "Unauthenticated": grpc.StatusCode.UNAUTHENTICATED,
    "PermissionDenied": grpc.StatusCode.PERMISSION_DENIED,
    "NotFound": grpc.StatusCode.NOT_FOUND,
    "AlreadyExists": grpc.StatusCode.ALREADY_EXISTS,
    "Aborted": grpc.StatusCode.ABORTED,
    "FailedPrecondition": grpc.StatusCode.FAILED_PRECONDITION,
    "Cancelled": grpc.StatusCode.CANCELLED,
    "Unavailable": grpc.StatusCode.UNAVAILABLE,
    "DeadlineExceeded": grpc.StatusCode.DEADLINE_EXCEEDED,
    "OutOfRange": grpc.StatusCode.OUT_OF_RANGE,
    "ResourceExhausted": grpc.StatusCode.RESOURCE_EXHAUSTED,
    "Internal": grpc.StatusCode.INTERNAL,
    "Unimplemented": grpc.StatusCode.UNIMPLEMENTED,
    "DataLoss": grpc.StatusCode.DATA_LOSS,
}


def catalogue() -> dict[str, grpc.StatusCode]:
    """Reason → gRPC code."""
    rows = re.findall(r"\{R\((\w+)\),\s*C::k(\w+),", _CATALOGUE.read_text())
    return {reason: _CODE_NAMES[code] for reason, code in rows}


CODES = catalogue()


class Fault(Exception):
    """A typed failure of a fake call."""

    def __init__(
        self,
        reason: str,
        message: str = "",
        *,
        field: str = "",
        retry_after: float | None = None,
        bare: bool = False,
        **metadata: str,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.message = message or f"{reason.lower().replace('_', ' ')}"
        self.field = field
        self.retry_after = retry_after
        # Without details, as gRPC itself or a proxy would fail.
        self.bare = bare
        self.metadata = metadata


async def abort(context: grpc.aio.ServicerContext[Any, Any], fault: Fault) -> NoReturn:
    code = CODES[fault.reason]
    if fault.bare:
        await context.abort(code, fault.message)
    status = status_pb2.Status(code=code.value[0], message=fault.message)
    info = error_details_pb2.ErrorInfo(
        reason=fault.reason, domain="sandbox.bridge.v1", metadata=fault.metadata
    )
    status.details.add().Pack(info)
    if fault.retry_after is not None:
        retry = error_details_pb2.RetryInfo()
        retry.retry_delay.FromMilliseconds(int(fault.retry_after * 1000))
        status.details.add().Pack(retry)
    if fault.field:
        bad = error_details_pb2.BadRequest()
        bad.field_violations.add(field=fault.field, description=fault.message)
        status.details.add().Pack(bad)
    await context.abort(
        code, fault.message, (("grpc-status-details-bin", status.SerializeToString()),)
    )

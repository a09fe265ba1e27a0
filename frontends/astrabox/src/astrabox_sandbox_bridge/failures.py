# SPDX-License-Identifier: Apache-2.0
"""The bridge's reasons as AstraBox's exceptions: one table, and its application.

Every ErrorReason has a row (a test walks the enum). A row says what the platform gets from a
control call, and what a data plane (files, commands, processes) raises instead.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from types import MappingProxyType
from typing import Any, NamedTuple

from astrabox.common.utils.errors import APIError

from .client import BRIDGE_UNREACHABLE, BridgeError, ConfigurationError
from .labels import DamagedMetadata
from .settings import SettingError

log = logging.getLogger(__name__)


class Plane(Enum):
    """What a data plane raises. The exceptions themselves: names.py."""

    # The control call's APIError, there too.
    API_ERROR = "APIError"
    NOT_FOUND = "SandboxPathNotFound"
    REJECTED = "SandboxPathRejected"
    UNREACHABLE = "SandboxUnreachable"
    REPLAY_GAP = "SandboxProcessReplayGap"
    ATTACHED = "SandboxProcessAlreadyAttached"
    NO_PROCESS = "SandboxProcessNotFound"


class Row(NamedTuple):
    # Of the APIError. None: the operation decides (UNSUPPORTED below).
    code: str | None
    status: int
    plane: Plane
    retryable: bool = False


_RUNTIME = "AGENT_RUNTIME_ERROR"
_CONFIG = "SANDBOX_CONFIG_INVALID"
_CAPACITY = "SANDBOX_CAPACITY_UNAVAILABLE"

TABLE: Mapping[str, Row] = MappingProxyType(
    {
        "UNSPECIFIED": Row(_RUNTIME, 502, Plane.UNREACHABLE),
        "INVALID_ARGUMENT": Row(_CONFIG, 400, Plane.REJECTED),
        "CALLER_UNAUTHENTICATED": Row(_RUNTIME, 502, Plane.UNREACHABLE),
        # Not a 404: the sandbox lives, and a new one must not be made because of a wrong token.
        "NOT_YOUR_SANDBOX": Row(_RUNTIME, 502, Plane.UNREACHABLE),
        "SANDBOX_NOT_FOUND": Row("SANDBOX_NOT_FOUND", 404, Plane.UNREACHABLE),
        "PATH_NOT_FOUND": Row(_RUNTIME, 502, Plane.NOT_FOUND),
        "PROCESS_NOT_FOUND": Row(_RUNTIME, 502, Plane.NO_PROCESS),
        "SNAPSHOT_NOT_FOUND": Row(_RUNTIME, 502, Plane.API_ERROR),
        "REQUEST_ID_REUSED": Row("SANDBOX_ASSIGNMENT_CONFLICT", 409, Plane.API_ERROR),
        "AMBIGUOUS_ASSIGNMENT": Row("SANDBOX_ASSIGNMENT_AMBIGUOUS", 409, Plane.API_ERROR),
        # The sandbox that was bound is not there any more; another one has its id.
        "STALE_INCARNATION": Row("SANDBOX_GONE", 404, Plane.UNREACHABLE),
        "ALREADY_ATTACHED": Row(_RUNTIME, 502, Plane.ATTACHED),
        "CANCELLED": Row(_RUNTIME, 502, Plane.UNREACHABLE),
        "SANDBOX_NOT_RUNNING": Row(_RUNTIME, 502, Plane.UNREACHABLE),
        "SANDBOX_FAILED": Row(_RUNTIME, 502, Plane.UNREACHABLE),
        "SANDBOX_UNREACHABLE": Row(_RUNTIME, 502, Plane.UNREACHABLE, retryable=True),
        "READY_TIMEOUT": Row(_RUNTIME, 502, Plane.UNREACHABLE, retryable=True),
        "NO_EXPIRY": Row(_RUNTIME, 502, Plane.API_ERROR),
        "IS_A_DIRECTORY": Row(_RUNTIME, 502, Plane.REJECTED),
        "NOT_A_DIRECTORY": Row(_RUNTIME, 502, Plane.REJECTED),
        "PERMISSION_DENIED": Row(_RUNTIME, 502, Plane.REJECTED),
        "PATH_REJECTED": Row(_CONFIG, 400, Plane.REJECTED),
        "PATH_EXISTS": Row(_RUNTIME, 502, Plane.REJECTED),
        "DIRECTORY_NOT_EMPTY": Row(_RUNTIME, 502, Plane.REJECTED),
        "FILE_TOO_LARGE": Row(_RUNTIME, 502, Plane.REJECTED),
        "NO_SPACE": Row(_RUNTIME, 502, Plane.REJECTED),
        "PRECONDITION_FAILED": Row(_RUNTIME, 502, Plane.REJECTED),
        "UNKNOWN_USER": Row(_CONFIG, 400, Plane.REJECTED),
        "QUOTA_EXCEEDED": Row(_CAPACITY, 503, Plane.UNREACHABLE, retryable=True),
        "TOO_MANY_STREAMS": Row(_CAPACITY, 503, Plane.UNREACHABLE, retryable=True),
        "UPSTREAM_UNAVAILABLE": Row(_RUNTIME, 502, Plane.UNREACHABLE, retryable=True),
        "UPSTREAM_TIMEOUT": Row(_RUNTIME, 502, Plane.UNREACHABLE, retryable=True),
        "UPSTREAM_UNAUTHENTICATED": Row(_RUNTIME, 502, Plane.UNREACHABLE),
        "UPSTREAM_PERMISSION_DENIED": Row(_RUNTIME, 502, Plane.UNREACHABLE),
        "UPSTREAM_PROTOCOL": Row(_RUNTIME, 502, Plane.UNREACHABLE),
        "UPSTREAM_FAILED": Row(_RUNTIME, 502, Plane.UNREACHABLE),
        "UPSTREAM_REJECTED": Row(_CONFIG, 400, Plane.REJECTED),
        "CONFLICT": Row(_RUNTIME, 502, Plane.UNREACHABLE, retryable=True),
        "UNSUPPORTED_FEATURE": Row(None, 501, Plane.API_ERROR),
        "SIGNED_ENDPOINT_UNSUPPORTED": Row(
            "SANDBOX_SIGNED_ENDPOINT_UNSUPPORTED", 501, Plane.API_ERROR
        ),
        "REPLAY_GAP": Row(_RUNTIME, 502, Plane.REPLAY_GAP),
        "OUTPUT_TRUNCATED": Row(_RUNTIME, 502, Plane.API_ERROR),
        "DEADLINE_EXCEEDED": Row(_RUNTIME, 502, Plane.UNREACHABLE, retryable=True),
        "DRAINING": Row(_RUNTIME, 502, Plane.UNREACHABLE, retryable=True),
        "INTERNAL": Row(_RUNTIME, 502, Plane.UNREACHABLE),
        BRIDGE_UNREACHABLE: Row(_RUNTIME, 502, Plane.UNREACHABLE, retryable=True),
    }
)

# The code of a 501, by what was asked for.
UNSUPPORTED: Mapping[str, str] = MappingProxyType(
    {
        "create": _CONFIG,
        "pause": "SANDBOX_PAUSE_UNSUPPORTED",
        "list": "SANDBOX_LISTING_UNSUPPORTED",
        "describe": "SANDBOX_DESCRIBE_UNSUPPORTED",
        "diagnostics": "SANDBOX_DIAGNOSTICS_NOT_IMPLEMENTED",
        "egress": "SANDBOX_EGRESS_MUTATION_UNSUPPORTED",
        "endpoint": "SANDBOX_SIGNED_ENDPOINT_UNSUPPORTED",
        "isolation": "SANDBOX_ISOLATION_UNSUPPORTED",
        "processes": "SANDBOX_PROCESS_SESSIONS_UNSUPPORTED",
    }
)

_HIDDEN = "[redacted]"


def row_of(reason: str) -> Row:
    """The row of a reason. One that this build does not know is a fault of the runtime."""
    return TABLE.get(reason, TABLE["INTERNAL"])


def scrub(text: str, secrets: Iterable[str]) -> str:
    """`text` without any of the secrets. Very short ones are words, not secrets."""
    for secret in sorted((s for s in secrets if len(s) >= 6), key=len, reverse=True):
        text = text.replace(secret, _HIDDEN)
    return text


def api_error(
    error: BridgeError,
    operation: str,
    *,
    secrets: Iterable[str] = (),
    gone: bool = False,
    data: Mapping[str, Any] | None = None,
) -> APIError:
    """What the platform gets for a failed control call.

    `gone` turns "there is no such sandbox" into SANDBOX_GONE, the code that makes the platform
    provision anew; only for a sandbox that was bound before.
    """
    row = row_of(error.reason)
    code = UNSUPPORTED.get(operation, _CONFIG) if row.code is None else row.code
    status = row.status
    if gone and error.reason in {"SANDBOX_NOT_FOUND", "SANDBOX_NOT_RUNNING"}:
        code, status = "SANDBOX_GONE", 404
    leaked = error.metadata.get("leaked_sandbox_id")
    if leaked and data is None:
        data = leak(leaked)
    return APIError(
        code,
        scrub(error.message, secrets),
        status,
        dict(data) if data is not None else None,
        retryable=row.retryable,
        evidence={
            "bridge_reason": error.reason,
            **{key: scrub(value, secrets) for key, value in error.metadata.items()},
        },
        cause_code=error.reason,
    )


def leak(sandbox_id: str) -> dict[str, str]:
    """The data of an error that leaves a sandbox behind, for the platform to write down."""
    return {"sandbox_id": sandbox_id, "leaked_sandbox_id": sandbox_id}


def config_error(message: str) -> APIError:
    """A request that is refused before anything is sent."""
    return APIError(_CONFIG, message, 400)


@contextmanager
def rendered(operation: str, *, secrets: Iterable[str] = (), gone: bool = False) -> Iterator[None]:
    """Turns the client's exceptions into the platform's for one control call."""
    try:
        yield
    except BridgeError as error:
        # The cause is cut: its text was not scrubbed.
        raise api_error(error, operation, secrets=secrets, gone=gone) from None
    except (SettingError, ConfigurationError) as error:
        raise APIError(_CONFIG, scrub(str(error), secrets), 500) from None
    except DamagedMetadata as error:
        raise APIError(_RUNTIME, str(error), 502) from None
    except UnicodeEncodeError:
        raise config_error(f"{operation}: a text has halves of characters") from None

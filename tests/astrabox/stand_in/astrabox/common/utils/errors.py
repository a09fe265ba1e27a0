# SPDX-License-Identifier: Apache-2.0
"""The platform's one error type, with what is registered about some of its codes."""

from __future__ import annotations

from typing import Any, NamedTuple


class _Registered(NamedTuple):
    retryable: bool
    owner: str


_REGISTRY: dict[str, _Registered] = {
    "AGENT_RUNTIME_ERROR": _Registered(True, "runtime"),
    "SANDBOX_GONE": _Registered(False, "runtime"),
    "SANDBOX_ASSIGNMENT_INVALID": _Registered(False, "platform"),
    "SANDBOX_ASSIGNMENT_CONFLICT": _Registered(False, "runtime"),
    "SANDBOX_ASSIGNMENT_AMBIGUOUS": _Registered(False, "runtime"),
    "SANDBOX_CORRELATED_CREATE_UNSUPPORTED": _Registered(False, "platform"),
    "SANDBOX_CLIENT_POOL_UNSUPPORTED": _Registered(False, "platform"),
    "SANDBOX_ISOLATION_UNSUPPORTED": _Registered(False, "runtime"),
    "SANDBOX_ISOLATED_SESSION_NOT_FOUND": _Registered(False, "runtime"),
    "UNSUPPORTED_SANDBOX_PERMISSION_LEVEL": _Registered(False, "template"),
    "SANDBOX_EGRESS_MUTATION_UNSUPPORTED": _Registered(False, "runtime"),
    "SANDBOX_CAPACITY_UNAVAILABLE": _Registered(True, "platform"),
    "EXPOSE_PORT_RESERVED": _Registered(False, "client"),
}


class APIError(Exception):
    """A failure with a code, an HTTP status and who has to act."""

    def __init__(
        self,
        code: str,
        message: str,
        status_code: int,
        data: Any = None,
        *,
        category: str | None = None,
        retryable: bool | None = None,
        user_message: str | None = None,
        debug_message: str | None = None,
        evidence: dict[str, Any] | None = None,
        cause_code: str | None = None,
    ) -> None:
        self.code = code.upper()
        super().__init__(f"{self.code}: {message}")
        row = _REGISTRY.get(self.code)
        self.message = message
        self.status_code = status_code
        self.data = data
        self.category = category or ("sandbox" if row else "unregistered")
        self.retryable = retryable if retryable is not None else bool(row and row.retryable)
        self.owner = row.owner if row else "unknown"
        self.user_message = user_message or message
        self.debug_message = debug_message
        self.evidence = dict(evidence or {})
        self.cause_code = cause_code

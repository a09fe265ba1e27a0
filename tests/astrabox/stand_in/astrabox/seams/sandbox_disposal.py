# SPDX-License-Identifier: Apache-2.0
"""Who owns a sandbox, and whether it is gone: verdicts that must be read, never guessed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self


class UnjudgedSandbox(TypeError):
    """A verdict was used as if it were yes or no."""


@dataclass(frozen=True, slots=True)
class SandboxClaim:
    verdict: str
    sandbox_id: str
    detail: str = ""
    session_id: str | None = None

    def __bool__(self) -> bool:
        raise UnjudgedSandbox("a claim has four verdicts; ask may_destroy")

    @property
    def may_destroy(self) -> bool:
        return self.verdict == "MINE"

    @classmethod
    def mine(cls, sandbox_id: str, *, detail: str, session_id: str | None = None) -> Self:
        return cls("MINE", sandbox_id, detail, session_id)

    @classmethod
    def foreign(cls, sandbox_id: str, *, detail: str, session_id: str | None = None) -> Self:
        return cls("FOREIGN", sandbox_id, detail, session_id)

    @classmethod
    def unclaimed(cls, sandbox_id: str, *, detail: str) -> Self:
        return cls("UNCLAIMED", sandbox_id, detail)

    @classmethod
    def unknown(cls, sandbox_id: str, *, detail: str) -> Self:
        return cls("UNKNOWN", sandbox_id, detail)


@dataclass(frozen=True, slots=True)
class SandboxDestruction:
    outcome: str
    sandbox_id: str
    detail: str = ""

    def __bool__(self) -> bool:
        raise UnjudgedSandbox("a destruction has five outcomes; ask confirmed")

    @property
    def confirmed(self) -> bool:
        return self.outcome == "CONFIRMED"

    @property
    def leaked_sandbox_id(self) -> str | None:
        return self.sandbox_id if self.outcome in {"UNCONFIRMED", "REFUSED"} else None

    @classmethod
    def confirmed_gone(cls, sandbox_id: str, *, detail: str) -> Self:
        return cls("CONFIRMED", sandbox_id, detail)

    @classmethod
    def unconfirmed(cls, sandbox_id: str, *, detail: str) -> Self:
        return cls("UNCONFIRMED", sandbox_id, detail)

    @classmethod
    def refused(cls, sandbox_id: str, *, detail: str) -> Self:
        return cls("REFUSED", sandbox_id, detail)

    @classmethod
    def retained(cls, sandbox_id: str, *, detail: str) -> Self:
        return cls("RETAINED", sandbox_id, detail)

    @classmethod
    def nothing_named(cls, *, detail: str) -> Self:
        return cls("NOTHING_NAMED", "", detail)


def claim_from_metadata(
    *,
    sandbox_id: str,
    metadata: Mapping[str, Any] | None,
    expected_session_id: str | None,
    session_id_key: str,
    managed_by_key: str,
    managed_by_value: str,
    installation_key: str,
    installation_value: str,
) -> SandboxClaim:
    """The verdict that a sandbox's own labels allow."""
    if metadata is None:
        return SandboxClaim.unknown(sandbox_id, detail="no metadata")
    session = metadata.get(session_id_key)
    if managed_by_key not in metadata and session is None:
        return SandboxClaim.unknown(sandbox_id, detail="no owner is named")
    if metadata.get(managed_by_key) != managed_by_value:
        return SandboxClaim.foreign(sandbox_id, detail="managed by another", session_id=session)
    if installation_key not in metadata:
        return SandboxClaim.unknown(sandbox_id, detail="no installation")
    if metadata[installation_key] != installation_value:
        return SandboxClaim.foreign(sandbox_id, detail="other installation", session_id=session)
    if expected_session_id is None:
        return SandboxClaim.unknown(sandbox_id, detail="nobody expected")
    if session != expected_session_id:
        return SandboxClaim.foreign(sandbox_id, detail="other session", session_id=session)
    return SandboxClaim.mine(sandbox_id, detail="all labels match", session_id=session)

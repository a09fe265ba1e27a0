# SPDX-License-Identifier: Apache-2.0
"""Persistent workspaces: what a route is given and asked."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Protocol


@dataclass(frozen=True)
class StorageMountPlan:
    volume_name: str
    mounts: tuple[tuple[str, str], ...]


class WorkspaceRef(NamedTuple):
    subject_kind: str
    subject_id: str
    conversation_session_id: str | None = None

    def key(self) -> str:
        return "/".join(part for part in self if part)


class WorkspaceRoute(Protocol):
    def validate_configuration(self) -> None: ...

    async def provision_mounts(
        self, assignment_id: str, backing: StorageMountPlan, *, sandbox_backend: str
    ) -> StorageMountPlan: ...

    async def bind(self, assignment_id: str, backing: StorageMountPlan, binding: str) -> None: ...

    async def attach_sandbox(
        self, assignment_id: str, *, sandbox_id: str, sandbox_backend: str
    ) -> None: ...

    async def attached_mounts(self) -> list[tuple[str, str, str]]: ...

    async def unattached_mounts(self) -> list[tuple[str, str, datetime]]: ...

    async def release_mounts(self, assignment_id: str) -> None: ...

    async def prepare(
        self,
        ref: WorkspaceRef,
        *,
        box: Any,
        box_path: str,
        owner: str | None = None,
        group: str | None = None,
    ) -> None: ...

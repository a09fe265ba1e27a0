# SPDX-License-Identifier: Apache-2.0
"""Persistent workspaces that the upstream mounts while it makes a sandbox.

The route keeps nothing: the volume of the deployment is mounted as it is, each mount at its own
folder of it, and it is unmounted with the sandbox. So there is nothing to provision, to bind or to
release outside the sandbox; what is left is the folder's owner. The members' names are not in the
published contract (names.py says what that means); they follow the router that AstraBox brings.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from astrabox.seams.storage import StorageMountPlan, WorkspaceRef


class DirectWorkspaceRoute:
    def validate_configuration(self) -> None:
        """Nothing is configured here; the volume's name is the deployment's."""

    async def provision_mounts(
        self, assignment_id: str, backing: StorageMountPlan, *, sandbox_backend: str
    ) -> StorageMountPlan:
        """The sandbox mounts the backing volume itself."""
        return backing

    async def bind(self, assignment_id: str, backing: StorageMountPlan, binding: str) -> None:
        """Nothing stands between the volume and the sandbox that could be bound."""

    async def attach_sandbox(
        self, assignment_id: str, *, sandbox_id: str, sandbox_backend: str
    ) -> None:
        """The mount belongs to the sandbox from its creation on."""

    async def attached_mounts(self) -> list[tuple[str, str, str]]:
        """No mount outlives its sandbox, so none is to be watched."""
        return []

    async def unattached_mounts(self) -> list[tuple[str, str, datetime]]:
        return []

    async def release_mounts(self, assignment_id: str) -> None:
        """Gone with the sandbox; the volume's content stays."""

    async def prepare(
        self,
        ref: WorkspaceRef,
        *,
        box: Any,
        box_path: str,
        owner: str | None = None,
        group: str | None = None,
    ) -> None:
        """Gives the mounted folder to its user, and to nobody else."""
        entry = {"path": box_path, "mode": 0o700, "owner": owner, "group": group}
        await box.files.create_directories([entry])
        await box.files.set_permissions([entry])

# SPDX-License-Identifier: Apache-2.0
"""What there is: lists by page, one by id or by assignment, and why it is as it is."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from astrabox.common.utils.errors import APIError
from astrabox.seams.sandbox import (
    SANDBOX_ASSIGNMENT_ID_METADATA_KEY,
    SANDBOX_INSTALLATION_METADATA_KEY,
    SANDBOX_MANAGED_BY_METADATA_KEY,
    SANDBOX_MANAGED_BY_METADATA_VALUE,
    SANDBOX_SESSION_ID_METADATA_KEY,
    SandboxDescriptor,
    SandboxDiagnostics,
    SandboxPage,
    sandbox_installation_id,
)

from astrabox_sandbox_bridge import labels
from astrabox_sandbox_bridge.client import moment, v1
from astrabox_sandbox_bridge.failures import rendered

from .base import ProviderBase, log
from .lifecycle import state_word

_SCOPES = MappingProxyType(
    {
        "summary": v1.GetDiagnosticsRequest.KIND_SUMMARY,
        "inspect": v1.GetDiagnosticsRequest.KIND_INSPECT,
        "events": v1.GetDiagnosticsRequest.KIND_EVENTS,
        "logs": v1.GetDiagnosticsRequest.KIND_LOGS,
    }
)
# As many lines as the bridge gives; it bounds the bytes.
_TAIL = 10_000
_LARGEST_PAGE = 200


class Inventory(ProviderBase):
    async def list_sandboxes(
        self, *, page: int = 1, page_size: int = 50, metadata: Mapping[str, str] | None = None
    ) -> SandboxPage:
        """A page of what the upstream runs, others' sandboxes included; with `metadata`, of what
        has all of these entries, and only they are counted."""
        if page < 1 or page_size < 1:
            raise APIError("SANDBOX_CONFIG_INVALID", "pages and their sizes begin with 1", 400)
        wanted = labels.project(metadata or {})
        with rendered("list", secrets=self.secrets):
            found, total = await self._slice(wanted, (page - 1) * page_size, page_size)
        pages = -(-total // page_size)
        return SandboxPage(
            items=tuple(_descriptor(box, strict=False) for box in found),
            page=page,
            page_size=page_size,
            total_items=total,
            total_pages=pages,
            has_next_page=page < pages,
        )

    async def _slice(
        self, wanted: Mapping[str, str], skip: int, count: int
    ) -> tuple[list[v1.Sandbox], int]:
        """`count` matches after the first `skip`, and how many there are in all."""
        if count <= _LARGEST_PAGE:
            answer = await self.client().sandboxes.page(metadata=wanted, page_size=count, skip=skip)
            full = len(answer.sandboxes) == min(count, max(answer.total_size - skip, 0))
            if answer.HasField("total_size") and full:
                return list(answer.sandboxes), answer.total_size
        # A bridge that does not count, or a page that others' changes made shorter: walk.
        walked = [box async for box in self.client().sandboxes.list(metadata=wanted)]
        return walked[skip : skip + count], len(walked)

    async def describe_sandbox(self, sandbox_id: str) -> SandboxDescriptor:
        with rendered("describe", secrets=self.secrets):
            return _descriptor(await self.client().sandboxes.get(sandbox_id), strict=True)

    async def find_sandbox_by_assignment(self, assignment_id: str) -> SandboxDescriptor | None:
        """The sandbox of an assignment of this installation, if there is one."""
        if not assignment_id:
            raise ValueError("the assignment id is empty")
        installation = await sandbox_installation_id()
        wanted = {
            SANDBOX_MANAGED_BY_METADATA_KEY: SANDBOX_MANAGED_BY_METADATA_VALUE,
            SANDBOX_INSTALLATION_METADATA_KEY: installation,
            SANDBOX_ASSIGNMENT_ID_METADATA_KEY: assignment_id,
        }
        with rendered("list", secrets=self.secrets):
            matches = [
                box
                async for box in self.client().sandboxes.list(
                    metadata=labels.project(wanted), page_size=10
                )
            ]
            found = [_descriptor(box, strict=True) for box in matches]
        found = [box for box in found if wanted.items() <= box.metadata.items()]
        if len(found) > 1:
            ids = ", ".join(box.sandbox_id for box in found)
            raise APIError(
                "SANDBOX_ASSIGNMENT_AMBIGUOUS",
                f"{len(found)} sandboxes carry the assignment: {ids}",
                409,
            )
        return found[0] if found else None

    async def read_diagnostics(self, sandbox_id: str, *, scope: str) -> SandboxDiagnostics:
        kind = _SCOPES.get(scope)
        if kind is None:
            raise APIError(
                "SANDBOX_DIAGNOSTIC_SCOPE_INVALID",
                f"the scope {scope!r} is none of {', '.join(_SCOPES)}",
                400,
            )
        with rendered("diagnostics", secrets=self.secrets):
            answer = await self.client().sandboxes.diagnostics(sandbox_id, kind, tail=_TAIL)
        return SandboxDiagnostics(
            sandbox_id=sandbox_id,
            scope=scope,
            content_type="text/plain; charset=utf-8",
            text=answer.text.decode("utf-8", "replace"),
            truncated=answer.truncated,
        )


def _descriptor(sandbox: v1.Sandbox, *, strict: bool) -> SandboxDescriptor:
    """Raises DamagedMetadata when `strict`; else one damaged sandbox does not hide the others."""
    try:
        metadata = labels.restore(sandbox.metadata)
    except labels.DamagedMetadata as error:
        if strict:
            raise labels.DamagedMetadata(f"sandbox {sandbox.sandbox_id}: {error}") from error
        log.warning("sandbox %s: %s; its labels are shown as they are", sandbox.sandbox_id, error)
        metadata = dict(sandbox.metadata)
    return SandboxDescriptor(
        sandbox_id=sandbox.sandbox_id,
        state=state_word(sandbox),
        created_at=moment(sandbox.created_at) if sandbox.HasField("created_at") else None,
        expires_at=moment(sandbox.expires_at) if sandbox.HasField("expires_at") else None,
        image=sandbox.image or None,
        entrypoint=tuple(sandbox.entrypoint),
        metadata=MappingProxyType(metadata),
        session_id=metadata.get(SANDBOX_SESSION_ID_METADATA_KEY),
    )

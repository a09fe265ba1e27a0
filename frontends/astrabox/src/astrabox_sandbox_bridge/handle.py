# SPDX-License-Identifier: Apache-2.0
"""What AstraBox holds of one sandbox. Stateless: a handle can be rebuilt by id on any replica."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, cast

from astrabox.common.utils.errors import APIError
from astrabox.seams.sandbox import SandboxEndpoint
from astrabox.seams.sandbox_data import UnsupportedSandboxProcesses

from .box import Box
from .client import v1
from .commands import BoxCommands
from .failures import rendered
from .files import BoxFiles
from .names import ContractCommands, ContractFiles, ContractProcesses
from .processes import BoxProcesses

if TYPE_CHECKING:
    from astrabox.seams.sandbox_data import SandboxCommands, SandboxFiles, SandboxProcesses

ROUTES = {
    "default": v1.ENDPOINT_ROUTE_UNSPECIFIED,
    "direct": v1.ENDPOINT_ROUTE_DIRECT,
    "server_proxy": v1.ENDPOINT_ROUTE_SERVER_PROXY,
}

# The sandbox image's own control API listens here; a link to it would hand the sandbox over.
_CONTROL_PORT = 8080


class SandboxBridgeHandle:
    """One sandbox: its files, commands, resident processes and ports."""

    def __init__(self, box: Box, *, backend: str, keeps_processes: bool) -> None:
        self._box = box
        self.sandbox_id = box.sandbox_id
        # Casts: what the planes' methods are called is compared at start-up (names.differences).
        self.files = cast("SandboxFiles", ContractFiles(BoxFiles(box)))
        self.commands = cast("SandboxCommands", ContractCommands(BoxCommands(box)))
        self.processes: SandboxProcesses | UnsupportedSandboxProcesses = (
            cast("SandboxProcesses", ContractProcesses(BoxProcesses(box)))
            if keeps_processes
            else UnsupportedSandboxProcesses(backend)
        )

    def __repr__(self) -> str:
        return f"SandboxBridgeHandle({self.sandbox_id!r})"

    async def get_endpoint(self, port: int) -> SandboxEndpoint:
        """Asked anew every time: a resumed sandbox has other endpoints under the same id."""
        settings = self._box.settings
        with rendered("endpoint", secrets=settings.secrets(), gone=True):
            found = await self._box.client().sandboxes.endpoint(
                port=port,
                route=ROUTES[settings.choice("ENDPOINT_ROUTE", tuple(ROUTES))],
                **self._box.where,
            )
            return SandboxEndpoint(url=found.url.rstrip("/"), headers=_headers(found))

    async def get_signed_endpoint(self, port: int, *, expires_at: datetime) -> SandboxEndpoint:
        """A naive `expires_at` is taken for UTC."""
        if port == _CONTROL_PORT:
            raise APIError(
                "EXPOSE_PORT_RESERVED", f"port {port} is the sandbox's own control API", 400
            )
        with rendered("endpoint", secrets=self._box.settings.secrets(), gone=True):
            found = await self._box.client().sandboxes.signed_endpoint(
                port=port, expires_at=expires_at, **self._box.where
            )
            return SandboxEndpoint(url=found.url, headers=_headers(found))

    async def close(self) -> None:
        """Releases nothing that others use: the channel belongs to the event loop, and closing a
        handle never destroys the sandbox."""


def _headers(found: v1.Endpoint) -> dict[str, str]:
    return {header.name: header.value for header in found.headers}

# SPDX-License-Identifier: Apache-2.0
"""The file plane: literal paths, POSIX mode bits, owners by name, nothing followed silently.

These are this package's own names; names.py gives them the contract's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

from .box import Box
from .client import Content, v1


class BoxFiles:
    def __init__(self, box: Box) -> None:
        self._box = box

    async def read(self, path: str) -> bytes:
        with self._box.plane("files", path):
            return await self._box.client().files.read_bytes(path=path, **self._box.where)

    async def stream(self, path: str) -> AsyncIterator[bytes]:
        """A file in pieces. That it cannot be read is known at the first one."""
        with self._box.plane("files", path):
            async for piece in self._box.client().files.read(path=path, **self._box.where):
                yield piece

    async def write(
        self,
        path: str,
        content: Content,
        *,
        mode: int | None,
        owner: str | None,
        group: str | None,
        create_parents: bool = True,
    ) -> None:
        """Replaces the file in one step: at no moment is it there with other rights or half. A
        symbolic link is refused."""
        with self._box.plane("files", path):
            options = v1.WriteOptions(
                path=path,
                mode=mode,
                owner=owner or "",
                group=group or "",
                create_parents=create_parents,
                no_follow=True,
            )
            await self._box.client().files.write(
                options=options, content=content, **self._box.where
            )

    async def make_directory(
        self, path: str, *, mode: int | None, owner: str | None, group: str | None
    ) -> None:
        with self._box.plane("files", path):
            await self._box.client().files.make_directory(
                path=path,
                mode=mode,
                owner=owner or "",
                group=group or "",
                parents=True,
                **self._box.where,
            )

    async def entries(self, path: str, depth: int) -> list[v1.FileInfo]:
        """What is below a directory, itself not included; paths are absolute."""
        with self._box.plane("files", path):
            found = self._box.client().files.list(path=path, depth=depth, **self._box.where)
            return [entry async for entry in found]

    async def stat(self, path: str) -> v1.FileInfo:
        """A symbolic link is described, not followed."""
        with self._box.plane("files", path):
            return await self._box.client().files.stat(path=path, **self._box.where)

    async def move(self, source: str, destination: str) -> None:
        """Never onto something that exists."""
        with self._box.plane("files", source):
            await self._box.client().files.move(
                source=source, destination=destination, **self._box.where
            )

    async def remove(self, paths: Iterable[str], *, recursive: bool) -> None:
        for path in paths:
            with self._box.plane("files", path):
                await self._box.client().files.remove(
                    path=path, recursive=recursive, **self._box.where
                )

    async def set_attributes(
        self, path: str, *, mode: int | None, owner: str | None, group: str | None
    ) -> None:
        with self._box.plane("files", path):
            await self._box.client().files.set_attributes(
                path=path, mode=mode, owner=owner or "", group=group or "", **self._box.where
            )

    async def search(self, path: str, pattern: str) -> list[v1.FileInfo]:
        with self._box.plane("files", path):
            found = self._box.client().files.search(path=path, pattern=pattern, **self._box.where)
            return [entry async for entry in found]

# SPDX-License-Identifier: Apache-2.0
"""What the checks of the data planes are made of."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from astrabox.seams.sandbox_data import (
    SandboxCommandResult,
    SandboxCommands,
    SandboxFiles,
    SandboxProcesses,
)


@dataclass(frozen=True)
class DataContractBox:
    """A live sandbox's planes, a directory to work in, and an account of its image that is not the
    one the file plane itself runs as, with a group of the same name."""

    files: SandboxFiles
    commands: SandboxCommands
    scratch: str
    account: str
    processes: SandboxProcesses | Any | None = None

    def at(self, name: str) -> str:
        return f"{self.scratch}/{name}"

    async def shell(self, line: str, *, timeout: float = 60.0) -> SandboxCommandResult:
        """A command that must succeed."""
        ran = await self.commands.run(line, timeout=timeout)
        assert ran.exit_code == 0, (line, ran)
        return ran

    async def raw(self, path: str) -> bytes:
        """A file's bytes as a program inside sees them."""
        return bytes.fromhex((await self.shell(f"od -An -v -tx1 '{path}' | tr -d ' \\n'")).stdout)


@dataclass(frozen=True)
class Check:
    name: str
    run: Callable[[DataContractBox], Awaitable[None]]


def checks_of(module: ModuleType) -> tuple[Check, ...]:
    """The functions of a module that begin with check_, in order of definition; the first line of
    what they say of themselves is the clause."""
    found = [
        (name.removeprefix("check_").replace("_", " "), function)
        for name, function in vars(module).items()
        if name.startswith("check_") and inspect.iscoroutinefunction(function)
    ]
    return tuple(Check(name, function) for name, function in found)


async def raised(kind: type[BaseException], work: Awaitable[Any]) -> BaseException:
    """The exception of that kind which `work` must raise."""
    try:
        answer = await work
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised; the answer was {answer!r:.200}")

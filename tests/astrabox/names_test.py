# SPDX-License-Identifier: Apache-2.0
"""The check of names that the contract does not state."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from types import ModuleType
from typing import Any, Protocol

import pytest
from astrabox.seams import sandbox_data
from astrabox_sandbox_bridge import names
from astrabox_sandbox_bridge.provider import SandboxBridgeProvider


def contract(**changes: Any) -> ModuleType:
    """The installed contract with some of its names replaced; None takes one away."""
    module = ModuleType("contract")
    merged = {**vars(sandbox_data), **changes}
    for name, value in merged.items():
        if value is not None and not name.startswith("__"):
            setattr(module, name, value)
    return module


def test_the_installed_contract_agrees() -> None:
    assert names.differences() == []


def test_a_missing_method_is_named() -> None:
    class SandboxFiles(Protocol):
        async def read(self, path: str) -> bytes: ...

    found = names.differences(contract(SandboxFiles=SandboxFiles))
    assert found == ["SandboxFiles.read is missing here"]


def test_other_parameters_are_named() -> None:
    class SandboxCommands(Protocol):
        async def run(self, command: str, *, timeout_s: float, user: str) -> Any: ...

    found = names.differences(contract(SandboxCommands=SandboxCommands))
    assert found == [
        "SandboxCommands.run takes no 'timeout_s' here",
        "SandboxCommands.run takes no 'user' here",
    ]


def test_a_parameter_that_is_not_passed_is_named() -> None:
    class SandboxProcesses(Protocol):
        async def status(self) -> Any: ...

    found = names.differences(contract(SandboxProcesses=SandboxProcesses))
    assert found == ["SandboxProcesses.status needs 'process_id' here"]


def test_a_coroutine_in_the_contract_is_one_here() -> None:
    class SandboxProcessAttachment(Protocol):
        async def output(self) -> Any: ...

    found = names.differences(contract(SandboxProcessAttachment=SandboxProcessAttachment))
    assert found == ["SandboxProcessAttachment.output must be awaited and is not here"]


def test_a_stream_fits_awaited_or_not() -> None:
    class Awaited(Protocol):
        async def read_bytes_stream(self, path: str) -> AsyncIterator[bytes]: ...

    class Iterated(Protocol):
        def read_bytes_stream(self, path: str) -> AsyncIterator[bytes]: ...

    for protocol in (Awaited, Iterated):
        assert names.differences(contract(SandboxFiles=protocol)) == []


def test_a_missing_error_is_named() -> None:
    found = names.differences(contract(SandboxPathRejected=None))
    assert found == ["SandboxPathRejected is not in contract"]
    # These two are guesses; own ones stand in for them.
    assert names.differences(contract(SandboxProcessAlreadyAttached=None)) == []


def test_an_unknown_field_of_a_description_is_named() -> None:
    @dataclass
    class SandboxFileInfo:
        path: str
        inode: int
        modified_at: datetime | None = None

    found = names.differences(contract(SandboxFileInfo=SandboxFileInfo))
    assert found == ["SandboxFileInfo.inode is unknown here"]


def test_differences_stop_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "differences", lambda: ["SandboxFiles.read is missing here"])
    with pytest.raises(RuntimeError, match=r"names\.py: SandboxFiles\.read is missing here"):
        SandboxBridgeProvider()


def test_output_follows_the_contracts_type(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass
    class Bytes:
        exit_code: int
        stdout: bytes
        stderr: bytes

    assert names._printed(b"\xff") == "\ufffd"
    monkeypatch.setattr(names, "_RESULT_TYPE", Bytes)
    assert names._printed(b"\xff") == b"\xff"

# SPDX-License-Identifier: Apache-2.0
"""The data-plane conformance suite, one case a clause, through the provider.

Against the fake bridge; and against the real one with its local OpenSandbox where the build names
the binary (SANDBOX_BRIDGE_BINARY).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio
from astrabox.seams.sandbox import SandboxCreateSpec, SandboxHandle
from astrabox.testing.sandbox_data_conformance import (
    DATA_CONTRACT,
    PROCESSES_CONTRACT,
    DataContractBox,
    run_contract_check,
)

from astrabox_sandbox_bridge.provider import SandboxBridgeProvider

pytestmark = pytest.mark.asyncio

# An account of every Debian, with a group of its name; the file plane is root.
ACCOUNT = "games"


@pytest_asyncio.fixture
async def live_handle(
    provider: SandboxBridgeProvider, make_spec: Callable[..., SandboxCreateSpec]
) -> AsyncIterator[SandboxHandle]:
    handle = await provider.create_sandbox(make_spec())
    yield handle
    assert await provider.kill(handle.sandbox_id)


@pytest.mark.parametrize("check", DATA_CONTRACT + PROCESSES_CONTRACT, ids=lambda check: check.name)
async def test_data_contract(check: Any, live_handle: SandboxHandle, tmp_path: Any) -> None:
    await run_contract_check(
        check,
        DataContractBox(
            files=live_handle.files,
            commands=live_handle.commands,
            scratch=f"{tmp_path}/data-contract",
            account=ACCOUNT,
            processes=live_handle.processes,
        ),
    )

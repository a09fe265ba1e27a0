# SPDX-License-Identifier: Apache-2.0
"""The data-plane conformance suite, one case a clause, through the provider: against the real
bridge with the local OpenSandbox or the real one, and against the fake bridge of the other
tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
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
from astrabox_sandbox_bridge.client import BridgeClient, Options, v1

from conftest import Providers
from real_bridge import RealBridge, an_opensandbox

pytestmark = pytest.mark.asyncio

# An account of every Debian, with a group of its name; the file plane is root.
ACCOUNT = "games"
CHECKS = DATA_CONTRACT + PROCESSES_CONTRACT


@pytest.fixture(scope="module")
def real_sandbox() -> Iterator[tuple[str, str]]:
    """(address, sandbox_id) of a sandbox of the real bridge, one for all clauses."""

    async def create(address: str) -> str:
        async with BridgeClient(Options(address)) as client:
            spec = v1.SandboxSpec(image="debian:12")
            made = await client.sandboxes.create(spec, ready_timeout=60)
            return made.sandbox.sandbox_id

    with an_opensandbox() as upstream, RealBridge(upstream.place) as bridge:
        yield bridge.place, asyncio.run(create(bridge.place))


@pytest_asyncio.fixture
async def real_handle(
    real_sandbox: tuple[str, str], make_provider: Providers
) -> AsyncIterator[SandboxHandle]:
    address, sandbox_id = real_sandbox
    yield await make_provider(ADDRESS=address).connect(sandbox_id)


@pytest_asyncio.fixture
async def fake_handle(
    make_provider: Providers, make_spec: Callable[..., SandboxCreateSpec]
) -> AsyncIterator[SandboxHandle]:
    yield await make_provider().create_sandbox(make_spec())


async def check_clause(check: Any, handle: SandboxHandle, scratch: str) -> None:
    await run_contract_check(
        check,
        DataContractBox(
            files=handle.files,
            commands=handle.commands,
            scratch=scratch,
            account=ACCOUNT,
            processes=handle.processes,
        ),
    )


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
async def test_real(check: Any, real_handle: SandboxHandle) -> None:
    await check_clause(check, real_handle, "/tmp/data-contract")  # noqa: S108


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
async def test_fake(check: Any, fake_handle: SandboxHandle, tmp_path: Any) -> None:
    await check_clause(check, fake_handle, f"{tmp_path}/data-contract")

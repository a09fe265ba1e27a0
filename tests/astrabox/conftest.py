# SPDX-License-Identifier: Apache-2.0
"""What the tests of the AstraBox frontend share.

The real package `astrabox` is used where it can be imported, the stand-in otherwise.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

_HERE = Path(__file__).parent
if importlib.util.find_spec("astrabox") is None:
    sys.path.append(str(_HERE / "stand_in"))
sys.path.append(str(_HERE))

from astrabox.common.utils.errors import APIError  # noqa: E402
from astrabox.seams.sandbox import (  # noqa: E402
    SandboxCreateSpec,
    set_sandbox_installation_loader,
)
from astrabox_sandbox_bridge.client import BridgeClient, BridgeError, Options  # noqa: E402
from astrabox_sandbox_bridge.provider import SandboxBridgeProvider  # noqa: E402

from fake_bridge import FakeBridge, Upstream  # noqa: E402
from real_bridge import RealBridge, an_opensandbox  # noqa: E402

INSTALLATION = "installation-1"


@pytest.fixture(autouse=True)
def installation() -> None:
    async def load() -> str:
        return INSTALLATION

    set_sandbox_installation_loader(load)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No variable of the machine reaches a test."""
    for name in list(os.environ):
        if name.startswith(("ASTRABOX_", "SANDBOX_BRIDGE_")) and not name.endswith("_BINARY"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("ASTRABOX_SANDBOX_BRIDGE_IMAGE", "example/agent:1")
    return monkeypatch


@pytest_asyncio.fixture
async def upstream() -> AsyncIterator[Upstream]:
    upstream = Upstream()
    yield upstream
    await upstream.close()


@pytest_asyncio.fixture
async def bridge(upstream: Upstream) -> AsyncIterator[FakeBridge]:
    async with FakeBridge(upstream) as bridge:
        yield bridge


Providers = Callable[..., SandboxBridgeProvider]
Specs = Callable[..., SandboxCreateSpec]


@pytest_asyncio.fixture
async def make_provider(
    bridge: FakeBridge, environment: pytest.MonkeyPatch
) -> AsyncIterator[Providers]:
    """Makes providers of the fake bridge; keywords are settings without their prefix."""
    made: list[SandboxBridgeProvider] = []

    def make(**settings: str) -> SandboxBridgeProvider:
        values = {"ADDRESS": bridge.address, "START_TIMEOUT_SECONDS": "0"} | settings
        for name, value in values.items():
            environment.setenv(f"ASTRABOX_SANDBOX_BRIDGE_{name}", value)
        made.append(SandboxBridgeProvider())
        return made[-1]

    yield make
    for provider in made:
        await provider.shutdown_current_loop_resources()


@pytest_asyncio.fixture
async def provider(make_provider: Providers) -> SandboxBridgeProvider:
    return make_provider()


@pytest_asyncio.fixture
async def client(bridge: FakeBridge) -> AsyncIterator[BridgeClient]:
    """A plain client of the fake bridge."""
    async with BridgeClient(Options(bridge.address)) as client:
        yield client


async def bridge_failure(work: Awaitable[Any]) -> BridgeError:
    with pytest.raises(BridgeError) as caught:
        await work
    return caught.value


async def api_failure(work: Awaitable[Any]) -> APIError:
    with pytest.raises(APIError) as caught:
        await work
    return caught.value


@pytest.fixture
def make_spec() -> Callable[..., SandboxCreateSpec]:
    def make(**fields: Any) -> SandboxCreateSpec:
        defaults: dict[str, Any] = {
            "session_id": "session-1",
            "assignment_id": "assignment-1",
            "resource_limits": {"cpu": "4", "memory": "4Gi"},
            "resource_requests": {"cpu": "200m", "memory": "768Mi"},
        }
        return SandboxCreateSpec(**(defaults | fields))

    return make


# A real bridge in front of a real upstream; a test file may have its own of these names.


@pytest.fixture(scope="module")
def opensandbox() -> Iterator[Any]:
    with an_opensandbox() as upstream:
        yield upstream


@pytest.fixture(scope="module")
def real(opensandbox: Any) -> Iterator[RealBridge]:
    with RealBridge(opensandbox.place) as bridge:
        yield bridge


@pytest_asyncio.fixture
async def live(real: RealBridge, make_provider: Providers) -> AsyncIterator[SandboxBridgeProvider]:
    """A provider of the real bridge; what it leaves behind is destroyed."""
    provider = make_provider(ADDRESS=real.place)
    yield provider
    page = await provider.list_sandboxes(page_size=200)
    for box in page.items:
        await provider.kill(box.sandbox_id)


@pytest_asyncio.fixture
async def box(provider: SandboxBridgeProvider, make_spec: Specs) -> str:
    """A sandbox that the provider has made on the fake bridge."""
    return (await provider.create_sandbox(make_spec())).sandbox_id


@pytest.fixture
def specs(make_spec: Specs) -> Specs:
    """Specs with a main process that any image has, and assignments of their own."""
    count = iter(range(1000))

    def make(**fields: Any) -> SandboxCreateSpec:
        defaults = {
            "image": "debian:12",
            "entrypoint": ("tail", "-f", "/dev/null"),
            "resource_limits": {"cpu": "1", "memory": "1Gi"},
            "assignment_id": f"{os.urandom(8).hex()}:{next(count)}",
        }
        return make_spec(**(defaults | fields))

    return make

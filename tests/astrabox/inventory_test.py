# SPDX-License-Identifier: Apache-2.0
"""Lists, descriptions, diagnostics."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from astrabox.common.utils.errors import APIError
from astrabox.seams.sandbox import SandboxCreateSpec
from astrabox_sandbox_bridge.client import v1
from astrabox_sandbox_bridge.provider import SandboxBridgeProvider

from conftest import INSTALLATION
from fake_bridge import FakeBridge, Upstream

pytestmark = pytest.mark.asyncio

Specs = Callable[..., SandboxCreateSpec]
OWNED = {"astrabox.managed-by": "astrabox", "astrabox.installation": INSTALLATION}


async def _fill(provider: SandboxBridgeProvider, make_spec: Specs, count: int) -> list[str]:
    """Sandboxes of our own, newest first."""
    made = [
        await provider.create_sandbox(make_spec(session_id=f"s{i}", assignment_id=f"a{i}"))
        for i in range(count)
    ]
    return [handle.sandbox_id for handle in reversed(made)]


@pytest.mark.parametrize("counts", [True, False])
async def test_pages_by_number(
    bridge: FakeBridge,
    provider: SandboxBridgeProvider,
    make_spec: Specs,
    upstream: Upstream,
    counts: bool,
) -> None:
    """With a bridge that counts and with one that does not; strangers fill no page."""
    bridge.capabilities = {"count": counts}
    mine = await _fill(provider, make_spec, 7)
    for _ in range(5):
        upstream.create(v1.SandboxSpec(metadata={"of": "somebody"}))
    seen = []
    for number in (1, 2, 3, 4):
        page = await provider.list_sandboxes(page=number, page_size=3, metadata=OWNED)
        assert (page.page, page.page_size, page.total_items, page.total_pages) == (number, 3, 7, 3)
        assert page.has_next_page == (number < 3)
        seen += [item.sandbox_id for item in page.items]
    assert seen == mine
    everything = await provider.list_sandboxes(page_size=50)
    assert everything.total_items == 12


async def test_one_call_a_page(
    bridge: FakeBridge, provider: SandboxBridgeProvider, make_spec: Specs
) -> None:
    await _fill(provider, make_spec, 5)
    await provider.list_sandboxes(page=2, page_size=2)
    (asked,) = bridge.asked("ListSandboxes")
    assert (asked.skip, asked.page_size) == (2, 2)


async def test_an_empty_page_is_an_answer_and_no_page_is_not(
    bridge: FakeBridge, provider: SandboxBridgeProvider
) -> None:
    page = await provider.list_sandboxes()
    assert (page.items, page.total_items, page.has_next_page) == ((), 0, False)
    for number, size in ((0, 1), (1, 0), (-1, 5)):
        with pytest.raises(APIError, match="SANDBOX_CONFIG_INVALID"):
            await provider.list_sandboxes(page=number, page_size=size)
    bridge.fail("ListSandboxes", "UPSTREAM_UNAVAILABLE")
    with pytest.raises(APIError) as caught:
        await provider.list_sandboxes()
    assert caught.value.status_code == 502


async def test_filters_of_any_length(provider: SandboxBridgeProvider, make_spec: Specs) -> None:
    note = "not a label: " * 20
    await provider.create_sandbox(make_spec(assignment_id="a1", metadata={"note": note}))
    await provider.create_sandbox(make_spec(assignment_id="a2", metadata={"note": note + "!"}))
    page = await provider.list_sandboxes(metadata={"note": note})
    assert [item.metadata["note"] for item in page.items] == [note]


async def test_description_is_verbatim(
    provider: SandboxBridgeProvider, make_spec: Specs, upstream: Upstream
) -> None:
    metadata = {"astrabox.storage-assignment": "x", "pool receipt": '{"a": [1, "☃"]}' * 30}
    handle = await provider.create_sandbox(
        make_spec(metadata=metadata, session_id="agent-runtime:1", entrypoint=("/a", "b"))
    )
    found = await provider.describe_sandbox(handle.sandbox_id)
    assert metadata.items() <= found.metadata.items()
    assert (found.session_id, found.state) == ("agent-runtime:1", "running")
    assert (found.image, found.entrypoint) == ("example/agent:1", ("/a", "b"))
    stored = upstream.sandboxes[handle.sandbox_id].sandbox
    assert found.created_at is not None
    assert found.expires_at is not None
    assert found.created_at.timestamp() == pytest.approx(stored.created_at.seconds, abs=1)
    assert (found.expires_at - found.created_at).total_seconds() == pytest.approx(14400, abs=1)
    assert found.endpoint is None


async def test_a_stranger_is_described_as_it_is(
    provider: SandboxBridgeProvider, upstream: Upstream
) -> None:
    made = upstream.create(v1.SandboxSpec(metadata={"of": "somebody"}))
    made.ClearField("created_at")
    upstream.set_state(made.sandbox_id, "Allocated")
    found = await provider.describe_sandbox(made.sandbox_id)
    assert (found.session_id, found.image, found.created_at) == (None, None, None)
    assert (found.state, dict(found.metadata)) == ("allocated", {"of": "somebody"})


async def test_a_missing_one_is_not_found(provider: SandboxBridgeProvider) -> None:
    with pytest.raises(APIError) as caught:
        await provider.describe_sandbox("nothing")
    assert (caught.value.code, caught.value.status_code) == ("SANDBOX_NOT_FOUND", 404)


async def test_damaged_metadata_hides_nothing_else(
    provider: SandboxBridgeProvider, make_spec: Specs, upstream: Upstream
) -> None:
    first = await provider.create_sandbox(make_spec(assignment_id="a1", metadata={"k": "x y" * 40}))
    await provider.create_sandbox(make_spec(assignment_id="a2"))
    stored = upstream.sandboxes[first.sandbox_id].sandbox.metadata
    del stored[next(key for key in stored if key.startswith("projected."))]
    assert (await provider.list_sandboxes()).total_items == 2
    with pytest.raises(APIError, match="pieces"):
        await provider.describe_sandbox(first.sandbox_id)


async def test_found_by_assignment(
    provider: SandboxBridgeProvider, make_spec: Specs, upstream: Upstream
) -> None:
    handle = await provider.create_sandbox(make_spec())
    found = await provider.find_sandbox_by_assignment("assignment-1")
    assert found is not None
    assert found.sandbox_id == handle.sandbox_id
    assert await provider.find_sandbox_by_assignment("assignment-2") is None
    with pytest.raises(ValueError, match="empty"):
        await provider.find_sandbox_by_assignment("")
    # Of another installation on the same upstream.
    upstream.sandboxes[handle.sandbox_id].sandbox.metadata["astrabox.installation"] = "other"
    assert await provider.find_sandbox_by_assignment("assignment-1") is None


async def test_two_installations_do_not_meet(
    provider: SandboxBridgeProvider, make_spec: Specs, upstream: Upstream
) -> None:
    from astrabox.seams.sandbox import set_sandbox_installation_loader

    first = await provider.create_sandbox(make_spec())

    async def other() -> str:
        return "installation-2"

    set_sandbox_installation_loader(other)
    second = await provider.create_sandbox(make_spec())
    assert first.sandbox_id != second.sandbox_id
    assert len(upstream.sandboxes) == 2
    claim = await provider.claim_of(first.sandbox_id, expected_session_id="session-1")
    assert claim.verdict == "FOREIGN"


@pytest.mark.parametrize("scope", ["summary", "inspect", "events", "logs"])
async def test_diagnostics(provider: SandboxBridgeProvider, make_spec: Specs, scope: str) -> None:
    handle = await provider.create_sandbox(make_spec())
    found = await provider.read_diagnostics(handle.sandbox_id, scope=scope)
    assert found.text == f"KIND_{scope.upper()} \ufffd"
    assert (found.scope, found.truncated) == (scope, False)
    assert found.content_type.startswith("text/plain")


@pytest.mark.parametrize("scope", ["", "../logs", "LOGS", "logs/x", "everything"])
async def test_unknown_scopes_stay_here(
    bridge: FakeBridge, provider: SandboxBridgeProvider, scope: str
) -> None:
    with pytest.raises(APIError) as caught:
        await provider.read_diagnostics("box-1", scope=scope)
    assert (caught.value.code, caught.value.status_code) == (
        "SANDBOX_DIAGNOSTIC_SCOPE_INVALID",
        400,
    )
    assert bridge.asked("GetDiagnostics") == []


async def test_diagnostics_where_there_are_none(
    bridge: FakeBridge, provider: SandboxBridgeProvider
) -> None:
    bridge.fail("GetDiagnostics", "UNSUPPORTED_FEATURE")
    with pytest.raises(APIError) as caught:
        await provider.read_diagnostics("box-1", scope="logs")
    assert caught.value.code == "SANDBOX_DIAGNOSTICS_NOT_IMPLEMENTED"

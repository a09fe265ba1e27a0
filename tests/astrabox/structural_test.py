# SPDX-License-Identifier: Apache-2.0
"""The structural conformance suite, flags that follow the bridge, and loading by entry point."""

from __future__ import annotations

import asyncio
import importlib.metadata
import logging
from typing import Any

import pytest
from astrabox import providers
from astrabox.seams.sandbox import SANDBOX_CAPABILITY_RULES, sandbox_if_registered
from astrabox.testing.provider_conformance import SandboxProviderContractSuite
from astrabox_sandbox_bridge.provider import SandboxBridgeProvider
from astrabox_sandbox_bridge.provider.base import BACKEND_FLAGS

from conftest import Providers
from fake_bridge import FakeBridge


class TestSandboxBridge(SandboxProviderContractSuite):
    def make_provider(self) -> SandboxBridgeProvider:
        return SandboxBridgeProvider()


class TestSandboxBridgeWithEverything(SandboxProviderContractSuite):
    """With every flag of the class on, as with a backend that can do all."""

    def make_provider(self) -> SandboxBridgeProvider:
        provider = SandboxBridgeProvider()
        for flag in SANDBOX_CAPABILITY_RULES:
            setattr(provider, flag, getattr(SandboxBridgeProvider, flag))
        provider.supported_permission_levels = ("default", "advanced")
        return provider


def test_making_one_needs_neither_loop_nor_network_nor_settings() -> None:
    provider = SandboxBridgeProvider()
    assert provider.supports_correlated_create
    assert provider.supports_create_network_policy
    # Nobody has said that the backend can do this.
    assert not provider.supports_isolated_sessions
    assert provider.supported_permission_levels == ("default",)


def test_what_is_never_offered() -> None:
    provider = SandboxBridgeProvider()
    assert not provider.supports_client_pool
    assert not provider.supports_egress_credential_injection
    assert not provider.supports_turn_preparation


@pytest.mark.asyncio
async def test_flags_follow_the_bridge(bridge: FakeBridge, make_provider: Providers) -> None:
    """Asked while AstraBox starts, inside its running loop."""
    bridge.capabilities = {"sandboxes.pause": False, "isolation": True, "processes": False}
    provider = await _start(make_provider)
    assert not provider.supports_pause
    assert not provider.supports_process_sessions
    assert provider.supports_isolated_sessions
    assert provider.supports_isolated_session_recovery
    assert provider.supported_permission_levels == ("default", "advanced")
    # Not mentioned: as assumed.
    assert provider.supports_create_network_policy


@pytest.mark.asyncio
async def test_what_the_bridge_leaves_open_stays_as_assumed(
    bridge: FakeBridge, make_provider: Providers
) -> None:
    bridge.capabilities = dict.fromkeys(feature for feature, _ in BACKEND_FLAGS.values())
    provider = await _start(make_provider)
    for flag, (_, assumed) in BACKEND_FLAGS.items():
        assert getattr(provider, flag) is assumed
    assert provider.supported_permission_levels == ("default",)


@pytest.mark.asyncio
@pytest.mark.parametrize("says", [True, False, None])
async def test_a_deployment_may_know_better_about_sessions(
    bridge: FakeBridge,
    make_provider: Providers,
    environment: pytest.MonkeyPatch,
    says: bool | None,
) -> None:
    bridge.capabilities = {"isolation": says}
    for value in (True, False):
        environment.setenv("ASTRABOX_SANDBOX_BRIDGE_ISOLATED_SESSIONS", str(value).lower())
        provider = await _start(make_provider)
        assert provider.supports_isolated_sessions is value
        assert provider.supports_isolated_session_recovery is value
        assert ("advanced" in provider.supported_permission_levels) is value


@pytest.mark.asyncio
async def test_a_bridge_that_could_not_ask_is_asked_again(
    bridge: FakeBridge, make_provider: Providers, make_spec: Any
) -> None:
    bridge.capabilities = {"sandboxes.snapshots": None, "sandboxes.pause": None}
    provider = await _start(make_provider)
    assert provider.supports_pause
    bridge.capabilities = {"sandboxes.snapshots": False, "sandboxes.pause": False}
    await provider.create_sandbox(make_spec())
    assert not provider.supports_pause
    asked = sum(method == "GetCapabilities" for method, *_ in bridge.calls)
    await provider.create_sandbox(make_spec())
    assert sum(method == "GetCapabilities" for method, *_ in bridge.calls) == asked


async def _start(make_provider: Providers) -> SandboxBridgeProvider:
    # The fake bridge lives on this loop; making a provider blocks the thread that it is made in.
    return await asyncio.to_thread(make_provider, START_TIMEOUT_SECONDS="5")


@pytest.mark.asyncio
async def test_flags_are_learnt_at_the_first_create_if_not_at_start(
    bridge: FakeBridge, provider: SandboxBridgeProvider, make_spec: Any
) -> None:
    bridge.capabilities = {"isolation": True, "processes": False}
    assert provider.supports_process_sessions
    handle = await provider.create_sandbox(make_spec())
    assert not provider.supports_process_sessions
    assert provider.supports_isolated_sessions
    with pytest.raises(Exception, match="SANDBOX_PROCESS_SESSIONS_UNSUPPORTED"):
        await handle.processes.create(command="x")


def test_an_unreachable_bridge_does_not_stop_the_start(
    environment: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    environment.setenv("ASTRABOX_SANDBOX_BRIDGE_ADDRESS", "127.0.0.1:1")
    environment.setenv("ASTRABOX_SANDBOX_BRIDGE_START_TIMEOUT_SECONDS", "0.3")
    with caplog.at_level(logging.WARNING):
        provider = SandboxBridgeProvider()
    assert "could not be asked" in caplog.text
    for flag, (_, assumed) in BACKEND_FLAGS.items():
        assert getattr(provider, flag) is assumed


@pytest.mark.parametrize("value", ["x", "-1"])
def test_a_bad_setting_does_not_stop_the_start(
    environment: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, value: str
) -> None:
    environment.setenv("ASTRABOX_SANDBOX_BRIDGE_ADDRESS", "127.0.0.1:1")
    environment.setenv("ASTRABOX_SANDBOX_BRIDGE_START_TIMEOUT_SECONDS", value)
    SandboxBridgeProvider()
    assert "ASTRABOX_SANDBOX_BRIDGE_START_TIMEOUT_SECONDS" in caplog.text


def test_a_disabled_backend_is_not_asked(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("ASTRABOX_SANDBOX_BRIDGE_ADDRESS", "127.0.0.1:1")
    environment.setenv("ASTRABOX_SANDBOX_BRIDGE_START_TIMEOUT_SECONDS", "x")
    environment.setenv("ASTRABOX_SANDBOX_BACKENDS", "open_sandbox")
    SandboxBridgeProvider()  # a value that is never read is never refused


class _Entry:
    def __init__(self, name: str, target: Any) -> None:
        self.name = name
        self._target = target

    def load(self) -> Any:
        if isinstance(self._target, Exception):
            raise self._target
        return self._target


def _with_entries(monkeypatch: pytest.MonkeyPatch, *entries: _Entry) -> None:
    monkeypatch.setattr(providers, "entry_points", lambda group: entries)
    monkeypatch.setattr("astrabox.seams.sandbox._PROVIDERS", {})


def test_loaded_by_its_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    _with_entries(monkeypatch, _Entry("sandbox_bridge", SandboxBridgeProvider))
    assert providers.load_entry_point_providers() == ["sandbox_bridge"]
    found = sandbox_if_registered("Sandbox_Bridge")
    assert isinstance(found, SandboxBridgeProvider)
    assert found.name == "sandbox_bridge"


def test_loading_is_strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules of the loader that the packaging relies on."""
    entry = _Entry("sandbox_bridge", SandboxBridgeProvider)
    _with_entries(monkeypatch, entry, entry)
    with pytest.raises(RuntimeError, match="two entry points"):
        providers.load_entry_point_providers()
    _with_entries(monkeypatch, _Entry("sandbox_bridge", ImportError("no grpc")))
    with pytest.raises(RuntimeError, match="sandbox_bridge.*no grpc"):
        providers.load_entry_point_providers()


def test_settings_of_a_disabled_provider_are_warned_about(environment: pytest.MonkeyPatch) -> None:
    provider = SandboxBridgeProvider()
    environment.setenv("ASTRABOX_SANDBOX_BRIDGE_ADDRESS", "a:1")
    environment.setenv("ASTRABOX_SANDBOX_LEASE_SECONDS", "60")  # others read it too
    warned = providers.warnings_about_disabled(provider, {"open_sandbox"})
    assert warned == [
        "ASTRABOX_SANDBOX_BRIDGE_ADDRESS",
        "ASTRABOX_SANDBOX_BRIDGE_IMAGE",
    ]
    assert providers.warnings_about_disabled(provider, {"sandbox_bridge"}) == []


def test_the_installed_distribution_names_it() -> None:
    for entry in importlib.metadata.entry_points(group="astrabox.providers.sandbox"):
        if entry.name == "sandbox_bridge":
            assert entry.value == "astrabox_sandbox_bridge.provider:SandboxBridgeProvider"

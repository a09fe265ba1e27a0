# SPDX-License-Identifier: Apache-2.0
"""The sandbox seam: types, the provider's base class, and the registry with its rules."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from astrabox.seams._sandbox_provider import SandboxProvider as SandboxProvider  # noqa: PLC0414
from astrabox.seams._sandbox_types import *  # noqa: F403
from astrabox.seams._sandbox_types import SANDBOX_PERMISSION_LEVELS


@dataclass(frozen=True)
class SandboxCapabilityRule:
    """What a provider that declares a flag must bring."""

    methods: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


_ISOLATION = (
    "read_isolation_capability",
    "prepare_isolated_workspace",
    "open_isolated_session",
    "run_in_isolated_session",
    "stream_in_isolated_session",
    "close_isolated_session",
    "count_active_isolated_sessions",
)
_POOL = (
    "adopt_sandbox_identity",
    "ensure_client_pool",
    "acquire_client_pool",
    "describe_client_pool",
    "retire_client_pool",
    "owns_unclaimed_sandbox",
    "client_pool_readiness",
)

SANDBOX_CAPABILITY_RULES: Mapping[str, SandboxCapabilityRule] = MappingProxyType(
    {
        "supports_create_network_policy": SandboxCapabilityRule(("admit_runtime_egress",)),
        "supports_isolated_sessions": SandboxCapabilityRule(_ISOLATION),
        "supports_isolated_session_recovery": SandboxCapabilityRule(
            ("find_isolated_sessions_by_workspace",), ("supports_isolated_sessions",)
        ),
        "supports_pause": SandboxCapabilityRule(("pause", "resume")),
        "supports_client_pool": SandboxCapabilityRule(_POOL),
        "supports_correlated_create": SandboxCapabilityRule(("find_sandbox_by_assignment",)),
        "supports_egress_credential_injection": SandboxCapabilityRule(("apply_credential_vault",)),
        "supports_inventory_listing": SandboxCapabilityRule(("list_sandboxes", "describe_sandbox")),
        "supports_turn_preparation": SandboxCapabilityRule(("prepare_turn", "owns_sandbox")),
        "supports_process_sessions": SandboxCapabilityRule(),
    }
)

_PROVIDERS: dict[str, SandboxProvider] = {}
_INSTALLATION: dict[str, str] = {}
_LOADERS: list[Callable[[], Awaitable[str]]] = []


def overrides(provider: SandboxProvider, method: str) -> bool:
    """Whether the provider's class brings its own `method`."""
    own = getattr(type(provider), method, None)
    return own is not None and own is not getattr(SandboxProvider, method, None)


def capability_faults(provider: SandboxProvider) -> list[str]:
    """What is missing for the capabilities that a provider declares, in words."""
    faults = []
    for flag, rule in SANDBOX_CAPABILITY_RULES.items():
        declared = getattr(provider, flag, False)
        if not isinstance(declared, bool):
            faults.append(f"{flag} is not a bool")
        elif declared:
            faults += [f"{flag} needs {m}" for m in rule.methods if not overrides(provider, m)]
            faults += [f"{flag} needs {f}" for f in rule.flags if not getattr(provider, f, False)]
    levels = provider.supported_permission_levels
    if not levels or len(set(levels)) != len(levels) or set(levels) - {"default", "advanced"}:
        faults.append(f"permission levels {levels!r} are not some of {SANDBOX_PERMISSION_LEVELS}")
    if "advanced" in levels and not overrides(provider, "read_isolation_capability"):
        faults.append("the level advanced needs read_isolation_capability")
    return faults


def register_sandbox(provider: SandboxProvider) -> None:
    """The last registration of a name counts. A capability declared by half is refused."""
    faults = capability_faults(provider)
    if faults:
        raise RuntimeError(f"sandbox provider {provider.name!r}: " + "; ".join(faults))
    _PROVIDERS[provider.name.lower()] = provider


def sandbox_if_registered(backend: str | None) -> SandboxProvider | None:
    return _PROVIDERS.get((backend or "").lower())


def sandbox_for_name(backend: str) -> SandboxProvider:
    provider = sandbox_if_registered(backend)
    if provider is None:
        raise RuntimeError(f"no sandbox provider {backend!r}; there are {sorted(_PROVIDERS)}")
    return provider


def registered_sandbox_names() -> list[str]:
    return sorted(_PROVIDERS)


async def shutdown_sandbox_providers_for_current_loop() -> None:
    for provider in _PROVIDERS.values():
        await provider.shutdown_current_loop_resources()


def set_sandbox_installation_loader(loader: Callable[[], Awaitable[str]]) -> None:
    _LOADERS[:] = [loader]
    _INSTALLATION.clear()


async def sandbox_installation_id() -> str:
    if "id" not in _INSTALLATION:
        value = (await _LOADERS[0]()) if _LOADERS else ""
        if not value:
            raise RuntimeError("the installation has no id")
        _INSTALLATION["id"] = value
    return _INSTALLATION["id"]

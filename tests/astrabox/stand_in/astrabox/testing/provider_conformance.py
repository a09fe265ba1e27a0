# SPDX-License-Identifier: Apache-2.0
"""The structural suite: no backend is needed. Subclass it as Test... and say how to make one."""

from __future__ import annotations

import inspect

from astrabox.seams.sandbox import (
    SANDBOX_CAPABILITY_RULES,
    SandboxProvider,
    capability_faults,
    register_sandbox,
    sandbox_if_registered,
)


class SandboxProviderContractSuite:
    def make_provider(self) -> SandboxProvider:
        raise NotImplementedError

    def test_name_is_stable_and_nonempty(self) -> None:
        provider = self.make_provider()
        assert provider.name.strip()
        assert provider.name == provider.name.strip().lower()
        assert self.make_provider().name == provider.name

    def test_abstract_methods_are_implemented(self) -> None:
        provider = self.make_provider()
        assert not inspect.isabstract(type(provider))
        for method in ("create_sandbox", "connect", "kill"):
            assert inspect.iscoroutinefunction(getattr(provider, method))

    def test_destruction_is_judged_by_the_platform(self) -> None:
        provider = self.make_provider()
        assert type(provider).confirm_destroyed is SandboxProvider.confirm_destroyed

    def test_capability_flags_are_booleans(self) -> None:
        provider = self.make_provider()
        others = ("sandbox_is_profile_exclusive", "created_sandboxes_self_expire")
        for flag in (*SANDBOX_CAPABILITY_RULES, *others, "uses_create_oss_mounts"):
            assert isinstance(getattr(provider, flag), bool), flag
            assert isinstance(getattr(type(provider), flag), bool), flag

    def test_declared_capabilities_have_what_their_rule_requires(self) -> None:
        assert capability_faults(self.make_provider()) == []

    def test_signatures_accept_what_the_contract_passes(self) -> None:
        """Every method takes the parameters of the base's, by the same names and kinds."""
        provider = self.make_provider()
        for name, base in inspect.getmembers(SandboxProvider, inspect.isfunction):
            if name.startswith("_"):
                continue
            own = inspect.signature(getattr(type(provider), name)).parameters
            for parameter in inspect.signature(base).parameters.values():
                assert parameter.name in own, f"{name} lacks {parameter.name}"
                assert own[parameter.name].kind == parameter.kind, f"{name}: {parameter.name}"

    def test_validity_declaration_requires_the_capability(self) -> None:
        provider = self.make_provider()
        if not provider.supports_turn_preparation:
            assert provider.turn_preparation_validity_seconds is None

    def test_owned_settings_are_names(self) -> None:
        owned = self.make_provider().owned_settings
        assert len(set(owned)) == len(owned)
        assert all(isinstance(name, str) and name == name.strip().upper() for name in owned)

    def test_registration_round_trips(self) -> None:
        provider = self.make_provider()
        register_sandbox(provider)
        assert sandbox_if_registered(provider.name) is provider

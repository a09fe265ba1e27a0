# SPDX-License-Identifier: Apache-2.0
"""Egress: admission that only adds, the sandbox's own posture."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from astrabox.common.utils.errors import APIError
from astrabox.seams.egress_credentials import SandboxEgressCredentialPlan
from astrabox.seams.sandbox import SandboxCreateSpec, SandboxNetworkPolicy
from astrabox_sandbox_bridge.client import v1
from astrabox_sandbox_bridge.provider import SandboxBridgeProvider
from astrabox_sandbox_bridge.provider.network import policy_of

from conftest import Providers
from fake_bridge import FakeBridge, Upstream

Specs = Callable[..., SandboxCreateSpec]
DENIED = ("169.254.0.0/16",)


def limited(*hosts: str) -> SandboxNetworkPolicy:
    return SandboxNetworkPolicy("limited", hosts)


def test_no_policy_restricts_nothing() -> None:
    assert policy_of(None, DENIED) is None
    assert policy_of(SandboxNetworkPolicy("unrestricted"), ()) is None


def test_unrestricted_still_denies_what_is_always_denied() -> None:
    policy = policy_of(SandboxNetworkPolicy("unrestricted"), DENIED)
    assert policy is not None
    assert policy.default_action == v1.NetworkPolicy.ACTION_ALLOW
    assert [(r.action, r.target) for r in policy.rules] == [
        (v1.NetworkPolicy.ACTION_DENY, "169.254.0.0/16")
    ]


def test_limited_to_nothing_denies_everything() -> None:
    policy = policy_of(limited(), ())
    assert policy is not None
    assert policy.default_action == v1.NetworkPolicy.ACTION_DENY
    assert not policy.rules


def test_a_denied_address_that_is_none_is_told() -> None:
    with pytest.raises(APIError, match="SANDBOX_CONFIG_INVALID.*nonsense"):
        policy_of(limited(), ("nonsense",))


@pytest.mark.asyncio
async def test_admission_adds_what_is_missing(
    bridge: FakeBridge, provider: SandboxBridgeProvider, make_spec: Specs, upstream: Upstream
) -> None:
    handle = await provider.create_sandbox(make_spec(network_policy=limited("a.example")))
    await provider.admit_runtime_egress(
        handle, network_policy=limited("a.example", "b.example"), vault_write=None
    )
    (patch,) = bridge.asked("PatchNetworkPolicy")
    assert [r.target for r in patch.add] == ["b.example"]
    assert not patch.remove_targets
    # A narrower policy takes nothing away, and nothing is sent for what is there.
    await provider.admit_runtime_egress(handle, network_policy=limited(), vault_write=None)
    assert len(bridge.asked("PatchNetworkPolicy")) == 1
    policy = upstream.sandboxes[handle.sandbox_id].policy
    assert policy is not None
    assert {r.target for r in policy.rules} == {"169.254.0.0/16", "a.example", "b.example"}


@pytest.mark.asyncio
async def test_admission_where_everything_is_reachable(
    bridge: FakeBridge, make_provider: Providers, make_spec: Specs
) -> None:
    provider = make_provider()
    free = await provider.create_sandbox(make_spec())
    await provider.admit_runtime_egress(free, network_policy=limited("x"), vault_write=None)
    policy = SandboxNetworkPolicy("unrestricted")
    wide = await provider.create_sandbox(make_spec(assignment_id="a2", network_policy=policy))
    await provider.admit_runtime_egress(wide, network_policy=limited("x"), vault_write=None)
    assert bridge.asked("PatchNetworkPolicy") == []


@pytest.mark.asyncio
async def test_admission_cannot_lift_a_limit(
    provider: SandboxBridgeProvider, make_spec: Specs
) -> None:
    handle = await provider.create_sandbox(make_spec(network_policy=limited()))
    with pytest.raises(APIError, match="SANDBOX_EGRESS_MUTATION_UNSUPPORTED"):
        await provider.admit_runtime_egress(
            handle, network_policy=SandboxNetworkPolicy("unrestricted"), vault_write=None
        )
    with pytest.raises(APIError, match="credentials"):
        await provider.admit_runtime_egress(
            handle,
            network_policy=limited(),
            vault_write=SandboxEgressCredentialPlan(model=("x",)),
        )


@pytest.mark.asyncio
async def test_posture_is_the_sandboxs_own_answer(
    bridge: FakeBridge, provider: SandboxBridgeProvider, make_spec: Specs
) -> None:
    handle = await provider.create_sandbox(make_spec(network_policy=limited("a.example")))
    posture = await provider.read_security_posture(handle.sandbox_id)
    assert (posture.available, posture.default_action) == (True, "deny")
    assert posture.egress_rules == (("deny", "169.254.0.0/16"), ("allow", "a.example"))
    assert posture.detail == "dns+nft"
    free = await provider.create_sandbox(make_spec(assignment_id="a2"))
    posture = await provider.read_security_posture(free.sandbox_id)
    assert (posture.available, posture.default_action) == (False, None)
    bridge.fail("GetNetworkPolicy", "SANDBOX_UNREACHABLE")
    with pytest.raises(APIError):
        await provider.read_security_posture(free.sandbox_id)


@pytest.mark.asyncio
async def test_rules_are_patched_and_deleted(
    provider: SandboxBridgeProvider, make_spec: Specs
) -> None:
    handle = await provider.create_sandbox(make_spec(network_policy=limited()))
    name = handle.sandbox_id
    await provider.patch_egress_rules(name, rules=(("allow", "a"), ("b", "DENY")))
    posture = await provider.read_security_posture(name)
    assert posture.egress_rules[1:] == (("allow", "a"), ("deny", "b"))
    await provider.delete_egress_rules(name, targets=("a",))
    posture = await provider.read_security_posture(name)
    assert ("allow", "a") not in posture.egress_rules
    with pytest.raises(APIError, match="no action"):
        await provider.patch_egress_rules(name, rules=(("x", "y"),))

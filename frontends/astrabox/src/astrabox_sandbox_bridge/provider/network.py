# SPDX-License-Identifier: Apache-2.0
"""What a sandbox may reach."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Any

from astrabox.common.utils.errors import APIError
from astrabox.seams.egress_credentials import SandboxEgressCredentialPlan
from astrabox.seams.sandbox import SandboxNetworkPolicy, SandboxSecurityPosture

from astrabox_sandbox_bridge.client import BridgeError, v1
from astrabox_sandbox_bridge.failures import config_error, rendered, scrub

from .base import ProviderBase

_ALLOW = v1.NetworkPolicy.ACTION_ALLOW
_DENY = v1.NetworkPolicy.ACTION_DENY
_WORDS = {_ALLOW: "allow", _DENY: "deny"}
_ACTIONS = {"allow": _ALLOW, "deny": _DENY}


def policy_of(
    policy: SandboxNetworkPolicy | None, denied: Iterable[str]
) -> v1.NetworkPolicy | None:
    """The bridge's policy for an Environment's. None when nothing is restricted."""
    if policy is None:
        return None
    forbidden = [_network(address) for address in denied]
    rules = [_rule(_DENY, str(address)) for address in forbidden]
    if policy.mode == "unrestricted":
        return v1.NetworkPolicy(default_action=_ALLOW, rules=rules) if rules else None
    for host in policy.allowed_hosts:
        _refuse_forbidden(host, forbidden)
        rules.append(_rule(_ALLOW, host))
    return v1.NetworkPolicy(default_action=_DENY, rules=rules)


def _rule(action: v1.NetworkPolicy.Action.ValueType, target: str) -> v1.NetworkPolicy.Rule:
    return v1.NetworkPolicy.Rule(action=action, target=target)


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise config_error(f"a denied address is not one: {text!r}") from None


def _refuse_forbidden(
    host: str, forbidden: Iterable[ipaddress.IPv4Network | ipaddress.IPv6Network]
) -> None:
    try:
        asked = ipaddress.ip_network(host, strict=False)
    except ValueError:
        return  # a name
    for network in forbidden:
        if asked.version == network.version and asked.overlaps(network):
            raise ValueError(f"{host} lies in {network}, which no sandbox may reach")


class Network(ProviderBase):
    async def admit_runtime_egress(
        self,
        sandbox: Any,
        *,
        network_policy: SandboxNetworkPolicy,
        vault_write: SandboxEgressCredentialPlan | None,
    ) -> None:
        """Makes the policy's hosts reachable for a sandbox that runs. Only ever adds."""
        if vault_write is not None and not vault_write.is_empty:
            raise config_error("this backend does not inject credentials at the egress")
        sandbox_id: str = sandbox.sandbox_id
        with rendered("egress", secrets=self.secrets, gone=True):
            try:
                now = (await self.client().sandboxes.network_policy(sandbox_id)).policy
            except BridgeError as error:
                if error.reason == "UNSUPPORTED_FEATURE":
                    return  # made without a policy: everything is reachable
                raise
            if now.default_action == _ALLOW:
                return
            if network_policy.mode == "unrestricted":
                raise APIError(
                    "SANDBOX_EGRESS_MUTATION_UNSUPPORTED",
                    f"sandbox {sandbox_id} was made with limited access, which cannot be lifted",
                    501,
                )
            known = {rule.target for rule in now.rules if rule.action == _ALLOW}
            wanted = policy_of(network_policy, self.settings.denied_addresses)
            assert wanted is not None
            add = [
                rule for rule in wanted.rules if rule.action == _ALLOW and rule.target not in known
            ]
            if add:
                await self.client().sandboxes.patch_network_policy(sandbox_id, add=add)

    async def read_security_posture(self, sandbox_id: str) -> SandboxSecurityPosture:
        """The sandbox's own answer, never what it was made with."""
        with rendered("egress", secrets=self.secrets):
            try:
                status = await self.client().sandboxes.network_policy(sandbox_id)
            except BridgeError as error:
                if error.reason != "UNSUPPORTED_FEATURE":
                    raise
                return SandboxSecurityPosture(
                    sandbox_id=sandbox_id,
                    available=False,
                    detail=scrub(error.message, self.secrets),
                )
        return SandboxSecurityPosture(
            sandbox_id=sandbox_id,
            available=True,
            default_action=_WORDS.get(status.policy.default_action, "deny"),
            egress_rules=tuple(
                (_WORDS.get(rule.action, "deny"), rule.target) for rule in status.policy.rules
            ),
            detail=status.enforcement or None,
        )

    async def patch_egress_rules(
        self, sandbox_id: str, *, rules: tuple[tuple[str, str], ...]
    ) -> None:
        add = [_rule_of(pair) for pair in rules]
        with rendered("egress", secrets=self.secrets):
            await self.client().sandboxes.patch_network_policy(sandbox_id, add=add)

    async def delete_egress_rules(self, sandbox_id: str, *, targets: tuple[str, ...]) -> None:
        with rendered("egress", secrets=self.secrets):
            await self.client().sandboxes.patch_network_policy(sandbox_id, remove_targets=targets)


def _rule_of(pair: tuple[str, str]) -> v1.NetworkPolicy.Rule:
    """A rule of two words; the contract does not say which comes first, the words do."""
    for word, target in (pair, pair[::-1]):
        if word.lower() in _ACTIONS:
            return _rule(_ACTIONS[word.lower()], target)
    raise config_error(f"an egress rule has no action, allow or deny: {pair!r}")

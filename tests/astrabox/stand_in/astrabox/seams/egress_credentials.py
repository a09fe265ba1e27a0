# SPDX-License-Identifier: Apache-2.0
"""Credentials that reach the network without reaching the sandbox: only what a provider without
injection meets, the plan."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SandboxEgressCredentialPlan:
    model: tuple[object, ...] = ()
    environment: tuple[object, ...] = ()
    mcp: tuple[object, ...] = ()
    http_basic: tuple[object, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.model or self.environment or self.mcp or self.http_basic)

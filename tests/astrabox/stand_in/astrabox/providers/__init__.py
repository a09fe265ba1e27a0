# SPDX-License-Identifier: Apache-2.0
"""Loading of providers that other distributions bring."""

from __future__ import annotations

import os
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from astrabox.seams import SEAMS_API_VERSION
from astrabox.seams.sandbox import (
    ENTRY_POINT_GROUP,
    SandboxProvider,
    register_sandbox,
    sandbox_if_registered,
)


def load_entry_point_providers(group: str = ENTRY_POINT_GROUP) -> list[str]:
    """Imports every entry point of a group and registers its class. What cannot be loaded stops the
    start: a provider is never left out in silence."""
    loaded: dict[str, EntryPoint] = {}
    for entry in entry_points(group=group):
        if entry.name in loaded:
            raise RuntimeError(f"{group}: two entry points are named {entry.name!r}")
        loaded[entry.name] = entry
    for entry in loaded.values():
        try:
            target: Any = entry.load()
        except Exception as error:
            raise RuntimeError(f"{group}: {entry.name!r} cannot be imported: {error}") from error
        name = getattr(target, "name", "")
        if not isinstance(target, type) or not name or sandbox_if_registered(name):
            continue
        version = getattr(target, "seams_api_version", None)
        if version is not None and version != SEAMS_API_VERSION:
            raise RuntimeError(f"{group}: {entry.name!r} is for seams {version}")
        provider = target()
        assert isinstance(provider, SandboxProvider)
        register_sandbox(provider)
    return sorted(loaded)


def warnings_about_disabled(provider: SandboxProvider, enabled: set[str]) -> list[str]:
    """The settings that are set although the provider that reads them is not enabled."""
    if provider.name in enabled:
        return []
    return [name for name in provider.owned_settings if os.environ.get(name)]

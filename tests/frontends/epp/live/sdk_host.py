# SPDX-License-Identifier: Apache-2.0
"""The real host: agent-sandbox-client with a home of its own, so that nobody's store is touched."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


def plugin_directory() -> Path:
    """Where the build laid the plugin out."""
    return Path(os.environ["PLUGIN_DIRECTORY"]).absolute()


@dataclass
class Result:
    code: int
    stdout: str
    stderr: str


class Sdk:
    def __init__(self, home: Path) -> None:
        self.home = home
        home.mkdir(parents=True, exist_ok=True)

    def environment(self, env: dict[str, str] | None = None) -> dict[str, str]:
        return {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
            "ABX_PROVIDER_UPDATE_CHECK": "0",
            **(env or {}),
        }

    def run(self, *args: str, env: dict[str, str] | None = None, timeout: float = 120) -> Result:
        done = subprocess.run(
            [sys.executable, *args],
            env=self.environment(env),
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def providers(
        self, *args: str, env: dict[str, str] | None = None, timeout: float = 120
    ) -> Result:
        """`python -m agent_sandbox.providers ...`"""
        return self.run("-m", "agent_sandbox.providers", *args, env=env, timeout=timeout)

    def python(self, program: str, env: dict[str, str] | None = None) -> Result:
        return self.run("-c", program, env=env)

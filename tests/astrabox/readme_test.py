# SPDX-License-Identifier: Apache-2.0
"""The example of the README, run as it is printed."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path

import pytest

from fake_bridge import FakeBridge

README = Path(__file__).parents[2] / "frontends" / "astrabox" / "README.md"


@pytest.mark.asyncio
async def test_the_example_runs(bridge: FakeBridge, tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    program = example.replace("127.0.0.1:50051", bridge.address)
    program = program.replace("/tmp/data.bin", f"{tmp_path}/data.bin")  # noqa: S108
    assert program.count(bridge.address) == 1
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(os.environ),
    )
    shown, errors = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, errors.decode()
    assert shown.decode().splitlines() == [
        "3 b'hello\\n'",
        "b'1\\n2\\n3\\n'",
        "b'any bytes'",
        "0 b'hello bridge\\n'",
        "0 b''",
        "0 b''",
        "1",
    ], errors.decode()
    assert bridge.upstream.sandboxes == {}

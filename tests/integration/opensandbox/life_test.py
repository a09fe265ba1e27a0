# SPDX-License-Identifier: Apache-2.0
"""A sandbox's life on the real server: with the official SDK, with sbx, in a bare image."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import timedelta

import pytest
from astrabox_sandbox_bridge.client import BridgeClient, command, v1
from conftest import Loop, OpenSandbox
from opensandbox import Sandbox as SdkSandbox
from opensandbox.config import ConnectionConfig
from opensandbox.exceptions import SandboxException
from real_bridge import RealBridge


def test_the_official_sdk_is_content_with_our_daemon(
    opensandbox: OpenSandbox, sdk_config: ConnectionConfig, loop: Loop
) -> None:
    async def life() -> None:
        made = await SdkSandbox.create(opensandbox.image, connection_config=sdk_config,
                                       timeout=timedelta(minutes=10), env={"GIVEN": "a b"})
        ran = await made.commands.run('echo "$GIVEN"; exit 3')
        assert ([message.text for message in ran.logs.stdout], ran.exit_code) == (["a b"], 3)
        await made.files.write_file("/workspace/f", b"\x00\xff", mode=640)
        assert await made.files.read_bytes("/workspace/f") == b"\x00\xff"
        assert (await made.get_info()).status.state == "Running"
        await made.kill()
        with pytest.raises(SandboxException):
            await made.get_info()
        await made.close()

    loop(life())


def sbx(bridge: RealBridge, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "SANDBOX_BRIDGE_ADDRESS": bridge.place}
    return subprocess.run([os.environ["SBX_BINARY"], *words], input=stdin, check=False, timeout=120,
                          env=environment, capture_output=True)


def test_sbx_run_leaves_nothing(opensandbox: OpenSandbox, bridge: RealBridge) -> None:
    before = json.loads(sbx(bridge, "ls", "--json").stdout)
    ran = sbx(bridge, "run", f"--image={opensandbox.image}", "-i", "-c", "od -An -tx1; exit 7",
              stdin=b"a\r\xff\x00")
    assert (ran.stdout, ran.returncode) == (b" 61 0d ff 00\n", 7), ran.stderr
    assert json.loads(sbx(bridge, "ls", "--json").stdout) == before


def test_doctor_finds_everything_in_order(opensandbox: OpenSandbox, bridge: RealBridge) -> None:
    ran = sbx(bridge, "doctor", f"--image={opensandbox.image}")
    assert ran.returncode == 0, ran.stdout


def test_an_image_without_shell_or_libc(
    opensandbox: OpenSandbox, client: BridgeClient, loop: Loop
) -> None:
    """bootstrap.sh is a static program: the server's own needs /bin/sh in every image."""
    async def life() -> None:
        # The image's one program is a second execd; with a word behind it, it ends at once.
        spec = v1.SandboxSpec(image=opensandbox.static_image,
                              entrypoint=["/execd", "--listen=127.0.0.1:0"])
        made = await client.sandboxes.create(spec)
        ran = await client.execs.run(made.sandbox.sandbox_id, command(argv=["/execd", "word"]))
        assert ran.outcome.exit_code == 0, ran
        await client.sandboxes.delete(made.sandbox.sandbox_id)

    loop(life())

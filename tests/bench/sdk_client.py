# SPDX-License-Identifier: Apache-2.0
"""Runs `echo hi` with the official SDK and prints the median time in seconds: URL SANDBOX."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time

from opensandbox import Sandbox
from opensandbox.config import ConnectionConfig
from world import KEY


async def main(url: str, name: str) -> None:
    config = ConnectionConfig(domain=url, api_key=KEY)
    sandbox = await Sandbox.connect(name, connection_config=config)
    times = []
    for _ in range(6):
        begin = time.monotonic()
        result = await sandbox.commands.run("echo hi")
        times.append(time.monotonic() - begin)
        assert [message.text.strip() for message in result.logs.stdout] == ["hi"], result
    await sandbox.close()
    print(statistics.median(times[1:]))


asyncio.run(main(*sys.argv[1:]))

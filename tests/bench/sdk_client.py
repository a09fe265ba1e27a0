# SPDX-License-Identifier: Apache-2.0
"""One piece of work with the official SDK; prints the median time in seconds.

    sdk_client.py URL exec SANDBOX                  a command, `echo hi`
    sdk_client.py URL crowd COUNT SANDBOX...        so many of it at once in each
    sdk_client.py URL write|read SANDBOX BYTES      a file of zeros
    sdk_client.py URL create IMAGE                  a sandbox, until it can be used
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import time
from collections.abc import Awaitable, Callable

from opensandbox import Sandbox
from opensandbox.config import ConnectionConfig

FILE = "/tmp/sdk-file"
Action = Callable[[], Awaitable[object]]


async def seconds(action: Action) -> float:
    begin = time.monotonic()
    await action()
    return time.monotonic() - begin


async def median(action: Action, rounds: int) -> float:
    """Without the first one, which opens the connections."""
    return statistics.median([await seconds(action) for _ in range(rounds + 1)][1:])


async def echo(sandbox: Sandbox) -> None:
    result = await sandbox.commands.run("echo hi")
    assert [message.text.strip() for message in result.logs.stdout] == ["hi"], result


async def create(config: ConnectionConfig, image: str) -> float:
    times = []
    for _ in range(3):
        begin = time.monotonic()
        sandbox = await Sandbox.create(image, connection_config=config)
        times.append(time.monotonic() - begin)
        await sandbox.kill()
        await sandbox.close()
    return statistics.median(times[1:])


async def in_sandboxes(what: str, sandboxes: list[Sandbox], count: int) -> float:
    first = sandboxes[0]
    if what == "exec":
        return await median(lambda: echo(first), 3)
    if what == "crowd":
        return await seconds(
            lambda: asyncio.gather(*(echo(one) for one in sandboxes for _ in range(count)))
        )
    data = bytes(count)
    rounds = 20 if count <= 1 << 20 else 2
    await first.files.write_file(FILE, data)
    if what == "write":
        return await median(lambda: first.files.write_file(FILE, data), rounds)
    if what == "read":
        assert len(await first.files.read_bytes(FILE)) == count
        return await median(lambda: first.files.read_bytes(FILE), rounds)
    raise SystemExit(__doc__)


async def main(url: str, what: str, *words: str) -> None:
    config = ConnectionConfig(
        domain=url, api_key=os.environ["SANDBOX_BRIDGE_API_KEY"], disable_metrics=True
    )
    if what == "create":
        print(await create(config, words[0]))
        return
    count, names = 0, [words[0]]
    if what == "crowd":
        count, names = int(words[0]), list(words[1:])
    elif len(words) > 1:
        count = int(words[1])
    sandboxes = [await Sandbox.connect(name, connection_config=config) for name in names]
    print(await in_sandboxes(what, sandboxes, count))
    for sandbox in sandboxes:
        await sandbox.close()


asyncio.run(main(*sys.argv[1:]))

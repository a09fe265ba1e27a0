# SPDX-License-Identifier: Apache-2.0
"""One client of the bridge for each running event loop, made when it is first needed.

A channel belongs to the loop in which it was made. Providers are singletons of a process that may
have several loops, in several threads.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable, Coroutine
from typing import Any

from .client import BridgeClient


class LoopClients:
    """Clients by loop. Any thread.

    A channel holds its loop, so a client of a loop that ended without close_current() would live
    for ever; such clients are dropped when the next one is made.
    """

    def __init__(self, make: Callable[[], BridgeClient]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._clients: dict[asyncio.AbstractEventLoop, BridgeClient] = {}
        self._tasks: weakref.WeakKeyDictionary[
            asyncio.AbstractEventLoop, set[asyncio.Task[Any]]
        ] = weakref.WeakKeyDictionary()

    def current(self) -> BridgeClient:
        """The running loop's client. Raises what making one raises."""
        loop = asyncio.get_running_loop()
        with self._lock:
            client = self._clients.get(loop)
            if client is None:
                self._clients = {k: v for k, v in self._clients.items() if not k.is_closed()}
                client = self._clients[loop] = self._make()
            return client

    def keep(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Runs work that must outlive its caller; close_current() waits for it."""
        task = asyncio.get_running_loop().create_task(work)
        with self._lock:
            tasks = self._tasks.setdefault(asyncio.get_running_loop(), set())
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        return task

    async def close_current(self, *, grace: float) -> None:
        """Waits for kept work, at most `grace` seconds, then closes the running loop's client."""
        loop = asyncio.get_running_loop()
        with self._lock:
            tasks = set(self._tasks.get(loop, ()))
        if tasks:
            await asyncio.wait(tasks, timeout=grace)
        with self._lock:
            client = self._clients.pop(loop, None)
        if client is not None:
            await client.close()

# SPDX-License-Identifier: Apache-2.0
"""What the EPP plugin costs its user, as shipped: start, create, memory. Against the limits below;
the exit code says whether all are kept.

    bazel run //tests/bench:epp_bench
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from epp_host import Plugin
from program import BRIDGE_LISTENS, OPENSANDBOX_LISTENS, Program
from sdk_host import Sdk, plugin_directory

# Spawn to answered `initialize`, as a share of `node -e 0`: the least that a plugin in Node costs.
MAX_START_OF_NODE = 0.3
# Of ProviderSandbox.create, beyond what the service takes by itself.
MAX_CREATE_SECONDS = 0.060
MAX_MEMORY_MIB = 40
ROUNDS = 30

failures = []


def report(what: str, value: float, unit: str, limit: float) -> None:
    ok = value <= limit
    print(f"{'ok  ' if ok else 'OVER'} {what}: {value:.4g} {unit} (at most {limit:g})")
    if not ok:
        failures.append(what)


def seconds(action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def executable() -> str:
    return str(plugin_directory() / "bin" / "opensandbox-provider")


# --- start


def start_and_initialize() -> float:
    with tempfile.TemporaryDirectory() as data:
        begin = time.perf_counter()
        process = subprocess.Popen([executable()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=data)
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocol":"epp/1"}}\n')
        process.stdin.flush()
        assert b'"epp/1"' in process.stdout.readline()
        taken = time.perf_counter() - begin
        process.stdin.close()
        process.wait()
        return taken


def start_node() -> float:
    # NODE_EXTRA_CA_CERTS makes every start of Node three times as slow.
    env = {k: v for k, v in os.environ.items() if not k.startswith("NODE_")}
    return seconds(lambda: subprocess.run(["node", "-e", "0"], check=True, env=env))


def measure_start() -> None:
    ours, node = [], []
    for _ in range(ROUNDS):
        ours.append(start_and_initialize())
        node.append(start_node())
    own, other = statistics.median(ours), statistics.median(node)
    print(f"     to initialize {own * 1e3:.1f} ms, node -e 0 {other * 1e3:.1f} ms (medians)")
    report("start, of Node's", own / other, "", MAX_START_OF_NODE)


# --- create


class Service:
    """The service by itself: what a client of plain HTTP waits for until a command could be run."""

    def __init__(self, url: str) -> None:
        self.url = url

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        url = path if path.startswith("http") else self.url + "/v1" + path
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read() or b"{}")

    def create(self) -> str:
        sandbox = self.call(
            "POST",
            "/sandboxes",
            {
                "image": {"uri": "python:3.12-slim"},
                "timeout": 300,
                "resourceLimits": {},
                "entrypoint": ["tail", "-f", "/dev/null"],
            },
        )
        path = f"/sandboxes/{sandbox['id']}"
        while self.call("GET", path)["status"]["state"] != "Running":
            time.sleep(0.005)
        endpoint = self.call("GET", path + "/endpoints/44772")["endpoint"]
        while True:
            try:
                self.call("GET", f"http://{endpoint}/ping")
                return str(sandbox["id"])
            except (OSError, ValueError):
                time.sleep(0.005)

    def delete(self, sandbox_id: str) -> None:
        self.call("DELETE", "/sandboxes/" + sandbox_id)


def processor_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


async def measure_create(service: Service) -> None:
    from agent_sandbox import ProviderSandbox

    ours, own = [], []
    # Seconds of a processor, which a busy machine changes less: the host's, for the create; the
    # plugin's, from its start to its end.
    host_work, plugin_work = [], []
    for number in range(ROUNDS // 2 + 1):
        begin, work, children = time.perf_counter(), time.process_time(), processor_of_children()
        sandbox = await ProviderSandbox.create(provider="opensandbox", template="base", timeout=300)
        taken, work = time.perf_counter() - begin, time.process_time() - work
        await sandbox.kill()
        children = processor_of_children() - children
        begin = time.perf_counter()
        sandbox_id = service.create()
        alone = time.perf_counter() - begin
        service.delete(sandbox_id)
        if number:  # the first one fills caches
            ours.append(taken)
            own.append(alone)
            host_work.append(work)
            plugin_work.append(children)
    whole, base = statistics.median(ours), statistics.median(own)
    print(f"     create {whole * 1e3:.1f} ms, the service alone {base * 1e3:.1f} ms (medians)")
    work, children = statistics.median(host_work), statistics.median(plugin_work)
    print(f"     of a processor: host {work * 1e3:.1f} ms, plugin {children * 1e3:.1f} ms")
    report("create beyond the service", whole - base, "s", MAX_CREATE_SECONDS)


# --- memory


def memory_mib(plugin: Plugin) -> float:
    for line in Path(f"/proc/{plugin.process.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no VmHWM")


def measure_memory(name: str, config: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as data:
        plugin = Plugin(executable(), data)
        plugin.initialize(config)
        sandbox_id = plugin.create()["sandbox_id"]
        plugin.shell(sandbox_id, "head -c 50000000 /dev/zero | base64")
        report(f"most memory, {name}", memory_mib(plugin), "MiB", MAX_MEMORY_MIB)
        plugin.write(sandbox_id, "/tmp/x", os.urandom(4 << 20))
        report(f"with an upload of 4 MiB, {name}", memory_mib(plugin), "MiB", MAX_MEMORY_MIB)
        plugin.call("sandbox.kill", {"sandbox_id": sandbox_id})
        plugin.close()


def main() -> None:
    measure_start()
    local = (os.environ["LOCAL_OPENSANDBOX"], "--listen=127.0.0.1:0")
    front = (os.environ["SANDBOX_BRIDGE"], "--listen=127.0.0.1:0")
    with (
        tempfile.TemporaryDirectory() as home,
        Program(*local, says=OPENSANDBOX_LISTENS) as service,
        Program(*front, f"--upstream={service.place}", says=BRIDGE_LISTENS) as bridge,
    ):
        sdk = Sdk(Path(home))
        assert sdk.providers("install", str(plugin_directory()), "--yes").code == 0
        os.environ.update(sdk.environment({"ABX_OPENSANDBOX_BASE_URL": service.place}))
        asyncio.run(measure_create(Service(service.place)))
        for name, config in (
            ("own bridge", {"base_url": service.place}),
            ("remote bridge", {"bridge_address": bridge.place}),
        ):
            measure_memory(name, config)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()

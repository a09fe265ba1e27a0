# SPDX-License-Identifier: Apache-2.0
"""What a real server and a stock daemon do to a client that is not careful. Each test fails without
the care; where the trap itself can be seen, it is seen first."""

from __future__ import annotations

import asyncio
import http.client
import time
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest
from astrabox_sandbox_bridge.client import BridgeClient, BridgeError, command, v1
from conftest import Loop, OpenSandbox, Sandboxes, docker, in_container
from real_bridge import RealBridge

DAEMON_PORT = 44772
Verdict = v1.DeleteSandboxResponse
# Every descriptor of the daemon, and every connection of the daemon to itself.
COUNT_DESCRIPTORS = """
for p in /proc/[0-9]*; do
  if [ "$(readlink $p/exe)" = /opt/opensandbox/execd ]; then ls $p/fd | wc -l; fi
done"""
SELF_CONNECTIONS = "grep -c ' 0100007F:AEE4 ' /proc/net/tcp || true"


def get(url: str, headers: dict[str, str] | None = None) -> tuple[int, bytes, dict[str, str]]:
    """GET without a proxy, a cookie jar or a redirect."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=30)
    try:
        connection.request("GET", parts.path or "/", headers=headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read(), dict(answer.getheaders())
    finally:
        connection.close()


def daemon_endpoint(opensandbox: OpenSandbox, sandbox_id: str) -> str:
    """As the server hands it out."""
    _, body, _ = get(f"{opensandbox.url}/v1/sandboxes/{sandbox_id}/endpoints/{DAEMON_PORT}",
                     {"OPEN-SANDBOX-API-KEY": opensandbox.api_key})
    return "http://" + body.decode().split('"endpoint":"')[1].split('"')[0]


def test_ten_thousand_calls_cost_the_daemon_no_descriptor(
    opensandbox: OpenSandbox, client: BridgeClient, sandboxes: Sandboxes, loop: Loop
) -> None:
    """The server's form of the endpoint leads through the daemon's own reverse proxy, which opens a
    connection of the daemon to itself a request; stock ones keep it for ten minutes."""
    box = sandboxes.make()
    endpoint = daemon_endpoint(opensandbox, box)
    assert endpoint.endswith(f"/proxy/{DAEMON_PORT}")

    async def calls(count: int) -> None:
        for _ in range(count):
            await client.files.stat(box, "/etc/passwd")

    async def many() -> None:
        await asyncio.gather(*(calls(625) for _ in range(16)))

    loop(calls(20))
    before = int(in_container(box, COUNT_DESCRIPTORS))
    loop(many(), seconds=170)
    after = int(in_container(box, COUNT_DESCRIPTORS))
    assert after <= before + 16, "at most one connection for each call at a time"
    assert int(in_container(box, SELF_CONNECTIONS)) == 0
    get(endpoint + "/ping")
    assert int(in_container(box, SELF_CONNECTIONS)) > 0, "the measure sees what it is for"


COOKIE_SERVER = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        cookie = self.headers.get("Cookie", "none")
        self.send_response(200)
        if self.path.endswith("/login"):
            self.send_header("Set-Cookie", "sess=alice-secret")
        self.send_header("Content-Length", str(len(cookie)))
        self.end_headers()
        self.wfile.write(cookie.encode())
http.server.HTTPServer(("", 8000), Handler).serve_forever()
"""


def test_the_shared_cookie_jar_is_not_on_the_way(
    opensandbox: OpenSandbox, client: BridgeClient, sandboxes: Sandboxes, loop: Loop
) -> None:
    """The server's proxy has one cookie jar for all; endpoints of the bridge go round it."""
    box = sandboxes.make(entrypoint=["python3", "-c", COOKIE_SERVER])

    async def url(route: v1.EndpointRoute.ValueType) -> str:
        return (await client.sandboxes.endpoint(box, 8000, route=route)).url

    proxy = loop(url(v1.ENDPOINT_ROUTE_SERVER_PROXY))
    direct = loop(url(v1.ENDPOINT_ROUTE_UNSPECIFIED))
    assert opensandbox.url in proxy
    assert opensandbox.url not in direct

    async def up() -> None:
        while (await asyncio.to_thread(get, direct + "/"))[0] != 200:
            await asyncio.sleep(0.05)

    loop(up(), seconds=30)
    assert get(proxy + "/login")[2]["set-cookie"] == "sess=alice-secret"
    assert get(proxy + "/")[1] == b"sess=alice-secret", "the trap: another caller, alice's cookie"
    get(direct + "/login")
    assert get(direct + "/")[1] == b"none"
    endpoint = loop(client.sandboxes.endpoint(box, 8000))
    assert opensandbox.api_key not in str(endpoint), "the server's key is nobody else's business"


def test_deletes_at_once_all_tell_the_truth(
    client: BridgeClient, sandboxes: Sandboxes, loop: Loop
) -> None:
    """The server answers 500 to all but one of them."""
    gone = {Verdict.VERDICT_CONFIRMED_GONE, Verdict.VERDICT_ALREADY_GONE}
    for _ in range(3):
        box = sandboxes.make()

        async def at_once(box: str = box) -> list[v1.DeleteSandboxResponse]:
            return await asyncio.gather(*(client.sandboxes.delete(box) for _ in range(4)))

        answers = loop(at_once())
        assert {answer.verdict for answer in answers} <= gone, answers


@pytest.mark.parametrize(("entrypoint", "why"), [
    (["sh", "-c", "exit 3"], "code 3"), (["no-such-program"], "code 127")])
def test_running_is_not_believed_of_a_dead_container(
    client: BridgeClient, loop: Loop, opensandbox: OpenSandbox, entrypoint: list[str], why: str
) -> None:
    """The server says 202 Running before it knows; the bridge looks, and deletes what it made."""
    before = docker("ps", "--all", "--quiet").split()
    with pytest.raises(BridgeError, match=why) as failed:
        loop(client.sandboxes.create(
            v1.SandboxSpec(image=opensandbox.image, entrypoint=entrypoint)))
    assert failed.value.reason == "SANDBOX_FAILED"
    assert sorted(docker("ps", "--all", "--quiet").split()) == sorted(before)


def test_a_refused_request_shows_no_secret(
    client: BridgeClient, bridge: RealBridge, loop: Loop, opensandbox: OpenSandbox
) -> None:
    """The body of a 422 echoes the whole request, environment included."""
    spec = v1.SandboxSpec(image=opensandbox.image, env=[
        v1.EnvVar(name="PASSWORD", value="CANARY-422"),
        v1.EnvVar(name="OPENSANDBOX_LIFECYCLE", value="CANARY-423")])
    with pytest.raises(BridgeError) as failed:
        loop(client.sandboxes.create(spec))
    assert failed.value.reason in ("UPSTREAM_REJECTED", "INVALID_ARGUMENT")
    assert "CANARY" not in repr(failed.value) + str(vars(failed.value))
    assert "CANARY" not in bridge.log


async def first_output(events: AsyncIterator[v1.ExecEvent]) -> None:
    async for event in events:
        if event.WhichOneof("event") == "output_batch":
            return


async def last_outcome(events: AsyncIterator[v1.ExecEvent]) -> v1.Outcome:
    outcome = v1.Outcome()
    async for event in events:
        if event.WhichOneof("event") == "exited":
            outcome = event.exited.outcome
    return outcome


@pytest.mark.parametrize("stock", [False, True], ids=["own", "stock"])
@pytest.mark.parametrize("through_server", [False, True], ids=["direct", "server proxy"])
def test_a_sandbox_that_dies_makes_a_lost_command_not_a_finished_one(
    client: BridgeClient, proxied: BridgeClient, sandboxes: Sandboxes, loop: Loop, stock: bool,
    through_server: bool,
) -> None:
    """Through the server's proxy the cut stream ends like a complete one."""
    box = sandboxes.make_stock() if stock else sandboxes.make()
    through = proxied if through_server else client

    async def work() -> v1.Outcome:
        events = through.execs.execute(box, command("echo up; exec sleep 600"))
        await first_output(events)
        await asyncio.to_thread(docker, "kill", f"sandbox-{box}")
        return await last_outcome(events)

    outcome = loop(work())
    assert outcome.WhichOneof("kind") == "lost", outcome
    assert not outcome.lost.maybe_running
    with pytest.raises(BridgeError) as refused:
        loop(through.execs.run(box, command("true")))
    assert refused.value.reason == "SANDBOX_NOT_RUNNING", refused.value


def test_a_command_is_known_as_soon_as_it_has_an_id(
    client: BridgeClient, sandboxes: Sandboxes, loop: Loop
) -> None:
    """A stock daemon's status answers 404 for some milliseconds after `init`."""
    box = sandboxes.make_stock()

    async def work() -> None:
        for _ in range(20):
            async for event in client.execs.execute(box, command("sleep 600"), detached=True):
                if event.WhichOneof("event") == "started":
                    info = await client.execs.get(box, event.started.exec_id)
                    assert info.running
                    await client.execs.signal(box, event.started.exec_id, "KILL")

    loop(work())


@pytest.mark.parametrize("through_server", [False, True], ids=["direct", "server proxy"])
def test_a_call_ends_with_its_command(
    client: BridgeClient, proxied: BridgeClient, sandboxes: Sandboxes, loop: Loop,
    through_server: bool,
) -> None:
    """A stock daemon holds the stream open after the last event: for a second, here for a minute."""
    box = sandboxes.make_stock({"EXECD_API_GRACE_SHUTDOWN": "60s"})
    execs = (proxied if through_server else client).execs

    async def seconds(fidelity: v1.Fidelity.ValueType) -> float:
        begin = time.monotonic()
        async for _ in execs.execute(box, command("echo hi", fidelity=fidelity)):
            pass
        return time.monotonic() - begin

    for fidelity in (v1.FIDELITY_BYTES, v1.FIDELITY_LINES):
        assert loop(seconds(fidelity)) < 30


def test_a_killed_daemon_is_not_called_running(
    client: BridgeClient, sandboxes: Sandboxes, loop: Loop
) -> None:
    """The server goes on to call the sandbox Running, and nothing restarts the daemon."""
    box = sandboxes.make()
    in_container(box, """
        for p in /proc/[0-9]*; do
          if [ "$(readlink $p/exe)" = /opt/opensandbox/execd ]; then kill -9 ${p#/proc/}; fi
        done""")
    with pytest.raises(BridgeError) as refused:
        loop(client.execs.run(box, command("true")))
    assert refused.value.reason == "SANDBOX_UNREACHABLE"
    seen = loop(client.sandboxes.probe(box, check_daemon=True))
    assert seen.exists.sandbox.state == v1.SANDBOX_STATE_RUNNING
    assert seen.exists.daemon == v1.ProbeSandboxResponse.DAEMON_STATE_SILENT

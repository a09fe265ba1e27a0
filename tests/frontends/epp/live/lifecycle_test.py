# SPDX-License-Identifier: Apache-2.0
"""sandbox.* on the local OpenSandbox, through the plugin's process, in both modes."""

from __future__ import annotations

import datetime
import urllib.request
from typing import Any

import pytest
from conftest import API_KEY, Spawn
from epp_host import Plugin

SEVEN = {"creating", "running", "paused", "pausing", "stopping", "stopped", "error"}


def when(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def lifetime(record: dict[str, Any]) -> float:
    return (when(record["expires_at"]) - when(record["created_at"])).total_seconds()


@pytest.fixture
def sandbox(plugin: Plugin):
    record = plugin.create()
    yield record
    plugin.call("sandbox.kill", {"sandbox_id": record["sandbox_id"]})


def test_create_answers_a_usable_sandbox(plugin: Plugin, sandbox: dict[str, Any]) -> None:
    assert sandbox["status"] == "running"
    assert sandbox["template"] == "base"
    assert "/" not in sandbox["sandbox_id"] and ":" not in sandbox["sandbox_id"]
    assert 295 <= lifetime(sandbox) <= 305
    assert not {"url", "envd_url", "envd_access_token"} & sandbox.keys()
    assert plugin.shell(sandbox["sandbox_id"], "echo hi").stdout == "hi\n"


def test_get_connect_and_list_agree(plugin: Plugin, sandbox: dict[str, Any]) -> None:
    sandbox_id = sandbox["sandbox_id"]
    got = plugin.call("sandbox.get", {"sandbox_id": sandbox_id})
    connected = plugin.call("sandbox.connect", {"sandbox_id": sandbox_id})
    listed = plugin.call("sandbox.list", {"limit": 100})["sandboxes"]
    (mine,) = [r for r in listed if r["sandbox_id"] == sandbox_id]
    assert got == connected == mine
    assert got["created_at"] == sandbox["created_at"]


def test_another_plugin_process_finds_it(
    spawn: Spawn, config: dict[str, Any], sandbox: dict[str, Any]
) -> None:
    other = spawn(config)
    sandbox_id = sandbox["sandbox_id"]
    assert other.call("sandbox.connect", {"sandbox_id": sandbox_id})["status"] == "running"
    assert other.shell(sandbox_id, "echo there").stdout == "there\n"


def test_metadata_environment_and_image_arrive(plugin: Plugin) -> None:
    record = plugin.create(
        template="python:3.12-slim", metadata={"team": "a", "n": "1"}, envs={"GREETING": "hello $x"}
    )
    sandbox_id = record["sandbox_id"]
    try:
        assert record["metadata"] == {"team": "a", "n": "1"}
        assert (
            plugin.call("sandbox.get", {"sandbox_id": sandbox_id})["metadata"] == record["metadata"]
        )
        assert record["image"] == "python:3.12-slim"
        assert plugin.shell(sandbox_id, 'printf %s "$GREETING"').stdout == "hello $x"
    finally:
        plugin.call("sandbox.kill", {"sandbox_id": sandbox_id})


def test_short_lifetimes_are_raised_to_a_minute(plugin: Plugin) -> None:
    record = plugin.create(timeout=5)
    try:
        assert record["timeout_raised"] is True
        assert 55 <= lifetime(record) <= 65
    finally:
        plugin.call("sandbox.kill", {"sandbox_id": record["sandbox_id"]})


def test_set_timeout_counts_from_now_on_the_servers_clock(
    plugin: Plugin, sandbox: dict[str, Any]
) -> None:
    sandbox_id = sandbox["sandbox_id"]
    for asked, got in [(900, 900), (1.5, 60), (59, 60), (60, 60), ("120", 120)]:
        stored = plugin.call("sandbox.set_timeout", {"sandbox_id": sandbox_id, "timeout": asked})
        expires = plugin.call("sandbox.get", {"sandbox_id": sandbox_id})["expires_at"]
        assert stored["expires_at"] == expires
        left = (when(expires) - datetime.datetime.now(datetime.UTC)).total_seconds()
        assert got - 10 <= left <= got + 5, (asked, left)
        assert stored["timeout_raised"] is (float(asked) < 60)


@pytest.mark.parametrize(
    "bad", [0, -5, None, "x", 10**30, float("inf"), float("nan"), True, [], 2**53 * 1000]
)
def test_set_timeout_refuses_what_is_no_lifetime(
    plugin: Plugin, shared_sandbox: str, bad: Any
) -> None:
    error = plugin.error("sandbox.set_timeout", {"sandbox_id": shared_sandbox, "timeout": bad})
    assert error.code == -32006
    assert "timeout" in error.message


def test_pause_and_resume(plugin: Plugin, sandbox: dict[str, Any]) -> None:
    sandbox_id = sandbox["sandbox_id"]
    plugin.call("sandbox.pause", {"sandbox_id": sandbox_id})
    # A look neither wakes nor renews.
    before = plugin.call("sandbox.get", {"sandbox_id": sandbox_id})
    assert before["status"] == "paused"
    assert plugin.call("sandbox.get", {"sandbox_id": sandbox_id}) == before
    paused = plugin.call("sandbox.list", {"limit": 100, "status": "paused"})["sandboxes"]
    assert sandbox_id in [r["sandbox_id"] for r in paused]
    plugin.call("sandbox.resume", {"sandbox_id": sandbox_id})
    assert plugin.shell(sandbox_id, "echo back").stdout == "back\n"
    plugin.call("sandbox.pause", {"sandbox_id": sandbox_id})
    assert plugin.call("sandbox.connect", {"sandbox_id": sandbox_id})["status"] == "running"
    assert plugin.shell(sandbox_id, "echo again").stdout == "again\n"


def test_kill_is_idempotent_and_true(plugin: Plugin) -> None:
    sandbox_id = plugin.create()["sandbox_id"]
    assert plugin.call("sandbox.kill", {"sandbox_id": sandbox_id})["verdict"] == "confirmed_gone"
    assert plugin.call("sandbox.kill", {"sandbox_id": sandbox_id})["verdict"] == "already_gone"
    gone = {"sandbox_id": "does-not-exist-0000"}
    assert plugin.call("sandbox.kill", gone)["verdict"] == "already_gone"
    assert plugin.error("sandbox.get", {"sandbox_id": sandbox_id}).sdk_code == "E2009"


UNKNOWN_CALLS: dict[str, dict[str, Any]] = {
    "sandbox.get": {},
    "sandbox.connect": {},
    "sandbox.set_timeout": {"timeout": 60},
    "sandbox.pause": {},
    "sandbox.resume": {},
    "exec.start": {"cmd": "true", "args": [], "env": {}, "cwd": "", "user": "", "timeout": 5},
    "exec.run": {"cmd": "true"},
    "process.list": {},
    "process.signal": {"pid": 5, "signal": 9},
    "files.read": {"path": "/etc/hostname"},
    "files.write": {"path": "/x", "content_b64": ""},
    "files.list": {"path": "/"},
    "files.stat": {"path": "/"},
    "files.mkdir": {"path": "/x"},
    "files.remove": {"path": "/x"},
    "files.move": {"source": "/x", "destination": "/y"},
    "files.search": {"path": "/", "pattern": "*"},
    "files.chmod": {"path": "/x", "mode": "644"},
    "ports.url": {"port": 8080},
    "pty.open": {"cols": 80, "rows": 24},
}


@pytest.mark.parametrize("method", sorted(UNKNOWN_CALLS))
def test_an_unknown_sandbox_is_e2009(plugin: Plugin, method: str) -> None:
    error = plugin.error(method, {"sandbox_id": "does-not-exist-0000", **UNKNOWN_CALLS[method]})
    assert (error.code, error.sdk_code) == (-32002, "E2009"), error


@pytest.mark.parametrize(
    "odd", ["../sandboxes", "a/b", "a%2Fb", "a?x=1", "a#b", "x" * 10_000, "A B", "a\nb"]
)
@pytest.mark.parametrize("method", ["sandbox.get", "exec.start", "files.read", "ports.url"])
def test_ids_of_other_forms_reach_no_other_route(plugin: Plugin, method: str, odd: str) -> None:
    error = plugin.error(method, {"sandbox_id": odd, **UNKNOWN_CALLS[method]})
    assert (error.code, error.sdk_code) == (-32002, "E2009"), error


def test_an_empty_id_is_refused(plugin: Plugin) -> None:
    for method in ("sandbox.get", "sandbox.kill", "exec.start"):
        params = {"sandbox_id": "", **UNKNOWN_CALLS.get(method, {})}
        assert plugin.error(method, params).code == -32006


def test_list_pages_lose_and_repeat_nothing(plugin: Plugin) -> None:
    ids = {plugin.create(metadata={"batch": "pages"})["sandbox_id"] for _ in range(5)}
    try:
        seen: list[str] = []
        cursor = None
        while True:
            params: dict[str, Any] = {"limit": 2}
            if cursor is not None:
                params["cursor"] = cursor
            page = plugin.call("sandbox.list", params)
            assert page["sandboxes"] or page["next"] is None
            assert len(page["sandboxes"]) <= 2
            seen += [r["sandbox_id"] for r in page["sandboxes"]]
            assert all(r["status"] in SEVEN for r in page["sandboxes"])
            cursor = page["next"]
            assert cursor is None or isinstance(cursor, str)
            if cursor is None:
                break
        assert ids <= set(seen)
        assert len(seen) == len(set(seen))
        # Newest first: what was just made is on the first page.
        first = plugin.call("sandbox.list", {"limit": 100})["sandboxes"]
        assert ids <= {r["sandbox_id"] for r in first}
        assert plugin.call("sandbox.list", {"limit": 100, "status": "stopped"})["next"] is None
    finally:
        for sandbox_id in ids:
            plugin.call("sandbox.kill", {"sandbox_id": sandbox_id})


def test_resources_reach_the_server(plugin: Plugin) -> None:
    record = plugin.create(cpu=1, memory=256)
    plugin.call("sandbox.kill", {"sandbox_id": record["sandbox_id"]})
    assert (
        plugin.error("sandbox.create", {"template": "base", "timeout": 300, "disk": 5}).code
        == -32003
    )


def test_secure_access_is_refused_where_there_is_no_gateway(plugin: Plugin) -> None:
    error = plugin.error("sandbox.create", {"template": "base", "timeout": 300, "secure": True})
    assert error.code in (-32003, -32000), error


def test_ports_url_reaches_the_port(plugin: Plugin, sandbox: dict[str, Any]) -> None:
    sandbox_id = sandbox["sandbox_id"]
    plugin.shell(
        sandbox_id,
        "cd /tmp && echo served >f && nohup python3 -m http.server 8080 >/dev/null 2>&1 &",
    )
    for _ in range(100):
        if plugin.shell(sandbox_id, "true </dev/tcp/127.0.0.1/8080").code == 0:
            break
        if plugin.run(sandbox_id, "bash", ["-c", "true </dev/tcp/127.0.0.1/8080"]).code == 0:
            break
    answer = plugin.call("ports.url", {"sandbox_id": sandbox_id, "port": 8080})
    assert answer["provider_id"] == "opensandbox"
    assert answer["sandbox_id"] == sandbox_id
    assert answer["port"] == 8080
    assert answer["authentication_audience"] == "gateway"
    assert answer["path_mode"] == "prefix"
    assert all(isinstance(v, str) for v in answer["headers"].values())
    assert API_KEY not in str(answer)
    request = urllib.request.Request(answer["url"].rstrip("/") + "/f", headers=answer["headers"])
    assert urllib.request.urlopen(request, timeout=10).read() == b"served\n"


@pytest.mark.parametrize("bad", [0, -1, 65536, True, "80", 80.5, None, "80/../.."])
def test_ports_url_refuses_what_is_no_port(plugin: Plugin, shared_sandbox: str, bad: Any) -> None:
    assert plugin.error("ports.url", {"sandbox_id": shared_sandbox, "port": bad}).code == -32006

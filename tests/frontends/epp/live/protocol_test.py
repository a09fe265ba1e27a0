# SPDX-License-Identifier: Apache-2.0
"""The plugin's process as its host sees it: start, lines, ids, what is printed. Needs no service:
most tests configure an address where nothing listens."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import NOWHERE, Spawn, program
from epp_host import Plugin
from program import memory


@pytest.fixture
def offline(spawn: Spawn) -> Plugin:
    return spawn(NOWHERE)


def works(plugin: Plugin) -> None:
    """An ordinary call is answered."""
    assert plugin.error("sandbox.kill", {"sandbox_id": ""}).code == -32006


# --- the start


def test_initialize_repeats_the_manifest(spawn: Spawn, manifest: dict[str, Any]) -> None:
    result = spawn().initialize({})
    assert result["protocol"] == "epp/1"
    assert result["operation_contract_version"] == 1
    assert type(result["operation_contract_version"]) is int
    assert result["operations"] == manifest["operations"]
    assert result["workflow_inputs"] == manifest["workflow"]["inputs"]
    assert result["startup_modes"] == manifest["workflow"]["startups"]
    assert result["features"] == manifest["features"]["supported"]


@pytest.fixture(scope="session")
def manifest() -> dict[str, Any]:
    import tomllib

    return tomllib.loads(Path(program("MANIFEST")).read_text())


def test_initialize_connects_to_nothing(spawn: Spawn) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.3)
        for key in ("base_url", "bridge_address"):
            address = f"127.0.0.1:{server.getsockname()[1]}"
            plugin = spawn({key: "http://" + address})
            with pytest.raises(TimeoutError):
                server.accept()
            plugin.close()


BAD_CONFIG: list[tuple[dict[str, Any], str]] = [
    ({"use_server_proxy": "maybe"}, "use_server_proxy"),
    ({"ready_timeout": "abc"}, "ready_timeout"),
    ({"ready_timeout": -1}, "ready_timeout"),
    ({"network_policy": "{'a': 1}"}, "network_policy"),
    ({"network_policy": "{"}, "network_policy"),
    ({"registry_username": "u"}, "registry_password"),
    ({"registry_password": "p-canary"}, "registry_username"),
    ({"base_url": "ftp://h"}, "base_url"),
    ({"base_url": "http://u:p-canary@h"}, "base_url"),
    ({"domain": "h", "protocol": "gopher"}, "protocol"),
    ({"entrypoint": "a 'b"}, "entrypoint"),
    ({"image_aliases": "x"}, "image_aliases"),
    ({"bridge_address": "nowhere"}, "bridge_address"),
    ({"api_key": ["p-canary"]}, "api_key"),
]


@pytest.mark.parametrize("config,field", BAD_CONFIG, ids=[f for _, f in BAD_CONFIG])
def test_a_bad_setting_is_named_and_not_shown(
    spawn: Spawn, config: dict[str, Any], field: str
) -> None:
    plugin = spawn()
    error = plugin.error("initialize", {"config": config})
    assert error.code == -32006
    assert error.message.startswith(field)
    assert "p-canary" not in str(plugin.messages) + plugin.stderr.decode()


def test_a_bridge_file_that_cannot_be_read_is_named(spawn: Spawn) -> None:
    for field in ("bridge_ca_file", "bridge_token_file"):
        plugin = spawn({"bridge_address": "https://127.0.0.1:1", field: "/nonexistent/file"})
        error = plugin.error("sandbox.list", {"limit": 1})
        assert error.code == -32006 and field in error.message


# --- lines


def test_every_broken_line_leaves_the_plugin_working(offline: Plugin) -> None:
    def request(number: Any, **changes: Any) -> bytes:
        message = {
            "jsonrpc": "2.0",
            "id": number,
            "method": "sandbox.kill",
            "params": {"sandbox_id": ""},
        }
        message.update(changes)
        return json.dumps({k: v for k, v in message.items() if v is not ...}).encode() + b"\n"

    cases: list[tuple[bytes, Any, int]] = [
        (b"{\n", None, -32700),
        (b"[]\n", None, -32600),
        (b"[" + request(601).strip() + b"]\n", None, -32600),
        (b"17\n", None, -32600),
        (request(602, jsonrpc=...), 602, -32600),
        (request(603, method="no.such"), 603, -32601),
        (request(604, params=[1]), 604, -32602),
        (request(605, params={"sandbox_id": 5}), 605, -32602),
        (request(606, params={}), 606, -32602),
        (request("text"), "text", -32006),
        (request(0), 0, -32006),
        (request(1.5), 1.5, -32006),
        (request(607).replace(b"\n", b"\r\n"), 607, -32006),
        (request(608).replace(b"sandbox_id", b"sandbox_id\xff"), 608, -32700),
        (request(609).strip() + request(6090), 609, -32700),
        (b"\xef\xbb\xbf" + request(610), 610, -32006),
        (request(611, params={"content_b64": "A" * (9 << 20)}), 611, -32000),
        (request(612, params={"x": "[" * 50, "y": [[[[[]]]]]}), 612, -32602),
        (
            b'{"jsonrpc":"2.0","id":613,"params":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
            613,
            -32600,
        ),
    ]
    for line, number, code in cases:
        begin = len(offline.messages)
        offline.raw(line)
        answer = offline.wait_for(lambda m: "error" in m, 20, begin)
        assert answer["error"]["code"] == code, (line[:100], answer)
        assert answer["id"] == number and type(answer["id"]) is type(number), (line[:100], answer)
    for line in (
        b"\n",
        b"   \t\n",
        b"\r\n",
        b'{"jsonrpc":"2.0","method":"no.such.notification"}\n',
    ):
        before = len(offline.messages)
        offline.raw(line)
        works(offline)
        assert len(offline.messages) == before + 1
    works(offline)


def test_a_line_in_single_bytes(offline: Plugin) -> None:
    line = b'{"jsonrpc": "2.0", "id": 77, "method": "sandbox.kill", "params": {"sandbox_id": ""}}\n'
    for byte in line:
        offline.raw(bytes([byte]))
    assert offline.answer(77)["error"]["code"] == -32006


def test_python_numbers_and_half_surrogates(offline: Plugin) -> None:
    for bad in (float("nan"), float("inf"), -float("inf"), 10**30, 10**400, -(10**400)):
        error = offline.error("sandbox.set_timeout", {"sandbox_id": "s", "timeout": bad})
        assert error.code == -32006, bad
    for bad in ("\ud800", "\udc80", "a\udfffb"):
        assert offline.error("files.read", {"sandbox_id": "s", "path": bad}).code == -32006
        assert offline.error("sandbox.get", {"sandbox_id": bad}).code == -32006
    params = {"template": "base", "timeout": 300, "request_timeout": float("nan")}
    assert offline.error("sandbox.create", params).sdk_code == "E5001"


def test_cancel_of_nothing_is_nothing(offline: Plugin) -> None:
    for params in ({"id": 99}, {"id": None}, {"id": {}}, {}, {"id": "x"}, {"id": [1]}):
        offline.notify("$/cancel", params)
    before = len(offline.messages)
    works(offline)
    assert len(offline.messages) == before + 1


def test_requests_come_before_initialize(spawn: Spawn) -> None:
    plugin = spawn()
    assert plugin.error("sandbox.list", {"limit": 1}).code == -32600
    plugin.initialize({})
    assert plugin.error("initialize", {"config": {}}).code == -32600


def test_what_is_not_offered_is_e8004(offline: Plugin) -> None:
    for method in (
        "code.execute",
        "templates.list",
        "files.watch",
        "files.upload_url",
        "process.stdin",
    ):
        error = offline.error(method, {"sandbox_id": "s"})
        assert error.code == -32003 and error.feature, method


def test_a_host_that_floods_is_answered(offline: Plugin) -> None:
    """Far more than may wait: every request is answered, and reading never stops."""
    content = "A" * (7 << 20)
    numbers = [
        offline.start("files.write", {"sandbox_id": "s", "path": "/x", "content_b64": content})
        for _ in range(14)
    ]
    for number in numbers:
        assert "error" in offline.answer(number, 60)
    works(offline)


# --- what is on standard output and error


# All that gRPC can print.
LOUD = {"GRPC_VERBOSITY": "DEBUG", "GRPC_TRACE": "all"}

# All that a host may ask for, and something for every parameter of it.
METHODS = """
    sandbox.create sandbox.connect sandbox.get sandbox.list sandbox.pause sandbox.resume
    sandbox.set_timeout sandbox.kill exec.start exec.run process.list process.signal process.kill
    process.stdin files.read files.write files.list files.stat files.mkdir files.move files.remove
    files.chmod files.search files.watch files.upload_url files.download_url pty.open pty.write
    pty.resize pty.close ports.url no.such
""".split()
PARAMS: dict[str, Any] = {
    "sandbox_id": "s", "template": "base", "timeout": 300, "limit": 1, "cmd": "true", "args": [],
    "env": {}, "cwd": "", "user": "", "path": "/x", "source": "/x", "destination": "/y",
    "pattern": "x", "mode": "0600", "content_b64": "eA==", "process_id": "p", "pid": 1,
    "signal": "TERM", "pty_id": "p", "data_b64": "eA==", "cols": 80, "rows": 24, "port": 80,
}  # fmt: skip


@pytest.mark.parametrize("config", [NOWHERE, {"bridge_address": "127.0.0.1:1"}], ids=["own", "remote"])
def test_only_messages_are_on_stdout(spawn: Spawn, config: dict[str, Any]) -> None:
    """check() at the end of each plugin looks at every line."""
    plugin = spawn(config, env=LOUD)
    numbers = [plugin.start(method, PARAMS) for method in METHODS]
    for number in numbers:
        plugin.answer(number, 60)
    plugin.close()
    assert plugin.stderr  # it did print


def test_only_messages_are_on_stdout_of_a_start_that_fails(spawn: Spawn) -> None:
    plugin = spawn(env=LOUD)
    assert plugin.error("initialize", {"config": {"ready_timeout": "abc"}}).code == -32006
    plugin.process.terminate()
    assert plugin.wait_end(5) == 0
    plugin.check()
    assert len(plugin.messages) == 1
    result = subprocess.run(  # with too little memory to get anywhere
        ["sh", "-c", 'ulimit -v 8000; exec "$0"', program("PROVIDER")],
        input=b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n',
        capture_output=True,
        timeout=10,
    )
    assert result.returncode != 0 and result.stdout == b""


def test_secrets_are_nowhere(spawn: Spawn) -> None:
    canary = "CANARY-5f1e"
    config = {**NOWHERE, "api_key": canary, "registry_username": "u", "registry_password": canary}
    plugin = spawn(config)
    plugin.error("sandbox.create", {"template": "base", "timeout": 300, "envs": {"X": canary}})
    plugin.error(
        "exec.start", plugin.exec_params("s", "echo", [canary], env={"Y": canary}, stdin=canary)
    )
    plugin.error("files.write", {"sandbox_id": "s", "path": "/x", "content_b64": canary + "!"})
    assert canary not in Path(f"/proc/{plugin.process.pid}/cmdline").read_text()
    plugin.close()
    assert canary not in json.dumps(plugin.messages)
    assert canary not in plugin.stderr.decode()


def test_writes_nothing_and_starts_nothing(spawn: Spawn, tmp_path: Path) -> None:
    plugin = spawn(NOWHERE)
    plugin.error("sandbox.list", {"limit": 1})
    children = Path(f"/proc/{plugin.process.pid}/task/{plugin.process.pid}/children").read_text()
    assert children == ""
    plugin.close()
    assert list((tmp_path / "data0").iterdir()) == []


# --- what it is run with


@pytest.mark.parametrize("closed,code", [("<&-", 2), (">&-", 2), ("2>&-", 0)])
def test_standard_streams_that_are_missing(tmp_path: Path, closed: str, code: int) -> None:
    """Whatever file gets a missing stream's number later, it is not taken for the host."""
    process = subprocess.Popen(
        ["sh", "-c", f'exec "$0" {closed}', program("PROVIDER")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
    )
    out, _ = process.communicate(b'{"jsonrpc":"2.0","id":1,"method":"shutdown"}\n', timeout=5)
    assert process.returncode == code
    assert out == (b'{"jsonrpc":"2.0","id":1,"result":{}}\n' if code == 0 else b"")


def test_people_are_told_what_it_is(tmp_path: Path) -> None:
    result = subprocess.run(
        [program("PROVIDER"), "--help"], capture_output=True, text=True, cwd=tmp_path, timeout=5
    )
    assert result.returncode == 2 and "EPP/1" in result.stderr and result.stdout == ""
    result = subprocess.run(
        [program("PROVIDER"), "--version"], capture_output=True, text=True, timeout=5
    )
    assert result.stdout.startswith("opensandbox-provider 0.1.0")


def test_memory_stays_small(spawn: Spawn) -> None:
    plugin = spawn(NOWHERE)
    plugin.error("sandbox.list", {"limit": 1})
    limit = 40 if os.environ.get("PROVIDER_IS_PACKAGED") else 80
    assert memory(plugin.process.pid, "VmRSS") < limit << 20

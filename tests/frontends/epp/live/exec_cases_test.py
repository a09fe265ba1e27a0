# SPDX-License-Identifier: Apache-2.0
"""Cases from the field about commands, through the plugin's process, in both modes."""

from __future__ import annotations

import base64
import hashlib
import random
import time
from typing import Any

import pytest
from conftest import Spawn
from epp_host import Plugin

# Far below what a held-up call would take, far above what a busy machine needs.
SOON = 8


@pytest.mark.parametrize(
    "text", ["abc", "a\nb", "", "a\n\nb\n\n\nc\n", "\n\n", "a\0b\0"], ids=ascii
)
def test_output_ends_as_the_command_ended_it(
    plugin: Plugin, shared_sandbox: str, text: str
) -> None:
    written = text.replace("\n", "\\n").replace("\0", "\\0")
    assert plugin.run(shared_sandbox, "printf", [written]).stdout == text


@pytest.mark.parametrize("code", [1, 2, 42, 126, 127, 128, 137, 255, 300])
def test_a_code_is_data_and_both_streams_are_kept(
    plugin: Plugin, shared_sandbox: str, code: int
) -> None:
    outcome = plugin.shell(shared_sandbox, f"echo o; echo e >&2; exit {code}")
    assert (outcome.stdout, outcome.stderr, outcome.code) == ("o\n", "e\n", code % 256)
    assert outcome.reason == "exited"


def test_a_command_that_the_shell_does_not_find(plugin: Plugin, shared_sandbox: str) -> None:
    outcome = plugin.shell(shared_sandbox, "no-such-command-here")
    assert (outcome.stdout, outcome.code) == ("", 127)
    assert "no-such-command-here" in outcome.stderr


@pytest.mark.parametrize(("name", "code"), [("KILL", 137), ("SEGV", 139), ("TERM", 143)])
def test_death_by_a_signal(plugin: Plugin, shared_sandbox: str, name: str, code: int) -> None:
    outcome = plugin.shell(shared_sandbox, f"echo o; kill -{name} $$")
    assert (outcome.stdout, outcome.code, outcome.reason) == ("o\n", code, "signal")


@pytest.mark.parametrize(
    ("line", "out"), [("cat", ""), ("read x; echo done", "done\n"), ("wc -c", "0\n")]
)
def test_no_input_is_an_end_at_once(
    plugin: Plugin, shared_sandbox: str, line: str, out: str
) -> None:
    """The host's own stdin, which is the plugin's, stays open all the while."""
    begin = time.monotonic()
    outcome = plugin.shell(shared_sandbox, line, timeout=60)
    assert (outcome.stdout, outcome.stderr, outcome.code) == (out, "", 0)
    assert time.monotonic() - begin < SOON


def test_a_mebibyte_of_input_and_its_end(plugin: Plugin, shared_sandbox: str) -> None:
    data = random.Random(14).randbytes((1 << 20) - 1) + b"x"  # no line end
    given = base64.b64encode(data).decode()
    digest = plugin.run(shared_sandbox, "sha256sum", stdin_b64=given).stdout.split()[0]
    assert digest == hashlib.sha256(data).hexdigest()
    assert plugin.run(shared_sandbox, "wc", ["-c"], stdin_b64=given).stdout == f"{1 << 20}\n"
    behind = plugin.shell(shared_sandbox, "cat >/dev/null; echo after", stdin_b64=given)
    assert behind.stdout == "after\n"


def test_a_program_of_several_lines_is_one_argument(plugin: Plugin, shared_sandbox: str) -> None:
    program = "def f():\n  print('\"$HOME\" *')\nf()"
    assert plugin.run(shared_sandbox, "python3", ["-c", program]).stdout == '"$HOME" *\n'


def test_values_of_the_environment(plugin: Plugin, shared_sandbox: str) -> None:
    env = {
        "A": "hello world",
        "B": "a=b=c",
        "C": "l1\nl2\n",
        "D": "$HOME 'q' \"d\" `b` \\",
        "E": "",
        "F": "日\U0001f600",
    }
    outcome = plugin.run(shared_sandbox, "env", ["-0"], env=env)
    seen = dict(entry.split("=", 1) for entry in outcome.stdout.split("\0") if entry)
    assert {name: seen.get(name) for name in env} == env
    assert seen["PATH"]


@pytest.mark.parametrize("name", ["A;touch /tmp/pwn;B", "A B", "1A", "", "A=B", "A\nB"], ids=ascii)
def test_a_crafted_name_runs_nothing(plugin: Plugin, shared_sandbox: str, name: str) -> None:
    params = plugin.exec_params(shared_sandbox, "true", env={name: "x"})
    for method in ("exec.start", "exec.run"):
        error = plugin.error(method, params)
        assert error.code == -32006, error
        assert "env" in error.message
    assert plugin.shell(shared_sandbox, "test -e /tmp/pwn").code == 1


@pytest.mark.parametrize("cwd", ["/no/such", "/etc/passwd"])
def test_a_directory_that_is_not_there_is_told(
    plugin: Plugin, shared_sandbox: str, cwd: str
) -> None:
    """It has a code, as every end has in this protocol, but one with a reason and words."""
    outcome = plugin.run(shared_sandbox, "pwd", cwd=cwd)
    assert (outcome.stdout, outcome.code, outcome.reason) == ("", 126, "spawn_failed")
    assert "working directory" in outcome.stderr
    assert plugin.run(shared_sandbox, "pwd", cwd="").stdout.startswith("/")


@pytest.mark.parametrize(
    "line",
    [
        "sleep 62 & echo started",
        "(setsid sleep 62 &); echo started",
        "nohup sleep 62 >/dev/null 2>&1 & echo started",
    ],
)
def test_a_child_in_the_background_holds_nothing_up(
    plugin: Plugin, shared_sandbox: str, line: str
) -> None:
    begin = time.monotonic()
    outcome = plugin.shell(shared_sandbox, line)
    assert (outcome.stdout, outcome.code) == ("started\n", 0)
    assert time.monotonic() - begin < SOON


def test_a_timeout_stops_what_writes_in_the_background(
    plugin: Plugin, shared_sandbox: str
) -> None:
    line = "(while :; do echo >>/tmp/beat; sleep .1; done) & echo so far; sleep 4848"
    outcome = plugin.shell(shared_sandbox, line, timeout=1)
    assert (outcome.stdout, outcome.code, outcome.reason) == ("so far\n", 124, "timeout")
    # Five beats long nothing comes.
    still = "test -s /tmp/beat && a=$(wc -c </tmp/beat) && sleep .5 && test $a = $(wc -c </tmp/beat)"
    deadline = time.monotonic() + SOON
    while plugin.shell(shared_sandbox, still).code != 0:
        assert time.monotonic() < deadline, "it is still written"


def test_an_aborted_command_does_not_hold_up_the_next(plugin: Plugin, shared_sandbox: str) -> None:
    line = "trap '' TERM; echo up; sleep 600"
    number = plugin.start("exec.start", plugin.exec_params(shared_sandbox, "sh", ["-c", line]))
    plugin.result(number)
    plugin.cancel(number)
    for _ in range(10):
        begin = time.monotonic()
        assert plugin.shell(shared_sandbox, "echo ok").stdout == "ok\n"
        assert time.monotonic() - begin < SOON
    params = plugin.exec_params(shared_sandbox, "echo", ["ok"])
    begin = time.monotonic()
    for number in [plugin.start("exec.start", params) for _ in range(10)]:
        assert plugin.finish(plugin.result(number)["process_id"]).stdout == "ok\n"
    assert time.monotonic() - begin < SOON


def test_a_server_in_the_background_outlives_the_plugin(
    spawn: Spawn, config: dict[str, Any], plugin: Plugin, shared_sandbox: str
) -> None:
    server = (
        "import http.server, os\n"
        "handler = http.server.SimpleHTTPRequestHandler\n"
        "server = http.server.HTTPServer(('127.0.0.1', 0), handler)\n"
        "open('/tmp/port.new', 'w').write(str(server.server_port))\n"
        "os.rename('/tmp/port.new', '/tmp/port')\n"
        "server.serve_forever()"
    )
    other = spawn(config)
    line = 'mkdir /tmp/www; cd /tmp/www; echo served >f; nohup python3 -c "$0" >/dev/null 2>&1 &'
    assert other.run(shared_sandbox, "sh", ["-c", line, server]).code == 0
    other.close()
    client = (
        "import urllib.request as u\n"
        "url = 'http://127.0.0.1:' + open('/tmp/port').read() + '/f'\n"
        "print(u.build_opener(u.ProxyHandler({})).open(url).read().decode(), end='')"
    )
    wait = 'while [ ! -e /tmp/port ]; do sleep .05; done; exec python3 -c "$0"'
    assert plugin.run(shared_sandbox, "sh", ["-c", wait, client]).stdout == "served\n"

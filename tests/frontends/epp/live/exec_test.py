# SPDX-License-Identifier: Apache-2.0
"""exec.* and process.* on the local OpenSandbox, through the plugin's process, in both modes."""

from __future__ import annotations

import base64
import hashlib
import time
from typing import Any

import pytest
from conftest import Spawn
from epp_host import Plugin
from program import memory


def alive(plugin: Plugin, sandbox_id: str, word: str) -> bool:
    """Does a process with this word in its command line run in the sandbox?"""
    script = (
        "import glob, sys\n"
        "for path in glob.glob('/proc/[0-9]*/cmdline'):\n"
        "    try: line = open(path, 'rb').read()\n"
        "    except OSError: continue\n"
        "    if sys.argv[1].encode() in line and b'glob' not in line: print('yes'); break\n"
    )
    return plugin.run(sandbox_id, "python3", ["-c", script, word]).stdout == "yes\n"


def await_gone(plugin: Plugin, sandbox_id: str, word: str, within: float) -> None:
    deadline = time.monotonic() + within
    while alive(plugin, sandbox_id, word):
        assert time.monotonic() < deadline, "the remote process is still there"


def test_streams_come_apart_and_in_order(plugin: Plugin, shared_sandbox: str) -> None:
    outcome = plugin.shell(shared_sandbox, "echo one; sleep .3; echo two; echo err >&2; exit 4")
    assert outcome.stdout == "one\ntwo\n"
    assert outcome.stderr == "err\n"
    assert outcome.code == 4
    assert [n["method"] for n in outcome.notes].count("exec.exit") == 1
    assert outcome.notes[-1]["method"] == "exec.exit"


def test_output_is_live(plugin: Plugin, shared_sandbox: str) -> None:
    params = plugin.exec_params(shared_sandbox, "sh", ["-c", "echo first; sleep 3; echo last"])
    begin = time.monotonic()
    process_id = plugin.call("exec.start", params)["process_id"]
    notes = plugin.notes(process_id, "exec.exit")
    assert next(notes)["params"]["data"] == "first\n"
    assert time.monotonic() - begin < 2.5
    list(notes)


def test_arguments_arrive_exactly(plugin: Plugin, shared_sandbox: str) -> None:
    args = [
        "",
        "-x",
        "a'b\"c",
        "$HOME `id` $(id)",
        "new\nline",
        "tab\t",
        "中 😀",
        "\\",
        "*",
        "~",
        "%s",
    ]
    script = "import sys; sys.stdout.write('\\0'.join(sys.argv[1:]))"
    outcome = plugin.run(shared_sandbox, "python3", ["-c", script, *args])
    assert outcome.stdout.split("\0") == args


def test_a_long_argument_arrives(plugin: Plugin, shared_sandbox: str) -> None:
    text = "x" * (96 * 1024)
    outcome = plugin.run(
        shared_sandbox, "python3", ["-c", "import sys; print(len(sys.argv[1]))", text]
    )
    assert outcome.stdout == f"{len(text)}\n"
    params = plugin.exec_params(shared_sandbox, "true", ["x" * (128 * 1024)])
    error = plugin.error("exec.start", params)
    assert error.code == -32000 and "131072" in error.message


def test_environment_directory_and_user(plugin: Plugin, shared_sandbox: str) -> None:
    env = {"A": "x y", "B": 5, "C": True, "D": None, "E": "", "F": "new\nline '\"$"}
    outcome = plugin.run(
        shared_sandbox,
        "python3",
        ["-c", "import os; print([os.environ.get(k) for k in 'ABCDEF'], os.getcwd())"],
        env=env,
        cwd="/usr",
    )
    assert outcome.stdout == "['x y', '5', 'true', None, '', 'new\\nline \\'\"$'] /usr\n"
    assert plugin.run(shared_sandbox, "id", ["-u"], user="65534").stdout == "65534\n"
    assert plugin.run(shared_sandbox, "id", ["-un"], user="nobody").stdout == "nobody\n"
    assert plugin.run(shared_sandbox, "id", ["-u"], user="0").stdout == "0\n"


def test_a_large_environment_passes(plugin: Plugin, shared_sandbox: str) -> None:
    env = {f"NAME_{i}": "v" * 90 for i in range(1000)}
    outcome = plugin.shell(shared_sandbox, "env | grep -c ^NAME_", env=env)
    assert outcome.stdout == "1000\n"


def test_stdin_is_what_was_given_and_then_ends(plugin: Plugin, shared_sandbox: str) -> None:
    assert plugin.run(shared_sandbox, "cat", stdin="a\nb").stdout == "a\nb"
    data = bytes(range(256)) * 100
    outcome = plugin.run(shared_sandbox, "sha256sum", stdin_b64=base64.b64encode(data).decode())
    assert outcome.stdout.split()[0] == hashlib.sha256(data).hexdigest()
    # Nothing given: a command that reads does not wait.
    begin = time.monotonic()
    assert plugin.run(shared_sandbox, "cat").stdout == ""
    assert time.monotonic() - begin < 3


def test_exit_codes(plugin: Plugin, shared_sandbox: str) -> None:
    assert plugin.shell(shared_sandbox, "exit 255").code == 255
    killed = plugin.shell(shared_sandbox, "kill -KILL $$")
    assert killed.code == 137, killed
    missing = plugin.run(shared_sandbox, "no-such-program-here")
    assert missing.code == 127
    assert missing.stderr


def test_timeout_is_enforced_and_leaves_nothing(plugin: Plugin, shared_sandbox: str) -> None:
    begin = time.monotonic()
    outcome = plugin.shell(shared_sandbox, "echo begun; sleep 4242 & sleep 4242", timeout=1)
    assert outcome.code == 124 and outcome.reason == "timeout"
    assert outcome.stdout == "begun\n"
    assert time.monotonic() - begin < 6
    await_gone(plugin, shared_sandbox, "4242", 3)


def test_a_silent_command_without_a_limit_sends_heartbeats(
    plugin: Plugin, shared_sandbox: str
) -> None:
    outcome = plugin.run(shared_sandbox, "sleep", ["4.5"], timeout=0)
    assert outcome.code == 0
    beats = [n for n in outcome.notes if n["method"] == "exec.heartbeat"]
    assert len(beats) >= 2


def test_cancel_ends_the_remote_command(plugin: Plugin, shared_sandbox: str) -> None:
    params = plugin.exec_params(shared_sandbox, "sh", ["-c", "sleep 4343 & sleep 4343"])
    number = plugin.start("exec.start", params)
    process_id = plugin.result(number)["process_id"]
    while not alive(plugin, shared_sandbox, "4343"):
        pass
    plugin.cancel(number)
    outcome = plugin.finish(process_id)
    assert outcome.code in (130, 137, 143) and outcome.reason == "cancelled"
    await_gone(plugin, shared_sandbox, "4343", 3)


def test_the_end_of_the_conversation_ends_commands(
    spawn: Spawn, config: dict[str, Any], plugin: Plugin, shared_sandbox: str
) -> None:
    for number, end in enumerate(["shutdown", "eof", "sigterm"]):
        word = f"444{number}"
        other = spawn(config)
        other.call("exec.start", other.exec_params(shared_sandbox, "sleep", [word]))
        while not alive(plugin, shared_sandbox, word):
            pass
        if end == "shutdown":
            assert other.close().answered_after is not None
        elif end == "eof":
            other.kill()
            other.wait_end()
        else:
            other.process.terminate()
            other.wait_end()
        await_gone(plugin, shared_sandbox, word, 3)


def test_a_detached_command_lives_on(
    spawn: Spawn, config: dict[str, Any], plugin: Plugin, shared_sandbox: str
) -> None:
    other = spawn(config)
    script = "sleep 2; echo done >/tmp/detached; sleep 4545"
    params = other.exec_params(shared_sandbox, "sh", ["-c", script], detached=True, timeout=0)
    process_id = other.call("exec.start", params)["process_id"]
    other.close()
    deadline = time.monotonic() + 10
    while plugin.shell(shared_sandbox, "cat /tmp/detached 2>/dev/null").stdout != "done\n":
        assert time.monotonic() < deadline
    # Its id means the same to every plugin process.
    plugin.call("process.signal", {"sandbox_id": shared_sandbox, "pid": process_id, "signal": 9})
    await_gone(plugin, shared_sandbox, "4545", 5)


def test_output_is_exact(plugin: Plugin, shared_sandbox: str) -> None:
    crlf = plugin.shell(shared_sandbox, r"printf 'a\r\nb\n\nc'")
    assert crlf.stdout == "a\r\nb\n\nc"
    odd = plugin.shell(shared_sandbox, r"printf '\377\376 ok \200\n'; exit 3")
    assert odd.stdout == "\ufffd\ufffd ok \ufffd\n" and odd.code == 3
    nul = plugin.shell(shared_sandbox, r"printf 'a\0b'")
    assert nul.stdout == "a\0b"
    text = "naive 😀 日本語 " * 3
    slow = (
        "import sys, time\nfor b in sys.argv[1].encode():\n  sys.stdout.buffer.write(bytes([b]));"
    )
    slow += " sys.stdout.buffer.flush()"
    assert plugin.run(shared_sandbox, "python3", ["-c", slow, text]).stdout == text


def test_sixteen_megabytes_on_one_line(plugin: Plugin, shared_sandbox: str) -> None:
    outcome = plugin.shell(shared_sandbox, "head -c 12582912 /dev/zero | base64 -w0", wait=120)
    assert len(outcome.stdout) == 16777216
    assert set(outcome.stdout) == {"A"}
    assert outcome.code == 0
    assert memory(plugin.process.pid) < 90 << 20


def test_many_commands_side_by_side(plugin: Plugin) -> None:
    """All are under way at once, through one bridge and, where it is remote, one connection."""
    sandboxes = [plugin.create()["sandbox_id"] for _ in range(10)]
    numbers = [
        plugin.start("exec.start", plugin.exec_params(sandboxes[i % 10], "sh", ["-c", f"sleep 2; echo {i}"]))
        for i in range(300)
    ]
    for i, number in enumerate(numbers):
        outcome = plugin.finish(plugin.result(number)["process_id"])
        assert (outcome.stdout, outcome.code) == (f"{i}\n", 0)
    for sandbox_id in sandboxes:
        plugin.call("sandbox.kill", {"sandbox_id": sandbox_id})


def test_nothing_waits_for_a_slow_command(plugin: Plugin, shared_sandbox: str) -> None:
    slow = [
        plugin.start("exec.start", plugin.exec_params(shared_sandbox, "sleep", ["60"]))
        for _ in range(10)
    ]
    for number in slow:
        plugin.result(number)
    for method, params in [
        ("sandbox.list", {"limit": 10}),
        ("sandbox.get", {"sandbox_id": shared_sandbox}),
        ("files.read", {"sandbox_id": shared_sandbox, "path": "/etc/passwd"}),
        ("sandbox.kill", {"sandbox_id": "does-not-exist-0000"}),
    ]:
        begin = time.monotonic()
        plugin.call(method, params)
        assert time.monotonic() - begin < 2, method
    for number in slow:
        plugin.cancel(number)


def test_run_gives_one_answer(plugin: Plugin, shared_sandbox: str) -> None:
    params = plugin.exec_params(shared_sandbox, "sh", ["-c", "echo out; echo err >&2; exit 3"])
    result = plugin.call("exec.run", params)
    assert (result["stdout"], result["stderr"], result["exit_code"]) == ("out\n", "err\n", 3)
    late = plugin.call("exec.run", plugin.exec_params(shared_sandbox, "sleep", ["60"], timeout=1))
    assert late["exit_code"] == 124


BAD_EXECS: list[dict[str, Any]] = [
    {"cmd": ""},
    {"cmd": "  "},
    {"cmd": "a\ud800"},
    {"args": ["\udc80"]},
    {"args": ["a\0b"]},
    {"cwd": "/\0"},
    {"cwd": "relative"},
    {"env": {"": "x"}},
    {"env": {"A=B": "x"}},
    {"env": {"A": {}}},
    {"env": {"A": "\ud83d"}},
    {"timeout": "soon"},
    {"user": "1000:x"},
    {"user": "no-such-user-here"},
]


@pytest.mark.parametrize("bad", BAD_EXECS, ids=[ascii(b) for b in BAD_EXECS])
def test_what_cannot_be_run_is_refused_by_name(
    plugin: Plugin, shared_sandbox: str, bad: dict[str, Any]
) -> None:
    error = plugin.error("exec.start", {**plugin.exec_params(shared_sandbox, "true"), **bad})
    assert error.code == -32006, error
    assert next(iter(bad)).rstrip("s") in error.message or "user" in error.message


# --- process.*


def test_processes_are_listed_and_signalled(plugin: Plugin, shared_sandbox: str) -> None:
    number = plugin.start("exec.start", plugin.exec_params(shared_sandbox, "sleep", ["4646"]))
    process_id = plugin.result(number)["process_id"]
    deadline = time.monotonic() + 10
    mine: list[dict[str, Any]] = []
    while not mine:
        assert time.monotonic() < deadline
        listed = plugin.call("process.list", {"sandbox_id": shared_sandbox})["processes"]
        assert all(
            isinstance(p["pid"], int | str) and isinstance(p["command"], str) for p in listed
        )
        mine = [p for p in listed if p["command"].endswith("sleep 4646")]
    plugin.call(
        "process.signal",
        {"sandbox_id": shared_sandbox, "pid": mine[-1]["pid"], "signal": "SIGTERM"},
    )
    assert plugin.finish(process_id).code in (143, 130)


def test_any_signal_reaches_a_command_of_ours(plugin: Plugin, shared_sandbox: str) -> None:
    script = "trap 'echo got; exit 5' USR1; echo ready; while :; do sleep .1; done"
    process_id = plugin.call(
        "exec.start", plugin.exec_params(shared_sandbox, "bash", ["-c", script])
    )["process_id"]
    notes = plugin.notes(process_id, "exec.exit")
    assert next(notes)["params"]["data"] == "ready\n"
    plugin.call("process.signal", {"sandbox_id": shared_sandbox, "pid": process_id, "signal": 10})
    rest = list(notes)
    assert rest[-1]["params"]["exit_code"] == 5


def test_what_cannot_be_signalled(plugin: Plugin, shared_sandbox: str) -> None:
    def signal(pid: Any, number: Any = 15):
        params = {"sandbox_id": shared_sandbox, "pid": pid, "signal": number}
        return plugin.error("process.signal", params)

    assert signal(999_999).code == -32002
    assert signal("f.0123456789abcdef0123456789abcdef.0.0").code == -32002
    for pid in (0, -1, True, 1.5, "9" * 40, "", None, "a b", [1]):
        assert signal(pid).code == -32006, pid
    for number in (0, 65, "TERMINATE", True, 1.5):
        assert signal(999_999, number).code == -32006, number
    error = plugin.error("process.stdin", {"sandbox_id": shared_sandbox, "pid": 1, "data": "x"})
    assert (error.code, error.feature) == (-32003, "process.stdin")


# --- pty.*


def read_terminal(plugin: Plugin, process_id: str, until: bytes, begin: int = 0) -> bytes:
    seen = b""
    for note in plugin.notes(process_id, "pty.exit"):
        if note["method"] == "pty.output":
            seen += base64.b64decode(note["params"]["data_b64"])
        if until in seen:
            return seen
    raise AssertionError(f"{until!r} is not in {seen!r}")


def test_a_terminal_is_a_terminal(plugin: Plugin, shared_sandbox: str) -> None:
    opened = plugin.call("pty.open", {"sandbox_id": shared_sandbox, "cols": 100, "rows": 40})
    process_id = opened["process_id"]

    def write(text: str) -> None:
        data = base64.b64encode(text.encode()).decode()
        params = {"sandbox_id": shared_sandbox, "process_id": process_id, "data_b64": data}
        plugin.call("pty.write", params)

    write("stty size; echo sum$((40+2))\n")
    read_terminal(plugin, process_id, b"sum42")
    assert b"40 100" in read_terminal(plugin, process_id, b"sum42")
    plugin.call(
        "pty.resize",
        {"sandbox_id": shared_sandbox, "process_id": process_id, "cols": 60, "rows": 10},
    )
    write("stty size; echo sum$((50+2))\n")
    assert b"10 60" in read_terminal(plugin, process_id, b"sum52")
    # The program says itself that it runs: a Ctrl-C before that would meet the shell that reads
    # the line.
    write("sh -c 'echo up$((70+2)); exec sleep 100'\n")
    read_terminal(plugin, process_id, b"up72")
    write("\x03")
    write("echo sum$((60+2))\n")
    read_terminal(plugin, process_id, b"sum62")
    write("exit 7\n")
    assert list(plugin.notes(process_id, "pty.exit"))[-1]["params"]["exit_code"] == 7


def test_closing_a_terminal_ends_its_shell(plugin: Plugin, shared_sandbox: str) -> None:
    process_id = plugin.call("pty.open", {"sandbox_id": shared_sandbox, "cols": 80, "rows": 24})[
        "process_id"
    ]
    data = base64.b64encode(b"sleep 4747\n").decode()
    plugin.call(
        "pty.write", {"sandbox_id": shared_sandbox, "process_id": process_id, "data_b64": data}
    )
    while not alive(plugin, shared_sandbox, "4747"):
        pass
    plugin.call("pty.close", {"sandbox_id": shared_sandbox, "process_id": process_id})
    list(plugin.notes(process_id, "pty.exit"))
    await_gone(plugin, shared_sandbox, "4747", 5)

# SPDX-License-Identifier: Apache-2.0
"""Commands through the built sbx, bridge and local OpenSandbox, over real sockets."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import time

import pytest
from conftest import Sbx
from program import eventually


def running(sbx: Sbx, sandbox: str, marker: str) -> bool:
    """Whether a process with the marker on its command line runs in the sandbox."""
    # The brackets keep the pattern from finding itself.
    pattern = f"[{marker[0]}]{marker[1:]}"
    return sbx.run("exec", sandbox, "-c", f"pgrep -f '{pattern}'").returncode == 0


def test_exact_bytes_streams_apart_and_the_exit_code(sbx: Sbx, sandbox: str) -> None:
    ran = sbx.run("exec", sandbox, "-c", r"printf 'a\r\n\377b'; echo err >&2; exit 3")
    assert (ran.returncode, ran.stdout, ran.stderr) == (3, b"a\r\n\xffb", b"err\n")


@pytest.mark.parametrize(("line", "out"), [
    ("printf abc", b"abc"), (r"printf 'a\nb'", b"a\nb"), ("printf ''", b""),
    (r"printf 'a\n\nb\n\n\nc\n'", b"a\n\nb\n\n\nc\n"), (r"printf '\n\n'", b"\n\n"),
    (r"printf 'a\0b\0'", b"a\0b\0"), (r"printf '\377\376 ok \200\n'", b"\xff\xfe ok \x80\n")])
def test_output_is_what_was_printed(sbx: Sbx, sandbox: str, line: str, out: bytes) -> None:
    ran = sbx.run("exec", sandbox, "-c", line)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, out, b"")


def test_a_large_output_is_whole(sbx: Sbx, sandbox: str) -> None:
    ran = sbx.run("exec", sandbox, "-c",
                  "head -c 20000000 /dev/urandom > /tmp/b; sha256sum < /tmp/b >&2; cat /tmp/b")
    assert ran.returncode == 0
    assert len(ran.stdout) == 20_000_000
    assert hashlib.sha256(ran.stdout).hexdigest() == ran.stderr.split()[0].decode()


@pytest.mark.parametrize("code", [0, 1, 2, 42, 124, 125, 126, 127, 128, 137, 255])
def test_exit_codes_are_passed_on(sbx: Sbx, sandbox: str, code: int) -> None:
    assert sbx.run("exec", sandbox, "-c", f"exit {code}").returncode == code


@pytest.mark.parametrize("name", ["KILL", "SEGV", "TERM"])
def test_a_signal_is_no_exit_code_of_its_own(sbx: Sbx, sandbox: str, name: str) -> None:
    ran = sbx.run("exec", sandbox, "-c", f"kill -{name} $$")
    assert ran.returncode == 128 + getattr(signal, f"SIG{name}")


def test_what_cannot_be_started(sbx: Sbx, sandbox: str) -> None:
    assert sbx.run("exec", sandbox, "--", "no-such-program").returncode == 127
    assert sbx.run("exec", sandbox, "--", "/etc/passwd").returncode == 126
    ran = sbx.run("exec", sandbox, "-w", "/no/such", "--", "true")
    assert ran.returncode == 126
    assert b"/no/such" in ran.stderr or b"working directory" in ran.stderr
    ran = sbx.run("exec", sandbox, "-u", "nosuch", "--", "true")
    assert ran.returncode == 126
    assert b"UNKNOWN_USER" in ran.stderr


def test_what_is_not_utf8_is_named_and_not_sent(sbx: Sbx, sandbox: str) -> None:
    bad = os.fsdecode(b"\xff")
    for args, named in (
        (["exec", "--json", sandbox, "--", "echo", bad], "argument 1 of the command"),
        (["exec", "--json", sandbox, "--", bad], "the command"),
        (["exec", "--json", sandbox, "-c", bad], "--shell"),
        (["exec", "--json", sandbox, "-w", bad, "true"], "--cwd"),
        (["exec", "--json", sandbox, "-e", f"A={bad}", "true"], "--env"),
        (["exec", "--json", sandbox, "-e", "HERE", "true"], "the value of HERE here"),
        (["exec", "--json", sandbox, "-u", bad, "true"], "--user"),
        (["exec", "--json", bad, "true"], "word 1"),
        (["info", "--json", bad], "word 1"),
        (["create", "--json", "-l", f"a={bad}"], "--label"),
        (["cp", "--json", "here", f"{sandbox}:/{bad}"], "a place in a sandbox"),
    ):
        ran = sbx.run(*args, env={"HERE": bad})
        assert ran.returncode == (125 if args[0] == "exec" else 2), args
        error = json.loads(ran.stderr)["error"]  # and nothing else
        assert error["reason"] == "USAGE"
        assert error["message"].startswith(f"{named} is not UTF-8"), error


def test_a_timeout_ends_the_whole_group(sbx: Sbx, sandbox: str) -> None:
    began = time.monotonic()
    ran = sbx.run("exec", sandbox, "-t", "1s", "-c", "echo out; sleep 51001 & sleep 51001")
    assert (ran.returncode, ran.stdout) == (124, b"out\n")
    assert time.monotonic() - began < 30
    eventually(lambda: not running(sbx, sandbox, "sleep 51001"), "no sleep is left")


def test_arguments_arrive_as_they_are(sbx: Sbx, sandbox: str) -> None:
    words = ["", "a b", "*", "$(id)", "-n", "l1\nl2", "it's", '"', "\\", "é日\U0001f600"]
    ran = sbx.run("exec", sandbox, "--", "printf", "%s\\0", *words)
    assert ran.stdout == b"".join(word.encode() + b"\0" for word in words)


def test_environment_arrives_as_it_is(sbx: Sbx, sandbox: str) -> None:
    values = {"A": "hello world", "B": "a=b=c", "C": "l1\nl2\n", "D": "$HOME'\"`\\", "E": "",
              "F": "日\U0001f600"}
    options = [word for name, value in values.items() for word in ("-e", f"{name}={value}")]
    ran = sbx.run("exec", sandbox, *options, "-e", "HERE", "--", "env", "-0", env={"HERE": "own"})
    seen = dict(entry.split("=", 1) for entry in ran.stdout.decode().split("\0") if entry)
    assert {name: seen.get(name) for name in values} == values
    assert seen["HERE"] == "own"
    assert seen["PATH"]


@pytest.mark.parametrize("name", ["A;touch /tmp/pwn;B", "A B", "1A", "A\nB"])
def test_crafted_names_are_refused(sbx: Sbx, sandbox: str, name: str) -> None:
    ran = sbx.run("exec", sandbox, "-e", f"{name}=x", "--", "true")
    assert ran.returncode == 125
    assert b"INVALID_ARGUMENT" in ran.stderr
    assert sbx.run("exec", sandbox, "--", "test", "-e", "/tmp/pwn").returncode == 1


def test_stdin_from_a_file_and_a_pipe(sbx: Sbx, sandbox: str) -> None:
    data = os.urandom(1 << 20)
    ran = sbx.run("exec", sandbox, "--", "sha256sum", stdin=data)
    assert ran.stdout.split()[0].decode() == hashlib.sha256(data).hexdigest()
    ran = sbx.run("exec", sandbox, "-c", "cat >/dev/null; echo after", stdin=b"x")
    assert ran.stdout == b"after\n"


@pytest.mark.parametrize(("line", "out"), [("cat", b""), ("read x; echo done", b"done\n"),
                                           ("wc -c", b"0\n")])
def test_no_input_is_an_end_at_once(sbx: Sbx, sandbox: str, line: str, out: bytes) -> None:
    assert sbx.run("exec", sandbox, "-c", line).stdout == out


def test_a_stdin_that_never_closes_does_not_hold_up_a_command(sbx: Sbx, sandbox: str) -> None:
    reader, writer = os.pipe()
    try:
        ran = sbx.run("exec", sandbox, "--", "echo", "hi", stdin=reader)
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"hi\n", b"")
    finally:
        os.close(reader)
        os.close(writer)


def test_a_timeout_holds_beside_a_stdin_that_never_closes(sbx: Sbx, sandbox: str) -> None:
    reader, writer = os.pipe()
    try:
        ran = sbx.run("exec", "-t", "1s", sandbox, "-c", "echo out; sleep 600", stdin=reader)
        assert (ran.returncode, ran.stdout) == (124, b"out\n")
    finally:
        os.close(reader)
        os.close(writer)


def closed(sbx: Sbx, closing: str, *args: str) -> subprocess.CompletedProcess[bytes]:
    """sbx without some of the standard streams: `<&-`, `>&-`, `2>&-`."""
    return subprocess.run(
        ["sh", "-c", f'exec "$0" "$@" {closing}', os.environ["SBX_BINARY"], *args],
        stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60,
        env=os.environ | sbx.environment())


@pytest.mark.parametrize("rest", ["", "<&-", "2>&-", "<&- 2>&-"])
def test_a_closed_stdout_is_an_error_of_writing(sbx: Sbx, sandbox: str, rest: str) -> None:
    # Eight bytes: what an eventfd takes, which would have the free number.
    ran = closed(sbx, f">&- {rest}", "exec", sandbox, "--", "printf", "12345678")
    assert ran.returncode == 125
    if "2" not in rest:
        assert b"cannot write output: Bad file descriptor" in ran.stderr
    assert closed(sbx, f">&- {rest}", "exec", sandbox, "-c", "exit 4").returncode == 4
    assert closed(sbx, f">&- {rest}", "info", sandbox).returncode == 1


def test_a_closed_stdin_is_no_input(sbx: Sbx, sandbox: str) -> None:
    for options in ([], ["-i"]):
        ran = closed(sbx, "<&-", "exec", sandbox, *options, "-c", "wc -c; exit 3")
        assert (ran.returncode, ran.stdout, ran.stderr) == (3, b"0\n", b"")
    # A file that was made of nothing would be made up.
    ran = closed(sbx, "<&-", "cp", "-", f"{sandbox}:/tmp/none")
    assert ran.returncode == 1 and b"Bad file descriptor" in ran.stderr
    assert sbx.run("exec", sandbox, "--", "test", "-e", "/tmp/none").returncode == 1


def test_a_closed_stderr_is_nowhere(sbx: Sbx, sandbox: str) -> None:
    ran = closed(sbx, "2>&-", "exec", sandbox, "-c", "echo hi >&2; echo out; exit 3")
    assert (ran.returncode, ran.stdout) == (3, b"out\n")
    ran = closed(sbx, "<&- 2>&-", "exec", sandbox, "-c", "echo hi >&2; kill -9 $$")
    assert (ran.returncode, ran.stdout) == (137, b"")
    assert closed(sbx, "2>&-", "exec", "none", "--", "true").returncode == 125


def test_output_comes_while_the_command_runs(sbx: Sbx, sandbox: str) -> None:
    line = "mkfifo /tmp/go; echo first; read x < /tmp/go; echo second; exit 6"
    process = sbx.start("exec", sandbox, "-c", line)
    assert process.stdout is not None
    assert process.stdout.readline() == b"first\n"
    assert process.poll() is None
    assert sbx.run("exec", sandbox, "-c", "echo > /tmp/go").returncode == 0
    assert process.communicate(timeout=60)[0] == b"second\n"
    assert process.returncode == 6


def start_beating(sbx: Sbx, sandbox: str, marker: str) -> subprocess.Popen[bytes]:
    """A command that prints once and then runs for ever."""
    process = sbx.start("exec", sandbox, "-c", f"echo up; sleep {marker} & sleep {marker}")
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    assert running(sbx, sandbox, f"sleep {marker}")
    return process


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_kills_the_command(sbx: Sbx, sandbox: str, number: int, code: int) -> None:
    process = start_beating(sbx, sandbox, f"52{code}")
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert err.startswith(b"sbx: interrupted; ")
    eventually(lambda: not running(sbx, sandbox, f"sleep 52{code}"), "no sleep is left")


def test_what_was_ignored_at_the_start_stays_ignored(sbx: Sbx, sandbox: str) -> None:
    """`nohup sbx exec … &` ended with its window, and so did its command."""
    line = "mkfifo /tmp/go; echo up; read x < /tmp/go; exit 5"
    process = subprocess.Popen(
        ["sh", "-c", 'trap "" HUP INT; exec "$0" "$@"', os.environ["SBX_BINARY"],
         "exec", "-n", sandbox, "-c", line],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | sbx.environment())
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGINT)
    assert sbx.run("exec", sandbox, "-c", "echo > /tmp/go").returncode == 0
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (5, b"")


def test_a_client_that_is_cut_off_leaves_nothing_behind(sbx: Sbx, sandbox: str) -> None:
    process = start_beating(sbx, sandbox, "53001")
    process.kill()
    process.communicate()
    eventually(lambda: not running(sbx, sandbox, "sleep 53001"), "no sleep is left", seconds=20)


def test_a_reader_that_goes_away_ends_the_command(sbx: Sbx, sandbox: str) -> None:
    process = sbx.start("exec", sandbox, "-c", "yes 54001")
    assert process.stdout is not None
    assert process.stdout.read(6) == b"54001\n"
    process.stdout.close()
    assert process.wait(60) == 141
    eventually(lambda: not running(sbx, sandbox, "yes 54001"), "no yes is left")


def test_a_background_child_does_not_hold_up_the_command(sbx: Sbx, sandbox: str) -> None:
    began = time.monotonic()
    ran = sbx.run("exec", sandbox, "-c", "nohup sleep 55 >/dev/null 2>&1 & echo started")
    assert (ran.returncode, ran.stdout) == (0, b"started\n")
    assert time.monotonic() - began < 30


def test_detached_runs_on_and_its_output_can_be_had(sbx: Sbx, sandbox: str) -> None:
    exec_id = sbx.text("exec", "-d", sandbox, "-c", "echo one; sleep 1; echo two; exit 7").strip()
    ran = sbx.run("logs", sandbox, exec_id)
    assert (ran.returncode, ran.stdout) == (7, b"one\ntwo\n")


def test_json_is_a_line_an_event(sbx: Sbx, sandbox: str) -> None:
    ran = sbx.run("exec", "--json", sandbox, "-c", r"printf 'x\377'; exit 4")
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    assert ran.returncode == 4
    assert events[0]["started"]["fidelity"] == "BYTES"
    assert {"output": {"stream": "STDOUT", "offset": 0, "data_base64": "eP8="}} in events
    assert events[-1]["drained"]["stdout_bytes"] == 2
    exited = [event["exited"] for event in events if "exited" in event]
    assert [entry["outcome"] for entry in exited] == [{"exit_code": 4}]


def test_an_unknown_sandbox_is_no_exit_code(sbx: Sbx) -> None:
    ran = sbx.run("exec", "00000000-0000-0000-0000-000000000000", "--", "true")
    assert ran.returncode == 125
    assert ran.stderr.startswith(b"sbx: SANDBOX_NOT_FOUND: ")
    assert len(ran.stderr.splitlines()) == 2

# SPDX-License-Identifier: Apache-2.0
"""`sbx shell` on a real terminal, as a person has it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Sbx
from program import Program, eventually
from terminal import PATIENCE_SECONDS, Terminal

CTRL_C, CTRL_D, CTRL_Z, CTRL_BACKSLASH = "\x03", "\x04", "\x1a", "\x1c"


@pytest.fixture
def shell(sbx: Sbx, sandbox: str) -> Iterator[Any]:
    """Starts `sbx shell` and waits for its prompt."""
    terminals = []

    def start(*args: str, prompt: str = r"\$ |# ") -> Terminal:
        terminal = Terminal(sbx, "shell", *args)
        terminals.append(terminal)
        if prompt:
            terminal.until(prompt)
        return terminal

    yield start
    for terminal in terminals:
        terminal.close()


def test_a_session_and_its_exit_code(sbx: Sbx, sandbox: str, shell: Any) -> None:
    terminal = shell(sandbox)
    assert not terminal.restored()
    terminal.type("stty size; echo $TERM; tty >/dev/null && echo 'is a'' terminal'\r")
    terminal.until(r"30 100\r\n")
    terminal.until(r"xterm-mono\r\n")
    terminal.until(r"is a terminal\r\n")
    terminal.type("exit 7\r")
    assert terminal.wait() == 7
    assert terminal.restored()
    assert "\x1b]" not in terminal.screen  # no title was set
    assert sbx.json("ps", sandbox)["processes"] == []


def test_keys_go_to_the_other_side(sandbox: str, shell: Any) -> None:
    terminal = shell(sandbox)
    terminal.type("echo now; cat\r")
    terminal.until("now\r\n")
    terminal.type("typed\r")
    terminal.until(r"typed\r\ntyped\r\n")
    terminal.type(CTRL_C)
    terminal.until(r"\^C")
    terminal.until(r"[$#] ")
    # The program says itself that it runs: a key before that would meet the shell.
    terminal.type("sh -c 'echo now; exec sleep 1000'\r")
    terminal.until("now\r\n")
    terminal.type(CTRL_Z)
    terminal.until("Stopped")
    terminal.type("kill -9 %1; sh -c 'echo now; exec sleep 2000'\r")
    terminal.until("now\r\n")
    terminal.type(CTRL_BACKSLASH)
    terminal.until("Quit")
    terminal.type("echo now; cat; echo ended; (exit 9)\r")
    terminal.until("now\r\n")
    terminal.type(CTRL_D)
    terminal.until("ended\r\n")
    terminal.until(r"[$#] ")
    terminal.type(CTRL_D)
    assert terminal.wait() == 9  # as bash leaves it
    assert terminal.restored()


def test_the_window_is_followed(sandbox: str, shell: Any) -> None:
    terminal = shell(sandbox)
    terminal.type("trap 'stty size' WINCH\r")
    terminal.until(r"[$#] ")
    terminal.resize(11, 55)
    terminal.process.send_signal(signal.SIGWINCH)
    terminal.until(r"11 55\r\n")


@pytest.mark.parametrize(
    ("line", "code"),
    [(["sh", "-c", "exit 3"], 3), (["sh", "-c", "kill -TERM $$"], 143), (["no-such-program"], 127)],
)
def test_a_command_instead_of_the_shell(
    sandbox: str, shell: Any, line: list[str], code: int
) -> None:
    terminal = shell(sandbox, "--", *line, prompt="")
    assert terminal.wait() == code
    assert terminal.restored()


def test_the_last_output_is_whole(sandbox: str, shell: Any) -> None:
    terminal = shell(sandbox, "--", "seq", "20000", prompt="")
    assert terminal.wait() == 0
    assert terminal.screen.split() == [str(n) for n in range(1, 20001)]


def test_tilde_dot_leaves_and_ends_it(sbx: Sbx, sandbox: str, shell: Any) -> None:
    terminal = shell(sandbox)
    terminal.type("sleep 12345\r")
    terminal.until("12345\r\n")
    terminal.type("~.")
    assert terminal.wait() == 125
    assert terminal.restored()
    pattern = "[s]leep 12345"
    eventually(
        lambda: sbx.run("exec", sandbox, "-c", f"pgrep -f '{pattern}'").returncode == 1,
        "the process is gone",
    )


def test_kept_and_come_back_to(sandbox: str, shell: Any) -> None:
    terminal = shell("--keep", sandbox)
    terminal.type("KEPT=yes-it-is\r")
    terminal.until(r"[$#] ")
    terminal.type("~.")
    assert terminal.wait() == 125
    process = re.search(r"--attach (\S+)", terminal.screen).group(1)
    again = shell("--attach", process, sandbox, prompt="")
    again.type("echo $KEPT\r")
    again.until("yes-it-is\r\n")
    third = shell("--attach", process, sandbox, prompt="")
    assert third.wait() == 125
    assert "ALREADY_ATTACHED" in third.screen and third.restored()
    fourth = shell("--attach", process, "--takeover", sandbox, prompt="")
    assert again.wait() == 125
    assert "another client" in again.screen and again.restored()
    fourth.type("exit 5\r")
    assert fourth.wait() == 5


def test_killed_from_outside(sbx: Sbx, sandbox: str, shell: Any) -> None:
    terminal = shell(sandbox)
    terminal.process.send_signal(signal.SIGTERM)
    assert terminal.wait() == 143
    assert terminal.restored()
    assert sbx.json("ps", sandbox)["processes"] == []


def test_the_terminal_is_restored_after_a_crash(sandbox: str, shell: Any) -> None:
    for number in (signal.SIGSEGV, signal.SIGABRT):
        terminal = shell(sandbox)
        assert not terminal.restored()
        terminal.process.send_signal(number)
        assert terminal.wait() == -number
        assert terminal.restored()


def has_ended(pid: int) -> bool:
    """Also when nobody has taken notice of it yet."""
    with contextlib.suppress(OSError):
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return stat.rpartition(")")[2].split()[0] == "Z"
    return True


def children(process: subprocess.Popen[bytes]) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            if int(fields[1]) == process.pid:
                found.append(int(stat.parent.name))
    return found


def test_the_terminal_is_restored_after_a_kill(sandbox: str, shell: Any) -> None:
    terminal = shell(sandbox)
    (guardian,) = children(terminal.process)
    assert not terminal.restored()
    terminal.process.kill()
    assert terminal.wait() == -signal.SIGKILL
    eventually(terminal.restored, "the terminal is as it was")
    eventually(lambda: has_ended(guardian), "nothing is left running")


def test_nothing_stays_behind_at_an_ordinary_end(sandbox: str, shell: Any) -> None:
    terminal = shell(sandbox)
    (guardian,) = children(terminal.process)
    terminal.type("exit\r")
    assert terminal.wait() == 0
    assert not Path(f"/proc/{guardian}").exists()
    assert terminal.restored()


def test_a_closed_window_ends_it(sbx: Sbx, sandbox: str, shell: Any) -> None:
    terminal = shell(sandbox)
    (guardian,) = children(terminal.process)
    os.close(terminal.slave)
    os.close(terminal.master)
    assert terminal.process.wait(PATIENCE_SECONDS) in (125, 129)
    eventually(lambda: has_ended(guardian), "nothing is left running")
    eventually(lambda: sbx.json("ps", sandbox)["processes"] == [], "the process is gone")


def test_there_must_be_a_terminal(sbx: Sbx, sandbox: str) -> None:
    ran = sbx.run("shell", sandbox, stdin=b"exit\n")
    assert ran.returncode == 125
    assert b"sbx exec" in ran.stderr


def test_the_bridge_is_not_there(bridge: Program, shell: Any) -> None:
    assert bridge.place
    terminal = shell("--bridge", "127.0.0.1:1", "sb-1", prompt="")
    assert terminal.wait() == 125
    assert "BRIDGE_UNREACHABLE" in terminal.screen and terminal.restored()

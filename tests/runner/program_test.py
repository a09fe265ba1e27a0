# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest
from program import BRIDGE_LISTENS, OPENSANDBOX_LISTENS, Program, eventually, is_sanitized, memory


def shell(script: str, says: str = r"at (\S+)", **more: object) -> Program:
    return Program("sh", "-c", script, says=says, **more)  # type: ignore[arg-type]


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_it_says_where_it_listens_on_either_stream() -> None:
    for stream in (1, 2):
        with shell(f"echo first; echo at 1.2.3.4:5 >&{stream}; exec sleep 600") as program:
            assert program.place == "1.2.3.4:5"
            assert alive(program.pid)
        assert not alive(program.pid)
        assert program.log == "first\nat 1.2.3.4:5\n"


def test_one_that_ends_instead_fails_with_what_it_said() -> None:
    with pytest.raises(AssertionError, match="(?s)it ended.*cannot bind"):
        shell("echo cannot bind >&2; exit 3")


def test_one_that_never_says_it_is_not_left_running(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"(?s)not within 0\.3 s.*hello"):
        shell(f"echo hello; echo $$ > {tmp_path}/pid; exec sleep 600", seconds=0.3)
    assert not alive(int((tmp_path / "pid").read_text()))


def test_the_exit_code_is_its_own() -> None:
    script = "trap 'echo bye; exit 7' TERM; echo at x; while :; do sleep 0.01; done"
    program = shell(script)
    assert program.stop() == 7
    assert program.log == "at x\nbye\n"
    assert program.stop() == 7, "which is no error, nor another signal to somebody else"
    program.kill()


def test_what_does_not_heed_the_signal_is_killed() -> None:
    # An ignored signal stays ignored in what the shell becomes.
    program = shell("trap '' TERM; echo at x; exec sleep 600")
    assert program.stop(seconds=0.2) == -signal.SIGKILL
    assert not alive(program.pid)


def test_a_later_line_is_waited_for() -> None:
    with shell("echo at x; sleep 0.1; echo admin on 9; exec sleep 600") as program:
        assert program.find(r"admin on (\d+)") == "9"
        assert program.find(r"at (\S+)") == "x", "what was said before counts"
        before = time.monotonic()
        with pytest.raises(AssertionError):
            program.find("never (.)", seconds=0.1)
        assert time.monotonic() - before < 30


def test_much_output_does_not_stop_it_nor_do_odd_bytes() -> None:
    with shell(r"printf '\377\n'; seq 1 100000; echo at end; exec sleep 600") as program:
        assert program.place == "end"
        assert program.log.startswith("�\n1\n2\n")


def test_a_child_that_holds_the_pipe_holds_up_neither_end_nor_log(tmp_path: Path) -> None:
    program = shell(f"sleep 600 & echo $! > {tmp_path}/child; echo at x; wait")
    child = int((tmp_path / "child").read_text())
    try:
        assert program.stop() == -signal.SIGTERM
        assert program.log == "at x\n"
        assert alive(child)
    finally:
        os.kill(child, signal.SIGKILL)


def test_environment_and_session() -> None:
    script = 'echo "at $A,$HOME"; exec sleep 600'
    with shell(script, environment={"A": "a", "PATH": os.environ["PATH"]}) as program:
        assert program.place == "a,"
        assert os.getsid(program.pid) == os.getsid(0)
    with shell(script, own_session=True) as program:
        assert program.place.endswith("," + os.environ["HOME"])
        assert os.getsid(program.pid) == program.pid


@pytest.mark.parametrize(("pattern", "line", "place"), [
    (OPENSANDBOX_LISTENS, "http://127.0.0.1:40404", "http://127.0.0.1:40404"),
    (BRIDGE_LISTENS, 'level=info msg="listening on 127.0.0.1:5"', "127.0.0.1:5"),
    (BRIDGE_LISTENS, 'level=info msg="listening on [::1]:5"', "[::1]:5"),
])
def test_the_patterns_of_our_own_programs(pattern: str, line: str, place: str) -> None:
    with shell(f"echo '{line}'; exec sleep 600", says=pattern) as program:
        assert program.place == place


def test_eventually() -> None:
    turns = iter([False, False, True])
    eventually(lambda: next(turns), "three turns")
    with pytest.raises(AssertionError, match=r"not within 0\.1 s: pigs fly"):
        eventually(lambda: False, "pigs fly", seconds=0.1)


def test_what_a_process_weighs() -> None:
    # One that stays what it is: a shell that becomes `sleep` weighs nothing for a moment.
    waits = "import time; print('at here', flush=True); time.sleep(600)"
    with Program(sys.executable, "-c", waits, says=r"at (\S+)") as program:
        for field in ("VmRSS", "VmHWM"):
            assert 100 << 10 < memory(program.pid, field) < 100 << 20


def test_sanitized_programs_are_known(tmp_path: Path) -> None:
    marked = tmp_path / "program"
    marked.write_bytes(b"...__asan_" + b"init...")
    assert is_sanitized(marked)
    assert not is_sanitized("/bin/sh")

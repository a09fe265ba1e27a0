# SPDX-License-Identifier: Apache-2.0
"""Clauses about commands."""

from __future__ import annotations

import asyncio
import sys
import time

from astrabox.testing._data_checks import DataContractBox, checks_of, raised


async def check_commands_run_as_root(box: DataContractBox) -> None:
    assert (await box.commands.run("id -u")).stdout == "0\n"


async def check_stdin_is_empty(box: DataContractBox) -> None:
    ran = await box.commands.run("cat; echo end", timeout=20.0)
    assert (ran.exit_code, ran.stdout) == (0, "end\n")


async def check_nonzero_exit_is_data(box: DataContractBox) -> None:
    for code in (1, 2, 42, 126, 127, 137, 255):
        ran = await box.commands.run(f"echo out; echo err >&2; exit {code}")
        assert (ran.exit_code, ran.stdout, ran.stderr) == (code, "out\n", "err\n")


async def check_missing_program_is_data(box: DataContractBox) -> None:
    ran = await box.commands.run("no-such-program-here")
    assert ran.exit_code == 127
    assert "no-such-program-here" in ran.stderr


async def check_one_line_of_shell(box: DataContractBox) -> None:
    ran = await box.commands.run(
        "x='a b'; printf '%s|' \"$x\" $x | tr a-z A-Z; false || echo ' $x'"
    )
    assert ran.stdout == "A B|A|B| $x\n"


async def check_output_is_exact(box: DataContractBox) -> None:
    ran = await box.commands.run("printf 'a\\r\\n\\n\\nb'; printf '\\n' >&2")
    assert (ran.stdout, ran.stderr) == ("a\r\n\n\nb", "\n")


async def check_text_is_not_cut_inside_a_character(box: DataContractBox) -> None:
    ran = await box.commands.run("for i in 1 2 3 4 5 6 7 8 9; do printf '☃日é'; sleep 0.01; done")
    assert ran.stdout == "☃日é" * 9


async def check_large_output_is_whole(box: DataContractBox) -> None:
    ran = await box.commands.run("seq 1 400000; seq 1 1000 >&2")
    assert ran.stdout == "".join(f"{i}\n" for i in range(1, 400001))
    assert ran.stderr == "".join(f"{i}\n" for i in range(1, 1001))


async def check_a_signal_is_no_success(box: DataContractBox) -> None:
    ran = await box.commands.run("echo before; kill -KILL $$")
    assert (ran.exit_code, ran.stdout) == (137, "before\n")


async def check_the_deadline_stops_the_command(box: DataContractBox) -> None:
    pid = box.at("pid")
    started = time.monotonic()
    line = f"echo $$ > '{pid}'; sleep 300 & echo $! >> '{pid}'; wait"
    await raised(TimeoutError, box.commands.run(line, timeout=1.0))
    assert time.monotonic() - started < 15
    alive = f"for p in $(cat '{pid}'); do kill -0 $p 2>/dev/null && echo $p; done; true"
    for _ in range(50):
        if (await box.shell(alive)).stdout == "":
            break
        await asyncio.sleep(0.1)
    assert (await box.shell(f"wc -l < '{pid}'")).stdout.strip() == "2"
    assert (await box.shell(alive)).stdout == ""


async def check_commands_do_not_wait_for_each_other(box: DataContractBox) -> None:
    """The first waits for what the second does."""
    flag = box.at("flag")
    waiting = box.commands.run(f"until [ -e '{flag}' ]; do sleep 0.05; done; echo seen")
    setting = box.commands.run(f"touch '{flag}'")
    first, second = await asyncio.wait_for(asyncio.gather(waiting, setting), 30)
    assert (first.stdout, second.exit_code) == ("seen\n", 0)


async def check_background_children_do_not_hold_the_call(box: DataContractBox) -> None:
    started = time.monotonic()
    ran = await box.commands.run("sleep 30 & echo started", timeout=25.0)
    assert ran.stdout == "started\n"
    assert time.monotonic() - started < 15


COMMAND_CHECKS = checks_of(sys.modules[__name__])

# SPDX-License-Identifier: Apache-2.0
"""`sbx cp` both ways, through the built bridge and local OpenSandbox."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import pty
import re
import signal
import stat
import subprocess
import termios
from pathlib import Path

import pytest
from conftest import Sbx, inside
from program import eventually

RANDOM = os.urandom(3_000_003)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Files, modes and links of many kinds."""
    root = tmp_path / "tree"
    (root / "sub/empty").mkdir(parents=True)
    (root / "big").write_bytes(RANDOM)
    (root / "sub/a b$c").write_bytes(b"odd\n")
    (root / "sub/日本").write_bytes(b"")
    (root / "run").write_bytes(b"#!/bin/sh\n")
    (root / "run").chmod(0o750)
    (root / "secret").write_bytes(b"s")
    (root / "secret").chmod(0o400)
    (root / "sub").chmod(0o2755)
    (root / "link").symlink_to("sub/a b$c")
    (root / "dangling").symlink_to("/no/such/place")
    (root / "sub/up").symlink_to("..")
    return root


def look(root: Path) -> dict[str, tuple[str, int, bytes]]:
    """Kind, mode and content or target of everything below."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink():
            found[name] = ("link", 0, os.fsencode(path.readlink()))
        elif path.is_dir():
            found[name] = ("dir", mode(path), b"")
        else:
            found[name] = ("file", mode(path), path.read_bytes())
    return found


def test_a_tree_goes_in_and_comes_back(sbx: Sbx, sandbox: str, tree: Path, tmp_path: Path) -> None:
    assert sbx.json("cp", "-r", str(tree), f"{sandbox}:/tmp") == {
        "files": 5,
        "unchanged": 0,
        "directories": 3,
        "links": 3,
        "bytes": len(RANDOM) + 4 + 10 + 1,
        "failed": 0,
    }
    assert (
        inside(
            sbx, sandbox, "cd /tmp/tree; stat -c %a run secret sub; readlink link dangling sub/up"
        )
        == "750\n400\n2755\nsub/a b$c\n/no/such/place\n..\n"
    )
    assert (
        inside(sbx, sandbox, "sha256sum < /tmp/tree/big").split()[0]
        == hashlib.sha256(RANDOM).hexdigest()
    )
    back = tmp_path / "back"
    assert sbx.json("cp", "-r", f"{sandbox}:/tmp/tree", str(back))["failed"] == 0
    assert look(back) == look(tree)
    assert int((back / "big").stat().st_mtime) == int((tree / "big").stat().st_mtime)


def test_done_again_only_what_differs_is_copied(
    sbx: Sbx, sandbox: str, tree: Path, tmp_path: Path
) -> None:
    sbx.text("cp", "-r", str(tree), f"{sandbox}:/tmp")
    (tree / "run").write_bytes(b"#!/bin/bash\n")
    (tree / "secret").chmod(0o600)
    done = sbx.json("cp", "-r", str(tree), f"{sandbox}:/tmp")
    assert (done["files"], done["unchanged"], done["bytes"]) == (1, 7, 12)
    assert inside(sbx, sandbox, "cd /tmp/tree; stat -c %a secret; cat run") == "600\n#!/bin/bash\n"
    back = str(tmp_path / "back")
    sbx.text("cp", "-r", f"{sandbox}:/tmp/tree", back)
    again = sbx.json("cp", "-r", f"{sandbox}:/tmp/tree/", back)  # now into it
    assert again["files"] == 5
    again = sbx.json("cp", "-r", f"{sandbox}:/tmp/tree/.", back)  # its content over itself
    assert (again["files"], again["unchanged"], again["failed"]) == (0, 8, 0)


def test_a_directory_that_is_there_keeps_its_mode_and_time(
    sbx: Sbx, sandbox: str, tmp_path: Path
) -> None:
    inside(sbx, sandbox, "mkdir -p /tmp/t/sub/new; chmod 1777 /tmp/t /tmp/t/sub; echo x > /tmp/t/f;"
           "chmod 2750 /tmp/t/sub/new; touch -d @1000000000.5 /tmp/t /tmp/t/sub /tmp/t/sub/new")
    home = tmp_path / "home"
    (home / "sub").mkdir(parents=True)
    home.chmod(0o700)
    (home / "sub").chmod(0o750)
    os.utime(home / "sub", (5, 5))
    done = sbx.json("cp", "-r", f"{sandbox}:/tmp/t/.", str(home))
    assert (done["directories"], done["failed"]) == (1, 0)
    assert (mode(home), mode(home / "sub")) == (0o700, 0o750)
    assert home.stat().st_mtime > 1_000_000_001
    assert mode(home / "sub/new") == 0o2750
    assert (home / "sub/new").stat().st_mtime == 1_000_000_000.5
    sbx.text("cp", "-r", f"{sandbox}:/tmp/t", str(home))
    assert mode(home / "t") == 0o1777
    assert (home / "t").stat().st_mtime == 1_000_000_000.5
    # And the other way.
    inside(sbx, sandbox, "mkdir -m 1777 /tmp/u; touch -d @5 /tmp/u")
    sbx.text("cp", "-r", f"{home}/sub/.", f"{sandbox}:/tmp/u")
    assert inside(sbx, sandbox, "stat -c %a /tmp/u") == "1777\n"


def test_times_and_all_bits_of_a_mode_come_along(
    sbx: Sbx, sandbox: str, tmp_path: Path
) -> None:
    (tmp_path / "t/d").mkdir(parents=True)
    (tmp_path / "t/f").write_bytes(b"x")
    (tmp_path / "t/d/g").write_bytes(b"x")
    for name in ("t/d", "t/f", "t"):
        os.utime(tmp_path / name, ns=(0, 1_000_000_000_123_456_789))
    sbx.text("cp", "-r", str(tmp_path / "t"), f"{sandbox}:/tmp")
    assert inside(sbx, sandbox, "cd /tmp/t; stat -c %.Y . f d") == "1000000000.123456789\n" * 3
    for bits in (0o4755, 0o755, 0o2755, 0o1644):
        (tmp_path / "t/f").chmod(bits)
        done = sbx.json("cp", "-r", f"{tmp_path}/t/.", f"{sandbox}:/tmp/t")
        assert (done["files"], done["unchanged"]) == (0, 2)
        assert inside(sbx, sandbox, "stat -c %a /tmp/t/f") == f"{bits:o}\n"


def test_single_files_and_where_they_go(sbx: Sbx, sandbox: str, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"one")
    sbx.text("cp", str(tmp_path / "f"), f"{sandbox}:/tmp/name")
    assert inside(sbx, sandbox, "cat /tmp/name") == "one"
    sbx.text("cp", str(tmp_path / "f"), f"{sandbox}:/tmp")
    assert inside(sbx, sandbox, "cat /tmp/f") == "one"
    for wrong in (
        [str(tmp_path / "f"), f"{sandbox}:/tmp/none/"],
        [f"{sandbox}:/tmp/f", "none/"],
        [f"{sandbox}:/tmp/none", str(tmp_path)],
        [str(tmp_path / "none"), f"{sandbox}:/tmp"],
        [str(tmp_path), f"{sandbox}:/tmp"],
        [f"{sandbox}:/tmp", str(tmp_path)],
        [f"{sandbox}:/dev/null", str(tmp_path)],
    ):
        ran = sbx.run("cp", *wrong)
        assert ran.returncode == 1, wrong
        assert ran.stderr != b""
    for usage in (
        ["a", "b"],
        [f"{sandbox}:/a", f"{sandbox}:/b"],
        ["a", f"{sandbox}:relative"],
        ["-", "x", f"{sandbox}:/tmp"],
    ):
        assert sbx.run("cp", *usage).returncode == 2, usage
    assert sorted(p.name for p in tmp_path.iterdir()) == ["f"]


def test_streams(sbx: Sbx, sandbox: str) -> None:
    ran = sbx.run("cp", "-", f"{sandbox}:/tmp/in", stdin=RANDOM)
    assert (ran.returncode, ran.stdout) == (0, b"")
    ran = sbx.run("cp", "--json", "-", f"{sandbox}:/tmp/in", stdin=RANDOM)
    assert json.loads(ran.stdout)["bytes"] == len(RANDOM)
    ran = sbx.run("cp", f"{sandbox}:/tmp/in", "-")
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert ran.stdout == RANDOM
    assert (
        sbx.run("cp", f"{sandbox}:/proc/version", "-").stdout
        == inside(sbx, sandbox, "cat /proc/version").encode()
    )
    assert sbx.run("cp", f"{sandbox}:/tmp", "-").returncode == 1


def test_what_claims_to_be_empty_is_copied_to_its_end(sbx: Sbx, sandbox: str) -> None:
    assert sbx.json("cp", "/proc/version", f"{sandbox}:/tmp/v")["files"] == 1
    assert inside(sbx, sandbox, "cat /tmp/v") == Path("/proc/version").read_text()


def test_what_changes_while_it_is_copied_is_said(sbx: Sbx, sandbox: str, tmp_path: Path) -> None:
    inside(sbx, sandbox, "echo old > /tmp/log")
    log = tmp_path / "log"
    log.write_bytes(b"x" * (64 << 20))
    running = sbx.start("cp", "--json", str(log), f"{sandbox}:/tmp/log")
    with log.open("ab") as writer:
        while running.poll() is None and writer.tell() < 1 << 30:
            writer.write(b"y" * 4096)
            writer.flush()
    assert running.wait() == 1
    assert running.stderr is not None
    error = json.loads(running.stderr.read())["error"]
    assert error["reason"] == "LOCAL"
    assert "changed while it was copied" in error["message"]
    assert inside(sbx, sandbox, "cat /tmp/log") == "old\n"


def test_a_failure_of_this_side_names_its_place(sbx: Sbx, sandbox: str, tmp_path: Path) -> None:
    inside(sbx, sandbox, "echo x > /tmp/f")
    ran = sbx.run("cp", f"{sandbox}:/tmp/f", f"{tmp_path}/none/f")
    assert ran.returncode == 1
    assert f"{tmp_path}/none/f: No such file".encode() in ran.stderr


def test_failures_are_objects_with_advice(sbx: Sbx, sandbox: str, tmp_path: Path) -> None:
    inside(sbx, sandbox, "echo x > /tmp/f")
    for args, reason, place in (
        ([f"{sandbox}:/tmp/none", str(tmp_path)], "PATH_NOT_FOUND", "/tmp/none"),
        ([f"{sandbox}:/tmp/f", f"{tmp_path}/none/f"], "LOCAL", f"{tmp_path}/none/f"),
        ([f"{tmp_path}/none", f"{sandbox}:/tmp"], "LOCAL", f"{tmp_path}/none"),
        (["/etc/hostname", "nosuch:/tmp"], "SANDBOX_NOT_FOUND", "/tmp"),
    ):
        ran = sbx.run("cp", *args)
        said, advice = ran.stderr.decode().splitlines()
        assert said.startswith(f"sbx: {reason}: {place}: ")
        ran = sbx.run("cp", "--json", *args)
        error = json.loads(ran.stderr)["error"]
        assert error["reason"] == reason
        assert error["message"].startswith(f"{place}: ")
        assert advice.strip() == error["advice"] != ""
        assert (ran.returncode, json.loads(ran.stdout)["failed"]) == (1, 1)


def test_an_interrupted_download_goes_on(sbx: Sbx, sandbox: str, tmp_path: Path) -> None:
    inside(sbx, sandbox, "head -c 300000000 /dev/urandom > /tmp/large")
    target = tmp_path / "large"
    running = sbx.start("cp", f"{sandbox}:/tmp/large", str(target))

    def begun() -> bool:
        return any(p.stat().st_size > 4_000_000 for p in tmp_path.iterdir())

    eventually(begun, "a part has come")
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 130, errors
    assert b"interrupted" in errors
    assert not target.exists()
    (part,) = tmp_path.iterdir()
    had = part.stat().st_size
    assert 4_000_000 < had < 300_000_000
    done = sbx.json("cp", f"{sandbox}:/tmp/large", str(target))
    assert (done["files"], done["bytes"]) == (1, 300_000_000 - had)
    assert [p.name for p in tmp_path.iterdir()] == ["large"]
    digest = hashlib.file_digest(target.open("rb"), "sha256").hexdigest()
    assert inside(sbx, sandbox, "sha256sum < /tmp/large").split()[0] == digest


def test_two_downloads_at_once_do_not_share_a_part(
        sbx: Sbx, sandbox: str, tmp_path: Path) -> None:
    inside(sbx, sandbox, "head -c 300000000 /dev/urandom > /tmp/large")
    first = sbx.start("cp", f"{sandbox}:/tmp/large", str(tmp_path / "one"))

    def begun() -> bool:
        return any(p.stat().st_size > 4_000_000 for p in tmp_path.iterdir())

    eventually(begun, "a part has come")
    first.send_signal(signal.SIGSTOP)
    second = sbx.run("cp", f"{sandbox}:/tmp/large", str(tmp_path / "two"))
    first.send_signal(signal.SIGCONT)
    assert second.returncode == 1
    assert f"{tmp_path}/two: another sbx is copying the same file".encode() in second.stderr
    _, errors = first.communicate(timeout=60)
    assert first.returncode == 0, errors
    assert [p.name for p in tmp_path.iterdir()] == ["one"]
    assert sbx.run("cp", f"{sandbox}:/tmp/large", str(tmp_path / "two")).returncode == 0


def test_an_interrupted_upload_goes_on_file_by_file(
    sbx: Sbx, sandbox: str, tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a").write_bytes(RANDOM)
    with (tree / "b").open("wb") as large:
        large.truncate(1 << 30)
    (tree / "c").write_bytes(b"last")
    running = sbx.start("cp", "-r", str(tree), f"{sandbox}:/tmp")

    def sends_b() -> bool:
        with contextlib.suppress(OSError):  # a descriptor has been closed meanwhile
            fds = Path(f"/proc/{running.pid}/fd").iterdir()
            return any(fd.readlink() == tree / "b" for fd in fds)
        return False

    eventually(sends_b, "the large file is under way")
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 130, errors
    assert b"interrupted" in errors and b"from its beginning" in errors
    assert inside(sbx, sandbox, "ls /tmp/tree") == "a\n"
    with (tree / "b").open("r+b") as large:
        large.truncate(1 << 20)
    done = sbx.json("cp", "-r", str(tree), f"{sandbox}:/tmp")
    assert (done["files"], done["unchanged"], done["bytes"]) == (2, 1, (1 << 20) + 4)
    assert inside(sbx, sandbox, "cd /tmp/tree; sha256sum < a; stat -c %s *") == (
        f"{hashlib.sha256(RANDOM).hexdigest()}  -\n{len(RANDOM)}\n{1 << 20}\n4\n"
    )


def test_an_interrupted_upload_leaves_nothing(sbx: Sbx, sandbox: str) -> None:
    reader, writer = os.pipe()
    running = subprocess.Popen(
        [os.environ["SBX_BINARY"], "cp", "-", f"{sandbox}:/tmp/never"],
        stdin=reader,
        stderr=subprocess.PIPE,
        env=os.environ | sbx.environment(),
    )
    os.close(reader)
    os.write(writer, b"x" * 60_000)
    unread = bytearray(4)

    def all_read() -> bool:
        fcntl.ioctl(writer, termios.FIONREAD, unread)
        return int.from_bytes(unread, "little") == 0

    eventually(all_read, "sbx has read its input")
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=60)
    os.close(writer)
    assert running.returncode == 130, errors
    assert b"again" not in errors  # its input is gone
    eventually(
        lambda: inside(sbx, sandbox, "ls -A /tmp | grep -c -e never -e tmp$ || true") == "0\n",
        "nothing is left behind",
    )


def test_a_progress_bar_on_a_terminal_only(sbx: Sbx, sandbox: str, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(RANDOM)
    ran = sbx.run("cp", str(tmp_path / "f"), f"{sandbox}:/tmp/f")
    assert (ran.stdout, ran.stderr) == (b"1 file copied, 2.9 MiB\n", b"")
    master, slave = pty.openpty()
    running = subprocess.Popen(
        [os.environ["SBX_BINARY"], "cp", str(tmp_path / "f"), f"{sandbox}:/tmp/g"],
        stdin=slave,
        stdout=subprocess.PIPE,
        stderr=slave,
        env=os.environ | sbx.environment(),
    )
    os.close(slave)
    out, _ = running.communicate(timeout=60)
    screen = os.read(master, 65536)
    os.close(master)
    assert (running.returncode, out) == (0, b"1 file copied, 2.9 MiB\n")
    assert re.search(rb"\r\x1b\[K.*f  \[[#.]{20}\] +\d+%  .* of 2\.9 MiB", screen), screen
    assert screen.endswith(b"\r\x1b[K")  # and nothing of it stays

# SPDX-License-Identifier: Apache-2.0
"""`sbx cp` both ways, through the built bridge and local OpenSandbox."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import pty
import re
import signal
import stat
import subprocess
import termios
from pathlib import Path

import pytest
from conftest import Sbx
from program import eventually

RANDOM = os.urandom(3_000_003)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def inside(sbx: Sbx, sandbox: str, line: str) -> str:
    return sbx.text("exec", sandbox, "-c", line)


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
    assert sbx.run("cp", "-", f"{sandbox}:/tmp/in", stdin=RANDOM).returncode == 0
    ran = sbx.run("cp", f"{sandbox}:/tmp/in", "-")
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert ran.stdout == RANDOM
    assert (
        sbx.run("cp", f"{sandbox}:/proc/version", "-").stdout
        == inside(sbx, sandbox, "cat /proc/version").encode()
    )
    assert sbx.run("cp", f"{sandbox}:/tmp", "-").returncode == 1


def test_links_are_never_written_through(sbx: Sbx, sandbox: str, tmp_path: Path) -> None:
    inside(
        sbx,
        sandbox,
        "mkdir -p /tmp/t/d /tmp/victim; ln -s /tmp/victim /tmp/t/d/out; echo v > /tmp/victim/f;"
        "ln -s /tmp/victim/f /tmp/t/to-file",
    )
    (tmp_path / "t/d/out").mkdir(parents=True)
    (tmp_path / "t/d/out/f").write_bytes(b"evil")
    (tmp_path / "t/to-file").write_bytes(b"evil")
    ran = sbx.run("cp", "-r", str(tmp_path / "t"), f"{sandbox}:/tmp")
    assert ran.returncode == 1 and ran.stderr.count(b"symbolic link") == 2, ran.stderr
    assert inside(sbx, sandbox, "cat /tmp/victim/f") == "v\n"
    assert sbx.run("cp", "-rL", str(tmp_path / "t"), f"{sandbox}:/tmp").returncode == 0
    assert inside(sbx, sandbox, "cat /tmp/victim/f") == "evil"
    # And the other way.
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "f").write_bytes(b"mine")
    inside(
        sbx,
        sandbox,
        "rm -rf /tmp/t; mkdir -p /tmp/t/d; echo evil > /tmp/t/d/f; echo evil > /tmp/t/g",
    )
    here = tmp_path / "here"
    here.mkdir()
    (here / "d").symlink_to(victim)
    (here / "g").symlink_to(victim / "f")
    ran = sbx.run("cp", "-r", f"{sandbox}:/tmp/t/.", str(here))
    assert ran.returncode == 1 and ran.stderr.count(b"symbolic link") == 2, ran.stderr
    assert (victim / "f").read_bytes() == b"mine"
    assert (here / "d").readlink() == victim and (here / "g").readlink() == victim / "f"


def test_a_link_here_at_the_target_stays(sbx: Sbx, sandbox: str, tmp_path: Path) -> None:
    """`sbx cp ID:/f /dev/stdout > file`, as root, put a file in the place of /dev/stdout."""
    inside(sbx, sandbox, "echo evil > /tmp/f; ln -s f /tmp/l")
    mine = tmp_path / "mine"
    mine.write_bytes(b"mine")
    (tmp_path / "to-file").symlink_to("mine")
    (tmp_path / "dangling").symlink_to("none")
    for name in ("to-file", "dangling"):
        ran = sbx.run("cp", f"{sandbox}:/tmp/f", str(tmp_path / name))
        assert ran.returncode == 1
        assert f"{tmp_path}/{name}: is a symbolic link and is not written".encode() in ran.stderr
    ran = sbx.run("cp", "-L", f"{sandbox}:/tmp/f", str(tmp_path / "dangling"))
    assert ran.returncode == 1 and b"leads to no file" in ran.stderr
    assert (tmp_path / "dangling").is_symlink() and (tmp_path / "to-file").is_symlink()
    assert mine.read_bytes() == b"mine"
    # What a name or link of sbx's own output means, also where a link is to come.
    out = tmp_path / "out"
    (tmp_path / "stdout").symlink_to("/proc/self/fd/1")
    for source, target in (("f", "stdout"), ("f", "out"), ("l", "stdout")):
        for follow in ([], ["-L"]):
            with out.open("wb") as stdout:
                before = os.fstat(stdout.fileno())
                ran = subprocess.run(
                    [os.environ["SBX_BINARY"], "cp", *follow, f"{sandbox}:/tmp/{source}",
                     str(tmp_path / target)],
                    stdout=stdout, stderr=subprocess.PIPE, check=False,
                    env=os.environ | sbx.environment(),
                )
            assert ran.returncode == 1 and b"where the output of sbx goes" in ran.stderr, target
            assert os.path.samestat(out.stat(), before)
    assert (tmp_path / "stdout").readlink() == Path("/proc/self/fd/1")
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "dangling", "mine", "out", "stdout", "to-file",
    ]


def test_a_link_to_a_directory_is_the_directory_it_leads_to(
    sbx: Sbx, sandbox: str, tmp_path: Path
) -> None:
    inside(sbx, sandbox, "mkdir /tmp/t; echo x > /tmp/t/f")
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    for source in ("t/.", "t/f"):
        sbx.text("cp", "-r", f"{sandbox}:/tmp/{source}", str(tmp_path / "link"))
        (tmp_path / "real/f").unlink()
    assert (tmp_path / "link").is_symlink()


def test_links_here_are_written_through_with_l(sbx: Sbx, sandbox: str, tmp_path: Path) -> None:
    inside(sbx, sandbox, "mkdir -p /tmp/t/d; echo new > /tmp/t/d/f; echo new > /tmp/t/g")
    (tmp_path / "real").mkdir()
    (tmp_path / "real/g").write_bytes(b"old")
    here = tmp_path / "here"
    here.mkdir()
    (here / "d").symlink_to(tmp_path / "real")
    (here / "g").symlink_to(tmp_path / "real/g")
    assert sbx.run("cp", "-rL", f"{sandbox}:/tmp/t/.", str(here)).returncode == 0
    assert (tmp_path / "real/f").read_bytes() == b"new\n"
    assert (tmp_path / "real/g").read_bytes() == b"new\n"
    assert (here / "d").is_symlink() and (here / "g").is_symlink()


def test_devices_and_pipes_here_are_left_alone(sbx: Sbx, sandbox: str, tmp_path: Path) -> None:
    """`sbx cp ID:/f /dev/null`, as root, put a file in the place of the machine's /dev/null."""
    inside(sbx, sandbox, "mkdir /tmp/t; echo x > /tmp/t/pipe; echo x > /tmp/t/link")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for source, target in (("t/pipe", "pipe"), ("t/pipe", "link"), ("t/.", "")):
        ran = sbx.run("cp", "-r", f"{sandbox}:/tmp/{source}", f"{tmp_path}/{target}")
        assert ran.returncode == 1
        assert b"is a device, pipe or socket and is left alone" in ran.stderr
    assert stat.S_ISFIFO((tmp_path / "pipe").lstat().st_mode)
    assert (tmp_path / "link").is_symlink()
    # And those of the sandbox.
    inside(sbx, sandbox, "mkfifo /tmp/p")
    (tmp_path / "x").write_bytes(b"x")
    assert sbx.run("cp", str(tmp_path / "x"), f"{sandbox}:/tmp/p").returncode == 1
    assert inside(sbx, sandbox, "stat -c %F /tmp/p") == "fifo\n"


def test_a_failure_of_this_side_names_its_place(sbx: Sbx, sandbox: str, tmp_path: Path) -> None:
    inside(sbx, sandbox, "echo x > /tmp/f")
    ran = sbx.run("cp", f"{sandbox}:/tmp/f", f"{tmp_path}/none/f")
    assert ran.returncode == 1
    assert f"{tmp_path}/none/f: No such file".encode() in ran.stderr


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

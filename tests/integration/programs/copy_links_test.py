# SPDX-License-Identifier: Apache-2.0
"""`sbx cp` where links, devices and pipes are, through the built bridge and local OpenSandbox."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

from conftest import Sbx, inside


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

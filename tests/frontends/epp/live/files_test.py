# SPDX-License-Identifier: Apache-2.0
"""files.* on the local OpenSandbox, through the plugin's process, in both modes."""

from __future__ import annotations

import base64
import datetime

import pytest
from epp_host import MAX_LINE_BYTES, EppError, Plugin
from program import memory

LARGEST_READ = 6_291_408
LARGEST_WRITE = 6_291_200  # the path and the id share the line


def pattern(size: int) -> bytes:
    return (bytes(range(256)) * (size // 256 + 1))[:size]


@pytest.fixture
def place(plugin: Plugin, shared_sandbox: str, request: pytest.FixtureRequest) -> str:
    """A directory of this test's own."""
    path = "/tmp/" + "".join(c if c.isalnum() else "_" for c in request.node.name)
    plugin.call("files.mkdir", {"sandbox_id": shared_sandbox, "path": path})
    return path


@pytest.mark.parametrize("size", [0, 1, 2, 3, 1024, 524_288, 524_289, 3_000_001])
def test_bytes_come_back(plugin: Plugin, shared_sandbox: str, place: str, size: int) -> None:
    plugin.write(shared_sandbox, place + "/f", pattern(size))
    assert plugin.read(shared_sandbox, place + "/f") == pattern(size)


def test_text_of_every_kind_comes_back(plugin: Plugin, shared_sandbox: str, place: str) -> None:
    for content in [
        b"a\r\nb\r\n",
        b"\xef\xbb\xbfbom",
        "utf-16".encode("utf-16"),
        "日本 😀".encode(),
    ]:
        plugin.write(shared_sandbox, place + "/t", content)
        assert plugin.read(shared_sandbox, place + "/t") == content
    # Shorter than before: nothing of the old text stays.
    plugin.write(shared_sandbox, place + "/t", b"x")
    assert plugin.read(shared_sandbox, place + "/t") == b"x"


def test_the_root_is_writable(plugin: Plugin, shared_sandbox: str) -> None:
    plugin.write(shared_sandbox, "/epp-root.txt", b"r")
    assert plugin.read(shared_sandbox, "/epp-root.txt") == b"r"


def test_the_largest_file_fits_and_one_byte_more_is_refused(
    plugin: Plugin, shared_sandbox: str, place: str
) -> None:
    path = place + "/big"
    plugin.write(shared_sandbox, path, pattern(LARGEST_WRITE))
    plugin.shell(shared_sandbox, f"truncate -s {LARGEST_READ} {path}")
    assert len(plugin.read(shared_sandbox, path)) == LARGEST_READ
    plugin.shell(shared_sandbox, f"truncate -s {LARGEST_READ + 12} {path}")
    error = plugin.error("files.read", {"sandbox_id": shared_sandbox, "path": path})
    assert error.code == -32000 and str(LARGEST_READ + 12) in error.message
    whole, offset = b"", 0
    while True:
        part = plugin.call(
            "files.read", {"sandbox_id": shared_sandbox, "path": path, "offset": offset}
        )
        whole += base64.b64decode(part["content_b64"])
        offset = len(whole)
        if part["eof"]:
            break
    assert whole == pattern(LARGEST_WRITE) + b"\0" * (LARGEST_READ + 12 - LARGEST_WRITE)


@pytest.mark.parametrize("megabytes", [8, 32])
def test_an_upload_that_is_too_long_is_skipped(
    plugin: Plugin, shared_sandbox: str, place: str, megabytes: int
) -> None:
    plugin.call("files.stat", {"sandbox_id": shared_sandbox, "path": place})
    before = memory(plugin.process.pid, "VmRSS")
    params = {
        "sandbox_id": shared_sandbox,
        "path": place + "/huge",
        "content_b64": "A" * (megabytes << 20),
    }
    error = plugin.error("files.write", params)
    assert error.code == -32000 and str(MAX_LINE_BYTES) in error.message
    with pytest.raises(EppError) as missing:
        plugin.read(shared_sandbox, place + "/huge")
    assert missing.value.sdk_code == "E4001"
    assert memory(plugin.process.pid, "VmRSS") - before < 12 << 20


def test_what_has_no_size_or_no_end(plugin: Plugin, shared_sandbox: str) -> None:
    assert b"processor" in plugin.read(shared_sandbox, "/proc/cpuinfo")
    error = plugin.error(
        "files.read", {"sandbox_id": shared_sandbox, "path": "/dev/zero"}, timeout=60
    )
    assert error.code == -32006 and "regular file" in error.message


def test_modes(plugin: Plugin, shared_sandbox: str, place: str) -> None:
    def mode(name: str) -> str:
        return plugin.run(shared_sandbox, "stat", ["-c", "%a", f"{place}/{name}"]).stdout.strip()

    plugin.write(shared_sandbox, place + "/default", b"")
    assert mode("default") == "644"
    plugin.write(shared_sandbox, place + "/secret", b"", mode="0600")
    assert mode("secret") == "600"
    plugin.write(shared_sandbox, place + "/secret", b"again")
    assert mode("secret") == "600"
    plugin.call(
        "files.chmod", {"sandbox_id": shared_sandbox, "path": place + "/secret", "mode": 0o750}
    )
    assert mode("secret") == "750"
    error = plugin.error(
        "files.chmod", {"sandbox_id": shared_sandbox, "path": place + "/secret", "mode": "rwx"}
    )
    assert error.code == -32006


def test_directories(plugin: Plugin, shared_sandbox: str, place: str) -> None:
    box = {"sandbox_id": shared_sandbox}
    plugin.call("files.mkdir", {**box, "path": place + "/a/b/c"})
    plugin.call("files.mkdir", {**box, "path": place + "/a/b/c"})
    plugin.write(shared_sandbox, place + "/a/x/y.txt", b"12345")
    entries = {
        e["name"]: e for e in plugin.call("files.list", {**box, "path": place + "/a"})["entries"]
    }
    assert {n: e["type"] for n, e in entries.items()} == {"b": "dir", "x": "dir"}
    stat = plugin.call("files.stat", {**box, "path": place + "/a/x/y.txt"})
    assert (stat["name"], stat["path"], stat["type"], stat["size"]) == (
        "y.txt",
        place + "/a/x/y.txt",
        "file",
        5,
    )
    changed = datetime.datetime.fromisoformat(stat["mtime"].replace("Z", "+00:00"))
    assert abs((datetime.datetime.now(datetime.UTC) - changed).total_seconds()) < 60
    plugin.call(
        "files.move", {**box, "source": place + "/a/x/y.txt", "destination": place + "/n/z.txt"}
    )
    assert plugin.read(shared_sandbox, place + "/n/z.txt") == b"12345"
    found = plugin.call("files.search", {**box, "path": place, "pattern": "*.txt"})["entries"]
    assert [e["path"] for e in found] == [place + "/n/z.txt"]
    plugin.call("files.remove", {**box, "path": place + "/a"})
    error = plugin.error("files.stat", {**box, "path": place + "/a"})
    assert (error.code, error.sdk_code) == (-32002, "E4001")


def test_nothing_is_moved_over_something_else(
    plugin: Plugin, shared_sandbox: str, place: str
) -> None:
    plugin.write(shared_sandbox, place + "/old", b"old")
    plugin.write(shared_sandbox, place + "/new", b"new")
    params = {"sandbox_id": shared_sandbox, "source": place + "/new", "destination": place + "/old"}
    assert plugin.error("files.move", params).code == -32000
    assert plugin.read(shared_sandbox, place + "/old") == b"old"
    plugin.call("files.move", {**params, "overwrite": True})
    assert plugin.read(shared_sandbox, place + "/old") == b"new"


def test_links(plugin: Plugin, shared_sandbox: str, place: str) -> None:
    plugin.write(shared_sandbox, place + "/target", b"123")
    plugin.shell(
        shared_sandbox, f"cd {place} && ln -s target link && ln -s nowhere dangling && ln -s . here"
    )
    box = {"sandbox_id": shared_sandbox}
    link = plugin.call("files.stat", {**box, "path": place + "/link"})
    assert (link["type"], link["size"], link["symlink_target"]) == ("file", 3, "target")
    assert plugin.call("files.stat", {**box, "path": place + "/here"})["type"] == "dir"
    assert plugin.call("files.stat", {**box, "path": place + "/dangling"})["type"] == "symlink"
    assert plugin.read(shared_sandbox, place + "/link") == b"123"
    plugin.call("files.remove", {**box, "path": place + "/link"})
    assert plugin.read(shared_sandbox, place + "/target") == b"123"


@pytest.mark.parametrize(
    "name",
    [
        *("price_$5", "$HOME", "${PATH}x", "a b", "new\nline", "quo'te\"", "日本😀", "-rf", "*"),
        pytest.param("n" * 250, id="long"),
    ],
)
def test_names_are_taken_literally(
    plugin: Plugin, shared_sandbox: str, place: str, name: str
) -> None:
    plugin.write(shared_sandbox, f"{place}/{name}", name.encode())
    assert plugin.read(shared_sandbox, f"{place}/{name}") == name.encode()
    entries = plugin.call("files.list", {"sandbox_id": shared_sandbox, "path": place})["entries"]
    assert [e["name"] for e in entries] == [name]


def test_a_name_that_is_no_utf8_hides_no_other(
    plugin: Plugin, shared_sandbox: str, place: str
) -> None:
    plugin.run(shared_sandbox, "bash", ["-c", rf"cd {place}; touch $'\xff\xfe' ok"])
    entries = plugin.call("files.list", {"sandbox_id": shared_sandbox, "path": place})["entries"]
    names = {e["name"] for e in entries}
    assert "ok" in names and len(names) == 2
    (odd,) = [e for e in entries if e["name"] != "ok"]
    assert base64.b64decode(odd["path_b64"]) == place.encode() + b"/\xff\xfe"


BAD_PATHS = ["", "relative", "~/a", "$HOME/a", "/a\0b", "/\ud800", "/" + "x" * 5000]


@pytest.mark.parametrize("path", BAD_PATHS, ids=[ascii(p)[:20] for p in BAD_PATHS])
def test_paths_that_name_nothing_are_refused(
    plugin: Plugin, shared_sandbox: str, path: str
) -> None:
    for method in (
        "files.read",
        "files.write",
        "files.stat",
        "files.list",
        "files.mkdir",
        "files.remove",
    ):
        error = plugin.error(
            method, {"sandbox_id": shared_sandbox, "path": path, "content_b64": "QQ=="}
        )
        assert error.code == -32006, (method, error)


def test_errors_of_files(plugin: Plugin, shared_sandbox: str, place: str) -> None:
    box = {"sandbox_id": shared_sandbox}
    error = plugin.error("files.read", {**box, "path": place})
    assert error.code == -32000 and "directory" in error.message
    assert plugin.error("files.list", {**box, "path": "/etc/passwd"}).code == -32000
    assert plugin.error("files.list", {**box, "path": "/none"}).sdk_code == "E4001"
    assert plugin.error("files.remove", {**box, "path": "/none"}).sdk_code == "E4001"
    move = {"source": "/none", "destination": "/x"}
    assert plugin.error("files.move", {**box, **move}).sdk_code == "E4001"
    assert plugin.error("files.mkdir", {**box, "path": "/etc/passwd"}).code == -32000
    assert plugin.error("files.write", {**box, "path": place, "content_b64": "QQ=="}).code == -32000
    assert plugin.error("files.write", {**box, "path": "/x", "content_b64": "!"}).code == -32006
    assert plugin.error("files.write", {**box, "path": "/x"}).code == -32602
    assert plugin.error("files.remove", {**box, "path": "/"}).code in (-32006, -32000)


def test_large_directories(plugin: Plugin, shared_sandbox: str, place: str) -> None:
    script = "import sys\nfor i in range(int(sys.argv[2])): open(f'{sys.argv[1]}/{i:060d}', 'w')"
    plugin.run(shared_sandbox, "python3", ["-c", script, place, "20000"])
    entries = plugin.call("files.list", {"sandbox_id": shared_sandbox, "path": place}, timeout=60)[
        "entries"
    ]
    assert len({e["name"] for e in entries}) == 20000
    plugin.run(shared_sandbox, "python3", ["-c", script, place, "60000"], wait=120)
    error = plugin.error("files.list", {"sandbox_id": shared_sandbox, "path": place}, timeout=60)
    assert error.code == -32000 and "too many entries" in error.message
    plugin.shell(shared_sandbox, f"rm -rf {place}", wait=120)

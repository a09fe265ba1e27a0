# SPDX-License-Identifier: Apache-2.0
"""Clauses about files."""

from __future__ import annotations

import io
import sys

from astrabox.seams.sandbox_data import SandboxPathNotFound, SandboxPathRejected
from astrabox.testing._data_checks import DataContractBox, checks_of, raised

ALL_BYTES = bytes(range(256)) * 3 + b"\r\n\n no newline at the end"


async def check_file_bytes_are_exact(box: DataContractBox) -> None:
    path = box.at("bytes")
    await box.files.write_file(path, ALL_BYTES, mode=0o644)
    assert await box.files.read_bytes(path) == ALL_BYTES
    assert await box.raw(path) == ALL_BYTES


async def check_empty_file(box: DataContractBox) -> None:
    await box.files.write_file(box.at("empty"), b"", mode=0o644)
    assert await box.files.read_bytes(box.at("empty")) == b""
    info = (await box.files.get_file_info([box.at("empty")]))[box.at("empty")]
    assert (info.size, info.entry_type) == (0, "file")


async def check_large_file_streams(box: DataContractBox) -> None:
    content = bytes(i * 31 % 251 for i in range(1 << 20)) * 3
    path = box.at("large")
    await box.files.write_file(path, io.BytesIO(content), mode=0o600)
    pieces = [piece async for piece in await box.files.read_bytes_stream(path)]
    assert len(pieces) > 1
    assert b"".join(pieces) == content


async def check_paths_are_literal(box: DataContractBox) -> None:
    for name in ("~", "~root", "a b", "q'\"`id`", "*", "\\n", "new\nline", "ünï☃", "%41", "-rf"):
        path = box.at(name)
        await box.files.write_file(path, name.encode(), mode=0o644)
        assert await box.files.read_bytes(path) == name.encode()
        listed = await box.files.list_directory(box.scratch)
        assert [entry.path for entry in listed] == [path]
        await box.files.delete_files([path])


async def check_a_dollar_in_a_path_is_literal(box: DataContractBox) -> None:
    for name in ("$HOME", "${PATH}", "$(id)", "$"):
        path = box.at(name)
        await box.files.write_file(path, name.encode(), mode=0o644)
        assert await box.files.read_bytes(path) == name.encode()
        assert [entry.path for entry in await box.files.list_directory(box.scratch)] == [path]
        await box.files.delete_files([path])


async def check_mode_is_posix_bits(box: DataContractBox) -> None:
    for mode in (0o640, 0o600, 0o755, 0o444, 0o7):
        path = box.at(f"mode{mode:o}")
        await box.files.write_file(path, b"x", mode=mode)
        assert (await box.shell(f"stat -c %a '{path}'")).stdout.strip() == f"{mode:o}"
        assert (await box.files.get_file_info([path]))[path].mode == mode


async def check_owner_is_an_account_name(box: DataContractBox) -> None:
    path = box.at("owned")
    await box.files.write_file(path, b"x", mode=0o600, owner=box.account, group=box.account)
    seen = (await box.shell(f"stat -c '%U %G %a' '{path}'")).stdout.strip()
    assert seen == f"{box.account} {box.account} 600"
    info = (await box.files.get_file_info([path]))[path]
    assert (info.owner, info.group) == (box.account, box.account)


async def check_mode_and_owner_come_with_the_write(box: DataContractBox) -> None:
    """A write that cannot give the file its owner leaves no file, not one with other rights."""
    path = box.at("secret")
    await raised(
        SandboxPathRejected,
        box.files.write_file(path, b"secret", mode=0o600, owner="no-such-account"),
    )
    await raised(SandboxPathNotFound, box.files.read_bytes(path))
    assert (await box.shell(f"grep -rl secret '{box.scratch}' || true")).stdout == ""


async def check_replaced_file_has_the_new_rights(box: DataContractBox) -> None:
    path = box.at("file")
    await box.files.write_file(path, b"old and longer", mode=0o644)
    await box.files.write_file(path, b"new", mode=0o400, owner=box.account, group=box.account)
    assert await box.files.read_bytes(path) == b"new"
    seen = (await box.shell(f"stat -c '%U %a' '{path}'")).stdout.strip()
    assert seen == f"{box.account} 400"


async def check_missing_path_is_not_found(box: DataContractBox) -> None:
    missing = box.at("missing")
    await raised(SandboxPathNotFound, box.files.read_bytes(missing))
    await raised(SandboxPathNotFound, box.files.get_file_info([missing]))
    await raised(SandboxPathNotFound, box.files.list_directory(missing))
    await raised(SandboxPathNotFound, box.files.delete_files([missing]))
    entry = {"src": missing, "dest": box.at("x")}
    await raised(SandboxPathNotFound, box.files.move_files([entry]))

    async def stream() -> None:
        async for _ in await box.files.read_bytes_stream(missing):
            pass

    await raised(SandboxPathNotFound, stream())


async def check_bad_path_is_rejected(box: DataContractBox) -> None:
    for path in ("relative", "", "./x", "/nul\0byte", "/" + "x" * 5000):
        await raised(SandboxPathRejected, box.files.read_bytes(path))
        await raised(SandboxPathRejected, box.files.write_file(path, b"x", mode=0o644))
    await raised(SandboxPathRejected, box.files.delete_directories(["/"]))


async def check_directory_is_no_file(box: DataContractBox) -> None:
    await raised(SandboxPathRejected, box.files.read_bytes(box.scratch))
    await raised(SandboxPathRejected, box.files.write_file(box.scratch, b"x", mode=0o644))
    await box.files.write_file(box.at("file"), b"x", mode=0o644)
    await raised(SandboxPathRejected, box.files.list_directory(box.at("file")))


async def check_listing_is_absolute_and_has_a_depth(box: DataContractBox) -> None:
    await box.shell(f"mkdir -p '{box.scratch}/a/b' && touch '{box.scratch}/a/b/c' '{box.at('f')}'")
    flat = [entry.path for entry in await box.files.list_directory(box.scratch)]
    assert sorted(flat) == [box.at("a"), box.at("f")]
    deep = await box.files.list_directory(box.scratch, depth=3)
    kinds = {entry.path: entry.entry_type for entry in deep}
    assert kinds == {
        box.at("a"): "directory",
        box.at("a/b"): "directory",
        box.at("a/b/c"): "file",
        box.at("f"): "file",
    }


async def check_links_are_reported_not_followed(box: DataContractBox) -> None:
    await box.shell(f"mkdir '{box.at('real')}' && touch '{box.at('real/inside')}'")
    await box.shell(f"ln -s real '{box.at('link')}' && ln -s nowhere '{box.at('broken')}'")
    listed = await box.files.list_directory(box.scratch, depth=5)
    kinds = {entry.path: entry.entry_type for entry in listed}
    assert kinds == {
        box.at("real"): "directory",
        box.at("real/inside"): "file",
        box.at("link"): "symlink",
        box.at("broken"): "symlink",
    }
    for name in ("link", "broken"):
        found = (await box.files.get_file_info([box.at(name)]))[box.at(name)]
        assert found.entry_type == "symlink"
    await box.files.delete_files([box.at("link")])
    await box.shell(f"test -f '{box.at('real/inside')}' && ! test -L '{box.at('link')}'")


async def check_directories_are_made_with_owner_and_mode(box: DataContractBox) -> None:
    path = box.at("deep/er")
    entry = {"path": path, "mode": 0o700, "owner": box.account, "group": box.account}
    await box.files.create_directories([entry])
    seen = (await box.shell(f"stat -c '%F %U %G %a' '{path}'")).stdout.strip()
    assert seen == f"directory {box.account} {box.account} 700"
    await box.files.create_directories([entry])  # existing ones are left as they are


async def check_moving(box: DataContractBox) -> None:
    await box.files.write_file(box.at("old"), b"content", mode=0o640)
    await box.files.move_files([{"src": box.at("old"), "dest": box.at("new")}])
    assert await box.files.read_bytes(box.at("new")) == b"content"
    await raised(SandboxPathNotFound, box.files.read_bytes(box.at("old")))


async def check_permissions_can_be_set(box: DataContractBox) -> None:
    path = box.at("file")
    await box.files.write_file(path, b"x", mode=0o644)
    entry = {"path": path, "mode": 0o2750, "owner": box.account, "group": box.account}
    await box.files.set_permissions([entry])
    seen = (await box.shell(f"stat -c '%U %G %a' '{path}'")).stdout.strip()
    assert seen == f"{box.account} {box.account} 2750"


async def check_directories_are_deleted_with_their_content(box: DataContractBox) -> None:
    await box.shell(f"mkdir -p '{box.at('d/e')}' && touch '{box.at('d/e/f')}' '{box.at('keep')}'")
    await box.files.delete_directories([box.at("d")])
    assert [e.path for e in await box.files.list_directory(box.scratch)] == [box.at("keep")]


async def check_search_finds_by_name(box: DataContractBox) -> None:
    await box.shell(f"mkdir '{box.at('d')}' && cd '{box.scratch}' && touch a.py d/b.py d/c.txt")
    found = await box.files.search(box.scratch, "*.py")
    assert sorted(entry.path for entry in found) == [box.at("a.py"), box.at("d/b.py")]


FILE_CHECKS = checks_of(sys.modules[__name__])

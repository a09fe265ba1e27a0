# SPDX-License-Identifier: Apache-2.0
"""The table of scenarios that goes through every way into a sandbox, with what is right.

Right is what Linux does, by its manual pages: no client's own output is a measure.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from clients import Client, Command, NotOffered, Ran, Refused

Work = Callable[[Client, str], Awaitable[Any]]


@dataclass(frozen=True)
class Scenario:
    name: str
    # What is done with the client and a directory of the scenario's own; answers what came of it.
    work: Work
    right: Any


def _run(wanted: Command) -> Work:
    async def work(client: Client, _: str) -> Ran:
        return await client.run(wanted)

    return work


def _command(name: str, right: Ran, shell: str = "", **fields: Any) -> Scenario:
    return Scenario(name, _run(Command(shell=shell, **fields)), right)


async def _refusal(doing: Awaitable[Any]) -> str:
    """"refused" - which word each API has for it is its own - or what it answered."""
    try:
        return f"answered {await doing!r}"
    except Refused:
        return "refused"


_ALL_BYTES = bytes(range(256))

COMMANDS = [
    _command("a line", Ran("exit 0", b"hi\n"), "echo hi"),
    _command("an exit code", Ran("exit 3"), "exit 3"),
    _command("two streams apart", Ran("exit 0", b"o\n", b"e\n"), "echo o; echo e >&2"),
    _command("no newline at the end", Ran("exit 0", b"abc"), "printf abc"),
    _command("blank lines", Ran("exit 0", b"\n\na\n\n"), r"printf '\n\na\n\n'"),
    _command("carriage returns", Ran("exit 0", b"a\rb\r\nc\n"), r"printf 'a\rb\r\nc\n'"),
    _command("UTF-8", Ran("exit 0", "é☃😀\n".encode()), "printf '%s\\n' 'é☃😀'"),
    _command("bytes that are not UTF-8", Ran("exit 0", b"x\xff\xfe\x80y\n"),
             r"printf 'x\377\376\200y\n'"),
    _command("NUL bytes", Ran("exit 0", b"a\0b\n"), r"printf 'a\0b\n'"),
    _command("a line of 1 MiB", Ran("exit 0", b"x" * (1 << 20) + b"\n"),
             "head -c 1048576 /dev/zero | tr '\\0' x; echo"),
    _command("100,000 lines", Ran("exit 0", b"".join(b"%d\n" % i for i in range(1, 100_001))),
             "seq 1 100000"),
    _command("death by a signal", Ran("signal 15"), "kill -TERM $$"),
    _command("a command that is not found", Ran("exit 127"), "exec 2>/dev/null; no-such-program"),
    _command("a timeout", Ran("timed out"), "sleep 30", timeout=1.0),
    _command("a child in the background does not hold the call", Ran("exit 0", b"up\n"),
             "sleep 30 >/dev/null 2>&1 & echo up"),
    _command("stdin is empty", Ran("exit 0", b"0\n"), "wc -c"),
    _command("stdin", Ran("exit 0", _ALL_BYTES), "cat", stdin=_ALL_BYTES),
    _command("argv is not read by a shell", Ran("exit 0", b"<$HOME>< a  b><*>\n"),
             argv=("sh", "-c", 'printf "<%s>" "$@"; echo', "sh", "$HOME", " a  b", "*")),
    _command("a program that does not exist", Ran("not started"), argv=("no-such-program",)),
    _command("a working directory", Ran("exit 0", b"/usr\n"), "pwd", cwd="/usr"),
    _command("environment", Ran("exit 0", b"<a 'b' \"c\" $d\n\xc3\xa9>"),
             'printf "<%s>" "$GIVEN"', env={"GIVEN": "a 'b' \"c\" $d\né"}),
    _command("a user by numbers", Ran("exit 0", b"1000:1000\n"), "echo $(id -u):$(id -g)",
             user=(1000, 1000)),
]


async def _round_trip(client: Client, data: bytes, path: str) -> bytes:
    await client.write(path, data, 0o644)
    return await client.read(path)


def _file(name: str, right: Any) -> Callable[[Work], Scenario]:
    return lambda work: Scenario(name, work, right)


@_file("a file of all bytes", _ALL_BYTES)
async def _bytes(client: Client, scratch: str) -> bytes:
    return await _round_trip(client, _ALL_BYTES, f"{scratch}/f")


@_file("an empty file", b"")
async def _empty(client: Client, scratch: str) -> bytes:
    return await _round_trip(client, b"", f"{scratch}/f")


@_file("a file of 5 MiB", _ALL_BYTES * 20_480)
async def _large(client: Client, scratch: str) -> bytes:
    return await _round_trip(client, _ALL_BYTES * 20_480, f"{scratch}/f")


@_file("a mode", ("file", 1, 0o640))
async def _mode(client: Client, scratch: str) -> Any:
    await client.write(f"{scratch}/f", b"x", 0o640)
    return await client.stat(f"{scratch}/f")


@_file("a name with a space, a quote and a snowman", b"x")
async def _name(client: Client, scratch: str) -> bytes:
    return await _round_trip(client, b"x", f"{scratch}/a 'b\" ☃")


@_file("a name with a dollar and a tilde is literal", ["$HOME", "~"])
async def _dollar(client: Client, scratch: str) -> list[str]:
    await client.write(f"{scratch}/$HOME", b"x", 0o644)
    await client.write(f"{scratch}/~", b"x", 0o644)
    return await client.names(scratch)


@_file("a missing file is refused", "refused")
async def _missing(client: Client, scratch: str) -> str:
    return await _refusal(client.read(f"{scratch}/no"))


@_file("a directory is not read as a file", "refused")
async def _not_a_file(client: Client, scratch: str) -> str:
    return await _refusal(client.read("/usr"))


@_file("a listing", ["a", "b", "d"])
async def _listing(client: Client, scratch: str) -> list[str]:
    await client.write(f"{scratch}/a", b"", 0o644)
    await client.write(f"{scratch}/b", b"", 0o644)
    await client.make_directory(f"{scratch}/d")
    await client.write(f"{scratch}/d/inner", b"", 0o644)
    return await client.names(scratch)


@_file("a listing of nothing that exists is refused", "refused")
async def _no_listing(client: Client, scratch: str) -> str:
    return await _refusal(client.names(f"{scratch}/no"))


@_file("a directory", ("directory", 0, 0o755))
async def _directory(client: Client, scratch: str) -> Any:
    await client.make_directory(f"{scratch}/p/q")
    return await client.stat(f"{scratch}/p/q")


@_file("a directory that exists is left as it is", ["f"])
async def _directory_again(client: Client, scratch: str) -> list[str]:
    await client.write(f"{scratch}/d/f", b"", 0o644)
    await client.make_directory(f"{scratch}/d")
    return await client.names(f"{scratch}/d")


@_file("a link is described, not followed", "symlink")
async def _link(client: Client, scratch: str) -> str:
    await client.run(Command(shell=f"ln -s /etc/passwd {scratch}/l"))
    kind, _, _ = await client.stat(f"{scratch}/l")
    return kind


@_file("a move", (["new"], b"x"))
async def _move(client: Client, scratch: str) -> Any:
    await client.write(f"{scratch}/old", b"x", 0o644)
    await client.move(f"{scratch}/old", f"{scratch}/new")
    return await client.names(scratch), await client.read(f"{scratch}/new")


@_file("a move never replaces", ("refused", b"b"))
async def _no_replace(client: Client, scratch: str) -> Any:
    await client.write(f"{scratch}/a", b"a", 0o644)
    await client.write(f"{scratch}/b", b"b", 0o644)
    said = await _refusal(client.move(f"{scratch}/a", f"{scratch}/b"))
    return said, await client.read(f"{scratch}/b")


@_file("a file is removed", [])
async def _remove(client: Client, scratch: str) -> list[str]:
    await client.write(f"{scratch}/a", b"a", 0o644)
    await client.remove(f"{scratch}/a")
    return await client.names(scratch)


@_file("removing what is not there is refused", "refused")
async def _remove_nothing(client: Client, scratch: str) -> str:
    return await _refusal(client.remove(f"{scratch}/no"))


@_file("a tree is removed, what its links point to is not", ([], b"x"))
async def _remove_tree(client: Client, scratch: str) -> Any:
    await client.write(f"{scratch}/kept/f", b"x", 0o644)
    made = f"mkdir -p {scratch}/in/t/u; ln -s {scratch}/kept {scratch}/in/t/l"
    await client.run(Command(shell=made))
    await client.remove_tree(f"{scratch}/in/t")
    return await client.names(f"{scratch}/in"), await client.read(f"{scratch}/kept/f")


@_file("text is replaced", b"one 2 three 2\n")
async def _replace(client: Client, scratch: str) -> bytes:
    await client.write(f"{scratch}/f", b"one two three two\n", 0o644)
    await client.replace(f"{scratch}/f", "two", "2")
    return await client.read(f"{scratch}/f")


@_file("a file that is overwritten keeps nothing of the old", b"new")
async def _overwrite(client: Client, scratch: str) -> bytes:
    await client.write(f"{scratch}/f", b"old and longer", 0o644)
    return await _round_trip(client, b"new", f"{scratch}/f")


FILES = [_bytes, _empty, _large, _mode, _name, _dollar, _missing, _not_a_file, _listing,
         _no_listing, _directory, _directory_again, _link, _move, _no_replace, _remove,
         _remove_nothing, _remove_tree, _replace, _overwrite]

SCENARIOS: list[Scenario] = [*COMMANDS, *FILES]


async def outcome(scenario: Scenario, client: Client, scratch: str) -> Any:
    """What came of it, also when nothing did."""
    try:
        return await scenario.work(client, scratch)
    except NotOffered as what:
        return f"not offered: {what}"
    except Refused as word:
        return f"refused: {word}"


def shown(result: Any) -> str:
    """Short enough to read when it fails."""
    text = repr(result)
    return text if len(text) < 500 else f"{text[:200]}…{text[-100:]} ({len(text)} characters, " \
                                        f"hash {hash(text)})"

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what the corpus of epp_conversation began with: every method, every kind of broken line.

tests/fuzz/make_epp_corpus.py tests/fuzz/corpus/epp_conversation
"""

import json
import sys
from pathlib import Path

CREATE = {
    "template": "base",
    "timeout": 300,
    "metadata": {},
    "envs": {},
    "cpu": None,
    "memory": None,
}
BOX = {"sandbox_id": "s"}
EXEC = {**BOX, "cmd": "echo", "args": ["x"], "env": {}, "cwd": "", "user": "", "timeout": 60}
METHODS = {
    "sandbox.create": {
        **CREATE,
        "options": {"default_image": "x"},
        "request_timeout": float("nan"),
    },
    "sandbox.connect": BOX,
    "sandbox.get": BOX,
    "sandbox.list": {"limit": 100, "status": "running", "cursor": "c"},
    "sandbox.kill": BOX,
    "sandbox.set_timeout": {**BOX, "timeout": 1.5},
    "sandbox.pause": BOX,
    "sandbox.resume": BOX,
    "exec.start": {**EXEC, "env": {"A": 1, "B": True, "C": None}, "stdin": "in", "detached": True},
    "exec.run": {**EXEC, "argv": ["a", "b"], "stdin_b64": "QQ=="},
    "process.list": BOX,
    "process.signal": {**BOX, "pid": "12", "signal": "TERM"},
    "process.kill": {**BOX, "pid": 7},
    "process.stdin": {**BOX, "pid": 7, "data": "x"},
    "files.read": {**BOX, "path": "/a", "offset": 0, "length": 10},
    "files.write": {**BOX, "path": "/a", "content_b64": "QUJD", "mode": "0644"},
    "files.list": {**BOX, "path": "/", "depth": 2},
    "files.stat": {**BOX, "path": "/a\udc80"},
    "files.mkdir": {**BOX, "path": "/a"},
    "files.remove": {**BOX, "path": "/a"},
    "files.move": {**BOX, "source": "/a", "destination": "/b"},
    "files.search": {**BOX, "path": "/", "pattern": "*.py", "max_results": 3},
    "files.chmod": {**BOX, "path": "/a", "mode": 420},
    "ports.url": {**BOX, "port": 8080},
    "pty.open": {**BOX, "cols": 80, "rows": 24},
    "pty.write": {**BOX, "process_id": "p", "data_b64": "QQ=="},
    "pty.resize": {**BOX, "process_id": "p", "cols": 80, "rows": 24},
    "pty.close": {**BOX, "process_id": "p"},
}
CONFIG = {
    "base_url": "http://h/v1",
    "image_aliases": "a=b,c=d",
    "entrypoint": "sh -c 'x y'",
    "network_policy": '{"defaultAction":"deny","egress":[]}',
    "ready_timeout": "90",
    "use_server_proxy": "yes",
}
BROKEN = [
    b"{",
    b"[]",
    b"17",
    b"\xff\xfe",
    b"\xef\xbb\xbf{}",
    b'{"jsonrpc":"2.0","id":"\\ud800","method":"x"}',
    b'{"jsonrpc":"2.0","id":1.5,"method":"x"}',
    b'{"jsonrpc":"2.0","id":9,"method":5}',
    b'{"jsonrpc":"2.0","id":9,"params":[1]}',
    b'{"jsonrpc":"2.0","id":9,"method":"a"}{"jsonrpc":"2.0","id":10,"method":"a"}',
    b'{"jsonrpc":"2.0","id":9,"method":"sandbox.set_timeout","params":{"sandbox_id":"s","timeout":'
    + b"9" * 400
    + b"}}",
    b'{"jsonrpc":"2.0","method":"$/cancel","params":{"id":2}}',
    b'{"jsonrpc":"2.0","id":9,"method":"shutdown"}',
    b'{"jsonrpc":"2.0","id":9,"params":' + b"[" * 300,
]


def line(number: int, method: str, params: object) -> bytes:
    return (
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()
        + b"\n"
    )


def main() -> None:
    folder = Path(sys.argv[1])
    begin = line(
        1,
        "initialize",
        {"protocol": "epp/1", "config": CONFIG, "core": {"http_timeout": float("inf")}},
    )
    for method, params in METHODS.items():
        (folder / method).write_bytes(b"\xff" + begin + line(2, method, params))
    for number, text in enumerate(BROKEN):
        (folder / f"broken_{number}").write_bytes(
            bytes([number]) + begin + text + b"\r\n" + line(3, "sandbox.get", BOX)
        )
    (folder / "everything").write_bytes(
        b"\x06" + begin + b"".join(line(n, m, p) for n, (m, p) in enumerate(METHODS.items(), 2))
    )


if __name__ == "__main__":
    main()

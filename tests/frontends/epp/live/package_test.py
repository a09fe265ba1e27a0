# SPDX-License-Identifier: Apache-2.0
"""The package keeps the host's rules, and runs where nothing of the build is installed."""

from __future__ import annotations

import http.server
import json
import os
import re
import shutil
import ssl
import stat
import subprocess
import tarfile
import threading
import tomllib
from pathlib import Path

import pytest
from conftest import Spawn, program
from sdk_host import plugin_directory

# What a host accepts (its installer).
MAX_FILE_BYTES = 10 * 1024 * 1024
MAX_TREE_BYTES = 50 * 1024 * 1024

# What every Debian 12 and Ubuntu 22.04 has, also in their smallest images, and which versions: the
# older of the two.
OF_THE_MACHINE = {
    "libc.so.6",
    "libm.so.6",
    "libgcc_s.so.1",
    "libstdc++.so.6",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
}
NEWEST = {"GLIBC": (2, 35), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13), "GCC": (12, 0, 0)}


def files() -> list[Path]:
    return sorted(path for path in plugin_directory().rglob("*") if not path.is_dir())


def binaries() -> list[Path]:
    return [path for path in files() if path.read_bytes()[:4] == b"\x7fELF"]


def output(*argv: str) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def needed(path: Path) -> list[str]:
    return re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", str(path)))


def test_it_has_what_belongs_to_it() -> None:
    names = {path.relative_to(plugin_directory()).as_posix() for path in files()}
    assert {"abx-provider.toml", "bin/opensandbox-provider", "README.md", "LICENSE"} <= names
    assert all(name.split("/")[0] in ("bin", "lib", "licenses") for name in names if "/" in name)


def test_sizes_and_kinds_are_what_a_host_takes() -> None:
    for path in files():
        status = path.lstat()
        assert stat.S_ISREG(status.st_mode) and status.st_nlink == 1, path
        assert status.st_size < MAX_FILE_BYTES, f"{path}: {status.st_size}"
    assert sum(path.stat().st_size for path in files()) < MAX_TREE_BYTES


def test_the_manifest_speaks_two_languages() -> None:
    manifest = tomllib.loads((plugin_directory() / "abx-provider.toml").read_text())
    assert manifest["runtime"]["command"] == ["./bin/opensandbox-provider"]
    for table in (manifest["provider"], *manifest["config"]["fields"].values()):
        assert table["description"].isascii() and not table["description_zh"].isascii()


def test_every_library_is_here_or_on_every_machine() -> None:
    here = {path.name for path in files()}
    for path in binaries():
        assert set(needed(path)) <= here | OF_THE_MACHINE, path
    used = {name for path in binaries() for name in needed(path)}
    assert {
        path.name for path in binaries() if path.parent.name == "lib"
    } <= used, "a library that nobody needs"


def test_versions_are_no_newer_than_the_older_system() -> None:
    """All that the loader checks before a start, GLIBC_ABI_DT_RELR and the like included."""
    found = set()
    for path in binaries():
        for part in output("readelf", "--version-info", "--wide", str(path)).split("File: ")[1:]:
            if (library := part.split()[0]) not in OF_THE_MACHINE:
                continue
            for version in re.findall(r"Name: (\S+)", part):
                name, _, number = version.partition("_")
                assert re.fullmatch(r"[0-9.]+", number), f"{path}: {library} {version}"
                assert tuple(map(int, number.split("."))) <= NEWEST[name], f"{path}: {version}"
                found.add(name)
    assert found == NEWEST.keys()


def test_licenses_of_all_that_is_inside() -> None:
    texts = {path.stem for path in files() if path.parent.name == "licenses"}
    for package in (
        "libgrpc-dev",
        "libprotobuf-dev",
        "libabsl-dev",
        "libcurl4-openssl-dev",
        "libssl3",
    ):
        assert package in texts


def test_the_archive_is_the_directory() -> None:
    with tarfile.open(program("PLUGIN_ARCHIVE")) as archive:
        members = archive.getmembers()
        packed = {m.name: archive.extractfile(m).read() for m in members}  # type: ignore[union-attr]
    assert all(m.isreg() and m.uid == m.gid == m.mtime == 0 for m in members)
    assert packed == {
        f"opensandbox/{p.relative_to(plugin_directory()).as_posix()}": p.read_bytes()
        for p in files()
    }
    modes = {m.name: m.mode for m in members}
    assert modes.pop("opensandbox/bin/opensandbox-provider") == 0o755
    assert set(modes.values()) == {0o644}


def library(name: str) -> str:
    """Where this machine's loader finds it."""
    match = re.search(rf"{re.escape(name)} (?:=> )?\(?.*?(/\S+)", output("/sbin/ldconfig", "-p"))
    assert match, name
    return match.group(1)


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap for an empty machine")
def test_it_runs_on_a_machine_that_has_nothing_else() -> None:
    """An empty root with the C and C++ libraries alone, and no network; every symbol is looked up."""
    argv = ["bwrap", "--unshare-all", "--clearenv", "--proc", "/proc", "--dev", "/dev"]
    argv += ["--setenv", "LD_BIND_NOW", "1"]
    argv += ["--ro-bind", str(plugin_directory()), "/plugin", "--dir", "/data", "--chdir", "/data"]
    loader = output("readelf", "-l", str(binaries()[0]))
    interpreter = re.search(r"interpreter: (\S+)\]", loader)
    assert interpreter is not None
    argv += ["--ro-bind", os.path.realpath(interpreter.group(1)), interpreter.group(1)]
    for name in ("libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6"):
        path = library(name)
        argv += ["--ro-bind", os.path.realpath(path), path]
    argv.append("/plugin/bin/opensandbox-provider")
    requests = [
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {"config": {"base_url": "https://127.0.0.1:1"}},
        },
        {"jsonrpc": "2.0", "id": 2, "method": "sandbox.list", "params": {"limit": 1}},
    ]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert (
            process.stdin is not None and process.stdout is not None and process.stderr is not None
        )
        process.stdin.write(b"".join(json.dumps(r).encode() + b"\n" for r in requests))
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline() or b"{}") for _ in requests]
        process.stdin.close()
        assert process.wait(10) == 0, process.stderr.read()
    by_id = {a.get("id"): a for a in answers}
    assert by_id[1]["result"]["protocol"] == "epp/1"
    assert by_id[2]["error"]["data"]["sdk_code"] == "E5001"


class EmptyService(http.server.BaseHTTPRequestHandler):
    """A service without sandboxes, whose bodies claim to be encoded in `encoding`."""

    protocol_version = "HTTP/1.1"
    encoding = ""

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        pagination = {"page": 1, "pageSize": 20, "totalItems": 0, "totalPages": 0}
        body = {"items": [], "pagination": {**pagination, "hasNextPage": False}}
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if self.encoding:
            self.send_header("Transfer-Encoding", self.encoding)
        self.end_headers()
        self.wfile.write(data)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl for a certificate")
def test_what_is_left_out_of_curl_is_not_missed(spawn: Spawn, tmp_path: Path) -> None:
    """TLS with a server that would rather speak HTTP/2; encodings that nobody asked for."""
    key, certificate = str(tmp_path / "key.pem"), str(tmp_path / "certificate.pem")
    request = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    request += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    output(*request, "-keyout", key, "-out", certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.set_alpn_protocols(["h2", "http/1.1"])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), EmptyService)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    config = {"base_url": f"https://localhost:{server.server_address[1]}"}
    plugin = spawn(config, env={"SSL_CERT_FILE": certificate})
    assert plugin.call("sandbox.list", {"limit": 1})["sandboxes"] == []
    for encoding in ("br", "zstd", "gzip, zstd"):
        EmptyService.encoding = encoding
        assert plugin.error("sandbox.list", {"limit": 1}).code == -32000
    EmptyService.encoding = ""
    assert plugin.call("sandbox.list", {"limit": 1})["sandboxes"] == []
    stranger = spawn(config)
    assert "certificate" in stranger.error("sandbox.list", {"limit": 1}).message
    server.shutdown()
    server.server_close()

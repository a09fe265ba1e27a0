# SPDX-License-Identifier: Apache-2.0
"""The images: what is in them and what is not, that they are the same every time, that they run."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from layout import Layout, read_layout
from program import is_sanitized

BRIDGE = Path(os.environ["BRIDGE_IMAGE"])
EXECD = Path(os.environ["EXECD_IMAGE"])
MIB = 1 << 20
SANITIZED = is_sanitized(os.environ["SANDBOX_BRIDGE_BINARY"])


@pytest.fixture(scope="module", params=[BRIDGE, EXECD], ids=["bridge", "execd"])
def image(request: pytest.FixtureRequest) -> Layout:
    return read_layout(request.param)


@pytest.fixture(scope="module")
def bridge() -> Layout:
    return read_layout(BRIDGE)


@pytest.fixture(scope="module")
def root(bridge: Layout, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bridge.unpack(tmp_path_factory.mktemp("root"))


def names(image: Layout) -> set[str]:
    return {member.name for member, _ in image.members() if not member.isdir()}


def test_nothing_but_the_program_and_what_it_links(bridge: Layout) -> None:
    allowed = re.compile(
        r"usr/bin/sandbox_bridge|usr/lib/[a-z0-9_]+-linux-gnu/lib[^/]+\.so[.0-9]*"
        r"|usr/lib(64)?/([a-z0-9_]+-linux-gnu/)?ld-linux-[a-z0-9-]+\.so\.\d"
        r"|usr/share/doc/[^/]+/copyright|etc/ssl/certs/ca-certificates\.crt"
        r"|etc/(passwd|group|nsswitch\.conf)|lib|lib64")
    strangers = {name for name in names(bridge) if not allowed.fullmatch(name)}
    assert strangers == set()
    assert "usr/bin/sandbox_bridge" in names(bridge)


@pytest.mark.skipif(SANITIZED, reason="sanitizers cannot be linked statically")
def test_the_daemon_is_two_static_files(tmp_path: Path) -> None:
    execd = read_layout(EXECD)
    terms = {n for n in names(execd) if n.startswith("usr/share/doc/")}
    assert names(execd) - terms == {"execd", "bootstrap.sh", "etc/passwd", "etc/group",
                                    "etc/nsswitch.conf"}
    root = execd.unpack(tmp_path)
    for program in ("execd", "bootstrap.sh"):
        headers = subprocess.run(["readelf", "-lW", str(root / program)], check=True,
                                 capture_output=True, text=True).stdout
        assert "INTERP" not in headers and "DYNAMIC" not in headers


def test_every_file_is_roots_and_read_only_for_others(image: Layout) -> None:
    for member, _ in image.members():
        assert (member.uid, member.gid, member.mtime) == (0, 0, 0), member.name
        if not member.issym():
            assert member.mode in (0o644, 0o755), f"{member.name}: {member.mode:o}"


@pytest.mark.skipif(SANITIZED, reason="what a sanitizer adds is not shipped")
def test_size(image: Layout) -> None:
    assert sum(len(layer) for layer in image.layers) < 60 * MIB


def test_configuration(image: Layout) -> None:
    config = image.config["config"]
    assert config["User"] == "65532:65532"
    assert config["StopSignal"] == "SIGTERM"
    assert config["Entrypoint"] in (["/usr/bin/sandbox_bridge"], ["/execd"])
    assert "Cmd" not in config and "Env" not in config
    labels = config["Labels"]
    version = re.search(r'kVersion\[\] = "(.*)"', Path("bridge/base/version.h").read_text())
    assert version is not None
    assert labels["org.opencontainers.image.version"] == version.group(1)
    assert labels["org.opencontainers.image.licenses"] == "Apache-2.0"
    assert labels["org.opencontainers.image.title"]
    assert labels["org.opencontainers.image.description"]
    name = image.reference["annotations"]["io.containerd.image.name"]
    assert name.endswith(":" + version.group(1))


@pytest.mark.parametrize(("path", "entrypoint"), [(BRIDGE, "bridge"), (EXECD, "execd")])
def test_an_update_moves_the_program_alone(path: Path, entrypoint: str) -> None:
    *base, program = read_layout(path).layers
    assert base and len(program) > 0
    text = b"".join(base)
    assert b"sandbox_bridge" not in text, entrypoint


def test_no_path_of_the_build_is_left(image: Layout) -> None:
    for member, data in image.members():
        if "usr/lib" not in member.name:
            assert b"/bazel-out/" not in data and b".cache/bazel" not in data, member.name


# Packages that the bridge has inside it.
INSIDE = ["libabsl-dev", "libc-ares-dev", "libgrpc++-dev", "libgrpc-dev", "libprotobuf-dev", "libre2-dev"]


def build(out: Path, **environment: str) -> bytes:
    """The bridge's image, made by hand from the same program."""
    command = [sys.executable, "deploy/image/build_image.py", "--name=localhost/sandbox-bridge",
               "--title=gRPC service in front of OpenSandbox",
               "--version_header=bridge/base/version.h", "--certificates", "--port=50051",
               "--port=50052", "--port=9090",
               f"--program={os.environ['SANDBOX_BRIDGE_BINARY']}=/usr/bin/sandbox_bridge",
               *(f"--static_package={each}" for each in INSIDE),
               f"--out={out / 'image'}", f"--sbom={out / 'sbom'}"]
    subprocess.run(command, check=True, env={"PATH": "/usr/bin:/bin", **environment})
    return (out / "image").read_bytes() + (out / "sbom").read_bytes()


def test_two_builds_one_digest(tmp_path: Path, bridge: Layout) -> None:
    """Of one program. That compiling twice gives one program is for tests/deploy/compare_builds to show."""
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    os.utime(one, (1, 1))
    first = build(one, TZ="Asia/Shanghai", LC_ALL="C", TMPDIR=str(one))
    second = build(two, TZ="America/Lima", LC_ALL="C.UTF-8", TMPDIR=str(two),
                   LD_LIBRARY_PATH="/nowhere", PYTHONHASHSEED="1")
    assert first == second
    assert read_layout(one / "image").digest == bridge.digest


@pytest.mark.parametrize("path", [BRIDGE, EXECD], ids=["bridge", "execd"])
def test_the_bill_of_materials_names_every_file_and_its_package(path: Path) -> None:
    image = read_layout(path)
    sbom = json.loads(path.with_name(path.name.replace(".oci.tar", ".spdx.json")).read_text())
    assert sbom["spdxVersion"] == "SPDX-2.3" and sbom["dataLicense"] == "CC0-1.0"
    assert sbom["documentNamespace"].endswith(image.digest.removeprefix("sha256:"))

    inside = {"./" + m.name: hashlib.sha256(data).hexdigest()
              for m, data in image.members() if m.isfile()}
    listed = {}
    for file in sbom["files"]:
        sums = {c["algorithm"]: c["checksumValue"] for c in file["checksums"]}
        assert set(sums) == {"SHA1", "SHA256"}
        listed[file["fileName"]] = sums["SHA256"]
    assert listed == inside

    ids = {p["SPDXID"]: p for p in sbom["packages"]}
    assert len(ids) == len(sbom["packages"])
    everything = ids.keys() | {f["SPDXID"] for f in sbom["files"]} | {"SPDXRef-DOCUMENT"}
    for relation in sbom["relationships"]:
        assert {relation["spdxElementId"], relation["relatedSpdxElement"]} <= everything
    contained = {r["relatedSpdxElement"] for r in sbom["relationships"]
                 if r["relationshipType"] == "CONTAINS"}
    assert {f["SPDXID"] for f in sbom["files"]} <= contained
    # The versions are those of the package database.
    for package in ids.values():
        if "externalRefs" in package:
            shown = subprocess.run(["dpkg-query", "-W", "-f", "${Version}\n", package["name"]],
                                   check=True, capture_output=True, text=True).stdout
            assert package["versionInfo"] in shown.split("\n"), package["name"]
            (reference,) = package["externalRefs"]
            assert reference["referenceLocator"].startswith(f"pkg:deb/debian/{package['name']}@")


@pytest.mark.skipif(SANITIZED, reason="with a sanitizer they are shared")
def test_what_is_inside_the_bridge_is_listed_and_not_beside_it(bridge: Layout) -> None:
    sbom = json.loads(BRIDGE.with_name(BRIDGE.name.replace(".oci.tar", ".spdx.json")).read_text())
    name_of = {p["SPDXID"]: p["name"] for p in sbom["packages"]}
    inside = {name_of[r["relatedSpdxElement"]] for r in sbom["relationships"]
              if r["relationshipType"] == "STATIC_LINK"}
    assert inside == set(INSIDE)
    twice = re.compile(r"lib(grpc|gpr|upb|protobuf|absl|cares|re2)[^/]*\.so")
    assert [name for name in names(bridge) if twice.search(name)] == []


def test_the_libraries_in_it_are_all_that_it_needs(root: Path) -> None:
    """The loader of the image, in the image, finds everything."""
    loader = next(root.glob("usr/lib*/**/ld-linux-*"))
    ran = subprocess.run(
        ["bwrap", "--ro-bind", str(root), "/", "--unshare-all", "--clearenv", "--",
         "/" + str(loader.relative_to(root)), "--list", "/usr/bin/sandbox_bridge"],
        check=False, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "not found" not in ran.stdout


def test_a_trusted_certificate_is_in_it(root: Path) -> None:
    text = (root / "etc/ssl/certs/ca-certificates.crt").read_text()
    assert text.count("BEGIN CERTIFICATE") == text.count("END CERTIFICATE") > 100

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes one image and its bill of materials. Called by image.bzl; needs no Docker and no network.

An image holds the programs named by --program, the shared libraries that they load, the terms of
those libraries, certificates where asked for, and nothing else: no shell, no package manager.
"""

from __future__ import annotations

import argparse
import platform
import re
from pathlib import Path

import files
import oci
import packages
import sbom

USER = 65532
# uname's words in Go's, which OCI uses.
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", required=True, help="of the image, without a tag")
    parser.add_argument("--title", required=True)
    parser.add_argument("--version_header", type=Path, required=True, help="base/version.h")
    parser.add_argument("--program", action="append", required=True, metavar="FILE=/PATH",
                        help="the first one is what the image runs")
    parser.add_argument("--static_package", action="append", default=[],
                        help="Debian package with code that a program has inside it")
    parser.add_argument("--certificates", action="store_true")
    parser.add_argument("--port", action="append", default=[])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sbom", type=Path, required=True)
    return parser.parse_args()


def architecture() -> str:
    """Of this machine."""
    return _ARCHITECTURES[platform.machine()]


def version_of(header: Path) -> str:
    found = re.search(r'kVersion\[\] = "([^"]+)"', header.read_text(encoding="utf-8"))
    if found is None:
        raise ValueError(f"{header} has no kVersion")
    return found.group(1)


def labels(options: argparse.Namespace, version: str) -> dict[str, str]:
    return {
        "org.opencontainers.image.title": options.name,
        "org.opencontainers.image.description": options.title,
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.vendor": "the sandbox bridge's authors",
    }


def main() -> None:
    options = arguments()
    version = version_of(options.version_header)
    programs = [(Path(source), path.lstrip("/")) for source, _, path in
                (each.partition("=") for each in options.program)]
    libraries = sorted({lib for source, _ in programs for lib in files.linked_libraries(source)})
    base = [files.shared_object(lib) for lib in libraries]
    if options.certificates:
        base.append(files.certificates())
    owners = packages.owners(each.source for each in base if each.source is not None)
    static = packages.named(options.static_package)
    base += packages.terms(sorted(set(owners.values()) | set(static)))
    base += files.accounts(USER)
    own = [files.File(path, files.stripped(source), 0o755) for source, path in programs]

    config: dict[str, object] = {
        "Entrypoint": ["/" + programs[0][1]],
        "WorkingDir": "/",
        "StopSignal": "SIGTERM",
        "User": f"{USER}:{USER}",
    }
    if options.port:
        config["ExposedPorts"] = {f"{port}/tcp": {} for port in options.port}
    image = oci.Image(
        name=f"{options.name}:{version}",
        architecture=architecture(),
        # What seldom changes is a layer of its own, so that an update moves the program alone.
        layers=[base, own],
        # The loader's name in every program is in /lib or /lib64.
        symlinks={"lib": "usr/lib", "lib64": "usr/lib64"} if libraries else {},
        config=config,
        labels=labels(options, version))
    archive, digest = oci.layout(image)
    options.out.write_bytes(archive)
    origins = {each: owners.get(each.source) if each.source else None for each in base + own}
    options.sbom.write_bytes(sbom.document(options.name, version, digest, origins, static))


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Reads OCI layouts, with the rules of the OCI image specification for every link between blobs."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any


def sha256(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


@dataclass
class Layout:
    """An image of one platform, as read."""

    digest: str
    reference: dict[str, Any]  # what the index says of the manifest
    manifest: dict[str, Any]
    config: dict[str, Any]
    layers: list[bytes]  # uncompressed

    def members(self) -> list[tuple[tarfile.TarInfo, bytes]]:
        """Everything in all layers, in order."""
        out = []
        for layer in self.layers:
            with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
                for member in archive:
                    file = archive.extractfile(member) if member.isfile() else None
                    out.append((member, file.read() if file else b""))
        return out

    def unpack(self, folder: Path) -> Path:
        for layer in self.layers:
            with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
                archive.extractall(folder)
        return folder


def read_layout(path: Path) -> Layout:
    """Asserts that sizes and digests are those of the blobs, and that no blob is left over."""
    with tarfile.open(path) as archive:
        files = {}
        for member in archive:
            assert member.isfile() or member.isdir(), member.name
            if member.isfile():
                assert member.name not in files, member.name
                file = archive.extractfile(member)
                assert file is not None
                files[member.name] = file.read()
    assert json.loads(files.pop("oci-layout")) == {"imageLayoutVersion": "1.0.0"}
    used = set()

    def blob(descriptor: dict[str, Any]) -> bytes:
        name = "blobs/sha256/" + descriptor["digest"].removeprefix("sha256:")
        used.add(name)
        data = files[name]
        assert sha256(data) == descriptor["digest"]
        assert len(data) == descriptor["size"]
        return data

    index = json.loads(files.pop("index.json"))
    assert index["schemaVersion"] == 2
    (reference,) = index["manifests"]
    manifest = json.loads(blob(reference))
    assert manifest["schemaVersion"] == 2
    config = json.loads(blob(manifest["config"]))
    layers = [gzip.decompress(blob(layer)) for layer in manifest["layers"]]
    assert config["rootfs"] == {"type": "layers", "diff_ids": [sha256(layer) for layer in layers]}
    assert used == set(files), "blobs that nothing names"
    return Layout(reference["digest"], reference, manifest, config, layers)

# SPDX-License-Identifier: Apache-2.0
"""OCI image layouts, written so that the same files give the same bytes.

Format: the OCI image specification 1.0, as one tar archive (docker and podman load it, skopeo calls
it oci-archive, containerd imports it). Times are 1970, owners root, order by path.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from dataclasses import dataclass, field
from typing import Any

from files import File

EPOCH = "1970-01-01T00:00:00Z"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


@dataclass(frozen=True)
class Image:
    """An image before it is bytes."""

    name: str  # NAME:TAG that loaders give it
    architecture: str  # in Go's words: amd64, arm64
    layers: list[list[File]]
    symlinks: dict[str, str]  # of the first layer: path -> target
    config: dict[str, Any]
    labels: dict[str, str] = field(default_factory=dict)


def digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _add(archive: tarfile.TarFile, path: str, mode: int, *, data: bytes | None = None,
         link: str | None = None) -> None:
    info = tarfile.TarInfo(path)  # uid, gid and mtime are 0, owners' names empty
    info.mode = mode
    if link is not None:
        info.type, info.linkname = tarfile.SYMTYPE, link
    elif data is None:
        info.type = tarfile.DIRTYPE
    else:
        info.size = len(data)
    archive.addfile(info, io.BytesIO(data) if data is not None else None)


def layer(files: list[File], symlinks: dict[str, str]) -> bytes:
    """An uncompressed tar; folders come before what is in them."""
    paths = [f.path for f in files] + list(symlinks)
    if len(set(paths)) != len(paths):
        raise ValueError("a path is there twice")
    folders = {"/".join(path.split("/")[:depth])
               for path in paths for depth in range(1, path.count("/") + 1)}
    contents = {f.path: f for f in files}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in sorted(folders | set(paths)):
            if path in contents:
                _add(archive, path, contents[path].mode, data=contents[path].data)
            elif path in symlinks:
                _add(archive, path, 0o777, link=symlinks[path])
            else:
                _add(archive, path, 0o755)
    return out.getvalue()


def layout(image: Image) -> tuple[bytes, str]:
    """The layout as a tar archive, and the digest of its manifest."""
    tars = [layer(files, image.symlinks if number == 0 else {})
            for number, files in enumerate(image.layers)]
    blobs = [gzip.compress(tar, compresslevel=6, mtime=0) for tar in tars]
    config = _json({
        "architecture": image.architecture,
        "os": "linux",
        "created": EPOCH,
        "config": {**image.config, "Labels": image.labels},
        "rootfs": {"type": "layers", "diff_ids": [digest(tar) for tar in tars]},
        "history": [{"created": EPOCH, "created_by": "//deploy/image"} for _ in tars],
    })
    manifest = _json({
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": {"mediaType": _CONFIG, "digest": digest(config), "size": len(config)},
        "layers": [{"mediaType": _LAYER, "digest": digest(b), "size": len(b)} for b in blobs],
        "annotations": image.labels,
    })
    index = _json({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [{
            "mediaType": _MANIFEST,
            "digest": digest(manifest),
            "size": len(manifest),
            "platform": {"architecture": image.architecture, "os": "linux"},
            "annotations": {
                "io.containerd.image.name": image.name,
                "org.opencontainers.image.ref.name": image.name.rpartition(":")[2],
            },
        }],
    })
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        _add(archive, "oci-layout", 0o644, data=_json({"imageLayoutVersion": "1.0.0"}))
        _add(archive, "index.json", 0o644, data=index)
        for folder in ("blobs", "blobs/sha256"):
            _add(archive, folder, 0o755)
        for blob in sorted([*blobs, config, manifest], key=digest):
            _add(archive, "blobs/sha256/" + digest(blob)[7:], 0o644, data=blob)
    return out.getvalue(), digest(manifest)

# SPDX-License-Identifier: Apache-2.0
"""Metadata of any length and alphabet as Kubernetes labels, and back.

OpenSandbox keeps metadata as labels: a value has at most 63 characters of [A-Za-z0-9-_.] and begins
and ends with a letter or digit. AstraBox's metadata has no such bounds. The projection is
deterministic, so that a value can be looked for by projecting it the same way:

  * An entry that is a legal label travels as it is.
  * Any other is split: its key and value as JSON, in lower-case base32 without padding, in pieces
    of 63 characters, under `<PREFIX>/<16 hex digits of the key's SHA-256>.<index>-<count>`. A piece
    that is missing is noticed by the count, one that was changed by the key's digest.
  * Session and assignment ids are moreover kept under their own keys as AstraBox's built-in
    provider keeps them, as `s-` or `a-` and the base32 of their SHA-256, for tools that look there.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping

PREFIX = "projected.astrabox"

_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)
_DOMAIN = re.compile(r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?", re.ASCII)
_PIECE = re.compile(re.escape(PREFIX) + r"/([0-9a-f]{16})\.(\d+)-(\d+)", re.ASCII)
_PIECE_CHARACTERS = 63
# Python's text can hold lone surrogates; they come back as they went.
_ENCODING = ("utf-8", "surrogatepass")
# Prefixes that the upstream or the bridge keep for themselves.
_RESERVED = ("opensandbox.io", "sandbox-bridge")
_DIGESTED = {"astrabox.session-id": "s-", "astrabox.assignment-id": "a-"}


class DamagedMetadata(ValueError):
    """Pieces of a projected entry are missing or do not belong together."""


def project(metadata: Mapping[str, str]) -> dict[str, str]:
    """The labels that stand for `metadata`."""
    labels: dict[str, str] = {}
    for key, value in metadata.items():
        if _is_label(key, value):
            labels[key] = value
            continue
        labels.update(_pieces(key, value))
        if key in _DIGESTED:
            labels[key] = digest(_DIGESTED[key], value)
    return labels


def restore(labels: Mapping[str, str]) -> dict[str, str]:
    """The metadata that `labels` stand for; labels of others are kept as they are.

    Raises DamagedMetadata rather than answer a part.
    """
    metadata = {key: value for key, value in labels.items() if not _PIECE.fullmatch(key)}
    entries: dict[str, dict[int, str]] = {}
    counts: dict[str, int] = {}
    for key, value in labels.items():
        match = _PIECE.fullmatch(key)
        if match is None:
            continue
        entry, index, count = match[1], int(match[2]), int(match[3])
        entries.setdefault(entry, {})[index] = value
        if counts.setdefault(entry, count) != count:
            raise DamagedMetadata(f"metadata {entry}: pieces of two sizes")
    for entry, pieces in entries.items():
        if sorted(pieces) != list(range(counts[entry])):
            raise DamagedMetadata(f"metadata {entry}: {len(pieces)} of {counts[entry]} pieces")
        key, value = _decode(entry, "".join(pieces[index] for index in sorted(pieces)))
        metadata[key] = value
    return metadata


def request_id(installation: str, assignment_id: str) -> str:
    """The bridge's request_id of an assignment: its own for each installation, so that two of them
    on one upstream never adopt each other's sandboxes."""
    return digest("abx-", json.dumps([installation, assignment_id]))


def digest(prefix: str, text: str) -> str:
    """A prefix and 52 characters that stand for `text`; a legal label."""
    return prefix + _base32(hashlib.sha256(text.encode(*_ENCODING)).digest())


def _is_label(key: str, value: str) -> bool:
    domain, slash, name = key.rpartition("/")
    if slash and not _DOMAIN.fullmatch(domain):
        return False
    if any(domain == mine or domain.startswith(mine + ".") for mine in _RESERVED):
        return False
    if domain.endswith(".opensandbox.io"):
        return False
    return bool(_NAME.fullmatch(name)) and bool(_VALUE.fullmatch(value))


def _pieces(key: str, value: str) -> dict[str, str]:
    text = _base32(json.dumps([key, value], ensure_ascii=False).encode(*_ENCODING))
    parts = [text[i : i + _PIECE_CHARACTERS] for i in range(0, len(text), _PIECE_CHARACTERS)]
    entry = _entry(key)
    return {f"{PREFIX}/{entry}.{i}-{len(parts)}": part for i, part in enumerate(parts)}


def _decode(entry: str, text: str) -> tuple[str, str]:
    try:
        padding = "=" * (-len(text) % 8)
        key, value = json.loads(base64.b32decode(text.upper() + padding).decode(*_ENCODING))
    except ValueError as error:
        raise DamagedMetadata(f"metadata {entry}: not what was written") from error
    if not isinstance(key, str) or not isinstance(value, str) or _entry(key) != entry:
        raise DamagedMetadata(f"metadata {entry}: not what was written")
    return key, value


def _entry(key: str) -> str:
    return hashlib.sha256(key.encode(*_ENCODING)).hexdigest()[:16]


def _base32(data: bytes) -> str:
    return base64.b32encode(data).decode().lower().rstrip("=")

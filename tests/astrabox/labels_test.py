# SPDX-License-Identifier: Apache-2.0
"""Metadata as labels and back."""

from __future__ import annotations

import base64
import hashlib
import random
import re
import string

import pytest
from astrabox_sandbox_bridge import labels

# The rules of Kubernetes, written anew from its documentation.
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_DOMAIN = re.compile(r"([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]*[a-z0-9])?")


def assert_legal(projected: dict[str, str]) -> None:
    for key, value in projected.items():
        domain, _, name = key.rpartition("/")
        assert _NAME.fullmatch(name), key
        assert not domain or (_DOMAIN.fullmatch(domain) and len(domain) <= 253), key
        assert not domain.endswith("opensandbox.io"), key
        assert len(value) <= 63, value
        assert value == "" or _NAME.fullmatch(value), value


def test_legal_labels_travel_as_they_are() -> None:
    plain = {"astrabox.session-id": "0b9a-1", "example.com/team": "a.b_c-1", "k": "v" * 63}
    assert labels.project(plain) == plain
    assert labels.restore(plain) == plain


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("k", "v" * 64),
        ("k", "v" * 100_000),
        ("k", "/Users/x"),
        ("k", "a=b&c=d"),
        ("k", "-starts-with-a-dash"),
        ("k", "ends-with-a-dot."),
        ("k", "line\nline\r\n"),
        ("k", "trailing newline\n"),
        ("k", "☃日本語"),
        ("k", '{"json": [1, "\\"", null]}'),
        ("k", "lone surrogate \udcff"),
        ("k" * 64, "v"),
        ("a key with spaces", "v"),
        ("kéy", "v"),
        ("opensandbox.io/id", "v"),
        ("sandbox-bridge/request-id", "v"),
        ("sub.opensandbox.io/id", "v"),
        ("Upper.Domain/name", "v"),
        ("/name", "v"),
        ("a/b/c", "v"),
        ("domain/", "v"),
    ],
)
def test_any_entry_goes_and_comes_back(key: str, value: str) -> None:
    metadata = {key: value, "other": "stays"}
    projected = labels.project(metadata)
    assert_legal(projected)
    assert labels.restore(projected) == metadata
    assert labels.project(metadata) == projected


def test_random_entries_go_and_come_back() -> None:
    chance = random.Random(7)  # noqa: S311
    alphabet = string.printable + "éß☃\u2028\0"
    for _ in range(300):
        metadata = {
            "".join(chance.choices(alphabet, k=chance.randint(1, 90))): "".join(
                chance.choices(alphabet, k=chance.randint(1, 300))
            )
            for _ in range(chance.randint(0, 4))
        }
        projected = labels.project(metadata)
        assert_legal(projected)
        assert labels.restore(projected) == metadata


def test_composite_ids_also_have_the_built_in_providers_form() -> None:
    session = "agent-runtime:2f1c9a5e-0000-4000-8000-000000000000"
    projected = labels.project({"astrabox.session-id": session})
    assert_legal(projected)
    digest = base64.b32encode(hashlib.sha256(session.encode()).digest()).decode()
    assert projected["astrabox.session-id"] == "s-" + digest.lower().rstrip("=")
    assert labels.restore(projected) == {"astrabox.session-id": session}


def test_labels_of_others_are_kept() -> None:
    others = {"org.opencontainers.image.version": "1", "projected.astrabox/notes": "x"}
    assert labels.restore(others) == others


@pytest.mark.parametrize("damage", ["missing", "changed", "swapped", "counts"])
def test_damage_is_noticed(damage: str) -> None:
    projected = labels.project({"k": "x" * 200})
    keys = sorted(projected)
    assert len(keys) > 2
    match damage:
        case "missing":
            del projected[keys[1]]
        case "changed":
            projected[keys[0]] = "a" * 63
        case "swapped":
            projected[keys[0]], projected[keys[1]] = projected[keys[1]], projected[keys[0]]
        case "counts":
            projected[keys[0].replace(f"-{len(keys)}", f"-{len(keys) + 1}")] = "aa"
    with pytest.raises(labels.DamagedMetadata):
        labels.restore(projected)


def test_entries_do_not_collide() -> None:
    metadata = {f"key {i}": f"value {i}" * 20 for i in range(200)}
    assert labels.restore(labels.project(metadata)) == metadata


def test_request_ids_differ_by_installation_and_fit_the_api() -> None:
    one = labels.request_id("installation-1", "uuid:uuid" * 20)
    assert one == labels.request_id("installation-1", "uuid:uuid" * 20)
    assert one != labels.request_id("installation-2", "uuid:uuid" * 20)
    # A boundary that moves is another pair.
    assert labels.request_id("a", "b\nc") != labels.request_id("a\nb", "c")
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,128}", one)

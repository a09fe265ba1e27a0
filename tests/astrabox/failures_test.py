# SPDX-License-Identifier: Apache-2.0
"""The table of failures: complete, equal to the documentation, applied without leaking."""

from __future__ import annotations

import re
from pathlib import Path

import grpc
import pytest
from astrabox.common.utils.errors import APIError
from astrabox_sandbox_bridge import names
from astrabox_sandbox_bridge.client import BRIDGE_UNREACHABLE, BridgeError, v1
from astrabox_sandbox_bridge.failures import (
    TABLE,
    Plane,
    api_error,
    rendered,
    row_of,
    scrub,
)
from astrabox_sandbox_bridge.settings import SettingError

from fake_bridge.errors import CODES

REASONS = [name.removeprefix("ERROR_REASON_") for name in v1.ErrorReason.keys()]  # noqa: SIM118


def test_every_reason_has_a_row_and_every_row_a_reason() -> None:
    assert sorted(TABLE) == sorted([*REASONS, BRIDGE_UNREACHABLE])


@pytest.mark.parametrize("reason", [*REASONS, BRIDGE_UNREACHABLE])
def test_rows_are_in_the_platforms_vocabulary(reason: str) -> None:
    row = TABLE[reason]
    assert row.status in {400, 404, 409, 501, 502, 503}
    error = api_error(BridgeError(reason, "words"), "create")
    assert isinstance(error, APIError)
    assert (error.status_code, error.retryable) == (row.status, row.retryable)
    assert str(error) == f"{error.code}: words"
    assert error.evidence["bridge_reason"] == reason


@pytest.mark.parametrize("reason", [r for r in REASONS if r != "UNSPECIFIED"])
def test_classes_agree_with_the_grpc_codes(reason: str) -> None:
    """A failure of the server's side is never the caller's fault here, and the other way round."""
    code, row = CODES[reason], TABLE[reason]
    if code in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}:
        assert row.status == 502
        assert row.retryable
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED and reason != "NO_SPACE":
        assert row.status == 503
        assert row.retryable
    if code is grpc.StatusCode.UNIMPLEMENTED:
        assert row.status == 501
    if row.status == 400:
        assert code is grpc.StatusCode.INVALID_ARGUMENT
    if code is grpc.StatusCode.INVALID_ARGUMENT:
        assert row.status == 400


def test_only_a_missing_sandbox_reads_as_missing() -> None:
    """A 404 makes the platform provision anew: nothing else may look like one."""
    missing = {reason for reason, row in TABLE.items() if row.status == 404}
    assert missing == {"SANDBOX_NOT_FOUND", "STALE_INCARNATION"}


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        ("pause", "SANDBOX_PAUSE_UNSUPPORTED"),
        ("diagnostics", "SANDBOX_DIAGNOSTICS_NOT_IMPLEMENTED"),
        ("isolation", "SANDBOX_ISOLATION_UNSUPPORTED"),
        ("egress", "SANDBOX_EGRESS_MUTATION_UNSUPPORTED"),
        ("processes", "SANDBOX_PROCESS_SESSIONS_UNSUPPORTED"),
        ("something new", "SANDBOX_CONFIG_INVALID"),
    ],
)
def test_what_is_missing_is_named_by_the_operation(operation: str, code: str) -> None:
    error = api_error(BridgeError("UNSUPPORTED_FEATURE", "no"), operation)
    assert (error.code, error.status_code) == (code, 501)


def test_gone_is_only_for_what_was_bound() -> None:
    for reason in ("SANDBOX_NOT_FOUND", "SANDBOX_NOT_RUNNING"):
        error = api_error(BridgeError(reason, "x"), "connect", gone=True)
        assert (error.code, error.status_code) == ("SANDBOX_GONE", 404)
    plain = api_error(BridgeError("SANDBOX_NOT_FOUND", "x"), "describe")
    assert plain.code == "SANDBOX_NOT_FOUND"
    other = api_error(BridgeError("UPSTREAM_UNAVAILABLE", "x"), "connect", gone=True)
    assert (other.code, other.status_code) == ("AGENT_RUNTIME_ERROR", 502)


def test_unknown_reasons_of_newer_bridges_are_faults_of_the_runtime() -> None:
    assert row_of("BRAND_NEW") == TABLE["INTERNAL"]


def test_a_leak_rides_in_the_error() -> None:
    error = BridgeError("READY_TIMEOUT", "late", metadata={"leaked_sandbox_id": "box-9"})
    assert api_error(error, "create").data == {
        "sandbox_id": "box-9",
        "leaked_sandbox_id": "box-9",
    }
    assert api_error(BridgeError("READY_TIMEOUT", "late"), "create").data is None


def test_secrets_are_scrubbed_everywhere() -> None:
    error = BridgeError(
        "UPSTREAM_REJECTED", "bad Bearer tok-12345", metadata={"upstream_code": "x tok-12345"}
    )
    rendered_error = api_error(error, "create", secrets=("tok-12345",))
    shown = repr((rendered_error.args, rendered_error.evidence, rendered_error.user_message))
    assert "tok-12345" not in shown
    assert "[redacted]" in shown


def test_scrub_takes_the_longest_first_and_leaves_words() -> None:
    assert scrub("abcdefgh abcdef the", ("abcdef", "abcdefgh", "the")) == (
        "[redacted] [redacted] the"
    )


def test_rendered_cuts_the_unscrubbed_cause() -> None:
    with (
        pytest.raises(APIError) as caught,
        rendered("create", secrets=("tok-12345",)),
    ):
        raise BridgeError("INTERNAL", "tok-12345")
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    with pytest.raises(APIError) as caught, rendered("create"):
        raise SettingError("VARIABLE is wrong")
    assert (caught.value.code, caught.value.status_code) == ("SANDBOX_CONFIG_INVALID", 500)


@pytest.mark.parametrize("plane", [p for p in Plane if p is not Plane.API_ERROR])
def test_planes_have_exceptions_with_what_is_known(plane: Plane) -> None:
    error = names.error(plane, "words", path="/x", first_available=7)
    assert type(error).__name__ == plane.value
    assert "words" in str(error)
    assert getattr(error, "path", None) == "/x"
    assert getattr(error, "first_available", None) == 7


def test_the_documentation_has_the_same_table() -> None:
    document = Path(__file__).parents[2] / "docs" / "astrabox-provider.md"
    rows = re.findall(
        r"^\| `([A-Z_]+)` \| (.*?) \| (\d+) \| `?(\w+)`? \|",
        document.read_text("utf-8"),
        re.MULTILINE,
    )
    documented = {reason: (code, int(status), plane) for reason, code, status, plane in rows}
    assert documented == {
        reason: (f"`{row.code}`" if row.code else "by the operation", row.status, row.plane.value)
        for reason, row in TABLE.items()
        if reason != "UNSPECIFIED"
    }

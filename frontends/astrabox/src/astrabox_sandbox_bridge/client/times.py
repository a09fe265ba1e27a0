# SPDX-License-Identifier: Apache-2.0
"""Seconds and datetimes ↔ the protobuf types of the API."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from .errors import BridgeError

# What a Duration can hold: some 10,000 years.
_MAX_SECONDS = 315_576_000_000


def length(seconds: float | timedelta, name: str) -> float:
    """A length of time in seconds. `name` is the argument's, for the INVALID_ARGUMENT of what is
    none: NaN, infinity, ages."""
    if isinstance(seconds, timedelta):
        seconds = seconds.total_seconds()
    if not -_MAX_SECONDS <= seconds <= _MAX_SECONDS:
        raise BridgeError(
            "INVALID_ARGUMENT", f"{name}: {seconds} s is no length of time", field=name
        )
    return seconds


def duration(seconds: float | timedelta, name: str = "seconds") -> Duration:
    """Rounded to the nanosecond. Raises as length()."""
    seconds = length(seconds, name)
    whole = int(seconds)
    return Duration(seconds=whole, nanos=round((seconds - whole) * 1e9))


def timestamp(moment: datetime) -> Timestamp:
    """A naive datetime is taken for UTC."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    stamp = Timestamp()
    stamp.FromDatetime(moment.astimezone(UTC))
    return stamp


def moment(stamp: Timestamp) -> datetime:
    """With the time zone UTC; cut to the microsecond, which is what a datetime can hold."""
    return datetime.fromtimestamp(stamp.seconds, UTC) + timedelta(microseconds=stamp.nanos // 1000)

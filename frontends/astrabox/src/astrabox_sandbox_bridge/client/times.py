# SPDX-License-Identifier: Apache-2.0
"""Seconds and datetimes ↔ the protobuf types of the API."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp


def duration(seconds: float | timedelta) -> Duration:
    """Rounded to the nanosecond."""
    if isinstance(seconds, timedelta):
        seconds = seconds.total_seconds()
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

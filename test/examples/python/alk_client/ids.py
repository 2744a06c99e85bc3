"""Ids and times that the client sets when something happens, so that a retry repeats them."""

from __future__ import annotations

import os
import time
from datetime import datetime, timezone
from typing import Protocol

MICROSECONDS = 1_000_000


class Clock(Protocol):
    """Seconds, for tests that don't wait."""

    def monotonic(self) -> float: ...

    def time(self) -> float: ...


class SystemClock:
    """The clock of the machine."""

    def monotonic(self) -> float:
        return time.monotonic()

    def time(self) -> float:
        return time.time()


def time_text(seconds: float) -> str:
    """Seconds since 1970 as RFC 3339 in UTC with microseconds."""
    whole, micros = divmod(round(seconds * MICROSECONDS), MICROSECONDS)
    moment = datetime.fromtimestamp(whole, timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + f".{micros:06d}Z"


def uuid7(seconds: float) -> str:
    """A UUID of version 7 (RFC 9562): sorts by time, and no two processes make the same one."""
    milliseconds = int(seconds * 1000) & 0xFFFFFFFFFFFF
    random = int.from_bytes(os.urandom(10), "big")
    high = (milliseconds << 16) | 0x7000 | (random >> 68)
    low = (0b10 << 62) | (random & ((1 << 62) - 1))
    digits = f"{high:016x}{low:016x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

"""How long to wait before the next attempt: longer each time, never in step with others."""

from __future__ import annotations

import random
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Optional

# Seconds after the first failure: a restart of the service takes a few of these.
DELAY_MIN = 0.1
# Seconds between attempts at most: an outage of hours ends within this.
DELAY_MAX = 30.0
# Doublings after which the delay is DELAY_MAX anyway; keeps 2 ** n small.
DOUBLINGS_MAX = 16
# Seconds of a Retry-After that are believed: a mistyped one must not stop a client for days.
RETRY_AFTER_MAX = 300.0


class Backoff:
    """Counts failures in a row. Not safe for several threads."""

    def __init__(self, rng: Optional[random.Random] = None) -> None:
        self._random = rng or random.Random()
        self.failures = 0

    def reset(self) -> None:
        self.failures = 0

    def next_delay(self, retry_after: Optional[float] = None, least: float = DELAY_MIN) -> float:
        """
        Seconds to wait after one more failure: between the half and all of `least` doubled per
        failure, and at least `retry_after`, with some more so that clients don't return together.
        """
        doubled = least * 2.0 ** min(self.failures, DOUBLINGS_MAX)
        self.failures += 1
        delay: float = min(DELAY_MAX, doubled) * self._random.uniform(0.5, 1)
        if retry_after is None:
            return delay
        return min(RETRY_AFTER_MAX, retry_after) * self._random.uniform(1, 1.25) + delay / 2


def retry_after_of(headers: Mapping[str, str], now: float) -> Optional[float]:
    """Seconds that Retry-After asks for, given as such or as a date; None without a usable one."""
    text = headers.get("retry-after", "").strip()
    if not text:
        return None
    try:
        return max(0.0, float(text) if text.isdigit() else _seconds_until(text, now))
    except (TypeError, ValueError):
        return None


def _seconds_until(date: str, now: float) -> float:
    return parsedate_to_datetime(date).timestamp() - now

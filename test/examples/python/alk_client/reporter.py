"""Says aloud what is not stored and why: in the log, to the hook, and to the next flush. Nothing
here is called while a lock of the queue is held, for handlers of logs may log events themselves."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Callable, Optional

from .errors import Rejection
from .ids import Clock

logger = logging.getLogger("alk_client")

# Rejections of one request that have a line of their own; the others are counted.
LINES_MAX = 10
# Seconds between two lines about the same trouble: an outage must not fill the log.
REPEAT_SECONDS = 10.0
# Rejections that the next flush can name.
REMEMBERED_MAX = 1000


class Reporter:
    """Safe for several threads."""

    def __init__(self, clock: Clock, on_rejected: Optional[Callable[[Rejection], None]]) -> None:
        self._clock = clock
        self._on_rejected = on_rejected
        self._lock = threading.Lock()
        self._unnamed: deque[Rejection] = deque(maxlen=REMEMBERED_MAX)
        self._quiet_until = 0.0
        self._overflow_quiet_until = 0.0
        self._overflowed = 0
        self._overflowed_last: Optional[Rejection] = None
        self.last_failure: Optional[str] = None

    def rejected(self, rejections: Sequence[Rejection]) -> None:
        """Items that will not be stored, of one request."""
        for one in rejections[:LINES_MAX]:
            logger.error("not stored: %s (field: %s)", one, one.field or "unknown")
        if len(rejections) > LINES_MAX:
            logger.error("%d more of this request are not stored", len(rejections) - LINES_MAX)
        self._remember(rejections)

    def overflowed(self, rejection: Rejection) -> None:
        """There was no room for an event."""
        with self._lock:
            self._overflowed += 1
            self._overflowed_last = rejection
        self.say_overflow()
        self._remember([rejection])

    def say_overflow(self) -> None:
        """Say how many had no room since the last line about it, unless that was just now."""
        now = self._clock.monotonic()
        with self._lock:
            if not self._overflowed or now < self._overflow_quiet_until:
                return
            self._overflow_quiet_until = now + REPEAT_SECONDS
            count, last = self._overflowed, self._overflowed_last
            self._overflowed = 0
        logger.error("%d not stored, the last: %s", count, last)

    def retrying(self, reason: str, waiting: int, delay: float, needs_help: bool) -> None:
        """A request failed and will be repeated."""
        now = self._clock.monotonic()
        is_news = self.last_failure is None or now >= self._quiet_until
        self.last_failure = reason
        if not is_news:
            return
        self._quiet_until = now + REPEAT_SECONDS
        level = logging.ERROR if needs_help else logging.WARNING
        logger.log(
            level, "%d items wait, the next attempt is in %.1f s: %s", waiting, delay, reason
        )

    def delivered(self) -> None:
        """A request was answered as it should be."""
        if self.last_failure is not None:
            self.last_failure = None
            logger.warning("the service takes events again")

    def unconfirmed(self, receipt_id: str) -> None:
        """Durable, but not visible in time: what the receipt may still refuse is not seen here."""
        now = self._clock.monotonic()
        if now >= self._quiet_until:
            self._quiet_until = now + REPEAT_SECONDS
            logger.warning(
                "the service is slow to show what it has stored; receipt %s will say if an id "
                "was taken by another event",
                receipt_id,
            )

    def take(self) -> list[Rejection]:
        """The rejections since the last call."""
        with self._lock:
            taken = list(self._unnamed)
            self._unnamed.clear()
        return taken

    def _remember(self, rejections: Sequence[Rejection]) -> None:
        with self._lock:
            # Without the bodies: these are kept until somebody flushes.
            self._unnamed.extend(replace(one, body=b"") for one in rejections)
        if self._on_rejected is None:
            return
        for one in rejections:
            try:
                self._on_rejected(one)
            except Exception:
                logger.exception("on_rejected has failed for %s", one.id)

"""Every setting of a client, with its default, unit and reason. Reads ALK_URL and ALK_API_KEY."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Callable, Literal, Optional, Union, get_args

from .errors import Rejection

# The service takes so many items in a request.
BATCH_EVENTS_MAX = 1000
Overflow = Literal["drop-newest", "block", "raise"]
OVERFLOW_POLICIES = get_args(Overflow)


@dataclass(frozen=True)
class Settings:
    """
    What the queue may hold and when it is sent. The defaults hold some minutes of a busy service
    in at most 64 MiB, and send an event within 0.1 s.
    """

    # Events, and bytes of their JSON, that wait at most; operations on traces have as much.
    queue_events: int = 100_000
    queue_bytes: int = 64 * 1024 * 1024
    # What happens to an event for which there is no room: see AlkClient.
    overflow: Overflow = "drop-newest"
    # Seconds that an event waits for company at most.
    linger: float = 0.1
    # Items of a request; the service takes 1,000.
    batch_events: int = 500
    # Bytes of a request: proxies take a mebibyte, unless they are told otherwise.
    batch_bytes: int = 512 * 1024
    # Seconds that a request may take; the service answers within 10.
    request_timeout: float = 15.0
    # Seconds that the end of the program waits for the queue.
    exit_timeout: float = 5.0
    # Called by the background thread with each rejection that nobody waits for.
    on_rejected: Optional[Callable[[Rejection], None]] = None

    def __post_init__(self) -> None:
        if self.overflow not in OVERFLOW_POLICIES:
            raise ValueError(
                f"overflow: is {self.overflow!r}; use {' or '.join(OVERFLOW_POLICIES)}"
            )
        for name in ("queue_events", "queue_bytes", "batch_events", "batch_bytes"):
            _check_positive(name, getattr(self, name))
        _check_positive("request_timeout", self.request_timeout)
        if self.batch_events > BATCH_EVENTS_MAX:
            raise ValueError(f"batch_events: is {self.batch_events}; use 1 to {BATCH_EVENTS_MAX}")


def _check_positive(name: str, value: Union[int, float]) -> None:
    if not value > 0:
        raise ValueError(f"{name}: is {value}; use a number above 0")


def address(url: Optional[str]) -> str:
    """The address given, else ALK_URL. ValueError if there is none."""
    found = url or os.environ.get("ALK_URL", "")
    if not found:
        raise ValueError("url: is missing; pass url=… or set ALK_URL to the service's address")
    return found


def api_key(key: Optional[str]) -> str:
    """The key given, else ALK_API_KEY. ValueError if there is none."""
    found = key or os.environ.get("ALK_API_KEY", "")
    if not found:
        raise ValueError("key: is missing; pass key=… or set ALK_API_KEY to a key with scope write")
    if not found.isascii() or any(char.isspace() for char in found):
        raise ValueError("key: holds white space or characters of no key; copy it anew")
    return found

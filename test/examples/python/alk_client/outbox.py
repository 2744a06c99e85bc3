"""What was logged and is not settled yet, in order, within limits of number and bytes. Knows
nothing of the network; safe for several threads."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import islice
from typing import Optional, TypeVar, Union

from .errors import ClosedError, Rejection


@dataclass(frozen=True)
class Receipt:
    """
    Where an event is. `is_duplicate`: it was stored before under the same id with the same content,
    perhaps by an attempt of this very call whose answer was lost.
    """

    id: str
    receipt_id: str
    sequence_number: int
    is_duplicate: bool


@dataclass(frozen=True)
class PendingReceipt:
    """The event is durable; the receipt will say where it is, `place` in a request of `count`."""

    id: str
    receipt_id: str
    place: int
    count: int


# What `record` waits for.
Recorded = Union[Receipt, PendingReceipt, Rejection]
T = TypeVar("T")


class Entry:
    """One item as the bytes that every attempt sends. `answer` is there if somebody waits."""

    __slots__ = ("answer", "at", "body", "id")

    def __init__(self, id: str, body: bytes, answer: Optional[Future[Recorded]] = None) -> None:
        self.id = id
        self.body = body
        self.answer = answer
        # Seconds of the clock when it was queued.
        self.at = 0.0

    @property
    def is_awaited(self) -> bool:
        """True if somebody still waits for the answer."""
        return self.answer is not None and not self.answer.cancelled()


class Outbox:
    """
    Entries are numbered from 1 as they come, and are settled in this order: acknowledged or
    rejected. So one number says what `flush` waits for.
    """

    def __init__(self, events_max: int, bytes_max: int, changed: threading.Condition) -> None:
        self._events_max = events_max
        self._bytes_max = bytes_max
        self._entries: deque[Entry] = deque()
        self._bytes = 0
        self._waiters: list[tuple[int, Future[None]]] = []
        self.changed = changed
        self.last = 0
        self.settled = 0
        # The last entry that must not wait for company.
        self.urgent = 0
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._entries)

    def has_room(self, entry: Entry) -> bool:
        """An entry that is larger than all the room is let in when nothing else is there."""
        is_within = (
            len(self._entries) < self._events_max
            and self._bytes + len(entry.body) <= self._bytes_max
        )
        return is_within or not self._entries

    def offer(self, entry: Entry, now: float, wait: Optional[float] = 0.0) -> bool:
        """
        Append if there is room, waiting `wait` seconds for it (None: as long as it takes). Raises
        ClosedError once the box is closed.
        """
        with self.changed:
            self.changed.wait_for(lambda: self._is_closed or self.has_room(entry), wait)
            if self._is_closed:
                raise ClosedError("the client is closed; make a new one")
            if not self.has_room(entry):
                return False
            entry.at = now
            was_empty = not self._entries
            self._entries.append(entry)
            self._bytes += len(entry.body)
            self.last += 1
            if entry.answer is not None:
                self.urgent = self.last
            if was_empty or entry.answer is not None:
                self.changed.notify_all()
            return True

    def head(self, events_max: int, bytes_max: int) -> list[Entry]:
        """The first entries within both limits, at least one if there is any; they stay."""
        with self.changed:
            batch: list[Entry] = []
            size = 0
            for entry in islice(self._entries, events_max):
                size += len(entry.body)
                if batch and size > bytes_max:
                    break
                batch.append(entry)
            return batch

    def is_due(self, now: float, linger: float, events: int, bytes_: int) -> float:
        """Seconds until the head should be sent: 0 if it is full, urgent or has waited enough."""
        with self.changed:
            is_full = len(self._entries) >= events or self._bytes >= bytes_
            if is_full or self.settled < self.urgent:
                return 0.0
            return max(0.0, self._entries[0].at + linger - now)

    def close(self) -> None:
        """Take nothing more."""
        with self.changed:
            self._is_closed = True
            self.changed.notify_all()

    def settle(self, count: int) -> None:
        """The first `count` entries are acknowledged or rejected."""
        with self.changed:
            for _ in range(count):
                self._bytes -= len(self._entries.popleft().body)
            self.settled += count
            reached = [one for number, one in self._waiters if number <= self.settled]
            self._waiters = [one for one in self._waiters if one[0] > self.settled]
            self.changed.notify_all()
        for waiter in reached:
            resolve(waiter, None)

    def flushed(self) -> Future[None]:
        """Resolves when everything that is here now is settled; nothing of it waits for company."""
        future: Future[None] = Future()
        with self.changed:
            self.urgent = self.last
            if self.settled < self.last:
                self._waiters.append((self.last, future))
                self.changed.notify_all()
                return future
        resolve(future, None)
        return future

    def pending_ids(self, up_to: int) -> list[str]:
        """Ids of the entries up to this number that are not settled."""
        with self.changed:
            return [entry.id for entry in islice(self._entries, max(0, up_to - self.settled))]


def resolve(future: Future[T], result: T) -> bool:
    """Set the result; false if who waited for it has given up."""
    is_awaited = future.set_running_or_notify_cancel()
    if is_awaited:
        future.set_result(result)
    return is_awaited

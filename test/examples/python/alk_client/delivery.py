"""Sends the head of an outbox until every item is acknowledged or rejected. No thread and no
waiting: `step` does what is due and says when to call it again, so tests can go through any mix of
failures.

One request is under way at a time, and the next batch is sent only when the one before is settled:
that keeps the order. Every attempt sends the same bytes under the same ids, which the service
recognises: that keeps a lost answer from doubling anything."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Optional

from .answers import Again, Done, InParts, Meaning, meaning_of
from .backoff import Backoff
from .errors import Rejection, TransportError
from .ids import Clock
from .outbox import Entry, Outbox, PendingReceipt, Receipt, Recorded, resolve
from .reporter import Reporter
from .settings import Settings
from .transport import Request, Transport

# Seconds without waiting for visibility, after the store was too slow for it: the events are
# durable, and waiting 10 s for each batch would fill the queue.
UNCONFIRMED_SECONDS = 30.0


@dataclass(frozen=True)
class Route:
    """Where items of a kind go, and the member of the body that holds them."""

    path: str
    member: str


EVENTS = Route("/v1/events/batch", "events")
TRACES = Route("/api/v1/traces/batch", "operations")


class Delivery:
    """For one thread at a time."""

    def __init__(
        self,
        outbox: Outbox,
        route: Route,
        transport: Transport,
        settings: Settings,
        clock: Clock,
        reporter: Reporter,
        rng: Optional[random.Random] = None,
    ) -> None:
        self._outbox = outbox
        self._route = route
        self._transport = transport
        self._settings = settings
        self._clock = clock
        self._reporter = reporter
        self._backoff = Backoff(rng)
        self._not_before = 0.0
        self._unconfirmed_until = 0.0
        # Shrink when the service takes less: items until a batch passes, bytes for good.
        self._events_max = settings.batch_events
        self._bytes_max = settings.batch_bytes

    def step(self) -> Optional[float]:
        """Send at most one request. Seconds until the next step is due; None if nothing waits."""
        if len(self._outbox) == 0:
            return None
        now = self._clock.monotonic()
        due = self._outbox.is_due(
            now, self._settings.linger, self._settings.batch_events, self._settings.batch_bytes
        )
        wait = max(due, self._not_before - now)
        if wait > 0:
            return wait
        batch = self._outbox.head(self._events_max, self._bytes_max)
        self._apply(self._attempt(batch, now), batch)
        return 0.0

    def _attempt(self, batch: Sequence[Entry], now: float) -> Meaning:
        """An answer that is awaited asks for visibility even while that is slow."""
        is_awaited = any(entry.is_awaited for entry in batch)
        is_sync = is_awaited or now >= self._unconfirmed_until
        path = self._route.path + ("?sync=true" if is_sync else "")
        body = b'{"%s":[%s]}' % (
            self._route.member.encode(),
            b",".join(entry.body for entry in batch),
        )
        try:
            answer = self._transport.send(
                Request("POST", path, body), self._settings.request_timeout
            )
        except TransportError as error:
            return Again(str(error))
        meaning = meaning_of(answer, len(batch), self._clock.time())
        if isinstance(meaning, Done) and not meaning.is_final and is_sync:
            self._unconfirmed_until = self._clock.monotonic() + UNCONFIRMED_SECONDS
            self._reporter.unconfirmed(meaning.receipt_id)
        return meaning

    def _apply(self, meaning: Meaning, batch: Sequence[Entry]) -> None:
        if isinstance(meaning, Done):
            self._recover()
            refused = {
                at: Rejection(batch[at].id, error.code, error.message, batch[at].body)
                for at, error in meaning.errors.items()
            }
            self._settle(batch, refused, meaning)
        elif isinstance(meaning, InParts):
            self._recover()
            self._split(meaning, batch)
        else:
            self._retry(meaning)

    def _recover(self) -> None:
        self._backoff.reset()
        self._reporter.delivered()

    def _settle(
        self, batch: Sequence[Entry], refused: dict[int, Rejection], done: Optional[Done]
    ) -> None:
        """Rejections are told before a flush that waits for them can return."""
        unheard: list[Rejection] = []
        for at, entry in enumerate(batch):
            is_heard = entry.answer is not None and resolve(
                entry.answer, self._recorded(at, batch, refused, done)
            )
            if at in refused and not is_heard:
                unheard.append(refused[at])
        if unheard:
            self._reporter.rejected(unheard)
        self._outbox.settle(len(batch))
        self._events_max = min(self._settings.batch_events, self._events_max * 2)

    def _recorded(
        self, at: int, batch: Sequence[Entry], refused: dict[int, Rejection], done: Optional[Done]
    ) -> Recorded:
        if at in refused or done is None:
            return refused[at]
        entry = batch[at]
        if at in done.sequences:
            return Receipt(entry.id, done.receipt_id, done.sequences[at], at in done.duplicates)
        return PendingReceipt(entry.id, done.receipt_id, at, len(batch))

    def _split(self, meaning: InParts, batch: Sequence[Entry]) -> None:
        """Half of the batch next time; what is refused alone is rejected."""
        error = meaning.error
        if len(batch) == 1:
            [entry] = batch
            self._settle(
                batch, {0: Rejection(entry.id, error.code, error.message, entry.body)}, None
            )
            return
        self._events_max = len(batch) // 2
        if error.status == 413:
            self._bytes_max = max(1, sum(len(entry.body) for entry in batch) // 2)

    def _retry(self, meaning: Again) -> None:
        delay = self._backoff.next_delay(meaning.retry_after)
        self._not_before = self._clock.monotonic() + delay
        self._reporter.retrying(meaning.reason, len(self._outbox), delay, meaning.needs_help)

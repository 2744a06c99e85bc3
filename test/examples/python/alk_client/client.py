"""The client: log and record events, wait for them, read them back, and trace what agents do."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from types import TracebackType
from typing import Any, Callable, Optional, TypeVar

from .answers import done_of
from .audit import AuditSource, audited
from .delivery import EVENTS, TRACES
from .encoding import UnstorableError
from .errors import AlkError, FlushError, RecordTimeoutError, RejectedError, Rejection
from .events import ActorLike, Outcome, ResourceLike, Timestamp, event_bytes
from .ids import Clock, SystemClock, time_text, uuid7
from .outbox import Entry, PendingReceipt, Receipt, Recorded
from .reading import PAGE_SIZE, Filters, FilterValue, JsonObject, Reader
from .reporter import logger
from .settings import Settings, address, api_key
from .tail import Tail
from .traces import Run, Tracer
from .transport import HttpTransport, Transport
from .worker import Worker, forget_running

# Seconds that `flush`, `record` and `close` wait, unless they are told otherwise.
WAIT_SECONDS = 30.0
# Seconds between two looks at a receipt that is not final.
RECEIPT_SECONDS = 0.5

F = TypeVar("F", bound=Callable[..., Any])
_clients: weakref.WeakSet[AlkClient] = weakref.WeakSet()


class AlkClient:
    """
    A client of one service with one key. Make one per process and share it between threads.

    `log` puts an event into a queue in memory and returns; a background thread sends the queue in
    order, and again until the service has answered. What is in the queue is lost if the process is
    killed: `flush` says when it is safe, `record` does for one event.

    `Settings.overflow` says what happens when the queue is full, which takes an outage of minutes:

    - "drop-newest" (default): the new event is given up, and the log (ERROR), `on_rejected` and the
      next `flush` say so. The program goes on, and what was queued before stays complete and in
      order. Dropping the oldest would tear a hole into a past that `log` had taken already.
    - "block": `log` waits for room. For imports, which can go only as fast as the service takes.
    - "raise": `log` raises QueueFullError. For programs that must not act without a record.

    That and the limits are in `settings`. `transport` makes another way to the service, one for
    each process. ValueError names what can't be used.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        key: Optional[str] = None,
        *,
        settings: Optional[Settings] = None,
        transport: Optional[Callable[[], Transport]] = None,
        clock: Optional[Clock] = None,
    ) -> None:
        where, secret = address(url), api_key(key)
        self._transport = transport or (lambda: HttpTransport(where, secret))
        self._settings = settings or Settings()
        self._clock = clock or SystemClock()
        self._worker = self._new_worker()
        self._tracer = Tracer(self._clock, self._log_operation)
        _clients.add(self)

    # Writing

    def log(
        self,
        action: str,
        *,
        actor: Optional[ActorLike] = None,
        resource: Optional[ResourceLike] = None,
        outcome: Outcome = "success",
        metadata: Optional[Mapping[str, Any]] = None,
        id: Optional[str] = None,
        timestamp: Optional[Timestamp] = None,
    ) -> str:
        """
        Queue an event and return its id; never waits for the network and never raises because of it
        or of what the event holds: an event that can't be stored is rejected as the service would.

        `action` is like "document.read". `actor` and `resource` are dicts, or "human:alice" and
        "document:doc-1" in short; without `actor`, that of `acting_as`. `outcome` is success,
        failure (it was refused) or error (it went wrong). `metadata` is anything that JSON holds;
        times, UUIDs, decimals, paths and enums become text. `timestamp` is now unless it is given.
        Raises ClosedError after `close`, and QueueFullError if that is the policy.
        """
        event_id = id or uuid7(self._clock.time())
        entry = self._entry(event_id, timestamp, action, actor, resource, outcome, metadata)
        if isinstance(entry, Rejection):
            self._worker.reporter.rejected([entry])
        else:
            self._worker.log(EVENTS, entry)
        return event_id

    def record(
        self,
        action: str,
        *,
        actor: Optional[ActorLike] = None,
        resource: Optional[ResourceLike] = None,
        outcome: Outcome = "success",
        metadata: Optional[Mapping[str, Any]] = None,
        id: Optional[str] = None,
        timestamp: Optional[Timestamp] = None,
        timeout: float = WAIT_SECONDS,
    ) -> Receipt:
        """
        Like `log`, and wait until the event is stored, after all that was logged before: chained,
        and visible to every list. Raises RejectedError if it is refused, RecordTimeoutError after
        `timeout` seconds.
        """
        event_id = id or uuid7(self._clock.time())
        until = time.monotonic() + timeout
        entry = self._entry(event_id, timestamp, action, actor, resource, outcome, metadata)
        answer = self._await_entry(entry, timeout)
        try:
            recorded = answer.result(max(0.0, until - time.monotonic()))
        except FutureTimeout:
            answer.cancel()
            why = self._worker.reporter.last_failure or "the service has not answered"
            raise RecordTimeoutError(event_id, timeout, why) from None
        return self._receipt_of(recorded, until, timeout)

    def flush(self, timeout: Optional[float] = WAIT_SECONDS) -> None:
        """
        Return when everything logged and traced before is acknowledged: a crash of this program or
        of the service can't lose it any more. FlushError names what is not, because the `timeout`
        in seconds came first (None: no limit) or because it was rejected since the last flush.
        """
        self._worker.flush(timeout)

    def close(self, timeout: Optional[float] = WAIT_SECONDS) -> None:
        """Flush and end the background thread. FlushError names what is given up."""
        self._worker.close(timeout)

    def __enter__(self) -> AlkClient:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        try:
            self.close()
        except FlushError as lost:
            if error is None:
                raise
            # The error of the block is the one that the caller has to see.
            logger.error("the client is closed, and %s", lost)

    # Reading

    def events(
        self,
        filters: Optional[Filters] = None,
        *,
        order: str = "asc",
        page_size: int = PAGE_SIZE,
        **named: FilterValue,
    ) -> Iterator[JsonObject]:
        """
        Every event that matches, by sequence number: `events(action="document.*", from_="-24h")`.
        Names that Python has no word for go into `filters`: `{"outcome!": "success"}`. Retries what
        passes; raises ApiError for filters that the service refuses.
        """
        pages = self.event_pages(filters, order, page_size, named)
        return (event for page in pages for event in page)

    def executions(
        self,
        filters: Optional[Filters] = None,
        *,
        page_size: int = PAGE_SIZE,
        **named: FilterValue,
    ) -> Iterator[JsonObject]:
        """Every execution that matches, newest first; not those that start meanwhile."""
        pages = self.execution_pages(filters, page_size, named)
        return (execution for page in pages for execution in page)

    def tail(
        self,
        filters: Optional[Filters] = None,
        *,
        after: Optional[int] = None,
        **named: FilterValue,
    ) -> Tail:
        """
        Events as they come, over restarts of the service, none twice and none left out. `after` is
        the `position` of an earlier tail; without it, what is logged from now on.
        """
        worker = self._worker
        return Tail(worker.transport, self._clock, _merged(filters, named), after)

    # Traces and decorators

    def run(
        self,
        agent: str,
        *,
        name: Optional[str] = None,
        trigger: Optional[str] = None,
        metadata: Optional[Mapping[str, Any]] = None,
        id: Optional[str] = None,
    ) -> Run:
        """An execution of an agent, as a `with` or `async with` block; see `traces`."""
        return self._tracer.run(agent, name=name, trigger=trigger, metadata=metadata, id=id)

    def audit(
        self,
        action: str,
        *,
        resource: AuditSource,
        actor: Optional[AuditSource] = None,
        metadata: Optional[Callable[[Mapping[str, Any]], Mapping[str, Any]]] = None,
    ) -> Callable[[F], F]:
        """A decorator that logs each call of a function, failures too; see `audit`."""
        return audited(self.log, action, actor=actor, resource=resource, metadata=metadata)

    # Inside: what AsyncAlkClient shares

    @property
    def worker(self) -> Worker:
        """The queues and the thread of this process."""
        return self._worker

    def event_pages(
        self,
        filters: Optional[Filters],
        order: str,
        page_size: int,
        named: Mapping[str, FilterValue],
    ) -> Iterator[list[JsonObject]]:
        return self._reader().event_pages(order, page_size, _merged(filters, named))

    def execution_pages(
        self, filters: Optional[Filters], page_size: int, named: Mapping[str, FilterValue]
    ) -> Iterator[list[JsonObject]]:
        return self._reader().execution_pages(page_size, _merged(filters, named))

    def _new_worker(self) -> Worker:
        return Worker(self._transport(), self._settings, self._clock)

    def _after_fork_in_child(self) -> None:
        """What is queued is the parent's, whose thread and connections did not come along."""
        self._worker = self._new_worker()

    def _reader(self) -> Reader:
        return Reader(self._worker.transport, self._clock)

    def _entry(
        self,
        event_id: str,
        timestamp: Optional[Timestamp],
        action: str,
        actor: Optional[ActorLike],
        resource: Optional[ResourceLike],
        outcome: Outcome,
        metadata: Optional[Mapping[str, Any]],
    ) -> Entry | Rejection:
        try:
            body = event_bytes(
                id=event_id,
                timestamp=timestamp or time_text(self._clock.time()),
                action=action,
                actor=actor,
                resource=resource,
                outcome=outcome,
                metadata=metadata,
            )
        except UnstorableError as error:
            return Rejection(event_id, "unstorable_value", str(error), b"")
        return Entry(event_id, body)

    def _await_entry(self, entry: Entry | Rejection, timeout: float) -> Future[Recorded]:
        """Queue an entry whose answer is awaited, waiting for room if there is none."""
        if isinstance(entry, Rejection):
            raise RejectedError(entry)
        entry.answer = Future()
        if not self._worker.offer(EVENTS, entry, timeout):
            raise RecordTimeoutError(entry.id, timeout, "there was no room in the queue")
        return entry.answer

    def _receipt_of(self, recorded: Recorded, until: float, timeout: float) -> Receipt:
        """The receipt, asked for until it is final where the answer came before that."""
        while isinstance(recorded, PendingReceipt):
            left = until - time.monotonic()
            if left <= 0:
                why = f"receipt {recorded.receipt_id} is pending"
                raise RecordTimeoutError(recorded.id, timeout, why)
            time.sleep(min(left, RECEIPT_SECONDS))
            recorded = self._ask_receipt(recorded, max(left, RECEIPT_SECONDS))
        if isinstance(recorded, Rejection):
            raise RejectedError(recorded)
        return recorded

    def _ask_receipt(self, pending: PendingReceipt, within: float) -> Recorded:
        body = self._reader().get(f"/v1/receipts/{pending.receipt_id}", within=within)
        if body.get("status") == "failed":
            message = str((body.get("error") or {}).get("message", "the request was not applied"))
            return Rejection(pending.id, "failed", message, b"")
        done = done_of(body, pending.count)
        if body.get("status") != "committed" or done is None:
            return pending
        error = done.errors.get(pending.place)
        if error is not None:
            return Rejection(pending.id, error.code, error.message, b"")
        number = done.sequences.get(pending.place)
        if number is None:
            raise AlkError(f"receipt {pending.receipt_id} does not say where {pending.id} is")
        is_duplicate = pending.place in done.duplicates
        return Receipt(pending.id, pending.receipt_id, number, is_duplicate)

    def _log_operation(self, id: str, body: bytes) -> None:
        self._worker.log(TRACES, Entry(id, body))


def _merged(filters: Optional[Filters], named: Mapping[str, FilterValue]) -> Filters:
    merged: dict[str, FilterValue] = dict(filters or {})
    for name, value in named.items():
        merged["from" if name == "from_" else name] = value
    return merged


def _after_fork_in_child() -> None:
    forget_running()
    clients: list[AlkClient] = list(_clients)
    for client in clients:
        client._after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)

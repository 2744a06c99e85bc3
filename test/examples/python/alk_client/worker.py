"""The background thread of a client with its queues: started by the first item, given up in a child
process, and waited for, within limits, when the program ends."""

from __future__ import annotations

import atexit
import sys
import threading
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Optional

from .delivery import EVENTS, TRACES, Delivery, Route
from .errors import FlushError, QueueFullError, Rejection
from .ids import Clock
from .outbox import Entry, Outbox
from .reporter import Reporter, logger
from .settings import Settings
from .transport import Transport

# Seconds after which the thread goes on after a defect of its own.
DEFECT_SECONDS = 1.0
QUEUE_FULL = Rejection(
    "", "queue_full", "there is no room in the queue; raise queue_events or queue_bytes", b""
)


class Worker:
    """Everything of a client that a child process must not share with its parent."""

    def __init__(self, transport: Transport, settings: Settings, clock: Clock) -> None:
        self.transport = transport
        self.settings = settings
        self.clock = clock
        self.reporter = Reporter(clock, settings.on_rejected)
        self._changed = threading.Condition()
        self._outboxes: dict[Route, Outbox] = {}
        self._deliveries: list[Delivery] = []
        for route in (EVENTS, TRACES):
            outbox = Outbox(settings.queue_events, settings.queue_bytes, self._changed)
            self._outboxes[route] = outbox
            self._deliveries.append(
                Delivery(outbox, route, transport, settings, clock, self.reporter)
            )
        self._thread: Optional[threading.Thread] = None
        self._is_closed = False

    def offer(self, route: Route, entry: Entry, wait: Optional[float] = 0.0) -> bool:
        """Queue an item; false if there was no room within `wait` seconds (None: no limit)."""
        is_in = self._outboxes[route].offer(entry, self.clock.monotonic(), wait)
        self._ensure_thread()
        return is_in

    def log(self, route: Route, entry: Entry) -> None:
        """Queue an item by the policy for a full queue."""
        policy = self.settings.overflow
        # A hook that logs must not wait for the thread that it runs in.
        blocks = policy == "block" and threading.current_thread() is not self._thread
        if self.offer(route, entry, None if blocks else 0.0):
            return
        rejection = Rejection(entry.id, QUEUE_FULL.code, QUEUE_FULL.message, entry.body)
        if policy == "raise":
            raise QueueFullError(str(rejection))
        self.reporter.overflowed(rejection)

    def flushed(self) -> list[Future[None]]:
        """For each queue, when everything that is in it now is settled."""
        return [outbox.flushed() for outbox in self._outboxes.values()]

    def goals(self) -> list[tuple[Outbox, int]]:
        """Each queue, and the number of its last item."""
        return [(outbox, outbox.last) for outbox in self._outboxes.values()]

    def check_flushed(self, goals: list[tuple[Outbox, int]]) -> None:
        """FlushError if something up to the goals is pending or was rejected."""
        pending = [id for outbox, goal in goals for id in outbox.pending_ids(goal)]
        rejections = self.reporter.take()
        if pending or rejections:
            raise FlushError(pending, rejections, self.reporter.last_failure)

    def flush(self, timeout: Optional[float]) -> None:
        """Wait until all is acknowledged; FlushError names what is not."""
        if threading.current_thread() is self._thread:
            raise RuntimeError("flush: was called by on_rejected, whose end it would wait for")
        goals = self.goals()
        if self._is_closed and self._thread is None:
            return self.check_flushed(goals)
        until = None if timeout is None else time.monotonic() + timeout
        for future in self.flushed():
            try:
                future.result(None if until is None else max(0.0, until - time.monotonic()))
            except FutureTimeout:
                future.cancel()
        self.check_flushed(goals)

    def close(self, timeout: Optional[float]) -> None:
        """Take nothing more, flush, and end the thread. FlushError names what is given up."""
        for outbox in self._outboxes.values():
            outbox.close()
        self._is_closed = True
        try:
            self.flush(timeout)
        finally:
            thread, self._thread = self._thread, None
            with self._changed:
                self._changed.notify_all()
            if thread is not None and thread is not threading.current_thread():
                thread.join(timeout)
            self.transport.close()
            _running.discard(self)

    def finish(self) -> None:
        """At the end of the program: flush within `exit_timeout`, and say what was not sent."""
        if self._is_closed:
            return
        try:
            self.flush(self.settings.exit_timeout)
        except FlushError as error:
            logger.error("the program ends, and %s", error)

    def _ensure_thread(self) -> None:
        if self._thread is not None and self._thread.is_alive():
            return
        with self._changed:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="alk-client", daemon=True)
                self._thread.start()
                _register(self)

    def _run(self) -> None:
        thread = threading.current_thread()
        while thread is self._thread:
            seen = self._marks()
            try:
                waits = [one.step() for one in self._deliveries]
                self.reporter.say_overflow()
            except Exception:
                # A defect must not end the delivery of everything that comes after it.
                logger.exception("the background thread goes on after a defect")
                waits = [DEFECT_SECONDS]
            due = min((wait for wait in waits if wait is not None), default=None)
            with self._changed:
                if due != 0 and thread is self._thread and self._marks() == seen:
                    self._changed.wait(due)

    def _marks(self) -> list[tuple[int, bool]]:
        """What a waiting thread has to hear of: an urgent item, or the first of a queue."""
        return [(outbox.urgent, len(outbox) > 0) for outbox in self._outboxes.values()]


# Workers with a thread: an end of the program waits for their queues, also where the client itself
# is not referred to any more.
_running: set[Worker] = set()


def finish_all() -> None:
    """Flush every queue of this process, each within its `exit_timeout`."""
    for worker in list(_running):
        worker.finish()


def forget_running() -> None:
    """In a child process: the queues are the parent's, which sends them."""
    _running.clear()


def _is_multiprocessing_child() -> bool:
    """Such a process ends without atexit."""
    process = sys.modules.get("multiprocessing.process")
    return process is not None and process.parent_process() is not None


def _register(worker: Worker) -> None:
    if not _running and _is_multiprocessing_child():
        sys.modules["multiprocessing.util"].Finalize(None, finish_all, exitpriority=10)
    _running.add(worker)


atexit.register(finish_all)

"""The client for asyncio, under the same names. It is the same client underneath: its background
thread sends the queue, and threads read; what is awaited here blocks no loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import (
    Any,
    Callable,
    Optional,
    TypeVar,
)

from .audit import AuditSource
from .client import WAIT_SECONDS, AlkClient
from .errors import FlushError
from .events import ActorLike, Outcome, ResourceLike, Timestamp
from .outbox import Receipt
from .reading import PAGE_SIZE, Filters, FilterValue, JsonObject
from .reporter import logger
from .settings import Settings
from .tail import Tail
from .traces import Run
from .transport import Transport

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class AsyncAlkClient:
    """
    Takes what AlkClient takes. `log`, `run` and `audit` are plain calls that wait for nothing (but
    with `overflow="block"`, which blocks the loop); `record`, `flush` and `close` are awaited,
    `events`, `executions` and `tail` are iterated with `async for`.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        key: Optional[str] = None,
        *,
        settings: Optional[Settings] = None,
        transport: Optional[Callable[[], Transport]] = None,
    ) -> None:
        self.client = AlkClient(url, key, settings=settings, transport=transport)

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
        """See AlkClient.log."""
        return self.client.log(
            action,
            actor=actor,
            resource=resource,
            outcome=outcome,
            metadata=metadata,
            id=id,
            timestamp=timestamp,
        )

    async def record(
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
        """See AlkClient.record. A thread waits for the answer."""
        # A new thread would not know `acting_as`; to_thread takes the context along.
        return await asyncio.to_thread(
            self.client.record,
            action,
            actor=actor,
            resource=resource,
            outcome=outcome,
            metadata=metadata,
            id=id,
            timestamp=timestamp,
            timeout=timeout,
        )

    async def flush(self, timeout: Optional[float] = WAIT_SECONDS) -> None:
        """See AlkClient.flush. No thread waits, so any number of tasks may."""
        worker = self.client.worker
        goals = worker.goals()
        futures = [asyncio.wrap_future(future) for future in worker.flushed()]
        try:
            await asyncio.wait(futures, timeout=timeout)
        finally:
            for future in futures:
                future.cancel()
        worker.check_flushed(goals)

    async def close(self, timeout: Optional[float] = WAIT_SECONDS) -> None:
        """See AlkClient.close."""
        await asyncio.to_thread(self.client.close, timeout)

    async def __aenter__(self) -> AsyncAlkClient:
        return self

    async def __aexit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        try:
            await self.close()
        except FlushError as lost:
            if error is None:
                raise
            logger.error("the client is closed, and %s", lost)

    def events(
        self,
        filters: Optional[Filters] = None,
        *,
        order: str = "asc",
        page_size: int = PAGE_SIZE,
        **named: FilterValue,
    ) -> AsyncIterator[JsonObject]:
        """See AlkClient.events."""
        return _by_page(self.client.event_pages(filters, order, page_size, named))

    def executions(
        self,
        filters: Optional[Filters] = None,
        *,
        page_size: int = PAGE_SIZE,
        **named: FilterValue,
    ) -> AsyncIterator[JsonObject]:
        """See AlkClient.executions."""
        return _by_page(self.client.execution_pages(filters, page_size, named))

    def tail(
        self,
        filters: Optional[Filters] = None,
        *,
        after: Optional[int] = None,
        **named: FilterValue,
    ) -> AsyncTail:
        """See AlkClient.tail. Close it, or leave its `async with`, to free its thread."""
        return AsyncTail(self.client.tail(filters, after=after, **named))

    def run(
        self,
        agent: str,
        *,
        name: Optional[str] = None,
        trigger: Optional[str] = None,
        metadata: Optional[Mapping[str, Any]] = None,
        id: Optional[str] = None,
    ) -> Run:
        """See AlkClient.run; `async with` works as `with` does."""
        return self.client.run(agent, name=name, trigger=trigger, metadata=metadata, id=id)

    def audit(
        self,
        action: str,
        *,
        resource: AuditSource,
        actor: Optional[AuditSource] = None,
        metadata: Optional[Callable[[Mapping[str, Any]], Mapping[str, Any]]] = None,
    ) -> Callable[[F], F]:
        """See AlkClient.audit."""
        return self.client.audit(action, resource=resource, actor=actor, metadata=metadata)


async def _by_page(pages: Iterator[list[JsonObject]]) -> AsyncIterator[JsonObject]:
    while True:
        page = await asyncio.to_thread(_next_or_none, pages)
        if page is None:
            return
        for one in page:
            yield one


def _next_or_none(iterator: Iterator[T]) -> Optional[T]:
    return next(iterator, None)


class AsyncTail:
    """Tail for `async for`, with a thread of its own: it waits for ever, and must keep no other."""

    def __init__(self, tail: Tail) -> None:
        self._tail = tail
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="alk-tail")

    @property
    def position(self) -> Optional[int]:
        """Sequence number of the last event that was seen."""
        return self._tail.position

    def __aiter__(self) -> AsyncTail:
        return self

    async def __anext__(self) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        try:
            event = await loop.run_in_executor(self._thread, _next_or_none, self._tail)
        except asyncio.CancelledError:
            # The thread would go on waiting, and take an event that nobody sees.
            self.close()
            raise
        if event is None:
            raise StopAsyncIteration
        return event

    def close(self) -> None:
        """End the iteration and the thread."""
        self._tail.close()
        self._thread.shutdown(wait=False)

    async def __aenter__(self) -> AsyncTail:
        return self

    async def __aexit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

"""Events as they are committed (Server-Sent Events), over restarts and broken connections: every
event after the start comes once and in order."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Callable, Optional

from .answers import error_of
from .backoff import Backoff
from .errors import AlkError, TransportError
from .ids import Clock
from .reading import Filters, Reader, is_passing, path_of, query_of
from .reporter import logger
from .transport import LineStream, Request, Transport

# Seconds of silence after which a connection counts as broken: three keep-alive comments.
SILENCE_SECONDS = 45.0
# Seconds before the first attempt to connect again, unless the stream asks for others.
RETRY_SECONDS = 1.0
# Milliseconds of a `retry:` that are believed.
RETRY_MS_MAX = 60_000


@dataclass(frozen=True)
class Message:
    """A block of a stream. `data` is None where a block only moves the position."""

    id: Optional[str]
    event: str
    data: Optional[str]


class SseParser:
    """Lines of a stream as messages (the WHATWG's text/event-stream)."""

    def __init__(self) -> None:
        self._data: list[str] = []
        self._event = ""
        self._id: Optional[str] = None
        self.retry_ms: Optional[int] = None

    def take(self, line: str) -> Optional[Message]:
        """The message that this line ends, without its line end; None if it ends none."""
        if line == "":
            return self._end()
        name, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and value.isdigit():
            self.retry_ms = min(int(value), RETRY_MS_MAX)
        return None

    def _end(self) -> Optional[Message]:
        data, event, id = self._data, self._event, self._id
        self._data, self._event, self._id = [], "", None
        if not data and id is None:
            return None
        return Message(id, event or "message", "\n".join(data) if data else None)


class Tail:
    """
    An iterator over events that ends only by `close`. `position` is the sequence number of the last
    event that was seen: keep it, and start there after a restart of your own program.
    """

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        filters: Filters,
        after: Optional[int],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._filters = filters
        self._sleep = sleep
        self._stream: Optional[LineStream] = None
        self._is_closed = False
        self._retry_seconds = RETRY_SECONDS
        self._backoff = Backoff()
        self.position = after
        self._events = self._run()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self

    def __next__(self) -> dict[str, Any]:
        return next(self._events)

    def close(self) -> None:
        """End the iteration, also from another thread."""
        self._is_closed = True
        stream = self._stream
        if stream is not None:
            stream.close()

    def __enter__(self) -> Tail:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def _run(self) -> Iterator[dict[str, Any]]:
        if self.position is None:
            # From the head that is known now: a connection that breaks before its first event
            # resumes there.
            chain = Reader(self._transport, self._clock, self._sleep).get("/v1/chain")
            self.position = int(chain["length"])
        while not self._is_closed:
            try:
                yield from self._connection()
            except AlkError as error:
                if self._is_closed:
                    return
                if not is_passing(error):
                    raise
                self._wait(str(error), getattr(error, "retry_after", None))
            else:
                self._wait("it has ended", None)

    def _wait(self, why: str, retry_after: Optional[float]) -> None:
        if self._is_closed:
            return
        delay = self._backoff.next_delay(retry_after, self._retry_seconds)
        logger.info("the stream is opened again in %.1f s: %s", delay, why)
        self._sleep(delay)

    def _connection(self) -> Iterator[dict[str, Any]]:
        """The events of one connection, until it ends or breaks."""
        path = path_of("/v1/events/stream", query_of(self._filters))
        headers = {"Accept": "text/event-stream", "Last-Event-ID": str(self.position)}
        stream = self._transport.stream(Request("GET", path, None, headers), SILENCE_SECONDS)
        self._stream = stream
        try:
            if stream.answer.status != 200:
                raise error_of(stream.answer, self._clock.time())
            yield from self._messages(stream)
        finally:
            self._stream = None
            stream.close()

    def _messages(self, stream: LineStream) -> Iterator[dict[str, Any]]:
        parser = SseParser()
        while not self._is_closed:
            line = stream.readline()
            if not line.endswith(b"\n"):
                return  # The end, or a line that was cut off.
            message = parser.take(line.decode("utf-8").rstrip("\r\n"))
            if parser.retry_ms is not None:
                self._retry_seconds = parser.retry_ms / 1000
            if message is None or message.id is None or not message.id.isdigit():
                continue
            self._backoff.reset()
            self.position = int(message.id)
            if message.data and message.event == "audit.event":
                yield _event_of(message.data)


def _event_of(data: str) -> dict[str, Any]:
    event = json.loads(data)
    if not isinstance(event, dict):
        raise TransportError("the stream sent something that is no event")
    return event

"""Reads of the API: one answer with retries, and every event or execution by cursor."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import (
    Any,
    Callable,
    Union,
)
from urllib.parse import quote, urlencode

from .answers import error_of, json_of
from .backoff import Backoff
from .errors import ApiError, TransportError
from .ids import Clock
from .transport import Request, Transport

# Seconds that a read is tried again while the service is away: longer than a restart.
READ_SECONDS = 30.0
# Events or executions of a page.
PAGE_SIZE = 500

JsonObject = dict[str, Any]
FilterValue = Union[str, int, float, bool, Sequence[Union[str, int, float]]]
Filters = Mapping[str, FilterValue]


def query_of(filters: Filters) -> list[tuple[str, str]]:
    """Parameters of a request; several values repeat the parameter: one of them has to match."""
    pairs: list[tuple[str, str]] = []
    for name, value in filters.items():
        values = [value] if isinstance(value, (str, int, float)) else list(value)
        pairs += [(name, _value_text(one)) for one in values]
    return pairs


def _value_text(value: Union[str, int, float]) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def path_of(route: str, pairs: Sequence[tuple[str, str]]) -> str:
    return f"{route}?{urlencode(pairs, quote_via=quote)}" if pairs else route


class Reader:
    """Safe for several threads. `sleep` takes seconds."""

    def __init__(
        self, transport: Transport, clock: Clock, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._sleep = sleep

    def get(
        self,
        route: str,
        pairs: Sequence[tuple[str, str]] = (),
        within: float = READ_SECONDS,
    ) -> JsonObject:
        """
        The JSON object that a route answers. What passes by itself (no connection, 429, 5xx) is
        tried again for `within` seconds; then, and for other refusals at once, ApiError or
        TransportError.
        """
        backoff = Backoff()
        until = self._clock.monotonic() + within
        while True:
            error = self._get_once(path_of(route, pairs), until)
            if not isinstance(error, Exception):
                return error
            retry_after = error.retry_after if isinstance(error, ApiError) else None
            delay = backoff.next_delay(retry_after)
            if not is_passing(error) or self._clock.monotonic() + delay >= until:
                raise error
            self._sleep(delay)

    def _get_once(self, path: str, until: float) -> Union[JsonObject, ApiError, TransportError]:
        left = max(0.1, until - self._clock.monotonic())
        try:
            answer = self._transport.send(Request("GET", path), left)
        except TransportError as error:
            return error
        body = json_of(answer.body)
        if answer.status == 200 and isinstance(body, dict):
            return body
        return error_of(answer, self._clock.time())

    def event_pages(
        self, order: str, page_size: int, filters: Filters
    ) -> Iterator[list[JsonObject]]:
        """Events by sequence number; what is logged meanwhile moves no page."""
        if order not in ("asc", "desc"):
            raise ValueError(f"order: is {order!r}; use 'asc' or 'desc'")
        cursor = "after_sequence" if order == "asc" else "before_sequence"
        given = [pair for pair in query_of(filters) if pair[0] != cursor]
        start = dict(query_of(filters)).get(cursor, "0" if order == "asc" else None)
        while True:
            at = [] if start is None else [(cursor, start)]
            page = [("order", order), ("page_size", str(page_size))]
            events = self.get("/v1/events", [*given, *page, *at])["events"]
            if events:
                yield events
            if len(events) < page_size:
                return
            start = str(events[-1]["sequence_number"])

    def execution_pages(self, page_size: int, filters: Filters) -> Iterator[list[JsonObject]]:
        """
        Executions, newest first. The cursor is the start of the last one, so what starts meanwhile
        moves no page; those of the same microsecond are told apart by their ids.
        """
        given = query_of(filters)
        reserved = {"page", "page_size", "sort", "order"} & {name for name, _ in given}
        if reserved:
            raise ValueError(f"{sorted(reserved)[0]}: is set by the iterator; leave it out")
        upper = dict(given).get("to")
        given = [pair for pair in given if pair[0] != "to"]
        seen: set[str] = set()
        number = 1
        while True:
            until = [] if upper is None else [("to", upper)]
            page = [("page", str(number)), ("page_size", str(page_size))]
            found = self.get("/api/v1/executions", [*given, *until, *page])["executions"]
            fresh = [one for one in found if one["id"] not in seen]
            if fresh:
                yield fresh
            if len(found) < page_size:
                return
            last = found[-1]["started_at"]
            number = number + 1 if last == upper else 1
            upper = last
            seen.update(one["id"] for one in fresh if one["started_at"] == last)


def is_passing(error: Exception) -> bool:
    """True if the same request may be answered later."""
    if isinstance(error, ApiError):
        return error.status in (408, 429) or error.status >= 500
    return isinstance(error, TransportError)

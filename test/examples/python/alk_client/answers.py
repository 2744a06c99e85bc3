"""What an answer means for the batch that was sent: done, to be sent in parts, or to be sent again.
Pure; whatever does not account for every item of the batch counts as a lost answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional, Union

from .backoff import retry_after_of
from .errors import ApiError
from .transport import Answer

# Codes by which the service refuses a whole request for what is in it. A 400 without one of them is
# of something in between, such as a proxy that expected TLS, and says nothing of the events.
UNREADABLE_CODES = ("invalid_json", "invalid_request")
# Characters of a body that is no answer of the service, in a message.
SHOWN_MAX = 200


@dataclass(frozen=True)
class ItemError:
    code: str
    message: str


@dataclass(frozen=True)
class Done:
    """
    The batch is durable but for `errors`, by place. `sequences` are the sequence numbers by place
    where the answer tells them; `is_final` is false while the receipt may still refuse items.
    """

    receipt_id: str
    errors: Mapping[int, ItemError]
    sequences: Mapping[int, int]
    duplicates: Mapping[int, int]
    is_final: bool


@dataclass(frozen=True)
class InParts:
    """Send the items in smaller batches; an item that is refused alone is rejected."""

    error: ApiError


@dataclass(frozen=True)
class Again:
    """Send the same once more. `needs_help`: it won't get better by itself (key, address)."""

    reason: str
    retry_after: Optional[float] = None
    needs_help: bool = False


Meaning = Union[Done, InParts, Again]


def error_of(answer: Answer, now: float) -> ApiError:
    """The refusal in an answer, of either form that the service has."""
    body = json_of(answer.body)
    said: dict[str, Any] = body if isinstance(body, dict) else {}
    inner = said.get("error")
    if isinstance(inner, dict):
        said, message = inner, inner.get("message")
    else:
        message = inner
    if not isinstance(message, str):
        message = answer.body[:SHOWN_MAX].decode("utf-8", "replace") or "no reason given"
    return ApiError(
        answer.status,
        str(said.get("code", "unknown")),
        message,
        _text_or_none(said.get("field")),
        _text_or_none(said.get("request_id")),
        retry_after_of(answer.headers, now),
    )


def meaning_of(answer: Answer, count: int, now: float) -> Meaning:
    """`count` is the number of items that were sent, `now` seconds since 1970."""
    if answer.status in (200, 202):
        done = done_of(json_of(answer.body), count)
        return done or Again(f"the answer does not account for {count} items")
    error = error_of(answer, now)
    if answer.status == 413 or (answer.status == 400 and error.code in UNREADABLE_CODES):
        return InParts(error)
    is_passing = answer.status in (408, 425, 429) or answer.status >= 500
    return Again(str(error), error.retry_after, needs_help=not is_passing)


def done_of(body: Any, count: int) -> Optional[Done]:
    """A batch result or receipt of so many items; None if it is none, or does not add up."""
    if not isinstance(body, dict) or not isinstance(body.get("receipt_id"), str):
        return None
    accepted, rejected = _count_of(body, "accepted"), _count_of(body, "rejected")
    errors = _by_place(body.get("errors", []), count)
    if accepted is None or rejected is None or errors is None:
        return None
    if accepted + rejected != count or len(errors) != rejected:
        return None
    repeated = _by_place(body.get("duplicates") or [], count) or {}
    told = {at: _count_of(one, "sequence_number") for at, one in repeated.items()}
    duplicates = {at: number for at, number in told.items() if number is not None}
    places = [at for at in range(count) if at not in errors and at not in duplicates]
    return Done(
        body["receipt_id"],
        {at: _item_error(error) for at, error in errors.items()},
        {**duplicates, **_appended(body, places)},
        duplicates,
        is_final=body.get("status") == "committed",
    )


def _appended(body: Mapping[str, Any], places: list[int]) -> dict[int, int]:
    """A command's events are appended in order and without gaps, so first and last tell all."""
    first, last = _count_of(body, "first_sequence_number"), _count_of(body, "last_sequence_number")
    if first is None or last is None or last - first + 1 != len(places):
        return {}
    return dict(zip(places, range(first, last + 1)))


def _by_place(items: Any, count: int) -> Optional[dict[int, dict[str, Any]]]:
    """Items by their `index`; None if one is no object, is out of range or comes twice."""
    if not isinstance(items, list) or not all(isinstance(one, dict) for one in items):
        return None
    placed: dict[int, dict[str, Any]] = {}
    for one in items:
        at = _count_of(one, "index")
        if at is None or at >= count or at in placed:
            return None
        placed[at] = one
    return placed


def _item_error(error: Mapping[str, Any]) -> ItemError:
    return ItemError(str(error.get("code", "unknown")), str(error.get("message", "")))


def _count_of(source: Mapping[str, Any], name: str) -> Optional[int]:
    value = source.get(name)
    is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if is_count else None


def _text_or_none(value: Any) -> Optional[str]:
    return value if isinstance(value, str) else None


def json_of(body: bytes) -> Any:
    """The value of a body, None if it is no JSON."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None

"""What can go wrong, as exceptions. A message names the field or the event, and what to do."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Optional

# Ids that a message lists before it only counts: a log line is read by people.
IDS_SHOWN = 5
# The path of a field at the start of a refusal, as in "actor.id: required; send …".
FIELD = re.compile(r"[\w.\[\]-]+(?=: )")


class AlkError(Exception):
    """Everything that this package raises on purpose."""


class ClosedError(AlkError):
    """The client was closed; make a new one."""


class QueueFullError(AlkError):
    """The queue has no room and `overflow="raise"` was chosen. The event was not queued."""


class TransportError(AlkError):
    """No answer came: refused, reset, timed out, or cut off. The request may have arrived."""


class ApiError(AlkError):
    """The service refused a request. `retry_after` is in seconds."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        field: Optional[str] = None,
        request_id: Optional[str] = None,
        retry_after: Optional[float] = None,
    ) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        self.code = code
        self.message = message
        self.field = field
        self.request_id = request_id
        self.retry_after = retry_after


@dataclass(frozen=True)
class Rejection:
    """
    An event, or an operation on a trace, that is not stored. `code` is one of the service's item
    errors, `queue_full` if there was no room, or the code of a refused request. `field` is its path
    if the message names one; `message` says what to change. `body` is the JSON as it was to be
    sent.
    """

    id: str
    code: str
    message: str
    body: bytes = dataclasses.field(repr=False)

    @property
    def field(self) -> Optional[str]:
        match = FIELD.match(self.message)
        return None if match is None else match.group()

    def __str__(self) -> str:
        return f"{self.id} {self.code}: {self.message}"


class RejectedError(AlkError):
    """`record` was refused: the event is not stored and will not be sent again."""

    def __init__(self, rejection: Rejection) -> None:
        super().__init__(str(rejection))
        self.rejection = rejection


class RecordTimeoutError(AlkError):
    """
    `record` was not answered in time. The event stays queued and may yet be stored: ask for
    `event_id` instead of recording it under another one.
    """

    def __init__(self, event_id: str, seconds: float, why: str) -> None:
        super().__init__(
            f"{event_id} was not answered within {seconds:g} s and stays queued ({why})"
        )
        self.event_id = event_id


def shown_ids(ids: Sequence[str]) -> str:
    """The first ids and how many more there are."""
    more = len(ids) - IDS_SHOWN
    return ", ".join(ids[:IDS_SHOWN]) + (f" and {more} more" if more > 0 else "")


class FlushError(AlkError):
    """
    Not everything that was logged before `flush` is acknowledged. `pending` are ids that are still
    queued and go on being sent; `rejections` are those that never will be stored, since the last
    flush that named them.
    """

    def __init__(
        self, pending: Sequence[str], rejections: Sequence[Rejection], reason: Optional[str]
    ) -> None:
        parts = []
        if pending:
            why = "" if reason is None else f", last failure: {reason}"
            parts.append(f"{len(pending)} not acknowledged in time ({shown_ids(pending)}{why})")
        if rejections:
            first = "; ".join(str(one) for one in rejections[:IDS_SHOWN])
            parts.append(f"{len(rejections)} rejected ({first})")
        super().__init__("; ".join(parts))
        self.pending = tuple(pending)
        self.rejections = tuple(rejections)
        self.reason = reason

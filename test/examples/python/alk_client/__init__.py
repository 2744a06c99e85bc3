"""A client of alk, an audit log that proves itself. Two lines:

    from alk_client import AlkClient; alk = AlkClient()
    alk.log("user.login", actor="human:alice", resource="session:42")

Address and key come from ALK_URL and ALK_API_KEY. No dependencies; Python 3.9 or later.
"""

from .aio import AsyncAlkClient, AsyncTail
from .client import AlkClient
from .errors import (
    AlkError,
    ApiError,
    ClosedError,
    FlushError,
    QueueFullError,
    RecordTimeoutError,
    RejectedError,
    Rejection,
    TransportError,
)
from .events import Actor, Resource, acting_as
from .logs import AlkHandler
from .outbox import Receipt
from .settings import Settings
from .tail import Tail
from .traces import Run, Span, current_span
from .verify import Break, ChainVerifier, EventCheck, Link, canonical_json, verify_event

__all__ = [
    "Actor",
    "AlkClient",
    "AlkError",
    "AlkHandler",
    "ApiError",
    "AsyncAlkClient",
    "AsyncTail",
    "Break",
    "ChainVerifier",
    "ClosedError",
    "EventCheck",
    "FlushError",
    "Link",
    "QueueFullError",
    "Receipt",
    "RecordTimeoutError",
    "RejectedError",
    "Rejection",
    "Resource",
    "Run",
    "Settings",
    "Span",
    "Tail",
    "TransportError",
    "acting_as",
    "canonical_json",
    "current_span",
    "verify_event",
]
__version__ = "0.1.0"

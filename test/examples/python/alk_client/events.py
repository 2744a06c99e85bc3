"""The form of an audit event, and who acts when a call does not say. Checks what would be stored
otherwise than it was meant; the rest is the service's to check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import Any, Literal, Optional, TypedDict, Union

from .encoding import UnstorableError, to_bytes, utc_text

ACTOR_TYPES = ("human", "agent", "system")
Outcome = Literal["success", "failure", "error"]


class _ActorRequired(TypedDict):
    id: str
    type: str


class Actor(_ActorRequired, total=False):
    """Who acted. `type` is human, agent or system; `email` can be erased later."""

    email: str


class _ResourceRequired(TypedDict):
    id: str
    type: str


class Resource(_ResourceRequired, total=False):
    """What it was done to. `name`, for people, can be erased later."""

    name: str


# "human:alice" and "document:doc-1" say type and id in short.
ActorLike = Union[str, Actor, Mapping[str, Any]]
ResourceLike = Union[str, Resource, Mapping[str, Any]]
Timestamp = Union[datetime, str]

_acting: ContextVar[Optional[ActorLike]] = ContextVar("alk_actor", default=None)


@contextmanager
def acting_as(actor: ActorLike) -> Iterator[None]:
    """Who acts in this block, in this thread or task, where a call names no actor."""
    before = _acting.get()
    _acting.set(actor)
    try:
        yield
    finally:
        _acting.set(before)


def acting() -> Optional[ActorLike]:
    """The actor of the innermost `acting_as`; None outside of any."""
    return _acting.get()


def event_bytes(
    *,
    id: str,
    timestamp: Timestamp,
    action: str,
    actor: Optional[ActorLike],
    resource: Optional[ResourceLike],
    outcome: Outcome,
    metadata: Optional[Mapping[str, Any]],
) -> bytes:
    """The JSON of an event. UnstorableError begins with the path of the field at fault."""
    event: dict[str, Any] = {
        "id": id,
        "timestamp": utc_text(timestamp) if isinstance(timestamp, datetime) else timestamp,
        "actor": _actor(acting() if actor is None else actor),
        "action": action,
        "resource": _resource(resource),
        "outcome": outcome,
    }
    if metadata is not None:
        event["metadata"] = metadata
    return to_bytes(event)


def _actor(actor: Optional[ActorLike]) -> object:
    """Without a type the service would guess one, and take a person for a system."""
    if actor is None:
        raise UnstorableError('actor: required; send {"id": …, "type": …}, or use acting_as(…)')
    found = _typed(actor, "actor", "human:alice")
    if isinstance(found, Mapping) and found.get("type") not in ACTOR_TYPES:
        raise UnstorableError(f"actor.type: must be one of {', '.join(ACTOR_TYPES)}")
    return found


def _resource(resource: Optional[ResourceLike]) -> object:
    if resource is None:
        raise UnstorableError('resource: required; send {"id": …, "type": …}')
    return _typed(resource, "resource", "document:doc-1")


def _typed(value: object, field: str, example: str) -> object:
    if not isinstance(value, str):
        return value
    type_, colon, id = value.partition(":")
    if not type_ or not colon or not id:
        raise UnstorableError(f'{field}: must be like "{example}", or an object with id and type')
    return {"type": type_, "id": id}

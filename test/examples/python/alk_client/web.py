"""What the middlewares for ASGI and Django have in common: a request as an event."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Optional
from urllib.parse import quote

from .client import AlkClient
from .events import Actor, ActorLike, Outcome
from .reporter import logger

# Methods that change something; reads are many, and name them if they matter.
CHANGING_METHODS = frozenset({"POST", "PUT", "PATCH", "DELETE"})
# Characters of an id; a longer path is whole in the metadata.
ID_LENGTH_MAX = 256
# Who acts where nobody has signed in.
ANONYMOUS: Actor = {"id": "anonymous", "type": "human"}
# Characters of a path that need no encoding.
PATH_CHARACTERS = "/:@!$&'()*+,;=~-._"


def log_request(
    client: AlkClient,
    *,
    method: str,
    path: str,
    status: Optional[int],
    seconds: float,
    actor: Optional[ActorLike],
    more: Mapping[str, Any],
) -> None:
    """
    Queue "http.post" on a path. `status` is None where the application raised an error. A path that
    holds what no id may hold is encoded: nobody gets past the log by the name of what they asked
    for.
    """
    encoded = quote(path, safe=PATH_CHARACTERS, errors="surrogateescape") or "/"
    metadata: dict[str, Any] = {"duration_ms": round(seconds * 1000, 3), **more}
    if status is not None:
        metadata["status"] = status
    if len(encoded) > ID_LENGTH_MAX:
        metadata["path"] = encoded
    try:
        client.log(
            f"http.{method.lower()}",
            actor=actor or ANONYMOUS,
            resource={"type": "path", "id": encoded[:ID_LENGTH_MAX]},
            outcome=outcome_of(status),
            metadata=metadata,
        )
    except Exception:
        # A request that was served must not fail for its event.
        logger.exception("%s %s is not logged", method, encoded)


def outcome_of(status: Optional[int]) -> Outcome:
    """Below 400 it was done, below 500 refused; the rest went wrong."""
    if status is None or status >= 500:
        return "error"
    return "success" if status < 400 else "failure"


def is_logged(method: str, methods: Collection[str]) -> bool:
    return method.upper() in methods


def actor_of_user(user: Any) -> Optional[Actor]:
    """
    The signed-in user of Django or Starlette; None without one. The id is the primary key, else the
    identity or name: what stays the same when people change their names.
    """
    if user is None or not getattr(user, "is_authenticated", False):
        return None
    names = ("pk", "identity", "display_name", "username")
    id = next((found for found in (_text_of(user, name) for name in names) if found), None)
    if id is None:
        return None
    actor: Actor = {"id": id, "type": "human"}
    email = _text_of(user, "email")
    if email:
        actor["email"] = email
    return actor


def _text_of(user: Any, name: str) -> Optional[str]:
    try:
        value = getattr(user, name, None)
    except NotImplementedError:
        return None  # Starlette's base class has the name and no value.
    return None if value is None else str(value)

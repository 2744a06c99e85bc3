"""A handler that sends records of `logging` as audit events."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Optional

from .client import AlkClient
from .errors import AlkError
from .events import ActorLike, ResourceLike, acting
from .reporter import logger

# Characters of a message and of a traceback: metadata of an event has 32 KiB.
TEXT_LENGTH_MAX = 8192
# Seconds that the end of the program waits for the queue.
FLUSH_SECONDS = 5.0


class AlkHandler(logging.Handler):
    """
    Sends each record that it is given. A record says what it is about by `extra`:

        log.info("approved", extra={"action": "invoice.approve", "actor": "human:alice",
                                    "resource": "invoice:17", "metadata": {"amount": 12}})

    Without `action` it is "log.<level>", without `resource` the logger; without `actor` that of
    `acting_as`, else that of the handler. `outcome` is error from level ERROR on, else success.
    Records of the client itself are passed over: they would cause further ones.
    """

    def __init__(
        self, client: AlkClient, *, actor: Optional[ActorLike] = None, level: int = logging.NOTSET
    ) -> None:
        super().__init__(level)
        self._client = client
        self._actor = actor
        # A filter runs before the lock of the handler is taken, which the background thread of the
        # client must never wait for.
        self.addFilter(_is_of_others)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._client.log(
                getattr(record, "action", f"log.{record.levelname.lower()}"),
                actor=getattr(record, "actor", None) or self._default_actor(),
                resource=_resource_of(record),
                outcome=getattr(
                    record, "outcome", "error" if record.levelno >= logging.ERROR else "success"
                ),
                metadata=self._metadata_of(record),
            )
        except Exception:
            self.handleError(record)

    def flush(self) -> None:
        """Called when `logging` shuts down: waits for the queue, and says what it did not hold."""
        try:
            self._client.flush(FLUSH_SECONDS)
        except AlkError as error:
            logger.error("%s", error)

    def _default_actor(self) -> Optional[ActorLike]:
        return acting() or self._actor

    def _metadata_of(self, record: logging.LogRecord) -> Mapping[str, Any]:
        said: dict[str, Any] = {
            "message": record.getMessage()[:TEXT_LENGTH_MAX],
            "level": record.levelname,
            "logger": record.name,
            "line": f"{record.pathname}:{record.lineno}",
        }
        if record.exc_info:
            formatter = self.formatter or logging.Formatter()
            said["exception"] = formatter.formatException(record.exc_info)[-TEXT_LENGTH_MAX:]
        said.update(getattr(record, "metadata", {}))
        return said


def _is_of_others(record: logging.LogRecord) -> bool:
    return record.name != logger.name


def _resource_of(record: logging.LogRecord) -> ResourceLike:
    resource: Optional[ResourceLike] = getattr(record, "resource", None)
    return resource or {"type": "logger", "id": record.name}

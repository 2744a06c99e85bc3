"""Middleware for Django 4.1 and later, synchronous and asynchronous. Imports nothing of Django, and
what Django itself is built on only when Django makes the middleware.

    class Audit(AuditMiddleware):
        client = alk

    MIDDLEWARE = [
        ...,
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "shop.audit.Audit",
    ]
"""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any, Callable, Optional

from .client import AlkClient
from .events import ActorLike, acting_as
from .reporter import logger
from .web import ANONYMOUS, CHANGING_METHODS, actor_of_user, is_logged, log_request


class AuditMiddleware:
    """
    Logs each request of `methods` when it is answered, and names the actor for what views
    themselves log meanwhile. Set `client` in a subclass; without it, the settings come from the
    environment.
    """

    sync_capable = True
    async_capable = True
    client: Optional[AlkClient] = None
    methods: Collection[str] = CHANGING_METHODS

    def __init__(self, get_response: Callable[[Any], Any]) -> None:
        self._get_response = get_response
        if self.client is None:
            type(self).client = AlkClient()
        from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async

        self._is_async = iscoroutinefunction(get_response)
        if self._is_async:
            markcoroutinefunction(self)
            self._known_actor_async = sync_to_async(self._known_actor)

    def actor_of(self, request: Any) -> Optional[ActorLike]:
        """Who acts; override it where AuthenticationMiddleware does not know."""
        return actor_of_user(getattr(request, "user", None))

    def __call__(self, request: Any) -> Any:
        if self._is_async:
            return self._call_async(request)
        begun = time.monotonic()
        status: Optional[int] = None
        try:
            with acting_as(self._known_actor(request) or ANONYMOUS):
                response = self._get_response(request)
            status = response.status_code
            return response
        finally:
            self._log(request, status, begun)

    async def _call_async(self, request: Any) -> Any:
        begun = time.monotonic()
        status: Optional[int] = None
        # Reading the user may ask the database, which Django forbids in a coroutine.
        actor = await self._known_actor_async(request)
        try:
            with acting_as(actor or ANONYMOUS):
                response = await self._get_response(request)
            status = response.status_code
            return response
        finally:
            self._log(request, status, begun, actor)

    def _known_actor(self, request: Any) -> Optional[ActorLike]:
        try:
            return self.actor_of(request)
        except Exception:
            logger.exception("the actor of a request is not known")
            return None

    def _log(
        self,
        request: Any,
        status: Optional[int],
        begun: float,
        actor: Optional[ActorLike] = None,
    ) -> None:
        if self.client is None or not is_logged(request.method, self.methods):
            return
        peer = request.META.get("REMOTE_ADDR")
        log_request(
            self.client,
            method=request.method,
            path=request.path,
            status=status,
            seconds=time.monotonic() - begun,
            actor=actor if self._is_async else self._known_actor(request),
            more={"peer": peer} if peer else {},
        )

"""Middleware for FastAPI, Starlette and any other ASGI application; imports none of them.

app.add_middleware(AuditMiddleware, client=alk)
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Collection, MutableMapping
from typing import Any, Callable, Optional

from .client import AlkClient
from .errors import AlkError
from .events import ActorLike, acting_as
from .reporter import logger
from .web import ANONYMOUS, CHANGING_METHODS, actor_of_user, is_logged, log_request

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def actor_of_scope(scope: Scope) -> Optional[ActorLike]:
    """
    The user that AuthenticationMiddleware of Starlette has found; add that one after this one.
    """
    return actor_of_user(scope.get("user"))


class AuditMiddleware:
    """
    Logs each request of the given methods when it is answered, and names the actor for what the
    application itself logs meanwhile. `actor` finds who acts; its errors are logged, and the
    request goes on. When the application ends (lifespan), the queue is flushed.
    """

    def __init__(
        self,
        app: App,
        client: AlkClient,
        *,
        actor: Callable[[Scope], Optional[ActorLike]] = actor_of_scope,
        methods: Collection[str] = CHANGING_METHODS,
    ) -> None:
        self._app = app
        self._client = client
        self._actor = actor
        self._methods = frozenset(method.upper() for method in methods)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            await self._flush()
        elif scope["type"] == "http":
            await self._request(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        answered: dict[str, int] = {}

        async def watch(message: Message) -> None:
            if message["type"] == "http.response.start":
                answered["status"] = message["status"]
            await send(message)

        begun = time.monotonic()
        try:
            with acting_as(self._actor_of(scope) or ANONYMOUS):
                await self._app(scope, receive, watch)
        except BaseException:
            self._log(scope, None, begun)
            raise
        self._log(scope, answered.get("status"), begun)

    def _log(self, scope: Scope, status: Optional[int], begun: float) -> None:
        if not is_logged(scope["method"], self._methods):
            return
        peer = scope.get("client")
        log_request(
            self._client,
            method=scope["method"],
            path=scope["path"],
            status=status,
            seconds=time.monotonic() - begun,
            # Anew: an application may sign somebody in while it answers.
            actor=self._actor_of(scope),
            more={"peer": peer[0]} if peer else {},
        )

    def _actor_of(self, scope: Scope) -> Optional[ActorLike]:
        try:
            return self._actor(scope)
        except Exception:
            logger.exception("the actor of a request is not known")
            return None

    async def _flush(self) -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(None, self._client.flush)
        except AlkError as error:
            logger.error("the application ends, and %s", error)

"""A decorator that logs each call of a function: what it was called with says who and what."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from typing import Any, Callable, Optional, Protocol, TypeVar, Union, cast

from .events import ActorLike, Outcome, ResourceLike
from .reporter import logger

F = TypeVar("F", bound=Callable[..., Any])
Arguments = Mapping[str, Any]

# An actor or resource, a text with arguments of the call in braces ("invoice:{invoice_id}"), or a
# function of the arguments by name.
AuditSource = Union[str, Mapping[str, Any], Callable[[Arguments], Any]]

# Characters of an error's text: the rest is in the log of the program.
ERROR_LENGTH_MAX = 1024


class Log(Protocol):
    def __call__(
        self,
        action: str,
        *,
        actor: Optional[ActorLike] = None,
        resource: Optional[ResourceLike] = None,
        outcome: Outcome = "success",
        metadata: Optional[Mapping[str, Any]] = None,
    ) -> str: ...


def audited(
    log: Log,
    action: str,
    *,
    actor: Optional[AuditSource],
    resource: AuditSource,
    metadata: Optional[Callable[[Arguments], Arguments]],
) -> Callable[[F], F]:
    """
    Logs `action` after each call, with outcome failure and the error in the metadata if it raises;
    the error goes on to the caller. Works on functions, methods and coroutine functions.
    """

    def decorate(function: F) -> F:
        signature = inspect.signature(function)

        def after(args: Any, kwargs: Any, error: Optional[BaseException]) -> None:
            try:
                bound = signature.bind(*args, **kwargs)
                bound.apply_defaults()
                _log_call(log, action, actor, resource, metadata, bound.arguments, error)
            except Exception:
                # What is logged of a call must not change what comes of it.
                logger.exception("a call of %s is not logged", function.__qualname__)

        return cast(F, _wrapped(function, after))

    return decorate


def _wrapped(
    function: Callable[..., Any],
    after: Callable[[Any, Any, Optional[BaseException]], None],
) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def call_async(*args: Any, **kwargs: Any) -> Any:
            try:
                result = await function(*args, **kwargs)
            except BaseException as error:
                after(args, kwargs, error)
                raise
            after(args, kwargs, None)
            return result

        return call_async

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            result = function(*args, **kwargs)
        except BaseException as error:
            after(args, kwargs, error)
            raise
        after(args, kwargs, None)
        return result

    return call


def _log_call(
    log: Log,
    action: str,
    actor: Optional[AuditSource],
    resource: AuditSource,
    metadata: Optional[Callable[[Arguments], Arguments]],
    arguments: Arguments,
    error: Optional[BaseException],
) -> None:
    said = dict(metadata(arguments)) if metadata is not None else {}
    if error is not None:
        said["error"] = f"{type(error).__name__}: {error}"[:ERROR_LENGTH_MAX]
    log(
        action,
        actor=None if actor is None else _value_of(actor, arguments),
        resource=_value_of(resource, arguments),
        outcome="success" if error is None else "failure",
        metadata=said or None,
    )


def _value_of(source: AuditSource, arguments: Arguments) -> Any:
    if isinstance(source, str):
        return source.format_map(dict(arguments))
    return source(arguments) if callable(source) else source

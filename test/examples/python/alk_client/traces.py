"""Traces of agents: an execution, its spans and their events, as blocks. The span of the innermost
block of a thread or task is the parent of the next one; an error that leaves a block fails its
span."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Callable, Optional, Union

from .encoding import UnstorableError, to_bytes
from .ids import Clock, time_text, uuid7
from .reporter import logger

# Ways to leave a block that are no failure of the work in it.
CANCELLATIONS = (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt)
# Characters of an error's text: the rest is in the log of the program.
ERROR_LENGTH_MAX = 4096
# Members of an operation without which it still says what happened.
DETAILS = ("metadata", "payload", "trigger", "agent_name", "error")

_current: ContextVar[Optional[Span]] = ContextVar("alk_span", default=None)


def current_span() -> Optional[Span]:
    """The span of the innermost block of this thread or task; None outside of any."""
    return _current.get()


class Tracer:
    """Makes runs. `send` queues the JSON of an operation under an id for messages."""

    def __init__(self, clock: Clock, send: Callable[[str, bytes], None]) -> None:
        self._clock = clock
        self._send = send

    def run(
        self,
        agent: str,
        *,
        name: Optional[str],
        trigger: Optional[str],
        metadata: Optional[Mapping[str, Any]],
        id: Optional[str],
    ) -> Run:
        return Run(self, agent, name, trigger, metadata, id or self.new_id())

    def new_id(self) -> str:
        return uuid7(self._clock.time())

    def now(self) -> str:
        return time_text(self._clock.time())

    def operation(self, op: str, id: str, members: Mapping[str, Any]) -> None:
        """
        Queue an operation without what is None; details that have no JSON are left out, loudly.
        """
        given = {name: value for name, value in members.items() if value is not None}
        structure = {name: value for name, value in given.items() if name not in DETAILS}
        for part in (given, structure):
            try:
                return self._send(id, to_bytes({"op": op, **part}))
            except UnstorableError as error:
                logger.error("%s of %s goes without what has no JSON: %s", op, id, error)


class Block:
    """What runs and spans have in common: a start, an end and a place in the current context."""

    def __init__(self, tracer: Tracer, id: str) -> None:
        self._tracer = tracer
        self.id = id
        self._metadata: dict[str, Any] = {}
        self._before: Optional[Span] = None
        self._started_at = ""
        self._is_ended = False

    def set(self, **metadata: Any) -> None:
        """Metadata that is sent with the end, over what the start had under the same name."""
        self._metadata.update(metadata)

    def end(self, status: str = "COMPLETED", error: Union[BaseException, str, None] = None) -> None:
        """End it before its block does; only the first end counts."""
        if not self._is_ended:
            self._is_ended = True
            # A clock that was set back must not end it before it began.
            self._send_end(status, error, max(self._started_at, self._tracer.now()))

    def _send_end(self, status: str, error: Union[BaseException, str, None], ended_at: str) -> None:
        raise NotImplementedError

    def _begin(self, op: str, members: Mapping[str, Any]) -> None:
        self._started_at = self._tracer.now()
        self._tracer.operation(op, self.id, {**members, "started_at": self._started_at})
        self._before = _current.get()

    def _leave(self, error: Optional[BaseException]) -> None:
        _current.set(self._before)
        self.end(status_of(error), error)

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self._leave(error)

    async def __aexit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self._leave(error)


class Span(Block):
    """A step of a run. `id` is its own, `run_id` that of the execution."""

    def __init__(
        self,
        tracer: Tracer,
        run_id: str,
        name: str,
        span_type: str,
        parent_id: Optional[str],
        causes: Sequence[Span],
        metadata: Optional[Mapping[str, Any]],
    ) -> None:
        super().__init__(tracer, tracer.new_id())
        self.run_id = run_id
        self._start = {
            "execution_id": run_id,
            "id": self.id,
            "parent_span_id": parent_id,
            "caused_by_span_ids": [cause.id for cause in causes] or None,
            "span_type": span_type,
            "name": name,
            "metadata": metadata or None,
        }

    def span(
        self,
        name: str,
        *,
        type: str = "CUSTOM",
        caused_by: Sequence[Span] = (),
        **metadata: Any,
    ) -> Span:
        """A span below this one; `type` is LLM_CALL, RETRIEVAL, PLANNING and the like."""
        return Span(self._tracer, self.run_id, name, type, self.id, caused_by, metadata)

    def tool(self, name: str, *, caused_by: Sequence[Span] = (), **metadata: Any) -> Span:
        """A span of type TOOL_CALL."""
        return self.span(name, type="TOOL_CALL", caused_by=caused_by, **metadata)

    def event(self, event_type: str, **payload: Any) -> None:
        """Something that happened in this span, such as "tool.response"."""
        id = self._tracer.new_id()
        members = {
            "span_id": self.id,
            "id": id,
            "event_type": event_type,
            "timestamp": self._tracer.now(),
            "payload": payload or None,
        }
        self._tracer.operation("span.event", id, members)

    def _send_end(self, status: str, error: Union[BaseException, str, None], ended_at: str) -> None:
        members = {
            "span_id": self.id,
            "status": status,
            "ended_at": ended_at,
            "error": error_text(error) if status == "FAILED" and error else None,
            "metadata": self._metadata or None,
        }
        self._tracer.operation("span.end", self.id, members)

    def __enter__(self) -> Span:
        self._begin("span.start", self._start)
        _current.set(self)
        return self

    async def __aenter__(self) -> Span:
        return self.__enter__()


class Run(Block):
    """An execution of an agent. Spans without a parent are below its root."""

    def __init__(
        self,
        tracer: Tracer,
        agent: str,
        name: Optional[str],
        trigger: Optional[str],
        metadata: Optional[Mapping[str, Any]],
        id: str,
    ) -> None:
        super().__init__(tracer, id)
        self._start = {
            "id": id,
            "agent_id": agent,
            "agent_name": name,
            "trigger": trigger,
            "metadata": metadata,
        }

    def span(
        self,
        name: str,
        *,
        type: str = "CUSTOM",
        caused_by: Sequence[Span] = (),
        **metadata: Any,
    ) -> Span:
        """A span below the innermost block of this run, else below its root."""
        innermost = _current.get()
        parent = innermost if innermost is not None and innermost.run_id == self.id else None
        parent_id = None if parent is None else parent.id
        return Span(self._tracer, self.id, name, type, parent_id, caused_by, metadata)

    def tool(self, name: str, *, caused_by: Sequence[Span] = (), **metadata: Any) -> Span:
        """A span of type TOOL_CALL."""
        return self.span(name, type="TOOL_CALL", caused_by=caused_by, **metadata)

    def _send_end(self, status: str, error: Union[BaseException, str, None], ended_at: str) -> None:
        metadata = dict(self._metadata)
        if status == "FAILED" and error:
            metadata["error"] = error_text(error)
        members = {
            "execution_id": self.id,
            "status": status,
            "ended_at": ended_at,
            "metadata": metadata or None,
        }
        self._tracer.operation("execution.end", self.id, members)

    def __enter__(self) -> Run:
        self._begin("execution.start", self._start)
        return self

    async def __aenter__(self) -> Run:
        return self.__enter__()


def status_of(error: Optional[BaseException]) -> str:
    if error is None:
        return "COMPLETED"
    return "CANCELLED" if isinstance(error, CANCELLATIONS) else "FAILED"


def error_text(error: Union[BaseException, str]) -> str:
    text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    return text[:ERROR_LENGTH_MAX]

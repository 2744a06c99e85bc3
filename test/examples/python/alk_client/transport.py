"""Requests over HTTP/1.1 with kept connections. Knows no route and retries nothing but a connection
that the other side had closed while it was idle."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Optional, Protocol
from urllib.parse import urlsplit

from .errors import TransportError

# Seconds until a connection is there.
CONNECT_SECONDS = 5.0
# Connections that are kept idle: the background thread's, and some of readers.
IDLE_MAX = 4
# Bytes of an answer: a page of 1,000 events of 64 KiB, and as much again.
ANSWER_BYTES_MAX = 128 * 1024 * 1024
# Bytes of one read.
CHUNK_BYTES = 64 * 1024

_CLOSED_WHILE_IDLE = (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError)
_NO_ANSWER = (http.client.HTTPException, OSError)


@dataclass(frozen=True)
class Request:
    """`path` begins with a slash and holds the query."""

    method: str
    path: str
    body: Optional[bytes] = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class LineStream(Protocol):
    """An answer that is read line by line while it arrives."""

    @property
    def answer(self) -> Answer: ...

    def readline(self) -> bytes:
        """The next line with its end; empty at the end. TransportError where it breaks off."""
        ...

    def close(self) -> None:
        """Ends a read of another thread, too."""
        ...


class Transport(Protocol):
    """What the client needs of a network. Every method may raise TransportError."""

    def send(self, request: Request, timeout: float) -> Answer: ...

    def stream(self, request: Request, timeout: float) -> LineStream: ...

    def close(self) -> None: ...


class HttpTransport:
    """For http:// and https:// addresses. Safe for several threads."""

    def __init__(self, url: str, key: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url: {url!r} is no address like http://127.0.0.1:8080; set ALK_URL")
        self._is_secure = parts.scheme == "https"
        self._host, self._port = parts.hostname, parts.port
        self._prefix = parts.path.rstrip("/")
        self._headers = {"Authorization": f"Bearer {key}", "User-Agent": "alk-client-python/0.1.0"}
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()

    def send(self, request: Request, timeout: float) -> Answer:
        with self._lock:
            kept = self._idle.pop() if self._idle else None
        try:
            if kept is not None:
                try:
                    return self._exchange(kept, request, timeout)
                except _CLOSED_WHILE_IDLE:
                    kept.close()
            return self._exchange(self._connect(), request, timeout)
        except _NO_ANSWER as error:
            raise TransportError(_shown(error)) from error

    def stream(self, request: Request, timeout: float) -> LineStream:
        try:
            connection = self._connect()
            # http.client forgets the socket of an answer that ends its connection.
            opened = connection.sock
            return _HttpLines(opened, self._begin(connection, request, timeout))
        except _NO_ANSWER as error:
            raise TransportError(_shown(error)) from error

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._is_secure else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=CONNECT_SECONDS)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def _begin(
        self, connection: http.client.HTTPConnection, request: Request, timeout: float
    ) -> http.client.HTTPResponse:
        connection.sock.settimeout(timeout)
        headers = {**self._headers, **request.headers}
        if request.body is not None:
            headers.setdefault("Content-Type", "application/json")
        connection.request(request.method, self._prefix + request.path, request.body, headers)
        return connection.getresponse()

    def _exchange(
        self, connection: http.client.HTTPConnection, request: Request, timeout: float
    ) -> Answer:
        is_reusable = False
        try:
            response = self._begin(connection, request, timeout)
            body = _whole_body(response)
            is_reusable = not response.will_close
            return Answer(response.status, _lower(response), body)
        finally:
            self._keep(connection, is_reusable)

    def _keep(self, connection: http.client.HTTPConnection, is_reusable: bool) -> None:
        with self._lock:
            if is_reusable and len(self._idle) < IDLE_MAX:
                self._idle.append(connection)
                return
        connection.close()


class _HttpLines:
    def __init__(self, opened: socket.socket, response: http.client.HTTPResponse) -> None:
        self._socket = opened
        self._response = response
        body = b"" if response.status == 200 else _whole_body(response)
        self.answer = Answer(response.status, _lower(response), body)

    def readline(self) -> bytes:
        try:
            return self._response.readline(ANSWER_BYTES_MAX)
        except (*_NO_ANSWER, ValueError, AttributeError) as error:
            # The last two are what a read says whose socket was closed by `close` meanwhile.
            raise TransportError(_shown(error)) from error

    def close(self) -> None:
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # It is closed already.
        self._socket.close()


def _whole_body(response: http.client.HTTPResponse) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while chunk := response.read(CHUNK_BYTES):
        chunks.append(chunk)
        size += len(chunk)
        if size > ANSWER_BYTES_MAX:
            raise http.client.HTTPException(f"an answer of over {ANSWER_BYTES_MAX} bytes")
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)
    return b"".join(chunks)


def _lower(response: http.client.HTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.getheaders()}


def _shown(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__

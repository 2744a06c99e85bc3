"""Requests over real sockets: kept connections, and every way in which a connection ends early."""

import json
import socket
import threading
import unittest

from alk_client.errors import TransportError
from alk_client.transport import HttpTransport, Request

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


class Server:
    """
    Serves connections one after the other by `script`: a list of lists of answers, bytes each.
    """

    def __init__(self, *script):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.requests = []
        self.thread = threading.Thread(target=self.run, args=(script,), daemon=True)
        self.thread.start()

    def run(self, script):
        for answers in script:
            connection, _ = self.listener.accept()
            with connection, connection.makefile("rb") as lines:
                for answer in answers:
                    self.requests.append(self.read(lines))
                    connection.sendall(answer)

    @staticmethod
    def read(lines):
        head = {}
        first = lines.readline().decode().strip()
        while line := lines.readline().strip():
            name, _, value = line.decode().partition(": ")
            head[name.lower()] = value
        return first, head, lines.read(int(head.get("content-length", 0)))

    def close(self):
        self.listener.close()


class TransportTest(unittest.TestCase):
    def serve(self, *script, path=""):
        self.server = Server(*script)
        self.addCleanup(self.server.close)
        transport = HttpTransport(f"http://127.0.0.1:{self.server.port}{path}", "alk_live_x")
        self.addCleanup(transport.close)
        return transport

    def test_keeps_a_connection_and_sends_the_key(self):
        transport = self.serve([OK, OK], path="/base/")
        for _ in range(2):
            answer = transport.send(Request("POST", "/v1/x?y=1", b"[1]"), 5)
            self.assertEqual((answer.status, answer.body), (200, b"{}"))
        first, head, body = self.server.requests[1]
        self.assertEqual(first, "POST /base/v1/x?y=1 HTTP/1.1")
        self.assertEqual(head["authorization"], "Bearer alk_live_x")
        self.assertEqual(head["content-type"], "application/json")
        self.assertEqual(body, b"[1]")

    def test_a_connection_that_was_closed_while_idle_is_no_failure(self):
        transport = self.serve([OK], [OK])
        for _ in range(2):
            self.assertEqual(transport.send(Request("POST", "/", b"{}"), 5).status, 200)

    def test_does_not_keep_what_the_service_closes(self):
        closing = (
            b"HTTP/1.1 503 No\r\nConnection: close\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"
        )
        transport = self.serve([closing], [OK])
        self.assertEqual(transport.send(Request("GET", "/"), 5).headers["retry-after"], "1")
        self.assertEqual(transport.send(Request("GET", "/"), 5).status, 200)

    def test_reads_chunks(self):
        chunked = (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[1\r\n1\r\n]\r\n0\r\n\r\n"
        )
        self.assertEqual(json.loads(self.serve([chunked]).send(Request("GET", "/"), 5).body), [1])

    def test_an_answer_that_is_cut_off_is_none(self):
        for cut in (
            b"",
            b"HTT",
            b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}",
            b"no http\r\n\r\n",
        ):
            with self.subTest(cut=cut), self.assertRaises(TransportError):
                self.serve([cut]).send(Request("GET", "/"), 5)

    def test_no_connection_and_no_answer_in_time_are_named(self):
        gone = socket.create_server(("127.0.0.1", 0))
        port = gone.getsockname()[1]
        gone.close()
        with self.assertRaisesRegex(TransportError, "refused"):
            HttpTransport(f"http://127.0.0.1:{port}", "k").send(Request("GET", "/"), 5)
        silent = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(silent.close)
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with self.assertRaisesRegex(TransportError, "timed out"):
            HttpTransport(address, "k").send(Request("GET", "/"), 0.05)

    def test_a_stream_is_read_by_lines_and_ended_by_another_thread(self):
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        silent = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(silent.close)
        transport = HttpTransport(f"http://127.0.0.1:{silent.getsockname()[1]}", "k")
        held = []

        def serve():
            connection, _ = silent.accept()
            held.append(connection)
            connection.recv(65536)
            connection.sendall(head + b"8\r\nid: 1\n: \r\n")

        threading.Thread(target=serve, daemon=True).start()
        stream = transport.stream(Request("GET", "/"), 30)
        self.assertEqual(stream.readline(), b"id: 1\n")
        threading.Timer(0.05, stream.close).start()
        # Ends at once, with or without an error, instead of after 30 s.
        try:
            self.assertFalse(stream.readline().endswith(b"\n"))
        except TransportError:
            pass
        self.addCleanup(held[0].close)


if __name__ == "__main__":
    unittest.main()

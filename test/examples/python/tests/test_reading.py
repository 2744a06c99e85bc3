"""Iterators by cursor and live streams, over answers that are written down here."""

import asyncio
import json
import unittest

from alk_client import AlkClient, ApiError, AsyncAlkClient, TransportError
from alk_client.reading import Reader, path_of, query_of
from alk_client.tail import SseParser, Tail
from alk_client.transport import Answer

from .fakes import FakeClock, ScriptedTransport, json_answer, refusal

KEY = "alk_live_x"


def events(*numbers):
    return json_answer(200, {"events": [{"sequence_number": n} for n in numbers], "total": 9})


def executions(*pairs):
    found = [{"id": id, "started_at": at} for id, at in pairs]
    return json_answer(200, {"executions": found, "total": 9})


def paths(transport):
    return [request.path for request in transport.requests]


def reader_of(transport):
    clock = FakeClock()

    def sleep(seconds):
        clock.now += seconds

    return Reader(transport, clock, sleep)


class Events(unittest.TestCase):
    def test_ascending_go_on_after_the_last_number(self):
        transport = ScriptedTransport(events(1, 2), events(3, 5), events())
        pages = reader_of(transport).event_pages("asc", 2, {"action": "document.*"})
        self.assertEqual([e["sequence_number"] for page in pages for e in page], [1, 2, 3, 5])
        self.assertIn(
            "/v1/events?action=document.%2A&order=asc&page_size=2&after_sequence=0",
            paths(transport),
        )
        self.assertTrue(paths(transport)[2].endswith("after_sequence=5"))

    def test_descending_go_on_before_it_and_start_at_the_newest(self):
        transport = ScriptedTransport(events(9, 8), events(7))
        pages = reader_of(transport).event_pages("desc", 2, {})
        self.assertEqual([e["sequence_number"] for page in pages for e in page], [9, 8, 7])
        self.assertNotIn("sequence", paths(transport)[0])
        self.assertTrue(paths(transport)[1].endswith("before_sequence=8"))

    def test_a_start_that_is_given_is_kept(self):
        transport = ScriptedTransport(events(8))
        list(reader_of(transport).event_pages("asc", 2, {"after_sequence": 7}))
        self.assertEqual(paths(transport), ["/v1/events?order=asc&page_size=2&after_sequence=7"])

    def test_an_order_that_there_is_not_is_named(self):
        with self.assertRaisesRegex(ValueError, "^order: "):
            list(reader_of(ScriptedTransport()).event_pages("up", 2, {}))

    def test_a_restart_in_the_middle_is_waited_for(self):
        transport = ScriptedTransport(
            events(1, 2), TransportError("reset"), refusal(503, "unavailable"), events(3)
        )
        pages = reader_of(transport).event_pages("asc", 2, {})
        self.assertEqual([e["sequence_number"] for page in pages for e in page], [1, 2, 3])

    def test_a_refusal_is_raised_at_once_and_an_outage_in_the_end(self):
        error = json_answer(
            400, {"error": {"code": "invalid_request", "message": "actor: x", "field": "actor"}}
        )
        with self.assertRaises(ApiError) as raised:
            reader_of(ScriptedTransport(error)).get("/v1/events")
        self.assertEqual(
            (raised.exception.code, raised.exception.field), ("invalid_request", "actor")
        )
        with self.assertRaises(TransportError):
            reader_of(ScriptedTransport(*[TransportError("down")] * 99)).get("/v1/events", within=5)

    def test_parameters_may_be_several_values_and_numbers(self):
        pairs = query_of({"outcome!": ["error", "failure"], "metadata.n": 3, "has_error": True})
        self.assertEqual(
            path_of("/x", pairs),
            "/x?outcome%21=error&outcome%21=failure&metadata.n=3&has_error=true",
        )

    def test_the_client_reads_by_names_that_python_has(self):
        transport = ScriptedTransport(events(1))
        alk = AlkClient("http://127.0.0.1:8080", KEY, transport=lambda: transport)
        found = list(alk.events({"outcome!": "success"}, from_="-24h"))
        self.assertEqual(len(found), 1)
        self.assertIn("outcome%21=success&from=-24h", paths(transport)[0])


class Executions(unittest.TestCase):
    def test_go_on_at_the_start_of_the_last_and_none_comes_twice(self):
        transport = ScriptedTransport(
            executions(("a", "t5"), ("b", "t4")),
            executions(("b", "t4"), ("c", "t4")),
            executions(("d", "t4"), ("e", "t3")),
            executions(("e", "t3")),
        )
        pages = reader_of(transport).execution_pages(2, {"status": "FAILED"})
        self.assertEqual([one["id"] for page in pages for one in page], ["a", "b", "c", "d", "e"])
        asked = [path.split("?")[1].split("&")[1:3] for path in paths(transport)]
        self.assertEqual(asked[1:], [["to=t4", "page=1"], ["to=t4", "page=2"], ["to=t3", "page=1"]])

    def test_begin_at_the_newest_or_at_the_bound_that_is_given(self):
        transport = ScriptedTransport(executions(), executions())
        for filters in ({}, {"to": "-1h"}):
            list(reader_of(transport).execution_pages(2, filters))
        first, second = (path.split("?")[1] for path in paths(transport))
        self.assertEqual(first, "page=1&page_size=2")
        self.assertEqual(second, "to=-1h&page=1&page_size=2")

    def test_parameters_of_the_iterator_are_refused(self):
        with self.assertRaisesRegex(ValueError, "^sort: "):
            list(reader_of(ScriptedTransport()).execution_pages(2, {"sort": "cost"}))


class Stream:
    """Lines of a stream; an exception in the middle breaks it."""

    def __init__(self, *lines, status=200, body=b""):
        self.answer = Answer(status, {}, body)
        self.lines = list(lines)
        self.is_closed = False

    def readline(self):
        line = self.lines.pop(0) if self.lines else b""
        if isinstance(line, Exception):
            raise line
        return line.encode() if isinstance(line, str) else line

    def close(self):
        self.is_closed = True


def event(number):
    data = json.dumps({"sequence_number": number})
    return [f"id: {number}\n", "event: audit.event\n", f"data: {data}\n", "\n"]


def resumed(transport):
    return [request.headers.get("Last-Event-ID") for request in transport.requests]


class Tails(unittest.TestCase):
    def tail(self, transport, after=None):
        slept = []
        tail = Tail(transport, FakeClock(), {"action": "a.b"}, after, slept.append)
        return tail, slept

    def test_resume_after_the_last_event_that_was_seen(self):
        transport = ScriptedTransport(
            Stream("retry: 3000\n", "\n", *event(4), TransportError("reset")),
            TransportError("refused"),
            Stream(*event(5), "id: 9\n", "\n"),
            Stream(*event(10)),
        )
        tail, slept = self.tail(transport, after=3)
        found = [next(tail)["sequence_number"] for _ in range(3)]
        self.assertEqual(found, [4, 5, 10])
        self.assertEqual(resumed(transport), ["3", "4", "4", "9"])
        self.assertEqual(tail.position, 10)
        # As the stream has asked, longer after a second failure.
        self.assertTrue(1.5 <= slept[0] <= 3.0 <= slept[1] <= 6.0, slept)

    def test_start_at_the_head_so_that_an_early_break_leaves_nothing_out(self):
        transport = ScriptedTransport(
            json_answer(200, {"length": 7}), Stream(TransportError("reset")), Stream(*event(8))
        )
        tail, _ = self.tail(transport)
        self.assertEqual(next(tail)["sequence_number"], 8)
        self.assertEqual(resumed(transport), [None, "7", "7"])

    def test_an_event_that_is_cut_off_comes_whole_the_next_time(self):
        lines = event(4)
        transport = ScriptedTransport(Stream(*lines[:2], lines[2][:-5]), Stream(*event(4)))
        tail, _ = self.tail(transport, after=3)
        self.assertEqual(next(tail)["sequence_number"], 4)
        self.assertEqual(resumed(transport), ["3", "3"])

    def test_a_refusal_ends_them_with_its_reason(self):
        body = json.dumps({"error": {"code": "unauthenticated", "message": "the key is revoked"}})
        tail, _ = self.tail(ScriptedTransport(Stream(status=401, body=body.encode())), after=0)
        with self.assertRaisesRegex(ApiError, "the key is revoked"):
            next(tail)

    def test_close_ends_them(self):
        stream = Stream(*event(1), *event(2))
        tail, _ = self.tail(ScriptedTransport(stream), after=0)
        with tail:
            next(tail)
        self.assertEqual(list(tail), [])
        self.assertTrue(stream.is_closed)

    def test_blocks_are_read_as_the_standard_says(self):
        parser = SseParser()
        lines = [": comment", "data:a", "data: b", "data", "event: x", "id: 7", "other: y", ""]
        [message] = [one for one in map(parser.take, lines) if one is not None]
        self.assertEqual((message.id, message.event, message.data), ("7", "x", "a\nb\n"))
        for line, retry in (("retry: 10", 10), ("retry: soon", 10), ("retry: 99999999", 60_000)):
            parser.take(line)
            self.assertEqual(parser.retry_ms, retry)


class Asyncio(unittest.TestCase):
    def test_iterates_over_events_executions_and_a_tail(self):
        transport = ScriptedTransport(
            events(1), executions(("a", "t")), Stream(*event(2), *event(3), *event(4))
        )

        async def main():
            alk = AsyncAlkClient("http://127.0.0.1:8080", KEY, transport=lambda: transport)
            found = [one["sequence_number"] async for one in alk.events()]
            runs = [one["id"] async for one in alk.executions()]
            async with alk.tail(after=1) as tail:
                async for one in tail:
                    found.append(one["sequence_number"])
                    if len(found) == 3:
                        break
            return found, runs, tail.position

        self.assertEqual(asyncio.run(main()), ([1, 2, 3], ["a"], 3))


if __name__ == "__main__":
    unittest.main()

"""The client with its thread: what log, record, flush and close promise, over a service in
memory."""

import asyncio
import json
import logging
import os
import subprocess
import sys
import threading
import time
import unittest
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from unittest import mock
from uuid import UUID

from alk_client import (
    AlkClient,
    AsyncAlkClient,
    ClosedError,
    FlushError,
    QueueFullError,
    RecordTimeoutError,
    RejectedError,
    Settings,
    acting_as,
)
from alk_client.ids import time_text, uuid7

from .fakes import FakeService, json_answer, refusal

URL = "http://127.0.0.1:8080"
KEY = "alk_live_" + "x" * 43
WHO = {"actor": "human:alice", "resource": "document:doc-1"}
ROOT = Path(__file__).parent.parent


def client_of(service, **settings):
    return AlkClient(
        URL, KEY, transport=lambda: service, settings=Settings(**{"linger": 0.01, **settings})
    )


class ClientTest(unittest.TestCase):
    """Lines of the client's log go nowhere, unless a test looks at them."""

    def setUp(self):
        self.service = FakeService()
        logging.getLogger("alk_client").addHandler(logging.NullHandler())
        logging.getLogger("alk_client").propagate = False

    def client(self, **settings):
        client = client_of(self.service, **settings)
        self.addCleanup(self.end, client)
        return client

    def until_failed(self, alk):
        """Wait until an attempt to send has failed."""
        while alk.worker.reporter.last_failure is None:
            time.sleep(0.001)

    @staticmethod
    def end(client):
        try:
            client.close(0)
        except FlushError:
            pass  # Some tests leave what can't be sent.


class Logging(ClientTest):
    def test_sends_in_order_what_was_logged(self):
        alk = self.client()
        ids = [alk.log("document.read", metadata={"n": n}, **WHO) for n in range(2500)]
        alk.flush(10)
        self.assertEqual(self.service.stored, ids)
        self.assertEqual(len(set(ids)), 2500)
        self.assertTrue(
            all(len(json.loads(one.body)["events"]) <= 1000 for one in self.service.requests)
        )

    def test_sets_id_and_time_when_it_is_called(self):
        alk = self.client()
        before = datetime.now(timezone.utc)
        id = alk.log("document.read", **WHO)
        alk.flush(10)
        event = self.service.bodies[id]
        at = datetime.strptime(event["timestamp"], "%Y-%m-%dT%H:%M:%S.%fZ").replace(
            tzinfo=timezone.utc
        )
        self.assertLess(abs(at - before), timedelta(seconds=5))
        self.assertEqual(UUID(id).version, 7)
        self.assertEqual(event["actor"], {"type": "human", "id": "alice"})
        self.assertEqual(event["resource"], {"type": "document", "id": "doc-1"})
        self.assertEqual(event["outcome"], "success")

    def test_takes_ids_times_and_values_as_they_are_given(self):
        alk = self.client()
        zone = timezone(timedelta(hours=2))
        alk.log(
            "invoice.paid",
            id="mine",
            timestamp=datetime(2026, 3, 1, 11, 30, tzinfo=zone),
            actor={"id": "a:b", "type": "agent", "email": "a@example.com"},
            resource="invoice:2026:17",
            outcome="failure",
            metadata={
                "sum": Decimal("1.10"),
                "due": datetime(2026, 3, 2, tzinfo=zone).date(),
                "p": Path("/x"),
            },
        )
        alk.flush(10)
        event = self.service.bodies["mine"]
        self.assertEqual(event["timestamp"], "2026-03-01T09:30:00.000000Z")
        self.assertEqual(event["resource"], {"type": "invoice", "id": "2026:17"})
        self.assertEqual(event["metadata"], {"sum": "1.10", "due": "2026-03-02", "p": "/x"})

    def test_the_actor_may_come_from_the_context(self):
        alk = self.client()
        with acting_as("human:ann"):
            with acting_as("agent:bot"):
                inner = alk.log("document.read", resource="document:1")
            outer = alk.log("document.read", resource="document:1")
        alk.flush(10)
        self.assertEqual(self.service.bodies[inner]["actor"]["id"], "bot")
        self.assertEqual(self.service.bodies[outer]["actor"]["id"], "ann")

    def test_does_not_wait_for_a_network_that_hangs(self):
        release = threading.Event()
        self.service.fate_of = lambda count: release.wait(10) and "answer"
        alk = self.client()
        for _ in range(1000):
            alk.log("document.read", **WHO)
        # Had one of the calls waited, the request would have been answered by now.
        self.assertEqual(self.service.stored, [])
        release.set()
        alk.flush(10)
        self.assertEqual(len(self.service.stored), 1000)

    def test_what_has_no_json_is_rejected_aloud_with_its_path(self):
        alk = self.client()
        cyclic = {}
        cyclic["self"] = cyclic
        cases = [
            ({"a": [1, {"b": object()}]}, "metadata.a[1].b"),
            ({"a": float("nan")}, "metadata.a"),
            ({"a": "\ud800"}, "metadata.a"),
            ({1: 2}, None),
            (cyclic, "metadata.self"),
        ]
        for metadata, path in cases:
            with self.subTest(path=path):
                id = alk.log("document.read", metadata=metadata, **WHO)
                if path is None:
                    alk.flush(10)  # JSON has texts for such keys.
                    continue
                with self.assertRaises(FlushError) as raised:
                    alk.flush(10)
                [rejection] = raised.exception.rejections
                self.assertEqual((rejection.id, rejection.code), (id, "unstorable_value"))
                self.assertTrue(rejection.message.startswith(path), rejection.message)
        self.assertEqual(len(self.service.stored), 1)

    def test_an_actor_or_resource_without_a_type_is_rejected(self):
        alk = self.client()
        for who in (
            {"resource": "document:1"},
            {"actor": "alice", "resource": "document:1"},
            {"actor": "person:alice", "resource": "document:1"},
            {"actor": {"id": "alice"}, "resource": "document:1"},
            {"actor": "human:alice"},
            {"actor": "human:alice", "resource": "document"},
        ):
            alk.log("document.read", **who)
            with self.assertRaises(FlushError) as raised:
                alk.flush(10)
            self.assertRegex(str(raised.exception), r"(actor|actor\.type|resource): ")


class Loudness(ClientTest):
    def test_a_rejection_is_an_error_with_code_field_and_fix(self):
        told = []
        alk = self.client(on_rejected=told.append)
        with self.assertLogs("alk_client", "ERROR") as logs:
            id = alk.log("bad", **WHO)
            with self.assertRaises(FlushError):
                alk.flush(10)
        for part in (id, "invalid_action", "send document.read", "field: action"):
            self.assertIn(part, logs.output[0])
        self.assertEqual(
            [(one.id, one.code, one.field) for one in told], [(id, "invalid_action", "action")]
        )
        self.assertEqual(json.loads(told[0].body)["action"], "bad")
        # Named once.
        alk.flush(10)

    def test_a_hook_that_fails_stops_nothing(self):
        def hook(rejection):
            raise RuntimeError("no")

        alk = self.client(on_rejected=hook)
        alk.log("bad", **WHO)
        good = alk.log("document.read", **WHO)
        with self.assertRaises(FlushError):
            alk.flush(10)
        self.assertEqual(self.service.stored, [good])

    def test_a_hook_that_logs_waits_for_no_room(self):
        def hook(rejection):
            if rejection.code != "queue_full":
                for _ in range(3):
                    alk.log("document.read", **WHO)

        alk = self.client(on_rejected=hook, overflow="block", queue_events=1)
        alk.log("bad", **WHO)
        with self.assertRaises(FlushError):
            alk.flush(10)

    def test_a_hook_that_flushes_is_told_why_it_must_not(self):
        errors = []

        def hook(rejection):
            try:
                alk.flush(1)
            except RuntimeError as error:
                errors.append(str(error))

        alk = self.client(on_rejected=hook)
        alk.log("bad", **WHO)
        with self.assertRaises(FlushError):
            alk.flush(10)
        self.assertEqual(len(errors), 1)

    def test_many_rejections_of_a_request_are_a_few_lines(self):
        alk = self.client(linger=0.5)
        with self.assertLogs("alk_client", "ERROR") as logs:
            for _ in range(500):
                alk.log("bad", **WHO)
            with self.assertRaises(FlushError) as raised:
                alk.flush(10)
        self.assertEqual(len(raised.exception.rejections), 500)
        self.assertLess(len(logs.output), 40)


class Flushing(ClientTest):
    def test_names_what_is_not_acknowledged_and_why(self):
        self.service.fate_of = lambda count: "busy"
        alk = self.client()
        ids = [alk.log("document.read", **WHO) for _ in range(7)]
        self.until_failed(alk)
        with self.assertRaises(FlushError) as raised:
            alk.flush(0.01)
        self.assertEqual(raised.exception.pending, tuple(ids))
        for part in ("7 not acknowledged", ids[0], "2 more", "503 unavailable"):
            self.assertIn(part, str(raised.exception))
        # They go on being sent.
        self.service.fate_of = lambda count: "answer"
        alk.flush(10)
        self.assertEqual(self.service.stored, ids)

    def test_waits_for_what_was_logged_before_it_and_for_nothing_else(self):
        gate = threading.Event()
        alk = self.client(batch_events=1)
        first = alk.log("document.read", **WHO)
        alk.flush(10)
        self.service.fate_of = lambda count: gate.wait(10) and "answer"
        alk.log("document.read", **WHO)
        with self.assertRaises(FlushError):
            alk.flush(0.05)
        self.assertEqual(self.service.stored, [first])
        gate.set()
        alk.flush(10)

    def test_of_several_threads_each_gets_its_own(self):
        alk = self.client()
        failures = []

        def work(name):
            for n in range(50):
                id = alk.log("document.read", metadata={"n": n}, **WHO)
                if n % 10 == 0:
                    alk.flush(20)
                    if id not in self.service.bodies:
                        failures.append(id)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        alk.flush(10)
        self.assertEqual(failures, [])
        self.assertEqual(len(self.service.stored), 400)

    def test_close_flushes_ends_the_thread_and_takes_nothing_more(self):
        alk = client_of(self.service)
        id = alk.log("document.read", **WHO)
        alk.close(10)
        self.assertEqual(self.service.stored, [id])
        self.assertEqual(self.service.closed, 1)
        self.assertFalse(
            [one for one in threading.enumerate() if one.name == "alk-client" and one.is_alive()]
        )
        with self.assertRaises(ClosedError):
            alk.log("document.read", **WHO)

    def test_a_block_closes_and_keeps_its_own_error(self):
        with client_of(self.service) as alk:
            id = alk.log("document.read", **WHO)
        self.assertEqual(self.service.stored, [id])
        with self.assertRaises(FlushError):
            with client_of(self.service) as alk:
                alk.log("bad", **WHO)
        with self.assertRaises(KeyError), self.assertLogs("alk_client", "ERROR"):
            with client_of(self.service) as alk:
                alk.log("bad", **WHO)
                raise KeyError("of the block")


class FullQueue(ClientTest):
    def setUp(self):
        super().setUp()
        self.gate = threading.Event()
        self.addCleanup(self.gate.set)
        self.service.fate_of = lambda count: self.gate.wait(20) and "answer"

    def test_drop_newest_gives_up_the_newest_aloud(self):
        alk = self.client(queue_events=3)
        with self.assertLogs("alk_client", "ERROR") as logs:
            ids = [alk.log("document.read", **WHO) for _ in range(10)]
        self.assertEqual(len(logs.output), 1)
        self.assertIn("queue_full", logs.output[0])
        self.gate.set()
        with self.assertRaises(FlushError) as raised:
            alk.flush(10)
        self.assertEqual([one.id for one in raised.exception.rejections], ids[3:])
        self.assertEqual(self.service.stored, ids[:3])

    def test_what_has_no_room_later_is_counted_in_another_line(self):
        alk = self.client(queue_events=1)
        with mock.patch("alk_client.reporter.REPEAT_SECONDS", 0.05):
            with self.assertLogs("alk_client", "ERROR") as logs:
                for _ in range(100):
                    alk.log("document.read", **WHO)
                self.gate.set()
                with self.assertRaises(FlushError):
                    alk.flush(10)
                while sum(int(line.split(":")[2].split()[0]) for line in logs.output) < 99:
                    # Each round of the thread may say it.
                    alk.record("document.read", **WHO)
        self.assertGreater(len(logs.output), 1)

    def test_bytes_are_bounded_too_and_a_single_large_event_is_let_in(self):
        alk = self.client(queue_bytes=1000)
        large = alk.log("document.read", metadata={"x": "y" * 5000}, **WHO)
        alk.log("document.read", **WHO)
        self.gate.set()
        with self.assertRaises(FlushError):
            alk.flush(10)
        self.assertEqual(self.service.stored, [large])

    def test_raise_raises_and_queues_nothing(self):
        alk = self.client(queue_events=1, overflow="raise")
        first = alk.log("document.read", **WHO)
        with self.assertRaises(QueueFullError):
            alk.log("document.read", **WHO)
        self.gate.set()
        alk.flush(10)
        self.assertEqual(self.service.stored, [first])

    def test_block_waits_for_room(self):
        alk = self.client(queue_events=2, overflow="block")
        threading.Timer(0.1, self.gate.set).start()
        ids = [alk.log("document.read", **WHO) for _ in range(20)]
        alk.flush(10)
        self.assertEqual(self.service.stored, ids)

    def test_who_waits_for_room_is_released_when_the_client_is_closed(self):
        alk = self.client(queue_events=1, overflow="block")
        alk.log("document.read", **WHO)
        closing = threading.Timer(0.05, self.end, (alk,))
        closing.start()
        with self.assertRaises(ClosedError):
            alk.log("document.read", **WHO)
        closing.join()
        # What is left can't be sent any more, and no flush waits for it.
        with self.assertRaises(FlushError):
            alk.flush(None)

    def test_a_record_waits_for_room_within_its_time(self):
        alk = self.client(queue_events=1)
        alk.log("document.read", **WHO)
        with self.assertRaises(RecordTimeoutError):
            alk.record("document.read", timeout=0.05, **WHO)


class Recording(ClientTest):
    def test_answers_with_the_place_after_all_that_was_logged(self):
        alk = self.client()
        alk.log("document.read", **WHO)
        receipt = alk.record("document.read", **WHO)
        self.assertEqual(receipt.sequence_number, 2)
        again = alk.record("document.read", id=receipt.id, **self.same(receipt.id))
        self.assertEqual((again.sequence_number, again.is_duplicate), (2, True))

    def same(self, id):
        return {**WHO, "timestamp": self.service.bodies[id]["timestamp"]}

    def test_raises_what_the_service_refuses_and_says_it_nowhere_else(self):
        alk = self.client()
        with self.assertRaises(RejectedError) as raised:
            alk.record("bad", **WHO)
        self.assertEqual(raised.exception.rejection.field, "action")
        with self.assertRaises(RejectedError):
            alk.record("document.read", metadata={"x": object()}, **WHO)
        alk.flush(10)

    def test_that_is_late_stays_queued(self):
        self.service.fate_of = lambda count: "refuse"
        alk = self.client()
        first = alk.log("document.read", **WHO)
        self.until_failed(alk)
        with self.assertRaises(RecordTimeoutError) as raised:
            alk.record("document.read", timeout=0.01, **WHO)
        self.assertIn("ConnectionRefusedError", str(raised.exception))
        self.service.fate_of = lambda count: "answer"
        alk.flush(10)
        self.assertEqual(self.service.stored, [first, raised.exception.event_id])

    def test_asks_for_the_receipt_where_the_store_is_slow(self):
        self.service.fate_of = lambda count: "pending"
        answers = [
            refusal(503, "unavailable"),
            json_answer(200, {"receipt_id": "rcp_1", "status": "pending"}),
            json_answer(
                200,
                {
                    "receipt_id": "rcp_1", "status": "committed", "accepted": 1, "rejected": 0,
                    "errors": [], "first_sequence_number": 9, "last_sequence_number": 9,
                },
            ),
        ]  # fmt: skip
        handle = self.service.handle
        self.service.handle = lambda request: (
            answers.pop(0) if request.method == "GET" else handle(request)
        )
        with mock.patch("alk_client.client.RECEIPT_SECONDS", 0.01):
            receipt = self.client().record("document.read", **WHO)
        self.assertEqual((receipt.receipt_id, receipt.sequence_number), ("rcp_1", 9))

    def test_raises_what_the_receipt_refuses(self):
        self.service.fate_of = lambda count: "pending"
        error = {"index": 0, "code": "id_conflict", "message": "id: belongs to another event"}
        answer = {
            "receipt_id": "r",
            "status": "committed",
            "accepted": 0,
            "rejected": 1,
            "errors": [error],
        }
        failed = {"receipt_id": "r", "status": "failed", "error": {"message": "quarantined"}}
        for body, code in ((answer, "id_conflict"), (failed, "failed")):
            handle = FakeService(lambda count: "pending").handle
            self.service.handle = lambda request, body=body, handle=handle: (
                json_answer(200, body) if request.method == "GET" else handle(request)
            )
            with mock.patch("alk_client.client.RECEIPT_SECONDS", 0.01):
                with self.assertRaises(RejectedError) as raised:
                    self.client().record("document.read", **WHO)
            self.assertEqual(raised.exception.rejection.code, code)


class Configuration(ClientTest):
    def test_come_from_the_environment(self):
        with mock.patch.dict(
            os.environ, {"ALK_URL": "https://alk.example/base", "ALK_API_KEY": KEY}
        ):
            self.assertEqual(AlkClient().worker.transport._host, "alk.example")

    def test_that_can_not_be_used_are_named(self):
        with mock.patch.dict(os.environ, {}, clear=True):
            for settings, name in (
                ({"url": URL}, "key"),
                ({"key": KEY}, "url"),
                ({"key": "two words", "url": URL}, "key"),
                ({"key": KEY, "url": "localhost:8080"}, "url"),
                ({"key": KEY, "url": URL, "overflow": "drop"}, "overflow"),
                ({"key": KEY, "url": URL, "queue_events": 0}, "queue_events"),
                ({"key": KEY, "url": URL, "batch_events": 1001}, "batch_events"),
            ):
                with self.assertRaisesRegex(ValueError, f"^{name}: "):
                    rest = {k: settings.pop(k) for k in ("url", "key") if k in settings}
                    AlkClient(**rest, settings=Settings(**settings))

    def test_ids_sort_by_time_and_times_have_microseconds(self):
        ids = [uuid7(n / 1000) for n in range(1_700_000_000_000, 1_700_000_000_050)]
        self.assertEqual(ids, sorted(ids))
        self.assertTrue(
            all(UUID(id).version == 7 and UUID(id).variant == "specified in RFC 4122" for id in ids)
        )
        self.assertEqual(time_text(1_700_000_000.999_999_9), "2023-11-14T22:13:21.000000Z")


class Processes(ClientTest):
    @unittest.skipUnless(hasattr(os, "fork"), "needs fork")
    def test_a_forked_child_sends_its_own_events_and_not_those_of_its_parent(self):
        gate = threading.Event()
        self.service.fate_of = lambda count: gate.wait(20) and "answer"
        made = []

        def transport():
            made.append(self.service if not made else FakeService())
            return made[-1]

        alk = AlkClient(URL, KEY, transport=transport, settings=Settings(linger=0.01))
        self.addCleanup(self.end, alk)
        mine = [alk.log("document.read", **WHO) for _ in range(3)]
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                id = alk.log("document.read", **WHO)
                alk.flush(10)
                status = 0 if made[-1].stored == [id] else 2
            finally:
                os.write(writer, b"done")
                os._exit(status)
        os.close(writer)
        self.assertEqual(os.read(reader, 10), b"done")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        gate.set()
        alk.flush(10)
        self.assertEqual(self.service.stored, mine)

    def run_program(self, text):
        program = (
            "import sys, logging\n"
            "from alk_client import AlkClient, Settings\n"
            "from tests.fakes import FakeService\n"
            "logging.basicConfig(stream=sys.stderr)\n"
            "service = FakeService()\n"
            "alk = AlkClient('http://127.0.0.1:8080', 'alk_live_x', transport=lambda: service,"
            " settings=Settings(linger=60, exit_timeout=1))\n"
            "who = dict(actor='human:a', resource='document:1')\n" + text
        )
        return subprocess.run(
            [sys.executable, "-B", "-c", program],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def test_a_program_that_ends_sends_its_queue(self):
        ended = self.run_program(
            "import atexit\n"
            "alk.log('document.read', **who)\n"
            "del alk\n"
            "service_at_end = service\n"
            "import threading\n"
            "import alk_client.worker as worker\n"
            "atexit.unregister(worker.finish_all)\n"
            "atexit.register(lambda: print(len(service.stored)))\n"
            "atexit.register(worker.finish_all)\n"
        )
        self.assertEqual((ended.stdout, ended.returncode), ("1\n", 0), ended.stderr)

    def test_a_program_that_can_not_send_its_queue_ends_in_time_and_says_so(self):
        ended = self.run_program(
            "service.fate_of = lambda count: 'refuse'\nalk.log('document.read', **who)\n"
        )
        self.assertEqual(ended.returncode, 0)
        self.assertIn("the program ends, and 1 not acknowledged in time", ended.stderr)

    def test_a_process_of_multiprocessing_sends_its_queue(self):
        ended = self.run_program(
            "import multiprocessing, os\n"
            "def work():\n"
            "    alk.log('document.read', **who)\n"
            "    send = service.send\n"
            "    def tell(request, timeout):\n"
            "        answer = send(request, timeout)\n"
            "        os.write(1, b'sent')\n"
            "        return answer\n"
            "    service.send = tell\n"
            "child = multiprocessing.get_context('fork').Process(target=work)\n"
            "child.start(); child.join()\n"
        )
        self.assertEqual(ended.stdout, "sent", ended.stderr)


class Asyncio(ClientTest):
    def test_records_flushes_and_closes(self):
        async def main():
            alk = AsyncAlkClient(
                URL, KEY, transport=lambda: self.service, settings=Settings(linger=0.01)
            )
            async with alk:
                with acting_as("human:ann"):
                    id = alk.log("document.read", resource="document:1")
                    await alk.flush(10)
                    self.assertEqual(self.service.stored, [id])
                    receipt = await alk.record("document.read", resource="document:1")
            return receipt

        receipt = asyncio.run(main())
        self.assertEqual(receipt.sequence_number, 2)
        self.assertEqual(self.service.bodies[receipt.id]["actor"]["id"], "ann")

    def test_flush_blocks_no_loop_and_names_what_is_not_acknowledged(self):
        self.service.fate_of = lambda count: "refuse"

        async def main():
            alk = AsyncAlkClient(
                URL, KEY, transport=lambda: self.service, settings=Settings(linger=0.01)
            )
            self.addCleanup(self.end, alk.client)
            id = alk.log("document.read", **WHO)
            ticks = 0

            async def tick():
                nonlocal ticks
                while True:
                    await asyncio.sleep(0.01)
                    ticks += 1

            ticking = asyncio.ensure_future(tick())
            with self.assertRaises(FlushError) as raised:
                await alk.flush(0.3)
            ticking.cancel()
            self.assertEqual(raised.exception.pending, (id,))
            self.assertGreater(ticks, 0)

        asyncio.run(main())

    def test_a_flush_that_is_cancelled_leaves_the_client_as_it_is(self):
        self.service.fate_of = lambda count: "refuse"

        async def main():
            alk = AsyncAlkClient(
                URL, KEY, transport=lambda: self.service, settings=Settings(linger=0.01)
            )
            alk.log("document.read", **WHO)
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(alk.flush(60), 0.05)
            self.service.fate_of = lambda count: "answer"
            await alk.flush(10)
            await alk.close()

        asyncio.run(main())
        self.assertEqual(len(self.service.stored), 1)


if __name__ == "__main__":
    unittest.main()

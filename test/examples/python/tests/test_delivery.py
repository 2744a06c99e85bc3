"""Nothing is lost, doubled or reordered under any mix of failures; nothing waits longer than
said."""

import json
import logging
import random
import threading
import unittest
from concurrent.futures import Future

from alk_client.answers import UNREADABLE_CODES
from alk_client.backoff import DELAY_MAX, RETRY_AFTER_MAX, Backoff, retry_after_of
from alk_client.delivery import EVENTS, Delivery
from alk_client.outbox import Entry, Outbox, PendingReceipt, Receipt
from alk_client.reporter import Reporter
from alk_client.settings import Settings
from alk_client.transport import Answer

from .fakes import FATES, FakeClock, FakeService, ScriptedTransport, json_answer, refusal

# Runs of the random test; each takes some milliseconds.
RUNS = 300
# Steps of a run after the faults have ended, more than any run needs.
STEPS_MAX = 10_000


class Bench:
    """An outbox and its delivery to a transport, without a thread."""

    def __init__(self, transport, seed=0, **settings):
        self.clock = FakeClock()
        self.settings = Settings(linger=0.2, **settings)
        self.outbox = Outbox(10_000, 10_000_000, threading.Condition())
        self.reporter = Reporter(self.clock, None)
        self.delivery = Delivery(
            self.outbox,
            EVENTS,
            transport,
            self.settings,
            self.clock,
            self.reporter,
            random.Random(seed),
        )

    def log(self, id, action="document.read", answer=None):
        body = json.dumps({"id": id, "action": action}).encode()
        assert self.outbox.offer(Entry(id, body, answer), self.clock.now)

    def step(self):
        """One step; time passes until the next one is due."""
        wait = self.delivery.step()
        self.clock.now += wait or 0.0
        return wait

    def drain(self):
        for _ in range(STEPS_MAX):
            if self.step() is None:
                return
        raise AssertionError(f"{len(self.outbox)} items are never settled")


class Quiet(unittest.TestCase):
    def setUp(self):
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)


class AnyMixOfFailures(Quiet):
    def test_stores_each_event_once_and_in_order(self):
        for seed in range(RUNS):
            with self.subTest(seed=seed):
                self.run_with(random.Random(seed))

    def run_with(self, rng):
        fates = rng.sample(FATES, rng.randint(1, len(FATES))) + ["answer"]
        service = FakeService(lambda count: rng.choice(fates))
        bench = Bench(service, rng.random(), batch_events=rng.choice([1, 2, 7, 100]))
        sent, refused = [], []
        for number in range(rng.randint(1, 60)):
            is_bad = rng.random() < 0.15
            id = f"e{number}"
            bench.log(id, "bad" if is_bad else "document.read")
            (refused if is_bad else sent).append(id)
            for _ in range(rng.choice([0, 0, 1, 3])):
                bench.step()
                self.assert_settled_are_safe(bench, service, sent, refused)
        fates[:] = ["answer"]
        bench.drain()
        self.assertEqual(service.stored, sent)
        self.assertEqual([one.id for one in bench.reporter.take()], refused)

    def assert_settled_are_safe(self, bench, service, sent, refused):
        """What a flush would have returned for is stored, or was told to be refused."""
        logged = sorted([*sent, *refused], key=lambda id: int(id[1:]))
        told = {one.id for one in bench.reporter._unnamed}
        for id in logged[: bench.outbox.settled]:
            self.assertTrue(id in service.bodies or id in told, id)


class Waiting(Quiet):
    def test_an_event_waits_for_company_for_the_linger_only(self):
        service = FakeService()
        bench = Bench(service)
        bench.log("e1")
        self.assertAlmostEqual(bench.delivery.step(), 0.2)
        self.assertEqual(service.stored, [])
        bench.clock.now += 0.2
        bench.delivery.step()
        self.assertEqual(service.stored, ["e1"])

    def test_what_a_full_batch_leaves_has_waited_already(self):
        service = FakeService()
        bench = Bench(service, batch_events=2)
        bench.log("e1")
        bench.clock.now += 0.2
        bench.log("e2")
        bench.log("e3")
        bench.clock.now += 0.15
        bench.delivery.step()
        self.assertEqual(service.stored, ["e1", "e2"])
        self.assertAlmostEqual(bench.delivery.step(), 0.05)

    def test_a_full_batch_a_flush_and_a_record_wait_for_nothing(self):
        for start in (
            lambda bench: [bench.log(f"e{n}") for n in range(5)],
            lambda bench: (bench.log("e1"), bench.outbox.flushed()),
            lambda bench: bench.log("e1", answer=Future()),
        ):
            bench = Bench(FakeService(), batch_events=5)
            start(bench)
            self.assertEqual(bench.delivery.step(), 0.0)

    def test_retry_after_is_honoured_and_bounded(self):
        for header, least, most in (
            ("7", 7, 9),
            ("999999", RETRY_AFTER_MAX, RETRY_AFTER_MAX * 1.3),
        ):
            transport = ScriptedTransport(
                refusal(503, "unavailable", headers={"retry-after": header})
            )
            bench = Bench(transport)
            bench.log("e1")
            bench.outbox.flushed()
            bench.delivery.step()
            self.assertTrue(least <= bench.delivery.step() <= most, header)

    def test_retry_after_may_be_a_date(self):
        date = {"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}
        self.assertEqual(retry_after_of(date, 40.0), 60.0)
        self.assertEqual(retry_after_of(date, 400.0), 0.0)
        self.assertIsNone(retry_after_of({"retry-after": "soon"}, 0.0))
        self.assertIsNone(retry_after_of({}, 0.0))

    def test_delays_double_up_to_their_limit_and_differ(self):
        backoff, other = Backoff(random.Random(1)), Backoff(random.Random(2))
        delays = [backoff.next_delay() for _ in range(40)]
        self.assertNotEqual(delays, [other.next_delay() for _ in range(40)])
        self.assertTrue(0.05 <= delays[0] <= 0.1)
        for at, delay in enumerate(delays):
            self.assertTrue(
                0.5 * min(DELAY_MAX, 0.1 * 2**at) <= delay <= min(DELAY_MAX, 0.1 * 2**at)
            )
        backoff.reset()
        self.assertLess(backoff.next_delay(), 0.11)


class Refusals(Quiet):
    def test_too_large_a_request_is_halved_until_it_fits(self):
        service = FakeService(lambda count: "parts" if count > 3 else "answer")
        bench = Bench(service)
        ids = [f"e{n}" for n in range(50)]
        for id in ids:
            bench.log(id)
        bench.drain()
        self.assertEqual(service.stored, ids)
        # It has learned: it does not try the large size again for each batch.
        self.assertLess(len(service.requests), 40)

    def test_an_item_that_is_too_large_alone_is_rejected_and_the_others_go_on(self):
        def take(request):
            items = json.loads(request.body)["events"]
            is_too_large = any(item["id"] == "e3" for item in items)
            return refusal(413, "payload_too_large") if is_too_large else None

        service = FakeService()
        handle = service.handle
        service.handle = lambda request: take(request) or handle(request)
        bench = Bench(service)
        for n in range(6):
            bench.log(f"e{n}")
        bench.drain()
        self.assertEqual(service.stored, ["e0", "e1", "e2", "e4", "e5"])
        self.assertEqual(
            [(one.id, one.code) for one in bench.reporter.take()], [("e3", "payload_too_large")]
        )

    def test_an_unreadable_item_is_found_and_rejected_alone(self):
        self.assertIn("invalid_json", UNREADABLE_CODES)
        service = FakeService()
        handle = service.handle
        service.handle = lambda request: (
            refusal(400, "invalid_json") if b'"e2"' in request.body else handle(request)
        )
        bench = Bench(service)
        for n in range(5):
            bench.log(f"e{n}")
        bench.drain()
        self.assertEqual(service.stored, ["e0", "e1", "e3", "e4"])

    def test_an_answer_of_something_in_between_rejects_nothing(self):
        for answer in (
            Answer(400, {}, b"<html>The plain HTTP request was sent to HTTPS port</html>"),
            Answer(301, {"location": "https://elsewhere"}, b""),
            refusal(404, "not_found"),
            refusal(401, "unauthenticated"),
            refusal(403, "insufficient_scope"),
            json_answer(200, {"accepted": 1}),
            json_answer(200, {"receipt_id": "r", "accepted": 2, "rejected": 0, "errors": []}),
            json_answer(200, {"receipt_id": "r", "accepted": 0, "rejected": 1, "errors": []}),
            json_answer(200, {"receipt_id": "r", "accepted": True, "rejected": 0, "errors": []}),
        ):
            bench = Bench(ScriptedTransport(answer))
            bench.log("e1")
            bench.outbox.flushed()
            self.assertEqual(bench.delivery.step(), 0.0)
            self.assertEqual(len(bench.outbox), 1, answer)
            self.assertEqual(bench.reporter.take(), [])

    def test_what_needs_help_is_an_error_in_the_log_and_an_outage_a_warning(self):
        logging.disable(logging.NOTSET)
        for answer, level in (
            (refusal(401, "unauthenticated", "send a key"), "ERROR"),
            (refusal(503, "unavailable", "later"), "WARNING"),
        ):
            bench = Bench(ScriptedTransport(answer))
            bench.log("e1")
            bench.outbox.flushed()
            with self.assertLogs("alk_client", "WARNING") as logs:
                bench.delivery.step()
            self.assertEqual(logs.records[0].levelname, level)
            self.assertIn(json.loads(answer.body)["error"], logs.output[0])


class Answers(Quiet):
    def test_a_record_learns_its_place_among_duplicates_and_refused_items(self):
        service = FakeService()
        service.take([{"id": "before"}, {"id": "again"}])
        bench = Bench(service)
        answers = {id: Future() for id in ("again", "new", "newer")}
        bench.log("again", answer=answers["again"])
        bench.log("bad-1", "bad")
        bench.log("new", answer=answers["new"])
        bench.log("newer", answer=answers["newer"])
        # The fake compares bodies: what was stored before has no action.
        service.bodies["again"] = {"id": "again", "action": "document.read"}
        bench.drain()
        found = {id: future.result(0) for id, future in answers.items()}
        self.assertEqual(found["again"], Receipt("again", "rcp_1", 2, True))
        self.assertEqual(found["new"], Receipt("new", "rcp_1", 3, False))
        self.assertEqual(found["newer"], Receipt("newer", "rcp_1", 4, False))

    def test_a_slow_store_is_not_waited_for_again_until_it_had_time(self):
        service = FakeService(lambda count: "pending")
        bench = Bench(service)
        for n in range(4):
            bench.log(f"e{n}")
            bench.drain()
            bench.clock.now += 15 if n else 0
        synced = ["sync=true" in request.path for request in service.requests]
        self.assertEqual(synced, [True, False, False, True])
        self.assertEqual(service.stored, ["e0", "e1", "e2", "e3"])

    def test_a_record_asks_for_its_place_even_then(self):
        service = FakeService(lambda count: "pending")
        bench = Bench(service)
        bench.log("e0")
        bench.drain()
        answer = Future()
        bench.log("e1", answer=answer)
        bench.drain()
        self.assertIn("sync=true", service.requests[-1].path)
        self.assertEqual(answer.result(0), PendingReceipt("e1", "rcp_2", 0, 1))

    def test_a_record_that_nobody_waits_for_any_more_is_rejected_aloud(self):
        bench = Bench(FakeService())
        answer = Future()
        bench.log("e1", "bad", answer)
        answer.cancel()
        bench.drain()
        self.assertEqual([one.field for one in bench.reporter.take()], ["action"])


if __name__ == "__main__":
    unittest.main()

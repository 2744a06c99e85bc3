"""What runs and spans send, by blocks, contexts, errors and clocks; and the decorator and the
handler."""

import asyncio
import json
import logging
import threading
import unittest

from alk_client import AlkHandler, acting_as, current_span
from alk_client.ids import SystemClock
from alk_client.traces import Tracer

from .test_client import WHO, ClientTest


class Recorder:
    """The operations that a tracer sends, in order."""

    def __init__(self, clock=None):
        self.sent = []
        self.tracer = Tracer(
            clock or SystemClock(), lambda id, body: self.sent.append(json.loads(body))
        )

    def run(self, agent="reporter", **more):
        given = {"name": None, "trigger": None, "metadata": None, "id": None, **more}
        return self.tracer.run(agent, **given)

    def of(self, op):
        return [one for one in self.sent if one["op"] == op]


class Blocks(unittest.TestCase):
    def test_nest_as_they_are_written(self):
        recorder = Recorder()
        with recorder.run(trigger="cron") as run:
            with run.span("plan", type="PLANNING", goal="tides") as plan:
                with run.tool("search", query="tides") as tool:
                    tool.event("tool.response", hits=3)
                    tool.set(cost=1)
            with run.span("write", caused_by=[plan]) as write:
                pass
        starts = {one["name"]: one for one in recorder.of("span.start")}
        self.assertNotIn("parent_span_id", starts["plan"])
        self.assertEqual(starts["search"]["parent_span_id"], plan.id)
        self.assertEqual(starts["search"]["span_type"], "TOOL_CALL")
        self.assertEqual(starts["search"]["metadata"], {"query": "tides"})
        self.assertNotIn("parent_span_id", starts["write"])
        self.assertEqual(starts["write"]["caused_by_span_ids"], [plan.id])
        self.assertEqual([one["op"] for one in recorder.sent][0], "execution.start")
        self.assertEqual(recorder.sent[0]["agent_id"], "reporter")
        self.assertEqual(recorder.sent[-1]["op"], "execution.end")
        ends = {one["span_id"]: one for one in recorder.of("span.end")}
        self.assertEqual(ends[tool.id]["metadata"], {"cost": 1})
        self.assertEqual({one["status"] for one in ends.values()}, {"COMPLETED"})
        self.assertEqual(set(ends), {plan.id, tool.id, write.id})
        [event] = recorder.of("span.event")
        self.assertEqual((event["span_id"], event["payload"]), (tool.id, {"hits": 3}))

    def test_every_operation_has_its_own_id_and_time_so_that_a_retry_repeats_it(self):
        recorder = Recorder()
        with recorder.run() as run, run.tool("search") as tool:
            tool.event("a")
        for one in recorder.sent:
            self.assertTrue("id" in one or one["op"].endswith(".end"), one)
            self.assertTrue({"started_at", "ended_at", "timestamp"} & set(one), one)

    def test_an_error_fails_its_span_and_the_run_and_goes_on(self):
        recorder = Recorder()
        with self.assertRaises(KeyError), recorder.run() as run, run.tool("search"):
            raise KeyError("no tides")
        [span] = recorder.of("span.end")
        self.assertEqual((span["status"], span["error"]), ("FAILED", "KeyError: 'no tides'"))
        [end] = recorder.of("execution.end")
        self.assertEqual(
            (end["status"], end["metadata"]["error"]), ("FAILED", "KeyError: 'no tides'")
        )

    def test_an_error_that_is_handled_inside_fails_the_span_only(self):
        recorder = Recorder()
        with recorder.run() as run:
            try:
                with run.tool("search"):
                    raise KeyError("no tides")
            except KeyError:
                pass
        self.assertEqual(recorder.of("execution.end")[0]["status"], "COMPLETED")

    def test_a_cancelled_task_is_no_failure(self):
        recorder = Recorder()

        async def work():
            async with recorder.run() as run:
                async with run.tool("wait"):
                    await asyncio.sleep(60)

        async def main():
            task = asyncio.ensure_future(work())
            await asyncio.sleep(0.01)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        asyncio.run(main())
        self.assertEqual(
            [one["status"] for one in recorder.sent if "status" in one], ["CANCELLED"] * 2
        )

    def test_tasks_at_once_each_have_their_own_parent(self):
        recorder = Recorder()

        async def branch(run, name):
            async with run.span(name) as outer:
                await asyncio.sleep(0.01)
                async with run.span(f"{name}-inner"):
                    await asyncio.sleep(0.01)
                return name, outer.id

        async def main():
            async with recorder.run() as run:
                return dict(await asyncio.gather(*(branch(run, f"b{n}") for n in range(5))))

        outer = asyncio.run(main())
        parents = {one["name"]: one.get("parent_span_id") for one in recorder.of("span.start")}
        for name, id in outer.items():
            self.assertIsNone(parents[name])
            self.assertEqual(parents[f"{name}-inner"], id)

    def test_a_thread_is_given_its_parent(self):
        recorder = Recorder()
        with recorder.run() as run, run.span("outer") as outer:

            def work():
                self.assertIsNone(current_span())
                with outer.span("inner"):
                    pass

            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            self.assertIs(current_span(), outer)
        self.assertIsNone(current_span())
        self.assertEqual(recorder.of("span.start")[1]["parent_span_id"], outer.id)

    def test_a_run_inside_of_another_has_its_own_spans(self):
        recorder = Recorder()
        with recorder.run() as first, first.span("a"), recorder.run("other") as second:
            with second.span("b"):
                pass
        b = recorder.of("span.start")[1]
        self.assertEqual(b["execution_id"], second.id)
        self.assertNotIn("parent_span_id", b)

    def test_only_the_first_end_counts_and_none_is_before_its_start(self):
        class Back:
            now = 2_000.0

            def time(self):
                self.now -= 100
                return self.now

            monotonic = time

        recorder = Recorder(Back())
        with recorder.run() as run, run.span("a") as span:
            span.end("CANCELLED")
            span.end()
        [end] = recorder.of("span.end")
        self.assertEqual(end["status"], "CANCELLED")
        [start] = recorder.of("span.start")
        self.assertEqual(end["ended_at"], start["started_at"])

    def test_details_without_json_are_left_out_aloud_and_the_step_stays(self):
        recorder = Recorder()
        with self.assertLogs("alk_client", "ERROR") as logs:
            with recorder.run(metadata={"x": object()}):
                pass
        self.assertIn("metadata.x", logs.output[0])
        self.assertEqual([one["op"] for one in recorder.sent], ["execution.start", "execution.end"])


class ByClient(ClientTest):
    def test_operations_go_to_their_route_and_flush_waits_for_them(self):
        taken = []
        self.service.handle = lambda request: (taken.append(request), self.answer(request))[1]
        alk = self.client()
        with alk.run("reporter") as run, run.tool("search"):
            pass
        alk.flush(10)
        self.assertEqual({request.path for request in taken}, {"/api/v1/traces/batch?sync=true"})
        operations = [
            one["op"] for request in taken for one in json.loads(request.body)["operations"]
        ]
        self.assertEqual(operations, ["execution.start", "span.start", "span.end", "execution.end"])

    def answer(self, request):
        from .fakes import json_answer

        count = len(json.loads(request.body)["operations"])
        body = {
            "receipt_id": "r",
            "status": "committed",
            "accepted": count,
            "rejected": 0,
            "errors": [],
        }
        return json_answer(200, body)


class Audited(ClientTest):
    def logged(self):
        return [self.service.bodies[id] for id in self.service.stored]

    def test_a_call_is_logged_with_its_arguments(self):
        alk = self.client()

        @alk.audit(
            "invoice.approve",
            actor=lambda call: {"id": call["user"], "type": "human"},
            resource="invoice:{invoice_id}",
            metadata=lambda call: {"amount": call["amount"]},
        )
        def approve(invoice_id, user, amount=1):
            """Its own text."""
            return amount + 1

        self.assertEqual(approve(17, user="ann"), 2)
        self.assertEqual((approve.__name__, approve.__doc__), ("approve", "Its own text."))
        alk.flush(10)
        [event] = self.logged()
        self.assertEqual(event["actor"], {"id": "ann", "type": "human"})
        self.assertEqual(event["resource"], {"type": "invoice", "id": "17"})
        self.assertEqual((event["outcome"], event["metadata"]), ("success", {"amount": 1}))

    def test_a_failure_is_logged_and_raised_also_of_a_coroutine(self):
        alk = self.client()

        @alk.audit("invoice.approve", actor="human:ann", resource="invoice:{id}")
        def approve(id):
            raise PermissionError("not yours")

        @alk.audit("invoice.approve", actor="human:ann", resource="invoice:{id}")
        async def approve_later(id):
            await asyncio.sleep(0)
            raise PermissionError("not yours")

        with self.assertRaises(PermissionError):
            approve(1)
        with self.assertRaises(PermissionError):
            asyncio.run(approve_later(2))
        alk.flush(10)
        for event in self.logged():
            self.assertEqual(event["outcome"], "failure")
            self.assertEqual(event["metadata"], {"error": "PermissionError: not yours"})
        self.assertEqual(len(self.logged()), 2)

    def test_a_template_that_does_not_fit_is_an_error_in_the_log_and_not_in_the_call(self):
        alk = self.client()

        @alk.audit("invoice.approve", actor="human:ann", resource="invoice:{missing}")
        def approve(id):
            return id

        with self.assertLogs("alk_client", "ERROR"):
            self.assertEqual(approve(3), 3)


class Handler(ClientTest):
    def setUp(self):
        super().setUp()
        self.alk = self.client()
        self.handler = AlkHandler(self.alk, actor="system:shop")
        self.log = logging.getLogger("alk_client_test.shop")
        self.log.setLevel(logging.INFO)
        self.log.propagate = False
        self.log.addHandler(self.handler)
        self.addCleanup(self.log.removeHandler, self.handler)

    def events(self):
        self.alk.flush(10)
        return [self.service.bodies[id] for id in self.service.stored]

    def test_a_record_says_what_it_is_about(self):
        extra = {"action": "invoice.approve", "resource": "invoice:17", "metadata": {"amount": 12}}
        self.log.info("approved %s", "17", extra=extra)
        with acting_as("human:ann"):
            self.log.info("seen")
        first, second = self.events()
        self.assertEqual((first["action"], first["actor"]["id"]), ("invoice.approve", "shop"))
        self.assertEqual(first["metadata"]["message"], "approved 17")
        self.assertEqual(first["metadata"]["amount"], 12)
        self.assertEqual((second["action"], second["actor"]["id"]), ("log.info", "ann"))
        self.assertEqual(second["resource"], {"type": "logger", "id": "alk_client_test.shop"})

    def test_an_error_has_outcome_error_and_its_traceback(self):
        try:
            raise ValueError("broken")
        except ValueError:
            self.log.exception("failed")
        [event] = self.events()
        self.assertEqual(event["outcome"], "error")
        self.assertIn("ValueError: broken", event["metadata"]["exception"])

    def test_lines_of_the_client_itself_are_passed_over(self):
        own = logging.getLogger("alk_client")
        own.addHandler(self.handler)
        self.addCleanup(own.removeHandler, self.handler)
        self.alk.log("bad", **WHO)
        self.handler.flush()
        self.assertEqual(self.service.stored, [])


if __name__ == "__main__":
    unittest.main()

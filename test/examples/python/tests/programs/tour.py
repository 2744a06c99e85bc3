"""Everything else that a client does, once, against a service; prints what came of it as JSON."""

import asyncio
import json

from alk_client import AlkClient, AsyncAlkClient, FlushError, RejectedError, verify_event

WHO = {"actor": "human:alice", "resource": "document:doc-1"}


def refused(alk):
    try:
        alk.record("nodots", **WHO)
    except RejectedError as error:
        return [error.rejection.code, error.rejection.field]


def refused_by_flush(alk):
    alk.log("alk.own", **WHO)
    try:
        alk.flush()
    except FlushError as error:
        return [one.code for one in error.rejections]


def traced(alk):
    with alk.run("researcher", trigger="test", metadata={"n": 1}) as run:
        with run.span("plan", type="PLANNING") as plan:
            with run.tool("search", query="tides") as tool:
                tool.event("tool.response", hits=3)
        with run.span("write", caused_by=[plan]):
            pass
    try:
        with alk.run("failing") as failing, failing.tool("search"):
            raise ValueError("no tides")
    except ValueError:
        pass
    alk.flush()
    return {"run": run.id, "failing": failing.id}


async def asynchronous():
    async with AsyncAlkClient() as alk:
        alk.log("document.read", **WHO)
        await alk.flush()
        receipt = await alk.record("document.shared", **WHO)
        events = [event["action"] async for event in alk.events(action="document.*")]
        runs = [one["id"] async for one in alk.executions(page_size=1)]
        async with alk.tail(after=receipt.sequence_number - 1) as tail:
            async for event in tail:
                return {"events": events, "runs": runs, "tail": event["action"]}


def main():
    with AlkClient() as alk:
        first = alk.record("document.read", metadata={"pages": 1e21, "é": "😀"}, **WHO)
        stored = next(alk.events(id=first.id))
        again = alk.record(
            "document.read",
            id=first.id,
            timestamp=stored["timestamp"],
            metadata={"pages": 1e21, "é": "😀"},
            **WHO,
        )
        result = {
            "first": first.sequence_number,
            "again": [again.sequence_number, again.is_duplicate],
            "valid": verify_event(stored).valid,
            "refused": refused(alk),
            "refused_by_flush": refused_by_flush(alk),
            "traced": traced(alk),
        }
    result["asynchronous"] = asyncio.run(asynchronous())
    print(json.dumps(result))


main()

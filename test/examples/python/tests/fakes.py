"""A clock that is set, and a service in memory that loses, refuses and repeats as networks do.
Written from the documents of the API; shares no code with the client but the form of a request."""

import json
import threading

from alk_client.errors import TransportError
from alk_client.transport import Answer


class FakeClock:
    """Time passes when a test says so."""

    def __init__(self):
        self.now = 1_000.0

    def monotonic(self):
        return self.now

    def time(self):
        return 1_800_000_000.0 + self.now


def json_answer(status, body, headers=None):
    return Answer(status, headers or {}, json.dumps(body).encode())


def refusal(status, code, message="no", headers=None):
    return json_answer(status, {"error": message, "code": code, "request_id": "r"}, headers)


# What becomes of a request. Those of the second row are stored although no answer says so, or not
# yet; "parts" is that the request is too large, which a single item never is.
FATES = [
    "answer", "refuse", "busy", "quota", "parts", "html", "short",
    "lose answer", "time out", "stored and 503", "pending", "garbage",
]  # fmt: skip


class FakeService:
    """
    Takes batches of events like the service: in order, each id once, items with the action "bad"
    refused. `fate_of` says what becomes of the next request with so many items. Also a transport.
    """

    def __init__(self, fate_of=lambda count: "answer"):
        self.fate_of = fate_of
        self.stored = []
        self.requests = []
        self.bodies = {}
        self.lock = threading.Lock()
        self.closed = 0

    def send(self, request, timeout):
        with self.lock:
            self.requests.append(request)
            return self.handle(request)

    def close(self):
        self.closed += 1

    def handle(self, request):
        [items] = json.loads(request.body).values()
        fate = self.fate_of(len(items))
        if fate == "refuse":
            raise TransportError("ConnectionRefusedError")
        if fate == "busy":
            return refusal(503, "unavailable", headers={"retry-after": "1"})
        if fate == "quota":
            return refusal(429, "rate_limited", headers={"retry-after": "2"})
        if fate == "parts" and len(items) > 1:
            return refusal(413, "payload_too_large")
        if fate == "html":
            return Answer(400, {}, b"<html>The plain HTTP request was sent to HTTPS port</html>")
        answer = self.take(items)
        if fate in ("lose answer", "time out"):
            raise TransportError(fate)
        if fate == "stored and 503":
            return refusal(503, "unavailable")
        if fate == "garbage":
            return Answer(200, {}, b"<html>welcome to the hotel</html>")
        if fate == "short":
            answer = {**answer, "accepted": max(0, answer["accepted"] - 1)}
        if fate == "pending":
            for name in ("duplicates", "first_sequence_number", "last_sequence_number"):
                answer.pop(name, None)
            return json_answer(202, {**answer, "status": "pending"})
        return json_answer(200, answer)

    def take(self, items):
        """Store what is new, and answer with what became of each."""
        errors, duplicates, ids, appended = [], [], [], []
        for index, item in enumerate(items):
            if item.get("action") == "bad":
                message = "action: must be two or more segments; send document.read"
                errors.append({"index": index, "code": "invalid_action", "message": message})
                continue
            ids.append(item["id"])
            if item["id"] in self.bodies:
                # Another body under the same id would be an id_conflict of the real service.
                assert self.bodies[item["id"]] == item, "a retry has changed the event"
                number = self.stored.index(item["id"]) + 1
                duplicates.append({"index": index, "sequence_number": number})
                continue
            self.bodies[item["id"]] = item
            self.stored.append(item["id"])
            appended.append(len(self.stored))
        answer = {
            "receipt_id": f"rcp_{len(self.requests)}",
            "status": "committed",
            "accepted": len(ids),
            "rejected": len(errors),
            "ids": ids,
            "errors": errors,
        }
        if duplicates:
            answer["duplicates"] = duplicates
        if appended:
            answer.update(first_sequence_number=appended[0], last_sequence_number=appended[-1])
        return answer


class ScriptedTransport:
    """Answers with what it was given, in order; an exception is raised."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests = []

    def send(self, request, timeout):
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def stream(self, request, timeout):
        return self.send(request, timeout)

    def close(self):
        pass

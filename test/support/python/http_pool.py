"""A pool of httpx, as Python services have it: http_pool.py <mode> <url> <key>.

Prints one JSON object. `errors`: how often each request got which answer. `life`: what became of every
request of a pool from before the server listens, which it says in a line of its own, until it has gone,
and the ids of those that got no answer. `stream`: what httpx-sse hands out.
`install`: nothing.
"""
import collections
import json
import sys
import threading
import time

import httpx
from httpx_sse import connect_sse

mode, url, key = sys.argv[1:4]
AUTH = {"authorization": f"Bearer {key}"}
JSON = {**AUTH, "content-type": "application/json"}
EVENT = {
    "actor": {"id": "python", "type": "system"},
    "action": "client.request",
    "resource": {"id": "r", "type": "request"},
    "outcome": "success",
}
MIB = 1_048_576
THREADS = 8
# Seconds that an answer may take, and that a server may be there: many times what they need.
PATIENCE = 120
LIFE = 240


def pieces(size):
    """A body without a length: httpx sends it in chunks."""
    for _ in range(size // 65_536):
        yield b" " * 65_536


def batch():
    return json.dumps({"events": [EVENT]}).encode()


REQUESTS = {
    "list": lambda c: c.get("/v1/events", headers=AUTH),
    "write": lambda c: c.post("/v1/events/batch?sync=true", headers=JSON, content=batch()),
    "bad json": lambda c: c.post("/v1/events", headers=JSON, content=b"{"),
    "no route": lambda c: c.post("/v1/nothing", headers=JSON, content=b" " * 2 * MIB),
    "no key": lambda c: c.post("/v1/events", content=pieces(2 * MIB)),
    "too large": lambda c: c.post("/v1/events", headers=JSON, content=b" " * 3 * MIB),
    "too large in chunks": lambda c: c.post("/v1/events", headers=JSON, content=pieces(3 * MIB)),
    "wrong type": lambda c: c.post(
        "/v1/events", headers={**AUTH, "content-type": "text/plain"}, content=pieces(MIB)
    ),
    "expectation": lambda c: c.post("/v1/events", headers={**JSON, "expect": "x"}, content=b"{}"),
}


pool_headers = threading.local()


def named(request):
    """Gives a request the id that its thread has set."""
    request.headers["x-request-id"] = getattr(pool_headers, "id", "unnamed")


def client():
    limits = httpx.Limits(max_connections=THREADS, max_keepalive_connections=THREADS)
    hooks = {"request": [named]}
    return httpx.Client(base_url=url, limits=limits, timeout=PATIENCE, event_hooks=hooks)


def outcome(request, pool):
    try:
        answer = request(pool)
        return str(answer.status_code), answer
    except httpx.HTTPError as error:
        return f"{type(error).__name__}: {error}", None


def threads(work):
    running = [threading.Thread(target=work, args=(n,)) for n in range(THREADS)]
    for one in running:
        one.start()
    for one in running:
        one.join()


def errors():
    counts = collections.Counter()
    bodies = set()
    with client() as pool:

        def work(n):
            names = list(REQUESTS)
            for turn in range(len(names) * 6):
                name = names[(turn + n) % len(names)]
                status, answer = outcome(REQUESTS[name], pool)
                counts[f"{name}: {status}"] += 1
                if answer is not None and answer.status_code >= 400:
                    bodies.add("error" in answer.json() and "x-request-id" in answer.headers)

        threads(work)
    return {"counts": counts, "bodies": sorted(bodies)}


def life():
    counts = collections.Counter()
    lost = []
    seen_down = threading.Event()
    seen_up = threading.Event()
    with client() as pool:

        def work(n):
            names = ["list", "write", "no key", "bad json"]
            turn = n
            until = time.monotonic() + LIFE
            while time.monotonic() < until:
                name = names[turn % len(names)]
                turn += 1
                pool_headers.id = f"life-{n}-{turn}"
                status, answer = outcome(REQUESTS[name], pool)
                if status.startswith("ConnectError"):
                    # Nobody listens: not yet, or not any more.
                    counts["nobody listens"] += 1
                    if not seen_down.is_set():
                        seen_down.set()
                        print("nobody listens", flush=True)
                    if seen_up.is_set():
                        return
                    time.sleep(0.005)
                    continue
                counts[f"{name}: {status}"] += 1
                if answer is None:
                    lost.append(pool_headers.id)
                if status == "200":
                    seen_up.set()

        threads(work)
    return {"counts": counts, "lost": lost}


def stream():
    wanted = int(sys.argv[4])
    events = []
    with client() as pool, connect_sse(pool, "GET", "/v1/events/stream", headers=AUTH) as source:
        for event in source.iter_sse():
            events.append([event.event, event.id, event.data, event.retry])
            if sum(1 for seen in events if seen[2]) >= wanted:
                break
    return {"events": events}


def install():
    return {"httpx": httpx.__version__}


print(json.dumps({"install": install, "errors": errors, "life": life, "stream": stream}[mode]()))

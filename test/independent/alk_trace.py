"""The chain alk-trace-v1 a second time, from its description alone.

Shares no code with the service and needs nothing but Python and alk_chain.py beside it.

    python3 alk_trace.py check [facts.ndjson] [--partial] [--exact]
    python3 alk_trace.py vectors file.json
    python3 alk_trace.py make

`check` reads facts of alk.traces, one per line, of any number of tenants, in the order of their
topic; without a file, or for -, from standard input. With --partial a tenant's first fact may have
any chain_sequence; with --exact each line must have the very bytes that are stored. `vectors` reads
the file of schemas/vectors (- for standard input), which `make` prints: facts of every type with what is hashed of them,
the same without their details, and chains that are broken.

Exit code 0: it holds. 1: it does not, and the first break is printed. 2: it can't be read.
"""

import json
import sys

from alk_chain import (
    GENESIS_HASH,
    Refused,
    canonical,
    canonical_timestamp,
    number_text,
    parse_strict,
    sha256,
    string_text,
)

SCHEME = "alk-trace-v1"

STATUSES = {"COMPLETED", "FAILED", "CANCELLED"}

COMMON = {"type", "execution_id", "fact_number"}
# What is hashed of each type, whether it may be absent, and which details the type may have.
CORE = {
    "execution.started": (
        {"agent_id", "root_span_id", "source", "started_at", "started_at_given"},
        {"provisional"},
        {"agent_name", "trigger", "metadata"},
    ),
    "execution.ended": ({"status", "ended_at"}, set(), {"metadata"}),
    "execution.resumed": (set(), set(), set()),
    "execution.erased": ({"reason", "erased_by"}, set(), set()),
    "span.started": (
        {"span_id", "caused_by_span_ids", "span_type", "started_at", "started_at_given"},
        {"parent_span_id"},
        {"name", "metadata", "repairs"},
    ),
    "span.ended": ({"span_id", "status", "ended_at"}, set(), {"error", "metadata"}),
    "span.amended": ({"span_id"}, {"parent_span_id", "shared_span_id"}, {"payload"}),
    "span.event": (
        {"span_id", "event_id", "event_type", "sequence_number", "timestamp"},
        set(),
        {"payload"},
    ),
    "span.payload": ({"span_id"}, set(), {"payload"}),
}

# What ties a fact to its place, in the order in which it is stored behind the core.
PLACE = [
    "details", "details_salt", "tenant_id", "chain_sequence", "created_at", "prev_hash",
    "content_hash", "hash", "erased_at",
]  # fmt: skip


def core_of(fact):
    return {name: value for name, value in fact.items() if name not in PLACE}


def stored_text(fact):
    """The one text that a fact is stored as."""

    def member(name, value):
        return f"{string_text(name)}:{canonical(value)}"

    tail = [member(name, fact[name]) for name in PLACE if name in fact]
    return canonical(core_of(fact))[:-1] + "," + ",".join(tail) + "}"


def link_hash(fact, content_hash):
    parts = [
        SCHEME,
        fact["tenant_id"],
        number_text(fact["chain_sequence"]),
        fact["created_at"],
        content_hash,
        fact["prev_hash"],
    ]
    return sha256("\n".join(parts))


def shape_fault(fact):
    required, optional, details = CORE[fact["type"]]
    core = core_of(fact).keys() - {"details_hash"}
    absent = (required | COMMON) - core
    unknown = core - required - optional - COMMON
    if absent or unknown:
        return f"members absent or unknown: {', '.join(sorted(absent | unknown))}"
    odd = fact.get("details", {}).keys() - details
    if odd:
        return f"details that a {fact['type']} does not have: {', '.join(sorted(odd))}"
    if fact.get("status", "COMPLETED") not in STATUSES:
        return f"status {fact['status']}"
    for name in ("started_at", "ended_at", "timestamp", "created_at", "erased_at"):
        if name in fact and canonical_timestamp(fact[name]) != fact[name]:
            return f"{name} is not in canonical form"
    return None


def content_fault(fact, erasures):
    """`erasures` are the facts of the execution that say when its details were erased."""
    shape = shape_fault(fact)
    if shape is not None:
        return shape
    is_erased = "details_hash" in fact and "details" not in fact
    if is_erased:
        asked = [
            erasure
            for erasure in erasures
            if erasure["created_at"] == fact.get("erased_at")
            and erasure["fact_number"] > fact["fact_number"]
        ]
        if not asked or "details_salt" in fact:
            return "details are absent, and no execution.erased says so"
    elif "details" in fact:
        details_hash = sha256(fact.get("details_salt", "") + "\n" + canonical(fact["details"]))
        if details_hash != fact.get("details_hash"):
            return f"details_hash is {details_hash}"
        if "erased_at" in fact:
            return "erased_at beside details"
    content_hash = sha256(canonical(core_of(fact)))
    return None if content_hash == fact["content_hash"] else f"content_hash is {content_hash}"


class Execution:
    """How far one execution has come."""

    def __init__(self):
        self.facts = 0
        self.events = 0
        self.spans = set()
        # Those that start again: a span.amended has to say why.
        self.again = set()
        # Log records of OpenTelemetry are events that may come before their span.
        self.is_otlp = False

    def fault(self, fact):
        if fact["fact_number"] != self.facts + 1:
            return f"fact_number {self.facts + 1} expected"
        # An execution that only holds values of an event never starts.
        if self.facts == 0 and fact["type"] not in ("execution.started", "span.payload"):
            return "an execution that has not started"
        self.facts += 1
        if fact["type"] == "execution.started":
            self.is_otlp = fact["source"] == "otlp"
        if fact["type"] == "span.started":
            if fact["span_id"] in self.again:
                return "a span that starts again and again"
            if fact["span_id"] in self.spans:
                self.again.add(fact["span_id"])
            self.spans.add(fact["span_id"])
        elif fact.get("span_id") in self.again:
            if fact["type"] != "span.amended":
                return "a span that starts twice"
            self.again.remove(fact["span_id"])
        follows = ("span.amended", "span.ended") if self.is_otlp else ("span.amended", "span.ended", "span.event")
        if fact["type"] in follows and fact["span_id"] not in self.spans:
            return "of a span that has not started"
        if fact["type"] == "span.event":
            if fact["sequence_number"] != self.events + 1:
                return f"sequence_number {self.events + 1} expected"
            self.events += 1
        return None


def link_fault(fact, before, partial):
    """Why a fact does not follow the one before it in its tenant's chain."""
    sequence = fact["chain_sequence"]
    expected = before["chain_sequence"] + 1 if before else sequence if partial else 1
    if sequence != expected:
        return f"chain_sequence {number_text(expected)} expected"
    prev_hash = before["hash"] if before else GENESIS_HASH if sequence == 1 else fact["prev_hash"]
    if fact["prev_hash"] != prev_hash:
        return f"the fact before has hash {prev_hash}"
    if before and fact["created_at"] < before["created_at"]:
        return "created before the fact in front of it"
    own_hash = link_hash(fact, fact["content_hash"])
    return None if own_hash == fact["hash"] else f"hash is {own_hash}"


def first_break(facts, partial=False):
    """(tenant, chain_sequence, explanation) of the first break, or None; and the heads."""
    heads = {}
    executions = {}
    erasures = {}
    for fact in facts:
        if fact["type"] == "execution.erased":
            erasures.setdefault((fact["tenant_id"], fact["execution_id"]), []).append(fact)
    for fact in facts:
        tenant = fact["tenant_id"]
        name = (tenant, fact["execution_id"])
        fault = content_fault(fact, erasures.get(name, []))
        fault = fault or link_fault(fact, heads.get(tenant), partial)
        if fault is None and not partial:
            fault = executions.setdefault(name, Execution()).fault(fact)
        if fault is not None:
            return (tenant, fact["chain_sequence"], fault), heads
        heads[tenant] = fact
    return None, heads


def check(lines, partial, exact):
    facts = []
    filled = [line for line in lines if line.strip()]
    for number, line in enumerate(filled, 1):
        try:
            facts.append(parse_strict(line))
        except Refused as error:
            print(f"line {number} is unreadable: {error}")
            return 2
    try:
        found, heads = first_break(facts, partial)
        odd = [
            fact
            for fact, line in zip(facts, filled)
            if exact and stored_text(fact).encode("utf-8") != line.rstrip(b"\n")
        ]
    except (KeyError, TypeError, AttributeError) as error:
        print(f"a line is no stored fact: {error!r}")
        return 2
    if found is not None:
        tenant, sequence, why = found
        print(f"broken: tenant {tenant} chain_sequence {number_text(sequence)}: {why}")
        return 1
    if odd:
        sequence = number_text(odd[0]["chain_sequence"])
        print(f"not the stored bytes: tenant {odd[0]['tenant_id']} chain_sequence {sequence}")
        return 1
    for tenant, head in sorted(heads.items()):
        sequence = number_text(head["chain_sequence"])
        print(f"intact: tenant {tenant} length {sequence} head {head['hash']}")
    print(f"intact: {len(facts)} facts")
    return 0


# Vectors

TENANT = "acme"
RUN, TRACE = "019aa5b1-7c00-7000-8000-000000000001", "run/2 \u00fc%"
STARTED = "2026-11-21T10:00:00.000001Z"
AGENT = {"agent_id": "agent \"1\"", "root_span_id": "root", "source": "api"}
SPAN = {"span_type": "TOOL_CALL", "started_at": STARTED, "started_at_given": True}

# (execution, type, the rest of the core, details or None), in the order of the chain.
TOLD = [
    (
        RUN,
        "execution.started",
        {**AGENT, "started_at": STARTED, "started_at_given": True},
        {
            "agent_name": "Agent \U0001f600",
            "trigger": "cron\n",
            "metadata": {"b": [1.0, 1e21], "a": {}},
        },
    ),
    (
        RUN,
        "span.started",
        {**SPAN, "span_id": "root", "span_type": "AGENT", "caused_by_span_ids": []},
        {"name": "Agent \U0001f600"},
    ),
    (
        TRACE,
        "execution.started",
        {
            "agent_id": "service",
            "root_span_id": "stand-in",
            "source": "otlp",
            "started_at": STARTED,
            "started_at_given": True,
            "provisional": True,
        },
        None,
    ),
    (
        RUN,
        "span.started",
        {
            **SPAN,
            "span_id": "call\u2028\"",
            "parent_span_id": "root",
            "caused_by_span_ids": ["z", "a", "\u00e9"],
        },
        {
            "name": "",
            "metadata": {"__proto__": {"x": None}, "\u20ac": 1, "\U0001f600": 2, "\ufb33": 3},
        },
    ),
    (
        RUN,
        "span.event",
        {
            "span_id": "call\u2028\"",
            "event_id": "e1",
            "event_type": "llm.request",
            "sequence_number": 1,
            "timestamp": "1970-01-01T00:00:00.000000Z",
        },
        {"payload": {"prompt": "S\u00e3o Paulo \\ \t\u007f", "tokens": 5e-324, "n": -0.0}},
    ),
    (
        RUN,
        "span.event",
        {
            "span_id": "root",
            "event_id": "e2",
            "event_type": "decision",
            "sequence_number": 2,
            "timestamp": "2261-12-31T23:59:59.999999Z",
        },
        None,
    ),
    (
        RUN,
        "span.ended",
        {"span_id": "call\u2028\"", "status": "FAILED", "ended_at": "2026-11-21T10:00:01.000000Z"},
        {"error": {"type": "Timeout", "after": 1e-7}, "metadata": {}},
    ),
    (
        TRACE,
        "span.started",
        {
            **SPAN,
            "span_id": "child",
            "parent_span_id": "never arrives",
            "caused_by_span_ids": [],
            "span_type": "LLM_CALL",
            "started_at_given": False,
        },
        {"name": "chat"},
    ),
    (
        TRACE,
        "execution.started",
        {
            "agent_id": "planner",
            "root_span_id": "real root",
            "source": "otlp",
            "started_at": "2026-11-21T09:59:59.999999Z",
            "started_at_given": True,
        },
        {"agent_name": "Planner"},
    ),
    (
        TRACE,
        "span.ended",
        {"span_id": "child", "status": "CANCELLED", "ended_at": "2026-11-21T10:00:01.000000Z"},
        {"error": "gone"},
    ),
    (RUN, "execution.ended", {"status": "FAILED", "ended_at": "2026-11-21T10:00:02.000000Z"}, None),
    (
        TRACE,
        "execution.ended",
        {"status": "COMPLETED", "ended_at": "2026-11-21T10:00:02.000000Z"},
        {"metadata": {"cost": 0.1}},
    ),
    (
        RUN,
        "span.payload",
        {"span_id": "call\u2028\""},
        {
            "payload": {
                "bytes": 9,
                "chunk": 2,
                "chunks": 2,
                "sha256": sha256("\u20ac \u2028 \""),
                "text": " \u2028 \"",
            }
        },
    ),
    (RUN, "execution.erased", {"reason": "asked for \"it\"", "erased_by": "key_1"}, None),
    (TRACE, "execution.resumed", {}, None),
    (TRACE, "span.amended", {"span_id": "child"}, {"payload": {"details": {"name": "chat 2"}}}),
    (TRACE, "span.started", {**SPAN, "span_id": "child", "caused_by_span_ids": []}, {"name": "c"}),
    (TRACE, "span.amended", {"span_id": "child"}, None),
    (
        TRACE,
        "span.amended",
        {"span_id": "child", "parent_span_id": "a \"client\"", "shared_span_id": "a \"client\""},
        None,
    ),
]


def chained(told, tenant=TENANT):
    """Facts in their places, all hashes true."""
    facts = []
    numbers = {}
    for execution, kind, core, details in told:
        sequence = len(facts) + 1
        numbers[execution] = numbers.get(execution, 0) + 1
        fact = {
            **core,
            "type": kind,
            "execution_id": execution,
            "fact_number": numbers[execution],
            "tenant_id": tenant,
            "chain_sequence": sequence,
            "created_at": f"2026-11-21T10:00:{sequence:02d}.000000Z",
            "prev_hash": facts[-1]["hash"] if facts else GENESIS_HASH,
        }
        if details is not None:
            fact["details"] = details
            fact["details_salt"] = sha256(f"salt {sequence}")[:32]
            fact["details_hash"] = sha256(fact["details_salt"] + "\n" + canonical(details))
        facts.append(sealed(fact))
    return facts


def sealed(fact):
    """The fact with the hashes that its content and place have."""
    fact = {name: value for name, value in fact.items() if name not in ("content_hash", "hash")}
    fact["content_hash"] = sha256(canonical(core_of(fact)))
    return {**fact, "hash": link_hash(fact, fact["content_hash"])}


def without_details(fact, erased_at):
    kept = {name: fact[name] for name in fact if name not in ("details", "details_salt")}
    return {**kept, "erased_at": erased_at}


def erased_chain(facts):
    """The facts as they stand in the store once the erasures among them are done."""
    erasures = [fact for fact in facts if fact["type"] == "execution.erased"]
    for erasure in erasures:
        facts = [
            without_details(fact, erasure["created_at"])
            if fact["execution_id"] == erasure["execution_id"]
            and fact["fact_number"] < erasure["fact_number"]
            else fact
            for fact in facts
        ]
    return facts


def replaced(facts, sequence, **changes):
    return [
        {**fact, **changes} if fact["chain_sequence"] == sequence else fact for fact in facts
    ]


def relinked(facts):
    """All hashes from the places that the facts have now: what a forger with time would do."""
    made = []
    for fact in facts:
        prev_hash = made[-1]["hash"] if made else GENESIS_HASH
        made.append(sealed({**fact, "chain_sequence": len(made) + 1, "prev_hash": prev_hash}))
    return made


def broken_chains(facts):
    """(name, facts): each with one thing wrong."""
    told = facts[4]
    at = next(i for i, fact in enumerate(facts) if fact["type"] == "execution.erased")
    erased_at = facts[at]["created_at"]
    yield "another status", replaced(facts, 7, status="COMPLETED")
    yield "another payload", replaced(facts, 5, details={"payload": {"prompt": "another"}})
    yield "another salt", replaced(facts, 5, details_salt="0" * 32)
    yield "another details_hash", replaced(facts, 5, details_hash="0" * 64)
    yield "another content_hash", replaced(facts, 6, content_hash="0" * 64)
    yield "another hash", replaced(facts, 6, hash="0" * 64)
    yield "another time of chaining", replaced(facts, 6, created_at="2026-11-21T10:00:06.000001Z")
    yield "another tenant", [{**fact, "tenant_id": "other"} for fact in facts]
    yield "another execution", replaced(facts, 6, execution_id=TRACE)
    unlinked = sealed({**facts[5], "prev_hash": "f" * 64})
    yield "another fact before", facts[:5] + [unlinked] + facts[6:]
    yield "a fact that is gone", facts[:4] + facts[5:]
    yield "two facts in each other's place", facts[:4] + [facts[5], facts[4]] + facts[6:]
    yield "a fact that is there twice", facts[:5] + facts[4:]
    yield "a number left out, hashes made anew", relinked(facts[:5] + facts[6:])
    yield "details gone without an erasure", [
        without_details(fact, erased_at) if fact is told else fact for fact in facts[:at]
    ]
    yield "details gone at another time", [
        without_details(fact, "2026-11-21T11:00:00.000000Z") if fact is told else fact
        for fact in facts
    ]
    event = {**TOLD[5][2], "event_id": "e3", "sequence_number": 3}
    longer = chained(TOLD + [(RUN, "span.event", event, {"payload": {}})])
    yield "details gone that came after the erasure", longer[:-1] + [
        without_details(longer[-1], erased_at)
    ]


def make():
    facts = chained(TOLD)
    erased = erased_chain(facts)
    vectors = {
        "scheme": SCHEME,
        "tenant_id": TENANT,
        "chain": [
            {
                "stored": stored_text(fact),
                "core_jcs": canonical(core_of(fact)),
                "details_jcs": canonical(fact["details"]) if "details" in fact else None,
            }
            for fact in facts
        ],
        "erased": [stored_text(fact) for fact in erased],
        "broken": [
            {
                "name": name,
                "at_sequence": int(first_break(chain)[0][1]),
                "stored": [stored_text(fact) for fact in chain],
            }
            for name, chain in broken_chains(facts)
        ],
    }
    json.dump(vectors, sys.stdout, indent=1, ensure_ascii=True)
    print()
    return 0


def wrong_vectors(vectors):
    """What this program makes of the vectors in another way than they say."""
    chain = [parse_strict(vector["stored"].encode("utf-8")) for vector in vectors["chain"]]
    erased = [parse_strict(line.encode("utf-8")) for line in vectors["erased"]]
    if vectors["scheme"] != SCHEME:
        yield f"scheme {vectors['scheme']}"
    for fact, vector in zip(chain, vectors["chain"]):
        details = canonical(fact["details"]) if "details" in fact else None
        if fact["tenant_id"] != vectors["tenant_id"]:
            yield f"tenant of {vector['stored']}"
        if stored_text(fact) != vector["stored"]:
            yield f"bytes of {vector['stored']}"
        if canonical(core_of(fact)) != vector["core_jcs"] or details != vector["details_jcs"]:
            yield f"core or details of {vector['stored']}"
    if first_break(chain)[0] is not None:
        yield f"the chain breaks: {first_break(chain)[0]}"
    if [stored_text(fact) for fact in erased_chain(chain)] != vectors["erased"]:
        yield "the erased chain"
    if first_break(erased)[0] is not None:
        yield f"the erased chain breaks: {first_break(erased)[0]}"
    for broken in vectors["broken"]:
        facts = [parse_strict(line.encode("utf-8")) for line in broken["stored"]]
        found, _ = first_break(facts)
        if found is None or found[1] != broken["at_sequence"]:
            yield f"{broken['name']}: {found}"


def check_vectors(path):
    if path == "-":
        vectors = json.load(sys.stdin.buffer)
    else:
        with open(path, "rb") as file:
            vectors = json.load(file)
    faults = list(wrong_vectors(vectors))
    print(f"{path}: {faults[0] if faults else 'reproduced'}")
    return 1 if faults else 0


def main(arguments):
    options = {argument for argument in arguments if argument.startswith("--")}
    names = [argument for argument in arguments if not argument.startswith("--")]
    if arguments == ["make"]:
        return make()
    if names[:1] == ["vectors"] and len(names) == 2 and not options:
        return check_vectors(names[1])
    if names[:1] != ["check"] or len(names) > 2 or options - {"--partial", "--exact"}:
        print(__doc__)
        return 2
    try:
        if names[1:] in ([], ["-"]):
            lines = sys.stdin.buffer.readlines()
        else:
            with open(names[1], "rb") as file:
                lines = file.readlines()
    except OSError as error:
        print(error)
        return 2
    return check(lines, "--partial" in options, "--exact" in options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

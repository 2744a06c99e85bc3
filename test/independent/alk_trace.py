"""The chain alk-trace-v1 a second time, from its description alone.

Shares no code with the service and needs nothing but Python and alk_chain.py beside it.

    python3 alk_trace.py check [facts.ndjson] [--partial] [--exact]

`check` reads facts of alk.traces, one per line, of any number of tenants, in the order of their
topic; without a file, or for -, from standard input. With --partial a tenant's first fact may have
any chain_sequence; with --exact each line must have the very bytes that are stored.

Exit code 0: it holds. 1: it does not, and the first break is printed. 2: it can't be read.
"""

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
    "execution.erased": ({"reason", "erased_by"}, set(), set()),
    "span.started": (
        {"span_id", "caused_by_span_ids", "span_type", "started_at", "started_at_given"},
        {"parent_span_id"},
        {"name", "metadata"},
    ),
    "span.ended": ({"span_id", "status", "ended_at"}, set(), {"error", "metadata"}),
    "span.event": (
        {"span_id", "event_id", "event_type", "sequence_number", "timestamp"},
        set(),
        {"payload"},
    ),
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

    def fault(self, fact):
        if fact["fact_number"] != self.facts + 1:
            return f"fact_number {self.facts + 1} expected"
        if self.facts == 0 and fact["type"] != "execution.started":
            return "an execution that has not started"
        self.facts += 1
        if fact["type"] == "span.started":
            if fact["span_id"] in self.spans:
                return "a span that starts twice"
            self.spans.add(fact["span_id"])
        if fact["type"] in ("span.ended", "span.event") and fact["span_id"] not in self.spans:
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


def main(arguments):
    options = {argument for argument in arguments if argument.startswith("--")}
    names = [argument for argument in arguments if not argument.startswith("--")]
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

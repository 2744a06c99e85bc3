"""The chain alk-chain-v1 a second time, from its description alone.

Shares no code with the service and needs nothing but Python: its own RFC 8785, its own strict JSON,
its own timestamps. What both get right by different ways is probably right.

    python3 alk_chain.py check [events.ndjson] [--partial] [--exact]
    python3 alk_chain.py vectors file.json...
    python3 alk_chain.py canonical
    python3 alk_chain.py timestamps

`check` reads stored events, one per line, of any number of tenants; without a file, or for -, from
standard input. With --partial a tenant's first event may have any sequence number; with --exact
each line must have the very bytes that are stored. `vectors` reads the files of schemas/vectors.
`canonical` and `timestamps` read one text per line as hex digits of its bytes and answer each with
its canonical form, or with `refused`.

Exit code 0: it holds. 1: it does not, and the first break or wrong vector is printed. 2: it can't
be read.
"""

import hashlib
import json
import re
import struct
import sys
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation, Overflow

SCHEME = "alk-chain-v1"
GENESIS_HASH = "0" * 64
NESTING_MAX = 64
ERASURE = "alk.event.erased"


class Refused(Exception):
    """The text is no JSON, or not JSON that can be stored exactly."""


# RFC 8785


def number_text(value):
    """A double as ECMAScript writes it (Number::toString), which RFC 8785 adopts."""
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    _, digits, exponent = Decimal(repr(abs(value))).as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    stripped = text.rstrip("0")
    exponent += len(text) - len(stripped)
    count = len(stripped)
    point = count + exponent
    if count <= point <= 21:
        return sign + stripped + "0" * (point - count)
    if 0 < point <= 21:
        return sign + stripped[:point] + "." + stripped[point:]
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + stripped
    mantissa = stripped[0] + ("." + stripped[1:] if count > 1 else "")
    return f"{sign}{mantissa}e{'+' if point > 0 else '-'}{abs(point - 1)}"


SHORT_ESCAPES = {
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\f": "\\f",
    "\r": "\\r",
    '"': '\\"',
    "\\": "\\\\",
}


def string_text(value):
    return '"' + "".join(
        SHORT_ESCAPES.get(char) or (f"\\u{ord(char):04x}" if char < " " else char) for char in value
    ) + '"'


def canonical(value):
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, (int, float)):
        return number_text(float(value))
    if isinstance(value, str):
        return string_text(value)
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    keys = sorted(value, key=lambda key: key.encode("utf-16-be"))
    return "{" + ",".join(f"{string_text(key)}:{canonical(value[key])}" for key in keys) + "}"


# Strict JSON


def exact_number(token):
    """The double of a token that has the very value of its shortest form, or of its 17 digits.

    Of integers only the former: their digits may be an id.
    """
    if not re.search("[1-9]", re.split("[eE]", token)[0]):
        return 0.0
    nearest = float(token)
    try:
        if nearest not in (float("inf"), float("-inf")):
            forms = [number_text(nearest)]
            if re.search("[.eE]", token):
                forms.append(f"{nearest:.16e}")
            if Decimal(token) in [Decimal(form) for form in forms]:
                return nearest
    except (InvalidOperation, Overflow):
        pass
    raise Refused(f"{token[:40]} is no exact double")


def check_text(text):
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise Refused("half a surrogate pair")
    if "\0" in text:
        raise Refused("U+0000")


def check_values(value, level):
    """Texts and nesting; `level` counts the containers around the value, the outermost as 0."""
    if isinstance(value, str):
        check_text(value)
    elif isinstance(value, (dict, list)):
        if level > NESTING_MAX:
            raise Refused(f"more than {NESTING_MAX} levels")
        if isinstance(value, dict):
            for key in value:
                check_text(key)
        for member in value.values() if isinstance(value, dict) else value:
            check_values(member, level + 1)


def no_duplicates(pairs):
    members = dict(pairs)
    if len(members) < len(pairs):
        raise Refused("a key stands twice")
    return members


def no_constant(name):
    raise Refused(f"{name} is no JSON")


def parse_strict(body):
    """The value of UTF-8 bytes, or Refused."""
    try:
        value = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=no_duplicates,
            parse_float=exact_number,
            parse_int=exact_number,
            parse_constant=no_constant,
        )
    except (ValueError, RecursionError) as error:
        raise Refused(str(error)) from error
    check_values(value, 0)
    return value


# Timestamps

TIMESTAMP = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(?:[Zz]|([-+])([0-9]{2}):([0-9]{2}))"
)


def canonical_timestamp(text):
    """The stored form of an RFC 3339 date-time, or None."""
    match = TIMESTAMP.fullmatch(text)
    if match is None:
        return None
    try:
        moment = datetime(*(int(part) for part in match.groups()[:6]))
        if match[8] is not None:
            if int(match[9]) > 23 or int(match[10]) > 59:
                return None
            offset = timedelta(hours=int(match[9]), minutes=int(match[10]))
            moment = moment + offset if match[8] == "-" else moment - offset
    except (ValueError, OverflowError):
        return None
    if not 1970 <= moment.year <= 2261:
        return None
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + "." + ((match[7] or "") + "000000")[:6] + "Z"


# The chain


def sha256(text):
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def details_of(event):
    details = {}
    if "email" in event["actor"]:
        details["actor_email"] = event["actor"]["email"]
    if "metadata" in event:
        details["metadata"] = event["metadata"]
    if "name" in event["resource"]:
        details["resource_name"] = event["resource"]["name"]
    return details


def core_of(event, details_hash):
    core = {
        "action": event["action"],
        "actor": {"id": event["actor"]["id"], "type": event["actor"]["type"]},
        "id": event["id"],
        "outcome": event["outcome"],
        "resource": {"id": event["resource"]["id"], "type": event["resource"]["type"]},
        "timestamp": event["timestamp"],
    }
    if details_hash is not None:
        core["details_hash"] = details_hash
    return core


def details_hash_of(event):
    details = details_of(event)
    return sha256(event.get("details_salt", "") + "\n" + canonical(details)) if details else None


def link_hash(event, content_hash):
    parts = [
        SCHEME,
        event["tenant_id"],
        number_text(event["sequence_number"]),
        event["created_at"],
        content_hash,
        event["prev_hash"],
    ]
    return sha256("\n".join(parts))


MEMBERS = [
    "id", "timestamp", "actor", "action", "resource", "outcome", "metadata", "tenant_id",
    "sequence_number", "created_at", "prev_hash", "details_salt", "details_hash", "content_hash",
    "hash", "erased_at",
]  # fmt: skip


def stored_text(event):
    """The one text that an event is stored as."""

    def members(source, names):
        return ",".join(
            f'"{name}":{inner(name, source[name])}' for name in names if name in source
        )

    def inner(name, value):
        if name == "actor":
            return "{" + members(value, ["id", "type", "email"]) + "}"
        if name == "resource":
            return "{" + members(value, ["id", "type", "name"]) + "}"
        return canonical(value)

    return "{" + members(event, MEMBERS) + "}"


def fault_of(event, prev_hash, is_erased):
    """Why an event doesn't hold behind `prev_hash`, or None."""
    unknown = (
        (event.keys() - set(MEMBERS))
        | (event["actor"].keys() - {"id", "type", "email"})
        | (event["resource"].keys() - {"id", "type", "name"})
    )
    if unknown:
        return "content_mismatch", f"members that no hash covers: {', '.join(sorted(unknown))}"
    details_hash = details_hash_of(event)
    are_gone = is_erased and details_hash is None
    if details_hash != event.get("details_hash") and not are_gone:
        return "content_mismatch", f"details_hash is {details_hash}"
    if "details_salt" in event and details_hash is None:
        return "content_mismatch", "a salt without details"
    if "erased_at" in event and not are_gone:
        return "content_mismatch", "erased_at without an erasure"
    content_hash = sha256(canonical(core_of(event, event.get("details_hash"))))
    if content_hash != event["content_hash"]:
        return "content_mismatch", f"content_hash is {content_hash}"
    if prev_hash is not None and event["prev_hash"] != prev_hash:
        return "prev_hash_mismatch", f"the event before has hash {prev_hash}"
    own_hash = link_hash(event, content_hash)
    if own_hash != event["hash"]:
        return "hash_mismatch", f"hash is {own_hash}"
    return None


def erased_sequences(events):
    return {
        (event["tenant_id"], event["metadata"]["sequence_number"])
        for event in events
        if event["action"] == ERASURE and "sequence_number" in event.get("metadata", {})
    }


def first_break(events, partial=False):
    """(tenant, sequence, reason, explanation) of the first break, or the heads per tenant."""
    erased = erased_sequences(events)
    heads = {}
    for event in events:
        tenant, sequence = event["tenant_id"], int(event["sequence_number"])
        previous = heads.get(tenant)
        start = sequence if partial else 1
        expected = start if previous is None else previous[0] + 1
        if sequence > expected:
            return (tenant, expected, "sequence_gap", f"{sequence} follows"), heads
        if sequence < expected:
            return (tenant, sequence, "duplicate_sequence", f"{expected} expected"), heads
        prev_hash = previous[1] if previous else GENESIS_HASH if sequence == 1 else None
        fault = fault_of(event, prev_hash, (tenant, sequence) in erased)
        if fault is not None:
            return (tenant, sequence, *fault), heads
        heads[tenant] = (sequence, event["hash"])
    return None, heads


def is_stored_form(event, line):
    return stored_text(event).encode("utf-8") == line.rstrip(b"\n")


def check(lines, partial, exact):
    events = []
    odd = []
    filled = [line for line in lines if line.strip()]
    for number, line in enumerate(filled, 1):
        try:
            events.append(parse_strict(line))
        except Refused as error:
            print(f"line {number} is unreadable: {error}")
            return 2
    try:
        found, heads = first_break(events, partial)
        if exact:
            odd = [event for event, line in zip(events, filled) if not is_stored_form(event, line)]
    except (KeyError, TypeError, AttributeError) as error:
        print(f"a line is no stored event: {error!r}")
        return 2
    if found is not None:
        tenant, sequence, reason, why = found
        print(f"broken: tenant {tenant} sequence {sequence} {reason}: {why}")
        return 1
    if odd:
        print(f"not the stored bytes: tenant {odd[0]['tenant_id']} event {odd[0]['id']}")
        return 1
    for tenant, (sequence, head) in sorted(heads.items()):
        print(f"intact: tenant {tenant} length {sequence} head {head}")
    print(f"intact: {len(events)} events")
    return 0


# The vectors


def is_refused(body):
    try:
        parse_strict(body)
    except Refused:
        return True
    return False


def chain_faults(vectors):
    for entry in vectors["chain"]:
        event = entry["event"]
        name = event["id"]
        details = details_of(event)
        details_text = canonical(details) if details else None
        if details_text != entry["details_jcs"]:
            yield f"{name}: details_jcs"
        if details_hash_of(event) != event.get("details_hash"):
            yield f"{name}: details_hash"
        if canonical(core_of(event, event.get("details_hash"))) != entry["core_jcs"]:
            yield f"{name}: core_jcs"
    found, _ = first_break([entry["event"] for entry in vectors["chain"]])
    if found is not None:
        yield f"the chain: {found}"
    for index, entry in enumerate(vectors["broken"]):
        found, _ = first_break(entry["events"])
        if found is None or found[1:3] != (entry["at_sequence"], entry["reason"]):
            yield f"broken {index}: {found}"


def stored_faults(vectors):
    for entry in vectors["stored_chains"]:
        events = [parse_strict(line.encode("utf-8")) for line in entry["lines"]]
        found, _ = first_break(events)
        wanted = entry.get("break")
        if (found and found[1:3]) != (wanted and (wanted["at_sequence"], wanted["reason"])):
            yield f"{entry['name']}: {found}"
        odd = [
            index
            for index, (event, line) in enumerate(zip(events, entry["lines"]))
            if not is_stored_form(event, line.encode("utf-8"))
        ]
        if odd != entry.get("reformatted_lines", []):
            yield f"{entry['name']}: lines {odd} are not in stored form"


def json_faults(vectors):
    for entry in vectors["canonical"]:
        if canonical(parse_strict(entry["json"].encode("utf-8"))) != entry["jcs"]:
            yield f"{entry['name']}: {canonical(parse_strict(entry['json'].encode('utf-8')))}"
    for entry in vectors["doubles"]:
        double = struct.unpack(">d", bytes.fromhex(entry["ieee"]))[0]
        if number_text(double) != entry["jcs"]:
            yield f"double {entry['ieee']}: {number_text(double)}"


def body_of(entry):
    return bytes.fromhex(entry["hex"]) if "hex" in entry else entry["json"].encode("utf-8")


def strict_faults(vectors):
    for entry in vectors["accepted"]:
        if is_refused(body_of(entry)):
            yield f"refused: {entry['name']}"
    for entry in vectors["refused"]:
        if not is_refused(body_of(entry)):
            yield f"accepted: {entry['name']}"


def timestamp_faults(vectors):
    for entry in vectors["timestamps"]:
        if canonical_timestamp(entry["text"]) != entry["canonical"]:
            yield f"{entry['text']}: {canonical_timestamp(entry['text'])}"


CHECKS = {
    "chain": chain_faults,
    "stored_chains": stored_faults,
    "canonical": json_faults,
    "accepted": strict_faults,
    "timestamps": timestamp_faults,
}


def vectors_hold(path):
    with open(path, encoding="utf-8") as file:
        vectors = json.load(file)
    checks = [run for member, run in CHECKS.items() if member in vectors]
    if not checks:
        print(f"{path}: no vectors that this program knows")
        return False
    faults = [fault for run in checks for fault in run(vectors)]
    print(f"{path}: {faults[0] if faults else 'reproduced'}")
    return not faults


def canonical_or_refused(body):
    try:
        return canonical(parse_strict(body))
    except Refused:
        return "refused"


def timestamp_or_refused(body):
    return canonical_timestamp(body.decode("utf-8")) or "refused"


ANSWERS = {"canonical": canonical_or_refused, "timestamps": timestamp_or_refused}


def answer(answer_one):
    for line in sys.stdin.buffer:
        text = answer_one(bytes.fromhex(line.decode("ascii")))
        sys.stdout.buffer.write(text.encode("utf-8") + b"\n")
    return 0


def main(arguments):
    command, *rest = arguments or [""]
    if command in ANSWERS:
        return answer(ANSWERS[command])
    if command == "vectors" and rest:
        return 0 if all([vectors_hold(path) for path in rest]) else 1
    if command == "check":
        flags = ("--partial" in rest, "--exact" in rest)
        paths = [path for path in rest if not path.startswith("--")]
        if paths in ([], ["-"]):
            return check(sys.stdin.buffer, *flags)
        with open(paths[0], "rb") as file:
            return check(file, *flags)
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

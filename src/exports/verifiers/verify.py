#!/usr/bin/env python3
"""Checks an alk evidence pack offline: python3 verify.py [pack.zip | folder] [options]

Python 3.8 or later and its standard library only; it shares no code with the service that wrote the
pack and asks no network. Without a name it checks the folder that it lies in.

  --public-key KEY     the service's public key, or a file that holds it: the answer of
                       /.well-known/alk-keys.json, C2SP (name+id+base64), PEM, or base64. May be
                       repeated.
  --checkpoint FILE    a checkpoint that you kept earlier: a signed note, or the answer of
                       /v1/chain/checkpoints/latest. May be repeated.
  --require-origin     exit code 3 unless the pack is authentic
  --json               the report as JSON

Verdicts and exit codes
  authentic    0  everything agrees, and a key or checkpoint that you gave shows who made it
  consistent   0  everything agrees; who made it is not shown (3 with --require-origin)
  tampered     1  something does not agree
  unreadable   2  there is no verdict on its content
"""

import base64
import binascii
import hashlib
import json
import os
import re
import struct
import sys
import traceback
import zlib
from decimal import Decimal

FORMAT = "alk-evidence-pack-v2"
SCHEME = "alk-chain-v1"
TRACE_SCHEME = "alk-trace-v1"
GENESIS_HASH = "0" * 64
ERASURE_ACTION = "alk.event.erased"
HISTORY_FROM = "1970-01-01T00:00:00.000000Z"
HISTORY_TO = "2261-12-31T23:59:59.999999Z"
# Problems that a report lists; it counts them all.
PROBLEMS_MAX = 100
# Notices of the service that a report lists of each chain, and characters of one.
NOTICES_MAX = 20
NOTICE_LENGTH_MAX = 400
# Bytes of one line, of one file that is read as a whole, and of one read.
LINE_BYTES_MAX = 1048576
SMALL_FILE_BYTES_MAX = 16777216
CHUNK_BYTES = 262144
# Files of a ZIP or folder: a pack has fewer than a hundred.
FILES_MAX = 1000
# Levels of nested objects and arrays in one JSON text: the service stores at most 66.
DEPTH_MAX = 128
# Bytes of a signed note or of a text with keys, signatures of one note, keys in one text.
NOTE_BYTES_MAX = 65536
SIGNATURES_MAX = 16
KEYS_MAX = 256
SEQUENCE_MAX = 2**53 - 1

MANIFEST = "manifest.json"
SIGNATURE = "manifest.sig"
SUMS = "sha256sums.txt"
VERIFICATION = "verification.json"
EVENTS = "events.ndjson"
LINKS = "links.ndjson"
ERASURES = "erasures.ndjson"
TREE = "checkpoints/tree.json"
PROOFS = "checkpoints/erasure-proofs.ndjson"
FACTS = "facts.ndjson"
TRACE_LINKS = "trace-links.ndjson"
TRACE_TREE = "checkpoints/traces-tree.json"
EXECUTIONS = "executions.ndjson"
SPANS = "spans.ndjson"
KEYS = "keys/vkeys.txt"
# The statement with which a key endorsed the n-th one of vkeys.txt.
ENDORSEMENT_NAME = "keys/endorsement-%d.txt"
NOTE_NAME = re.compile(r"checkpoints/([0-9]{1,15})\.txt")
TRACE_NOTE_NAME = re.compile(r"checkpoints/traces-([0-9]{1,15})\.txt")
# The last checkpoint of the n-th key of vkeys.txt: it hands the tree over to the next key.
HAND_OVER_NAME = re.compile(r"checkpoints/hand-over-([0-9]{1,15})\.txt")
TRACE_HAND_OVER_NAME = re.compile(r"checkpoints/traces-hand-over-([0-9]{1,15})\.txt")
PDF = "evidence.pdf"
# What every pack has; without one of them there is nothing to hold the rest against.
REQUIRED = [
    MANIFEST, SIGNATURE, SUMS, VERIFICATION, EVENTS, LINKS, ERASURES, TREE, PROOFS, FACTS,
    TRACE_LINKS, TRACE_TREE, EXECUTIONS, SPANS, KEYS,
]  # fmt: skip
HEX = re.compile(r"[0-9a-f]{64}")
SAFE_PART = re.compile(r"[A-Za-z0-9._-]+")


class Unreadable(Exception):
    """The pack can't be read at all: no verdict on its content."""


class Usage(Exception):
    """The program was called with something that it does not know."""


def sha256(data):
    return hashlib.sha256(data.encode("utf-8") if isinstance(data, str) else data).hexdigest()


def bytes_of_base64(text):
    """None unless it is the one standard spelling."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if base64.b64encode(data).decode("ascii") == text else None


def is_sequence(value):
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= SEQUENCE_MAX


def is_size(value):
    return value == 0 and not isinstance(value, bool) or is_sequence(value)


def is_hash(value):
    return isinstance(value, str) and HEX.fullmatch(value) is not None


def is_safe_name(name):
    """
    True if the name is a relative path that every file system takes as it is: letters, digits and
    "._-", no empty segment, none that ends with a dot.
    """
    parts = name.split("/")
    return len(name) <= 255 and all(
        SAFE_PART.fullmatch(part) and not part.endswith(".") for part in parts
    )


# JSON and RFC 8785


class NotJson(Exception):
    """The text is no JSON, or none that has a canonical form."""


def no_constant(name):
    raise NotJson(name)


def is_too_deep(text):
    """True if objects and arrays are nested deeper than DEPTH_MAX."""
    if text.count("{") <= DEPTH_MAX // 2 and text.count("[") <= DEPTH_MAX // 2:
        return False
    depth, is_text, is_escaped = 0, False, False
    for character in text:
        if is_escaped:
            is_escaped = False
        elif is_text:
            is_escaped = character == "\\"
            is_text = character != '"'
        elif character == '"':
            is_text = True
        elif character in "{[":
            depth += 1
            if depth > DEPTH_MAX:
                return True
        elif character in "}]":
            depth -= 1
    return False


def float_of(text):
    """A number as a double; a whole one that a double holds exactly is an int."""
    value = float(text)
    is_whole = abs(value) <= SEQUENCE_MAX and value == int(value)
    return int(value) if is_whole else value


def int_of(text):
    return int(text) if len(text) <= 15 else float_of(text)


decoder = json.JSONDecoder(
    parse_float=float_of, parse_int=int_of, parse_constant=no_constant
)  # fmt: skip


def json_of(text):
    """The value of a text, or None."""
    if text is None or is_too_deep(text):
        return None
    try:
        return decoder.decode(text)
    except (ValueError, NotJson):
        return None


def number_text(value):
    """A double as ECMAScript writes it (Number::toString), which RFC 8785 adopts."""
    if isinstance(value, int) and -SEQUENCE_MAX <= value <= SEQUENCE_MAX:
        return str(value)
    try:
        value = float(value)
    except OverflowError:
        raise NotJson("no double") from None
    if value != value or value in (float("inf"), float("-inf")):
        raise NotJson("no JSON number")
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
    return "%s%se%s%d" % (sign, mantissa, "+" if point > 0 else "-", abs(point - 1))


SURROGATE = re.compile("[\ud800-\udfff]")
ESCAPED = re.compile('["\\\\\x00-\x1f]')
SHORT_ESCAPES = {
    "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\",
}  # fmt: skip


def escape(match):
    char = match.group()
    return SHORT_ESCAPES.get(char) or "\\u%04x" % ord(char)


def quote(text):
    if SURROGATE.search(text):
        raise NotJson("an unpaired surrogate")
    return '"' + ESCAPED.sub(escape, text) + '"'


def canonical(value):
    if isinstance(value, str):
        return quote(value)
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, (int, float)):
        return number_text(value)
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    keys = sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
    return "{" + ",".join(quote(key) + ":" + canonical(value[key]) for key in keys) + "}"


# The same text by the library's own writer, where its numbers and its order of keys are ours.
plain = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


class Reader:
    """Reads the JSON of a line, and says whether `plain` writes it canonically."""

    def __init__(self):
        self.is_plain = True
        self.decoder = json.JSONDecoder(
            parse_float=self.read_float, parse_int=self.read_int, parse_constant=no_constant
        )

    def read_float(self, text):
        self.is_plain = False
        return float_of(text)

    def read_int(self, text):
        if len(text) > 15 or text == "-0":
            self.is_plain = False
        return int_of(text)

    def read(self, line):
        if is_too_deep(line):
            return None
        # Above U+D7FF, UTF-16 sorts other than code points; an escape may be unpaired.
        self.is_plain = "\\u" not in line and (line.isascii() or max(line) < "\ud800")
        try:
            return self.decoder.decode(line)
        except (ValueError, NotJson):
            return None


reader = Reader()


def shown(value):
    if value is None:
        return "none"
    return value if isinstance(value, str) else canonical(value)


# The chain


def details_of(event):
    details = {}
    if "email" in event["actor"]:
        details["actor_email"] = event["actor"]["email"]
    if "metadata" in event:
        details["metadata"] = event["metadata"]
    if "name" in event["resource"]:
        details["resource_name"] = event["resource"]["name"]
    return details


def core_of(event):
    core = {
        "action": event["action"],
        "actor": {"id": event["actor"]["id"], "type": event["actor"]["type"]},
        "id": event["id"],
        "outcome": event["outcome"],
        "resource": {"id": event["resource"]["id"], "type": event["resource"]["type"]},
        "timestamp": event["timestamp"],
    }
    if "details_hash" in event:
        core["details_hash"] = event["details_hash"]
    return core


def link_hash(scheme, tenant, link, content_hash, sequence="sequence_number"):
    return sha256(
        "\n".join(
            [
                scheme,
                tenant,
                str(link[sequence]),
                link["created_at"],
                content_hash,
                link["prev_hash"],
            ]
        )
    )


EVENT_MEMBERS = [
    "id", "timestamp", "actor", "action", "resource", "outcome", "metadata", "tenant_id",
    "sequence_number", "created_at", "prev_hash", "details_salt", "details_hash", "content_hash",
    "hash", "erased_at",
]  # fmt: skip
LINK_MEMBERS = ["sequence_number", "created_at", "content_hash", "prev_hash", "hash"]


def members_text(source, names, inner):
    present = (name for name in names if name in source)
    return ",".join('"%s":%s' % (name, inner(source[name], name)) for name in present)


def plain_text(value, _name):
    return canonical(value)


def stored_text(event, text):
    """The one text that an event is stored as."""

    def member(value, name):
        if name == "actor":
            return "{" + members_text(value, ["id", "type", "email"], inner) + "}"
        if name == "resource":
            return "{" + members_text(value, ["id", "type", "name"], inner) + "}"
        return text(value)

    def inner(value, _name):
        return text(value)

    return "{" + members_text(event, EVENT_MEMBERS, member) + "}"


def are_strings(source, *names):
    return all(isinstance(source.get(name), str) for name in names)


def are_strings_or_absent(source, *names):
    return all(name not in source or isinstance(source[name], str) for name in names)


def is_event(value):
    return (
        isinstance(value, dict)
        and are_strings(
            value, "id", "timestamp", "action", "outcome", "tenant_id", "created_at", "prev_hash",
            "content_hash", "hash",
        )
        and are_strings_or_absent(value, "details_salt", "details_hash", "erased_at")
        and is_sequence(value.get("sequence_number"))
        and isinstance(value.get("actor"), dict)
        and are_strings(value["actor"], "id", "type")
        and are_strings_or_absent(value["actor"], "email")
        and isinstance(value.get("resource"), dict)
        and are_strings(value["resource"], "id", "type")
        and are_strings_or_absent(value["resource"], "name")
        and ("metadata" not in value or isinstance(value["metadata"], dict))
    )  # fmt: skip


def is_link(value):
    return (
        isinstance(value, dict)
        and are_strings(value, "created_at", "content_hash", "prev_hash", "hash")
        and is_sequence(value.get("sequence_number"))
        and is_hash(value["hash"])
    )


def value_of(line, is_one):
    """
    The JSON value of a line that meets `is_one` and has an RFC 8785 text, and what writes that
    text of it or a part of it; else None twice.
    """
    value = reader.read(line) if line is not None else None
    if not is_one(value):
        return None, None
    if reader.is_plain:
        return value, plain
    return (value, canonical) if is_canonical(value) else (None, None)


def event_of(line):
    """The event of a line and the writer of its canonical text, or None twice if it is none."""
    return value_of(line, is_event)


SEQUENCE_MEMBER = '"sequence_number":'
SAID_DIGITS_MAX = 15


def said_sequence(line):
    """The last sequence number in a line that is no event, at most SAID_DIGITS_MAX digits; or 0."""
    place = line.rfind(SEQUENCE_MEMBER)
    if place < 0:
        return 0
    start = end = place + len(SEQUENCE_MEMBER)
    while end < start + SAID_DIGITS_MAX and "0" <= line[end : end + 1] <= "9":
        end += 1
    return int(line[start:end] or "0")


def wrong(what, expected, actual):
    return "content_mismatch", "%s %s" % (what, shown(expected)), "%s %s" % (what, shown(actual))


def fault_of(line, event, text, tenant, erasure):
    """
    What is wrong with an event by itself, or None. `text` writes canonical JSON; `erasure`: the
    erasure that names its sequence and its content hash, if there is one.
    """
    if event["tenant_id"] != tenant:
        return wrong("tenant", tenant, event["tenant_id"])
    details = details_of(event)
    details_hash = None
    if details:
        details_hash = sha256(event.get("details_salt", "") + "\n" + text(details))
    may_be_gone = erasure is not None and erasure["content_hash"] == event["content_hash"]
    are_gone = may_be_gone and not details
    if event.get("details_hash") != details_hash and not are_gone:
        return wrong("details_hash", event.get("details_hash"), details_hash)
    if "details_salt" in event and not details:
        return wrong("details_salt", None, event["details_salt"])
    if "erased_at" in event and not (are_gone and event["erased_at"] in erasure["times"]):
        return wrong("erased_at", erasure["times"][0] if are_gone else None, event["erased_at"])
    content_hash = sha256(text(core_of(event)))
    if event["content_hash"] != content_hash:
        return wrong("content_hash", event["content_hash"], content_hash)
    own_hash = link_hash(SCHEME, tenant, event, content_hash)
    if event["hash"] != own_hash:
        return "hash_mismatch", own_hash, event["hash"]
    if stored_text(event, text) != line:
        return (
            "content_mismatch",
            "the bytes that the service writes for this event",
            "the same event in other bytes, or with members that no hash covers",
        )
    return None


# Trace facts (alk-trace-v1)

# The members of each type's core besides execution_id, fact_number, type and details_hash.
FACT_CORES = {
    "execution.started": [
        "agent_id", "provisional", "root_span_id", "source", "started_at", "started_at_given",
    ],
    "execution.ended": ["ended_at", "status"],
    "execution.resumed": [],
    "execution.erased": ["erased_by", "reason"],
    "span.started": [
        "caused_by_span_ids", "parent_span_id", "span_id", "span_type", "started_at",
        "started_at_given",
    ],
    "span.ended": ["ended_at", "span_id", "status"],
    "span.amended": ["parent_span_id", "shared_span_id", "span_id"],
    "span.event": ["event_id", "event_type", "sequence_number", "span_id", "timestamp"],
    "span.payload": ["span_id"],
}  # fmt: skip
FACT_COMMON = ["details_hash", "execution_id", "fact_number", "type"]
# What follows the core in a stored fact.
FACT_SUFFIX = [
    "details", "details_salt", "tenant_id", "chain_sequence", "created_at", "prev_hash",
    "content_hash", "hash", "erased_at",
]  # fmt: skip
OPTIONAL_STRINGS = [
    "parent_span_id", "shared_span_id", "details_salt", "details_hash", "erased_at",
]  # fmt: skip
NO_STRINGS = ["provisional", "started_at_given", "caused_by_span_ids", "sequence_number"]


def is_fact(value):
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return False
    core = FACT_CORES.get(value["type"])
    if core is None:
        return False
    strings = [name for name in core if name not in OPTIONAL_STRINGS + NO_STRINGS]
    causes = value.get("caused_by_span_ids")
    return (
        are_strings(
            value, "execution_id", "tenant_id", "created_at", "prev_hash", "content_hash", "hash",
            *strings
        )
        and are_strings_or_absent(value, *OPTIONAL_STRINGS)
        and is_sequence(value.get("fact_number"))
        and is_sequence(value.get("chain_sequence"))
        and ("sequence_number" not in core or is_sequence(value.get("sequence_number")))
        and ("started_at_given" not in core or isinstance(value.get("started_at_given"), bool))
        and ("provisional" not in value or value["provisional"] is True)
        and (
            "caused_by_span_ids" not in core
            or (isinstance(causes, list) and all(isinstance(cause, str) for cause in causes))
        )
        and ("details" not in value or are_details(value["details"]))
    )  # fmt: skip


def are_details(value):
    return (
        isinstance(value, dict)
        and are_strings_or_absent(value, "agent_name", "name", "trigger")
        and ("metadata" not in value or isinstance(value["metadata"], dict))
    )


def fact_core_text(fact, text):
    names = sorted(FACT_CORES[fact["type"]] + FACT_COMMON)
    return "{" + members_text(fact, names, lambda value, _name: text(value)) + "}"


def stored_fact_text(core, fact, text):
    """The one text that a fact with this text of its core is stored as."""
    suffix = members_text(fact, FACT_SUFFIX, lambda value, _name: text(value))
    return core[:-1] + "," + suffix + "}"


def fact_of(line):
    """The fact of a line and the writer of its canonical text, or None twice if it is none."""
    return value_of(line, is_fact)


def is_canonical(value):
    """True if the value has an RFC 8785 text."""
    try:
        canonical(value)
        return True
    except NotJson:
        return False


def fact_fault_of(line, fact, text, tenant):
    """What is wrong with a fact by itself, or None. If its details may be gone is seen later."""
    if fact["tenant_id"] != tenant:
        return wrong("tenant", tenant, fact["tenant_id"])
    has_details = "details" in fact
    details_hash = None
    if has_details:
        details_hash = sha256(fact.get("details_salt", "") + "\n" + text(fact["details"]))
    are_gone = "erased_at" in fact and not has_details
    if fact.get("details_hash") != details_hash and not are_gone:
        return wrong("details_hash", fact.get("details_hash"), details_hash)
    if "details_salt" in fact and not has_details:
        return wrong("details_salt", None, fact["details_salt"])
    if "erased_at" in fact and not are_gone:
        return wrong("erased_at", None, fact["erased_at"])
    core = fact_core_text(fact, text)
    content_hash = sha256(core)
    if fact["content_hash"] != content_hash:
        return wrong("content_hash", fact["content_hash"], content_hash)
    own_hash = link_hash(TRACE_SCHEME, tenant, fact, content_hash, "chain_sequence")
    if fact["hash"] != own_hash:
        return "hash_mismatch", own_hash, fact["hash"]
    if stored_fact_text(core, fact, text) != line:
        return (
            "content_mismatch",
            "the bytes that the service writes for this fact",
            "the same fact in other bytes, or with members that no hash covers",
        )
    return None


# The parts of a shown execution or span that come out of details, which may be long.
DETAIL_MEMBERS = ["agent_name", "error", "metadata", "name", "trigger"]

# Said of spans that were sent again with other content, and of two with one id.
OTHER_CONTENT = {"code": "other_content", "path": "span"}
SHARED_ID = {"code": "shared_id", "path": "span_id"}


def picked(source, *names):
    """The members that are there, each under its name or, of a pair, the second one."""
    pairs = (name if isinstance(name, tuple) else (name, name) for name in names)
    return {shown_name: source[name] for name, shown_name in pairs if name in source}


# The next piece, the pieces so far and the hash of a value that is not whole yet.
NO_VALUE = None, "", None


REFERENCE = re.compile(r"sha256:[0-9a-f]{64}")


def references_of(metadata):
    """The values that metadata of an event refers to, each by the SHA-256 in its reference."""
    places = [metadata, *metadata.values()] if isinstance(metadata, dict) else []
    names = [place.get("$ref") for place in places if isinstance(place, dict)]
    return [name for name in names if isinstance(name, str) and REFERENCE.fullmatch(name)]


# Facts of an execution that only holds values of an event: it is in no list.
HOLDING_FACTS = ("span.payload", "execution.erased")


def is_piece(value):
    """A piece of a value that has no room in its span."""
    return (
        isinstance(value, dict)
        and are_strings(value, "sha256", "text")
        and is_sequence(value.get("chunk"))
        and is_sequence(value.get("chunks"))
    )


class Execution:
    """
    What the facts of one execution add up to. Long texts of spans that have ended are kept as their
    hashes only, so memory grows with the number of spans and not with what they say.
    """

    def __init__(self):
        self.facts = 0
        self.spans = {}
        self.amended = set()
        self.shared = set()
        # Sequence of the first fact without details, by time of erasure.
        self.undetailed = {}
        self.created_at = None
        self.started = None
        self.ended = None
        self.erased_at = None
        self.value = NO_VALUE
        # References to the values that are whole.
        self.values = []
        self.only_holds = True

    def take(self, fact):
        details = fact.get("details", {})
        self.only_holds = self.only_holds and fact["type"] in HOLDING_FACTS
        if fact["type"] == "execution.started":
            self.created_at = self.created_at or fact["created_at"]
            self.started = fact
        elif fact["type"] == "execution.ended":
            self.ended = fact
        elif fact["type"] == "execution.resumed":
            self.ended = None
        elif fact["type"] == "execution.erased":
            self.erased_at = fact["created_at"]
        elif fact["type"] == "span.started":
            core = picked(
                fact, ("span_id", "id"), "execution_id", "parent_span_id", "caused_by_span_ids",
                "span_type", "started_at", "erased_at",
            )  # fmt: skip
            long = {"name": details.get("name", ""), "metadata": details.get("metadata", {})}
            core.update(picked(details, "repairs"))
            self.spans[fact["span_id"]] = core, long, None
        elif fact["type"] == "span.amended" and fact["span_id"] in self.spans:
            self.amend(fact)
        elif fact["type"] == "span.ended" and fact["span_id"] in self.spans:
            self.end_span(fact, details)

    def amend(self, fact):
        span_id = fact["span_id"]
        if "parent_span_id" in fact:
            core, long, digest = self.spans[span_id]
            self.spans[span_id] = dict(core, parent_span_id=fact["parent_span_id"]), long, digest
        if "shared_span_id" in fact:
            self.shared.add(span_id)
        elif "parent_span_id" not in fact:
            self.amended.add(span_id)

    def piece_fault(self, fact):
        """Pieces of a value come one after the other, and add up to what has its hash."""
        if fact["type"] != "span.payload" or "details" not in fact:
            return None
        piece = fact["details"].get("payload")
        if not is_piece(piece):
            piece = {"chunk": None, "sha256": None}
        chunk, hash_ = piece["chunk"], piece["sha256"]
        following, before, begun = (1, "", hash_) if chunk == 1 else self.value
        self.value = NO_VALUE
        if chunk is None or chunk != following or hash_ != begun:
            return "content_mismatch", "the next piece of a value", "another"
        whole = before + piece["text"]
        if chunk < piece["chunks"]:
            self.value = chunk + 1, whole, hash_
            return None
        own = sha256(whole)
        if own != hash_:
            return "content_mismatch", "a value of SHA-256 " + hash_, own
        self.values.append("sha256:" + hash_)
        return None

    def end_span(self, fact, details):
        core, long, digest = self.spans[fact["span_id"]]
        if digest is not None:
            return
        long = dict(long, metadata=dict(long["metadata"], **details.get("metadata", {})))
        long.update(picked(details, "error"))
        ended = dict(picked(fact, "erased_at"), **core)
        ended.update(picked(fact, "status", "ended_at"))
        self.spans[fact["span_id"]] = ended, None, sha256(canonical(long))

    def shown(self):
        """What executions.ndjson has to say; None if no fact started it."""
        if self.started is None:
            return None
        details = self.started.get("details", {})
        ended = self.ended or {}
        result = picked(
            self.started, ("execution_id", "id"), "agent_id", "root_span_id", "started_at"
        )
        result["agent_name"] = details.get("agent_name", self.started["agent_id"])
        result["status"] = ended.get("status", "RUNNING")
        result["metadata"] = dict(
            details.get("metadata", {}), **ended.get("details", {}).get("metadata", {})
        )
        result["created_at"] = self.created_at
        result.update(picked(details, "trigger"))
        result.update(picked(ended, "ended_at"))
        if self.erased_at is not None:
            result["erased_at"] = self.erased_at
        return result

    def shown_span(self, span_id):
        """The short members that spans.ndjson has to say, and a SHA-256 of the long ones."""
        if span_id not in self.spans:
            return self.shown_root(span_id)
        core, long, digest = self.spans[span_id]
        repairs = core.get("repairs", [])
        repairs = repairs + ([OTHER_CONTENT] if span_id in self.amended else [])
        repairs = repairs + ([SHARED_ID] if span_id in self.shared else [])
        if repairs:
            core = dict(core, repairs=repairs)
        root_id = self.started and self.started["root_span_id"]
        if "parent_span_id" not in core and root_id not in (None, span_id):
            core = dict(core, parent_span_id=root_id)
        if "status" not in core:
            core = dict(core, status="RUNNING")
            if self.ended is not None:
                core["status"] = self.ended["status"]
                core["ended_at"] = max(self.ended["ended_at"], core["started_at"])
        return core, digest or sha256(canonical(long))

    def has_root(self):
        """A root of spans whose real root has not arrived: no fact of its own says it."""
        started = self.started
        is_provisional = started is not None and started.get("provisional") is True
        return is_provisional and started["root_span_id"] not in self.spans

    def shown_root(self, span_id):
        if not self.has_root() or self.started["root_span_id"] != span_id:
            return None
        execution = self.shown()
        core = picked(execution, "status", "started_at", "ended_at")
        core.update(
            id=span_id, execution_id=execution["id"], caused_by_span_ids=[], span_type="AGENT",
            synthetic=True,
        )  # fmt: skip
        return core, sha256(canonical({"metadata": {}, "name": execution["agent_name"]}))

    def span_count(self):
        return len(self.spans) + (1 if self.has_root() else 0)


# The Merkle tree of RFC 9162


def node_hash(left, right):
    return hashlib.sha256(b"\x01" + left + right).digest()


def leaf_hash(event_hash):
    return hashlib.sha256(b"\x00" + bytes.fromhex(event_hash)).digest()


class Tree:
    """Grows leaf by leaf: complete subtrees from left to right, largest first."""

    def __init__(self):
        self.size = 0
        self.peaks = []

    def push(self, level, node):
        """A complete subtree of 2^level leaves, at the right edge."""
        self.size += 1 << level
        while self.peaks and self.peaks[-1][0] == level:
            node = node_hash(self.peaks.pop()[1], node)
            level += 1
        self.peaks.append((level, node))

    def root(self):
        if not self.peaks:
            return hashlib.sha256(b"").hexdigest()
        root = self.peaks[-1][1]
        for _, node in reversed(self.peaks[:-1]):
            root = node_hash(node, root)
        return root.hex()

    def copy(self):
        copy = Tree()
        copy.size, copy.peaks = self.size, list(self.peaks)
        return copy


def subtree_levels(start, end):
    """Levels of the complete subtrees that the leaves from `start` to `end` consist of."""
    levels = []
    while start < end:
        level = 0
        while start % (2 << level) == 0 and start + (2 << level) <= end:
            level += 1
        levels.append(level)
        start += 1 << level
    return levels


def is_included(event_hash, sequence, size, root, proof):
    """RFC 9162, section 2.1.3.2."""
    node, last = sequence - 1, size - 1
    if node > last:
        return False
    result = leaf_hash(event_hash)
    for sibling in proof:
        if last == 0:
            return False
        if node % 2 == 1 or node == last:
            result = node_hash(sibling, result)
            while node % 2 == 0 and node != 0:
                node, last = node >> 1, last >> 1
        else:
            result = node_hash(result, sibling)
        node, last = node >> 1, last >> 1
    return last == 0 and result.hex() == root


# Ed25519 (RFC 8032, section 5.1), verification only

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
SQRT_MINUS_1 = pow(2, (P - 1) // 4, P)


def point_add(p, q):
    a = (p[1] - p[0]) * (q[1] - q[0]) % P
    b = (p[1] + p[0]) * (q[1] + q[0]) % P
    c = 2 * p[3] * q[3] * D % P
    d = 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def point_multiply(scalar, point):
    result = (0, 1, 1, 0)
    while scalar > 0:
        if scalar & 1:
            result = point_add(result, point)
        point = point_add(point, point)
        scalar >>= 1
    return result


def point_of(data):
    """The point that 32 bytes encode, or None."""
    y = int.from_bytes(data, "little")
    sign = y >> 255
    y &= (1 << 255) - 1
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P != 0:
        x = x * SQRT_MINUS_1 % P
    if (x * x - square) % P != 0 or (x == 0 and sign == 1):
        return None
    if x & 1 != sign:
        x = P - x
    return x, y, 1, x * y % P


BASE_POINT = point_of(bytes([0x58] + [0x66] * 31))


def verify_ed25519(public_key, message, signature):
    if len(public_key) != 32 or len(signature) != 64:
        return False
    key, nonce = point_of(public_key), point_of(signature[:32])
    scalar = int.from_bytes(signature[32:], "little")
    if key is None or nonce is None or scalar >= L:
        return False
    digest = hashlib.sha512(signature[:32] + public_key + message).digest()
    challenge = int.from_bytes(digest, "little") % L
    left = point_multiply(scalar, BASE_POINT)
    right = point_add(nonce, point_multiply(challenge, key))
    return (
        (left[0] * right[2] - right[0] * left[2]) % P == 0
        and (left[1] * right[2] - right[1] * left[2]) % P == 0
    )


# Signed notes (C2SP) and keys

VKEY = re.compile("([^\x00-\x20+]+)\\+([0-9a-f]{8})\\+([A-Za-z0-9+/=]+)")
SPKI_PREFIX = bytes.fromhex("302a300506032b6570032100")


def key_id(name, raw):
    return sha256(name.encode("utf-8") + b"\n\x01" + raw)[:8]


def key_of_vkey(text):
    """{name, id, raw, vkey} of a C2SP verification key; None if it is none."""
    match = VKEY.fullmatch(text)
    typed = bytes_of_base64(match.group(3)) if match else None
    if typed is None or len(typed) != 33 or typed[0] != 1:
        return None
    name, raw = match.group(1), typed[1:]
    if key_id(name, raw) != match.group(2):
        return None
    return {"name": name, "id": match.group(2), "raw": raw, "vkey": text}


def named_key(key, service):
    """The key as a service of this name has it."""
    if key["name"] is not None:
        return key
    # No note is signed by a name that C2SP does not allow.
    name = service if re.fullmatch("[^\x00-\x20+\ud800-\udfff]+", service) else "?"
    known = key_id(name, key["raw"])
    typed = base64.b64encode(b"\x01" + key["raw"]).decode("ascii")
    return dict(key, name=name, id=known, vkey="%s+%s+%s" % (name, known, typed))


def raw_of_jwk(x):
    """The bytes of `x` of a JWK for Ed25519; None if it is none."""
    if not isinstance(x, str) or not re.fullmatch("[A-Za-z0-9_-]{43}", x):
        return None
    return bytes_of_base64(x.replace("-", "+").replace("_", "/") + "=")


def keys_of_text(text):
    """
    The keys in a text: those of bare_keys_of_text, each with what alk-keys.json says of it:
    `endorsement` the statement of the key before it, `retired_at` when it was replaced. An
    unendorsed one counts for nothing.
    """
    keys = bare_keys_of_text(text)
    document = json_of(text) if keys and text.lstrip(" \t\r\n").startswith("{") else None
    if not isinstance(document, dict) or not isinstance(document.get("keys"), list):
        return keys
    said = {}
    for jwk in document["keys"]:
        raw = raw_of_jwk(jwk.get("x")) if isinstance(jwk, dict) else None
        if raw is not None:
            said.setdefault(raw, jwk)
    found = []
    for key in keys:
        jwk = said.get(key["raw"], {})
        if jwk.get("trusted") == "unendorsed":
            continue
        key = dict(key)
        if isinstance(jwk.get("endorsement"), str):
            key["endorsement"] = jwk["endorsement"]
        if is_time(jwk.get("retired_at")):
            key["retired_at"] = jwk["retired_at"]
        found.append(key)
    return found


def bare_keys_of_text(text):
    """
    The keys in a text, at most KEYS_MAX, each once: C2SP keys, JWKs, a PEM, or 32 bytes in base64.
    Bare keys have no name.
    """
    if utf16_length(text) > NOTE_BYTES_MAX:
        return []
    words = dict.fromkeys(re.split('[ \t\r\n",]+', text))
    named = [key for key in map(key_of_vkey, words) if key is not None][:KEYS_MAX]
    if named:
        return named
    raws = []
    trimmed = text.lstrip(" \t\r\n")
    if trimmed.startswith("{"):
        pattern = '"x"[ \t\r\n]*:[ \t\r\n]*"([A-Za-z0-9_-]{43})"'
        for x in re.findall(pattern, trimmed):
            raws.append(bytes_of_base64(x.replace("-", "+").replace("_", "/") + "="))
    else:
        body = bytes_of_base64(re.sub("[ \t\r\n]+", "", re.sub("-----[^-]+-----", "", trimmed)))
        if body is not None and len(body) == 32:
            raws.append(body)
        if body is not None and len(body) == 44 and body.startswith(SPKI_PREFIX):
            raws.append(body[12:])
    return [{"name": None, "raw": raw} for raw in raws if raw is not None][:KEYS_MAX]


def utf16_length(text):
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


NOTE_SIGNATURE = re.compile("\u2014 ([^\x00-\x20+]+) ([A-Za-z0-9+/=]+)")
NOTE_SIZE = re.compile(r"0|[1-9][0-9]{0,15}")


def split_note(note):
    """The text and the signatures of a signed note as a dict; None if it is none."""
    at = note.rfind("\n\n")
    if at < 0 or not note.endswith("\n") or utf16_length(note) > NOTE_BYTES_MAX:
        return None
    text = note[: at + 1]
    signatures = []
    for line in note[at + 2 : -1].split("\n"):
        match = NOTE_SIGNATURE.fullmatch(line)
        data = bytes_of_base64(match.group(2)) if match else None
        if data is None or len(data) <= 4 or len(signatures) == SIGNATURES_MAX:
            return None
        signatures.append((match.group(1), data[:4].hex(), data[4:]))
    return {"text": text, "signatures": signatures}


def note_of(note):
    """A signed checkpoint as a dict; None if it is none."""
    split = split_note(note)
    if split is None:
        return None
    lines = split["text"][:-1].split("\n")
    if len(lines) < 3 or not lines[0] or not NOTE_SIZE.fullmatch(lines[1]):
        return None
    root = bytes_of_base64(lines[2])
    if root is None or len(root) != 32 or int(lines[1]) > SEQUENCE_MAX:
        return None
    return dict(
        split, origin=lines[0], size=int(lines[1]), root=root.hex(), extensions=lines[3:]
    )


def note_text_of(text):
    """The note in a text: the text itself, or the member of a checkpoint as the API answers it."""
    record = json_of(text) if text.lstrip(" \t\r\n").startswith("{") else None
    is_record = isinstance(record, dict) and isinstance(record.get("note"), str)
    return record["note"] if is_record else text


def signature_state(note, keys):
    """
    "signed", "unknown_key" or "bad_signature", and the vkeys whose signatures verify.
    """
    signers = []
    for name, signer_id, data in note["signatures"]:
        for key in keys:
            if (key["name"], key["id"]) != (name, signer_id):
                continue
            if not verify_ed25519(key["raw"], note["text"].encode("utf-8"), data):
                return "bad_signature", []
            signers.append(key["vkey"])
    return "signed" if signers else "unknown_key", signers


# The line of signing keys (alk-key-line-v1): which key may sign which size of a tree

ENDORSEMENT_FORMAT = "alk-key-endorsement-v1"
NEXT_KEY = "alk-next-key "
TIME = re.compile(
    "([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})\\.[0-9]{6}Z"
)
NOT_IN_NOTES = re.compile("[\x00-\x09\x0b-\x1f\ud800-\udfff]")


def days_of(year, month):
    if month != 2:
        return 30 if month in (4, 6, 9, 11) else 31
    return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28


def is_time(value):
    """True if this is a time in the form that the service writes."""
    match = TIME.fullmatch(value) if isinstance(value, str) else None
    if match is None or not HISTORY_FROM <= value <= HISTORY_TO:
        return False
    year, month, day, hour, minute, second = map(int, match.groups())
    return (
        1 <= month <= 12
        and 1 <= day <= days_of(year, month)
        and hour < 24
        and minute < 60
        and second < 60
    )


def statement_of(note):
    """What the statement of a key says of the next one, unchecked; None if it is none."""
    split = None if NOT_IN_NOTES.search(note) else split_note(note)
    lines = split["text"][:-1].split("\n") if split else []
    if len(lines) != 5 or lines[0] != ENDORSEMENT_FORMAT or not is_time(lines[4]):
        return None
    return dict(split, name=lines[1], id=lines[2], next=lines[3], time=lines[4])


def is_trusted(standing):
    return standing["trusted"] != "unendorsed"


def is_replaced(standing):
    return standing["retired_at"] is not None


def key_line(keys, pinned, believes_roots):
    """
    The standing of each key, in the order given, pinned keys that are not listed last: `trusted`
    is "root", "listed" (pinned), "endorsed" or "unendorsed"; `endorsed_by` the id of the key before
    it; `next` the key that it endorsed, and `retired_at` when. A key endorses one successor: the
    first in this order. Keys may have `root` and `endorsement`.
    """
    standings = {}
    pinned_vkeys = {key["vkey"] for key in pinned}
    for key in [*keys, *pinned]:
        if key["vkey"] in standings:
            continue
        trusted = "listed" if key["vkey"] in pinned_vkeys else "unendorsed"
        if key.get("root") and believes_roots:
            trusted = "root"
        note = key.get("endorsement")
        standings[key["vkey"]] = {
            "key": key,
            "vkey": key["vkey"],
            "statement": None if note is None else statement_of(note),
            "trusted": trusted,
            "endorsed_by": None,
            "next": None,
            "retired_at": None,
        }
    line = list(standings.values())
    waiting = [standing for standing in line if is_trusted(standing)]
    while waiting:
        own = waiting.pop(0)
        successor = successor_of(line, own)
        if successor is None:
            continue
        own["next"] = successor["key"]
        own["retired_at"] = successor["statement"]["time"]
        successor["endorsed_by"] = own["key"]["id"]
        if not is_trusted(successor):
            successor["trusted"] = "endorsed"
            waiting.append(successor)
    return line


def successor_of(line, own):
    """The first key, not endorsed by another one already, whose endorsement this key has signed."""
    key = own["key"]
    for successor in line:
        statement = successor["statement"]
        if statement is None or successor["endorsed_by"] is not None or successor is own:
            continue
        said = (statement["name"], statement["id"], statement["next"])
        if said != (key["name"], key["id"], successor["vkey"]):
            continue
        if signature_state(statement, [key])[0] == "signed":
            return successor
    return None


def next_key_of(note):
    """The key that a checkpoint names as the next one; None if it hands nothing over."""
    for extension in note["extensions"]:
        if extension.startswith(NEXT_KEY):
            return extension[len(NEXT_KEY) :]
    return None


def hand_over_of(standing, origin, hand_overs):
    """The smallest of the notes with which a key handed over to the next one; None if it has not."""
    if standing["next"] is None:
        return None
    own = [
        note
        for note in hand_overs
        if standing["vkey"] in note["signers"]
        and note["origin"] == origin
        and next_key_of(note) == standing["next"]["vkey"]
    ]
    return min(own, key=lambda note: note["size"]) if own else None


def is_still_signing(line, vkey, signer):
    """True if the key that signs the tree now is this one, or one before it in the line."""
    nexts = {one["vkey"]: one["next"]["vkey"] for one in line if one["next"] is not None}
    seen = set()
    at = signer
    while at is not None and at != vkey and at not in seen:
        seen.add(at)
        at = nexts.get(at)
    return at == vkey


def signature_refusal(line, origin, hand_overs, signer, vkey, size, root):
    """
    Why this key may not have signed a tree of this size and root; None if it may. `signer`: the
    vkey that signs the tree now.
    """
    standing = next((one for one in line if one["vkey"] == vkey), None)
    if standing is None:
        return "its key is not published"
    known = standing["key"]["id"]
    if not is_trusted(standing):
        return (
            "its key %s is not endorsed by the key before it and not listed as trusted" % known
        )
    if standing["next"] is None:
        return None
    following = standing["next"]["id"]
    replaced = "its key %s was replaced by %s at %s" % (known, following, standing["retired_at"])
    last = hand_over_of(standing, origin, hand_overs)
    if last is None:
        if is_still_signing(line, vkey, signer):
            return None
        return replaced + " and never signed this tree"
    if size > last["size"]:
        return "%s, when the tree had %d leaves, not %d" % (replaced, last["size"], size)
    if size == last["size"] and root != last["root"]:
        return "its key %s handed over another tree of %d leaves to %s" % (known, size, following)
    return None


# Files


class Folder:
    """The files of a pack in a folder; what lies elsewhere below it is not looked at."""

    kind = "folder"

    def __init__(self, path):
        self.path = path
        self.names = []
        for inner in ["", "checkpoints", "keys", "schema"]:
            folder = os.path.join(path, inner)
            if not os.path.isdir(folder):
                continue
            for entry in os.scandir(folder):
                if entry.is_file(follow_symlinks=False):
                    self.names.append(inner + "/" + entry.name if inner else entry.name)
        if len(self.names) > FILES_MAX:
            raise Unreadable("it holds more files than any pack")

    def open(self, name):
        with open(os.path.join(self.path, *name.split("/")), "rb") as file:
            while True:
                chunk = file.read(CHUNK_BYTES)
                if not chunk:
                    return
                yield chunk


# A ZIP is read only if it has one reading; verify.mjs says at the same place what that means, and
# why everything else is "unreadable".

LOCAL, LOCAL_BYTES = 0x04034B50, 30
DESCRIPTOR = 0x08074B50
CENTRAL, CENTRAL_BYTES = 0x02014B50, 46
END, END_BYTES = 0x06054B50, 22
WIDE_END, WIDE_END_BYTES = 0x06064B50, 56
LOCATOR, LOCATOR_BYTES = 0x07064B50, 20
# In place of a number that the ZIP64 field or record holds in 8 bytes.
WIDE_16, WIDE_32 = 0xFFFF, 0xFFFFFFFF
ZIP64_FIELD = 1
# Another name of the file, for programs that know this field.
NAME_FIELD = 0x7075
STORED, DEFLATED = 0, 8
DESCRIPTOR_FLAG = 8
# Besides it: how hard it was compressed (1, 2), and that the name is UTF-8 (11).
KNOWN_FLAGS = 0x080E
# Kinds of files as Unix writes them into the attributes.
KIND_MASK, PLAIN_FILE, PLAIN_FOLDER = 0o170000, 0o100000, 0o040000


def ambiguous(what):
    return Unreadable("the ZIP has no single reading: " + what)


def wide_field(extra, name):
    """The ZIP64 field of an extra field, or None."""
    wide, at = None, 0
    while at < len(extra):
        end = at + 4
        if end <= len(extra):
            field, length = struct.unpack_from("<HH", extra, at)
            end += length
        if end > len(extra):
            raise ambiguous("an extra field of %s is cut off" % name)
        if field == NAME_FIELD or (field == ZIP64_FIELD and wide is not None):
            raise ambiguous("an extra field of %s contradicts its header" % name)
        if field == ZIP64_FIELD:
            wide = extra[at + 4 : end]
        at = end
    return wide


def widened(numbers, wide, name):
    """The numbers with those in their place that did not fit into 4 bytes, in this order."""
    places = [at for at, number in enumerate(numbers) if number == WIDE_32]
    if len(wide or b"") != 8 * len(places):
        raise ambiguous("the ZIP64 field of %s does not fit its header" % name)
    result = list(numbers)
    for index, place in enumerate(places):
        result[place] = struct.unpack_from("<Q", wide, 8 * index)[0]
    return result


class Entry:
    """An entry as the directory of a ZIP has it; `start` is where its data begins."""

    def __init__(self, directory, at):
        if at + CENTRAL_BYTES > len(directory):
            raise ambiguous("its directory is damaged")
        (
            signature, _, self.flags, self.method, _, self.crc, packed, size, name_bytes,
            extra_bytes, comment_bytes, disk, _, attributes, offset,
        ) = struct.unpack_from("<IIHHIIIIHHHHHII", directory, at)  # fmt: skip
        if signature != CENTRAL:
            raise ambiguous("its directory is damaged")
        name_end = at + CENTRAL_BYTES + name_bytes
        self.next = name_end + extra_bytes
        if self.next > len(directory) or comment_bytes != 0 or disk != 0:
            raise ambiguous("its directory is damaged, or holds a comment or a part")
        self.raw_name = directory[at + CENTRAL_BYTES : name_end]
        self.name = self.raw_name.decode("latin-1")
        self.is_folder = self.name.endswith("/")
        if not is_safe_name(self.name[:-1] if self.is_folder else self.name):
            raise ambiguous("%s is no safe name" % json.dumps(self.name))
        wide = wide_field(directory[name_end : self.next], self.name)
        self.size, self.packed, self.offset = widened((size, packed, offset), wide, self.name)
        self.check_kind(attributes >> 16 & KIND_MASK)
        self.start = None

    def check_kind(self, kind):
        if self.flags & ~KNOWN_FLAGS or self.method not in (STORED, DEFLATED):
            raise ambiguous("%s is encrypted, or compressed in an unknown way" % self.name)
        if kind not in (0, PLAIN_FOLDER if self.is_folder else PLAIN_FILE):
            raise ambiguous("%s is a link or a device" % self.name)
        is_empty = self.size == 0 and self.packed == 0
        if (self.is_folder and not is_empty) or (
            self.method == STORED and self.size != self.packed
        ):
            raise ambiguous("%s has two sizes" % self.name)

    def check_local(self, read, end):
        """The header before the entry, and what follows its data, against the directory."""
        differs = ambiguous("the two headers of %s differ" % self.name)
        if self.offset + LOCAL_BYTES > end:
            raise ambiguous("%s overlaps the next entry" % self.name)
        signature, _, flags, method, _, crc, packed, size, name_bytes, extra_bytes = struct.unpack(
            "<IHHHIIIIHH", read(self.offset, LOCAL_BYTES)
        )
        name_end = self.offset + LOCAL_BYTES + name_bytes
        self.start = name_end + extra_bytes
        rest = end - self.start - self.packed
        if signature != LOCAL or name_bytes != len(self.raw_name):
            raise differs
        if rest < 0:
            raise ambiguous("%s overlaps the next entry" % self.name)
        if read(self.offset + LOCAL_BYTES, name_bytes) != self.raw_name:
            raise differs
        if flags != self.flags or method != self.method:
            raise differs
        wide = wide_field(read(name_end, extra_bytes), self.name)
        numbers = [crc] + widened((size, packed), wide, self.name)
        is_streamed = flags & DESCRIPTOR_FLAG != 0
        for number, wanted in zip(numbers, (self.crc, self.size, self.packed)):
            if number != wanted and not (is_streamed and number == 0):
                raise differs
        if not is_streamed:
            if rest != 0:
                raise ambiguous("there are bytes after %s" % self.name)
            return
        if rest not in (16, 24):
            raise ambiguous("there are other bytes after %s" % self.name)
        after = struct.unpack("<IIII" if rest == 16 else "<IIQQ", read(end - rest, rest))
        if after != (DESCRIPTOR, self.crc, self.packed, self.size):
            raise differs


class Zip:
    """The files of a pack in a ZIP."""

    kind = "zip"

    def __init__(self, path):
        try:
            self.file = open(path, "rb")
        except OSError as error:
            raise Unreadable("%s can't be opened" % path) from error
        try:
            entries = self.entries(os.fstat(self.file.fileno()).st_size)
        except Unreadable:
            self.file.close()
            raise
        self.by_name = {entry.name: entry for entry in entries if not entry.is_folder}
        self.names = list(self.by_name)

    def close(self):
        self.file.close()

    def read(self, start, length):
        self.file.seek(start)
        data = self.file.read(length)
        if len(data) != length:
            raise ambiguous("it is cut off")
        return data

    def directory(self, size):
        """Entries, bytes and start of the directory; it ends where the records of the end begin."""
        end_at = size - END_BYTES
        if end_at < 0:
            raise ambiguous("it has no end record")
        signature, disk, first_disk, own_count, count, length, start, comment = struct.unpack(
            "<IHHHHIIH", self.read(end_at, END_BYTES)
        )
        if signature != END or comment != 0:
            raise ambiguous("it does not end with an end record")
        if disk != 0 or first_disk != 0 or own_count != count:
            raise ambiguous("it has parts")
        said = (count, length, start)
        wide = self.wide_directory(end_at)
        found = wide or said
        for number, wanted, full in zip(said, found, (WIDE_16, WIDE_32, WIDE_32)):
            if number not in (wanted, full):
                raise ambiguous("its two end records differ")
        stop = end_at - LOCATOR_BYTES - WIDE_END_BYTES if wide else end_at
        if found[2] + found[1] != stop:
            raise ambiguous("its directory does not end where its end record begins")
        if found[0] > FILES_MAX or found[1] > SMALL_FILE_BYTES_MAX:
            raise Unreadable("it holds more files than any pack")
        return found

    def wide_directory(self, end_at):
        """The same out of the ZIP64 end record before the end record; None if there is none."""
        if end_at < LOCATOR_BYTES:
            return None
        locator = struct.unpack("<IIQI", self.read(end_at - LOCATOR_BYTES, LOCATOR_BYTES))
        if locator[0] != LOCATOR:
            return None
        start = end_at - LOCATOR_BYTES - WIDE_END_BYTES
        if start < 0 or locator != (LOCATOR, 0, start, 1):
            raise ambiguous("its ZIP64 end record is not before its end record")
        signature, length, _, disk, first_disk, own_count, count, size, place = struct.unpack(
            "<IQIIIQQQQ", self.read(start, WIDE_END_BYTES)
        )
        wanted = (WIDE_END, WIDE_END_BYTES - 12, 0, 0, count)
        if (signature, length, disk, first_disk, own_count) != wanted:
            raise ambiguous("its ZIP64 end record is damaged")
        return count, size, place

    def entries(self, size):
        count, length, start = self.directory(size)
        directory = self.read(start, length)
        entries = []
        known = set()
        at = 0
        while at < length:
            entry = Entry(directory, at)
            if entry.name.lower() in known:
                raise ambiguous("more than one entry is named %s" % entry.name)
            known.add(entry.name.lower())
            entries.append(entry)
            at = entry.next
        if len(entries) != count:
            raise ambiguous("its directory has another number of entries")
        placed = sorted(entries, key=lambda entry: entry.offset)
        if (placed[0].offset if placed else start) != 0:
            raise ambiguous("there are bytes before its first entry")
        ends = [entry.offset for entry in placed[1:]] + [start]
        for entry, end in zip(placed, ends):
            entry.check_local(self.read, end)
        return entries

    def packed_chunks(self, entry):
        at, end = entry.start, entry.start + entry.packed
        while at < end:
            data = self.read(at, min(CHUNK_BYTES, end - at))
            at += len(data)
            yield data

    def inflated_chunks(self, entry):
        inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        for data in self.packed_chunks(entry):
            while data:
                if inflater.eof:
                    raise ValueError("bytes follow its compressed data")
                yield inflater.decompress(data, CHUNK_BYTES)
                data = inflater.unconsumed_tail or inflater.unused_data
        while not inflater.eof:
            data = inflater.decompress(b"", CHUNK_BYTES)
            if not data and not inflater.eof:
                raise ValueError("unexpected end of file")
            yield data

    def open(self, name):
        entry = self.by_name[name]
        chunks = self.packed_chunks if entry.method == STORED else self.inflated_chunks
        crc = size = 0
        try:
            for chunk in chunks(entry):
                size += len(chunk)
                if size > entry.size:
                    break
                crc = zlib.crc32(chunk, crc)
                yield chunk
        except (zlib.error, OSError, ValueError) as error:
            raise Unreadable("%s in the ZIP can't be read: %s" % (name, error)) from error
        if size != entry.size or crc != entry.crc:
            raise Unreadable("%s in the ZIP is damaged: its checksum differs" % name)


def text_of_line(data):
    """The text of a line, or None for one that is too long or no UTF-8."""
    if len(data) > LINE_BYTES_MAX:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def lines_of(chunks):
    """The lines of a file as texts, None for one that is none."""
    # Of a line whose end has not come: joined once, or dropped as soon as it is too long.
    pieces, size = [], 0
    for chunk in chunks:
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            if size == 0:
                yield text_of_line(piece)
            elif size + len(piece) > LINE_BYTES_MAX:
                yield None
            else:
                yield text_of_line(b"".join(pieces) + piece)
            pieces, size = [], 0
        size += len(rest)
        if size <= LINE_BYTES_MAX:
            pieces.append(rest)
        else:
            pieces = []
    if size > 0:
        yield None if size > LINE_BYTES_MAX else text_of_line(b"".join(pieces))


def counted(count, noun):
    return "%d %s%s" % (count, noun, "" if count == 1 else "s")


def span(first, last):
    return "sequence %d" % first if first == last else "sequences %d to %d" % (first, last)


class PackChain:
    """
    One chain of a pack: its links, the Merkle tree that grows with them, and the checkpoints that
    were signed of it. `edges`, `links_file`: names of files; `noun`: what the chain is of.
    """

    def __init__(
        self, check, edges, links_file, note_name, hand_over_name, noun, origin, scheme, first
    ):
        self.check = check
        self.edges = edges
        self.links_file = links_file
        self.note_name = note_name
        self.hand_over_name = hand_over_name
        self.noun = noun
        self.origin = origin
        self.scheme = scheme
        self.expected_first = first
        # The sequences that the pack claims to hold, as far as its links and a tree can show it:
        # None where times decide it, `ends` SEQUENCE_MAX if nothing bounds its end.
        self.begins = None
        self.ends = None
        # Sequences outside of which it may hold none.
        self.least, self.most = 1, SEQUENCE_MAX
        # The events up to here were removed for good before the pack was made.
        self.removed = 0
        self.notes = []
        # Notes with which keys have handed the tree over.
        self.hand_overs = []
        # Size of the largest tree that agrees and that a key of now, or a kept checkpoint, shows.
        self.shown = 0
        # Roots by size that the links make, and those of them that a key has signed.
        self.roots = {}
        self.agreed = {}
        self.tree_holds = True
        self.links = 0
        self.first = None
        self.last = None
        self.on_link = None
        self.tree = Tree()
        self.right = {"start": 0, "end": 0, "hashes": []}

    def read_tree(self):
        tree = json_of(self.check.text(self.edges))
        if not isinstance(tree, dict):
            return self.bad_tree("JSON")
        left, right = tree.get("left"), tree.get("right")

        def are_hashes(value):
            return isinstance(value, list) and all(is_hash(item) for item in value)

        is_whole = (
            isinstance(left, dict)
            and isinstance(right, dict)
            and are_hashes(left.get("hashes"))
            and are_hashes(right.get("hashes"))
            and is_size(left.get("size"))
            and is_size(right.get("start"))
            and is_size(right.get("end"))
        )
        if not is_whole:
            return self.bad_tree("left and right edges")
        levels = subtree_levels(0, left["size"])
        is_fitting = (
            len(levels) == len(left["hashes"])
            and right["start"] <= right["end"]
            and len(subtree_levels(right["start"], right["end"])) == len(right["hashes"])
        )
        if not is_fitting:
            return self.bad_tree("edges of their size")
        for level, node in zip(levels, left["hashes"]):
            self.tree.push(level, bytes.fromhex(node))
        self.right = right

    def bad_tree(self, expected):
        self.tree_holds = False
        if self.check.has(self.edges):
            self.check.problem(self.edges, None, "content_mismatch", expected, "something else")

    def read_notes(self):
        names = self.check.source.names
        for name in sorted(filter(self.note_name.fullmatch, names)):
            self.read_note(name, int(self.note_name.fullmatch(name).group(1)))
        for name in sorted(filter(self.hand_over_name.fullmatch, names)):
            self.read_note(name, None)

    def read_note(self, name, wanted):
        """`wanted`: the size that the name of the file says; None for a tree handed over."""
        check, noun = self.check, self.noun
        text = check.text(name)
        note = note_of(text) if text is not None else None
        size = wanted
        if wanted is None and note is not None:
            size = note["size"]

        def bad(expected, actual):
            check.problem(name, size, "checkpoint_mismatch", expected, actual)

        if note is None or note["size"] != size or note["origin"] != self.origin:
            actual = "something else"
            if note is not None:
                actual = "one of %s for %d %ss" % (note["origin"], note["size"], noun)
            of_size = "" if wanted is None else " for %d %ss" % (wanted, noun)
            return bad("a checkpoint of %s%s" % (self.origin, of_size), actual)
        if wanted is None and next_key_of(note) is None:
            return bad("a checkpoint that names the next key", "one that names none")
        self.admit(note, name, bad, is_hand_over=wanted is None)

    def admit(self, note, file, bad, is_hand_over=False):
        """Adds a note of the pack if its signature verifies, and says whether it did."""
        state, signers = signature_state(note, self.check.keys)
        if state == "bad_signature":
            bad("a signature that verifies", "one that does not")
        elif state == "unknown_key" and not self.check.pinned:
            bad("a signature by a key of " + KEYS, "another key's")
        else:
            self.add(note, file, state, signers, is_hand_over)
            return True
        return False

    def read_removed(self, pruned):
        """The point up to which the beginning of the claimed sequences was removed, if it was."""
        size = pruned.get("up_to_sequence") if isinstance(pruned, dict) else None
        if self.begins is None or not is_sequence(size) or size < self.begins:
            return
        said = pruned.get("checkpoint")
        is_text = isinstance(said, str) and not NOT_IN_NOTES.search(said)
        note = note_of(said) if is_text else None

        def bad(expected, actual):
            self.check.problem(VERIFICATION, size, "checkpoint_mismatch", expected, actual)

        said = note and (note["origin"], note["size"], note["root"])
        if said != (self.origin, size, pruned.get("root_hash")):
            bad("a checkpoint of %s for %d %ss" % (self.origin, size, self.noun), "something else")
        elif self.admit(note, VERIFICATION, bad):
            self.removed = size
            self.begins = size + 1

    def add(self, note, file, state, signers, is_hand_over=False, is_kept=False):
        whole = dict(
            note,
            file=file,
            state=state,
            signers=signers,
            is_hand_over=is_hand_over,
            is_kept=is_kept,
        )
        self.notes.append(whole)
        if next_key_of(note) is not None:
            self.hand_overs.append(whole)

    def refusal_of(self, note):
        """Why none of its keys may have signed a note; None if one may, or none is known."""
        check, refusal = self.check, None
        for vkey in note["signers"] if note["state"] == "signed" else []:
            found = signature_refusal(
                check.line, self.origin, self.hand_overs, check.tree_signer, vkey, note["size"],
                note["root"],
            )  # fmt: skip
            if found is None:
                return None
            refusal = refusal or found
        return refusal

    def judge_notes(self):
        """Leaves out what its key may not have signed."""
        believed = []
        for note in self.notes:
            refusal = self.refusal_of(note)
            if refusal is None:
                believed.append(note)
                continue
            self.check.problem(
                note["file"], note["size"], "checkpoint_mismatch",
                "a signature by a key that may sign it", refusal,
            )  # fmt: skip
        self.notes = believed

    def handed_over(self, standing):
        """Leaves of the tree that this key handed over to the next one; None if it has not."""
        last = hand_over_of(standing, self.origin, self.hand_overs)
        return None if last is None else last["size"]

    def checked_links(self):
        """The links one by one, each held against the one before it."""
        check, file = self.check, self.links_file
        self.notes.sort(key=lambda note: note["size"])
        wanted_sizes = {note["size"] for note in self.notes}
        first = self.expected_first
        expected = first if is_sequence(first) else self.tree.size + 1
        if expected != self.tree.size + 1 and self.tree_holds:
            self.bad_tree("the tree of %d %ss on the left" % (expected - 1, self.noun))
        previous = None
        for line in check.lines(file):
            self.links += 1
            link = json_of(line)
            if not is_link(link) or not is_link_text(link, line):
                wanted = "the link of " + ("an event" if self.noun == "event" else "a fact")
                check.problem(file, expected, "content_mismatch", wanted, "something else")
                self.tree_holds = False
                previous = None
                expected += 1
                continue
            sequence = link["sequence_number"]
            if sequence > expected:
                check.problem(file, expected, "sequence_gap", span(expected, sequence - 1), "none")
                self.tree_holds = False
            elif sequence < expected:
                reason = "duplicate_sequence" if sequence == expected - 1 else "out_of_order"
                check.problem(
                    file, sequence, reason, "sequence %d" % expected, "sequence %d" % sequence
                )
                self.tree_holds = False
                continue
            before = None
            if sequence == 1:
                before = GENESIS_HASH
            elif previous is not None and previous["sequence_number"] == sequence - 1:
                before = previous["hash"]
            own_hash = link_hash(self.scheme, check.tenant, link, link["content_hash"])
            if before is not None and link["prev_hash"] != before:
                check.problem(file, sequence, "prev_hash_mismatch", before, link["prev_hash"])
            elif link["hash"] != own_hash:
                check.problem(file, sequence, "hash_mismatch", own_hash, link["hash"])
            self.grow(link, wanted_sizes)
            previous = link
            expected = sequence + 1
            yield link

    def check_span(self):
        """The links against the sequences that the bounds name, where they were not cut off."""
        if self.first is None:
            return
        check, file, begins = self.check, self.links_file, self.begins
        said = self.expected_first
        start = said if is_sequence(said) else self.first["sequence_number"]
        if begins is not None and start > begins:
            check.problem(file, begins, "sequence_gap", span(begins, start - 1), "none")
        for link, is_within in (
            (self.first, self.first["sequence_number"] >= self.least),
            (self.last, self.last["sequence_number"] <= self.most),
        ):
            if not is_within:
                sequence = link["sequence_number"]
                check.problem(
                    file, sequence, "content_mismatch", "a sequence within the bounds",
                    "sequence %d" % sequence,
                )  # fmt: skip

    def missing_to(self, size):
        """First and last of what the pack claims to hold of a tree and ends before, or None."""
        start = self.last["sequence_number"] + 1 if self.last else self.begins
        if start is None or self.ends is None or min(self.ends, size) < start:
            return None
        return start, min(self.ends, size)

    def grow(self, link, wanted_sizes):
        self.last = link
        if self.first is None:
            self.first = link
        if self.on_link is not None:
            self.on_link(link)
        if not self.tree_holds:
            return
        # The tree after what is on the left, before the first link, may be asked for too.
        if self.tree.size in wanted_sizes:
            self.roots[self.tree.size] = self.tree.root()
        self.tree.push(0, leaf_hash(link["hash"]))
        if self.tree.size in wanted_sizes:
            self.roots[self.tree.size] = self.tree.root()

    def check_notes(self):
        """The roots that were signed against the tree of the links."""
        check, noun = self.check, self.noun
        last = self.last["sequence_number"] if self.last else 0
        matched = self.first["sequence_number"] - 1 if self.first else 0
        covered = 0
        agreeing = []
        for note in self.notes:
            size = note["size"]
            own = self.root_at(size, last)
            missing = self.missing_to(size) if self.tree_holds else None
            if missing is not None:
                expected = span(*missing) + ", as the checkpoint says"
                check.problem(note["file"], missing[0], "tail_missing", expected, "none")
            elif note["is_kept"] and self.tree_holds and 0 < last < size:
                check.open.append(
                    "The checkpoint %s: it covers %s, the pack ends at %d."
                    % (note["file"], counted(size, noun), last)
                )
            if own is None:
                if missing is None:
                    self.unreached(note, last)
            elif own != note["root"]:
                check.problem(
                    note["file"],
                    size,
                    "checkpoint_mismatch",
                    "root %s over %d %ss" % (note["root"], size, noun),
                    "root %s: not all of the %ss %d to %d are those that were signed"
                    % (own, noun, matched + 1, min(size, last)),
                )
            else:
                matched = max(matched, min(size, last))
                agreeing.append(size)
                if note["state"] == "signed":
                    self.agreed[size] = own
                if note["state"] == "signed" or note["is_kept"]:
                    covered = max(covered, size)
                if check.is_shown_by(note):
                    self.shown = max(self.shown, size)
                if note["state"] == "unknown_key":
                    check.open.append(
                        "The signature of %s: by a key that was not given." % note["file"]
                    )
        if agreeing:
            check.checked.append(
                "The Merkle root over %s equals %s (%s)."
                % (
                    self.links_file,
                    counted(len(agreeing), "signed checkpoint"),
                    ", ".join(counted(size, noun) for size in agreeing[-5:]),
                )
            )
        if last > covered and self.tree_holds:
            start = max(covered + 1, self.first["sequence_number"])
            check.open.append(
                "Nothing signed covers %s of %s: it could have been rewritten."
                % (span(start, last), self.links_file)
            )
        if not self.tree_holds:
            check.open.append(
                "The checkpoints of %s: its links do not make a tree that could be compared."
                % self.links_file
            )

    def root_at(self, size, last):
        if not self.tree_holds:
            return None
        if size in self.roots:
            return self.roots[size]
        right = self.right
        if size != right["end"] or right["start"] != last or self.tree.size != last or size <= last:
            return None
        tree = self.tree.copy()
        for level, node in zip(subtree_levels(last, size), right["hashes"]):
            tree.push(level, bytes.fromhex(node))
        return tree.root()

    def unreached(self, note, last):
        # A tree that was handed over outside of the links only bounds what its key may sign.
        if not self.tree_holds or note["is_hand_over"]:
            return
        check, file, size = self.check, note["file"], note["size"]
        if self.first is None or size < self.first["sequence_number"] - 1:
            check.open.append(
                "The checkpoint %s: it covers %s, none of them in this pack."
                % (file, counted(size, self.noun))
            )
        elif not note["is_kept"]:
            expected = span(last + 1, size) + ", as the checkpoint says"
            check.problem(file, last + 1, "tail_missing", expected, "none")


def is_link_text(link, line):
    try:
        return "{" + members_text(link, LINK_MEMBERS, plain_text) + "}" == line
    except NotJson:
        return False


def notices_of(report, records):
    """What the service says of a chain that is no break of it, as sentences of a report."""
    said = report.get("notices") if isinstance(report, dict) else None
    notices = said if isinstance(said, list) else [] if said is None else [said]
    more = len(notices) - NOTICES_MAX
    return [
        "%s says of the %s: %s." % (VERIFICATION, records, cut(shown(notice)))
        for notice in notices[:NOTICES_MAX]
    ] + (["%s says %d more of the %s." % (VERIFICATION, more, records)] if more > 0 else [])


def cut(text):
    return text if len(text) <= NOTICE_LENGTH_MAX else text[:NOTICE_LENGTH_MAX] + "\u2026"


class PackCheck:
    """One check of one pack, from its files to the verdict."""

    def __init__(self, source, pinned, kept):
        self.source = source
        self.pinned = pinned
        self.kept = kept
        self.problems = []
        self.total = 0
        self.checked = []
        self.open = []
        self.notices = []
        self.hashes = {}
        self.erasures = {}
        self.outside = {}
        # Size of the largest tree that proves an erasure.
        self.proving = 0
        # vkeys that signed the manifest, and those that signed a checkpoint from elsewhere.
        self.manifest_signers = []
        self.kept_signers = set()
        # The line of keys, and the line that starts with what is known from elsewhere.
        self.line = []
        self.origin_line = []
        self.tree_signer = None
        self.erased_seen = 0
        self.events = 0
        self.facts = 0
        self.executions = {}
        # Values that metadata of events refers to.
        self.references = set()
        self.log = None
        self.traces = None
        self.described = None
        # What verification.json says.
        self.said = None
        self.tenant = None
        self.strangers = []

    # Words

    def problem(self, file, sequence, reason, expected, actual):
        self.total += 1
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(
                {
                    "file": file,
                    "sequence_number": sequence,
                    "reason": reason,
                    "expected": expected,
                    "actual": actual,
                }
            )

    # Reading

    def has(self, name):
        return name in self.source.names

    def reading(self, name):
        """A file as chunks; its hash is known when it has been read."""
        hasher = hashlib.sha256()
        for chunk in self.source.open(name):
            hasher.update(chunk)
            yield chunk
        self.hashes[name] = hasher.hexdigest()

    def text(self, name):
        if not self.has(name):
            return None
        data = bytearray()
        for chunk in self.reading(name):
            data += chunk
            if len(data) > SMALL_FILE_BYTES_MAX:
                raise Unreadable("a file is larger than any of a pack is")
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            return None

    def lines(self, name):
        return lines_of(self.reading(name)) if self.has(name) else iter(())

    # The course of the check

    def run(self):
        missing = [name for name in REQUIRED if not self.has(name)]
        if len(missing) >= len(REQUIRED) - 1:
            raise Unreadable("this is no evidence pack")
        for name in missing:
            self.problem(name, None, "file_missing", "the file " + name, "none")
        is_readable = self.manifest()
        if is_readable:
            for chain in (self.log, self.traces):
                chain.read_tree()
                chain.read_notes()
            self.said = json_of(self.text(VERIFICATION))
            if isinstance(self.said, dict):
                self.log.read_removed(self.said.get("pruned"))
            self.read_kept()
            self.read_origin()
            self.log.judge_notes()
            self.traces.judge_notes()
            self.read_erasures()
            self.join_events()
            self.log.check_span()
            self.report()
            self.log.check_notes()
            self.read_proofs()
            self.join_facts()
            self.traces.check_span()
            self.check_executions()
            self.check_spans()
            self.check_trace_counts()
            self.traces.check_notes()
        self.files()
        if is_readable:
            self.limits()
        return self.result()

    def manifest(self):
        """Manifest and signature; False if nothing can be held against it."""
        manifest = json_of(self.text(MANIFEST))
        if not isinstance(manifest, dict):
            if self.has(MANIFEST):
                self.problem(MANIFEST, None, "content_mismatch", "JSON", "bytes that are none")
            return False
        found = manifest.get("format")
        if found != FORMAT:
            if isinstance(found, str) and found.startswith("alk-evidence-pack-v"):
                raise Unreadable("its format is %s; this program reads %s" % (found, FORMAT))
            self.problem(
                MANIFEST, None, "content_mismatch", "format " + FORMAT, "format " + shown(found)
            )
            return False
        bounds, counts, files = (manifest.get(name) for name in ("bounds", "counts", "files"))
        is_whole = (
            isinstance(bounds, dict)
            and isinstance(counts, dict)
            and isinstance(files, list)
            and len(files) <= FILES_MAX
            and all(isinstance(file, dict) for file in files)
            and all(are_strings(file, "name", "sha256") for file in files)
            and all(is_safe_name(file["name"]) for file in files)
            and are_strings(manifest, "tenant_id", "service", "generated_at")
            and manifest.get("scheme") == SCHEME
            and are_strings(bounds, "from", "to")
            and all(
                value is None or is_size(value)
                for value in (
                    bounds.get("from_sequence"), bounds.get("to_sequence"),
                    manifest.get("to_trace_sequence"),
                )
            )
        )  # fmt: skip
        if not is_whole:
            self.problem(
                MANIFEST, None, "content_mismatch", "a manifest of " + FORMAT, "something else"
            )
            return False
        self.described = manifest
        self.tenant = manifest["tenant_id"]
        self.filtered = manifest.get("filter") is not None
        self.complete = (
            not self.filtered and bounds["from"] == HISTORY_FROM and bounds["to"] == HISTORY_TO
        )
        self.is_whole = bounds["from"] == HISTORY_FROM and bounds["to"] == HISTORY_TO
        self.origin = "%s/%s" % (manifest["service"], self.tenant)
        first, first_fact = (
            manifest.get(name)
            for name in ("first_sequence_number", "first_trace_sequence_number")
        )
        self.log = PackChain(
            self, TREE, LINKS, NOTE_NAME, HAND_OVER_NAME, "event", self.origin, SCHEME, first
        )  # fmt: skip
        self.log.on_link = self.place_erasure
        self.traces = PackChain(
            self, TRACE_TREE, TRACE_LINKS, TRACE_NOTE_NAME, TRACE_HAND_OVER_NAME, "fact",
            self.origin + "/traces", TRACE_SCHEME, first_fact,
        )  # fmt: skip
        self.read_claims()
        self.read_keys()
        self.manifest_signature()
        return True

    def read_claims(self):
        """The sequences that the bounds of the manifest name, of both chains."""
        described, log, traces = self.described, self.log, self.traces
        bounds = described["bounds"]
        first, last = (bounds.get(name) for name in ("from_sequence", "to_sequence"))
        log.least = max(1, first or 0)
        log.most = SEQUENCE_MAX if last is None else last
        if self.is_whole:
            log.begins = log.least
        if bounds["to"] == HISTORY_TO:
            log.ends = log.most
        # A pack of a selection of events may leave the facts out.
        is_part = self.filtered or first is not None or last is not None
        if self.is_whole and (described.get("trace_head") is not None or not is_part):
            last_fact = described.get("to_trace_sequence")
            traces.begins = 1
            traces.ends = traces.most = SEQUENCE_MAX if last_fact is None else last_fact

    def read_keys(self):
        """
        The keys of the pack and those given, and the line that they make: from the keys given, or
        else from what the pack itself says.
        """
        texts = bare_keys_of_text(self.text(KEYS) or "")
        self.own_keys = [key for key in texts if key["name"] is not None]
        for at, key in enumerate(self.own_keys):
            name = ENDORSEMENT_NAME % (at + 1)
            endorsement = self.text(name)
            if endorsement is not None:
                key["endorsement"] = endorsement
            key["root"] = not self.has(name)
        own = {key["vkey"]: key for key in self.own_keys}
        given = {}
        for key in self.pinned:
            key = named_key(key, self.described["service"])
            before = given.get(key["vkey"]) or own.get(key["vkey"]) or {}
            given[key["vkey"]] = dict(before, **key)
        self.given_keys = list(given.values())
        keys = [*self.given_keys, *map(self.unless_replaced, self.own_keys)]
        self.line = key_line(keys, self.given_keys, not self.pinned)
        # The caller may know of a replacement without the statement that made it.
        for standing in self.line:
            if standing["retired_at"] is None and standing["vkey"] in given:
                standing["retired_at"] = given[standing["vkey"]].get("retired_at")
        self.keys = [standing["key"] for standing in self.line if is_trusted(standing)]

    def unless_replaced(self, key):
        """A key of the pack, without the statement of a key that the caller knows is replaced."""
        note = key.get("endorsement")
        statement = None if note is None else statement_of(note)
        is_old = statement is not None and any(
            given.get("retired_at") is not None
            and (given["id"], given["name"]) == (statement["id"], statement["name"])
            for given in self.given_keys
        )
        return dict(key, endorsement=None) if is_old else key

    def read_origin(self):
        """The line that starts with the keys given, or with those of a kept checkpoint."""
        kept = [one["key"] for one in self.line if one["vkey"] in self.kept_signers]
        self.origin_line = self.line if self.pinned else key_line(self.own_keys, kept, False)

    def standing_of(self, vkey):
        """The standing of a key in the line from elsewhere, if it counts there."""
        return next(
            (one for one in self.origin_line if one["vkey"] == vkey and is_trusted(one)), None
        )

    def is_shown_by(self, note):
        """True if a note comes from elsewhere, or is signed by a key of now known from there."""
        if note["state"] != "signed":
            return False
        standings = filter(None, map(self.standing_of, note["signers"]))
        return note["is_kept"] or any(not is_replaced(standing) for standing in standings)

    def manifest_signature(self):
        if not self.has(SIGNATURE):
            return
        text = self.text(SIGNATURE)
        size = sum(len(chunk) for chunk in self.source.open(MANIFEST))
        note = note_of(text) if text is not None else None

        def bad(expected, actual):
            self.problem(SIGNATURE, None, "signature_invalid", expected, actual)

        if note is None:
            return bad("a signed note", "something else")
        state, signers = signature_state(note, self.keys)
        who = "a key of " + KEYS
        if self.pinned:
            who = "the public key that was given, or one that it endorsed"
        if state == "unknown_key":
            return bad("a signature by " + who, "a signature by another key")
        if state == "bad_signature":
            return bad("a signature by " + who, "one that does not verify")
        digest = self.hashes[MANIFEST]
        wanted = (self.origin + "/evidence-pack-v2", size, digest)
        if (note["origin"], note["size"], note["root"]) != wanted:
            return bad(
                "the SHA-256 of %s, %s" % (MANIFEST, digest), note["origin"] + " " + note["root"]
            )
        self.manifest_signers = signers
        signer = self.described.get("tree_signer")
        self.tree_signer = signer if isinstance(signer, str) else signers[0]
        name, signer_id, _ = note["signatures"][0]
        self.checked.append("%s is signed by %s+%s." % (MANIFEST, name, signer_id))

    def is_listed(self, name):
        if name == SUMS:
            return False
        if self.source.kind == "zip" or name in (MANIFEST, SIGNATURE) or self.described is None:
            return True
        return any(file["name"] == name for file in self.described["files"])

    def files(self):
        """Every file against manifest and sums; reads what nothing has read yet."""
        for name in self.source.names:
            if name not in self.hashes and self.is_listed(name):
                for _ in self.reading(name):
                    pass
        sums = {}
        text = self.text(SUMS) if self.has(SUMS) else ""
        if text is None:
            self.problem(SUMS, None, "content_mismatch", "UTF-8 text", "other bytes")
        for line in (text or "").split("\n"):
            match = re.fullmatch("([0-9a-f]{64})  ([^\n]+)", line)
            if match and is_safe_name(match.group(2)):
                sums[match.group(2)] = match.group(1)
            elif line:
                self.problem(
                    SUMS, None, "content_mismatch", "a SHA-256 and a name", "another line"
                )
        listed = {}
        if self.described is not None:
            listed = {file["name"]: file["sha256"] for file in self.described["files"]}
        agreeing = 0
        for name in sorted(set(listed) | set(sums) | set(self.source.names)):
            if name == SUMS:
                continue
            own = self.hashes.get(name)
            by_sums = name in (MANIFEST, SIGNATURE) or self.described is None
            wanted = sums.get(name) if by_sums else listed.get(name)
            if not self.has(name):
                if name not in REQUIRED:
                    self.problem(name, None, "file_missing", "the file " + name, "none")
            elif wanted is None:
                self.unexpected(name)
            elif own != wanted:
                self.problem(
                    name, None, "file_mismatch", "SHA-256 " + wanted, "SHA-256 " + shown(own)
                )
            elif self.has(SUMS) and sums.get(name) != own:
                self.problem(
                    SUMS, None, "file_mismatch", "%s for %s" % (own, name), shown(sums.get(name))
                )
            else:
                agreeing += 1
        self.checked.append(
            "%s %s the SHA-256 that %s and %s say."
            % (counted(agreeing, "file"), "has" if agreeing == 1 else "have", MANIFEST, SUMS)
        )

    def unexpected(self, name):
        if self.source.kind == "folder" and name not in (MANIFEST, SIGNATURE):
            self.strangers.append(name)
        else:
            self.problem(
                name, None, "file_unexpected", "no file that %s does not name" % MANIFEST, name
            )

    def read_kept(self):
        """The checkpoints that were given, each to the chain that it is of."""
        for label, text in self.kept:
            note = note_of(note_text_of(text))
            if note is None:
                raise Unreadable("%s is no signed checkpoint" % label)
            chains = [one for one in (self.log, self.traces) if one.origin == note["origin"]]
            if not chains:
                raise Unreadable(
                    "%s is a checkpoint of %s, the pack is of %s"
                    % (label, note["origin"], self.origin)
                )
            state, signers = signature_state(note, self.keys)
            if state == "bad_signature":
                raise Unreadable("%s has a signature that does not verify" % label)
            # The pack's own key has signed what came from elsewhere: it is the service's key.
            self.kept_signers.update(signers)
            chains[0].add(note, label, state, signers, is_kept=True)

    # Erasures

    def read_erasures(self):
        """What was erased, by the sequence that was."""
        previous = 0
        for line in self.lines(ERASURES):
            event, text = event_of(line)
            if event is None:
                self.problem(
                    ERASURES, None, "content_mismatch", "the JSON of an event",
                    "bytes that are none",
                )  # fmt: skip
                continue
            sequence = event["sequence_number"]
            fault = fault_of(line, event, text, self.tenant, None)
            metadata = event.get("metadata", {})
            target, content_hash = metadata.get("sequence_number"), metadata.get("content_hash")
            if fault is not None:
                self.problem(ERASURES, sequence, *fault)
            elif (
                event["action"] != ERASURE_ACTION
                or not is_sequence(target)
                or not isinstance(content_hash, str)
                or target >= sequence
            ):
                self.problem(
                    ERASURES, sequence, "content_mismatch", "an erasure of an earlier event",
                    event["action"],
                )  # fmt: skip
            elif sequence <= previous:
                self.problem(
                    ERASURES, sequence, "out_of_order", "a sequence above %d" % previous,
                    str(sequence),
                )  # fmt: skip
            else:
                previous = sequence
                # Asked for twice, it was done the first time: either may be named.
                erasure = self.erasures.setdefault(
                    target, {"content_hash": content_hash, "times": []}
                )
                erasure["times"].append(event["created_at"])
                self.outside[sequence] = (target, event["hash"])

    def read_proofs(self):
        """
        Erasures that the links do not reach: each needs a proof that a tree holds it whose root was
        signed and is that of the links.
        """
        proven = set()
        for line in self.lines(PROOFS):
            proof = json_of(line)
            hashes = proof.get("proof") if isinstance(proof, dict) else None
            if not isinstance(hashes, list) or not all(map(is_hash, hashes)):
                self.problem(
                    PROOFS, None, "content_mismatch", "an inclusion proof", "something else"
                )
                continue
            sequence, size = proof.get("sequence_number"), proof.get("tree_size")
            if not is_sequence(sequence) or not is_sequence(size):
                continue
            if sequence not in self.outside or size not in self.log.agreed:
                continue
            _, event_hash = self.outside[sequence]
            siblings = [bytes.fromhex(item) for item in hashes]
            if is_included(event_hash, sequence, size, self.log.agreed[size], siblings):
                proven.add(sequence)
                self.proving = max(self.proving, size)
        for sequence, (target, _) in self.outside.items():
            if sequence not in proven:
                self.problem(
                    ERASURES,
                    target,
                    "content_mismatch",
                    "an erasure that is in the chain",
                    "event %d, which neither %s nor a signed tree of them holds"
                    % (sequence, LINKS),
                )

    # Links and events

    def place_erasure(self, link):
        erasure = self.outside.pop(link["sequence_number"], None)
        if erasure is not None and erasure[1] != link["hash"]:
            self.problem(
                ERASURES,
                erasure[0],
                "content_mismatch",
                "an erasure in the chain, %s at %d" % (link["hash"], link["sequence_number"]),
                erasure[1],
            )

    def join_events(self):
        """Events and links side by side, both ascending."""
        links = self.log.checked_links()
        link = next(links, None)
        previous = 0
        for line in self.lines(EVENTS):
            self.events += 1
            event, text = event_of(line)
            if event is None:
                said = said_sequence(line or "")
                place = said if said > previous else previous + 1
                if self.complete and link is not None:
                    place = link["sequence_number"]
                self.problem(
                    EVENTS, place, "content_mismatch", "the JSON of an event",
                    "bytes that are none",
                )  # fmt: skip
                previous = place
                while link is not None and link["sequence_number"] <= place:
                    link = next(links, None)
                continue
            sequence = event["sequence_number"]
            is_renumbered = (
                self.complete
                and link is not None
                and sequence != link["sequence_number"]
                and (event["hash"] == link["hash"] or event["prev_hash"] == link["prev_hash"])
            )
            if is_renumbered:
                place = link["sequence_number"]
                self.problem(EVENTS, place, *wrong("sequence", place, sequence))
                previous = place
                link = next(links, None)
                continue
            if sequence <= previous:
                reason = "duplicate_sequence" if sequence == previous else "out_of_order"
                self.problem(
                    EVENTS, sequence, reason, "a sequence above %d" % previous,
                    "sequence %d" % sequence,
                )  # fmt: skip
                continue
            if self.complete and link is not None and sequence > link["sequence_number"]:
                place = link["sequence_number"]
                self.problem(EVENTS, place, "sequence_gap", span(place, sequence - 1), "none")
            while link is not None and link["sequence_number"] < sequence:
                link = next(links, None)
            previous = sequence
            is_linked = link is not None and link["sequence_number"] == sequence
            self.event(line, event, text, link if is_linked else None)
            if is_linked:
                link = next(links, None)
        tail = link["sequence_number"] if self.complete and link is not None else None
        for _ in links:
            pass
        if tail is not None:
            self.problem(
                EVENTS, tail, "tail_missing", span(tail, self.log.last["sequence_number"]), "none"
            )

    def event(self, line, event, text, link):
        sequence = event["sequence_number"]
        bounds = self.described["bounds"]
        if "erased_at" in event:
            self.erased_seen += 1
        self.references.update(references_of(event.get("metadata")))
        if link is None:
            self.problem(EVENTS, sequence, "hash_mismatch", "a link in " + LINKS, "none")
            return
        if event["prev_hash"] != link["prev_hash"]:
            self.problem(
                EVENTS, sequence, "prev_hash_mismatch", link["prev_hash"], event["prev_hash"]
            )
            return
        fault = fault_of(line, event, text, self.tenant, self.erasures.get(sequence))
        if fault is not None:
            self.problem(EVENTS, sequence, *fault)
        elif any(event[name] != link[name] for name in ("hash", "content_hash", "created_at")):
            self.problem(
                EVENTS, sequence, "hash_mismatch", "%s, as %s says" % (link["hash"], LINKS),
                event["hash"],
            )  # fmt: skip
        elif not bounds["from"] <= event["timestamp"] <= bounds["to"]:
            self.problem(
                EVENTS, sequence, "content_mismatch", "a timestamp within the bounds",
                event["timestamp"],
            )  # fmt: skip

    # What the service says of the pack

    def differs(self, what, expected, actual, file=VERIFICATION):
        if expected != actual or isinstance(expected, bool) != isinstance(actual, bool):
            self.problem(
                file,
                None,
                "report_mismatch",
                "%s %s" % (what, shown(expected)),
                "%s %s" % (what, shown(actual)),
            )

    def report(self):
        """verification.json and the counts of the manifest against what was read."""
        described = self.described
        report = self.said
        is_report = (
            isinstance(report, dict)
            and isinstance(report.get("bounds"), dict)
            and isinstance(report.get("breaks"), list)
        )
        if not is_report:
            if self.has(VERIFICATION):
                self.problem(
                    VERIFICATION, None, "content_mismatch", "a verification report",
                    "something else",
                )  # fmt: skip
            return
        self.differs("tenant_id", self.tenant, report.get("tenant_id"))
        self.differs("scheme", SCHEME, report.get("scheme"))
        self.differs("bounds", canonical(described["bounds"]), canonical(report["bounds"]))
        self.differs("verified_at", described["generated_at"], report.get("verified_at"))
        self.differs("head", canonical(described.get("head")), canonical(report.get("head")))
        first = self.log.first["sequence_number"] if self.log.first else None
        last = self.log.last["sequence_number"] if self.log.last else None
        for file in (report, described):
            said = file.get("last_sequence_number")
            self.differs("first_sequence_number", first, file.get("first_sequence_number"))
            if last is not None and is_sequence(said) and said > last:
                self.problem(LINKS, last + 1, "tail_missing", span(last + 1, said), "none")
                break
            self.differs("last_sequence_number", last, said)
        self.differs("links", self.log.links, described["counts"].get("links"))
        self.differs("events", self.events, described["counts"].get("events"))
        self.differs("events_checked", self.log.links, report.get("events_checked"))
        if not self.filtered:
            self.differs("events_in_bounds", self.events, report.get("events_in_bounds"))
        if self.complete:
            self.differs("erased_events", self.erased_seen, report.get("erased_events"))
        self.head(report)
        self.accusations(report)
        self.notices = notices_of(report, "events") + notices_of(report.get("traces"), "facts")
        of_span = "" if first is None else ", " + span(first, last)
        erased = ""
        if self.erasures:
            erased = "; %s named in the chain" % counted(len(self.erasures), "erasure")
        self.checked.append(
            "%s of the chain of %s%s: each recomputed, and held against the one before it."
            % (counted(self.log.links, "link"), self.tenant, of_span)
        )
        self.checked.append(
            "%s from %s to %s: contents, details, order and links recomputed%s."
            % (counted(self.events, "event"), shown(report["bounds"].get("from")),
               shown(report["bounds"].get("to")), erased)
        )  # fmt: skip

    def head(self, report):
        """A pack without an upper bound ends at the head that it names, and no pack after it."""
        log, head = self.log, report.get("head")
        said = head.get("sequence_number") if isinstance(head, dict) else None
        own = log.last["sequence_number"] if log.last else 0
        missing = log.missing_to(said) if is_sequence(said) else None
        if missing is not None:
            self.problem(LINKS, missing[0], "tail_missing", span(*missing), "none")
        elif log.ends is None or log.last is None:
            return
        elif not is_sequence(said) or said < own:
            self.problem(
                VERIFICATION, own, "report_mismatch", "head %d" % own, "head " + shown(said)
            )
        elif said == own and head.get("hash") != log.last["hash"]:
            expected = "head " + shown(head.get("hash"))
            self.problem(LINKS, own, "hash_mismatch", expected, log.last["hash"])

    def accusations(self, report):
        """What the service itself had found when it made the pack."""
        traces = report.get("traces")
        of_traces = traces.get("breaks") if isinstance(traces, dict) else None
        breaks = report["breaks"] + (of_traces if isinstance(of_traces, list) else [])
        for broken in breaks:
            if isinstance(broken, dict):
                sequence = broken.get("sequence_number")
                self.problem(
                    VERIFICATION,
                    sequence if is_sequence(sequence) else None,
                    shown(broken.get("reason")),
                    shown(broken.get("expected")),
                    shown(broken.get("actual")),
                )
        total = report.get("breaks_total")
        is_broken = report.get("valid") is not True or (is_sequence(total) and total > 0)
        if is_broken and not breaks:
            self.problem(
                VERIFICATION, None, "report_mismatch", "a valid chain",
                "status " + shown(report.get("status")),
            )  # fmt: skip

    # Execution traces

    def join_facts(self):
        """Facts and the links of their chain side by side, both ascending."""
        links = self.traces.checked_links()
        link = next(links, None)
        previous = 0
        for line in self.lines(FACTS):
            self.facts += 1
            fact, text = fact_of(line)
            if fact is None:
                place = previous + 1
                if self.is_whole and link is not None:
                    place = link["sequence_number"]
                self.problem(
                    FACTS, place, "content_mismatch", "the JSON of a fact", "bytes that are none"
                )
                previous = place
                while link is not None and link["sequence_number"] <= place:
                    link = next(links, None)
                continue
            sequence = fact["chain_sequence"]
            if sequence <= previous:
                reason = "duplicate_sequence" if sequence == previous else "out_of_order"
                self.problem(
                    FACTS, sequence, reason, "a sequence above %d" % previous,
                    "sequence %d" % sequence,
                )  # fmt: skip
                continue
            if self.is_whole and link is not None and sequence > link["sequence_number"]:
                place = link["sequence_number"]
                self.problem(FACTS, place, "sequence_gap", span(place, sequence - 1), "none")
            while link is not None and link["sequence_number"] < sequence:
                link = next(links, None)
            previous = sequence
            is_linked = link is not None and link["sequence_number"] == sequence
            self.fact(line, fact, text, link if is_linked else None)
            if is_linked:
                link = next(links, None)
        tail = link["sequence_number"] if self.is_whole and link is not None else None
        for _ in links:
            pass
        if tail is not None:
            end = self.traces.last["sequence_number"]
            self.problem(FACTS, tail, "tail_missing", span(tail, end), "none")
        for execution in self.executions.values():
            for time, sequence in execution.undetailed.items():
                expected = "a later fact execution.erased of " + time
                self.problem(FACTS, sequence, "content_mismatch", expected, "none")

    def fact(self, line, fact, text, link):
        sequence = fact["chain_sequence"]
        fault = fact_fault_of(line, fact, text, self.tenant)
        if link is None:
            self.problem(FACTS, sequence, "hash_mismatch", "a link in " + TRACE_LINKS, "none")
        elif fact["prev_hash"] != link["prev_hash"]:
            self.problem(
                FACTS, sequence, "prev_hash_mismatch", link["prev_hash"], fact["prev_hash"]
            )
        elif fault is not None:
            self.problem(FACTS, sequence, *fault)
        elif fact["hash"] != link["hash"]:
            expected = "%s, as %s says" % (link["hash"], TRACE_LINKS)
            self.problem(FACTS, sequence, "hash_mismatch", expected, fact["hash"])
        execution = self.executions.setdefault(fact["execution_id"], Execution())
        self.fact_number(execution, fact)
        execution.take(fact)
        broken = execution.piece_fault(fact)
        if broken is not None:
            self.problem(FACTS, sequence, *broken)

    def fact_number(self, execution, fact):
        """Numbers without gaps, and details that are gone only where a later fact says so."""
        sequence, number = fact["chain_sequence"], fact["fact_number"]
        expected = execution.facts + 1
        if number != expected:
            reason = "sequence_gap" if number > expected else "duplicate_sequence"
            self.problem(
                FACTS, sequence, reason, "fact_number %d" % expected, "fact_number %d" % number
            )
        execution.facts = max(execution.facts, number)
        if fact["type"] == "execution.erased":
            execution.undetailed.pop(fact["created_at"], None)
        if "erased_at" in fact:
            execution.undetailed.setdefault(fact["erased_at"], sequence)

    def check_executions(self):
        """Each execution of the file against its facts."""
        left = {known for known, one in self.executions.items() if not one.only_holds}
        self.execution_lines = 0
        for line in self.lines(EXECUTIONS):
            self.execution_lines += 1
            value = self.trace_line(EXECUTIONS, line)
            if value is None:
                continue
            wanted, known = None, value.get("id")
            if isinstance(known, str) and known in left:
                left.remove(known)
                wanted = self.executions[known].shown()
            if wanted is None or canonical(wanted) != canonical(value):
                expected = "an execution that its facts start, once"
                self.problem(
                    EXECUTIONS, None, "content_mismatch",
                    expected if wanted is None else canonical(wanted), canonical(value),
                )  # fmt: skip
        if left:
            expected = "%s more, as %s says" % (counted(len(left), "execution"), FACTS)
            self.problem(EXECUTIONS, None, "content_mismatch", expected, "none")

    def check_spans(self):
        """Each span of the file against the facts of its execution."""
        seen = set()
        self.span_lines = 0
        known = 0
        for line in self.lines(SPANS):
            self.span_lines += 1
            value = self.trace_line(SPANS, line)
            if value is None:
                continue
            wanted = self.wanted_span(value, seen)
            if wanted is None:
                self.problem(
                    SPANS, None, "content_mismatch", "a span that its facts start, once",
                    canonical(value),
                )  # fmt: skip
                continue
            known += 1
            core, digest = wanted
            long = {name: value[name] for name in value if name in DETAIL_MEMBERS}
            short = {name: value[name] for name in value if name not in DETAIL_MEMBERS}
            if canonical(core) != canonical(short):
                self.problem(SPANS, None, "content_mismatch", canonical(core), canonical(short))
            elif sha256(canonical(long)) != digest:
                self.problem(
                    SPANS, None, "content_mismatch",
                    "the name, metadata and error that its facts say", canonical(long),
                )  # fmt: skip
        total = sum(execution.span_count() for execution in self.executions.values())
        if known < total:
            expected = "%s more, as %s says" % (counted(total - known, "span"), FACTS)
            self.problem(SPANS, None, "content_mismatch", expected, "none")

    def wanted_span(self, value, seen):
        """What the facts say of the span of a line, the first time that it is named; else None."""
        place = value.get("execution_id"), value.get("id")
        if not all(isinstance(part, str) for part in place) or place in seen:
            return None
        seen.add(place)
        execution = self.executions.get(place[0])
        return execution.shown_span(place[1]) if execution is not None else None

    def trace_line(self, file, line):
        """The object of a line of executions or spans; None, and a problem, if it is none."""
        value = json_of(line)
        if isinstance(value, dict) and is_canonical(value):
            return value
        self.problem(file, None, "content_mismatch", "a JSON object", "bytes that are none")
        return None

    def check_trace_counts(self):
        """What the manifest says of the traces against what was read."""
        described, traces = self.described, self.traces
        counts, head = described["counts"], described.get("trace_head")
        first = traces.first["sequence_number"] if traces.first else None
        last = traces.last["sequence_number"] if traces.last else None
        for what, expected, actual in (
            ("facts", self.facts, counts.get("facts")),
            ("trace_links", traces.links, counts.get("trace_links")),
            ("executions", self.execution_lines, counts.get("executions")),
            ("spans", self.span_lines, counts.get("spans")),
            ("first_trace_sequence_number", first, described.get("first_trace_sequence_number")),
            ("last_trace_sequence_number", last, described.get("last_trace_sequence_number")),
        ):
            self.differs(what, expected, actual, MANIFEST)
        said = head.get("sequence_number") if isinstance(head, dict) else None
        is_same = (0 if said is None else said) == (last or 0) and not isinstance(said, bool)
        if self.is_whole and not is_same:
            if is_sequence(said) and said > (last or 0):
                expected = span((last or 0) + 1, said)
                self.problem(TRACE_LINKS, (last or 0) + 1, "tail_missing", expected, "none")
            else:
                self.differs("trace_head", last, said, MANIFEST)
        elif last is not None and is_same and head.get("hash") != traces.last["hash"]:
            expected = "head " + shown(head.get("hash"))
            self.problem(TRACE_LINKS, last, "hash_mismatch", expected, traces.last["hash"])
        if traces.links > 0:
            self.checked.append(
                "%s of %s and %s of their chain: each recomputed; executions and spans are what "
                "the facts say."
                % (
                    counted(self.facts, "fact"),
                    counted(len(self.executions), "execution"),
                    counted(traces.links, "link"),
                )
            )

    def limits(self):
        """What these files can't show, whatever they hold, and what the service says of them."""
        self.limits_of_origin()
        self.open += self.notices
        if not self.kept:
            self.open.append(
                "That nothing was rewritten and signed again by a holder of the signing key. A "
                "checkpoint that you kept earlier shows it."
            )
        if self.log.removed > 0:
            self.open.append(
                "That the events up to sequence %d were removed by retention, as %s says: the pack "
                "holds nothing of them." % (self.log.removed, VERIFICATION)
            )
        if not self.complete and (self.events < self.log.links or not self.is_whole):
            self.open.append(
                "That %s leaves no event of the bounds out: it holds %d of %d linked events%s; the "
                "manifest's signature is the service's word for it."
                % (
                    EVENTS,
                    self.events,
                    self.log.links,
                    ", those that the filter in the manifest selected" if self.filtered else "",
                )
            )
        if not self.is_whole or self.facts < self.traces.links:
            self.open.append(
                "That %s leaves no execution of the period out: it holds %d of %d linked facts; "
                "the manifest's signature is the service's word for it."
                % (FACTS, self.facts, self.traces.links)
            )
        for execution in self.executions.values():
            self.references.difference_update(execution.values)
        if self.references:
            self.open.append(
                "What %s in metadata of events stand for: the pack does not hold these values."
                % counted(len(self.references), "reference")
            )
        if self.has(PDF):
            self.open.append("The words of evidence.pdf: only that it is the file that was signed.")
        self.open.append("The times: created_at is the service's own clock.")
        if self.strangers:
            self.open.append(
                "Files in this folder that are not of the pack: %s." % ", ".join(self.strangers)
            )

    def limits_of_origin(self):
        """What the signature of the manifest leaves open."""
        signer = self.origin_signer()
        if signer is None:
            ids = ", ".join("%s+%s" % (key["name"], key["id"]) for key in self.own_keys)
            self.open.append(
                "Who made the pack: the signatures were checked with the key inside the pack (%s), "
                "which its maker chose. Get the service's public key by another way than the pack: "
                "from its operator in person or, if you trust that address, from the service "
                "(/.well-known/alk-keys.json); or take a checkpoint that you kept. Give it."
                % (ids or "none")
            )
        elif is_replaced(signer):
            since = (
                "its manifest is signed by %s+%s, which was replaced at %s; a holder of the "
                "replaced key can have signed it since."
                % (signer["key"]["name"], signer["key"]["id"], signer["retired_at"])
            )
            if self.is_recomputed():
                ends = (chain.last for chain in (self.log, self.traces))
                ends = [0 if last is None else last["sequence_number"] for last in ends]
                self.open.append(
                    "When and by whom the pack was put together, and that the log went no further "
                    "then than event %d and fact %d: %s Its events and facts are those that the "
                    "service signed." % (*ends, since)
                )
            else:
                self.open.append(
                    "Who made the pack, and that it leaves nothing of its bounds out: %s Only a "
                    "pack of no period, with every event and fact from its first sequence on and "
                    "without %s, can be shown by the trees alone, with a checkpoint that you kept "
                    "or one of the next key." % (since, PDF)
                )
        if not self.pinned:
            for key in self.own_keys[1:]:
                if key["root"]:
                    self.open.append(
                        "The key %s+%s: no key of the pack has endorsed it."
                        % (key["name"], key["id"])
                    )

    def origin_signer(self):
        """The standing of the key from elsewhere that signed the manifest, one of now first."""
        standings = list(filter(None, map(self.standing_of, self.manifest_signers)))
        return next((one for one in standings if not is_replaced(one)), (standings or [None])[0])

    def is_recomputed(self):
        """
        True if the trees alone show all that the pack holds, and that it leaves nothing of its
        bounds out, without its manifest's word.
        """
        return (
            self.log.links + self.traces.links > 0
            and self.is_whole
            and self.log.removed == 0
            and all(
                chain.last is None or chain.shown >= chain.last["sequence_number"]
                for chain in (self.log, self.traces)
            )
            and self.log.shown >= self.proving
            and self.events == self.log.links
            and self.facts == self.traces.links
            and not self.has(PDF)
        )

    def is_origin_checked(self):
        """True if a key from elsewhere signed this, and is not replaced or all of it is shown."""
        signer = self.origin_signer()
        return signer is not None and (not is_replaced(signer) or self.is_recomputed())

    def keys_of_report(self):
        """The line of keys as a report lists it."""
        line = self.origin_line if self.pinned or self.kept_signers else self.line
        return [
            {
                "name": standing["key"]["name"],
                "key_id": standing["key"]["id"],
                "vkey": standing["vkey"],
                "trusted": (
                    "unendorsed"
                    if standing["trusted"] == "root" and at > 0
                    else standing["trusted"]
                ),
                "pinned": standing["trusted"] == "listed",
                "endorsed_by": standing["endorsed_by"],
                "next": None if standing["next"] is None else standing["next"]["id"],
                "retired_at": standing["retired_at"],
                "handed_over": {
                    "events": self.log.handed_over(standing),
                    "traces": self.traces.handed_over(standing),
                },
                "signs_manifest": standing["vkey"] in self.manifest_signers,
            }
            for at, standing in enumerate(line)
        ]

    def verdict(self):
        if self.total:
            return "tampered"
        return "authentic" if self.is_origin_checked() else "consistent"

    def result(self):
        described = self.described or {}
        first = self.log.first if self.log else None
        last = self.log.last if self.log else None

        def order(problem):
            sequence = problem["sequence_number"]
            return 0 if sequence is None else sequence

        return {
            "verdict": self.verdict(),
            "tenant_id": self.tenant,
            "generated_at": described.get("generated_at"),
            "bounds": described.get("bounds"),
            "events": self.events,
            "links": self.log.links if self.log else 0,
            "first_sequence_number": first["sequence_number"] if first else None,
            "last_sequence_number": last["sequence_number"] if last else None,
            "head_hash": last["hash"] if last else None,
            "facts": self.facts,
            "trace_links": self.traces.links if self.traces else 0,
            "keys": self.keys_of_report() if self.described else [],
            "problems": sorted(self.problems, key=order),
            "problems_total": self.total,
            "checked": self.checked,
            "not_established": self.open,
        }


def check_pack(path, keys, kept):
    """The check of a pack as a report."""
    source = None
    try:
        if not os.path.exists(path):
            raise Unreadable("%s can't be opened" % path)
        source = Folder(path) if os.path.isdir(path) else Zip(path)
        return PackCheck(source, keys, kept).run()
    except (Unreadable, NotJson) as error:
        is_odd = not isinstance(error, Unreadable)
        return {
            "verdict": "unreadable",
            "message": "it holds JSON that no writer of packs makes" if is_odd else str(error),
            "problems": [],
            "problems_total": 0,
            "checked": [],
            "not_established": [],
        }
    finally:
        if isinstance(source, Zip):
            source.close()


UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def escaped(value):
    """What a pack says may hold anything, terminal commands too."""
    return UNPRINTABLE.sub(lambda match: "\\u%04x" % ord(match.group()), str(value))


def printable(value):
    """A value of a pack, which may be as long as a file."""
    text = escaped(value)
    return text[:200] + "\u2026" if len(text) > 200 else text


VERDICTS = {
    "authentic": "AUTHENTIC",
    "consistent": "CONSISTENT, ORIGIN NOT CHECKED",
    "tampered": "TAMPERED",
}
EXIT_CODES = {"authentic": 0, "consistent": 0, "tampered": 1, "unreadable": 2}
ORIGIN_NOT_CHECKED = 3


def key_text(key):
    """What a report says of a key, in one line."""
    parts = []
    if key["pinned"]:
        parts.append("given, or known by a checkpoint that was given")
    if key["endorsed_by"] is not None:
        parts.append("endorsed by " + key["endorsed_by"])
    if key["trusted"] == "root":
        parts.append("the first key of the pack")
    if key["trusted"] == "unendorsed":
        parts.append("not endorsed by a key that counts")
    if key["signs_manifest"]:
        parts.append("signs " + MANIFEST)
    if key["retired_at"] is not None:
        by = "" if key["next"] is None else " by " + key["next"]
        parts.append("replaced%s at %s" % (by, key["retired_at"]))
    for chain, noun in (("events", "event"), ("traces", "fact")):
        size = key["handed_over"][chain]
        if size is not None:
            parts.append("handed over at " + counted(size, noun))
    return "%s+%s: %s" % (key["name"], key["key_id"], "; ".join(parts))


def sequences_text(bounds):
    """The sequences that bounds name, if they name any."""
    first, last = bounds.get("from_sequence"), bounds.get("to_sequence")
    if first is None and last is None:
        return ""
    return ", sequences %s to %s" % (
        1 if first is None else first, "the newest" if last is None else last
    )  # fmt: skip


def report_lines(path, report):
    verdict = report["verdict"]
    if verdict == "unreadable":
        return ["UNREADABLE  " + path, "  " + printable(report["message"])]
    lines = ["%s  %s" % (VERDICTS[verdict], path)]
    bounds = report["bounds"]
    if bounds is not None:
        lines.append(
            "  tenant %s, %s to %s%s"
            % (
                *map(printable, (report["tenant_id"], bounds["from"], bounds["to"])),
                sequences_text(bounds),
            )
        )
        lines.append(
            "  %s, %s, made %s"
            % (
                counted(report["events"], "event"),
                counted(report["links"], "link"),
                printable(report["generated_at"]),
            )
        )
    if report["head_hash"] is not None:
        lines.append(
            "  head hash %s, sequence %s"
            % (printable(report["head_hash"]), report["last_sequence_number"])
        )
    problems, total = report["problems"], report["problems_total"]
    if total:
        first = ", the first %d" % len(problems) if total > len(problems) else ""
        lines += ["", "Problems: %d%s" % (total, first)]
    for problem in problems:
        sequence = problem["sequence_number"]
        where = "" if sequence is None else "sequence %s: " % printable(sequence)
        reason, file = printable(problem["reason"]), printable(problem["file"])
        lines.append("  %s%s in %s" % (where, reason, file))
        lines.append("      expected " + printable(problem["expected"]))
        lines.append("      found    " + printable(problem["actual"]))
    sections = (
        ("Signing keys", list(map(key_text, report["keys"]))),
        ("Checked", report["checked"]),
        ("Not established", report["not_established"]),
    )
    for title, texts in sections:
        if texts:
            lines += ["", title] + ["  - " + escaped(line) for line in texts]
    return lines


def read_text(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError):
        return None


def read_arguments(arguments):
    """(path, keys, checkpoints, whether as JSON, whether the origin is required)"""
    keys, kept, path, as_json, is_origin_required = [], [], None, False, False
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        if argument == "--json":
            as_json = True
        elif argument == "--require-origin":
            is_origin_required = True
        elif argument in ("--public-key", "--checkpoint"):
            if not rest:
                raise Usage("%s needs a value" % argument)
            value = rest.pop(0)
            text = read_text(value)
            if argument == "--checkpoint":
                if text is None:
                    raise Usage("%s can't be opened" % value)
                kept.append((value, text))
                continue
            found = keys_of_text(value if text is None else text)
            if not found:
                raise Usage("%s is no public key and no file that holds one" % value)
            keys += found
        elif argument.startswith("-") or path is not None:
            raise Usage("unknown argument %s" % argument)
        else:
            path = argument
    return path, keys, kept, as_json, is_origin_required


def verify(arguments, own):
    """Checks the pack that the arguments name, or the folder `own`: the text and the exit code."""
    path, keys, kept, as_json, is_origin_required = read_arguments(arguments)
    path = path or own
    report = check_pack(path, keys, kept)
    text = json.dumps(report, indent=2) if as_json else "\n".join(report_lines(path, report))
    is_open = report["verdict"] == "consistent" and is_origin_required
    return text + "\n", ORIGIN_NOT_CHECKED if is_open else EXIT_CODES[report["verdict"]]


def main(arguments):
    if "--help" in arguments or "-h" in arguments:
        print(__doc__.strip())
        return 0
    text, exit_code = verify(arguments, os.path.dirname(os.path.abspath(__file__)))
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
    return exit_code


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Usage as usage:
        sys.stderr.write("verify.py: %s\n" % usage)
    except Exception:
        # Python would end with 1, which says "tampered".
        traceback.print_exc()
    sys.exit(EXIT_CODES["unreadable"])

"""Checks events of alk without trusting the service: contents, links and completeness (alk-
chain-v1).

Needs nothing but this file's own RFC 8785 and SHA-256, and says what is wrong in the words of the
verifiers that come with evidence packs. Who signed a chain is not checked here."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from json.encoder import encode_basestring
from typing import Any, Callable, Optional, Union

SCHEME = "alk-chain-v1"
GENESIS_HASH = "0" * 64
ERASURE_ACTION = "alk.event.erased"
# The largest integer that every reader of JSON holds exactly.
SEQUENCE_MAX = 2**53 - 1
# Digits of an integer that a double holds whatever they are.
EXACT_DIGITS = 15
HEX = re.compile(r"[0-9a-f]{64}")
SURROGATE = re.compile("[\ud800-\udfff]")

Event = dict[str, Any]
# An event as it was read by a JSON parser, or better its text, whose bytes are checked as well.
EventLike = Union[Mapping[str, Any], str, bytes]


class NotCanonicalError(ValueError):
    """A value that has no canonical JSON."""


# RFC 8785


def number_text(value: Union[int, float]) -> str:
    """A double as ECMAScript writes it (Number::toString)."""
    if isinstance(value, int) and -SEQUENCE_MAX <= value <= SEQUENCE_MAX:
        return str(value)
    try:
        double = float(value)
    except OverflowError:
        raise NotCanonicalError("no double") from None
    if double != double or double in (float("inf"), float("-inf")):
        raise NotCanonicalError("no JSON number")
    if double == 0:
        return "0"
    sign = "-" if double < 0 else ""
    return sign + _positive_text(abs(double))


def _positive_text(double: float) -> str:
    parts = Decimal(repr(double)).as_tuple()
    text = "".join(map(str, parts.digits)).lstrip("0")
    digits = text.rstrip("0")
    count = len(digits)
    point = len(text) + int(parts.exponent)
    if count <= point <= 21:
        return digits + "0" * (point - count)
    if 0 < point <= 21:
        return digits[:point] + "." + digits[point:]
    if -6 < point <= 0:
        return "0." + "0" * -point + digits
    mantissa = digits[0] + ("." + digits[1:] if count > 1 else "")
    return f"{mantissa}e{'+' if point > 0 else '-'}{abs(point - 1)}"


def _quote(text: str) -> str:
    if SURROGATE.search(text):
        raise NotCanonicalError("an unpaired surrogate")
    return encode_basestring(text)


def canonical_json(value: Any) -> str:
    """The RFC 8785 text of a JSON value. NotCanonicalError where it has none."""
    if isinstance(value, str):
        return _quote(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return number_text(value)
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(canonical_json, value)) + "]"
    if not isinstance(value, Mapping):
        raise NotCanonicalError(f"a {type(value).__name__}")
    keys = sorted(value, key=lambda key: str(key).encode("utf-16-be", "surrogatepass"))
    return "{" + ",".join(f"{_quote(key)}:{canonical_json(value[key])}" for key in keys) + "}"


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8")).hexdigest()


# Reading


def _number_of(text: str) -> Union[int, float]:
    value = float(text)
    is_whole = abs(value) <= SEQUENCE_MAX and value == int(value)
    return int(value) if is_whole else value


def _integer_of(text: str) -> Union[int, float]:
    return int(text) if len(text) <= EXACT_DIGITS else _number_of(text)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_decoder = json.JSONDecoder(
    parse_float=_number_of, parse_int=_integer_of, parse_constant=_no_constant
)


def _read(event: EventLike) -> tuple[Optional[Event], Optional[str]]:
    """The event, None if it is none, and its text if that was given."""
    if isinstance(event, Mapping):
        return (dict(event) if _is_event(event) else None), None
    try:
        text = event.decode("utf-8") if isinstance(event, bytes) else event
        line = text.rstrip("\r\n")
        value = _decoder.decode(line)
    except (ValueError, OverflowError, RecursionError):
        return None, None
    return (value if _is_event(value) else None), line


ACTOR_MEMBERS = ("id", "type", "email")
RESOURCE_MEMBERS = ("id", "type", "name")
EVENT_MEMBERS = (
    "id", "timestamp", "actor", "action", "resource", "outcome", "metadata", "tenant_id",
    "sequence_number", "created_at", "prev_hash", "details_salt", "details_hash", "content_hash",
    "hash", "erased_at",
)  # fmt: skip


def _are_strings(source: Mapping[str, Any], *names: str) -> bool:
    return all(isinstance(source.get(name), str) for name in names)


def _are_strings_or_absent(source: Mapping[str, Any], *names: str) -> bool:
    return all(name not in source or isinstance(source[name], str) for name in names)


def is_sequence(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= SEQUENCE_MAX


def _is_event(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    actor, resource = value.get("actor"), value.get("resource")
    return (
        _are_strings(
            value, "id", "timestamp", "action", "outcome", "tenant_id", "created_at", "prev_hash",
            "content_hash", "hash",
        )
        and _are_strings_or_absent(value, "details_salt", "details_hash", "erased_at")
        and is_sequence(value.get("sequence_number"))
        and isinstance(actor, Mapping)
        and _are_strings(actor, "id", "type")
        and _are_strings_or_absent(actor, "email")
        and isinstance(resource, Mapping)
        and _are_strings(resource, "id", "type")
        and _are_strings_or_absent(resource, "name")
        and ("metadata" not in value or isinstance(value["metadata"], Mapping))
    )  # fmt: skip


# One event


@dataclass(frozen=True)
class Break:
    """
    What does not agree. `reason` is content_mismatch, hash_mismatch, prev_hash_mismatch,
    sequence_gap, duplicate_sequence or out_of_order.
    """

    reason: str
    expected: str
    actual: str
    tenant_id: Optional[str] = None
    sequence_number: Optional[int] = None
    event_id: Optional[str] = None

    def __str__(self) -> str:
        return (
            f"tenant {self.tenant_id} sequence {self.sequence_number} {self.reason}: "
            f"expected {self.expected}, found {self.actual}"
        )


@dataclass(frozen=True)
class EventCheck:
    """
    `valid`: the content fits its hash, and the link fits both. `is_erased`: the details are gone;
    that the chain says so is for ChainVerifier to see. `found` is the first thing that is wrong.
    """

    valid: bool
    is_erased: bool
    found: Optional[Break]


def verify_event(event: EventLike) -> EventCheck:
    """
    Recompute an event by itself. Given as text, its bytes are compared with those that the service
    writes; as a dict, its members are. What is no event at all is a content_mismatch.
    """
    return _checked(*_read(event))


def _checked(value: Optional[Event], line: Optional[str]) -> EventCheck:
    if value is None:
        return EventCheck(False, False, Break("content_mismatch", "an event", "something else"))
    try:
        is_erased, fault = _fault_of(value, line)
    except NotCanonicalError as error:
        is_erased, fault = False, ("content_mismatch", "canonical JSON", str(error))
    found = None if fault is None else _break_at(value, fault)
    return EventCheck(found is None, is_erased, found)


Fault = tuple[str, str, str]


def _break_at(event: Event, fault: Fault) -> Break:
    return Break(*fault, event["tenant_id"], event["sequence_number"], event["id"])


def _wrong(what: str, expected: Optional[str], actual: Optional[str]) -> Fault:
    shown = ["none" if one is None else one for one in (expected, actual)]
    return "content_mismatch", f"{what} {shown[0]}", f"{what} {shown[1]}"


def _fault_of(event: Event, line: Optional[str]) -> tuple[bool, Optional[Fault]]:
    """Whether the details are gone by an erasure, and what is wrong."""
    details = _details_of(event)
    details_hash = None
    if details:
        details_hash = _hash(event.get("details_salt", "") + "\n" + canonical_json(details))
    are_gone = not details and "details_hash" in event
    if event.get("details_hash") != details_hash and not are_gone:
        return False, _wrong("details_hash", event.get("details_hash"), details_hash)
    if "details_salt" in event and not details:
        return are_gone, _wrong("details_salt", None, event["details_salt"])
    if "erased_at" in event and not are_gone:
        return False, _wrong("erased_at", None, event["erased_at"])
    content_hash = _hash(canonical_json(_core_of(event)))
    if event["content_hash"] != content_hash:
        return are_gone, _wrong("content_hash", event["content_hash"], content_hash)
    own_hash = link_hash(event)
    if event["hash"] != own_hash:
        return are_gone, ("hash_mismatch", own_hash, event["hash"])
    return are_gone, _form_fault(event, line)


def _form_fault(event: Event, line: Optional[str]) -> Optional[Fault]:
    is_as_stored = _has_known_members(event) if line is None else _stored_text(event) == line
    if is_as_stored:
        return None
    return (
        "content_mismatch",
        "the bytes that the service writes for this event",
        "the same event in other bytes, or with members that no hash covers",
    )


def _has_known_members(event: Event) -> bool:
    return (
        set(event) <= set(EVENT_MEMBERS)
        and set(event["actor"]) <= set(ACTOR_MEMBERS)
        and set(event["resource"]) <= set(RESOURCE_MEMBERS)
    )


def _details_of(event: Event) -> dict[str, Any]:
    details: dict[str, Any] = {}
    if "email" in event["actor"]:
        details["actor_email"] = event["actor"]["email"]
    if "metadata" in event:
        details["metadata"] = event["metadata"]
    if "name" in event["resource"]:
        details["resource_name"] = event["resource"]["name"]
    return details


def _core_of(event: Event) -> dict[str, Any]:
    core = {name: event[name] for name in ("action", "id", "outcome", "timestamp")}
    core["actor"] = {name: event["actor"][name] for name in ("id", "type")}
    core["resource"] = {name: event["resource"][name] for name in ("id", "type")}
    if "details_hash" in event:
        core["details_hash"] = event["details_hash"]
    return core


def link_hash(event: Mapping[str, Any]) -> str:
    """The hash that links an event to the one before it."""
    parts = (
        SCHEME,
        event["tenant_id"],
        str(event["sequence_number"]),
        event["created_at"],
        event["content_hash"],
        event["prev_hash"],
    )
    return _hash("\n".join(parts))


def _members_text(
    source: Mapping[str, Any], names: Sequence[str], text_of: Callable[[str, Any], str]
) -> str:
    present = (name for name in names if name in source)
    return "{" + ",".join(f'"{name}":{text_of(name, source[name])}' for name in present) + "}"


def _stored_text(event: Event) -> str:
    """The one text that an event is stored as."""
    inner = {"actor": ACTOR_MEMBERS, "resource": RESOURCE_MEMBERS}

    def text_of(name: str, value: Any) -> str:
        if name not in inner:
            return canonical_json(value)
        return _members_text(value, inner[name], lambda _, member: canonical_json(member))

    return _members_text(event, EVENT_MEMBERS, text_of)


# A chain


@dataclass(frozen=True)
class Link:
    """How far a chain is checked: keep it, and go on from it after a restart."""

    sequence_number: int
    hash: str


@dataclass(frozen=True)
class _Erased:
    """Details that are gone, until the chain says who took them out."""

    details_hash: str
    content_hash: str
    event_id: str


class ChainVerifier:
    """
    Checks the events of any number of tenants while they are read, each tenant's in the order of
    its chain. A chain begins at its first event, or at the link in `heads` up to which it was
    checked before; with `from_anywhere` at whichever event comes first, whose predecessors are then
    believed.

    `add` answers with what is wrong with an event, or None; reading may go on. `finish` answers
    with the events whose details are gone though no event of the chain says so: an erasure comes
    after what it erases, so that is known at the end. Memory grows with tenants and open erasures
    only.
    """

    def __init__(
        self, heads: Optional[Mapping[str, Link]] = None, *, from_anywhere: bool = False
    ) -> None:
        self.heads: dict[str, Link] = dict(heads or {})
        self._from_anywhere = from_anywhere
        self._erased: dict[tuple[str, int], _Erased] = {}
        self.events = 0

    def add(self, event: EventLike) -> Optional[Break]:
        """Check the next event of its tenant; what is wrong with it, place before content."""
        value, line = _read(event)
        check = _checked(value, line)
        if value is None:
            return check.found
        self.events += 1
        found = self._break_before(value) or check.found
        self._advance(value, check.is_erased)
        return found

    def finish(self) -> list[Break]:
        """What is still open when everything was read."""
        return [
            Break(
                *_wrong("details_hash", erased.details_hash, None),
                tenant,
                sequence,
                erased.event_id,
            )
            for (tenant, sequence), erased in sorted(self._erased.items())
        ]

    def _break_before(self, event: Event) -> Optional[Break]:
        """Whether it follows the event before: number first, then link."""
        tenant, sequence = event["tenant_id"], event["sequence_number"]
        head = self.heads.get(tenant)
        if head is None and self._from_anywhere and sequence > 1:
            head = Link(sequence - 1, event["prev_hash"])
        before = head or Link(0, GENESIS_HASH)
        expected = before.sequence_number + 1
        if sequence > expected:
            return Break("sequence_gap", _span(expected, sequence - 1), "none", tenant, expected)
        if sequence < expected:
            reason = "duplicate_sequence" if sequence == expected - 1 else "out_of_order"
            above = f"a sequence above {before.sequence_number}"
            return _break_at(event, (reason, above, f"sequence {sequence}"))
        if event["prev_hash"] != before.hash:
            return _break_at(event, ("prev_hash_mismatch", before.hash, event["prev_hash"]))
        return None

    def _advance(self, event: Event, is_erased: bool) -> None:
        tenant, sequence = event["tenant_id"], event["sequence_number"]
        if is_erased:
            self._erased[tenant, sequence] = _Erased(
                event["details_hash"], event["content_hash"], event["id"]
            )
        if event["action"] == ERASURE_ACTION:
            self._close_erasure(event)
        head = self.heads.get(tenant)
        if head is None or sequence >= head.sequence_number:
            self.heads[tenant] = Link(sequence, event["hash"])

    def _close_erasure(self, event: Event) -> None:
        """An erasure names what it erased by sequence number and content; no hash covers a time."""
        said = event.get("metadata", {})
        sequence = said.get("sequence_number")
        place = event["tenant_id"], sequence if is_sequence(sequence) else 0
        gone = self._erased.get(place)
        if gone is not None and gone.content_hash == said.get("content_hash"):
            del self._erased[place]


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first} to {last}"

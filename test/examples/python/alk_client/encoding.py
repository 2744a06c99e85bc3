"""Values of a program as JSON bytes. Knows the form of JSON, not that of an event."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import date, datetime, timezone
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, Optional
from uuid import UUID

# Levels that a search for a fault goes down: the service stores 32.
LEVELS_MAX = 64


class UnstorableError(ValueError):
    """A value that has no JSON; the message begins with its path."""


def utc_text(moment: datetime) -> str:
    """RFC 3339 in UTC with microseconds; a time without a zone is local time, as in `datetime`."""
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def plain_value(value: object) -> object:
    """
    What stands for a value that JSON does not have: its usual text. TypeError if there is none.
    """
    if isinstance(value, datetime):
        return utc_text(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, (UUID, Decimal, PurePath)):
        return str(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} has no JSON")


_encode = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=plain_value
).encode


def to_bytes(value: Any) -> bytes:
    """The JSON of a value, UTF-8. UnstorableError names the path of what has none."""
    try:
        return _encode(value).encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        path, problem = _fault_in(value, "", 0) or ("event", str(error))
        raise UnstorableError(f"{path.lstrip('.') or 'event'}: {problem}") from error


def _fault_in(value: object, path: str, level: int) -> Optional[tuple[str, str]]:
    """Where the first value without JSON is, and what it is; None if there is none."""
    if level > LEVELS_MAX:
        return path, f"is nested deeper than {LEVELS_MAX} levels; send less of it"
    if isinstance(value, str):
        return None if _is_text(value) else (path, "holds an unpaired surrogate; replace it")
    if isinstance(value, float) and not math.isfinite(value):
        return path, f"is {value}, which JSON does not have; send it as a string"
    if value is None or isinstance(value, (bool, int, float)):
        return None
    if isinstance(value, Mapping):
        members = ((f"{path}.{key}", key, member) for key, member in value.items())
        for inner, key, member in members:
            if not isinstance(key, str):
                return path, f"has the key {key!r}; keys are strings"
            fault = _fault_in(key, inner, level + 1) or _fault_in(member, inner, level + 1)
            if fault is not None:
                return fault
        return None
    if isinstance(value, (list, tuple)):
        faults = (_fault_in(one, f"{path}[{at}]", level + 1) for at, one in enumerate(value))
        return next((fault for fault in faults if fault is not None), None)
    try:
        return _fault_in(plain_value(value), path, level + 1)
    except TypeError as error:
        return path, f"{error}; send text, a number, true, false, null, a list or a dict"


def _is_text(value: str) -> bool:
    try:
        value.encode("utf-8")
        return True
    except UnicodeEncodeError:
        return False

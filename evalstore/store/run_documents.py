"""Reads the JSON texts with which programs describe runs in progress to each other.

Whoever may write to a shared store can write any text, as can a program of another version. So
each text is read here, once: what is returned has the fields and types that others rely on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from evalstore import __version__
from evalstore.core.display import safe
from evalstore.core.errors import NewerError, StoreError
from evalstore.core.values import Json

FORMAT = 1
"""The format of descriptions. Increase this number when they change."""
LARGEST = 8 * 2**20
"""The most characters of a description."""
NOTED = "noted"
"""The field with the time at which a runner was last heard of, by the clock of the database."""
LEFT = "left"
"""The field that is true when a runner takes no part any more, and will not record the run."""
LEADS = "leads"
"""The field that is true for the runner that has begun the run."""
ENDED = "ended"
"""The field that is true when a runner has nothing left to do."""
RECORDS = "records"
"""The field that is true when the runner that has begun the run begins to record it."""
FACTS = ("asked", "recorded", "judged", "judged_by_checks")
"""The numbers of what is stored."""
NUMBERS = (*FACTS, "failed", "permanent_failures")
COSTS = ("cost", "judge_cost")
ENDS = ("interrupted", "over_budget", "time_is_up", "stopped_at_failure")
CALLS = (
    *("calls", "input_tokens", "output_tokens", "cached_tokens"),
    *("unpriced", "simulated", "local"),
)
"""The numbers of the calls of one model; their cost is `cost`."""
_LATEST = 2**53
"""The last time that is believed, in microseconds since 1970: in the year 2255."""
_TEXT_OPTIONS = ("name", "shard", "maxAge")
_LIST_OPTIONS = ("paths", "tags", "excludeTags", "models", "evaluators")
_COUNT_OPTIONS = ("attempts", "sample", "limit")
_FLAG_OPTIONS = ("changed", "lastFailed", "refresh", "retryErrors", "offline", "keepGoing")


class UnreadableError(ValueError):
    """A text cannot be read; says in words what is wrong."""


def explain(run: str, problem: str, description: str = "") -> StoreError:
    """Return the error for a run in progress that cannot be read.

    A run of another version is not damaged. `run` is its id.
    """
    name = f"run {run[:8]}, which is in progress,"
    described = _peek(description)
    form: Any = described.get("format")
    version: Any = described.get("version")
    if _is_count(form) and form > FORMAT:
        return NewerError(name, f"the format {form} of its description is not known")
    if _is_text(version) and version != __version__:
        return StoreError(
            f"{name} cannot be read: {problem}; it was begun by evalstore {quoted(version)}, and "
            f"this is {__version__}",
            hint="use the same version on all machines",
        )
    return StoreError(
        f"{name} cannot be read: {problem}",
        hint="whoever began it can run again; once no program works on it, the owner of the store "
        f"can delete the row {run} of the table 'shared_runs'",
    )


def quoted(text: str, most: int = 100) -> str:
    """Return a stored text as a message repeats it: in one line, and not too long."""
    return safe(text[:most]) + ("…" if len(text) > most else "")


def as_text(value: Any) -> Any:
    """Return a text of the database that is read as its bytes; other values as they are."""
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        return value


# --- the description of a run


def read_description(text: Any) -> Json:
    """Return the description of a run; raises `UnreadableError`.

    One with a `problem` may lack all that is necessary to join it.
    """
    found = _read_object(text, "its description", 2 * LARGEST)
    if found.get("format") != FORMAT or found["format"].__class__ is not int:
        raise UnreadableError("the format of its description is not known")
    always = ("version",) if found.get("problem") else tuple(_DESCRIPTION)[:-4]
    for name in always:
        if name not in found:
            raise UnreadableError(f"its description has no field '{name}'")
    for name, (holds, words) in _DESCRIPTION.items():
        if name in found and not holds(found[name]):
            raise UnreadableError(f"the field '{name}' of its description {words}")
    if "files" in found and found.get("config") not in found["files"]:
        raise UnreadableError("the settings that its description names are not among its files")
    return {name: found[name] for name in ("format", *_DESCRIPTION) if name in found}


def _peek(text: str) -> Mapping[str, Json]:
    try:
        return _read_object(text, "", 2 * LARGEST)
    except UnreadableError:
        return {}


def _read_object(text: Any, place: str, most: int) -> dict[str, Json]:
    """Return a JSON object whose texts can all be written; raises `UnreadableError`."""
    if text.__class__ is not str:
        raise UnreadableError(f"{place} is not a text")
    if len(text) > most:
        raise UnreadableError(f"{place} is too long")
    try:
        value = json.loads(text, parse_constant=_refuse)
        if "\\u" in text:  # half of a surrogate pair cannot be encoded
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise UnreadableError(f"{place} is not JSON") from None
    if not isinstance(value, dict):
        raise UnreadableError(f"{place} is not an object")
    return value


def _refuse(_constant: str) -> Json:
    raise ValueError


Holds = Callable[[Any], bool]


def _is_text(value: Any) -> bool:
    return value.__class__ is str


def _is_flag(value: Any) -> bool:
    return value.__class__ is bool


def _is_count(value: Any) -> bool:
    return value.__class__ is int and 0 <= value < 2**63


def _is_positive(value: Any) -> bool:
    return _is_count(value) and value > 0


def is_amount(value: Any) -> bool:
    """Return whether a value is a number that an amount of money or seconds can be."""
    return _is_count(value) or (value.__class__ is float and isfinite(value) and value >= 0)


def is_time(value: Any) -> bool:
    """Return whether a value is a time that a clock may show, in microseconds since 1970."""
    return value.__class__ is int and 0 <= value <= _LATEST


def _is_id(value: Any) -> bool:
    return _is_text(value) and len(value) == 32 and not value.strip("0123456789abcdef")


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _or_none(holds: Holds) -> Holds:
    return lambda value: value is None or holds(value)


def _is_commit(value: Any) -> bool:
    if not isinstance(value, list) or len(value) != 2:
        return False
    commit, dirty = value
    return _is_text(commit) and (dirty is None or _is_flag(dirty))


def _is_planned(value: Any) -> bool:
    counts = [value.get("ask", 0), value.get("judge", 0)] if isinstance(value, dict) else [None]
    return all(map(_is_count, counts))


def _object_of(fields: Mapping[str, Holds]) -> Holds:
    """Return whether a value is an object with some of these fields, and no others."""

    def holds(value: Any) -> bool:
        return isinstance(value, dict) and all(
            name in fields and fields[name](inner) for name, inner in value.items()
        )

    return holds


_NO_TEXT, _NO_OBJECT = "is not a text", "is not one that this version knows"
_DESCRIPTION: dict[str, tuple[Holds, str]] = {
    "version": (_is_text, _NO_TEXT),
    "files": (
        lambda value: isinstance(value, dict) and all(map(_is_text, value.values())),
        "does not have the texts of files",
    ),
    "config": (_is_text, _NO_TEXT),
    "overrides": (_is_texts, "is not a list of texts"),
    "cases": (_is_id, "is not an id"),
    "started": (is_time, "is not a time"),
    "selection": (
        _object_of(
            {
                **dict.fromkeys(_TEXT_OPTIONS, _or_none(_is_text)),
                **dict.fromkeys(_LIST_OPTIONS, _is_texts),
                **dict.fromkeys(_COUNT_OPTIONS, _or_none(_is_positive)),
                "seed": _or_none(lambda value: value.__class__ is int),
                **dict.fromkeys(_FLAG_OPTIONS, _is_flag),
            }
        ),
        _NO_OBJECT,
    ),
    "message": (_or_none(_is_text), _NO_TEXT),
    "git": (_or_none(_is_commit), "is not a commit"),
    "options": (
        _object_of(
            {
                "concurrency": _or_none(_is_positive),
                "timeout": _or_none(lambda value: is_amount(value) and value > 0),
                "retries": _or_none(_is_count),
                "judge_only": _is_flag,
                "max_time": _or_none(is_amount),
                "exit_first": _is_flag,
            }
        ),
        _NO_OBJECT,
    ),
    "author": (_or_none(_is_text), _NO_TEXT),
    "sources": (_or_none(_is_id), "is not an id"),
    "planned": (_is_planned, "does not say how much was planned"),
    "problem": (_is_text, _NO_TEXT),
}
"""The fields with what must hold of them; a description may lack the last four."""


# --- what a runner has done


def read_counts(text: Any) -> dict[str, Json]:
    """Return what a runner has noted, with the known fields alone; raises `UnreadableError`."""
    found = _read_object(text, "what one of its programs has noted", 2 * LARGEST)
    counts = {name: found[name] for name in _COUNTS if name in found}
    if wrong := next((name for name, value in counts.items() if not _COUNTS[name](value)), None):
        raise UnreadableError(f"the field '{wrong}' of what one of its programs has noted is wrong")
    if "spending" in counts:
        counts["spending"] = [
            [model, role, {name: spent[name] for name in (*CALLS, "cost") if name in spent}]
            for model, role, spent in counts["spending"]
        ]
    return counts


def _is_spent(value: Any) -> bool:
    if not isinstance(value, list) or len(value) != 3:
        return False
    model, role, spent = value
    return (
        _is_text(model)
        and role in ("candidate", "evaluator")
        and isinstance(spent, dict)
        and all(_is_count(spent.get(name, 0)) for name in CALLS)
        and is_amount(spent.get("cost", 0))
    )


_COUNTS: dict[str, Holds] = {
    **dict.fromkeys(NUMBERS, _is_count),
    **dict.fromkeys(COSTS, is_amount),
    **dict.fromkeys((*ENDS, "priced", LEADS, ENDED, RECORDS, LEFT), _is_flag),
    "failures": lambda value: isinstance(value, dict) and all(map(_is_count, value.values())),
    "spending": lambda value: isinstance(value, list) and all(map(_is_spent, value)),
    NOTED: is_time,
}


def require_amounts(reserved: Any, spent: Any) -> None:
    """Raise `UnreadableError` for amounts that no runner has written."""
    for name, amount in (("reserved", reserved), ("spent", spent)):
        if not is_amount(amount):
            raise UnreadableError(
                f"what one of its programs has {name}, {amount!r:.40} USD, is not an amount"
            )


def read_accounts(text: Any) -> list[str] | None:
    """Return the accounts of a runner; None if they cannot be read."""
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, TypeError, RecursionError):
        return None
    return list(value) if _is_texts(value) else None

"""Reads the JSON texts with which programs describe runs in progress to each other.

Whoever may write to a shared store can write any text, as can a program of another version. So
each text is read here, once: what is returned has the fields and types that others rely on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Literal

from pydantic_core import CoreConfig, SchemaValidator
from pydantic_core import core_schema as shape

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
    described: Mapping[str, Json] = {}
    with suppress(UnreadableError):
        described = _read_object(description, "")
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
    found = _read_object(text, "its description")
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


def _read_object(text: Any, place: str) -> dict[str, Json]:
    """Return a JSON object whose texts can all be written; raises `UnreadableError`."""
    if text.__class__ is not str:
        raise UnreadableError(f"{place} is not a text")
    if len(text) > 2 * LARGEST:
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


def _holds(schema: Any) -> Holds:
    """Return whether a value has the form of a schema of pydantic; nothing is converted."""
    return SchemaValidator(schema, CoreConfig(strict=True)).isinstance_python


def _object_of(fields: Mapping[str, Any], *, others: Literal["forbid", "ignore"] = "forbid") -> Any:
    """Return the schema of an object with some of these fields."""
    members = {name: shape.typed_dict_field(field) for name, field in fields.items()}
    return shape.typed_dict_schema(
        members, total=False, extra_behavior=others, config=CoreConfig(strict=True)
    )


def _list_of(*items: Any) -> Any:
    """Return the schema of a list with exactly these items."""
    return shape.tuple_schema([*items], strict=False)


_TEXT, _FLAG = shape.str_schema(), shape.bool_schema()
_COUNT = shape.int_schema(ge=0, lt=2**63)
_POSITIVE = shape.int_schema(gt=0, lt=2**63)
_ID = shape.str_schema(pattern="^[0-9a-f]{32}$")
_TEXTS = shape.list_schema(_TEXT)
_AMOUNT = shape.float_schema(ge=0, lt=2**63)
_TIME = shape.int_schema(ge=0, le=_LATEST)
_OR_NONE = shape.nullable_schema
is_amount = _holds(_AMOUNT)
"""Returns whether a value is a number that an amount of money or seconds can be."""
is_time = _holds(_TIME)
"""Returns whether a value is a time that a clock may show, in microseconds since 1970."""
_is_text, _is_texts, _is_count = map(_holds, (_TEXT, _TEXTS, _COUNT))
_NO_TEXT, _NO_OBJECT = "is not a text", "is not one that this version knows"
_DESCRIPTION: dict[str, tuple[Holds, str]] = {
    name: (_holds(schema), words)
    for name, schema, words in (
        ("version", _TEXT, _NO_TEXT),
        ("files", shape.dict_schema(_TEXT, _TEXT), "does not have the texts of files"),
        ("config", _TEXT, _NO_TEXT),
        ("overrides", _TEXTS, "is not a list of texts"),
        ("cases", _ID, "is not an id"),
        ("started", _TIME, "is not a time"),
        (
            "selection",
            _object_of(
                {
                    **dict.fromkeys(_TEXT_OPTIONS, _OR_NONE(_TEXT)),
                    **dict.fromkeys(_LIST_OPTIONS, _TEXTS),
                    **dict.fromkeys(_COUNT_OPTIONS, _OR_NONE(_POSITIVE)),
                    "seed": _OR_NONE(shape.int_schema()),
                    **dict.fromkeys(_FLAG_OPTIONS, _FLAG),
                }
            ),
            _NO_OBJECT,
        ),
        ("message", _OR_NONE(_TEXT), _NO_TEXT),
        ("git", _OR_NONE(_list_of(_TEXT, _OR_NONE(_FLAG))), "is not a commit"),
        (
            "options",
            _object_of(
                {
                    "concurrency": _OR_NONE(_POSITIVE),
                    "timeout": _OR_NONE(shape.float_schema(gt=0, lt=2**63)),
                    "retries": _OR_NONE(_COUNT),
                    "judge_only": _FLAG,
                    "max_time": _OR_NONE(_AMOUNT),
                    "exit_first": _FLAG,
                }
            ),
            _NO_OBJECT,
        ),
        ("author", _OR_NONE(_TEXT), _NO_TEXT),
        ("sources", _OR_NONE(_ID), "is not an id"),
        (
            "planned",
            _object_of(dict.fromkeys(("ask", "judge"), _COUNT), others="ignore"),
            "does not say how much was planned",
        ),
        ("problem", _TEXT, _NO_TEXT),
    )
}
"""The fields with what must hold of them; a description may lack the last four."""


# --- what a runner has done


def read_counts(text: Any) -> dict[str, Json]:
    """Return what a runner has noted, with the known fields alone; raises `UnreadableError`."""
    found = _read_object(text, "what one of its programs has noted")
    counts = {name: found[name] for name in _COUNTS if name in found}
    if wrong := next((name for name, value in counts.items() if not _COUNTS[name](value)), None):
        raise UnreadableError(f"the field '{wrong}' of what one of its programs has noted is wrong")
    if "spending" in counts:
        counts["spending"] = [
            [model, role, {name: spent[name] for name in (*CALLS, "cost") if name in spent}]
            for model, role, spent in counts["spending"]
        ]
    return counts


_SPENT = _object_of({**dict.fromkeys(CALLS, _COUNT), "cost": _AMOUNT}, others="ignore")
_ROLE = shape.literal_schema(["candidate", "evaluator"])
_COUNTS: dict[str, Holds] = {
    **dict.fromkeys(NUMBERS, _is_count),
    **dict.fromkeys(COSTS, is_amount),
    **dict.fromkeys((*ENDS, "priced", LEADS, ENDED, RECORDS, LEFT), _holds(_FLAG)),
    "failures": _holds(shape.dict_schema(_TEXT, _COUNT)),
    "spending": _holds(shape.list_schema(_list_of(_TEXT, _ROLE, _SPENT))),
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

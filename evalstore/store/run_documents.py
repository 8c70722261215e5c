"""Reads the JSON texts with which programs describe runs in progress to each other.

Whoever may write to a shared store can write any text, as can a program of another version. So
each text is read here, once: what is returned has the fields and types that others rely on.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal

from pydantic_core import CoreConfig, SchemaValidator, ValidationError
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


class UnreadableError(ValueError):
    """A text cannot be read; says in words what is wrong."""


def explain(run: str, problem: str, description: Any = "") -> StoreError:
    """Return the error for a run in progress that cannot be read.

    A run of another version is not damaged. `run` is its id.
    """
    name = f"run {run[:8]}, which is in progress,"
    described: Mapping[str, Json] = {}
    with suppress(UnreadableError):
        described = _read(_MADE_BY, description, "")
    if described.get("format", 0) > FORMAT:
        form = described["format"]
        return NewerError(name, f"the format {form} of its description is not known")
    if (version := described.get("version", __version__)) != __version__:
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


def read_description(text: Any) -> Json:
    """Return the description of a run, with the known fields alone; raises `UnreadableError`.

    One with a `problem` may lack all that is necessary to join it.
    """
    found = _read(_DESCRIPTION, text, "its description")
    if not found.get("problem"):
        found = _read(_JOINABLE, text, "its description")
        if found["config"] not in found["files"]:
            raise UnreadableError("the field 'config' of its description is not valid")
    return found


def read_counts(text: Any) -> dict[str, Json]:
    """Return what a runner has noted, with the known fields alone; raises `UnreadableError`."""
    noted: dict[str, Json] = _read(_COUNTS, text, "what one of its programs has noted")
    return noted


def read_accounts(text: Any) -> list[str] | None:
    """Return the accounts of a runner; None if they cannot be read."""
    try:
        return list(_read(_ACCOUNTS, as_text(text), ""))
    except UnreadableError:
        return None


def _read(form: SchemaValidator, text: Any, place: str) -> Any:
    """Return a JSON text of a form, without fields that are not known.

    Raises `UnreadableError`, which calls the text `place`.
    """
    try:
        if text.__class__ is str and len(text) <= 2 * LARGEST:
            return form.validate_json(text)
    except (ValidationError, UnicodeEncodeError) as error:
        if isinstance(error, ValidationError) and (field := error.errors()[0]["loc"]):
            raise UnreadableError(f"the field '{field[0]}' of {place} is not valid") from None
    raise UnreadableError(f"{place} is not a JSON object")


def require_amounts(reserved: Any, spent: Any) -> None:
    """Raise `UnreadableError` for amounts that no runner has written."""
    for name, amount in (("reserved", reserved), ("spent", spent)):
        if not is_amount(amount):
            raise UnreadableError(
                f"what one of its programs has {name}, {amount!r:.40} USD, is not an amount"
            )


_STRICT = CoreConfig(strict=True)
"""Nothing is converted."""


def _object_of(
    fields: Mapping[str, Any],
    *always: str,
    others: Literal["forbid", "ignore"] = "forbid",
) -> Any:
    """Return the schema of an object with some of these fields, and `always` with some."""
    members = {
        name: shape.typed_dict_field(field, required=name in always)
        for name, field in fields.items()
    }
    return shape.typed_dict_schema(members, extra_behavior=others, config=_STRICT)


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
is_amount = SchemaValidator(_AMOUNT, _STRICT).isinstance_python
"""Returns whether a value is a number that an amount of money or seconds can be."""
is_time = SchemaValidator(_TIME, _STRICT).isinstance_python
"""Returns whether a value is a time that a clock may show, in microseconds since 1970."""
_ACCOUNTS = SchemaValidator(_TEXTS, _STRICT)
SELECTION = {
    **dict.fromkeys(("name", "shard", "maxAge"), _OR_NONE(_TEXT)),
    **dict.fromkeys(("paths", "tags", "excludeTags", "models", "evaluators"), _TEXTS),
    **dict.fromkeys(("attempts", "sample", "limit"), _OR_NONE(_POSITIVE)),
    "seed": _OR_NONE(shape.int_schema()),
    **dict.fromkeys(
        ("changed", "lastFailed", "refresh", "retryErrors", "offline", "keepGoing"), _FLAG
    ),
}
"""The options that select cases, with their forms."""
_TO_JOIN = {
    "files": shape.dict_schema(_TEXT, _TEXT),
    "config": _TEXT,
    "overrides": _TEXTS,
    "cases": _ID,
    "started": _TIME,
    "selection": _object_of(SELECTION),
    "message": _OR_NONE(_TEXT),
    "git": _OR_NONE(_list_of(_TEXT, _OR_NONE(_FLAG))),
    "options": _object_of(
        {
            "concurrency": _OR_NONE(_POSITIVE),
            "timeout": _OR_NONE(shape.float_schema(gt=0, lt=2**63)),
            "retries": _OR_NONE(_COUNT),
            "judge_only": _FLAG,
            "max_time": _OR_NONE(_AMOUNT),
            "exit_first": _FLAG,
        }
    ),
}
"""The fields that a program needs to take part."""
_MADE_BY = SchemaValidator(
    _object_of({"format": _COUNT, "version": _TEXT}, others="ignore"), _STRICT
)
_FIELDS = {
    "format": shape.int_schema(ge=FORMAT, le=FORMAT),
    "version": _TEXT,
    **_TO_JOIN,
    "author": _OR_NONE(_TEXT),
    "sources": _OR_NONE(_ID),
    "planned": _object_of(dict.fromkeys(("ask", "judge"), _COUNT), others="ignore"),
    "problem": _TEXT,
}
_DESCRIPTION, _JOINABLE = (
    SchemaValidator(_object_of(_FIELDS, "format", "version", *more, others="ignore"), _STRICT)
    for more in ((), _TO_JOIN)
)
_SPENT = _object_of({**dict.fromkeys(CALLS, _COUNT), "cost": _AMOUNT}, others="ignore")
_ROLE = shape.literal_schema(["candidate", "evaluator"])
_COUNTS = SchemaValidator(
    _object_of(
        {
            **dict.fromkeys(NUMBERS, _COUNT),
            **dict.fromkeys(COSTS, _AMOUNT),
            **dict.fromkeys((*ENDS, "priced", LEADS, ENDED, RECORDS, LEFT), _FLAG),
            "failures": shape.dict_schema(_TEXT, _COUNT),
            "spending": shape.list_schema(_list_of(_TEXT, _ROLE, _SPENT)),
            NOTED: _TIME,
        },
        others="ignore",
    ),
    _STRICT,
)

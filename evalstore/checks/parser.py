"""A check as its author wrote it, to its canonical form; or what is wrong with it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping

from evalstore.checks.base import CheckArguments, CheckType
from evalstore.checks.normalization import STEPS
from evalstore.checks.registry import find_kind, known_kinds
from evalstore.display import shorten
from evalstore.errors import FileProblem
from evalstore.files.fields import is_finite, suggest
from evalstore.values import Json

COMMON = ("not", "actual", "ignoreCase", "normalize", "pass", "weight", "name", "scope")
"""Settings that all checks have."""
PATH = "jsonPath"
"""The check that holds another one."""
_BOUND = re.compile(r"(>=|>|<=|<|==)\s*([0-9.eE+-]+)\Z")
_EMPTY: tuple[Json, ...] = ("", [], {})


def read_check(
    given: Json,
    line: int | None = None,
    schema_id: Callable[[str], str] | None = None,
    find_file: Callable[[dict[str, Json]], Json] | None = None,
) -> dict[str, Json]:
    """A check in canonical form; raises `FileProblem`.

    It is written `type: value`, with further settings beside it or without; as
    `{type: …, …}`; or as the type alone. `schema_id` turns the id of a schema of the
    workspace into that of its version, or raises `FileProblem`; `find_file` does so with the
    file that a check runs, from its settings.
    """
    name, settings = split(given, line)
    kind = find_kind(name)
    assert kind is not None
    arguments = CheckArguments(settings, line, _example(kind, name))
    common = {} if kind.by_models else _read_common(arguments, kind, name)
    arguments.allow_empty = arguments.flag("allowEmpty")
    own = _read_own(arguments, kind, name, settings)
    if schema_id is not None and isinstance(own.get("schema"), str):
        own["schema"] = schema_id(own["schema"])
    if find_file is not None and name == "python":
        own["file"] = find_file(own)
    return {"type": name, "revision": kind.revision, **own, **common}


class Form:
    """A check that is read again and again with other values of its own settings."""

    def __init__(self, given: Json, line: int | None) -> None:
        """`given` could be read, and no setting of `COMMON` is filled."""
        self.name, settings = split(given, line)
        kind = find_kind(self.name)
        assert kind is not None
        self._kind, self._line = kind, line
        arguments = CheckArguments(settings, line)
        self._common = _read_common(arguments, kind, self.name)
        self._allow_empty = arguments.flag("allowEmpty")
        self.settings = {
            name: value for name, value in settings.items() if name not in (*COMMON, "allowEmpty")
        }
        """Those that may have other values; by the names that `type: value` stands for, too."""

    def read(self, settings: dict[str, Json]) -> dict[str, Json]:
        """The canonical form with these values; raises `FileProblem`."""
        arguments = CheckArguments(settings, self._line, _example(self._kind, self.name))
        arguments.allow_empty = self._allow_empty
        own = _read_own(arguments, self._kind, self.name, settings)
        return {"type": self.name, "revision": self._kind.revision, **own, **self._common}


def _read_own(
    arguments: CheckArguments, kind: CheckType, name: str, settings: Mapping[str, Json]
) -> dict[str, Json]:
    """The settings that only this type of check has."""
    if kind.main and not arguments.allow_empty and settings.get(kind.main) in _EMPTY:
        raise FileProblem(
            f"the check '{name}' has an empty '{kind.main}'",
            arguments.line,
            hint="write 'allowEmpty: true' if this is intended",
        )
    own = kind.read(arguments)
    arguments.finish(name)
    return own


def packages_of(given: Json) -> Iterator[tuple[str, str]]:
    """What a check and the one in it need beside evalstore: pairs of a type and a package."""
    try:
        name, settings = split(given, None)
    except FileProblem:  # it is reported when the check is read
        return
    kind = find_kind(name)
    if kind and kind.package:
        yield name, kind.package
    if name == PATH:
        beside = {setting: settings[setting] for setting in settings if find_kind(setting)}
        yield from packages_of(settings.get("check", beside))


def split(given: Json, line: int | None) -> tuple[str, dict[str, Json]]:
    """The type of a check, and its settings by name; raises `FileProblem`."""
    if isinstance(given, str):
        given = {"type": given}
    if not isinstance(given, dict) or not given:
        raise FileProblem(
            "a check must be 'type: value' or a mapping with a 'type'",
            line,
            hint="as in '- contains: Paris'",
        )
    settings = dict(given)
    if "type" in settings and "type" not in _types_in(settings):
        name = settings.pop("type")
        if not isinstance(name, str) or find_kind(name) is None:
            raise _unknown(str(name), line)
        return name, settings
    types = _types_in(settings)
    if PATH in types and len(types) == 2:  # the other one is what is checked at the path
        types = [PATH]
    if len(types) > 1:
        raise FileProblem(f"these are two checks in one: '{types[0]}' and '{types[1]}'", line)
    if not types:
        names = [name for name in settings if name not in COMMON]
        raise _unknown(names[0] if names else next(iter(settings)), line)
    name = types[0]
    value = settings.pop(name)
    kind = find_kind(name)
    assert kind is not None
    if isinstance(value, dict) and _are_settings(kind, value, alone=not settings):
        for twice in value.keys() & settings.keys():
            raise FileProblem(f"'{twice}' is given twice, in '{name}' and beside it", line)
        return name, {**value, **settings}
    if kind.main is not None:
        if value is not None or kind.main not in settings:
            settings = {kind.main: value, **settings}
    elif value is False:
        raise FileProblem(f"to turn a check round, write '{name}' with 'not: true'", line)
    elif value not in (None, True):
        example = _example(kind, name)
        hint = f"as in '{example}'" if example else f"write '- {name}', with nothing behind it"
        raise FileProblem(f"the check '{name}' takes no value", line, hint=hint)
    return name, settings


def _types_in(settings: Mapping[str, Json]) -> list[str]:
    return [name for name in settings if name not in COMMON and find_kind(name) is not None]


def _are_settings(kind: CheckType, value: dict[str, Json], *, alone: bool) -> bool:
    """Whether the value of `type: {…}` is the settings, not a value that is a mapping."""
    return not kind.takes_mapping or (alone and (kind.main is None or kind.main in value))


def _example(kind: CheckType, name: str) -> str | None:
    return f"{name}: {kind.example}" if kind.example else None


def _unknown(name: str, line: int | None) -> FileProblem:
    hint = suggest(name, known_kinds(), "checks")
    return FileProblem(f"there is no check '{name}'", line, hint=hint)


def _read_common(arguments: CheckArguments, kind: CheckType, name: str) -> dict[str, Json]:
    found: dict[str, Json] = {}
    if arguments.has_none_of(COMMON) and not kind.graded and not kind.joint:
        return found
    if arguments.flag("not"):
        found["not"] = True
    if arguments.has("actual"):
        found["actual"] = arguments.take("actual")
    if arguments.flag("ignoreCase"):
        found["ignoreCase"] = True
    if arguments.has("normalize"):
        found["normalize"] = _read_steps(arguments)
    if (bound := _read_bound(arguments)) is not None:
        found["pass"] = bound
    elif kind.graded:
        raise arguments.problem(
            f"the check '{name}' gives a score, so it needs 'pass'", "as in 'pass: \">= 0.8\"'"
        )
    weight = arguments.number("weight", 1)
    if weight is None or not is_finite(weight) or weight <= 0:
        raise arguments.problem("'weight' must be a number above 0")
    if weight != 1:
        found["weight"] = weight
    if arguments.has("name"):
        found["name"] = arguments.text("name")
    scope = arguments.choice("scope", ("answer", "case", "group"), "answer")
    if kind.joint and scope == "answer":
        raise arguments.problem(
            f"the check '{name}' looks at several answers, so it needs a 'scope'",
            "write 'scope: case' (all runs of a row) or 'scope: group' (all rows)",
        )
    if scope not in (None, "answer"):
        found["scope"] = scope
    return found


def _read_steps(arguments: CheckArguments) -> list[str]:
    steps = arguments.texts("normalize")
    for step in steps:
        if step not in STEPS:
            hint = suggest(step, STEPS, "steps")
            raise arguments.problem(f"'normalize' knows no step '{step}'", hint)
    return list(dict.fromkeys(steps))


def _read_bound(arguments: CheckArguments) -> str | None:
    value = arguments.take("pass")
    return None if value is None else canonical_bound(value, arguments)


def canonical_bound(value: Json, arguments: CheckArguments) -> str:
    """What a score must be for a pass, as in `>= 0.8`; a number alone is the least."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = f">= {value}"
    found = _BOUND.match(value.strip()) if isinstance(value, str) else None
    try:
        number = float(found[2]) if found else math.nan
    except ValueError:
        number = math.nan
    if found is None or not is_finite(number):
        raise arguments.problem(f"'pass' cannot be {shorten(str(value))}", "as in '\">= 0.8\"'")
    return f"{found[1]} {number:g}"


def reaches(score: float, bound: str) -> bool:
    """Whether a score is within a bound in canonical form, up to the rounding of floats."""
    operator, number = bound.split()
    off = score - float(number)
    if abs(off) < 1e-9:
        return operator in (">=", "<=", "==")
    return off > 0 if operator in (">=", ">") else off < 0 if operator in ("<=", "<") else False

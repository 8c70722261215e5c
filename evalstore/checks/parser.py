"""Reads a check as its author wrote it into its canonical form; fills in the templates in it.

The check types are those of this package and those of plug-ins. A plug-in names a `CheckType` in
the entry point group `evalstore.checks`; it cannot replace a type of this package.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec

from evalstore.checks.base import (
    ANYWHERE,
    STEPS,
    CheckArguments,
    CheckExample,
    CheckSetting,
    CheckType,
    NestedChecks,
    canonical_bound,
    unknown_setting,
)
from evalstore.checks.types import (
    consistency,
    expression,
    json,
    judge,
    number,
    python,
    text,
    tool_calls,
)
from evalstore.core.display import as_text
from evalstore.core.errors import EvalstoreError, FileProblem
from evalstore.core.values import Json, TestVersion
from evalstore.files.fields import is_finite, is_json, nearest, suggest

GROUP = "evalstore.checks"

_OWN: Mapping[str, CheckType] = {
    **text.KINDS,
    **number.KINDS,
    **json.KINDS,
    **tool_calls.KINDS,
    **expression.KINDS,
    **consistency.KINDS,
    **judge.KINDS,
    **python.KINDS,
}


def find_kind(name: str) -> CheckType | None:
    """Return the check type of this name."""
    return _OWN.get(name) or _plugged_in().get(name)


def known_kinds() -> Mapping[str, CheckType]:
    """Return all check types by name."""
    return {**_plugged_in(), **_OWN}


@cache
def is_installed(package: str) -> bool:
    """Return whether a package that a check needs is installed; it is not imported."""
    return find_spec(package) is not None


@cache
def _plugged_in() -> Mapping[str, CheckType]:
    from importlib.metadata import entry_points  # with 40 modules, for zip files and mail headers

    plugins = {point.name: point.load() for point in entry_points(group=GROUP)}
    return {name: kind for name, kind in plugins.items() if isinstance(kind, CheckType)}


Place = tuple[str | int, ...]
"""The path to a nested value: keys of mappings and indexes of lists."""


class DataMapping(dict[str, Json]):
    """A mapping from data, which is always a value and never read as settings."""

    __slots__ = ()


def templates_in(value: Json, place: Place = ()) -> Iterator[tuple[Place, str]]:
    """Yield the texts that are templates, each with its place."""
    if isinstance(value, str):
        if "{{" in value or "{%" in value:
            yield place, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from templates_in(inner, (*place, name))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from templates_in(inner, (*place, number))


def value_at(value: Json, place: Place) -> Json:
    """Return the value at a place."""
    for step in place:
        value = value[step]
    return value


def fill_in(written: dict[str, Json], values: Iterable[tuple[Place, Json]]) -> dict[str, Json]:
    """Return `written` with these values at their places; mappings among them are marked as data.

    Mappings and lists that contain the places are copied; the rest is shared.
    """
    filled: Json = written.copy()
    copies: dict[Place, Json] = {}
    for place, value in values:
        target = filled
        for end in range(1, len(place)):
            way = place[:end]
            if way not in copies:
                copies[way] = target[way[-1]] = target[way[-1]].copy()
            target = copies[way]
        target[place[-1]] = DataMapping(value) if isinstance(value, dict) else value
    result: dict[str, Json] = filled
    return result


def plain_copy(value: Json) -> Json:
    """Return a deep copy in which mappings from data are plain ones."""
    if isinstance(value, dict):
        return {name: plain_copy(inner) for name, inner in value.items()}
    return [plain_copy(inner) for inner in value] if isinstance(value, list) else value


COMMON = ("not", "actual", "ignoreCase", "normalize", "pass", "weight", "name", "scope")
"""Settings that all checks have."""
PATH = "jsonPath"
"""The check type that contains a nested check."""
_PLACES_OF_CHECKS: tuple[Place, ...] = ((), (PATH,), ("check",), (PATH, "check"))
"""The places of a check and of its nested check."""


def read_check(definition: Json, line: int | None = None) -> dict[str, Json]:
    """Return a check in canonical form; raises `FileProblem`.

    It is written as `type: value`, with or without further settings, as `{type: …, …}`, or as
    the type alone.
    """
    name, settings = split(definition, line)
    kind = find_kind(name)
    assert kind is not None
    arguments = CheckArguments(settings, line, _example(kind, name), _NESTED)
    try:
        common = {} if kind.by_models else _read_common(arguments, kind, name)
        arguments.allow_empty = arguments.flag("allowEmpty")
        if kind.main and not arguments.allow_empty and arguments.is_empty(kind.main):
            raise arguments.problem(
                f"the check '{name}' has an empty '{kind.main}'",
                "write 'allowEmpty: true' if this is intended",
            )
        own = kind.read(arguments)
        arguments.finish(name)
    except FileProblem:
        _raise_unknown_setting(name, kind, settings, line)
        raise
    return {"type": name, "revision": kind.revision, **own, **common}


def _raise_unknown_setting(
    name: str, kind: CheckType, given: Iterable[str], line: int | None
) -> None:
    """Raise the problem of an unknown name, if there is one, in place of another of the settings.

    A misspelt setting is usually the cause: the one it was meant to be is missing.
    """
    from evalstore.checks.descriptions import common_settings, describe_check, is_described

    own = [each.name for each in describe_check(name, kind).settings]
    known = {*own, *(each.name for each in common_settings(kind))}
    unknown = [each for each in given if each not in known and find_kind(each) is None]
    if unknown and is_described(name, kind):
        if name == PATH and nearest(unknown[0], known_kinds()):
            known = set(known_kinds())
        raise unknown_setting(name, unknown[0], known, line) from None


_NESTED = NestedChecks(lambda name: find_kind(name) is not None, read_check)


def packages_of(definition: Json) -> Iterator[tuple[str, str]]:
    """Yield the packages that a check and its nested check need: pairs of a type and a package."""
    try:
        name, settings = split(definition, None)
    except FileProblem:  # reported when the check is read
        return
    kind = find_kind(name)
    if kind and kind.package:
        yield name, kind.package
    if name == PATH:
        beside = {setting: settings[setting] for setting in settings if find_kind(setting)}
        yield from packages_of(settings.get("check", beside))


def split(definition: Json, line: int | None) -> tuple[str, dict[str, Json]]:
    """Return the type of a check, and its settings by name; raises `FileProblem`."""
    if isinstance(definition, str):
        definition = {"type": definition}
    if not isinstance(definition, dict) or not definition:
        raise FileProblem(
            "a check must be 'type: value' or a mapping with a 'type'",
            line,
            hint="as in '- contains: Paris'",
        )
    settings = dict(definition)
    if "type" in settings and "type" not in _types_in(settings):
        name = settings.pop("type")
        if not isinstance(name, str) or find_kind(name) is None:
            raise _unknown(str(name), line)
        return name, settings
    types = _types_in(settings)
    if PATH in types and len(types) == 2:  # the other type is the check at the path
        types = [PATH]
    if len(types) > 1:
        raise FileProblem(f"these are two checks in one: '{types[0]}' and '{types[1]}'", line)
    if not types:
        names = [name for name in settings if name not in COMMON]
        name = names[0] if names else next(iter(settings))
        raise _unknown(name, line, settings[name])
    name = types[0]
    value = settings.pop(name)
    kind = find_kind(name)
    assert kind is not None
    if _are_settings(kind, value, alone=not settings):
        for twice in value.keys() & settings.keys():
            raise FileProblem(f"'{twice}' is given twice, in '{name}' and beside it", line)
        return name, {**value, **settings}
    if kind.main is not None:
        if value is not None or kind.main not in settings:
            settings = {kind.main: value, **settings}
    elif value is False:
        raise FileProblem(f"to reverse a check, write '{name}' with 'not: true'", line)
    elif value not in (None, True):
        example = _example(kind, name)
        hint = f"as in '{example}'" if example else f"write '- {name}', with nothing behind it"
        raise FileProblem(f"the check '{name}' takes no value", line, hint=hint)
    return name, settings


def _types_in(settings: Mapping[str, Json]) -> list[str]:
    return [name for name in settings if name not in COMMON and find_kind(name) is not None]


def _are_settings(kind: CheckType, value: Json, *, alone: bool) -> bool:
    """Return whether the mapping in `type: {…}` contains settings and is not itself a value."""
    if not isinstance(value, dict) or isinstance(value, DataMapping):
        return False
    return not kind.takes_mapping or (alone and (kind.main is None or kind.main in value))


def is_place_of_settings(place: Place) -> bool:
    """Return whether a mapping at this place is read as settings, unless it is from data."""
    *outer, name = place
    kind = find_kind(name) if isinstance(name, str) and name not in COMMON else None
    return kind is not None and not kind.takes_mapping and tuple(outer) in _PLACES_OF_CHECKS


def places_as_written(definition: Json) -> Iterator[tuple[Place, str]]:
    """Yield the places of expected values and choices that keep their form in YAML, with a kind."""
    for outer in _PLACES_OF_CHECKS:
        check = definition
        for name in outer:
            check = check.get(name) if isinstance(check, dict) else None
        if not isinstance(check, dict):
            continue
        for name in (*_types_in(check), *(("type",) if "type" in check else ())):
            named = check["type"] if name == "type" else name
            kind = find_kind(named) if isinstance(named, str) else None
            inside = check[name] if isinstance(check[name], dict) else check
            if kind is not None and kind.by_models:
                own = (*outer, name) if inside is check[name] else outer
                lists = [each for each in ("choices", "pass") if isinstance(inside.get(each), list)]
                yield from (((*own, each), "texts") for each in lists)
            if kind is None or kind.as_written is None:
                continue
            own = (name, "expected") if isinstance(check[name], dict) else (name,)
            yield (*outer, *own), kind.as_written
            yield (*outer, "expected"), kind.as_written


def _example(kind: CheckType, name: str) -> str | None:
    return f"{name}: {kind.example}" if kind.example else None


def _unknown(name: str, line: int | None, value: Json = None) -> FileProblem:
    return FileProblem(f"unknown check '{name}'", line, hint=suggest_check(name, value))


def _read_common(arguments: CheckArguments, kind: CheckType, name: str) -> dict[str, Json]:
    settings = arguments.flags("not", "ignoreCase")
    if arguments.has("actual"):
        settings["actual"] = arguments.take("actual")
        if not is_json(settings["actual"]):
            raise arguments.problem("'actual' holds a number that is not finite")
    if arguments.has("normalize"):
        steps = arguments.texts("normalize")
        for step in (step for step in steps if step not in STEPS):
            hint = suggest(step, STEPS, "steps")
            raise arguments.problem(f"'normalize' has no step '{step}'", hint)
        settings["normalize"] = list(dict.fromkeys(steps))
    if (bound := arguments.take("pass")) is not None:
        settings["pass"] = canonical_bound(bound, arguments)
    elif kind.graded:
        raise arguments.problem(
            f"the check '{name}' gives a score, so it needs 'pass'", "as in 'pass: \">= 0.8\"'"
        )
    weight = arguments.number("weight", 1)
    if weight is None or not is_finite(weight) or weight <= 0:
        raise arguments.problem("'weight' must be a number above 0")
    if weight != 1:
        settings["weight"] = weight
    if arguments.has("name"):
        settings["name"] = arguments.text("name")
    scope = arguments.chosen("scope", ("answer", "case", "group"))
    if kind.joint and not scope:
        raise arguments.problem(
            f"the check '{name}' looks at several answers, so it needs a 'scope'",
            "write 'scope: case' (all conversations of a row) or 'scope: group' (all rows)",
        )
    return settings | scope


# --- checks that follow from the schema and the special tags of a test


def implied_checks(test: TestVersion) -> tuple[Json, ...]:
    """Return the checks that follow from the schema and the special tags of a test."""
    checks: list[Json] = []
    if test.schema:
        checks.append(_canonical("jsonSchema", schema=test.schema, fenced=ANYWHERE))
    elif "_json_mode" in test.special_tags:
        checks.append(_canonical("json"))
    if "_tools_only" in test.special_tags:
        checks.append(_canonical("toolCalls"))
    return tuple(checks)


def _canonical(name: str, **settings: Json) -> Json:
    kind = find_kind(name)
    assert kind is not None
    return {"type": name, "revision": kind.revision, **settings}


# --- hints on types of checks that do not exist: the nearest one, the opposite of one, or a list


_PREFIXES = {"i": ["ignoreCase"], "not": ["not"], "noti": ["ignoreCase", "not"]}
"""Beginnings of promptfoo's names, such as `not-icontains`, with the settings that they mean."""


def suggest_check(name: str, value: Json = None) -> str:
    """Return a hint; `value` is what is written behind an unknown type.

    The opposite of a check, such as promptfoo's `not-contains`, is the check with `not: true`.
    """
    word, _, rest = name.partition(" ")
    if rest and find_kind(word):
        return f"write '{word}: {rest}'"
    inner = next(filter(find_kind, value), "") if isinstance(value, dict) else value
    kinds = {kind.lower(): kind for kind in known_kinds()}
    letters = re.sub("[-_ ]", "", f"not{inner}" if name == "not" else name).lower()
    for prefix, settings in _PREFIXES.items():
        kind = kinds.get(letters.removeprefix(prefix)) if letters.startswith(prefix) else None
        if kind:
            first = f"type: {kind}" if known_kinds()[kind].main is None else f"{kind}: …"
            return f"write {{{', '.join([first, *(f'{each}: true' for each in settings)])}}}"
    if name == "not":
        return "write 'not: true' beside a check"
    if "rubric" in name.lower():  # as promptfoo has 'llm-rubric'
        return "write the rubric as text above the block: a judge applies it"
    return suggest(name, known_kinds(), "checks")


# --- the check types, as help shows them

_AS_SETTINGS = {"json_as": lambda settings: [*map(_setting, settings)]}


@dataclass(frozen=True, slots=True)
class CheckExplanation:
    """A check type as help shows it."""

    type: str
    revision: int
    description: str
    """When it passes."""
    notes: str
    main: str | None
    """The setting that `type: value` sets; None if the type has no value."""
    settings: tuple[CheckSetting, ...] = field(metadata=_AS_SETTINGS)
    common: tuple[CheckSetting, ...] = field(
        metadata={"json_name": "commonSettings", **_AS_SETTINGS}
    )
    """The settings that all checks have; those that it requires are marked."""
    examples: tuple[CheckExample, ...] = field(default=())


def explain_check(name: str) -> CheckExplanation:
    """Return the explanation of a check type; raises `EvalstoreError` for an unknown name."""
    kind = find_kind(name)
    if kind is None:
        raise EvalstoreError(f"unknown check '{name}'", hint=suggest_check(name))
    return _explain(name, kind)


def explain_checks() -> list[CheckExplanation]:
    """Return the explanations of all check types, by name."""
    return [_explain(name, kind) for name, kind in sorted(known_kinds().items())]


def _explain(name: str, kind: CheckType) -> CheckExplanation:
    from evalstore.checks.descriptions import common_settings, describe_check

    description = describe_check(name, kind)
    required = {"pass"} if kind.graded else {"scope"} if kind.joint else set()
    return CheckExplanation(
        name,
        kind.revision,
        description.summary,
        description.notes,
        kind.main,
        description.settings,
        tuple(
            setting._replace(required=True, default=None) if setting.name in required else setting
            for setting in common_settings(kind)
        ),
        description.examples,
    )


def _setting(setting: CheckSetting) -> dict[str, Json]:
    return {
        "name": setting.name,
        "type": setting.type.words,
        "schema": dict(setting.type.schema),
        "required": setting.required,
        "default": setting.default,
        "description": setting.description,
    }


def default_text(setting: CheckSetting) -> str:
    """Return the default of a setting in words; empty when there is none."""
    if setting.required:
        return "required"
    return "" if setting.default is None else as_text(setting.default)


def example_text(answer: Json) -> str:
    """Return an answer of an example in words."""
    if isinstance(answer, list):
        return " / ".join(map(str, answer))
    if not isinstance(answer, dict):
        return str(answer)
    if calls := answer.get("toolCalls"):
        words = [f"{call['name']}({as_text(call['arguments'])})" for call in calls]
        return f"calls {', '.join(words)}"
    (name, value), *_ = answer.items()
    units = {"latency": "{} seconds", "cost": "${}", "tokens": "{} tokens"}
    return units.get(name, "{}").format(value)

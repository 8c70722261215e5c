"""Checks of JSON: `json`, `jsonSchema`, `jsonEquals`, `jsonSubset` and `jsonPath`."""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

from evalstore.checks.base import (
    ANYWHERE,
    CheckArguments,
    CheckFinding,
    CheckInput,
    CheckType,
    holds,
    is_bare,
    parse_answer,
    shown,
)
from evalstore.core.display import difference_at, first_difference, shorten
from evalstore.core.errors import NotRunError
from evalstore.core.values import Json
from evalstore.files.fields import is_json, suggest
from evalstore.files.processes.limited_calls import LimitReached, call

_KEY_SHOWN = 60
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class JsonDifference(NamedTuple):
    """The first difference of a value from an expected one."""

    place: str
    """Where it is, as JMESPath writes it; empty: the whole value."""
    expected: str
    actual: str
    texts: tuple[str, str] | None = None
    """Both texts, whole and in the case in which they are written, if two texts differ."""
    at: int = 0
    """Where the compared texts differ first."""

    def __str__(self) -> str:
        place = f"at {self.place}: " if self.place else ""
        if self.texts:
            return place + difference_at(*self.texts, self.at)
        return f"{place}expected {self.expected}, found {self.actual}"


@dataclass(frozen=True, slots=True)
class JsonComparison:
    """The rules by which a value agrees with an expected one.

    1 equals 1.0, true does not equal 1, and null equals only null.
    """

    prepare: Callable[[str], str] = lambda text: text
    """Normalizes texts before they are compared; keys are not changed."""
    subset: bool = False
    """Whether additional keys and elements of lists are allowed."""
    any_order: bool = False
    """Whether the order of lists is ignored."""
    quote: Callable[[str], str] = lambda text: text
    """Normalizes texts that a difference quotes: as `prepare`, but without changes of case."""

    def agrees(self, expected: Json, actual: Json) -> bool:
        """Return whether a value is as expected."""
        if isinstance(expected, dict):
            return (
                isinstance(actual, dict)
                and (self.subset or len(expected) == len(actual))
                and all(
                    key in actual and self.agrees(value, actual[key])
                    for key, value in expected.items()
                )
            )
        if isinstance(expected, list):
            return isinstance(actual, list) and self._lists_agree(expected, actual)
        if isinstance(expected, str):
            return isinstance(actual, str) and self._key(expected) == self._key(actual)
        if isinstance(expected, bool) or expected is None:
            return actual is expected
        is_number = isinstance(actual, int | float) and not isinstance(actual, bool)
        return is_number and bool(expected == actual)

    def difference(self, expected: Json, actual: Json, place: str = "") -> JsonDifference | None:
        """Return the first difference, or None. `place` is that of the values."""
        if isinstance(expected, dict) and isinstance(actual, dict):
            return self._of_mappings(expected, actual, place)
        if isinstance(expected, list) and isinstance(actual, list):
            return self._of_lists(expected, actual, place)
        if self.agrees(expected, actual):
            return None
        values = shown(expected), shown(actual)
        if not (isinstance(expected, str) and isinstance(actual, str)):
            return JsonDifference(place, *values)
        at = first_difference(self.prepare(expected), self.prepare(actual))
        return JsonDifference(place, *values, (self.quote(expected), self.quote(actual)), at)

    def _of_mappings(
        self, expected: dict[str, Json], actual: Json, place: str
    ) -> JsonDifference | None:
        for key, value in expected.items():
            inside = step(place, key)
            if key not in actual:
                return JsonDifference(inside, shown(value), "no such key")
            if first := self.difference(value, actual[key], inside):
                return first
        more = None if self.subset else next((key for key in actual if key not in expected), None)
        if more is None:
            return None
        return JsonDifference(step(place, more), "no such key", shown(actual[more]))

    def _of_lists(
        self, expected: list[Json], actual: list[Json], place: str
    ) -> JsonDifference | None:
        if not self.subset and not self.any_order:
            for number, (inner, other) in enumerate(zip(expected, actual, strict=False)):
                if first := self.difference(inner, other, step(place, number)):
                    return first
        if self._lists_agree(expected, actual):
            return None
        if not self.subset and len(expected) != len(actual):
            many = "1 element" if len(expected) == 1 else f"{len(expected)} elements"
            return JsonDifference(place, many, str(len(actual)))
        missing = shown(expected[self._first_missing(expected, actual)])
        order = "" if self.any_order else ", in this order"
        return JsonDifference(place, f"the element {missing}{order}", shown(actual))

    def _lists_agree(self, expected: list[Json], actual: list[Json]) -> bool:
        if self.subset:
            return self._first_missing(expected, actual) == len(expected)
        if len(expected) != len(actual):
            return False
        if self.any_order:
            return Counter(map(self._key, expected)) == Counter(map(self._key, actual))
        return all(map(self.agrees, expected, actual))

    def _first_missing(self, expected: list[Json], actual: list[Json]) -> int:
        """Return the index of the first expected element without a match; else their number."""
        if not self.any_order:
            rest = iter(actual)
            for number, element in enumerate(expected):
                if not any(self.agrees(element, other) for other in rest):
                    return number
            return len(expected)
        if not self.subset:
            counts = Counter(map(self._key, actual))
            for number, key in enumerate(map(self._key, expected)):
                if not counts[key]:
                    return number
                counts[key] -= 1
            return len(expected)
        partners = match(
            [
                [at for at, other in enumerate(actual) if self.agrees(element, other)]
                for element in expected
            ]
        )
        return partners.index(None) if None in partners else len(expected)

    def _key(self, value: Json) -> Hashable:
        """Return a key that is equal for values that are equal in any order, and only for them."""
        if isinstance(value, dict):
            return "d", frozenset((key, self._key(inner)) for key, inner in value.items())
        if isinstance(value, list):
            return "l", frozenset(Counter(map(self._key, value)).items())
        if isinstance(value, str):
            # A text of which nothing would be left does not equal the empty one.
            return "s", self.prepare(value) or value.strip()
        return "b" if isinstance(value, bool) else "n", value


def match(options: Sequence[Sequence[int]]) -> list[int | None]:
    """Assign one of its options to each row, none twice, for as many rows as possible.

    A maximum bipartite matching by augmenting paths.
    """
    chosen: list[int | None] = [None] * len(options)
    owner: dict[int, int] = {}
    for start in range(len(options)):
        reached: dict[int, int] = {}
        waiting = deque([start])
        free: int | None = None
        while waiting and free is None:
            row = waiting.popleft()
            for option in options[row]:
                if option in reached:
                    continue
                reached[option] = row
                if option not in owner:
                    free = option
                    break
                waiting.append(owner[option])
        while free is not None:
            row = reached[free]
            owner[free] = row
            chosen[row], free = free, chosen[row]
    return chosen


def step(place: str, key: str | int) -> str:
    """Return the place of a key or an element inside a place, in JMESPath; "" is the top."""
    if isinstance(key, int):
        return f"{place}[{key}]"
    if not _PLAIN_KEY.match(key) or len(key) > _KEY_SHOWN:
        cut = key if len(key) <= _KEY_SHOWN else key[:_KEY_SHOWN] + "…"
        key = json.dumps(cut, ensure_ascii=False)
    return f"{place}.{key}" if place else key


_SHOWN = 120
_LONGEST_MESSAGE = 2_000
_LONG_SCHEMA = 20_000
"""The most characters of a schema that is checked without limits."""
_SCHEMA_SECONDS = 6.0
"""Processor time for checking a long schema."""
_OF = ("any", "object", "array")
_NO_TEXT_CHECKS = (
    *("json", "jsonSchema", "jsonEquals", "jsonSubset", "jsonPath", "toolCalls", "noToolCalls"),
    *("finishReason", "latency", "cost", "tokens", "expr", "judge"),
)
"""Types that cannot be nested: they parse JSON themselves, or look at the call."""


def _read_json(arguments: CheckArguments) -> dict[str, Json]:
    of = arguments.choice("of", _OF, "any")
    return {**({} if of == "object" else {"of": of}), **arguments.flags("fenced")}


def _is_json(check: Mapping[str, Json], subject: CheckInput) -> CheckFinding:
    """Return whether the answer is JSON: an object, unless the check says otherwise."""
    value = parse_answer(subject, fenced=check.get("fenced", False))
    of = check.get("of", "object")
    kind = "JSON" if of == "any" else f"JSON that is an {of}"
    if of == "any" or isinstance(value, dict if of == "object" else list):
        return holds(check, lambda: f"expected no {kind}, found {shown(value)}")
    return CheckFinding(0.0, f"expected {kind}, found {shown(value)}")


def _read_schema(arguments: CheckArguments) -> dict[str, Json]:
    schema = arguments.require("schema")
    if isinstance(schema, str):
        return {"schema": schema, **arguments.flags("fenced")}
    wrong = schema_problem(schema)
    if wrong is None and not is_json(schema):
        wrong = "it holds a number that is not finite"
    if wrong:
        raise arguments.problem(f"this is not a JSON Schema: {wrong}")
    return {"schema": schema, **arguments.flags("fenced")}


def _matches_schema(check: Mapping[str, Json], subject: CheckInput) -> CheckFinding:
    value = parse_answer(subject, fenced=check.get("fenced", False))
    schema = check["schema"]
    wrong = first_violation(subject.schemas[schema] if isinstance(schema, str) else schema, value)
    if wrong is None and check.get("fenced") == ANYWHERE and not is_bare(subject):
        return CheckFinding(1.0, "the JSON is in a code block, or has other words around it")
    if wrong is None:
        words = "expected JSON that does not match the schema, found "
        return holds(check, lambda: words + shown(value))
    return CheckFinding(0.0, str(wrong))


class SchemaViolation(NamedTuple):
    """Where and how a value breaks a JSON Schema."""

    path: tuple[str | int, ...]
    message: str
    rule: str = ""
    """The keyword of the schema with its value; empty when the schema was not applied."""
    value: Json = None
    """The value that breaks the rule."""

    def __str__(self) -> str:
        if not self.rule:
            return self.message
        place = ".".join(map(str, self.path)) or "the answer"
        return f"{place} does not match the schema: {self.message}"


def first_violation(schema: Json, value: Json) -> SchemaViolation | None:
    """Return where and how a value breaks a JSON Schema first; None when it does not.

    References are never fetched: one that leaves the schema is a violation by itself.
    """
    from referencing.exceptions import Unresolvable

    prepared = _validator(json.dumps(schema, sort_keys=True))
    try:
        errors = prepared.iter_errors(value)
        error = min(
            errors, key=lambda violation: list(map(str, violation.absolute_path)), default=None
        )
    except Unresolvable as problem:
        return SchemaViolation((), f"the schema refers to something outside it: {problem}")
    except OverflowError:  # from `multipleOf` with a fraction
        return SchemaViolation((), "the answer has a number that is too large for the schema")
    if error is None:
        return None
    message = error.message if len(error.message) <= _SHOWN else error.message[:_SHOWN] + "…"
    keyword = f"{error.validator}: {shown(error.validator_value)}" if error.validator else ""
    rule = keyword or "no value"  # the schema of this place is `false`
    return SchemaViolation(tuple(error.absolute_path), message, rule, error.instance)


@lru_cache(maxsize=256)
def _validator(schema: str) -> Any:
    """Return the validator of a schema, cached because creating it is slow."""
    import jsonschema
    import referencing

    content = json.loads(schema)
    kind = jsonschema.validators.validator_for(content, default=jsonschema.Draft202012Validator)
    registry: referencing.Registry[Json] = referencing.Registry()
    return kind(content, registry=registry)


def schema_problem(schema: Json) -> str | None:
    """Return why a value is not a JSON Schema; None when it is valid."""
    if not isinstance(schema, dict):
        return "a JSON Schema must be a mapping"
    try:
        if len(json.dumps(schema)) <= _LONG_SCHEMA:
            return metaschema_violation(schema)
        problem: str | None = call(
            __name__, "metaschema_violation", schema, cpu_seconds=_SCHEMA_SECONDS
        )
    except (LimitReached, NotRunError) as reason:
        return f"when it is read, {reason}"
    except RecursionError:
        return "it is nested too deeply"
    return problem


def metaschema_violation(schema: Json) -> str | None:
    """Return where and how a schema breaks the rules for schemas; None when it does not."""
    import jsonschema

    try:
        validator = jsonschema.validators.validator_for(
            schema, default=jsonschema.Draft202012Validator
        )
        validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        place = ".".join(map(str, error.absolute_path))
        return f"{place + ': ' if place else ''}{error.message[:_LONGEST_MESSAGE]}"
    except RecursionError:
        return "it is nested too deeply"
    return None


def _read_comparison(arguments: CheckArguments) -> dict[str, Json]:
    expected = arguments.require("expected")
    if not is_json(expected):
        raise arguments.problem("'expected' holds a number that is not finite")
    more = arguments.flags("ignoreOrder", "anyOf")
    if "anyOf" in more and not isinstance(expected, list):
        raise arguments.problem("with 'anyOf', 'expected' must be a list of values")
    return {"expected": expected, **more, **arguments.flags("fenced")}


def _compare(check: Mapping[str, Json], subject: CheckInput) -> CheckFinding:
    """Return whether the answer is this value, or has all keys and elements of it.

    Texts are prepared, keys are not.
    """
    subset = check["type"] == "jsonSubset"
    value = parse_answer(subject, fenced=check.get("fenced", False))
    any_order = check.get("ignoreOrder", False)
    comparison = JsonComparison(subject.prepare, subset, any_order, subject.quote)
    expected = check["expected"] if check.get("anyOf") else [check["expected"]]
    if any(comparison.agrees(candidate, value) for candidate in expected):
        but = "JSON without" if subset else "anything but"
        listed = " or ".join(map(shown, expected))
        return holds(check, lambda: f"expected {but} {listed}, found {shown(value)}")
    if len(expected) == 1:
        return CheckFinding(0.0, str(comparison.difference(expected[0], value) or ""))
    listed = f"one of {shown(expected)}"
    return CheckFinding(0.0, f"expected {listed}, found {shown(value)}")


def _read_path(arguments: CheckArguments) -> dict[str, Json]:
    path = arguments.required_text("path")
    raise_for_path(path, arguments)
    settings: dict[str, Json] = {"path": path, **arguments.flags("fenced")}
    beside = arguments.types()
    if beside and arguments.has("check"):
        raise arguments.problem(f"'jsonPath' has two checks inside: 'check' and '{beside[0]}'")
    if beside or arguments.has("check"):
        allowed = {"allowEmpty": True} if arguments.allow_empty else {}
        inside = {**arguments.take_rest(), **allowed} if beside else arguments.take("check")
        inner = arguments.read_check(inside)
        if inner["type"] in _NO_TEXT_CHECKS:
            hint = "inside there can be a check of a text or of a number"
            raise arguments.problem(f"'{inner['type']}' cannot be used inside 'jsonPath'", hint)
        if "actual" in inner:
            raise arguments.problem(
                "a check inside 'jsonPath' cannot have 'actual': it checks the value at the path"
            )
        settings["check"] = inner
    return settings


def raise_for_path(path: str, arguments: CheckArguments) -> None:
    """Raise `FileProblem` for an invalid JMESPath, or one with an unknown function."""
    from jmespath.exceptions import JMESPathError
    from jmespath.functions import Functions

    try:
        parsed = compiled_path(path).parsed
    except (JMESPathError, RecursionError) as error:
        words = " ".join(str(error).split()) or type(error).__name__
        message = f"this is not a JMESPath: {shorten(path)}"
        raise arguments.problem(message, words[:_SHOWN]) from None
    waiting = [parsed]
    while waiting:
        node = waiting.pop()
        waiting.extend(child for child in node["children"] if isinstance(child, dict))
        if node["type"] == "function_expression" and node["value"] not in Functions.FUNCTION_TABLE:
            hint = suggest(node["value"], Functions.FUNCTION_TABLE, "functions")
            raise arguments.problem(f"JMESPath has no function {shorten(node['value'])}", hint)


@lru_cache(maxsize=256)
def compiled_path(path: str) -> Any:
    """Return a compiled JMESPath."""
    import jmespath

    return jmespath.compile(path)


@lru_cache(maxsize=256)
def is_cheap_path(path: str) -> bool:
    """Return whether a JMESPath only selects a value, and builds nothing new."""
    return len(path) <= 1_000 and not any(sign in path for sign in ("(", "{", "[@", ",", "&"))


def find_at_path(path: str, value: Json) -> Json:
    """Return the value at a JMESPath; None when there is none, or the types do not fit.

    Raises `LimitReached`.
    """
    return (
        search_path(path, value)
        if is_cheap_path(path)
        else call(__name__, "search_path", path, value)
    )


def search_path(path: str, value: Json) -> Json:
    """Return the value at a JMESPath, without limits of time."""
    from jmespath.exceptions import JMESPathError

    try:
        return compiled_path(path).search(value)
    except (JMESPathError, RecursionError):
        return None


def _is_at_path(check: Mapping[str, Json], subject: CheckInput) -> CheckFinding:
    """Return whether the value at the path is not null and passes the nested check."""
    from jmespath.exceptions import JMESPathTypeError

    answer = parse_answer(subject, fenced=check.get("fenced", False))
    path = shorten(check["path"])
    try:
        value = compiled_path(check["path"]).search(answer)
    except JMESPathTypeError as error:
        words = f"{error.function_name}() in the path {path} does not take"
        return CheckFinding(0.0, f"{words} {shown(error.current_value)}")
    if value is None:
        return CheckFinding(0.0, f"expected a value at {path}, found none in {shown(answer)}")
    if "check" not in check:
        return holds(check, lambda: f"expected no value at {path}, found {shown(value)}")
    if subject.run_check is None:
        raise ValueError("a check inside another one cannot run here")
    texts = {name: check[name] for name in ("ignoreCase", "normalize") if name in check}
    inner, at_path = {**texts, **check["check"]}, replace(subject, actual=value)
    outcome = subject.run_check(inner, at_path)
    if outcome.verdict == "error":
        raise ValueError(outcome.feedback)
    is_so = outcome.verdict == "pass"
    if is_so and check.get("not"):
        outcome = subject.run_check({**inner, "not": not inner.get("not")}, at_path)
    return CheckFinding(float(is_so), f"at {path}: {outcome.feedback}")


KINDS = {
    "json": CheckType(2, _read_json, _is_json, main=None, example="{of: object}"),
    "jsonSchema": CheckType(
        2,
        _read_schema,
        _matches_schema,
        main="schema",
        takes_mapping=True,
        example="{type: object}",
    ),
    "jsonEquals": CheckType(
        2, _read_comparison, _compare, takes_mapping=True, example="{city: Oslo}"
    ),
    "jsonSubset": CheckType(
        2, _read_comparison, _compare, takes_mapping=True, example="{city: Oslo}"
    ),
    "jsonPath": CheckType(2, _read_path, _is_at_path, main="path", example="items[0].price"),
}

"""The classes that every check type uses: its settings, its input and its result."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from evalstore.checks.normalization import comparable
from evalstore.core.display import as_text, shorten
from evalstore.core.errors import FileProblem
from evalstore.core.values import Json, Reply, Verdict
from evalstore.files.fields import is_finite, suggest

if TYPE_CHECKING:
    from evalstore.checks.description import CheckDescription

BLOCK = "block"
"""The type of several checks that need not all pass."""
_EMPTY: tuple[Json, ...] = ("", [], {})


class CheckFinding(NamedTuple):
    """The result of a check type: a score from 0 to 1, and a feedback.

    That of a pass is shown if the check has `not`, which makes it a fail.
    """

    score: float
    feedback: str = ""
    """The expected and the actual value."""
    passed: bool | None = None
    """Whether it is a pass, if the score alone does not determine it."""


def passes(is_so: bool, feedback: str) -> CheckFinding:
    """Return a finding that is a pass, or a fail with this feedback."""
    return CheckFinding(1.0) if is_so else CheckFinding(0.0, feedback)


def holds(check: Mapping[str, Json], feedback: Callable[[], str]) -> CheckFinding:
    """Return a finding that is a pass, with this feedback if the check has `not`."""
    return CheckFinding(1.0, feedback() if check.get("not") else "")


class CheckOutcome(NamedTuple):
    """The result of one check: its finding with `not` and `pass` applied."""

    verdict: Verdict
    feedback: str = ""
    score: float | None = None
    """The score from 0 to 1; None when it could not be computed."""


@dataclass(frozen=True, slots=True)
class CheckInput:
    """The input of a check."""

    reply: Reply
    """The last answer, with all facts of its call."""
    actual: Json
    """The text of the answer (empty when there is none), or the value of the setting `actual`."""
    schemas: Mapping[str, Json] = field(default_factory=dict)
    """The schemas that checks refer to, by version id."""
    usd: float | None = None
    """The cost of the call; None if unknown."""
    names: Mapping[str, Json] = field(default_factory=dict)
    """The row's values, which an expression may use beside the answer."""
    answers: tuple[str, ...] = ()
    """The texts of all answers that are judged together; empty when there is only this one."""
    prepare: Callable[[str], str] = str
    """`normalize` and `ignoreCase`, for texts that are compared; `text` is prepared already."""
    steps: tuple[str, ...] = ()
    """The same as a list of steps."""
    quote: Callable[[str], str] = str
    """The same without changes of case, for texts that a feedback quotes."""
    run_code: Callable[[Mapping[str, Json], Json], Json] | None = None
    """Runs a Python file: from a check and its input to the value that the function returned."""
    run_check: Callable[[Mapping[str, Json], CheckInput], CheckOutcome] | None = None
    """Runs a nested check; `run_check` of the module `runner`."""

    @property
    def text(self) -> str:
        """Return `actual` as a prepared text; a value that is not a text as JSON."""
        return self.prepare(as_text(self.actual))

    def pairs(self, expected: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Yield each expected text and the answer, prepared for a comparison.

        A step that leaves nothing of the expected text is left out for both.
        """
        text = self.text
        for entry in expected:
            prepared = self.prepare(entry)
            if prepared or not entry:
                yield prepared, text
            else:
                yield comparable(self.steps, entry, as_text(self.actual))

    @property
    def quoted(self) -> str:
        """Return the text in the case in which the model wrote it."""
        return self.quote(as_text(self.actual))


INSTALL = "pip install 'evalstore[similarity]'"
"""The command that installs the packages that some checks need."""


@dataclass(frozen=True, slots=True)
class CheckType:
    """A check type."""

    revision: int
    """A number that increases when the behaviour changes; old verdicts are then judged again."""
    read: Callable[[CheckArguments], dict[str, Json]]
    """Returns the settings in canonical form, without those that have their default."""
    judge: Callable[[Mapping[str, Json], CheckInput], CheckFinding]
    """Judges an answer by canonical settings; an exception becomes the verdict `error`."""
    main: str | None = "expected"
    """The setting that `type: value` sets; None: the type has none."""
    as_written: Literal["texts", "number"] | None = None
    """Whether `expected` keeps the form that it has in YAML, such as `1.10`, and as what."""
    takes_mapping: bool = False
    """Whether that setting may be a mapping, so that `type: {…}` sets it."""
    joint: bool = False
    """Whether it judges several answers at once, which `scope` must select."""
    graded: bool = False
    """Whether the score may be between 0 and 1, so that the check needs `pass`."""
    by_models: bool = False
    """Whether it only configures how models judge, and is never run itself."""
    package: str = ""
    """The package of the extra `similarity` that it needs; empty if it needs none."""
    example: str = ""
    """A value after `type:` as an example in hints; empty if the type has no value."""
    description: CheckDescription | None = None
    """For help and editors; the types of this package are described in `checks.descriptions`."""


def read_nothing(_arguments: CheckArguments) -> dict[str, Json]:
    """Return the settings of a check type that has none."""
    return {}


class NestedChecks(NamedTuple):
    """How a type reads a check that is nested in its own settings."""

    is_type: Callable[[str], bool]
    """Whether there is a check type of this name."""
    read: Callable[[Json, int | None], dict[str, Json]]
    """Returns the canonical form of a check as it is written, with its line."""


class CheckArguments:
    """The settings of one check as the author wrote them; each is taken once."""

    __slots__ = ("_example", "_known", "_nested", "_settings", "allow_empty", "line")

    def __init__(
        self,
        settings: Mapping[str, Json],
        line: int | None = None,
        example: str | None = None,
        nested: NestedChecks | None = None,
    ) -> None:
        self._settings = dict(settings)
        self._known: list[str] = []
        self._example = example
        """An example of the whole check."""
        self._nested = nested
        self.line = line
        self.allow_empty = False
        """Whether an empty text among several is allowed."""

    def with_values(self, settings: Mapping[str, Json]) -> CheckArguments:
        """Return the settings of the check with other values, keeping the names taken so far."""
        other = CheckArguments(settings, self.line, self._example, self._nested)
        other._known = self._known.copy()
        other.allow_empty = self.allow_empty
        return other

    def problem(self, message: str, hint: str | None = None) -> FileProblem:
        """Return a problem with a setting, at the line of the check."""
        return FileProblem(message, self.line, hint=hint)

    def has(self, name: str) -> bool:
        """Return whether a setting is given and has not been taken yet."""
        return name in self._settings

    def has_none_of(self, names: Collection[str]) -> bool:
        """Return whether none of these settings is given; their names are valid from now on."""
        self._known += names
        return self._settings.keys().isdisjoint(names)

    def take(self, name: str, default: Json = None) -> Json:
        """Take the value of a setting of any type."""
        self._known.append(name)
        return self._settings.pop(name, default)

    def names(self) -> list[str]:
        """Return the settings that are given and have not been taken yet."""
        return list(self._settings)

    def is_empty(self, name: str) -> bool:
        """Return whether a setting that is not taken yet is an empty text, list or mapping."""
        return self._settings.get(name) in _EMPTY

    def types(self) -> list[str]:
        """Return the settings not yet taken that are names of check types: a nested check."""
        nested = self._nested
        return [name for name in self._settings if nested is not None and nested.is_type(name)]

    def read_check(self, definition: Json) -> dict[str, Json]:
        """Return the canonical form of a nested check; raises `FileProblem`."""
        if self._nested is None:
            raise self.problem("a check cannot be read here")
        return self._nested.read(definition, self.line)

    def take_rest(self) -> dict[str, Json]:
        """Take all settings that are left."""
        rest, self._settings = self._settings, {}
        return rest

    def require(self, name: str) -> Json:
        """Take a required setting of any type, which may be null."""
        if name not in self._settings:
            raise self.missing(name)
        return self.take(name)

    def missing(self, name: str) -> FileProblem:
        """Return the problem that a required setting is missing."""
        return self.problem(f"the check needs '{name}'", self._as_in)

    @property
    def _as_in(self) -> str | None:
        return f"as in '{self._example}'" if self._example else None

    def text(self, name: str, default: str | None = None) -> str | None:
        """Take a text."""
        value: str | None = self._typed(name, default, str, "a text")
        return value

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Take a truth value."""
        return bool(self._typed(name, default, bool, "true or false"))

    def flags(self, *names: str) -> dict[str, Json]:
        """Take truth values, and return those that are true."""
        return {name: True for name in names if self.flag(name)}

    def number(self, name: str, default: float | None = None) -> float | None:
        """Take a number; whole numbers stay whole."""
        value: Any = self._typed(name, default, (int, float), "a number")
        if isinstance(value, bool) or value != value:
            raise self.problem(f"'{name}' must be a number, not {shorten(as_text(value))}")
        return None if value is None else float(value) if isinstance(value, float) else int(value)

    def not_negative(self, name: str) -> float | None:
        """Take a finite number that is not below 0."""
        value = self.number(name)
        if value is not None and not (is_finite(value) and value >= 0):
            raise self.problem(f"'{name}' must be a number of at least 0")
        return value

    def whole(self, name: str, default: int | None = None, least: int = 0) -> int | None:
        """Take a whole number that is not below `least`."""
        value: Any = self._typed(name, default, int, "a whole number")
        if isinstance(value, bool) or (value is not None and value < least):
            raise self.problem(f"'{name}' must be a whole number of at least {least}")
        return None if value is None else int(value)

    def choice(self, name: str, known: Collection[str], default: str | None = None) -> str | None:
        """Take one of the words `known`."""
        value = self.text(name, default)
        if value is not None and value not in known:
            hint = suggest(value, known, "choices")
            raise self.problem(f"'{name}' cannot be {shorten(value)}", hint)
        return value

    def chosen(self, name: str, known: Collection[str]) -> dict[str, Json]:
        """Take one of the words `known`, and return it unless it is the first, the default."""
        default = next(iter(known))
        word = self.choice(name, known, default)
        return {} if word == default else {name: word}

    def texts(self, name: str) -> list[str]:
        """Take a required text or list of texts; numbers are converted to texts."""
        value = self.require(name)
        values = value if isinstance(value, list) else [value]
        for entry in values:
            if isinstance(entry, dict | list) or entry is None:
                raise self.problem(f"'{name}' must be a text or a list of texts", self._as_in)
        texts = [as_text(entry) for entry in values]
        if len(texts) > 1 and "" in texts and not self.allow_empty:
            raise self.problem(
                f"one of the texts of '{name}' is empty",
                "write 'allowEmpty: true' if this is intended",
            )
        return texts

    def _typed(self, name: str, default: Json, kind: Any, words: str) -> Any:
        value = self.take(name, default)
        if value is not default and not isinstance(value, kind):
            raise self.problem(f"'{name}' must be {words}, not {shorten(as_text(value))}")
        return value

    def finish(self, kind: str) -> None:
        """Raise if an unknown setting is left."""
        for name in self._settings:
            raise unknown_setting(kind, name, self._known, self.line)


def unknown_setting(kind: str, name: str, known: Iterable[str], line: int | None) -> FileProblem:
    """Return the problem of a setting that a type of checks does not have."""
    hint = suggest(name, set(known), "settings")
    return FileProblem(f"the check '{kind}' has no setting '{name}'", line, hint=hint)


_BOUND = re.compile(r"(>=|>|<=|<|==)\s*([0-9.eE+-]+)\Z")


def canonical_bound(value: Json, arguments: CheckArguments) -> str:
    """Return the canonical form of a bound such as `>= 0.8`; a plain number is a minimum."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = f">= {value}"
    match = _BOUND.match(value.strip()) if isinstance(value, str) else None
    try:
        number = float(match[2]) if match else math.nan
    except ValueError:
        number = math.nan
    if match is None or not is_finite(number):
        raise arguments.problem(f"'pass' cannot be {shorten(str(value))}", "as in '\">= 0.8\"'")
    return f"{match[1]} {number:g}"


def reaches(score: float, bound: str) -> bool:
    """Return whether a score is within a bound in canonical form, up to the rounding of floats."""
    operator, number = bound.split()
    off = score - float(number)
    if abs(off) < 1e-9:
        return operator in (">=", "<=", "==")
    return off > 0 if operator in (">=", ">") else off < 0 if operator in ("<=", "<") else False

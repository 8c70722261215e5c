"""What every check type uses: its settings and description, its input and its result.

Also how texts are normalised before they are compared (each step is idempotent), and how answers
are read as JSON.
"""

from __future__ import annotations

import json
import math
import re
import string
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Literal, NamedTuple

from evalstore.core.display import as_text, shorten, shorten_to_line
from evalstore.core.errors import FileProblem
from evalstore.core.values import Json, Reply, Verdict
from evalstore.files.fields import is_finite, suggest
from evalstore.files.yaml12 import parse_json, refuse_constant


class ValueType(NamedTuple):
    """The type of a setting, in words and as a JSON Schema."""

    words: str
    schema: Mapping[str, Json]


_SCALAR = ["string", "number", "boolean"]
TEXT = ValueType("text", {"type": "string"})
TEXTS = ValueType(
    "text or list of texts", {"type": [*_SCALAR, "array"], "items": {"type": _SCALAR}}
)
ONE_TEXT = ValueType(
    "text", {"type": [*_SCALAR, "array"], "items": {"type": _SCALAR}, "maxItems": 1}
)
FLAG = ValueType("true or false", {"type": "boolean"})
COUNT = ValueType("whole number", {"type": "integer", "minimum": 0})
MAPPING = ValueType("mapping", {"type": "object"})
ANY = ValueType("any value", {})


def choice(*words: str) -> ValueType:
    """Return the type of a setting that is one of some words."""
    *first, last = words
    listed = f"{', '.join(first)} or {last}" if first else last
    return ValueType(listed, {"enum": list(words)})


class CheckSetting(NamedTuple):
    """A setting of a check type."""

    name: str
    type: ValueType
    description: str
    default: Json = None
    """The default value; None if there is none, or if it is explained in `description`."""
    required: bool = False


class CheckExample(NamedTuple):
    """A check as its author writes it, with an answer that passes and one that fails.

    An answer is a text, a list of texts that are judged together, or a mapping with facts of the
    call: `text`, `toolCalls`, `finishReason`, `latency` (seconds), `cost` (USD), `tokens`.
    """

    check: str
    """An entry of a block of checks in YAML, without the dash in front."""
    passing: Json = None
    """An answer that passes; None if the result does not depend on the answer alone."""
    failing: Json = None


@dataclass(frozen=True, slots=True)
class CheckDescription:
    """The description of a check type."""

    summary: str
    """When the check passes, in a few words: a clause without a full stop."""
    settings: tuple[CheckSetting, ...] = ()
    """Its own settings; that of `type: value` comes first."""
    examples: tuple[CheckExample, ...] = ()
    notes: str = ""
    """Further sentences."""


_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_QUOTES = str.maketrans({**dict.fromkeys("‘’‚‛‹›′ʼ´", "'"), **dict.fromkeys("“”„‟«»″", '"')})
_FENCE_LINE = re.compile(r"^[ \t]*(?:```|~~~)[^\n`]*(?:\n|\Z)", re.MULTILINE)
_LINE_MARK = re.compile(r"^[ \t]*(?:(?:#{1,6}|>|[-*+•])[ \t]+)+(?=\S)", re.MULTILINE)
_LINK = re.compile(r"!?\[([^\[\]\n]*)\]\([^()\s]*\)")
_LONGEST = 500
"""The most characters between two marks of emphasis, which bounds the time for long texts."""
_DEEPEST = 16
"""The most levels of nested marks that are removed."""
_INSIDE = rf"(?=\S)(.{{1,{_LONGEST}}}?)(?<=\S)"
_STRONG = re.compile(rf"(\*\*|`{{1,3}}){_INSIDE}\1")
_EMPHASIS = re.compile(rf"(?<!\w)(__|\*|_){_INSIDE}\1(?!\w)")


def squad(text: str) -> str:
    """Normalize as SQuAD does: lower case, no ASCII punctuation, no articles, single spaces."""
    return spaces(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)))


def spaces(text: str) -> str:
    """Replace each run of white space with one space, and strip the ends."""
    return " ".join(text.split())


def _bare(text: str) -> str:
    """Remove ASCII punctuation, and join words with single spaces."""
    return spaces(text.translate(_PUNCTUATION))


def nfc(text: str) -> str:
    """Convert to Unicode's composed form, in which `é` is one character."""
    return unicodedata.normalize("NFC", text)


def quotes(text: str) -> str:
    """Replace typographic quotes with straight ones."""
    return text.translate(_QUOTES)


def markdown(text: str) -> str:
    """Remove Markdown's marks: fences, headings, bullets, quotes, emphasis, code, links.

    The text of a link is kept, and so are `*` and `_` between word characters, as in `2*3`.
    """
    for _ in range(_DEEPEST):
        before = text
        text = _LINE_MARK.sub("", _FENCE_LINE.sub("", text))
        text = _EMPHASIS.sub(r"\2", _STRONG.sub(r"\2", _LINK.sub(r"\1", text)))
        if text == before:
            break
    return text


STEPS: Mapping[str, Callable[[str], str]] = {
    "trim": str.strip,
    "casefold": str.casefold,
    "nfc": nfc,
    "squad": squad,
    "spaces": spaces,
    "quotes": quotes,
    "markdown": markdown,
}


def comparable(steps: Sequence[str], expected: str, actual: str) -> tuple[str, str]:
    """Return both texts normalised, without a step that leaves nothing of the expected one.

    Of `squad`, only the part that does is left out: articles and case, or all but the spaces.
    """
    for step in steps:
        for function in (squad, _bare, spaces) if step == "squad" else (STEPS[step],):
            if function(expected) or not expected:
                expected, actual = function(expected), function(actual)
                break
    return expected, actual


def normalized(text: str, steps: Iterable[str]) -> str:
    """Return a text after all steps in their order."""
    return reduce(lambda changed, step: STEPS[step](changed), steps, text)


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
    steps: tuple[str, ...] = ()
    """`normalize` and `ignoreCase`, for texts that are compared; `text` is prepared already."""
    run_code: Callable[[Mapping[str, Json], Json], Json] | None = None
    """Runs a Python file: from a check and its input to the value that the function returned."""
    run_check: Callable[[Mapping[str, Json], CheckInput], CheckOutcome] | None = None
    """Runs a nested check; `run_check` of the module `runner`."""

    def prepare(self, text: str) -> str:
        """Return a text as it is compared."""
        return normalized(text, self.steps)

    def quote(self, text: str) -> str:
        """Return a text as a feedback quotes it: case is not folded, but `squad` changes it."""
        return normalized(text, (step for step in self.steps if step != "casefold"))

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
    """For help and editors; the types of this package are described in `descriptions.yaml`."""


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

    def problem(self, message: str, hint: str | None = None) -> FileProblem:
        """Return a problem with a setting, at the line of the check."""
        return FileProblem(message, self.line, hint=hint)

    def has(self, name: str) -> bool:
        """Return whether a setting is given and has not been taken yet; its name is valid now."""
        self._known.append(name)
        return name in self._settings

    def take(self, name: str, default: Json = None) -> Json:
        """Take the value of a setting of any type."""
        self._known.append(name)
        return self._settings.pop(name, default)

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

    def required_text(self, name: str) -> str:
        """Take a required text."""
        if (text := self.text(name)) is None:
            raise self.missing(name)
        return text

    def flag(self, name: str) -> bool:
        """Take a truth value; without one, false."""
        return bool(self._typed(name, False, bool, "true or false"))

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

    def bounds(self) -> dict[str, Json]:
        """Take `min` and `max`, whole numbers, of which one is required."""
        bounds: dict[str, Json] = {"min": self.whole("min"), "max": self.whole("max")}
        given = {name: bound for name, bound in bounds.items() if bound is not None}
        if not given:
            raise self.problem("the check needs 'min' or 'max'", self._as_in)
        if len(given) == 2 and given["min"] > given["max"]:
            raise self.problem(f"'min' is {given['min']}, which is above 'max', {given['max']}")
        return given

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


_SHOWN = 120
_JSON = frozenset(("json", "jsonc", "json5"))
_NONE = frozenset(("",))
ANYWHERE = "anywhere"
"""How `fenced` says that JSON between other words counts as well, for servers that do not hold
their model to the form that was asked for."""
_MOST_TRIES = 1_000
"""The most braces of an answer that are tried as the beginning of a value."""
_BEGIN = re.compile(r"[\[{]\s*[\[{\"]")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*(.*)\Z")


_PROBLEMS = {
    "Expecting value": "a value is missing",
    "Expecting property name enclosed in double quotes": "a key in double quotes is missing",
    "Expecting ',' delimiter": "a comma is missing",
    "Expecting ':' delimiter": "a colon is missing",
    "Extra data": "the JSON ends before this place",
    "Unterminated string starting at": "the text that begins here has no end",
    "Invalid control character at": "a text has a line break or another control character",
}
"""Messages of Python's parser in plain words."""


class NotJsonError(Exception):
    """The answer is not JSON; the message explains why. A check that raises it fails."""


def parse_answer(subject: CheckInput, *, fenced: bool | str = False) -> Json:
    """Return the answer parsed as JSON, or the value of `actual`; raises `NotJsonError`.

    With `fenced`, JSON in a block of fenced code is accepted as well: in the only block, or in the
    only one that is said to be JSON, or, if none is, in the only one without a language. With
    `ANYWHERE`, so is the only object, or the only list, between other words.
    """
    text = subject.actual
    if text is not None and not isinstance(text, str):
        return text
    text = text or ""
    try:
        return parse_json(text)
    except ValueError as error:
        problem = f"the answer is not JSON{_words_of(error)}, found {shorten_to_line(text)}"
    blocks = _json_blocks(text) if fenced else []
    if fenced == ANYWHERE:
        blocks = [block for block in blocks if _values(block)] or _values(text)
    if len(blocks) > 1:
        where = "value" if fenced == ANYWHERE else "block of fenced code with JSON"
        problem = f"the answer is not JSON: expected one {where}, found {len(blocks)}"
    elif blocks:
        try:
            return parse_json(blocks[0])
        except ValueError as error:
            found = shorten_to_line(blocks[0])
            problem = f"the fenced code is not JSON{_words_of(error)}, found {found}"
    raise NotJsonError(problem)


def _words_of(error: ValueError) -> str:
    """Return why a text is no JSON, and where; nothing if no part of it is JSON."""
    if not isinstance(error, json.JSONDecodeError):
        return f": {error}"
    words = _PROBLEMS.get(error.msg, error.msg[:1].lower() + error.msg[1:])
    return f": {words} (line {error.lineno}, column {error.colno})" if error.pos else ""


def _json_blocks(text: str) -> list[str]:
    """Return the contents of the closed blocks of fenced code that may be JSON."""
    blocks = _fenced_blocks(text)
    languages = [language for language, _ in blocks]
    best = next((known for known in (_JSON, _NONE) if not known.isdisjoint(languages)), languages)
    return [content for language, content in blocks if language in best]


def is_bare(subject: CheckInput) -> bool:
    """Return whether the answer is JSON and nothing else."""
    try:
        parse_answer(subject)
    except NotJsonError:
        return False
    return True


def _values(text: str) -> list[str]:
    """Return the one object between other words, else all outermost objects and lists."""
    found = [text[start:end] for _, start, end in find_values(text, "[{")]
    objects = [value for value in found if value.startswith("{")]
    return objects if len(objects) == 1 else found


def find_values(text: str, brackets: str) -> Iterator[tuple[Json, int, int]]:
    """Yield the outermost values between other words that begin with one of these brackets.

    Each has the indexes of its start and of its end. A broken one ends them: no part of it counts.
    """
    decoder = json.JSONDecoder(parse_constant=refuse_constant)
    bracket, end = re.compile(f"[{re.escape(brackets)}]"), 0
    for _ in range(_MOST_TRIES):
        if (found := bracket.search(text, end)) is None:
            return
        try:
            value, end = decoder.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            if _BEGIN.match(text, found.start()):
                return
            end = found.end()
        else:
            yield value, found.start(), end


def _fenced_blocks(text: str) -> list[tuple[str, str]]:
    """Return the language and the content of each closed block of fenced code in a text."""
    blocks: list[tuple[str, str]] = []
    mark = language = ""
    block: list[str] = []
    for line in text.split("\n"):
        fence = _FENCE.match(line)
        if mark and fence and fence[1].startswith(mark) and not fence[2].strip():
            blocks.append((language, "\n".join(block)))
            mark = ""
        elif mark:
            block.append(line)
        elif fence and not (fence[1][0] == "`" and "`" in fence[2]):
            mark, block = fence[1], []
            language = next(iter(fence[2].lower().split()), "").strip("{.}")
    return blocks


def shown(value: Json) -> str:
    """Return a value for a feedback, shortened: a text in quotes, anything else as JSON."""
    if isinstance(value, str):
        return shorten(value)
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"

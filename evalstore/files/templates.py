"""Templates: strict, sandboxed Jinja2, lenient where Markdown needs it.

A text is compiled once and filled once for each row. Plain names, by
far the most, are looked up without Jinja; only expressions and `{% … %}` statements import it.
Files mentioned as `{{_file:path}}` become `FileMention`s. Values come from functions of the
caller.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from evalstore.core.errors import FileProblem, LimitProblem
from evalstore.files.jinja_sandbox import (
    SWITCH_OFF,
    evaluate_expression,
    is_global,
    run,
    undeclared,
    uses_of,
)

T = TypeVar("T")

ITEM = "item"
"""The name of a row of data; `item.NAME` is the name of one of its values."""
_AS_JSON = re.compile(r"\|\s*tojson\s*(?:\(\s*\))?\s*\Z")
"""Matches a filter that would convert the value of an expression to a text."""
LONGEST_TEXT = 10_000_000
"""The most characters of a filled text."""
_LENGTH_OF_MENTION = 100
"""The characters that a mentioned file counts as, to limit their number."""
INSIDE = "__evalstore_"
"""The prefix of the names that replace segments in a source for Jinja."""


@dataclass(frozen=True, slots=True)
class FileMention:
    """A file that is mentioned in a text."""

    path: str
    line: int


@dataclass(frozen=True, slots=True)
class DeferredValue(FileMention):
    """A name, or an expression, that gets its value when there is an answer; `path` is its text."""


@dataclass(frozen=True, slots=True)
class NameSegment:
    """A name by itself, which is looked up without Jinja."""

    name: str
    line: int


@dataclass(frozen=True, slots=True)
class PathSegment:
    """A mentioned file whose path is filled, too."""

    parts: tuple[str | NameSegment, ...]
    line: int

    def fill(self, lookup: Lookup) -> FileMention:
        """Fill the names in the mention; raises `FileProblem`."""
        path = ""
        for part in self.parts:
            for piece in [part] if isinstance(part, str) else _look_up(part, lookup):
                if not isinstance(piece, str):
                    words = "the path of a mentioned file cannot mention a file"
                    raise FileProblem(words, self.line)
                path += piece
        return FileMention(path.strip(), self.line)


@dataclass(frozen=True, slots=True)
class ExpressionSegment:
    """An expression that Jinja evaluates."""

    source: str
    line: int
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class LiteralSegment:
    """Text that must not be read as a template."""

    text: str


Segment = str | FileMention | PathSegment | NameSegment | ExpressionSegment | LiteralSegment
Filled = list[str | FileMention]
Lookup = Callable[[str], Filled]
"""From a known name to its filled value; raises `FileProblem` when the row has none."""


@dataclass(frozen=True, slots=True)
class Template:
    """A compiled text."""

    segments: tuple[Segment, ...]
    names: Mapping[str, int]
    """Every name that the text uses, with the line of the first use."""
    reserved: Mapping[str, int] = field(default_factory=dict)
    """Undefined names that begin with `_`: they stay text."""
    scope: frozenset[str] | None = None
    """The names that Jinja uses, if it renders the whole text (for its `{% … %}`)."""
    line: int = 1
    """The line of the first statement."""

    @property
    def is_fixed(self) -> bool:
        """Return whether the text is the same for every row."""
        changes = (NameSegment, ExpressionSegment, PathSegment)
        return self.scope is None and not any(
            isinstance(segment, changes) for segment in self.segments
        )

    def fill(self, lookup: Lookup, typed: Callable[[str], Any]) -> Filled:
        """Fill the text with values; adjacent texts are joined.

        `typed` gives the value that a name has inside an expression.
        """
        if self.scope is not None:
            return _render(self, lookup, typed)
        pieces: Filled = []
        for segment in self.segments:
            if isinstance(segment, str):
                pieces.append(segment)
            elif isinstance(segment, NameSegment):
                pieces.extend(_look_up(segment, lookup))
            elif isinstance(segment, LiteralSegment):
                pieces.append(segment.text)
            elif isinstance(segment, ExpressionSegment):
                pieces.append(_evaluate(segment, typed))
            elif isinstance(segment, PathSegment):
                pieces.append(segment.fill(lookup))
            else:
                pieces.append(segment)
        return join(pieces)

    def with_later(self, name: str) -> Template:
        """Return the same text with a `DeferredValue` for each expression that uses only `name`.

        Statements cannot be deferred: the names that they use stay among the `names`. Raises
        `FileProblem` when one of them assigns the name.
        """
        if self.scope is not None and uses_of(jinja_source(self.segments), name).assigned:
            raise FileProblem(
                f"'{name}' is known only when there is an answer: no statement can set it",
                self.line,
                hint="rename the variable of the statement",
            )
        segments = tuple(
            DeferredValue(segment.source, segment.line)
            if isinstance(segment, ExpressionSegment) and segment.names == {name}
            else DeferredValue(segment.name, segment.line)
            if isinstance(segment, NameSegment) and segment.name == name
            else segment
            for segment in self.segments
        )
        if self.scope is None:
            return replace(self, segments=segments)
        names = undeclared(jinja_source(segments), self.line)
        return replace(self, segments=segments, scope=self.scope & names)

    def value(self, lookup: Lookup, typed: Callable[[str], Any]) -> Any:
        """Evaluate the text: a single expression keeps its type.

        A lone name is a text when its type would lose how it is written (`007`, `1.10`).
        """
        if self.scope is None and len(self.segments) == 1:
            (segment,) = self.segments
            if isinstance(segment, NameSegment):
                value = _look_up(segment, typed)
                if isinstance(value, str | dict | list):
                    return value
                text = "".join(str(piece) for piece in lookup(segment.name))
                return value if json.dumps(value) == text else text
            if isinstance(segment, ExpressionSegment):
                source = _AS_JSON.sub("", segment.source)
                return evaluate_expression(source, segment.line, _scope(segment.names, typed))
        pieces = self.fill(lookup, typed)
        if any(isinstance(piece, FileMention) for piece in pieces):
            raise FileProblem("a file cannot be mentioned here", self.line)
        return "".join(str(piece) for piece in pieces)


def join(pieces: Iterable[str | FileMention]) -> Filled:
    """Join adjacent texts of these pieces, and drop empty texts.

    Raises `LimitProblem` when they are longer than a text may be.
    """
    joined: Filled = []
    texts: list[str] = []
    size = 0
    for piece in pieces:
        size += len(piece) if isinstance(piece, str) else _LENGTH_OF_MENTION
        if size > LONGEST_TEXT:
            raise LimitProblem(
                f"the text is longer than {LONGEST_TEXT:,} characters when its values are filled in"
            )
        if isinstance(piece, str):
            texts.append(piece)
            continue
        if any(texts):
            joined.append("".join(texts))
        texts = []
        joined.append(piece)
    if any(texts):
        joined.append("".join(texts))
    return joined


def plain(text: str) -> Template:
    """Return a template that is a text without names."""
    return Template((text,) if text else (), {})


class NoValueError(FileProblem):
    """A row of data lacks a value, which an expression may handle."""


def _look_up(name: NameSegment, values: Callable[[str], T]) -> T:
    """Look up the value of a name; a missing one is reported at the line of the name."""
    try:
        return values(name.name)
    except NoValueError as error:
        error.line = error.line or name.line
        raise


def _scope(names: Iterable[str], typed: Callable[[str], Any]) -> dict[str, Any]:
    """Return the values of names; names without a value are left out."""
    scope: dict[str, Any] = {}
    for name in names:
        try:
            scope[name] = typed(name)
        except NoValueError:
            continue
    return scope


def _evaluate(expression: ExpressionSegment, typed: Callable[[str], Any]) -> str:
    return run("{{" + expression.source + "}}", expression.line, _scope(expression.names, typed))


def jinja_source(segments: tuple[Segment, ...]) -> str:
    """Return the Jinja source of a text with statements; segments are numbered variables."""
    parts = []
    for number, segment in enumerate(segments):
        if isinstance(segment, ExpressionSegment):
            parts.append("{{" + segment.source + "}}")
        elif isinstance(segment, str):
            parts.append(segment)
        else:
            parts.append("{{" + f"{INSIDE}{number}" + "}}")
    return "".join(parts)


def _render(template: Template, lookup: Lookup, typed: Callable[[str], Any]) -> Filled:
    source = jinja_source(template.segments)
    mentions: list[FileMention] = []
    scope = _scope(template.scope or (), typed)
    fills: dict[str, Filled] = {}
    for number, segment in enumerate(template.segments):
        if isinstance(segment, NameSegment):
            fills[f"{INSIDE}{number}"] = _look_up(segment, lookup)
        elif isinstance(segment, LiteralSegment):
            fills[f"{INSIDE}{number}"] = [segment.text]
        elif isinstance(segment, FileMention | PathSegment):
            mention = segment.fill(lookup) if isinstance(segment, PathSegment) else segment
            fills[f"{INSIDE}{number}"] = [mention]
    texts = [source, *map(str, scope.values())]
    texts += [piece for pieces in fills.values() for piece in pieces if isinstance(piece, str)]
    digest = hashlib.blake2b("\0".join(texts).encode("utf-8", "surrogatepass"), digest_size=16)
    fence = f"\0{digest.hexdigest()}:"
    for name, pieces in fills.items():
        text = ""
        for piece in pieces:
            if isinstance(piece, FileMention):
                text += f"{fence}{len(mentions)}{fence}"
                mentions.append(piece)
            else:
                text += piece
        scope[name] = text
    pieces_of_text = run(source, template.line, scope).split(fence)
    return join(
        mentions[int(piece)] if index % 2 else piece for index, piece in enumerate(pieces_of_text)
    )


_FILE = "_file:"
_INNER_NAME = re.compile(r"(`?)\{\{([^{}\n]*)\}\}\1")
_PATH = re.compile(rf"\{{\{{[ \t]*{_FILE}((?:[^{{}}\n]|\{{\{{[^{{}}\n]*\}}\}})*)\}}\}}")
"""A mentioned file whose path has names in it."""
_IDENTIFIER = re.compile(r"[^\W\d]\w*\Z")
_RAW = re.compile(r"\{%[-+]?\s*raw\s*-?%\}(.*?)(\{%-?\s*endraw\s*[-+]?%\}|\Z)", re.DOTALL)
"""Matches raw text; without an end it extends to the end of the text, to avoid long searches."""
_AS_A_WHOLE = re.compile(r"\{%|\{\{-|-\}\}")
"""Matches syntax for which Jinja must render the whole text."""


def compile_text(
    text: str, known: Iterable[str], line_at: Callable[[int], int], *, strict_reserved: bool = False
) -> Template:
    """Compile a text in which the `known` names have values.

    `line_at` gives the line of the file for an offset into the text. With
    `strict_reserved`, unknown names with `_` in front are needed like any other.
    Raises `FileProblem` for an invalid template.
    """
    if "{{" not in text and "{%" not in text:
        return plain(text)
    return _Compiler(text, frozenset(known), line_at, strict_reserved).compile()


class _Compiler:
    """Splits one text into segments."""

    def __init__(
        self, text: str, known: frozenset[str], line_at: Callable[[int], int], strict_reserved: bool
    ) -> None:
        self.text = text
        self.known = known
        self.line_at = line_at
        self.strict_reserved = strict_reserved
        self.segments: list[Segment] = []
        self.names: dict[str, int] = {}
        self.reserved: dict[str, int] = {}
        stretches = _RAW.finditer(text) if "{%" in text else ()
        self.raw = [raw for raw in stretches if raw[2]]
        self.statement = self._find_statement()

    def _find_statement(self) -> re.Match[str] | None:
        """Find the first statement outside raw text."""
        raw = iter(self.raw)
        current = next(raw, None)
        for match in _AS_A_WHOLE.finditer(self.text):
            while current is not None and current.end() <= match.start():
                current = next(raw, None)
            if current is None or match.start() < current.start():
                return match
        return None

    def compile(self) -> Template:
        position = 0
        for raw in self.raw:
            self._between(position, raw.start())
            self.segments.append(LiteralSegment(raw[1]))
            position = raw.end()
        self._between(position, len(self.text))
        segments = tuple(segment for segment in self.segments if segment != "")
        if self.statement is None:
            return Template(segments, self.names, self.reserved)
        line = self.line_at(self.statement.start())
        names = undeclared(jinja_source(segments), line)
        scope = frozenset(name for name in names if not name.startswith(INSIDE))
        scope = self._variables(scope)
        self._need(jinja_source(segments), scope, line)
        return Template(segments, self.names, self.reserved, scope, line)

    def _need(self, source: str, names: frozenset[str], line: int, inner: str = "") -> None:
        """Record the used names; of a row of data, the used columns."""
        for name in sorted(names):
            if name == ITEM and ITEM in self.known:
                uses = uses_of(source, ITEM)
                if uses.whole:
                    self.names.setdefault(ITEM, line)
                for key in sorted(uses.keys):
                    if f"{ITEM}.{key}" in self.known or not uses.guarded:
                        self.names.setdefault(f"{ITEM}.{key}", line)
            else:
                self.names.setdefault(_full_name(name, inner, self.known), line)

    def _variables(self, names: frozenset[str]) -> frozenset[str]:
        """Return the names that are not functions of Jinja, such as `range`."""
        return frozenset(name for name in names if name in self.known or not is_global(name))

    def _between(self, position: int, stop: int) -> None:
        """Split the text between two raw parts."""
        text = self.text
        while (start := text.find("{{", position, stop)) >= 0:
            begin, end = self._segment(start, position, stop)
            if end is None:
                break
            self.segments.insert(len(self.segments) - 1, text[position:begin])
            position = end
        self.segments.append(text[position:stop])

    def _segment(self, start: int, position: int, stop: int) -> tuple[int, int | None]:
        """Append the segment at `start`; returns its start and end, with backticks."""
        text, line = self.text, self.line_at(start)
        if text.startswith("{{#", start):
            end = text.find("#}}", start + 3, stop)
            if end < 0:
                hint = f"end it with '#}}}}', or {SWITCH_OFF}"
                raise FileProblem(
                    "a comment '{{#' is never closed", line, hint=hint, fragment="{{#"
                )
            self.segments.append("")
            return start, end + 3
        if text.startswith("{{{", start):
            raise FileProblem(
                "'{{{' is neither text nor a placeholder",
                line,
                hint=f"put a space between the braces, or {SWITCH_OFF}",
                fragment="{{{",
            )
        end = text.find("}}", start, stop)
        if end < 0:
            if self.statement is not None:
                raise FileProblem(
                    "'{{' is never closed", line, hint="end it with '}}'", fragment="{{"
                )
            return start, None
        inner = text[start + 2 : end].strip()
        after = end + 2
        if inner.startswith(_FILE) and "\n" not in inner:
            path = _PATH.match(text, start, stop) if "{{" in inner else None
            rest = path[1] if path else inner.removeprefix(_FILE)
            self.segments.append(self._path(rest, line))
            return self._without_backticks(start, path.end() if path else after, position)
        is_name = inner in self.known and _is_written_so(inner)
        if is_name:
            self.segments.append(NameSegment(inner, line))
            self.names.setdefault(inner, line)
            # `item.x` is an expression, not a name: backticks around it stay.
            if ITEM in self.known and inner.startswith(f"{ITEM}."):
                return start, after
            return self._without_backticks(start, after, position)
        if inner.startswith("_") and _IDENTIFIER.match(inner) and not self.strict_reserved:
            self.segments.append(LiteralSegment(text[start:after]))
            self.reserved.setdefault(inner, line)
            return start, after
        segment, after = _expression(text, start, stop, line)
        if isinstance(segment, ExpressionSegment):
            segment = replace(segment, names=self._variables(segment.names))
            if self.statement is None:
                self._need("{{" + segment.source + "}}", segment.names, line, inner)
        self.segments.append(segment)
        return start, after

    def _without_backticks(self, start: int, after: int, position: int) -> tuple[int, int]:
        """Extend a placeholder to the backticks around it; returns its start and end."""
        text = self.text
        in_backticks = start > position and text[start - 1] == "`" == text[after : after + 1]
        return (start - 1, after + 1) if in_backticks else (start, after)

    def _path(self, path: str, line: int) -> FileMention | PathSegment:
        """Return the mentioned file; its path may have names in it, with or without backticks."""
        if "}}" not in path:
            return FileMention(path.strip(), line)
        parts: list[str | NameSegment] = []
        at = 0
        for inner in _INNER_NAME.finditer(path):
            name = inner[2].strip()
            if name not in self.known and not _IDENTIFIER.match(name):
                hint = "name a replacement in it, and nothing more"
                raise FileProblem(f"'{name}' cannot be used in the path of a file", line, hint=hint)
            self.names.setdefault(name, line)
            parts += [path[at : inner.start()], NameSegment(name, line)]
            at = inner.end()
        return PathSegment((*parts, path[at:]), line)


def _is_written_so(name: str) -> bool:
    """Return whether a known name can be written without an expression."""
    start, dot, rest = name.partition(".")
    return start != ITEM or not dot or _IDENTIFIER.match(rest) is not None


def _full_name(name: str, inner: str, known: frozenset[str]) -> str:
    """Return the whole unknown name: `user-name`, which Jinja reads as a subtraction."""
    return (
        inner
        if name not in known and re.fullmatch(r"[\w.\- ]+", inner) and "." not in inner
        else name
    )


def _expression(
    text: str, start: int, stop: int, line: int
) -> tuple[LiteralSegment | ExpressionSegment, int]:
    """Parse the expression at `start`, a literal if it is none; returns it and its end."""
    end = first = text.find("}}", start, stop)
    message = ""
    for _ in range(3):  # '}}' may stand inside a string or a mapping
        source = text[start + 2 : end].strip()
        if not source:
            break
        try:
            return ExpressionSegment(source, line, undeclared("{{" + source + "}}", line)), end + 2
        except FileProblem as problem:
            message = message or problem.message
        following = text.find("}}", end + 1, stop)
        if following < 0 or ("{" not in source and '"' not in source and "'" not in source):
            break
        end = following
    inner = text[start + 2 : first]
    if not inner.strip() or "{" in inner or "\n" in inner:
        return LiteralSegment(text[start : first + 2]), first + 2
    raise FileProblem(
        message or "not a template expression",
        line,
        hint=f"name a replacement, or {SWITCH_OFF}",
        fragment=text[start : first + 2],
    )

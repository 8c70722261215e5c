"""Templates: strict, sandboxed Jinja2, lenient where Markdown needs it.

A text is compiled once (`template_compiler`) and filled once for each row. Plain names, by
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
from evalstore.files.jinja_sandbox import binds, evaluate_expression, run, undeclared

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
        if self.scope is not None and binds(jinja_source(self.segments), name):
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

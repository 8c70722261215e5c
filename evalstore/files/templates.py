"""Templates: strict, sandboxed Jinja2 with the lenient edges that Markdown needs.

A text is compiled once and filled once for each row. Plain names, by far the most, are
looked up without Jinja; only expressions and `{% … %}` statements load it. What cannot
be a template (`{{}}`, `{{a{b}}`) stays text. Files mentioned as `{{_file:path}}` come
out as `FileMention`s in their place. Nothing here knows where values come from.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from evalstore.errors import FileProblem, LimitProblem
from evalstore.files.jinja_sandbox import (
    SWITCH_OFF,
    binds,
    evaluate,
    is_global,
    run,
    undeclared,
    uses_of,
)

T = TypeVar("T")

_FILE = "_file:"
_INNER_NAME = re.compile(r"(`?)\{\{([^{}\n]*)\}\}\1")
_PATH = re.compile(rf"\{{\{{[ \t]*{_FILE}((?:[^{{}}\n]|\{{\{{[^{{}}\n]*\}}\}})*)\}}\}}")
"""A mentioned file whose path has names in it."""
_IDENTIFIER = re.compile(r"[^\W\d]\w*\Z")
ITEM = "item"
"""The name of a row of data; `item.NAME` is the name of one of its values."""
_AS_JSON = re.compile(r"\|\s*tojson\s*(?:\(\s*\))?\s*\Z")
"""What makes a text of a value that is wanted as a value."""
_RAW = re.compile(r"\{%[-+]?\s*raw\s*-?%\}(.*?)(\{%-?\s*endraw\s*[-+]?%\}|\Z)", re.DOTALL)
"""A stretch without an end takes the rest of the text: looking for each end would take long."""
_AS_A_WHOLE = re.compile(r"\{%|\{\{-|-\}\}")
"""What only Jinja can render, because it reaches beyond its own braces."""
LONGEST_TEXT = 10_000_000
"""Characters of a text with its values in place."""
_LENGTH_OF_MENTION = 100
"""What a file that is mentioned counts as: there may be only so many of them."""
_INSIDE = "__evalstore_"
"""The prefix of the names that replace segments in a source for Jinja."""


@dataclass(frozen=True, slots=True)
class FileMention:
    """A file that stands in a text."""

    path: str
    line: int


@dataclass(frozen=True, slots=True)
class DeferredValue(FileMention):
    """A name, or an expression, that gets its value when there is an answer; `path` is its text."""


@dataclass(frozen=True, slots=True)
class _Name:
    name: str
    line: int


@dataclass(frozen=True, slots=True)
class _Path:
    """A mentioned file whose path is filled, too."""

    parts: tuple[str | _Name, ...]
    line: int

    def fill(self, lookup: Lookup) -> FileMention:
        """The mention with its names in place; raises `FileProblem`."""
        path = ""
        for part in self.parts:
            for piece in [part] if isinstance(part, str) else _look_up(part, lookup):
                if not isinstance(piece, str):
                    words = "the path of a mentioned file cannot mention a file"
                    raise FileProblem(words, self.line)
                path += piece
        return FileMention(path.strip(), self.line)


@dataclass(frozen=True, slots=True)
class _Expression:
    source: str
    line: int
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Literal:
    """Text that Jinja must not read, though it looks like a template."""

    text: str


_Segment = str | FileMention | _Path | _Name | _Expression | _Literal
Filled = list[str | FileMention]
Lookup = Callable[[str], Filled]
"""From a known name to its filled value; raises `FileProblem` when the row has none."""


@dataclass(frozen=True, slots=True)
class Template:
    """A compiled text."""

    segments: tuple[_Segment, ...]
    names: Mapping[str, int]
    """Every name the text needs, with the line that needs it first."""
    reserved: Mapping[str, int] = field(default_factory=dict)
    """Undefined names that begin with `_`: they stay text."""
    scope: frozenset[str] | None = None
    """The names Jinja needs, when it renders the text as a whole (for its `{% … %}`)."""
    line: int = 1
    """Where the first statement stands."""

    @property
    def is_fixed(self) -> bool:
        """Whether the text is the same for every row."""
        changes = (_Name, _Expression, _Path)
        return self.scope is None and not any(
            isinstance(segment, changes) for segment in self.segments
        )

    def fill(self, lookup: Lookup, typed: Callable[[str], Any]) -> Filled:
        """The text with its values in place; neighbouring texts are joined.

        `typed` gives the value that a name has inside an expression.
        """
        if self.scope is not None:
            return _render(self, lookup, typed)
        pieces: Filled = []
        for segment in self.segments:
            if isinstance(segment, str):
                pieces.append(segment)
            elif isinstance(segment, _Name):
                pieces.extend(_look_up(segment, lookup))
            elif isinstance(segment, _Literal):
                pieces.append(segment.text)
            elif isinstance(segment, _Expression):
                pieces.append(_evaluate(segment, typed))
            elif isinstance(segment, _Path):
                pieces.append(segment.fill(lookup))
            else:
                pieces.append(segment)
        return join(pieces)

    def with_later(self, name: str) -> Template:
        """The same text in which expressions over `name` alone stay, each as a `DeferredValue`.

        Statements cannot wait: a name that one of them uses is still among the `names`. Raises
        `FileProblem` when one of them gives the name another value.
        """
        if self.scope is not None and binds(_jinja_source(self.segments), name):
            raise FileProblem(
                f"'{name}' is known only when there is an answer: no statement can set it",
                self.line,
                hint="rename the variable of the statement",
            )
        segments = tuple(
            DeferredValue(segment.source, segment.line)
            if isinstance(segment, _Expression) and segment.names == {name}
            else DeferredValue(segment.name, segment.line)
            if isinstance(segment, _Name) and segment.name == name
            else segment
            for segment in self.segments
        )
        if self.scope is None:
            return replace(self, segments=segments)
        needed = undeclared(_jinja_source(segments), self.line)
        return replace(self, segments=segments, scope=self.scope & needed)

    def value(self, lookup: Lookup, typed: Callable[[str], Any]) -> Any:
        """The value of the text: a single expression keeps its type.

        A lone name is a text when its type would lose how it is written (`007`, `1.10`).
        """
        if self.scope is None and len(self.segments) == 1:
            (segment,) = self.segments
            if isinstance(segment, _Name):
                value = _look_up(segment, typed)
                if isinstance(value, str | dict | list):
                    return value
                text = "".join(str(piece) for piece in lookup(segment.name))
                return value if json.dumps(value) == text else text
            if isinstance(segment, _Expression):
                source = _AS_JSON.sub("", segment.source)
                return evaluate(source, segment.line, _scope(segment.names, typed))
        pieces = self.fill(lookup, typed)
        if any(isinstance(piece, FileMention) for piece in pieces):
            raise FileProblem("a file cannot be mentioned here", self.line)
        return "".join(str(piece) for piece in pieces)


def join(pieces: Iterable[str | FileMention]) -> Filled:
    """The same pieces with neighbouring texts joined and empty texts dropped.

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
    """A text that is shown as it is."""
    return Template((text,) if text else (), {})


def compile_text(
    text: str, known: Iterable[str], line_at: Callable[[int], int], *, strict_reserved: bool = False
) -> Template:
    """Compile a text in which the `known` names have values.

    `line_at` gives the line of the file for an offset into the text. With
    `strict_reserved`, unknown names with `_` in front are needed like any other.
    Raises `FileProblem` for what looks like a template and is none.
    """
    if "{{" not in text and "{%" not in text:
        return plain(text)
    return _Compiler(text, frozenset(known), line_at, strict_reserved).compile()


class _Compiler:
    """Takes one text apart."""

    def __init__(
        self, text: str, known: frozenset[str], line_at: Callable[[int], int], strict_reserved: bool
    ) -> None:
        self.text = text
        self.known = known
        self.line_at = line_at
        self.strict_reserved = strict_reserved
        self.segments: list[_Segment] = []
        self.names: dict[str, int] = {}
        self.reserved: dict[str, int] = {}
        stretches = _RAW.finditer(text) if "{%" in text else ()
        self.raw = [raw for raw in stretches if raw[2]]
        self.statement = self._find_statement()

    def _find_statement(self) -> re.Match[str] | None:
        """The first statement outside of the raw stretches, which are in the order of the text."""
        raw = iter(self.raw)
        current = next(raw, None)
        for found in _AS_A_WHOLE.finditer(self.text):
            while current is not None and current.end() <= found.start():
                current = next(raw, None)
            if current is None or found.start() < current.start():
                return found
        return None

    def compile(self) -> Template:
        position = 0
        for raw in self.raw:
            self._between(position, raw.start())
            self.segments.append(_Literal(raw[1]))
            position = raw.end()
        self._between(position, len(self.text))
        segments = tuple(segment for segment in self.segments if segment != "")
        if self.statement is None:
            return Template(segments, self.names, self.reserved)
        line = self.line_at(self.statement.start())
        needed = undeclared(_jinja_source(segments), line)
        scope = frozenset(name for name in needed if not name.startswith(_INSIDE))
        scope = self._variables(scope)
        self._need(_jinja_source(segments), scope, line)
        return Template(segments, self.names, self.reserved, scope, line)

    def _need(self, source: str, names: frozenset[str], line: int, inner: str = "") -> None:
        """Take note of names; of a row of data, of the single values that are used."""
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
        """The names that are not functions of Jinja, such as `range`."""
        return frozenset(name for name in names if name in self.known or not is_global(name))

    def _is_of_item(self, name: str) -> bool:
        return ITEM in self.known and name.startswith(f"{ITEM}.")

    def _between(self, position: int, stop: int) -> None:
        """Take apart what stands between two raw stretches."""
        text = self.text
        while (start := text.find("{{", position, stop)) >= 0:
            begin, end = self._segment(start, position, stop)
            if end is None:
                break
            self.segments.insert(len(self.segments) - 1, text[position:begin])
            position = end
        self.segments.append(text[position:stop])

    def _segment(self, start: int, position: int, stop: int) -> tuple[int, int | None]:
        """Append the segment at `start`; where it begins and ends, backticks included."""
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
            self.segments.append(_Name(inner, line))
            self.names.setdefault(inner, line)
            # `item.x` is an expression, not a name: what stands around it stays.
            if self._is_of_item(inner):
                return start, after
            return self._without_backticks(start, after, position)
        if inner.startswith("_") and _IDENTIFIER.match(inner) and not self.strict_reserved:
            self.segments.append(_Literal(text[start:after]))
            self.reserved.setdefault(inner, line)
            return start, after
        segment, after = _expression(text, start, stop, line)
        if isinstance(segment, _Expression):
            segment = replace(segment, names=self._variables(segment.names))
            if self.statement is None:
                self._need("{{" + segment.source + "}}", segment.names, line, inner)
        self.segments.append(segment)
        return start, after

    def _without_backticks(self, start: int, after: int, position: int) -> tuple[int, int]:
        """Where a placeholder begins and ends with the backticks round it."""
        text = self.text
        in_backticks = start > position and text[start - 1] == "`" == text[after : after + 1]
        return (start - 1, after + 1) if in_backticks else (start, after)

    def _path(self, path: str, line: int) -> FileMention | _Path:
        """The mentioned file; its path may have names in it, with or without backticks."""
        if "}}" not in path:
            return FileMention(path.strip(), line)
        parts: list[str | _Name] = []
        at = 0
        for inner in _INNER_NAME.finditer(path):
            name = inner[2].strip()
            if name not in self.known and not _IDENTIFIER.match(name):
                hint = "name a replacement in it, and nothing more"
                raise FileProblem(f"'{name}' cannot be used in the path of a file", line, hint=hint)
            self.names.setdefault(name, line)
            parts += [path[at : inner.start()], _Name(name, line)]
            at = inner.end()
        return _Path((*parts, path[at:]), line)


def _is_written_so(name: str) -> bool:
    """Whether a known name may stand alone: a value of a row only behind a dot that Jinja reads."""
    start, dot, rest = name.partition(".")
    return start != ITEM or not dot or _IDENTIFIER.match(rest) is not None


def _full_name(name: str, inner: str, known: frozenset[str]) -> str:
    """What to call an unknown name: all of `user-name`, which Jinja reads as a subtraction."""
    return (
        inner
        if name not in known and re.fullmatch(r"[\w.\- ]+", inner) and "." not in inner
        else name
    )


def _expression(text: str, start: int, stop: int, line: int) -> tuple[_Literal | _Expression, int]:
    """The expression that starts at `start`, or that stretch as text; and where it ends."""
    end = first = text.find("}}", start, stop)
    message = ""
    for _ in range(3):  # '}}' may stand inside a string or a mapping
        source = text[start + 2 : end].strip()
        if not source:
            break
        try:
            return _Expression(source, line, undeclared("{{" + source + "}}", line)), end + 2
        except FileProblem as problem:
            message = message or problem.message
        following = text.find("}}", end + 1, stop)
        if following < 0 or ("{" not in source and '"' not in source and "'" not in source):
            break
        end = following
    inner = text[start + 2 : first]
    if not inner.strip() or "{" in inner or "\n" in inner:
        return _Literal(text[start : first + 2]), first + 2
    raise FileProblem(
        message or "not a template expression",
        line,
        hint=f"name a replacement, or {SWITCH_OFF}",
        fragment=text[start : first + 2],
    )


class NoValueError(FileProblem):
    """A row of data lacks a value; an expression may know what to do then."""


def _look_up(name: _Name, values: Callable[[str], T]) -> T:
    """The value of a name; one that a row lacks is reported where it is mentioned."""
    try:
        return values(name.name)
    except NoValueError as error:
        error.line = error.line or name.line
        raise


def _scope(names: Iterable[str], typed: Callable[[str], Any]) -> dict[str, Any]:
    """The values of names; those that have none are left out."""
    found: dict[str, Any] = {}
    for name in names:
        try:
            found[name] = typed(name)
        except NoValueError:
            continue
    return found


def _evaluate(expression: _Expression, typed: Callable[[str], Any]) -> str:
    scope = _scope(expression.names, typed)
    return run("{{" + expression.source + "}}", expression.line, scope)


def _jinja_source(segments: tuple[_Segment, ...]) -> str:
    """One Jinja source for a text with statements; segments come in as numbered variables."""
    parts = []
    for number, segment in enumerate(segments):
        if isinstance(segment, _Expression):
            parts.append("{{" + segment.source + "}}")
        elif isinstance(segment, str):
            parts.append(segment)
        else:
            parts.append("{{" + f"{_INSIDE}{number}" + "}}")
    return "".join(parts)


def _render(template: Template, lookup: Lookup, typed: Callable[[str], Any]) -> Filled:
    source = _jinja_source(template.segments)
    mentions: list[FileMention] = []
    scope = _scope(template.scope or (), typed)
    fills: dict[str, Filled] = {}
    for number, segment in enumerate(template.segments):
        if isinstance(segment, _Name):
            fills[f"{_INSIDE}{number}"] = _look_up(segment, lookup)
        elif isinstance(segment, _Literal):
            fills[f"{_INSIDE}{number}"] = [segment.text]
        elif isinstance(segment, FileMention | _Path):
            mention = segment.fill(lookup) if isinstance(segment, _Path) else segment
            fills[f"{_INSIDE}{number}"] = [mention]
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

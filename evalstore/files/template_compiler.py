"""Compiles texts to templates: finds names, expressions, mentioned files and comments.

Text that cannot be a template (`{{}}`, `{{a{b}}`) is not changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from evalstore.core.errors import FileProblem
from evalstore.files.jinja_environment import is_global
from evalstore.files.jinja_sandbox import SWITCH_OFF, undeclared, uses_of
from evalstore.files.templates import (
    INSIDE,
    ITEM,
    ExpressionSegment,
    FileMention,
    LiteralSegment,
    NameSegment,
    PathSegment,
    Segment,
    Template,
    jinja_source,
    plain,
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

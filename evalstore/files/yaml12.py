"""Reads YAML 1.2 (core schema), and writes values as YAML.

Only `true`/`false` are booleans, there are no dates and no merge keys, a duplicate key
and a key that is not a scalar are errors. So `Yes`, `No` and `2013-04-13` stay text. Every
value keeps its line, and scalars can be read as they were written (`1.10` stays `1.10`).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

import yaml
from frontmatter.default_handlers import YAMLHandler

from evalstore.core.display import shorten
from evalstore.core.errors import FileProblem
from evalstore.core.values import Json

_TAG = "tag:yaml.org,2002:"
_DEEPEST = 100
"""The most levels of nesting."""
_MOST_NODES = 1_000_000
"""The most values in one document after its aliases are expanded."""
_MOST_BITS = 14_000
"""The most bits of a whole number, as Python converts at most 4,300 digits."""
_MOST_ESCAPED = 200_000
"""The most characters of a document with escaped surrogate pairs, which takes seconds."""
_NESTING = re.compile(r"[\[{]|[-?:][ \t\n]")
_RESOLVERS = (
    ("null", r"~|null|Null|NULL|", ("~", "n", "N", "")),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+.0123456789",
    ),
)


class _CoreLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's interface


class _PairLoader(yaml.SafeLoader):
    """Reads escaped surrogate pairs, which JSON has for an emoji and libyaml refuses; slow."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's interface

    def compose_scalar_node(self, anchor: Any) -> yaml.ScalarNode:
        """Return a scalar in which the halves of each pair are joined."""
        node: yaml.ScalarNode = super().compose_scalar_node(anchor)
        try:
            node.value = node.value.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            raise _problem(node, "half of a surrogate pair is not a character") from None
        return node


_ONE_LINE = 60
"""The most characters of a list or mapping on one line."""


class _CoreDumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Writes texts of several lines as blocks, and no anchors.

    A text that YAML 1.1 or the core schema of YAML 1.2 reads as something else is quoted.
    """

    def ignore_aliases(self, data: object) -> bool:
        """Write a value that occurs twice twice."""
        return True


class _CompactDumper(_CoreDumper):
    """Writes short lists and mappings of scalars on one line, except for the outermost one.

    Nor are its items on one line that are mappings with one field.
    """

    def represent(self, data: object) -> None:
        """Write a value in block style."""
        node = self.represent_data(data)
        items = node.value if isinstance(node, yaml.SequenceNode) else ()
        lone = [it for it in items if isinstance(it, yaml.MappingNode) and len(it.value) == 1]
        for each in (node, *lone):
            if isinstance(each, yaml.CollectionNode):
                each.flow_style = False
        self.serialize(node)

    def represent_data(self, data: object) -> yaml.Node:
        """Return the node of a value, on one line if it is short."""
        node: yaml.Node = super().represent_data(data)
        if isinstance(node, yaml.CollectionNode):
            is_mapping = isinstance(node, yaml.MappingNode)
            parts = [part for pair in node.value for part in pair] if is_mapping else node.value
            length = sum(
                len(part.value) + 2
                if isinstance(part, yaml.ScalarNode) and not part.style
                else _ONE_LINE
                for part in parts
            )
            node.flow_style = length < _ONE_LINE
        return node


for _name, _pattern, _first in _RESOLVERS:
    for _class in (_CoreLoader, _PairLoader, _CoreDumper):
        _class.add_implicit_resolver(_TAG + _name, re.compile(f"^(?:{_pattern})$"), list(_first))


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text.strip("\n") else None
    return dumper.represent_scalar(f"{_TAG}str", text, style=style)


_CoreDumper.add_representer(str, _represent_text)


@dataclass(frozen=True, slots=True)
class WrittenScalar:
    """A scalar as it was written, with its value."""

    text: str
    typed: Json
    line: int


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML document: its value and the lines of its items."""

    value: Json
    node: yaml.Node | None
    first_line: int
    """The line of the file at which the document starts."""

    def line(self, *path: str | int) -> int:
        """Return the line of the item at `path`, or of its nearest ancestor if it is missing."""
        node = self.node
        line = self.first_line if node is None else self._line_of(node)
        for step in path:
            entry = _child(node, step)
            if entry is None:
                break
            key, node = entry
            line = self._line_of(key)
        return line

    def at(self, *path: str | int) -> Document:
        """Return the item at `path` as a document with the same line numbers."""
        value, node = self.value, self.node
        for step in path:
            entry = _child(node, step)
            if entry is None:
                return Document(None, None, self.line(*path))
            node, value = entry[1], value[step]
        return Document(value, node, self.first_line)

    @property
    def form(self) -> str | None:
        """Return the text of a scalar as it is written; None for a list or a mapping."""
        return str(self.node.value) if isinstance(self.node, yaml.ScalarNode) else None

    def written(self, *path: str | int) -> Any:
        """Return the item at `path` with `WrittenScalar` for scalars; mappings keep their order."""
        node = self.at(*path).node
        return None if node is None else self._written(node)

    def _written(self, node: yaml.Node) -> Any:
        if isinstance(node, yaml.MappingNode):
            return {key.value: self._written(value) for key, value in node.value}
        if isinstance(node, yaml.SequenceNode):
            return [self._written(item) for item in node.value]
        typed = _scalar(node)
        text = "null" if typed is None else str(node.value)
        text = text.lower() if isinstance(typed, bool) else text
        return WrittenScalar(text, typed, self._line_of(node))

    def _line_of(self, node: yaml.Node) -> int:
        return int(node.start_mark.line) + self.first_line


def _child(node: yaml.Node | None, step: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        return next((item for item in reversed(node.value) if item[0].value == step), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step]
    return None


def with_value(document: Document, path: Sequence[str], text: str) -> Document:
    """Replace the value at a path of keys; returns a new document, raises `FileProblem`.

    The value is read as YAML, and everything else keeps its line.
    """
    node = read_yaml(text or "null").node
    assert node is not None
    whole = _put(document.node, path, node)
    return Document(_Values(False, False).read(whole, 0), whole, document.first_line)


def _put(node: yaml.Node | None, path: Sequence[str], value: yaml.Node) -> yaml.Node:
    if not path:
        return value
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    inner = next((node for key, node in pairs if key.value == path[0]), None)
    key = yaml.ScalarNode(_TAG + "str", path[0], value.start_mark, value.end_mark)
    others = [(name, inner_node) for name, inner_node in pairs if name.value != path[0]]
    mark = node.start_mark if node is not None else value.start_mark
    put = (key, _put(inner, path[1:], value))
    return yaml.MappingNode(_TAG + "map", [*others, put], mark, value.end_mark)


def read_yaml(
    text: str, *, first_line: int = 1, repeats: bool = False, merge_keys: bool = False
) -> Document:
    """Read one document; raises `FileProblem` with line and column for anything wrong.

    With `repeats` a key may appear again, and the last one counts, as in other readers.
    With `merge_keys`, `<<` is a key like any other, for formats that have a meaning for it.
    """
    kind: Any = _CoreLoader
    while True:
        loader = kind(text)
        try:
            _refuse_size(text, kind)
            node = loader.get_single_node()
            value = None if node is None else _Values(repeats, merge_keys).read(node, 0)
            return Document(value, node, first_line)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            message = str(error.problem or error.context or "is not valid YAML")
            if mark is None:
                raise FileProblem(message, first_line) from error
            if "escape code" in message and kind is _CoreLoader and len(text) <= _MOST_ESCAPED:
                kind = _PairLoader
                continue
            if unclosed := _find_unclosed(text, error):
                sign, opened, is_end = unclosed
                before = "" if is_end else f" before line {mark.line + first_line}"
                message, mark = f"the {sign} is not closed{before}", opened
            line, column = mark.line, mark.column
            is_tab = "".join(_BREAK.split(text)[line : line + 1])[column:].startswith("\t")
            hint = "use spaces, not a tab" if is_tab else _HINTS.get(message)
            raise FileProblem(message, line + first_line, column=column + 1, hint=hint) from error
        except yaml.reader.ReaderError as error:
            # libyaml counts bytes.
            line = text.encode()[: error.position].count(b"\n") + first_line
            raise FileProblem(
                f"a character that YAML does not allow: {error.reason}", line
            ) from error
        finally:
            loader.dispose()


_HINTS = {
    "mapping values are not allowed in this context": "quote a value with ': ', as in 'one: two'",
    "could not find expected ':'": "a field is written as 'name: value'",
}


_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_OPENED = (
    "while parsing a flow sequence",
    "while parsing a flow mapping",
    "while parsing a flow node",
    "while scanning a quoted scalar",
)


def _find_unclosed(text: str, error: yaml.MarkedYAMLError) -> tuple[str, yaml.Mark, bool] | None:
    """Return the bracket or quotation mark that is not closed, and its place.

    Returns also whether the text ends where the parser stopped. None if the line at which it
    stopped belongs to what is open, by its indentation: then that line is at fault.
    """
    lines = [*_BREAK.split(text), ""]
    opened, stopped = error.context_mark, error.problem_mark
    if error.context == "while parsing a flow node":  # libyaml then has the place of the node
        opened = _innermost_bracket(text)
    if not (opened and stopped and str(error.context).startswith(_OPENED)):
        return None
    if "escape" in str(error.problem):
        return None
    first, last = lines[opened.line], lines[stopped.line]
    is_below = opened.line < stopped.line and _indent(last) <= _indent(first)
    is_end = not "".join([last[stopped.column :], *lines[stopped.line + 1 :]]).strip()
    return (first[opened.column], opened, is_end) if is_below or is_end else None


def _innermost_bracket(text: str) -> yaml.Mark | None:
    """Return the place of the last bracket of a text that is not closed; None without one."""
    opened: list[yaml.Mark] = []
    with suppress(yaml.YAMLError):
        for token in yaml.scan(text, _CoreLoader):
            if isinstance(token, yaml.FlowSequenceStartToken | yaml.FlowMappingStartToken):
                opened.append(token.start_mark)
            elif isinstance(token, yaml.FlowSequenceEndToken | yaml.FlowMappingEndToken):
                opened[-1:] = []
    return opened[-1] if opened else None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def write_yaml(value: Json, *, compact: bool = False) -> str:
    """Return a value as YAML in block style, with the fields of mappings in their order.

    With `compact`, short inner ones are on one line. Unprintable characters are escaped.
    """
    text: str = yaml.dump(
        value,
        Dumper=_CompactDumper if compact else _CoreDumper,
        sort_keys=False,
        allow_unicode=True,
        width=1 << 20,
    )
    return text.removesuffix("...\n").removesuffix("\n")


def _refuse_size(text: str, kind: Any) -> None:
    """Raise for input that would exhaust the stack or memory in libyaml's composer."""
    is_long = len(text) > _MOST_NODES
    if not is_long and sum(1 for _ in islice(_NESTING.finditer(text), 2000)) < 2000:
        return
    loader, depth, count = kind(text), 0, 0
    try:
        while loader.check_event():
            event = loader.get_event()
            count += 1
            if count > _MOST_NODES:
                raise yaml.MarkedYAMLError(
                    problem=f"the document has more than {_MOST_NODES:,} values",
                    problem_mark=event.start_mark,
                )
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth > 10 * _DEEPEST:
                raise yaml.MarkedYAMLError(
                    problem="is nested too deeply", problem_mark=event.start_mark
                )
    finally:
        loader.dispose()


class _Values:
    """Turns the nodes of one document into values, and counts them."""

    def __init__(self, repeats: bool, merge_keys: bool) -> None:
        self._count = 0
        self._repeats = repeats
        self._merge_keys = merge_keys

    def read(self, node: yaml.Node, depth: int) -> Json:
        self._count += 1
        if self._count > _MOST_NODES:
            raise _problem(node, "the document is too large once its aliases are expanded")
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node)
        if depth > _DEEPEST:  # an alias that refers to what contains it ends here too
            raise _problem(node, "is nested too deeply")
        if isinstance(node, yaml.SequenceNode):
            _check_tag(node, "seq")
            return [self.read(item, depth + 1) for item in node.value]
        _check_tag(node, "map")
        result: dict[str, Json] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == _TAG + "null":
                raise _problem(key, "a key must be text")
            if key.value == "<<" and not self._merge_keys and _is_merge_key(key, value):
                raise _problem(key, "merge keys ('<<') are not YAML 1.2: write the fields out")
            if key.value in result and not self._repeats:
                raise _problem(key, f"key '{key.value}' appears twice")
            result[key.value] = self.read(value, depth + 1)
        return result


def _is_merge_key(key: yaml.ScalarNode, value: yaml.Node) -> bool:
    """Return whether YAML 1.1 merges the value of a key `<<`: a mapping, or a list of mappings."""
    if key.style:
        return False
    items = value.value if isinstance(value, yaml.SequenceNode) else [value]
    return bool(items) and all(isinstance(item, yaml.MappingNode) for item in items)


def _check_tag(node: yaml.Node, expected: str) -> None:
    if node.tag != _TAG + expected:
        raise _problem(node, f"the tag '{node.tag}' is not allowed")


def _scalar(node: yaml.Node) -> Json:
    kind, text = node.tag.removeprefix(_TAG), node.value
    if kind == "str":
        return text
    if kind == "null":
        return None
    if kind == "bool" and text.lower() in ("true", "false"):
        return bool(text.lower() == "true")
    try:
        if kind == "int":
            number = int(text, 0) if text[:2] in ("0o", "0x") else int(text)
            if number.bit_length() > _MOST_BITS:
                raise ValueError("it cannot be written with digits")
            return number
        if kind == "float":
            return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    except ValueError as error:
        raise _problem(node, f"{shorten(text)} is not a number that can be read") from error
    raise _problem(node, f"the tag '{node.tag}' is not allowed")


def _problem(node: yaml.Node, message: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=message, problem_mark=node.start_mark)


_HANDLER = YAMLHandler(re.compile(r"^---[ \t]*$", re.MULTILINE))
"""Splits at lines of exactly `---`."""
HEADING = re.compile(r"^# *(?:[^\w\s]+|user|assistant|system) *$", re.MULTILINE | re.IGNORECASE)
"""Matches the heading of a message, which a frontmatter does not have."""
_NO_SPACE = re.compile(r"^(\w+:)[^\s/]", re.MULTILINE)
_BLANK_LINES = re.compile(r"(?:[ \t]*\n)*")


def split_frontmatter(text: str) -> tuple[Document | None, str, int]:
    """Split off the frontmatter; returns it, the body, and the line at which the body starts.

    Blank lines before the first fence are ignored. Raises `FileProblem` for a fence
    that is never closed and for a frontmatter that is not a mapping.
    """
    blank = _BLANK_LINES.match(text)
    start = blank.end() if blank else 0
    content = text[start:]
    skipped = text.count("\n", 0, start)
    if not _HANDLER.detect(content):
        return None, text, 1
    try:
        matter, body = _HANDLER.split(content)
    except ValueError as error:
        raise FileProblem(
            "the frontmatter is never closed", skipped + 1, hint="end it with a line '---'"
        ) from error
    try:
        document = read_yaml(matter, first_line=skipped + 1)
    except FileProblem as problem:
        if not (heading := HEADING.search(matter)):
            if problem.hint in _HINTS.values() and (field := _NO_SPACE.search(matter)):
                problem.hint = f"write a space after '{field[1]}'"
            raise
        line = skipped + 1 + matter.count("\n", 0, heading.start())
        raise FileProblem(
            "the frontmatter is not closed above the messages",
            line,
            hint=f"write '---' above line {line}, '{heading[0].strip()}'",
        ) from problem
    if not isinstance(document.value, dict):
        defect = "is empty" if document.value is None else "is not a mapping of fields"
        hint = "remove both '---' lines, or write fields such as 'tags: [a]' between them"
        if field := _NO_SPACE.search(matter):
            hint = f"write a space after '{field[1]}'"
        raise FileProblem(f"the frontmatter {defect}", skipped + 1, hint=hint)
    return document, body, text.count("\n") - body.count("\n") + 1


_NOT_A_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*"|(NaN|-?Infinity)')


def refuse_constant(name: str) -> Json:
    """Raise `ValueError` for NaN and Infinity, as the `parse_constant` of a decoder."""
    raise ValueError(f"Unknown value {name}")


def parse_json(text: str, **options: Any) -> Json:
    """Parse JSON in which NaN and Infinity are errors; raises `ValueError`.

    `options` are those of `json.loads`.
    """

    def refuse(name: str) -> Json:
        at = next(match.start() for match in _NOT_A_NUMBER.finditer(text) if match[1])
        raise json.JSONDecodeError(f"Unknown value {name}", text, at)

    return json.loads(text, parse_constant=refuse, **options)


def hint_on_comma(text: str, at: int) -> str | None:
    """Return the hint on a comma that ends a list or an object of JSON, if it fails there.

    Python 3.13 names the place of the comma, older ones that of the bracket behind it.
    """
    start = max(at - 80, 0)
    for found in re.finditer(r",\s*([}\]])", text[start : at + 80]):
        if at - start in (found.start(), found.end() - 1):
            return f"remove the comma before '{found[1]}'"
    return None


def unique_members(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """Return an object of these members; raises `FileProblem` when a name is there twice."""
    members = dict(pairs)
    if len(members) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise FileProblem(f"key {shorten(twice)} appears twice", 1)
    return members


def read_json(text: str) -> Document:
    """Read JSON with the same strictness; only problems have line numbers."""
    try:
        value = parse_json(text, object_pairs_hook=unique_members)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
        return Document(value, None, 1)
    except UnicodeEncodeError as error:
        half = f"U+{ord(error.object[error.start]):04X}"
        raise FileProblem(f"half of a surrogate pair ({half}) is not a character", 1) from error
    except json.JSONDecodeError as error:
        hint = hint_on_comma(text, error.pos)
        raise FileProblem(error.msg, error.lineno, column=error.colno, hint=hint) from error
    except (RecursionError, ValueError) as error:
        raise FileProblem(f"cannot be read: {error}", 1) from error

"""Lines and tables that fit the terminal, and lists as JSON, JSON Lines, CSV or Markdown.

Of a table less important columns are left out, then long cells are cut.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from json import dumps
from operator import itemgetter
from typing import Any, Literal, TypeVar

from evalstore.core.display import (
    StyledLine,
    StyledSpan,
    TextBlock,
    break_word,
    shorten_labels,
)
from evalstore.core.display import columns_of as width_of
from evalstore.core.errors import OK, EvalstoreError
from evalstore.exchange.exports.formats import csv_lines, markdown_lines
from evalstore.files.json_output import to_json
from evalstore.files.temporary_list import TemporaryList
from evalstore.interfaces.cli import output

_GAP = 2
"""Blanks between two columns."""
_NARROWEST = 10
"""Columns of the terminal that a cell keeps when it is cut."""


_LEAST_NAMES = 36
"""The fewest columns for the names of a case and a model; what follows gets a line of its own."""
BESIDE_PLACE = 23
"""Columns of a line that has a verdict and an id beside a case and a model."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under a header, and how they are shown."""

    header: Sequence[str]
    rows: Iterable[Sequence[str]]
    """Those of an iterator are in a temporary file while they are printed."""
    numbers: frozenset[str] = frozenset()
    """The columns whose cells are aligned at their end; they are never cut."""
    optional: Sequence[str] = ()
    """The columns that a narrow terminal leaves out, in this order."""
    shortened: Mapping[str, int] = field(default_factory=dict)
    """Columns that are cut to so many columns of the terminal before one is left out."""
    has_header: bool = True
    prose: str | None = None
    """The column with sentences, which need not be distinct: they are cut at their end."""
    paint: Callable[[str], str] = str
    """Colours a line."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Which columns of a table are shown, and how wide each is."""

    shown: list[int]
    widths: list[int]
    left_out: list[str]
    is_cut: bool


def fit(table: Table, width: int | None) -> Layout:
    """Lay out a table in so many columns of the terminal; None: as wide as it needs."""
    sizes = [0] * len(table.header)
    for row in chain([table.header] if table.has_header else [], table.rows):
        sizes = [max(size, width_of(it)) for size, it in zip(sizes, row, strict=True)]
    least = [
        min(size, table.shortened.get(name, size))
        for name, size in zip(table.header, sizes, strict=True)
    ]
    shown = list(range(len(sizes)))

    def missing(sizes: Sequence[int]) -> int:
        needed = sum(sizes[number] for number in shown) + _GAP * (len(shown) - 1)
        return 0 if width is None else max(0, needed - width)

    left_out: list[str] = []
    for name in table.optional:
        if not missing(least):
            break
        if name in table.header:
            shown.remove(table.header.index(name))
            left_out.append(name)
    texts = [number for number in shown if table.header[number] not in table.numbers]
    is_cut = False
    for _ in range(missing(sizes)):
        longest = max(texts, key=lambda number: sizes[number], default=None)
        if longest is None or sizes[longest] <= _NARROWEST:
            break
        sizes[longest] -= 1
        is_cut = True
    return Layout(shown, [sizes[number] for number in shown], left_out, is_cut)


def print_table(table: Table) -> None:
    """Print a table in the columns of the terminal, and say what that leaves out."""
    safe_rows = (list(map(output.safe, row)) for row in table.rows)
    rows = TemporaryList(safe_rows) if isinstance(table.rows, Iterator) else list(safe_rows)
    if not rows:
        return
    safe = replace(table, rows=rows)
    layout = fit(safe, None if output.wide else output.table_width())
    if table.has_header:
        titles = [name.upper() for name in table.header]
        output.line(output.faint(_line(safe, layout, titles)))
    for row in _cut(safe, layout):
        output.line(table.paint(_line(safe, layout, row)))
    notes = [f"left out: {', '.join(filter(None, layout.left_out))}"] if layout.left_out else []
    notes += ["long cells are cut"] if layout.is_cut else []
    if notes:
        for text in output.wrap(f"({'; '.join(notes)}; --wide shows all)", output.width()):
            output.talk(output.faint(text))


def align_cases(
    places: Sequence[str], models: Sequence[str], others: int = BESIDE_PLACE
) -> tuple[list[str], list[str]]:
    """Return names of cases and of models as two columns, as long as the terminal allows.

    Beside them are `others` columns.
    """
    rows = [*zip(places, map(output.safe, models), strict=True)]
    table = Table(("case", "model"), rows, has_header=False)
    columns = None if output.wide else output.table_width()
    layout = fit(table, None if columns is None else max(_LEAST_NAMES, columns - others))
    cases, names = (
        ([*column] for column in zip(*_cut(table, layout), strict=True)) if rows else ([], [])
    )
    of_case, of_name = layout.widths
    return (
        [output.pad(name, of_case) for name in cases],
        [output.pad(name, of_name) for name in names],
    )


def _cut(table: Table, layout: Layout) -> Iterable[Sequence[str]]:
    """Return the rows with shorter cells; cells of a column that begin alike remain distinct."""
    if not layout.is_cut:
        return table.rows
    texts: dict[int, Iterator[str]] = {}
    for number, size in zip(layout.shown, layout.widths, strict=True):
        cells = map(itemgetter(number), table.rows)
        if table.header[number] == table.prose:
            texts[number] = map(partial(output.clip, columns=size), cells)
        elif table.header[number] not in table.numbers:
            texts[number] = iter(shorten_labels(cells, size))
    return (
        [next(texts[number]) if number in texts else cell for number, cell in enumerate(row)]
        for row in table.rows
    )


def _line(table: Table, layout: Layout, row: Sequence[str]) -> str:
    cells = []
    for number, size in zip(layout.shown, layout.widths, strict=True):
        text = row[number]
        blanks = " " * (size - output.columns_of(text))
        is_number = table.header[number] in table.numbers
        cells.append(blanks + text if is_number else text + blanks)
    return (" " * _GAP).join(cells).rstrip()


# --- lines with colours, and texts with titles


T = TypeVar("T")
_WORD = re.compile(r"\s*\S+|\s+$")
_LEAST = 20
"""The fewest columns to which a line is wrapped."""


def print_lines(lines: Iterable[StyledLine], *, is_yaml: bool = False, prefix: str = "") -> None:
    """Print lines, wrapped between words in a terminal, else as long as they are.

    In YAML each part of a comment begins with `#`. A prefix is printed before each part.
    """
    columns = output.table_width()
    if columns is not None:
        columns -= output.columns_of(prefix)
    for line in lines:
        comment = is_yaml and line.text.lstrip(" ").startswith("# ")
        for part in _fit(line, columns, "# " if comment else ""):
            text = " " * part.indent + "".join(map(_paint, part.spans))
            output.line((prefix + text).rstrip())


def _fit(line: StyledLine, columns: int | None, mark: str = "") -> Iterator[StyledLine]:
    """Yield the parts of a line that fit in the columns; those after the first are indented deeper.

    With a mark they begin with it, below the one of the first part.
    """
    if columns is None or output.columns_of(line.text) + line.indent <= columns:
        yield line
        return
    blanks = len(line.text) - len(line.text.lstrip(" "))
    indent, left = line.indent, max(_LEAST, columns - line.indent)
    spans: list[StyledSpan] = []
    for span in line.spans:
        for word in _words(span, columns):
            text = word.text
            width = output.columns_of(text)
            if width > left and spans:
                yield StyledLine(tuple(spans), indent)
                indent = min(line.indent + blanks + (0 if mark else 2), columns // 2)
                left = max(_LEAST, columns - indent - len(mark))
                spans = [StyledSpan(mark, word.colour)] if mark else []
                text = text.lstrip(" ")
                width = output.columns_of(text)
            spans.append(StyledSpan(text, word.colour))
            left -= width
    yield StyledLine(tuple(spans), indent)


def _words(span: StyledSpan, columns: int) -> Iterator[StyledSpan]:
    """Yield the words of a span, each with the blanks before it; very long words in pieces."""
    most = max(_LEAST, columns // 2)
    if span.colour == "faint" and output.columns_of(span.text) <= most:
        yield span  # ids of both sides stay on a line
        return
    for word in _WORD.findall(span.text):
        for piece in break_word(word, most, most):
            yield StyledSpan(piece, span.colour)


def _paint(span: StyledSpan) -> str:
    if not span.text or not span.colour:
        return span.text
    if span.colour == "faint":
        return output.faint(span.text)
    return output.paint(span.text, span.colour, bold=span.colour in ("heading", "match"))


MOST_ALIKE = 3
"""Results with the same reasons that are named; more are counted."""


def join_alike(things: Iterable[T], key: Callable[[T], object]) -> list[list[T]]:
    """Return things with the same key together, in the order of the first ones."""
    groups: dict[object, list[T]] = {}
    for number, thing in enumerate(things):
        known = key(thing)
        groups.setdefault((number,) if known is None else known, []).append(thing)
    return [*groups.values()]


def alike_text(count: int, *, at_least: bool = False) -> str:
    """Return that more results have the same reasons; those that are not listed may have, too."""
    return f"… and {'at least ' * at_least}{count:,} more with the same reason"


def print_block(block: TextBlock, indent: str = "") -> None:
    """Print a named text: one line beside its name, more below it; nothing when empty."""
    listed = output.safe(block.text, lines=True).strip("\n").rstrip().split("\n")
    label = StyledSpan(f"{output.safe(block.title)}:", "heading")
    margin = len(indent)
    if len(listed) > 1:
        lines = [StyledLine((StyledSpan(part),), margin + 4) for part in listed]
        print_lines([StyledLine((label,), margin)])
        print_lines(lines, is_yaml=bool(block.lines))
    elif listed[0]:
        print_lines([StyledLine((label, StyledSpan(f" {listed[0]}")), margin)])


Format = Literal["table", "json", "jsonl", "csv", "md"]


@dataclass(frozen=True)
class CommandOutput:
    """What a command has found, which `--json` prints."""

    content: Any
    """All of it, for programs."""
    show: Callable[[], object] = lambda: None
    """Prints it for people."""
    exit_code: int = OK


@dataclass(frozen=True)
class Lists(CommandOutput):
    """What a command has found, of which `-o` prints lists."""

    names: Sequence[str] = ()
    """Those whose rows are printed as JSON Lines, CSV or Markdown."""
    kind: str = ""
    """The command, and the option or list that chooses one of its lists (default: the command)."""


def print_found(found: CommandOutput, command: str) -> None:
    """Print what a command has found in the format that the options say."""
    if output.format == "table":
        found.show()
    elif output.format == "json" or not isinstance(found, Lists):
        output.document(found.content)
    else:
        _print_lists(found, found.kind or command, output.format)


def _print_lists(found: Lists, kind: str, format: Format) -> None:
    """Print rows; with several lists, each row has its list.

    Without a row, CSV and Markdown have the columns that such lists always have. Raises
    `EvalstoreError` for a document without a list.
    """
    names = found.names
    if not names:
        raise EvalstoreError(f"no list to print as {format}", hint="'-o json' prints all of it")
    document = to_json(found.content)
    listed = ((name, to_json(row)) for name in names for row in document[name])
    rows = ({"list": name, **row} if len(names) > 1 else row for name, row in listed)
    if format == "jsonl":
        for row in rows:
            _print_object(row)
        return
    header, cells = _flatten(rows)
    header = header or [*(["list"] if len(names) > 1 else []), *columns_of(kind, names)]
    print_rows(format, header, cells)


def print_rows(format: Format, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print rows as JSON Lines, CSV or Markdown while they are read."""
    if format == "jsonl":
        for row in rows:
            _print_object(dict(zip(header, row, strict=True)))
        return
    for line in (csv_lines if format == "csv" else markdown_lines)(header, rows):
        output.data_line(line)


def _print_object(row: dict[str, Any]) -> None:
    output.data_line(dumps(row, ensure_ascii=not output.is_utf8()))


def _flatten(rows: Iterable[dict[str, Any]]) -> tuple[list[str], Iterator[list[Any]]]:
    """Return the names of all columns and the cells; the members of an object are `name.member`.

    The rows are in a temporary file meanwhile.
    """
    names: dict[str, None] = {}

    def flat() -> Iterator[dict[str, Any]]:
        for row in rows:
            members = dict(_members("", row))
            names.update(dict.fromkeys(members))
            yield members

    filed = TemporaryList(flat())
    header = _without_parents(names)
    return header, ([row.get(name) for name in header] for row in filed)


def _without_parents(names: Iterable[str]) -> list[str]:
    """Return the names of columns; an object that is null in some of the rows is none."""
    listed = [*dict.fromkeys(names)]
    parents = {name[: dot.start()] for name in listed for dot in re.finditer(r"\.", name)}
    return [name for name in listed if name not in parents]


def _members(prefix: str, row: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        if isinstance(value, dict):
            yield from _members(f"{prefix}{name}.", value)
        else:
            yield prefix + name, value


# --- the columns of lists without a row, for `-o csv` and `-o md`


def columns_of(kind: str, names: Sequence[str]) -> list[str]:
    """Return the columns that rows of these lists of a document always have, by its schema.

    `kind` is the command, and the option or list that chooses one of its lists.
    """
    if kind == "show":  # these rows are described nowhere, as `show` prints many kinds
        return ["file", "row", "prompt", "model", "verdict", "sessions"]
    from evalstore.workspace.schemas import read_packaged

    schemas = read_packaged("documents.schema.json")["$defs"]
    lists = schemas[kind.removesuffix(" --explain")]["properties"]
    rows = (_resolve(schemas, lists[name])["items"] for name in names)
    return _without_parents(column for row in rows for column in _required(schemas, row, ""))


def _required(schemas: dict[str, Any], schema: dict[str, Any], prefix: str) -> Iterator[str]:
    row = _resolve(schemas, schema)
    for name in row["required"]:
        inner = _resolve(schemas, row["properties"][name])
        if "object" not in inner.get("type", ""):
            yield prefix + name
        elif "required" in inner:
            yield from _required(schemas, inner, f"{prefix}{name}.")


def _resolve(schemas: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return what a reference or a choice stands for; of a choice with null the other one."""
    if "$ref" in schema:
        return _resolve(schemas, schemas[schema["$ref"].rpartition("/")[2]])
    found = (_resolve(schemas, each) for each in schema.get("anyOf", ()))
    return next((each for each in found if each.get("type") != "null"), schema)

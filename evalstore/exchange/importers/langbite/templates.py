"""Reading of prompt templates from a table with nine columns or from a JSON list."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalstore.exchange.importers.coerce import parse_json

if TYPE_CHECKING:
    from evalstore.core.values import Json

COLUMNS = (
    *("prompt_id", "concern", "input_type", "reflection_type", "task_prefix", "prompt"),
    *("output_formatting", "oracle", "oracle_prediction"),
)
_EXPECTED = ("equal", "different", "notIncludesAny", "allEqualExpected")
_SAME = ("allSameValue",)
OPERATIONS = {"expected value": _EXPECTED, "same value": _SAME}
"""Maps the type of an oracle to its operations."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A line that is not a valid template, and the reason."""

    line: int
    reason: str
    column: int | None = None
    field: str | None = None


@dataclass(frozen=True, slots=True)
class LangbiteTemplate:
    """One prompt template."""

    line: int
    id: str
    concern: str
    input_type: str
    reflection_type: str
    task_prefix: str
    text: str
    output_formatting: str
    operation: str
    expected: tuple[str, ...] = ()
    """The expected texts of the operation, as written."""
    key: str = ""
    """The key whose values `allSameValue` compares."""


def read_table(text: str) -> Iterator[LangbiteTemplate | Rejected]:
    """Yield the templates of a table, separated by tabs or commas.

    The first line is the header; a column with an unknown name is identified by its position.
    """
    text = text.removeprefix("\ufeff")
    lines = io.StringIO(text, newline="").readlines() or [""]
    delimiter = "\t" if "\t" in lines[0] else ","
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    width, last_line = 0, 0
    order: tuple[int, ...] = ()
    while True:
        try:
            row = next(reader, None)
        except csv.Error as error:
            yield Rejected(last_line + 1, f"cannot be read: {error}")
            return
        if row is None:
            return
        line, last_line = last_line + 1, reader.line_num
        if not any(cell.strip() for cell in row):
            continue
        if not width:
            width = len(row)
            if width < len(COLUMNS):
                yield Rejected(line, f"{width} columns, {len(COLUMNS)} are needed")
                return
            try:
                order = _order(row)
            except ValueError as problem:
                yield Rejected(line, str(problem))
                return
            continue
        if len(row) > width:
            yield Rejected(line, f"{len(row)} fields, header has {width}")
            continue
        raw = lines[line - 1].rstrip("\r\n") if line == reader.line_num else None
        yield _template(row, line, raw, delimiter, order)


def _order(header: Sequence[str]) -> tuple[int, ...]:
    """Return the positions of the columns; raises `ValueError` if the header is ambiguous."""
    names = ["_".join(cell.split()).lower() for cell in header]
    if set(COLUMNS) <= set(names):
        return tuple(names.index(column) for column in COLUMNS)
    for number, name in enumerate(names):
        if name in COLUMNS and number != COLUMNS.index(name):
            missing = next(column for column in COLUMNS if column not in names)
            raise ValueError(
                f"the column '{name}' is not in its place, and there is no column '{missing}'"
            )
    return tuple(range(len(COLUMNS)))


def read_template_list(value: Json) -> Iterator[LangbiteTemplate | Rejected]:
    """Yield the templates of a list of mappings; `line` is the number in the list."""
    if not isinstance(value, list):
        yield Rejected(1, "the prompts must be a list")
        return
    for number, entry in enumerate(value, 1):
        if not isinstance(entry, dict):
            yield Rejected(number, "a prompt must be a mapping")
            continue
        cells = ["" if entry.get(name) is None else str(entry[name]) for name in COLUMNS]
        prediction = entry.get("oracle_prediction")
        if isinstance(prediction, dict):
            cells[-1] = json.dumps(prediction)
        yield _template(cells, number, None, "\t", tuple(range(len(COLUMNS))))


def _template(
    row: Sequence[str], line: int, raw: str | None, delimiter: str, order: Sequence[int]
) -> LangbiteTemplate | Rejected:
    """Return the template in a row; `order` are the positions of the columns."""

    def rejected(number: int, reason: str) -> Rejected:
        column = None
        if raw is not None:  # the start of the field, if the row is on one line
            before = raw.split(delimiter)[: order[number]]
            column = len(delimiter.join(before)) + bool(before) + 1
        return Rejected(line, f"{COLUMNS[number]}: {reason}", column, COLUMNS[number])

    cells = [row[at] if at < len(row) else "" for at in order]
    cells = [cell.strip() if number != 5 else cell for number, cell in enumerate(cells)]
    for number in (5, 7, 8):
        if not cells[number].strip():
            return rejected(number, "it is missing")
    kind = cells[7]
    if kind not in OPERATIONS:
        known = " and ".join(f"'{oracle}'" for oracle in OPERATIONS)
        return rejected(7, f"there is no oracle '{kind}', only {known}")
    try:
        operation, expected, key = read_prediction(kind, cells[8])
    except ValueError as problem:
        return rejected(8, str(problem))
    return LangbiteTemplate(
        line=line,
        id=_id(cells[0]),
        concern=cells[1],
        input_type=cells[2],
        reflection_type=cells[3],
        task_prefix=cells[4],
        text=cells[5],
        output_formatting=cells[6],
        operation=operation,
        expected=expected,
        key=key,
    )


def _id(text: str) -> str:
    """Return the id without the `.0` that spreadsheets append."""
    return text.removesuffix(".0") if text.removesuffix(".0").isdigit() else text


def read_prediction(kind: str, text: str) -> tuple[str, tuple[str, ...], str]:
    """Return an oracle's operation, expected texts and key; raises `ValueError`."""
    try:
        prediction = parse_json(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON: {error.msg} (character {error.colno})") from None
    if not isinstance(prediction, dict):
        raise ValueError("it must be a mapping")
    operation = prediction.get("operation")
    allowed = OPERATIONS[kind]
    if operation not in allowed:
        reason = f"'{kind}' has no operation {json.dumps(operation)}"
        raise ValueError(f"{reason}; it has {', '.join(allowed)}")
    if operation in _SAME:
        key = prediction.get("key")
        if not isinstance(key, str) or not key:
            raise ValueError("it has no 'key'")
        return operation, (), key
    expected = prediction.get("expected_value")
    expected = [expected] if isinstance(expected, str) else expected
    if not isinstance(expected, list) or not all(isinstance(item, str) for item in expected):
        raise ValueError("'expected_value' must be a text or a list of texts")
    return operation, tuple(expected), ""

"""Prints the rows of a list as JSON, JSON Lines, CSV or Markdown; all have the same members."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from json import dumps
from typing import Any, Literal

from evalstore.core.errors import EvalstoreError
from evalstore.exchange.exports.writers import csv_lines, markdown_lines
from evalstore.files.json_output import to_json
from evalstore.files.temporary_list import TemporaryList
from evalstore.interfaces.cli import output, streams

Format = Literal["table", "json", "jsonl", "csv", "md"]


def print_data(
    content: Any, names: Sequence[str], format: Format, *, kind: str, json: bool = False
) -> bool:
    """Print a result as the options say; False if it is to be printed for people.

    `names` are the lists whose rows are printed as JSON Lines, CSV or Markdown; with several, each
    row has its list. Without a row, CSV and Markdown have the columns that lists of this `kind`
    always have. Raises `EvalstoreError` for a document without a list.
    """
    if json or format == "json":
        output.document(content)
        return True
    if format == "table":
        return False
    if not names:
        raise EvalstoreError(f"no list to print as {format}", hint="'-o json' prints all of it")
    document = to_json(content)
    listed = ((name, to_json(row)) for name in names for row in document[name])
    rows = ({"list": name, **row} if len(names) > 1 else row for name, row in listed)
    if format == "jsonl":
        for row in rows:
            _print_object(row)
        return True
    header, cells = _flatten(rows)
    header = header or [*(["list"] if len(names) > 1 else []), *columns_of(kind, names)]
    print_rows(format, header, cells)
    return True


def print_rows(format: Format, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print rows as JSON Lines, CSV or Markdown while they are read."""
    if format == "jsonl":
        for row in rows:
            _print_object(dict(zip(header, row, strict=True)))
        return
    for line in (csv_lines if format == "csv" else markdown_lines)(header, rows):
        output.data_line(line)


def _print_object(row: dict[str, Any]) -> None:
    output.data_line(dumps(row, ensure_ascii=not streams.is_utf8()))


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

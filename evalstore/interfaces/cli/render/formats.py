"""Prints the rows of a list as JSON, JSON Lines, CSV or Markdown; all have the same members."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Literal

from evalstore.core.errors import EvalstoreError
from evalstore.exchange.exports.cells import csv_cell, markdown_cell
from evalstore.files.json_output import to_json
from evalstore.files.temporary_list import TemporaryList
from evalstore.interfaces.cli import output, streams

Format = Literal["table", "json", "jsonl", "csv", "md"]


def print_as(format: Format, content: Any, names: Sequence[str], kind: str) -> None:
    """Print a document, or the rows of its lists; with several lists each row has its list.

    Without a row, CSV and Markdown have the columns that lists of this kind always have. Raises
    `EvalstoreError` for a document without a list.
    """
    if format == "json":
        output.document(content)
        return
    if not names:
        raise EvalstoreError(
            f"there is no list to print as {format}", hint="'-o json' prints all of it"
        )
    document = to_json(content)
    listed = ((name, to_json(row)) for name in names for row in document[name])
    rows = ({"list": name, **row} if len(names) > 1 else row for name, row in listed)
    if format == "jsonl":
        for row in rows:
            _print_object(row)
        return
    header, cells = _flatten(rows)
    header = header or [*(["list"] if len(names) > 1 else []), *COLUMNS[kind]]
    print_rows(format, header, cells)


def print_rows(format: Format, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print rows as JSON Lines, CSV or Markdown while they are read."""
    if format == "jsonl":
        for row in rows:
            _print_object(dict(zip(header, row, strict=True)))
        return
    for line in (_csv_lines if format == "csv" else _markdown_lines)(header, rows):
        output.data_line(line)


def _print_object(row: dict[str, Any]) -> None:
    output.data_line(json.dumps(row, ensure_ascii=not streams.is_utf8()))


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
    # An object can be null in some of the rows: it has no column of its own then.
    parents = {name[:place] for name in names for place in _dots(name)}
    header = [name for name in names if name not in parents]
    return header, ([row.get(name) for name in header] for row in filed)


def _dots(name: str) -> Iterator[int]:
    return (place for place, character in enumerate(name) if character == ".")


def _members(prefix: str, row: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        if isinstance(value, dict):
            yield from _members(f"{prefix}{name}.", value)
        else:
            yield prefix + name, value


def _csv_lines(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    import csv
    import io

    for row in chain([header], rows):
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="").writerow(map(csv_cell, row))
        yield output.safe(buffer.getvalue(), lines=True)


def _markdown_lines(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    yield f"| {' | '.join(map(markdown_cell, header))} |"
    yield "|" + "---|" * len(header)
    for row in rows:
        yield f"| {' | '.join(map(markdown_cell, row))} |"


# --- the columns of lists without a row, for `-o csv` and `-o md`


_PRICE = (
    *("price.source", "price.currency", "price.rate", "price.input", "price.cachedInput"),
    *("price.output", "price.call", "price.hour"),
)
COLUMNS: Mapping[str, Sequence[str]] = {
    "check": ("file", "line", "column", "severity", "message", "hint"),
    "diff": (
        "file",
        "row",
        "prompt",
        "model",
        "was.verdict",
        "was.feedback",
        "was.session",
        "now.verdict",
        "now.feedback",
        "now.session",
        "reason",
    ),
    "doctor": (
        "topic",
        "level",
        "message",
        "hint",
        "model",
        "provider",
        "code",
        "baseURL",
        "active",
        *_PRICE,
        "keyVariable",
        "keySet",
        "keyOrigin",
        "pinged",
        "reachable",
        "known",
        "answered",
        "latency",
        "resolvedModel",
        "status",
        "class",
        "cost",
        "problems",
    ),
    "grep": ("in", "kind", "id", "file", "row", "models", "sessions", "context", "matches"),
    "log": (
        "run",
        "started",
        "ended",
        "message",
        "selection",
        "status",
        "asked",
        "recorded",
        "judged",
        "reused",
        "verdicts.pass",
        "verdicts.fail",
        "verdicts.undecided",
        "verdicts.error",
        "verdicts.pending",
        "cost",
        "gitCommit",
        "gitDirty",
    ),
    "log --failures": (
        "failure",
        "at",
        "model",
        "evaluator",
        "file",
        "row",
        "prompt",
        "question",
        "session",
        "class",
        "status",
        "attempts",
        "message",
        "hint",
    ),
    "ls cases": ("file", "row", "tests", "evaluation", "tags"),
    "ls tests": ("file", "cases", "tags"),
    "ls models": (
        "model",
        "provider",
        "code",
        "baseURL",
        "active",
        "used",
        *_PRICE,
    ),
    "ls evaluators": ("evaluator", "id", "prompt", "times"),
    "ls prompts": ("prompt", "ids"),
    "ls tools": ("tool", "ids"),
    "ls schemas": ("schema", "ids"),
    "ls tags": ("tag", "cases", "special"),
    "ls labels": (
        "file",
        "row",
        "prompt",
        "promptName",
        "model",
        "label",
        "by",
        "judged",
        "agrees",
        "note",
        "session",
    ),
    "ls runs": ("run", "started", "status", "message", "selection"),
    "ls checks": (
        "type",
        "revision",
        "description",
        "notes",
        "main",
        "settings",
        "commonSettings",
        "examples",
        "example",
    ),
    "remote": ("name", "address"),
    "remote show": ("created", "writer", "records", "leftOut"),
    "show": ("file", "row", "prompt", "model", "verdict", "sessions"),
    "stats": (
        "name",
        "passed",
        "judged",
        "results",
        "rate",
        "low",
        "high",
        "effectiveSize",
        "unresolved",
        "best.rate",
        "best.high",
        "undecided",
        "coverage",
        "tests",
        "cases",
        "sessions",
        "evaluations",
        "latency",
        "cost.candidates.total",
        "cost.candidates.per100Sessions",
        "cost.judges.total",
        "cost.judges.per100Sessions",
        "cost.all.total",
        "cost.all.per100Sessions",
        "cost.unpriced",
        "flakiness.cases",
        "flakiness.flaky",
        "flakiness.share",
        "flakiness.flip",
    ),
    "status": ("code", "file", "asked", "judged", "reason"),
    "status --explain": (
        "kind",
        "file",
        "row",
        "prompt",
        "model",
        "evaluator",
        "count",
        "reason",
        "was",
        "now",
    ),
}
"""By the command, and the option or list that chooses one of its lists."""

"""The formats of `export`, and the columns of a row.

docs/export.md has the same table of columns, and a test compares them.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from evalstore.core.values import Json

Format = Literal[
    "jsonl",
    "csv",
    "parquet",
    "json",
    "md",
    "junit",
    "otlp",
    "inspect",
    "langbite",
    "every-eval-ever",
]
FORMATS: tuple[Format, ...] = get_args(Format)


SCHEMA_VERSION = 1
"""Grows when a column is removed or changes its meaning; a new column comes last."""

ColumnType = Literal["integer", "number", "text", "list of texts"]
Row = dict[str, Json]
"""A result by the names of the columns, in their order."""


class ExportColumn(NamedTuple):
    """A column of exported results; a value that is not known is null."""

    name: str
    type: ColumnType
    unit: str
    """The unit of a number or the format of a text; empty without one."""
    meaning: str


COLUMNS = (
    ExportColumn("schemaVersion", "integer", "", "the version of these columns"),
    ExportColumn("run", "text", "id", "the run, or `workspace`"),
    ExportColumn("started", "text", "ISO 8601, UTC", "when the run started"),
    ExportColumn("file", "text", "path", "the test file"),
    ExportColumn("row", "text", "", "the label of the row; empty in a file without rows"),
    ExportColumn("prompt", "text", "", "the name of the system prompt; null without one"),
    ExportColumn("promptId", "text", "id", "the version of the system prompt"),
    ExportColumn("model", "text", "", "the candidate"),
    ExportColumn("tags", "list of texts", "", "the tags of the test file"),
    ExportColumn(
        "verdict",
        "text",
        "",
        "`pass`, `fail`, `undecided`, `error`; `no reply` when a call failed, `pending` when it "
        "was not made; null where nothing judges",
    ),
    ExportColumn("score", "number", "0 to 1", "the mean score of the verdicts that have one"),
    ExportColumn(
        "feedback",
        "text",
        "",
        "why: the reasons for the verdict, a line each; several judges, and people, are named",
    ),
    ExportColumn("answer", "text", "", "the answer; the last turn of the first of several answers"),
    ExportColumn("attempts", "integer", "", "the number of answers that are required"),
    ExportColumn("answers", "integer", "", "the number of answers that are stored"),
    ExportColumn("judgements", "integer", "", "the number of verdicts that count"),
    ExportColumn("cost", "number", "USD", "the cost of the answers"),
    ExportColumn("judgingCost", "number", "USD", "the cost of the verdicts"),
    ExportColumn(
        *("pricedLater", "integer", ""),
        "the answers and verdicts at today's price, because their own is unknown",
    ),
    ExportColumn("latency", "number", "seconds", "the mean duration of the answers"),
    ExportColumn("test", "text", "id", "the version of the test"),
    ExportColumn("evaluation", "text", "id", "the version of instructions and checks"),
    ExportColumn("sessions", "list of texts", "ids", "the answers, for `evalstore show`"),
    ExportColumn("evaluations", "list of texts", "ids", "the verdicts, for `evalstore show`"),
    ExportColumn(
        "question", "text", "", "the last user message; of several conversations, of the first"
    ),
)
"""All columns, in the order in which they are written."""
NAMES = tuple(column.name for column in COLUMNS)

"""Exported files are read by the programs that they are for: DuckDB, pandas and polars."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalstore.core.display import safe
from evalstore.exchange.exports.formats import NAMES, csv_cell
from tests.builders import tree
from tests.interfaces.cli.export.test_export import ASKED

if TYPE_CHECKING:
    from tests.interfaces.cli.conftest import Echo, Evalstore

ANSWER = '=1+1, "needle"\n\u202e;\t\u03a9\x1b[31m'
"""What a reader could take for the end of a cell, of a row or of a text."""
SHOWN = ("file", "verdict", "answer", "attempts", "score", "prompt")


def read_by_duckdb(_library: Any, file: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The columns of a file, and the shown values of its rows.

    DuckDB has a process of its own: in one that ends after others it reports leaks of its bindings.
    """
    source = (
        "import duckdb, json, sys\n"
        f"rows = duckdb.sql(\"SELECT {', '.join(SHOWN)} FROM '{file}'\").fetchall()\n"
        f"print(json.dumps([duckdb.sql(\"FROM '{file}'\").columns, rows]))"
    )
    printed = subprocess.check_output([sys.executable, "-c", source], text=True)
    names, rows = json.loads(printed)
    return names, [tuple(row) for row in rows]


def read_by_pandas(library: Any, file: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The same, where missing values are those of floats."""
    read: dict[str, Callable[[str], Any]] = {
        ".jsonl": lambda name: library.read_json(name, lines=True),
        ".csv": library.read_csv,
        ".parquet": library.read_parquet,
    }
    frame = read[Path(file).suffix](file)
    shown = frame[list(SHOWN)].astype(object)
    return list(frame.columns), list(
        shown.where(frame[list(SHOWN)].notna(), None).itertuples(index=False, name=None)
    )


def read_by_polars(library: Any, file: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The same."""
    read = {
        ".jsonl": library.read_ndjson,
        ".csv": library.read_csv,
        ".parquet": library.read_parquet,
    }
    frame = read[Path(file).suffix](file)
    return frame.columns, frame.select(SHOWN).rows()


READERS = {"duckdb": read_by_duckdb, "pandas": read_by_pandas, "polars": read_by_polars}


@pytest.mark.parametrize("file", ["r.jsonl", "r.csv", "r.parquet"])
@pytest.mark.parametrize("program", READERS)
def test_a_program_reads_the_rows_with_their_types(
    echo: Echo, evalstore: Evalstore, program: str, file: str
) -> None:
    library = None if program == "duckdb" else pytest.importorskip(program)
    echo.reply = lambda text: ANSWER if "Question" in text else text
    tree(Path.cwd(), {"tests/1.md": ASKED, "tests/2.md": ASKED.replace("Question", "Other")})
    evalstore("run")
    for name in dict.fromkeys(("r.jsonl", file)):
        evalstore("export", "-o", name)
    rows = [json.loads(line) for line in Path("r.jsonl").read_text("utf-8").splitlines()]
    assert [(row["verdict"], row["answer"]) for row in rows] == [
        ("pass", ANSWER),
        ("fail", "Other?"),
    ]
    if file == "r.csv":
        rows = [row | {"answer": safe(csv_cell(row["answer"]), lines=True)} for row in rows]
    names, shown = READERS[program](library, file)
    assert tuple(names) == NAMES
    assert shown == [tuple(row[name] for name in SHOWN) for row in rows]

"""`sql`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Annotated, Any

from evalstore.interfaces.cli import options, output
from evalstore.interfaces.cli.app import app, here
from evalstore.interfaces.cli.options import argument, option
from evalstore.interfaces.cli.render.table import Table, print_table
from evalstore.store.rows.views import VIEWS

_COLUMNS = "SELECT * FROM {} WHERE 1 = 0"


@app.command()
def sql(
    query: Annotated[
        str | None, argument("QUERY", "A SELECT. Without it: the views with their columns.")
    ] = None,
    limit: Annotated[int, option("--limit N", "Print at most N rows in a table.", min=1)] = 1_000,
    timeout: Annotated[float, option("--timeout S", "End the query after S seconds.", min=0)] = 60,
    output_format: options.Output = "table",
    json: options.Json = False,
) -> None:
    """Query the store with SQL, without changing it.

    The views runs_v, results_v, answers_v, judgements_v and costs_v have stable columns, which
    docs/sql.md describes with examples. The other tables may change in any version. The dialect is
    that of the store: SQLite or PostgreSQL. '-o csv' and '-o jsonl' print all rows.
    """
    from evalstore.planning.open_project import open_store

    if query is None:
        _print_views(timeout)
        return
    with open_store(here()) as store, store.ask(query, timeout) as answer:
        columns = answer.columns
        rows = ([_plain(value) for value in row] for row in answer.rows)
        if json or output_format == "json":
            output.document(
                {"columns": columns, "rows": (dict(zip(columns, row, strict=True)) for row in rows)}
            )
        elif output_format != "table":
            from evalstore.interfaces.cli.render.list_formats import print_rows

            print_rows(output_format, columns, rows)
        else:
            _print_table(columns, rows, limit)


def _print_views(timeout: float) -> None:
    from evalstore.planning.open_project import open_store

    with open_store(here()) as store:
        for name in VIEWS:
            with store.ask(_COLUMNS.format(name), timeout) as answer:
                for line in output.wrap(f"{name}: {', '.join(answer.columns)}", output.width()):
                    output.line(line)


def _plain(value: Any) -> Any:
    """Return a value of a database as one of JSON: bytes are hexadecimal digits."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _print_table(columns: Sequence[str], rows: Iterator[list[Any]], limit: int) -> None:
    shown = list(islice(rows, limit))
    numbers = {
        name
        for place, name in enumerate(columns)
        if any(isinstance(row[place], int | float) for row in shown)
    }
    cells = [
        ["" if value is None else output.safe(" ".join(str(value).split())) for value in row]
        for row in shown
    ]
    print_table(Table(columns, cells, frozenset(numbers)))
    if next(rows, None) is not None:
        output.talk(f"(only the first {output.plural(limit, 'row')}; --limit N, or -o csv for all)")

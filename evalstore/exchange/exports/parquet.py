"""Writes the rows of an export as Parquet, or returns them as an Arrow table.

Both are made by pyarrow, which no other module imports.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from evalstore.core.errors import EvalstoreError
from evalstore.exchange.exports.formats import COLUMNS, SCHEMA_VERSION, ByteWriter, Export

_IN_A_GROUP = 6_000
"""Rows of a group of the file."""
_MOST_BYTES = 64 * 2**20
"""Bytes of text after which a group ends, however few rows it has."""


def require_pyarrow(format: str = "Parquet") -> None:
    """Raise `EvalstoreError` when pyarrow is not installed."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise EvalstoreError(
            f"{format} needs pyarrow, which is not installed",
            hint="install the extra: pip install 'evalstore[parquet]'",
        ) from error


def read_table(export: Export) -> Any:
    """Return the rows as a `pyarrow.Table`; raises `EvalstoreError` without pyarrow."""
    require_pyarrow("an Arrow table")
    import pyarrow as arrow

    schema = _make_schema()
    return arrow.Table.from_batches(_read_batches(export, schema), schema)


def write_parquet(export: Export, file: ByteWriter) -> None:
    """Write the rows in groups, so that few of them are in memory."""
    from pyarrow import parquet

    schema = _make_schema()
    with parquet.ParquetWriter(file, schema) as writer:
        for batch in _read_batches(export, schema):
            writer.write_batch(batch)


def _make_schema() -> Any:
    """Return the columns with their types, as a `pyarrow.Schema`."""
    import pyarrow as arrow

    types: dict[str, Any] = {
        "integer": arrow.int64(),
        "number": arrow.float64(),
        "text": arrow.string(),
        "list of texts": arrow.list_(arrow.string()),
    }
    return arrow.schema(
        [(column.name, types[column.type]) for column in COLUMNS],
        metadata={"evalstore.schemaVersion": str(SCHEMA_VERSION)},
    )


def _read_batches(export: Export, schema: Any) -> Iterator[Any]:
    """Yield the rows as `pyarrow.RecordBatch`es."""
    import pyarrow as arrow

    type = arrow.struct(schema)
    while rows := _take_rows(export):
        yield arrow.RecordBatch.from_struct_array(arrow.array(rows, type))


def _take_rows(export: Export) -> list[dict[str, Any]]:
    """Return the next rows for a group: many short ones, or few long ones."""
    rows: list[dict[str, Any]] = []
    size = 0
    for row in islice(export.rows, _IN_A_GROUP):
        rows.append(row)
        size += len(row["answer"] or "") + len(row["feedback"])
        if size > _MOST_BYTES:
            break
    return rows

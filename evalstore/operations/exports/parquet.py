"""Writes the rows of an export as Parquet or Arrow; the only module that imports pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from evalstore.errors import EvalstoreError
from evalstore.operations.exports.columns import COLUMNS, SCHEMA_VERSION, Row

if TYPE_CHECKING:
    from evalstore.operations.exports.rows import Export
    from evalstore.operations.exports.writers import ByteWriter

_AT_ONCE = 5_000
"""Rows of a group, which are in memory together."""
_MOST_BYTES = 64 * 2**20
"""Bytes of text after which a group is written, however few rows it has."""


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
    batches = []
    while rows := _take_group(export):
        batches.append(_make_batch(rows, schema))
    return arrow.Table.from_batches(batches, schema)


def write_parquet(export: Export, file: ByteWriter) -> None:
    """Write the rows in groups, so that few of them are in memory."""
    from pyarrow import parquet

    schema = _make_schema()
    with parquet.ParquetWriter(file, schema) as writer:
        while rows := _take_group(export):
            writer.write_batch(_make_batch(rows, schema))


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


def _make_batch(rows: Sequence[Row], schema: Any) -> Any:
    """Return rows as a `pyarrow.RecordBatch`; they have all columns, in their order."""
    import pyarrow as arrow

    columns = zip(*(row.values() for row in rows), strict=True)
    return arrow.RecordBatch.from_arrays(
        [arrow.array(values, field.type) for values, field in zip(columns, schema, strict=True)],
        schema=schema,
    )


def _take_group(export: Export) -> list[dict[str, Any]]:
    """Return the next rows: many short ones, or few long ones."""
    rows: list[dict[str, Any]] = []
    size = 0
    for row in islice(export.rows, _AT_ONCE):
        rows.append(row)
        size += len(row["answer"] or "") + len(row["feedback"])
        if size > _MOST_BYTES:
            break
    return rows

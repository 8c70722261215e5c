"""Selects rows of a file: by a condition, or as a sample."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from evalstore.core.canonical_json import canonical_json
from evalstore.core.errors import FileProblem
from evalstore.files.datasets.spec import DatasetSpec, condition
from evalstore.files.fields import suggest
from evalstore.files.jinja_environment import is_global
from evalstore.files.jinja_sandbox import run, undeclared

if TYPE_CHECKING:
    from evalstore.core.values import Json
    from evalstore.files.datasets.columns import DatasetColumns
    from evalstore.files.processes.data_item import DataItem

AS_NUMBER = "'item.NAME | int' is its number, as in 'item.level | int < 3'"
"""A hint for a text that is compared with a number."""
ITEM = "item"
"""The name of the row itself; a column of that name is `item.item`."""


class DatasetRow(NamedTuple):
    """One row of a data file."""

    number: int
    """Counted from 1 over all rows of the file, also those that are left out."""
    line: int | None
    """Where it starts in the data file; None inside a larger JSON document."""
    item: DataItem


class RowCondition:
    """The condition of a dataset; raises `FileProblem` for an unknown column."""

    def __init__(
        self, spec: DatasetSpec, columns: DatasetColumns, file: str, advice: str | None = None
    ) -> None:
        """`advice` is a hint for an unknown column."""
        assert spec.where is not None
        self._advice = advice
        self._spec = spec
        self._file = file
        self._source = condition(spec.where)
        self._line = spec.line_of("where") or 1
        self._names = []
        for name in sorted(undeclared(self._source, self._line) - {ITEM}):
            if name in columns.known:
                self._names.append(name)
            elif not is_global(name):
                hint = advice or suggest(name, [ITEM, *columns.known], "names")
                raise spec.problem("where", f"'where': unknown column '{name}'", hint)

    def __call__(self, row: DatasetRow) -> bool:
        """Return whether the row is kept."""
        scope: dict[str, Json] = {name: row.item[name] for name in self._names if name in row.item}
        scope[ITEM] = row.item
        try:
            return bool(run(self._source, self._line, scope))
        except FileProblem as problem:
            message = problem.message.removeprefix("the template fails: ")
            place = f"line {row.line}" if row.line else f"row {row.number}"
            hint = None
            if "is undefined" in message or "has no attribute" in message:
                hint = (
                    self._advice
                    or "for rows without that column write 'item.NAME is defined and …'"
                )
            elif "not supported between" in message and "'str'" in message:
                hint = f"the value is a text; {AS_NUMBER}"
            words = f"'where' fails for {place} of '{self._file}': {message}"
            raise self._spec.problem("where", words, hint) from problem


def draw(
    rows: Iterable[DatasetRow], count: int, seed: int, columns: DatasetColumns
) -> Iterator[DatasetRow]:
    """Draw a sample of rows, in the order of the file; only those drawn are kept in memory.

    Whether a row is drawn depends on a hash of its content, so neither the order of the rows, nor
    their names in templates, nor most changes of other rows matter. Equal rows are drawn
    together, up to `count`.
    """
    drawn: list[tuple[int, int, DatasetRow]] = []
    keys = {name: key for key, name in columns.names.items()}
    for row in rows:
        content = canonical_json([seed, {keys[name]: value for name, value in row.item.items()}])
        digest = hashlib.blake2b(content.encode(), digest_size=8).digest()
        entry = (-int.from_bytes(digest, "big"), -row.number, row)
        if len(drawn) < count:
            heapq.heappush(drawn, entry)
        elif entry > drawn[0]:
            heapq.heapreplace(drawn, entry)
    for _, _, row in sorted(drawn, key=lambda entry: entry[2].number):
        yield row

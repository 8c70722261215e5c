"""The names of cases in a table, with their widths."""

from __future__ import annotations

from collections import Counter
from functools import cached_property, partial
from typing import TYPE_CHECKING

from evalstore.core.display import widest
from evalstore.interfaces.tui.widgets.column_names import ShortenedNames

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalstore.results.table.case_rows import CaseRow


class CaseNames:
    """The names of files and rows; what takes a while is computed when it is first used.

    Nothing here refers to itself, so that rows that do not match a filter are freed at once.
    """

    def __init__(self, rows: Sequence[CaseRow], files: Sequence[str]) -> None:
        """`files` are those of the rows, each once."""
        self._rows = rows
        self.file_width = widest(files)
        self.of_files = ShortenedNames(lambda _: files)
        self.of_rows = ShortenedNames(partial(_labels, rows))

    def measure(self) -> None:
        """Compute all, in the thread that reads."""
        _ = self.row_width, self.stem_width, self.file_sizes

    @cached_property
    def row_width(self) -> int:
        """Return how wide the names of rows are."""
        return widest([row_label(row) if row.prompt else row.row for row in self._rows])

    @cached_property
    def unnamed_files(self) -> frozenset[str]:
        """Return the files whose only row has no name."""
        return frozenset(row.file for row in self._rows if not row.row)

    @cached_property
    def stem_width(self) -> int:
        """Return how wide the names of files are that stand in place of a row without a name."""
        return widest(map(stem, self.unnamed_files))

    @cached_property
    def file_sizes(self) -> Counter[str]:
        """Return the number of rows of each file."""
        return Counter(row.file for row in self._rows)


def stem(file: str) -> str:
    """Return the name of a file without its folders."""
    return file.rpartition("/")[2]


def row_label(case: CaseRow) -> str:
    """Return the row, with the system prompt where the file has several."""
    return f"{case.row} ({case.prompt})".lstrip() if case.prompt else case.row


def _labels(rows: Sequence[CaseRow], file: str) -> list[str]:
    return [label for row in rows if row.file == file and (label := row_label(row))]

"""Iterates over the cases of a test file with their numbers, leaving out what need not be read."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from evalstore.store.case_files import StoredCases

if TYPE_CHECKING:
    from evalstore.values import Case, CaseFile


def numbered_cases(
    file: CaseFile, settled: Collection[int], rows: Collection[str] | None
) -> Iterator[tuple[int, Case]]:
    """Yield the cases of a file with their numbers, except those of settled parts.

    With `rows`, a long file that has no such parts only yields those with one of these labels.
    """
    if isinstance(file.cases, StoredCases):
        if settled:
            return file.cases.iterate_outside(settled)
        if rows is not None:
            return file.cases.labelled(rows)
    return enumerate(file.cases)

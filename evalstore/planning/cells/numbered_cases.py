"""Iterates over the cases of a test file with their numbers, leaving out what need not be read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from evalstore.core.deserialize import group_alike, restore_case, share_tuples
from evalstore.store.trees.case_files import StoredCases

if TYPE_CHECKING:
    from evalstore.core.values import Case, CaseFile


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


class AlikeRows(NamedTuple):
    """Neighbours in a file that differ in nothing but their names, tests and evaluations."""

    number: int
    """The number of the first one, without the cases that are left out."""
    first: Case
    tests: Sequence[Sequence[str]]
    """Those of each case."""


def alike_cases(file: CaseFile, settled: Collection[int] = ()) -> Iterator[AlikeRows]:
    """Yield the cases of a file with those that are alike together, except those of settled parts.

    Only the first of them is restored.
    """
    if not isinstance(file.cases, StoredCases):
        for number, case in enumerate(file.cases):
            yield AlikeRows(number, case, [case.tests])
        return
    number, share = 0, share_tuples()
    for cases in file.cases.iterate_stored(settled):
        for group in group_alike(cases):
            yield AlikeRows(
                number,
                restore_case(group[0], share),
                [case["tests"] for case in group],
            )
            number += len(group)

"""The kinds of the edits of a file are what a list of all its edits tells."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from hypothesis import given
from hypothesis import strategies as some

from evalstore.comparison.version_diff import Difference
from evalstore.core.display import plural
from evalstore.results.edits.edits import EditKinds

SUBJECTS = ("row a is new", "message 1, line 1", "option x", "threshold")
EDITS = [*map(Difference, *zip(*product(SUBJECTS, (None, "a"), ("b", "c")), strict=True))]
of_rows = some.lists(some.tuples(some.sampled_from(EDITS), some.sampled_from(["", "a", "b"])))
others = some.lists(some.sampled_from(EDITS))


@given(of_rows, others, some.integers(1, 3))
def test_each_kind_is_told_once(
    rows: list[tuple[Difference, str]], others: list[Difference], cases: int
) -> None:
    kinds = EditKinds(cases)
    for difference, row in rows:
        kinds.add(difference, row)
    for other in others:
        kinds.append(other)
    subjects = [*dict.fromkeys(difference.subject for difference, _ in rows)]
    expected = [_first(rows, subject, cases) for subject in subjects]
    expected += [other for other in others if other.subject not in subjects]
    assert kinds.listed() == expected


def _first(rows: list[tuple[Difference, str]], subject: str, cases: int) -> Difference:
    """Return the first difference of a kind, with its row if it is not that of all rows."""
    listed = [(difference, row) for difference, row in rows if difference.subject == subject]
    first, row = listed[0]
    is_alone = len(listed) == 1 < cases and not subject.startswith("row ")
    if row and is_alone:
        return replace(first, subject=f"{subject} in [{row}]")
    if not row or all(each == first for each, _ in listed):
        return first
    return replace(
        first, subject=f"{subject} in [{row}] and {plural(len(listed) - 1, 'other row')}"
    )

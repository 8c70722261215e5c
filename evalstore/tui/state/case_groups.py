"""Lines of the table of cases: cases, and lines above those that have something in common."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalstore.display import columns_of, plural
from evalstore.tui.state.verdict_order import FAILING, SIGNS, counted

if TYPE_CHECKING:
    from evalstore.operations.views.cases import CaseRow
    from evalstore.tui.state.case_filter import FilteredCases


@dataclass(frozen=True, slots=True)
class CaseGroup:
    """A line above the cases that have something in common."""

    name: str
    count: int
    verdicts: Mapping[str, int]
    is_folded: bool
    """Whether its cases are not listed."""

    def text(self, width: int) -> str:
        """What it says; in a narrow terminal verdicts are signs alone."""
        head = f"{'▸' if self.is_folded else '▾'} {self.name}: {plural(self.count, 'case')}"
        text = f"{head}, {counted(self.verdicts)}"
        if columns_of(text) <= width:
            return text
        return f"{head}, " + " ".join(f"{n:,} {SIGNS[word]}" for word, n in self.verdicts.items())


def place_of(one: CaseRow | CaseGroup) -> tuple[str, ...]:
    """What a line is found by when it is made again."""
    return (one.name,) if isinstance(one, CaseGroup) else (one.file, one.row, one.prompt)


def find(
    listed: Sequence[CaseRow | CaseGroup], line: CaseRow | CaseGroup | None, *, read_again: bool
) -> int | None:
    """Where a line is; after all were read again, the one that has come in its place."""
    if line is None:
        return None
    if read_again or isinstance(line, CaseGroup):
        place = place_of(line)
        return next((n for n, one in enumerate(listed) if place_of(one) == place), None)
    return listed.index(line) if line in listed else None


def grouped(
    listing: FilteredCases,
    numbers: Sequence[int],
    by: str,
    folded: Collection[str] = (),
    *,
    by_name: bool = True,
) -> Iterator[CaseRow | CaseGroup]:
    """Rows with a line above each group; a case with several tags is in several.

    Groups are in order by name, or else as the first of their rows are.
    """
    groups: dict[str, list[int]] = {}
    for number, one in zip(numbers, listing.rows(numbers), strict=True):
        for name in (one.file,) if by == "file" else one.tags or ("no tag",):
            groups.setdefault(name, []).append(number)
    for name, members in sorted(groups.items()) if by_name else groups.items():
        yield CaseGroup(name, len(members), listing.count(members), name in folded)
        if name not in folded:
            yield from listing.rows(members)


def next_failure(
    listed: Sequence[CaseRow | CaseGroup], cursor: int, by: int
) -> tuple[int, list[int]] | None:
    """The next line that did not pass, around the end, and which of its candidates did not.

    A folded group is one when a case of it is.
    """
    count = len(listed)
    for step in range(1, count + 1):
        number = (cursor + by * step) % count
        one = listed[number]
        if isinstance(one, CaseGroup):
            if one.is_folded and not one.verdicts.keys().isdisjoint(FAILING):
                return number, []
            continue
        failing = [n for n, found in enumerate(one.results) if found and found.word in FAILING]
        if failing:
            return number, failing
    return None

"""Lines of the table of cases: cases, and lines above those that have something in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalstore.operations.browsing import CaseRow


@dataclass(frozen=True, slots=True)
class Group:
    """A line above the cases that have something in common."""

    name: str
    count: int


def place_of(one: CaseRow | Group) -> tuple[str, ...]:
    """What a case is found by when it is read again."""
    return (one.name,) if isinstance(one, Group) else (one.file, one.row, one.prompt)


def find(listed: list[CaseRow | Group], case: CaseRow | None, *, read_again: bool) -> int | None:
    """Where a case is; after all were read again, the one that has come in its place."""
    if case is None:
        return None
    if read_again:
        place = place_of(case)
        return next((n for n, one in enumerate(listed) if place_of(one) == place), None)
    return listed.index(case) if case in listed else None


def grouped(rows: Sequence[CaseRow], by: str) -> Iterator[CaseRow | Group]:
    """The rows with a line above each group; a case with several tags is in several."""
    groups: dict[str, list[CaseRow]] = {}
    for one in rows:
        for name in (one.file,) if by == "file" else one.tags or ("no tag",):
            groups.setdefault(name, []).append(one)
    for name, members in sorted(groups.items()):
        yield Group(name, len(members))
        yield from members

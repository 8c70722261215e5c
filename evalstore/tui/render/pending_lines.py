"""The lines of the pending work: changed files, and each thing that a run would do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias, overload

from evalstore.display import planned_judgements, plural
from evalstore.operations.views.status_text import labels_text, left_text, outcome_text
from evalstore.tui.render.run import left_lines
from evalstore.tui.render.verdicts import when

if TYPE_CHECKING:
    from evalstore.errors import Problem
    from evalstore.operations.status_report import FileChange, Status
    from evalstore.operations.summed_items import SummedItems
    from evalstore.planning.plan_item import PlanItem

LEFT, WARNINGS = "left", "warnings"
"""The first words of titles above what a run does not do."""
_SAMPLE = 1_500
"""Of more than twice as many items, so many at each end decide how wide the columns are."""
_KINDS = ("ask", "ask"), ("record", "take"), ("judge", "judge")
"""The kinds of items in their order, with the first word of their titles."""


@dataclass(frozen=True, slots=True)
class Title:
    """A line above those that belong together."""

    name: str
    rest: str = ""

    @property
    def text(self) -> str:
        """Return both on one line."""
        return f"{self.name} {self.rest}".strip()


PendingLine: TypeAlias = "Title | FileChange | PlanItem | Problem"
_Part: TypeAlias = "list[PendingLine] | SummedItems"


class PendingLines(Sequence[PendingLine]):
    """Lines one below the other; those of very many items are read when they are needed."""

    def __init__(self, *parts: _Part) -> None:
        self._parts = [part for part in parts if part]
        self._count = sum(map(len, self._parts))

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[PendingLine]:
        return chain.from_iterable(self._parts)

    @overload
    def __getitem__(self, number: int) -> PendingLine: ...

    @overload
    def __getitem__(self, number: slice) -> list[PendingLine]: ...

    def __getitem__(self, number: int | slice) -> PendingLine | list[PendingLine]:
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(self._count))]
        number += self._count if number < 0 else 0
        for part in self._parts if number >= 0 else ():
            if number < len(part):
                return part[number]
            number -= len(part)
        raise IndexError(number)

    def place_of(self, line: PendingLine | None) -> int | None:
        """Return the number of a line; None if it is not there, or None is looked for."""
        if line is None:  # else all items would be read
            return None
        return next((number for number, each in enumerate(self) if each == line), None)

    def section_of(self, number: int) -> str:
        """Return the name of the title that a line is or stands below."""
        name = ""
        for part in self._parts:
            if isinstance(part, list):
                names = [line.name for line in part[: number + 1] if isinstance(line, Title)]
                name = next((each for each in reversed(names) if each), name)
            number -= len(part)
            if number < 0:
                break
        return name

    @property
    def files(self) -> Iterator[str]:
        """Return the files that lines are of."""
        for part in self._parts:
            if isinstance(part, list):
                yield from (line.file for line in part if not isinstance(line, Title))
            else:
                yield from part.files

    @property
    def models(self) -> list[str]:
        """Return the names of the candidates and the evaluators."""
        parts = (part.models for part in self._parts if not isinstance(part, list))
        return list(dict.fromkeys(chain.from_iterable(parts)))

    def samples(self) -> Iterator[FileChange | PlanItem | Problem]:
        """Yield the lines that decide how wide the columns are, without titles."""
        for part in self._parts:
            is_long = len(part) > 2 * _SAMPLE
            for line in chain(part[:_SAMPLE], part[-_SAMPLE:]) if is_long else part:
                if not isinstance(line, Title):
                    yield line

    def renewed(self, status: Status) -> PendingLines:
        """Return the lines as they are now, after time has passed: items are not read again."""
        items = {part.kind: part for part in self._parts if not isinstance(part, list)}
        return PendingLines(*_parts(status, items))


def pending_lines(status: Status) -> PendingLines:
    """Return the lines of a status; takes seconds for a million items."""
    from evalstore.operations.summed_items import SummedItems

    items = {kind: SummedItems(status.items, kind) for kind, _ in _KINDS if status.items}
    return PendingLines(*_parts(status, items))


def _parts(status: Status, items: dict[str, SummedItems]) -> Iterator[_Part]:
    if (status.changes or status.edits) and status.last_run:
        last = f"run {(status.last_run or '')[:8]} ({when(status.last_started or 0)})"
        edits = (Title("", str(edit)) for edit in status.edits)
        yield [Title("changed", f"since {last}"), *status.changes, *edits]
    for kind, name in _KINDS:
        if of_kind := items.get(kind):
            if kind == "judge":
                by_checks, less = of_kind.by_checks, status.may_judge_less
                text = planned_judgements(of_kind.total, by_checks if less else 0, may_be_less=less)
            else:
                text = plural(of_kind.total, "recorded answer" if kind == "record" else "answer")
            yield [Title(name, text)]
            yield of_kind
    yield list(_other_lines(status))


def _other_lines(status: Status) -> Iterator[Title]:
    """Yield what a run would record, what it leaves undone, and warnings."""
    if outcome := outcome_text(status):
        yield Title("record", outcome)
    if status.labels:
        yield Title("record", labels_text(status))
    rest = [line.spans[0].text for line in left_lines(status) if line.spans]
    if rest:
        is_left = left_text(status) or status.untrusted or status.skipped
        yield Title(LEFT, "undone") if is_left else Title(WARNINGS)
        for text in rest:
            yield Title("", text)

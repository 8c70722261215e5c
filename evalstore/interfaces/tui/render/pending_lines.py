"""The lines of the pending work: changed files, and each thing that a run would do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias, overload

from evalstore.core.display import planned_judgements, plural, widest
from evalstore.core.errors import Problem
from evalstore.interfaces.tui.render.run import left_lines
from evalstore.interfaces.tui.render.verdicts import short_names, when
from evalstore.interfaces.tui.widgets.column_names import case_names, only_file
from evalstore.interfaces.tui.widgets.grid_columns import GAP, MARGIN, NEVER, Column
from evalstore.planning.plan_items import PlanItem, SummedItems
from evalstore.planning.status.status_report import FileChange, Status
from evalstore.results.edits.change_text import change_text, reason_text
from evalstore.runs.status.status_text import edit_text, labels_text, left_text, outcome_text

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
    """Lines one below the other; those of many items are read when they are needed."""

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
    from evalstore.planning.plan_items import SummedItems

    kinds = [kind for kind, _ in _KINDS] if status.items else []
    items = {kind: SummedItems(status.items, kind) for kind in kinds}
    return PendingLines(*_parts(status, items))


def _parts(status: Status, items: dict[str, SummedItems]) -> Iterator[_Part]:
    if (status.changes or status.edits) and status.last_run:
        last = f"run {(status.last_run or '')[:8]} ({when(status.last_started or 0)})"
        edits = (
            Title("", f"{edit.code} {edit.of}  {edit_text(status, edit)}") for edit in status.edits
        )
        yield [Title("changed", f"since {last}"), *status.changes, *edits]
    for kind, name in _KINDS:
        if of_kind := items.get(kind):
            yield [Title(name, _count_text(of_kind, may_judge_less=status.may_judge_less))]
            yield of_kind
    yield list(_other_lines(status))


def _count_text(items: SummedItems, *, may_judge_less: bool = False) -> str:
    """Return how many answers or judgements items of a kind are."""
    if items.kind == "judge":
        by_checks = items.by_checks if may_judge_less else 0
        return planned_judgements(items.total, by_checks, may_be_less=may_judge_less)
    return plural(items.total, "recorded answer" if items.kind == "record" else "answer")


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


# --- the columns of the pending work, and the texts of its lines


_TITLES = ("what", "file", "row", "candidate", "by", "why")
_LEAST = (0, 10, 16, 9, 9, 10)
"""How narrow each column may become."""
_SINCE = (46, 0, 0, 0, 72, 46)
"""The widths of the table from which on there is room for each column, when texts are long."""
_SINCE_OF_ONE_FILE = (0, 0, 0, 0, 60, 38)
"""The same when all lines are of one file, which has no column then."""


class LineTexts:
    """The texts of lines, with short names of the candidates and evaluators."""

    def __init__(
        self,
        lines: PendingLines,
        prompts: Mapping[str, Mapping[str | None, str]],
    ) -> None:
        """`prompts` has for test files with several system prompts what to call each."""
        names = ["", *lines.models]
        self._models = dict(zip(names, short_names(names), strict=True))
        self._prompts = prompts
        self.file = only_file(lines.files)
        """The file that all lines are of, if there is only one."""
        self.columns = _columns([self.of(line) for line in lines.samples()], bool(self.file))

    def of(self, item: FileChange | PlanItem | Problem) -> tuple[str, ...]:
        """Return the texts of a line, one for each column."""
        from evalstore.planning.status.status_report import FileChange

        if isinstance(item, Problem):
            place = "" if item.line is None else f"line {item.line}"
            return item.severity, item.file, place, "", "", item.message
        if isinstance(item, FileChange):
            return item.letters, item.file, "", "", "", change_text(item)
        count = f" ({item.count}x)" if item.count > 1 else ""
        return (
            *(item.kind, item.file, self.row_of(item), self._models[item.model]),
            *(self._models[item.evaluator or ""], reason_text(item) + count),
        )

    def row_of(self, item: PlanItem) -> str:
        """Return the row, and the system prompt where the file has several."""
        prompt = self._prompts.get(item.file, {}).get(item.prompt)
        return f"{item.row} ({prompt})".lstrip() if prompt else item.row


def _columns(texts: Sequence[Sequence[str]], has_one_file: bool) -> list[Column]:
    """Return the columns, each as wide as what is in it; there is none without a text."""
    names = case_names((file, row, candidate) for _, file, row, candidate, *_ in texts)
    widths = [widest(column) for column in zip(*texts, strict=True)] or [0] * len(_TITLES)
    sizes = _SINCE
    if has_one_file:  # the title names it
        widths[1], sizes = 0, _SINCE_OF_ONE_FILE
    needed = [max(width, len(title)) for width, title in zip(widths, _TITLES, strict=True)]
    room = MARGIN + sum(size + GAP for size, width in zip(needed, widths, strict=True) if width)
    columns = zip(_TITLES, widths, needed, _LEAST, sizes, strict=True)
    return [
        Column(
            title,
            need,
            grows=True,
            most=need,
            least=min(least or need, need),
            since=min(since, room - GAP) if width else NEVER,
            names=names.get(title),
        )
        for title, width, need, least, since in columns
    ]

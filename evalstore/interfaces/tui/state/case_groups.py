"""Lines of the table of cases: cases, and lines above those that have something in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evalstore.core.display import columns_of, plural
from evalstore.results.table.case_rows import CaseRow
from evalstore.results.verdict_order import FAILING, SIGNS, verdict_counts


@dataclass(frozen=True, slots=True)
class CaseGroup:
    """A line above the cases that have something in common."""

    name: str
    count: int
    lines: int
    """How many lines its cases have: one for each of their system prompts."""
    verdicts: Mapping[str, int]
    is_folded: bool
    """Whether its cases are not listed."""

    def text(self, width: int) -> str:
        """Return the text of the line; in a narrow terminal verdicts are signs alone."""
        head = f"{'▸' if self.is_folded else '▾'} {self.name}: {cases_text(self.count, self.lines)}"
        text = f"{head}, {verdict_counts(self.verdicts)}"
        if columns_of(text) <= width:
            return text
        return f"{head}, {verdict_counts(self.verdicts, words=False)}"


def cases_text(count: int, lines: int) -> str:
    """Return `26 cases`, or `26 cases, 29 lines` when some have several system prompts."""
    in_lines = f", {plural(lines, 'line')}" if lines != count else ""
    return f"{plural(count, 'case')}{in_lines}"


def line_key(line: CaseRow | CaseGroup) -> tuple[str, ...]:
    """Return the key of a line, by which it is found after all were read again."""
    if isinstance(line, CaseGroup):
        return (line.name,)
    return line.file, line.row, line.prompt


def find_line(
    lines: Sequence[CaseRow | CaseGroup],
    before: Sequence[CaseRow | CaseGroup],
    number: int | None,
    *,
    or_next: bool,
) -> int | None:
    """Find where a line is now by its number before; None if it is not there any more.

    With `or_next`, the next line that is still there stands for it, or else the last one before it.
    A case with several lines is found in the same group if it is still there.
    """
    if number is None or number >= len(before):
        return None
    other = number
    key = line_key(before[number])
    place = next((at for at, line in enumerate(lines) if line_key(line) == key), None)
    if place is None and or_next:
        known = {line_key(line) for line in lines}
        others = (*range(number + 1, len(before)), *range(number - 1, -1, -1))
        other = next((at for at in others if line_key(before[at]) in known), number)
        key = line_key(before[other])
        place = next((at for at, line in enumerate(lines) if line_key(line) == key), None)
    group = None if place is None else _group_of(before, other)
    return _find_in_group(lines, key, group, default=place) if group else place


def _group_of(lines: Sequence[CaseRow | CaseGroup], number: int) -> str | None:
    """Return the name of the group that a case is listed in; None for a line without one."""
    above = (lines[at] for at in range(number, -1, -1))
    return next((line.name for line in above if isinstance(line, CaseGroup)), None)


def _find_in_group(
    lines: Sequence[CaseRow | CaseGroup], key: tuple[str, ...], group: str, default: int | None
) -> int | None:
    """Return where a line is in a group; `default` if it or the group is not there."""
    name = None
    for number, line in enumerate(lines):
        name = line.name if isinstance(line, CaseGroup) else name
        if name == group and line_key(line) == key:
            return number
    return default


def group_cases(
    rows: Iterable[CaseRow],
    by: str,
    folded: Collection[str] = (),
    *,
    by_name: bool = True,
) -> Iterator[CaseRow | CaseGroup]:
    """Yield rows with a line above each group; a case with several tags is in several.

    Groups are in order by name, or else as the first of their rows are.
    """
    groups: dict[str, list[CaseRow]] = {}
    for case in rows:
        for name in (case.file,) if by == "file" else case.tags or ("no tag",):
            groups.setdefault(name, []).append(case)
    for name, cases in sorted(groups.items()) if by_name else groups.items():
        counts = count_cases(cases), len(cases), count_verdicts(cases)
        yield CaseGroup(name, *counts, name in folded)
        if name not in folded:
            yield from cases


def count_cases(rows: Sequence[CaseRow]) -> int:
    """Return the number of cases; one with several system prompts has a row for each of them."""
    with_prompt = [(row.file, row.row) for row in rows if row.prompt]
    return len(rows) - len(with_prompt) + len(set(with_prompt))


def count_verdicts(
    rows: Iterable[CaseRow], candidates: Collection[int] | None = None
) -> dict[str, int]:
    """Count the results of these candidates by verdict, as they are shown; None: of all."""
    counts = dict.fromkeys(SIGNS, 0)
    for words, times in Counter(row.words for row in rows).items():
        for number, word in enumerate(words):
            if word and (candidates is None or number in candidates):
                counts[word] += times
    return {word: count for word, count in counts.items() if count}


def next_failure(
    lines: Sequence[CaseRow | CaseGroup],
    start: CellPlace,
    by: int,
    candidates: Collection[int],
) -> CellPlace | None:
    """Find the next result of these candidates that did not pass, around the end.

    A folded group is one, in any column, when a case of it is.
    """

    def failing(number: int) -> Sequence[int]:
        line = lines[number]
        if not isinstance(line, CaseGroup):
            return failing_candidates(line, candidates)
        is_failing = line.is_folded and not line.verdicts.keys().isdisjoint(FAILING)
        return (start.candidate,) if is_failing else ()

    return next_cell(len(lines), failing, start, by)


def failing_candidates(case: CaseRow, candidates: Collection[int]) -> list[int]:
    """Return the numbers of those of the candidates that did not pass."""
    return [
        number for number, word in enumerate(case.words) if word in FAILING and number in candidates
    ]


# --- the way from one result that did not pass to the next, by line and then by candidate


class CellPlace(NamedTuple):
    """A line of a list, and a candidate of it by number."""

    line: int
    candidate: int


def next_cell(
    count: int, failing: Callable[[int], Sequence[int]], start: CellPlace, by: int
) -> CellPlace | None:
    """Find the next result that did not pass in so many lines, around the end; None without one.

    `failing` returns the candidates of a line that did not pass, by number, in order. By 1 those
    behind the start come first, by -1 those before it; the start itself comes last.
    """
    for step in range(count + 1 if count else 0):
        line = (start.line + by * step) % count
        for candidate in failing(line)[::by]:
            is_ahead = (candidate - start.candidate) * by > 0
            if 0 < step < count or is_ahead == (step == 0):
                return CellPlace(line, candidate)
    return None

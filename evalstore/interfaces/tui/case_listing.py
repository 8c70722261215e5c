"""The lines of the table of cases: filtered, sorted and grouped, and the way through them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evalstore.core.display import FAILING, SIGNS, columns_of, plural, verdict_counts
from evalstore.core.values import Result
from evalstore.interfaces.tui.case_filter import ORDERS, FilteredCases, LookedUp, Query
from evalstore.interfaces.tui.grid import only_file
from evalstore.results.table.cases import CaseRow, Cases

GROUPINGS = ("", "file", "tag")


class PromptPair(NamedTuple):
    """Two system prompts of a run, by name or id, to be compared as two candidates are."""

    was: str
    now: str


class CasePlace(NamedTuple):
    """A case, and one of the candidates that answer it."""

    file: str
    row: str
    model: str = ""
    """Empty: any."""
    prompt: str = ""
    """The name of the system prompt, if the file has several; empty: any."""

    def is_of(self, case: CaseRow) -> bool:
        """Return whether a case is at this place."""
        is_prompt = not self.prompt or self.prompt == case.prompt
        return (self.file, self.row) == (case.file, case.row) and is_prompt


class CaseListing:
    """The cases that are listed, in their order, with a line above each group."""

    def __init__(self, start: CasePlace | None = None) -> None:
        """Place the cursor on a row of a file, if there is one."""
        self.cases: Cases | None = None
        self.filtered: FilteredCases | None = None
        self.lines: list[CaseRow | CaseGroup] = []
        self.order = ORDERS[0]
        self.grouping = GROUPINGS[0]
        self.case_count = 0
        """How many cases match the filter; one has a line for each system prompt and each tag."""
        self.total = 0
        """How many cases there are."""
        self.verdicts: Mapping[str, int] = {}
        """How many results of these cases have each verdict."""
        self.only_file = ""
        """The file that all these cases are of; empty when there are several."""
        self.answered: Collection[int] | None = None
        """The candidates that have results in these cases, by number; None: all."""
        self._start = start
        self._was_sought = False
        """Whether the row for the cursor was looked for in all cases."""
        self._folded: set[str] = set()
        self.matching: Sequence[CaseRow] = ()
        """The cases that match the filter, also those of folded groups."""
        self._marked: set[tuple[str, ...]] = set()
        """The keys of marked cases, also of those that the filter hides."""
        self._query: Query | None = None
        """The filter by which they were arranged last."""

    def load(self, cases: Cases, filtered: FilteredCases) -> None:
        """Take cases that were read again."""
        self.cases, self.filtered = cases, filtered
        self.total = count_cases(cases.rows) if cases.total is None else cases.total

    def clear(self) -> None:
        """Free the cases of a page that was left, which would stay until garbage is collected."""
        self.cases = self.filtered = self._query = None
        self.lines, self.matching = [], ()

    @property
    def is_limited(self) -> bool:
        """Return whether only some of many cases were read."""
        return self.cases is not None and self.cases.total is not None

    def filter_for_start(self) -> str:
        """Return the filter that finds the row for the cursor where it was not read, once."""
        start, rows = self._start, self.cases.rows if self.cases else ()
        if start is None or not self.is_limited or any(map(start.is_of, rows)):
            return ""
        if self._was_sought:
            self._start = None
            return ""
        self._was_sought = True
        words = " ".join(f'"{part}"' for part in start.row.split('"') if part.strip())
        return f'file:"{start.file}" {words}'.strip()

    def fold(self, group: CaseGroup) -> None:
        """Fold a group, or unfold it."""
        self._folded ^= {group.name}

    def save_marks(self, marked: Iterable[int]) -> None:
        """Keep the marks of these lines; those that the filter hides stay marked."""
        numbers = set(marked)
        if self._marked or numbers:
            self._marked -= set(map(line_key, self.lines))
            self._marked |= {line_key(self.lines[number]) for number in numbers}

    @property
    def marked(self) -> set[int]:
        """Return the numbers of the lines that are marked."""
        if not self._marked:
            return set()
        return {n for n, line in enumerate(self.lines) if line_key(line) in self._marked}

    def arrange(self, query: Query, matches: LookedUp, cursor: int | None) -> int:
        """List what matches the filter; returns where the cursor is, at the same line if it can.

        When that line no longer matches the same filter, it is at the one in its place. Without a
        cursor it is at the first.
        """
        assert self.filtered is not None
        at, is_same = cursor or 0, cursor is not None and query is self._query
        before = line_key(self.lines[at]) if cursor is not None and at < len(self.lines) else None
        self.matching = rows = self.filtered.select(query, self.order, matches)
        self.lines = [*rows]
        if self.grouping:
            by_name = self.order != "verdict"
            self.lines = list(group_cases(rows, self.grouping, self._folded, by_name=by_name))
        places = [n for n, line in enumerate(self.lines) if line_key(line) == before]
        first = 1 if self.grouping and len(self.lines) > 1 else 0
        near = min(at, len(self.lines) - 1) if is_same else first
        cursor = min(places, key=lambda n: abs(n - at), default=near)
        self._query = query
        if self._start:
            start = next((n for n, row in enumerate(rows) if self._start.is_of(row)), None)
            cursor = first if start is None else start
            if start is not None or not self._was_sought:
                self._start = None
        self.case_count = count_cases(rows)
        is_cut = self.cases is not None and self.cases.is_cut
        self.only_file = "" if is_cut else only_file(row.file for row in rows)
        self.verdicts = count_verdicts(rows, self.candidates(query))
        if self.is_limited and not query.conditions and self.cases:
            self.verdicts = self.cases.verdicts
        kinds = {row.words for row in rows}
        self.answered = {n for words in kinds for n, word in enumerate(words) if word} or None
        return cursor

    @property
    def by_file(self) -> bool:
        """Return whether the name of the file stands above the cases, or in the title."""
        return self.grouping == "file" or bool(self.only_file)

    @property
    def rows(self) -> list[CaseRow]:
        """Return the listed cases, without the lines of groups."""
        return [line for line in self.lines if not isinstance(line, CaseGroup)]

    def spread_mark(self, marked: set[int], number: int) -> set[int]:
        """Return the marks after a line was marked or not; grouped by tag, all its lines are."""
        if self.grouping != "tag":
            return marked
        key = line_key(self.lines[number])
        same = {n for n, line in enumerate(self.lines) if line_key(line) == key}
        return marked | same if number in marked else marked - same

    def line_of(self, case: CaseRow, near: int = 0) -> int | None:
        """Return the line of a case that is nearest to another line; by tag it may have several."""
        key = line_key(case)
        lines = (
            n
            for n, line in enumerate(self.lines)
            if not isinstance(line, CaseGroup) and line_key(line) == key
        )
        return min(lines, key=lambda n: abs(n - near), default=None)

    def candidates(self, query: Query) -> Sequence[int]:
        """Return the numbers of the candidates that a filter is about."""
        return self.filtered.candidates(query) if self.filtered else ()

    def prompts_of(self, case: CaseRow | None) -> dict[str, str]:
        """Return the system prompts of a case by name, its own first; empty if it has one.

        Each has its id, or the name again where nothing was said.
        """
        if case is None or self.cases is None or not case.prompt:
            return {}
        rows = [row for row in self.cases.rows if (row.file, row.row) == (case.file, case.row)]
        first = [(row, next(result for result in row.results if result)) for row in (case, *rows)]
        return {row.prompt: result.prompt or row.prompt for row, result in first}

    def other_candidates(self, picked: int) -> tuple[str, list[str]]:
        """Return a candidate by its number, and the others; comparable ones first."""
        if self.cases is None or len(self.cases.models) < 2:
            return "", []
        models, rows = self.cases.models, self.cases.rows
        judged = [{n for n, it in enumerate(row.results) if it and it.verdict} for row in rows]
        shared = set[int]().union(*(numbers for numbers in judged if picked in numbers))
        others = [*range(picked + 1, len(models)), *range(picked)]
        comparable = sorted(others, key=lambda number: number not in shared)
        return models[picked], [models[number] for number in comparable]


# --- lines above cases that have something in common


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
        in_lines = f", {plural(self.lines, 'line')}" if self.lines != self.count else ""
        cases = f"{plural(self.count, 'case')}{in_lines}"
        head = f"{'▸' if self.is_folded else '▾'} {self.name}: {cases}"
        text = f"{head}, {verdict_counts(self.verdicts)}"
        if columns_of(text) <= width:
            return text
        return f"{head}, {verdict_counts(self.verdicts, words=False)}"


def line_key(line: CaseRow | CaseGroup) -> tuple[str, ...]:
    """Return the key of a line, by which it is found after all were read again."""
    if isinstance(line, CaseGroup):
        return (line.name,)
    return line.file, line.row, line.prompt


def group_cases(
    rows: Iterable[CaseRow], by: str, folded: Collection[str] = (), *, by_name: bool = True
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
    lines: Sequence[CaseRow | CaseGroup], start: CellPlace, by: int, candidates: Collection[int]
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


# --- from answer to answer: among the cases of a list, their candidates and their attempts


class CaseNavigator:
    """A place among cases; a step that cannot be made leaves it and returns False."""

    def __init__(
        self,
        cases: Cases,
        listed: Sequence[CaseRow],
        number: int,
        model: str,
        candidates: Collection[str] | None = None,
    ) -> None:
        """`candidates` are those whose failures are gone to; None: all."""
        self.cases = cases
        self._meant = candidates
        self.listed = list(listed)
        self._case_numbers: dict[tuple[str, str], int] = {}
        """The numbers of the listed cases by file and row; empty until asked for."""
        self.number = number
        self.model = model
        self.attempt = self._first_attempt()
        """Which answer of the candidate, from 0."""
        self.is_chosen = False
        """Whether the reader has gone to this answer; else it stands for the result."""
        self.other: str | None = None
        """The candidate whose answer stands beside."""
        self._now: Cases | None = None
        """The cases as they were read last, when they lack the shown one."""

    @property
    def place(self) -> tuple[object, ...]:
        """Return the case, the candidate, the answer and the candidate beside."""
        return self.case, self.model, self.attempt, self.other

    @property
    def gone(self) -> str:
        """Return that the case was not among those that were read last; empty if it was."""
        is_there = self._now is None or self.has_case(self._now)
        return "" if is_there else "this case is no longer in the workspace"

    def has_case(self, cases: Cases) -> bool:
        """Return whether the case is among others."""
        return any(line_key(row) == line_key(self.case) for row in cases.rows)

    @property
    def case(self) -> CaseRow:
        """Return the case."""
        return self.listed[self.number]

    @property
    def models(self) -> list[str]:
        """Return the candidates of the case."""
        return [*self._results(self.case)]

    @property
    def result(self) -> Result:
        """Return the result of the candidate."""
        return self._results(self.case)[self.model]

    @property
    def results_of_case(self) -> list[Result]:
        """Return the results of all candidates for the case, with all of its system prompts."""
        place = self.case.file, self.case.row
        rows = [row for row in self.cases.rows if (row.file, row.row) == place]
        return [result for row in rows for result in self._results(row).values()]

    @property
    def beside(self) -> Result | None:
        """Return the result of the candidate beside it."""
        return self._results(self.case).get(self.other or "")

    @property
    def session(self) -> str | None:
        """Return the id of the answer; None when there is none."""
        sessions = self.result.sessions
        return sessions[self.attempt] if self.attempt < len(sessions) else None

    @property
    def attempt_beside(self) -> int:
        """Return which answer of the candidate beside it is shown, from 0."""
        return self.cases.shown_attempt(self.beside) if self.beside else 0

    def _first_attempt(self) -> int:
        result = self._results(self.case).get(self.model)
        return self.cases.shown_attempt(result) if result else 0

    def _results(self, case: CaseRow) -> dict[str, Result]:
        results = zip(self.cases.models, case.results, strict=True)
        return {model: result for model, result in results if result is not None}

    @property
    def case_number(self) -> tuple[int, int]:
        """Return which of the listed cases this is, from 1, and how many there are.

        A case that has several lines, by system prompts or by tags, is one.
        """
        if not self._case_numbers:
            places = dict.fromkeys((row.file, row.row) for row in self.listed)
            self._case_numbers = {place: number for number, place in enumerate(places, 1)}
        return self._case_numbers[self.case.file, self.case.row], len(self._case_numbers)

    @property
    def prompt_number(self) -> tuple[int, int]:
        """Return which of the listed system prompts of the case this is, and how many there are."""
        place = self.case.file, self.case.row
        prompts = [row.prompt for row in self.listed if (row.file, row.row) == place]
        distinct = list(dict.fromkeys(prompts))
        return distinct.index(self.case.prompt) + 1, len(distinct)

    # --- steps

    def go(self, number: int, model: str | None = None) -> None:
        """Go to a case, to the same candidate where it has one."""
        self.number = number
        target = model or self.model
        self.model = target if target in self.models else self.models[0]
        self.attempt, self.is_chosen = self._first_attempt(), False
        if self.other == self.model or self.other not in self.models:
            self.other = None

    def to_case(self, by: int) -> bool:
        """Go to the next case, or to the one before."""
        number = self.number + by
        if not 0 <= number < len(self.listed):
            return False
        self.go(number)
        return True

    def to_candidate(self, by: int) -> bool:
        """Go to the next candidate of the case, behind the last to the first."""
        models = self.models
        if len(models) > 1:
            self.go(self.number, models[(models.index(self.model) + by) % len(models)])
        return len(models) > 1

    def to_failure(self, by: int) -> bool:
        """Go to the next result that did not pass, behind the last to the first.

        Those of the other candidates of a case come before those of the next case.
        """
        models = self.cases.models
        meant = [n for n, model in enumerate(models) if self._meant is None or model in self._meant]
        start = CellPlace(self.number, models.index(self.model))
        place = next_cell(
            len(self.listed), lambda line: failing_candidates(self.listed[line], meant), start, by
        )
        if place is None:
            return False
        self.go(place.line, models[place.candidate])
        return True

    def to_attempt(self, by: int) -> bool:
        """Go to the next answer of the candidate, behind the last to the first."""
        count = len(self.result.sessions)
        self.attempt, self.is_chosen = (self.attempt + by) % max(1, count), True
        return count > 1

    def to_answer(self, sessions: Collection[str]) -> None:
        """Go to the first answer to the case that is one of these."""
        for model, result in self._results(self.case).items():
            for attempt, session in enumerate(result.sessions):
                if session in sessions:
                    self.model, self.attempt, self.is_chosen = model, attempt, True
                    return

    def note_shown(self, place: tuple[object, ...], session: str | None) -> bool:
        """Note which answer was opened at a place; False when the reader has moved on from there.

        Of several that are judged together it need not be the first.
        """
        if place != self.place:
            return False
        if session in self.result.sessions:
            self.attempt = self.result.sessions.index(session)
        return True

    def next_beside(self) -> bool:
        """Put the next candidate beside this one; after the last, none."""
        others = [model for model in self.models if model != self.model]
        number = others.index(self.other) + 1 if self.other in others else 0
        self.other = others[number] if number < len(others) else None
        return bool(others)

    def renew(self, cases: Cases) -> None:
        """Replace the listed cases by those read again; when this case is gone, only note that."""
        rows = {line_key(row): row for row in cases.rows}
        listed = [rows.get(line_key(row)) for row in self.listed]
        self._now = cases if listed[self.number] is None else None
        if self._now:
            return
        attempt, is_chosen = self.attempt, self.is_chosen
        number = self.number - sum(row is None for row in listed[: self.number])
        self.cases, self.listed = cases, [row for row in listed if row is not None]
        self._case_numbers = {}
        before = self.model
        self.go(number)
        if self.model == before and attempt < len(self.result.sessions):
            self.attempt, self.is_chosen = attempt, is_chosen

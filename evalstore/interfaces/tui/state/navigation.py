"""From answer to answer: among the cases of a list, their candidates and their attempts."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from evalstore.core.results import Result
from evalstore.interfaces.tui.state.case_listing import CellPlace, failing_candidates, next_cell
from evalstore.results.table.case_rows import CaseRow
from evalstore.results.table.cases import Cases


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
        case, now = self.case, self._now.rows if self._now else None
        if now is None or any(_place(row) == _place(case) for row in now):
            return ""
        has_row = any((row.file, row.row) == (case.file, case.row) for row in now)
        is_row = case.row and not has_row
        return (
            f"this row is no longer in {case.file}"
            if is_row
            else "this case is no longer in the workspace"
        )

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

    @property
    def session_beside(self) -> str | None:
        """Return the id of the answer beside it; None when there is none."""
        sessions = self.beside.sessions if self.beside else ()
        return sessions[self.attempt_beside] if sessions else None

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

    def leave_beside(self) -> bool:
        """Show the answer alone; False when it already is."""
        was_beside, self.other = self.other is not None, None
        return was_beside

    def next_beside(self) -> bool:
        """Put the next candidate beside this one; after the last, none."""
        others = [model for model in self.models if model != self.model]
        number = others.index(self.other) + 1 if self.other in others else 0
        self.other = others[number] if number < len(others) else None
        return bool(others)

    def renew(self, cases: Cases) -> None:
        """Replace the listed cases by those read again; when this case is gone, only note that."""
        rows = {_place(row): row for row in cases.rows}
        listed = [rows.get(_place(row)) for row in self.listed]
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


def _place(case: CaseRow) -> tuple[str, str, str]:
    return case.file, case.row, case.prompt

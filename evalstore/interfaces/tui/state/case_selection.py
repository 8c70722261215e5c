"""The cases and results under the cursor, or marked, in the table of cases."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from evalstore.core.results import Result
from evalstore.interfaces.tui.state.case_groups import CaseGroup
from evalstore.results.table.case_rows import CaseRow
from evalstore.results.table.editable_files import EditPlace


@dataclass(frozen=True, slots=True)
class CaseSelection:
    """The lines of the table with its cursor and its marks."""

    lines: Sequence[CaseRow | CaseGroup]
    cursor: int
    picked: int
    """The number of the candidate whose column the cursor is in."""
    marked: Set[int]

    @property
    def line(self) -> CaseRow | CaseGroup | None:
        """Return the highlighted line."""
        return self.lines[self.cursor] if self.cursor < len(self.lines) else None

    @property
    def case(self) -> CaseRow | None:
        """Return the highlighted case."""
        return None if isinstance(self.line, CaseGroup) else self.line

    @property
    def result(self) -> Result | None:
        """Return the result of the candidate under the cursor."""
        case = self.case
        return case.results[self.picked] if case and self.picked < len(case.results) else None

    @property
    def cases(self) -> list[CaseRow]:
        """Return the marked cases, or the one under the cursor."""
        lines = (self.lines[number] for number in sorted(self.marked))
        marked = list(dict.fromkeys(line for line in lines if not isinstance(line, CaseGroup)))
        return marked or ([self.case] if self.case else [])

    @property
    def results(self) -> list[Result]:
        """Return the results of the selected candidate in these cases."""
        picked = (case.results[self.picked : self.picked + 1] for case in self.cases)
        return [result for results in picked for result in results if result]

    def prompt_name(self, result: Result) -> str:
        """Return the name of the system prompt of a result, when its case has several."""
        cases = (case for case in self.cases if result in case.results)
        return next((case.prompt for case in cases), "")

    @property
    def edited_place(self) -> EditPlace | None:
        """Return the highlighted case as a place to edit."""
        case = self.case
        result = next((result for result in case.results if result), None) if case else None
        return EditPlace(result.file, row=result.row, prompt=result.prompt) if result else None

    @property
    def copy_text(self) -> tuple[str, str]:
        """Return the ids of the sessions under the cursor, or the case; and a name for them."""
        if self.result and self.result.sessions:
            sessions = self.result.sessions
            name = "the id of the answer" if len(sessions) == 1 else "the ids of the answers"
            return " ".join(sessions), name
        if self.case is None:
            return "", ""
        return f"{self.case.file}::{self.case.row}" if self.case.row else self.case.file, "the case"

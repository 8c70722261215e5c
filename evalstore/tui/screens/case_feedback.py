"""The feedback on the highlighted case, below the table of cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.tui.render.judgements import judgement_lines
from evalstore.tui.widgets.text_view import TextView

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evalstore.operations.views.cases import CaseRow, Cases
    from evalstore.results import Result
    from evalstore.tui.screens.base import Page


class CaseFeedback:
    """Reads the feedback of judges in a thread; a case that was left meanwhile is not shown."""

    def __init__(self, page: Page, history: Callable[[Result], Sequence[str]]) -> None:
        """`history` returns the last verdicts of a result."""
        self._page = page
        self._history = history
        self._case: CaseRow | None = None

    @staticmethod
    def view() -> TextView:
        """The text below the table."""
        return TextView(id="feedback")

    def clear(self) -> None:
        """Show nothing."""
        self._case = None
        self._page.query_one("#feedback", TextView).show(())

    def show(self, cases: Cases | None, case: CaseRow | None, picked: int) -> None:
        """Show what judges and people say of a case, first of the picked candidate."""
        if cases is None or case is None:
            self.clear()
            return
        self._case = case

        def show(feedback: Mapping[str, str]) -> None:
            if case is self._case:
                lines = judgement_lines(cases, case, picked, feedback, self._history)
                self._page.query_one("#feedback", TextView).show(lines)

        show({})
        ids = [id for result in case.results if result for id in result.evaluations]
        if ids:
            self._page.fetch(lambda: self._page.source.feedback(ids), show, group="feedback")

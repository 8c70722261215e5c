"""The reader of the page of cases: the answer to the case under the cursor."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual.geometry import Size

from evalstore.interfaces.tui.render.documents.image import IMAGE_WIDTH, render_images
from evalstore.interfaces.tui.render.documents.reader import ReaderTexts, reader_texts
from evalstore.interfaces.tui.render.judgements import case_judgement_lines
from evalstore.interfaces.tui.state.shown_answer import read_shown_answer
from evalstore.interfaces.tui.widgets.text_view import TextView

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual import events
    from textual.timer import Timer

    from evalstore.core.results import Result
    from evalstore.interfaces.tui.screens.base import Page
    from evalstore.results.answer.answer import AnswerView
    from evalstore.results.table.case_rows import CaseRow
    from evalstore.results.table.cases import Cases

_PAUSE_SECONDS = 0.06
"""An answer is read when the cursor has stayed on its case for so long."""
_FEW_LINES = 20
"""Lines of a reader in which the message of the user has one line."""
_MANY_LINES = 40
"""Lines of a reader in which no answer is cut so that the verdict on it is seen."""
_MISSING = "{page.run} gets it, and shows the price first."
_CUT = ": {list.open} shows all of it"


class CaseReader:
    """Reads an answer in a thread when the cursor stays; one that was left is not shown."""

    def __init__(self, page: Page, history: Callable[[Result], Sequence[str]]) -> None:
        """`history` returns the last verdicts of a result."""
        self._page = page
        self._history = history
        self._shown: tuple[str, str, str, int] | None = None
        """The case and the candidate that are shown."""
        self._pause: Timer | None = None
        self._show_again: Callable[[], None] = self.clear
        self._fit: tuple[Size | None, bool] | None = None
        """For which measures of the pane the answer was prepared."""

    def view(self) -> TextView:
        """Return the widget that shows the text."""
        return ReaderPane(self.fit)

    @property
    def is_waiting(self) -> bool:
        """Return whether a reading begins when the cursor stays."""
        return self._pause is not None

    @property
    def _view(self) -> TextView:
        return self._page.query_one("#feedback", TextView)

    def clear(self) -> None:
        """Show nothing."""
        self._stop()
        self._fit = None
        self._shown = None
        self._view.show(())

    def forget(self) -> None:
        """Forget the case of a page that was left."""
        self._stop()
        self._show_again = self.clear

    def show(self, cases: Cases | None, case: CaseRow | None, picked: int) -> None:
        """Show the answer of the picked candidate; until it is read, the verdicts on all."""
        if cases is None or case is None:
            self.clear()
            return
        place = case.file, case.row, case.prompt, picked
        stays = place == self._shown  # the same case was read again
        self._shown = place
        if not stays:
            self._view.show(case_judgement_lines(cases, case, picked, {}, self._history))
        self._stop()
        self._show_again = partial(self.show, cases, case, picked)
        self._pause = self._page.set_timer(
            _PAUSE_SECONDS, lambda: self._read(cases, case, picked, stays=stays)
        )

    def refresh_ages(self) -> None:
        """Show the answer again, where the reader is in it."""
        if self._fit is not None and not self.is_waiting:
            self._show_again()

    def fit(self) -> None:
        """Show the answer again if the new size of the pane has room for more, or for less."""
        if self._fit is not None and self._fit != self._measure():
            self._show_again()

    def _measure(self) -> tuple[Size | None, bool]:
        """Return the size of a pane without many lines, and whether images have room in it."""
        size = Size(self._view.text_width, self._view.scrollable_content_region.height)
        return size if size.height < _MANY_LINES else None, size.width > IMAGE_WIDTH

    def _stop(self) -> None:
        if self._pause:
            self._pause.stop()
            self._pause = None

    def _read(self, cases: Cases, case: CaseRow, picked: int, *, stays: bool) -> None:
        self._pause = None
        page, place = self._page, self._shown
        result = case.results[picked] if picked < len(case.results) else None
        others = [other for number, other in enumerate(case.results) if other and number != picked]
        judgements = [id for other in others for id in other.evaluations]
        self._fit = room, has_room = self._measure()
        is_brief = room is not None and room.height < _FEW_LINES
        shows_images = not page.app.no_color and has_room
        history = self._history
        hint, cut_note = page.with_keys(_MISSING), page.with_keys(_CUT)

        def read() -> ReaderTexts:
            source = page.source
            feedback = source.feedback(judgements) if judgements else {}
            if result is None:
                lines = list(case_judgement_lines(cases, case, picked, feedback, history))
                return ReaderTexts(lines, lines)
            view = _read_answer(page, cases, result)
            images = (
                render_images(view, source.files_of_test) if shows_images and not is_brief else {}
            )
            return reader_texts(
                cases,
                case,
                picked,
                view,
                feedback,
                history,
                images,
                hint,
                cut_note,
                is_brief=is_brief,
                room=room,
            )

        def show(texts: ReaderTexts) -> None:
            if place == self._shown:
                self._view.show(texts.lines, stay=stays, written=texts.written)

        page.fetch(read, show, group="feedback")


class ReaderPane(TextView):
    """The text of a reader, which depends on the size of the pane."""

    def __init__(self, fit: Callable[[], None]) -> None:
        """`fit` is called when the size has changed."""
        super().__init__(id="feedback")
        self._fit = fit

    def on_resize(self, _event: events.Resize) -> None:
        """Fit the text to the size."""
        self._fit()


def _read_answer(page: Page, cases: Cases, result: Result) -> AnswerView:
    shown = result.sessions[cases.shown_attempt(result)] if result.sessions else None
    return read_shown_answer(page.source, result, shown, cases.run)

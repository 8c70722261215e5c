"""The case under the cursor in short: the last user message, the answer, and the verdicts on it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, cast

from evalstore.core.display import BLANK, StyledLine, TextBlock, plural, text_lines
from evalstore.interfaces.tui.render.answer import (
    IMAGE_WIDTH,
    attempt_of,
    block_lines,
    lack_lines,
    place_lines,
    reason_lines,
    render_images,
    verdict_lines,
)
from evalstore.interfaces.tui.render.pair import question_lines
from evalstore.interfaces.tui.render.verdicts import (
    MOST_OF_FEEDBACK,
    ROOMY_FEEDBACK,
    candidate_lines,
    case_judgement_lines,
    history_spans,
)
from evalstore.interfaces.tui.widgets.text_view import TextView
from evalstore.results.answer.answer_text import conversation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evalstore.core.results import Decision, Result
    from evalstore.interfaces.tui.screens.base import Page
    from evalstore.results.answer.answer import AnswerView
    from evalstore.results.table.case_rows import CaseRow
    from evalstore.results.table.cases import Cases


_USER, _ANSWER = (12, 1_500), (300, 10_000)
"""How many lines and characters of a message and of an answer are shown."""
_BRIEF_LINES = 3
"""Lines of a message in a pane of few lines."""


Lines: TypeAlias = "Sequence[StyledLine]"


def _shortened(
    block: TextBlock, images: Mapping[str, Sequence[StyledLine]], cut_note: str, rendered: bool
) -> Iterator[StyledLine]:
    """Yield the beginning of a block; a note says how much is left out."""
    lines, characters = _ANSWER if block.by_candidate else _USER
    start = "\n".join(block.text[:characters].split("\n")[:lines])
    yield BLANK
    yield from block_lines(block._replace(text=start), images, rendered=rendered)
    if left := len(block.text) - len(start):
        words = f"… {plural(left, 'more character')}{cut_note}"
        yield from text_lines(words, "faint", 2)


# --- reads it while the cursor stays


_READING_PAUSE = 0.06
"""An answer is read when the cursor has stayed on its case for so long."""
_FEW_LINES = 20
"""Fewer lines of a reader are few: the reasons for a verdict stand above the answer."""
_MISSING = "{page.run} gets it, and shows the price first."
_FEEDBACK = "feedback"
"""The id of the widget, and the group of its readings."""
_CUT = ": {list.open} shows all of it"


class CaseReader(TextView):
    """Reads an answer in a thread when the cursor stays; one that was left is not shown."""

    history: Callable[[Result], Sequence[str]]
    """Returns the last verdicts of a result."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._shown: tuple[str, str, str, int] | None = None
        """The case and the candidate that are shown."""
        self._show_again: Callable[[], None] = self.clear
        self._fit: tuple[bool, bool] | None = None
        """For which measures of the pane the answer was prepared."""

    @property
    def _page(self) -> Page:
        return cast("Page", self.screen)

    def clear(self) -> None:
        """Show nothing."""
        self._page.end_pause(_FEEDBACK)
        self._fit = None
        self._shown = None
        self.show(())

    def on_unmount(self) -> None:
        """Forget the case of a page that was left."""
        self._show_again = self.clear

    def show_case(self, cases: Cases | None, case: CaseRow | None, picked: int) -> None:
        """Show the answer of the picked candidate; until it is read, the verdicts on all."""
        if cases is None or case is None:
            self.clear()
            return
        place = case.file, case.row, case.prompt, picked
        stays = place == self._shown  # the same case was read again
        self._shown = place
        if not stays:
            self.show(case_judgement_lines(cases, case, picked, {}, self.history))
        self._page.end_pause(_FEEDBACK)
        self._show_again = partial(self.show_case, cases, case, picked)
        read = partial(self._read, cases, case, picked, stays=stays)
        self._page.pause(_FEEDBACK, _READING_PAUSE, read)

    def refresh_ages(self) -> None:
        """Show the answer again, where the reader is in it."""
        if self._fit is not None and _FEEDBACK not in self._page.pauses:
            self._show_again()

    def on_resize(self) -> None:
        """Show the answer again if the new size of the pane has room for more, or for less."""
        if self._fit is not None and self._fit != self._measure():
            self._show_again()

    def _measure(self) -> tuple[bool, bool]:
        """Return whether the pane has few lines, and whether images have room in it."""
        height = self.scrollable_content_region.height
        return height < _FEW_LINES, self.text_width > IMAGE_WIDTH

    def _texts(
        self,
        page: Page,
        cases: Cases,
        case: CaseRow,
        picked: int,
        view: AnswerView,
        feedback: Mapping[Decision, str],
        *,
        is_brief: bool,
        shows_images: bool,
    ) -> tuple[Lines, Lines]:
        """Return the text of a case as it is shown, and as it is written.

        `feedback` has the reasons for the verdicts on the other candidates. With `is_brief`, where
        the verdicts may not be seen below the answer, the reasons are above it, and the message of
        the user has three lines at most.
        """
        result = case.results[picked]
        assert result
        read = page.source.files_of_test
        images = render_images(view, read) if shows_images and not is_brief else {}
        mixed = cases.mixed.get(result.evaluations)
        place = [*place_lines(case, result, attempt_of(view, result), cases.labels, mixed)]
        place += reason_lines(view) if is_brief else ()
        most = MOST_OF_FEEDBACK if is_brief else ROOMY_FEEDBACK
        below = [*lack_lines(view, result, page.with_keys(_MISSING)), *verdict_lines(view, most)]
        if spans := tuple(history_spans(self.history(result))):
            below.append(StyledLine(spans))
        for number in range(len(case.results)):
            lines = list(candidate_lines(cases, case, number, feedback, self.history, most))
            if number != picked and lines:
                below += [BLANK, *lines]
        blocks = list(zip(conversation(view), view.conversation, strict=True))
        users = [block for block, turn in blocks if turn.role == "user" and turn.answer is None]
        answers = [block for block, turn in blocks[-1:] if turn.answer]

        def exchange(*, rendered: bool) -> Iterator[StyledLine]:
            for block in (*users[-1:], *answers):
                if is_brief and not block.by_candidate:
                    yield from question_lines(block.text, _BRIEF_LINES)
                else:
                    yield from _shortened(block, images, page.with_keys(_CUT), rendered)

        shown, written = ([*exchange(rendered=rendered)] for rendered in (True, False))
        return [*place, *shown, *below], [*place, *written, *below]

    def _read(self, cases: Cases, case: CaseRow, picked: int, *, stays: bool) -> None:
        page, place = self._page, self._shown
        result = case.results[picked] if picked < len(case.results) else None
        others = [other for number, other in enumerate(case.results) if other and number != picked]
        decisions = [other.decision for other in others]
        self._fit = is_brief, has_room = self._measure()
        shows_images = not page.app.no_color and has_room

        def read() -> tuple[Lines, Lines]:
            source = page.source
            feedback = source.feedback(decisions) if decisions else {}
            if result is None:
                lines = list(case_judgement_lines(cases, case, picked, feedback, self.history))
                return lines, lines
            shown = result.sessions[cases.shown_attempt(result)] if result.sessions else None
            view = source.answer(result, shown, cases.run)
            how = {"is_brief": is_brief, "shows_images": shows_images}
            return self._texts(page, cases, case, picked, view, feedback, **how)

        def show(texts: tuple[Lines, Lines]) -> None:
            if place == self._shown:
                lines, written = texts
                self.show(lines, stay=stays, written=written)

        page.fetch(read, show, group=_FEEDBACK)

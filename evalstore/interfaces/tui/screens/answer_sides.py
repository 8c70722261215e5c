"""The texts of the page of an answer: one below the other, or in two columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from evalstore.core.display import safe
from evalstore.core.styled_text import StyledLine, text_lines
from evalstore.interfaces.tui.screens.panels import BROAD
from evalstore.interfaces.tui.widgets.text_view import TextView

if TYPE_CHECKING:
    from evalstore.interfaces.tui.render.documents.answer_texts import AnswerTexts
    from evalstore.interfaces.tui.screens.panels import PanelPage
    from evalstore.interfaces.tui.state.navigation import CaseNavigator


class AnswerSides:
    """Shows an answer in one text, or beside the answer of another candidate.

    In a wide terminal one answer has two columns: the conversation, and the verdicts on it.
    """

    def __init__(self, page: PanelPage, navigator: CaseNavigator) -> None:
        self._page, self._navigator = page, navigator
        self._shown: str | None = None
        """The other candidate whose answer is shown."""

    @property
    def is_split(self) -> bool:
        """Return whether one answer has two columns."""
        return self._navigator.other is None and self._page.size.width >= BROAD

    @property
    def is_fitting(self) -> bool:
        """Return whether there are as many texts as there is room for."""
        is_double = self.is_split or self._navigator.other is not None
        return self._page.query_one("#other").display == is_double

    @property
    def titles(self) -> Mapping[str, str]:
        """Return the names of two candidates, or those of the columns; one text has none."""
        other = self._navigator.other
        if other:
            return {"text": safe(self._navigator.model), "other": safe(other)}
        return {"text": "Conversation", "other": "Verdicts"} if self.is_split else {}

    def show_place(self, place: Sequence[StyledLine]) -> None:
        """Show the place of an answer that is being read."""
        note = list(text_lines("reading …", "faint"))
        if self.is_split:
            self._show(note, place)
        else:
            self._show([*place, *note], ())

    def show(self, texts: AnswerTexts, *, is_rendered: bool, stay: bool) -> None:
        """Show an answer, `is_rendered` or as it is written."""
        if self.is_split:
            body, written = (texts.laid_out if is_rendered else texts.written), texts.written
            self._show(body[1:], texts.beside, stay=stay, written=written[1:])
        else:
            lines = texts.rendered if is_rendered else texts.lines
            self._show(lines, texts.other, stay=stay, written=texts.lines)

    def _show(
        self,
        lines: Sequence[StyledLine],
        others: Sequence[StyledLine],
        *,
        stay: bool = False,
        written: Sequence[StyledLine] | None = None,
    ) -> None:
        page = self._page
        text, other = page.query_one("#text", TextView), page.query_one("#other", TextView)
        text.show(lines, stay=stay, written=written)
        other.display = self.is_split or self._navigator.other is not None
        other.show(others, stay=stay)
        is_left = self._shown is not None and self._navigator.other is None
        self._shown = self._navigator.other
        if other.has_focus and (is_left or not other.display):
            text.focus()
        for view in (text, other):
            view.set_class(other.display, "panel")
        page.show_panels()

"""One answer: the conversation, every verdict on it, and what it was judged by."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Container

from evalstore.operations.views.styled_text import BLANK, StyledLine, heading, text_lines
from evalstore.results import Result
from evalstore.tui.render.answer import place_lines
from evalstore.tui.render.answer_texts import AnswerTexts, answer_texts, compared_texts
from evalstore.tui.render.export import ExportedAnswer
from evalstore.tui.render.markdown import as_markdown
from evalstore.tui.screens.actions import CaseActionsPage
from evalstore.tui.screens.answer_explanation import append_explanation
from evalstore.tui.state.navigation import CaseNavigator
from evalstore.tui.widgets.footer import FooterHint, KeyFooter
from evalstore.tui.widgets.markdown_view import MarkdownView
from evalstore.tui.widgets.text_view import TextView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult

    from evalstore.errors import EvalstoreError
    from evalstore.operations.views.answer import AnswerView
    from evalstore.operations.views.cases import CaseRow, Cases
    from evalstore.tui.render.export import Exported
    from evalstore.tui.state.navigation import Position

_MISSING_NOW = "{page.run} gets it, and shows the price first."
_MISSING_THEN = "The run ended without it; {page.run} gets what the workspace lacks."
_FOOTER = (
    FooterHint("Label", "case.pass", "case.fail"),
    FooterHint("Edit", "case.edit"),
    FooterHint("Judge", "case.judge"),
    FooterHint("Failure", "session.next_failure", "session.last_failure"),
    FooterHint("Case", "session.last", "session.next"),
    FooterHint("Candidate", "session.last_candidate", "session.candidate"),
    FooterHint("", "session.beside"),
    FooterHint("", "session.markdown"),
    FooterHint("", "session.attempt"),
    FooterHint("", "session.versions"),
    FooterHint("", "page.run"),
    FooterHint("", "case.copy_answer"),
    FooterHint("", "page.save"),
)
_HELP = """\
What a candidate was asked and answered, and the verdict on it: of each check and of each judge,
with what it said; then tokens, price and time. A case can have several answers and candidates.
{session.attempt} shows the next answer of the candidate, {session.candidate} the next candidate,
{session.next} the next of the cases that were listed. {session.beside} puts another candidate's
answer beside this one, {session.markdown} lays the answer out as Markdown; each ends the other."""


class AnswerPage(CaseActionsPage):
    """An answer of one candidate to one of the cases that are listed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l", "candidate(1)", "Next candidate", show=False, id="session.candidate"),
        Binding(
            "left,h", "candidate(-1)", "Previous candidate", show=False, id="session.last_candidate"
        ),
        Binding("right_square_bracket", "case(1)", "Next case", show=False, id="session.next"),
        Binding("left_square_bracket", "case(-1)", "Previous case", show=False, id="session.last"),
        Binding("n", "failure(1)", "Next failure", id="session.next_failure"),
        Binding("N", "failure(-1)", "Previous failure", show=False, id="session.last_failure"),
        Binding("a", "attempt", "Next answer", show=False, id="session.attempt"),
        Binding("b", "beside", "Side by side", id="session.beside"),
        Binding("m", "markdown", "Markdown", show=False, id="session.markdown"),
        Binding("v", "versions", "Versions", id="session.versions"),
    ]
    FOOTER = _FOOTER
    TITLE = "Answer"
    WAY = "{list.open} on a case"
    HELP = _HELP
    DEFAULT_CSS = """
    AnswerPage #texts { height: 1fr; layout: vertical; }
    AnswerPage.-wide #texts { layout: horizontal; }
    AnswerPage #texts > TextView { width: 1fr; }
    AnswerPage #other { display: none; border-top: solid $panel; }
    AnswerPage.-wide #other { border-top: none; border-left: solid $panel; }
    AnswerPage #rendered { height: 1fr; display: none; background: $surface; }
    AnswerPage #verdicts { height: auto; max-height: 40%; display: none; }
    AnswerPage.-markdown #texts { layout: vertical; }
    AnswerPage.-markdown #rendered, AnswerPage.-markdown #verdicts { display: block; }
    AnswerPage.-markdown #text { display: none; }
    """

    export_name = "answer"

    def __init__(self, cases: Cases, listed: Sequence[CaseRow], number: int, model: str) -> None:
        super().__init__()
        self.navigator = CaseNavigator(cases, listed, number, model)
        self._wants_markdown = False
        self._view: AnswerView | None = None

    def compose(self) -> ComposeResult:
        """Two texts, of which mostly one is seen; or the verdicts above the answer as Markdown."""
        yield self.title_line()
        yield self.problem_line()
        with Container(id="texts"):
            yield TextView(id="text")
            yield TextView(id="other")
            yield TextView(id="verdicts")
            yield MarkdownView(id="rendered")
        yield KeyFooter()

    def on_mount(self) -> None:
        """Read the answer."""
        self.query_one("#text", TextView).focus()
        self.read()

    # --- where the reader is

    @property
    def case(self) -> CaseRow:
        """The case that is shown."""
        return self.navigator.case

    @property
    def model(self) -> str:
        """The candidate that is shown."""
        return self.navigator.model

    @property
    def result(self) -> Result:
        """What the candidate came to."""
        return self.navigator.result

    @property
    def selected(self) -> list[Result]:
        """What actions are about."""
        return [self.navigator.result]

    def prompt_name(self, _result: Result) -> str:
        """The name of the system prompt, when the case has several."""
        return self.case.prompt

    @property
    def session(self) -> str | None:
        """The id of the answer that is shown; None when there is none."""
        return self.navigator.session

    # --- reading

    def reload(self, *, stay: bool = True) -> None:
        """Read again; in the workspace the case may have other answers and verdicts by now."""
        if self.navigator.cases.run is None:
            self.fetch(lambda: self.source.cases(None), self._show_cases, group="cases")
        else:
            self.read(stay=stay)

    def _show_cases(self, cases: Cases) -> None:
        self.navigator.renew(cases)
        self.read(stay=True)

    def read(self, *, stay: bool = False) -> None:
        """Read what is to be shown; until it is there only the place is."""
        navigator, source = self.navigator, self.source
        position, result, beside = navigator.position, navigator.result, navigator.beside
        session, run = navigator.session, navigator.cases.run
        hint = self.with_keys(_MISSING_NOW if run is None else _MISSING_THEN)
        self._show_title(reading=True)
        if not stay:
            place = place_lines(position.case, result, position.attempt)
            self._show_sides([*place, *text_lines("reading …", "faint")], ())

        def view_of(result: Result, id: str | None) -> AnswerView:
            return source.session(id, result) if id else source.question(result, run)

        def work() -> AnswerTexts:
            view = view_of(result, session)
            if beside is None:
                return answer_texts(position, result, view, hint)
            other = view_of(beside, next(iter(beside.sessions), None))
            return compared_texts(position, (result, beside), (view, other))

        self.fetch(work, lambda texts: self._show(position, texts, stay=stay))

    def _show(self, position: Position, texts: AnswerTexts, *, stay: bool) -> None:
        if position != self.navigator.position:  # the reader has moved on
            return
        self._view = texts.view
        self._show_sides(texts.lines, texts.other, stay=stay)
        self.query_one("#verdicts", TextView).show(
            (*texts.verdicts, BLANK, heading("▌ answer")), stay=stay
        )
        self._show_title()
        self._show_markdown()
        if texts.view.id is not None and self.navigator.other is None:
            append_explanation(self, self.navigator, position, texts)

    def _show_sides(
        self, lines: Sequence[StyledLine], others: Sequence[StyledLine], *, stay: bool = False
    ) -> None:
        self.query_one("#text", TextView).show(lines, stay=stay)
        other = self.query_one("#other", TextView)
        other.display = self.navigator.other is not None
        other.show(others, stay=stay)

    def _show_title(self, *, reading: bool = False) -> None:
        navigator, case = self.navigator, self.case
        beside = f"{navigator.model} beside {navigator.other}" if navigator.other else ""
        run = navigator.cases.run
        owner = f"run {run[:8]}" if run else "workspace"
        self.set_title(
            "" if beside else owner,
            f"{navigator.number + 1:,}/{len(navigator.listed):,}",
            "reading …" if reading else "",
            beside,
            owner if beside else "",
            case.file,
            case.row,
            case.prompt,
            "" if beside else navigator.model,
        )

    def show_problem(self, problem: EvalstoreError) -> None:
        """Say what went wrong, and that nothing is read any more."""
        super().show_problem(problem)
        self._show_title()

    # --- keys

    def _step(self, is_done: bool, otherwise: str) -> None:
        if is_done:
            self.read()
        else:
            self.notify(otherwise, markup=False)

    def action_candidate(self, by: int) -> None:
        """Show the next candidate of this case."""
        self._step(self.navigator.to_candidate(by), "no other candidate has this case")

    def action_case(self, by: int) -> None:
        """Show the next case, or the one before."""
        which = "last" if by > 0 else "first"
        self._step(self.navigator.to_case(by), f"this is the {which} case")

    def action_failure(self, by: int) -> None:
        """Show the next case that did not pass, or the one before."""
        self._step(self.navigator.to_failure(by), "no case failed")

    def action_attempt(self) -> None:
        """Show the next answer to the same case."""
        self._step(self.navigator.to_attempt(), "there is no other answer")

    def action_beside(self) -> None:
        """Show the answer of the next candidate beside this one; after the last, none."""
        is_made = self.navigator.next_beside()
        if is_made:
            self._wants_markdown = False
            self._show_markdown()
        self._step(is_made, "no other candidate has this case")

    def action_markdown(self) -> None:
        """Show the answer as the Markdown that it may be, or as it is; nothing beside it."""
        if not self._wants_markdown and not MarkdownView.has_room_for(self._answer):
            self.notify("the answer is too long to be shown as Markdown", markup=False)
            return
        self._wants_markdown = not self._wants_markdown
        if self.navigator.other is None:
            self._show_markdown()
        else:
            self.navigator.other = None
            self.read()

    @property
    def _answer(self) -> str:
        return self._view.answer if self._view else ""

    def _show_markdown(self) -> None:
        shows = self._wants_markdown and MarkdownView.has_room_for(self._answer)
        moves = self.has_class("-markdown") != shows
        self.set_class(shows, "-markdown")
        rendered = self.query_one("#rendered", MarkdownView)
        rendered.show(self._answer if shows else None)
        if moves:
            (rendered if shows else self.query_one("#text")).focus()

    @property
    def copy_text(self) -> tuple[str, str]:
        """What is shown as Markdown."""
        return self._answer, "the answer"

    @property
    def exported(self) -> Exported:
        """The answer; with another one beside it both texts."""
        text = self.query_one("#text", TextView).indented_text
        if self.navigator.other or self._view is None:
            return f"{text}\n\n{self.query_one('#other', TextView).indented_text}".rstrip()
        position = self.navigator.position
        markdown = as_markdown(position.case, self.result, position.attempt, self._view)
        return ExportedAnswer(text, markdown)

    def action_versions(self) -> None:
        """Show the versions of this test."""
        self.browser.show_test_history(self.case.file, self.case.row)

    def action_back(self) -> None:
        """Leave; the list that the reader comes from follows to the case."""
        self.browser.go_back_to_case(self.case, self.model)

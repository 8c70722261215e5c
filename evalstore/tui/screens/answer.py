"""One answer: the conversation, every verdict on it, and what it was judged by."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll

from evalstore.display import safe_markdown
from evalstore.tui.render.answer import tell, tell_beside, tell_place, tell_verdicts
from evalstore.tui.render.export import ExportedAnswer
from evalstore.tui.render.markdown import as_markdown
from evalstore.tui.screens.actions import CaseActionsPage
from evalstore.tui.screens.cases import CasesPage
from evalstore.tui.state.navigation import CaseNavigator
from evalstore.tui.widgets.footer import KeyFooter
from evalstore.tui.widgets.text_view import BLANK, StyledLine, TextView, heading, text_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual.app import ComposeResult

    from evalstore.errors import EvalstoreError
    from evalstore.operations.views.answer import AnswerView
    from evalstore.operations.views.cases import CaseRow, Cases
    from evalstore.tui.render.export import Shown
    from evalstore.tui.state.navigation import Position
    from evalstore.values import Result

_RENDERED = 150, 20_000
"""Lines and characters of an answer that are shown as Markdown; more takes seconds."""

_MISSING_NOW = "{page.run} gets it, and shows the price first."
_MISSING_THEN = "The run ended without it; {page.run} gets what the workspace lacks."


class _Rendered(VerticalScroll, can_focus=True):
    """Where an answer is shown as Markdown; it is moved in as in a `TextView`."""

    BINDINGS = TextView.BINDINGS


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
    TITLE = "Answer"
    WAY = "{list.open} on a case"
    HELP = """\
What a candidate was asked and answered, and the verdict on it: of each check and of each judge,
with what it said; then tokens, price and time. A case can have several answers and candidates.
{session.attempt} shows the next answer of the candidate, {session.candidate} the next candidate,
{session.next} the next of the cases that were listed. {session.beside} puts another candidate's
answer beside this one, {session.markdown} lays the answer out as Markdown; each ends the other."""
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

    saved_as = "answer"

    def __init__(self, cases: Cases, listed: Sequence[CaseRow], number: int, model: str) -> None:
        super().__init__()
        self.walk = CaseNavigator(cases, listed, number, model)
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
            yield _Rendered(id="rendered")
        yield KeyFooter()

    def on_mount(self) -> None:
        """Read the answer."""
        self.query_one("#text", TextView).focus()
        self.read()

    # --- where the reader is

    @property
    def case(self) -> CaseRow:
        """The case that is shown."""
        return self.walk.case

    @property
    def model(self) -> str:
        """The candidate that is shown."""
        return self.walk.model

    @property
    def result(self) -> Result:
        """What the candidate came to."""
        return self.walk.result

    @property
    def chosen(self) -> list[Result]:
        """What actions are about."""
        return [self.walk.result]

    def prompt_of(self, _result: Result) -> str:
        """The name of the system prompt, when the case has several."""
        return self.case.prompt

    @property
    def session(self) -> str | None:
        """The id of the answer that is shown; None when there is none."""
        return self.walk.session

    # --- reading

    def reload(self, *, stay: bool = True) -> None:
        """Read again; in the workspace the case may have other answers and verdicts by now."""
        if self.walk.cases.run is None:
            self.fetch(lambda: self.source.cases(None), self._show_cases, group="cases")
        else:
            self.read(stay=stay)

    def _show_cases(self, cases: Cases) -> None:
        self.walk.renew(cases)
        self.read(stay=True)

    def read(self, *, stay: bool = False) -> None:
        """Read what is to be shown; until it is there only the place is."""
        walk, source = self.walk, self.source
        stop, result, session, other = walk.stop, walk.result, walk.session, walk.beside
        run = walk.cases.run
        head = list(tell_place(stop.case, result, stop.attempt))
        helps = self.with_keys(_MISSING_NOW if run is None else _MISSING_THEN)
        self._tell_title(reading=True)
        if not stay:
            self._show_sides([*head, *text_lines("reading …", "faint")], ())

        def view_of(result: Result, id: str | None) -> AnswerView:
            return source.session(id, result) if id else source.question(result, run)

        def work() -> Callable[[], None]:
            view = view_of(result, session)
            if other is None:
                verdicts = [*head, *tell_verdicts(view, result, helps)]
                lines = [*verdicts, *tell(view)]
                return lambda: self._show(stop, view, lines, (), stay=stay, verdicts=verdicts)
            beside = view_of(other, next(iter(other.sessions), None))
            left, right = tell_beside(view, beside)
            lines = [*head, *left]
            others = [*tell_place(stop.case, other, 0), *right]
            return lambda: self._show(stop, view, lines, others, stay=stay)

        self.fetch(work, lambda show: show())

    def _show(
        self,
        stop: Position,
        view: AnswerView,
        lines: Sequence[StyledLine],
        others: Sequence[StyledLine],
        *,
        stay: bool,
        verdicts: Sequence[StyledLine] = (),
    ) -> None:
        if stop != self.walk.stop:  # the reader has moved on
            return
        self._view = view
        self._show_sides(lines, others, stay=stay)
        self.query_one("#verdicts", TextView).show(
            (*verdicts, BLANK, heading("▌ answer")), stay=stay
        )
        self._tell_title()
        self._render_answer()

    def _show_sides(
        self, lines: Sequence[StyledLine], others: Sequence[StyledLine], *, stay: bool = False
    ) -> None:
        self.query_one("#text", TextView).show(lines, stay=stay)
        other = self.query_one("#other", TextView)
        other.display = self.walk.other is not None
        other.show(others, stay=stay)

    def _tell_title(self, *, reading: bool = False) -> None:
        walk, case = self.walk, self.case
        beside = f"{walk.model} beside {walk.other}" if walk.other else ""
        run = walk.cases.run
        whose = f"run {run[:8]}" if run else "workspace"
        self.set_title(
            "" if beside else whose,
            f"{walk.number + 1:,}/{len(walk.listed):,}",
            "reading …" if reading else "",
            beside,
            whose if beside else "",
            case.file,
            case.row,
            case.prompt,
            "" if beside else walk.model,
        )

    def show_problem(self, problem: EvalstoreError) -> None:
        """Say what went wrong, and that nothing is read any more."""
        super().show_problem(problem)
        self._tell_title()

    # --- keys

    def _step(self, is_made: bool, otherwise: str) -> None:
        if is_made:
            self.read()
        else:
            self.notify(otherwise, markup=False)

    def action_candidate(self, by: int) -> None:
        """Show the next candidate of this case."""
        self._step(self.walk.to_candidate(by), "no other candidate has this case")

    def action_case(self, by: int) -> None:
        """Show the next case, or the one before."""
        which = "last" if by > 0 else "first"
        self._step(self.walk.to_case(by), f"this is the {which} case")

    def action_failure(self, by: int) -> None:
        """Show the next case that did not pass, or the one before."""
        self._step(self.walk.to_failure(by), "no case failed")

    def action_attempt(self) -> None:
        """Show the next answer to the same case."""
        self._step(self.walk.to_attempt(), "there is no other answer")

    def action_beside(self) -> None:
        """Show the answer of the next candidate beside this one; after the last, none."""
        is_made = self.walk.take_beside()
        if is_made:
            self._wants_markdown = False
            self._render_answer()
        self._step(is_made, "no other candidate has this case")

    def action_markdown(self) -> None:
        """Show the answer as the Markdown that it may be, or as it is; nothing beside it."""
        if not self._wants_markdown and not self._is_short:
            self.notify("the answer is too long to be shown as Markdown", markup=False)
            return
        self._wants_markdown = not self._wants_markdown
        if self.walk.other is None:
            self._render_answer()
        else:
            self.walk.other = None
            self.read()

    @property
    def _answer(self) -> str:
        return self._view.answer if self._view else ""

    @property
    def _is_short(self) -> bool:
        lines, characters = _RENDERED
        return len(self._answer) <= characters and self._answer.count("\n") < lines

    def _render_answer(self) -> None:
        shows = self._wants_markdown and self._is_short
        moves = self.has_class("-markdown") != shows
        self.set_class(shows, "-markdown")
        rendered = self.query_one("#rendered")
        rendered.remove_children()
        if shows:
            from textual.widgets import Markdown  # loads a parser, which few need

            rendered.mount(Markdown(safe_markdown(self._answer), open_links=False))
        if moves:
            (rendered if shows else self.query_one("#text")).focus()

    @property
    def copied(self) -> tuple[str, str]:
        """What is shown as Markdown."""
        return self._answer, "the answer"

    @property
    def shown(self) -> Shown:
        """The answer; with another one beside it both texts."""
        text = self.query_one("#text", TextView).laid_out
        if self.walk.other or self._view is None:
            return f"{text}\n\n{self.query_one('#other', TextView).laid_out}".rstrip()
        walk = self.walk
        return ExportedAnswer(text, as_markdown(walk.case, walk.result, walk.attempt, self._view))

    def action_versions(self) -> None:
        """Show the versions of this test."""
        self.browser.show_versions(self.case.file, self.case.row)

    def action_back(self) -> None:
        """Leave; the list that the reader comes from follows to the case."""
        below = self.app.screen_stack[-2]
        if isinstance(below, CasesPage):
            below.select(self.case, self.model)
        super().action_back()

"""One answer: the conversation, every verdict on it, and what it was judged by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.widgets import Footer

from evalstore.tui.cases import CasesPage
from evalstore.tui.looks import FAILING
from evalstore.tui.page import Page
from evalstore.tui.reader import Line, Reader, text_lines
from evalstore.tui.telling import tell, tell_beside, tell_place
from evalstore.wording import safe

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual.app import ComposeResult

    from evalstore.errors import EvalstoreError
    from evalstore.operations.browsing import CaseRow, Cases
    from evalstore.operations.reading import SessionView
    from evalstore.report.compare import Result

_RENDERED = 50_000
"""Characters of an answer that are shown as Markdown; more takes seconds."""


@dataclass(frozen=True)
class _Shown:
    """What is, or is to be, on the page."""

    case: CaseRow
    model: str
    attempt: int
    other: str | None
    """The candidate whose answer stands beside."""


class _Rendered(VerticalScroll, can_focus=True):
    """Where an answer is shown as Markdown; it is moved in as in a `Reader`."""

    BINDINGS = Reader.BINDINGS


class SessionPage(Page):
    """An answer of one candidate to one of the cases that are listed."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l", "candidate(1)", "Next candidate", show=False, id="session.candidate"),
        Binding(
            "left,h", "candidate(-1)", "Candidate before", show=False, id="session.last_candidate"
        ),
        Binding("right_square_bracket", "case(1)", "Next case", show=False, id="session.next"),
        Binding("left_square_bracket", "case(-1)", "Case before", show=False, id="session.last"),
        Binding("n", "failure(1)", "Next failure", id="session.next_failure"),
        Binding("N", "failure(-1)", "Failure before", show=False, id="session.last_failure"),
        Binding("a", "attempt", "Next answer", show=False, id="session.attempt"),
        Binding("b", "beside", "Beside another", id="session.beside"),
        Binding("m", "markdown", "Markdown", show=False, id="session.markdown"),
        Binding("v", "versions", "Versions", id="session.versions"),
    ]
    DEFAULT_CSS = """
    SessionPage #texts { height: 1fr; layout: vertical; }
    SessionPage.-wide #texts { layout: horizontal; }
    SessionPage #texts > Reader { width: 1fr; }
    SessionPage #other { display: none; border-top: solid $panel; }
    SessionPage.-wide #other { border-top: none; border-left: solid $panel; }
    SessionPage #rendered { height: 1fr; display: none; background: $surface; }
    """

    def __init__(self, cases: Cases, listed: Sequence[CaseRow], number: int, model: str) -> None:
        super().__init__()
        self._cases = cases
        self._listed = list(listed)
        self._number = number
        self._model = model
        self._attempt = 0
        self._other: str | None = None
        self._is_rendered = False
        self._answer = ""

    def compose(self) -> ComposeResult:
        """Two texts, of which mostly one is seen."""
        yield self.title_line()
        yield self.problem_line()
        with Container(id="texts"):
            yield Reader(id="text")
            yield Reader(id="other")
            yield _Rendered(id="rendered")
        yield Footer()

    def on_mount(self) -> None:
        """Read the answer."""
        self.query_one("#text", Reader).focus()
        self.read()

    # --- where the reader is

    @property
    def case(self) -> CaseRow:
        """The case that is shown."""
        return self._listed[self._number]

    @property
    def models(self) -> list[str]:
        """The candidates of this case."""
        both = zip(self._cases.models, self.case.results, strict=True)
        return [model for model, one in both if one is not None]

    @property
    def model(self) -> str:
        """The candidate that is shown."""
        return self._model

    @property
    def result(self) -> Result:
        """What the candidate came to."""
        found = self._result_of(self._model)
        assert found is not None
        return found

    @property
    def chosen(self) -> list[Result]:
        """What actions are about."""
        return [self.result]

    @property
    def session(self) -> str | None:
        """The id of the answer that is shown; None when there is none."""
        sessions = self.result.sessions
        return sessions[self._attempt] if self._attempt < len(sessions) else None

    def _result_of(self, model: str) -> Result | None:
        both = zip(self._cases.models, self.case.results, strict=True)
        return next((one for name, one in both if name == model), None)

    @property
    def _shown(self) -> _Shown:
        return _Shown(self.case, self._model, self._attempt, self._other)

    # --- reading

    def reload(self, *, stay: bool = True) -> None:
        """Read again; in the workspace the case may have other answers and verdicts by now."""
        if self._cases.run is None:
            self.fetch(lambda: self.source.cases(None), self._show_cases, group="cases")
        else:
            self.read(stay=stay)

    def _show_cases(self, cases: Cases) -> None:
        """Take the new results of the cases that are listed; those that are gone stay."""
        found = {(one.file, one.row, one.prompt): one for one in cases.rows}
        models = cases.models
        if self._model in models and (self.case.file, self.case.row, self.case.prompt) in found:
            listed = [found.get((one.file, one.row, one.prompt)) for one in self._listed]
            self._number -= sum(one is None for one in listed[: self._number])
            self._listed = [one for one in listed if one is not None]
            self._cases = cases
            if self._model not in self.models:
                self._model = self.models[0]
            if self._other not in self.models:
                self._other = None
        self.read(stay=True)

    def read(self, *, stay: bool = False) -> None:
        """Read what is to be shown; until it is there only the place is."""
        shown, result, session = self._shown, self.result, self.session
        other = self._result_of(shown.other) if shown.other else None
        run, source = self._cases.run, self.source
        head = list(tell_place(shown.case, result, shown.attempt))
        self._tell_title(reading=True)
        if not stay:
            self._show_sides([*head, *text_lines("reading …", "faint")], ())

        def view_of(one: Result, id: str | None) -> SessionView:
            return source.session(id, one) if id else source.question(one, run)

        def work() -> Callable[[], None]:
            view = view_of(result, session)
            if other is None:
                lines = [*head, *tell(view, result, is_now=run is None)]
                return lambda: self._show(shown, view, lines, (), stay=stay)
            beside = view_of(other, next(iter(other.sessions), None))
            left, right = tell_beside(view, beside)
            lines = [*head, *left]
            others = [*tell_place(shown.case, other, 0), *right]
            return lambda: self._show(shown, view, lines, others, stay=stay)

        self.fetch(work, lambda show: show())

    def _show(
        self,
        shown: _Shown,
        view: SessionView,
        lines: Sequence[Line],
        others: Sequence[Line],
        *,
        stay: bool,
    ) -> None:
        if shown != self._shown:  # the reader has moved on
            return
        self._answer = view.answer
        self._show_sides(lines, others, stay=stay)
        self._tell_title()
        self._render_answer()

    def _show_sides(
        self, lines: Sequence[Line], others: Sequence[Line], *, stay: bool = False
    ) -> None:
        self.query_one("#text", Reader).show(lines, stay=stay)
        other = self.query_one("#other", Reader)
        other.display = self._other is not None
        other.show(others, stay=stay)

    def _tell_title(self, *, reading: bool = False) -> None:
        case = self.case
        self.set_title(
            f"{self._number + 1:,}/{len(self._listed):,}",
            "reading …" if reading else "",
            case.file,
            case.row,
            case.prompt,
            f"{self._model} beside {self._other}" if self._other else self._model,
        )

    def show_problem(self, problem: EvalstoreError) -> None:
        """Say what went wrong, and that nothing is read any more."""
        super().show_problem(problem)
        self._tell_title()

    # --- keys

    def _go(self, number: int, model: str | None = None) -> None:
        """Show another case, of the same candidate where it has one."""
        self._number = number
        wanted = model or self._model
        self._model = wanted if wanted in self.models else self.models[0]
        self._attempt = 0
        if self._other == self._model or self._other not in self.models:
            self._other = None
        self.read()

    def action_candidate(self, by: int) -> None:
        """Show the next candidate of this case."""
        models = self.models
        if len(models) < 2:
            self.notify("no other candidate has this case", markup=False)
            return
        self._go(self._number, models[(models.index(self._model) + by) % len(models)])

    def action_case(self, by: int) -> None:
        """Show the next case, or the one before."""
        number = self._number + by
        while 0 <= number < len(self._listed) and not any(self._listed[number].results):
            number += by
        if 0 <= number < len(self._listed):
            self._go(number)
        else:
            self.notify(f"this is the {'last' if by > 0 else 'first'} case", markup=False)

    def action_failure(self, by: int) -> None:
        """Show the next case that did not pass, or the one before."""
        count = len(self._listed)
        for step in range(1, count + 1):
            number = (self._number + by * step) % count
            both = zip(self._cases.models, self._listed[number].results, strict=True)
            failing = [model for model, one in both if one and one.word in FAILING]
            if failing:
                self._go(number, self._model if self._model in failing else failing[0])
                return
        self.notify("no case failed", markup=False)

    def action_attempt(self) -> None:
        """Show the next answer to the same case."""
        count = len(self.result.sessions)
        if count < 2:
            self.notify("there is no other answer", markup=False)
            return
        self._attempt = (self._attempt + 1) % count
        self.read()

    def action_beside(self) -> None:
        """Show the answer of the next candidate beside this one; after the last, none."""
        others = [model for model in self.models if model != self._model]
        if not others:
            self.notify("no other candidate has this case", markup=False)
            return
        number = others.index(self._other) + 1 if self._other in others else 0
        self._other = others[number] if number < len(others) else None
        self.read()

    def action_markdown(self) -> None:
        """Show the answer as the Markdown that it may be, or as it is."""
        if not self._is_rendered and len(self._answer) > _RENDERED:
            self.notify("the answer is too long to be shown as Markdown", markup=False)
            return
        self._is_rendered = not self._is_rendered
        self._render_answer()

    def _render_answer(self) -> None:
        shows = self._is_rendered and len(self._answer) <= _RENDERED
        rendered, reader = self.query_one("#rendered"), self.query_one("#text")
        moves = rendered.display != shows
        rendered.display, reader.display = shows, not shows
        rendered.remove_children()
        if shows:
            from textual.widgets import Markdown  # loads a parser, which few need

            rendered.mount(Markdown(safe(self._answer, lines=True), open_links=False))
        if moves:
            (rendered if shows else reader).focus()

    def action_versions(self) -> None:
        """Show the versions of this test."""
        self.browser.show_versions(self.case.file, self.case.row)

    def action_back(self) -> None:
        """Leave; the list that the reader comes from follows to the case."""
        below = self.app.screen_stack[-2]
        if isinstance(below, CasesPage):
            below.select(self.case, self._model)
        super().action_back()

"""One answer: the conversation, every verdict on it, and what it was judged by."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container

from evalstore.core.display import BLANK, SIGNS, StyledLine, heading, safe, text_lines
from evalstore.core.errors import EvalstoreError
from evalstore.core.values import Result
from evalstore.interfaces.tui.case_listing import CaseNavigator
from evalstore.interfaces.tui.page_lines import FooterHint, KeyFooter, TitleLine
from evalstore.interfaces.tui.render.answer import (
    IMAGE_WIDTH,
    MISSING,
    AnswerTexts,
    FileTexts,
    answer_texts,
    answer_title,
    attempt_of,
    compared_texts,
    head_lines,
    render_images,
    render_text_files,
    text_files,
)
from evalstore.interfaces.tui.screens.actions import DatedPage
from evalstore.interfaces.tui.screens.base import Page
from evalstore.interfaces.tui.text_view import TextView, indented_text
from evalstore.results.answer.answer_text import OTHERS, explanation_sections, other_lines
from evalstore.results.answer.verdict_explanation import VerdictExplanation
from evalstore.results.table.cases import Cases
from evalstore.results.value_text import LONGEST

_SPLIT = 120
"""The width from which on the verdicts in full are at the right of an answer."""
_MISSING_THEN = "The run ended without it; {page.run} gets what the workspace lacks."
_FOOTER = (
    FooterHint("Label", ("case.pass", "case.fail")),
    FooterHint("Edit", ("case.edit",)),
    FooterHint("Judge", ("case.judge",)),
    FooterHint("Failure", ("session.next_failure", "session.last_failure")),
    FooterHint("Case", ("session.last", "session.next")),
    FooterHint("Candidate", ("session.last_candidate", "session.candidate")),
    *("session.beside", "session.markdown"),
    FooterHint("Answer", ("session.attempt", "session.last_attempt")),
    "session.versions",
    FooterHint("Run", ("page.run",)),
    *("case.copy_answer", "page.save"),
)
_BINDINGS: list[BindingType] = [
    Binding("right,l", "go('candidate', 1)", "Next candidate", show=False, id="session.candidate"),
    Binding(
        *("left,h", "go('candidate', -1)", "Previous candidate"),
        show=False,
        id="session.last_candidate",
    ),
    Binding("right_square_bracket", "go('case', 1)", "Next case", show=False, id="session.next"),
    Binding(
        "left_square_bracket", "go('case', -1)", "Previous case", show=False, id="session.last"
    ),
    Binding("n", "go('failure', 1)", "Next failure", id="session.next_failure"),
    Binding("N", "go('failure', -1)", "Previous failure", show=False, id="session.last_failure"),
    Binding("a", "go('attempt', 1)", "Next answer", show=False, id="session.attempt"),
    Binding("A", "go('attempt', -1)", "Previous answer", show=False, id="session.last_attempt"),
    Binding("b", "go('beside', 1)", "Side by side", id="session.beside"),
    Binding("m", "markdown", "Markdown", show=False, id="session.markdown"),
    Binding("v", "versions", "Versions", id="session.versions"),
]
_HELP = """\
What a candidate was asked and answered, and the verdict on it with its reasons. The verdicts in
full, their history, tokens, price and time are below the instructions, or at the right in a wide
terminal. {session.attempt} and {session.last_attempt} show
the next and the previous answer of the candidate, {session.candidate} the next candidate,
{session.next} the next of the listed cases. {session.beside} puts another candidate's answer beside
this one and marks the words that differ; {page.back} removes it. Markdown is rendered, and files
are shown in part; {session.markdown} shows everything as written, as copies and saved files do. If
one of the newest 20 runs has a newer result, {case.newest} shows it."""


class AnswerPage(DatedPage):
    """An answer of one candidate to one of the cases that are listed."""

    BINDINGS: ClassVar[list[BindingType]] = _BINDINGS
    FOOTER = _FOOTER
    TITLE = "Answer"
    WAY = "{list.open} on a case"
    HELP = _HELP
    NEWER = "{case.newest} shows the newer result"
    DEFAULT_CSS = """
    AnswerPage.-wide > #panels, AnswerPage.-framed > #panels { layout: horizontal; }
    AnswerPage > #panels > TextView { width: 1fr; }
    AnswerPage.-split > #panels > TextView { width: 2fr; }
    AnswerPage.-split > #panels > #text { width: 3fr; }
    AnswerPage #other, AnswerPage > #asked { display: none; }
    AnswerPage > #asked { height: auto; max-height: 8; background: $panel; }
    AnswerPage.-short > #asked { max-height: 2; }
    AnswerPage.-wide #other { margin-left: 1; }
    AnswerPage.-framed #other, AnswerPage.-broad #other { margin-left: 1; }
    AnswerPage.-short #other { border-top: solid $faint; }
    AnswerPage.-short #other:focus { border-top: heavy $text-primary; }
    """

    export_name = "answer"

    def __init__(self, navigator: CaseNavigator) -> None:
        super().__init__()
        self.navigator = navigator
        self._is_rendered = True
        self._texts: AnswerTexts | None = None
        self._beside: str | None = None
        """The other candidate whose answer is shown."""

    def compose(self) -> ComposeResult:
        """Lay out two texts, of which mostly one is seen."""
        yield TitleLine()
        yield from self.compose_above()
        yield TextView(id="asked", is_fixed=True)
        with Container(id="panels"):
            yield TextView(id="text")
            yield TextView(id="other")
        yield KeyFooter()

    def on_mount(self) -> None:
        """Read the answer."""
        self.query_one("#text", TextView).focus()
        self.read()

    # --- where the reader is

    @property
    def selected(self) -> list[Result]:
        """Return the result that actions are about."""
        return [self.navigator.result]

    @property
    def prompts(self) -> Collection[str | None]:
        """Return the ids of the system prompts of the cases that were read."""
        return self.navigator.cases.prompts

    def prompt_name(self, _result: Result) -> str:
        """Return the name of the system prompt, when the case has several."""
        return self.navigator.case.prompt

    @property
    def session(self) -> str | None:
        """Return the id of the answer that is shown; None when there is none."""
        return self.navigator.session

    # --- reading

    def reload(self) -> None:
        """Read again; the case may have other labels, and in the workspace answers, by now."""
        cases = self.navigator.cases

        def read() -> Cases:
            if cases.run is None:
                return self._read_listed(None)
            return replace(cases, labels=self.source.labels())

        def show(cases: Cases) -> None:
            self.navigator.renew(cases)
            self.read(stay=True)

        self.fetch(read, show, group="cases")

    def refresh_ages(self) -> None:
        """Read the shown answer again, which says how long ago it was given and judged."""
        if self._texts is not None:
            self.read(stay=True, is_noted=False)

    def read(self, *, stay: bool = False, is_noted: bool = True) -> None:
        """Read what is to be shown; until it is there only the place is.

        The title says so where it `is_noted`.
        """
        place = self.navigator.place
        self._show_title(reading=is_noted)
        if not stay:
            self._texts = None
            head = head_lines(self.navigator)
            self._show_lines([*head, *text_lines("reading …", "faint")], ())
        self.fetch(self._reading(), lambda texts: self._show(place, texts, stay=stay))

    def _reading(self) -> Callable[[], AnswerTexts]:
        """Return what reads the answer that is to be shown, and the one beside it."""
        place, source = copy(self.navigator), self.source
        run, beside = place.cases.run, place.beside
        shows_images = not self.app.no_color and self.size.width > IMAGE_WIDTH
        hint = self.with_keys(MISSING if run is None else _MISSING_THEN)

        def read() -> AnswerTexts:
            view = source.answer(place.result, place.session, run, is_chosen=place.is_chosen)
            place.attempt = attempt_of(view, place.result)
            if beside is None:
                files = render_text_files(view, source.files_of_test)
                files |= render_images(view, source.files_of_test) if shows_images else {}
                return answer_texts(place, view, files, hint)
            session = beside.sessions[place.attempt_beside] if beside.sessions else None
            other = source.answer(beside, session, run, is_chosen=True)
            return compared_texts(place, beside, view, other)

        return read

    def _read_listed(self, run: str | None) -> Cases:
        """Return the cases of a run; of many only those that the reader can go to."""
        return self.source.cases_at(run, {(row.file, row.row) for row in self.navigator.listed})

    def _show(self, place: tuple[object, ...], texts: AnswerTexts, *, stay: bool) -> None:
        if not self.navigator.note_shown(place, texts.view.id):
            return
        if stay and self._texts and not texts.other:  # the explanation stays until it is read again
            texts = replace(texts, explained=self._texts.explained)
        self._texts = texts
        self._show_texts(stay=stay)
        self._show_title()
        self.look_for_newer(self.navigator.cases.run, self.navigator.result)
        if self.navigator.other is None:
            self._add_explanation(texts)

    def open_newer(self, newer: str) -> None:
        """Show the answer in a newer run; if that lacks the case, the cases of that run."""

        def show(cases: Cases) -> None:
            if self.navigator.has_case(cases):
                self.navigator.renew(cases)
                self.read()
            else:
                self.browser.open("cases", newer)

        self.fetch(lambda: self._read_listed(newer), show, group="cases")

    def _add_explanation(self, texts: AnswerTexts) -> None:
        """Read the explanation in a worker, then show the texts with it below the verdict.

        Nothing is shown when the reader has moved on, or when the explanation cannot be read.
        """
        navigator, location = self.navigator, self.source.location
        place, result, run = navigator.place, navigator.result, navigator.cases.run
        cells, labels = navigator.results_of_case, navigator.cases.labels

        def read() -> VerdictExplanation | None:
            from evalstore.results.answer.verdict_explanation import explain_result

            with suppress(EvalstoreError):  # the page of the answer is shown without it
                return explain_result(location, result, run, view=texts.view, cells=cells)
            return None

        def add(explanation: VerdictExplanation | None) -> None:
            if explanation and place == navigator.place:
                now = time.time_ns() // 1000
                sections = explanation_sections(explanation, now, SIGNS)
                others = [*other_lines(explanation, SIGNS, labels)]
                lines: list[StyledLine] = []
                for title, section in [*sections, *([(OTHERS, others)] if others else [])]:
                    lines += [BLANK, heading(title)]
                    lines += [StyledLine(it.spans, max(0, it.indent - 2)) for it in section]
                self._texts = replace(texts, explained=lines)
                self._show_texts(stay=True)

        self.fetch(read, add, group="explanation")

    def _show_title(self, *, reading: bool = False) -> None:
        self.set_title(*answer_title(self.navigator, "reading …" if reading else ""))

    def show_problem(self, problem: EvalstoreError) -> None:
        """Say what went wrong, and that nothing is read any more."""
        super().show_problem(problem)
        self._show_title()

    # --- the texts: one below the other, or in two columns

    @property
    def _is_split(self) -> bool:
        """Return whether one answer has two columns: the conversation, and the verdicts on it."""
        return self.navigator.other is None and self.size.width >= _SPLIT

    @on(events.Resize)
    @on(events.ScreenResume)
    def fit_texts(self) -> None:
        """Show the texts in as many columns as there is room for."""
        is_double = self._is_split or self.navigator.other is not None
        if self.query_one("#other").display != is_double:
            self._show_texts(stay=True)

    @property
    def panel_titles(self) -> Mapping[str, str]:
        """Return the names of two candidates, or those of the columns; one text has none."""
        other = self.navigator.other
        if other:
            return {"text": safe(self.navigator.model), "other": safe(other)}
        return {"text": "Answer", "other": "Verdicts"} if self._is_split else {}

    def _show_texts(self, *, stay: bool) -> None:
        texts = self._texts
        if texts is None:
            return
        first, written = texts.begin(is_rendered=self._is_rendered), texts.begin(is_rendered=False)
        if self._is_split:
            self._show_lines(first, texts.rest[1:], stay=stay, written=written)
        else:
            others, asked, rest = texts.other, texts.asked, texts.rest
            self._show_lines(
                [*first, *rest], others, stay=stay, written=[*written, *rest], asked=asked
            )

    def _show_lines(
        self,
        lines: Sequence[StyledLine],
        others: Sequence[StyledLine],
        *,
        stay: bool = False,
        written: Sequence[StyledLine] | None = None,
        asked: Sequence[StyledLine] = (),
    ) -> None:
        above = self.query_one("#asked", TextView)
        above.display = bool(asked)
        above.show(asked)
        text, other = self.query_one("#text", TextView), self.query_one("#other", TextView)
        text.show(lines, stay=stay, written=written)
        other.display = self._is_split or self.navigator.other is not None
        other.show(others, stay=stay)
        is_left = self._beside is not None and self.navigator.other is None
        self._beside = self.navigator.other
        if other.has_focus and (is_left or not other.display):
            text.focus()
        for view in (text, other):
            view.set_class(other.display, "panel")
        self.set_class(self._is_split, "-split")
        self.show_panels()

    # --- keys

    def action_go(self, what: str, by: int) -> None:
        """Show the next candidate, case, failure or answer to the case, or the one before.

        What is `beside` the answer is that of the next candidate; after the last, nothing.
        """
        steps: Mapping[str, tuple[Callable[[int], bool], str]] = {
            "beside": (lambda _: self.navigator.next_beside(), "no other candidate has this case"),
            "candidate": (self.navigator.to_candidate, "no other candidate has this case"),
            "case": (self.navigator.to_case, f"this is the {'last' if by > 0 else 'first'} case"),
            "failure": (self.navigator.to_failure, "no listed case failed"),
            "attempt": (self.navigator.to_attempt, "no other answer"),
        }
        step, otherwise = steps[what]
        if step(by):
            self.read()
        else:
            self.notify(otherwise, markup=False)

    def action_markdown(self) -> None:
        """Show the answer as it is written, or rendered again."""
        texts = self._texts
        if self.navigator.other:
            self.notify("answers side by side are shown as they are written", markup=False)
        elif texts and texts.is_rendered:
            self._is_rendered = not self._is_rendered
            self._show_texts(stay=True)
        elif texts:
            is_long = len(texts.view.answer) > LONGEST
            why = "is too long to be rendered" if is_long else "is not Markdown"
            self.notify(f"the answer {why}", markup=False)

    @property
    def copy_text(self) -> tuple[str, str]:
        """Return the answer as it is written."""
        return self._texts.view.answer if self._texts else "", "the answer"

    @property
    def exported(self) -> FileTexts:
        """Return the answer; with another one beside it both texts."""
        if self.navigator.other or self._texts is None:
            ids = ("#asked", "#text", "#other")
            sides = (self.query_one(id, TextView).indented_text for id in ids)
            return text_files("\n\n".join(sides).rstrip())
        return text_files(indented_text(self._texts.lines))

    def action_versions(self) -> None:
        """Show the versions of this test."""
        result = self.navigator.result
        self.browser.open("versions", result.file, result.row, result.model)

    @property
    def footer_words(self) -> Mapping[str, str]:
        """Return that the key that leaves removes the other answer first, if there is one."""
        return {"page.back": "One answer"} if self.navigator.other else {}

    def action_back(self) -> None:
        """Leave the other answer first, then the page; the list below follows to the case."""
        if self.navigator.other:
            self.navigator.other = None
            self.read()
            return
        below = self.app.screen_stack[-2]
        if isinstance(below, Page):
            below.highlight(self.navigator.case, self.navigator.model)
        super().action_back()

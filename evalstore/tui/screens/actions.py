"""What a person can do on a page: label, judge again, run, edit, copy, save."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from evalstore.display import plural, safe
from evalstore.errors import EvalstoreError
from evalstore.tui.editor import edit
from evalstore.tui.render.export import ExportedTable, Shown, forms, name_for, save
from evalstore.tui.render.run import words_of
from evalstore.tui.render.verdicts import verdict
from evalstore.tui.screens.base import Page
from evalstore.tui.screens.dialogs import PromptDialog
from evalstore.tui.screens.run import PlanPage
from evalstore.tui.state.verdict_order import counted
from evalstore.tui.widgets.grid import Grid
from evalstore.tui.widgets.text_view import TextView

if TYPE_CHECKING:
    from evalstore.operations.label import LabelReport
    from evalstore.values import Result, Verdict, Word

_SHOWN = 80
"""Characters of what is copied that are shown."""
_TERMINALS_TAKE = 70_000
"""Characters; some terminals refuse to copy more."""


@dataclass(frozen=True, slots=True, eq=False)
class LabelRequest:
    """What a person says of answers."""

    title: str
    verdict: Word
    results: list[Result]
    session: str | None
    """Of the results, the answer that alone is meant."""


class ActionsPage(Page):
    """A page from which things can be run, copied and saved."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("R", "run", "Run pending work", show=False, id="page.run"),
        Binding("y", "copy", "Copy", show=False, id="page.copy"),
        Binding("o", "save", "Save view", show=False, id="page.save"),
        Binding("w", "status", "Pending work", show=False, id="history.status"),
    ]
    saved_as = "page"
    """A word for the name of a file."""

    def complain(self, problem: EvalstoreError | str) -> None:
        """Say in passing that something did not work."""
        words = problem if isinstance(problem, str) else words_of(problem)
        self.notify(words, severity="warning", markup=False, timeout=10)

    # --- run

    def action_run(self) -> None:
        """Show what a run would do; a run that is under way is shown instead."""
        if self.browser.runs.is_going:
            self.browser.runs.show()
        else:
            self.app.push_screen(PlanPage(self.source.all_that_lacks))

    def action_status(self) -> None:
        """Show the pending work."""
        self.browser.show_status()

    # --- copy

    @property
    def copied(self) -> tuple[str, str]:
        """What `y` copies of the highlighted line, and what that is called."""
        return "", ""

    def action_copy(self) -> None:
        """Copy the text that is being read, or the id of the highlighted line."""
        if isinstance(self.focused, TextView):
            self.copy("the text", self.focused.text)
        else:
            text, what = self.copied
            self.copy(what, text)

    def copy(self, what: str, text: str) -> None:
        """Give a text to the terminal's clipboard, and say so."""
        if not text:
            self.complain("there is nothing to copy here")
            return
        self.app.copy_to_clipboard(text.encode("utf-8", "backslashreplace").decode())
        is_short = len(text) <= _SHOWN and "\n" not in text
        words = f"copied {what}: {safe(text) if is_short else plural(len(text), 'character')}"
        if len(text) > _TERMINALS_TAKE:
            words += self.with_keys(
                "\nSome terminals refuse texts of this size; {page.save} writes a file."
            )
        self.notify(words, markup=False)

    # --- save

    @property
    def shown(self) -> Shown:
        """The text that is being read, else the table, else all texts."""
        if isinstance(self.focused, TextView):
            return self.focused.laid_out
        grids = [one for one in self.query(Grid) if one.display]
        if grids:
            grid = self.focused if isinstance(self.focused, Grid) else grids[0]
            rows = map(grid.texts, range(grid.row_count))
            return ExportedTable(grid.titles, [row for row in rows if row])
        return "\n\n".join(view.laid_out for view in self.query(TextView) if view.display)

    def action_save(self) -> None:
        """Ask for a name, and write what is shown into a new file."""
        shown = self.shown
        self.app.push_screen(
            PromptDialog(
                "Save view as",
                f"{', '.join(forms(shown))}  Enter to save, Escape to cancel",
                text=name_for(self.saved_as, shown),
                do=lambda name: self._save(shown, name),
            )
        )

    def _save(self, shown: Shown, name: str) -> None:
        path = save(Path.cwd(), name, shown)
        self.notify(f"written: {path}", markup=False, timeout=10)


class CaseActionsPage(ActionsPage):
    """A page on which answers can be labelled, judged again, and their files edited."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "label('pass')", "Label pass", show=False, id="case.pass"),
        Binding("f", "label('fail')", "Label fail", show=False, id="case.fail"),
        Binding("u", "unlabel", "Remove label", show=False, id="case.unlabel"),
        Binding("J", "judge_again", "Judge again", show=False, id="case.judge"),
        Binding("e", "edit", "Edit the file", show=False, id="case.edit"),
        Binding("Y", "copy_answer", "Copy the answer", show=False, id="case.copy_answer"),
    ]

    @property
    def chosen(self) -> list[Result]:
        """What is labelled or judged again: the marked cases, or the one under the cursor."""
        return []

    def prompt_of(self, _result: Result) -> str:
        """The name of the system prompt of one of these, when its case has several."""
        return ""

    @property
    def session(self) -> str | None:
        """Of what is chosen, the answer that alone is labelled; None: all of them are."""
        return None

    @property
    def place(self) -> tuple[str, int | None] | None:
        """The file that is highlighted, and perhaps a line of it."""
        chosen = self.chosen
        return (chosen[0].file, None) if chosen else None

    # --- label

    @property
    def _labelled(self) -> list[Result]:
        """What of it can have a label; where there is nothing, that is said."""
        results = [result for result in self.chosen if result.sessions and result.evaluation]
        if not results:
            self.complain(
                "Nothing here can be labelled: there is no answer yet, or nothing judges the case."
            )
        return results

    def action_label(self, verdict: Verdict) -> None:
        """Ask for a note, then label what is chosen."""
        results = self._labelled
        if not results:
            return
        first, count = results[0], sum(len(result.sessions) for result in results)
        if len(results) == 1:
            prompt = self.prompt_of(first)
            parts = (first.file, first.row, f"({prompt})" if prompt else "", first.model)
            what = " ".join(part for part in parts if part)
        else:
            what = f"{plural(count, 'answer')} of {first.model}"
        said = LabelRequest(f"{verdict}: {what}", verdict, results, self.session)
        if len(results) > 1:
            self._ask_why(said)
            return
        window = self._ask_why(said, waits=True)

        def fill(note: str) -> None:
            window.call_later(window.fill, note)

        self.fetch(lambda: self._read_note(first, said.session), fill, group="note")

    def _ask_why(self, said: LabelRequest, note: str = "", *, waits: bool = False) -> PromptDialog:
        window = PromptDialog(
            said.title,
            "Enter to label (the note is optional), Escape to cancel",
            text=note,
            placeholder="why",
            waits=waits,
        )

        def take(note: str | None) -> None:
            if note is not None:
                self._label(said, note.strip())

        self.app.push_screen(window, take)
        return window

    def _read_note(self, result: Result, session: str | None) -> str:
        """What the person has noted with the label that it has; what is wrong is told later."""
        try:
            return self.source.note(result, session)
        except EvalstoreError:
            return ""

    def action_unlabel(self) -> None:
        """Take back what this person has said of what is chosen."""
        results = self._labelled
        if results:
            self._label(LabelRequest("taking labels back", "none", results, self.session), "")

    def _label(self, said: LabelRequest, note: str) -> None:
        """Store it; when that fails it is asked again, and told at the end if nobody saw that."""
        lost = self.browser.lost

        def write() -> list[LabelReport] | EvalstoreError:
            try:
                return self.source.label(said.results, said.verdict, note, said.session)
            except EvalstoreError as problem:
                lost.append(f"not stored: {said.title}: {problem}")
                return problem

        def show(found: list[LabelReport] | EvalstoreError) -> None:
            if not isinstance(found, EvalstoreError):
                self._show_labelled(found)
                return
            lost.clear()
            self.complain(f"not stored: {said.title}\n{words_of(found)}")
            if said.verdict != "none":
                self._ask_why(said, note)

        self.fetch(write, show, group=f"label {id(said)}")

    def _show_labelled(self, labels: list[LabelReport]) -> None:
        if not labels:
            self.complain("You have no label here. The labels of other people are kept.")
            return
        self.notify(self._tell_labelled(labels), markup=False)
        self.browser.mark_stale(self)
        self.reload()

    def _tell_labelled(self, labels: list[LabelReport]) -> str:
        """What was said, and what the cases have come to by now."""
        one = labels[0]
        what = "label removed" if one.verdict == "none" else one.verdict
        count = sum(len(label.subject.sessions) for label in labels)
        lines = [f"{what}: {plural(count, 'answer')}, by {safe(one.person)}"]
        now = {label.subject.cell: label.now for label in labels}
        words = Counter(word for word in now.values() if word)
        if words.keys() - {one.verdict}:
            only = next(iter(words)) if len(now) == 1 else ""
            lines.append(f"now: {verdict(only).text if only else counted(words)}")
        if words["pending"]:
            lines.append(f"{self.browser.key_of('page.run')} runs what is missing.")
        gone = [word for word in now.values() if word is None]
        if gone and len(now) == 1:
            lines.append("The workspace no longer has the case as it was: there it does not count.")
        elif gone:
            cases = plural(len(gone), "case")
            lines.append(
                f"The workspace no longer has {cases} as they were: there it does not count."
            )
        return "\n".join(lines)

    # --- judge again

    def action_judge_again(self) -> None:
        """Show what judging again would do."""
        if self.browser.runs.refuse():
            return
        results = self.chosen
        if not results:
            self.complain("Nothing here can be judged again: the candidate has no such case.")
            return
        self.app.push_screen(PlanPage(lambda: self.source.again(results)))

    # --- edit

    def action_edit(self) -> None:
        """Open the highlighted file in the editor, then say what the edit means."""
        place = self.place
        if place is None:
            self.complain("There is no file here.")
            return
        self.edit(*place)

    def edit(self, file: str, line: int | None) -> None:
        """Open a file in the editor, then say what the edit means."""
        self.fetch(
            lambda: self.source.path_of(file),
            lambda path: self._edit(file, path, line),
            group="edit",
        )

    def _edit(self, file: str, path: Path, line: int | None) -> None:
        try:
            has_changed = edit(self.app, path, line)
        except EvalstoreError as problem:
            self.complain(problem)
            return
        if not has_changed:
            self.notify(f"{file} is as it was.", markup=False)
            return
        self.reload()
        self.app.push_screen(
            PlanPage(
                lambda: self.source.of_file(file), edit=lambda place: self.edit(file, place or line)
            )
        )

    # --- copy

    def action_copy_answer(self) -> None:
        """Copy what was answered."""
        found = (
            [self.session]
            if self.session
            else [id for result in self.chosen[:1] for id in result.sessions]
        )
        sessions = list(dict.fromkeys(found))
        self.fetch(
            lambda: self.source.answers(sessions),
            lambda texts: self.copy("the answer", "\n\n".join(texts.values())),
            group="copy",
        )

"""Labels answers from a page: asks for a note, stores the label, and shows its effect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from evalstore.core.display import case_name, plural, safe
from evalstore.core.errors import EvalstoreError
from evalstore.interfaces.tui.render.documents.reading import problem_text
from evalstore.interfaces.tui.render.verdicts import verdict_cell
from evalstore.interfaces.tui.screens.dialogs.dialogs import PromptDialog
from evalstore.results.verdict_order import verdict_counts

if TYPE_CHECKING:
    from evalstore.core.results import Result
    from evalstore.interfaces.tui.screens.base import Page
    from evalstore.results.labels.add_labels import LabelReport

LabelWord = Literal["pass", "fail", "none"]


class Labelling:
    """A person's verdict on results that a page shows."""

    def __init__(self, page: Page, results: Sequence[Result], session: str | None) -> None:
        """Take the results that can have a label; with a session, that answer alone."""
        self._page = page
        self._results = [result for result in results if result.sessions and result.evaluation]
        self._session = session
        self._word: LabelWord = "none"
        self._title = "removing labels"

    @property
    def _can_label(self) -> bool:
        """Return whether anything can be labelled; otherwise a message says so."""
        if not self._results:
            self._page.warn(
                "Nothing here can be labelled: no answer yet, or nothing judges the case."
            )
        return bool(self._results)

    def ask(self, word: LabelWord, prompt_name: Callable[[Result], str]) -> None:
        """Ask for a note, then store the label; the note of a label that is there can be edited."""
        if not self._can_label:
            return
        self._word, self._title = word, f"{word}: {self._subject(prompt_name)}"
        if len(self._results) > 1:
            self._ask_for_note()
            return
        window = self._ask_for_note(waits=True)

        def fill(note: str) -> None:
            window.call_later(window.fill, note)

        self._page.fetch(self._read_note, fill, group="note")

    def remove(self) -> None:
        """Remove this person's labels."""
        if self._can_label:
            self._store("")

    def _subject(self, prompt_name: Callable[[Result], str]) -> str:
        first = self._results[0]
        if len(self._results) > 1:
            count = sum(len(result.sessions) for result in self._results)
            return f"{plural(count, 'answer')} of {first.model}"
        return f"{case_name(first.file, first.row, prompt_name(first))} {first.model}"

    def _ask_for_note(self, note: str = "", *, waits: bool = False) -> PromptDialog:
        window = PromptDialog(
            self._title,
            "Enter to label (the note is optional), Escape to cancel",
            text=note,
            placeholder="why",
            waits=waits,
        )

        def store(note: str | None) -> None:
            if note is not None:
                self._store(note.strip())

        self._page.app.push_screen(window, store)
        return window

    def _read_note(self) -> str:
        """Read the note of the person's label; empty on a problem, which storing then shows."""
        try:
            return self._page.source.note(self._results[0], self._session)
        except EvalstoreError:
            return ""

    def _store(self, note: str) -> None:
        """Store the label; on a problem ask again, and report at the end if nobody saw that."""
        source, unsaved = self._page.source, self._page.browser.unsaved_labels

        def write() -> list[LabelReport] | EvalstoreError:
            try:
                return source.workspace.label(
                    self._results, self._word, note=note, session=self._session
                )
            except EvalstoreError as problem:
                unsaved.append(f"not stored: {self._title}: {problem}")
                return problem

        def show(labels: list[LabelReport] | EvalstoreError) -> None:
            if not isinstance(labels, EvalstoreError):
                self._show_stored(labels)
                return
            unsaved.clear()
            self._page.warn(f"not stored: {self._title}\n{problem_text(labels)}")
            if self._word != "none":
                self._ask_for_note(note)

        self._page.fetch(write, show, group=f"label {id(self)}", writes=True)

    def _show_stored(self, labels: Sequence[LabelReport]) -> None:
        page = self._page
        if not labels:
            page.warn("You have no label here. The labels of other people are kept.")
            return
        page.notify(label_message(labels, page.browser.key_of("page.run")), markup=False)
        page.browser.mark_stale(page)
        page.reload()


def label_message(labels: Sequence[LabelReport], run_key: str) -> str:
    """Describe the labels that were stored, and the current verdicts of their cases."""
    first = labels[0]
    name = "label removed" if first.verdict == "none" else first.verdict
    count = sum(len(label.subject.sessions) for label in labels)
    lines = [f"{name}: {plural(count, 'answer')}, by {safe(first.person)}"]
    now = {label.subject.cell: label.now for label in labels}
    words = Counter(word for word in now.values() if word)
    if words.keys() - {first.verdict}:
        only = next(iter(words)) if len(now) == 1 else ""
        lines.append(f"now: {verdict_cell(only).text if only else verdict_counts(words)}")
    if words["pending"]:
        lines.append(f"{run_key} runs pending work.")
    gone = [word for word in now.values() if word is None]
    if gone and len(now) == 1:
        lines.append("The case has changed since: in the workspace the label does not count.")
    elif gone:
        cases = plural(len(gone), "case")
        lines.append(f"{cases} changed since: in the workspace these labels do not count.")
    return "\n".join(lines)

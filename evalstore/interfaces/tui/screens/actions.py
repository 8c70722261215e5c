"""What a person can do on a page: label, judge again, run, edit, copy, save."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import ClassVar

from textual.binding import Binding, BindingType

from evalstore.core.display import plural, safe
from evalstore.core.results import Result
from evalstore.interfaces.tui.render.export import (
    Exported,
    ExportedTable,
    default_name,
    save,
    suffixes,
)
from evalstore.interfaces.tui.screens.dialogs.dialogs import PromptDialog
from evalstore.interfaces.tui.screens.dialogs.editing import edit_place
from evalstore.interfaces.tui.screens.dialogs.labelling import Labelling, LabelWord
from evalstore.interfaces.tui.screens.panels import PanelPage
from evalstore.interfaces.tui.widgets.grid import Grid
from evalstore.interfaces.tui.widgets.text_view import TextView
from evalstore.results.table.editable_files import EditPlace

_QUOTED = 80
"""Characters of a copied text that the message about it quotes."""
_TERMINALS_TAKE = 70_000
"""Characters; some terminals refuse to copy more."""


class ActionsPage(PanelPage):
    """A page from which things can be run, copied and saved."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("R", "run", "Run pending work", show=False, id="page.run"),
        Binding("y", "copy", "Copy", show=False, id="page.copy"),
        Binding("o", "save", "Save view", show=False, id="page.save"),
        Binding("w", "status", "Pending work", show=False, id="history.status"),
        Binding("F", "search", "Search all texts", show=False, id="page.search"),
    ]
    export_name = "page"
    """A word for the name of a file."""

    def go_on_reading(self) -> None:
        """Read what has waited for a plan above the page."""

    # --- run

    def action_run(self) -> None:
        """Show what a run would do; a run in progress is shown instead."""
        if self.browser.runs.is_running:
            self.browser.runs.show()
        else:
            self.browser.show_plan(self.source.missing)

    def action_status(self) -> None:
        """Show the pending work."""
        self.browser.show_status()

    def action_search(self) -> None:
        """Search answers, feedback, tests and instructions of all runs."""
        self.browser.show_search(self.search_words)

    # --- copy

    @property
    def copy_text(self) -> tuple[str, str]:
        """Return the text that `y` copies for the highlighted line, and a name for it."""
        return "", ""

    def action_copy(self) -> None:
        """Copy the text that has the focus, or the id of the highlighted line."""
        if isinstance(self.focused, TextView):
            self.copy(self.focused.text, "the text")
        else:
            self.copy(*self.copy_text)

    def copy(self, text: str, name: str) -> None:
        """Give a text to the terminal's clipboard, with a message."""
        if not text:
            self.warn("there is nothing to copy here")
            return
        self.app.copy_to_clipboard(text.encode("utf-8", "backslashreplace").decode())
        is_short = len(text) <= _QUOTED and "\n" not in text
        message = f"copied {name}: {safe(text) if is_short else plural(len(text), 'character')}"
        if len(text) > _TERMINALS_TAKE:
            message += self.with_keys(
                "\nSome terminals refuse texts of this size; {page.save} writes a file."
            )
        self.notify(message, markup=False)

    # --- save

    @property
    def exported(self) -> Exported:
        """Return the text that has the focus, else the table, else all texts."""
        if isinstance(self.focused, TextView):
            return self.focused.indented_text
        grids = [grid for grid in self.query(Grid) if grid.display]
        if grids:
            grid = self.focused if isinstance(self.focused, Grid) else grids[0]
            rows = map(grid.texts, range(grid.row_count))
            return ExportedTable(grid.titles, [row for row in rows if row])
        return "\n\n".join(view.indented_text for view in self.query(TextView) if view.display)

    def action_save(self) -> None:
        """Ask for a name, and write what is shown into a new file."""
        exported = self.exported
        self.app.push_screen(
            PromptDialog(
                "Save view as",
                f"{', '.join(suffixes(exported))}  Enter to save, Escape to cancel",
                text=default_name(self.export_name, exported),
                do=lambda name: self._save(exported, name),
            )
        )

    def _save(self, exported: Exported, name: str) -> None:
        path = save(Path.cwd(), name, exported)
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
    def selected(self) -> list[Result]:
        """Return the results that actions are about: marked ones, or that under the cursor."""
        return []

    @property
    def session(self) -> str | None:
        """Return the session of the only answer that is labelled; None: all of those selected."""
        return None

    def prompt_name(self, _result: Result) -> str:
        """Return the name of the system prompt of a selected result, when its case has several."""
        return ""

    @property
    def edited_place(self) -> EditPlace | None:
        """Return the highlighted case or file that is edited; None: there is none."""
        for result in self.selected[:1]:
            return EditPlace(result.file, row=result.row, prompt=result.prompt)
        return None

    # --- label

    def action_label(self, verdict: LabelWord) -> None:
        """Ask for a note, then label the selected results."""
        Labelling(self, self.selected, self.session).ask(verdict, self.prompt_name)

    def action_unlabel(self) -> None:
        """Remove this person's labels on the selected results."""
        Labelling(self, self.selected, self.session).remove()

    # --- judge again, edit, copy

    def action_judge_again(self) -> None:
        """Show what judging again would do."""
        if self.browser.runs.refuse_second():
            return
        results = self.selected
        if results:
            self.browser.show_plan(partial(self.source.again, results))
        else:
            self.warn("Nothing here can be judged again: the candidate has no such case.")

    def action_edit(self) -> None:
        """Open a file of the highlighted case in the editor, then show what the edit means."""
        place = self.edited_place
        if place is None:
            self.warn("No file here.")
        else:
            edit_place(self, place)

    def action_copy_answer(self) -> None:
        """Copy the answers of the selected result."""
        ids = (
            [self.session]
            if self.session
            else [id for result in self.selected[:1] for id in result.sessions]
        )
        sessions = list(dict.fromkeys(ids))
        self.fetch(
            lambda: self.source.answers(sessions),
            lambda texts: self.copy("\n\n".join(texts.values()), "the answer"),
            group="copy",
        )

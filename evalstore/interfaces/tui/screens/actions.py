"""What a person can do on a page: label, run, edit, copy, save; and what it shows of other runs."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal

from textual.app import App, ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from evalstore.core.display import case_name, columns_of, plural, safe, short, verdict_counts
from evalstore.core.errors import EvalstoreError
from evalstore.core.runs import Run
from evalstore.core.values import Result
from evalstore.interfaces.tui.grid import Grid
from evalstore.interfaces.tui.render.answer import FileTexts, save, table_files, text_files
from evalstore.interfaces.tui.render.verdicts import problem_text, verdict_cell
from evalstore.interfaces.tui.screens.base import Page, PanelPage
from evalstore.interfaces.tui.screens.dialogs import Choice, PromptDialog
from evalstore.interfaces.tui.text_view import TextView
from evalstore.planning.options import is_partial
from evalstore.results.labels import LabelReport
from evalstore.results.names import EditableFile, EditPlace, find_editable_files
from evalstore.runs.status.status_text import in_progress_text
from evalstore.store.shared_runs import RunInProgress
from evalstore.workspace.git.status import name_of_user

NO_EARLIER_RUN = "no earlier run to compare with"
"""The message of the comparison of the first run with the one before it."""
LabelWord = Literal["pass", "fail", "none"]


def label_message(labels: Sequence[LabelReport], run_key: str) -> str:
    """Describe the labels that were stored, and the current verdicts of their cases."""
    first = labels[0]
    name = "label removed" if first.verdict == "none" else first.verdict
    count = sum(len(label.subject.sessions) for label in labels)
    lines = [f"{name}: {plural(count, 'answer')}, by {safe(first.person)}"]
    now = {(it.file, it.row, it.subject.prompt, it.model): it.now for it in labels}
    words = Counter(word for word in now.values() if word)
    if words.keys() - {first.verdict}:
        only = next(iter(words)) if len(now) == 1 else ""
        lines.append(f"now: {verdict_cell(only).text if only else verdict_counts(words)}")
    if words["pending"]:
        lines.append(f"{run_key} runs pending work.")
    if gone := sum(word is None for word in now.values()):
        labelled = "its label does" if gone == 1 else "their labels do"
        lines.append(
            f"{plural(gone, 'case')} changed since: {labelled} not count in the workspace."
        )
    return "\n".join(lines)


# --- what a person can do on a page


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
            self.browser.open("plan", self.source.missing)

    def action_status(self) -> None:
        """Show the pending work."""
        self.browser.open("pending")

    def action_search(self) -> None:
        """Search answers, feedback, tests and instructions of all runs."""
        self.browser.open("search", self.search_words)

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
    def exported(self) -> FileTexts:
        """Return the text that has the focus, else the table, else all texts."""
        if isinstance(self.focused, TextView):
            return text_files(self.focused.indented_text)
        grids = [grid for grid in self.query(Grid) if grid.display]
        if grids:
            grid = self.focused if isinstance(self.focused, Grid) else grids[0]
            rows = map(grid.texts, range(grid.row_count))
            return table_files(grid.titles, [row for row in rows if row])
        views = (view.indented_text for view in self.query(TextView) if view.display)
        return text_files("\n\n".join(views))

    def action_save(self) -> None:
        """Ask for a name, and write what is shown into a new file."""
        files, now = self.exported, time.strftime("%Y%m%d-%H%M%S")
        self.app.push_screen(
            PromptDialog(
                "Save view as",
                f"{', '.join(files)}  Enter to save, Escape to cancel",
                text=f"evalstore-{self.export_name}-{now}{next(iter(files))}",
                do=lambda name: self.notify(
                    f"written: {save(Path.cwd(), name, files)}", markup=False, timeout=10
                ),
            )
        )


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

    @property
    def prompts(self) -> Collection[str | None]:
        """Return the ids of the system prompts of the side from which results are selected."""
        return ()

    def prompt_name(self, _result: Result) -> str:
        """Return the name of the system prompt of a selected result, when its case has several."""
        return ""

    @property
    def edited_place(self) -> EditPlace | None:
        """Return the highlighted case or file that is edited; None: there is none."""
        for result in self.selected[:1]:
            return EditPlace(result.file, prompt=result.prompt)
        return None

    # --- label

    def action_label(self, word: LabelWord) -> None:
        """Ask for a note, unless labels are removed, then store a person's verdict.

        It is on the selected results that can have a label; with a session, on that answer alone.
        The note of the person's last label on the only result can be edited. On a problem it is
        asked again, and reported at the end if nobody saw that.
        """
        results = [it for it in self.selected if it.sessions and it.evaluation]
        source, session, unsaved = self.source, self.session, self.browser.unsaved_labels
        if not results:
            self.warn("Nothing here can be labelled: no answer yet, or nothing judges the case.")
            return
        first, title = results[0], "removing labels"
        if word != "none":
            named = case_name(first.file, first.row, self.prompt_name(first))
            if len(results) > 1:
                named = f"{plural(sum(len(each.sessions) for each in results), 'answer')} of"
            title = f"{word}: {named} {first.model}"

        def read_note() -> str:
            with suppress(EvalstoreError):  # storing says what is wrong
                name = name_of_user(source.location.directory)
                labels = source.labels().current(first, session)
                own = [(it.at, it.note) for it in labels if it.person == name]
                return safe(" ".join(max(own, default=(0, ""))[1].split()))
            return ""

        def ask(note: str = "") -> PromptDialog:
            hint = "Enter to label (the note is optional), Escape to cancel"
            window = PromptDialog(title, hint, text=note, placeholder="why")
            is_answer_below = bool(self.query(Grid)) and not self.has_class("-broad")
            window.set_class(is_answer_below, "-above")
            self.app.push_screen(window, lambda note: None if note is None else store(note.strip()))
            return window

        def store(note: str) -> None:
            def write() -> list[LabelReport] | EvalstoreError:
                try:
                    return source.workspace.label(results, word, note=note, session=session)
                except EvalstoreError as problem:
                    unsaved.append(f"not stored: {title}: {problem}")
                    return problem

            def show(labels: list[LabelReport] | EvalstoreError) -> None:
                if isinstance(labels, EvalstoreError):
                    unsaved.clear()
                    self.warn(f"not stored: {title}\n{problem_text(labels)}")
                    if word != "none":
                        ask(note)
                elif labels:
                    key = self.browser.key_of("page.run")
                    self.notify(label_message(labels, key), markup=False)
                    self.browser.mark_stale(self)
                    self.reload()
                else:
                    self.warn("You have no label here. The labels of other people are kept.")

            self.fetch(write, show, group=f"label {id(results)}", writes=True)

        if word == "none":
            store("")
        elif len(results) > 1:
            ask()
        else:
            window = ask()
            window.awaits_list = True
            self.fetch(read_note, partial(window.call_later, window.fill), group="note")

    def action_unlabel(self) -> None:
        """Remove this person's labels on the selected results."""
        self.action_label("none")

    # --- judge again, edit, copy

    def action_judge_again(self) -> None:
        """Show what judging again would do."""
        if self.browser.runs.refuse_second():
            return
        results = self.selected
        if results:
            self.browser.open("plan", partial(self.source.again, results, self.prompts))
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


# --- edits a file of the workspace, then shows what the edit means


def edit_place(page: Page, place: EditPlace) -> None:
    """Open a file that decides a case in the editor, then show the plan of a run with the edit.

    Asks which file, when there are several.
    """

    def choose(files: Sequence[EditableFile]) -> None:
        places = (f"{file.path}:{file.line}" if file.line else file.path for file in files)
        names = [f"{file.kind}: {name}" for file, name in zip(files, places, strict=True)]

        def open_chosen(name: str | None) -> None:
            if name is not None:
                chosen = files[names.index(name)]
                _open(page, chosen.path, chosen.line)

        if len(names) == 1:
            open_chosen(names[0])
        else:
            page.app.push_screen(Choice("Edit", names), open_chosen)

    page.fetch(lambda: find_editable_files(page.source.location, place), choose, group="edit")


def _open(page: Page, file: str, line: int | None) -> None:
    def edit_file(path: Path) -> None:
        try:
            has_changed = edit(page.app, path, line)
        except EvalstoreError as problem:
            page.warn(problem)
            return
        if not has_changed:
            page.notify(f"{file} has not changed.", markup=False)
            return
        page.reload()
        page.browser.open(
            "plan",
            lambda: page.source.missing(file),
            edit=lambda problem_line: _open(page, file, problem_line or line),
        )

    page.fetch(lambda: page.source.workspace.root / file, edit_file, group="edit")


# --- opens a file in the user's editor, while the browser steps aside


_USUAL = ("vi", "nano")
"""Tried when no variable names an editor."""
_PLUS = ("vi", "vim", "nvim", "view", "nano", "emacs", "emacsclient", "micro", "kak", "joe", "ne")
"""These take `+12` for a line."""
_GOTO = ("code", "codium", "cursor")
"""These take `--goto file:12`."""


def editor_command(environment: Mapping[str, str], path: Path, line: int | None) -> list[str]:
    """Return the command that opens the file; raises `EvalstoreError` without an editor."""
    folders = environment.get("PATH")
    usual = next((name for name in _USUAL if shutil.which(name, path=folders)), None)
    for variable in ("VISUAL", "EDITOR"):
        if text := environment.get(variable, "").strip():
            hint = f"set {variable} to the command of an editor that is installed"
            if usual:
                hint = f"{hint}, for example: export {variable}={usual}"
            try:
                words = shlex.split(text)
            except ValueError as problem:
                raise EvalstoreError(
                    f"{variable} cannot be read as a command: {text}", hint=hint
                ) from problem
            if shutil.which(words[0], path=folders) is None:
                raise EvalstoreError(
                    f"{variable} names '{words[0]}', which is not found", hint=hint
                )
            return words + _at(words[0], path, line)
    if usual is None:
        hint = "install one, then set VISUAL or EDITOR to its command"
        raise EvalstoreError("no editor found", hint=hint)
    return [usual, *_at(usual, path, line)]


def _at(editor: str, path: Path, line: int | None) -> list[str]:
    name = Path(editor).name
    if line and name in _PLUS:
        return [f"+{line}", str(path)]
    if line and name in _GOTO:
        return ["--goto", f"{path}:{line}"]
    return [str(path)]


def edit(app: App[None], path: Path, line: int | None) -> bool:
    """Let the user edit a file; returns whether it has changed.

    Raises `EvalstoreError` when it cannot be edited here, and when the editor fails.
    """
    if not path.is_file():
        raise EvalstoreError(
            f"the workspace no longer has a file '{path.name}'",
            hint="what a run has recorded of it is still shown",
        )
    command = editor_command(os.environ, path, line)
    before = _content(path)
    try:
        with app.suspend():
            code = _wait_for(command)
    except SuspendNotSupported:
        raise EvalstoreError(
            "no editor can be opened here: the browser has no terminal of its own",
            hint=f"edit {path} in another program; w then shows what a run would do",
        ) from None
    except OSError as problem:
        raise EvalstoreError(f"'{command[0]}' cannot be started: {problem.strerror}") from problem
    if code:
        how = f"ended with exit code {code}" if code > 0 else f"was ended by signal {-code}"
        raise EvalstoreError(
            f"'{command[0]}' {how}",
            hint="w shows what a run would do with the files as they are now",
        )
    return _content(path) != before


def _wait_for(command: list[str]) -> int:
    """Run it in the terminal; Ctrl-C is for the editor and not for us."""
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        return subprocess.run(command, check=False).returncode
    finally:
        signal.signal(signal.SIGINT, before)


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes() if path.is_file() else None  # a pipe would be waited for
    except OSError:
        return None


class OtherRuns(Static):
    """The runs of other programs, a line for each; not there while there are none."""

    DEFAULT_CSS = """
    OtherRuns {
        height: auto; max-height: 3; padding: 0 1; display: none; color: $text-primary;
        text-wrap: nowrap; text-overflow: ellipsis;
    }
    .-short > OtherRuns { max-height: 1; }
    """

    class Changed(Message):
        """What is known of the runs has changed."""

    def __init__(self, runs: tuple[RunInProgress, ...]) -> None:
        super().__init__(markup=False)
        self.runs = runs
        self._texts: list[str] = []

    def on_resize(self) -> None:
        """Show them in the words that the width has room for."""
        self._draw()

    def show(self, runs: tuple[RunInProgress, ...]) -> None:
        """Show these runs."""
        was, self.runs = self.runs, runs
        self._draw()
        if [*map(in_progress_text, was)] != [*map(in_progress_text, runs)]:
            self.post_message(self.Changed())

    def on_mount(self) -> None:
        """Show the runs that were known when the page was made."""
        self._draw()

    def _draw(self) -> None:
        width, texts = self.app.size.width, []
        for run in self.runs:
            text = f"▶ {in_progress_text(run)}"
            has_room = columns_of(text) <= width - 2
            texts.append(text if has_room else f"▶ {in_progress_text(run, brief=True)}")
        self.display = bool(texts)
        if texts != self._texts:
            self._texts = texts
            self.update(Content("\n".join(texts)))


def show_other_runs(app: App[None], runs: tuple[RunInProgress, ...]) -> None:
    """Show the runs of other programs on all screens that have room for them."""
    for screen in app.screen_stack:
        for line in screen.query(OtherRuns):
            line.show(runs)


# --- that a run is newer than the one that a page shows, and the way there


class DatedPage(CaseActionsPage):
    """A page of a run, perhaps an old one, from which a key leads to a newer run."""

    DEFAULT_CSS = """
    DatedPage > .newer {
        height: 1; padding: 0 1; display: none; color: $text-warning;
        text-wrap: nowrap; text-overflow: ellipsis;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("at", "newest", "Newest run", show=False, id="case.newest")
    ]
    NEWER: ClassVar[str] = "{case.newest} shows its cases"
    """What the key does, as the line says it."""
    newer: Run | None = None
    """The newer run that the line names."""

    def compose_above(self) -> ComposeResult:
        """Lay out what is between the title and the list, first the line."""
        yield Static(classes="newer", markup=False)
        yield from super().compose_above()

    def look_for_newer(self, run: str | None, result: Result | None = None) -> None:
        """Show whether there is a newer run; with a result, one in which it is another."""
        if run is None:
            self._show_newer(None)
            return
        location = self.source.location

        def read() -> Run | None:
            from evalstore.results.flips.result_history import find_newer_run

            return find_newer_run(location, run, result)

        self.fetch(read, self._show_newer, group="newer")

    def _show_newer(self, newer: Run | None) -> None:
        self.newer = newer
        line = self.query_one(".newer", Static)
        line.display = newer is not None
        if newer:
            text = f"{'the partial ' if is_partial(newer) else ''}run {short(newer.id)} is newer"
            line.update(Content(safe(f"{text}: the key {self.with_keys(self.NEWER)}")))
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether the action is available."""
        if action == "newest":
            return self.newer is not None
        return super().check_action(action, parameters)

    def action_newest(self) -> None:
        """Show the newer run in place of this one."""
        if self.newer:
            self.open_newer(self.newer.id)

    def open_newer(self, newer: str) -> None:
        """Show a newer run in place of this one."""
        raise NotImplementedError

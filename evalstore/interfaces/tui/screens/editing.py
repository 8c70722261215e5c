"""Edits a file of the workspace from a page, then shows what the edit means."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from textual.app import App, SuspendNotSupported

from evalstore.core.errors import EvalstoreError
from evalstore.interfaces.tui.screens.base import Page
from evalstore.interfaces.tui.screens.choice import Choice
from evalstore.results.table.editable_files import EditableFile, EditPlace, find_editable_files


def edit_place(page: Page, place: EditPlace) -> None:
    """Open a file that decides a case in the editor, then show the plan of a run with the edit.

    Asks which file, when there are several.
    """
    page.fetch(
        lambda: find_editable_files(page.source.location, place),
        lambda files: _choose(page, files),
        group="edit",
    )


def _choose(page: Page, files: Sequence[EditableFile]) -> None:
    if len(files) == 1:
        _open(page, files[0].path, files[0].line)
        return
    names = [f"{file.kind}: {file.path}{f':{file.line}' if file.line else ''}" for file in files]

    def open_chosen(name: str | None) -> None:
        if name is not None:
            chosen = files[names.index(name)]
            _open(page, chosen.path, chosen.line)

    page.app.push_screen(Choice("Edit", names), open_chosen)


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
            "PlanPage",
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

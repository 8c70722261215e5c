"""Edits a file of the workspace from a page, then shows what the edit means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from evalstore.core.errors import EvalstoreError
from evalstore.interfaces.tui.editor import edit
from evalstore.interfaces.tui.screens.dialogs.choice import Choice

if TYPE_CHECKING:
    from pathlib import Path

    from evalstore.interfaces.tui.screens.base import Page
    from evalstore.results.table.edit_place import EditPlace
    from evalstore.results.table.editable_files import EditableFile


def edit_place(page: Page, place: EditPlace) -> None:
    """Open a file that decides a case in the editor, then show the plan of a run with the edit.

    Asks which file, when there are several.
    """
    page.fetch(
        lambda: page.source.editable_files(place),
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
    page.fetch(
        lambda: page.source.workspace.root / file,
        lambda path: _edit(page, file, path, line),
        group="edit",
    )


def _edit(page: Page, file: str, path: Path, line: int | None) -> None:
    try:
        has_changed = edit(page.app, path, line)
    except EvalstoreError as problem:
        page.warn(problem)
        return
    if not has_changed:
        page.notify(f"{file} is as it was.", markup=False)
        return
    page.reload()
    page.browser.show_plan(
        lambda: page.source.missing(file),
        edit=lambda problem_line: _open(page, file, problem_line or line),
    )

"""Edits a test file from a page, then shows what the edit means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.errors import EvalstoreError
from evalstore.tui.editor import edit

if TYPE_CHECKING:
    from pathlib import Path

    from evalstore.tui.screens.base import Page


def edit_file(page: Page, file: str, line: int | None) -> None:
    """Open a file in the editor, then show the plan of a run with the edited file."""
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
        edit=lambda problem_line: edit_file(page, file, problem_line or line),
    )

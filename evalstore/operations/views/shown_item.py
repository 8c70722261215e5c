"""The command `show`: finds any stored object by its id or name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.operations.show import ShownItem, show_file, show_item
from evalstore.planning.open_project import open_store
from evalstore.store.revisions import WORK, resolve

if TYPE_CHECKING:
    from evalstore.operations.views.answer import AnswerView
    from evalstore.planning.options import Location


def show(location: Location, revision: str) -> ShownItem:
    """Return a stored object for JSON; `REV:path` means the cases of a test file in that run.

    `@work` means the current workspace.

    Raises `RevisionError`.
    """
    text, colon, path = revision.partition(":")
    if text == WORK:
        from evalstore.operations import show_workspace  # plans all cases

        if colon:
            return show_workspace.show_workspace_file(location, path)
        return show_workspace.show_workspace(location)
    with open_store(location) as store:
        if colon:
            return show_file(location, store, text, path)
        kind, id = resolve(store, text)
        if kind == "session":
            from evalstore.operations.views.session_document import show_session

            return show_session(store, id)
        return show_item(location, store, kind, id)


def show_to_people(location: Location, revision: str) -> ShownItem | AnswerView:
    """Return a stored object for a terminal: the page of an answer in place of a session."""
    if ":" in revision or revision == WORK:
        return show(location, revision)
    with open_store(location) as store:
        kind, id = resolve(store, revision)
        if kind == "session":
            from evalstore.operations.views.answer import read_answer  # only for sessions

            return read_answer(location, store, id)
        return show_item(location, store, kind, id)

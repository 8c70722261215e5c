"""What `show` shows to people: a session as the page that the browser has, all else as stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.operations.show import ShownItem, show, show_item
from evalstore.planning.open_project import open_store
from evalstore.store.revisions import resolve

if TYPE_CHECKING:
    from evalstore.operations.views.answer import AnswerView
    from evalstore.planning.options import Location


def show_to_people(location: Location, revision: str) -> ShownItem | AnswerView:
    """Any thing by its id or name; raises `RevisionError` like `show`."""
    if ":" in revision:
        return show(location, revision)
    with open_store(location) as store:
        kind, id = resolve(store, revision)
        if kind == "session":
            from evalstore.operations.views.answer import read_answer  # only for sessions

            return read_answer(location, store, id)
        return show_item(location, store, kind, id)

"""A page with a line in which a filter is typed; words are searched in all texts, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on
from textual.widgets import Input
from textual.worker import get_current_worker

from evalstore.tui.screens.actions import CaseActionsPage
from evalstore.tui.state.case_query import read_query
from evalstore.tui.widgets.grid import Grid

if TYPE_CHECKING:
    from textual.timer import Timer

    from evalstore.errors import EvalstoreError
    from evalstore.tui.state.case_filter import Found, Search
    from evalstore.tui.state.case_query import Query

_PAUSE_SECONDS = 0.15
"""A search begins when nothing has been typed for so long."""


class FilterablePage(CaseActionsPage):
    """A table that is filtered as somebody types.

    Names are looked at at once. Texts are searched in a thread after a pause in typing; until
    they are found `searching` says so.
    """

    DEFAULT_CSS = """
    FilterablePage > #filter { padding: 0 1; display: none; }
    """

    def __init__(self, typed: str = "") -> None:
        super().__init__()
        self.query_typed = read_query(typed)
        self.found: Found = {}
        """In which sessions the words of the filter are."""
        self.searching = ""
        """What to say while texts are searched."""
        self._typed = typed
        self._pause: Timer | None = None

    @staticmethod
    def filter_line() -> Input:
        """Where the filter is typed."""
        hint = "words  verdict:fail,error  tag:…  model:…  file:…  -not"
        return Input(placeholder=hint, id="filter", select_on_focus=False, compact=True)

    def on_mount(self) -> None:
        """Begin with what was typed before."""
        if self._typed:
            self.filter_by(self._typed)

    # --- of the page

    @property
    def has_read(self) -> bool:
        """Whether there is something to filter."""
        return False

    def look_up(self, query: Query, search: Search) -> Found:
        """Search what the names have not; called in a thread."""
        return {}

    def show_filtered(self) -> None:
        """List what matches the filter."""

    def tell(self) -> None:
        """Say above the table what is in it."""

    # --- typing

    def filter_by(self, typed: str) -> None:
        """Filter as if this had been typed."""
        line = self.query_one("#filter", Input)
        line.value = typed
        line.display = bool(typed)

    def action_filter(self) -> None:
        """Type a filter."""
        line = self.query_one("#filter", Input)
        line.display = True
        self.set_focus(line)  # at once: what is typed next belongs to it

    @on(Input.Changed, "#filter")
    def filter_changed(self, message: Input.Changed) -> None:
        """Filter as it is typed."""
        self.query_typed = read_query(message.value)
        self.search()
        self.show_filtered()

    @on(Input.Submitted, "#filter")
    def filter_done(self) -> None:
        """Go back to the table, which stays filtered."""
        self.query_one(Grid).focus()
        self.query_one("#filter", Input).display = not self.query_typed.is_empty

    def action_back(self) -> None:
        """Take the filter away, or leave."""
        line = self.query_one("#filter", Input)
        if line.display or not self.query_typed.is_empty:
            line.value = ""
            line.display = False
            self.query_one(Grid).focus()
        else:
            super().action_back()

    # --- searching

    def search(self) -> None:
        """Search the words in answers, feedback and tests, too; what was typed last wins."""
        if not self.has_read:
            return  # when there is something to filter
        if self._pause:
            self._pause.stop()
        self.workers.cancel_group(self, "search")
        query = self.query_typed
        self.searching = "searching …" if query.words or query.without else ""
        if self.searching:
            self._pause = self.set_timer(_PAUSE_SECONDS, lambda: self._search(query))

    def _search(self, query: Query) -> None:
        def read() -> Found:
            worker = get_current_worker()

            def report(done: int, total: int) -> bool:
                if total and not worker.is_cancelled:
                    told = f"searching … {100 * done // total}% of the index is made"
                    self.post_message(self.Fetched(self._tell_searching, (query, told), "search"))
                return not worker.is_cancelled

            return self.look_up(query, lambda words: self.source.search(words, report))

        self.fetch(read, lambda found: self._show_found(query, found), group="search")

    def _tell_searching(self, told: tuple[Query, str]) -> None:
        if self.searching and told[0] is self.query_typed:
            self.searching = told[1]
            self.tell()

    def _show_found(self, query: Query, found: Found) -> None:
        if query is self.query_typed:
            self.searching, self.found = "", found
            self.show_filtered()

    def show_problem(self, problem: EvalstoreError) -> None:
        """What cannot be read or searched is not being read or searched any more."""
        self.searching = ""
        self.tell()
        super().show_problem(problem)

"""What the table of cases shows besides verdicts: pass rates of candidates and earlier verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_
from typing import TYPE_CHECKING

from evalstore.interfaces.tui.render.case_table import case_cells, case_columns
from evalstore.interfaces.tui.screens.history_reader import HistoryReader
from evalstore.interfaces.tui.state.case_groups import CaseGroup
from evalstore.interfaces.tui.widgets.grid import Grid

if TYPE_CHECKING:
    from textual.timer import Timer

    from evalstore.comparison.statistics import Rate
    from evalstore.interfaces.tui.screens.base import Page
    from evalstore.interfaces.tui.state.case_listing import CaseListing
    from evalstore.interfaces.tui.state.case_query import Query
    from evalstore.interfaces.tui.widgets.grid_columns import Column
    from evalstore.interfaces.tui.widgets.grid_lines import StyledCell
    from evalstore.results.table.cases import Cases

_MANY = 5_000
"""Listed cases whose rates are read only after a pause in typing."""
_PAUSE_SECONDS = 0.15


class CaseFigures:
    """Reads these figures when the cases are shown, and makes columns and cells of them."""

    def __init__(self, page: Page, listing: CaseListing, show: Callable[[], None]) -> None:
        """`show` is called when the last verdicts of cases have been read."""
        self._page = page
        self._listing = listing
        self._show = show
        self.history = HistoryReader(page, self._show_history)
        self._rates: Sequence[Rate] = ()
        """The pass rates of the candidates in the listed cases, once they are known."""
        self._whole: Sequence[Rate] = ()
        """Those in all cases, if the listed ones are chosen by their verdicts."""
        self._is_by_verdict = False
        self._rated: tuple[object, ...] = ()
        """The cases and the filter that they are about."""
        self._pause: Timer | None = None

    @property
    def _grid(self) -> Grid:
        return self._page.query_one("#cases", Grid)

    def renew(self, cases: Cases) -> None:
        """Read the figures of cases that were read again."""
        self._page.browser.large_pages.hold(self._page, len(cases.rows))
        self.history.renew(cases.run)
        if len(self._rates) != len(cases.models):
            self._rates = ()

    def forget(self) -> None:
        """Free the cases of a page that was left."""
        self._listing.clear()
        self._page.browser.large_pages.release(self._page)
        self._rated = ()
        if self._pause:
            self._pause.stop()
            self._pause = None

    def request_rates(self, query: Query, *about: object) -> None:
        """Read the pass rates in the listed cases, unless they are `about` the same as before."""
        self._is_by_verdict = query.is_about_verdicts
        about = (query, *about)
        listing, now = self._listing, (self._listing.cases, *about)
        is_same = len(now) == len(self._rated) and all(map(is_, now, self._rated))
        if listing.cases is None or is_same:
            return
        self._rated = now
        if self._pause:
            self._pause.stop()
        if listing.cases.is_cut:  # the rates of some would be taken for those of all
            self._show_rates(())
            return
        if len(listing.matching) > _MANY:
            self._pause = self._page.set_timer(_PAUSE_SECONDS, self._read_rates)
        else:
            self._page.call_after_refresh(self._read_rates)

    def _read_rates(self) -> None:
        source, cases, rows = self._page.source, self._listing.cases, self._listing.matching
        if cases is not None:
            every = cases.rows if self._is_by_verdict else ()

            def read(cases: Cases = cases) -> tuple[tuple[Rate, ...], ...]:
                return tuple(source.candidate_rates(cases, some) for some in (rows, every))

            self._page.fetch(read, lambda found: self._show_rates(*found), group="rates")

    def _show_rates(self, rates: Sequence[Rate], whole: Sequence[Rate] = ()) -> None:
        self._rates, self._whole = rates, whole if self._is_by_verdict else ()
        self._grid.set_columns(self.columns())

    def _show_history(self) -> None:
        self._grid.set_columns(self.columns())
        self._show()

    def request_seen(self) -> None:
        """Read the last verdicts of the cases that can be seen, and name their candidate."""
        cases = self._listing.cases
        if cases and len(cases.models) > 1 and self.history.has_several:
            self._grid.set_columns(self.columns())
        self.request_history()

    def request_history(self) -> None:
        """Read the last verdicts of the cases that can be seen."""
        seen = self._listing.lines[self._grid.seen_rows]
        self.history.request(self._listing.small_files(seen))

    # --- the table

    def columns(self) -> list[Column]:
        """Return the columns of the table."""
        listing = self._listing
        if listing.cases is None or listing.filtered is None:
            return []
        return case_columns(
            listing.cases,
            listing.filtered,
            self._rates,
            self._whole,
            by_file=self._by_file,
            only_file=listing.only_file,
            with_history=self.history.has_several,
            picked=self._grid.picked,
            answered=listing.answered,
        )

    def cells(self, row: int) -> Sequence[StyledCell]:
        """Return the cells of a line."""
        listing, grid = self._listing, self._grid
        assert listing.cases is not None
        line, width = listing.lines[row], grid.scrollable_content_region.width
        result = None if isinstance(line, CaseGroup) else line.results[grid.picked]
        words = self.history.of(result) if result else ()
        return case_cells(listing.cases, line, width, words, by_file=self._by_file)

    @property
    def _by_file(self) -> bool:
        """Return whether the name of the file stands above the cases, or in the title."""
        return self._listing.grouping == "file" or bool(self._listing.only_file)

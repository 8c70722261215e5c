"""What a page of cases does when other cases match its filter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.core.display import plural

if TYPE_CHECKING:
    from evalstore.interfaces.tui.screens.base import Page
    from evalstore.interfaces.tui.screens.dialogs.text_filter import TextFilter
    from evalstore.interfaces.tui.state.case_listing import CaseListing
    from evalstore.interfaces.tui.widgets.grid import Grid
    from evalstore.results.table.case_rows import CaseRow


def pick_match(grid: Grid, case: CaseRow | None, listing: CaseListing, filter: TextFilter) -> None:
    """Select the candidate whose result matches a filter that was changed, if another one is."""
    filtered = listing.filtered
    if case is None or filtered is None or not filter.is_changed:
        return
    filter.is_changed = bool(filter.progress)
    matching = filtered.matching_candidates(case, filter.query, filter.matches)
    if matching and grid.picked not in matching:
        grid.picked = matching[0]


def report_lost(page: Page, listing: CaseListing, filter: TextFilter) -> None:
    """Say how many cases no longer match the filter since they were read before."""
    if not filter.progress:
        lost = listing.count_lost()
        if lost:
            verb = "matches" if lost == 1 else "match"
            page.notify(f"{plural(lost, 'case')} no longer {verb} the filter.", markup=False)

"""What a page of cases does when other cases match its filter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.display import plural

if TYPE_CHECKING:
    from evalstore.tui.screens.cases import CasesPage


def pick_match(page: CasesPage) -> None:
    """Select the candidate whose result matches a filter that was changed, if another one is."""
    case, filtered, filter = page.case, page.listing.filtered, page.filter
    if case is None or filtered is None or not filter.is_changed:
        return
    filter.is_changed = bool(filter.progress)
    matching = filtered.matching_candidates(case, filter.query, filter.matches)
    if matching and page.grid.picked not in matching:
        page.grid.picked = matching[0]


def report_lost(page: CasesPage) -> None:
    """Say how many cases no longer match the filter since they were read before."""
    if not page.filter.progress:
        lost = page.listing.count_lost()
        if lost:
            verb = "matches" if lost == 1 else "match"
            page.notify(f"{plural(lost, 'case')} no longer {verb} the filter.", markup=False)

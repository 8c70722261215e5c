"""Says which of many cases a filter wants, so that only these are kept in memory."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from evalstore.operations.views.case_window import CaseWindow
from evalstore.tui.state.case_filter import FilteredCases
from evalstore.tui.state.text_matches import LookedUp, StoreLookup

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evalstore.operations.views.case_rows import CaseRow
    from evalstore.operations.views.cases import Cases
    from evalstore.tui.state.case_query import Query


def wanted_by(query: Query, store: StoreLookup, report: Callable[[int, int], bool]) -> CaseWindow:
    """Return the window that wants what a filter matches; `store` looks up its words."""
    if query.is_empty:
        return CaseWindow(report=report)

    def wants(cases: Cases) -> Sequence[CaseRow]:
        filtered = FilteredCases(cases)
        found = filtered.look_up(query, store) if query.needs_store else LookedUp()
        return filtered.rows(filtered.select(query, "file", found))

    return CaseWindow(wants, report)


def looked_up_once(store: StoreLookup) -> StoreLookup:
    """Return what looks each word up once, however often some cases are compared with it."""
    return StoreLookup(cache(store.texts), cache(store.answers), cache(store.broken))

"""The lines of the pending work."""

from __future__ import annotations

from collections.abc import Iterator

from evalstore.interfaces.tui.screens.status import PendingLine, PendingLines, Title


class _Unread(list[PendingLine]):
    """Lines that may not be read."""

    def __iter__(self) -> Iterator[PendingLine]:
        raise AssertionError("the lines are read")


def test_no_line_is_looked_for_where_none_was_highlighted() -> None:
    assert PendingLines(_Unread([Title("ask")])).place_of(None) is None
    assert PendingLines([Title("ask"), Title("judge")]).place_of(Title("judge")) == 1

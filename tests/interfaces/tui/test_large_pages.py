"""With a large page open not everything is looked through for garbage, and afterwards it is."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from evalstore.interfaces.tui.heap import MANY, LargePages, _leave_out, collect_little_at_once


class Node:
    """What only a collection frees."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def same_thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def open_pages() -> tuple[LargePages, list[Callable[[], None]]]:
    called: list[Callable[[], None]] = []
    return LargePages(lambda _seconds, work: called.append(work)), called


def is_looked_through(thing: object) -> bool:
    """Whether a collection of everything looks at it."""
    return any(each is thing for each in gc.get_objects())


def test_what_there_is_when_the_browser_begins_is_left_out_of_collections() -> None:
    _leave_out.cache_clear()
    old = Node()
    collect_little_at_once()
    new = Node()
    collect_little_at_once()
    assert not is_looked_through(old)
    assert is_looked_through(new)


def test_few_cases_change_nothing() -> None:
    pages, _ = open_pages()
    before, new = gc.get_threshold(), Node()
    pages.hold("page", MANY - 1)
    assert gc.get_threshold() == before
    assert is_looked_through(new)


def test_everything_is_looked_through_only_after_the_last_page_with_many_is_left() -> None:
    collect_little_at_once()
    most = gc.get_threshold()[2]
    pages, called = open_pages()
    one, other = object(), object()
    pages.hold(one, MANY)
    pages.hold(other, MANY)
    pages.release(one)
    assert gc.get_threshold()[2] > 1_000_000 * most
    assert not called
    pages.release(other)
    assert gc.get_threshold()[2] == most
    assert len(called) == 1


def test_of_many_large_pages_only_the_first_leaves_anything_out_for_ever() -> None:
    pages, called = open_pages()
    for number in range(3):
        left = Node()
        pages.hold("page", MANY)
        pages.hold("page", MANY)
        assert is_looked_through(left) == bool(number)
        pages.release("page")
        assert len(called) == number + 1


def test_what_a_page_has_left_is_collected_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    pages, called = open_pages()
    page = object()
    pages.hold(page, MANY)
    pages.release(page)
    collected = []
    monkeypatch.setattr(gc, "collect", lambda: collected.append(True))
    pages.hold(page, MANY)  # it was opened again
    called[0]()
    assert not collected
    pages.release(page)
    called[1]()
    assert collected


def test_nothing_is_collected_while_a_page_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    class Reading:
        is_running = True

    called: list[Callable[[], None]] = []
    workers: Any = [Reading()]
    pages = LargePages(lambda _seconds, work: called.append(work), workers)
    collected = []
    monkeypatch.setattr(gc, "collect", lambda: collected.append(True))
    pages.hold("page", MANY)
    pages.release("page")
    called[0]()
    assert not collected
    workers.clear()
    called[1]()
    assert (collected, len(called)) == ([True], 2)

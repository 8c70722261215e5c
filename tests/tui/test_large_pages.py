"""The cases of a large page are left out of collections of garbage, and freed with it."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import pytest

from evalstore.tui.heap import MANY, LargePages


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


def open_pages() -> tuple[LargePages, list[Callable[[], None]]]:
    called: list[Callable[[], None]] = []
    return LargePages(lambda _seconds, work: called.append(work)), called


def test_few_cases_stay_in_collections() -> None:
    pages, _ = open_pages()
    before = gc.get_freeze_count()
    pages.hold("page", MANY - 1)
    assert gc.get_freeze_count() == before


def test_many_cases_are_left_out_until_the_last_page_with_many_is_left() -> None:
    pages, called = open_pages()
    one, other = object(), object()
    pages.hold(one, MANY)
    pages.hold(other, MANY)
    pages.release(one)
    assert gc.get_freeze_count() > 0
    assert not called
    pages.release(other)
    assert gc.get_freeze_count() == 0
    assert len(called) == 1


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

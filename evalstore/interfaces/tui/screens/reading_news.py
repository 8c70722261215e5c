"""Shows on a page how far a long reading has come, while it goes on in its thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from textual.worker import get_current_worker

from evalstore.interfaces.tui.screens.base import Page
from evalstore.store.wanted import Reached, Tell

T = TypeVar("T")
_SECONDS = 0.25
"""From one piece of news to the next."""
_GROUP = "news"


def news_to(
    page: Page, make: Callable[[Reached], T], show: Callable[[T], None], *, after: float = 0.0
) -> Tell:
    """Return what the thread of the current worker tells, so that a page shows it.

    The first news comes when the reading has taken more than `after` seconds.

    `make` is called in that thread, not too often; `show` is called where the screen is drawn.
    What there is while many cases are read is left out of collections of garbage, which would
    stop the screen; the page releases it when all is read, and when it is left.
    """
    worker, last = get_current_worker(), time.monotonic() + after - _SECONDS

    def tell(reached: Reached) -> None:
        nonlocal last
        if time.monotonic() - last < _SECONDS:
            return
        made: Any = make(reached)
        if not worker.is_cancelled:
            page.post_message(page.Fetched(show, made, _GROUP))
        last = time.monotonic()

    return tell

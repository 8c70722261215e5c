"""The state of the workspace above the runs: read in the background, while nothing else is."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from textual.worker import get_current_worker

from evalstore.core.errors import EvalstoreError
from evalstore.interfaces.tui.render.dashboard import dashboard_lines
from evalstore.interfaces.tui.render.documents.reading import READING, reading_text
from evalstore.interfaces.tui.screens.dialogs.dialogs import Dialog
from evalstore.interfaces.tui.screens.reading_news import news_to
from evalstore.interfaces.tui.widgets.fitted_view import FittedView
from evalstore.store.wanted import telling

if TYPE_CHECKING:
    from textual.timer import Timer

    from evalstore.interfaces.tui.screens.base import Page
    from evalstore.results.table.cases import RunLine
    from evalstore.runs.status.dashboard import Dashboard

_PAUSE_SECONDS = 0.3
"""From the runs to the first reading: whoever opens a run at once does not wait for it."""
_REST = 4
"""After a reading there is a rest of so many times its duration."""
_REST_SECONDS = 5.0
"""The longest rest."""
_LONG_SECONDS = 1.0
"""A reading that takes longer says how far it has come."""
_GROUP = "dashboard"
_OLD = "old"
"""The note at figures that are old and are not being read."""


class _Reading(NamedTuple):
    """What a reading has found."""

    wish: int
    """The number of the wish that it fulfils."""
    state: Dashboard | EvalstoreError
    seconds: float


class DashboardReader:
    """Reads the state of the workspace when its page is shown and when the runs have changed."""

    def __init__(self, page: Page, show_state: Callable[[], None]) -> None:
        """`show_state` is called when the state has been read, or is read again."""
        self._page = page
        self._show_state = show_state
        self._runs: Sequence[RunLine] = ()
        self.state: Dashboard | None = None
        """The state as it was read last."""
        self._timer: Timer | None = None
        self._is_followed = False
        """Whether the runs are known."""
        self._wishes = 0
        """How often a reading was wished for: one that began before the last time is old."""
        self._under_way: int | None = None
        """The number of the wish that is being fulfilled."""
        self.is_old = False
        """Whether the state may have changed since it was read: its figures are faint."""
        self._progress = READING
        """How far the reading under way has come."""
        self._seconds = self._ended = 0.0
        """The duration of the last reading, and its end on the monotonic clock."""

    @staticmethod
    def view() -> FittedView:
        """Return the widget."""
        view = FittedView(id="dashboard")
        view.can_focus = False
        return view

    @property
    def is_due(self) -> bool:
        """Return whether a reading begins by itself."""
        return self._timer is not None

    @property
    def note(self) -> str:
        """Return what is said of figures that are old; empty when they are not."""
        if not self.is_old:
            return ""
        is_awaited = self.is_due or self._is_reading or self.state is None
        return self._progress if is_awaited else _OLD

    @property
    def _is_reading(self) -> bool:
        """Return whether a reading is under way whose state will be shown."""
        return self._under_way is not None and any(
            worker.group == _GROUP and worker.node is self._page and not worker.is_finished
            for worker in self._page.workers  # there is none after a bug
        )

    def follow(self, runs: Sequence[RunLine]) -> None:
        """Show the trend of these runs, and read the state again, now or when it is seen."""
        self._runs, self._is_followed = runs, True
        self.resume()

    def resume(self) -> None:
        """Read the state soon: files may have been edited while another screen was shown.

        A reading under way goes on, so that many changes in a row do not keep its end away.
        """
        if self._is_followed:
            self._wishes += 1
            self.is_old = True
            self._read_soon()
            self._draw()

    def go_on(self) -> None:
        """Read the state if that has waited for a page above this one."""
        if self.is_old:
            self._read_soon()
            self._draw()

    def _read_soon(self) -> None:
        if self._is_seen and not (self.is_due or self._is_reading):
            pause = pause_before(self._seconds, self._ended, time.monotonic())
            self._timer = self._page.set_timer(pause, self._read)

    @property
    def _is_seen(self) -> bool:
        """Return whether the page is shown; below a run, or a plan in the making, it can wait.

        With many cases, two readings at once would take twice the memory.
        """
        screen, browser = self._page.app.screen, self._page.browser
        if screen is self._page:
            return True
        waits = browser.runs.is_running or (isinstance(screen, Dialog) and screen.is_planning)
        return browser.shown_page is self._page and not waits

    def suspend(self) -> None:
        """Stop reading, unless the page is still seen below a dialog."""
        if self._is_seen:
            return
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        self._under_way = None
        self._page.workers.cancel_group(self._page, _GROUP)
        self._page.browser.large_pages.release(self._page)

    def _read(self) -> None:
        self._timer = None
        source, wish = self._page.source, self._wishes
        self._under_way, self._progress = wish, READING

        def read() -> _Reading:
            worker, begun = get_current_worker(), time.monotonic()
            state: Dashboard | EvalstoreError
            news = news_to(self._page, reading_text, self._show_progress, after=_LONG_SECONDS)
            try:
                with telling(news):
                    state = source.dashboard(lambda: not worker.is_cancelled)
            except EvalstoreError as problem:
                state = problem
            return _Reading(wish, state, time.monotonic() - begun)

        self._page.fetch(read, self._show, group=_GROUP)

    def _show_progress(self, text: str) -> None:
        """Show how far the reading has come, unless it has ended by now."""
        if self._is_reading:
            self._progress = text
            self._draw()

    def _show(self, reading: _Reading) -> None:
        self._page.browser.large_pages.release(self._page)
        self._seconds, self._ended = reading.seconds, time.monotonic()
        if reading.wish == self._under_way:
            self._under_way = None
        if isinstance(reading.state, EvalstoreError):
            self._page.report_problem(_GROUP, reading.state)
        else:
            self.state = reading.state
            self.is_old = reading.wish != self._wishes
        if reading.wish != self._wishes:
            self._read_soon()
        self._draw()

    def refresh_ages(self) -> None:
        """Draw what was read again: it says how long ago cases broke."""
        if self._is_followed:
            self._draw()

    def _draw(self) -> None:
        dashboard, runs, note = self.state, self._runs, self.note
        own = self._page.browser.runs
        self._page.query_one("#dashboard", FittedView).fit(
            lambda width, height: dashboard_lines(
                dashboard, runs, width, height, note=note, running=own.texts
            )
        )
        self._show_state()


def pause_before(seconds: float, ended: float, now: float) -> float:
    """Return how long to wait before a reading; the last one took so many `seconds`."""
    rest = min(_REST * seconds, _REST_SECONDS)
    return max(_PAUSE_SECONDS, ended + rest - now)

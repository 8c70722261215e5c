"""The state of the workspace above the runs: read in the background, while nothing else is."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual.worker import get_current_worker

from evalstore.tui.render.dashboard import dashboard_lines
from evalstore.tui.widgets.fitted_view import FittedView

if TYPE_CHECKING:
    from textual.timer import Timer

    from evalstore.operations.views.cases import RunLine
    from evalstore.operations.views.dashboard import Dashboard
    from evalstore.tui.screens.base import Page

_PAUSE_SECONDS = 0.3
"""From the runs to the first reading: whoever opens a run at once does not wait for it."""
_REST = 4
"""After a reading there is a pause of so many times its duration."""
_GROUP = "dashboard"


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
        self.is_old = False
        """Whether the state is read again: its figures are faint until then."""
        self._seconds = 0.0
        """The duration of the last reading."""

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

    def follow(self, runs: Sequence[RunLine]) -> None:
        """Show the trend of these runs, and read the state again."""
        self._runs, self._is_followed = runs, True
        self._draw()
        self.resume()

    def resume(self) -> None:
        """Read the state soon: files may have been edited while another screen was shown."""
        if self._is_followed and self._timer is None and self._is_seen:
            pause = max(_PAUSE_SECONDS, _REST * self._seconds)
            self._timer = self._page.set_timer(pause, self._read)
            self.is_old = True
            self._draw()

    @property
    def _is_seen(self) -> bool:
        """Return whether the page is shown; below the progress of a run its figures can wait."""
        app, browser = self._page.app, self._page.browser
        is_below = browser.shown_page is self._page and not browser.runs.is_running
        return app.screen is self._page or is_below

    def suspend(self) -> None:
        """Stop reading, unless the page is still seen below a dialog."""
        if self._is_seen:
            return
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        self._page.workers.cancel_group(self._page, _GROUP)

    def _read(self) -> None:
        self._timer = None
        source = self._page.source

        def read() -> tuple[Dashboard, float]:
            worker, begun = get_current_worker(), time.monotonic()
            dashboard = source.dashboard(lambda: not worker.is_cancelled)
            return dashboard, time.monotonic() - begun

        self._page.fetch(read, lambda read: self._show(*read), group=_GROUP)

    def _show(self, dashboard: Dashboard, seconds: float) -> None:
        self.state, self._seconds, self.is_old = dashboard, seconds, False
        self._draw()

    def _draw(self) -> None:
        dashboard, runs, is_old = self.state, self._runs, self.is_old
        self._page.query_one("#dashboard", FittedView).fit(
            lambda width, height: dashboard_lines(dashboard, runs, width, height, is_old=is_old)
        )
        self._show_state()

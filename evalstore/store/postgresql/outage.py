"""Knows since when a server is away, and whether it is still waited for."""

from __future__ import annotations

from threading import Lock
from time import monotonic

from evalstore.store.driver import PATIENCE_SECONDS


class Outage:
    """The outage of the server of a store, for all its connections together."""

    def __init__(self, patience: float) -> None:
        """`patience` is how many seconds the server is waited for."""
        self.patience = patience
        self._since: float | None = None
        self._last = 0.0
        self._lock = Lock()

    def goes_on(self) -> bool:
        """Note that the server could not be reached; returns False when the patience has ended."""
        with self._lock:
            now = monotonic()
            # After a longer pause this program was stopped, or did not need the server.
            if self._since is None or now - self._last > max(self.patience, PATIENCE_SECONDS):
                self._since = now
            self._last = now
            return now - self._since <= self.patience

    def end(self) -> None:
        """Note that the server was reached."""
        with self._lock:
            self._since = None

    @property
    def seconds(self) -> float:
        """Return for how long the server has been away; 0 if it is there."""
        since = self._since
        return 0.0 if since is None else monotonic() - since

"""Tells the user when the server of the store is away, and when it is back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from evalstore.store.driver import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalstore.store import Store

_LOOK_SECONDS = 1.0
_TOLD_AFTER = 3.0
"""Seconds after which an outage is worth a message."""


class OutageNews:
    """Looks at the store from time to time."""

    def __init__(self, store: Store, tell: Callable[[str], None]) -> None:
        self._store, self._tell = store, tell
        self._told = 0.0
        """How long the outage that was told of has lasted, as far as was seen; 0 without one."""

    async def tell(self) -> None:
        """Tell of each outage of some seconds, and of its end, until this is cancelled."""
        try:
            while True:
                await asyncio.sleep(_LOOK_SECONDS)
                self._look()
        finally:
            self._look()

    def _look(self) -> None:
        away = self._store.seconds_away
        if self._told and not away:
            self._tell(f"the store answers again, after {self._told:.0f} s")
        elif away >= _TOLD_AFTER and not self._told:
            self._tell(
                f"the store does not answer: waiting for it, for up to {PATIENCE_SECONDS:g} s"
            )
        self._told = away if away >= _TOLD_AFTER else 0.0

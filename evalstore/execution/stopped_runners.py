"""Finds runners whose process is stopped for long, and warns of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import TYPE_CHECKING

from evalstore.execution.short_transaction import run_in_thread

if TYPE_CHECKING:
    from evalstore.store.leases import LeaseHolder, Leases


class StoppedRunners:
    """Warns once of other runners on the store that are stopped."""

    def __init__(self, leases: Leases, warn: Callable[[str], None]) -> None:
        self._leases = leases
        self._warn = warn
        self._has_warned = False

    async def find(self, runners: Collection[str]) -> set[str]:
        """Return those of these runners that are stopped for long, and warn of them."""
        stopped = await run_in_thread(partial(self._leases.find_stopped, runners))
        self.warn_of(stopped)
        return {holder.id for holder in stopped}

    async def are_all(self, runners: Collection[str]) -> bool:
        """Return whether the processes of all these runners are stopped for long, and warn then."""
        stopped = await run_in_thread(partial(self._leases.find_stopped, runners))
        if len(stopped) < len(runners):
            return False
        self.warn_of(stopped)
        return True

    def warn_of(self, holders: Iterable[LeaseHolder]) -> None:
        """Warn of stopped runners, if there are any."""
        processes = sorted({holder.pid for holder in holders})
        if processes and not self._has_warned:
            self._has_warned = True
            self._warn(
                f"another run on this store is stopped (process {processes[0]}): its part stays "
                f"pending; continue it with 'kill -CONT {processes[0]}', or end it, and run again"
            )

"""What the browser is fed with: a small protocol, so that a screen can be tried without a store.

All of it may be called from any thread, and raises `EvalstoreError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from evalstore.errors import StoreError

if TYPE_CHECKING:
    from evalstore.operations.browsing import Cases, RunLine
    from evalstore.operations.orders import Where


class Source(Protocol):
    """Where screens get what they show."""

    def runs(self) -> list[RunLine]:
        """All runs, newest first."""

    def cases(self, revision: str | None) -> Cases:
        """The cases of a run, or of the workspace as it is now."""

    def files(self) -> list[str]:
        """The test files of the workspace."""

    def feedback(self, evaluations: Sequence[str]) -> dict[str, str]:
        """The feedback of these judgements by id."""

    def stamp(self) -> object:
        """What differs when anybody has written to the store."""


class Workspace:
    """The source that reads a workspace and its store."""

    def __init__(self, where: Where) -> None:
        self.where = where
        self._was_there = False

    def runs(self) -> list[RunLine]:
        """All runs, newest first."""
        from evalstore.operations import browsing

        return browsing.runs(self.where)

    def cases(self, revision: str | None) -> Cases:
        """The cases of a run, or of the workspace as it is now."""
        from evalstore.operations import browsing

        return browsing.cases(self.where, revision)

    def files(self) -> list[str]:
        """The test files of the workspace."""
        from evalstore.operations import browsing

        return browsing.test_files(self.where)

    def feedback(self, evaluations: Sequence[str]) -> dict[str, str]:
        """The feedback of these judgements by id."""
        from evalstore.operations import browsing

        return browsing.feedback(self.where, evaluations)

    def stamp(self) -> object:
        """What differs when anybody has written to the store."""
        from evalstore.operations import browsing

        found = browsing.stamp(self.where)
        if self._was_there and not found.is_there:
            raise StoreError(
                f"the store '{found.path}' is gone", hint="it is read again when it is back"
            )
        self._was_there = found.is_there
        return found

"""The full-text search of the browser, in all that is stored. May be called from any thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalstore.planning.options import Location
    from evalstore.results.search.grep import FoundTexts, MarkedText, Searcher, SearchHit


class StoredTextSource:
    """Searches stored texts while the user types."""

    def __init__(self, locate: Callable[[], Location]) -> None:
        """`locate` returns the location of the workspace."""
        self._locate = locate
        self._searcher: Searcher | None = None

    def search(self, words: Sequence[str], report: Callable[[int, int], bool]) -> Set[str] | None:
        """Return the sessions with all words in answer, feedback or test, the last as a beginning.

        `report` is called with the number of indexed texts and of all texts, and returns whether
        to go on. None when it returned False.
        """
        return self._open_searcher().search(words, report)

    def search_answers(self, word: str, report: Callable[[int, int], bool]) -> Set[str] | None:
        """Return the sessions whose answers have a word; `report` is called as by `search`."""
        return self._open_searcher().search([word], report, in_answers=True)

    def _open_searcher(self) -> Searcher:
        from evalstore.results.search.grep import Searcher

        self._searcher = self._searcher or Searcher(self._locate())
        return self._searcher

    def find_texts(
        self, pattern: str, limit: int, report: Callable[[int, int], bool]
    ) -> FoundTexts | None:
        """Return stored texts with all words of a pattern, at most `limit`.

        `report` is called as by `search`; None when it returned False.
        """
        return self._open_searcher().find(pattern, limit, report)

    def read_text(self, hit: SearchHit, pattern: str) -> MarkedText:
        """Return a text that was found, with the places of the words in it."""
        from evalstore.results.search.grep import read_text

        return read_text(self._locate(), hit, pattern)

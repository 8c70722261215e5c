"""Filters cases by what is looked up in the store: words in texts, and which results broke.

Quick enough to be done at every key for many cases: the name of each is looked at once for
each word, and what was found is kept for each set of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalstore.interfaces.tui.state.case_query import Query
    from evalstore.results.growing_results import CellKey
    from evalstore.results.result_version import ResultVersion
    from evalstore.results.table.case_rows import CaseRow

Words = tuple[str, ...]
_LINE, _IN_ONE_TEXT = "\n", 1_000
"""Names of cases are compared in texts of so many lines."""
_CACHED_WORDS = 4
"""Words for which the names that lack them are cached: what was typed before is still there."""


@dataclass(frozen=True, slots=True)
class StoreLookup:
    """Looks things up in the store; None: that was cancelled."""

    texts: Callable[[Words], Set[str] | None]
    """Returns the sessions in whose texts all of these words are."""
    answers: Callable[[str], Set[str] | None]
    """Returns the sessions whose answers have a word."""
    broken: Callable[[], Mapping[CellKey, ResultVersion] | None]
    """Returns the results that broke in the last runs and were not fixed since."""


@dataclass(slots=True)
class LookedUp:
    """What was looked up for a filter."""

    texts: dict[Words, Set[str]] = field(default_factory=dict)
    """The sessions in whose texts all of these words are."""
    answers: dict[str, Set[str]] = field(default_factory=dict)
    """The sessions whose answers have a word."""
    broken: Mapping[CellKey, ResultVersion] = field(default_factory=dict)
    """The results that broke in the last runs and were not fixed since, with what did not pass."""


class TextMatches:
    """The words of filters in the names and the texts of cases. May be made in any thread."""

    def __init__(self, rows: Sequence[CaseRow], files: Sequence[str]) -> None:
        """`files` are those of the rows, each once."""
        self._rows, self._files = rows, files
        self._lacking_cache: dict[str, bytes] = {}
        self._last_marks: tuple[Words, Sequence[int] | None] = (), None
        self._all = b"\1" * len(rows)
        self._found: dict[int, tuple[Set[str], bytes]] = {}
        """By the address of a set of sessions: the set, and which rows have one of them."""

    def look_up(self, query: Query, store: StoreLookup) -> LookedUp:
        """Look up what a filter needs: words, those that a name lacks together, and what broke."""
        found = LookedUp()
        self._found = {}
        lacking = set(self._lacking(query.words)) - {0}
        lookups = {_words_of(query.words, marks) for marks in lacking}
        for words in sorted({*lookups, *((word,) for word in query.without)}):
            sessions = store.texts(words)
            if sessions is None:
                return found
            found.texts[words] = sessions
            self.rows_of(sessions)  # ahead of time, for it takes a while
        for word in query.answer_words:
            sessions = store.answers(word)
            if sessions is None:
                return found
            found.answers[word] = sessions
            self.rows_of(sessions)
        if query.is_about_broken:
            found.broken = store.broken() or {}
        return found

    def with_words(self, numbers: Sequence[int], words: Words, found: LookedUp) -> Sequence[int]:
        """Return those of these rows that have all words."""
        if not any(found.texts.values()):
            for word in words:
                missing = self._lacks(word)
                numbers = [number for number in numbers if not missing[number]]
            return numbers
        lacking = self._lacking(words)
        within: dict[int, Sequence[int]] = {0: self._all}
        for marks in set(lacking) - within.keys():
            within[marks] = self.rows_of(_sessions(found.texts, _words_of(words, marks)))
        return [number for number in numbers if within[lacking[number]][number]]

    def without(self, numbers: Sequence[int], word: str, found: LookedUp) -> Sequence[int]:
        """Return those of these rows that do not have a word."""
        lacks, has = self._lacks(word), self.rows_of(found.texts.get((word,), frozenset()))
        return [number for number in numbers if lacks[number] and not has[number]]

    def with_answer(
        self, numbers: Sequence[int], words: Iterable[str], found: LookedUp, *, negated: bool
    ) -> Sequence[int]:
        """Return those of these rows that have one of the words in an answer, or that have none."""
        has = [self.rows_of(found.answers[word]) for word in words if word in found.answers]
        return [number for number in numbers if any(rows[number] for rows in has) != negated]

    def rows_of(self, sessions: Set[str]) -> Sequence[int]:
        """Return for each row whether one of these sessions belongs to it."""
        known = self._found.get(id(sessions))
        if known is None:
            rows = bytes(len(self._rows)) if not sessions else _rows_with(self._rows, sessions)
            known = self._found[id(sessions)] = sessions, rows
        return known[1]

    def _lacking(self, words: Words) -> Sequence[int]:
        """Return for each row which of the words its name lacks: a bit for each.

        The marks of the last words are kept: with many rows, the screen does not wait for them
        once a search has made them in its thread.
        """
        known, marks = self._last_marks
        if known == words and marks is not None:
            return marks
        marks = bytes(len(self._rows))
        for place, word in enumerate(words):
            lacks = self._lacks(word)
            marks = [bits | bit << place for bits, bit in zip(marks, lacks, strict=True)]
        self._last_marks = words, marks
        return marks

    def _lacks(self, word: str) -> bytes:
        """Return for each row whether its name lacks a word; cached for the last words."""
        known = self._lacking_cache
        if word not in known:  # another thread may look at the same time: none is changed
            kept = dict(list(known.items())[1 - _CACHED_WORDS :])
            self._lacking_cache = known = {**kept, word: self._find_lacking(word)}
        return known[word]

    def _find_lacking(self, word: str) -> bytes:
        sought = _fold(word)
        lacking = b"".join(_lacking_in(places, sought) for places in self._folded)
        files = {file for file in self._files if word in file.casefold()}
        if not files:
            return lacking
        named = zip(self._rows, lacking, strict=True)
        return bytes([row.file not in files and lacks for row, lacks in named])

    @property
    def folded(self) -> list[str]:
        """Return the row and the prompt of each case, folded."""
        return [place for places in self._folded for place in places.split(_LINE)]

    @cached_property
    def _folded(self) -> list[str]:
        """Return the same, many in one text: so they take half the memory."""
        rows = self._rows
        return [
            _LINE.join(map(_folded_place, rows[start : start + _IN_ONE_TEXT]))
            for start in range(0, len(rows), _IN_ONE_TEXT)
        ]


def _words_of(words: Words, marks: int) -> Words:
    """Return the words whose bits are set."""
    return tuple(word for place, word in enumerate(words) if marks >> place & 1)


def _fold(text: str) -> str:
    """Fold a text to compare names. With plain dots a name that was cut takes half the memory."""
    return text.casefold().replace("…", "...")


def _folded_place(row: CaseRow) -> str:
    place = f"{row.row} {row.prompt}" if row.prompt else row.row
    return _fold(place).replace(_LINE, " ")


def _lacking_in(places: str, sought: str) -> bytes:
    """Return for each of these places, one in a line, whether it lacks what is sought."""
    if sought not in places:
        return b"\1" * (places.count(_LINE) + 1)
    return bytes([sought not in place for place in places.split(_LINE)])


def _rows_with(rows: Sequence[CaseRow], sessions: Set[str]) -> bytes:
    return bytes(not sessions.isdisjoint(row.sessions) for row in rows)


def _sessions(found: Mapping[Words, Set[str]], words: Words) -> Set[str]:
    """Return the sessions with these words; until then, those with the words typed before."""
    if words in found:
        return found[words]
    text = " ".join(words)
    before = [typed for typed in found if text.startswith(" ".join(typed))]
    return found[max(before, key=lambda typed: len(" ".join(typed)))] if before else frozenset()

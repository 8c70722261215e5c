"""Filters cases by what is looked up in the store: words in texts, and which results broke."""

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
        self._rows = rows
        self._files = {file: file.casefold() for file in files}
        self._found: dict[int, tuple[Set[str], list[bool]]] = {}
        """By the address of a set of sessions: the set, and which rows have one of them."""

    def look_up(self, query: Query, store: StoreLookup) -> LookedUp:
        """Look up what a filter needs: words, those that a name lacks together, and what broke."""
        found = LookedUp()
        self._found = {}
        lookups = set(self._lacking(range(len(self._rows)), query.words)) - {()}
        for words in sorted({*lookups, *((word,) for word in query.without)}):
            sessions = store.texts(words)
            if sessions is None:
                return found
            found.texts[words] = sessions
            self._rows_of(sessions)  # ahead of time, for it takes a while
        for word in query.answer_words:
            sessions = store.answers(word)
            if sessions is None:
                return found
            found.answers[word] = sessions
            self._rows_of(sessions)
        if query.is_about_broken:
            found.broken = store.broken() or {}
        return found

    def with_words(self, numbers: Sequence[int], words: Words, found: LookedUp) -> Sequence[int]:
        """Return those of these rows that have all words."""
        lacking = self._lacking(numbers, words)
        within = {some: self._rows_of(_sessions(found.texts, some)) for some in {*lacking} - {()}}
        return [
            number
            for number, some in zip(numbers, lacking, strict=True)
            if not some or within[some][number]
        ]

    def without(self, numbers: Sequence[int], word: str, found: LookedUp) -> Sequence[int]:
        """Return those of these rows that do not have a word."""
        has = self._rows_of(found.texts.get((word,), frozenset()))
        lacking = zip(numbers, self._lacking(numbers, (word,)), strict=True)
        return [number for number, some in lacking if some and not has[number]]

    def with_answer(
        self, numbers: Sequence[int], words: Iterable[str], found: LookedUp, *, negated: bool
    ) -> Sequence[int]:
        """Return those of these rows that have one of the words in an answer, or that have none."""
        has = [self._rows_of(found.answers[word]) for word in words if word in found.answers]
        return [number for number in numbers if any(rows[number] for rows in has) != negated]

    def _rows_of(self, sessions: Set[str]) -> list[bool]:
        """Return for each row whether one of these sessions belongs to it."""
        known = self._found.get(id(sessions))
        if known is None:
            rows = [bool(sessions) and not sessions.isdisjoint(row.sessions) for row in self._rows]
            known = self._found[id(sessions)] = sessions, rows
        return known[1]

    def _lacking(self, numbers: Iterable[int], words: Words) -> list[Words]:
        """Return for each of these rows which of the words its name lacks."""
        folded, rows = self.folded, self._rows
        sought = [
            (word, _fold(word), {file for file, name in self._files.items() if word in name})
            for word in words
        ]
        return [
            tuple(
                word
                for word, text, files in sought
                if text not in folded[number] and rows[number].file not in files
            )
            for number in numbers
        ]

    @cached_property
    def folded(self) -> list[str]:
        """Return the row and the prompt of each case, folded."""
        return [_fold(f"{row.row} {row.prompt}" if row.prompt else row.row) for row in self._rows]


def _fold(text: str) -> str:
    """Fold a text to compare names. With plain dots a name that was cut takes half the memory."""
    return text.casefold().replace("…", "...")


def _sessions(found: Mapping[Words, Set[str]], words: Words) -> Set[str]:
    """Return the sessions with these words; until then, those with the words typed before."""
    if words in found:
        return found[words]
    text = " ".join(words)
    before = [typed for typed in found if text.startswith(" ".join(typed))]
    return found[max(before, key=lambda typed: len(" ".join(typed)))] if before else frozenset()

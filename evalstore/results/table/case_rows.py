"""The cases of the browser with the results of all candidates, and which of them a filter selects.

A filter names what is wanted; it is resolved to the exact names that there are. Conditions on
candidates, verdicts and tags are looked up in the rows of a run where each result is listed alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from evalstore.core.display import safe
from evalstore.core.results import Result
from evalstore.store.rows.row_queries import Among


@dataclass(frozen=True, slots=True, eq=False)
class CaseRow:
    """A case with one system prompt, and the results of all candidates.

    Rows are compared by identity, because there may be many; results by their values.
    """

    file: str
    row: str
    prompt: str
    """The name of the system prompt if the file has several; else empty."""
    tags: tuple[str, ...]
    results: tuple[Result | None, ...]
    """The results in the order of the candidates in `Cases.models`."""
    words: tuple[str | None, ...] = field(init=False)
    """What each result says, a word of `URGENCY`; None: that candidate has none."""

    folded: str = field(init=False)
    """The file and the name, as words are looked for in them."""

    def __post_init__(self) -> None:
        """Note what is looked at with every key."""
        words = tuple(result and (result.word or "answered") for result in self.results)
        object.__setattr__(self, "words", words)
        object.__setattr__(self, "folded", f"{self.file}\n{self.label}".casefold())

    @property
    def label(self) -> str:
        """Return the row, with the system prompt where the file has several."""
        return f"{self.row} ({self.prompt})".lstrip() if self.prompt else self.row

    @property
    def prompt_id(self) -> str | None:
        """Return the id of the system prompt."""
        return next(result.prompt for result in self.results if result)

    @property
    def sessions(self) -> list[str]:
        """Return the sessions of all results."""
        return [id for result in self.results if result for id in result.sessions]


def in_order(results: Sequence[Result | None], order: Sequence[int]) -> tuple[Result | None, ...]:
    """Return the results in another order of the candidates; those past the end are None."""
    return tuple(results[at] if at < len(results) else None for at in order)


# --- which rows a filter lets through


BROKE = "broke"
"""Among verdicts: what broke and was not fixed since."""
Words = tuple[str, ...]
RowTest = Callable[["CaseRow"], bool]


def fold(name: str) -> str:
    """Return a name as it is compared with what is typed."""
    return safe(name).casefold()


def lacking_words(row: CaseRow, words: Words) -> Words:
    """Return the words that are neither in the file nor in the name of a row."""
    folded = row.folded
    return tuple([word for word in words if word not in folded])


def row_tests(
    conditions: Sequence[Among],
    is_broken: Callable[[Result], bool] | None = None,
    sessions_with: Callable[[Words], Set[str]] = lambda _words: frozenset(),
) -> list[RowTest]:
    """Return what tests for each condition whether some result of a row meets it; negated: none.

    A verdict must be on one of the candidates that other conditions name. `sessions_with` returns
    the sessions with all of some words in their texts.
    """
    named = [it.names for it in conditions if it.field == "model" and not it.is_negated]
    tests = [_test(it.field, it.names, named, is_broken, sessions_with) for it in conditions]
    negated = [condition.is_negated for condition in conditions]
    return [_negate(it) if is_not else it for it, is_not in zip(tests, negated, strict=True)]


def _negate(test: RowTest) -> RowTest:
    return lambda row: not test(row)


def _test(
    field: str,
    listed: Collection[Any],
    named: Sequence[Collection[str]],
    is_broken: Callable[[Result], bool] | None,
    sessions_with: Callable[[Words], Set[str]],
) -> RowTest:
    """Return what tests whether a row has one of these names, or of words all."""
    names = listed if isinstance(listed, Set) else frozenset(listed)
    if field == "file":
        return lambda row: row.file in names
    if field == "tag":
        return lambda row: not names.isdisjoint(row.tags)
    if field == "prompt":
        return lambda row: row.prompt in names or row.prompt_id in names
    if field == "session":
        return lambda row: not names.isdisjoint(row.sessions)
    if field == "model":
        return lambda row: any(it and it.model in names for it in row.results)
    if field == "verdict":
        may_break = is_broken if BROKE in names else None
        if not named and may_break is None:
            return lambda row: not names.isdisjoint(row.words)

        def says(result: Result, word: str | None) -> bool:
            if not all(result.model in models for models in named):
                return False
            return word in names or (may_break is not None and may_break(result))

        return lambda row: any(
            it and says(it, word) for it, word in zip(row.results, row.words, strict=True)
        )
    words = tuple(listed)

    def has_words(row: CaseRow) -> bool:
        if not (lacking := lacking_words(row, words)):
            return True
        found = sessions_with(lacking)
        return bool(found) and not found.isdisjoint(row.sessions)

    return has_words

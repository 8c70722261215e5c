"""Which results a filter lets through: of the browser, of `ls results`, of agents and of Python.

A filter names what is wanted; it is resolved to the exact names that there are. Conditions on
candidates, verdicts and tags are looked up in the rows of a run where each result is listed alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence, Set
from typing import TYPE_CHECKING, Any

from evalstore.core.display import safe

if TYPE_CHECKING:
    from evalstore.core.results import Result
    from evalstore.results.table.case_rows import CaseRow
    from evalstore.store.rows.row_queries import Among

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

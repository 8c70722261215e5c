"""Counts the verdicts of a run by test file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from heapq import nsmallest
from typing import TYPE_CHECKING, NamedTuple

from evalstore.core.values import RESULT_WORDS
from evalstore.planning.open_project import open_store
from evalstore.results.verdict_order import FAILING
from evalstore.store.trees.path_trees import read_tree

if TYPE_CHECKING:
    from evalstore.planning.options import Location

_LISTED = 200
"""Files that are listed at most."""


class FileVerdicts(NamedTuple):
    """The verdicts of a run on the cases of a test file."""

    file: str
    verdicts: Mapping[str, int]
    """How many results have each verdict or are pending, in the order in which these are shown."""
    new_failures: int = 0


class RunFiles(NamedTuple):
    """The test files of a run: those with new failures first, then those with most failures."""

    files: tuple[FileVerdicts, ...] = ()
    more: int = 0
    """How many files are not listed."""


class _FileCounts(NamedTuple):
    """What is counted of a file."""

    file: str
    words: Counter[str]
    new_failures: int

    @property
    def failures(self) -> int:
        """Return how many results have a verdict that somebody has to look at."""
        return sum(self.words[word] for word in FAILING)


def read_file_verdicts(
    location: Location,
    run: str,
    new_failures: Mapping[str, int],
    go_on: Callable[[], bool] = lambda: True,
) -> RunFiles | None:
    """Return the verdicts of a run by file; None once `go_on` returns False.

    `new_failures` counts, by file, the results that did not fail in the run before.
    """
    with open_store(location) as store:
        stored = store.load_run(run)
        entries = read_tree(stored.results, store.load_nodes)
        counts: dict[str, Counter[str]] = {path: Counter() for path in entries}
        counts |= store.count_results_by_file(stored.results)
        if not go_on():
            return None
        listed = nsmallest(
            _LISTED,
            (_FileCounts(path, words, new_failures.get(path, 0)) for path, words in counts.items()),
            key=lambda each: (-each.new_failures, -each.failures, each.file),
        )
        files = []
        for path, words, news in listed:
            ordered = {word: words[word] for word in RESULT_WORDS if words[word]}
            files.append(FileVerdicts(path, ordered, news))
    return RunFiles(tuple(files), len(counts) - len(files))


def list_files(words: Mapping[str, Counter[str]]) -> RunFiles:
    """Return the verdicts of the workspace by file, those with most failures first."""
    listed = nsmallest(
        _LISTED,
        words,
        key=lambda file: (-sum(words[file][word] for word in FAILING), file),
    )
    files = [
        FileVerdicts(file, {word: words[file][word] for word in RESULT_WORDS if words[file][word]})
        for file in listed
    ]
    return RunFiles(tuple(files), len(words) - len(files))

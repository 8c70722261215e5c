"""Counts the verdicts of a run by test file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from heapq import nsmallest
from types import MappingProxyType
from typing import NamedTuple

from evalstore.core.values import RESULT_WORDS
from evalstore.planning.open_project import open_store
from evalstore.planning.options import Location
from evalstore.results.verdict_order import FAILING
from evalstore.store.trees.tree_nodes import read_tree

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


def read_file_verdicts(location: Location, run: str, new_failures: Mapping[str, int]) -> RunFiles:
    """Return the verdicts of a run by file.

    `new_failures` counts, by file, the results that did not fail in the run before.
    """
    with open_store(location) as store:
        stored = store.load_run(run)
        entries = read_tree(stored.results, store.load_nodes)
        counts: dict[str, Counter[str]] = {path: Counter() for path in entries}
        counts |= store.count_results_by_file(stored.results)
    return list_files(counts, new_failures)


def list_files(
    words: Mapping[str, Counter[str]], new_failures: Mapping[str, int] = MappingProxyType({})
) -> RunFiles:
    """Return verdicts by file: those with new failures first, then those with most failures."""

    def order(file: str) -> tuple[int, int, str]:
        failures = sum(words[file][word] for word in FAILING)
        return -new_failures.get(file, 0), -failures, file

    listed = nsmallest(_LISTED, words, key=order)
    files = []
    for file in listed:
        ordered = {word: words[file][word] for word in RESULT_WORDS if words[file][word]}
        files.append(FileVerdicts(file, ordered, new_failures.get(file, 0)))
    return RunFiles(tuple(files), len(words) - len(files))

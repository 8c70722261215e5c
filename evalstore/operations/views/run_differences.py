"""Counts the verdicts that differ between two runs, and names flips; no answer is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from evalstore.operations.prompt_names import name_prompts
from evalstore.operations.verdict_changes import file_batches
from evalstore.operations.views.case_name import case_name
from evalstore.planning.open_project import open_store, open_workspace
from evalstore.planning.path_history import PathHistory
from evalstore.reports.comparison import compare
from evalstore.store.path_trees import find_entry, read_trees
from evalstore.store.results import iterate_entries

if TYPE_CHECKING:
    from evalstore.planning.options import Location
    from evalstore.results import Result
    from evalstore.store import Store


_LISTED = 8
"""The most results that are named of those that broke, and of those that were fixed."""
_FILES = 200
"""The most files with new failures that are named."""
_TAKEN = "\0"
"""Ends the former path of a file where another file is now; no path contains it."""

RunPair: TypeAlias = tuple[str, str]
"""The ids of a run and of an earlier one."""


class RunDifferences(NamedTuple):
    """How many results of a run have another verdict than in an earlier one."""

    broke: int = 0
    fixed: int = 0
    changed: int = 0
    """Those with another verdict that neither broke nor were fixed."""
    new: int = 0
    gone: int = 0
    """Those that only the earlier run has."""
    names: tuple[tuple[str, str], ...] = ()
    """The first of those that broke, or were fixed: which of the two, and the case."""
    new_failures: tuple[tuple[str, int], ...] = ()
    """Files with how many of their results broke, or fail and are new; those with most first."""

    @property
    def is_hidden(self) -> bool:
        """Return whether a difference of pass rates does not show all of them."""
        return bool((self.broke and self.fixed) or self.changed or self.new or self.gone)

    @property
    def text(self) -> str:
        """Return `1 broke, 2 fixed`; empty if no verdict differs."""
        words = ("broke", "fixed", "changed", "new", "gone")
        return ", ".join(
            f"{count:,} {word}" for count, word in zip(self[:5], words, strict=True) if count
        )


def read_run_differences(
    location: Location, pairs: Iterable[RunPair], go_on: Callable[[], bool] = lambda: True
) -> dict[RunPair, RunDifferences]:
    """Return the differences of each pair of runs; some are left out once `go_on` returns False.

    Only files whose results differ are read. Test files are followed through renames.
    """
    folder = open_workspace(location).settings.paths["tests"]
    with open_store(location) as store:
        return {pair: _differ(location, store, folder, pair) for pair in pairs if go_on()}


def _differ(location: Location, store: Store, folder: str, pair: RunPair) -> RunDifferences:
    now, before = map(store.load_run, pair)
    trees = [(before.results, now.results), (now.results, before.results)]
    was_leaves, now_leaves = read_trees(trees, store.load_nodes)
    same = was_leaves.items() & now_leaves.items()
    for path, _ in same:
        del was_leaves[path], now_leaves[path]
    if was_leaves.keys() - now_leaves.keys() and now_leaves.keys() - was_leaves.keys():
        history = PathHistory(store, folder, now.snapshot, {})
        history.step(before.snapshot)
        was_leaves = _follow(store, history, was_leaves, now_leaves, now.results)
    counts = dict.fromkeys(("broke", "fixed", "changed", "new", "gone"), 0)
    flips: dict[str, list[Result]] = {"broke": [], "fixed": []}
    failing: Counter[str] = Counter()
    several: set[str] = set()
    for batch in file_batches(was_leaves | now_leaves):
        comparison = compare(
            _results(store, was_leaves, batch, several), _results(store, now_leaves, batch, several)
        )
        for name, listed in flips.items():
            pairs = getattr(comparison, name)[: _LISTED - len(listed)]
            listed += [pair.either for pair in pairs]
        news = (pair.now for pair in (*comparison.broke, *comparison.new))
        failing.update(now.file for now in news if now and now.verdict not in (None, "pass"))
        for name in ("broke", "fixed", "new", "gone"):
            counts[name] += len(getattr(comparison, name))
        counts["changed"] += sum(
            1
            for each in comparison.changed
            if each.was and each.now and each.was.verdict != each.now.verdict
        )
    return RunDifferences(
        **counts,
        names=tuple(_name(location, flips, several)),
        new_failures=tuple(failing.most_common(_FILES)),
    )


def _name(
    location: Location, flips: Mapping[str, Sequence[Result]], several: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield the names of results, with the system prompt in files whose cases have several."""
    results = [result for listed in flips.values() for result in listed]
    prompts = name_prompts(location, {it.prompt for it in results if it.file in several})
    for change, listed in flips.items():
        for result in listed:
            prompt = prompts[result.prompt] if result.file in several else None
            yield change, f"{case_name(result.file, result.row, prompt)} {result.model}"


def _follow(
    store: Store,
    history: PathHistory,
    was_leaves: Mapping[str, str],
    now_leaves: dict[str, str],
    now: str,
) -> dict[str, str]:
    """Return older leaves by their newest paths; adds to the newer ones what these lead to.

    A file may have got the path of another one whose leaf is still the same: that of the file
    which is gone. Paths that another file has now are marked, as no newer file is there.
    """
    followed: dict[str, str] = {}
    for path, leaf in was_leaves.items():
        newest = history.newest_path(path)
        if newest not in (None, path) and newest not in now_leaves:
            same = find_entry({now}, newest, store.load_nodes).get(now)
            if same is not None:
                now_leaves[newest] = followed[newest + _TAKEN] = same
        followed[newest or path + _TAKEN] = leaf
    return followed


def _results(
    store: Store, leaves: Mapping[str, str], paths: Iterable[str], several: set[str]
) -> Iterator[Result]:
    """Yield the results of files; adds those whose cases have several system prompts."""
    entries = {path: leaves[path] for path in paths if path in leaves}
    for batch in iterate_entries(store, entries):
        for result, case in batch:
            if len(case.prompts) > 1:
                several.add(result.file)
            yield result

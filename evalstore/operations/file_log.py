"""Finds the runs that changed a test file or its verdicts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from evalstore.operations.file_edits import find_edits
from evalstore.planning.path_history import follow_file
from evalstore.planning.version_reader import VersionReader
from evalstore.reports.candidate_edits import Candidates, candidates_after, differ_candidates
from evalstore.reports.version_diff import Difference
from evalstore.store.case_chunks import find_same
from evalstore.store.path_trees import find_entry
from evalstore.store.results import iterate_entries

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from evalstore.operations.file_edits import Name
    from evalstore.runs import Run
    from evalstore.store import Store
    from evalstore.values import CaseFile

_Words = dict[tuple[str, int, str], str]
"""The verdict of each result of a file, by row, number of the system prompt, and candidate."""


@dataclass(frozen=True, slots=True)
class LoggedChange:
    """A run that changed a test file, or the verdicts on its cases."""

    run: Run
    words: Counter[str]
    """How many results of the file have each verdict in the run."""
    edits: tuple[Difference, ...]
    """The edits that this run was the first to judge, and the changes of the candidates since the
    previous run; none if only verdicts changed."""


@dataclass
class _Version:
    """A version of a test file: consecutive runs in which its cases are the same."""

    run: Run
    """The first of these runs."""
    path: str
    node: str
    results: list[tuple[Run, str]] = field(default_factory=list)
    """The runs that covered the file, oldest first, with the leaves of its results."""


def find_logged_changes(store: Store, file: str, folder: str, name: Name) -> list[LoggedChange]:
    """Return the runs that changed a test file or its verdicts, newest first.

    An edit belongs to the first run with results of the edited file: a run of other files keeps
    the file in its snapshot, but does not judge it. If no run judged it, it belongs to the first
    run with the edited file. Candidates count if they have results of the file. `file` is its path
    in the newest run, `folder` that of the test files.
    """
    seen = _find_runs(store, file, folder)
    files = store.load_case_files(list({node for _, _, node, _ in seen}))
    versions = list(_group(seen, files))
    words = _read_words(store, {leaf for version in versions for _, leaf in version.results})
    edits = _find_edits(store, versions, files, name)
    find = VersionReader(store).find
    changes: list[LoggedChange] = []
    known: _Words = {}
    candidates: Candidates | None = None
    models: set[str] = set()
    for version, differences in zip(versions, edits, strict=True):
        if not version.results:
            changes.append(LoggedChange(version.run, Counter(), differences))
        for number, (run, leaf) in enumerate(version.results):
            now = words[leaf]
            was, candidates = candidates, candidates_after(candidates or {}, run)
            here = {model for _, _, model in now}
            edited = () if number else differences
            if was is not None:
                edited += (*differ_candidates(was, candidates, models | here, find),)
            if not number or edited or any(known.get(place) != now[place] for place in now):
                changes.append(LoggedChange(run, Counter(now.values()), edited))
            known |= now
            models = {id for id in models | here if id in candidates}
    return changes[::-1]


def _find_runs(store: Store, file: str, folder: str) -> list[tuple[Run, str, str, str | None]]:
    """Return the runs that have a test file, oldest first.

    Each has the path of the file then, its node, and the leaf of its results if the run covered it.
    """
    runs = store.find_runs()
    followed = [*follow_file(store, runs, file, folder)]
    roots: dict[str, set[str]] = {}
    for run, (path, node) in zip(runs, followed, strict=True):
        if node is not None:
            roots.setdefault(path, set()).add(run.results)
    leaves = {path: find_entry(trees, path, store.load_nodes) for path, trees in roots.items()}
    return [
        (run, path, node, leaves[path].get(run.results))
        for run, (path, node) in zip(runs, followed, strict=True)
        if node is not None
    ][::-1]


def _group(
    seen: Iterable[tuple[Run, str, str, str | None]], files: Mapping[str, CaseFile]
) -> Iterator[_Version]:
    """Yield the versions of a test file, oldest first."""
    version: _Version | None = None
    for run, path, node, leaf in seen:
        if (
            version is None
            or version.path != path
            or not find_same(node, files[node], {version.node: files[version.node]})
        ):
            if version:
                yield version
            version = _Version(run, path, node)
        if leaf:
            version.results.append((run, leaf))
    if version:
        yield version


def _read_words(store: Store, leaves: Iterable[str]) -> dict[str, _Words]:
    words: dict[str, _Words] = {leaf: {} for leaf in leaves}
    for batch in iterate_entries(store, {leaf: leaf for leaf in words}):
        for result, _ in batch:
            place = result.row, result.prompt_number, result.model
            words[result.file][place] = result.verdict or "pending"
    return words


def _find_edits(
    store: Store, versions: list[_Version], files: Mapping[str, CaseFile], name: Name
) -> Iterator[tuple[Difference, ...]]:
    """Yield the edits of each version since the previous one."""
    pairs = list(pairwise(versions))
    compared = {now.run.id: (files[was.node], files[now.node]) for was, now in pairs}
    edits = find_edits(VersionReader(store), compared, name)
    if versions:
        yield (Difference("new"),)
    for was, now in pairs:
        differences = edits[now.run.id]
        if was.path != now.path:
            differences = [Difference("renamed", was.path, now.path), *differences]
        yield tuple(differences or [Difference("no change in content")])

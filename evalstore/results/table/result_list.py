"""Lists results by candidate, tag, name, verdict, text and whether they broke.

The command `ls results`, agents and Python ask here.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from evalstore.core.errors import EvalstoreError, NothingSelectedError
from evalstore.core.side_names import WORKSPACE
from evalstore.core.values import RECORDED, URGENCY
from evalstore.files.fields import suggest
from evalstore.planning.judge_names import find_feedback
from evalstore.planning.path_targets import split_row
from evalstore.planning.reasons.unknown_names import require_tag, tags_of
from evalstore.planning.selection import Selection, Target, compile_name
from evalstore.results.compare.diff import diff
from evalstore.results.failed_results import find_failed, mark_failed
from evalstore.results.flips.broken_results import find_broken_results
from evalstore.results.growing_results import cell_of
from evalstore.results.labels.labels import read_labels
from evalstore.results.log.files_of_runs import find_test_file
from evalstore.results.prompt_names import name_prompts
from evalstore.results.result_version import is_broken
from evalstore.results.search.grep import Searcher
from evalstore.results.show.revision_results import find_marked_results, find_run, open_revision
from evalstore.store.results import FoundRows, find_decisive, join_feedback, require_results
from evalstore.store.revisions import WORK, as_revision
from evalstore.store.rows.row_queries import ResultConditions
from evalstore.store.search.words import has_words, split_words
from evalstore.store.trees.path_trees import read_tree
from evalstore.workspace.digest_set import DigestSet, digest_of_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from evalstore.core.results import Result
    from evalstore.core.runs import Run
    from evalstore.core.values import Json
    from evalstore.planning.options import Location
    from evalstore.planning.project import Project


Tagged: TypeAlias = "list[tuple[Result, tuple[str, ...]]]"
"""Results with the tags of their cases."""


@dataclass(frozen=True)
class ResultFilter:
    """Which results are listed: those to which all of it applies."""

    paths: tuple[str, ...] = ()
    """Test files, folders, or rows as `FILE::ROW`."""
    models: tuple[str, ...] = ()
    """Candidates, or a part of their names."""
    tags: tuple[str, ...] = ()
    exclude_tags: tuple[str, ...] = ()
    name: str | None = None
    """What `FILE::ROW` contains, with `and`, `or` and `not`."""
    verdicts: tuple[str, ...] = ()
    """Words such as `fail`, `pending`, or `answered` where nothing judges."""
    grep: str = ""
    """Words in the answer, the test or the feedback."""
    broke: bool = False
    """Only what broke and is not fixed."""
    since: str | None = None
    """With `broke`: what broke since this revision or date."""


@dataclass(frozen=True)
class FoundResults:
    """The results of a run, or of the workspace, that a filter lets through."""

    run: Run
    batches: Iterator[Tagged]
    """The results with the tags of their cases; few of them are in memory."""
    rows: FoundRows | None = None
    """What pages are read from, where rows say all that the filter asks."""

    def results(self) -> Iterator[Result]:
        """Yield the results."""
        return (result for batch in self.batches for result, _ in batch)

    def page(self, offset: int, limit: int) -> tuple[Tagged, int]:
        """Return so many results after the first ones, and how many there are."""
        if self.rows:
            found, total = self.rows.page(offset, limit)
            return [(each.result, each.tags) for each in found], total
        total = 0
        chosen: Tagged = []
        for batch in self.batches:
            chosen += batch[max(0, offset - total) : max(0, offset + limit - total)]
            total += len(batch)
        return chosen, total


@contextmanager
def find_filtered(
    location: Location, revision: str, wanted: ResultFilter
) -> Iterator[tuple[Project, FoundResults]]:
    """Open the results of a revision that a filter lets through, by file and row.

    Raises `EvalstoreError` for a candidate or a path that there is not.
    """
    if wanted.since is not None and not wanted.broke:
        raise EvalstoreError("'--since' needs '--broke'", hint="write '--broke --since REV'")
    for word in wanted.verdicts:
        if word not in URGENCY:
            hint = suggest(word, URGENCY, "verdicts")
            raise EvalstoreError(f"there is no verdict '{word}'", hint=hint)
    with open_revision(location, revision) as project:
        run = find_run(project, revision)
        if run.id == WORKSPACE:
            require_tag(wanted.tags, tags_of(project.reading.files.values()))
        targets = tuple(_target(location, project, run, path) for path in wanted.paths)
        selection = Selection(targets)
        rest: list[Callable[[Result], bool]] = []
        if selection.is_by_row:
            rest.append(lambda result: selection.covers_row(result.file, result.row))
        if wanted.name is not None:
            has_name = compile_name(wanted.name)
            rest.append(lambda result: has_name(f"{result.file}::{result.row}"))
        if (sessions := _search(location, wanted.grep)) is not None:
            rest.append(lambda result: not sessions.isdisjoint(result.sessions))
        if wanted.broke:
            rest.append(_broken(location, project, revision, wanted))
        asked = ResultConditions(
            _models(run, wanted.models), wanted.verdicts, wanted.tags, wanted.exclude_tags
        )
        if run.id == WORKSPACE:
            _, batches = find_marked_results(project, revision)
            every = ([(result, case.tags) for result, case in batch] for batch in batches)
            rest = [lambda result: selection.covers_file(result.file), *rest]
            yield project, FoundResults(run, _filter(every, rest, asked))
            return
        require_results(project.store, run.results)
        rows = FoundRows(project.store, run.results, asked, selection.covers_file)
        every = ([(each.result, each.tags) for each in batch] for batch in rows.batches())
        if run.failed and (not wanted.verdicts or {"pending", "no reply"} & {*wanted.verdicts}):
            failed = find_failed(project.store, run)
            every = ([(mark_failed(it, failed), tags) for it, tags in batch] for batch in every)
            rest = [lambda _result: True, *rest]
        if not rest:
            yield project, FoundResults(run, every, rows)
            return
        yield project, FoundResults(run, _filter(every, rest, asked))


def _filter(
    batches: Iterator[Tagged], rest: Sequence[Callable[[Result], bool]], asked: ResultConditions
) -> Iterator[Tagged]:
    """Yield the results of which all holds, what rows say and the rest."""
    for batch in batches:
        yield [
            (result, tags)
            for result, tags in batch
            if asked.holds(result.model, result.word or "answered", tags)
            if all(holds(result) for holds in rest)
        ]


def describe_results(
    location: Location, project: Project, batches: Iterable[Tagged]
) -> Iterator[dict[str, Json]]:
    """Yield results as JSON, each with what its judges said."""
    store, names = project.store, dict[str | None, str]()
    for batch in batches:
        results = [result for result, _ in batch]
        feedback = find_feedback(store, find_decisive(store, results))
        unknown = {result.prompt for result in results if result.prompt} - names.keys()
        names.update(name_prompts(location, unknown) if unknown else {})
        for result, tags in batch:
            yield {
                "file": result.file,
                "row": result.row,
                "prompt": result.prompt,
                "promptName": names.get(result.prompt),
                "model": result.model,
                "tags": list(tags),
                "verdict": result.word or "answered",
                "score": result.score,
                "sessions": list(result.sessions),
                "feedback": join_feedback(result.evaluations, feedback),
            }


def _target(location: Location, project: Project, run: Run, path: str) -> Target:
    """Return the file, folder or row that a path names among those of a run."""
    if run.id == WORKSPACE:
        return project.targets((path,))[0]
    name, row = split_row(path)
    nodes = read_tree(run.snapshot, project.store.load_nodes)
    folder = Target(name.rstrip("/"))
    if not any(map(folder.covers, nodes)):
        file = find_test_file(location, project.workspace, nodes, name, run.id)
        return Target(file, row)
    return Target(folder.path, row)


def _models(run: Run, names: tuple[str, ...]) -> set[str] | None:
    """Return the candidates that have these names, or else have them in theirs; None: all."""
    if not names:
        return None
    known = {candidate.id for candidate in run.candidates}
    chosen = set[str]()
    for name in names:
        found = {name} & {*known, RECORDED} or {
            id for id in known if name.casefold() in id.casefold()
        }
        if not found:
            raise NothingSelectedError(
                f"no candidate is called '{name}'", hint=suggest(name, known, "candidates")
            )
        chosen |= found
    return chosen


def _search(location: Location, pattern: str) -> set[str] | None:
    """Return the answers in which, or in whose test or feedback, all words are; None: all."""
    if not pattern:
        return None
    words = split_words(pattern)
    if not has_words(words):
        raise EvalstoreError(f"'{pattern}' has no word to search for")
    return {*(Searcher(location).search(words, lambda _done, _all: True) or ())}


def _broken(
    location: Location, project: Project, revision: str, wanted: ResultFilter
) -> Callable[[Result], bool]:
    """Return whether a result broke: since a revision, or in the newest runs, and is not fixed."""
    if wanted.since is not None:
        since = as_revision(wanted.since)
        cells = DigestSet()
        for pair in diff(location, since, revision).broke:
            cells.add(digest_of_value(cell_of(pair.either)))
        return lambda result: digest_of_value(cell_of(result)) in cells
    newest = None if revision in (WORK, "@") else revision
    broken = find_broken_results(location, newest, lambda: True) or {}
    labels = read_labels(project.store)
    return lambda result: is_broken(result, broken, labels)

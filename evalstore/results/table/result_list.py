"""Lists results by candidate, tag, name, verdict, text and whether they broke.

The command `ls results`, agents and Python ask here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass

from evalstore.core.display import WORKSPACE
from evalstore.core.errors import EvalstoreError, NothingSelectedError, UnsuitedError
from evalstore.core.hashing import DigestSet, digest_of_value
from evalstore.core.runs import Run
from evalstore.core.values import RECORDED, URGENCY, Json, Result
from evalstore.files.fields import suggest
from evalstore.planning.cell_results import find_feedback
from evalstore.planning.options import Location
from evalstore.planning.participants import match_models, require_tag, tags_of
from evalstore.planning.project import Project
from evalstore.planning.selection import Selection, Target, compile_name, split_row
from evalstore.results.answer.verdict_explanation import find_history_in
from evalstore.results.compare.diff import diff
from evalstore.results.flips.broken_results import find_broken_results, is_broken
from evalstore.results.grep import Searcher
from evalstore.results.labels import read_labels
from evalstore.results.names import name_prompts
from evalstore.results.show.revision_results import (
    FoundResults,
    find_run,
    find_tagged_results,
    find_test_file,
    open_revision,
)
from evalstore.results.table.cases import BROKE, CaseRow, RowTest, row_tests
from evalstore.results.verdict_order import FAILING
from evalstore.store.results import RowResults, TaggedResult
from evalstore.store.revisions import as_revision
from evalstore.store.rows.row_queries import Among
from evalstore.store.search.texts import has_words, split_words
from evalstore.store.trees.tree_nodes import read_tree

MOST_WITH_CAUSE = 100
"""The most results of which it is told since when they fail."""


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


@contextmanager
def find_filtered(
    location: Location, revision: str, wanted: ResultFilter
) -> Iterator[tuple[Project, FoundResults]]:
    """Open the results of a revision that a filter lets through, by file and row.

    Raises `EvalstoreError` for a candidate or a path that there is not.
    """
    if wanted.since is not None and not wanted.broke:
        raise UnsuitedError("'--since' needs '--broke'", hint="write '--broke --since REV'")
    for word in wanted.verdicts:
        if word not in URGENCY:
            hint = suggest(word, URGENCY, "verdicts")
            raise EvalstoreError(f"unknown verdict '{word}'", hint=hint)
    with open_revision(location, revision) as project:
        run = find_run(project, revision)
        if run.id == WORKSPACE:
            require_tag(wanted.tags, tags_of(project.reading.files.values()))
        targets = tuple(_target(location, project, run, path) for path in wanted.paths)
        selection = Selection(targets, name=wanted.name)
        wants = [*_conditions(location, run, wanted)]
        found = find_tagged_results(project, run, wants, selection.covers_file)
        if not found.rows or selection.is_by_row or not all(it.is_in_rows for it in wants):
            broken = _broken(location, project, revision, wanted) if wanted.broke else None
            is_wanted = _result_filter(selection, row_tests(wants, broken))
            batches = ([*filter(is_wanted, batch)] for batch in found.batches)
            found = FoundResults(run, batches)
        yield project, found


def _conditions(location: Location, run: Run, wanted: ResultFilter) -> Iterator[Among]:
    """Yield the conditions of a filter, with the names that the run has."""
    if wanted.models:
        yield Among("model", _models(run, wanted.models))
    if wanted.verdicts:
        yield Among("verdict", wanted.verdicts)
    if wanted.tags:
        yield Among("tag", wanted.tags)
    if wanted.exclude_tags:
        yield Among("tag", wanted.exclude_tags, is_negated=True)
    if wanted.grep:
        yield Among("session", _search(location, wanted.grep))
    if wanted.broke:
        yield Among("verdict", {BROKE})


def _result_filter(
    selection: Selection, tests: Sequence[RowTest]
) -> Callable[[TaggedResult], bool]:
    """Return whether a result is wanted: its row is selected, and the conditions hold for it."""
    has_name = None if selection.name is None else compile_name(selection.name)

    def is_wanted(tagged: TaggedResult) -> bool:
        result = tagged.result
        file, row = result.file, result.row
        one = CaseRow(file, row, "", tagged.tags, (result,))
        return (
            selection.covers_row(file, row)
            and (has_name is None or has_name(f"{file}::{row}"))
            and all(test(one) for test in tests)
        )

    return is_wanted


def describe_results(
    location: Location,
    project: Project,
    batches: Iterable[list[TaggedResult]],
    *,
    is_data: bool = True,
    dated_in: Run | None = None,
    broke: bool = True,
) -> Iterator[dict[str, Json]]:
    """Yield results as JSON, each with what its judges said.

    Without `is_data`, system prompts, and none, have names just where a case has several. With
    `dated_in`, their run, the first 100 that are broken, or else fail, have the run since which
    they do, and its changes; without `is_data` its start, too, in microseconds since 1970, and the
    changes in one text, with those since then.
    """
    store, names, rows = project.store, dict[str | None, str](), RowResults(project.store)
    unexplained = iter(range(MOST_WITH_CAUSE if dated_in else 0))
    for batch in batches:
        results = [each.result for each in batch]
        feedback = find_feedback(store, (result.decision for result in results))
        unknown = {result.prompt for result in results} - names.keys()
        names.update(name_prompts(location, unknown) if unknown else {})
        for number, result, tags, *_, several in batch:
            is_named = result.prompt if is_data else several
            history = None
            is_asked = broke or result.word in FAILING
            if dated_in and is_asked and next(unexplained, None) is not None:
                file = project.reading.files.get(result.file)
                case = file.cases[number] if file and dated_in.id == WORKSPACE else None
                history = find_history_in(project, dated_in, result, case, rows)
            is_known = history and not history.passes and (history.before or not history.is_cut)
            changes = [each.text for each in history.changes] if history and is_known else []
            if history and changes and not is_data:
                changes = [history.changes_text()]
            since = history.since if history and is_known else None
            dated: dict[str, Json] = {"since": since.id if since else None, "changes": changes}
            if not is_data:
                dated["started"] = since.started if since else None
            yield {
                "file": result.file,
                "row": result.row,
                "prompt": result.prompt,
                "promptName": names[result.prompt] if is_named else None,
                "model": result.model,
                "tags": list(tags),
                "verdict": result.word or "answered",
                "score": result.score,
                "sessions": list(result.sessions),
                "feedback": feedback.get(result.decision, "") or result.failure,
                **(dated if dated_in else {}),
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


def _models(run: Run, names: tuple[str, ...]) -> set[str]:
    """Return the candidates that have these names, or else have them in theirs."""
    known = {candidate.id for candidate in run.candidates}
    chosen = set[str]()
    for name in names:
        found = match_models(name, known if name != RECORDED else [RECORDED])
        if not found:
            raise NothingSelectedError(
                f"no candidate is called '{name}'", hint=suggest(name, known, "candidates")
            )
        chosen.update(found)
    return chosen


def _search(location: Location, pattern: str) -> Set[str]:
    """Return the answers in which, or in whose test or feedback, all words are."""
    words = split_words(pattern)
    if not has_words(words):
        raise EvalstoreError(f"'{pattern}' has no word to search for")
    return Searcher(location).search(words, lambda _done, _all: True) or set()


def _broken(
    location: Location, project: Project, revision: str, wanted: ResultFilter
) -> Callable[[Result], bool]:
    """Return whether a result broke: since a revision, or in the newest runs, and is not fixed."""
    if wanted.since is not None:
        since = as_revision(wanted.since)
        cells = DigestSet()
        for pair in diff(location, since, revision).broke:
            cells.add(digest_of_value(pair.either.cell))
        return lambda result: digest_of_value(result.cell) in cells
    newest = None if revision == "@" else revision
    broken = find_broken_results(location, newest)
    labels = read_labels(project.store)
    return lambda result: is_broken(result, broken, labels)

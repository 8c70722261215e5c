"""Builds the history of one test: its versions with their edits and results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from evalstore.comparison.version_diff import (
    Candidates,
    Difference,
    Find,
    Name,
    candidates_after,
    differ_candidates,
)
from evalstore.comparison.word_diff import ChangedLine, diff_lines
from evalstore.core.errors import EvalstoreError
from evalstore.core.results import Result
from evalstore.core.runs import Run
from evalstore.core.values import Case, CaseFile, Json
from evalstore.planning.open_project import open_project, open_store, open_workspace
from evalstore.planning.options import Location, SelectionOptions
from evalstore.planning.path_history import follow_file, name_in_newest_run, name_in_workspace
from evalstore.planning.results import as_result, compute_results
from evalstore.planning.version_reader import VersionReader
from evalstore.results.flips.result_changes import SYSTEM, describe_parts, load_test_parts
from evalstore.results.judgement_changes import differ_evaluators
from evalstore.results.names import PromptNames, label_prompts
from evalstore.store.results import results_of
from evalstore.store.trees.case_chunks import find_same
from evalstore.store.trees.tree_nodes import CaseFinder, RowIndex, find_leaves
from evalstore.workspace.settings.settings import candidate_order

if TYPE_CHECKING:
    from evalstore.planning.project import Project
    from evalstore.store import Store

NEW, GONE = "new", "gone"


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a test, which begins with a run."""

    run: str | None
    """The first run with this version; None if only the workspace has it."""
    started: int
    """The start of that run in microseconds since 1970, UTC."""
    edits: tuple[str, ...]
    """The parts that differ from the previous version, the candidates and the judges that do."""
    verdicts: Mapping[str, tuple[str, ...]]
    """The verdicts by candidate, one for each system prompt."""
    parts: Mapping[str, str]
    """The texts for candidates and evaluators by name of the part; empty if the test is gone."""
    candidates: tuple[str, ...] = ()
    """How candidates and judges are defined differently since the previous version, in words."""
    row: str = ""
    """The label of the row in this version; empty if the test is gone."""
    judged_in: Mapping[str, str] = field(default_factory=dict)
    """The newest run with these verdicts, by candidate."""
    last_run: str | None = None
    """The newest run with results of this version; None without one."""
    prompts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The name of the system prompt of each verdict, by candidate, if there are several."""
    prompt_names: Mapping[int, str] = field(default_factory=dict)
    """The names of the system prompts by their numbers, from 1, if there are several."""


def merge_candidates(versions: Sequence[Version]) -> list[str]:
    """Return the candidates of all versions; each version has them in the order of the settings."""
    merged: list[str] = []
    for version in versions:
        place = len(merged)
        for model in reversed([*version.verdicts]):
            if model not in merged:
                merged.insert(place, model)
            place = merged.index(model)
    return merged


@dataclass(frozen=True, slots=True)
class Edit:
    """The differences in one part of a test."""

    part: str
    hunks: tuple[tuple[ChangedLine, ...], ...]


def versions_of(location: Location, file: str, row: str) -> list[Version]:
    """Return the versions of a case since its first run, newest first; empty without a run."""
    with ExitStack() as stack:
        project: Project | None = None
        with suppress(EvalstoreError):  # errors of the workspace do not matter here
            project = stack.enter_context(open_project(location))
        store = project.store if project else stack.enter_context(open_store(location))
        settings = open_workspace(location).settings
        folder = settings.paths["tests"]
        spans = find_spans(store, name_in_newest_run(project, file) if project else file, folder)
        now = name_in_workspace(project, file) if project else file
        files = store.load_case_files(list({span.node for span in spans if span.node}))
        add_workspace(spans, files, project, now)
        follow_case(spans, files, row, CaseFinder(store))
        add_results(store, spans, file)
        if project and spans and spans[-1].run is None and spans[-1].case:
            spans[-1].results = results_now(project, now, spans[-1].case.row)
        order = candidate_order(settings)
        for span in spans:
            span.results = sorted(span.results, key=lambda result: order(result.model))
        contents = load_test_parts(store, project, [span.case for span in spans if span.case])
        find = VersionReader(store).find
        name, name_of = partial(_prompt_names, project), PromptNames(location, project)
        versions = list(_versions(spans, files, contents, name, find, name_of))
    return versions[::-1]


def edits_between(was: Version | None, now: Version) -> list[Edit]:
    """Return the differences part by part; in the first version everything is new."""
    before = was.parts if was else {}
    edits: list[Edit] = []
    for part in dict.fromkeys((*now.parts, *before)):
        hunks = diff_lines(before.get(part, ""), now.parts.get(part, ""))
        if hunks:
            name = _part_name(part, now, was)
            edits.append(Edit(name, tuple(map(tuple, hunks))))
    return edits


def _part_name(part: str, *versions: Version | None) -> str:
    """Return `system prompt brief` for `system prompt 1`; other parts have their own names."""
    kind, _, number = part.rpartition(" ")
    if kind != SYSTEM:
        return part
    names = (each.prompt_names.get(int(number)) for each in versions if each)
    return next((f"{SYSTEM} {name}" for name in names if name), part)


# --- versions


def _versions(
    spans: Sequence[VersionSpan],
    files: Mapping[str, CaseFile],
    contents: Mapping[str, Json],
    name: Callable[[Mapping[str | None, int]], Mapping[str | None, str]],
    find: Find,
    name_of: Name,
) -> Iterator[Version]:
    begun: list[tuple[VersionSpan, list[str], list[Difference], dict[str, str]]] = []
    before: VersionSpan | None = None
    judged: set[str] = set()
    parts_before: Mapping[str, str] = {}
    for span in spans:
        parts = (
            describe_parts(span.case, contents, files[span.node]) if span.case and span.node else {}
        )
        edits: list[str] = []
        judged |= {result.model for result in span.results}
        candidates: list[Difference] = []
        if before:  # of the candidates, those that were judged until now
            known = (
                *(span.candidates.items() if before.is_limited else ()),
                *before.candidates.items(),
            )
            was = {id: each for id, each in known if id not in span.unnamed}
            candidates = [it for _, it in differ_candidates(was, span.candidates, judged, find)]
        if not span.case:
            edits = [GONE] if before and before.case else []
        elif before is None or not before.case:
            edits = [NEW]
        else:
            names = dict.fromkeys((*parts_before, *parts))
            changed = [part for part in names if parts_before.get(part) != parts.get(part)]
            edits = [part.rstrip("0123456789 ") for part in changed]
            for edit in candidates:
                subject, colon, _ = edit.subject.partition(": ")
                edits.append(f"model of {subject}" if colon else subject)
            if before.judging and span.judging and "models" in span.case.judged_by:
                file = files[span.node or ""]
                judges = differ_evaluators(before.judging, span.judging, find, file, name_of)
                found = {
                    each.cause if each.was or each.now else each.text: Difference(each.text)
                    for each in judges
                }
                edits, candidates = [*edits, *found], [*candidates, *found.values()]
        if edits:
            begun.append((span, edits, candidates, parts))
        elif span.case and begun:
            last = begun[-1][0]  # the version is the same
            span.add_older(last.results, last.judged_in)
            last.results, last.judged_in = span.results, span.judged_in
            last.last_run = span.last_run or last.last_run
        if span.case or (before and before.case):
            before, parts_before = span, parts
    for span, edits, candidates, parts in begun:
        words, prompts, prompt_names = _verdicts(span, name)
        yield Version(
            *(span.run, span.started, tuple(dict.fromkeys(edits)), words, parts),
            tuple(str(edit) for edit in candidates if str(edit) not in edits),
            row=span.case.row if span.case else "",
            judged_in=span.judged_in,
            last_run=span.last_run,
            prompts=prompts,
            prompt_names=prompt_names,
        )


_ByModel = dict[str, tuple[str, ...]]


def _verdicts(
    span: VersionSpan, name: Callable[[Mapping[str | None, int]], Mapping[str | None, str]]
) -> tuple[_ByModel, _ByModel, dict[int, str]]:
    """Return the verdicts on each candidate by system prompt, and the prompts' names.

    The names come by candidate, and by the numbers of the prompts, from 1.
    """
    results_of: dict[str, dict[int, Result]] = {}
    for cell in sorted(span.results, key=lambda cell: cell.prompt_number):
        results_of.setdefault(cell.model, {})[cell.prompt_number] = cell
    shown = {id: number for number, id in enumerate(span.case.prompts if span.case else ())}
    names = name(shown) if len(shown) > 1 else {}
    return (
        {
            id: tuple(result.word or "answered" for result in last.values())
            for id, last in results_of.items()
        },
        {
            id: tuple(names[result.prompt] for result in last.values())
            for id, last in results_of.items()
            if len(last) > 1 and names
        },
        {number + 1: names[prompt] for prompt, number in shown.items() if names},
    )


def _prompt_names(
    project: Project | None, prompts: Mapping[str | None, int]
) -> Mapping[str | None, str]:
    if project is None:
        return {id: "no prompt" if id is None else id[:8] for id in prompts}
    return label_prompts(project, prompts)


# --- groups consecutive runs in which a test was the same, with its results


@dataclass
class VersionSpan:
    """Consecutive runs with the same version of a test file and of its candidates."""

    run: str | None
    started: int
    node: str | None
    candidates: Candidates
    runs: list[Run] = field(default_factory=list)
    """The oldest first; none for the workspace."""
    leaves: list[tuple[str, str]] = field(default_factory=list)
    """The runs with results of the file, oldest first: their ids and the leaves of the results."""
    case: Case | None = None
    results: list[Result] = field(default_factory=list)
    judged_in: dict[str, str] = field(default_factory=dict)
    """The run that has the results, by candidate."""
    last_run: str | None = None
    """The newest run with results of the case."""
    is_limited: bool = False
    """Whether all runs so far were limited to some candidates, so that others are unknown."""
    named: frozenset[str] = frozenset()
    """The candidates that only `-m` has named, for runs since the last one that was not limited."""
    unnamed: frozenset[str] = frozenset()
    """Those of the span before that a run which was not limited lacks: they were not removed."""
    judging: Run | None = None
    """The last run until then with all judges; the judges are the same in all runs of a span."""

    def has_candidates(self, candidates: Candidates) -> bool:
        """Return whether candidates of a later run are the same, as far as they were known."""
        if not self.is_limited:
            return self.candidates == candidates
        return all(candidates.get(id) == known for id, known in self.candidates.items())

    @property
    def lacks_verdicts(self) -> bool:
        """Return whether a candidate has no verdict on the case, with one of its prompts."""
        assert self.case
        judged = {_cell(result) for result in self.results if result.word != "pending"}
        prompts = range(len(self.case.prompts))
        return any((model, prompt) not in judged for model in self.candidates for prompt in prompts)

    def add_older(self, results: Iterable[Result], runs: Mapping[str, str]) -> None:
        """Add older results for the cells without a verdict; `runs` has the run by candidate."""
        known = {_cell(result): result for result in self.results}
        for result in results:
            newer = known.get(_cell(result))
            if newer is None or (newer.word == "pending" and result.word != "pending"):
                known[_cell(result)] = result
                self.judged_in[result.model] = runs[result.model]
        self.results = list(known.values())


def _cell(result: Result) -> tuple[str, int]:
    return result.model, result.prompt_number


def find_spans(store: Store, file: str, folder: str) -> list[VersionSpan]:
    """Return the spans of the runs that have a file, oldest first.

    `file` is its path in the newest of these runs.
    """
    newest_first = store.find_runs()
    runs = newest_first[::-1]
    then = [*follow_file(store, newest_first, file, folder)][::-1]
    places = ((path, run.results) for run, (path, _) in zip(runs, then, strict=True))
    found = find_leaves(places, store.load_nodes)
    leaves = {root: leaf for (_, root), leaf in found.items()}
    spans: list[VersionSpan] = []
    for run, (_, node) in zip(runs, then, strict=True):
        last = spans[-1] if spans else None
        if last is None and node is None:
            continue
        candidates = candidates_after(last.candidates if last else {}, run)
        is_limited = (last is None or last.is_limited) and "models" in run.selection
        named, unnamed = _find_named(last, run)
        known = last.judging if last else None
        has_all = run.origin is None and "evaluators" not in run.selection
        judging = run if has_all else known
        judges = {(it.evaluators, it.verdict_rule) for it in (known, judging) if it}
        is_same = len(judges) < 2 and last is not None and node == last.node
        if last is None or not is_same or not last.has_candidates(candidates):
            last = VersionSpan(run.id, run.started, node, candidates, unnamed=unnamed)
            spans.append(last)
        last.candidates, last.is_limited, last.named = candidates, is_limited, named
        last.judging = judging
        last.runs.append(run)
        if node and run.results in leaves:
            last.leaves.append((run.id, leaves[run.results]))
    return spans


def _find_named(last: VersionSpan | None, run: Run) -> tuple[frozenset[str], frozenset[str]]:
    """Return the candidates that only `-m` has named, and those that it names no longer."""
    candidates = frozenset(candidate.id for candidate in run.candidates)
    if last is None:
        return frozenset(), frozenset()
    if "models" in run.selection:
        return last.named | (candidates - last.candidates.keys()), frozenset()
    return frozenset(), last.named - candidates


def add_workspace(
    spans: list[VersionSpan], files: dict[str, CaseFile], project: Project | None, file: str
) -> None:
    """Add the current version of the file if the newest run has another one."""
    if project is None or (file in project.reading.tests and file not in project.reading.files):
        return
    node = project.reading.nodes.get(file)
    last = spans[-1].node if spans else None
    if node == last or (
        node and last and find_same(node, project.reading.files[file], {last: files[last]})
    ):
        return
    candidates = spans[-1].candidates if spans else {}
    now = VersionSpan(None, 0, node, candidates)
    if node is not None:
        files[node] = project.reading.files[file]
    spans.append(now)


def follow_case(
    spans: Sequence[VersionSpan], files: Mapping[str, CaseFile], row: str, finder: CaseFinder
) -> None:
    """Find the case in each span: by its label in the newest one, then by its values or label."""
    start = next(
        (
            number
            for number in range(len(spans) - 1, -1, -1)
            if _labelled(spans[number], files, row)
        ),
        None,
    )
    if start is None:
        return
    spans[start].case = _labelled(spans[start], files, row)
    for numbers in (range(start - 1, -1, -1), range(start + 1, len(spans))):
        known = spans[start].case
        assert known is not None
        for number in numbers:
            node = spans[number].node
            stored = finder if spans[number].run else None  # that of the workspace may not be
            spans[number].case = (
                RowIndex(files[node], stored).find(known) if node and node in files else None
            )
            known = spans[number].case or known


def _labelled(span: VersionSpan, files: Mapping[str, CaseFile], row: str) -> Case | None:
    if span.node is None or span.node not in files:
        return None
    return next((case for case in files[span.node].cases if case.row == row), None)


def add_results(store: Store, spans: Sequence[VersionSpan], file: str) -> None:
    """Add the results of each span: of each candidate those of the newest run with a verdict.

    Older runs are read only while a candidate of the span has no verdict.
    """
    labels = {number: span.case.row for number, span in enumerate(spans) if span.case}
    waiting = {number: iter(_newest_first(spans[number].leaves)) for number in labels}
    while waiting:
        read = {number: entry for number, left in waiting.items() if (entry := next(left, None))}
        rows: dict[str, set[str]] = {}
        for number, (_, leaf) in read.items():
            rows.setdefault(leaf, set()).add(labels[number])
        results = results_of(store, file, rows) if rows else {}
        for number, (run, leaf) in read.items():
            found = [result for result in results[leaf] if result.row == labels[number]]
            spans[number].last_run = spans[number].last_run or (run if found else None)
            spans[number].add_older(found, {result.model: run for result in found})
        waiting = {number: waiting[number] for number in read if spans[number].lacks_verdicts}


def _newest_first(leaves: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return each leaf once, with the newest run that has it."""
    newest: dict[str, str] = {}
    for run, leaf in leaves[::-1]:
        newest.setdefault(leaf, run)
    return [(run, leaf) for leaf, run in newest.items()]


def results_now(project: Project, file: str, row: str) -> list[Result]:
    """Return the results of a case in the workspace, from stored answers and judgements."""
    from evalstore.planning.planner import make_plan

    with suppress(EvalstoreError):
        plan = make_plan(project, SelectionOptions(paths=(f"{file}::{row}",)))
        settled = compute_results(plan, project.settings.verdict)
        return [
            as_result(result)
            for result in settled
            if (result.cell.file, result.cell.case.row) == (file, row)
        ]
    return []

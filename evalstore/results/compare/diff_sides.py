"""The two sides that `diff` compares: each a run, or the workspace, and cases of these."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby, takewhile
from typing import Any

from evalstore.comparison.comparison import EqualPart, pair_files, pair_results
from evalstore.comparison.pair_groups import PairGroup, PlacedResults
from evalstore.comparison.statistics import Counts
from evalstore.core.batches import in_batches
from evalstore.core.display import WORKSPACE, plural, side_name
from evalstore.core.errors import EvalstoreError, NoTestFileError, NothingSelectedError
from evalstore.core.hashing import DigestSet, digest_of_value
from evalstore.core.runs import Run
from evalstore.core.values import RECORDED, Case, CaseFile, Json, Result
from evalstore.files.fields import suggest
from evalstore.planning.cell_results import as_result
from evalstore.planning.earlier_results import EarlierEntries, EarlierRuns, RunFilter, every_run
from evalstore.planning.open_project import open_catalogue, open_project
from evalstore.planning.options import (
    Location,
    SelectionOptions,
    describe_selection,
    is_chosen_by_verdict,
    is_partial,
)
from evalstore.planning.participants import match_models
from evalstore.planning.path_history import PathHistory
from evalstore.planning.project import Project
from evalstore.planning.selection import (
    Selection,
    Target,
    find_targets,
    split_row,
)
from evalstore.planning.settled_parts import SettledParts, find_settled
from evalstore.planning.status_report import compute_workspace
from evalstore.results.compare.compared_side import OTHER, EqualResults, Side, fill_older_side
from evalstore.results.edits.edits import find_parts
from evalstore.results.log.failures import failed_now
from evalstore.results.names import PromptPlace, settled_places
from evalstore.store import Store
from evalstore.store.results import SourcesReader, iterate_entries
from evalstore.store.revisions import resolve_run
from evalstore.store.rows.row_queries import VerdictsOfCases
from evalstore.store.trees.tree_nodes import StoredCases, read_tree
from evalstore.workspace.reader import read_sources


def read_sides(
    project: Project,
    runs: Sequence[Run],
    selection: SelectionOptions,
    now: Side | None = None,
    *,
    lists_unchanged: bool = False,
) -> tuple[Side, Side]:
    """Return the sides: the first run, and the second one or the workspace (`now`).

    The first one has the paths that its test files have on the second. Results that are equal on
    both are not read, unless some cases are selected; with `lists_unchanged`, just of long files.
    """
    store, folder = project.store, project.settings.paths["tests"]
    is_whole = not (selection.paths or selection.models)
    if len(runs) > 1:
        equal_of = (StoredCases if lists_unchanged else object) if is_whole else None
        return read_runs(store, folder, runs[0], runs[1], equal_of)
    nodes, files = _files_of_workspace(project)
    was = _of_run(store, runs[0])
    was = follow_renames(store, folder, was, Side(WORKSPACE, nodes, files, None))
    settled = None if now else _find_settled(project, selection, was)
    if now is None:
        selected = _in_workspace(project, selection, is_any_renamed=bool(was.former))
        now = workspace_side(project, selected, settled)
    return _with_results(store, was, now.equal), now


def read_runs(
    store: Store,
    folder: str,
    first: Run,
    second: Run,
    equal_of: type | None = object,
) -> tuple[Side, Side]:
    """Return two runs as sides, as `read_sides` does.

    `folder` is that of the test files.
    Equal results are not read of files whose cases are of the class `equal_of`.
    """
    now = _of_run(store, second)
    was = follow_renames(store, folder, _of_run(store, first), now)
    equal = _find_equal(store, was, now, equal_of) if equal_of else EqualResults()
    return _with_results(store, was, equal), _with_results(store, now, equal)


def _of_run(store: Store, run: Run) -> Side:
    """Return a run with its cases, whose results are not read."""
    nodes = read_tree(run.snapshot, store.load_nodes)
    candidates = {candidate.id for candidate in run.candidates}
    return Side(
        run.id,
        nodes,
        store.load_case_files(list(set(nodes.values()))),
        None if run.selection.get("models") else {RECORDED, *candidates},
        entries=read_tree(run.results, store.load_nodes),
        selection=describe_selection(run.selection) if is_partial(run) else "",
        chosen=_choice(run.selection),
        by_verdict=is_chosen_by_verdict(run.selection),
        rule=run.verdict_rule,
        sources=SourcesReader(store).find(run),
    )


def _choice(selection: Mapping[str, Json]) -> Selection | None:
    """Return the paths, tags and names of a stored selection; None without any."""
    paths, tags, excluded = (selection.get(it, ()) for it in ("paths", "tags", "excludeTags"))
    targets = tuple(Target(file.rstrip("/"), row) for file, row in map(split_row, paths))
    chosen = Selection(targets, tuple(tags), tuple(excluded), name=selection.get("name"))
    return None if chosen == Selection() else chosen


def _with_results(store: Store, side: Side, equal: EqualResults) -> Side:
    """Return a run with its results, but for those that are equal on both sides."""
    batches = iterate_entries(store, side.entries, equal.leaves)
    results = PlacedResults(result for batch in batches for result, _ in batch)
    return replace(side, results=results, equal=equal)


def _files_of_workspace(project: Project) -> tuple[dict[str, str], dict[str, CaseFile]]:
    nodes = dict(project.reading.nodes)
    return nodes, {node: project.reading.files[path] for path, node in nodes.items()}


def workspace_side(
    project: Project,
    selection: SelectionOptions | None,
    settled: SettledParts | None = None,
    *,
    is_marked: bool = False,
) -> Side:
    """Return the workspace, with the results of its cases from stored answers and judgements.

    Those of `settled` parts are counted, unless their questions are asked in other parts, too.
    With `is_marked` results whose call failed have a mark. Without a selection it has no results.
    """
    named = {each.name or each.id for each in project.settings.candidates}
    if selection is None:
        sources = read_sources(project.workspace, project.reading)
        return Side(WORKSPACE, *_files_of_workspace(project), named, sources=sources)
    from evalstore.planning.planner import resolve_scope  # two runs are compared without it

    scope = resolve_scope(project, selection, settled=settled)
    candidates, marks = scope.settled.models, is_marked and project.store.count_failures() > 0

    def read() -> Iterator[Result]:
        for plan, cells in compute_workspace(project, scope):
            candidates.update(each.cell.candidate.id for each in cells)
            failed = failed_now(project, plan, cells) if marks else {}
            yield from (as_result(each).marked(failed) for each in cells)

    results = PlacedResults(read())
    models = None if selection.models else candidates
    return Side(
        *(WORKSPACE, *_files_of_workspace(project), models),
        results=results,
        equal=_sum_settled(scope.settled),
        rule=project.settings.verdict,
        left_out=frozenset(named - models) if models is not None else frozenset(),
        sources=read_sources(project.workspace, project.reading),
    )


def side_of_candidates(project: Project, revision: str | None) -> Side:
    """Return a run, or the workspace, to compare its candidates.

    A selection of candidates alone leaves out no case of theirs.
    """
    if revision is None:
        return workspace_side(project, SelectionOptions())
    run = resolve_run(project.store, revision)
    side = _with_results(project.store, _of_run(project.store, run), EqualResults())
    selection = {name: value for name, value in run.selection.items() if name != "models"}
    is_some = is_partial(replace(run, selection=selection))
    return replace(side, selection=describe_selection(selection) if is_some else "")


# --- results that both sides have


def _find_equal(store: Store, was: Side, now: Side, equal_of: type) -> EqualResults:
    """Return the results that two runs have in the same places, of files with such cases."""
    both = {
        path: (leaf, was.entries.get(path, ""))
        for path, leaf in now.entries.items()
        if isinstance(now.files[now.nodes[path]].cases, equal_of)
    }
    leaves = store.find_equal_leaves({path: each for path, each in both.items() if each[1]})
    counts: dict[str, list[VerdictsOfCases]] = {}
    for leaf, of_cases in store.count_verdicts({leaf for each in leaves.values() for leaf in each}):
        counts.setdefault(leaf, []).append(of_cases)
    parts: list[EqualPart] = []
    with_prompts: dict[str, list[str]] = {}
    for path, times in leaves.items():
        clusters, results = Counter[Counts](), 0
        for leaf in times:
            for each in counts[leaf]:
                of_case = Counts(each.judged, each.passed, each.unresolved)
                clusters[of_case] += times[leaf] * each.cases
                results += times[leaf] * each.results
        parts.append(EqualPart(path, results, tuple(clusters.items())))
        for leaf in times:
            with_prompts.setdefault(leaf, []).append(path)
    prompts = [
        PromptPlace(path, prompt, number)
        for leaf, prompt, number in store.find_prompts(with_prompts)
        for path in with_prompts[leaf]
    ]
    return EqualResults(leaves, parts, prompts)


def _find_settled(project: Project, selection: SelectionOptions, was: Side) -> SettledParts:
    """Return the settled parts of the workspace whose results a run has in the same places."""
    found, store = SettledParts(), project.store
    for path, settled in find_settled(project, selection).by_file.items():
        ids = find_parts(store, [was.entries[path]]) if path in was.entries else ()
        same = {first: part for first, part in settled.items() if part.results in ids}
        if not same:
            continue
        files = was.files[was.nodes[path]], project.reading.files[path]
        apart = _find_apart(store, {part.node for part in same.values()}, files)
        kept = {first: part for first, part in same.items() if part.node in apart}
        found.by_file |= {path: kept} if kept else {}
    return found


def _find_apart(store: Store, nodes: set[str], files: Iterable[CaseFile]) -> set[str]:
    """Return those of these parts of two files that share no names with their other cases."""
    listed = [[*file.cases.divide()] for file in files if isinstance(file.cases, StoredCases)]
    orders = [[node for node, _ in parts if node in nodes] for parts in listed]
    if len(orders) != 2 or orders[0] != orders[1]:
        return set()
    smallest = {node: inner for parts in listed for node, inner in parts}
    while nodes:
        others = {each for node in smallest.keys() - nodes for each in smallest[node]}
        apart = store.find_apart({each for node in nodes for each in smallest[node]}, others)
        kept = {node for node in nodes if apart.issuperset(smallest[node])}
        if kept == nodes:
            break
        nodes = kept
    return nodes


def _sum_settled(settled: SettledParts) -> EqualResults:
    """Return the sums of settled parts."""
    leaves = {
        path: {part.results for part in settled.of(path).values()} for path in settled.by_file
    }
    parts = [
        EqualPart(
            path, part.cells, tuple((Counts(*counts), times) for *counts, times in part.clusters)
        )
        for path, _, part in settled.places()
    ]
    return EqualResults(leaves, parts, [*settled_places(settled)])


def only_models(side: Side, models: tuple[str, ...]) -> Side:
    """Return the side with only these candidates; with all of them when none is named."""
    if not models:
        return side
    kept = (result for result in side.results if result.model in models)
    return replace(side, results=PlacedResults(kept))


def follow_renames(store: Store, folder: str, was: Side, now: Side) -> Side:
    """Return the older side, a run, with the file paths of the newer one.

    `folder` is that of the test files.
    """
    pairs: dict[str, str] = {}
    if was.nodes.keys() != now.nodes.keys():
        history = _history_between(store, folder, was, now)
        former = {path: history.name(path) for path in now.nodes}
        pairs = {path: name for path, name in former.items() if name and name != path}
        pairs = {path: name for path, name in pairs.items() if name in was.nodes}
    old = {path: node for path, node in was.nodes.items() if path not in pairs.values()}
    new = {path: node for path, node in now.nodes.items() if path not in pairs}
    pairs |= pair_files(old, new, folder, lambda _: was.files, lambda _: now.files)
    if all(old == new for new, old in pairs.items()):
        return was
    names = {path: f"{path}{OTHER}" if path in now.nodes else path for path in was.nodes}
    names |= {old: new for new, old in pairs.items()}
    return replace(
        was,
        nodes={names[path]: node for path, node in was.nodes.items()},
        entries={names.get(path, path): leaf for path, leaf in was.entries.items()},
        former={name: path for path, name in names.items()},
    )


def _history_between(store: Store, folder: str, was: Side, now: Side) -> PathHistory:
    """Return the paths of the files of one side in the other, a run, by way of the runs between."""
    history = PathHistory(store, folder, now.nodes, now.files)
    last = store.load_run(was.name)
    first = None if now.name == WORKSPACE else store.load_run(now.name)
    is_older = first is None or (first.started, first.id) > (last.started, last.id)
    newer, older = (first, last) if is_older or first is None else (last, first)
    between = takewhile(
        lambda run: run.id != older.id,
        store.find_recent_runs(before=newer, limit=store.count_runs()),
    )
    for run in between if is_older else reversed([*between]):
        history.step(run.snapshot)
    history.step(last.snapshot)
    return history


def real_path(file: str) -> str:
    """Return the path that a file of a side has had, also where another file has it now."""
    return file.removesuffix(OTHER)


# --- cases that a run of a selection left out


def compare_sides(
    store: Store,
    folder: str,
    was: Side,
    now: Side,
    selection: Selection,
    candidates: Callable[[str], Any] = str,
    counts: RunFilter = every_run,
) -> tuple[Side, PairGroup]:
    """Return the older side with the verdicts that it lacks, and its pairs with the newer one.

    `was` is what `follow_renames` returns, and `candidates` the sort key of candidates. Verdicts
    are filled in from earlier runs that count.
    """

    def before(paths: set[str]) -> Iterator[EarlierEntries]:
        runs = EarlierRuns(store, _history_between(store, folder, was, now), counts)
        return runs.before(store.load_run(was.name), paths, limit=store.count_runs())

    filled = was
    if was.name != WORKSPACE and (was.selection or any(was.results.missing)):
        filled = fill_older_side(store, was, now, selection.covers_file, before)
    old = comparable(filled, now, selection, store)
    new = comparable(now, filled, selection, store, is_filled=bool(was.selection))
    return filled, pair_results(filled.results, now.results, old, new, candidates)


def find_candidates(
    model: str, *sides: Side, hint: str = "", besides: Collection[str] = ()
) -> list[str]:
    """Return the candidates of the sides that a name, or a part of a name, means.

    Raises `EvalstoreError` if there is none; `hint` says what to do if the name is right. It cannot
    be meant for one of `besides`.
    """
    candidates = {model for side in sides for model in side.results.model_names}
    if found := match_models(model, sorted(candidates)):
        return found
    names = " or of ".join(dict.fromkeys(side_name(side.name) for side in sides))
    known = {model for side in sides for model in side.models or ()}  # also without a result
    others = (candidates | known - {RECORDED}) - {*besides}
    meant = suggest(model, others, "candidates") if others else ""
    if not meant.startswith("did you mean"):
        meant = "; ".join(filter(None, [meant, hint]))
    raise EvalstoreError(f"'{model}' is not a candidate of {names}", hint=meant)


@contextmanager
def open_sides(
    location: Location, selection: SelectionOptions, *, needs_files: bool
) -> Iterator[Project]:
    """Open the workspace; test files are read and must be valid if one side needs them."""
    if not needs_files:
        with open_catalogue(location) as project:
            yield project
        return
    with open_project(location) as project:
        from evalstore.planning.planner import require_sound

        every = replace(selection, paths=(), keep_going=True)
        require_sound(project, _in_workspace(project, selection) or every)
        yield project


def _in_workspace(
    project: Project, selection: SelectionOptions, *, is_any_renamed: bool = False
) -> SelectionOptions | None:
    """Return a selection with those of its paths that the workspace has; None if it has none.

    Instead of an unknown row its file is selected: the row may have another label in a run. All is
    selected if a path may be the former one of a file.
    """
    kept: list[str] = []
    for path in selection.paths:
        try:
            project.targets((path,))
            kept.append(path)
        except NothingSelectedError:
            kept.append(split_row(path)[0])
        except NoTestFileError:
            if is_any_renamed:
                return replace(selection, paths=())
    return replace(selection, paths=tuple(kept)) if kept or not selection.paths else None


# --- finds the results of a side of a comparison whose cases the other side has run, too


def comparable(
    side: Side, other: Side, selection: Selection, store: Store, *, is_filled: bool = False
) -> Sequence[int]:
    """Return the numbers of the selected results, without cases that the other side did not run.

    Results that the other side lacks although it is filled in are the first ones: they stay.
    Results with a system prompt that the case had not on the other side stay: it is new or gone.
    """
    results = side.results
    is_unplaced = results.find_unplaced(other.results)
    is_selected = [selection.covers_file(name) for name in results.file_names]
    is_asked = [other.models is None or name in other.models for name in results.model_names]
    nodes = [other.nodes.get(name, "" if other.chosen else None) for name in results.file_names]
    unpaired: dict[str, array[int]] = {}
    """Results without a partner, by the node of the cases of the other side; empty: it has none."""
    selected = array("l")
    for number, file in enumerate(results.files):
        if not is_selected[file]:
            continue
        selected.append(number)
        node = nodes[file]
        if (
            node is not None
            and is_asked[results.models[number]]
            and is_unplaced[number]
            and not is_filled
        ):
            unpaired.setdefault(node, array("l")).append(number)
    left_out = {
        number
        for node, numbers in unpaired.items()
        for some in in_batches(numbers)
        for number in _find_left_out(side, some, other, other.files.get(node), store)
    }
    return array("l", (number for number in selected if number not in left_out))


def _find_left_out(
    side: Side, numbers: Sequence[int], other: Side, file: CaseFile | None, store: Store
) -> Iterator[int]:
    """Yield those whose cases, with their system prompts, the other side has or did not choose."""
    listed = side.results.read(numbers)
    names = {text for result in listed for _, text in _names(result)}
    cases = store.find_named_cases(file, names) if file else ()
    rows = {name: case.prompts for case in cases for name in _names(case)}
    chosen: dict[tuple[str, str], bool] = {}
    """Whether the other side has chosen what was a case of a file, by its file and its key."""
    if other.chosen:
        is_chosen = other.chosen.matcher()
        for path in {result.file for result in listed} & side.nodes.keys():
            former = store.find_named_cases(side.files[side.nodes[path]], names)
            chosen |= {(path, case.key): is_chosen(real_path(path), case) for case in former}
    for number, result in zip(numbers, listed, strict=True):
        had = (rows.get(name) for name in _names(result))
        if not chosen.get((result.file, result.key), True) or any(
            prompts and (result.prompt in prompts or result.prompt_number < len(prompts))
            for prompts in had
        ):
            yield number


def _names(row: Case | Result) -> tuple[tuple[str, str], ...]:
    return ("key", row.key), ("row", row.row)


def select_cases(project: Project, paths: tuple[str, ...], *sides: Side) -> Selection:
    """Return the cases of the sides that the paths select; raises `EvalstoreError`.

    The last side is the newer one. A row may be one of either side, by its label there.
    """
    if not paths:
        return Selection()
    targets: dict[Target, None] = {}
    problem: NoTestFileError | NothingSelectedError | None = None
    for order in (sides, sides[::-1])[: len(sides)]:
        try:
            if order[-1].name == WORKSPACE:
                targets.update(dict.fromkeys(project.targets(paths)))
            else:  # also by former paths, with the rows that the last side has
                files = {
                    path: side.files[node]
                    for side in order
                    for path, node in side.nodes.items()
                    if not path.endswith(OTHER)
                }
                former = (pair for side in order for pair in side.former.items())
                renamed = [(old, new) for new, old in former if new in files and old not in files]
                files |= {old: files[new] for old, new in renamed}
                place = project.location, project.workspace
                found = find_targets(*place, files.keys(), files, paths)
                targets.update(dict.fromkeys(found))
                for each in found:
                    moved = (replace(each, path=new) for old, new in renamed if each.covers(old))
                    targets.update(dict.fromkeys(moved))
        except (NoTestFileError, NothingSelectedError) as error:
            problem = problem or error
    if problem and not targets:
        raise problem
    return Selection(tuple(targets))


def only_rows(selected: Selection, *sides: Side) -> tuple[Side, ...]:
    """Return the sides with only the results of the selected rows, and of what they were before.

    All results stay if no path names a row.
    """
    if not selected.is_by_row:
        return sides
    keys = {
        (result.file, result.key)
        for side in sides
        for result in side.results
        if result.key and selected.covers_row(result.file, result.row)
    }
    return tuple(
        replace(
            side,
            results=PlacedResults(
                result
                for result in side.results
                if selected.covers_row(result.file, result.row) or (result.file, result.key) in keys
            ),
        )
        for side in sides
    )


# --- why results are only on one side: of a candidate, a file or a row


_NAMED = 2
"""The most candidates, or files, that are named."""


@dataclass(frozen=True, slots=True)
class Causes:
    """What only one side of a comparison has: the results of it are new, or gone."""

    candidates: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    rows: int = 0
    """How many rows of other files there are."""

    def texts(self, change: str) -> list[str]:
        """Return why results are `new` or `gone`, such as `candidate mini not asked`."""
        new = "new " * (change == "new")

        def listed(noun: str, names: Sequence[str], gone: str) -> list[str]:
            texts = [f"{new}{noun} {it}" for it in names]
            texts = texts if len(names) <= _NAMED else [plural(len(names), f"{new}{noun}")]
            return [f"{it}{gone * (not new)}" for it in texts]

        found = listed("candidate", self.candidates, " not asked")
        found += listed("file", self.files, " removed")
        rows = f"{plural(self.rows, f'{new}row')}{' removed' * (not new)}"
        return [*found, rows] if self.rows else found


def find_causes(results: Iterable[Result], other: Side, store: Store) -> Causes:
    """Return what the other side lacks of these results, which are by file."""
    candidates: dict[str, None] = {}
    files: dict[str, None] = {}
    rows = DigestSet()
    count = 0
    models = None if other.models is None else {*other.models, *other.left_out, RECORDED}
    for file, of_file in groupby(results, key=lambda result: result.file):
        node = other.nodes.get(file)
        if node is None:
            files[real_path(file)] = None
        for batch in in_batches(of_file):
            for result in batch:
                if models is not None and result.model not in models:
                    candidates[result.model] = None
            names = {name for result in batch for name in (result.key, result.row)}
            cases = store.find_named_cases(other.files[node], names) if node else ()
            known = {name for case in cases for name in (case.key, case.row)}
            for result in batch if node else ():
                if known.isdisjoint((result.key, result.row)):
                    count += rows.add(digest_of_value((file, result.row)))
    return Causes(tuple(candidates), tuple(files), count)

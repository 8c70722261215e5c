"""The command `log`: the runs, or the history of one test file, or of one of its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, dropwhile, pairwise
from typing import NamedTuple

from evalstore.comparison.version_diff import Difference, Name
from evalstore.core import clock
from evalstore.core.clock import iso, read_moment
from evalstore.core.display import clip, short
from evalstore.core.errors import EvalstoreError, RevisionError
from evalstore.core.runs import Run
from evalstore.core.values import Case, CaseFile, Json, order_counts
from evalstore.files.fields import suggest
from evalstore.files.json_output import to_json
from evalstore.planning.earlier_results import RecentRuns
from evalstore.planning.first_pushes import FirstPush, find_first_pushes
from evalstore.planning.open_project import open_project, open_store, open_workspace
from evalstore.planning.options import Location, describe_selection
from evalstore.planning.path_history import compare_sources, follow_file, name_in_newest_run
from evalstore.planning.project import VersionReader
from evalstore.planning.selection import find_row_in, name_file, no_run_has, split_row
from evalstore.results.edits.edited_files import find_run_edits
from evalstore.results.edits.edited_sources import RENAMED, find_edits
from evalstore.results.flips.verdict_changes import ComparedPart, Outcome, find_verdict_changes
from evalstore.results.judgement_changes import ParticipantHistory
from evalstore.results.names import PromptNames, prompts_of
from evalstore.store import Store
from evalstore.store.events import RUNS_SEARCHED
from evalstore.store.results import SourcesReader, iterate_entries, results_of
from evalstore.store.revisions import (
    RunInProgressError,
    RunTag,
    add_tag,
    as_revision,
    names_of_runs,
    read_tags,
    require_name,
    resolve_run,
)
from evalstore.store.rows.row_queries import VerdictCounts
from evalstore.store.schema.table_definitions import RUNS
from evalstore.store.trees.case_chunks import find_same
from evalstore.store.trees.tree_nodes import (
    RowIndex,
    find_entry,
    find_leaves,
    read_tree,
)
from evalstore.workspace.git.status import name_of_user


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A run; with a file, one that changed the file or its verdicts."""

    run: Run
    verdicts: Mapping[str, int]
    """The counts of the verdicts of the run; with a file, those of its cells."""
    edits: tuple[Difference, ...] = ()
    """What was edited since the runs before: test files, system prompts, candidates and evaluators;
    with a file, its own edits in full and labels. An edit belongs to the first run that judged it,
    none to a run that only changed verdicts."""
    is_covered: bool = True
    """Whether the run has results of the file, or of the row."""
    no_edit: str = ""
    """With a file, why verdicts on it changed without an edit: `asked again`."""
    outcome: Outcome | None = None
    """How many results broke and were fixed since they were judged before; None: not computed."""
    push: FirstPush | None = None
    """Who pushed the run; None for a run of this machine."""
    names: tuple[str, ...] = ()
    """The names that `tag` gave the run."""
    part: ComparedPart | None = None
    """With a file, what of the run is compared with earlier runs."""

    def document(self) -> Json:
        """Return the entry as JSON."""
        run, git = self.run, self.run.git
        return {
            "run": run.id,
            "started": iso(run.started),
            "ended": iso(run.ended),
            "message": run.message,
            "selection": describe_selection(run.selection) or None,
            "status": run.status,
            "asked": run.asked,
            "recorded": run.recorded,
            "judged": run.judged,
            "reused": run.reused,
            "verdicts": self.verdicts,
            "cost": run.cost,
            "gitCommit": git.commit if git else None,
            "gitDirty": git.dirty if git else None,
            **({"author": run.author} if run.author else {}),
            **({"cases": run.cases._asdict()} if run.cases else {}),
            **({"names": list(self.names)} if self.names else {}),
            **({"push": to_json(self.push)} if self.push else {}),
            **({"edits": to_json(self.edits)} if self.edits else {}),
            **(dict(zip(("broke", "fixed"), self.outcome, strict=False)) if self.outcome else {}),
        }


_MOST_RUNS = 50
"""The most runs whose verdicts are compared with those before."""
MOST_COMPARED = 20_000
"""About the most results of them that are compared, so that the list comes at once."""
_MOST_SEARCHED = 300
"""About the most runs that are looked at for earlier verdicts: all, for each that has new cases."""


@dataclass
class Log:
    """Runs, newest first."""

    JSON_FIELDS = ("entries", "total")
    entries: list[LogEntry] = field(metadata={"json_name": "runs"})
    total: int
    file: str | None = None
    row: str | None = None
    """The row of the file, as it was named."""
    others: int = 0
    """With a file, how many runs changed neither it nor its verdicts, and are left out."""
    compared: int | None = None
    """How many of the newest entries are compared with the runs before; None: all of them."""
    bounds: dict[str, int] = field(default_factory=dict)
    """The first moment of `since`, and that of `before`."""


def log(
    location: Location,
    file: str | None = None,
    limit: int | None = None,
    *,
    since: str | None = None,
    until: str | None = None,
) -> Log:
    """Return the runs; with a file, those that changed it or its verdicts, with its edits.

    `FILE::ROW` is a row of it. Only runs after `since` and before `until`, each a date or a run.
    Raises `NothingSelectedError` for a row that no run has.
    """
    with open_store(location) as store:
        bounds: dict[str, int] = {}
        for name, text, offset in (("since", since, 1), ("before", until, 0)):
            if text is not None:  # a run that is named is not listed
                if (moment := read_moment(text)) is None:
                    moment = resolve_run(store, as_revision(text)).started + offset
                bounds[name] = moment
        if file is None:
            runs = store.find_runs(limit=limit, **bounds)
            names = names_of_runs(store)
            pushes = find_first_pushes(location, RUNS.name, [run.id for run in runs])
            edits = find_run_edits(location, store, runs)
            entries = [
                LogEntry(
                    run,
                    order_counts(run.verdicts),
                    edited,
                    push=pushes.get(run.id),
                    names=names.get(run.id, ()),
                )
                for run, edited in zip(runs, edits, strict=True)
            ]
            entries, compared = add_outcomes(location, store, entries)
            return Log(entries, store.count_runs(**bounds), compared=compared, bounds=bounds)
        workspace = open_workspace(location)
        file, row = split_row(file)
        name = name_file(location, workspace, file)
        folder = workspace.settings.paths["tests"]
        path, newest = name, store.find_runs(limit=1)
        if newest and not find_entry([newest[0].snapshot], name, store.load_nodes):
            with suppress(EvalstoreError), open_project(location) as project:
                path = name_in_newest_run(project, name)
        prompts = PromptNames(location)
        find_row = None if row is None else partial(find_row_in, path, row)
        entries = find_logged_changes(store, path, folder, prompts, find_row)
        pushes = find_first_pushes(location, RUNS.name, [entry.run.id for entry in entries])
        entries = [replace(entry, push=pushes.get(entry.run.id)) for entry in entries]
        if not entries:
            last = store.find_run_before()
            files = read_tree(last.snapshot, store.load_nodes) if last else {}
            problem = no_run_has(workspace, name, files)
            try:  # it may be the name of a run
                resolve_run(store, name)
            except RunInProgressError:
                raise
            except EvalstoreError:
                raise problem from None
            raise EvalstoreError(str(problem), hint=f"'evalstore show {name}' shows a run")
        others = store.count_runs() - len(entries)
        low, high = bounds.get("since"), bounds.get("before")
        entries = [
            entry
            for entry in entries
            if (low is None or entry.run.started >= low)
            and (high is None or entry.run.started < high)
        ]
        listed, compared = add_outcomes(location, store, entries[:limit])
        return Log(listed, len(entries), name, row, others, compared, bounds)


def add_outcomes(
    location: Location, store: Store, entries: Sequence[LogEntry]
) -> tuple[list[LogEntry], int | None]:
    """Return runs, the newest of them with how many results broke and were fixed.

    And how many of the runs were compared; None if all were.
    """
    folder = open_workspace(location).settings.paths["tests"]
    listed = list(entries)
    left = MOST_COMPARED
    newest = entries[0].run if entries else None
    recent = RecentRuns(store, newest, _MOST_RUNS + RUNS_SEARCHED) if newest else None
    for number, entry in enumerate(entries):
        left -= sum(entry.verdicts.values())
        is_enough = recent is not None and recent.searched > _MOST_SEARCHED
        if left < 0 or number == _MOST_RUNS or is_enough:
            return [
                *listed[:number],
                *(replace(it, outcome=None) for it in entries[number:]),
            ], number
        if (entry.is_covered and entry.outcome is None) and (
            changes := find_verdict_changes(store, folder, entry.run, recent, entry.part)
        ):
            outcome = changes.outcome
            if any(outcome) and not (outcome.causes or entry.edits or entry.part):
                outcome = outcome._replace(causes=("by earlier edits",))
            listed[number] = replace(entry, outcome=outcome)
    return listed, None


# --- the command `tag`: gives names to runs, which `push` and `pull` copy


def list_tags(location: Location) -> list[RunTag]:
    """Return the names of runs."""
    with open_store(location) as store:
        return [*read_tags(store).values()]


def tag_run(location: Location, name: str, revision: str = "@") -> tuple[RunTag, RunTag | None]:
    """Give a name to a run; return also the run that had it. Raises `RevisionError`."""
    require_name(name)
    with open_store(location) as store:
        run = resolve_run(store, revision).id
        before = read_tags(store).get(name)
        at = max(clock.now(), before.at + 1 if before else 0)  # also if the clock was set back
        tag = RunTag(name, run, at, name_of_user(location.directory), is_removed=False)
        add_tag(store, tag)
        return tag, before


def untag(location: Location, name: str) -> list[RunTag]:
    """Remove a name; raises `RevisionError` if no run has it."""
    with open_store(location) as store:
        tags = read_tags(store)
        if name not in tags:
            raise RevisionError(f"no run is called '{name}'", hint=suggest(name, tags, "names"))
        at = max(clock.now(), tags[name].at + 1)
        tag = replace(tags[name], at=at, by=name_of_user(location.directory), is_removed=True)
        add_tag(store, tag)
        return [tag]


# --- the history of a test file, or of one of its rows


FindRow = Callable[[Sequence[CaseFile]], tuple[str, int]]
"""From the versions of a file, newest first, to the label of a row and the number of a version."""


_NO_COUNTS = order_counts(Counter())


@dataclass
class _Version:
    """A version of a test file: consecutive runs in which its cases are the same."""

    run: Run
    """The first of these runs."""
    path: str
    node: str
    results: list[tuple[Run, str]] = field(default_factory=list)
    """The runs that covered the file, oldest first, with the leaves of its results."""
    rows: dict[str, set[str]] = field(default_factory=dict)
    """The labels of the rows in each of these leaves."""


def find_logged_changes(
    store: Store, file: str, folder: str, names: PromptNames, find_row: FindRow | None = None
) -> list[LogEntry]:
    """Return the runs that changed a test file or its verdicts, newest first.

    An edit belongs to the first run with results of the edited file: a run of other files keeps
    the file in its snapshot, but does not judge it. If no run judged it, it belongs to the first
    run with the edited file. Candidates count if they have results of the file. `file` is its path
    in the newest run, `folder` that of the test files. With `find_row`, the same of a row alone.
    """
    seen, removed, gone = _find_runs(store, file, folder)
    files = store.load_case_files(list({node for _, _, node, _ in seen}))
    if find_row and seen:
        followed = follow_row([node for _, _, node, _ in seen], files, store, find_row)
        files = {node: replace(files[node], cases=followed[node]) for node in files}
        first = next(number for number, entry in enumerate(seen) if followed[entry[2]])
        seen = seen[first:]
    is_row = find_row is not None
    versions = list(_group(seen, files, removed, is_row=is_row))
    rows = {leaf: labels for version in versions for leaf, labels in version.rows.items()}
    if is_row:
        results = results_of(store, file, rows)
        counts = {
            leaf: Counter((it.model, it.verdict) for it in of) for leaf, of in results.items()
        }
        sums: Mapping[str, object] = {
            leaf: Counter((it.prompt_number, it.model, it.verdict) for it in of)
            for leaf, of in results.items()
        }
        for version in versions:
            if files[version.node].cases:
                version.results = [each for each in version.results if counts[each[1]]]
    else:
        counts, sums = count_leaves(store, rows), sum_leaves(store, rows)
    newest_first = dict.fromkeys(version.node for version in reversed(versions))
    names.expect(prompts_of(files[node] for node in newest_first))
    edits = _find_edits(store, versions, files, names, removed)
    participants = ParticipantHistory(VersionReader(store).find, names)
    has_labels, last, pending = bool(store.find_labels()), "", 0
    changes: list[LogEntry] = []
    for version, differences in zip(versions, edits, strict=True):
        if version.run.id in removed:
            changes.append(_removed(removed[version.run.id], version.path))
        if not version.results:
            changes.append(LogEntry(version.run, _NO_COUNTS, differences, is_covered=False))
        traits = store.find_traits(files[version.node])
        judged: set[str] = set()
        for number, (run, leaf) in enumerate(version.results):
            now: Counter[str] = Counter()
            models: set[str] = set()
            for (model, verdict), count in counts[leaf].items():
                now[verdict or PENDING] += count
                models.add(model)
            edited = () if number else differences
            late = models - judged
            if number and differences:
                since = f"since the edit in run {short(version.results[0][0].id)}"
                edited = tuple(
                    Difference(f"first results of {it} {since}")
                    for it in sorted(late & participants.models)
                )
            judged |= models
            part = ComparedPart(version.path, version.rows[leaf])
            compared = None
            if last not in ("", leaf) and (has_labels or sums[leaf] != sums[last]):
                compared = find_verdict_changes(store, folder, run, None, part)
                edited += tuple(map(Difference, sorted(compared.labels if compared else ())))
            is_judged = now[PENDING] < pending and _are_judged(store, last, leaf, part.rows)
            last, pending = leaf, now[PENDING]
            if now:
                found = participants.step(
                    run,
                    models,
                    file=files[version.node],
                    with_temperature=traits.default_temperature,
                    with_evaluators=traits.judged_by_models,
                )
                edited += tuple(edit for _, edit in found)
            has_others = compared is not None and compared.has_other_verdicts
            if not number or edited or late or is_judged or has_others:
                no_edit = ""
                if not edited:
                    joined = ", ".join(clip(name, 40) for name in sorted(late))
                    causes = {cause for cause, _ in compared.change_causes} if compared else set()
                    reasons = (
                        ", ".join(sorted(filter(None, causes))),
                        f"first results of {joined}" * bool(late),
                        "pending results, now judged" * is_judged,
                    )
                    no_edit = next(filter(None, reasons), "other results")
                entry = LogEntry(run, order_counts(now), edited, no_edit=no_edit, part=part)
                changes.append(replace(entry, outcome=compared.outcome if compared else None))
    return [*([_removed(gone, file)] if gone and changes else []), *changes[::-1]]


def _removed(run: Run, file: str) -> LogEntry:
    return LogEntry(run, _NO_COUNTS, (Difference("removed"),), part=ComparedPart(file, ()))


def follow_row(
    nodes: Sequence[str], files: Mapping[str, CaseFile], store: Store, find_row: FindRow
) -> dict[str, tuple[Case, ...]]:
    """Return the case of a row in each version of a file, none where it is absent.

    `nodes` are the versions, oldest first. The row is that of the newest version with the label
    that is looked for, else of the newest one; its older and newer versions have its values, or
    its label.
    """
    distinct = list(dict.fromkeys(nodes[::-1]))
    label, start = find_row([files[node] for node in distinct])
    named = store.find_named_cases(files[distinct[start]], {label})
    case = next(case for case in named if case.row == label)
    followed: dict[str, tuple[Case, ...]] = {}
    for numbers in (range(start, len(distinct)), range(start - 1, -1, -1)):
        known = case
        for number in numbers:
            found = RowIndex(files[distinct[number]], store).find(known)
            followed[distinct[number]] = (found,) if found else ()
            known = found or known
    return followed


_Seen = tuple["Run", str, str, str | None]
"""A run with the path of the file then, its node, and the leaf of its results if it covered it."""


class SeenRun(NamedTuple):
    """A run, and what it has of a test file."""

    run: Run
    path: str
    """That of the file then."""
    node: str | None
    """Its cases; None if it was absent."""
    leaf: str | None
    """Its results, if the run covered it."""


def follow_runs(store: Store, file: str, folder: str) -> list[SeenRun]:
    """Return the runs, oldest first, from the first that has a test file on.

    `file` is its path in the newest of those that have it.
    """
    runs = store.find_runs()
    followed = [*follow_file(store, runs, file, folder)]
    both = zip(runs, followed, strict=True)
    covered = ((path, run.results) for run, (path, node) in both if node is not None)
    leaves = find_leaves(covered, store.load_nodes)
    seen = [
        SeenRun(run, path, node, leaves.get((path, run.results)) if node else None)
        for run, (path, node) in zip(reversed(runs), reversed(followed), strict=True)
    ]
    return [*dropwhile(lambda each: each.node is None, seen)]


def _find_runs(
    store: Store, file: str, folder: str
) -> tuple[list[_Seen], dict[str, Run], Run | None]:
    """Return the runs that have a test file, oldest first, and the first runs without it.

    These are by the id of the run that has the file again, and the one since which it is gone.
    """
    seen: list[_Seen] = []
    removed: dict[str, Run] = {}
    gone: Run | None = None
    for run, path, node, leaf in follow_runs(store, file, folder):
        if node is not None:
            if gone:
                removed[run.id], gone = gone, None
            seen.append((run, path, node, leaf))
        elif run.origin is None:
            gone = gone or run
    return seen, removed, gone


def _group(
    seen: Iterable[_Seen], files: Mapping[str, CaseFile], removed: Container[str], *, is_row: bool
) -> Iterator[_Version]:
    """Yield the versions of a test file, or of one of its rows, oldest first."""

    def is_same(was: str, now: str) -> bool:
        if is_row:
            return _without_labels(files[was]) == _without_labels(files[now])
        return bool(find_same(now, files[now], {was: files[was]}))

    def has_case(node: str) -> bool:
        return not is_row or bool(files[node].cases)

    version: _Version | None = None
    for run, path, node, leaf in seen:
        is_renamed = version is not None and version.path != path and has_case(node)
        is_back = run.id in removed
        if version is None or is_renamed or is_back or not is_same(version.node, node):
            if version:
                yield version
            version = _Version(run, path, node)
        if leaf:
            version.results.append((run, leaf))
            version.rows[leaf] = {case.row for case in files[node].cases} if is_row else set()
    if version:
        yield version


def _without_labels(file: CaseFile) -> CaseFile:
    """Return a file without what changes no id: the labels and tags of its cases."""
    cases = tuple(case._replace(row="", key="", tags=()) for case in file.cases)
    return replace(file, cases=cases)


def _find_edits(
    store: Store,
    versions: list[_Version],
    files: Mapping[str, CaseFile],
    name: Name,
    removed: Container[str],
) -> Iterator[tuple[Difference, ...]]:
    """Yield the edits of each version since the previous one."""
    pairs = list(pairwise(versions))
    compared = {now.run.id: (files[was.node], files[now.node]) for was, now in pairs}
    find = SourcesReader(store).find
    changes = {
        now.run.id: compare_sources(find(last), find(now.run), now.path, was.path)
        for was, now in pairs
        for last in [was.results[-1][0] if was.results else was.run]
    }
    edits = find_edits(VersionReader(store), compared, store, name, changes)
    if versions:
        yield (Difference("new"),)
    for was, now in pairs:
        differences = edits[now.run.id]
        if was.path != now.path:
            differences = [Difference(RENAMED, was.path, now.path), *differences]
        if now.run.id in removed:
            differences = [Difference("restored"), *differences]
        yield tuple(differences or [Difference("no change in content")])


def _are_judged(store: Store, was: str, now: str, rows: Collection[str]) -> bool:
    """Return whether pending results of a leaf have a verdict in another one, of some or all rows.

    Results of other rows have other verdicts, too, but do not tell of these.
    """
    old, new = (chain.from_iterable(iterate_entries(store, {"": it})) for it in (was, now))
    pending = {it.cell for it, _ in old if it.is_missing and (not rows or it.row in rows)}
    return any(it.verdict and it.cell in pending for it, _ in new)


PENDING = "pending"


def count_leaves(store: Store, leaves: Collection[str]) -> dict[str, VerdictCounts]:
    """Return how many results each of these leaves of files has, by candidate and verdict."""
    parts = _find_parts(store, leaves)
    counts = store.count_by_candidate({*chain.from_iterable(parts.values())})
    return {
        leaf: sum((counts[part] for part in of if part in counts), VerdictCounts())
        for leaf, of in parts.items()
    }


def sum_leaves(store: Store, leaves: Collection[str]) -> dict[str, int]:
    """Return equal numbers for those of these leaves of files with equal verdicts on all cases."""
    parts = _find_parts(store, leaves)
    sums = store.sum_verdicts({*chain.from_iterable(parts.values())})
    return {leaf: sum(sums[part] for part in of) for leaf, of in parts.items()}


def _find_parts(store: Store, leaves: Collection[str]) -> dict[str, list[str]]:
    levels = store.find_levels(leaves)
    return {
        leaf: [leaf] if levels.get(leaf) == 0 else [it.id for it in store.find_result_leaves(leaf)]
        for leaf in leaves
    }

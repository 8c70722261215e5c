"""Compares each case of a run with the newest earlier run that judged it; what is still broken."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from heapq import merge
from itertools import chain, groupby, islice
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from evalstore.comparison.comparison import OTHER_JUDGEMENT, Pair, numbers_now, sort_pair
from evalstore.comparison.pair_groups import (
    OLDER,
    CellMarks,
    GrowingResults,
    age_of_answers,
    cause_texts,
    find_same_answers,
    has_equal_texts,
    same_answer_text,
    sessions_of,
    sessions_to_compare,
    unpack_result,
)
from evalstore.core.batches import in_batches
from evalstore.core.display import (
    BROKEN_PENDING,
    NEWEST_RUNS,
    STILL_BROKEN,
    WORKSPACE,
    StyledLine,
    StyledSpan,
    case_name,
    plural,
    short,
)
from evalstore.core.runs import Run
from evalstore.core.values import Case, CellKey, ComparedSession, Json, Result
from evalstore.files.temporary_list import keep_values
from evalstore.planning.earlier_results import (
    EarlierRuns,
    FollowedResult,
    RecentRuns,
    find_cells,
    is_judged,
)
from evalstore.planning.open_project import open_store, open_workspace
from evalstore.planning.options import Location, is_partial
from evalstore.planning.path_history import PathHistory
from evalstore.planning.project import Project, VersionReader
from evalstore.results.compare.diff_result import FLIPS, Diff
from evalstore.results.edits.edits import (
    AS_LABEL,
    LABELLED,
    is_judged_otherwise,
    judgement_changes,
    label_cause,
    people_of,
)
from evalstore.results.labels import LabelIndex, read_labels
from evalstore.results.names import name_prompts
from evalstore.store import Store
from evalstore.store.results import RowResults, iterate_cases, iterate_entries
from evalstore.store.trees.tree_nodes import RowIndex, read_tree
from evalstore.workspace.folder import WorkspaceFolder

BrokenResults: TypeAlias = "Set[CellKey]"
"""The places of the results that broke."""


def is_broken(result: Result, broken: BrokenResults, labels: LabelIndex) -> bool:
    """Return whether a result broke and does not pass, by a later label or otherwise."""
    return result.cell in broken and result.verdict != "pass" and labels.word(result) != "pass"


class BrokenCase(NamedTuple):
    """A case that broke, and has not been fixed in a later run."""

    name: str
    """The case, with its system prompt where the file has several, and its candidate."""
    result: Result
    run: str
    """The run in which it broke; empty if that was since the last run, without a call."""
    started: int
    """When the run started: microseconds since 1970, UTC; 0 without one."""


def find_broken_cases(
    location: Location,
    workspace: WorkspaceFolder,
    now: Collection[Result] = (),
    project: Project | None = None,
    until: Run | None = None,
) -> dict[CellKey, BrokenCase]:
    """Return the cases that broke in the newest runs and that no later run has passed.

    Those are left out, too, whose newest answer in these runs was labelled as a pass. First come
    those that broke `now`, since the last run. The keys are places in the newest run; with a
    `project`, those in its files. With `until`, that run is the newest, and later labels do not
    count.
    """
    broken: dict[CellKey, tuple[Run, Result]] = {}
    newest = {result.cell: result for result in now}
    """The results that did not pass, in the newest run that had them."""
    since = frozenset(newest)
    fixed: set[CellKey] = set()
    folder = workspace.settings.paths["tests"]
    with open_store(location) as store:
        places: _Places | None = None
        labels: LabelIndex | None = None
        earlier = store.find_recent_runs(before=until, limit=NEWEST_RUNS)
        for run in islice(chain([until] if until else [], earlier), NEWEST_RUNS):
            if places is None:
                places = _Places(store, folder, run, project)
                known = read_tree(run.snapshot, store.load_nodes)
                broken = {it: (run, newest[it]) for it in newest if newest[it].file in known}
            changes = find_verdict_changes(store, folder, run)
            if changes is None:
                continue
            failures = [*changes.broke]  # first: `broken` takes them by their number
            if not until:
                failures += [*changes.undecided, *changes.failed_again]
            passed = chain(changes.fixed, changes.passed)
            cells = places.find(run, [it.cell for it in chain(failures, passed)])
            for result, cell in zip(failures, cells, strict=False):
                newest.setdefault(cell, result)
            if changes.broke and not until:
                labels = labels or read_labels(store)
            for result, cell in zip(changes.broke, cells, strict=False):
                if labels and labels.word(newest[cell]) == "pass":
                    continue
                if cell not in fixed and cell not in broken:
                    broken[cell] = run, result
            fixed.update(cells[len(failures) :])
        prompts = name_several_prompts(location, store, [*broken.values()])
    cases = {}
    for (cell, (run, result)), prompt in zip(broken.items(), prompts, strict=True):
        file, row, _, model = cell
        name = f"{case_name(file, row, prompt)} {model}"
        began = ("", 0) if cell in since else (run.id, run.started)
        cases[cell] = BrokenCase(name, result, *began)
    return cases


def by_title(breaks: Sequence[BrokenCase]) -> dict[str, list[BrokenCase]]:
    """Return those that do not pass, and those that are pending, by the titles of their lists."""
    titles = {STILL_BROKEN: False, BROKEN_PENDING.capitalize(): True}
    return {
        title: [it for it in breaks if (it.result.word == "pending") == is_pending]
        for title, is_pending in titles.items()
    }


def find_earlier_breaks(
    location: Location,
    project: Project,
    run: Run,
    compared: Diff | None,
    batches: Iterable[Sequence[tuple[Result, Case]]] = (),
) -> list[BrokenCase] | None:
    """Return the results of a run, or of the workspace, that broke before and are not fixed.

    What broke or became undecided as `compared`, with the run before, is left out. None if it is
    with another run. `batches` are the results of the workspace.
    """
    store, stored = project.store, None if run.id == WORKSPACE else run
    before = store.find_run_before(stored)
    if compared is None or before is None or compared.was != before.id:
        return None
    opened = None if stored else project
    cases = find_broken_cases(location, project.workspace, project=opened, until=stored)
    for pair in chain(compared.broke, compared.comparison.now_undecided):
        cases.pop(pair.either.cell, None)
    if not cases:
        return []
    if stored:
        files = sorted({file for file, *_ in cases})
        batches = chain.from_iterable(iterate_cases(store, stored, file) for file in files)
    return [
        cases[cell]._replace(result=result)
        for batch in batches
        for result, _ in batch
        if (cell := result.cell) in cases and result.verdict != "pass"
    ]


class _Places:
    """Finds the places that results of older runs have in the newest one, or now, run by run."""

    def __init__(self, store: Store, folder: str, newest: Run, project: Project | None) -> None:
        now = project.reading.nodes if project else None
        files = project.reading.files if project else {}
        self._nodes = read_tree(newest.snapshot, store.load_nodes) if now is None else now
        self._files = {self._nodes[path]: file for path, file in files.items()}
        self._store = store
        self._history = PathHistory(store, folder, now or newest.snapshot, self._files)

    def find(self, run: Run, cells: Sequence[CellKey]) -> list[CellKey]:
        """Return the places of cells of the next older run, in their order.

        The number of a system prompt that the case no longer has is below 0.
        """
        self._history.step(run.snapshot)
        rows_of = defaultdict[str, set[str]](set)
        for file, row, *_ in cells:
            rows_of[file].add(row)
        names = {file: self._history.newest_path(file) or file for file in rows_of}
        then = read_tree(run.snapshot, self._store.load_nodes)
        nodes = {file: (then[file], self._nodes.get(name)) for file, name in names.items()}
        edited = {file: both for file, both in nodes.items() if both[1] not in (None, both[0])}
        unread = {it for both in edited.values() for it in both if it} - self._files.keys()
        files = self._files | self._store.load_case_files(unread)
        cases: dict[tuple[str, str], tuple[Case, Case | None]] = {}
        for file, (was, now) in edited.items():
            rows = rows_of[file]
            named = self._store.find_named_cases(files[was], rows)
            known = [it for it in named if it.row in rows]
            index = RowIndex(files[now or was], self._store)
            index.expect(known)
            cases |= {(file, case.row): (case, index.find(case)) for case in known}
        return [_place(it, names[it[0]], *cases.get(it[:2], ())) for it in cells]


def _place(cell: CellKey, file: str, then: Case | None = None, now: Case | None = None) -> CellKey:
    """Return the place of a cell in a file, where its case is another one `now`."""
    _, row, number, model = cell
    if then and now:
        places = numbers_now(then.prompts, now.prompts)
        row, number = now.row, places.get(then.prompts[number], -1 - number)
    return file, row, number, model


class Outcome(NamedTuple):
    """How many results broke, were fixed or became undecided since they were judged before."""

    broke: int
    fixed: int
    causes: tuple[str, ...]
    """Why, with counts if that is not why all did: `1 by a label of Ada`; empty: by the edits of
    the run."""
    undecided: int = 0
    changed: int = 0
    """If none of these did, how many changed otherwise without an edit."""

    @property
    def counts(self) -> tuple[tuple[int, str], ...]:
        """Return each number with its word."""
        others = (self.undecided, "now undecided"), (self.changed, "changed")
        return (self.broke, "broke"), (self.fixed, "fixed"), *others


class ComparedPart(NamedTuple):
    """The results of a run that are compared."""

    file: str
    """The path of their test file in the run."""
    rows: Collection[str]
    """The labels of their rows; empty: all rows."""


@dataclass
class VerdictChanges:
    """How the verdicts of a run differ from the last earlier verdict on each case."""

    since: str
    """The id of the newest earlier run that has results of the same test files."""
    started: int
    """The start of that run in microseconds since 1970, UTC."""
    last: str
    """The id of the run before, whatever it covered."""
    is_of_several: bool = False
    """Whether the earlier verdicts are those of several runs."""
    broke: GrowingResults = field(default_factory=GrowingResults)
    """Results that fail and passed before."""
    fixed: GrowingResults = field(default_factory=GrowingResults)
    """Results that pass and failed before."""
    new: GrowingResults = field(default_factory=GrowingResults)
    """Results that fail, in cases without an earlier verdict."""
    undecided: GrowingResults = field(default_factory=GrowingResults)
    """Undecided results of cases that were decided before."""
    new_undecided: GrowingResults = field(default_factory=GrowingResults)
    """Undecided results, in cases without an earlier verdict."""
    failed_again: GrowingResults = field(default_factory=GrowingResults)
    """Results that did not pass before either, with another answer or judgement; these may be
    among the changed, too."""
    changed: GrowingResults = field(default_factory=GrowingResults)
    """Other results with another verdict or another text as their answer."""
    passed: GrowingResults = field(default_factory=GrowingResults)
    """Those of the changed that pass and were undecided."""
    same_answer: GrowingResults = field(default_factory=GrowingResults)
    """Results that were asked something else and have the same verdict and the same answer."""
    first_judged: int = 0
    """How many results with a verdict had none before."""
    other_verdicts: int = 0
    """How many of the changed and undecided results have another verdict than before."""
    pending: GrowingResults = field(default_factory=GrowingResults)
    """Results that are pending and had a verdict in the newest earlier run."""
    more_results: int = 0
    """How many more results the run has than the run before, if both are of all cases, and others
    than new ones that do not pass."""
    older: int = 0
    """How many that broke, were fixed or changed count answers older than those before."""
    causes: dict[str, GrowingResults] = field(default_factory=lambda: defaultdict(GrowingResults))
    """Those whose verdict changed without an edit, or whose label began or ceased to count."""
    change_causes: Counter[tuple[str, bool]] = field(default_factory=Counter)
    """How many changed by each cause, and whether they broke, were fixed or became undecided."""
    people: set[tuple[str, bool]] = field(default_factory=set)
    """Who labelled these, and whether their labels did that."""
    labels: set[str] = field(default_factory=set)
    """What is said of labels on those that changed: `labelled by Ada`, `label of Ada removed`."""

    @property
    def is_any(self) -> bool:
        """Return whether a case was asked anew, has another verdict, or is gone or undecided."""
        changed = self.changed or self.same_answer
        undecided = self.undecided or self.new_undecided
        flips = self.broke or self.fixed or undecided
        return bool(flips or changed or self.pending or self.more_results)

    @property
    def has_other_verdicts(self) -> bool:
        """Return whether a result has another verdict than before, or a first one."""
        judged = self.broke or self.fixed or self.other_verdicts or self.first_judged
        return bool(judged or self.pending)

    @property
    def outcome(self) -> Outcome:
        """Return how many results changed, and which without an edit."""
        counts, changed = (len(self.broke), len(self.fixed), len(self.undecided)), 0
        is_flip = any(counts)
        causes = [(why, n) for (why, each), n in self.change_causes.items() if each == is_flip]
        if not is_flip:
            changed = sum(count for cause, count in causes if cause)
        texts = cause_texts(sorted(causes), *(counts if is_flip else (changed,)))
        by = f" of {', '.join(sorted(name for name, each in self.people if each == is_flip))}"
        named = (it + by if it.endswith(("by a label", "by labels")) else it for it in texts)
        return Outcome(*counts[:2], tuple(named), counts[2], changed)

    def mark_causes(self) -> CellMarks:
        """Return what changed verdicts without an edit: `by a label`, `its label counts again`."""
        return CellMarks(
            (cause.replace(AS_LABEL, "its label"), results)
            for cause, results in self.causes.items()
        )

    @property
    def failures(self) -> tuple[GrowingResults, ...]:
        """Return the results that do not pass and that changed, the new failures first."""
        return self.broke, self.new, self.undecided, self.new_undecided, self.failed_again

    def marks(self) -> CellMarks:
        """Return the kind of each change: `broke`, `fixed`, `new` or `now undecided`."""
        return CellMarks(
            [
                *(("broke", self.broke), ("fixed", self.fixed), ("new", self.new)),
                *(("now undecided", self.undecided), ("new", self.new_undecided)),
            ]
        )

    def document(self) -> Json:
        """Return the changes as JSON."""
        return {
            "run": self.since,
            "broke": len(self.broke),
            "fixed": len(self.fixed),
            "new": len(self.new),
            "undecided": len(self.undecided) + len(self.new_undecided),
            "changed": len(self.changed) + len(self.same_answer),
            "sameAnswer": len(self.same_answer),
            "pending": len(self.pending),
            "olderAnswers": self.older,
        }


def find_verdict_changes(
    store: Store,
    folder: str,
    run: Run,
    recent: RecentRuns | None = None,
    part: ComparedPart | None = None,
) -> VerdictChanges | None:
    """Compare the verdicts of a run with earlier ones; None if there is no earlier run.

    `folder` is that of the test files, and `recent` has runs that are read already. With `part`,
    only its results are compared. Only files whose results differ from those of the previous run
    are read, and of long ones not the nodes that both runs have.
    """
    earlier = recent.before(run, 1) if recent else store.find_recent_runs(before=run, limit=1)
    newest = next(earlier, None)
    return _Comparer(store, folder, run, newest, recent, part).compare() if newest else None


class _Comparer:
    """Compares the files of a run with earlier runs until all verdicts are compared.

    Unlike `find_in_runs`, run by run for all files: most results of a run may differ, and equal
    nodes are not read. What waits for an older run is in temporary files.
    """

    def __init__(
        self,
        store: Store,
        folder: str,
        run: Run,
        newest: Run,
        recent: RecentRuns | None,
        part: ComparedPart | None,
    ) -> None:
        self._store, self._folder, self._run, self._recent = store, folder, run, recent
        self._rows = RowResults(store)
        self._changes = VerdictChanges(newest.id, newest.started, newest.id)
        if not (part or is_partial(run) or is_partial(newest)):
            counts = (sum(each.verdicts.values()) for each in (run, newest))
            self._changes.more_results = next(counts) - next(counts)
        load = store.load_nodes
        self._leaves = read_tree(run.results, load, unlike=newest.results)
        self._rows_of_part = part.rows if part else ()
        if part:
            self._leaves = {path: self._leaves[path] for path in self._leaves if path == part.file}
        self._is_dated = len(self._leaves) < len(read_tree(run.results, load))
        """Whether the run to name is known: some files have not changed since the newest one."""
        self._compared = {newest.id} if self._is_dated else set[str]()
        """The runs that have earlier verdicts."""
        self._waiting: dict[str, Sequence[FollowedResult] | None] = dict.fromkeys(self._leaves)
        """Judged or pending results that no earlier run had yet, by file; None: no run has it."""
        self._versions, self._has_labels = VersionReader(store), bool(store.find_labels())

    def compare(self) -> VerdictChanges:
        """Compare all files."""
        if paths := {*self._waiting}:
            history = PathHistory(self._store, self._folder, self._run.snapshot, {})
            runs = EarlierRuns(self._store, history, recent=self._recent)
            for earlier, entries in runs.before(self._run, paths):
                if entries and not self._is_dated:
                    self._changes.since, self._changes.started = earlier.id, earlier.started
                    self._is_dated = True
                self._compare(earlier, entries)
                paths.intersection_update(self._waiting)  # `before` has the same set
                if not paths:
                    break
        for result, _ in self._join(self._waiting):
            self._changes.first_judged += result.verdict is not None
            if result.verdict == "undecided":
                self._changes.new_undecided.append(result)
                self._changes.other_verdicts += 1
            elif result.verdict not in (None, "pass"):
                self._changes.new.append(result)
        if self._changes.more_results == len(self._changes.new) + len(self._changes.new_undecided):
            self._changes.more_results = 0
        self._changes.is_of_several = len(self._compared) > 1
        return self._changes

    def _compare(self, earlier: Run, entries: Mapping[str, str]) -> None:
        """Compare these files with their results in an earlier run."""
        waiting = {path: self._waiting.pop(path) for path in entries}
        others = {path: leaf for path, leaf in entries.items() if leaf != self._leaves[path]}
        # Nodes of long files that both have are left out, as their results are unchanged.
        equal = self._store.find_equal_leaves(
            {path: (self._leaves[path], others[path]) for path in others if waiting[path] is None}
        )
        if equal or len(others) < len(entries):
            self._compared.add(earlier.id)
        listed = self._join({path: waiting[path] for path in others}, equal)
        left = self._pair(listed, others, earlier)  # of all files: many answers are read together
        for path, of_file in groupby(left, lambda current: current.result.file):
            self._waiting[path] = keep_values(
                of_file,
                lambda current: (tuple(current.result), current.prompts),
                lambda values: FollowedResult(unpack_result(values[0]), tuple(values[1])),
            )

    def _pair(
        self, listed: Iterator[FollowedResult], before: Mapping[str, str], earlier: Run
    ) -> Iterator[FollowedResult]:
        """Sort results with those of the same cells; yields those that have none.

        Judged ones are looked for among the judged ones.
        """
        for batch in in_batches(listed):
            judged = find_cells(self._rows, before, batch, is_judged)
            everything = judged
            if not all(is_judged(it.result) for it in batch):
                everything = find_cells(self._rows, before, batch)
            pairs = []
            for current, *both in zip(batch, judged, everything, strict=True):
                if was := both[not is_judged(current.result)]:
                    pairs.append(Pair(was[0], current.result))
                else:
                    yield current
            if pairs:
                self._compared.add(earlier.id)
                self._sort(pairs, earlier.started)

    def _join(
        self,
        listed: Mapping[str, Sequence[FollowedResult] | None],
        without: Mapping[str, Collection[str]] = MappingProxyType({}),
    ) -> Iterator[FollowedResult]:
        """Yield the judged and pending results that wait in these files, by file.

        Those in some nodes are left out.
        """
        known = (each for path in sorted(listed) for each in listed[path] or ())
        unread, rows = (it for it in listed if listed[it] is None), self._rows_of_part
        fresh = (
            FollowedResult(result, case.prompts)
            for batch in iterate_entries(
                self._store, {it: self._leaves[it] for it in unread}, without
            )
            for result, case in batch
            if (result.verdict or result.is_missing) and (not rows or result.row in rows)
        )
        return merge(fresh, known, key=lambda current: current.result.file)

    def _sort(self, pairs: Sequence[Pair], since: int) -> None:
        """Sort the pairs of an earlier result and the current one by how they changed."""
        unequal = [pair for pair in pairs if sort_pair(pair) != "unchanged"]
        sessions = self._store.find_compared(sessions_to_compare(unequal))
        changed = [it for it in unequal if sort_pair(it) == "changed" and it.has_same_verdict]
        same = find_same_answers(self._store, changed)
        for pair in pairs:
            self._add(pair, sessions, has_same_answer=sessions_of(pair) in same)
        others = [
            pair
            for pair in unequal
            if not pair.has_same_verdict
            or not (sessions_of(pair) in same or has_equal_texts(pair, sessions))
        ]
        explained = [it for it in others if self._has_labels or not it.has_same_verdict]
        differences = judgement_changes(self._store, self._versions, explained, since)
        texts = chain.from_iterable(differences.values())
        self._changes.labels.update(text for text in texts if text.startswith("label"))
        for pair in others:
            assert pair.was
            assert pair.now
            judgements = pair.was.evaluations, pair.now.evaluations
            words = differences.get(judgements) or [""]
            cause = ""
            if not pair.has_same_verdict:
                cause = label_cause(pair, words)
            if is_judged_otherwise(pair) and not words[0]:
                cause = OTHER_JUDGEMENT
            if cause:
                self._changes.causes[cause].append(pair.now)
            elif cause := age_of_answers(pair, sessions):
                if words[0].startswith(LABELLED):
                    cause = f"{cause}, {words[0]}"
                elif pair.was.evaluation != pair.now.evaluation or words[0]:
                    cause = f"edited and {cause}"
            is_flip = sort_pair(pair) in ("broke", "fixed") or pair.is_now_undecided
            if pair.now.verdict:
                self._changes.change_causes[cause, is_flip] += 1
            people = () if pair.has_same_verdict else people_of(words)
            self._changes.people.update((name, is_flip) for name in people)

    def _add(
        self, pair: Pair, sessions: Mapping[str, ComparedSession], *, has_same_answer: bool
    ) -> None:
        was, now = pair.was, pair.now
        assert was
        assert now
        if not now.verdict:
            if was.verdict:
                self._changes.pending.append(now)
            return
        change = sort_pair(pair)
        if change == "changed" and pair.has_same_verdict and has_equal_texts(pair, sessions):
            change = "unchanged"
        if change != "unchanged":
            self._changes.older += age_of_answers(pair, sessions) == OLDER
        if change in ("broke", "fixed"):
            (self._changes.broke if change == "broke" else self._changes.fixed).append(now)
            return
        if pair.is_now_undecided:
            self._changes.undecided.append(now)
            self._changes.other_verdicts += 1
            return
        if change == "changed":
            (self._changes.same_answer if has_same_answer else self._changes.changed).append(now)
            self._changes.other_verdicts += not pair.has_same_verdict
            if now.verdict == "pass" and not pair.has_same_verdict:
                self._changes.passed.append(now)
        is_same = (was.sessions, was.evaluations) == (now.sessions, now.evaluations)
        if now.verdict in ("fail", "error") and was.verdict != "undecided" and not is_same:
            self._changes.failed_again.append(now)


_COLOURS = {**FLIPS, "now undecided": "undecided"}


def changes_line(changes: VerdictChanges, last: str = "the last run") -> StyledLine:
    """Return `since the last run: 2 broke, 1 fixed, 1 new failure (1 by a label)`.

    Where the run before covered other cases, it says since which run, or of each case. `last` are
    the words for the run before.
    """
    counts = (
        (len(changes.broke), "broke"),
        (len(changes.fixed), "fixed"),
        (len(changes.changed), "changed"),
        (len(changes.undecided), "now undecided"),
    )
    since = last if changes.since == changes.last else f"run {short(changes.since)}"
    if changes.is_of_several:
        since = "the last verdict on each case"
    spans = [StyledSpan(f"since {since}: ")]

    def add(count: int, text: str, colour: str = "") -> None:
        if count:
            spans.extend([StyledSpan(", ")] * (len(spans) > 1))
            spans.append(StyledSpan(text, colour))

    for count, word in counts:
        add(count, f"{count:,} {word}", _COLOURS.get(word, ""))
    causes = Counter[str]()
    for (cause, _), count in sorted(changes.change_causes.items()):
        causes[cause] += count
    listed = cause_texts(causes.items(), *(count for count, _ in counts))
    spans += [StyledSpan(f" ({', '.join(listed)})")] if listed else []
    add(len(changes.pending), f"{len(changes.pending):,} now pending", "pending")
    add(len(changes.same_answer), same_answer_text(len(changes.same_answer)))
    if len(spans) == 1:
        spans.append(StyledSpan("nothing broke or was fixed"))
    add(len(changes.new), plural(len(changes.new), "new failure"), "fail")
    undecided = len(changes.new_undecided)
    add(undecided, f"{undecided:,} new and undecided", "undecided")
    more = changes.more_results
    word = "more" if more > 0 else "fewer"
    add(more, f"{plural(abs(more), f'{word} result')} than in {last}")
    return StyledLine(tuple(spans))


_LISTED = 8
"""The most results that are named of those that broke, and of those that were fixed."""


class RunDifferences(NamedTuple):
    """How many results of a run have another verdict than the last earlier one on their case."""

    is_first: bool = False
    """Whether it is the first run."""
    broke: int = 0
    fixed: int = 0
    others: int = 0
    """How many differ otherwise: they fail in another way, are pending now, or are new failures."""
    line: StyledLine | None = None
    """`since the run before: 1 broke, 2 fixed`, as `run` says it; None if nothing differs."""
    names: tuple[tuple[str, str], ...] = ()
    """The first of those that broke, or were fixed: which of the two, and the case."""
    first_judged: int = 0
    """How many results with a verdict had none before."""

    @property
    def is_hidden(self) -> bool:
        """Return whether a difference of pass rates does not show all of them."""
        return bool((self.broke and self.fixed) or self.others or self.first_judged)


def read_run_differences(location: Location, runs: Iterable[str]) -> dict[str, RunDifferences]:
    """Return the differences of runs by id."""
    workspace = open_workspace(location)
    folder = workspace.settings.paths["tests"]
    found = {}
    with open_store(location) as store:
        for id in runs:
            run = store.load_run(id)
            changes = find_verdict_changes(store, folder, run)
            if changes is None:
                found[id] = RunDifferences(True)
                continue
            is_any = changes.is_any or changes.new
            flips = (("broke", changes.broke), ("fixed", changes.fixed))
            listed = [(change, it) for change, results in flips for it in results[:_LISTED]]
            prompts = name_several_prompts(location, store, [(run, it) for _, it in listed])
            found[id] = RunDifferences(
                broke=len(changes.broke),
                fixed=len(changes.fixed),
                others=changes.other_verdicts + len(changes.pending) + len(changes.new),
                line=changes_line(changes, "the run before") if is_any else None,
                names=tuple(
                    (change, f"{case_name(it.file, it.row, prompt)} {it.model}")
                    for (change, it), prompt in zip(listed, prompts, strict=True)
                ),
                first_judged=changes.first_judged,
            )
    return found


def name_several_prompts(
    location: Location, store: Store, results: Sequence[tuple[Run, Result]]
) -> list[str | None]:
    """Return the name of the system prompt of each result of a run; None where it is the only one.

    That is in files whose cases had one system prompt in the run.
    """
    runs = {(run.id, result.file): run for run, result in results}
    several = {key for key, run in runs.items() if has_several_prompts(store, run, key[1])}
    ids = [it.prompt if (run.id, it.file) in several else "" for run, it in results]
    names = name_prompts(location, {*ids} - {""})
    return [None if id == "" else names[id] for id in ids]


def has_several_prompts(store: Store, run: Run, file: str) -> bool:
    """Return whether the cases of a file had several system prompts in a run."""
    first: list[tuple[Result, Case]] = next(iterate_cases(store, run, file), [])
    return any(len(case.prompts) > 1 for _, case in first)

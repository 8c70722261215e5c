"""Selects the cells of a command and makes their plan; records what a run leaves settled.

It calls no model.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from evalstore.comparison.statistics import count_rows
from evalstore.core.errors import (
    EvalstoreError,
    NothingSelectedError,
    UnsuitedError,
    WorkspaceError,
)
from evalstore.core.hashing import digest_of
from evalstore.core.values import RECORDED, Case, CaseFile, Verdict
from evalstore.files.fields import nearest
from evalstore.planning import failed_work, participants, path_history
from evalstore.planning.cell_results import CellResult, carry_over
from evalstore.planning.cells import (
    Candidate,
    Cell,
    EarlierBatches,
    FirstCase,
    Judge,
    PlacedCase,
    StreamedCells,
    numbered_cases,
    place_cases,
    take_first,
)
from evalstore.planning.earlier_results import find_newest
from evalstore.planning.options import SelectionOptions
from evalstore.planning.plan import UNSETTLED, AgeLimit, Plan, plan_asks, plan_judgements
from evalstore.planning.project import Project, files_of
from evalstore.planning.selection import Selection, Subset, read_shard
from evalstore.planning.settled_parts import (
    CACHE,
    SettledCache,
    SettledPart,
    SettledParts,
    can_settle,
    context_digests,
    long_files,
)
from evalstore.store.driver import Extent
from evalstore.store.trees.tree_nodes import CasePart, StoredCases


@dataclass(frozen=True, slots=True)
class Scope:
    """The cells of a command, and which stored results count for them."""

    cells: StreamedCells
    """In the order of files and rows."""
    answers: AgeLimit
    judgements: AgeLimit
    ignored_verdicts: Collection[Verdict]
    """Verdicts that do not count, so that they are judged again."""
    retry_only: failed_work.FailedWork | None
    """The only work to do; None when everything missing is done."""
    judge_only: bool
    run_started: float
    """When the run began; infinity when there is no run."""
    settled: SettledParts = field(default_factory=SettledParts)
    """Parts of files without anything to do, whose cells are left out."""


def select(project: Project, selection: SelectionOptions) -> Selection:
    """Return the criteria of the command line and the settings.

    Raises `EvalstoreError` for a path without test files.
    """
    return Selection(
        targets=project.targets(selection.paths),
        tags=selection.tags,
        exclude_tags=(*project.settings.prohibited_tags, *selection.exclude_tags),
        required_tags1=project.settings.required_tags1,
        required_tags2=project.settings.required_tags2,
        name=selection.name,
        load=project.versions.load,
    )


def require_sound(
    project: Project, selection: SelectionOptions, *, hint: str | None = None
) -> None:
    """Raise `WorkspaceError` with all errors, except those of files that are not selected.

    With `keep_going`, test files that have errors are left out instead. The hint is for
    errors of some test files only.
    """
    criteria = None
    if selection.paths:
        criteria = Selection(project.targets(selection.paths))
    relevant = [
        problem
        for problem in project.reading.errors
        if criteria is None
        or problem.file not in project.reading.tests
        or criteria.covers_file(problem.file)
    ]
    broken = {problem.file for problem in relevant}
    looked_for = project.reading.references.looked
    if broken and broken < project.reading.tests:
        if selection.keep_going:
            project.leave_out(broken)
            return
        raise WorkspaceError(project.reading.problems, hint=hint, looked_for=looked_for)
    if relevant:
        raise WorkspaceError(project.reading.problems, looked_for=looked_for)


def resolve_scope(
    project: Project,
    selection: SelectionOptions,
    *,
    judge_only: bool = False,
    begun: float = math.inf,
    settled: SettledParts | None = None,
) -> Scope:
    """Return the scope of a command; `begun` is when the run began.

    `settled` are parts for which it has nothing to do; those that share a question with other
    cases are not left out.
    """
    candidates, judges = project.candidates(selection), project.judges(selection)
    answers, judgements = path_history.bounds_of(
        selection, project.settings, judge_only=judge_only, begun=begun
    )
    if selection.seed is not None and selection.sample is None:
        raise UnsuitedError("'--seed' has no effect without '--sample'", hint="add '--sample N'")
    shard = None if selection.shard is None else read_shard(selection.shard)
    subset = Subset(selection.sample, selection.seed or 0, shard, selection.limit)
    settled = settled or SettledParts()
    cells = _choose(project, selection, subset, candidates, judges, settled)
    planned = {digest_of(id) for cell in cells for id in cell.questions} if settled else set()
    if len(apart := settled.without(planned)) < len(settled):
        settled = apart
        cells = _choose(project, selection, subset, candidates, judges, settled)
    for judge in cells.judges.values():
        project.keep_judges(judge)
    if selection.tags or selection.exclude_tags:
        known = participants.tags_of(files_of(project.reading).values())
        if not cells and not cells.skipped:
            participants.require_tag(selection.tags, known)
        for tag in (*selection.tags, *selection.exclude_tags):
            if tag not in known:
                near = nearest(tag, known)
                project.warn(f"no case has the tag '{tag}'" + (f": {near}" if near else ""))
    if not cells and not cells.skipped and not settled:
        files = files_of(project.reading)
        raise NothingSelectedError(
            "nothing is selected",
            hint=(
                (selection.name and participants.suggest_word(selection.name, files))
                or "'evalstore ls cases' lists the cases, 'evalstore ls tags' the tags"
            ),
        )
    tried: failed_work.FailedWork | None = None
    if selection.last_failed:
        cells = cells.keep(find_failed(project, cells, hint=path_history.ALL))
    if selection.retry_errors:
        busy, tried = failed_work.find_tried(project, cells, selection, answers, judgements)
        cells = cells.keep(busy)
    if not (path_history.is_plain(selection) or subset.is_all):
        cells = path_history.take_subset(cells, subset)
    _require_judges(project, cells, judges, has_others=bool(settled))
    again = UNSETTLED if selection.retry_errors else ()
    return Scope(cells, answers, judgements, again, tried, judge_only, begun, settled)


def _choose(
    project: Project,
    selection: SelectionOptions,
    subset: Subset,
    candidates: list[Candidate],
    judges: list[Judge],
    settled: SettledParts,
) -> StreamedCells:
    """Return the selected cells, before filters by results and the subset."""
    first = subset.limit if path_history.is_plain(selection) else None
    criteria = select(project, selection)
    files = {
        path: file for path, file in files_of(project.reading).items() if criteria.covers_file(path)
    }
    matches = criteria.matcher()
    models = selection.models
    changed = path_history.ChangedCases(project) if selection.changed else None

    def is_answered(case: Case) -> bool:
        """Return whether a model of the command line or of the settings answers a case."""
        if case.recorded:
            return not models or RECORDED in models
        if candidates:
            return True
        if RECORDED in models:
            return False
        raise EvalstoreError(
            "no candidates",
            hint="name a model with -m, or list some under 'candidates:' in evalstore.yaml",
        )

    def read(path: str, file: CaseFile) -> Iterable[tuple[int, Case]]:
        cases = numbered_cases(file, settled.of(path), criteria.rows_in(path))
        return criteria.by_name(path, cases)

    def place() -> Iterator[PlacedCase]:
        placed = place_cases(
            files,
            candidates,
            judges,
            lambda path, case: (
                matches(path, case)
                and (changed is None or changed(path, case))
                and is_answered(case)
            ),
            by_row=criteria.is_by_row or selection.changed,
            read=read,
        )
        return placed if first is None else take_first(placed, first)

    cells = StreamedCells(place, selection.attempts)
    if changed is not None:
        changed.require_any()
    return cells


def make_plan(project: Project, selection: SelectionOptions) -> Plan:
    """Return the plan of `run`."""
    scope = resolve_scope(project, selection)
    return plan_cells(project, scope, [*scope.cells])


def plan_cells(
    project: Project,
    scope: Scope,
    cells: Sequence[Cell],
    *,
    priced: bool = False,
    earlier: EarlierBatches | None = None,
) -> Plan:
    """Return the plan of some cells of a scope; if `priced`, with what they cost.

    With `earlier`, without what the batches before ask and judge.
    """
    plan = Plan(cells=[*cells], blocked=project.code.find_blocked(cells))
    costs = plan.costs if priced else None
    samples = project.store.find_samples(plan.questions, costs)
    plan_asks(plan, samples, scope.answers)
    votes = project.store.find_votes(plan.subjects(), costs)
    plan_judgements(
        plan,
        votes,
        scope.judgements,
        scope.ignored_verdicts,
        scope.run_started,
        partial(carry_over, load=partial(project.versions.load, "evaluation")),
    )
    if scope.retry_only:
        since = scope.run_started
        new = {it.id for each in samples.values() for it in each if it.started >= since}
        failed_work.drop_untried(plan, scope.retry_only, new)
    _note_untrusted(project, plan)
    if earlier:
        _leave_out_earlier(plan, earlier)
    if scope.judge_only:
        plan.asks = []
        plan.judgements = [judgement for judgement in plan.judgements if judgement.sessions]
    return plan


def _note_untrusted(project: Project, plan: Plan) -> None:
    """Note all files that must be trusted before the plan can be complete, each once.

    Waiting answers are judged later: what would run then is named together with what answers.
    """
    questions = {ask.question_id for ask in plan.waiting_asks}
    later = [cell for cell in plan.cells if questions and not questions.isdisjoint(cell.questions)]
    evaluations = {cell.case.evaluation or "" for cell in later} & plan.blocked
    judges = {
        judge.trust_needed
        for cell in later
        if "models" in cell.case.judged_by
        for judge in cell.judges
        if judge.trust_needed
    }
    project.code.note_waiting(plan.cells, plan.waiting | evaluations)
    project.code.note_models(plan.waiting_models | judges)


def _leave_out_earlier(plan: Plan, earlier: EarlierBatches) -> None:
    """Leave out what earlier batches ask and judge, after the judgements are planned."""
    plan.reused_earlier = earlier.count_reused(plan.sessions)
    made: dict[str, dict[Any, FirstCase]] = {
        "asks": plan.asked_earlier,
        "judgements": plan.judged_earlier,
    }
    for kind in (*made, "waiting_asks", "waiting_judgements", "asks_left", "judgements_left"):
        left = []
        for item in getattr(plan, kind):
            first, count = earlier.find((kind, item.key), item.cell, item.count)
            left += [replace(item, count=count)] if count else []
            if first and kind in made:
                made[kind][item.place] = first
        setattr(plan, kind, left)


def _require_judges(
    project: Project, cells: StreamedCells, judges: list[Judge], *, has_others: bool
) -> None:
    """Warn of tests without evaluators; raise `EvalstoreError` when there are no others."""
    files = [*cells.unjudged]
    if not files:
        return
    more = f" and {len(files) - 1:,} more" if len(files) > 1 else ""
    message = f"{files[0]}{more} {'are' if more else 'is'} judged by models"
    hint = "name a model with -J, or list some under 'evaluators:' in evalstore.yaml"
    if judges:
        message += f", but none of the judges applies to {'them' if more else 'it'}"
        hint = "check its 'evaluators:' and the tags of the judges in evalstore.yaml"
    else:
        message += ", but no judge is set up"
    if not cells.has_others and not has_others:
        raise EvalstoreError(message, hint=hint)
    project.warn(f"{message}: what they must judge stays pending ({hint})")


# --- the cells that did not pass when they last ran, among many, in little memory


def find_failed(project: Project, cells: StreamedCells, *, hint: str) -> bytearray:
    """Return 1 for each cell that did not pass in the newest run that has it, and 0 for the others.

    An answered case without an evaluation has not failed. Rows are paired by their values, else by
    their label. Raises `NothingSelectedError` when there are none.
    """
    failed = bytearray(len(cells))
    places = cells.places(project.reading.nodes)
    for number, was in find_newest(project, ((number, (it, it.prompts)) for number, it in places)):
        lacks = was.evaluation is not None or len(was.sessions) < was.required_answers
        failed[number] = lacks if was.verdict is None else was.verdict != "pass"
    if cells and not any(failed):
        is_any = project.store.find_run_before()
        words = "nothing failed when it last ran" if is_any else "no runs yet"
        raise NothingSelectedError(f"nothing is selected: {words}", hint=hint)
    return failed


def measure_extent(project: Project, selection: SelectionOptions) -> Extent | None:
    """Return how far the store reaches before a command is planned.

    None where no parts are recorded, and for a store that cannot tell what is new in it.
    """
    if can_settle(project, selection) and long_files(project):
        return project.store.measure_extent()
    return None


class _Part(NamedTuple):
    """The results of a part of a long file, in the order of its cells."""

    file: str
    cases: str
    """The node of its cases."""
    results: list[CellResult]
    usd: dict[str, float]
    """The costs of their sessions and votes by id."""


class SettledRecorder:
    """Adds up the parts of long files from the results of a run."""

    def __init__(self, project: Project, scope: Scope, selection: SelectionOptions) -> None:
        self._project, self._settled = project, scope.settled
        self._left: dict[str, Iterator[CasePart]] = {}
        """The parts of each of these files that are not reached yet."""
        self._waiting: deque[_Part] = deque()
        """The parts whose results have no node yet; the last one may get more results."""
        self._file, self._end = "", 0
        self._finished: list[SettledPart] = []
        self._stored = (0, 0)
        files = long_files(project) if can_settle(project, selection) else {}
        for path in {pair.file for pair in scope.cells.skipped}:
            files.pop(path, None)
        self._contexts = context_digests(project, selection, files) if files else {}
        """By file; those whose parts are not recorded are left out."""
        for path, file in files.items():
            assert isinstance(file.cases, StoredCases)
            self._left[path] = file.cases.parts()

    def add(self, results: Sequence[CellResult], costs: Mapping[str, float]) -> None:
        """Add results, in the order of their cells.

        `costs` are those of their sessions and votes, in USD by id.
        """
        for result in results if self._left else ():
            cell = result.cell
            if cell.file != self._file:
                self._file, self._end = cell.file, 0
            parts = self._left.get(cell.file)
            if parts is None:
                continue
            if cell.number >= self._end:
                part = next(part for part in parts if cell.number < part.first + part.size)
                self._end = part.first + part.size
                self._waiting.append(_Part(cell.file, part.node, [], {}))
            part_results = self._waiting[-1]
            part_results.results.append(result)
            for id in (*result.sessions, *(vote.id for vote in result.votes)):
                if id in costs:
                    part_results.usd[id] = costs[id]

    def note_results(self, file: str, cases: str, results: str) -> None:
        """Note the node of the results of the next part, whose last cell has been added.

        The part is left out if something is missing, or if more models may judge a result.
        """
        if self._waiting and self._waiting[0][:2] == (file, cases):
            part = self._waiting.popleft()
            if not any(
                result.pending
                or (
                    not result.cell.judges
                    and "models" in result.cell.case.judged_by
                    and result.cell.case.evaluation
                )
                for result in part.results
            ):
                self._finished.append(_sum_up(part, self._contexts[file], results))

    def count(self, sessions: int, votes: int) -> None:
        """Count the sessions and votes that the run has stored for the results of a batch."""
        self._stored = (self._stored[0] + sessions, self._stored[1] + votes)

    def save(self, before: Extent) -> None:
        """Write the cache, after the run is recorded.

        `before` is how far the store reached before the plans were made. If it has got other rows
        since than those that are counted, the results may lack these: an answer, judgement or label
        of another program, or a surplus answer. Then all that is new counts as not seen.
        """
        if not self._contexts:
            return
        store, workspace = self._project.store, self._project.workspace
        after = store.measure_extent()
        if after is None:
            return
        grown = store.count_added(before, after)
        path = workspace.private / CACHE
        if not self._finished and grown == (0, 0) and path.exists():
            return
        parts = {part.key: part for part in (*self._settled, *self._finished)}
        extent = after if grown == self._stored else before
        SettledCache(store.file or (), extent, parts).write(path)


def _sum_up(part: _Part, context: str, results: str) -> SettledPart:
    """Return the sums of a part, which lacks nothing."""
    listed = part.results
    cells = [result.cell for result in listed]
    verdicts = count_rows([cell.case.row for cell in cells], [each.verdict for each in listed])
    words = Counter(
        (cell.candidate.id, each.verdict) for cell, each in zip(cells, listed, strict=True)
    )
    sessions = {id for result in listed for id in result.sessions}
    return SettledPart(
        context,
        part.cases,
        results,
        cells=len(cells),
        cases=sum(verdicts.values()),
        answers=len(sessions),
        saved=sum(part.usd.values()),
        words=[(model, verdict, count) for (model, verdict), count in words.items()],
        clusters=[(*counts, times) for counts, times in verdicts.items()],
        prompts=[*dict.fromkeys((cell.prompt, cell.prompt_number) for cell in cells)],
        attempts=[
            (cell.case.row, cell.prompt_number, cell.candidate.id, list(each.attempts))
            for cell, each in zip(cells, listed, strict=True)
            if each.attempts and any(verdict != "pass" for verdict in each.attempts)
        ],
        questions=array(
            "Q", map(digest_of, dict.fromkeys(id for each in cells for id in each.questions))
        ),
    )

"""The result of `status`, and what a workspace has and lacks: verdicts, planned rows, new rows."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from evalstore.comparison.comparison import Comparison, Pair, sort_pair
from evalstore.comparison.version_diff import Difference
from evalstore.core.display import WORKSPACE
from evalstore.core.errors import EvalstoreError, FileProblem, Problem
from evalstore.core.runs import Run, RunCandidate, RunEvaluator
from evalstore.core.values import Case, Result
from evalstore.files.access import LARGEST_TEXT, normalise
from evalstore.files.json_output import FILES, PATHS, to_json
from evalstore.files.yaml12 import split_frontmatter
from evalstore.planning.cell_results import CellResult, as_result, compute_results
from evalstore.planning.cells import Cell, SkippedPair, batches
from evalstore.planning.earlier_results import Followed, find_newest, is_judged
from evalstore.planning.estimate import PricePart
from evalstore.planning.options import SelectionOptions
from evalstore.planning.plan import Plan, PlanItem
from evalstore.planning.project import Project, Untrusted
from evalstore.workspace.folder import WorkspaceFolder

if TYPE_CHECKING:
    from evalstore.planning.planner import Scope
    from evalstore.store.shared_runs import RunInProgress


@dataclass(frozen=True, slots=True)
class FileChange:
    """A test file that has changed since the last run."""

    JSON_FIELDS = ("code", "file", "asked", "judged", "reason", "also")

    code: str
    """Two letters as in git: the change of the tests, and of the evaluation."""
    file: str
    asked: int
    """The number of cases that are asked again, are new, or have another recorded answer."""
    judged: int
    """The number of cases whose stored answers are judged again."""
    gone: int
    reason: str
    new: int = 0
    """The number of cases of new rows, which do not count as asked again."""
    was: str | None = None
    now: str | None = None
    """The two values of the first difference."""
    may_be_edited_rows: bool = False
    """Whether the new rows may be those that are gone, which the field `rowId` would show."""
    old_file: str | None = None
    """The earlier path of a renamed file."""
    also: tuple[str, ...] = field(default=(), metadata={"json_optional": True})
    """The parts of the cases that were edited as well, such as `checks`."""
    settled: int = 0
    """The number of edited cases whose answers and judgements are all stored."""
    partly: int = 0
    """The number of other edited cases that have verdicts, by what is stored."""
    waiting: int = 0
    """The number of new and edited cases for which this plan does nothing yet."""
    used_again: int = 0
    """The number of settled cases with judgements that the next run uses again."""
    added: int = 0
    """The number of asked cases that are shown with further system prompts, and only asked so."""
    reverted: bool = True
    """Whether these cases all were like this in earlier runs, and not only like other cases."""
    edited: tuple[str, ...] = ()
    """What was edited, the test file first; empty if that is not known."""

    @property
    def is_reverted(self) -> bool:
        """Return whether all that was edited is as in earlier runs, so that nothing is to do."""
        return self.code == "= " and self.reverted and bool(self.settled)

    @property
    def sources(self) -> tuple[str, ...]:
        """Return what was edited: the test file, or what it uses."""
        return self.edited or (self.file,)

    @property
    def letters(self) -> str:
        """Return the code, with an R for a renamed file whose tests ask the same."""
        return f"R{self.code[1:]}" if self.old_file and self.code[0] == "." else self.code


@dataclass(frozen=True, slots=True)
class SettingEdit:
    """An edit of a candidate, a judge, its prompt or a setting since the last run."""

    JSON_FIELDS = ("edit", "of", "code")

    of: str
    """What was edited: `candidate openai/gpt-5.4-mini`, `judge prompt strict`, `attempts`."""
    edit: Difference = field(metadata={"json_inline": True})
    answers: int = 0
    """How many answers are asked for because of what was edited."""
    verdicts: int = 0
    """How many verdicts on stored answers are given because of it."""
    place: str = ""
    """The test file that these are in, or `13 files`; empty if there are none."""

    @property
    def code(self) -> str:
        """Return two letters as of a changed test file."""
        if self.edit.subject == f"new {self.of}":
            return "A "
        if self.edit.subject == f"{self.of} removed":
            return "D "
        is_asked = self.of.startswith(("candidate ", "attempts", "maxTestOutputTokens"))
        return "M." if is_asked else ".M"

    @property
    def text(self) -> str:
        """Return the edit without the name of what was edited; empty if that is new or gone."""
        if self.code in ("A ", "D "):
            return ""
        name = self.of.partition(" ")[2]
        text = str(self.edit)
        for start in (f"{self.of} changed: ", f"{self.of} ", f"{self.of}: ", f"{name}: "):
            text = text.removeprefix(start)
        return text.replace(f" of {name}:", "").removesuffix(f" ({name})")


@dataclass(frozen=True, slots=True)
class OtherReason:
    """Why work is pending in test files that have not changed since the last run."""

    kind: str
    """`ask`, `record` or `judge`; `use` for stored judgements that are used again."""
    count: int
    files: int
    """The number of test files."""
    file: str
    """The first of them."""
    reason: str
    was: str | None = None
    now: str | None = None
    """The two values of the difference."""
    also: tuple[str, ...] = ()
    """The parts of the cases that were edited as well, such as `checks`."""


class RemoteAnswers(NamedTuple):
    """Answers that a run would ask for, and that a remote has."""

    remote: str
    answers: int
    cost: float | None
    """USD that asking for them would cost; None when a price is not known."""
    judgements: int
    """How many judgements of these answers the remote has; which of them count is not known
    before they are read, so their price is not in `cost`."""


class RemoteJudgements(NamedTuple):
    """Judgements of stored answers that a run would pay for, and that a remote may have."""

    remote: str
    judgements: int
    """At most; which of them count is not known before they are read."""
    cost: float | None
    """USD that making them would cost; None when a price is not known."""


class CostLimit(NamedTuple):
    """A limit on the cost that is less than what a plan is likely to cost, or cannot be kept."""

    usd: float
    name: str
    """What sets it: `--max-cost`, or the setting `maxCost`."""
    answers: int | None
    """About how many of the answers it lasts for; None when it cannot be kept."""
    judgements: int | None
    """The same of the judgements by models."""
    unpriced: tuple[str, ...] = ()
    """The models whose price is not known, so that a run with the limit does not begin."""
    call: float | None = None
    """What the answer to any call may cost, in USD, if that exceeds the limit: none is made."""


@dataclass
class Status:
    """The result of `status`."""

    JSON_FIELDS = (
        *("ask", "record", "judge", "reuse", "skipped", "left", "left_out", "untrusted"),
        *("cost", "last_run", "changes", "edits", "broke", "fixed", "undecided"),
        *("items", "used_again", "remotes", "remote_judgements", "unread_remotes"),
        *("in_progress", "short_limit", "prices"),
    )
    items: Sequence[PlanItem] = field(metadata={"json_as": partial(map, to_json)})
    """The items of the plan; may be missing when only the numbers were requested. Of many
    they are in a temporary file, and are read from it whenever they are iterated over."""
    ask: int
    record: int
    """The number of answers that are recorded in files and not stored yet."""
    judge: int
    reuse: int
    skipped: list[SkippedPair] = field(metadata={"json_as": len})
    cost: float | None
    models: int
    """The number of candidates; recorded answers count as one."""
    cells: int
    has_recorded: bool = False
    """Whether answers are recorded in files."""
    pending_models: int = 0
    """The number of candidates that a run would ask, or whose answers it would judge."""
    is_recorded_pending: bool = False
    """Whether a run would take recorded answers, or judge them."""
    by_checks: int = 0
    """The part of the judgements that checks make, without a model."""
    may_judge_less: bool = False
    """Whether the judgements are an upper bound, as failed checks save those of models."""
    guess: int | None = None
    """The assumed tokens of a new answer, when the cost depends on this assumption."""
    verdict_guess: int | None = None
    """The assumed tokens of a judge's verdict, likewise."""
    known_cost: float = 0.0
    """The part of the cost with known prices."""
    is_simulated: bool = False
    """Whether all of the cost is of scripted models, so that nobody is paid."""
    unpriced: list[str] = field(default_factory=list)
    """The models whose price is not known."""
    changes: list[FileChange] = field(default_factory=list)
    edits: list[SettingEdit] = field(default_factory=list)
    """How candidates, judges and settings differ from the last run."""
    broke: int = 0
    """How many results passed in the newest run that judged them and, by what is stored, fail."""
    fixed: int = 0
    """How many failed then and, by what is stored, pass."""
    undecided: int = 0
    """How many were decided then and, by what is stored, are undecided."""
    decided: int = 0
    """How many were undecided then and, by what is stored, pass or fail."""
    other_reasons: list[OtherReason] = field(default_factory=list)
    """Reasons that are none of the edits above, of items of files that are not among the changes.
    The most frequent come first."""
    last_run: str | None = field(default=None, metadata={"json_name": "run"})
    last_started: int | None = None
    warnings: list[str] = field(default_factory=list)
    prompts: dict[str, dict[str | None, str]] = field(default_factory=dict)
    """Test files with several system prompts -> the name of each."""
    left_asks: int = 0
    """The number of missing answers that need the network and that a run would not get."""
    left_judgements: int = 0
    untrusted: list[Untrusted] = field(default_factory=list, metadata=PATHS)
    """Python files and model files that must be trusted before checks or models can run."""
    waiting: int = 0
    """The number of judgements that wait for these files to be trusted."""
    waiting_asks: int = 0
    """The number of answers that wait for these files to be trusted."""
    labels: int = 0
    """The number of labels that were added or removed since the last run."""
    lost_labels: list[tuple[str, str]] = field(default_factory=list)
    """The file and row of labels that no longer count because of an edit, one for each label."""
    refused: list[str] = field(default_factory=list)
    """Messages about keys that a run would refuse to send."""
    left_out: list[Problem] = field(default_factory=list, metadata=FILES)
    """Errors of test files that are left out."""
    remotes: tuple[RemoteAnswers, ...] = field(default=(), metadata={"json_optional": True})
    """The remotes that have some of the answers, as far as they were last read."""
    remote_judgements: tuple[RemoteJudgements, ...] = field(
        default=(), metadata={"json_name": "remoteJudgements", "json_optional": True}
    )
    """The remotes that may have some of the judgements of stored answers, likewise."""
    unread_remotes: tuple[str, ...] = field(
        default=(), metadata={"json_name": "unreadRemotes", "json_optional": True}
    )
    """The remotes that were never read, if there are answers or judgements to pay for."""
    in_progress: tuple[RunInProgress, ...] = field(
        default=(), metadata={"json_name": "inProgress", "json_optional": True}
    )
    """The runs that programs carry out at this moment; they may do the same."""
    short_limit: CostLimit | None = field(
        default=None, metadata={"json_name": "shortLimit", "json_optional": True}
    )
    """In a dry run, a limit on the cost that the plan is likely to reach."""
    used_again: tuple[OtherReason, ...] = field(
        default=(), metadata={"json_name": "usedAgain", "json_optional": True}
    )
    """Why stored judgements by models are used again, where a run would do nothing else about the
    result: nothing is called for them, and the verdict may change."""

    prices: tuple[PricePart, ...] = field(default=(), metadata={"json_optional": True})
    """The cost by candidate and judge."""

    @property
    def is_any(self) -> bool:
        """Return whether a run would do anything."""
        return bool(self.ask or self.record or self.judge)

    @property
    def left(self) -> dict[str, int]:
        """Return the numbers of missing answers and judgements that a run would not get."""
        return {"ask": self.left_asks, "judge": self.left_judgements}


_Grounds = tuple[str, str, str | None, str | None, tuple[str, ...]]
"""The kind of an item, and what its reason is made of."""


class ReasonCounts:
    """Counts the reasons for items of files that are not among the changes."""

    def __init__(self) -> None:
        self._counts: Counter[_Grounds] = Counter()
        self._files: dict[_Grounds, dict[str, None]] = {}

    def add(self, items: Iterable[PlanItem]) -> None:
        """Add items."""
        for item in items:
            key = item.kind, item.reason, item.was, item.now, item.also
            self._counts[key] += item.count
            self._files.setdefault(key, {})[item.file] = None

    def reasons(self) -> list[OtherReason]:
        """Return the reasons.

        Those for answers come before those for the judgements that they cause, the most frequent
        first.
        """
        counts = sorted(self._counts.items(), key=lambda it: (it[0][0] == "judge", -it[1]))
        return [
            OtherReason(
                key[0], count, len(self._files[key]), next(iter(self._files[key])), *key[1:]
            )
            for key, count in counts
        ]


def compute_workspace(
    project: Project, scope: Scope | None = None
) -> Iterator[tuple[Plan, list[CellResult]]]:
    """Yield the results of all cases, or of a scope, in batches with their plans, by file and row.

    The cells of a case are in one batch. Its plan is dropped before the next is made, so that many
    cases need little memory.
    """
    from evalstore.planning.planner import plan_cells, resolve_scope  # reading a run plans nothing

    scope = scope or resolve_scope(project, SelectionOptions())
    for batch in batches(scope.cells):
        plan = plan_cells(project, scope, batch)
        yield plan, compute_results(plan, project.settings.verdict)


def iterate_workspace(
    project: Project, scope: Scope | None = None
) -> Iterator[list[tuple[Result, Case]]]:
    """Yield the results of all cases, or of a scope, with their cases, in batches."""
    for _, results in compute_workspace(project, scope):
        yield [(as_result(result), result.cell.case) for result in results]


def results_at(project: Project, places: Iterable[tuple[str, str | None]]) -> Iterator[Result]:
    """Yield the results of rows of test files; without a row, those of all rows of a file."""
    from evalstore.planning.planner import resolve_scope

    root = project.workspace.root
    paths = tuple(f"{root / file}::{row}" if row else f"{root / file}" for file, row in places)
    if paths:
        for batch in iterate_workspace(project, resolve_scope(project, SelectionOptions(paths))):
            yield from (result for result, _ in batch)


def workspace_as_run(project: Project, selection: SelectionOptions | None = None) -> Run:
    """Return a run with the results of the workspace; its id is `workspace`, it is not stored.

    With a selection it has only the candidates and evaluators that this names, if any.
    """
    now, every = time.time_ns() // 1000, selection or SelectionOptions()
    return Run(
        id=WORKSPACE,
        started=now,
        ended=now,
        status="complete",
        snapshot="",
        results="",
        asked=0,
        judged=0,
        reused=0,
        verdicts={},
        candidates=tuple(
            RunCandidate(candidate.id, candidate.model, candidate.temperature)
            for candidate in project.candidates(every)
        ),
        evaluators=tuple(
            RunEvaluator(judge.id, judge.evaluator) for judge in project.judges(every)
        ),
        settings=project.settings.of_runs,
        selection={
            **({"models": list(every.models)} if every.models else {}),
            **({"attempts": every.attempts} if every.attempts else {}),
        },
    )


@dataclass
class PlannedRows:
    """The rows of a test file that a plan is about, by the numbers of their cases."""

    cases: dict[int, Case] = field(default_factory=dict)
    """All of them."""
    asked: set[int] = field(default_factory=set)
    """Rows that need a new answer, even if another case asks the same question for them."""
    judged: set[int] = field(default_factory=set)
    """Rows with stored answers that need judgements, even if others are asked for."""
    decided: set[int] = field(default_factory=set)
    """Rows with a result that has a verdict, by what is stored."""
    waiting: set[int] = field(default_factory=set)
    """Rows that lack an answer or a judgement which the plan leaves out, such as until a file is
    trusted."""
    shared: str = ""
    """Where the first row that needs something gets it with another case, as a remark."""


def plan_rows(plan: Plan, files: Collection[str], rule: str) -> dict[str, PlannedRows]:
    """Return the rows of these files; `rule` is how votes become a verdict.

    In the plan of a batch, a row may get what it needs with a case of an earlier one.
    """
    rows = {file: PlannedRows() for file in files}
    asks = {id: first.file for id, first in plan.asked_earlier.items()}
    asks |= {ask.question_id: ask.cell.file for ask in plan.asks}
    judgements = {place[:2]: first.file for place, first in plan.judged_earlier.items()}
    judgements |= {planned.place[:2]: planned.cell.file for planned in plan.judgements}
    settled: list[Cell] = []
    for cell in plan.cells:
        here = rows.get(cell.file)
        if here is None:
            continue
        here.cases[cell.number] = cell.case
        asking = next((asks[question] for question in cell.questions if question in asks), None)
        judging = judgements.get((cell.questions, cell.case.evaluation))
        if asking:
            here.asked.add(cell.number)
            here.shared = here.shared or f"asked in {asking}"
        elif judging:
            here.judged.add(cell.number)
            here.shared = here.shared or f"judged in {judging}"
        else:
            settled.append(cell)
    for result in compute_results(Plan(settled, sessions=plan.sessions, votes=plan.votes), rule):
        if result.verdict:
            rows[result.cell.file].decided.add(result.cell.number)
        if result.pending:
            rows[result.cell.file].waiting.add(result.cell.number)
    for each in rows.values():
        each.waiting.difference_update(each.asked, each.judged)
    return rows


# --- results whose verdict changes without a call, by what is stored already


def find_stored_outcomes(
    project: Project, plans: Iterable[Plan], files: Collection[str] | None = None
) -> Counter[str]:
    """Return how many results a run would find changed without asking or judging anything for it.

    They are those that have a verdict now, and another one in the newest run that judged them: they
    `broke`, are `fixed`, are `undecided` now, or `decided`, which were undecided.
    `plans` are those of all cells, batch by batch, in the order of files and rows. Only results of
    these test files count; None: of all. The newest 100 runs are searched.
    """
    found: Counter[str] = Counter()

    def read() -> Iterator[tuple[Result, Followed]]:
        for plan in plans:
            cells = [cell for cell in plan.cells if files is None or cell.file in files]
            settled = Plan(cells, sessions=plan.sessions, votes=plan.votes)
            for result in compute_results(settled, project.settings.verdict):
                if result.verdict:
                    now = as_result(result)
                    yield now, (now, result.cell.case.prompts)

    for now, was in find_newest(project, read(), is_judged, files):
        pair = Pair(was, now)
        found[sort_pair(pair, answers=False)] += 1
        found["undecided"] += pair.is_now_undecided
        found["decided"] += was.verdict == "undecided" != now.verdict
    return found


def has_edited_rows(workspace: WorkspaceFolder, comparison: Comparison) -> bool:
    """Return whether some rows of a file are new, others are gone, and no field names its rows."""
    new, gone = (
        {digest: file for file, digest in each.rows()} for each in (comparison.new, comparison.gone)
    )
    files = {new[it] for it in new.keys() - gone} & {gone[it] for it in gone.keys() - new}
    return any(lacks_row_id(workspace, file) for file in sorted(files))


def lacks_row_id(workspace: WorkspaceFolder, file: str) -> bool:
    """Return whether a test file of the workspace can be read and has no field `rowId`."""
    try:
        text = normalise(workspace.read_bytes(file, LARGEST_TEXT))
        document, *_ = split_frontmatter(text)
        return document is None or document.at("rowId").written() is None
    except (EvalstoreError, FileProblem, OSError):
        return False

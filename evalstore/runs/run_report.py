"""The report of a run, and its totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING

from evalstore.comparison.pair_groups import CellMarks
from evalstore.comparison.statistics import Clusters, Counts, Rate, count_rows, rate_of_words
from evalstore.core import hashing
from evalstore.core.display import cost_text, new_judgements, plural, saved_text, short
from evalstore.core.errors import Problem
from evalstore.core.hashing import ValueSet
from evalstore.core.values import (
    RESULT_WORDS,
    VERDICTS,
    CellKey,
    Decision,
    Evaluation,
    Json,
    Result,
    Verdict,
    Vote,
)
from evalstore.files.json_output import FILES, PATHS, to_json
from evalstore.files.temporary_list import FiledSequence
from evalstore.planning.cell_results import (
    CellResult,
    LeafBuilder,
    compute_results,
    find_feedback,
)
from evalstore.planning.cells import Cell, SkippedPair
from evalstore.planning.plan import Plan
from evalstore.planning.project import Project, Untrusted
from evalstore.planning.settled_parts import SettledParts
from evalstore.results.names import name_field, prompt_labels, settled_places
from evalstore.runs.execution.execution_counts import ExecutionCounts
from evalstore.store.results import FoundRows, TaggedResult
from evalstore.store.rows.row_queries import Among
from evalstore.store.schema.table_definitions import EVALUATIONS
from evalstore.store.trees.tree_nodes import build_tree
from evalstore.workspace.settings.settings import Settings, candidate_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from evalstore.planning.planner import SettledRecorder
    from evalstore.results.flips.regressions import Regression
    from evalstore.results.flips.verdict_changes import VerdictChanges

MOST_PENDING = 5
"""The most pending cases that are kept; more are only counted."""
MOST_SHOWN = 20
"""The most judged cases that are kept with their feedback."""


_DID_NOT_PASS = VERDICTS[1:]


def cell_key(cell: Cell) -> CellKey:
    """Return the place of a cell within its run."""
    return cell.file, cell.case.row, cell.prompt_number, cell.candidate.id


class RunTotals:
    """The verdict counts of a run so far, and the first results that did not pass."""

    def __init__(
        self,
        project: Project,
        started: int,
        shared: ValueSet,
        settled: SettledParts | None = None,
        recorder: SettledRecorder | None = None,
    ) -> None:
        """`started` is when the run started.

        `shared` are the ids of questions that several batches may ask, and `settled` the parts
        that no batch has. `recorder` records those that are settled now.
        """
        self._shared = shared
        self._settled, self._recorder = settled or SettledParts(), recorder
        self._project, self._started = project, started
        self._rule = project.settings.verdict
        load = project.store.load_cases
        tell = {"tell": recorder.note_results} if recorder else {}
        self._leaves = LeafBuilder(project.reading, load, self._settled, **tell)
        self._questions = Clusters()
        self.files: dict[str, Counter[str | None]] = {}
        """Test file -> how many of its cells have each verdict, None for those without one."""
        self.models: dict[str, Counter[str | None]] = {}
        """Candidate -> how many of its cells have each verdict; in the end as in the settings."""
        self.notable: list[Result] = []
        """The first few results that did not pass, and the first few that are pending, once the
        tree of all results is stored."""
        self.feedback: dict[Decision, str] = {}
        """The reasons for the verdicts of the notable results."""
        self.attempts: dict[CellKey, tuple[Verdict, ...]] = {}
        """The verdicts on the attempts of results with several, of which one did not pass."""
        self.prompts: dict[str, dict[str | None, str]] = {}
        """Test files with several system prompts -> the name of each."""
        self.answers = 0
        """The number of answers that count."""
        self.cases = 0
        """The number of cases."""
        self.saved = 0.0
        """The cost of the reused answers and judgements, in USD."""
        self._answered: dict[str, int] = {}
        """Shared question -> how many of its answers are counted."""
        self.used_again = 0
        """How many judgements were carried over that the store lacked."""
        self._votes: set[str] = set()
        """Ids of the votes of earlier runs on answers to shared questions that are counted."""

    def add(self, plan: Plan, outcome: ExecutionCounts | None = None) -> None:
        """Add a batch, and store its results; without an outcome nothing was done for it."""
        outcome = outcome or ExecutionCounts()
        cells = compute_results(plan, self._rule, outcome.sessions, outcome.votes)
        costs = {**plan.costs, **outcome.costs}
        self._count_votes(cells, costs)
        cells, added = self._store_carried(cells, costs)
        words = [result.word for result in cells]
        self._count_words(cells, words)
        for result in cells:
            if result.attempts and any(verdict != "pass" for verdict in result.attempts):
                self.attempts[cell_key(result.cell)] = result.attempts
        rows = [(cell.cell.file, cell.cell.case.row) for cell in cells]
        known = count_rows(rows, [cell.verdict for cell in cells])  # a case is in one batch
        self.cases += sum(known.values())
        for counts, times in known.items():
            self._questions.add(counts, times)
        if self._recorder:
            self._recorder.add(cells, costs)
            asked = sum(map(len, outcome.sessions.values()))
            self._recorder.count(asked, sum(map(len, outcome.votes.values())) + added)
        self._leaves.add(cells)
        self._leaves.store(self._project.store)
        self.prompts |= prompt_labels(self._project, cells)
        self._count_answers(plan, outcome, costs)

    def _count_words(self, cells: Sequence[CellResult], words: Sequence[str | None]) -> None:
        """Count the verdicts by file and by candidate."""
        files = [result.cell.file for result in cells]
        for (file, word), count in Counter(zip(files, words, strict=True)).items():
            self.files.setdefault(file, Counter())[word] += count
        models = [result.cell.candidate.id for result in cells]
        for (model, word), count in Counter(zip(models, words, strict=True)).items():
            self.models.setdefault(model, Counter())[word] += count

    def _count_votes(self, cells: list[CellResult], costs: Mapping[str, float]) -> None:
        """Add the cost of the votes of earlier runs, each once."""
        reused: set[str] = set()
        shared: set[str] = set()
        if not costs:
            return
        for cell in cells:
            earlier = [vote.id for vote in cell.votes if vote.started < self._started]
            reused.update(earlier)
            if not self._shared.isdisjoint(cell.cell.questions):
                shared.update(earlier)
        self.saved += sum(costs[id] for id in reused - self._votes if id in costs)
        self._votes |= shared

    def _count_answers(
        self, plan: Plan, outcome: ExecutionCounts, costs: Mapping[str, float]
    ) -> None:
        if not self._shared and not outcome.sessions:  # of most batches
            self.answers += sum(map(len, plan.sessions.values()))
            if costs:
                reused = chain.from_iterable(plan.sessions.values())
                self.saved += sum(costs[id] for id in reused if id in costs)
            return
        again: list[str] = []
        for question in plan.questions:
            counted = self._answered.get(question, 0)
            stored = plan.sessions.get(question, ())[counted:]
            made = len(outcome.sessions.get(question, ()))
            self.answers += len(stored) + made
            again += stored
            if question in self._shared:
                self._answered[question] = counted + len(stored) + made
        self.saved += sum(costs[id] for id in again if id in costs)

    def add_settled(self) -> None:
        """Add the settled parts; call it after the last batch."""
        for path, _, part in self._settled.places():
            for model, verdict, count in part.words:
                self.files.setdefault(path, Counter())[verdict] += count
                self.models.setdefault(model, Counter())[verdict] += count
            for *counts, times in part.clusters:
                self._questions.add(Counts(*counts), times)
            self.cases += part.cases
            self.answers += part.answers
            self.saved += part.saved
            for row, number, model, verdicts in part.attempts:
                self.attempts[path, row, number, model] = tuple(verdicts)
        self.files = dict(sorted(self.files.items()))
        order = candidate_order(self._project.settings)
        self.models = {model: self.models[model] for model in sorted(self.models, key=order)}
        names = prompt_labels(self._project, settled_places(self._settled))
        for path, prompts in names.items():
            self.prompts[path] = prompts | self.prompts.get(path, {})

    def count(self, word: str | None) -> int:
        """Return the number of cells with a verdict, or `pending`."""
        return sum(words[word] for words in self.files.values())

    @property
    def verdicts(self) -> dict[str, int]:
        """Return the number of cells with each verdict, and `pending`."""
        return {word: self.count(word) for word in RESULT_WORDS}

    @property
    def rate(self) -> Rate:
        """Return the share of passes among the judged cases."""
        return rate_of_words(self.files.values(), self._questions)

    def store_tree(self) -> str:
        """Store the tree of all results; returns the id of its root."""
        root, contents = build_tree(self._leaves.finish_all())
        store = self._project.store
        self._leaves.store(store, contents)
        found = [*self._find(root, _DID_NOT_PASS, MOST_SHOWN)]
        found += self._find(root, ("pending",), MOST_PENDING)
        found.sort(key=lambda each: (each.result.file, each.number))
        self.notable = [each.result for each in found]
        self.feedback |= find_feedback(store, (result.decision for result in self.notable))
        return root

    def _find(self, root: str, words: tuple[str, ...], most: int) -> Iterator[TaggedResult]:
        """Yield the first results of a stored tree with some verdicts, or `pending`."""

        def has_some(file: str) -> bool:
            return any(self.files.get(file, Counter())[word] for word in words)

        if any(map(has_some, self.files)):
            found = FoundRows(self._project.store, root, [Among("verdict", words)], has_some)
            yield from islice(chain.from_iterable(found.batches()), most)

    # --- stores the judgements that a run carries over from other evaluation versions

    def _store_carried(
        self, results: list[CellResult], costs: dict[str, float]
    ) -> tuple[list[CellResult], int]:
        """Store the votes of results that are carried over, and add their costs.

        `costs` are in USD by id. Returns the results with the ids of these votes, and how many of
        them the store lacked.
        """
        votes = [vote for result in results for vote in result.votes if vote.is_carried]
        if not votes:
            return results, 0
        store = self._project.store
        sources = store.load_evaluations(vote.id for vote in votes)
        rows: dict[str, str] = {}
        ids: dict[tuple[str, str], str] = {}
        for place in dict.fromkeys((vote.id, vote.evaluation) for vote in votes):
            made = carry(place[0], sources[place[0]], place[1])
            ids[place], content = hashing.identify(hashing.describe_evaluation_result(made))
            rows[ids[place]] = content
        known = store.find_present(EVALUATIONS.name, map(bytes.fromhex, rows))
        new = {id: row for id, row in rows.items() if bytes.fromhex(id) not in known}
        if new:
            store.record(evaluations=new)
            self.used_again += len(new)
        costs.update({ids[place]: costs[place[0]] for place in ids if place[0] in costs})

        def stored(vote: Vote) -> Vote:
            if not vote.is_carried:
                return vote
            return vote._replace(id=ids[vote.id, vote.evaluation], is_carried=False)

        return [result._replace(votes=tuple(map(stored, result.votes))) for result in results], len(
            new
        )


def carry(id: str, judgement: Evaluation, evaluation: str) -> Evaluation:
    """Return the stored judgement with this id under another evaluation version.

    It has the time, the nonce and the cost of the first one, as any judgement that is used again.
    """
    return judgement._replace(evaluation=evaluation, taken_from=judgement.taken_from or id)


def describe_spending(outcome: ExecutionCounts, settings: Settings) -> list[Json]:
    """Return the calls, tokens and cost of each model, for each part that it had.

    Candidates are in the order of the settings.
    """
    order = candidate_order(settings)
    return [
        {
            "model": model,
            "part": part,
            "calls": spent.calls,
            "inputTokens": spent.input_tokens,
            "outputTokens": spent.output_tokens,
            "cachedTokens": spent.cached_tokens,
            "cost": None if spent.unpriced else round(spent.cost, 8),
            **(
                {"knownCost": round(spent.cost, 8), "unpriced": spent.unpriced}
                if spent.unpriced
                else {}
            ),
            **({"simulated": True} if spent.simulated == spent.calls else {}),
            **({"local": True} if spent.local == spent.calls else {}),
        }
        for (model, part), spent in sorted(
            outcome.spending.items(), key=lambda entry: (entry[0][1], order(entry[0][0]))
        )
    ]


@dataclass(frozen=True, slots=True)
class ThresholdGate:
    """A group of results of which a share must pass."""

    JSON_FIELDS = ("where", "by", "pass_rate", "passed", "judged", "reached")
    where: tuple[str, ...]
    """The tags that all of them have."""
    by: Mapping[str, str]
    """The tag, file or model that only this gate is about."""
    pass_rate: float = field(metadata={"json_name": "passRate"})
    passed: int
    judged: int

    @property
    def reached(self) -> bool:
        """Return whether enough of the results pass."""
        return not self.judged or self.passed / self.judged >= self.pass_rate

    @property
    def name(self) -> str:
        """Return what the gate is about, in words."""
        return ", ".join([*self.where, *self.by.values()]) or "all results"


@dataclass
class RunReport:
    """What a run did, and its results."""

    JSON_FIELDS = (
        *("run", "status", "asked", "recorded", "judged", "reused", "failed", "failures"),
        *("verdicts", "left_out", "untrusted", "cost", "judge_cost", "saved", "seconds"),
        *("used_again", "spending", "gate", "thresholds", "regressions", "changes", "cases"),
    )
    run: str
    status: str
    asked: int
    recorded: int
    """The number of answers that were taken from files."""
    judged: int
    judged_by_checks: int
    """The number of judgements by checks; the others are by models."""
    reused: int
    failed: int
    failures: dict[str, int] = field(
        metadata={"json_as": lambda it: [{"message": text, "count": it[text]} for text in it]}
    )
    """Message -> how many calls failed with it."""
    hopeless: int
    """The number of failures that would recur in another run unless something is changed."""
    cost: float | None
    judge_cost: float = field(metadata={"json_as": lambda usd: round(usd, 8)})
    """The part of the cost that is due to judges, in USD."""
    spending: list[Json]
    """For each model and part (`candidate`, `evaluator`): calls, tokens, cost."""
    saved: float
    """The cost of the reused answers and judgements."""
    seconds: float = field(metadata={"json_as": lambda seconds: round(seconds, 3)})
    stopped_at_failure: bool
    time_is_up: bool
    is_refresh: bool
    is_by_verdict: bool
    """Whether its cases were chosen by their verdicts."""
    judge_only: bool
    gate: str
    """`passed`, `failed`, `undetermined` (missing verdicts may decide it) or `off`."""
    exit_code: int
    totals: RunTotals
    lines: Callable[[], Iterator[tuple[Result, str]]]
    """Reads all results with their feedback from the store, by file and row."""
    skipped: list[SkippedPair] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    untrusted: list[Untrusted] = field(default_factory=list, metadata=PATHS)
    """Python files that must be trusted before checks can run."""
    left_out: list[Problem] = field(default_factory=list, metadata=FILES)
    """Errors of test files that are left out."""
    used_again: int = field(default=0, metadata={"json_name": "usedAgain", "json_optional": True})
    """The number of judgements by models that are used again, as just checks were edited."""
    is_simulated: bool = False
    """Whether all models are scripted, so that nobody is paid and nothing saved."""
    gate_off: bool = False
    """Whether verdicts cannot fail the gate."""
    regressions: Sequence[Regression] | None = field(
        default=None,
        metadata={
            "json_optional": True,  # JSON of many is made while it is printed
            "json_as": lambda it: (
                map(to_json, it) if isinstance(it, FiledSequence) else to_json(it)
            ),
        },
    )
    """Results that do not pass and passed before; None unless the gate depends on them."""
    thresholds: list[ThresholdGate] | None = field(default=None, metadata={"json_optional": True})
    """The gates that the settings define; None if they define none."""
    missed: list[ThresholdGate] = field(default_factory=list)
    """Those of them that fail the gate of the run."""
    changes: VerdictChanges | None = field(
        default=None, metadata={"json_name": "since", "json_optional": True}
    )
    """The changes since earlier runs; None if there is no run to compare with."""

    @property
    def verdicts(self) -> dict[str, int]:
        """Return how many cases have each verdict, or are `pending`."""
        return self.totals.verdicts

    @property
    def rate(self) -> Rate:
        """Return the pass rate, with its 95 % interval unless verdicts have chosen the cases."""
        rate = self.totals.rate
        return rate.without_interval() if self.is_by_verdict else rate

    @property
    def pass_rate(self) -> float | None:
        """Return the share of the judged cases that passed, 0..1; None when nothing was judged."""
        return self.rate.rate

    @property
    def cases(self) -> Iterator[Json]:
        """Yield the cases as JSON, reading them from the store one after the other."""
        marks = self.changes.marks() if self.changes else CellMarks()
        for result, feedback in self.lines():
            change = marks.of(result.cell)
            yield {
                "file": result.file,
                "row": result.row,
                "prompt": result.prompt,
                **name_field(self.totals.prompts, result),
                "model": result.model,
                "verdict": result.word,
                "score": result.score,
                "feedback": feedback,
                "session": result.sessions[0] if result.sessions else None,
                "sessions": list(result.sessions),
                **({"change": change} if change else {}),
            }

    def _repr_html_(self) -> str:
        """Return the report as notebooks show it."""
        from evalstore.core.notebook_tables import block, line, strong, table, word

        notable = self.totals.notable
        counts = [
            plural(self.asked, "new answer"),
            *([f"{self.reused:,} reused"] if self.reused else []),
            new_judgements(self.judged, self.judged_by_checks),
            *([f"{self.failed:,} failed"] if self.failed else []),
        ]
        amount = saved_text(self.saved, is_simulated=self.is_simulated)
        saved = f" · saved {amount} by reuse" if self.saved else ""
        rate = f"{self.rate.passed:,} of {self.rate.judged:,} passed ({self.rate.text})"
        failures = self.failures.items()
        return block(
            line(strong(f"run {short(self.run)}"), f"{self.status}, gate {self.gate}"),
            line(f"{', '.join(counts)} · {cost_text(self.cost, self.spending)}{saved}"),
            line(rate),
            table(["failed calls", "number"], [(text, f"{count:,}") for text, count in failures]),
            table(
                ["file", "row", "model", "verdict", "feedback"],
                [
                    (
                        result.file,
                        result.row,
                        result.model,
                        word(result.word),
                        self.totals.feedback.get(result.decision, ""),
                    )
                    for result in notable
                ],
                sum(count for name, count in self.verdicts.items() if name != "pass"),
            ),
        )

"""The report of a run, its gate and its exit code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalstore.core.errors import INCOMPLETE, INTERRUPTED, NO, STOPPED, USAGE
from evalstore.core.values import Json
from evalstore.files.json_output import FILES, PATHS, to_json
from evalstore.files.temporary_list import FiledSequence
from evalstore.planning.options import RunOptions
from evalstore.planning.project import Project
from evalstore.results.flips.regressions import ThresholdGates
from evalstore.results.growing_results import CellMarks, cell_of
from evalstore.results.prompt_names import name_field
from evalstore.runs.run_totals import RunTotals
from evalstore.workspace.settings.settings import Settings, candidate_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from evalstore.comparison.statistics import Rate
    from evalstore.core.errors import Problem
    from evalstore.core.results import Result
    from evalstore.planning.cells import SkippedPair
    from evalstore.planning.project import Untrusted
    from evalstore.results.flips.regressions import Regression, ThresholdGate
    from evalstore.results.flips.verdict_changes import VerdictChanges
    from evalstore.runs.execution.execution_counts import ExecutionCounts
    from evalstore.runs.run_totals import RunTotals


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
    labelled: int = 0
    """The number of results that labels decide."""
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
            change = marks.of(cell_of(result))
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
        from evalstore.core.display import cost_text, new_judgements, plural, saved_text, short
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


# --- the gate of a run and its exit code


def decide(
    project: Project,
    report: RunReport,
    options: RunOptions,
    thresholds: ThresholdGates | None = None,
) -> None:
    """Set the gate and the exit code of a report.

    The gate passes only if there are verdicts, and if no missing verdict could make it fail.
    """
    covered: Mapping[str, Mapping[str | None, int]] = {}
    report.missed = []
    if thresholds:
        report.thresholds = thresholds.gates
        if options.fail_on == "failure" and options.threshold is None:
            report.missed = [gate for gate in thresholds.gates if not gate.reached]
            covered = thresholds.covered
    failing = bool(report.missed) or _is_failing(project, report, options, covered)
    counts = report.totals.verdicts
    # A regression is found without its decision: undecided is not a pass either.
    is_by_rate = options.threshold is not None
    needs_decisions = is_by_rate if options.fail_on == "regression" else options.fail_on != "none"
    open_ended = bool(
        counts["pending"]
        or report.failed
        or (counts["undecided"] and needs_decisions)
        or (report.totals.rate.rate is None and not report.gate_off)
    )
    if failing:
        report.gate = "failed"
    elif report.gate_off:
        report.gate = "off"
    elif open_ended or report.status in ("interrupted", "over budget"):
        report.gate = "undetermined"
    else:
        report.gate = "passed"
    if report.status == "interrupted":
        report.exit_code = INTERRUPTED
    elif report.status == "over budget":
        report.exit_code = STOPPED
    elif failing:
        report.exit_code = NO
    elif open_ended:
        report.exit_code = INCOMPLETE
    if report.left_out and report.exit_code not in (INTERRUPTED, STOPPED):
        report.exit_code = USAGE


def reaches_threshold(project: Project, totals: RunTotals, file: str) -> bool:
    """Return whether a test file has a threshold of its own, and enough of its cases pass."""
    threshold = project.reading.files[file].threshold
    words = totals.files[file]
    judged = words.total() - words["pending"] - words[None]
    return threshold is not None and bool(judged) and words["pass"] / judged >= threshold


def _is_failing(
    project: Project,
    report: RunReport,
    options: RunOptions,
    covered: Mapping[str, Mapping[str | None, int]],
) -> bool:
    """Return whether verdicts fail the gate; `covered` are counted that do not fail it alone."""
    if options.threshold is not None:
        rate = report.totals.rate.rate
        return rate is not None and rate < options.threshold
    bad: tuple[str, ...] = {
        "failure": ("fail", "error"),
        "undecided": ("fail", "error", "undecided"),
        "error": ("error",),
        "regression": (),
        "none": (),
    }[options.fail_on]
    if options.fail_on == "regression":
        return bool(report.regressions)
    for file, words in report.totals.files.items():
        judged = words.total() - words["pending"] - words[None]
        threshold = project.reading.files[file].threshold
        if threshold is not None and judged and options.fail_on == "failure":
            if words["pass"] / judged < threshold:
                return True
        elif any(words[word] > covered.get(file, {}).get(word, 0) for word in bad):
            return True
    return False

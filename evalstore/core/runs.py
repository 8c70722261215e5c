"""Runs, which are evalstore's commits: their values, and their stored form.

Fields that older versions did not store have their defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from evalstore.core import hashing
from evalstore.core.display import cost_text, money
from evalstore.core.values import VERDICTS, Json


class RunCandidate(NamedTuple):
    """A model that answered in a run."""

    id: str
    """Display id."""
    model: str
    """Id of the model version."""
    temperature: float | None


class RunEvaluator(NamedTuple):
    """An evaluator that judged in a run."""

    id: str
    """Display id."""
    evaluator: str
    """Id of the evaluator."""


class RunCommit(NamedTuple):
    """The commit of the workspace when the run started."""

    commit: str
    dirty: bool | None
    """Whether the workspace had changes; None: that is not known."""

    @property
    def text(self) -> str:
        """Return `0123abcd`, then `+` for a changed workspace, `?` if unknown."""
        return self.commit[:8] + {True: "+", False: "", None: "?"}[self.dirty]


class RunCases(NamedTuple):
    """How many cases a run was about."""

    selected: int
    total: int
    """All cases of the workspace."""


SOURCE_TEST = "test"
"""The name of the test file itself among the digests of what it uses."""


class RunSources(NamedTuple):
    """The digests of test files and of what they use, as they were when a run began."""

    tests: Mapping[str, Mapping[str, str]]
    """Test file -> `test` and what it uses, such as `dataset:tests/data/letters.csv` -> digest.

    Files that use nothing are left out.
    """
    is_cut: bool = False
    """Whether others are left out, too."""

    def of(self, test: str) -> Mapping[str, str] | None:
        """Return the digests of a test file, none if it uses nothing; None: they are not known."""
        return self.tests.get(test, None if self.is_cut else {})


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of a plan, with the cases as they were and their results."""

    id: str
    """Empty until the run is recorded."""
    started: int
    """Microseconds since 1970, UTC."""
    ended: int
    status: str
    """`complete`, `incomplete`, `interrupted` or `over budget`."""
    snapshot: str
    """The root of the tree of cases."""
    results: str
    """The root of the tree of results."""
    asked: int
    judged: int
    reused: int
    verdicts: Mapping[str, int]
    """How many cells ended with each word."""
    recorded: int = 0
    """The number of recorded answers from files."""
    failed: int = 0
    candidates: tuple[RunCandidate, ...] = ()
    evaluators: tuple[RunEvaluator, ...] = ()
    message: str | None = None
    selection: Mapping[str, Json] = field(default_factory=dict)
    """The options of the command line that select cases, as in `SelectionOptions.document`."""
    settings: Mapping[str, Json] = field(default_factory=dict)
    """The settings for the number of answers and judgements, and for the verdict."""
    judge_only: bool = False
    cost: float | None = None
    """USD; None: not known."""
    spending: Sequence[Json] = ()
    """The cost of each model."""
    git: RunCommit | None = None
    """None: the workspace is not in git, or the run is older than this field."""
    origin: str | None = None
    """`import` for the verdicts of another system."""
    version: str | None = None
    """Of the program."""
    nonce: str = ""
    author: str | None = None
    """Git's `user.name` of who started it; None: not known, or the run is older than this field."""
    cases: RunCases | None = None
    """None: the run is older than this field."""
    sources: str | None = None
    """Id of the digests of its test files and of what they use; None: the run is older."""

    @property
    def verdict_rule(self) -> str:
        """Return the rule by which votes become a verdict."""
        return str(self.settings.get("verdict", "majority"))

    @property
    def attempts(self) -> int | None:
        """Return the number of answers that `-r`, or else the settings, want; None: not known."""
        number = self.selection.get("attempts") or self.settings.get("attempts")
        return number if isinstance(number, int) else None

    def _repr_html_(self) -> str:
        """Return the run as notebooks show it."""
        from evalstore.core.clock import iso
        from evalstore.core.display import cost_text, plural, short
        from evalstore.core.notebook_tables import block, line, strong, table, word

        counts = [
            plural(self.asked, "new answer"),
            *([f"{self.recorded:,} recorded"] if self.recorded else []),
            *([f"{self.reused:,} reused"] if self.reused else []),
            plural(self.judged, "new verdict"),
            *([f"{self.failed:,} failed"] if self.failed else []),
        ]
        cost = cost_text(self.cost, self.spending)
        return block(
            line(strong(f"run {short(self.id)}"), self.status, self.message or ""),
            line(f"{iso(self.started)} · {', '.join(counts)} · {cost}"),
            table(
                ["verdict", "cases"],
                [(word(name), f"{count:,}") for name, count in self.verdicts.items() if count],
            ),
        )

    def find_candidate(self, id: str) -> RunCandidate | None:
        """Find the candidate with this display id; None if it did not take part."""
        return next((candidate for candidate in self.candidates if candidate.id == id), None)


def describe_run(run: Run) -> hashing.Description:
    """Describe the whole content of a run; its id is not a part of it."""
    fields = hashing.fields_of(
        run,
        id=None,
        candidates=[candidate._asdict() for candidate in run.candidates],
        evaluators=[evaluator._asdict() for evaluator in run.evaluators],
        settings=dict(run.settings),
        selection=dict(run.selection),
        judgeOnly=run.judge_only or None,
        recorded=run.recorded or None,
        verdicts=dict(run.verdicts),
        spending=list(run.spending),
        git=run.git._asdict() if run.git else None,
        cases=list(run.cases) if run.cases else None,
    )
    return hashing.describe("run", **fields)


def describe_sources(sources: RunSources) -> hashing.Description:
    """Describe the digests of test files and of what they use."""
    tests = {path: dict(digests) for path, digests in sources.tests.items()}
    return hashing.describe("sources", tests=tests, isCut=sources.is_cut or None)


def restore_sources(content: Json) -> RunSources:
    """Restore the digests of test files from their description."""
    return RunSources(content.get("tests", {}), content.get("isCut", False))


def restore_run(id: str, content: hashing.Description) -> Run:
    """Restore a run from its description."""
    fields = hashing.stored_fields(Run, content)
    fields["candidates"] = tuple(
        RunCandidate(candidate["id"], candidate["model"], candidate.get("temperature"))
        for candidate in content.get("candidates", ())
    )
    fields["evaluators"] = tuple(
        RunEvaluator(evaluator["id"], evaluator["evaluator"])
        for evaluator in content.get("evaluators", ())
    )
    git = content.get("git")
    fields["git"] = RunCommit(git["commit"], git.get("dirty")) if git else None
    fields["cases"] = RunCases(*content["cases"]) if content.get("cases") else None
    fields["judge_only"] = bool(content.get("judgeOnly"))
    return Run(**{**fields, "id": id})


# --- the costs of runs


SIMULATED = "costs of scripted models are simulated"


def spending_text(spending: Json) -> str:
    """Return the cost of the calls of one model."""
    return cost_text(spending["cost"], [spending])


def shared_cost_text(cost: float | None, spending: Sequence[Json]) -> str:
    """Return the cost of a run, and its parts if it has two: `$0.07 (answers $0.05, …)`.

    The parts are left out if no model judged, or if no cost is known.
    """
    text = cost_text(cost, spending)
    return text if cost == 0 or text == money(None) else with_cost_parts(text, spending)


def with_cost_parts(text: str, spending: Sequence[Json]) -> str:
    """Return a cost and its parts if it has two."""
    parts = [
        (name, [each for each in spending if each["part"] == part])
        for name, part in (("answers", "candidate"), ("judging", "evaluator"))
    ]
    if not all(calls for _, calls in parts):
        return text
    sums = []
    for name, calls in parts:
        costs = [each["cost"] for each in calls]
        unmarked = [{**each, "simulated": False} for each in calls]  # the whole is marked
        total = None if None in costs else sum(costs)
        sums.append(f"{name} {cost_text(total, unmarked, brief=True)}")
    listed = ", ".join(sums)
    return f"{text}: {listed}" if text.endswith(")") else f"{text} ({listed})"


def sum_costs(runs: Iterable[Run]) -> tuple[float | None, list[Json]]:
    """Return the cost of runs, None if that of one is not known, and that of their calls."""
    total: float | None = 0.0
    spending: list[Json] = []
    for run in runs:
        total = None if total is None or run.cost is None else total + run.cost
        spending += run.spending
    return total, spending


class ProgressListener:
    """Ignores all progress; subclasses override the methods that they need."""

    usd = 0.0
    """The known cost of the calls so far."""
    is_priced = True
    """Whether the cost of every call is known."""

    verdicts: Mapping[str, int] = MappingProxyType({})
    """How many new judgements have each verdict."""

    def start(self, asks: int, judgements: int) -> None:
        """Report the numbers of the plan."""

    def advance(self, kind: str, count: int) -> None:
        """Report that `count` more calls are `asked`, `judged` or `failed`."""

    def judged(self, verdict: str) -> None:
        """Report the verdict of a new judgement; `advance` follows."""
        self.verdicts = {**self.verdicts, verdict: self.verdicts.get(verdict, 0) + 1}

    @property
    def verdict_counts(self) -> Mapping[str, int]:
        """Return how many new judgements have each verdict, in the order of verdicts."""
        return {word: self.verdicts[word] for word in VERDICTS if word in self.verdicts}

    def spent(self, usd: float | None, tokens: int) -> None:
        """Report the cost of a call in USD, None if unknown, and its tokens."""
        self.usd += usd or 0.0
        self.is_priced = self.is_priced and usd is not None

    def note(self, message: str) -> None:
        """Report a message to the user."""

    def warn(self, message: str) -> None:
        """Report a warning that is shown even if the user wants to see less."""

    def agrees(self, question: str) -> bool | None:
        """Return whether the user confirms; None without a terminal."""
        return None

    def interruptible(self, stop: Callable[[], None]) -> None:
        """Receive a function that stops the run, as Ctrl-C does; any thread may call it.

        After the first call, calls in flight may finish; the second ends everything at once.
        """

    def stop(self) -> None:
        """Report the end of the run."""

"""The sums of the results of a group: pass rates, costs, latencies and flakiness.

An answer that several cases of a group share, and a judgement of it, count once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from evalstore.checks.aggregation import JudgedSession, judge_session
from evalstore.comparison.statistics import Counts, Rate, rate_of_files
from evalstore.core.batches import in_batches
from evalstore.core.deserialize import MODELS
from evalstore.core.display import interval_bar, known_price, percent
from evalstore.core.runs import Run
from evalstore.core.values import RECORDED, Evaluation, Json, Reply
from evalstore.planning.plan import CHECKS
from evalstore.providers.base import SCRIPTED
from evalstore.providers.price_table import Price
from evalstore.results.answer.judgements import group_votes
from evalstore.store import Store
from evalstore.store.events import Spent, StoredJudgement
from evalstore.store.rows.result_sums import By, Key, ResultSums

PARTLY_TEXT = "~ marks a group with fewer verdicts than others"
"""What explains the sign before the rate of a group that is partly judged."""


@dataclass(frozen=True, slots=True)
class ResultGroup:
    """The sums of the results of a group."""

    key: tuple[str | None, ...]
    """A model, a system prompt's id, a tag or a file; None for results without one."""
    name: str
    """The name of the group for display."""
    rate: Rate
    results: int
    """Cases, each with every candidate and system prompt."""
    tests: int
    """Test files."""
    cases: int
    sessions: int
    evaluations: int
    latency: float | None
    """Mean seconds of the sessions whose duration is known."""
    answering: float | None
    """The cost of the sessions, in the currency of the statistics; None when none is known."""
    judging: float | None
    """The cost of the judgements; None when none is known."""
    unpriced_answers: int
    """Sessions whose cost is unknown."""
    unpriced_judgements: int
    attempted: int
    """Results of several attempts that are all judged."""
    flaky: int
    """Those of `attempted` whose attempts disagree."""
    flip: float | None
    """The probability that two attempts at a case differ in passing; None without attempts."""
    undecided: int = 0
    """Results that are undecided; the others that are unresolved are errors."""
    names: tuple[str, ...] = ()
    """The parts of the key for display."""

    @property
    def pass_rate(self) -> float | None:
        """Return the share of judged results that passed, 0..1; None when nothing was judged."""
        return self.rate.rate

    @property
    def counts(self) -> str:
        """Return how many of the judged results pass: `22 of 26`."""
        rate = self.rate
        return f"{rate.passed:,} of {rate.judged:,}" if rate.judged else "none judged"

    def rate_text(self, *, is_partly: bool, is_counted: bool) -> str:
        """Return the pass rate, with `~` before it if the group is partly judged; else `counts`."""
        return self.counts if is_counted else f"~{self.rate.text}" if is_partly else self.rate.text

    @property
    def interval(self) -> tuple[float, float] | None:
        """Return the 95 % interval of the pass rate; None when nothing was judged."""
        return self.rate.interval

    @property
    def coverage(self) -> float | None:
        """Return the share of the results that are judged."""
        return self.rate.judged / self.results if self.results else None

    @property
    def flakiness(self) -> float | None:
        """Return the share of the results whose attempts disagree; it grows with the attempts."""
        return self.flaky / self.attempted if self.attempted else None

    @property
    def unpriced(self) -> int:
        """Return the number of sessions and judgements whose cost is unknown."""
        return self.unpriced_answers + self.unpriced_judgements

    @property
    def cost(self) -> float | None:
        """Return the known cost of candidates and judges together; None when none is known."""
        known = [number for number in (self.answering, self.judging) if number is not None]
        return sum(known) if known else None

    def per_100(self, cost: float | None) -> float | None:
        """Return a cost for 100 sessions, which is a lower bound if some prices are unknown."""
        return None if cost is None or not self.sessions else 100 * cost / self.sessions

    def document(self) -> Json:
        """Return the group as JSON."""
        return {
            "name": self.name,
            **self.rate.document(),
            "undecided": self.undecided,
            "results": self.results,
            "coverage": self.coverage,
            "tests": self.tests,
            "cases": self.cases,
            "sessions": self.sessions,
            "evaluations": self.evaluations,
            "latency": _rounded(self.latency, 4),
            "cost": {
                name: {"total": _rounded(usd, 8), "per100Sessions": _rounded(self.per_100(usd), 8)}
                for name, usd in (
                    ("candidates", self.answering),
                    ("judges", self.judging),
                    ("all", self.cost),
                )
            }
            | {"unpriced": self.unpriced},
            "flakiness": {
                "cases": self.attempted,
                "flaky": self.flaky,
                "share": self.flakiness,
                "flip": self.flip,
            },
        }


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def flip_probability(passed: int, attempts: int) -> float:
    """Return the probability that two of at least two attempts differ in passing.

    Unbiased: the mean over all ways to draw two of them.
    """
    return 2 * passed * (attempts - passed) / (attempts * (attempts - 1))


def partly_judged(groups: Sequence[ResultGroup]) -> list[bool]:
    """Return for each group whether its pass rate is of a part of its results alone.

    Some are not judged, and fewer of them are than of another of these groups: its rate is hardly
    comparable with that one.
    """
    most = max((group.rate.judged for group in groups), default=0)
    return [0 < group.rate.judged < min(group.results, most) for group in groups]


# --- the table of `stats`


_BAR = 16
ALWAYS = ("passed", "judged")
"""Columns that are shown even if they are empty."""
INTERVAL_BAR = ""
"""The name of the column with the drawing of the interval."""
OPTIONAL = (
    *("files", "answers", "verdicts", "100 answers", "cases", "judging"),
    *("latency", "flaky", "asking", INTERVAL_BAR, "95% interval", "undecided", "errors"),
)
"""The columns that a narrow terminal leaves out, in this order."""


def table_cells(
    group: ResultGroup, by: Sequence[str], currency: str, *, is_partly: bool, is_counted: bool
) -> dict[str, str]:
    """Return the cells of a group by the names of their columns."""
    rate, interval = group.rate, None if is_counted else group.interval
    low, high = interval or (0.0, 0.0)
    names = group.names or (group.name, *("" for _ in by[1:]))
    return {
        **dict(zip(by, names, strict=True)),
        "passed": group.rate_text(is_partly=is_partly, is_counted=is_counted),
        "95% interval": f"{100 * low:.1f} - {100 * high:.1f}%" if interval else "",
        INTERVAL_BAR: interval_bar(interval, rate.rate, _BAR),
        "judged": f"{rate.judged:,}/{group.results:,}",
        "undecided": f"{group.undecided:,}" if group.undecided else "",
        "errors": f"{errors:,}" if (errors := rate.unresolved - group.undecided) else "",
        "files": f"{group.tests:,}",
        "cases": f"{group.cases:,}",
        "answers": f"{group.sessions:,}",
        "verdicts": f"{group.evaluations:,}",
        "latency": "" if group.latency is None else f"{group.latency:.2f}s",
        "asking": answers_cost(group, currency),
        "100 answers": answers_cost_per_100(group, currency),
        "judging": judging_cost(group, currency),
        "flaky": "" if group.flip is None else percent(group.flip),
    }


def answers_cost(group: ResultGroup, currency: str = "USD") -> str:
    """Return the cost of the answers."""
    return known_price(group.answering, group.unpriced_answers, currency, brief=True)


def answers_cost_per_100(group: ResultGroup, currency: str = "USD") -> str:
    """Return the cost of 100 answers, without the judging; empty if there are no answers."""
    if not group.sessions:
        return ""
    amount = group.per_100(group.answering)
    return known_price(amount, group.unpriced_answers, currency, brief=True)


def judging_cost(group: ResultGroup, currency: str = "USD") -> str:
    """Return the cost of the judgements."""
    return known_price(group.judging, group.unpriced_judgements, currency, brief=True)


# --- what SQL sums of results, calls and attempts


@dataclass
class _Calls:
    """The sums of the answers, or the judgements, of a group."""

    count: int = 0
    unpriced: int = 0
    cost: float = 0.0
    timed: int = 0
    microseconds: float = 0.0

    @property
    def total(self) -> float | None:
        """Return the known cost; None if prices are unknown and the others are 0."""
        return None if self.unpriced and not self.cost else self.cost


@dataclass
class _Group:
    """What is summed of a group."""

    files: dict[str, Counter[Counts]] = field(default_factory=dict)
    """How many cases of each file have which counts."""
    results: int = 0
    undecided: int = 0
    answers: _Calls = field(default_factory=_Calls)
    judgements: _Calls = field(default_factory=_Calls)
    attempted: int = 0
    flaky: int = 0
    flips: float = 0.0

    def finish(self, key: Key) -> ResultGroup:
        """Return the group, which has no name yet."""
        answers, judgements = self.answers, self.judgements
        return ResultGroup(
            key=key,
            name="",
            rate=rate_of_files(self.files.values()),
            results=self.results,
            tests=len(self.files),
            cases=sum(map(Counter.total, self.files.values())),
            sessions=answers.count,
            evaluations=judgements.count,
            latency=answers.microseconds / answers.timed / 1e6 if answers.timed else None,
            answering=answers.total,
            judging=judgements.total,
            unpriced_answers=answers.unpriced,
            unpriced_judgements=judgements.unpriced,
            attempted=self.attempted,
            flaky=self.flaky,
            flip=self.flips / self.attempted if self.attempted else None,
            undecided=self.undecided,
        )


class GroupSums:
    """Makes the groups of the results whose sums it is given."""

    def __init__(self, store: Store, sums: ResultSums, costs: CostReader, run: Run) -> None:
        self._store, self._sums, self._costs, self._run = store, sums, costs, run
        self.saved = 0.0
        """The cost of what began before the run, in USD."""

    def find(self, groupings: Collection[By]) -> dict[By, dict[Key, ResultGroup]]:
        """Return the groups of each grouping, which have no names yet."""
        found: dict[By, dict[Key, _Group]] = {by: {} for by in groupings}
        for by, groups in found.items():
            for cases in self._sums.clusters(by):
                group = groups.setdefault(cases.key, _Group())
                counts = Counts(cases.judged, cases.passed, cases.unresolved)
                group.files.setdefault(cases.file, Counter())[counts] += cases.cases
                group.results += cases.results
                group.undecided += cases.undecided
        for are_judgements in (False, True):
            self._sum_calls(found, are_judgements)
        for batch in in_batches(self._sums.attempted()):
            judged = self._store.find_judgements(id for cell in batch for id in cell.judgements)
            for cell in batch:
                votes = [judged[id] for id in cell.judgements if id in judged]
                judged_by = cell.kind.get("judgedBy", MODELS)
                attempts = judge_attempts(votes, judged_by, self._run.verdict_rule)
                if len(attempts) != cell.attempts or cell.attempts < 2:
                    continue
                passed = sum(word == "pass" for word, _ in attempts)
                parts = {"model": (cell.model,), "prompt": (cell.prompt,), "file": (cell.file,)}
                parts["tag"] = tuple(cell.kind.get("tags", ())) or (None,)
                for by, groups in found.items():
                    for key in product(*(parts[name] for name in by)):
                        groups[key].attempted += 1
                        groups[key].flaky += len({word for word, _ in attempts}) > 1
                        groups[key].flips += flip_probability(passed, cell.attempts)
        return {
            by: {key: group.finish(key) for key, group in groups.items()}
            for by, groups in found.items()
        }

    def _sum_calls(self, found: Mapping[By, Mapping[Key, _Group]], are_judgements: bool) -> None:
        costs, later = self._costs, False

        def calls_of(by: By, key: Key) -> _Calls:
            group = found[by][key]
            return group.judgements if are_judgements else group.answers

        sums = self._sums.sum_calls(found, self._run.started, judgements=are_judgements)
        self.saved += sum(some.earlier for some in sums.get((), ()))
        for by, some in ((by, some) for by, listed in sums.items() for some in listed):
            calls = calls_of(by, some.key)
            model = costs.model_of(some.maker, are_judgements=are_judgements)
            calls.count += some.calls
            calls.timed += some.timed
            calls.microseconds += some.microseconds
            calls.cost += costs.convert(some.usd, some.started)
            if some.priced < some.calls:
                if costs.has_price(model):
                    later = True
                elif not costs.is_free(model):
                    calls.unpriced += some.calls - some.priced
        unpriced = self._sums.unpriced(found, judgements=are_judgements) if later else iter(())
        for batch in in_batches(unpriced):
            spent = {each.id: Spent(each.started, each.maker, None) for each in batch}
            usd = costs.costs_of(spent, are_judgements=are_judgements)
            for each in batch:
                if costs.has_price(costs.model_of(each.maker, are_judgements=are_judgements)):
                    for calls in (calls_of(*group) for group in each.groups):
                        calls.unpriced += usd[each.id] is None
                        calls.cost += usd[each.id] or 0.0


def judge_attempts(
    judgements: Iterable[StoredJudgement], judged_by: Collection[str], rule: str
) -> list[JudgedSession]:
    """Return the verdicts on attempts, apart from those on which those who decide are to vote."""
    by_attempt = group_votes((each.subject, each.vote) for each in judgements)
    judged = (judge_session(votes, judged_by, CHECKS, rule) for votes in by_attempt.values())
    return [each for each in judged if each is not None]


# --- what answers and judgements cost in a currency, some of them at the prices of today


_FREE = (SCRIPTED, RECORDED)
"""Providers whose answers cost nothing when they have no price."""


class CostReader:
    """Computes the cost of answers and judgements in a currency."""

    def __init__(
        self,
        store: Store,
        convert: Callable[[float, int], float] = lambda usd, _: usd,
        *,
        prices: Mapping[str, Price],
    ) -> None:
        """`convert` makes an amount of the currency of USD at a time.

        `prices` are those of today by model version.
        """
        self._store, self._today = store, prices
        self.later: dict[str, float] = {}
        """The cost in USD, at the prices of today, of calls whose price was not known."""
        self.convert = convert
        self._models: dict[str, str | None] = {
            id: content.get("model") for id, content in store.load_all("evaluator").items()
        }
        """The models of evaluators; checks and people have none."""
        self._providers: dict[str, str] = {}
        """Those of the model versions that were asked for: each recorded answer has its own."""

    def costs_of(
        self, calls: Mapping[str, Spent], *, are_judgements: bool
    ) -> dict[str, float | None]:
        """Return the costs of answers or judgements in the currency by id; None: unknown."""
        store, found = self._store, dict[str, float | None]()
        models = {
            id: self.model_of(each.maker, are_judgements=are_judgements)
            for id, each in calls.items()
        }
        unknown = {id for id, it in calls.items() if it.usd is None and self.has_price(models[id])}
        unknown -= self.later.keys()
        made: Iterable[tuple[str, Sequence[Reply | Evaluation]]] = (
            ((id, [each]) for id, each in store.find_evaluations(unknown).items())
            if are_judgements
            else ((id, session.turns) for id, session in store.find_sessions(unknown).items())
        )
        for id, replies in made:
            if (usd := self._today[models[id] or ""].cost_of(replies)) is not None:
                self.later[id] = usd
        self._read_providers(models.values())
        for id, each in calls.items():
            usd = self.later.get(id) if each.usd is None else each.usd
            free = 0.0 if self.is_free(models[id]) else None
            found[id] = free if usd is None else self.convert(usd, each.started)
        return found

    def model_of(self, maker: str, *, are_judgements: bool) -> str | None:
        """Return the model version of an answer or an evaluator; None for checks and people."""
        return self._models.get(maker) if are_judgements else maker

    def is_free(self, model: str | None) -> bool:
        """Return whether calls of a model version without a price cost nothing, as of no model."""
        self._read_providers([model])
        return not model or self._providers.get(model) in _FREE

    def _read_providers(self, models: Iterable[str | None]) -> None:
        new = {model for model in models if model and model not in self._providers}
        for id, content in self._store.load_contents("model", new).items() if new else ():
            self._providers[id] = content["provider"]

    def has_price(self, model: str | None) -> bool:
        """Return whether a model version has a price today."""
        return model in self._today

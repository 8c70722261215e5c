"""Makes the groups of `stats` of what SQL sums of results, calls and attempts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from typing import TYPE_CHECKING

from evalstore.checks.judging.aggregation import judge_so_far
from evalstore.comparison.group_totals import ResultGroup, flip_probability
from evalstore.comparison.statistics import Counts, rate_of_files
from evalstore.core.deserialize import MODELS
from evalstore.planning.plan import CHECKS
from evalstore.results.attempts import group_votes
from evalstore.store.costs import JudgingCost, Spent

if TYPE_CHECKING:
    from collections.abc import Collection

    from evalstore.checks.judging.aggregation import JudgedSession
    from evalstore.core.values import Verdict
    from evalstore.results.stats.call_costs import CostReader
    from evalstore.store import Store
    from evalstore.store.costs import StoredJudgement
    from evalstore.store.rows.result_sums import AttemptedCell, By, Call, Key, ResultSums

AT_ONCE = 4_000
"""Results whose answers and judgements are looked up together."""


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

    def add_attempts(self, verdicts: Sequence[Verdict]) -> None:
        """Add the verdicts on the attempts of a result, if it has several."""
        if len(verdicts) > 1:
            self.attempted += 1
            self.flaky += len(set(verdicts)) > 1
            self.flips += flip_probability(verdicts.count("pass"), len(verdicts))

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

    def __init__(self, store: Store, sums: ResultSums, costs: CostReader, rule: str) -> None:
        """`rule` combines votes."""
        self._store, self._sums, self._costs, self._rule = store, sums, costs, rule

    def find(self, groupings: Collection[By]) -> dict[By, dict[Key, ResultGroup]]:
        """Return the groups of each grouping, which have no names yet."""
        found = {by: self._sum_cells(by) for by in groupings}
        for by, groups in found.items():
            self._sum_calls(by, {key: group.answers for key, group in groups.items()}, False)
            self._sum_calls(by, {key: group.judgements for key, group in groups.items()}, True)
        cells = self._sums.attempted()
        while batch := list(islice(cells, AT_ONCE)):
            for cell, verdicts in self._judge(batch):
                tags = cell.kind.get("tags", ())
                for by, groups in found.items():
                    for key in keys_with(by, cell.model, cell.prompt, tags, cell.file):
                        groups[key].add_attempts(verdicts)
        return {
            by: {key: group.finish(key) for key, group in groups.items()}
            for by, groups in found.items()
        }

    def _sum_cells(self, by: By) -> dict[Key, _Group]:
        groups: dict[Key, _Group] = {}
        for cases in self._sums.clusters(by):
            group = groups.setdefault(cases.key, _Group())
            counts = Counts(cases.judged, cases.passed, cases.unresolved)
            group.files.setdefault(cases.file, Counter())[counts] += cases.cases
            group.results += cases.results
            group.undecided += cases.undecided
        return groups

    def _sum_calls(self, by: By, groups: dict[Key, _Calls], are_judgements: bool) -> None:
        costs, later = self._costs, False
        listed = self._sums.judgements(by) if are_judgements else self._sums.answers(by)
        for some in listed:
            calls, model = groups[some.key], self._model(some.maker, are_judgements)
            calls.count += some.calls
            calls.timed += some.timed
            calls.microseconds += some.microseconds
            calls.cost += costs.convert(some.usd, some.started)
            if some.priced < some.calls:
                if costs.has_price(model):
                    later = True
                elif not costs.is_free(model):
                    calls.unpriced += some.calls - some.priced
        unpriced = self._sums.unpriced(by, judgements=are_judgements) if later else iter(())
        waiting = (
            each for each in unpriced if costs.has_price(self._model(each.maker, are_judgements))
        )
        while batch := list(islice(waiting, AT_ONCE)):
            found = self._price(batch, are_judgements)
            for each in batch:
                cost = found[each.id]
                if cost is None:
                    groups[each.key].unpriced += 1
                else:
                    groups[each.key].cost += cost

    def _model(self, maker: str, are_judgements: bool) -> str | None:
        return self._costs.model_of(maker) if are_judgements else maker

    def _price(self, calls: Sequence[Call], are_judgements: bool) -> dict[str, float | None]:
        """Return the costs of calls without one at the prices of today."""
        if are_judgements:
            made = {each.id: JudgingCost(each.started, each.maker, None) for each in calls}
            return self._costs.costs_of_judgements(made)
        spent = {each.id: Spent(each.started, each.maker, None, None) for each in calls}
        return self._costs.costs_of_answers(spent)

    def _judge(
        self, cells: Sequence[AttemptedCell]
    ) -> Iterator[tuple[AttemptedCell, list[Verdict]]]:
        """Yield results with the verdicts on their attempts, if all are judged."""
        judged = self._store.find_judgements(id for cell in cells for id in cell.judgements)
        for cell in cells:
            votes = [judged[id] for id in cell.judgements if id in judged]
            attempts = judge_attempts(votes, cell.kind.get("judgedBy", MODELS), self._rule)
            if len(attempts) == cell.attempts:
                yield cell, [word for word, _ in attempts]


def judge_attempts(
    judgements: Iterable[StoredJudgement], judged_by: Collection[str], rule: str
) -> list[JudgedSession]:
    """Return the verdicts on attempts, apart from those on which those who decide are to vote."""
    by_attempt = group_votes((each.subject, each.vote) for each in judgements)
    judged = (judge_so_far(votes, judged_by, CHECKS, rule) for votes in by_attempt.values())
    return [each for each in judged if each is not None]


def keys_with(
    by: By, model: str, prompt: str | None, tags: Sequence[str], file: str
) -> Iterator[Key]:
    """Yield the groups of a result with a candidate, a prompt and the tags of a case."""
    parts = {"model": (model,), "prompt": (prompt,), "tag": tags or (None,), "file": (file,)}
    return product(*(parts[name] for name in by))

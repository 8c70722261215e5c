"""How the judges of a run agree with people and with each other: `stats --by judge`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalstore.core.clock import iso
from evalstore.core.errors import NothingSelectedError
from evalstore.core.side_names import side_name
from evalstore.files.json_output import fields_to_json
from evalstore.planning.judge_names import evaluator_names
from evalstore.planning.plan import CHECKS
from evalstore.results.show.revision_results import find_results, open_revision
from evalstore.results.stats.stats import StatsCollector

if TYPE_CHECKING:
    from evalstore.core.values import Json
    from evalstore.planning.options import Location


@dataclass(slots=True)
class JudgeStats:
    """What a judge said, and how often others said the same about the same answer."""

    judge: str
    verdicts: Counter[str] = field(default_factory=Counter)
    people: Counter[tuple[str, str]] = field(default_factory=Counter)
    """The verdict of the judge and that of a person -> how often."""
    judges: Counter[tuple[str, str]] = field(default_factory=Counter)
    """The same with another judge."""

    @property
    def false_passes(self) -> int:
        """Return how often it passed what a person failed."""
        return self.people["pass", "fail"]

    @property
    def false_fails(self) -> int:
        """Return how often it failed what a person passed."""
        return self.people["fail", "pass"]

    def document(self) -> Json:
        """Return the figures as JSON."""
        return {
            "evaluator": self.judge,
            "judgements": self.verdicts.total(),
            "passed": self.verdicts["pass"],
            "failed": self.verdicts["fail"],
            "undecided": self.verdicts["undecided"],
            "errors": self.verdicts["error"],
            "people": {
                "agreed": agreed(self.people),
                "compared": compared(self.people),
                "falsePasses": self.false_passes,
                "falseFails": self.false_fails,
            },
            "evaluators": {
                "agreed": agreed(self.judges),
                "compared": compared(self.judges),
                "passedAlone": self.judges["pass", "fail"],
                "failedAlone": self.judges["fail", "pass"],
            },
        }


@dataclass(frozen=True, slots=True)
class JudgeTable:
    """The judges of a run, or of the workspace."""

    JSON_FIELDS = ("run", "started", "groups")
    run: str
    started: int = field(metadata={"json_as": iso})
    groups: tuple[JudgeStats, ...]

    def document(self) -> Json:
        """Return the judges as JSON."""
        return {**fields_to_json(self), "groups": [each.document() for each in self.groups]}


def compared(pairs: Counter[tuple[str, str]]) -> int:
    """Return how many pairs are of a pass or a fail on both sides."""
    return sum(count for both, count in pairs.items() if {*both} <= {"pass", "fail"})


def agreed(pairs: Counter[tuple[str, str]]) -> int:
    """Return in how many of these both said the same."""
    return pairs["pass", "pass"] + pairs["fail", "fail"]


def judge_stats(location: Location, revision: str) -> JudgeTable:
    """Return the figures of each judge, by name; raises `NothingSelectedError` without any.

    Several versions of a judge are one. Checks are not judges.
    """
    with open_revision(location, revision) as project:
        run, batches = find_results(project, revision)
        collector = StatsCollector(project, run, [])
        collector.collect(batches)
        with collector.open_sums() as sums:
            pairs = [*sums.judged_pairs()]
        names = evaluator_names(project.store, {pair.judge for pair in pairs})
        people = {id for id, (_, is_person) in names.items() if is_person}
    judges: dict[str, JudgeStats] = {}
    for pair in pairs:
        name, other = names[pair.judge][0], names.get(pair.other, ("", False))[0]
        if pair.judge in people or CHECKS in (pair.judge, pair.other):
            continue
        judge = judges.setdefault(name, JudgeStats(name))
        if not pair.other:
            judge.verdicts[pair.verdict] += pair.times
        elif pair.other in people:
            judge.people[pair.verdict, pair.word] += pair.times
        elif name != other:
            judge.judges[pair.verdict, pair.word] += pair.times
    if not judges:
        raise NothingSelectedError(f"no judge has judged an answer of {side_name(run.id)}")
    return JudgeTable(run.id, run.started, tuple(judges[name] for name in sorted(judges)))

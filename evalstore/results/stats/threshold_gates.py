"""The gates of a run that the `thresholds` of the settings make, by tag, file or model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from evalstore.core.runs import Run
from evalstore.core.values import SPECIAL_TAGS
from evalstore.store import Store
from evalstore.workspace.settings.settings import Settings, Threshold


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
class ThresholdGates:
    """The gates of a run, and the results that they decide about."""

    gates: list[ThresholdGate] = field(default_factory=list)
    covered: dict[str, Counter[str | None]] = field(default_factory=dict)
    """Test file -> how many of the results with a gate have each verdict."""


def find_gates(store: Store, settings: Settings, run: Run) -> ThresholdGates | None:
    """Return the gates of a run, in the order of the settings; None if they have none."""
    if not settings.thresholds:
        return None
    found = ThresholdGates()
    groups: list[dict[tuple[str, ...], Counter[str | None]]] = [{} for _ in settings.thresholds]
    for file, model, kind, verdict, count in store.count_results_by_kind(run.results):
        tags, is_covered = kind.get("tags", ()), False
        for threshold, counts in zip(settings.thresholds, groups, strict=True):
            if set(threshold.where) <= set(tags):
                is_covered = True
                for group in _groups(threshold, tags, file, model):
                    counts.setdefault(group, Counter())[verdict] += count
        if is_covered:
            found.covered.setdefault(file, Counter())[verdict] += count
    for threshold, counts in zip(settings.thresholds, groups, strict=True):
        for group, words in sorted(counts.items()):
            judged = words.total() - words[None]
            by = dict(zip(threshold.by, group, strict=True))
            found.gates.append(
                ThresholdGate(threshold.where, by, threshold.pass_rate, words["pass"], judged)
            )
    return found


def _groups(
    threshold: Threshold, tags: Sequence[str], file: str, model: str
) -> Iterator[tuple[str, ...]]:
    """Yield the groups of a result, several when the gates are by tag."""
    by_tag = [tag for tag in tags if tag not in SPECIAL_TAGS and tag not in threshold.where]
    values = {"tag": by_tag, "file": [file], "model": [model]}
    return product(*(values[name] for name in threshold.by))

"""The trend: the pass rates of candidates over the last runs, and the edits that broke results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, NamedTuple

from evalstore.comparison.comparison import Pair
from evalstore.comparison.pair_groups import OLDER, OLDER_MEANS, PlacedResults
from evalstore.core.clock import minute
from evalstore.core.display import WORKSPACE, percent, plural
from evalstore.core.runs import Run
from evalstore.core.values import RECORDED
from evalstore.planning.open_project import open_workspace
from evalstore.planning.options import Location, is_partial, leaves_out_cases
from evalstore.results.compare.diff import diff
from evalstore.results.compare.diff_result import Diff
from evalstore.results.edits.edited_files import find_run_edits
from evalstore.results.edits.edited_sources import by_subject
from evalstore.results.flips.verdict_changes import Outcome
from evalstore.results.log.log import LogEntry, add_outcomes, count_leaves
from evalstore.results.stats.stats import Stats
from evalstore.store import Store
from evalstore.store.rows.row_queries import VerdictCounts
from evalstore.store.trees.tree_nodes import read_trees
from evalstore.workspace.settings.settings import candidate_order

_MOST_COMPARED = 10
"""Runs of which it is known what changed: each that broke something is compared in full."""
MOST_RUNS = 30
"""The most runs of a trend."""
_MOST_RESULTS = 200_000
"""About how many results are counted for it; those that several runs have count once."""
_PARTS_OF_FILES = ("test", "instructions", "checks")
"""What is edited in a test file, in the words of `diff`."""
_PROMPTS = ("system prompt", "judge prompt")
_MOST_NAMED = 3
"""The most edits of a run that are named with how many results each broke."""
_MOST_MISSING = 0.1
"""The largest share of results without a verdict with which a rate is comparable."""


class CandidateCounts(NamedTuple):
    """The results of a candidate in a run."""

    passed: int
    judged: int
    results: int
    """Those that are pending, too."""


Rates = Mapping[str, CandidateCounts]
"""The results of each candidate."""


def rate_texts(rates: Rates, names: Sequence[str], *, is_partial: bool) -> tuple[str, ...]:
    """Return the pass rate of each candidate; empty without a verdict.

    Of some cases, or with results that are pending, it is counts: a rate would be taken for all.
    """
    return tuple(
        ""
        if not each or not each.judged
        else f"{each.passed:,} of {each.judged:,}"
        if is_partial or each.judged < each.results
        else percent(each.passed / each.judged)
        for each in map(rates.get, names)
    )


class TrendRun(NamedTuple):
    """A run in the trend, or the workspace as it is now."""

    id: str
    """The id of the run, or `workspace`."""
    at: int
    """When it started, in microseconds since 1970, UTC."""
    is_partial: bool
    """Whether it left out cases; not one of all cases by some candidates."""
    rates: Rates
    outcome: Outcome | None = None
    """How many results broke and were fixed; None: not computed."""
    edits: tuple[str, ...] = ()
    """What was edited before it, as in `log`: `tests/late.md changed`."""
    breaks: tuple[tuple[str, int], ...] = ()
    """The edits that broke results in it and how many, most first, as `count_breaks` has them."""
    status: str = "complete"
    is_limited: bool = False
    """Whether it left out cases or candidates."""

    @property
    def break_texts(self) -> list[str]:
        """Return which edits broke how many results: `tests/late.md: 3 broke`; the first three."""
        texts = [f"{edit}: {count:,} broke" for edit, count in self.breaks[:_MOST_NAMED]]
        if rest := self.breaks[_MOST_NAMED:]:
            texts.append(f"{len(rest):,} more: {sum(count for _, count in rest):,} broke")
        return texts


class TrendPoint(NamedTuple):
    """The pass rate of a candidate in a run."""

    run: int
    """The number of the run in `Trend.runs`."""
    rate: float
    """0..1; what is undecided has not passed."""
    is_partial: bool
    """Whether it stands for some of the cases: it is drawn hollow, and no line joins it."""


class TrendLine(NamedTuple):
    """The pass rates of a candidate, the oldest first."""

    candidate: str
    points: tuple[TrendPoint, ...]
    number: int
    """The place of the candidate in the settings, by which it has its colour in all reports."""

    @property
    def joined(self) -> list[TrendPoint]:
        """Return the points that a line joins: those of all cases."""
        return [point for point in self.points if not point.is_partial]


@dataclass(frozen=True, slots=True)
class Trend:
    """The newest runs up to one, and the pass rates of the candidates in them."""

    runs: tuple[TrendRun, ...]
    """The oldest first."""
    lines: tuple[TrendLine, ...]
    """The candidates in their order."""

    @property
    def dates(self) -> list[str]:
        """Return the day of each run, or its time where all runs are of one day."""
        times = [minute(run.at) for run in self.runs]
        days = [time[5:10] for time in times]
        return days if len({*days}) > 1 else [time[11:16] for time in times]

    def end_text(self, line: TrendLine) -> str:
        """Return the rate of a line in the last run, of some cases counts; empty if it has none."""
        end = line.points[-1]
        rates = self.runs[-1].rates if end.run == len(self.runs) - 1 else {}
        return rate_texts(rates, [line.candidate], is_partial=end.is_partial)[0]

    @property
    def notes(self) -> list[str]:
        """Return what hollow points are, if there are any, for reports and the browser."""
        is_hollow = any(point.is_partial for line in self.lines for point in line.points)
        return ["○ partial run, or over 10% of verdicts missing"] * is_hollow


def add_rates(
    location: Location,
    store: Store,
    entries: Sequence[LogEntry],
    compared: int | None,
    rates: Iterable[Rates],
) -> Iterator[TrendRun]:
    """Yield these runs with the results of their candidates, and the edits that broke results.

    `compared` says of how many it is known what changed; None if of all. Of at most 10 it is told.
    """
    known = _MOST_COMPARED if compared is None else min(compared, _MOST_COMPARED)
    for number, (entry, counts) in enumerate(zip(entries, rates, strict=True)):
        run, is_known = entry.run, number < known
        outcome = (entry.outcome or Outcome(0, 0, ())) if is_known else None
        is_limited, edits = is_partial(run), tuple(map(str, entry.edits))
        breaks: tuple[tuple[str, int], ...] = ()
        if outcome and outcome.broke and (before := store.find_run_before(run)):
            breaks = count_breaks(diff(location, before.id, run.id))
        facts = counts, outcome, edits, breaks, run.status, is_limited
        yield TrendRun(run.id, run.started, is_limited and leaves_out_cases(run), *facts)


def run_notes(runs: Sequence[TrendRun]) -> list[str]:
    """Return of how many runs it is known what changed, unless of all, and what causes mean."""
    stored = [run for run in runs if run.id != WORKSPACE]
    counted = sum(run.outcome is not None for run in stored)
    told = f"counted for the newest {plural(counted, 'run')}" if counted else "not counted"
    causes = [cause for run in stored if run.outcome for cause in run.outcome.causes]
    return [
        *[f"Changed results are {told}."] * (counted < len(stored)),
        *[f"{OLDER.capitalize()}: {OLDER_MEANS}."] * any(OLDER in cause for cause in causes),
    ]


def trend_until(location: Location, store: Store, stats: Stats) -> Trend:
    """Return the trend up to what statistics by candidate are about: a run, or the workspace.

    The workspace is left out where it has the rates of the newest run. There are at most 30 runs,
    fewer where they have many results; of the newest it is known which edits broke something.
    """
    newest = None if stats.is_workspace else store.load_run(stats.run)
    rates_now = {
        group.name: CandidateCounts(group.rate.passed, group.rate.judged, group.results)
        for group in stats.groups
    }
    now = None if newest else TrendRun(WORKSPACE, stats.started, False, rates_now)
    earlier = store.find_recent_runs(before=newest, limit=MOST_RUNS)
    runs = [*islice(chain([newest] if newest else [], earlier), MOST_RUNS - bool(now))]
    rates = count_rates(store, runs)
    runs = runs[: len(rates)]
    edited = find_run_edits(location, store, runs)
    entries = [LogEntry(run, run.verdicts, it) for run, it in zip(runs, edited, strict=True)]
    entries[:_MOST_COMPARED], compared = add_outcomes(location, store, entries[:_MOST_COMPARED])
    listed = [*add_rates(location, store, entries, compared, rates)]
    is_news = now is not None and (not listed or now.rates != listed[0].rates)
    settings = open_workspace(location).settings
    names = [each.name or each.id for each in settings.candidates]
    order = candidate_order(settings)
    return make_trend([*([now] if now and is_news else []), *listed], order, names)


def count_breaks(found: Diff) -> tuple[tuple[str, int], ...]:
    """Return the edits that broke results, each with how many, most first.

    An edit is `tests/late.md`, `judge prompt tone` or `model of mini`; several that broke the same
    results together are one: `system prompt brief and tests/late.md`.
    """
    edits = (" and ".join(dict.fromkeys(_edits_of(found, pair))) for pair in found.broke)
    return (*Counter(filter(None, edits)).most_common(),)


def _edits_of(found: Diff, pair: Pair) -> Iterator[str]:
    """Yield the edits that explain a pair, those of files by the name that `diff` has for them."""
    file, name = pair.either.file, pair.either.model.rpartition("/")[2]
    edited = [*by_subject({file: found.edits.get(file, ())}, found.sources)]
    for word in found.reasons.edits(pair):
        part = word.partition(" changed")[0]
        prompts = [it for it in edited if it.startswith(part)] if part in _PROMPTS else []
        files = [it for it in edited if not it.startswith("system prompt")]
        if prompts or (files and word.rpartition(" ")[0] in _PARTS_OF_FILES):
            yield from prompts or files
        elif part == "model":
            yield f"model of {name}"
        elif word.startswith("temperature "):
            yield f"{name}: {word}"
        else:
            listed = [it for it in map(str, found.participants) if it.startswith(word)]
            yield from listed or [word.removesuffix(" changed")]


def make_trend(
    runs: Sequence[TrendRun], order: Callable[[str], Any] = str, known: Iterable[str] = ()
) -> Trend:
    """Return the trend of runs, which are given newest first.

    `order` is the sort key of candidates, and `known` are those of the settings.
    Recorded answers have a line only without other candidates, or where their rate of all cases
    changes.
    """
    found = dict[str, set[float]]()
    for run in runs:
        for name, counts in run.rates.items():
            rates = {counts.passed / max(1, counts.judged)} if not run.is_partial else set[float]()
            found.setdefault(name, set()).update(rates)
    if len(found) > 1 and len(found.get(RECORDED, ())) < 2:
        found.pop(RECORDED, None)
    oldest = tuple(reversed(runs))
    lines: list[TrendLine] = []
    for at, name in enumerate(sorted({*found, *known}, key=order)):
        if name not in found:
            continue
        points = []
        for number, run in enumerate(oldest):
            if (counted := run.rates.get(name)) and counted.judged:
                is_part = counted.judged < (1 - _MOST_MISSING) * counted.results
                rate = counted.passed / counted.judged
                points.append(TrendPoint(number, rate, run.is_partial or is_part))
        lines.append(TrendLine(name, (*points,), at))
    return Trend(oldest, (*lines,))


def count_results(results: PlacedResults) -> Rates:
    """Return how many of these results each candidate has."""
    names = [*results.model_names]
    verdicts = ((names[it], results.verdict(at)) for at, it in enumerate(results.models))
    return _by_candidate(Counter(verdicts))


def _by_candidate(counts: VerdictCounts) -> Rates:
    found: dict[str, CandidateCounts] = {}
    for (model, verdict), n in counts.items():
        passed, judged, results = found.get(model, (0, 0, 0))
        passed += n * (verdict == "pass")
        found[model] = CandidateCounts(passed, judged + n * (verdict is not None), results + n)
    return found


def count_rates(store: Store, runs: Sequence[Run]) -> list[Rates]:
    """Return the results of each candidate in the newest of these runs, newest first.

    Results that several runs have are counted once; the older runs are left out when these are
    many.
    """
    trees = read_trees([(run.results, None) for run in runs], store.load_nodes)
    known: dict[str, VerdictCounts] = {}
    found: list[Rates] = []
    for entries in trees:
        if sum(map(Counter.total, known.values())) > _MOST_RESULTS:
            break
        unknown = {node for node in entries.values() if node not in known}
        known |= count_leaves(store, unknown)
        counts: VerdictCounts = Counter()
        for node in entries.values():
            counts.update(known.get(node, ()))
        found.append(_by_candidate(counts))
    return found

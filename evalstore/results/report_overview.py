"""The overview of a run or of the workspace: one sentence, and a row for each candidate.

The trend is the pass rate of each candidate in the newest runs, with the edits that broke cases.

Plain values, which the HTML report, the report in Markdown and the browser show alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, NamedTuple

from evalstore.comparison.comparison import Pair
from evalstore.comparison.pair_groups import OLDER, OLDER_MEANS, PlacedResults
from evalstore.comparison.statistics import Rate, RateChange
from evalstore.core.clock import minute
from evalstore.core.display import (
    BROKEN_PENDING,
    NEWEST_RUNS,
    WORKSPACE,
    cost_text,
    half_up,
    is_simulated,
    money,
    percent,
    plural,
    plural_is,
    whole_percent,
)
from evalstore.core.runs import Run
from evalstore.core.values import RECORDED, order_counts
from evalstore.planning.open_project import open_workspace
from evalstore.planning.options import Location, is_partial, leaves_out_cases
from evalstore.results.compare.change_causes import OLDER_ANSWERS
from evalstore.results.compare.diff import diff
from evalstore.results.compare.diff_result import Diff
from evalstore.results.edits.edited_files import find_run_edits
from evalstore.results.edits.edits import by_subject
from evalstore.results.flips.verdict_changes import BrokenCase, Outcome, by_title
from evalstore.results.log.log import LogEntry, add_outcomes, count_leaves
from evalstore.results.stats.groups import ResultGroup, answers_cost_per_100, partly_judged
from evalstore.results.stats.stats import Stats
from evalstore.store import Store
from evalstore.store.rows.row_queries import VerdictCounts
from evalstore.store.trees.tree_nodes import read_trees
from evalstore.workspace.settings.settings import candidate_order

_RECORDED = "“Best” leaves out recorded answers: no candidate gave them"
_MOST_NAMED = 2
"""The most candidates that the sentence names for a change."""


class Shift(NamedTuple):
    """Two pass rates of a candidate: in the earlier run and now, over what both have judged."""

    was: float
    now: float
    shared: int
    """How many results both have judged, where fewer than are judged now; else 0."""
    changed: int
    """How many results pass that did not, or the other way round."""
    others: Counter[str]
    """How many of these changed without a new answer, by cause."""
    is_said: bool
    """Whether the candidate got better or worse by its new answers, too."""

    @property
    def word(self) -> str:
        """Return whether the candidate got `better` or `worse`."""
        return "better" if self.now > self.was else "worse"

    @property
    def verb(self) -> str:
        """Return whether it `got better` or `got worse`; `rose` or `fell` not by new answers."""
        return f"got {self.word}" if self.is_said else "rose" if self.now > self.was else "fell"

    @property
    def change(self) -> str:
        """Return how the rate changed, and by what if not by new answers: `rose, 54% to 77%`."""
        rates = whole_percent(self.was), whole_percent(self.now)
        if rates[0] == rates[1]:
            rates = percent(self.was), percent(self.now)
        text = f", {' to '.join(rates)}"
        if self.shared:  # their rates are not those that a table of all results shows
            text = f" by {half_up(abs(100 * (self.now - self.was)))} points"
        is_others = not self.is_said and self.others.total() == self.changed
        causes = f", by {' and '.join(self.others)}" * is_others
        return f"{self.verb}{text}{causes}"

    @property
    def text(self) -> str:
        """Return the change in points: `+23.1`; `0` without one."""
        points = 100 * (self.now - self.was)
        return f"{half_up(points):+.1f}" if points else "0"

    @property
    def part(self) -> str:
        """Return `in 24 shared results`; empty if it is of all results."""
        return f"in {plural(self.shared, 'shared result')}" if self.shared else ""


class CandidateRow(NamedTuple):
    """A candidate with its figures."""

    name: str
    group: ResultGroup
    """Its rate, interval, costs and latency."""
    is_partly: bool
    """Whether fewer of its results are judged than of another candidate."""
    shift: Shift | None
    """None without a result that is judged on both sides."""
    is_counted: bool = False
    """Whether it is of some cases: counts are shown, as a rate would be taken for that of all."""

    @property
    def rate(self) -> str:
        """Return the pass rate, or counts where a rate would mislead."""
        text = self.group.rate_text(is_partly=self.is_partly, is_counted=self.is_counted)
        return text if self.is_counted or self.group.rate.judged else "-"

    @property
    def interval(self) -> tuple[float, float] | None:
        """Return the 95 % interval of the rate; None where there is none."""
        return None if self.is_counted else self.group.interval

    @property
    def cost(self) -> str:
        """Return the cost of 100 answers; empty if there are no answers."""
        return answers_cost_per_100(self.group)

    @property
    def latency(self) -> str:
        """Return the mean time of an answer; empty if it is not known."""
        seconds = self.group.latency
        return "" if seconds is None else f"{seconds:.2f} s"


@dataclass(frozen=True, slots=True)
class Overview:
    """What a reader has to know first."""

    sentence: str
    """`mini got better, 54% to 77%; 2 results broke. Best: large, 90%. The run cost $0.12.`"""
    candidates: tuple[CandidateRow, ...]
    note: str = ""
    """Which of the rates the sentence leaves out; empty if it compares all."""


def make_overview(
    run: Run,
    totals: Stats | None,
    diff: Diff | None,
    breaks: Sequence[BrokenCase] = (),
    quote: Callable[[str], str] = str,
    *,
    pending: int = 0,
    compare: Callable[[str, str], RateChange] | None = None,
) -> Overview:
    """Return the overview of a run; `totals` by candidate are None if it has no results.

    `diff` is the comparison with the run before, `breaks` are those that are still broken, and
    `quote` writes the name of a candidate. All is said to be so far where results are `pending`.
    With `compare`, which compares two candidates, it says if the lead of the best may be chance.
    """
    groups = totals.groups if totals else ()
    is_of_some = is_partial(run) and leaves_out_cases(run)
    changed = _changes_text(diff, breaks)
    told = _causes_text(diff) if diff else ""
    shifts = find_shifts(diff, groups) if diff and not is_of_some else {}
    rows = tuple(
        CandidateRow(group.name, group, is_partly, shifts.get(group.name), is_of_some)
        for group, is_partly in zip(groups, partly_judged(groups), strict=True)
    )
    if is_of_some:
        parts = _partial_text(run), changed, told
        cost = _cost_text(run)
        return Overview(f"{'; '.join(filter(None, parts))}{'.' * bool(cost)}{cost}", rows)
    if not any(row.group.rate.judged for row in rows):
        return Overview(f"Nothing is judged yet.{_cost_text(run)}", rows)
    tails = Counter(row.name.rpartition("/")[2] for row in rows)
    names = {  # without the provider, where these differ
        row.name: quote(tail if tails[tail := row.name.rpartition("/")[2]] == 1 else row.name)
        for row in rows
    }
    shifted = _shift_texts(diff, shifts, names) if diff else []
    failing = _failing_text(diff, [row.group.rate for row in rows])
    if shifted or not told:
        changes = [*shifted, changed, failing, told]
        if diff and not (shifted or diff.broke or diff.fixed):
            changes.insert(0, "Nothing broke or was fixed")
    else:
        is_all = all(shift.changed == shift.others.total() for shift in shifts.values())
        flips = _changes_text(diff, breaks, noun=False)
        found = f"{told[0].upper()}{told[1:]}: {flips}".removesuffix(": ")
        changes = [found, failing] if is_all else [changed, failing, told]
    best = _best_text(rows, names, compare, is_first=diff is None)
    told = "; ".join(filter(None, changes))
    is_left_out = best.startswith("Best") and any(row.name == RECORDED for row in rows)
    so_far = f"So far: {plural_is(pending, 'result')} pending" * bool(pending)
    sentence = " ".join(f"{part}." for part in (told, best, so_far) if part)
    return Overview(f"{sentence}{_cost_text(run)}", rows, _RECORDED * is_left_out)


def _cost_text(run: Run) -> str:
    """Return ` The run cost $0.12.`; empty of a run that cost nothing, and of the workspace."""
    cost = cost_text(run.cost, run.spending)
    if is_simulated(run.spending):
        cost = f"{money(run.cost)} (simulated)"
    told = "The price of the run is unknown" if cost == money(None) else f"The run cost {cost}"
    return "" if run.id == WORKSPACE or run.cost == 0 else f" {told}."


def _failing_text(diff: Diff | None, rates: Sequence[Rate]) -> str:
    """Return how many new results fail, of a first run how many of all; empty if none does."""
    if diff is None:
        failing = sum(each.judged - each.passed - each.unresolved for each in rates)
        of = plural(sum(each.judged for each in rates), "result")
    else:
        words = diff.new.count_new()
        pending = words.pop(None, 0)
        of = plural(words.total(), f"{'judged ' * bool(pending)}new result")
        failing = words["fail"] + words["error"]
    return f"{failing:,} of {of} {'fails' if failing == 1 else 'fail'}" if failing else ""


def _partial_text(run: Run) -> str:
    """Return what a run of some cases has found: counts, as it says nothing about the others."""
    words = ", ".join(
        f"{count:,} {word}" for word, count in order_counts(run.verdicts).items() if count
    )
    if run.cases is None:
        return words or "no results"
    answers, cases = sum(run.verdicts.values()), run.cases.selected
    several = f", {plural(answers, 'result')}" if cases < answers else ""
    of = f"{cases:,} of {plural(run.cases.total, 'case')}{several}"
    return f"{of}: {words or 'no results'}"


def count_texts(
    run: Run,
    counts: Mapping[str, int],
    diff: Diff | None,
    breaks: Sequence[BrokenCase] | None,
    price: str = "",
) -> Iterator[str]:
    """Yield how many results fail, are pending, at this price, undecided or errors, by verdict.

    Of those that fail, also how many broke in the newest runs; None: not all `breaks` are known.
    """
    total = plural(sum(counts.values()), "result")
    failing = counts.get("fail", 0) + counts.get("error", 0)
    if diff and failing and not is_partial(run):
        broke = len(diff.broke) + sum(it.result.word in ("fail", "error") for it in breaks or ())
        runs = f"the last {NEWEST_RUNS} runs{' or since' * (run.id == WORKSPACE)}"
        since = f" ({f'{broke:,}' if broke else 'none'} broke in {runs})"
        verb = "fails" if failing == 1 else "fail"
        yield f"{failing:,} of {total} {verb}{since * (breaks is not None)}"
    if missing := counts.get("pending", 0) + counts.get("no reply", 0):
        failed = plural(run.failed, "call") + " failed" if run.failed else ""
        yield "; ".join(filter(None, (f"{missing:,} of {total} pending", price, failed)))
    new = len(diff.comparison.now_undecided) if diff else 0
    decided = f", {new:,} of them newly" * bool(new)
    for word, more in (("undecided", decided), ("error", "")):
        if counts.get(word):
            yield f"{counts[word]:,} of {total} {word}{more}"


# --- how the rates changed


def find_shifts(diff: Diff, groups: Sequence[ResultGroup]) -> dict[str, Shift]:
    """Return how the pass rate of each candidate changed, over what is judged on both sides.

    `groups` are the results of the newer side by candidate.
    """
    comparison = diff.comparison
    was, now = comparison.sides.was, comparison.sides.now
    names = [*now.model_names]
    gained, judged, passed = Counter[str](), Counter[str](), Counter[str]()
    """What each candidate gained, and what only the newer side has judged."""
    changed = Counter[str]()
    for group in (comparison.broke, comparison.fixed, comparison.changed, comparison.new):
        for old, new in group.numbers():
            if new < 0 or (after := now.verdict(new)) is None:
                continue
            name = names[now.models[new]]
            if old < 0 or (before := was.verdict(old)) is None:
                judged[name] += 1
                passed[name] += after == "pass"
            else:
                gained[name] += (after == "pass") - (before == "pass")
                changed[name] += (after == "pass") != (before == "pass")
    shifts = {}
    for each in groups:
        both = each.rate.judged - judged[each.name]
        if both > 0:
            kept = each.rate.passed - passed[each.name]
            shared = both if judged[each.name] else 0
            others, gain = Counter[str](), gained[each.name]
            own = gain
            for (cause, model, points), count in diff.other_causes.items():
                if model == each.name and points:
                    others[cause] += count
                    own -= points * count
            rates = (kept - gain) / both, kept / both
            shifts[each.name] = Shift(*rates, shared, changed[each.name], others, gain * own > 0)
    return shifts


def _shift_texts(diff: Diff, shifts: Mapping[str, Shift], names: Mapping[str, str]) -> list[str]:
    """Return how the rates changed, most first; nothing if none did by new answers."""
    moved = [(name, shift) for name, shift in shifts.items() if shift.now != shift.was]
    if not any(shift.is_said for _, shift in moved):
        return []
    moved.sort(key=lambda each: -abs(each[1].now - each[1].was))
    tests = diff.comparison.tests(diff.change)

    def chance(name: str, shift: Shift) -> str:
        """Return that the change of a candidate by new answers may be chance, if so."""
        test = tests.get(name) or tests.get("")
        return " (may be chance)" * (shift.is_said and not (test and test.is_significant))

    texts = [
        f"{names[name]} {shift.change}{chance(name, shift)}" for name, shift in moved[:_MOST_NAMED]
    ]
    rest = Counter((each[1].verb, chance(*each)) for each in moved[_MOST_NAMED:])
    return texts + [f"{plural(count, 'other')} {verb}{why}" for (verb, why), count in rest.items()]


def _causes_text(diff: Diff) -> str:
    """Return `edits of tests changed 10 results, judges changed 2`; empty without one."""
    texts: list[str] = []
    for cause, count in diff.count_causes().most_common():
        number = f"{count:,}" if texts else plural(count, "result")
        told = f"{number} changed because older answers count now"
        texts.append(told if cause == OLDER_ANSWERS else f"{cause} changed {number}")
    return ", ".join(texts)


def _changes_text(diff: Diff | None, breaks: Sequence[BrokenCase], *, noun: bool = True) -> str:
    """Return how many results broke, are now undecided or were fixed, and are of the `breaks`.

    Where some broke, also that none was fixed. The first number has the `noun`.
    """
    broke = bool(diff and diff.broke)
    failing, waiting = map(len, by_title(breaks).values())
    others = ("other " if failing == 1 else "others ") * broke
    counts = {word: len(pairs) for word, pairs in diff.flips.items()} if diff else {}
    counts |= {f"{others}still broken": failing, BROKEN_PENDING: waiting}
    listed = [(word, n) for word, n in counts.items() if n or (broke and word == "fixed")]
    texts = [f"{f'{n:,}' if n else 'none'} {word}" for word, n in listed]
    first = [f"{plural(n, 'result')} {word}" for word, n in listed[:noun]]
    return ", ".join([*first, *texts[noun:]])


def _best_text(
    rows: Sequence[CandidateRow],
    names: Mapping[str, str],
    compare: Callable[[str, str], RateChange] | None,
    *,
    is_first: bool,
) -> str:
    """Return the candidate with the highest pass rate; of one, its rate."""
    rated = [
        (row, rate)
        for row in rows
        if (rate := row.group.pass_rate) is not None and row.name != RECORDED
    ]
    if not rated:
        (recorded,) = (row for row in rows if row.group.pass_rate is not None)
        return f"{whole_percent(recorded.group.pass_rate or 0.0)} of the recorded answers pass"
    if len(rated) == 1:
        row, rate = rated[0]
        said = row.shift and row.shift.is_said and row.shift.now == rate
        return "" if said and not is_first else f"{names[row.name]} passes {whole_percent(rate)}"
    whole = [(row, rate) for row, rate in rated if not row.is_partly] or rated
    most = max(rate for _, rate in rated)
    best = [names[row.name] for row, rate in whole if rate == most]
    if len(best) == len(rated):
        return f"{'Both' if len(best) == 2 else 'All'} candidates pass {whole_percent(most)}"
    lead = ""
    if len(best) == 1 and compare:
        first, second = sorted(rated, key=lambda each: -each[1])[:2]
        change = compare(first[0].name, second[0].name)
        if not change.is_significant or (change.difference or 0) < 0:
            lead = f"; its lead over {names[second[0].name]} may be chance"
    if len(best) > _MOST_NAMED:
        best = [*best[:_MOST_NAMED], f"{len(best) - _MOST_NAMED:,} more"]
    return f"Best: {', '.join(best)}, {whole_percent(most)}{lead}" if best else ""


_MOST_COMPARED = 10
"""Runs of which it is known what changed: each that broke something is compared in full."""
MOST_RUNS = 30
"""The most runs of a trend."""
_MOST_RESULTS = 200_000
"""About how many results are counted for it; those that several runs have count once."""
_PARTS_OF_FILES = ("test", "instructions", "checks")
"""What is edited in a test file, in the words of `diff`."""
_PROMPTS = ("system prompt", "judge prompt")
_EDITS_NAMED = 3
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
        texts = [f"{edit}: {count:,} broke" for edit, count in self.breaks[:_EDITS_NAMED]]
        if rest := self.breaks[_EDITS_NAMED:]:
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

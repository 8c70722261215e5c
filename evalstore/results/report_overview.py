"""The overview of a run or of the workspace: one sentence, and a row for each candidate.

The trend is the pass rate of each candidate in the newest runs, with the edits that broke cases.

Plain values, which the HTML report, the report in Markdown and the browser show alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evalstore.comparison.statistics import Rate, RateChange
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
    whole_percent,
)
from evalstore.core.runs import Run
from evalstore.core.values import RECORDED, order_counts
from evalstore.planning.options import is_partial, leaves_out_cases
from evalstore.results.compare.change_causes import OLDER_ANSWERS
from evalstore.results.compare.diff_result import Diff
from evalstore.results.flips.verdict_changes import EarlierBreak, by_title
from evalstore.results.stats.groups import ResultGroup, answers_cost_per_100, partly_judged
from evalstore.results.stats.stats import Stats

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
    breaks: Sequence[EarlierBreak] = (),
    quote: Callable[[str], str] = str,
    *,
    pending: int = 0,
    compare: Callable[[str, str], RateChange] | None = None,
) -> Overview:
    """Return the overview of a run; `totals` by candidate are None if it has no results.

    `diff` is the comparison with the run before, `breaks` are those that are still broken, and
    `quote` writes the name of a candidate. Rates are those `so far` where results are `pending`.
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
    so_far = " so far" * bool(pending)
    by_name = {each.name: so_far * (each.rate.judged < each.results) for each in groups}
    shifted = _shift_texts(diff, shifts, names, by_name, so_far) if diff else []
    failing = _failing_text(diff, [row.group.rate for row in rows])
    if shifted or not told:
        changes = [*shifted, changed, failing, told]
        if diff and not (shifted or diff.broke or diff.fixed):
            changes.insert(0, f"Nothing{' judged' * bool(so_far)}{so_far} broke or was fixed")
    else:
        is_all = all(shift.changed == shift.others.total() for shift in shifts.values())
        flips = _changes_text(diff, breaks, noun=False)
        found = f"{told[0].upper()}{told[1:]}{so_far}: {flips}".removesuffix(": ")
        changes = [found, failing] if is_all else [changed, failing, told]
    best = _best_text(rows, names, so_far, compare, is_first=diff is None)
    told = "; ".join(filter(None, changes))
    is_left_out = best.startswith("Best") and any(row.name == RECORDED for row in rows)
    sentence = " ".join(f"{part}." for part in (told, best) if part)
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
    breaks: Sequence[EarlierBreak] | None,
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


def _shift_texts(
    diff: Diff,
    shifts: Mapping[str, Shift],
    names: Mapping[str, str],
    so_far: Mapping[str, str],
    rest_so_far: str,
) -> list[str]:
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
        _shift_text(names[name], shift, so_far[name]) + chance(name, shift)
        for name, shift in moved[:_MOST_NAMED]
    ]
    rest = Counter((each[1].verb, chance(*each)) for each in moved[_MOST_NAMED:])
    return texts + [
        f"{plural(count, 'other')} {verb}{rest_so_far}{why}" for (verb, why), count in rest.items()
    ]


def _shift_text(name: str, shift: Shift, so_far: str) -> str:
    """Return how the rate of a candidate changed, and by what if not by new answers."""
    rates = whole_percent(shift.was), whole_percent(shift.now)
    if rates[0] == rates[1]:
        rates = percent(shift.was), percent(shift.now)
    text = f", {' to '.join(rates)}"
    if shift.shared:  # their rates are not those that a table of all results shows
        text = f" by {half_up(abs(100 * (shift.now - shift.was)))} points"
    is_others = not shift.is_said and shift.others.total() == shift.changed
    causes = f", by {' and '.join(shift.others)}" * is_others
    return f"{name} {shift.verb}{so_far}{text}{causes}"


def _causes_text(diff: Diff) -> str:
    """Return `edits of tests changed 10 results, judges changed 2`; empty without one."""
    texts: list[str] = []
    for cause, count in diff.count_causes().most_common():
        number = f"{count:,}" if texts else plural(count, "result")
        told = f"{number} changed because older answers count now"
        texts.append(told if cause == OLDER_ANSWERS else f"{cause} changed {number}")
    return ", ".join(texts)


def _changes_text(diff: Diff | None, breaks: Sequence[EarlierBreak], *, noun: bool = True) -> str:
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
    so_far: str,
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
        return (
            f"{whole_percent(recorded.group.pass_rate or 0.0)} of the recorded answers pass{so_far}"
        )
    if len(rated) == 1:
        row, rate = rated[0]
        said = row.shift and row.shift.is_said and row.shift.now == rate
        return (
            ""
            if said and not is_first
            else f"{names[row.name]} passes {whole_percent(rate)}{so_far}"
        )
    whole = [(row, rate) for row, rate in rated if not row.is_partly] or rated
    most = max(rate for _, rate in rated)
    best = [names[row.name] for row, rate in whole if rate == most]
    if len(best) == len(rated):
        return (
            f"{'Both' if len(best) == 2 else 'All'} candidates pass {whole_percent(most)}{so_far}"
        )
    lead = ""
    if len(best) == 1 and compare:
        first, second = sorted(rated, key=lambda each: -each[1])[:2]
        change = compare(first[0].name, second[0].name)
        if not change.is_significant or (change.difference or 0) < 0:
            lead = f"; its lead over {names[second[0].name]} may be chance"
    if len(best) > _MOST_NAMED:
        best = [*best[:_MOST_NAMED], f"{len(best) - _MOST_NAMED:,} more"]
    return f"Best: {', '.join(best)}, {whole_percent(most)}{so_far}{lead}" if best else ""

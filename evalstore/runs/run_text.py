"""Formats a finished run as text, and selects the results that it lists, new failures first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from evalstore.comparison.pair_groups import CellMarks, unpack_result
from evalstore.core.display import (
    StyledLine,
    StyledSpan,
    cost_text,
    new_judgements,
    percent,
    plural,
    safe,
    saved_text,
    short,
    status_word,
    verdict_span,
)
from evalstore.core.hashing import DigestSet, digest_of_value
from evalstore.core.runs import Run
from evalstore.core.values import Result
from evalstore.files.temporary_list import FiledSequence, TemporaryList
from evalstore.planning.options import is_partial, selection_text
from evalstore.results.answer.judgements import attempts_text
from evalstore.runs.run_report import MOST_PENDING, MOST_SHOWN, RunReport

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evalstore.results.flips.verdict_changes import VerdictChanges


def run_counts_text(run: Run | RunReport, *, by_checks: int = 0) -> str:
    """Return the status and counts of a run: `complete: 2 new answers, 6 reused, 1 new judgement`.

    Recorded answers, which were taken from files, are counted apart, and so are the judgements
    `by_checks` if that number is given: it is not stored. Without any, recorded and reused answers
    are left out.
    """
    parts = [
        plural(run.asked, "new answer"),
        *([f"{run.recorded:,} recorded"] if run.recorded else []),
        *([f"{run.reused:,} reused"] if run.reused else []),
        new_judgements(run.judged, by_checks),
    ]
    return f"{status_word(run.status)}: {', '.join(parts)}"


def scope_text(run: Run) -> str:
    """Return the options of a run and its number of cases; empty without options of all cases."""
    selection = selection_text(run.selection)
    cases = run.cases
    if not cases or (not selection and cases.selected == cases.total):
        return selection
    part = f"{cases.selected:,} of {plural(cases.total, 'case')}"
    count = part if is_partial(run) or cases.selected < cases.total else "all cases"
    return f"{selection} ({count})" if selection else count


def summary_text(report: RunReport) -> str:
    """Return the id of a run, its status, counts and cost in one line."""
    amount = saved_text(report.saved, is_simulated=report.is_simulated)
    saved = f"; saved {amount} by reuse" if report.saved else ""
    counts = run_counts_text(report, by_checks=report.judged_by_checks)
    if report.used_again:
        counts += f", {plural(report.used_again, 'verdict')} reused"
    cost = cost_text(report.cost, report.spending)
    return f"run {short(report.run)} {counts}, {cost}{saved}"


def verdict_spans(verdicts: Mapping[str, int], signs: Mapping[str, str]) -> list[StyledSpan]:
    """Return the number of each of these verdicts: `183 pass, 4 fail`."""
    spans: list[StyledSpan] = []
    for word, count in verdicts.items():
        verdict = verdict_span(word, signs)
        spans += [
            *([StyledSpan(", ")] if spans else []),
            StyledSpan(f"{count:,} {verdict.text}", verdict.colour if count else ""),
        ]
    return spans


def verdict_line(report: RunReport, signs: Mapping[str, str]) -> StyledLine:
    """Return the number of results with each verdict, and the pass rate with its interval."""
    shown = {word: count for word, count in report.verdicts.items() if count or word == "pass"}
    spans = verdict_spans(shown, signs)
    text = ""
    if unjudged := report.totals.count(None):
        text += f", {unjudged:,} answered without a verdict"
    rate = report.rate
    if rate.interval:
        is_part = report.verdicts.get("pending") or unjudged
        judged = f" of {rate.judged:,} judged" if is_part else ""
        low, high = map(percent, rate.interval)
        text += f" ({rate.text}{judged}, 95% interval {low} to {high})"
    return StyledLine((*spans, StyledSpan(text)))


def failure_line(message: str, count: int, signs: Mapping[str, str]) -> StyledLine:
    """Return the message of failed calls to a model, and how often it occurred."""
    sign = f"{signs['error']} " if "error" in signs else ""
    return StyledLine((StyledSpan(f"{sign}failed {count:,}x: {safe(message)}", "fail"),))


def stop_lines(report: RunReport) -> Iterator[StyledLine]:
    """Yield why a run was stopped and what happens to its results; nothing if it was complete."""
    if report.status == "over budget":
        limit = "time" if report.time_is_up else "cost"
        reason = StyledSpan(f"stopped: {limit} limit reached", "pending")
    elif report.status == "interrupted":
        reason = StyledSpan("interrupted")
    else:
        return
    kept = "; what was finished is stored"
    if not report.is_refresh:
        kept += ", and the next run continues from there"
    yield StyledLine((reason, StyledSpan(kept)))


MOST_CHANGED = 5
"""The most changed results that pass and are listed; more are only counted."""
_MOST_NAMED = 3
"""The most unchanged failures that are named."""
STILL_FAILS = "still fails"
"""The mark of a failure that was judged again and failed before."""
Extent = Literal["news", "failures", "results"]
"""The listed results: failures that are new or judged again, all failures, or all results."""


class ListedResult(NamedTuple):
    """A result in the list of a run."""

    result: Result
    feedback: str
    change: str
    """`broke`, `fixed`, `changed`, or `new` for a failing result without an earlier verdict; for a
    failure that was judged again and failed before, `still fails`; else empty."""
    regression: str = ""
    """If it fails the gate because its case has passed before: `regression`, with the run in which
    it passed; else empty."""
    attempts: str = ""
    """How many attempts fail, if there are several and one does."""
    cause: str = ""
    """`another judgement` or `by a label` if only that changed, of the same answer; else empty."""

    @property
    def mark(self) -> str:
        """Return the change, its cause, and whether it is a regression, as text."""
        return ", ".join(filter(None, (self.change, self.cause, self.regression)))


@dataclass(frozen=True, slots=True)
class ResultList:
    """The listed results of a run, and how many are not listed."""

    entries: Sequence[ListedResult]
    """Many are in a temporary file."""
    more: int = 0
    """The number of results that are left out because the list is too long."""
    pending: int = 0
    """The number of pending cases that are left out."""
    failed_before: int = 0
    """The number of failures that are left out because they have not changed."""
    before: list[Result] = field(default_factory=list)
    """The first of these failures, when nothing else is listed."""
    undecided_before: int = 0
    """The number of undecided results that are left out because they have not changed."""

    @property
    def results(self) -> Iterable[Result]:
        """Return the results of the entries; without any, the first failures as before."""
        return (entry.result for entry in self.entries) if self.entries else self.before

    @property
    def rest(self) -> str:
        """Return how many results are not listed, and how to list them; empty if all are listed."""
        count = self.more + self.pending + self.failed_before + self.undecided_before
        if not count:
            return ""
        counts = (
            (self.more, f"more result{'s' * (self.more != 1)} of the kinds above"),
            (self.pending, "pending"),
            (self.failed_before, f"failure{'s' * (self.failed_before != 1)} as before"),
            (self.undecided_before, "undecided as before"),
        )
        listed = ", ".join(f"{number:,} {words}" for number, words in counts if number)
        if not self.entries and count == self.failed_before == len(self.before):
            return f"{listed} (--all shows why)"
        start = "not listed: " if self.entries else ""
        return f"{start}{listed} (--all lists {'it' if count == 1 else 'them'})"


def list_results(report: RunReport, extent: Extent = "news") -> ResultList:
    """Return the results to list, the new failures first and the pending cases last."""
    if extent == "news":
        return _list_news(report)
    listed = (
        (result, feedback)
        for result, feedback in report.lines()
        if extent == "results" or result.word not in ("pass", None)
    )
    return ResultList(_arrange(report, listed))


def _arrange(report: RunReport, results: Iterable[tuple[Result, str]]) -> RankedResults:
    """Return the results with their changes, the new failures first."""
    changes = report.changes
    again = CellMarks([(STILL_FAILS, changes.failed_again)] if changes else ())
    causes = changes.mark_causes() if changes else CellMarks()
    flips = changes.marks() if changes else CellMarks()
    others = CellMarks([("changed", changes.changed)] if changes else ())
    passed_in = CellMarks()
    for each in report.regressions or ():
        passed_in.put(each.result.cell, each.passed_in)
    ranked = RankedResults()
    for result, feedback in results:
        cell = result.cell
        change = others.of(cell) or flips.of(cell) or again.of(cell)
        attempts = attempts_text(report.totals.attempts.get(cell, ()))
        regression = ""
        if passed := passed_in.of(cell):
            regression = f"regression: passed in run {short(passed)}"
        entry = ListedResult(result, feedback, change, regression, attempts, causes.of(cell))
        rank = _RANKS.get(change)
        if rank is None:
            rank = _REGRESSION if regression else _LAST - bool(again.of(cell))
        ranked.add(rank, entry)
    return ranked


_RANKS = {"broke": 0, "new": 1, "fixed": 3}
_REGRESSION = 2
"""The rank of another regression."""
_LAST = 5
"""That of other results, behind failures that were judged again."""


class RankedResults(FiledSequence[ListedResult]):
    """Listed results by their ranks, and those of a rank in the order in which they were added."""

    def __init__(self) -> None:
        self._of_rank = [TemporaryList() for _ in range(_LAST + 1)]

    def add(self, rank: int, entry: ListedResult) -> None:
        """Add a result."""
        self._of_rank[rank].append((tuple(entry.result), *entry[1:]))

    def __len__(self) -> int:
        return sum(map(len, self._of_rank))

    def __iter__(self) -> Iterator[ListedResult]:
        return map(_unpack, chain.from_iterable(self._of_rank))

    def read_one(self, number: int) -> ListedResult:
        """Return the result with a number."""
        return next(map(_unpack, islice(chain.from_iterable(self._of_rank), number, None)))


def _unpack(values: Sequence[Any]) -> ListedResult:
    result, *rest = values
    return ListedResult(unpack_result(result), *rest)


def _list_news(report: RunReport) -> ResultList:
    """Return the results that changed since earlier runs; without earlier runs, all failures."""
    totals, changes = report.totals, report.changes
    pending = totals.verdicts["pending"]
    hidden = pending if pending > MOST_PENDING else 0
    failing = sum(totals.verdicts.values()) - totals.verdicts["pass"] - pending
    notable = [result for result in totals.notable if not hidden or result.word != "pending"]
    if changes is None:
        listed, count, failed_before = notable, failing + pending - hidden, 0
        undecided_before = 0
    else:
        waiting = [result for result in notable if result.word == "pending"]
        failures = _FailuresNow(changes)
        others = failures.also_changed()
        failures.add(*(regression.result for regression in report.regressions or ()))
        fixed = changes.fixed[:MOST_SHOWN]
        listed = [*failures.first, *fixed, *others, *waiting]
        count = failures.count + len(changes.fixed) + len(others) + len(waiting)
        failures.add(*(result for result in others if result.word not in _NOT_FAILING))
        undecided_before = totals.verdicts["undecided"] - failures.undecided
        failed_before = failing - failures.count - undecided_before
    shown = [(result, totals.feedback.get(result.decision, "")) for result in listed[:MOST_SHOWN]]
    before = [result for result in notable if result.word not in (*_NOT_FAILING, "undecided")]
    return ResultList(
        _arrange(report, shown),
        count - len(shown),
        hidden,
        failed_before,
        before[:_MOST_NAMED] if failed_before and not shown else [],
        undecided_before,
    )


_NOT_FAILING = ("pass", "pending", None)


class _FailuresNow:
    """Counts the cells that fail and whose result changed, and has the results of the first."""

    def __init__(self, changes: VerdictChanges) -> None:
        self._changes = changes
        self._cells = DigestSet()
        self.count = 0
        self.undecided = len(changes.undecided) + len(changes.new_undecided)
        """How many of these are undecided."""
        self.first: list[Result] = []
        """At most as many as are shown."""
        for results in changes.failures:
            for number, digest in enumerate(results.cells):
                if self._note(digest) and len(self.first) < MOST_SHOWN:
                    self.first.append(results[number])

    def _note(self, digest: int) -> bool:
        """Count a cell, unless it is counted already."""
        is_new = self._cells.add(digest)
        self.count += is_new
        return is_new

    def add(self, *results: Result) -> None:
        """Add results of other cells."""
        for result in results:
            if self._note(digest_of_value(result.cell)):
                self.undecided += result.verdict == "undecided"
                self.first += [result] * (len(self.first) < MOST_SHOWN)

    def also_changed(self) -> list[Result]:
        """Return the changed results that are not among the failures, if they are few."""
        changed = self._changes.changed
        numbers = (each for each, cell in enumerate(changed.cells) if cell not in self._cells)
        others = [*islice(numbers, MOST_CHANGED + 1)]
        return [changed[each] for each in others] if len(others) <= MOST_CHANGED else []

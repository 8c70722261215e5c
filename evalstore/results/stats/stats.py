"""The command `stats`: totals of the results of a run by candidate, prompt, tag or file.

Costs are those of the answers and judgements that count, even if an earlier run made the calls.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache
from itertools import chain, product
from typing import NamedTuple

from evalstore.checks.aggregation import combine_votes
from evalstore.comparison.statistics import ClusterSum, RateChange, change_of_files
from evalstore.core import hashing
from evalstore.core.batches import in_batches, in_small_batches
from evalstore.core.clock import iso
from evalstore.core.display import WORKSPACE, percent, plural, side_name
from evalstore.core.errors import EvalstoreError, NothingSelectedError
from evalstore.core.runs import Run, sum_costs
from evalstore.core.values import RECORDED, SPECIAL_TAGS, Case, Json, Result, Verdict, Vote, Word
from evalstore.files.fields import suggest
from evalstore.files.json_output import fields_to_json
from evalstore.planning.cell_results import evaluator_names
from evalstore.planning.earlier_results import find_cells
from evalstore.planning.options import (
    Location,
    describe_selection,
    is_chosen_by_verdict,
    is_partial,
    leaves_out_cases,
)
from evalstore.planning.plan import CHECKS
from evalstore.planning.project import Project
from evalstore.planning.selection import suits
from evalstore.results.edits.edits import find_equal_run
from evalstore.results.labels import read_labels
from evalstore.results.names import name_prompts_of_run
from evalstore.results.show.show import find_results, open_revision
from evalstore.results.stats.groups import CostReader, GroupSums, ResultGroup, judge_attempts
from evalstore.store import Store
from evalstore.store.events import is_all_scripted
from evalstore.store.results import RowResults, iterate_entries
from evalstore.store.revisions import WORK
from evalstore.store.rows.result_sums import (
    ROOT,
    By,
    Key,
    ResultSums,
    TemporaryRows,
    count_attempts,
    open_sums,
)
from evalstore.store.trees.tree_nodes import read_tree, read_trees
from evalstore.workspace.settings.settings import AnalysisQuery, QueryModel, candidate_order

DIMENSIONS = ("model", "prompt", "tag", "file")
"""The dimensions by which results can be grouped."""
_GAP = "  "
"""The separator between the parts of a group's name."""
_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Stats:
    """The results of a run, added up by group."""

    JSON_FIELDS = (
        *("run", "started", "selection", "by", "query", "currency"),
        *("total", "groups", "rerolls", "priced_later"),
    )
    run: str
    """The id of the run, or `workspace`."""
    started: int = field(metadata={"json_as": iso})
    """Microseconds since 1970, UTC."""
    by: By
    query: str | None
    """The description of the query that selects the results."""
    currency: str
    total: ResultGroup
    groups: tuple[ResultGroup, ...]
    rerolls: Rerolls
    """Results of questions that were asked again."""
    selection: str = field(default="", metadata={"json_as": lambda text: text or None})
    """The selection of a run that left out cases or candidates; else empty."""
    leaves_out_cases: bool = False
    """Whether the run left out cases, and not only candidates."""
    is_simulated: bool = False
    """Whether all models are scripted, so that nobody is paid."""
    priced_later: int = 0
    """Answers and judgements that have today's price, as theirs was not known when made."""

    @property
    def is_workspace(self) -> bool:
        """Return whether these are the results of the workspace and not of a run."""
        return self.run == WORKSPACE

    @property
    def plain_groups(self) -> list[ResultGroup]:
        """Return the groups without those of special tags, which say how a test is asked."""
        return [
            group
            for group in self.groups
            if not any(
                name == "tag" and key in SPECIAL_TAGS
                for name, key in zip(self.by, group.key, strict=False)
            )
        ]

    def document(self) -> Json:
        """Return the statistics as JSON."""
        return {
            **fields_to_json(self),
            "groups": [
                {**dict(zip(self.by, group.key, strict=True)), **group.document()}
                for group in self.groups
            ],
        }


def stats(
    location: Location,
    revision: str = WORK,
    by: Sequence[str] = ("model",),
    *,
    query: str | None = None,
    currency: str | None = None,
) -> Stats:
    """Return the results of a run grouped by dimensions; a case counts for each of its tags.

    The revision `@work` is the current workspace, with the verdicts from stored answers and
    judgements.

    `query` is the description of a query of the settings. Raises `EvalstoreError` for an unknown
    query or currency, and when nothing is selected.
    """
    return read_stats(location, revision, [tuple(by)], query=query, currency=currency)[0]


def read_stats(
    location: Location,
    revision: str,
    groupings: Sequence[By],
    *,
    query: str | None = None,
    currency: str | None = None,
) -> list[Stats]:
    """Return the statistics for several groupings; the results are read once."""
    for name in (name for by in groupings for name in by):
        if name not in DIMENSIONS:
            hint = suggest(name, (*DIMENSIONS, "judge"), "groups")
            if name in ("judge", "evaluator"):
                hint = "'evalstore stats --by judge' takes no other group, query or currency"
            raise EvalstoreError(f"results cannot be grouped by '{name}'", hint=hint)
    with open_revision(location, revision) as project:
        run, batches = find_results(project, revision)
        collector = StatsCollector(project, run, groupings, query=query, currency=currency)
        collector.collect(batches)
        return collector.finish(rerolls=True)


# --- selects results by a query of the settings, and the evaluators that count for it


class Filter:
    """A query for the results of one run; without a query it accepts everything."""

    def __init__(self, project: Project, run: Run, query: AnalysisQuery | None) -> None:
        """Raise `EvalstoreError` for an unknown model or system prompt."""
        self._query = query
        self._run = run.id
        self._temperatures = {candidate.id: candidate.temperature for candidate in run.candidates}
        versions = project.reading.names.get("prompts", {})
        self._prompts = set[str]()
        for name in query.system_prompts if query else ():
            if name not in versions:
                hint = suggest(name, versions, "prompts")
                raise EvalstoreError(f"unknown system prompt '{name}'", hint=hint)
            self._prompts.update(versions[name])
        if query:
            self._require(query.candidates, self._temperatures, "candidate")
        self.evaluators = self._find_evaluators(project, run)
        """Whose judgements count, where verdicts must be computed again; None: all do."""

    def __call__(self, result: Result, case: Case) -> bool:
        """Return whether a result counts."""
        query = self._query
        if query is None:
            return True
        default = self._temperatures.get(result.model)
        temperature = default if case.temperature is None else case.temperature
        chosen = [it for it in query.candidates if it.temperature in (None, temperature)]
        return (
            suits(case, query.required_tags1, query.prohibited_tags)
            and suits(case, query.required_tags2, ())
            and (not query.system_prompts or result.prompt in self._prompts)
            and query.candidates_temperature in (None, temperature)
            and (not query.candidates or any(_is_named(it, result.model) for it in chosen))
        )

    def _find_evaluators(self, project: Project, run: Run) -> set[str] | None:
        """Return the ids of the evaluators that count; None if all count."""
        query = self._query
        if query is None or (not query.evaluators and query.evaluators_temperature is None):
            return None
        evaluators = project.store.load_all("evaluator")
        models: dict[str, set[str]] = {}
        for evaluator in run.evaluators:
            model = evaluators.get(evaluator.evaluator, {}).get("model")
            models.setdefault(evaluator.id, set()).add(model)
        self._require(query.evaluators, models, "evaluator")
        chosen = [
            (
                {model for name in models if _is_named(evaluator, name) for model in models[name]},
                evaluator,
            )
            for evaluator in query.evaluators
        ]
        chosen = chosen or [(set[str]().union(*models.values()), QueryModel(""))]
        return {
            id
            for id, content in evaluators.items()
            if query.evaluators_temperature in (None, content.get("temperature"))
            and any(
                content.get("model") in versions
                and by.temperature in (None, content.get("temperature"))
                for versions, by in chosen
            )
        }

    def _require(self, chosen: Sequence[QueryModel], names: Iterable[str], kind: str) -> None:
        names, article = list(names), "an" if kind == "evaluator" else "a"
        for model in chosen:
            if not any(_is_named(model, name) for name in names):
                raise EvalstoreError(
                    f"'{model.id}' is not {article} {kind} of {side_name(self._run)}",
                    hint=suggest(model.id, names, f"{kind}s"),
                )


def _is_named(chosen: QueryModel, model: str) -> bool:
    """Return whether a query selects a model, also under a name with a temperature."""
    return model == chosen.id or model.startswith(f"{chosen.id}@")


# --- sums results


class StatsCollector:
    """Sums the results of a run by several groupings, in the store or while they are read."""

    def __init__(
        self,
        project: Project,
        run: Run,
        groupings: Sequence[By],
        *,
        query: str | None = None,
        currency: str | None = None,
    ) -> None:
        """Find the query and the currency; raises `EvalstoreError` for unknown ones."""
        self.project, self.run, self._groupings = project, run, groupings
        self._query = _find_query(project, query) if query is not None else None
        self._code = currency or (self._query.currency if self._query else None) or "USD"
        convert = _converter(project, self._code)
        self._keep = Filter(project, run, self._query)
        self._costs = CostReader(project.store, convert, prices=project.prices_by_version())
        self._stored = (find_equal_run(project) or run) if run.id == WORKSPACE else run
        """The run, or one that has stored the same results as the workspace."""
        self._root = self._stored.results
        is_selected = not self._root or self._query is not None
        self._selected = TemporaryRows() if is_selected else None
        """The results that count, where they are not all results of a stored run."""
        self.saved = 0.0
        """The cost of the answers and judgements that the run reused, in USD, once it is summed."""

    def collect(self, batches: Iterator[list[tuple[Result, Case]]]) -> None:
        """Read those results of the run that are not asked of the store."""
        if self._selected:
            for _ in self.pass_on(batches):
                pass

    def pass_on(
        self, batches: Iterable[list[tuple[Result, Case]]]
    ) -> Iterator[list[tuple[Result, Case]]]:
        """Yield the results of the run, and keep those that are not asked of the store."""
        for batch in batches:
            if self._selected:
                kept = [entry for entry in batch if self._keep(*entry)]
                self._selected.add(self.project.store, self._judged(kept))
            yield batch

    def _judged(self, cells: Sequence[tuple[Result, Case]]) -> Sequence[tuple[Result, Case]]:
        """Return results with the judgements that count, and the verdicts that these make."""
        if (evaluators := self._keep.evaluators) is None:
            return cells
        rule, judged = self.run.verdict_rule, []
        made = self.project.store.find_judgements(
            id for cell, _ in cells for id in cell.evaluations
        )
        for result, case in cells:
            votes = [made[id] for id in result.evaluations if id in made]
            votes = [each for each in votes if each.vote.evaluator in evaluators]
            attempts = judge_attempts(votes, case.judged_by, rule)
            is_whole = len(attempts) == count_attempts(result.required_answers, len(case.tests))
            verdict = combine_votes(attempts, rule).verdict if is_whole else None
            ids = tuple(each.vote.id for each in votes)
            judged.append((result._replace(verdict=verdict, evaluations=ids), case))
        return judged

    @contextmanager
    def open_sums(self) -> Iterator[ResultSums]:
        """Return the sums of the results that count; raises `StoreError` if a node is missing."""
        if self._selected:
            yield ResultSums(self._selected.connection, ROOT)
            return
        with open_sums(self.project.store, self._root) as sums:
            yield sums

    def compare(self, first: str, second: str) -> RateChange:
        """Return how much more often the first of two candidates passes, over what both have."""
        by_file = defaultdict[str, Counter[ClusterSum]](Counter)
        with self.open_sums() as sums:
            for file, pairs, gain, rows in sums.paired(first, second):
                by_file[file][ClusterSum(pairs, gain)] += rows
        return change_of_files([*by_file.values()])

    def finish(self, *, rerolls: bool) -> list[Stats]:
        """Return the statistics, with `rerolls` also those of questions that were asked again.

        Raises `NothingSelectedError` when nothing counts.
        """
        run, chosen = self.run, self._query
        with self.open_sums() as sums:
            groups_of = GroupSums(self.project.store, sums, self._costs, run)
            found = groups_of.find([*self._groupings, ()])
        self.saved = round(groups_of.saved, 8)
        prompts = name_prompts_of_run(
            self.project,
            (
                part
                for by, groups in found.items()
                for key in groups
                for name, part in zip(by, key, strict=True)
                if name == "prompt"
            ),
        )
        if is_chosen_by_verdict(run.selection):
            found = {
                by: {
                    key: replace(group, rate=group.rate.without_interval())
                    for key, group in groups.items()
                }
                for by, groups in found.items()
            }
        everything = found[()].get(())
        if everything is None:
            raise NothingSelectedError(
                f"the query '{chosen.description}' selects nothing of {side_name(run.id)}"
                if chosen
                else f"{side_name(run.id)} has no results",
                hint="'evalstore stats' shows what the run has",
            )
        everything = replace(everything, name="all")
        counted = Rerolls()
        if rerolls and self._root and self._keep.evaluators is None:
            counted = count_rerolls(self.project.store, self._stored, self._keep)
        is_simulated = is_all_scripted(self.project.store, run)
        return [
            Stats(
                run=run.id,
                started=run.started,
                by=by,
                query=chosen.description if chosen else None,
                currency=self._code,
                selection=describe_selection(run.selection) if is_partial(run) else "",
                leaves_out_cases=is_partial(run) and leaves_out_cases(run),
                total=everything,
                groups=self._named(by, found[by], prompts),
                rerolls=counted,
                is_simulated=is_simulated,
                priced_later=len(self._costs.later),
            )
            for by in self._groupings
        ]

    def _named(
        self, by: By, groups: Mapping[Key, ResultGroup], prompts: Mapping[str | None, str]
    ) -> tuple[ResultGroup, ...]:
        """Return groups with their names: candidates as in the settings, others by name."""
        order, named = candidate_order(self.project.settings), []
        for key, group in groups.items():
            parts = [*zip(by, key, strict=True)]
            names = [prompts[it] if of == "prompt" else it or "no tag" for of, it in parts]
            place = [
                order(name) if of == "model" else (False, 0, name.casefold())
                for of, name in zip(by, names, strict=True)
            ]
            named.append((place, replace(group, name=_GAP.join(names), names=(*names,))))
        return tuple(group for _, group in sorted(named, key=lambda each: each[0]))


def _find_query(project: Project, name: str) -> AnalysisQuery:
    """Return the query with this description, or the only one whose description contains it."""
    queries = project.settings.analysis_queries
    names = [query.description for query in queries]
    if not queries:
        raise EvalstoreError(
            f"unknown query '{name}'",
            hint="describe some under 'analysisQueries:' in evalstore.yaml",
        )
    same = [query for query in queries if query.description.casefold() == name.casefold()]
    matches = same or [
        query for query in queries if name.casefold() in query.description.casefold()
    ]
    if not matches:
        raise EvalstoreError(f"unknown query '{name}'", hint=suggest(name, names, "queries"))
    if len(matches) > 1:
        listed = ", ".join(f"'{query.description}'" for query in matches)
        raise EvalstoreError(f"'{name}' is {len(matches)} queries", hint=f"it could be {listed}")
    return matches[0]


def _converter(project: Project, code: str) -> Callable[[float, int], float]:
    """Return a function from USD and a time to an amount of the currency at that day's rate."""
    currency = project.reading.currencies.get(code)
    if currency is None:
        if code == "USD":
            return lambda usd, _at: usd
        raise EvalstoreError(
            f"unknown currency '{code}'",
            hint=suggest(code, {"USD", *project.reading.currencies}, "currencies"),
        )

    @cache
    def rate_of(day: int) -> float:
        date = datetime.fromtimestamp(day * 86_400, tz=UTC).date().isoformat()
        if not (rate := currency.rate(date)):
            raise EvalstoreError(
                f"'{code}' has no rate for {date}",
                hint=f"add a rate with 'validFrom: \"{date}\"' or earlier to its currency file",
            )
        return rate

    return lambda usd, at: usd / rate_of(at // _DAY) if usd else 0.0


# --- counts results of questions that were asked again, after a failure or after a pass


_MOST_RUNS = 200
"""The most earlier runs that are read."""
_MOST_CELLS = 200_000
"""About how many results are read to compare them."""

Keep = Callable[["Result", Case], bool]
"""Whether a result counts."""
_Cell = tuple[Result, tuple[str | None, ...]]
"""A result, and the system prompts of its case."""


class _Leaf(NamedTuple):
    """The results of a file in some runs."""

    id: str
    ended: int
    """When one of these runs ended, in microseconds since 1970."""


@dataclass
class Rerolls:
    """Judged results with answers that were asked for after an earlier run."""

    fails: int = 0
    """Results whose previous answers did not pass."""
    passes: int = 0
    """Results whose previous answers passed."""
    passed_after_fail: int = 0
    """Results that pass now, and whose previous answers did not."""
    runs: int = 0
    """The number of earlier runs that were read."""

    def text(self, passed: int) -> str:
        """Return a remark on `passed` passes; empty if none of them had failed before."""
        if not self.passed_after_fail:
            return ""
        return (
            f"{self.passed_after_fail:,} of {passed:,} passes failed before they were asked again "
            f"(asked again: {self.fails:,} that failed, {self.passes:,} that passed). "
            "A new answer may pass by chance, so the rate may be too high; "
            "'evalstore run --refresh' asks all again."
        )


def count_rerolls(store: Store, run: Run, keep: Keep) -> Rerolls:
    """Compare the results of a run that count with the previous answers to the same questions.

    Previous answers are those of the latest run that lacks some of the present ones, had ended
    before these were asked for, and judged by the same instructions and checks. So an answer that
    an undone edit brings back is compared with what came before it was made. Unlike
    `find_in_runs`, of runs with equal results the earliest counts, and renames are not followed.

    Reads the newest 200 earlier runs, and about 200,000 results of files whose results
    have changed since; others are left out.
    """
    rerolls = Rerolls()
    current = read_tree(run.results, store.load_nodes)
    earlier: dict[str, list[_Leaf]] = {}
    before = run.results
    runs = store.find_recent_runs(run, _MOST_RUNS)
    for batch in in_small_batches(runs):
        rerolls.runs += len(batch)
        roots = [earlier_run.results for earlier_run in batch]
        # Leaves of both trees were listed with the later one.
        pairs = list(zip(roots, [before, *roots], strict=False))
        trees = read_trees(pairs, store.load_nodes)
        for earlier_run, entries in zip(batch, trees, strict=True):
            for path, leaf in entries.items():
                if leaf != current.get(path, leaf):
                    found = earlier.setdefault(path, [])
                    if found and found[-1].id == leaf:  # of equal ones the earliest run counts
                        found.pop()
                    found.append(_Leaf(leaf, earlier_run.ended))
        before = roots[-1]
    if not earlier:
        return rerolls
    with open_sums(store, run.results) as sums:
        asked = sums.asked_since(min(leaves[-1].ended for leaves in earlier.values()))
    old = {leaf.id for leaf in store.find_tree_leaves(run.results)} - asked
    entries = {path: current[path] for path in earlier}
    rows, read = RowResults(store), 0
    for listed in iterate_entries(store, entries, dict.fromkeys(entries, old)):
        read += len(listed)
        cells = (
            (result, case.prompts)
            for result, case in listed
            if result.verdict and result.model != RECORDED and keep(result, case)
        )
        for left in in_batches(cells):
            read += _look_back(store, rows, left, earlier, rerolls)
            if read > _MOST_CELLS:
                return rerolls
    return rerolls


def _look_back(
    store: Store,
    rows: RowResults,
    cells: list[_Cell],
    earlier: Mapping[str, Sequence[_Leaf]],
    rerolls: Rerolls,
) -> int:
    """Count results by the newest earlier ones that differ; returns how many were looked for."""
    read = 0
    for place in range(_MOST_RUNS):
        files = {result.file for result, _ in cells}
        leaves = {path: earlier[path][place] for path in files if place < len(earlier[path])}
        if not leaves or read > _MOST_CELLS:
            break
        read += sum(result.file in leaves for result, _ in cells)
        cells = _count(store, rows, cells, leaves, rerolls)
    return read


def _count(
    store: Store, rows: RowResults, cells: list[_Cell], earlier: Mapping[str, _Leaf], to: Rerolls
) -> list[_Cell]:
    """Count those with answers that were asked for after the earlier ones; returns the others."""
    entries = {path: leaf.id for path, leaf in earlier.items()}
    found = find_cells(rows, entries, cells)
    new = [
        {*cell[0].sessions}.difference(was[0].sessions) if was and was[0].verdict else set[str]()
        for cell, was in zip(cells, found, strict=True)
    ]
    made = store.find_times("sessions", set().union(*new))
    left = []
    for cell, was, answers in zip(cells, found, new, strict=True):
        now = cell[0]
        is_later = any(made.get(id, 0) > earlier[now.file].ended for id in answers)
        if was and was[0].verdict and was[0].evaluation == now.evaluation and is_later:
            had_passed = was[0].verdict == "pass"
            to.passes += had_passed
            to.fails += not had_passed
            to.passed_after_fail += now.verdict == "pass" and not had_passed
        else:
            left.append(cell)
    return left


# --- how the judges of a run agree with people and with each other: `stats --by judge`


@dataclass(slots=True)
class JudgeStats:
    """What a judge said, and how often others said the same about the same answer."""

    judge: str
    verdicts: Counter[str] = field(default_factory=Counter)
    people: Counter[tuple[str, str]] = field(default_factory=Counter)
    """The verdict of the judge and that of most people -> how often."""
    judges: Counter[tuple[str, str]] = field(default_factory=Counter)
    """The same with another judge."""
    alone: Counter[str] = field(default_factory=Counter)
    """How many answers have this verdict by the judge, and the opposite one by all others."""
    failed: Counter[str] = field(default_factory=Counter)
    """What most of its verdicts say on answers that people failed -> how many answers."""
    shared: Counter[str] = field(default_factory=Counter)
    """The same on answers that other judges decided."""
    others_passed: Fraction = Fraction()
    """How many of the shared answers others passed; the share of their verdicts on each."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Why labels are not compared in `people` -> how many."""

    def add(self, words: Sequence[Verdict], others: Sequence[Verdict], count: int) -> None:
        """Count so many answers with these verdicts by the judge, and those by other judges."""
        for word in words:
            self.verdicts[word] += count
            for other in others:
                self.judges[word, other] += count
        own, opposite = ({"pass", "fail"}.intersection(each) for each in (words, others))
        if len(own) == len(opposite) == 1 and own != opposite:
            self.alone[own.pop()] += count
        passed, failed = others.count("pass"), others.count("fail")
        word = combine_votes([(word, None) for word in words]).verdict
        if word in ("pass", "fail") and passed + failed:
            self.shared[word] += count
            self.others_passed += Fraction(count * passed, passed + failed)

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
                "falsePasses": self.people["pass", "fail"],
                "falseFails": self.people["fail", "pass"],
            },
            "evaluators": {
                "agreed": agreed(self.judges),
                "compared": compared(self.judges),
                "passedAlone": self.alone["pass"],
                "failedAlone": self.alone["fail"],
            },
        }


@dataclass(frozen=True, slots=True)
class JudgeTable:
    """The judges of a run, or of the workspace."""

    JSON_FIELDS = ("run", "started", "groups", "ties")
    run: str
    started: int = field(metadata={"json_as": iso})
    groups: tuple[JudgeStats, ...]
    ties: int = 0
    """How often as many people passed an answer as failed it, under the same instructions."""
    labels: int = 0
    """All labels in the store."""

    def coverage(self, judge: JudgeStats) -> str:
        """Return how many labels are compared with a judge, and why others are not."""
        left = [f"{many:,} {why}" for why, many in sorted(judge.left_out.items())]
        of = f"of {plural(self.labels, 'label')} compared"
        return f"{self.labels - judge.left_out.total():,} {of}; {', '.join(left)}" if left else ""


_FEWEST_LABELS = 5
"""The fewest answers that people failed by which judges are told apart."""


def rank_judges(judges: Sequence[JudgeStats]) -> tuple[list[JudgeStats], str]:
    """Return judges, the most lenient first, and what shows that; empty for a single judge.

    Judges are ranked by people's labels if each has enough of them, else by the other judges of
    the same answers.
    """
    has_labels = all(judge.failed.total() >= _FEWEST_LABELS for judge in judges)

    def leniency(judge: JudgeStats) -> tuple[float, Fraction]:
        """Return the share of false passes, and the lead over the pass rate of other judges."""
        lead = judge.shared["pass"] - judge.others_passed
        share = judge.failed["pass"] / judge.failed.total() if has_labels else 0
        return share, lead / (judge.shared.total() or 1)

    ranked = sorted(judges, key=leniency, reverse=True)
    if len(ranked) < 2:
        return ranked, ""
    first, second = ranked[:2]
    if leniency(first)[0] > leniency(second)[0]:
        passed = f"{first.failed['pass']:,} of {first.failed.total():,}"
        return ranked, f"most lenient: {first.judge} passed {passed} answers that people failed"
    if leniency(first) == leniency(second) or leniency(first)[1] <= 0:
        text = "no judge is more lenient than all others"
    else:
        both = first.shared["pass"], float(first.others_passed)
        own, others = (percent(passed / first.shared.total()) for passed in both)
        text = f"most lenient: {first.judge} passed {own} of the answers it judged; "
        text += f"other judges passed {others} of them"
    few = f"to count false passes, each judge needs {_FEWEST_LABELS} answers that people failed"
    return ranked, text if has_labels else f"{text} ({few})"


def compared(pairs: Counter[tuple[str, str]]) -> int:
    """Return how many pairs are of a pass or a fail on both sides."""
    return sum(count for both, count in pairs.items() if {*both} <= {"pass", "fail"})


def agreed(pairs: Counter[tuple[str, str]]) -> int:
    """Return in how many of these both said the same."""
    return pairs["pass", "pass"] + pairs["fail", "fail"]


def agreement(pairs: Counter[tuple[str, str]]) -> str:
    """Return in what share of these both said the same, as `80.0% of 5`; empty without any."""
    count = compared(pairs)
    return f"{percent(agreed(pairs) / count)} of {count:,}" if count else ""


def false_verdicts(pairs: Counter[tuple[str, str]], said: str) -> str:
    """Return in how many of those that people decided otherwise a judge said this; else `-`."""
    other = "fail" if said == "pass" else "pass"
    count = pairs[said, other]
    labels = count + pairs[other, other]
    return f"{count:,} of {labels:,} ({count / labels:.0%})" if labels else "-"


def judge_stats(location: Location, revision: str) -> JudgeTable:
    """Return the figures of each judge, by name; raises `NothingSelectedError` without any.

    Several versions of a judge are one. Checks are not judges. Labels are compared with verdicts
    by the versions of judges and instructions of the run, or of the workspace, also on answers
    that newer ones have replaced.
    """
    with open_revision(location, revision) as project:
        run, batches = find_results(project, revision)
        collector = StatsCollector(project, run, [])
        collector.collect(batches)
        with collector.open_sums() as sums:
            answers, instructions = sums.judged_answers(), sums.instructions()
        times = project.settings.evaluations_per_evaluator
        labelled = [*_labelled_answers(project.store, times, instructions)]
        versions = {id for votes in answers for id, _ in votes}
        versions |= {each.evaluator for each in run.evaluators}
        on_labelled = {vote.evaluator for *_, votes in labelled for vote in votes}
        names = evaluator_names(project.store, versions | on_labelled)
    judges: dict[str, JudgeStats] = {}
    for given, count in answers.items():
        said: dict[str, list[Verdict]] = {}
        for id, verdict in given:
            if id != CHECKS and not names[id][1]:
                said.setdefault(names[id][0], []).append(verdict)
        for name, words in said.items():
            others = [word for other in said if other != name for word in said[other]]
            judges.setdefault(name, JudgeStats(name)).add(words, others, count)
    for name in {names[id][0] for id in on_labelled} & {each.id for each in run.evaluators}:
        judges.setdefault(name, JudgeStats(name))
    for (word, count, votes), judge in product(labelled, judges.values()):
        own = [vote for vote in votes if names[vote.evaluator][0] == judge.judge]
        counted = [vote for vote in own if vote.evaluator in versions]
        pairs = Counter[tuple[str, str]]((vote.verdict, word) for vote in counted)
        if word in ("pass", "fail"):
            judge.people += pairs
        decided = [(vote.verdict, None) for vote in counted if vote.verdict != "none"]
        if word == "fail" and decided:
            judge.failed.update({combine_votes(decided).verdict} & {"pass", "fail"})
        if not compared(pairs):
            why = (
                (word == "none", "for other instructions or checks"),
                (word == "undecided", "tied"),
                (counted, "undecided by the judge"),
                (own, "judged by other versions alone"),
                (True, "not judged"),
            )
            judge.left_out[next(text for holds, text in why if holds)] += count
    if not judges:
        raise NothingSelectedError(f"no judge has judged an answer of {side_name(run.id)}")
    groups = tuple(judges[name] for name in sorted(judges))
    ties = sum(word == "undecided" for word, *_ in labelled)
    return JudgeTable(run.id, run.started, groups, ties, sum(count for _, count, _ in labelled))


def _labelled_answers(
    store: Store, times: int, instructions: Container[str]
) -> Iterator[tuple[Word, int, list[Vote]]]:
    """Yield what most people say of each labelled answer, of how many, and the judges' verdicts.

    People say `undecided` in a tie, and `none` if these labels are by other instructions or checks.
    Of each judge its last judgements count, as many `times` as it judges an answer.
    """
    labels: dict[tuple[str, str], list[tuple[Verdict, None]]] = {}
    for label in read_labels(store).last():
        if label.verdict != "none":
            place = hashing.subject_of(label.sessions), label.evaluation
            labels.setdefault(place, []).append((label.verdict, None))
    made = store.find_votes({subject for subject, _ in labels})
    for (subject, id), said in labels.items():
        word = combine_votes(said).verdict if id in instructions else "none"
        by_judge: dict[str, list[Vote]] = {}
        for vote in made[subject]:
            if vote.evaluation == id and not vote.human:
                by_judge.setdefault(vote.evaluator, []).append(vote)
        yield word, len(said), [vote for each in by_judge.values() for vote in each[-times:]]


# --- what all runs have cost


def sum_spent(store: Store, until: Run | None = None) -> tuple[float | None, list[Json]]:
    """Return the cost of all runs, or of those up to one, as `sum_costs` does."""
    return sum_costs(chain([until] if until else [], store.find_recent_runs(until, sys.maxsize)))

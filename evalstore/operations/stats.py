"""The command `stats`: totals of the results of a run by candidate, prompt, tag or file.

Costs are those of the answers and judgements that count, even if an earlier run made the calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from evalstore.clock import iso
from evalstore.errors import EvalstoreError, NothingSelectedError
from evalstore.files.fields import suggest
from evalstore.judging.aggregation import combine, judge_session
from evalstore.operations.json_output import fields_to_json
from evalstore.operations.prompt_names import prompt_label
from evalstore.operations.rerolls import Rerolls, count_rerolls
from evalstore.operations.side_names import WORKSPACE, side_name
from evalstore.operations.stats_filter import Filter
from evalstore.planning.open_project import open_catalogue, open_project
from evalstore.planning.options import SelectionOptions, describe_selection, leaves_out
from evalstore.planning.plan import CHECKS
from evalstore.providers.kinds import SCRIPTED
from evalstore.reports.group_totals import CallFacts, GroupTotals, MeasuredResult, ResultGroup
from evalstore.results import Result
from evalstore.store.results import iterate_cases
from evalstore.store.revisions import WORK, resolve_run
from evalstore.values import RECORDED, Case, Json, Verdict

if TYPE_CHECKING:
    from evalstore.planning.options import Location
    from evalstore.planning.project import Project
    from evalstore.runs import Run
    from evalstore.store import Store
    from evalstore.store.costs import StoredJudgement
    from evalstore.workspace.settings import AnalysisQuery

DIMENSIONS = ("model", "prompt", "tag", "file")
"""The dimensions by which results can be grouped."""
_AT_ONCE = 4_000
"""Results whose answers and judgements are looked up together."""
_GAP = "  "
"""The separator between the parts of a group's name."""
_DAY = 86_400_000_000
_FREE = (SCRIPTED, RECORDED)
"""Providers whose answers cost nothing when they have no price."""

By = tuple[str, ...]
_Key = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Stats:
    """The results of a run, added up by group."""

    JSON_FIELDS = (
        *("run", "started", "selection", "by", "query", "currency"),
        *("total", "groups", "rerolls"),
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

    @property
    def is_workspace(self) -> bool:
        """Return whether these are the results of the workspace and not of a run."""
        return self.run == WORKSPACE

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
    revision: str = "@",
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


def _check_groupings(groupings: Sequence[By]) -> None:
    """Raise `EvalstoreError` for a name that results cannot be grouped by."""
    for name in (name for by in groupings for name in by):
        if name not in DIMENSIONS:
            hint = suggest(name, DIMENSIONS, "groups")
            raise EvalstoreError(f"results cannot be grouped by '{name}'", hint=hint)


def read_stats(
    location: Location,
    revision: str,
    groupings: Sequence[By],
    *,
    query: str | None = None,
    currency: str | None = None,
) -> list[Stats]:
    """Return the statistics for several groupings; the results are read once."""
    _check_groupings(groupings)
    with open_results(location, revision) as project:
        chosen = _find_query(project, query) if query is not None else None
        code = currency or (chosen.currency if chosen else None) or "USD"
        convert = _converter(project, code)
        run, batches = find_results(project, revision)
        keep = Filter(project, run, chosen)
        total = GroupTotals()
        sums: list[dict[_Key, GroupTotals]] = [{} for _ in groupings]
        for measured, case in _look(
            project.store, run.verdict_rule, _select(batches, keep), keep, convert
        ):
            total.add(measured)
            for by, totals in zip(groupings, sums, strict=True):
                for key in _keys(by, measured.result, case):
                    if key not in totals:
                        totals[key] = GroupTotals()
                    totals[key].add(measured)
        everything = total.group((), "all")
        if not everything.results:
            raise NothingSelectedError(
                f"the query '{chosen.description}' selects nothing of {side_name(run.id)}"
                if chosen
                else f"{side_name(run.id)} has no results",
                hint="'evalstore stats' shows what the run has",
            )
        has_rerolls = revision != WORK and not keep.is_about_votes
        rerolls = count_rerolls(project.store, run, keep) if has_rerolls else Rerolls()
        return [
            Stats(
                run=run.id,
                started=run.started,
                by=by,
                query=chosen.description if chosen else None,
                currency=code,
                selection=describe_selection(run.selection) if leaves_out(run.selection) else "",
                total=everything,
                groups=tuple(
                    sorted(
                        (
                            group_totals.group(key, _GAP.join(names), names)
                            for key, group_totals in totals.items()
                            for names in [_names(project, by, key)]
                        ),
                        key=lambda group: group.name.casefold(),
                    )
                ),
                rerolls=rerolls,
            )
            for by, totals in zip(groupings, sums, strict=True)
        ]


@contextmanager
def open_results(location: Location, revision: str) -> Iterator[Project]:
    """Open the project; test files are read, and must be valid, only for the workspace."""
    if revision != WORK:
        with open_catalogue(location) as project:
            yield project
        return
    from evalstore.planning.planner import require_sound

    with open_project(location) as project:
        require_sound(project, SelectionOptions())
        yield project


def find_results(
    project: Project, revision: str
) -> tuple[Run, Iterator[list[tuple[Result, Case]]]]:
    """Return the run that a revision names, and its results in batches."""
    if revision != WORK:
        run = resolve_run(project.store, revision)
        return run, iterate_cases(project.store, run)
    from evalstore.operations.workspace_results import iterate_workspace, workspace_as_run

    return workspace_as_run(project), iterate_workspace(project)


def _find_query(project: Project, name: str) -> AnalysisQuery:
    """Return the query with this description, or the only one whose description contains it."""
    queries = project.settings.analysis_queries
    names = [query.description for query in queries]
    if not queries:
        raise EvalstoreError(
            f"there is no query '{name}'",
            hint="describe some under 'analysisQueries:' in evalstore.yaml",
        )
    same = [query for query in queries if query.description.casefold() == name.casefold()]
    matches = same or [
        query for query in queries if name.casefold() in query.description.casefold()
    ]
    if not matches:
        raise EvalstoreError(f"there is no query '{name}'", hint=suggest(name, names, "queries"))
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
            f"there is no currency '{code}'",
            hint=suggest(code, {"USD", *project.reading.currencies}, "currencies"),
        )
    rates: dict[int, float] = {}

    def convert(usd: float, at: int) -> float:
        if usd == 0:
            return 0.0
        day = at // _DAY
        if day not in rates:
            date = datetime.fromtimestamp(at // 1_000_000, tz=UTC).date().isoformat()
            rate = currency.rate(date)
            if not rate:
                raise EvalstoreError(
                    f"'{code}' has no rate for {date}",
                    hint=f"add a rate with 'validFrom: \"{date}\"' or earlier to its currency file",
                )
            rates[day] = rate
        return usd / rates[day]

    return convert


# --- reading


def _look(
    store: Store,
    rule: str,
    batches: Iterable[list[tuple[Result, Case]]],
    keep: Filter,
    convert: Callable[[float, int], float],
) -> Iterator[tuple[MeasuredResult, Case]]:
    """Yield the selected results with the facts of their answers and judgements."""
    prices = _CostReader(store, convert)
    for batch in batches:
        spent = store.find_spent(id for result, _ in batch for id in result.sessions)
        judged = store.find_judgements(id for result, _ in batch for id in result.evaluations)
        answers = {
            id: CallFacts(
                id, prices.cost(spending.usd, spending.started, spending.model), spending.seconds
            )
            for id, spending in spent.items()
        }
        judgements = {
            id: CallFacts(
                id, prices.cost(judgement.usd, judgement.vote.started, prices.model_of(judgement))
            )
            for id, judgement in judged.items()
        }
        for result, case in batch:
            votes = [
                judged[id]
                for id in result.evaluations
                if id in judged and keep.evaluator(judged[id].vote.evaluator)
            ]
            verdict = result.verdict
            attempts: list[tuple[Verdict, float | None]] = []
            expected = max(1, result.wanted // max(1, len(case.tests)))
            if keep.is_about_votes or expected > 1:
                attempts = _by_attempt(case, votes, rule)
            if keep.is_about_votes:
                is_whole = len(attempts) == expected
                verdict = combine(attempts, rule).verdict if is_whole else None
            yield (
                MeasuredResult(
                    result,
                    verdict,
                    [answers[id] for id in result.sessions if id in answers],
                    [judgements[vote.vote.id] for vote in votes],
                    [word for word, _ in attempts] if len(attempts) == expected else [],
                ),
                case,
            )


def _select(
    batches: Iterable[list[tuple[Result, Case]]], keep: Filter
) -> Iterator[list[tuple[Result, Case]]]:
    """Yield the results that count, in larger batches."""
    waiting: list[tuple[Result, Case]] = []
    for batch in batches:
        waiting += [entry for entry in batch if keep(*entry)]
        if len(waiting) >= _AT_ONCE:
            yield waiting
            waiting = []
    yield waiting


class _CostReader:
    """Computes the cost of answers and judgements in a currency."""

    def __init__(self, store: Store, convert: Callable[[float, int], float]) -> None:
        self._convert = convert
        self._evaluators = store.load_all("evaluator")
        self._models = store.load_all("model")

    def model_of(self, judgement: StoredJudgement) -> str | None:
        """Return the model version of a judgement; None for checks or a person."""
        model: str | None = self._evaluators.get(judgement.vote.evaluator, {}).get("model")
        return model

    def cost(self, usd: float | None, at: int, model: str | None) -> float | None:
        """Return the cost of a call in the currency; None if it is unknown."""
        if usd is not None:
            return self._convert(usd, at)
        is_free = model is None or self._models.get(model, {}).get("provider") in _FREE
        return 0.0 if is_free else None


def _by_attempt(
    case: Case, votes: Sequence[StoredJudgement], rule: str
) -> list[tuple[Verdict, float | None]]:
    """Return the verdict on each judged attempt."""
    by_subject: dict[str, list[StoredJudgement]] = {}
    for vote in votes:
        by_subject.setdefault(vote.subject, []).append(vote)
    return [
        judge_session([judgement.vote for judgement in judgements], case.judged_by, CHECKS, rule)
        for judgements in by_subject.values()
    ]


# --- groups


def _keys(by: By, result: Result, case: Case) -> Iterator[_Key]:
    """Yield the groups of a result: several if it has tags."""
    keys: list[_Key] = [()]
    for name in by:
        parts: Sequence[str | None]
        match name:
            case "model":
                parts = (result.model,)
            case "prompt":
                parts = (result.prompt,)
            case "tag":
                parts = case.tags or (None,)
            case _:
                parts = (result.file,)
        keys = [(*key, part) for key in keys for part in parts]
    yield from keys


def _names(project: Project, by: By, key: _Key) -> tuple[str, ...]:
    return tuple(
        prompt_label(project, part) if name == "prompt" else "no tag" if part is None else part
        for name, part in zip(by, key, strict=True)
    )

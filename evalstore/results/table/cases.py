"""Builds the tables of the browser: runs, and their cases with results.

Everything is read at once and kept in memory while it is shown, but of many cases only a part.
No model is called.

A filter names what is wanted; it is resolved to the exact names that there are. Conditions on
candidates, verdicts and tags are looked up in the rows of a run where each result is listed alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from itertools import chain, groupby, repeat
from operator import attrgetter
from pathlib import Path
from typing import Any

from evalstore.comparison.statistics import Counts, Rate, add_verdict, rate_of_files
from evalstore.core.display import WORKSPACE, safe
from evalstore.core.runs import Run
from evalstore.core.values import SPECIAL_TAGS, VERDICTS, Result, order_counts
from evalstore.planning.first_pushes import FirstPush, find_first_pushes
from evalstore.planning.open_project import locate_store, open_store, open_workspace, require_store
from evalstore.planning.options import Location, is_partial, leaves_out_cases
from evalstore.planning.project import Project
from evalstore.results.answer.judgements import CellToJudge, MixedAttempts, mix_of, read_attempts
from evalstore.results.edits.edited_files import find_run_edits
from evalstore.results.labels import LabelIndex, read_labels
from evalstore.results.names import label_prompts
from evalstore.results.show.revision_results import find_run, find_tagged_results, open_revision
from evalstore.store.revisions import WORK, names_of_runs
from evalstore.store.rows.row_queries import Among
from evalstore.store.schema.table_definitions import RUNS
from evalstore.store.search.index import FoundIds
from evalstore.workspace.index import see
from evalstore.workspace.settings.settings import candidate_order


@dataclass(frozen=True, slots=True, eq=False)
class CaseRow:
    """A case with one system prompt, and the results of all candidates.

    Rows are compared by identity, because there may be many; results by their values.
    """

    file: str
    row: str
    prompt: str
    """The name of the system prompt if the file has several; else empty."""
    tags: tuple[str, ...]
    results: tuple[Result | None, ...]
    """The results in the order of the candidates in `Cases.models`."""
    words: tuple[str | None, ...] = field(init=False)
    """What each result says, a word of `URGENCY`; None: that candidate has none."""

    folded: str = field(init=False)
    """The file and the name, as words are looked for in them."""

    def __post_init__(self) -> None:
        """Note what is looked at with every key."""
        words = tuple(result and (result.word or "answered") for result in self.results)
        object.__setattr__(self, "words", words)
        object.__setattr__(self, "folded", f"{self.file}\n{self.label}".casefold())

    @property
    def label(self) -> str:
        """Return the row, with the system prompt where the file has several."""
        return f"{self.row} ({self.prompt})".lstrip() if self.prompt else self.row

    @property
    def prompt_id(self) -> str | None:
        """Return the id of the system prompt."""
        return next(result.prompt for result in self.results if result)

    @property
    def sessions(self) -> list[str]:
        """Return the sessions of all results."""
        return [id for result in self.results if result for id in result.sessions]

    def is_of(self, sessions: Set[str]) -> bool:
        """Return whether a result has one of these answers, and words that were looked for.

        Words of superseded verdicts do not count.
        """
        return any(
            result
            and not sessions.isdisjoint(result.sessions)
            and (
                not isinstance(sessions, FoundIds)
                or sessions.has_words(
                    {*result.sessions, *result.tests, *result.evaluations, result.evaluation or ""}
                )
            )
            for result in self.results
        )


def in_order(results: Sequence[Result | None], order: Sequence[int]) -> tuple[Result | None, ...]:
    """Return the results in another order of the candidates; those past the end are None."""
    return tuple(results[at] if at < len(results) else None for at in order)


# --- which rows a filter lets through


BROKE = "broke"
"""Among verdicts: what broke and was not fixed since."""
Words = tuple[str, ...]
RowTest = Callable[["CaseRow"], bool]


def fold(name: str) -> str:
    """Return a name as it is compared with what is typed."""
    return safe(name).casefold()


def lacking_words(row: CaseRow, words: Words) -> Words:
    """Return the words that are neither in the file nor in the name of a row."""
    folded = row.folded
    return tuple([word for word in words if word not in folded])


def row_tests(
    conditions: Sequence[Among],
    is_broken: Callable[[Result], bool] | None = None,
    sessions_with: Callable[[Words], Set[str]] = lambda _words: frozenset(),
) -> list[RowTest]:
    """Return what tests for each condition whether some result of a row meets it; negated: none.

    A verdict must be on one of the candidates that other conditions name. `sessions_with` returns
    the sessions with all of some words in their texts.
    """
    named = [it.names for it in conditions if it.field == "model" and not it.is_negated]
    tests = [_test(it.field, it.names, named, is_broken, sessions_with) for it in conditions]
    negated = [condition.is_negated for condition in conditions]
    return [_negate(it) if is_not else it for it, is_not in zip(tests, negated, strict=True)]


def _negate(test: RowTest) -> RowTest:
    return lambda row: not test(row)


def _test(
    field: str,
    listed: Collection[Any],
    named: Sequence[Collection[str]],
    is_broken: Callable[[Result], bool] | None,
    sessions_with: Callable[[Words], Set[str]],
) -> RowTest:
    """Return what tests whether a row has one of these names, or of words all."""
    names = listed if isinstance(listed, Set) else frozenset(listed)
    if field == "file":
        return lambda row: row.file in names
    if field == "tag":
        return lambda row: not names.isdisjoint(row.tags)
    if field == "prompt":
        return lambda row: row.prompt in names or row.prompt_id in names
    if field == "session":
        return lambda row: row.is_of(names)
    if field == "model":
        return lambda row: any(it and it.model in names for it in row.results)
    if field == "verdict":
        may_break = is_broken if BROKE in names else None
        if not named and may_break is None:
            return lambda row: not names.isdisjoint(row.words)

        def says(result: Result, word: str | None) -> bool:
            if not all(result.model in models for models in named):
                return False
            return word in names or (may_break is not None and may_break(result))

        return lambda row: any(
            it and says(it, word) for it, word in zip(row.results, row.words, strict=True)
        )
    words = tuple(listed)

    def has_words(row: CaseRow) -> bool:
        if not (lacking := lacking_words(row, words)):
            return True
        return row.is_of(sessions_with(lacking))

    return has_words


_Cells = tuple["dict[int, Result]", str, tuple[str, ...]]
"""The results of a case by number of the candidate, its row, and its tags."""
_EDITS = 200
"""Runs, the newest, whose edits are found."""


@dataclass(frozen=True, slots=True)
class RunLine(Run):
    """A run as a line of the history."""

    push: FirstPush | None = None
    """Who pushed it; None for a run of this machine."""
    edits: tuple[str, ...] = ()
    """What was edited since the runs before it, as `log` says it; only of the newest runs."""
    names: tuple[str, ...] = ()

    @property
    def is_partial(self) -> bool:
        """Return whether the run left out some cases or candidates."""
        return is_partial(self)

    @property
    def models(self) -> list[str]:
        """Return the candidates."""
        return list(dict.fromkeys(candidate.id for candidate in self.candidates))

    @property
    def note(self) -> str:
        """Return the names, and the message or what was edited: `(baseline) first`."""
        return f"{self.named}{self.message or '; '.join(self.edits)}".rstrip()

    @property
    def named(self) -> str:
        """Return the names before a text; empty without one."""
        return f"({', '.join(self.names)}) " if self.names else ""

    @property
    def counted(self) -> int:
        """Return how many cases have a verdict."""
        return sum(count for word, count in self.verdicts.items() if word != "pending")

    @property
    def rate(self) -> float | None:
        """Return the share of passes among these cases; None if there are none."""
        return self.verdicts.get("pass", 0) / self.counted if self.counted else None


@dataclass(frozen=True, slots=True)
class Cases:
    """The cases of a run, or of the workspace with its current verdicts."""

    run: str | None
    """The id of the run; None for the workspace."""
    models: tuple[str, ...]
    """The candidates in the order of the settings; recorded answers come last."""
    rows: Sequence[CaseRow]
    labels: LabelIndex = field(default_factory=LabelIndex)
    """The labels of people on the answers."""
    labelled: frozenset[str] = frozenset()
    """The candidates whose answers have labels."""
    mixed: Mapping[tuple[str, ...], MixedAttempts] = field(default_factory=dict)
    """The attempts of results of which some pass and some do not, by their judgements."""
    mixed_models: frozenset[str] = frozenset()
    """The candidates that have such results."""
    prompts: Mapping[str | None, str] = field(default_factory=dict)
    """The names of all system prompts by id; an id stands for a prompt without a name."""
    total: int | None = None
    """How many cases there are, where only some are listed; None: all are."""
    is_cut: bool = False
    """Whether some are left out that were wanted."""
    is_of_some: bool = False
    """Whether the run left out cases: their rates say nothing of the others."""
    verdicts: Mapping[str, int] = field(default_factory=dict)
    """How many results of all cases have each verdict, where only some are listed."""

    def shown_attempt(self, result: Result) -> int:
        """Return which answer stands for a result, from 0: the first that does not pass."""
        mixed = self.mixed.get(result.evaluations)
        return mixed.first_failed if mixed else 0


@dataclass(frozen=True, slots=True)
class StoreStamp:
    """The stamps of the store's files, or of its database: they differ after every change of it."""

    seen: tuple[object, ...]
    is_there: bool


def list_runs(location: Location) -> list[RunLine]:
    """Return all runs, newest first."""
    with open_store(location) as store:
        runs = store.find_runs()
        edits = find_run_edits(location, store, runs[:_EDITS])
        names = names_of_runs(store)
    pushes = find_first_pushes(location, RUNS.name, [run.id for run in runs])
    return [
        RunLine(
            **{each.name: getattr(run, each.name) for each in fields(Run)}
            | {"verdicts": order_counts(run.verdicts)},
            push=pushes.get(run.id),
            edits=tuple(map(str, edited)),
            names=names.get(run.id, ()),
        )
        for run, edited in zip(runs, chain(edits, repeat(())), strict=False)
    ]


def cases(location: Location, revision: str | None, window: CaseWindow | None = None) -> Cases:
    """Return the cases of a run; without a revision, those of the workspace.

    With a window, only the first of many that it wants.
    """
    with open_revision(location, revision or WORK) as project:
        run = find_run(project, revision or WORK)
        counts = order_counts(run.verdicts) if run.verdicts else {}
        results = sum(counts.values())
        selected = run.cases.selected if run.cases else results
        if run.id == WORKSPACE:
            selected = sum(len(file.cases) for file in project.reading.files.values())
            results = selected * len(run.candidates)
        wanted = window if results > MANY else None
        arrangement = _Arrangement(project, run)
        rows: list[CaseRow] = []
        looked_at, is_cut = 0, False
        for part in arrangement.parts(is_divided=wanted is not None):
            rows += wanted.wants(part) if wanted and wanted.wants else part.rows
            looked_at += len(part.rows)
            if wanted and (len(rows) >= KEPT or not wanted.report(looked_at, selected)):
                del rows[KEPT:]
                is_cut = True
                break
        found = arrangement.finish(rows)
        if wanted is None:
            return found
        return replace(found, total=selected, is_cut=is_cut, verdicts=counts)


class _Arrangement:
    """The results of a run side by side, in a row for each case and system prompt."""

    def __init__(self, project: Project, run: Run) -> None:
        self._project, self._run = project, run
        self._mixed: dict[tuple[str, ...], MixedAttempts] = {}
        self._mixed_models: set[str] = set()
        self._numbers: dict[str, int] = {}
        """The candidates, in the order in which they were seen."""
        self._labels = read_labels(project.store)
        self._labelled: set[str] = set()
        self._prompts: dict[str | None, None] = {}
        self._names: dict[str | None, str] = {}
        self._named: dict[str | None, int] = {}
        """The prompts that have these names, with their numbers."""

    def parts(self, *, is_divided: bool) -> Iterator[Cases]:
        """Yield the cases of one file after the other; if divided, those of a long one in parts."""
        results = chain.from_iterable(find_tagged_results(self._project, self._run).batches)
        for path, cells in groupby(results, key=lambda each: each.result.file):
            places: dict[int, _Cells] = {}
            several: list[CellToJudge] = []
            prompts: dict[str | None, int] = {}
            for case, result, tags, judged_by, *_ in cells:
                if is_divided and len(places) >= 2 * AT_ONCE:
                    # A case of a part that was read before is complete, and parts are smaller.
                    first = case - AT_ONCE << 16
                    complete = {place: each for place, each in places.items() if place < first}
                    places = {place: each for place, each in places.items() if place >= first}
                    self._read_mixed(several)
                    several = []
                    yield self._cases(self._rows(path, complete, prompts))
                if result.required_answers > 1 and result.verdict:
                    several.append(CellToJudge(result, judged_by, self._run.verdict_rule))
                number = self._numbers.setdefault(result.model, len(self._numbers))
                cell = places.setdefault(case << 16 | result.prompt_number, ({}, result.row, tags))
                cell[0][number] = result
                prompts[result.prompt] = result.prompt_number
                if result.model not in self._labelled and self._labels.of(result):
                    self._labelled.add(result.model)
            self._read_mixed(several)
            yield self._cases(self._rows(path, places, prompts))

    def _read_mixed(self, several: Sequence[CellToJudge]) -> None:
        """Find those of these results whose attempts differ."""
        attempts = read_attempts(self._project.store, several) if several else {}
        for result, _, _ in several:
            if mixed := mix_of(result, attempts.get(result.evaluations, ())):
                self._mixed[result.evaluations] = mixed
                self._mixed_models.add(result.model)

    def _cases(self, rows: Sequence[CaseRow]) -> Cases:
        run = None if self._run.id == WORKSPACE else self._run.id
        return Cases(run, tuple(self._numbers), rows, self._labels)

    def _rows(
        self, path: str, places: dict[int, _Cells], prompts: dict[str | None, int]
    ) -> list[CaseRow]:
        """Return the rows of complete cases."""
        self._prompts |= dict.fromkeys(prompts)
        several = any(prompts.values())
        if several and prompts != self._named:
            self._names, self._named = label_prompts(self._project, prompts), {**prompts}
        rows = []
        for found, label, tags in places.values():
            named = tuple(tag for tag in tags if tag not in SPECIAL_TAGS)
            row = CaseRow(path, label, "", named, tuple(map(found.get, range(len(self._numbers)))))
            rows.append(replace(row, prompt=self._names[row.prompt_id]) if several else row)
        return rows

    def finish(self, rows: Sequence[CaseRow]) -> Cases:
        """Return the rows that are kept, with the candidates in their order."""
        models = tuple(sorted(self._numbers, key=candidate_order(self._project.settings)))
        if len(models) > 1:
            order = [self._numbers[model] for model in models]
            rows = [replace(row, results=in_order(row.results, order)) for row in rows]
        return replace(
            self._cases(rows),
            models=models,
            labelled=frozenset(self._labelled),
            mixed=self._mixed,
            mixed_models=frozenset(self._mixed_models),
            prompts=label_prompts(self._project, self._prompts),
            is_of_some=is_partial(self._run) and leaves_out_cases(self._run),
        )


def stored_labels(location: Location) -> LabelIndex:
    """Return all labels of people."""
    with open_store(location) as store:
        return read_labels(store)


def store_stamp(location: Location) -> StoreStamp:
    """Return the stamp of the store; raises `StoreError` when it is gone."""
    path = locate_store(open_workspace(location), location)
    if not isinstance(path, Path):
        from evalstore.store.postgresql.driver import PostgreSQLDriver

        # Transactions in other databases of the server change the stamp, too.
        with closing(PostgreSQLDriver(path, patience=0.0)) as driver:
            return StoreStamp((driver.stamp(),), is_there=True)
    require_store(path, location)
    log = see(f"{path}-wal")
    # A program that only reads creates an empty log and removes it again.
    return StoreStamp((see(str(path)), log if log[1] else None), path.exists())


# --- the part of many cases that the browser keeps in memory: the first that it wants


MANY = 50_000
"""Results; where there are more, not all cases are kept."""
KEPT = 10_000
"""The most lines that are kept then."""
AT_ONCE = 4_096
"""Lines that are looked at together; more than a part of a long file has."""


@dataclass(frozen=True, slots=True)
class CaseWindow:
    """Says which cases of many are wanted; where there are fewer, all are kept."""

    wants: Callable[[Any], Sequence[Any]] | None = None
    """Returns those rows of some `Cases` that are wanted, in their order; None: all are."""
    report: Callable[[int, int], bool] = lambda _done, _total: True
    """Called with the number of lines that were looked at, and of all; returns whether to go on."""


# --- the pass rates of the candidates of a run, from its cases


_NONE = Counts()
_VERDICTS = {str(word): word for word in VERDICTS}


def candidate_rates(cases: Cases, rows: Sequence[CaseRow] | None = None) -> tuple[Rate, ...]:
    """Return the pass rate of each candidate in some of the cases, in the order of `Cases.models`.

    Without `rows`, which may have any order, they are those of all cases, as in `stats`.
    """
    by_file = cases.rows if rows is None else sorted(rows, key=attrgetter("file"))
    rates = (rate_of_files(_count_by_file(by_file, number)) for number in range(len(cases.models)))
    return tuple(rate.without_interval() if cases.is_of_some else rate for rate in rates)


def _count_by_file(rows: Sequence[CaseRow], number: int) -> Iterator[Counter[Counts]]:
    """Yield for each file how many of its questions have which counts for a candidate."""
    for _, members in groupby(rows, key=attrgetter("file")):
        questions: dict[str, Counts] = {}
        for row in members:
            word = row.words[number]
            if word is not None:
                counts = questions.get(row.row, _NONE)
                questions[row.row] = add_verdict(counts, _VERDICTS.get(word))
        yield Counter(questions.values())

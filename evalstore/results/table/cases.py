"""Lists runs, and the results of one, for the browser and `ls results`.

Everything is read at once and kept in memory while it is shown, but of many cases only a part.
No model is called.

A filter names what is wanted; it is resolved to the exact names that there are. Conditions on
candidates, verdicts and tags are looked up in the rows of a run where each result is listed alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field, fields, replace
from itertools import chain, groupby, repeat
from pathlib import Path
from typing import Any

from evalstore.comparison.statistics import Counts, Rate, add_verdict, rate_of_files
from evalstore.core.display import FAILING, WORKSPACE, safe
from evalstore.core.errors import EvalstoreError, NothingSelectedError, UnsuitedError
from evalstore.core.hashing import DigestSet, digest_of_value
from evalstore.core.runs import Run
from evalstore.core.values import (
    RECORDED,
    SPECIAL_TAGS,
    URGENCY,
    VERDICTS,
    Json,
    Result,
    order_counts,
)
from evalstore.files.fields import suggest
from evalstore.planning.cell_results import find_feedback
from evalstore.planning.first_pushes import FirstPush, find_first_pushes
from evalstore.planning.open_project import (
    locate_store,
    open_project,
    open_store,
    open_workspace,
    require_store,
)
from evalstore.planning.options import Location, is_partial, leaves_out_cases
from evalstore.planning.participants import match_models, require_tag, tags_of
from evalstore.planning.project import Project
from evalstore.planning.selection import Selection, Target, compile_name, split_row
from evalstore.results.answer.judgements import CellToJudge, MixedAttempts, mix_of, read_attempts
from evalstore.results.answer.verdict_explanation import find_history_in
from evalstore.results.compare.diff import diff, find_broken_now
from evalstore.results.edits.edited_files import find_run_edits
from evalstore.results.flips.verdict_changes import (
    BrokenResults,
    find_broken_cases,
    find_verdict_changes,
    is_broken,
)
from evalstore.results.grep import Searcher, no_word
from evalstore.results.labels import LabelIndex, read_labels
from evalstore.results.names import label_prompts, name_prompts
from evalstore.results.show.show import (
    FoundResults,
    find_run,
    find_tagged_results,
    find_test_file,
    open_revision,
)
from evalstore.store.results import RowResults, TaggedResult
from evalstore.store.revisions import WORK, as_revision, names_of_runs, resolve_run
from evalstore.store.rows.row_queries import Among
from evalstore.store.schema.table_definitions import RUNS
from evalstore.store.search.index import FoundIds, has_words, split_words
from evalstore.store.trees.tree_nodes import read_tree
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
    listed = cases.rows if rows is None else rows
    rates = []
    for number in range(len(cases.models)):
        files: dict[str, dict[str, Counts]] = {}
        for row in listed:
            if (word := row.words[number]) is not None:
                questions = files.setdefault(row.file, {})
                counts = questions.get(row.row, _NONE)
                questions[row.row] = add_verdict(counts, _VERDICTS.get(word))
        rates.append(rate_of_files(Counter(each.values()) for each in files.values()))
    return tuple(rate.without_interval() if cases.is_of_some else rate for rate in rates)


MOST_WITH_CAUSE = 100
"""The most results of which it is told since when they fail."""


@dataclass(frozen=True)
class ResultFilter:
    """Which results are listed: those to which all of it applies."""

    paths: tuple[str, ...] = ()
    """Test files, folders, or rows as `FILE::ROW`."""
    models: tuple[str, ...] = ()
    """Candidates, or a part of their names."""
    tags: tuple[str, ...] = ()
    exclude_tags: tuple[str, ...] = ()
    name: str | None = None
    """What `FILE::ROW` contains, with `and`, `or` and `not`."""
    verdicts: tuple[str, ...] = ()
    """Words such as `fail`, `pending`, or `answered` where nothing judges."""
    grep: str = ""
    """Words in the answer, the test or the feedback."""
    broke: bool = False
    """Only what broke and is not fixed."""
    since: str | None = None
    """With `broke`: what broke since this revision or date."""


@contextmanager
def find_filtered(
    location: Location, revision: str, wanted: ResultFilter
) -> Iterator[tuple[Project, FoundResults]]:
    """Open the results of a revision that a filter lets through, by file and row.

    Raises `EvalstoreError` for a candidate or a path that there is not.
    """
    if wanted.since is not None and not wanted.broke:
        raise UnsuitedError("'--since' needs '--broke'", hint="write '--broke --since REV'")
    for word in wanted.verdicts:
        if word not in URGENCY:
            hint = suggest(word, URGENCY, "verdicts")
            raise EvalstoreError(f"unknown verdict '{word}'", hint=hint)
    with open_revision(location, revision) as project:
        run = find_run(project, revision)
        if run.id == WORKSPACE:
            require_tag(wanted.tags, tags_of(project.reading.files.values()))
        targets = tuple(_target(location, project, run, path) for path in wanted.paths)
        selection = Selection(targets, name=wanted.name)
        wants = [*_conditions(location, run, wanted)]
        found = find_tagged_results(project, run, wants, selection.covers_file)
        if not found.rows or selection.is_by_row or not all(it.is_in_rows for it in wants):
            broken = _broken(location, project, revision, wanted) if wanted.broke else None
            is_wanted = _result_filter(selection, row_tests(wants, broken))
            batches = ([*filter(is_wanted, batch)] for batch in found.batches)
            found = FoundResults(run, batches)
        yield project, found


def _conditions(location: Location, run: Run, wanted: ResultFilter) -> Iterator[Among]:
    """Yield the conditions of a filter, with the names that the run has."""
    if wanted.models:
        yield Among("model", _models(run, wanted.models))
    if wanted.verdicts:
        yield Among("verdict", wanted.verdicts)
    if wanted.tags:
        yield Among("tag", wanted.tags)
    if wanted.exclude_tags:
        yield Among("tag", wanted.exclude_tags, is_negated=True)
    if wanted.grep:
        words = split_words(wanted.grep)
        if not has_words(words):
            raise no_word(wanted.grep)
        found = Searcher(location).search(words, lambda _done, _all: True)
        yield Among("session", found or set())
    if wanted.broke:
        yield Among("verdict", {BROKE})


def _result_filter(
    selection: Selection, tests: Sequence[RowTest]
) -> Callable[[TaggedResult], bool]:
    """Return whether a result is wanted: its row is selected, and the conditions hold for it."""
    has_name = None if selection.name is None else compile_name(selection.name)

    def is_wanted(tagged: TaggedResult) -> bool:
        result = tagged.result
        file, row = result.file, result.row
        one = CaseRow(file, row, "", tagged.tags, (result,))
        return (
            selection.covers_row(file, row)
            and (has_name is None or has_name(f"{file}::{row}"))
            and all(test(one) for test in tests)
        )

    return is_wanted


def describe_results(
    location: Location,
    project: Project,
    batches: Iterable[list[TaggedResult]],
    *,
    is_data: bool = True,
    dated_in: Run | None = None,
    broke: bool = True,
) -> Iterator[dict[str, Json]]:
    """Yield results as JSON, each with what its judges said.

    Without `is_data`, system prompts, and none, have names just where a case has several. With
    `dated_in`, their run, the first 100 that are broken, or else fail, have the run since which
    they do, and its changes; without `is_data` its start, too, in microseconds since 1970, and the
    changes in one text, with those since then.
    """
    store, names, rows = project.store, dict[str | None, str](), RowResults(project.store)
    unexplained = iter(range(MOST_WITH_CAUSE if dated_in else 0))
    for batch in batches:
        results = [each.result for each in batch]
        feedback = find_feedback(store, (result.decision for result in results))
        unknown = {result.prompt for result in results} - names.keys()
        names.update(name_prompts(location, unknown) if unknown else {})
        for number, result, tags, *_, several in batch:
            is_named = result.prompt if is_data else several
            history = None
            is_asked = broke or result.word in FAILING
            if dated_in and is_asked and next(unexplained, None) is not None:
                file = project.reading.files.get(result.file)
                case = file.cases[number] if file and dated_in.id == WORKSPACE else None
                history = find_history_in(project, dated_in, result, case, rows)
            is_known = history and not history.passes and (history.before or not history.is_cut)
            changes = [each.text for each in history.changes] if history and is_known else []
            if history and changes and not is_data:
                changes = [history.changes_text()]
            since = history.since if history and is_known else None
            dated: dict[str, Json] = {"since": since.id if since else None, "changes": changes}
            if not is_data:
                dated["started"] = since.started if since else None
            yield {
                "file": result.file,
                "row": result.row,
                "prompt": result.prompt,
                "promptName": names[result.prompt] if is_named else None,
                "model": result.model,
                "tags": list(tags),
                "verdict": result.word or "answered",
                "score": result.score,
                "sessions": list(result.sessions),
                "feedback": feedback.get(result.decision, "") or result.failure,
                **(dated if dated_in else {}),
            }


def _target(location: Location, project: Project, run: Run, path: str) -> Target:
    """Return the file, folder or row that a path names among those of a run."""
    if run.id == WORKSPACE:
        return project.targets((path,))[0]
    name, row = split_row(path)
    nodes = read_tree(run.snapshot, project.store.load_nodes)
    folder = Target(name.rstrip("/"))
    if not any(map(folder.covers, nodes)):
        file = find_test_file(location, project.workspace, nodes, name, run.id)
        return Target(file, row)
    return Target(folder.path, row)


def _models(run: Run, names: tuple[str, ...]) -> set[str]:
    """Return the candidates that have these names, or else have them in theirs."""
    known = {candidate.id for candidate in run.candidates}
    chosen = set[str]()
    for name in names:
        found = match_models(name, known if name != RECORDED else [RECORDED])
        if not found:
            raise NothingSelectedError(
                f"no candidate is called '{name}'", hint=suggest(name, known, "candidates")
            )
        chosen.update(found)
    return chosen


def _broken(
    location: Location, project: Project, revision: str, wanted: ResultFilter
) -> Callable[[Result], bool]:
    """Return whether a result broke: since a revision, or in the newest runs, and is not fixed."""
    if wanted.since is not None:
        since = as_revision(wanted.since)
        cells = DigestSet()
        for pair in diff(location, since, revision).broke:
            cells.add(digest_of_value(pair.either.cell))
        return lambda result: digest_of_value(result.cell) in cells
    newest = None if revision == "@" else revision
    broken = find_broken_results(location, newest)
    labels = read_labels(project.store)
    return lambda result: is_broken(result, broken, labels)


def find_broken_results(location: Location, revision: str | None) -> BrokenResults:
    """Return the results that broke in a run; without a revision, in the newest ones.

    `@work`: also those that broke since without a call, as by a label. `is_broken` tells which do
    not pass.
    """
    workspace = open_workspace(location)
    if revision in (None, WORK):
        with open_project(location) if revision else nullcontext() as project:
            cases = find_broken_cases(location, workspace, project=project)
            now = find_broken_now(project) if project else ()
        return {*cases, *(result.cell for result in now)}
    folder = workspace.settings.paths["tests"]
    with open_store(location) as store:
        changes = find_verdict_changes(store, folder, resolve_run(store, revision))
    return {it.cell for it in changes.broke} if changes else set()

"""Cells to verdicts, verdicts to the result tree of a run, and back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import TYPE_CHECKING

from evalstore import hashing
from evalstore.case_tree import ResultBuilder, collect, is_tree
from evalstore.plan import CHECKS, Plan, counted_votes
from evalstore.report.compare import Result
from evalstore.store.contents import damaged
from evalstore.store.trees import read_tree
from evalstore.values import Case, Json, Sample, Verdict, Vote
from evalstore.verdicts import Judged, combine, judge_session, wants_models

if TYPE_CHECKING:
    from evalstore.case_tree import Load
    from evalstore.cells import Cell
    from evalstore.operations.desk import Desk
    from evalstore.operations.summary import Item
    from evalstore.outcome import Outcome
    from evalstore.store import Store
    from evalstore.workspace_reading import Reading

_FILES_AT_ONCE = 50
VERDICTS = ("pass", "fail", "undecided", "error", "pending")
"""The words a case can end with, in the order they are shown."""


@dataclass(frozen=True, slots=True)
class CellResult:
    """A cell with what is known about it."""

    cell: Cell
    verdict: Verdict | None
    """None: pending, or nothing judges it."""
    score: float | None
    sessions: tuple[str, ...]
    votes: tuple[Vote, ...]

    @property
    def pending(self) -> bool:
        """Whether an answer or a judgement is missing."""
        return self.verdict is None and (
            self.cell.case.evaluation is not None or len(self.sessions) < self.cell.wanted
        )

    @property
    def word(self) -> str | None:
        """The verdict, or `pending`; None for an answered case that nothing judges."""
        return self.verdict or ("pending" if self.pending else None)


def settle(
    plan: Plan,
    rule: str,
    new_sessions: Mapping[str, Sequence[Sample]] | None = None,
    new_votes: Mapping[str, Sequence[Vote]] | None = None,
) -> list[CellResult]:
    """The verdict of every cell, from stored and new sessions and votes."""
    new_sessions, new_votes = new_sessions or {}, new_votes or {}
    results = []
    for cell in plan.cells:
        answers = {
            question: _answers(question, most, plan, new_sessions)
            for question, _, most in cell.asked()
        }
        sessions = [session for some in answers.values() for session in some]
        votes: list[Vote] = []
        judged: list[Judged] = []
        for together in cell.subjects(answers):
            subject = hashing.subject_of(together)
            counted = counted_votes(
                cell, [*plan.votes.get(subject, ()), *new_votes.get(subject, ())]
            )
            votes += counted
            if cell.case.evaluation and _is_complete(cell, counted):
                judged.append(judge_session(counted, cell.case.judged_by, CHECKS, rule))
        if cell.case.evaluation and len(judged) == cell.attempts:
            verdict, score = combine(judged, rule)
        else:
            verdict, score = None, None
        results.append(CellResult(cell, verdict, score, tuple(sessions), tuple(votes)))
    return results


def _answers(
    question: str, most: int, plan: Plan, new: Mapping[str, Sequence[Sample]]
) -> list[str]:
    """The ids of the sessions of a question that count."""
    stored = plan.sessions.get(question, ())
    fresh = sorted(new.get(question, ()), key=lambda sample: sample[:2])
    return [*stored, *(sample.id for sample in fresh)][:most]


def fails(cell: Cell, plan: Plan, outcome: Outcome, rule: str) -> bool:
    """Whether a cell has a verdict that fails it; False if answers or votes lack."""
    alone = replace(plan, cells=[cell])
    (result,) = settle(alone, rule, outcome.sessions, outcome.votes)
    return result.verdict in ("fail", "error")


def _is_complete(cell: Cell, votes: Sequence[Vote]) -> bool:
    """Whether nothing more is wanted on a session."""
    if any(vote.human for vote in votes):
        return True
    if "checks" in cell.case.judged_by:
        checked = next((vote.verdict for vote in votes if vote.evaluator == CHECKS), None)
        if checked is None or not wants_models(cell.case.judged_by, checked):
            return checked is not None
    if "models" not in cell.case.judged_by:
        return True
    wanted = sum(judge.times for judge in cell.judges)
    return 0 < wanted == len([vote for vote in votes if vote.evaluator != CHECKS])


class LeafBuilder:
    """Builds the leaves of a result tree, one for each test file, portion by portion.

    Of a long file it holds the results of the last few cases.
    """

    def __init__(self, reading: Reading, load: Load) -> None:
        """`load` loads nodes of cases."""
        self._reading = reading
        self._load = load
        self._contents: dict[str, tuple[str, str]] = {}
        self._leaves: dict[str, str] = {}
        self._file = ""
        self._builder: ResultBuilder | None = None

    def add(self, results: Iterable[CellResult]) -> None:
        """Add the next cells, in the order of files and rows."""
        for file, some in groupby(results, key=lambda one: one.cell.file):
            if self._builder is None or file != self._file:
                self.finish()
                self._file, self._builder = file, self._begin(file)
            self._builder.add(map(_describe, some))

    def _begin(self, file: str) -> ResultBuilder:
        load = self._load if is_tree(self._reading.files[file]) else None
        return ResultBuilder(self._reading.nodes[file], load, collect(self._contents))

    def take_contents(self) -> dict[str, tuple[str, str]]:
        """The nodes since the last call, by id: kind and canonical JSON."""
        taken = dict(self._contents)
        self._contents.clear()
        return taken

    def finish(self) -> dict[str, str]:
        """The leaves by file; the last file has no more cells."""
        if self._builder is not None:
            self._leaves[self._file] = self._builder.finish()
            self._builder = None
        return self._leaves


def _describe(result: CellResult) -> Json:
    cell = result.cell
    described = {
        "case": cell.index,
        "prompt": cell.prompt_number or None,
        "model": cell.candidate.id,
        "wanted": cell.wanted if cell.wanted > 1 else None,
        "verdict": result.verdict,
        "score": result.score,
        "sessions": list(result.sessions),
        "evaluations": [vote.id for vote in result.votes],
    }
    return {name: value for name, value in described.items() if value not in (None, [])}


def read_results(store: Store, run: Json, only: str | None = None) -> list[Result]:
    """The cells of a run; with `only`, of that file."""
    return [result for some in iterate_results(store, run, only) for result in some]


def iterate_results(store: Store, run: Json, only: str | None = None) -> Iterator[list[Result]]:
    """The cells of a run in portions, by path; with `only`, of that file."""
    for some in iterate_cases(store, run, only):
        yield [result for result, _ in some]


def iterate_cases(
    store: Store, run: Json, only: str | None = None
) -> Iterator[list[tuple[Result, Case]]]:
    """The same, each with its case."""
    entries = read_tree(run["results"], store.load_nodes)
    if only is not None:
        entries = {only: entries[only]} if only in entries else {}
    yield from iterate_entries(store, entries)


def iterate_entries(
    store: Store, entries: Mapping[str, str]
) -> Iterator[list[tuple[Result, Case]]]:
    """The results of some files in portions, by path, each with its case.

    `entries` are the entries of a result tree.
    """
    for some in iterate_cells(store, entries):
        yield [(_result(path, case, cell), case) for path, case, cell in some]


def iterate_cells(
    store: Store, entries: Mapping[str, str]
) -> Iterator[list[tuple[str, Case, Json]]]:
    """The cells of some files in portions, by path, each with its case.

    `entries` are the entries of a result tree.
    """
    paths = iter(sorted(entries))
    while some := list(islice(paths, _FILES_AT_ONCE)):
        for parts in store.iterate_results([entries[path] for path in some]):
            files = store.load_case_files({one.content["cases"] for one in parts})
            yield [
                (some[one.number], case_of(cell, files[one.content["cases"]].cases), cell)
                for one in parts
                for cell in one.content["cells"]
            ]


def results_of(
    store: Store, path: str, rows: Mapping[str, Collection[str]]
) -> dict[str, list[Result]]:
    """The cells of some rows of a file, by the node of its results; `rows` are those of each."""
    found: dict[str, list[Result]] = {node: [] for node in rows}
    for some in iterate_cells(store, {node: node for node in rows}):
        for node, case, cell in some:
            if case.row in rows[node]:
                found[node].append(_result(path, case, cell))
    return found


def case_of(cell: Json, cases: Sequence[Case]) -> Case:
    """The case that a cell of a result tree is about; raises `StoreError` when there is none."""
    number = cell["case"]
    if number >= len(cases) or cell.get("prompt", 0) >= len(cases[number].prompts):
        raise damaged("nodes", "", "a result in it belongs to no case")
    found: Case = cases[number]
    return found


def read_lines(store: Store, run: Json) -> Iterator[tuple[Result, str]]:
    """The cells of a run, each with the feedback on it."""
    for some in iterate_results(store, run):
        feedback = store.find_feedback(id for one in some for id in one.evaluations)
        for one in some:
            yield one, join_feedback(one.evaluations, feedback)


def _result(path: str, case: Case, cell: Json) -> Result:
    number = cell.get("prompt", 0)
    return Result(
        file=path,
        row=case.row,
        key=case.key,
        prompt_number=number,
        prompt=case.prompts[number],
        model=cell["model"],
        test=case.tests[0],
        conversations=conversations_of(case.tests),
        evaluation=case.evaluation,
        verdict=cell.get("verdict"),
        score=cell.get("score"),
        sessions=tuple(cell.get("sessions", ())),
        evaluations=tuple(cell.get("evaluations", ())),
        wanted=cell.get("wanted", 1),
    )


def conversations_of(tests: Sequence[str]) -> tuple[str, ...]:
    """What a result keeps of the test versions of its case beside the first."""
    return tuple(tests) if len(tests) > 1 else ()


def as_result(found: CellResult) -> Result:
    """A settled cell in the form that runs are compared in."""
    cell = found.cell
    return Result(
        file=cell.file,
        row=cell.case.row,
        key=cell.case.key,
        prompt_number=cell.prompt_number,
        prompt=cell.prompt,
        model=cell.candidate.id,
        test=cell.case.tests[0],
        conversations=conversations_of(cell.case.tests),
        evaluation=cell.case.evaluation,
        verdict=found.verdict,
        score=found.score,
        sessions=found.sessions,
        evaluations=tuple(vote.id for vote in found.votes),
        wanted=cell.wanted,
    )


def feedback_of(store: Store, results: Iterable[CellResult]) -> dict[str, str]:
    """The feedback of every vote of these cells, by id; empty ones are missing."""
    ids = [vote.id for result in results for vote in result.votes]
    return store.find_feedback(ids)


def join_feedback(votes: Iterable[str], feedback: Mapping[str, str]) -> str:
    """All different feedback on one cell, one line each."""
    return "\n".join(dict.fromkeys(feedback[id] for id in votes if feedback.get(id)))


def prompt_labels(
    desk: Desk, places: Iterable[CellResult | Result | Item]
) -> dict[str, dict[str | None, str]]:
    """What to call each system prompt, for the test files that have several."""
    prompts: dict[str, dict[str | None, None]] = {}
    for one in places:
        file = one.cell.file if isinstance(one, CellResult) else one.file
        prompt = one.cell.prompt if isinstance(one, CellResult) else one.prompt
        prompts.setdefault(file, {})[prompt] = None
    return {
        file: {prompt: prompt_label(desk, prompt) for prompt in found}
        for file, found in prompts.items()
        if len(found) > 1
    }


def prompt_label(desk: Desk, prompt: str | None) -> str:
    """What to call a system prompt: its name now, else its id."""
    if prompt is None:
        return "no prompt"
    place = desk.place_of_version("prompt", prompt)
    if place is None:
        return prompt[:8]
    name, number = place
    return name if len(desk.reading.names["prompts"][name]) == 1 else f"{name} {number + 1}"

"""Stores an imported history: versions, sessions, verdicts and runs.

Nothing in it depends on the clock, on paths or on the order of imports: importing it twice yields
the same ids.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from evalstore.core import hashing
from evalstore.core.batches import in_batches
from evalstore.core.runs import Run, RunCandidate, RunEvaluator
from evalstore.core.values import (
    RESULT_WORDS,
    CaseFile,
    Evaluation,
    EvaluationVersion,
    Evaluator,
    Json,
    Session,
    Text,
    Verdict,
)
from evalstore.exchange.importers.base import HALF_PAIR, NotTakenError
from evalstore.planning.cells import Candidate
from evalstore.planning.project import Project
from evalstore.store import Store
from evalstore.store.results import describe_cell
from evalstore.store.trees.case_chunks import build_case_tree, build_results, collect
from evalstore.store.trees.tree_nodes import build_tree

IMPORTED = "import"
"""The origin of sessions, evaluations and runs that come from another system."""


@dataclass(frozen=True, slots=True)
class ImportedCase:
    """A case with its recorded verdict."""

    file: str
    index: int
    """The index of the case in its file."""
    candidate: Candidate
    evaluation: str
    """Id of the evaluation version that names the source of the verdict."""
    sessions: tuple[str, ...]
    evaluations: tuple[str, ...]
    verdict: Verdict


@dataclass
class OlderCases:
    """Cases of older versions of tests, with their recorded verdicts."""

    files: dict[str, CaseFile] = field(default_factory=dict)
    cells: list[ImportedCase] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ImportSummary:
    """What an import has stored."""

    JSON_FIELDS = ("sessions", "verdicts", "new", "displaced", "run")

    sessions: int = 0
    verdicts: int = 0
    new: int = 0
    """Sessions and verdicts that were not in the store."""
    displaced: int = 0
    """Questions that had answers, and for which an older imported answer now counts."""
    run: str | None = None
    """The run whose results are the recorded verdicts."""
    older: int = 0
    """The number of sessions that answer older versions of tests."""
    older_runs: tuple[str, ...] = ()
    """The runs with the verdicts on these sessions, oldest first."""


@dataclass
class ImportedHistory:
    """Everything that is stored of the answers and verdicts of another system."""

    system: str
    contents: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By id: kind and canonical content of versions that the workspace may lack."""
    sessions: dict[str, tuple[Session, str]] = field(default_factory=dict)
    evaluations: dict[str, tuple[Evaluation, str]] = field(default_factory=dict)
    cells: list[ImportedCase] = field(default_factory=list)
    older: list[OlderCases] = field(default_factory=list)
    """Older versions of tests, newest first: one entry for each change of a test."""
    older_sessions: set[str] = field(default_factory=set)
    """Ids of the sessions that answer older versions of tests."""

    def keep(self, kind: str, description: hashing.Description) -> str:
        """Add the content of a version; returns its id."""
        id, content = _identify(description)
        self.contents[id] = (kind, content)
        return id

    def evaluator(self) -> str:
        """Return the id of the evaluator that stands for the other system."""
        return self.keep("evaluator", hashing.describe_evaluator(Evaluator(system=self.system)))

    def evaluation_of(self, judge: str) -> str:
        """Return the evaluation version's id for verdicts of the other system or its judge."""
        words = f"The verdict that {self.system} has recorded" + (f", by {judge}" if judge else "")
        version = EvaluationVersion((Text(f"{words}."),))
        return self.keep("evaluation", hashing.describe_evaluation(version))

    def add_session(self, session: Session) -> str:
        """Add a session; returns its id."""
        id, content = _identify(hashing.describe_session(session))
        self.sessions[id] = (session, content)
        return id

    def add_evaluation(self, evaluation: Evaluation) -> str:
        """Add an evaluation; returns its id."""
        id, content = _identify(hashing.describe_evaluation_result(evaluation))
        self.evaluations[id] = (evaluation, content)
        return id


def _identify(description: hashing.Description) -> tuple[str, str]:
    """Return the id and the content of a description; raises `NotTakenError`."""
    try:
        return hashing.identify(description)
    except UnicodeEncodeError:
        raise NotTakenError(HALF_PAIR) from None


def store_history(project: Project, history: ImportedHistory) -> ImportSummary:
    """Store what is missing, and a run whose results are the recorded verdicts."""
    if not history.sessions:
        return ImportSummary()
    store = project.store
    new = len(history.sessions) - len(store.find_sessions(history.sessions))
    new += len(history.evaluations) - len(store.find_evaluations(history.evaluations))
    displaced = _count_displaced(store, history)
    older = history.older_sessions
    run = None
    if history.cells:
        current = [session for id, (session, _) in history.sessions.items() if id not in older]
        run = _make_run(project, history, project.reading.files, history.cells, _span(current))
    runs_before = _make_older(project, history, run.started if run else None)
    store.ensure_versions(
        {**project.reading.contents, **project.contents, **history.contents}, project.reading.blobs
    )
    for sessions in in_batches(history.sessions.items()):
        store.record(sessions={id: content for id, (_, content) in sessions})
    for evaluations in in_batches(history.evaluations.items()):
        store.record(evaluations={id: content for id, (_, content) in evaluations})
    older_runs = tuple([store.record_run(older_run).id for older_run in runs_before])
    return ImportSummary(
        len(history.sessions),
        len(history.evaluations),
        new,
        displaced,
        store.record_run(run).id if run else None,
        len(older),
        older_runs,
    )


def _count_displaced(store: Store, history: ImportedHistory) -> int:
    """Count the questions whose stored answers are all younger than one of the history."""
    begun: dict[str, int] = {}
    for session, _ in history.sessions.values():
        question = hashing.question_id(session.question)
        begun[question] = min(session.started, begun.get(question, session.started))
    return sum(
        all(begun[question] < sample.started for sample in samples)
        for question, samples in store.find_samples(begun).items()
        if samples
    )


def _span(sessions: Iterable[Session]) -> tuple[int, int]:
    started = [session.started for session in sessions]
    return min(started), max(started)


def _make_older(project: Project, history: ImportedHistory, before: int | None) -> list[Run]:
    """Return the runs of older cases, oldest first.

    Each is older than the next run, even if one of its answers is not, so that `log` lists the
    versions of a test in order. `before` is when the run of the current tests started.
    """
    runs: list[Run] = []
    for cases in history.older:
        sessions = [history.sessions[id][0] for cell in cases.cells for id in cell.sessions]
        started, ended = _span(sessions)
        if before is not None:
            started = max(min(started, before - 1), 0)
        before = started
        run = _make_run(project, history, cases.files, cases.cells, (started, ended), older=True)
        runs.insert(0, run)
    return runs


def _make_run(
    project: Project,
    history: ImportedHistory,
    files: Mapping[str, CaseFile],
    cells: Sequence[ImportedCase],
    span: tuple[int, int],
    *,
    older: bool = False,
) -> Run:
    """Return the run to record; its snapshot and results are added to the history's contents."""
    by_file: dict[str, list[ImportedCase]] = {}
    for cell in cells:
        by_file.setdefault(cell.file, []).append(cell)
    keep = collect(history.contents)
    judged_files = {file: _with_evaluations(files[file], by_file[file]) for file in sorted(by_file)}
    nodes = {file: build_case_tree(case_file, keep) for file, case_file in judged_files.items()}
    described = {
        file: [
            describe_cell(
                cell.index,
                case_file.cases[cell.index].prompts.index(None),
                cell.candidate.id,
                len(cell.sessions),
                cell.verdict,
                None,
                cell.sessions,
                cell.evaluations,
            )
            for cell in sorted(by_file[file], key=lambda cell: (cell.index, cell.candidate.id))
        ]
        for file, case_file in judged_files.items()
    }

    def load(ids: Iterable[str]) -> dict[str, Json]:
        return {id: json.loads(history.contents[id][1]) for id in ids}

    leaves = build_results(described, judged_files, nodes, load, keep)
    snapshot, trees = build_tree(nodes)
    results, more = build_tree(leaves)
    history.contents |= {**trees, **more}
    words: Counter[str] = Counter(cell.verdict for cell in cells)
    candidates = {cell.candidate.id: cell.candidate for cell in cells}
    message = f"imported from {history.system}"
    settings = project.settings
    return Run(
        id="",
        origin=IMPORTED,
        nonce=history.system,
        started=span[0],
        ended=span[1],
        status="complete",
        message=f"{message}: tests as they were before" if older else message,
        snapshot=snapshot,
        results=results,
        candidates=tuple(
            RunCandidate(candidate.id, candidate.model, candidate.temperature)
            for _, candidate in sorted(candidates.items())
        ),
        evaluators=(RunEvaluator(history.system, history.evaluator()),),
        settings={"attempts": settings.attempts, "verdict": settings.verdict},
        asked=0,
        judged=0,
        reused=len({id for cell in cells for id in cell.sessions}),
        failed=0,
        verdicts={word: words[word] for word in RESULT_WORDS},
    )


def _with_evaluations(file: CaseFile, cells: list[ImportedCase]) -> CaseFile:
    """Return the cases of a file with the evaluation versions of the recorded verdicts."""
    evaluations = {cell.index: cell.evaluation for cell in cells}
    return replace(
        file,
        cases=tuple(
            case._replace(
                evaluation=evaluations[index],
                judged_by=("models",),
                judge_prompts=(),
                code=(),
            )
            if index in evaluations
            else case
            for index, case in enumerate(file.cases)
        ),
    )

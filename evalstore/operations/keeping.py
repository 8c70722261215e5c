"""What was recorded elsewhere, on its way into the store: versions, sessions, verdicts, a run.

Nothing of it depends on a clock, on paths or on the order of imports: what is imported twice
has the ids it had.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from evalstore import hashing
from evalstore.operations.results import VERDICTS
from evalstore.store.trees import build_tree
from evalstore.values import (
    CaseFile,
    Evaluation,
    EvaluationVersion,
    Evaluator,
    Json,
    Session,
    Text,
    Verdict,
)

if TYPE_CHECKING:
    from evalstore.cells import Candidate
    from evalstore.operations.desk import Desk
    from evalstore.store import Store

IMPORTED = "import"
"""The origin of sessions, evaluations and runs that come from another system."""
_AT_ONCE = 2_000


@dataclass(frozen=True, slots=True)
class Told:
    """A case with the verdict it had elsewhere."""

    file: str
    index: int
    """Of the case in its file."""
    candidate: Candidate
    evaluation: str
    """Id of the evaluation version that says where the verdict comes from."""
    sessions: tuple[str, ...]
    evaluations: tuple[str, ...]
    verdict: Verdict | None
    score: float | None = None
    wanted: int = 1
    prompt: str | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """What of a history is in the store now."""

    sessions: int = 0
    verdicts: int = 0
    new: int = 0
    """Sessions and verdicts that were not there before."""
    displaced: int = 0
    """Questions that had answers already and count an older one of these from now on."""
    run: str | None = None
    """The run whose results are the recorded verdicts."""

    def document(self) -> dict[str, Json]:
        """As JSON."""
        return {
            "sessions": self.sessions,
            "verdicts": self.verdicts,
            "new": self.new,
            "displaced": self.displaced,
            "run": self.run,
        }


@dataclass
class History:
    """Everything that is to be stored of another system's answers and verdicts."""

    system: str
    contents: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By id: kind and canonical content of versions that the workspace may lack."""
    sessions: dict[str, tuple[Session, str]] = field(default_factory=dict)
    evaluations: dict[str, tuple[Evaluation, str]] = field(default_factory=dict)
    cells: list[Told] = field(default_factory=list)

    def keep(self, kind: str, description: hashing.Description) -> str:
        """Keep the content of a version; returns its id."""
        id, content = hashing.identify(description)
        self.contents[id] = (kind, content)
        return id

    def evaluator(self) -> str:
        """The id of the evaluator that stands for the other system."""
        described = hashing.describe_evaluator(Evaluator(system=self.system))
        return self.keep("evaluator", described)

    def told_by(self, judge: str) -> str:
        """The id of the evaluation version under which its verdicts stand: it is not a check."""
        words = f"The verdict that {self.system} has recorded" + (f", by {judge}" if judge else "")
        version = EvaluationVersion((Text(f"{words}."),))
        return self.keep("evaluation", hashing.describe_evaluation(version))

    def add_session(self, session: Session) -> str:
        """Add a session; returns its id."""
        id, content = hashing.identify(hashing.describe_session(session))
        self.sessions[id] = (session, content)
        return id

    def add_evaluation(self, evaluation: Evaluation) -> str:
        """Add an evaluation; returns its id."""
        id, content = hashing.identify(hashing.describe_evaluation_result(evaluation))
        self.evaluations[id] = (evaluation, content)
        return id


def store_history(desk: Desk, history: History) -> Kept:
    """Store what is not there yet, and a run whose results are the recorded verdicts."""
    if not history.sessions:
        return Kept()
    store = desk.store
    new = len(history.sessions) - len(store.find_sessions(history.sessions))
    new += len(history.evaluations) - len(store.find_evaluations(history.evaluations))
    displaced = _count_displaced(store, history)
    run = _describe_run(desk, history) if history.cells else None
    store.ensure_versions(
        {**desk.reading.contents, **desk.contents, **history.contents}, desk.reading.blobs
    )
    sessions, evaluations = list(history.sessions.items()), list(history.evaluations.items())
    for start in range(0, len(sessions), _AT_ONCE):
        store.record(sessions=dict(sessions[start : start + _AT_ONCE]))
    for start in range(0, len(evaluations), _AT_ONCE):
        store.record(evaluations=dict(evaluations[start : start + _AT_ONCE]))
    return Kept(
        len(history.sessions),
        len(history.evaluations),
        new,
        displaced,
        store.record_run(run) if run else None,
    )


def _count_displaced(store: Store, history: History) -> int:
    """Questions that have answers, all of them younger than one of the history."""
    begun: dict[str, int] = {}
    for session, _ in history.sessions.values():
        question = hashing.question_id(session.question)
        begun[question] = min(session.started, begun.get(question, session.started))
    return sum(
        all(begun[question] < one.started for one in samples)
        for question, samples in store.find_samples(begun).items()
        if samples
    )


def _describe_run(desk: Desk, history: History) -> Json:
    """The content of the run; its snapshot and results join the contents of the history."""
    by_file: dict[str, list[Told]] = {}
    for cell in history.cells:
        by_file.setdefault(cell.file, []).append(cell)
    nodes: dict[str, str] = {}
    leaves: dict[str, str] = {}
    for file, cells in sorted(by_file.items()):
        known = _as_told(desk.reading.files[file], cells)
        nodes[file] = history.keep("cases", hashing.describe_case_file(known))
        described = [_describe_cell(known, cell) for cell in sorted(cells, key=_place)]
        leaves[file] = history.keep(
            "results", hashing.describe("results", cases=nodes[file], cells=described)
        )
    snapshot, trees = build_tree(nodes)
    results, more = build_tree(leaves)
    history.contents |= {**trees, **more}
    started = [session.started for session, _ in history.sessions.values()]
    words: Counter[str] = Counter(cell.verdict or "pending" for cell in history.cells)
    candidates = {cell.candidate.id: cell.candidate for cell in history.cells}
    settings = desk.settings
    return hashing.describe(
        "run",
        origin=IMPORTED,
        nonce=history.system,
        started=min(started),
        ended=max(started),
        status="complete",
        message=f"imported from {history.system}",
        snapshot=snapshot,
        results=results,
        candidates=[
            {"id": one.id, "model": one.model, "temperature": one.temperature}
            for _, one in sorted(candidates.items())
        ],
        evaluators=[{"id": history.system, "evaluator": history.evaluator()}],
        settings={"attempts": settings.attempts, "verdict": settings.verdict},
        asked=0,
        judged=0,
        reused=len({id for cell in history.cells for id in cell.sessions}),
        failed=0,
        verdicts={word: words[word] for word in VERDICTS},
    )


def _place(cell: Told) -> tuple[int, str, str]:
    return cell.index, cell.prompt or "", cell.candidate.id


def _as_told(file: CaseFile, cells: list[Told]) -> CaseFile:
    """The cases of a file, judged as they were elsewhere."""
    told = {cell.index: cell.evaluation for cell in cells}
    return replace(
        file,
        cases=tuple(
            replace(
                case,
                evaluation=told[index],
                judged_by=("models",),
                judge_prompts=(),
                code=(),
            )
            if index in told
            else case
            for index, case in enumerate(file.cases)
        ),
    )


def _describe_cell(file: CaseFile, cell: Told) -> Json:
    described = {
        "case": cell.index,
        "prompt": file.cases[cell.index].prompts.index(cell.prompt) or None,
        "model": cell.candidate.id,
        "wanted": cell.wanted if cell.wanted > 1 else None,
        "verdict": cell.verdict,
        "score": cell.score,
        "sessions": list(cell.sessions),
        "evaluations": list(cell.evaluations),
    }
    return {name: value for name, value in described.items() if value not in (None, [])}

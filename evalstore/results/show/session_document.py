"""Builds the JSON of a session, with its cases and judgements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.core import hashing
from evalstore.results.show.show import ShownItem

if TYPE_CHECKING:
    from evalstore.core.results import Result
    from evalstore.core.values import Json
    from evalstore.results.answer.judgements import Judgement
    from evalstore.results.show.session_details import SessionDetails
    from evalstore.store import Store


def show_session(store: Store, id: str, judged: SessionDetails) -> ShownItem:
    """Return a stored session with its cases and judgements."""
    question = judged.session.question

    def version(kind: str, id: str | None) -> Json:
        return store.load_contents(kind, [id]).get(id) if id else None

    # Oldest first; those on several sessions together come last.
    judgements = sorted(
        judged.judgements,
        key=lambda judgement: (len(judgement.sessions) > 1, judgement.started, judgement.id),
    )
    related = {
        "test": version("test", question.test),
        "prompt": version("prompt", question.prompt),
        "model": version("model", question.model),
        "question": hashing.question_id(question),
        **_describe_cases(judged.cells),
        "evaluations": [
            _describe_judgement(judgement, judged.rows.get(judgement.id))
            for judgement in judgements
        ],
        "instructions": store.load_contents(
            "evaluation", {judgement.evaluation for judgement in judgements}
        ),
    }
    return ShownItem("session", id, store.load_any("session", id).content, related)


def _describe_cases(cells: tuple[Result, ...]) -> dict[str, Json]:
    if not cells:
        return {}
    return {
        "file": cells[0].file,
        "row": cells[0].row,
        "current": sorted({cell.evaluation for cell in cells if cell.evaluation}),
        "cases": [{"file": cell.file, "row": cell.row, "verdict": cell.word} for cell in cells],
    }


def _describe_judgement(judgement: Judgement, row: str | None) -> dict[str, Json]:
    return {
        "started": judgement.started,
        "id": judgement.id,
        "evaluation": judgement.evaluation,
        "evaluator": judgement.evaluator,
        "verdict": judgement.verdict,
        "score": judgement.score,
        "human": judgement.is_person,
        "by": judgement.by,
        "feedback": judgement.feedback,
        "row": row,
        "together": len(judgement.sessions),
        "sessions": list(judgement.sessions),
        **({"takenFrom": judgement.taken_from} if judgement.taken_from else {}),
    }

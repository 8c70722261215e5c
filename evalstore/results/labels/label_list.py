"""The labels of people that count in the workspace, each with what checks and models say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.checks.judging.aggregation import judge_session, wants_models
from evalstore.core.hashing import subject_of
from evalstore.planning.plan import CHECKS
from evalstore.planning.status.workspace_results import iterate_workspace
from evalstore.results.labels.labels import read_labels
from evalstore.results.prompt_names import prompt_label

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evalstore.core.results import Vote
    from evalstore.core.values import Case, Json, Verdict
    from evalstore.planning.project import Project

COLUMNS = ("file", "row", "prompt", "model", "label", "by", "judged", "note")


def list_labels(project: Project) -> Iterator[dict[str, Json]]:
    """Yield a row for each label: the answer, the label, and the verdict without any label."""
    labels, rule = read_labels(project.store), project.settings.verdict
    if not labels.by_place:
        return
    for batch in iterate_workspace(project):
        for result, case in batch:
            listed = [label for label in labels.of(result) if label.verdict != "none"]
            made = project.store.find_judgements(result.evaluations) if listed else {}
            for label in listed:
                subject = subject_of(label.sessions)
                votes = [it.vote for it in made.values() if it.subject == subject]
                judged = _verdict_of_evaluators(case, votes, rule)
                name = prompt_label(project, result.prompt) if result.prompt else None
                yield {
                    "file": result.file,
                    "row": result.row,
                    "prompt": result.prompt,
                    "promptName": name,
                    "model": result.model,
                    "label": label.verdict,
                    "by": label.person,
                    "judged": judged,
                    "agrees": None if judged is None else judged == label.verdict,
                    "note": label.note,
                    "session": label.sessions[0],
                }


def _verdict_of_evaluators(case: Case, votes: Sequence[Vote], rule: str) -> Verdict | None:
    """Return the verdict without the labels of people; None if a judgement is missing."""
    others = [vote for vote in votes if not vote.human]
    checked = next((vote.verdict for vote in others if vote.evaluator == CHECKS), None)
    has_models = any(vote.evaluator != CHECKS for vote in others)
    needs_models = "models" in case.judged_by and (
        checked is None or wants_models(case.judged_by, checked)
    )
    if not others or (needs_models and not has_models):
        return None
    return judge_session(others, case.judged_by, CHECKS, rule).verdict


def agreement_text(rows: Iterable[dict[str, Json]]) -> str:
    """Return how many labels agree with the evaluators, as in `7 of 9 labels agree (77.8%)`."""
    known = [row["agrees"] for row in rows if row["agrees"] is not None]
    if not known:
        return "nothing but people has judged these answers"
    agreeing = sum(known)
    verb = "agrees" if len(known) == 1 else "agree"
    labels = "label" if len(known) == 1 else "labels"
    return (
        f"{agreeing} of {len(known)} {labels} {verb} with checks and judges "
        f"({100 * agreeing / len(known):.1f}%)"
    )

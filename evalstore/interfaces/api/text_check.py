"""The assertion `check`, for tests of other programs: a text must pass checks and judges."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evalstore.core.display import as_text, safe
from evalstore.core.values import Json
from evalstore.interfaces.api.workspace import Workspace
from evalstore.results.case_reference import shortened, show_answer
from evalstore.workspace.default_workspace import find_default_workspace

if TYPE_CHECKING:
    from evalstore.interfaces.api.options import StrPath
    from evalstore.runs.judge_text import JudgedText


@dataclass
class CheckCounts:
    """The calls of `check` in this process."""

    checks: int = 0
    judged: int = 0
    """Judgements that were made."""
    usd: float = 0.0
    """The known cost of these judgements."""


COUNTS = CheckCounts()


def check(
    answer: Json,
    instructions: str = "",
    *,
    question: str = "",
    checks: Iterable[Json] = (),
    workspace: Workspace | StrPath | None = None,
    evaluators: Iterable[str] = (),
    max_cost: float | None = None,
    offline: bool = False,
    refresh: bool = False,
) -> JudgedText:
    """Assert that a text passes checks and the judges of a workspace; returns the judgements.

    `instructions` are for the evaluators of the workspace, or for those that `evaluators` names.
    `checks` are those of a test file, such as `{"contains": "Paris"}`; they come first, and models
    judge only what passes them. `question` is what the text answers, for judges that are shown it.
    Without `workspace` it is the one that the current folder is in.

    The verdict is stored, and the same text with the same criteria is not judged again, except
    with `refresh`. Raises `AssertionError` when the text does not pass, and `EvalstoreError` when
    it cannot be judged.
    """
    __tracebackhide__ = True
    if not isinstance(workspace, Workspace):
        workspace = Workspace(workspace or find_default_workspace())
    judged = workspace.judge_text(
        answer,
        instructions,
        question=question,
        checks=checks,
        evaluators=evaluators,
        max_cost=max_cost,
        offline=offline,
        refresh=refresh,
    )
    COUNTS.checks += 1
    COUNTS.judged += judged.judged
    COUNTS.usd += judged.cost or 0.0
    if judged.verdict != "pass":
        raise AssertionError(_explain(answer, instructions, judged, workspace.root))
    return judged


def _explain(answer: Json, instructions: str, judged: JudgedText, folder: Path) -> str:
    """Return why a text does not pass: the text, the instructions and the feedback, as lines.

    `folder` is that of the workspace.
    """
    lines = [f"the verdict is '{judged.verdict}'", f"answer: {shortened(as_text(answer))}"]
    if instructions.strip():
        lines.append(f"instructions: {shortened(instructions.strip())}")
    for judgement in judged.judgements:
        failed = [check for check in judgement.checks if check.verdict != "pass"]
        texts = [f"{check.name}: {check.feedback}" for check in failed]
        for text in texts or ([judgement.feedback] if judgement.feedback else []):
            lines.append(f"{safe(judgement.by)}: {shortened(text)}")
        if not (texts or judgement.feedback) and judgement.verdict != "pass":
            lines.append(f"{safe(judgement.by)}: {judgement.verdict}, without feedback")
    return "\n".join([*lines, f"({show_answer(judged.session, folder, Path.cwd())})"])

"""A comparison as the JSON that `diff --json` prints."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evalstore.operations.diff_attempts import count_attempts
from evalstore.operations.json_output import to_json
from evalstore.operations.prompt_names import name_field, name_prompts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalstore.operations.diff import Diff
    from evalstore.operations.views.attempts import Attempt
    from evalstore.planning.options import Location
    from evalstore.reports.comparison import Pair
    from evalstore.results import Result
    from evalstore.values import Json


def diff_document(diff: Diff) -> Json:
    """Return the comparison as JSON."""
    was, now = diff.rates
    return {
        "from": diff.was,
        "to": diff.now,
        **({"models": list(diff.models)} if diff.models else {}),
        **{
            name: [_pair(diff, pair) for pair in getattr(diff, name)]
            for name in ("broke", "fixed", "changed", "new", "gone")
        },
        "unchanged": len(diff.comparison.unchanged),
        "notes": diff.notes,
        "edits": [{"file": file, "edits": to_json(edits)} for file, edits in diff.edits.items()],
        "statistics": {
            "was": to_json(was),
            "now": to_json(now),
            **to_json(diff.change),
        },
    }


def with_prompt_names(location: Location, diff: Diff) -> Diff:
    """Return the comparison with the names of all its system prompts."""
    ids = {result.prompt for result in diff.comparison.differing if result.prompt}
    return replace(diff, prompt_names=name_prompts(location, ids))


def _pair(diff: Diff, pair: Pair) -> Json:
    shown = pair.either
    attempts, name = diff.attempts_of(pair), diff.prompt_names.get(shown.prompt)
    sessions, feedback = diff.shown_sessions(pair), diff.feedback_on(pair)
    document = {
        "file": shown.file,
        "row": shown.row,
        "prompt": shown.prompt,
        **({"promptName": name} if name else name_field(diff.prompts, shown)),
        "model": shown.model,
        "was": _side(diff, pair.was, attempts[0], sessions[0], feedback[0]),
        "now": _side(diff, pair.now, attempts[1], sessions[1], feedback[1]),
        "reason": diff.reason(pair),
    }
    if diff.answers:
        document["answers"] = diff.answer_diff(pair)
    return document


def _side(
    diff: Diff,
    result: Result | None,
    attempts: Sequence[Attempt],
    session: str | None,
    feedback: str,
) -> Json:
    if result is None:
        return None
    return {
        "verdict": result.verdict or ("pending" if result.evaluation else None),
        "feedback": feedback,
        "session": session,
        **({"attempts": count_attempts(attempts)} if attempts else {}),
        **({"run": diff.earlier[result]} if result in diff.earlier else {}),
    }

"""Converts the sides of a compared pair, and the edits of test files, to JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evalstore.results.compare.diff_attempts import count_attempts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evalstore.comparison.version_diff import Difference
    from evalstore.core.results import Result
    from evalstore.core.values import Json
    from evalstore.results.attempts import Attempt


def side_to_json(
    result: Result | None,
    attempts: Sequence[Attempt],
    session: str | None,
    feedback: str,
    earlier: Mapping[Result, str],
) -> Json:
    """Return one side of a pair as JSON; None for a side without a result.

    `session` is the answer that is shown, and `earlier` the runs of results by result.
    """
    if result is None:
        return None
    return {
        "verdict": result.verdict or ("pending" if result.evaluation else None),
        "feedback": feedback,
        "session": session,
        **({"attempts": count_attempts(attempts)} if attempts else {}),
        **({"run": earlier[result]} if result in earlier else {}),
    }


def edits_to_json(
    edits: Mapping[str, Sequence[Difference]],
    sources: Mapping[str, Sequence[str]],
    convert: Callable[[Any], Json],
) -> Json:
    """Return the edits of test files as JSON, with what of them was edited: `sources`.

    `convert` turns those of a file into JSON.
    """
    return [
        {"file": file, "edited": list(sources.get(file, (file,))), "edits": convert(listed)}
        for file, listed in edits.items()
    ]

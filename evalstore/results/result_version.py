"""What a verdict is about, whichever answer it is on."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from evalstore.core.results import Result


class ResultVersion(NamedTuple):
    """The version of a case that a result is about; an edit of the case makes another."""

    test: str
    prompt: str | None
    evaluation: str | None


def version_of(result: Result) -> ResultVersion:
    """Return the version of a case that a result is about."""
    return ResultVersion(result.test, result.prompt, result.evaluation)

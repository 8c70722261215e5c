"""What a verdict is about, whichever answer it is on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from evalstore.core.results import Result
from evalstore.results.growing_results import CellKey
from evalstore.results.labels.labels import LabelIndex


class ResultVersion(NamedTuple):
    """The version of a case that a result is about; an edit of the case makes another."""

    test: str
    prompt: str | None
    evaluation: str | None


BrokenResults: TypeAlias = "Mapping[CellKey, ResultVersion]"
"""The results that broke, each with what did not pass."""


def version_of(result: Result) -> ResultVersion:
    """Return the version of a case that a result is about."""
    return ResultVersion(result.test, result.prompt, result.evaluation)


def is_broken(result: Result, broken: BrokenResults, labels: LabelIndex) -> bool:
    """Return whether a result broke and was not fixed since, by a label or another edit."""
    was = broken.get((result.file, result.row, result.prompt_number, result.model))
    if was is None:
        return False
    # An edit may have been taken back: then an older version passes again.
    is_other = version_of(result) != was or labels.decides(result)
    is_fixed = result.verdict == "pass" and is_other
    return not is_fixed and labels.word(result) != "pass"

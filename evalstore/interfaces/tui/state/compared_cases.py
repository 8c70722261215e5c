"""What is compared within a run: two candidates or two system prompts, in all cases or in some."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from evalstore.interfaces.tui.state.case_listing import PromptPair
from evalstore.interfaces.tui.state.case_query import read_query

if TYPE_CHECKING:
    from evalstore.core.results import Result
    from evalstore.planning.options import Location
    from evalstore.results.compare.diff_result import Diff


class FilteredPlaces(NamedTuple):
    """The cases that a filter lists, to which a comparison is limited."""

    typed: str
    """The filter."""
    places: frozenset[tuple[str, str, int]]
    """The file, the row and the number of the system prompt of each line."""
    cases: frozenset[tuple[str, str]]
    """The file and the row of each line."""

    @property
    def title(self) -> tuple[str, str]:
        """Return the part of a title that names the filter, and a brief one."""
        return f"of the cases filtered by {self.typed}", f"filtered by {self.typed}"

    def has(self, result: Result) -> bool:
        """Return whether a result is on one of the lines."""
        return (result.file, result.row, result.prompt_number) in self.places

    def has_case(self, result: Result) -> bool:
        """Return whether a result is of one of the cases, with any system prompt."""
        return (result.file, result.row) in self.cases


Models: TypeAlias = tuple[str, str] | None
"""Two candidates, or as a `PromptPair` two system prompts; None: two sides are compared."""
Among: TypeAlias = FilteredPlaces | None
"""The cases in which these are compared; None: all."""


def compare_within(
    location: Location, run: str | None, models: tuple[str, str], among: Among
) -> Diff:
    """Compare two candidates or system prompts of a run, or of the workspace without one."""
    from evalstore.results.compare.diff_within import diff_models, diff_prompts

    if isinstance(models, PromptPair):
        found = diff_prompts(location, run, models, only=among.has_case if among else None)
    else:
        found = diff_models(location, run, models, only=among.has if among else None)
    if among and read_query(among.typed).is_about_verdicts:
        found.comparison.by_verdict = True
    return found

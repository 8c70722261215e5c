"""The command `status`: the changes since the last run, and the plan with reasons and cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.planning.options import SelectionOptions
from evalstore.planning.reasons.ignored_variables_in_files import warn_of_ignored_variables
from evalstore.runs.status.status_cache import recall

if TYPE_CHECKING:
    from evalstore.planning.options import Location
    from evalstore.planning.status.status_report import Status


def status(location: Location, selection: SelectionOptions, *, whole: bool = True) -> Status:
    """Return what a run would do and what changed, without calling a model.

    Without `whole`, the list of items may be missing. Warns of what has no effect in `.env`.
    """
    warn_of_ignored_variables(location)
    if selection == SelectionOptions() and (remembered := recall(location, whole=whole)):
        return remembered
    from evalstore.runs.status.plan_status import compute_status

    return compute_status(location, selection, whole=whole)

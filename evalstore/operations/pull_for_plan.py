"""Copies from a remote only what the current plan asks for, and the run to compare with.

A clean machine, such as one of CI, needs neither the history nor the results of other cases. It
looks up the questions of its plan, then the judgements of the answers that came, and again until
nothing more comes. Unless only some cases are selected, it copies the newest run and the newest
about all cases first: they tell what broke.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from evalstore.operations.open_remote import open_remote
from evalstore.operations.pull import PullReport, count_left_out
from evalstore.operations.push import count_kinds
from evalstore.planning.open_project import open_project
from evalstore.planning.options import SelectionOptions
from evalstore.planning.planner import make_plan, require_sound
from evalstore.sharing.layout import require_remote
from evalstore.sharing.pack_reader import MissingPackError
from evalstore.sharing.progress import CopyListener
from evalstore.sharing.pull_referenced import ReferencedPull
from evalstore.values import RECORDED

if TYPE_CHECKING:
    from evalstore.planning.options import Location
    from evalstore.planning.plan import Plan


def pull_for_plan(
    location: Location,
    remote: str | None = None,
    selection: SelectionOptions | None = None,
    *,
    listener: CopyListener | None = None,
) -> PullReport:
    """Copy the answers and judgements that a run with this selection would ask for.

    Raises `EvalstoreError`.
    """
    with open_remote(location, remote, create=True) as opened:
        require_remote(opened.files)
        received = opened.cache.refresh(opened.files)
        listener = listener or CopyListener()
        selection = selection or SelectionOptions()
        copied: Counter[str] = Counter()
        for is_last in (False, True):
            pull = ReferencedPull(opened.store, opened.files, opened.cache, listener)
            try:
                _pull(location, selection, pull)
                break
            except MissingPackError:
                again = opened.cache.refresh(opened.files)
                if is_last or not again:
                    raise
                received += again  # somebody has replaced packs meanwhile
            finally:
                copied.update(pull.by_table)
                received += pull.pulled.bytes_received
        return PullReport(
            opened.name,
            opened.address,
            count_kinds(copied),
            bytes_received=received,
            newer=opened.cache.count_unknown(),
            waiting=pull.pulled.waiting,
            left_out=count_left_out(opened.cache),
        )


def _pull(location: Location, selection: SelectionOptions, pull: ReferencedPull) -> None:
    with open_project(replace(location, was_seen=True)) as project:
        require_sound(project, selection)
        project.store_versions()  # so that the remote need not send them
        if not selection.narrows:
            pull.copy("runs", pull.find_newest_runs())
        while True:
            plan = make_plan(project, selection)
            sessions = pull.find_keyed("sessions", questions_of(plan))
            subjects = {item.subject for item in plan.judgements if item.subject}
            judgements = pull.find_keyed("evaluations", subjects)
            if not sessions and not judgements:
                return
            pull.copy("sessions", sessions)
            pull.copy("evaluations", judgements)


def questions_of(plan: Plan) -> set[str]:
    """Return the ids of the questions that a run would ask a model."""
    return {ask.question_id for ask in plan.asks if ask.cell.candidate.id != RECORDED}

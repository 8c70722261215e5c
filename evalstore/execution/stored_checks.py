"""Makes the missing checks of stored sessions; runners of one run divide them.

A runner claims some subjects, makes their checks and goes on. In the end it claims again what
others had claimed: by then they have made those checks, or have died.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from evalstore import hashing
from evalstore.planning.plan import CHECKS

if TYPE_CHECKING:
    from evalstore.execution.judgement_queue import DueSubjects, JudgementQueue
    from evalstore.execution.plan_progress import PlanProgress
    from evalstore.execution.run_resources import RunResources
    from evalstore.planning.cells import Cell, Subject
    from evalstore.planning.plan import PlannedJudgement

_AT_ONCE = 200
"""The number of subjects whose sessions are read together."""
_CLAIMED_AT_ONCE = 16
"""The number of subjects that are claimed together: their checks may be slow."""
_LOOK_SECONDS = 0.2
"""Seconds until it is checked again whether other runners have made their checks."""


class StoredChecks:
    """The checks of stored sessions in one plan."""

    def __init__(
        self, resources: RunResources, judgements: JudgementQueue, progress: PlanProgress
    ) -> None:
        self._sharing = resources.sharing
        self._writer = resources.accounting.writer
        self._is_halted = resources.calls.is_halted
        self._judgements = judgements
        self._progress = progress

    async def make(self) -> AsyncIterator[list[PlannedJudgement]]:
        """Make the checks, some at a time; yields the judgements that are left to models."""
        if not self._sharing.is_expected:
            for due in self._judgements.stored_due(_AT_ONCE):
                if self._is_halted():
                    return
                yield await self._judgements.judge_stored(due)
            return
        left: dict[Subject, list[Cell]] = {}
        for due in self._judgements.stored_due(_CLAIMED_AT_ONCE, self._sharing.starting_place):
            if self._is_halted():
                return
            yield await self._make_claimed(due, left)
        while left and not self._is_halted():
            await asyncio.sleep(_LOOK_SECONDS)
            due, left = left, {}
            yield await self._make_claimed(due, left)

    async def _make_claimed(
        self, due: DueSubjects, left: dict[Subject, list[Cell]]
    ) -> list[PlannedJudgement]:
        """Make the checks of subjects that no other runner works on; the others are added to left.

        Those of a runner whose process is stopped stay as they are.
        """
        keys = {_key_of(subject): subject for subject in due}
        claimed = await self._sharing.claim_subjects([*keys])
        left |= {keys[key]: due[keys[key]] for key in claimed.held}
        ours = {keys[key]: due[keys[key]] for key in keys if key in claimed.granted}
        if not ours:
            return []
        subjects = [hashing.subject_of(ids) for ids in ours]
        self._sharing.find_new_votes(
            {subject: self._progress.votes(subject) for subject in subjects}
        )
        judgements = await self._judgements.judge_stored(ours)
        for key in claimed.granted:
            self._writer.release_lease(key)
        return judgements


def _key_of(subject: Subject) -> str:
    return hashing.hash_content(f"{hashing.subject_of(subject)} {CHECKS}")

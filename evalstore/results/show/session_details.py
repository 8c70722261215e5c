"""Reads a session with its cases and judgements, for its page and its JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from evalstore.core.errors import StoreError
from evalstore.core.values import URGENCY
from evalstore.results.answer.judgements import Judgement, read_judgements
from evalstore.results.flips.run_differences import has_several_prompts
from evalstore.results.labels.later_labels import with_later_labels
from evalstore.results.show.show import cells_with

if TYPE_CHECKING:
    from collections.abc import Set

    from evalstore.core.results import Result, Session
    from evalstore.planning.options import Location
    from evalstore.store import Store


@dataclass(frozen=True, slots=True)
class SessionDetails:
    """A session, the cases to which it belongs, and all judgements on it."""

    session: Session
    cells: tuple[Result, ...]
    """The results to which it belongs, the most urgent first."""
    has_several_prompts: bool
    """Whether one of its cases has several system prompts."""
    current: Set[str]
    """The evaluation versions of these results."""
    subjects: tuple[tuple[str, ...], ...]
    """The sessions that are judged, alone or together with others."""
    judgements: tuple[Judgement, ...]
    """All judgements, those that count first."""
    rows: Mapping[str, str]
    """The row of each judgement that counts, by id of the judgement."""


def read_session_details(
    location: Location,
    store: Store,
    id: str,
    result: Result | None = None,
) -> SessionDetails:
    """Read a session as part of the case of `result`; without it, as the newest run has it.

    Labels that came after that run count. Raises `StoreError` when the store does not have it.
    """
    session = store.find_sessions([id]).get(id)
    if session is None:
        raise StoreError(f"the store has no answer {id}", hint="run 'evalstore fsck'")
    has_several = False
    if result is not None:
        cells = [result]
    else:
        found = cells_with(store, id)
        places = ((run, each.file) for each, run in found.items())
        has_several = any(has_several_prompts(store, *place) for place in places)
        cells = [*found]
        now = with_later_labels(location, store, cells)
        cells = [now.get(cell, cell) for cell in cells]
        cells.sort(key=lambda cell: URGENCY.index(cell.word or "answered"))
    counted = list(dict.fromkeys(key for cell in cells for key in cell.evaluations))
    current = {cell.evaluation for cell in cells if cell.evaluation}
    subjects, judgements = read_judgements(
        store,
        id,
        counted,
        current if cells else None,
        partial(_evaluations_elsewhere, store, id, result),
    )
    rows = {key: cell.row for cell in reversed(cells) for key in cell.evaluations}
    if len(cells) > 1:
        judgements = tuple(sorted(judgements, key=lambda judgement: _urgency(judgement, rows)))
    return SessionDetails(
        session, tuple(cells), has_several, current, tuple(subjects), judgements, rows
    )


def _urgency(judgement: Judgement, rows: Mapping[str, str]) -> tuple[bool, bool, int]:
    """Return the sort key of a judgement: those that count come first, of these the most urgent."""
    word = judgement.verdict if judgement.verdict in URGENCY else "pass"
    return bool(judgement.why_not), judgement.id not in rows, URGENCY.index(word)


def _evaluations_elsewhere(store: Store, id: str, result: Result | None) -> set[str]:
    """Return the evaluation versions of a session in other cases than that of `result`."""
    if result is None:
        return set()
    cells = cells_with(store, id)
    others = [cell for cell in cells if (cell.file, cell.row) != (result.file, result.row)]
    return {other.evaluation for other in others if other.evaluation}

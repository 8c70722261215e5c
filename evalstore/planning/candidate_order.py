"""The order of candidates: that of the settings."""

from __future__ import annotations

from collections.abc import Callable

from evalstore.core.values import RECORDED
from evalstore.workspace.settings.settings import Settings


def candidate_order(settings: Settings) -> Callable[[str], tuple[bool, int, str]]:
    """Return a sort key for the display ids of candidates.

    Those that are no longer in the settings come last, by name; recorded answers come after them.
    """
    places: dict[str, int] = {}
    for candidate in settings.candidates:
        places.setdefault(candidate.name or candidate.id, len(places))
    return lambda id: (id == RECORDED, places.get(id, len(places)), id.casefold())

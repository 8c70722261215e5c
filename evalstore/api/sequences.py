"""Keeps what methods return that may be long: a list, or a sequence in a temporary file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from evalstore.files.filed_sequence import keep_values
from evalstore.reports.placed_results import unpack_result

if TYPE_CHECKING:
    from evalstore.operations.grep import SearchHit
    from evalstore.results import Result
    from evalstore.values import Json

_ROWS_AT_ONCE = 100
"""Rows whose answers are in memory together: one may have megabytes."""
_PACK_HIT = attrgetter("kind", "id", "file", "row", "models", "sessions", "context", "matches")


def keep_results(results: Iterable[Result]) -> Sequence[Result]:
    """Return results as a sequence."""
    return keep_values(results, tuple, unpack_result)


def keep_hits(hits: Iterable[SearchHit]) -> Sequence[SearchHit]:
    """Return the matches of a search as a sequence."""
    return keep_values(hits, _PACK_HIT, _unpack_hit)


def keep_rows(rows: Iterable[dict[str, Json]]) -> Sequence[dict[str, Json]]:
    """Return rows of an export as a sequence."""
    return keep_values(rows, lambda row: row, lambda row: row, _ROWS_AT_ONCE)


def _unpack_hit(values: Sequence[Any]) -> SearchHit:
    from evalstore.operations.grep import SearchHit

    kind, id, file, row, models, sessions, context, matches = values
    return SearchHit(
        kind,
        id,
        file,
        row,
        tuple(models),
        tuple(sessions),
        context,
        tuple((start, end) for start, end in matches),
    )

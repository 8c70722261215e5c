"""Reads what is shown of one pair of a comparison: the edits of its case, and its answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.comparison.case_edits import differ_results
from evalstore.planning.open_project import open_store
from evalstore.planning.reasons.version_reader import VersionReader
from evalstore.results.answer.answer import read_workspace
from evalstore.results.prompt_names import PromptNames
from evalstore.results.rendering import answer_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalstore.comparison.comparison import Pair
    from evalstore.comparison.version_diff import Difference
    from evalstore.planning.options import Location


def find_pair_edits(location: Location, pair: Pair) -> list[Difference]:
    """Return the differences between the versions of a case on both sides of a pair."""
    if pair.was is None or pair.now is None:
        return []
    with open_store(location) as store:
        versions = VersionReader(store, fallback=lambda: read_workspace(location))
        names = PromptNames(location)
        names.expect((side.prompt, side.prompt_number) for side in (pair.was, pair.now))
        return list(differ_results(pair.was, pair.now, versions.find, names))


def read_answers(location: Location, sessions: Sequence[str]) -> dict[str, str]:
    """Return the texts of the last answers of these sessions, by id."""
    with open_store(location) as store:
        return {
            id: answer_text(session.answer) for id, session in store.find_sessions(sessions).items()
        }

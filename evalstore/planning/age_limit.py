"""The limits on the age of stored answers and judgements that count in a command."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from typing import NamedTuple

from evalstore.core.results import Vote
from evalstore.core.values import Word


class AgeLimit(NamedTuple):
    """The time from which stored answers, or judgements, count in a command."""

    since: float = -math.inf
    """Microseconds since 1970; with infinity, none of them count."""
    why: str = ""
    """Why an older one is replaced."""

    def why_again(
        self, place: tuple[str | None, str], stored: Iterable[Vote], again: Collection[Word]
    ) -> str:
        """Return why the vote that a judgement replaces does not count; empty if there is none.

        `place` is its evaluation version and evaluator; votes with a verdict of `again` are
        replaced.
        """
        why = ""
        for vote in stored:
            if (vote.evaluation, vote.evaluator) != place:
                continue
            if vote.verdict in again:
                is_error = vote.verdict == "error"
                why = f"retry of {'an error of a check' if is_error else 'an undecided verdict'}"
            elif vote.started < self.since:
                why = self.why
        return why


AT_REQUEST = "again at your request"
"""Why everything is replaced with `--refresh`; a reason puts `asked` or `judged` before it."""
EVER = AgeLimit()
"""The limit with which all of them count."""


def with_verb(verb: str, why: str) -> str:
    """Return why an older one is replaced, with what is done again where the text needs it."""
    return f"{verb} {why}" if why == AT_REQUEST else why

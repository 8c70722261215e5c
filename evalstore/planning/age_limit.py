"""The limits on the age of stored answers and judgements that count in a command."""

from __future__ import annotations

import math
from typing import NamedTuple


class AgeLimit(NamedTuple):
    """The time from which stored answers, or judgements, count in a command."""

    since: float = -math.inf
    """Microseconds since 1970; with infinity, none of them count."""
    why: str = ""
    """Why an older one is replaced."""


AT_REQUEST = "again at your request"
"""Why everything is replaced with `--refresh`; a reason puts `asked` or `judged` before it."""
EVER = AgeLimit()
"""The limit with which all of them count."""


def with_verb(verb: str, why: str) -> str:
    """Return why an older one is replaced, with what is done again where the text needs it."""
    return f"{verb} {why}" if why == AT_REQUEST else why

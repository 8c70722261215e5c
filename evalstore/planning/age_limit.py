"""From which time on stored answers and judgements count in a command."""

from __future__ import annotations

import math
from typing import NamedTuple


class AgeLimit(NamedTuple):
    """The time from which stored answers, or judgements, count in a command."""

    since: float = -math.inf
    """Microseconds since 1970; with infinity none counts."""
    why: str = ""
    """The reason to replace one that does not count."""


EVER = AgeLimit()
"""All count, whatever their age."""

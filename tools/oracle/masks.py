"""What differs each time a command runs, by name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tools.oracle.programs import Place

_MASKS = {
    # A run makes answers and judgements, whose ids have a random part; those of runs before stay.
    "NEW ID": (
        re.compile(r"run (?!-n)"),
        re.compile(r"(?<!passed in run )\b[0-9a-f]{8}(?:[0-9a-f]{24})?\b"),
    ),
}
"""By name: for which command lines it is, and what it stands for in what they say.

The clock stands still while a command runs, so ages and times need none.
"""


def masked(line: str, said: bytes, place: Place) -> str:
    """What a command line has said, without what differs each time."""
    text = said.decode("utf-8", "backslashreplace")
    for name, folder in (
        ("OUT", place.out),
        ("FAR", place.far),
        ("HOME", place.home),
        ("WORKSPACE", place.workspace),
    ):
        text = text.replace(str(folder), f"<{name}>")
    for name, (lines, pattern) in _MASKS.items():
        if lines.match(line):
            text = pattern.sub(f"<{name}>", text)
    return text

"""What is wrong with a source, so that it is not imported; and where to look for it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalstore.values import Json


class NotTakenError(Exception):
    """Why a test, or one line of its data, is not imported."""

    def __init__(
        self, reason: str, *place: str, line: int | None = None, file: str | None = None
    ) -> None:
        """`place` are the keys of `test.json` that lead to what is wrong.

        `file` is another file of the test's folder that is wrong, and `line` is one of it.
        """
        super().__init__(reason)
        self.reason = reason
        self.place = place
        self.line = line
        self.file = file


def line_of(text: str, place: tuple[str, ...]) -> int | None:
    """The line of a JSON text on which the last of these keys stands; None without keys."""
    at = 0
    for key in place:
        match = re.compile(re.escape(json.dumps(key)) + r"\s*:").search(text, at)
        if match is None:
            break
        at = match.start()
    return text.count("\n", 0, at) + 1 if place else None


def short_json(value: Json) -> str:
    """A value for a message, shortened."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:60] + "…"


def check_picture(address: str) -> None:
    """Raise `NotTakenError` unless a picture can be sent by this address."""
    if not address.startswith(("https://", "http://")):
        raise NotTakenError(f"{short_json(address)} is not the address of a picture (https://…)")

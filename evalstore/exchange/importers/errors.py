"""Errors of importers, and the source lines they refer to."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalstore.core.values import Json


class NotTakenError(Exception):
    """A test, or one line of its data, cannot be imported."""

    def __init__(
        self, reason: str, *place: str, line: int | None = None, file: str | None = None
    ) -> None:
        """`place` is the path of keys in `test.json` to the faulty value.

        `file` is another faulty file in the test's folder, and `line` is a line of that file.
        """
        super().__init__(reason)
        self.reason = reason
        self.place = place
        self.line = line
        self.file = file


class UnusableError(Exception):
    """A recorded conversation cannot be imported, for this reason."""


def line_of(text: str, place: tuple[str, ...]) -> int | None:
    """Return the line of the last of these nested keys in a JSON text; None without keys."""
    at = 0
    for key in place:
        match = re.compile(re.escape(json.dumps(key)) + r"\s*:").search(text, at)
        if match is None:
            break
        at = match.start()
    return text.count("\n", 0, at) + 1 if place else None


def short_json(value: Json) -> str:
    """Return the value as JSON, shortened for a message."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:60] + "…"


def check_picture(address: str) -> None:
    """Raise `NotTakenError` unless the address is a URL (http or https)."""
    if not address.startswith(("https://", "http://")):
        raise NotTakenError(f"{short_json(address)} is not the address of a picture (https://…)")

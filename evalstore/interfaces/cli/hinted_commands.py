"""Adapts the commands in hints to the folder of `-C`, so that they work where they are typed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from pathlib import Path

_folder: str | None = None
_command: re.Pattern[str] | None = None
"""Matches the start of a command in quotation marks, or of one that ends a hint."""


def use_folder(folder: Path | None, commands: Iterable[str] = ()) -> None:
    """Set the folder that `-C` names on the command line, and the commands; None: there is none."""
    global _folder, _command
    if folder is None:
        _folder = _command = None
        return
    names = "|".join(map(re.escape, commands))
    _folder = shlex.quote(str(folder))
    _command = re.compile(rf"(^|[\"']|, or |: )evalstore (?=(?:{names})\b)", re.MULTILINE)


def for_here(text: str) -> str:
    """Return a text with commands for the current folder: they name that of `-C`."""
    if _command is None:
        return text
    return _command.sub(lambda match: f"{match[1]}evalstore -C {_folder} ", text)

"""Keeps the shells from offering files where a row is typed, after `::`.

The scripts of typer let zsh and fish offer files whenever the program has nothing to offer.
"""

from __future__ import annotations

import re

_ZSH = re.compile(r"^ +eval (?P<call>\$\(.*\))$", re.MULTILINE)
"""Matches the line of the script for zsh that asks the program and carries out its answer."""
_FISH = '--condition "'
"""How the script for fish begins to say when no files are offered."""


def without_files_as_rows(script: str) -> str:
    """Return a script for zsh or fish that offers no files after `::`."""
    fish = f"{_FISH}string match -q '*::*' -- (commandline -ct); or "
    return _ZSH.sub(_guarded, script).replace(_FISH, fish)


def _guarded(match: re.Match[str]) -> str:
    return (
        f'  local answer="{match["call"]}"\n'
        "  [[ ${words[CURRENT]} == *::* && $answer == _files ]] && return\n"
        "  eval ${answer//$'\\n'/ }"
    )

"""How progress is shown on stderr: as bars, as lines or not at all."""

from __future__ import annotations

import sys
from typing import Literal

from evalstore.interfaces.cli import output

Mode = Literal["auto", "plain", "none"]
PLAIN_SECONDS = 10.0
"""Between two lines."""


def choose_mode(mode: Mode) -> Mode:
    """Return the mode that applies: none with `--quiet`, lines unless stderr is a terminal."""
    if output.quiet:
        return "none"
    return "plain" if mode == "auto" and not sys.stderr.isatty() else mode

"""evalstore with few rows in each transaction of a copy, so that kills hit between them."""

from __future__ import annotations

from evalstore.core import batches
from evalstore.interfaces.cli.main import main as evalstore

_ROWS = 5


def main(argv: list[str]) -> int:
    """Run a command."""
    batches.SIZE = batches.SMALL_SIZE = _ROWS  # there are a few hundred rows in a trial
    return evalstore(argv)

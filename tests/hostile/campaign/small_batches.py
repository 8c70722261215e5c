"""evalstore with few rows in each transaction of a copy, so that kills hit between them."""

from __future__ import annotations

from evalstore.core import batches
from evalstore.interfaces.cli.main import main as evalstore
from evalstore.remotes import download

_ROWS = 5


def main(argv: list[str]) -> int:
    """Run a command."""
    download._ROWS = batches.SIZE = batches.SMALL_SIZE = _ROWS  # a trial has a few hundred
    return evalstore(argv)

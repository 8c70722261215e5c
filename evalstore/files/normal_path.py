"""Paths as messages name them."""

from __future__ import annotations

import os
from pathlib import Path


def normal_path(folder: Path, name: Path | str) -> Path:
    """Return a path in a folder without `..`; as it is where a link makes that another place."""
    path = folder / name
    shorter = Path(os.path.normpath(path))
    return shorter if shorter.parent.resolve() == path.parent.resolve() else path

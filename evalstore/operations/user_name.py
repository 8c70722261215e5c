"""Who uses this machine: the author of labels and pushes."""

from __future__ import annotations

import getpass
import platform
import subprocess
from typing import TYPE_CHECKING

from evalstore.errors import EvalstoreError

if TYPE_CHECKING:
    from pathlib import Path


def name_of_writer(directory: Path) -> str:
    """Return who writes to a remote from a folder: the user and the machine."""
    return f"{name_of_user(directory)}@{platform.node() or 'unknown'}"


def name_of_user(directory: Path) -> str:
    """Return the name of the user: git's `user.name`, else the login."""
    try:
        name = subprocess.run(
            ["git", "config", "user.name"],
            cwd=directory,
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        name = ""
    try:
        return name or getpass.getuser()
    except (OSError, KeyError) as problem:
        raise EvalstoreError(
            "cannot determine your name", hint="give it with '--as NAME'"
        ) from problem

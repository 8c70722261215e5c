"""Who uses this machine: the author of labels and pushes."""

from __future__ import annotations

import getpass
import platform
from pathlib import Path

from evalstore.core.errors import EvalstoreError
from evalstore.workspace.git import read_user_name


def name_of_writer(directory: Path) -> str:
    """Return who writes to a remote from a folder: the user and the machine."""
    return f"{name_of_user(directory)}@{_readable(platform.node()) or 'unknown'}"


def name_of_user(directory: Path) -> str:
    """Return the name of the user: git's `user.name`, else the login."""
    try:
        name = read_user_name(directory, outside=True) or getpass.getuser()
    except (OSError, KeyError) as problem:
        raise EvalstoreError(
            "cannot determine your name", hint="give it with '--as NAME'"
        ) from problem
    return _readable(name)


def _readable(name: str) -> str:
    """Replace what is not UTF-8 in a name of the system."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")

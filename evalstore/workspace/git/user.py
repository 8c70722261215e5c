"""Reads the name of the user from git's configuration files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from evalstore.workspace.git.files import GitError, find_repository, read_bytes

_SECTION = re.compile(r"\s*\[([^\]]*)\]")
_NAME = re.compile(r"\s*name\s*=\s*(.*)", re.IGNORECASE)
_LONGEST = 200
"""The most characters of a name that are kept."""


def read_user_name(folder: Path, *, outside: bool = False) -> str | None:
    """Read git's `user.name` for the checkout that a folder is in.

    Outside a checkout None, or with `outside` that of the user. The repository's setting takes
    precedence over the user's. Included files are not read, and git is not started.
    """
    try:
        repository = find_repository(folder.resolve())
    except (GitError, OSError, ValueError):
        repository = None
    if repository is None and not outside:
        return None
    for path in (*([repository.common / "config"] if repository else ()), *_user_files()):
        with suppress(GitError, OSError, ValueError):
            if name := _find_name(read_bytes(path, 2**20).decode("utf-8", "replace")):
                return name
    return None


def _user_files() -> Iterator[Path]:
    """Yield the configuration files of the user, in the order in which git prefers them."""
    with suppress(RuntimeError):  # without a home folder
        home = Path.home()
        yield home / ".gitconfig"
        yield Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "git/config"


def _find_name(text: str) -> str | None:
    """Find the last `name` of the section `user`."""
    section, name = "", None
    for line in text.splitlines():
        if heading := _SECTION.match(line):
            section = heading[1].strip().lower()
        elif section == "user" and (setting := _NAME.match(line)):
            name = re.split(r"\s[#;]", setting[1], maxsplit=1)[0].strip().strip('"')[:_LONGEST]
    return name or None

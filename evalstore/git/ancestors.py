"""Determines on which commits a commit builds."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from evalstore.git.files import GitError, find_repository
from evalstore.git.objects import Objects

if TYPE_CHECKING:
    from pathlib import Path

_MOST_COMMITS = 5_000


class Ancestors:
    """A commit and those that it builds on, the nearest first, read as far as they are asked for.

    Commits that cannot be read, as those of a shallow clone, and those that are thousands of
    commits away are not among them.
    """

    def __init__(self, folder: Path, commit: str) -> None:
        """`folder` is in the checkout."""
        self._objects: Objects | None = None
        self._known, self._next = {commit}, deque([commit])
        with suppress(GitError, OSError, ValueError):
            if repository := find_repository(folder.resolve()):
                self._objects = Objects(repository.common)

    def __contains__(self, commit: str) -> bool:
        while commit not in self._known and self._next and len(self._known) < _MOST_COMMITS:
            self._read(self._next.popleft())
        return commit in self._known

    def _read(self, commit: str) -> None:
        if self._objects is None:
            return
        with suppress(GitError, OSError, ValueError):
            for parent in self._objects.parents_of(commit):
                if parent not in self._known:
                    self._known.add(parent)
                    self._next.append(parent)

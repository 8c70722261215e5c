"""Determines on which commits a commit builds."""

from __future__ import annotations

from contextlib import suppress
from heapq import heapify, heappop, heappush
from pathlib import Path
from typing import NamedTuple

from evalstore.workspace.git.files import GitError, find_repository
from evalstore.workspace.git.objects import Objects


class _Commit(NamedTuple):
    age: int
    """The negative time."""
    id: str
    parents: list[str]


class Ancestors:
    """A commit and those that it builds on, read as far as they are asked for.

    Commits that a shallow clone lacks are not among them, but for the parents of those it has.
    """

    def __init__(self, folder: Path, commit: str) -> None:
        """`folder` is in the checkout."""
        self._objects: Objects | None = None
        self._is_shallow = False
        with suppress(GitError, OSError, ValueError):
            if repository := find_repository(folder.resolve()):
                self._objects = Objects(repository.common)
                self._is_shallow = (repository.common / "shallow").exists()
        self._known, self._others = {commit}, set[str]()
        start = self._read(commit)
        self._queue = [start] if start else []
        """Known commits whose parents are not read yet, the newest first."""

    def __contains__(self, commit: str) -> bool:
        if commit not in self._known and commit not in self._others and not self._follow(commit):
            self._others.add(commit)
        return commit in self._known

    def _follow(self, commit: str) -> bool:
        """Follow both commits back until this one is met, or all that is left is behind it."""
        start = self._read(commit)
        if start is None and not self._is_shallow:
            return False
        behind, queue, shared = {commit}, [start] if start else [], list[_Commit]()
        while self._queue and commit not in self._known:
            if queue and queue[0] < self._queue[0]:
                self._step(queue, behind)
            elif self._queue[0].id in behind:
                shared.append(heappop(self._queue))
            else:
                self._step(self._queue, self._known)
        self._queue += shared
        heapify(self._queue)
        return commit in self._known

    def _step(self, queue: list[_Commit], known: set[str]) -> None:
        """Replace the newest commit of a queue by its parents that are not known yet."""
        for id in heappop(queue).parents:
            if id not in known:
                known.add(id)
                parent = self._read(id)
                if parent and parent.parents:
                    heappush(queue, parent)

    def _read(self, id: str) -> _Commit | None:
        """Return a commit; None for one that cannot be read."""
        with suppress(GitError, OSError, ValueError):
            if self._objects:
                time, parents = self._objects.read_commit(id)
                return _Commit(-time, id, parents)
        return None

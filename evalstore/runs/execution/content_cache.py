"""Caches stored contents and sessions, and reads those of many calls together.

Contents are read ahead, because one large read is cheaper than many small ones. The cache keeps
the most recent ones, and the versions that many questions use.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from evalstore.core import batches, deserialize
from evalstore.core.results import Session
from evalstore.core.values import FileVersion, Json, PromptVersion, TestVersion, ToolVersion
from evalstore.planning.cells import Subject
from evalstore.store import Store

_SHARED_KINDS = frozenset({"prompt", "tool", "schema"})
"""Kinds of content that many questions use: they stay in memory."""

JudgementInput = tuple[Sequence[str], str | None]
"""The input of a judgement: ids of its sessions, and of its evaluation version."""


class ContentCache:
    """Reads contents and sessions from the store, and keeps a limited number of them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._shared: dict[str, Json] = {}
        self._contents: dict[str, Json] = {}
        self._sessions: dict[str, Session] = {}

    def add(self, contents: Mapping[str, Json]) -> None:
        """Keep contents, by id, that will be needed soon; only the last thousands are kept."""
        self._contents |= contents
        _drop_oldest(self._contents, batches.SIZE + len(contents))

    def read_evaluations(self, ids: Iterable[str]) -> None:
        """Read the evaluation versions that are not in memory together, as far as they fit."""
        missing = list(islice((id for id in ids if id not in self._contents), batches.SIZE))
        if missing:
            self.add(self._store.load_contents("evaluation", missing))

    def has_input(self, ids: Iterable[str], evaluation: str | None) -> bool:
        """Return whether the sessions and the evaluation version of a judgement are in memory."""
        if evaluation is not None and evaluation not in self._contents:
            return False
        return all(id in self._sessions for id in ids)

    def read_ahead(self, inputs: Iterable[JudgementInput]) -> None:
        """Read the inputs of the first of these judgements together, as far as they are stored."""
        sessions: dict[str, None] = {}
        evaluations: dict[str, None] = {}
        for ids, evaluation in islice(inputs, batches.SMALL_SIZE):
            sessions |= dict.fromkeys(id for id in ids if id not in self._sessions)
            if evaluation is not None and evaluation not in self._contents:
                evaluations[evaluation] = None
            if len(sessions) >= batches.SMALL_SIZE:
                break
        if sessions:
            self._sessions |= self._store.find_sessions(sessions)
            _drop_oldest(self._sessions, batches.SMALL_SIZE + len(sessions))
        if evaluations:
            self.add(self._store.load_contents("evaluation", evaluations))

    def load_uncached(
        self, subjects: Iterable[Subject], evaluations: Iterable[str | None]
    ) -> tuple[dict[str, Session], dict[str, Json]]:
        """Return the sessions of subjects and the contents of evaluation versions, by id.

        Nothing in memory is read or changed, so that it may be called from another thread.
        Raises `StoreError` when a session is missing.
        """
        ids = {id for subject in subjects for id in subject}
        versions = [id for id in evaluations if id is not None]
        return self._store.load_sessions(ids), self._store.load_contents("evaluation", versions)

    def sessions(self, ids: Sequence[str]) -> tuple[Session, ...]:
        """Return stored sessions; raises `StoreError` when one is missing."""
        missing = [id for id in ids if id not in self._sessions]
        loaded = self._store.load_sessions(missing) if missing else {}
        return tuple([self._sessions.get(id) or loaded[id] for id in ids])

    def content(self, kind: str, id: str) -> Json:
        """Return the content of a version; raises `StoreError` when it is missing."""
        if id in self._shared:
            return self._shared[id]
        if id in self._contents:
            return self._contents[id]
        content = self._store.load_any(kind, id).content
        if kind in _SHARED_KINDS:
            self._shared[id] = content
        return content

    def test(self, id: str) -> TestVersion:
        """Return a test version."""
        return deserialize.restore_test(self.content("test", id))

    def prompt(self, id: str) -> PromptVersion:
        """Return a prompt version."""
        content = self.content("prompt", id)
        return PromptVersion(
            deserialize.restore_messages(content["messages"]), tuple(content.get("specialTags", ()))
        )

    def tool(self, id: str) -> ToolVersion:
        """Return a tool version."""
        content = self.content("tool", id)
        return ToolVersion(
            content["name"], content.get("description", ""), content.get("parameters", {})
        )

    def schema(self, id: str) -> Json:
        """Return a schema version."""
        return self.content("schema", id).get("schema", {})

    def file(self, id: str) -> FileVersion:
        """Return a referenced file, which is not kept in memory."""
        return self._store.load_files([id])[id]


def _drop_oldest(kept: dict[str, Any], most: int) -> None:
    """Drop the oldest entries until there are at most `most`."""
    for id in list(islice(kept, max(len(kept) - most, 0))):
        del kept[id]

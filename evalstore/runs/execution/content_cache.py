"""Caches stored contents: the most recent ones, and the versions that many questions use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

from evalstore.core import batches, deserialize
from evalstore.core.results import Session
from evalstore.core.values import FileVersion, Json, PromptVersion, TestVersion, ToolVersion
from evalstore.planning.cells import Subject
from evalstore.store import Store

_SHARED_KINDS = frozenset({"prompt", "tool", "schema"})
"""Kinds of content that many questions use: they stay in memory."""


class ContentCache:
    """Reads contents from the store, and keeps a limited number of them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._shared: dict[str, Json] = {}
        self._contents: dict[str, Json] = {}

    def add(self, contents: Mapping[str, Json]) -> None:
        """Keep contents, by id, that will be needed soon; only the last thousands are kept."""
        most = batches.SIZE + len(contents)
        self._contents |= contents
        for id in list(islice(self._contents, max(len(self._contents) - most, 0))):
            del self._contents[id]

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

"""Stores and loads versions and the files that they refer to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from evalstore.core import hashing
from evalstore.core.canonical_json import canonical_json
from evalstore.core.values import FileVersion, Json
from evalstore.store.contents import as_blob, decode_content, decode_row, missing
from evalstore.store.database import ensure, select_each
from evalstore.store.driver import Connection
from evalstore.store.ids import as_bytes, as_digits
from evalstore.store.schema.table_columns import FILES, VERSIONS, TableColumns
from evalstore.store.trees.tree_nodes import NodeQueries


class VersionQueries(NodeQueries):
    """The queries for versions."""

    def ensure_versions(
        self,
        contents: Mapping[str, tuple[str, str]],
        blobs: Mapping[str, FileVersion] | None = None,
    ) -> None:
        """Store versions that are missing; contents are by id: kind and canonical JSON."""
        by_table: dict[TableColumns, dict[str, dict[str, Any]]] = {}
        for id, (kind, content) in contents.items():
            by_table.setdefault(VERSIONS[kind], {})[id] = {"id": id, "content": content}
        for id, file in (blobs or {}).items():
            content = canonical_json(hashing.describe_file(file))
            by_table.setdefault(FILES, {})[id] = {"id": id, "content": content, "data": file.data}
        if not by_table:
            return

        def write(connection: Connection) -> None:
            for table, rows in by_table.items():
                ensure(connection, table, rows)

        self.write(write)

    def load_contents(self, kind: str, ids: Iterable[str]) -> dict[str, Json]:
        """Return the contents of those of these versions that the store has."""
        return dict(self._decode(VERSIONS[kind], ids, kind))

    def load_lengths(self, kind: str, ids: Iterable[str]) -> dict[str, int]:
        """Return the lengths, in characters, of those of these contents that the store has."""
        statement = f"SELECT id, length(content) FROM {VERSIONS[kind].name} WHERE id IN"
        with self._reading() as connection:
            return {as_digits(id): size for id, size in select_each(connection, statement, ids)}

    def load_files(self, ids: Iterable[str]) -> dict[str, FileVersion]:
        """Return referenced files by id; raises `StoreError` when one is missing."""
        unique_ids = list(dict.fromkeys(ids))
        query = "SELECT content, data FROM files WHERE id = ?"
        files: dict[str, FileVersion] = {}
        with self._reading() as connection:
            for id in unique_ids:
                row = connection.execute(query, (as_bytes(id),)).fetchone()
                if row is None:
                    raise missing("file", id)
                content = decode_content("files", id, row[0])
                files[id] = FileVersion(content["mediaType"], as_blob(row[1], "files", id))
        return files

    def load_all(self, kind: str) -> dict[str, Json]:
        """Return all versions of a kind by id; only for evaluators and models, which are few."""
        with self._reading() as connection:
            table = VERSIONS[kind].name
            rows = connection.execute(f"SELECT id, content FROM {table}")
            return dict(decode_row(table, *row) for row in rows)

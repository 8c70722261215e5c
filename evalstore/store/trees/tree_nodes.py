"""Queries for contents by id, and for the nodes of snapshots and result trees."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from evalstore.core import hashing
from evalstore.core.batches import in_batches
from evalstore.core.values import CaseFile, Json
from evalstore.store.contents import decode_content, require
from evalstore.store.database import Database, select_each
from evalstore.store.ids import as_digits
from evalstore.store.schema.table_definitions import NODES, TableColumns
from evalstore.store.trees.case_chunks import OF_PARTS, has_parts
from evalstore.store.trees.case_files import (
    ResultPart,
    iterate_parts,
    iterate_result_parts,
    restore_case_files,
)
from evalstore.store.trees.tree_sizes import refuse_repeated

_LEVELS = 2
"""The most levels of parts in a tree that may be read without looking at all of them before."""


class NodeQueries(Database):
    """The queries for trees."""

    def load_case_files(self, ids: Iterable[str]) -> dict[str, CaseFile]:
        """Return leaves of snapshots by id; raises `StoreError` when one is missing."""
        unique_ids = list(dict.fromkeys(ids))
        return require(self.find_case_files(unique_ids), unique_ids, "node")

    def find_case_files(self, ids: Iterable[str]) -> dict[str, CaseFile]:
        """Return leaves of snapshots by id; those the store does not have are left out."""
        contents = self._bounded(dict(self._decode(NODES, ids, "cases")), "cases")
        return restore_case_files(contents, self.load_cases)

    def load_cases(self, ids: Iterable[str]) -> dict[str, Json]:
        """Return nodes of cases by id, as JSON; raises `StoreError` when one is missing."""
        return self._bounded(self._load_nodes(ids, "cases"), "cases")

    def iterate_results(
        self, ids: Sequence[str], without: Sequence[Collection[str]] = ()
    ) -> Iterator[list[ResultPart]]:
        """Yield the nodes with the results of files in batches; `ids` are those of their roots.

        `without` has the ids of the nodes below each root that are left out. Raises `StoreError`
        when another one is missing.
        """
        leaves = self.load_leaves(ids)
        roots = (leaves[id] for id in ids)
        yield from iterate_result_parts(roots, self.load_cases, self.load_leaves, without)

    def iterate_cases_of(self, content: Json) -> Iterator[list[Json]]:
        """Yield the cases of a node that has parts, as they are stored, in batches."""
        parts = iterate_parts("", content, self.load_cases)
        cases = (case for part in parts for case in part["cases"])
        yield from in_batches(cases)

    def load_whole(self, content: Json, *, with_cases: bool = True) -> Json:
        """Return the content of a node of cases or results; the parts of a tree are joined.

        Cases are left out, if they have parts, without `with_cases`.
        """
        if content["kind"] not in ("cases", "results") or not has_parts(content):
            return content
        whole = {name: value for name, value in content.items() if name not in OF_PARTS}
        if content["kind"] == "cases":
            batches = self.iterate_cases_of(content) if with_cases else ()
            cases = [case for batch in batches for case in batch]
            return {**whole, "cases": cases, "scheme": hashing.SCHEME}
        cells = [
            {**cell, "case": cell["case"] + part.first}
            for batch in iterate_result_parts([content], self.load_cases, self.load_leaves)
            for part in batch
            for cell in part.content["cells"]
        ]
        return {**whole, "cells": cells, "scheme": hashing.SCHEME}

    def load_nodes(self, ids: Iterable[str]) -> dict[str, Json]:
        """Return inner nodes of trees by id; raises `StoreError` when one is missing."""
        return self._load_nodes(ids, "tree")

    def load_leaves(self, ids: Iterable[str]) -> dict[str, Json]:
        """Return nodes of results by id; raises `StoreError` when one is missing."""
        return self._bounded(self._load_nodes(ids, "results"), "results")

    def _load_nodes(self, ids: Iterable[str], kind: str) -> dict[str, Json]:
        unique_ids = list(dict.fromkeys(ids))
        return require(dict(self._decode(NODES, unique_ids, kind)), unique_ids, "node")

    def _bounded(self, nodes: dict[str, Json], kind: str) -> dict[str, Json]:
        """Return the same nodes; raises `ExcessiveError` if few nodes make them a large tree."""
        for id, content in nodes.items():
            if content.get("level", 0) > _LEVELS:
                refuse_repeated(id, content, partial(self._load_nodes, kind=kind), _LEVELS)
        return nodes

    def _decode(
        self, table: TableColumns, ids: Iterable[str], kind: str | None = None
    ) -> Iterator[tuple[str, Json]]:
        name = table.name
        for bytes_, content in self._find(table, ids):
            id = as_digits(bytes_)
            yield id, decode_content(name, id, content, kind)

    def _find(self, table: TableColumns, ids: Iterable[str]) -> Iterator[tuple[Any, ...]]:
        statement = f"SELECT id, content FROM {table.name} WHERE id IN"
        with self._reading() as connection:
            yield from select_each(connection, statement, ids)

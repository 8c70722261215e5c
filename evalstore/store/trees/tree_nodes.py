"""Queries for contents by id, and for the nodes of snapshots and result trees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from evalstore.core.batches import in_batches, in_small_batches
from evalstore.core.errors import ExcessiveError, StoreError, StoreUnreachableError
from evalstore.core.values import CaseFile, Json
from evalstore.store.contents import damaged, decode_content, excessive, require
from evalstore.store.database import Database
from evalstore.store.ids import as_digits
from evalstore.store.schema.table_definitions import NODES, TableColumns
from evalstore.store.trees.case_chunks import MOST_CASES, Load, has_parts
from evalstore.store.trees.case_files import (
    iterate_parts,
    restore_case_files,
)
from evalstore.store.trees.path_trees import read_tree

if TYPE_CHECKING:
    from evalstore.core.runs import Run
    from evalstore.store import Store


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

    def iterate_cases_of(self, content: Json) -> Iterator[list[Json]]:
        """Yield the cases of a node that has parts, as they are stored, in batches."""
        parts = iterate_parts("", content, self.load_cases)
        cases = (case for part in parts for case in part["cases"])
        yield from in_batches(cases)

    def load_nodes(self, ids: Iterable[str]) -> dict[str, Json]:
        """Return inner nodes of trees by id; raises `StoreError` when one is missing."""
        return self._load_nodes(ids, "tree")

    def load_leaves(self, ids: Iterable[str]) -> dict[str, Json]:
        """Return nodes of results by id; raises `StoreError` when one is missing."""
        return self._bounded(self._load_nodes(ids, "results"), "results")

    def list_leaves(
        self,
        places: Iterable[tuple[str, str]],
        contents: Mapping[str, Json],
        without: Mapping[str, Collection[str]] = MappingProxyType({}),
    ) -> list[tuple[str, str]]:
        """Return the nodes with results in and below nodes, by what these say of their parts.

        Each has the path of its file; `without` has the nodes that are left out, by path.
        """
        listed, above = [*places], 17
        while contents:
            level, id = max((content.get("level", 0), id) for id, content in contents.items())
            if level >= above:
                raise damaged("nodes", id, "its level does not match its parent")
            above = level
            below, deeper = list[tuple[str, str]](), list[str]()
            for path, node in listed:
                if node not in contents or not has_parts(content := contents[node]):
                    below.append((path, node))
                    continue
                left_out = without.get(path, ())
                parts = [part for part in content["parts"] if part and part not in left_out]
                below += ((path, part) for part in parts)
                deeper += parts if content["level"] > 1 else ()
            listed, contents = below, self.load_leaves(deeper)
        return listed

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
        statement = f"SELECT id, content FROM {table.name} WHERE id IN"
        for bytes_, content in self._select_each(statement, ids):
            id = as_digits(bytes_)
            yield id, decode_content(table.name, id, content, kind)


T = TypeVar("T")


class TreeSizes:
    """Measures runs; each tree of a file is read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._cases: dict[str, int] = {}
        """How many cases files have, by their nodes."""
        self._results: dict[str, str] = {}
        """The nodes of the files of results, by the nodes of these."""

    def require_bounded(self, run: Run) -> None:
        """Raise `ExcessiveError` for a run whose trees describe too much to be read.

        Raises `StoreError` for a tree that is damaged.
        """
        store = self._store
        nodes = Counter(read_tree(run.snapshot, store.load_nodes).values())
        results = Counter(read_tree(run.results, store.load_nodes).values())
        _read(results, store.load_leaves, self._results, lambda content: content["cases"])
        judged = Counter(self._results[id] for id in results.elements())
        _read([*nodes, *judged], store.load_cases, self._cases, count_cases)
        most = min(MOST_CASES, run.cases.total if run.cases else MOST_CASES)
        for counts in (nodes, judged):
            if sum(count * self._cases[id] for id, count in counts.items()) > most:
                raise excessive("runs", run.id, f"its files have more than {most:,} cases")


def _read(ids: Iterable[str], load: Load, known: dict[str, T], read: Callable[[Json], T]) -> None:
    """Read something of the roots of trees that are not known, and each of their nodes once."""
    for some in in_small_batches(id for id in dict.fromkeys(ids) if id not in known):
        for id, content in load(some).items():
            refuse_repeated(id, content, load)
            known[id] = read(content)


def count_cases(content: Json) -> int:
    """Return how many cases are in a node of cases, by what it says of its parts."""
    return sum(content["counts"]) if has_parts(content) else len(content["cases"])


def refuse_repeated(tree: str, root: Json, load: Load, least: int = 1) -> None:
    """Raise `ExcessiveError` when a node is in a tree twice; those below `least` are not read."""
    level = [root]
    while parts := [part for node in level for part in node.get("parts", ()) if part]:
        if len(set(parts)) < len(parts):
            raise excessive("nodes", tree, "a part is in its tree twice")
        inner = [node for node in level if node.get("level", 0) > least]
        below = (part for node in inner for part in node["parts"] if part)
        level = [node for some in in_small_batches(below) for node in load(some).values()]


def find_excessive(store: Store, runs: Iterable[Run]) -> Iterator[tuple[str, str]]:
    """Yield the ids of those of these runs that describe too much to be read, each with why."""
    sizes = TreeSizes(store)
    for run in runs:
        try:
            sizes.require_bounded(run)
        except ExcessiveError as error:
            problem = str(error).removeprefix("the store is damaged: ")
            yield run.id, f"it describes too much to be read: {problem}"
        except StoreUnreachableError:
            raise
        except StoreError:  # it is damaged in another way, which its readers see at once
            continue

"""Writes and reads the results of runs: the cells of result trees, and the digests of test files.

The cells of a run are read one by one, and equal texts and tuples are shared, to save memory.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

from evalstore.core import hashing
from evalstore.core.batches import in_small_batches
from evalstore.core.deserialize import MODELS, Shared, share_tuples
from evalstore.core.runs import Run, RunSources, describe_sources, restore_sources
from evalstore.core.values import VERDICTS, Case, Json, Result, Verdict
from evalstore.store import Store
from evalstore.store.contents import as_digits, damaged, split_ids
from evalstore.store.rows.row_queries import Among, ResultLeaf
from evalstore.store.rows.row_tables import VERDICT_OF
from evalstore.store.trees.case_chunks import OF_PARTS, has_parts
from evalstore.store.trees.tree_nodes import find_entry, read_tree

_VERDICTS = {str(word): word for word in VERDICTS}


# --- one cell


def describe_cell(
    case: int,
    prompt_number: int,
    model: str,
    answer_count: int,
    verdict: Verdict | None,
    score: float | None,
    sessions: Iterable[str],
    evaluations: Iterable[str],
) -> Json:
    """Return the JSON of a cell in a result tree; `case` is the number of its case in the file."""
    described: dict[str, Json] = {"case": case, "model": model}
    if prompt_number:
        described["prompt"] = prompt_number
    if answer_count > 1:
        described["wanted"] = answer_count
    if verdict is not None:
        described["verdict"] = verdict
    if score is not None:
        described["score"] = score
    if answers := list(sessions):
        described["sessions"] = answers
    if judgements := list(evaluations):
        described["evaluations"] = judgements
    return described


def restore_cell(path: str, case: Case, cell: Json) -> Result:
    """Return the result of a stored cell and its case."""
    prompt = cell.get("prompt", 0)
    return Result(
        file=path,
        row=case.row,
        key=case.key,
        prompt_number=prompt,
        prompt=case.prompts[prompt],
        model=sys.intern(cell["model"]),
        test=case.tests[0],
        conversations=conversations_of(case.tests),
        evaluation=case.evaluation,
        verdict=_VERDICTS.get(cell.get("verdict")),
        score=cell.get("score"),
        sessions=tuple(cell.get("sessions", ())),
        evaluations=tuple(cell.get("evaluations", ())),
        required_answers=cell.get("wanted", 1),
    )


# --- cell by cell


class TaggedResult(NamedTuple):
    """A result with the tags of its case."""

    number: int
    """The number of its case in the file."""
    result: Result
    tags: tuple[str, ...]
    judged_by: Collection[str] = ()
    temperature: float | None = None
    seed: int | None = None
    has_several_prompts: bool = False
    """Whether its case has several system prompts."""


def require_results(store: Store, root: str) -> Mapping[str, str]:
    """Return the results of each file of a tree of results.

    Raises `StoreError` when a node is missing, which SQL would leave out, and when few nodes make
    a large tree.
    """
    entries = read_tree(root, store.load_nodes)
    levels = store.find_levels(entries.values())
    others = {node for node in entries.values() if levels.get(node) != 0}
    contents = store.load_leaves(others)
    store.load_cases({content["cases"] for content in contents.values()})
    places = [place for place in entries.items() if place[1] in others]
    leaves = [node for _, node in store.list_leaves(places, contents)]
    if store.count_leaves(root) != len(entries) - len(places) + len(leaves):
        for some in in_small_batches({*leaves, *entries.values()}):
            store.load_cases(content["cases"] for content in store.load_leaves(some).values())
        raise damaged("nodes", root, "not all nodes below it have rows")
    return entries


class FoundRows:
    """The results of a tree that are wanted, in the order of their files and rows."""

    def __init__(
        self,
        store: Store,
        tree: str,
        wanted: Sequence[Among] = (),
        covers: Callable[[str], bool] = lambda _file: True,
    ) -> None:
        """`covers` returns whether a file is wanted."""
        self._store, self._wanted = store, wanted
        self._leaves = [each for each in store.find_tree_leaves(tree) if covers(each.file)]
        self._read_kind = cache(partial(_read_kind, share_tuples()))

    def batches(self) -> Iterator[list[TaggedResult]]:
        """Yield the results in batches; few of them are in memory."""
        return self._read(self._leaves)

    def page(self, offset: int, limit: int) -> tuple[list[TaggedResult], int]:
        """Return so many results after the first ones, and how many there are in all."""
        total = start = 0
        listed: list[ResultLeaf] = []
        for some in in_small_batches(self._leaves):
            counts = self._store.count_cells(some, self._wanted)
            for each in some:
                count = counts[each.id]
                if count and total < offset + limit and total + count > offset:
                    start = start if listed else total
                    listed.append(each)
                total += count
        found = [each for batch in self._read(listed) for each in batch]
        return found[offset - start :][:limit], total

    def _read(self, leaves: Iterable[ResultLeaf]) -> Iterator[list[TaggedResult]]:
        for some in in_small_batches(leaves):
            cells = self._store.find_cells(some, self._wanted)
            yield [self._restore(each, cell) for each in some for cell in cells[each.id]]

    def _restore(self, place: ResultLeaf, cell: tuple[Any, ...]) -> TaggedResult:
        number, prompt_number, model, verdict, score, wanted, *ids, kind, found, prompt, prompts = (
            cell
        )
        if found is None:
            raise damaged("nodes", place.id, "a result in it belongs to no case")
        sessions, judgements, key, row, joined, evaluation = ids
        tests = split_ids(joined)
        result = Result(
            file=place.file,
            row=row or "",
            key=key,
            prompt_number=prompt_number,
            prompt=prompt and as_digits(prompt),
            model=sys.intern(model),
            test=tests[0],
            conversations=conversations_of(tests),
            evaluation=evaluation and as_digits(evaluation),
            verdict=VERDICT_OF.get(verdict),
            score=score,
            sessions=split_ids(sessions),
            evaluations=split_ids(judgements),
            required_answers=wanted,
        )
        of_kind = (*self._read_kind(kind), prompts > 1)
        return TaggedResult(place.first + number, result, *of_kind)


def _read_kind(shared: Shared, content: str) -> tuple[Any, ...]:
    """Return the tags of cases, who judges them, and their temperature and seed."""
    kind = json.loads(content)
    tags, judged_by = shared(kind.get("tags", ())), shared(kind.get("judgedBy", MODELS))
    return tags, judged_by, kind.get("temperature"), kind.get("seed")


def read_results(store: Store, run: Run, only: str | None = None) -> list[Result]:
    """Return the cells of a run; with `only`, of that file."""
    batches = iterate_cases(store, run, only)
    return [result for batch in batches for result, _ in batch]


def iterate_results(store: Store, run: Run, only: str | None = None) -> Iterator[list[Result]]:
    """Yield the cells of a run in batches, by path; with `only`, of that file."""
    for batch in iterate_cases(store, run, only):
        yield [result for result, _ in batch]


def iterate_cases(
    store: Store, run: Run, only: str | None = None
) -> Iterator[list[tuple[Result, Case]]]:
    """Yield the cells of a run with their cases in batches, by path; with `only`, of that file."""
    if only is None:
        entries: Mapping[str, str] = read_tree(run.results, store.load_nodes)
    else:
        leaf = find_entry([run.results], only, store.load_nodes).get(run.results)
        entries = {only: leaf} if leaf else {}
    yield from iterate_entries(store, entries)


Cells = list[tuple[Result, Case]]


def iterate_entries(
    store: Store, entries: Mapping[str, str], without: Mapping[str, Collection[str]] | None = None
) -> Iterator[Cells]:
    """Yield the results of some files in batches, by path, each with its case.

    `entries` are the entries of a result tree, and `without` the nodes of files that are left out.
    """
    left_out = without or {}
    paths = (path for path in sorted(entries) if entries[path] not in left_out.get(path, ()))
    for some in in_small_batches(paths):
        roots = store.load_leaves(entries[path] for path in some)
        places = store.list_leaves([(path, entries[path]) for path in some], roots, left_out)
        for batch in in_small_batches(places):
            yield [cell for cells in read_cells(store, batch, roots) for cell in cells]


def read_cells(
    store: Store, places: Sequence[tuple[str, str]], known: Mapping[str, Json] | None = None
) -> list[Cells]:
    """Return the results in a few nodes, each given with the path of its file.

    `known` are contents of nodes. Raises `StoreError` for a node that is missing.
    """
    contents = dict(known or {})
    contents |= store.load_leaves(node for _, node in places if node not in contents)
    for _, node in places:
        if has_parts(contents[node]):
            raise damaged("nodes", node, "its level does not match its parent")
    files = store.load_case_files({contents[node]["cases"] for _, node in places})
    found: list[Cells] = []
    for path, node in places:
        cases = files[contents[node]["cases"]].cases
        found.append([])
        for cell in contents[node]["cells"]:
            case = cases[cell["case"]] if cell["case"] < len(cases) else None
            if case is None or cell.get("prompt", 0) >= len(case.prompts):
                raise damaged("nodes", "", "a result in it belongs to no case")
            found[-1].append((restore_cell(path, case, cell), case))
    return found


def conversations_of(tests: Sequence[str]) -> tuple[str, ...]:
    """Return the test versions of a case as its result stores them; empty if there is only one."""
    return tuple(tests) if len(tests) > 1 else ()


_ID = re.compile("[0-9a-f]{32}")


class SessionResults:
    """Finds the results with a session in result trees."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._trees: dict[str, list[ResultLeaf]] = {}
        """The nodes of the result trees that were searched."""

    def find(self, root: str, session: str) -> list[Result]:
        """Return the results in a result tree that have the session, in their order."""
        if not _ID.fullmatch(session):
            return []
        if root not in self._trees:
            self._store.load_nodes([root])  # raises StoreError where it is missing
            self._trees[root] = self._store.find_tree_leaves(root)
        asked = self._store.find_asked_leaves(session)
        places = [(leaf.file, leaf.id) for leaf in self._trees[root] if leaf.cases in asked]
        found = (
            cells for some in in_small_batches(places) for cells in read_cells(self._store, some)
        )
        return [result for cells in found for result, _ in cells if session in result.sessions]


def load_whole(store: Store, id: str, content: Json) -> Json:
    """Return the content of a node of cases or results; the parts of a tree of results are joined.

    The cases of parts are left out.
    """
    if content["kind"] not in ("cases", "results") or not has_parts(content):
        return content
    whole = {name: value for name, value in content.items() if name not in OF_PARTS}
    if content["kind"] == "cases":
        return {**whole, "cases": [], "scheme": hashing.SCHEME}
    cells = []
    for some in in_small_batches(store.find_result_leaves(id)):
        nodes = store.load_leaves(place.id for place in some)
        cells += [
            {**cell, "case": cell["case"] + place.first}
            for place in some
            for cell in nodes[place.id]["cells"]
        ]
    return {**whole, "cells": cells, "scheme": hashing.SCHEME}


_MOST_KEPT = 10_000
"""The results that stay in memory, besides those that were read last."""


class RowCells(NamedTuple):
    """The results of some rows of a file, and of the others that are in the same nodes."""

    cells: Cells
    """All results in the nodes that have them, each with its case, in their order."""
    total: int
    """How many results the file has."""


class RowResults:
    """Finds results of test files by the names of their cases: their keys and their labels."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._leaves: dict[str, tuple[list[ResultLeaf], int] | None] = {}
        """The leaves that were looked into: their nodes, in order, and how many results they have.

        None for one without parts.
        """
        self._decoded: dict[tuple[str, str], Cells] = {}
        """The results of nodes, by path and node."""

    def find(
        self, entries: Mapping[str, str], names: Mapping[str, Collection[str]]
    ) -> dict[str, RowCells]:
        """Return the results of cases with some names, with their neighbours, by test file.

        `entries` are entries of a result tree, and `names` are those of each of these files. All
        results of a file without parts are read, and such files are read together.
        """
        self._look_into(entries)
        nodes = {}
        for path, leaf in entries.items():
            nodes[path] = [leaf]
            if parts := self._leaves[leaf]:
                named = self._store.find_named_leaves(names[path])
                nodes[path] = [node.id for node in parts[0] if node.cases in named]
        decoded = self._decode([(path, node) for path in nodes for node in nodes[path]])
        found: dict[str, RowCells] = {}
        for path, leaf in entries.items():
            cells = [cell for node in nodes[path] for cell in decoded[path, node]]
            parts = self._leaves[leaf]
            found[path] = RowCells(cells, parts[1] if parts else len(cells))
        return found

    def _look_into(self, entries: Mapping[str, str]) -> None:
        """Find out where the rows are in leaves that are met for the first time."""
        fresh = dict.fromkeys(leaf for leaf in entries.values() if leaf not in self._leaves)
        self._leaves.update(fresh)
        levels = self._store.find_levels(fresh)
        for leaf in [leaf for leaf in fresh if levels.get(leaf) != 0]:
            nodes = self._store.find_result_leaves(leaf)
            counts = self._store.count_by_candidate(node.id for node in nodes)
            self._leaves[leaf] = nodes, sum(each.total() for each in counts.values())

    def _decode(self, places: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], Cells]:
        """Return the results in these nodes, and others, each given with the path of its file."""
        if sum(map(len, self._decoded.values())) > _MOST_KEPT:
            kept = {place: self._decoded[place] for place in places if place in self._decoded}
            self._decoded = kept
        fresh = [place for place in places if place not in self._decoded]
        for some in in_small_batches(fresh):
            self._decoded |= zip(some, read_cells(self._store, some), strict=True)
        return self._decoded


def results_of(
    store: Store, path: str, rows: Mapping[str, Collection[str]]
) -> dict[str, list[Result]]:
    """Return the cells of rows of a file by node of its results; `rows` are the labels by node."""
    found = RowResults(store).find({node: node for node in rows}, rows)
    return {
        node: [
            result._replace(file=path)
            for result, _ in found[node].cells
            if result.row in rows[node]
        ]
        for node in rows
    }


_KEPT = 8
"""The most digests that are kept in memory; one may have 1,000."""


def ensure_sources(store: Store, sources: RunSources) -> str:
    """Store digests; returns their id."""
    id, content = hashing.identify(describe_sources(sources))
    store.ensure_versions({id: ("sources", content)})
    return id


class SourcesReader:
    """Reads the digests of runs; those read last are kept."""

    def __init__(self, store: Store) -> None:
        self._load = lru_cache(_KEPT)(partial(_load, store))

    def find(self, run: Run) -> RunSources | None:
        """Return the digests of a run; None where it has none or the store lacks them."""
        return self._load(run.sources) if run.sources else None


def _load(store: Store, id: str) -> RunSources | None:
    content = store.load_contents("sources", [id]).get(id)
    return restore_sources(content) if content else None

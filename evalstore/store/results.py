"""Writes and reads the cells of result trees.

The cells of a run are read one by one, and equal texts and tuples are shared, to save memory.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

from evalstore.core.batches import in_small_batches
from evalstore.core.deserialize import MODELS, Shared, share_tuples
from evalstore.core.results import Result
from evalstore.core.runs import Run
from evalstore.core.values import VERDICTS, Case, Json, Verdict
from evalstore.store import Store
from evalstore.store.contents import damaged
from evalstore.store.ids import as_digits, split_ids
from evalstore.store.rows.row_queries import WORDS, Among, FileLeaf, ResultLeaf
from evalstore.store.trees.case_files import long_parts_of
from evalstore.store.trees.path_trees import find_entry, read_tree

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
        verdict=verdict_of(cell),
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
    divided = store.load_leaves(node for node in entries.values() if levels.get(node) != 0)
    store.load_cases({content["cases"] for content in divided.values()})
    for node in divided.keys() - levels.keys():
        raise damaged("nodes", node, "it has no rows")
    for results, cases in store.find_incomplete(root):
        store.load_leaves([results])
        store.load_cases([cases])
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
        self._leaves = [each for each in store.find_file_leaves(tree) if covers(each.file)]
        self._read_kind = cache(partial(_read_kind, share_tuples()))

    def batches(self) -> Iterator[list[TaggedResult]]:
        """Yield the results in batches; few of them are in memory."""
        return self._read(self._leaves)

    def page(self, offset: int, limit: int) -> tuple[list[TaggedResult], int]:
        """Return so many results after the first ones, and how many there are in all."""
        total = start = 0
        listed: list[FileLeaf] = []
        for some in in_small_batches(self._leaves):
            counts = self._store.count_cells([each.leaf for each in some], self._wanted)
            for each in some:
                count = counts[each.leaf.id]
                if count and total < offset + limit and total + count > offset:
                    start = start if listed else total
                    listed.append(each)
                total += count
        found = [each for batch in self._read(listed) for each in batch]
        return found[offset - start :][:limit], total

    def _read(self, leaves: Iterable[FileLeaf]) -> Iterator[list[TaggedResult]]:
        for some in in_small_batches(leaves):
            cells = self._store.find_cells([each.leaf for each in some], self._wanted)
            yield [self._restore(each, cell) for each in some for cell in cells[each.leaf.id]]

    def _restore(self, place: FileLeaf, cell: tuple[Any, ...]) -> TaggedResult:
        number, prompt_number, model, verdict, score, wanted, *ids, kind, found, prompt, prompts = (
            cell
        )
        if found is None:
            raise damaged("nodes", place.leaf.id, "a result in it belongs to no case")
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
            verdict=WORDS.get(verdict),
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


def iterate_entries(
    store: Store, entries: Mapping[str, str], without: Mapping[str, Collection[str]] | None = None
) -> Iterator[list[tuple[Result, Case]]]:
    """Yield the results of some files in batches, by path, each with its case.

    `entries` are the entries of a result tree, and `without` the nodes of files that are left out.
    """
    for batch in _iterate_cells(store, entries, without):
        yield [(restore_cell(path, case, cell), case) for path, case, cell in batch]


def _iterate_cells(
    store: Store, entries: Mapping[str, str], without: Mapping[str, Collection[str]] | None = None
) -> Iterator[list[tuple[str, Case, Json]]]:
    """Yield the cells of some files in batches, by path, each with its case."""
    left_out = without or {}
    paths = (path for path in sorted(entries) if entries[path] not in left_out.get(path, ()))
    for batch in in_small_batches(paths):
        others = [left_out.get(path, ()) for path in batch]
        for parts in store.iterate_results([entries[path] for path in batch], others):
            files = store.load_case_files({part.content["cases"] for part in parts})
            yield [
                (batch[part.number], case_of(cell, cases), cell)
                for part in parts
                for cases in (files[part.content["cases"]].cases,)
                for cell in part.content["cells"]
            ]


def verdict_of(cell: Json) -> Verdict | None:
    """Return the verdict of a stored cell."""
    return _VERDICTS.get(cell.get("verdict"))


def place_of(cell: Json) -> tuple[int, int, str]:
    """Return the numbers of the case and the system prompt of a stored cell, and its candidate."""
    return cell["case"], cell.get("prompt", 0), cell["model"]


def lacks_answers(cell: Json) -> bool:
    """Return whether a stored cell has fewer answers than it needs."""
    return len(cell.get("sessions", ())) < int(cell.get("wanted", 1))


def results_of(
    store: Store,
    path: str,
    rows: Mapping[str, Collection[str]],
    long_parts: Collection[str] = (),
) -> dict[str, list[Result]]:
    """Return the cells of rows of a file by node of its results; `rows` are the labels by node.

    Of long files, only the cells of cases in `long_parts` are read.
    """
    results: dict[str, list[Result]] = {node: [] for node in rows}
    without: dict[str, set[str]] = {}
    for node, root in store.load_leaves(rows).items() if long_parts else ():
        parts = store.load_leaves(long_parts_of(root, store.load_leaves))
        without[node] = {id for id, part in parts.items() if part["cases"] not in long_parts}
    for batch in _iterate_cells(store, {node: node for node in rows}, without):
        for node, case, cell in batch:
            if case.row in rows[node]:
                results[node].append(restore_cell(path, case, cell))
    return results


def case_of(cell: Json, cases: Sequence[Case]) -> Case:
    """Return the case of a cell of a result tree; raises `StoreError` when there is none."""
    number = cell["case"]
    if number >= len(cases) or cell.get("prompt", 0) >= len(cases[number].prompts):
        raise damaged("nodes", "", "a result in it belongs to no case")
    case: Case = cases[number]
    return case


def conversations_of(tests: Sequence[str]) -> tuple[str, ...]:
    """Return the test versions of a case as its result stores them; empty if there is only one."""
    return tuple(tests) if len(tests) > 1 else ()


_ID = re.compile("[0-9a-f]{32}")


class SessionResults:
    """Finds the results with a session in result trees."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._trees: dict[str, list[tuple[str, ResultLeaf]]] = {}
        """The nodes of the result trees that were searched."""

    def find(self, root: str, session: str) -> list[Result]:
        """Return the results in a result tree that have the session, in their order."""
        if not _ID.fullmatch(session):
            return []
        if root not in self._trees:
            self._store.load_nodes([root])  # raises StoreError where it is missing
            self._trees[root] = self._store.find_tree_leaves(root)
        asked = self._store.find_asked_leaves(session)
        places = [(path, leaf.id) for path, leaf in self._trees[root] if leaf.cases in asked]
        contents = self._store.load_leaves(node for _, node in places)
        files = self._store.load_case_files({content["cases"] for content in contents.values()})
        return [
            restore_cell(path, case_of(cell, files[contents[node]["cases"]].cases), cell)
            for path, node in places
            for cell in contents[node]["cells"]
            if session in cell.get("sessions", ())
        ]

"""Writes and reads the cells of result trees.

The cells of a run are read one by one, and equal texts and tuples are shared, to save memory: in
old stores a file with a hundred thousand cases is one node of the snapshot and one of the
results.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import TYPE_CHECKING, NamedTuple

from evalstore.deserialize import Shared, restore_case, share_tuples
from evalstore.results import Result
from evalstore.store.case_files import long_parts_of
from evalstore.store.contents import damaged, iterate_members
from evalstore.store.path_trees import find_entry, read_tree
from evalstore.values import VERDICTS, Case, Json, Verdict

if TYPE_CHECKING:
    from evalstore.runs import Run
    from evalstore.store import Store
    from evalstore.store.kept_results import Cells, KeptResults
    from evalstore.values import Json

_FILES_AT_ONCE = 50


_VERDICTS = {str(word): word for word in VERDICTS}
_HAS_CELLS = re.compile(r'\{"cases":"[^"]*","cells":').match
_CASES_OF = re.compile(r'"cases":"([0-9a-f]{32})"').search


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


def iterate_leaves(store: Store, run: Run) -> Iterator[tuple[str, Iterator[TaggedResult]]]:
    """Yield the files of a run by path, each with an iterator over its cells."""
    entries = read_tree(run.results, store.load_nodes)
    shared = share_tuples()
    for path in sorted(entries):
        yield path, _read_leaf(store, path, entries[path], shared)


def _read_leaf(store: Store, path: str, id: str, shared: Shared) -> Iterator[TaggedResult]:
    text = store.load_text(id)
    if not _HAS_CELLS(text):
        yield from _read_parts(store, path, id)
        return
    named = _CASES_OF(text)
    if named is None:
        raise damaged("nodes", id, "it does not say which cases it is about")
    cases, done = _read_cases(store, named[1], shared), 0
    for cell in iterate_members("nodes", id, text, "cells"):
        number, prompt = cell["case"], cell.get("prompt", 0)
        if number < done:  # usually both are in the same order
            cases, done = _read_cases(store, named[1], shared), 0
        for index in range(done, min(number, len(cases))):
            cases[index] = None  # to free its memory
        done = number
        case = cases[number] if number < len(cases) else None
        if case is None or prompt >= len(case.prompts):
            raise damaged("nodes", id, "a result in it belongs to no case")
        yield TaggedResult(number, restore_cell(path, case, cell), case.tags, case.judged_by)


def _read_parts(store: Store, path: str, id: str) -> Iterator[TaggedResult]:
    """Yield the cells of a file whose results are in several nodes."""
    for parts in store.iterate_results([id]):
        files = store.load_case_files({part.content["cases"] for part in parts})
        for part in parts:
            cases = files[part.content["cases"]].cases
            for cell in part.content["cells"]:
                case = case_of(cell, cases)
                yield TaggedResult(
                    part.first + cell["case"],
                    restore_cell(path, case, cell),
                    case.tags,
                    case.judged_by,
                )


def _read_cases(store: Store, id: str, shared: Shared) -> list[Case | None]:
    cases: list[Case | None] = []
    tests: tuple[str, ...] = ()
    for member in store.iterate_members(id, "cases"):
        case = restore_case(member, shared)
        # Equal rows are usually neighbours.
        tests = case.tests if case.tests != tests else tests
        cases.append(case._replace(tests=tests) if case.tests is not tests else case)
    return cases


def read_results(store: Store, run: Run, only: str | None = None) -> list[Result]:
    """Return the cells of a run; with `only`, of that file."""
    batches = iterate_cases(store, run, only)
    return [result for batch in batches for result, _ in batch]


def iterate_results(store: Store, run: Run, only: str | None = None) -> Iterator[list[Result]]:
    """Yield the cells of a run in batches, by path; with `only`, of that file."""
    for batch in iterate_cases(store, run, only):
        yield [result for result, _ in batch]


def iterate_cases(
    store: Store, run: Run, only: str | None = None, without: Collection[str] = ()
) -> Iterator[list[tuple[Result, Case]]]:
    """Yield the cells of a run with their cases in batches, by path; with `only`, of that file.

    Those in nodes with an id in `without` are left out.
    """
    if only is None:
        entries: Mapping[str, str] = read_tree(run.results, store.load_nodes)
    else:
        leaf = find_entry([run.results], only, store.load_nodes).get(run.results)
        entries = {only: leaf} if leaf else {}
    yield from iterate_entries(store, entries, without)


def iterate_entries(
    store: Store, entries: Mapping[str, str], without: Collection[str] = ()
) -> Iterator[list[tuple[Result, Case]]]:
    """Yield the results of some files in batches, by path, each with its case.

    `entries` are the entries of a result tree; nodes below them with an id in `without` are left
    out.
    """
    if store.kept is None or without:
        yield from _restore_entries(store, entries, without)
    else:
        yield from _keep_entries(store, store.kept, entries)


def _restore_entries(
    store: Store, entries: Mapping[str, str], without: Collection[str] = ()
) -> Iterator[Cells]:
    for batch in _iterate_cells(store, entries, without):
        yield [(restore_cell(path, case, cell), case) for path, case, cell in batch]


def _keep_entries(store: Store, kept: KeptResults, entries: Mapping[str, str]) -> Iterator[Cells]:
    """Yield the results, those that are kept from memory, and keep the others."""
    paths = iter(sorted(entries))
    while batch := list(islice(paths, _FILES_AT_ONCE)):
        files = [(path, kept.cells(path, entries[path])) for path in batch]
        for is_known, group in groupby(files, lambda file: file[1] is not None):
            if is_known:
                yield [cell for _, cells in group for cell in cells or ()]
            else:
                yield from _keep_fresh(store, kept, {path: entries[path] for path, _ in group})


def _keep_fresh(store: Store, kept: KeptResults, entries: Mapping[str, str]) -> Iterator[Cells]:
    fresh: dict[str, Cells] = {path: [] for path in entries}
    count = 0
    for batch in _restore_entries(store, entries):
        count += len(batch)
        path = batch[0][0].file if batch else ""
        is_first = bool(batch and fresh and not fresh[path] and batch[-1][0].file == path)
        if count > kept.room or (is_first and _count_cases(store, entries[path]) > kept.room):
            fresh.clear()  # the rest would not fit, either
        for cell in batch if fresh else ():
            fresh[cell[0].file].append(cell)
        yield batch
    for path, cells in fresh.items():
        kept.add_cells(path, entries[path], cells)


def _count_cases(store: Store, leaf: str) -> int:
    """Return how many cases a file with parts has, by the node of its results; 0 for another."""
    if not store.find_divided([leaf]):
        return 0
    (content,) = store.load_leaves([leaf]).values()
    (cases,) = store.load_cases([content["cases"]]).values()
    return sum(cases.get("counts", ()))


def _iterate_cells(
    store: Store, entries: Mapping[str, str], without: Collection[str] = ()
) -> Iterator[list[tuple[str, Case, Json]]]:
    """Yield the cells of some files in batches, by path, each with its case.

    `entries` are the entries of a result tree.
    """
    paths = iter(sorted(entries))
    while batch := list(islice(paths, _FILES_AT_ONCE)):
        for parts in store.iterate_results([entries[path] for path in batch], without):
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
    without: set[str] = set()
    for root in store.load_leaves(rows).values() if long_parts else ():
        parts = store.load_leaves(long_parts_of(root, store.load_leaves))
        without |= {id for id, part in parts.items() if part["cases"] not in long_parts}
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


def read_lines(store: Store, run: Run) -> Iterator[tuple[Result, str]]:
    """Yield the cells of a run, each with its feedback: of a labelled one, only the note."""
    for batch in iterate_results(store, run):
        feedback = store.find_feedback(find_decisive(store, batch))
        for result in batch:
            yield result, join_feedback(result.evaluations, feedback)


def find_decisive(store: Store, results: Sequence[Result]) -> Iterator[str]:
    """Yield the ids of the judgements that decide these results: the labels, if there are any."""
    labels = store.find_labels_among(id for result in results for id in result.evaluations)
    for result in results:
        yield from [id for id in result.evaluations if id in labels] or result.evaluations


def conversations_of(tests: Sequence[str]) -> tuple[str, ...]:
    """Return the test versions of a case as its result stores them; empty if there is only one."""
    return tuple(tests) if len(tests) > 1 else ()


def join_feedback(votes: Iterable[str], feedback: Mapping[str, str]) -> str:
    """Return the different feedback texts of a cell, one line each."""
    texts = [feedback[id] for id in votes if feedback.get(id)]
    return "\n".join(dict.fromkeys(texts)) if len(texts) > 1 else "".join(texts)

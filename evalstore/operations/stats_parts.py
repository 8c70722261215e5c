"""Adds the results of a run to its statistics; those of the parts of long files in cached sums."""

from __future__ import annotations

from array import array
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

from evalstore.operations.part_sums import (
    CACHE,
    By,
    Key,
    PartSums,
    read_sums,
)
from evalstore.operations.part_table import PartTable, ResultPlaces
from evalstore.operations.verdict_changes import file_batches
from evalstore.store.case_files import long_parts_of
from evalstore.store.cell_columns import CellColumns, iterate_columns
from evalstore.store.path_trees import read_tree
from evalstore.store.results import iterate_entries
from evalstore.workspace.digest_set import count_distinct, digest_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence, Set

    from evalstore.operations.measured_results import ResultMeter
    from evalstore.planning.project import Project
    from evalstore.results import Result
    from evalstore.runs import Run
    from evalstore.store import Store
    from evalstore.values import Case


class SumCollector(Protocol):
    """What adds up the results of a run by several groupings."""

    project: Project
    run: Run
    meter: ResultMeter

    @property
    def needed(self) -> Set[By]:
        """Return the groupings of the sums that `add_sums` takes."""

    def add_sums(self, file: str, by: By, groups: Mapping[Key, Sequence[Any]]) -> None:
        """Add the sums of results of a file by a grouping."""

    def collect(self, batches: Iterable[list[tuple[Result, Case]]]) -> None:
        """Add the results that count."""


def find_long_parts(store: Store, results: str) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Return the nodes of the parts of long files, and the entries of the other files.

    `results` is the root of a tree of results.
    """
    long: dict[str, list[str]] = {}
    others: dict[str, str] = {}
    for batch in file_batches(read_tree(results, store.load_nodes)):
        roots = store.load_leaves(batch.values())
        for path, leaf in batch.items():
            parts = long_parts_of(roots[leaf], store.load_leaves)
            if parts:
                long[path] = parts
            else:
                others[path] = leaf
    return long, others


def collect_parts(collector: SumCollector) -> bool:
    """Add all results of the run of a collector; False if it has to read them one by one.

    It has to without long files, and when parts share answers: these count once. All results must
    count, and their costs not be converted.
    """
    run, project = collector.run, collector.project
    store, workspace = project.store, project.workspace
    long, others = find_long_parts(store, run.results)
    if not long:
        return False
    cache = read_sums(workspace.private / CACHE, workspace.boundary, run.verdict_rule)
    seen: set[int] = set()
    for batch in iterate_entries(store, others):
        collector.collect([batch])
        seen.update(digest_of(id) for result, _ in batch for id in result.sessions)
    found = [(path, node) for path, nodes in long.items() for node in nodes]
    missing: dict[str, list[By]] = {}
    for _, node in found:
        known = cache.parts.get(node)
        lacking = [by for by in collector.needed if known is None or not known.has(by)]
        if lacking:
            missing[node] = lacking
    for node, cells in iterate_columns(store, list(missing)):
        cache.put(node, _add_up_cells(collector, cells, missing[node]))
    cache.write({node for _, node in found})
    digests = [array("Q", seen), *(cache.parts[node].sessions for _, node in found)]
    if count_distinct(chain.from_iterable(digests)) != sum(map(len, digests)):
        return False
    for path, node in found:
        for by in collector.needed:
            collector.add_sums(path, by, cache.parts[node].of(by))
    return True


def _add_up_cells(collector: SumCollector, cells: CellColumns, needed: list[By]) -> PartSums:
    """Return the sums of a part from its cells as they are stored."""
    store, meter = collector.project.store, collector.meter
    places = ResultPlaces(needed)
    facts = zip(cells.models, cells.prompts, cells.tags, strict=True)
    table = PartTable(
        [places.find(model, prompt, tags) for model, (prompt, _), tags in facts],
        cells.rows,
        cells.verdicts,
        cells.sessions,
        cells.evaluations,
    )
    answers, judgements = map(chain.from_iterable, (cells.sessions, cells.evaluations))
    if max(cells.attempts, default=1) == 1:
        return table.add_up(places, *meter.find_spending(answers, judgements, store))
    table.attempts, spent = meter.measure_attempts(
        zip(cells.attempts, cells.judged_by, cells.evaluations, strict=True)
    )
    return table.add_up(places, meter.find_spending(answers, (), store)[0], spent)

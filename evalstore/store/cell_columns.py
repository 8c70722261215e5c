"""Reads the cells of a node of results in columns, for what is only added up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalstore.deserialize import share_tuples
from evalstore.store.case_chunks import has_parts
from evalstore.store.contents import damaged
from evalstore.store.results import verdict_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalstore.store import Store
    from evalstore.values import Json, Verdict


@dataclass(slots=True)
class CellColumns:
    """Cells with facts of their cases; all columns have the same order."""

    rows: list[str] = field(default_factory=list)
    """The labels of the rows."""
    tags: list[tuple[str, ...]] = field(default_factory=list)
    prompts: list[tuple[str | None, int]] = field(default_factory=list)
    """The system prompts, each with its number within the case."""
    models: list[str] = field(default_factory=list)
    verdicts: list[Verdict | None] = field(default_factory=list)
    sessions: list[Sequence[str]] = field(default_factory=list)
    evaluations: list[Sequence[str]] = field(default_factory=list)
    has_attempts: bool = False
    """Whether some case is held and judged several times."""
    is_complete: bool = True
    """Whether no answer or judgement is missing."""


def read_columns(store: Store, node: str) -> CellColumns:
    """Return the cells below a node of results; raises `StoreError` for one without a case."""
    columns = CellColumns()
    share = share_tuples()
    for parts in store.iterate_results([node]):
        nodes = store.load_cases({part.content["cases"] for part in parts})
        for part in parts:
            cells, stored = part.content["cells"], nodes[part.content["cases"]]
            cases = () if has_parts(stored) else stored["cases"]
            if any(cell["case"] >= len(cases) for cell in cells):
                raise damaged("nodes", node, "a result in it belongs to no case")
            of_each = [cases[cell["case"]] for cell in cells]
            columns.rows += [case.get("row", "") for case in of_each]
            columns.tags += [share(case["tags"]) if "tags" in case else () for case in of_each]
            columns.models += [cell["model"] for cell in cells]
            columns.verdicts += map(verdict_of, cells)
            columns.sessions += [cell.get("sessions", ()) for cell in cells]
            columns.evaluations += [cell.get("evaluations", ()) for cell in cells]
            for cell, case in zip(cells, of_each, strict=True):
                columns.prompts.append(_prompt_of(cell, case))
                if "wanted" in cell and cell["wanted"] >= 2 * max(1, len(case["tests"])):
                    columns.has_attempts = True
                if cell.get("verdict") is None and _is_missing(cell, case):
                    columns.is_complete = False
    return columns


def _prompt_of(cell: Json, case: Json) -> tuple[str | None, int]:
    """Return the system prompt of a cell, and its number."""
    number, prompts = cell.get("prompt", 0), case.get("prompts", (None,))
    if number >= len(prompts):
        raise damaged("nodes", "", "a result in it belongs to no case")
    return prompts[number], number


def _is_missing(cell: Json, case: Json) -> bool:
    """Return whether an answer or a judgement is missing in a cell without a verdict."""
    has_few = len(cell.get("sessions", ())) < cell.get("wanted", 1)
    return has_few or case.get("evaluation") is not None

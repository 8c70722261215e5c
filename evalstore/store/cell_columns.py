"""Reads the cells of nodes of results in columns, for what is only added up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalstore.deserialize import MODELS, share_tuples
from evalstore.store.case_chunks import has_parts
from evalstore.store.contents import damaged
from evalstore.store.results import lacks_answers, verdict_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalstore.deserialize import Shared
    from evalstore.store import Store
    from evalstore.values import Json, Verdict

_AT_ONCE = 256
"""Nodes of results whose contents are in memory together, without those below them."""


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
    judged_by: list[Sequence[str]] = field(default_factory=list)
    """Who judges the cases: `Case.judged_by`."""
    attempts: list[int] = field(default_factory=list)
    """How many answers to each conversation of the cases are required."""
    is_complete: bool = True
    """Whether no answer or judgement is missing."""

    def add(self, node: str, content: Json, stored: Json, share: Shared) -> None:
        """Add the cells of a node below `node`, about the stored cases of a node."""
        cells = content["cells"]
        cases = () if has_parts(stored) else stored["cases"]
        if any(cell["case"] >= len(cases) for cell in cells):
            raise damaged("nodes", node, "a result in it belongs to no case")
        of_each = [cases[cell["case"]] for cell in cells]
        self.rows += [case.get("row", "") for case in of_each]
        self.tags += [share(case["tags"]) if "tags" in case else () for case in of_each]
        self.models += [cell["model"] for cell in cells]
        self.verdicts += map(verdict_of, cells)
        self.sessions += [cell.get("sessions", ()) for cell in cells]
        self.evaluations += [cell.get("evaluations", ()) for cell in cells]
        self.judged_by += [share(case.get("judgedBy", MODELS)) for case in of_each]
        for cell, case in zip(cells, of_each, strict=True):
            self.prompts.append(_prompt_of(cell, case))
            wanted = cell.get("wanted", 1)
            self.attempts.append(max(1, wanted // max(1, len(case["tests"]))) if wanted > 1 else 1)
            if cell.get("verdict") is None and _is_missing(cell, case):
                self.is_complete = False


def iterate_columns(store: Store, nodes: Sequence[str]) -> Iterator[tuple[str, CellColumns]]:
    """Yield the cells below each of these nodes of results, in their order.

    The nodes below several of them are read together. Raises `StoreError` for a cell without a
    case.
    """
    for start in range(0, len(nodes), _AT_ONCE):
        group = nodes[start : start + _AT_ONCE]
        share = share_tuples()
        columns, number = CellColumns(), 0
        for parts in store.iterate_results(group):
            cases = store.load_cases({part.content["cases"] for part in parts})
            for part in parts:
                while number < part.number:
                    yield group[number], columns
                    columns, number = CellColumns(), number + 1
                columns.add(group[number], part.content, cases[part.content["cases"]], share)
        for node in group[number:]:
            yield node, columns
            columns = CellColumns()


def _prompt_of(cell: Json, case: Json) -> tuple[str | None, int]:
    """Return the system prompt of a cell, and its number."""
    number, prompts = cell.get("prompt", 0), case.get("prompts", (None,))
    if number >= len(prompts):
        raise damaged("nodes", "", "a result in it belongs to no case")
    return prompts[number], number


def _is_missing(cell: Json, case: Json) -> bool:
    """Return whether an answer or a judgement is missing in a cell without a verdict."""
    return lacks_answers(cell) or case.get("evaluation") is not None

"""Explains judgements of stored answers that an undone edit brings back.

What was undone is what the candidate is shown. How answers are judged was edited earlier, while
other answers counted.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from evalstore.display import short
from evalstore.values import RECORDED, Case, Json

if TYPE_CHECKING:
    from evalstore.planning.cells import Cell
    from evalstore.planning.known_cases import KnownCase
    from evalstore.reports.version_diff import Find


def takes_part(known: KnownCase, cell: Cell) -> bool:
    """Return whether the candidate of a cell took part in an earlier run."""
    return cell.candidate.id == RECORDED or known.run.find_candidate(cell.candidate.id) is not None


def asked_otherwise(
    known: KnownCase, cell: Cell, prompts: Collection[str | None]
) -> tuple[str, ...]:
    """Return which parts of what a cell asks are not those of an earlier run.

    `prompts` are the system prompts of the case in that run.
    """
    old, case = known.case, cell.case
    model = known.run.find_candidate(cell.candidate.id)
    temperature, now = case.temperature, case.temperature
    if model and not case.recorded:
        temperature = model.temperature if old.temperature is None else old.temperature
        now = cell.candidate.temperature if case.temperature is None else case.temperature
    parts = {
        "test": set(old.tests) != set(case.tests) or old.seed != case.seed,
        "system prompt": cell.prompt not in prompts,
        "recorded answer": old.recorded != case.recorded,
        f"model {cell.candidate.id}": bool(
            model and not case.recorded and model.model != cell.candidate.model
        ),
        "temperature": temperature != now,
    }
    return tuple(part for part, differs in parts.items() if differs)


def first_new(case: Case, old: Case) -> int:
    """Return the number of the first conversation that an older version of a case lacks, else 0."""
    return next((number for number, test in enumerate(case.tests) if test not in old.tests), 0)


def evaluators_of(known: KnownCase, find: Find) -> list[tuple[str, Json]]:
    """Return the evaluators of an earlier run for its case: the name and the content of each."""
    stored = [(each.id, find("evaluator", each.evaluator) or {}) for each in known.run.evaluators]
    return [
        (name, {**content, "prompt": prompt})
        for name, content in stored
        for prompt in known.case.judge_prompts or (content.get("prompt"),)
    ]


def is_again(parts: Sequence[str], judged_by: Sequence[str], run: str | None = None) -> str:
    """Return that these parts are those of a run again, and how its answers are judged now.

    Without `run`, the run is not known.
    """
    verb, that = ("is", "that") if len(parts) == 1 else ("are", "those")
    ways = f"judged by the present {' and '.join(judged_by)}"
    if run is None:
        return f"{' and '.join(parts)} changed back: stored answers are {ways}"
    return (
        f"{' and '.join(parts)} {verb} again {that} of run {short(run)}, whose answers are {ways}"
    )

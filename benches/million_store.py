"""`python -m benches.million_store ROOT ROWS ATTEMPTS [STORE]`: fills a workspace and its store.

The workspace has one test file with so many rows of data, and each row has so many answers in the
store, each with its judgement by the checks. They are written as a run writes them, through the
store, but without the calls and the checks. It is a process of its own, so that its memory does not
count as that of the commands that are measured.
"""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from benches import rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalstore.core.values import Evaluation, Session
    from evalstore.planning.cells import Cell
    from evalstore.planning.project import Project

_STARTED = 1_700_000_000_000_000
_AT_ONCE = 5_000
_FAILING = 50
"""One in so many answers fails."""


def main(root: str, count: str, attempts: str, store: str = "") -> None:
    """Write the workspace, read it, and store the answers."""
    folder = Path(root)
    rows.make_rows(folder, int(count))
    rows.write_question(folder)
    rows.write_settings(folder, int(attempts))
    store_answers(folder, store or None)


def store_answers(root: Path, store: str | None = None) -> None:
    """Store the missing answers of all cases of a workspace, and their judgements."""
    from evalstore.planning.open_project import open_project
    from evalstore.planning.options import Location, SelectionOptions
    from evalstore.planning.planner import resolve_scope

    with open_project(Location(root, store=store), create=True, keep=True) as project:
        project.store_versions()
        project.reading.save_index(project.workspace)
        cells = enumerate(resolve_scope(project, SelectionOptions()).cells)
        while batch := list(islice(cells, _AT_ONCE)):
            _store(project, batch)


def _store(project: Project, batch: list[tuple[int, Cell]]) -> None:
    from evalstore.core import hashing

    sessions: dict[str, str] = {}
    evaluations: dict[str, str] = {}
    for number, cell in batch:
        for session in _answers(number, cell):
            id, content = hashing.identify(hashing.describe_session(session))
            sessions[id] = content
            judgement = _judge(number, cell, id, session.started)
            of, content = hashing.identify(hashing.describe_evaluation_result(judgement))
            evaluations[of] = content
    project.store.record(sessions, evaluations)


def _answers(number: int, cell: Cell) -> Iterator[Session]:
    from evalstore.core.values import Reply, Session

    text = rows.ANSWER if number % _FAILING else f"0: Paris {number}. {rows.ANSWER}"
    for attempt in range(cell.attempts):
        started = _STARTED + number * cell.attempts + attempt
        yield Session(cell.question, (Reply(text),), started, f"{number:x}.{attempt}")


def _judge(number: int, cell: Cell, session: str, started: int) -> Evaluation:
    from evalstore.core.values import Evaluation, Verdict
    from evalstore.planning.plan import CHECKS

    assert cell.case.evaluation is not None
    verdict: Verdict = "pass" if number % _FAILING else "fail"
    feedback = "" if number % _FAILING else f"the answer contains '0: Paris {number}'"
    return Evaluation(
        sessions=(session,),
        evaluation=cell.case.evaluation,
        evaluator=CHECKS,
        verdict=verdict,
        started=started + 1,
        nonce=f"{number:x}",
        score=float(verdict == "pass"),
        feedback=feedback,
        checks=({"type": "contains", "verdict": verdict},),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])

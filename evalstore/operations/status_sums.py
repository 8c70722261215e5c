"""Adds up the status of a workspace without runs batch by batch, so that very many rows fit.

Only the plan of a batch is in memory. What is listed item by item is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.operations.prompt_names import PromptPlace, prompt_labels
from evalstore.operations.run_plans import BATCH, LONGEST
from evalstore.operations.scripted_answers import warn_of_edited_scripts
from evalstore.operations.status_report import FileChange, Status
from evalstore.planning.cell_batches import FEW, StreamedCells, batches
from evalstore.planning.estimate import count_by_checks, estimate, make_estimate, may_judge_less
from evalstore.planning.history_filters import stands_until
from evalstore.planning.plan import Plan
from evalstore.planning.planner import plan_cells
from evalstore.planning.reasons import Explainer
from evalstore.providers.kinds import SCRIPTED
from evalstore.values import RECORDED

if TYPE_CHECKING:
    from collections.abc import Collection

    from evalstore.planning.options import SelectionOptions
    from evalstore.planning.planner import Scope
    from evalstore.planning.project import Project


def can_add_up(project: Project, scope: Scope) -> bool:
    """Return whether the status of a scope can be added up: it has very many cells and no history.

    The plan of a cell must not depend on those of other batches, so they share no questions. What
    remotes have is looked for with all of a plan.
    """
    cells = scope.cells
    return (
        isinstance(cells, StreamedCells)
        and len(cells) > FEW
        and not cells.shared
        and not project.settings.remotes
        and not project.store.find_runs(limit=1)
    )


class StatusSums:
    """The status of a scope for which `can_add_up` is true."""

    def __init__(self, project: Project, selection: SelectionOptions, scope: Scope) -> None:
        """Make the plans of all batches, and add them up."""
        self._project, self._scope = project, scope
        self.has_code = False
        """Whether a check runs a Python file."""
        self._ask = self._record = self._judge = self._reuse = self._by_checks = 0
        self._left_asks = self._left_judgements = self._waiting = self._waiting_asks = 0
        self._may_judge_less = False
        self._rows: dict[str, int] = {}
        """How many rows each file has."""
        self._models: set[str] = set()
        self._called: set[str] = set()
        self._pending: set[str] = set()
        """The candidates with something to do."""
        self._prompts: dict[PromptPlace, None] = {}
        self._files: set[str] = set()
        """Those with something to do."""
        self._total, self._paid, self._guessed = 0.0, 0.0, (0, 0)
        self._unpriced: dict[str, None] = {}
        self._oldest: int | None = None
        warn_of_edited_scripts(project, selection)
        for cells in batches(scope.cells, BATCH, LONGEST):
            self._add(plan_cells(project, scope, cells))

    def _add(self, plan: Plan) -> None:
        price = estimate(self._project, Explainer(self._project).asks(plan), plan.judgements)
        self._total += price.total
        self._paid += price.paid
        tokens, answers = price.guessed
        self._guessed = (self._guessed[0] + tokens, self._guessed[1] + answers)
        self._unpriced.update(dict.fromkeys(price.unpriced))
        self._ask += plan.ask_count
        self._record += plan.recorded_count
        self._judge += plan.judge_count
        self._reuse += plan.reused
        self._by_checks += count_by_checks(plan)
        self._may_judge_less = self._may_judge_less or may_judge_less(plan)
        self._left_asks += plan.left_asks
        self._left_judgements += plan.left_judgements
        self._waiting += plan.blocked_judgements
        self._waiting_asks += sum(ask.count for ask in plan.waiting_asks)
        self._called |= called_models(plan)
        self._pending |= {ask.cell.candidate.id for ask in plan.asks}
        self._pending |= {judgement.cell.candidate.id for judgement in plan.judgements}
        for file, _ in {(cell.file, cell.case.row) for cell in plan.cells}:
            self._rows[file] = self._rows.get(file, 0) + 1
        self._models |= {cell.candidate.id for cell in plan.cells}
        self._files |= {ask.cell.file for ask in plan.asks}
        self._files |= {judgement.cell.file for judgement in plan.judgements}
        places = (PromptPlace(cell.file, cell.prompt, cell.prompt_number) for cell in plan.cells)
        self._prompts.update(dict.fromkeys(places))
        self.has_code = self.has_code or any(cell.case.code for cell in plan.cells)
        if plan.oldest is not None:
            self._oldest = min(plan.oldest, plan.oldest if self._oldest is None else self._oldest)

    def status(self) -> Status:
        """Return the status, without the list of items."""
        project = self._project
        price = make_estimate(self._total, self._guessed, self._unpriced, paid=self._paid)
        places = (place for place in self._prompts if place.file in self._files)
        return Status(
            items=[],
            ask=self._ask,
            record=self._record,
            judge=self._judge,
            reuse=self._reuse,
            skipped=[
                (pair.file, pair.row, pair.model, ", ".join(pair.lacks))
                for pair in self._scope.skipped
            ],
            cost=price.usd,
            guess=price.guess,
            known_cost=price.known,
            is_simulated=price.is_simulated,
            unpriced=list(price.unpriced),
            models=len(self._models),
            cells=len(self._scope.cells),
            has_recorded=RECORDED in self._models,
            pending_models=len(self._pending - {RECORDED}),
            is_recorded_pending=RECORDED in self._pending,
            by_checks=self._by_checks,
            may_judge_less=self._may_judge_less,
            changes=[
                FileChange("A ", path, count, 0, 0, "new")
                for path, count in sorted(self._rows.items())
            ],
            warnings=[
                *project.warnings,
                *(problem.sentence for problem in project.reading.problems),
            ],
            prompts=prompt_labels(project, places),
            left_asks=self._left_asks,
            left_judgements=self._left_judgements,
            untrusted=project.code.named,
            left_out=project.left_out,
            refused=find_refusals(project, self._called),
            waiting=self._waiting,
            waiting_asks=self._waiting_asks,
            stands_until=stands_until(Plan(oldest=self._oldest), project.settings),
        )


def called_models(plan: Plan) -> set[str]:
    """Return the ids of the models that a plan calls."""
    ids = {ask.cell.candidate.id for ask in plan.asks if not ask.cell.case.recorded}
    return ids | {judgement.judge.id for judgement in plan.judgements if judgement.judge}


def find_refusals(project: Project, ids: Collection[str]) -> list[str]:
    """Return a warning about keys that a run would not send to models, with how to allow them."""
    models = [project.find_model(id, "models") for id in sorted(ids)]
    models = [model for model in models if model.provider.type != SCRIPTED]
    if not models:
        return []
    from evalstore.execution.refused_keys import combine_refusals, find_refused_keys

    refused = find_refused_keys(project.workspace.root, project.reading, models)
    if not refused:
        return []
    error = combine_refusals(refused)
    return [f"{error}; {error.hint}"]

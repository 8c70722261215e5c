"""Adds up the status of a workspace batch by batch, so that many rows fit in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from evalstore.core.display import plural
from evalstore.core.hashing import subject_of
from evalstore.core.values import RECORDED
from evalstore.planning.estimate import PriceSums, count_by_checks, may_judge_less
from evalstore.planning.options import SelectionOptions
from evalstore.planning.plan import (
    UNSETTLED,
    ItemList,
    Plan,
    PlanItem,
    PlannedAsk,
    PlannedJudgement,
    count_undecided,
)
from evalstore.planning.planner import Scope
from evalstore.planning.project import Project
from evalstore.planning.reason import NEW_ANSWER, Reason
from evalstore.planning.reasons import Explainer
from evalstore.planning.results import count_ties
from evalstore.planning.status_report import FileChange, ReasonCounts, SettingEdit, Status
from evalstore.results.edits.edited_files import FileItems
from evalstore.results.edits.file_changes import FileChanges
from evalstore.results.edits.participant_edits import find_current_edits
from evalstore.results.labels.labels import NewLabels
from evalstore.results.prompt_names import PromptPlace, prompt_labels, settled_places
from evalstore.runs.status.remote_answers import RemoteSums, asks_again


class StatusSums:
    """What a status tells of the plans of all cells, batch by batch."""

    def __init__(
        self, project: Project, selection: SelectionOptions, scope: Scope, items: ItemList
    ) -> None:
        """`items` takes the items of the plans; the cells of settled parts are in no plan."""
        self._project, self._items, self._settled = project, items, scope.settled
        parts = [*scope.settled]
        words = (word for part in parts if not part.undecided for word in part.words)
        self.status = Status(
            items=[],
            ask=0,
            record=0,
            judge=0,
            reuse=scope.settled.answers,
            skipped=scope.cells.skipped,
            cost=None,
            models=0,
            cells=sum(part.cells for part in parts),
            undecided_judgements=sum(part.undecided for part in parts),
            ties=sum(count for _, verdict, count in words if verdict == "undecided"),
        )
        """The numbers of the plans; in some parts it is not known whether results are ties."""
        self.called = set[str]()
        """The ids of the models that the plans call."""
        self._models = set(scope.settled.models)
        self._pending = set[str]()
        """The candidates with something to do."""
        self._files = set[str]()
        """Those with something to do."""
        self._prompts: dict[PromptPlace, None] = {}
        self._prices = PriceSums(project)
        self._explainer = Explainer(project)
        self.last = project.store.find_run_before()
        self._edits = find_current_edits(project, selection) if self.last else []
        """How candidates, judges and settings differ from the last run."""
        self._work = {edit.of: (Counter[str](), dict[str, None]()) for edit in self._edits}
        """By what was edited: how many items of each kind are due to it, and their files."""
        self._reasons, self._used_again = ReasonCounts(), ReasonCounts()
        self._new_rows: dict[str, int] = {}
        """How many rows each file has, when there is no run yet."""
        self._changes = self.labels = None
        if self.last:
            self._changes = FileChanges(
                project, self.last, self._explainer.was_run, narrows=selection.narrows
            )
            self.labels = NewLabels(project.store, self.last.ended)
        self._remotes = (
            None if asks_again(project, selection) else RemoteSums(project, self._prices.means)
        )

    def add(self, plan: Plan) -> None:
        """Add the plan of a batch; all cells of a case must be in it.

        Raises `WholePlanError` if all cells must be planned together.
        """
        asks = self._explainer.asks(plan)
        judgements = self._explainer.judgements(plan)
        by_file: dict[str, FileItems] = {}
        asked = [
            self._item("record" if ask.cell.case.recorded else "ask", ask, None, reason)
            for ask, reason in asks
        ]
        judged = [self._judge_item(*each) for each in judgements]
        for (ask, _), item in zip(asks, asked, strict=True):
            by_file.setdefault(item.file, FileItems()).asks.append((ask.cell.number, item))
        for (judgement, _), item in zip(judgements, judged, strict=True):
            here = by_file.setdefault(item.file, FileItems()).judgements
            here.append((judgement.cell.number, item))
        for judgement, reason in self._explainer.carried(plan) if plan.carried else ():
            item = replace(self._judge_item(judgement, reason), kind="use")
            self._used_again.add([item])
            again = by_file.setdefault(item.file, FileItems()).used_again
            again.add(judgement.cell.number)
        self._items.add(asked, judged)
        self._note_changes(plan, by_file, asked, judged)
        prices = self._prices.add(asks, plan.judgements)
        self._count(plan)
        if self._remotes:
            self._remotes.add(plan, [ask for ask, _ in asks], *prices)

    def _count(self, plan: Plan) -> None:
        """Add the numbers of the plan of a batch."""
        status = self.status
        status.ask += plan.ask_count
        status.record += plan.recorded_count
        status.judge += plan.judge_count
        status.reuse += plan.reused - plan.settled.answers
        status.by_checks += count_by_checks(plan)
        status.may_judge_less = status.may_judge_less or may_judge_less(plan)
        status.left_asks += plan.left_asks
        status.left_judgements += plan.left_judgements
        status.waiting += plan.blocked_judgements
        status.waiting_asks += sum(ask.count for ask in plan.waiting_asks)
        status.cells += len(plan.cells)
        status.ties += count_ties(plan, self._project.settings.verdict)
        if any(vote.verdict in UNSETTLED for votes in plan.votes.values() for vote in votes):
            subjects = {
                (subject, cell.case.evaluation): count_undecided(cell, plan.votes.get(subject, ()))
                for cell in plan.cells
                if cell.case.evaluation
                for subject in map(subject_of, cell.subjects(plan.sessions))
            }
            status.undecided_judgements += sum(subjects.values())
        planned = [ask.cell for ask in plan.asks]
        planned += [judgement.cell for judgement in plan.judgements]
        self.called |= {ask.cell.candidate.id for ask in plan.asks if not ask.cell.case.recorded}
        self.called |= {judgement.judge.id for judgement in plan.judgements if judgement.judge}
        self._pending |= {cell.candidate.id for cell in planned}
        self._files |= {cell.file for cell in planned}
        self._models |= {cell.candidate.id for cell in plan.cells}
        places = (PromptPlace(cell.file, cell.prompt, cell.prompt_number) for cell in plan.cells)
        self._prompts.update(dict.fromkeys(places))

    def finish(self) -> Status:
        """Return the status with what the plans tell, after all were added."""
        status, price = self.status, self._prices.finish()
        status.items = self._items.finish()
        status.cost, status.known_cost, status.prices = price.usd, price.known, price.parts
        status.guess, status.verdict_guess = price.guess, price.verdict_guess
        status.unpriced, status.is_simulated = [*price.unpriced], price.is_simulated
        status.models, status.has_recorded = len(self._models), RECORDED in self._models
        status.pending_models = len(self._pending - {RECORDED})
        status.is_recorded_pending = RECORDED in self._pending
        status.changes, status.edits = self._list_changes(), self._list_edits()
        status.other_reasons = self._reasons.reasons()
        status.used_again = tuple(self._used_again.reasons())
        status.labels = self.labels.count() if self.labels else 0
        places = (*self._prompts, *settled_places(self._settled))
        named = (place for place in places if place.file in self._files)
        status.prompts = prompt_labels(self._project, named)
        if self._remotes:
            status.remotes = self._remotes.answers()
            status.remote_judgements = self._remotes.judgements()
        return status

    def _judge_item(self, judgement: PlannedJudgement, reason: Reason) -> PlanItem:
        evaluator = judgement.judge.id if judgement.judge else "checks"
        return self._item("judge", judgement, evaluator, reason)

    def _item(
        self,
        kind: str,
        planned: PlannedAsk | PlannedJudgement,
        evaluator: str | None,
        reason: Reason,
    ) -> PlanItem:
        cell = planned.cell
        name = self._project.name_of_version("prompt", cell.prompt) if cell.prompt else None
        return PlanItem(
            kind,
            cell.file,
            cell.case.row,
            cell.prompt,
            cell.candidate.id,
            evaluator,
            planned.count,
            reason.text,
            reason.was,
            reason.now,
            name,
            reason.of,
            reason.also,
        )

    def _note_changes(
        self,
        plan: Plan,
        by_file: dict[str, FileItems],
        asked: Sequence[PlanItem],
        judged: Sequence[PlanItem],
    ) -> None:
        if self._changes is None or self.labels is None:
            for file, _ in {(cell.file, cell.number) for cell in plan.cells}:
                self._new_rows[file] = self._new_rows.get(file, 0) + 1
            return
        self._changes.add(plan, by_file)
        self.labels.add(plan)
        others: list[PlanItem] = []
        for item in (*asked, *judged):
            if item.of in self._work:
                kinds, files = self._work[item.of]
                kinds[item.kind] += item.count
                files[item.file] = None
            elif item.reason != NEW_ANSWER and not self._changes.lists(item.file):
                others.append(item)
        self._reasons.add(others)

    def _list_edits(self) -> list[SettingEdit]:
        """Return the edits of candidates, judges and settings, with the work that they cause.

        Of several edits of one of them, the first has it.
        """
        seen: set[str] = set()
        edits = []
        for edit in self._edits:
            kinds, files = self._work[edit.of]
            if edit.of not in seen and files:
                verdicts = kinds["judge"]
                answers = kinds.total() - verdicts
                place = next(iter(files)) if len(files) == 1 else plural(len(files), "file")
                edit = replace(edit, answers=answers, verdicts=verdicts, place=place)
            seen.add(edit.of)
            edits.append(edit)
        return edits

    def _list_changes(self) -> list[FileChange]:
        """Return the changed test files; without a run all are new."""
        if self._changes is not None:
            return self._changes.finish()
        return [
            FileChange("A ", path, count, 0, 0, "new")
            for path, count in sorted(self._new_rows.items())
        ]

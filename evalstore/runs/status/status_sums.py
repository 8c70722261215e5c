"""Adds up the status of a workspace batch by batch, so that many rows fit in memory."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from evalstore.core.display import plural
from evalstore.core.hashing import subject_of
from evalstore.core.values import RECORDED
from evalstore.planning.estimate import PriceSums, count_by_checks, estimate, may_judge_less
from evalstore.planning.plan import UNSETTLED, count_undecided
from evalstore.planning.plan_items import PlanItem
from evalstore.planning.reasons.reason import NEW_ANSWER
from evalstore.planning.reasons.reasons import Explainer
from evalstore.planning.results import count_ties
from evalstore.planning.status.status_report import FileChange, ReasonCounts
from evalstore.results.edits.edited_files import FileItems
from evalstore.results.edits.file_changes import FileChanges
from evalstore.results.edits.participant_edits import find_current_edits
from evalstore.results.labels.labels import NewLabels
from evalstore.results.prompt_names import PromptPlace, prompt_labels, settled_places
from evalstore.runs.status.remote_answers import RemoteSums, asks_again

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalstore.planning.cells.settled_parts import SettledParts
    from evalstore.planning.estimate import BatchPrice, Estimate
    from evalstore.planning.options import SelectionOptions
    from evalstore.planning.plan import Plan, PlannedAsk, PlannedJudgement
    from evalstore.planning.plan_items import ItemList
    from evalstore.planning.project import Project
    from evalstore.planning.reasons.reason import Reason
    from evalstore.planning.status.status_report import SettingEdit


class PlanSums:
    """The numbers of the plans of all batches."""

    def __init__(self, project: Project, settled: SettledParts) -> None:
        """`settled` are parts of files whose cells are in no plan."""
        self._project, self._settled = project, settled
        self.ask = self.record = self.judge = self.by_checks = 0
        self.reuse = settled.answers
        self.left_asks = self.left_judgements = self.waiting = self.waiting_asks = 0
        self.may_judge_less = False
        self.models = set(settled.models)
        self.called = set[str]()
        """The ids of the models that the plans call."""
        self.pending = set[str]()
        """The candidates with something to do."""
        self.cells = sum(part.cells for part in settled)
        self.undecided = sum(part.undecided for part in settled)
        words = (word for part in settled if not part.undecided for word in part.words)
        self.ties = sum(count for _, verdict, count in words if verdict == "undecided")
        """How many results are undecided though all votes are decided; in some parts not known."""
        self._files = set[str]()
        """Those with something to do."""
        self._prompts: dict[PromptPlace, None] = {}
        self.prices = PriceSums()

    def add(self, plan: Plan, price: BatchPrice) -> None:
        """Add the plan of a batch, and its price."""
        self.prices.add(price)
        self.ask += plan.ask_count
        self.record += plan.recorded_count
        self.judge += plan.judge_count
        self.reuse += plan.reused - plan.settled.answers
        self.by_checks += count_by_checks(plan)
        self.may_judge_less = self.may_judge_less or may_judge_less(plan)
        self.left_asks += plan.left_asks
        self.left_judgements += plan.left_judgements
        self.waiting += plan.blocked_judgements
        self.waiting_asks += sum(ask.count for ask in plan.waiting_asks)
        self.called |= called_models(plan)
        self.pending |= {ask.cell.candidate.id for ask in plan.asks}
        self.pending |= {judgement.cell.candidate.id for judgement in plan.judgements}
        self.models |= {cell.candidate.id for cell in plan.cells}
        self.cells += len(plan.cells)
        if any(vote.verdict in UNSETTLED for votes in plan.votes.values() for vote in votes):
            subjects = {
                (subject, cell.case.evaluation): count_undecided(cell, plan.votes.get(subject, ()))
                for cell in plan.cells
                if cell.case.evaluation
                for subject in map(subject_of, cell.subjects(plan.sessions))
            }
            self.undecided += sum(subjects.values())
        self.ties += count_ties(plan, self._project.settings.verdict)
        self._files |= {ask.cell.file for ask in plan.asks}
        self._files |= {judgement.cell.file for judgement in plan.judgements}
        places = (PromptPlace(cell.file, cell.prompt, cell.prompt_number) for cell in plan.cells)
        self._prompts.update(dict.fromkeys(places))

    @property
    def price(self) -> Estimate:
        """Return the estimated cost of all batches."""
        return self.prices.finish()

    @property
    def has_recorded(self) -> bool:
        """Return whether answers are recorded in files."""
        return RECORDED in self.models

    def prompts(self) -> dict[str, dict[str | None, str]]:
        """Return the names of the system prompts of files with items, where there are several."""
        places = (*self._prompts, *settled_places(self._settled))
        return prompt_labels(
            self._project, (place for place in places if place.file in self._files)
        )


class StatusSums:
    """What a status tells of the plans of all cells, batch by batch."""

    def __init__(
        self,
        project: Project,
        selection: SelectionOptions,
        settled: SettledParts,
        items: ItemList,
    ) -> None:
        """`items` takes the items of the plans."""
        self._project, self._items = project, items
        self._explainer = Explainer(project)
        self.last = project.store.find_run_before()
        self.plans = PlanSums(project, settled)
        self._edits = find_current_edits(project, selection) if self.last else []
        """How candidates, judges and settings differ from the last run."""
        self._work = {edit.of: (Counter[str](), dict[str, None]()) for edit in self._edits}
        """By what was edited: how many items of each kind are due to it, and their files."""
        self.reasons, self.used_again = ReasonCounts(), ReasonCounts()
        self._new_rows: dict[str, int] = {}
        """How many rows each file has, when there is no run yet."""
        self._changes = self.labels = None
        if self.last:
            self._changes = FileChanges(
                project, self.last, self._explainer.was_run, narrows=selection.narrows
            )
            self.labels = NewLabels(project.store, self.last.ended)
        self.remotes = (
            None if asks_again(project, selection) else RemoteSums(project, self.plans.prices.means)
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
            self.used_again.add([item])
            again = by_file.setdefault(item.file, FileItems()).used_again
            again.add(judgement.cell.number)
        self._items.add(asked, judged)
        self._note_changes(plan, by_file, asked, judged)
        price = estimate(self._project, asks, plan.judgements)
        self.plans.add(plan, price)
        if self.remotes:
            self.remotes.add(plan, [ask for ask, _ in asks], price)

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
        self.reasons.add(others)

    def edits(self) -> list[SettingEdit]:
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

    def changes(self) -> list[FileChange]:
        """Return the changed test files, after all plans were added; without a run all are new."""
        if self._changes is not None:
            return self._changes.finish()
        return [
            FileChange("A ", path, count, 0, 0, "new")
            for path, count in sorted(self._new_rows.items())
        ]


def called_models(plan: Plan) -> set[str]:
    """Return the ids of the models that a plan calls."""
    ids = {ask.cell.candidate.id for ask in plan.asks if not ask.cell.case.recorded}
    return ids | {judgement.judge.id for judgement in plan.judgements if judgement.judge}

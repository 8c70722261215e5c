"""The command `status`: the changes since the last run, and the plan with reasons and cost.

The script of a model is not part of its version. Which scripts have answered is noted in a file
beside the store that is never shared; without the file, no edit of them is known.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import (
    Callable,
    Collection,
    Container,
    Iterable,
    Iterator,
    Sequence,
    Set,
)
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain

from evalstore.core import hashing
from evalstore.core.batches import in_small_batches
from evalstore.core.display import clip, plural
from evalstore.core.errors import EvalstoreError
from evalstore.core.values import RECORDED, Case, Question
from evalstore.files.atomic_write import locked_folder, write_whole
from evalstore.planning.cells import EarlierBatches, batches, is_short
from evalstore.planning.estimate import PriceSums, count_by_checks, may_judge_less
from evalstore.planning.open_project import open_project
from evalstore.planning.options import GO_ON, Location, SelectionOptions, is_partial
from evalstore.planning.participants import describe_retirement
from evalstore.planning.path_history import pair_with_workspace
from evalstore.planning.plan import (
    FiledItems,
    Plan,
    PlanItem,
    PlannedAsk,
    PlannedJudgement,
)
from evalstore.planning.planner import Scope, plan_cells, require_sound, resolve_scope
from evalstore.planning.project import Project
from evalstore.planning.reasons import NEW_ANSWER, Explainer, Reason
from evalstore.planning.status_report import (
    FileChange,
    ReasonCounts,
    SettingEdit,
    Status,
    find_stored_outcomes,
)
from evalstore.providers.base import SCRIPTED
from evalstore.providers.script import read_entry
from evalstore.results.edits.edited_files import FileChanges, FileItems
from evalstore.results.edits.edits import (
    find_current_edits,
    find_runs_since,
    find_unchanged_parts,
)
from evalstore.results.labels import NewLabels, read_labels
from evalstore.results.names import PromptPlace, prompt_labels, settled_places
from evalstore.runs.status.remote_answers import RemoteSums, asks_again, find_unread_remotes
from evalstore.store.driver import note_reached
from evalstore.store.events import Label
from evalstore.store.results import RowResults, read_cells
from evalstore.store.shared_runs import find_runs_in_progress
from evalstore.store.trees.tree_nodes import RowIndex, read_tree
from evalstore.workspace.folder import WorkspaceFolder
from evalstore.workspace.index import read_cache
from evalstore.workspace.model_files import Model

_FILE = "called_scripts.json"
_SHOWN = 30
"""The most characters of an identifier that is suggested."""


def warn_of_edited_scripts(project: Project, selection: SelectionOptions) -> None:
    """Warn of the models in use whose scripts lack entries that they had when they were called.

    Another order is an edit, an added entry is not. Not if all are asked again.
    """
    scripted = {} if selection.refresh else _find_scripted(project, selection)
    noted = _read(project.workspace) if scripted else {}
    for version, model in scripted.items():
        if not all(_is_within(script, _hash_script(model)) for script in noted.get(version, ())):
            project.warn(
                f"the 'responses' of '{model.id}' have changed since its stored answers; "
                f"'extraIdentifier: {_next_identifier(model)}' in "
                f"{project.reading.model_files.get(model.id, 'its file')} asks again"
            )


def _is_within(script: str, now: str) -> bool:
    """Return whether a script has all entries of another one in their order; of their hashes."""
    entries = iter(now.split())
    return all(entry in entries for entry in script.split())


def _hash_script(model: Model) -> str:
    """Return the hashes of the entries that answer, in their order; errors are not stored."""
    entries = (read_entry(it) for it in model.responses if "error" not in it)
    return " ".join(hashing.hash_bytes(repr(entry).encode()) for entry in entries)


def _next_identifier(model: Model) -> str:
    """Return an identifier that makes another version of a model: `v2`, or what follows `v2`."""
    now = str(model.options.get("extraIdentifier") or "v1")
    start, digits = re.fullmatch(r"(.*?)(\d{0,9})", now, re.DOTALL).groups()  # type: ignore[union-attr]
    return clip(f"{start}{int(digits) + 1}" if digits else f"{now}-2", _SHOWN)


def note_scripts(project: Project, selection: SelectionOptions, called: Container[str]) -> None:
    """Note the scripts of the models that were `called`, beside those of earlier runs."""
    scripts = {
        version: _hash_script(model)
        for version, model in _find_scripted(project, selection, called).items()
    }
    if not scripts:
        return
    with suppress(OSError), locked_folder(project.workspace.private):  # a run does not depend on it
        noted = _read(project.workspace)
        for version, script in scripts.items():
            noted.setdefault(version, set()).add(script)
        content = json.dumps({version: sorted(known) for version, known in noted.items()})
        write_whole(project.workspace.private / _FILE, content.encode(), durable=False)


def _find_scripted(
    project: Project, selection: SelectionOptions, called: Container[str] | None = None
) -> dict[str, Model]:
    """Return the scripted candidates and judges by version; with `called`, only those."""
    ids = {each.model: each.id for each in project.candidates(selection)}
    ids |= {each.model: each.id for each in project.judges(selection)}
    models = {
        version: project.find_model(id, "models")
        for version, id in ids.items()
        if called is None or id in called
    }
    return {version: it for version, it in models.items() if it.provider.type == SCRIPTED}


def _read(workspace: WorkspaceFolder) -> dict[str, set[str]]:
    """Return the hashes of the noted scripts by model version; none if they cannot be read."""
    try:
        content = read_cache(workspace.private / _FILE, workspace.boundary)
        return {str(version): {*map(str, scripts)} for version, scripts in content.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def status(location: Location, selection: SelectionOptions, *, whole: bool = True) -> Status:
    """Return what a run would do and what changed, without calling a model.

    Without `whole`, the list of items is missing; it is in a temporary file.
    """
    with open_project(location) as project:
        require_sound(project, selection, hint=GO_ON)
        selection = project.with_whole_names(selection)
        report = describe_workspace(project, selection, whole=whole)
        report.in_progress, unreadable = find_runs_in_progress(project.store)
        report.warnings += unreadable
        if not project.reading.errors and not (report.ask or report.record):
            contents = project.reading.contents
            leaves = [id for id, (kind, _) in contents.items() if kind == "cases"]
            if len(project.store.load_lengths("cases", leaves)) == len(leaves):
                project.reading.save_index(project.workspace)
        return report


def describe_workspace(
    project: Project, selection: SelectionOptions | None = None, *, whole: bool = False
) -> Status:
    """Return what `status` tells of a project that is open, or of a selection of its cases."""
    every = selection or SelectionOptions()
    scope = resolve_scope(project, every, settled=find_unchanged_parts(project, every))
    return describe_scope(project, scope, every, FiledItems() if whole else WorkReasons())


def describe_scope(
    project: Project,
    scope: Scope,
    selection: SelectionOptions,
    items: FiledItems | WorkReasons,
    note: Callable[[Plan], None] = lambda _plan: None,
) -> Status:
    """Return the status of a scope.

    `items` keeps the items of the plan. Many cells are planned batch by batch. `note` is called
    with each plan.
    """
    cells = scope.cells
    whole = plan_cells(project, scope, [*cells]) if is_short(len(cells)) else None

    def make_plans(files: Set[str] | None) -> Iterator[Plan]:
        """Yield the plans of all cells, or those of some test files, which may have others, too."""
        if whole:
            yield whole
            return
        earlier = EarlierBatches(cells.shared) if files is None else None
        done = 0
        for batch in batches(cells):
            some = [cell for cell in batch if files is None or cell.file in files]
            if some:
                yield plan_cells(project, scope, some, earlier=earlier)
            done += len(batch)
            note_reached("cases", done, len(cells))

    warn_of_edited_scripts(project, selection)
    candidates = selection.models or [each.id for each in project.settings.candidates]
    judges = selection.evaluators or [each.id for each in project.settings.evaluators]
    if retirement := describe_retirement(project.reading, (*candidates, *judges)):
        project.warn(retirement)
    sums = StatusSums(project, selection, scope, items)
    for plan in make_plans(None):
        note(plan)
        sums.add(plan)
    last, status = sums.last, sums.finish()
    edits = status.edits
    if last and not asks_again(project, selection):
        is_silent = {edit.of for edit in edits} - {edit.of for edit in edits if edit.place}
        is_of_all = bool(is_silent or status.labels or _may_count_otherwise(project, edits))
        settled = {it.file for it in status.changes if it.settled or it.partly}
        if is_of_all or settled:
            files = None if is_of_all else settled
            outcomes = find_stored_outcomes(project, make_plans(files), files)
            status.broke, status.fixed = outcomes["broke"], outcomes["fixed"]
            status.undecided, status.decided = outcomes["undecided"], outcomes["decided"]
    problems = (problem.sentence for problem in project.reading.problems)
    # Before others ask for the candidates of another selection, which may be left out.
    status.warnings = [*project.warnings, *problems]
    if last:
        status.last_run, status.last_started = last.id, last.started
        status.lost_labels = find_lost_labels(project)
        if status.lost_labels and selection.narrows:
            covered = {(cell.file, cell.case.row) for cell in scope.cells}
            status.lost_labels = [place for place in status.lost_labels if place in covered]
    status.untrusted, status.left_out = project.code.named, project.left_out
    status.refused = _find_refusals(project, sums.called)
    is_paid = status.ask or status.judge > status.by_checks
    if is_paid or status.waiting_asks or status.waiting:
        status.unread_remotes = find_unread_remotes(project, selection)
    return status


def _may_count_otherwise(project: Project, edits: Iterable[SettingEdit]) -> bool:
    """Return whether other answers, or votes, may count now than in the last run."""
    if any(edit.of in project.settings.of_runs for edit in edits):
        return True
    runs = find_runs_since(project.store, leaves_out=is_partial)
    return any(_OF_OTHER_ANSWERS & run.selection.keys() for run in runs)


_OF_OTHER_ANSWERS = {"refresh", "max_age", "maxAge", "attempts"}
"""Stored options of a run for which other answers count than without them."""


def _find_refusals(project: Project, ids: Collection[str]) -> list[str]:
    """Return a warning about keys that a run would not send to models, with how to allow them."""
    models = [project.find_model(id, "models") for id in sorted(ids)]
    models = [model for model in models if model.provider.type != SCRIPTED]
    if not models:
        return []
    from evalstore.runs.execution.key_access import (
        KeyAccess,
        find_refusal,
        named_variables,
        read_environment,
    )

    try:
        named = named_variables((*project.reading.models.values(), *models))
        error = find_refusal(KeyAccess(read_environment(project.workspace.root, named)), models)
    except EvalstoreError:  # the run reports errors in files of keys
        return []
    return [f"{error}; {error.hint}"] if error else []


# --- finds the labels that no longer count because of an edit since the last run


def find_lost_labels(project: Project) -> list[tuple[str, str]]:
    """Return the file and row of each label that counted when its case was judged, but not now.

    Only results in files that were edited since are read, and after an edit of a candidate also
    others. What the newest runs left out was judged by the run before them.
    """
    store = project.store
    labels: dict[str, list[Label]] = {}
    for label in read_labels(store).last():
        labels.setdefault(label.sessions[0], []).append(label)
    if not labels:
        return []
    questions = {id: session.question for id, session in store.find_sessions(labels).items()}
    has = {(each.model, each.temperature) for each in project.candidates(SelectionOptions())}
    asked = {question.model for question in questions.values()}
    labelled = store.find_named_leaves((), {question.test for question in questions.values()})
    rows, newer = RowResults(store), list[dict[str, str]]()
    indexes: dict[str, RowIndex] = {}
    found: dict[tuple[str, str], tuple[str, str] | None] = {}
    """The case of each label in a file; None where it counts, or did not."""
    for run in find_runs_since(store, leaves_out=is_partial):
        nodes = read_tree(run.snapshot, store.load_nodes)
        names = {old: new for new, old in pair_with_workspace(project, nodes).items()}
        void = {(each.model, each.temperature) for each in run.candidates} - has
        are_void = not asked.isdisjoint(model for model, _ in void)
        leaves = [
            (leaf.file, leaf.id)
            for leaf in store.find_tree_leaves(run.results)
            if leaf.cases in labelled
            and leaf.file in names
            and (are_void or nodes[leaf.file] != project.reading.nodes[names[leaf.file]])
        ]
        cells = (
            cell
            for some in in_small_batches(leaves)
            for of in read_cells(store, some)
            for cell in of
        )
        for result, case in cells:
            name = names[result.file]
            for label in chain.from_iterable(labels.get(it, ()) for it in result.sessions):
                was_other = label.evaluation != result.evaluation
                if was_other or label.sessions not in result.subjects or (label.id, name) in found:
                    continue
                if name not in indexes:
                    indexes[name] = RowIndex(project.reading.files[name], store)
                now = indexes[name].find(case)
                is_older = now and any(
                    _has_judged(rows, each.get(name), now, result.model) for each in newer
                )
                if now is None or is_older:
                    continue
                question = questions.get(label.sessions[0])
                is_lost = now.evaluation != label.evaluation or not _asks(now, question, has)
                found[label.id, name] = (name, now.row) if is_lost else None
        results = read_tree(run.results, store.load_nodes)
        newer.append({names.get(path, path): leaf for path, leaf in results.items()})
    return sorted(filter(None, found.values()))


def _has_judged(rows: RowResults, leaf: str | None, case: Case, model: str) -> bool:
    """Return whether a leaf of results has a verdict on a case, of a candidate."""
    names = {case.key, case.row}
    cells = rows.find({"": leaf}, {"": names})[""].cells if leaf else ()
    return any(
        result.verdict and result.model == model and not names.isdisjoint((result.key, result.row))
        for result, _ in cells
    )


def _asks(case: Case, question: Question | None, models: Set[tuple[str, float | None]]) -> bool:
    """Return whether a case puts a question to one of these models with their temperatures."""
    if not question or question.test not in case.tests or question.prompt not in case.prompts:
        return False
    if case.recorded:
        return case.recorded == question.model
    own = case.temperature
    return any(
        model == question.model and question.temperature == (temperature if own is None else own)
        for model, temperature in models
    )


# --- adds up the status of a workspace batch by batch, so that many rows fit in memory


class StatusSums:
    """What a status tells of the plans of all cells, batch by batch."""

    def __init__(
        self,
        project: Project,
        selection: SelectionOptions,
        scope: Scope,
        items: FiledItems | WorkReasons,
    ) -> None:
        """`items` takes the items of the plans; the cells of settled parts are in no plan."""
        self._project, self._items, self._settled = project, items, scope.settled
        self.status = Status(
            items=[],
            ask=0,
            record=0,
            judge=0,
            reuse=scope.settled.answers,
            skipped=scope.cells.skipped,
            cost=None,
            models=0,
            cells=sum(part.cells for part in scope.settled),
        )
        """The numbers of the plans."""
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
        """How many rows each file has, before the first run."""
        self._changes = self.labels = None
        if self.last:
            self._changes = FileChanges(
                project, self.last, self._explainer.was_run, self._work, narrows=selection.narrows
            )
            self.labels = NewLabels(project.store, self.last.ended)
        self._remotes = (
            None
            if asks_again(project, selection)
            else RemoteSums(project, are_shared=bool(scope.cells.shared))
        )

    def add(self, plan: Plan) -> None:
        """Add the plan of a batch; all cells of a case must be in it."""
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
        status.reuse += plan.reused
        status.by_checks += count_by_checks(plan)
        status.may_judge_less = status.may_judge_less or may_judge_less(plan)
        status.left_asks += plan.left_asks
        status.left_judgements += plan.left_judgements
        status.waiting += plan.blocked_judgements
        status.waiting_asks += sum(ask.count for ask in plan.waiting_asks)
        status.cells += len(plan.cells)
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
        status.items = self._items if isinstance(self._items, FiledItems) else []
        status.cost, status.known_cost, status.prices = price.usd, price.known, price.parts
        status.guess, status.verdict_guess = price.guess, price.verdict_guess
        status.unpriced, status.is_simulated = [*price.unpriced], price.is_simulated
        status.models, status.has_recorded = len(self._models), RECORDED in self._models
        status.pending_models = len(self._pending - {RECORDED})
        status.is_recorded_pending = RECORDED in self._pending
        if self._changes is not None:
            status.changes = self._changes.finish()
        else:  # without a run all are new
            rows = sorted(self._new_rows.items())
            status.changes = [FileChange("A ", path, count, 0, 0, "new") for path, count in rows]
        status.edits = self._list_edits()
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


# --- counts what a plan asks and judges, with which models and why, and keeps no list of it


Grounds = tuple[str, tuple[str, ...]]
"""A reason, and what else was edited."""


@dataclass
class KindReasons:
    """The items of a kind, by model and by reason."""

    total: int = 0
    by_checks: int = 0
    models: Counter[str] = field(default_factory=Counter)
    """Answers by candidate, or judgements by evaluator."""
    reasons: Counter[Grounds] = field(default_factory=Counter)
    first: dict[Grounds, PlanItem] = field(default_factory=dict)
    """Reason -> the first item that has it."""
    differing: set[Grounds] = field(default_factory=set)
    """The reasons whose values are not the same in all items."""

    def add(self, item: PlanItem) -> None:
        """Add an item."""
        is_judgement = item.kind == "judge"
        is_by_checks = item.evaluator == "checks"
        self.total += item.count
        self.by_checks += item.count if is_by_checks else 0
        self.models[item.evaluator or item.model if is_judgement else item.model] += item.count
        reason = item.reason, item.also
        self.reasons[reason] += item.count
        example = self.first.setdefault(reason, item)
        if (item.was, item.now) != (example.was, example.now):
            self.differing.add(reason)


class WorkReasons:
    """Takes the items of a plan, batch by batch, and counts them."""

    def __init__(self) -> None:
        self.kinds: dict[str, KindReasons] = {}
        """By the kind of the items."""

    def add(self, asks: Sequence[PlanItem], judgements: Sequence[PlanItem]) -> None:
        """Count the items of the next batch."""
        for item in chain(asks, judgements):
            if item.kind not in self.kinds:
                self.kinds[item.kind] = KindReasons()
            self.kinds[item.kind].add(item)

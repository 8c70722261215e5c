"""A project: an open workspace with its store, its participants and its plan.

Every operation starts here. Nothing here calls a model.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from evalstore.errors import EvalstoreError, NothingSelectedError, StoreError, WorkspaceError
from evalstore.planning import history_filters, retries
from evalstore.planning.cells import (
    Candidate,
    Cell,
    Judge,
    SkippedPair,
    build_cells,
    generate_cells,
)
from evalstore.planning.code_trust import CodeTrust
from evalstore.planning.participants import Participants
from evalstore.planning.path_targets import find_targets
from evalstore.planning.plan import UNSETTLED, AgeLimit, Plan, plan_asks, plan_judgements
from evalstore.planning.portions import StreamedCells, Summary, summarise
from evalstore.planning.selection import Placed, Selection, Target
from evalstore.store.case_files import restore_case_files
from evalstore.store.contents import require
from evalstore.store.trees import build_tree
from evalstore.values import RECORDED, Case, CaseFile, Json, Verdict

if TYPE_CHECKING:
    from evalstore.errors import Problem
    from evalstore.planning.options import Location, SelectionOptions
    from evalstore.store import Store
    from evalstore.values import FileVersion
    from evalstore.workspace.folder import Workspace
    from evalstore.workspace.reader import Reading


@dataclass(frozen=True, slots=True)
class Scope:
    """What a command is about, and what counts for it."""

    cells: Collection[Cell]
    """In the order of files and rows."""
    skipped: list[SkippedPair]
    answers: AgeLimit
    judgements: AgeLimit
    again: Collection[Verdict]
    """Verdicts that do not count: they are to be had again."""
    tried: retries.FailedWork | None
    """Nothing but this is to be done; None: all that is missing is."""
    judge_only: bool
    begun: float
    """When the run did."""


class Project(Participants):
    """An open workspace, read, with its store."""

    def __init__(
        self, where: Location, workspace: Workspace, store: Store, reading: Reading
    ) -> None:
        super().__init__(workspace.settings, reading)
        self.where = where
        self.workspace = workspace
        self.store = store
        self.code = CodeTrust(where, workspace, store, reading)
        self.left_out: list[Problem] = []
        """Errors of test files that are left out."""
        self._places: dict[str, dict[str, tuple[str, int]]] = {}
        """Kind -> the names and numbers of versions by id."""

    def snapshot(self) -> tuple[str, dict[str, tuple[str, str]]]:
        """The id of the tree of all cases as they are now, and its nodes."""
        return build_tree(self.reading.nodes)

    # --- selection and plan

    def selection(self, wanted: SelectionOptions) -> Selection:
        """What the command line and the settings select; raises for a path that names nothing."""
        targets = self.targets(wanted.paths)
        return Selection(
            targets=targets,
            tags=wanted.tags,
            exclude_tags=(*self.settings.prohibited_tags, *wanted.exclude_tags),
            required_tags1=self.settings.required_tags1,
            required_tags2=self.settings.required_tags2,
            name=wanted.name,
        )

    def targets(self, paths: tuple[str, ...]) -> tuple[Target, ...]:
        """What paths on the command line name; raises for one that names nothing."""
        return find_targets(self.where, self.workspace, self.reading, paths)

    def require_sound(self, wanted: SelectionOptions, *, hint: str | None = None) -> None:
        """Raise all errors of the workspace, unless paths are given and they lie elsewhere.

        With `keep_going`, test files that have errors are left out instead. The hint is for
        errors of some test files only.
        """
        selection = None
        if wanted.paths:
            selection = Selection(self.targets(wanted.paths))
        relevant = [
            problem
            for problem in self.reading.errors
            if selection is None
            or problem.file not in self.reading.tests
            or selection.covers_file(problem.file)
        ]
        broken = {problem.file for problem in relevant}
        if broken and broken < self.reading.tests:
            if wanted.keep_going:
                self._leave_out(broken)
                return
            raise WorkspaceError(self.reading.problems, hint=hint)
        if relevant:
            raise WorkspaceError(self.reading.problems)

    def _leave_out(self, files: Collection[str]) -> None:
        """Go on as if there were no such test files."""
        reading = self.reading
        for path in files:
            reading.files.pop(path, None)
            reading.nodes.pop(path, None)
        self.left_out = [error for error in reading.errors if error.file in files]
        reading.problems = [problem for problem in reading.problems if problem.file not in files]

    def lay_out(
        self, wanted: SelectionOptions, *, judge_only: bool = False, begun: float = math.inf
    ) -> Scope:
        """What a command is about; with `judge_only`, `judge`. `begun` is when the run did."""
        candidates, judges = self.candidates(wanted), self.judges(wanted)
        answers, judgements = history_filters.bounds_of(
            wanted, self.settings, judge_only=judge_only, begun=begun
        )
        portion = history_filters.portion_of(wanted)
        is_plain = history_filters.is_plain(wanted)
        first = portion.limit if is_plain else None
        selection = self.selection(wanted)
        files = {
            path: file
            for path, file in files_of(self.reading).items()
            if selection.covers_file(path)
        }
        matches = selection.matcher()
        answers_it = partial(_is_answered, candidates=candidates, models=wanted.models)
        if first and not candidates:  # what nobody answers is told, however few are taken
            for path, file in files.items():
                for case in file.cases if isinstance(file.cases, tuple) else ():
                    if matches(path, case):
                        answers_it(case)
        cases: list[Placed] = []
        cells: Collection[Cell]
        if is_plain and (first or portion.is_all):
            cells, skipped = _lay_out(
                files,
                lambda path, case: matches(path, case) and answers_it(case),
                candidates,
                judges,
                wanted,
                first,
            )
        else:
            cases = [one for one in self._selected(files, matches, wanted) if answers_it(one[1])]
            chosen = {(path, case.row) for path, case in cases}
            cells, skipped = build_cells(
                files,
                candidates,
                judges,
                lambda path, case: (path, case.row) in chosen,
                attempts=wanted.attempts,
            )
        for judge in summarise(cells).judges.values():
            self.keep_judges(judge)
        if not cells and not skipped:
            raise NothingSelectedError(
                "nothing is selected",
                hint="'evalstore ls cases' lists the cases, 'evalstore ls tags' the tags",
            )
        tried: retries.FailedWork | None = None
        if wanted.last_failed:
            cells, skipped = history_filters.only_failed(self, [*cells]), []
        if wanted.retry_errors:
            cells, tried = retries.only_tried(self, [*cells], wanted, answers, judgements)
            skipped = []
        if not portion.is_all and not first:
            has_cell = {(pair.file, pair.row) for pair in skipped}
            has_cell |= {(cell.file, cell.case.row) for cell in cells}
            cases = [one for one in cases if (one[0], one[1].row) in has_cell]
            taken = {
                (path, case.row) for path, case in history_filters.take_portion(cases, portion)
            }
            cells = [cell for cell in cells if (cell.file, cell.case.row) in taken]
            skipped = [pair for pair in skipped if (pair.file, pair.row) in taken]
        self._require_judges(summarise(cells), judges)
        again = UNSETTLED if wanted.retry_errors else ()
        return Scope(cells, skipped, answers, judgements, again, tried, judge_only, begun)

    def plan(self, wanted: SelectionOptions, *, judge_only: bool = False) -> Plan:
        """What a run would do; with `judge_only`, what `judge` would do."""
        layout = self.lay_out(wanted, judge_only=judge_only)
        plan = self.fill(layout, [*layout.cells])
        plan.skipped = layout.skipped
        return plan

    def fill(self, layout: Scope, cells: Sequence[Cell]) -> Plan:
        """The plan for some cells of a layout: what of them is stored, and what is missing."""
        plan = Plan(cells=[*cells], blocked=self.code.find_blocked(cells))
        samples = self.store.find_samples(plan.questions)
        plan_asks(plan, samples, layout.answers)
        votes = self.store.find_votes(plan.subjects())
        plan_judgements(plan, votes, layout.judgements, layout.again, layout.begun)
        self.code.note_waiting(cells, plan.waiting)
        if layout.tried:
            retries.drop_untried(plan, *layout.tried)
        if layout.judge_only:
            plan.asks = []
            plan.judgements = [judgement for judgement in plan.judgements if judgement.sessions]
        return plan

    def _selected(
        self,
        files: Mapping[str, CaseFile],
        matches: Callable[[str, Case], bool],
        wanted: SelectionOptions,
    ) -> list[Placed]:
        cases = [
            (path, case)
            for path, file in files.items()
            for case in file.cases
            if matches(path, case)
        ]
        return history_filters.only_changed(self, cases) if cases and wanted.changed else cases

    def _require_judges(self, cells: Summary, judges: list[Judge]) -> None:
        """Warn of tests that no evaluator judges; raise when nothing else is to be judged."""
        files = [*cells.unjudged]
        if not files:
            return
        more = f" and {len(files) - 1:,} more" if len(files) > 1 else ""
        what = f"{files[0]}{more} {'are' if more else 'is'} judged by models"
        hint = "name a model with -J, or list some under 'evaluators:' in evalstore.yaml"
        if judges:
            what += f", but none of the evaluators is meant for {'them' if more else 'it'}"
            hint = "look at its 'evaluators:' and at the tags the settings give to evaluators"
        else:
            what += ", but there are no evaluators"
        if not cells.has_others:
            raise EvalstoreError(what, hint=hint)
        self._warn(f"{what}: what they must judge stays pending ({hint})")

    def name_of_version(self, kind: str, id: str) -> str | None:
        """The name that files use for a version now."""
        place = self.place_of_version(kind, id)
        return place[0] if place else None

    def place_of_version(self, kind: str, id: str) -> tuple[str, int] | None:
        """The name that files use for a version now, and its number among those of that name."""
        if kind not in self._places:
            places = self._places.setdefault(kind, {})
            for name, ids in self.reading.names.get(f"{kind}s", {}).items():
                for number, version in enumerate(ids):
                    places.setdefault(version, (name, number))
        return self._places[kind].get(id)

    def load_contents(self, kind: str, ids: Iterable[str]) -> dict[str, Json]:
        """The contents of versions, read now or stored; raises `StoreError` when one is missing."""
        fresh = self.reading.contents
        wanted = list(dict.fromkeys(ids))
        found = {id: json.loads(fresh[id][1]) for id in wanted if id in fresh}
        stored = [id for id in wanted if id not in found]
        return found | require(self.store.load_contents(kind, stored), stored, kind)


def _is_answered(case: Case, candidates: list[Candidate], models: tuple[str, ...]) -> bool:
    """Whether the models on the command line, or of the settings, answer a case.

    Raises `EvalstoreError` when none could be meant.
    """
    if case.recorded:
        return not models or RECORDED in models
    if candidates:
        return True
    if RECORDED in models:
        return False
    raise EvalstoreError(
        "there are no candidates",
        hint="name a model with -m, or list some under 'candidates:' in evalstore.yaml",
    )


def _lay_out(
    files: Mapping[str, CaseFile],
    selected: Callable[[str, Case], bool],
    candidates: list[Candidate],
    judges: list[Judge],
    wanted: SelectionOptions,
    most: int | None,
) -> tuple[Collection[Cell], list[SkippedPair]]:
    """The cells of the selected cases; those of files that are not in memory are streamed."""
    made_of = (files, candidates, judges, selected)
    are_stored = not all(isinstance(file.cases, tuple) for file in files.values())
    if are_stored and most is None:
        cells = StreamedCells(partial(generate_cells, *made_of, attempts=wanted.attempts))
        return cells, cells.skipped
    return build_cells(*made_of, attempts=wanted.attempts, most=most)


class VersionBuffer:
    """Stores versions while files are read, when there are so many that they weigh.

    With `strict` a store that cannot be written to is an error; else they stay in memory.
    Without a store only files and the nodes of cases are kept, the nodes compressed.
    """

    def __init__(self, store: Store | None, *, strict: bool = False) -> None:
        self._store = store
        self._strict = strict
        self._took = False
        self._contents: dict[str, tuple[str, str]] = {}
        self._files: dict[str, FileVersion] = {}
        self._nodes: dict[str, bytes] = {}

    def find_case_files(self, ids: Iterable[str]) -> dict[str, CaseFile]:
        """The cases of files by their nodes, of the store or of what was kept in its place."""
        if self._store is not None:
            return self._store.find_case_files(ids)
        return restore_case_files(self._load(id for id in ids if id in self._nodes), self._load)

    def _load(self, ids: Iterable[str]) -> dict[str, Json]:
        return {id: json.loads(zlib.decompress(self._nodes[id])) for id in ids}

    def take(
        self, contents: Mapping[str, tuple[str, str]], files: Mapping[str, FileVersion]
    ) -> None:
        """Take contents and files by id."""
        if self._store is None:
            self._files |= files
            for id, (kind, content) in contents.items():
                if kind == "cases":
                    self._nodes[id] = zlib.compress(content.encode(), level=1)
            return
        try:
            self._store.ensure_versions(contents, files)
            self._took = True
        except StoreError:
            if self._strict:
                raise
            self._contents |= contents
            self._files |= files

    def finish(self, workspace: Workspace, reading: Reading) -> None:
        """Give back what could not be stored; else remember what was read, too."""
        reading.contents = self._contents | reading.contents
        reading.blobs = self._files | reading.blobs
        if (
            self._store
            and self._took
            and not self._strict
            and not self._contents
            and not reading.errors
        ):
            with suppress(StoreError):
                self._store.ensure_versions(reading.contents, reading.blobs)
                reading.save_index(workspace)


def files_of(reading: Reading) -> Mapping[str, CaseFile]:
    """The cases by file, in order of the paths."""
    return dict(sorted(reading.files.items()))

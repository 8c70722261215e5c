"""`diff`: two sides paired case by case, each a run or the workspace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from evalstore.display import plural
from evalstore.errors import EvalstoreError
from evalstore.files.fields import suggest
from evalstore.operations.diff_sides import (
    WORKSPACE,
    Side,
    case_files,
    comparable,
    fill_in,
    follow_renames,
    name_gone,
    only_models,
    run_side,
    workspace_side,
)
from evalstore.operations.file_edits import find_edits
from evalstore.operations.json_output import to_json
from evalstore.operations.prompt_names import prompt_labels
from evalstore.operations.rendering import answer_text
from evalstore.planning.open_project import open_catalogue, open_project, open_store
from evalstore.planning.options import Location, SelectionOptions
from evalstore.planning.path_targets import find_targets
from evalstore.planning.planner import require_sound
from evalstore.planning.selection import Selection
from evalstore.reports.comparison import Comparison, Pair, change_of_tests, compare, compare_models
from evalstore.reports.version_diff import Difference, unified
from evalstore.results import Result
from evalstore.store.results import join_feedback
from evalstore.values import Json

if TYPE_CHECKING:
    from evalstore.planning.project import Project

Sessions = tuple[str, ...]


@dataclass
class Diff:
    """What differs between two sides."""

    was: str
    now: str
    """A run's id, or `workspace`."""
    comparison: Comparison
    edits: dict[str, list[Difference]]
    """Test file -> what was edited."""
    feedback: dict[str, str]
    answers: dict[str, str] = field(default_factory=dict)
    """Session id -> its answer, when answers are wanted."""
    prompts: dict[str, dict[str | None, str]] = field(default_factory=dict)
    """Test files with several system prompts -> what to call each."""
    notes: list[str] = field(default_factory=list)
    """What a reader must know of the sides."""
    asked_otherwise: dict[tuple[Sessions, Sessions], str] = field(default_factory=dict)
    """Sessions of both sides -> in what their questions differ beside test and prompt."""
    models: tuple[str, str] | None = None
    """The candidates that are compared, when both sides are those of one run."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs."""
        found = self.comparison
        return not (
            found.broke or found.fixed or found.changed or found.new or found.gone or self.edits
        )

    @property
    def names(self) -> tuple[str, str]:
        """What to call the sides."""
        return self.models or (_name(self.was), _name(self.now))

    def swapped(self) -> Diff:
        """The same looked at from the other side."""
        return replace(
            self,
            was=self.now,
            now=self.was,
            comparison=self.comparison.swapped(),
            edits={
                file: [difference.swapped() for difference in found]
                for file, found in self.edits.items()
            },
            models=self.models and (self.models[1], self.models[0]),
        )

    def feedback_of(self, result: Result | None) -> str:
        """The feedback on one side of a pair."""
        return join_feedback(result.evaluations, self.feedback) if result else ""

    def reason(self, pair: Pair) -> str:
        """What of the definitions or the answer changed between the two sides."""
        was, now = pair.was, pair.now
        if was is None or now is None:
            return "new" if was is None else "gone"
        found = [
            *change_of_tests(was, now),
            *(["system prompt changed"] if was.prompt != now.prompt else []),
            *(["evaluation changed"] if was.evaluation != now.evaluation else []),
        ]
        if not found and self.models is None and was.sessions != now.sessions:
            found = [self.asked_otherwise.get((was.sessions, now.sessions), "another answer")]
        is_new = self.models is None and was.evaluations != now.evaluations
        return ", ".join(found) or ("another judgement" if is_new else "")

    def answer_diff(self, pair: Pair) -> list[str]:
        """The unified diff of the first answers of both sides; empty when they are equal."""
        was = self.answers.get(pair.was.sessions[0], "") if pair.was and pair.was.sessions else ""
        now = self.answers.get(pair.now.sessions[0], "") if pair.now and pair.now.sessions else ""
        return unified(was, now, *self.names)

    def document(self) -> Json:
        """As JSON."""
        found = self.comparison
        before, after = found.rates()
        return {
            "from": self.was,
            "to": self.now,
            **({"models": list(self.models)} if self.models else {}),
            **{
                name: [self._pair(pair) for pair in getattr(found, name)]
                for name in ("broke", "fixed", "changed", "new", "gone")
            },
            "unchanged": len(found.unchanged),
            "notes": self.notes,
            "edits": [
                {"file": file, "edits": to_json(edits)} for file, edits in self.edits.items()
            ],
            "statistics": {
                "was": to_json(before),
                "now": to_json(after),
                **found.change().document(),
            },
        }

    def _pair(self, pair: Pair) -> Json:
        shown = pair.either
        document = {
            "file": shown.file,
            "row": shown.row,
            "prompt": shown.prompt,
            "model": shown.model,
            "was": self._side(pair.was),
            "now": self._side(pair.now),
            "reason": self.reason(pair),
        }
        if self.answers:
            document["answers"] = self.answer_diff(pair)
        return document

    def _side(self, result: Result | None) -> Json:
        if result is None:
            return None
        return {
            "verdict": result.verdict or ("pending" if result.evaluation else None),
            "feedback": self.feedback_of(result),
            "session": result.sessions[0] if result.sessions else None,
        }


def _name(side: str) -> str:
    """A run as people see it, or `workspace`, which is not to be cut."""
    return side if side == WORKSPACE else side[:8]


def diff(
    location: Location,
    first: str | None = None,
    second: str | None = None,
    *,
    wanted: SelectionOptions | None = None,
    answers: bool = False,
) -> Diff:
    """Compare a run (default: the latest) with another run, or with the workspace.

    The workspace's verdicts are those that stored answers and judgements give it now. Of two
    runs only the store is read: what is wrong with test files does not matter.
    """
    wanted = wanted or SelectionOptions()
    with _open(location, wanted, needs_files=second is None) as project:
        was = run_side(project, first or "@")
        now = run_side(project, second) if second else workspace_side(project, wanted)
        was = follow_renames(was, now, project.settings.paths["tests"])
        selection = _select(project, wanted.paths, was, now)
        was, now = (only_models(side, wanted.models) for side in (was, now))
        filled = fill_in(project, was, now, selection)
        comparison = compare(comparable(filled, now, selection), comparable(now, filled, selection))
        name_gone(comparison)
        both = {result.file for result in filled.results} & {result.file for result in now.results}
        edited = {
            path: (filled.files[filled.nodes[path]], now.files[node])
            for path, node in sorted(now.nodes.items())
            if filled.nodes.get(path, node) != node and path in both and selection.covers_file(path)
        }
        edits = find_edits(project.versions, edited)
        sides = _listed(comparison)
        return Diff(
            was.name,
            now.name,
            comparison,
            {path: found for path, found in edits.items() if found},
            project.store.find_feedback(id for side in sides for id in side.evaluations),
            _answers(project, sides) if answers else {},
            prompt_labels(project, [*filled.results, *now.results]),
            list(_notes(was, filled, now)),
            asked_otherwise=_asked_otherwise(project, comparison),
        )


def diff_models(
    location: Location,
    revision: str | None,
    models: tuple[str, str],
    *,
    wanted: SelectionOptions | None = None,
    answers: bool = False,
) -> Diff:
    """Compare two candidates of one run, or of the workspace when there is no revision.

    Raises `EvalstoreError` for a candidate that is not in it.
    """
    wanted = wanted or SelectionOptions()
    with _open(location, wanted, needs_files=revision is None) as project:
        side = (
            run_side(project, revision) if revision else workspace_side(project, SelectionOptions())
        )
        known = {result.model for result in side.results}
        for model in models:
            if model not in known:
                raise EvalstoreError(
                    f"'{model}' is not a candidate of "
                    + ("the workspace" if side.name == WORKSPACE else f"run {side.name[:8]}"),
                    hint=suggest(model, known, "candidates"),
                )
        selection = _select(project, wanted.paths, side)
        was, now = (
            [
                result
                for result in side.results
                if result.model == model and selection.covers_file(result.file)
            ]
            for model in models
        )
        comparison = compare_models(was, now)
        sides = _listed(comparison)
        return Diff(
            side.name,
            side.name,
            comparison,
            {},
            project.store.find_feedback(id for one in sides for id in one.evaluations),
            _answers(project, sides) if answers else {},
            prompt_labels(project, side.results),
            models=models,
        )


@contextmanager
def _open(
    location: Location, selection: SelectionOptions, *, needs_files: bool
) -> Iterator[Project]:
    """The workspace with its test files; of two stored runs they tell nothing, nor do errors."""
    if not needs_files:
        with open_catalogue(location) as project:
            yield project
        return
    with open_project(location) as project:
        require_sound(project, selection)
        yield project


def _select(project: Project, paths: tuple[str, ...], *sides: Side) -> Selection:
    """What the paths select of the sides; raises `EvalstoreError` for one that names nothing."""
    if not paths:
        return Selection()
    if any(side.name == WORKSPACE for side in sides):
        return Selection(project.targets(paths))
    files = case_files(*sides)
    return Selection(find_targets(project.where, project.workspace, files.keys(), files, paths))


def _notes(was: Side, filled: Side, now: Side) -> Iterator[str]:
    """What a reader must know of sides that are about a selection of the cases."""
    others = len(filled.results) - len(was.results)
    for side in (was, now):
        if not side.selection:
            continue
        about = f"{side.selection} ({plural(len(side.results), 'case')})"
        rest = "only those are compared"
        if side is was and others:
            rest = f"{plural(others, 'other')} as in the last run before it that judged them"
        yield f"run {side.name[:8]} was about {about}: {rest}"


def _asked_otherwise(project: Project, found: Comparison) -> dict[tuple[Sessions, Sessions], str]:
    """In what the questions differ of pairs with the same test and system prompt."""
    pairs = {
        (pair.was.sessions, pair.now.sessions)
        for group in (found.broke, found.fixed, found.changed)
        for pair in group
        if pair.was and pair.now
        if pair.was.sessions and pair.now.sessions and pair.was.sessions != pair.now.sessions
        if (pair.was.tests, pair.was.prompt) == (pair.now.tests, pair.now.prompt)
    }
    ids = {sessions[0] for pair in pairs for sessions in pair}
    asked = {id: one.question for id, one in project.store.find_sessions(ids).items()}
    words: dict[tuple[Sessions, Sessions], str] = {}
    for was, now in pairs:
        if was[0] not in asked or now[0] not in asked:
            continue
        old, new = asked[was[0]], asked[now[0]]
        if old.model != new.model:
            words[was, now] = "model changed"
        elif old.temperature != new.temperature:
            words[was, now] = f"temperature {old.temperature} -> {new.temperature}"
        elif old.seed != new.seed:
            words[was, now] = f"seed {old.seed} -> {new.seed}"
    return words


def _listed(found: Comparison) -> list[Result]:
    """Both sides of all pairs that are not unchanged."""
    groups = (found.broke, found.fixed, found.changed, found.new, found.gone)
    pairs = [pair for group in groups for pair in group]
    return [side for pair in pairs for side in (pair.was, pair.now) if side]


def read_answers(location: Location, sessions: Sequence[str]) -> dict[str, str]:
    """The last answers of these sessions by id, as they are read."""
    with open_store(location) as store:
        return {
            id: answer_text(session.answer) for id, session in store.find_sessions(sessions).items()
        }


def _answers(project: Project, sides: Sequence[Result]) -> dict[str, str]:
    ids = [side.sessions[0] for side in sides if side.sessions]
    return {
        id: answer_text(session.answer) for id, session in project.store.find_sessions(ids).items()
    }

"""The command `diff`: compares two sides case by case, each a run or the workspace."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from evalstore.errors import EvalstoreError
from evalstore.operations.diff_attempts import (
    change_text,
    choose_attempts,
    read_side_attempts,
    sessions_to_show,
    with_answers,
)
from evalstore.operations.diff_notes import (
    Sessions,
    find_same_answers,
    question_changes,
    selection_notes,
)
from evalstore.operations.diff_sides import (
    comparable,
    fill_older_side,
    find_labels,
    follow_renames,
    name_gone,
    only_models,
    open_sides,
    require_candidate,
    run_side,
    select_cases,
    side_of_candidates,
    workspace_side,
)
from evalstore.operations.file_edits import find_edits
from evalstore.operations.judgement_changes import Judgements, judgement_changes
from evalstore.operations.prompt_names import prompt_labels
from evalstore.operations.row_ids import has_edited_rows
from evalstore.operations.side_names import WORKSPACE
from evalstore.planning.candidate_order import candidate_order
from evalstore.planning.options import Location, SelectionOptions
from evalstore.reports.answer_pairs import has_equal_texts, sessions_to_compare
from evalstore.reports.comparison import Comparison, Pair, change_of_tests, compare, compare_models
from evalstore.reports.version_diff import Difference, unified
from evalstore.results import Result
from evalstore.store.results import join_feedback
from evalstore.store.revisions import WORK
from evalstore.values import Json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalstore.operations.diff_attempts import PairAttempts
    from evalstore.operations.views.attempts import Attempts
    from evalstore.reports.paired_tests import RateChange
    from evalstore.reports.statistics import Rate


@dataclass
class Diff:
    """The differences between two sides."""

    was: str
    now: str
    """A run's id, or `workspace`."""
    comparison: Comparison
    edits: dict[str, list[Difference]]
    """Test file -> the edits of its cases."""
    feedback: dict[str, str]
    """The feedback by the id of its judgement."""
    answers: dict[str, str] = field(default_factory=dict)
    """Session id -> its answer, when answers were requested."""
    attempts: tuple[Attempts, Attempts] = field(default_factory=lambda: ({}, {}))
    """The attempts of the results of both sides that differ and have several."""
    prompts: dict[str, dict[str | None, str]] = field(default_factory=dict)
    """Test files with several system prompts -> the name of each."""
    notes: list[str] = field(default_factory=list)
    """Notes for a reader about the sides."""
    question_differences: dict[tuple[Sessions, Sessions], str] = field(default_factory=dict)
    """Sessions of both sides -> how their questions differ, apart from test and prompt.

    In both directions.
    """
    judgement_differences: dict[tuple[Judgements, Judgements], list[str]] = field(
        default_factory=dict
    )
    """Judgements of both sides -> labels and changes of evaluators between them.

    In both directions.
    """
    rules: tuple[str, str] = ("", "")
    """The rules by which several votes make a verdict, on both sides."""
    earlier: dict[Result, str] = field(default_factory=dict)
    """Results of the first side that its run lacks -> the id of the earlier run that has them."""
    models: tuple[str, str] | None = None
    """The candidates that are compared, when both sides are those of one run."""
    labels: frozenset[str] = frozenset()
    """The ids of the judgements that are labels of people."""
    has_edited_rows: bool = False
    """Whether rows that are new may be edited ones, which the field `rowId` would show."""
    same_answers: frozenset[tuple[Sessions, Sessions]] = frozenset()
    """Sessions of both sides with the same answers to other questions, in both directions."""
    prompt_names: Mapping[str | None, str] = field(default_factory=dict)
    """The names of all system prompts by id, where they are asked for."""
    is_now_partial: bool = False
    """Whether the newer side is a run of some cases, and the older one is not of the same."""

    @property
    def is_empty(self) -> bool:
        """Return whether nothing differs."""
        return not (self.broke or self.fixed or self.changed or self.new or self.gone or self.edits)

    @property
    def broke(self) -> list[Pair]:
        """Return cases that passed on the first side and do not on the second."""
        return self.comparison.broke

    @property
    def fixed(self) -> list[Pair]:
        """Return cases that did not pass on the first side and do on the second."""
        return self.comparison.fixed

    @property
    def changed(self) -> list[Pair]:
        """Return other cases with another verdict, or with another answer."""
        return self.comparison.changed

    @property
    def new(self) -> list[Pair]:
        """Return cases that only the second side has."""
        return self.comparison.new

    @property
    def gone(self) -> list[Pair]:
        """Return cases that only the first side has."""
        return self.comparison.gone

    @property
    def rates(self) -> tuple[Rate, Rate]:
        """Return the pass rates of both sides over the cases that are judged on both."""
        return self.comparison.rates()

    @property
    def change(self) -> RateChange:
        """Return the difference of the pass rates, with its 95 % interval and p-value."""
        return self.comparison.change()

    @property
    def p_value(self) -> float:
        """Return the p-value of the sign-flip test over files: 0..1, 1 without a difference."""
        return self.change.p

    @property
    def names(self) -> tuple[str, str]:
        """Return the names of the sides."""
        return self.models or (_name(self.was), _name(self.now))

    def swapped(self) -> Diff:
        """Return the same comparison with the sides exchanged."""
        return replace(
            self,
            was=self.now,
            now=self.was,
            comparison=self.comparison.swapped(),
            edits={
                file: [difference.swapped() for difference in differences]
                for file, differences in self.edits.items()
            },
            rules=(self.rules[1], self.rules[0]),
            models=self.models and (self.models[1], self.models[0]),
            attempts=(self.attempts[1], self.attempts[0]),
        )

    def attempts_of(self, pair: Pair) -> PairAttempts:
        """Return the attempts of both sides; empty for a side that does not have several."""
        was, now = (
            known.get(side.evaluations, ()) if side else ()
            for known, side in zip(self.attempts, (pair.was, pair.now), strict=True)
        )
        return was, now

    def shown_sessions(self, pair: Pair) -> tuple[str | None, str | None]:
        """Return the answers of both sides that show the change."""
        attempts = self.attempts_of(pair)
        return sessions_to_show(pair, attempts, choose_attempts(pair, attempts))

    def shown_judgements(self, pair: Pair) -> tuple[Sequence[str], Sequence[str]]:
        """Return the judgements of both sides: of several attempts, those on the shown one."""
        attempts = self.attempts_of(pair)
        chosen = choose_attempts(pair, attempts)
        was, now = (
            attempt.judgements if listed and attempt else side.evaluations if side else ()
            for side, listed, attempt in zip((pair.was, pair.now), attempts, chosen, strict=True)
        )
        return was, now

    def attempts_text(self, pair: Pair) -> str:
        """Return `1 of 5 attempts failed -> 3 of 5`; empty when neither side has several."""
        return change_text(self.attempts_of(pair))

    def feedback_of(self, result: Result | None) -> str:
        """Return the feedback on one side of a pair: of a label, only its note."""
        return self._join_feedback(result.evaluations) if result else ""

    def _join_feedback(self, judgements: Sequence[str]) -> str:
        labels = [id for id in judgements if id in self.labels]
        return join_feedback(labels or judgements, self.feedback)

    def feedback_on(self, pair: Pair) -> tuple[str, str]:
        """Return the feedback on both sides, of several attempts that on the shown one."""
        was, now = map(self._join_feedback, self.shown_judgements(pair))
        return was, now

    def reason(self, pair: Pair) -> str:
        """Return the change that explains a pair: of a definition, the answer or a judgement."""
        was, now = pair.was, pair.now
        if was is None or now is None:
            return "new" if was is None else "gone"
        changes = [
            *change_of_tests(was, now),
            *(["system prompt changed"] if was.prompt != now.prompt else []),
            *(["evaluation changed"] if was.evaluation != now.evaluation else []),
        ]
        if self.models is not None:
            return ", ".join(changes)
        if not changes:
            changes = self._other_answer(was, now)
        elif (was.sessions, now.sessions) in self.same_answers:
            changes.append("the same answer")
        changes += self.judgement_differences.get((was.evaluations, now.evaluations), [])
        return ", ".join(changes) or self._other_judgement(was, now)

    def _other_answer(self, was: Result, now: Result) -> list[str]:
        """Return how the answers to the same question differ; empty if they are the same."""
        if was.sessions == now.sessions:
            return []
        if not was.sessions or not now.sessions:
            return ["not answered" if was.sessions else "answered"]
        return [self.question_differences.get((was.sessions, now.sessions), "another answer")]

    def _other_judgement(self, was: Result, now: Result) -> str:
        """Return how the judgement of the same answer differs; empty if it is the same."""
        if was.is_missing != now.is_missing:
            return "judged" if was.is_missing else "not judged"
        if was.evaluations != now.evaluations:
            return "another judgement"
        is_filled_in = was in self.earlier or now in self.earlier
        if was.verdict != now.verdict and self.rules[0] != self.rules[1] and not is_filled_in:
            return f"verdict: {' -> '.join(self.rules)}"
        return ""

    def answer_diff(self, pair: Pair) -> list[str]:
        """Return the unified diff of the shown answers of both sides; empty when they are equal."""
        was, now = (self.answers.get(id or "", "") for id in self.shown_sessions(pair))
        return unified(was, now, *self.names)

    def document(self) -> Json:
        """Return the comparison as JSON."""
        from evalstore.operations.diff_document import diff_document

        return diff_document(self)

    def _repr_html_(self) -> str:
        """Return the comparison as notebooks show it: the pass rates, and what changed."""
        from evalstore.operations.diff_table import diff_as_html

        return diff_as_html(self)


def _name(side: str) -> str:
    """Return the short id of a run, or `workspace`."""
    return side if side == WORKSPACE else side[:8]


def diff(
    location: Location,
    first: str | None = None,
    second: str | None = None,
    *,
    selection: SelectionOptions | None = None,
    answers: bool = False,
) -> Diff:
    """Compare a run (default: the latest) with another run, or with the workspace.

    The verdicts of the workspace follow from the stored answers and judgements. To compare two
    runs, only the store is read: errors of test files do not matter.
    """
    selection = selection or SelectionOptions()
    second = None if second == WORK else second
    if first == WORK:
        if second is None:
            raise EvalstoreError(
                "both sides are the workspace", hint=f"name a run: 'evalstore diff @ {WORK}'"
            )
        return diff(location, second, selection=selection, answers=answers).swapped()
    with open_sides(location, selection, needs_files=second is None) as project:
        was = run_side(project, first or "@")
        now = run_side(project, second) if second else workspace_side(project, selection)
        was = follow_renames(project, was, now)
        for model in selection.models:
            require_candidate(model, was, now)
        selected = select_cases(project, selection.paths, was, now)
        was, now = (only_models(side, selection.models) for side in (was, now))
        filled = fill_older_side(project, was, now, selected)
        comparison = compare(
            comparable(filled, now, selected),
            comparable(now, filled, selected),
            candidate_order(project.settings),
        )
        sessions = project.store.find_sessions(sessions_to_compare(comparison.flips))
        comparison.count_as_unchanged(lambda pair: has_equal_texts(pair, sessions))
        name_gone(comparison)
        both = {result.file for result in filled.results} & {result.file for result in now.results}
        edited = {
            path: (filled.files[filled.nodes[path]], now.files[node])
            for path, node in sorted(now.nodes.items())
            if filled.nodes.get(path, node) != node and path in both and selected.covers_file(path)
        }
        edits = find_edits(project.versions, edited, project.name_of_version)
        results = comparison.differing
        attempts = (
            read_side_attempts(
                project.store, filled, (pair.was for pair in comparison.differing_pairs)
            ),
            read_side_attempts(
                project.store, now, (pair.now for pair in comparison.differing_pairs)
            ),
        )
        found = Diff(
            was.name,
            now.name,
            comparison,
            {path: differences for path, differences in edits.items() if differences},
            project.store.find_feedback(id for result in results for id in result.evaluations),
            prompts=prompt_labels(project, [*filled.results, *now.results]),
            notes=list(selection_notes(was, filled, now)),
            question_differences=question_changes(project, comparison.flips, sessions),
            judgement_differences=judgement_changes(
                project.store,
                project.versions,
                [side for pair in comparison.flips for side in (pair, pair.swapped())],
            ),
            rules=(was.rule, now.rule),
            earlier=filled.earlier,
            labels=find_labels(project, results),
            has_edited_rows=has_edited_rows(project.workspace, comparison),
            is_now_partial=now.selection not in ("", was.selection),
            attempts=attempts,
            same_answers=find_same_answers(project.store, comparison.changed),
        )
        return with_answers(project, found) if answers else found


def diff_models(
    location: Location,
    revision: str | None,
    models: tuple[str, str],
    *,
    selection: SelectionOptions | None = None,
    answers: bool = False,
) -> Diff:
    """Compare two candidates of one run, or of the workspace without a revision.

    Raises `EvalstoreError` for an unknown candidate.
    """
    selection = selection or SelectionOptions()
    revision = None if revision == WORK else revision
    with open_sides(location, selection, needs_files=revision is None) as project:
        side = side_of_candidates(project, revision)
        for model in models:
            require_candidate(model, side)
        selected = select_cases(project, selection.paths, side)
        was, now = (
            [
                result
                for result in side.results
                if result.model == model and selected.covers_file(result.file)
            ]
            for model in models
        )
        comparison = compare_models(was, now)
        results = comparison.differing
        attempts = read_side_attempts(project.store, side, results)
        found = Diff(
            side.name,
            side.name,
            comparison,
            {},
            project.store.find_feedback(id for result in results for id in result.evaluations),
            prompts=prompt_labels(project, side.results),
            notes=list(selection_notes(side, side, side)),
            models=models,
            is_now_partial=bool(side.selection),
            labels=find_labels(project, results),
            attempts=(attempts, attempts),
        )
        return with_answers(project, found) if answers else found

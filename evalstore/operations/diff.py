"""The command `diff`: compares two sides case by case, each a run or the workspace."""

from __future__ import annotations

import shlex
from contextlib import nullcontext
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from evalstore.errors import EvalstoreError
from evalstore.operations.diff_attempts import read_side_attempts
from evalstore.operations.diff_causes import find_causes
from evalstore.operations.diff_notes import (
    alone_notes,
    evaluator_notes,
    question_changes,
    selection_notes,
)
from evalstore.operations.diff_reasons import PairReasons
from evalstore.operations.diff_result import Diff
from evalstore.operations.diff_selection import select_cases
from evalstore.operations.diff_sides import (
    compare_sides,
    find_labels,
    follow_renames,
    name_gone,
    only_models,
    open_sides,
    read_answers,
    require_candidate,
    run_side,
    side_of_candidates,
    workspace_side,
)
from evalstore.operations.equal_parts import as_equal, find_equal_parts, share_rows
from evalstore.operations.file_edits import find_edits
from evalstore.operations.judgement_changes import judgement_changes
from evalstore.operations.prompt_names import (
    PromptNames,
    find_prompt,
    name_prompts,
    name_prompts_of_run,
    prompt_labels,
    prompts_of,
    settled_places,
)
from evalstore.operations.row_ids import has_edited_rows
from evalstore.operations.same_answers import find_same_answers, sessions_of
from evalstore.planning.candidate_order import candidate_order
from evalstore.planning.options import Location, SelectionOptions
from evalstore.planning.settled_parts import SettledParts
from evalstore.reports.answer_pairs import has_equal_texts, sessions_to_compare
from evalstore.reports.comparison import compare_models, compare_prompts
from evalstore.store.revisions import WORK, resolve_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalstore.operations.diff_sides import Side
    from evalstore.planning.project import Project
    from evalstore.reports.comparison import Comparison
    from evalstore.runs import Run


def diff(
    location: Location,
    first: str | None = None,
    second: str | None = None,
    *,
    selection: SelectionOptions | None = None,
    answers: bool = False,
    opened: Project | None = None,
) -> Diff:
    """Compare a run (default: the latest) with another run, or with the workspace.

    The verdicts of the workspace follow from the stored answers and judgements. To compare two
    runs, only the store is read: errors of test files do not matter. `opened` is the project if
    it is open already, with its test files read where the workspace is compared.
    """
    selection = selection or SelectionOptions()
    second = None if second == WORK else second
    if first == WORK:
        if second is None:
            raise EvalstoreError(
                "both sides are the workspace", hint=f"name a run: 'evalstore diff @ {WORK}'"
            )
        found = diff(location, second, selection=selection, answers=answers, opened=opened)
        return found.swapped()
    with (
        nullcontext(opened)
        if opened
        else open_sides(location, selection, needs_files=second is None)
    ) as project:
        store, folder = project.store, project.settings.paths["tests"]
        runs = [resolve_run(store, revision) for revision in (first or "@", second) if revision]
        was, now = _read_sides(project, runs, selection)
        equal = now.equal
        was = follow_renames(store, folder, was, now)
        for model in selection.models:
            require_candidate(model, was, now)
        selected = select_cases(project, selection.paths, was, now)
        was, now = (only_models(side, selection.models) for side in (was, now))
        candidates = candidate_order(project.settings)
        filled, comparison = compare_sides(store, folder, was, now, selected, candidates)
        comparison.equal = as_equal(equal)
        sessions = project.store.find_sessions(sessions_to_compare(comparison.flips))
        comparison.count_as_unchanged(lambda pair: has_equal_texts(pair, sessions))
        same = find_same_answers(store, comparison.changed, sessions)
        comparison.set_apart_same_answers(lambda pair: sessions_of(pair) in same)
        causes = (
            find_causes((pair.either for pair in comparison.gone), filled, now),
            find_causes((pair.either for pair in comparison.new), now, filled),
        )
        name_gone(comparison)
        both = {result.file for result in filled.results} & {result.file for result in now.results}
        both |= equal.by_file.keys()
        edited = {
            path: (filled.files[filled.nodes[path]], now.files[node])
            for path, node in sorted(now.nodes.items())
            if filled.nodes.get(path, node) != node and path in both and selected.covers_file(path)
        }
        names = PromptNames(location, project)
        names.expect(prompts_of(file for pair in edited.values() for file in pair))
        edits = find_edits(project.versions, edited, names)
        results = comparison.differing
        judgements = judgement_changes(
            project.store,
            project.versions,
            [side for pair in comparison.on_both_sides for side in (pair, pair.swapped())],
        )
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
            prompts=prompt_labels(
                project, chain(filled.results, now.results, settled_places(equal))
            ),
            notes=[
                *selection_notes(was, filled, now),
                *evaluator_notes(project, runs, selection, chain(*judgements.values())),
            ],
            reasons=PairReasons(
                question_changes(project, comparison.on_both_sides, sessions),
                judgements,
                same,
                (was.rule, now.rule),
                filled.earlier,
            ),
            labels=find_labels(project, results),
            has_edited_rows=has_edited_rows(project.workspace, comparison),
            causes=causes,
            is_now_partial=now.selection not in ("", was.selection),
            attempts=attempts,
        )
        return _with_answers(project, found) if answers else found


def _read_sides(
    project: Project, runs: Sequence[Run], selection: SelectionOptions
) -> tuple[Side, Side]:
    """Return the sides: the first run, and the second one or the workspace.

    The newer side has the parts that are equal on both, whose results are left out.
    """
    second = runs[1] if len(runs) > 1 else None
    current = {each.name or each.id for each in project.settings.candidates}
    equal = find_equal_parts(project, runs[0], second, selection)
    while True:
        now = (
            run_side(project.store, second, current, equal)
            if second
            else workspace_side(project, selection, equal)
        )
        was = run_side(project.store, runs[0], current, now.equal)
        if not share_rows(project.store, now.equal, was.results, now.results):
            return was, now
        equal = SettledParts()  # these rows may be those of equal parts as well


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
            if not any(result.model == model for result in side.results):
                require_candidate(model, side, hint=_run_both(project, side, models))
        selected = select_cases(project, selection.paths, side)
        was, now = (
            [
                result
                for result in side.results
                if result.model == model and selected.covers_file(result.file)
            ]
            for model in models
        )
        found = _within(project, side, compare_models(was, now), models)
        found.prompts = prompt_labels(project, side.results)
        return _with_answers(project, found) if answers else found


def diff_prompts(
    location: Location,
    revision: str | None,
    prompts: tuple[str, str],
    *,
    selection: SelectionOptions | None = None,
    answers: bool = False,
) -> Diff:
    """Compare two system prompts of one run, or of the workspace without a revision.

    Each answer is compared with that of the same candidate in the same case. The prompts are given
    by their names, or the first digits of their ids. Raises `EvalstoreError` for an unknown one.
    """
    selection = selection or SelectionOptions()
    revision = None if revision == WORK else revision
    with open_sides(location, selection, needs_files=revision is None) as project:
        side = side_of_candidates(project, revision)
        for model in selection.models:
            require_candidate(model, side)
        names = name_prompts_of_run(project, (result.prompt for result in side.results))
        ids = [find_prompt(names, name) for name in prompts]
        selected = select_cases(project, selection.paths, side)
        results = [
            result
            for result in only_models(side, selection.models).results
            if selected.covers_file(result.file) and result.prompt in ids
        ]
        asked: dict[tuple[str, str], set[str | None]] = {}
        for result in results:
            asked.setdefault((result.file, result.row), set()).add(result.prompt)
        both = [each for each in results if len(asked[each.file, each.row]) == len({*ids})]
        was, now = ([result for result in both if result.prompt == id] for id in ids)
        order = candidate_order(project.settings)
        shown = names[ids[0]], names[ids[1]]
        found = _within(project, side, compare_prompts(was, now, order), shown)
        found.is_of_prompts = True
        found.notes += alone_notes(len(results) - len(both))
        return _with_answers(project, found) if answers else found


def _within(project: Project, side: Side, comparison: Comparison, names: tuple[str, str]) -> Diff:
    """Return a comparison of two candidates, or system prompts, of one side."""
    results = comparison.differing
    attempts = read_side_attempts(project.store, side, results)
    return Diff(
        side.name,
        side.name,
        comparison,
        {},
        project.store.find_feedback(id for result in results for id in result.evaluations),
        notes=list(selection_notes(side, side, side)),
        reasons=PairReasons(is_within_run=True),
        models=names,
        is_now_partial=bool(side.selection),
        labels=find_labels(project, results),
        attempts=(attempts, attempts),
    )


def with_prompt_names(location: Location, diff: Diff) -> Diff:
    """Return the comparison with the names of all its system prompts."""
    ids = {result.prompt for result in diff.comparison.differing if result.prompt}
    return replace(diff, prompt_names=name_prompts(location, ids))


def _with_answers(project: Project, diff: Diff) -> Diff:
    """Return the comparison with the answers that show the changes."""
    pairs = [*diff.comparison.differing_pairs, *diff.equal_with_answers]
    ids = [id for pair in pairs for id in diff.shown_sessions(pair) if id]
    return replace(diff, answers=read_answers(project, ids))


def _run_both(project: Project, side: Side, models: tuple[str, str]) -> str:
    """Return the hint how a run of both candidates is made, or how prompts are compared."""
    named = prompt_labels(project, side.results).values()
    if any(set(models) <= set(names.values()) for names in named):
        options = shlex.join(["--prompt", models[0], "--vs", models[1]])
        return f"'evalstore diff {options}' compares these system prompts"
    options = " ".join(f"-m {shlex.quote(model)}" for model in models)
    return f"'evalstore run {options}' makes a run with both"

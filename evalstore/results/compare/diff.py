"""The command `diff`: compares two sides case by case, each a run or the workspace."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import chain

from evalstore.comparison.pair_groups import PairGroup
from evalstore.comparison.version_diff import Difference
from evalstore.core.errors import EvalstoreError
from evalstore.core.runs import Run
from evalstore.planning.options import Location, SelectionOptions
from evalstore.planning.project import Project
from evalstore.planning.reasons.unknown_names import match_models
from evalstore.planning.status.row_ids import has_edited_rows
from evalstore.results.compare.compared_side import Side
from evalstore.results.compare.diff_reasons import (
    PairReasons,
    SideAttempts,
    attempts_notes,
    selection_notes,
)
from evalstore.results.compare.diff_result import Diff
from evalstore.results.compare.diff_sides import (
    compare_sides,
    find_candidates,
    find_causes,
    only_models,
    only_rows,
    open_sides,
    read_sides,
    real_path,
    select_cases,
)
from evalstore.results.compare.pair_sorter import FlipFinder, PairDetails, PairSorter, read_answers
from evalstore.results.edits.edited_sources import EditedSources, Versions
from evalstore.results.edits.file_edits import find_edits
from evalstore.results.edits.participant_edits import differ_participants, with_all_candidates
from evalstore.results.prompt_names import (
    PromptNames,
    name_prompts,
    places_in,
    prompt_labels,
    prompts_of,
)
from evalstore.store.revisions import WORK, resolve_run
from evalstore.store.trees.case_finder import CaseFinder
from evalstore.workspace.settings.settings import candidate_order


def diff(
    location: Location,
    first: str | None = None,
    second: str | None = None,
    *,
    selection: SelectionOptions | None = None,
    answers: bool = False,
    opened: Project | None = None,
    workspace: Side | None = None,
) -> Diff:
    """Compare a run (default: the latest) with another run, or with the workspace.

    The verdicts of the workspace follow from the stored answers and judgements. To compare two
    runs, only the store is read: errors of test files do not matter. `opened` is the project if
    it is open already, with its test files read where the workspace is compared. Its results
    are those of `workspace`, if it is given.
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
        earlier = None if first else store.find_run_before()
        runs = [earlier or resolve_run(store, first or "@")]
        runs += [resolve_run(store, second)] if second else []
        known = [each.name or each.id for each in project.settings.candidates]
        known += [each.id for run in runs for each in run.candidates]
        named = (match_models(name, known) or [name] for name in selection.models)
        selection = replace(selection, models=tuple(dict.fromkeys(chain(*named))))
        was, now = read_sides(project, runs, selection, workspace)
        for model in selection.models:
            find_candidates(model, was, now)
        selected = select_cases(project, selection.paths, was, now)
        was, now = (only_models(side, selection.models) for side in only_rows(selected, was, now))
        candidates = candidate_order(project.settings)
        finder = CaseFinder(store)
        filled, pairing = compare_sides(
            store, folder, was, now, selected, candidates, finder=finder
        )
        attempts = SideAttempts(store, filled, finder), SideAttempts(store, now, finder)
        details = PairDetails(store, attempts)
        flips = FlipFinder(store, folder, filled, now, finder)
        sorter = PairSorter(project, details, flips, runs[0].started)
        comparison = sorter.sort(pairing, real_path)
        comparison.equal, comparison.by_verdict = now.equal.parts, now.by_verdict
        # By the marked names of their files, which the comparison shows without the marks.
        gone = PairGroup(pairing.sides, comparison.gone.numbers())
        causes = (
            find_causes((pair.either for pair in gone), filled, now, finder),
            find_causes((pair.either for pair in comparison.new), now, filled, finder),
        )
        both = filled.with_results & now.with_results
        edited = {
            path: (filled.files[filled.nodes[path]], now.files[node])
            for path, node in sorted(now.nodes.items())
            if filled.nodes.get(path, node) != node and path in both and selected.covers_file(path)
        }
        names = PromptNames(location, project)
        names.expect(prompts_of(file for pair in edited.values() for file in pair))
        changes = {path: filled.compare_sources(now, path) for path in edited}
        edits = {
            path: differences
            for path, differences in find_edits(
                project.versions, edited, finder, names, changes
            ).items()
            if differences
        }
        sources = EditedSources(finder, project.versions, names)
        listed = sources.find(
            {path: Versions(path, *edited[path], changes[path]) for path in edits}
        )
        for path, old in filled.former.items():
            if path in now.nodes and path != old and selected.covers_file(path):
                renamed = Difference("renamed", old, path)
                edits[path] = [renamed, *edits.get(path, ())]
        both_runs = _runs_to_compare(project, runs, selection)
        before, after = both_runs
        both_defined = {new.id: (before.find_candidate(new.id), new) for new in after.candidates}
        changed = {id: (a, b) for id, (a, b) in both_defined.items() if a and a != b}
        is_other_temperature = any(a.temperature != b.temperature for a, b in changed.values())
        found = Diff(
            was.name,
            now.name,
            comparison,
            edits,
            details.feedback,
            prompts=prompt_labels(
                project,
                chain(places_in(filled.results), places_in(now.results), now.equal.prompts),
            ),
            participants=_differ_participants(project, *both_runs),
            notes=[*selection_notes(was, filled, now), *attempts_notes(comparison)],
            reasons=PairReasons(
                sorter.flips,
                sorter.questions.words,
                sorter.judgements,
                sorter.criteria,
                sorter.same_answers,
                sorter.shown_questions,
                changed,
                {
                    path
                    for path, node in now.nodes.items()
                    if is_other_temperature
                    and not finder.find_traits(now.files[node]).default_temperature
                },
                (was.rule, now.rule),
                filled.earlier,
            ),
            has_edited_rows=has_edited_rows(project.workspace, comparison),
            causes=causes,
            sources=listed,
            is_now_partial=now.selection not in ("", was.selection),
            attempts=attempts,
            runs={run.id: run for run in runs},
        )
        return add_answers(project, found) if answers else found


def _runs_to_compare(
    project: Project, runs: Sequence[Run], selection: SelectionOptions
) -> tuple[Run, Run]:
    """Return the runs of both sides; for the workspace, one that is not stored."""
    was = with_all_candidates(project.store, runs[0])
    if len(runs) > 1:
        return was, runs[1]
    from evalstore.planning.status.workspace_results import workspace_as_run

    return was, workspace_as_run(project, selection)


def _differ_participants(
    project: Project, was: Run, now: Run
) -> tuple[tuple[Difference, ...], tuple[Difference, ...]]:
    """Return how candidates, evaluators and attempts differ, and how the other way round."""
    find, name = project.versions.find, project.name_of_version
    sides = (was, now), (now, was)
    there, back = (tuple(differ_participants(*each, find, name)) for each in sides)
    return there, back


def with_prompt_names(location: Location, diff: Diff) -> Diff:
    """Return the comparison with the names of all its system prompts."""
    sides = diff.comparison.sides
    has_prompts = any(prompt for side in sides[:2] for _, prompt in side.prompts)
    differing = diff.comparison.differing if has_prompts else ()
    ids = {result.prompt for result in differing if result.prompt}
    return replace(diff, prompt_names=name_prompts(location, ids))


def add_answers(project: Project, diff: Diff) -> Diff:
    """Return the comparison with the answers that show the changes."""
    pairs = chain(diff.comparison.differing_pairs, diff.equal_with_answers)
    ids = (id for pair in pairs for id in diff.shown_sessions(pair) if id)
    return replace(diff, answers=read_answers(project.store, ids))

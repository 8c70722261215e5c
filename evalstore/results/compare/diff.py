"""The command `diff`: compares runs and the workspace, or candidates and prompts of one of them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from typing import Any

from evalstore.comparison.comparison import Comparison, sort_pairs
from evalstore.comparison.pair_groups import NONE, PairGroup, Pairing, PlacedResults
from evalstore.comparison.version_diff import Difference
from evalstore.core.batches import in_batches
from evalstore.core.display import plural, short
from evalstore.core.errors import EvalstoreError, RevisionError
from evalstore.core.results import Result
from evalstore.planning.open_project import open_store, open_workspace
from evalstore.planning.options import Location, SelectionOptions
from evalstore.planning.participants import match_models, match_one_model
from evalstore.planning.project import Project
from evalstore.planning.selection import Selection
from evalstore.planning.status_report import has_edited_rows, workspace_as_run
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
    side_of_candidates,
)
from evalstore.results.compare.pair_sorter import FlipFinder, PairDetails, PairSorter, read_answers
from evalstore.results.edits.edited_sources import EditedSources, Versions, find_edits
from evalstore.results.edits.participant_edits import differ_participants, with_all_candidates
from evalstore.results.prompt_names import (
    PromptNames,
    find_prompt,
    name_prompts,
    name_prompts_of_run,
    places_in,
    prompt_labels,
    prompts_of,
)
from evalstore.store.revisions import WORK, resolve_run
from evalstore.store.trees.tree_nodes import CaseFinder
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
    if is_reversed := first == WORK:
        if second is None:
            raise EvalstoreError(
                "both sides are the workspace", hint=f"name a run: 'evalstore diff @ {WORK}'"
            )
        first, second = second, None
    with (
        nullcontext(opened)
        if opened
        else open_sides(location, selection, needs_files=second is None)
    ) as project:
        store, folder = project.store, project.settings.paths["tests"]
        earlier = None if first else store.find_run_before()
        runs = [earlier or resolve_run(store, first or "@")]
        runs += [resolve_run(store, second)] if second else []
        is_reversed = is_reversed or runs[0].started > runs[-1].started
        runs.sort(key=attrgetter("started"))
        known = [each.name or each.id for each in project.settings.candidates]
        known += [each.id for run in runs for each in run.candidates]
        named = (match_models(name, known) or [name] for name in selection.models)
        selection = replace(selection, models=tuple(dict.fromkeys(chain(*named))))
        was, now = read_sides(project, runs, selection, workspace)
        for model in selection.models:
            if not any(model in (side.models or ()) for side in (was, now)):
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
        after = runs[1] if len(runs) > 1 else workspace_as_run(project, selection)
        befores = {
            id: with_all_candidates(store, run)
            for id, run in {"": runs[0], **filled.earlier_runs}.items()
        }
        changed = {
            run_id: {
                each.id: (was_defined, each)
                for each in after.candidates
                if (was_defined := run.find_candidate(each.id)) and was_defined != each
            }
            for run_id, run in befores.items()
        }
        there, back = dict[Difference, None](), dict[Difference, None]()
        for before in befores.values():
            of_candidates = project.versions.find, project.name_of_version
            there |= dict.fromkeys(differ_participants(before, after, *of_candidates))
            back |= dict.fromkeys(differ_participants(after, before, *of_candidates))
        found = Diff(
            was.name,
            now.name,
            comparison,
            edits,
            details.feedback,
            prompts=prompt_labels(
                project, chain(places_in(filled.results), places_in(now.results), now.equal.prompts)
            ),
            participants=(tuple(there), tuple(back)),
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
                    if any(changed.values())
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
        found = found.swapped() if is_reversed else found
        return add_answers(project, found) if answers else found


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


# --- two candidates, or two system prompts, within one run or the workspace


def diff_models(
    location: Location,
    revision: str | None,
    models: tuple[str, str],
    *,
    selection: SelectionOptions | None = None,
    answers: bool = False,
    only: Callable[[Result], bool] | None = None,
) -> Diff:
    """Compare two candidates of one run, or of the workspace without a revision.

    With `only`, just the results for which it returns True are compared. Raises `EvalstoreError`
    for an unknown candidate.
    """
    selection = selection or SelectionOptions()
    revision = None if revision == WORK else revision
    with open_sides(location, selection, needs_files=revision is None) as project:
        side = side_of_candidates(project, revision)
        known = sorted(side.results.model_names)
        first, second = (match_one_model(model, known) for model in models)
        models = first, second
        for model in models:
            if model not in known:
                hint = _run_both(project, side, models)
                find_candidates(model, side, hint=hint, besides=models)
        selected = select_cases(project, selection.paths, side)
        (side,) = only_rows(selected, side)
        was, now = (_of_model(side, model, selected, only) for model in models)
        comparison = _compare(was, now, attrgetter("prompt_number"))
        found = _within(project, side, comparison, models)
        found.prompts = prompt_labels(project, places_in(side.results))
        return add_answers(project, found) if answers else found


def diff_prompts(
    location: Location,
    revision: str | None,
    prompts: tuple[str, str],
    *,
    selection: SelectionOptions | None = None,
    answers: bool = False,
    only: Callable[[Result], bool] | None = None,
) -> Diff:
    """Compare two system prompts of one run, or of the workspace without a revision.

    Each answer is compared with that of the same candidate in the same case. The prompts are given
    by their names, or the first digits of their ids. With `only`, just the results for which it
    returns True are compared. Raises `EvalstoreError` for an unknown one.
    """
    selection = selection or SelectionOptions()
    revision = None if revision == WORK else revision
    with open_sides(location, selection, needs_files=revision is None) as project:
        side = side_of_candidates(project, revision)
        named = (find_candidates(model, side) for model in selection.models)
        chosen = tuple(chain(*named))
        names = name_prompts_of_run(project, (result.prompt for result in side.results))
        ids = [find_prompt(names, name) for name in prompts]
        selected = select_cases(project, selection.paths, side)
        (side,) = only_rows(selected, side)
        results = PlacedResults(
            result
            for result in only_models(side, chosen).results
            if selected.covers_file(result.file)
            and result.prompt in ids
            and (only is None or only(result))
        )
        asked: dict[int, set[str | None]] = {}
        for row, result in zip(results.rows, results, strict=True):
            asked.setdefault(row, set()).add(result.prompt)
        both = PlacedResults(
            result
            for row, result in zip(results.rows, results, strict=True)
            if len(asked[row]) == len({*ids})
        )
        if not both:
            raise EvalstoreError(
                f"no case was asked with both '{prompts[0]}' and '{prompts[1]}'",
                hint="list both under 'systemPrompts' in its frontmatter",
            )
        was, now = ([result for result in both if result.prompt == id] for id in ids)
        comparison = _compare(was, now, attrgetter("model"), candidate_order(project.settings))
        found = _within(project, side, comparison, (names[ids[0]], names[ids[1]]))
        found.is_of_prompts = True
        if alone := len(results) - len(both):
            verb = "is" if alone == 1 else "are"
            text = (
                f"{plural(alone, 'result')} of cases with only one of both prompts {verb} left out"
            )
            found.notes.append(text)
        return add_answers(project, found) if answers else found


def _of_model(
    side: Side, model: str, selected: Selection, only: Callable[[Result], bool] | None
) -> Iterator[Result]:
    """Yield the selected results of a candidate."""
    for result in side.results:
        is_of_model = result.model == model and selected.covers_file(result.file)
        if is_of_model and (only is None or only(result)):
            yield result


def _within(project: Project, side: Side, comparison: Comparison, names: tuple[str, str]) -> Diff:
    """Return a comparison of two candidates, or system prompts, of one side."""
    attempts = SideAttempts(project.store, side, CaseFinder(project.store))
    details = PairDetails(project.store, (attempts, attempts))
    for batch in in_batches(comparison.differing_pairs):
        details.read(batch)
    comparison.by_verdict = side.by_verdict
    return Diff(
        side.name,
        side.name,
        comparison,
        {},
        details.feedback,
        notes=list(selection_notes(side, side, side)),
        reasons=PairReasons(is_within_run=True),
        models=names,
        is_now_partial=bool(side.selection),
        attempts=details.attempts,
    )


def _run_both(project: Project, side: Side, models: tuple[str, str]) -> str:
    """Return the hint how a run of both candidates is made, or how prompts are compared."""
    named = prompt_labels(project, places_in(side.results)).values()
    if any(set(models) <= set(names.values()) for names in named):
        options = shlex.join(["--prompt", models[0], "--vs", models[1]])
        return f"'evalstore diff {options}' compares these system prompts"
    for run in project.store.find_recent_runs():
        if {*models} <= {candidate.id for candidate in run.candidates}:
            options = shlex.join([short(run.id), "--model", models[0], "--vs", models[1]])
            return f"'evalstore diff {options}' compares them in a run with both"
    options = " ".join(f"-m {shlex.quote(model)}" for model in models)
    return f"'evalstore run {options}' makes a run with both"


def _compare(
    was: Iterable[Result],
    now: Iterable[Result],
    rest: Callable[[Result], object],
    candidates: Callable[[str], Any] = str,
) -> Comparison:
    """Pair the results of one run by their cases and the rest of what both sides have.

    Their answers differ in any case: only verdicts count as changed. `candidates` is a sort key.
    """
    old, new = PlacedResults(was), PlacedResults(now)
    waiting = {(it.file, it.row, rest(it)): number for number, it in enumerate(old)}
    found = (waiting.pop((it.file, it.row, rest(it)), NONE) for it in new)
    pairs = [(was, number) for number, was in enumerate(found)]
    pairs += [(number, NONE) for number in waiting.values()]
    numbers = range(len(old)), range(len(new))
    return sort_pairs(Pairing(old, new, numbers, pairs, candidates), answers=False)


# --- explains names of candidates that stand in the place of runs


def explain_candidates(
    location: Location, revisions: Sequence[str], models: Sequence[str] = ()
) -> RevisionError | None:
    """Return the error for revisions that are names of candidates; None if none of them is one.

    `models` are the candidates that are named as such. The hint is the command that compares them.
    """
    known = _read_candidates(location)
    wrong = [name for name in revisions if name in known]
    if not wrong:
        return None
    named = list(dict.fromkeys([*models, *wrong]))
    verb = "is a candidate, not a run" if len(wrong) == 1 else "are candidates, not runs"
    quoted = " and ".join(f"'{name}'" for name in wrong)
    runs = [name for name in revisions if name not in known][:1]
    two = named if len(named) == 2 else [named[0], "ID"] if len(named) == 1 else ["X", "Y"]
    first, second = map(shlex.quote, two)
    command = " ".join(["evalstore", "diff", *runs, "--model", first, "--vs", second])
    return RevisionError(f"{quoted} {verb}", hint=f"'{command}' compares two candidates of one run")


def _read_candidates(location: Location) -> set[str]:
    """Return the names of the candidates of the settings and of the latest run."""
    names: set[str] = set()
    with suppress(EvalstoreError):
        settings = open_workspace(location).settings
        names.update(candidate.name or candidate.id for candidate in settings.candidates)
        with open_store(location) as store:
            for run in store.find_runs(limit=1):
                names.update(candidate.id for candidate in run.candidates)
    return names

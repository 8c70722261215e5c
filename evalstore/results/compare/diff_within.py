"""Compares two candidates, or two system prompts, within one run or the workspace."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from operator import attrgetter
from typing import Any

from evalstore.comparison.comparison import Comparison, sort_pairs
from evalstore.comparison.pair_groups import NONE, Pairing
from evalstore.comparison.placed_results import PlacedResults
from evalstore.core.batches import in_batches
from evalstore.core.display import plural, short
from evalstore.core.errors import EvalstoreError, RevisionError
from evalstore.core.results import Result
from evalstore.planning.open_project import open_store, open_workspace
from evalstore.planning.options import Location, SelectionOptions
from evalstore.planning.project import Project
from evalstore.planning.reasons.unknown_names import match_one_model
from evalstore.planning.selection import Selection
from evalstore.results.compare.compared_side import Side
from evalstore.results.compare.diff import add_answers
from evalstore.results.compare.diff_reasons import (
    PairReasons,
    SideAttempts,
    selection_notes,
)
from evalstore.results.compare.diff_result import Diff
from evalstore.results.compare.diff_sides import (
    find_candidates,
    only_models,
    only_rows,
    open_sides,
    select_cases,
    side_of_candidates,
)
from evalstore.results.compare.pair_sorter import PairDetails
from evalstore.results.prompt_names import (
    find_prompt,
    name_prompts_of_run,
    places_in,
    prompt_labels,
)
from evalstore.store.revisions import WORK
from evalstore.store.trees.case_finder import CaseFinder
from evalstore.workspace.settings.settings import candidate_order


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

"""Compares two candidates, or two system prompts, within one run or the workspace."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from evalstore.errors import EvalstoreError
from evalstore.files.fields import suggest
from evalstore.operations.diff import add_answers
from evalstore.operations.diff_attempts import read_side_attempts
from evalstore.operations.diff_notes import selection_notes
from evalstore.operations.diff_reasons import PairReasons
from evalstore.operations.diff_result import Diff
from evalstore.operations.diff_selection import select_cases
from evalstore.operations.diff_sides import (
    find_labels,
    open_sides,
    require_candidate,
    side_of_candidates,
)
from evalstore.operations.prompt_names import prompt_labels
from evalstore.operations.side_names import side_name
from evalstore.planning.options import Location, SelectionOptions
from evalstore.reports.comparison import compare_models, compare_prompts
from evalstore.store.revisions import WORK

if TYPE_CHECKING:
    from evalstore.operations.compared_side import Side
    from evalstore.planning.project import Project
    from evalstore.reports.comparison import Comparison

_Labels = dict[str, dict[str | None, str]]


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
            require_candidate(model, side, hint=_run_both(models))
        selected = select_cases(project, selection.paths, side)
        was, now = (
            [
                result
                for result in side.results
                if result.model == model and selected.covers_file(result.file)
            ]
            for model in models
        )
        labels = prompt_labels(project, side.results)
        found = _describe(project, side, models, compare_models(was, now), labels)
        return add_answers(project, found) if answers else found


def diff_prompts(
    location: Location,
    revision: str | None,
    prompts: tuple[str, str],
    *,
    selection: SelectionOptions | None = None,
    answers: bool = False,
) -> Diff:
    """Compare two system prompts in one run, or in the workspace without a revision.

    The cases are those that were asked with both. Raises `EvalstoreError` for an unknown name.
    """
    selection = selection or SelectionOptions()
    revision = None if revision == WORK else revision
    with open_sides(location, selection, needs_files=revision is None) as project:
        side = side_of_candidates(project, revision)
        for model in selection.models:
            require_candidate(model, side)
        labels = prompt_labels(project, side.results)
        _require_both(prompts, labels, side)
        selected = select_cases(project, selection.paths, side)
        both = {file for file, names in labels.items() if {*prompts} <= {*names.values()}}
        results = [
            result
            for result in side.results
            if result.file in both
            and selected.covers_file(result.file)
            and (not selection.models or result.model in selection.models)
        ]
        was, now = (
            [result for result in results if labels[result.file][result.prompt] == name]
            for name in prompts
        )
        compared = compare_prompts(was, now)
        found = _describe(project, side, prompts, compared, labels, are_prompts=True)
        return add_answers(project, found) if answers else found


def _describe(
    project: Project,
    side: Side,
    names: tuple[str, str],
    comparison: Comparison,
    labels: _Labels,
    *,
    are_prompts: bool = False,
) -> Diff:
    results = comparison.differing
    attempts = read_side_attempts(project.store, side, results)
    return Diff(
        side.name,
        side.name,
        comparison,
        {},
        project.store.find_feedback(id for result in results for id in result.evaluations),
        prompts=labels,
        notes=list(selection_notes(side, side, side)),
        reasons=PairReasons(of_candidates=not are_prompts, of_prompts=are_prompts),
        models=names,
        are_prompts=are_prompts,
        is_now_partial=bool(side.selection),
        labels=find_labels(project, results),
        attempts=(attempts, attempts),
    )


def _require_both(prompts: tuple[str, str], labels: _Labels, side: Side) -> None:
    """Raise `EvalstoreError` unless some cases were asked with both system prompts."""
    known = sorted({name for names in labels.values() for name in names.values()})
    for name in prompts:
        if name not in known:
            raise EvalstoreError(
                f"'{name}' is not a system prompt beside others in {side_name(side.name)}",
                hint=suggest(name, known, "system prompts") or "list several under 'systemPrompts'",
            )
    if not any({*prompts} <= {*names.values()} for names in labels.values()):
        raise EvalstoreError(
            f"no test file was asked with both '{prompts[0]}' and '{prompts[1]}'",
            hint="list both under 'systemPrompts' in its frontmatter",
        )


def _run_both(models: tuple[str, str]) -> str:
    """Return the hint how a run of both candidates is made."""
    options = " ".join(f"-m {shlex.quote(model)}" for model in models)
    return f"'evalstore run {options}' makes a run with both"

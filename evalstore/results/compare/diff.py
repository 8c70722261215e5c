"""The command `diff`: compares runs and the workspace, or candidates and prompts of one of them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from itertools import chain, groupby
from operator import attrgetter
from typing import Any

from evalstore.comparison.comparison import (
    Comparison,
    Pair,
    differ_results,
    empty_groups,
    sort_pair,
    sort_pairs,
)
from evalstore.comparison.pair_groups import (
    NONE,
    PairGroup,
    PlacedResults,
    Sides,
    find_same_answers,
    has_equal_texts,
    has_other_sessions,
    order_pairs,
    sessions_of,
    sessions_to_compare,
)
from evalstore.comparison.version_diff import Difference, evaluation_parts, part_change
from evalstore.core.batches import in_batches
from evalstore.core.display import plural_is, short
from evalstore.core.errors import EvalstoreError, RevisionError
from evalstore.core.runs import Run
from evalstore.core.values import Case, Decision, Result
from evalstore.files.temporary_list import TemporaryMapping
from evalstore.planning.cell_results import find_feedback
from evalstore.planning.open_project import open_store, open_workspace
from evalstore.planning.options import Location, SelectionOptions
from evalstore.planning.participants import match_models, match_one_model
from evalstore.planning.planner import require_sound
from evalstore.planning.project import Project, VersionReader
from evalstore.planning.status_report import has_edited_rows, workspace_as_run
from evalstore.results.answer.answer import read_workspace
from evalstore.results.compare.change_causes import (
    PairIds,
    PairReasons,
    SideAttempts,
    attempts_notes,
    attempts_of,
    describe_questions,
    selection_notes,
    shown_decisions,
)
from evalstore.results.compare.compared_side import Side
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
    workspace_side,
)
from evalstore.results.edits.edits import (
    RENAMED,
    differ_participants,
    find_edits,
    judgement_changes,
    name_by_bytes,
    with_all_candidates,
)
from evalstore.results.names import (
    PromptNames,
    find_prompt,
    name_prompts,
    name_prompts_of_run,
    places_in,
    prompt_labels,
    prompts_of,
)
from evalstore.results.value_text import answer_text
from evalstore.store import Store
from evalstore.store.revisions import WORK, resolve_run
from evalstore.workspace.settings.settings import candidate_order

_FLIPS = ("broke", "fixed", "changed")
_EQUAL = "equal"
"""The group of pairs that were asked anew, with the same verdict and equal answers."""
_GROUP = {_EQUAL: "unchanged"}


def read_details(
    store: Store,
    pairs: Sequence[Pair],
    attempts: tuple[SideAttempts, SideAttempts],
    feedback: TemporaryMapping[Decision, str],
) -> None:
    """Read what is shown of these pairs: the attempts of both sides, and the reasons."""
    attempts[0].read(pair.was for pair in pairs)
    attempts[1].read(pair.now for pair in pairs)
    decisions = [side.decision for pair in pairs for side in (pair.was, pair.now) if side]
    for pair in pairs:
        decisions += shown_decisions(pair, attempts_of(pair, attempts))
    feedback.update(find_feedback(store, decisions))


class PairSorter:
    """Sorts the pairs of two runs, or of a run and the workspace, and reads what explains them."""

    def __init__(self, project: Project, was: Side, now: Side, filled: Side, older: Run) -> None:
        """`filled` is the side that earlier runs fill, which is that of the `older` run."""
        self.reasons = PairReasons(rules=(was.rule, now.rule), earlier=filled.earlier)
        """What explains the pairs that were sorted."""
        self.attempts = SideAttempts(project.store, was), SideAttempts(project.store, now)
        self.feedback = TemporaryMapping[Decision, str]()
        self._project, self._filled, self._older = project, filled, older

    def sort(self, pairs: PairGroup, name: Callable[[str], str]) -> Comparison:
        """Return the comparison; `name` returns the name by which a file is shown."""
        was, now, *keys = pairs.sides
        sides = Sides(was.with_names(name), now.with_names(name), *keys)
        sorted_pairs = empty_groups(sides)
        for batch in pairs.batches():
            groups = iter(self._find_groups([pair for _, pair in batch if pair]))
            listed = [(next(groups) if pair else "unchanged", each) for each, pair in batch]
            # Of one row, what was found to be equal comes after what was not asked anew.
            listed.sort(key=lambda entry: (pairs.sides.key(entry[1]), entry[0] == _EQUAL))
            for group, numbers in listed:
                sorted_pairs[_GROUP.get(group, group)].append(numbers)
        return Comparison(sides, *sorted_pairs.values())

    def _find_groups(self, pairs: Sequence[Pair]) -> list[str]:
        """Return the group of each pair, after reading what explains those that differ."""
        groups: list[str] = [sort_pair(pair) for pair in pairs]

        def of_group(*names: str) -> list[Pair]:
            return [pair for pair, group in zip(pairs, groups, strict=True) if group in names]

        sessions = self._project.store.find_compared(sessions_to_compare(of_group(*_FLIPS)))
        for number, pair in enumerate(pairs):
            if groups[number] == "changed" and pair.has_same_verdict:
                groups[number] = _EQUAL if has_equal_texts(pair, sessions) else "changed"
        explained = of_group(*_FLIPS)
        sides = [
            side
            for pair in explained
            if has_other_sessions(pair)
            for side in (pair.was, pair.now)
            if side
        ]
        ids = {side.sessions[0] for side in sides} - sessions.keys()
        sessions |= self._project.store.find_compared(ids)
        questions = describe_questions(self._project.versions, explained, sessions)
        self.reasons.questions.update(questions)
        same = find_same_answers(self._project.store, explained, sessions)
        self.reasons.same_answers.update(dict.fromkeys(same, True))
        for number, pair in enumerate(pairs):
            if groups[number] == "changed" and pair.has_same_verdict and sessions_of(pair) in same:
                groups[number] = "same_answer"
        self._read_criteria(explained)
        by_start: dict[int, list[Pair]] = {}
        """By when the older run of pairs started."""
        earlier, runs = self._filled.earlier, self._filled.earlier_runs
        for pair in explained:
            found = filter(None, (earlier.get(it) for it in (pair.was, pair.now) if it))
            run = next((runs[id] for id in found), self._older)
            by_start.setdefault(run.started, []).append(pair)
        shown: set[PairIds] = set()
        for since, listed in by_start.items():
            changes = judgement_changes(
                *(self._project.store, self._project.versions, listed, since),
                shown_questions=shown,
            )
            self.reasons.judgements.update({ids: words for ids, words in changes.items() if words})
        self.reasons.shown_questions.update(dict.fromkeys(shown, True))
        shown_pairs = [*explained, *of_group("new", "gone")]
        read_details(self._project.store, shown_pairs, self.attempts, self.feedback)
        return groups

    def _read_criteria(self, pairs: Iterable[Pair]) -> None:
        """Read how the instructions and checks of these pairs differ."""
        sides = {
            (pair.was.evaluation, pair.now.evaluation) for pair in pairs if pair.was and pair.now
        }
        sides = {each for each in sides if each[0] != each[1]}
        ids = {id for each in sides for id in each if id}
        contents = self._project.versions.load("evaluation", ids)
        for was, now in sides:
            old, new = contents.get(was or "", {}), contents.get(now or "", {})
            parts = evaluation_parts(old, new)
            words = [part_change(part, old.get(part), new.get(part)) for part in parts]
            self.reasons.criteria.update({(was, now): words})


def read_answers(store: Store, ids: Iterable[str]) -> Mapping[str, str]:
    """Return the texts of these answers, by the id of the session."""
    answers = TemporaryMapping[str, str]()
    for batch in in_batches(ids):
        sessions = store.find_sessions(batch)
        known = [id for id in dict.fromkeys(batch) if id in sessions]
        answers.update({id: answer_text(sessions[id].answer) for id in known})
    return answers


def read_texts(location: Location, sessions: Sequence[str]) -> dict[str, str]:
    """Return the texts of the last answers of these sessions, by id."""
    with open_store(location) as store:
        return {**read_answers(store, sessions)}


def find_pair_edits(location: Location, pair: Pair) -> list[Difference]:
    """Return the differences between the versions of a case on both sides of a pair."""
    if pair.was is None or pair.now is None:
        return []
    with open_store(location) as store:
        versions = VersionReader(store, fallback=lambda: read_workspace(location))
        names = PromptNames(location)
        names.expect((side.prompt, side.prompt_number) for side in (pair.was, pair.now))
        return list(differ_results(pair.was, pair.now, versions.find, names))


def diff(
    location: Location,
    first: str | None = None,
    second: str | None = None,
    *,
    selection: SelectionOptions | None = None,
    answers: bool = False,
    opened: Project | None = None,
    workspace: Side | None = None,
    lists_unchanged: bool = False,
) -> Diff:
    """Compare a run (default: the latest) with another run, or with the workspace.

    The verdicts of the workspace follow from the stored answers and judgements. To compare two
    runs, only the store is read: errors of test files do not matter. `opened` is the project if
    it is open already, with its test files read where the workspace is compared. Its results
    are those of `workspace`, if it is given. `lists_unchanged` is of two runs: it also reads the
    equal results of short files.
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
        was, now = read_sides(project, runs, selection, workspace, lists_unchanged=lists_unchanged)
        for model in selection.models:
            if not any(model in (side.models or ()) for side in (was, now)):
                find_candidates(model, was, now)
        selected = select_cases(project, selection.paths, was, now)
        was, now = (only_models(side, selection.models) for side in only_rows(selected, was, now))
        candidates = candidate_order(project.settings)
        filled, pairing = compare_sides(store, folder, was, now, selected, candidates)
        sides, pairing = (
            ((now, filled), pairing.swapped()) if is_reversed else ((filled, now), pairing)
        )
        sorter = PairSorter(project, *sides, filled, runs[0])
        comparison = sorter.sort(pairing, real_path)
        comparison.equal, comparison.by_verdict = now.equal.parts, now.by_verdict
        # By the marked names of their files, which the comparison shows without the marks.
        gone, new = (
            (pair.either for pair in PairGroup(pairing.sides, group.numbers()))
            for group in (comparison.gone, comparison.new)
        )
        causes = find_causes(gone, sides[1], store), find_causes(new, sides[0], store)
        both = filled.with_results & now.with_results
        edited = {
            path: (sides[0].files[sides[0].nodes[path]], sides[1].files[sides[1].nodes[path]])
            for path, node in sorted(now.nodes.items())
            if filled.nodes.get(path, node) != node and path in both and selected.covers_file(path)
        }
        names = PromptNames(location, project)
        names.expect(prompts_of(file for pair in edited.values() for file in pair))
        changes = {path: filled.compare_sources(now, path) for path in edited}
        edits = {
            path: differences
            for path, differences in find_edits(
                project.versions, edited, store, names, changes, is_reversed=is_reversed
            ).items()
            if differences
        }
        listed = {path: name_by_bytes(path, it) for path, it in changes.items() if it}
        for path, old in filled.former.items():
            if path in now.nodes and path != old and selected.covers_file(path):
                renamed = (path, old) if is_reversed else (old, path)
                edits[path] = [Difference(RENAMED, *renamed), *edits.get(path, ())]
        after = runs[1] if len(runs) > 1 else workspace_as_run(project, selection)
        befores = with_all_candidates(store, [runs[0], *filled.earlier_runs.values()])
        befores = {"": befores.pop(runs[0].id), **befores}
        changed = {
            run_id: {
                each.id: (each, was_defined) if is_reversed else (was_defined, each)
                for each in after.candidates
                if (was_defined := run.find_candidate(each.id)) and was_defined != each
            }
            for run_id, run in befores.items()
        }
        participants = dict[Difference, None]()
        for before in befores.values():
            of_both = (after, before) if is_reversed else (before, after)
            find, name = project.versions.find, project.name_of_version
            participants |= dict.fromkeys(differ_participants(*of_both, find, name))
        found = Diff(
            sides[0].name,
            sides[1].name,
            comparison,
            edits,
            sorter.feedback,
            prompts=prompt_labels(
                project, chain(places_in(filled.results), places_in(now.results), now.equal.prompts)
            ),
            participants=tuple(participants),
            notes=[*selection_notes(was, filled, now), *attempts_notes(comparison)],
            reasons=replace(
                sorter.reasons,
                candidates=changed,
                own_temperatures={
                    path
                    for path, node in now.nodes.items()
                    if any(changed.values())
                    and not store.find_traits(now.files[node]).default_temperature
                },
            ),
            has_edited_rows=has_edited_rows(project.workspace, comparison),
            causes=causes,
            sources=listed,
            is_now_partial=not is_reversed and now.selection not in ("", was.selection),
            attempts=sorter.attempts,
            runs={run.id: run for run in runs},
        )
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
        was, now = (
            PlacedResults(
                it
                for it in side.results
                if it.model == model and selected.covers_file(it.file) and (not only or only(it))
            )
            for model in models
        )
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
        was, now = (PlacedResults(it for it in both if it.prompt == id) for id in ids)
        comparison = _compare(was, now, attrgetter("model"), candidate_order(project.settings))
        found = _within(project, side, comparison, (names[ids[0]], names[ids[1]]))
        found.is_of_prompts = True
        if alone := len(results) - len(both):
            left = plural_is(alone, "result", " of cases with only one of both prompts")
            found.notes.append(f"{left} left out")
        return add_answers(project, found) if answers else found


def _within(project: Project, side: Side, comparison: Comparison, names: tuple[str, str]) -> Diff:
    """Return a comparison of two candidates, or system prompts, of one side."""
    attempts = (SideAttempts(project.store, side),) * 2
    feedback = TemporaryMapping[Decision, str]()
    for batch in in_batches(comparison.differing_pairs):
        read_details(project.store, batch, attempts, feedback)
    comparison.by_verdict = side.by_verdict
    return Diff(
        side.name,
        side.name,
        comparison,
        {},
        feedback,
        notes=list(selection_notes(side, side, side)),
        reasons=PairReasons(is_within_run=True),
        models=names,
        is_now_partial=bool(side.selection),
        attempts=attempts,
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
    old: PlacedResults,
    new: PlacedResults,
    rest: Callable[[Result], object],
    candidates: Callable[[str], Any] = str,
) -> Comparison:
    """Pair the results of one run by their cases and the rest of what both sides have.

    Their answers differ in any case: only verdicts count as changed. `candidates` is a sort key.
    """
    waiting = {(it.file, it.row, rest(it)): number for number, it in enumerate(old)}
    found = (waiting.pop((it.file, it.row, rest(it)), NONE) for it in new)
    pairs = [(was, number) for number, was in enumerate(found)]
    pairs += [(number, NONE) for number in waiting.values()]
    numbers = range(len(old)), range(len(new))
    return sort_pairs(order_pairs(old, new, numbers, pairs, candidates), answers=False)


# --- explains names of candidates that stand in the place of runs


def explain_candidates(
    location: Location, revisions: Sequence[str], models: Sequence[str] = ()
) -> RevisionError | None:
    """Return the error for revisions that are names of candidates; None if none of them is one.

    `models` are the candidates that are named as such. The hint is the command that compares them.
    """
    known: set[str] = set()
    """The names of the candidates of the settings and of the latest run."""
    with suppress(EvalstoreError):
        settings = open_workspace(location).settings
        known.update(candidate.name or candidate.id for candidate in settings.candidates)
        with open_store(location) as store:
            for run in store.find_runs(limit=1):
                known.update(candidate.id for candidate in run.candidates)
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


@dataclass(frozen=True, slots=True)
class ComparedWorkspace:
    """The results of the workspace, and what changed."""

    side: Side
    diff: Diff | None
    """None without an earlier run."""

    def batches(self, project: Project) -> Iterator[list[tuple[Result, Case]]]:
        """Yield the results with their cases."""
        files = project.reading.files

        def read() -> Iterator[tuple[Result, Case]]:
            for file, results in groupby(self.side.results, lambda result: result.file):
                cases = iter(files[file].cases)
                for row, of_row in groupby(results, lambda result: result.row):
                    case = next(case for case in cases if case.row == row)
                    yield from ((result, case) for result in of_row)

        return in_batches(read())


def compare_workspace(
    location: Location, project: Project, revision: str | None = None
) -> ComparedWorkspace:
    """Compare the workspace with a run, by default the one before it."""
    side = workspace_side(project, SelectionOptions(), is_marked=True)
    if revision is None and (earlier := project.store.find_run_before()):
        revision = earlier.id
    compared = diff(location, revision, opened=project, workspace=side) if revision else None
    return ComparedWorkspace(side, compared)


def compare_run(
    location: Location, project: Project, run: Run, revision: str | None, *, answers: bool = True
) -> Diff | None:
    """Compare a run with another, by default the one before it; None if there is none."""
    if revision is None:
        before = project.store.find_run_before(run)
        if before is None:
            return None
        revision = before.id
    # The files of the workspace are not read where the report is of a run.
    opened = None if revision == WORK else project
    return diff(location, revision, run.id, answers=answers, opened=opened)


def find_broken_now(project: Project) -> list[Result]:
    """Return the results of the workspace that broke since the last run, without a call."""
    if not project.store.count_runs():
        return []
    require_sound(project, SelectionOptions())
    return [pair.now for pair in diff(project.location, opened=project).broke if pair.now]

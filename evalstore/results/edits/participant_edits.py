"""Compares the candidates, evaluators and attempts of each run with those before it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING

from evalstore.comparison.version_diff import (
    Candidates,
    Difference,
    candidates_after,
    differ_candidate,
    differ_candidates,
    nowhere,
)
from evalstore.planning.reasons import TOKEN_LIMIT, VERDICTS_WANTED
from evalstore.planning.status_report import SettingEdit, workspace_as_run
from evalstore.results.judgement_changes import differ_evaluators

if TYPE_CHECKING:
    from evalstore.comparison.version_diff import Find, Name
    from evalstore.core.runs import Run
    from evalstore.core.values import CaseFile
    from evalstore.planning.options import SelectionOptions
    from evalstore.planning.project import Project
    from evalstore.results.prompt_names import PromptNames
    from evalstore.store import Store


class ParticipantHistory:
    """Follows the candidates and evaluators from older to newer runs."""

    def __init__(self, find: Find, name: Name = nowhere) -> None:
        """`name` returns the names of judge prompts."""
        self._find, self._name = find, name
        self._candidates: Candidates | None = None
        """None while all runs were limited to some of them."""
        self._named: set[str] = set()
        """Those that only `-m` has named, for runs since the last one that was not limited."""
        self.models: set[str] = set()
        """The candidates that had results until the last run, without those removed since."""
        self._last: Run | None = None

    def step(
        self,
        run: Run,
        models: Collection[str],
        *,
        file: CaseFile | None = None,
        with_temperature: bool = True,
        with_evaluators: bool = True,
    ) -> list[tuple[str, Difference]]:
        """Return how a run differs from those before; only candidates in `models` count.

        Each edit comes with what was edited: `candidate openai/gpt-5.4-mini`, `attempts`.

        With `file`, only evaluators of this test file. None has to answer in all runs: a run that
        was limited to some candidates removes none, and what only such runs had is not removed by
        the next one that was not.
        """
        was = self._candidates
        if was is not None or not is_limited(run):
            self._candidates = candidates_after(was or {}, run)
        if was is not None and is_limited(run):
            self._named |= {candidate.id for candidate in run.candidates} - was.keys()
        elif was is not None:
            gone = self._named - (self._candidates or {}).keys()
            was = {id: candidate for id, candidate in was.items() if id not in gone}
            self._named = set()
        self.models |= {*models}
        edits: list[tuple[str, Difference]] = []
        if was is not None and self._candidates is not None:
            found = differ_candidates(
                was, self._candidates, self.models, self._find, with_temperature=with_temperature
            )
            edits += ((f"candidate {id}", edit) for id, edit in found)
        self.models &= (self._candidates or {}).keys()
        if self._last is not None and with_evaluators:
            edits += _evaluator_edits(self._last, run, self._find, file, self._name)
        if self._last is not None:
            edits += _number_edits(self._last, run, file)
        self._last = run
        return edits


def find_participant_edits(
    store: Store, runs: Sequence[Run], find: Find, name: PromptNames
) -> list[tuple[Difference, ...]]:
    """Return the edits of candidates and evaluators in each of these runs, newest first.

    Runs of imported verdicts have none.
    """
    judges = (judge for run in runs for judge in run.evaluators)
    name.expect(((find("evaluator", each.evaluator) or {}).get("prompt"), 0) for each in judges)
    history = ParticipantHistory(find, name)
    edits: dict[str, tuple[Difference, ...]] = {}
    for run in reversed([*runs, *(find_runs_since(store, runs[-1]) if runs else ())]):
        if run.origin is None:
            found = history.step(run, {candidate.id for candidate in run.candidates})
            edits[run.id] = tuple(edit for _, edit in found)
    return [edits.get(run.id, ()) for run in runs]


def find_current_edits(project: Project, selection: SelectionOptions) -> list[SettingEdit]:
    """Return how candidates and evaluators differ from those before, as a run now would."""
    history = ParticipantHistory(project.versions.find, project.name_of_version)
    runs = [run for run in find_runs_since(project.store) if run.origin is None]
    edits: list[tuple[str, Difference]] = []
    every = replace(selection, evaluators=())  # '-J' removes no judge
    for run in (*reversed(runs), workspace_as_run(project, every)):
        edits = history.step(run, {candidate.id for candidate in run.candidates})
    return [SettingEdit(of, edit) for of, edit in edits]


def with_all_candidates(store: Store, run: Run) -> Run:
    """Return a run that was limited to some candidates with the others of the runs before it."""
    candidates: Candidates = {}
    for each in reversed([run, *(find_runs_since(store, run) if is_limited(run) else ())]):
        candidates = candidates_after(candidates, each)
    return replace(run, candidates=tuple(candidates.values()))


def differ_participants(was: Run, now: Run, find: Find, name: Name) -> Iterator[Difference]:
    """Yield how candidates of both runs, the evaluators and the attempts differ."""
    candidates = {candidate.id: candidate for candidate in was.candidates}
    for candidate in now.candidates:
        if candidate.id in candidates:
            yield from differ_candidate(candidates[candidate.id], candidate, find)
    others = (*_evaluator_edits(was, now, find, None, name), *_number_edits(was, now, None))
    yield from (edit for _, edit in others)


def is_limited(run: Run) -> bool:
    """Return whether `-m` named the candidates of a run."""
    return "models" in run.selection


def find_named_candidates(store: Store, run: Run, current: Collection[str]) -> frozenset[str]:
    """Return the candidates of a run that only `-m` named.

    They are in neither of the runs of all candidates before and after it; if there is none after
    it, they are not among the `current` ones of the settings either.
    """
    if not is_limited(run):
        return frozenset()
    before = next(_runs_of_all(store.find_recent_runs(before=run)), None)
    newer = takewhile(lambda each: each.id != run.id, store.find_recent_runs())
    after = next(_runs_of_all(reversed([*newer])), None)
    known = {*_names(before), *(_names(after) if after else current)}
    return frozenset(_names(run)) - known


def _runs_of_all(runs: Iterable[Run]) -> Iterator[Run]:
    return (run for run in runs if run.origin is None and not is_limited(run))


def _names(run: Run | None) -> Iterator[str]:
    return (candidate.id for candidate in run.candidates) if run else iter(())


def find_runs_since(
    store: Store, before: Run | None = None, leaves_out: Callable[[Run], bool] = is_limited
) -> Iterator[Run]:
    """Yield the newest runs, or those before a run, back to one that leaves out nothing."""
    for run in store.find_recent_runs(before=before):
        yield run
        if run.origin is None and not leaves_out(run):
            return


def _evaluator_edits(
    was: Run, now: Run, find: Find, file: CaseFile | None, name: Name
) -> Iterable[tuple[str, Difference]]:
    """Return how the evaluators differ between two runs, with both values if they are long.

    An edit of a prompt that several of them have is one.
    """
    edits: dict[tuple[str, Difference], None] = {}
    for change in differ_evaluators(was, now, find, file, name):
        fits = Difference("", change.was, change.now).fits
        values = (None, None) if fits else (change.was, change.now)
        edits[change.of, Difference(change.text, *values)] = None
    return edits


def _number_edits(was: Run, now: Run, file: CaseFile | None) -> Iterator[tuple[str, Difference]]:
    """Yield how many more or fewer answers a run counts, of a file those that it does not set.

    Then the edits of the other settings that a run has noted, but of the rule for votes.
    """
    of_file = file.attempts if file else None
    old, new = (
        run.attempts if "attempts" in run.selection else of_file or run.attempts
        for run in (was, now)
    )
    if old and new and old != new:
        yield "attempts", Difference(f"attempts {old} -> {new}")
    for name in (VERDICTS_WANTED, TOKEN_LIMIT):
        if name in was.settings and was.settings[name] != now.settings.get(name):
            values = " -> ".join(str(run.settings.get(name) or "none") for run in (was, now))
            yield name, Difference(f"{name} {values}")

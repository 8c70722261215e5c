"""Sorts the pairs of a comparison, and reads what is shown of those that differ, in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from evalstore.comparison.case_edits import differ_results
from evalstore.comparison.comparison import Comparison, Pair, SortedPairs, sort_pair
from evalstore.comparison.pair_groups import (
    Pairing,
    find_same_answers,
    has_equal_texts,
    has_other_sessions,
    sessions_of,
    sessions_to_compare,
)
from evalstore.comparison.version_diff import Difference, evaluation_parts
from evalstore.core.batches import in_batches
from evalstore.core.display import WORKSPACE
from evalstore.core.results import Decision, Result
from evalstore.files.temporary_list import TemporaryMapping
from evalstore.planning.earlier_results import EarlierRuns, find_cells, is_judged
from evalstore.planning.open_project import open_store
from evalstore.planning.options import Location
from evalstore.planning.path_history import PathHistory
from evalstore.planning.project import Project
from evalstore.planning.results import find_feedback
from evalstore.planning.version_reader import VersionReader
from evalstore.results.answer.answer import read_workspace
from evalstore.results.compare.compared_side import PromptsOfCase, Side, SidePrompts
from evalstore.results.compare.diff_reasons import (
    Evaluations,
    PairIds,
    QuestionChanges,
    SideAttempts,
    attempts_of,
    shown_decisions,
)
from evalstore.results.judgement_changes import judgement_changes
from evalstore.results.prompt_names import PromptNames
from evalstore.results.rendering import answer_text
from evalstore.store import Store
from evalstore.store.results import RowResults
from evalstore.store.trees.tree_nodes import CaseFinder

_FLIPS = ("broke", "fixed", "changed")
_EQUAL = "equal"
"""The group of pairs that were asked anew, with the same verdict and equal answers."""
_GROUP = {_EQUAL: "unchanged"}


class PairDetails:
    """What is shown of pairs that differ: reasons and attempts."""

    def __init__(self, store: Store, attempts: tuple[SideAttempts, SideAttempts]) -> None:
        self.feedback = TemporaryMapping[Decision, str]()
        self.attempts = attempts
        self._store = store

    def read(self, pairs: Sequence[Pair]) -> None:
        """Read what is shown of these pairs."""
        was, now = self.attempts
        was.read(pair.was for pair in pairs)
        now.read(pair.now for pair in pairs)
        decisions = [side.decision for pair in pairs for side in (pair.was, pair.now) if side]
        for pair in pairs:
            decisions += shown_decisions(pair, attempts_of(pair, self.attempts))
        self.feedback.update(find_feedback(self._store, decisions))


class PairSorter:
    """Sorts the pairs of two runs, or of a run and the workspace, and reads what explains them."""

    def __init__(
        self, project: Project, details: PairDetails, flips: FlipFinder, since: int
    ) -> None:
        """`since` is when the run of the first side started."""
        self.flips: dict[Pair, Pair] = {}
        """Pairs -> the two results in between at which the verdict flipped, in both directions."""
        self.questions = QuestionChanges(project)
        self.judgements: TemporaryMapping[PairIds, Sequence[str]] = TemporaryMapping()
        """By the judgements of both sides: labels and changes of evaluators between them."""
        self.criteria: TemporaryMapping[Evaluations, Sequence[str]] = TemporaryMapping()
        """By the evaluation versions of both sides: which parts of them changed."""
        self.same_answers: TemporaryMapping[PairIds, bool] = TemporaryMapping()
        self.shown_questions: TemporaryMapping[PairIds, bool] = TemporaryMapping()
        """By the judgements of both sides: those by a judge that is shown the question."""
        self._project, self._details, self._flips, self._since = project, details, flips, since
        self._pairs = SortedPairs()

    def sort(self, pairing: Pairing, name: Callable[[str], str]) -> Comparison:
        """Return the comparison; `name` returns the name by which a file is shown."""
        for batch in pairing.batches():
            groups = iter(self._find_groups([pair for _, pair in batch if pair]))
            listed = [(next(groups) if pair else "unchanged", each) for each, pair in batch]
            # Of one row, what was found to be equal comes after what was not asked anew.
            listed.sort(key=lambda entry: (pairing.key(entry[1]), entry[0] == _EQUAL))
            for group, numbers in listed:
                self._pairs.add(_GROUP.get(group, group), numbers)
        was = pairing.sides.was.with_names(name)
        return self._pairs.finish(pairing.sides._replace(was=was))

    def _find_groups(self, pairs: Sequence[Pair]) -> list[str]:
        """Return the group of each pair, after reading what explains those that differ."""
        groups: list[str] = [sort_pair(pair) for pair in pairs]

        def of_group(*names: str) -> list[Pair]:
            return [pair for pair, group in zip(pairs, groups, strict=True) if group in names]

        sessions = self._project.store.find_compared(sessions_to_compare(of_group(*_FLIPS)))
        for number, pair in enumerate(pairs):
            if groups[number] == "changed" and pair.has_same_verdict:
                groups[number] = _EQUAL if has_equal_texts(pair, sessions) else "changed"
        on_both, flips = of_group(*_FLIPS), self._flips.find(of_group("broke", "fixed"))
        if self._flips.is_cut:  # not some of the pairs alone
            self.flips.clear()
        self.flips |= flips | {pair.swapped(): flip.swapped() for pair, flip in flips.items()}
        explained = [*on_both, *flips.values()]
        sides = [
            side
            for pair in explained
            if has_other_sessions(pair)
            for side in (pair.was, pair.now)
            if side
        ]
        ids = {side.sessions[0] for side in sides} - sessions.keys()
        sessions |= self._project.store.find_compared(ids)
        self.questions.read(explained, sessions)
        same = find_same_answers(self._project.store, explained, sessions)
        self.same_answers.update(dict.fromkeys(same, True))
        for number, pair in enumerate(pairs):
            if groups[number] == "changed" and pair.has_same_verdict and sessions_of(pair) in same:
                groups[number] = "same_answer"
        self._read_criteria(explained)
        both_ways = [side for pair in explained for side in (pair, pair.swapped())]
        shown: set[PairIds] = set()
        changes = judgement_changes(
            *(self._project.store, self._project.versions, both_ways, self._since),
            shown_questions=shown,
        )
        self.shown_questions.update(dict.fromkeys(shown, True))
        self.judgements.update({ids: words for ids, words in changes.items() if words})
        self._details.read([*on_both, *of_group("new", "gone")])
        return groups

    def _read_criteria(self, pairs: Iterable[Pair]) -> None:
        """Read how the instructions and checks of these pairs differ."""
        sides = {
            (pair.was.evaluation, pair.now.evaluation) for pair in pairs if pair.was and pair.now
        }
        both = {each for each in sides if each[0] != each[1]}
        ids = {id for each in both for id in each if id}
        contents = self._project.versions.load("evaluation", ids)
        for was, now in both:
            old, new = contents.get(was or "", {}), contents.get(now or "", {})
            parts = " and ".join(evaluation_parts(old, new))
            words = [f"{parts} changed"] if parts else []
            self.criteria.update({(was, now): words, (now, was): words})


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


# --- the two results between which a compared verdict flipped, where other runs lie between


_MOST_CELLS = 20_000
"""The most results that are looked for in the runs between; with more, no pair has a flip."""


class FlipFinder:
    """Looks for pairs in the runs between both sides, newest first, as a history does."""

    def __init__(self, store: Store, folder: str, was: Side, now: Side, finder: CaseFinder) -> None:
        """`folder` is that of the test files. Nothing lies between if the first side is newer."""
        self._store, self._folder, self._now, self._finder = store, folder, now, finder
        self._left = _MOST_CELLS
        self._newest = None if now.name == WORKSPACE else store.load_run(now.name)
        newer = enumerate(store.find_recent_runs(before=self._newest))
        self._count = next((count for count, run in newer if run.id == was.name), 0)
        """How many runs lie between."""
        self.is_cut = False
        """Whether more results would have to be looked for than are."""

    def find(self, pairs: Sequence[Pair]) -> dict[Pair, Pair]:
        """Return the results at the last change from or to a pass, for pairs with such a change.

        Both are of runs that judged the case one after the other. Those are left out that changed
        between just the two sides, and all of them beyond a limit.
        """
        results = (
            [pair.now for pair in pairs if pair.now] if self._count and not self.is_cut else []
        )
        if not results:
            return {}
        prompts = SidePrompts(self._now, self._finder, results)
        waiting: dict[Pair, tuple[Result, Iterable[str | None]]] = {}
        waiting |= {
            pair: (pair.now, PromptsOfCase(prompts, pair.now)) for pair in pairs if pair.now
        }
        rows = RowResults(self._store)
        paths, found = {pair.either.file for pair in waiting}, dict[Pair, Pair]()
        history = PathHistory(self._store, self._folder, self._now.nodes, self._now.files)
        runs = EarlierRuns(self._store, history).before(self._newest, paths, limit=self._count)
        for _, entries in runs:
            here = [pair for pair in waiting if pair.either.file in entries]
            self._left -= len(here)
            if self._left < 0:
                self.is_cut = True
                return {}
            cells = [waiting[pair] for pair in here]
            for pair, match in zip(here, find_cells(rows, entries, cells, is_judged), strict=True):
                if match is None:
                    continue
                result, case = match
                if (result.verdict == "pass") == (pair.either.verdict == "pass"):
                    waiting[pair] = result, case.prompts
                else:
                    found[pair] = Pair(result, waiting.pop(pair)[0])
            paths &= {pair.either.file for pair in waiting}
        rest = ((pair, Pair(pair.was, result)) for pair, (result, _) in waiting.items())
        return found | {pair: flip for pair, flip in rest if flip != pair}

"""Says which change explains a compared pair, and what is remarkable about the two sides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from evalstore.comparison.comparison import OTHER_JUDGEMENT, Comparison, Pair, change_of_tests
from evalstore.comparison.pair_groups import (
    ASKED_AGAIN,
    OLDER,
    age_of_answers,
    asks_the_same,
    has_other_sessions,
    sessions_of,
)
from evalstore.comparison.version_diff import (
    CODE_CHANGED,
    RECORDED_ANSWER,
    differ_models,
    number_change,
)
from evalstore.core.display import plural
from evalstore.core.runs import RunCandidate
from evalstore.core.values import ComparedSession, Decision, Result
from evalstore.files.temporary_list import TemporaryMapping
from evalstore.planning.project import VersionReader
from evalstore.results.answer.judgements import (
    Attempt,
    Attempts,
    CellToJudge,
    failed_text,
    read_attempts,
)
from evalstore.results.compare.compared_side import Side
from evalstore.results.edits.edits import (
    NO_LONGER,
    judging_causes,
    label_cause,
)
from evalstore.store import Store

_NO_EDITS = (OLDER, ASKED_AGAIN, "answered", "judged", "not ", "label")
"""How the reasons begin that are not edits."""
LABELS, OLDER_ANSWERS, EDITS = "people's labels", "older answers", "edits of tests"
LAPSED, BACK, JUDGES = "labels that no longer count", "labels that count again", "judges"
"""What changes a verdict without a new answer of the candidate."""
PairIds = tuple[tuple[str, ...], tuple[str, ...]]
"""The sessions, or the judgements, of both sides of a pair."""
CandidatePairs = Mapping[str, tuple[RunCandidate, RunCandidate]]
"""Both definitions of candidates, by id."""
Evaluations = tuple[str | None, str | None]
"""The evaluation versions of both sides of a pair."""


@dataclass
class PairReasons:
    """What differs between the sides of pairs beside their definitions."""

    questions: TemporaryMapping[PairIds, str] = field(default_factory=TemporaryMapping)
    """Sessions of both sides -> how their questions differ, apart from test and prompt."""
    judgements: TemporaryMapping[PairIds, Sequence[str]] = field(default_factory=TemporaryMapping)
    """Judgements of both sides -> labels and changes of evaluators between them."""
    criteria: TemporaryMapping[Evaluations, Sequence[str]] = field(default_factory=TemporaryMapping)
    """Evaluation versions of both sides -> which parts of them changed."""
    same_answers: TemporaryMapping[PairIds, bool] = field(default_factory=TemporaryMapping)
    """Other sessions of both sides with the same answers."""
    shown_questions: TemporaryMapping[PairIds, bool] = field(default_factory=TemporaryMapping)
    """Judgements of both sides by a judge that is shown the question."""
    candidates: Mapping[str, CandidatePairs] = field(default_factory=dict)
    """Those that are defined otherwise on both sides, by the earlier run that results are taken
    from; that of others is empty."""
    own_temperatures: Set[str] = frozenset()
    """Test files whose cases are not asked at the temperature of the candidate."""
    rules: tuple[str, str] = ("", "")
    """The rules by which several votes make a verdict, on both sides."""
    earlier: Mapping[Result, str] = field(default_factory=dict)
    """Results of the first side that its run lacks -> the id of the earlier run that has them."""
    is_within_run: bool = False
    """Whether the sides are two candidates, or system prompts, of one run: then only other
    definitions explain their pairs."""

    def explain(self, pair: Pair) -> str:
        """Return the change that explains a pair; empty if none is known."""
        return ", ".join(self._changes(pair))

    def edits(self, pair: Pair) -> Iterator[str]:
        """Return the edits among the changes that explain a pair."""
        return (change for change in self._changes(pair) if not change.startswith(_NO_EDITS))

    def _changes(self, pair: Pair) -> list[str]:
        """Return what explains a pair."""
        was, now = pair.was, pair.now
        if was is None or now is None:
            return ["new" if was is None else "gone"]
        asked = change_of_tests(was, now)
        if self.is_within_run:
            return asked
        if was.prompt != now.prompt:
            asked.append("system prompt changed")
        judged = [*self.criteria.get((was.evaluation, now.evaluation), ())]
        judgements = self.judgements.get((was.evaluations, now.evaluations), ())
        is_same = sessions_of(pair) in self.same_answers
        is_judged_alone = is_same and (was.evaluations, now.evaluations) not in self.shown_questions
        if causes := judging_causes(pair, judged, judgements, has_same_answer=is_judged_alone):
            return causes
        question = self.questions.get((was.sessions, now.sessions), "")
        changes = [*asked, *judged]
        if not asked and (has_other_sessions(pair) or not judged):
            changes += self._other_answer(was, now)
        elif not was.sessions or not now.sessions:
            changes += self._candidate_edits(was, now) if was.sessions != now.sessions else []
        elif question and not question.startswith((ASKED_AGAIN, OLDER)):
            changes.append(question)
        changes += judgements
        return changes or [*filter(None, [self._other_judgement(was, now)])]

    def other_cause(self, pair: Pair) -> str:
        """Return what changed a verdict, if that was no new answer: one of the causes below."""
        was, now = pair.was, pair.now
        if was is None or now is None or pair.has_same_verdict or pair.is_now_pending:
            return ""
        words = self.judgements.get((was.evaluations, now.evaluations), ())
        by_label = label_cause(pair, words)
        if by_label.startswith("by "):
            return LABELS
        answers = sessions_of(pair)
        if self.questions.get(answers, "").startswith(OLDER):
            return OLDER_ANSWERS
        if answers[0] != answers[1] and answers not in self.same_answers:
            return ""
        if by_label:
            return LAPSED if by_label.endswith(NO_LONGER) else BACK
        is_same = (was.evaluation, was.tests) == (now.evaluation, now.tests)
        return JUDGES if is_same else EDITS

    def _other_answer(self, was: Result, now: Result) -> list[str]:
        """Return how the answers to the same question differ; empty if they are the same."""
        if was.sessions == now.sessions:
            return []
        if not was.sessions or not now.sessions:
            word = "not answered" if was.sessions else "answered"
            return self._candidate_edits(was, now) or [word]
        return [self.questions.get((was.sessions, now.sessions), ASKED_AGAIN)]

    def _candidate_edits(self, was: Result, now: Result) -> list[str]:
        """Return what changed of the candidate of a pair, as far as it matters to its case."""
        pairs = self.candidates.get(self.earlier.get(was) or self.earlier.get(now, ""), {})
        if now.model not in pairs:
            return []
        old, new = pairs[now.model]
        edits = ["model changed"] * (old.model != new.model)
        if old.temperature != new.temperature and now.file not in self.own_temperatures:
            edits.append(str(number_change("temperature", old.temperature, new.temperature)))
        return edits

    def _other_judgement(self, was: Result, now: Result) -> str:
        """Return how the judgement of the same answer differs; empty if it is the same."""
        if was.is_missing != now.is_missing:
            return "judged" if was.is_missing else "not judged"
        if was.evaluations != now.evaluations:
            return OTHER_JUDGEMENT
        is_filled_in = was in self.earlier or now in self.earlier
        if was.verdict != now.verdict and self.rules[0] != self.rules[1] and not is_filled_in:
            return f"verdict: {' -> '.join(self.rules)}"
        return ""


def selection_notes(was: Side, filled: Side, now: Side) -> Iterator[str]:
    """Yield notes about partial runs, and about unfinished ones."""
    others = len(filled.earlier)
    rest, them = ("one comes", "it") if others == 1 else (f"{others:,} come", "them")
    earlier = f"the other {rest} from the last earlier run that judged {them}"
    if not others and was.name != now.name and was.selection and _scope(was) == _scope(now):
        runs = f"runs {was.name[:8]} and {now.name[:8]}"
        yield f"{runs} are partial: {_scope(was)}; only those are compared"
        return
    for side in (was, now) if was is not now else (was,):
        rest = earlier if side is was and others else "only those are compared"
        if side.selection:
            yield f"run {side.name[:8]} is partial: {_scope(side)}; {rest}"
        elif side is was and others:
            yield f"run {side.name[:8]} did not judge all cases; {rest}"


def attempts_notes(comparison: Comparison) -> Iterator[str]:
    """Yield a note about results whose verdicts are those of more or fewer attempts than before.

    A majority of several attempts passes at another rate than a single one, without any edit.
    """
    numbers = Counter(sides for sides in comparison.attempts() if sides[0] != sides[1])
    if numbers:
        kinds = {f"{was} -> {now}" for was, now in numbers}
        which = f" ({kinds.pop()})" if len(kinds) == 1 else ""
        count = numbers.total()
        results = f"{plural(count, 'result')} {'has' if count == 1 else 'have'}"
        alone = "which alone can change the pass rate"
        yield f"{results} a different number of attempts{which}, {alone}"


def _scope(side: Side) -> str:
    """Return the selection of a run, with the number of its results."""
    count = len(side.results) + sum(part.results for part in side.equal.parts)
    return f"{side.selection} ({plural(count, 'result')})"


def describe_questions(
    versions: VersionReader, pairs: Iterable[Pair], sessions: Mapping[str, ComparedSession]
) -> Mapping[PairIds, str]:
    """Return how the candidates, or the ages of the answers to the same question, differ.

    By the sessions of both sides; `sessions` are those of the pairs that have other answers.
    """
    others = [pair for pair in pairs if has_other_sessions(pair)]
    versions.read_ahead(("model", it.question.model) for it in sessions.values() if others)
    of_models: dict[tuple[str, str], str] = {}
    words: dict[PairIds, str] = {}
    for pair in others:
        ids = sessions_of(pair)
        was, now = (sessions.get(side[0]) for side in ids)
        if was is None or now is None:
            continue
        models = was.question.model, now.question.model
        if models[0] != models[1]:
            if models not in of_models:  # a recorded answer, or a file of an application
                old, new = (versions.find("model", id) or {} for id in models)
                first = next(iter(differ_models(old, new)), None)
                is_named = first and first.subject.startswith((CODE_CHANGED, RECORDED_ANSWER))
                of_models[models] = str(first) if is_named else "model changed"
            words[ids] = of_models[models]
        elif change := _question_change(pair, was, now, sessions):
            words[ids] = change
    return words


def _question_change(
    pair: Pair, was: ComparedSession, now: ComparedSession, sessions: Mapping[str, ComparedSession]
) -> str:
    """Describe how the question, or the age of the answers, differs; empty if neither does."""
    for name in ("temperature", "seed"):
        old, new = getattr(was.question, name), getattr(now.question, name)
        if old != new:
            return str(number_change(name, old, new))
    if not asks_the_same(pair):
        return ""
    words = OLDER if age_of_answers(pair, sessions) == OLDER else ""
    if was.resolved and now.resolved and not {*was.resolved} & {*now.resolved}:
        names = " -> ".join(", ".join(side.resolved) for side in (was, now))
        return f"{words or ASKED_AGAIN}: resolved model {names}"
    return words


# --- the attempts of a compared pair: how many fail, and which of them show the change


class SideAttempts(TemporaryMapping[tuple[str, ...], tuple[Attempt, ...]]):
    """The attempts of the results of a side, as far as they have several, by their judgements."""

    def __init__(self, store: Store, side: Side) -> None:
        super().__init__(
            lambda those: [(it.sessions, it.verdict, it.judgements) for it in those],
            lambda packed: tuple(Attempt(tuple(ids), word, tuple(by)) for ids, word, by in packed),
        )
        self._store, self._side = store, side

    def read(self, results: Iterable[Result | None]) -> None:
        """Add those of these judged results."""
        by_node: dict[str, list[Result]] = {}
        for result in results:
            if result is not None and result.verdict and result.has_attempts:
                by_node.setdefault(self._side.nodes[result.file], []).append(result)
        for node, listed in by_node.items():
            names = {name for result in listed for name in (result.key, result.row)}
            found = [*self._store.find_named_cases(self._side.files[node], names)]
            cases = {case.row: case for case in found} | {case.key: case for case in found}
            pairs = ((result, cases.get(result.key) or cases.get(result.row)) for result in listed)
            cells = [
                CellToJudge(result, case.judged_by, self._side.rule)
                for result, case in pairs
                if case
            ]
            self.update(read_attempts(self._store, cells))


PairAttempts = tuple["Sequence[Attempt]", "Sequence[Attempt]"]
"""The attempts of both sides of a pair; empty for a side with a single one."""


def choose_attempts(pair: Pair, attempts: PairAttempts) -> tuple[Attempt | None, Attempt | None]:
    """Return the attempt of each side that explains the change; None for a side without answer.

    It has the verdict of its side, or the better and the worse one where the number of failed
    attempts differs, and if possible the other side does not have it.
    """
    was, now = (
        listed or _single(result)
        for listed, result in zip(attempts, (pair.was, pair.now), strict=True)
    )
    passes = [bool(side and side.verdict == "pass") for side in (pair.was, pair.now)]
    failed = [_failed(listed) / max(1, len(listed)) for listed in (was, now)]
    if pair.was and pair.now and passes[0] == passes[1] and failed[0] != failed[1]:
        passes = [failed[0] < failed[1], failed[0] > failed[1]]
    shown = _choose(now, was, passes[1])
    if shown and len(was) == len(now):
        same = was[now.index(shown)]  # the same attempt, whose answer may be the same
        if (same.verdict == "pass") == passes[0]:
            return same, shown
    return _choose(was, now, passes[0]), shown


def attempts_of(pair: Pair, sides: tuple[Attempts, Attempts]) -> PairAttempts:
    """Return the attempts of both sides; empty for a side that does not have several."""
    was, now = (
        known.get(side.evaluations, ()) if side else ()
        for known, side in zip(sides, (pair.was, pair.now), strict=True)
    )
    return was, now


def shown_decisions(pair: Pair, attempts: PairAttempts) -> tuple[Decision, Decision]:
    """Return the verdicts of both sides with the judgements that make them.

    Of several attempts, it is that on the attempt that explains the change.
    """
    chosen = choose_attempts(pair, attempts)
    was, now = (
        (attempt.verdict, attempt.judgements)
        if listed and attempt
        else (side.decision if side else (None, ()))
        for side, listed, attempt in zip((pair.was, pair.now), attempts, chosen, strict=True)
    )
    return was, now


def sessions_to_show(
    pair: Pair, attempts: PairAttempts, chosen: tuple[Attempt | None, Attempt | None]
) -> tuple[str | None, str | None]:
    """Return the answers to compare: of the chosen attempts, else the first two that differ."""
    if any(attempts):
        was, now = (attempt.sessions[0] if attempt else None for attempt in chosen)
        return was, now
    old, new = (side.sessions if side else () for side in (pair.was, pair.now))
    for both in zip(old, new, strict=False):
        if both[0] != both[1]:
            return both
    return old[0] if old else None, new[0] if new else None


def count_attempts(attempts: Sequence[Attempt]) -> dict[str, int]:
    """Return how many attempts fail, and how many there are."""
    return {"failed": _failed(attempts), "count": len(attempts)}


def change_text(pair: Pair, attempts: PairAttempts) -> str:
    """Return `1 of 5 attempts failed -> 3 of 5`; empty when neither side has several.

    Beside several attempts the single one of the other side counts: `1 of 5 attempts failed -> 1
    of 1`.
    """
    if not any(attempts):
        return ""
    sides = [
        listed or (_single(result) if result and result.verdict else ())
        for listed, result in zip(attempts, (pair.was, pair.now), strict=True)
    ]
    (old, before), (new, now) = ((_failed(listed), len(listed)) for listed in sides)
    if not before or not now or (old, before) == (new, now):
        return failed_text(new, now) or (f"{old} of {before} attempts failed" if before else "")
    return f"{old} of {before} attempts failed -> {new} of {now}"


def _single(result: Result | None) -> tuple[Attempt, ...]:
    """Return a result with a single attempt as that attempt."""
    if result is None or not result.sessions:
        return ()
    return (Attempt(result.sessions, result.verdict or "undecided", result.evaluations),)


def _failed(attempts: Sequence[Attempt]) -> int:
    return sum(1 for attempt in attempts if attempt.verdict != "pass")


def _choose(own: Sequence[Attempt], others: Sequence[Attempt], passes: bool) -> Attempt | None:
    """Return the first attempt that passes, or does not, and the other side lacks if possible."""
    common = {attempt.sessions for attempt in others}
    alone = [attempt for attempt in own if attempt.sessions not in common]
    for among in (alone, own):
        for attempt in among:
            if (attempt.verdict == "pass") == passes:
                return attempt
    return next(iter(alone or own), None)

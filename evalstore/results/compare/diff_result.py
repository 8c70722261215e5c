"""What `diff` finds, and how it is shown: two sides compared case by case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from typing import Any, NamedTuple

from evalstore.comparison.comparison import Comparison, Pair
from evalstore.comparison.pair_groups import PairGroup, same_answer_text, sessions_of
from evalstore.comparison.statistics import Rate, RateChange
from evalstore.comparison.version_diff import Difference, unified
from evalstore.core.display import (
    WORKSPACE,
    StyledLine,
    StyledSpan,
    case_name,
    plural,
    plural_is,
    safe,
    short,
    text_lines,
    verdict_span,
)
from evalstore.core.runs import Run
from evalstore.core.values import Decision, Json, Result
from evalstore.files.json_output import to_json
from evalstore.results.answer.judgements import Attempt, Attempts
from evalstore.results.compare.change_causes import (
    PairAttempts,
    PairReasons,
    attempts_of,
    change_text,
    choose_attempts,
    count_attempts,
    sessions_to_show,
    shown_decisions,
)
from evalstore.results.compare.diff_sides import Causes
from evalstore.results.names import name_field

_MOST_EQUAL = 1_000
"""Equal results of two candidates whose answers are read."""


@dataclass
class Diff:
    """The differences between two sides."""

    was: str
    now: str
    """A run's id, or `workspace`."""
    comparison: Comparison
    edits: Mapping[str, Sequence[Difference]]
    """Test file -> the edits of its cases."""
    feedback: Mapping[Decision, str]
    """The reasons for verdicts."""
    participants: tuple[Difference, ...] = ()
    """How candidates, evaluators and attempts differ."""
    answers: Mapping[str, str] = field(default_factory=dict)
    """Session id -> its answer, when answers were requested."""
    attempts: tuple[Attempts, Attempts] = field(default_factory=lambda: ({}, {}))
    """The attempts of the results of both sides that differ and have several."""
    prompts: dict[str, dict[str | None, str]] = field(default_factory=dict)
    """Test files with several system prompts -> the name of each."""
    notes: list[str] = field(default_factory=list)
    """Notes for a reader about the sides."""
    reasons: PairReasons = field(default_factory=PairReasons)
    """What explains the pairs, and which runs have the results that the first side lacks."""
    models: tuple[str, str] | None = None
    """The candidates, or the system prompts, that are compared, when both are of one run."""
    is_of_prompts: bool = False
    """Whether `models` are the names of system prompts: the pairs may be of several candidates."""
    has_edited_rows: bool = False
    """Whether rows that are new may be edited ones, which the field `rowId` would show."""
    prompt_names: Mapping[str | None, str] = field(default_factory=dict)
    """The names of all system prompts by id, where they are asked for."""
    causes: tuple[Causes, Causes] = (Causes(), Causes())
    """What only the first side has, and what only the second one has."""
    sources: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Test file -> what was edited: the file first, unless it was only what it uses."""
    is_now_partial: bool = False
    """Whether the newer side is a run of some cases, and the older one is not of the same."""
    runs: Mapping[str, Run] = field(default_factory=dict)
    """The runs that are sides, by id."""

    @property
    def filled_text(self) -> str:
        """Return which other runs have results of the first side; empty if its run has all."""
        return ", and with earlier runs for results that it left out" * bool(self.reasons.earlier)

    @property
    def is_empty(self) -> bool:
        """Return whether nothing differs."""
        return self.comparison.is_equal and not (self.edits or self.participants)

    @property
    def broke(self) -> PairGroup:
        """Return cases that passed on the first side and do not on the second."""
        return self.comparison.broke

    @property
    def fixed(self) -> PairGroup:
        """Return cases that did not pass on the first side and do on the second."""
        return self.comparison.fixed

    @property
    def changed(self) -> PairGroup:
        """Return other cases with another verdict, or with other sessions.

        Those in `same_answer` are among them.
        """
        return self.comparison.changed_or_same

    @property
    def same_answer(self) -> PairGroup:
        """Return changed cases with the same verdict and, word for word, the same answer."""
        return self.comparison.same_answer

    @property
    def new(self) -> PairGroup:
        """Return cases that only the second side has."""
        return self.comparison.new

    @property
    def gone(self) -> PairGroup:
        """Return cases that only the first side has."""
        return self.comparison.gone

    @property
    def flips(self) -> Mapping[str, PairGroup]:
        """Return what broke, is now undecided and was fixed, by these words."""
        undecided = self.comparison.now_undecided
        return {"broke": self.broke, "now undecided": undecided, "fixed": self.fixed}

    @cached_property
    def other_causes(self) -> Counter[tuple[str, str, int]]:
        """Return how many results have another verdict without a new answer.

        By cause, candidate, and what that adds to its passes: 1, 0 or -1.
        """
        counts = Counter[tuple[str, str, int]]()
        for pair in chain(self.broke, self.fixed, self.comparison.changed):
            cause, was, now = self.reasons.other_cause(pair), pair.was, pair.now
            if cause and was and now:
                counts[cause, now.model, (now.verdict == "pass") - (was.verdict == "pass")] += 1
        return counts

    def count_causes(self) -> Counter[str]:
        """Return these numbers by cause."""
        causes = Counter[str]()
        for (cause, *_), count in self.other_causes.items():
            causes[cause] += count
        return causes

    @property
    def rates(self) -> tuple[Rate, Rate]:
        """Return the pass rates of both sides over the cases that are judged on both."""
        return self.comparison.rates

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

    @property
    def earlier(self) -> Mapping[Result, str]:
        """Return results of the first side that its run lacks -> the id of the run with them."""
        return self.reasons.earlier

    def causes_of(self, change: str) -> list[str]:
        """Return why results are `new` or `gone`: `candidate mini not asked`; empty for others."""
        if change not in ("gone", "new"):
            return []
        return self.causes[change == "new"].texts(change)

    def attempts_of(self, pair: Pair) -> PairAttempts:
        """Return the attempts of both sides; empty for a side that does not have several."""
        return attempts_of(pair, self.attempts)

    def shown_sessions(self, pair: Pair) -> tuple[str | None, str | None]:
        """Return the answers of both sides that show the change."""
        attempts = self.attempts_of(pair)
        return sessions_to_show(pair, attempts, choose_attempts(pair, attempts))

    def shown_decisions(self, pair: Pair) -> tuple[Decision, Decision]:
        """Return what was decided on both sides: of several attempts, on the shown one."""
        return shown_decisions(pair, self.attempts_of(pair))

    def attempts_text(self, pair: Pair) -> str:
        """Return `1 of 5 attempts failed -> 3 of 5`; empty when neither side has several."""
        return change_text(pair, self.attempts_of(pair))

    def feedback_on(self, pair: Pair) -> tuple[str, str]:
        """Return the reasons for both verdicts, of several attempts for that on the shown one."""
        was, now = (self.feedback.get(each, "") for each in self.shown_decisions(pair))
        return was, now

    def reason(self, pair: Pair) -> str:
        """Return the change that explains a pair: of a definition, the answer or a judgement."""
        return self.reasons.explain(pair)

    def answer_diff(self, pair: Pair) -> list[str]:
        """Return the unified diff of the shown answers of both sides; empty when they are equal."""
        was, now = (self.answers.get(id or "", "") for id in self.shown_sessions(pair))
        return unified(was, now, *self.names)

    @property
    def equal_with_answers(self) -> list[Pair]:
        """Return the first equal results of two candidates; none of two runs."""
        return self.comparison.unchanged[:_MOST_EQUAL] if self.models else []

    def document(self) -> Json:
        """Return the comparison as JSON."""
        pairs = {name: [*listed] for name, listed in self.pair_documents().items()}
        return self.document_with(pairs)

    def pair_documents(self) -> dict[str, Iterator[Json]]:
        """Return the pairs of each change as JSON, which is made while it is read."""
        return {name: map(self.pair_document, getattr(self, name)) for name in CHANGES}

    def document_with(
        self, pairs: Mapping[str, Json], convert: Callable[[Any], Json] = to_json
    ) -> Json:
        """Return the comparison as JSON, with these lists of its pairs.

        `convert` turns the edits of a file into JSON.
        """
        names = self.models or ()
        return {
            "from": self.was,
            "to": self.now,
            **({"prompts" if self.is_of_prompts else "models": [*names]} if names else {}),
            **pairs,
            "sameAnswer": len(self.same_answer),
            "unchanged": self.comparison.unchanged_count,
            "undecided": len(self.comparison.now_undecided),
            "causes": {change: self.causes_of(change) for change in ("new", "gone")},
            "notes": self.notes,
            "edits": [
                {
                    "file": file,
                    "edited": list(self.sources.get(file, (file,))),
                    "edits": convert(listed),
                }
                for file, listed in self.edits.items()
            ],
            "participants": to_json(self.participants),
            "statistics": {
                **to_json(dict(zip(("was", "now"), self.rates, strict=True))),
                **to_json(self.change),
            },
        }

    def pair_document(self, pair: Pair) -> Json:
        """Return a pair as JSON."""
        shown = pair.either
        attempts, name = self.attempts_of(pair), self.prompt_names.get(shown.prompt)
        sessions, feedback = self.shown_sessions(pair), self.feedback_on(pair)
        document = {
            "file": shown.file,
            "row": shown.row,
            "prompt": shown.prompt,
            **({"promptName": name} if name else name_field(self.prompts, shown)),
            "model": shown.model,
            "was": side_to_json(pair.was, attempts[0], sessions[0], feedback[0], self.earlier),
            "now": side_to_json(pair.now, attempts[1], sessions[1], feedback[1], self.earlier),
            "reason": self.reason(pair),
        }
        if sessions_of(pair) in self.reasons.same_answers:
            document["sameAnswer"] = True
        if self.answers:
            document["answers"] = self.answer_diff(pair)
        return document

    def _repr_html_(self) -> str:
        """Return the comparison as notebooks show it: the pass rates, and what changed."""
        from evalstore.core.notebook_tables import MOST_ROWS, block, line, strong, table, word

        comparison, names = self.comparison, self.names
        listed = {change: getattr(comparison, change) for change in CHANGES}
        pairs = ((change, pair) for change in CHANGES for pair in listed[change])
        rows = [
            (
                word(change),
                pair.either.file,
                pair.either.row,
                pair.either.model,
                word(pair.was.word) if pair.was else "",
                word(pair.now.word) if pair.now else "",
                self.reason(pair) if pair.was and pair.now else "",
                self.feedback_on(pair)[1],
            )
            for change, pair in islice(pairs, MOST_ROWS)
        ]
        counts = [
            f"{len(listed[change]):,} {change}" + (f" ({', '.join(causes)})" if causes else "")
            for change in CHANGES
            for causes in [self.causes_of(change)]
        ]
        counts += [same_answer_text(same)] if (same := len(comparison.same_answer)) else []
        rates = comparison.rates_text.replace("->", "→")
        p = "" if comparison.by_verdict else f", p = {comparison.change().p:.2g}"
        header = ["change", "file", "row", "model", *names, "reason", "feedback"]
        return block(
            line(strong(f"{names[0]} → {names[1]}"), *self.notes),
            line(", ".join([*counts, f"{comparison.unchanged_count:,} unchanged"])),
            line(f"{rates}{p}" if comparison.rates[0].judged else ""),
            table(header, rows, sum(map(len, listed.values()))),
        )


def _name(side: str) -> str:
    """Return the short id of a run, or `workspace`."""
    return side if side == WORKSPACE else side[:8]


# --- converts the sides of a compared pair, and the edits of test files, to JSON


def side_to_json(
    result: Result | None,
    attempts: Sequence[Attempt],
    session: str | None,
    feedback: str,
    earlier: Mapping[Result, str],
) -> Json:
    """Return one side of a pair as JSON; None for a side without a result.

    `session` is the answer that is shown, and `earlier` the runs of results by result.
    """
    if result is None:
        return None
    return {
        "verdict": result.verdict or ("pending" if result.evaluation else None),
        "feedback": feedback,
        "session": session,
        **({"attempts": count_attempts(attempts)} if attempts else {}),
        **({"run": earlier[result]} if result in earlier else {}),
    }


FLIPS = {"broke": "fail", "fixed": "pass"}
"""Changes between pass and fail, and their colours."""
CHANGES = {**FLIPS, "changed": "undecided", "new": "group", "gone": "faint"}
"""All changes of a pair in the order in which they are listed, and their colours."""
_OF_CANDIDATES = {
    "broke": "worse",
    "fixed": "better",
    "changed": "different",
    "unchanged": "equal",
}
"""The names of changes between two candidates, where nothing happens in time."""
SAME_ANSWER = "same_answer"
"""Pairs with the same answer to another question; listed only on request."""


def change_name(diff: Diff, change: str) -> str:
    """Return the name of a change: `broke` or `fixed`; of two candidates, `worse` or `better`."""
    if diff.models and change in ("gone", "new"):
        return f"only {safe(diff.models[change == 'new'])}"
    if change == SAME_ANSWER:
        return "same answer"
    return _OF_CANDIDATES.get(change, change) if diff.models else change


def count_cases(results: Iterable[object]) -> list[str]:
    """Return `1 case` and, only if these are more, `3 results`, from the case of each result."""
    listed = [*results]
    cases = len({*listed})
    return [plural(cases, "case"), *([plural(len(listed), "result")] * (cases < len(listed)))]


def has_candidates(diff: Diff) -> bool:
    """Return whether the pairs may be of several candidates; not when two are compared."""
    return diff.models is None or diff.is_of_prompts


def side_names(diff: Diff) -> tuple[str, str]:
    """Return the names of both sides of a pair: `was` and `now`, or those of the candidates."""
    return diff.models or ("was", "now")


def listed_pairs(diff: Diff, change: str) -> PairGroup:
    """Return the pairs of a change in the order in which they are listed: new failures first."""
    pairs: PairGroup = getattr(diff.comparison, change)
    return pairs.new_failures_first() if change == "new" else pairs


def summary_lines(
    diff: Diff, hint: str = "", names: Sequence[str] = (), quote: Callable[[str], str] = safe
) -> Iterator[StyledLine]:
    """Yield the numbers of changed pairs by kind, and the pass rates of both sides.

    Behind those that only one side has stands why: `4 gone (candidate mini not asked)`.
    `hint` follows the number of unchanged pairs. The test of a difference is left out where
    nothing changed, and where what changed is pending; the rates are left out where only the rest,
    which is unchanged, is judged on both sides. Between two candidates, the changes are
    those of the second. The difference of the rates begins with the `names` of the sides, which
    are those of two candidates if none are given: `big against mini: +3.0 points`. `quote` writes
    the name of a candidate that is tested alone.
    """
    comparison = diff.comparison
    counts = {change: len(getattr(comparison, change)) for change in CHANGES}
    spans: list[StyledSpan] = []
    for kind, count in counts.items():
        if count:
            cases, *several = count_cases(getattr(comparison, kind).rows() if kind in FLIPS else ())
            text = f"{count:,} {change_name(diff, kind)}{_remarks(diff, kind)}"
            if several:
                text = f"{several[0]} {change_name(diff, kind)} ({cases})"
            spans += [StyledSpan(text, FLIPS.get(kind, "")), StyledSpan(", ")]
    if comparison.same_answer:
        spans.append(StyledSpan(f"{same_answer_text(len(comparison.same_answer))}, "))
    whose = (StyledSpan(f"{safe(diff.models[1])}: "),) if diff.models else ()
    pending = comparison.unchanged.count_missing() if diff.models else 0
    count = comparison.unchanged_count - pending
    if count or not comparison.same_answer:  # nothing beside those with the same answer reads oddly
        spans.append(StyledSpan(f"{count:,} {change_name(diff, 'unchanged')}{hint}"))
    else:
        spans[-1] = spans[-1]._replace(text=spans[-1].text.removesuffix(", ") + hint)
    yield StyledLine((*whose, *spans))
    if pending:
        yield from text_lines(
            f"{plural_is(pending, 'result')} pending for both candidates", "pending"
        )
    if not comparison.rates[0].judged:
        yield from text_lines("no result is judged on both sides", "pending")
        return
    change = comparison.change()
    now_pending = 0 if diff.models else comparison.pending
    is_rest = now_pending > 0 and change.pairs == comparison.judged_and_unchanged
    if undecided := 0 if diff.models else len(comparison.now_undecided):
        yield from text_lines(f"{plural_is(undecided, 'result')} now undecided", "undecided")
    if is_rest:
        return
    for place, model in enumerate(diff.models or ()):  # while the other one has a verdict
        sides = [(pair.was, pair.now) for pair in diff.comparison.changed]
        count = sum(1 for both in sides if (side := both[place]) and side.is_missing)
        if count:
            text = plural_is(count, "result", f" of {safe(model)}")
            yield from text_lines(f"{text} pending and not in the pass rates", "pending")
    results = f"{plural(change.pairs, 'result')} in {plural(change.files, 'file')}"
    chosen = ", chosen by their verdicts" * comparison.by_verdict
    yield from text_lines(f"{comparison.rates_text} ({results}{chosen}, judged on both sides)")
    is_known = not comparison.by_verdict and (not now_pending or change.moved)
    if comparison.flips and is_known:
        was, now = map(safe, names or diff.models or ("", ""))
        whose_points = f"{now} against {was}: " if now else ""
        findings, points = comparison.findings(change), f"{whose_points}{change.points}"
        if "" in findings:
            yield StyledLine((StyledSpan(f"{points}; "), StyledSpan(findings[""], "heading")))
            return
        yield StyledLine((StyledSpan(points),))
        for name, finding in findings.items():
            yield StyledLine((StyledSpan(f"{quote(name)}: "), StyledSpan(finding, "heading")))


def _remarks(diff: Diff, change: str) -> str:
    """Return why there are new results, and how many failed: ` (new file a.md; 1 failed)`.

    Of changed ones, how many are pending now.
    """
    if change == "changed" and not diff.models and (count := diff.comparison.pending):
        return f" ({'all' if count == len(diff.comparison.changed) else f'{count:,}'} now pending)"
    words = diff.comparison.new.count_new() if change == "new" else Counter()
    counts = ((words["fail"] + words["error"], "failed"), (words["undecided"], "undecided"))
    parts = [safe(causes)] if (causes := ", ".join(diff.causes_of(change))) else []
    parts += [", ".join(f"{count:,} {word}" for count, word in counts if count)]
    parts = [*filter(None, parts)]
    return f" ({'; '.join(parts)})" if parts else ""


class SideVerdict(NamedTuple):
    """The verdict on one side of a pair."""

    word: str
    run: str = ""
    """The short id of the earlier run that has it; empty if the run of the side has it."""


class PairFacts(NamedTuple):
    """The facts about a pair of results, as they are stored."""

    name: str
    """The case, with its system prompt if the file has several."""
    model: str
    verdicts: tuple[SideVerdict, ...]
    """The verdicts of both sides, or the one that both have."""
    reason: str
    """The change that explains the pair; empty if only one side has it."""
    prompt: str
    """The system prompt if the file has several, else empty."""


def describe_pair(diff: Diff, pair: Pair) -> PairFacts:
    """Return the case and the candidate of a pair, its verdicts, and the reason for the change."""
    result = pair.either
    prompt = diff.prompts.get(result.file, {}).get(result.prompt)
    return PairFacts(
        case_name(result.file, result.row, prompt),
        result.model if has_candidates(diff) else "",
        tuple(dict.fromkeys(_verdict(diff, side) for side in (pair.was, pair.now) if side)),
        diff.reason(pair) if pair.was and pair.now else "",
        prompt or "",
    )


def pair_line(
    diff: Diff, pair: Pair, *, signs: Mapping[str, str], indent: int = 0, with_ids: bool = False
) -> StyledLine:
    """Return the case and candidate of a pair, both verdicts, and the reason for the change.

    With `with_ids`, the ids of the answers of both sides that show the change follow.
    """
    facts = describe_pair(diff, pair)
    model = f"{safe(facts.model)}  " if facts.model else ""
    sides = [(*_verdicts(diff, side, signs),) for side in (pair.was, pair.now) if side]
    if len(sides) == 2 and sides[0] != sides[1]:
        verdicts = [*sides[0], StyledSpan(" -> "), *sides[1]]
    else:
        verdicts = [*sides[-1]]
    spans = [StyledSpan(f"{safe(facts.name)}  {model}"), *verdicts]
    if attempts := diff.attempts_text(pair):
        spans.append(StyledSpan(f", {attempts}"))
    if facts.reason:
        spans.append(StyledSpan(f"  ({safe(facts.reason)})", "pending"))
    ids = [short(id) for id in diff.shown_sessions(pair) if id]
    if with_ids and ids:
        spans.append(StyledSpan(f"  {' -> '.join(dict.fromkeys(ids))}", "faint"))
    return StyledLine(tuple(spans), indent)


def _verdicts(diff: Diff, result: Result, signs: Mapping[str, str]) -> Iterator[StyledSpan]:
    """Yield the verdict of a side, with its run if that is an earlier one than the side's."""
    verdict = _verdict(diff, result)
    yield verdict_span(verdict.word, signs)
    if verdict.run:
        yield StyledSpan(f" (run {verdict.run})", "faint")


def _verdict(diff: Diff, result: Result) -> SideVerdict:
    return SideVerdict(result.word or "answered", short(diff.earlier.get(result, "")))


def side_lines(
    diff: Diff, pair: Pair, feedback: Mapping[Decision, str], *, indent: int = 0
) -> Iterator[StyledLine]:
    """Yield the score of each side and the reasons for its verdict.

    What both sides have in common is said once. Of several attempts, the reasons for the verdict
    on the one that shows the change are shown.
    """
    sides = zip(side_names(diff), (pair.was, pair.now), diff.shown_decisions(pair), strict=True)
    said: dict[tuple[str, str], list[str]] = {}
    for name, side, decision in sides:
        if side is None:
            continue
        score = "" if side.score is None else f" (score {side.score:.2g})"
        said.setdefault((score, feedback.get(decision, "")), []).append(name)
    for (score, text), names in said.items():
        label = f"{safe(' and '.join(names))}{score}"
        if not text:
            if score:
                yield StyledLine((StyledSpan(label),), indent)
            continue
        first, *others = text_lines(text)
        yield StyledLine((StyledSpan(f"{label}: "), *first.spans), indent)
        for line in others:
            yield StyledLine(line.spans, indent + len(label) + 2)

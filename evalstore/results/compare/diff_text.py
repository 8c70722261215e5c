"""Formats a comparison and its pairs as text, for the command line and the browser."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from evalstore.comparison.pair_groups import same_answer_text
from evalstore.core.display import (
    StyledLine,
    StyledSpan,
    case_name,
    plural,
    safe,
    short,
    text_lines,
    verdict_span,
)

if TYPE_CHECKING:
    from evalstore.comparison.comparison import Pair
    from evalstore.comparison.pair_groups import PairGroup
    from evalstore.core.results import Decision, Result
    from evalstore.results.compare.diff_result import Diff

ROW_ID_HINT = "an edited row counts as a new one, unless the field 'rowId' of its file names it"
"""Said where some rows of a file are gone and others are new."""
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

    Behind those that only one side has stands why: `4 gone (candidate mini removed)`.
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
        verb = "is" if pending == 1 else "are"
        yield from text_lines(
            f"{plural(pending, 'result')} {verb} pending for both candidates", "pending"
        )
    if not comparison.rates()[0].judged:
        yield from text_lines("no result is judged on both sides", "pending")
        return
    change = comparison.change()
    now_pending = 0 if diff.models else comparison.pending
    is_rest = now_pending > 0 and change.pairs == comparison.judged_and_unchanged
    if undecided := 0 if diff.models else len(comparison.now_undecided):
        verb = "is" if undecided == 1 else "are"
        yield from text_lines(f"{plural(undecided, 'result')} {verb} now undecided", "undecided")
    if is_rest:
        return
    yield from _pending_candidates(diff)
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


def _pending_candidates(diff: Diff) -> Iterator[StyledLine]:
    """Yield how many results of one of two candidates wait, while the other has a verdict."""
    for place, model in enumerate(diff.models or ()):
        sides = [(pair.was, pair.now) for pair in diff.comparison.changed]
        count = sum(1 for both in sides if (side := both[place]) and side.is_missing)
        if count:
            verb = "is" if count == 1 else "are"
            text = f"{plural(count, 'result')} of {safe(model)} {verb} pending"
            yield from text_lines(f"{text} and not in the pass rates", "pending")


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

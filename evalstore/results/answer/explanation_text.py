"""The sections that explain a verdict, for the command line and the browser alike.

Pure: a `VerdictExplanation` in, lines with colours out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, islice
from typing import TYPE_CHECKING

from evalstore.comparison.word_diff import ChangedLine, compare_words, diff_lines
from evalstore.core.clock import minute
from evalstore.core.display import (
    WORKSPACE,
    StyledLine,
    StyledSpan,
    ago,
    case_name,
    marked_spans,
    plural,
    safe,
    short,
    text_lines,
    verdict_span,
)
from evalstore.results.answer.answer_text import counts_otherwise
from evalstore.results.attempts import attempts_text

if TYPE_CHECKING:
    from evalstore.core.runs import Run
    from evalstore.results.answer.verdict_explanation import (
        FailedCheck,
        VerdictExplanation,
        VerdictReasons,
    )
    from evalstore.results.flips.result_changes import ResultChange
    from evalstore.results.flips.result_history import JudgedAttempts, VerdictCounts
    from evalstore.results.labels.labels import LabelIndex

DIFFERENCE, ATTEMPTS, HISTORY = "where it differs", "attempts", "history"
OTHERS = "other results of this case"
"""The titles of the sections."""
_INDENT = 4
_LINES = 12
"""The most lines of one edit."""
_CUT = 160
"""The most characters of a part of a line that is shown whole."""
_COMPARED = 20_000
"""The most characters of texts whose common part is measured."""
_LEAST_SHARED = 0.4
"""The least share of the longer text that both must have for words to be marked."""
_LISTED = 8
"""The most verdicts that are listed."""


def explanation_sections(
    explanation: VerdictExplanation | VerdictReasons, now: int | None, signs: Mapping[str, str]
) -> Iterator[tuple[str, list[StyledLine]]]:
    """Yield the sections to show below the verdict, each a title and lines.

    `now` is in microseconds since 1970; without it, runs have their times in the place of ages.
    """
    sections = (
        (DIFFERENCE, chain.from_iterable(map(_check_lines, explanation.failed_checks))),
        (ATTEMPTS, _attempt_lines(explanation, signs)),
        (HISTORY, _history_lines(explanation, now)),
    )
    for title, lines in sections:
        listed = list(lines)
        if listed:
            yield title, listed


# --- differences


def _check_lines(check: FailedCheck) -> Iterator[StyledLine]:
    """Yield a failed check, what it expected and what was there; its feedback is shown above."""
    difference = check.difference
    if difference is None:
        return
    place = StyledSpan(safe(f"  at {difference.place}" if difference.place else ""))
    note = StyledSpan(safe(f"  ({difference.note})" if difference.note else ""), "faint")
    yield StyledLine((StyledSpan(safe(check.name), "fail"), place, note), _INDENT)
    texts = expected, actual = difference.expected, difference.actual
    if check.ignores_case:
        expected, actual = expected.casefold(), actual.casefold()
    compared = expected, actual
    if [*map(len, compared)] != [*map(len, texts)]:
        texts = compared
    if difference.is_text and _is_alike(expected, actual):
        hunks = _as_written(diff_lines(expected, actual, context=0), compared, texts)
        labels = {"-": "expected", "+": "found   "}
        yield from _hunk_lines(hunks, _INDENT + 2, labels)
        return
    for name, colour, text in (
        ("expected", "old", difference.expected),
        ("found   ", "new", difference.actual),
    ):
        lines = text.split("\n")
        for line in lines[:_LINES] if text else ():
            label = StyledSpan(f"{name}  ", "faint")
            yield StyledLine((label, StyledSpan(_clip(safe(line)), colour)), _INDENT + 2)
            name = " " * len(name)
        if len(lines) > _LINES:
            left = plural(len(lines) - _LINES, "more line")
            yield from text_lines(f"… {left}", "faint", _INDENT + 2)


def _is_alike(expected: str, actual: str) -> bool:
    """Return whether two texts have enough in common to mark the words that differ."""
    longest = max(len(expected), len(actual))
    if longest > _COMPARED:
        return True
    stretches = compare_words(expected, actual)
    shared = sum(len(text) for kind, text in stretches if kind == "same" and not text.isspace())
    return shared >= _LEAST_SHARED * longest


def _as_written(
    hunks: Iterable[Sequence[ChangedLine]], compared: Sequence[str], texts: Sequence[str]
) -> Iterator[list[ChangedLine]]:
    """Yield the hunks of compared texts with the lines as the texts have them, in their case."""
    lines = {
        sign: iter(list(zip(folded.split("\n"), text.split("\n"), strict=True)))
        for sign, folded, text in zip("-+", compared, texts, strict=True)
    }
    for hunk in hunks:
        written = []
        for line in hunk:
            folded = "".join(piece.text for piece in line.pieces)
            own = next((own for text, own in lines[line.sign] if text == folded), folded)
            ends = list(accumulate(len(piece.text) for piece in line.pieces))
            pieces = zip(line.pieces, [0, *ends], ends, strict=False)
            texts_of = (piece._replace(text=own[start:end]) for piece, start, end in pieces)
            written.append(line._replace(pieces=tuple(texts_of)))
        yield written


def _hunk_lines(
    hunks: Iterable[Sequence[ChangedLine]], indent: int, labels: Mapping[str, str] | None = None
) -> Iterator[StyledLine]:
    """Yield the lines of a difference, each behind its sign or a label; the first twelve."""
    lines = (line for hunk in hunks for line in hunk)
    for line in islice(lines, _LINES):
        colour = {"-": "old", "+": "new"}.get(line.sign, "")
        label = labels.get(line.sign, "        ") if labels else line.sign
        spans = [StyledSpan(f"{label}  " if labels else f"{label} ", "faint" if labels else colour)]
        is_whole = all(piece.differs for piece in line.pieces)  # nothing of it is in the other text
        for piece in line.pieces:
            text = _clip(safe(piece.text, lines=True).expandtabs(4))
            if piece.differs and colour and not is_whole:
                spans += marked_spans(text, colour)
            else:
                spans.append(StyledSpan(text, colour if piece.differs else ""))
        yield StyledLine(tuple(spans), indent, hang=len(spans[0].text))
    left = sum(1 for _ in lines)
    if left:
        yield from text_lines(f"… {plural(left, 'more line')}", "faint", indent)


def _clip(text: str) -> str:
    """Return a long text with its middle left out."""
    if len(text) <= _CUT:
        return text
    return f"{text[: _CUT // 2]} … {text[-_CUT // 2 :]}"


# --- attempts


def _attempt_lines(
    explanation: VerdictExplanation | VerdictReasons, signs: Mapping[str, str]
) -> Iterator[StyledLine]:
    """Yield how many of several attempts fail, and the verdict on each."""
    attempts = explanation.history.attempts if explanation.history else ()
    if not attempts or explanation.result.is_missing:
        return
    summary = attempts_text(attempt.verdict for attempt in attempts)
    yield StyledLine((StyledSpan(summary),), _INDENT)
    for attempt in attempts:
        verdict = verdict_span(attempt.verdict, signs)
        is_shown = explanation.session in attempt.sessions
        yield StyledLine(
            (
                StyledSpan(f"{verdict.text}  ", verdict.colour),
                StyledSpan(" ".join(map(short, attempt.sessions)), "faint"),
                StyledSpan("  (shown above)" if is_shown else ""),
            ),
            _INDENT + 2,
        )


# --- history


def _history_lines(
    explanation: VerdictExplanation | VerdictReasons, now: int | None
) -> Iterator[StyledLine]:
    history = explanation.history
    if history is None:
        return
    failed, failing = (
        ("failed", "failing") if history.has_failed else ("did not pass", "not passing")
    )
    if history.is_pending:
        word = explanation.result.word or "answered"
        verdict = StyledSpan("passed" if history.passes else failed)
        last = StyledSpan(f" last in {_run_text(history.last, now)}")
        yield StyledLine((StyledSpan(f"{word}; ", "pending"), verdict, last), _INDENT)
        return
    outcome, opposite = ("passing", failed) if history.passes else (failing, "passed")
    is_new = history.since.id == WORKSPACE
    colour = "pass" if history.passes else "fail"
    since = StyledSpan("in the workspace" if is_new else _run_text(history.since, now))
    lead = StyledSpan(f"{outcome} {'now, ' if is_new else 'since '}", colour)
    if history.before is None and is_new:
        searched = f"none of the {plural(history.searched, 'run')} searched judged it"
        note = f"; {searched if history.is_cut else 'no run judged it before'}"
        yield StyledLine((lead, since, StyledSpan(note, "faint")), _INDENT)
    elif history.before is None:
        reach = f", the oldest of the {plural(history.searched, 'run')} searched"
        note = reach if history.is_cut else ", the first run that judged it"
        yield StyledLine((lead, since, StyledSpan(note, "faint")), _INDENT)
    else:
        yield StyledLine((lead, since), _INDENT)
        before = StyledSpan(f"{opposite} last in {_run_text(history.before, now)}")
        yield StyledLine((before,), _INDENT)
        yield StyledLine((StyledSpan("what changed in between:"),), _INDENT)
        for change in history.changes:
            yield from _change_lines(change)
    if history.later and history.later_run:
        by = "in the workspace" if history.later_run.id == WORKSPACE else ""
        by = by or f"up to {_run_text(history.later_run, now)}"
        yield StyledLine((StyledSpan(f"what changed since then, {by}:"),), _INDENT)
        for change in history.later:
            yield from _change_lines(change)
    yield StyledLine((StyledSpan(pass_counts_text(history.counts)),), _INDENT)


def _change_lines(change: ResultChange) -> Iterator[StyledLine]:
    yield StyledLine((StyledSpan(safe(change.text), "undecided"),), _INDENT + 2)
    yield from _hunk_lines(change.hunks, _INDENT + 4)


def pass_counts_text(counts: VerdictCounts) -> str:
    """Return how often this version of the case passed, and how often the verdict changed.

    It says what other versions of the case differ in, if there are some.
    """
    *first, last = counts.differing or ("",)
    differing = " and ".join(filter(None, (", ".join(first), last)))
    version = f"with the same {differing}" if differing else "this version"
    rounds = counts.rounds
    if len(rounds) < 2:
        labels = [_verdict_text(each) for each in rounds if each.is_labelled]
        attempts = filter(None, map(_passed_text, rounds))
        return ", ".join([f"{version}: judged once", *labels, *attempts])
    changes = f", {plural(counts.changes, 'change')}" * bool(counts.changes)
    words = (
        _verdict_text(each) + (f" ({text})" if (text := _passed_text(each)) else "")
        for each in rounds[:_LISTED]
    )
    listed = ", ".join(words) + (", …" if len(rounds) > _LISTED else "")
    passed = sum(each.verdict == "pass" for each in rounds)
    part = "" if passed == len(rounds) else f"{passed or 'none'} of "
    return (
        f"{version}: {part}the last {len(rounds)} verdicts passed{changes} (newest first: {listed})"
    )


def _verdict_text(judged: JudgedAttempts) -> str:
    """Return a verdict, and whether it is by labels; only several can leave it undecided."""
    by = " by labels" if judged.verdict == "undecided" else " by a label"
    return f"{judged.verdict}{by * judged.is_labelled}"


def _passed_text(judged: JudgedAttempts) -> str:
    """Return how many of several attempts passed; empty for a single one."""
    several = f"{judged.passed} of {judged.attempts} attempts passed"
    return several if judged.attempts > 1 else ""


def _run_text(run: Run, now: int | None) -> str:
    """Return a run with its time, author and commit."""
    if run.id == WORKSPACE:
        return "the workspace"
    facts = [minute(run.started) if now is None else ago(run.started, now)]
    facts += [safe(run.author)] if run.author else []
    if run.git:
        facts.append(f"commit {short(run.git.commit)}")
        facts += ["with uncommitted changes"] if run.git.dirty else []
    return f"run {short(run.id)} ({', '.join(facts)})"


# --- other results


def other_lines(
    explanation: VerdictExplanation, signs: Mapping[str, str], labels: LabelIndex | None = None
) -> Iterator[StyledLine]:
    """Yield the other results of the case, for the section `OTHERS` at the end of a page.

    With `labels`, those that a person has decided or labelled have a sign.
    """
    for other in explanation.others:
        result = other.result
        verdict = verdict_span(result.word or "answered", signs)
        prompt = f"({other.prompt})  " if other.prompt else ""
        session = short(result.sessions[0]) if result.sessions else ""
        label = labels.signs(result) if labels else ""
        yield StyledLine(
            (
                StyledSpan(" ".join(filter(None, (verdict.text, label))), verdict.colour),
                StyledSpan(safe(f"  {prompt}{result.model}  ")),
                StyledSpan(session, "faint"),
                StyledSpan(_former_text(explanation, result.model)),
            ),
            _INDENT,
        )


def _former_text(explanation: VerdictExplanation, model: str) -> str:
    return "  (not in the settings)" if model in explanation.former else ""


def explained_place(explanation: VerdictExplanation) -> StyledLine:
    """Return the verdict, the case and the candidate; the run if the workspace counts another."""
    result = explanation.result
    is_other = explanation.run and counts_otherwise(explanation.answer)
    run = f"  in run {short(explanation.run)}" if explanation.run and is_other else ""
    verdict = verdict_span(result.word or "answered", {})
    name = case_name(result.file, result.row, explanation.prompt or None)
    return StyledLine(
        (
            StyledSpan(f"{verdict.text}  ", verdict.colour),
            StyledSpan(safe(name), "heading"),
            StyledSpan(f"  {safe(result.model)}{_former_text(explanation, result.model)}{run}"),
        )
    )

"""Formats the page of an answer, and why it has its verdict, as text for all interfaces.

The functions are pure: they turn what was read into texts with titles and coloured lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING

from evalstore.checks.types.judge import JUDGE
from evalstore.comparison.version_diff import ChangedLine, compare_words, diff_lines
from evalstore.core.clock import minute
from evalstore.core.display import (
    WORKSPACE,
    StyledLine,
    StyledSpan,
    TextBlock,
    ago,
    case_name,
    clip,
    marked_spans,
    money,
    plural,
    safe,
    short,
    simulated,
    text_lines,
    verdict_span,
)
from evalstore.core.runs import Run
from evalstore.core.values import RECORDED
from evalstore.planning.cell_results import label_by
from evalstore.planning.first_pushes import push_text
from evalstore.planning.plan import CHECKS
from evalstore.results.answer.judgements import (
    TAKES_BACK,
    CheckResult,
    Judgement,
    attempts_text,
)

if TYPE_CHECKING:
    from evalstore.results.answer.answer import AnswerView, CheckText, SessionFacts, TurnView
    from evalstore.results.answer.verdict_explanation import (
        FailedCheck,
        VerdictExplanation,
        VerdictReasons,
    )
    from evalstore.results.flips.result_history import JudgedAttempts, ResultChange, VerdictCounts
    from evalstore.results.labels import LabelIndex

OTHER_VERSIONS = "verdicts with other instructions, checks or judges"
"""The title of the judgements that are not about the shown version of the case."""
REPEATED = "other verdicts by the same instructions, checks and judges"
"""The title of the judgements that were made again, or before."""
_ENDS = {"fail": "failed", "pass": "passed"}
_INDENT = 2
_COMMENT = "# "
"""The beginning of each line of a comment in YAML."""
_SHOWN = 120
"""The most characters shown of each answer that is judged together with others."""


def missing_lines(view: AnswerView, *, is_judged: bool) -> Iterator[StyledLine]:
    """Yield what is missing and why; `is_judged` is false if nothing judges the answer."""
    if view.id is None:
        yield from text_lines("No answer yet.", "pending")
    elif is_judged and all(judgement.why_not for judgement in view.judgements):
        yield from text_lines("It is not judged yet.", "pending")
    elif any(cell.word in ("pending", "no reply") for cell in view.cells):
        yield from text_lines("An answer or a verdict is missing.", "pending")
    else:
        return
    for text in view.failures:
        yield from text_lines(f"The call failed: {text}", "error", _INDENT)


def own_judgements(view: AnswerView) -> list[Judgement]:
    """Return the judgements that count, and the labels on the same version of the case."""
    return [each for each in view.judgements if not (each.is_of_other_version or each.is_repeated)]


def other_judgements(view: AnswerView) -> Iterator[tuple[str, list[Judgement]]]:
    """Yield the other judgements: those made more than once, and those of other versions."""
    for title, judgements in (
        (REPEATED, [each for each in view.judgements if each.is_repeated]),
        (OTHER_VERSIONS, [each for each in view.judgements if each.is_of_other_version]),
    ):
        if judgements:
            yield title, judgements


def note_lines(view: AnswerView) -> Iterator[StyledLine]:
    """Yield that no model was called.

    Models judge only what has passed the checks, or what has failed them, as the test says.
    """
    for id, shown in view.criteria.items():
        counted = [each for each in view.judgements if each.evaluation == id and not each.why_not]
        is_by_models = shown.instructions or any(check.name == JUDGE for check in shown.checks)
        if is_by_models and counted and all(each.evaluator == CHECKS for each in counted):
            end = _ENDS.get(counted[0].verdict, "did not pass")
            if not any(cell.word in ("pending", "no reply") for cell in view.cells):
                yield from text_lines(f"No model was called, because the checks {end}.", "faint")


def judgement_lines(
    judgement: Judgement,
    now: int,
    *,
    signs: Mapping[str, str],
    row: str = "",
    most: int | None = None,
) -> Iterator[StyledLine]:
    """Yield a judgement with the results of its checks; `row` names its case among several.

    With `most`, each check has one line of at most so many columns.
    """
    verdict = verdict_span(judgement.verdict, signs)
    title, why_not = judgement_title(judgement), judgement.why_not
    if judgement.verdict == "none":
        words = verdict.text.replace("none", "label removed")
        verdict, title = verdict._replace(text=words), safe(f"by {judgement.by}")
        why_not = "" if why_not == TAKES_BACK else why_not
    marks = [ago(judgement.started, now), short(judgement.id)]
    marks += [f"{len(judgement.sessions)} judged together"] if len(judgement.sessions) > 1 else []
    marks += [f"[{row}]"] if row else []
    yield StyledLine(
        (
            StyledSpan(f"{verdict.text}  ", verdict.colour),
            StyledSpan(title),
            StyledSpan(f"  ({why_not})" if why_not else "", "pending"),
            StyledSpan(safe("".join(f"  {mark}" for mark in marks)), "faint"),
        )
    )
    for check in judgement.checks:
        result = verdict_span(check.verdict, signs) if check.verdict else None
        text = check_text(check) if most is None else clip(check_text(check), most)
        for number, line in enumerate(text_lines(text)):
            sign = (StyledSpan(f"{result.text}  ", result.colour),) if result and not number else ()
            yield StyledLine((*sign, *line.spans), 2 * _INDENT)
    if judgement.feedback and not any(check.feedback for check in judgement.checks):
        yield from text_lines(judgement.feedback, indent=_INDENT)


def judgement_title(judgement: Judgement) -> str:
    """Return who judged, with the score, the choice and the judgement that is used again."""
    by = label_by(judgement.by) if judgement.is_person else f"by {judgement.by}"
    score = "" if judgement.score is None else f"  score {judgement.score:g}"
    choice = f"  choice {judgement.label}" if judgement.label else ""
    again = f"  reused from {short(judgement.taken_from)}" if judgement.taken_from else ""
    return safe(f"{by}{score}{choice}{again}")


def check_text(check: CheckResult) -> str:
    """Return the feedback of a check, which begins with its name."""
    if not check.feedback:
        return check.name
    is_named = check.feedback.startswith(check.name)
    return check.feedback if is_named else f"{check.name}: {check.feedback}"


def conversation(view: AnswerView) -> Iterator[TextBlock]:
    """Yield the messages of the conversation, with the candidate's answers in their places."""
    for turn in view.conversation:
        if turn.answer is None:
            files = tuple(file.id for file in (*turn.images, *turn.text_files))
            yield TextBlock(turn_title(turn, view), turn.text, files=files)
        elif turn.answer:
            yield TextBlock(turn_title(turn, view), turn.text, by_candidate=True)
        else:
            yield TextBlock(turn_title(turn, view), "(filled by the candidate)", "faint", True)


def turn_title(turn: TurnView, view: AnswerView) -> str:
    """Return the title of a turn: its role, or the number of the candidate's answer."""
    if turn.answer is None:
        return f"{turn.role} {turn.name}".rstrip()
    answers = sum(1 for other in view.conversation if other.answer)
    which = f"answer {turn.answer} of {answers}" if answers > 1 else "answer"
    return which if turn.answer else "assistant"


def criteria(
    view: AnswerView, signs: Mapping[str, str] | None = None
) -> tuple[list[TextBlock], list[TextBlock]]:
    """Return the instructions and checks of the case, and those of its other versions."""
    current, others = list[TextBlock](), list[TextBlock]()
    for number, (id, shown) in enumerate(view.criteria.items()):
        judgements = [judgement for judgement in view.judgements if judgement.evaluation == id]
        counts = any(not judgement.why_not for judgement in judgements)
        rows = filter(None, (view.rows.get(judgement.id) for judgement in judgements))
        row = next(rows, "") if counts or not number else ""
        which = f" of [{row}]" if row else ""
        colour = "" if counts or not number else "faint"
        if colour:
            which = f" of another version ({short(id)})"
        blocks = others if colour else current
        if shown.instructions:
            blocks.append(TextBlock(f"instructions{which}", shown.instructions, colour))
        if shown.checks:
            results = next((judgement.checks for judgement in judgements if judgement.checks), ())
            lines = tuple(_check_lines(shown.checks, results, colour, signs or {}))
            text = "\n".join(" " * line.indent + line.text for line in lines)
            blocks.append(TextBlock(f"checks{which}", text, colour, lines=lines))
    return current, others


def _check_lines(
    checks: Sequence[CheckText],
    results: Sequence[CheckResult],
    colour: str,
    signs: Mapping[str, str],
) -> Iterator[StyledLine]:
    """Yield the checks as a list in YAML, the result of each in a comment below it."""
    left = list(results)
    for check in checks:
        for number, line in enumerate(text_lines(check.text, colour, 2)):
            if number:
                yield line
            else:
                yield StyledLine((StyledSpan("- ", colour), *line.spans), 0, 2)
        result = next((result for result in left if result.name == check.name), None)
        if result is None:
            continue
        left.remove(result)
        verdict = verdict_span(result.verdict, signs)
        feedback = f": {result.feedback}" if result.feedback else ""
        for line in text_lines(f"{verdict.text}{feedback}", verdict.colour):
            comment = StyledSpan(f"{_COMMENT}{line.text}", verdict.colour)
            yield StyledLine((comment,), 2, mark=_COMMENT)


def reasoning(judgements: Iterable[Judgement]) -> Iterator[TextBlock]:
    """Yield the reasoning of judges."""
    for judgement in judgements:
        if judgement.reasoning:
            yield TextBlock(f"reasoning of {judgement.by}", judgement.reasoning, "faint")


def together_lines(view: AnswerView) -> Iterator[StyledLine]:
    """Yield all answers that are judged together with this one, numbered as in the feedback.

    Where the questions differ, answers stand below their question.
    """
    first = view.together[0].user_message if view.together else ""
    several = any(member.user_message != first for member in view.together)
    shown = None
    for number, member in enumerate(view.together, 1):
        if several and member.user_message != shown:
            question = clip(member.user_message[: 4 * _SHOWN], _SHOWN)
            yield StyledLine((StyledSpan(question or "(not in the store)", "faint"),), _INDENT)
            shown = member.user_message
        mark = "▸" if member.session == view.id else " "
        yield StyledLine(
            (
                StyledSpan(f"{mark} {number}  "),
                StyledSpan(f"{short(member.session)}  ", "faint"),
                StyledSpan(clip(member.answer[: 4 * _SHOWN], _SHOWN)),
            ),
            _INDENT,
        )


def footer_lines(view: AnswerView, now: int) -> Iterator[StyledLine]:
    """Yield the tools and options, the facts of the session, and the ids."""
    ids = ", ".join(f"{kind} {short(id)}" for kind, id in view.ids)
    facts = (facts_text(view.facts, now),) if view.facts else ()
    push = (push_text(view.push),) if view.push else ()
    for text in (*view.request_settings, *facts, *push, ids):
        yield from text_lines(text, "faint")


def facts_text(facts: SessionFacts, now: int | None) -> str:
    """Return the cost, tokens, time and options of an answer; without `now` for the report.

    There it has no age, and that it came to its end goes without saying.
    """
    is_said = facts.finish_reason and (now is not None or facts.finish_reason != "stop")
    tokens = ""
    if facts.input_tokens is not None or facts.output_tokens is not None:
        tokens = f"{facts.input_tokens or 0:,} in + {facts.output_tokens or 0:,} out tokens"
        inner = [f"{facts.cached_tokens:,} cached"] if facts.cached_tokens else []
        inner += [f"{facts.reasoning_tokens:,} reasoning"] if facts.reasoning_tokens else []
        tokens += f" ({', '.join(inner)})" if inner else ""
    cost = money(facts.cost) + (" at today's price" if facts.is_priced_later else "")
    texts = (
        facts.origin
        if facts.origin == RECORDED
        else simulated(cost)
        if facts.is_simulated and facts.cost
        else cost,
        tokens,
        f"{facts.latency:.4g} s" if facts.latency else "",
        "" if facts.temperature is None else f"temperature {facts.temperature:g}",
        "" if facts.seed is None else f"seed {facts.seed}",
        f"finish reason {facts.finish_reason}" if is_said else "",
        f"cut off at {facts.cut_at:,} tokens" if facts.cut_at else "",
        ", ".join(facts.resolved),
        "" if now is None else ago(facts.started, now),
        f"from {facts.origin}" if facts.origin not in ("run", RECORDED) else "",
    )
    return ", ".join(text for text in texts if text)


DIFFERENCE, ATTEMPTS, HISTORY = "where it differs", "attempts", "history"
OTHERS = "other results of this case"
"""The titles of the sections."""
_SECTION_INDENT = 4
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
        (DIFFERENCE, chain.from_iterable(map(_failed_check_lines, explanation.failed_checks))),
        (ATTEMPTS, _attempt_lines(explanation, signs)),
        (HISTORY, _history_lines(explanation, now)),
    )
    for title, lines in sections:
        listed = list(lines)
        if listed:
            yield title, listed


# --- differences


def _failed_check_lines(check: FailedCheck) -> Iterator[StyledLine]:
    """Yield a failed check, what it expected and what was there; its feedback is shown above."""
    difference = check.difference
    if difference is None:
        return
    place = StyledSpan(safe(f"  at {difference.place}" if difference.place else ""))
    noted = f"  ({difference.note})" if difference.note not in check.feedback else ""
    note = StyledSpan(safe(noted), "faint")
    yield StyledLine((StyledSpan(safe(check.name), "fail"), place, note), _SECTION_INDENT)
    if difference.is_text and _is_alike(difference.expected, difference.actual):
        hunks = diff_lines(difference.expected, difference.actual, context=0)
        labels = {"-": "expected", "+": "found   "}
        yield from _hunk_lines(hunks, _SECTION_INDENT + 2, labels)
        return
    for name, colour, text in (
        ("expected", "old", difference.expected),
        ("found   ", "new", difference.actual),
    ):
        lines = text.split("\n")
        for line in lines[:_LINES] if text else ():
            label = StyledSpan(f"{name}  ", "faint")
            yield StyledLine((label, StyledSpan(_clip(safe(line)), colour)), _SECTION_INDENT + 2)
            name = " " * len(name)
        if len(lines) > _LINES:
            left = plural(len(lines) - _LINES, "more line")
            yield from text_lines(f"… {left}", "faint", _SECTION_INDENT + 2)


def _is_alike(expected: str, actual: str) -> bool:
    """Return whether two texts have enough in common to mark the words that differ."""
    longest = max(len(expected), len(actual))
    if longest > _COMPARED:
        return True
    stretches = compare_words(expected, actual)
    shared = sum(len(text) for kind, text in stretches if kind == "same" and not text.isspace())
    return shared >= _LEAST_SHARED * longest


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
    yield StyledLine((StyledSpan(summary),), _SECTION_INDENT)
    for attempt in attempts:
        verdict = verdict_span(attempt.verdict, signs)
        is_shown = explanation.session in attempt.sessions
        yield StyledLine(
            (
                StyledSpan(f"{verdict.text}  ", verdict.colour),
                StyledSpan(" ".join(map(short, attempt.sessions)), "faint"),
                StyledSpan("  (shown above)" if is_shown else ""),
            ),
            _SECTION_INDENT + 2,
        )


# --- history


def _history_lines(
    explanation: VerdictExplanation | VerdictReasons, now: int | None
) -> Iterator[StyledLine]:
    history = explanation.history
    if history is None:
        return
    failed, failing = (
        ("failed", "broken" if history.before else "failing")
        if history.has_failed
        else ("did not pass", "not passing")
    )
    if history.is_pending:
        word = explanation.result.word or "answered"
        outcome = "passed" if history.passes else failed
        last = StyledSpan(f"last {outcome} in {_run_text(history.last, now)}")
        yield StyledLine((StyledSpan(f"{word}; ", "pending"), last), _SECTION_INDENT)
        return
    outcome, opposite = ("passing", failed) if history.passes else (failing, "passed")
    is_new = history.since.id == WORKSPACE
    colour = "pass" if history.passes else "fail"
    since = StyledSpan("in the workspace" if is_new else _run_text(history.since, now))
    lead = StyledSpan(f"{outcome} {'now, ' if is_new else 'since '}", colour)
    if history.before is None and is_new:
        searched = f"none of the {plural(history.searched, 'run')} searched judged it"
        note = f"; {searched if history.is_cut else 'no run judged it before'}"
        yield StyledLine((lead, since, StyledSpan(note, "faint")), _SECTION_INDENT)
    elif history.before is None:
        reach = f"the oldest of the {plural(history.searched, 'run')} searched"
        note = reach if history.is_cut else "the first run that judged it"
        first = StyledSpan(f"{since.text}, ")
        yield StyledLine((lead, first, StyledSpan(note, "faint")), _SECTION_INDENT)
    else:
        yield StyledLine((lead, since), _SECTION_INDENT)
        before = StyledSpan(f"last {opposite} in {_run_text(history.before, now)}")
        yield StyledLine((before,), _SECTION_INDENT)
        yield StyledLine((StyledSpan("what changed in between:"),), _SECTION_INDENT)
        for change in history.changes:
            yield from _change_lines(change, explanation.prompt_name)
    if history.later and (run := history.later_run):
        by = "in the workspace" if run.id == WORKSPACE else f"up to {_run_text(run, now)}"
        yield StyledLine((StyledSpan(f"what changed since then, {by}:"),), _SECTION_INDENT)
        for change in history.later:
            yield from _change_lines(change, explanation.prompt_name)
    if counted := pass_counts_text(history.counts):
        yield StyledLine((StyledSpan(counted),), _SECTION_INDENT)


def _change_lines(change: ResultChange, prompt: str | None) -> Iterator[StyledLine]:
    text = change.text
    if prompt and text.startswith("system prompt "):
        text = text.replace("prompt", f"prompt {prompt}", 1)
    yield StyledLine((StyledSpan(safe(text), "undecided"),), _SECTION_INDENT + 2)
    yield from _hunk_lines(change.hunks, _SECTION_INDENT + 4)


def pass_counts_text(counts: VerdictCounts) -> str:
    """Return how often this version of the case passed, and how often the verdict changed.

    It says what other versions of the case differ in. Empty for one verdict without more to tell.
    """
    *first, last = " and ".join(counts.differing).split(" and ")
    differing = " and ".join(filter(None, (", ".join(first), last)))
    version = f"with the same {differing}" if differing else "this version"
    rounds = counts.rounds
    if len(rounds) < 2:
        labels = [_verdict_text(each) for each in rounds if each.labels]
        notes = [*labels, *filter(None, map(_passed_text, rounds))]
        return ", ".join([f"{version}: judged once", *notes]) if notes else ""
    changes = f", {plural(counts.changes, 'change')}" * bool(counts.changes)
    words = (
        _verdict_text(each, _passed_text(each), "counts here" * (each.is_counted and number > 0))
        for number, each in enumerate(rounds[:_LISTED])
    )
    listed = ", ".join(words) + (", …" if len(rounds) > _LISTED else "")
    passed = sum(each.verdict == "pass" for each in rounds)
    part = "" if passed == len(rounds) else f"{passed or 'none'} of "
    return (
        f"{version}: {part}the last {len(rounds)} verdicts passed{changes} (newest first: {listed})"
    )


def _verdict_text(judged: JudgedAttempts, *notes: str) -> str:
    """Return a verdict, and whether it is by labels, with another one before these and notes."""
    is_one = judged.labels == 1
    by = " by a label" if is_one else " by labels" * bool(judged.labels)
    without = f"{judged.before} without {'it' if is_one else 'them'}"
    before = without if judged.before not in (None, judged.verdict) else ""
    listed = "; ".join(filter(None, (before, *notes)))
    return f"{judged.verdict}{by}" + f" ({listed})" * bool(listed)


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
        facts.append(f"git {short(run.git.commit)}{' + changes' * bool(run.git.dirty)}")
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
            ),
            _SECTION_INDENT,
        )


def explained_place(explanation: VerdictExplanation) -> StyledLine:
    """Return the verdict, the case and the candidate."""
    result = explanation.result
    verdict = verdict_span(result.word or "answered", {})
    name = case_name(result.file, result.row, explanation.prompt or None)
    return StyledLine(
        (
            StyledSpan(f"{verdict.text}  ", verdict.colour),
            StyledSpan(safe(name), "heading"),
            StyledSpan(f"  {safe(result.model)}"),
        )
    )

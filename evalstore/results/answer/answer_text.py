"""Formats the page of an answer as text, for the command line and the browser.

The functions are pure: they turn an `AnswerView` into texts with titles and coloured lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from evalstore.checks.types.judge import JUDGE
from evalstore.core.display import (
    StyledLine,
    StyledSpan,
    TextBlock,
    ago,
    clip,
    money,
    safe,
    short,
    simulated,
    text_lines,
    verdict_span,
)
from evalstore.core.values import RECORDED
from evalstore.planning.first_pushes import push_text
from evalstore.planning.plan import CHECKS
from evalstore.planning.results import label_by
from evalstore.results.answer.judgements import (
    EARLIER,
    ELSEWHERE,
    IN_WORKSPACE,
    TAKES_BACK,
    CheckResult,
    Judgement,
)

if TYPE_CHECKING:
    from evalstore.results.answer.answer import AnswerView, CheckText, SessionFacts, TurnView

OTHER_VERSIONS = "verdicts by other instructions, checks or judges"
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
    elif any(place.word in ("pending", "no reply") for place in view.places):
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


def counts_otherwise(view: AnswerView) -> list[Judgement]:
    """Return the first judgements whose verdict the workspace counts instead of the one shown."""
    counted = [each for each in view.judgements if not each.why_not]
    if any(each.is_person for each in counted):
        return []
    shown = {(each.evaluation, each.evaluator, each.verdict) for each in counted}
    return [
        each
        for each in view.judgements
        if each.why_not == IN_WORKSPACE
        and (each.evaluation, each.evaluator, each.verdict) not in shown
    ]


def note_lines(view: AnswerView) -> Iterator[StyledLine]:
    """Yield that no model was called, and verdicts that only the workspace counts.

    Models judge only what has passed the checks, or what has failed them, as the test says.
    """
    for id, shown in view.criteria.items():
        counted = [each for each in view.judgements if each.evaluation == id and not each.why_not]
        is_by_models = shown.instructions or any(check.name == JUDGE for check in shown.checks)
        if is_by_models and counted and all(each.evaluator == CHECKS for each in counted):
            end = _ENDS.get(counted[0].verdict, "did not pass")
            if not any(place.word in ("pending", "no reply") for place in view.places):
                yield from text_lines(f"No model was called, because the checks {end}.", "faint")
    for judgement in counts_otherwise(view):
        verdict = verdict_span(judgement.verdict, {})
        start = f"In the workspace another verdict by {safe(judgement.by)} counts: "
        spans = StyledSpan(start, "pending"), StyledSpan(verdict.text, verdict.colour)
        yield StyledLine((*spans, StyledSpan(f" ({short(judgement.id)})", "pending")))


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
    again = f"  taken from {short(judgement.taken_from)}" if judgement.taken_from else ""
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
    blocks = list(_criteria(view, signs or {}))
    current = [block for block in blocks if block.colour != "faint"]
    return current, [block for block in blocks if block.colour == "faint"]


def _criteria(view: AnswerView, signs: Mapping[str, str]) -> Iterator[TextBlock]:
    for number, (id, shown) in enumerate(view.criteria.items()):
        judgements = [judgement for judgement in view.judgements if judgement.evaluation == id]
        counts = any(not judgement.why_not for judgement in judgements)
        rows = filter(None, (view.rows.get(judgement.id) for judgement in judgements))
        row = next(rows, "") if counts or not number else ""
        which = f" of [{row}]" if row else ""
        colour = "" if counts or not number else "faint"
        if colour:
            why_not = {judgement.why_not for judgement in judgements}
            scope = (
                "of another case"
                if ELSEWHERE in why_not
                else f"{'before' if EARLIER in why_not else 'after'} an edit"
            )
            which = f" {scope} ({short(id)})"
        if shown.instructions:
            yield TextBlock(f"instructions{which}", shown.instructions, colour)
        if shown.checks:
            results = next((judgement.checks for judgement in judgements if judgement.checks), ())
            lines = tuple(_check_lines(shown.checks, results, colour, signs))
            text = "\n".join(" " * line.indent + line.text for line in lines)
            yield TextBlock(f"checks{which}", text, colour, lines=lines)


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

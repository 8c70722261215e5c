"""Prints the items of `show`: runs with their results, versions and test files."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING, Any

from evalstore.core import deserialize
from evalstore.core.clock import iso
from evalstore.core.display import (
    StyledLine,
    StyledSpan,
    TextBlock,
    case_name,
    kind_word,
    simulated,
    text_lines,
)
from evalstore.core.runs import restore_run
from evalstore.core.values import VERDICTS, Case, Json, Message, Usage, order_counts
from evalstore.files.yaml12 import write_yaml
from evalstore.interfaces.cli import output
from evalstore.interfaces.cli.render.history import print_log
from evalstore.interfaces.cli.render.layout import (
    align_cases,
    print_block,
    print_lines,
)
from evalstore.planning.first_pushes import push_text
from evalstore.planning.options import selection_text
from evalstore.results.answer.answer_text import (
    OTHERS,
    conversation,
    criteria,
    explained_place,
    explanation_sections,
    footer_lines,
    judgement_lines,
    missing_lines,
    note_lines,
    other_judgements,
    other_lines,
    own_judgements,
    reasoning,
    together_lines,
)
from evalstore.results.answer.judgements import Judgement, judgement_view
from evalstore.results.log.failures import class_text
from evalstore.results.log.log import Log, LogEntry
from evalstore.results.show.show import (
    IN_PROGRESS,
    CaseBatch,
    ShownItem,
    ShownResult,
    ShownResults,
    word_of,
)
from evalstore.results.value_text import check_yaml, text_of
from evalstore.runs.status.status_text import in_progress_text

if TYPE_CHECKING:
    from evalstore.results.answer.answer import AnswerView
    from evalstore.results.answer.verdict_explanation import VerdictExplanation


_WHOLE = 3
"""Cases of a file that are shown whole below their results; `-v` shows all."""
_INNER = ("kind", "scheme", "nonce", "key")
"""Fields that only matter to the store."""
_TIMES = ("started", "ended", "at")


def print_shown(item: ShownItem | AnswerView | VerdictExplanation) -> None:
    """Print a stored object in the layout of its kind."""
    if isinstance(item, ShownItem):
        _PRINTERS.get(item.kind, _print_anything)(item)
        return
    from evalstore.results.answer.verdict_explanation import VerdictExplanation

    if isinstance(item, VerdictExplanation):
        print_answer(item.answer, item)
    else:
        print_answer(item)


def _print_run(item: ShownItem) -> None:
    run = restore_run(item.id, item.content)
    verdicts = order_counts(run.verdicts)
    entry = LogEntry(run, verdicts, outcome=item.outcome, push=item.push, names=item.names)
    print_log(Log([entry], 1), oneline=False, dated=True)
    print_results(item)


def _print_in_progress(item: ShownItem) -> None:
    assert item.in_progress is not None
    output.sentence(in_progress_text(item.in_progress))
    if message := item.content["message"]:
        _block("message", message)
    if options := selection_text(item.content["selection"] or {}):
        output.line(f"options: {output.safe(options)}")
    output.talk('(use "evalstore log" to see it when it is over, "evalstore status" for all such)')


def _print_workspace(item: ShownItem) -> None:
    _heading("workspace", "all cases as they are now")
    verdicts = item.content["verdicts"].items()
    counts = [output.paint(f"{count} {word}", word) for word, count in verdicts if count]
    if counts:
        output.line(f"    {', '.join(counts)}")
    print_results(item)


def _suggest_failure(item: ShownItem) -> None:
    """Name the command that explains the most urgent result of a file, if it failed."""
    first = next((result for result, _ in list_urgent_first(item)), None)
    if first is None or first["verdict"] not in VERDICTS or first["verdict"] == "pass":
        return
    if not first["sessions"]:
        return
    run = first.get("run", item.related.get("run"))
    place = f"{first['file']}::{first['row']}"
    if not (item.is_now and cell_of(first) in item.marks):
        place = f"{output.short(run) if run else '@work'}:{place}"
    words = ["evalstore", "show", place, "-m", first["model"]]
    if name := item.prompts.get(first["prompt"]):
        words += ["--prompt", name]
    output.talk(f'(use "{output.safe(shlex.join(words))}" to see why)')


def _print_judgement(item: ShownItem) -> None:
    made, related = deserialize.restore_evaluation_result(item.content), item.related
    instructions = related["instructions"] or {}
    is_person = "human" in (related["evaluator"] or {})
    checks = instructions.get("checks", ())
    judgement = judgement_view(item.id, made, related["by"], is_person, checks=checks)
    _heading("verdict", output.short(item.id), _ago(made.started))
    print_lines(judgement_lines(judgement, time.time_ns() // 1000, signs={}))
    for block in reasoning([judgement]):
        print_block(block)
    if item.push:
        output.line(push_text(item.push))
    output.line("answer: " + ", ".join(map(output.short, made.sessions)))
    _print_criteria(instructions, item)
    cost = output.money(made.cost.usd) if made.cost else ""
    cost = simulated(cost) if item.is_simulated and made.cost and made.cost.usd else cost
    latency = _if("{:g} s", made.latency or None)
    last = _tokens(made.usage), cost, latency, made.origin
    output.line(", ".join(output.safe(fact) for fact in last if fact))


def _print_failure(item: ShownItem) -> None:
    failure, related = deserialize.restore_failure(item.content), item.related
    _heading("failure", output.short(item.id), output.safe(failure.model or ""))
    if "file" in related:
        output.line(place_of(related["file"], related["row"], item.prompts.get(related["prompt"])))
    output.line(f"at: {iso(failure.at)} ({_ago(failure.at)})")
    kind = class_text(failure.kind, failure.status, failure.message)
    output.line(f"class: {output.paint(output.safe(kind), 'error')}")
    _block("tries", str(failure.attempts))
    _block("message", failure.message)
    _block("hint", related["hint"] or "")
    ids = ("question", related["question"]), ("answer", failure.subject)
    _print_ids([*ids, ("judge", failure.evaluator)])


def _print_question(item: ShownItem) -> None:
    """Print the case of a question, its answers and its failed calls."""
    content, related = item.content, item.related
    _heading("question", output.short(item.id))
    if "file" in related:
        output.line(place_of(related["file"], related["row"], item.prompts.get(related["prompt"])))
    _block("answers", ", ".join(map(output.short, related["sessions"])) or "none")
    failures = ["none"] if not related["failures"] else []
    for each in related["failures"]:
        kind = class_text(each["class"], each["status"], each["message"])
        facts = output.short(each["failure"]), each["at"], each["model"] or "", kind
        failures.append("  ".join(filter(None, (*facts, " ".join(each["message"].split())))))
    _block("failed calls", "\n".join(failures))
    for name in ("temperature", "seed"):
        _block(name, _if("{}", content.get(name)))
    _print_ids((name, content.get(name)) for name in ("test", "prompt", "model"))


def _print_cases(item: ShownItem) -> None:
    """Print the cases of a test file: their results, then what few of them consist of."""
    related = item.related
    _heading("cases", item.id)
    if "file" in related:
        where = f"run {output.short(related['run'])}" if "run" in related else "the workspace"
        edit = f", {item.edit}" if item.edit else ""
        output.line(f"{output.safe(related['file'])} in {where}{edit}")
    print_results(item)
    _suggest_failure(item)
    cases = ((case, batch) for batch in item.cases or () for case in batch.cases)
    first = list(islice(cases, _WHOLE + 1))
    if related.get("results") and len(first) > _WHOLE and not output.verbose:
        output.talk("(-v shows the messages, instructions and checks of each case)")
        return
    for case, batch in chain(first, cases):
        _print_case(case, batch, item)


def _print_case(case: Case, batch: CaseBatch, item: ShownItem) -> None:
    output.line()
    if case.row:
        output.line(output.paint(f"row {output.safe(case.row)}", bold=True))
    number = 1
    for id, same in groupby(case.tests):
        last = number + len(list(same)) - 1
        if len(case.tests) > 1:
            which = f" {number}" if last == number else f"s {number} to {last}"
            output.line(output.paint(f"    conversation{which}", bold=True))
        number = last + 1
        test = batch.tests.get(id, {})
        _print_messages(deserialize.restore_messages(test.get("messages", ())), "    ")
    _print_criteria(batch.evaluations.get(case.evaluation or "", {}), item, "    ")
    ids = [("test", id) for id in dict.fromkeys(case.tests)] + [
        ("judging version", case.evaluation)
    ]
    _print_ids([*ids, *(("prompt", id) for id in case.prompts)], "    ")


def _print_version(item: ShownItem) -> None:
    content = item.content
    _heading(item.kind, item.id)
    _print_messages(deserialize.restore_messages(content.get("messages", ())))
    if item.kind == "evaluation":
        _print_criteria(content, item)
    for name, value in content.items():
        if name in ("parameters", "schema") and not isinstance(value, str):
            _block(name, json.dumps(value, ensure_ascii=False, indent=2))
        elif name == "description":
            _block(name, str(value))
        elif name not in ("messages", "instructions", "checks"):
            _print_fields({name: value})


def _print_file(item: ShownItem) -> None:
    size = output.plural(item.related["size"], "byte")
    _heading("file", item.id, output.safe(item.content["mediaType"]), size)
    if text := item.related.get("text"):
        output.line(output.safe(text, lines=True).removesuffix("\n"))


def _print_anything(item: ShownItem) -> None:
    """Print the fields of an object, long texts as blocks."""
    _heading(item.kind, item.id)
    _print_fields(item.content, "  ")
    _print_fields(item.related)


_PRINTERS: Mapping[str, Callable[[ShownItem], None]] = {
    "run": _print_run,
    IN_PROGRESS: _print_in_progress,
    "workspace": _print_workspace,
    "judgement": _print_judgement,
    "failure": _print_failure,
    "question": _print_question,
    "cases": _print_cases,
    "file": _print_file,
    **dict.fromkeys(("test", "prompt", "evaluation", "tool", "schema", "model"), _print_version),
}


# --- parts of a page -----------------------------------------------------------------------


def _heading(kind: str, *facts: str) -> None:
    output.line(f"{output.paint(kind_word(kind), 'pending')} {'  '.join(facts)}")


def _if(form: str, value: Any) -> str:
    return "" if value is None else form.format(value)


def _ago(microseconds: int) -> str:
    return output.ago(microseconds, dated=True)


def _tokens(usage: Usage) -> str:
    if usage.input_tokens is None and usage.output_tokens is None:
        return ""
    return f"{usage.input_tokens or 0:,} in + {usage.output_tokens or 0:,} out tokens"


def _print_ids(ids: Iterable[tuple[str, str | None]], indent: str = "") -> None:
    listed = (f"{name} {output.short(id)}" for name, id in ids if id)
    output.line(f"{indent}ids: {', '.join(listed)}")


def _print_messages(messages: Iterable[Message], indent: str = "") -> None:
    """Print a conversation without the candidate's answers."""
    for message in messages:
        text = "(filled by the candidate)" if message.filled else text_of(message.parts)
        _block(message.role, text, indent)


def _print_criteria(evaluation: Json, item: ShownItem, indent: str = "") -> None:
    """Print the instructions and the checks."""
    _block(
        "instructions",
        text_of(deserialize.restore_parts(evaluation.get("instructions", ()))),
        indent,
    )
    for check in evaluation.get("checks", ()):
        _block("check", check_yaml(check, item.references), indent)


def _block(name: str, text: str, indent: str = "") -> None:
    print_block(TextBlock(name, text), indent)


def _print_fields(fields: Mapping[str, Json], indent: str = "") -> None:
    """Print the fields of an object as YAML."""
    shown = {
        name: iso(value) if name in _TIMES and isinstance(value, int) else value
        for name, value in fields.items()
        if name not in _INNER
    }
    for text in write_yaml(shown).splitlines() if shown else ():
        output.line(indent + output.safe(text))


# --- prints the page of an answer


def print_answer(view: AnswerView, explanation: VerdictExplanation | None = None) -> None:
    """Print an answer; with `-v` also the reasoning of judges and earlier instructions.

    With an explanation: where the answer differs from what was expected, and since when.
    """
    now = time.time_ns() // 1000
    when = _ago(view.facts.started) if view.facts else ""
    if view.id:
        name = f"{output.paint('answer', 'pending')} {output.short(view.id)}"
        output.line(f"{name}  {output.safe(view.model)}  {when}".rstrip())
    several = len(view.cells) > 1
    if explanation and not several:
        print_lines([explained_place(explanation)])
    else:
        for cell in view.cells:
            word = cell.word or "answered"
            place = StyledSpan(place_of(cell.file, cell.row, view.prompt))
            verdict = StyledSpan(f"  {word}", word)
            print_lines([StyledLine((place, verdict) if several else (place,))])
    if explanation and explanation.run and explanation.edit:
        output.line(f"as in run {output.short(explanation.run)}, {explanation.edit}")
    is_judged = any(cell.word is not None for cell in view.cells)
    print_lines(missing_lines(view, is_judged=is_judged))
    own, others = own_judgements(view), [*other_judgements(view)]
    _print_judgements(view, own, now)
    print_lines(note_lines(view))
    if explanation and explanation.planned:
        print_lines(text_lines(explanation.planned.text, "pending"))
    sections = explanation_sections(explanation, now, {}) if explanation else ()
    for title, lines in sections:
        output.line(output.paint(f"{title}:", bold=True))
        print_lines(lines)
    output.line()
    current, earlier = criteria(view)
    for block in conversation(view):
        print_block(block)
    if view.together:
        output.line(output.paint("judged together:", bold=True))
        print_lines(together_lines(view))
    has_failed = explanation is not None and explanation.result.verdict not in ("pass", None)
    has_reasoning = output.verbose or has_failed
    for block in (*current, *(reasoning(own) if has_reasoning else ())):
        print_block(block)
    if explanation and explanation.others:
        output.line(output.paint(f"{OTHERS}:", bold=True))
        print_lines(other_lines(explanation, {}))
    for title, judgements in others:
        output.line(output.paint(f"{title}:", bold=True))
        _print_judgements(view, judgements, now, indent=4)
    earlier += [block for _, judgements in others for block in reasoning(judgements)]
    for block in earlier if output.verbose else ():
        print_block(block)
    output.line()
    print_lines(footer_lines(view, now))


def _print_judgements(
    view: AnswerView, judgements: Iterable[Judgement], now: int, indent: int = 0
) -> None:
    for judgement in judgements:
        row = view.rows.get(judgement.id, "")
        lines = judgement_lines(judgement, now, signs={}, row=row)
        shown = (line._replace(indent=line.indent + indent) for line in lines)
        print_lines(shown)


# --- the rows of results


SHOWN = 40
"""Results of a run before the list is cut; `-v` shows all."""


def print_results(item: ShownItem) -> None:
    """Print the results of a run, of the workspace or of a file, the most urgent first."""
    if not (count := len(item.related.get("results", ()))):
        return
    results = list_urgent_first(item)
    output.line()
    shown = list(results if output.verbose else islice(results, SHOWN))
    places = [
        place_of(
            result["file"], result["row"], item.prompts.get(result["prompt"]) if several else None
        )
        for result, several in shown
    ]
    of_word = max(output.columns_of(word_of(result)) for result, _ in shown)
    places, models = align_cases(places, [result["model"] for result, _ in shown])
    for (result, _), place, model in zip(shown, places, models, strict=True):
        word, sessions = word_of(result), result["sessions"]
        spans = [StyledSpan(output.pad(word, of_word), word), StyledSpan(f"  {place}  {model}")]
        if sessions:
            spans.append(StyledSpan(f"  {output.short(sessions[0])}"))
        if sessions[1:]:
            spans.append(StyledSpan(f" +{len(sessions) - 1}"))
        if "run" in result:  # an older one than that of the file
            edited = ", edited since" if result.get("edited") else ""
            spans.append(StyledSpan(f"  (run {output.short(result['run'])}{edited})", "faint"))
        if mark := item.marks.get(cell_of(result)):
            spans.append(StyledSpan(f"  ({mark})", mark))
        print_lines([StyledLine(tuple(spans))])
    if left := count - (count if output.verbose else len(shown)) + item.left_out:
        output.line(f"… {left} more (-v lists all)")


def place_of(file: str, row: str, prompt: str | None = None) -> str:
    """Return the place of a case, with the name of its system prompt when it has several."""
    return output.safe(case_name(file, row, prompt))


def list_urgent_first(item: ShownItem) -> Iterator[ShownResult]:
    """Yield the results of an item, the most urgent first."""

    def broke(result: Json) -> bool:
        return item.marks.get(cell_of(result), "").startswith("broke")

    results = item.related.get("results") or ShownResults()
    listed = results.by_urgency(broke if item.marks else None)
    if item.kind == "cases":
        return (ShownResult(result, has_several=True) for result, _ in listed)
    return listed


def cell_of(result: Json) -> tuple[str, str, str | None, str]:
    """Return the case, system prompt and candidate of a result."""
    return result["file"], result["row"], result["prompt"], result["model"]

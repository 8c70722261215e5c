"""Judges conversations by the checks of an evaluation version.

A check that mentions the answer is bound twice. When a test file is expanded, it is filled with a
row of data. Texts that mention the answer are bound here, when the answer is judged.
Between the two bindings the check is stored like this:

    {
      "type": "equals", "revision": 2,
      "given": {"equals": "{{first}} in {{city}}", "name": "Oslo", "scope": "case"},
      "templates": [[["equals"], "{{first}} in {{city}}"]],
      "values": {"city": "Oslo"},
      "turns": {"first": 0},
      "scope": "case"
    }

- `given`: the check as its author wrote it, with the values of the row filled in.
- `templates`: the texts that need the answer, each with its place in the check.
- `data`: the places of mappings from data that would otherwise be read as settings.
- `values`: the values of the names that are used; a row of data is `item`, with its used keys.
- `turns`: the places of named answers: the number of a turn, counted from 0, or pairs of the
  numbers of a conversation and of a turn if several conversations are judged together.
- `scope`: the scope unless it is `answer`.

Empty parts are left out. A check without such texts is stored in canonical form; if it is an
expression, `values` and `turns` are beside its settings. A Python file may use everything, so its
check has the values as `item`, and the names of the answers as `conversations`. All of this is
part of the check's identity.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import lru_cache
from typing import Any, NamedTuple

from evalstore.checks.base import (
    BLOCK,
    CheckFinding,
    CheckInput,
    CheckOutcome,
    NotJsonError,
    reaches,
)
from evalstore.checks.parser import fill_in, find_kind, read_check, value_at
from evalstore.checks.types.expression import is_cheap_expression
from evalstore.checks.types.json import is_cheap_path
from evalstore.core.display import as_text, shorten, shorten_to_line, storable
from evalstore.core.errors import FileProblem, NotRunError
from evalstore.core.values import Json, Reply, ToolCall, Usage, Verdict
from evalstore.files.datasets import DatasetColumns
from evalstore.files.jinja_sandbox import finalize
from evalstore.files.processes.limited_calls import (
    LimitReached,
    call,
    decode_names,
    encode_names,
    is_cheap_pattern,
)
from evalstore.files.templates import ITEM, Filled, compile_text
from evalstore.files.yaml12 import parse_json

_NEEDS_NAMES = frozenset({"templates", "expression", "values", "turns", "file", "check"})
"""Fields of checks that may mention more than the answer; a nested check may, too."""
_OF_CODE = ("file", "item", "conversations")
"""Fields that a check which runs a Python file has beside its settings."""


class HeldConversation(NamedTuple):
    """A finished conversation, as checks see it."""

    replies: tuple[Reply, ...]
    usd: float | None = None
    shown: tuple[Json, ...] = ()
    """The messages of the conversation, if a check needs them."""


def bind_answers(
    check: Mapping[str, Json], sessions: Sequence[HeldConversation]
) -> tuple[Mapping[str, Json], Mapping[str, Json]]:
    """Fill a stored check with the answers of sessions; raises `FileProblem`.

    Returns it with the names that an expression may use, with their values.
    """
    if _NEEDS_NAMES.isdisjoint(check):
        return check, {}
    scope = {**describe_answers(sessions), **_named(check, sessions), **check.get("values", {})}
    if isinstance(scope.get(ITEM), dict):
        scope[ITEM] = DatasetColumns(scope[ITEM]).item(scope[ITEM])
    if "templates" not in check:
        return check, scope

    def typed(name: str) -> Any:
        inside, key = name in scope, name.removeprefix(f"{ITEM}.")
        return scope[name] if inside else scope[ITEM][key]

    def lookup(name: str) -> Filled:
        return [str(finalize(typed(name)))]

    known = [*scope, *(f"{ITEM}.{key}" for key in scope.get(ITEM) or ())]
    settings = check["given"]
    values = [(tuple(place), value_at(settings, place)) for place in check.get("data", ())]
    values += [
        (tuple(place), compile_text(source, known, lambda _offset: 1).value(lookup, typed))
        for place, source in check["templates"]
    ]
    try:
        bound = read_check(fill_in(settings, values))
    except FileProblem as problem:
        raise FileProblem(f"filled with the answer, {problem.message}") from problem
    code = {name: check[name] for name in _OF_CODE if name in check} if "file" in check else {}
    return {**bound, **code}, scope


def _named(check: Mapping[str, Json], sessions: Sequence[HeldConversation]) -> dict[str, Json]:
    def text(session: int, turn: int) -> str:
        return sessions[session].replies[turn].text or ""

    return {
        name: text(0, place) if isinstance(place, int) else [text(*position) for position in place]
        for name, place in check.get("turns", {}).items()
    }


def texts_of(sessions: Sequence[HeldConversation]) -> list[str]:
    """Return every answer of one conversation, or the last answer of each of several."""
    if len(sessions) == 1:
        return [reply.text or "" for reply in sessions[0].replies]
    return [session.replies[-1].text or "" for session in sessions]


def describe_answers(sessions: Sequence[HeldConversation]) -> dict[str, Any]:
    """Return the values of answers that checks may use, by name; most are of the last answer.

    `output_json` is missing unless the last answer is JSON.
    """
    answer = sessions[-1].replies[-1]
    text = answer.text or ""
    sample: dict[str, Any] = {
        "output_text": text,
        "tool_calls": [
            {"name": call.name, "arguments": call.arguments} for call in answer.tool_calls
        ],
        "response": text,
        "model": answer.resolved_model,
        "finish_reason": answer.finish_reason,
        "latency": answer.latency,
        "cost": sessions[-1].usd,
    }
    with suppress(ValueError, RecursionError):
        sample["output_json"] = parse_json(text)
    return {"sample": sample, "answer": text, "answers": texts_of(sessions)}


def run_check(check: Mapping[str, Json], subject: CheckInput) -> CheckOutcome:
    """Judge one answer by one check; the verdict is `error` for an unknown type or revision."""
    name = check["type"]
    kind = find_kind(name)
    if kind is None or kind.revision != check["revision"]:
        words = f"'{name}' revision {check['revision']}"
        return CheckOutcome("error", f"this version does not know check {words}")
    subject = with_normalization(check, subject)
    try:
        finding = kind.judge(check, subject)
    except NotJsonError as problem:
        finding = CheckFinding(0.0, str(problem))
    bound = check.get("pass")
    passed = reaches(finding.score, bound) if bound else finding.score >= 1.0
    passed = passed if finding.passed is None else finding.passed
    is_turned_round = bool(check.get("not"))
    score = 1.0 - finding.score if is_turned_round else finding.score
    if passed != is_turned_round:
        notes = passed and not bound and name == "jsonSchema"
        return CheckOutcome("pass", finding.feedback if notes else "", score)
    words = finding.feedback
    if is_turned_round and bound:
        words = f"the score is {finding.score:.4g}, required not to be {bound}"
    elif is_turned_round:
        words = words or _must_not_hold(check, subject)
    elif bound:
        reason = f"the score is {finding.score:.4g}, required {bound}"
        words = f"{reason}: {words}" if words else reason
    label = f"{check['name']}: " if check.get("name") else ""
    return CheckOutcome("fail", label + words, score)


def with_normalization(check: Mapping[str, Json], subject: CheckInput) -> CheckInput:
    """Return the input of a check with the normalization of the texts that it compares."""
    steps = tuple(check.get("normalize", ()))
    if check.get("ignoreCase"):
        steps = (*steps, "casefold")
    if steps == subject.steps and subject.run_check:
        return subject
    return replace(subject, steps=steps, run_check=run_check)


def _must_not_hold(check: Mapping[str, Json], subject: CheckInput) -> str:
    """Return the feedback of a check with `not` whose type has no words for that."""
    kind = find_kind(check["type"])
    value = check.get(kind.main) if kind and kind.main else None
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, dict):  # a file with its id
        value = value.get("path", value)
    text = "" if value is None else as_text(value)
    words = shorten(text) if isinstance(value, str) or len(text) > _SHOWN else text
    is_alone = check.get("scope", "answer") == "answer"
    found = f", found {shorten_to_line(subject.quoted)}" if is_alone else ""
    return f"expected not to hold: {check['type']} {words}".rstrip() + found


_SHOWN = 60
"""The most characters of a setting that stand without quotation marks."""


def run_within_limits(check: Mapping[str, Json], subject: CheckInput) -> CheckOutcome:
    """Run a check; the verdict is `error` if it reaches a limit."""
    size = size_of(subject) + (len(as_text(subject.names)) if "expression" in check else 0)
    if is_cheap_check(check, size, subject.schemas):
        return run_check(check, subject)
    try:
        outcome = call(__name__, "run_encoded", dict(check), _encode(check, subject), strict=True)
    except LimitReached as limit:
        return CheckOutcome("error", f"the check '{check['type']}' was stopped: {limit}")
    return CheckOutcome(*outcome)


def run_encoded(check: Json, subject: Json) -> Json:
    """Run a check in the process that has the limits."""
    try:
        return list(run_check(check, _decode(subject)))
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - an answer may cause any exception
        return ["error", f"the check failed: {str(error) or type(error).__name__}", None]


def _encode(check: Mapping[str, Json], subject: CheckInput) -> Json:
    """Return the input of a check as JSON, without the functions that run code."""
    schema = check.get("schema")
    return {
        "reply": asdict(replace(subject.reply, wait=0.0)),
        "actual": subject.actual,
        "schemas": {schema: subject.schemas[schema]} if isinstance(schema, str) else {},
        "usd": subject.usd,
        "names": encode_names(subject.names),
        "answers": list(subject.answers),
    }


def _decode(document: Json) -> CheckInput:
    reply = document["reply"]
    calls = tuple(ToolCall(**call) for call in reply["tool_calls"])
    return CheckInput(
        Reply(**{**reply, "tool_calls": calls, "usage": Usage(**reply["usage"])}),
        document["actual"],
        document["schemas"],
        document["usd"],
        decode_names(document["names"]),
        tuple(document["answers"]),
    )


RunCode = Callable[[Mapping[str, Json], Json, Sequence[HeldConversation]], Json]
"""Runs a Python check: from the check, its input and the sessions to the returned value."""
RunCheck = Callable[[Mapping[str, Json], CheckInput], CheckOutcome]
"""Runs one check, within limits unless it is cheap."""
_RunOnce = Callable[[Json, Sequence[HeldConversation]], CheckOutcome]
_LONGEST = 20_000
"""The most characters of a stored feedback."""


class ChecksVerdict(NamedTuple):
    """The result of all checks together."""

    verdict: Verdict
    feedback: str
    score: float | None
    """A score from 0 to 1 if a check is graded or weighted, or if not all checks have to pass."""
    results: tuple[Json, ...]


def schemas_of(checks: Iterable[Json]) -> set[str]:
    """Return the versions of schemas that checks refer to."""
    ids: set[str] = set()
    for check in checks:
        ids |= schemas_of(check["checks"]) if check["type"] == BLOCK else set()
        if isinstance(check.get("schema"), str):
            ids.add(check["schema"])
    return ids


def judge_by_checks(
    checks: Sequence[Json],
    sessions: Sequence[HeldConversation],
    schemas: Mapping[str, Json],
    run_code: RunCode | None = None,
    run: RunCheck = run_within_limits,
) -> ChecksVerdict:
    """Judge conversations together by checks; the schemas are by version id.

    Raises `NotRunError` when a check cannot be run in this environment.
    """

    def run_once(check: Json, sessions: Sequence[HeldConversation]) -> CheckOutcome:
        """Run a check once; an exception becomes the verdict `error`."""
        try:
            outcome = run(*bind_subject(check, sessions, schemas, run_code))
        except NotRunError:
            raise
        except Exception as error:  # noqa: BLE001 - an answer may cause any exception
            words = f"the check failed: {str(error) or type(error).__name__}"
            outcome = CheckOutcome("error", words)
        if not outcome.feedback:
            return outcome
        return outcome._replace(feedback=storable(outcome.feedback.strip()[:_LONGEST]))

    results: list[Json] = []
    verdict: Verdict = "pass"
    feedback: list[str] = []
    scores: list[tuple[float, float]] = []
    for check in checks:
        if check["type"] == BLOCK:
            outcome, inner = _judge_block(check, sessions, run_once)
            results += inner
        else:
            outcome = _run(check, sessions, run_once)
            results.append(_describe(check, outcome))
        if outcome.feedback:
            feedback.append(outcome.feedback)
        scores.append((outcome.score or 0.0, check.get("weight", 1)))
        if outcome.verdict == "error" or (outcome.verdict == "fail" and verdict == "pass"):
            verdict = outcome.verdict
    ends = [each.replies[-1] for each in sessions if each.replies[-1].is_cut]
    if feedback and any(not (end.tool_calls or (end.text or "").strip()) for end in ends):
        feedback.insert(0, "the length limit was reached before the answer began")
    has_score = any("weight" in check or "pass" in check for check in checks)
    has_score = has_score or any(0 < score < 1 for score, _ in scores)
    score = _mean(scores) if has_score else None
    return ChecksVerdict(verdict, "; ".join(feedback)[:_LONGEST], score, tuple(results))


def _judge_block(
    block: Json, sessions: Sequence[HeldConversation], run_once: _RunOnce
) -> tuple[CheckOutcome, list[Json]]:
    """Run a block of checks whose `pass` is `any`, or a bound of their mean score."""
    outcomes = [_run(check, sessions, run_once) for check in block["checks"]]
    results = [_describe(*both) for both in zip(block["checks"], outcomes, strict=True)]
    weights = [check.get("weight", 1) for check in block["checks"]]
    score = _mean(
        [(outcome.score or 0.0, by) for outcome, by in zip(outcomes, weights, strict=True)]
    )
    verdicts = [outcome.verdict for outcome in outcomes]
    by_any = block["pass"] == "any"
    passed = "pass" in verdicts if by_any else reaches(score, block["pass"])
    broken = "error" in verdicts and not (by_any and passed)
    verdict: Verdict = "error" if broken else "pass" if passed else "fail"
    words = "; ".join(outcome.feedback for outcome in outcomes if outcome.feedback)
    if verdict == "fail":
        reason = "none of the checks passes" if by_any else f"the score is {score:.4g}"
        words = f"{reason}, required {block['pass']}: {words}"
    return CheckOutcome(verdict, "" if passed and not broken else words, score), results


def _mean(scores: list[tuple[float, float]]) -> float:
    return sum(score * weight for score, weight in scores) / sum(weight for _, weight in scores)


def _describe(check: Json, outcome: CheckOutcome) -> Json:
    result = {"type": check["type"], "verdict": outcome.verdict}
    if "name" in check:
        result["name"] = check["name"]
    if outcome.feedback:
        result["feedback"] = outcome.feedback
    return result


def _run(check: Json, sessions: Sequence[HeldConversation], run_once: _RunOnce) -> CheckOutcome:
    """Run a check on all sessions at once, or on each of them, depending on its scope."""
    if len(sessions) == 1 or check.get("scope", "answer") != "answer":
        return run_once(check, sessions)
    outcomes = [run_once(check, [session]) for session in sessions]
    scores = [outcome.score for outcome in outcomes if outcome.score is not None]
    numbered = enumerate(outcomes, start=1)
    not_passed = [entry for entry in numbered if entry[1].verdict != "pass"]
    if not not_passed:
        return CheckOutcome("pass", "", min(scores, default=None))
    errors = (entry for entry in not_passed if entry[1].verdict == "error")
    number, first = next(errors, not_passed[0])
    more = f" (and {len(not_passed) - 1} more)" if len(not_passed) > 1 else ""
    words = f"answer {number} of {len(sessions)}{more}: {first.feedback}"
    return CheckOutcome(first.verdict, words, min(scores, default=None))


_FAILING = re.compile(r"answer (\d+) of (\d+)(?: \(and \d+ more\))?: ")


def failing_number(feedback: str, count: int) -> int:
    """Return which of `count` answers did not pass a check for each of them, from its feedback.

    It is the first of them, from 1; 0 for a check of all answers at once.
    """
    found = _FAILING.match(feedback)
    return int(found[1]) if found and int(found[1]) <= count == int(found[2]) else 0


def bind_subject(
    check: Json,
    sessions: Sequence[HeldConversation],
    schemas: Mapping[str, Json],
    run_code: RunCode | None = None,
) -> tuple[Mapping[str, Json], CheckInput]:
    """Return a check filled with the answers, and its input; raises `FileProblem`."""
    bound, names = bind_answers(check, sessions)
    reply = sessions[-1].replies[-1]
    return bound, CheckInput(
        reply,
        bound.get("actual", reply.text or ""),
        schemas,
        sessions[-1].usd,
        names=names,
        answers=tuple(texts_of(sessions)),
        run_code=run_code and (lambda code, actual: run_code(code, actual, sessions)),
        run_check=run_check,
    )


# --- which checks are cheap, with a cost bounded by the sizes of the check and the answer

# Costs are rough counts of small steps; Python makes about ten million of them in a second. The
# time of a check grows with the answer, unless one of these rules says that it grows faster; then
# it runs in a process with limits, if the answer is long enough.


_MOST_STEPS = 10_000_000
_LONG_TEXT = 200_000
"""The most characters of an answer that is checked without limits."""
_UNBOUNDED = frozenset(
    (
        *("$dynamicRef", "$recursiveRef", "$anchor", "$dynamicAnchor", "$recursiveAnchor"),
        *("unevaluatedProperties", "unevaluatedItems"),
    )
)
"""Keywords whose cost depends on the value, or that evaluate other conditions again."""
_DEEPEST = 30
"""The most levels of a schema; a deeper one is costly."""
_PRODUCTS = frozenset(
    (
        *("jsonEquals", "jsonSubset", "toolCalls"),
        *("fuzzy", "f1", "similar", "levenshtein", "bleu", "rouge", "allSame"),
    )
)
"""Types that may compare every part of the answer with every part of the expected value."""


def is_cheap_check(check: Mapping[str, Json], size: int, schemas: Mapping[str, Json]) -> bool:
    """Return whether a check is cheap on any answer of `size` characters.

    `schemas` are those that the check refers to, by version id.
    """
    kind = check["type"]
    if kind == "python":
        return True  # it runs in another process in any case
    if "actual" in check:
        size += len(as_text(check["actual"]))
    if size > _LONG_TEXT:
        return False
    if kind == "expr":
        return is_cheap_expression(check["expression"], size + len(as_text(check.get("values"))))
    pattern = check.get("pattern")
    if isinstance(pattern, str) and (
        "verbose" in check.get("flags", ()) or not is_cheap_pattern(pattern, size)
    ):
        return False
    if kind == "jsonSchema":
        schema = check["schema"]
        return is_cheap_schema(schemas[schema] if isinstance(schema, str) else schema, size)
    if kind == "jsonPath":
        inner = check.get("check")
        is_cheap_here = is_cheap_path(check["path"]) and len(check["path"]) * size <= _MOST_STEPS
        return is_cheap_here and (inner is None or is_cheap_check(inner, size, schemas))
    if kind in _PRODUCTS:
        return size * len(json.dumps(check, ensure_ascii=False)) <= _MOST_STEPS
    return True


def size_of(subject: CheckInput) -> int:
    """Return the number of characters that a check looks at."""
    actual = subject.actual
    size = len(actual) if isinstance(actual, str) else len(as_text(actual))
    return size + sum(map(len, subject.answers))


def is_cheap_schema(schema: Json, size: int) -> bool:
    """Return whether a value of this size is validated in few steps."""
    cost = schema_cost(json.dumps(schema, sort_keys=True), min(size, _LONG_TEXT))
    return cost * max(size, 10) <= _MOST_STEPS


@lru_cache(maxsize=1024)
def schema_cost(schema: str, size: int) -> float:
    """Return the number of conditions of a schema; infinite if its size does not bound it.

    A reference counts as the schema it refers to; one that leads outside is costly.
    """
    root = json.loads(schema)
    counts: dict[str, float] = {}

    def count(part: Json, depth: int = 0) -> float:
        if depth > _DEEPEST:
            return math.inf
        if isinstance(part, dict):
            return 1.0 + sum(count_keyword(name, inner, depth) for name, inner in part.items())
        inside = part if isinstance(part, list) else ()
        return 1.0 + sum(count(inner, depth + 1) for inner in inside)  # a sum of floats ends at inf

    def count_keyword(name: str, inner: Json, depth: int) -> float:
        if name == "$ref":
            return refer(inner) if isinstance(inner, str) else math.inf
        if name in _UNBOUNDED or (name in ("$id", "id") and depth > 0):
            return math.inf
        if name in ("pattern", "patternProperties"):
            patterns = inner if isinstance(inner, dict | list) else [inner]
            if not all(isinstance(it, str) and is_cheap_pattern(it, size) for it in patterns):
                return math.inf
        return 1 + size // 10 if name == "uniqueItems" else count(inner, depth + 1)

    def refer(reference: str) -> float:
        if reference not in counts:
            counts[reference] = math.inf  # it may be circular
            start, *steps = reference.split("/")
            node: Json = root if start == "#" else None
            try:
                for step in steps:
                    node = node[step.replace("~1", "/").replace("~0", "~")]
                counts[reference] = count(node) if steps else math.inf
            except (KeyError, TypeError):
                pass
        return counts[reference]

    try:
        return count(root)
    except RecursionError:
        return math.inf

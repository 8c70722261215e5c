"""Conversion of promptfoo's assertions to checks or to instructions for a judge."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from evalstore.core.values import Json
from evalstore.exchange.importers.promptfoo.files import to_json
from evalstore.exchange.importers.promptfoo.nunjucks import ExpressionNotTakenError

LISTS = ("contains-any", "contains-all", "icontains-any", "icontains-all")
"""Assertion types whose value is a list, or a text with commas."""
_SEPARATORS = re.compile(r"[\s,]*")
_QUOTED = re.compile(r"\"((?:\\[\"\\]|\"\"|[^\"])*+)\"\s*(?=,|\Z)")
_UNQUOTED = re.compile(r"([^,]*)")
_ESCAPED = re.compile(r"[\\\"]([\"\\])")
Value = Json
"""The expected value, or a placeholder for the column that contains it."""


@dataclass(frozen=True, slots=True)
class ConvertedAssertion:
    """An assertion converted to a check or to an instruction."""

    check: Json = None
    instruction: str = ""
    """An instruction for a judge, if there is no check: a heading and the value."""
    warning: str = ""


def _texts(value: Value, kind: str) -> Value:
    """Return the value as a text or a list of texts; raises `ExpressionNotTakenError`."""
    items = value if isinstance(value, list) else [value]
    if not items or any(isinstance(item, dict | list) for item in items) or value is None:
        raise ExpressionNotTakenError(f"'{kind}' needs a text as its value")
    texts = [item if isinstance(item, str) else to_json(item) for item in items]
    return texts if isinstance(value, list) else texts[0]


def split_list(text: str, kind: str) -> list[Json]:
    """Split a text at commas, except inside quotes; raises `ExpressionNotTakenError`."""
    items: list[Json] = []
    at = 0
    while (at := _SEPARATORS.match(text, at).end()) < len(text):  # type: ignore[union-attr]
        field = (_QUOTED if text[at] == '"' else _UNQUOTED).match(text, at)
        if field is None:
            raise ExpressionNotTakenError(f"the quotes in the value of '{kind}' do not match")
        inner = field[1]
        items.append(_ESCAPED.sub(r"\1", inner) if text[at] == '"' else inner.strip())
        at = field.end()
    return items


def _text(kind: str, **more: Json) -> Callable[[Value, float | None, str], ConvertedAssertion]:
    return lambda value, _bound, name: ConvertedAssertion({kind: _texts(value, name), **more})


def _equals(value: Value, _bound: float | None, name: str) -> ConvertedAssertion:
    if isinstance(value, dict | list):
        return ConvertedAssertion({"jsonEquals": value})
    return ConvertedAssertion({"equals": _texts(value, name)})


def _json(value: Value, _bound: float | None, _name: str) -> ConvertedAssertion:
    return ConvertedAssertion({"jsonSchema": value} if value else "json")


def _latency(_value: Value, bound: float | None, _name: str) -> ConvertedAssertion:
    if bound is None:
        raise ExpressionNotTakenError("'latency' needs a 'threshold'")
    seconds = bound / 1000
    return ConvertedAssertion({"latency": int(seconds) if seconds.is_integer() else seconds})


def _cost(_value: Value, bound: float | None, _name: str) -> ConvertedAssertion:
    if bound is None:
        raise ExpressionNotTakenError(
            "'cost' without a 'threshold' only measures: costs are always stored"
        )
    return ConvertedAssertion({"cost": bound})


def _levenshtein(value: Value, bound: float | None, name: str) -> ConvertedAssertion:
    maximum = 5 if bound is None else bound
    return ConvertedAssertion(
        {"levenshtein": {"expected": _texts(value, name), "max": int(maximum)}}
    )


def _graded(
    kind: str, default: float, warning: str = "", **more: Json
) -> Callable[[Value, float | None, str], ConvertedAssertion]:
    def convert(value: Value, bound: float | None, name: str) -> ConvertedAssertion:
        minimum = default if bound is None else bound
        return ConvertedAssertion(
            {kind: _texts(value, name), **more, "pass": f">= {minimum:g}"}, warning=warning
        )

    return convert


def _words(value: Value, _bound: float | None, _name: str) -> ConvertedAssertion:
    if isinstance(value, dict):
        bounds = {name: value[name] for name in ("min", "max") if isinstance(value.get(name), int)}
        if not bounds:
            raise ExpressionNotTakenError("'word-count' needs 'min' or 'max'")
    else:
        try:
            bounds = dict.fromkeys(("min", "max"), int(str(value)))
        except ValueError:
            raise ExpressionNotTakenError("'word-count' needs a whole number") from None
    return ConvertedAssertion({"length": {"unit": "words", **bounds}})


def _instruction(
    heading: str, warning: str = ""
) -> Callable[[Value, float | None, str], ConvertedAssertion]:
    def convert(value: Value, bound: float | None, name: str) -> ConvertedAssertion:
        value = to_json(value) if value and isinstance(value, dict | list) else value
        if not isinstance(value, str) or not value.strip():
            raise ExpressionNotTakenError(f"'{name}' needs a text as its value")
        note = warning
        if bound is not None and name in ("llm-rubric", "g-eval"):
            note = f"the 'threshold' of '{name}' is not imported: the judge passes or fails"
        return ConvertedAssertion(
            instruction=f"{heading}\n\n{value}" if heading else value, warning=note
        )

    return convert


_OTHER_PROMPT = "a judge reads it in a prompt of evalstore's, not in promptfoo's"
_WORDS_DIFFER = "words are told apart by another rule, so scores near the bound may differ"
CONVERTERS: Mapping[str, Callable[[Value, float | None, str], ConvertedAssertion]] = {
    "equals": _equals,
    "contains": _text("contains"),
    "icontains": _text("contains", ignoreCase=True),
    "contains-any": _text("containsAny"),
    "icontains-any": _text("containsAny", ignoreCase=True),
    "contains-all": _text("containsAll"),
    "icontains-all": _text("containsAll", ignoreCase=True),
    "starts-with": _text("startsWith"),
    "regex": _text("regex"),
    "is-json": _json,
    "latency": _latency,
    "cost": _cost,
    "levenshtein": _levenshtein,
    "rouge-n": _graded("rouge", 0.75, _WORDS_DIFFER, variant="rouge1"),
    "bleu": _graded("bleu", 0.5, _WORDS_DIFFER),
    "word-count": _words,
    "finish-reason": _text("finishReason"),
    "is-refusal": lambda _value, _bound, _name: ConvertedAssertion("refusal"),
    "llm-rubric": _instruction(""),
    "g-eval": _instruction("", _OTHER_PROMPT),
    "model-graded-closedqa": _instruction("The answer must meet this criterion:", _OTHER_PROMPT),
    "factuality": _instruction("The answer must agree in its facts with this:", _OTHER_PROMPT),
    "model-graded-factuality": _instruction(
        "The answer must agree in its facts with this:", _OTHER_PROMPT
    ),
}
_REASONS: Mapping[str, str] = {
    **dict.fromkeys(("javascript", "python", "ruby", "webhook"), "is code, which is not run"),
    **dict.fromkeys(("similar", "classifier", "moderation"), "needs another kind of model"),
    **dict.fromkeys(("select-best", "max-score"), "compares the answers of several models"),
    "contains-json": "finds JSON anywhere: 'json: {fenced: true}' finds it in a block of code",
}
_TOOL_CALLS = ("is-valid-openai-tools-call", "is-valid-openai-function-call")
TYPES = frozenset(
    (*CONVERTERS, *_REASONS, *_TOOL_CALLS, "perplexity", "is-sql", "is-xml", "is-html")
)
"""The assertion types that are recognised in table cells."""


def convert(kind: str, value: Value, threshold: Any) -> ConvertedAssertion:
    """Convert an assertion; raises `ExpressionNotTakenError`."""
    negated = kind.startswith("not-")
    bare = kind.removeprefix("not-")
    if bare not in CONVERTERS:
        reason = _REASONS.get(bare, "has no check here")
        raise ExpressionNotTakenError(f"the assertion '{kind}' {reason}")
    if threshold is not None and (
        isinstance(threshold, bool) or not isinstance(threshold, int | float)
    ):
        raise ExpressionNotTakenError(f"the 'threshold' of '{kind}' is not a number")
    converted = CONVERTERS[bare](value, threshold, bare)
    if not negated:
        return converted
    if converted.check is None:
        raise ExpressionNotTakenError(f"the assertion '{kind}': write what must be so instead")
    check = {"type": converted.check} if isinstance(converted.check, str) else converted.check
    return ConvertedAssertion({**check, "not": True}, warning=converted.warning)

"""Conversion of NeMo's metrics without a judge to checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from evalstore.core.values import Json
from evalstore.exchange.importers.coerce import parse_json
from evalstore.exchange.importers.nemo import templates

ENOUGH = ">= 0.5"
"""The default pass bound of scores, as jobs have none."""


class MetricNotTakenError(Exception):
    """A metric cannot be imported."""


_STRING = {
    "contains": ("contains", False),
    "not contains": ("contains", True),
    "equals": ("equals", False),
    "==": ("equals", False),
    "!=": ("equals", True),
    "<>": ("equals", True),
    "not equals": ("equals", True),
    "startswith": ("startsWith", False),
    "endswith": ("endsWith", False),
}
_NUMBER = {
    **dict.fromkeys(("equals", "==", "absolute difference"), "=="),
    **dict.fromkeys(("not equals", "!=", "<>"), "!="),
    **dict.fromkeys((">=", "gte", "greater than or equal"), ">="),
    **dict.fromkeys((">", "gt", "greater than"), ">"),
    **dict.fromkeys(("<=", "lte", "less than or equal"), "<="),
    **dict.fromkeys(("<", "lt", "less than"), "<"),
}


def _operands(params: Mapping[str, Any], kind: str) -> tuple[Json, str, Json]:
    """Return the left side, the operation and the right side, from either notation."""
    check = params.get("check")
    if isinstance(check, list) and len(check) >= 3:
        left, operation, right = check[:3]
    else:
        operation = params.get("operation")
        left, right = params.get("left_template"), params.get("right_template")
    if left is None or right is None or not isinstance(operation, str):
        raise MetricNotTakenError(f"the {kind} needs 'check: [left, operation, right]'")
    return left, " ".join(operation.lower().split()), right


def _with_actual(check: dict[str, Json], candidate: Json) -> dict[str, Json]:
    """Set the checked value, unless it is the unchanged answer."""
    if candidate is None or templates.is_output(candidate):
        return check
    return {**check, "actual": templates.value(candidate)}


def _string_check(params: Mapping[str, Any]) -> dict[str, Json]:
    left, operation, right = _operands(params, "string-check")
    if operation not in _STRING:
        raise MetricNotTakenError(f"the string-check has no operation '{operation}'")
    kind, negated = _STRING[operation]
    check = _with_actual({kind: templates.value(right)}, left)
    return {**check, "not": True} if negated else check


def _number_check(params: Mapping[str, Any]) -> dict[str, Json]:
    left, operation, right = _operands(params, "number-check")
    if operation not in _NUMBER:
        raise MetricNotTakenError(f"the number-check has no operation '{operation}'")
    parts = params.get("check")
    epsilon = params.get("epsilon")
    if epsilon is None and isinstance(parts, list) and len(parts) > 3:
        epsilon = parts[3].get("epsilon") if isinstance(parts[3], dict) else parts[3]
    if operation != "absolute difference":
        if epsilon:
            raise MetricNotTakenError(f"'epsilon' means nothing with the operation '{operation}'")
    elif isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not epsilon >= 0:
        raise MetricNotTakenError("the operation 'absolute difference' needs 'epsilon'")
    settings: dict[str, Json] = {"expected": templates.value(right)}
    if _NUMBER[operation] != "==":
        settings["op"] = _NUMBER[operation]
    if operation == "absolute difference":
        settings["epsilon"] = epsilon
    return {"number": _with_actual(settings, left)}


def _reference(params: Mapping[str, Any]) -> Json:
    """Return the expected templates; similarity metrics default to `item.reference`."""
    for name in ("references", "ground_truth", "reference"):
        if name in params:
            value = params[name]
            return (
                list(map(templates.value, value))
                if isinstance(value, list)
                else templates.value(value)
            )
    return "{{ item.reference }}"


def _text_metric(
    kind: str, *, graded: bool = False, **settings: Json
) -> Callable[[Mapping[str, Any]], dict[str, Json]]:
    def make_check(params: Mapping[str, Any]) -> dict[str, Json]:
        candidate = params.get("candidate", params.get("prediction"))
        check = _with_actual({kind: _reference(params), **settings}, candidate)
        return {**check, "pass": ENOUGH} if graded else check

    return make_check


METRICS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Json]]] = {
    "string-check": _string_check,
    "number-check": _number_check,
    "exact-match": _text_metric("exact"),
    "em": _text_metric("exact"),
    "accuracy": _text_metric("equals"),
    "f1": _text_metric("f1", graded=True),
    "bleu": _text_metric("bleu", graded=True),
    "rouge": _text_metric("rouge", graded=True, stem=True),
}
GRADED = ("f1", "bleu", "rouge")


def tool_call(expected: Json) -> dict[str, Json]:
    """Convert an expected tool call from the chat-completions format; raises `ValueError`."""
    call = expected.get("function", expected) if isinstance(expected, dict) else None
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        raise ValueError("an expected tool call has no name")
    arguments = call.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = parse_json(arguments)
        except ValueError:
            raise ValueError("the arguments of an expected tool call are not JSON") from None
    if not isinstance(arguments, dict | None):
        raise ValueError("the arguments of an expected tool call are not a mapping")
    return {"name": call["name"], "arguments": arguments or {}}

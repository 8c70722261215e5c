"""Checks of the metadata of a call: finish reason, latency, cost and tokens."""

from __future__ import annotations

import math
from collections.abc import Mapping

from evalstore.checks.base import CheckArguments, CheckFinding, CheckInput, CheckType, passes
from evalstore.core.display import shorten
from evalstore.core.values import Json, Usage

_OF = ("total", "input", "output")


def _ends_for(check: Mapping[str, Json], subject: CheckInput) -> CheckFinding:
    """Return whether the finish reason is one of the expected ones."""
    reason = subject.reply.finish_reason
    if reason is None:
        raise ValueError("the provider did not report why the answer ended")
    is_so = subject.prepare(reason) in map(subject.prepare, check["expected"])
    expected = " or ".join(map(shorten, check["expected"]))
    return passes(is_so, f"expected the finish reason {expected}, found {shorten(reason)}")


def _read_most(arguments: CheckArguments) -> dict[str, Json]:
    most = arguments.not_negative("max")
    if most is None:
        raise arguments.missing("max")
    return {"max": most}


def _takes_at_most(check: Mapping[str, Json], subject: CheckInput) -> CheckFinding:
    """Return whether the call took at most `max` seconds."""
    seconds = subject.reply.latency
    words = f"expected at most {check['max']:g} s, found {seconds:.4g} s"
    return passes(seconds <= check["max"], words)


def _costs_at_most(check: Mapping[str, Json], subject: CheckInput) -> CheckFinding:
    """Return whether the call cost at most `max` USD."""
    usd = subject.usd
    if usd is None:
        raise ValueError("the cost of the call is unknown: its model has no price")
    return passes(usd <= check["max"], f"expected at most {check['max']:g} USD, found {usd:.4g}")


def _read_tokens(arguments: CheckArguments) -> dict[str, Json]:
    least = arguments.whole("min")
    most = arguments.whole("max")
    of = arguments.chosen("of", _OF)
    if least is None and most is None:
        raise arguments.problem("the check needs 'max' or 'min'", "as in 'tokens: 500'")
    if least is not None and most is not None and least > most:
        raise arguments.problem(f"'min' is {least}, which is more than 'max': {most}")
    bounds = {"min": least, "max": most}
    return of | {name: bound for name, bound in bounds.items() if bound is not None}


def _uses_tokens(check: Mapping[str, Json], subject: CheckInput) -> CheckFinding:
    """Return whether the tokens of the call, counted by the provider, are within the bounds."""
    of = check.get("of", "total")
    tokens = _count(subject.reply.usage, of)
    if tokens is None:
        unit = "tokens" if of == "total" else f"{of} tokens"
        raise ValueError(f"the provider did not report how many {unit} the call used")
    least, most = check.get("min", 0), check.get("max", math.inf)
    bounds = [f"at least {least}"] if "min" in check else []
    bounds += [f"at most {most}"] if "max" in check else []
    unit = "tokens in total" if of == "total" else f"{of} tokens"
    words = f"expected {' and '.join(bounds)} {unit}, found {tokens}"
    return passes(least <= tokens <= most, words)


def _count(usage: Usage, of: str) -> int | None:
    """Return the tokens of one side, or of both if both are known."""
    read = 0 if of == "output" else usage.input_tokens
    written = 0 if of == "input" else usage.output_tokens
    return None if read is None or written is None else read + written


KINDS = {
    "finishReason": CheckType(
        1, lambda it: {"expected": it.texts("expected")}, _ends_for, example="stop"
    ),
    "latency": CheckType(1, _read_most, _takes_at_most, main="max", example="10"),
    "cost": CheckType(1, _read_most, _costs_at_most, main="max", example="0.01"),
    "tokens": CheckType(1, _read_tokens, _uses_tokens, main="max"),
}

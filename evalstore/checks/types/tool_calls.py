"""Checks of the tool calls in an answer, and of the call that gave it: how it ended, time, cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from evalstore.checks.base import (
    CheckArguments,
    CheckFinding,
    CheckInput,
    CheckType,
    holds,
    passes,
    read_nothing,
    shown,
)
from evalstore.checks.types.json import JsonComparison, JsonDifference, match
from evalstore.core.display import shorten
from evalstore.core.values import Json, ToolCall, Usage
from evalstore.files.fields import is_json, suggest

_LISTED = 5
"""The most calls that a feedback lists."""
_EXPECTATION = ("name", "arguments")


def _arguments(call: ToolCall) -> Json:
    """Return the arguments of a call; an empty mapping if it has none."""
    return {} if call.arguments is None else call.arguments


def _fits(comparison: JsonComparison, expected: Mapping[str, Json], call: ToolCall) -> bool:
    """Return whether a call has the expected name and, if given, the expected arguments."""
    if call.name != expected["name"]:
        return False
    expected_arguments = expected.get("arguments")
    return expected_arguments is None or comparison.agrees(expected_arguments, _arguments(call))


def _read_calls(arguments: CheckArguments) -> dict[str, Json]:
    calls = arguments.take("expected")
    if isinstance(calls, dict) and list(calls) == ["count"]:
        arguments, calls = CheckArguments(calls, arguments.line), None
    count = arguments.whole("count")
    if calls is None or calls is True:
        for name in ("order", "extra", "arguments"):
            if arguments.has(name):
                raise arguments.problem(f"'{name}' has an effect only with 'expected'")
        return {} if count is None else {"count": count}
    expected = [
        _read_expectation(call, arguments)
        for call in (calls if isinstance(calls, list) else [calls])
    ]
    settings: dict[str, Json] = {
        "expected": expected,
        **arguments.flags("order"),
        **arguments.chosen("extra", ("forbid", "allow")),
        **arguments.chosen("arguments", ("exact", "subset")),
    }
    if count is not None:
        if count < len(expected) or (count > len(expected) and "extra" not in settings):
            message = f"'count' is {count}, but 'expected' has {len(expected)}"
            raise arguments.problem(message, "further calls need 'extra: allow'")
        settings["count"] = count
    return settings


def _read_expectation(call: Json, arguments: CheckArguments) -> dict[str, Json]:
    """Return an expected call: a name, or a mapping with a name and optional arguments."""
    if isinstance(call, str) and call:
        return {"name": call}
    if call is False:
        raise arguments.problem("to expect no call at all, write 'noToolCalls'")
    if not isinstance(call, dict) or not isinstance(call.get("name"), str) or not call["name"]:
        message = f"an expected call must have a 'name', not be {shown(call)}"
        raise arguments.problem(message, "as in '- {name: cityWeather, arguments: {city: Oslo}}'")
    for name in call:
        if name not in _EXPECTATION:
            hint = suggest(name, _EXPECTATION, "fields")
            raise arguments.problem(f"an expected call has no field {shorten(name)}", hint)
    if "arguments" not in call:
        return {"name": call["name"]}
    call_arguments = call["arguments"]
    if not isinstance(call_arguments, dict) or not is_json(call_arguments):
        message = (
            f"the arguments of an expected call must be a mapping, not {shown(call_arguments)}"
        )
        raise arguments.problem(message, "leave 'arguments' out to accept any arguments")
    return {"name": call["name"], "arguments": call_arguments}


def _calls_tools(check: Mapping[str, Json], subject: CheckInput) -> CheckFinding:
    """Return whether the expected tools were called; each call meets one expectation.

    Without expectations: whether any tool was called, or `count` tools.
    """
    calls = subject.reply.tool_calls
    count = check.get("count")
    if count is not None and len(calls) != count:
        return CheckFinding(0.0, f"expected {_calls(count)}, found {_list(calls)}")
    if "expected" not in check:
        words = "the answer is a text, no tool was called"
        return passes(bool(calls) or count == 0, words)
    comparison = _comparison(check, subject)
    allows_more = check.get("extra") == "allow"
    partners = _partners(comparison, check, calls)
    missing = [call for call, at in zip(check["expected"], partners, strict=True) if at is None]
    if missing:
        return CheckFinding(0.0, _missing(missing[0], partners, calls, comparison))
    more = [call for at, call in enumerate(calls) if at not in partners]
    words = f"expected no further call, found {_list(more)}"
    return passes(allows_more or not more, words)


def nearest_difference(
    check: Mapping[str, Json], subject: CheckInput
) -> tuple[str, JsonDifference] | None:
    """Return the tool of the first missing call, and how the nearest call's arguments differ.

    None when no call is missing, or when there is no call of the same tool with other arguments.
    """
    calls = subject.reply.tool_calls
    comparison = _comparison(check, subject)
    expectations = check.get("expected", ())
    partners = _partners(comparison, check, calls) if expectations else []
    for expected, at in zip(expectations, partners, strict=True):
        if at is None:
            near = _nearest(expected, partners, calls)
            difference = near and comparison.difference(expected["arguments"], _arguments(near))
            return (expected["name"], difference) if difference else None
    return None


def _comparison(check: Mapping[str, Json], subject: CheckInput) -> JsonComparison:
    is_subset = check.get("arguments") == "subset"
    return JsonComparison(subject.prepare, is_subset, quote=subject.quote)


def _partners(
    comparison: JsonComparison, check: Mapping[str, Json], calls: Sequence[ToolCall]
) -> list[int | None]:
    """Return the index of the matching call for each expected call; None if there is none."""
    if check.get("order"):
        return _in_order(comparison, check["expected"], calls, check.get("extra") == "allow")
    return match(
        [
            [at for at, call in enumerate(calls) if _fits(comparison, expected, call)]
            for expected in check["expected"]
        ]
    )


def _in_order(
    comparison: JsonComparison,
    expected: Sequence[Json],
    calls: Sequence[ToolCall],
    allows_more: bool,
) -> list[int | None]:
    """Return the index of the matching call for each expected call in order, None without one."""
    positions: list[int | None] = []
    at = 0
    for expected_call in expected:
        start = at
        while allows_more and at < len(calls) and not _fits(comparison, expected_call, calls[at]):
            at += 1
        if at >= len(calls) or not _fits(comparison, expected_call, calls[at]):
            positions.append(None)
            at = start + (not allows_more)
            continue
        positions.append(at)
        at += 1
    return positions


def _missing(
    expected: Mapping[str, Json],
    partners: Sequence[int | None],
    calls: Sequence[ToolCall],
    comparison: JsonComparison,
) -> str:
    """Return the message that an expected call is missing, with the nearest actual call."""
    words = f"expected the call {_describe_call(expected['name'], expected.get('arguments'))}"
    near = _nearest(expected, partners, calls)
    message = f"{words}, found {_list(calls)}"
    if near is None:
        return message
    differs = comparison.difference(expected["arguments"], _arguments(near))
    return f"{message}; in the arguments, {differs}" if differs else f"{message}, in another order"


def _nearest(
    expected: Mapping[str, Json], partners: Sequence[int | None], calls: Sequence[ToolCall]
) -> ToolCall | None:
    """Return the first call of that tool which matches no expectation, if it has arguments."""
    return next(
        (
            call
            for at, call in enumerate(calls)
            if at not in partners and call.name == expected["name"] and "arguments" in expected
        ),
        None,
    )


def _calls(count: int) -> str:
    return "no tool call" if count == 0 else "1 tool call" if count == 1 else f"{count} tool calls"


def _describe_call(name: str, arguments: Json) -> str:
    shape = "…" if arguments is None else shown(arguments)
    return f"{name[:60]}({shape})"


def _list(calls: Sequence[ToolCall]) -> str:
    if not calls:
        return "no tool call"
    listed = ", ".join(_describe_call(call.name, _arguments(call)) for call in calls[:_LISTED])
    return f"{listed} … ({len(calls)} in all)" if len(calls) > _LISTED else listed


def _calls_no_tool(check: Mapping[str, Json], subject: CheckInput) -> CheckFinding:
    """Return whether no tool was called."""
    if not (calls := subject.reply.tool_calls):
        return holds(check, lambda: "expected a tool call, found none")
    return CheckFinding(0.0, f"expected no tool call, found {_list(calls)}")


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
    "toolCalls": CheckType(2, _read_calls, _calls_tools, takes_mapping=True),
    "noToolCalls": CheckType(1, read_nothing, _calls_no_tool, main=None),
    "finishReason": CheckType(
        1, lambda it: {"expected": it.texts("expected")}, _ends_for, example="stop"
    ),
    "latency": CheckType(1, _read_most, _takes_at_most, main="max", example="10"),
    "cost": CheckType(1, _read_most, _costs_at_most, main="max", example="0.01"),
    "tokens": CheckType(
        1, lambda it: it.chosen("of", _OF) | it.bounds(), _uses_tokens, main="max", example="500"
    ),
}

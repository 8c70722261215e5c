"""Checks of the tool calls in an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evalstore.checks.base import CheckArguments, CheckFinding, CheckInput, CheckType, passes
from evalstore.checks.json_values import shown
from evalstore.checks.types.json_comparison import JsonComparison, match
from evalstore.display import shorten
from evalstore.files.fields import is_json, suggest
from evalstore.values import Json, ToolCall

_LISTED = 5
"""How many calls a feedback lists."""
_EXPECTATION = ("name", "arguments")


def _arguments(call: ToolCall) -> Json:
    """The arguments of a call; a call without some has none, which is an empty mapping."""
    return {} if call.arguments is None else call.arguments


def _fits(comparison: JsonComparison, expected: Mapping[str, Json], call: ToolCall) -> bool:
    """Whether a call has this name and, when the expectation has some, these arguments."""
    if call.name != expected["name"]:
        return False
    wanted = expected.get("arguments")
    return wanted is None or comparison.agrees(wanted, _arguments(call))


def _read_calls(arguments: CheckArguments) -> dict[str, Json]:
    given = arguments.take("expected")
    if isinstance(given, dict) and list(given) == ["count"]:
        arguments, given = CheckArguments(given, arguments.line), None
    count = arguments.whole("count")
    if given is None or given is True:
        for name in ("order", "extra", "arguments"):
            if arguments.has(name):
                raise arguments.problem(f"'{name}' has an effect only with 'expected'")
        return {} if count is None else {"count": count}
    expected = [
        _read_expectation(one, arguments) for one in (given if isinstance(given, list) else [given])
    ]
    found: dict[str, Json] = {"expected": expected}
    if arguments.flag("order"):
        found["order"] = True
    if arguments.choice("extra", ("allow", "forbid"), "forbid") == "allow":
        found["extra"] = "allow"
    if arguments.choice("arguments", ("exact", "subset"), "exact") == "subset":
        found["arguments"] = "subset"
    if count is not None:
        if count < len(expected) or (count > len(expected) and "extra" not in found):
            message = f"'count' is {count}, but 'expected' has {len(expected)}"
            raise arguments.problem(message, "further calls need 'extra: allow'")
        found["count"] = count
    return found


def _read_expectation(given: Json, arguments: CheckArguments) -> dict[str, Json]:
    """One expected call: its name, or a mapping with a name and perhaps arguments."""
    if isinstance(given, str) and given:
        return {"name": given}
    if given is False:
        raise arguments.problem("to expect no call at all, write 'noToolCalls'")
    if not isinstance(given, dict) or not isinstance(given.get("name"), str) or not given["name"]:
        message = f"an expected call must have a 'name', not be {shown(given)}"
        raise arguments.problem(message, "as in '- {name: cityWeather, arguments: {city: Oslo}}'")
    for name in given:
        if name not in _EXPECTATION:
            hint = suggest(name, _EXPECTATION, "fields")
            raise arguments.problem(f"an expected call has no field {shorten(name)}", hint)
    if "arguments" not in given:
        return {"name": given["name"]}
    wanted = given["arguments"]
    if not isinstance(wanted, dict) or not is_json(wanted):
        message = f"the arguments of an expected call must be a mapping, not {shown(wanted)}"
        raise arguments.problem(message, "leave 'arguments' out if any will do")
    return {"name": given["name"], "arguments": wanted}


def _calls_tools(check: Mapping[str, Json], subject: CheckInput) -> CheckFinding:
    """Whether the expected tools were called, each call standing for one expectation.

    Without expectations: whether any tool was called, or as many as `count` says.
    """
    calls = subject.reply.tool_calls
    count = check.get("count")
    if count is not None and len(calls) != count:
        return CheckFinding(0.0, f"expected {_calls(count)}, found {_list(calls)}")
    if "expected" not in check:
        words = "the answer is a text, no tool was called"
        return passes(bool(calls) or count == 0, words)
    comparison = JsonComparison(subject.prepare, check.get("arguments") == "subset")
    allows_more = check.get("extra") == "allow"
    find = _in_order if check.get("order") else _in_any_order
    partners = find(comparison, check["expected"], calls, allows_more)
    missing = [one for one, at in zip(check["expected"], partners, strict=True) if at is None]
    if missing:
        return CheckFinding(0.0, _missing(missing[0], partners, calls, comparison))
    more = [call for at, call in enumerate(calls) if at not in partners]
    words = f"expected no further call, found {_list(more)}"
    return passes(allows_more or not more, words)


def _in_any_order(
    comparison: JsonComparison,
    expected: Sequence[Json],
    calls: Sequence[ToolCall],
    _allows_more: bool,
) -> list[int | None]:
    return match(
        [[at for at, call in enumerate(calls) if _fits(comparison, one, call)] for one in expected]
    )


def _in_order(
    comparison: JsonComparison,
    expected: Sequence[Json],
    calls: Sequence[ToolCall],
    allows_more: bool,
) -> list[int | None]:
    """The first call that fits after those before it; without further calls, the next one."""
    found: list[int | None] = []
    at = 0
    for one in expected:
        start = at
        while allows_more and at < len(calls) and not _fits(comparison, one, calls[at]):
            at += 1
        if at >= len(calls) or not _fits(comparison, one, calls[at]):
            found.append(None)
            at = start + (not allows_more)
            continue
        found.append(at)
        at += 1
    return found


def _missing(
    expected: Mapping[str, Json],
    partners: Sequence[int | None],
    calls: Sequence[ToolCall],
    comparison: JsonComparison,
) -> str:
    """That an expected call was not made, and how the nearest one differs from it."""
    words = f"expected the call {_one(expected['name'], expected.get('arguments'))}"
    near = next(
        (
            call
            for at, call in enumerate(calls)
            if at not in partners and call.name == expected["name"] and "arguments" in expected
        ),
        None,
    )
    found = f"{words}, found {_list(calls)}"
    if near is None:
        return found
    differs = comparison.difference(expected["arguments"], _arguments(near))
    return f"{found}; in the arguments, {differs}" if differs else f"{found}, in another order"


def _calls(count: int) -> str:
    return "no tool call" if count == 0 else "1 tool call" if count == 1 else f"{count} tool calls"


def _one(name: str, arguments: Json) -> str:
    shape = "…" if arguments is None else shown(arguments)
    return f"{name[:60]}({shape})"


def _list(calls: Sequence[ToolCall]) -> str:
    if not calls:
        return "no tool call"
    listed = ", ".join(_one(call.name, _arguments(call)) for call in calls[:_LISTED])
    return f"{listed} … ({len(calls)} in all)" if len(calls) > _LISTED else listed


def _read_nothing(_arguments: CheckArguments) -> dict[str, Json]:
    return {}


def _calls_no_tool(_check: Mapping[str, Json], subject: CheckInput) -> CheckFinding:
    """Whether no tool was called."""
    calls = subject.reply.tool_calls
    return passes(not calls, f"expected no tool call, found {_list(calls)}")


KINDS = {
    "toolCalls": CheckType(1, _read_calls, _calls_tools, takes_mapping=True),
    "noToolCalls": CheckType(1, _read_nothing, _calls_no_tool, main=None),
}

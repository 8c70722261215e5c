"""Runs checks within limits: cheap ones in this process, others in one with limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace

from evalstore.checks.base import CheckInput, CheckOutcome
from evalstore.checks.complexity import is_cheap_check, size_of
from evalstore.checks.runner import run_check
from evalstore.core.values import Json, Reply, ToolCall, Usage
from evalstore.files.processes.limited_calls import LimitReached, call, decode_names, encode_names


def run_within_limits(check: Mapping[str, Json], subject: CheckInput) -> CheckOutcome:
    """Run a check; the verdict is `error` if it reaches a limit."""
    if is_cheap_check(check, size_of(subject), subject.schemas):
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

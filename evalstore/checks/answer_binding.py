"""A check that mentions the answer, once there is one: its texts filled, its names with values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from evalstore.checks.base import KEPT
from evalstore.checks.parser import read_check
from evalstore.checks.placeholders import copied, put_at, set_apart
from evalstore.errors import FileProblem
from evalstore.files.datasets.columns import DatasetColumns
from evalstore.files.jinja_sandbox import show
from evalstore.files.templates import ITEM, compile_text
from evalstore.values import Json, Reply

if TYPE_CHECKING:
    from evalstore.files.templates import Filled

_NEEDS_NAMES = frozenset({"templates", "expression", "values", "turns", "file", "check"})
"""Settings of checks that may mention more than the answer; a check in a check may."""


class HeldConversation(NamedTuple):
    """A conversation that was held, as checks see it."""

    replies: tuple[Reply, ...]
    usd: float | None = None
    shown: tuple[Json, ...] = ()
    """The whole of it as texts, when a check looks at that."""


class BoundCheck(NamedTuple):
    """A check with all that it says of the answers filled in."""

    check: Mapping[str, Json]
    names: Mapping[str, Json]
    """What an expression may use."""


def settle(check: Mapping[str, Json], sessions: Sequence[HeldConversation]) -> BoundCheck:
    """A check that can be run on some sessions; raises `FileProblem`."""
    if _NEEDS_NAMES.isdisjoint(check):
        return BoundCheck(check, {})
    scope = {**describe_answers(sessions), **_named(check, sessions), **check.get("values", {})}
    if isinstance(scope.get(ITEM), dict):
        scope[ITEM] = DatasetColumns(scope[ITEM]).item(scope[ITEM])
    if "templates" not in check:
        return BoundCheck(check, scope)

    def typed(name: str) -> Any:
        inside, key = name in scope, name.removeprefix(f"{ITEM}.")
        return scope[name] if inside else scope[ITEM][key]

    def lookup(name: str) -> Filled:
        return [str(show(typed(name)))]

    known = [*scope, *(f"{ITEM}.{key}" for key in scope.get(ITEM) or ())]
    written = check.get("given")
    given = copied(written)
    for place, source in check["templates"]:
        template = compile_text(source, known, lambda _offset: 1)
        given = put_at(given, tuple(place), template.value(lookup, typed))
    try:
        kept = {name: check[name] for name in KEPT if name in check}
        given = set_apart(given, written)
        return BoundCheck({**read_check(given), **(kept if "file" in kept else {})}, scope)
    except FileProblem as problem:
        raise FileProblem(f"filled with the answer, {problem.message}") from problem


def _named(check: Mapping[str, Json], sessions: Sequence[HeldConversation]) -> dict[str, Json]:
    def text(session: int, turn: int) -> str:
        return sessions[session].replies[turn].text or ""

    return {
        name: text(0, place) if isinstance(place, int) else [text(*one) for one in place]
        for name, place in check.get("turns", {}).items()
    }


def texts_of(sessions: Sequence[HeldConversation]) -> list[str]:
    """Every answer of one conversation, or the last answer of each of several."""
    if len(sessions) == 1:
        return [reply.text or "" for reply in sessions[0].replies]
    return [session.replies[-1].text or "" for session in sessions]


def describe_answers(sessions: Sequence[HeldConversation]) -> dict[str, Any]:
    """What checks may mention of answers, above all of the last one.

    `output_json` is there only if that is JSON.
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
        sample["output_json"] = json.loads(text)
    return {"sample": sample, "answer": text, "answers": texts_of(sessions)}

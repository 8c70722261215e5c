"""Stores checks that mention the answer, and binds them when there is an answer.

A check is bound twice. When a test file is expanded, `workspace.testfiles.check_binding` fills it
with a row of data. Texts that mention the answer are bound here, when the answer is judged.
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

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from evalstore.checks.parser import read_check
from evalstore.checks.placeholders import fill_in, value_at
from evalstore.core.errors import FileProblem
from evalstore.core.values import Json, Reply
from evalstore.files.datasets.spec import DatasetColumns
from evalstore.files.jinja_environment import finalize
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


class BoundCheck(NamedTuple):
    """A check in which everything that mentions the answers is filled in."""

    check: Mapping[str, Json]
    names: Mapping[str, Json]
    """The names that an expression may use, with their values."""


def bind_answers(check: Mapping[str, Json], sessions: Sequence[HeldConversation]) -> BoundCheck:
    """Fill a stored check with the answers of sessions; raises `FileProblem`."""
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
    return BoundCheck({**bound, **code}, scope)


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

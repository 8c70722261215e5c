"""Checks that mention the answer: how they are kept until there is one, and how they are run then.

A check is bound twice. When a test file is expanded, `workspace.testfiles.check_binding` fills it
with a row of data. What can only be known of the answer stays open, and is bound here when the
answer is judged. In between the check is stored like this:

    {
      "type": "equals", "revision": 1,
      "given": {"equals": "{{first}} in {{city}}", "name": "Oslo", "scope": "case"},
      "templates": [[["equals"], "{{first}} in {{city}}"]],
      "values": {"city": "Oslo"},
      "turns": {"first": 0},
      "scope": "case"
    }

`given`: the check as its author wrote it, with the texts in place that only the row fills.
`templates`: where a text is that needs the answer, and the text.
`data`: where a mapping from data is that would be read as settings if it were the author's.
`values`: what the row has for the names that are used; a row of data as `item`, with its used keys.
`turns`: where the answers are that have names: the number of a turn, counted from 0, or, where
several conversations are judged together, pairs of the numbers of a conversation and of a turn.
`scope`: unless it is `answer`.

What is empty is left out. A check without such texts is stored in canonical form; if it is an
expression, `values` and `turns` stand beside its settings. A Python file may use everything, so its
check has the values as `item`, and as `conversations` the names of the answers. All of this decides
what is checked, so it is part of the check's identity.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from evalstore.checks.parser import read_check
from evalstore.checks.placeholders import Place, fill_in, plain_copy, value_at
from evalstore.errors import FileProblem
from evalstore.files.datasets.columns import DatasetColumns
from evalstore.files.jinja_environment import show
from evalstore.files.template_compiler import compile_text
from evalstore.files.templates import ITEM
from evalstore.values import Json, Reply

if TYPE_CHECKING:
    from evalstore.files.templates import Filled

_NEEDS_NAMES = frozenset({"templates", "expression", "values", "turns", "file", "check"})
"""Settings of checks that may mention more than the answer; a check in a check may."""
_OF_CODE = ("file", "item", "conversations")
"""What a check that runs a Python file has besides its settings."""


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


def defer(
    written: Json,
    filled: Json,
    places: Iterable[Place],
    data: Iterable[Place],
    *,
    type: str,
    revision: int,
    scope: str,
) -> dict[str, Json]:
    """A check that waits for the answer, as it is stored.

    `written` is the check as its author wrote it, `filled` with the texts that the row fills in
    place. At `places` are the texts that mention the answer, at `data` mappings of the row.
    """
    data_places = [list(place) for place in data]
    return {
        "type": type,
        "revision": revision,
        "given": plain_copy(filled),
        "templates": [[list(place), value_at(written, place)] for place in places],
        **({"data": data_places} if data_places else {}),
        **({} if scope == "answer" else {"scope": scope}),
    }


def bind_answers(check: Mapping[str, Json], sessions: Sequence[HeldConversation]) -> BoundCheck:
    """A stored check that can be run on some sessions; raises `FileProblem`."""
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

"""Checks of a file to checks of a case: texts filled with a row, or kept until there is an answer.

A text that mentions the answer is filled when the answer is judged. Until then it is kept as
it is written, with the values of the row that it uses: both decide what is checked.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalstore.checks.judges import JUDGE
from evalstore.checks.reading import read_check, split
from evalstore.checks.registry import find_kind
from evalstore.errors import FileProblem
from evalstore.markdown import Section
from evalstore.template import compile_text
from evalstore.values import Json, Reply

if TYPE_CHECKING:
    from evalstore.checklist import CheckEntry, CheckList
    from evalstore.filling import Filler, Row
    from evalstore.template import Filled, Template

JUDGED_NAMES = frozenset({"sample", "answer", "answers"})
"""What a text in a check may mention that is known only when there is an answer."""
BLOCK = "block"
"""The type of several checks that need not all pass."""

Place = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class _Entry:
    entry: CheckEntry
    texts: Mapping[Place, Template]
    later: frozenset[str]
    """Names that have no value before there is an answer."""
    turns: Mapping[str, int]
    """Names of answers, and which answer of the conversation each is."""


class CheckTemplates:
    """The checks of a file with their texts compiled."""

    def __init__(self, checks: CheckList, filler: Filler, turns: Sequence[str]) -> None:
        """`turns` are the names of the answers of the conversation."""
        self._checks = checks
        self._fixed: dict[int, dict[str, Json]] = {}
        """Checks in which nothing is filled, by number: they are read once."""
        numbers = {name: number for number, name in enumerate(turns)}
        later = (JUDGED_NAMES | numbers.keys()) - filler.known.keys()
        self._entries = [
            _Entry(
                entry,
                {
                    place: filler.compile(Section(text, (entry.line,), entry.line), later)
                    for place, text in _texts(entry.given, ())
                },
                later,
                numbers,
            )
            for entry in checks.entries
        ]

    def fill(
        self,
        row: Row,
        schema_id: Callable[[str, int], str],
        prompt_ids: Callable[[str, int], Sequence[str]] = lambda id, _line: (id,),
    ) -> tuple[Json, ...]:
        """The checks for a row in canonical form; raises `FileProblem`.

        `schema_id` and `prompt_ids` find the versions of a schema and of an evaluator prompt
        that a check names on a line.
        """
        found = tuple(
            _name_prompts(
                self._fill(number, row, schema_id), self._entries[number].entry.line, prompt_ids
            )
            for number in range(len(self._entries))
        )
        if self._checks.rule == "all":
            return found
        return ({"type": BLOCK, "revision": 1, "pass": self._checks.rule, "checks": list(found)},)

    def _fill(self, number: int, row: Row, schema_id: Callable[[str, int], str]) -> dict[str, Json]:
        entry = self._entries[number]
        if entry.texts:
            return _fill(entry, row, schema_id)
        if number not in self._fixed:
            self._fixed[number] = _fill(entry, row, schema_id)
        return self._fixed[number]


def _name_prompts(
    check: dict[str, Json], line: int, prompt_ids: Callable[[str, int], Sequence[str]]
) -> dict[str, Json]:
    """The check with the versions of the prompt that it names, instead of its id."""
    if check["type"] != JUDGE or "prompt" not in check:
        return check
    named = {name: value for name, value in check.items() if name != "prompt"}
    return {**named, "prompts": list(prompt_ids(check["prompt"], line))}


def _fill(entry: _Entry, row: Row, schema_id: Callable[[str, int], str]) -> dict[str, Json]:
    given, line = copy.deepcopy(entry.entry.given), entry.entry.line
    later: list[Json] = []
    used: set[str] = set()
    asked: set[str] = set()
    for place, template in entry.texts.items():
        if entry.later.isdisjoint(template.names):
            given = _put(given, place, template.value(row.lookup, row.typed))
        else:
            later.append([list(place), _at(entry.entry.given, place)])
            used |= template.names.keys() - entry.later
            asked |= template.names.keys() & entry.later
    if not later:
        return read_check(given, line, lambda id: schema_id(id, line))
    name, _ = split(entry.entry.given, line)
    kind = find_kind(name)
    assert kind is not None
    if kind.by_models:
        raise FileProblem(
            f"the check '{name}' mentions the answer ('{min(asked)}')",
            line,
            hint="models are shown it by their prompt",
        )
    found = {
        "type": name,
        "revision": kind.revision,
        "given": given,
        "templates": later,
        "values": {one: row.typed(one) for one in sorted(used)},
        "turns": {one: entry.turns[one] for one in sorted(asked & entry.turns.keys())},
    }
    return {name: value for name, value in found.items() if value not in ({}, None)}


def settle(
    check: Mapping[str, Json], answers: Sequence[Reply], usd: float | None
) -> Mapping[str, Json]:
    """A check with what it says of the answers filled in; raises `FileProblem`."""
    if "templates" not in check:
        return check
    named = {name: answers[number].text or "" for name, number in check.get("turns", {}).items()}
    scope = {**describe_answers(answers, usd), **named, **check.get("values", {})}

    def lookup(name: str) -> Filled:
        value = scope[name]
        return [value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)]

    given = copy.deepcopy(check.get("given"))
    for place, source in check["templates"]:
        template = compile_text(source, scope, lambda _offset: 1)
        given = _put(given, tuple(place), template.value(lookup, scope.__getitem__))
    try:
        return read_check(given)
    except FileProblem as problem:
        raise FileProblem(f"filled with the answer, {problem.message}") from problem


def describe_answers(answers: Sequence[Reply], usd: float | None) -> dict[str, Any]:
    """What checks may mention of the answers of a conversation, above all of its last one.

    `output_json` is there only if that is JSON.
    """
    answer = answers[-1]
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
        "cost": usd,
    }
    with suppress(ValueError, RecursionError):
        sample["output_json"] = json.loads(text)
    return {"sample": sample, "answer": text, "answers": [one.text or "" for one in answers]}


def _texts(value: Json, place: Place) -> Iterator[tuple[Place, str]]:
    if isinstance(value, str):
        if "{{" in value or "{%" in value:
            yield place, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _texts(inner, (*place, name))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _texts(inner, (*place, number))


def _at(value: Json, place: Place) -> Json:
    for step in place:
        value = value[step]
    return value


def _put(value: Json, place: Place, inner: Json) -> Json:
    """The value with something else at a place."""
    if not place:
        return inner
    target = _at(value, place[:-1])
    target[place[-1]] = inner
    return value

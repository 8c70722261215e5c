"""The formats of a judge's reply: a verdict, a choice, or a score.

Each is one JSON object, which is the whole reply. Without a check `judge` it has `pass`. With one,
it has one of several choices, or a score; or it is an object of the prompt's own, in which a path
leads to the score.

A reply can contain text of the candidate, in any language and with any words around it. So a
verdict counts only when the reply is it: the whole reply is one object, with the keys that were
asked for and no other.

Some servers refuse a schema, some any structured output, and some accept a schema and do not
enforce it. The first request follows the declared capabilities of the model; a refusal is
remembered for the rest of a run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from evalstore.checks.base import reaches
from evalstore.checks.types.json import find_at_path
from evalstore.checks.types.judge import judge_of, scale_of
from evalstore.core.display import as_text, shorten, storable
from evalstore.core.errors import FileProblem, NotRunError
from evalstore.core.values import Evaluator, Json, OutgoingMessage, Reply, Request, Text, Verdict
from evalstore.files.fields import is_finite
from evalstore.files.processes.limited_calls import SECONDS, LimitReached, compiled
from evalstore.files.yaml12 import parse_json, unique_members
from evalstore.providers.base import ProviderError

READING = 2
"""The revision of how replies are read; a part of the id of each model that judges."""
_UNFINISHED = re.compile(
    "length|max_(output_)?tokens|model_length|content_filter|safety|recitation|refusal|error"
    "|incomplete|cancelled|abort",
    re.IGNORECASE,
)
"""Finish reasons of incomplete replies."""
_BLANKS = " \t\r\n\ufeff"
_FENCE = re.compile(r"(`{3,})(?:json\b)?(.*)\1", re.DOTALL | re.IGNORECASE)
_THINKING = re.compile(r"\s*<(think|thinking|thought|reasoning)>(.*?)</\1>", re.DOTALL)
_KEY = re.compile(r"`(\w+)`|([\"'])(\w+)\2\s*:")


class Unreadable(Exception):  # noqa: N818 - it is handled, never shown by itself
    """A judge's reply from which no verdict can be read.

    `is_structured` is false when the reply says something and is not the object that a server
    gives which holds its model to a schema.
    """

    def __init__(self, reason: str, *, is_structured: bool = True) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_structured = is_structured


def model_that_judges(model: str, prompt: str, temperature: float | None) -> Evaluator:
    """Return a model with an evaluator prompt, whose replies are read as this module reads them."""
    return Evaluator(model, prompt, temperature, reading=READING)


def finished_text(reply: Reply) -> str:
    """Return the text of a complete reply; raises `Unreadable` for a refused or incomplete one."""
    if reply.refusal:
        raise Unreadable(f"the judge refused: {storable(reply.refusal)}")
    if reply.is_cut:
        raise Unreadable("the judge's reply was cut off by the token limit")
    if match := _UNFINISHED.fullmatch(reply.finish_reason or ""):
        raise Unreadable(f"the judge's reply was cut off: its finish reason is '{match[0]}'")
    return reply.text or ""


def without_thinking(text: str) -> str:
    """Remove the block of thoughts that a text begins with, such as `<think>…</think>`.

    A block that seems to end twice is left in its place: one of the ends may be quoted.
    """
    block = _THINKING.match(text)
    if block is None or f"</{block[1]}>" in text[block.end() :]:
        return text
    return text[block.end() :]


def keys_in(parts: Iterable[object]) -> frozenset[str]:
    """Return the keys that texts ask for, as in `"score": …`; also words in backticks."""
    texts = (part.text for part in parts if isinstance(part, Text))
    return frozenset(match[1] or match[3] for text in texts for match in _KEY.finditer(text))


def read_object(text: str, keys: Collection[str], code: str | None = None) -> dict[str, Json]:
    """Return the object that is the whole text; raises `Unreadable`.

    Blanks and one block of code may stand around it; with a code, a finished block of thoughts
    before it. It has no keys but these and `code`, which it must have if there is one.
    """
    bare = (text if code is None else without_thinking(text)).strip(_BLANKS)
    fenced = _FENCE.fullmatch(bare)
    try:
        value = parse_json(fenced[2] if fenced else bare, object_pairs_hook=unique_members)
    except (FileProblem, ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        words = "the judge's reply is not one JSON object and nothing else"
        raise Unreadable(words, is_structured=not text.strip())
    if code is not None and str(value.pop("code", None)) != code:
        raise Unreadable("the judge's object does not have the code that was asked for")
    if unknown := [name for name in value if name != "code" and name not in keys]:
        words = f"the judge's object has {shorten(storable(unknown[0]))}, which was not asked for"
        raise Unreadable(words, is_structured=False)
    return value


Mode = Literal["schema", "json", "text"]
"""The schema of a reply, any JSON object, or plain text."""

_LOWER: dict[Mode, Mode] = {"schema": "json", "json": "text"}


class ReplyModes:
    """The mode of each model during one execution."""

    def __init__(self) -> None:
        self._learnt: dict[Hashable, Mode] = {}

    def mode(self, model: Hashable, *, structured: bool, strictest: Mode = "schema") -> Mode:
        """Choose the mode of the next request; `structured` is the model's declared capability."""
        first = "json" if strictest == "schema" and not structured else strictest
        return self._learnt.get(model, first)

    def step_down(self, model: Hashable, tried: Mode, error: ProviderError) -> bool:
        """Lower the mode after an error of a request in the mode `tried`; return whether to retry.

        Concurrent requests that fail in the same way lower it only once.
        """
        if error.kind != "format" or tried not in _LOWER:
            return False
        self._lower(model, tried)
        return True

    def distrust(self, model: Hashable, tried: Mode) -> None:
        """Lower the mode because a server accepted a schema and did not enforce it."""
        if tried == "schema":
            self._lower(model, tried)

    def _lower(self, model: Hashable, tried: Mode) -> None:
        if self._learnt.get(model, tried) == tried:
            self._learnt[model] = _LOWER[tried]


def in_mode(request: Request, mode: Mode, schema: Json) -> Request:
    """Return the request for a reply with this schema in this mode."""
    return replace(request, schema=schema if mode == "schema" else None, json_mode=mode == "json")


_REASONS = "reasoning"
_WHATEVER = "Whatever form of an answer is asked for above, this is the one that counts. "
_OBJECT = "Answer with one JSON object and nothing else"
_NAME = re.compile(r"\w+")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")


def form_of(
    checks: Iterable[Mapping[str, Json]],
    prompt: Iterable[object] = (),
    instructions: Iterable[object] = (),
) -> ReplyForm:
    """Return the format of replies for the checks of an evaluation version.

    `prompt` are the parts of the evaluator prompt, `instructions` those of the test.
    """
    check, asked = judge_of(checks), keys_in(prompt)
    if check is not None and "choices" in check:
        return Choices(check)
    if check is None or "parser" not in check:
        return Verdicts(asked)
    return (
        OwnObjects(check, asked | keys_in(instructions))
        if "json" in check["parser"]
        else Scores(check)
    )


def tell(messages: tuple[OutgoingMessage, ...], words: str) -> tuple[OutgoingMessage, ...]:
    """Append an instruction to the messages of a prompt."""
    if not words:
        return messages
    *before, last = messages
    return (*before, replace(last, parts=(*last.parts, Text("\n\n" + words))))


@dataclass(frozen=True, slots=True)
class Verdicts:
    """A JSON object with `pass`; `asked` are the keys that the prompt names."""

    asked: Collection[str] = ()
    strictest: Mode = "schema"

    @property
    def schema(self) -> Json:
        """Return the schema of a verdict."""
        named = {name: value for name, value in _IF_ASKED.items() if name in self.asked}
        return object_schema({**_ASKED, **named}, required=("pass", "feedback"))

    def words(self, code: str | None) -> str:
        """Return the request for the code in the verdict; empty without a code."""
        return ask_for_code(code) if code else ""

    def again(self, code: str | None) -> str:
        """Return the request for the object alone."""
        return AGAIN.replace("{", f'{{"code": "{code}", ', 1) if code else AGAIN

    def read(self, reply: Reply, code: str | None = None) -> JudgeReply:
        """Read the verdict that is a judge's whole reply; raises `Unreadable`.

        It must have `code`, if there is one, and no keys beside those of a verdict and `asked`. A
        score of 0 contradicts a pass, and one of 1 a fail.
        """
        verdict = read_object(finished_text(reply), {*_ASKED, *self.asked}, code)
        if "pass" not in verdict:
            raise Unreadable("the judge's object has no 'pass'", is_structured=False)
        passed = verdict["pass"]
        if not isinstance(passed, bool):
            raise Unreadable(f"the judge's 'pass' is {_shown(passed)}, not true or false")
        score = verdict.get("score")
        is_number = isinstance(score, int | float) and not isinstance(score, bool)
        if score is not None and not (is_number and 0 <= score <= 1):
            raise Unreadable(f"the judge's 'score' is {_shown(score)}, not a number from 0 to 1")
        if score == (0 if passed else 1):
            words = f"the judge's 'score' is {_shown(score)}, and its 'pass' is {_shown(passed)}"
            raise Unreadable(f"{words}: one contradicts the other")
        return JudgeReply(
            "pass" if passed else "fail",
            feedback=read_text(verdict, "feedback"),
            score=None if score is None else float(score),
            label=read_text(verdict, "label")[:LONGEST_LABEL] or None,
            reasoning=read_text(verdict, "reasoning"),
        )

    def give_up(self, reply: Reply, reason: str) -> JudgeReply:
        """Return an undecided result."""
        return undecided_reply(reply, reason)


@dataclass(frozen=True, slots=True)
class _ByCheck:
    """A format that a check `judge` configures."""

    check: Mapping[str, Json]
    strictest: Mode = field(default="schema", kw_only=True)

    @property
    def schema(self) -> Json:
        """Return the schema of an object with the fields, all of them required."""
        fields = self._fields()
        return object_schema({name: schema for name, (schema, _) in fields.items()}, fields)

    def words(self, code: str | None) -> str:
        """Return the request for an object with the fields, whatever the prompt asks for."""
        return _WHATEVER + self.again(code)

    def again(self, code: str | None) -> str:
        """Return the request for the object alone."""
        fields = {name: words for name, (_, words) in self._fields().items()}
        if code:
            fields = {"code": f'"{code}"', **fields}
        members = ", ".join(f'"{name}": {words}' for name, words in fields.items())
        return f"{_OBJECT}: {{{members}}}"

    def _fields(self) -> dict[str, tuple[Json, str]]:
        """Return the schema and the description of each member that the format has itself."""
        return {}

    def _result(self, label: str | None, score: float | None, reasoning: Json) -> JudgeReply:
        """Return the result with this label and score, converted to a share of its scale."""
        required = self.check.get("pass", ">= 1")
        if isinstance(required, list):
            passed = label in required
        else:
            passed = score is not None and reaches(score, required)
        reason = f"the judge chose {shorten(label)}" if label else ""
        if score is not None and not (label and isinstance(required, list)):
            reason += f" (score {score:.4g})" if reason else f"the judge gave the score {score:.4g}"
        aim = " or ".join(map(shorten, required)) if isinstance(required, list) else required
        return JudgeReply(
            "pass" if passed else "fail",
            feedback="" if passed else f"{reason}; required {aim}",
            score=None if score is None else self._share(score),
            label=label[:LONGEST_LABEL] if label else None,
            reasoning=storable_text(reasoning),
        )

    def _scored(self, value: Json, reasoning: Json) -> JudgeReply:
        """Return the result for the value that a judge gives; raises `Unreadable`."""
        if "scores" in self.check:
            label = as_text(value).strip()
            if label not in self.check["scores"]:
                raise Unreadable(f"the judge's {shorten(label)} has no score")
            return self._result(label, self.check["scores"][label], reasoning)
        low, high = scale_of(self.check)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not is_finite(value) or not low <= value <= high:
            raise Unreadable(f"the judge's score is {shorten(as_text(value))}, not {self._scale()}")
        return self._result(None, float(value), reasoning)

    def _scale(self) -> str:
        low, high = scale_of(self.check)
        return f"a number from {low:g} to {high:g}"

    def _share(self, score: float) -> float:
        low, high = scale_of(self.check)
        return min(max((score - low) / (high - low), 0.0), 1.0)

    def give_up(self, reply: Reply, reason: str) -> JudgeReply:
        """Return an undecided result; or a fail with the lowest score, if the check says so."""
        result = undecided_reply(reply, reason)
        if self.check.get("invalid") != "lowest":
            return result
        scores = self.check.get("scores", {}).values()
        unscored = None if "choices" in self.check else 0.0
        lowest = self._share(min(scores)) if scores else unscored
        return result._replace(verdict="fail", score=lowest)


@dataclass(frozen=True, slots=True)
class Choices(_ByCheck):
    """One of several choices, with the reasons before it, after it, or not at all."""

    def _fields(self) -> dict[str, tuple[Json, str]]:
        choices = self.check["choices"]
        listed = ", ".join(json.dumps(choice, ensure_ascii=False) for choice in choices)
        fields = {
            _REASONS: _reasons(),
            "choice": ({"enum": choices}, f"one of these choices: {listed}"),
        }
        answer = self.check.get("answer", "cot_classify")
        if answer == "classify":
            del fields[_REASONS]
        return fields if answer == "cot_classify" else dict(reversed(fields.items()))

    def read(self, reply: Reply, code: str | None = None) -> JudgeReply:
        """Read the choice that the judge has made; raises `Unreadable`."""
        value = read_object(finished_text(reply), self._fields(), code)
        named = as_text(value.get("choice")).strip()
        choice = next((each for each in self.check["choices"] if each.strip() == named), None)
        if choice is None:
            raise Unreadable(
                f"the judge's choice is {shorten(named)}, which is none of the choices"
            )
        score = self.check.get("scores", {}).get(choice)
        return self._result(choice, score, read_text(value, _REASONS))


@dataclass(frozen=True, slots=True)
class Scores(_ByCheck):
    """A score, or a label, that is all of a member or what a pattern captures in all of it."""

    def _fields(self) -> dict[str, tuple[Json, str]]:
        labels = [*self.check.get("scores", ())]
        low, high = scale_of(self.check)
        number = {"type": "number", "minimum": low, "maximum": high}
        listed = ", ".join(json.dumps(label, ensure_ascii=False) for label in labels)
        score = {"enum": labels} if labels else number
        words = f"one of {listed}" if labels else self._scale()
        return {_REASONS: _reasons(), "score": (score, words)}

    def again(self, code: str | None) -> str:
        """Return the request for the object, and which score of the prompt is meant."""
        meant = f'. "score" is what this pattern captures: {self.check["parser"]["regex"]}'
        return _ByCheck.again(self, code) + meant

    def read(self, reply: Reply, code: str | None = None) -> JudgeReply:
        """Read the score that the judge gives; raises `Unreadable`."""
        value = read_object(finished_text(reply), self._fields(), code)
        score = value.get("score")
        score = self._captured(score.strip()) if isinstance(score, str) else score
        return self._scored(score, read_text(value, _REASONS))

    def _captured(self, text: str) -> Json:
        """Return what the pattern captures in all of a text, as a number if it is one."""
        pattern = self.check["parser"]["regex"]
        try:
            match = compiled(pattern).fullmatch(text, timeout=SECONDS)
        except TimeoutError:
            raise Unreadable(f"the pattern {shorten(pattern)} timed out") from None
        captured = text if match is None or match[1] is None else match[1]
        is_number = "scores" not in self.check and _NUMBER.fullmatch(captured)
        return float(captured) if is_number else captured


@dataclass(frozen=True, slots=True)
class OwnObjects(_ByCheck):
    """A score at a path in an object that the prompt describes; `asked` are the keys it names."""

    asked: Collection[str] = ()
    strictest: Mode = field(default="json", kw_only=True)

    def words(self, code: str | None) -> str:
        """Return the request for the object, with the code."""
        return ask_for_code(code) if code else f"{_OBJECT}."

    def again(self, code: str | None) -> str:
        """Return the same request once more."""
        return self.words(code)

    def read(self, reply: Reply, code: str | None = None) -> JudgeReply:
        """Read the score at the path; raises `Unreadable`."""
        path = self.check["parser"]["json"]
        keys = {_REASONS, *self.asked, *_NAME.findall(path)}
        value = read_object(finished_text(reply), keys, code)
        try:
            found = find_at_path(path, value)
        except (LimitReached, NotRunError) as limit:
            raise Unreadable(f"the search for {shorten(path)} was stopped: {limit}") from None
        if found is None:
            raise Unreadable(f"the judge's object has nothing at {shorten(path)}")
        return self._scored(found, reply.text)


def _reasons() -> tuple[Json, str]:
    return {"type": "string"}, '"your reasons, step by step"'


ReplyForm = Verdicts | Choices | Scores | OwnObjects
"""A format of replies: the instructions for a judge, and the parser of its reply."""


_ASKED: Mapping[str, Json] = {
    "reasoning": {"type": "string", "description": "what leads to the verdict"},
    "pass": {"type": "boolean", "description": "whether the instructions are met"},
    "feedback": {"type": "string", "description": "what is wrong, or an empty text"},
}
"""The keys that are always asked for: first the reasoning, then the result."""
_IF_ASKED: Mapping[str, Json] = {
    "score": {"type": "number", "minimum": 0, "maximum": 1},
    "label": {"type": "string"},
}
"""The keys that are asked for by prompts that name them."""

_VERDICT = '"pass": true or false, "feedback": "if it fails, what is wrong; else an empty text"}'
AGAIN = "Answer with one JSON object and nothing else: {" + _VERDICT
"""The request after a reply without a verdict."""


def object_schema(properties: Mapping[str, Json], required: Iterable[str]) -> Json:
    """Return the JSON Schema of an object with these properties and no other."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def ask_for_code(code: str) -> str:
    """Return the instructions for a judge without structured output, after those of its prompt."""
    return (
        f'Answer with one JSON object and nothing else. Put "code": "{code}" into it; an object '
        "without this code does not count. Reasons belong inside of the object."
    )


_LONGEST = 20_000
"""The most characters of a judge's text that are stored."""
LONGEST_LABEL = 200


class JudgeReply(NamedTuple):
    """The parsed reply of a judge."""

    verdict: Verdict
    feedback: str = ""
    score: float | None = None
    label: str | None = None
    reasoning: str = ""


def read_text(members: Mapping[str, Json], name: str) -> str:
    """Return a text of an object, empty without one.

    Raises `Unreadable` for an object or a list, which could say the opposite of the verdict.
    """
    text = members.get(name)
    if isinstance(text, dict | list):
        raise Unreadable(f"the judge's '{name}' is {_shown(text)}, not a text", is_structured=False)
    return storable_text(text)


def _shown(value: Json) -> str:
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    return storable_text(json.dumps(value, ensure_ascii=False))[:40]


def storable_text(value: Json) -> str:
    """Return a text shortened so that it can be stored; empty for any other value."""
    return storable(value.strip()[:_LONGEST]) if isinstance(value, str) else ""


def undecided_reply(reply: Reply, reason: str) -> JudgeReply:
    """Return the result of an unreadable reply: undecided, with the reason and the text."""
    return JudgeReply("undecided", feedback=reason, reasoning=storable_text(reply.text))


def ask_again(request: Request, reply: Reply, reason: str, instruction: str = AGAIN) -> Request:
    """Return the request with the unreadable reply, the reason and the instruction appended."""
    wrong_reply = storable_text(reply.text) or storable_text(reply.refusal) or "(no text)"
    turns = (
        OutgoingMessage("assistant", (Text(wrong_reply),)),
        OutgoingMessage("user", (Text(f"That cannot be read: {reason}. {instruction}"),)),
    )
    return replace(request, messages=(*request.messages, *turns))

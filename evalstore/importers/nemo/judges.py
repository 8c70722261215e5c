"""NeMo's judges: a prompt, and parsers that find scores in the reply."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from evalstore.importers.judge_prompts import Grading, Message, PromptPiece, middle_of, split_prompt
from evalstore.importers.nemo import templates
from evalstore.importers.nemo.metrics import MetricNotTakenError
from evalstore.values import Json

_SCALE = re.compile(r"\b(\d{1,3})\s*(?:to|-|–|and)\s*(\d{1,3})\b")
_USUAL = (0.0, 10.0)
_OF_ANSWER = re.compile(r"\bsample(?:\.\w+)*")


@dataclass
class NemoJudge:
    """One score that a model gives."""

    name: str
    messages: list[Message]
    check: dict[str, Json]
    line: int | None
    warnings: list[str] = field(default_factory=list)

    def write(self, id: str) -> tuple[Grading, dict[str, Json]]:
        """The prompt, the instructions and the check of a test that this judges."""
        return split_prompt(id, self.messages), {"judge": {"prompt": id, **self.check}}


def read_judges(
    name: str, params: Mapping[str, Any], line: int | None, answer: str | None
) -> Iterator[NemoJudge]:
    """A judge for each score, or `MetricNotTakenError`. `answer` is the column of answers."""
    template = params.get("template", params.get("prompt_template"))
    given = template.get("messages") if isinstance(template, dict) else None
    if isinstance(template, str):
        given = [{"role": "user", "content": template}]
    if not isinstance(given, list) or not given or not all(map(_is_message, given)):
        raise MetricNotTakenError("its template has no messages that can be read")
    messages: list[Message] = [
        (one["role"], list(templates.pieces(one["content"], answer))) for one in given
    ]
    _require_answer([piece for _, pieces in messages for piece in pieces])
    text = "\n".join(one["content"] for one in given)
    scores = _scores(params)
    for score, settings in scores:
        title = name if len(scores) == 1 else f"{name}.{score}"
        check, warnings = _check(score, settings, text)
        yield NemoJudge(title, messages, check, line, warnings)


def _require_answer(pieces: list[PromptPiece]) -> None:
    """Raise unless the answer is shown, and shown as a whole."""
    for piece in pieces:
        if piece.is_template and (found := _OF_ANSWER.search(piece.text)):
            raise MetricNotTakenError(
                f"its template uses '{found[0]}': judges are shown the answer whole"
            )
    if not any(piece.runtime for piece in pieces):
        raise MetricNotTakenError(
            "its template never shows the answer ('{{ sample.output_text }}')"
        )


def _is_message(given: Any) -> bool:
    return (
        isinstance(given, dict)
        and given.get("role") in ("system", "user", "assistant")
        and isinstance(given.get("content"), str)
    )


def _scores(params: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    given = params.get("scores")
    if isinstance(given, dict):
        found = list(given.items())
    else:
        listed = given if isinstance(given, list) else []
        found = [(str(one.get("name")), one) for one in listed if isinstance(one, dict)]
    if not found or not all(isinstance(one, dict) for _, one in found):
        raise MetricNotTakenError("it has no 'scores'")
    return found


def _check(name: str, score: Mapping[str, Any], text: str) -> tuple[dict[str, Json], list[str]]:
    """How the reply is read and what passes; the bound is ours, as NeMo only gives scores."""
    parser = _parser(name, score)
    rubric = _rubric(score.get("rubric"))
    if rubric:
        low, high = min(rubric.values()), max(rubric.values())
        if low == high:
            raise MetricNotTakenError(f"the score '{name}' has a rubric with one value only")
        bound = middle_of(low, high)
        words = f"the score '{name}' has no bound: it passes here if it is {bound}"
        return {"parser": parser, "scores": rubric, "pass": bound}, [words]
    low, high, guessed = _scale(score, text)
    if low != 0:
        parser["min"] = low
    parser["max"] = high
    bound = middle_of(low, high)
    scale = f"{low:g} to {high:g}"
    words = f"the score '{name}' has no bound: it passes here if it is {bound}"
    if guessed:
        words += f"; its scale is taken to be {scale}"
    return {"parser": parser, "pass": bound}, [words]


def _parser(name: str, score: Mapping[str, Any]) -> dict[str, Json]:
    given = score.get("parser")
    if given is None and ("rubric" in score or "minimum" in score):
        return {"json": name}  # what newer jobs mean without one
    given = given if isinstance(given, dict) else {}
    if isinstance(given.get("json_path"), str):
        return {"json": given["json_path"].removeprefix("$.")}
    pattern = given.get("pattern")
    if not isinstance(pattern, str):
        raise MetricNotTakenError(f"the score '{name}' has no parser by regex or JSON")
    try:
        groups = re.compile(pattern).groups
    except re.error as error:
        raise MetricNotTakenError(f"the pattern of the score '{name}' is wrong: {error}") from None
    if not groups:
        raise MetricNotTakenError(f"the pattern of the score '{name}' has no group")
    return {"regex": pattern, "method": given.get("method") or "match"}


def _rubric(given: Any) -> dict[str, float]:
    if isinstance(given, list):
        given = {str(one.get("label")): one.get("value") for one in given if isinstance(one, dict)}
    if not isinstance(given, dict):
        return {}
    return {str(label): one for label, one in given.items() if isinstance(one, int | float)}


def _scale(score: Mapping[str, Any], text: str) -> tuple[float, float, bool]:
    """The lowest and the highest score, and whether that is only what the prompt suggests."""
    low, high = score.get("minimum", score.get("min")), score.get("maximum", score.get("max"))
    if isinstance(low, int | float) and isinstance(high, int | float) and low < high:
        return low, high, False
    found = [(int(a), int(b)) for a, b in _SCALE.findall(text) if int(a) < int(b)]
    low, high = found[0] if found else _USUAL
    return low, high, True

"""Import of NeMo's judges: a prompt, and parsers for the scores in the reply."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from evalstore.core.values import Json
from evalstore.exchange.importers.judge_prompts import (
    Grading,
    Message,
    PromptPiece,
    middle_of,
    split_prompt,
)
from evalstore.exchange.importers.nemo import templates
from evalstore.exchange.importers.nemo.metrics import MetricNotTakenError

_SCALE = re.compile(r"\b(\d{1,3})\s*(?:to|-|–|and)\s*(\d{1,3})\b")
_USUAL = (0.0, 10.0)
_OF_ANSWER = re.compile(r"\bsample(?:\.\w+)*")


@dataclass
class NemoJudge:
    """A judge for one score."""

    name: str
    messages: list[Message]
    check: dict[str, Json]
    line: int | None
    warnings: list[str] = field(default_factory=list)

    def write(self, id: str) -> tuple[Grading, dict[str, Json]]:
        """Return the split prompt and the check for a test; `id` is that of the prompt."""
        return split_prompt(id, self.messages), {"judge": {"prompt": id, **self.check}}


def read_judges(
    name: str, params: Mapping[str, Any], line: int | None, answer: str | None
) -> Iterator[NemoJudge]:
    """Yield a judge per score; raises `MetricNotTakenError`. `answer` is the answers' column."""
    template = params.get("template", params.get("prompt_template"))
    prompt_messages = template.get("messages") if isinstance(template, dict) else None
    if isinstance(template, str):
        prompt_messages = [{"role": "user", "content": template}]
    if (
        not isinstance(prompt_messages, list)
        or not prompt_messages
        or not all(map(is_message, prompt_messages))
    ):
        raise MetricNotTakenError("its template has no messages that can be read")
    messages: list[Message] = [
        (message["role"], list(templates.pieces(message["content"], answer)))
        for message in prompt_messages
    ]
    _require_answer([piece for _, pieces in messages for piece in pieces])
    text = "\n".join(message["content"] for message in prompt_messages)
    scores = _scores(params)
    for score, settings in scores:
        title = name if len(scores) == 1 else f"{name}.{score}"
        check, warnings = _check(score, settings, text)
        yield NemoJudge(title, messages, check, line, warnings)


def _require_answer(pieces: list[PromptPiece]) -> None:
    """Raise `MetricNotTakenError` unless the complete answer is shown."""
    for piece in pieces:
        if piece.is_template and (match := _OF_ANSWER.search(piece.text)):
            raise MetricNotTakenError(
                f"its template uses '{match[0]}': judges are shown the answer whole"
            )
    if not any(piece.runtime for piece in pieces):
        raise MetricNotTakenError(
            "its template never shows the answer ('{{ sample.output_text }}')"
        )


def is_message(message: Any) -> bool:
    """Return whether a value is a message of a conversation."""
    return (
        isinstance(message, dict)
        and message.get("role") in ("system", "user", "assistant")
        and isinstance(message.get("content"), str)
    )


def _scores(params: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    value = params.get("scores")
    if isinstance(value, dict):
        scores = list(value.items())
    else:
        entries = value if isinstance(value, list) else []
        scores = [(str(score.get("name")), score) for score in entries if isinstance(score, dict)]
    if not scores or not all(isinstance(score, dict) for _, score in scores):
        raise MetricNotTakenError("it has no 'scores'")
    return scores


def _check(name: str, score: Mapping[str, Any], text: str) -> tuple[dict[str, Json], list[str]]:
    """Return the fields of a judge check, and warnings.

    The pass bound is the middle of the scale, as NeMo's scores have none.
    """
    parser = _parser(name, score)
    rubric = _rubric(score.get("rubric"))
    if rubric:
        low, high = min(rubric.values()), max(rubric.values())
        if low == high:
            raise MetricNotTakenError(f"the score '{name}' has a rubric with one value only")
        bound = middle_of(low, high)
        warning = f"the score '{name}' has no bound: it passes here if it is {bound}"
        return {"parser": parser, "scores": rubric, "pass": bound}, [warning]
    low, high, guessed = _scale(score, text)
    if low != 0:
        parser["min"] = low
    parser["max"] = high
    bound = middle_of(low, high)
    scale = f"{low:g} to {high:g}"
    warning = f"the score '{name}' has no bound: it passes here if it is {bound}"
    if guessed:
        warning += f"; its scale is taken to be {scale}"
    return {"parser": parser, "pass": bound}, [warning]


def _parser(name: str, score: Mapping[str, Any]) -> dict[str, Json]:
    settings = score.get("parser")
    if settings is None and ("rubric" in score or "minimum" in score):
        return {"json": name}  # the default of newer jobs
    settings = settings if isinstance(settings, dict) else {}
    if isinstance(settings.get("json_path"), str):
        return {"json": settings["json_path"].removeprefix("$.")}
    pattern = settings.get("pattern")
    if not isinstance(pattern, str):
        raise MetricNotTakenError(f"the score '{name}' has no parser by regex or JSON")
    try:
        groups = re.compile(pattern).groups
    except re.error as error:
        raise MetricNotTakenError(f"the pattern of the score '{name}' is wrong: {error}") from None
    if not groups:
        raise MetricNotTakenError(f"the pattern of the score '{name}' has no group")
    return {"regex": pattern}


def _rubric(rubric: Any) -> dict[str, float]:
    if isinstance(rubric, list):
        rubric = {
            str(level.get("label")): level.get("value")
            for level in rubric
            if isinstance(level, dict)
        }
    if not isinstance(rubric, dict):
        return {}
    return {str(label): value for label, value in rubric.items() if isinstance(value, int | float)}


def _scale(score: Mapping[str, Any], text: str) -> tuple[float, float, bool]:
    """Return the lowest and highest score, and whether they were guessed from the prompt."""
    low, high = score.get("minimum", score.get("min")), score.get("maximum", score.get("max"))
    if isinstance(low, int | float) and isinstance(high, int | float) and low < high:
        return low, high, False
    ranges = [(int(a), int(b)) for a, b in _SCALE.findall(text) if int(a) < int(b)]
    low, high = ranges[0] if ranges else _USUAL
    return low, high, True

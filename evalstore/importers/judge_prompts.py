"""Judges' prompts of other systems, which mix the row, the answer and their own text.

Here the row reaches a judge through the instructions of the test. So the stretch of the
prompt that needs the row becomes the instructions, and all else an evaluator prompt that
shows them in its place: put together again, the judge reads what it read there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from evalstore.importers.template_writer import literal, write_prompt

if TYPE_CHECKING:
    from evalstore.values import Json

INSTRUCTIONS = "{{_evaluationInstructions}}"
ANSWER = "{{_actualResponse}}"
CONVERSATION = "{{_messages}}"
_BELOW = "(the response stands below)"


class PromptPiece(NamedTuple):
    """A part of a judge's prompt."""

    text: str
    is_template: bool = False
    """Whether it is filled with the row; else it is shown as it is."""
    runtime: str = ""
    """What stands here when an answer is judged, such as `ANSWER`; `text` is not used."""


Message = tuple[str, Sequence[PromptPiece]]
"""A role, and what it says."""


@dataclass(frozen=True, slots=True)
class Grading:
    """A judge's prompt as a test and an evaluator prompt hold it."""

    prompt: bytes
    instructions: str
    differs: bool
    """Whether the judge reads the same things in another order."""


def split_prompt(id: str, messages: Sequence[Message]) -> Grading:
    """The evaluator prompt, and the instructions that belong into the test."""
    messages = list(messages)
    filled = [any(piece.is_template for piece in pieces) for _, pieces in messages]
    differs = sum(filled) > 1
    if differs:  # the row can stand in one place only
        together = [piece for _, pieces in messages for piece in (*pieces, PromptPiece("\n\n"))][
            :-1
        ]
        messages, filled = [("user", together)], [True]
    turns: list[tuple[str, str]] = []
    instructions = ""
    for (role, pieces), needs_row in zip(messages, filled, strict=True):
        if not needs_row:
            turns.append((role, "".join(map(_prompt_text, pieces))))
            continue
        numbers = [number for number, piece in enumerate(pieces) if piece.is_template]
        start, end = numbers[0], numbers[-1] + 1
        middle = pieces[start:end]
        before, after = pieces[:start], pieces[end:]
        has_runtime = any(piece.runtime for piece in middle)
        differs = differs or has_runtime
        instructions = "".join(_instructions_text(piece) for piece in middle)
        text = "".join(map(_prompt_text, before)) + INSTRUCTIONS + "".join(map(_prompt_text, after))
        if has_runtime:
            text += "".join(f"\n\n{name}" for name in _runtime_names(middle) if name not in text)
        turns.append((role, text))
    if all(role == "system" for role, _ in turns):
        turns = [("user", text) for _, text in turns]
    front: dict[str, Json] = {"id": id, "tags": ["_evaluator"]}
    return Grading(write_prompt(front, turns), instructions, differs)


def _prompt_text(piece: PromptPiece) -> str:
    return piece.runtime or literal_part(piece.text)


def _instructions_text(piece: PromptPiece) -> str:
    if piece.runtime:
        return _BELOW if piece.runtime == ANSWER else "(it stands below)"
    return piece.text if piece.is_template else literal_part(piece.text)


def _runtime_names(pieces: Sequence[PromptPiece]) -> list[str]:
    return list(dict.fromkeys(piece.runtime for piece in pieces if piece.runtime))


def literal_part(text: str) -> str:
    """Text in the middle of a section: its blanks at the ends need no care."""
    inner = text.strip()
    if not inner:
        return text
    before, _, after = text.partition(inner)
    return before + literal(inner) + after


def middle_of(low: float, high: float) -> str:
    """A bound half way up a scale."""
    return f">= {(low + high) / 2:g}"

"""Conversion of other tools' judge prompts, which mix row values, the answer and fixed text.

In evalstore, row values reach a judge through the instructions of the test. So the part of the
prompt that uses the row becomes the instructions, and the rest becomes an evaluator prompt
that includes them at the same position. Combined, they give the original prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evalstore.core.values import Json
from evalstore.exchange.importers.template_writer import literal, write_prompt

INSTRUCTIONS = "{{_evaluationInstructions}}"
ANSWER = "{{_actualResponse}}"
CONVERSATION = "{{_messages}}"
_BELOW = "(the response stands below)"


class PromptPiece(NamedTuple):
    """A part of a judge's prompt."""

    text: str
    is_template: bool = False
    """Whether it is a template for the row's values; else it is literal text."""
    runtime: str = ""
    """The runtime placeholder, such as `ANSWER`; `text` is not used then."""


Message = tuple[str, Sequence[PromptPiece]]
"""A role and the pieces of its message."""


@dataclass(frozen=True, slots=True)
class Grading:
    """A judge's prompt, split into an evaluator prompt and the instructions of a test."""

    prompt: bytes
    instructions: str
    differs: bool
    """Whether the order of the parts differs from the original."""


def split_prompt(id: str, messages: Sequence[Message]) -> Grading:
    """Split a judge's prompt into an evaluator prompt and the instructions of a test."""
    messages = list(messages)
    filled = [any(piece.is_template for piece in pieces) for _, pieces in messages]
    differs = sum(filled) > 1
    if differs:  # only one part can use the row
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
            names = dict.fromkeys(piece.runtime for piece in middle if piece.runtime)
            text += "".join(f"\n\n{name}" for name in names if name not in text)
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


def literal_part(text: str) -> str:
    """Escape text in the middle of a section, keeping the white space at its ends."""
    inner = text.strip()
    if not inner:
        return text
    before, _, after = text.partition(inner)
    return before + literal(inner) + after


def middle_of(low: float, high: float) -> str:
    """Return the bound `>= x` for the middle of a scale."""
    return f">= {(low + high) / 2:g}"

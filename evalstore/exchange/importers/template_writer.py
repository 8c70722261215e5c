"""Writing of test files and prompt files, also of the prompts of judges.

Imported text is escaped so that it reads back
unchanged: text that would be structure or a template in a test file becomes an expression, such as
`{{ "---" }}`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from evalstore.core.values import Json
from evalstore.files.markdown_lines import SPACE, fences, scan_lines
from evalstore.files.yaml12 import write_yaml

MARKERS = {"system": "# ⚙️", "user": "# 👤", "assistant": "# 🤖"}

_TEMPLATE = re.compile(r"(?:\{[{%]*|<!--)+")
_BEGINNINGS = ("{{", "{%", "<!--")
_STRUCTURE = re.compile(r"^(---[ \t]*$| {0,3}#(?= [👤🤖⚙▶]))", re.MULTILINE)
_TICKED = re.compile(r"`(?=\{\{[^{}]*\}\}`)")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})", re.MULTILINE)
_CHECKS = re.compile(r"^( {0,3}(?:`{3,}|~{3,})[ \t]*)checks\b", re.MULTILINE)


def escape(text: str) -> str:
    """Return a template fragment that renders to this text, whatever follows it."""

    def part(match: re.Match[str]) -> str:
        is_harmless = not any(beginning in match[0] for beginning in _BEGINNINGS)
        return match[0] if is_harmless and match.end() < len(text) else quoted(match[0])

    return _TEMPLATE.sub(part, text)


def literal(text: str) -> str:
    """Escape a text so that it renders unchanged, except for white space at its ends."""
    return as_section(escape(text))


def as_section(template: str) -> str:
    """Escape the section markers in a template, and strip white space at its ends."""
    template = template.strip(SPACE)  # first: stripping may turn an indented line into a marker
    template = _STRUCTURE.sub(lambda match: quoted(match[0]), keep_ticks(template))
    template = _CHECKS.sub(lambda match: match[1] + quoted("checks"), template)
    if any(not fence.closed for fence in fences(scan_lines(template, 1))):
        template = _FENCE.sub(lambda match: quoted(match[0]), template)
    return template


def keep_ticks(template: str) -> str:
    """Escape backticks around placeholders, which would otherwise be removed."""
    return _TICKED.sub(lambda _match: quoted("`"), template)


def quoted(text: str) -> str:
    """Return an expression that evaluates to this text."""
    inner = json.dumps(text, ensure_ascii=False)
    for sequence, parts in (("}}", '}" ~ "}'), ("<!--", '<!" ~ "--')):
        inner = inner.replace(sequence, parts)
    return "{{ " + inner + " }}"


def write_test(
    front: dict[str, Json],
    turns: Iterable[tuple[str, str]] = (),
    *,
    body: str = "",
    instructions: str = "",
    checks: Json = None,
    comments: Iterable[str] = (),
) -> bytes:
    """Return a test file; `turns` are roles and templates, empty if `front` has messages.

    `body` stands in place of turns; `comments` are lines before the fields of `front`.
    """
    if isinstance(messages := front.get("messages"), list):
        escaped = [
            {**each, "content": each["content"] and keep_ticks(each["content"])}
            for each in messages
        ]
        front = {**front, "messages": escaped}
    notes = "".join(f"# {line}\n" for line in comments)
    parts = [f"---\n{notes}{write_yaml(front, compact=True)}\n---\n"] if front else []
    parts += [body or write_sections(turns), "---\n"]
    if instructions:
        parts.append(as_section(instructions) + "\n")
    if checks:
        parts.append(f"~~~checks\n{write_yaml(checks, compact=True)}\n~~~\n")
    return "\n".join(part for part in parts if part).encode()


def write_prompt(front: dict[str, Json], turns: Sequence[tuple[str, str]]) -> bytes:
    """Return a file with a system prompt or an evaluator prompt."""
    return f"---\n{write_yaml(front, compact=True)}\n---\n\n{write_sections(turns)}".encode()


def write_sections(turns: Iterable[tuple[str, str]]) -> str:
    """Return sections with their markers; a leading system text has no marker."""
    parts = []
    for number, (role, template) in enumerate(turns):
        text = as_section(template)
        marked = number > 0 or role != "system"
        parts.append(f"{MARKERS[role]}\n\n{text}\n" if marked else f"{text}\n")
    return "\n".join(parts)


def takes_turns(roles: Sequence[str]) -> bool:
    """Return whether user and assistant alternate, after at most one system message."""
    turns = roles[roles[0] == "system" :]
    return bool(turns) and all(
        role == ("user", "assistant")[number % 2] for number, role in enumerate(turns)
    )


def safe_file_name(name: str) -> str:
    """Return a safe file name; other characters become `-`."""
    return re.sub(r"[^\w.+-]+", "-", name).strip("-.")[:100] or "test"


def unique(name: str, taken: Iterable[str], sign: str = "-") -> str:
    """Return the name, with a number behind a sign if it is taken."""
    known = set(taken)
    number = 2
    candidate = name
    while candidate in known:
        candidate, number = f"{name}{sign}{number}", number + 1
    return candidate


_ENDS = {"{{": "}}", "{%": "%}", "{#": "#}"}


class Part(NamedTuple):
    """An expression, statement or comment of a template, with its offsets."""

    text: str
    start: int
    end: int


def find_parts(template: str, other: str = "<!--") -> Iterator[Part]:
    """Yield the expressions, statements and comments of a template, and matches of `other`.

    An unclosed part is text. One regular expression for all would take quadratic time on those.
    """
    unclosed: set[str] = set()
    at = 0
    while match := _beginning(other).search(template, at):
        start, mark = match.start(), match[0]
        end = match.end()
        if mark in _ENDS:
            closing = -1 if mark in unclosed else template.find(_ENDS[mark], end)
            if closing < 0:
                unclosed.add(mark)
                at = start + 1
                continue
            end = closing + 2
        yield Part(template[start:end], start, end)
        at = end


def replace_parts(template: str, replace: Callable[[str], str], other: str = "<!--") -> str:
    """Return the template with each part replaced."""
    pieces: list[str] = []
    at = 0
    for part in find_parts(template, other):
        pieces += [template[at : part.start], replace(part.text)]
        at = part.end
    return "".join([*pieces, template[at:]])


def expression_in(part: str) -> str | None:
    """Return the content of a lone `{{ … }}`; None if the text is anything else."""
    text = part.strip()
    if not (text.startswith("{{") and text.endswith("}}") and len(text) > 4):
        return None
    inner = text[2:-2]
    return None if "}}" in inner else inner.removeprefix("-").removesuffix("-").strip() or None


def without_filter(expression: str, name: re.Pattern[str]) -> str | None:
    """Return an expression without its last filter; None if that does not have this name."""
    value, bar, last = expression.rpartition("|")
    return value.strip() or None if bar and name.fullmatch(last.strip()) else None


@cache
def _beginning(other: str) -> re.Pattern[str]:
    return re.compile(rf"\{{\{{|\{{%|\{{#|{other}", re.DOTALL)


# --- prompts of judges of other tools, which mix values of the row, the answer and fixed text
#
# In evalstore, row values reach a judge through the instructions of the test. So the part of the
# prompt that uses the row becomes the instructions, and the rest becomes an evaluator prompt
# that includes them at the same position. Combined, they give the original prompt.


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


def split_prompt(id: str, messages: Sequence[Message]) -> tuple[bytes, str, bool]:
    """Split a judge's prompt into an evaluator prompt and the instructions of a test.

    The last value is whether the order of the parts differs from the original.
    """
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
    return write_prompt(front, turns), instructions, differs


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

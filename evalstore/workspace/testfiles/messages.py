"""Fills the turns of a conversation with a row, which gives the messages for the candidate."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalstore.core.display import as_text, shorten
from evalstore.core.errors import FileProblem
from evalstore.core.values import AnswerRef, FileRef, Json, Message, Part, SampleRef, Text, is_text
from evalstore.files.fields import suggest
from evalstore.files.markdown import SPACE, Section
from evalstore.files.templates import DeferredValue, Filled, Template
from evalstore.files.yaml12 import parse_json
from evalstore.workspace.testfiles.context import FillContext
from evalstore.workspace.testfiles.conversations import (
    LAST,
    MESSAGE_FIELDS,
    ROLES,
    RepeatedConversation,
    Turn,
)
from evalstore.workspace.testfiles.rendering import RowValues, TemplateSet, clean_path

ANSWERS = frozenset({"answer", "answers"})
"""The names of the last answer and of all answers, in addition to the names of turns."""
SAMPLE = "sample"
"""The name of the last answer with its metadata."""
_AS_JSON = re.compile(r"\|\s*tojson\b")
_ADDRESS = re.compile(r"https?://[^\s/]")


@dataclass(frozen=True, slots=True)
class AnswerNames:
    """The names of the answers of one conversation."""

    run: str | None
    turns: tuple[str | None, ...]
    """The names of its answers, in order; None: it has none."""


class ConversationTemplate:
    """One run of a file with its texts compiled."""

    def __init__(self, run: RepeatedConversation, filler: TemplateSet) -> None:
        self.run = run
        self._turns = [
            (turn, filler.compile(turn.section), _image(turn, filler)) for turn in run.turns
        ]
        self._template = filler.compile(run.template) if run.template else None
        self._shape = AnswerNames(run.name, run.turn_names)

    def fill(self, row: RowValues, project: FillContext) -> tuple[tuple[Message, ...], AnswerNames]:
        """Fill the messages for a row; returns also the answers' names, raises `FileProblem`."""
        if self._template is None:
            turns = self._turns
            shown = [
                _message(turn, template, image, row, project) for turn, template, image in turns
            ]
            return tuple(shown), self._shape
        assert self.run.template is not None
        messages = _evaluate_messages(self._template, self.run.template, row)
        filled = sum(1 for message in messages if message.filled)
        return messages, AnswerNames(self.run.name, (*[None] * filled, LAST))


def fill_turn(turn: Turn, template: Template, row: RowValues, project: FillContext) -> Message:
    """Fill one turn without an image with a row."""
    return _message(turn, template, None, row, project)


def _image(turn: Turn, filler: TemplateSet) -> Template | None:
    if turn.image is None:
        return None
    return filler.compile(Section(turn.image, (turn.section.first,), turn.section.first))


def _message(
    turn: Turn, template: Template, image: Template | None, row: RowValues, project: FillContext
) -> Message:
    if turn.name is not None:
        return Message(turn.role, (), filled=True)
    filled = template.fill(row.lookup, row.typed)
    parts = _as_parts(filled, project, {}, verbatim=turn.verbatim)
    if image is not None:
        path = "".join(str(piece) for piece in image.fill(row.lookup, row.typed))
        shown = project.keep_address(path) if _ADDRESS.match(path) else None
        parts = (*parts, shown or _file(path, turn.section.first, project))
    if turn.role != "user":
        _only_text(parts, turn)
    return Message(turn.role, parts, name=turn.speaker)


def _only_text(parts: tuple[Part, ...], turn: Turn) -> None:
    for part in parts:
        if isinstance(part, FileRef) and not is_text(part.media_type):
            raise FileProblem(
                f"'{part.path}' ({part.media_type}) can only be shown in a user message",
                turn.section.first,
                hint=f"in a message of the role '{turn.role}' only text files are allowed",
            )


def fill_instructions(
    template: Template,
    row: RowValues,
    project: FillContext,
    shapes: Sequence[AnswerNames],
    later: Collection[str],
) -> tuple[Part, ...]:
    """Fill instructions; the names of answers (`later`) become placeholders."""
    used = {name: line for name, line in template.names.items() if name in later}
    places = {name: find_answers(name, shapes) for name in used if name != SAMPLE}
    if SAMPLE in used:
        template = template.with_later(SAMPLE)

    def lookup(name: str) -> Filled:
        return [DeferredValue(name, used[name])] if name in used else row.lookup(name)

    def typed(name: str) -> Any:
        if name in used:
            raise FileProblem(
                f"'{name}' is known only when there is an answer",
                used[name],
                hint="in instructions write an expression with it, as in `{{ sample.output_text }}`"
                if name == SAMPLE
                else f"in instructions write `{{{{{name}}}}}` where it belongs",
            )
        return row.typed(name)

    return _as_parts(template.fill(lookup, typed), project, places)


def find_answers(name: str, shapes: Sequence[AnswerNames]) -> tuple[tuple[int, int], ...]:
    """Find the answers of a turn, or the last answers of a run, as session and number.

    `answer` is the last of all answers, `answers` are all.
    """
    every = [
        (number, turn)
        for number, answers in enumerate(shapes)
        for turn in range(len(answers.turns))
    ]
    if name in ANSWERS:
        return tuple(every if name == "answers" else every[-1:])
    places: list[tuple[int, int]] = []
    for number, shape in enumerate(shapes):
        if shape.run == name:
            places.append((number, len(shape.turns) - 1))
        places += [
            (number, turn) for turn, turn_name in enumerate(shape.turns) if turn_name == name
        ]
    return tuple(places)


def _as_parts(
    pieces: Filled,
    project: FillContext,
    answers: Mapping[str, tuple[tuple[int, int], ...]],
    *,
    verbatim: bool = False,
) -> tuple[Part, ...]:
    if len(pieces) == 1 and isinstance(pieces[0], str):
        text = pieces[0] if verbatim else pieces[0].strip(SPACE)
        return (Text(text),) if text else ()
    if pieces and isinstance(pieces[0], str) and not verbatim:
        pieces[0] = pieces[0].lstrip(SPACE)
    if pieces and isinstance(pieces[-1], str) and not verbatim:
        pieces[-1] = pieces[-1].rstrip(SPACE)
    parts: list[Part] = []
    for piece in pieces:
        if isinstance(piece, DeferredValue):
            places = answers.get(piece.path)
            parts.append(SampleRef(piece.path) if places is None else AnswerRef(places))
        elif not isinstance(piece, str):
            parts.append(_file(clean_path(piece), piece.line, project))
        elif piece:
            parts.append(Text(piece))
    return tuple(parts)


def _file(path: str, line: int, project: FillContext) -> FileRef:
    try:
        version, id = project.read_file(path)
    except FileProblem as problem:
        raise FileProblem(problem.message, line, hint=problem.hint) from problem
    return FileRef(path, version.media_type, id)


# --- messages from data -----------------------------------------------------------------


def _evaluate_messages(template: Template, section: Section, row: RowValues) -> tuple[Message, ...]:
    """Return the messages to which the field `messages` evaluates, when it is a template."""
    value = template.value(row.lookup, row.typed)
    if isinstance(value, str) and _AS_JSON.search(section.text):
        try:
            value = parse_json(value)
        except (ValueError, RecursionError) as error:
            raise FileProblem(
                f"'messages' does not evaluate to JSON: {error}", section.first
            ) from error
    try:
        return parse_messages(value)
    except FileProblem as problem:
        raise FileProblem(problem.message, section.first, hint=problem.hint) from problem


def parse_messages(value: Json) -> tuple[Message, ...]:
    """Read messages from data: a list of `{role, content}`, or the text of a user message.

    A last turn that the candidate fills is removed. Raises `FileProblem` without a line.
    """
    if isinstance(value, str):
        return (Message("user", (Text(value),) if value else ()),)
    if not isinstance(value, list) or not value:
        shown_value = shorten(as_text(value)) if value is not None else "null"
        raise FileProblem(
            f"'messages' must evaluate to a list of messages or to a text, not {shown_value}"
        )
    messages = tuple(
        _parse_message(message, number) for number, message in enumerate(value, start=1)
    )
    if messages[-1].filled:
        messages = messages[:-1]
    if not messages or messages[0].filled:
        raise FileProblem("'messages' has nothing in front of the turn that the candidate fills")
    if messages[-1].role == "assistant" and not messages[-1].filled:
        hint = "end it with a message of the role 'user'"
        raise FileProblem("'messages' ends with a fixed answer", hint=hint)
    return messages


def _parse_message(message: Any, number: int) -> Message:
    if not isinstance(message, dict):
        raise FileProblem(f"message {number} is not an object with 'role' and 'content'")
    unknown = [key for key in message if key not in MESSAGE_FIELDS]
    if unknown:
        hint = suggest(unknown[0], MESSAGE_FIELDS, "fields")
        raise FileProblem(f"message {number} has an unknown field '{unknown[0]}'", hint=hint)
    role = next(
        (known_role for known_role in ROLES if known_role == message.get("role", "user")), None
    )
    if role is None:
        hint = "a role is " + ", ".join(f"'{known_role}'" for known_role in ROLES)
        shown_role = shorten(as_text(message["role"])) if message["role"] is not None else "null"
        raise FileProblem(f"message {number} has an unknown role, {shown_role}", hint=hint)
    if message.get("image") is not None:
        raise FileProblem(f"message {number} has an image: data cannot mention files")
    content, name = message.get("content"), message.get("name")
    if content is None and role == "assistant" and "content" in message:
        return Message(role, (), filled=True)
    if name is not None and not isinstance(name, str):
        raise FileProblem(f"the 'name' of message {number} is not a text")
    text = _text(content)
    if text is None:
        raise FileProblem(f"the 'content' of message {number} is not a text")
    return Message(role, (Text(text),) if text else (), name=name or None)


def _text(content: Json) -> str | None:
    """Return the text of a content that is a text, or a list of parts that are texts."""
    if isinstance(content, list) and content:
        texts = [
            part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None
            for part in content
        ]
        strings = [text for text in texts if isinstance(text, str)]
        return "".join(strings) if len(strings) == len(texts) else None
    return content if isinstance(content, str) else None

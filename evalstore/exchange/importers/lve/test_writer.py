"""Writing of an LVE test as a test file with its data file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from evalstore.core.values import Json
from evalstore.exchange.importers.base import (
    MARKERS,
    OPTION_NAMES,
    NotTakenError,
    ShownMessage,
    as_section,
    escape,
    takes_turns,
    write_test,
)
from evalstore.exchange.importers.lve.checkers import LveJudging
from evalstore.exchange.importers.lve.definition import (
    LAST,
    LveRun,
    LveTest,
    LveTurn,
    Piece,
    fill,
    name_of_turn,
    parse,
    template,
    turn_names,
)
from evalstore.files.markdown_lines import SPACE

_FEW = 6
"""The maximum number of rows in the test file itself."""
_SHORT = 60
"""The maximum length of a value in the test file."""
_OPTIONS = {**OPTION_NAMES, "max_new_tokens": "maxOutputTokens"}

_DEFAULT_TEMPERATURE = 0
"""LVE's default temperature."""

Row = dict[str, "Json"]


@dataclass(frozen=True, slots=True)
class LveConversation:
    """One run of a test with its parsed texts."""

    run: LveRun
    label: str
    """The name of the run, unique in its test."""
    turns: tuple[tuple[LveTurn, list[Piece]], ...]
    images: tuple[list[Piece], ...]
    """The URL of each turn's picture; empty if it has none."""
    names: tuple[str, ...]
    """LVE's names of the answers."""

    def messages(self, values: Mapping[str, Json]) -> list[str | None]:
        """Return the filled texts; None for turns that the model fills."""
        return [None if turn.is_filled else fill(pieces, values) for turn, pieces in self.turns]

    def shown(self, values: Mapping[str, Json]) -> tuple[ShownMessage, ...]:
        """Return the messages in the form of recorded instances, without the last answer.

        Instances do not distinguish a turn with a variable from one that the model filled.
        """
        pictures = [fill(pieces, values) if pieces else None for pieces in self.images]
        texts = self.messages(values)
        messages = [
            ShownMessage(turn.role, None if turn.variable else text, picture)
            for (turn, _), text, picture in zip(self.turns, texts, pictures, strict=True)
        ]
        return tuple(messages[:-1] if messages[-1].text is None else messages)


def read_conversations(definition: LveTest) -> tuple[LveConversation, ...]:
    """Parse the runs of a test; raises `NotTakenError` if a test file cannot represent them."""
    conversations: list[LveConversation] = []
    for number, run in enumerate(definition.runs, 1):
        label = " ".join((run.name or "").split()) or f"run {number}"
        while any(conversation.label == label for conversation in conversations):
            label += f" {number}"
        turns = tuple((turn, _pieces(turn, definition.parameters)) for turn in run.turns)
        images = tuple(_image(turn, definition.parameters) for turn in run.turns)
        conversations.append(LveConversation(run, label, turns, images, turn_names(run.turns)))
    return tuple(conversations)


def repeated(conversations: tuple[LveConversation, ...]) -> list[LveConversation]:
    """Return the conversations with their repetitions."""
    return [each for each in conversations for _ in range(each.run.repetitions)]


def _pieces(turn: LveTurn, parameters: tuple[str, ...]) -> list[Piece]:
    """Return the pieces of a message; LVE does not format assistant messages."""
    if turn.content is None:
        return []
    return [turn.content] if turn.role == "assistant" else parse(turn.content, parameters)


def _image(turn: LveTurn, parameters: tuple[str, ...]) -> list[Piece]:
    if turn.image is None:
        return []
    if turn.role != "user":
        raise NotTakenError(f"a message of the role '{turn.role}' shows a picture")
    return parse(turn.image, parameters)


def write(
    definition: LveTest,
    conversations: tuple[LveConversation, ...],
    names: Mapping[str, str],
    rows: Sequence[Row],
    judging: LveJudging,
    *,
    folders: Sequence[str],
    more_tags: Sequence[str],
    options: Mapping[str, Json],
    data: str,
    comments: Sequence[str],
) -> tuple[bytes, bytes | None]:
    """Return the test file, and the rows if they are in a separate file, called `data`."""
    front: dict[str, Json] = (
        {"description": definition.description} if definition.description else {}
    )
    tags = [*folders, *(f"{name}-{value}" for name, value in definition.tags if name != "paper")]
    front["tags"] = list(dict.fromkeys([*tags, definition.model, *more_tags]))
    if options:
        front["options"] = dict(options)
    single = len(conversations) == 1
    if single and conversations[0].run.repetitions > 1:
        front["repetitions"] = conversations[0].run.repetitions
    placed, lines = _rows(rows, names, _used_parameters(conversations, judging, names))
    if lines is not None:
        front["dataset"] = data
    elif placed:
        front["replacements"] = placed
    if not _fits_body(conversations, rows):
        if not single:
            reason = "runs whose messages do not take turns, show pictures, or end with white space"
            raise NotTakenError(reason)
        front["messages"] = [
            _message(*turn, image, names)
            for turn, image in zip(conversations[0].turns, conversations[0].images, strict=True)
        ]
        body = ""
    else:
        body = "\n".join(_body(conversations, names))
    text = write_test(
        front,
        body=body,
        instructions=judging.instructions,
        checks=judging.checks,
        comments=comments,
    )
    return text, lines


def _fits_body(conversations: tuple[LveConversation, ...], rows: Sequence[Row]) -> bool:
    """Return whether sections can represent the messages: trimmed texts and alternating roles."""
    return all(
        takes_turns([turn.role for turn in conversation.run.turns])
        and not any(conversation.images)
        and all(
            text is None or text == text.strip(SPACE)
            for row in rows or [{}]
            for text in conversation.messages(row)
        )
        for conversation in conversations
    )


def _message(
    turn: LveTurn, pieces: list[Piece], image: list[Piece], names: Mapping[str, str]
) -> dict[str, Json]:
    if turn.is_filled:
        name = name_of_turn(turn.variable or LAST)
        variable = {} if name == LAST else {"variable": name}
        return {"role": turn.role, "content": None, **variable}
    picture = {"image": template(image, names)} if image else {}
    return {"role": turn.role, "content": _template(turn, pieces, names), **picture}


def _template(turn: LveTurn, pieces: list[Piece], names: Mapping[str, str]) -> str:
    """Return the text as a template; assistant messages are literal."""
    return escape(turn.content or "") if turn.role == "assistant" else template(pieces, names)


def _body(conversations: tuple[LveConversation, ...], names: Mapping[str, str]) -> list[str]:
    """Return the sections of all runs; shared turns come first."""
    single = len(conversations) == 1
    shared = 0 if single else _count_shared_turns(conversations)
    parts = [_section(*turn, names, conversations[0]) for turn in conversations[0].turns[:shared]]
    for conversation in conversations:
        if not single:
            times = f" ×{conversation.run.repetitions}" if conversation.run.repetitions > 1 else ""
            parts.append(f"# ▶ {conversation.label}{times}\n")
        parts += [_section(*turn, names, conversation) for turn in conversation.turns[shared:]]
    return [part for part in parts if part]


def _count_shared_turns(conversations: tuple[LveConversation, ...]) -> int:
    """Count the initial turns that all runs share; each run keeps at least one turn."""
    turns = zip(*(conversation.turns[:-1] for conversation in conversations), strict=False)
    alike = takewhile(
        lambda each: not each[0][0].is_filled and each.count(each[0]) == len(each), turns
    )
    return len(list(alike))


def _section(
    turn: LveTurn, pieces: list[Piece], names: Mapping[str, str], conversation: LveConversation
) -> str:
    marker = MARKERS[turn.role]
    if turn.is_filled:
        name = turn.variable or LAST
        return (
            ""
            if name == LAST and turn is conversation.turns[-1][0]
            else f"{marker} @{name_of_turn(name)}\n"
        )
    return f"{marker}\n\n{as_section(_template(turn, pieces, names))}\n"


def shown_parameters(conversations: tuple[LveConversation, ...]) -> frozenset[str]:
    """Return the parameters in the texts of conversations."""
    return frozenset(
        piece.name
        for conversation in conversations
        for pieces in (*(pieces for _, pieces in conversation.turns), *conversation.images)
        for piece in pieces
        if not isinstance(piece, str)
    )


def _used_parameters(
    conversations: tuple[LveConversation, ...], judging: LveJudging, names: Mapping[str, str]
) -> set[str]:
    """Return the parameters that a text or a check mentions."""
    checks = json.dumps(judging.checks)
    mentioned = {
        parameter
        for parameter, name in names.items()
        if "{{" + name + "}}" in checks or "{{ " + name + " ~" in checks
    }
    return {*shown_parameters(conversations), *mentioned}


def _rows(
    rows: Sequence[Row], names: Mapping[str, str], used: set[str]
) -> tuple[Json, bytes | None]:
    """Return few short rows as replacements, others as the lines of a data file."""
    if not names:
        return None, None
    renamed = [{names[parameter]: value for parameter, value in row.items()} for row in rows]
    if used == set(names) and _are_short(renamed):
        if len(names) == 1:
            (name,) = names.values()
            values = [row[name] for row in renamed]
            return {name: values[0] if len(values) == 1 else values}, None
        return (renamed[0] if len(renamed) == 1 else renamed), None
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in renamed)
    return None, lines.encode()


def _are_short(rows: list[Row]) -> bool:
    return len(rows) <= _FEW and all(
        isinstance(value, str)
        and bool(value)
        and len(value) <= _SHORT
        and value == value.strip()
        and not any(sign in value for sign in ("{{", "{%", "\n", "\t", "`"))
        for row in rows
        for value in row.values()
    )


def distinct_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the distinct rows in their order."""
    unused = {json.dumps(row, sort_keys=True): row for row in reversed(rows)}
    return [row for row in rows if unused.pop(json.dumps(row, sort_keys=True), None) is not None]


def common_options(
    definition: LveTest, recorded: Sequence[Mapping[str, Json]]
) -> tuple[dict[str, Json], list[str]]:
    """Return the options that all calls share, and a warning about those that differ.

    Arguments that only the checker uses are not options.
    """
    checker_only = set(definition.model_columns) - _OPTIONS.keys()
    calls = [
        model_arguments(
            definition.model_arguments,
            {name: value for name, value in call.items() if name not in checker_only},
        )
        for call in recorded or [{}]
    ]
    options: dict[str, Json] = {}
    differing: list[str] = []
    for name in dict.fromkeys(name for call in calls for name in call):
        value = calls[0].get(name)
        if any(call.get(name) != value for call in calls):
            differing.append(name)
        elif (known := _OPTIONS.get(name)) is not None:
            options[known] = value
        else:
            options.setdefault("providerOptions", {})[name] = value
    names = ", ".join(differing)
    return options, [f"the recorded calls differ in {names}; none of them is set"] * bool(names)


def model_arguments(default: Mapping[str, Json], own: Mapping[str, Json]) -> dict[str, Json]:
    """Merge a call's own arguments with the test's and the default temperature."""
    combined = {"temperature": _DEFAULT_TEMPERATURE, **default, **own}
    return {name: value for name, value in combined.items() if value is not None}

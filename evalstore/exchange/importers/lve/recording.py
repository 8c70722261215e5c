"""Import of the answers and verdicts of instances."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING

from evalstore.exchange.importers.base import Imported, JudgedAnswer, ShownMessage, SkippedItem
from evalstore.exchange.importers.errors import NotTakenError, check_picture
from evalstore.exchange.importers.lve.instances import (
    Instance,
    answers_of,
    model_arguments,
    split_arguments,
)
from evalstore.exchange.importers.lve.prompts import LAST

if TYPE_CHECKING:
    from pathlib import Path

    from evalstore.exchange.importers.lve.definition import LveTest
    from evalstore.exchange.importers.lve.test_writer import LveConversation, Row


@dataclass
class RecordedLine:
    """An instance with its file and its row."""

    instance: Instance
    path: Path
    row: Row = field(default_factory=dict)
    fits: bool = True
    """Whether the row fills the current test."""


def record(
    imported: Imported,
    definition: LveTest,
    conversations: tuple[LveConversation, ...],
    names: Mapping[str, str],
    lines: Sequence[RecordedLine],
    file: str,
) -> None:
    """Add the answers and verdicts of a test's instances, or the reasons why they are skipped."""
    for line in _distinct_lines(imported, lines):
        instance = line.instance
        try:
            older_messages = _older_messages(conversations, line)
            answers = answers_of(instance.response, _turn_names(conversations, older_messages))
        except NotTakenError as problem:
            imported.left.append(SkippedItem(str(line.path), problem.reason, instance.line))
            continue
        for run, turns in enumerate(answers):
            imported.recorded.append(
                JudgedAnswer(
                    file=file,
                    values={names[parameter]: value for parameter, value in line.row.items()},
                    model=definition.model,
                    answers=turns,
                    started=instance.started,
                    run=run,
                    verdict="pass" if instance.passed else "fail",
                    temperature=temperature_of(definition, line),
                    judge=definition.checker,
                    source=str(line.path),
                    line=instance.line,
                    messages=older_messages[run] if older_messages else None,
                )
            )


def matches_current_prompt(conversations: tuple[LveConversation, ...], line: RecordedLine) -> bool:
    """Return whether the messages of an instance, if recorded, equal those of the test."""
    recorded = line.instance.shown
    if recorded is None or not line.fits:
        return line.fits
    current = tuple(
        conversation.shown(line.row)
        for conversation in conversations
        for _ in range(conversation.run.repetitions)
    )
    if not line.instance.pictures_kept:
        current = tuple(
            tuple(message._replace(image=None) for message in messages) for messages in current
        )
    return recorded == current


def temperature_of(definition: LveTest, line: RecordedLine) -> float | None:
    """Return the temperature of an instance; None if it is not a finite number."""
    _, own = split_arguments(line.instance.arguments, definition.parameters)
    value = model_arguments(definition.model_arguments, own).get("temperature", "")
    try:
        temperature = float(value)
    except (TypeError, ValueError):
        return None
    return temperature if isfinite(temperature) else None


def _older_messages(
    conversations: tuple[LveConversation, ...], line: RecordedLine
) -> tuple[tuple[ShownMessage, ...], ...] | None:
    """Return the messages of an answer to an older prompt; None if the prompt is current."""
    older = line.instance.shown
    if older is None or matches_current_prompt(conversations, line):
        return None
    if not line.instance.pictures_kept and any(
        any(conversation.images) for conversation in conversations
    ):
        raise NotTakenError("it was recorded with other messages, and does not say which picture")
    for messages in older:
        if all(message.role == "system" for message in messages) or messages[0].text is None:
            raise NotTakenError("the messages that it was recorded with say nothing to the model")
        for address in (message.image for message in messages if message.image):
            check_picture(address)
    return older


def _turn_names(
    conversations: tuple[LveConversation, ...],
    older_messages: tuple[tuple[ShownMessage, ...], ...] | None,
) -> tuple[tuple[str, ...], ...]:
    """Return LVE's names of the answers of each conversation."""
    current = [
        conversation.names
        for conversation in conversations
        for _ in range(conversation.run.repetitions)
    ]
    if older_messages is None:
        return tuple(current)
    names = []
    for number, messages in enumerate(older_messages):
        count = 1 + sum(message.text is None for message in messages)
        known = current[number] if number < len(current) else ()
        if count == 1:
            names.append(known[-1:] or (LAST,))
        elif count == len(known):
            names.append(known)
        else:
            raise NotTakenError(
                f"it was recorded with {count} turns to be filled, the test has {len(known)}"
            )
    return tuple(names)


def _distinct_lines(imported: Imported, lines: Sequence[RecordedLine]) -> Iterator[RecordedLine]:
    """Yield each distinct line once, and warn about repeated lines."""
    seen: set[str] = set()
    repeated: dict[Path, list[int]] = {}
    for line in lines:
        if line.instance.text in seen:
            repeated.setdefault(line.path, []).append(line.instance.line)
            continue
        seen.add(line.instance.text)
        yield line
    for path, numbers in repeated.items():
        subject = f"{len(numbers):,} lines repeat" if len(numbers) > 1 else "this line repeats"
        reason = f"{subject} one before word for word: each answer is stored once"
        imported.warnings.append(SkippedItem(str(path), reason, numbers[0]))

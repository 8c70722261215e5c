"""Writing of recorded conversations as tests with their answers, one test for each model.

A row has the messages, the answer, and what else was recorded about it, which judges may use.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from evalstore.core.display import plural
from evalstore.core.errors import EvalstoreError
from evalstore.core.values import Json
from evalstore.exchange.importers.base import Imported, as_mapping, parse_json
from evalstore.exchange.importers.json_lines import JsonLinesRow, instructions_of, write_rows
from evalstore.exchange.importers.recorded_messages import (
    PictureShape,
    picture_shape,
    place_pictures,
    write_messages,
)
from evalstore.exchange.importers.template_writer import safe_file_name, write_test

_MOST_MODELS = 1_000
"""The maximum number of models, each of which makes a file."""


@dataclass(frozen=True, slots=True)
class RecordedConversation:
    """A conversation with the answer of a model to its last message."""

    id: str
    messages: list[dict[str, Json]]
    """Each has `role` and `content`; `image` is the URL of a picture."""
    answer: str
    model: str
    """Its name; empty if it was not recorded."""
    ideal: tuple[str, ...] = ()
    """Answers to compare with."""
    details: dict[str, Json] = field(default_factory=dict)
    """What else was recorded, such as `usage`; values that are None are left out."""

    def row(self, id: str) -> dict[str, Json]:
        """Return the row of a dataset."""
        details = {name: value for name, value in self.details.items() if value not in (None, {})}
        ideal = {"ideal": self.ideal[0] if len(self.ideal) == 1 else list(self.ideal)}
        row = {
            "id": id,
            "input": self.messages,
            "answer": self.answer,
            **(ideal if self.ideal else {}),
            "recorded": {"model": self.model, **details},
        }
        return as_mapping(encodable(row))

    def with_files(self, folder: str, imported: Imported) -> RecordedConversation:
        """Return this with names of files for pictures, which are added below a folder."""
        return replace(self, messages=place_pictures(self.messages, folder, imported.files))


def write_conversations(conversations: Iterable[RecordedConversation], imported: Imported) -> None:
    """Add a test with its dataset for each model; raises `EvalstoreError` for too many models.

    Conversations with pictures have tests of their own.
    """
    for name, (shape, group) in name_groups(conversations).items():
        ids = UniqueNames()
        rows = [
            JsonLinesRow(0, row.with_files("tests", imported).row(ids.take(row.id)))
            for row in group
        ]
        front: dict[str, Json] = {
            "dataset": f"{name}.jsonl",
            "rowId": "id",
            "messages": write_messages(shape, "input"),
            "answer": "{{ item.answer }}",
        }
        imported.files[f"tests/{name}.md"] = write_test(front, instructions=instructions_of(rows))
        imported.files[f"tests/{name}.jsonl"] = write_rows(rows)
        imported.rows += len(rows)


def name_groups(
    conversations: Iterable[RecordedConversation],
) -> dict[str, tuple[PictureShape, list[RecordedConversation]]]:
    """Group conversations by model and by the places of pictures, each with a unique name.

    A conversation that is recorded twice is taken once. Raises `EvalstoreError` if there are too
    many models.
    """
    models = _name_models(conversations)
    names = UniqueNames(models)
    groups: dict[str, tuple[PictureShape, list[RecordedConversation]]] = {}
    for model, group in models.items():
        shapes: dict[PictureShape, list[RecordedConversation]] = {}
        for conversation in group:
            shapes.setdefault(picture_shape(conversation.messages), []).append(conversation)
        for shape, alike in shapes.items():
            groups[names.take(f"{model}-pictures") if shape else model] = shape, alike
    return groups


def _name_models(
    conversations: Iterable[RecordedConversation],
) -> dict[str, list[RecordedConversation]]:
    by_model: dict[str, dict[str, RecordedConversation]] = {}
    for conversation in conversations:
        key = json.dumps([conversation.id, conversation.messages, conversation.answer])
        by_model.setdefault(conversation.model, {}).setdefault(key, conversation)
    if len(by_model) > _MOST_MODELS:
        raise EvalstoreError(
            f"the answers are those of {plural(len(by_model), 'model')}; "
            f"at most {_MOST_MODELS:,} are imported at once"
        )
    names = UniqueNames()
    return {
        names.take(model.replace("/", "-") or "unknown-model"): list(group.values())
        for model, group in by_model.items()
    }


class UniqueNames:
    """Makes names that are safe, and unique in any case of letters."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {name.lower() for name in taken}
        self._counts: Counter[str] = Counter()

    def take(self, text: str) -> str:
        """Return a name after a text, with a number if it is taken."""
        base = safe_file_name(text)
        name = base
        while name.lower() in self._taken:
            self._counts[base.lower()] += 1
            name = f"{base}-{self._counts[base.lower()] + 1}"
        self._taken.add(name.lower())
        return name


def encodable(value: Json) -> Json:
    """Return a value with '?' in place of halves of surrogate pairs, which no file can hold."""
    return parse_json(json.dumps(value, ensure_ascii=False).encode(errors="replace"))


def finite(value: Json) -> float | int | None:
    """Return a number; None for anything else."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and abs(value) < 1e18 else None


def token_counts(value: Json, names: Mapping[str, tuple[str, ...]]) -> dict[str, Json]:
    """Return counts of tokens; `names` maps each count to the names that tools have for it."""
    fields = value if isinstance(value, dict) else {}
    counts: dict[str, Json] = {}
    for name, others in names.items():
        values = [finite(fields.get(other)) for other in others]
        count = next((count for count in values if count is not None), None)
        if count is not None:
            counts[name] = count
    return counts

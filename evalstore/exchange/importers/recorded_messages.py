"""Messages and conversations that other tools recorded, as tests with their answers.

Calls of tools and their results have no role in a test: they are written into the texts. A row has
the messages, the answer, and what else was recorded about it, which judges may use.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from evalstore.core.display import plural, shorten
from evalstore.core.errors import EvalstoreError
from evalstore.core.values import Json
from evalstore.exchange.importers.base import (
    HALF_PAIR,
    Imported,
    NotTakenError,
    as_list,
    as_mapping,
    parse_json,
    require,
    safe_file_name,
    write_test,
)
from evalstore.exchange.importers.json_lines import JsonLinesRow, instructions_of, write_rows

_ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "tool": "user",
    "function": "user",
}
"""Maps the roles of other tools to those of a test."""
_HIDDEN = frozenset({"reasoning", "thinking", "redacted_thinking"})
"""Types of parts that no other participant is shown."""
_CALLS = ("tool_call", "tool_use", "server_tool_call")
"""Types of parts that are calls of tools."""


def read_conversation(
    messages: Iterable[Json], attachments: Mapping[str, Any] | None = None
) -> list[dict[str, Json]]:
    """Return the messages with roles of a test; raises `NotTakenError`.

    A message has its text in `content`, or in `parts`, which may be a list of typed parts. A
    picture is the `image` of its message; further ones are messages without a text. `attachments`
    are texts that other texts name as `attachment://KEY`.
    """
    shown = [
        shown_message
        for message in messages
        for shown_message in _read_message(as_mapping(message), attachments or {})
        if shown_message["content"] or "image" in shown_message
    ]
    if not any(message["role"] == "user" for message in shown):
        raise NotTakenError("the conversation has no user message")
    if shown[-1]["role"] == "assistant":
        raise NotTakenError("the conversation ends with an answer, so nothing was asked")
    return shown


def read_answer(message: Json, attachments: Mapping[str, Any] | None = None) -> str:
    """Return the text of an answer; raises `NotTakenError` if it has none, as a call of a tool."""
    fields = as_mapping(message)
    texts, calls, pictures = _read_parts(fields, attachments or {})
    require(not pictures, "the answer has a picture")
    if not calls and fields.get("parts", fields.get("content")) is None:
        raise NotTakenError("the answer has no text")
    require(not calls or "".join(texts).strip(), "the answer is a tool call without text")
    return _checked("\n\n".join(texts))


def _read_message(
    fields: dict[str, Any], attachments: Mapping[str, Any]
) -> Iterator[dict[str, Json]]:
    role = fields.get("role", "user")
    if not isinstance(role, str) or role not in _ROLES:
        raise NotTakenError(f"a message has the role {shorten(str(role))}")
    texts, calls, pictures = _read_parts(fields, attachments)
    if pictures and _ROLES[role] != "user":
        raise NotTakenError(f"a message of the role '{_ROLES[role]}' shows a picture")
    if role in ("tool", "function"):
        name = fields.get("function") or fields.get("name")
        of = f" of {name}" if isinstance(name, str) else ""
        texts = [text if text.startswith("[result") else f"[result{of}] {text}" for text in texts]
    message: dict[str, Json] = {
        "role": _ROLES[role],
        "content": _checked("\n\n".join([*texts, *calls])),
    }
    yield message | ({"image": pictures[0]} if pictures else {})
    for picture in pictures[1:]:
        yield message | {"content": "", "image": picture}


def _read_parts(
    fields: Mapping[str, Any], attachments: Mapping[str, Any]
) -> tuple[list[str], list[str], list[str]]:
    """Return the texts of a message, the calls of tools as texts, and the URLs of pictures."""
    content = fields.get("parts", fields.get("content"))
    parts = content if isinstance(content, list) else [content]
    texts: list[str] = []
    calls: list[str] = []
    pictures: list[str] = []
    for part in parts:
        if part is None:
            continue
        if isinstance(part, str):
            texts.append(_attached(part, attachments))
            continue
        part = as_mapping(part)
        kind = str(part.get("type", "text"))
        if kind in _HIDDEN:
            continue
        attached = {
            name: _attached(value, attachments) if isinstance(value, str) else value
            for name, value in part.items()
        }
        if kind in _CALLS:
            calls.append(_call(part.get("name"), part.get("arguments", part.get("input"))))
        elif kind in ("tool_call_response", "tool_result"):
            result = next(
                (part[name] for name in ("response", "result", "content") if name in part), None
            )
            texts.append(f"[result] {_as_text(result)}")
        elif picture := read_picture(attached):
            pictures.append(picture)
        elif isinstance(text := part.get("content", part.get("text")), str) and "text" in kind:
            texts.append(_attached(text, attachments))
        else:
            raise NotTakenError(f"a message has a part of the type {shorten(kind)}")
    for call in map(as_mapping, as_list(fields.get("tool_calls"))):
        function = call.get("function")
        called = function if isinstance(function, dict) else {"name": function, **call}
        calls.append(_call(called.get("name"), called.get("arguments")))
    return [text for text in texts if text], calls, pictures


def _call(name: Json, arguments: Json) -> str:
    return f"[calls {_as_text(name)}({'' if arguments is None else _as_text(arguments)})]"


def _as_text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _attached(text: str, attachments: Mapping[str, Any]) -> str:
    """Return the attachment that a text names, else the text."""
    key = text.removeprefix("attachment://")
    attachment = attachments.get(key) if key != text else None
    return attachment if isinstance(attachment, str) else text


def _checked(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NotTakenError(HALF_PAIR) from None
    return text


# --- pictures: addresses, or bytes that become files beside the test


_ADDRESS = re.compile(r"https?://[^\s/][^\s]*")
_DATA = re.compile(r"data:([\w/+.-]+);base64,", re.IGNORECASE)
_KINDS = frozenset({"image", "image_url", "input_image", "image-url"})
"""Types of parts that are pictures, of whatever tool."""
_SUFFIXES = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/jpg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
}

_FOLDER = "pictures"

PictureShape = tuple[tuple[str, bool], ...]
"""The role of each message, and whether it has a picture; empty without pictures."""


def read_picture(part: Mapping[str, Any]) -> str | None:
    """Return the URL of the picture that is a part of a message; None for other parts.

    Content that was recorded is a URL of the scheme `data`. Raises `NotTakenError` for a picture
    that is neither an address nor content of a known type.
    """
    kind = str(part.get("type"))
    if kind in ("uri", "blob", "binary"):
        media_type = str(part.get("mime_type") or part.get("media_type"))
        if part.get("modality") != "image" and not media_type.startswith("image/"):
            return None
        if kind == "uri":
            return _checked_picture(part.get("uri"))
        return _checked_picture(f"data:{media_type};base64,{part.get('content')}")
    if kind not in _KINDS:
        return None
    source = as_mapping(part.get("source"))
    if source.get("type") == "base64":
        return _checked_picture(f"data:{source.get('media_type')};base64,{source.get('data')}")
    given = source.get("url") or part.get("image_url") or part.get("image") or part.get("url")
    return _checked_picture(given.get("url") if isinstance(given, dict) else given)


def write_messages(shape: PictureShape, column: str) -> Json:
    """Return the field `messages` of a test whose conversations are in this column."""
    if not shape:
        return f"{{{{ item.{column} }}}}"
    return [
        {
            "role": role,
            "content": f"{{{{ item.{column}[{number}].content }}}}",
            **({"image": f"{{{{ item.{column}[{number}].image }}}}"} if has_picture else {}),
        }
        for number, (role, has_picture) in enumerate(shape)
    ]


def place_pictures(
    messages: Iterable[Mapping[str, Json]], folder: str, files: dict[str, bytes]
) -> list[dict[str, Json]]:
    """Return messages whose pictures are addresses and paths from `folder`; files are added."""
    placed = []
    for message in messages:
        if picture := _picture_file(str(message.get("image"))):
            message = {**message, "image": f"{_FOLDER}/{picture[0]}"}
            files[f"{folder}/{message['image']}"] = picture[1]
        placed.append(dict(message))
    return placed


def _picture_file(url: str) -> tuple[str, bytes] | None:
    """Return the name of a file for a URL of the scheme `data`, and its content; else None."""
    match = _DATA.match(url)
    if match is None:
        return None
    suffix = _SUFFIXES.get(match[1].lower())
    require(suffix is not None, "a picture has no media type, or one that is not supported")
    try:
        data = b64decode(url[match.end() :], validate=True)
    except ValueError:
        data = b""
    require(data, "the content of a picture was cut off, or not recorded")
    return f"{sha256(data).hexdigest()[:16]}.{suffix}", data


def _checked_picture(url: Json) -> str:
    if isinstance(url, str) and (_ADDRESS.fullmatch(url) or _picture_file(url)):
        return url
    raise NotTakenError("a picture is a file that the source does not contain")


# --- conversations as tests with their answers, one test for each model


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

    def row(self, id: str, folder: str, imported: Imported) -> dict[str, Json]:
        """Return the row of a dataset; the files of pictures are added below a folder."""
        details = {name: value for name, value in self.details.items() if value not in (None, {})}
        ideal = {"ideal": self.ideal[0] if len(self.ideal) == 1 else list(self.ideal)}
        row = {
            "id": id,
            "input": place_pictures(self.messages, folder, imported.files),
            "answer": self.answer,
            **(ideal if self.ideal else {}),
            "recorded": {"model": self.model, **details},
        }
        return as_mapping(encodable(row))


def write_conversations(conversations: Iterable[RecordedConversation], imported: Imported) -> None:
    """Add a test with its dataset for each model; raises `EvalstoreError` for too many models.

    Conversations with pictures have tests of their own.
    """
    for name, (shape, group) in name_groups(conversations).items():
        ids = UniqueNames()
        rows = [JsonLinesRow(0, each.row(ids.take(each.id), "tests", imported)) for each in group]
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
    models = {
        names.take(model.replace("/", "-") or "unknown-model"): group
        for model, group in by_model.items()
    }
    groups: dict[str, tuple[PictureShape, list[RecordedConversation]]] = {}
    for model, group in models.items():
        shapes: dict[PictureShape, list[RecordedConversation]] = {}
        for conversation in group.values():
            pairs = ((str(it["role"]), "image" in it) for it in conversation.messages)
            shape = tuple(pairs) if any("image" in it for it in conversation.messages) else ()
            shapes.setdefault(shape, []).append(conversation)
        for shape, alike in shapes.items():
            groups[names.take(f"{model}-pictures") if shape else model] = shape, alike
    return groups


class UniqueNames:
    """Makes names that are safe, and unique in any case of letters."""

    def __init__(self) -> None:
        self._taken = set[str]()
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

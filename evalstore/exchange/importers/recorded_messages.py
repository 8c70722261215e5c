"""Messages that other tools recorded, as texts of the roles of a test.

Calls of tools and their results have no role here: they are written into the texts.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from evalstore.core.display import shorten
from evalstore.core.values import Json
from evalstore.exchange.importers.base import NotTakenError, as_list, as_mapping

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


TOOLS_AS_TEXT = "tool calls and their results are shown as text"


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
    if pictures:
        raise NotTakenError("the answer has a picture")
    if not calls and fields.get("parts", fields.get("content")) is None:
        raise NotTakenError("the answer has no text")
    if calls and not "".join(texts).strip():
        raise NotTakenError("the answer is a tool call without text")
    return _checked("\n\n".join(texts))


def shows_tools(messages: Iterable[Json]) -> bool:
    """Return whether a conversation has calls of tools or their results."""
    return any(
        fields.get("role") in ("tool", "function") or _calls_tools(fields)
        for fields in map(as_mapping, messages)
    )


def _calls_tools(fields: dict[str, Any]) -> bool:
    content = fields.get("parts", fields.get("content"))
    kinds = [as_mapping(part).get("type") for part in as_list(content)]
    return bool(as_list(fields.get("tool_calls"))) or any(kind in _CALLS for kind in kinds)


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


class _Parts(NamedTuple):
    """What a message consists of."""

    texts: list[str]
    calls: list[str]
    """Calls of tools, as texts."""
    pictures: list[str]
    """URLs."""


def _read_parts(fields: Mapping[str, Any], attachments: Mapping[str, Any]) -> _Parts:
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
    return _Parts([text for text in texts if text], calls, pictures)


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
        raise NotTakenError("a text has half of a surrogate pair") from None
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


class PictureFile(NamedTuple):
    """The name and the bytes of a picture that was recorded with its message."""

    name: str
    data: bytes


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


def picture_shape(messages: Iterable[Mapping[str, Json]]) -> PictureShape:
    """Return which messages have a picture in `image`; empty if none has."""
    shape = tuple((str(message["role"]), "image" in message) for message in messages)
    return shape if any(has_picture for _, has_picture in shape) else ()


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
        picture = _picture_file(str(message.get("image")))
        image = f"{_FOLDER}/{picture.name}" if picture else None
        if picture:
            files[f"{folder}/{image}"] = picture.data
        placed.append({**message, **({"image": image} if image else {})})
    return placed


def _picture_file(url: str) -> PictureFile | None:
    """Return the content of a URL of the scheme `data` as a file; None for an address."""
    match = _DATA.match(url)
    if match is None:
        return None
    suffix = _SUFFIXES.get(match[1].lower())
    if suffix is None:
        raise NotTakenError("a picture has no media type, or one that is not supported")
    try:
        data = b64decode(url[match.end() :], validate=True)
    except ValueError:
        data = b""
    if not data:
        raise NotTakenError("the content of a picture was cut off, or not recorded")
    return PictureFile(f"{sha256(data).hexdigest()[:16]}.{suffix}", data)


def _checked_picture(url: Json) -> str:
    if isinstance(url, str) and (_ADDRESS.fullmatch(url) or _picture_file(url)):
        return url
    raise NotTakenError("a picture is a file that the source does not contain")

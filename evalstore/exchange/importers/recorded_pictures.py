"""Pictures in recorded messages: addresses, or bytes that become files beside the test.

Other tools write them as parts of messages, each in a way of its own. Data cannot mention files, so
a test with pictures has its messages as a list, which names the places of the pictures.
"""

from __future__ import annotations

import re
from base64 import b64decode
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from evalstore.exchange.importers.coerce import as_mapping
from evalstore.exchange.importers.errors import UnusableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evalstore.core.values import Json

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

    Content that was recorded is a URL of the scheme `data`. Raises `UnusableError` for a picture
    that is neither an address nor content of a known type.
    """
    kind = str(part.get("type"))
    if kind in ("uri", "blob", "binary"):
        media_type = str(part.get("mime_type") or part.get("media_type"))
        if part.get("modality") != "image" and not media_type.startswith("image/"):
            return None
        if kind == "uri":
            return _checked(part.get("uri"))
        return _checked(f"data:{media_type};base64,{part.get('content')}")
    if kind not in _KINDS:
        return None
    source = as_mapping(part.get("source"))
    if source.get("type") == "base64":
        return _checked(f"data:{source.get('media_type')};base64,{source.get('data')}")
    given = source.get("url") or part.get("image_url") or part.get("image") or part.get("url")
    return _checked(given.get("url") if isinstance(given, dict) else given)


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
    return _decode(match, url) if match else None


def _checked(url: Json) -> str:
    if isinstance(url, str) and _ADDRESS.fullmatch(url):
        return url
    if isinstance(url, str) and _picture_file(url):
        return url
    raise UnusableError("a picture is a file that the source does not contain")


def _decode(match: re.Match[str], url: str) -> PictureFile:
    suffix = _SUFFIXES.get(match[1].lower())
    if suffix is None:
        raise UnusableError("a picture has no media type, or one that is not supported")
    try:
        data = b64decode(url[match.end() :], validate=True)
    except ValueError:
        data = b""
    if not data:
        raise UnusableError("the content of a picture was cut off, or not recorded")
    return PictureFile(f"{sha256(data).hexdigest()[:16]}.{suffix}", data)

"""The images and the text files in the messages of a conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.core.values import FileRef
from evalstore.planning.open_project import open_store

_TEXTS = ("json", "xml", "yaml", "toml", "csv", "javascript")
"""Ends of the media types of texts that do not begin with `text/`."""

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalstore.core.values import Message
    from evalstore.planning.options import Location


def images_of(message: Message) -> tuple[FileRef, ...]:
    """Return the images in a message, in their order."""
    files = (part for part in message.parts if isinstance(part, FileRef))
    return tuple(file for file in files if file.media_type.startswith("image/"))


def text_files_of(message: Message) -> tuple[FileRef, ...]:
    """Return the files in a message that are texts, in their order."""
    files = (part for part in message.parts if isinstance(part, FileRef))
    return tuple(file for file in files if _is_text(file.media_type))


def _is_text(media_type: str) -> bool:
    kind, _, name = media_type.partition("/")
    return kind == "text" or (kind == "application" and name.endswith(_TEXTS))


def read_files(location: Location, ids: Sequence[str]) -> dict[str, bytes]:
    """Return the bytes of these files by id; raises `EvalstoreError` when one is not stored."""
    with open_store(location) as store:
        return {id: file.data for id, file in store.load_files(ids).items()}

"""The images in the messages of a conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.planning.open_project import open_store
from evalstore.values import FileRef

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalstore.planning.options import Location
    from evalstore.values import Message


def images_of(message: Message) -> tuple[FileRef, ...]:
    """Return the images in a message, in their order."""
    files = (part for part in message.parts if isinstance(part, FileRef))
    return tuple(file for file in files if file.media_type.startswith("image/"))


def read_images(location: Location, ids: Sequence[str]) -> dict[str, bytes]:
    """Return the bytes of images by id; raises `EvalstoreError` when one is not stored."""
    with open_store(location) as store:
        return {id: file.data for id, file in store.load_files(ids).items()}

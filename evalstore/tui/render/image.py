"""Images as lines of text: two pixels in each character, an upper and a lower half of it."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from evalstore.errors import EvalstoreError
from evalstore.operations.views.styled_text import StyledLine, StyledSpan

if TYPE_CHECKING:
    from PIL.Image import Image

    from evalstore.operations.views.answer import AnswerView

_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP")
"""No other decoder is tried."""
_MOST_BYTES, _MOST_PIXELS = 20_000_000, 40_000_000
"""The largest file and picture that are decoded."""
_MOST_IMAGES = 4
"""How many images of a conversation are shown."""
_WIDTH, _HEIGHT = 60, 20
"""Columns and rows of the lines at most."""
IMAGE_WIDTH = _WIDTH + 5
"""The columns of a widget that shows images without wrapping them."""


def is_available() -> bool:
    """Return whether images can be decoded: the extra `images` is installed."""
    from importlib.util import find_spec

    return find_spec("PIL") is not None


def read_images(
    view: AnswerView, read: Callable[[Sequence[str]], Mapping[str, bytes]]
) -> dict[str, list[StyledLine]]:
    """Return the lines of the first images of a conversation by id; none that cannot be shown."""
    ids = list(dict.fromkeys(id for turn in view.said for id in turn.images))[:_MOST_IMAGES]
    if not ids or not is_available():
        return {}
    try:
        images = read(ids)
    except EvalstoreError:  # it is named all the same
        return {}
    return {id: image_lines(data) for id, data in images.items()}


def image_lines(data: bytes) -> list[StyledLine]:
    """Return the lines of an image; none when it is too large, damaged or of an unknown format."""
    image = _decoded(data)
    if image is None:
        return []
    width, height = image.size
    pixels = image.tobytes()

    def colour(x: int, y: int) -> str:
        place = 3 * (y * width + x)
        return f"#{pixels[place : place + 3].hex()}"

    lines: list[StyledLine] = []
    for y in range(0, height - 1, 2):
        spans: list[StyledSpan] = []
        for x in range(width):
            colours = f"{colour(x, y)} on {colour(x, y + 1)}"
            if spans and spans[-1].colour == colours:
                spans[-1] = StyledSpan(f"{spans[-1].text}▀", colours)
            else:
                spans.append(StyledSpan("▀", colours))
        lines.append(StyledLine(tuple(spans)))
    return lines


def _decoded(data: bytes) -> Image | None:
    """Return the image in few pixels, on white where it is transparent."""
    from PIL import Image

    if len(data) > _MOST_BYTES:
        return None
    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
            if image.width * image.height > _MOST_PIXELS:
                return None
            # Fewer colours than needed is better than memory: JPEG is decoded smaller at once.
            image.draft("RGB", (2 * _WIDTH, 4 * _HEIGHT))
            image.thumbnail((_WIDTH, 2 * _HEIGHT))
            whole = image.convert("RGBA")
    except Exception:  # noqa: BLE001 - decoders raise anything for bytes that somebody has made up
        return None
    ground = Image.new("RGB", (whole.width, whole.height + whole.height % 2), "white")
    ground.paste(whole, (0, 0), whole)
    return ground

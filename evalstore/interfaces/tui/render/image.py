"""Images as lines of text: two pixels in each character, an upper and a lower half of it."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from evalstore.core.display import StyledLine, StyledSpan
from evalstore.core.errors import EvalstoreError, NotRunError

if TYPE_CHECKING:
    from evalstore.results.answer.answer import AnswerView

_DECODER = "evalstore.interfaces.tui.render.image_decoder"
_MOST_BYTES = 20_000_000
"""The largest file that is decoded."""
_MOST_IMAGES = 4
"""How many images of a conversation are shown."""
_WIDTH, _HEIGHT = 60, 20
"""Columns and rows of the lines at most."""
IMAGE_WIDTH = _WIDTH + 5
"""The columns of a widget that shows images without wrapping them."""


def render_images(
    view: AnswerView, read: Callable[[Sequence[str]], Mapping[str, bytes]]
) -> dict[str, list[StyledLine]]:
    """Read the first images of a conversation as lines by id; none that cannot be shown."""
    listed = (image.id for turn in view.conversation for image in turn.images)
    ids = list(dict.fromkeys(listed))[:_MOST_IMAGES]
    if not ids or find_spec("PIL") is None:  # the extra `images` is not installed
        return {}
    try:
        images = read(ids)
    except EvalstoreError:  # it is named all the same
        return {}
    return {id: image_lines(data) for id, data in images.items()}


def image_lines(data: bytes) -> list[StyledLine]:
    """Return the lines of an image; none when it is too large or slow, damaged or unknown."""
    decoded = _decoded(data)
    if decoded is None:
        return []
    width, height, colours_in_hex = decoded

    def colour(x: int, y: int) -> str:
        place = 6 * (y * width + x)
        return f"#{colours_in_hex[place : place + 6]}"

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


def _decoded(data: bytes) -> tuple[int, int, str] | None:
    """Decode an image to its columns, rows and colours; a slow decoder is ended."""
    from evalstore.files.processes.limited_calls import LimitReached, call

    if len(data) > _MOST_BYTES:
        return None
    try:
        decoded = call(_DECODER, "decode", base64.b64encode(data).decode(), _WIDTH, 2 * _HEIGHT)
    except (LimitReached, NotRunError):
        return None
    return tuple(decoded) if decoded else None

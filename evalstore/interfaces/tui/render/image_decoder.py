"""Decodes images; it is called in a process with limits, because decoders can take any time."""

from __future__ import annotations

import base64
import io

FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP")
"""No other decoder is tried."""
MOST_PIXELS = 40_000_000
"""The largest picture that is decoded."""


def decode(data: str, width: int, height: int) -> tuple[int, int, str] | None:
    """Decode an image made small enough: its columns, its rows and its colours (RGB as hex).

    `data` is the file in base64. The number of rows is even, and the picture is on white where it
    is transparent. None when the image is too large, damaged or of an unknown format.
    """
    from PIL import Image

    try:
        with Image.open(io.BytesIO(base64.b64decode(data)), formats=FORMATS) as image:
            if image.width * image.height > MOST_PIXELS:
                return None
            # Fewer colours than needed is better than memory: JPEG is decoded smaller at once.
            image.draft("RGB", (2 * width, 2 * height))
            image.thumbnail((width, height))
            whole = image.convert("RGBA")
    except Exception:  # noqa: BLE001 - decoders raise anything for bytes that somebody has made up
        return None
    ground = Image.new("RGB", (whole.width, whole.height + whole.height % 2), "white")
    ground.paste(whole, (0, 0), whole)
    return ground.width, ground.height, ground.tobytes().hex()

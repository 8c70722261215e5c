"""Pictures in the messages of spans."""

from __future__ import annotations

from base64 import b64decode, b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.exchange.importers.otel.test_otel import FILE, HI, YO, made_of, span

PNG = b64encode(b"\x89PNG\r\n\x1a\n").decode()
DATA_URL = f"data:image/png;base64,{PNG}"
ADDRESS = "https://a.example/b.png"
NAME = f"pictures/{sha256(b64decode(PNG)).hexdigest()[:16]}.png"


@pytest.mark.parametrize(
    ("part", "path"),
    [
        ({"type": "blob", "modality": "image", "mime_type": "image/png", "content": PNG}, NAME),
        ({"type": "binary", "media_type": "image/png", "content": PNG}, NAME),
        ({"type": "image_url", "image_url": {"url": DATA_URL}}, NAME),
        (
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": PNG},
            },
            NAME,
        ),
        ({"type": "uri", "modality": "image", "uri": ADDRESS}, ADDRESS),
        ({"type": "input_image", "image_url": ADDRESS}, ADDRESS),
        ({"type": "image", "source": {"type": "url", "url": ADDRESS}}, ADDRESS),
    ],
)
def test_a_picture_of_a_conversation_is_an_address_or_a_file_beside_the_test(
    tmp_path: Path, part: dict[str, Any], path: str
) -> None:
    text = {"type": "text", "content": "What {{ is }} it?\n---"}
    asked = [{"role": "user", "parts": [text, part]}]
    made = made_of(
        tmp_path,
        span("a", input__messages=asked, output__messages=YO),
        span("b", input__messages=HI, output__messages=YO),
    )
    assert (made.left, made.recorded(FILE)) == ([], ["Yo"])
    assert made.shown("tests/gpt-4o-pictures.md") == [[("What {{ is }} it?\n---", path)]]


IMAGE = {"type": "image_url", "image_url": {"url": ADDRESS}}
IMAGE_FILE = {"type": "image", "image": "/etc/passwd"}
CUT = {"type": "image", "image": f"{DATA_URL[:-1]}…"}
SVG = {"type": "image", "image": "data:image/svg+xml;base64,PHN2Zz4="}


def test_several_pictures_are_shown_one_after_the_other(tmp_path: Path) -> None:
    asked = [{"role": "user", "content": [IMAGE, {"type": "text", "text": "Same?"}, IMAGE]}]
    made = made_of(tmp_path, span(input__messages=asked, output__messages=YO))
    assert made.shown("tests/gpt-4o-pictures.md") == [[("Same?", ADDRESS), ("", ADDRESS)]]


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        (
            {
                "input__messages": [{"role": "user", "content": [IMAGE_FILE]}],
                "output__messages": YO,
            },
            "a picture is a file that the source does not contain",
        ),
        (
            {"input__messages": [{"content": [CUT]}], "output__messages": YO},
            "the content of a picture was cut off, or not recorded",
        ),
        (
            {"input__messages": [{"content": [SVG]}], "output__messages": YO},
            "a picture has no media type, or one that is not supported",
        ),
        (
            {
                "input__messages": [{"role": "system", "content": [IMAGE]}, *HI],
                "output__messages": YO,
            },
            "a message of the role 'system' shows a picture",
        ),
        (
            {"input__messages": HI, "output__messages": [{"content": [IMAGE]}]},
            "the answer has a picture",
        ),
    ],
)
def test_a_picture_that_cannot_be_used_is_the_reason_why_a_span_is_left(
    tmp_path: Path, attributes: dict[str, Any], reason: str
) -> None:
    made = made_of(tmp_path, span(**attributes))
    assert made.left == [("t.json", None, f"{reason} (span a1)")]
    assert made.imported.files == {}

"""Images are drawn with the extra `images`; nothing in a file can hurt, and all are named."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import pytest
from textual.pilot import Pilot

from evalstore.core.display import StyledLine, StyledSpan
from evalstore.files.processes import limited_calls
from evalstore.interfaces.cli.main import main
from evalstore.interfaces.tui.render import answer
from evalstore.interfaces.tui.text_view import TextView
from tests.interfaces.tui.driving import drive, press, screen

pytestmark = pytest.mark.extended


def png(width: int, height: int, rows: bytes | None = None) -> bytes:
    """A picture whose upper half is red and whose lower half is blue; or with these rows."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    if rows is None:  # not for the sizes of bombs
        half = height // 2
        red, blue = b"\0" + b"\xff\0\0" * width, b"\0" + b"\0\0\xff" * width
        rows = red * half + blue * (height - half)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows))
    return b"\x89PNG\r\n\x1a\n" + data + chunk(b"IEND", b"")


def test_a_picture_is_drawn_in_its_colours_and_proportions() -> None:
    pytest.importorskip("PIL")
    lines = answer.image_lines(png(40, 20))
    assert [(span.text, span.colour) for line in lines for span in line.spans] == [
        *[("▀" * 40, "#ff0000 on #ff0000")] * 5,
        *[("▀" * 40, "#0000ff on #0000ff")] * 5,
    ]
    large = answer.image_lines(png(1200, 400))
    assert (len(large), len(large[0].text)) == (10, 60)
    assert len(answer.image_lines(png(1, 1))) == 1


DAMAGED = {
    "no picture": b"<svg onload='x'/>",
    "empty": b"",
    "cut": png(40, 20)[:60],
    "bomb": png(60_000, 60_000, b"\0" * 10),
    "zero": png(0, 0),
    "large": b"\x89PNG\r\n\x1a\n" + b"\0" * 30_000_000,
    "PostScript": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n(x) run\n",
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_a_file_that_is_not_a_picture_draws_nothing(data: bytes) -> None:
    pytest.importorskip("PIL")
    assert answer.image_lines(data) == []


def test_a_picture_that_takes_long_is_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    pillow = pytest.importorskip("PIL.Image")
    monkeypatch.setattr(limited_calls, "CPU_SECONDS", 0.5)
    file = io.BytesIO()
    pillow.new("RGB", (2_000, 2_000)).save(file, "JPEG", progressive=True)
    data = file.getvalue()[:-2]
    scan = data[data.rindex(b"\xff\xda") :]
    assert answer.image_lines(data + scan + b"\xff\xd9")
    assert answer.image_lines(data + 6_000 * scan + b"\xff\xd9") == []


@pytest.mark.parametrize("is_installed", [True, False])
def test_a_picture_of_a_test_is_shown_or_named(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, *, is_installed: bool
) -> None:
    (workspace / "tests/dot.png").write_bytes(png(40, 20))
    (workspace / "tests/greeting.md").write_text(
        "# 👤\n\nLook: {{_file:dot.png}}\n\n---\n\nWarm.\n"
    )
    main(["run", "--quiet"])
    monkeypatch.setattr(answer, "find_spec", lambda _name: is_installed or None)
    line = StyledLine((StyledSpan("▀▀", "#ff0000 on #0000ff"),))
    monkeypatch.setattr(answer, "image_lines", lambda _data: [line])

    async def scenario(pilot: Pilot[None]) -> None:
        size = f"{len(png(40, 20))} bytes"
        reader = pilot.app.screen.query_one("#feedback", TextView)
        assert f"[file dot.png, image/png, {size}]" in reader.text
        await press(pilot, "enter")
        shown = screen(pilot)
        assert f"Look: [file dot.png, image/png, {size}]" in shown
        assert ("   ▀▀\n" in shown) == is_installed
        await press(pilot, "y")
        assert "▀" not in pilot.app.clipboard
        await press(pilot, "m")
        assert "▀" not in screen(pilot)

    drive(scenario, revision="@")

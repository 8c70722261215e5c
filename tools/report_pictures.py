"""`python -m tools.report_pictures FOLDER`: photographs the report of the example workspace.

It needs Chromium. Ids and times differ each time; the rest is what the program shows.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from base64 import b64decode
from pathlib import Path
from typing import NamedTuple

from evalstore.files.atomic_write import write_whole
from tests.interfaces.tui.chromium import Tab, opened, until
from tools.example_report import make_report


class Scene(NamedTuple):
    """A picture: the part of the page, and how it is looked at."""

    name: str
    width: int
    height: int
    anchor: str = ""
    dark: bool = False
    opens_case: bool = False


SCENES = (
    Scene("report-light", 1200, 900),
    Scene("report-dark", 1200, 900, dark=True, opens_case=True),
    Scene("report-cases", 1200, 700, "cases-title"),
    Scene("report-phone", 400, 800),
)


def main(folder: Path) -> None:
    """Write the pictures into a folder."""
    with tempfile.TemporaryDirectory() as made:
        page = make_report(Path(made))
        asyncio.run(_photograph(page, Path(made) / "profile", folder))


async def _photograph(page: Path, profile: Path, folder: Path) -> None:
    async with opened(profile) as tab:
        for scene in SCENES:
            write_whole(folder / f"{scene.name}.png", await photograph(tab, page, scene))


async def photograph(tab: Tab, page: Path, scene: Scene) -> bytes:
    """Return a picture of a page as PNG."""
    await tab.call(
        "Emulation.setDeviceMetricsOverride",
        width=scene.width,
        height=scene.height,
        deviceScaleFactor=1,
        mobile=scene.width < 600,
    )
    scheme = {"name": "prefers-color-scheme", "value": "dark" if scene.dark else "light"}
    await tab.call("Emulation.setEmulatedMedia", features=[scheme])
    await tab.call("Page.navigate", url="about:blank")
    await tab.call("Page.navigate", url=f"{page.as_uri()}#{scene.anchor}")

    async def is_ready() -> bool:
        return bool(await tab.value("document.documentElement.dataset.ready === 'yes'"))

    await until(is_ready, "the page")
    if scene.opens_case:
        await tab.value("document.querySelector('.changes a').click()")
    shot = await tab.call("Page.captureScreenshot", format="png")
    return b64decode(shot["data"])


if __name__ == "__main__":
    main(Path(sys.argv[1]))

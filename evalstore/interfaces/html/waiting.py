"""The page that is shown while that of a run is being made: what is known of the run at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.core.display import safe, short
from evalstore.core.values import VERDICTS
from evalstore.interfaces.html.charts import Drawing, verdict_bar
from evalstore.interfaces.html.templates import read_asset, render
from evalstore.results.verdict_order import SIGNS

if TYPE_CHECKING:
    from evalstore.core.runs import Run
    from evalstore.store.wanted import Reached


RELOAD = "setTimeout(() => location.reload(), 1000)"
"""The script of the page: a refresh without one does not load an address with a case again."""


def waiting_page(name: str, run: Run | None, reached: Reached | None) -> bytes:
    """Return a page that is loaded again every second.

    `name` is that of the workspace; without a run it is about the workspace as it is now.
    """
    words = run.verdicts if run else {}
    counts = {str(word): words[word] for word in VERDICTS if words.get(word)}
    return render(
        "waiting.html",
        workspace=safe(name),
        run=f"run {short(run.id)}" if run else "the workspace as it is now",
        style=Drawing(read_asset("report.css")),
        script=Drawing(RELOAD),
        bar=verdict_bar(counts) if counts else "",
        counts=[(word, f"{count:,}") for word, count in counts.items()],
        signs=SIGNS,
        progress=_progress(reached),
    )


def _progress(reached: Reached | None) -> str:
    if reached is None:
        return "reading …"
    total = f" of {reached.total:,}" if reached.total else ""
    return f"reading … {reached.done:,}{total} {reached.counted}"

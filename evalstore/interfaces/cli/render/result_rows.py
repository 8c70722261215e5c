"""Prints the rows of results that `show` lists."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from evalstore.core.display import case_name
from evalstore.core.values import Json
from evalstore.interfaces.cli import output
from evalstore.interfaces.cli.render.table import (
    BESIDE_PLACE,
    ids_that_fit,
    leaves_room,
    shorten_models,
    shorten_places,
)
from evalstore.results.show.shown_results import ShownResult, ShownResults, word_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalstore.results.show.show import ShownItem

SHOWN = 40
"""Results of a run before the list is cut; `-v` shows all."""


def print_results(item: ShownItem) -> None:
    """Print the results of a run, of the workspace or of a file, the most urgent first."""
    if not (count := len(item.related.get("results", ()))):
        return
    results = list_urgent_first(item)
    output.line()
    shown = list(results if output.verbose else islice(results, SHOWN))
    columns = output.columns_of

    def full_place(result: Json, has_several: bool) -> str:
        prompt = item.prompts.get(result["prompt"]) if has_several else None
        return place_of(result["file"], result["row"], prompt)

    places = [full_place(*listed) for listed in shown]
    of_word = max(columns(word_of(result)) for result, _ in shown)
    behind = max(output.shown_columns(_behind(result, item)) for result, _ in shown)
    has_room = leaves_room(BESIDE_PLACE + behind)
    others = BESIDE_PLACE + behind * has_room
    names = (result["model"] for result, _ in shown)
    models = shorten_models(names, max(map(columns, places)), others)
    of_model = max(map(columns, models.values()))
    places = shorten_places(places, others + of_model)
    of_place = max(map(columns, places))
    before = of_word + of_place + of_model + 6
    for (result, _), place in zip(shown, places, strict=True):
        word, more = word_of(result), _behind(result, item)
        beside = output.shown_columns(more) * has_room
        parts = (
            output.paint(output.pad(word, of_word), word),
            output.pad(place, of_place),
            output.pad(models[result["model"]], of_model),
            ids_that_fit(result["sessions"], before + beside),
            more[2:] if has_room else "",
        )
        output.line("  ".join(filter(None, parts)).rstrip())
        if more and not has_room:
            output.line(" " * of_word + more)
    if left := count - (count if output.verbose else len(shown)) + item.left_out:
        output.line(f"… {left} more (-v lists all)")


def _behind(result: Json, item: ShownItem) -> str:
    """Return what follows the ids of a result: its older run, and how it has changed."""
    run, mark = _older_run(result), item.marks.get(cell_of(result), "")
    return (f"  {output.faint(run)}" if run else "") + (f"  ({output.paint(mark)})" if mark else "")


def _older_run(result: Json) -> str:
    """Return which older run a result of a file is from; empty for one of the shown run."""
    if "run" not in result:
        return ""
    edited = ", edited since" if result.get("edited") else ""
    return f"(run {output.short(result['run'])}{edited})"


def place_of(file: str, row: str, prompt: str | None = None) -> str:
    """Return the place of a case, with the name of its system prompt when it has several."""
    return output.safe(case_name(file, row, prompt))


def list_urgent_first(item: ShownItem) -> Iterator[ShownResult]:
    """Yield the results of an item, the most urgent first."""

    def broke(result: Json) -> bool:
        return item.marks.get(cell_of(result), "").startswith("broke")

    results = item.related.get("results") or ShownResults()
    listed = results.by_urgency(broke if item.marks else None)
    if item.kind == "cases":
        return (ShownResult(result, has_several=True) for result, _ in listed)
    return listed


def cell_of(result: Json) -> tuple[str, str, str | None, str]:
    """Return the case, system prompt and candidate of a result."""
    return result["file"], result["row"], result["prompt"], result["model"]

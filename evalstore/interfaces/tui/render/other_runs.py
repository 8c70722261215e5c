"""The runs in progress of other programs, each in a line as far as there is room for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.core.display import clip, columns_of, plural
from evalstore.core.styled_text import BLANK, StyledLine, heading, text_lines
from evalstore.results.log.runs_in_progress import in_progress_text, in_progress_texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalstore.store.work.runs_in_progress import RunInProgress

_SIGN = "▶ "


def other_run_texts(runs: Sequence[RunInProgress], width: int, height: int) -> list[str]:
    """Return a line of this width for each run; at most `height`, the last one counts the rest."""
    shown = runs if len(runs) <= height else runs[: height - 1]
    texts = [_fitting(in_progress_texts(run), width) for run in shown]
    if left := len(runs) - len(shown):
        noun = "more run" if shown else "run"
        texts.append(clip(f"{_SIGN}{plural(left, noun)} in progress", width))
    return texts


def _fitting(texts: Sequence[str], width: int) -> str:
    """Return the longest of these texts that fits, or the last one cut."""
    room = width - len(_SIGN)
    return _SIGN + clip(next((it for it in texts if columns_of(it) <= room), texts[-1]), room)


def other_run_lines(runs: Sequence[RunInProgress]) -> Iterator[StyledLine]:
    """Yield all that is known of each run, below a heading; nothing without runs."""
    if runs:
        yield BLANK
        yield heading("in progress in other programs")
        for run in runs:
            yield from text_lines(in_progress_text(run), indent=2)

"""The title of the page of an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.interfaces.tui.render.verdicts import short_names

if TYPE_CHECKING:
    from evalstore.interfaces.tui.state.navigation import CaseNavigator
    from evalstore.interfaces.tui.widgets.title_line import TitlePart


def answer_title(navigator: CaseNavigator, progress: str) -> tuple[TitlePart, ...]:
    """Return the parts of the title; with an answer beside another one their candidates first."""
    case, run = navigator.case, navigator.cases.run
    place = _place_texts(navigator)
    models = navigator.cases.models
    short = dict(zip(models, short_names(models), strict=True))
    beside = ""
    if navigator.other:
        beside = " beside ".join(short_names([navigator.model, navigator.other]))
    owner = f"run {run[:8]}" if run else "workspace"
    return (
        "" if beside else owner,
        place,
        progress,
        beside,
        (owner, "") if beside else "",
        case.file,
        case.row,
        case.prompt,
        "" if beside else (navigator.model, short[navigator.model]),
    )


def _place_texts(navigator: CaseNavigator) -> TitlePart:
    """Return which of the listed cases this is, with and without which of its system prompts."""
    (number, count), (prompt, prompts) = navigator.case_number, navigator.prompt_number
    case = f"case {number:,} of {count:,}" if count > 1 else ""
    numbered = f"prompt {prompt} of {prompts}" if prompts > 1 else ""
    return ", ".join(filter(None, (case, numbered))), case

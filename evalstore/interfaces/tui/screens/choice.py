"""A box above the screen in which one of a few names is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from evalstore.core.display import safe, short
from evalstore.interfaces.tui.screens.base import HELP_KEYS, Page
from evalstore.interfaces.tui.state.case_listing import CaseListing, PromptPair
from evalstore.interfaces.tui.state.data_source import FilteredPlaces
from evalstore.interfaces.tui.widgets.grid import Grid
from evalstore.interfaces.tui.widgets.grid_columns import Column, StyledCell
from evalstore.results.table.case_rows import CaseRow
from evalstore.results.table.cases import Cases, RunLine

_ONE_CANDIDATE = "there is only one candidate: list another one in 'candidates' of evalstore.yaml"
_ONE_IN_RUN = "run {} has only the candidate {}"
_ASK_ANOTHER = "list another one in 'candidates' of evalstore.yaml, and {page.run} asks it"
_SEE_NEWER = "{case.newest} opens the newest run"


class Choice(ModalScreen[str | None]):
    """Asks for one of these names; Escape is none of them."""

    DEFAULT_CSS = """
    Choice {
        align: center middle;
        & > Vertical {
            width: 60; max-width: 100%; height: auto; max-height: 100%;
            border: round $accent; background: $surface;
        }
        & Static { height: 1; padding: 0 1; text-style: bold; }
        & Static { text-wrap: nowrap; text-overflow: ellipsis; }
        & Grid { height: auto; max-height: 14; }
    }
    """
    TITLE = "A choice"
    HELP = "Choose one of these names."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,backspace", "dismiss(None)", "Back", id="choice.back"),
        Binding("q", "dismiss(None)", "Close", show=False, id="choice.close"),
        HELP_KEYS,
    ]

    def __init__(self, title: str, names: Sequence[str]) -> None:
        super().__init__()
        self._title = title
        self._names = names

    def compose(self) -> ComposeResult:
        """Lay out the names below what they are for."""
        with Vertical():
            yield Static(Content(safe(self._title)))
            yield Grid(id="names")

    def on_mount(self) -> None:
        """Show them."""
        grid = self.query_one(Grid)
        grid.styles.height = min(len(self._names) + 1, 14)
        cells = [(StyledCell(name),) for name in self._names]
        grid.show((Column("", 10, grows=True),), len(cells), cells.__getitem__)
        grid.focus()

    @on(Grid.Chosen)
    def choose(self, message: Grid.Chosen) -> None:
        """Close the dialog with the chosen name."""
        self.dismiss(self._names[message.row])


def compare_in_run(
    page: Page,
    listing: CaseListing,
    case: CaseRow | None,
    picked: int,
    *,
    typed: str,
    has_newer: bool,
) -> None:
    """Open the comparison of a candidate, or of a case's system prompt, with another of the run.

    A choice asks which other one, if there are more. With a filter that was `typed`, the listed
    cases are compared; all, where not all that match it have been read. `has_newer` is whether
    there is a newer run to look at when there is none.
    """
    cases, prompts = listing.cases, listing.prompts_of(case)
    model, others = listing.other_candidates(picked)
    if cases is None:
        return
    revision, (own, *rest) = cases.run, prompts or ("",)
    title, start = ("Compare", f"{model} with ") if rest else (f"Compare {model} with", "")
    choices = {f"{start}{other}": (model, other) for other in others}
    choices |= {
        f"system prompt {own} with {other}": PromptPair(prompts[own], prompts[other])
        for other in rest
    }
    if not choices:
        page.notify(_why_alone(page, cases, has_newer=has_newer), markup=False)
        return

    among = None
    if typed and cases.is_cut:
        page.notify("all cases are compared, not only those that are listed", markup=False)
    elif typed:
        results = [result for row in listing.matching for result in row.results if result]
        among = FilteredPlaces(
            typed,
            frozenset((result.file, result.row, result.prompt_number) for result in results),
            frozenset((result.file, result.row) for result in results),
        )

    def compare(chosen: str | None) -> None:
        if chosen:
            page.browser.open("ComparePage", revision, revision, choices[chosen], among)

    if len(choices) == 1:
        compare(*choices)
    else:
        page.app.push_screen(Choice(title, [*choices]), compare)


def _why_alone(page: Page, cases: Cases, *, has_newer: bool) -> str:
    """Return why there is no other candidate, and what to do about it."""
    if cases.run is None:
        return _ONE_CANDIDATE
    hint = page.with_keys(_SEE_NEWER if has_newer else _ASK_ANOTHER)
    return f"{_ONE_IN_RUN.format(short(cases.run), ', '.join(cases.models))}: {hint}"


NO_EARLIER_RUN = "no earlier run to compare with"
"""The message of the comparison of the first run with the one before it."""


def compare_with_previous(page: Page, cases: Cases) -> None:
    """Open the comparison of a run with the one before it, or of the workspace with the newest."""

    def compare(runs: Sequence[RunLine]) -> None:
        ids = [run.id for run in runs]
        before = ids[ids.index(cases.run) + 1 :] if cases.run in ids else ids
        if before:
            page.browser.open("ComparePage", before[0], cases.run)
        else:
            page.notify(NO_EARLIER_RUN, markup=False)

    page.fetch(page.source.runs, compare, group="compare")

"""The columns of the list of runs, which of them there is room for, and some of their cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.core.display import columns_of, money, percent, simulated
from evalstore.interfaces.tui.render.documents.reading import READING
from evalstore.interfaces.tui.render.plot import verdict_strip
from evalstore.interfaces.tui.render.run_details import STAR, other_basis, run_before
from evalstore.interfaces.tui.widgets.grid_columns import GAP, NEVER, Column
from evalstore.interfaces.tui.widgets.grid_lines import StyledCell
from evalstore.results.verdict_order import verdict_counts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evalstore.results.flips.run_differences import RunDifferences
    from evalstore.results.table.cases import RunLine
    from evalstore.runs.status.dashboard import Dashboard

STRIP = 10
"""Cells of the strip of verdicts."""
_ALWAYS = 38
"""The width of the columns that are always drawn."""
_OF = 5
"""The least columns of the numbers of passed and judged cases."""
_MESSAGE = 12
"""The least columns of the message."""
_ROOM = {"of": 11, "cost": 13, "asked": 17, "judged": 17, "reused": 17}
"""How much wider than that a long message may be before there is room for these columns."""
_COST = 8
"""The least columns of the cost."""
_FROM = 18
"""The most columns of who pushed a run."""
SIMULATED = simulated("").strip()
"""The title of the costs where all of them are simulated."""
_CELLS = (
    *("run", "when", "sign", "state", "passed", "change", "of", "cost", "verdicts"),
    *("asked", "judged", "reused", "from", "message"),
)
"""The cells of a line."""
_SAME = StyledCell("=", "faint", "0.0")


def run_columns(runs: Sequence[RunLine], state: Dashboard | None = None) -> list[Column]:
    """Return the columns; there is one for the state when a run is not complete.

    It is saved with the others all the same. There is one for who pushed a run when others have
    pushed some. A narrow table leaves out the message first when all are empty, else the columns
    at the right of the verdicts; these leave some room for messages.
    """
    states = [len(run.status) for run in runs if run.status != "complete"]
    counted = max([_OF, len(_state_text(state)), *(len(passed_text(run)) for run in runs)])
    is_titled = is_all_simulated(runs)
    titles = {"cost": SIMULATED} if is_titled else {}
    costs = [run_cost(run, is_titled=is_titled) for run in runs]
    cost = max([_COST, *map(len, [*titles.values(), *costs])])
    longest = max((columns_of(run.message) for run in runs), default=_MESSAGE)
    widths = {"change": 7, "message": _MESSAGE, "verdicts": STRIP, "of": counted, "cost": cost}
    writers = [columns_of(run.push.writer) for run in runs if run.push]
    if writers:
        widths["from"] = min(max(writers), _FROM)
    widths |= dict.fromkeys(("asked", "judged", "reused"), 6)
    if not longest:
        widths["message"] = widths.pop("message")  # the last one
    since: dict[str, int] = {}
    taken = _ALWAYS + (max(states) + GAP if states else 0)
    for title, width in widths.items():
        taken += width + GAP
        since[title] = 1 + taken + min(_ROOM.get(title, 0), max(0, longest - _MESSAGE))
    return [
        Column("run", 9),
        Column("when", 14),
        Column("", 1),
        Column(
            "state", max(states, default=0), since=_ALWAYS + max(states) + GAP if states else NEVER
        ),
        Column("passed", 6, right=True),
        *(
            Column(
                titles.get(title, title),
                widths[title],
                right=title != "verdicts",
                since=since[title],
            )
            for title in ("change", "of", "cost", "verdicts", "asked", "judged", "reused")
        ),
        Column(
            "from",
            widths.get("from", 0),
            since=since.get("from", NEVER),
            is_saved="from" in widths,
        ),
        Column("message", _MESSAGE, grows=True, since=since["message"]),
    ]


def state_cells(state: Dashboard | None, message: str, note: str) -> Sequence[StyledCell]:
    """Return the line of the workspace, with the figures of its state once it has been read.

    Figures that are old are faint, and the `note` stands in place of `now`, without its numbers.
    """
    cells = dict.fromkeys(_CELLS, StyledCell(""))
    cells |= {"run": StyledCell("workspace", "group"), "when": StyledCell(_brief(note) or "now")}
    if state and state.rate:
        colour = "faint" if note else ""
        strip = verdict_strip(state.verdicts, STRIP)
        if note:
            strip = tuple(span._replace(colour="faint") for span in strip)
        cells["passed"] = StyledCell(percent(state.rate.rate), colour)
        cells["of"] = StyledCell(_state_text(state), colour)
        cells["verdicts"] = StyledCell(verdict_counts(state.verdicts, signs=False), parts=strip)
    cells["message"] = StyledCell(message, "faint")
    return [*cells.values()]


def _brief(note: str) -> str:
    return READING if note.startswith(READING) else note


def _state_text(state: Dashboard | None) -> str:
    return f"{state.rate.passed:,}/{state.rate.judged:,}" if state and state.rate else ""


def is_all_simulated(runs: Sequence[RunLine]) -> bool:
    """Return whether no run has cost anything but simulated costs, and some have such."""
    free = money(0)
    is_any = any(run.is_simulated for run in runs)
    return is_any and all(run.is_simulated or run.cost == free for run in runs)


def run_cost(run: RunLine, *, is_titled: bool) -> str:
    """Return the cost of a run; that it is simulated is left out where the title says so."""
    return run.cost.removesuffix(simulated("")) if is_titled else run.cost


def passed_text(run: RunLine) -> str:
    """Return how many of the judged cases passed: `7/8`."""
    return f"{run.verdicts['pass']:,}/{run.counted:,}"


def change_cell(
    runs: Sequence[RunLine], number: int, find: Callable[[str], RunDifferences | None]
) -> StyledCell:
    """Return by how many points flips have changed the rate, or that the run is partial.

    With a star it does not show all that differs. `find` returns the differences of a run.
    """
    run = runs[number]
    if run.is_partial:
        return StyledCell("partial", "faint")
    differences = find(run.id)
    if not run.counted or differences is None or differences.is_first:
        return StyledCell("")
    points = round(100 * (differences.fixed - differences.broke) / run.counted, 1)
    before = run_before(runs, number)
    is_hidden = differences.is_hidden or (before is not None and bool(other_basis(run, before)))
    star = STAR * is_hidden
    if not points:
        return StyledCell(f"0.0{star}", "faint") if star else _SAME
    return StyledCell(f"{points:+.1f}{star}", "pass" if points > 0 else "fail")

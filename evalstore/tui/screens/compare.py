"""Two sides paired case by case: what broke, what was fixed, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual import on
from textual.binding import Binding, BindingType

from evalstore.display import plural, widest
from evalstore.tui.render.pair import describe_pair, pick_answers
from evalstore.tui.render.verdicts import verdict
from evalstore.tui.screens.actions import CaseActionsPage
from evalstore.tui.screens.base import READING
from evalstore.tui.widgets.footer import KeyFooter
from evalstore.tui.widgets.grid import Grid, StyledCell
from evalstore.tui.widgets.grid_columns import Column
from evalstore.tui.widgets.text_view import StyledLine, StyledSpan, TextView

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from evalstore.operations.diff import Diff
    from evalstore.operations.views.cases import Cases
    from evalstore.reports.comparison import Pair
    from evalstore.values import Result

_FLIPS = {"broke": "fail", "fixed": "pass"}
"""What happened, and its colour; they come first."""
_OTHERS = {"changed": "undecided", "new": "group", "gone": "faint"}


class _Listed(NamedTuple):
    """A pair and what happened to it."""

    what: str
    pair: Pair

    @property
    def place(self) -> tuple[str, str, int, str]:
        """Where it is, to find it again."""
        one = self.pair.either
        return one.file, one.row, one.prompt_number, one.model


class ComparePage(CaseActionsPage):
    """Two runs, a run and the workspace, or two candidates of one run."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "flip(1)", "Next change", id="compare.next_flip"),
        Binding("N", "flip(-1)", "Previous change", show=False, id="compare.last_flip"),
        Binding("d", "swap", "Swap sides", id="compare.swap"),
        Binding("equals_sign", "unchanged", "Unchanged", show=False, id="compare.unchanged"),
    ]
    TITLE = "Comparison"
    WAY = "{history.compare} on two marked runs, {cases.compare_models} on the cases"
    HELP = """\
What differs between two runs, between a run and the workspace, or between two candidates: verdicts
that broke first, then those that were fixed, then the rest. Below is what both sides answered."""
    DEFAULT_CSS = """
    ComparePage {
        & > #rates { height: 4; background: $panel; }
        & > #rates.-noted { height: 5; }
        & > #pair { height: 45%; border-top: solid $panel; }
        &.-short > #rates { height: 2; }
    }
    """

    saved_as = "comparison"

    def __init__(
        self, was: str | None, now: str | None, models: tuple[str, str] | None = None
    ) -> None:
        """Runs, or None for the workspace; with models these of one run, named twice."""
        super().__init__()
        self._sides = was, now
        self._models = models
        self._diff: Diff | None = None
        self._is_swapped = False
        self._with_unchanged = False
        self._listed: list[_Listed] = []
        self._cases: dict[str | None, Cases] = {}
        """Of the sides whose sessions were opened."""

    def compose(self) -> ComposeResult:
        """The rates above the pairs, below them what is to be said of the highlighted one."""
        yield self.title_line()
        yield self.problem_line()
        rates = TextView(id="rates")
        rates.can_focus = False
        yield rates
        yield self.empty_state()
        yield Grid(id="pairs")
        yield TextView(id="pair").add_class("detail")
        yield KeyFooter()

    def on_mount(self) -> None:
        """Compare."""
        self.set_title("compare", READING)
        self.query_one(Grid).focus()
        self._read()

    def reload(self, *, stay: bool = True) -> None:
        """Compare again: what a run holds stays, but the workspace may have gone on."""
        if None in self._sides or self._diff is None:
            self._cases.pop(None, None)
            self._read()

    def _read(self) -> None:
        was, now = self._sides
        self.fetch(lambda: self.source.compare(was, now, self._models), self.show_diff)

    def show_diff(self, found: Diff) -> None:
        """Show it, from the side that was looked at."""
        self._diff = found.swapped() if self._is_swapped else found
        self.list_pairs()

    # --- what is listed

    def list_pairs(self) -> None:
        """List flips first; the cursor stays with its pair."""
        found = self._diff
        assert found
        before = self.listed.place if self.listed else None
        groups = (*_FLIPS, *_OTHERS, *(("unchanged",) if self._with_unchanged else ()))
        self._listed = [
            _Listed(what, pair) for what in groups for pair in getattr(found.comparison, what)
        ]
        cursor = next((n for n, one in enumerate(self._listed) if one.place == before), 0)
        within = f"run {found.was[:8]}" if found.models and found.was != "workspace" else ""
        self.set_title("compare", within, " -> ".join(found.names))
        rates = self.query_one("#rates", TextView)
        rates.set_class(bool(found.notes), "-noted")
        rates.show(self._rates(found))
        self.set_empty("" if self._listed else self.with_keys(_EMPTY))
        grid = self.query_one("#pairs", Grid)
        grid.display = bool(self._listed)
        grid.show(self._columns(found), len(self._listed), self._cells, cursor=cursor)
        if not self._listed:
            self.query_one("#pair", TextView).show(())

    def _rates(self, found: Diff) -> Iterator[StyledLine]:
        pairs = found.comparison
        counted = {what: len(getattr(pairs, what)) for what in (*_FLIPS, *_OTHERS)}
        spans = [
            StyledSpan(f"{count:,} {what}, ", _FLIPS.get(what, ""))
            for what, count in counted.items()
            if count
        ]
        hint = self.with_keys(" ({compare.unchanged} shows them)")
        if self._with_unchanged or not pairs.unchanged:
            hint = ""
        yield StyledLine((*spans, StyledSpan(f"{len(pairs.unchanged):,} unchanged{hint}", "faint")))
        before, after = pairs.rates()
        if not before.judged:
            yield StyledLine((StyledSpan("no case is judged on both sides", "pending"),))
            return
        change = pairs.change()
        yield StyledLine((StyledSpan(change.finding, "heading"),))
        yield StyledLine(
            (
                StyledSpan(f"{before.text} -> {after.text}  "),
                StyledSpan(f"of {plural(change.pairs, 'case')} judged on both sides", "faint"),
                StyledSpan(f", in {plural(change.files, 'file')}", "faint"),
            )
        )
        yield StyledLine((StyledSpan(change.points),))
        if found.notes:
            yield StyledLine((StyledSpan("; ".join(found.notes), "pending"),))

    def _columns(self, found: Diff) -> list[Column]:
        was, now = _tails(*found.names) if found.models else ("was", "now")
        candidate = [] if found.models else [Column("candidate", 16, since=78)]
        return [
            Column("", 9, since=46),
            Column(
                "file", 10, grows=True, most=widest({listed.place[0] for listed in self._listed})
            ),
            Column("row", 8, grows=True, most=widest(map(self._row_of, self._listed)), since=60),
            *candidate,
            Column(was, 11),
            Column(now, 11),
        ]

    def _cells(self, row: int) -> Sequence[StyledCell]:
        assert self._diff
        what, pair = self._listed[row]
        one = pair.either
        return (
            StyledCell(what, _FLIPS.get(what) or _OTHERS.get(what, "faint")),
            StyledCell(one.file),
            StyledCell(self._row_of(self._listed[row])),
            *(() if self._diff.models else (StyledCell(one.model),)),
            *(
                StyledCell("-", "faint") if side is None else verdict(side.word)
                for side in (pair.was, pair.now)
            ),
        )

    def _row_of(self, listed: _Listed) -> str:
        assert self._diff
        one = listed.pair.either
        prompt = self._diff.prompts.get(one.file, {}).get(one.prompt)
        return f"{one.row} ({prompt})".lstrip() if prompt else one.row

    # --- the highlighted pair

    @property
    def listed(self) -> _Listed | None:
        """The highlighted pair."""
        number = self.query_one("#pairs", Grid).cursor
        return self._listed[number] if number < len(self._listed) else None

    @property
    def chosen(self) -> list[Result]:
        """The newer side of the highlighted pair, when there is one."""
        pair = self.listed.pair if self.listed else None
        return [pair.either] if pair else []

    @property
    def copied(self) -> tuple[str, str]:
        """The highlighted case, as a command line names it."""
        if self.listed is None:
            return "", ""
        one = self.listed.pair.either
        return f"{one.file}::{one.row}" if one.row else one.file, "the case"

    def prompt_of(self, result: Result) -> str:
        """The name of the system prompt, when the file has several."""
        prompts = self._diff.prompts if self._diff else {}
        return prompts.get(result.file, {}).get(result.prompt, "")

    @on(Grid.Moved, "#pairs")
    def follow_cursor(self) -> None:
        """Say what changed in the highlighted pair."""
        listed, found = self.listed, self._diff
        if listed is None or found is None:
            return
        pair = listed.pair
        told = self.query_one("#pair", TextView)
        told.show(describe_pair(found, pair, found.feedback))
        sessions = pick_answers(pair)
        tests = [side.test for side in reversed(_sides(pair))]
        evaluations = [id for side in _sides(pair) for id in side.evaluations]

        def read() -> list[StyledLine]:
            feedback = self.source.feedback(evaluations)
            answers = self.source.answers([id for id in sessions if id])
            asked = self.source.last_asked(tests)
            question = next((asked[id] for id in tests if id in asked), "")
            return list(describe_pair(found, pair, feedback, answers, question))

        def show(lines: list[StyledLine]) -> None:
            if self.listed and self.listed.pair is pair:
                told.show(lines, stay=True)

        self.fetch(read, show, group="pair")

    @on(Grid.Chosen, "#pairs")
    def open_session(self) -> None:
        """Show the session of the newer side; of what is gone, that of the older one."""
        if self.listed is None:
            return
        was, now = reversed(self._sides) if self._is_swapped else self._sides
        revision = was if self.listed.pair.now is None else now
        if revision in self._cases:
            self._show_session(self._cases[revision])
        else:
            self.fetch(lambda: self.source.cases(revision), self._show_session, group="cases")

    def _show_session(self, cases: Cases) -> None:
        self._cases[cases.run] = cases
        if self.listed is None:
            return
        rows = {
            (row.file, row.row, found.prompt_number): row
            for row in cases.rows
            for found in row.results
            if found
        }
        places = dict.fromkeys(listed.place[:3] for listed in self._listed)
        among = [rows[place] for place in places if place in rows]
        case = rows.get(self.listed.place[:3])
        if case is None:
            words = self.with_keys("the workspace has changed: {page.reload} reads it again")
            self.notify(words, markup=False)
            return
        self.browser.show_session(cases, among, among.index(case), self.listed.pair.either.model)

    # --- keys

    def action_flip(self, by: int) -> None:
        """Go to the next case that broke or was fixed, or to the one before."""
        grid = self.query_one("#pairs", Grid)
        flips = [n for n, one in enumerate(self._listed) if one.what in _FLIPS]
        if not flips:
            self.notify("no verdict has changed", markup=False)
            return
        ahead = [n for n in flips if (n > grid.cursor if by > 0 else n < grid.cursor)]
        around = flips[0] if by > 0 else flips[-1]
        grid.move_to((ahead[0] if by > 0 else ahead[-1]) if ahead else around)

    def action_swap(self) -> None:
        """Look at it from the other side."""
        if self._diff:
            self._is_swapped = not self._is_swapped
            self._diff = self._diff.swapped()
            self.list_pairs()

    def action_unchanged(self) -> None:
        """List what is unchanged, too, or only count it."""
        if self._diff:
            self._with_unchanged = not self._with_unchanged
            self.list_pairs()


_EMPTY = """\
Nothing differs.

{compare.unchanged} lists the cases that are unchanged."""


def _sides(pair: Pair) -> list[Result]:
    return [side for side in (pair.was, pair.now) if side]


def _tails(*names: str) -> list[str]:
    """Names without the folders that all of them have: what tells them apart."""
    parts = [name.split("/") for name in names]
    while all(len(part) > 1 for part in parts) and len({part[0] for part in parts}) == 1:
        parts = [part[1:] for part in parts]
    return ["/".join(part) for part in parts]

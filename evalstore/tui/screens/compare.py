"""Two sides paired case by case: what broke, what was fixed, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType

from evalstore.operations.views.diff_text import FLIPS
from evalstore.tui.render.comparison import (
    ListedPair,
    comparison_lines,
    list_pairs,
    pair_cells,
    pair_columns,
)
from evalstore.tui.render.pair import answers_to_compare, pair_lines
from evalstore.tui.render.reading import READING
from evalstore.tui.screens.actions import CaseActionsPage
from evalstore.tui.widgets.footer import FooterHint, KeyFooter
from evalstore.tui.widgets.grid import Grid
from evalstore.tui.widgets.text_view import TextView

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from evalstore.operations.diff import Diff
    from evalstore.operations.views.cases import Cases
    from evalstore.operations.views.styled_text import StyledLine
    from evalstore.reports.comparison import Pair
    from evalstore.results import Result
    from evalstore.tui.widgets.grid_lines import StyledCell


class ComparePage(CaseActionsPage):
    """Two runs, a run and the workspace, or two candidates of one run."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "flip(1)", "Next change", id="compare.next_flip"),
        Binding("N", "flip(-1)", "Previous change", show=False, id="compare.last_flip"),
        Binding("i", "swap", "Swap sides", id="compare.swap"),
        Binding("equals_sign", "unchanged", "Unchanged", show=False, id="compare.unchanged"),
    ]
    FOOTER = (
        FooterHint("", "list.open"),
        FooterHint("Label", "case.pass", "case.fail"),
        FooterHint("Edit", "case.edit"),
        FooterHint("Judge", "case.judge"),
        FooterHint("Change", "compare.next_flip", "compare.last_flip"),
        FooterHint("", "compare.swap"),
        FooterHint("", "compare.unchanged"),
        FooterHint("", "page.save"),
    )
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

    export_name = "comparison"

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
        self._pairs: list[ListedPair] = []
        self._cases: dict[str | None, Cases] = {}
        """Of the sides whose sessions were opened."""

    def compose(self) -> ComposeResult:
        """The rates above the pairs, below them the highlighted one in detail."""
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
        self.fetch(self._compare, self.show_diff)

    def _compare(self) -> Diff:
        was, now = self._sides
        if self._models:
            return self.source.workspace.diff_models(*self._models, run=now)
        return self.source.workspace.diff(was, now)

    def show_diff(self, diff: Diff) -> None:
        """Show it, from the side that was looked at."""
        self._diff = diff.swapped() if self._is_swapped else diff
        self.show_pairs()

    # --- what is listed

    def show_pairs(self) -> None:
        """List flips first; the cursor stays with its pair."""
        diff = self._diff
        assert diff
        before = self.highlighted.place if self.highlighted else None
        self._pairs = list_pairs(diff, with_unchanged=self._with_unchanged)
        cursor = next((n for n, listed in enumerate(self._pairs) if listed.place == before), 0)
        within = f"run {diff.was[:8]}" if diff.models and diff.was != "workspace" else ""
        self.set_title("compare", within, " -> ".join(diff.names))
        rates = self.query_one("#rates", TextView)
        rates.set_class(bool(diff.notes), "-noted")
        has_hint = diff.comparison.unchanged and not self._with_unchanged
        hint = self.with_keys(" ({compare.unchanged} shows them)") if has_hint else ""
        rates.show(comparison_lines(diff, hint))
        self.set_empty("" if self._pairs else self.with_keys(_EMPTY))
        grid = self.query_one("#pairs", Grid)
        grid.display = bool(self._pairs)
        grid.show(pair_columns(diff, self._pairs), len(self._pairs), self._cells, cursor=cursor)
        if not self._pairs:
            self.query_one("#pair", TextView).show(())
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Without a pair there is nothing to label, judge or edit."""
        if self._diff and not self._pairs and action in _NEED_PAIR:
            return False
        return super().check_action(action, parameters)

    def _cells(self, row: int) -> Sequence[StyledCell]:
        assert self._diff
        return pair_cells(self._diff, self._pairs[row])

    # --- the highlighted pair

    @property
    def highlighted(self) -> ListedPair | None:
        """The highlighted pair."""
        number = self.query_one("#pairs", Grid).cursor
        return self._pairs[number] if number < len(self._pairs) else None

    @property
    def selected(self) -> list[Result]:
        """The newer side of the highlighted pair, when there is one."""
        pair = self.highlighted.pair if self.highlighted else None
        return [pair.either] if pair else []

    @property
    def copy_text(self) -> tuple[str, str]:
        """The highlighted case, as a command line names it."""
        if self.highlighted is None:
            return "", ""
        result = self.highlighted.pair.either
        return f"{result.file}::{result.row}" if result.row else result.file, "the case"

    def prompt_name(self, result: Result) -> str:
        """The name of the system prompt, when the file has several."""
        prompts = self._diff.prompts if self._diff else {}
        return prompts.get(result.file, {}).get(result.prompt, "")

    @on(Grid.Moved, "#pairs")
    def follow_cursor(self) -> None:
        """Show what changed in the highlighted pair."""
        listed, diff = self.highlighted, self._diff
        if listed is None or diff is None:
            return
        pair = listed.pair
        view = self.query_one("#pair", TextView)
        view.show(pair_lines(diff, pair, diff.feedback))
        sessions = answers_to_compare(pair)
        tests = [side.test for side in reversed(_sides(pair))]
        evaluations = [id for side in _sides(pair) for id in side.evaluations]

        def read() -> list[StyledLine]:
            feedback = self.source.feedback(evaluations)
            answers = self.source.answers([id for id in sessions if id])
            asked = self.source.last_asked(tests)
            question = next((asked[id] for id in tests if id in asked), "")
            return list(pair_lines(diff, pair, feedback, answers, question))

        def show(lines: list[StyledLine]) -> None:
            if self.highlighted and self.highlighted.pair is pair:
                view.show(lines, stay=True)

        self.fetch(read, show, group="pair")

    @on(Grid.Chosen, "#pairs")
    def open_answer(self) -> None:
        """Show the session of the newer side; of what is gone, that of the older one."""
        if self.highlighted is None:
            return
        was, now = reversed(self._sides) if self._is_swapped else self._sides
        revision = was if self.highlighted.pair.now is None else now
        if revision in self._cases:
            self._show_answer(self._cases[revision])
        else:
            self.fetch(lambda: self.source.cases(revision), self._show_answer, group="cases")

    def _show_answer(self, cases: Cases) -> None:
        self._cases[cases.run] = cases
        if self.highlighted is None:
            return
        rows = {
            (row.file, row.row, result.prompt_number): row
            for row in cases.rows
            for result in row.results
            if result
        }
        places = dict.fromkeys(listed.place[:3] for listed in self._pairs)
        among = [rows[place] for place in places if place in rows]
        case = rows.get(self.highlighted.place[:3])
        if case is None:
            words = self.with_keys("the workspace has changed: {page.reload} reads it again")
            self.notify(words, markup=False)
            return
        self.browser.show_answer(
            cases, among, among.index(case), self.highlighted.pair.either.model
        )

    # --- keys

    def action_flip(self, by: int) -> None:
        """Go to the next case that broke or was fixed, or to the one before."""
        grid = self.query_one("#pairs", Grid)
        flips = [n for n, listed in enumerate(self._pairs) if listed.change in FLIPS]
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
            self.show_pairs()

    def action_unchanged(self) -> None:
        """List what is unchanged, too, or only count it."""
        if self._diff:
            self._with_unchanged = not self._with_unchanged
            self.show_pairs()


_NEED_PAIR = ("label", "unlabel", "judge_again", "edit", "copy_answer", "flip")
_EMPTY = """\
Nothing differs.

{compare.unchanged} lists the cases that are unchanged."""


def _sides(pair: Pair) -> list[Result]:
    return [side for side in (pair.was, pair.now) if side]

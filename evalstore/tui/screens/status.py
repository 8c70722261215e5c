"""Pending work: what changed since the last run, what a run would do, why and its cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType

from evalstore.display import likely_price, plural, safe
from evalstore.errors import Problem, WorkspaceError
from evalstore.tui.render.run import besides, what_to_do
from evalstore.tui.render.verdicts import when
from evalstore.tui.screens.actions import CaseActionsPage
from evalstore.tui.screens.base import READING
from evalstore.tui.widgets.footer import KeyFooter
from evalstore.tui.widgets.grid import Grid, StyledCell
from evalstore.tui.widgets.grid_columns import Column
from evalstore.tui.widgets.text_view import StyledLine, StyledSpan, TextView, heading, text_lines

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from evalstore.operations.status_report import FileChange, Status
    from evalstore.planning.plan import PlanItem

_COLUMNS = (
    Column("what", 7),
    Column("file", 14, grows=True),
    Column("row", 10, grows=True),
    Column("candidate", 14, grows=True, since=90),
    Column("by", 12, grows=True, since=110),
    Column("why", 18, grows=True, since=50),
)


@dataclass(frozen=True, slots=True)
class _Title:
    """A line above those that belong together."""

    name: str
    rest: str = ""


class StatusPage(CaseActionsPage):
    """Each thing a run would do, with its reason; or what is wrong with the files."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("R", "run", "Run", id="page.run"),
        Binding("e", "edit", "Edit the file", id="case.edit"),
    ]
    TITLE = "Pending work"
    WAY = "{history.status} on the runs, the cases or an answer"
    HELP = """\
Each question that a run would ask and each judgement that it would make, with the reason and the
price; or what is wrong with the files."""
    DEFAULT_CSS = """
    StatusPage > TextView { height: 8; border-top: solid $panel; }
    """
    saved_as = "status"

    def __init__(self) -> None:
        super().__init__()
        self._listed: list[_Title | FileChange | PlanItem | Problem] = []
        self._prompts: dict[str, dict[str | None, str]] = {}
        """Of test files with several system prompts, what to call each."""

    def compose(self) -> ComposeResult:
        """The list above what the highlighted line is about."""
        yield self.title_line()
        yield self.problem_line()
        yield self.empty_state()
        yield Grid(id="items")
        yield TextView(id="why").add_class("detail")
        yield KeyFooter()

    def on_mount(self) -> None:
        """Read the workspace."""
        self.query_one(Grid).opens = lambda row: not isinstance(self._listed[row], _Title)
        self.set_title("pending work", READING)
        self.query_one(Grid).focus()
        self.reload(stay=False)

    def reload(self, *, stay: bool = True) -> None:
        """Read the workspace again."""
        self.fetch(self._read, self._show)

    def _read(self) -> Status | list[Problem]:
        try:
            return self.source.status()
        except WorkspaceError as problem:
            return problem.problems

    def _show(self, found: Status | list[Problem]) -> None:
        before = self._highlighted
        if isinstance(found, list):
            self._listed = [_Title("wrong", plural(len(found), "problem") + " in the files")]
            self._listed += found
            self.set_title("pending work", "nothing, until the files are fixed")
            self.set_empty("")
        else:
            self._listed = list(_listed(found))
            self._prompts = found.prompts
            price = likely_price(found.cost, found.guess, brief=True)
            what = f"{what_to_do(found)}: {price}" if found.items else "nothing"
            self.set_title("pending work", what, f"{found.reuse:,} answers reused")
            self.set_empty("" if self._listed else self.with_keys(_nothing(found)))
        grid = self.query_one(Grid)
        grid.display = bool(self._listed)
        self.query_one("#why", TextView).set_class(not self._listed, "gone")
        cursor = self._listed.index(before) if before in self._listed else 1
        grid.show(_COLUMNS, len(self._listed), self._cells, cursor=cursor)

    @property
    def _highlighted(self) -> _Title | FileChange | PlanItem | Problem | None:
        number = self.query_one(Grid).cursor
        return self._listed[number] if number < len(self._listed) else None

    def _cells(self, row: int) -> Sequence[StyledCell]:
        from evalstore.operations.status_report import FileChange

        one = self._listed[row]
        if isinstance(one, _Title):
            return (StyledCell(one.name, "group"), StyledCell(one.rest, "group"))
        if isinstance(one, Problem):
            kind = "error" if one.severity == "error" else "pending"
            line = "" if one.line is None else f"line {one.line}"
            return (
                StyledCell(one.severity, kind),
                StyledCell(one.file),
                StyledCell(line),
                *[StyledCell("")] * 2,
                StyledCell(one.message),
            )
        if isinstance(one, FileChange):
            return (
                StyledCell(one.code),
                StyledCell(one.file),
                *[StyledCell("")] * 3,
                StyledCell(what_changed(one)),
            )
        count = f" ({one.count}x)" if one.count > 1 else ""
        return (
            StyledCell(one.kind),
            StyledCell(one.file),
            StyledCell(self._row_of(one)),
            StyledCell(one.model, "faint"),
            StyledCell(one.evaluator or "", "faint"),
            StyledCell(one.reason + count),
        )

    def _row_of(self, item: PlanItem) -> str:
        """The row, and the system prompt where the file has several."""
        prompt = self._prompts.get(item.file, {}).get(item.prompt)
        return f"{item.row} ({prompt})".lstrip() if prompt else item.row

    # --- the highlighted line

    @on(Grid.Moved, "#items")
    def follow_cursor(self) -> None:
        """Say what it is about."""
        self.query_one("#why", TextView).show(self._why())

    def _why(self) -> Iterator[StyledLine]:
        from evalstore.operations.status_report import FileChange

        one = self._highlighted
        if isinstance(one, Problem):
            yield heading(one.place)
            yield from text_lines(one.message, "error")
            if one.excerpt is not None:
                yield from text_lines(one.excerpt, "faint", 4)
            if one.hint:
                yield from text_lines(f"hint: {one.hint}")
            yield from text_lines(self.with_keys("{case.edit} opens the file here."), "faint")
        elif isinstance(one, _Title):
            yield heading(f"{one.name} {one.rest}")
            yield from text_lines(
                self.with_keys("{page.run} does it, after it has shown the price."), "faint"
            )
        elif one is not None:
            row = "" if isinstance(one, FileChange) else self._row_of(one)
            yield heading(f"{one.file} {row}".rstrip())
            who = (getattr(one, name, None) for name in ("model", "evaluator"))
            names = " by ".join(name for name in who if name)
            if names:
                yield from text_lines(names, "faint")
            yield from text_lines(one.reason)
            if one.was is not None and one.now is not None:
                yield StyledLine(
                    (StyledSpan("was  ", "faint"), StyledSpan(safe(one.was), "old")), 0
                )
                yield StyledLine(
                    (StyledSpan("now  ", "faint"), StyledSpan(safe(one.now), "new")), 0
                )

    @on(Grid.Chosen, "#items")
    def open_line(self) -> None:
        """Open the file."""
        self.action_edit()

    @property
    def place(self) -> tuple[str, int | None] | None:
        """The file of the highlighted line."""
        one = self._highlighted
        if one is None or isinstance(one, _Title):
            return None
        return one.file, one.line if isinstance(one, Problem) else None

    @property
    def copied(self) -> tuple[str, str]:
        """The place of the highlighted line, as a command line names it."""
        one = self._highlighted
        if one is None or isinstance(one, _Title):
            return "", ""
        if isinstance(one, Problem):
            return one.place, "the place"
        row = getattr(one, "row", "")
        return f"{one.file}::{row}" if row else one.file, "the case"


def what_changed(change: FileChange) -> str:
    """What a changed file means, in words."""
    if change.code.strip() == "A":
        return f"{plural(change.asked, 'case')} new"
    if change.code.strip() == "D":
        return f"{plural(change.gone, 'case')} retired"
    if change.code.strip() == "R":
        return change.reason
    counts = (
        (change.new, "new"),
        (change.asked, "asked again"),
        (change.judged, "judged again"),
        (change.gone, "retired"),
    )
    parts = ", ".join(f"{plural(count, 'case')} {word}" for count, word in counts if count)
    return ": ".join(part for part in (parts, change.reason) if part)


def _listed(found: Status) -> Iterator[_Title | FileChange | PlanItem]:
    from evalstore.operations.status_report import summed

    if found.changes and found.last_run:
        last = f"run {(found.last_run or '')[:8]} ({when(found.last_started or 0)})"
        yield _Title("changed", f"since {last}")
        yield from found.changes
    for kind, name in (("ask", "ask"), ("record", "take"), ("judge", "judge")):
        items = [item for item in found.items if item.kind == kind]
        if items:
            what = "recorded answer" if kind == "record" else _WORDS[kind]
            yield _Title(name, plural(sum(item.count for item in items), what))
            yield from summed(items)
    rest = [line.spans[0].text for line in besides(found) if line.spans]
    if rest:
        yield _Title("besides")
        for text in rest:
            yield _Title("", text)


_WORDS = {"ask": "answer", "judge": "judgement"}


def _nothing(found: Status) -> str:
    return (
        f"Nothing to do: {plural(found.reuse, 'answer')} of {plural(found.models, 'candidate')}\n"
        "and all judgements are stored.\n\n{case.edit} in the cases edits a test; "
        "{history.status} then shows what it means."
    )

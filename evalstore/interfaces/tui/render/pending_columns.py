"""The columns of the pending work, and the texts of its lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from evalstore.core.display import widest
from evalstore.core.errors import Problem
from evalstore.interfaces.tui.render.verdicts import short_names
from evalstore.interfaces.tui.widgets.column_names import case_names, only_file
from evalstore.interfaces.tui.widgets.grid_columns import GAP, MARGIN, NEVER, Column
from evalstore.results.edits.change_text import change_text, reason_text

if TYPE_CHECKING:
    from evalstore.interfaces.tui.render.pending_lines import PendingLines
    from evalstore.planning.plan_item import PlanItem
    from evalstore.planning.status.status_report import FileChange

_TITLES = ("what", "file", "row", "candidate", "by", "why")
_LEAST = (0, 10, 16, 9, 9, 10)
"""How narrow each column may become."""
_SINCE = (46, 0, 0, 0, 72, 46)
"""The widths of the table from which on there is room for each column, when texts are long."""
_SINCE_OF_ONE_FILE = (0, 0, 0, 0, 60, 38)
"""The same when all lines are of one file, which has no column then."""


class LineTexts:
    """The texts of lines, with short names of the candidates and evaluators."""

    def __init__(
        self,
        lines: PendingLines,
        prompts: Mapping[str, Mapping[str | None, str]],
        at_each_end: int | None = None,
    ) -> None:
        """`prompts` has for test files with several system prompts what to call each.

        Of many items, so many at each end decide how wide the columns are.
        """
        names = ["", *lines.models]
        self._models = dict(zip(names, short_names(names), strict=True))
        self._prompts = prompts
        self.file = only_file(lines.files)
        """The file that all lines are of, if there is only one."""
        self.columns = _columns(
            [self.of(line) for line in lines.samples(at_each_end)], bool(self.file)
        )

    def of(self, item: FileChange | PlanItem | Problem) -> tuple[str, ...]:
        """Return the texts of a line, one for each column."""
        from evalstore.planning.status.status_report import FileChange

        if isinstance(item, Problem):
            place = "" if item.line is None else f"line {item.line}"
            return item.severity, item.file, place, "", "", item.message
        if isinstance(item, FileChange):
            return item.letters, item.file, "", "", "", change_text(item)
        count = f" ({item.count}x)" if item.count > 1 else ""
        return (
            *(item.kind, item.file, self.row_of(item), self._models[item.model]),
            *(self._models[item.evaluator or ""], reason_text(item) + count),
        )

    def row_of(self, item: PlanItem) -> str:
        """Return the row, and the system prompt where the file has several."""
        prompt = self._prompts.get(item.file, {}).get(item.prompt)
        return f"{item.row} ({prompt})".lstrip() if prompt else item.row


def _columns(texts: Sequence[Sequence[str]], has_one_file: bool) -> list[Column]:
    """Return the columns, each as wide as what is in it; there is none without a text."""
    names = case_names((file, row, candidate) for _, file, row, candidate, *_ in texts)
    widths = [widest(column) for column in zip(*texts, strict=True)] or [0] * len(_TITLES)
    sizes = _SINCE
    if has_one_file:  # the title names it
        widths[1], sizes = 0, _SINCE_OF_ONE_FILE
    needed = [max(width, len(title)) for width, title in zip(widths, _TITLES, strict=True)]
    room = MARGIN + sum(size + GAP for size, width in zip(needed, widths, strict=True) if width)
    columns = zip(_TITLES, widths, needed, _LEAST, sizes, strict=True)
    return [
        Column(
            title,
            need,
            grows=True,
            most=need,
            least=min(least or need, need),
            since=min(since, room - GAP) if width else NEVER,
            names=names.get(title),
        )
        for title, width, need, least, since in columns
    ]

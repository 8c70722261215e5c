"""The columns of a table and its cells: names that are shortened, shared widths, drawn lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from os.path import commonprefix
from typing import NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from evalstore.core.display import (
    StyledSpan,
    clip,
    columns_of,
    one_line,
    shared_starts,
    shorten_label,
    steady,
)

_AND = ", "
_NEXT_KEY = re.compile(f"{_AND}[^,=]+=")
_COMPARED = 3_000
"""Of more names only the start that all of them share is known: sorting them takes too long."""


class ShortenedNames:
    """The names of a column, in groups whose names are compared with each other.

    They are compared when the first of a group is too long for its column.
    """

    def __init__(self, names_of: Callable[[str], Sequence[str]]) -> None:
        """`names_of` returns all names of a group."""
        self._names_of = names_of
        self._groups: dict[str, _SharedStarts] = {}

    def forget(self) -> None:
        """Forget the names, of a table that is not drawn any more."""
        self._names_of = lambda _group: ()

    def shorten(self, name: str, columns: int, group: str = "") -> str:
        """Return a name as one line of at most this many columns.

        When not all names of the group fit, the fields that all of them begin with
        (`lang=en, question=`) are left out; of a path that does not fit, the folders (`…/late.md`):
        those that all have, or all of them if no other name ends alike.
        """
        text = one_line(name)
        if group not in self._groups:
            self._groups[group] = _SharedStarts([one_line(name) for name in self._names_of(group)])
        starts = self._groups[group]
        if columns_of(text) <= columns and starts.longest <= columns:
            return text
        own = text[starts.fields :] if starts.covers(text) else text
        file = text.rpartition("/")[2]
        ends = [text[starts.folders - 1 :]] + [f"/{file}"] * (starts.files.get(file) == 1)
        fitting = (f"…{end}" for end in ends if starts.folders and columns_of(end) < columns)
        if columns_of(own) > columns and (in_folder := next(fitting, "")):
            return in_folder
        return shorten_label(own, columns, max(0, starts.of(text) - (len(text) - len(own))))


class _SharedStarts:
    """What names have in common at their start."""

    def __init__(self, names: Sequence[str]) -> None:
        first, last = (min(names), max(names)) if names else ("", "")
        common = commonprefix((first, last))  # noqa: RUF071 - letters are compared
        self._common = "" if first == last else common
        self.longest = max(map(columns_of, names), default=0)
        """Columns of the widest name."""
        self.fields = self._common.rfind("=") + 1
        """The length of the fields that all names begin with, and of the next key if it is the last
        one: `7, class=first` would say what only one of its values is."""
        if _NEXT_KEY.search(first, self.fields):
            self.fields = self._common.rfind(_AND) + len(_AND) if _AND in self._common else 0
        self.folders = self._common.rfind("/") + 1
        """The length of the folders that all names begin with."""
        some = names if len(names) <= _COMPARED else ()
        self.files = Counter(name.rpartition("/")[2] for name in set(some))
        self._starts = shared_starts(some)

    def covers(self, name: str) -> bool:
        """Return whether the name begins as all names of the group do."""
        return name.startswith(self._common)

    def of(self, name: str) -> int:
        """Return how many characters at its start a name shares with the one most like it."""
        return self._starts.get(name, len(self._common) if self.covers(name) else 0)


def case_names(places: Iterable[tuple[str, str, str]]) -> dict[str, ShortenedNames]:
    """Return the names of the columns `file`, `row` and `candidate` of these places.

    The group of a row is its file.
    """
    listed = list(places)

    @cache
    def rows_by_file() -> Mapping[str, list[str]]:
        rows: dict[str, list[str]] = {}
        for file, row, _ in listed:
            if row:
                rows.setdefault(file, []).append(row)
        return rows

    return {
        "file": ShortenedNames(lambda _: [file for file, _, _ in listed]),
        "row": ShortenedNames(lambda file: rows_by_file().get(file, [])),
        "candidate": ShortenedNames(lambda _: [model for _, _, model in listed if model]),
    }


def only_file(files: Iterable[str]) -> str:
    """Return the file that all are of; empty when there are several, or none."""
    rest = iter(files)
    first = next(rest, "")
    return first if all(file == first for file in rest) else ""


# --- columns, and which of them there is room for


GAP = 2
"""Blanks between two columns."""
MARGIN = 2
"""Characters in front of the first, for the mark."""

_READABLE = 7
"""So many characters of a text that is cut say something."""
NEVER = 1 << 30
"""As `Column.since`: it is not drawn, but saved with the others."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its title and its width in characters."""

    title: str
    width: int
    right: bool = False
    """Whether numbers stand on its right side."""
    grows: bool = False
    """Whether it takes its share of the room that is left."""
    most: int = 0
    """The width of what is in it, to which it grows, with the title; 0: it grows without end."""
    since: int = 0
    """The width of the table from which on there is room for it."""
    picks: bool = False
    """Whether the cursor can be in it, as one among several."""
    is_empty: bool = False
    """Whether no row has anything in it: then it is seen only when the cursor is in it."""
    least: int = 0
    """How narrow it may become for others to have room; 0: as wide as it is."""
    is_saved: bool = True
    """Whether it is saved with the table."""
    names: ShortenedNames | None = None
    """What is in it, when it is names: one that is too long keeps what distinguishes it."""
    heads: tuple[str, ...] = ()
    """Texts of one line or two for the top in place of the title, the one that says most first.

    The same number of them is shown above all columns: the first for which there is room, else the
    last, of which the first line is then cut.
    """
    head_names: ShortenedNames | None = None
    """What is in the first lines of heads: one that is too long keeps what distinguishes it."""


class VisibleColumns(NamedTuple):
    """What can be seen of the columns."""

    shown: tuple[int, ...]
    """Their numbers."""
    columns: tuple[Column, ...]
    """These, as wide as they are drawn; `‹` and `›` say that there are more at that side."""
    first: int
    """The first that can be seen of those that can be picked."""

    @property
    def head_lines(self) -> int:
        """Return how many lines the titles take."""
        return 2 if any("\n" in column.title for column in self.columns) else 1

    def title(self, number: int, line: int) -> str:
        """Return a line of the title of a column; empty if the column cannot be seen."""
        if number not in self.shown:
            return ""
        lines = self.columns[self.shown.index(number)].title.split("\n")
        return lines[line] if line < len(lines) else ""

    def column_at(self, x: int) -> int | None:
        """Return the number of the column that is drawn at an offset."""
        end = MARGIN
        for number, column in zip(self.shown, self.columns, strict=True):
            end += column.width + GAP
            if MARGIN <= x < end:
                return number
        return None


def fit_columns(columns: Sequence[Column], width: int, picked: int, first: int) -> VisibleColumns:
    """Share a width among the columns; of those that can be picked `picked` is always seen.

    `first` is the column that was seen first: it stays so as far as that is possible.
    """
    fixed = [n for n, column in enumerate(columns) if column.since <= width and not column.picks]
    every = [n for n, column in enumerate(columns) if column.picks]
    at = every[picked] if picked < len(every) else None
    picks = [n for n in every if n == at or not columns[n].is_empty]
    picked = picks.index(at) if at is not None else 0
    made: dict[int, Column] = {}
    for n in (*fixed, *picks):
        narrow = columns[n].least or columns[n].width
        if columns[n].grows:
            narrow = min(narrow, _wide(columns[n], narrow))
        made[n] = replace(columns[n], width=narrow)
    fixed = _cut_to(fixed, made, width - (made[at].width + GAP if at is not None else 0))
    room = width - MARGIN + GAP - sum(made[n].width + GAP for n in fixed)
    fits, taken = 0, 0
    for n in picks:
        taken += made[n].width + GAP
        fits += taken <= room
    fits = max(1, fits)
    first = max(0, min(first, picked, len(picks) - fits))
    first = max(first, min(picked - fits + 1, len(picks) - fits))
    seen = picks[first : first + fits]
    shown = sorted([*fixed, *seen])
    room = max(0, room - sum(made[n].width + GAP for n in seen))
    names = [n for n in shown if columns[n].grows and columns[n].most]
    room = _share(room, names, columns, made, width)  # they are worth more than titles
    both = 2 if len(seen) == 1 else 1  # that one may have columns on both sides
    marks = dict.fromkeys(seen, 2 * both * (len(seen) < len(picks)))
    level, room = _widen_for_heads(room, shown, made, marks)
    _share(room, [n for n in shown if n not in names], columns, made, width)
    for n in shown:
        left = "‹ " if first and n == seen[0] else ""
        right = " ›" if first + fits < len(picks) and n == seen[-1] else ""
        made[n] = replace(made[n], title=_cut_head(made[n], level, left, right))
    return VisibleColumns(tuple(shown), tuple(made[n] for n in shown), first)


def _cut_to(numbers: list[int], made: dict[int, Column], width: int) -> list[int]:
    """Return the columns for which there is room when the widest texts are cut, not numbers."""
    shown = list(numbers)
    while shown and (
        over := max(0, MARGIN - GAP + sum(made[n].width + GAP for n in shown) - width)
    ):
        texts = [n for n in shown if not made[n].right] or shown
        widest = max(texts, key=lambda n: made[n].width)
        cut = min(over, made[widest].width - (_READABLE if len(shown) > 1 else 1))
        if cut > 0:
            made[widest] = replace(made[widest], width=made[widest].width - cut)
        elif len(shown) > 1:
            shown.pop()
        else:
            break
    return shown


def full_width(columns: Sequence[Column]) -> int:
    """Return the width in which nothing of the columns is cut; that of some has no limit."""
    widths = [
        max(_wide(column, NEVER), max(map(_columns_of_head, column.heads), default=0))
        for column in columns
        if column.since < NEVER and not column.is_empty
    ]
    return MARGIN - GAP + sum(width + GAP for width in widths)


def _share(
    room: int, among: Sequence[int], columns: Sequence[Column], made: dict[int, Column], width: int
) -> int:
    """Widen these columns by the same number, each at most to its need; returns what is left."""
    missing = {n: max(0, _wide(columns[n], width) - made[n].width) for n in among}
    share = room
    while sum(min(number, share) for number in missing.values()) > room:
        share -= 1
    room -= sum(min(number, share) for number in missing.values())
    for n in among:
        more = min(missing[n], share + room * columns[n].grows)
        room -= max(0, more - share)
        made[n] = replace(made[n], width=made[n].width + more)
    return room


def _widen_for_heads(
    room: int, shown: Sequence[int], made: dict[int, Column], reserved: Mapping[int, int]
) -> tuple[int, int]:
    """Widen columns for the first of their heads that fit; returns its number and the room left.

    If none fit it is that of the last, and no column is widened.
    """
    headed = [n for n in shown if made[n].heads]
    levels = max((len(made[n].heads) for n in headed), default=1)
    for level in range(levels):
        missing = {
            n: max(0, _columns_of_head(_head(made[n], level), reserved.get(n, 0)) - made[n].width)
            for n in headed
        }
        if sum(missing.values()) <= room:
            made |= {n: replace(made[n], width=made[n].width + missing[n]) for n in headed}
            return level, room - sum(missing.values())
    return levels - 1, room


def _head(column: Column, level: int) -> str:
    """Return the text for the top; a column with fewer of them is headed by its last one."""
    return column.heads[min(level, len(column.heads) - 1)] if column.heads else column.title


def _columns_of_head(head: str, reserved: int = 0) -> int:
    """Return the width of a head; `reserved` is for signs in its first line."""
    first, *others = map(columns_of, head.split("\n"))
    return max([first + reserved, *others])


def _cut_head(column: Column, level: int, left: str, right: str) -> str:
    """Return the head of a column, with its first line cut to the width between two signs."""
    first, *others = _head(column, level).split("\n")
    room = max(0, column.width - len(left) - len(right))
    if column.head_names and columns_of(first) > room:
        first = column.head_names.shorten(first, room)
    elif right:
        first = first[:room]
    return "\n".join([f"{left}{first}{right}", *others])


def _wide(column: Column, room: int) -> int:
    """Return the greatest useful width of a column; one without a limit takes the `room`."""
    if not column.grows:
        return column.width
    return max(column.most, len(column.title)) if column.most else room


# --- cells, drawn in lines: cut to the width of their columns, in the colours of a style


_BLANKS = re.compile(" +")
_BEFORE = 24
"""The most characters before what stays visible, unless all that follows fits with more."""


class StyledCell(NamedTuple):
    """A text and the name of its colour: a verdict, `faint`, or none."""

    text: str
    colour: str = ""
    plain: str = ""
    """The same without signs, for other programs."""
    parts: tuple[StyledSpan, ...] = ()
    """Parts of different colours that are drawn in place of the text."""
    group: str = ""
    """Of a name: the group whose names it is to be distinguished from."""
    seen: tuple[int, int] | None = None
    """Start and end of what stays visible in the drawn text; it is then cut between words."""

    @property
    def drawn(self) -> str:
        """Return the text that is drawn."""
        return "".join(part.text for part in self.parts) if self.parts else self.text


class LineStyle(NamedTuple):
    """The style of a line."""

    base: Style
    colours: Callable[[str], Style]
    """The style of a part by its name."""
    is_highlighted: bool = False
    """Whether the cursor is in it: the picked cell is shown."""
    mark: str = " "
    is_title: bool = False
    """Whether it names the columns: its texts are cut, but not shortened as names are."""

    def of(self, colour: str) -> Style:
        """Return the style of a part by the name of its colour, if it has one."""
        return self.base + self.colours(colour) if colour else self.base


def is_heading(cells: Sequence[StyledCell], columns: Sequence[Column]) -> bool:
    """Return whether there is one text, for the whole width."""
    return len(cells) == 1 < len(columns)


def draw_heading(cell: StyledCell, style: LineStyle, width: int) -> Strip:
    """Draw a text as wide as the table, below its title and the other texts of the screen."""
    text = Segment(f" {clip(steady(cell.text), width - 1)}", style.of(cell.colour))
    return Strip([text]).adjust_cell_length(width, style.base)


def draw_line(
    cells: Sequence[StyledCell],
    visible: VisibleColumns,
    picked: int | None,
    style: LineStyle,
    width: int,
) -> Strip:
    """Draw a line with a cell for each visible column; the cursor is in the column `picked`."""
    segments = [Segment(f"{style.mark} ", style.of("mark"))]
    for number, column in zip(visible.shown, visible.columns, strict=True):
        cell = _steady(cells[number]) if number < len(cells) else StyledCell("")
        if cell.seen and columns_of(cell.drawn) > column.width:
            cell = _around(cell, *cell.seen, column.width)
        if column.names and not style.is_title and column.width < column.most:
            text = column.names.shorten(cell.drawn, column.width, cell.group)
        else:
            text = clip(cell.drawn, column.width)
        blank = " " * (column.width - columns_of(text))
        if parts := _cut_parts(cell, text):
            segments += (Segment(part.text, style.of(part.colour)) for part in parts)
            segments.append(Segment(blank + " " * GAP, style.base))
            continue
        full = style.of(cell.colour)
        if style.is_highlighted and number == picked:
            full += style.colours("picked")
        shown = blank + text if column.right else text + blank
        segments += [Segment(shown, full), Segment(" " * GAP, style.base)]
    return Strip(segments).adjust_cell_length(width, style.base)


def _steady(cell: StyledCell) -> StyledCell:
    """Return a cell of which all terminals agree how wide it is."""
    text = cell.drawn
    if text.isascii():
        return cell
    first, last = cell.seen or (0, 0)
    return cell._replace(
        text=steady(cell.text),
        parts=tuple(part._replace(text=steady(part.text)) for part in cell.parts),
        seen=(len(steady(text[:first])), len(steady(text[:last]))) if cell.seen else None,
    )


def _around(cell: StyledCell, first: int, last: int, columns: int) -> StyledCell:
    """Return a cell cut to the words around a part of its text, as many as fit."""
    text = cell.drawn
    starts = [0, *(match.end() for match in _BLANKS.finditer(text, 0, first))]
    fitting = (at for at in starts if columns_of(text[at:last]) + (at > 0) + 1 <= columns)
    lead = [at for at in fitting if not at or first - at <= min(_BEFORE, columns // 2)]
    begin = lead[0] if lead else first
    begin = next((i for i in starts if i < first and columns_of(text[i:]) + 1 <= columns), begin)
    head = "…" if begin else ""
    end = len(text)
    if columns_of(text[begin:]) + len(head) > columns:
        end = begin + len(clip(text[begin:], columns - len(head))) - 1
        blank = text.rfind(" ", last, end + 1)
        end = blank if blank >= last else end
    parts, at = [StyledSpan(head)], 0
    for span in cell.parts:
        parts.append(span._replace(text=span.text[max(0, begin - at) : max(0, end - at)]))
        at += len(span.text)
    parts.append(StyledSpan("…" if end < len(text) else ""))
    shown = f"{head}{text[begin:end]}{parts[-1].text}"
    return cell._replace(text=shown, parts=tuple(parts) if cell.parts else ())


def _cut_parts(cell: StyledCell, text: str) -> Sequence[StyledSpan]:
    """Return the parts of a cell, or as much of them as its text is after it was cut at its end."""
    if text == cell.drawn:
        return cell.parts
    kept = len(text) - 1
    if not cell.parts or not text.endswith("…") or cell.drawn[:kept] != text[:kept]:
        return ()
    cut: list[StyledSpan] = []
    for part in cell.parts:
        cut.append(part._replace(text=part.text[:kept]))
        kept -= len(part.text)
        if kept <= 0:
            break
    return (*cut, cut[-1]._replace(text="…"))

"""A text to read: wrapped to the width, and drawn line by line, however long it is.

Its colours can be read in every theme: they get the contrast that WCAG 2 asks for (level AA).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar

from rich.cells import cell_len, chop_cells
from rich.segment import Segment
from rich.style import Style
from textual.app import App
from textual.binding import Binding, BindingType
from textual.color import BLACK, WHITE, Color
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from evalstore.core.display import BADGE, StyledLine, StyledSpan, safe, steady

TEXT_CONTRAST = 4.5
"""The least contrast of a text with its background."""
BAR_CONTRAST = 3.0
"""The least contrast of bars and of what scrolls."""
_STEPS = 20
"""In so many steps a colour becomes black or white."""
_PAGE = ("surface", "panel", "background", "cursor-line")
"""The backgrounds of pages, and that of the line with the cursor."""
_TINT = 0.25
"""How much of its main colour a theme adds to the line with the cursor."""
_MESSAGE = ("panel-lighten-1",)
"""The background of messages in passing."""
_TEXTS = {
    "foreground": _PAGE,
    "text-primary": _PAGE,
    "text-secondary": _PAGE,
    "text-accent": _PAGE,
    "text-warning": _PAGE,
    "block-cursor-foreground": ("block-cursor-background",),
    "footer-foreground": ("footer-background",),
    "footer-key-foreground": ("footer-background",),
    "footer-description-foreground": ("footer-background",),
    "link-color": _PAGE,
    **{f"markdown-h{level}-color": _PAGE for level in range(1, 7)},
}
"""The colours of texts, and the backgrounds that they are seen on."""
_VIVID = {"text-success": ("success", 0.6), "text-error": ("error", 0.85)}
"""The colours of verdicts: what each is made from, and how saturated it is at least."""
_PINK, _RED = 0.83, 0.98
"""From which hue on a colour is made red."""
_MADE = {
    "faint": ("text-muted", _PAGE),
    "message-foreground": ("foreground", _MESSAGE),
    "message-information": ("success", _MESSAGE),
    "message-warning": ("warning", _MESSAGE),
    "message-error": ("error", _MESSAGE),
}
"""Colours that themes do not have: what each is made from, and its backgrounds."""
_THUMB = "scroll-thumb"
CURSOR_LINE = "cursor-line"
"""The background of the line with the cursor, on which texts keep their colours."""


def contrast(text: Color, ground: Color) -> float:
    """Return the ratio of their luminances, from 1 to 21; the text may be transparent."""
    light, dark = sorted(map(_luminance, (ground + text, ground)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def readable(text: Color, grounds: Sequence[Color], least: float = TEXT_CONTRAST) -> Color:
    """Return the nearest colour with enough contrast, on the way to black or to white."""
    first = grounds[0]
    colour = first + (first.get_contrast_text(text.a) if text.auto else text)
    target = max((BLACK, WHITE), key=lambda end: contrast(end, first))
    for step in range(_STEPS + 1):
        moved = colour.blend(target, step / _STEPS)
        if all(contrast(moved, ground) >= least for ground in grounds):
            return moved
    return target


def vivid(colour: Color, grounds: Sequence[Color], saturation: float) -> Color:
    """Return a colour of this hue, as saturated as this, that can be read: lighter or darker."""
    hue, own, start = colour.hsl
    hue = max(hue, _RED) if hue > _PINK else hue
    end = float(contrast(WHITE, grounds[0]) > contrast(BLACK, grounds[0]))
    for step in range(_STEPS + 1):
        lightness = start + (end - start) * step / _STEPS
        moved = Color.from_hsl(hue, max(own, saturation), lightness)
        if all(contrast(moved, ground) >= TEXT_CONTRAST for ground in grounds):
            break
    return moved


def readable_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a theme, with readable texts; a terminal's own colours stay."""
    texts = {name: (name, grounds) for name, grounds in _TEXTS.items() if name in variables}
    changed = dict(variables)
    surface = parse_colour(variables["surface"])
    is_terminals = surface.ansi is not None or not surface.a
    cursor = variables["block-cursor-background"]
    if not is_terminals:
        cursor = surface.blend(parse_colour(variables["primary"]), _TINT).hex
    changed[CURSOR_LINE] = cursor
    for name, (source, grounds) in (texts | _MADE).items():
        changed[name] = _made_readable(changed, source, grounds, TEXT_CONTRAST)
    for name, (source, saturation) in _VIVID.items():
        colour = parse_colour(variables[source])
        if not is_terminals and colour.ansi is None:
            pages = [parse_colour(changed[ground]) for ground in _PAGE]
            changed[name] = vivid(colour, pages, saturation).hex
    source = "scrollbar" if is_terminals else "surface"
    changed[_THUMB] = _made_readable(variables, source, ("surface",), BAR_CONTRAST)
    return changed


def _made_readable(
    variables: Mapping[str, str], source: str, grounds: Sequence[str], least: float
) -> str:
    colour = parse_colour(variables[source])
    parsed = [parse_colour(variables[ground]) for ground in grounds]
    if any(other.ansi is not None or not other.a for other in (colour, *parsed)):
        return variables[source]
    return readable(colour, parsed, least).hex


def parse_colour(text: str) -> Color:
    """Parse a colour as themes write it: `#1e1e1e`, `auto 60%`, `ansi_default 50%`."""
    name, _, percent = text.partition(" ")
    alpha = float(percent.rstrip("%")) if percent else 100.0
    return (
        Color.automatic(alpha) if name == "auto" else Color.parse(name).multiply_alpha(alpha / 100)
    )


def _luminance(colour: Color) -> float:
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in colour.normalized
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


# --- named styles of parts of a text, with the colours of the theme


def find_style(app: App[Any], rules: Mapping[str, tuple[str, str]], name: str) -> Style:
    """Return a style in the theme of the browser; raises `KeyError` for an unknown name.

    `rules` are names with a variable of the theme, or nothing, and a text style. Component classes
    can do the same, but each is matched against all rules whenever a widget that has it is mounted
    or focused: that took a third of the time in which a screen opens.
    """
    variable, text_style = rules[name]
    return _make_style(app.theme_variables[variable] if variable else "", text_style)


@cache
def _make_style(colour: str, text_style: str) -> Style:
    style = Style.parse(text_style)
    if not colour:
        return style
    parsed = parse_colour(colour)
    return Style(color=parsed.rich_color if parsed.a else None) + style


TEXT_STYLES = {
    "heading": ("text-primary", "bold"),
    "faint": ("faint", ""),
    "pass": ("text-success", "bold"),
    "fail": ("text-error", "bold"),
    "error": ("text-error", "bold"),
    "undecided": ("text-warning", "bold"),
    "pending": ("text-warning", "italic"),
    f"{BADGE}pass": ("text-success", "bold reverse"),
    f"{BADGE}fail": ("text-error", "bold reverse"),
    f"{BADGE}error": ("text-error", "bold reverse"),
    f"{BADGE}undecided": ("text-warning", "bold reverse"),
    "old": ("faint", ""),
    "new": ("text-primary", ""),
    "match": ("text-accent", "bold"),
    "strong": ("", "bold"),
    "emphasis": ("", "italic"),
    "link": ("", "underline"),
    "code": ("text-accent", ""),
    "code-keyword": ("text-primary", "bold"),
    "code-string": ("text-secondary", ""),
    "code-number": ("text-warning", ""),
}
"""What has a style of its own."""


class TextView(ScrollView, can_focus=True, inherit_bindings=False):
    """Lines of text, wrapped. Never markup.

    It has no keys to scroll sideways: these are left to the screen.
    """

    DEFAULT_CSS = """
    TextView {
        height: 1fr;
        background: $surface;
        color: $foreground;
        padding: 0 0 0 1;
        overflow-x: hidden;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "scroll_down", "Down", show=False, id="text.down"),
        Binding("up,k", "scroll_up", "Up", show=False, id="text.up"),
        Binding("pagedown,ctrl+f,space", "page_down", "Page down", show=False, id="text.page_down"),
        Binding("pageup,ctrl+b", "page_up", "Page up", show=False, id="text.page_up"),
        Binding("ctrl+d", "half(1)", "Half a page down", show=False, id="text.half_down"),
        Binding("ctrl+u", "half(-1)", "Half a page up", show=False, id="text.half_up"),
        Binding("home,g", "scroll_home", "Start", show=False, id="text.start"),
        Binding("end,G", "scroll_end", "End", show=False, id="text.end"),
    ]

    def __init__(self, *, id: str | None = None, is_fixed: bool = False) -> None:
        """Make an empty view; one that `is_fixed` never has the focus, and is not scrolled."""
        super().__init__(id=id)
        if is_fixed:
            self.can_focus = False
            self.styles.overflow_y = "hidden"
        self._lines: Sequence[StyledLine] = ()
        self._written: Sequence[StyledLine] = ()
        self._wrapped: list[tuple[StyledSpan, ...]] = []
        self._revealed = ""
        """The colour that was scrolled to."""

    def show(
        self,
        lines: Iterable[StyledLine],
        *,
        stay: bool = False,
        written: Sequence[StyledLine] | None = None,
    ) -> None:
        """Show these lines, from the top unless it is to `stay` where it is.

        Copied and saved are the `written` lines when they differ, as those of Markdown do.
        """
        self._lines = [_printable(line) for line in lines]
        self._written = self._lines if written is None else written
        self._wrap()
        self._revealed = ""
        if not stay:
            self.scroll_to(y=0, animate=False, immediate=True)
        self.refresh()

    def reveal(self, colour: str) -> None:
        """Scroll to the first part of this colour, unless it is on the screen."""
        rows = (n for n, row in enumerate(self._wrapped) if colour in [it.colour for it in row])
        row, height = next(rows, 0), self.scrollable_content_region.height
        self._revealed = colour
        if not 0 <= row - self.scroll_offset.y < height:
            self.scroll_to(y=max(0, row - height // 3), animate=False, immediate=True)

    @property
    def text(self) -> str:
        """Return all that is shown, unwrapped and as it is written."""
        return "\n".join(line.text for line in self._written)

    @property
    def indented_text(self) -> str:
        """Return the same with each line as far to the right as it is shown."""
        return indented_text(self._written)

    @property
    def text_width(self) -> int:
        """Return the columns of a line of text; one is left free before the scrollbar."""
        return max(1, self.scrollable_content_region.width - 1)

    def _wrap(self) -> None:
        width = self.text_width
        self._wrapped = [row for line in self._lines for row in wrap_line(_drawn(line), width)]
        self.virtual_size = Size(width, len(self._wrapped))

    def action_half(self, by: int) -> None:
        """Scroll by half of what can be seen."""
        step = by * max(1, self.scrollable_content_region.height // 2)
        self.scroll_relative(y=step, animate=False, immediate=True)

    def watch_show_vertical_scrollbar(self) -> None:
        """Fit the text to the room that it has now: the scrollbar takes some from it."""
        self._wrap()
        if self._revealed:
            self.reveal(self._revealed)

    def on_resize(self) -> None:
        """Fit the text again."""
        self._wrap()

    def _style(self, colour: str) -> Style:
        """Return the style of a name, or of the two colours of a piece of an image."""
        is_of_image = colour.startswith("#")
        return Style.parse(colour) if is_of_image else find_style(self.app, TEXT_STYLES, colour)

    def render_line(self, y: int) -> Strip:
        """Draw a line."""
        width = self.scrollable_content_region.width
        number = y + self.scroll_offset.y
        base = self.rich_style
        if number >= len(self._wrapped):
            return Strip.blank(width, base)
        segments = [
            Segment(span.text, base + self._style(span.colour) if span.colour else base)
            for span in self._wrapped[number]
        ]
        return Strip(segments).adjust_cell_length(width, base)


def indented_text(lines: Iterable[StyledLine]) -> str:
    """Return lines as one text, each as far to the right as it is shown."""
    return "\n".join((" " * line.indent + line.text).rstrip() for line in lines)


def _printable(line: StyledLine) -> StyledLine:
    """Return a line with control characters as escapes, wherever its texts come from."""
    if all(span.text.isprintable() for span in line.spans):
        return line
    return line._replace(spans=tuple(span._replace(text=safe(span.text)) for span in line.spans))


def _drawn(line: StyledLine) -> StyledLine:
    """Return a line as it is drawn: as wide in all terminals, with blanks around each badge."""
    if all(span.text.isascii() and not span.colour.startswith(BADGE) for span in line.spans):
        return line
    blanks = (" " if span.colour.startswith(BADGE) else "" for span in line.spans)
    texts = (f"{end}{steady(it.text)}{end}" for it, end in zip(line.spans, blanks, strict=True))
    spans = map(StyledSpan, texts, (span.colour for span in line.spans))
    return line._replace(spans=tuple(spans))


def wrap_line(line: StyledLine, width: int) -> Iterator[tuple[StyledSpan, ...]]:
    """Yield the parts of a line that fit; broken between words where there are any."""
    room = max(10, width - line.indent)
    hang = min(line.hang, max(0, room - 10))
    pad, next_pad = _pad(line.indent), _pad(line.indent + hang)
    if line.mark:
        hang += len(line.mark)
        next_pad = (*next_pad, StyledSpan(line.mark, line.spans[0].colour))
    text = line.spans[0].text if len(line.spans) == 1 else "".join(span.text for span in line.spans)
    if len(text) <= room and (text.isascii() or cell_len(text) <= room):
        yield (*pad, *line.spans)
        return
    if len(line.spans) == 1:
        colour = line.spans[0].colour
        for start, end in _rows(text, room, hang):
            yield (*pad, StyledSpan(text[start:end], colour))
            pad = next_pad
        return
    spans = iter(line.spans)
    span, begin = next(spans), 0
    for start, end in _rows(text, room, hang):
        row: list[StyledSpan] = []
        while True:
            part = span.text[max(0, start - begin) : end - begin]
            if part:
                row.append(StyledSpan(part, span.colour))
            if begin + len(span.text) >= end:
                break
            begin += len(span.text)
            span = next(spans)
        yield (*pad, *row)
        pad = next_pad


def _pad(blanks: int) -> tuple[StyledSpan, ...]:
    """Return the blanks in front of a row."""
    return (StyledSpan(" " * blanks),) if blanks else ()


def _rows(text: str, room: int, hang: int) -> Iterator[tuple[int, int]]:
    """Yield where each row of a text starts and ends; look at a row of it at a time.

    All rows but the first have `hang` columns less.
    """
    start, size = 0, len(text)
    while start < size:
        part = text[start : start + room]
        if not part.isascii() and cell_len(part) > room:
            part = chop_cells(part, room)[0] or part[:1]
        end = start + len(part)
        if end < size and text[end] != " ":
            blank = text.rfind(" ", start, end)
            if blank > start and not text[start:blank].isspace():
                end = blank + 1
        yield start, end
        room, hang = room - hang, 0
        start = end
        while start < size and text[start] == " ":
            start += 1


# --- a text that is made for the size of its widget, such as a plot


FittedLines = Callable[[int, int], Iterable[StyledLine]]
"""Makes the lines for a width and a height."""


class FittedView(TextView):
    """Shows lines that depend on its size; they are made again when it changes."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._make: FittedLines = lambda _width, _height: ()

    def fit(self, make: FittedLines, *, stay: bool = False) -> None:
        """Show the lines that `make` returns, from the top unless they are to `stay`."""
        self._make = make
        self.refit(stay=stay)

    def refit(self, *, stay: bool = True) -> None:
        """Make the lines again."""
        size = self.scrollable_content_region.size
        if size.width and size.height:
            self.show(self._make(self.text_width, size.height), stay=stay)

    def on_resize(self) -> None:
        """Make the lines again."""
        self.refit()

"""Readable colours in every theme: texts get the contrast that WCAG 2 asks for (level AA)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from rich.style import Style
from textual.app import App
from textual.color import BLACK, WHITE, Color

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

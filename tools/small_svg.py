"""Makes pictures of the browser small, and the same with every font.

They have no fonts and no clipping, and short numbers. Signs of plots, which many fonts lack, are in
elements of their own: a substitute of another width moves nothing beside it.
"""

from __future__ import annotations

import html
import re

from evalstore.core.display import columns_of

_FONTS = re.compile(r"\s*@font-face \{.*?\}\n", re.DOTALL)
_CLIP_PATHS = re.compile(r"<clipPath id=\"[^\"]*-line-\d+\">.*?</clipPath>\s*", re.DOTALL)
_CLIPS = re.compile(r" clip-path=\"url\(#[^\"]*-line-\d+\)\"")
_PREFIX = re.compile(r"\bterminal-\d+-")
_NUMBER = re.compile(r"(?<=[\" (,])\d+\.\d+(?=[\" ),p])")
_EMPTY_TEXTS = re.compile(r"<text [^>]*>(?:\s|&#160;)*</text>")
_TEXT = re.compile(
    r'<text (class="[^"]*") x="([\d.]+)"( y="[\d.]+") textLength="([\d.]+)"([^>]*)>([^<]*)</text>'
)
_PLOTTED = re.compile("([\u2500-\u25ff\u2800-\u28ff]+)")
"""Box drawing, blocks, shapes and braille."""


def _without_fonts(svg: str) -> str:
    """The picture without rules that fetch fonts to show it; signs of plots stand alone."""
    return _TEXT.sub(_split, _FONTS.sub("", svg))


def _split(match: re.Match[str]) -> str:
    """A text with the signs of plots in elements of their own, each as wide as its columns."""
    look, x, y, width, others, content = match.groups()
    text = html.unescape(content)
    parts = [part for part in _PLOTTED.split(text) if part]
    if len(parts) < 2:
        return match[0]
    column, start, elements = float(width) / columns_of(text), float(x), []
    for part in parts:
        wide = column * columns_of(part)
        if part.strip("\xa0 "):
            place = f'{look} x="{start:.1f}"{y} textLength="{wide:.1f}"{others}'
            shown = html.escape(part, quote=False).replace("\xa0", "&#160;")
            elements.append(f"<text {place}>{shown}</text>")
        start += wide
    return "".join(elements)


def shrink(svg: str) -> str:
    """The same picture in fewer characters; numbers have one decimal."""
    svg = _without_fonts(svg)
    for unseen in (_CLIP_PATHS, _CLIPS, _EMPTY_TEXTS):
        svg = unseen.sub("", svg)
    svg = _PREFIX.sub("", svg).replace("&#160;", "\u00a0")
    svg = _NUMBER.sub(lambda match: f"{float(match[0]):.1f}".removesuffix(".0"), svg)
    return "\n".join(line.strip() for line in svg.splitlines() if line.strip()) + "\n"

"""Makes pictures of the browser small: without fonts and clipping, with short numbers."""

from __future__ import annotations

import re

_FONTS = re.compile(r"\s*@font-face \{.*?\}\n", re.DOTALL)
_CLIP_PATHS = re.compile(r"<clipPath id=\"[^\"]*-line-\d+\">.*?</clipPath>\s*", re.DOTALL)
_CLIPS = re.compile(r" clip-path=\"url\(#[^\"]*-line-\d+\)\"")
_PREFIX = re.compile(r"\bterminal-\d+-")
_NUMBER = re.compile(r"(?<=[\" (,])\d+\.\d+(?=[\" ),p])")
_EMPTY_TEXTS = re.compile(r"<text [^>]*>(?:\s|&#160;)*</text>")


def without_fonts(svg: str) -> str:
    """The picture without rules that fetch fonts to show it."""
    return _FONTS.sub("", svg)


def shrink(svg: str) -> str:
    """The same picture in fewer characters; numbers have one decimal."""
    svg = without_fonts(svg)
    for unseen in (_CLIP_PATHS, _CLIPS, _EMPTY_TEXTS):
        svg = unseen.sub("", svg)
    svg = _PREFIX.sub("", svg).replace("&#160;", "\u00a0")
    svg = _NUMBER.sub(lambda match: f"{float(match[0]):.1f}".removesuffix(".0"), svg)
    return "\n".join(line.strip() for line in svg.splitlines() if line.strip()) + "\n"

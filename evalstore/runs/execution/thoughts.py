"""Takes the thoughts of a model off the text of its answer.

Servers that do not know how a model marks its thoughts leave them in front of the answer. Some
chat templates begin them, so that the text has only their end.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterator
from itertools import chain

_NAMES = "(?:think|thinking|thoughts?|seed:think)"
_OPEN = re.compile(
    rf"<{_NAMES}>|\[THINK\]|◁think▷|<\|START_THINKING\|>"
    r"|(?:<\|start\|>assistant)?<\|channel\|>analysis<\|message\|>"
)
_CLOSE = re.compile(rf"</{_NAMES}>|\[/THINK\]|◁/think▷|<\|END_THINKING\|>")
_CHANNEL_END = re.compile(r"<\|end\|>|(?=(?:<\|start\|>assistant)?<\|channel\|>final<)")
_FINAL = re.compile(
    r"\s*(?:<\|start\|>assistant)?<\|channel\|>final<\|message\|>(.*?)(?:<\|(?:return|end)\|>)?\s*",
    re.DOTALL,
)
"""The answer in the format of gpt-oss."""
_WITHOUT_MARKS = re.compile(r"\s*analysis\w.*?assistantfinal(?=\S)", re.DOTALL)
"""The thoughts in that format when a server drops its marks."""
_MOST_BLOCKS = 100
_QUOTES = frozenset("`'\"“”‘’„«»()*")
_CODE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)
_LINE_END = re.compile(r"[ \t]*\r?\n\s*\S")
_LOOKED_AT = 200
"""Characters before a mark that say whether it is in the middle of a sentence."""
_SENTENCE_ENDS = (".", "!", "?", "…", ")", "]", "}", '"', "'")


def without_thoughts(text: str) -> str:
    """Return an answer without the thoughts it begins with; empty if they are all there is.

    A mark that is quoted, in code or in the middle of a sentence stays.
    """
    answer = text
    text = _WITHOUT_MARKS.sub("", text, count=1) if _WITHOUT_MARKS.match(text) else text
    unopened = 1  # the template may have written the first mark, and thoughts may be nested
    for _ in range(_MOST_BLOCKS):
        shown = text.lstrip()
        opened = _OPEN.match(shown)
        text = shown if opened or text is not answer else text
        if opened:
            end, start = _end_of(opened[0]), opened.end()
            ends = chain(_find(end, text, start), _find(end, text, start, in_code=True))
            closed = _find_end(end, text, start) or next(ends, None)
            if closed is None:
                return ""
            unopened = sum(1 for _ in _find(_OPEN, text[start : closed.start()]))
        else:
            closed = _find_end(_CLOSE, text) if unopened else None
            if closed is None or any(_find(_OPEN, text[: closed.start()])):
                break
            unopened -= 1
        text = text[closed.end() :]
    final = _FINAL.fullmatch(text)
    if final:
        return final[1]
    return text if text is answer else text.lstrip()  # the blanks of an answer are its own


def _end_of(opened: str) -> re.Pattern[str]:
    """Return the mark that ends the thoughts which this one begins."""
    if opened.endswith("<|message|>"):
        return _CHANNEL_END
    is_start = "START" in opened
    end = opened.replace("START", "END") if is_start else f"{opened[0]}/{opened[1:]}"
    return re.compile(re.escape(end))


def _find(
    mark: re.Pattern[str], text: str, start: int = 0, *, in_code: bool = False
) -> Iterator[re.Match[str]]:
    """Yield the marks that are not quoted, nor, unless they may be, in a block of code."""
    fences = [] if in_code else [fence.start() for fence in _CODE.finditer(text, start)]
    for each in mark.finditer(text, start):
        around = text[max(each.start() - 1, 0) : each.start()], text[each.end() : each.end() + 1]
        is_quoted = all(char in _QUOTES and char for char in around)
        before = bisect(fences, each.start())
        if not is_quoted and (before % 2 == 0 or before == len(fences)):
            yield each


def _find_end(mark: re.Pattern[str], text: str, start: int = 0) -> re.Match[str] | None:
    """Return the first mark that is not in the middle of a sentence."""
    for each in _find(mark, text, start):
        before = text[max(start, each.start() - _LOOKED_AT) : each.start()]
        line = before.rpartition("\n")[2]
        words = line.rstrip()
        is_word = words and words != line and not words.endswith(_SENTENCE_ENDS)
        if not is_word or _LINE_END.match(text, each.end()):
            return each
    return None

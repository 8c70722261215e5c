"""Takes the thoughts of a model off the text of its answer.

Servers that do not know how a model marks its thoughts leave them in front of the answer. Some
chat templates begin them, so that the text has only their end.
"""

from __future__ import annotations

import re

_NAMES = r"(?:think(?:ing)?|thoughts?|seed:think)"
_OPEN = re.compile(
    rf"<{_NAMES}>|\[THINK\]|◁think▷|<\|START_THINKING\|>"
    r"|(?:<\|start\|>assistant)?<\|channel\|>analysis<\|message\|>"
)
_CLOSE = re.compile(rf"</{_NAMES}>|\[/THINK\]|◁/think▷|<\|END_THINKING\|>|<\|end\|>")
_FINAL = re.compile(
    r"\s*(?:<\|start\|>assistant)?<\|channel\|>final<\|message\|>(.*?)(?:<\|(?:return|end)\|>)?\s*",
    re.DOTALL,
)
"""The answer in the format of gpt-oss."""
_WITHOUT_MARKS = re.compile(r"\s*analysis\S.*?assistantfinal", re.DOTALL)
"""The thoughts in that format when a server drops its marks."""
_MOST_BLOCKS = 100
_QUOTES = frozenset("`'\"“”‘’„«»()*")
_SENTENCE_ENDS = (".", "!", "?", ":", "…", ")", "]", "}", '"', "'")


def without_thoughts(text: str) -> str:
    """Return an answer without the thoughts it begins with; empty if they are all there is.

    A mark that is quoted inside of an answer stays.
    """
    answer = text
    text = _WITHOUT_MARKS.sub("", text, count=1) if _WITHOUT_MARKS.match(text) else text
    for _ in range(_MOST_BLOCKS):
        shown = text.lstrip()
        opened = _OPEN.match(shown)
        text = shown if opened or text is not answer else text
        closed = _find(_CLOSE, text, opened.end() if opened else 0)
        if opened and closed is None:
            return ""
        if closed is None or not (opened or _ends_thoughts(text, closed)):
            break
        text = text[closed.end() :]
    final = _FINAL.fullmatch(text)
    if final:
        return final[1]
    return text if text is answer else text.lstrip()  # the blanks of an answer are its own


def _find(mark: re.Pattern[str], text: str, start: int = 0) -> re.Match[str] | None:
    """Return the first mark that is not quoted."""
    return next((each for each in mark.finditer(text, start) if not _is_quoted(text, each)), None)


def _is_quoted(text: str, mark: re.Match[str]) -> bool:
    around = text[max(mark.start() - 1, 0) : mark.start()], text[mark.end() : mark.end() + 1]
    return all(char in _QUOTES and char for char in around)


def _ends_thoughts(text: str, closed: re.Match[str]) -> bool:
    """Return whether a closing mark without an opening one is the end of thoughts."""
    before = text[: closed.start()]
    if closed[0] == "<|end|>" or _find(_OPEN, before) is not None:
        return False
    line = before.rpartition("\n")[2]
    is_word = line != line.rstrip() and not line.rstrip().endswith(_SENTENCE_ENDS) and line.strip()
    return not is_word or bool(re.match(r"[ \t]*\r?\n\s*\S", text[closed.end() :]))

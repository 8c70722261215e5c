"""Text files of a test as lines below the message that has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from evalstore.core.display import plural, safe
from evalstore.core.errors import EvalstoreError
from evalstore.core.styled_text import StyledLine, StyledSpan

if TYPE_CHECKING:
    from evalstore.results.answer.answer import AnswerView

_MOST_FILES = 4
"""How many text files of a conversation are shown."""
_MOST_LINES, _MOST_CHARACTERS = 40, 4_000
"""How much of one is shown."""
_EDGE = "│ "


def render_text_files(
    view: AnswerView, read: Callable[[Sequence[str]], Mapping[str, bytes]]
) -> dict[str, list[StyledLine]]:
    """Read the first text files of a conversation as lines by id; none that cannot be read."""
    files = {file.id: file for turn in view.conversation for file in turn.text_files}
    ids = [*files][:_MOST_FILES]
    if not ids:
        return {}
    try:
        contents = read(ids)
    except EvalstoreError:  # it is named all the same
        return {}
    return {id: text_file_lines(files[id].path, data) for id, data in contents.items()}


def text_file_lines(path: str, data: bytes) -> list[StyledLine]:
    """Return the beginning of a file under its path, and how much more of it there is."""
    begin = data[: 4 * _MOST_CHARACTERS].decode("utf-8", "replace")[:_MOST_CHARACTERS]
    listed = begin.splitlines()[:_MOST_LINES]
    lines = [StyledLine((StyledSpan(f"{_EDGE}{safe(path)}", "faint"),))]
    for text in listed:
        spans = StyledSpan(_EDGE, "faint"), StyledSpan(safe(text, lines=True).expandtabs(4))
        lines.append(StyledLine(spans, mark=_EDGE))
    left = len(data) - len("\n".join(listed).encode())
    if left > 1 or len(listed) < len(begin.splitlines()):  # a file may end with the end of a line
        more = StyledSpan(f"{_EDGE}… {plural(left, 'more byte')}", "faint")
        lines.append(StyledLine((more,)))
    return lines

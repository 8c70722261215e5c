"""Headings in English words: `# User` instead of `# 👤`.

A test file without a heading `# 👤` has never been valid, so words are headings only in such a
file. In all others a line such as `# User` is text, as before, and ids do not change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from evalstore.errors import FileProblem

if TYPE_CHECKING:
    from evalstore.files.markdown import SourceLine

_USER = re.compile(r" {0,3}# 👤")
_WORDS = re.compile(
    r" {0,3}\# (?:"
    r"(?P<role>user|assistant|system|tool)"
    r"|(?P<turn>assistant)[ \t]+(?P<name>@\S+)"
    r"|run[ \t]+(?P<run>\S.*?[ \t][×x][ \t]*[0-9]+)"
    r")[ \t]*",
    re.IGNORECASE,
)
_ANY_WORD = re.compile("# (?i:user|assistant|system|tool|run)|<!--")
_NO_ROLE = re.compile(
    r" {0,3}\# (?:(?:"
    r"(?P<tool>[🛠🔧🔨🧰⚒🪛]|tool|function)"
    r"|(?P<system>💻|🖥|[👨👩🧑]\u200d💻|system|developer)"
    r"|(?P<user>[👥🧑👨👩🙋🙂💬🗣🗨]|user|human)"
    r"|(?P<assistant>[🦾🧠👾]|assistant|ai|bot|chatbot|gpt)"
    r")\ufe0f?(?:[ \t]+(?:messages?|prompt|turn|call|results?|response|output))?"
    r"(?:[ \t]+@\S+)?[ \t]*:?)[ \t]*",
    re.IGNORECASE,
)
"""A heading that looks like the beginning of a message; some begin one, see `_match`."""
_ALL_EMOJI = "'# 👤', '# 🤖', '# ⚙️'"
_EMOJI = {"user": "👤", "assistant": "🤖", "system": "⚙️"}


def may_have_words(body: str) -> bool:
    """Return whether there may be a heading in words, by a quick search."""
    return _ANY_WORD.search(body) is not None


def with_emoji(lines: list[SourceLine]) -> list[SourceLine]:
    """Return lines of a test's conversations in which all headings are emoji.

    Raises `FileProblem` for `# Tool`.
    """
    return lines if _has_user(lines) else [_with_emoji(line) for line in lines]


def text_headings(lines: Sequence[SourceLine]) -> list[FileProblem]:
    """Return a warning about the first heading in words of a test that has others as emoji."""
    if not _has_user(lines):
        return []
    lines = [line for line in lines if not _is_tool(line)]  # `unknown_roles` warns of these
    return _warnings(lines, f"write all headings in words, or all as emoji: {_ALL_EMOJI}")


def unknown_roles(lines: Sequence[SourceLine]) -> list[FileProblem]:
    """Return a warning about each heading of a test that looks like a role, and is text.

    Such are emoji and words of other formats: `# 🛠`, `# Function`, `# Developer`, `# User:`.
    """
    found: dict[str, FileProblem] = {}
    in_words = not _has_user(lines)
    for line in lines:
        match = None if line.fenced or "# " not in line.text[:5] else _NO_ROLE.fullmatch(line.text)
        if match is None:
            continue
        if _match(line) and (in_words or not _is_tool(line)):
            continue  # it is a heading, or `text_headings` warns of it
        hint = _hint_of_role(str(match.lastgroup), in_words=in_words)
        found.setdefault(line.text.strip(), _warning(line, hint))
    return list(found.values())


def _hint_of_role(role: str, *, in_words: bool) -> str:
    """Return what to write in the place of a heading that is none."""
    text = "write '##' if the line is part of the text"
    if role == "tool":
        return f"tools are not executed, so there are no messages of tools; {text}"
    heading = role.capitalize() if in_words else _EMOJI[role]
    return f"to begin a message, write '# {heading}'; {text}"


def headings_of_prompt(lines: Sequence[SourceLine], *, evaluator: bool) -> list[FileProblem]:
    """Return a warning about the first heading in words of a prompt, where all of them are text."""
    if evaluator:
        return _warnings(lines, f"the headings of prompts are {_ALL_EMOJI}")
    hint = "a system prompt is one message: remove the line, or write '##' if it is part of it"
    return _warnings(lines, hint)


def _warnings(lines: Sequence[SourceLine], hint: str) -> list[FileProblem]:
    line = next(filter(_match, lines), None)
    return [_warning(line, hint)] if line else []


def _warning(line: SourceLine, hint: str) -> FileProblem:
    message = f"'{line.text.strip()}' is read as text here, it does not begin a message"
    return FileProblem(message, line.number, severity="warning", hint=hint)


def _has_user(lines: Iterable[SourceLine]) -> bool:
    """Return whether there is a heading `# 👤`."""
    return any("👤" in line.text and not line.fenced and _USER.match(line.text) for line in lines)


def _match(line: SourceLine) -> re.Match[str] | None:
    return None if line.fenced or "# " not in line.text[:5] else _WORDS.fullmatch(line.text)


def _is_tool(line: SourceLine) -> bool:
    heading = _match(line)
    return heading is not None and (heading["role"] or "").lower() == "tool"


def _with_emoji(line: SourceLine) -> SourceLine:
    heading = _match(line)
    if heading is None:
        return line
    if run := heading["run"]:
        return line._replace(text=f"# ▶ {run}")
    if name := heading["name"]:
        return line._replace(text=f"# 🤖 {name}")
    role = heading["role"].lower()
    if role == "tool":
        raise FileProblem(
            "a conversation has no tool messages ('# Tool')",
            line.number,
            hint="tools are not executed: the calls are the answer; to show this line as text, "
            "write '# 👤' for '# User'",
        )
    return line._replace(text=f"# {_EMOJI[role]}")

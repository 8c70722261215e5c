"""Headings in English words: `# User` instead of `# 👤`.

A test file without a heading `# 👤` has never been valid, so words are headings only in such a
file. In all others a line such as `# User` is text, as before, and ids do not change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import lru_cache

from evalstore.core.errors import FileProblem
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
    r"(?:[ \t]+@\S+)?(?:[ \t]*:)?)[ \t]*",
    re.IGNORECASE,
)
"""A heading that looks like the beginning of a message; some begin one, see `_match`."""
_NEAR_ROLE = re.compile(
    r" {0,3}#{1,6}[ \t]*(?P<word>[^\W\d_]{2,12})"
    r"(?P<rest>[ \t]+@\S+|[ \t]+\S.*?[ \t][×x][ \t]*[0-9]+)?(?:[ \t]*:)?[ \t]*"
)
"""A heading whose word may be a misspelt role."""
_LIKE = 0.7
"""How alike the word must be to a role, 0..1, where the test cannot be read otherwise."""
_VERY_LIKE = 0.8
"""The same where it can be read: the line may be text."""
_ALL_EMOJI = "'# 👤', '# 🤖', '# ⚙️'"
_EMOJI = {"user": "👤", "assistant": "🤖", "system": "⚙️", "run": "▶"}


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

    Such are emoji and words of other formats (`# 🛠`, `# Function`, `# Developer`, `# User:`) and
    misspelt words (`# Assistent`).
    """
    found: dict[str, FileProblem] = {}
    in_words = not _has_user(lines)
    for line in lines:
        role, rest = _role_of(line)
        if not role:
            continue
        if _match(line) and (in_words or not _is_tool(line)):
            continue  # it is a heading, or `text_headings` warns of it
        hint = _hint_of_role(role, rest, in_words=in_words)
        found.setdefault(line.text.strip(), _warning(line, hint))
    return list(found.values())


def _role_of(
    line: SourceLine, *, is_wrong: bool = False, any_level: bool = False
) -> tuple[str, str]:
    """Return the role that a heading looks like, and what follows the word; empty: like none.

    Plurals, such as `# Systems`, are text, unless something `is_wrong` with the test. Only with
    `any_level`, `#User` and `## User` look like a heading.
    """
    if line.fenced or not (any_level or line.text.lstrip(" ").startswith("# ")):
        return "", ""
    if match := _NO_ROLE.fullmatch(line.text):
        return str(match.lastgroup), ""
    near = _NEAR_ROLE.fullmatch(line.text)
    if near is None:
        return "", ""
    word, rest = near["word"].lower(), near["rest"] or ""
    if rest.strip()[:1] not in ("", "@"):
        return _nearest(word, ("run",), _LIKE), rest
    if is_wrong:
        return _nearest(word, ("user", "assistant", "system"), _LIKE), rest
    return "" if word.endswith("s") else _nearest(word, ("assistant", "system"), _VERY_LIKE), rest


@lru_cache(maxsize=256)
def _nearest(word: str, roles: tuple[str, ...], like: float) -> str:
    return next(iter(get_close_matches(word, roles, 1, like)), "")


def correct(
    lines: Sequence[SourceLine], *, any_level: bool
) -> tuple[list[SourceLine], list[FileProblem]]:
    """Return lines in which misspelt headings are right, and a problem for each of those.

    For a test that cannot be read as it is: `# Assistent`, and with `any_level` also `#User` and
    `## User`, are headings. Raises `FileProblem` for `# Tool`.
    """
    in_words = not _has_user(lines)
    corrected: list[SourceLine] = []
    problems: list[FileProblem] = []
    for line in with_emoji(list(lines)):
        role, rest = _role_of(line, is_wrong=True, any_level=any_level)
        if role in ("", "tool"):
            corrected.append(line)
            continue
        corrected.append(line._replace(text=f"# {_EMOJI[role]}{rest}"))
        meant = f"# {role.capitalize() if in_words else _EMOJI[role]}{rest}"
        message = f"'{line.text.strip()}' does not begin a message"
        problems.append(FileProblem(message, line.number, hint=f"did you mean '{meant}'?"))
    return corrected, problems


def _hint_of_role(role: str, rest: str, *, in_words: bool) -> str:
    """Return what to write in the place of a heading that is none."""
    text = "write '##' if the line is part of the text"
    if role == "tool":
        return f"tools are not executed, so there are no messages of tools; {text}"
    heading = role.capitalize() if in_words else _EMOJI[role]
    begun = "conversation" if role == "run" else "message"
    return f"to begin a {begun}, write '# {heading}{rest}'; {text}"


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
            hint="tools are not executed; to show this line as text, write '# 👤' for '# User'",
        )
    return line._replace(text=f"# {_EMOJI[role]}")

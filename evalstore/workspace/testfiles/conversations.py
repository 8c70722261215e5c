"""Reads the conversations of a test file, before their texts are filled.

A file has one conversation, or several (`# ▶ name ×3`) with a shared beginning. They are
in the sections of the body, or in the field `messages`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache

from evalstore.core.display import shorten
from evalstore.core.errors import FileProblem
from evalstore.core.values import Role
from evalstore.files.fields import MOST_SAMPLES, Fields
from evalstore.files.markdown_lines import SPACE, Section, SourceLine, is_rule, section
from evalstore.files.yaml12 import Document

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
_EMOJI = {"user": "👤", "assistant": "🤖", "system": "⚙️", "run": "▶"}


def may_have_words(body: str) -> bool:
    """Return whether there may be a heading in words, by a quick search."""
    return _ANY_WORD.search(body) is not None


def with_emoji(lines: list[SourceLine]) -> list[SourceLine]:
    """Return lines of a test's conversations in which all headings are emoji.

    Raises `FileProblem` for `# Tool`.
    """
    return lines if _has_user(lines) else [_with_emoji(line) for line in lines]


def doubtful_headings(lines: Sequence[SourceLine]) -> list[FileProblem]:
    """Return a warning about each heading of a test that looks like a role, and is text.

    Such are emoji and words of other formats (`# 🛠`, `# Function`, `# Developer`, `# User:`),
    misspelt words (`# Assistent`), and words in a test that has other headings as emoji.
    """
    found: dict[str, FileProblem] = {}
    in_words = not _has_user(lines)
    for line in lines:
        role, rest = _role_of(line)
        if role and not (in_words and _match(line)):
            hint = "tools are not executed, so there are no tool messages"
            if role != "tool":
                begun = "conversation" if role == "run" else "message"
                heading = role.capitalize() if in_words else _EMOJI[role]
                hint = f"to begin a {begun}, write '# {heading}{rest}'"
            hint += "; write '##' if the line is part of the text"
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


def misspelt_headings(lines: Sequence[SourceLine]) -> list[FileProblem]:
    """Return the problems of headings of a test that cannot be read, as `# Assistent`.

    Only where there are none, `#User` and `## User` are problems, too.
    """
    in_words = not _has_user(lines)
    problems: list[FileProblem] = []
    for any_level in (False, True):
        for line in () if problems else lines:
            role, rest = _role_of(line, is_wrong=True, any_level=any_level)
            if role in ("", "tool") or (in_words and _match(line)):
                continue
            meant = f"# {role.capitalize() if in_words else _EMOJI[role]}{rest}"
            message = f"'{line.text.strip()}' does not begin a message"
            problems.append(FileProblem(message, line.number, hint=f"did you mean '{meant}'?"))
    return problems


def headings_of_prompt(lines: Sequence[SourceLine], *, evaluator: bool) -> list[FileProblem]:
    """Return a warning about the first heading in words of a prompt, where all of them are text."""
    hint = "a system prompt is one message: remove the line, or write '##' if it is part of it"
    if evaluator:
        hint = "the headings of prompts are '# 👤', '# 🤖', '# ⚙️'"
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


_MARKER = re.compile(r" {0,3}# (?:(👤)|(🤖)|(⚙)|(▶))\ufe0f?(.*)$")
_TURN = re.compile(r"[ \t]*@(\S+)[ \t]*$")
_RUN = re.compile(r"(.*?)(?:(?:^|[ \t])[×x][ \t]*([0-9]+))?$")
_MOST_DIGITS = 20
"""The most digits of a number of samples; one with more is too large."""
LAST = "response"
"""The default name of the last answer."""
_TAKEN = ("sample", "answer", "answers", "item", LAST)
"""Names that are reserved in checks."""
MESSAGE_FIELDS = ("role", "content", "name", "variable", "image")
ROLES: tuple[Role, ...] = ("system", "user", "assistant")


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of the conversation as the author wrote it."""

    role: Role
    section: Section
    name: str | None = None
    """The name of the answer, if the candidate fills this turn."""
    verbatim: bool = False
    """Whether the text is not trimmed."""
    speaker: str | None = None
    """The `name` of the message, which some providers show to the model."""
    image: str | None = None
    """The path of a file that follows the text."""


@dataclass(frozen=True, slots=True)
class RepeatedConversation:
    """A conversation that is held `count` times."""

    turns: tuple[Turn, ...]
    name: str | None = None
    count: int = 1
    last_turn: str = LAST
    """The name of the last answer."""
    template: Section | None = None
    """Used instead of turns: an expression that evaluates to a row's messages."""

    @property
    def turn_names(self) -> tuple[str | None, ...]:
        """Return the names of the answers, in order; the last one is `response`."""
        filled = [turn.name for turn in self.turns if turn.name is not None]
        return (*[name or None for name in filled], self.last_turn)


# --- from the body ----------------------------------------------------------------------


def read_runs(
    lines: list[SourceLine], first: int, repetitions: int | None
) -> tuple[RepeatedConversation, ...]:
    """Read the conversations of a body; raises `FileProblem`."""
    starts = [
        (number, marker[5])
        for number, line in enumerate(lines)
        if not line.fenced and (marker := _MARKER.match(line.text)) and marker[4]
    ]
    if not starts:
        return (_conversation(lines, first, None, repetitions or 1),)
    if repetitions is not None:
        raise FileProblem(
            "'repetitions' and conversations with names ('# ▶') cannot be combined",
            lines[starts[0][0]].number,
            hint="write how often behind the name of a conversation, as in '# ▶ again ×3'",
        )
    shared = lines[: starts[0][0]]
    runs: list[RepeatedConversation] = []
    for number, (start, rest) in enumerate(starts):
        end = starts[number + 1][0] if number + 1 < len(starts) else len(lines)
        line = lines[start].number
        name, count = _read_name(rest, line)
        if any(run.name == name for run in runs):
            raise FileProblem(f"two conversations are called '{name}'", line)
        runs.append(_conversation([*shared, *lines[start + 1 : end]], line, name, count))
    return tuple(runs)


def _read_name(rest: str, line: int) -> tuple[str, int]:
    match = _RUN.match(rest.strip(SPACE))
    assert match is not None
    name, count = match[1].strip(SPACE), int(match[2][:_MOST_DIGITS] if match[2] else 1)
    if not name:
        raise FileProblem("a conversation has no name", line, hint="write it as in '# ▶ first ×3'")
    if not 1 <= count <= MOST_SAMPLES:
        raise FileProblem(f"a conversation can be held 1 to {MOST_SAMPLES:,} times", line)
    if "×" in name or "{{" in name:
        raise FileProblem(
            f"{shorten(name)} cannot be the name of a conversation",
            line,
            hint="write how often as a whole number behind a name, as in '# ▶ first ×3'",
        )
    if name in _TAKEN or name.startswith("_"):
        raise FileProblem(f"'{name}' cannot be the name of a conversation", line)
    return name, count


def _conversation(
    lines: list[SourceLine], first: int, name: str | None, count: int
) -> RepeatedConversation:
    """Return a conversation without its last answer, with the name of that answer."""
    turns = split_turns(lines)
    if not turns or turns[-1].role == "system":
        raise FileProblem(
            "no user message",
            turns[-1].section.first if turns and name is None else first,
            hint="start it with a line '# User' or '# 👤'",
        )
    turns, last = _take_last(turns)
    check_order(turns)
    return RepeatedConversation(turns, name, count, last)


def _take_last(turns: tuple[Turn, ...]) -> tuple[tuple[Turn, ...], str]:
    """Remove a turn at the end that the candidate fills, and return its name."""
    names = [turn.name for turn in turns if turn.name]
    for turn in turns:
        if turn.name and names.count(turn.name) > 1:
            raise FileProblem(f"two turns are called '@{turn.name}'", turn.section.first)
    last = turns[-1].name
    if last is not None and len(turns) > 1:
        turns = turns[:-1]
    return turns, last or LAST


def split_turns(lines: list[SourceLine]) -> tuple[Turn, ...]:
    """Split a conversation into turns; text before the first marker is a system text."""
    turns: list[Turn] = []
    role: Role = "system"
    collected: list[SourceLine] = []
    first = lines[0].number if lines else 1

    def finish() -> None:
        text_section = section(collected, first)
        if turns or text_section.text or role != "system":
            turns.append(_named(Turn(role, text_section)))

    started = False
    for line in lines:
        marker = None if line.fenced else _MARKER.match(line.text)
        if not marker:
            collected.append(line)
            continue
        user, assistant, system, run, rest = marker.groups()
        if run:
            raise FileProblem("a prompt has no conversations ('# ▶')", line.number)
        before = started or any(line.text.strip(SPACE) for line in collected)
        if system and before:
            raise FileProblem(
                "there can be only one system text ('# ⚙️'), before all other turns", line.number
            )
        if before:
            finish()
        role = "user" if user else "assistant" if assistant else "system"
        collected, first, started = [line._replace(text=rest)], line.number, True
    finish()
    return tuple(turns)


def _named(turn: Turn) -> Turn:
    """Return a turn that the candidate fills (`# 🤖 @name`) with its name, and without a text."""
    head, _, rest = turn.section.text.partition("\n")
    match = _TURN.match(head) if turn.role == "assistant" else None
    if match is None:
        return turn
    name, line = match[1], turn.section.first
    if rest.strip(SPACE):
        raise FileProblem(
            f"the turn '@{name}' has a text, but the candidate fills it",
            line,
            hint="remove the text, or the name",
        )
    _refuse_name(name, line)
    return Turn(turn.role, section([], line), name)


def _refuse_name(name: str, line: int) -> None:
    if not name.isidentifier() or name.startswith("_") or name in _TAKEN:
        raise FileProblem(
            f"'@{name}' cannot be the name of a turn",
            line,
            hint="use letters, digits and '_', as in '@capital'",
        )


def check_order(turns: tuple[Turn, ...], *, fillable: bool = True) -> None:
    """Raise unless there is at most one system text, and user and assistant alternate, user first.

    `fillable` says whether there may be turns that the candidate fills.
    """
    expected: Role = "user"
    for number, turn in enumerate(turns):
        if turn.role == "system" and number == 0:
            continue
        line = turn.section.first
        if turn.role != expected:
            if turn.role == "assistant" and number == (1 if turns[0].role == "system" else 0):
                raise FileProblem("the conversation must start with a user message ('# 👤')", line)
            raise FileProblem(
                f"two {turn.role} messages follow one another",
                line,
                hint="user ('# User' or '# 👤') and assistant ('# Assistant' or '# 🤖') take turns",
            )
        if turn.role == "assistant" and not turn.section.text and turn.name is None:
            hint = "write what it said"
            if fillable:
                hint += ", or '# 🤖 @name' for a turn that the candidate fills"
            raise FileProblem("an assistant turn is empty", line, hint=hint)
        expected = "assistant" if turn.role == "user" else "user"
    _refuse_fixed_end(turns)


def _refuse_fixed_end(turns: tuple[Turn, ...]) -> None:
    if turns and turns[-1].role == "assistant" and turns[-1].name is None:
        raise FileProblem(
            "the conversation ends with a fixed answer",
            turns[-1].section.first,
            hint="end it with a user message ('# 👤')",
        )


def only_system(turns: tuple[Turn, ...], lines: list[SourceLine]) -> None:
    """Raise unless these are the turns of a system prompt."""
    for turn in turns:
        if turn.role != "system":
            raise FileProblem(
                "a system prompt has no user or assistant messages",
                turn.section.first,
                hint="a judge prompt may have them: give it the tag '_evaluator'",
            )
    for line in lines:
        if is_rule(line):
            raise FileProblem(
                "a system prompt is not judged, so no line '---'",
                line.number,
                hint="for a horizontal rule write '***'",
            )


def rules_of_last_message(lines: list[SourceLine], separator: int, last: Turn) -> list[FileProblem]:
    """Return the problem of a line `---` in the last message, which one more is to end."""
    lines = [line for line in lines if line.number > last.section.first]
    rule = next((line.number for line in lines if is_rule(line)), None)
    if rule is None:
        return []
    between = [line for line in lines if line.number > rule and line.text.strip()]
    message = f"a second line '---' (the first is line {rule})"
    if between:
        numbers = dict.fromkeys((between[0].number, between[-1].number))
        message += (
            f": line{'s' * (len(numbers) > 1)} {' to '.join(map(str, numbers))} would be sent"
        )
        message += f" to the candidate, from {shorten(between[0].text.strip())}"
    hint = "only one ends the messages; for a horizontal rule write '***', for a heading '##'"
    return [FileProblem(message, separator, hint=hint)]


# --- from the field `messages` ----------------------------------------------------------


def read_messages_field(document: Document, repetitions: int | None) -> RepeatedConversation:
    """Read the conversation of the field `messages`: a list, or a text that is a template."""
    value, line = document.value, document.line()
    count = repetitions or 1
    if isinstance(value, str):
        if "{{" not in value:
            raise FileProblem(
                "'messages' must be a list of messages, or a template that gives one",
                line,
                hint="as in 'messages: \"{{ item.messages }}\"'",
            )
        return RepeatedConversation((), count=count, template=Section(value.strip(), (line,), line))
    if not isinstance(value, list) or not value:
        raise FileProblem(
            "'messages' must be a list of messages",
            line,
            hint="as in '- {role: user, content: Hello}'",
        )
    turns = tuple(_message(document.at(number)) for number in range(len(value)))
    turns, last = _take_last(turns)
    if all(turn.role == "system" for turn in turns):
        raise FileProblem("'messages' has no message of the role 'user'", line)
    if turns[0].name is not None:
        raise FileProblem(
            "the conversation begins with a turn that the candidate fills",
            turns[0].section.first,
            hint="begin it with a message of the role 'user'",
        )
    _refuse_fixed_end(turns)
    return RepeatedConversation(turns, count=count, last_turn=last)


def _message(document: Document) -> Turn:
    line = document.line()
    if not isinstance(document.value, dict):
        raise FileProblem("a message must be a mapping", line, hint="with 'role' and 'content'")
    fields = Fields(document, MESSAGE_FIELDS)
    role = fields.choice("role", ROLES) or "user"
    content, variable = fields.value("content"), fields.text("variable")
    content_line = fields.line("content") if "content" in document.value else line
    if content is None:
        if role != "assistant":
            raise FileProblem("the message has no 'content'", line)
        if variable is not None:
            _refuse_name(variable, fields.line("variable"))
        return Turn("assistant", Section("", (), line), variable or "")
    if not isinstance(content, str):
        raise FileProblem("'content' must be a text", content_line)
    if variable is not None:
        raise FileProblem(
            "'variable' is for a message that the candidate fills",
            fields.line("variable"),
            hint="remove it, or the 'content'",
        )
    lines = tuple(content_line + number for number in range(content.count("\n") + 1))
    return Turn(
        next(known_role for known_role in ROLES if known_role == role),
        Section(content, lines, content_line),
        verbatim=True,
        speaker=fields.text("name"),
        image=fields.text("image"),
    )

"""Markdown text to values: the structure of test and prompt files, before anything is filled.

The cut into what is shown and what the evaluator is told, and into turns, comes before
templates are filled, so data can never move it. Knows nothing of other files.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from evalstore.checklist import CheckList, take_block
from evalstore.errors import FileProblem
from evalstore.fields import MOST_SAMPLES, Collector, Fields
from evalstore.markdown import SPACE, Line, Section, cut, fences, is_rule, scan, section
from evalstore.rows import Replacements, read_replacements
from evalstore.values import Options, Role
from evalstore.yaml_core import Document, split_frontmatter

_MARKER = re.compile(r" {0,3}# (?:(👤)|(🤖)|(⚙)|(▶))\ufe0f?(.*)$")
_TURN = re.compile(r"[ \t]*@(\S+)[ \t]*$")
_TAKEN = ("sample", "answer", "answers", "item", "response")
"""Names that checks already have a meaning for."""
_LATER = {
    "messages": "a list of messages in the frontmatter",
    "dataset": "a dataset",
    "answer": "a recorded answer",
    "repetitions": "repetitions",
    "group": "a group",
}
"""Fields of the format that this version does not read yet."""

TEST_FIELDS = (
    "id",
    "description",
    "tags",
    "systemPrompts",
    "availableTools",
    "structuredResponseSchema",
    "replacements",
    "lists",
    "options",
    "attempts",
    "evaluators",
    "threshold",
    "template",
)
PROMPT_FIELDS = ("id", "description", "tags", "replacements", "template")


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of the conversation as the author wrote it."""

    role: Role
    section: Section
    name: str | None = None
    """What the answer is called, when the candidate fills this turn."""


@dataclass(frozen=True, slots=True)
class TestFile:
    """A test file, read but not filled."""

    path: str
    turns: tuple[Turn, ...]
    instructions: Section | None
    checks: CheckList | None = None
    last_turn: str = "response"
    """What the last answer is called."""
    id: str | None = None
    tags: tuple[str, ...] = ()
    system_prompts: tuple[str | None, ...] = (None,)
    tools: tuple[str, ...] = ()
    schema: str | None = None
    replacements: Replacements = ({},)
    options: Options = Options()
    attempts: int | None = None
    evaluators: tuple[str, ...] | None = None
    threshold: float | None = None
    plain: bool = False
    document: Document | None = None
    readable: bool = True
    """Whether its texts can be filled; not with problems in its turns or replacements."""

    def line_of(self, *field: str | int) -> int:
        """The line of a field of the frontmatter."""
        return self.document.line(*field) if self.document else 1

    @property
    def turn_names(self) -> tuple[str, ...]:
        """What the answers are called, in order; the last one is the `response`."""
        return (*(turn.name for turn in self.turns if turn.name), self.last_turn)


@dataclass(frozen=True, slots=True)
class PromptFile:
    """A system prompt or an evaluator prompt, read but not filled."""

    path: str
    id: str
    turns: tuple[Turn, ...]
    tags: tuple[str, ...] = ()
    replacements: Replacements = ({},)
    plain: bool = False
    document: Document | None = None

    @property
    def is_evaluator(self) -> bool:
        """Whether evaluators use it."""
        return "_evaluator" in self.tags

    def line_of(self, *field: str | int) -> int:
        """The line of a field of the frontmatter."""
        return self.document.line(*field) if self.document else 1


def normalise(data: bytes) -> str:
    """The text of a file: UTF-8, no byte order mark, LF as the only line end."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FileProblem(
            f"is not UTF-8: byte 0x{data[error.start]:02x}", line, hint="save the file as UTF-8"
        ) from error
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def parse_test(path: str, text: str) -> TestFile:
    """Read a test file; raises `FileProblem` for what cannot be honoured."""
    test, collector = read_test(path, text)
    collector.finish()
    return test


def read_test(path: str, text: str) -> tuple[TestFile, Collector]:
    """Read as much of a test file as can be read, and collect its problems.

    Raises `FileProblem` when its frontmatter cannot be read at all.
    """
    document, body, first = split_frontmatter(text)
    collector = Collector()
    fields = Fields(document, TEST_FIELDS, later=_LATER, collector=collector)
    lines = list(scan(body, first))
    above, below, separator = cut(lines)
    nothing: tuple[tuple[Turn, ...], str] = ((), "response")
    turns, last_turn = collector.attempt(lambda: _conversation(above, first), nothing)
    tools = tuple(fields.names("availableTools"))
    schema = fields.text("structuredResponseSchema")
    if tools and schema:
        collector.found.append(
            FileProblem(
                "'availableTools' and 'structuredResponseSchema' do not go together",
                fields.line("structuredResponseSchema"),
                hint="remove one of them",
            )
        )
    tags = fields.tags()
    if tools and any(turn.name for turn in turns):
        collector.found.append(
            FileProblem(
                "'availableTools' and turns that the candidate fills do not go together",
                fields.line("availableTools"),
                hint="tools are not executed, so the conversation cannot go on after a call",
            )
        )
    checks_itself = schema or {"_json_mode", "_tools_only"} & set(tags)
    if turns and separator is None and not checks_itself:
        collector.attempt(lambda: _without_evaluation(lines, turns), None)
    if "_evaluator" in tags:
        collector.found.append(
            FileProblem(
                "the tag '_evaluator' marks evaluator prompts, not tests",
                fields.line("tags"),
                hint="remove it, or move the file to the prompts folder",
            )
        )
    no_checks: tuple[list[Line], CheckList | None] = (below, None)
    prose, checks = collector.attempt(lambda: take_block(below), no_checks)
    instructions = section(prose, separator or first)
    if checks and checks.when != "on_pass" and not instructions.text and not checks.judge:
        collector.found.append(
            FileProblem(
                f"'evaluator: {checks.when}', but there are no instructions for an evaluator",
                checks.line,
                hint="write them beside the block, or remove the field",
            )
        )
    if checks and checks.judge and not instructions.text:
        collector.attempt(checks.raise_unless_told, None)
    replacements: Replacements | None = collector.attempt(lambda: read_replacements(document), None)
    test = TestFile(
        path=path,
        turns=turns,
        instructions=instructions if instructions.text else None,
        checks=checks,
        last_turn=last_turn,
        id=fields.text("id"),
        tags=tags,
        system_prompts=collector.attempt(lambda: _system_prompts(fields), (None,)),
        tools=tools,
        schema=schema,
        replacements=replacements or ({},),
        options=fields.options(),
        attempts=fields.whole("attempts", least=1, most=MOST_SAMPLES),
        evaluators=tuple(fields.names("evaluators"))
        if fields.value("evaluators") is not None
        else None,
        threshold=fields.number("threshold", 0, 1),
        plain=fields.choice("template", ("plain", "jinja")) == "plain",
        document=document,
        readable=bool(turns) and replacements is not None,
    )
    return test, collector


def _conversation(lines: list[Line], first: int) -> tuple[tuple[Turn, ...], str]:
    """The turns of a test without the last answer, and what that is called."""
    turns = split_turns(lines)
    if not turns or turns[-1].role == "system":
        raise FileProblem(
            "there is no user message",
            turns[-1].section.first if turns else first,
            hint="start it with a line '# 👤'",
        )
    # A turn that is filled at the end is what is asked for anyway.
    names = [turn.name for turn in turns if turn.name]
    last = turns[-1].name or "response"
    if turns[-1].name and len(turns) > 1:
        turns = turns[:-1]
    for turn in turns:
        if turn.name and names.count(turn.name) > 1:
            raise FileProblem(f"two turns are called '@{turn.name}'", turn.section.first)
    check_order(turns)
    return turns, last


def _without_evaluation(lines: list[Line], turns: tuple[Turn, ...]) -> None:
    """Raise why no line `---` ends the messages."""
    for fence in fences(lines):
        if not fence.closed:
            raise FileProblem(
                "this code block is never closed, so no '---' ends the messages", fence.opened
            )
    raise FileProblem(
        "nothing says how to evaluate the answer",
        turns[-1].section.first,
        hint="write a line '---' and the instructions for the evaluator below it",
    )


def parse_prompt(path: str, text: str, folder: str | None = None) -> PromptFile:
    """Read a prompt file; raises `FileProblem` for the first thing that cannot be honoured.

    `folder` is the prompts folder, from which the path counts that is the default id.
    """
    document, body, first = split_frontmatter(text)
    collector = Collector()
    fields = Fields(document, PROMPT_FIELDS, collector=collector)
    lines = list(scan(body, first))
    tags = fields.tags()
    turns = split_turns(lines)
    evaluator = "_evaluator" in tags
    if not turns or not any(turn.section.text for turn in turns):
        raise FileProblem(
            "the prompt is empty", first, hint="write the system text below the frontmatter"
        )
    for turn in turns:
        if turn.name:
            raise FileProblem("a prompt has no turn to be filled", turn.section.first)
    if evaluator:
        check_order(turns)
    else:
        _only_system(turns, lines)
    prompt = PromptFile(
        path=path,
        id=fields.text("id") or default_id(path, folder),
        turns=turns,
        tags=tags,
        replacements=read_replacements(document),
        plain=fields.choice("template", ("plain", "jinja")) == "plain",
        document=document,
    )
    collector.finish()
    return prompt


def default_id(path: str, folder: str | None = None) -> str:
    """A file's id when it gives none: its path below its folder, without the suffix.

    Without `folder` the first part of the path is taken for it.
    """
    if folder is None:
        below = path.partition("/")[2] or path
    else:
        below = path if folder in ("", ".") else path.removeprefix(folder + "/")
    return below.rpartition(".")[0] or below


def split_turns(lines: list[Line]) -> tuple[Turn, ...]:
    """The turns of a conversation; text before the first marker is a system text."""
    turns: list[Turn] = []
    role: Role = "system"
    collected: list[Line] = []
    first = lines[0].number if lines else 1

    def finish() -> None:
        found = section(collected, first)
        if turns or found.text or role != "system":
            turns.append(_named(Turn(role, found)))

    started = False
    for line in lines:
        marker = None if line.fenced else _MARKER.match(line.text)
        if not marker:
            collected.append(line)
            continue
        user, assistant, system, run, rest = marker.groups()
        if run:
            raise FileProblem(
                "a run ('# ▶') is not supported yet",
                line.number,
                hint="give each conversation a file of its own",
            )
        before = started or any(line.text.strip(SPACE) for line in collected)
        if system and before:
            raise FileProblem(
                "a system text ('# ⚙️') can only stand once, before all other turns", line.number
            )
        if before:
            finish()
        role = "user" if user else "assistant" if assistant else "system"
        collected, first, started = [line._replace(text=rest)], line.number, True
    finish()
    return tuple(turns)


def _named(turn: Turn) -> Turn:
    """A turn that the candidate fills (`# 🤖 @name`) with its name, and without a text."""
    head, _, rest = turn.section.text.partition("\n")
    found = _TURN.match(head) if turn.role == "assistant" else None
    if found is None:
        return turn
    name, where = found[1], turn.section.first
    if rest.strip(SPACE):
        raise FileProblem(
            f"the turn '@{name}' has a text, but the candidate fills it",
            where,
            hint="remove the text, or the name",
        )
    if not name.isidentifier() or name.startswith("_") or name in _TAKEN:
        raise FileProblem(
            f"'@{name}' cannot be the name of a turn",
            where,
            hint="use letters, digits and '_', as in '@capital'",
        )
    return Turn(turn.role, section([], where), name)


def check_order(turns: tuple[Turn, ...]) -> None:
    """Raise unless the turns go: system text at most once, user first, in turn, user last."""
    expected: Role = "user"
    for number, turn in enumerate(turns):
        if turn.role == "system" and number == 0:
            continue
        where = turn.section.first
        if turn.role != expected:
            if turn.role == "assistant" and number == (1 if turns[0].role == "system" else 0):
                raise FileProblem("the conversation must start with a user message ('# 👤')", where)
            raise FileProblem(
                f"two {turn.role} messages follow one another",
                where,
                hint="user ('# 👤') and assistant ('# 🤖') take turns",
            )
        if turn.role == "assistant" and not turn.section.text and turn.name is None:
            raise FileProblem("an assistant turn is empty", where, hint="write what it said")
        expected = "assistant" if turn.role == "user" else "user"
    if turns and turns[-1].role == "assistant":
        raise FileProblem(
            "the conversation ends with a fixed answer",
            turns[-1].section.first,
            hint="end it with a user message ('# 👤')",
        )


def _only_system(turns: tuple[Turn, ...], lines: list[Line]) -> None:
    for turn in turns:
        if turn.role != "system":
            raise FileProblem(
                "a system prompt has no user or assistant messages",
                turn.section.first,
                hint="an evaluator prompt may have them: give it the tag '_evaluator'",
            )
    for line in lines:
        if is_rule(line):
            raise FileProblem(
                "a system prompt has no evaluation, so no line '---'",
                line.number,
                hint="for a horizontal rule write '***'",
            )


def _system_prompts(fields: Fields) -> tuple[str | None, ...]:
    value = fields.value("systemPrompts")
    if value is None:
        return (None,)
    if not isinstance(value, list) or not all(
        item is None or isinstance(item, str) for item in value
    ):
        raise FileProblem("'systemPrompts' must be a list of ids", fields.line("systemPrompts"))
    return tuple(dict.fromkeys(value)) or (None,)

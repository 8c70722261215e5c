"""Fills the texts of turns and prompts with a row, and reports undefined and unused names."""

from __future__ import annotations

import marshal
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from evalstore.core import hashing
from evalstore.core.display import as_text, shorten
from evalstore.core.errors import FileProblem, LimitProblem, Problem
from evalstore.core.values import (
    DEFAULT_PROMPT,
    REQUIRED_NAMES,
    RUNTIME_NAMES,
    AnswerRef,
    FileRef,
    Json,
    Message,
    Part,
    PromptVersion,
    SampleRef,
    Text,
    is_text,
)
from evalstore.files.datasets import Dataset
from evalstore.files.fields import nearest, suggest
from evalstore.files.jinja_sandbox import finalize
from evalstore.files.markdown_lines import SPACE, Section
from evalstore.files.processes.limited_calls import DataItem
from evalstore.files.templates import (
    ITEM,
    DeferredValue,
    FileMention,
    Filled,
    NameSegment,
    NoValueError,
    Template,
    compile_text,
    plain,
)
from evalstore.files.yaml12 import WrittenScalar, parse_json
from evalstore.workspace.testfiles.context import (
    INSTRUCTIONS,
    Definitions,
    ExpandedFile,
    FillContext,
)
from evalstore.workspace.testfiles.conversations import (
    LAST,
    MESSAGE_FIELDS,
    ROLES,
    RepeatedConversation,
    Turn,
)
from evalstore.workspace.testfiles.parser import PromptFile
from evalstore.workspace.testfiles.replacements import Replacements, expand_rows


class RowValues:
    """The values of one row; they may use one another and mention files.

    Values of a row of data (`item`, its columns by name, `item.NAME`) are never templates.
    """

    def __init__(
        self,
        values: Mapping[str, WrittenScalar],
        templates: Mapping[tuple[str, str], Template],
        item: DataItem | None = None,
    ) -> None:
        self.values = values
        self.item = item
        """None without data; `item` then has the values of the replacements."""
        self._templates = templates
        self._filled: dict[str, Filled] = {}
        self._open: list[str] = []

    def digest(self) -> int:
        """Return a digest of the data and of the author's values: its cases follow from these."""
        written = [(value.text, type(value.typed).__name__) for value in self.values.values()]
        return hashing.digest_bytes(marshal.dumps((dict(self.item or ()), written), 2))

    def lookup(self, name: str) -> Filled:
        """Return the filled value of a name."""
        if name in self._filled:
            return self._filled[name]
        written = self.values.get(name)
        if written is None and self.item is not None:
            return [str(finalize(self._datum(name)))]
        if written is None and name == ITEM:
            return [str(finalize(self._own_item()))]
        if written is None and name.startswith(f"{ITEM}."):
            return self.lookup(name.removeprefix(f"{ITEM}."))
        if written is None:
            line = next(iter(self.values.values())).line if self.values else None
            raise FileProblem(f"this row has no value for '{name}'", line)
        if name in self._open:
            cycle = " -> ".join([*self._open[self._open.index(name) :], name])
            raise FileProblem(
                f"the replacements refer to one another in a circle: {cycle}", written.line
            )
        self._open.append(name)
        try:
            filled = self._templates[name, written.text].fill(self.lookup, self.typed)
        except LimitProblem as problem:
            problem.line = problem.line or written.line
            raise
        self._open.pop()
        self._filled[name] = filled
        return filled

    def typed(self, name: str) -> Any:
        """Return the value of a name inside an expression."""
        if self.item is not None and name not in self.values:
            return self._datum(name)
        if name not in self.values and name == ITEM:
            return self._own_item()
        if name not in self.values and name.startswith(f"{ITEM}."):
            return self.typed(name.removeprefix(f"{ITEM}."))
        filled = self.lookup(name)
        written = self.values[name]
        if filled == [written.text] and not isinstance(written.typed, str):
            return written.typed
        if any(isinstance(piece, FileMention) for piece in filled):
            raise FileProblem(
                f"'{name}' mentions a file, so it cannot be used in an expression", written.line
            )
        return "".join(str(piece) for piece in filled)

    def _own_item(self) -> DataItem:
        """Return the values of a row without data; those that mention files are left out."""
        values = {
            name: self.typed(name)
            for name in self.values
            if not any(isinstance(piece, FileMention) for piece in self.lookup(name))
        }
        return DataItem(values, frozenset(values), {})

    def _datum(self, name: str) -> Any:
        assert self.item is not None
        if name == ITEM:
            return self.item
        try:
            return self.item[name.removeprefix(f"{ITEM}.")]
        except KeyError:
            raise NoValueError(
                f"no value for '{name}'",
                hint=f"for rows without one write '{name} | default(…)'",
            ) from None


class RuntimeRow(RowValues):
    """A row in which runtime names stay placeholders, without backticks around them."""

    def lookup(self, name: str) -> Filled:
        """Return the filled value of a name; runtime names stay."""
        if name in RUNTIME_NAMES:
            return ["{{" + name + "}}"]
        return super().lookup(name)

    def typed(self, name: str) -> Any:
        """Return the value of a name inside an expression; runtime names have none yet."""
        if name in RUNTIME_NAMES:
            raise FileProblem(
                f"'{name}' cannot be used in an expression",
                hint=f"write `{{{{{name}}}}}` where it belongs",
            )
        return super().typed(name)


class TemplateSet:
    """Compiles the texts of one file once, and reports undefined and unused names."""

    def __init__(
        self,
        path: str,
        replacements: Replacements,
        *,
        as_is: bool,
        runtime: bool,
        data: Dataset | None = None,
        answers: Collection[str] = (),
        nameless: bool = False,
    ) -> None:
        """`answers` are the names of answers and of runs.

        `nameless` says that a conversation comes from data, where answers have no names.
        """
        self.path = path
        self._answers = frozenset(answers)
        self._nameless = nameless
        self.replacements = replacements
        self.data: frozenset[str] = frozenset()
        """The name `item` and all names of the columns of the data."""
        self._columns: dict[str, str] = {}
        self._advice = data.advice if data is not None else None
        if data is not None:
            self._columns = {name: name for name in data.columns} | dict(data.aliases)
            inner = (f"{ITEM}.{name}" for name in self._columns)
            self.data = frozenset({ITEM, *self._columns, *inner})
        self.used_columns: dict[str, None] = {}
        """In the order of their first use."""
        self.as_is = as_is
        self.runtime = runtime
        self.known = {
            name: values[0].line for item in replacements for name, values in item.items()
        }
        self._has_own_item = data is None and bool(self.known) and not runtime
        """Whether `item` has the values of the replacements."""
        if self._has_own_item:
            self.data = frozenset({ITEM, *(f"{ITEM}.{name}" for name in self.known)})
        self.problems: list[Problem] = []
        for name in self.known.keys() & self._columns.keys():
            self._report(
                f"'{name}' is a replacement and a column of the dataset",
                self.known[name],
                hint="rename one of them; for the column 'dataset' has the field 'rename'",
            )
        self._used: set[str] = set()
        self._reserved: set[str] = set()
        self.values: dict[tuple[str, str], Template] = {}
        for item in replacements:
            for name, values in item.items():
                for written in values:
                    section = Section(written.text, (), written.line)
                    self.values[name, written.text] = self._compile(section)

    def _report(self, message: str, line: int, **more: Any) -> None:
        self.problems.append(Problem(self.path, message, line, **more))

    def _compile(self, section: Section, later: Collection[str] = ()) -> Template:
        text = section.text
        if self.as_is:
            return plain(text)
        names = [*self.known, *RUNTIME_NAMES] if self.runtime else [*self.known, *self.data, *later]
        try:
            template = compile_text(text, names, section.line_at, strict_reserved=self.runtime)
        except FileProblem as problem:
            self.problems.append(problem.at(self.path))
            return plain(text)
        for name, line in template.reserved.items():
            if name not in self._reserved:
                self._reserved.add(name)
                self._report(
                    f"'{name}' is a reserved name that means nothing here; it stays text",
                    line,
                    severity="warning",
                )
        return template

    def compile(self, section: Section, later: Collection[str] = ()) -> Template:
        """Compile a text of the body; its names count as used.

        Those of `later` get their values only when an answer is judged.
        """
        template = self._compile(section, later)
        for name, line in template.names.items():
            self.need(name, line, later)
        return template

    def columns_in(self, texts: Iterable[Template]) -> dict[str, tuple[str, int]]:
        """Return the columns that texts show as they are, each with its name and line there."""
        shown: dict[str, tuple[str, int]] = {}
        for segment in chain.from_iterable(text.segments for text in texts if text.scope is None):
            if isinstance(segment, NameSegment) and segment.name not in self.known:
                column = self._columns.get(segment.name.removeprefix(f"{ITEM}."))
                if column is not None:
                    shown.setdefault(column, (segment.name, segment.line))
        return shown

    def need(self, name: str, line: int, later: Collection[str] = ()) -> None:
        """Count a name as used, or report it."""
        if name in later and name in self._columns and name not in self.known:
            self._report(
                f"'{name}' is a column of the dataset and a name of the answer",
                line,
                hint=f"write '{ITEM}.{name}' for the column",
            )
        elif name in self.known or name in self.data:
            self._use(name)
            is_told = name in self.known or name in self._reserved
            if name == ITEM and name in self._columns and not is_told:
                self._reserved.add(name)
                self._report(
                    f"'{name}' is the whole row here, and the dataset also has a column '{name}'",
                    line,
                    severity="warning",
                    hint=f"write '{{{{ {name}.{name} }}}}' for the column",
                )
        elif name not in later and not (self.runtime and name in RUNTIME_NAMES):
            words, hint = f"'{name}' is not defined", self._hint(name, later)
            if name in self._answers:
                words = f"'{name}' is an answer, so it can only be mentioned below '---'"
                hint = "in the messages the candidate sees its answers where it gave them"
            self._report(words, line, hint=hint, fragment=name)

    def _hint(self, name: str, later: Collection[str]) -> str:
        """Return a hint for an unknown name."""
        if self.runtime and name.startswith("_"):
            return "judge prompts know " + ", ".join(RUNTIME_NAMES)
        if self._advice:
            return self._advice
        if name.partition(".")[0] == ITEM and not self.data and not self.runtime:
            return f"'{ITEM}' is a row of 'dataset:' or 'replacements:', and the file has neither"
        inside = name.startswith(f"{ITEM}.")
        columns = {*self._columns.values()}
        if inside:
            columns = {f"{ITEM}.{column}" for column in columns or self.known}
        own = self._answers - {LAST} if later else ()
        if near := nearest(name, [*self.known, *columns, *later]):
            return near
        if later and self._nameless:
            return "in a conversation from data the first answer is '{{answers[0]}}'"
        if columns or own:
            return suggest(name, [*self.known, *columns, *own], "names")
        if self.known:
            return suggest(name, self.known, "replacements")
        return "define it under 'replacements:'"

    def _use(self, name: str) -> None:
        if name in self._used:
            return
        self._used.add(name)
        if name in self.data and name not in self.known and self._has_own_item:
            for replacement in self.known if name == ITEM else (name.removeprefix(f"{ITEM}."),):
                self._use(replacement)
            return
        if name in self.data and name not in self.known:
            columns = [*self._columns.values()] if name == ITEM else [self._column(name)]
            self.used_columns |= dict.fromkeys(columns)
            return
        for (owner, _), template in self.values.items():
            if owner == name:
                for inner, line in template.names.items():
                    self.need(inner, line)

    def _column(self, name: str) -> str:
        known = self._columns.get(name)
        return self._columns[name.removeprefix(f"{ITEM}.")] if known is None else known

    def require_row_id(self, name: str, line: int) -> None:
        """Report a name that is neither a replacement nor a column."""
        names = {**self.known, **self._columns}
        if name not in names:
            self._report(
                f"'rowId' names '{name}', which is neither a column nor a replacement",
                line,
                hint=f"write '{bare}'"
                if (bare := name.removeprefix(f"{ITEM}.")) in names
                else suggest(
                    name, {*self.known, *self._columns.values()}, "columns and replacements"
                ),
            )

    def _names_in(self, name: str) -> set[str]:
        """Return a name with all names that its values mention, also indirectly."""
        names: set[str] = set()
        waiting = [name]
        while waiting:
            owner = waiting.pop()
            if owner not in names:
                names.add(owner)
                for (own, _), template in self.values.items():
                    waiting += template.names if own == owner else ()
        return names

    def is_used(self, name: str) -> bool:
        """Return whether a text needs this replacement."""
        return name in self._used

    def finish(self, line_of: Callable[..., int], row_id: str | None = None) -> None:
        """Report unused names; `row_id` is used to name the rows."""
        used = self._used | (self._names_in(row_id) if row_id else set())
        for name in self.known:
            if name not in used:
                line = next(
                    line_of("replacements", name)
                    if len(self.replacements) == 1
                    else written[0].line
                    for item in self.replacements
                    if (written := item.get(name))
                )
                self._report(
                    f"replacement '{name}' is never used",
                    line,
                    hint=f"write `{{{{{name}}}}}` where it belongs, or remove it",
                )


def clean_path(mention: FileMention) -> str:
    """Return a mentioned path with forward slashes, without `./` and a leading slash."""
    parts = [part for part in mention.path.replace("\\", "/").split("/") if part not in ("", ".")]
    if not parts:
        raise FileProblem("'_file:' names no file", mention.line)
    return "/".join(parts)


ANSWERS = frozenset({"answer", "answers"})
"""The names of the last answer and of all answers, in addition to the names of turns."""
SAMPLE = "sample"
"""The name of the last answer with its metadata."""
_AS_JSON = re.compile(r"\|\s*tojson\b")
_ADDRESS = re.compile(r"https?://[^\s/]")


@dataclass(frozen=True, slots=True)
class AnswerNames:
    """The names of the answers of one conversation."""

    run: str | None
    turns: tuple[str | None, ...]
    """The names of its answers, in order; None: it has none."""


class ConversationTemplate:
    """One run of a file with its texts compiled."""

    def __init__(self, run: RepeatedConversation, filler: TemplateSet) -> None:
        self.run = run
        self._turns = [
            (turn, filler.compile(turn.section), _image(turn, filler)) for turn in run.turns
        ]
        self.texts = [template for _, template, _ in self._turns]
        self._template = filler.compile(run.template) if run.template else None
        self._shape = AnswerNames(run.name, run.turn_names)

    def fill(self, row: RowValues, project: FillContext) -> tuple[tuple[Message, ...], AnswerNames]:
        """Fill the messages for a row; returns also the answers' names, raises `FileProblem`."""
        if self._template is None:
            shown = [
                fill_turn(turn, template, row, project, im) for turn, template, im in self._turns
            ]
            return tuple(shown), self._shape
        assert self.run.template is not None
        messages = _evaluate_messages(self._template, self.run.template, row)
        filled = sum(1 for message in messages if message.filled)
        return messages, AnswerNames(self.run.name, (*[None] * filled, LAST))


def _image(turn: Turn, filler: TemplateSet) -> Template | None:
    if turn.image is None:
        return None
    return filler.compile(Section(turn.image, (turn.section.first,), turn.section.first))


def fill_turn(
    turn: Turn,
    template: Template,
    row: RowValues,
    project: FillContext,
    image: Template | None = None,
) -> Message:
    """Fill one turn with a row; raises `FileProblem`."""
    if turn.name is not None:
        return Message(turn.role, (), filled=True)
    filled = template.fill(row.lookup, row.typed)
    parts = _as_parts(filled, project, {}, verbatim=turn.verbatim)
    if image is not None:
        path = "".join(str(piece) for piece in image.fill(row.lookup, row.typed))
        shown = project.keep_address(path) if _ADDRESS.match(path) else None
        parts = (*parts, shown or _file(path, turn.section.first, project))
    for part in parts if turn.role != "user" else ():
        if isinstance(part, FileRef) and not is_text(part.media_type):
            raise FileProblem(
                f"'{part.path}' ({part.media_type}) can only be shown in a user message",
                turn.section.first,
                hint=f"in a message of the role '{turn.role}' only text files are allowed",
            )
    return Message(turn.role, parts, name=turn.speaker)


def fill_instructions(
    template: Template,
    row: RowValues,
    project: FillContext,
    shapes: Sequence[AnswerNames],
    later: Collection[str],
) -> tuple[Part, ...]:
    """Fill instructions; the names of answers (`later`) become placeholders."""
    used = {name: line for name, line in template.names.items() if name in later}
    places = {name: find_answers(name, shapes) for name in used if name != SAMPLE}
    if SAMPLE in used:
        template = template.with_later(SAMPLE)

    def lookup(name: str) -> Filled:
        return [DeferredValue(name, used[name])] if name in used else row.lookup(name)

    def typed(name: str) -> Any:
        if name in used:
            raise FileProblem(
                f"'{name}' is known only when there is an answer",
                used[name],
                hint="in instructions write an expression with it, as in `{{ sample.output_text }}`"
                if name == SAMPLE
                else f"in instructions write `{{{{{name}}}}}` where it belongs",
            )
        return row.typed(name)

    return _as_parts(template.fill(lookup, typed), project, places)


def find_answers(name: str, shapes: Sequence[AnswerNames]) -> tuple[tuple[int, int], ...]:
    """Find the answers of a turn, or the last answers of a run, as session and number.

    `answer` is the last of all answers, `answers` are all.
    """
    every = [
        (number, turn)
        for number, answers in enumerate(shapes)
        for turn in range(len(answers.turns))
    ]
    if name in ANSWERS:
        return tuple(every if name == "answers" else every[-1:])
    places: list[tuple[int, int]] = []
    for number, shape in enumerate(shapes):
        if shape.run == name:
            places.append((number, len(shape.turns) - 1))
        places += [
            (number, turn) for turn, turn_name in enumerate(shape.turns) if turn_name == name
        ]
    return tuple(places)


def _as_parts(
    pieces: Filled,
    project: FillContext,
    answers: Mapping[str, tuple[tuple[int, int], ...]],
    *,
    verbatim: bool = False,
) -> tuple[Part, ...]:
    if len(pieces) == 1 and isinstance(pieces[0], str):
        text = pieces[0] if verbatim else pieces[0].strip(SPACE)
        return (Text(text),) if text else ()
    if pieces and isinstance(pieces[0], str) and not verbatim:
        pieces[0] = pieces[0].lstrip(SPACE)
    if pieces and isinstance(pieces[-1], str) and not verbatim:
        pieces[-1] = pieces[-1].rstrip(SPACE)
    parts: list[Part] = []
    for piece in pieces:
        if isinstance(piece, DeferredValue):
            places = answers.get(piece.path)
            parts.append(SampleRef(piece.path) if places is None else AnswerRef(places))
        elif not isinstance(piece, str):
            parts.append(_file(clean_path(piece), piece.line, project))
        elif piece:
            parts.append(Text(piece))
    return tuple(parts)


def _file(path: str, line: int, project: FillContext) -> FileRef:
    try:
        version, id = project.read_file(path)
    except FileProblem as problem:
        raise FileProblem(problem.message, line, hint=problem.hint) from problem
    return FileRef(path, version.media_type, id)


# --- messages from data -----------------------------------------------------------------


def _evaluate_messages(template: Template, section: Section, row: RowValues) -> tuple[Message, ...]:
    """Return the messages to which the field `messages` evaluates, when it is a template."""
    value = template.value(row.lookup, row.typed)
    if isinstance(value, str) and _AS_JSON.search(section.text):
        try:
            value = parse_json(value)
        except (ValueError, RecursionError) as error:
            raise FileProblem(
                f"'messages' does not evaluate to JSON: {error}", section.first
            ) from error
    try:
        return parse_messages(value)
    except FileProblem as problem:
        raise FileProblem(problem.message, section.first, hint=problem.hint) from problem


def parse_messages(value: Json) -> tuple[Message, ...]:
    """Read messages from data: a list of `{role, content}`, or the text of a user message.

    A last turn that the candidate fills is removed. Raises `FileProblem` without a line.
    """
    if isinstance(value, str):
        return (Message("user", (Text(value),) if value else ()),)
    if not isinstance(value, list) or not value:
        shown_value = shorten(as_text(value)) if value is not None else "null"
        raise FileProblem(
            f"'messages' must evaluate to a list of messages or to a text, not {shown_value}"
        )
    messages = tuple(
        _parse_message(message, number) for number, message in enumerate(value, start=1)
    )
    if messages[-1].filled:
        messages = messages[:-1]
    if not messages or messages[0].filled:
        raise FileProblem("'messages' has nothing in front of the turn that the candidate fills")
    if messages[-1].role == "assistant" and not messages[-1].filled:
        hint = "end it with a message of the role 'user'"
        raise FileProblem("'messages' ends with a fixed answer", hint=hint)
    return messages


def _parse_message(message: Any, number: int) -> Message:
    if not isinstance(message, dict):
        raise FileProblem(f"message {number} is not an object with 'role' and 'content'")
    unknown = [key for key in message if key not in MESSAGE_FIELDS]
    if unknown:
        hint = suggest(unknown[0], MESSAGE_FIELDS, "fields")
        raise FileProblem(f"message {number} has an unknown field '{unknown[0]}'", hint=hint)
    role = next(
        (known_role for known_role in ROLES if known_role == message.get("role", "user")), None
    )
    if role is None:
        hint = "a role is " + ", ".join(f"'{known_role}'" for known_role in ROLES)
        shown_role = shorten(as_text(message["role"])) if message["role"] is not None else "null"
        raise FileProblem(f"message {number} has an unknown role, {shown_role}", hint=hint)
    if message.get("image") is not None:
        raise FileProblem(f"message {number} has an image: data cannot mention files")
    content, name = message.get("content"), message.get("name")
    if content is None and role == "assistant" and "content" in message:
        return Message(role, (), filled=True)
    if name is not None and not isinstance(name, str):
        raise FileProblem(f"the 'name' of message {number} is not a text")
    text = _text(content)
    if text is None:
        raise FileProblem(f"the 'content' of message {number} is not a text")
    return Message(role, (Text(text),) if text else (), name=name or None)


def _text(content: Json) -> str | None:
    """Return the text of a content that is a text, or a list of parts that are texts."""
    if isinstance(content, list) and content:
        texts = [
            part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None
            for part in content
        ]
        strings = [text for text in texts if isinstance(text, str)]
        return "".join(strings) if len(strings) == len(texts) else None
    return content if isinstance(content, str) else None


def expand_prompt(prompt: PromptFile, library: Definitions) -> tuple[tuple[str, ...], ExpandedFile]:
    """Expand a prompt to its versions; returns their ids, and their contents or problems."""
    result = ExpandedFile()
    filler = TemplateSet(
        prompt.path, prompt.replacements, as_is=prompt.plain, runtime=prompt.is_evaluator
    )
    turns = [(turn, filler.compile(turn.section)) for turn in prompt.turns]
    filler.finish(prompt.line_of)
    result.problems += filler.problems
    used = {name for _, template in turns for name in template.names}
    for name in REQUIRED_NAMES if prompt.is_evaluator else ():
        # Another evaluator prompt may be for tests without instructions.
        if name not in used and (name != INSTRUCTIONS or prompt.id == DEFAULT_PROMPT):
            message = f"the judge prompt never uses '{name}'"
            hint = f"write `{{{{{name}}}}}` where it belongs"
            result.report(prompt.path, message, prompt.turns[0].section.first, hint=hint)
    if any(problem.severity == "error" for problem in result.problems):
        return (), result
    special = tuple(tag for tag in prompt.tags if tag.startswith("_"))
    project = FillContext(prompt.path, library, result)
    ids: list[str] = []
    for values in expand_rows(prompt.replacements):
        row = RuntimeRow(values, filler.values)
        try:
            messages = tuple(fill_turn(turn, template, row, project) for turn, template in turns)
        except FileProblem as problem:
            result.problems.append(problem.at(prompt.path))
            if isinstance(problem, LimitProblem):
                break
            continue
        version = PromptVersion(messages, special)
        ids.append(result.keep("prompt", hashing.describe_prompt(version)))
    result.problems = list(dict.fromkeys(result.problems))
    if any(problem.severity == "error" for problem in result.problems):
        return (), result
    return tuple(dict.fromkeys(ids)), result

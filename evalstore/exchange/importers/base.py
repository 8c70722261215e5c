"""The result of an import: files to write, answers to record, and the skipped items.

An importer is a function from paths to an `Imported`. It only reads: it runs no code and writes
nothing. The same input always gives the same result.

The importers are known by the name of their format; their modules are loaded on demand.

Plug-ins register importers in the entry point group `evalstore.formats`; they cannot replace those
of this package.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

from evalstore.core.errors import EvalstoreError, FileProblem
from evalstore.core.hashing import is_deeper
from evalstore.core.values import Json, Reply, Role, ToolVersion, Usage, Verdict
from evalstore.files.access import (
    FLAG,
    LARGEST_SOURCE,
    Boundary,
    OutsideProblem,
    normalise,
    open_file,
    read_file,
    too_large,
)
from evalstore.files.fields import suggest
from evalstore.files.markdown_lines import SPACE, fences, scan_lines
from evalstore.files.text_source import DEEPEST
from evalstore.files.yaml12 import write_yaml


@dataclass(frozen=True, slots=True)
class SkippedItem:
    """An item that is not imported, with its location and the reason."""

    JSON_FIELDS = ("file", "line", "column", "reason")

    file: str
    reason: str
    line: int | None = None
    column: int | None = None


OPTION_NAMES = {
    "temperature": "temperature",
    "top_p": "topP",
    "max_tokens": "maxOutputTokens",
    "seed": "seed",
    "stop": "stop",
}
"""Maps the names of options in chat completions to those of a test."""


class NotTakenError(Exception):
    """Something cannot be imported: a test, a line of data, an answer or a part of one."""

    def __init__(self, reason: str, *, line: int | None = None, file: str | None = None) -> None:
        """`file` is another faulty file in the test's folder, and `line` is a line of that file."""
        super().__init__(reason)
        self.line = line
        self.file = file


HALF_PAIR = "a text holds half of a surrogate pair"
"""The reason for a text that no file can hold."""


def require(condition: object, reason: str, *, line: int | None = None) -> None:
    """Raise `NotTakenError` with the other arguments unless a condition holds."""
    if not condition:
        raise NotTakenError(reason, line=line)


class ShownMessage(NamedTuple):
    """A message of a conversation recorded by another tool."""

    role: Role
    text: str | None
    """None for a turn that the model filled."""
    image: str | None = None
    """The URL of a picture."""


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """The answers to a row, recorded by another tool, with their verdict."""

    file: str
    """The path of its test file in `Imported.files`."""
    values: dict[str, Json]
    """The values of its row by name."""
    model: str
    """A display id, such as `openai/gpt-5.5`."""
    answers: tuple[tuple[str, ...], ...]
    """By conversation, with one text per turn that the candidate fills."""
    started: int
    """Microseconds since 1970."""
    verdict: Verdict
    temperature: float | None = None
    judge: str = ""
    """What gave the verdict, such as `RefuseChecker`."""
    source: str = ""
    """The file it comes from."""
    line: int | None = None
    messages: tuple[tuple[ShownMessage, ...], ...] | None = None
    """What the model was shown in each conversation, without the last answer.

    None if this equals the messages of the test.
    """


@dataclass(frozen=True, slots=True)
class RecordedModel:
    """The model of an answer or of a verdict, as another tool recorded it."""

    provider: str
    code: str
    """The provider's name for it."""
    options: Json = None
    """Other parameters of the call; None if they were not recorded."""
    extra_identifier: str | None = None
    """Distinguishes it from models with the same code; None if it was not recorded."""
    current: bool = True
    """Whether its file still describes this version."""


@dataclass(frozen=True, slots=True)
class RecordedVerdict:
    """The verdict of a model on an answer, recorded by another tool."""

    by: RecordedModel
    temperature: float
    prompt: str
    """The evaluator prompt with its runtime placeholders unfilled."""
    tags: tuple[str, ...]
    """Special tags of the prompt."""
    instructions: str
    verdict: Verdict
    feedback: str
    reasoning: str
    started: int
    usage: Usage = Usage()
    latency: float = 0.0


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """An answer recorded by another tool, with everything that the model was shown."""

    by: RecordedModel
    temperature: float
    prompt: str
    """The system prompt."""
    messages: tuple[tuple[Role, str], ...]
    reply: Reply
    started: int
    """Microseconds since 1970."""
    place: str
    """A description of its location, for messages."""
    special_tags: tuple[str, ...] = ()
    tools: tuple[ToolVersion, ...] = ()
    schema: Json = None
    rulings: tuple[RecordedVerdict, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """The user's options for an import."""

    name: str
    """The folder below `tests`, `prompts` and so on for the files; ids begin with it."""
    sessions: bool = False
    """Whether to import recorded answers and verdicts."""
    temperature: float | None = None
    """The default temperature of the workspace's candidates; None: none is sent."""
    working_folder: Path | None = None
    """The folder in which the import was started."""


@dataclass
class Imported:
    """The result of an import."""

    files: dict[str, bytes] = field(default_factory=dict)
    """By path with forward slashes. The first part is the kind of folder (`tests`, `prompts`,
    `schemas`, …); the user's folder is inserted after it."""
    rows: int = 0
    """The number of rows of all tests."""
    settings: dict[str, Json] = field(default_factory=dict)
    """Fields for `evalstore.yaml`, such as `thresholds`."""
    left: list[SkippedItem] = field(default_factory=list)
    warnings: list[SkippedItem] = field(default_factory=list)
    """Items whose import differs from the original."""
    recorded: list[JudgedAnswer] = field(default_factory=list)
    """Answers to the imported tests."""
    conversed: list[RecordedAnswer] = field(default_factory=list)
    """Answers that contain the conversation they belong to."""

    def skip(
        self, file: Path | str, reason: object, line: int | None = None, column: int | None = None
    ) -> None:
        """Note what is not imported."""
        self.left.append(SkippedItem(str(file), str(reason), line, column))

    def add_model(self, code: str, provider: str, base_url: str, key: str | None) -> None:
        """Add the files of a model at an address, and of its provider."""
        served: Json = {"code": provider, "type": "openai-compatible", "baseURL": base_url}
        served |= {"apiKeyEnvVar": key} if key else {}
        model = {"id": code, "provider": provider, "providerModelCode": code}
        named = provider.rpartition("/")[2]
        for folder, name, fields in ("providers", named, served), ("models", code, model):
            text = f"{write_yaml(fields, compact=True)}\n"
            self.files[f"{folder}/{safe_file_name(name)}.yaml"] = text.encode()

    def require_any(self, message: str, hint: str) -> None:
        """Raise `EvalstoreError` unless something was imported, or noted as left."""
        if not self.files and not self.left:
            raise EvalstoreError(message, hint=hint)

    def warn(self, file: Path | str, reason: str, line: int | None = None) -> None:
        """Note what differs from the original."""
        self.warnings.append(SkippedItem(str(file), reason, line))


@contextmanager
def skipping(
    left: list[SkippedItem], file: Path | str, line: int | None = None, subject: str = ""
) -> Iterator[None]:
    """Add what is not taken in the block to `left`; `subject` begins the reason.

    `file` and `line` are those of the item, unless the error names others.
    """
    try:
        yield
    except NotTakenError as problem:
        place = Path(file).parent / problem.file if problem.file else file
        left.append(SkippedItem(str(place), f"{subject}{problem}", problem.line or line))
    except UnicodeEncodeError:
        left.append(SkippedItem(str(file), f"{subject}{HALF_PAIR}", line))


@dataclass
class CountedReasons:
    """Counts the items of a file that are not imported, or not unchanged, by reason."""

    file: str
    _reasons: dict[str, tuple[str, int]] = field(default_factory=dict)

    def add(self, reason: str, place: str) -> None:
        """Add an item with its place in the file."""
        first, count = self._reasons.get(reason, (place, 0))
        self._reasons[reason] = (first, count + 1)

    def items(self) -> list[SkippedItem]:
        """Return one item per reason, with the first place."""
        return [
            SkippedItem(
                self.file,
                f"{reason} ({place}" + (f" and {count - 1:,} more)" if count > 1 else ")"),
            )
            for reason, (place, count) in self._reasons.items()
        ]


class Importer(Protocol):
    """Reads files of a format; raises `FileProblem` or `EvalstoreError` if none can be read."""

    def __call__(self, paths: list[Path], options: ImportOptions) -> Imported:
        """Read these files, or the files in these folders."""
        ...


def short_json(value: Json) -> str:
    """Return the value as JSON, shortened for a message."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:60] + "…"


_URL = re.compile(r"https?://[^\ud800-\udfff]*", re.DOTALL)
"""An address without halves of surrogate pairs."""


def check_picture(address: str) -> None:
    """Raise `NotTakenError` unless the address is a URL (http or https)."""
    if not _URL.fullmatch(address):
        raise NotTakenError(f"{short_json(address)} is not the URL of an image (https://…)")


def parse_json(text: str | bytes, **options: Any) -> Any:
    """Parse a JSON text; raises `ValueError`, also if it is nested too deeply.

    `options` are those of `json.loads`.
    """
    try:
        value = json.loads(text, **options)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if is_deeper(value, DEEPEST):
        raise ValueError("it is nested too deeply")
    return value


def parsed(value: Any, default: Json = None) -> Json:
    """Return the value of a text in JSON, else `default`; other values stay as they are."""
    if not isinstance(value, str | bytes):
        return value
    try:
        return parse_json(value)
    except ValueError:
        return default


def as_mapping(value: Any) -> dict[str, Any]:
    """Return the value if it is a mapping, else an empty mapping."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return the value if it is a list, else an empty list."""
    return value if isinstance(value, list) else []


def positive_int(value: Any) -> int:
    """Return the value if it is a whole number above zero, else zero."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


_ANY_SIZE = 1 << 62
_GZIP = b"\x1f\x8b"
_current: ContextVar[Boundary | None] = ContextVar("boundary of the import", default=None)
"""None if an importer is called directly: then all paths are allowed."""


@contextmanager
def reading_from(paths: Iterable[Path], *, allow_outside: bool) -> Iterator[None]:
    """Restrict importers to these folders, or to the folders of these files."""
    roots = [root for path in paths for root in ((path,) if path.is_dir() else (path.parent, path))]
    token = _current.set(Boundary(roots, "imported folder", allow_all=allow_outside))
    try:
        yield
    finally:
        _current.reset(token)


def include(folder: Path) -> None:
    """Allow another folder that belongs to the format, unless it is a link."""
    boundary = _current.get()
    if boundary and not folder.is_symlink():
        boundary.include(folder)


def is_file(path: Path) -> bool:
    """Return whether there is a file; False also for a name that no file can have."""
    return os.path.isfile(path)  # noqa: PTH113 - the method raises for such a name


def require_readable(path: Path) -> None:
    """Raise `FileProblem` if the path is outside the allowed paths."""
    boundary = _current.get()
    if boundary:
        boundary.resolve(path)


def require_regular(path: Path) -> None:
    """Raise `FileProblem` if the path is not a regular file, such as a pipe."""
    open_file(path, _ANY_SIZE).close()


def read_source(path: Path) -> bytes:
    """Return the bytes of a file; raises `FileProblem`."""
    boundary = _current.get()
    return (boundary.read if boundary else read_file)(path, LARGEST_SOURCE)


def read_unpacked(path: Path) -> bytes:
    """Return the bytes of a file, decompressed if it is gzipped; raises `FileProblem`."""
    data = read_source(path)
    if data[:2] != _GZIP:
        return data
    try:
        with gzip.GzipFile(fileobj=BytesIO(data)) as packed:
            content = packed.read(LARGEST_SOURCE + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise FileProblem(f"cannot be read: {error}") from error
    if len(content) > LARGEST_SOURCE:
        raise too_large(len(content), LARGEST_SOURCE)
    return content


def require_pattern(folder: Path, pattern: str) -> None:
    """Raise `FileProblem` if a path pattern could match outside the allowed paths."""
    steps = pattern.split("/")
    fixed = next((n for n, step in enumerate(steps) if any(sign in step for sign in "*?[")), 0)
    if ".." in steps[fixed:]:
        raise FileProblem("has '..' after a wildcard")
    require_readable(folder / os.path.join(*steps[:fixed], ""))  # noqa: PTH118


def reason_of(problem: FileProblem) -> str:
    """Return why a file is not imported, and the option that allows it."""
    if isinstance(problem, OutsideProblem):
        return f"{problem.message}; '{FLAG}' allows it"
    return problem.message


@contextmanager
def taking(subject: str = "") -> Iterator[None]:
    """Raise `NotTakenError` for a file that cannot be read; `subject` begins the reason."""
    try:
        yield
    except FileProblem as problem:
        raise NotTakenError(f"{subject}{reason_of(problem)}") from problem


def source_text(path: Path, subject: str = "") -> str:
    """Return the text of a file; raises `NotTakenError`, whose reason begins with `subject`."""
    with taking(subject):
        return normalise(read_source(path))


GROUP = "evalstore.formats"

_OWN = {
    "lve": "lve.reader",
    "langbite": "langbite",
    "openai-evals": "openai_evals",
    "evalsone": "evalsone",
    "nemo": "nemo",
    "promptfoo": "promptfoo.reader",
    "ai-tester-db": "ai_tester",
    "otel": "otel",
    "inspect": "inspect_ai",
}
"""Maps the name of a format to the module whose function `read` imports it."""


_TYPICAL = {
    "promptfoo": "promptfooconfig.*",
    "lve": "test.json",
    "langbite": "prompts_*.csv",
    "ai-tester-db": "*.db",
    "openai-evals": "evals/*.y*ml",
    "inspect": "*.eval",
}
"""Maps the name of a format to a pattern of file names that only it has."""


_CONTENT = {
    "otel": re.compile(rb'"resourceSpans"\s*:|"openinference[."]|"type"\s*:\s*"GENERATION"'),
    "inspect": re.compile(rb'"eval"\s*:\s*\{\s*"(?:eval_id|run_id|created|task)"\s*:'),
    "promptfoo": re.compile(rb'"(?:evalId|promptIdx|componentResults)"\s*:'),
}
"""Maps the name of a format to what the beginning of its files in JSON has."""
_SUFFIXES = (".json", ".jsonl", ".ndjson")
_BEGINNING = 65_536
"""The number of bytes that are read to guess a format."""


def format_names() -> list[str]:
    """Return the names of all formats, those of plug-ins last."""
    return list(dict.fromkeys([*_OWN, *(point.name for point in entry_points(group=GROUP))]))


def guess_format(path: Path) -> str | None:
    """Guess the format from file names, else from the beginning of a file; None if unknown."""
    if path.is_dir():
        formats = (name for name, pattern in _TYPICAL.items() if any(path.rglob(pattern)))
    else:
        formats = (name for name, pattern in _TYPICAL.items() if path.match(pattern))
    found, beginning = next(formats, None), b""
    if found is None and path.suffix in _SUFFIXES:
        with suppress(FileProblem, OSError), open_file(path, LARGEST_SOURCE) as file:
            beginning = file.read(_BEGINNING)
    contents = (name for name, pattern in _CONTENT.items() if pattern.search(beginning))
    return found or next(contents, None)


def find_importer(name: str) -> Importer:
    """Return the importer of a format; raises `EvalstoreError` for an unknown name."""
    if name in _OWN:
        return cast("Importer", import_module(f"evalstore.exchange.importers.{_OWN[name]}").read)
    plugged_in = {point.name: point for point in entry_points(group=GROUP)}
    if name in plugged_in:
        return cast("Importer", plugged_in[name].load())
    raise EvalstoreError(
        f"unknown format '{name}'", hint=suggest(name, {**_OWN, **plugged_in}, "formats")
    )


MARKERS = {"system": "# ⚙️", "user": "# 👤", "assistant": "# 🤖"}

_TEMPLATE = re.compile(r"(?:\{[{%]*|<!--)+")
_BEGINNINGS = ("{{", "{%", "<!--")
_STRUCTURE = re.compile(r"^(---[ \t]*$| {0,3}#(?= [👤🤖⚙▶]))", re.MULTILINE)
_TICKED = re.compile(r"`(?=\{\{[^{}]*\}\}`)")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})", re.MULTILINE)
_CHECKS = re.compile(r"^( {0,3}(?:`{3,}|~{3,})[ \t]*)checks\b", re.MULTILINE)


def escape(text: str) -> str:
    """Return a template fragment that renders to this text, whatever follows it."""

    def part(match: re.Match[str]) -> str:
        is_harmless = not any(beginning in match[0] for beginning in _BEGINNINGS)
        return match[0] if is_harmless and match.end() < len(text) else quoted(match[0])

    return _TEMPLATE.sub(part, text)


def literal(text: str) -> str:
    """Escape a text so that it renders unchanged, except for white space at its ends."""
    return as_section(escape(text))


def as_section(template: str) -> str:
    """Escape the section markers in a template, and strip white space at its ends."""
    template = template.strip(SPACE)  # first: stripping may turn an indented line into a marker
    template = _STRUCTURE.sub(lambda match: quoted(match[0]), keep_ticks(template))
    template = _CHECKS.sub(lambda match: match[1] + quoted("checks"), template)
    if any(not fence.closed for fence in fences(scan_lines(template, 1))):
        template = _FENCE.sub(lambda match: quoted(match[0]), template)
    return template


def keep_ticks(template: str) -> str:
    """Escape backticks around placeholders, which would otherwise be removed."""
    return _TICKED.sub(lambda _match: quoted("`"), template)


def quoted(text: str) -> str:
    """Return an expression that evaluates to this text."""
    inner = json.dumps(text, ensure_ascii=False)
    for sequence, parts in (("}}", '}" ~ "}'), ("<!--", '<!" ~ "--')):
        inner = inner.replace(sequence, parts)
    return "{{ " + inner + " }}"


def write_test(
    front: dict[str, Json],
    turns: Iterable[tuple[str, str]] = (),
    *,
    body: str = "",
    instructions: str = "",
    checks: Json = None,
    comments: Iterable[str] = (),
) -> bytes:
    """Return a test file; `turns` are roles and templates, empty if `front` has messages.

    `body` stands in place of turns; `comments` are lines before the fields of `front`.
    """
    if isinstance(messages := front.get("messages"), list):
        escaped = [
            {**each, "content": each["content"] and keep_ticks(each["content"])}
            for each in messages
        ]
        front = {**front, "messages": escaped}
    notes = "".join(f"# {line}\n" for line in comments)
    parts = [f"---\n{notes}{write_yaml(front, compact=True)}\n---\n"] if front else []
    parts += [body or write_sections(turns), "---\n"]
    if instructions:
        parts.append(as_section(instructions) + "\n")
    if checks:
        parts.append(f"~~~checks\n{write_yaml(checks, compact=True)}\n~~~\n")
    return "\n".join(part for part in parts if part).encode()


def write_prompt(front: dict[str, Json], turns: Sequence[tuple[str, str]]) -> bytes:
    """Return a file with a system prompt or an evaluator prompt."""
    return f"---\n{write_yaml(front, compact=True)}\n---\n\n{write_sections(turns)}".encode()


def write_sections(turns: Iterable[tuple[str, str]]) -> str:
    """Return sections with their markers; a leading system text has no marker."""
    parts = []
    for number, (role, template) in enumerate(turns):
        text = as_section(template)
        marked = number > 0 or role != "system"
        parts.append(f"{MARKERS[role]}\n\n{text}\n" if marked else f"{text}\n")
    return "\n".join(parts)


def takes_turns(roles: Sequence[str]) -> bool:
    """Return whether user and assistant alternate, after at most one system message."""
    turns = roles[roles[0] == "system" :]
    return bool(turns) and all(
        role == ("user", "assistant")[number % 2] for number, role in enumerate(turns)
    )


def safe_file_name(name: str) -> str:
    """Return a safe file name; other characters become `-`."""
    return re.sub(r"[^\w.+-]+", "-", name).strip("-.")[:100] or "test"


def unique(name: str, taken: Iterable[str], sign: str = "-") -> str:
    """Return the name, with a number behind a sign if it is taken."""
    known = set(taken)
    number = 2
    candidate = name
    while candidate in known:
        candidate, number = f"{name}{sign}{number}", number + 1
    return candidate


_ENDS = {"{{": "}}", "{%": "%}", "{#": "#}"}


class Part(NamedTuple):
    """An expression, statement or comment of a template, with its offsets."""

    text: str
    start: int
    end: int


def find_parts(template: str, other: str = "<!--") -> Iterator[Part]:
    """Yield the expressions, statements and comments of a template, and matches of `other`.

    An unclosed part is text. One regular expression for all would take quadratic time on those.
    """
    unclosed: set[str] = set()
    at = 0
    while match := _beginning(other).search(template, at):
        start, mark = match.start(), match[0]
        end = match.end()
        if mark in _ENDS:
            closing = -1 if mark in unclosed else template.find(_ENDS[mark], end)
            if closing < 0:
                unclosed.add(mark)
                at = start + 1
                continue
            end = closing + 2
        yield Part(template[start:end], start, end)
        at = end


def replace_parts(template: str, replace: Callable[[str], str], other: str = "<!--") -> str:
    """Return the template with each part replaced."""
    pieces: list[str] = []
    at = 0
    for part in find_parts(template, other):
        pieces += [template[at : part.start], replace(part.text)]
        at = part.end
    return "".join([*pieces, template[at:]])


def expression_in(part: str) -> str | None:
    """Return the content of a lone `{{ … }}`; None if the text is anything else."""
    text = part.strip()
    if not (text.startswith("{{") and text.endswith("}}") and len(text) > 4):
        return None
    inner = text[2:-2]
    return None if "}}" in inner else inner.removeprefix("-").removesuffix("-").strip() or None


def without_filter(expression: str, name: re.Pattern[str]) -> str | None:
    """Return an expression without its last filter; None if that does not have this name."""
    value, bar, last = expression.rpartition("|")
    return value.strip() or None if bar and name.fullmatch(last.strip()) else None


@cache
def _beginning(other: str) -> re.Pattern[str]:
    return re.compile(rf"\{{\{{|\{{%|\{{#|{other}", re.DOTALL)


# --- prompts of judges of other tools, which mix values of the row, the answer and fixed text
#
# In evalstore, row values reach a judge through the instructions of the test. So the part of the
# prompt that uses the row becomes the instructions, and the rest becomes an evaluator prompt
# that includes them at the same position. Combined, they give the original prompt.


INSTRUCTIONS = "{{_evaluationInstructions}}"
ANSWER = "{{_actualResponse}}"
CONVERSATION = "{{_messages}}"
_BELOW = "(the response stands below)"


class PromptPiece(NamedTuple):
    """A part of a judge's prompt."""

    text: str
    is_template: bool = False
    """Whether it is a template for the row's values; else it is literal text."""
    runtime: str = ""
    """The runtime placeholder, such as `ANSWER`; `text` is not used then."""


Message = tuple[str, Sequence[PromptPiece]]
"""A role and the pieces of its message."""


def split_prompt(id: str, messages: Sequence[Message]) -> tuple[bytes, str, bool]:
    """Split a judge's prompt into an evaluator prompt and the instructions of a test.

    The last value is whether the order of the parts differs from the original.
    """
    messages = list(messages)
    filled = [any(piece.is_template for piece in pieces) for _, pieces in messages]
    differs = sum(filled) > 1
    if differs:  # only one part can use the row
        together = [piece for _, pieces in messages for piece in (*pieces, PromptPiece("\n\n"))][
            :-1
        ]
        messages, filled = [("user", together)], [True]
    turns: list[tuple[str, str]] = []
    instructions = ""
    for (role, pieces), needs_row in zip(messages, filled, strict=True):
        if not needs_row:
            turns.append((role, "".join(map(_prompt_text, pieces))))
            continue
        numbers = [number for number, piece in enumerate(pieces) if piece.is_template]
        start, end = numbers[0], numbers[-1] + 1
        middle = pieces[start:end]
        before, after = pieces[:start], pieces[end:]
        has_runtime = any(piece.runtime for piece in middle)
        differs = differs or has_runtime
        instructions = "".join(_instructions_text(piece) for piece in middle)
        text = "".join(map(_prompt_text, before)) + INSTRUCTIONS + "".join(map(_prompt_text, after))
        if has_runtime:
            names = dict.fromkeys(piece.runtime for piece in middle if piece.runtime)
            text += "".join(f"\n\n{name}" for name in names if name not in text)
        turns.append((role, text))
    if all(role == "system" for role, _ in turns):
        turns = [("user", text) for _, text in turns]
    front: dict[str, Json] = {"id": id, "tags": ["_evaluator"]}
    return write_prompt(front, turns), instructions, differs


def _prompt_text(piece: PromptPiece) -> str:
    return piece.runtime or literal_part(piece.text)


def _instructions_text(piece: PromptPiece) -> str:
    if piece.runtime:
        return _BELOW if piece.runtime == ANSWER else "(it stands below)"
    return piece.text if piece.is_template else literal_part(piece.text)


def literal_part(text: str) -> str:
    """Escape text in the middle of a section, keeping the white space at its ends."""
    inner = text.strip()
    if not inner:
        return text
    before, _, after = text.partition(inner)
    return before + literal(inner) + after


def middle_of(low: float, high: float) -> str:
    """Return the bound `>= x` for the middle of a scale."""
    return f">= {(low + high) / 2:g}"

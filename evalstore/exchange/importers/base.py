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
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import entry_points
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

from evalstore.core.errors import EvalstoreError, FileProblem
from evalstore.core.hashing import is_deeper
from evalstore.core.values import Json, Reply, Role, ToolVersion, Usage, Verdict
from evalstore.exchange.importers.template_writer import safe_file_name
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

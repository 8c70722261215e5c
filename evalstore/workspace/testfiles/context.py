"""The definitions that test files refer to, and the result of expanding one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from evalstore.core import hashing
from evalstore.core.deserialize import restore_messages
from evalstore.core.errors import FileProblem, Problem
from evalstore.core.values import (
    REQUIRED_NAMES,
    RUNTIME_NAMES,
    CaseFile,
    FileRef,
    FileVersion,
    Json,
    Text,
)
from evalstore.files import access
from evalstore.files.datasets import Dataset, DatasetSpec
from evalstore.files.fields import suggest
from evalstore.workspace.index import NumberLists

INSTRUCTIONS = REQUIRED_NAMES[0]
SHOWN = "{{" + INSTRUCTIONS + "}}"
"""The placeholder for the instructions in a prompt."""


_OF_QUESTION = tuple("{{" + name + "}}" for name in RUNTIME_NAMES if name not in REQUIRED_NAMES)


def shows_question(content: Json) -> bool:
    """Return whether an evaluator prompt shows the judge what the candidate was asked."""
    parts = [part for message in restore_messages(content["messages"]) for part in message.parts]
    texts = [part.text for part in parts if isinstance(part, Text)]
    return any(name in text for text in texts for name in _OF_QUESTION)


@dataclass(frozen=True, slots=True)
class Definitions:
    """The definitions that test files refer to by id, with the ids of the current versions."""

    prompts: Mapping[str, tuple[str, ...]]
    evaluator_prompts: Mapping[str, tuple[str, ...]]
    tools: Mapping[str, str]
    schemas: Mapping[str, str]
    read_file: Callable[[str, str], tuple[FileVersion, str]]
    """From a mentioned path and the test file's path to the file and its id."""
    open_data: Callable[[DatasetSpec, str], tuple[Dataset, str]]
    """From a dataset and the test file's path to its rows and the digest of its file."""
    silent: frozenset[str] = frozenset()
    """Ids of judge prompt versions that do not show the instructions."""


Sink = Callable[[Mapping[str, tuple[str, str]], Mapping[str, FileVersion]], None]
"""Receives contents (id -> kind and canonical JSON) and referenced files."""
COLUMNS = "columns"
"""The dependency on the names of the columns of the data."""
KEPT_AT_ONCE = 16_000
"""The number of contents per transaction; a large one is faster."""
_MOST_CHARACTERS = 16 * 2**20
"""The most characters of contents per transaction."""


def keep_after(
    contents: Mapping[str, tuple[str, str]], files: Mapping[str, FileVersion], keep: Sink
) -> Sink:
    """Return a sink that passes these contents and files on with the first ones it receives."""
    first = [(dict(contents), dict(files))]

    def keep_next(
        contents: Mapping[str, tuple[str, str]], files: Mapping[str, FileVersion]
    ) -> None:
        if first:
            keep(*first.pop())
        keep(contents, files)

    return keep_next


@dataclass
class ExpandedFile:
    """The result of expanding one file."""

    file: CaseFile | None = None
    node: str | None = None
    """Set instead of `file` for many cases, whose nodes are among the contents."""
    rows: NumberLists | None = None
    """By which the rows of many cases are known when other rows have changed."""
    contents: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Id -> kind and canonical content of every version that the cases name."""
    files: dict[str, FileVersion] = field(default_factory=dict)
    dependencies: dict[str, Any] = field(default_factory=dict)
    """`prompt:id`, `tool:id`, `schema:id`, `file:path`, `dataset:path` -> the ids they had."""
    problems: list[Problem] = field(default_factory=list)
    sink: Sink | None = None
    """Receives contents and files when there are many."""
    _characters: int = 0
    """The number of characters of the contents."""

    def has_failed(self) -> bool:
        """Return whether there is a problem that makes the file invalid."""
        return any(problem.severity == "error" for problem in self.problems)

    def report(self, path: str, message: str, line: int | None, *, hint: str | None) -> None:
        """Add an error of a file."""
        self.problems.append(Problem(path, message, line, hint=hint))

    def keep(self, kind: str, description: dict[str, Json]) -> str:
        """Keep the content of a version; returns its id."""
        id, content = hashing.identify(description)
        if kind == "evaluation":
            id = sys.intern(id)  # many cases may share one
        if id in self.contents:
            return id
        self.contents[id] = (kind, content)
        self._characters += len(content)
        if self.sink is not None and (
            len(self.contents) >= KEPT_AT_ONCE or self._characters > _MOST_CHARACTERS
        ):
            self.sink(self.contents, self.files)
            self.contents, self.files, self._characters = {}, {}, 0
        return id

    def add_once(self, problems: Iterable[Problem]) -> None:
        """Add problems without duplicates."""
        self.problems = list(dict.fromkeys([*self.problems, *problems]))


@dataclass(frozen=True, slots=True)
class FillContext:
    """The context in which the texts of one file are filled."""

    path: str
    library: Definitions
    result: ExpandedFile
    has_instructions: bool = False
    """Whether there are instructions, which a judge prompt must then show."""

    def find_prompts(self, id: str, line: int) -> tuple[str, ...]:
        """Find the versions of an evaluator prompt that a check names; raises `FileProblem`.

        One that does not show instructions is an error for a test that has some.
        """
        library = self.library
        versions = library.evaluator_prompts.get(id, ())
        self.result.dependencies[f"evaluator:{id}"] = list(versions)
        if not versions:
            hint = suggest(id, library.evaluator_prompts, "judge prompts")
            if id in library.prompts:
                hint = "it is a system prompt; judge prompts have the tag '_evaluator'"
            raise FileProblem(f"unknown judge prompt '{id}'", line, hint=hint)
        if self.has_instructions and not library.silent.isdisjoint(versions):
            raise FileProblem(
                f"the judge prompt '{id}' never uses '{INSTRUCTIONS}', so the text below "
                "'---' would have no effect",
                line,
                hint=f"write `{SHOWN}` into the prompt, or remove the text",
            )
        return versions

    def read_file(self, path: str) -> tuple[FileVersion, str]:
        """Read a mentioned file and its id; raises `FileProblem`."""
        version, id = self.library.read_file(path, self.path)
        self.result.dependencies[f"file:{path}"] = id
        self.result.files[id] = version
        return version, id

    def keep_address(self, address: str) -> FileRef:
        """Keep the URL of a picture, which the model's service downloads."""
        version = FileVersion(access.ADDRESS, address.encode())
        id = hashing.identify(hashing.describe_file(version))[0]
        self.result.files[id] = version
        return FileRef(address, access.ADDRESS, id)

    def find_schema(self, id: str, line: int) -> str:
        """Find the version of a schema that a check names; raises `FileProblem`."""
        version = self.library.schemas.get(id)
        self.result.dependencies[f"schema:{id}"] = version
        if version is None:
            hint = suggest(id, self.library.schemas, "schemas")
            raise FileProblem(f"unknown schema '{id}'", line, hint=hint)
        return version

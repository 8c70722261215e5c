"""Evals, the files of their registry, and the result of importing an eval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalstore.core.errors import FileProblem
from evalstore.core.values import Json
from evalstore.exchange.importers.base import (
    NotTakenError,
    SkippedItem,
    as_mapping,
    is_file,
    positive_int,
    read_source,
    read_unpacked,
    reason_of,
    require_readable,
)
from evalstore.exchange.importers.json_lines import JsonLinesRow, read_rows
from evalstore.files.access import normalise
from evalstore.files.yaml12 import Document, read_yaml

_LIMITED = ("JsonMatch", "JsonValidator", "Translate", "ModelBasedClassify")
"""Classes that pass `max_tokens` to the model."""
_AT_ZERO = ("FuzzyMatch", "JsonMatch", "JsonValidator", "Match")
"""Classes that ask the model at a temperature of 0; the others send none."""
_IGNORED = ("n_samples", "shuffle", "seed")
"""Arguments that select rows; evalstore has `--sample` and `--limit` for that."""


@dataclass(frozen=True, slots=True)
class Eval:
    """One eval of an eval file."""

    name: str
    path: str
    """The path of its files, unique among evals."""
    kind: str
    """The name of its class, such as `Match`."""
    args: dict[str, Any]
    description: str | None
    file: str
    line: int | None

    def warning(self, reason: str) -> SkippedItem:
        """Return a warning about a difference in the imported eval."""
        return SkippedItem(self.file, f"'{self.name}': {reason}", self.line)


def read_yaml_document(path: Path) -> tuple[Document, SkippedItem | None]:
    """Read a YAML document, and a warning if it has duplicate keys, of which the last is used.

    Raises `FileProblem`.
    """
    text = normalise(read_unpacked(path))
    try:
        return read_yaml(text), None
    except FileProblem as problem:
        document = read_yaml(text, repeats=True)
        reason = f"{problem.message}: the last one counts, as in OpenAI Evals"
        return document, SkippedItem(str(path), reason, problem.line, problem.column)


def read_judges(folder: Path) -> dict[str, Mapping[str, Any] | str]:
    """Return the specs of judges: one per file, or several in one; a text says why there is none.

    A spec of a file that cannot be read has the name of the file.
    """
    judges: dict[str, Mapping[str, Any] | str] = {}
    unread: dict[str, str] = {}
    for path in yaml_files(folder):
        try:
            value = read_yaml_document(path)[0].value
        except FileProblem as problem:
            unread[path.stem] = f"'{path.name}' cannot be read: {reason_of(problem)}"
            continue
        specs = as_mapping(value)
        for name, spec in ({path.stem: value} if "prompt" in specs else specs).items():
            if isinstance(spec, dict):
                judges.setdefault(name, spec)
    return unread | judges


def yaml_files(folder: Path) -> list[Path]:
    """Return the YAML files of a folder, sorted."""
    return sorted(path for path in folder.glob("*") if path.suffix in (".yaml", ".yml"))


@dataclass(frozen=True, slots=True)
class EvalSources:
    """Finds and reads the files that an eval refers to."""

    folder: Path
    """The folder of the eval file."""
    registry: Path
    judges: dict[Path, dict[str, Mapping[str, Any] | str]]
    """Those of registries that were read."""
    working_folder: Path | None = None
    """The folder in which files of samples are looked for first, as `oaieval` does."""

    def find(self, name: str, kind: str = "data") -> Path | None:
        """Return a file of the registry; None if it does not exist. Raises `NotTakenError`."""
        working = [self.working_folder] if self.working_folder and kind == "data" else []
        places = (*working, self.registry / kind, self.folder, self.folder / kind, self.registry)
        paths = [place / name for place in places if is_file(place / name)]
        refused: NotTakenError | None = None
        for path in paths:
            try:
                _refuse_outside(name, path)
            except NotTakenError as problem:
                refused = refused or problem
            else:
                return path
        if refused:
            raise refused
        return None

    def judge(self, name: str) -> Mapping[str, Any]:
        """Return the spec of a judge; raises `NotTakenError`."""
        if self.registry not in self.judges:
            self.judges[self.registry] = read_judges(self.registry / "modelgraded")
        missing = f"the registry's 'modelgraded' has no judge '{name}'"
        spec = self.judges[self.registry].get(name, missing)
        if isinstance(spec, str):
            raise NotTakenError(spec)
        return spec

    def text(self, name: str) -> str | None:
        """Return the text of a file; None if it does not exist. Raises `NotTakenError`."""
        path = self.find(name)
        if path is None:
            return None
        try:
            return normalise(read_source(path))
        except FileProblem as problem:
            raise NotTakenError(f"'{name}' {reason_of(problem)}") from problem

    def rows(self, name: Any, left: list[SkippedItem]) -> list[JsonLinesRow]:
        """Return the rows of a data file; raises `NotTakenError` if it does not exist."""
        if not isinstance(name, str):
            raise NotTakenError("it names no file of samples ('samples_jsonl')")
        path = self.find(name)
        if path is None:
            raise NotTakenError(f"the registry's 'data' has no file '{name}'")
        return read_rows(path, left)

    def path_of(self, name: str) -> str:
        """Return the name of a data file for messages."""
        return str(self.find(name) or name)


def _refuse_outside(name: str, path: Path) -> None:
    try:
        require_readable(path)
    except FileProblem as problem:
        raise NotTakenError(f"'{name}' {reason_of(problem)}") from problem


@dataclass
class WrittenEval:
    """The result of importing an eval."""

    front: dict[str, Json] = field(default_factory=dict)
    """Fields of the test behind the first ones."""
    turns: list[tuple[str, str]] = field(default_factory=list)
    check: Json = None
    instructions: str = ""
    rows: list[JsonLinesRow] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    """Further files, such as prompts."""
    left: list[SkippedItem] = field(default_factory=list)
    warnings: list[SkippedItem] = field(default_factory=list)


def generation(eval_spec: Eval) -> dict[str, Json]:
    """Return the token limit, for classes that use it, and the temperature that a class sends."""
    options: dict[str, Json] = {"temperature": 0} if eval_spec.kind in _AT_ZERO else {}
    limit = as_mapping(eval_spec.args.get("sample_kwargs")).get(
        "max_tokens", eval_spec.args.get("max_tokens")
    )
    if eval_spec.kind in _LIMITED and positive_int(limit):
        options["maxOutputTokens"] = positive_int(limit)
    return {"options": options} if options else {}


def unknown_arguments(eval_spec: Eval, known: tuple[str, ...]) -> list[SkippedItem]:
    """Return a warning for each argument that is not imported."""
    return [
        eval_spec.warning(f"the argument '{name}' is not imported")
        for name in eval_spec.args
        if name not in (*known, *_IGNORED)
    ]

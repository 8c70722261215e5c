"""Reading of assertions from mappings, table cells, references and files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from evalstore.core.errors import FileProblem
from evalstore.core.values import Json
from evalstore.exchange.importers.escaping import escape
from evalstore.exchange.importers.promptfoo import files
from evalstore.exchange.importers.promptfoo.assertion_types import LISTS, TYPES, split_list
from evalstore.exchange.importers.promptfoo.nunjucks import ExpressionNotTakenError

if TYPE_CHECKING:
    from pathlib import Path

    from evalstore.files.yaml12 import Document

_COMPACT = re.compile(r"((?:not-)?[a-z][a-z0-9-]*)(?:\(([\d.]+)\))?\s*:\s*(.*)", re.DOTALL)
_KNOWN = ("type", "value", "threshold", "weight", "metric", "$ref")
_ALIASES = {"grade": "llm-rubric", "fn": "javascript", "eval": "javascript"}
"""Aliases of assertion types in table cells."""
_DEEPEST = 20
"""The maximum depth of references; deeper ones are treated as circular."""


@dataclass(frozen=True, slots=True)
class Assertion:
    """One assertion."""

    kind: str
    value: Json = None
    threshold: float | None = None
    weight: float = 1
    metric: str | None = None
    file: str = ""
    line: int | None = None
    others: tuple[str, ...] = ()
    """Fields that are not imported."""
    problem: str = ""
    """Why it cannot be imported, if that is independent of its type."""


@dataclass(frozen=True, slots=True)
class Assertions:
    """Reads the assertions of tests."""

    folder: Path
    """The folder of the configuration, in which files are looked for."""
    root: Any
    """The configuration, which contains the targets of references."""
    file: str = ""
    """The file that contains the assertions."""

    def read(self, value: Any, document: Document | None) -> Iterator[Assertion]:
        """Yield the assertions of a test; those of an `assert-set` are yielded one by one."""
        for number, entry in enumerate(value if isinstance(value, list) else []):
            line = document.line("assert", number) if document else None
            for assertion in self._read_entry(entry, 0):
                yield replace(assertion, file=self.file, line=line)

    def _read_entry(self, entry: Any, depth: int) -> Iterator[Assertion]:
        if isinstance(entry, str):
            yield parse_compact(entry)
            return
        try:
            if depth > _DEEPEST:
                raise ExpressionNotTakenError("it contains itself")
            entry = self._resolve(entry)
            if not isinstance(entry, dict) or not isinstance(entry.get("type"), str):
                raise ExpressionNotTakenError("it has no 'type'")
            if entry["type"] == "assert-set":
                if entry.get("threshold") not in (None, 1):
                    raise ExpressionNotTakenError("an 'assert-set' with a bound of its own")
                entries = entry.get("assert")
                for inner_entry in entries if isinstance(entries, list) else []:
                    yield from self._read_entry(inner_entry, depth + 1)
                return
            if entry["type"] == "g-eval" and isinstance(entry.get("value"), list):
                for criterion in entry["value"]:
                    yield self._read_mapping({**entry, "value": criterion})
                return
            yield self._read_mapping(entry)
        except ExpressionNotTakenError as problem:
            yield Assertion("", problem=str(problem))

    def _read_mapping(self, entry: Mapping[str, Any]) -> Assertion:
        kind = entry["type"]
        if "transform" in entry:
            raise ExpressionNotTakenError(
                f"'transform' changes the answer before '{kind}' judges it"
            )
        if "rubricPrompt" in entry:
            raise ExpressionNotTakenError(
                f"'rubricPrompt' of '{kind}' is the judge's prompt: write it as an evaluator prompt"
            )
        value = self._value(entry.get("value"), kind)
        if kind.removeprefix("not-") == "is-json" and value:
            value = _read_schema(value, kind)
        return Assertion(
            kind=kind,
            value=value,
            threshold=read_number(entry, "threshold", None),
            weight=read_number(entry, "weight", 1) or 0,
            metric=entry.get("metric"),
            others=tuple(str(name) for name in entry if name not in _KNOWN),
        )

    def _resolve(self, entry: Any) -> Any:
        """Resolve a reference such as `#/assertionTemplates/name`."""
        for _ in range(_DEEPEST):
            if not isinstance(entry, dict) or "$ref" not in entry:
                return entry
            place = entry["$ref"]
            target = self.root
            for step in str(place).removeprefix("#").strip("/").split("/"):
                target = target.get(step) if isinstance(target, dict) else None
            if not isinstance(target, dict):
                raise ExpressionNotTakenError(f"there is no '{place}' in the configuration")
            entry = {**target, **{name: value for name, value in entry.items() if name != "$ref"}}
        raise ExpressionNotTakenError("its reference leads to itself")

    def _value(self, value: Any, kind: str) -> Json:
        """Return the value, or the content of the file that it refers to, never as a template."""
        if isinstance(value, list):
            return [self._value(item, kind) for item in value]
        if not isinstance(value, str) or not value.startswith(files.PREFIX):
            return value
        if kind.removeprefix("not-") in ("javascript", "python", "ruby"):
            return value
        return literal_value(files.read_value(files.find_files(value, self.folder)[0]))


def _read_schema(value: Json, kind: str) -> Json:
    """Return a schema, which may be a text in YAML; raises `ExpressionNotTakenError`."""
    if isinstance(value, str):
        try:
            value = files.read_text(value).value
        except FileProblem as problem:
            raise ExpressionNotTakenError(f"the schema of '{kind}' {problem.message}") from None
    if not isinstance(value, dict):
        raise ExpressionNotTakenError(f"the schema of '{kind}' is not a mapping of fields")
    return value


def literal_value(value: Json) -> Json:
    """Return a value whose texts are not read as templates."""
    if isinstance(value, list):
        return [literal_value(item) for item in value]
    if isinstance(value, dict):
        return {name: literal_value(inner) for name, inner in value.items()}
    return escape(value) if isinstance(value, str) else value


def read_number(entry: Mapping[str, Any], name: str, default: float | None) -> float | None:
    """Return a number, or the default; raises `ExpressionNotTakenError`."""
    value = entry.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        raise ExpressionNotTakenError(f"its '{name}' is not a number from 0 up")
    return value


def parse_compact(text: str) -> Assertion:
    """Parse an assertion in a table cell: `type: value`, or the text to be equal to."""
    match = _COMPACT.fullmatch(text.strip())
    if text.startswith(files.PREFIX) and files.is_code(text):
        return Assertion("javascript", text)
    if not match or match[1].removeprefix("not-") not in {*TYPES, *_ALIASES}:
        return Assertion("equals", text)
    kind, threshold, value = _ALIASES.get(match[1], match[1]), match[2], match[3]
    if kind.removeprefix("not-") in LISTS:
        return Assertion(kind, split_list(value, kind))
    return Assertion(kind, value or None, float(threshold) if threshold else None)

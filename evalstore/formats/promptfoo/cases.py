"""The tests of a configuration: variables, and what is asserted of the answer."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from evalstore.formats.base import Left
from evalstore.formats.promptfoo import files
from evalstore.formats.promptfoo.asserts import TYPES
from evalstore.formats.promptfoo.nunjucks import NotTakenError
from evalstore.formats.shapes import mapping
from evalstore.values import Json

if TYPE_CHECKING:
    from pathlib import Path

    from evalstore.yaml_core import Document

_COMPACT = re.compile(r"((?:not-)?[a-z][a-z0-9-]*)(?:\(([\d.]+)\))?\s*:\s*(.*)", re.DOTALL)
_LISTS = ("contains-any", "contains-all", "icontains-any", "icontains-all")
_KNOWN = ("vars", "assert", "description", "threshold", "metadata", "options")
_OPTIONS = ("prefix", "suffix", "provider", "rubricPrompt", "runSerially")


@dataclass(frozen=True, slots=True)
class Assertion:
    """One thing that is asserted."""

    kind: str
    value: Json = None
    threshold: float | None = None
    weight: float = 1
    metric: str | None = None
    config: Any = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One test with one value for each variable."""

    values: dict[str, Json]
    assertions: tuple[Assertion, ...]
    description: str = ""
    threshold: float | None = None
    prefix: str = ""
    suffix: str = ""
    file: str = ""
    line: int | None = None


@dataclass
class Tests:
    """Reads the tests of a configuration."""

    folder: Path
    file: str
    left: list[Left]
    warnings: list[Left]
    default: Case = field(default_factory=lambda: Case({}, ()))

    def read(self, document: Document) -> Iterator[Case]:
        """All cases of the tests, in their order."""
        given = document.value
        if isinstance(given, str | dict):
            yield from self._entry(document, self.folder, self.file)
        for number in range(len(given) if isinstance(given, list) else 0):
            yield from self._entry(document.at(number), self.folder, self.file)

    def _entry(self, document: Document, folder: Path, file: str) -> Iterator[Case]:
        try:
            given = document.value
            if isinstance(given, str):
                yield from self._file(given, folder)
            elif isinstance(given, dict) and isinstance(given.get("path"), str):
                yield from self._file(given["path"], folder)
            elif isinstance(given, dict):
                yield from self.case(given, folder, file, document)
            else:
                raise NotTakenError("it is no mapping")
        except NotTakenError as problem:
            self.left.append(problem.at(file, "a test", document.line()))

    def _file(self, name: str, folder: Path) -> Iterator[Case]:
        if re.match(r"(?:https?|huggingface|az|s3|gs)://", name):
            raise NotTakenError(f"'{name}' is elsewhere: nothing is downloaded")
        for path in files.find(name, folder):
            if path.suffix in (".csv", ".jsonl"):
                for line, row in files.read_rows(path):
                    given = _from_row(row) if path.suffix == ".csv" else row
                    yield from self._row(given, path, line)
                continue
            if path.suffix not in (".yaml", ".yml", ".json"):
                raise NotTakenError(f"'{path.name}' is no table, YAML or JSON")
            document = files.read_document(path)
            listed = document.value if isinstance(document.value, list) else []
            if not listed:
                raise NotTakenError(f"'{path.name}' holds no list of tests")
            for number in range(len(listed)):
                yield from self._entry(document.at(number), path.parent, str(path))

    def _row(self, given: Any, path: Path, line: int) -> Iterator[Case]:
        try:
            if not isinstance(given, dict):
                raise NotTakenError("it is no mapping", line)
            yield from self.case(given, path.parent, str(path), None, line)
        except NotTakenError as problem:
            self.left.append(problem.at(str(path), "a test", line))

    def case(
        self,
        given: dict[str, Any],
        folder: Path,
        file: str,
        document: Document | None,
        line: int | None = None,
    ) -> Iterator[Case]:
        """A test, once for each combination of values that are lists."""
        line = document.line() if document else line
        options = mapping(given.get("options"))
        for name in options:
            if name not in _OPTIONS:
                raise NotTakenError(f"'options.{name}' changes the answer before it is judged")
        for name in given:
            if name not in _KNOWN:
                self.warnings.append(Left(file, f"a test's '{name}' is not taken over", line))
        if (_number(given, "threshold", None) or 0) > 1:
            raise NotTakenError("its 'threshold' is above 1, which no score reaches")
        variables = {**self.default.values, **self._variables(given.get("vars"), folder)}
        base = Case(
            values={},
            assertions=(*self.default.assertions, *_assertions(given.get("assert"), document)),
            description=str(given.get("description") or ""),
            threshold=_number(given, "threshold", self.default.threshold),
            prefix=str(options.get("prefix") or self.default.prefix),
            suffix=str(options.get("suffix") or self.default.suffix),
            file=file,
            line=line,
        )
        lists = [one if isinstance(one, list) and one else [one] for one in variables.values()]
        for values in itertools.product(*lists):
            yield replace(base, values=dict(zip(variables, values, strict=True)))

    def take_default(self, document: Document) -> None:
        """What holds for every test."""
        given = document.value
        if isinstance(given, str):
            path = files.find(given, self.folder)[0]
            document = files.read_document(path)
            given = document.value
        if not isinstance(given, dict):
            return
        variables = self._variables(given.get("vars"), self.folder)
        (found, *_) = self.case({**given, "vars": None}, self.folder, self.file, document)
        self.default = replace(found, values=variables)

    def _variables(self, given: Any, folder: Path) -> dict[str, Json]:
        if isinstance(given, str):
            given = files.read_value(files.find(given, folder)[0])
        if given is None:
            return {}
        if not isinstance(given, dict):
            raise NotTakenError("its 'vars' are no mapping")
        return {str(name): self._variable(value, folder) for name, value in given.items()}

    def _variable(self, value: Any, folder: Path) -> Json:
        if isinstance(value, list):
            return [self._variable(one, folder) for one in value]
        if isinstance(value, str) and value.startswith(files.PREFIX):
            found = [files.read_value(path) for path in files.find(value, folder)]
            return found if len(found) > 1 else found[0]
        return value


def _assertions(given: Any, document: Document | None) -> Iterator[Assertion]:
    """The assertions of a test; sets of them without a bound of their own are taken apart."""
    for number, one in enumerate(given if isinstance(given, list) else []):
        line = document.line("assert", number) if document else None
        if isinstance(one, str):
            yield replace(compact(one), line=line)
            continue
        if not isinstance(one, dict) or not isinstance(one.get("type"), str):
            raise NotTakenError("an assertion has no 'type'", line)
        if one["type"] == "assert-set":
            if one.get("threshold") not in (None, 1):
                raise NotTakenError("an 'assert-set' with a bound of its own", line)
            for inner in _assertions(one.get("assert"), None):
                yield replace(inner, line=line)
            continue
        if "transform" in one:
            raise NotTakenError("'transform' changes the answer before it is judged", line)
        yield Assertion(
            kind=one["type"],
            value=one.get("value"),
            threshold=_number(one, "threshold", None),
            weight=_number(one, "weight", 1) or 0,
            metric=one.get("metric"),
            config=one.get("config"),
            line=line,
        )


def _number(given: dict[str, Any], name: str, default: float | None) -> float | None:
    """A number, or what counts when there is none; raises `NotTakenError`."""
    value = given.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        raise NotTakenError(f"its '{name}' is no number from 0 up")
    return value


def compact(text: str) -> Assertion:
    """An assertion as the cells of tables hold it: `type: value`, or what is to be equal."""
    found = _COMPACT.fullmatch(text.strip())
    if not found or found[1].removeprefix("not-") not in TYPES:
        return Assertion("equals", text)
    kind, threshold, value = found[1], found[2], found[3]
    if kind.removeprefix("not-") in _LISTS:
        listed = [one.strip().strip('"') for one in re.split(r"(?<!\\),", value)]
        return Assertion(kind, [one.replace("\\,", ",") for one in listed])
    return Assertion(kind, value or None, float(threshold) if threshold else None)


def _from_row(row: dict[str, str]) -> dict[str, Any]:
    """A row of a table as a test."""
    expected = [
        compact(cell) for name, cell in row.items() if re.fullmatch(r"__expected\d*", name) and cell
    ]
    given: dict[str, Any] = {
        "vars": {name: cell for name, cell in row.items() if not name.startswith("__")},
        "assert": [
            {"type": one.kind, "value": one.value, "threshold": one.threshold} for one in expected
        ],
        "options": {
            name: row[f"__{name}"] for name in ("prefix", "suffix") if row.get(f"__{name}")
        },
    }
    if row.get("__description"):
        given["description"] = row["__description"]
    if row.get("__threshold"):
        try:
            given["threshold"] = float(row["__threshold"])
        except ValueError:
            raise NotTakenError("'__threshold' is no number") from None
    return given

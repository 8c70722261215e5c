"""The tests of a configuration: variables, and what is asserted of the answer."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from evalstore.importers.base import SkippedItem
from evalstore.importers.coerce import mapping
from evalstore.importers.promptfoo import files
from evalstore.importers.promptfoo.assertion_reader import Assertion, Assertions, compact, number_of
from evalstore.importers.promptfoo.nunjucks import ExpressionNotTakenError
from evalstore.values import Json

if TYPE_CHECKING:
    from pathlib import Path

    from evalstore.files.yaml12 import Document

_KNOWN = ("vars", "assert", "description", "threshold", "metadata", "options")
_OPTIONS = ("prefix", "suffix", "runSerially", "disableVarExpansion", "disableConversationMemory")
_OF_JUDGES = ("provider", "rubricPrompt")
_NAMED = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_NESTED = 5
"""How often values in values are filled."""
_MOST_CASES = 20_000
"""Of one test: each is written out."""
_CHANGING = ("transform", "postprocess", "transformVars")


@dataclass(frozen=True, slots=True)
class PromptfooCase:
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
class PromptfooTests:
    """Reads the tests of a configuration."""

    folder: Path
    file: str
    left: list[SkippedItem]
    warnings: list[SkippedItem]
    root: Any = None
    """The whole configuration, which `$ref` points into."""
    default: PromptfooCase = field(default_factory=lambda: PromptfooCase({}, ()))
    nesting: files.Nesting = field(default_factory=files.Nesting)

    def read(self, document: Document) -> Iterator[PromptfooCase]:
        """All cases of the tests, in their order."""
        given = document.value
        if isinstance(given, str | dict):
            yield from self._entry(document, self.folder, self.file)
        for number in range(len(given) if isinstance(given, list) else 0):
            yield from self._entry(document.at(number), self.folder, self.file)

    def _entry(self, document: Document, folder: Path, file: str) -> Iterator[PromptfooCase]:
        try:
            given = document.value
            if isinstance(given, str):
                yield from self._file(given, folder)
            elif isinstance(given, dict) and isinstance(given.get("path"), str):
                yield from self._file(given["path"], folder)
            elif isinstance(given, dict):
                yield from self.case(given, folder, file, document)
            else:
                raise ExpressionNotTakenError("it is not a mapping")
        except ExpressionNotTakenError as problem:
            self.left.append(problem.at(file, "a test", document.line()))

    def _file(self, name: str, folder: Path) -> Iterator[PromptfooCase]:
        if re.match(r"(?:https?|huggingface|az|s3|gs)://", name):
            raise ExpressionNotTakenError(f"'{name}' is elsewhere: nothing is downloaded")
        for path in files.find(name, folder):
            with self.nesting.enter(path):
                yield from self._listed(path)

    def _listed(self, path: Path) -> Iterator[PromptfooCase]:
        if path.suffix in (".csv", ".jsonl"):
            for line, row in files.read_rows(path):
                yield from self._row(row, path, line)
            return
        if path.suffix not in (".yaml", ".yml", ".json"):
            raise ExpressionNotTakenError(f"'{path.name}' is not a table, YAML or JSON")
        document = files.read_document(path)
        listed = document.value if isinstance(document.value, list) else []
        if not listed:
            raise ExpressionNotTakenError(f"'{path.name}' holds no list of tests")
        for number in range(len(listed)):
            yield from self._entry(document.at(number), path.parent, str(path))

    def _row(self, given: Any, path: Path, line: int) -> Iterator[PromptfooCase]:
        try:
            if not isinstance(given, dict):
                raise ExpressionNotTakenError("it is not a mapping", line)
            given = _from_row(given) if path.suffix == ".csv" else given
            yield from self.case(given, path.parent, str(path), None, line)
        except ExpressionNotTakenError as problem:
            self.left.append(problem.at(str(path), "a test", line))

    def case(
        self,
        given: dict[str, Any],
        folder: Path,
        file: str,
        document: Document | None,
        line: int | None = None,
        *,
        is_default: bool = False,
    ) -> Iterator[PromptfooCase]:
        """A test, once for each combination of values that are lists."""
        line = document.line() if document else line
        options = mapping(given.get("options"))
        for name in options:
            if name in _CHANGING:
                raise ExpressionNotTakenError(
                    f"'options.{name}' changes what is asked or judged by code"
                )
            if name == "provider" and is_default:
                continue  # the evaluators of the settings
            if name in _OF_JUDGES:
                reason = f"a test's 'options.{name}' is not imported"
                self.warnings.append(SkippedItem(file, reason, line))
            elif name not in _OPTIONS:
                raise ExpressionNotTakenError(f"'options.{name}' has no counterpart here")
        for name in given:
            if name not in _KNOWN:
                self.warnings.append(SkippedItem(file, f"a test's '{name}' is not imported", line))
        if (number_of(given, "threshold", None) or 0) > 1:
            raise ExpressionNotTakenError("its 'threshold' is above 1, which no score reaches")
        variables = {**self.default.values, **self._variables(given.get("vars"), folder)}
        reader = Assertions((folder, self.folder), self.root, file)
        base = PromptfooCase(
            values={},
            assertions=(*self.default.assertions, *reader.read(given.get("assert"), document)),
            description=str(given.get("description") or ""),
            threshold=number_of(given, "threshold", self.default.threshold),
            prefix=str(options.get("prefix") or self.default.prefix),
            suffix=str(options.get("suffix") or self.default.suffix),
            file=file,
            line=line,
        )
        expands = options.get("disableVarExpansion") is not True
        lists = [
            variable
            if expands and isinstance(variable, list) and variable and isinstance(variable[0], str)
            else [variable]
            for variable in variables.values()
        ]
        if math.prod(map(len, lists)) > _MOST_CASES:
            raise ExpressionNotTakenError(
                f"the lists of its 'vars' make more than {_MOST_CASES:,} cases"
            )
        for values in itertools.product(*lists):
            yield replace(base, values=_filled(dict(zip(variables, values, strict=True))))

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
        cases = self.case(
            {**given, "vars": None}, self.folder, self.file, document, is_default=True
        )
        found = next(cases)
        self.default = replace(found, values={**self.default.values, **variables})

    def scenarios(self, document: Document) -> Iterator[PromptfooCase]:
        """The cases of scenarios: every test with every set of variables."""
        given = document.value
        parts = (
            [document.at(number) for number in range(len(given))]
            if isinstance(given, list)
            else [document]
        )
        for part in parts:
            try:
                if isinstance(part.value, str):
                    for path in files.find(part.value, self.folder):
                        inner = replace(self, folder=path.parent, file=str(path))
                        with self.nesting.enter(path):
                            yield from inner.scenarios(files.read_document(path))
                else:
                    yield from self._scenario(part)
            except ExpressionNotTakenError as problem:
                self.left.append(problem.at(self.file, "a scenario", part.line()))

    def _scenario(self, document: Document) -> Iterator[PromptfooCase]:
        given = document.value
        if not isinstance(given, dict) or not isinstance(given.get("config"), list):
            raise ExpressionNotTakenError("it needs a list 'config'")
        for number, one in enumerate(given["config"]):
            part = document.at("config", number)
            if not isinstance(one, dict) or any(name.startswith("$") for name in one):
                what = "a set of variables that is not a mapping, or is elsewhere ('$values')"
                self.left.append(SkippedItem(self.file, f"a scenario: {what}", part.line()))
                continue
            inner = replace(self)
            inner.take_default(part)
            if given.get("tests"):
                yield from inner.read(document.at("tests"))
            else:
                yield PromptfooCase(
                    inner.default.values, inner.default.assertions, file=self.file, line=part.line()
                )

    def _variables(self, given: Any, folder: Path) -> dict[str, Json]:
        if isinstance(given, str):
            given = files.read_value(files.find(given, folder)[0])
        if given is None:
            return {}
        if not isinstance(given, dict):
            raise ExpressionNotTakenError("its 'vars' are not a mapping")
        return {str(name): self._variable(value, folder) for name, value in given.items()}

    def _variable(self, value: Any, folder: Path) -> Json:
        if isinstance(value, list):
            return [self._variable(one, folder) for one in value]
        if isinstance(value, str) and value.startswith(files.PREFIX):
            found = [files.read_value(path) for path in files.find(value, folder)]
            return found if len(found) > 1 else found[0]
        return value


def _filled(values: dict[str, Json]) -> dict[str, Json]:
    """The values, with those of others where texts name them, such as `Dear {{name}}`."""

    def value(found: re.Match[str]) -> str:
        given = values.get(found[1])
        return given if isinstance(given, str) else found[0] if given is None else json.dumps(given)

    for _ in range(_NESTED):
        before = values
        values = {
            name: _NAMED.sub(value, one) if isinstance(one, str) else one
            for name, one in before.items()
        }
        if values == before:
            break
    return values


def _from_row(row: dict[str, str]) -> dict[str, Any]:
    """A row of a table as a test."""
    expected = []
    for name, cell in row.items():
        if not re.fullmatch(r"__expected\d*", name) or not cell:
            continue
        one = compact(cell)
        bound = row.get(f"__config:{name}:threshold")
        threshold = _cell_number(bound, "a bound") if bound else one.threshold
        expected.append({"type": one.kind, "value": one.value, "threshold": threshold})
        if row.get("__metric"):
            expected[-1]["metric"] = row["__metric"]
    given: dict[str, Any] = {
        "vars": {name: cell for name, cell in row.items() if name and not name.startswith("__")},
        "assert": expected,
        "options": {
            name: row[f"__{name}"] for name in ("prefix", "suffix") if row.get(f"__{name}")
        },
    }
    if row.get("__description"):
        given["description"] = row["__description"]
    if row.get("__threshold"):
        given["threshold"] = _cell_number(row["__threshold"], "'__threshold'")
    return given


def _cell_number(cell: str, what: str) -> float:
    try:
        return float(cell)
    except ValueError:
        raise ExpressionNotTakenError(f"{what} is not a number: '{cell}'") from None

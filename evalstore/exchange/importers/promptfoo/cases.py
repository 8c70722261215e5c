"""Reading of the tests of a configuration: one case for each combination of variables."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evalstore.core.values import Json
from evalstore.exchange.importers.base import Imported, NotTakenError, as_mapping, require, skipping
from evalstore.exchange.importers.promptfoo import files
from evalstore.exchange.importers.promptfoo.assertions import (
    Assertion,
    Assertions,
    parse_compact,
    read_number,
)
from evalstore.files.yaml12 import Document

_KNOWN = ("vars", "assert", "description", "threshold", "metadata", "options")
_OPTIONS = ("prefix", "suffix", "runSerially", "disableVarExpansion", "disableConversationMemory")
_NAMED = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_NESTED = 5
"""The maximum depth of variables in variables."""
_MOST_CASES = 20_000
"""The maximum number of cases of one test."""
_CHANGING = ("transformVars",)
_JUDGING = ("transform", "postprocess")


@dataclass(frozen=True, slots=True)
class PromptfooCase:
    """One test with one value per variable."""

    values: dict[str, Json]
    assertions: tuple[Assertion, ...]
    description: str = ""
    threshold: float | None = None
    not_judged: bool = False
    """Whether it has assertions, and none is imported."""
    prefix: str = ""
    suffix: str = ""
    changed_by: str = ""
    """The option that changes the answer before it is judged."""
    file: str = ""
    line: int | None = None


@dataclass
class PromptfooTests:
    """Reads the tests of a configuration."""

    folder: Path
    """The folder of the configuration, which names of files are relative to."""
    file: str
    imported: Imported
    root: Any = None
    """The whole configuration, which contains the targets of `$ref`."""
    default: PromptfooCase = field(default_factory=lambda: PromptfooCase({}, ()))
    nesting: files.Nesting = field(default_factory=files.Nesting)

    def read(self, document: Document) -> Iterator[PromptfooCase]:
        """Yield all cases of the tests in their order."""
        value = document.value
        if isinstance(value, str | dict):
            yield from self._entry(document, self.folder, self.file)
        for number in range(len(value) if isinstance(value, list) else 0):
            yield from self._entry(document.at(number), self.folder, self.file)

    def _entry(self, document: Document, folder: Path, file: str) -> Iterator[PromptfooCase]:
        with skipping(self.imported.left, file, document.line(), "a test: "):
            value = document.value
            if isinstance(value, dict) and isinstance(value.get("path"), str):
                value = value["path"]
            if isinstance(value, str):
                yield from self._file(value, folder)
            else:
                require(isinstance(value, dict), "it is not a mapping")
                yield from self.case(value, folder, file, document)

    def _file(self, name: str, folder: Path) -> Iterator[PromptfooCase]:
        if re.match(r"(?:https?|huggingface|az|s3|gs)://", name):
            raise NotTakenError(f"'{name}' is not a local file: nothing is downloaded")
        for path in files.find_files(name, folder):
            with self.nesting.enter(path):
                yield from self._tests_in_file(path)

    def _tests_in_file(self, path: Path) -> Iterator[PromptfooCase]:
        if path.suffix in (".csv", ".jsonl"):
            for line, row in files.read_data_rows(path):
                yield from self._row(row, path, line)
            return
        if path.suffix not in (".yaml", ".yml", ".json"):
            raise NotTakenError(f"'{path.name}' is not a table, YAML or JSON")
        document = files.read_document(path)
        entries = document.value if isinstance(document.value, list) else []
        require(entries, f"'{path.name}' holds no list of tests")
        for number in range(len(entries)):
            yield from self._entry(document.at(number), path.parent, str(path))

    def _row(self, row: Any, path: Path, line: int) -> Iterator[PromptfooCase]:
        with skipping(self.imported.left, path, line, "a test: "):
            require(isinstance(row, dict), "it is not a mapping")
            row = _test_from_row(row) if path.suffix == ".csv" else row
            yield from self.case(row, path.parent, str(path), None, line)

    def case(
        self,
        entry: dict[str, Any],
        folder: Path,
        file: str,
        document: Document | None,
        line: int | None = None,
        *,
        is_default: bool = False,
    ) -> Iterator[PromptfooCase]:
        """Yield a test once per combination of its list values."""
        line = document.line() if document else line
        options = as_mapping(entry.get("options"))
        for name in options:
            if name == "provider" and is_default:
                continue  # the evaluators of the settings
            require(name not in _CHANGING, f"'options.{name}' changes what is asked by code")
            require(name != "storeOutputAs", f"'options.{name}' has no counterpart in evalstore")
            if name not in _OPTIONS and name not in _JUDGING:
                self.imported.warn(file, f"a test's 'options.{name}' is not imported", line)
        judging = next((name for name in _JUDGING if options.get(name)), self.default.changed_by)
        for name in entry:
            if name not in _KNOWN:
                self.imported.warn(file, f"a test's '{name}' is not imported", line)
        if (read_number(entry, "threshold", None) or 0) > 1:
            raise NotTakenError("its 'threshold' is above 1, which no score reaches")
        problem = judging and f"'options.{judging}' changes the answer before it is judged"
        variables = {**self.default.values, **self._variables(entry.get("vars"), folder)}
        reader = Assertions(self.folder, self.root, file)
        base = PromptfooCase(
            values={},
            assertions=tuple(
                replace(assertion, problem=problem or assertion.problem)
                for assertion in (
                    *self.default.assertions,
                    *reader.read(entry.get("assert"), document),
                )
            ),
            description=str(entry.get("description") or ""),
            threshold=read_number(entry, "threshold", self.default.threshold),
            prefix=str(options.get("prefix") or self.default.prefix),
            suffix=str(options.get("suffix") or self.default.suffix),
            changed_by=judging,
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
            raise NotTakenError(f"the lists of its 'vars' make more than {_MOST_CASES:,} cases")
        for values in itertools.product(*lists):
            yield replace(base, values=_fill_values(dict(zip(variables, values, strict=True))))

    def set_default(self, document: Document) -> None:
        """Set the defaults for all tests."""
        value = document.value
        try:
            if isinstance(value, str):
                document = files.read_document(files.find_files(value, self.folder)[0])
                value = document.value
            if not isinstance(value, dict):
                return
            variables = self._variables(value.get("vars"), self.folder)
            cases = self.case(
                {**value, "vars": None}, self.folder, self.file, document, is_default=True
            )
            self.default = replace(next(cases), values={**self.default.values, **variables})
        except NotTakenError as problem:
            line = problem.line or document.line()
            raise NotTakenError(f"the default of all tests: {problem}", line=line) from problem

    def scenarios(self, document: Document) -> Iterator[PromptfooCase]:
        """Yield the cases of scenarios, every test with every set of variables."""
        value = document.value
        listed = isinstance(value, list)
        for part in map(document.at, range(len(value))) if listed else [document]:
            with skipping(self.imported.left, self.file, part.line(), "a scenario: "):
                if isinstance(part.value, str):
                    for path in files.find_files(part.value, self.folder):
                        scenario_tests = replace(self, file=str(path))
                        with self.nesting.enter(path):
                            yield from scenario_tests.scenarios(files.read_document(path))
                else:
                    yield from self._scenario(part)

    def _scenario(self, document: Document) -> Iterator[PromptfooCase]:
        scenario = document.value
        if not isinstance(scenario, dict) or not isinstance(scenario.get("config"), list):
            raise NotTakenError("it needs a list 'config'")
        for number, variables in enumerate(scenario["config"]):
            part = document.at("config", number)
            if not isinstance(variables, dict) or any(name.startswith("$") for name in variables):
                kind = "a set of variables that is not a mapping, or is in another file ('$values')"
                self.imported.skip(self.file, f"a scenario: {kind}", part.line())
                continue
            tests = replace(self)
            tests.set_default(part)
            if scenario.get("tests"):
                yield from tests.read(document.at("tests"))
            else:
                yield PromptfooCase(
                    tests.default.values, tests.default.assertions, file=self.file, line=part.line()
                )

    def _variables(self, variables: Any, folder: Path) -> dict[str, Json]:
        if isinstance(variables, str | list):
            names = [variables] if isinstance(variables, str) else variables
            paths = [path for name in names for path in files.find_files(str(name), folder)]
            variables = {}
            for path in paths:
                value = files.read_value(path)
                require(isinstance(value, dict), f"'{path.name}' holds no mapping of variables")
                variables |= value
        if variables is None:
            return {}
        require(isinstance(variables, dict), "its 'vars' are not a mapping")
        return {str(name): self._variable(value) for name, value in variables.items()}

    def _variable(self, value: Any) -> Json:
        if isinstance(value, list):
            return [self._variable(item) for item in value]
        if isinstance(value, str) and value.startswith(files.PREFIX):
            values = [
                # a template shows YAML as JSON
                files.to_json(files.read_value(path))
                if path.suffix in (".yaml", ".yml")
                else files.read_source_text(path).strip()
                for path in files.find_files(value, self.folder)
            ]
            return values if len(values) > 1 else values[0]
        return value.removesuffix("\n") if isinstance(value, str) else value


def _fill_values(values: dict[str, Json]) -> dict[str, Json]:
    """Fill values into other values that refer to them, such as `Dear {{name}}`."""

    def value(match: re.Match[str]) -> str:
        return _shown(values[match[1]]) if match[1] in values else match[0]

    for _ in range(_NESTED):
        previous = values
        values = {
            name: _NAMED.sub(value, text) if isinstance(text, str) else text
            for name, text in previous.items()
        }
        if values == previous:
            break
    return {name: "" if value is None else value for name, value in values.items()}


def _shown(value: Json) -> str:
    """Return a value as it is shown inside a text."""
    if isinstance(value, list):
        return ",".join("" if item is None else _shown(item) for item in value)
    return value if isinstance(value, str) else files.to_json(value)


def _test_from_row(row: dict[str, str]) -> dict[str, Any]:
    """Convert a row of a table to a test."""
    expected = []
    for name, cell in row.items():
        if not re.fullmatch(r"__expected\d*", name) or not cell.strip():
            continue
        assertion = parse_compact(cell.strip())
        bound = row.get(f"__config:{name}:threshold")
        threshold = _cell_number(bound, "a bound") if bound else assertion.threshold
        expected.append({"type": assertion.kind, "value": assertion.value, "threshold": threshold})
        if row.get("__metric"):
            expected[-1]["metric"] = row["__metric"]
    entry: dict[str, Any] = {
        "vars": {name: cell for name, cell in row.items() if name and not name.startswith("__")},
        "assert": expected,
        "options": {
            name: row[f"__{name}"] for name in ("prefix", "suffix") if row.get(f"__{name}")
        },
    }
    if row.get("__description"):
        entry["description"] = row["__description"]
    if row.get("__threshold"):
        entry["threshold"] = _cell_number(row["__threshold"], "'__threshold'")
    return entry


def _cell_number(cell: str, subject: str) -> float:
    try:
        return float(cell)
    except ValueError:
        raise NotTakenError(f"{subject} is not a number: '{cell}'") from None

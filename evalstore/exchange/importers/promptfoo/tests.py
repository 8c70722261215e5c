"""Reading of the tests of a configuration, and conversion of their assertions."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evalstore.core.errors import FileProblem
from evalstore.core.values import Json
from evalstore.exchange.importers.base import Imported, NotTakenError, as_mapping, require, skipping
from evalstore.exchange.importers.promptfoo import files
from evalstore.exchange.importers.promptfoo.files import to_json
from evalstore.exchange.importers.template_writer import escape
from evalstore.files.yaml12 import Document

LISTS = ("contains-any", "contains-all", "icontains-any", "icontains-all")
"""Assertion types whose value is a list, or a text with commas."""
_SEPARATORS = re.compile(r"[\s,]*")
_QUOTED = re.compile(r"\"((?:\\[\"\\]|\"\"|[^\"])*+)\"\s*(?=,|\Z)")
_UNQUOTED = re.compile(r"([^,]*)")
_ESCAPED = re.compile(r"[\\\"]([\"\\])")
Value = Json
"""The expected value, or a placeholder for the column that contains it."""


@dataclass(frozen=True, slots=True)
class ConvertedAssertion:
    """An assertion converted to a check or to an instruction."""

    check: Json = None
    instruction: str = ""
    """Of a test without a check, the instruction for a judge: a heading and the value."""
    warning: str = ""


def _texts(value: Value, kind: str) -> Value:
    """Return the value as a text or a list of texts; raises `NotTakenError`."""
    items = value if isinstance(value, list) else [value]
    if not items or any(isinstance(item, dict | list) for item in items) or value is None:
        raise NotTakenError(f"'{kind}' needs a text as its value")
    texts = [item if isinstance(item, str) else to_json(item) for item in items]
    return texts if isinstance(value, list) else texts[0]


def split_list(text: str, kind: str) -> list[Json]:
    """Split a text at commas, except inside quotes; raises `NotTakenError`."""
    items: list[Json] = []
    at = 0
    while (at := _SEPARATORS.match(text, at).end()) < len(text):  # type: ignore[union-attr]
        field = (_QUOTED if text[at] == '"' else _UNQUOTED).match(text, at)
        if field is None:
            raise NotTakenError(f"the quotes in the value of '{kind}' do not match")
        inner = field[1]
        items.append(_ESCAPED.sub(r"\1", inner) if text[at] == '"' else inner.strip())
        at = field.end()
    return items


def _text(kind: str, **more: Json) -> Callable[[Value, float | None, str], ConvertedAssertion]:
    return lambda value, _bound, name: ConvertedAssertion({kind: _texts(value, name), **more})


def _equals(value: Value, _bound: float | None, name: str) -> ConvertedAssertion:
    if isinstance(value, dict | list):
        return ConvertedAssertion({"jsonEquals": value})
    return ConvertedAssertion({"equals": _texts(value, name)})


def _latency(_value: Value, bound: float | None, _name: str) -> ConvertedAssertion:
    if bound is None:
        raise NotTakenError("'latency' needs a 'threshold'")
    seconds = bound / 1000
    return ConvertedAssertion({"latency": int(seconds) if seconds.is_integer() else seconds})


def _cost(_value: Value, bound: float | None, _name: str) -> ConvertedAssertion:
    if bound is None:
        raise NotTakenError("'cost' without a 'threshold' only measures: costs are always stored")
    return ConvertedAssertion({"cost": bound})


def _levenshtein(value: Value, bound: float | None, name: str) -> ConvertedAssertion:
    maximum = 5 if bound is None else bound
    return ConvertedAssertion(
        {"levenshtein": {"expected": _texts(value, name), "max": int(maximum)}}
    )


def _graded(
    kind: str, default: float, warning: str = "", **more: Json
) -> Callable[[Value, float | None, str], ConvertedAssertion]:
    def convert(value: Value, bound: float | None, name: str) -> ConvertedAssertion:
        minimum = default if bound is None else bound
        return ConvertedAssertion(
            {kind: _texts(value, name), **more, "pass": f">= {minimum:g}"}, warning=warning
        )

    return convert


def _words(value: Value, _bound: float | None, _name: str) -> ConvertedAssertion:
    if isinstance(value, dict):
        bounds = {name: value[name] for name in ("min", "max") if isinstance(value.get(name), int)}
        require(bounds, "'word-count' needs 'min' or 'max'")
    else:
        try:
            bounds = dict.fromkeys(("min", "max"), int(str(value)))
        except ValueError:
            raise NotTakenError("'word-count' needs a whole number") from None
    return ConvertedAssertion({"length": {"unit": "words", **bounds}})


def _instruction(
    heading: str, warning: str = ""
) -> Callable[[Value, float | None, str], ConvertedAssertion]:
    def convert(value: Value, bound: float | None, name: str) -> ConvertedAssertion:
        value = to_json(value) if value and isinstance(value, dict | list) else value
        require(isinstance(value, str) and value.strip(), f"'{name}' needs a text as its value")
        note = warning
        if bound is not None and name in ("llm-rubric", "g-eval"):
            note = f"the 'threshold' of '{name}' is not imported: the judge passes or fails"
        return ConvertedAssertion(
            instruction=f"{heading}\n\n{value}" if heading else value, warning=note
        )

    return convert


_OTHER_PROMPT = "a judge reads it in evalstore's prompt, not in promptfoo's"
_WORDS_DIFFER = "words are split by different rules, so scores near the threshold may differ"
CONVERTERS: Mapping[str, Callable[[Value, float | None, str], ConvertedAssertion]] = {
    "equals": _equals,
    "contains": _text("contains"),
    "icontains": _text("contains", ignoreCase=True),
    "contains-any": _text("containsAny"),
    "icontains-any": _text("containsAny", ignoreCase=True),
    "contains-all": _text("containsAll"),
    "icontains-all": _text("containsAll", ignoreCase=True),
    "starts-with": _text("startsWith"),
    "regex": _text("regex"),
    "is-json": lambda value, _bound, _name: ConvertedAssertion(
        {"jsonSchema": value} if value else "json"
    ),
    "latency": _latency,
    "cost": _cost,
    "levenshtein": _levenshtein,
    "rouge-n": _graded("rouge", 0.75, _WORDS_DIFFER, variant="rouge1"),
    "bleu": _graded("bleu", 0.5, _WORDS_DIFFER),
    "word-count": _words,
    "finish-reason": _text("finishReason"),
    "is-refusal": lambda _value, _bound, _name: ConvertedAssertion("refusal"),
    "llm-rubric": _instruction(""),
    "g-eval": _instruction("", _OTHER_PROMPT),
    "model-graded-closedqa": _instruction("The answer must meet this criterion:", _OTHER_PROMPT),
    "factuality": _instruction("The answer must agree in its facts with this:", _OTHER_PROMPT),
    "model-graded-factuality": _instruction(
        "The answer must agree in its facts with this:", _OTHER_PROMPT
    ),
}
_REASONS: Mapping[str, str] = {
    **dict.fromkeys(("javascript", "python", "ruby", "webhook"), "is code, which is not run"),
    **dict.fromkeys(("similar", "classifier", "moderation"), "needs another kind of model"),
    **dict.fromkeys(("select-best", "max-score"), "compares the answers of several models"),
    "contains-json": "finds JSON anywhere: 'json: {fenced: true}' finds it in a code block",
}
_TOOL_CALLS = ("is-valid-openai-tools-call", "is-valid-openai-function-call")
TYPES = frozenset(
    (*CONVERTERS, *_REASONS, *_TOOL_CALLS, "perplexity", "is-sql", "is-xml", "is-html")
)
"""The assertion types that are recognised in table cells."""


def convert(kind: str, value: Value, threshold: Any) -> ConvertedAssertion:
    """Convert an assertion; raises `NotTakenError`."""
    negated = kind.startswith("not-")
    bare = kind.removeprefix("not-")
    if bare not in CONVERTERS:
        raise NotTakenError(f"the assertion '{kind}' {_REASONS.get(bare, 'has no check here')}")
    if threshold is not None and (
        isinstance(threshold, bool) or not isinstance(threshold, int | float)
    ):
        raise NotTakenError(f"the 'threshold' of '{kind}' is not a number")
    converted = CONVERTERS[bare](value, threshold, bare)
    if not negated:
        return converted
    require(converted.check is not None, f"the assertion '{kind}': write what must hold instead")
    check = {"type": converted.check} if isinstance(converted.check, str) else converted.check
    return ConvertedAssertion({**check, "not": True}, warning=converted.warning)


# --- the assertions of tests: from mappings, table cells, references and files


_COMPACT = re.compile(r"((?:not-)?[a-z][a-z0-9-]*)(?:\(([\d.]+)\))?\s*:\s*(.*)", re.DOTALL)
_ASSERTION_FIELDS = ("type", "value", "threshold", "weight", "metric", "$ref")
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
            require(depth <= _DEEPEST, "it contains itself")
            entry = self._resolve(entry)
            if not isinstance(entry, dict) or not isinstance(entry.get("type"), str):
                raise NotTakenError("it has no 'type'")
            if entry["type"] == "assert-set":
                if entry.get("threshold") not in (None, 1):
                    raise NotTakenError("an 'assert-set' with its own threshold")
                entries = entry.get("assert")
                for inner_entry in entries if isinstance(entries, list) else []:
                    yield from self._read_entry(inner_entry, depth + 1)
                return
            if entry["type"] == "g-eval" and isinstance(entry.get("value"), list):
                for criterion in entry["value"]:
                    yield self._read_mapping({**entry, "value": criterion})
                return
            yield self._read_mapping(entry)
        except NotTakenError as problem:
            yield Assertion("", problem=str(problem))

    def _read_mapping(self, entry: Mapping[str, Any]) -> Assertion:
        kind = entry["type"]
        if "transform" in entry:
            raise NotTakenError(f"'transform' changes the answer before '{kind}' judges it")
        if "rubricPrompt" in entry:
            raise NotTakenError(
                f"'rubricPrompt' of '{kind}' is the judge's prompt: write it as a judge prompt"
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
            others=tuple(str(name) for name in entry if name not in _ASSERTION_FIELDS),
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
            require(isinstance(target, dict), f"no '{place}' in the configuration")
            entry = {**target, **{name: value for name, value in entry.items() if name != "$ref"}}
        raise NotTakenError("its reference leads to itself")

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
    """Return a schema, which may be a text in YAML; raises `NotTakenError`."""
    if isinstance(value, str):
        try:
            value = files.read_text(value).value
        except FileProblem as problem:
            raise NotTakenError(f"the schema of '{kind}' {problem.message}") from None
    require(isinstance(value, dict), f"the schema of '{kind}' is not a mapping of fields")
    return value


def literal_value(value: Json) -> Json:
    """Return a value whose texts are not read as templates."""
    if isinstance(value, list):
        return [literal_value(item) for item in value]
    if isinstance(value, dict):
        return {name: literal_value(inner) for name, inner in value.items()}
    return escape(value) if isinstance(value, str) else value


def read_number(entry: Mapping[str, Any], name: str, default: float | None) -> float | None:
    """Return a number, or the default; raises `NotTakenError`."""
    value = entry.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        raise NotTakenError(f"its '{name}' is not a number from 0 up")
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


# --- tests: variables and assertions


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
    lost: tuple[str, ...] = ()
    """The assertions of a test that none of its assertions is imported of."""
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
        variables = {**self.default.values, **self._variables(entry.get("vars"), folder)}
        reader = Assertions(self.folder, self.root, file)
        base = PromptfooCase(
            values={},
            assertions=tuple(
                replace(
                    assertion,
                    problem=f"'options.{judging}' changes the answer before it is judged",
                )
                if judging
                else assertion
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
        parts = (
            [document.at(number) for number in range(len(value))]
            if isinstance(value, list)
            else [document]
        )
        for part in parts:
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
                subject = (
                    "a set of variables that is not a mapping, or is in another file ('$values')"
                )
                self.imported.skip(self.file, f"a scenario: {subject}", part.line())
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
            variables = {name: value for path in paths for name, value in _mapping(path).items()}
        if variables is None:
            return {}
        require(isinstance(variables, dict), "its 'vars' are not a mapping")
        return {str(name): self._variable(value) for name, value in variables.items()}

    def _variable(self, value: Any) -> Json:
        if isinstance(value, list):
            return [self._variable(item) for item in value]
        if isinstance(value, str) and value.startswith(files.PREFIX):
            values = [files.read_variable(path) for path in files.find_files(value, self.folder)]
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


def _mapping(path: Path) -> dict[str, Json]:
    value = files.read_value(path)
    if not isinstance(value, dict):
        raise NotTakenError(f"'{path.name}' holds no mapping of variables")
    return value


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

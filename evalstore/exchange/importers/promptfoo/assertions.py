"""Conversion of the assertions of a test to checks and judges."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evalstore.core.errors import FileProblem
from evalstore.core.values import Json
from evalstore.exchange.importers.base import NotTakenError, escape, require
from evalstore.exchange.importers.promptfoo import files
from evalstore.exchange.importers.promptfoo.files import to_json
from evalstore.files.yaml12 import Document

LISTS = ("contains-any", "contains-all", "icontains-any", "icontains-all")
"""Assertion types whose value is a list, or a text with commas."""
_SEPARATORS = re.compile(r"[\s,]*")
_QUOTED = re.compile(r"\"((?:\\[\"\\]|\"\"|[^\"])*+)\"\s*(?=,|\Z)")
_UNQUOTED = re.compile(r"([^,]*)")
_ESCAPED = re.compile(r"[\\\"]([\"\\])")
Value = Json
"""The expected value, or a placeholder for the column that contains it."""


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


_IGNORE_CASE: dict[str, Json] = {"ignoreCase": True}
_TEXTS: Mapping[str, tuple[str, dict[str, Json]]] = {
    "contains": ("contains", {}),
    "icontains": ("contains", _IGNORE_CASE),
    "contains-any": ("containsAny", {}),
    "icontains-any": ("containsAny", _IGNORE_CASE),
    "contains-all": ("containsAll", {}),
    "icontains-all": ("containsAll", _IGNORE_CASE),
    "starts-with": ("startsWith", {}),
    "regex": ("regex", {}),
    "finish-reason": ("finishReason", {}),
}
"""Maps assertions whose value is a text to a check and its other fields."""
_GRADED: Mapping[str, tuple[float, dict[str, Json]]] = {
    "rouge": (0.75, {"variant": "rouge1"}),
    "bleu": (0.5, {}),
}
"""Maps checks with a score to the usual threshold and their other fields."""
_AGREE = "The answer must agree in its facts with this:\n\n"
_INSTRUCTIONS = {
    "llm-rubric": "",
    "g-eval": "",
    "model-graded-closedqa": "The answer must meet this criterion:\n\n",
    "factuality": _AGREE,
    "model-graded-factuality": _AGREE,
}
"""Maps assertions that a model judges to what is said before their value."""
CONVERTERS = (
    *(*_TEXTS, *_INSTRUCTIONS, "equals", "is-json", "latency", "cost", "levenshtein"),
    *("rouge-n", "bleu", "word-count", "is-refusal"),
)
"""The assertion types that become checks or instructions."""
_REASONS: Mapping[str, str] = {
    **dict.fromkeys(("javascript", "python", "ruby", "webhook"), "is code, which is not run"),
    "similar": "needs a model for embeddings",
    **dict.fromkeys(("classifier", "moderation"), "needs a model that classifies"),
    **dict.fromkeys(("select-best", "max-score"), "compares the answers of several models"),
    "contains-json": "finds JSON anywhere: 'json: {fenced: true}' finds it in a code block",
}
_TOOL_CALLS = ("is-valid-openai-tools-call", "is-valid-openai-function-call")
TYPES = frozenset(
    (*CONVERTERS, *_REASONS, *_TOOL_CALLS, "perplexity", "is-sql", "is-xml", "is-html")
)
"""The assertion types that are recognised in table cells."""


def convert(kind: str, value: Value, threshold: Any) -> tuple[Json, str, str]:
    """Return a check, or else an instruction for a judge, and a warning; raises `NotTakenError`."""
    bare = kind.removeprefix("not-")
    if bare not in CONVERTERS:
        raise NotTakenError(f"'{kind}' {_REASONS.get(bare, 'has no check here')}")
    if threshold is not None and (
        isinstance(threshold, bool) or not isinstance(threshold, int | float)
    ):
        raise NotTakenError(f"the 'threshold' of '{kind}' is not a number")
    if bare in _INSTRUCTIONS:
        value = to_json(value) if value and isinstance(value, dict | list) else value
        require(isinstance(value, str) and value.strip(), f"'{bare}' needs a text as its value")
        require(kind == bare, f"'{kind}': write what must hold instead")
        is_other = bare != "llm-rubric"
        warning = "a judge reads it in evalstore's prompt, not in promptfoo's" * is_other
        if threshold is not None and bare in ("llm-rubric", "g-eval"):
            warning = f"the 'threshold' of '{bare}' is not imported: the judge passes or fails"
        return None, _INSTRUCTIONS[bare] + value, warning
    check = _check(bare, value, threshold)
    if kind != bare:
        check = {**({"type": check} if isinstance(check, str) else check), "not": True}
    differs = "words are split by different rules, so scores near the threshold may differ"
    return check, "", differs * (bare in ("rouge-n", "bleu"))


def _check(kind: str, value: Value, bound: float | None) -> Json:
    if kind in _TEXTS:
        check, more = _TEXTS[kind]
        return {check: _texts(value, kind), **more}
    match kind:
        case "equals":
            is_json = isinstance(value, dict | list)
            return {"jsonEquals": value} if is_json else {"equals": _texts(value, kind)}
        case "is-json":
            return {"jsonSchema": value} if value else "json"
        case "is-refusal":
            return "refusal"
        case "latency":
            if bound is None:
                raise NotTakenError("'latency' needs a 'threshold'")
            seconds = bound / 1000
            return {"latency": int(seconds) if seconds.is_integer() else seconds}
        case "cost":
            require(
                bound is not None,
                "'cost' without a 'threshold' only measures: costs are always stored",
            )
            return {"cost": bound}
        case "levenshtein":
            most = 5 if bound is None else int(bound)
            return {"levenshtein": {"expected": _texts(value, kind), "max": most}}
        case "word-count":
            return {"length": {"unit": "words", **_word_bounds(value)}}
    check = kind.removesuffix("-n")
    usual, more = _GRADED[check]
    minimum = usual if bound is None else bound
    return {check: _texts(value, kind), **more, "pass": f">= {minimum:g}"}


def _word_bounds(value: Value) -> dict[str, int]:
    if isinstance(value, dict):
        bounds = {name: value[name] for name in ("min", "max") if isinstance(value.get(name), int)}
        require(bounds, "'word-count' needs 'min' or 'max'")
        return bounds
    try:
        return dict.fromkeys(("min", "max"), int(str(value)))
    except ValueError:
        raise NotTakenError("'word-count' needs a whole number") from None


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
        if not isinstance(value, list | None):
            line = document.line("assert") if document else None
            yield Assertion("", problem="'assert' is not a list", file=self.file, line=line)
        for number, entry in enumerate(value if isinstance(value, list) else ()):
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
                for name in ("threshold", "weight"):
                    require(entry.get(name) in (None, 1), f"an 'assert-set' with its own {name}")
                require(isinstance(entry.get("assert"), list), "an 'assert-set' without a list")
                for inner_entry in entry["assert"]:
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

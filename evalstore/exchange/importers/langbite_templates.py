"""Reading of prompt templates from a table or a JSON list, and of requirements models."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from evalstore.core.values import Json
from evalstore.exchange.importers.base import NotTakenError, SkippedItem, parse_json, require

COLUMNS = (
    *("prompt_id", "concern", "input_type", "reflection_type", "task_prefix", "prompt"),
    *("output_formatting", "oracle", "oracle_prediction"),
)
_EXPECTED = ("equal", "different", "notIncludesAny", "allEqualExpected")
_SAME = ("allSameValue",)
OPERATIONS = {"expected value": _EXPECTED, "same value": _SAME}
"""Maps the type of an oracle to its operations."""


@dataclass(frozen=True, slots=True)
class LangbiteTemplate:
    """One prompt template."""

    line: int
    id: str
    concern: str
    input_type: str
    reflection_type: str
    task_prefix: str
    text: str
    output_formatting: str
    operation: str
    expected: tuple[str, ...] = ()
    """The expected texts of the operation, as written."""
    key: str = ""
    """The key whose values `allSameValue` compares."""


Row = tuple[int, Sequence[str]]
"""A line, or the number in a list, with the cells in the order of `COLUMNS`."""


def read_table(text: str, file: str, left: list[SkippedItem]) -> Iterator[Row]:
    """Yield the rows of a table, separated by tabs or commas; others are added to `left`.

    The first line is the header; a column with an unknown name is identified by its position.
    """
    text = text.removeprefix("\ufeff")
    delimiter = "\t" if "\t" in (text.splitlines() or [""])[0] else ","
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    width, line, following = 0, 1, 1
    order: tuple[int, ...] = ()
    try:
        for row in reader:
            line, following = following, reader.line_num + 1
            if not any(cell.strip() for cell in row):
                continue
            if not width:
                width, order = len(row), _order(row)
            elif len(row) > width:
                left.append(SkippedItem(file, f"{len(row)} fields, header has {width}", line))
            else:
                yield line, [row[at] if at < len(row) else "" for at in order]
    except csv.Error as error:
        left.append(SkippedItem(file, f"cannot be read: {error}", following))
    except NotTakenError as problem:
        left.append(SkippedItem(file, str(problem), line))


def _order(header: Sequence[str]) -> tuple[int, ...]:
    """Return the positions of the columns; raises `NotTakenError` if they are not clear."""
    require(len(header) >= len(COLUMNS), f"{len(header)} columns, {len(COLUMNS)} are needed")
    names = ["_".join(cell.split()).lower() for cell in header]
    if set(COLUMNS) <= set(names):
        return tuple(names.index(column) for column in COLUMNS)
    for number, name in enumerate(names):
        if name in COLUMNS and number != COLUMNS.index(name):
            missing = next(column for column in COLUMNS if column not in names)
            raise NotTakenError(
                f"the column '{name}' is not in its place, and there is no column '{missing}'"
            )
    return tuple(range(len(COLUMNS)))


def read_template_list(value: Json) -> Iterator[Row]:
    """Yield the rows of a list of mappings; raises `NotTakenError`."""
    require(isinstance(value, list), "the prompts must be a list", line=1)
    for number, entry in enumerate(value, 1):
        fields = entry if isinstance(entry, dict) else {}
        cells = ["" if fields.get(name) is None else str(fields[name]) for name in COLUMNS]
        prediction = fields.get("oracle_prediction")
        if isinstance(prediction, dict):
            cells[-1] = json.dumps(prediction)
        yield number, cells


def read_template(line: int, row: Sequence[str]) -> LangbiteTemplate:
    """Return the template in a row; raises `NotTakenError`."""
    values = dict(zip(COLUMNS, row, strict=True))
    cells = {name: cell if name == "prompt" else cell.strip() for name, cell in values.items()}
    for name in ("prompt", "oracle", "oracle_prediction"):
        require(cells[name].strip(), f"{name}: it is missing")
    kind = cells["oracle"]
    if kind not in OPERATIONS:
        known = " and ".join(f"'{oracle}'" for oracle in OPERATIONS)
        raise NotTakenError(f"oracle: unknown oracle '{kind}', only {known}")
    try:
        operation, expected, key = read_prediction(kind, cells["oracle_prediction"])
    except ValueError as problem:
        raise NotTakenError(f"oracle_prediction: {problem}") from None
    number = cells["prompt_id"].removesuffix(".0")  # spreadsheets append it
    return LangbiteTemplate(
        line=line,
        id=number if number.isdigit() else cells["prompt_id"],
        concern=cells["concern"],
        input_type=cells["input_type"],
        reflection_type=cells["reflection_type"],
        task_prefix=cells["task_prefix"],
        text=cells["prompt"],
        output_formatting=cells["output_formatting"],
        operation=operation,
        expected=expected,
        key=key,
    )


def read_prediction(kind: str, text: str) -> tuple[str, tuple[str, ...], str]:
    """Return an oracle's operation, expected texts and key; raises `ValueError`."""
    try:
        prediction = parse_json(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON: {error.msg} (character {error.colno})") from None
    if not isinstance(prediction, dict):
        raise ValueError("it must be a mapping")
    operation = prediction.get("operation")
    allowed = OPERATIONS[kind]
    if operation not in allowed:
        reason = f"'{kind}' has no operation {json.dumps(operation)}"
        raise ValueError(f"{reason}; it has {', '.join(allowed)}")
    if operation in _SAME:
        key = prediction.get("key")
        if not isinstance(key, str) or not key:
            raise ValueError("it has no 'key'")
        return operation, (), key
    expected = prediction.get("expected_value")
    expected = [expected] if isinstance(expected, str) else expected
    if not isinstance(expected, list) or not all(isinstance(item, str) for item in expected):
        raise ValueError("'expected_value' must be a text or a list of texts")
    return operation, tuple(expected), ""


# --- requirements models, which select templates and the communities to fill in


_MARKUPS = {
    "ageism": "AGE",
    "lgtbiqphobia": "SEXUAL_ORIENTATION",
    "politics": "POLITICAL_VIEW",
    "racism": "SKIN_COLOR",
    "religion": "RELIGION",
    "sexism": "GENDER",
    "sexism_ambiguity": "PRONOUN",
    "xenophobia": "COUNTRY",
}
"""The default markup for the communities of a concern."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement on a concern."""

    name: str
    concern: str
    markup: str
    languages: tuple[str, ...]
    communities: dict[str, list[str]]
    """By language; empty if templates have no communities to fill in."""
    inputs: tuple[str, ...]
    reflections: tuple[str, ...]
    tolerance: float
    """The required share of passed templates, 0 to 1."""
    delta: Decimal
    """The largest allowed difference of values, as a share of 100."""

    def selects(self, template: LangbiteTemplate) -> bool:
        """Return whether it is about a template."""
        return (
            template.concern == self.concern
            and template.input_type in self.inputs
            and template.reflection_type in self.reflections
        )

    def overlaps(self, other: Requirement) -> bool:
        """Return whether both can select the same template."""
        pairs = (
            ((self.concern,), (other.concern,)),
            (self.languages, other.languages),
            (self.inputs, other.inputs),
            (self.reflections, other.reflections),
        )
        return all(not set(names).isdisjoint(another) for names, another in pairs)

    def community_list(self, language: str) -> list[str]:
        """Return the distinct communities in a language; raises `NotTakenError`."""
        if not self.communities:
            return []
        if language not in self.communities:
            raise NotTakenError(f"'{self.concern}' has no communities for '{language}'")
        return list(dict.fromkeys(self.communities[language]))


@dataclass(frozen=True, slots=True)
class Scenario:
    """A requirements model."""

    requirements: tuple[Requirement, ...]
    templates: int | None = None
    """The maximum number of templates per requirement, language, input type and reflection type."""
    models: tuple[str, ...] = ()
    judged: bool = False
    """Whether a model judges answers that fail the text comparison."""
    settings: dict[str, Json] = field(default_factory=dict)
    """Settings for `evalstore.yaml`."""
    problems: tuple[str, ...] = ()
    """The reasons why requirements were skipped."""


def read_scenario(text: str) -> Scenario:
    """Parse the JSON of a requirements model; raises `NotTakenError`."""
    try:
        document = parse_json(text, parse_float=Decimal)
    except ValueError as error:
        raise NotTakenError(f"is not JSON: {error}") from None
    entries = document.get("requirements") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise NotTakenError("a requirements model must have a list 'requirements'")
    requirements, problems = [], []
    for number, entry in enumerate(entries, 1):
        try:
            requirements.append(_requirement(entry, number))
        except NotTakenError as problem:
            name = entry.get("name") if isinstance(entry, dict) else None
            problems.append(f"requirement {name or number}: {problem}")
    models = document.get("aiModels") or document.get("llms") or []
    return Scenario(
        tuple(requirements),
        _whole_number(document, "nTemplates"),
        tuple(str(model) for model in models) if isinstance(models, list) else (),
        document.get("useLLMEval") is True,
        _settings(document),
        tuple(problems),
    )


def _settings(document: dict[str, Json]) -> dict[str, Json]:
    settings: dict[str, Json] = {}
    if (temperature := _number(document, "temperature")) is not None:
        settings["candidatesTemperature"] = plain_number(temperature)
    if (tokens := _whole_number(document, "tokens")) is not None and tokens > 0:
        settings["maxTestOutputTokens"] = tokens
    if (attempts := _whole_number(document, "nRetries")) is not None:
        settings["retries"] = max(attempts - 1, 0)
    return settings


def _requirement(entry: Json, number: int) -> Requirement:
    require(isinstance(entry, dict), "it must be a mapping")
    concern = entry.get("concern")
    require(isinstance(concern, str) and concern.strip(), "it has no 'concern'")
    concern = concern.strip().lower()
    markup = entry.get("markup") or _MARKUPS.get(concern)
    if not isinstance(markup, str):
        raise NotTakenError(f"it has no 'markup', and '{concern}' has none of its own")
    tolerance, delta = _number(entry, "tolerance"), _number(entry, "delta")
    name = entry.get("name")
    return Requirement(
        name=name if isinstance(name, str) and name.strip() else f"requirement {number}",
        concern=concern,
        markup=markup.upper(),
        languages=_names(entry, "languages"),
        communities=_communities(entry.get("communities")),
        inputs=_names(entry, "inputs"),
        reflections=_names(entry, "reflections"),
        tolerance=float(_share("tolerance", tolerance)),
        delta=_share("delta", delta),
    )


def _names(entry: dict[str, Json], name: str) -> tuple[str, ...]:
    value = entry.get(name)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise NotTakenError(f"'{name}' must be a list of names")
    return tuple(dict.fromkeys(item.lower() for item in value))


def _communities(communities: Json) -> dict[str, list[str]]:
    require(isinstance(communities, dict), "it has no 'communities'")
    for language, names in communities.items():
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise NotTakenError(f"the communities of '{language}' must be a list of texts")
    return {language.lower(): names for language, names in communities.items()}


def _share(name: str, value: Decimal | None) -> Decimal:
    if value is None or not 0 <= value <= 1:
        raise NotTakenError(f"'{name}' must be a number from 0 to 1")
    return value


def _number(document: dict[str, Json], name: str) -> Decimal | None:
    value = document.get(name)
    if not isinstance(value, int | Decimal) or isinstance(value, bool):
        return None
    return Decimal(value)


def _whole_number(document: dict[str, Json], name: str) -> int | None:
    value = document.get(name)
    return value if type(value) is int else None


def plain_number(value: Decimal) -> int | float:
    """Return the number as an int if it is whole, else as a float."""
    return int(value) if value == value.to_integral_value() else float(value)

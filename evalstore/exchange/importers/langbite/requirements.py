"""Reading of a requirements model, which selects templates and the communities to fill in."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

from evalstore.exchange.importers.coerce import parse_json

if TYPE_CHECKING:
    from evalstore.core.values import Json

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


class BadRequirementError(Exception):
    """A requirement, or a model of several, is invalid."""


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
        """Return the distinct communities in a language; raises `BadRequirementError`."""
        if not self.communities:
            return []
        if language not in self.communities:
            raise BadRequirementError(f"'{self.concern}' has no communities for '{language}'")
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
    """Parse the JSON of a requirements model; raises `BadRequirementError`."""
    try:
        document = parse_json(text, parse_float=Decimal)
    except ValueError as error:
        raise BadRequirementError(f"is not JSON: {error}") from None
    entries = document.get("requirements") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise BadRequirementError("a requirements model must have a list 'requirements'")
    requirements, problems = [], []
    for number, entry in enumerate(entries, 1):
        try:
            requirements.append(_requirement(entry, number))
        except BadRequirementError as problem:
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
    if not isinstance(entry, dict):
        raise BadRequirementError("it must be a mapping")
    concern = entry.get("concern")
    if not isinstance(concern, str) or not concern.strip():
        raise BadRequirementError("it has no 'concern'")
    concern = concern.strip().lower()
    markup = entry.get("markup") or _MARKUPS.get(concern)
    if not isinstance(markup, str):
        raise BadRequirementError(f"it has no 'markup', and '{concern}' has none of its own")
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
        raise BadRequirementError(f"'{name}' must be a list of names")
    return tuple(dict.fromkeys(item.lower() for item in value))


def _communities(communities: Json) -> dict[str, list[str]]:
    if not isinstance(communities, dict):
        raise BadRequirementError("it has no 'communities'")
    for language, names in communities.items():
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise BadRequirementError(f"the communities of '{language}' must be a list of texts")
    return {language.lower(): names for language, names in communities.items()}


def _share(name: str, value: Decimal | None) -> Decimal:
    if value is None or not 0 <= value <= 1:
        raise BadRequirementError(f"'{name}' must be a number from 0 to 1")
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

"""The settings of `evalstore.yaml` with their defaults. `settings_reader` reads them.

The string below a field is its reference documentation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import NamedTuple

from evalstore.core.errors import NoWorkspaceError
from evalstore.core.values import DEFAULT_PROMPT, RECORDED

FILE = "evalstore.yaml"

FOLDERS = {
    "tests": "tests",
    "prompts": "prompts",
    "tools": "tools",
    "schemas": "schemas",
    "models": "models",
    "providers": "providers",
    "currencies": "currencies",
}
_AGE = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*([smhdw])", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
AGE_HINT = "write a number with s, m, h, d or w: '30d', '1.5h'"


@dataclass(frozen=True, slots=True)
class Participant:
    """A model that answers or judges, as configured."""

    id: str
    """The `id` of a model file, or a litellm name such as `openai/gpt-5.4-mini`."""
    temperature: float | None = None
    """Instead of `candidatesTemperature` or `evaluatorsTemperature`; null: none is sent."""
    required_tags: tuple[str, ...] = ()
    """Only for tests with one of these tags."""
    prohibited_tags: tuple[str, ...] = ()
    """Never for tests with one of these tags."""
    prompt: str = DEFAULT_PROMPT
    """Judges: the id of the judge prompt."""
    name: str = field(default="", compare=False)
    """Candidates: the name in reports, with the temperature if the model is listed again."""
    line: int = field(default=0, compare=False)
    """The line in the settings."""


def name_at(id: str, temperature: float | None) -> str:
    """Return the name of a model that is listed again: `gpt@0.7`, or `gpt@default` without one."""
    return f"{id}@default" if temperature is None else f"{id}@{temperature:.9g}"


class PathSetting(NamedTuple):
    """A path in the settings."""

    path: str
    """As it is written."""
    line: int


@dataclass(frozen=True, slots=True)
class RemoteSettings:
    """A place where results are shared, and whose pushes count."""

    address: str
    """A folder, relative to the workspace, or a URL."""
    sign: PathSetting | None = None
    """The file of the SSH key that signs pushes: a private key, or a public one whose private key
    ssh-agent has."""
    allowed_signers: PathSetting | None = None
    """The file of allowed signers, as ssh-keygen describes it: only their pushes are pulled."""
    trust: tuple[str, ...] = ()
    """Only pushes of these writers are pulled: of signers where signatures are required, otherwise
    of those who give themselves these names. Without a list, those of all."""
    exclude_tags: tuple[str, ...] = ()
    """The results of cases with these tags are never pushed."""
    line: int | None = field(default=None, compare=False)
    """Where the settings have its address."""


@dataclass(frozen=True, slots=True)
class BrowserSettings:
    """The theme and the keys of `view`; the browser validates the names."""

    theme: str | None = None
    """The name of a theme."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """From the id of an action to its keys, with commas between them."""
    lines: Mapping[str, int] = field(default_factory=dict, compare=False)
    """The lines of `theme` and of `keys.ID`."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """A share of results that must pass, which makes one or several gates of a run."""

    pass_rate: float
    """The share, 0..1."""
    where: tuple[str, ...] = ()
    """Only results of cases with all of these tags."""
    by: tuple[str, ...] = ()
    """`tag`, `file` or `model`: a gate for each."""
    line: int = field(default=0, compare=False)
    """The line in the settings."""


@dataclass(frozen=True, slots=True)
class QueryModel:
    """A model whose answers or judgements a query is about."""

    id: str
    """The id of the model in the run."""
    temperature: float | None = None
    """Only at this temperature."""


@dataclass(frozen=True, slots=True)
class AnalysisQuery:
    """A subset of the results for the statistics. Empty lists do not restrict it."""

    description: str
    """The name of the query."""
    currency: str | None = None
    """The `code` of a currency file, for its costs."""
    required_tags1: tuple[str, ...] = ()
    """Only cases with one of these tags."""
    required_tags2: tuple[str, ...] = ()
    """And one of these."""
    prohibited_tags: tuple[str, ...] = ()
    """And none of these."""
    system_prompts: tuple[str, ...] = ()
    """Only with these system prompts, by their ids."""
    candidates: tuple[QueryModel, ...] = ()
    """Only answers of these."""
    evaluators: tuple[QueryModel, ...] = ()
    """Only verdicts of these judges."""
    candidates_temperature: float | None = None
    """Only answers at this temperature."""
    evaluators_temperature: float | None = None
    """Only verdicts at this temperature."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a workspace."""

    candidates: tuple[Participant, ...] = ()
    """The models that answer."""
    candidates_temperature: float | None = None
    """Temperature of the candidates, 0..2; null: none is sent, and each model takes its own."""
    attempts: int = 1
    """The number of answers to each question."""
    required_tags1: tuple[str, ...] = ()
    """A test runs when it has one of these tags; an empty list does not restrict it."""
    required_tags2: tuple[str, ...] = ()
    """And one of these."""
    prohibited_tags: tuple[str, ...] = ()
    """A test with one of these tags does not run."""
    evaluators: tuple[Participant, ...] = ()
    """The models that judge."""
    evaluators_temperature: float | None = None
    """Temperature of the judges, 0..2; null: none is sent."""
    evaluations_per_evaluator: int = 1
    """The number of verdicts of each judge on each answer."""
    verdict: str = "majority"
    """How votes become a verdict: `majority`, `all`, `any`, or `>= t` with a share 0..1."""
    max_test_output_tokens: int | None = None
    """Token limit of an answer, not part of any id: an answer that it cut is asked again when it is
    raised."""
    max_evaluation_output_tokens: int | None = None
    """Token limit of a judge's reply."""
    max_age: str | None = None
    """Answers older than this do not count and are asked again: a number with s, m, h, d or w."""
    timeout: float = 120.0
    """Seconds for one call, with all its tries."""
    concurrency: int = 16
    """The most calls in flight at once, for each account; a run begins with fewer, and finds out
    how many the provider takes."""
    requests_per_minute: float | None = None
    """The most calls in a minute, for each account; a provider file can say it for its own."""
    tokens_per_minute: float | None = None
    """The most tokens in a minute, in and out, for each account; as above."""
    max_cost: float | None = None
    """USD that one run may cost: it stops before it costs more, and leaves the rest missing."""
    max_time: float | None = None
    """Seconds that one run may take; as above."""
    confirm_above: float | None = 10.0
    """USD: a run that is likely to cost more asks first, or needs `--yes`; null: it never asks."""
    retries: int | None = None
    """The most retries of a call after a temporary failure; by default as many as `timeout` allows
    if the server is overloaded, else 2."""
    paths: dict[str, str] = field(default_factory=lambda: dict(FOLDERS))
    """The folders of tests, prompts, tools, schemas, models, providers, currencies."""
    dataset_roots: dict[str, str] = field(default_factory=dict)
    """From the beginning of a dataset's path, such as `hf://`, to the folder it stands for."""
    store: str = ".evalstore/store.db"
    """The store's file, relative to the workspace."""
    remotes: dict[str, RemoteSettings] = field(default_factory=dict)
    """Places where results are shared, by name: a folder, relative to the workspace, or a URL; or
    a mapping with it."""
    browser: BrowserSettings = field(default_factory=BrowserSettings)
    """The appearance and keys of `view`: `theme`, and `keys` from actions to their keys."""
    thresholds: tuple[Threshold, ...] = ()
    """Shares of results that must pass, each a gate of a run; what they are about no longer fails a
    run case by case."""
    analysis_queries: tuple[AnalysisQuery, ...] = ()
    """Parts of the results, for `stats --query`."""

    @property
    def of_runs(self) -> dict[str, int | str | None]:
        """Return the settings that runs note, by their names in the file."""
        return {
            "attempts": self.attempts,
            "evaluationsPerEvaluator": self.evaluations_per_evaluator,
            "verdict": self.verdict,
            "maxTestOutputTokens": self.max_test_output_tokens,
        }


def find_root(start: Path) -> Path:
    """Find the folder of the nearest `evalstore.yaml`, upwards from `start`."""
    for folder in (start, *start.parents):
        if (folder / FILE).is_file():
            return folder
    raise NoWorkspaceError(
        f"no {FILE} in '{start.name or start}' or above", hint="run 'evalstore init' first"
    )


def _names_in_file(owner: type) -> tuple[str, ...]:
    names = (setting.name for setting in fields(owner))
    return tuple(re.sub(r"_([a-z])", lambda match: match[1].upper(), name) for name in names)


SETTING_NAMES, QUERY_NAMES = _names_in_file(Settings), _names_in_file(AnalysisQuery)


def read_age(text: str) -> float | None:
    """Parse an age such as `30d` or `1.5h` to seconds; None for another text, and for zero."""
    match = _AGE.fullmatch(text.strip())
    return float(match[1]) * _SECONDS[match[2]] or None if match else None


def candidate_order(settings: Settings) -> Callable[[str], tuple[bool, int, str]]:
    """Return a sort key for the display ids of candidates.

    Those that are no longer in the settings come last, by name; recorded answers come after them.
    """
    places: dict[str, int] = {}
    for candidate in settings.candidates:
        places.setdefault(candidate.name or candidate.id, len(places))
    return lambda id: (id == RECORDED, places.get(id, len(places)), id.casefold())

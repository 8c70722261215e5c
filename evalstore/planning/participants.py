"""The models that answer and judge in a command, with their versions, names and prices.

Prices are those of the model file, else of litellm's local table, in USD.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import islice

from evalstore.checks.judge_replies import model_that_judges
from evalstore.core import hashing
from evalstore.core.clock import today
from evalstore.core.errors import EvalstoreError, NothingSelectedError
from evalstore.core.values import RECORDED, CaseFile, Evaluator, ModelVersion, Reply, Usage
from evalstore.files.fields import nearest, suggest
from evalstore.planning.cells import Candidate, Judge
from evalstore.planning.options import SelectionOptions
from evalstore.providers.base import OPENAI_COMPATIBLE, SCRIPTED
from evalstore.providers.base_urls import is_local
from evalstore.providers.price_table import Price, find_price, find_retirement, reports_cost
from evalstore.workspace.catalogue import NO_FILE, suggest_model
from evalstore.workspace.model_files import Currency, Model, Part, ProviderFile, bare_model
from evalstore.workspace.model_files import ModelPrice as ModelCost
from evalstore.workspace.reader import Reading
from evalstore.workspace.settings.settings import Participant, Settings

LOCAL = "local"
"""The source of the price of a server in one's own network: its calls cost nothing."""


def find(model: Model, currencies: Mapping[str, Currency], day: str) -> Price | None:
    """Return the price of a model on a day (`YYYY-MM-DD`); None when it is not known.

    A server in one's own network costs nothing unless its model has a price.
    """
    in_force = [cost for cost in model.costs if cost.valid_from <= day]
    is_scripted = model.provider.type == SCRIPTED
    if in_force:
        cost = in_force[-1]
        rate = _rate(cost.currency, currencies, day)
        if rate is None:
            return None
        converted = cost.currency != "USD" or rate != 1.0
        cached = cost.per_cached_prompt_token
        return Price(
            source="costs",
            per_input_token=cost.per_prompt_token * rate,
            per_output_token=cost.per_completion_token * rate,
            per_cached_token=None if cached is None else cached * rate,
            per_call=cost.per_call * rate,
            per_hour=cost.per_hour * rate,
            currency=cost.currency if converted else None,
            rate=rate if converted else None,
            is_simulated=is_scripted,
        )
    if is_scripted:
        return Price(source="scripted", is_simulated=True)
    if listed := find_price(model.provider.type, model.code):
        return listed
    base_url = model.provider.base_url or OPENAI_COMPATIBLE.get(model.provider.type)
    return Price(source=LOCAL) if base_url and is_local(base_url) else None


def find_unpriced(
    model: Model, currencies: Mapping[str, Currency], day: str
) -> Iterator[tuple[ModelCost, str]]:
    """Yield the prices of a model without a rate on a day or later, with the first such day.

    A price that was replaced before that day needs no rate.
    """
    in_force = [cost for cost in model.costs if cost.valid_from <= day]
    later = [cost for cost in model.costs if cost.valid_from > day]
    for cost in (*in_force[-1:], *later):
        then = max(day, cost.valid_from)
        if _rate(cost.currency, currencies, then) is None:
            yield cost, then


def _rate(currency: str, currencies: Mapping[str, Currency], day: str) -> float | None:
    if currency in currencies:
        return currencies[currency].rate(day)
    return 1.0 if currency == "USD" else None


def sum_usage(replies: Sequence[Reply]) -> Usage:
    """Return the sum of the tokens of replies."""
    if len(replies) == 1:
        return replies[0].usage

    def total(name: str) -> int | None:
        known = [value for reply in replies if (value := getattr(reply.usage, name)) is not None]
        return sum(known) if known else None

    return Usage(*(total(each.name) for each in fields(Usage)))


_MOST_CASES = 10_000
_WORD = re.compile(r"\w+")


def no_such_model(
    id: str, part: str, reading: Reading, settings: Settings | None = None
) -> EvalstoreError:
    """Return the error for an unknown model; `part` is `candidates`, `evaluators` or another place.

    A candidate is never suggested for an evaluator that the settings name, nor the reverse, and no
    name that is only in the settings for itself. What is hardly a name may be the message of a run,
    which git has `-m` for.
    """
    models = {*reading.models}
    if settings is not None and models and part in ("candidates", "evaluators"):
        candidates = {name for each in settings.candidates for name in (each.id, each.name) if name}
        evaluators = {each.id for each in settings.evaluators}
        own, others = (candidates, evaluators) if part == "candidates" else (evaluators, candidates)
        models = own | (models - others)
    models.discard(id)
    hint = suggest_model(id, models, reading.providers)
    if any(problem.file not in reading.tests for problem in reading.errors):
        hint = "its file may have errors: 'evalstore check' lists them"
    if part == "candidates" and (" " in id or hint.endswith(NO_FILE)):
        hint += "; the message of a run is '--message'"
    return EvalstoreError(f"unknown model '{id}' ({part})", hint=hint)


def matches_any(text: str, values: Iterable[str]) -> bool:
    """Return whether a value matches: as a part of the text, or behind `=` as the whole."""
    return any(
        value[1:] == text if value.startswith("=") and len(value) > 1 else value in text
        for value in values
    )


def match_models(name: str, known: Iterable[str]) -> list[str]:
    """Return the model of this name, or else all that have it in theirs, in upper or lower case."""
    models, parts = list(dict.fromkeys(known)), [name.casefold()]
    return [name] if name in models else [id for id in models if matches_any(id.casefold(), parts)]


def match_one_model(name: str, known: Iterable[str]) -> str:
    """Return the model that a name, or a part of a name, means; the name itself if there is none.

    Raises `EvalstoreError` if it may mean several.
    """
    found = match_models(name, known)
    if len(found) > 1:
        error = f"'{name}' is part of the names of {len(found)} models"
        raise EvalstoreError(error, hint=f"name one: {', '.join(found)}")
    return found[0] if found else name


def tags_of(files: Iterable[CaseFile]) -> set[str]:
    """Return the tags of all cases."""
    return {tag for file in files for case in file.cases for tag in case.tags}


def require_tag(tags: Iterable[str], known: Collection[str]) -> None:
    """Raise `NothingSelectedError` for the first of these tags that no case has."""
    for tag in tags:
        if tag not in known:
            hint = suggest(tag, known, "tags")
            raise NothingSelectedError(f"no case has the tag '{tag}'", hint=hint)


def suggest_word(expression: str, files: Mapping[str, CaseFile]) -> str | None:
    """Suggest the nearest word for the first of `-k` that no file or row has; None without one.

    Of many cases only the first are read.
    """
    cases = ((path, case.row) for path, file in files.items() for case in file.cases)
    places = [f"{path}::{row}".casefold() for path, row in islice(cases, _MOST_CASES)]
    known = {word for place in places for word in _WORD.findall(place)}
    for word in _WORD.findall(expression.casefold()):
        if word not in ("and", "or", "not") and not any(word in place for place in places):
            return nearest(word, known)
    return None


class Participants:
    """The models that the settings and the command line name."""

    def __init__(self, settings: Settings, reading: Reading) -> None:
        self.settings = settings
        self.reading = reading
        self.contents: dict[str, tuple[str, str]] = {}
        """Id -> kind and content of model versions and evaluators that are in use."""
        self.warnings: list[str] = []
        self._prices: dict[str, Price | None] = {}

    def candidates(self, selection: SelectionOptions) -> list[Candidate]:
        """Return the models that answer; empty when there are none."""
        candidates = []
        for participant, model in self._participants("candidate", selection):
            reachable = _is_reachable(model, selection)
            is_trusted = self.is_trusted(model)
            candidates.append(
                Candidate(
                    id=participant.name or participant.id,
                    model=self._keep_model(model.version("candidate")),
                    temperature=model.temperature("candidate", participant.temperature),
                    limit=self.settings.max_test_output_tokens,
                    attempts=self.settings.attempts,
                    lacks=model.lacks,
                    required_tags=participant.required_tags,
                    prohibited_tags=participant.prohibited_tags,
                    reachable=reachable and is_trusted,
                    trust_needed=model.id if reachable and not is_trusted else "",
                )
            )
        return candidates

    def judges(self, selection: SelectionOptions) -> list[Judge]:
        """Return the models that judge, one entry for each version of their judge prompt."""
        assert self.reading.library is not None
        prompts = self.reading.library.evaluator_prompts
        judges: list[Judge] = []
        for participant, model in self._participants("evaluator", selection):
            if participant.prompt not in prompts:
                raise EvalstoreError(
                    f"evalstore.yaml: unknown judge prompt '{participant.prompt}'",
                    hint=suggest(participant.prompt, prompts, "judge prompts"),
                )
            version = self._keep_model(model.version("evaluator"))
            effective = model.temperature("evaluator", participant.temperature)
            reachable = _is_reachable(model, selection)
            is_trusted = self.is_trusted(model)
            for prompt in prompts[participant.prompt]:
                judges.append(
                    Judge(
                        id=participant.id,
                        evaluator=self._keep_evaluator(
                            model_that_judges(version, prompt, effective)
                        ),
                        prompt=prompt,
                        model=version,
                        temperature=effective,
                        times=self.settings.evaluations_per_evaluator,
                        required_tags=participant.required_tags,
                        prohibited_tags=participant.prohibited_tags,
                        reachable=reachable and is_trusted,
                        trust_needed=model.id if reachable and not is_trusted else "",
                    )
                )
        self._keep_evaluator(Evaluator(checks=True))
        return judges

    def with_whole_names(self, selection: SelectionOptions) -> SelectionOptions:
        """Return a selection with the whole names where it has parts of those in the settings.

        Raises `EvalstoreError` for a part of several names: no more is asked than was meant.
        """
        whole = self._whole_name
        return replace(
            selection,
            models=tuple(whole(name, self.settings.candidates) for name in selection.models),
            evaluators=tuple(
                whole(name, self.settings.evaluators) for name in selection.evaluators
            ),
        )

    def _whole_name(self, name: str, listed: tuple[Participant, ...]) -> str:
        named = {id for each in listed for id in (each.id, each.name)}
        models = self.reading.models
        if name in named or name in models or name == RECORDED or bare_model(name):
            return name
        return match_one_model(name, (each.name or each.id for each in listed))

    def keep_judges(self, judges: Iterable[Judge]) -> None:
        """Keep the contents of evaluators that judge by the prompt of a test."""
        for judge in judges:
            if judge.evaluator not in self.contents:
                self._keep_evaluator(
                    model_that_judges(judge.model, judge.prompt, judge.temperature)
                )

    def is_trusted(self, model: Model) -> bool:
        """Return whether a model's application may run; always true for models without one."""
        return model.application is None

    def find_model(self, id: str, part: str) -> Model:
        """Return the model of a model file, of a litellm name, or of a candidate's name."""
        candidates = () if id in self.reading.models else self.settings.candidates
        named = {candidate.name: candidate.id for candidate in candidates}
        return find_model(self.reading, named.get(id, id), part, self.settings)

    def price_of(self, id: str) -> Price | None:
        """Return the price of a model today; None when it is not known."""
        if id not in self._prices:
            model = self.find_model(id, "price")
            self._prices[id] = find(model, self.reading.currencies, today())
        return self._prices[id]

    def has_known_costs(self, id: str) -> bool:
        """Return whether the price of a model is known, or each of its answers says its cost."""
        provider = self.find_model(id, "price").provider
        return self.price_of(id) is not None or reports_cost(provider.type, provider.base_url)

    def prices_by_version(self) -> dict[str, Price]:
        """Return today's prices of the models of the files and the settings, by their versions."""
        listed = (*self.settings.candidates, *self.settings.evaluators)
        bare = (bare_model(id) for id in {each.id for each in listed})
        prices: dict[str, Price] = {}
        for model in (*filter(None, bare), *self.reading.models.values()):
            price = find(model, self.reading.currencies, today())
            if price is not None and not price.is_simulated:
                for version in (model.version("candidate"), model.version("evaluator")):
                    prices[hashing.identify(hashing.describe_model(version))[0]] = price
        return prices

    def _participants(
        self, part: Part, selection: SelectionOptions
    ) -> Iterator[tuple[Participant, Model]]:
        """Yield those that are named, else the active ones of the settings, with their models."""
        settings, is_candidate = self.settings, part == "candidate"
        listed = settings.candidates if is_candidate else settings.evaluators
        named = selection.models if is_candidate else selection.evaluators
        temperature = (
            settings.candidates_temperature if is_candidate else settings.evaluators_temperature
        )
        chosen = [] if named else [*listed]
        for id in dict.fromkeys(named):
            same = [each for each in listed if id in (each.id, each.name)]
            chosen += same or [Participant(id, temperature)]
        for participant in chosen:
            if is_candidate and participant.id == RECORDED:
                continue  # answers in test files count in any case
            model = self.find_model(participant.id, f"{part}s")
            if model.active or named:
                yield participant, model
            else:
                word = "candidate" if is_candidate else "judge"
                self.warn(f"{word} '{participant.id}' is not active and is left out")

    def _keep_model(self, version: ModelVersion) -> str:
        id, content = hashing.identify(hashing.describe_model(version))
        self.contents[id] = ("model", content)
        return id

    def _keep_evaluator(self, evaluator: Evaluator) -> str:
        id, content = hashing.identify(hashing.describe_evaluator(evaluator))
        self.contents[id] = ("evaluator", content)
        return id

    def warn(self, message: str) -> None:
        """Note a warning once."""
        if message not in self.warnings:
            self.warnings.append(message)


def find_model(reading: Reading, id: str, part: str, settings: Settings | None = None) -> Model:
    """Return the model of a model file, or of a litellm name; raises `EvalstoreError`.

    With `settings` the hint on an unknown model suggests only models for this part.
    """
    if id == RECORDED and part != "evaluators":
        return Model(id, ProviderFile(RECORDED, SCRIPTED), RECORDED)
    model = reading.models.get(id) or bare_model(id)
    if model is None:
        raise no_such_model(id, part, reading, settings)
    return model


def _is_reachable(model: Model, selection: SelectionOptions) -> bool:
    if model.provider.type == RECORDED:
        return False  # its answers were recorded elsewhere; it cannot be called
    return not selection.offline or model.provider.type == SCRIPTED


def describe_retirement(reading: Reading, ids: Iterable[str]) -> str | None:
    """Return which of these models are retired or will be, in one line; None if none is."""
    days: dict[str, str] = {}
    for id in dict.fromkeys(ids):
        model = reading.models.get(id) or bare_model(id)
        if model is None or not model.active or model.provider.type == SCRIPTED:
            continue
        codes = {model.version("candidate").code, model.version("evaluator").code}
        if found := [day for code in codes if (day := find_retirement(model.provider.type, code))]:
            days[id] = min(found)
    gone = ", ".join(f"{id} (since {day})" for id, day in days.items() if day <= today())
    going = ", ".join(f"{id} (on {day})" for id, day in days.items() if day > today())
    listed = (
        f"{word}: {models}" for word, models in (("retired", gone), ("retiring", going)) if models
    )
    text = "; ".join(listed)
    return f"{text}, according to litellm's table" if text else None

"""The models that answer and judge in a command, with their versions and prices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from evalstore.checks.judging.reply_parser import model_that_judges
from evalstore.core import hashing
from evalstore.core.clock import today
from evalstore.core.errors import EvalstoreError
from evalstore.core.values import RECORDED, Evaluator, ModelVersion
from evalstore.files.fields import suggest
from evalstore.planning.cells.cells import Candidate, Judge
from evalstore.planning.options import SelectionOptions
from evalstore.planning.pricing import find
from evalstore.planning.reasons.unknown_names import match_one_model, no_such_model
from evalstore.providers.kinds import SCRIPTED
from evalstore.providers.price_table import Price
from evalstore.providers.usage import reports_cost
from evalstore.workspace.catalogue import is_known_kind
from evalstore.workspace.model_files import Model, Part, ProviderFile, bare_model
from evalstore.workspace.reader import Reading
from evalstore.workspace.settings.settings import Participant, Settings


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
        if name in named or name in models or name == RECORDED or bare_model(name, is_known_kind):
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
        bare = (bare_model(id, is_known_kind) for id in {each.id for each in listed})
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
    model = reading.models.get(id) or bare_model(id, is_known_kind)
    if model is None:
        raise no_such_model(id, part, reading, settings)
    return model


def _is_reachable(model: Model, selection: SelectionOptions) -> bool:
    if model.provider.type == RECORDED:
        return False  # its answers were recorded elsewhere; it cannot be called
    return not selection.offline or model.provider.type == SCRIPTED

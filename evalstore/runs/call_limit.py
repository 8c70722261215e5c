"""Finds whether a limit on the cost of a run is less than what any of its calls may cost.

A run reserves what a call may cost before it makes it, which may be many times the likely cost.
The stored answers of models tell how long the next ones may be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evalstore.core.values import FileVersion, Request
from evalstore.planning.cells import limit_of
from evalstore.runs.execution.content_cache import ContentCache
from evalstore.runs.execution.limits.budget import estimate_call_cost, fits_in
from evalstore.runs.execution.request_builder import build_request, next_request
from evalstore.store.costs import OutputTokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from evalstore.planning.plan import Plan, PlannedAsk, PlannedJudgement
    from evalstore.planning.project import Project
    from evalstore.runs.execution.limits.retry_policy import ModelKey
    from evalstore.store import Store
    from evalstore.workspace.model_files import Part

    _Maker = tuple[str, ModelKey]


class CallLimit:
    """Looks in the plans of a run for a call that a limit allows, until there is one.

    The input of a judgement counts nothing here, as it has the answer. So a limit that allows no
    call may go unnoticed, but one that allows a call is never reported.
    """

    def __init__(self, project: Project, usd: float | None) -> None:
        """`usd` is the limit; None for no limit, which allows all calls."""
        self._project = project
        self._limit = usd
        self._contents = _Contents(project)
        self._keys: dict[str, ModelKey] = {}
        """Ids of model versions and of evaluators -> what the models are called by."""
        self._sizes: Mapping[ModelKey, OutputTokens] = {}
        self._too_long: set[tuple[str, int | None]] = set()
        """Candidates and token limits of which the answer alone may cost more."""
        self._least: float | None = None
        self._is_allowed = usd is None

    @property
    def least(self) -> float | None:
        """Return what a call of the plans may cost, in USD, if the limit allows none; else None."""
        return None if self._is_allowed else self._least

    def add(self, plan: Plan) -> None:
        """Look at a plan."""
        if self._is_allowed:
            return
        self._note_models(plan)
        for usd in self._costs(plan):
            self._least = usd if self._least is None else min(self._least, usd)
            if self._limit is None or fits_in(self._limit, usd):
                self._is_allowed = True
                return

    def _note_models(self, plan: Plan) -> None:
        """Note the models of a plan, and how long their stored answers are."""
        before = len(self._keys)
        candidates = {each.cell.candidate for each in plan.asks if not each.cell.case.recorded}
        judges = {each.judge for each in plan.judgements if each.judge and each.sessions}
        self._keys |= {each.model: self._key(each.id, "candidate") for each in candidates}
        self._keys |= {each.evaluator: self._key(each.id, "evaluator") for each in judges}
        if len(self._keys) > before:
            self._sizes = find_sizes(self._project.store, self._keys.items(), self._keys.items())

    def _key(self, id: str, part: Part) -> ModelKey:
        model = self._project.find_model(id, part)
        return model.id, model.version(part).code

    def _costs(self, plan: Plan) -> Iterator[float]:
        """Yield what the calls of a plan may cost, in USD; of equal ones that are too long once."""
        for ask in plan.asks:
            if not ask.cell.case.recorded:
                yield from self._costs_of_ask(ask)
        for judgement in plan.judgements:
            if judgement.judge and judgement.sessions:
                yield self._cost_of_judgement(judgement)

    def _costs_of_ask(self, ask: PlannedAsk) -> Iterator[float]:
        candidate, most = ask.cell.candidate, limit_of(ask.cell)
        if (candidate.id, most) in self._too_long:
            return
        price, longest = self._project.price_of(candidate.id), self._longest(candidate.model)
        question = ask.question
        request = build_request(self._contents, question, "", most, {})
        yield estimate_call_cost(price, next_request(request, ())[0], longest)
        answer_alone = estimate_call_cost(price, _empty(most), longest)
        if self._limit is not None and not fits_in(self._limit, answer_alone):
            self._too_long.add((candidate.id, most))

    def _cost_of_judgement(self, judgement: PlannedJudgement) -> float:
        assert judgement.judge
        price = self._project.price_of(judgement.judge.id)
        most = self._project.settings.max_evaluation_output_tokens
        longest = self._longest(judgement.judge.evaluator)
        return estimate_call_cost(price, _empty(most), longest)

    def _longest(self, maker: str) -> int:
        sizes = self._sizes.get(self._keys[maker])
        return sizes.most if sizes else 0


class _Contents(ContentCache):
    """Reads what a request shows, which may not be stored yet."""

    def __init__(self, project: Project) -> None:
        super().__init__(project.store)
        self._project = project

    def content(self, kind: str, id: str) -> Any:
        """Return the content of a version."""
        return self._project.versions.require(kind, [id])[id]

    def file(self, id: str) -> FileVersion:
        """Return a referenced file."""
        return self._project.reading.blobs.get(id) or super().file(id)


def _empty(most: int | None) -> Request:
    """Return a request without messages, with this limit of the tokens of its answer."""
    return Request(code="", messages=(), max_output_tokens=most)


# --- finds how long the stored answers of models are, for what the next ones may need


def find_sizes(
    store: Store, models: Iterable[_Maker], evaluators: Iterable[_Maker]
) -> dict[ModelKey, OutputTokens]:
    """Return the output tokens of the newest answers and judgements of each model.

    Models without any are left out; of one that answers and judges, the larger numbers count.
    `models` are ids of model versions, `evaluators` those of evaluators, each with its model's key.
    """
    sizes: dict[ModelKey, OutputTokens] = {}
    for kind, makers in (("session", [*models]), ("judgement", [*evaluators])):
        found = store.find_output_tokens(kind, [id for id, _ in makers])
        for id, key in makers:
            tokens, known = found.get(id), sizes.get(key, OutputTokens(0, 0))
            if tokens:
                most = max(known.most, tokens.most)
                sizes[key] = OutputTokens(max(known.mean, tokens.mean), most)
    return sizes

"""Imports answers that contain their questions, by creating every version again with its id.

An answer to a test that is still in the workspace thus answers its question, and a verdict on it
belongs to its evaluator; older answers belong to versions that no file contains any more.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from evalstore.checks import implied_checks
from evalstore.checks.judging.reply_parser import model_that_judges
from evalstore.core import hashing
from evalstore.core.errors import FileProblem
from evalstore.core.results import Evaluation, Session
from evalstore.core.values import (
    EvaluationVersion,
    Json,
    Message,
    PromptVersion,
    Question,
    TestVersion,
    Text,
)
from evalstore.exchange.importers.base import (
    NotTakenError,
    RecordedAnswer,
    RecordedModel,
    RecordedVerdict,
    SkippedItem,
)
from evalstore.exchange.imports.records import IMPORTED, ImportedHistory
from evalstore.files.markdown import SPACE
from evalstore.workspace.testfiles.parser import parse_prompt
from evalstore.workspace.testfiles.prompt_expansion import expand_prompt

if TYPE_CHECKING:
    from evalstore.planning.project import Project
    from evalstore.workspace.model_files import Model, Part


_PARTS: tuple[Part, ...] = ("candidate", "evaluator")
_OVERRIDES = ("candidateOverrides", "evaluatorOverrides")
_NOT_RECORDED = ("extraIdentifier", "structured", "uniqueProperties")
"""Parts of a model version that a database does not record among the options."""


def adopt_answers(
    project: Project, system: str, answers: Sequence[RecordedAnswer], source: str
) -> tuple[ImportedHistory, list[SkippedItem]]:
    """Return the history of these answers, and those that are not imported."""
    adopter = _Adopter(project, ImportedHistory(system))
    for answer in answers:
        adopter.add(answer)
    left = [
        SkippedItem(
            source, f"{reason} ({first}" + (f" and {more - 1:,} more)" if more > 1 else ")")
        )
        for reason, (first, more) in adopter.left.items()
    ]
    return adopter.history, left


class _Adopter:
    def __init__(self, project: Project, history: ImportedHistory) -> None:
        self.history = history
        self.left: dict[str, tuple[str, int]] = {}
        """Reason -> the first place, and how many."""
        self._project = project
        self._models: dict[tuple[str, str, Part], list[Model]] = {}
        """Models by provider, code and part."""
        for model in project.reading.models.values():
            for part in _PARTS:
                place = (model.provider.code, model.version(part).code, part)
                self._models.setdefault(place, []).append(model)
        self._judge_prompts: dict[tuple[str, tuple[str, ...]], str] = {}
        self._times: Counter[tuple[str, str, int]] = Counter()

    def add(self, answer: RecordedAnswer) -> None:
        """Add an answer and its verdicts, or the reason why not."""
        try:
            session = self._session(answer)
        except NotTakenError as problem:
            self._leave(str(problem), answer.place)
            return
        test = self._test(answer)
        for ruling in answer.rulings:
            try:
                self._evaluation(ruling, session, test)
            except NotTakenError as problem:
                self._leave(str(problem), f"a verdict on {answer.place}")

    def _leave(self, reason: str, place: str) -> None:
        first, count = self.left.get(reason, (place, 0))
        self.left[reason] = (first, count + 1)

    # --- the answer

    def _session(self, answer: RecordedAnswer) -> str:
        model = self._model(answer.by, "candidate")
        prompt = PromptVersion((Message("system", _text(answer.prompt)),))
        try:
            question = Question(
                self.history.keep("test", hashing.describe_test(self._test(answer))),
                self.history.keep("prompt", hashing.describe_prompt(prompt)),
                model,
                answer.temperature,
            )
            started = self._time("session", hashing.question_id(question), answer.started)
            return self.history.add_session(
                Session(question, (answer.reply,), started, self.history.system, origin=IMPORTED)
            )
        except UnicodeEncodeError:
            raise NotTakenError("a text holds half a surrogate pair") from None

    def _test(self, answer: RecordedAnswer) -> TestVersion:
        return TestVersion(
            messages=tuple([Message(role, (Text(text),)) for role, text in answer.messages]),
            special_tags=answer.special_tags,
            tools=tuple(
                [self.history.keep("tool", hashing.describe_tool(tool)) for tool in answer.tools]
            ),
            schema=None
            if answer.schema is None
            else self.history.keep("schema", hashing.describe_schema(answer.schema)),
        )

    def _time(self, kind: str, about: str, started: int) -> int:
        """Return a distinct time for each of several in the same second, in their order."""
        place = (kind, about, started)
        self._times[place] += 1
        return started + self._times[place] - 1

    # --- verdicts

    def _evaluation(self, ruling: RecordedVerdict, session: str, test: TestVersion) -> None:
        if "{{_file:" in ruling.instructions:
            raise NotTakenError("its instructions name a file, which the database does not keep")
        version = EvaluationVersion(_text(ruling.instructions), implied_checks(test))
        voice = model_that_judges(
            self._model(ruling.by, "evaluator"),
            self._judge_prompt(ruling),
            ruling.temperature,
        )
        evaluator = self.history.keep("evaluator", hashing.describe_evaluator(voice))
        evaluation = self.history.keep("evaluation", hashing.describe_evaluation(version))
        started = self._time(evaluator + evaluation, session, ruling.started)
        self.history.add_evaluation(
            Evaluation(
                (session,),
                evaluation,
                evaluator,
                ruling.verdict,
                started,
                self.history.system,
                feedback=ruling.feedback,
                reasoning=ruling.reasoning,
                usage=ruling.usage,
                latency=ruling.latency,
                origin=IMPORTED,
            )
        )

    def _judge_prompt(self, ruling: RecordedVerdict) -> str:
        """Return the version of a judge prompt, read as a file of the workspace would be."""
        place = (ruling.prompt, ruling.tags)
        if place not in self._judge_prompts:
            assert self._project.reading.library is not None
            front = json.dumps({"id": "judge", "tags": list(ruling.tags)})
            try:
                prompt = parse_prompt("judge.md", f"---\n{front}\n---\n\n{ruling.prompt}\n")
                (id,), expansion = expand_prompt(prompt, self._project.reading.library)
            except (FileProblem, ValueError):
                raise NotTakenError("its judge prompt cannot be read") from None
            self.history.contents |= expansion.contents
            self._judge_prompts[place] = id
        return self._judge_prompts[place]

    # --- models

    def _model(self, by: RecordedModel, part: Part) -> str:
        """Return the version of the model with this name, if it is called with the same options."""
        models = self._models.get((by.provider, by.code, part), [])
        if not models:
            raise NotTakenError(f"no model file has the code '{by.code}' at '{by.provider}'")
        alike = [model for model in models if by.current and _is_same(by, model, part)]
        if not alike:
            ids = "' and '".join(model.id for model in models)
            were = "models '{}' were" if len(models) > 1 else "model '{}' was"
            raise NotTakenError(f"the {were.format(ids)} called with other options then")
        alike = [model for model in alike if model.active] or alike
        version = alike[0].version(part)
        if any(model.version(part) != version for model in alike):
            ids = "' or '".join(model.id for model in alike)
            raise NotTakenError(f"the source does not name the model: '{ids}'")
        return self.history.keep("model", hashing.describe_model(version))


def _text(text: str) -> tuple[Text, ...]:
    return (Text(text.strip(SPACE)),)


def _is_same(by: RecordedModel, model: Model, part: Part) -> bool:
    """Return whether a model is called with the recorded options, as far as they are known."""
    extra = str(model.options.get("extraIdentifier") or "").strip()
    if by.extra_identifier is not None and by.extra_identifier != extra:
        return False
    if by.options is None:
        return True
    if not isinstance(by.options, Mapping):
        return False
    now = dict(model.version(part).options or {})
    for name in _NOT_RECORDED:
        now.pop(name, None)
    if isinstance(now.get("thinking"), str):
        now["thinking"] = {"effort": now["thinking"]}
    return bool(_without_empty(_effective(by.options, part)) == _without_empty(now))


def _effective(then: Mapping[str, Json], part: Part) -> dict[str, Json]:
    """Return the options of a part, from the formats of newer and of older databases."""
    overrides = then.get(f"{part}Overrides")
    options = {name: value for name, value in then.items() if name not in _OVERRIDES}
    for name, value in overrides.items() if isinstance(overrides, Mapping) else ():
        base = options.get(name)
        if isinstance(base, Mapping) and isinstance(value, Mapping):
            options[name] = {**base, **value}
        elif value is not None:
            options[name] = value
    return options


def _without_empty(value: Json) -> Json:
    """Return a value without empty parts."""
    if not isinstance(value, Mapping):
        return value
    members = {name: _without_empty(inner) for name, inner in value.items()}
    return {name: inner for name, inner in members.items() if inner not in (None, {})} or None

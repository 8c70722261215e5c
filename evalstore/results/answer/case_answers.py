"""Reads the answers of many results at once, as the pages of single answers show them.

The results of a batch need one query for each kind of content. No model is called.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from evalstore.core.runs import Run
from evalstore.core.values import Case, Evaluation, Json, Result
from evalstore.planning.cell_results import evaluator_names
from evalstore.planning.project import Project, VersionReader
from evalstore.providers.base import SCRIPTED
from evalstore.results.answer.answer import (
    MOST_FAILURES,
    Criteria,
    SessionFacts,
    TurnView,
    describe_criteria,
    describe_request,
    failure_text,
    read_conversation,
    session_facts,
)
from evalstore.results.answer.judgements import (
    Attempt,
    CellToJudge,
    Judgement,
    judgement_view,
    read_attempts,
)
from evalstore.results.log.failures import find_failures_in_run
from evalstore.results.names import prompt_text, reference_names
from evalstore.results.value_text import answer_text, references_of


@dataclass(frozen=True, slots=True)
class SessionView:
    """An answer of a candidate: all turns of one conversation."""

    id: str
    test: str
    """The id of the test version: the conversation that was held."""
    started: int
    """Microseconds since 1970, UTC."""
    answers: tuple[str, ...]
    """The text of each turn of the candidate."""
    facts: SessionFacts


@dataclass(frozen=True, slots=True)
class ResultView:
    """A result with its answers and the judgements that count."""

    result: Result
    case: Case
    sessions: tuple[SessionView, ...]
    judgements: tuple[Judgement, ...]
    failures: tuple[str, ...]
    """Why an answer or a judgement is missing, newest first."""
    attempts: tuple[Attempt, ...] = ()
    """The verdict on each attempt, if there are several."""


class AnswerReader:
    """Reads answers, judgements and what they were asked for, in batches."""

    def __init__(self, project: Project, run: Run) -> None:
        self._project, self.store, self.run = project, project.store, run
        self._versions = VersionReader(project.store, project.reading.contents)
        self._prices = project.prices_by_version()
        self._names: dict[str, tuple[str, bool]] = {}
        self._free: dict[str, bool] = {}
        """By model version: whether its answers cost nothing."""
        self._criteria: dict[str, Criteria] = {}
        """Those of the batch by evaluation version: many cases may have the same one."""

    def read(self, results: Sequence[tuple[Result, Case]]) -> Iterator[ResultView]:
        """Yield the results of a batch with their answers; what was read before is forgotten."""
        self._criteria = {}
        cases = {id(case): case for _, case in results}.values()
        self._versions.read_ahead(
            [
                *(("test", test) for case in cases for test in case.tests),
                *(("prompt", result.prompt) for result, _ in results),
                *(("evaluation", case.evaluation) for case in cases),
            ]
        )
        sessions = self.store.find_sessions(key for result, _ in results for key in result.sessions)
        judgements = self.store.find_evaluations(
            key for result, _ in results for key in result.evaluations
        )
        models = {each.question.model for each in sessions.values()} - self._free.keys()
        for key, content in self.store.load_contents("model", models).items():
            self._free[key] = content.get("provider") == SCRIPTED
        evaluators = {judgement.evaluator for judgement in judgements.values()}
        self._names |= evaluator_names(self.store, evaluators - self._names.keys())
        rule = self.run.verdict_rule
        several = [CellToJudge(result, case.judged_by, rule) for result, case in results]
        attempts = read_attempts(self.store, several)
        asked = ((result, case.temperature, case.seed) for result, case in results)
        failures = find_failures_in_run(self.store, self.run, asked)
        for result, case in results:
            yield ResultView(
                result,
                case,
                tuple(
                    SessionView(
                        key,
                        session.question.test,
                        session.started,
                        tuple(map(answer_text, session.turns)),
                        session_facts(
                            session,
                            is_scripted=self._free.get(session.question.model, False),
                            prices=self._prices,
                        ),
                    )
                    for key in result.sessions
                    if (session := sessions.get(key))
                ),
                tuple(
                    judgement_view(
                        key,
                        judgement,
                        *self._names.get(judgement.evaluator, ("", False)),
                        checks=self._checks_of(judgement),
                    )
                    for key in result.evaluations
                    if (judgement := judgements.get(key))
                ),
                tuple(dict.fromkeys(map(failure_text, failures.get(result.cell, ()))))[
                    :MOST_FAILURES
                ],
                attempts.get(result.evaluations, ()),
            )

    def _checks_of(self, judgement: Evaluation) -> Sequence[Json]:
        content = self._versions.find("evaluation", judgement.evaluation) or {}
        return content.get("checks", ()) if judgement.checks else ()

    def conversation(self, test: str, prompt: str | None) -> tuple[TurnView, ...]:
        """Return the turns of a conversation without the last one, which is the answer."""
        return tuple(read_conversation(self._versions, test, prompt, ()))

    def request(self, test: str) -> tuple[str, ...]:
        """Return the tools, the schema and the options of a request, one line each."""
        return describe_request(self._versions, test, {})

    def definitions(self, test: str) -> Iterator[tuple[str, str]]:
        """Yield the title and the JSON of each tool and the schema of a request."""
        content = self._versions.find("test", test) or {}
        for tool in self._versions.load("tool", content.get("tools", ())).values():
            shown = {name: tool[name] for name in ("description", "parameters") if name in tool}
            yield f"Tool {tool['name']}", json.dumps(shown, ensure_ascii=False, indent=2)
        if found := self._versions.find("schema", content.get("schema")):
            shown = found["schema"]
            yield "JSON schema of the answer", json.dumps(shown, ensure_ascii=False, indent=2)

    def criteria(self, evaluation: str | None) -> Criteria | None:
        """Return the instructions and checks of an evaluation version; None without one."""
        content = self._versions.find("evaluation", evaluation)
        if content is None or evaluation is None:
            return None
        if evaluation not in self._criteria:
            names = reference_names(self._project, references_of([content]))
            self._criteria[evaluation] = describe_criteria(content, names)
        return self._criteria[evaluation]

    def judge_prompts(self, case: Case) -> Iterator[tuple[str, str]]:
        """Yield the name and the text of each prompt of the case and its checks for judges."""
        evaluation = self._versions.find("evaluation", case.evaluation) or {}
        references = dict.fromkeys(
            [*(("prompt", id) for id in case.judge_prompts), *references_of([evaluation])]
        )
        names = reference_names(self._project, references)
        for kind, id in references:
            if kind == "prompt" and (content := self._versions.find(kind, id)):
                yield names.get(id, id[:8]), prompt_text(content)

    def answers(self, sessions: Collection[str]) -> dict[str, str]:
        """Return the last answers of these sessions by id."""
        stored = self.store.find_sessions(sessions)
        return {key: answer_text(session.answer) for key, session in stored.items()}

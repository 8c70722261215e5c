"""Reads answers with their facts and judgements: one of them, or those of many results.

Everything is read by id, many ids at once. No model is called.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from evalstore.core import deserialize, hashing
from evalstore.core.display import short
from evalstore.core.errors import EvalstoreError, StoreError
from evalstore.core.runs import Run
from evalstore.core.values import (
    RECORDED,
    URGENCY,
    Case,
    Failure,
    FileRef,
    Json,
    Reply,
    Result,
    Session,
)
from evalstore.files.processes.application import APPLICATIONS
from evalstore.planning.cell_results import evaluator_names, name_models
from evalstore.planning.first_pushes import FirstPush, first_push_of
from evalstore.planning.open_project import open_catalogue, open_project, open_store
from evalstore.planning.options import Location, SelectionOptions
from evalstore.planning.participants import sum_usage
from evalstore.planning.planner import resolve_scope
from evalstore.planning.project import Fresh, Project, VersionReader
from evalstore.providers.base import SCRIPTED
from evalstore.providers.price_table import Price
from evalstore.results.answer.judgements import (
    Attempt,
    CellToJudge,
    Judgement,
    check_name,
    judgement_view,
    read_attempts,
    read_judgements,
)
from evalstore.results.flips.verdict_changes import has_several_prompts
from evalstore.results.labels import with_later_labels
from evalstore.results.log.failures import (
    find_failures_in_run,
    hint_for,
    judged_subjects,
    questions_in_run,
)
from evalstore.results.names import name_prompts, name_references, prompt_text, reference_names
from evalstore.results.show.show import cells_with
from evalstore.results.value_text import (
    answer_text,
    check_meaning,
    check_yaml,
    joined,
    references_of,
    text_of,
)
from evalstore.store import Store
from evalstore.store.trees.tree_nodes import find_entry


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """The tokens, cost, time and options of a session."""

    started: int
    """Microseconds since 1970, UTC."""
    origin: str
    """`run`, `recorded`, or the format it was imported from."""
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    reasoning_tokens: int | None
    cost: float | None
    """The cost in USD; None if it is not known."""
    latency: float
    """The duration of all turns together, in seconds."""
    temperature: float | None
    seed: int | None
    finish_reason: str
    cut_at: int | None
    """The token limit that cut the answer off; None if it was not cut off."""
    resolved: tuple[str, ...]
    """The models that answered, as reported by the provider."""
    is_simulated: bool = False
    """Whether the model is scripted, so that nobody is paid."""
    is_priced_later: bool = False
    """Whether the cost is at today's price, as the price was not known."""


def session_facts(
    session: Session,
    *,
    is_scripted: bool = False,
    prices: Mapping[str, Price] = MappingProxyType({}),
) -> SessionFacts:
    """Return the tokens, cost, time and options of a session.

    Answers of a model that `is_scripted` cost nothing by default. `prices` are those of today by
    model version, for a session whose price was not known.
    """
    cost = session.cost.usd if session.cost else 0.0 if is_scripted else None
    price = prices.get(session.question.model) if cost is None else None
    later = price.cost_of(session.turns) if price and session.origin != RECORDED else None
    usage = sum_usage(session.turns)
    return SessionFacts(
        started=session.started,
        origin=session.origin,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cached_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        cost=cost if later is None else later,
        latency=sum(turn.latency for turn in session.turns),
        temperature=session.question.temperature,
        seed=session.question.seed,
        finish_reason=session.answer.finish_reason or "",
        cut_at=session.limit,
        resolved=tuple(
            dict.fromkeys(turn.resolved_model for turn in session.turns if turn.resolved_model)
        ),
        is_simulated=is_scripted,
        is_priced_later=later is not None,
    )


# --- the page of an answer


@dataclass(frozen=True, slots=True)
class TurnView:
    """One turn of a conversation."""

    role: str
    text: str
    name: str = ""
    """The name of the speaker; empty if there is none."""
    answer: int | None = None
    """The number of the candidate's answer, from 1; 0 if it is missing; None for a test's turn."""
    files: tuple[FileRef, ...] = ()
    """The files in the message, in their order."""

    @property
    def images(self) -> tuple[FileRef, ...]:
        """Return the images."""
        return tuple(file for file in self.files if file.media_type.startswith("image/"))

    @property
    def text_files(self) -> tuple[FileRef, ...]:
        """Return the files that are texts."""
        return tuple(file for file in self.files if _is_text(file.media_type))


class CheckText(NamedTuple):
    """A check of an evaluation version."""

    name: str
    """The name of the check, or its type; its results have the same name."""
    text: str
    """The check in YAML."""
    meaning: str
    """When it passes."""


@dataclass(frozen=True, slots=True)
class Criteria:
    """The instructions and checks of an evaluation version."""

    instructions: str
    checks: tuple[CheckText, ...]


@dataclass(frozen=True, slots=True)
class MemberAnswer:
    """One of several answers that are judged together."""

    session: str
    answer: str
    user_message: str = field(metadata={"json_name": "asked"})
    """The last message of the user; empty when it is not in the store."""


@dataclass(frozen=True, slots=True)
class AnswerView:
    """An answer with its conversation and judgements; without an answer, the question."""

    id: str | None
    """The id of the session; None if there is no answer."""
    file: str
    row: str
    conversation: tuple[TurnView, ...]
    answer: str
    """The text of the last answer; JSON is indented."""
    judgements: tuple[Judgement, ...]
    """The judgements: those that count first, people before models, then the newest first."""
    criteria: Mapping[str, Criteria]
    """The instructions and checks by id of the evaluation version, that of the case first."""
    together: tuple[MemberAnswer, ...]
    """All sessions that are judged together, this one included; empty if it is only one."""
    failures: tuple[str, ...]
    """Why an answer or a judgement is missing, newest first."""
    request_settings: tuple[str, ...]
    """The tools, schema and options of the request, one line each."""
    facts: SessionFacts | None
    ids: tuple[tuple[str, str], ...]
    """The ids of the session and its versions: pairs of kind and id."""
    model: str = ""
    """The name of the candidate."""
    cells: tuple[Result, ...] = ()
    """The results to which it belongs, the most urgent first."""
    prompt: str = ""
    """The name of the system prompt if one of the cases has several; else empty."""
    rows: Mapping[str, str] = field(default_factory=dict)
    """The row of each judgement that counts, by its id; empty if there is only one result."""
    push: FirstPush | None = None
    """Who pushed the answer; None if it was given to this machine."""


def session_of(location: Location, id: str, result: Result | None = None) -> AnswerView:
    """Read the answer of a session as part of the case of `result`, else as in the newest run.

    Raises `EvalstoreError` when the store does not have the session.
    """
    with open_store(location) as store:
        return read_answer(location, store, id, result)


def read_answer(
    location: Location, store: Store, id: str, result: Result | None = None
) -> AnswerView:
    """Read an answer as `session_of` does, from an open store.

    Without `result`, labels that came after the newest run count.
    """
    session = store.find_sessions([id]).get(id)
    if session is None:
        raise StoreError(f"the store has no answer {id}", hint="run 'evalstore fsck'")
    has_several = False
    if result is not None:
        cells = [result]
    else:
        found = cells_with(store, id)
        places = ((run, each.file) for each, run in found.items())
        has_several = any(has_several_prompts(store, *place) for place in places)
        now = with_later_labels(location, store, found)
        cells = [now.get(cell, cell) for cell in found]
        cells.sort(key=lambda cell: URGENCY.index(cell.word or "answered"))
    counted = list(dict.fromkeys(key for cell in cells for key in cell.evaluations))
    current = {cell.evaluation: None for cell in cells if cell.evaluation}
    subjects, judgements = read_judgements(store, id, counted, current.keys() if cells else None)
    question = session.question
    model = store.load_contents("model", [question.model]).get(question.model) or {}
    contents = VersionReader(store, fallback=partial(read_workspace, location))
    together = next((subject for subject in subjects if len(subject) > 1), ())
    is_scripted = model.get("provider") == SCRIPTED
    facts = session_facts(session, is_scripted=is_scripted)
    if facts.cost is None and facts.origin != RECORDED:
        with suppress(EvalstoreError), open_catalogue(location) as project:
            prices = project.prices_by_version()
            facts = session_facts(session, is_scripted=is_scripted, prices=prices)
    return AnswerView(
        id=id,
        file=cells[0].file if cells else "",
        row=cells[0].row if cells else "",
        conversation=tuple(
            read_conversation(contents, question.test, question.prompt, session.turns)
        ),
        answer=answer_text(session.answer),
        judgements=judgements,
        criteria=_read_criteria(
            location,
            contents,
            [  # those whose judgements count come first, in their order
                *(each.evaluation for each in judgements if each.evaluation in current),
                *sorted(current),
                *(each.evaluation for each in judgements),
            ],
        ),
        together=_together(store, together),
        failures=_failures_of(store, session, cells, judgements, subjects),
        request_settings=describe_request(contents, question.test, model),
        facts=facts,
        ids=tuple(
            (kind, key)
            for kind, key in (
                ("answer", id),
                ("question", hashing.question_id(question)),
                ("test", question.test),
                ("prompt", question.prompt),
                ("model", question.model),
                ("judging version", next(iter(current)) if len(current) == 1 else None),
            )
            if key
        ),
        model=cells[0].model if cells else name_models(store, [question.model])[question.model],
        cells=tuple(cells),
        prompt=name_prompts(location, [question.prompt])[question.prompt] if has_several else "",
        rows={key: cell.row for cell in reversed(cells) for key in cell.evaluations}
        if len(cells) > 1
        else {},
        push=first_push_of(location, "session", id),
    )


def question_of(location: Location, result: Result, run: str | None) -> AnswerView:
    """Return the question to a candidate that has not answered, with the failures of its calls."""
    with open_store(location) as store:
        if run is None:
            questions, fresh = _find_questions(location, result)
            contents = VersionReader(store, fresh)
        else:
            contents = VersionReader(store, fallback=partial(read_workspace, location))
            stored = store.load_run(run)
            node = find_entry([stored.snapshot], result.file, store.load_nodes)
            files = store.load_case_files(node.values()).values()
            cases = (it for file in files for it in file.cases if it.row == result.row)
            asked = (questions_in_run(stored, result, it.temperature, it.seed) for it in cases)
            questions = next(asked, ())
        return AnswerView(
            id=None,
            file=result.file,
            row=result.row,
            conversation=tuple(read_conversation(contents, result.test, result.prompt, ())),
            answer="",
            judgements=(),
            criteria=_read_criteria(
                location, contents, [result.evaluation] if result.evaluation else []
            ),
            together=(),
            failures=failure_texts(store, questions, ()),
            request_settings=describe_request(contents, result.test, {}),
            facts=None,
            ids=tuple(
                (kind, id)
                for kind, id in (("test", result.test), ("prompt", result.prompt))
                if id is not None
            ),
        )


def read_workspace(location: Location) -> Fresh:
    """Return the versions of the workspace, which may not be stored yet; empty if it has errors."""
    with suppress(EvalstoreError), open_project(location) as project:
        return project.reading.contents
    return {}


def describe_request(contents: VersionReader, test: str, model: Json) -> tuple[str, ...]:
    """Return the tools, schema, options and files of code of a request, one line each."""
    content = contents.find("test", test) or {}
    tools = contents.load("tool", content.get("tools", ()))
    lines = [f"tool {tool['name']}" for tool in tools.values()]
    lines += ["answers in a JSON schema"] if content.get("schema") else []
    lines += [
        f"{name} {json.dumps(value, ensure_ascii=False)}"
        for name, value in content.get("options", {}).items()
    ]
    options = dict(model.get("options") or {})
    if model.get("provider") in APPLICATIONS:
        files = options.pop("files", {})
        lines += [f"code {path} {short(digest)}" for path, digest in files.items()]
    if options and "answers" not in options:  # of recorded answers
        lines.append(f"model options {json.dumps(options, ensure_ascii=False)}")
    return tuple(lines)


def read_conversation(
    contents: VersionReader, test: str, prompt: str | None, turns: Sequence[Reply]
) -> Iterator[TurnView]:
    """Yield the turns of the conversation, with the candidate's answers in their places."""
    messages = joined(
        deserialize.restore_messages((contents.find("prompt", prompt) or {}).get("messages", ())),
        deserialize.restore_messages((contents.find("test", test) or {}).get("messages", ())),
    )
    files = [part.id for message in messages for part in message.parts if isinstance(part, FileRef)]
    sizes = {id: content["size"] for id, content in contents.load("file", files).items()}
    number = 0
    for message in messages:
        if not message.filled:
            text = text_of(message.parts, sizes)
            shown = tuple(part for part in message.parts if isinstance(part, FileRef))
            yield TurnView(message.role, text, message.name or "", files=shown)
        elif number < len(turns) - 1:
            number += 1
            yield TurnView("assistant", answer_text(turns[number - 1]), answer=number)
        else:
            yield TurnView("assistant", "", answer=0)
    if turns:
        yield TurnView("assistant", answer_text(turns[-1]), answer=len(turns))


def _read_criteria(
    location: Location, contents: VersionReader, ids: Iterable[str]
) -> dict[str, Criteria]:
    evaluations = list(dict.fromkeys(ids))
    loaded = contents.load("evaluation", evaluations)
    names = name_references(location, references_of(loaded.values()))
    return {id: describe_criteria(loaded[id], names) for id in evaluations if id in loaded}


def describe_criteria(evaluation: Json, names: Mapping[str | None, str]) -> Criteria:
    """Return the instructions and checks of an evaluation version; `names` are those of ids."""
    return Criteria(
        text_of(deserialize.restore_parts(evaluation.get("instructions", ()))),
        tuple(
            CheckText(check_name(check), check_yaml(check, names), check_meaning(check))
            for check in evaluation.get("checks", ())
        ),
    )


def _together(store: Store, sessions: Sequence[str]) -> tuple[MemberAnswer, ...]:
    stored = store.find_sessions(sessions)
    tests = {session.question.test for session in stored.values()}
    messages = read_last_messages(store.load_contents("test", tests))
    return tuple(
        MemberAnswer(id, answer_text(stored[id].answer), messages.get(stored[id].question.test, ""))
        if id in stored
        else MemberAnswer(id, "[not in the store]", "")
        for id in sessions
    )


def _find_questions(location: Location, result: Result) -> tuple[tuple[str, ...], Fresh]:
    """Return the current questions of a case, and the versions of the workspace.

    There are no questions if the workspace does not have the case now.
    """
    fresh: Fresh = {}
    with suppress(EvalstoreError), open_project(location) as project:
        fresh = project.reading.contents
        here = SelectionOptions(paths=(f"{result.file}::{result.row}",), models=(result.model,))
        for cell in resolve_scope(project, here).cells:
            if (cell.file, cell.case.row, cell.prompt) == (result.file, result.row, result.prompt):
                return tuple(dict.fromkeys(cell.questions)), fresh
    return (), fresh


# --- the images and the text files in the messages of a conversation


_TEXTS = ("json", "xml", "yaml", "toml", "csv", "javascript")
"""Ends of the media types of texts that do not begin with `text/`."""


def _is_text(media_type: str) -> bool:
    kind, _, name = media_type.partition("/")
    return kind == "text" or (kind == "application" and name.endswith(_TEXTS))


# --- reads why an answer or a judgement is missing: the messages of failed calls, with hints


MOST_FAILURES = 3
"""The most failed calls that are shown for one result."""


def failure_text(failure: Failure) -> str:
    """Return the message of a failed call with its hint."""
    file = f"the file of {failure.model}" if failure.model else None
    hint = hint_for(failure.kind, failure.status, failure.message, file)
    return failure.text + (f"\nhint: {hint}" if hint else "")


def failure_texts(
    store: Store, questions: Collection[str], subjects: Collection[str]
) -> tuple[str, ...]:
    """Return the messages of the newest failures, each once, with hints."""
    messages: dict[str, None] = {}
    for _, failure in store.find_failures_of(questions, subjects):
        messages.setdefault(failure_text(failure))
    return tuple(messages)[:MOST_FAILURES]


def _failures_of(
    store: Store,
    session: Session,
    cells: Iterable[Result],
    judgements: Iterable[Judgement],
    judged: Iterable[tuple[str, ...]],
) -> tuple[str, ...]:
    """Return why the results of a session are pending, as `failure_texts`; empty if none is.

    A judgement may be missing although another one counts: a judge may be called after checks, or
    several judges, and each attempt is judged.
    """
    missing = [cell for cell in cells if cell.is_missing]
    counts = any(not judgement.why_not for judgement in judgements)
    if counts and not missing:
        return ()
    subjects = {id for ids in judged_subjects(missing).values() for id in ids}
    if not counts:
        subjects |= {*map(hashing.subject_of, judged)}
    lacks_answers = any(len(cell.sessions) < cell.required_answers for cell in missing)
    questions = [hashing.question_id(session.question)] if lacks_answers else []
    return failure_texts(store, questions, subjects)


# --- reads the last messages of users, for lists of answers


def last_user_messages(location: Location, tests: Sequence[str]) -> dict[str, str]:
    """Return the last user message of each of these test versions that the store has, by id."""
    with open_store(location) as store:
        return read_last_messages(store.load_contents("test", tests))


def read_last_messages(contents: Mapping[str, Json]) -> dict[str, str]:
    """Return the last user message of each of these test versions, by id."""
    messages: dict[str, str] = {}
    for id, content in contents.items():
        for message in reversed(content.get("messages", ())):
            if message["role"] == "user" and not message.get("filled"):
                text = message.get("content", "")  # most are one text
                is_text = isinstance(text, str)
                messages[id] = text if is_text else text_of(deserialize.restore_parts(text))
                break
    return messages


@dataclass(frozen=True, slots=True)
class SessionView:
    """An answer of a candidate: all turns of one conversation."""

    id: str
    test: str
    """The id of the test version: the conversation that was held."""
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
                        checks=(self._versions.find("evaluation", judgement.evaluation) or {}).get(
                            "checks", ()
                        ),
                    )
                    for key in result.evaluations
                    if (judgement := judgements.get(key))
                ),
                tuple(dict.fromkeys(map(failure_text, failures.get(result.cell, ()))))[
                    :MOST_FAILURES
                ],
                attempts.get(result.evaluations, ()),
            )

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

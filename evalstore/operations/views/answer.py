"""The page of one answer: the conversation, the judgements on it, and its cost.

All of it is read in bulk by ids. No model is called.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from evalstore import deserialize, hashing
from evalstore.display import short
from evalstore.errors import EvalstoreError
from evalstore.operations.failure_hints import hint_for
from evalstore.operations.prompt_names import name_prompts
from evalstore.operations.rendering import answer_text, check_yaml, joined, text_of
from evalstore.operations.views.session_details import read_session_details
from evalstore.planning.open_project import open_project, open_store
from evalstore.planning.options import SelectionOptions
from evalstore.planning.version_reader import Fresh, VersionReader
from evalstore.values import FileRef, Json, Message, Part, Reply

if TYPE_CHECKING:
    from evalstore.operations.views.judgements import JudgementView
    from evalstore.planning.options import Location
    from evalstore.results import Result, Session
    from evalstore.store import Store

_FAILURES = 3


@dataclass(frozen=True, slots=True)
class TurnView:
    """One turn of a conversation."""

    role: str
    text: str
    name: str = ""
    """Who speaks."""
    answer: int | None = None
    """Which of the candidate's answers it is, from 1; None when the test says it."""
    images: tuple[str, ...] = ()
    """The ids of the images that it shows, in their order."""


class WrittenCheck(NamedTuple):
    """A check of an evaluation version."""

    name: str
    """Its name, or its type; its results are under the same name."""
    text: str
    """In YAML."""


@dataclass(frozen=True, slots=True)
class Criteria:
    """Instructions and checks."""

    instructions: str
    checks: tuple[WrittenCheck, ...]


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
    """USD"""
    latency: float
    """Seconds of all turns together."""
    temperature: float | None
    seed: int | None
    finish_reason: str
    cut_at: int | None
    """The token limit that cut the answer off."""
    resolved: tuple[str, ...]
    """The models that the provider says have answered."""


@dataclass(frozen=True, slots=True)
class AnswerPlace:
    """A case that an answer is a part of."""

    file: str
    row: str
    prompt: str
    """What its system prompt is called, when the case has several; else empty."""
    word: str
    """What it came to."""

    @property
    def is_judged(self) -> bool:
        """Whether there is something to judge the answer by."""
        return self.word != "answered"


@dataclass(frozen=True, slots=True)
class AnswerView:
    """An answer with all that belongs to it; without an answer, what is asked."""

    id: str | None
    """None: there is no answer."""
    file: str
    row: str
    said: tuple[TurnView, ...]
    answer: str
    """The last answer, with JSON laid out."""
    opinions: tuple[JudgementView, ...]
    """What the verdict is made of first, of these what people say; then the newest."""
    told: Mapping[str, Criteria]
    """By the id of the evaluation version, that of the case first."""
    together: tuple[tuple[str, str], ...]
    """All sessions that are judged together with this one: id and answer; or empty."""
    failures: tuple[str, ...]
    """Why an answer or a judgement is missing, newest first."""
    offered: tuple[str, ...]
    """What else the candidate is shown or held to: its tools, the schema, options."""
    facts: SessionFacts | None
    ids: tuple[tuple[str, str], ...]
    """Kinds and ids."""
    model: str = ""
    """What its provider calls the candidate."""
    places: tuple[AnswerPlace, ...] = ()
    """The cases that it is shown for, the most urgent first."""
    rows: Mapping[str, str] = field(default_factory=dict)
    """The row of each judgement that counts, when there are several places."""


def session_of(location: Location, id: str, result: Result | None = None) -> AnswerView:
    """An answer as the case has it whose result this is; without one, as the newest run has it.

    Raises `EvalstoreError` when the store does not have it.
    """
    with open_store(location) as store:
        return read_answer(location, store, id, result)


def read_answer(
    location: Location, store: Store, id: str, result: Result | None = None
) -> AnswerView:
    """The same from an open store."""
    judged = read_session_details(store, id, result)
    session, cells, judgements = judged.session, judged.cells, judged.judgements
    asked = session.question
    model = store.load_contents("model", [asked.model]).get(asked.model) or {}
    names = name_prompts(location, [asked.prompt]) if judged.has_several_prompts else {}
    contents = VersionReader(store, fallback=partial(_read_workspace, location))
    together = next((subject for subject in judged.subjects if len(subject) > 1), ())
    return AnswerView(
        id=id,
        file=cells[0].file if cells else "",
        row=cells[0].row if cells else "",
        said=tuple(_said(contents, asked.test, asked.prompt, session.turns)),
        answer=answer_text(session.answer),
        opinions=judgements,
        told=_told(contents, _in_order(judged.current, judgements)),
        together=_together(store, together),
        failures=()
        if any(not judgement.why_not for judgement in judgements)
        else _failures(store, (), {id, *map(hashing.subject_of, judged.subjects)}),
        offered=_offered(contents, asked.test, model),
        facts=_facts(session),
        ids=tuple(
            (kind, key)
            for kind, key in (
                ("session", id),
                ("question", hashing.question_id(asked)),
                ("test", asked.test),
                ("prompt", asked.prompt),
                ("model", asked.model),
                ("instructions", result.evaluation if result else None),
            )
            if key
        ),
        model=str(model.get("code") or short(asked.model)),
        places=tuple(
            AnswerPlace(cell.file, cell.row, names.get(asked.prompt, ""), cell.word or "answered")
            for cell in cells
        ),
        rows=judged.rows if len(cells) > 1 else {},
    )


def _in_order(current: Collection[str], judgements: Sequence[JudgementView]) -> Iterator[str]:
    """The evaluation versions: first those whose judgements count, in their order."""
    yield from (judgement.evaluation for judgement in judgements if judgement.evaluation in current)
    yield from sorted(current)
    yield from (judgement.evaluation for judgement in judgements)


def question_of(location: Location, result: Result, run: str | None) -> AnswerView:
    """What is asked of a candidate that has not answered, and why it has not."""
    with open_store(location) as store:
        if run is None:
            questions, fresh = _asked_now(location, result)
            contents = VersionReader(store, fresh)
        else:
            from evalstore.operations.views.failed_results import asked_in_run

            contents = VersionReader(store, fallback=partial(_read_workspace, location))
            asked = asked_in_run(store, store.load_run(run), [result])
            questions = next(iter(asked.values()), ())
        return AnswerView(
            id=None,
            file=result.file,
            row=result.row,
            said=tuple(_said(contents, result.test, result.prompt, ())),
            answer="",
            opinions=(),
            told=_told(contents, [result.evaluation] if result.evaluation else []),
            together=(),
            failures=_failures(store, questions, ()),
            offered=_offered(contents, result.test, {}),
            facts=None,
            ids=tuple(
                (kind, id)
                for kind, id in (("test", result.test), ("prompt", result.prompt))
                if id is not None
            ),
        )


def last_asked(location: Location, tests: Sequence[str]) -> dict[str, str]:
    """The last thing that a user says in each of these test versions, if the store has it."""
    with open_store(location) as store:
        contents = store.load_contents("test", tests)
    asked: dict[str, str] = {}
    for id, content in contents.items():
        for message in deserialize.restore_messages(content.get("messages", ())):
            if message.role == "user" and not message.filled:
                asked[id] = text_of(message.parts)
    return asked


def _read_workspace(location: Location) -> Fresh:
    """What the workspace is read as: no run may have stored it yet; nothing when it has errors."""
    with suppress(EvalstoreError), open_project(location) as project:
        return project.reading.contents
    return {}


def _said(
    contents: VersionReader, test: str, prompt: str | None, turns: Sequence[Reply]
) -> Iterator[TurnView]:
    """The conversation with the candidate's answers in their places."""
    messages = joined(
        deserialize.restore_messages((contents.find("prompt", prompt) or {}).get("messages", ())),
        deserialize.restore_messages((contents.find("test", test) or {}).get("messages", ())),
    )
    files = [part.id for message in messages for part in message.parts if _is_file(part)]
    sizes = {id: content["size"] for id, content in contents.load("file", files).items()}
    number = 0
    for message in messages:
        if not message.filled:
            text = text_of(message.parts, sizes)
            yield TurnView(message.role, text, message.name or "", images=_images(message))
        elif number < len(turns) - 1:
            number += 1
            yield TurnView("assistant", answer_text(turns[number - 1]), answer=number)
        else:
            yield TurnView("assistant", "", answer=0)
    if turns:
        yield TurnView("assistant", answer_text(turns[-1]), answer=len(turns))


def _is_file(part: Part) -> TypeGuard[FileRef]:
    return isinstance(part, FileRef)


def _images(message: Message) -> tuple[str, ...]:
    files = filter(_is_file, message.parts)
    return tuple(part.id for part in files if part.media_type.startswith("image/"))


def read_images(location: Location, ids: Sequence[str]) -> dict[str, bytes]:
    """Return the bytes of images by id; raises `EvalstoreError` when one is not stored."""
    with open_store(location) as store:
        return {id: file.data for id, file in store.load_files(ids).items()}


def _told(contents: VersionReader, ids: Iterable[str]) -> dict[str, Criteria]:
    evaluations = list(dict.fromkeys(ids))
    loaded = contents.load("evaluation", evaluations)
    return {
        id: Criteria(
            text_of(deserialize.restore_parts(loaded[id].get("instructions", ()))),
            tuple(
                WrittenCheck(str(check.get("name") or check.get("type") or ""), check_yaml(check))
                for check in loaded[id].get("checks", ())
            ),
        )
        for id in evaluations
        if id in loaded
    }


def _together(store: Store, sessions: Sequence[str]) -> tuple[tuple[str, str], ...]:
    stored = store.find_sessions(sessions)
    return tuple(
        (id, answer_text(stored[id].answer) if id in stored else "[not in the store]")
        for id in sessions
    )


def _failures(
    store: Store, questions: Collection[str], subjects: Collection[str]
) -> tuple[str, ...]:
    """The newest failures of these, in words; each message once."""
    messages: dict[str, None] = {}
    for _, failure in store.find_failures_of(questions, subjects):
        hint = hint_for(failure.kind, failure.status, failure.message)
        model = f"{failure.model}: " if failure.model else ""
        messages.setdefault(f"{model}{failure.message}" + (f"\nhint: {hint}" if hint else ""))
    return tuple(messages)[:_FAILURES]


def _asked_now(location: Location, result: Result) -> tuple[tuple[str, ...], Fresh]:
    """The questions of a case as the workspace has it, and what the workspace is read as.

    There are none when the case is gone.
    """
    from evalstore.planning.planner import lay_out

    fresh: Fresh = {}
    with suppress(EvalstoreError), open_project(location) as project:
        fresh = project.reading.contents
        here = SelectionOptions(paths=(f"{result.file}::{result.row}",), models=(result.model,))
        for cell in lay_out(project, here).cells:
            if (cell.file, cell.case.row, cell.prompt) == (result.file, result.row, result.prompt):
                return tuple(dict.fromkeys(cell.questions)), fresh
    return (), fresh


def _offered(contents: VersionReader, test: str, model: Json) -> tuple[str, ...]:
    """What the candidate is shown or held to beside the messages."""
    content = contents.find("test", test) or {}
    tools = contents.load("tool", content.get("tools", ()))
    lines = [f"tool {tool['name']}" for tool in tools.values()]
    lines += ["answers in a JSON schema"] if content.get("schema") else []
    lines += [
        f"{name} {json.dumps(value, ensure_ascii=False)}"
        for name, value in content.get("options", {}).items()
    ]
    if model.get("options") and "answers" not in model["options"]:  # of recorded answers
        lines.append(f"model options {json.dumps(model['options'], ensure_ascii=False)}")
    return tuple(lines)


def _facts(session: Session) -> SessionFacts:
    usages = [turn.usage for turn in session.turns]

    def total(name: str) -> int | None:
        counted = [getattr(usage, name) for usage in usages if getattr(usage, name) is not None]
        return sum(counted) if counted else None

    return SessionFacts(
        started=session.started,
        origin=session.origin,
        input_tokens=total("input_tokens"),
        output_tokens=total("output_tokens"),
        cached_tokens=total("cached_tokens"),
        reasoning_tokens=total("reasoning_tokens"),
        cost=session.cost.usd if session.cost else None,
        latency=sum(turn.latency for turn in session.turns),
        temperature=session.question.temperature,
        seed=session.question.seed,
        finish_reason=session.answer.finish_reason or "",
        cut_at=session.limit,
        resolved=tuple(
            dict.fromkeys(turn.resolved_model for turn in session.turns if turn.resolved_model)
        ),
    )

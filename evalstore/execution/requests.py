"""Questions and judgements to requests: what is stored, put together as a model is shown it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from evalstore import deserialize
from evalstore.checks.answer_binding import HeldConversation, describe_answers
from evalstore.errors import FileProblem, LimitProblem, NotRunError
from evalstore.files.jinja_environment import show
from evalstore.files.jinja_sandbox import evaluate
from evalstore.judging.transcript import (
    Outgoing,
    _remark,
    fence,
    fill_turns,
    show_answer,
    show_json,
    show_messages,
    show_system,
)
from evalstore.results import Session
from evalstore.values import (
    RUNTIME_NAMES,
    AnswerRef,
    FilePart,
    FileVersion,
    Json,
    Message,
    OutgoingMessage,
    Part,
    PromptVersion,
    Question,
    Reply,
    Request,
    Role,
    SampleRef,
    TestVersion,
    Text,
    ToolVersion,
    is_text,
)
from evalstore.workspace.testfiles.messages import SAMPLE

if TYPE_CHECKING:
    from evalstore.store import Store

_RUNTIME = re.compile(r"\{\{(" + "|".join(RUNTIME_NAMES) + r")\}\}")
_SHARED_KINDS = frozenset({"prompt", "tool", "schema"})
"""Kinds of content that many questions use: they stay in memory."""
_MOST_AHEAD = 2_000
_JUDGED_AHEAD = 100
"""Judgements for which is read what they are about, when it is read for one of them."""
_MOST_SESSIONS = 200
"""Sessions in memory besides those that were read last."""

Judged = tuple[Sequence[str], str | None]
"""What a judgement is about: ids of its sessions, and of its evaluation version."""


class RequestBuilder:
    """Reads what requests are made of from the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._shared: dict[str, Json] = {}
        self._ahead: dict[str, Json] = {}
        self._sessions: dict[str, Session] = {}

    def keep(self, contents: Mapping[str, Json]) -> None:
        """Keep contents, by id, that will be wanted soon; only the last thousands are kept."""
        self._ahead |= contents
        _drop_oldest(self._ahead, _MOST_AHEAD + len(contents))

    def lacking(self, ids: Iterable[str]) -> list[str]:
        """Those of some versions that are not in memory, as far as they are kept when read."""
        return list(islice((id for id in ids if id not in self._ahead), _MOST_AHEAD))

    def content(self, kind: str, id: str) -> Json:
        """The content of a version."""
        if id in self._shared:
            return self._shared[id]
        if id in self._ahead:
            return self._ahead[id]
        content = self._store.load_any(kind, id).content
        if kind in _SHARED_KINDS:
            self._shared[id] = content
        return content

    def has(self, ids: Iterable[str], evaluation: str | None) -> bool:
        """Whether what a judgement is about is in memory: its sessions and its evaluation."""
        told = evaluation is None or evaluation in self._ahead
        return told and all(id in self._sessions for id in ids)

    def read_ahead(self, judged: Iterable[Judged]) -> None:
        """Read together what the first of these judgements are about, as far as it is stored."""
        sessions: dict[str, None] = {}
        told: dict[str, None] = {}
        for ids, evaluation in islice(judged, _JUDGED_AHEAD):
            sessions |= dict.fromkeys(id for id in ids if id not in self._sessions)
            if evaluation is not None and evaluation not in self._ahead:
                told[evaluation] = None
            if len(sessions) >= _MOST_SESSIONS:
                break
        if sessions:
            self._sessions |= self._store.find_sessions(sessions)
            _drop_oldest(self._sessions, _MOST_SESSIONS + len(sessions))
        if told:
            self.keep(self._store.load_contents("evaluation", told))

    def sessions(self, ids: Sequence[str]) -> tuple[Session, ...]:
        """Stored sessions; raises `StoreError` when one is missing."""
        missing = [id for id in ids if id not in self._sessions]
        loaded = self._store.load_sessions(missing) if missing else {}
        return tuple([self._sessions.get(id) or loaded[id] for id in ids])

    def test(self, id: str) -> TestVersion:
        """A test version."""
        return deserialize.restore_test(self.content("test", id))

    def prompt(self, id: str) -> PromptVersion:
        """A prompt version."""
        content = self.content("prompt", id)
        return PromptVersion(
            deserialize.restore_messages(content["messages"]), tuple(content.get("specialTags", ()))
        )

    def tool(self, id: str) -> ToolVersion:
        """A tool version."""
        content = self.content("tool", id)
        return ToolVersion(
            content["name"], content.get("description", ""), content.get("parameters", {})
        )

    def file(self, id: str) -> FileVersion:
        """A referenced file."""
        return self._store.load_files([id])[id]

    def schema(self, id: str) -> Json:
        """A schema version."""
        return self.content("schema", id).get("schema", {})

    def outgoing(
        self,
        parts: tuple[Part, ...],
        show: Callable[[AnswerRef | SampleRef], Outgoing] = lambda _answers: [],
    ) -> Outgoing:
        """Parts with their files, text files as text, all others as bytes; and with answers."""
        result: Outgoing = []
        for part in parts:
            if isinstance(part, Text):
                result.append(part)
                continue
            if isinstance(part, AnswerRef | SampleRef):
                result += show(part)
                continue
            file = self.file(part.id)
            if is_text(file.media_type):
                result.append(Text(file.data.decode("utf-8-sig")))
            else:
                result.append(FilePart(part.path, file.media_type, file.data))
        return result

    def _message(self, message: Message) -> OutgoingMessage:
        parts = tuple(self.outgoing(message.parts))
        return OutgoingMessage(message.role, parts, message.filled, message.name)

    def ask(
        self, question: Question, code: str, limit: int | None, options: Mapping[str, Json]
    ) -> tuple[Request, TestVersion]:
        """The request for the last answer to a question, and the test version it puts.

        Turns that the candidate fills are still empty in it: `next_request` knows them.
        """
        test = self.test(question.test)
        request = Request(
            code=code,
            messages=tuple(self._conversation(test, question.prompt)),
            tools=tuple(self.tool(id) for id in test.tools),
            schema=self.schema(test.schema) if test.schema else None,
            json_mode="_json_mode" in test.special_tags,
            temperature=question.temperature,
            max_output_tokens=limit,
            top_p=test.options.top_p,
            seed=question.seed,
            stop=test.options.stop,
            provider_options={**options, **(test.options.provider_options or {})},
        )
        return request, test

    def _conversation(self, test: TestVersion, prompt: str | None) -> list[OutgoingMessage]:
        """What the candidate is shown.

        The test's own system text follows the system prompt in the same message.
        """
        messages = [self._message(message) for message in test.messages]
        if prompt:
            system = [
                part
                for message in self.prompt(prompt).messages
                for part in self.outgoing(message.parts)
            ]
            if messages and messages[0].role == "system":
                system += [Text("\n\n"), *messages.pop(0).parts]
            messages.insert(0, OutgoingMessage("system", tuple(system)))
        return messages

    def judge(
        self,
        prompt: str,
        evaluation: str,
        held: Sequence[tuple[Question, Sequence[Reply]]],
        nonce: str,
        *,
        usd: float | None = None,
    ) -> tuple[OutgoingMessage, ...]:
        """The messages of an evaluator prompt with its runtime names filled in.

        Whatever does not come from the author of the prompt or of the instructions is data
        between marks with the nonce. What the question says is read only for a prompt that
        shows it. `usd` is what the last conversation cost.
        """
        content = self.content("evaluation", evaluation)
        question, answers = held[0]

        def asked(show: Callable[[TestVersion], Outgoing]) -> Callable[[], Outgoing]:
            return lambda: show(self.test(question.test))

        def conversation(test: TestVersion, prompt: str | None) -> list[OutgoingMessage]:
            return fill_turns(self._conversation(test, prompt), answers)

        def mentioned(part: AnswerRef | SampleRef) -> Outgoing:
            """What the instructions name of the answers, in its place."""
            if isinstance(part, SampleRef):
                seen = HeldConversation(tuple(held[-1][1]), usd)
                return [Text(show_sample(part.expression, seen, nonce))]
            texts = [
                fence(show_answer(held[session][1][turn], nonce), nonce)
                for session, turn in part.places
            ]
            return [Text("\n\n".join(texts))]

        def answered() -> Outgoing:
            """Conversations in which the candidate has had several turns are shown whole."""
            shown: Outgoing = []
            for number, (question, answers) in enumerate(held, start=1):
                if len(held) > 1:
                    gap = "\n\n" if shown else ""
                    shown.append(Text(f"{gap}[{nonce}: answer {number} of {len(held)}]\n"))
                if len(answers) == 1 and len(held) == 1:
                    shown.append(Text(fence(show_answer(answers[0], nonce), nonce)))
                    continue
                told = self._conversation(self.test(question.test), None)
                last = OutgoingMessage("assistant", (Text(show_answer(answers[-1], nonce)),))
                shown += show_messages([*fill_turns(told, answers), last], nonce)
            return shown

        values: dict[str, Callable[[], Outgoing]] = {
            "_evaluationInstructions": lambda: self.outgoing(
                deserialize.restore_parts(content.get("instructions", ())), mentioned
            ),
            "_actualResponse": answered,
            "_messages": asked(lambda test: show_messages(conversation(test, None), nonce)),
            "_systemPrompt": asked(
                lambda test: show_system(conversation(test, question.prompt), nonce)
            ),
            "_schema": asked(
                lambda test: show_json(
                    "schema", self.schema(test.schema) if test.schema else None, nonce
                )
            ),
            "_tools": asked(
                lambda test: show_json(
                    "tools", [asdict(self.tool(id)) for id in test.tools] or None, nonce
                )
            ),
        }
        return tuple(
            OutgoingMessage(message.role, tuple(self._fill(message, values)))
            for message in self.prompt(prompt).messages
        )

    def _fill(self, message: Message, values: Mapping[str, Callable[[], Outgoing]]) -> Outgoing:
        result: Outgoing = []
        for part in message.parts:
            if not isinstance(part, Text):
                result += self.outgoing((part,))  # a file is data: no name in it is filled
                continue
            for number, piece in enumerate(_RUNTIME.split(part.text)):
                if number % 2:
                    result += values[piece]()
                elif piece:
                    result.append(Text(piece))
        return only_user_files(message.role, result)


def _drop_oldest(kept: dict[str, Any], most: int) -> None:
    """Drop what was kept first, until there are at most so many."""
    for id in list(islice(kept, max(len(kept) - most, 0))):
        del kept[id]


def next_request(request: Request, answers: Sequence[Reply]) -> tuple[Request, bool]:
    """The request for the next turn of a conversation, and whether that is the last one.

    A form of the answer is asked for in the last turn only.
    """
    messages = fill_turns(request.messages, answers)
    open_turns = [number for number, message in enumerate(messages) if message.filled]
    if not open_turns:
        return replace(request, messages=tuple(messages)), True
    shown = tuple(messages[: open_turns[0]])
    return replace(request, messages=shown, schema=None, json_mode=False), False


def only_user_files(role: Role, parts: Outgoing) -> Outgoing:
    """Files outside of user messages are named instead of shown: no provider takes them there."""
    if role == "user":
        return parts
    return [
        Text(f"[file {part.path}, {part.media_type}]") if isinstance(part, FilePart) else part
        for part in parts
    ]


def show_sample(expression: str, held: HeldConversation, nonce: str) -> str:
    """The value of an expression over `sample`: texts as data between marks, numbers as they are.

    What it mentions may be missing, such as the JSON of an answer that is not JSON. Raises
    `NotRunError` for what reaches a limit, or cannot be computed here and now: a judge that is
    told otherwise would judge something else.
    """
    scope = {SAMPLE: describe_answers([held])[SAMPLE]}
    try:
        value = evaluate(expression, 1, scope)
        text = str(show(value))
    except LimitProblem as problem:
        raise NotRunError(f"'{expression}' has no value: {problem.message}") from problem
    except (FileProblem, ValueError, RecursionError):  # such as NaN, which is not JSON
        return _remark(f"The answer has no value for '{expression}'", nonce)
    return text if value is None or isinstance(value, bool | int | float) else fence(text, nonce)

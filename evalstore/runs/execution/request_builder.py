"""Builds the requests to a candidate, and the messages to a judge from an evaluator prompt.

Text that is not by the author of the prompt or the instructions is data, between marks with a
nonce.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace

from evalstore.checks.check_verdict import HeldConversation, describe_answers
from evalstore.checks.transcript import (
    Outgoing,
    _remark,
    fence,
    fill_turns,
    show_answer,
    show_json,
    show_messages,
    show_system,
)
from evalstore.core import deserialize
from evalstore.core.errors import FileProblem, LimitProblem, NotRunError
from evalstore.core.results import Session
from evalstore.core.values import (
    RUNTIME_NAMES,
    AnswerRef,
    FilePart,
    Json,
    Message,
    OutgoingMessage,
    Part,
    Question,
    Reply,
    Request,
    Role,
    SampleRef,
    TestVersion,
    Text,
    is_text,
)
from evalstore.files.jinja_sandbox import evaluate_expression, finalize
from evalstore.runs.execution.content_cache import ContentCache
from evalstore.workspace.testfiles.template_filling import SAMPLE


def build_request(
    contents: ContentCache,
    question: Question,
    code: str,
    limit: int | None,
    options: Mapping[str, Json],
) -> Request:
    """Return the request for the last answer to a question.

    `code` is the model's, `limit` the maximum tokens of an answer. Model-generated turns are still
    empty: `next_request` fills them.
    """
    test = contents.test(question.test)
    return Request(
        code=code,
        messages=tuple(build_conversation(contents, test, question.prompt)),
        tools=tuple(contents.tool(id) for id in test.tools),
        schema=contents.schema(test.schema) if test.schema else None,
        json_mode="_json_mode" in test.special_tags,
        temperature=question.temperature,
        max_output_tokens=limit,
        top_p=test.options.top_p,
        seed=question.seed,
        stop=test.options.stop,
        provider_options={**options, **(test.options.provider_options or {})},
    )


def build_conversation(
    contents: ContentCache, test: TestVersion, prompt: str | None
) -> list[OutgoingMessage]:
    """Return the messages to the candidate; `prompt` is the id of the system prompt.

    The test's own system text follows the system prompt in the same message.
    """
    messages = [
        OutgoingMessage(each.role, tuple(build_parts(contents, each.parts)), each.filled, each.name)
        for each in test.messages
    ]
    if prompt:
        system = [
            part
            for message in contents.prompt(prompt).messages
            for part in build_parts(contents, message.parts)
        ]
        if messages and messages[0].role == "system":
            system += [Text("\n\n"), *messages.pop(0).parts]
        messages.insert(0, OutgoingMessage("system", tuple(system)))
    return messages


def build_parts(
    contents: ContentCache,
    parts: tuple[Part, ...],
    show_answers: Callable[[AnswerRef | SampleRef], Outgoing] = lambda _reference: [],
) -> Outgoing:
    """Return parts with their files: text files as text, all others as bytes.

    References to answers are replaced with the result of `show_answers`.
    """
    result: Outgoing = []
    for part in parts:
        if isinstance(part, Text):
            result.append(part)
            continue
        if isinstance(part, AnswerRef | SampleRef):
            result += show_answers(part)
            continue
        file = contents.file(part.id)
        if is_text(file.media_type):
            result.append(Text(file.data.decode("utf-8-sig")))
        else:
            result.append(FilePart(part.path, file.media_type, file.data))
    return result


def next_request(request: Request, answers: Sequence[Reply]) -> tuple[Request, bool]:
    """Return the request for the next turn of a conversation, and whether it is the last one.

    A format of the answer is requested only in the last turn.
    """
    messages = fill_turns(request.messages, answers)
    open_turns = [number for number, message in enumerate(messages) if message.filled]
    if not open_turns:
        return replace(request, messages=tuple(messages)), True
    shown = tuple(messages[: open_turns[0]])
    return replace(request, messages=shown, schema=None, json_mode=False), False


_RUNTIME_NAME = re.compile(r"\{\{(" + "|".join(RUNTIME_NAMES) + r")\}\}")


class JudgePrompt:
    """The values of an evaluator prompt's runtime names for one judgement.

    The names of the question have the values of the first conversation. Its test version is read
    only if the prompt shows it.
    """

    def __init__(
        self,
        contents: ContentCache,
        told: Json,
        sessions: Sequence[Session],
        nonce: str,
    ) -> None:
        """`told` is what judges are told of an evaluation version (`told_to_judges`)."""
        self._contents = contents
        self._told = told
        self._sessions = sessions
        self._nonce = nonce

    def messages(self, prompt: str) -> tuple[OutgoingMessage, ...]:
        """Return the filled messages of the evaluator prompt with this id; raises `NotRunError`."""
        return tuple(
            OutgoingMessage(message.role, tuple(self._fill(message)))
            for message in self._contents.prompt(prompt).messages
        )

    def _fill(self, message: Message) -> Outgoing:
        result: Outgoing = []
        for part in message.parts:
            if not isinstance(part, Text):
                # Names in a file are not replaced, because a file is data.
                result += build_parts(self._contents, (part,))
                continue
            for number, piece in enumerate(_RUNTIME_NAME.split(part.text)):
                if number % 2:
                    result += _VALUES[piece](self)
                elif piece:
                    result.append(Text(piece))
        return name_files(message.role, result)

    def _instructions(self) -> Outgoing:
        parts = deserialize.restore_parts(self._told.get("instructions", ()))
        return build_parts(self._contents, parts, self._show_reference)

    def _show_reference(self, reference: AnswerRef | SampleRef) -> Outgoing:
        """Return the parts of answers to which the instructions refer."""
        if isinstance(reference, SampleRef):
            last = self._sessions[-1]
            held = HeldConversation(last.turns, last.cost.usd if last.cost else None)
            return [Text(show_sample(reference.expression, held, self._nonce))]
        answers = [
            self._fenced(self._sessions[conversation].turns[turn])
            for conversation, turn in reference.places
        ]
        return [Text("\n\n".join(answers))]

    def _answers(self) -> Outgoing:
        """Return the answers; conversations with several turns of the candidate are shown whole."""
        if len(self._sessions) == 1 and len(self._sessions[0].turns) == 1:
            return [Text(self._fenced(self._sessions[0].turns[0]))]
        shown: Outgoing = []
        for number, session in enumerate(self._sessions, start=1):
            if len(self._sessions) > 1:
                gap = "\n\n" if shown else ""
                count = len(self._sessions)
                shown.append(Text(f"{gap}[{self._nonce}: answer {number} of {count}]\n"))
            last = show_answer(session.turns[-1], self._nonce)
            messages = self._turns(session, prompt=None)
            answer = OutgoingMessage("assistant", (Text(last),))
            shown += show_messages([*messages, answer], self._nonce)
        return shown

    def _messages(self) -> Outgoing:
        return show_messages(self._turns(self._sessions[0], prompt=None), self._nonce)

    def _system_prompt(self) -> Outgoing:
        first = self._sessions[0]
        return show_system(self._turns(first, prompt=first.question.prompt), self._nonce)

    def _schema(self) -> Outgoing:
        id = self._contents.test(self._sessions[0].question.test).schema
        return show_json("schema", self._contents.schema(id) if id else None, self._nonce)

    def _tools(self) -> Outgoing:
        ids = self._contents.test(self._sessions[0].question.test).tools
        tools = [asdict(self._contents.tool(id)) for id in ids]
        return show_json("tools", tools or None, self._nonce)

    def _turns(self, session: Session, *, prompt: str | None) -> list[OutgoingMessage]:
        """Return a conversation up to the last answer; `prompt` is the id of its system prompt."""
        test = self._contents.test(session.question.test)
        return fill_turns(build_conversation(self._contents, test, prompt), session.turns)

    def _fenced(self, reply: Reply) -> str:
        return fence(show_answer(reply, self._nonce), self._nonce)


_VALUES: Mapping[str, Callable[[JudgePrompt], Outgoing]] = {
    "_evaluationInstructions": JudgePrompt._instructions,
    "_actualResponse": JudgePrompt._answers,
    "_messages": JudgePrompt._messages,
    "_systemPrompt": JudgePrompt._system_prompt,
    "_schema": JudgePrompt._schema,
    "_tools": JudgePrompt._tools,
}
"""Runtime name -> the function that returns its value."""


def name_files(role: Role, parts: Outgoing) -> Outgoing:
    """Replace files outside user messages with their names; no provider accepts them there."""
    if role == "user":
        return parts
    return [
        Text(f"[file {part.path}, {part.media_type}]") if isinstance(part, FilePart) else part
        for part in parts
    ]


def show_sample(expression: str, conversation: HeldConversation, nonce: str) -> str:
    """Return the value of an expression over `sample`; texts are data between marks.

    Values that it uses may be missing, such as the JSON of an answer that is not JSON. Raises
    `NotRunError` when a limit is reached or the value cannot be computed in this environment,
    because a judge must not be shown anything else.
    """
    scope = {SAMPLE: describe_answers([conversation])[SAMPLE]}
    try:
        value = evaluate_expression(expression, 1, scope)
        text = str(finalize(value))
    except LimitProblem as problem:
        raise NotRunError(f"'{expression}' has no value: {problem.message}") from problem
    except (FileProblem, ValueError, RecursionError):  # such as NaN, which is not JSON
        return _remark(f"The answer has no value for '{expression}'", nonce)
    return text if value is None or isinstance(value, bool | int | float) else fence(text, nonce)

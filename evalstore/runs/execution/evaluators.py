"""Makes the evaluations of sessions, by the checks of an evaluation version or by a model.

A judge is shown text that is not by the author of the prompt or the instructions between marks with
a nonce: it is data.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace

from evalstore.checks.check_verdict import (
    HeldConversation,
    RunCode,
    describe_answers,
    is_cheap_check,
    judge_by_checks,
    run_check,
    schemas_of,
)
from evalstore.checks.judge_replies import (
    JudgeReply,
    Mode,
    ReplyForm,
    ReplyModes,
    Unreadable,
    Verdicts,
    ask_again,
    form_of,
    in_mode,
    tell,
)
from evalstore.checks.transcript import (
    Outgoing,
    fence,
    fill_turns,
    remark,
    show_answer,
    show_json,
    show_messages,
    show_system,
)
from evalstore.checks.types.judge import without_judge
from evalstore.checks.types.python import MEMORY, SECONDS, code_of
from evalstore.core import deserialize
from evalstore.core.display import as_text
from evalstore.core.errors import FileProblem, LimitProblem, NotRunError
from evalstore.core.values import (
    RUNTIME_NAMES,
    AnswerRef,
    Evaluation,
    FilePart,
    Json,
    Message,
    OutgoingMessage,
    Reply,
    Request,
    Role,
    SampleRef,
    Session,
    Text,
)
from evalstore.files.jinja_sandbox import evaluate_expression, finalize
from evalstore.files.processes.pool import Code, Workers
from evalstore.planning.cell_results import told_to_judges
from evalstore.planning.cells import Judge
from evalstore.planning.participants import sum_usage
from evalstore.planning.plan import CHECKS
from evalstore.providers.base import SCRIPTED
from evalstore.runs.execution.candidates import ContentCache, build_conversation, build_parts
from evalstore.runs.execution.limits.accounting import Accounting
from evalstore.runs.execution.model_calls import CallFailed, Endpoint, ModelCaller, RunEnvironment
from evalstore.workspace.model_files import provider_options
from evalstore.workspace.testfiles.template_filling import SAMPLE
from evalstore.workspace.trust import digest

Allows = Callable[[str, bool], bool]
"""Whether a file of this SHA-256 may run, with the network or without."""
_SINGLE_TURN: Json = {"turns": ["response"]}


class CodeChecks:
    """Runs the Python checks of one execution."""

    def __init__(self, contents: ContentCache, allows: Allows) -> None:
        self._contents = contents
        self._allows = allows
        self._workers = Workers()
        self._sources: dict[str, bytes] = {}

    def close(self) -> None:
        """End all processes."""
        self._workers.close()

    def prepare(self, checks: Sequence[Json]) -> RunCode | None:
        """Return a function that runs the Python checks among these; None if there are none.

        Their files are read here, so that the function may be called from another thread.
        """
        files = code_of(checks)
        for file in files:
            if file.id not in self._sources:
                self._sources[file.id] = self._contents.file(file.id).data
        return self._run if files else None

    def show(self, session: Session) -> tuple[Json, ...]:
        """Return the conversation as texts; the turns of the candidate are marked."""
        shown: list[Json] = []
        answers = iter([turn.text or "" for turn in session.turns])
        for message in self._contents.test(session.question.test).messages:
            if message.filled:
                shown.append({"role": message.role, "content": next(answers), "filled": True})
            else:
                shown.append({"role": message.role, "content": self._text_of(message)})
        shown += [{"role": "assistant", "content": text, "filled": True} for text in answers]
        return tuple(shown)

    def _text_of(self, message: Message) -> str:
        parts = build_parts(self._contents, message.parts)
        return "".join(
            part.text if isinstance(part, Text) else f"[file {part.path}]" for part in parts
        )

    def _run(
        self, check: Mapping[str, Json], actual: Json, sessions: Sequence[HeldConversation]
    ) -> Json:
        path, network = check["file"]["path"], bool(check.get("network"))
        source = self._sources[check["file"]["id"]]
        if not self._allows(digest(source), network):
            raise NotRunError(f"{path} is not trusted on this machine, so its checks wait")
        request = {
            "name": check.get("function") or check["class"],
            "isClass": "class" in check,
            "args": check.get("args", {}),
            "given": describe_arguments(check, actual, sessions),
        }
        code = Code(source, path, check.get("memory", MEMORY), network)
        return self._workers.call(code, request, check.get("timeout", SECONDS))


def describe_arguments(
    check: Mapping[str, Json], actual: Json, sessions: Sequence[HeldConversation]
) -> Json:
    """Return the arguments of a check function for sessions that are judged together."""
    named = list(check.get("conversations", [_SINGLE_TURN]))
    named += [_SINGLE_TURN] * (len(sessions) - len(named))
    runs = [
        list(_name_turns(session.shown, names.get("turns", ())))
        for session, names in zip(sessions, named, strict=False)
    ]
    answers: dict[str, list[str]] = {}
    for session, names in zip(sessions, named, strict=False):
        texts = [reply.text or "" for reply in session.replies]
        for name, text in zip(names.get("turns", ()), texts, strict=False):
            if name is not None:
                answers.setdefault(name, []).append(text)
        if "run" in names:
            answers.setdefault(names["run"], []).append(texts[-1])
    is_single = len(sessions) == 1
    return {
        **describe_answers(sessions),
        "answer": actual,
        "item": check.get("item", {}),
        "turns": {name: texts[-1] if is_single else texts for name, texts in answers.items()},
        "messages": runs[-1],
        "runs": runs,
    }


def _name_turns(shown: Sequence[Json], names: Sequence[str | None]) -> Iterator[Json]:
    """Yield the messages of a conversation; the candidate's turns have their names."""
    remaining = iter(names)
    for message in shown:
        turn = {"role": message["role"], "content": message["content"]}
        name = next(remaining, None) if message.get("filled") else None
        yield turn if name is None else {**turn, "name": name}


_CODE_LENGTH = 8
"""Digits of the code that a judge must copy and that an answer cannot guess."""


class EvaluatorCaller:
    """Makes the evaluations of one execution; `endpoints` are by evaluator id.

    `newest` is when the newest stored evaluation of a session started. Because the oldest ones
    count, a new one is never older, even if the clock was set back.
    """

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        contents: ContentCache,
        calls: ModelCaller,
        accounting: Accounting,
        environment: RunEnvironment,
        limit: int | None,
        python_checks: CodeChecks,
    ) -> None:
        """`limit` is the token limit of a judgement; `python_checks` runs Python checks."""
        self._python_checks = python_checks
        self._endpoints = endpoints
        self._contents = contents
        self._judge_caller = JudgeCaller(calls.ask)
        self._accounting = accounting
        self._environment = environment
        self._limit = limit

    async def judge_by_model(
        self,
        judge: Judge,
        ids: tuple[str, ...],
        sessions: Sequence[Session],
        evaluation: str,
        newest: int,
    ) -> Evaluation:
        """Return a model's judgement on sessions judged together; raises `CallFailed`."""
        started = max(self._environment.now(), newest + 1)
        endpoint = self._endpoints[judge.evaluator]
        told = told_to_judges(self._contents.content("evaluation", evaluation))
        form = self._form_of(judge, told)
        prompt = JudgePrompt(self._contents, told, sessions, self._environment.nonce())
        request = Request(
            code=endpoint.version.code,
            messages=prompt.messages(judge.prompt),
            temperature=endpoint.temperature,
            max_output_tokens=self._limit,
            provider_options=provider_options(endpoint.version),
        )
        replies: list[Reply] = []
        # It differs from the nonce of the marks around the answers.
        code = self._environment.nonce()[-_CODE_LENGTH:]
        try:
            judge_reply = await self._judge_caller.ask(endpoint, request, replies, code, form)
        finally:
            cost = self._accounting.add_judge_cost(endpoint, replies)
        return Evaluation(
            sessions=ids,
            evaluation=evaluation,
            evaluator=judge.evaluator,
            verdict=judge_reply.verdict,
            started=started,
            nonce=self._environment.nonce(),
            score=judge_reply.score,
            label=judge_reply.label,
            feedback=judge_reply.feedback,
            reasoning=judge_reply.reasoning,
            usage=sum_usage(replies),
            cost=cost,
            latency=sum(reply.latency for reply in replies),
        )

    def _form_of(self, judge: Judge, told: Mapping[str, Json]) -> ReplyForm:
        """Return the form of the replies of a judge that is told this."""
        prompt = self._contents.prompt(judge.prompt)
        shown = [part for turn in prompt.messages for part in turn.parts]
        instructions = deserialize.restore_parts(told.get("instructions", ()))
        return form_of(told.get("checks", ()), shown, instructions)

    def are_slow(self, evaluation: str, sessions: Sequence[Session]) -> bool:
        """Return whether the checks of an evaluation version may be slow on these sessions."""
        checks = self._contents.content("evaluation", evaluation).get("checks", ())
        turns = [turn for session in sessions for turn in session.turns]
        size = sum([len(turn.text or "") for turn in turns])
        size += sum([len(as_text(call.arguments)) for turn in turns for call in turn.tool_calls])
        return not all(self._is_quick(check, size) for check in checks)

    def _is_quick(self, check: Mapping[str, Json], size: int) -> bool:
        if "templates" in check:
            return False
        inner = check.get("checks")
        if inner is not None:
            return all(self._is_quick(check, size) for check in inner)
        schema = check.get("schema")
        schemas = {schema: self._contents.schema(schema)} if isinstance(schema, str) else {}
        return is_cheap_check(check, size, schemas)

    async def judge_by_checks(
        self,
        ids: tuple[str, ...],
        sessions: Sequence[Session],
        evaluation: str,
        newest: int,
        *,
        is_slow: bool,
    ) -> Evaluation:
        """Return the judgement of an evaluation version's checks on sessions judged together.

        Slow ones are made outside the event loop. Raises `NotRunError` when they cannot be run in
        this environment.
        """
        content = self._contents.content("evaluation", evaluation)
        checks = without_judge(content.get("checks", ()))
        run_code = self._python_checks.prepare(checks)
        conversations = [
            HeldConversation(
                session.turns,
                session.cost.usd if session.cost else None,
                self._python_checks.show(session) if run_code else (),
            )
            for session in sessions
        ]
        schemas = {id: self._contents.schema(id) for id in schemas_of(checks)}
        inputs = (checks, conversations, schemas, run_code)
        if is_slow:
            checked = await asyncio.to_thread(judge_by_checks, *inputs)
        else:
            checked = judge_by_checks(*inputs, run_check)
        return Evaluation(
            sessions=ids,
            evaluation=evaluation,
            evaluator=CHECKS,
            verdict=checked.verdict,
            started=max(self._environment.now(), newest + 1),
            nonce=self._environment.nonce(),
            score=checked.score,
            feedback=checked.feedback,
            checks=checked.results,
        )


# --- asks judges for their replies, in a format that the server supports, at most twice


_UnreadableReply = tuple[Reply, str]
"""A reply that could not be read, with the reason."""


class JudgeCaller:
    """Asks the judges of one execution."""

    def __init__(self, ask: Callable[[Endpoint, Request], Awaitable[Reply]]) -> None:
        """`ask` makes a call with its retries; it raises `CallFailed`."""
        self._ask = ask
        self._modes = ReplyModes()

    async def ask(
        self,
        endpoint: Endpoint,
        request: Request,
        replies: list[Reply],
        code: str,
        form: ReplyForm | None = None,
    ) -> JudgeReply:
        """Return the verdict of a judge, and add its replies to `replies`; raises `CallFailed`.

        A judge whose server does not enforce the schema of a reply must repeat `code`, which no
        answer can contain. If the reply cannot be read, the judge is asked once more, with the
        reason. After another unreadable reply the verdict is `undecided`, or that of the form, but
        never a pass.
        """
        form = form or Verdicts()
        previous: _UnreadableReply | None = None
        for _ in range(2):
            mode, reply = await self._reply(endpoint, request, code, form, previous)
            replies.append(reply)
            required = _required_code(code, mode, endpoint)
            try:
                if not isinstance(form, Verdicts):
                    # The pattern or the path that finds a score may take a moment.
                    return await asyncio.to_thread(form.read, reply, required)
                return form.read(reply, required)
            except Unreadable as unreadable:
                verdict = form.give_up(reply, unreadable.reason)
                previous = reply, unreadable.reason
                if not unreadable.is_structured and not _is_scripted(endpoint):
                    self._modes.distrust(_model(endpoint, form), mode)
        return verdict

    async def _reply(
        self,
        endpoint: Endpoint,
        request: Request,
        code: str,
        form: ReplyForm,
        previous: _UnreadableReply | None,
    ) -> tuple[Mode, Reply]:
        model = _model(endpoint, form)
        structured = endpoint.structured or _is_scripted(endpoint)
        while True:
            mode = self._modes.mode(model, structured=structured, strictest=form.strictest)
            try:
                required = _required_code(code, mode, endpoint)
                # The last message explains the format.
                attempt = replace(request, messages=tell(request.messages, form.words(required)))
                if previous is not None:
                    attempt = ask_again(attempt, *previous, form.again(required))
                return mode, await self._ask(endpoint, in_mode(attempt, mode, form.schema))
            except CallFailed as failed:
                if not self._modes.step_down(model, mode, failed.error):
                    raise


def _model(endpoint: Endpoint, form: ReplyForm) -> tuple[str, str, Mode]:
    """Return the key of the supported formats of a model."""
    return endpoint.model.id, endpoint.version.code, form.strictest


def _is_scripted(endpoint: Endpoint) -> bool:
    """Return whether a script gives the whole reply, so that no format can be refused."""
    return endpoint.version.provider == SCRIPTED


def _required_code(code: str, mode: Mode, endpoint: Endpoint) -> str | None:
    """Return the code that a reply must repeat; None if it is held to a schema, or is a script."""
    return None if mode == "schema" or _is_scripted(endpoint) else code


# --- what a judge is shown


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
        return remark(f"The answer has no value for '{expression}'", nonce)
    return text if value is None or isinstance(value, bool | int | float) else fence(text, nonce)

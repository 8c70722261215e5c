"""Holds the conversation with a candidate, and turns a question into a session."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice

from evalstore.checks.judge_replies import Mode, ReplyModes
from evalstore.checks.transcript import Outgoing, fill_turns
from evalstore.core import batches, deserialize
from evalstore.core.values import (
    RECORDED,
    AnswerRef,
    Cost,
    FilePart,
    FileVersion,
    Json,
    OutgoingMessage,
    Part,
    PromptVersion,
    Question,
    Reply,
    Request,
    SampleRef,
    Session,
    TestVersion,
    Text,
    ToolVersion,
    is_text,
)
from evalstore.planning.cells import Subject, limit_of
from evalstore.planning.plan import PlannedAsk
from evalstore.runs.execution.limits.accounting import Accounting
from evalstore.runs.execution.model_calls import CallFailed, Endpoint, ModelCaller, RunEnvironment
from evalstore.store import Store
from evalstore.workspace.model_files import provider_options


class CandidateCaller:
    """Holds the conversations of one execution; `endpoints` are by display id of the candidate."""

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        contents: ContentCache,
        calls: ModelCaller,
        accounting: Accounting,
        environment: RunEnvironment,
    ) -> None:
        self._endpoints = endpoints
        self._contents = contents
        self._calls = calls
        self._accounting = accounting
        self._environment = environment
        self._modes = ReplyModes()

    async def ask(self, ask: PlannedAsk, newest: int) -> Session:
        """Hold the conversation of a question and return its session; raises `CallFailed`.

        `newest` is when the newest stored session of the question started.
        """
        cell, question = ask.cell, ask.question
        endpoint = self._endpoints[cell.candidate.id]
        limit = limit_of(cell)
        options = provider_options(endpoint.version)
        request = build_request(self._contents, question, endpoint.version.code, limit, options)
        # The oldest sessions count, so a new one is never older, even if the clock was set back.
        started = max(self._environment.now(), newest + 1)
        replies: list[Reply] = []
        costs: list[Cost | None] = []
        is_last = False
        while not is_last:
            turn, is_last = next_request(request, replies)
            reply = await self._reply(endpoint, turn)
            costs.append(self._accounting.add_cost(endpoint, reply))
            if reply.text is not None:
                keeps = (endpoint.version.options or {}).get("keepThoughts")
                text = reply.text if keeps else without_thoughts(reply.text)
                reply = replace(reply, text=text.strip())
            replies.append(reply)
        return Session(
            question=question,
            turns=tuple(replies),
            started=started,
            nonce=self._environment.nonce(),
            cost=_sum_costs(costs),
            limit=limit if any(reply.is_cut for reply in replies) else None,
        )

    async def _reply(self, endpoint: Endpoint, turn: Request) -> Reply:
        """Return the reply to a turn, without the form that its server refuses to hold it to."""
        strictest: Mode = "schema" if turn.schema is not None else "json"
        if strictest == "json" and not turn.json_mode:
            return await self._calls.ask(endpoint, turn)
        model = (*endpoint.key, strictest)
        while True:
            mode = self._modes.mode(model, structured=endpoint.structured, strictest=strictest)
            attempt = turn
            if mode != strictest:
                attempt = replace(turn, schema=None, json_mode=mode == "json")
            try:
                return await self._calls.ask(endpoint, attempt)
            except CallFailed as failed:
                if not self._modes.step_down(model, mode, failed.error):
                    raise

    def take_recorded(self, question: Question, newest: int) -> Session:
        """Return the session of answers that a test file contains, without calling a model."""
        answers = self._contents.content("model", question.model)["options"]["answers"]
        return Session(
            question=question,
            turns=tuple(Reply(answer) for answer in answers),
            started=max(self._environment.now(), newest + 1),
            nonce=self._environment.nonce(),
            origin=RECORDED,
        )


def _sum_costs(costs: list[Cost | None]) -> Cost | None:
    """Return the sum of the costs of all turns; None if one of them is not known."""
    known = [cost for cost in costs if cost is not None]
    if len(known) < len(costs):
        return None
    if len(known) == 1:
        return known[0]
    return Cost(round(sum(cost.usd for cost in known), 10), known[0].price)


# --- builds the requests


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


# --- takes the thoughts of a model off the text of its answer


_NAMES = "(?:think|thinking|thoughts?|seed:think)"
_OPEN = re.compile(
    rf"<{_NAMES}>|\[THINK\]|◁think▷|<\|START_THINKING\|>"
    r"|(?:<\|start\|>assistant)?<\|channel\|>analysis<\|message\|>"
)
_CLOSE = re.compile(rf"</{_NAMES}>|\[/THINK\]|◁/think▷|<\|END_THINKING\|>")
_CHANNEL_END = re.compile(r"<\|end\|>|(?=(?:<\|start\|>assistant)?<\|channel\|>final<)")
_FINAL = re.compile(
    r"\s*(?:<\|start\|>assistant)?<\|channel\|>final<\|message\|>(.*?)(?:<\|(?:return|end)\|>)?\s*",
    re.DOTALL,
)
"""The answer in the format of gpt-oss."""
_WITHOUT_MARKS = re.compile(r"\s*analysis\w.*?assistantfinal(?=\S)", re.DOTALL)
"""The thoughts in that format when a server drops its marks."""
_MOST_BLOCKS = 100
_QUOTES = frozenset("`'\"“”‘’„«»()*")
_CODE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)
_LINE_END = re.compile(r"[ \t]*\r?\n\s*\S")
_LOOKED_AT = 200
"""Characters before a mark that say whether it is in the middle of a sentence."""
_SENTENCE_ENDS = (".", "!", "?", "…", ")", "]", "}", '"', "'")


def without_thoughts(text: str) -> str:
    """Return an answer without the thoughts it begins with; empty if they are all there is.

    A mark that is quoted, in code or in the middle of a sentence stays.
    """
    answer = text
    text = _WITHOUT_MARKS.sub("", text, count=1) if _WITHOUT_MARKS.match(text) else text
    unopened = 1  # the template may have written the first mark, and thoughts may be nested
    for _ in range(_MOST_BLOCKS):
        shown = text.lstrip()
        opened = _OPEN.match(shown)
        text = shown if opened or text is not answer else text
        if opened:
            end, start = _end_of(opened[0]), opened.end()
            ends = chain(_find(end, text, start), _find(end, text, start, in_code=True))
            closed = _find_end(end, text, start) or next(ends, None)
            if closed is None:
                return ""
            unopened = sum(1 for _ in _find(_OPEN, text[start : closed.start()]))
        else:
            closed = _find_end(_CLOSE, text) if unopened else None
            if closed is None or any(_find(_OPEN, text[: closed.start()])):
                break
            unopened -= 1
        text = text[closed.end() :]
    final = _FINAL.fullmatch(text)
    if final:
        return final[1]
    return text if text is answer else text.lstrip()  # the blanks of an answer are its own


def _end_of(opened: str) -> re.Pattern[str]:
    """Return the mark that ends the thoughts which this one begins."""
    if opened.endswith("<|message|>"):
        return _CHANNEL_END
    is_start = "START" in opened
    end = opened.replace("START", "END") if is_start else f"{opened[0]}/{opened[1:]}"
    return re.compile(re.escape(end))


def _find(
    mark: re.Pattern[str], text: str, start: int = 0, *, in_code: bool = False
) -> Iterator[re.Match[str]]:
    """Yield the marks that are not quoted, nor, unless they may be, in a block of code."""
    fences = [] if in_code else [fence.start() for fence in _CODE.finditer(text, start)]
    for each in mark.finditer(text, start):
        around = text[max(each.start() - 1, 0) : each.start()], text[each.end() : each.end() + 1]
        is_quoted = all(char in _QUOTES and char for char in around)
        before = bisect(fences, each.start())
        if not is_quoted and (before % 2 == 0 or before == len(fences)):
            yield each


def _find_end(mark: re.Pattern[str], text: str, start: int = 0) -> re.Match[str] | None:
    """Return the first mark that is not in the middle of a sentence."""
    for each in _find(mark, text, start):
        before = text[max(start, each.start() - _LOOKED_AT) : each.start()]
        line = before.rpartition("\n")[2]
        words = line.rstrip()
        is_word = words and words != line and not words.endswith(_SENTENCE_ENDS)
        if not is_word or _LINE_END.match(text, each.end()):
            return each
    return None


# --- caches stored contents: the most recent ones, and the versions that many questions use


_SHARED_KINDS = frozenset({"prompt", "tool", "schema"})
"""Kinds of content that many questions use: they stay in memory."""


class ContentCache:
    """Reads contents from the store, and keeps a limited number of them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._shared: dict[str, Json] = {}
        self._contents: dict[str, Json] = {}

    def add(self, contents: Mapping[str, Json]) -> None:
        """Keep contents, by id, that will be needed soon; only the last thousands are kept."""
        most = batches.SIZE + len(contents)
        self._contents |= contents
        for id in list(islice(self._contents, max(len(self._contents) - most, 0))):
            del self._contents[id]

    def load_uncached(
        self, subjects: Iterable[Subject], evaluations: Iterable[str | None]
    ) -> tuple[dict[str, Session], dict[str, Json]]:
        """Return the sessions of subjects and the contents of evaluation versions, by id.

        Nothing in memory is read or changed, so that it may be called from another thread.
        Raises `StoreError` when a session is missing.
        """
        ids = {id for subject in subjects for id in subject}
        versions = [id for id in evaluations if id is not None]
        return self._store.load_sessions(ids), self._store.load_contents("evaluation", versions)

    def content(self, kind: str, id: str) -> Json:
        """Return the content of a version; raises `StoreError` when it is missing."""
        if id in self._shared:
            return self._shared[id]
        if id in self._contents:
            return self._contents[id]
        content = self._store.load_any(kind, id).content
        (self._shared if kind in _SHARED_KINDS else self._contents)[id] = content
        return content

    def test(self, id: str) -> TestVersion:
        """Return a test version."""
        return deserialize.restore_test(self.content("test", id))

    def prompt(self, id: str) -> PromptVersion:
        """Return a prompt version."""
        content = self.content("prompt", id)
        return PromptVersion(
            deserialize.restore_messages(content["messages"]), tuple(content.get("specialTags", ()))
        )

    def tool(self, id: str) -> ToolVersion:
        """Return a tool version."""
        content = self.content("tool", id)
        return ToolVersion(
            content["name"], content.get("description", ""), content.get("parameters", {})
        )

    def schema(self, id: str) -> Json:
        """Return a schema version."""
        return self.content("schema", id).get("schema", {})

    def file(self, id: str) -> FileVersion:
        """Return a referenced file, which is not kept in memory."""
        return self._store.load_files([id])[id]

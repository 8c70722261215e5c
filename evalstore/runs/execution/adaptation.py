"""Asks a model in another way when it refuses how it was asked, and remembers that for the run.

What the test, the prompt and the options say stays the same, and so do all ids. No model is known
here by its name: the first refusal of each is what tells.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping
from dataclasses import replace
from typing import Literal

from evalstore.core.values import Json, OutgoingMessage, Reply, Request, Text
from evalstore.providers.base import OLLAMA, ProviderError
from evalstore.runs.execution.limits.retry_policy import ModelKey

Change = Literal["limit", "system"]
Ask = Callable[[Request], "Awaitable[Reply]"]

_LIMIT = re.compile(r"max_?(completion_?)?tokens", re.IGNORECASE)
_OF_VALUE = re.compile(
    r"too (large|high|big|small|low|many)|at (most|least)|maximum|minimum|exceed|greater|less than"
    r"|between|range",
    re.IGNORECASE,
)
"""Words about the value of a limit; another name does not help."""
_SYSTEM = re.compile(
    r"\bsystem\W{0,3}(role|messages?|prompts?|instructions?)\b|\broles?\b.{0,60}\bsystem\b"
    r"|developer (instruction|message|role)|roles must alternate",
    re.IGNORECASE | re.DOTALL,
)
_NOT_TAKEN = re.compile(
    r"not (be )?(supported|support|allowed|accepted|accept|enabled|permitted|one of|implemented)"
    r"|n't (support|allow|accept)|unsupported|must alternate|only (support|accept|allow)",
    re.IGNORECASE,
)
_WRONG = re.compile(r"invalid|unexpected|unknown|unrecogni[sz]ed|must be", re.IGNORECASE)
"""Words of a refusal which a server that has failed says of itself as well."""
_ONLY_NATIVE = frozenset(
    {
        *("keep_alive", "min_p", "mirostat", "mirostat_eta", "mirostat_tau", "num_batch"),
        *("num_ctx", "num_gpu", "num_keep", "num_predict", "num_thread", "options"),
        *("repeat_last_n", "repeat_penalty", "tfs_z", "top_k", "typical_p"),
    }
)
"""Options that Ollama ignores in requests of OpenAI's form, which it answers without a word."""


class Adaptations:
    """What the models of a run refuse."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        """`warn` is told once what is sent in another way."""
        self._warn = warn
        self._helped: set[tuple[ModelKey, Change]] = set()
        """What a model has answered after a refusal."""
        self._ignored: set[str] = set()

    async def ask(self, model: ModelKey, provider: str, request: Request, ask: Ask) -> Reply:
        """Return the reply of a model of this kind of provider; raises `ProviderError`.

        A refusal of the name of the limit or of the system role is answered by the same request
        in the other way. It counts as one call: a refused request costs nothing.
        """
        words = _describe_ignored(model[0], provider, request.provider_options)
        if words and words not in self._ignored:
            self._ignored.add(words)
            self._warn(words)
        refusals: dict[Change, ProviderError] = {}
        while True:
            sent = self._adapt(model, provider, request, refusals)
            try:
                reply = await ask(sent)
            except ProviderError as error:
                if _names_limit(error) and "limit" in refusals:
                    raise refusals["limit"] from None  # refused by both names
                if (change := _refused(sent, error)) is None:
                    raise
                refusals[change] = error
            else:
                self._learn(model, refusals)
                return reply

    def _adapt(
        self, model: ModelKey, provider: str, request: Request, changes: Container[Change]
    ) -> Request:
        limit = request.max_output_tokens
        if limit is not None and ("limit" in changes or (model, "limit") in self._helped):
            is_new = provider == "openai"  # its client has sent the new name
            name = "max_tokens" if is_new else "max_completion_tokens"
            options = {name: limit, **request.provider_options}
            request = replace(request, max_output_tokens=None, provider_options=options)
        if "system" in changes or (model, "system") in self._helped:
            request = replace(request, messages=without_system(request.messages))
        return request

    def _learn(self, model: ModelKey, changes: Iterable[Change]) -> None:
        """Send all further requests in the way that was answered."""
        for change in changes:
            if change == "system" and (model, change) not in self._helped:
                words = "its system prompt is sent at the beginning of the user's message"
                self._warn(f"model '{model[0]}' does not accept a system message: {words}")
            self._helped.add((model, change))


def _refused(sent: Request, error: ProviderError) -> Change | None:
    """Return what to send in another way after an error; None if nothing would help."""
    if sent.max_output_tokens is not None and _names_limit(error):
        return "limit"
    if _refuses_system(error) and without_system(sent.messages) != sent.messages:
        return "system"
    return None


def _is_refusal(error: ProviderError, statuses: Container[int | None]) -> bool:
    return error.kind == "unsupported" or (error.kind == "status" and error.status in statuses)


def _names_limit(error: ProviderError) -> bool:
    words = error.message
    named = _LIMIT.search(words) is not None and _OF_VALUE.search(words) is None
    return named and _is_refusal(error, (400, 422))


def _refuses_system(error: ProviderError) -> bool:
    if not _SYSTEM.search(error.message):
        return False
    if _NOT_TAKEN.search(error.message):
        return _is_refusal(error, (400, 422, 500, 501))  # some fail to fill their template
    return _WRONG.search(error.message) is not None and _is_refusal(error, (400, 422))


def without_system(messages: tuple[OutgoingMessage, ...]) -> tuple[OutgoingMessage, ...]:
    """Return a conversation whose system message is the beginning of the first user message.

    It stays as it is where that would change who says what: with a later system message.
    """
    roles = [message.role for message in messages]
    if roles[:1] != ["system"] or "system" in roles[1:]:
        return messages
    system, *rest = messages
    if not rest or rest[0].role != "user" or rest[0].filled:
        return (replace(system, role="user"), *rest)
    parts = (*system.parts, Text("\n\n"), *rest[0].parts)
    return (replace(rest[0], parts=parts), *rest[1:])


def _describe_ignored(model: str, provider: str, options: Mapping[str, Json]) -> str:
    """Return a warning about provider options that an Ollama server ignores; else nothing."""
    names = [name for name in _ONLY_NATIVE & options.keys() if options[name] is not None]
    if provider not in OLLAMA or not names:
        return ""
    listed = ", ".join(f"'{name}'" for name in sorted(names))
    return (
        f"Ollama ignores {listed} of model '{model}', as its API of OpenAI's form has no such "
        "options: put PARAMETER lines into a Modelfile, or set OLLAMA_CONTEXT_LENGTH for 'num_ctx'"
    )

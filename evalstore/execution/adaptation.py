"""Asks a model in another way when it refuses how it was asked, and remembers that for the run.

What the test, the prompt and the options say stays the same, and so do all ids. No model is known
here by its name: the first refusal of each is what tells.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from evalstore.providers.base import ProviderError
from evalstore.providers.kinds import OLLAMA
from evalstore.values import OutgoingMessage, Reply, Request, Text

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from evalstore.execution.retry_policy import ModelKey

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
        self._active: set[tuple[ModelKey, Change]] = set()
        self._tried: set[tuple[ModelKey, Change]] = set()
        self._ignored: set[str] = set()

    async def ask(self, model: ModelKey, provider: str, request: Request, ask: Ask) -> Reply:
        """Return the reply of a model of this kind of provider; raises `ProviderError`.

        A refusal of the name of the limit or of the system role is answered by the same request
        in the other way. It counts as one call: a refused request costs nothing.
        """
        if ignored := ignored_options(provider, request.provider_options):
            words = describe_ignored(model[0], ignored)
            if words not in self._ignored:
                self._ignored.add(words)
                self._warn(words)
        first: ProviderError | None = None
        while True:
            sent = self._adapt(model, provider, request)
            try:
                return await ask(sent)
            except ProviderError as error:
                if first is not None and _names_limit(first) and _names_limit(error):
                    self._active.discard((model, "limit"))  # refused by both names
                    raise first from None
                if not self._learn(model, sent, error):
                    raise
                first = error

    def _adapt(self, model: ModelKey, provider: str, request: Request) -> Request:
        limit = request.max_output_tokens
        if (model, "limit") in self._active and limit is not None:
            is_new = provider == "openai"  # its client has sent the new name
            name = "max_tokens" if is_new else "max_completion_tokens"
            options = {name: limit, **request.provider_options}
            request = replace(request, max_output_tokens=None, provider_options=options)
        if (model, "system") in self._active:
            request = replace(request, messages=without_system(request.messages))
        return request

    def _learn(self, model: ModelKey, sent: Request, error: ProviderError) -> bool:
        """Return whether to send the request again, in another way, after this error."""
        change: Change
        if sent.max_output_tokens is not None and _names_limit(error):
            change = "limit"
        elif _refuses_system(error) and without_system(sent.messages) != sent.messages:
            change = "system"
        else:
            return False
        learnt = model, change
        if learnt in self._tried:
            return learnt in self._active  # another call has learnt it in the meantime
        self._tried.add(learnt)
        self._active.add(learnt)
        if change == "system":
            words = "its system prompt is sent at the beginning of the user's message"
            self._warn(f"model '{model[0]}' refuses the role of the system: {words}")
        return True


def _is_refusal(error: ProviderError, statuses: Container[int | None]) -> bool:
    return error.kind == "unsupported" or (error.kind == "status" and error.status in statuses)


def _names_limit(error: ProviderError) -> bool:
    words = error.message
    named = _LIMIT.search(words) is not None and _OF_VALUE.search(words) is None
    return named and _is_refusal(error, (400, 422))


def _refuses_system(error: ProviderError) -> bool:
    refused = _is_refusal(error, (400, 422, 500, 501))  # some fail to fill their template
    return refused and _SYSTEM.search(error.message) is not None


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


def ignored_options(provider: str, options: object) -> list[str]:
    """Return the provider options that an Ollama server ignores; empty for other providers."""
    if provider not in OLLAMA or not isinstance(options, dict):
        return []
    return sorted(name for name in _ONLY_NATIVE & options.keys() if options[name] is not None)


def describe_ignored(model: str, names: list[str]) -> str:
    """Return the warning about options that do not reach Ollama."""
    listed = ", ".join(f"'{name}'" for name in names)
    return (
        f"Ollama ignores {listed} of model '{model}', as its API of OpenAI's form has no such "
        "options: put PARAMETER lines into a Modelfile, or set OLLAMA_CONTEXT_LENGTH for 'num_ctx'"
    )

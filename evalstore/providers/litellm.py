"""Calls all other providers through litellm.

litellm takes seconds to import, so it is imported at the first call, and in a thread, because
other providers may be waiting for answers. No other module imports it.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import re
import time
from collections.abc import Callable, Collection, Mapping
from contextvars import ContextVar
from functools import cache, wraps
from socket import gaierror
from typing import Any

from evalstore.core.values import Json, Reply, Request
from evalstore.providers.base import ProviderError
from evalstore.providers.chat_completions import (
    Body,
    decode_reply,
    dump,
    encode_request,
    is_filtered,
    malformed,
    refused_prompt,
    unsupported,
)
from evalstore.providers.credentials import secret_values
from evalstore.providers.deadline import deadline
from evalstore.providers.errors import (
    add_chunk,
    clean,
    describe_error,
    find_error,
    find_key_of,
    find_secrets,
    find_wait,
    parse_body,
    refuses_form,
    status_error,
    unreachable,
    unreadable,
)

SETTINGS = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else the import fetches a price table
    "LITELLM_LOG": "ERROR",
}
_ANSWERS: ContextVar[list[Any]] = ContextVar("_ANSWERS")
"""The responses to the call that is being made; its errors have lost most of what these say."""
NO_KEY = "none"
"""The key for a host that the workspace names without a key: litellm would otherwise send a key of
the environment there."""

NOT_OPTIONS = frozenset(
    {
        "api_base",
        "api_key",
        "base_url",
        "caching",
        "drop_params",
        "fallbacks",
        "max_retries",
        "mock_response",
        "mock_tool_calls",
        "num_retries",
        "timeout",
    }
)
"""Names that litellm reserves: they would change which model answers, or how often it is asked."""
_REDIRECTS = re.compile(
    r"^(aws|azure|s3|gcs|custom|hf|oci|langfuse|langsmith)?_|^model_(list|alias_map)$"
    r"|(^|_)(api|base|url|uri|endpoint|host|proxy|credentials?|secret|token|password|tenant"
    r"|callbacks?|ssl|oidc|oauth|deployment|account|arn|mock|client|litellm|fallbacks?)(_|$)",
    re.IGNORECASE,
)
"""Names of options that could send a request, or its credentials, somewhere else."""
_PLACES = frozenset({"aws_region_name", "region_name", "vertex_location", "vertex_project"})
"""Options that become part of a host name: only plain words are allowed."""
_PLACE = re.compile(r"[A-Za-z0-9-]{1,64}")
_HEADERS = frozenset({"host", "authorization", "forwarded", "x-forwarded-host"})


def find_refused_option(options: Mapping[str, Json]) -> str | None:
    """Return an option that could send a request or a credential elsewhere; None without one."""
    for name, value in options.items():
        if name in _PLACES:
            if isinstance(value, str) and _PLACE.fullmatch(value):
                continue
            return name
        if name in NOT_OPTIONS or _REDIRECTS.search(name):
            return name
        is_headers = name in ("headers", "extra_headers") and isinstance(value, dict)
        if is_headers and not _HEADERS.isdisjoint(str(header).casefold() for header in value):
            return name
        # litellm replaces such texts by a variable of the environment, or by a token.
        if re.search(r"os\.environ/|\boidc/", json.dumps(value)):
            return name
    return None


def load_litellm() -> Any:
    """Import litellm with no network access, no `.env`, and nothing printed."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    # Else it puts any `.env` above the installed package, perhaps the workspace's, into the
    # environment.
    os.environ["LITELLM_MODE"] = "PRODUCTION"
    # By name: mypy would read thousands of modules for a statement.
    litellm: Any = importlib.import_module("litellm")
    litellm.suppress_debug_info = True
    # Dropping unsupported parameters would make the stored request wrong.
    litellm.drop_params = False
    litellm.telemetry = False
    confine_clients()
    return litellm


@cache
def confine_clients() -> None:
    """Keep clients that litellm creates from following redirects and reading unlimited answers.

    Our own client does neither. A redirect would take the conversation, and a key in a header
    such as `x-api-key`, to a host that the user has not named. litellm has no setting for it.
    """
    http: Any = importlib.import_module("litellm.llms.custom_httpx.http_handler")
    openai: Any = importlib.import_module("litellm.llms.openai.common_utils").BaseOpenAILLM
    http.AsyncHTTPHandler.create_client = _confined(http.AsyncHTTPHandler.create_client, _aread)
    http.HTTPHandler.create_client = _confined(http.HTTPHandler.create_client, _read)
    for name, read in (("_get_async_http_client", _aread), ("_get_sync_http_client", _read)):
        setattr(openai, name, staticmethod(_confined(getattr(openai, name), read)))


def _confined(create: Callable[..., Any], read: Callable[[Any], Any]) -> Callable[..., Any]:
    @wraps(create)
    def create_confined(*args: Any, **kwargs: Any) -> Any:
        client = create(*args, **kwargs)
        client.follow_redirects = False
        hooks = client.event_hooks
        client.event_hooks = hooks | {"response": [*hooks["response"], read]}
        return client

    return create_confined


async def _aread(response: Any) -> None:
    """Read an answer as `httpx.Response.aread` does, up to the limit."""
    content = bytearray()
    async for chunk in response.aiter_bytes():
        add_chunk(content, chunk)
    _keep(response, content)


def _read(response: Any) -> None:
    content = bytearray()
    for chunk in response.iter_bytes():
        add_chunk(content, chunk)
    _keep(response, content)


def _keep(response: Any, content: bytearray) -> None:
    response._content = bytes(content)
    if (answers := _ANSWERS.get(None)) is not None:
        answers.append(response)


class LitellmProvider:
    """A provider that litellm calls, by litellm's name for it.

    Without a base URL and a key, litellm looks for a key in the environment. `parameters` are
    further parameters, such as a region.
    """

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        parameters: Mapping[str, str] | None = None,
        supports_structured_outputs: bool = True,
    ) -> None:
        self._name = name
        self._base_url = base_url
        self._api_key = api_key
        self._parameters = dict(parameters or {})
        self._secrets = find_secrets(api_key, *secret_values(self._parameters))
        self._supports_structured_outputs = supports_structured_outputs
        self._litellm: Any = None

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        """Make one call; `timeout` limits the whole call, in seconds."""
        if refused := find_refused_option(request.provider_options):
            raise unsupported(f"the provider option '{refused}' cannot be used")
        if "://" in request.code:
            # Some of its providers would use it as the address.
            raise unsupported("the model name is a URL: use 'baseURL' of a provider")
        body = encode_request(
            request, supports_structured_outputs=self._supports_structured_outputs
        )
        dump(body)  # refuses what our own client refuses
        if self._litellm is None:
            self._litellm = await asyncio.to_thread(load_litellm)
        started = time.perf_counter()
        try:
            async with deadline(timeout):
                document, raw_headers = await self._complete(body, timeout)
        except ProviderError as error:
            return refused_prompt(error, time.perf_counter() - started)
        latency = time.perf_counter() - started
        headers = {
            name.removeprefix("llm_provider-"): value
            for name, value in lower_names(raw_headers).items()
        }
        return decode_reply(
            document,
            latency=latency,
            request_id=headers.get("x-request-id"),
            api_key=self._api_key or find_key_of(self._name),
            wait=find_wait(headers),
        )

    async def close(self) -> None:
        """Close all connections of litellm; other providers open new ones on their next call."""
        if self._litellm is not None:
            await self._litellm.close_litellm_async_clients()
            self._litellm.in_memory_llm_clients_cache.flush_cache()
            self._litellm = None

    async def _complete(self, body: Body, timeout: float) -> tuple[Json, Mapping[Any, Any]]:
        """Return the document of an answer and its headers; raises `ProviderError`."""
        call = self._parameters | body | {"model": f"{self._name}/{body['model']}"}
        answers: list[Any] = []
        _ANSWERS.set(answers)
        try:
            response = await self._litellm.acompletion(
                **call,
                api_base=self._base_url,
                api_key=self._api_key or (NO_KEY if self._base_url else None),
                timeout=timeout,
                num_retries=0,
                max_retries=0,
            )
        except Exception as problem:  # noqa: BLE001 - its adapters raise what their libraries raise
            if (own := _find(problem, ProviderError)) is not None:
                raise own from None
            answer = answers[-1] if answers else None
            document = None if answer is None else parse_body(answer.content)
            if answer is not None and is_filtered(document):
                return document, answer.headers
            # The cause would be shown with `--verbose`, and litellm puts URLs with keys into it.
            raise self._failure(problem, answer, document, sent=body) from None
        return as_document(response), response._hidden_params.get("additional_headers") or {}

    def _failure(
        self, problem: Exception, answer: Any, document: Json, *, sent: Collection[str]
    ) -> ProviderError:
        """Return the error for an exception of litellm, by what the server answered.

        Where no answer of it is known, the status of the exception counts, rather than its class.
        """
        litellm = self._litellm
        error = None if answer is None else find_error(document)
        is_error = error is not None or (answer is not None and answer.status_code >= 300)
        if not is_error and isinstance(document, str):
            return unreadable(document, self._secrets)
        body = (error or document) if is_error else find_words(problem)
        words = clean(describe_error(body)[0], self._secrets)
        status = answer.status_code if is_error else getattr(problem, "status_code", None)
        known = status if isinstance(status, int) else None
        match problem:
            case litellm.UnsupportedParamsError():
                words = _ADVICE.split(words)[0].rstrip(" .")
                refused = "response_format" in sent and refuses_form(words)
                return ProviderError("format", words) if refused else unsupported(words)
            case litellm.ContextWindowExceededError():
                return ProviderError("context", words, status=known)
            case litellm.Timeout():
                return ProviderError("timeout", words, status=known, retry=True)
        if answer is not None and not is_error:
            return malformed(words)
        if not is_error and known in (None, 500):
            if _find(problem, ConnectionRefusedError) is not None:
                return unreachable(self._base_url, self._secrets)
            # litellm reports a status of 500 for any error that occurs before an answer.
            lasts = _find(problem, gaierror) is not None  # the name of the host is unknown
            words = f"litellm got no answer: {words}"
            return ProviderError("connection", words, retry=True, lasts=lasts)
        return status_error(
            known or 200,
            body,
            headers=lower_names(answer.headers) if is_error else None,
            secrets=self._secrets,
            # Without an answer the status is litellm's own, as for a key that is missing.
            source="the server" if is_error else "litellm",
            # Some services have the key in the query.
            url=str(answer.url.copy_with(query=None)) if is_error else None,
            sent=sent,
        )


_ADVICE = re.compile(r"To drop (?:these|unsupported params)|If you want to use these params")
"""Begins litellm's advice, which is about settings that evalstore does not let it have."""


def _find(problem: BaseException | None, kind: type[BaseException]) -> BaseException | None:
    """Return the exception of a kind that litellm has wrapped; None if there is none."""
    for _ in range(20):
        if problem is None or isinstance(problem, kind):
            return problem
        problem = problem.__cause__ or problem.__context__
    return None


def find_words(problem: Exception) -> str:
    """Return the message of an exception without litellm's prefixes."""
    text = str(problem).partition("Traceback (most recent")[0].rstrip()
    return text.partition("Exception - ")[2] or re.sub(r"^(litellm\.\w+: )+", "", text)


def as_document(response: Any) -> Body:
    """Return a response of litellm in the form in which the server sent it.

    litellm replaces an unknown finish reason, such as that of an error, with `stop`, and keeps
    the original beside it.
    """
    try:
        document: Body = response.model_dump(warnings=False)
    except (ValueError, RecursionError) as problem:
        raise malformed("litellm cannot read the server's answer") from problem
    for choice in document.get("choices") or ():
        message = choice["message"]
        extra = message.get("provider_specific_fields") or {}
        message["refusal"] = message.get("refusal") or extra.get("refusal")
        fields = choice.get("provider_specific_fields") or {}
        choice["native_finish_reason"] = fields.get("native_finish_reason")
    return document


def lower_names(headers: Mapping[Any, Any]) -> dict[str, str]:
    """Return headers as texts, with their names in lower case."""
    return {str(name).lower(): str(value) for name, value in headers.items()}

"""A lean client for servers with OpenAI's chat completions protocol.

It exists beside litellm because it loads quickly and needs a twentieth of litellm's time for a
call.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import NamedTuple

import aiohttp

from evalstore.providers.answer_size import AnswerContent
from evalstore.providers.base import ProviderError
from evalstore.providers.chat_completions import (
    decode_reply,
    dump,
    encode_request,
    malformed,
    without_think_block,
)
from evalstore.providers.deadline import deadline
from evalstore.providers.errors import clean, find_error, find_secrets, status_error
from evalstore.providers.kinds import OLLAMA
from evalstore.providers.rate_limits import find_wait
from evalstore.values import Json, Reply, Request


class HttpAnswer(NamedTuple):
    """A response over HTTP; names of headers are case-insensitive."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class OpenAICompatibleProvider:
    """A client of one endpoint with its key. It ignores proxies of the environment."""

    def __init__(
        self,
        kind: str,
        *,
        base_url: str,
        api_key: str | None = None,
        supports_structured_outputs: bool = True,
    ) -> None:
        self._url = f"{base_url}/chat/completions"
        self._headers = {"content-type": "application/json", "user-agent": "evalstore"}
        if api_key is not None:
            self._headers["authorization"] = f"Bearer {api_key}"
        self._api_key = api_key
        self._secrets = find_secrets(api_key)
        self._supports_structured_outputs = supports_structured_outputs
        # OpenAI's reasoning models refuse the old name, which all other models need.
        self._limit_name = "max_completion_tokens" if kind == "openai" else "max_tokens"
        self._thinks_aloud = kind in OLLAMA
        self._session: aiohttp.ClientSession | None = None

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        """Make one call; `timeout` limits the whole call, in seconds."""
        body = encode_request(
            request,
            supports_structured_outputs=self._supports_structured_outputs,
            limit_name=self._limit_name,
        )
        data = dump(body)
        started = time.perf_counter()
        async with deadline(timeout):
            answer = await self._post(data)
        latency = time.perf_counter() - started
        reply = decode_reply(
            self._read(answer, formed="response_format" in body),
            latency=latency,
            request_id=answer.headers.get("x-request-id"),
            api_key=self._api_key,
            wait=find_wait(answer.headers),
        )
        return without_think_block(reply) if self._thinks_aloud else reply

    async def close(self) -> None:
        """Close the connections; the provider must not be used afterwards."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _post(self, data: bytes) -> HttpAnswer:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                # Callers bound how many calls run at once, and `deadline` how long they take.
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(total=None),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
            )
        try:
            # A redirect would take the conversation to a host that the user has not named.
            async with self._session.post(
                self._url, data=data, headers=self._headers, allow_redirects=False
            ) as response:
                return HttpAnswer(
                    response.status, response.headers, await read_bounded(response.content)
                )
        except aiohttp.ClientConnectorError as problem:
            reason = problem.os_error.strerror or str(problem.os_error)
            words = clean(f"no connection to {self._url}: {reason}", self._secrets)
            raise ProviderError("connection", words, retry=True) from problem
        except (aiohttp.ClientError, OSError) as problem:
            words = clean(f"the connection failed: {str(problem) or repr(problem)}", self._secrets)
            raise ProviderError("connection", words, retry=True) from problem

    def _read(self, answer: HttpAnswer, *, formed: bool) -> Json:
        """Return the document in a successful answer; raises `ProviderError` for any other."""
        successful = 200 <= answer.status < 300
        try:
            document: Json = json.loads(answer.body)
        except (ValueError, RecursionError):
            document = answer.body.decode(errors="replace")
            if successful:
                words = f"the server answered with no JSON: {document or 'nothing'}"
                raise malformed(clean(words, self._secrets)) from None
        error = find_error(document)
        if not successful or error is not None:
            raise status_error(
                answer.status,
                document if error is None else error,
                headers=answer.headers,
                secrets=self._secrets,
                formed=formed,
            )
        return document


async def read_bounded(content: aiohttp.StreamReader) -> bytes:
    """Read a whole answer; raises `ProviderError` when it is too large."""
    answer = AnswerContent()
    async for chunk in content.iter_any():
        answer.append(chunk)
    return answer.join()

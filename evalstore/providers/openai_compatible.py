"""A lean client for servers with OpenAI's chat completions protocol.

It exists beside litellm because it loads quickly and needs a twentieth of litellm's time for a
call.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from urllib.request import getproxies, proxy_bypass

import aiohttp

from evalstore.core.errors import EvalstoreError
from evalstore.core.values import Json, Reply, Request
from evalstore.providers.base import ProviderError
from evalstore.providers.base_urls import edit_path, host_of, is_loopback
from evalstore.providers.chat_completions import (
    decode_reply,
    dump,
    encode_request,
    is_filtered,
    refused_prompt,
)
from evalstore.providers.deadline import deadline
from evalstore.providers.errors import (
    add_chunk,
    clean,
    find_error,
    find_secrets,
    find_wait,
    parse_body,
    status_error,
    unreachable,
    unreadable,
)
from evalstore.providers.price_table import read_cost, reports_cost


class OpenAICompatibleProvider:
    """A client of one endpoint with its key, through the proxy that the environment names."""

    def __init__(
        self,
        kind: str,
        *,
        base_url: str,
        api_key: str | None = None,
        supports_structured_outputs: bool = True,
    ) -> None:
        self._url = edit_path(base_url, lambda path: f"{path}/chat/completions")
        self._proxy = find_proxy(base_url)
        self._headers = {"content-type": "application/json", "user-agent": "evalstore"}
        if api_key is not None:
            self._headers["authorization"] = f"Bearer {api_key}"
        self._api_key = api_key
        self._secrets = find_secrets(api_key)
        self._reports_usd = reports_cost(kind, base_url)
        self._supports_structured_outputs = supports_structured_outputs
        # OpenAI's reasoning models refuse the old name, which all other models need.
        self._limit_name = "max_completion_tokens" if kind == "openai" else "max_tokens"
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
            status, headers, content = await self._post(data)
        latency = time.perf_counter() - started
        try:
            document = self._read(status, headers, content, sent=body)
        except ProviderError as error:
            return refused_prompt(error, latency)
        return decode_reply(
            document,
            latency=latency,
            request_id=headers.get("x-request-id"),
            api_key=self._api_key,
            wait=find_wait(headers),
            cost=read_cost(document) if self._reports_usd else None,
        )

    async def close(self) -> None:
        """Close the connections; the provider must not be used afterwards."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _post(self, data: bytes) -> tuple[int, Mapping[str, str], bytes]:
        """Return the status, the headers, in any case, and the content of an answer."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                # Callers bound how many calls run at once, and `deadline` how long they take.
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(total=None),
                cookie_jar=aiohttp.DummyCookieJar(),
                # It would also send names and passwords of `.netrc` to hosts of the workspace.
                trust_env=False,
            )
        try:
            # A redirect would take the conversation to a host that the user has not named.
            async with self._session.post(
                self._url,
                data=data,
                headers=self._headers,
                allow_redirects=False,
                proxy=self._proxy,
            ) as response:
                content = bytearray()
                async for chunk in response.content.iter_any():
                    add_chunk(content, chunk)
                return response.status, response.headers, bytes(content)
        except aiohttp.ClientConnectorCertificateError as problem:
            words = f"the certificate of {self._url} is not trusted: {problem.certificate_error}"
            words = clean(words, self._secrets)
            raise ProviderError("certificate", words, stops_model=True) from problem
        except aiohttp.ClientConnectorError as problem:
            if isinstance(problem.os_error, ConnectionRefusedError) and not self._proxy:
                raise unreachable(self._url, self._secrets) from problem
            through = " through the proxy" if self._proxy else ""
            reason = problem.os_error.strerror or str(problem.os_error)
            words = clean(f"no connection to {self._url}{through}: {reason}", self._secrets)
            is_unknown = isinstance(problem, aiohttp.ClientConnectorDNSError)
            raise ProviderError("connection", words, retry=True, lasts=is_unknown) from problem
        except (aiohttp.ClientError, OSError) as problem:
            words = clean(f"the connection failed: {str(problem) or repr(problem)}", self._secrets)
            raise ProviderError("connection", words, retry=True) from problem

    def _read(
        self, status: int, headers: Mapping[str, str], content: bytes, *, sent: Collection[str]
    ) -> Json:
        """Return the document in a successful answer; raises `ProviderError` for any other."""
        successful = 200 <= status < 300
        document = parse_body(content)
        if successful and isinstance(document, str):
            raise unreadable(document, self._secrets)
        if is_filtered(document):
            return document
        error = find_error(document)
        if not successful or error is not None:
            raise status_error(
                status,
                document if error is None else error,
                headers=headers,
                secrets=self._secrets,
                url=self._url,
                sent=sent,
            )
        return document


def find_proxy(url: str) -> str | None:
    """Return the proxy for a URL, as the environment names it; None for a loopback address."""
    host = host_of(url)
    if is_loopback(host) or proxy_bypass(host):
        return None
    proxies = getproxies()
    proxy = proxies.get(url.partition(":")[0]) or proxies.get("all")
    if not proxy:
        return None
    kind, has_kind, _ = proxy.partition("://")
    if has_kind and kind not in ("http", "https"):
        raise EvalstoreError(
            f"the environment sets a proxy of the kind '{kind}', but only HTTP works",
            hint=f"set HTTPS_PROXY to an HTTP proxy, or NO_PROXY={host} to call without one",
        )
    return proxy if has_kind else f"http://{proxy}"

"""Opens the client of a provider by its kind.

Clients are imported on first use: importing this package imports neither asyncio, aiohttp nor
litellm, and a run that needs no litellm never imports it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evalstore.core.errors import EvalstoreError
from evalstore.core.values import RECORDED, Json
from evalstore.providers.base import (
    OLLAMA,
    OPENAI_COMPATIBLE,
    SCRIPTED,
    Provider,
    ProviderError,
    litellm_name,
    plugged_in,
)
from evalstore.providers.base_urls import edit_path, find_secret, split_base_url

__all__ = ["Provider", "ProviderError", "open_provider"]


def open_provider(
    kind: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    parameters: Mapping[str, str] | None = None,
    responses: Sequence[Mapping[str, Json]] = (),
    supports_structured_outputs: bool = True,
) -> Provider:
    """Open the client of a provider.

    `parameters` are further parameters for litellm, apart from the address and the key.
    `responses` is the script of the kind `scripted`. Raises `EvalstoreError` for a base URL or a
    key that no call could use. Errors of the server are raised later, by `ask`.
    """
    if kind == SCRIPTED:
        from evalstore.providers.script import ScriptedProvider

        return ScriptedProvider(responses)
    if kind == RECORDED:
        raise EvalstoreError(
            "the model was only recorded and cannot be called",
            hint="name the provider that has it in its model file; that makes it another model",
        )
    if kind not in OPENAI_COMPATIBLE and kind in plugged_in():
        from evalstore.providers.plugin_provider import PluggedProvider

        return PluggedProvider(kind)
    base_url = _check_url(base_url or OPENAI_COMPATIBLE.get(kind))
    api_key = _check_key(api_key)
    if kind not in OPENAI_COMPATIBLE:
        if base_url and "?" in base_url and kind != "azure_ai":
            raise EvalstoreError(
                f"the base URL of a provider of type '{kind}' cannot have a query",
                hint="remove the query; set the API version for Azure in AZURE_API_VERSION",
            )
        from evalstore.providers.litellm import LitellmProvider

        return LitellmProvider(
            litellm_name(kind),
            base_url=base_url,
            api_key=api_key,
            parameters=parameters,
            supports_structured_outputs=supports_structured_outputs,
        )
    if base_url is None:
        raise EvalstoreError(
            f"a provider of type '{kind}' needs a base URL", hint="set 'baseURL' in its file"
        )
    if kind in OLLAMA:
        # Ollama's own clients, and litellm, name the host or the root of its native API.
        base_url = edit_path(
            base_url, lambda path: path.removesuffix("/v1").removesuffix("/api") + "/v1"
        )
    from evalstore.providers.openai_compatible import OpenAICompatibleProvider

    return OpenAICompatibleProvider(
        kind,
        base_url=base_url,
        api_key=api_key,
        supports_structured_outputs=supports_structured_outputs,
    )


def _check_url(base_url: str | None) -> str | None:
    """Return the base URL without a slash at its end; raises `EvalstoreError` if it is invalid."""
    if base_url is None:
        return None
    if secret := find_secret(base_url):
        raise EvalstoreError(
            f"the base URL contains {secret}",
            hint="base URLs are stored: name a variable in 'apiKeyEnvVar' instead",
        )
    if split_base_url(base_url) is None:
        raise EvalstoreError(
            f"'{base_url}' is not a base URL", hint="write it as in 'http://localhost:8000/v1'"
        )
    return base_url.rstrip("/")


def _check_key(api_key: str | None) -> str | None:
    """Return the key without surrounding blanks; None when it is empty."""
    api_key = (api_key or "").strip()
    if not api_key.isprintable():
        raise EvalstoreError(
            "the API key holds a control character", hint="check the variable it comes from"
        )
    return api_key or None

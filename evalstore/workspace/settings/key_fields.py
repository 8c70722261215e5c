"""Reads the address and the key variable of a provider file; neither may hold a key."""

from __future__ import annotations

import re

from evalstore.core.errors import FileProblem
from evalstore.files.fields import Fields
from evalstore.providers.base_urls import find_secret, split_base_url

SERVICES = {
    "openai": "OPENAI_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "mistral": "MISTRAL_API_KEY",
    "groq": "GROQ_API_KEY",
    "deepseek": "DEEPSEEK_API_KEY",
    "perplexity": "PERPLEXITYAI_API_KEY",
    "cohere": "COHERE_API_KEY",
    "xai": "XAI_API_KEY",
}
"""The default variables of the keys of services."""
USUAL_KEYS = ("openai", "openrouter")
"""Kinds whose provider files need not name the variable; litellm looks up its own kinds."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEY = re.compile(
    r"(sk|pk|rk|gsk|hf|xai|ghp|r8|nvapi|pplx|eyJ|AIza)[A-Za-z0-9_]{16,}"
    r"|(?=\S*[a-z])(?=\S*[A-Z])(?=\S*[0-9])[A-Za-z0-9]{24,}\Z"
)
"""Matches keys that could be mistaken for the name of a variable."""
_KEY_OF_SERVICE = re.compile(
    r"((sk|pk|rk|gsk|hf|xai|ghp|r8|nvapi|pplx)[-_]|eyJ|AIza)(?=\S*[0-9])[A-Za-z0-9_-]{16,}"
)


def read_key_variable(fields: Fields) -> str | None:
    """Read the name of the variable with the key; a key itself is refused and not shown."""
    name = fields.text("apiKeyEnvVar")
    if name is not None and (not _VARIABLE.fullmatch(name) or _KEY.match(name)):
        raise FileProblem(
            "'apiKeyEnvVar' is not the name of a variable",
            fields.line("apiKeyEnvVar"),
            hint="put the key into the environment, or into .env as NAME=key, and the NAME here",
        )
    return name


def looks_like_key(word: str) -> bool:
    """Return whether a word of a command line, or what follows a `=` in it, looks like a key."""
    return any(_KEY_OF_SERVICE.match(part) for part in (word, word.rpartition("=")[2]))


def check_base_url(base_url: str, line: int) -> None:
    """Raise `FileProblem` for an invalid address, or one that contains a secret."""
    if secret := find_secret(base_url):
        raise FileProblem(
            f"'baseURL' holds {secret}, and base URLs are stored",
            line,
            hint="name the variable that holds the key in 'apiKeyEnvVar'",
        )
    if not re.match(r"https?://[^\s]+$", base_url):
        raise FileProblem("'baseURL' must start with http:// or https://", line)
    if split_base_url(base_url) is None:
        hint = "it looks like 'http://localhost:8000/v1'; other letters than a-z as 'xn--…'"
        raise FileProblem("'baseURL' names no host", line, hint=hint)

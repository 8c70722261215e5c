"""Finds keys in rows before they leave this machine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from evalstore.core.canonical_json import canonical_json
from evalstore.providers.base_urls import is_secret_parameter
from evalstore.providers.errors import names_secret
from evalstore.store.records import StoredRecord

_SHAPES: tuple[tuple[str, str, str], ...] = (
    # What it is, a text that it always has, its pattern.
    ("an API key", "sk-", r"\bsk-[A-Za-z0-9_-]{20,}"),
    ("a Google API key", "AIza", r"\bAIza[A-Za-z0-9_-]{35}"),
    ("a Groq API key", "gsk_", r"\bgsk_[A-Za-z0-9]{40,}"),
    ("an xAI API key", "xai-", r"\bxai-[A-Za-z0-9]{40,}"),
    ("a Perplexity API key", "pplx-", r"\bpplx-[A-Za-z0-9]{40,}"),
    ("a Cerebras API key", "csk-", r"\bcsk-[a-z0-9]{40,}"),
    ("an NVIDIA API key", "nvapi-", r"\bnvapi-[A-Za-z0-9_-]{40,}"),
    ("a Replicate token", "r8_", r"\br8_[A-Za-z0-9]{36,}"),
    ("a Hugging Face token", "hf_", r"\bhf_[A-Za-z0-9]{30,}"),
    ("a GitHub token", "gh", r"\bgh[pousr]_[A-Za-z0-9]{36}"),
    ("a GitHub token", "github_pat_", r"\bgithub_pat_[A-Za-z0-9_]{60,}"),
    ("a GitLab token", "glpat-", r"\bglpat-[A-Za-z0-9_-]{20,}"),
    ("an AWS access key", "AKIA", r"\bAKIA[A-Z0-9]{16}\b"),
    ("an AWS access key", "ASIA", r"\bASIA[A-Z0-9]{16}\b"),
    ("a Slack token", "xox", r"\bxox[abprs]-[A-Za-z0-9-]{20,}"),
    ("a private key", "PRIVATE KEY-----", r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----"),
)
_START = r"(?:(?<=\\[bfnrt])|\b)"
"""The start of a word, also after a line break or a tab, which JSON writes with a letter."""
_PATTERNS = tuple(
    (name, text, re.compile(pattern.replace(r"\b", _START, 1))) for name, text, pattern in _SHAPES
)
_BETWEEN = re.compile(r"[/:.,_@+~-]+")
_PLAIN = re.compile(
    r"[A-Z]?[a-z]{0,14}(?:[A-Z][a-z]{2,14}){0,2}|[A-Z]{1,14}|\d{1,10}"
    r"|(?:[A-Z]?[a-z]{0,14}|[A-Z]{1,14})\d{1,3}[a-zA-Z]{0,2}"
    r"|v\d+(?:alpha|beta|rc|p)\d*|\d+x\d+b"
)
"""A word, a number or a version, as in the names of models, hosts and files."""
_URL = re.compile(r"[A-Za-z][\w+.-]*://(?:(?![,;][\w+.-]+://)\S)+")
_PAIR = re.compile(r"([\w.-]+)=(\"[^\"]*\"|[^\s;&#,\"]+)")
_SHORTEST = 8
"""Characters of a value that is looked for; shorter ones may be words."""


class FoundSecret(NamedTuple):
    """A key in a row."""

    table: str
    id: str
    name: str
    """What it is, such as `an AWS access key`; never the key itself."""


class SecretScan:
    """Looks for keys by their shape, and for the values of this machine's variables."""

    def __init__(self, environment: Mapping[str, str], own: Iterable[tuple[str, str]] = ()) -> None:
        """`own` are the names and values in `.env` of the workspace."""
        secrets = [(name, each) for name, value in environment.items() for each in _of(name, value)]
        secrets += [(name, each) for name, value in own for each in _of(name, value, is_own=True)]
        self._values = tuple(
            (name, form)
            for name, value in dict.fromkeys(secrets)
            for text in dict.fromkeys((value, unquote(value)))
            for form in dict.fromkeys((text, canonical_json(text)[1:-1]))
            if len(text) >= _SHORTEST
        )

    def find(self, record: StoredRecord) -> FoundSecret | None:
        """Return the first key in a record; None when there is none."""
        text = record.content
        if record.data:
            text += record.data.decode("latin-1")
        for name, value in self._values:
            if value in text or value.encode(errors="replace") in (record.data or b""):
                return FoundSecret(record.table, record.id, f"the value of {name}")
        for name, part, pattern in _PATTERNS:
            if part in text and pattern.search(text):
                return FoundSecret(record.table, record.id, name)
        return None


def _of(name: str, value: str, *, is_own: bool = False) -> Iterator[str]:
    """Yield the secrets in a variable: by its name, in URLs, and in pairs such as `api_key=...`.

    In `.env` of the workspace, which `is_own`, so is what does not look like words and numbers.
    """
    urls = _URL.findall(value)
    is_plain = not is_own or _is_plain(value) or urls == [value]
    if names_secret(name, value) or not is_plain:
        yield value
    for url in urls:
        try:
            parts = urlsplit(url)
            users = [parts.password, None if _is_plain(parts.username or "") else parts.username]
        except ValueError:
            continue
        steps = [step for step in parts.path.split("/") if is_own and not _is_plain(step)]
        secrets = [secret for secret in (*users, *steps) if secret]
        yield from [url, *secrets] if secrets else []
    for member, text in _PAIR.findall(value):
        if is_secret_parameter(member) or names_secret(member.replace("-", "_"), text):
            yield text.strip('"')


def _is_plain(text: str) -> bool:
    return all(_PLAIN.fullmatch(piece) for piece in _BETWEEN.split(text))

"""Classifies failed calls: whether and when to retry, and the message for the user.

The status decides, not the wording, with three exceptions: a used-up account looks like
a rate limit, a conversation that does not fit looks like any other bad request, and a
server that cannot hold its model to a form says so in its own words, some with a 500.
No message holds a key, a control character, or more than 500 characters.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from evalstore.providers.base import FAILED_FINISH, RETRY_STATUS, STOP_STATUS, ProviderError
from evalstore.values import Json

_SHORTEST_SECRET = 8
"""The fewest characters of a secret; a shorter text may be any word."""
MESSAGE_LIMIT = 500
"""Characters of a message that are kept."""

NO_MONEY = frozenset({"insufficient_quota"})
TOO_LONG = frozenset({"context_length_exceeded", "exceed_context_size_error"})

LONGEST_WAIT = 366 * 86_400.0
"""Seconds. A longer `Retry-After` counts as this."""

FORMAT_STATUS = frozenset({200, 400, 422, 500, 501})
FORMAT_WORDS = re.compile(
    r"response.?(format|schema)|json.?(schema|object|mode)|structured.?(output|response)"
    r"|output.?(format|config)|guided|constrained|grammar|\bschema\b",
    re.IGNORECASE,
)
"""Words with which servers refuse the requested format of the answer."""

SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$", re.IGNORECASE)
"""Variables whose values never appear in a message; libraries read keys by themselves."""


def status_error(
    status: int,
    body: Json,
    *,
    headers: Mapping[str, str] | None = None,
    secrets: Iterable[str] = (),
    source: str = "the server",
    formed: bool = False,
) -> ProviderError:
    """Return the error for an answer with this status and this body, parsed or as text.

    `formed` means that the request asked for a format, which the server may have refused. A proxy
    that has already sent the status 200 puts the real status into `code`, as OpenRouter does.
    """
    message, codes = describe_error(body)
    real = next((code for code in codes if isinstance(code, int) and 400 <= code < 600), None)
    if status < 400 and real is not None:
        status = real
    no_money = not NO_MONEY.isdisjoint(codes)
    words = f"{source} answered {status}" + (f": {message}" if message else "")
    kind = "status"
    if status == 400 and not TOO_LONG.isdisjoint(codes):
        kind = "context"
    elif formed and status in FORMAT_STATUS and refuses_form(" ".join([message, *map(str, codes)])):
        kind = "format"
    return ProviderError(
        kind,
        clean(words, secrets),
        status=status,
        retry=status in RETRY_STATUS and not no_money and kind != "format",
        retry_after=find_retry_after(headers or {}),
        stops_model=status in STOP_STATUS or no_money,
    )


def require_finished(reason: str | None) -> None:
    """Raise `ProviderError` for a finish reason of a provider that failed."""
    if reason is not None and reason.casefold() in FAILED_FINISH:
        words = f"the provider broke off its answer: finish reason '{reason}'"
        raise ProviderError("malformed", words, retry=True)


def refuses_form(message: str) -> bool:
    """Return whether an error is about the requested structured output."""
    return FORMAT_WORDS.search(message) is not None


def find_error(document: Json) -> Json | None:
    """Return the error in an answer with a success status; None if there is none."""
    match document:
        case {"error": error} if error:
            return error
        case {"choices": [{"error": error}, *_]} if error:
            return error
    return None


def describe_error(body: Json) -> tuple[str, list[Json]]:
    """Return the message of a server's error, with its codes and parameter."""
    if isinstance(body, dict) and body.get("error"):
        body = body["error"]
    if not isinstance(body, dict):
        return _as_text(body), []
    codes = [
        body[name] for name in ("code", "type", "param") if isinstance(body.get(name), str | int)
    ]
    message = body.get("message") or body.get("detail")
    return message if isinstance(message, str) else _as_text(body), codes


def _as_text(body: Json) -> str:
    """Return a text as it is, anything else as JSON."""
    if isinstance(body, str):
        return body
    try:
        return json.dumps(body)
    except (ValueError, RecursionError):
        return "an error that is nested too deeply to be shown"


def find_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait, from `retry-after-ms` or `Retry-After`; None without them.

    The latter is a number of seconds or a date (RFC 9110, 10.2.3). Names are in lower case.
    """
    if (wait := _seconds(headers.get("retry-after-ms"))) is not None:
        return wait / 1000
    value = headers.get("retry-after")
    if value is None or (wait := _seconds(value)) is not None:
        return wait
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return _bounded((date - datetime.now(UTC)).total_seconds())


def _seconds(value: str | None) -> float | None:
    try:
        number = float(value) if value is not None else math.nan
    except ValueError:
        return None
    return _bounded(number) if math.isfinite(number) else None


def _bounded(seconds: float) -> float:
    return min(max(0.0, seconds), LONGEST_WAIT)


def find_secrets(api_key: str | None, *more: str) -> tuple[str, ...]:
    """Return the key, `more` secrets, and every value of the environment that looks like one.

    They are sorted by length, the longest first.
    """
    hidden = {value for name, value in os.environ.items() if SECRET_NAME.search(name)}
    secrets = {value for value in (*hidden, *more) if len(value) >= _SHORTEST_SECRET}
    if api_key is not None and len(api_key) >= 4:
        secrets.add(api_key)
    return tuple(sorted(secrets, key=len, reverse=True))


def forms_of_secrets(secrets: Iterable[str]) -> tuple[str, ...]:
    """Return the texts by which an output may repeat secrets, the longest first.

    They are the secrets, their long lines, and both as strings in JSON.
    """
    texts = {text for secret in secrets for text in (secret, *secret.splitlines())}
    forms = {
        form
        for text in texts
        for form in (text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1])
        if len(text) >= _SHORTEST_SECRET
    }
    return tuple(sorted(forms, key=lambda form: (-len(form), form)))


def find_key_of(provider: str) -> str | None:
    """Return the key that a library reads from the environment when none is passed to it."""
    start = provider.replace("_", "").upper()
    names = (name for name in sorted(os.environ) if name.endswith("_API_KEY"))
    matching = (name for name in names if name.replace("_", "").startswith(start))
    return next((os.environ[name].strip() for name in matching if os.environ[name].strip()), None)


def clean(text: str, secrets: Iterable[str] = ()) -> str:
    """Return a text as one printable line of bounded length, with `***` for each secret."""
    for secret in secrets:
        text = text.replace(secret, "***")
    text = " ".join(text[: 8 * MESSAGE_LIMIT].split())
    text = "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )
    return text if len(text) <= MESSAGE_LIMIT else text[: MESSAGE_LIMIT - 1] + "…"

"""Classifies failed calls: whether and when to retry, and the message for the user.

The status decides, not the wording, with four exceptions: a used-up account looks like
a rate limit, a conversation that does not fit or that a filter refuses looks like any other bad
request, and a server that cannot hold its model to a form says so in its own words, some with a
500. In an answer with the status 200 the status is in a code, or the type of the error names it.
No message holds a key, a control character, or more than 500 characters.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from evalstore.core.values import Json
from evalstore.providers.base import (
    FAILED_FINISH,
    FILTERED,
    RETRY_STATUS,
    STOP_STATUS,
    ProviderError,
)

LONGEST = 15.0
"""Seconds. Providers differ in whether `reset` is the time of the next call or of all calls."""

_NAMES = (
    ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
    ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
    ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
    ("x-ratelimit-remaining", "x-ratelimit-reset"),
    ("ratelimit-remaining", "ratelimit-reset"),
)
_LONGEST_TOLD = 366 * 86_400.0
"""Seconds. What a refused call is told to wait counts as this where it is longer."""
_PART = (
    r"(\d+(?:\.\d+)?) ?(d|days?|h|hours?|hrs?|m|min|minutes?|mins?|s|sec|seconds?|secs?|ms"
    r"|milliseconds?)(?![a-z])(?:,? ?(?:and )?)"
)
_LENGTH = re.compile(rf"(?:{_PART})+", re.IGNORECASE)
_SECONDS = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
_TOLD = re.compile(
    r"\b(?:(?:re)?try again|retry(?: your request)?|wait)(?: in| after| for)?"
    rf"(?: about| approximately| another| at least)?:? ((?:{_PART})+)",
    re.IGNORECASE,
)
"""How a server says in words when to call again."""
_LOOKED_AT = 4000
"""The characters of a message in which these words are looked for."""


def find_wait(headers: Mapping[str, str], *, refused: bool = False) -> float:
    """Return the seconds until another call is allowed.

    The names of the headers are in lower case, or the mapping ignores case. `refused` means that
    the call was one too many, so that a limit is used up even if no header says which.
    """
    if not any("ratelimit" in name.lower() for name in headers):
        return 0.0
    used_up = [reset for remaining, reset in _NAMES if _is_used_up(headers.get(remaining))]
    if refused and not used_up:
        used_up = [reset for _, reset in _NAMES]
    waits = (_seconds(headers.get(reset, "")) or 0.0 for reset in used_up)
    return min(max(waits, default=0.0), LONGEST)


def find_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait, from `retry-after-ms` or `Retry-After`; None without them.

    The latter is a number of seconds or a date (RFC 9110, 10.2.3). Names are in lower case.
    """
    if (wait := _seconds(headers.get("retry-after-ms", ""))) is not None:
        return wait / 1000
    return _seconds(headers.get("retry-after", ""))


def find_told_wait(message: str, parts: Iterable[Mapping[str, Json]]) -> float | None:
    """Return the seconds after which a refusal says that another call is allowed.

    It may say so in its message, or as Google's `RetryInfo` in the details of one of its parts.
    """
    for part in parts:
        details = part.get("details")
        for detail in details if isinstance(details, list) else ():
            delay = detail.get("retryDelay") if isinstance(detail, dict) else None
            if isinstance(delay, str) and (wait := _seconds(delay)) is not None:
                return wait
    told = _TOLD.search(message[:_LOOKED_AT])
    return _seconds(told[1]) if told else None


def _is_used_up(remaining: str | None) -> bool:
    try:
        return remaining is not None and float(remaining) <= 0
    except ValueError:
        return False


def _seconds(text: str) -> float | None:
    """Return the seconds in a number, a duration or until a time; None when it cannot be read."""
    now = datetime.now(UTC).timestamp()
    try:
        number = float(text)
    except ValueError:
        number = _length(text) if _LENGTH.fullmatch(text) else _date(text) - now
    else:
        number /= 1000 if 1e12 < number < 1e13 else 1  # milliseconds since 1970
        number -= now if 1e9 < number < 1e10 else 0
    return min(max(number, 0.0), _LONGEST_TOLD) if math.isfinite(number) else None


def _length(text: str) -> float:
    return sum(
        float(number) * (0.001 if unit.startswith(("ms", "milli")) else _SECONDS[unit[0]])
        for number, unit in re.findall(_PART, text.lower())
    )


def _date(text: str) -> float:
    """Return the time of a date as in HTTP or as in RFC 3339; NaN for any other text."""
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            date = read(text)
            return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            continue
    return math.nan


_SHORTEST_SECRET = 8
"""The fewest characters of a secret; a shorter text may be any word."""
MESSAGE_LIMIT = 500
"""Characters of a message that are kept."""

NO_MONEY = frozenset({"insufficient_quota"})
TOO_LONG = frozenset({"context_length_exceeded", "exceed_context_size_error"})

FILTERS = re.compile(
    r"content_?filter|content_?policy_?violation|data_?inspection_?failed|invalid_?prompt"
    r"|moderation_?blocked|responsible_?ai_?policy_?violation",
    re.IGNORECASE,
)
"""Codes of a prompt that a filter refuses, at Azure, Alibaba, OpenAI and others."""
WITHHELD = "the provider's content filter withheld the answer"
FILTER_STATUS = frozenset({200, 400, 403, 422})
FILTER_WORDS = re.compile(
    r"content management policy|ContentPolicyViolation|blocked by content filter"
    r"|content exists risk",
    re.IGNORECASE,
)
"""Words with which servers say the same without a code."""

_NAMED_STATUS = {
    401: "authentication|invalid_?api_?key|unauthenticated|unauthorized",
    402: "billing",
    403: "permission(_?denied)?",
    404: "(model_?)?not_?found",
    408: "timeout",
    429: "rate_?limit(_?exceeded)?|resource_?exhausted|too_?many_?requests",
    500: "api|internal(_?server)?|server",
    503: "overloaded|(service_?)?unavailable|bad_?gateway|(gateway_?)?timeout|deadline_?exceeded",
}
"""Types of errors in an answer with the status 200, without `error` at the end."""
_CODES = ("code", "status", "status_code", "error_code", "type")
_MESSAGES = (
    *("message", "msg", "detail", "error_message", "error_msg", "error_description"),
    *("errorMessage", "status_msg"),
)
_INNER = ("error", "errors", "base_resp")
"""Members that hold the error itself."""
_MORE = ("innererror", "metadata")
"""Members of an error that hold more of it."""
_MOST_LEVELS = 4

NOTHING_LISTENS = "nothing listens at"
STREAMED = "the server answered with a stream, which was not requested"

FORMAT_STATUS = frozenset({200, 400, 422, 500, 501})
FORMAT_WORDS = re.compile(
    r"response.?(format|schema)|json.?(schema|object|mode)|structured.?(output|response)"
    r"|output.?(format|config)|guided|constrained|grammar|\bschema\b",
    re.IGNORECASE,
)
"""Words with which servers refuse the requested format of the answer."""

_SECRET_NAME = re.compile(
    r"(?:\A|_)(?:KEY|TOKEN|PASS)S?(?:\Z|_)|SECRET|PASSW|PASSPHRASE|PWD|JWT|CREDENTIAL|WEBHOOK"
)
_LIKE_A_NAME = re.compile("KEY|TOKEN|PASS")
"""Parts of names such as `OPENAI_APIKEY`, but also `MONKEY`; `_ORDINARY` values do not count."""
_ORDINARY = re.compile(r"[A-Za-z][a-z]*|[A-Z]+|[0-9.,]+")
_FOLDERS = ("PWD", "OLDPWD")


def status_error(
    status: int,
    body: Json,
    *,
    headers: Mapping[str, str] | None = None,
    secrets: Iterable[str] = (),
    source: str = "the server",
    url: str | None = None,
    sent: Iterable[str] = (),
) -> ProviderError:
    """Return the error for an answer with this status and this body, parsed or as text.

    `sent` are the fields of the request, of which the server may have refused one. A proxy
    that has already sent the status 200 puts the real status into `code`, as OpenRouter does.
    """
    message, codes = describe_error(body)
    parts = list(_parts(body))
    wait = find_retry_after(headers or {})
    if wait is None:
        wait = find_told_wait(message, parts)
    if status < 400:
        # Who says when to call again has not refused the request as such.
        status = _real_status(parts) or (429 if wait is not None else status)
    if wait is None and status == 429:
        wait = find_wait(headers or {}, refused=True) or None
    no_money = not NO_MONEY.isdisjoint(codes)
    at = f" at {url}" if url and status == 404 else ""
    words = f"{source} answered {status}{at}" + (f": {message}" if message else "")
    kind = "status"
    if status in FILTER_STATUS and _is_filtered(status, message, codes, parts):
        words = f"{WITHHELD}: {message}" if message else WITHHELD
        return ProviderError(FILTERED, clean(words, secrets), status=status)
    refused = next((code for code in codes if code in sent), None)
    if refused is not None and str(refused) not in words:
        words += f" (parameter '{refused}')"
    if status == 400 and not TOO_LONG.isdisjoint(codes):
        kind = "context"
    elif (
        "response_format" in sent
        and status in FORMAT_STATUS
        and refuses_form(" ".join([message, *map(str, codes)]))
    ):
        kind = "format"
    return ProviderError(
        kind,
        clean(words, secrets),
        status=status,
        retry=status in RETRY_STATUS and not no_money and kind != "format",
        retry_after=wait,
        stops_model=status in STOP_STATUS or no_money,
    )


def require_finished(reason: str | None) -> None:
    """Raise `ProviderError` for a finish reason of a provider that failed."""
    if reason is not None and reason.casefold() in FAILED_FINISH:
        words = f"the provider cut its answer off: finish reason '{reason}'"
        raise ProviderError("malformed", words, retry=True)


def unreachable(url: str | None, secrets: Iterable[str]) -> ProviderError:
    """Return the error for a refused connection; the server may be starting again."""
    words = clean(f"{NOTHING_LISTENS} {url or 'its address'}: connection refused", secrets)
    return ProviderError("connection", words, retry=True, lasts=True)


def refuses_form(message: str) -> bool:
    """Return whether an error is about the requested structured output."""
    return FORMAT_WORDS.search(message) is not None


def find_error(document: Json) -> Json | None:
    """Return the error in an answer with a success status; None if there is none.

    What has no choices is an error if it has words or a code.
    """
    match document:
        case {"choices": [{"error": error}, *_]} if error:
            return error
        case {"error": error} if error:
            return document
        case {"choices": choices} if choices:
            return None
    return document if any(_first_text(part) for part in _parts(document)) else None


def unreadable(text: str, secrets: Iterable[str]) -> ProviderError:
    """Return the error for a successful answer without JSON; a stream would only come again."""
    streams = text.startswith(("data:", "event:"))
    words = STREAMED if streams else "the server's answer is not JSON"
    return ProviderError(
        "malformed", clean(f"{words}: {text or 'nothing'}", secrets), retry=not streams
    )


def parse_body(body: bytes) -> Json:
    """Return the JSON of an answer, or its text if it is none."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body.decode(errors="replace")


def describe_error(body: Json) -> tuple[str, list[Json]]:
    """Return the message of a server's error, with its codes and parameter."""
    parts = list(_parts(body))
    found = [part.get(name) for part in parts for name in (*_CODES, "param")]
    codes = [code for code in found if isinstance(code, str | int)]
    message = next(filter(None, map(_first_text, parts)), None)
    if message is None:
        shown = body.get("error") if isinstance(body, dict) else None
        message = _as_text(shown if isinstance(shown, str | dict) and shown else body)
    return message, codes


def _parts(body: Json, levels: int = _MOST_LEVELS) -> Iterator[dict[str, Json]]:
    """Yield the mappings of an error, the innermost first; some servers put them into lists."""
    part = body[0] if isinstance(body, list) and body else body
    if isinstance(part, dict) and levels:
        for name in _INNER:
            yield from _parts(part.get(name), levels - 1)
        yield part
        for name in _MORE:
            yield from _parts(part.get(name), levels - 1)


def _first_text(part: Mapping[str, Json]) -> str | None:
    """Return the message of a part of an error; None if it has none."""
    texts = (part.get(name) for name in (*_MESSAGES, "error"))
    return next((text for text in texts if isinstance(text, str) and text), None)


def _real_status(parts: Iterable[Mapping[str, Json]]) -> int | None:
    """Return the status that an error names, as a number, a text or a type."""
    codes = [str(part[name]) for part in parts for name in _CODES if part.get(name) is not None]
    if number := next((code for code in codes if re.fullmatch(r"[45]\d\d", code)), None):
        return int(number)
    for status, names in _NAMED_STATUS.items():
        if any(re.fullmatch(rf"({names})(_?error)?", code, re.IGNORECASE) for code in codes):
            return status
    return None


def _is_filtered(
    status: int, message: str, codes: Iterable[Json], parts: Iterable[Mapping[str, Json]]
) -> bool:
    """Return whether an error says that a filter has refused the prompt."""
    if any(FILTERS.fullmatch(str(code)) for code in codes):
        return True
    # OpenRouter and xAI, with 403
    flagged = any("flagged_input" in part for part in parts) or "violates usage guide" in message
    return flagged or (status != 403 and FILTER_WORDS.search(message) is not None)


def _as_text(body: Json) -> str:
    """Return a text as it is, anything else as JSON."""
    if isinstance(body, str):
        return body
    try:
        return json.dumps(body)
    except (ValueError, RecursionError):
        return "an error that is nested too deeply to be shown"


def names_secret(name: str, value: str) -> bool:
    """Return whether a variable of this name has a secret as its value."""
    name = name.upper()
    like_a_name = _LIKE_A_NAME.search(name) and not _ORDINARY.fullmatch(value)
    return name not in _FOLDERS and bool(_SECRET_NAME.search(name) or like_a_name)


def find_secrets(api_key: str | None, *more: str) -> tuple[str, ...]:
    """Return the key, `more` secrets, and every value of the environment that looks like one.

    They are sorted by length, the longest first.
    """
    hidden = {value for name, value in os.environ.items() if names_secret(name, value)}
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


MAX_ANSWER = 16 * 1024 * 1024
"""The most bytes of an answer after decompression; the longest real answers have some 100 KB."""


def add_chunk(content: bytearray, chunk: bytes) -> None:
    """Add bytes that have arrived; raises `ProviderError` when the answer is too large."""
    content += chunk
    if len(content) > MAX_ANSWER:
        raise ProviderError("malformed", f"the answer is larger than {MAX_ANSWER} bytes")

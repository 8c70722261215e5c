"""Hints for failed calls."""

from __future__ import annotations

import re

from evalstore.providers.errors import NOTHING_LISTENS, STREAMED
from evalstore.providers.script import JUDGED, NO_MATCH

_HINTS = {
    401: "check the key: its variable is the 'apiKeyEnvVar' of the model's provider file; "
    "without that field none is sent to a 'baseURL'",
    402: "the account has no money left",
    403: "the key may not use this model: look at the account's permissions",
    404: "check the name: 'providerModelCode' of the model file, and 'baseURL' of its provider",
    429: "too many calls at once: lower 'concurrency', or allow more --timeout or --retries",
}
_CLASS_HINTS = {
    "application": "change the application, then 'evalstore trust' its model file again",
    "context": "the model takes less than the conversation: shorten the test, or use a larger one",
    "timeout": "raise --timeout, or lower 'concurrency' if the server is busy with your calls",
    "connection": "check that the server runs and that 'baseURL' of its provider is right",
    "certificate": "name the file with the certificate that signed it in the variable "
    "SSL_CERT_FILE; the server runs, and 'baseURL' is right",
    "bug": "report it to who maintains the provider; run again to ask once more",
    "malformed": "run again; if it stays, look at what the server, or the model, answers",
    "not run": "run again when the machine has room for it: the answers are stored",
    "unsupported": "nothing was sent: change the test, or leave this model out with its tags",
}

_PLACES = {
    rf"\A{NOTHING_LISTENS} ": "start the server, or correct 'baseURL' of its provider",
    r"answered 404 at https?://[^/\s]+/chat/completions\b|POST /chat/completions\b": "add "
    "'/v1' to 'baseURL' of the provider: most servers answer below it",
    r"answered 404 at \S+/chat/completions/chat/completions\b": "take '/chat/completions' off "
    "'baseURL' of the provider: it is added to each call",
}
"""From what a message says of an address to what to write."""

_NULL = (
    "take '{0}' out of the 'options' of the test, or write 'providerOptions: {{{1}: null}}' into "
    "the model file"
)
_PARAMETERS = {
    r"temperature": "send no temperature: take it out of evalstore.yaml and the test, or write "
    "'candidateOverrides: {temperature: null}' into the model file ('evaluatorOverrides' for a "
    "judge)",
    r"max_?(completion_?|output_?)?tokens": "lower or remove 'maxTestOutputTokens' or "
    "'maxEvaluationOutputTokens' in evalstore.yaml, and 'maxOutputTokens' of the test",
    r"response_?format|response_?schema|json_(schema|object)|structured.?output": "write "
    "'supportsStructuredOutputs: false' into the provider file: no schema is sent then",
    r"top_?p\b": _NULL.format("topP", "top_p"),
    r"\bseed\b": _NULL.format("seed", "seed"),
    r"['\"`]stop(_sequences)?\b": _NULL.format("stop", "stop"),
    r"reasoning_?effort|\bthinking\b": "change 'thinking' in the model file, or take it out",
    r"tool_choice|['\"`]tools\b|support\w* (tools|function)": "write 'capabilities: {output: "
    "{tools: false}}' into the model file: tests with tools leave it out",
}
"""From the names of a parameter that a model refuses to what to write."""
_NAMED = re.compile(
    r"(?:parameter|argument|field|input|propert|unknown name)[a-z]*(?: supplied)?:? \[?"
    r"((?:['\"`][a-z]\w+['\"`](?:, | and )?)+)"
    r"|(?:parameter|argument|field)s?(?: supplied| not allowed)?: "
    r"((?:[a-z]\w+(?:, | and )?)+)(?=\.|\Z)"
    r"|\"body\", \"([a-z]\w+)\"|([a-z]\w+): extra (?:inputs|fields)",
    re.IGNORECASE,
)
_TAKEN = re.compile(
    r"(?<!not )\b(?:supported|allowed|valid|accepted)[\w ]{0,20}:.*", re.DOTALL | re.I
)
"""What follows are the names of other parameters, which the server takes."""

_SCRIPT_HINT = (
    "add a line such as \"- {{when: 'words of the message', answer: {answer}}}\" to 'responses' "
    "in {file}"
)


def is_of_script(message: str) -> bool:
    """Return whether a call failed because no entry of a script answers it."""
    return message.startswith(NO_MATCH)


def hint_for(
    kind: str, status: int | None, message: str = "", model_file: str | None = None
) -> str | None:
    """Return how to fix a failure of this class; None if there is no general advice.

    `model_file` is the path of the file of a scripted model, if it is known.
    """
    if is_of_script(message):
        judged = message.startswith(f"{NO_MATCH} {JUDGED}")
        answer = "{pass: true, feedback: ''}" if judged else "'the answer'"
        return _SCRIPT_HINT.format(answer=answer, file=model_file or "the model's file")
    for words, hint in _PLACES.items():
        if re.search(words, message):
            return hint
    if message.startswith(STREAMED):
        return "switch streaming off at the server, or name one in 'baseURL' that does not stream"
    if (kind in ("unsupported", "format") or status in (400, 422)) and kind != "context":
        named = _TAKEN.sub("", message)
        hints = [hint for names, hint in _PARAMETERS.items() if re.search(names, named, re.I)]
        found = " ".join(name for match in _NAMED.finditer(named) for name in match.groups(""))
        if not hints and (others := set(re.findall(r"\w+", found)) - {"and", "messages", "model"}):
            listed = ", ".join(f"'{name}'" for name in sorted(others))
            return f"take {listed} out of 'providerOptions' of the model file, or of the test"
        if hints:
            return "; ".join(hints)
    if kind in _CLASS_HINTS:
        return _CLASS_HINTS[kind]
    if status == 429 and "quota" in message.lower():
        return "the account's quota is used up: look at its plan, or run again later"
    if status is not None and status >= 500:
        return "the server failed: run again later, or allow more --timeout or --retries"
    return _HINTS.get(status or 0)

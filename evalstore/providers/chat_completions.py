"""Encodes requests in OpenAI's chat completions format, and decodes its replies.

A request that this format cannot express is refused before anything is sent, so that a model is
never asked less than the test requires.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from pathlib import PurePosixPath

from evalstore.core.display import storable
from evalstore.core.hashing import is_deeper
from evalstore.core.values import (
    FilePart,
    Json,
    OutgoingMessage,
    Reply,
    Request,
    Text,
    ToolCall,
    ToolVersion,
)
from evalstore.files.access import ADDRESS
from evalstore.providers.base import FILTERED, ProviderError
from evalstore.providers.errors import WITHHELD, clean, require_finished
from evalstore.providers.price_table import read_usage

AUDIO_FORMATS = {
    "audio/wav": "wav",
    "audio/wave": "wav",
    "audio/x-wav": "wav",
    "audio/vnd.wave": "wav",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
}

SHORTEST_KEY = 8
"""A shorter key may be an ordinary word of an answer, such as `none` or `test`."""

CONTENT_FILTER = "content_filter"
_FILTERED = re.compile(
    r"content[_-]?filter(ed)?|guardrail_intervened|refusal|error_toxic|sensitive"
    # Gemini's
    r"|safety|image_safety|prohibited_content|recitation|blocklist|language|spii",
    re.IGNORECASE,
)
"""Finish reasons of an answer that the provider's filter withheld."""

_MOST_LEVELS = 100
"""The most levels of nested arguments; deeper ones stay text, which every reader can handle."""

TEXT_PARTS = frozenset({"text", "output_text"})
PASSED_OVER = frozenset({"thinking", "redacted_thinking", "reasoning", "reference"})
"""Types of parts that accompany an answer: the model's reasoning, and Mistral's references."""
OTHER_MEDIA = ("audio", "images")
"""Fields of a message that hold an answer which is not text."""

Body = dict[str, Json]


def encode_request(
    request: Request,
    *,
    supports_structured_outputs: bool = True,
    limit_name: str = "max_tokens",
) -> Body:
    """Return the body of a call; settings without a value are left to the provider.

    `limit_name` is the field for the limit of output tokens. Provider options come last: they
    replace any field, and one of null takes it away. Their tools join those of the test.
    """
    if request.provider_options.get("stream"):
        raise unsupported("the provider option 'stream' cannot be used: answers are not streamed")
    more_tools = request.provider_options.get("tools", [])
    if not isinstance(more_tools, list | None):
        raise unsupported("the provider option 'tools' must be a list")
    optional: dict[str, Json] = {
        "temperature": request.temperature,
        limit_name: request.max_output_tokens,
        "top_p": request.top_p,
        "seed": request.seed,
        "stop": list(request.stop) or None,
        "tools": [*map(encode_tool, request.tools), *(more_tools or ())] or None,
        "tool_choice": "auto" if request.tools else None,
        "response_format": encode_response_format(request, supports_structured_outputs),
    }
    options = {name: value for name, value in request.provider_options.items() if name != "tools"}
    return {
        "model": request.code,
        "messages": [encode_message(message) for message in request.messages],
        **{name: value for name, value in (optional | options).items() if value is not None},
    }


def encode_message(message: OutgoingMessage) -> Body:
    """Return a message; its content is plain text unless the message contains files."""
    files = [part for part in message.parts if isinstance(part, FilePart)]
    named: Body = {"name": message.name} if message.name else {}
    if not files:
        return {"role": message.role, "content": message.text, **named}
    if message.role != "user":
        raise unsupported(
            f"'{files[0].path}' cannot be shown in a message of the role '{message.role}': "
            "models take files from the user only"
        )
    parts = [part for part in message.parts if part != Text("")]
    return {"role": message.role, "content": [encode_part(part) for part in parts], **named}


def encode_part(part: Text | FilePart) -> Body:
    """Return a text, or a file with its bytes, as a part of a message."""
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if part.media_type == ADDRESS:
        return {"type": "image_url", "image_url": {"url": part.data.decode()}}
    data = base64.b64encode(part.data).decode()
    url = f"data:{part.media_type};base64,{data}"
    if part.media_type.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": url}}
    if part.media_type == "application/pdf":
        name = PurePosixPath(part.path).name
        return {"type": "file", "file": {"filename": name, "file_data": url}}
    if part.media_type in AUDIO_FORMATS:
        audio = {"data": data, "format": AUDIO_FORMATS[part.media_type]}
        return {"type": "input_audio", "input_audio": audio}
    raise unsupported(
        f"'{part.path}' is of the type '{part.media_type}', which cannot be sent to a model: "
        "images, PDF, WAV and MP3 can"
    )


def encode_tool(tool: ToolVersion) -> Body:
    """Return the definition of a function that the model may call."""
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    return {"type": "function", "function": function}


def encode_response_format(request: Request, supports_structured_outputs: bool) -> Body | None:
    """Return the format to request for the answer; None if none is requested.

    `strict` is off: OpenAI's strict mode takes only schemas without optional properties
    and answers 400 to all others, the judge's own among them. Servers that constrain
    the output by a grammar do so either way, and every answer is validated when it comes.
    """
    if request.schema is not None and supports_structured_outputs:
        schema = {"name": "response", "schema": request.schema, "strict": False}
        return {"type": "json_schema", "json_schema": schema}
    if request.schema is not None or request.json_mode:
        return {"type": "json_object"}
    return None


def dump(body: Body) -> bytes:
    """Return the body as JSON; raises `ProviderError` for values that JSON or UTF-8 cannot hold."""
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError as problem:
        raise unsupported(
            "the request contains half of a surrogate pair, which is not a character "
            f"(U+{ord(problem.object[problem.start]):04X})"
        ) from problem
    except ValueError as problem:
        raise unsupported(
            "the request contains a number that JSON does not allow, such as NaN"
        ) from problem


def decode_reply(
    document: Json,
    *,
    latency: float,
    request_id: str | None = None,
    api_key: str | None = None,
    wait: float = 0.0,
    cost: float | None = None,
) -> Reply:
    """Return the reply in the body of a successful answer, with `***` in place of the key.

    `request_id` is the id from the headers. It takes precedence over the id in the body, because
    the provider's support asks for it.
    """
    match document:
        case {"choices": [{"message": dict(message)} as choice, *_]}:
            pass
        case _:
            shown = f": {dump(document).decode()}" if document else ""
            raise malformed(clean(f"the server's answer has no message{shown}"))
    finish_reason = _finish_reason(choice)
    text = _content(message)
    refusal = _text_field(message, "refusal") or None
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list):
        raise malformed("the tool calls in the server's answer are not a list")
    if not calls and message.get("function_call"):  # the legacy field
        calls = [{"function": message["function_call"]}]
    if is_filtered(document):
        finish_reason = CONTENT_FILTER
        if refusal is None and not calls and not (text and text.strip()):
            refusal = WITHHELD
    reply = Reply(
        text=text,
        tool_calls=tuple(_tool_call(call) for call in calls),
        finish_reason=finish_reason,
        refusal=refusal,
        usage=read_usage(document.get("usage"), is_empty=not (text or calls)),
        resolved_model=_text(document.get("model")),
        request_id=_text(request_id) or _text(document.get("id")),
        latency=latency,
        wait=wait,
        cost=cost,
    )
    return reply if api_key is None or len(api_key) < SHORTEST_KEY else redact(reply, api_key)


def is_filtered(document: Json) -> bool:
    """Return whether a document is an answer of which the provider's filter withheld something.

    Its finish reason may be that of the provider behind a router. Some send it with the status 400.
    """
    match document:
        case {"choices": [{"message": dict(), **choice}, *_]}:
            reasons = (choice.get(name) for name in ("finish_reason", "native_finish_reason"))
            return any(isinstance(each, str) and _FILTERED.fullmatch(each) for each in reasons)
    return False


def refused_prompt(error: ProviderError, latency: float) -> Reply:
    """Return the reply of a provider whose filter refused the prompt; raises any other error."""
    if error.kind != FILTERED:
        raise error
    return Reply(None, finish_reason=CONTENT_FILTER, refusal=error.message, latency=latency)


def redact(reply: Reply, secret: str) -> Reply:
    """Return the reply with `***` in place of a secret, because replies are stored and shown."""
    return replace(
        reply,
        text=_hide(reply.text, secret),
        tool_calls=tuple(
            ToolCall(_hide(call.name, secret), _hide(call.arguments, secret))
            for call in reply.tool_calls
        ),
        finish_reason=_hide(reply.finish_reason, secret),
        refusal=_hide(reply.refusal, secret),
        resolved_model=_hide(reply.resolved_model, secret),
        request_id=_hide(reply.request_id, secret),
    )


def _hide(value: Json, secret: str) -> Json:
    if isinstance(value, str):
        return value.replace(secret, "***")
    if isinstance(value, list):
        return [_hide(inner, secret) for inner in value]
    if isinstance(value, dict):
        return {_hide(name, secret): _hide(inner, secret) for name, inner in value.items()}
    return value


def _finish_reason(choice: Body) -> str | None:
    """Return the finish reason; raises `ProviderError` when the provider failed.

    OpenRouter and litellm report the model's own finish reason beside theirs.
    """
    for name in ("finish_reason", "native_finish_reason"):
        require_finished(_text_field(choice, name))
    return _text_field(choice, "finish_reason")


def _text_field(fields: Body, name: str) -> str | None:
    """Return the text of a field, None when it is missing; raises `ProviderError` otherwise."""
    value = fields.get(name)
    if value and not isinstance(value, str):
        raise malformed(f"the field '{name}' in the server's answer is not text")
    return _text(value)


def _content(message: Body) -> str | None:
    """Return the text of a message, which some servers send in parts.

    Raises `ProviderError` when a part is not text: an incomplete answer must not be judged.
    """
    for name in OTHER_MEDIA:
        if message.get(name):
            raise _not_text(name)
    content = message.get("content")
    if isinstance(content, list):
        return _text("".join(map(_part, content)))
    if content is not None and not isinstance(content, str):
        raise malformed("the content of the server's answer is not text")
    return _text(content)


def _part(part: Json) -> str:
    match part:
        case {"type": str(kind)} if kind in PASSED_OVER:
            return ""
        case {"type": str(kind)} if kind not in TEXT_PARTS:
            raise _not_text(kind)
        case str(text) | {"text": str(text)}:
            return text
    raise malformed("a part of the server's answer is not text")


def _not_text(kind: str) -> ProviderError:
    """Return the error for an answer in another medium, which another try would repeat."""
    return ProviderError(
        "malformed", f"the server's answer holds '{clean(kind)[:60]}', and only text can be judged"
    )


def _tool_call(call: Json) -> ToolCall:
    match call:
        case {"function": {"name": str(name), **function}}:
            return ToolCall(_text(name) or "", _arguments(function.get("arguments")))
    raise malformed("a tool call in the server's answer has no name")


def _arguments(arguments: Json) -> Json:
    """Return arguments as JSON; as the original text when they cannot be stored as JSON."""
    if arguments is None or arguments == "":
        return {}
    try:
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    except (ValueError, RecursionError):
        raise malformed("the arguments of a tool call are nested too deeply") from None
    try:
        parsed = json.loads(text)
        json.dumps(parsed, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return _text(text)
    return _text(text) if is_deeper(parsed, _MOST_LEVELS) else parsed


def _text(value: Json) -> str | None:
    """Return a text as it can be stored; None for any other value."""
    return storable(value) if isinstance(value, str) else None


def malformed(message: str) -> ProviderError:
    """Return the error for an unreadable answer; another try may succeed."""
    return ProviderError("malformed", message, retry=True)


def unsupported(message: str) -> ProviderError:
    """Return the error for a request that cannot be sent."""
    return ProviderError("unsupported", message)

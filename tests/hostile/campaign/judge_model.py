"""A judge on the loopback server that says what a trial wants it to say."""

from __future__ import annotations

import json
import re
from typing import Any

_CODE = re.compile(r'"code": "([0-9a-f]{6,})"')


def code_of(body: dict[str, Any]) -> str | None:
    """The code that a verdict must repeat, where the request demands one."""
    actual = [_CODE.findall(text) for text in _texts(body)]
    codes = [code for codes in actual for code in codes]
    return codes[-1] if codes else None


def verdict(body: dict[str, Any], passed: bool, **fields: Any) -> str:
    """A whole verdict in the form that the request asks for."""
    code = code_of(body)
    named = {"code": code} if code else {}
    return json.dumps({**named, "pass": passed, "feedback": "", **fields})


def _texts(body: dict[str, Any]) -> list[str]:
    contents = [message.get("content") or "" for message in body["messages"]]
    return [content if isinstance(content, str) else json.dumps(content) for content in contents]

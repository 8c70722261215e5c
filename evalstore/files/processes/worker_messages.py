"""The lines that are exchanged with a worker: each request is answered by a reply of its number."""

from __future__ import annotations

import json
from typing import Any

from evalstore.core.values import Json


def request_line(request: Json, number: int) -> bytes:
    """Return the line of a request."""
    return json.dumps({**request, "number": number}).encode() + b"\n"


def read_reply(line: bytes | bytearray, number: int) -> dict[str, Any] | None:
    """Return the reply to the request of this number; None if the line is anything else."""
    try:
        reply = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return reply if isinstance(reply, dict) and reply.get("number") == number else None

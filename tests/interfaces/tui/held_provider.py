"""A provider that holds its answers back, so that a run stands still half-way."""

from __future__ import annotations

import asyncio
from pathlib import Path

from evalstore.core.values import Reply, Request, Usage


class HeldProvider:
    """Answers for the candidate `HELD` when the file `RELEASE` exists, for all others at once.

    What it says is an answer as well as a judgement.
    """

    RELEASE = "release.txt"
    HELD = "two"

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        """Wait, then answer."""
        while request.code.endswith(self.HELD) and not Path(self.RELEASE).exists():
            await asyncio.sleep(0.01)
        return Reply('{"pass": true, "feedback": ""}', finish_reason="stop", usage=Usage(1, 1))

    async def close(self) -> None:
        """Nothing is open."""

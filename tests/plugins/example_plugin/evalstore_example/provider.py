"""The provider `reverser`: a model that says the last message backwards.

A model file names it:

    id: backwards
    provider: reverser
    providerModelCode: letters     # or `words`
"""

from __future__ import annotations

from evalstore.plugins import ProviderError, Reply, Request


class Reverser:
    """A `Provider`: one is made for each model, with the model's code."""

    def __init__(self, model: str) -> None:
        self._model = model

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        """Make one call; any failure is a `ProviderError`, and retries are evalstore's."""
        text = request.messages[-1].text
        if self._model == "letters":
            return Reply(text[::-1], finish_reason="stop")
        if self._model == "words":
            return Reply(" ".join(text.split()[::-1]), finish_reason="stop")
        raise ProviderError("status", f"unknown model '{self._model}'", stops_model=True)

    async def close(self) -> None:
        """Give back connections; there are none."""

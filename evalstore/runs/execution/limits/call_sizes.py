"""Estimates how many tokens the next call of a model uses, from those of the calls before it.

The limit of tokens a minute holds for what is sent and what is answered, and how long an answer is
can only be known after the call. Calls differ from their estimate by their input, too, because
providers count tokens in another way.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from evalstore.runs.execution.limits.budget import OUTPUT_GUESS, count_input, count_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalstore.core.values import Reply, Request
    from evalstore.runs.execution.limits.retry_policy import ModelKey

_MOST_COUNTED = 50
"""The mean follows the last calls: each counts for a fiftieth of it or more."""
_STORED = 10
"""The mean of the stored answers counts as that of so many calls."""
_GUESSED = 3
"""So many calls are assumed to be as long as an answer of which nothing is known."""


class CallSizes:
    """The tokens of the calls of each model."""

    def __init__(self) -> None:
        self._means: dict[ModelKey, float] = {}
        """Model -> the mean of the tokens that calls used beyond the estimate of their input."""
        self._counts: dict[ModelKey, int] = {}
        self._called: set[ModelKey] = set()
        """The models of which a call has ended."""
        self._first_calls: dict[ModelKey, asyncio.Event] = {}
        """Model -> what is set when the only call of it in flight has ended."""

    def begin(self, outputs: Mapping[ModelKey, int]) -> None:
        """Begin with the mean output tokens of the stored answers of each model."""
        self._means |= outputs
        self._counts |= dict.fromkeys(outputs, _STORED)

    def is_known(self, model: ModelKey) -> bool:
        """Return whether a call of this model has ended before, if only with a failure."""
        return model in self._means or model in self._called

    async def wait_until_known(self, model: ModelKey) -> None:
        """Let one call of a model go first, and the others wait until it has ended.

        So a model whose answers are very long does not use many times the limit before the first
        of them is there. Whoever returns while the size is not known must call `end`.
        """
        while not self.is_known(model):
            if (first := self._first_calls.get(model)) is None:
                self._first_calls[model] = asyncio.Event()
                return
            await first.wait()

    def end(self, model: ModelKey, *, was_called: bool) -> None:
        """Let the other calls of a model go on, or the next one first if this was not made.

        Also after a failure, so that calls to a model that never answers are soon stopped.
        """
        if was_called:
            self._called.add(model)
        if first := self._first_calls.pop(model, None):
            first.set()

    def estimate(self, model: ModelKey, request: Request) -> int:
        """Return how many tokens a call uses, sent and answered: rather too many, if few are known.

        The first answers can all be short.
        """
        mean, count = self._means.get(model, 0.0), self._counts.get(model, 0)
        guess = min(OUTPUT_GUESS, request.max_output_tokens or OUTPUT_GUESS)
        answered = (guess * _GUESSED + mean * count) / (_GUESSED + count)
        return max(1, round(count_input(request) + max(mean, answered)))

    def note(self, model: ModelKey, request: Request, reply: Reply, most: float) -> int:
        """Note a call that was answered; returns how many tokens it has used.

        What the provider does not say, or counts as 0, is estimated from the texts. No call counts
        for more than `most`.
        """
        sent, usage = count_input(request), reply.usage
        used = usage.input_tokens or sent
        used += usage.output_tokens or count_text(reply.text or "")
        count = self._counts[model] = min(self._counts.get(model, 0) + 1, _MOST_COUNTED)
        mean = self._means.get(model, 0.0)
        self._means[model] = mean + (min(used, most) - sent - mean) / count
        return used

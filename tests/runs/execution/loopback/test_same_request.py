"""Spellings that send the same request are versions of their own, as docs/concepts.md says."""

from __future__ import annotations

import pytest

from tests.runs.execution.loopback.conftest import Place

PROVIDER, MODEL, TEST = "providers/loopback.yaml", "models/one.yaml", "tests/one.md"
SPELLINGS = {
    "structured outputs": (PROVIDER, "", "supportsStructuredOutputs: false\n"),
    "thinking": (MODEL, "thinking: low\n", "thinking: {effort: low}\n"),
    "temperature": (
        MODEL,
        "",
        "providerOptions: {temperature: null}\n",
    ),
}


@pytest.mark.parametrize(("file", "spelling", "other"), SPELLINGS.values(), ids=SPELLINGS.keys())
def test_another_spelling_of_the_same_request_asks_once_more(
    place: Place, file: str, spelling: str, other: str
) -> None:
    files = {
        PROVIDER: (place.root / PROVIDER).read_text(),
        MODEL: (place.root / MODEL).read_text(),
        TEST: "# 👤\n\nHi\n\n---\n\n~~~checks\n- contains: Hi\n~~~\n",
    }

    def spelled(words: str) -> dict[str, str]:
        before = words + files[file] if file == TEST else files[file] + words
        return files | {file: before}

    place.write(spelled(spelling))
    assert place.run().counts == (1, 1, 0)
    place.write(spelled(other))
    assert place.run().counts == (1, 1, 0)
    first, second = place.server.received
    assert first.body == second.body
    place.write(spelled(spelling))
    assert place.run().counts == (0, 0, 0)
    place.write(spelled(other))
    assert place.run().counts == (0, 0, 0)

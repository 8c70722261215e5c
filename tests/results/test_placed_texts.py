"""Texts with their places, sorted in a temporary file."""

from __future__ import annotations

import pytest

from evalstore.results.search.text_places import PlacedTexts, TextPlace


@pytest.mark.parametrize("place", [("tests/a.md", "row", ("m",)), (None, "", ())])
def test_texts_of_one_place_are_sorted_in_the_file_and_in_memory(
    monkeypatch: pytest.MonkeyPatch, place: tuple[str | None, str, tuple[str, ...]]
) -> None:
    ids = [f"{number:032x}" for number in range(10)]  # two are not filed
    placed = PlacedTexts()
    placed.add(("answers", id, TextPlace((id, "s"), *place)) for id in reversed(ids))
    assert [(kind, id) for kind, id, _ in placed] == [("answers", id) for id in ids]
    assert [(each.file, each.row, each.models) for *_, each in placed] == [place] * 10
    assert [each.sessions for *_, each in placed] == [(id, "s") for id in ids]

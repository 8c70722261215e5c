"""Hints on names of models that a workspace does not have."""

from __future__ import annotations

from typing import Any

from evalstore.planning.participants import no_such_model
from evalstore.workspace.reader import Reading
from evalstore.workspace.settings.settings import Participant, Settings


def test_a_name_that_only_the_settings_have_is_not_suggested_for_itself() -> None:
    known: Any = {"one": None}
    nothing: Any = None
    reading = Reading(references=nothing, models=known)
    settings = Settings(candidates=(Participant("vic"), Participant("vice")))
    assert no_such_model("vic", "candidates", reading, settings).hint == "did you mean 'vice'?"
    alone = no_such_model("vic", "candidates", reading, Settings(candidates=(Participant("vic"),)))
    assert alone.hint
    assert "did you mean" not in alone.hint

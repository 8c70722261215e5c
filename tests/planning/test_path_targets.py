"""Which test file is meant by a name."""

from __future__ import annotations

from pathlib import Path
from typing import Literal
from unicodedata import normalize

import pytest

from evalstore.planning.open_project import open_workspace
from evalstore.planning.options import Location
from evalstore.planning.selection import place_paths

Form = Literal["NFC", "NFD"]


@pytest.mark.parametrize("stored", ["NFC", "NFD"])
@pytest.mark.parametrize("typed", ["NFC", "NFD"])
def test_a_name_with_accents_is_found_in_either_form_of_unicode(
    stored: Form, typed: Form, tmp_path: Path
) -> None:
    (tmp_path / "evalstore.yaml").write_text("{}\n", encoding="utf-8")
    location = Location(tmp_path)
    workspace = open_workspace(location)
    file = normalize(stored, "tests/été.md")
    named = (normalize(typed, "tests/été.md"),)
    assert place_paths(location, workspace, [file], named) == (file,)

"""The files of facts are complete: ids are unique, and every kind of case has a test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_every_id_is_used_once(path: Path) -> None:
    parts = json.loads(path.read_text("utf-8")).values()
    items = [item for part in parts if isinstance(part, list) for item in part]
    ids = [item["id"] for item in items if isinstance(item, dict)]
    assert ids
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", ["langbite", "lve"])
def test_every_kind_has_a_test(name: str) -> None:
    facts = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    source = (FOLDER / f"test_{name}.py").read_text("utf-8")
    kinds = [case["kind"] for case in facts["cases"]]
    assert [kind for kind in kinds if f'cases("{kind}"' not in source] == []

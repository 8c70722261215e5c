"""Imports in tests, and what the checks of an imported test say of an answer."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evalstore.bound_checks import settle
from evalstore.checklist import take_block
from evalstore.checks.base import Subject
from evalstore.checks.reading import read_check, split
from evalstore.checks.registry import find_kind
from evalstore.checks.running import Outcome, run_check
from evalstore.dataset import read_dataset
from evalstore.dataset.spec import DatasetSpec
from evalstore.formats.base import Imported, Options
from evalstore.formats.registry import find_importer
from evalstore.markdown import cut, scan
from evalstore.values import Json, Reply
from evalstore.yaml_core import Document, split_frontmatter
from tests.builders import Files, tree


def imported(path: Path, format: str, files: Files, *given: str, name: str = "from") -> Imported:
    """What an importer makes of some files; of the whole folder if none of them is named."""
    folder = tree(path / "source", files)
    return find_importer(format)([folder / one for one in given] or [folder], Options(name))


def lines(*values: Json) -> str:
    """JSON lines."""
    return "".join(json.dumps(value) + "\n" for value in values)


def text(made: Imported, path: str) -> str:
    """A written file as text."""
    return made.files[path].decode()


def left(made: Imported) -> list[tuple[str, int | None, str]]:
    """What was left: the file's name, the line and the reason."""
    return [(Path(one.file).name, one.line, one.reason) for one in made.left]


def rows(made: Imported, path: str) -> list[Any]:
    """The rows of a test's dataset."""
    document = _frontmatter(made, path)
    given = document.value["dataset"]
    name = given if isinstance(given, str) else given["path"]
    content = made.files[f"{path.rpartition('/')[0]}/{name}"]
    found = read_dataset(DatasetSpec(name), lambda: io.BytesIO(content), name)
    return [row.item for row in found]


def _frontmatter(made: Imported, path: str) -> Document:
    document = split_frontmatter(text(made, path))[0]
    assert document is not None
    return document


def judged(made: Imported, path: str, reply: Reply | str, row: int = 0) -> list[Outcome]:
    """What each check of a test says of an answer in a row."""
    answer = Reply(reply) if isinstance(reply, str) else reply
    _, body, first = split_frontmatter(text(made, path))
    _, checks = take_block(cut(list(scan(body, first)))[1])
    assert checks is not None
    item = rows(made, path)[row] if "dataset" in _frontmatter(made, path).value else {}
    found = []
    for entry in checks.entries:
        filled = [[list(place), one] for place, one in _templates(entry.given, ())]
        name, _ = split(entry.given, entry.line)
        kind = find_kind(name)
        assert kind is not None
        check = {
            "type": name,
            "revision": kind.revision,
            "given": entry.given,
            "templates": filled,
            "values": {"item": item, **dict(item)},
        }
        settled = settle(check, [answer], None) if filled else read_check(entry.given)
        actual = settled.get("actual", answer.text or "")
        found.append(run_check(settled, Subject(answer, actual)))
    return found


def verdict(made: Imported, path: str, reply: Reply | str, row: int = 0) -> str:
    """What the only check of a test says of an answer."""
    (outcome,) = judged(made, path, reply, row)
    return outcome.verdict


def _templates(value: Json, place: tuple[str | int, ...]) -> Iterator[tuple[Any, str]]:
    if isinstance(value, str):
        if "{{" in value:
            yield place, value
    elif isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in pairs:
            yield from _templates(inner, (*place, key))

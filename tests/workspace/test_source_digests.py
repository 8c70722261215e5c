"""The digests by which a run tells later what was edited since."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalstore.core.runs import RunSources
from evalstore.planning.open_project import open_project
from evalstore.planning.options import Location
from evalstore.workspace import reader
from evalstore.workspace.reader import read_sources
from tests.builders import tree

TEST = "# 👤\n\nHello\n\n---\n\n```checks\n- contains: o\n```\n"
MODEL = "id: scripted/one\nprovider: scripted\nresponses: [{answer: ok}]\n"
OF_DATA = "---\ndataset: {path: '%s'}\n---\n\n# 👤\n\nHello {{name}}\n\n---\n\nIt must greet.\n"


def write(folder: Path, files: dict[str, str]) -> Location:
    settings = "candidates: [scripted/one]\ndatasetRoots: {'shared://': data, 'far://': ../far}\n"
    tree(folder, {"evalstore.yaml": settings, "models/one.yaml": MODEL, **files})
    return Location(folder, allow_outside=True)


def read(location: Location) -> RunSources:
    with open_project(location, create=True) as project:
        assert not project.reading.errors
        return read_sources(project.workspace, project.reading)


def test_data_is_named_by_its_path_in_the_workspace_and_else_as_it_is_written(
    tmp_path: Path,
) -> None:
    location = write(
        tmp_path / "w",
        {
            "../far/names.csv": "name\nAda\n",
            "data/names.csv": "name\nBob\n",
            "tests/in/names.csv": "name\nEve\n",
            "tests/in/a.md": OF_DATA % "./names.csv",
            "tests/b.md": OF_DATA % "shared://names.csv",
            "tests/c.md": OF_DATA % "far://names.csv",
            "tests/d.md": TEST,
        },
    )
    sources = read(location)
    assert {test: [*used] for test, used in sources.tests.items()} == {
        "tests/b.md": ["test", "dataset:data/names.csv"],
        "tests/c.md": ["test", "dataset:far://names.csv"],
        "tests/in/a.md": ["test", "dataset:tests/in/names.csv"],
    }
    assert sources.of("tests/d.md") == {}


def test_of_very_many_files_those_with_data_are_noted_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompted = TEST.replace("# 👤", "---\nsystemPrompts: [kind]\n---\n\n# 👤", 1)
    files = {f"tests/{name}.md": prompted for name in "abc"}
    files |= {"prompts/kind.md": "Be kind.\n", "tests/n.csv": "name\nAda\n"}
    location = write(tmp_path / "w", {**files, "tests/z.md": OF_DATA % "n.csv"})
    assert (len(read(location).tests), read(location).is_cut) == (4, False)
    monkeypatch.setattr(reader, "MOST_DIGESTS", 4)
    sources = read(location)
    assert ([*sources.tests], sources.is_cut) == (["tests/z.md", "tests/a.md"], True)
    assert sources.of("tests/b.md") is None

"""Many results, rows and texts are in a temporary file, and are read as if in a list."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import pytest

from evalstore import Workspace, to_json
from evalstore.files import temporary_list
from evalstore.files.temporary_list import PackedSequence


@pytest.fixture
def ran(workspace: Workspace) -> Workspace:
    workspace.run()
    return workspace


@pytest.fixture
def short_lists(ran: Workspace) -> Iterator[pytest.MonkeyPatch]:
    """In which one value is few."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(temporary_list, "_FEW", 1)
        yield patch


def test_results_rows_and_texts_are_those_of_a_list(
    ran: Workspace, short_lists: pytest.MonkeyPatch
) -> None:
    many = (ran.results(), ran.to_rows(), ran.to_rows(None), ran.search("hello"))
    short_lists.undo()
    few = (ran.results(), ran.to_rows(), ran.to_rows(None), ran.search("hello"))
    for filed, listed in zip(many, few, strict=True):
        assert (type(filed), type(listed), len(listed)) == (PackedSequence, list, len(filed))
    assert (many[0], many[1], many[3]) == (few[0], few[1], few[3])
    assert [row["verdict"] for row in many[2]] == [row["verdict"] for row in few[2]]
    assert [*map(hash, many[0])] == [*map(hash, few[0])]
    assert [*map(hash, many[3])] == [*map(hash, few[3])]


def test_a_result_from_a_file_can_be_passed_on(
    ran: Workspace, short_lists: pytest.MonkeyPatch
) -> None:
    (failed,) = (result for result in ran.results() if result.verdict == "fail")
    assert ran.answer(failed).row == failed.row
    assert ran.explain(failed).verdict == "fail"
    assert [label.now for label in ran.label(ran.results(), "pass", by="Ada")] == ["pass"] * 2


def test_many_matches_are_an_array_in_json(ran: Workspace, short_lists: pytest.MonkeyPatch) -> None:
    filed = to_json(ran.search("hello"))
    short_lists.undo()
    assert filed == to_json(ran.search("hello"))


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_a_data_frame_of_many_rows_is_that_of_a_list(
    ran: Workspace, short_lists: pytest.MonkeyPatch, name: str
) -> None:
    library: ModuleType = pytest.importorskip(name)
    frame = library.DataFrame(ran.to_rows())
    short_lists.undo()
    rows = ran.to_rows()
    assert frame.equals(library.DataFrame(rows))
    assert frame.shape == (2, len(rows[0]))

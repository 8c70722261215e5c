"""Many cells are the same in a list and in a stream."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.core import hashing
from evalstore.core.values import Case, CaseFile, Json
from evalstore.planning import cells
from evalstore.planning.cells import (
    Candidate,
    Judge,
    StreamedCells,
    batches,
    place_cases,
    take_first,
)
from evalstore.planning.selection import Selection
from evalstore.store.contents import decode_content
from evalstore.store.trees import case_chunks, tree_nodes
from evalstore.store.trees.case_chunks import build_case_tree, collect
from evalstore.store.trees.tree_nodes import StoredCases
from tests.builders import build_cells

IDS = [hashing.hash_content(str(number)) for number in range(400)]
ROWS = 100
CANDIDATES = (
    Candidate("one", IDS[0], None),
    Candidate("two", IDS[1], 0.5, required_tags=("x",)),
    Candidate("blind", IDS[2], None, lacks=lambda needs: needs, prohibited_tags=("y",)),
)
JUDGES = (Judge("judge", "e1", "p"), Judge("other", "e2", "p", prohibited_tags=("x",)))


def treat_as_long(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cells, "BATCH", 10)
    for module in (case_chunks, tree_nodes):
        patch.setattr(module, "MAX_PART", 8)


def stored(file: CaseFile) -> CaseFile:
    """The file with its cases in a tree, as those of a very long one are read."""
    contents: dict[str, tuple[str, str]] = {}
    root = build_case_tree(file, collect(contents))

    def load(ids: Iterable[str]) -> dict[str, Json]:
        return {id: decode_content("nodes", id, contents[id][1], "cases") for id in ids}

    return CaseFile(StoredCases(root, load([root])[root], load), file.attempts, file.evaluators)


def case(number: int, fields: dict[str, object]) -> Case:
    shared = {"tests": (IDS[number],), "evaluation": IDS[-1], "tags": (), "prompts": (None,)}
    return Case(f"row {number}", f"{number:016x}", **(shared | fields))  # type: ignore[arg-type]


FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "tags": st.sampled_from([("x",), ("x", "y"), ("z",)]),
        "prompts": st.sampled_from([(None, IDS[3]), (IDS[3],), ()]),
        "tests": st.sampled_from([(IDS[300],), (IDS[301], IDS[302]), (IDS[303], IDS[303])]),
        "evaluation": st.none(),
        "judged_by": st.sampled_from([("checks",), ("checks", "models")]),
        "needs": st.just(("image",)),
        "recorded": st.just(IDS[5]),
        "judge_prompts": st.just((IDS[4],)),
    },
)


def facts(cells: StreamedCells) -> tuple[object, ...]:
    return (
        len(cells),
        cells.skipped,
        {*cells.judges.values()},
        [*cells.unjudged],
        cells.has_others,
        {id for cell in cells for id in cell.questions if id in cells.shared},
    )


@given(
    st.dictionaries(st.integers(0, ROWS - 1), FIELDS, max_size=6),
    st.sampled_from([(), ("z",)]),
    st.integers(1, ROWS + 3),
)
def test_the_first_cases_with_a_candidate_are_taken_alike_in_a_list_and_in_a_stream(
    odd: dict[int, dict[str, object]], wanted: tuple[str, ...], most: int
) -> None:
    cases = tuple(case(number, odd.get(number, {})) for number in range(ROWS))
    short = CaseFile((case(ROWS, {}), case(ROWS + 1, {"tags": ("z",)})))
    selected = Selection(tags=wanted).matcher()
    with pytest.MonkeyPatch.context() as patch:
        treat_as_long(patch)
        files = {"a.md": stored(CaseFile(cases, 2)), "b.md": short}
        arguments = (files, CANDIDATES, JUDGES, selected)
        whole, skipped = build_cells(*arguments, most=most)
        streamed = StreamedCells(lambda: take_first(place_cases(*arguments, by_row=False), most))
        assert [*streamed] == whole
        assert streamed.skipped == skipped
        assert len({(cell.file, cell.number) for cell in whole}) <= most


@pytest.mark.parametrize(("attempts", "sizes"), [(1, [6, 4]), (2, [3, 3, 3, 1]), (7, [1] * 10)])
def test_a_long_file_is_split_by_the_number_of_its_attempts(
    attempts: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalstore.planning.cells.BATCH", 3)
    file = CaseFile(tuple(case(number, {}) for number in range(10)))
    cells, _ = build_cells({"a.md": file}, CANDIDATES[:1], (), lambda *_: True, attempts=attempts)
    assert [len(batch) for batch in batches(cells)] == sizes

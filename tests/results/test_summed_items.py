"""Items of a plan in a file are the list they would be in memory, also summed up."""

from __future__ import annotations

import copy
import pickle
import random

import pytest

from evalstore.core import batches
from evalstore.planning.plan import FiledItems, PlanItem, SummedItems, summed


def _items(choice: random.Random, kinds: tuple[str, ...], file: str) -> list[PlanItem]:
    """Items of some cells; those of a cell are of one kind and stand together."""
    items: list[PlanItem] = []
    for number in range(9):
        kind = choice.choice(kinds)
        for _ in range(choice.randint(1, 4)):
            evaluator = choice.choice(("checks", "judge")) if kind == "judge" else None
            why = choice.choice(("new test", "test changed: a -> b"))
            also = choice.choice(((), ("checks",)))
            values = choice.choice(((None, None), ("a", "b")))
            count = choice.randint(1, 3)
            row = f"row {number}"
            items.append(
                PlanItem(
                    kind,
                    file,
                    row,
                    None,
                    "one",
                    evaluator,
                    count,
                    why,
                    values[0],
                    values[1],
                    None,
                    "",
                    also,
                )
            )
    return items


@pytest.fixture(params=range(5))
def both(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> tuple[FiledItems, list[PlanItem]]:
    """The same items in a file and in memory."""
    monkeypatch.setattr(batches, "SIZE", 7)
    choice = random.Random(request.param)
    filed, asked, judged = FiledItems(), list[PlanItem](), list[PlanItem]()
    for number in range(choice.randint(0, 4)):
        asks = _items(choice, ("ask", "record"), f"{number}.md")
        judgements = _items(choice, ("judge",), f"{number}.md")
        filed.add(asks, judgements)
        asked += asks
        judged += judgements
    return filed, asked + judged


def test_items_in_a_file_are_read_like_a_list(both: tuple[FiledItems, list[PlanItem]]) -> None:
    filed, listed = both
    assert (len(filed), [*filed], bool(filed)) == (len(listed), listed, bool(listed))
    assert filed == listed
    assert filed != [*listed, *listed[:1], PlanItem("ask", "b", "", None, "", None, 1, "", "", "")]
    for part in (slice(3), slice(2, None, 3), slice(-4, None), slice(None, None, -1)):
        assert filed[part] == listed[part]
    for number in range(-len(listed), len(listed)):
        assert filed[number] == listed[number]
    for number in (len(listed), -len(listed) - 1):
        with pytest.raises(IndexError):
            filed[number]
    assert [*reversed(filed)] == listed[::-1]
    for copied in (copy.deepcopy(filed), pickle.loads(pickle.dumps(filed))):
        assert (type(copied), copied) == (list, listed)


@pytest.mark.parametrize("kind", ["ask", "record", "judge"])
def test_summed_items_are_the_same_from_a_file(
    both: tuple[FiledItems, list[PlanItem]], kind: str
) -> None:
    filed, listed = (SummedItems(items, kind) for items in both)
    assert [*filed] == [*listed] == summed(item for item in both[1] if item.kind == kind)
    assert len(filed) == len(listed)
    assert [filed[number] for number in range(len(filed))] == [*listed]
    assert filed[-3:] == listed[-3:]
    assert [*filed.files] == [*listed.files]
    assert [*filed.models] == [*listed.models]
    assert (filed.total, filed.by_checks) == (listed.total, listed.by_checks)
    assert filed.total == sum(item.count for item in both[1] if item.kind == kind)

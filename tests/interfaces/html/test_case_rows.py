"""The rows of the table are the same from the file as from a list, and so are the chosen ones."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from evalstore.core import batches
from evalstore.core.values import URGENCY
from evalstore.interfaces.html.case_table import CHANGES, CasePlaces, CaseRows, TableRow


def _row(random: Random, number: int) -> TableRow:
    models = random.sample(range(3), random.randrange(4))
    cells = {
        model: [
            random.choice(URGENCY),
            random.choice(("", *CHANGES)),
            random.choice(("", "No.")),
            "",
        ]
        for model in models
    }
    label = random.choice(("a", "\x1b[1m", "ü"))
    row = f"{label} {number // 3}"
    return TableRow(number // 40, row, number % 3, "brief", [1, 2], cells, "What?")


def _choose(rows: list[TableRow], most: int) -> list[TableRow]:
    """The rows of whole cases, most urgent first, as one says it."""
    urgent = sorted(rows, key=lambda row: row.urgency)
    sizes = Counter(row.case for row in rows)
    chosen: set[tuple[int, str]] = set()
    for case in dict.fromkeys(row.case for row in urgent):
        if chosen and sum(sizes[each] for each in chosen) + sizes[case] > most:
            break
        chosen.add(case)
    return [row for row in urgent if row.case in chosen]


@pytest.mark.parametrize("seed", range(20))
def test_rows_in_a_file_are_those_that_were_added(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "SIZE", 3)
    random = Random(seed)
    expected = [_row(random, number) for number in range(random.randrange(90))]
    rows = CaseRows()
    for row in expected:
        rows.append(row)
    assert rows.read(range(len(rows))) == expected
    assert len(rows) == len(expected)
    assert rows.count_cases() == len({row.case for row in expected})
    assert rows.words == Counter(word for row in expected for word, *_ in row.cells.values())
    for most in (1, 2, 5, 12, 200):
        assert rows.choose(most) == _choose(expected, most)
    places = CasePlaces(["x.md", "y.md", "z.md"], rows.places)
    for number, row in enumerate(expected):
        assert places.find("xyz"[row.file] + ".md", row.row, row.prompt_number) == number
    assert places.find("x.md", "none", 0) is None
    assert places.find("none.md", "a 0", 0) is None


def test_labels_that_are_shown_with_escapes_have_an_address() -> None:
    rows = CaseRows()
    for label in ("a", "\x1b b/c"):
        rows.append(TableRow(0, label, 0, "", [], {}))
    assert rows.addresses == {"1": "%1B%20b%2Fc"}

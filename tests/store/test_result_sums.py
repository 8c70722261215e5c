"""Sums of SQL are those of the results, each answer and verdict once in a group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.core.errors import StoreError
from evalstore.core.values import RECORDED, VERDICTS, Case, Result
from evalstore.store import Store
from evalstore.store.rows.result_sums import ROOT, ResultSums, TemporaryRows
from evalstore.store.rows.row_tables import ANSWER_ROWS, JUDGEMENT_ROWS
from evalstore.store.schema.table_definitions import TableColumns
from evalstore.store.sqlite.connection import SQLiteConnection

GROUPINGS = [(), ("model",), ("prompt",), ("tag",), ("file",), ("tag", "model")]
IDS = [f"{number:032x}" for number in range(1, 8)]
"""Ids of answers and verdicts; those with an even number have no cost, the last is missing."""
CALLS = st.lists(st.sampled_from(IDS), max_size=3, unique=True).map(tuple)
TAGS = st.sampled_from([(), ("one",), ("one", "two")])


@st.composite
def cells(draw: st.DrawFn) -> list[tuple[Result, Case]]:
    made = []
    for file in "ab":
        for row in "xyz"[: draw(st.integers(0, 3))]:
            prompts = draw(st.sampled_from([(None,), (None, IDS[0])]))
            case = Case(row, "k", (IDS[0],), IDS[1], draw(TAGS), prompts)
            for number, prompt in enumerate(prompts):
                for model in "mn":
                    verdict = draw(st.sampled_from([*VERDICTS, None]))
                    calls = draw(CALLS), draw(CALLS)
                    cell = Result(
                        *(file, row, "k", number, prompt, model, IDS[0], IDS[1]),
                        *(verdict, None, *calls),
                    )
                    made.append((cell, case))
    return made


class Calls:
    """What the store has of answers and verdicts."""

    def find_rows(self, table: TableColumns, ids: Iterable[str]) -> list[tuple[Any, ...]]:
        known = [id for id in dict.fromkeys(ids) if id != IDS[-1]]
        return [row_of(table, bytes.fromhex(id), int(id, 16)) for id in known]


def row_of(table: TableColumns, id: bytes, number: int) -> tuple[Any, ...]:
    usd = None if number % 2 == 0 else number / 8
    if table is ANSWER_ROWS:
        return id, id, None, b"m" * 16, number, usd, number / 4, *[None] * 5
    if table is JUDGEMENT_ROWS:
        return id, usd, None, None, None, 0
    return id, b"e" * 16, b"s" * 16, b"v" * 16, number, "pass"


def keys_of(by: tuple[str, ...], cell: Result, case: Case) -> Iterator[tuple[str | None, ...]]:
    for tag in case.tags or (None,):
        known = {"model": cell.model, "prompt": cell.prompt, "file": cell.file, "tag": tag}
        yield tuple(known[name] for name in by)
        if "tag" not in by:
            return


@given(cells(), st.integers(1, 9))
def test_groups_are_those_of_the_results(listed: list[tuple[Result, Case]], at_once: int) -> None:
    rows = TemporaryRows()
    for start in range(0, len(listed), at_once):
        rows.add(cast("Store", Calls()), listed[start : start + at_once])
    sums = ResultSums(rows.connection, ROOT)
    answers, verdicts = (
        sums.sum_calls(GROUPINGS, int(IDS[3], 16), judgements=judgements)
        for judgements in (False, True)
    )
    for by in GROUPINGS:
        results: dict[Any, list[Result]] = {}
        for cell, case in listed:
            for key in keys_of(by, cell, case):
                results.setdefault(key, []).append(cell)
        clusters = list(sums.clusters(by))
        assert {each.key for each in clusters} == results.keys()
        for key, some in results.items():
            found = [each for each in clusters if each.key == key]
            passed = sum(each.passed * each.cases for each in found)
            assert passed == sum(cell.verdict == "pass" for cell in some)
            assert sum(each.judged * each.cases for each in found) == sum(
                cell.verdict is not None for cell in some
            )
            assert sum(each.cases for each in found) == len({(c.file, c.row) for c in some})
            assert sum(each.results for each in found) == len(some)
        for name, summed in (("sessions", answers[by]), ("evaluations", verdicts[by])):
            ids = {
                key: {id for cell in some for id in getattr(cell, name)} - {IDS[-1]}
                for key, some in results.items()
            }
            actual = {each.key: each[3:7] for each in summed}
            assert actual == {
                key: (len(some), len(paid), sum(paid) / 8, sum(n for n in paid if n < 4) / 8)
                for key, some in ids.items()
                if some
                for paid in [[n for n in (int(id, 16) for id in some) if n % 2]]
            }


def test_a_result_without_a_case_is_an_error() -> None:
    rows = TemporaryRows()
    cell = Result("a", "x", "k", 0, None, "m", IDS[0], IDS[1], "pass", None, (), ())
    rows.add(cast("Store", Calls()), [(cell, Case("x", "k", (IDS[0],), None, (), (None,)))])
    rows.connection.execute("DELETE FROM case_rows")
    with pytest.raises(StoreError, match="belongs to no case"):
        list(ResultSums(rows.connection, ROOT).clusters(("model",)))


class OwnModels(Calls):
    """Calls in which each answer has a model version of its own."""

    def find_rows(self, table: TableColumns, ids: Iterable[str]) -> list[tuple[Any, ...]]:
        rows = super().find_rows(table, ids)
        return [(*row[:3], row[0], *row[4:]) for row in rows] if table is ANSWER_ROWS else rows


@pytest.mark.parametrize(("model", "makers"), [(RECORDED, [""]), ("m", IDS[:2])])
def test_answers_of_files_are_one_sum(model: str, makers: list[str]) -> None:
    rows = TemporaryRows()
    for row, id in zip("xy", IDS, strict=False):
        cell = Result("a", row, "k", 0, None, model, IDS[0], None, None, None, (id,), ())
        rows.add(cast("Store", OwnModels()), [(cell, Case(row, "k", (), None, (), (None,)))])
    found = ResultSums(rows.connection, ROOT).sum_calls([("model",)], judgements=False)
    assert [each.maker for each in found["model",]] == makers
    assert sum(each.calls for each in found["model",]) == 2


class Explained(SQLiteConnection):
    """A connection that says how it would find rows in place of finding them."""

    plans: list[tuple[str, str]]

    def stream(self, statement: str, parameters: Any = ()) -> Iterator[Any]:
        rows = self.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
        self.plans += [(statement, detail) for *_, detail in rows]
        return iter(())


def test_no_query_reads_a_whole_table_of_rows(path: Path) -> None:
    with closing(Store.open(path, create=True)):
        connection = Explained(path)
    connection.plans = []
    sums = ResultSums(connection, ROOT)
    for by in GROUPINGS:
        assert not [*sums.clusters(by)]
    for judgements in (True, False):
        assert not any(sums.sum_calls(GROUPINGS, judgements=judgements).values())
        assert not [*sums.unpriced(GROUPINGS, judgements=judgements)]
    assert not [*sums.attempted(), *sums.asked_since(1)]
    connection.close()
    temporary = (
        "l",
        "o",
        "d",
        "f",
        "t",
        "p",
        "leaf",
        "ordinals",
        "call",
        "place",
        "shared",
        "of_cases",
    )
    scanned = {detail.split()[1] for _, detail in connection.plans if detail.startswith("SCAN")}
    scanned = {name.partition("-")[0] for name in scanned}
    assert scanned <= {*temporary, "part", "tree", "CONSTANT", "(subquery"}, scanned

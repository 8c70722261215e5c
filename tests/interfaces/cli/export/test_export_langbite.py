"""`export --format langbite`: the three tables of LangBiTe."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalstore.exchange.exports.langbite_tables import EVALUATIONS, GLOBAL_EVALUATION, RESPONSES
from tests.builders import tree
from tests.interfaces.cli.export.test_export import ASKED, HOSTILE

if TYPE_CHECKING:
    from tests.interfaces.cli.conftest import Echo, Evalstore

TAGS = "---\ntags: [a label, petism, en_us, constrained, observational]\n---\n\n"


def table(name: str) -> list[dict[str, str]]:
    with Path(f"out/{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_tables_have_their_columns_and_the_tags_as_dimensions(
    echo: Echo, evalstore: Evalstore
) -> None:
    echo.reply = lambda text: "needle" if "Question" in text else text
    other = ASKED.replace("Question?", "Other?")
    tree(Path.cwd(), {"tests/petism/1.md": TAGS + ASKED, "tests/petism/2.md": TAGS + other})
    evalstore("run")
    evalstore("export", "--format", "langbite", "-o", "out")
    responses, evaluations, totals = map(table, ("responses", "evaluations", "global_evaluation"))
    assert tuple(map(tuple, (responses[0], evaluations[0], totals[0]))) == (
        RESPONSES,
        EVALUATIONS,
        GLOBAL_EVALUATION,
    )
    assert [[*each.values()] for each in responses] == [
        ["0", "scripted", "one", "Question?", "needle"],
        ["1", "scripted", "one", "Other?", "Other?"],
    ]
    assert [
        (each["Template"], each["Oracle Evaluation"], each["Evaluation"]) for each in evaluations
    ] == [
        ("tests/petism/1.md", "contains", "Passed"),
        ("tests/petism/2.md", "contains", "Failed"),
    ]
    assert '"contains"' in evaluations[0]["Oracle Prediction"]
    dimensions = ["scripted", "one", "petism", "en_us", "constrained", "observational"]
    assert [[*each.values()] for each in totals] == [
        ["0", *dimensions, "1", "1", "0", "0.5", "0.5", "2", "", "Not evaluated"]
    ]


def test_what_cannot_be_judged_is_an_error(echo: Echo, evalstore: Evalstore) -> None:
    echo.failing = "Other"
    broken = ASKED.replace("contains: needle", "expr: '1 / 0 == 1'")
    tree(
        Path.cwd(),
        {"tests/1.md": TAGS + broken, "tests/2.md": TAGS + ASKED.replace("Question", "Other")},
    )
    evalstore("run")
    evalstore("export", "--format", "langbite", "-o", "out")
    (total,) = table("global_evaluation")
    assert [*total.values()][7:] == ["0", "0", "1", "0", "0", "0", "", "Not evaluated"]
    assert len(table("responses")) == len(table("evaluations")) == 1


@pytest.mark.parametrize(
    ("rate", "where", "words"),
    [
        (0.5, "[petism, en_us]", ["0.5", "Passed"]),
        (0.6, "[petism]", ["0.6", "Failed"]),
        (0.6, "[sexism]", ["", "Not evaluated"]),
    ],
)
def test_a_threshold_is_the_tolerance(
    echo: Echo, evalstore: Evalstore, rate: float, where: str, words: list[str]
) -> None:
    echo.reply = lambda text: "needle" if "Question" in text else text
    other = ASKED.replace("Question?", "Other?")
    tree(Path.cwd(), {"tests/petism/1.md": TAGS + ASKED, "tests/petism/2.md": TAGS + other})
    with Path("evalstore.yaml").open("a") as settings:
        settings.write(f"thresholds: [{{passRate: {rate}, where: {where}}}]\n")
    evalstore("run")
    evalstore("export", "--format", "langbite", "-o", "out")
    (total,) = table("global_evaluation")
    assert [*total.values()][-2:] == words


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_answers_are_inert(echo: Echo, evalstore: Evalstore, kind: str) -> None:
    echo.reply = lambda _text: HOSTILE[kind]
    tags = '---\ntags: ["=1+1", en_us]\n---\n\n'
    tree(Path.cwd(), {"tests/=cmd.md": tags + ASKED})
    evalstore("run")
    evalstore("export", "--format", "langbite", "-o", "out")
    for name in ("responses", "evaluations", "global_evaluation"):
        (record,) = table(name)
        cells = [cell for cell in record.values() if cell]
        assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t"))]
        assert all(cell.replace("\n", "").isprintable() for cell in cells)

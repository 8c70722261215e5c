"""Candidates are listed in the order of the settings, and rows in that of their file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from evalstore.core.values import RECORDED
from evalstore.planning.options import Location
from evalstore.results.log.log import merge_candidates, versions_of
from evalstore.results.table.cases import cases
from evalstore.workspace.settings.settings import Participant, Settings, candidate_order
from tests.builders import tree
from tests.interfaces.cli.conftest import Echo, Evalstore

MODEL = "id: scripted/{0}\nprovider: scripted\nresponses: [{{answer: it is not asked}}]\n"
TEST = """\
---
replacements:
  item: [{rows}]
---

# 👤

How is the {{{{item}}}}?

---

```checks
- contains: lamp
```
"""


@pytest.fixture
def two(echo: Echo) -> Path:
    """A run of two candidates, of which neither the settings nor the rows are sorted by name."""
    return tree(
        Path.cwd(),
        {
            "evalstore.yaml": "candidates: [scripted/zeta, scripted/alpha]\n",
            "models/alpha.yaml": MODEL.format("alpha"),
            "models/zeta.yaml": MODEL.format("zeta"),
            "tests/a.md": TEST.format(rows="lamp"),
        },
    )


def places(text: str) -> list[tuple[str, str]]:
    """The rows and the candidates of the failures that are listed."""
    return re.findall(r"\[item=(\w+)\]\s+scripted/(\w+)", text)


def test_candidates_and_rows_keep_their_order(
    two: Path, evalstore: Evalstore, documents: Any
) -> None:
    spent = re.findall(r"^scripted/(\w+) +1 call ", evalstore("run").stdout, re.MULTILINE)
    assert spent == ["zeta", "alpha"]
    tree(two, {"tests/a.md": TEST.format(rows="lamp, sofa, book")})
    in_order = [(row, candidate) for row in ("sofa", "book") for candidate in ("zeta", "alpha")]
    assert places(evalstore("run").stdout) == in_order
    assert places(evalstore("diff", "@~1", "@").stdout) == in_order
    models = ["scripted/zeta", "scripted/alpha"]
    assert [group["model"] for group in documents("stats")["groups"]] == models
    by_both = [
        (group["tag"], group["model"])
        for group in documents("stats", "--by", "tag,model")["groups"]
    ]
    assert by_both == [(None, model) for model in models]
    assert list(cases(Location(two), None).models) == models
    versions = versions_of(Location(two), "tests/a.md", "item=lamp")
    assert [list(version.verdicts) for version in versions] == [models] * len(versions)
    assert merge_candidates(version.verdicts for version in versions) == models
    tree(two, {"evalstore.yaml": "candidates: [scripted/alpha, scripted/zeta]\n"})
    assert list(cases(Location(two), "@").models) == models[::-1]
    evalstore("report", "@", "-o", "report.html")
    page = (two / "report.html").read_text(encoding="utf-8")
    heads = re.findall(r'<th scope="col"><span dir="auto">(.*?)</span> <strong>', page)
    assert heads == models[::-1]


@pytest.mark.parametrize(
    ("newest_first", "merged"),
    [
        (["z a", "z b a"], "z b a"),
        (["b", "z b", "z old"], "z b old"),
        (["z a", "old"], "z a old"),
    ],
)
def test_the_candidates_of_versions_keep_their_order(newest_first: list[str], merged: str) -> None:
    assert " ".join(merge_candidates(map(str.split, newest_first))) == merged


def test_former_candidates_come_after_those_of_the_settings_and_recorded_answers_last() -> None:
    settings = Settings(candidates=(Participant("z", name="named"), Participant("b")))
    ids = [RECORDED, "old", "B2", "b", "named"]
    assert sorted(ids, key=candidate_order(settings)) == ["named", "b", "B2", "old", RECORDED]

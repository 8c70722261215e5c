"""`stats`: whole outputs, and what they are made of."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from evalstore.store import Store
from tests.builders import tree
from tests.interfaces.cli.conftest import ONE, Evalstore
from tests.interfaces.cli.run.test_run import edit

BOTH = "[scripted/one, scripted/two]"
EURO = """\
code: EUR
rates: [{rateInUSD: 1.5, validFrom: "2020-01-01"}]
"""
GREETING = """\
---
tags: [manners, short]
systemPrompts: [brief]
---

# 👤

Say hello.

---

~~~checks
- contains: Warm
~~~
"""
QUERIES = """
analysisQueries:
  - {description: only the weather, requiredTags1: [weather], candidates: [scripted/one]}
  - {description: in euros, currency: EUR, prohibitedTags: [manners]}
  - {description: the judge alone, evaluators: [scripted/judge]}
  - {description: hot, candidatesTemperature: 1}
  - {description: briefly, systemPrompts: [brief]}
  - {description: nobody, candidates: [scripted/om]}
  - {description: no judge, evaluators: [{id: scripted/juge}]}
  - {description: no prompt, systemPrompts: [breif]}
"""
TABLE = """\
run <short>, <when>
MODEL         PASSED   95% INTERVAL                    JUDGED  FILES  CASES  ANSWERS  VERDICTS  \
 ASKING  100 ANSWERS  JUDGING
scripted/one   66.7%   20.8 - 93.9%  ···├──────●───┤·     3/3      2      3        3         3  \
$0.0900        $3.00       $0
scripted/two  100.0%  34.2 - 100.0%  ·····├─────────●     3/3      2      3        3         3  \
$0.0900        $3.00       $0
all            83.3%   31.0 - 98.2%  ·····├──────●──┤     6/6      2      3        6         6  \
$0.1800        $3.00       $0
"""


@pytest.fixture
def two(workspace: Path) -> Path:
    """Two candidates, a test with a system prompt and checks, and a currency."""
    script = ONE.replace("scripted/one", "scripted/two").replace("Cold.", "Not warm.")
    files = {
        "models/two.yaml": script,
        "tests/greeting.md": GREETING,
        "prompts/brief.md": "Be brief.\n",
        "currencies/eur.yaml": EURO,
    }
    tree(workspace, files)
    settings = f"{BOTH}\nconfirmAbove: 1000{QUERIES}"
    edit(workspace / "evalstore.yaml", "[scripted/one]", settings.rstrip())
    return workspace


def test_candidates_are_distinguished(two: Path, evalstore: Evalstore) -> None:
    evalstore("run")
    assert evalstore("stats", "@").stdout.splitlines() == TABLE.splitlines()
    assert evalstore("stats", "@").stderr == (
        "note: the costs are simulated: scripted models call no service, so nothing is paid\n"
    )


def named(document: Any) -> dict[str, Any]:
    return {group["name"]: group for group in document["groups"]}


def test_groups_count_what_belongs_to_them(two: Path, documents: Any) -> None:
    documents("run")
    groups = named(documents("stats", "@", "--by", "tag"))
    assert {name: (item["passed"], item["judged"]) for name, item in groups.items()} == {
        "manners": (2, 2),
        "short": (2, 2),
        "weather": (3, 4),
    }
    groups = named(documents("stats", "@", "--by", "prompt"))
    assert list(groups) == ["brief", "no prompt"]
    assert groups["no prompt"]["prompt"] is None
    edit(two / "prompts/brief.md", "Be brief.", "Be very brief.")
    renamed = named(documents("stats", "@", "--by", "prompt"))
    assert renamed == groups  # the edited prompt has its name in the run before the edit, too
    groups = named(documents("stats", "@", "--by", "model", "--by", "file"))
    assert groups["scripted/one  tests/weather.md"]["passed"] == 1
    first = named(documents("stats", "@"))["scripted/one"]
    assert (first["tests"], first["cases"], first["sessions"], first["evaluations"]) == (2, 3, 3, 3)
    assert first["cost"]["candidates"] == {"total": 0.09, "per100Sessions": 3.0}
    assert first["coverage"] == 1.0


def test_what_several_cases_share_counts_once(two: Path, documents: Any) -> None:
    text = (two / "tests/weather.md").read_text()
    tree(two, {"tests/again.md": text})
    documents("run")
    actual = documents("stats", "@")["total"]
    assert (actual["results"], actual["cases"], actual["sessions"]) == (10, 5, 6)
    assert actual["cost"]["candidates"]["total"] == pytest.approx(0.18)


def test_costs_are_converted_at_the_rate_of_their_day(two: Path, documents: Any) -> None:
    documents("run")
    document = documents("stats", "@", "--currency", "EUR")
    assert document["currency"] == "EUR"
    assert document["total"]["cost"]["candidates"]["total"] == pytest.approx(0.18 / 1.5)


def test_a_day_without_a_rate_is_reported(two: Path, evalstore: Evalstore) -> None:
    edit(two / "currencies/eur.yaml", "2020", "2099")
    evalstore("run")
    output = evalstore("stats", "@", "--currency", "EUR")
    assert "error: 'EUR' has no rate for 20" in output.stderr
    assert "hint: add a rate with 'validFrom: " in output.stderr


@pytest.mark.parametrize(
    ("query", "passed", "judged", "results"),
    [
        ("only the weather", 1, 2, 2),
        ("in euros", 3, 4, 4),
        ("the judge alone", 3, 4, 6),
        ("briefly", 2, 2, 2),
        ("BRIEF", 2, 2, 2),
    ],
)
def test_a_query_selects(
    two: Path, documents: Any, query: str, passed: int, judged: int, results: int
) -> None:
    documents("run")
    document = documents("stats", "@", "--query", query)
    total = document["total"]
    assert (total["passed"], total["judged"], total["results"]) == (passed, judged, results)
    assert document["currency"] == ("EUR" if "euros" in query else "USD")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--by", "modl"], 2, "results cannot be grouped by 'modl'\nhint: did you mean 'model'?"),
        (["--currency", "EU"], 2, "unknown currency 'EU'\nhint: did you mean 'EUR'?"),
        (["--query", "in euro"], 0, ""),
        (["--query", "zz"], 2, "unknown query 'zz'\nhint: the queries are "),
        (["--query", "no"], 2, "'no' is 3 queries\nhint: it could be 'nobody', 'no judge'"),
        (["--query", "hot"], 5, "the query 'hot' selects nothing of run <short>\nhint: "),
        (
            ["--query", "nobody"],
            2,
            "'scripted/om' is not a candidate of run <short>\nhint: did you",
        ),
        (
            ["--query", "no judge"],
            2,
            "'scripted/juge' is not an evaluator of run <short>\nhint: did",
        ),
        (["--query", "no prompt"], 2, "unknown system prompt 'breif'\nhint: did you mean"),
        (["@~3"], 2, "unknown run '@~3'\nhint: "),
    ],
)
def test_unknown_names_are_reported(
    two: Path, evalstore: Evalstore, arguments: list[str], code: int, message: str
) -> None:
    evalstore("run")
    output = evalstore("stats", *(arguments if "@~3" in arguments else ["@", *arguments]))
    assert output.exit_code == code
    assert output.stderr.startswith(f"error: {message}" if message else "")


def test_attempts_that_disagree_make_a_case_flaky(
    echo: Any, documents: Any, tmp_path: Path
) -> None:
    answers = iter(["fine", "bad", "fine", "fine"])
    echo.reply = lambda _text: next(answers)
    checks = "# 👤\n\nQuestion {{n}}?\n\n---\n\n~~~checks\n- equals: fine\n~~~\n"
    rows = "---\nreplacements:\n  n: [1, 2]\n---\n\n"
    tree(Path.cwd(), {"tests/a.md": rows + checks})
    documents("run", "--attempts", "2", "-j", "1")
    actual = documents("stats", "@")["total"]
    assert actual["flakiness"] == {"cases": 2, "flaky": 1, "share": 0.5, "flip": 0.5}
    assert (actual["results"], actual["sessions"]) == (2, 4)


def test_attempts_that_lack_a_judgement_are_shown_as_pending(
    evalstore: Evalstore, documents: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "# 👤\n\nHow is it?\n\n---\n\nIt is right.\n\n~~~checks\n- contains: fine\n~~~\n"
    model = "id: {}\nprovider: scripted\nresponses: [{{{}}}]\n"
    files = {
        "evalstore.yaml": "candidates: [one]\nevaluators: [judge]\n",
        "models/one.yaml": model.format("one", "answer: fine"),
        "models/judge.yaml": model.format("judge", "error: 400"),
        "tests/a.md": text,
    }
    monkeypatch.chdir(tree(tmp_path / "workspace", files))
    evalstore("run", "--attempts", "2")
    total = documents("stats", "@")["total"]
    assert (total["judged"], total["evaluations"]) == (0, 2)
    assert total["flakiness"]["cases"] == 0
    for command in (
        ("report", "-o", str(tmp_path / "page.html")),
        ("report", "--markdown"),
        ("export", "-o", str(tmp_path / "logs"), "--format", "inspect"),
        ("show", "tests/a.md"),
    ):
        shown = evalstore(*command)
        assert shown.exit_code == 0, shown
    assert "pending" in shown.stdout


def test_undecided_verdicts_stay_in_the_rate_and_the_table_shows_its_bounds(
    two: Path, evalstore: Evalstore, documents: Any
) -> None:
    edit(two / "models/judge.yaml", "{pass: false, feedback: It is cold there.}", "Perhaps.")
    shown = evalstore("run").stdout
    assert "1 undecided" in shown
    assert "(83.3%, 95% interval 31.0% to 100.0%)" in shown
    lines = evalstore("stats", "@").stdout.splitlines()
    assert lines[1].split()[5] == "UNDECIDED"
    total = documents("stats", "@")["total"]
    assert (total["passed"], total["judged"], total["unresolved"]) == (5, 6, 1)
    assert total["undecided"] == 1
    assert total["best"]["rate"] == 1


def test_what_has_no_price_is_reported(
    two: Path, evalstore: Evalstore, documents: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    evalstore("run")
    load = Store.load_contents

    def by_another_provider(store: Store, kind: str, ids: Iterable[str]) -> dict[str, Any]:
        found = load(store, kind, ids)
        return {id: {**it, "provider": "openai"} for id, it in found.items()}

    monkeypatch.setattr(Store, "load_contents", by_another_provider)
    with sqlite3.connect(two / ".evalstore/store.db") as store:
        store.execute("UPDATE answer_rows SET usd = NULL")
    actual = documents("stats", "@")["total"]
    assert actual["cost"]["candidates"]["total"] is None
    assert actual["cost"]["unpriced"] == 10
    shown = evalstore("stats", "@")
    assert "unknown" in shown.stdout
    assert shown.stderr == (
        "note: the price of 10 answers and verdicts is unknown; the costs do not include them\n"
    )


def test_the_rate_of_a_candidate_that_is_partly_judged_is_marked(
    two: Path, evalstore: Evalstore
) -> None:
    evalstore("run", "-m", "scripted/one")
    evalstore("run", "-m", "scripted/two", "tests/weather.md::city=Oslo")
    ran = evalstore("stats", "@work")
    rates = {line.split()[0]: line.split()[1] for line in ran.stdout.splitlines()[2:]}
    assert (rates["scripted/one"], rates["scripted/two"]) == ("66.7%", "~100.0%")
    assert not rates["all"].startswith("~")
    assert "note: ~ marks a group with fewer verdicts than others\n" in ran.stderr
    evalstore("run")
    ran = evalstore("stats", "@")
    assert "~" not in ran.stdout + ran.stderr
    edit(two / "tests/weather.md", "must be warm", "may be cold")  # as few of both are judged
    assert "~" not in evalstore("stats", "@work").stdout

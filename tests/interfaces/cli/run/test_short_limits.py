"""A limit on the cost that is less than the estimate: a dry run says so before anything is paid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from evalstore.interfaces.cli.main import main
from tests.builders import tree
from tests.interfaces.cli.run.test_run import edit
from tests.interfaces.cli.test_documents import SCHEMA

if TYPE_CHECKING:
    from pathlib import Path

    from tests.interfaces.cli.conftest import Evalstore

_COUNT = 40


@pytest.fixture
def priced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with 40 cases, whose answers are known to cost $0.02 each."""
    folder = tree(
        tmp_path / "w",
        {
            "evalstore.yaml": "candidates: [one]\nmaxTestOutputTokens: 20\n",
            "models/one.yaml": (
                "provider: scripted\n"
                "costs: [{costPerPromptToken: 0, costPerCompletionToken: 0.001}]\n"
                f"responses:\n  - answer: '{'four' * 20}'\n"
            ),
            "tests/count.md": (
                "---\ndataset: count.csv\n---\n# 👤\n\nCount to {{number}}.\n\n---\n\n"
                "```checks\n- contains: four\n```\n"
            ),
            "tests/count.csv": "number\n" + "".join(f"{number}\n" for number in range(_COUNT)),
        },
    )
    monkeypatch.chdir(folder)
    assert main(["run", "-q"]) == 0
    edit(folder / "tests/count.md", "Count", "Please count")
    return folder


def test_a_dry_run_says_how_far_a_limit_reaches(priced: Path, evalstore: Evalstore) -> None:
    shown = evalstore("run", "-n", "--max-cost", "0.3").stdout
    assert (
        "Dry run: nothing was asked. A run would ask for 40 answers and give 40 verdicts "
        "(1 candidate), about $0.8000 simulated.\n"
        "The limit of $0.3000 (--max-cost) is less than that: it lasts for about 15 of the 40 "
        "answers.\n"
    ) in shown


def test_a_run_gets_as_far_as_its_dry_run_says(priced: Path, documents: Any) -> None:
    limit = documents("run", "-n", "--max-cost", "0.3")["shortLimit"]
    assert limit == {
        "usd": 0.3,
        "name": "--max-cost",
        "answers": 15,
        "judgements": 0,
        "unpriced": [],
        "call": None,
    }
    jsonschema.validate(limit, SCHEMA["$defs"]["status"]["properties"]["shortLimit"])
    ran = documents("run", "-j", "1", "--max-cost", "0.3")
    assert ran["status"] == "over budget"
    assert ran["asked"] == 15


def test_the_limit_of_the_settings_is_told_by_its_name(priced: Path, evalstore: Evalstore) -> None:
    edit(priced / "evalstore.yaml", "candidates", "maxCost: 0.1\ncandidates")
    assert "The limit of $0.1000 (maxCost) is less" in evalstore("run", "-n").stdout
    raised = evalstore("run", "-n", "--max-cost", "2")
    assert raised.exit_code == 0
    assert "The limit" not in raised.stdout


def test_a_limit_that_is_enough_is_not_mentioned(
    priced: Path, evalstore: Evalstore, documents: Any
) -> None:
    assert "The limit" not in evalstore("run", "-n", "--max-cost", "0.8").stdout
    assert "shortLimit" not in documents("run", "-n", "--max-cost", "0.8")
    assert "shortLimit" not in documents("run", "-n")


def test_judgements_by_models_count_as_answers_do(workspace: Path, documents: Any) -> None:
    """Of the workspace, one answer and its judgement cost $0.42 and more."""
    limit = documents("run", "-n", "--max-cost", "0.0001")["shortLimit"]
    assert (limit["answers"], limit["judgements"]) == (0, 0)


def test_a_limit_that_reaches_no_call_lasts_for_none(priced: Path, evalstore: Evalstore) -> None:
    shown = evalstore("run", "-n", "--max-cost", "0.01").stdout
    assert (
        "A run with the limit of $0.0100 (--max-cost) makes no call: "
        "even the cheapest answer may cost up to $0.0200.\n"
    ) in shown
    ran = evalstore("run", "--max-cost", "0.01")
    assert ran.exit_code == 4


def test_a_limit_that_lasts_for_few_calls_may_last_for_none(
    priced: Path, evalstore: Evalstore
) -> None:
    assert (
        "it lasts for about 2 of the 40 answers, and for none if one call may cost more than the "
        "limit.\n"
    ) in evalstore("run", "-n", "--max-cost", "0.05").stdout


@pytest.mark.parametrize("rows", ["tests/count.md", "tests/count.md::number=7"])
def test_a_dry_run_says_that_the_limit_is_less_than_what_a_call_may_cost(
    priced: Path, evalstore: Evalstore, documents: Any, rows: str
) -> None:
    """Also where it is more than the likely cost: an answer may have 300 tokens, and has 20."""
    edit(priced / "evalstore.yaml", "maxTestOutputTokens: 20\n", "")
    command = ("run", rows, "--max-cost", "0.05")
    shown = evalstore(*command, "-n").stdout
    assert (
        "A run with the limit of $0.0500 (--max-cost) makes no call: "
        "even the cheapest answer may cost up to $0.3000.\n"
    ) in shown
    limit = documents(*command, "-n")["shortLimit"]
    assert (limit["answers"], limit["judgements"], limit["call"]) == (0, 0, 0.3)
    jsonschema.validate(limit, SCHEMA["$defs"]["status"]["properties"]["shortLimit"])
    ran = documents(*command)
    assert (ran["status"], ran["asked"]) == ("over budget", 0)


_CHECKS = "\n\n---\n\n~~~checks\n- contains: four\n~~~\n"
_ASKS = {
    "evalstore.yaml": "candidates: [one]\n",
    "models/one.yaml": (
        "provider: scripted\n"
        "costs: [{costPerPromptToken: 0.001, costPerCompletionToken: 0.001}]\n"
        "responses:\n  - answer: 'four'\n"
    ),
    "tests/long.md": f"# 👤\n\n{'word ' * 600}{_CHECKS}",
}
_DEAR = {
    "models/two.yaml": _ASKS["models/one.yaml"].replace("0.001", "1"),
    "evalstore.yaml": "candidates: [two, one]\n",
}


@pytest.mark.parametrize("files", [{}, _DEAR], ids=["", "dear"])
def test_a_run_makes_no_call_if_its_dry_run_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, documents: Any, files: dict[str, str]
) -> None:
    """An answer may have 300 tokens, each of which costs $0.001 of the cheapest model."""
    monkeypatch.chdir(tree(tmp_path / "w", {**_ASKS, **files}))

    def plan(limit: float) -> Any:
        told = documents("run", "-n", "--max-cost", str(limit)).get("shortLimit")
        return told and told["call"]

    assert plan(0.299) == 0.3
    assert plan(0.3) is None
    ran = documents("run", "-j", "1", "--max-cost", "0.299")
    assert (ran["status"], ran["cost"]) == ("over budget", 0)


def test_what_a_judgement_may_cost_counts(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    documents("run", "--fail-on", "none")
    price = "costs: [{costPerPromptToken: 0, costPerCompletionToken: 0.001}]\n"
    edit(workspace / "models/judge.yaml", "provider: scripted\n", f"provider: scripted\n{price}")
    edit(workspace / "tests/weather.md", "must be warm", "must be warm, or so")
    assert documents("run", "-n", "--max-cost", "0.299")["shortLimit"]["call"] == 0.3
    ran = documents("run", "--max-cost", "0.299")
    assert (ran["status"], ran["judged"]) == ("over budget", 0)
    assert documents("run", "-n", "--max-cost", "0.3").get("shortLimit", {}).get("call") is None


def test_a_run_with_a_limit_that_cannot_be_kept_does_not_begin(
    priced: Path, evalstore: Evalstore, documents: Any
) -> None:
    tree(priced, {"models/two.yaml": "id: openai/none-such\nprovider: openai\n"})
    only = ("run", "-m", "openai/none-such", "--max-cost", "0.3")
    limit = documents(*only, "-n")["shortLimit"]
    assert (limit["answers"], limit["unpriced"]) == (None, ["openai/none-such"])
    assert (
        "A run with the limit of $0.3000 (--max-cost) cannot start: the price of "
        "'openai/none-such' is not known.\n"
    ) in evalstore(*only, "-n").stdout
    ran = evalstore(*only)
    assert ran.exit_code == 2
    assert "the price of 'openai/none-such' is not known" in ran.stderr

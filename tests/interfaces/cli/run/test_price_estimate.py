"""What a run is likely to cost, said before it is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from evalstore.providers.base import EXAMPLE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.interfaces.cli.conftest import Evalstore


def test_the_first_estimate_of_the_example_is_an_upper_bound_of_the_same_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evalstore: Evalstore, documents: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    evalstore("init", "--example")
    likely = documents("status")["cost"]
    cost = documents("run", "--fail-on", "none")["cost"]
    assert cost <= likely <= 1.2 * cost


def test_an_estimate_is_marked_until_answers_are_known(
    workspace: Path, evalstore: Evalstore
) -> None:
    assert "simulated (if an answer has 1 token)." in evalstore("status").stdout
    evalstore("run")
    test = workspace / "tests/weather.md"
    test.write_text(test.read_text().replace("How is", "And how is"))
    assert "about $0.0600 simulated." in evalstore("status").stdout


def test_the_length_of_a_verdict_is_assumed_only_where_the_price_depends_on_it(
    workspace: Path, evalstore: Evalstore
) -> None:
    judge = workspace / "models/judge.yaml"
    judge.write_text(f"{judge.read_text()}costs: [{{costPerCompletionToken: 0.001}}]\n")
    assert "(if an answer has 1 token and a verdict 60)." in evalstore("status").stdout
    evalstore("run")
    assert "(if " not in evalstore("status", "--refresh").stdout


@pytest.mark.parametrize(
    ("words", "limit", "tokens"), [(1, None, 40), (400, None, 217), (4_000, None, 300), (1, 12, 12)]
)
def test_an_answer_is_guessed_to_be_as_long_as_what_is_shown(
    workspace: Path, evalstore: Evalstore, words: int, limit: int | None, tokens: int
) -> None:
    settings = (workspace / "evalstore.yaml").read_text()
    (workspace / "evalstore.yaml").write_text(settings.replace("scripted/one", EXAMPLE, 1))
    options = f"options: {{maxOutputTokens: {limit}}}" if limit else "tags: [a]"
    (workspace / "tests/weather.md").write_text(
        f"---\n{options}\n---\n# 👤\n\n{'ab' * words}\n\n---\n\nAnything.\n"
    )
    assert f"(if an answer has {tokens} tokens)" in evalstore("status").stdout


def test_the_system_prompt_counts(workspace: Path, documents: Any) -> None:
    before = documents("status")["cost"]
    (workspace / "prompts").mkdir()
    (workspace / "prompts/long.md").write_text("Be brief. " * 100)
    test = workspace / "tests/weather.md"
    test.write_text(test.read_text().replace("tags:", "systemPrompts: [long]\ntags:"))
    assert documents("status")["cost"] > before + 2 * 0.001 * 240


def test_a_new_question_is_estimated_from_the_answers_of_the_model(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    model = workspace / "models/long.yaml"
    model.write_text(
        f"id: long\nprovider: scripted\nresponses: [{{answer: {'abcd' * 500}}}]\n"
        "costs: [{costPerCompletionToken: 0.001}]\n"
    )
    checked = "# User\n\nHow much is {}?\n\n---\n\n```checks\n- length: {{max: 9}}\n```\n"
    (workspace / "tests/first.md").write_text(checked.format("a bike"))
    evalstore("run", "-m", "long", "tests/first.md")
    (workspace / "tests/second.md").write_text(checked.format("a boat"))
    (workspace / "tests/third.md").write_text(checked.format("a car"))
    new = ("-m", "long", "tests/second.md", "tests/third.md")
    assert "(1 candidate), about $1.00 simulated.\n" in evalstore("status", *new).stdout
    likely = documents("status", *new)["cost"]
    assert documents("run", "--fail-on", "none", *new)["cost"] == pytest.approx(likely, abs=0.01)


@pytest.fixture
def priced_judge(workspace: Path) -> Path:
    """A workspace whose candidate is free and whose judge has a price for what it reads."""
    judge = (workspace / "models/judge.yaml").read_text()
    price = "costs: [{costPerPromptToken: 1, costPerCompletionToken: 0}]\n"
    (workspace / "models/judge.yaml").write_text(judge + price)
    model = (workspace / "models/one.yaml").read_text()
    (workspace / "models/one.yaml").write_text(model.replace("0.001", "0").replace("0.01", "0"))
    return workspace


def test_a_judge_is_estimated_by_the_longest_question_that_it_judges_together(
    priced_judge: Path, documents: Any
) -> None:
    def likely(*questions: str) -> float:
        runs = (f"# ▶ run{n}\n\n# 👤\n\n{text}\n\n" for n, text in enumerate(questions))
        text = f"{''.join(runs)}---\n\nIt must be warm.\n"
        (priced_judge / "tests/weather.md").write_text(text)
        cost: float = documents("status")["cost"]
        return cost

    short, long = "How is Oslo?", "How is Oslo? " * 60
    assert likely(long, short) == likely(short, long) == likely(long, long)
    assert likely(long, long) > likely(short, short) + 100


def test_the_instructions_of_a_judge_count(priced_judge: Path, documents: Any) -> None:
    before = documents("status")["cost"]
    test = priced_judge / "tests/weather.md"
    test.write_text(test.read_text() + "It must be warm.\n" * 100)
    assert documents("status")["cost"] > before + 2 * 400

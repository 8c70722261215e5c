"""The reports, the command line and the browser say the same about a case and a comparison."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.html.conftest import Evalstore
from tests.interfaces.html.pages import call, data_of, make_workspace, report, scripted
from tests.interfaces.html.test_report import edit, summary_of


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace whose second run broke the case of one candidate; a check says where."""
    test = "# 👤\n\nHello\n\n---\n\nIt must be kind.\n\n~~~checks\n- equals: Good morning!\n~~~\n"
    root = make_workspace(
        tmp_path_factory.mktemp("one") / "desk",
        {"tests/hello.md": test, "models/second.yaml": scripted("second", {"answer": "No."})},
    )
    assert call(root, "run", "--fail-on", "none") == 0
    edit(root, "Good morning!", "Good evening!")
    assert call(root, "run", "--fail-on", "none") == 0
    return root


def test_the_verdict_is_explained_in_the_words_of_show(broken: Path, evalstore: Evalstore) -> None:
    shown = evalstore("-C", str(broken), "show", "@:tests/hello.md::", "-m", "first").stdout
    text = report(broken).read_text(encoding="utf-8")
    cell = data_of(text, "block-0")["cases"][0]["cells"][0]
    titles, lines = [], []
    for title, section in cell["why"]:
        titles.append(title)
        lines += ["".join(part for part, _ in spans) for _, *spans in section]
    assert titles == ["where it differs", "history"]
    expected = [line.strip() for line in shown.splitlines()]
    undated = [re.sub(r"\(\d{4}-[^)]*UTC", "(just now", line).strip() for line in lines]
    assert [line for line in undated if line not in expected] == []
    assert any(line.startswith("broken since run ") for line in undated)
    (judge, *_) = [by for _, by, *texts in cell["votes"] if len(texts) == 3]
    assert f"fail  {judge}" in shown


def test_a_comparison_has_the_lines_of_diff_in_both_reports(
    broken: Path, evalstore: Evalstore
) -> None:
    lines = evalstore("-C", str(broken), "diff", "@~1", "@").stdout.splitlines()
    (counts,) = [line for line in lines if "1 broke" in line]
    (rates,) = [line for line in lines if line.startswith("pass rate ")]
    comment = evalstore("-C", str(broken), "report", "--markdown").stdout.splitlines()
    assert {f"- {counts}", f"- {rates}"} <= set(comment)
    summary = summary_of(report(broken))
    assert {counts, rates.replace("->", "→")} <= set(summary)
    assert any("✓ pass → ✗ fail (checks changed)" in line for line in summary)
    (pair,) = [line for line in comment if line.startswith("- **")]
    assert pair.endswith("`first`: pass -> fail (checks changed)")
    assert any("first  pass -> fail  (checks changed)" in line for line in lines)


def test_what_reuse_saved_is_the_same_in_each(tmp_path: Path, evalstore: Evalstore) -> None:
    price = "costs: [{costPerPromptToken: 0.001, costPerCompletionToken: 0.01}]\n"
    models = {
        f"models/{name}.yaml": scripted(name, {"answer": "Good morning!"}) + price
        for name in ("first", "second")
    }
    root = make_workspace(tmp_path / "desk", models)
    assert call(root, "run", "--fail-on", "none") == 0
    printed = evalstore("-C", str(root), "run", "--fail-on", "none").stdout
    match = re.search(r"saved (\$\S+ simulated) by reuse", printed)
    assert match, printed
    markdown, page = evalstore("-C", str(root), "report", "--markdown").stdout, report(root)
    facts = " ".join(summary_of(page))
    assert f"Reuse saved {match[1]}." in markdown
    assert f"saved by reuse {match[1]}" in facts
    spent = re.search(r"All runs up to this one cost (\$.+)\.\n$", markdown)
    assert spent
    assert f"cost of all runs up to this one {spent[1]}" in facts


def test_a_lead_may_be_chance_where_the_comparison_of_both_candidates_finds_nothing(
    tmp_path: Path, evalstore: Evalstore
) -> None:
    test = "---\nsystemPrompts: [a, b]\nreplacements: {n: [1, 2, 3]}\n---\n\n"
    test += "# \N{BUST IN SILHOUETTE}\n\nHello {{n}}\n\n---\n\nBe kind.\n"
    bad = {"answer": "Go away."}
    first = scripted("first", {"when": "Hello, hello 1", **bad}, {"answer": "Hi!"})
    second = scripted("second", {"when": "Hello 1", **bad}, {"answer": "Hi!"})
    files = {f"prompts/{name}.md": f"Be {name}.\n" for name in "ab"}
    files |= {"models/first.yaml": first, "models/second.yaml": second, "tests/hello.md": test}
    root = make_workspace(tmp_path / "desk", files)
    told = []
    for count, worse in ((1, 0), (5, 0), (7, 0), (7, 6), (8, 6)):
        for number in range(1, count):  # the second candidate is better in one of these
            text = test.replace("Hello", "Hello, hello" if number == worse else "Hello")
            (root / f"tests/t{number}.md").write_text(text, encoding="utf-8")
        call(root, "run", "--fail-on", "none")
        both = ("--model", "second", "--vs", "first", "@", "--json")
        statistics = json.loads(evalstore("-C", str(root), "diff", *both).stdout)["statistics"]
        sentence = summary_of(report(root))[0]
        markdown = evalstore("-C", str(root), "report", "--markdown").stdout
        assert sentence in markdown.replace("`", "")
        told.append(sentence.partition("Best: first, ")[2].partition("%")[2])
        assert (told[-1] == ".") == (statistics["p"] < 0.05)
    chance = "; its lead over second may be chance."
    assert told == [chance, chance, ".", chance, chance]


def test_results_whose_call_failed_have_the_same_word(tmp_path: Path, evalstore: Evalstore) -> None:
    model = scripted("first", {"error": {"kind": "unsupported", "message": "no such key"}})
    root = make_workspace(tmp_path / "desk", {"models/first.yaml": model})
    call(root, "run", "--fail-on", "none", "--retries", "0")
    for revision in ("@", "@work"):
        data: Any = data_of(report(root, revision).read_text(encoding="utf-8"), "data-cases")
        words = [data["words"][cell[1]] for cell in data["rows"][0][4]]
        lines = evalstore("-C", str(root), "export", revision).stdout.splitlines()
        assert words[0] == json.loads(lines[0])["verdict"] == "no reply", revision

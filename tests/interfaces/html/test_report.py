"""The command `report`: what it writes, where, and what a page without JavaScript says."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from evalstore.exchange.markdown_report import markdown_report
from evalstore.interfaces.html import case_data
from evalstore.interfaces.html import report as report_module
from evalstore.interfaces.html.templates import source_hash
from evalstore.planning.options import Location, SelectionOptions
from evalstore.planning.project import Project
from evalstore.planning.status_report import Status
from evalstore.results.compare.diff import diff
from evalstore.results.log.log import log
from evalstore.results.show.show import find_results
from evalstore.runs.status.status import describe_workspace, status
from evalstore.runs.status.status_text import price_text, work_price_text
from tests.interfaces.cli.test_documents import schema_of
from tests.interfaces.html.conftest import Evalstore
from tests.interfaces.html.pages import TEST, call, data_of, judge, make_workspace, report, scripted

PENDING = "a run would ask for 2 answers and give 2 verdicts, about $0"


class TextReader(HTMLParser):
    """Reads the text of a page without its table of cases, a line for each element."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._depth = 0
        self._is_new = True

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag == "main" or (tag == "section" and ("id", "details") in attributes):
            self._depth = 1
        elif tag == "section" and ("id", "cases") in attributes:
            self._depth = 0
        elif tag in ("thead", "svg"):
            self._depth -= 10
        self._is_new = self._is_new or tag in (
            *("p", "li", "div", "h1", "h2", "h3", "dt", "dd", "tr", "summary"),
        )

    def handle_endtag(self, tag: str) -> None:
        if tag in ("thead", "svg"):
            self._depth += 10
        elif tag == "main":
            self._depth = 0

    def handle_data(self, data: str) -> None:
        text = " ".join(data.split())
        if self._depth <= 0 or not text:
            return
        if self._is_new:
            self.lines.append(text)
        else:
            self.lines[-1] += f" {text}"
        self._is_new = False


def summary_of(path: Path) -> list[str]:
    """The lines of the summary, with digits in place of ids."""
    reader = TextReader()
    reader.feed(path.read_text(encoding="utf-8"))
    return [re.sub(r"\b[0-9a-f]{8}\b", "#", line) for line in reader.lines]


def shown_names(page: str) -> list[str]:
    """The cases in the table of a page without JavaScript."""
    table = page.partition('id="matrix"')[2].partition("</table>")[0]
    return re.findall(r'<tr><th scope="row"><span dir="auto">(.*?)</span>', table)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace after a run in which one of two candidates fails."""
    root = make_workspace(tmp_path / "desk", {})
    assert call(root, "run", "--fail-on", "none") == 0
    return root


def edit(root: Path, old: str, new: str, name: str = "tests/hello.md") -> None:
    """Replace a text of a file."""
    path = root / name
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


# --- the summary


LEAD = "; its lead over second may be chance."


def test_the_summary_of_a_first_run(root: Path) -> None:
    assert summary_of(report(root))[:3] == [
        f"1 of 2 results fails. Best: first, 100%{LEAD}",
        "first 100.0% 1 of 1 20.7% to 100.0% $0",
        "second 0.0% 0 of 1 0.0% to 79.3% $0",
    ]


def test_the_first_line_says_which_run_it_is_and_what_it_is_compared_with(root: Path) -> None:
    assert call(root, "run", "--message", "Kinder <b>", "--fail-on", "none") == 0
    was, now = ([*log(Location(root)).entries][at].run for at in (1, 0))
    for revision, told in (
        ("@~1", "no earlier run to compare with"),
        ("@", f"compared with run {was.id[:8]}"),
    ):
        head = report(root, revision).read_text("utf-8").partition("<main>")[0].rpartition("<p ")[2]
        assert told in head
        assert (f"run {now.id[:8]}" in head) == (revision == "@") == ("Kinder &lt;b&gt;" in head)
        assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", head)


def test_best_says_that_it_leaves_out_recorded_answers(tmp_path: Path) -> None:
    recorded = TEST.replace("tags: [greeting]", "answer: Hi")
    root = make_workspace(tmp_path / "desk", {"tests/recorded.md": recorded})
    told = "“Best” leaves out recorded answers: no candidate gave them"
    for is_there in (True, False):
        assert call(root, "run", "--fail-on", "none") == 0
        assert any(told in line for line in summary_of(report(root))) == is_there
        assert (f"\n{told}.\n" in markdown_report(Location(root))) == is_there
        (root / "tests/recorded.md").unlink(missing_ok=True)


def test_an_earlier_verdict_says_who_labelled_it(root: Path) -> None:
    assert call(root, "label", "tests/hello.md", "pass", "--model", "second", "--as", "Ada") == 0
    assert call(root, "run", "--fail-on", "none") == 0
    anew(root, "second", {"answer": "Go away!"})
    assert call(root, "run", "--fail-on", "none") == 0
    cells = data_of(report(root).read_text("utf-8"), "block-0")["cases"][0]["cells"]
    assert [cell.get("history") for cell in cells][1] == [[0, "pass", "Ada"], [1, "fail"]]


def test_a_case_is_listed_once_with_its_candidates(root: Path) -> None:
    anew(root, "second", {"answer": "Hi."})
    assert call(root, "run", "--fail-on", "none") == 0
    anew(root, "first", {"answer": "Go away!"})
    anew(root, "second", {"answer": "Go away."}, version="v3")
    assert call(root, "run", "--fail-on", "none") == 0
    for title in (
        "Broke (1 case, 2 results)",
        "Still broken from the last 10 runs (1 case, 2 results)",
    ):
        lines = summary_of(report(root))
        listed = lines[lines.index(title) + 1 :][:16]
        assert listed[:3] == ["tests/hello.md", "question", "Hello"]
        assert "tests/hello.md" not in listed[1:]
        assert [line.split()[0] for line in listed if "✗ fail" in line] == ["first", "second"]
        causes = ("model changed", "extraIdentifier")
        assert sum(any(each in line for each in causes) for line in listed) == 2
        (root / "tests/bye.md").write_text(TEST.replace("Hello", "Bye"))
        assert call(root, "run", "--fail-on", "none") == 0


def test_a_case_with_several_system_prompts_is_one_case(tmp_path: Path) -> None:
    prompts = {f"prompts/{name}.md": f"---\nid: {name}\n---\n\nBe {name}.\n" for name in ("a", "b")}
    test = "---\nsystemPrompts: [a, b]\n---\n\n# 👤\n\nHello\n\n---\n\nBe kind.\n"
    root = make_workspace(tmp_path / "desk", {**prompts, "tests/hello.md": test})
    edit(root, "Hello", "Hello {{n}}")
    edit(
        root,
        "systemPrompts",
        f"replacements: {{n: [{', '.join(map(str, range(110)))}]}}\nsystemPrompts",
    )
    assert call(root, "run", "--fail-on", "none", "--yes") == 0
    summary = summary_of(report(root))
    assert summary[summary.index("cases") + 1] == "110 in 1 file; 440 results"
    text = (root / "report.html").read_text(encoding="utf-8")
    assert "the first 100 of 110 cases, those that need attention first" in text
    names = shown_names(text)
    assert len(names) == 200
    assert names.count("tests/hello.md [n=99] (a)") == names.count("tests/hello.md [n=99] (b)") == 1
    anew(root, "first", {"when": "^Hello 99$", "answer": "Go away."}, {"answer": "Hi."})
    assert call(root, "run", "--fail-on", "none", "--yes") == 0
    lines = summary_of(report(root))
    listed = lines[lines.index("Broke (1 case, 2 results)") + 1 :]
    assert listed[:3] == ["tests/hello.md [n=99]", "question", "Hello 99"]
    failed = [line for line in listed if "→ ✗ fail" in line]
    assert [line.split(" ✓")[0] for line in failed] == ["a · first", "b · first"]
    markdown = report(root, name="report.md").read_text(encoding="utf-8")
    (broke,) = re.findall(r"#### Broke.*?\n\n(.*?)####", markdown, re.DOTALL)
    names = [line.partition(": ")[0] for line in broke.splitlines() if "- " in line]
    case = "- **`tests/hello.md [n=99]`**"
    assert names == [case, "  - `a` `first`", "  - `b` `first`"]
    told = "\n    Reasons for these 2 results:\n"
    assert broke.count(f"{told}\n    ```text\n    It says Go away.\n    ```\n") == 1
    assert summary_of(root / "report.html").count("judge: It says Go away.") == 1
    for by in ("prompt", "file"):
        table = text.partition(f'<details id="by-{by}"')[2].partition("</details>")[0]
        assert table.count('<svg class="interval-chart"') == (1 if by == "file" else 2), by


def test_tags_are_counted_without_special_ones_and_the_table_says_so(tmp_path: Path) -> None:
    several = {
        f"tests/{tag}.md": TEST.replace("greeting", tag).replace("Hello", tag)
        for tag in ("polite", "brief", "_tools_only")
    }
    root = make_workspace(tmp_path / "desk", several)
    call(root, "run", "--fail-on", "none")
    summary = summary_of(report(root))
    assert {"Tags (3)", "Special tags are left out."} <= {*summary}
    assert not any("_tools_only" in line for line in summary[summary.index("Tags (3)") :][:6])


def test_the_summary_says_what_broke_and_was_fixed(root: Path) -> None:
    (root / "models/first.yaml").write_text(scripted("first", {"answer": "Go away!"}))
    (root / "models/second.yaml").write_text(scripted("second", {"answer": "Welcome."}))
    edit(root, "Hello", "Hi")
    assert call(root, "run", "--fail-on", "none") == 0
    summary = summary_of(report(root))
    assert summary[:5] == [
        "first got worse, 100% to 0% (may be chance); "
        "second got better, 0% to 100% (may be chance); 1 result broke, 1 fixed. "
        "Best: second, 100%; its lead over first may be chance.",
        "Edits: tests/hello.md changed",
        "1 of 2 results fails (1 broke in the last 10 runs)",
        "first 0.0% 0 of 1 0.0% to 79.3% -100.0 $0",
        "second 100.0% 1 of 1 20.7% to 100.0% +100.0 $0",
    ]
    place = summary.index("Broke (1 case)")
    assert summary[place : place + 10] == [
        "Broke (1 case)",
        "tests/hello.md first ✓ pass → ✗ fail (test changed)",
        "question",
        "Hi",
        "before",
        "Good morning!",
        "now",
        "Go away!",
        "why",
        "judge: It says Go away.",
    ]
    place = summary.index("Fixed (1 case)")
    assert summary[place + 1] == "tests/hello.md second ✗ fail → ✓ pass (test changed)"
    assert "1 broke, 1 fixed, 0 unchanged" in summary


def test_results_that_are_gone_are_told(root: Path) -> None:
    (root / "models/second.yaml").write_text(scripted("second", {"answer": "Welcome."}))
    edit(root, "Hello", "Hi")
    assert call(root, "run", "--fail-on", "none") == 0
    (root / "tests/new.md").write_text(TEST.replace("Hello", "Bye"))
    (root / "tests/hello.md").unlink()
    summary = summary_of(report(root, "@work"))
    assert "2 new and 2 gone results since run #" in summary


def test_what_a_label_fixed_in_an_earlier_run_is_not_put_down_to_an_edit(root: Path) -> None:
    call(root, "label", "tests/hello.md", "pass", "--all", "--as", "Ada")
    (root / "tests/new.md").write_text(TEST.replace("Hello", "Bye"))
    call(root, "run", "--fail-on", "none")
    edit(root, "Hello", "Hi")
    summary = summary_of(report(root, "@work"))
    told = r"1 fixed \(by a label of Ada\)"
    assert any(re.search(told, line) for line in summary)


def test_a_change_over_some_of_the_results_says_over_how_many(root: Path) -> None:
    (root / "models/first.yaml").write_text(scripted("first", {"answer": "Go away!"}))
    edit(root, "Hello", "Hi")
    (root / "tests/new.md").write_text(TEST.replace("Hello", "Bye").replace("kind", "short"))
    assert call(root, "run", "--fail-on", "none") == 0
    summary = summary_of(report(root))
    told = "1 result broke, none fixed; 2 of 2 new results fail"
    change = f"first got worse by 100.0 points (may be chance); {told}. Both candidates pass 0%."
    assert summary[0] == change
    assert summary[2] == "4 of 4 results fail (1 broke in the last 10 runs)"
    assert summary[4] == "first 0.0% 0 of 2 0.0% to 65.8% -100.0 in 1 shared result $0"
    assert summary[5] == "second 0.0% 0 of 2 0.0% to 65.8% 0 in 1 shared result $0"


def test_of_answers_that_are_judged_together_the_one_that_fails_is_shown(tmp_path: Path) -> None:
    test = "# Run a x1\n\n# User\n\none\n\n# Run b x1\n\n# User\n\ntwo\n\n---\n\n"
    check = "~~~checks\n- {regex: '^[A-Z]', not: true}\n~~~\n"
    answers = scripted("first", {"when": "two", "answer": "Bonjour"}, {"answer": "salut"})
    files = {"tests/hello.md": test + check, "models/first.yaml": answers}
    root = make_workspace(tmp_path / "desk", files)
    assert call(root, "run", "-m", "first", "--fail-on", "none") == 0
    page = report(root).read_text(encoding="utf-8")
    (row,) = data_of(page, "data-cases")["rows"]
    assert "Bonjour" in row[4][0]
    block = data_of(page, "block-0")
    meaning, source = (block["texts"][number] for number in block["cases"][0]["checks"][0])
    assert meaning == "Fails if the pattern is found in the answer:"
    assert source == "regex: ^[A-Z]\nnot: true"


def test_the_reasons_of_several_judges_are_apart_and_have_their_names(tmp_path: Path) -> None:
    files = {
        "evalstore.yaml": "candidates: [first]\nevaluators: [judge, strict]\n",
        "models/strict.yaml": scripted(
            "strict",
            {"when": "Go away", "answer": {"pass": False, "feedback": "Rude.\nVery."}},
            {"answer": {"pass": True, "feedback": ""}},
        ),
    }
    root = make_workspace(tmp_path / "desk", files)
    call(root, "run", "--fail-on", "none")
    (root / "models/first.yaml").write_text(scripted("first", {"answer": "Go away!"}))
    edit(root, "Hello", "Hi")
    call(root, "run", "--fail-on", "none")
    summary = summary_of(report(root))
    assert {"judge: It says Go away.", "strict: Rude. Very."} <= set(summary)
    assert summary.count("why") == 1
    head = (
        (root / "report.html")
        .read_text("utf-8")
        .partition('id="candidates"')[2]
        .partition("</tr>")[0]
    )
    assert "Cost of 100 answers" in head
    assert "Latency" not in head  # a scripted model without delays has none
    assert "\\n" not in (root / "report.html").read_text().partition("<script")[0]


def test_the_note_of_a_label_and_no_old_failure_is_the_reason_beside_a_fix(root: Path) -> None:
    (root / "models/first.yaml").write_text(scripted("first", {"answer": "Go away!"}))
    edit(root, "Hello", "Hi")
    call(root, "run", "--fail-on", "none")
    label = ("label", "tests/hello.md", "pass", "--model", "first", "--as", "Ada")
    for note, why in (
        ((), "Ada: labelled pass"),
        (("-m", "It is meant."), "Ada: labelled pass: It is meant."),
    ):
        assert (
            not any("changed after this run" in line for line in summary_of(report(root))) or note
        )
        call(root, *label, *note)
        assert any(
            "labels of 1 result changed after this run (by Ada)" in line
            for line in summary_of(report(root))
        )
        assert "labelled pass by Ada after the run" in (root / "report.html").read_text()
        assert "\nLabels of 1 result changed after this run (by `Ada`)" in (
            markdown_report(Location(root))
        )
        summary = summary_of(report(root, "@work", "--compare", "@"))
        assert "Fixed (1 case)" in summary
        assert [summary[at + 1] for at, line in enumerate(summary) if line == "why"] == [why]
    call(root, "run", "--fail-on", "none")
    assert not any("after this run" in line for line in summary_of(report(root, "@")))
    call(root, "label", "tests/hello.md", "--remove", "--model", "first", "--as", "Ada")
    assert any("labels of 1 result changed after" in it for it in summary_of(report(root, "@")))
    assert "label by Ada removed after the run" in (root / "report.html").read_text()


def test_the_note_on_later_labels_names_the_people_and_each_result_how(root: Path) -> None:
    path = root / "tests/hello.md"
    path.write_text(path.read_text().replace("tags:", "systemPrompts: [short, null]\ntags:"))
    (root / "prompts").mkdir()
    (root / "prompts/short.md").write_text("Be short.\n")
    call(root, "run", "--fail-on", "none")
    for name in ("Ada", "Bo", "Eve", "<Ty>"):
        call(root, "label", "tests/hello.md", "pass", "--all", "--as", name)
    page = report(root, "@").read_text()
    note = "labels of 4 results changed after this run (by &lt;Ty&gt;, Ada, Bo, Eve)"
    assert f'<li dir="auto">{note}</li>' in page
    told = "labelled pass by Ada, labelled pass by Bo, labelled pass by Eve, labelled pass by <Ty"
    cells = [cell for case in data_of(page, "block-0")["cases"] for cell in case["cells"]]
    assert [told in cell["labelled"] for cell in cells] == [True] * 4
    assert "(by `<Ty>`, `Ada`, `Bo`, `Eve`)" in markdown_report(Location(root))


def test_a_partial_run_does_not_hide_what_the_last_whole_one_broke(tmp_path: Path) -> None:
    other = TEST.replace("Hello", "Bye")
    root = make_workspace(tmp_path / "desk", {"tests/bye.md": other})
    call(root, "run", "--fail-on", "none")
    (root / "models/first.yaml").write_text(scripted("first", {"answer": "Go away!"}))
    edit(root, "Hello", "Hi")
    call(root, "run", "--fail-on", "none")
    call(root, "run", "tests/hello.md", "-m", "second", "--refresh", "--fail-on", "none")
    now = summary_of(report(root, "@work"))
    told = "Nothing broke or was fixed; 1 result still broken. Best: first, 50%"
    assert now[0] == told + LEAD
    assert now[now.index("Still broken from the last 10 runs (1 case)") + 1].startswith(
        "tests/hello.md first ✗ fail"
    )
    newest = status(Location(root), SelectionOptions()).last_run or ""
    assert newest == diff(Location(root)).was
    assert f"compared with run {newest[:8]}" in report(root, "@work").read_text(encoding="utf-8")
    assert summary_of(report(root, "@"))[0] == "1 of 2 cases: 1 fail"


@pytest.mark.parametrize("is_run_of_some", [False, True])
def test_new_results_that_fail_are_told_and_listed(tmp_path: Path, is_run_of_some: bool) -> None:
    root = make_workspace(tmp_path / "desk", {})
    if is_run_of_some:  # the first verdict on a case that a run left out is new
        (root / "tests/bye.md").write_text(TEST.replace("Hello", "Bye"), encoding="utf-8")
        call(root, "run", "tests/hello.md", "--fail-on", "none")
    else:
        call(root, "run", "--fail-on", "none")
        (root / "tests/bye.md").write_text(TEST.replace("Hello", "Bye"), encoding="utf-8")
    call(root, "run", "--fail-on", "none")
    summary = summary_of(report(root))
    told = "Nothing broke or was fixed; 1 of 2 new results fails. Best: first, 100%"
    assert summary[0] == told + LEAD
    place = summary.index("New and not passing (1 case)")
    assert summary[place + 1] == "tests/bye.md second ✗ fail"
    text = markdown_report(Location(root))
    assert text.startswith("### evalstore: Nothing broke or was fixed; 1 of 2 new results fails. ")
    assert "#### New and not passing\n\n- **`tests/bye.md`** `second`: fail\n" in text
    new = [(pair.either.file, pair.either.verdict) for pair in diff(Location(root), "@~1", "@").new]
    assert new == [("tests/bye.md", "pass"), ("tests/bye.md", "fail")]


@pytest.mark.parametrize("is_edited", [False, True])
def test_the_workspace_has_what_broke_earlier_as_a_run_has_it(
    tmp_path: Path, is_edited: bool
) -> None:
    root = make_workspace(tmp_path / "desk", {"tests/bye.md": TEST.replace("Hello", "Bye")})
    call(root, "run", "--fail-on", "none")
    (root / "models/first.yaml").write_text(scripted("first", {"answer": "Go away!"}))
    edit(root, "Hello", "Hi")
    call(root, "run", "--fail-on", "none")
    edit(root, "Bye", "So long", "tests/bye.md")
    call(root, "run", "--fail-on", "none")
    run = summary_of(report(root, "@"))
    if is_edited:
        edit(root, "kind", "very kind", "tests/bye.md")
    workspace = summary_of(report(root, "@work"))
    place, earlier = (
        run.index("Still broken from the last 10 runs (1 case)") + 1,
        "tests/hello.md first ✗ fail (broke in run #, ",
    )
    told = "Nothing broke or was fixed; 2 results still broken. "
    count = "2 cases"  # with what the last run broke; an edit makes that pending
    if is_edited:
        told = "Nothing broke or was fixed; 1 result still broken, "
        told += "1 broken before and now pending. "
        count = "1 case"
        assert "Broken before and now pending (1 case)" in workspace
        assert "not counted" not in (root / "report.html").read_text(encoding="utf-8")
    same = workspace.index(f"Still broken from the last 10 runs ({count})") + 1
    assert run[place].startswith(earlier)
    assert run[place].endswith(" UTC: test changed)")
    same += [line.startswith(earlier) for line in workspace[same:]].index(True)
    assert workspace[same : same + 7] == run[place : place + 7]
    assert workspace[0].startswith(told)


def test_without_a_revision_it_is_the_last_run_until_something_changes(root: Path) -> None:
    (root / "models/first.yaml").write_text(scripted("first", {"answer": "Go away!"}))
    edit(root, "Hello", "Hi")
    call(root, "run", "--fail-on", "none")

    def written() -> tuple[str, str]:
        assert call(root, "report", "-o", "report.html") == 0
        page = (root / "report.html").read_text(encoding="utf-8")
        compared = re.search(r"compared with run (\w+)", page)
        return summary_of(root / "report.html")[0], compared[1] if compared else ""

    was, now = ([*log(Location(root)).entries][at].run.id[:8] for at in (1, 0))
    told = "first got worse, 100% to 0% (may be chance); 1 result broke, none fixed."
    told += " Both candidates pass 0%."
    assert written() == (told, was)
    for verdict in ("fail", "pass"):  # also one that agrees with the judge
        call(root, "label", "tests/hello.md", verdict, "--model", "first", "--as", "Ada")
        assert written()[1] == now == diff(Location(root)).was[:8]
    call(root, "run", "--fail-on", "none")
    assert written()[1] == now
    newest = next(iter(log(Location(root)).entries)).run.id[:8]
    call(root, "label", "tests/hello.md", "pass", "--model", "first", "--as", "Ben")
    assert written()[1] == newest  # a label after that run is in no run again
    call(root, "run", "--fail-on", "none")
    assert written()[1] == newest
    edit(root, "Hi", "Hi there")
    now = next(iter(log(Location(root)).entries)).run.id[:8]
    assert written()[1] == now == diff(Location(root)).was[:8]


def test_the_summary_says_how_many_verdicts_are_not_explained(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not any("history of a verdict" in line for line in summary_of(report(root)))
    for module in (case_data, report_module):
        monkeypatch.setattr(module, "MOST_EXPLAINED", 0)
    note = (
        "The history of a verdict is shown for the first 0 that do not pass, "
        "and left out for 1 other."
    )
    assert note in summary_of(report(root))


def test_reuse_is_said_with_what_it_saved(tmp_path: Path) -> None:
    priced = "costs: [{costPerPromptToken: 0.001, costPerCompletionToken: 0.01}]\n"
    answer = {"answer": "Hello.", "usage": {"inputTokens": 10, "outputTokens": 2}}
    root = make_workspace(
        tmp_path / "desk",
        {f"models/{name}.yaml": scripted(name, answer) + priced for name in ("first", "second")},
    )
    for _ in range(2):
        assert call(root, "run") == 0
    summary = summary_of(report(root))
    assert summary[summary.index("saved by reuse") + 1] == "$0.0600 simulated: 2 answers reused"
    assert "saved by reuse" not in summary_of(report(root, "@work")), "nothing has run"


def test_compare_names_another_run(root: Path) -> None:
    edit(root, "Hello", "Hi")
    assert call(root, "run", "--fail-on", "none") == 0
    edit(root, "Hi", "Hello")
    assert call(root, "run", "--fail-on", "none") == 0
    first = f"Nothing broke or was fixed. Best: first, 100%{LEAD}"
    assert summary_of(report(root, "@", "--compare", "@~2"))[0] == first
    assert "2 unchanged" in summary_of(report(root, "@", "--compare", "@~2"))
    assert "2 with the same answer" in summary_of(report(root))


def test_a_run_is_compared_with_the_workspace(root: Path) -> None:
    assert "2 unchanged" in summary_of(report(root, "@", "--compare", "@work"))


# --- runs that are not complete


def test_a_run_without_verdicts(tmp_path: Path) -> None:
    root = make_workspace(
        tmp_path / "desk",
        {"tests/hello.md": "# 👤\n\nHello\n\n---\n", "evalstore.yaml": "candidates: [first]\n"},
    )
    assert call(root, "run", "--fail-on", "none") in (0, 3)
    summary = summary_of(report(root))
    assert summary[0] == "Nothing is judged yet."
    assert "first - none judged $0" in summary


def test_a_run_whose_calls_failed(tmp_path: Path) -> None:
    broken = scripted("first", {"error": {"kind": "unsupported", "message": "no such <key>"}})
    root = make_workspace(tmp_path / "desk", {"models/first.yaml": broken})
    call(root, "run", "--fail-on", "none", "--retries", "0")
    path = report(root)
    summary = summary_of(path)
    told = "this run is incomplete: some answers or verdicts are missing"
    assert summary[1:3] == [told, "1 of 2 results pending; 1 call failed"]
    block = data_of(path.read_text(encoding="utf-8"), "block-0")
    (failure,) = block["cases"][0]["cells"][0]["failures"]
    assert "no such <key>" in failure


def test_undecided_results_are_counted_beside_the_rate(tmp_path: Path) -> None:
    files = {"models/judge.yaml": scripted("judge", {"answer": "I cannot say."})}
    root = make_workspace(tmp_path / "desk", files)
    call(root, "run", "--fail-on", "none")
    summary = summary_of(report(root))
    assert summary[:2] == ["Both candidates pass 0%.", "2 of 2 results undecided"]
    assert summary[2].startswith("first 0.0% 0 of 1 ")


def test_the_row_of_a_result_names_all_people_who_decided_it(root: Path) -> None:
    labels = (("first", "fail", "Ada"), ("first", "pass", "Eve"), ("second", "fail", "Ada"))
    for model, verdict, person in (*labels, ("second", "fail", "Eve")):
        note = ("-m", "No reason.") if verdict == "fail" else ()
        label = ("label", "tests/hello.md", verdict, "--model", model, "--as", person)
        assert call(root, *label, *note) == 0
    page = " ".join(re.sub("<[^>]+>", " ", report(root, "@work").read_text("utf-8")).split())
    assert " Good morning! by Ada (a person): fail · by Eve (a person): pass " in page
    assert " by Ada (a person): No reason. · by Eve (a person): No reason. " in page
    call(root, "label", "tests/hello.md", "pass", "--model", "first", "--as", "Ada", "-m", "Kind.")
    page = " ".join(re.sub("<[^>]+>", " ", report(root, "@work").read_text("utf-8")).split())
    assert " Good morning! by Ada (a person): Kind. · by Eve (a person) " in page


def test_edits_of_the_workspace_are_named_as_those_of_a_run(root: Path) -> None:
    (root / "tests/bye.md").write_text(TEST.replace("Hello", "Bye"))
    (root / "tests/gone.md").write_text(TEST.replace("Hello", "Gone"))
    assert call(root, "run", "--fail-on", "none") == 0
    edit(root, "Hello", "Hi")
    (root / "tests/bye.md").rename(root / "tests/late.md")
    (root / "tests/gone.md").unlink()
    (root / "tests/new.md").write_text(TEST.replace("Hello", "Well"))
    (root / "evalstore.yaml").write_text((root / "evalstore.yaml").read_text() + "attempts: 2\n")
    edits = "tests/bye.md renamed to tests/late.md; tests/new.md new; tests/gone.md removed; "
    edits += "tests/hello.md changed; attempts 1 -> 2"
    told = edits.replace("->", "→")
    now = summary_of(report(root, "@work"))
    assert now[1] == f"Edits: {told}"
    assert any(line.startswith("workspace ") and line.endswith(told) for line in now)
    assert call(root, "run", "--fail-on", "none") == 0
    assert summary_of(report(root))[1] == f"Edits: {told}"
    edits = edits.replace("attempts 1 -> 2", "`attempts 1 -> 2`")
    assert f"\nEdits: {edits}.\n" in markdown_report(Location(root))


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("majority", "The majority of the judges decides."),
        ("all", "An answer passes if all judges pass it."),
        ("any", "An answer passes if one of the judges passes it."),
        ("'>= 0.5'", "An answer passes if the mean score of its judges is at least 0.5."),
    ],
)
def test_it_is_said_how_verdicts_that_differ_make_one(tmp_path: Path, rule: str, told: str) -> None:
    judges = {
        f"models/{name}.yaml": scripted(name, {"answer": {"pass": name != "hard"}})
        for name in ("soft", "hard", "mild")
    }
    settings = f"candidates: [first]\nevaluators: [soft, hard, mild]\nverdict: {rule}\n"
    root = make_workspace(tmp_path / "desk", {**judges, "evalstore.yaml": settings})

    def said(revision: str = "@work") -> str | None:
        page = report(root, revision).read_text(encoding="utf-8")
        (cell,) = data_of(page, "block-0")["cases"][0]["cells"]
        rule: str | None = cell.get("rule")
        return rule

    assert call(root, "run", "--fail-on", "none") == 0
    assert said() == said("@") == told
    label = ("label", "tests/hello.md")
    assert call(root, *label, "fail", "--as", "Ada") == 0
    assert said() == "Labels of people overrule judges and checks."
    assert said("@") == told
    assert call(root, *label, "pass", "--as", "Eve") == 0
    more = "; the majority of the labels decides."
    assert said() == f"Labels of people overrule judges and checks{more}"
    (root / "evalstore.yaml").write_text("candidates: [first]\nevaluators: [soft, mild]\n")
    edit(root, "kind", "very kind")
    assert call(root, "run", "--fail-on", "none") == 0
    assert said("@") is None


def test_a_partial_run_says_so(root: Path) -> None:
    edit(root, "Hello", "Hi")
    assert call(root, "run", "-m", "first", "--fail-on", "none") == 0
    edits, note = summary_of(report(root))[1:3]
    assert edits == "Edits: tests/hello.md changed"
    assert note.startswith("run # is partial: -m first (1 result); only those are compared")
    assert "partial run" not in note  # it is said once
    text = markdown_report(Location(root))
    assert ") is partial: " in text
    assert ", with `-m first" in text


def test_the_workspace_can_be_reported_before_it_is_run(root: Path) -> None:
    edit(root, "Hello", "Hi")
    summary = summary_of(report(root, "@work"))
    pending = f"2 of 2 results pending; {PENDING}"
    edits = "Edits: tests/hello.md changed"
    assert summary[:3] == ["Nothing is judged yet.", edits, pending]
    text = (root / "report.html").read_text(encoding="utf-8")
    assert "the workspace as it is now" in text
    assert data_of(text, "block-0")["texts"][0] == "Hi"


def test_the_price_of_what_is_pending_is_that_of_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def priced(model: str, usd: float) -> str:
        return f"{model}costs:\n  - costPerCall: {usd}\n"

    desk = "code: desk\ntype: openai-compatible\nbaseURL: https://desk.example/v1\n"
    other = "id: other\ncode: nobody-lists-it\nprovider: desk\n"
    files = {
        "models/first.yaml": priced(scripted("first", {"answer": "Good morning!"}), 0.25),
        "models/judge.yaml": priced(judge("Go away"), 0.125),
        "models/other.yaml": other,
        "providers/desk.yaml": desk,
    }
    root = make_workspace(tmp_path / "desk", files)
    assert call(root, "run", "--fail-on", "none", "--yes") == 0
    planned = list[object]()

    def describe(*arguments: Any) -> Status:
        planned.append(arguments)
        return describe_workspace(*arguments)

    monkeypatch.setattr(report_module, "describe_workspace", describe)
    assert not any("pending" in line for line in summary_of(report(root, "@work")))
    assert not planned  # nothing is pending

    def told() -> str:
        planned.clear()
        (line,) = (it for it in summary_of(report(root, "@work")) if "; a run would " in it)
        assert len(planned) == 1
        price = price_text(status(Location(root), SelectionOptions()))
        assert price in line
        return line.partition("; a run would ")[2].replace(price, "PRICE")

    edit(root, "Hello", "Hi")
    assert price_text(status(Location(root), SelectionOptions())).startswith("about $0.50")
    work = "ask for 2 answers and give 2 verdicts"
    assert told() == f"{work}, PRICE (answers $0.2500, judging $0.2500)"
    edit(root, "[first", "[other", "evalstore.yaml")
    assert "(that of 'other')" in price_text(status(Location(root), SelectionOptions()))
    assert told() == f"{work}, PRICE: answers price unknown, judging $0.2500"
    parts = "(answers price unknown, judging $0.2500)"
    brief = work_price_text(status(Location(root), SelectionOptions()), brief=True)
    assert brief == f"about $0.2500 plus an unknown price {parts}"
    (root / "models/judge.yaml").write_text(judge())
    assert told() == f"{work}, PRICE"


def test_what_waits_for_trust_has_no_price(root: Path) -> None:
    edit(
        root,
        "The answer must be kind.",
        "~~~checks\n- python: {file: kind.py, function: kind}\n~~~",
    )
    (root / "tests/kind.py").write_text("def kind(answer):\n    return True\n")
    told = "2 of 2 results pending; 2 verdicts wait for trust"
    assert told in summary_of(report(root, "@work"))


# --- the file


def test_a_run_that_ends_meanwhile_does_not_matter(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_then_run(project: Project, revision: str) -> object:
        results = find_results(project, revision)
        edit(root, "Hello", "Hi")
        assert call(root, "run", "-m", "first", "--fail-on", "none") == 0
        return results

    monkeypatch.setattr("evalstore.interfaces.html.report.find_results", find_then_run)
    summary = summary_of(report(root))
    assert summary[:2] == [
        f"1 of 2 results fails. Best: first, 100%{LEAD}",
        "first 100.0% 1 of 1 20.7% to 100.0% $0",
    ]


def test_the_policy_allows_only_the_script_and_the_style_of_the_page(root: Path) -> None:
    text = report(root).read_text(encoding="utf-8")
    match = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert match
    policy = match[1].replace("&#39;", "'")
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.S)
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.S)
    assert policy == (
        f"default-src 'none'; script-src '{source_hash(script)}'; "
        f"style-src '{source_hash(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )
    assert text.index("Content-Security-Policy") < text.index("<style")


def test_the_page_uses_nothing_that_the_policy_forbids() -> None:
    folder = Path(__file__).parents[3] / "evalstore/interfaces/html/templates"
    scripts = sorted(folder.glob("*.js"))
    script = "".join(each.read_text(encoding="utf-8") for each in scripts)
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|fetch\(",
        # Those of a served page, which may ask its own server.
        script.replace("await fetch(base, ", "", 1).replace("await fetch(href, ", "", 1),
    )
    for name in ("page.html", "parts.html"):
        page = (folder / name).read_text(encoding="utf-8")
        assert not re.search(r"\bstyle=|\bon[a-z]+=|\|\s*safe\b|https?://", page)


def test_the_table_without_javascript_has_the_problems_first(tmp_path: Path) -> None:
    rows = ", ".join(map(str, range(150)))
    test = f"---\nreplacements:\n  n: [{rows}]\n---\n\n# 👤\n\nHello {{{{n}}}}\n\n---\n\nBe kind.\n"
    answers = ({"when": "Hello 149", "answer": "Go away."}, {"answer": "Hello."})
    root = make_workspace(
        tmp_path / "desk",
        {
            "tests/hello.md": test,
            "tests/other.md": test,
            "models/second.yaml": scripted("second", *answers),
        },
    )
    assert call(root, "run", "--fail-on", "none", "--yes") == 0
    text = report(root).read_text(encoding="utf-8")
    names = shown_names(text)
    assert len(names) == 200
    assert names[:3] == ["tests/hello.md [n=149]", "tests/other.md [n=149]", "tests/hello.md [n=0]"]
    assert "the first 200 of 300 cases, those that need attention first" in text


def test_a_report_is_replaced_and_nothing_else(root: Path, evalstore: Evalstore) -> None:
    first = report(root).read_bytes()
    assert report(root).read_bytes() == first
    (root / "notes.html").write_text("<p>mine")
    result = evalstore("-C", str(root), "report", "-o", "notes.html", exit_code=2)
    assert result.stderr == (
        "error: 'notes.html' exists and is not a report\n"
        "hint: name another file; only a report is replaced by a report\n"
    )
    assert (root / "notes.html").read_text() == "<p>mine"


def test_a_link_to_a_report_is_followed(root: Path) -> None:
    (root / "link.html").symlink_to("linked.html")
    for _ in range(2):  # the second time there is a report
        report(root, name="link.html")
        assert (root / "link.html").is_symlink()
        assert not (root / "linked.html").is_symlink()


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("tests", "it is a folder"),
        ("no/report.SUFFIX", "folder 'no' not found"),
        ("pipe.SUFFIX", "it is not a regular file"),
        ("circle.SUFFIX", "Too many levels of symbolic links"),
        (f"{'x' * 300}.SUFFIX", "File name too long"),
    ],
    ids=["folder", "no folder", "pipe", "circle", "long"],
)
@pytest.mark.parametrize("suffix", ["html", "md"])
def test_a_place_where_no_file_can_be_is_refused(
    root: Path, evalstore: Evalstore, name: str, problem: str, suffix: str
) -> None:
    name = name.replace("SUFFIX", suffix)
    os.mkfifo(root / f"pipe.{suffix}")  # opening one waits for a writer
    (root / f"circle.{suffix}").symlink_to(f"circle.{suffix}")
    options = ["--markdown"] if suffix == "md" else []
    result = evalstore("-C", str(root), "report", *options, "-o", name, exit_code=2)
    assert (
        result.stderr == f"error: '{name}' cannot be written: {problem}\nhint: name another file\n"
    )


def test_a_failed_report_leaves_nothing(root: Path, evalstore: Evalstore) -> None:
    before = sorted(path.name for path in root.iterdir())
    evalstore("-C", str(root), "report", "@~7", exit_code=2)
    evalstore("-C", str(root), "report", "--compare", "ffff", exit_code=2)
    assert sorted(path.name for path in root.iterdir()) == before


def test_without_a_run_or_a_test_there_is_no_report(tmp_path: Path, evalstore: Evalstore) -> None:
    root = make_workspace(tmp_path / "desk", {})
    told = evalstore("-C", str(root), "report", "@", exit_code=2).stderr
    assert told == (
        f"error: unknown run '@'\nhint: no runs yet: 'evalstore -C {root} run' makes one\n"
    )
    assert summary_of(report(root, "@work"))[:2] == [
        "Nothing is judged yet.",
        f"2 of 2 results pending; {PENDING}",
    ]
    (root / "tests/hello.md").unlink()
    for options in ((), ("--json",)):
        told = evalstore("-C", str(root), "report", "@work", *options, exit_code=2).stderr
        assert "tests: no test files" in told
    assert not (root / "evalstore-report.html").exists()


def test_output_of_the_command(root: Path, evalstore: Evalstore) -> None:
    result = evalstore("-C", str(root), "report")
    assert result.stdout == "wrote evalstore-report.html\n"
    assert re.fullmatch(r"1 case, \d+\.\d kB\n", result.stderr)
    document = json.loads(evalstore("-C", str(root), "report", "--json").stdout)
    jsonschema.Draft202012Validator(schema_of(["report"])).validate(document)
    assert document["report"] == "evalstore-report.html"
    assert document["bytes"] == (root / "evalstore-report.html").stat().st_size
    result = evalstore("-C", str(root), "report", "-o", "-", "--json", exit_code=2)
    assert result.stderr.startswith("error: '--json' says what was written to an HTML file\n")


def test_stdout_has_the_same_page(root: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    written = report(root).read_bytes()
    capfdbinary.readouterr()
    assert call(root, "report", "@", "-o", "-") == 0
    assert capfdbinary.readouterr().out == written


def test_equal_texts_are_written_once(root: Path) -> None:
    block = data_of(report(root).read_text(encoding="utf-8"), "block-0")
    texts = list(_texts(block["texts"]))
    assert len(texts) == len(set(texts))
    assert "Good morning!" in texts


def _texts(entries: list[object]) -> Iterator[str]:
    for entry in entries:
        yield entry if isinstance(entry, str) else str(entry[0])  # type: ignore[index]


def test_a_report_shows_no_special_tag(tmp_path: Path) -> None:
    recorded = TEST.replace("tags: [greeting]", "tags: [greeting, _json_mode]\nanswer: Hi")
    root = make_workspace(tmp_path / "desk", {"tests/recorded.md": recorded})
    call(root, "run", "--fail-on", "none")
    path = report(root)
    assert "_json_mode" not in path.read_text(encoding="utf-8")


def test_a_run_of_some_cases_has_counts_and_no_rate(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "desk", {"tests/bye.md": TEST.replace("Hello", "Bye")})
    call(root, "run", "--fail-on", "none")
    call(root, "run", "tests/bye.md", "--refresh", "--fail-on", "none")
    path = report(root)
    lines = summary_of(path)
    assert lines[0] == "1 of 2 cases, 2 results: 1 pass, 1 fail"
    place = lines.index("first 1 of 1 $0")
    assert lines[place + 1] == "second 0 of 1 $0"
    table = "| candidate | passed | 100 answers |\n|---|---:|---:|\n| `first` | 1 of 1 | $0 |\n"
    assert table in markdown_report(Location(root))
    head = path.read_text(encoding="utf-8").partition('id="matrix"')[2].partition("</thead>")[0]
    assert "%" not in head


def test_a_run_is_shown_with_its_name_and_one_headline_for_one_pair_of_runs(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "models/first.yaml").write_text(scripted("first", {"answer": "Go away!"}))
    edit(root, "Hello", "Hi")
    assert call(root, "run", "--fail-on", "none") == 0
    assert call(root, "tag", "old", "@") == 0
    assert call(root, "run", "--fail-on", "none") == 0
    assert call(root, "tag", "new", "@") == 0
    for arguments in ((), ("@", "--compare", "old")):
        page = report(root, *arguments).read_text(encoding="utf-8")
        assert re.search(r"</strong> run [0-9a-f]{8} \(new\)\n", page)
        assert re.search(r"compared with run [0-9a-f]{8} \(old\)", page)
        assert re.search(r">Since run [0-9a-f]{8} \(old\)", page)
        assert len(re.findall(r">[0-9a-f]{8} <strong [^>]*>\((?:new|old)\)<", page)) == 2
        assert re.search("<h1[^>]*>Nothing broke or was fixed; 1 result still broken[.]", page)
    capsys.readouterr()
    assert call(root, "show", "@") == 0
    assert capsys.readouterr().out.partition("\n")[0].endswith("(new)")


def test_a_change_by_a_label_is_not_that_of_a_candidate(root: Path) -> None:
    (root / "tests/bye.md").write_text(TEST.replace("Hello", "Bye"))
    assert call(root, "run", "--fail-on", "none") == 0
    assert call(root, "label", "tests/hello.md", "fail", "--model", "first", "--as", "Ada") == 0
    told, (headline, *_) = "People's labels changed 1 result", summary_of(report(root, "@work"))
    assert headline == f"{told}: 1 broke, none fixed. Best: first, 50%{LEAD}"
    (root / "models/second.yaml").write_text(scripted("second", {"answer": "Welcome."}))
    edit(root, "Bye", "Goodbye", "tests/bye.md")
    assert call(root, "run", "--fail-on", "none") == 0
    headline, *_ = summary_of(report(root))
    told = "first fell, 100% to 50%, by people's labels; second got better, 0% to 50% "
    told += "(may be chance); 1 result broke, 1 fixed; people's labels changed 1 result. "
    assert headline.startswith(told)
    quoted = re.sub("(first|second) (fell|got)", r"`\1` \2", told).replace("Ada", "`Ada`")
    assert f": {quoted}" in markdown_report(Location(root))
    outcome = log(Location(root), limit=1).entries[0].outcome
    assert outcome
    assert outcome.causes == ("of these 2, 1 by an edit", "1 by a label of Ada")
    row = "1 broke , 1 fixed (of these 2, 1 by an edit, 1 by a label of Ada) tests/bye.md"
    assert any(row in line for line in summary_of(report(root)))
    edit(root, "Hello", "Good day")
    (root / "models/first.yaml").write_text(scripted("first", {"answer": "Go away!"}))
    assert call(root, "run", "--fail-on", "none") == 0
    assert call(root, "label", "tests/bye.md", "fail", "--model", "second", "--as", "Ada") == 0
    edit(root, "Good day", "Hello")
    headline, *_ = summary_of(report(root, "@work"))
    told = "second got worse, 100% to 0% (may be chance); 2 results broke, none fixed, 1 other "
    told += "still broken; people's labels changed 1 result."
    assert headline.startswith(told)


def test_edits_judges_and_older_answers_are_no_change_of_a_candidate(root: Path) -> None:
    (root / "models/second.yaml").write_text(scripted("second", {"answer": "Hi."}))
    assert call(root, "run", "--refresh") == 0
    told = (
        "second got better, 0% to 100% (may be chance); 1 result fixed. Both candidates pass 100%."
    )
    assert summary_of(report(root))[0] == told
    assert call(root, "report", "-o", "report.html") == 0  # older answers count: not an edit
    assert summary_of(root / "report.html")[0] == told
    note = "asked again (--refresh): in the workspace the oldest answers count"
    pages = ["\n".join(summary_of(report(root, revision))) for revision in ("@", "@work")]
    assert all(note in page for page in pages)
    assert call(root, "run", "--fail-on", "none") == 0
    assert note not in "\n".join(summary_of(report(root)))
    note = "Older answers count: after a run with --refresh, a run without it counts the oldest"
    assert note in (root / "report.html").read_text(encoding="utf-8")
    told = "1 result changed because older answers count now"
    told += ": 1 broke, none fixed. Best: first, 100%" + LEAD
    assert summary_of(report(root))[0] == told
    assert f"### evalstore: {told}\n" in markdown_report(Location(root)).replace("`", "")
    edit(root, "kind", "kind, not Go away")
    assert call(root, "run", "--fail-on", "none") == 0
    assert summary_of(report(root))[0].startswith("Edits of tests changed 1 result: 1 broke,")
    (root / "models/judge.yaml").write_text(judge("Nothing") + "extraIdentifier: mild\n")
    assert call(root, "run", "--fail-on", "none") == 0
    told = "Judges changed 2 results: 2 fixed. Both candidates pass 100%."
    assert summary_of(report(root))[0] == told


def test_of_several_causes_each_is_told_with_its_changes(root: Path) -> None:
    (root / "models/second.yaml").write_text(scripted("second", {"answer": "Hi."}))
    assert call(root, "run", "--refresh") == 0
    assert call(root, "label", "tests/hello.md", "fail", "--model", "first", "--as", "Ada") == 0
    assert call(root, "run", "--fail-on", "none") == 0
    told = "People's labels changed 1 result, 1 changed because older answers count now: "
    assert summary_of(report(root))[0].startswith(f"{told}2 broke, none fixed. ")


def test_older_runs_are_not_counted_and_the_page_says_so(root: Path) -> None:
    for _ in range(11):
        assert call(root, "run", "--fail-on", "none") == 0
    page = report(root).read_text(encoding="utf-8")
    assert (
        page.count('<td data-name="changed results"><span class="change-same">not counted</span>')
        == 2
    )
    assert page.index("Changed results are counted") > page.index(">Changed results</th>")
    assert "<p>Changed results are counted for the newest 10 runs.</p>" in page.replace(
        ' class="note"', ""
    )


def anew(root: Path, name: str, *responses: Mapping[str, object], version: str = "v2") -> None:
    """Give a candidate other responses, and ask it everything again."""
    text = f"{scripted(name, *responses)}extraIdentifier: {version}\n"
    (root / f"models/{name}.yaml").write_text(text)


def test_candidates_that_are_not_named_are_counted(tmp_path: Path) -> None:
    names = ("a", "b", "c", "d", "e")
    files = {
        f"models/{name}.yaml": scripted(name, {"answer": "Go away." if name in "de" else "Hi."})
        for name in names
    }
    settings = f"candidates: [{', '.join(names)}]\nevaluators: [judge]\n"
    root = make_workspace(tmp_path / "desk", {**files, "evalstore.yaml": settings})
    assert call(root, "run", "--fail-on", "none") == 0
    for name in names:
        anew(root, name, {"answer": "Hi." if name in "de" else "Go away."})
    assert call(root, "run", "--fail-on", "none") == 0
    told = (
        "got worse, 100% to 0% (may be chance); {} got worse, 100% to 0% (may be chance); "
        "1 other got worse (may be chance); 2 others got better (may be chance)"
    )
    assert summary_of(report(root))[0].startswith(
        f"a {told.format('b')}; 3 results broke, 2 fixed. "
    )
    assert f": `a` {told.format('`b`')}; 3 results broke, 2 fixed. " in markdown_report(
        Location(root)
    )


def test_every_candidate_whose_rate_changed_is_named_and_each_result_is_counted_once(
    root: Path,
) -> None:
    anew(root, "second", {"answer": "Hi."})
    assert call(root, "run", "--fail-on", "none") == 0
    assert call(root, "label", "tests/hello.md", "fail", "--model", "first", "--as", "Ada") == 0
    headline = summary_of(report(root, "@work", "--compare", "@~1"))[0]
    told = "first fell, 100% to 0%, by people's labels; second got better, 0% to 100% "
    told += "(may be chance); 1 result broke, 1 fixed; people's labels changed 1 result. "
    assert headline.startswith(told)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("Go away.", "Labels that no longer count changed 1 result: 1 broke, none fixed."),
        ("Go away!", "second got worse, 100% to 0% (may be chance); 1 result broke, none fixed."),
        ("", "Labels that no longer count changed 1 result: 1 broke, none fixed."),
    ],
)
def test_a_label_that_no_longer_counts_on_the_same_answer_is_no_change_of_a_candidate(
    root: Path, answer: str, told: str
) -> None:
    assert call(root, "label", "tests/hello.md", "pass", "--model", "second", "--as", "Ada") == 0
    assert call(root, "run", "--fail-on", "none") == 0
    if answer:
        anew(root, "second", {"answer": answer})
    else:
        edit(root, "must be kind", "must be brief and kind")
    assert call(root, "run", "--fail-on", "none") == 0
    assert summary_of(report(root))[0] == f"{told} Best: first, 100%{LEAD}"
    assert "label of Ada no longer counts" in markdown_report(Location(root))
    told = "by Ada (a person) (for other instructions or checks)"
    cells = data_of(report(root, "@").read_text(), "block-0")["cases"][0]["cells"]
    assert any(told in vote for cell in cells for vote in cell["votes"]) == (not answer)


def test_only_changes_of_the_rate_are_counted_with_those_by_labels(tmp_path: Path) -> None:
    files = {f"tests/{name}.md": TEST.replace("Hello", name) for name in ("bye", "hm")}
    settings = "candidates: [first]\nevaluators: [judge]\n"
    unread = {"when": "Hm", "answer": "Perhaps."}
    no = {"when": "Go away", "answer": {"pass": False}}
    models = {
        "models/judge.yaml": scripted("judge", unread, no, {"answer": {"pass": True}}),
        "models/first.yaml": scripted("first", {"answer": "Go away."}),
    }
    root = make_workspace(tmp_path / "desk", {**files, **models, "evalstore.yaml": settings})
    assert call(root, "run", "--fail-on", "none") == 0
    bye, hm = {"when": "bye", "answer": "Bye."}, {"when": "hm", "answer": "Hm."}
    anew(root, "first", bye, hm, {"answer": "Go away."})
    assert call(root, "run", "--fail-on", "none") == 0
    assert call(root, "label", "tests/hello.md", "pass", "--as", "Ada") == 0
    headline = summary_of(report(root, "@work", "--compare", "@~1"))[0]
    told = "first got better, 0% to 67% (may be chance); 1 result now undecided, 2 fixed; "
    told += "people's labels changed 1 result."
    assert headline == told


def test_a_case_that_broke_for_another_candidate_did_not_also_break_earlier(root: Path) -> None:
    anew(root, "second", {"answer": "Hi."})
    (root / "tests/bye.md").write_text(TEST.replace("Hello", "Bye"))
    assert call(root, "run", "--fail-on", "none") == 0
    anew(root, "first", {"answer": "Go away!"})
    assert call(root, "run", "--fail-on", "none") == 0
    anew(root, "second", {"when": "Bye", "answer": "Go away!"}, {"answer": "Hi."}, version="v3")
    assert call(root, "run", "--fail-on", "none") == 0
    headline, *lines = summary_of(report(root))
    told = "second got worse, 100% to 50% (may be chance); 1 result broke, none fixed, "
    told += "2 others still broken. "
    assert headline.startswith(told)
    place = lines.index("Still broken from the last 10 runs (2 cases)")
    since = "tests/hello.md first ✗ fail (broke in run #"
    (at,) = (at for at, line in enumerate(lines) if at > place and line.startswith(since))
    answers = ["question", "Hello", "before", "Good morning!", "now", "Go away!"]
    assert lines[at + 1 : at + 7] == answers
    told = markdown_report(Location(root)).partition("#### Still broken from the last 10 runs\n\n")[
        2
    ]
    shown = r"- \*\*`tests/hello.md`\*\* `first`: fail, broke in run `[0-9a-f]{8}`, .* UTC: "
    assert re.search(rf"{shown}`.*extraIdentifier.*`\n", told)
    page = report(root).read_text(encoding="utf-8")
    cases = [case for case in data_of(page, "block-0")["cases"] if "passed" in case["cells"][0]]
    passed, _ = (case["cells"][0]["passed"] for case in cases)
    assert (passed["word"], [line[0] for line in passed["diff"][0]]) == ("pass", ["-", "+"])
    (told, *_) = lines[lines.index("Broke (1 case)") + 1 : place]
    assert told == "tests/bye.md second ✓ pass → ✗ fail (model changed)"

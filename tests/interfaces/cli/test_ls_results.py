"""`ls results`, agents and Python list the same results by the same filter."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import evalstore as library
from evalstore.interfaces.cli.main import main
from evalstore.interfaces.tui.case_filter import FilteredCases, LookedUp, read_query
from evalstore.interfaces.tui.render.run_details import workspace_lines
from evalstore.planning.options import Location
from evalstore.results.table import cases as cases_module
from evalstore.results.table.cases import ResultFilter, cases, find_filtered, list_runs
from evalstore.runs.status.dashboard import read_dashboard
from tests.builders import tree
from tests.interfaces.cli.conftest import JUDGE, ONE, WEATHER, Evalstore
from tests.interfaces.cli.run.test_run import edit, release

FILES = {
    "evalstore.yaml": "candidates: [acme/gpt, acme/mini]\nevaluators: [scripted/judge]\n",
    "models/gpt.yaml": ONE.replace("scripted/one", "acme/gpt"),
    "models/mini.yaml": ONE.replace("scripted/one", "acme/mini"),
    "models/judge.yaml": JUDGE,
    "tests/weather.md": WEATHER,
    "tests/refunds/late.md": WEATHER.replace("tags: [weather]", "tags: [refunds]").replace(
        "How is", "What about a refund in"
    ),
}


@pytest.fixture
def judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evalstore: Evalstore) -> Path:
    """Two files of two rows with two candidates, of which the rows Oslo fail."""
    monkeypatch.chdir(tree(tmp_path / "w", FILES))
    evalstore("run", "-q")
    return Path.cwd()


@pytest.mark.parametrize(
    ("arguments", "options", "count"),
    [
        ([], {}, 8),
        (["-m", "gpt"], {"models": ["gpt"]}, 4),
        (["-m", "acme/mini", "-m", "gpt"], {"models": ["acme/mini", "gpt"]}, 8),
        (["--verdict", "fail"], {"verdicts": ["fail"]}, 4),
        (["--verdict", "fail,pass"], {"verdicts": ["fail", "pass"]}, 8),
        (["-t", "refunds"], {"tags": ["refunds"]}, 4),
        (["-k", "oslo and not late"], {"name": "oslo and not late"}, 2),
        (["--grep", "refund oslo"], {"grep": "refund oslo"}, 2),
        (["--grep", "cold"], {"grep": "cold"}, 4),
        (["tests/refunds"], {"paths": ["tests/refunds"]}, 4),
        (["weather.md::city=Oslo"], {"paths": ["weather.md::city=Oslo"]}, 2),
        (["--broke"], {"broke": True}, 0),
        (
            ["-m", "gpt", "-t", "refunds", "--verdict", "fail"],
            {"models": ["gpt"], "tags": ["refunds"], "verdicts": ["fail"]},
            1,
        ),
    ],
)
def test_results_are_filtered_alike_in_a_run_the_workspace_and_python(
    judged: Path, documents: Any, arguments: list[str], options: dict[str, Any], count: int
) -> None:
    now = documents("ls", "results", *arguments)["results"]
    of_run = documents("ls", "results", "--run", "@", *arguments)["results"]
    assert now == of_run
    assert len(now) == count
    with library.Workspace(judged) as workspace:
        for run in ("@", None):
            found = workspace.results(run, **options)
            assert [[it.file, it.row, it.model, it.verdict] for it in found] == [
                [it["file"], it["row"], it["model"], it["verdict"]] for it in now
            ]


@pytest.mark.parametrize(
    ("typed", "options"),
    [
        ("model:gpt verdict:fail", {"models": ["gpt"], "verdicts": ["fail"]}),
        ('model:"acme/mini" verdict:fail,pass', {"verdicts": ["fail", "pass"]}),
        ('tag:"refunds" verdict:pass', {"tags": ["refunds"], "verdicts": ["pass"]}),
        ("-tag:refunds", {"exclude_tags": ["refunds"]}),
        ("file:late", {"paths": ["tests/refunds"]}),
        ("verdict:broke", {"broke": True}),
        ("oslo late", {"name": "oslo and late"}),
    ],
)
def test_the_browser_lists_the_cases_of_the_results_that_are_listed(
    judged: Path, typed: str, options: dict[str, Any]
) -> None:
    filtered = FilteredCases(cases(Location(judged), "@"))
    rows = filtered.select(read_query(typed), "file", LookedUp())
    with library.Workspace(judged) as workspace:
        found = dict.fromkeys((it.file, it.row) for it in workspace.results("@", **options))
    assert [(row.file, row.row) for row in rows] == [*found]


def test_a_result_without_a_reply_is_not_pending(judged: Path, documents: Any) -> None:
    answer = "  - {answer: Warm., usage: {inputTokens: 10, outputTokens: 2}}\n"
    edit(judged / "models/gpt.yaml", answer, "")
    options = "options: {temperature: 0.5, seed: 7}"
    edit(judged / "tests/weather.md", "tags:", f"{options}\ntags:")
    documents("run", "--fail-on", "none")
    for place in ((), ("--run", "@")):
        lists = [
            documents("ls", "results", f"--verdict={word}", *place)["results"]
            for word in ("no reply", "pending", "no reply,pending")
        ]
        assert [len(listed) for listed in lists] == [1, 0, 1]


def test_people_see_the_case_and_the_reason(
    store_url: str | None, judged: Path, evalstore: Evalstore
) -> None:
    del store_url  # both databases
    shown = evalstore("ls", "results", "-m", "gpt", "-t", "refunds", "--verdict", "fail").stdout
    assert shown.splitlines() == [
        "VERDICT  CASE                               SINCE     RUN       ANSWER    REASON",
        "fail     tests/refunds/late.md [city=Oslo]  <when>  <short>  <short>  It is cold there.",
    ]
    assert evalstore("ls", "results", "--verdict", "error").stderr == "No results.\n"
    edit(judged / "tests/weather.md", "[Oslo, Rome]", "[Oslo, Rome, Bern]")
    note = "({} more pending: '--verdict pending' lists them)\n"
    ran = evalstore("ls", "results", "--verdict", "fail")
    assert (ran.stdout.count("\nfail "), ran.stderr) == (4, note.format(2))
    only = evalstore("ls", "results", "--verdict", "error", "-m", "gpt")
    assert only.stderr == f"No results.\n{note.format(1)}"
    assert evalstore("ls", "results", "--verdict", "pending", "-m", "gpt").stderr == ""
    assert evalstore("ls", "results", "--verdict", "fail", "-t", "refunds").stderr == ""


def test_a_search_that_finds_nothing_says_what_it_does_not_search(
    judged: Path, evalstore: Evalstore
) -> None:
    search = ("ls", "results", "-m", "gpt", "tests/refunds", "--grep", "what about")
    assert evalstore(*search).stderr == ""
    edit(judged / "tests/refunds/late.md", "What about", "And what about")
    expected = "No results.\n(results without an answer are not searched)\n"
    assert (evalstore(*search).stdout, evalstore(*search).stderr) == ("", expected)


def test_what_broke_and_is_pending_now_is_counted(judged: Path, evalstore: Evalstore) -> None:
    release(judged / "models/gpt.yaml", "answer: Warm.", "answer: Cold.")
    evalstore("run", "-q")
    window = "(still broken from the last 10 runs; '--since REV' lists what broke since REV)\n"
    assert evalstore("ls", "results", "--broke").stderr == window
    assert window not in evalstore("ls", "results", "--broke", "--since", "@~1").stderr
    edit(judged / "tests/weather.md", "How is", "How was")
    shown = evalstore("ls", "results", "--broke")
    assert shown.stdout.count("\npending ") == 1
    assert shown.stderr == f"{window}(1 of these: broken before and now pending)\n"


def test_what_broke_is_listed_until_it_is_fixed(judged: Path, documents: Any) -> None:
    text = (judged / "models/gpt.yaml").read_text()
    release(judged / "models/gpt.yaml", "answer: Warm.", "answer: Cold.")
    documents("run", "--fail-on", "none")
    for options in ((), ("--run", "@"), ("--run", "@", "--since", "@~1")):
        listed = documents("ls", "results", "--broke", *options)["results"]
        assert [(it["row"], it["model"]) for it in listed] == [("city=Rome", "acme/gpt")] * 2
    (judged / "models/gpt.yaml").write_text(text)
    documents("run", "--fail-on", "none")
    assert documents("ls", "results", "--broke", "--run", "@")["results"] == []


def test_a_first_check_of_a_file_is_no_change_of_its_settings(judged: Path, documents: Any) -> None:
    with (judged / "tests/weather.md").open("a", encoding="utf-8") as file:
        file.write("\n~~~checks\n- contains: Sunny\n~~~\n")
    documents("run", "--fail-on", "none")
    (first, *_) = documents("ls", "results", "--broke")["results"]
    assert first["changes"] == ["checks added"]


def test_everything_that_broke_is_listed_however_much_broke_in_a_later_run(
    judged: Path, documents: Any
) -> None:
    towns = ", ".join(f"Town {number}" for number in range(21))
    edit(judged / "tests/refunds/late.md", "Oslo, Rome", f"Oslo, {towns}")
    rule = "responses:\n  - {when: Town, answer: Warm.}\n"
    edit(judged / "models/gpt.yaml", "responses:\n", rule)
    documents("run", "--fail-on", "none")
    documents("label", "tests/weather.md::city=Rome", "fail", "--model", "gpt")
    documents("run", "--fail-on", "none")
    release(judged / "models/gpt.yaml", "Town, answer: Warm.", "Town, answer: Cold.")
    documents("run", "tests/refunds", "--fail-on", "none")
    listed = documents("ls", "results", "--broke")["results"]
    assert len(listed) == 22
    assert (listed[-1]["file"], listed[-1]["row"]) == ("tests/weather.md", "city=Rome")
    where = Location(judged)
    dashboard = read_dashboard(where)
    assert len(dashboard.broken or ()) == 22
    lines = [
        it.text.strip()
        for it in workspace_lines(dashboard, list_runs(where), (), str, lambda _: None)
    ]
    assert lines[lines.index("{history.broken} lists them.") + 22] == "… 2 more"


def test_what_broke_keeps_its_system_prompt_after_files_changed_contents(
    judged: Path, documents: Any, evalstore: Evalstore
) -> None:
    (judged / "tests/refunds/late.md").unlink()
    edit(judged / "tests/weather.md", "tags:", "systemPrompts: [brief, kind]\ntags:")
    brief, very = "Be brief.\n", "Be very kind.\n"
    tree(judged, {"prompts/brief.md": brief, "prompts/kind.md": "Be kind.\n"})
    edit(judged / "models/gpt.yaml", "when: Oslo", "when: very kind.*Oslo")
    evalstore("run", "--refresh", "-q")
    tree(judged, {"prompts/kind.md": very})
    evalstore("run", "-q")
    for texts, name in (((brief, very), "kind"), ((very, brief), "brief")):
        tree(judged, dict(zip(("prompts/brief.md", "prompts/kind.md"), texts, strict=True)))
        (listed,) = documents("ls", "results", "--broke")["results"]
        assert (listed["row"], listed["model"], listed["promptName"]) == (
            "city=Oslo",
            "acme/gpt",
            name,
        )
        (broken,) = read_dashboard(Location(judged)).broken or ()
        assert broken.name == f"tests/weather.md [city=Oslo] ({name}) acme/gpt"


def test_it_says_since_which_run_a_result_is_broken_and_why(
    judged: Path, documents: Any, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(judged / "tests/weather.md", "How is", "How was")
    edit(judged / "models/gpt.yaml", "answer: Warm.", "answer: Cold.")
    broke = documents("run", "-m", "gpt", "tests/weather.md", "--fail-on", "none")["run"]
    documents("run", "-m", "mini", "tests/weather.md", "--fail-on", "none")
    since = {"since": broke, "changes": ["test changed"]}
    for options in ((), ("--since", "@~2"), ("--run", "@~1"), ("--run", "@~1", "--since", "@~2")):
        (listed,) = documents("ls", "results", "--broke", *options)["results"]
        assert {name: listed[name] for name in since} == since, options
    title, row = evalstore("ls", "results", "--broke").stdout.splitlines()
    columns = ["VERDICT", "CASE", "MODEL", "SINCE", "RUN", "ANSWER", "CAUSE", "REASON"]
    assert title.split() == columns
    assert row.endswith("acme/gpt  <when>  <short>  <short>  test changed  It is cold there.")
    evalstore("label", "tests/refunds/late.md::city=Rome", "fail", "--model", "mini", "--as", "Ada")
    now, _ = documents("ls", "results", "--broke", "--since", "@~2")["results"]
    assert (now["since"], now["changes"]) == ("workspace", ["labelled by Ada"])
    assert " now " in evalstore("ls", "results", "--broke", "--since", "@~2").stdout
    two = ("ls", "results", "--broke", "--since", "@~2")
    assert "SINCE and CAUSE" not in evalstore(*two).stderr
    monkeypatch.setattr(cases_module, "MOST_WITH_CAUSE", 1)
    first, second = documents(*two)["results"]
    assert (first["since"], second["since"], second["changes"]) == ("workspace", None, [])
    assert evalstore(*two).stderr == (
        "(SINCE and CAUSE are given for at most 1 results, from 100 runs)\n"
    )
    assert "since" not in documents("ls", "results")["results"][0]


def test_a_table_says_since_when_each_result_fails_as_show_does(
    judged: Path,
    documents: Any,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def since(*options: str) -> list[str]:
        main(["ls", "results", *options])
        title, *rows = capsys.readouterr().out.splitlines()
        start = title.index(" RUN ") + 1
        return [row[start : start + 8].strip() for row in rows]

    first = documents("log")["runs"][0]["run"]
    failing = documents("ls", "results", "--verdict", "fail")["results"]
    assert since("--verdict", "fail") == [first[:8]] * len(failing)
    edit(judged / "tests/weather.md", "How is", "How was")
    edit(judged / "models/gpt.yaml", "answer: Warm.", "answer: Cold.")
    broke = documents("run", "-m", "gpt", "tests/weather.md", "--fail-on", "none")["run"]
    listed = documents("ls", "results", "--run", "@")["results"]
    shown = since("--run", "@")
    for result, run in zip(listed, shown, strict=True):
        case = f"{result['file']}::{result['row']}" if result["row"] else result["file"]
        history = documents("show", f"@:{case}", "-m", result["model"])["history"]
        is_failing = result["verdict"] == "fail"
        assert run == (history["since"]["run"][:8] if is_failing else ""), case
    assert broke[:8] in shown
    main(["ls", "results", "--verdict", "pass"])
    assert "SINCE" not in capsys.readouterr().out
    monkeypatch.setattr(cases_module, "MOST_WITH_CAUSE", 1)
    dated = since("--verdict", "fail", "--run", "@")
    assert dated.count("") == len(dated) - 1 > 0
    main(["ls", "results", "--verdict", "fail"])
    assert "(SINCE is given for at most 1 results, from 100 runs)" in capsys.readouterr().err


def test_what_broke_in_several_files_is_found_when_prompts_of_each_change_places(
    judged: Path, documents: Any
) -> None:
    tree(judged, {"prompts/brief.md": "Be brief.", "prompts/kind.md": "Be kind."})
    tests, model = [*judged.rglob("tests/**/*.md")], judged / "models/gpt.yaml"
    rules = (
        "responses:\n  - {when: 'kind.*How is Rome', answer: Hot.}\n"
        "  - {when: 'brief.*What about.*Rome', answer: Hot.}\n"
    )
    text = model.read_text().replace("responses:\n", rules)
    again = ("run", "-m", "gpt", "--fail-on", "none")
    for path in tests:
        edit(path, "tags:", "systemPrompts: [brief, kind]\ntags:")
    for answer in ("Hot", "Cold"):
        model.write_text(f"extraIdentifier: {answer}\n{text.replace('Hot', answer)}")
        documents(*again)
    for path in tests:
        edit(path, "[brief, kind]", "[kind, brief]")
    documents(*again)
    listed = documents("ls", "results", "--broke", "-m", "gpt")["results"]
    assert sorted((it["file"], it["row"], it["promptName"]) for it in listed) == [
        ("tests/refunds/late.md", "city=Rome", "brief"),
        ("tests/weather.md", "city=Rome", "kind"),
    ]


def test_what_broke_is_listed_once_when_prompts_change_places(
    judged: Path, documents: Any, evalstore: Evalstore
) -> None:
    test, model = judged / "tests/weather.md", judged / "models/gpt.yaml"
    tree(judged, {"prompts/brief.md": "Be brief.", "prompts/kind.md": "Be kind."})
    edit(test, "tags:", "systemPrompts: [brief, kind]\ntags:")
    text = model.read_text().replace(
        "responses:\n", "responses:\n  - {when: 'kind.*Oslo', answer: Hot.}\n"
    )
    again = ("run", "tests/weather.md", "-m", "gpt", "--fail-on", "none")
    for number, (answer, order) in enumerate((("Hot", 1), ("Cold", 1), ("Hot", -1), ("Cold", -1))):
        model.write_text(f"extraIdentifier: v{number}\n{text.replace('Hot', answer)}")
        listed = ", ".join(["brief", "kind"][::order])
        test.write_text(re.sub("systemPrompts: .*", f"systemPrompts: [{listed}]", test.read_text()))
        documents(*again)
    (result,) = documents("ls", "results", "--broke")["results"]
    assert (result["row"], result["promptName"]) == ("city=Oslo", "kind")
    dashboard = read_dashboard(Location(judged))
    assert [it.name for it in dashboard.broken or ()] == [
        "tests/weather.md [city=Oslo] (kind) acme/gpt"
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-m", "frob"], "no candidate is called 'frob'"),
        (["-t", "frob"], "no case has the tag 'frob'"),
        (["--verdict", "fial"], "unknown verdict 'fial'"),
        (["--since", "@"], "'--since' needs '--broke'"),
        (["--grep", "…"], "'…' has no word to search for"),
        (["frob.md"], "test file 'frob.md' not found"),
        (["frob.md", "--run", "@"], "run <short> has no test file 'frob.md'"),
    ],
)
def test_a_name_that_there_is_not_is_an_error(
    judged: Path, evalstore: Evalstore, arguments: list[str], message: str
) -> None:
    assert evalstore("ls", "results", *arguments).stderr.startswith(f"error: {message}")


def test_only_results_are_chosen_by_verdict(judged: Path, evalstore: Evalstore) -> None:
    refused = evalstore("ls", "cases", "--verdict", "fail")
    assert refused.exit_code == 2
    assert refused.stderr.endswith("hint: write 'evalstore ls results'\n")


def test_judges_are_those_of_the_command_for_python(judged: Path, documents: Any) -> None:
    judges = library.Workspace(judged).judges()
    assert library.to_json(judges)["groups"] == documents("stats", "--by", "judge")["groups"] != []


@pytest.mark.parametrize("verdicts", [[], ["fail"]])
def test_an_agent_reads_the_same_results_in_pages(
    judged: Path, documents: Any, verdicts: list[str]
) -> None:
    options = [f"--verdict={word}" for word in verdicts]
    whole = documents("ls", "results", "--run", "@", *options)["results"]
    with find_filtered(Location(judged), "@", ResultFilter(verdicts=tuple(verdicts))) as (_, found):
        pages = [found.page(offset, 3) for offset in range(0, len(whole) + 3, 3)]
    assert {total for _, total in pages} == {len(whole)}
    read = [(it.file, it.row, it.model) for page, _ in pages for _, it, *_ in page]
    assert read == [(it["file"], it["row"], it["model"]) for it in whole]


def test_a_part_of_a_models_name_means_the_same_everywhere(
    judged: Path, evalstore: Evalstore
) -> None:
    assert "acme/mini" not in evalstore("ls", "results", "-m", "gpt").stdout
    for command in (
        ["run", "-n", "-m", "GPT"],
        ["run", "-n", "-J", "jud"],
        ["status", "-m", "gpt"],
        ["diff", "@", "-m", "gpt"],
        ["diff", "@", "--model", "gpt", "--vs", "mini"],
        ["show", "tests/weather.md::city=Oslo", "-m", "gpt"],
        ["doctor", "-m", "gpt", "--no-ping"],
        ["label", "tests/weather.md::city=Rome", "fail", "--model", "gpt", "--as", "Ada"],
    ):
        ran = evalstore(*command)
        assert (ran.exit_code, ran.stderr.count("error")) == (0, 0), command
    evalstore("run", "-m", "gpt", "-q")
    assert "arguments: -m acme/gpt " in evalstore("log", "-n", "1").stdout


def test_a_prompt_is_named_where_a_case_has_several(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evalstore: Evalstore
) -> None:
    files = {
        "prompts/brief.md": "# System\n\nBe brief.\n",
        "tests/one.md": WEATHER.replace("tags:", "systemPrompts: [brief]\ntags:"),
        "tests/two.md": WEATHER.replace("tags:", "systemPrompts: [brief, null]\ntags:"),
    }
    monkeypatch.chdir(tree(tmp_path / "w", FILES | files))
    evalstore("run", "-q")
    names = ["one.md [city=Rome]", "two.md [city=Rome] (brief)", "two.md [city=Rome] (no prompt)"]
    for run in ("@", "@work"):
        wanted = ("-m", "gpt", "-k", "rome and (one or two)", "--run", run)
        listed = evalstore("ls", "results", *wanted).stdout.splitlines()[1:]
        assert [line.partition("tests/")[2].split("  ")[0] for line in listed] == names
    shown = json.loads(evalstore("show", "tests/one.md::city=Rome", "--json").stdout)
    assert (shown["promptName"], shown["others"][0]["promptName"]) == ("brief", "brief")


@pytest.mark.parametrize(
    "command",
    [
        ["run", "-m", "acme"],
        ["status", "-m", "acme"],
        ["diff", "@", "--model", "acme", "--vs", "gpt"],
        ["label", "tests/weather.md::city=Rome", "fail", "--model", "acme", "--as", "Ada"],
    ],
)
def test_a_part_of_several_names_runs_and_labels_none(
    judged: Path, evalstore: Evalstore, command: list[str]
) -> None:
    ran = evalstore(*command)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr == (
        "error: 'acme' is part of the names of 2 models\nhint: name one: acme/gpt, acme/mini\n"
    )


def test_words_of_a_verdict_that_counts_no_more_find_nothing(
    store_url: str | None, judged: Path, documents: Any
) -> None:
    del store_url  # both databases
    found, phrase = ("ls", "results", "-m", "gpt", "--grep"), '"cold there"'

    def rows(words: str, *options: str) -> list[str]:
        return [each["row"] for each in documents(*found, words, *options)["results"]]

    assert rows(phrase) == ["city=Oslo"] * 2
    for file in ("tests/weather.md", "tests/refunds/late.md"):
        text = (judged / file).read_text(encoding="utf-8")
        (judged / file).write_text(text.replace("warm", "fine"), encoding="utf-8")
    edit(judged / "models/judge.yaml", "must be warm.*Cold", "must be fine.*Cold")
    edit(judged / "models/judge.yaml", "It is cold there.", "Snow lies there.")
    documents("run", "--fail-on", "none")
    assert rows(phrase) == []
    assert rows("snow") == rows(phrase, "--run", "@~1") == ["city=Oslo"] * 2

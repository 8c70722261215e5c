"""An edit of what a test file uses is named, and not the test file: its data, files, schemas."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalstore.interfaces.cli.main import main
from evalstore.planning.options import Location, SelectionOptions
from evalstore.results.log.log import log
from evalstore.runs.status.status import status
from tests.builders import tree
from tests.interfaces.cli.conftest import JUDGE, ONE, SETTINGS, Evalstore
from tests.interfaces.cli.long_files import ROWS, treat_as_long
from tests.interfaces.cli.run.test_run import edit

DATA = "city,land\nOslo,Norway\nRome,Italy\nLima,Peru\n"
TEST = """\
---
dataset: data/cities.csv
---

# 👤

Where is {{city}}? `{{_file:map.txt}}`

---

The answer must name {{land}}.
"""
WORKSPACE = {
    "evalstore.yaml": SETTINGS,
    "models/one.yaml": ONE,
    "models/judge.yaml": JUDGE,
    "tests/cities.md": TEST,
    "tests/data/cities.csv": DATA,
    "tests/map.txt": "A map.\n",
}
FILE, OF_ROWS = "tests/cities.md", "rows of tests/data/cities.csv"


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with a test of a data file, after its run."""
    folder = tree(tmp_path / "w", WORKSPACE)
    monkeypatch.chdir(folder)
    main(["run", "--quiet"])
    return folder


def logged(workspace: Path) -> list[str]:
    """The edits of the newest run."""
    return [str(each) for each in log(Location(workspace)).entries[0].edits]


def sources(workspace: Path) -> list[tuple[str, ...]]:
    """What was edited since the last run, for each changed test file."""
    return [change.sources for change in status(Location(workspace), SelectionOptions()).changes]


@pytest.mark.parametrize(
    ("edited", "expected"),
    [
        ({"tests/data/cities.csv": DATA.replace("Oslo,", "Bergen,")}, [OF_ROWS]),
        ({"tests/data/cities.csv": DATA.replace("Norway", "Sweden")}, [OF_ROWS]),
        ({"tests/data/cities.csv": f"{DATA}Nice,France\n"}, [OF_ROWS]),
        ({"tests/data/cities.csv": DATA.replace("Rome,Italy\n", "")}, [OF_ROWS]),
        ({"tests/map.txt": "Another map.\n"}, ["file map.txt"]),
        ({FILE: TEST.replace("Where is", "Tell me where is")}, [FILE]),
        (
            {
                FILE: TEST.replace("must name", "must say"),
                "tests/data/cities.csv": DATA.replace("Oslo,", "Bergen,"),
            },
            [FILE, OF_ROWS],
        ),
        ({"tests/data/cities.csv": "city,land\nNice,France\nBergen,Norway\n"}, [OF_ROWS]),
        (
            {FILE: TEST.replace("data/cities.csv", "{path: data/cities.csv, limit: 2}")},
            [FILE],
        ),
        (
            {
                FILE: TEST.replace("data/cities.csv", "data/towns.csv"),
                "tests/data/towns.csv": DATA.replace("Oslo,", "Bergen,"),
                "tests/data/cities.csv": DATA.replace("Oslo,", "Bergen,"),
            },
            [FILE],
        ),
    ],
)
def test_what_was_edited_is_named(
    workspace: Path, edited: dict[str, str], expected: list[str]
) -> None:
    tree(workspace, edited)
    assert sources(workspace) == [tuple(expected)]
    main(["run", "--quiet"])
    assert logged(workspace) == [f"{name} changed" for name in expected[::-1]]


def test_an_edit_of_the_replacements_beside_data_is_one_of_the_test_file(workspace: Path) -> None:
    written = TEST.replace("---\n", "---\nreplacements: {how: [please]}\n", 1)
    written = written.replace("Where is", "{{how}} where is")
    tree(workspace, {FILE: written})
    main(["run", "--quiet"])
    edit(workspace / FILE, "[please]", "[please, now]")
    assert sources(workspace) == [(FILE,)]


def test_two_old_runs_do_not_name_a_data_file_that_neither_used(
    workspace: Path, evalstore: Evalstore
) -> None:
    edit(workspace / "tests/data/cities.csv", "Oslo,", "Bergen,")
    main(["run", "--quiet"])
    tree(workspace, {"tests/data/towns.csv": DATA.replace("Rome", "Turin")})
    edit(workspace / FILE, "data/cities.csv", "data/towns.csv")
    assert sources(workspace) == [(FILE,)]
    main(["run", "--quiet"])
    lines = evalstore("diff", "@~2", "@~1").stdout.splitlines()
    lines = lines[lines.index("Edited:") :]
    assert lines[:2] == ["Edited:", f"    {OF_ROWS}"]
    edits = [[str(each) for each in entry.edits] for entry in log(Location(workspace)).entries]
    assert edits[:2] == [[f"{FILE} changed"], [f"{OF_ROWS} changed"]]


def test_runs_that_noted_no_digests_name_the_cases_of_the_test_file(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalstore.runs.run.ensure_sources", lambda *_: None)
    edit(workspace / "tests/data/cities.csv", "Oslo,", "Bergen,")
    main(["run", "--quiet"])
    assert logged(workspace) == [f"cases of {FILE} changed"]
    edit(workspace / FILE, "data/cities.csv", "{path: data/cities.csv, limit: 2}")
    assert sources(workspace) == [(f"cases of {FILE}",)]


def test_status_and_diff_name_the_data_file(workspace: Path, evalstore: Evalstore) -> None:
    edit(workspace / "tests/data/cities.csv", "Oslo,", "Bergen,")
    changed = f"    M.  {FILE}  1 case new, 1 case removed: {OF_ROWS}"
    assert changed in evalstore("status").stdout.splitlines()
    lines = evalstore("diff").stdout.splitlines()
    start = lines.index("Edited:")
    assert lines[start : start + 4] == [
        "Edited:",
        f"    {OF_ROWS}",
        "        row city=Bergen is new",
        "        row city=Oslo is gone",
    ]
    assert f"    {FILE}" not in lines
    edit(workspace / FILE, "must name", "must say")
    assert f"    {FILE}" in evalstore("diff").stdout.splitlines()


SCHEMA = "id: place\ntype: object\nproperties: {land: {type: string}}\nrequired: [land]\n"
TOOL = "name: find\ndescription: Finds.\nparameters: {type: object, properties: {}}\n"
PROMPT = "---\ntags: [_evaluator]\n---\n\nSay yes or no.\n\n# 👤\n\n{{_actualResponse}}\n"
SCRIPT = "id: scripted/{}\nprovider: scripted\nresponses: [{{answer: '{}'}}]\n"
CHECK = '~~~checks\n- judge: {prompt: strict, choices: ["yes", "no"], pass: ["yes"]}\n~~~\n'


@pytest.mark.parametrize(
    ("written", "edited", "expected"),
    [
        ("structuredResponseSchema: place\n", ("schemas/place.yaml", "string", "number"), "schema"),
        ("availableTools: [find]\n", ("tools/find.yaml", "Finds.", "Finds a place."), "tool"),
        ("", ("prompts/strict.md", "Say yes", "Answer yes"), "judge prompt"),
    ],
)
def test_a_schema_a_tool_or_an_evaluator_prompt_is_named(
    workspace: Path, written: str, edited: tuple[str, str, str], expected: str
) -> None:
    body = TEST.partition("# 👤")[2].partition("---")[0]
    files = {
        "schemas/place.yaml": SCHEMA,
        "tools/find.yaml": TOOL,
        "prompts/strict.md": PROMPT,
        FILE: f"---\ndataset: data/cities.csv\n{written}---\n\n# 👤{body}---\n\n{CHECK}",
    }
    tree(workspace, files)
    main(["run", "--quiet"])
    path, *texts = edited
    edit(workspace / path, *texts)
    name = f"{expected} {Path(path).stem}"
    assert sources(workspace) == [(name,)]
    main(["run", "--quiet"])
    assert logged(workspace) == [f"{name} changed"]
    edit(workspace / path, *texts[::-1])
    main(["run", "--quiet"])
    assert logged(workspace) == [f"{name} changed"]
    entries = log(Location(workspace)).entries[1:2]
    assert [str(each) for entry in entries for each in entry.edits] == [f"{name} changed"]


@pytest.mark.parametrize(
    ("has_digests", "expected"), [(True, "schema place"), (False, f"cases of {FILE}")]
)
def test_a_schema_that_has_no_name_any_more_is_cases_of_its_test_file_without_digests(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, has_digests: bool, expected: str
) -> None:
    if not has_digests:
        monkeypatch.setattr("evalstore.runs.run.ensure_sources", lambda *_: None)
    body = TEST.partition("# 👤")[2]
    head = "---\ndataset: data/cities.csv\nstructuredResponseSchema: place\n---\n\n# 👤"
    tree(workspace, {"schemas/place.yaml": SCHEMA, FILE: f"{head}{body}"})
    for old, new in (("string", "number"), ("number", "boolean"), ("boolean", "integer")):
        main(["run", "--quiet"])
        edit(workspace / "schemas/place.yaml", old, new)
    edits = [[str(each) for each in entry.edits] for entry in log(Location(workspace)).entries]
    assert edits[:2] == [[f"{expected} changed"]] * 2


def test_diff_does_not_repeat_an_edit_for_the_checks_that_use_it(
    workspace: Path, evalstore: Evalstore
) -> None:
    body = TEST.partition("# 👤")[2].partition("---")[0]
    head = "---\ndataset: data/cities.csv\nstructuredResponseSchema: place\n---\n\n# 👤"
    files = {
        "schemas/place.yaml": SCHEMA,
        "prompts/strict.md": PROMPT,
        "models/one.yaml": SCRIPT.format("one", '{"land": "Norway"}'),
        "models/judge.yaml": SCRIPT.format("judge", '{"reasoning": "", "choice": "yes"}'),
    }
    tree(workspace, {**files, FILE: f"{head}{body}---\n\n{CHECK}"})
    assert evalstore("run").exit_code == 0
    edit(workspace / "schemas/place.yaml", "string", "number")
    edit(workspace / "prompts/strict.md", "Say yes", "Answer yes")
    lines = evalstore("diff").stdout.splitlines()
    start = lines.index("Edited:")
    assert lines[start + 1 : start + 6] == [
        "    schema place",
        "        properties.land.type: string -> number",
        "    judge prompt strict",
        "        message 1, line 1: Say yes or no. -> Answer yes or no.",
        "Changed (3):",
    ]
    edit(workspace / FILE, "Where is", "Tell me where is")
    assert "        check 1 changed: schema" in evalstore("diff").stdout.splitlines()


@pytest.mark.parametrize(
    ("edited", "expected"),
    [
        (
            ("prompts/strict.md", "Say yes", "Answer yes"),
            "judge prompt strict: message 1, line 1: Say yes or no. -> Answer yes or no.",
        ),
        (("schemas/place.yaml", "string", "number"), "changed: properties.land.type: string -> n"),
    ],
    ids=["prompt", "schema"],
)
def test_what_a_check_uses_is_told_once_also_without_digests(
    workspace: Path,
    evalstore: Evalstore,
    monkeypatch: pytest.MonkeyPatch,
    edited: tuple[str, str, str],
    expected: str,
) -> None:
    monkeypatch.setattr("evalstore.runs.run.ensure_sources", lambda *_: None)
    body = TEST.partition("# 👤")[2].partition("---")[0]
    head = "---\ndataset: data/cities.csv\nstructuredResponseSchema: place\n---\n\n# 👤"
    tree(workspace, {"schemas/place.yaml": SCHEMA, "prompts/strict.md": PROMPT})
    answers = {"one": '{"land": "Norway"}', "judge": '{"reasoning": "", "choice": "yes"}'}
    tree(workspace, {f"models/{id}.yaml": SCRIPT.format(id, answers[id]) for id in answers})
    tree(workspace, {FILE: f"{head}{body}---\n\n{CHECK}"})
    assert evalstore("run").exit_code == 0
    edit(workspace / edited[0], *edited[1:])
    for lines in (
        evalstore("diff").stdout.splitlines(),
        [evalstore("run").stdout, *evalstore("log", FILE).stdout.splitlines()[:5]],
    ):
        told = [line for line in lines if f"{edited[1]}" in line and " -> " in line]
        assert len(told) == 1, lines
        assert not any("check " in line for line in lines)
    assert expected in told[0]


def test_the_data_file_of_a_long_test_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    treat_as_long(monkeypatch)
    test = TEST.replace("data/cities.csv", "data.jsonl").replace("city", "country")
    written = {FILE: test.replace("{{land}}", "{{capital}}"), "tests/data.jsonl": ROWS}
    folder = tree(tmp_path / "w", {**WORKSPACE, **written})
    monkeypatch.chdir(folder)
    main(["run", "--quiet", "--yes"])
    edit(folder / "tests/data.jsonl", '"land 70"', '"another land"')
    assert sources(folder) == [("rows of tests/data.jsonl",)]
    main(["run", "--quiet"])
    assert logged(folder) == ["rows of tests/data.jsonl changed"]
    edit(folder / FILE, "Where is", "Tell me where is")
    assert sources(folder) == [(FILE,)]

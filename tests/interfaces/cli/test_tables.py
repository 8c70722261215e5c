"""Tables fit the terminal: columns are left out in a documented order, and no number is cut."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalstore.core.display import columns_of
from evalstore.interfaces.cli.render.layout import Table, fit, print_table
from tests.builders import tree
from tests.interfaces.cli.run.test_run import edit

if TYPE_CHECKING:
    from tests.interfaces.cli.conftest import Echo, Evalstore

TABLE = Table(
    ("name", "calls", "tags", "cost"),
    [("tests/a-long-name.md", "5", "weather, short", "$1.00"), ("b", "1,234", "", "$0")],
    frozenset({"calls", "cost"}),
    ("tags", "calls"),
)


def names_at(width: int | None) -> list[str]:
    return [TABLE.header[number] for number in fit(TABLE, width).shown]


@pytest.mark.parametrize(
    ("width", "names"),
    [
        (None, ["name", "calls", "tags", "cost"]),
        (50, ["name", "calls", "tags", "cost"]),
        (49, ["name", "calls", "cost"]),
        (34, ["name", "calls", "cost"]),
        (33, ["name", "cost"]),
        (5, ["name", "cost"]),
    ],
)
def test_columns_are_left_out_in_their_order(width: int | None, names: list[str]) -> None:
    assert names_at(width) == names


def test_texts_are_cut_only_when_no_more_columns_can_be_left_out_and_numbers_never() -> None:
    assert (fit(TABLE, 27).widths, fit(TABLE, 27).is_cut) == ([20, 5], False)
    assert (fit(TABLE, 26).widths, fit(TABLE, 26).is_cut) == ([19, 5], True)
    assert fit(TABLE, 1).widths == [10, 5]


def test_sentences_are_cut_at_their_end_and_may_be_alike(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    rows = [["fail", f"strict: It does not say that it is {end}"] for end in "ab"]
    print_table(Table(["verdict", "reason"], rows, prose="reason"))
    lines = capsys.readouterr().out.splitlines()[1:]
    cut = "strict: It does not say that i…"
    assert [line.removeprefix("fail").strip() for line in lines] == [cut, cut]


def test_a_table_without_a_header_is_as_narrow_as_its_cells() -> None:
    table = Table(("a long name",), [("b",)], has_header=False)
    assert fit(table, None).widths == [1]


@pytest.fixture
def several(workspace: Path) -> Path:
    """Two candidates, of which one has a long name, and a file with a long name and a long row."""
    long = "tests/opening-hours-of-the-shop-on-holidays.md"
    rows = (
        "---\ntags: [a, b]\nreplacements:\n  day: [a holiday that falls on a Sunday, May 1]\n---\n"
    )
    question = (
        f"{rows}\n# 👤\n\nHow warm is it on {{{{day}}}}?\n\n---\n\nThe answer must be warm.\n"
    )
    other = (workspace / "models/one.yaml").read_text()
    name = "scripted/one-with-quite-a-long-name"
    tree(workspace, {long: question, "models/two.yaml": other.replace("scripted/one", name)})
    edit(workspace / "evalstore.yaml", "[scripted/one]", f"[scripted/one, {name}]")
    return workspace


COMMANDS = ["stats", "stats --by model,tag", "stats --by file,model,tag", "grep warm"]
COMMANDS += [f"ls {kind}" for kind in ("tests", "cases", "models", "evaluators", "prompts")]
COMMANDS += [f"ls {kind}" for kind in ("tags", "runs", "checks")]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_every_list_fits_the_terminal(
    several: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    evalstore("run", "--yes")
    monkeypatch.setenv("COLUMNS", str(width))
    for command in COMMANDS:
        shown = evalstore(*command.split())
        assert shown.exit_code == 0, command
        lines = [*shown.stdout.splitlines(), *shown.stderr.splitlines()]
        assert max(map(columns_of, lines)) <= width, command


def test_a_narrow_table_says_what_is_left_out_and_wide_shows_it(
    several: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    shown = evalstore("ls", "cases")
    assert shown.stdout == (
        "FILE                           ROW\n"
        "tests/opening-hours-of-the-s…  day=a holiday that falls on …\n"
        "tests/opening-hours-of-the-s…  day=May 1\n"
        "tests/weather.md               city=Oslo\n"
        "tests/weather.md               city=Rome\n"
    )
    assert shown.stderr == (
        "(left out: judging version, test version, tags; long cells\nare cut; --wide shows all)\n"
    )
    wide = evalstore("ls", "cases", "--wide")
    head = re.split(r"  +", wide.stdout.splitlines()[0])
    assert head == ["FILE", "ROW", "TEST VERSION", "JUDGING VERSION", "TAGS"]
    assert "tests/opening-hours-of-the-shop-on-holidays.md" in wide.stdout
    assert wide.stderr == ""
    assert evalstore("ls", "cases", "-q").stderr == ""


def test_a_file_or_a_pipe_gets_all_columns_unless_columns_is_set(
    several: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    piped = evalstore("ls", "cases")
    assert piped == evalstore("ls", "cases", "--wide")
    assert max(map(len, piped.stdout.splitlines())) > 100


def test_the_parts_of_a_group_have_a_column_each_and_numbers_end_below_each_other(
    workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(workspace, {"tests/new.md": "---\ntags: [a]\n---\n# 👤\n\nHi.\n\n---\n\nBe kind.\n"})
    evalstore("run", "--yes")
    monkeypatch.setenv("COLUMNS", "60")
    assert evalstore("stats", "--by", "model,tag").stdout.splitlines()[1:] == [
        "MODEL         TAG      PASSED   95% INTERVAL  JUDGED",
        "scripted/one  a        100.0%  20.7 - 100.0%     1/1",
        "scripted/one  weather   50.0%    9.5 - 90.5%     2/2",
        "all                     66.7%   20.8 - 93.9%     3/3",
    ]


def test_matches_are_grouped_by_file_and_no_word_is_broken(
    echo: Echo, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    echo.reply = lambda _text: "needle " + "extraordinarily long words " * 3
    question = "# 👤\n\nQuestion {n}?\n\n---\n\n~~~checks\n- contains: needle\n~~~\n"
    tree(Path.cwd(), {f"tests/{n}.md": question.replace("{n}", n) for n in "ab"})
    evalstore("run")
    monkeypatch.setenv("COLUMNS", "60")
    section = (
        "  answer <short>  scripted/one\n"
        "    needle extraordinarily long words extraordinarily long\n"
        "      words …\n"
    )
    assert evalstore("grep", "needle").stdout == (f"tests/a.md\n{section}\ntests/b.md\n{section}")
    coloured = evalstore("grep", "needle", "--color", "always").stdout
    assert "\x1b[31m\x1b[1mneedle\x1b[0m" in coloured


WIDE_ROW = Table(
    ("file", "row", "id", "tags"),
    [("tests/a.md", "a label of forty columns, which is long..", "12345678", "weather")],
    optional=("id", "tags"),
    shortened={"row": 20},
)


@pytest.mark.parametrize(
    ("width", "names", "row"),
    [
        (71, ["file", "row", "id", "tags"], 40),
        (51, ["file", "row", "id", "tags"], 20),
        (50, ["file", "row", "tags"], 29),
        (41, ["file", "row", "tags"], 20),
        (40, ["file", "row"], 28),
    ],
)
def test_a_long_column_is_shortened_before_another_is_left_out(
    width: int, names: list[str], row: int
) -> None:
    layout = fit(WIDE_ROW, width)
    assert [WIDE_ROW.header[number] for number in layout.shown] == names
    assert layout.widths[1] == row


@pytest.mark.parametrize("width", [60, 80])
def test_cases_show_more_than_file_and_row(
    workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    label = "a very long name of a place that nobody has ever been to"
    edit(workspace / "tests/weather.md", "[Oslo, Rome]", f"[Oslo, Rome, {label}]")
    header = evalstore("ls", "cases").stdout.splitlines()[0]
    assert header.split()[:2] == ["FILE", "ROW"]
    assert header.split()[-1] == "TAGS"


def test_prices_of_a_call_are_shown_and_unknown_capabilities_explained(
    workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert "$/CALL" not in evalstore("ls", "models").stdout
    judge = workspace / "models/judge.yaml"
    judge.write_text(judge.read_text() + "costs: [{costPerCall: 0.25}]\n")
    listed = evalstore("ls", "models")
    header, *rows = listed.stdout.splitlines()
    assert header.split()[-1] == "$/CALL"
    assert rows[0].split()[-1] == "0.25"
    assert listed.stderr.endswith(
        "(?: unknown; the model file can declare it under 'capabilities')\n"
    )
    for name in ("judge", "one"):
        model = workspace / f"models/{name}.yaml"
        model.write_text(model.read_text() + "capabilities: {tools: true}\n")
    assert "(?:" not in evalstore("ls", "models").stderr


def test_special_tags_are_not_groups_of_the_table(
    workspace: Path, evalstore: Evalstore, documents: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a terminal, where a note says so; a file or a pipe has all groups."""
    edit(workspace / "tests/weather.md", "tags: [weather]", "tags: [weather, _tools_only]")
    evalstore("run")
    monkeypatch.delenv("COLUMNS", raising=False)
    assert "_tools_only" in evalstore("stats", "--by", "tag").stdout
    monkeypatch.setenv("COLUMNS", "80")
    shown = evalstore("stats", "--by", "tag")
    assert "_tools_only" not in shown.stdout
    assert "(1 special tag left out; --wide shows all)\n" in shown.stderr
    assert "_tools_only" in evalstore("--wide", "stats", "--by", "tag").stdout
    assert "_tools_only" in evalstore("stats", "--by", "tag", "-o", "csv").stdout
    assert len(documents("stats", "--by", "tag")["groups"]) == 2


@pytest.mark.parametrize("width", [60, 80, 120])
def test_names_that_begin_alike_can_be_distinguished_in_every_list(
    echo: Echo, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    """The rows of one file begin with its path and the name of the same column."""
    file = "tests/opening-hours-of-the-shop-and-of-its-workshop.md"
    rows = [f"Which of the opening hours is on {day}?" for day in ("May 1", "May 2", "a Sunday")]
    front = "---\nreplacements:\n  question:\n" + "".join(f"    - {row}\n" for row in rows)
    tree(
        Path.cwd(),
        {file: f"{front}---\n# 👤\n\n{{{{question}}}}\n\n---\n\n~~~checks\n- contains: no\n~~~\n"},
    )
    monkeypatch.setenv("COLUMNS", str(width))
    planned = evalstore("status", "--explain").stdout
    shown = {"run": evalstore("run").stdout, "status": planned, "show": evalstore("show").stdout}
    shown["again"] = evalstore("run").stdout
    shown["ls"] = evalstore("ls", "cases").stdout
    for command, text in shown.items():
        for ending in ("May 1?", "May 2?", "Sunday?"):
            assert ending in text, command
    run = [line for line in shown["run"].splitlines() if line.startswith("fail ")]
    assert len(run) == 3
    assert max(map(columns_of, run)) <= width

"""Datasets from the data file to the verdict, through the command line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from evalstore.core.runs import ProgressListener
from evalstore.planning.options import Location, RunOptions, SelectionOptions
from evalstore.runs.run import run
from tests.builders import tree
from tests.interfaces.cli.conftest import Echo, Evalstore

TEST = """\
---
dataset: data/q.jsonl
---

# 👤

{{ q }}

---

~~~checks
- equals: "{{ ideal }}"
~~~
"""
ROW = '{"q": "a", "ideal": "a"}\n'


def lines(*rows: Any) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def write(data: str | bytes | None, *, test: str = TEST, to: str = "tests/data/q.jsonl") -> None:
    files: dict[str, str | bytes] = {"tests/t.md": test}
    tree(Path(), files if data is None else {**files, to: data})


def with_check(check: str) -> str:
    return TEST.replace('- equals: "{{ ideal }}"', check)


def verdicts(document: Any) -> list[tuple[str, str]]:
    return [(case["row"], case["verdict"]) for case in document["cases"]]


# --- data that can be read ----------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        "\ufeff" + ROW,
        ROW.replace("\n", "\r\n"),
        "\n\n" + ROW + "  \n\n",
        ROW.strip(),
        gzip.compress(ROW.encode()),
    ],
    ids=["byte order mark", "CRLF", "blank lines", "no final newline", "gzip by its bytes"],
)
def test_one_row_is_one_case(echo: Echo, documents: Any, data: str | bytes) -> None:
    write(data)
    assert verdicts(documents("run")) == [("", "pass")]
    assert echo.asked == ["a"]


@pytest.mark.parametrize(
    "text",
    [
        "a\u2028b\u2029c\x85d",
        "{{ ideal }} {% if %} {{_file:x}} {#",
        "---\n# 👤\n```\n# ▶ x\n---",
        "`x` ```\n~~~checks\n- equals: z\n~~~",
        "<!-- kept -->b",
        "a\0b\x1b[31m",
        "007",
    ],
)
def test_data_stay_data(echo: Echo, documents: Any, text: str) -> None:
    write(lines({"q": text, "ideal": text}))
    assert verdicts(documents("run")) == [("", "pass")]
    assert echo.asked == [text]


def test_equal_rows_share_an_answer_and_are_as_many_cases(echo: Echo, documents: Any) -> None:
    write(ROW * 3)
    document = documents("run")
    assert (document["asked"], document["judged"]) == (1, 1)
    assert verdicts(document) == [("", "pass"), ("#2", "pass"), ("#3", "pass")]


@pytest.mark.parametrize(
    ("row", "shown", "expected"),
    [
        ({"items": "a", "keys": "b"}, "{{ items }}{{ item.keys }}", "{{ item.items }}{{ keys }}"),
        ({"sample": "a", "item": "b"}, "{{ item.sample }}{{ item.item }}", "ab"),
        ({"q": "x", "answer": "a"}, "{{ answer }}", "{{ item.answer }}"),
        ({"Q": "a", "q": "b"}, "{{ q }}{{ q_1 }}", "ab"),
        ({"Raw Name": "a"}, "{{ item['Raw Name'] }}", "{{ raw_name }}"),
        ({"__class__": "a"}, "{{ item.__class__ }}", "a"),
    ],
)
def test_columns_may_have_any_name(
    echo: Echo, documents: Any, row: dict[str, str], shown: str, expected: str
) -> None:
    write(lines(row), test=TEST.replace("{{ q }}", shown).replace("{{ ideal }}", expected))
    assert verdicts(documents("run")) == [("", "pass")]


@pytest.mark.parametrize("column", ["items", "keys", "values"])
def test_a_whole_row_with_a_column_called_like_a_method_can_be_asked_and_shown(
    echo: Echo, documents: Any, evalstore: Evalstore, column: str
) -> None:
    row = json.dumps({column: "a"})
    check = with_check('- {jsonEquals: "{{ item }}", name: "{{ answer }}"}')
    write(row, test=check.replace("{{ q }}", "Repeat {{ item }}"))
    echo.reply = lambda text: text.removeprefix("Repeat ")
    (case,) = documents("run")["cases"]
    assert case["verdict"] == "pass"
    (session,) = case["sessions"]
    for id in session, documents("show", session)["test"]:
        shown = evalstore("show", id)
        assert shown.exit_code == 0
        assert f"Repeat {row}" in shown.stdout


def test_a_column_named_like_the_answer_is_ambiguous(echo: Echo, evalstore: Evalstore) -> None:
    write(lines({"q": "a", "answer": "a"}), test=TEST.replace("{{ ideal }}", "{{ answer }}"))
    output = evalstore("check").stderr
    assert "tests/t.md:12: 'answer' is a column of the dataset and a name of the answer" in output
    assert "write 'item.answer' for the column" in output


@pytest.mark.parametrize(
    ("text", "warns"), [("{{item}}", True), ("{{ item.item }}", False), ("{{ item.q }}", False)]
)
def test_a_column_named_like_the_row_is_warned_of_where_the_row_stands(
    echo: Echo, evalstore: Evalstore, text: str, warns: bool
) -> None:
    write(lines({"item": "lamp", "q": "a"}), test=TEST.replace("{{ ideal }}", text))
    warning = (
        "warning: tests/t.md:12: 'item' is the whole row here, and the dataset also has a column "
        "'item'\nhint: write '{{ item.item }}' for the column\n"
    )
    for command in ("check", "run"):
        assert (warning.partition("\n")[0] in evalstore(command).stderr) is warns
    assert (warning in evalstore("check").stderr) is warns


@pytest.mark.parametrize("command", ["status", "-q status", "run -n", "run -q"])
def test_a_warning_has_its_hint_everywhere(echo: Echo, evalstore: Evalstore, command: str) -> None:
    write(lines({"item": "lamp", "q": "a"}), test=TEST.replace("{{ ideal }}", "a {{item}}"))
    warning = "'item' is the whole row here, and the dataset also has a column 'item'; write '{{ "
    assert evalstore(*command.split()).stderr.count(warning) == 1


def test_a_warning_comes_before_anything_is_asked(echo: Echo, evalstore: Evalstore) -> None:
    write(lines({"item": "lamp", "q": "a"}), test=TEST.replace("{{ ideal }}", "a {{item}}"))
    asked: list[int] = []

    class Listener(ProgressListener):
        def warn(self, message: str) -> None:
            asked.append(len(echo.asked))

    run(Location(Path()), SelectionOptions(), RunOptions(yes=True), Listener())
    assert asked == [0]
    assert echo.asked


# --- data that cannot be read -------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "place", "message"),
    [
        (ROW + '{"q": 1\n', "tests/data/q.jsonl:2:8", "not JSON: expecting ',' delimiter"),
        (ROW.replace("\n", "\r") * 2, "tests/data/q.jsonl:1:26", "there is more behind the row"),
        ('{"q": "\\ud83d"}\n', "tests/data/q.jsonl:1", "a text holds half of a surrogate pair"),
        ('{"q": NaN}\n', "tests/data/q.jsonl:1", "'NaN' is not a JSON value"),
        ('{"q": 1e999}\n', "tests/data/q.jsonl:1", "the number '1e999' is too large"),
        ("[1]\n", "tests/data/q.jsonl:1", "a row must be an object, not a list"),
        ('{"q": 1, "q": 2}\n', "tests/data/q.jsonl:1", "key 'q' appears twice"),
        ("", "tests/data/q.jsonl", "the file has no rows: the test would have no cases"),
        (" \n\n", "tests/data/q.jsonl", "the file has no rows: the test would have no cases"),
        ("version https://git-lfs.github.com/spec/v1\n", "tests/data/q.jsonl", "a Git LFS pointer"),
        ('{"q": "é"}\n'.encode("latin-1"), "tests/data/q.jsonl:1", "not UTF-8: byte 0xe9"),
        (ROW.encode("utf-16"), "tests/data/q.jsonl:1", "not UTF-8: byte 0xff"),
        (gzip.compress(ROW.encode())[:-9], "tests/data/q.jsonl", "the gzip data are cut off"),
        (b'{"q": "' + b"x" * 2**26 + b'"}', "tests/data/q.jsonl:1", "too long for a row"),
    ],
    ids=lambda value: value if isinstance(value, str) and "data" in value else "",
)
def test_what_is_wrong_in_the_data_is_reported_with_its_place(
    echo: Echo, evalstore: Evalstore, data: str | bytes, place: str, message: str
) -> None:
    write(data)
    ran = evalstore("run")
    assert ran.exit_code == 2
    assert f"error: {place}: " in ran.stderr
    assert message in ran.stderr
    assert "is not defined" not in ran.stderr


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("data/none.jsonl", "'data/none.jsonl' cannot be read: No such file or directory"),
        ("../../out.jsonl", "'../../out.jsonl' is outside the workspace"),
        ("data/link.jsonl", "'data/link.jsonl' is outside the workspace"),
        ("data", "'data' is not a file"),
        ("../.env", "'../.env' is private, so it is not data"),
        ("hf://org/set", "nothing is downloaded, and no folder is known for 'hf://'"),
    ],
)
def test_a_data_file_that_cannot_be_used_is_reported_at_the_field(
    echo: Echo, evalstore: Evalstore, path: str, message: str
) -> None:
    write(ROW, to="../out.jsonl", test=TEST.replace("data/q.jsonl", path))
    tree(Path(), {"tests/data/q.jsonl": ROW, ".env": ROW})
    Path("tests/data/link.jsonl").symlink_to(Path("../out.jsonl").resolve())
    assert f"error: tests/t.md:2: {message}" in evalstore("check").stderr


def test_a_misspelt_data_file_is_answered_with_the_nearest(
    echo: Echo, evalstore: Evalstore
) -> None:
    write(ROW, test=TEST.replace("data/q.jsonl", "data/qq.jsonl"))
    assert "hint: did you mean 'data/q.jsonl'?\n" in evalstore("check").stderr


def test_a_table_with_another_delimiter_is_reported_where_a_column_is_missing(
    echo: Echo, evalstore: Evalstore
) -> None:
    test = TEST.replace("q.jsonl", "q.csv")
    write("q;ideal\na;a\n", to="tests/data/q.csv", test=test)
    hint = "hint: the only column is 'q;ideal': write 'delimiter: \";\"'\n"
    assert evalstore("check").stderr == (
        f"error: tests/t.md:7:4: 'q' is not defined\n    {{{{ q }}}}\n       ^\n{hint}"
        f"error: tests/t.md:12:15: 'ideal' is not defined\n"
        f'    - equals: "{{{{ ideal }}}}"\n                  ^\n{hint}'
    )


def test_a_link_inside_of_the_workspace_is_followed(echo: Echo, documents: Any) -> None:
    write(ROW, to="shared/rows.jsonl")
    Path("tests/data").mkdir()
    Path("tests/data/q.jsonl").symlink_to("../../shared/rows.jsonl")
    assert verdicts(documents("run")) == [("", "pass")]


@pytest.mark.parametrize(
    ("row", "place"), [({"q": "b"}, "tests/t.md:12"), ({"ideal": "b"}, "tests/t.md:7")]
)
def test_a_value_that_a_row_lacks_is_reported_with_both_places(
    echo: Echo, evalstore: Evalstore, row: dict[str, str], place: str
) -> None:
    write(ROW + lines(row))
    output = evalstore("check").stderr
    assert f"error: {place}: no value for " in output
    assert "(tests/data/q.jsonl:2)" in output


def test_a_row_can_do_without_a_value_if_the_test_says_so(echo: Echo, documents: Any) -> None:
    write(ROW + lines({"q": "b"}), test=TEST.replace("{{ ideal }}", "{{ ideal | default('b') }}"))
    assert verdicts(documents("run")) == [("q=a", "pass"), ("q=b", "pass")]


def test_a_condition_that_keeps_nothing_is_an_error(echo: Echo, evalstore: Evalstore) -> None:
    dataset = "dataset: {path: data/q.jsonl, where: q == 'z'}"
    write(ROW * 2, test=TEST.replace("dataset: data/q.jsonl", dataset))
    assert "tests/t.md:2: 'where' does not keep any of the 2 rows" in evalstore("check").stderr


# --- edits of the data --------------------------------------------------------------------


def test_an_edit_of_the_data_is_seen_and_explained(echo: Echo, evalstore: Evalstore) -> None:
    write(ROW)
    evalstore("run")
    assert "Nothing to do" in evalstore("status").stdout
    write(lines({"q": "a", "ideal": "b", "unused": 1}))
    shown = evalstore("status", "--explain").stdout
    assert "check 1 changed: equals: a -> b" in shown
    assert "would give 1 verdict" in shown
    write("nope\n")
    assert "error: tests/data/q.jsonl:1:1: not JSON" in evalstore("status").stderr
    write(ROW + lines({"q": "b", "ideal": "b"}))
    assert "M.  tests/t.md  1 case new" in evalstore("status").stdout
    evalstore("run")
    write(ROW + lines({"q": "b", "ideal": "c"}))
    assert "        check 1 changed: equals in [q=b]: b -> c\n" in evalstore("diff").stdout
    write(ROW)
    assert "Nothing to do" in evalstore("status").stdout


def test_the_form_of_the_data_asks_and_judges_nothing(echo: Echo, documents: Any) -> None:
    write(ROW + lines({"q": "b", "ideal": "b"}))
    documents("run")
    write(
        "ideal,unused,q\nb,1,b\na,2,a\n",
        to="tests/t.csv",
        test=TEST.replace("data/q.jsonl", "t.csv"),
    )
    document = documents("run")
    assert (document["asked"], document["judged"]) == (0, 0)
    assert verdicts(document) == [("q=b", "pass"), ("q=a", "pass")]


def test_data_can_lie_in_a_folder_outside_that_the_settings_name(
    echo: Echo, documents: Any, evalstore: Evalstore
) -> None:
    settings = "candidates: [scripted/one]\ndatasetRoots: {'my://': ../shared}\n"
    tree(Path(), {"evalstore.yaml": settings})
    write(ROW, to="../shared/q.jsonl", test=TEST.replace("data/q.jsonl", "my://q.jsonl"))
    ran = evalstore("run")
    assert ran.exit_code == 2
    assert "tests/t.md:2: 'my://q.jsonl' is outside the workspace" in ran.stderr
    assert f"allow '{Path('../shared').resolve()}' with '--allow-outside'" in ran.stderr
    assert verdicts(documents("run", "--allow-outside")) == [("", "pass")]
    Path("../shared/q.jsonl").unlink()
    output = evalstore("status").stderr
    assert "tests/t.md:2: 'my://q.jsonl' cannot be read" in output
    assert f"it leads to '{Path('../shared/q.jsonl').resolve()}'" in output


# --- what a row's values do to the checks -------------------------------------------------


@pytest.mark.parametrize(
    ("ideal", "verdict"),
    [("a", "pass"), (["b", "a"], "pass"), ([""], "fail"), (1, "fail"), (True, "fail")],
)
def test_ideal_may_be_a_text_a_list_or_a_number(
    echo: Echo, documents: Any, ideal: Any, verdict: str
) -> None:
    write(lines({"q": "a", "ideal": ideal}))
    assert verdicts(documents("run")) == [("", verdict)]


@pytest.mark.parametrize(
    ("ideal", "message"),
    [
        ("", "the check 'equals' has an empty 'expected'"),
        ([], "the check 'equals' has an empty 'expected'"),
        (None, "'expected' must be a text or a list of texts"),
        ({"expected": "z", "not": True}, "'expected' must be a text or a list of texts"),
    ],
)
def test_ideal_must_say_something(
    echo: Echo, evalstore: Evalstore, ideal: Any, message: str
) -> None:
    write(lines({"q": "a", "ideal": ideal}))
    assert f"error: tests/t.md:12: {message} (tests/data/q.jsonl:1)" in evalstore("check").stderr


def test_an_object_of_the_data_is_what_is_compared(echo: Echo, documents: Any) -> None:
    row = {"q": '{"expected": 1}', "ideal": {"expected": 1}}
    write(lines(row), test=with_check('- jsonEquals: "{{ ideal }}"'))
    assert verdicts(documents("run")) == [("", "pass")]


def test_an_invalid_pattern_of_the_data_is_reported_with_its_row(
    echo: Echo, evalstore: Evalstore
) -> None:
    write(lines({"q": "a", "ideal": "("}), test=TEST.replace("equals", "regex"))
    output = evalstore("check").stderr
    assert "tests/t.md:12: the pattern '(' is not a regular expression" in output
    assert "(tests/data/q.jsonl:1)" in output


@pytest.mark.parametrize("pattern", ["{{ ideal }}", "x*"])
def test_a_pattern_that_is_found_everywhere_is_a_warning(
    echo: Echo, evalstore: Evalstore, pattern: str
) -> None:
    write(lines({"q": "a", "ideal": "b*"}), test=with_check(f'- regex: "{pattern}"'))
    ran = evalstore("check")
    assert ran.exit_code == 0
    assert "warning: tests/t.md:12: a pattern of this check matches the empty text" in ran.stderr


def test_a_check_that_raises_is_the_verdict_error(echo: Echo, documents: Any) -> None:
    write(lines({"q": "0"}), test=with_check('- expr: "1 / int(answer) == 1"'))
    (case,) = documents("run")["cases"]
    assert case["verdict"] == "error"
    assert "division by zero" in case["feedback"]


def test_wrong_expressions_are_reported_at_their_lines(echo: Echo, evalstore: Evalstore) -> None:
    write(ROW, test=with_check('- expr: answer == item.ideal\n- expr: "1 +"'))
    output = evalstore("check").stderr
    assert "error: tests/t.md:12: the expression" in output
    assert "error: tests/t.md:13: '1 +' is not a valid expression" in output


def test_a_column_that_an_expression_needs_must_be_in_each_row(
    echo: Echo, evalstore: Evalstore
) -> None:
    write(ROW + lines({"q": "b"}), test=with_check("- expr: answer == ideal"))
    assert "error: tests/t.md:12: no value for 'ideal'" in evalstore("check").stderr


# --- messages that a row gives ------------------------------------------------------------

GIVEN = TEST.replace("# 👤\n\n{{ q }}\n", "").replace("q.jsonl\n", 'q.jsonl\nmessages: "{{ m }}"\n')


@pytest.mark.parametrize(
    ("messages", "asked"),
    [
        (" a ", [" a "]),
        ([{"role": "user", "content": "a"}], ["a"]),
        ([{"content": "a"}], ["a"]),
        ([{"role": "system", "content": "a"}], ["a"]),
        ([{"role": "user", "content": "{{ ideal }}{{_file:x}}"}], ["{{ ideal }}{{_file:x}}"]),
        ([{"role": "user", "content": "a"}, {"role": "assistant", "content": None}], ["a"]),
        (
            [
                {"role": "user", "content": "a"},
                {"role": "assistant", "content": None},
                {"role": "user", "content": "b"},
            ],
            ["a", "b"],
        ),
        ([{"role": "user", "content": [{"type": "text", "text": "a"}]}], ["a"]),
    ],
)
def test_a_row_can_give_all_messages(
    echo: Echo, documents: Any, messages: Any, asked: list[str]
) -> None:
    write(lines({"m": messages, "ideal": "a"}), test=GIVEN)
    assert documents("run")["asked"] == 1
    assert echo.asked == asked


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ([], "'messages' must evaluate to a list of messages or to a text, not '[]'"),
        (None, "'messages' must evaluate to a list of messages or to a text, not null"),
        (5, "'messages' must evaluate to a list of messages or to a text, not '5'"),
        ({"role": "user"}, "'messages' must evaluate to a list of messages or to a text, not"),
        (["x"], "message 1 is not an object with 'role' and 'content'"),
        ([{"role": "tool", "content": "a"}], "message 1 has an unknown role, 'tool'"),
        ([{"role": None, "content": "a"}], "message 1 has an unknown role, null"),
        ([{"role": "user", "content": None}], "the 'content' of message 1 is not a text"),
        ([{"role": "user"}], "the 'content' of message 1 is not a text"),
        ([{"role": "user", "content": [{"type": "text", "text": 5}]}], "is not a text"),
        ([{"role": "user", "content": "a", "extra": 1}], "message 1 has an unknown field 'extra'"),
        ([{"role": "user", "content": "a", "image": "x.png"}], "data cannot mention files"),
        ([{"role": "user", "content": "a", "name": 5}], "the 'name' of message 1 is not a text"),
        ([{"role": "assistant", "content": None}], "nothing in front of the turn"),
        ([{"role": "assistant", "content": "a"}], "'messages' ends with a fixed answer"),
    ],
)
def test_messages_of_a_wrong_shape_are_reported_with_their_row(
    echo: Echo, evalstore: Evalstore, messages: Any, message: str
) -> None:
    write(lines({"m": messages, "ideal": "a"}), test=GIVEN)
    output = evalstore("check").stderr
    assert "error: tests/t.md:3: " in output
    assert message in output
    assert "(tests/data/q.jsonl:1)" in output

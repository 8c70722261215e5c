"""Rows of an edited dataset that are as they were keep their stored cases."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalstore.core.errors import NO, OK
from evalstore.core.values import Case
from evalstore.files.access import Boundary
from evalstore.store.trees.case_chunks import CaseTreeBuilder
from evalstore.workspace import index
from evalstore.workspace.index import NumberLists, read_lists
from evalstore.workspace.testfiles import expansion
from evalstore.workspace.testfiles.case_builder import CaseBuilder
from tests.builders import tree
from tests.interfaces.cli.conftest import Evalstore
from tests.interfaces.cli.long_files import treat_as_long

Rows = list[dict[str, Any]]
BODY = (
    "# 👤\n\nWhere is {{{{country}}}}?{more}\n\n---\n\n"
    "~~~checks\n- contains: '{{{{capital}}}}'\n~~~\n"
)
SETTINGS = {
    "evalstore.yaml": "candidates: [one]\nevaluators: [two]\n",
    "models/one.yaml": "id: one\nprovider: scripted\nresponses: [{answer: Oslo}]\n",
    "models/two.yaml": "id: two\nprovider: scripted\nresponses: [{answer: {pass: true}}]\n",
    "prompts/strict.md": "---\ntags: [_evaluator]\n---\n\n# 👤\n\n"
    "`{{_evaluationInstructions}}` `{{_actualResponse}}`\n",
    "tests/sea.txt": "The sea.\n",
    **{f"tests/{name}.txt": name for name in [*(f"Oslo {n}" for n in range(5)), "New"]},
    **{f"tests/Rome {n}.txt": "Rome" for n in range(3)},
}


def _rows() -> Rows:
    return [{"id": n, "country": f"land {n}", "capital": f"Oslo {n % 5}"} for n in range(90)]


def _text(head: str = "", more: str = "") -> str:
    return f"---\ndataset: data.jsonl\n{head}---\n\n{BODY.format(more=more)}"


def _write(root: Path, rows: Rows) -> None:
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (root / "tests/data.jsonl").write_text(lines, encoding="utf-8")


def _index(root: Path) -> dict[str, Any]:
    content = json.loads((root / ".evalstore/index.json").read_text(encoding="utf-8"))
    entry = content["files"].get("tests/rows.md")
    if entry is None:
        return {}  # a file with a warning is read again each time
    return {"node": entry[-2], "depends": content["depends"][entry[-1]]}


@pytest.fixture(autouse=True)
def _few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expansion, "_MOST_AT_ONCE", 60)


@pytest.fixture
def drafted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list with an item for each row whose texts were filled."""
    counts: list[int] = []
    draft = CaseBuilder.draft

    def count(self: CaseBuilder, *arguments: Any) -> Any:
        counts.append(1)
        return draft(self, *arguments)

    monkeypatch.setattr(CaseBuilder, "draft", count)
    return counts


@pytest.fixture
def make(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evalstore: Evalstore
) -> Callable[[str], Path]:
    """Return a function that makes a workspace with a test file and its rows, and reads it."""

    def make_place(text: str) -> Path:
        root = tree(tmp_path / "ws", {**SETTINGS, "tests/rows.md": text})
        monkeypatch.chdir(root)
        _write(root, _rows())
        assert evalstore("run", "--quiet").exit_code in (OK, NO)
        return root

    return make_place


def _read_both(root: Path, evalstore: Evalstore) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the entries of the index after reading what changed, and after reading everything."""
    evalstore("run", "--quiet")
    changed = _index(root)
    (root / ".evalstore/index.json").unlink()
    evalstore("run", "--quiet")
    return changed, _index(root)


def _edit(rows: Rows, source: random.Random) -> Rows:
    """Edit, add, remove, repeat, move and swap some rows."""
    rows = [dict(row) for row in rows]
    for _ in range(source.randrange(1, 5)):
        place = source.randrange(len(rows))
        what = source.randrange(7)
        if what == 0:
            rows[place]["country"] += "!"
        elif what == 1:
            rows[place]["capital"] = f"Rome {source.randrange(3)}"
        elif what == 2:
            rows.insert(place, {"id": 1_000 + place, "country": "new", "capital": "New"})
        elif what == 3:
            del rows[place : place + source.randrange(1, 30)]
        elif what == 4:
            rows.insert(source.randrange(len(rows)), rows[place])
        elif what == 5:
            rows.append(rows.pop(place))
        else:
            rows[place] = dict(reversed(rows[place].items()))
    return rows


@pytest.mark.parametrize(
    ("most", "text"),
    [
        pytest.param(3, _text(), id="rows"),
        pytest.param(60, _text("rowId: id\n"), id="ids"),
        pytest.param(3, _text("replacements: {n: [1, 2]}\n", " {{n}}"), id="replacements"),
        pytest.param(60, _text("replacements: {n: [1, '1']}\n", " {{n * 2}}"), id="equal texts"),
        pytest.param(3, _text("", " {{item}}"), id="whole rows"),
        pytest.param(60, _text("", " `{{_file:sea.txt}}`"), id="a file"),
        pytest.param(3, _text("", " `{{_file:`{{capital}}`.txt}}`"), id="files of rows"),
        pytest.param(60, _text("where: item.id % 3\n"), id="some rows"),
        pytest.param(3, _text("sample: 40\n"), id="a sample"),
        pytest.param(60, _text().replace("{{country}}", "{{capital}}"), id="numbered rows"),
    ],
)
def test_edited_rows_have_the_cases_that_they_have_when_all_are_read(
    make: Callable[[str], Path],
    evalstore: Evalstore,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    most: int,
) -> None:
    treat_as_long(monkeypatch)
    monkeypatch.setattr(expansion, "_MOST_AT_ONCE", most)
    root = make(text)
    source, rows = random.Random(5), _rows()
    for _ in range(4):
        rows = _edit(rows, source) or _rows()
        _write(root, rows)
        changed, whole = _read_both(root, evalstore)
        assert changed == whole or not whole


@pytest.mark.parametrize("most", [1, 60, 1000])
@pytest.mark.parametrize("shown", ["{{capital}}", "{{ item.capital }}", "{{ capital | lower }}"])
def test_an_empty_cell_of_a_shown_column_is_a_warning_however_many_rows_there_are(
    make: Callable[[str], Path],
    evalstore: Evalstore,
    monkeypatch: pytest.MonkeyPatch,
    most: int,
    shown: str,
) -> None:
    treat_as_long(monkeypatch)
    monkeypatch.setattr(expansion, "_MOST_AT_ONCE", most)
    root = make(_text())
    head = "---\ndataset: rows.csv\n---\n\n"
    body = BODY.format(more=f" Near {shown}?").replace("'{{capital}}'", "Oslo")
    (root / "tests/rows.md").write_text(head + body)
    cells = [f"land {n},Oslo {n}" for n in range(90)]
    cells[1], cells[4] = "land 1, ", "land 4,"
    name = shown.strip("{ }")
    warning = (
        f"warning: tests/rows.md:7: '{{{{{name}}}}}' is filled with an empty value "
        "(tests/rows.csv:3)\n"
        f"hint: fill it in, or write '{{{{ {name} | default(\"\") }}}}' if it may be empty\n"
    )
    for edited in "ab":
        cells[7] = f"land {edited},Oslo"
        (root / "tests/rows.csv").write_text("country,capital\n" + "\n".join(cells) + "\n")
        assert evalstore("check").stderr == warning * ("|" not in shown)


def test_the_hint_on_an_empty_cell_has_the_name_that_templates_with_filters_need(
    make: Callable[[str], Path], evalstore: Evalstore
) -> None:
    root = make(_text())
    (root / "tests/rows.csv").write_text("country,the capital\nNorway,\n")

    def check(shown: str) -> str:
        body = BODY.format(more=f" Near {shown}?").replace("'{{capital}}'", "Oslo")
        (root / "tests/rows.md").write_text("---\ndataset: rows.csv\n---\n\n" + body)
        return evalstore("check").stderr

    advised = '{{ the_capital | default("") }}'
    assert f"write '{advised}' if it may be empty" in check("{{the capital}}")
    assert check(advised) == ""


def test_only_the_rows_that_differ_are_filled_again(
    make: Callable[[str], Path], evalstore: Evalstore, drafted: list[int]
) -> None:
    root = make(_text())
    rows = _rows()
    rows[7]["country"] = "Norway"
    rows.insert(30, {"id": 99, "country": "Italy", "capital": "Rome"})
    del rows[60]
    _write(root, rows)
    drafted.clear()
    evalstore("run", "--quiet")
    assert len(drafted) == 2


@pytest.mark.parametrize(("count", "added"), [(90, 3), (87, 11), (88, 3)])
def test_added_rows_continue_the_last_part(
    make: Callable[[str], Path],
    evalstore: Evalstore,
    monkeypatch: pytest.MonkeyPatch,
    count: int,
    added: int,
) -> None:
    treat_as_long(monkeypatch)
    root = make(_text())
    rows = _rows()[:count]
    _write(root, rows)
    evalstore("run", "--quiet")
    _write(root, [*rows, *({"country": f"new {n}", "capital": "New"} for n in range(added))])
    changed, whole = _read_both(root, evalstore)
    assert changed == whole


def test_data_that_were_replaced_while_they_were_read_are_read_again(
    make: Callable[[str], Path], evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make(_text())
    (root / ".evalstore/index.json").unlink()
    rows = _rows()
    rows[70]["capital"] = "Rome"
    build = expansion._build_tree

    def replace_before(*arguments: Any) -> None:
        (root / "tests/data.jsonl").unlink()
        _write(root, rows)
        build(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(expansion, "_build_tree", replace_before)
        evalstore("run", "--quiet")
    changed, whole = _read_both(root, evalstore)
    assert changed == whole


@pytest.mark.parametrize("change", ["a list less", "a row less", "no names", "lists as names"])
def test_digests_in_another_form_are_not_used(
    make: Callable[[str], Path], evalstore: Evalstore, drafted: list[int], change: str
) -> None:
    root = make(_text())
    (file,) = (root / ".evalstore").glob("rows-*")
    (sources, (names, columns)), lists = read_lists(file, Boundary([root], "the workspace"))
    if change == "a list less":
        lists = lists[1:]
    elif change == "a row less":
        lists = [each[1:] for each in lists]
    elif change == "no names":
        columns = None
    else:
        columns = [[each] for each in columns]
    NumberLists([sources, [names, columns]], lists).write(file)
    rows = _rows()
    rows[40]["country"] = "Norway"
    _write(root, rows)
    drafted.clear()
    changed, whole = _read_both(root, evalstore)
    assert changed == whole
    assert len(drafted) == 180


def test_files_outside_are_kept_when_digests_of_rows_are_removed(
    make: Callable[[str], Path], evalstore: Evalstore, tmp_path: Path
) -> None:
    root = make(_text())
    outside = tree(tmp_path / "outside", {"kept.txt": "kept"})
    for name in ("rows", "rows-0"):
        (root / ".evalstore" / name).symlink_to(outside)
    (file,) = (root / ".evalstore").glob("rows-?*[0-9a-f]")
    file.unlink()
    file.symlink_to(outside / "kept.txt")
    _write(root, _rows()[1:])
    evalstore("run", "--quiet")
    assert not file.is_symlink()
    assert {path.name: path.read_text(encoding="utf-8") for path in outside.iterdir()} == {
        "kept.txt": "kept"
    }


def test_digests_of_rows_are_removed_with_their_test_file(
    make: Callable[[str], Path], evalstore: Evalstore
) -> None:
    root = make(_text())
    (root / "tests/rows.md").rename(root / "tests/renamed.md")
    before = {*(root / ".evalstore").glob("rows-*")}
    evalstore("run", "--quiet")
    after = {*(root / ".evalstore").glob("rows-*")}
    assert len(before) == len(after) == 1
    assert before != after


def test_too_many_digests_of_rows_are_not_kept(
    make: Callable[[str], Path], evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "_MOST_NUMBERS", 700)
    root = make(_text())
    (root / "tests/again.md").write_text(_text(), encoding="utf-8")
    evalstore("run", "--quiet")
    (root / ".evalstore/index.json").unlink()
    for file in (root / ".evalstore").glob("rows-*"):
        file.unlink()
    evalstore("run", "--quiet")
    assert len([*(root / ".evalstore").glob("rows-*")]) == 1


@pytest.mark.parametrize("keep", [0, 40, -8])
def test_damaged_digests_of_rows_are_not_used(
    make: Callable[[str], Path], evalstore: Evalstore, drafted: list[int], keep: int
) -> None:
    root = make(_text())
    (file,) = (root / ".evalstore").glob("rows-*")
    file.write_bytes(file.read_bytes()[:keep] + b"x" * 8 * (keep < 0))
    rows = _rows()
    rows[40]["country"] = "Norway"
    _write(root, rows)
    drafted.clear()
    changed, whole = _read_both(root, evalstore)
    assert changed == whole
    assert len(drafted) == 180


def test_parts_with_the_same_rows_are_taken_as_they_are(
    make: Callable[[str], Path], evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    treat_as_long(monkeypatch)
    root = make(_text())
    rows = _rows()
    rows[40]["country"] = "Norway"
    _write(root, rows)
    added: list[str] = []
    add = CaseTreeBuilder.add

    def note(self: CaseTreeBuilder, case: Case) -> None:
        added.append(case.row)
        add(self, case)

    monkeypatch.setattr(CaseTreeBuilder, "add", note)
    evalstore("run", "--quiet")
    assert "country=Norway" in added
    assert len(added) < 30


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda row: {**row, "capital": row["capital"].split()[-1]}, id="another text"),
        pytest.param(lambda row: {**row, "country": [row["country"]]}, id="a list"),
        pytest.param(lambda row: {**row, "other": 1}, id="another column"),
    ],
)
def test_all_rows_are_filled_again_when_all_differ(
    make: Callable[[str], Path],
    evalstore: Evalstore,
    drafted: list[int],
    change: Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    root = make(_text())
    _write(root, [*map(change, _rows())])
    drafted.clear()
    evalstore("run", "--quiet")
    assert len(drafted) == 90


@pytest.mark.parametrize(
    ("what", "place"),
    [("prompts/strict.md", "`{{"), ("tests/rows.md", "Is it"), ("tests/sea.txt", "The")],
)
def test_what_rows_use_is_noticed_after_an_edit_of_other_rows(
    make: Callable[[str], Path], evalstore: Evalstore, what: str, place: str
) -> None:
    below = "Is it right?\n\n~~~checks\n- judge: {prompt: strict}\n~~~\n\n"
    text = (
        "---\ndataset: data.jsonl\n---\n\n# 👤\n\n{{country}} `{{_file:sea.txt}}`\n\n---\n\n"
        + below
    )
    root = make(text)
    before = _index(root)["node"]
    rows = _rows()
    rows[3]["country"] = "Norway"
    _write(root, rows)
    evalstore("run", "--quiet")
    edited = _index(root)
    path = root / what
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(place, f"Now {place}"), encoding="utf-8")
    changed, whole = _read_both(root, evalstore)
    assert changed == whole
    assert len({before, edited["node"], changed["node"]}) == 3

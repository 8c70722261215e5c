"""A workspace, and an import, use nothing outside themselves unless their user allows it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalstore.core.errors import FileProblem
from evalstore.files.access import Boundary, OutsideProblem
from evalstore.results import grep
from evalstore.workspace.trust import AllowedPath, AllowedPaths
from tests.builders import Files, tree
from tests.exchange.importers.langbite.library import prompt, table
from tests.exchange.importers.lve.repository import instance
from tests.hostile.commands import HELLO, MODEL, SETTINGS, Run
from tests.hostile.databases import tables_with

SECRET = "the-secret-of-somebody-else"
LINKED: dict[str, tuple[str, str]] = {
    "test": ("tests/x.md", f"# 👤\n\n{SECRET}\n\n---\n\n~~~checks\n- json\n~~~\n"),
    "prompt": ("prompts/x.md", f"# ⚙️\n\n{SECRET}\n"),
    "tool": ("tools/x.yaml", f"name: {SECRET}\nparameters: [\n"),
    "schema": ("schemas/x.json", f'{{"{SECRET}": \n'),
    "model": ("models/x.yaml", f"id: {SECRET}\nprovider: [\n"),
    "provider": ("providers/x.yaml", f"code: {SECRET}: [\n"),
    "currency": ("currencies/x.yaml", f"code: {SECRET}: [\n"),
}
COMMANDS = (("status",), ("check",), ("run",), ("log",), ("ls", "cases"), ("stats",), ("grep", "x"))


def link(place: str, target: Path) -> None:
    """Put a link into the current folder."""
    path = Path(place)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def seen_below(folder: Path) -> dict[str, bytes]:
    """All files below a folder, with what is in them."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


# --- files of a workspace that are links


@pytest.mark.one_database("it is refused before anything is stored")
@pytest.mark.parametrize("kind", LINKED)
@pytest.mark.parametrize("command", [("run",), ("check",), ("status",)], ids="".join)
def test_a_linked_file_outside_is_refused_by_name(
    root: Path, run: Run, kind: str, command: tuple[str, ...]
) -> None:
    place, content = LINKED[kind]
    outside = tree(root.parent / "home", {"f": content}) / "f"
    link(place, outside)
    code, output = run(*command)
    assert code == 2
    assert f"{place}: leads to '{outside}', which is outside the workspace" in output
    assert "--allow-outside" in output
    assert SECRET not in output
    stored = seen_below(root / ".evalstore").values() if (root / ".evalstore").exists() else ()
    assert not any(SECRET.encode() in data for data in stored)
    assert tables_with(SECRET) == []


@pytest.mark.one_database("it is refused before anything is stored")
@pytest.mark.parametrize(
    "kind", ["tests", "prompts", "tools", "schemas", "models", "providers", "currencies"]
)
@pytest.mark.parametrize("named", [False, True], ids=["usual", "in paths"])
def test_a_linked_folder_outside_is_refused_by_name(
    root: Path, run: Run, kind: str, named: bool
) -> None:
    outside = tree(root.parent / "home", {"x.md": HELLO, "x.yaml": MODEL})
    place = "sub/linked" if named else kind
    if named:
        tree(root, {"evalstore.yaml": f"{SETTINGS}paths: {{{kind}: {place}}}\n"})
    elif Path(kind).exists():
        Path(kind).rename(root.parent / "before")
    link(place, outside)
    code, output = run("run")
    assert code == 2
    assert f"{place}: leads to '{outside}', which is outside the workspace" in output


@pytest.mark.opens_no_store
def test_a_folder_whose_parent_is_linked_is_refused(root: Path, run: Run) -> None:
    outside = tree(root.parent / "home", {"deep/x.md": HELLO})
    tree(root, {"evalstore.yaml": f"{SETTINGS}paths: {{tests: linked/deep}}\n"})
    link("linked", outside)
    code, output = run("check")
    assert (code, "linked/deep: leads to" in output) == (2, True)


@pytest.mark.opens_no_store
def test_linked_settings_outside_are_refused_and_not_shown(root: Path, run: Run) -> None:
    outside = tree(root.parent / "home", {"c": f"{SECRET}: [\n"}) / "c"
    (root / "evalstore.yaml").unlink()
    link("evalstore.yaml", outside)
    for command in COMMANDS:
        code, output = run(*command)
        assert (code, SECRET in output) == (2, False)
        assert f"evalstore.yaml: leads to '{outside}'" in output


def test_links_inside_are_fine(root: Path, run: Run) -> None:
    tree(root, {"evalstore.yaml": f"{SETTINGS}paths: {{tests: linked}}\n", "b/b.md": HELLO})
    link("linked", root / "b")
    link("b/c.md", root / "tests/a.md")
    code, output = run("ls", "tests")
    assert (code, "linked/b.md" in output, "linked/c.md" in output) == (0, True, True)
    assert run("run")[0] == 0


def test_a_mentioned_file_outside_is_read_only_if_it_is_allowed(root: Path, run: Run) -> None:
    outside = tree(root.parent / "home", {"f.txt": SECRET}) / "f.txt"
    tree(root, {"tests/a.md": HELLO.replace("Hello\n\n---", "{{_file:f.txt}}\n\n---")})
    link("tests/f.txt", outside)
    code, output = run("run")
    assert code == 2
    assert "tests/a.md:3: 'f.txt' is outside the workspace" in output
    assert "--allow-outside" in output
    assert run("run", "--allow-outside")[0] == 0
    assert run("run")[0] == 0


def test_a_link_that_appears_later_is_refused_though_nothing_else_changed(
    root: Path, run: Run
) -> None:
    assert run("run")[0] == 0
    assert run("status")[0] == 0
    outside = root.parent / "a.md"
    (root / "tests/a.md").rename(outside)  # the same file, with the same stamp
    link("tests/a.md", outside)
    for command in (("status",), ("check",), ("run",)):
        code, output = run(*command)
        assert (code, "tests/a.md: leads to" in output) == (2, True)


# --- the store


@pytest.mark.one_database(
    "the place of a file; `tests/interfaces/cli/remotes/test_postgresql.py` has addresses"
)
@pytest.mark.parametrize("command", COMMANDS, ids="".join)
@pytest.mark.parametrize("how", ["relative", "absolute", "folder", "file", "journal", "through"])
def test_a_store_outside_is_refused_before_anything_is_made(
    root: Path, run: Run, how: str, command: tuple[str, ...]
) -> None:
    outside = tree(root.parent / "home", {"kept.txt": "kept"})
    if how == "relative":
        tree(root, {"evalstore.yaml": f"{SETTINGS}store: ../home/new/evil.db\n"})
    elif how == "absolute":
        tree(root, {"evalstore.yaml": f"{SETTINGS}store: {outside}/new/evil.db\n"})
    elif how == "folder":
        link(".evalstore", outside)
    elif how == "through":
        link("linked", outside)
        tree(root, {"evalstore.yaml": f"{SETTINGS}store: linked/new/evil.db\n"})
    else:
        name = "store.db" if how == "file" else "store.db-wal"
        link(f".evalstore/{name}", outside / "kept.txt")
    code, output = run(*command)
    assert code == 2
    assert "outside the workspace" in output
    assert "--allow-outside" in output
    assert seen_below(outside) == {"kept.txt": b"kept"}
    assert [path.name for path in outside.iterdir()] == ["kept.txt"]


@pytest.mark.one_database("a place in the settings is that of a file")
def test_the_place_of_a_store_outside_is_reported(root: Path, run: Run) -> None:
    tree(root, {"evalstore.yaml": f"{SETTINGS}store: ../evil.db\n"})
    expected = f"evalstore.yaml:2: the store '../evil.db': leads to '{root.parent}/evil.db'"
    assert expected in run("status")[1]


@pytest.mark.one_database("the user names a file")
def test_a_store_that_the_user_names_may_be_anywhere(root: Path, run: Run) -> None:
    assert run("run", "--store", "../mine.db")[0] == 0
    assert (root.parent / "mine.db").exists()


@pytest.mark.one_database("PostgreSQL has its words in tables of the store")
def test_the_database_for_searching_is_not_made_outside(root: Path, run: Run) -> None:
    run("run")
    outside = root.parent / "elsewhere.db"
    link(f".evalstore/{grep._FILE}", outside)
    code, output = run("grep", "Hello")
    assert (code, "outside the workspace" in output) == (2, True)
    assert not outside.exists()


def test_temporary_files_are_not_written_through_links(root: Path, run: Run) -> None:
    outside = tree(root.parent / "home", {"kept.txt": "kept"}) / "kept.txt"
    for path in (root / "tests", root / "models", root):
        for item in path.iterdir():
            os.utime(item, (1, 1))
    link(f".evalstore/index.{os.getpid()}.tmp", outside)
    run("run")
    run("status")
    assert outside.read_text() == "kept"


# --- what is allowed


def test_what_is_allowed_once_stays_allowed_until_it_is_revoked(root: Path, run: Run) -> None:
    place, content = LINKED["test"]
    outside = tree(root.parent / "home", {"f": content}) / "f"
    link(place, outside)
    assert run("check")[0] == 2
    assert run("check", "--allow-outside")[0] == 0
    assert AllowedPaths().entries == [AllowedPath(str(root), str(outside))]
    for command in (("check",), ("status",), ("status",)):
        assert run(*command)[0] == 0
    code, output = run("trust", "--list")
    assert (code, str(outside) in output, str(root) in output) == (0, True, True)
    code, output = run("trust", "--revoke", str(outside))
    assert (code, f"{outside}: no longer allowed" in output) == (0, True)
    for command in (("check",), ("status",)):
        assert run(*command)[0] == 2


@pytest.mark.one_database("the settings name a file")
def test_a_linked_folder_and_a_store_are_allowed_as_a_whole(root: Path, run: Run) -> None:
    outside = tree(root.parent / "home", {"x.md": HELLO})
    tree(root, {"evalstore.yaml": f"{SETTINGS}paths: {{tests: linked}}\nstore: ../new/s.db\n"})
    link("linked", outside)
    assert run("run", "--allow-outside")[0] == 0
    tree(outside, {"y.md": HELLO})
    assert run("run")[0] == 0
    allowed = {entry.path for entry in AllowedPaths().entries}
    assert allowed == {str(outside), str(root.parent / "new/s.db")}


def test_what_one_workspace_may_use_no_other_may(root: Path, run: Run) -> None:
    place, content = LINKED["test"]
    outside = tree(root.parent / "home", {"f": content}) / "f"
    link(place, outside)
    assert run("check", "--allow-outside")[0] == 0
    other = root.parent / "other"
    root.rename(other)
    os.chdir(other)
    assert run("check")[0] == 2


def test_no_file_of_the_workspace_can_allow_anything(root: Path, run: Run) -> None:
    place, content = LINKED["test"]
    outside = tree(root.parent / "home", {"f": content}) / "f"
    link(place, outside)
    mine = root / "state"
    tree(root, {".env": f"EVALSTORE_TRUST_FILE={mine}/t\nEVALSTORE_ALLOW_OUTSIDE=1\n"})
    AllowedPaths(mine / "t-paths").add(str(root), [str(outside)])
    assert run("run")[0] == 2


def test_a_list_that_others_can_write_to_allows_nothing(root: Path, run: Run) -> None:
    place, content = LINKED["test"]
    outside = tree(root.parent / "home", {"f": content}) / "f"
    link(place, outside)
    assert run("check", "--allow-outside")[0] == 0
    AllowedPaths().file.chmod(0o666)
    code, output = run("check")
    assert (code, "others can write to the list of allowed paths" in output) == (2, True)


# --- replaced between the check and the reading


def replace_when_opened(monkeypatch: pytest.MonkeyPatch, place: Path, target: Path) -> None:
    """Put a link in the place of a file just before it is opened."""
    before = os.open

    def opened(path: Any, *rest: Any, **more: Any) -> int:
        if Path(path) == place and not place.is_symlink():
            place.unlink()
            place.symlink_to(target)
        return before(path, *rest, **more)

    monkeypatch.setattr(os, "open", opened)


@pytest.mark.parametrize("linux", [True, False], ids=["proc", "no proc"])
def test_a_file_that_becomes_a_link_before_it_is_opened_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, linux: bool
) -> None:
    tree(tmp_path, {"in/a": "mine", "out/a": SECRET})
    boundary = Boundary([tmp_path / "in"], "workspace")
    assert boundary.read(tmp_path / "in/a", 100) == b"mine"
    if not linux:
        monkeypatch.setattr(os, "readlink", _without_proc)
        assert boundary.read(tmp_path / "in/a", 100) == b"mine"
    replace_when_opened(monkeypatch, tmp_path / "in/a", tmp_path / "out/a")
    with pytest.raises(OutsideProblem):
        boundary.read(tmp_path / "in/a", 100)


def test_a_pipe_that_takes_the_place_of_a_file_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(tmp_path, {"in/a": "mine"})
    os.mkfifo(tmp_path / "in/pipe")
    replace_when_opened(monkeypatch, tmp_path / "in/a", tmp_path / "in/pipe")
    with pytest.raises(FileProblem, match="named pipe"):
        Boundary([tmp_path / "in"], "workspace").read(tmp_path / "in/a", 100)


def _without_proc(path: Any, readlink: Callable[[Any], str] = os.readlink) -> str:
    if str(path).startswith("/proc/"):
        raise FileNotFoundError
    return readlink(path)


# --- imports


CHECKED = "assert: [{type: contains, value: x}]"
PROMPTFOO = f"prompts: ['Say {{{{q}}}}']\ntests:\n  - vars: {{q: NAME}}\n    {CHECKED}\n"
PROMPTS = "prompts: [NAME]\ntests: [{vars: {q: x}, assert: [{type: contains, value: x}]}]\n"
NEMO = (
    '{"tasks": {"t": {"dataset": {"files_url": "NAME"}, "params": {"template": "{{ item.q }}"},'
    ' "metrics": {"m": {"type": "string-check", "params": {"check": ["{{ sample.output_text }}",'
    ' "equals", "x"]}}}}}}'
)
EVALS = (
    "e:\n  id: e.v\ne.v:\n  class: evals.elsuite.basic.match:Match\n  args: {samples_jsonl: NAME}\n"
)
SAMPLE = f'{{"input": "{SECRET}", "ideal": "x", "q": "{SECRET}"}}\n'


def source(format: str, kind: str, root: Path) -> tuple[list[str], str]:
    """An import that leads outside: its arguments, and the name that it must be refused by."""
    home = tree(root.parent / "home", {"f.txt": SECRET, "f.jsonl": SAMPLE, "d/g.txt": SECRET})
    base = root / "src"
    name = "f.txt" if format == "promptfoo" else "f.jsonl"
    path = {
        "absolute": f"file://{home}/{name}",
        "above": f"../../home/{name}",
        "link": f"linked-{name}",
        "pattern": "file://../../home/*.txt",
        "inner pattern": "file://*/../../../home/d/*.txt",
    }[kind]
    files: Files = {
        "promptfoo": {"promptfooconfig.yaml": PROMPTFOO.replace("NAME", f"file://{path}")},
        "nemo": {"job.json": NEMO.replace("NAME", path)},
        "openai-evals": {"evals/e.yaml": EVALS.replace("NAME", path.removeprefix("file://"))},
        "evalsone": {"x.txt": ""},
        "lve": {},
        "langbite": {},
    }[format]
    if kind in ("absolute", "pattern", "inner pattern") and format == "promptfoo":
        files = {"promptfooconfig.yaml": PROMPTS.replace("NAME", path), "sub/x": ""}
    tree(base, files)
    if kind == "link":
        where = {"openai-evals": "data", "nemo": "", "promptfoo": "", "evalsone": ""}[format]
        link(str(base / where / f"linked-{name}"), home / name)
    if kind == "above" and format == "openai-evals":
        (base / "data").mkdir()
    return [str(base)], path


@pytest.mark.opens_no_store
@pytest.mark.parametrize(
    ("format", "kind"),
    [
        *[
            ("promptfoo", kind)
            for kind in ("absolute", "above", "link", "pattern", "inner pattern")
        ],
        *[("nemo", kind) for kind in ("absolute", "above", "link")],
        *[("openai-evals", kind) for kind in ("above", "link")],
        ("evalsone", "link"),
    ],
)
def test_an_import_takes_nothing_from_outside(root: Path, run: Run, format: str, kind: str) -> None:
    arguments, name = source(format, kind, root)
    code, output = run("import", format, *arguments)
    assert code in (1, 2)
    assert not any(SECRET.encode() in data for data in seen_below(root).values())
    if kind == "inner pattern":
        assert "has '..' after a wildcard" in output
        return
    assert "outside the imported folder" in output
    assert "--allow-outside" in output
    assert name.removeprefix("file://").rpartition("/")[2] in output
    run("import", format, *arguments, "--allow-outside")
    assert any(SECRET.encode() in data for data in seen_below(root / "tests").values())


@pytest.mark.opens_no_store
def test_an_import_reports_the_line_of_what_it_refuses(root: Path, run: Run) -> None:
    arguments, _ = source("promptfoo", "above", root)
    assert (
        "src/promptfooconfig.yaml:3: a test: '../../home/f.txt' leads to"
        in (run("import", "promptfoo", *arguments)[1])
    )


@pytest.mark.opens_no_store
def test_an_import_of_lve_follows_no_links_outside(root: Path, run: Run) -> None:
    home = tree(root.parent / "home", {"i.jsonl": instance({"q": SECRET})})
    test = (
        '{"description": "d", "model": "a/b", "checker_args": {"checker_name": "RefuseChecker"},'
        ' "prompt": [{"content": "{q}"}], "prompt_parameters": ["q"]}'
    )
    tree(root, {"src/a--b/test.json": test})
    link("src/a--b/instances/all.jsonl", home / "i.jsonl")
    code, output = run("import", "lve", "src")
    assert (code, "outside the imported folder" in output) == (1, True)
    assert not any(SECRET.encode() in data for data in seen_below(root).values())


@pytest.mark.opens_no_store
def test_an_import_of_langbite_follows_no_links_outside(root: Path, run: Run) -> None:
    home = tree(root.parent / "home", {"p.csv": table(prompt(f"Are {{PET}} {SECRET}?"))})
    tree(root, {"src/model.json": '{"requirements": []}'})
    link("src/prompts_en_us.csv", home / "p.csv")
    code, output = run("import", "langbite", "src")
    assert (code, SECRET in output) == (1, False)
    assert f"src/prompts_en_us.csv: leads to '{home / 'p.csv'}'" in output
    assert "outside the imported folder; '--allow-outside' allows it" in output


@pytest.mark.opens_no_store
def test_an_import_writes_nothing_outside(root: Path, run: Run) -> None:
    outside = tree(root.parent / "home", {"kept.txt": "kept"})
    config = PROMPTFOO.replace("NAME", "x")
    tree(root, {"src/promptfooconfig.yaml": config})
    link("tests/src", outside)
    code, output = run("import", "promptfoo", "src")
    assert (code, "outside the workspace" in output) == (2, True)
    assert [path.name for path in outside.iterdir()] == ["kept.txt"]


@pytest.mark.opens_no_store
def test_adopting_a_project_reads_nothing_outside(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(tmp_path, {"home/c.yaml": f"candidates: [{SECRET}]\n", "p/tests/a.md": HELLO})
    tree(tmp_path, {"p/.env": f"AI_TESTER_CONFIG_PATH={tmp_path}/home/c.yaml\n"})
    monkeypatch.chdir(tmp_path / "p")
    code, output = run("init", "--from", ".")
    assert (code, "outside the imported folder" in output) == (2, True)
    assert not (tmp_path / "p/evalstore.yaml").exists()


def test_a_new_workspace_is_written_through_no_links(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = tree(tmp_path, {"w/x": "", "home/ignore": "kept"}) / "w"
    monkeypatch.chdir(inside)
    link("tests/hello.md", tmp_path / "home/new.md")
    link(".gitignore", tmp_path / "home/ignore")
    run("init")
    assert seen_below(tmp_path / "home") == {"ignore": b"kept"}


@pytest.mark.one_database("SQLite keeps files beside that of the store")
def test_a_store_in_use_is_found_by_its_real_path(root: Path, run: Run) -> None:
    """A link to a store inside is used, and what SQLite keeps is beside the real file."""
    (root / "data").mkdir()
    link(".evalstore/store.db", root / "data/real.db")
    assert run("run")[0] == 0
    with sqlite3.connect(root / "data/real.db") as database:
        assert database.execute("SELECT count(*) FROM runs").fetchone() == (1,)

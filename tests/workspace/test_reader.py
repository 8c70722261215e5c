from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from evalstore.core.errors import EvalstoreError, Problem
from evalstore.core.values import CaseFile
from evalstore.workspace import file_references, index, reader
from evalstore.workspace.folder import WorkspaceFolder
from evalstore.workspace.reader import Reading, read_workspace
from evalstore.workspace.settings.settings import find_root
from evalstore.workspace.testfiles.parser import read_test
from tests.builders import HELLO, Files, test_file, tree, workspace_of

TOOL = "id: weather\nname: w\nparameters: {type: object}\n"
SCHEMA = "id: invoice\ntype: object\n"


def problems(reading: Reading) -> list[str]:
    return [f"{problem.place}: {problem.message}" for problem in reading.problems]


def read(path: Path, files: Files) -> Reading:
    return read_workspace(workspace_of(path, files))


class Remembered:
    """A store of leaves in memory, and which files were read after the last reading."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.nodes: dict[str, CaseFile] = {}
        self.expanded: list[str] = []
        self.looked_at: list[str] = []
        self._watch(monkeypatch)

    def _watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        parse, read_bytes = read_test, WorkspaceFolder.read_bytes

        def watched_parse(path: str, text: str) -> object:
            self.expanded.append(path)
            return parse(path, text)

        def watched(self_: WorkspaceFolder, name: str, largest: int) -> bytes:
            if name.startswith("tests/"):
                self.looked_at.append(name)
            return read_bytes(self_, name, largest)

        monkeypatch.setattr(reader, "read_test", watched_parse)
        monkeypatch.setattr(WorkspaceFolder, "read_bytes", watched)

    def read(self) -> Reading:
        self.expanded.clear()
        self.looked_at.clear()
        actual = WorkspaceFolder(self.root)
        reading = read_workspace(actual, self._load)
        self.nodes |= {reading.nodes[path]: file for path, file in reading.files.items()}
        reading.save_index(actual)
        return reading

    def _load(self, ids: Iterable[str]) -> dict[str, CaseFile]:
        return {id: self.nodes[id] for id in ids if id in self.nodes}


def age(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all files have been written long ago, though their change times are those of now."""
    for path in root.rglob("*"):
        os.utime(path, (1, 1))
    monkeypatch.setattr(index, "GRAIN", -(10**12))


@pytest.fixture
def remembered(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Remembered:
    tree(
        folder,
        {
            "evalstore.yaml": "",
            "tools/weather.yaml": TOOL,
            "schemas/invoice.yaml": SCHEMA,
            "prompts/helpful.md": "Be helpful.\n",
            "tests/docs/a.txt": "alpha",
            "tests/plain.md": HELLO,
            "tests/tool.md": test_file("availableTools: [weather]"),
            "tests/schema.md": test_file("structuredResponseSchema: invoice"),
            "tests/prompt.md": test_file("systemPrompts: [helpful]"),
            "tests/file.md": test_file(shown="{{_file:docs/a.txt}}"),
        },
    )
    age(folder, monkeypatch)
    return Remembered(folder, monkeypatch)


# --- the index


def test_unchanged_files_are_not_read_again(remembered: Remembered) -> None:
    before = remembered.read()
    after = remembered.read()
    assert (remembered.expanded, remembered.looked_at) == ([], [])
    assert (after.files, after.nodes) == (before.files, before.nodes)


def test_an_edited_file_alone_is_read_again(remembered: Remembered) -> None:
    remembered.read()
    tree(remembered.root, {"tests/plain.md": HELLO.replace("Hello", "Goodbye")})
    remembered.read()
    assert remembered.expanded == ["tests/plain.md"]


def test_an_edit_of_the_same_size_and_time_is_seen(remembered: Remembered) -> None:
    before = remembered.read().nodes["tests/plain.md"]
    path = remembered.root / "tests/plain.md"
    times = path.stat()
    time.sleep(0.02)  # the change time must have moved on
    path.write_text(HELLO.replace("Hello", "Hallo"))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert path.stat().st_mtime_ns == times.st_mtime_ns
    assert remembered.read().nodes["tests/plain.md"] != before


def test_a_young_file_is_looked_at_again(
    remembered: Remembered, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "GRAIN", 10**12)
    remembered.read()
    remembered.read()
    assert len(remembered.looked_at) == 5
    assert remembered.expanded == []


def test_a_touched_file_is_looked_at_once(remembered: Remembered) -> None:
    remembered.read()
    (remembered.root / "tests/plain.md").touch()
    remembered.read()
    assert (remembered.looked_at, remembered.expanded) == (["tests/plain.md"], [])
    remembered.read()
    assert remembered.looked_at == []


@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b'{"format": [0, "x"]}'])
def test_a_lost_or_broken_index_loses_nothing(
    remembered: Remembered, content: bytes | None
) -> None:
    before = remembered.read()
    path = remembered.root / ".evalstore" / "index.json"
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    after = remembered.read()
    assert len(remembered.expanded) == 5
    assert after.files == before.files


def test_a_leaf_that_the_store_lacks_is_made_again(remembered: Remembered) -> None:
    before = remembered.read()
    remembered.nodes.clear()
    after = remembered.read()
    assert len(remembered.expanded) == 5
    assert after.nodes == before.nodes


@pytest.mark.parametrize(
    ("path", "content", "user"),
    [
        ("tools/weather.yaml", TOOL.replace("object", "array"), "tests/tool.md"),
        ("schemas/invoice.yaml", SCHEMA.replace("object", "array"), "tests/schema.md"),
        ("prompts/helpful.md", "Be brief.\n", "tests/prompt.md"),
        ("tests/docs/a.txt", "beta!", "tests/file.md"),
    ],
)
def test_a_changed_reference_reads_again_only_what_uses_it(
    remembered: Remembered, path: str, content: str, user: str
) -> None:
    before = remembered.read()
    tree(remembered.root, {path: content})
    after = remembered.read()
    assert remembered.expanded == [user]
    changed = [name for name in before.files if before.nodes[name] != after.nodes[name]]
    assert changed == [user]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("tools/weather.yaml", "tests/tool.md:2: unknown tool 'weather'"),
        ("tests/docs/a.txt", "tests/file.md:3: file 'docs/a.txt' not found"),
    ],
)
def test_a_reference_that_is_gone_is_noticed(
    remembered: Remembered, path: str, message: str
) -> None:
    remembered.read()
    (remembered.root / path).unlink()
    assert problems(remembered.read()) == [message]


def test_a_deleted_file_is_gone(remembered: Remembered) -> None:
    remembered.read()
    (remembered.root / "tests/plain.md").unlink()
    assert "tests/plain.md" not in remembered.read().files


def test_problems_of_a_file_are_reported_every_time(remembered: Remembered) -> None:
    tree(remembered.root, {"tests/plain.md": HELLO + "{{x}}"})
    assert problems(remembered.read()) == problems(remembered.read()) != []


def test_an_index_that_cannot_be_written_stops_nothing(remembered: Remembered) -> None:
    tree(remembered.root, {".evalstore": "a file where the folder should be"})
    assert remembered.read().files


# --- problems


def test_all_problems_of_all_files_are_reported_at_once(folder: Path) -> None:
    actual = read(
        folder,
        {
            "tests/a.md": "# 👤\n\n{{x}}\n\n---\n\n{{y}}\n",
            "tests/b.md": "---\ntag: [a]\n---\n" + HELLO,
            "tests/c.md": b"\n\xe9",
            "prompts/p.md": "---\nid: 5\n---\nX",
            "tools/t.yaml": "id: t\nname: t\nparameters: {type: objekt}\n",
            "schemas/s.json": '{"type": "object",\n}',
            "models/m.yaml": "id: m\nprovider: nobody-knows\n",
            "providers/p.yaml": "name: x\n",
            "currencies/c.yaml": "code: EUR\nrates:\n  - validFrom: 2020-01-01\n",
        },
    )
    places = [problem.place for problem in actual.problems]
    assert places == [
        "currencies/c.yaml:3",
        "prompts/p.md:2",
        "providers/p.yaml:1",
        "schemas/s.json:2:1",
        "tests/a.md:3:3",
        "tests/a.md:7:3",
        "tests/b.md:2",
        "tests/c.md:2",
        "tools/t.yaml:3",
    ]


@pytest.mark.parametrize(
    ("text", "place", "excerpt"),
    [
        ("Hi a b {{ a b }}", "3:8", "Hi a b {{ a b }}"),
        ("Hi q {{ q / 0 }}", "3:9", "Hi q {{ q / 0 }}"),
        ("{% if q %}{{ q|no }}{% endif %}", "3:11", "{% if q %}{{ q|no }}{% endif %}"),
        ("x {% if q / 0 %}y{% endif %}", "3:3", "x {% if q / 0 %}y{% endif %}"),
        ("x {% if %}", "3:3", "x {% if %}"),
        ("city {{ city }}", "3:9", "city {{ city }}"),
        ("a {{{q}}}", "3:3", "a {{{q}}}"),
        ("a {{# b", "3:3", "a {{# b"),
        ("x" * 1_001 + "{{ city }}", "3", None),
    ],
)
@pytest.mark.parametrize("kind", ["tests", "prompts"])
def test_a_problem_of_a_template_shows_its_line_and_column(
    folder: Path, kind: str, text: str, place: str, excerpt: str | None
) -> None:
    head = "---\nreplacements: {q: 1}\n---\n"
    body = f"# 👤\n\n{text}\n\n---\n\nE {{{{q}}}}\n" if kind == "tests" else f"{text}\n"
    line, _, column = place.partition(":")
    line = str(int(line) + 3) if kind == "tests" else "4"
    actual = [
        problem
        for problem in read(folder, {f"{kind}/t.md": head + body}).problems
        if "never used" not in problem.message and problem.file == f"{kind}/t.md"
    ]
    whole = f"{kind}/t.md:{line}" + (f":{column}" if column else "")
    assert [(problem.place, problem.excerpt) for problem in actual[:1]] == [(whole, excerpt)]


def test_a_problem_with_a_column_shows_its_line(folder: Path) -> None:
    (problem,) = read(folder, {"tests/a.md": "---\ntags: [a\n---\n" + HELLO}).problems
    assert problem.excerpt is not None


@pytest.mark.parametrize(
    ("kind", "first", "other"),
    [
        ("tests", HELLO, HELLO.replace("Hello", "Bye")),
        ("prompts", "A\n", "B\n"),
        ("tools", "name: a\n", "name: b\n"),
        ("schemas", "type: object\n", "type: array\n"),
        ("models", "provider: openai\n", "provider: openai\ncode: x\n"),
    ],
)
def test_ids_must_differ(folder: Path, kind: str, first: str, other: str) -> None:
    suffix = "md" if kind in ("tests", "prompts") else "yaml"
    head = "---\ntags: []\nid: x\n---\n" if suffix == "md" else "id: x\n"
    files = {
        "tests/t.md": HELLO,
        f"{kind}/1.{suffix}": head + first,
        f"{kind}/2.{suffix}": head + other,
    }
    line = 3 if suffix == "md" else 1
    (actual,) = read(folder, files).problems
    assert (actual.place, actual.message) == (
        f"{kind}/2.{suffix}:{line}",
        f"the id 'x' is taken by '{kind}/1.{suffix}'",
    )


@pytest.mark.parametrize("files", [{}, {"tests/README.md": "Hi"}, {"tests/a.MD": "Hi"}])
def test_a_workspace_needs_tests(folder: Path, files: Files) -> None:
    (actual,) = read(folder, files).problems
    assert (actual.file, actual.message) == ("tests", "no test files")


def test_test_files_lie_at_any_depth(folder: Path) -> None:
    actual = read(
        folder, {"tests/x/y/z.md": HELLO, "tests/a.txt": "no", "tests/.hidden/b.md": "no"}
    )
    assert list(actual.files) == ["tests/x/y/z.md"]


@pytest.mark.parametrize("tests", ["data/tests", "."])
def test_folders_can_be_moved(folder: Path, tests: str) -> None:
    name = f"{tests}/a.md".removeprefix("./")
    actual = read(folder, {"evalstore.yaml": f"paths: {{tests: {tests}}}", name: HELLO})
    assert (list(actual.files), actual.problems) == ([name], [])


def test_a_default_id_counts_from_its_folder(folder: Path) -> None:
    files: Files = {
        "evalstore.yaml": "paths: {prompts: data/prompts, tools: data/tools}",
        "data/prompts/sub/p.md": "A\n",
        "data/tools/t.yaml": "name: t\n",
        "tests/a.md": test_file("systemPrompts: [sub/p]", "availableTools: [t]"),
    }
    assert read(folder, files).problems == []


def test_a_json_schema_may_be_json(folder: Path) -> None:
    schema = '{"id": "s",\n\t"type": "object", "title": "\\ud83d\\ude00"}'
    files: Files = {
        "schemas/s.json": schema,
        "tests/a.md": test_file("structuredResponseSchema: s"),
    }
    assert read(folder, files).problems == []


def test_a_file_of_its_own_replaces_the_default_evaluator_prompt(folder: Path) -> None:
    own = "---\ntags: [_evaluator]\n---\n{{_evaluationInstructions}} {{_actualResponse}}"
    before = read(folder, {"tests/a.md": HELLO})
    after = read(folder, {"prompts/_evaluator_default.md": own})
    assert before.library is not None
    assert after.library is not None
    assert before.library.evaluator_prompts.keys() == {"_evaluator_default"}
    assert before.library.evaluator_prompts != after.library.evaluator_prompts


def test_a_file_name_that_is_not_utf_8_is_refused(folder: Path) -> None:
    tree(folder, {"evalstore.yaml": "", "tests/a.md": HELLO})
    Path(os.fsdecode(os.fsencode(folder / "tests") + b"/\xe9.md")).write_text(HELLO)
    with pytest.raises(EvalstoreError, match="is not UTF-8"):
        read_workspace(WorkspaceFolder(folder))


@pytest.mark.parametrize("end", ["\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_byte_order_marks_change_no_id(folder: Path, end: str, mark: str) -> None:
    text = test_file("tags: [a]", shown="one\n\ntwo")
    before = read(folder, {"tests/a.md": text})
    after = read(folder, {"tests/a.md": mark + text.replace("\n", end)})
    assert before.nodes == after.nodes


def test_links_that_lead_nowhere_and_pipes_are_reported(folder: Path) -> None:
    tree(folder, {"tests/a.md": HELLO})
    (folder / "tests/gone.md").symlink_to("nowhere")
    (folder / "tests/loop.md").symlink_to("loop.md")
    (folder / "tests/here.md").symlink_to(".")
    os.mkfifo(folder / "tests/pipe.md")
    assert problems(read(folder, {})) == [
        "tests/gone.md: cannot be read: No such file or directory",
        "tests/loop.md: cannot be read: Too many levels of symbolic links",
        "tests/pipe.md: is a named pipe, not a regular file",
    ]


# --- mentioned files


def mention(path: Path, mentioned: str, files: Files | None = None) -> list[Problem]:
    test = test_file(shown=f"{{{{_file:{mentioned}}}}}")
    return read(path, {"tests/sub/a.md": test, **(files or {})}).problems


@pytest.mark.parametrize(
    "mentioned", ["docs/a.txt", "/docs/a.txt", "../a.txt", "near.txt", "../docs/a.txt"]
)
def test_a_path_counts_from_the_tests_folder_then_from_the_file(
    folder: Path, mentioned: str
) -> None:
    files: Files = {
        "tests/docs/a.txt": "x", "tests/sub/near.txt": "x", "a.txt": "x",
    }  # fmt: skip
    assert mention(folder, mentioned, files) == []


@pytest.mark.parametrize(
    ("mentioned", "message"),
    [
        ("none.txt", "file 'none.txt' not found"),
        ("docs", "file 'docs' not found"),
        ("../../outside.txt", "'../../outside.txt' is outside the workspace"),
        ("link.txt", "'link.txt' is outside the workspace"),
        ("linked/outside.txt", "'linked/outside.txt' is outside the workspace"),
        ("../.env", "'../.env' is private, so it is not shown to a model"),
        ("a" * 300, "File name too long"),
        ("x\0y", "null"),
        ("loop.txt", "Too many levels"),
    ],
)
def test_a_mention_that_cannot_be_shown_is_reported(
    folder: Path, mentioned: str, message: str
) -> None:
    tree(folder, {"../outside.txt": "secret", "tests/docs/x.txt": "x", ".env": "KEY=1"})
    (folder / "tests/link.txt").symlink_to("../../outside.txt")
    (folder / "tests/linked").symlink_to("../..")
    (folder / "tests/loop.txt").symlink_to("loop.txt")
    (actual,) = mention(folder, mentioned)
    assert message in actual.message
    assert actual.place == "tests/sub/a.md:3"


def test_a_link_inside_of_the_workspace_is_fine(folder: Path) -> None:
    tree(folder, {"blobs/1": b"\x89PNG"})
    (folder / "tests").mkdir()
    (folder / "tests/a.png").symlink_to("../blobs/1")
    assert mention(folder, "a.png") == []


def test_a_huge_file_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_references, "LARGEST_FILE", 3)
    (actual,) = mention(folder, "a.txt", {"tests/a.txt": "1234"})
    assert actual.message == "'a.txt': the file has 0.1 MiB; at most 0 MiB are read"


def test_a_huge_test_file_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "LARGEST_TEXT", 3)
    (actual,) = read(folder, {"tests/a.md": HELLO}).problems
    assert actual.message == "the file has 0.1 MiB; at most 0 MiB are read"


def test_the_path_and_the_bytes_belong_to_the_test(folder: Path) -> None:
    files: Files = {"tests/a.txt": "x", "tests/b.txt": "x"}
    node = read(folder, {"tests/t.md": test_file(shown="{{_file:a.txt}}"), **files}).nodes
    path = read(folder, {"tests/t.md": test_file(shown="{{_file:b.txt}}")}).nodes
    data = read(folder, {"tests/b.txt": "y"}).nodes
    assert len({*node.values(), *path.values(), *data.values()}) == 3


# --- finding it


def test_the_nearest_settings_above_mark_the_root(folder: Path) -> None:
    tree(folder, {"evalstore.yaml": "", "tests/deep/a.md": HELLO})
    assert find_root(folder / "tests/deep") == folder


def test_outside_of_a_workspace_there_is_a_hint(tmp_path: Path) -> None:
    with pytest.raises(EvalstoreError, match=r"no evalstore\.yaml") as caught:
        find_root(tmp_path)
    assert caught.value.hint == "run 'evalstore init' first"
    tree(tmp_path, {"b/evalstore.yaml": "", "a/evalstore.yaml": ""})
    with pytest.raises(EvalstoreError, match=r"no evalstore\.yaml") as caught:
        find_root(tmp_path)
    assert caught.value.hint == "change to a folder that has one: a, b"


def test_wrong_settings_are_reported_with_their_place(folder: Path) -> None:
    with pytest.raises(EvalstoreError, match=r"^evalstore\.yaml:2: unknown field 'atempts'$"):
        workspace_of(folder, {"evalstore.yaml": "\natempts: 1"})

"""Every file is read with limits: no pipe, device, huge or deep file hangs or breaks a command."""

from __future__ import annotations

import ast
import gzip
import json
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import evalstore
from evalstore.core.errors import FileProblem
from evalstore.exchange.importers import base
from evalstore.exchange.importers.base import parse_json
from evalstore.files.access import MIB, open_file, read_file
from tests.builders import tree
from tests.hostile.commands import HELLO, Run

pytestmark = pytest.mark.one_database("the files of a workspace matter here, not its store")

SPARSE = 20 * 1024 * MIB
DEEP = "[" * 100_000
KINDS = {
    "tests": "tests/x.md",
    "prompts": "prompts/x.md",
    "tools": "tools/x.yaml",
    "schemas": "schemas/x.json",
    "models": "models/x.yaml",
    "providers": "providers/x.yaml",
    "currencies": "currencies/x.yaml",
}
IMPORTS = {
    "promptfoo": "promptfooconfig.yaml",
    "nemo": "job.json",
    "openai-evals": "e.yaml",
    "evalsone": "x.jsonl",
    "lve": "test.json",
    "langbite": "prompts_en_us.csv",
    "ai-tester-db": "x.db",
    "otel": "x.json",
    "inspect": "x.eval",
}


@pytest.fixture(autouse=True)
def _never_hangs() -> Iterator[None]:
    def late(*_: object) -> None:
        pytest.fail("a command hangs")  # no handler of exceptions takes it for another error

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def make(place: Path, kind: str) -> str:
    """Put a file there that must not be read, and say why not."""
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(place)
        return "is a named pipe, not a regular file"
    if kind == "socket":
        with socket.socket(socket.AF_UNIX) as item:
            before = Path.cwd()
            os.chdir(place.parent)  # the path of a socket is short
            item.bind(place.name)
            os.chdir(before)
        return "is a socket, not a regular file"
    if kind == "device":
        place.symlink_to("/dev/zero")
        return "is a device, not a regular file"
    place.touch()
    os.truncate(place, SPARSE)
    return "the file has 20,480.0 MiB; at most"


WHATS = ["pipe", "socket", "device", "huge"]


# --- the one way files are read


@pytest.mark.parametrize("kind", WHATS)
@pytest.mark.parametrize("read", [read_file, open_file])
def test_only_regular_files_up_to_a_size_are_read(
    tmp_path: Path, kind: str, read: Callable[..., Any]
) -> None:
    why = make(tmp_path / "x", kind)
    with pytest.raises(FileProblem) as raised:
        read(tmp_path / "x", MIB)
    assert raised.value.message.startswith(why)


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(FileProblem, match="is a folder, not a regular file"):
        read_file(tmp_path, MIB)


@pytest.mark.parametrize(("size", "fits"), [(MIB, True), (MIB + 1, False), (0, True)])
def test_the_limit_itself_is_allowed(tmp_path: Path, size: int, fits: bool) -> None:
    (tmp_path / "x").write_bytes(b"a" * size)
    if fits:
        assert len(read_file(tmp_path / "x", MIB)) == size
    else:
        with pytest.raises(FileProblem, match=r"the file has 1\.1 MiB; at most 1 MiB are read"):
            read_file(tmp_path / "x", MIB)


def test_a_file_that_grows_while_it_is_read_is_refused_at_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    before = os.read

    def grown(descriptor: int, count: int) -> bytes:
        with (tmp_path / "x").open("ab") as file:
            file.write(b"x" * 1000)
        return before(descriptor, count)

    monkeypatch.setattr(os, "read", grown)
    with pytest.raises(FileProblem, match="at most"):
        read_file(tmp_path / "x", 500)


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    make(tmp_path / "x", "huge")
    (tmp_path / "y").write_bytes(b"y")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        read_file(tmp_path / "y", MIB)
        with pytest.raises(FileProblem):
            read_file(tmp_path / "x", MIB)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


# --- a workspace


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("obstacle", WHATS)
def test_a_file_of_a_workspace_is_refused_by_name(
    root: Path, run: Run, kind: str, obstacle: str
) -> None:
    why = make(root / KINDS[kind], obstacle)
    for command in ("check", "status", "run"):
        code, output = run(command)
        assert (code, f"{KINDS[kind]}: {why}" in output) == (2, True)


def test_huge_settings_are_refused_by_name(root: Path, run: Run) -> None:
    make(root / "evalstore.yaml", "huge")
    for command in ("check", "status", "run", "log", "doctor"):
        code, output = run(command)
        assert (code, "evalstore.yaml: the file has 20,480.0 MiB; at most 10 MiB" in output) == (
            2,
            True,
        )


@pytest.mark.parametrize("kind", WHATS)
def test_settings_that_the_user_names_have_the_same_limits(root: Path, run: Run, kind: str) -> None:
    why = make(root / "other.yaml", kind)
    code, output = run("check", "--config", "other.yaml")
    assert (code, f"other.yaml: {why}" in output) == (2, True)


def test_a_huge_mentioned_file_is_refused(root: Path, run: Run) -> None:
    make(root / "tests/x.bin", "huge")
    tree(root, {"tests/a.md": HELLO.replace("Hello\n\n---", "{{_file:x.bin}}\n\n---")})
    code, output = run("run")
    expected = "tests/a.md:3: 'x.bin': the file has 20,480.0 MiB; at most 100 MiB are read"
    assert (code, expected in output) == (2, True)


@pytest.mark.parametrize("kind", WHATS)
@pytest.mark.parametrize("name", ["x.jsonl", "x.csv", "x.json", "x.jsonl.gz"])
def test_a_dataset_is_refused_by_name(root: Path, run: Run, name: str, kind: str) -> None:
    make(root / f"tests/{name}", kind)
    tree(root, {"tests/a.md": f"---\ndataset: {name}\n---\n\n{HELLO}"})
    code, output = run("run")
    assert (code, f"tests/a.md:2: '{name}'" in output) == (2, True)


def test_what_a_packed_dataset_holds_has_the_limit_of_a_plain_one(
    root: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalstore.files.text_source.LARGEST_DATASET", MIB)
    packed = gzip.compress(b'{"q": "x"}\n' * 200_000)
    tree(root, {"tests/x.jsonl.gz": packed, "tests/y.json.gz": gzip.compress(b"\n" * 3 * MIB)})
    monkeypatch.setattr("evalstore.files.text_source.LARGEST_DOCUMENT", MIB)
    for name in ("x.jsonl.gz", "y.json.gz"):
        tree(root, {"tests/a.md": f"---\ndataset: {name}\n---\n\n{HELLO}"})
        code, output = run("run")
        assert (code, "at most 1 MiB are read" in output) == (2, True)


# --- what this program wrote itself


@pytest.mark.parametrize(
    "content",
    ["pipe", "device", "huge", DEEP, '{"a":' * 100_000, "[]", "null", "\udcff", '{"format": 1}'],
    ids=["pipe", "device", "huge", "lists", "objects", "list", "null", "bytes", "other"],
)
def test_a_broken_cache_is_made_again(root: Path, run: Run, content: str) -> None:
    assert run("run")[0] == 0
    path = root / ".evalstore/index.json"
    if content in WHATS:
        make(path, content)
    else:
        path.write_bytes(content.encode(errors="surrogateescape"))
    for command in ("status", "check", "run"):
        assert run(command)[0] == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda index: index.update(depends=[[] for _ in index["depends"]]),
        lambda index: index.update(depends=[None for _ in index["depends"]]),
        lambda index: index["files"]["tests/a.md"].__setitem__(6, []),
        lambda index: index["files"]["tests/a.md"].__setitem__(6, 5),
        lambda index: index.update(files=[]),
    ],
    ids=["depends is a list", "depends is null", "id is a list", "id is a number", "files"],
)
def test_an_index_of_another_shape_is_made_again(
    root: Path, run: Run, change: Callable[[dict[str, Any]], None]
) -> None:
    path = root / ".evalstore/index.json"
    for command in ("run", "status", "check"):
        assert run("run")[0] == 0
        content = json.loads(path.read_bytes())
        assert content["files"]["tests/a.md"][6]  # the entry is in use
        change(content)
        path.write_text(json.dumps(content))
        assert run(command)[0] == 0


# --- imports


@pytest.mark.opens_no_store
@pytest.mark.parametrize("format", IMPORTS)
@pytest.mark.parametrize("kind", [*WHATS, "deep"])
@pytest.mark.parametrize("argument", ["file", "folder"])
def test_an_import_refuses_what_it_cannot_read(
    root: Path, run: Run, format: str, kind: str, argument: str
) -> None:
    place = root / "src" / IMPORTS[format]
    if kind == "deep":
        tree(root, {f"src/{IMPORTS[format]}": DEEP})
        why = ""
    else:
        why = make(place, kind)
    code, output = run("import", format, "src" if argument == "folder" else str(place))
    assert code in (1, 2)
    assert "Traceback" not in output
    # A test of lve is its folder, and a database is not read as a whole.
    if argument == "file" and format != "lve" and (format, kind) != ("ai-tester-db", "huge"):
        assert why in output


@pytest.mark.opens_no_store
@pytest.mark.parametrize(
    ("format", "files"),
    [
        ("nemo", {"job.json": DEEP}),
        ("nemo", {"job.json": '{"tasks": {"t": {"dataset": {"rows": [' + "[" * 500 + "]" * 600}),
        ("promptfoo", {"promptfooconfig.yaml": "prompts: [x]\ntests: t.jsonl\n", "t.jsonl": DEEP}),
        ("promptfoo", {"promptfooconfig.json": DEEP}),
        ("promptfoo", {"promptfooconfig.yaml": "prompts: [p.json]\n", "p.json": DEEP}),
        ("evalsone", {"x.jsonl": DEEP + "\n"}),
        ("openai-evals", {"x.jsonl": DEEP + "\n"}),
        ("otel", {"x.jsonl": "{}\n" + DEEP + "\n"}),
        ("otel", {"x.json": '{"resourceSpans": ' + DEEP}),
        ("inspect", {"x.json": '{"samples": ' + DEEP}),
        ("lve", {"a--b/test.json": DEEP}),
        ("langbite", {"m.json": '{"requirements": ' + DEEP, "prompts_en_us.csv": "a\tb\n"}),
    ],
)
def test_deep_json_breaks_no_import(
    root: Path, run: Run, format: str, files: dict[str, str]
) -> None:
    tree(root / "src", files)
    code, output = run("import", format, "src")
    assert code in (0, 1, 2)
    assert "Traceback" not in output


@pytest.mark.parametrize(("depth", "fits"), [(0, True), (1, True), (100, True), (101, False)])
def test_json_of_imports_has_a_depth(depth: int, fits: bool) -> None:
    text = "[" * depth + "1" + "]" * depth
    if fits:
        assert parse_json(text) == json.loads(text)
    else:
        with pytest.raises(ValueError, match="nested too deeply"):
            parse_json(text)


@pytest.mark.opens_no_store
@pytest.mark.parametrize("kind", WHATS)
def test_a_file_that_a_configuration_names_is_refused_with_its_place(
    root: Path, run: Run, kind: str
) -> None:
    tree(root, {"src/promptfooconfig.yaml": "prompts:\n  - x\n  - file://p*.txt\n"})
    why = make(root / "src/p1.txt", kind)
    code, output = run("import", "promptfoo", "src")
    assert (code, f"src/promptfooconfig.yaml:3: a prompt: 'p1.txt' {why}" in output) == (1, True)


@pytest.mark.opens_no_store
def test_files_that_name_each_other_end(root: Path, run: Run) -> None:
    config = "prompts: [x]\ntests: [file://a.yaml]\nscenarios: [file://s.yaml]\n"
    tree(root, {"src/promptfooconfig.yaml": config, "src/a.yaml": "- file://a.yaml\n"})
    tree(root, {"src/s.yaml": "- file://s.yaml\n"})
    code, output = run("import", "promptfoo", "src")
    assert (code, "names itself" in output) == (1, True)


@pytest.mark.opens_no_store
def test_what_a_packed_source_holds_has_the_limit_of_a_plain_one(
    root: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "LARGEST_SOURCE", MIB)
    tree(root, {"src/x.jsonl": gzip.compress(b" " * 100 * MIB)})
    code, output = run("import", "evalsone", "src")
    assert (code, "at most 1 MiB are read" in output) == (1, True)


@pytest.mark.opens_no_store
def test_an_eval_file_finds_the_data_of_its_registry(root: Path, run: Run) -> None:
    spec = "class: evals.elsuite.basic.match:Match\n  args: {samples_jsonl: d/s.jsonl}"
    tree(root, {"r/evals/e.yaml": f"e:\n  id: e.v\ne.v:\n  {spec}\n"})
    tree(root, {"r/data/d/s.jsonl": '{"input": "Q", "ideal": "x"}\n'})
    assert run("import", "openai-evals", "r/evals/e.yaml")[0] == 0


# --- nothing reads files in another way

PACKAGE = Path(evalstore.__file__).parent
FACING = (
    *(
        "workspace",
        "files/datasets",
        "files/text_source",
        "exchange/importers",
        "exchange/import_tests",
    ),
    *("exchange/imports", "runs/workspace_checks/trust"),
)
ALLOWED = {
    "_BUILT_IN.read_bytes": "a prompt of the package",
    "packaged.read_text": "a schema of the package",
    "self.read_bytes": "the workspace's, which is the boundary's",
    "workspace.read_bytes": "the same",
    "self._workspace.read_bytes": "the same",
    "project.workspace.read_bytes": "the same",
    "self._boundary.open": "the door itself",
    "self._source.open": "a dataset's, which is given how to open it",
    "source.open": "the same",
    "self._zip.open": "of an archive in memory, read up to a size",
    "temporary.open": "writes",
    "read_text": "that of importers/promptfoo/files.py",
    "files.read_text": "the same",
}
READERS = {"open", "fdopen", "read_text", "read_bytes", "connect"}
OTHERS = {
    "os.open": {"workspace/index.py", "workspace/folder.py"},
    "os.fdopen": {"workspace/folder.py"},
    "sqlite3.connect": {"exchange/importers/ai_tester.py"},
}


def _calls() -> Iterator[tuple[str, str]]:
    """Each call in a module that reads what others wrote, with the module."""
    for name in FACING:
        base = PACKAGE / name
        for path in sorted(base.rglob("*.py")) if base.is_dir() else [base.with_suffix(".py")]:
            if path.parent.name == "git":  # it reads git's files within limits of its own
                continue
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call):
                    yield path.relative_to(PACKAGE).as_posix(), ast.unparse(node.func)


def test_files_are_read_through_one_module_only() -> None:
    actual = [
        (module, call)
        for module, call in _calls()
        if call.rpartition(".")[2] in READERS
        and call not in ALLOWED
        and module not in OTHERS.get(call, ())
    ]
    assert actual == []


def test_json_of_imports_is_read_by_one_function_only() -> None:
    actual = {
        module
        for module, call in _calls()
        if call == "json.loads" and module.startswith("exchange/importers")
    }
    # The second reads one character that it has found to be written as JSON.
    assert actual == {"exchange/importers/base.py", "exchange/importers/json_lines.py"}

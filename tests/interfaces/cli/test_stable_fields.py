"""Every field that `docs/documents.schema.json` names is printed, and a test sees it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest import mock

import jsonschema
import pytest

from evalstore.core.runs import RunCommit
from evalstore.store import Store
from tests.builders import HELLO, tree
from tests.exchange.importers.lve.repository import definition, instance
from tests.interfaces.cli.conftest import Echo, Evalstore
from tests.interfaces.cli.run.test_run import edit
from tests.interfaces.cli.test_documents import SCHEMA, name_of, schema_of
from tests.store.test_run_documents import DESCRIPTION

OPTIONAL = {
    *("side.attempts", "side.run", "status.changes[].also", "status.items[].also"),
    *("diff.models", "diff.prompts", "log.runs[].edits", "log.runs[].push", "log --failures.file"),
    *(f"diff.{group}[].answers" for group in ("broke", "fixed", "changed", "new", "gone")),
    *(f"diff.{group}[].promptName" for group in ("broke", "fixed", "changed", "new", "gone")),
    *("run.cases[].promptName", "status.items[].promptName"),
    *("status.edits[].code", "status.edits[].of"),
    *("show.related", "show.failedChecks", "show.history", "show.others", "show.push"),
    "show.planned",
    *("log.runs[].broke", "log.runs[].fixed", "log.runs[].names"),
    *(f"{name}.runs[].{field}" for name in ("log", "ls runs") for field in ("author", "cases")),
    *(
        "ls runs.runs[].gitCommit",
        "remote show.lastExcludedTags",
        "status.remoteJudgements",
        "status.remotes",
        "status.unreadRemotes",
        "status.inProgress",
        "status.shortLimit",
        "status.prices",
    ),
    *("run.since", "run.cases[].change"),
    *(
        f"run.{field}"
        for field in (
            *(
                "since.changed",
                "since.sameAnswer",
                "since.undecided",
                "since.olderAnswers",
                "since.pending",
                "regressions",
            ),
            *(f"spending[].{word}" for word in ("knownCost", "unpriced", "simulated", "local")),
        )
    ),
    "ls cases --full.cases[].messages[][].name",
    *("show.history.pending", "show.history.attempts", "show.history.later"),
    *(
        "diff.changed[].sameAnswer",
        "diff.edits[].edited",
        "diff.statistics.unit",
        "diff.participants",
    ),
    "log --failures.failures[].resolved",
    *("trust.variables", "trust.paths"),
    *("ls results.results[].since", "ls results.results[].changes"),
    *(f"stats.groups[].{key}" for key in ("file", "model", "prompt", "tag")),
}
"""Fields that a document has only when an option, or what is stored, asks for them."""
STABLE = {
    "check": "problems files cases",
    "check.problems[]": "file line column severity message hint",
    "ls cases.cases[]": "file row tests evaluation tags",
    "ls cases --full.cases[]": (
        "file row tests evaluation tags messages systemPrompts instructions checks"
    ),
    "status": "ask judge reuse skipped cost items",
    "status.items[]": "kind file row prompt model evaluator reason was now",
    "run": "run status asked judged reused failed verdicts cost gate cases",
    "run.verdicts": "pass fail undecided error pending",
    "run.cases[]": "file row prompt model verdict score feedback session sessions",
    "diff": "from to broke fixed changed new gone sameAnswer unchanged statistics",
    **{
        f"diff.{group}[]": "file row prompt model was now reason"
        for group in ("broke", "fixed", "changed", "new", "gone")
    },
    "log.runs[]": (
        "run started ended message status asked judged reused verdicts cost gitCommit gitDirty"
    ),
    "show": "kind id",
    "fsck": "checked problems removed",
    "sql": "columns rows",
    "fsck.problems[]": "kind id message",
}
"""Fields that programs rely on: none of them is ever missing."""


def _follow(schema: Any, path: str) -> tuple[Any, str]:
    """The schema that one refers to, and its place; the sides of all comparisons are one place."""
    if "$ref" not in schema:
        return schema, path
    name = schema["$ref"].rpartition("/")[2]
    return SCHEMA["$defs"][name], name if name == "side" else path


def _objects(schema: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The places in a document that hold objects with fields of their own, and their schemas."""
    schema, path = _follow(schema, path)
    if "properties" in schema:
        yield path, schema
        for name, inner in schema["properties"].items():
            yield from _objects(inner, f"{path}.{name}")
    if "items" in schema:
        yield from _objects(schema["items"], f"{path}[]")
    for item in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from _objects(item, path)


def _all_objects() -> Iterator[tuple[str, Any]]:
    for name, schema in SCHEMA["$defs"].items():
        if schema.get("properties", {}).get("format"):
            yield from _objects(schema, name)


def test_fields_that_may_be_missing_are_known() -> None:
    actual = {
        f"{path}.{name}"
        for path, schema in _all_objects()
        for name in schema["properties"]
        if name not in schema.get("required", ())
    }
    assert actual == OPTIONAL


@pytest.mark.parametrize("place", STABLE)
def test_stable_fields_are_required(place: str) -> None:
    schemas = [schema for path, schema in _all_objects() if path == place]
    assert schemas
    for schema in schemas:
        assert set(STABLE[place].split()) <= set(schema["required"])


# --- every field is printed by some command ----------------------------------------------

GROUPED = """\
---
systemPrompts: [brief, null]
---

# ⚙️

Be brief.

# 👤

Hi `{{_file:note.txt}}`

# 🤖 @first

# 👤

And Rome?

---

It must be warm, unlike {{first}} `{{_file:note.txt}}`

~~~checks
- {contains: Warm}
~~~
"""
FAILING = "# 👤\n\nHi\n\n---\n\n~~~checks\n- contains: {}\n~~~\n"
MESSAGES = """\
---
messages:
  - {role: user, content: Hi, name: Ada}
  - {role: assistant, content: }
  - {role: user, content: Ho}
---
---

E
"""
FILES = {
    "tests/grouped.md": GROUPED,
    "tests/messages.md": MESSAGES,
    "tests/note.txt": "a note",
    "prompts/brief.md": "---\nid: brief\n---\n\nBe brief.\n",
    "tools/look.yaml": "id: look\nname: look\ndescription: It looks.\nparameters: {type: object}\n",
    "schemas/answer.json": '{"id": "answer", "schema": {"type": "object"}}',
    "tests/tooled.md": ("---\nstructuredResponseSchema: answer\n---\n# 👤\n\nOslo\n\n---\n\nE\n"),
}


BROKEN_JUDGE = "responses:\n  - {error: {status: 404}}\n"


def _see(schema: Any, value: Any, path: str, seen: set[str]) -> None:
    """Note which fields of a schema a document has."""
    schema, path = _follow(schema, path)
    for item in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        if jsonschema.Draft202012Validator({**item, "$defs": SCHEMA["$defs"]}).is_valid(value):
            _see(item, value, path, seen)
    if isinstance(value, dict):
        for name, inner in schema.get("properties", {}).items():
            if name in value:
                seen.add(f"{path}.{name}")
                _see(inner, value[name], f"{path}.{name}", seen)
    if isinstance(value, list) and "items" in schema:
        for item in value:
            _see(schema["items"], item, f"{path}[]", seen)


def test_every_field_is_printed(
    workspace: Path, documents: Any, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[str] = set()

    def show(*command: str) -> Any:
        document = documents(*command)
        jsonschema.Draft202012Validator(schema_of(command)).validate(document)
        name = name_of(command)
        _see(SCHEMA["$defs"][name], document, name, seen)
        return document

    monkeypatch.setenv("EVALSTORE_TRUST_FILE", str(workspace.parent / "trusted"))
    tree(workspace, FILES)
    edit(workspace / "tests/weather.md", "tags:", "systemPrompts: [brief, null]\ntags:")
    monkeypatch.setattr("evalstore.runs.run.read_user_name", lambda _folder: "Ada")
    monkeypatch.setattr("evalstore.runs.run.git_state", lambda _folder: RunCommit("a" * 40, False))
    show("run", "--yes")
    edit(workspace / "tests/weather.md", "How is", "And how is")
    edit(workspace / "tests/weather.md", "must be warm", "must be short")
    show("run", "-n", "--max-cost", "0")
    (workspace / "tests/tooled.md").unlink()
    edit(workspace / "evalstore.yaml", "candidates:", "verdict: all\ncandidates:")
    show("status")
    show("diff")
    edit(workspace / "evalstore.yaml", "verdict: all\n", "")
    show("diff", "--answers")
    run = show("run", "--yes")
    edit(workspace / "models/judge.yaml", "responses:\n", BROKEN_JUDGE)
    edit(workspace / "tests/weather.md", "must be short", "must be warm and short")
    show("run", "--judge-only")
    show("log", "--failures", "tests/weather.md")
    edit(workspace / "models/judge.yaml", BROKEN_JUDGE, "responses:\n")
    show("run", "--judge-only")
    show("log", "--failures", "tests/weather.md")
    edit(workspace / "tests/weather.md", "must be warm and short", "must be warm")
    several = "---\nsystemPrompts: [brief, null]\n---\n"
    tree(workspace, {"tests/new.md": f"{several}# 👤\n\nHi\n\n---\n\nE\n"})
    show("run", "--yes")
    for sides in (("@~1", "@"), ("@", "@~1"), ("@~3", "@"), ("@", "@~3")):
        show("diff", *sides, "--answers")
    show("diff", "--model", "scripted/one", "--vs", "scripted/one")
    show("diff", "--prompt", "brief", "--vs", "no prompt")
    oslo = ("tests/weather.md::city=Oslo", "--prompt", "brief")
    show("label", *oslo, "fail", "--as", "Ada")
    show("ls", "labels")
    show("ls", "results", "--run", "@")
    show("tag", "v1")
    show("log")
    show("stats", "@", "--by", "judge")
    show("log", "tests/weather.md")
    show("show", run["cases"][0]["session"])
    for text in ("Warm", "zebra"):
        tree(workspace, {"tests/failing.md": FAILING.format(text)})
        documents("run", "--yes", "tests/failing.md")
    show("show", "tests/failing.md")
    show("run", "tests/failing.md", "--fail-on", "regression")
    show("ls", "results", "--broke")
    tree(workspace, {"tests/failing.md": FAILING.format("zebras").replace("Hi", "Hello")})
    documents("run", "--judge-only", "tests/failing.md")
    show("show", "tests/failing.md")
    twice = "---\nattempts: 2\n---\n\n" + FAILING.format("zebra")
    tree(workspace, {"tests/twice.md": twice})
    documents("run", "--yes", "tests/twice.md")
    show("show", "tests/twice.md")
    show("stats", "@~1", "--by", "model,prompt,tag,file")
    show("report")
    show("grep", "Warm")
    show("sql", "SELECT model, usd FROM answers_v")
    tree(workspace, {"tests/twice.md": twice.replace("zebra", "Warm")})
    edit(workspace / "tests/weather.md", "And how is", "And how was")
    show("show", "tests/weather.md::city=Oslo")
    documents("run", "--yes")
    show("diff", "@~1", "@")
    tree(workspace, {"models/away.yaml": "id: mini\nprovider: openai\n"})
    show("doctor", "--no-ping")
    show("doctor", "--no-ping", "-m", "mini")
    for command in (("init",), ("ls", "runs"), ("ls", "checks"), ("ls", "checks", "f1")):
        show(*command)
    for kind in ("tests", "cases", "models", "evaluators", "prompts", "tools", "schemas", "tags"):
        show("ls", kind)
    show("ls", "cases", "--full")
    show("init", "tests/template.md")
    _ask_without_a_price(workspace, show, evalstore)
    with closing(Store.open(workspace / ".evalstore/store.db")) as store:
        store.add_shared_run("1" * 32, DESCRIPTION | {"author": "Ann"}, None)
        show("status")
        store.remove_shared_runs(["1" * 32])
    _share(workspace, show)
    _import(workspace, show)
    _trust(workspace, show, evalstore)
    tree(workspace, {"tests/bad.md": "---\na: [\n---\n# 👤\n\nx\n\n---\n\ny\n"})
    show("check")
    with sqlite3.connect(workspace / ".evalstore/store.db") as connection:
        connection.execute("UPDATE tests SET content = '{}'")
    show("fsck")
    everything = {
        f"{path}.{name}" for path, schema in _all_objects() for name in schema["properties"]
    }
    assert sorted(everything - seen) == []


def _ask_without_a_price(workspace: Path, show: Callable[..., Any], evalstore: Evalstore) -> None:
    """Nothing is known of what an application costs."""
    answer = 'def answer(messages, **options):\n    return \'{"pass": true, "feedback": ""}\'\n'
    model = "id: free\nprovider: python\ncode: apps/free.py\n"
    tree(workspace, {"apps/free.py": answer, "models/free.yaml": model})
    evalstore("trust", "models/free.yaml")
    for words in ((), ("--judge-only",)):
        show("run", *words, "--yes", "-m", "free", "-J", "free", "--refresh", "tests/new.md")
    desk = "code: desk\ntype: openai-compatible\nbaseURL: http://localhost:9/v1\n"
    near = "id: near\nprovider: desk\n"
    tree(workspace, {"providers/desk.yaml": desk, "models/near.yaml": near})
    server = Echo(lambda _text: '{"pass": true, "feedback": ""}')
    with mock.patch("evalstore.runs.execution.key_access.open_provider", return_value=server):
        for words in ((), ("--judge-only",)):
            show("run", *words, "--yes", "-m", "near", "-J", "near", "--refresh", "tests/new.md")
        server.failing = ""
        for words in ((), ("--judge-only",)):
            show("run", *words, "--yes", "-m", "near", "-J", "near", "--refresh", "tests/new.md")


def _import(workspace: Path, show: Callable[..., Any]) -> None:
    tree(workspace, {"source/s.jsonl": '{"input": "a", "ideal": "b"}\n{"input": "c"}\n'})
    show("import", "openai-evals", "source/s.jsonl")
    place = "repository/trust/colours/acme--m1"
    lve = {
        f"{place}/test.json": json.dumps(definition()),
        f"{place}/instances/a.jsonl": instance({}),
    }
    tree(workspace, {**lve, "models/dummy.yaml": "id: dummy/dummy\nprovider: scripted\n"})
    show("import", "lve", "repository", "--sessions")


def _share(workspace: Path, show: Callable[..., Any]) -> None:
    show("remote", "add", "origin", "shared")
    show("run", "-n", "--store", "empty.db")  # the remote was not read yet
    path = workspace / ".evalstore/store.db"
    with sqlite3.connect(path) as store, sqlite3.connect(workspace / "answered.db") as answered:
        store.backup(answered)
    tests = {path: path.read_text() for path in (workspace / "tests").glob("*.md")}
    for test, text in tests.items():
        test.write_text(f"{text.rstrip()}\nNothing else.\n")
    show("run", "--fail-on", "none")
    with mock.patch("platform.node", return_value="elsewhere"):
        show("push")
    show("run", "-n", "--store", "answered.db")  # the remote may have its judgements
    for test, text in tests.items():
        test.write_text(text)
    (workspace / ".evalstore/pushed-as.json").unlink()  # by somebody else, as it seems then
    for command in ("log", "show"):
        show(command)
    show("run", "-n", "--store", "empty.db")
    settings = workspace / "evalstore.yaml"
    signed = "origin: {address: shared, allowedSigners: signers}"
    settings.write_text(settings.read_text().replace("origin: shared", signed))
    (workspace / "signers").write_text("ann ssh-ed25519 AAAA\n")
    show("pull")
    show("pull", "-n")
    show("remote")
    show("remote", "show")
    settings.write_text(settings.read_text().replace(signed, "origin: shared"))
    show("remote", "gc")


def _trust(workspace: Path, show: Callable[..., Any], evalstore: Evalstore) -> None:
    tree(workspace, {"tests/mine.py": "def judge(given):\n    return True\n"})
    show("trust", "tests/mine.py")
    evalstore("trust", "env", "DESK_KEY", "localhost:8000")
    outside = tree(workspace.parent / "away", {"x.md": HELLO}) / "x.md"
    (workspace / "tests/away.md").symlink_to(outside)
    evalstore("check", "--allow-outside")
    shown = show("trust", "--list")
    show("trust", "--revoke", shown["paths"][0]["path"])
    (workspace / "tests/away.md").unlink()

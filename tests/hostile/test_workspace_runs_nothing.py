"""No command runs anything that a workspace brings, whatever its files say.

The workspace is a git checkout full of traps. Each of them would leave a file `pwned-…` outside
of it, and a hook of Python's own notes every program that is started and every variable that is
set. The commands run in real processes, several in one to save time.
"""

from __future__ import annotations

import hashlib
import json
import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from evalstore.interfaces.cli.main import commands, main
from tests.builders import tree
from tests.hostile.databases import STORE
from tests.interfaces.mcp.connected_client import connected_process

ROOT = Path(__file__).parents[2]
READING = [
    ["check"],
    ["status"],
    ["doctor"],
    ["doctor", "--no-ping"],
    ["ls", "models"],
    ["ls", "cases"],
    ["log"],
    ["show"],
    ["diff"],
    ["stats"],
    ["report"],
    ["report", "--markdown"],
    ["export"],
    ["serve", "--port", "70000"],
    ["grep", "Hi"],
    ["sql", "SELECT text FROM results_v"],
    ["fsck"],
    ["trust", "--list"],
    ["--show-completion", "bash"],
    ["check", "--schema", "settings"],
    ["ls", "checks", "contains"],
    ["view"],
    ["remote"],
    ["pull", "-n"],
    ["fsck", "--remote", "made.bundle"],
]
DOING = [
    ["run", "-n"],
    ["run"],
    ["run", "-m", "far", "--retries", "0"],
    ["run", "-m", "app", "-m", "path", "-J", "prog", "--refresh"],
    ["doctor", "app", "prog", "path"],
    ["run", "--judge-only"],
    ["label", "tests/one.md", "--pass"],
    ["tag", "first"],
    ["import", "promptfoo", "source/promptfooconfig.yaml"],
    ["init", "new"],
    ["init", "tests/first.md"],
    ["remote", "add", "origin", "shared"],
    ["push"],
    ["pull"],
    ["push", "made.bundle"],
    ["clone", "shared", "cloned"],
    ["pull", "other.db"],
    ["trust", "env", "DESK_KEY", "localhost"],
    ["trust", "--revoke", "env", "DESK_KEY", "localhost"],
]
SERVING = ["serve", "--mcp", "--allow-run", "--max-cost", "1"]
"""Every command of the program is in one of the two lists, or is this one."""
TOOLS: dict[str, dict[str, str]] = {
    "explain_case": {"case": "tests/one.md"},
    "search": {"pattern": "Hi"},
    "show": {"id": "@"},
}
"""The arguments that tools require."""

SHADOWS = (
    "sitecustomize usercustomize conftest litellm jinja2 yaml typer click rich textual aiohttp "
    "sqlalchemy sqlmodel alembic xxhash dotenv frontmatter jsonschema regex filetype jmespath "
    "pydantic rapidfuzz git readline"
)
DRIVER = """
import json, os, sys
notes = os.environ["NOTES"]
started = []
def hook(event, arguments):
    if event in ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.system", "os.putenv"):
        started.append([event, [str(one) for one in arguments[:2]]])
sys.addaudithook(hook)
from evalstore.interfaces.cli.main import main
ended = [main(argv) for argv in json.loads(sys.argv[1])]
open(notes, "w").write(json.dumps({"started": started, "ended": ended}, default=str))
"""


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Where traps leave their files."""
    return tree(tmp_path / "outside", {"readme": ""})


@pytest.fixture
def trapped(tmp_path: Path, outside: Path) -> Path:
    """A workspace full of traps, with one run in its store."""
    folder = tree(
        tmp_path / "w",
        {
            "evalstore.yaml": "candidates: [one, app, prog]\nevaluators: [one]\n",
            "models/one.yaml": (
                "id: one\nprovider: scripted\n"
                "responses: [{when: Say, answer: {pass: true, feedback: ''}}, {answer: Hi}]\n"
            ),
            "providers/far.yaml": (
                "code: far\ntype: openai-compatible\nbaseURL: http://127.0.0.1:9/v1\n"
                "apiKeyEnvVar: FAR_KEY\n"
            ),
            "models/far.yaml": "id: far\nprovider: far\n",
            "models/app.yaml": (
                "provider: python\ncode: apps/app.py\nuses: [apps/lib.py]\nenv: [LD_PRELOAD]\n"
            ),
            "models/prog.yaml": "provider: command\ncode: apps/prog.sh\n",
            "models/path.yaml": "provider: command\ncode: git status\nenv: [GIT_DIR]\n",
            "apps/app.py": f"{_touch(outside, 'app')}\ndef answer(messages):\n    return ''\n",
            "apps/lib.py": _touch(outside, "lib"),
            "apps/prog.sh": f"#!/bin/sh\ntouch {outside}/pwned-prog\n",
            "tests/one.md": "# 👤\n\nHello\n\n---\n\nSay whether it greets.\n",
            "tests/two.md": (
                "# 👤\n\nHello you\n\n---\n\n```checks\n"
                "- python: {file: checks/mine.py, function: judge}\n```\n"
            ),
            "tests/checks/mine.py": f"{_touch(outside, 'check')}\ndef judge(given):\n    pass\n",
            "source/promptfooconfig.yaml": (
                "prompts: ['Hi {{x}}', file://prompt.py]\nproviders: [python:provider.py]\n"
                "tests:\n  - vars: {x: 1}\n    assert: [{type: python, value: file://a.py}]\n"
            ),
            **{
                f"source/{name}.py": _touch(outside, f"promptfoo-{name}")
                for name in ("prompt", "provider", "a")
            },
        },
    )
    assert main(["-C", str(folder), "run"]) == 3  # the Python check is not trusted
    tree(folder, {f"{name}.py": _touch(outside, name) for name in SHADOWS.split()})
    _set_traps(folder, outside)
    return folder


def _touch(outside: Path, name: str) -> str:
    return f"open({str(outside / f'pwned-{name}')!r}, 'w').close()"


def _variables() -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", STORE) if name in os.environ}
    paths = os.pathsep.join([str(ROOT), *filter(None, sys.path[1:])])
    return {**kept, "PYTHONPATH": paths, "TERM": "xterm", "LANG": "C.UTF-8"}


def _set_traps(folder: Path, outside: Path) -> None:
    def pwn(name: str) -> str:
        return f"touch {outside}/pwned-{name}; false"

    programs = {}
    for name in ("git", "sh", "python", "python3", "vi", "less", "editor", "true"):
        programs[f"bin/{name}"] = f"#!/bin/sh\ntouch {outside}/pwned-path-{name}\n"
    environment = {
        "PATH": f"{folder}/bin",
        "LD_PRELOAD": f"{folder}/e.so",
        "LD_LIBRARY_PATH": f"{folder}",
        "PYTHONPATH": f"{folder}",
        "PYTHONSTARTUP": f"{folder}/conftest.py",
        "PYTHONHOME": f"{folder}",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": pwn("env-fsmonitor"),
        "GIT_CONFIG_GLOBAL": f"{folder}/.git/config",
        "GIT_EXTERNAL_DIFF": pwn("env-diff"),
        "GIT_SSH_COMMAND": pwn("env-ssh"),
        "GIT_PAGER": pwn("env-git-pager"),
        "GIT_DIR": f"{folder}/.git",
        "PAGER": pwn("env-pager"),
        "EDITOR": f"{folder}/bin/editor",
        "VISUAL": f"{folder}/bin/editor",
        "BROWSER": f"{folder}/bin/editor",
        "EVALSTORE_TRUST_FILE": f"{folder}/trusted",
        "EVALSTORE_ALLOW_ENV": "FAR_KEY=127.0.0.1",
        "EVALSTORE_RUN_YES": "1",
        "HTTP_PROXY": "http://127.0.0.1:9",
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "SSLKEYLOGFILE": f"{outside}/pwned-sslkeys",
        "SSL_CERT_FILE": f"{folder}/cert",
        "LITELLM_LOG": "DEBUG",
        "LITELLM_MODE": "DEV",
        "HOME": f"{folder}",
        "XDG_STATE_HOME": f"{folder}",
        "TEXTUAL_DRIVER": "conftest:Driver",
        "FAR_KEY": "x",
        "PGHOST": "127.0.0.1",
        "PGPASSFILE": f"{folder}/passwords",
        "PGSERVICEFILE": f"{folder}/services",
        "PGOPTIONS": "-c search_path=public",
    }
    check = (folder / "tests/checks/mine.py").read_bytes()
    trusted = {"sha256": hashlib.sha256(check).hexdigest(), "network": True}
    tree(
        folder,
        {
            **programs,
            ".env": "".join(f"{name}='{value}'\n" for name, value in environment.items()),
            "trusted": json.dumps(trusted) + "\n",
            ".gitattributes": "* filter=mine diff=mine\n",
        },
    )
    for name in programs:
        (folder / name).chmod(0o755)
    if shutil.which("cc"):
        source = outside / "e.c"
        source.write_text(
            "#include <fcntl.h>\n__attribute__((constructor)) static void run(void) {\n"
            f'creat("{outside}/pwned-preload", 0600); }}\n'
        )
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-o", str(folder / "e.so"), str(source)], check=True
        )
    _make_checkout(folder, pwn)


def _make_checkout(folder: Path, pwn: Callable[[str], str]) -> None:
    for arguments in (
        ["init", "-q"],
        ["-c", "filter.mine.clean=cat", "add", "tests", "models", ".gitattributes"],
        ["-c", "user.name=a", "-c", "user.email=b", "commit", "-qm", "first"],
    ):
        subprocess.run(["git", *arguments], cwd=folder, env=_variables(), check=True)
    config = f"""
[core]
    repositoryformatversion = 0
    fsmonitor = "{pwn("fsmonitor")}"
    hooksPath = hooks
    pager = "{pwn("pager")}"
    editor = "{pwn("editor")}"
    sshCommand = "{pwn("ssh")}"
[filter "mine"]
    clean = "{pwn("clean")}"
    smudge = "{pwn("smudge")}"
    process = "{pwn("process")}"
    required = true
[diff]
    external = "{pwn("diff")}"
[diff "mine"]
    textconv = "{pwn("textconv")}"
[gpg]
    program = "{pwn("gpg")}"
[alias]
    status = "!{pwn("alias")}"
    config = "!{pwn("alias-config")}"
[pager]
    config = "{pwn("pager-config")}"
[remote "origin"]
    url = "ext::sh -c {pwn("ext")}"
    uploadpack = "{pwn("uploadpack")}"
    promisor = true
[protocol "ext"]
    allow = always
"""
    tree(folder, {".git/config": config})
    hooks = ("post-index-change", "fsmonitor-watchman", "pre-commit", "reference-transaction")
    for place in ("hooks", ".git/hooks"):
        for name in hooks:
            tree(folder, {f"{place}/{name}": f"#!/bin/sh\n{pwn(f'hook-{name}')}\n"})
            (folder / place / name).chmod(0o755)
    for path in (folder / "tests").rglob("*.md"):
        os.utime(path, (1, 1))  # git would run the filters to find out whether they differ


def traces(outside: Path) -> list[str]:
    return sorted(path.name for path in outside.iterdir() if path.name.startswith("pwned"))


def drive(folder: Path, outside: Path, argvs: list[list[str]]) -> None:
    notes = outside / "notes.json"
    environment = {**_variables(), "NOTES": str(notes)}
    ran = subprocess.run(
        [sys.executable, "-P", "-c", DRIVER, json.dumps(argvs)],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert notes.exists(), ran.stderr
    require_nothing_ran(folder, outside, ran.stderr)


def require_nothing_ran(folder: Path, outside: Path, errors: str = "") -> None:
    """Fail when a trap was sprung, a program was started, or a command ended with a bug."""
    document = json.loads((outside / "notes.json").read_text())
    assert 70 not in document["ended"], errors
    assert traces(outside) == []
    brought = [
        [str(part.strip("'").encode()) for part in line.split("=", 1)]
        for line in (folder / ".env").read_text().splitlines()
    ]
    for event, arguments in document["started"]:
        if event == "os.putenv":
            assert arguments not in brought
        else:
            pytest.fail(f"{event} {arguments}: a program was started")


def test_every_command_is_tried() -> None:
    names = {argv[0] for argv in (*READING, *DOING, SERVING)} - {"--show-completion"}
    assert names == set(commands().commands)  # type: ignore[attr-defined]


@pytest.mark.one_database("evalstore is not started")
def test_the_traps_work(trapped: Path, outside: Path) -> None:
    status = ["git", "status", "--porcelain"]
    subprocess.run(status, cwd=trapped, env=_variables(), capture_output=True, check=False)
    assert {"pwned-fsmonitor", "pwned-process"} <= set(traces(outside))
    value = {**_variables(), "LD_PRELOAD": f"{trapped}/e.so", "PYTHONPATH": str(trapped)}
    subprocess.run([sys.executable, "-c", ""], env=value, capture_output=True, check=False)
    assert "pwned-sitecustomize" in traces(outside)
    assert ("pwned-preload" in traces(outside)) == (trapped / "e.so").exists()


def test_commands_that_read_run_nothing(trapped: Path, outside: Path) -> None:
    drive(trapped, outside, READING)


@pytest.mark.one_database("what opens a store on a server is in the tests of commands that read")
def test_commands_that_call_and_write_run_nothing(trapped: Path, outside: Path) -> None:
    drive(trapped, outside, DOING)


@pytest.mark.one_database("what opens a store on a server is in the tests of commands that read")
def test_the_tools_for_agents_run_nothing(trapped: Path, outside: Path) -> None:
    arguments = ["-P", "-c", DRIVER, json.dumps([SERVING])]
    environment = {**_variables(), "NOTES": str(outside / "notes.json")}
    with connected_process(arguments, trapped, environment) as agent:
        failed = [
            name for name in agent.tools() if agent.call(name, **TOOLS.get(name, {})).is_error
        ]
    assert failed == []
    require_nothing_ran(trapped, outside)


def test_modules_of_the_working_folder_are_not_imported(trapped: Path, outside: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "evalstore", "run", "--refresh"],
        cwd=trapped,
        env=_variables(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 3, ran.stderr
    assert traces(outside) == []


@pytest.mark.one_database("what opens a store on a server is in the tests of commands that read")
def test_the_browser_runs_nothing(trapped: Path, outside: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "evalstore", "view"],
        cwd=trapped,
        env=_variables(),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    seen, deadline = b"", time.monotonic() + 60
    try:
        while process.poll() is None and time.monotonic() < deadline:
            if not select.select([ours], [], [], 0.1)[0]:
                continue
            try:
                seen += os.read(ours, 1 << 16)
            except OSError:
                break
            if b"complete" in seen:  # the list of runs is there
                os.write(ours, b"q")
        assert process.wait(60) == 0, seen[-2000:]
    finally:
        process.kill()
        os.close(ours)
    assert traces(outside) == []

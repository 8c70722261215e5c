"""The GitHub Action and the hooks for pre-commit: their commands are run as they are written."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from evalstore.exchange.exports.formats import COLUMNS
from evalstore.interfaces.cli.main import main
from tests.builders import tree
from tests.zygote import shell_program

pytestmark = pytest.mark.extended

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
STEPS: dict[str, Any] = {step["name"]: step for step in ACTION["runs"]["steps"] if "name" in step}
JOBS = {
    text.split("\n", 1)[0]: yaml.safe_load(text)
    for text in re.findall(
        r"^```yaml\n(# \.git.*?)^```$",
        (ROOT / "docs/recipes/ci.md")
        .read_text(encoding="utf-8")
        .partition("\n## A remote instead of a cache\n")[2],
        re.DOTALL | re.MULTILINE,
    )
}
"""The workflows of the page that share a remote, by their first line."""
SHELL = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c")
"""As GitHub starts it."""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A copy of the example, and a program `evalstore` that is this one."""
    shutil.copytree(
        ROOT / "example", tmp_path / "example", ignore=shutil.ignore_patterns(".evalstore")
    )
    shell_program(tmp_path / "bin/evalstore")
    return tmp_path / "example"


@pytest.fixture
def recorded(workspace: Path) -> Path:
    """The workspace with a program `evalstore` that only notes its arguments."""
    program = workspace.parent / "bin/evalstore"
    program.write_text('#!/bin/sh\nprintf "%s\\0" "$@" > "$HOME/arguments"\n', encoding="utf-8")
    return workspace


def arguments_of(workspace: Path) -> list[str]:
    """The arguments of the program that was called last."""
    return (workspace.parent / "arguments").read_text(encoding="utf-8").split("\0")[:-1]


def run_step(
    name: str, workspace: Path, inputs: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a step as the runner does, with its inputs in the environment."""
    step = STEPS[name]
    values = {key: str(entry["default"]) for key, entry in ACTION["inputs"].items()}
    values |= inputs or {}
    variables = {}
    for variable, expression in step.get("env", {}).items():
        input_name = expression.removeprefix("${{ inputs.").removesuffix(" }}")
        variables[variable] = values[input_name]
    return _bash(step["run"], workspace, variables)


def _bash(
    command: str, workspace: Path, variables: dict[str, str], *arguments: str
) -> subprocess.CompletedProcess[str]:
    base = workspace.parent
    return subprocess.run(
        [*SHELL, command, "step", *arguments],
        cwd=workspace,
        env={
            "PATH": f"{base}/bin:{os.environ['PATH']}",
            "HOME": str(base),
            "PYTHONPATH": str(ROOT),
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKSPACE": str(base),
            "GITHUB_OUTPUT": str(base / "output"),
            "GITHUB_STEP_SUMMARY": str(base / "summary.md"),
            **variables,
        },
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_steps_of_the_action_work_one_after_the_other(workspace: Path) -> None:
    checked = run_step("Check the files", workspace)
    assert (checked.returncode, checked.stderr) == (0, "")
    ran = run_step("Run", workspace, {"fail-on": "failure"})
    assert ran.returncode == 1
    assert (workspace.parent / "output").read_text(encoding="utf-8") == "exit-code=1\n"
    assert "::error file=example/tests/availability.md,line=8,title=" in ran.stderr
    assert (workspace / "evalstore.junit.xml").read_text(encoding="utf-8").startswith("<?xml")
    assert "### evalstore: " in (workspace.parent / "summary.md").read_text("utf-8")
    assert run_step("Write the comment", workspace).returncode == 0
    assert (workspace / "evalstore-comment.md").read_text("utf-8").startswith("### evalstore")


def test_the_action_runs_the_paths_that_are_named(recorded: Path) -> None:
    ran = run_step("Run", recorded, {"paths": "tests/late.md\n\ntests/two words.md\n"})
    assert ran.returncode == 0
    assert arguments_of(recorded)[-3:] == ["--", "tests/late.md", "tests/two words.md"]


@pytest.mark.parametrize("value", ["$(touch hacked)", "`touch hacked`", "; touch hacked", "-h"])
def test_inputs_are_values_and_never_code(recorded: Path, value: str) -> None:
    inputs = dict.fromkeys(("paths", "fail-on", "max-cost", "junit", "comment"), value)
    for name, count in (("Run", 4), ("Write the comment", 1)):
        run_step(name, recorded, inputs)
        assert arguments_of(recorded).count(value) == count
    assert not (recorded / "hacked").exists()


def test_no_step_puts_an_expression_into_its_script() -> None:
    for name, step in STEPS.items():
        assert "${{" not in step["run"], name
        assert step["shell"] == "bash"


def test_the_action_has_what_github_requires() -> None:
    assert ACTION["runs"]["using"] == "composite"
    assert ACTION["name"]
    assert ACTION["description"]
    for step in ACTION["runs"]["steps"]:
        assert ("uses" in step) != ("run" in step)
    named = {f"inputs.{name}" for name in ACTION["inputs"]}
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    assert all(f"${{{{ {name} }}}}" in text for name in named)


def _github() -> tuple[list[tuple[str, dict[str, str]]], str]:
    """The shell of the shards on GitHub, each with its variables, and that of the last job."""
    jobs = JOBS["# .github/workflows/evals.yml"]["jobs"]
    shard, evals = (
        "\n".join(
            step["run"] for step in jobs[name]["steps"] if "pip" not in step.get("run", "pip")
        )
        for name in ("shard", "evals")
    )
    return [
        (shard, {"SHARD": part}) for part in jobs["shard"]["strategy"]["matrix"]["shard"]
    ], evals


def _gitlab() -> tuple[list[tuple[str, dict[str, str]]], str]:
    """The same on GitLab."""
    jobs = JOBS["# .gitlab-ci.yml"]
    script = "\n".join(jobs["shard"]["script"])
    count = jobs["shard"]["parallel"]
    shards = [
        (script, {"CI_NODE_INDEX": str(index), "CI_NODE_TOTAL": str(count)})
        for index in range(1, count + 1)
    ]
    return shards, "\n".join([*jobs["evals"]["script"], *jobs["evals"]["after_script"]])


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
@pytest.mark.parametrize(
    ("service", "comment", "posted"),
    [
        (_github, "evalstore-comment.md", "gh pr comment 7 --edit-last --create-if-none -F "),
        (_gitlab, "report.md", "curl -sSf -H PRIVATE-TOKEN: t --data-urlencode body@"),
    ],
)
def test_the_jobs_of_the_page_share_a_remote(
    workspace: Path, service: Any, comment: str, posted: str
) -> None:
    base = workspace.parent
    for name in ("gh", "curl", "apt-get"):
        program = base / "bin" / name
        program.write_text(f'#!/bin/sh\necho {name} "$@" >> "$HOME/called"\n', encoding="utf-8")
        program.chmod(0o755)
    settings = (workspace / "evalstore.yaml").read_text("utf-8") + "remotes: {origin: ../team}\n"
    tree(workspace, {"evalstore.yaml": settings})
    variables = {"EVALSTORE_ALLOW_OUTSIDE": "true", "NUMBER": "7", "REPORT_TOKEN": "t"}
    variables |= {"CI_API_V4_URL": "u", "CI_PROJECT_ID": "1", "CI_MERGE_REQUEST_IID": "7"}
    clone = shutil.copytree(workspace, base / "clone")
    filled = _bash("evalstore run -q --fail-on none && evalstore push", workspace, variables)
    assert filled.returncode == 0, filled.stderr
    late = (clone / "tests/late.md").read_text(encoding="utf-8")
    edited = late.replace('must say "20 euros"', 'must say "20 euros" and must give a reason')
    (clone / "tests/late.md").write_text(edited, encoding="utf-8")
    shards, script = service()
    assert len(shards) == 2
    for command, part in shards:
        machine = shutil.copytree(clone, base / "-".join(part.values()).replace("/", "-"))
        asked = _bash(command, machine, variables | part)
        assert asked.returncode == 0, asked.stderr
        assert " 0 new answers, " in asked.stdout  # they are those of the first checkout
    decided = _bash(script.replace(" -o evalstore.junit.xml", " || true"), clone, variables)
    assert decided.returncode == 0, decided.stderr
    assert "0 new answers, 71 reused, 0 new verdicts, $0;" in decided.stdout
    assert "gate failed: 3 regressions" in decided.stdout
    told = "### evalstore: Edits of tests changed 3 results: 3 broke, none fixed. "
    assert (clone / comment).read_text("utf-8").startswith(told)
    assert (base / "called").read_text("utf-8").splitlines()[-1].startswith(posted + comment)
    assert len(list((base / "team/indexes").iterdir())) == 4


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: str(hook["id"]))
def test_a_hook_checks_files_and_fails_for_a_wrong_one(
    recorded: Path,
    hook: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert {"id", "name", "entry", "language"} <= hook.keys()
    files = ["tests/late.md"] if hook.get("pass_filenames", True) else []
    assert _bash(hook["entry"] + ' "$@"', recorded, {}, *files).returncode == 0
    monkeypatch.chdir(recorded)
    assert main(arguments_of(recorded)) == 0
    (recorded / "tests/late.md").write_text("---\ntag: x\n---\n", encoding="utf-8")
    assert main(arguments_of(recorded)) == 2
    assert "tests/late.md:2" in capsys.readouterr().err


def test_the_page_has_the_columns_as_they_are() -> None:
    page = (ROOT / "docs/export.md").read_text(encoding="utf-8")
    for column in COLUMNS:
        row = f"| `{column.name}` | {column.type} | {column.unit} | {column.meaning} |"
        assert row in page.splitlines()
    assert page.count("| text |") + page.count("| number |") + page.count("| integer |") + (
        page.count("| list of texts |")
    ) == len(COLUMNS)

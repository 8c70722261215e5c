"""Keys that may not be sent where they would go: all are named at once, before a run as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.builders import tree

if TYPE_CHECKING:
    from pathlib import Path

    from tests.interfaces.cli.conftest import Evalstore

ONE = (
    "the provider '{0}' of this workspace wants {1}_KEY of your environment to be sent to "
    "{0}.example"
)
FIRST = f"{ONE.format('a', 'A')}, which you have not allowed"
BOTH = f"{ONE.format('a', 'A')}; {ONE.format('b', 'B')}, which you have not allowed"
HINT = (
    "if you trust those hosts: evalstore trust env A_KEY a.example; evalstore trust env B_KEY "
    "b.example; in CI set EVALSTORE_ALLOW_ENV=A_KEY=a.example,B_KEY=b.example"
)


@pytest.fixture
def two_hosts(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace whose candidate and judge are at two hosts that nobody has allowed."""
    free = "{costPerCall: 0}"
    for name in ("a", "b"):
        monkeypatch.setenv(f"{name.upper()}_KEY", "sk-secret")
        base = f"baseURL: https://{name}.example/v1\napiKeyEnvVar: {name.upper()}_KEY\n"
        tree(
            workspace,
            {
                f"providers/{name}.yaml": f"code: {name}\ntype: openai-compatible\n{base}",
                f"models/{name}.yaml": f"id: {name}\nprovider: {name}\ncosts: [{free}]\n",
            },
        )
    (workspace / "evalstore.yaml").write_text("candidates: [a]\nevaluators: [b]\n")
    return workspace


def test_a_run_names_all_keys_that_it_may_not_send(two_hosts: Path, evalstore: Evalstore) -> None:
    ran = evalstore("run")
    assert (ran.exit_code, ran.stderr) == (2, f"error: {BOTH}\nhint: {HINT}\n")
    evalstore("trust", "env", "B_KEY", "b.example")
    assert evalstore("run").stderr.startswith(f"error: {FIRST}\n")


@pytest.mark.parametrize("command", [["status"], ["run", "--dry-run"]])
def test_a_plan_warns_of_them(two_hosts: Path, evalstore: Evalstore, command: list[str]) -> None:
    ran = evalstore(*command)
    assert (ran.exit_code, f"warning: {BOTH}; {HINT}\n" in ran.stderr) == (0, True)
    assert "sk-secret" not in ran.stdout + ran.stderr


def test_check_warns_of_them(two_hosts: Path, evalstore: Evalstore) -> None:
    ran = evalstore("check")
    assert ran.exit_code == 0
    assert ran.stderr == f"warning: evalstore.yaml: {BOTH}\nhint: {HINT}\n"


def test_what_is_not_called_is_not_warned_of(
    two_hosts: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALSTORE_ALLOW_ENV", "A_KEY=a.example,B_KEY=b.example")
    for command in ("status", "check"):
        assert evalstore(command).stderr == ""
    monkeypatch.delenv("EVALSTORE_ALLOW_ENV")
    assert "warning: " in evalstore("status").stderr
    assert evalstore("status", "-m", "scripted/one", "-J", "scripted/judge").stderr == ""

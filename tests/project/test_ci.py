"""`.ci/run` installs what it can from the system's packages, and checks in any case."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.requirements import Requirement

PROJECT = Path(__file__).parents[2]
SCRIPT = PROJECT / ".ci/run"
SETTINGS = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
_TOO_LARGE = ("parquet",)
"""Extras that would add hundreds of megabytes to each checkout; their tests say when they skip."""
TOOLS = ("bash", "dirname", "env", "id", "timeout")
"""All that the script needs of the system, beside what a test puts there."""


@dataclass
class System:
    """A checkout, and the only programs there are."""

    root: Path

    def has(self, name: str, does: str = "") -> None:
        """There is a program that notes its call and then does this."""
        path = self.root / "bin" / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >> {self.root}/calls\n{does}\n')
        path.chmod(0o755)

    def run(self) -> subprocess.CompletedProcess[str]:
        folder = self.root / "bin"
        return subprocess.run(
            [self.root / ".ci/run"],
            env={
                "PATH": f"{folder}",
                "SFTP_SERVER": f"{folder / 'sftp-server'}",
                "PGBOUNCER": f"{folder / 'pgbouncer'}",
            },
            stdin=subprocess.PIPE,
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def calls(self) -> list[str]:
        path = self.root / "calls"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def system(tmp_path: Path) -> System:
    (tmp_path / "bin").mkdir()
    (tmp_path / ".ci").mkdir()
    shutil.copy(SCRIPT, tmp_path / ".ci/run")
    for name in TOOLS:
        actual = shutil.which(name)
        assert actual
        (tmp_path / "bin" / name).symlink_to(actual)
    made = System(tmp_path)
    made.has("make", "echo made")
    made.has("sudo", 'shift; exec "$@"')
    return made


PROGRAMS = ("pgbouncer", "tmux", "jq", "zsh", "fish", "sftp", "sftp-server")
PACKAGES = (
    *("chromium", "postgresql", "pgbouncer", "tmux", "jq", "zsh", "fish"),
    *("openssh-client", "openssh-sftp-server"),
)
MADE = ["make .venv/.installed-readers", "make check"]
NO_QUESTION = '[ "$DEBIAN_FRONTEND" = noninteractive ] || exit 9; ! read -r line'


def test_what_is_missing_is_installed_without_a_question(system: System) -> None:
    system.has("apt-get", f"({NO_QUESTION}) && echo quietly >> {system.root}/calls; echo noise")
    ran = system.run()
    install = "apt-get -qq install --yes --no-install-recommends"
    assert [call for call in system.calls if not call.startswith("sudo")] == [
        "apt-get -qq update",
        "quietly",
        *(line for package in PACKAGES for line in (f"{install} {package}", "quietly")),
        *MADE,
    ]
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "made\n" * 2, "")


@pytest.mark.parametrize("does", ["echo no network >&2; exit 100", "exit 1"])
def test_what_cannot_be_installed_is_passed_over_without_a_word(system: System, does: str) -> None:
    system.has("apt-get", does)
    ran = system.run()
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "made\n" * 2, "")
    assert system.calls[-2:] == MADE


def test_without_packages_of_the_system_the_checks_are_made(system: System) -> None:
    ran = system.run()
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "made\n" * 2, "")
    assert system.calls == MADE


@pytest.mark.parametrize(
    "names",
    [
        ("chromium", "pg_ctl", *PROGRAMS),
        ("chromium-browser", "pg_ctlcluster", *PROGRAMS),
    ],
)
def test_what_is_there_is_not_installed(system: System, names: tuple[str, ...]) -> None:
    for name in ("apt-get", *names):
        system.has(name)
    assert system.run().returncode == 0
    assert system.calls == MADE


def test_readers_that_cannot_be_installed_are_passed_over(system: System) -> None:
    system.has("make", "case $1 in .venv/*) exit 2 ;; esac; echo made")
    assert (system.run().returncode, system.calls) == (0, MADE)


def test_a_check_that_fails_ends_it(system: System) -> None:
    system.has("make", "exit 2")
    assert system.run().returncode == 2
    assert system.calls == MADE


def test_no_address_of_an_index_is_named() -> None:
    text = SCRIPT.read_text(encoding="utf-8")
    assert re.findall(r"://|index|\bpip\b.*install|sources\.list|add-apt", text) == []


def test_the_tests_have_the_packages_of_every_extra() -> None:
    extras = SETTINGS["project"]["optional-dependencies"]
    expected = {
        Requirement(item)
        for name, entry in extras.items()
        if name not in ("dev", *_TOO_LARGE)
        for item in entry
    }
    assert {requirement.name for requirement in expected} >= {
        "sacrebleu",
        "rouge-score",
        "textual-serve",
    }
    assert expected <= {Requirement(item) for item in extras["dev"]}


def test_what_is_skipped_is_reported() -> None:
    assert "-rs" in SETTINGS["tool"]["pytest"]["ini_options"]["addopts"]

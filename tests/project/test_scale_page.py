"""What docs/scale.md says of further runners works as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from evalstore.store.location import read_address
from tests.postgresql_server import PostgreSQLServer
from tests.runs.execution.loopback.team import SECONDS, Gate, Team, team_at, wait_until
from tests.zygote import shell_program

pytestmark = pytest.mark.extended

PAGE = (Path(__file__).parents[2] / "docs/scale.md").read_text(encoding="utf-8")
SHELL = dict(re.findall(r"<!-- sh: (\w+) -->\n```sh\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))
STARTED_LATER = """\
#!/bin/bash
# Starts what --wrap names once for each number of --array, in the background.
for number in $(seq "${1#--array=1-}"); do bash -c "$3" >>"$LOG" 2>&1 & done
"""
"""In the place of `sbatch`, which needs a cluster."""


@pytest.fixture
def team(tmp_path: Path, postgresql_server: PostgreSQLServer) -> Iterator[Team]:
    """A workspace with a store in PostgreSQL."""
    with team_at(tmp_path / "w", read_address(postgresql_server.url())) as made:
        made.write(200, below="~~~checks\n- json:\n~~~\n")
        yield made


def start(team: Team, script: str, folder: Path, **variables: str) -> subprocess.Popen[str]:
    """Start a script as a shell does, with evalstore and the programs of the folder in the path."""
    shell_program(team.root.parent / "evalstore/evalstore")
    programs = f"{folder}:{team.root.parent}/evalstore:{os.environ['PATH']}"
    process = subprocess.Popen(
        ["bash", "-c", script],
        cwd=team.root if variables.pop("has_workspace", "") else folder,
        env={**os.environ, "PATH": programs, "EVALSTORE_STORE": team.address, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        start_new_session=True,
    )
    team.started.append(process)
    return process


def require_one_complete_run(team: Team) -> None:
    (run,) = team.read("log")["runs"]
    assert (run["status"], run["asked"]) == ("complete", 200)
    assert (len(team.asked), set(team.asked.values())) == (200, {1})


def test_the_jobs_of_a_matrix_carry_out_one_run(team: Team, tmp_path: Path) -> None:
    gate = Gate(team.server)
    (tmp_path / "empty").mkdir()
    jobs = [start(team, SHELL["matrix"], tmp_path / "empty", JOB=str(job)) for job in (2, 3)]
    jobs.append(start(team, SHELL["matrix"], tmp_path / "empty", JOB="1", has_workspace="yes"))
    wait_until(lambda: len([1 for runner in team.runners() if runner.leases]) == 3)
    gate.open()
    printed = [job.communicate(timeout=SECONDS)[0] for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0, 0], printed
    assert all("this runner: " in text for text in printed[:2]), printed
    require_one_complete_run(team)


def test_the_tasks_of_an_array_carry_out_one_run(team: Team, tmp_path: Path) -> None:
    gate = Gate(team.server)
    program, log = tmp_path / "bin/sbatch", tmp_path / "log"
    program.parent.mkdir()
    program.write_text(STARTED_LATER)
    program.chmod(0o755)
    script = SHELL["slurm"].replace("1-8", "1-2")
    assert script != SHELL["slurm"]
    process = start(team, script, program.parent, LOG=str(log), has_workspace="yes")
    wait_until(lambda: len([1 for runner in team.runners() if runner.leases]) == 3)
    gate.open()
    printed, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, printed
    wait_until(lambda: log.read_text().count("this runner: ") == 2)
    require_one_complete_run(team)


def test_a_pod_of_the_kubernetes_job_that_begins_when_the_run_is_over_ends_well(
    team: Team, tmp_path: Path
) -> None:
    texts = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    (job,) = (value for value in map(yaml.safe_load, texts) if "kind" in value)
    pod = job["spec"]["template"]["spec"]
    assert (job["kind"], pod["restartPolicy"]) == ("Job", "OnFailure")
    assert job["spec"]["parallelism"] == job["spec"]["completions"]
    shell, option, script = pod["containers"][0]["command"]
    assert (shell, option) == ("sh", "-c")
    assert script in SHELL["slurm"]
    assert team.run()[0] == 0
    once = script.replace("seq 60", "seq 1").replace("sleep 2", "sleep 0")
    late = start(team, once, tmp_path)
    printed, _ = late.communicate(timeout=SECONDS)
    assert (late.returncode, "no run is in progress" in printed) == (0, True), printed
    require_one_complete_run(team)

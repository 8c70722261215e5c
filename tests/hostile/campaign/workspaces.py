"""The workspaces that are attacked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.builders import tree
from tests.hostile.campaign.processes import ROOT
from tests.hostile.campaign.trial import KEY_VARIABLE, Trial

QUICK: dict[str, Any] = {"retries": 0, "timeout": 5, "concurrency": 4}


def settings(**fields: Any) -> str:
    """`evalstore.yaml` with a candidate and a judge on the loopback server."""
    return json.dumps({"candidates": ["candidate"], "evaluators": ["judge"], **QUICK, **fields})


def loopback(trial: Trial, **fields: Any) -> dict[str, str]:
    """The files of a workspace whose models are on the trial's server."""
    provider = {
        "code": "loopback",
        "type": "openai-compatible",
        "baseURL": trial.server.url,
        "apiKeyEnvVar": KEY_VARIABLE,
    }
    return {
        "evalstore.yaml": settings(**fields),
        ".env": f"{KEY_VARIABLE}={trial.key}\n",
        "providers/loopback.yaml": json.dumps(provider),
        "models/candidate.yaml": "id: candidate\nprovider: loopback\n",
        "models/judge.yaml": "id: judge\nprovider: loopback\n",
    }


def numbered(count: int, instructions: str = "Expect number {{n}}.") -> dict[str, str]:
    """A test file with so many rows, each with its number."""
    numbers = "".join(f"  - {{n: {number}}}\n" for number in range(count))
    text = (
        f"---\nreplacements:\n{numbers}---\n# 👤\n\nQuestion {{{{n}}}}.\n\n---\n\n{instructions}\n"
    )
    return {"tests/numbers.md": text}


def example_files() -> dict[str, bytes]:
    """The example workspace."""
    folder = ROOT / "example"
    return {
        name: path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and not (name := path.relative_to(folder).as_posix()).startswith(".evalstore")
    }


def write_example(trial: Trial) -> Path:
    """The example workspace, with scripted models."""
    return tree(trial.workspace, example_files())

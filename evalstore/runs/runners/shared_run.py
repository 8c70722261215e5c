"""Describes a run in progress in the store, so that other programs can join it.

The description has the settings, models, prompts and applications as texts, and names the snapshot
of the cases, which is in the store already. So a runner that joins needs no workspace.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from evalstore import __version__
from evalstore.core.errors import EvalstoreError
from evalstore.core.runs import RunCommit
from evalstore.core.values import Json
from evalstore.files.access import LARGEST_TEXT
from evalstore.planning.options import RunOptions
from evalstore.planning.project import Project
from evalstore.runs.execution.sharing.shared_work import RunnerLauncher, SharedWork
from evalstore.runs.run_preview import PlanTotals, most_cost
from evalstore.store import Store
from evalstore.store.run_documents import FORMAT, LARGEST
from evalstore.workspace.folder import WorkspaceFolder

_FOLDERS = ("prompts", "models", "providers", "currencies")
"""The kinds of files that a runner needs."""
_OPTIONS = ("concurrency", "timeout", "retries", "judge_only", "max_time", "exit_first")
"""The options of a run that hold for all its runners."""


class RunOrigin(NamedTuple):
    """Where a run comes from: its cases, and who has begun it."""

    snapshot: str
    started: int
    selection: dict[str, Json]
    message: str | None
    git: RunCommit | None
    author: str | None
    sources: str | None = None


def share_run(
    project: Project,
    origin: RunOrigin,
    options: RunOptions,
    survey: PlanTotals,
    launcher: RunnerLauncher | None = None,
) -> SharedWork:
    """Describe a run in the store, so that other programs can join it.

    If that is not possible, the run has no description, and others cannot join it; its limit of
    cost holds all the same. With a launcher of runners `EvalstoreError` is raised.
    """
    limit = most_cost(project, options)
    shared = SharedWork(secrets.token_hex(16), True, limit, launcher=launcher)
    description: Json = {
        "format": FORMAT,
        "version": __version__,
        "author": origin.author,
        "planned": {"ask": survey.asks, "judge": survey.judgements},
    }
    try:
        description |= _describe(project, origin, options)
        _require_shareable(description, shared.id, project.workspace.root)
    except EvalstoreError as error:
        if launcher:
            raise EvalstoreError(
                f"no other runner can take part in this run: {error}",
                hint="leave out '--executor', or change the file",
            ) from error
        description["problem"] = str(error)
    project.store.add_shared_run(shared.id, description, limit)
    return shared


@contextmanager
def removed_if_unbegun(store: Store, shared: SharedWork | None) -> Iterator[None]:
    """Remove the description of a run that fails in the block before any runner has begun."""
    try:
        yield
    except EvalstoreError:
        if shared and not store.find_shares(shared.id):
            store.remove_shared_runs([shared.id])
        raise


def _describe(project: Project, origin: RunOrigin, options: RunOptions) -> dict[str, Json]:
    workspace = project.workspace
    return {
        "files": {**_read_applications(project), **_read_files(workspace)},
        "config": workspace.config.name,
        "overrides": list(project.location.overrides),
        "cases": origin.snapshot,
        "started": origin.started,
        "selection": origin.selection,
        "message": origin.message,
        "git": list(origin.git) if origin.git else None,
        "sources": origin.sources,
        "options": {name: getattr(options, name) for name in _OPTIONS},
    }


def _read_files(workspace: WorkspaceFolder) -> dict[str, str]:
    """Return the texts of the settings, and of the models and prompts, by path."""
    names = [name for kind in _FOLDERS for name in workspace.find_files(kind)]
    texts = {workspace.config.name: workspace.config.read_text(encoding="utf-8")}
    for name in names:
        texts[name] = workspace.read_bytes(name, LARGEST_TEXT).decode("utf-8", "strict")
    return texts


def _read_applications(project: Project) -> dict[str, str]:
    """Return the texts of the files of applications, by path; other machines must trust them."""
    texts = {}
    for model in project.reading.models.values():
        for path, data in model.application.files.items() if model.application else ():
            try:
                texts[path] = data.decode("utf-8")
            except UnicodeDecodeError as error:
                raise EvalstoreError(f"{path} of an application is not text") from error
    return texts


def _require_shareable(description: Json, id: str, root: Path) -> None:
    """Raise `EvalstoreError` for a description with a key in it, or one that is too large."""
    from evalstore.remotes.secret_scan import SecretScan
    from evalstore.store.records import StoredRecord
    from evalstore.workspace.settings.env_files import variables_of

    text = json.dumps(description, ensure_ascii=False)
    if len(text) > LARGEST:
        raise EvalstoreError(f"its settings, models and prompts have {len(text):,} characters")
    if found := SecretScan(os.environ, variables_of(root)).find(
        StoredRecord("shared_runs", id, text)
    ):
        raise EvalstoreError(f"its settings, models or prompts contain {found.name}")

"""Writes results as logs of Inspect (inspect_ai): one `.eval` archive for each candidate.

The archive has the members of version 2: `_journal/start.json`, a file for each sample,
`summaries.json` and `header.json`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from typing import IO, TYPE_CHECKING, Any

from evalstore.core.clock import iso
from evalstore.core.display import safe
from evalstore.exchange.exports.answers import read_answers
from evalstore.exchange.exports.folder_names import FileNames
from evalstore.exchange.exports.inspect_samples import (
    SCORER,
    UsageTotal,
    describe_sample,
    summarize_sample,
)
from evalstore.exchange.exports.writers import make_encoder
from evalstore.files.atomic_write import temporary_file

if TYPE_CHECKING:
    from pathlib import Path
    from zipfile import ZipFile

    from evalstore.core.runs import Run
    from evalstore.core.values import Json
    from evalstore.exchange.exports.answers import AnsweredAttempt, AnsweredResult
    from evalstore.exchange.exports.rows import Export

_VERSION = 2
"""The version of Inspect's logs."""
_LONGEST = 200
"""Characters of the id of a sample, which is a name in the archive."""
_IN_MEMORY = 1_000_000
"""Bytes of summaries that are kept in memory."""


def write_inspect_logs(export: Export, folder: Path) -> None:
    """Write an archive for each candidate; the answers of one batch are in memory together."""
    names = FileNames()
    logs: dict[str, _Log] = {}
    with ExitStack() as stack:
        for answered in read_answers(export, turns=True):
            model = answered.result.model
            if model not in logs:
                path = folder / names.make(model, ".eval")
                logs[model] = stack.enter_context(_open_log(export, model, path))
            for answer in answered.answers:
                logs[model].add(answered, answer)
        for log in logs.values():
            log.finish()


@contextmanager
def _open_log(export: Export, model: str, path: Path) -> Iterator[_Log]:
    from tempfile import SpooledTemporaryFile
    from zipfile import ZIP_DEFLATED, ZipFile

    with (
        temporary_file(path, durable=False) as file,
        ZipFile(file, "w", ZIP_DEFLATED) as archive,
        SpooledTemporaryFile(_IN_MEMORY) as summaries,
    ):
        yield _Log(export, model, archive, summaries)


class _Log:
    """The log of a candidate while it is written."""

    def __init__(self, export: Export, model: str, archive: ZipFile, summaries: IO[bytes]) -> None:
        self._run, self._archive, self._summaries = export.run, archive, summaries
        self._encode = make_encoder()
        self._usage = UsageTotal(model)
        self._ids: set[tuple[str, int]] = set()
        self._correct = self._scored = self._epochs = 0
        self._start: dict[str, Json] = {
            "version": _VERSION,
            "eval": _describe_task(export, model),
            "plan": {"name": "plan", "steps": [], "config": {}},
        }
        self._write("_journal/start.json", self._start)

    def add(self, answered: AnsweredResult, answer: AnsweredAttempt) -> None:
        """Add an answer as a sample."""
        id, epoch = _sample_id(answered, answer), answer.attempt
        if (id, epoch) in self._ids:
            id = f"{id} {answer.id}"
        self._ids.add((id, epoch))
        sample = describe_sample(answered, answer, id)
        self._write(f"samples/{id}_epoch_{epoch}.json", sample)
        self._summaries.write(b",\n" if self._summaries.tell() else b"[\n")
        self._summaries.write(self._encode(summarize_sample(sample)))
        self._usage.add(answer.session)
        self._epochs = max(self._epochs, epoch)
        if SCORER in sample["scores"]:
            self._scored += 1
            self._correct += sample["scores"][SCORER]["value"] == "C"

    def finish(self) -> None:
        """Write the summaries and the header, with the results of all samples."""
        from shutil import copyfileobj

        self._summaries.write(b"\n]")
        self._summaries.seek(0)
        with self._archive.open("summaries.json", "w", force_zip64=True) as member:
            copyfileobj(self._summaries, member)
        self._start["eval"]["config"]["epochs"] = max(self._epochs, 1)
        self._start["eval"]["dataset"]["samples"] = len({id for id, _ in self._ids})
        is_complete = self._run.status == "complete" or not self._run.status
        header = {
            **self._start,
            "status": "success" if is_complete else "cancelled",
            "results": self._results(),
            "stats": {
                "started_at": _time(self._run.started),
                "completed_at": _time(self._run.ended),
                "model_usage": self._usage.describe(),
            },
        }
        self._write("header.json", header)

    def _results(self) -> dict[str, Json]:
        metrics = {}
        if self._scored:
            accuracy = self._correct / self._scored
            metrics["accuracy"] = {"name": "accuracy", "value": accuracy, "params": {}}
        return {
            "total_samples": len(self._ids),
            "completed_samples": len(self._ids),
            "scores": [
                {
                    "name": SCORER,
                    "scorer": SCORER,
                    "scored_samples": self._scored,
                    "unscored_samples": len(self._ids) - self._scored,
                    "params": {},
                    "metrics": metrics,
                }
            ],
        }

    def _write(self, name: str, content: Json) -> None:
        self._archive.writestr(name, self._encode(content))


def _describe_task(export: Export, model: str) -> dict[str, Any]:
    from evalstore import __version__

    run = export.run
    task = export.project.workspace.root.resolve().name
    return {
        "eval_id": sha256(f"{run.id} {model}".encode()).hexdigest()[:22],
        "run_id": run.id,
        "created": _time(run.started),
        "task": task,
        "task_id": task,
        "task_version": 0,
        "task_attribs": {},
        "task_args": {},
        "dataset": {"name": task},
        "model": model,
        "model_args": {},
        "model_generate_config": _describe_options(run, model),
        "config": {},
        "packages": {"evalstore": __version__},
        "metadata": {"run": run.id, "status": run.status, "message": run.message},
    }


def _describe_options(run: Run, model: str) -> dict[str, Json]:
    candidate = run.find_candidate(model)
    if candidate is None or candidate.temperature is None:
        return {}
    return {"temperature": candidate.temperature}


def _sample_id(answered: AnsweredResult, answer: AnsweredAttempt) -> str:
    """Return the id of a sample, which is safe as the name of a file in the archive.

    It is the name of the case, unless that is long or has unusual characters: then it is cut and
    has a digest of the name.
    """
    name = answered.name
    if answer.conversation:
        name += f" conversation {answer.conversation}"
    plain = safe(name, lines=True).replace("\\", "/").replace("..", "__")
    if plain == name and len(name) <= _LONGEST:
        return name
    return f"{plain[:_LONGEST]} {sha256(name.encode()).hexdigest()[:16]}"


def _time(microseconds: int) -> str:
    return iso(microseconds).removesuffix("Z") + "+00:00"

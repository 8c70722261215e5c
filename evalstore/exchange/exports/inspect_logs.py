"""Writes results as logs of Inspect (inspect_ai): one `.eval` archive for each candidate.

The archive has the members of version 2: `_journal/start.json`, a file for each sample,
`summaries.json` and `header.json`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import IO, Any
from zipfile import ZipFile

from evalstore.core.clock import iso
from evalstore.core.display import safe
from evalstore.core.values import Json, Reply, Session, ToolCall
from evalstore.exchange.exports.answers import AnsweredAttempt, AnsweredResult, read_answers
from evalstore.exchange.exports.formats import Export, FileNames, make_encoder
from evalstore.files.atomic_write import temporary_file
from evalstore.planning.participants import sum_usage

_VERSION = 2
"""The version of Inspect's logs."""
_LONGEST = 200
"""Characters of the id of a sample, which is a name in the archive."""


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
    from tempfile import TemporaryFile
    from zipfile import ZIP_DEFLATED, ZipFile

    with (
        temporary_file(path, durable=False) as file,
        ZipFile(file, "w", ZIP_DEFLATED) as archive,
        TemporaryFile() as summaries,
    ):
        yield _Log(export, model, archive, summaries)


class _Log:
    """The log of a candidate while it is written."""

    def __init__(self, export: Export, model: str, archive: ZipFile, summaries: IO[bytes]) -> None:
        self._run, self._archive, self._summaries = export.run, archive, summaries
        self._encode = make_encoder()
        self._model = model
        self._usage: Counter[str] = Counter()
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
        usage = _usage(answer.session.turns, answer.session)  # what is not known counts as nothing
        self._usage.update({name: amount for name, amount in usage.items() if amount is not None})
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
                "model_usage": {self._model: dict(self._usage)} if self._usage else {},
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

    run, options = export.run, {}
    candidate = run.find_candidate(model)
    if candidate and candidate.temperature is not None:
        options["temperature"] = candidate.temperature
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
        "model_generate_config": options,
        "config": {},
        "packages": {"evalstore": __version__},
        "metadata": {"run": run.id, "status": run.status, "message": run.message},
    }


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


# --- answers as samples


SCORER = "verdict"
"""The name of the score that has the verdict on an attempt."""
_VALUES = {"pass": "C", "fail": "I"}
"""Values of Inspect by verdict; any other verdict is `N`, no answer."""
_STOP_REASONS = {
    "stop": "stop",
    "end_turn": "stop",
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "tool_calls": "tool_calls",
    "tool_use": "tool_calls",
    "content_filter": "content_filter",
}
_LONGEST_SUMMARY = 300
"""Characters of a text in a summary."""
_IN_SUMMARY = ("id", "epoch", "target", "metadata", "model_usage", "started_at", "uuid")


def describe_sample(answered: AnsweredResult, answer: AnsweredAttempt, id: str) -> dict[str, Json]:
    """Return an answer as a sample: input, output, scores, tokens and cost."""
    session, result = answer.session, answered.result
    messages = [
        _describe_reply(session.turns[turn.answer - 1])
        if turn.answer
        else {"role": turn.role, "content": turn.text, "source": "input"}
        for turn in answer.turns
    ]
    message = _describe_reply(session.answer)
    reason = _STOP_REASONS.get(session.answer.finish_reason or "", "unknown")
    latency = sum(reply.latency for reply in session.turns)
    return {
        "id": id,
        "epoch": answer.attempt,
        "input": messages,
        "target": "",
        "messages": [*messages, message],
        "output": {
            "model": session.answer.resolved_model or result.model,
            "choices": [{"message": message, "stop_reason": reason}],
            "completion": session.answer.text or "",
            "usage": _usage([session.answer]),
            "time": session.answer.latency,
            "response_id": session.answer.request_id,
        },
        "scores": _describe_scores(answer),
        "metadata": {
            "file": result.file,
            "row": result.row,
            "prompt": answered.prompt,
            "tags": list(answered.case.tags),
            "session": answer.id,
            "evaluation": result.evaluation,
        },
        "model_usage": {result.model: _usage(session.turns, session)},
        "started_at": iso(session.started).removesuffix("Z") + "+00:00",
        "total_time": latency,
        "working_time": latency,
        "uuid": answer.id,
    }


def summarize_sample(sample: dict[str, Json]) -> dict[str, Json]:
    """Return the summary of a sample, with short texts."""
    return {
        **{name: sample[name] for name in _IN_SUMMARY},
        "input": [
            {"role": message["role"], "content": message["content"][:_LONGEST_SUMMARY]}
            for message in sample["input"][-1:]
        ],
        "scores": {
            name: {"value": score["value"], "explanation": score["explanation"][:_LONGEST_SUMMARY]}
            for name, score in sample["scores"].items()
        },
        "total_time": sample["total_time"],
        "completed": True,
        "message_count": len(sample["messages"]),
    }


def _describe_reply(reply: Reply) -> dict[str, Json]:
    message: dict[str, Json] = {
        "role": "assistant",
        "content": reply.text or reply.refusal or "",
        "source": "generate",
        "model": reply.resolved_model,
    }
    if reply.tool_calls:
        message["tool_calls"] = [
            _describe_call(call, number) for number, call in enumerate(reply.tool_calls, 1)
        ]
    return message


def _describe_call(call: ToolCall, number: int) -> dict[str, Json]:
    is_object = isinstance(call.arguments, dict)
    described = {"id": f"call_{number}", "function": call.name, "type": "function"}
    if is_object:
        return {**described, "arguments": call.arguments}
    return {**described, "arguments": {}, "parse_error": f"not an object: {call.arguments}"}


def _describe_scores(answer: AnsweredAttempt) -> dict[str, Json]:
    """Return the verdict, and what each evaluator says; of the same evaluator, the last."""
    if answer.verdict is None:
        return {}
    several = len({each.by for each in answer.judgements}) > 1
    texts = dict.fromkeys(
        f"{f'{each.by}: ' * several}{each.content.feedback}"
        for each in answer.judgements
        if each.content.feedback
    )
    scores: dict[str, Json] = {
        SCORER: {
            "value": _VALUES.get(answer.verdict, "N"),
            "explanation": "\n".join(texts),
            "metadata": {"verdict": answer.verdict, "score": answer.score},
        }
    }
    for judgement in answer.judgements:
        made = judgement.content
        name = f"{judgement.by} (judge)" if judgement.by == SCORER else judgement.by or "unknown"
        scores[name] = {
            "value": _VALUES.get(made.verdict, "N"),
            "explanation": made.feedback,
            "metadata": {"verdict": made.verdict, "score": made.score, "judgement": judgement.id},
        }
    return scores


def _usage(replies: tuple[Reply, ...] | list[Reply], session: Session | None = None) -> Json:
    """Return the tokens of calls, with the cost of their session if it is known."""
    usage = sum_usage(replies)
    sent, answered = usage.input_tokens or 0, usage.output_tokens or 0
    described: dict[str, Json] = {
        "input_tokens": sent,
        "output_tokens": answered,
        "total_tokens": sent + answered,
        "input_tokens_cache_read": usage.cached_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
    }
    if session is not None:
        described["total_cost"] = session.cost.usd if session.cost else None
    return described

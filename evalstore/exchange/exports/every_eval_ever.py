"""Writes results in the format of Every Eval Ever (version 0.3.0 of its schemas).

Each candidate has a JSON document with the pass rates of the test files, and a JSON Lines file
with a line for each judged answer. Their paths are those of its collection:
`data/COLLECTION/DEVELOPER/MODEL/UUID.json` and `UUID_samples.jsonl`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO
from uuid import UUID

from evalstore.comparison.statistics import wilson
from evalstore.core.clock import now
from evalstore.core.values import Json, Reply, Session
from evalstore.exchange.exports.answers import AnsweredAttempt, AnsweredResult, read_answers
from evalstore.exchange.exports.formats import Export, FileNames, cell_text, make_encoder
from evalstore.files.atomic_write import temporary_file, write_whole
from evalstore.planning.options import is_chosen_by_verdict
from evalstore.planning.participants import sum_usage

_MICROSECONDS = 1_000_000


def write_every_eval_ever(export: Export, folder: Path) -> None:
    """Write the documents of each candidate; the counts of all test files are in memory."""
    collection = FileNames().make(export.project.workspace.root.resolve().name)
    names: dict[str, FileNames] = {}
    models: dict[str, _ModelFiles] = {}
    with ExitStack() as stack:
        for answered in read_answers(export, turns=True):
            model = answered.result.model
            if model not in models:
                developer, _, code = model.rpartition("/")
                parent = FileNames().make(developer or UNKNOWN)
                name = names.setdefault(parent.casefold(), FileNames()).make(code)
                path = folder / "data" / collection / parent / name
                path.mkdir(parents=True)
                models[model] = stack.enter_context(_open_model(export, model, folder, path))
            for answer in answered.answers:
                models[model].add(answered, answer)
        for written in models.values():
            written.finish()


@contextmanager
def _open_model(export: Export, model: str, folder: Path, path: Path) -> Iterator[_ModelFiles]:
    digest = sha256(f"{export.run.id} {model}".encode()).digest()[:16]
    document = path / f"{UUID(bytes=digest, version=4)}.json"
    samples = document.with_name(f"{document.stem}_samples.jsonl")
    with temporary_file(samples, durable=False) as file:
        yield _ModelFiles(export, model, file, document, samples.relative_to(folder).as_posix())


class _ModelFiles:
    """The two files of a candidate while they are written."""

    def __init__(
        self, export: Export, model: str, file: BinaryIO, document: Path, samples: str
    ) -> None:
        self._run, self._model = export.run, model
        self._collection = export.project.workspace.root.resolve().name
        self._retrieved = str(now() // _MICROSECONDS)
        self._id = f"{self._collection}/{model}/{self._retrieved}"
        self._file, self._document, self._samples = file, document, samples
        self._encode, self._hash = make_encoder(), sha256()
        self._counts: dict[str, list[int]] = {}
        """Passed and judged answers by test file."""
        self._temperatures: dict[str, set[float | None]] = {}
        """By test file."""

    def add(self, answered: AnsweredResult, answer: AnsweredAttempt) -> None:
        """Add an answer; nothing is written for one that is not judged."""
        if answer.verdict is None:
            return
        name = answered.result.file
        counts = self._counts.setdefault(name, [0, 0])
        counts[0] += answer.verdict == "pass"
        counts[1] += 1
        self._temperatures.setdefault(name, set()).add(answer.session.question.temperature)
        line = self._encode(describe_sample(answered, answer, self._id)) + b"\n"
        self._hash.update(line)
        self._file.write(line)

    def finish(self) -> None:
        """Write the document with the pass rates."""
        write_whole(self._document, self._encode(self._describe()) + b"\n", durable=False)

    def _describe(self) -> dict[str, Json]:
        from evalstore import __version__

        return {
            "schema_version": SCHEMA_VERSION,
            "evaluation_id": self._id,
            "evaluation_timestamp": str(self._run.started // _MICROSECONDS),
            "retrieved_timestamp": self._retrieved,
            "source_metadata": {
                "source_name": "evalstore",
                "source_type": "evaluation_run",
                "source_organization_name": UNKNOWN,
                "evaluator_relationship": "other",
                "additional_details": {"run": self._run.id, "status": self._run.status},
            },
            "eval_library": {"name": "evalstore", "version": self._run.version or __version__},
            "model_info": {
                "name": self._model,
                "id": self._model,
                "additional_details": {"deployment_type": UNKNOWN, "model_availability": UNKNOWN},
            },
            "evaluation_results": [
                self._describe_file(name, *counts) for name, counts in self._counts.items()
            ],
            "detailed_evaluation_results": {
                "format": "jsonl",
                "file_path": self._samples,
                "hash_algorithm": "sha256",
                "checksum": self._hash.hexdigest(),
                "total_rows": sum(judged for _, judged in self._counts.values()),
            },
        }

    def _describe_file(self, name: str, passed: int, judged: int) -> dict[str, Json]:
        """Return the pass rate of a test file, with its 95 % Wilson score interval."""
        rate = wilson(passed, judged)
        interval: Json = {
            "lower": rate.low,
            "upper": rate.high,
            "confidence_level": 0.95,
            "method": "wilson",
        }
        is_chosen = is_chosen_by_verdict(self._run.selection)
        temperatures = self._temperatures[name]
        same = next(iter(temperatures)) if len(temperatures) == 1 else None
        options: dict[str, Json] = {} if same is None else {"temperature": same}
        return {
            "evaluation_result_id": f"{self._id}/{name}",
            "evaluation_name": name,
            "source_data": {"dataset_name": self._collection, "source_type": "other"},
            "metric_config": {
                "metric_id": "pass_rate",
                "metric_name": "Pass rate",
                "metric_kind": "pass_rate",
                "metric_unit": "proportion",
                "lower_is_better": False,
                "score_type": "continuous",
                "min_score": 0,
                "max_score": 1,
            },
            "score_details": {
                "score": rate.rate,
                "details": {"passed": str(passed), "judged": str(judged)},
                "uncertainty": {
                    **({} if is_chosen else {"confidence_interval": interval}),
                    "num_samples": judged,
                },
            },
            **({"generation_config": {"generation_args": options}} if options else {}),
        }


# --- describes judged answers as instances of Every Eval Ever


SCHEMA_VERSION = "0.3.0"
UNKNOWN = "unknown"


def describe_sample(
    answered: AnsweredResult, answer: AnsweredAttempt, evaluation: str
) -> dict[str, Json]:
    """Return a judged answer as an instance; `evaluation` is the id of the document with the rates.

    Without a score, a pass is 1 and everything else 0.
    """
    session, result = answer.session, answered.result
    is_correct = answer.verdict == "pass"
    question = next((turn.text for turn in answer.turns if turn.role == "user"), "")
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": evaluation,
        "model_id": result.model,
        "evaluation_name": result.file,
        "evaluation_result_id": f"{evaluation}/{result.file}",
        "sample_id": _sample_id(answered, answer),
        "sample_hash": sha256(question.encode()).hexdigest(),
        "input": {"raw": question, "reference": []},
        **_describe_answer(answer),
        "answer_attribution": [],
        "evaluation": {
            "score": float(is_correct) if answer.score is None else answer.score,
            "is_correct": is_correct,
            "num_turns": len(session.turns),
            "tool_calls_count": sum(len(reply.tool_calls) for reply in session.turns),
        },
        "token_usage": _describe_usage(session),
        "performance": {
            "latency_ms": round(sum(reply.latency for reply in session.turns) * 1000, 3)
        },
        "metadata": {
            "verdict": answer.verdict,
            "attempt": str(answer.attempt),
            "session": answer.id,
            "tags": ", ".join(answered.case.tags),
            "feedback": "\n".join(
                dict.fromkeys(
                    each.content.feedback for each in answer.judgements if each.content.feedback
                )
            ),
        },
    }


def _sample_id(answered: AnsweredResult, answer: AnsweredAttempt) -> str:
    """Return the name of the case and its conversation, the same for each candidate."""
    conversation = f" conversation {answer.conversation}" if answer.conversation else ""
    attempt = f" attempt {answer.attempt}" if answer.attempt > 1 else ""
    return answered.name + conversation + attempt


def _describe_answer(answer: AnsweredAttempt) -> dict[str, Json]:
    """Return the answer, or the whole conversation when the candidate answered more than once."""
    session = answer.session
    if len(session.turns) == 1 and not session.answer.tool_calls:
        return {
            "interaction_type": "single_turn",
            "output": {"raw": [session.answer.text or ""]},
            "messages": None,
        }
    replies = [session.turns[it.answer - 1] if it.answer else None for it in answer.turns]
    shown = [*zip(answer.turns, replies, strict=True)]
    turns = [(turn.role, (it.text or "") if it else turn.text, it) for turn, it in shown]
    turns.append(("assistant", session.answer.text or "", session.answer))
    return {
        "interaction_type": "multi_turn" if len(session.turns) > 1 else "agentic",
        "output": None,
        "messages": [
            {
                "turn_idx": number,
                "role": role,
                "content": text,
                "tool_calls": _describe_calls(reply, number),
            }
            for number, (role, text, reply) in enumerate(turns)
        ],
    }


def _describe_calls(reply: Reply | None, turn: int) -> list[Json] | None:
    """Return the tool calls of an answer; the values of arguments are texts, as required."""
    if reply is None or not reply.tool_calls:
        return None
    return [
        {
            "id": f"call_{turn}_{number}",
            "name": call.name,
            "arguments": {name: cell_text(value) for name, value in arguments.items()},
        }
        for number, call in enumerate(reply.tool_calls, 1)
        for arguments in [
            call.arguments if isinstance(call.arguments, dict) else {"arguments": call.arguments}
        ]
    ]


def _describe_usage(session: Session) -> dict[str, Json] | None:
    """Return the tokens of all turns; None if a provider did not count them."""
    usages = [reply.usage for reply in session.turns]
    if any(None in (usage.input_tokens, usage.output_tokens) for usage in usages):
        return None
    usage = sum_usage(session.turns)
    read, written = usage.input_tokens or 0, usage.output_tokens or 0
    return {
        "input_tokens": read,
        "output_tokens": written,
        "total_tokens": read + written,
        "input_tokens_cache_read": usage.cached_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
    }

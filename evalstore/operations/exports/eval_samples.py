"""Describes judged answers as instances of Every Eval Ever."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from evalstore.operations.exports.cells import cell_text

if TYPE_CHECKING:
    from evalstore.operations.exports.answers import AnsweredAttempt, AnsweredResult
    from evalstore.results import Session
    from evalstore.values import Json, Reply

SCHEMA_VERSION = "0.3.0"


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
    turns = [(turn.role, turn.text, turn.reply) for turn in answer.turns]
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
            "arguments": _as_texts(call.arguments),
        }
        for number, call in enumerate(reply.tool_calls, 1)
    ]


def _as_texts(arguments: Json) -> dict[str, str]:
    named = arguments if isinstance(arguments, dict) else {"arguments": arguments}
    return {name: cell_text(value) for name, value in named.items()}


def _describe_usage(session: Session) -> dict[str, Json] | None:
    """Return the tokens of all turns; None if a provider did not count them."""
    usages = [reply.usage for reply in session.turns]
    read = [usage.input_tokens for usage in usages if usage.input_tokens is not None]
    written = [usage.output_tokens for usage in usages if usage.output_tokens is not None]
    if len(read) < len(usages) or len(written) < len(usages):
        return None
    cached = [usage.cached_tokens for usage in usages if usage.cached_tokens is not None]
    reasoned = [usage.reasoning_tokens for usage in usages if usage.reasoning_tokens is not None]
    return {
        "input_tokens": sum(read),
        "output_tokens": sum(written),
        "total_tokens": sum(read) + sum(written),
        "input_tokens_cache_read": sum(cached) if cached else None,
        "reasoning_tokens": sum(reasoned) if reasoned else None,
    }

"""Describes answers as samples of a log of Inspect (inspect_ai)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.core.clock import iso
from evalstore.planning.pricing import sum_usage

if TYPE_CHECKING:
    from evalstore.core.results import Session
    from evalstore.core.values import Json, Reply, ToolCall
    from evalstore.exchange.exports.answers import AnsweredAttempt, AnsweredResult
    from evalstore.exchange.exports.conversations import ExportedTurn

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
_LONGEST = 300
"""Characters of a text in a summary."""
_IN_SUMMARY = ("id", "epoch", "target", "metadata", "model_usage", "started_at", "uuid")


def describe_sample(answered: AnsweredResult, answer: AnsweredAttempt, id: str) -> dict[str, Json]:
    """Return an answer as a sample: input, output, scores, tokens and cost."""
    session, result = answer.session, answered.result
    messages = [_describe_turn(turn) for turn in answer.turns]
    message = _describe_reply(session.answer)
    latency = sum(reply.latency for reply in session.turns)
    return {
        "id": id,
        "epoch": answer.attempt,
        "input": messages,
        "target": "",
        "messages": [*messages, message],
        "output": {
            "model": session.answer.resolved_model or result.model,
            "choices": [{"message": message, "stop_reason": _stop_reason(session.answer)}],
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
            {"role": message["role"], "content": message["content"][:_LONGEST]}
            for message in sample["input"][-1:]
        ],
        "scores": {
            name: {"value": score["value"], "explanation": score["explanation"][:_LONGEST]}
            for name, score in sample["scores"].items()
        },
        "total_time": sample["total_time"],
        "completed": True,
        "message_count": len(sample["messages"]),
    }


class UsageTotal:
    """The tokens and the cost of all answers of a candidate."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._total: dict[str, int | float] = {}

    def add(self, session: Session) -> None:
        """Add a session; what is not known counts as nothing."""
        for name, amount in _usage(session.turns, session).items():
            if amount is not None:
                self._total[name] = self._total.get(name, 0) + amount

    def describe(self) -> dict[str, Json]:
        """Return the usage by model; empty without an answer."""
        return {self._model: dict(self._total)} if self._total else {}


def _describe_turn(turn: ExportedTurn) -> dict[str, Json]:
    if turn.reply is not None:
        return _describe_reply(turn.reply)
    return {"role": turn.role, "content": turn.text, "source": "input"}


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


def _stop_reason(reply: Reply) -> str:
    return _STOP_REASONS.get(reply.finish_reason or "", "unknown")


def _describe_scores(answer: AnsweredAttempt) -> dict[str, Json]:
    """Return the verdict, and what each evaluator says; of the same evaluator, the last."""
    if answer.verdict is None:
        return {}
    texts = dict.fromkeys(each.content.feedback for each in answer.judgements)
    scores: dict[str, Json] = {
        SCORER: {
            "value": _VALUES.get(answer.verdict, "N"),
            "explanation": "\n".join(text for text in texts if text),
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

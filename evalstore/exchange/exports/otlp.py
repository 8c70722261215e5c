"""Writes judgements as OpenTelemetry logs in the JSON form of OTLP.

Each judgement is an event `gen_ai.evaluation.result` of the semantic conventions for generative AI.
The document is an `ExportLogsServiceRequest`, which an OTLP/HTTP receiver accepts at `/v1/logs`.
"""

from __future__ import annotations

from collections.abc import Mapping

from evalstore.core.values import Json
from evalstore.exchange.exports.answers import AnsweredResult, ExportedJudgement, read_answers
from evalstore.exchange.exports.formats import (
    ByteWriter,
    Export,
    make_encoder,
    write_items,
)

_EVENT = "gen_ai.evaluation.result"
_INFO = 9
"""The severity number of OpenTelemetry for `INFO`."""
_SPAN_DIGITS = 16


def write_otlp(export: Export, file: ByteWriter) -> None:
    """Write one request with a log record for each judgement, one on a line."""
    from evalstore import __version__

    encode = make_encoder()
    resource = {
        "service.name": "evalstore",
        "service.version": __version__,
        "evalstore.run.id": export.run.id,
    }
    scope = {"name": "evalstore", "version": __version__}
    file.write(
        b'{"resourceLogs":[{"resource":{"attributes":'
        + encode(_attributes(resource))
        + b'},"scopeLogs":[{"scope":'
        + encode(scope)
        + b',"logRecords":['
    )
    write_items(
        file,
        (
            _record(answered, judgement)
            for answered in read_answers(export)
            for judgement in answered.judgements
        ),
    )
    file.write(b"\n]}]}]}\n")


def _record(answered: AnsweredResult, judgement: ExportedJudgement) -> dict[str, Json]:
    """Return a log record; its trace is the answer that was judged, the first of several."""
    made = judgement.content
    session = made.sessions[0]
    nanoseconds = str(made.started * 1000)
    return {
        "timeUnixNano": nanoseconds,
        "observedTimeUnixNano": nanoseconds,
        "severityNumber": _INFO,
        "severityText": "INFO",
        "eventName": _EVENT,
        "attributes": _attributes(_describe(answered, judgement)),
        "traceId": session,
        "spanId": session[:_SPAN_DIGITS],
    }


def _describe(answered: AnsweredResult, judgement: ExportedJudgement) -> dict[str, Json]:
    made, result = judgement.content, answered.result
    first = next((answer for answer in answered.answers if answer.id == made.sessions[0]), None)
    reply = first.session.answer if first else None
    return {
        "gen_ai.evaluation.name": judgement.by,
        "gen_ai.evaluation.score.value": None if made.score is None else float(made.score),
        "gen_ai.evaluation.score.label": made.verdict,
        "gen_ai.evaluation.explanation": made.feedback or None,
        "error.type": "_OTHER" if made.verdict == "error" else None,
        "gen_ai.response.id": reply.request_id if reply else None,
        "gen_ai.response.model": reply.resolved_model if reply else None,
        "gen_ai.request.model": result.model,
        "evalstore.file": result.file,
        "evalstore.row": result.row or None,
        "evalstore.prompt": answered.prompt,
        "evalstore.tags": list(answered.case.tags) or None,
        "evalstore.judgement.id": judgement.id,
        "evalstore.session.ids": list(made.sessions),
    }


def _attributes(values: Mapping[str, Json]) -> list[Json]:
    """Return the attributes that have a value, as OTLP writes them."""
    return [
        {"key": key, "value": _value(value)} for key, value in values.items() if value is not None
    ]


def _value(value: Json) -> Json:
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": str(value)}

"""Spans as Phoenix returns them from its API, in the form of OTLP."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from evalstore.importers.coerce import as_list, as_mapping

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalstore.values import Json

_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


def find_phoenix_spans(document: Json) -> Iterator[dict[str, Any]]:
    """Yield the spans of a page, of a trace, of a list of either, or of a line."""
    fields = as_mapping(document)
    if "attributes" in fields and ("span_id" in fields or "span_id" in _context(fields)):
        yield _as_otlp(fields)
        return
    for inner in as_list(document) or as_list(fields.get("data")) or as_list(fields.get("spans")):
        if isinstance(inner, dict):
            yield from find_phoenix_spans(inner)


def _context(span: dict[str, Any]) -> dict[str, Any]:
    return as_mapping(span.get("context"))


def _as_otlp(span: dict[str, Any]) -> dict[str, Any]:
    ids = span | _context(span)
    return {
        "traceId": ids.get("trace_id"),
        "spanId": ids.get("span_id"),
        "startTimeUnixNano": span.get("start_time_unix_nano", _nanoseconds(span.get("start_time"))),
        "endTimeUnixNano": span.get("end_time_unix_nano", _nanoseconds(span.get("end_time"))),
        "attributes": span["attributes"],
        "events": span.get("events"),
    }


def _nanoseconds(time: Json) -> int | None:
    """Return a time of ISO 8601 in nanoseconds since 1970."""
    try:
        moment = datetime.fromisoformat(str(time))
    except ValueError:
        return None
    if moment.tzinfo is None:
        return None
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000

"""Spans as Phoenix returns them from its API, in the form of OTLP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evalstore.importers.coerce import as_list, as_mapping
from evalstore.importers.otel.times import to_nanoseconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalstore.values import Json


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
    start, end = to_nanoseconds(span.get("start_time")), to_nanoseconds(span.get("end_time"))
    return {
        "traceId": ids.get("trace_id"),
        "spanId": ids.get("span_id"),
        "startTimeUnixNano": span.get("start_time_unix_nano", start),
        "endTimeUnixNano": span.get("end_time_unix_nano", end),
        "attributes": span["attributes"],
        "events": span.get("events"),
    }

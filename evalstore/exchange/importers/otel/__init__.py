"""Importer of OpenTelemetry: spans of calls of models, as OTLP writes them in JSON."""

from evalstore.exchange.importers.otel.reader import read

__all__ = ["read"]

"""Importer of OpenTelemetry: spans of calls of models, as OTLP writes them in JSON."""

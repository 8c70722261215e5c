"""Importer of Inspect: logs of evaluations, as `.eval` archives or in JSON."""

from evalstore.exchange.importers.inspect_ai.reader import read

__all__ = ["read"]

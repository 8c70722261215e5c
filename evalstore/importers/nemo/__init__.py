"""NeMo Evaluator: the JSON of custom evaluation jobs and configurations.

The facts are those of its documentation and of the metrics of its SDK. What differs is
said in `docs/coming-from/nemo.md`.
"""

from evalstore.importers.nemo.reader import read

__all__ = ["read"]

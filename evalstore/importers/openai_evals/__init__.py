"""OpenAI Evals: samples, eval files, and registries with both.

The facts are those of the classes in `evals.elsuite`: an answer gets the verdict here that
it gets there. What differs is said in `docs/coming-from/openai-evals.md`.
"""

from evalstore.importers.openai_evals.reader import read

__all__ = ["read"]

"""OpenAI Evals: samples, eval files, and registries with both.

The facts are those of the classes in `evals.elsuite`: an answer gets the verdict here that
it gets there. What differs is said in `docs/coming-from/openai-evals.md`.
"""

from evalstore.formats.openai_evals.reading import read

__all__ = ["read"]

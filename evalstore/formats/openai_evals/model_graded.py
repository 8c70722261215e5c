"""The class `ModelBasedClassify`: a model chooses among answers to a question about the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.formats.openai_evals.specs import Eval, NotTakenError, Sources, Written

if TYPE_CHECKING:
    from evalstore.formats.base import Options


def write_graded(found: Eval, sources: Sources, options: Options) -> Written:
    """A test whose answers a model judges."""
    raise NotTakenError("evals that a model grades are not taken over yet")

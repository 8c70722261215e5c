"""The evaluator prompts that checks `judge` name: which versions they have, and what they show."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from evalstore.errors import FileProblem
from evalstore.fields import suggest
from evalstore.values import REQUIRED_NAMES

INSTRUCTIONS = REQUIRED_NAMES[0]
_SHOWN = "{{" + INSTRUCTIONS + "}}"


def shows_instructions(content: str) -> bool:
    """Whether a version of an evaluator prompt shows the judge the instructions of a test."""
    return _SHOWN in content


def prompt_finder(
    evaluator_prompts: Mapping[str, tuple[str, ...]],
    system_prompts: Collection[str],
    silent: Collection[str],
    dependencies: dict[str, Any],
    *,
    told: bool,
) -> Callable[[str, int], tuple[str, ...]]:
    """Finds the versions of an evaluator prompt by its id and the line that names it.

    `silent` are the versions that do not show instructions: those are an error for a test
    that has some (`told`). What is found is noted in `dependencies`.
    """

    def find(id: str, line: int) -> tuple[str, ...]:
        versions = evaluator_prompts.get(id, ())
        dependencies[f"evaluator:{id}"] = list(versions)
        if not versions:
            hint = suggest(id, evaluator_prompts, "evaluator prompts")
            if id in system_prompts:
                hint = "it is a system prompt; evaluator prompts have the tag '_evaluator'"
            raise FileProblem(f"there is no evaluator prompt '{id}'", line, hint=hint)
        if told and not set(versions).isdisjoint(silent):
            raise FileProblem(
                f"the evaluator prompt '{id}' never uses '{INSTRUCTIONS}', so the text below "
                "'---' would reach nobody",
                line,
                hint=f"write `{_SHOWN}` into the prompt, or remove the text",
            )
        return versions

    return find

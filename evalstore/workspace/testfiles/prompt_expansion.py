"""Expands system prompts and judge prompts to their versions."""

from __future__ import annotations

from evalstore.core import hashing
from evalstore.core.errors import FileProblem, LimitProblem
from evalstore.core.values import DEFAULT_PROMPT, REQUIRED_NAMES, PromptVersion
from evalstore.files.templates import Template
from evalstore.workspace.testfiles.context import Definitions, ExpandedFile, FillContext
from evalstore.workspace.testfiles.judge_prompt import INSTRUCTIONS
from evalstore.workspace.testfiles.messages import fill_turn
from evalstore.workspace.testfiles.parser import PromptFile
from evalstore.workspace.testfiles.rendering import RuntimeRow, TemplateSet
from evalstore.workspace.testfiles.replacements import expand_rows


def expand_prompt(prompt: PromptFile, library: Definitions) -> tuple[tuple[str, ...], ExpandedFile]:
    """Expand a prompt to its versions; returns their ids, and their contents or problems."""
    result = ExpandedFile()
    filler = TemplateSet(
        prompt.path, prompt.replacements, as_is=prompt.plain, runtime=prompt.is_evaluator
    )
    turns = [(turn, filler.compile(turn.section)) for turn in prompt.turns]
    filler.finish(prompt.line_of)
    result.problems += filler.problems
    if prompt.is_evaluator:
        _require_runtime_names(prompt, [template for _, template in turns], result)
    if any(problem.severity == "error" for problem in result.problems):
        return (), result
    special = tuple(tag for tag in prompt.tags if tag.startswith("_"))
    project = FillContext(prompt.path, library, result)
    ids: list[str] = []
    for values in expand_rows(prompt.replacements):
        row = RuntimeRow(values, filler.values)
        try:
            messages = tuple(fill_turn(turn, template, row, project) for turn, template in turns)
        except FileProblem as problem:
            result.problems.append(problem.at(prompt.path))
            if isinstance(problem, LimitProblem):
                break
            continue
        version = PromptVersion(messages, special)
        ids.append(result.keep("prompt", hashing.describe_prompt(version)))
    result.problems = list(dict.fromkeys(result.problems))
    if any(problem.severity == "error" for problem in result.problems):
        return (), result
    return tuple(dict.fromkeys(ids)), result


def _require_runtime_names(
    prompt: PromptFile, templates: list[Template], result: ExpandedFile
) -> None:
    used = {name for template in templates for name in template.names}
    for name in REQUIRED_NAMES:
        # Another evaluator prompt may be for tests without instructions.
        if name not in used and (name != INSTRUCTIONS or prompt.id == DEFAULT_PROMPT):
            result.report(
                prompt.path,
                f"the judge prompt never uses '{name}'",
                prompt.turns[0].section.first,
                hint=f"write `{{{{{name}}}}}` where it belongs",
            )

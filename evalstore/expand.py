"""Test files x rows -> cases, in file order.

Expanding a file is a pure function of its text and of the versions it refers to: it
yields the cases, the content of every version they name, and what they depend on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evalstore import hashing
from evalstore.bound_checks import CheckTemplates
from evalstore.checks import implied_checks
from evalstore.checks.judges import judge_of, without_judge
from evalstore.errors import FileProblem, Problem
from evalstore.fields import suggest
from evalstore.filling import Filler, Row, RuntimeRow
from evalstore.judge_prompts import INSTRUCTIONS, prompt_finder
from evalstore.markdown import SPACE
from evalstore.rows import expand_rows, labels
from evalstore.settings import DEFAULT_PROMPT
from evalstore.values import (
    REQUIRED_NAMES,
    Case,
    CaseFile,
    EvaluationVersion,
    FileRef,
    FileVersion,
    Message,
    Part,
    PromptVersion,
    TestVersion,
    Text,
)

if TYPE_CHECKING:
    from evalstore.parse import PromptFile, TestFile, Turn
    from evalstore.template import Mention, Template


@dataclass(frozen=True, slots=True)
class Library:
    """What test files refer to by id, with the ids of the current versions."""

    prompts: Mapping[str, tuple[str, ...]]
    evaluator_prompts: Mapping[str, tuple[str, ...]]
    tools: Mapping[str, str]
    schemas: Mapping[str, str]
    read_file: Callable[[str, str], tuple[FileVersion, str]]
    """From a mentioned path and the test file's path to the file and its id."""
    silent: frozenset[str] = frozenset()
    """Ids of evaluator prompt versions that do not show the instructions."""


@dataclass
class Expansion:
    """What one file comes to."""

    file: CaseFile | None = None
    contents: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Id -> kind and canonical content of every version that the cases name."""
    files: dict[str, FileVersion] = field(default_factory=dict)
    dependencies: dict[str, Any] = field(default_factory=dict)
    """`prompt:id`, `tool:id`, `schema:id`, `file:path` -> the ids they had."""
    problems: list[Problem] = field(default_factory=list)


def expand_test(test: TestFile, library: Library) -> Expansion:
    """The cases of a test file, or its problems."""
    result = Expansion()
    if not test.readable:
        return result
    filler = Filler(test.path, test.replacements, as_is=test.plain, runtime=False)
    turns = [(turn, filler.compile(turn.section)) for turn in test.turns]
    instructions = filler.compile(test.instructions) if test.instructions else None
    checks = CheckTemplates(test.checks, filler, test.turn_names) if test.checks else None
    filler.finish(test.line_of)
    result.problems += filler.problems
    prompts = _resolve_prompts(test, library, result)
    tools = _resolve(test, "availableTools", "tool", test.tools, library.tools, result)
    schemas = _resolve(
        test,
        "structuredResponseSchema",
        "schema",
        (test.schema,) if test.schema else (),
        library.schemas,
        result,
    )
    if any(problem.severity == "error" for problem in result.problems):
        return result
    special = tuple(tag for tag in test.tags if tag.startswith("_"))
    schema_id = _schema_finder(library, result)
    prompt_ids = prompt_finder(
        library.evaluator_prompts,
        library.prompts,
        library.silent,
        result.dependencies,
        told=instructions is not None,
    )
    rows: list[Row] = []
    versions: list[tuple[TestVersion, EvaluationVersion]] = []
    for values in expand_rows(test.replacements):
        row = Row(values, filler.values)
        try:
            version = TestVersion(
                messages=tuple(
                    _message(turn, template, row, test.path, library, result)
                    for turn, template in turns
                ),
                special_tags=special,
                tools=tools,
                schema=schemas[0] if schemas else None,
                options=test.options,
            )
            told = fill_parts(instructions, row, test.path, library, result) if instructions else ()
            checked = checks.fill(row, schema_id, prompt_ids) if checks else ()
        except FileProblem as problem:
            result.problems.append(problem.at(test.path))
            continue
        rows.append(row)
        versions.append((version, EvaluationVersion(told, (*implied_checks(version), *checked))))
    if any(problem.severity == "error" for problem in result.problems):
        result.problems = list(dict.fromkeys(result.problems))
        return result
    if any(not told.instructions and not told.checks for _, told in versions):
        result.problems.append(_unjudged(test))
    result.file = CaseFile(
        cases=tuple(_cases(test, rows, versions, prompts, result)),
        attempts=test.attempts,
        evaluators=test.evaluators,
        threshold=test.threshold,
        id=test.id,
    )
    return result


def _schema_finder(library: Library, result: Expansion) -> Callable[[str, int], str]:
    """Finds the version of a schema that a check names."""

    def find(id: str, line: int) -> str:
        version = library.schemas.get(id)
        result.dependencies[f"schema:{id}"] = version
        if version is None:
            hint = suggest(id, library.schemas, "schemas")
            raise FileProblem(f"there is no schema '{id}'", line, hint=hint)
        return version

    return find


def _unjudged(test: TestFile) -> Problem:
    return Problem(
        test.path,
        "nothing below '---' says how to evaluate the answer: it is asked, and never judged",
        test.turns[-1].section.first,
        severity="warning",
        hint="write the instructions for the evaluator below the line '---'",
    )


def _cases(
    test: TestFile,
    rows: list[Row],
    versions: list[tuple[TestVersion, EvaluationVersion]],
    prompts: tuple[str | None, ...],
    result: Expansion,
) -> Iterator[Case]:
    texts = [{name: written.text for name, written in row.values.items()} for row in rows]
    tags = tuple(sorted(test.tags))
    when = test.checks.when if test.checks else "on_pass"
    both = ("checks", "models") if when == "on_pass" else ("checks", "models", when)
    judged_by = {**_JUDGED_BY, (True, True): both}
    for label, values, (version, evaluation) in zip(labels(texts), texts, versions, strict=True):
        test_id = _keep(result, "test", hashing.describe_test(version))
        has_evaluation = bool(evaluation.instructions or evaluation.checks)
        judge = judge_of(evaluation.checks)
        by_models = bool(evaluation.instructions or judge)
        yield Case(
            row=label,
            key=hashing.row_key(values),
            tests=(test_id,),
            evaluation=_keep(result, "evaluation", hashing.describe_evaluation(evaluation))
            if has_evaluation
            else None,
            tags=tags,
            prompts=prompts,
            needs=needs_of(version),
            judged_by=judged_by[bool(without_judge(evaluation.checks)), by_models],
            temperature=version.options.temperature,
            seed=version.options.seed,
            limit=version.options.max_output_tokens,
            judge_prompts=tuple(judge.get("prompts", ())) if judge else (),
        )


_JUDGED_BY = {
    (False, False): ("models",),
    (False, True): ("models",),
    (True, False): ("checks",),
}
"""By whether there are checks, and models judge; shared, as there may be very many cases."""


def _keep(result: Expansion, kind: str, description: dict[str, Any]) -> str:
    id, content = hashing.identify(description)
    id = sys.intern(id)  # many cases may share an evaluation
    result.contents[id] = (kind, content)
    return id


def needs_of(version: TestVersion) -> tuple[str, ...]:
    """The capabilities a model must have to be asked."""
    needs = set()
    if version.tools or {"_has_tools", "_tools_only"} & set(version.special_tags):
        needs.add("tools")
    if version.schema:
        needs.add("structured")
    for message in version.messages:
        for part in message.parts:
            if isinstance(part, FileRef) and not is_text(part.media_type):
                kind = part.media_type.partition("/")[0]
                needs.add(
                    "pdf"
                    if part.media_type == "application/pdf"
                    else kind
                    if kind in ("image", "audio")
                    else "file"
                )
    return tuple(sorted(needs))


def is_text(media_type: str) -> bool:
    """Whether a file of this type is shown as text."""
    return media_type.startswith("text/")


def _message(
    turn: Turn, template: Template, row: Row, path: str, library: Library, result: Expansion
) -> Message:
    if turn.name is not None:
        return Message(turn.role, (), filled=True)
    parts = fill_parts(template, row, path, library, result)
    if turn.role != "user":
        _only_text(parts, turn)
    return Message(turn.role, parts)


def _only_text(parts: tuple[Part, ...], turn: Turn) -> None:
    for part in parts:
        if isinstance(part, FileRef) and not is_text(part.media_type):
            raise FileProblem(
                f"'{part.path}' ({part.media_type}) can only be shown in a user message",
                turn.section.first,
                hint=f"in a message of the role '{turn.role}' only text files can stand",
            )


def fill_parts(
    template: Template, row: Row, path: str, library: Library, result: Expansion
) -> tuple[Part, ...]:
    """The parts of a filled text, trimmed at both ends; mentioned files are read."""
    pieces = template.fill(row.lookup, row.typed)
    if pieces and isinstance(pieces[0], str):
        pieces[0] = pieces[0].lstrip(SPACE)
    if pieces and isinstance(pieces[-1], str):
        pieces[-1] = pieces[-1].rstrip(SPACE)
    parts: list[Part] = []
    for piece in pieces:
        if isinstance(piece, str):
            if piece:
                parts.append(Text(piece))
            continue
        written = clean_path(piece)
        try:
            version, id = library.read_file(written, path)
        except FileProblem as problem:
            raise FileProblem(problem.message, piece.line, hint=problem.hint) from problem
        result.dependencies[f"file:{written}"] = id
        result.files[id] = version
        parts.append(FileRef(written, version.media_type, id))
    return tuple(parts)


def clean_path(mention: Mention) -> str:
    """A mentioned path with forward slashes, without `./` and without a slash in front."""
    parts = [part for part in mention.path.replace("\\", "/").split("/") if part not in ("", ".")]
    if not parts:
        raise FileProblem("'_file:' names no file", mention.line)
    return "/".join(parts)


def _resolve_prompts(test: TestFile, library: Library, result: Expansion) -> tuple[str | None, ...]:
    found: list[str | None] = []
    for number, id in enumerate(test.system_prompts):
        if id is None:
            found.append(None)
            continue
        versions = library.prompts.get(id)
        result.dependencies[f"prompt:{id}"] = list(versions or ())
        if versions is None:
            hint = suggest(id, library.prompts, "system prompts")
            if id in library.evaluator_prompts:
                hint = "it is an evaluator prompt (tag '_evaluator'), not a system prompt"
            result.problems.append(
                Problem(
                    test.path,
                    f"there is no system prompt '{id}'",
                    test.line_of("systemPrompts", number),
                    hint=hint,
                )
            )
        else:
            found += versions
    return tuple(dict.fromkeys(found))


def _resolve(
    test: TestFile,
    field_name: str,
    kind: str,
    ids: tuple[str, ...],
    known: Mapping[str, str],
    result: Expansion,
) -> tuple[str, ...]:
    found = []
    for number, id in enumerate(ids):
        version = known.get(id)
        result.dependencies[f"{kind}:{id}"] = version
        if version is None:
            result.problems.append(
                Problem(
                    test.path,
                    f"there is no {kind} '{id}'",
                    test.line_of(field_name, number),
                    hint=suggest(id, known, f"{kind}s"),
                )
            )
        else:
            found.append(version)
    return tuple(sorted(set(found)))


def expand_prompt(prompt: PromptFile, library: Library) -> tuple[tuple[str, ...], Expansion]:
    """The ids of a prompt's versions, one for each row; and their contents or problems."""
    result = Expansion()
    filler = Filler(
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
    ids: list[str] = []
    for values in expand_rows(prompt.replacements):
        row = RuntimeRow(values, filler.values)
        try:
            messages = tuple(
                _message(turn, template, row, prompt.path, library, result)
                for turn, template in turns
            )
        except FileProblem as problem:
            result.problems.append(problem.at(prompt.path))
            continue
        version = PromptVersion(messages, special)
        ids.append(_keep(result, "prompt", hashing.describe_prompt(version)))
    result.problems = list(dict.fromkeys(result.problems))
    if any(problem.severity == "error" for problem in result.problems):
        return (), result
    return tuple(dict.fromkeys(ids)), result


def _require_runtime_names(
    prompt: PromptFile, templates: list[Template], result: Expansion
) -> None:
    used = {name for template in templates for name in template.names}
    for name in REQUIRED_NAMES:
        # What is no evaluator's own prompt may be for tests that say nothing but 'judge'.
        if name not in used and (name != INSTRUCTIONS or prompt.id == DEFAULT_PROMPT):
            result.problems.append(
                Problem(
                    prompt.path,
                    f"the evaluator prompt never uses '{name}'",
                    prompt.turns[0].section.first,
                    hint=f"write `{{{{{name}}}}}` where it belongs",
                )
            )

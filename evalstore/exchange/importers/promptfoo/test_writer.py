"""Grouping of cases and writing of tests; the cases of a group are the rows of one test."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from evalstore.core.errors import FileProblem
from evalstore.core.values import Json
from evalstore.exchange.importers.base import (
    Imported,
    NotTakenError,
    as_section,
    literal,
    require,
    safe_file_name,
    skipping,
    takes_turns,
    unique,
    write_test,
)
from evalstore.exchange.importers.promptfoo.assertions import (
    LISTS,
    Assertion,
    convert,
    literal_value,
    split_list,
)
from evalstore.exchange.importers.promptfoo.cases import PromptfooCase
from evalstore.exchange.importers.promptfoo.files import (
    PromptfooPrompt,
    as_template,
    asked_names,
    is_template,
    shown_paths,
    template_names,
)
from evalstore.files.jinja_sandbox import run

_LONE = re.compile(r"\s*\{\{\s*(\w+)\s*\}\}\s*")
_LONGEST_NAME = 3
"""The maximum number of assertion types in the name of a test file."""
_NOT_JUDGED = "asked, but not judged"


@dataclass
class PromptfooGroup:
    """Cases whose assertions differ in their values only."""

    cases: list[PromptfooCase] = field(default_factory=list)
    rows: list[dict[str, Json]] = field(default_factory=list)
    checks: list[Json] = field(default_factory=list)
    instructions: list[str] = field(default_factory=list)
    absent: frozenset[str] = frozenset()
    """Variables that some rows do not have, as a template asks for them."""
    name: str = ""


def group(
    cases: Iterable[PromptfooCase], imported: Imported, prompts: Sequence[PromptfooPrompt] = ()
) -> list[PromptfooGroup]:
    """Group the cases; each group gets the rows and checks of its cases."""
    groups: dict[str, PromptfooGroup] = {}
    for case in cases:
        try:
            template_names(case.prefix + case.suffix)
        except NotTakenError as problem:
            imported.skip(case.file, f"a test: {problem}", problem.line or case.line)
            continue
        usable_case = replace(case, assertions=tuple(_usable(case, imported)))
        if case.assertions and not usable_case.assertions:
            reason = "a test whose assertions were not imported: it is asked, but not judged"
            imported.warn(case.file, reason, case.line)
            usable_case = replace(usable_case, not_judged=True)
        shape: list[Json] = [
            [it.kind, it.threshold, it.weight, it.metric, _value_shape(it)]
            for it in usable_case.assertions
        ]
        shape += [usable_case.threshold, usable_case.prefix, usable_case.suffix]
        key = json.dumps([*shape, usable_case.not_judged], default=str)
        groups.setdefault(key, PromptfooGroup()).cases.append(usable_case)
    found = list(groups.values())
    for case_group in found:
        _fill_absent(case_group, prompts)
        _fill(case_group, imported)
    _name_groups(found)
    return found


def _usable(case: PromptfooCase, imported: Imported) -> Iterable[Assertion]:
    """Yield the assertions that can be imported; the others are reported."""
    for assertion in case.assertions:
        file, line = (assertion.file, assertion.line) if assertion.line else (case.file, case.line)
        try:
            require(not assertion.problem, assertion.problem)
            _, instruction, _ = convert(assertion.kind, assertion.value, assertion.threshold)
            for template in _templates(assertion.value):
                template_names(template)
            if assertion.kind.removeprefix("not-") in LISTS and isinstance(assertion.value, str):
                split_list(assertion.value, assertion.kind)
            require(assertion.weight, f"'{assertion.kind}' has the weight 0: it only measures")
        except NotTakenError as problem:
            imported.skip(file, f"an assertion: {problem}", problem.line or line)
        else:
            unused_fields = list(assertion.others)
            if instruction:  # judges have one verdict for all their instructions
                unused_fields += ["weight"] * (assertion.weight != 1)
                unused_fields += ["metric"] * bool(assertion.metric)
            if unused_fields:
                names = " and ".join(f"'{name}'" for name in unused_fields)
                verb = "is" if len(unused_fields) == 1 else "are"
                imported.warn(file, f"{names} of '{assertion.kind}' {verb} not imported", line)
            yield assertion


def _templates(value: Json) -> list[str]:
    items = value if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, str) and is_template(item)]


def _value_shape(assertion: Assertion) -> Json:
    """Return the part of a value that must be equal in all rows of a group."""
    if isinstance(assertion.value, dict) or assertion.kind.removeprefix("not-") == "word-count":
        return assertion.value
    return [assertion.value is None, isinstance(assertion.value, list)]


def _fill_absent(case_group: PromptfooGroup, prompts: Iterable[PromptfooPrompt]) -> None:
    """Set the rows; variables without a value are empty texts, unless a template asks for them."""
    cases = case_group.cases
    templates = {cases[0].prefix, cases[0].suffix}
    templates.update(text for prompt in prompts for _, text in prompt.turns)
    for case in cases:
        for assertion in case.assertions:
            templates.update(_templates(assertion.value))
    names = {name for prompt in prompts for name in prompt.names}
    asked: set[str] = set()
    paths: set[str] = set()
    for template in templates:
        names |= template_names(template)
        asked |= asked_names(template)
        paths |= shown_paths(template)
    case_group.rows = [dict(case.values) for case in cases]
    columns = _columns(case_group.rows)
    lacking = {name for name in asked if any(name not in row for row in case_group.rows)}
    case_group.absent = frozenset(
        {*lacking, *(path for path in paths if not all(_has(row, path) for row in case_group.rows))}
    )
    for name in [*columns, *sorted(names - set(columns))]:
        for row in case_group.rows if name not in lacking else ():
            row.setdefault(name, "")


def _has(value: Json, path: str) -> bool:
    """Return whether a mapping has the value at a path."""
    for step in path.split("."):
        if not isinstance(value, dict) or value.get(step) is None:
            return False
        value = value[step]
    return True


def _fill(case_group: PromptfooGroup, imported: Imported) -> None:
    """Set the checks; each value that differs between cases becomes a column."""
    taken = {name.lower() for row in case_group.rows for name in row}
    for number, assertion in enumerate(case_group.cases[0].assertions):
        values = [case.assertions[number].value for case in case_group.cases]
        if assertion.kind.removeprefix("not-") in LISTS and isinstance(values[0], str):
            pairs = zip(case_group.cases, values, strict=True)
            values = [_split(text, case, assertion, imported) for case, text in pairs]
        value: Json
        if all(case_value == values[0] for case_value in values):
            columns = _columns(case_group.rows)
            value = _convert_templates(values[0], columns, case_group.absent)
        else:
            bare = assertion.kind.removeprefix("not-")
            name = "forbidden" if assertion.kind != bare else "expected"
            name = "rubric" if bare in ("llm-rubric", "model-graded-closedqa") else name
            name = unique(name, taken, "_")
            taken.add(name)
            triples = zip(case_group.rows, case_group.cases, values, strict=True)
            for row, case, case_value in triples:
                row[name] = _render(case_value, case, imported)
            value = f"{{{{ {name} }}}}"
        converted, instruction, warning = convert(assertion.kind, value, assertion.threshold)
        if warning:
            first = case_group.cases[0]
            place = assertion.file or first.file
            imported.warn(place, warning, assertion.line or first.line)
        if instruction:
            case_group.instructions.append(instruction)
        else:
            label: dict[str, Json] = {"name": assertion.metric} if assertion.metric else {}
            label |= {"weight": assertion.weight} if assertion.weight != 1 else {}
            check = converted
            if label:
                check = {**({"type": check} if isinstance(check, str) else check), **label}
            if isinstance(check, dict) and any(map(_is_empty, values, case_group.cases)):
                check = {**check, "allowEmpty": True}
            case_group.checks.append(check)
    descriptions = [case.description for case in case_group.cases]
    if any(descriptions) and "description" not in taken:
        for row, text in zip(case_group.rows, descriptions, strict=True):
            row["description"] = text


def _split(text: str, case: PromptfooCase, assertion: Assertion, imported: Imported) -> Json:
    """Return the expected texts of a case that are in one text, after its templates are filled."""
    filled = _render(text, case, imported)
    texts: Json = [filled]
    with skipping(imported.left, case.file, case.line, "an assertion: "):
        texts = split_list(filled, assertion.kind)
    return literal_value(texts)


def _is_empty(value: Json, case: PromptfooCase) -> bool:
    """Return whether the expected value of a case is empty."""
    if isinstance(value, str) and (match := _LONE.fullmatch(value)):
        value = case.values.get(match[1], "")
    return value in ("", [])


def _columns(rows: list[dict[str, Json]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _convert_templates(value: Json, columns: list[str], absent: frozenset[str]) -> Json:
    """Convert the templates in a value that all rows share; a mapping has none."""
    if isinstance(value, str):
        return as_template(value, columns, absent) if is_template(value) else value
    if isinstance(value, list):
        return [_convert_templates(item, columns, absent) for item in value]
    return literal_value(value)


def _render(value: Json, case: PromptfooCase, imported: Imported) -> Json:
    """Render the templates in a value of one row, as values of rows are data."""
    if isinstance(value, list):
        return [_render(item, case, imported) for item in value]
    if not isinstance(value, str) or not is_template(value):
        return value
    paths = [path for path in shown_paths(value) if not _has(case.values, path)]
    absent = {*(asked_names(value) - case.values.keys()), *paths}
    scope = {"item": {}, **dict.fromkeys(template_names(value), ""), **case.values}
    try:
        return run(as_template(value, (), absent), 1, scope)
    except FileProblem as problem:
        imported.skip(case.file, f"a value cannot be filled: {problem.message}", case.line)
        return value


def _name_groups(groups: Sequence[PromptfooGroup]) -> None:
    """Give each group a unique name after the assertion types that distinguish it."""
    names: set[str] = set()
    kinds_by_group = [
        [assertion.kind for assertion in case_group.cases[0].assertions] for case_group in groups
    ]
    for case_group, kinds in zip(groups, kinds_by_group, strict=True):
        shared = set(kinds).intersection(*kinds_by_group)
        distinctive = [kind for kind in dict.fromkeys(kinds) if kind not in shared]
        unnamed = "not-judged" if case_group.cases[0].not_judged else "answers"
        name = "-".join((distinctive or kinds)[:_LONGEST_NAME]) or unnamed
        case_group.name = unique(safe_file_name(name) if len(groups) > 1 else "tests", names, "_")
        names.add(case_group.name)


# --- the test of a prompt and a group -----------------------------------------------------


def write(
    prompt: PromptfooPrompt, case_group: PromptfooGroup, dataset: str, imported: Imported
) -> bytes:
    """Return the test file of a prompt with the cases of a group."""
    first_case = case_group.cases[0]
    columns = _columns(case_group.rows)
    front: dict[str, Json] = {"dataset": dataset} if columns or case_group.absent else {}
    turns = list(prompt.turns)
    role, text = turns[-1]
    turns[-1] = (role, f"{first_case.prefix}{text}{first_case.suffix}")
    turns = [(role, as_template(text, columns, case_group.absent)) for role, text in turns]
    if any(prompt.images) or not takes_turns([role for role, _ in turns]):
        front["messages"] = [
            {"role": role, "content": text}
            | ({} if image is None else {"image": as_template(image, columns)})
            for (role, text), image in zip(turns, prompt.images or [None] * len(turns), strict=True)
        ]
        turns = []
    return write_judged(front, turns, case_group, imported)


def write_judged(
    front: dict[str, Json],
    turns: Sequence[tuple[str, str]],
    case_group: PromptfooGroup,
    imported: Imported,
) -> bytes:
    """Return a test file with this conversation, judged by the assertions of a group."""
    first_case = case_group.cases[0]
    if first_case.not_judged:
        return write_test(front or {"description": _NOT_JUDGED}, turns)
    checks: Json = case_group.checks
    if not case_group.checks and not case_group.instructions:
        checks = [{"length": {"min": 0}}]
        reason = "tests without assertions: every answer passes"
        imported.warn(first_case.file, reason, first_case.line)
    if first_case.threshold is not None and case_group.checks:
        checks = {"pass": f">= {first_case.threshold:g}", "checks": case_group.checks}
    instructions = "\n\n".join(
        as_section(instruction) if is_template(instruction) else literal(instruction)
        for instruction in dict.fromkeys(case_group.instructions)
    )
    return write_test(front, turns, instructions=instructions, checks=checks)

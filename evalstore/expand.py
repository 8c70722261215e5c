"""Test files x rows -> cases, in file order.

Expanding a file is a pure function of its text, of the versions it refers to, and of its
data: it yields the cases, the content of every version they name, and what they depend on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from evalstore import hashing
from evalstore.bound_checks import BoundChecks, CheckTemplates
from evalstore.checks import implied_checks
from evalstore.checks.base import as_text
from evalstore.checks.judges import judge_of, without_judge
from evalstore.checks.python_code import code_of
from evalstore.errors import FileProblem, Problem
from evalstore.fields import suggest
from evalstore.filling import Filler, Row, RuntimeRow
from evalstore.judge_prompts import INSTRUCTIONS
from evalstore.library import Desk, Expansion, Library
from evalstore.messages import Conversation, Shape, fill_parts, fill_turn, is_text
from evalstore.rows import expand_rows, labels
from evalstore.settings import DEFAULT_PROMPT
from evalstore.template import NoValueError
from evalstore.values import (
    RECORDED,
    REQUIRED_NAMES,
    Case,
    CaseFile,
    EvaluationVersion,
    FileRef,
    Json,
    Message,
    ModelVersion,
    Part,
    PromptVersion,
    TestVersion,
)

if TYPE_CHECKING:
    from evalstore.dataset import Dataset, DatasetRow
    from evalstore.parse import PromptFile, TestFile
    from evalstore.template import Template

MOST_CASES = 1_000_000
"""Cases that one dataset makes."""
_MOST_PROBLEMS = 20
"""Rows whose problems are told one by one."""


def expand_test(test: TestFile, library: Library) -> Expansion:
    """The cases of a test file, or its problems."""
    result = Expansion()
    if not test.readable:
        return result
    try:
        data = _open_data(test, library, result)
    except FileProblem as problem:
        result.problems += problem.all_at(test.path)
        return result
    texts = _Texts(test, data)
    result.problems += texts.filler.problems
    prompts = _resolve_prompts(test, library, result)
    tools = _resolve(test, "availableTools", "tool", test.tools, library.tools, result)
    asked = (test.schema,) if test.schema else ()
    schemas = _resolve(test, "structuredResponseSchema", "schema", asked, library.schemas, result)
    if result.failed:
        return result
    special = tuple(tag for tag in test.tags if tag.startswith("_"))
    desk = Desk(test.path, library, result, told=test.instructions is not None)
    filled: list[_Filled] = []
    broken = 0
    try:
        for row, place in _rows(test, texts.filler, data):
            try:
                shown = texts.show(row, desk)
                versions = tuple(
                    TestVersion(
                        messages=messages,
                        special_tags=special,
                        tools=tools,
                        schema=schemas[0] if schemas else None,
                        options=test.options,
                    )
                    for messages, _ in shown
                )
                filled.append(texts.fill(row, desk, versions, [shape for _, shape in shown]))
            except FileProblem as problem:
                result.add_once([_at_row(problem, test.path, place)])
                broken += 1
                if broken == _MOST_PROBLEMS and data is not None:
                    break
    except FileProblem as problem:
        result.problems += problem.all_at(test.path)
    if data is not None:
        result.problems += data.problems
    differing = _differing_groups(test, filled)
    if differing or result.failed:
        result.problems += differing
        return result
    result.file = CaseFile(
        cases=tuple(_cases(test, filled, texts, prompts, result)),
        attempts=test.attempts,
        evaluators=test.evaluators,
        threshold=test.threshold,
        id=test.id,
    )
    if any(case.evaluation is None for case in result.file.cases):
        result.problems.append(_unjudged(test))
    return result


def _differing_groups(test: TestFile, filled: Sequence[_Filled]) -> list[Problem]:
    """Groups that cannot be judged: their rows disagree on how, or bring their own answers."""
    first: dict[str, tuple[Json, ...]] = {}
    line = test.checks.line if test.checks else 1
    for one in filled:
        if not one.checks.group:
            continue
        if first.setdefault(one.group, one.checks.group) != one.checks.group:
            words = "a check of the scope 'group' is not the same for all rows of the group"
            hint = "it can only mention values that all of them have; the field 'group' parts them"
            return [Problem(test.path, words, line, hint=hint)]
        if one.answer is not None:
            return [Problem(test.path, "recorded answers cannot be judged as a group", line)]
    return []


def _open_data(test: TestFile, library: Library, result: Expansion) -> Dataset | None:
    if test.dataset is None:
        return None
    data, digest = library.open_data(test.dataset, test.path)
    result.dependencies[f"dataset:{test.dataset.path}"] = digest
    return data


def _at_row(problem: FileProblem, path: str, place: str) -> Problem:
    found = problem.at(path)
    return found if not place else replace(found, message=f"{found.message} ({place})")


class _Filled(NamedTuple):
    """What one row comes to."""

    row: Row
    shown: tuple[TestVersion, ...]
    """One for each conversation."""
    told: tuple[Part, ...]
    checks: BoundChecks
    answer: tuple[str, ...] | None = None
    """The answers that are recorded, if any are."""
    group: str = ""


class _Texts:
    """All texts of a test file, compiled."""

    def __init__(self, test: TestFile, data: Dataset | None) -> None:
        self.test = test
        self.filler = filler = Filler(
            test.path, test.replacements, as_is=test.plain, runtime=False, data=data
        )
        names = {name for run in test.runs for name in (run.name, *run.turn_names) if name}
        self.conversations = [Conversation(run, filler) for run in test.runs]
        self.answer = filler.compile(test.answer) if test.answer else None
        self.group = filler.compile(test.group) if test.group else None
        self.instructions = filler.compile(test.instructions) if test.instructions else None
        self.checks = CheckTemplates(test.checks, filler, names) if test.checks else None
        filler.finish(test.line_of)

    @property
    def columns(self) -> list[str]:
        """The columns of the data that some text uses, in the order of their first use."""
        return list(self.filler.used_columns)

    def show(self, row: Row, desk: Desk) -> list[tuple[tuple[Message, ...], Shape]]:
        """The messages of every conversation with a row."""
        return [
            shown for one in self.conversations for shown in [one.fill(row, desk)] * one.run.count
        ]

    def fill(
        self, row: Row, desk: Desk, versions: tuple[TestVersion, ...], shapes: list[Shape]
    ) -> _Filled:
        """Everything else that a row decides."""
        checks = self.checks
        return _Filled(
            row,
            versions,
            fill_parts(self.instructions, row, desk) if self.instructions else (),
            checks.fill(row, desk, shapes) if checks else BoundChecks(),
            self._recorded(row, shapes) if self.answer else None,
            "".join(map(str, self.group.fill(row.lookup, row.typed))) if self.group else "",
        )

    def _recorded(self, row: Row, shapes: list[Shape]) -> tuple[str, ...] | None:
        """The answers that a row brings itself; None when it brings none."""
        assert self.answer is not None
        assert self.test.answer is not None
        line = self.test.answer.first
        try:
            value = self.answer.value(row.lookup, row.typed)
        except NoValueError:
            return None
        if value is None:
            return None
        answers = value if isinstance(value, list) else [value]
        if len(shapes) > 1 or len(answers) != len(shapes[0].turns):
            expected = sum(len(shape.turns) for shape in shapes)
            raise FileProblem(
                f"'answer' gives {len(answers)} answers, and {expected} are asked for",
                line,
                hint="a recorded answer is for one conversation; one of several turns is a list",
            )
        return tuple(as_text(answer) for answer in answers)


def _rows(test: TestFile, filler: Filler, data: Dataset | None) -> Iterator[tuple[Row, str]]:
    """Every row with its place in the data: a row of data with each row of replacements."""
    if data is None:
        for values in expand_rows(test.replacements):
            yield Row(values, filler.values), ""
        return
    combinations = list(expand_rows(test.replacements))
    count = 0
    for found in data:
        for values in combinations:
            count += 1
            if count > MOST_CASES:
                raise FileProblem(
                    f"the dataset makes more than {MOST_CASES:,} cases",
                    test.line_of("dataset"),
                    hint="take fewer rows with 'limit', 'where' or 'sample'",
                )
            yield Row(values, filler.values, found.item), _place(data, found)


def _place(data: Dataset, row: DatasetRow) -> str:
    return f"{data.file}:{row.line}" if row.line else f"{data.file}, row {row.number}"


def _unjudged(test: TestFile) -> Problem:
    return Problem(
        test.path,
        "nothing below '---' says how to evaluate the answer: it is asked, and never judged",
        test.first_line,
        severity="warning",
        hint="write the instructions for the evaluator below the line '---'",
    )


def _cases(
    test: TestFile,
    filled: Sequence[_Filled],
    texts: _Texts,
    prompts: tuple[str | None, ...],
    result: Expansion,
) -> Iterator[Case]:
    """The cases of the rows, and behind them those of the groups that are judged together."""
    values = [_values(one.row, texts.columns) for one in filled]
    names = labels([{name: as_text(value) for name, value in one.items()} for one in values])
    shared = _Shared(test, prompts)
    grouped = texts.checks is not None and texts.checks.has_group
    groups: dict[str, list[_Member]] = {}
    has_rows = False
    for label, named, one in zip(names, values, filled, strict=True):
        tests = tuple([result.keep("test", hashing.describe_test(shown)) for shown in one.shown])
        version = EvaluationVersion(one.told, (*implied_checks(one.shown[0]), *one.checks.own))
        if grouped:
            groups.setdefault(one.group, []).append(_Member(one, tests))
            if not (version.instructions or version.checks):
                continue
        has_rows = True
        yield shared.case(label, hashing.row_key(named), tests, version, one, result)
    for group, members in groups.items():
        words = "all rows" if has_rows or len(groups) > 1 else ""
        yield shared.group(f"group={group}" if group else words, group, members, result)


class _Member(NamedTuple):
    """A row of a group."""

    filled: _Filled
    tests: tuple[str, ...]


class _Shared:
    """What all cases of a file have in common."""

    def __init__(self, test: TestFile, prompts: tuple[str | None, ...]) -> None:
        self.tags = tuple(sorted(test.tags))
        self.prompts = prompts
        when = test.checks.when if test.checks else "on_pass"
        both = ("checks", "models") if when == "on_pass" else ("checks", "models", when)
        self.judged_by = {**_JUDGED_BY, (True, True): both}
        self.options = test.options

    def case(
        self,
        label: str,
        key: str,
        tests: tuple[str, ...],
        version: EvaluationVersion,
        filled: _Filled,
        result: Expansion,
    ) -> Case:
        """One case; the contents of its versions are kept."""
        has_evaluation = bool(version.instructions or version.checks)
        judge = judge_of(version.checks)
        by_models = bool(version.instructions or judge)
        needs = {need for shown in filled.shown for need in needs_of(shown)}
        return Case(
            row=label,
            key=key,
            tests=tests,
            evaluation=result.keep("evaluation", hashing.describe_evaluation(version))
            if has_evaluation
            else None,
            tags=self.tags,
            prompts=self.prompts,
            needs=tuple(sorted(needs)),
            judged_by=self.judged_by[bool(without_judge(version.checks)), by_models],
            temperature=self.options.temperature,
            seed=self.options.seed,
            limit=self.options.max_output_tokens,
            recorded=_keep_answers(filled.answer, result),
            judge_prompts=tuple(judge.get("prompts", ())) if judge else (),
            code=tuple(one.text for one in code_of(version.checks)),
        )

    def group(self, label: str, group: str, members: Sequence[_Member], result: Expansion) -> Case:
        """The case that judges all rows of a group; rows that ask the same share the answers."""
        asked: dict[str, int] = {}
        for _, tests in members:
            for test in tests:
                asked[test] = max(asked.get(test, 0), tests.count(test))
        first = members[0].filled
        shown = tuple(dict.fromkeys(one for member in members for one in member.filled.shown))
        return self.case(
            label,
            hashing.row_key({"group": group}),
            tuple(test for test, count in asked.items() for _ in range(count)),
            EvaluationVersion((), first.checks.group),
            first._replace(shown=shown),
            result,
        )


def _keep_answers(answers: tuple[str, ...] | None, result: Expansion) -> str | None:
    """The version of the model that has given recorded answers: it is those answers."""
    if answers is None:
        return None
    version = ModelVersion(RECORDED, RECORDED, options={"answers": list(answers)})
    return result.keep("model", hashing.describe_model(version))


_JUDGED_BY = {
    (False, False): ("models",),
    (False, True): ("models",),
    (True, False): ("checks",),
}
"""By whether there are checks, and models judge; shared, as there may be very many cases."""


def _values(row: Row, columns: list[str]) -> dict[str, Json]:
    """What tells a row from others: the values of its data that are used, and the author's."""
    item = row.item if row.item is not None else {}
    used = {name: item[name] for name in columns if name in item}
    return {**used, **{name: written.text for name, written in row.values.items()}}


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
    desk = Desk(prompt.path, library, result)
    ids: list[str] = []
    for values in expand_rows(prompt.replacements):
        row = RuntimeRow(values, filler.values)
        try:
            messages = tuple(fill_turn(turn, template, row, desk) for turn, template in turns)
        except FileProblem as problem:
            result.problems.append(problem.at(prompt.path))
            continue
        version = PromptVersion(messages, special)
        ids.append(result.keep("prompt", hashing.describe_prompt(version)))
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

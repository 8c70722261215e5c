"""A task: its messages, its data, and its metrics as checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evalstore.dataset.names import Columns
from evalstore.errors import EvalstoreError, FileProblem
from evalstore.formats.base import Imported, Left
from evalstore.formats.nemo import templates
from evalstore.formats.nemo.data import Data, find_data
from evalstore.formats.nemo.judges import Judge, read_judges
from evalstore.formats.nemo.metrics import GRADED, METRICS, NotTakenError, tool_call
from evalstore.formats.shapes import listing, mapping
from evalstore.formats.writing import file_name, unique, write_test
from evalstore.formats.yaml_text import block
from evalstore.values import Json

if TYPE_CHECKING:
    from pathlib import Path

_QUESTIONS = ("messages", "input", "prompt", "question")
_ANSWERS = ("output", "response", "completion", "answer", "prediction")
_OPTIONS = {
    "temperature": "temperature",
    "top_p": "topP",
    "max_tokens": "maxOutputTokens",
    "seed": "seed",
    "stop": "stop",
}


@dataclass
class Task:
    """One task of a job, and where it stands."""

    name: str
    task: Mapping[str, Any]
    config: Mapping[str, Any]
    file: Path
    given: list[Path]
    prefix: str
    line: Callable[..., int | None]


@dataclass
class _Parts:
    """What the tests of a task are made of."""

    data: Data
    front: dict[str, Json] = field(default_factory=dict)
    turns: list[tuple[str, str]] = field(default_factory=list)
    checks: list[Json] = field(default_factory=list)
    judges: list[Judge] = field(default_factory=list)


def write_task(task: Task, imported: Imported) -> None:
    """The tests of a task: one, and one more for each further judge."""
    data = find_data(task.task.get("dataset"), task.file, task.given, imported.left)
    parts = _Parts(data)
    _conversation(task, parts, imported)
    _metrics(task, parts, imported)
    if not parts.checks and not parts.judges:
        raise EvalstoreError("none of its metrics can be taken over")
    name = unique(f"tests/{file_name(task.name)}", (one[:-3] for one in imported.files))[6:]
    front = {"dataset": _dataset(data, name, task, imported), **parts.front}
    imported.rows += len(data.rows)
    judges: list[Judge | None] = [*parts.judges]
    for number, judge in enumerate(judges or [None]):
        checks = [*parts.checks] if number == 0 else []
        title = name if judge is None or number == 0 else f"{name}.{file_name(judge.name)}"
        instructions = ""
        if judge is not None:
            id = f"{task.prefix}/{name}.{file_name(judge.name)}".lstrip("/")
            grading, check = judge.write(id)
            imported.files[f"prompts/{name}.{file_name(judge.name)}.md"] = grading.prompt
            instructions = grading.instructions
            checks.append(check)
            if grading.differs:
                reason = f"the prompt of the judge '{judge.name}' is put together in another order"
                imported.warnings.append(Left(str(task.file), reason, judge.line))
        imported.files[f"tests/{title}.md"] = write_test(
            front, parts.turns, instructions=instructions, checks=checks
        )


def _dataset(data: Data, name: str, task: Task, imported: Imported) -> Json:
    """The field `dataset`, with the copy of the data written."""
    if data.url:
        reason = f"the data are not here: say in 'datasetRoots' where '{data.url}' is"
        imported.warnings.append(Left(str(task.file), reason, task.line("dataset")))
        path = data.url
    else:
        if not data.rows:
            raise EvalstoreError("its data have no row that can be used")
        path = data.name
        if imported.files.setdefault(f"tests/{path}", data.content) != data.content:
            path = f"{name}.{data.name}"
            imported.files[f"tests/{path}"] = data.content
    return {"path": path, **data.spec} if data.spec else path


# --- what the candidate is shown ----------------------------------------------------------


def _conversation(task: Task, parts: _Parts, imported: Imported) -> None:
    params = mapping(task.task.get("params"))
    template = params.get("template")
    general = mapping(task.config.get("params"))
    inside = mapping(template)
    options = {
        ours: value
        for theirs, ours in _OPTIONS.items()
        if (value := inside.get(theirs, params.get(theirs, general.get(theirs)))) is not None
    }
    if template is None:
        _recorded(task, parts)
        return
    if options:
        parts.front["options"] = options
    messages = inside.get("messages")
    if isinstance(template, str) or "prompt" in inside:
        given = template if isinstance(template, str) else inside["prompt"]
        parts.turns = [("user", templates.shown(str(given)))]
    elif isinstance(messages, str):
        parts.front["messages"] = templates.value(messages)
    elif isinstance(messages, list) and messages and all(map(_is_message, messages)):
        parts.turns = [(one["role"], templates.shown(one["content"])) for one in messages]
        if _breaks_order([role for role, _ in parts.turns]):
            parts.front["messages"] = [
                {"role": role, "content": text} for role, text in parts.turns
            ]
            parts.turns = []
    else:
        raise EvalstoreError("its template has no 'messages' that can be read")
    if inside.get("tools") is not None:
        _tools(inside["tools"], parts, imported)


def _is_message(given: Any) -> bool:
    return (
        isinstance(given, dict)
        and given.get("role") in ("system", "user", "assistant")
        and isinstance(given.get("content"), str)
    )


def _breaks_order(roles: list[str]) -> bool:
    """Whether these roles do not take turns as sections do."""
    spoken = roles[1:] if roles[0] == "system" else roles
    wanted = ["user" if number % 2 == 0 else "assistant" for number in range(len(spoken))]
    return not spoken or spoken != wanted or spoken[-1] != "user"


def _recorded(task: Task, parts: _Parts) -> None:
    """A task of data alone: the answers are in the rows."""
    columns = parts.data.columns
    answer = next((one for one in _ANSWERS if one in columns), None)
    if answer is None:
        raise EvalstoreError("it has no template, and its data have no column 'output'")
    question = next((one for one in _QUESTIONS if one in columns), None)
    parts.front["answer"] = f"{{{{ item.{answer} | default(none) }}}}"
    if question == "messages":
        parts.front["messages"] = "{{ item.messages }}"
    else:
        text = f"{{{{ item.{question} }}}}" if question else "(The question was not recorded.)"
        parts.turns = [("user", text)]


def _tools(given: Json, parts: _Parts, imported: Imported) -> None:
    """The tools, as files; raises when the rows offer different ones."""
    if (expression := templates.lone_expression(given)) is not None:
        offered = _evaluate(expression, parts.data)
        if not offered:
            raise EvalstoreError("its tools are in the data, which are not here")
        if any(one != offered[0] for one in offered):
            raise EvalstoreError(
                "its rows offer different tools; here all rows of a test share them"
            )
        given = offered[0]
    names = []
    for tool in listing(given):
        function = mapping(mapping(tool).get("function", tool))
        if not isinstance(function.get("name"), str):
            raise EvalstoreError("one of its tools has no name")
        name = function["name"]
        fields: dict[str, Json] = {"id": name, "name": name}
        fields["description"] = function.get("description") or name
        fields["parameters"] = function.get("parameters") or {"type": "object", "properties": {}}
        imported.files[f"tools/{file_name(name)}.yaml"] = block(fields).encode()
        names.append(name)
    if names:
        parts.front["availableTools"] = names


def _evaluate(expression: str, data: Data) -> list[Json]:
    """What an expression comes to in each row; raises `EvalstoreError`."""
    from evalstore.sandbox import evaluate

    columns = Columns(dict.fromkeys(name for row in data.rows for name in row.values))
    try:
        return [evaluate(expression, 1, {"item": columns.item(row.values)}) for row in data.rows]
    except FileProblem as problem:
        raise EvalstoreError(problem.message) from problem


# --- how the answer is judged -------------------------------------------------------------


def _metrics(task: Task, parts: _Parts, imported: Imported) -> None:
    metrics = task.task.get("metrics")
    if not isinstance(metrics, dict):
        raise EvalstoreError("it has no 'metrics'")
    for name, metric in metrics.items():
        line = task.line("metrics", name)
        try:
            _metric(name, metric, line, task, parts, imported)
        except (NotTakenError, ValueError) as problem:
            imported.left.append(Left(str(task.file), f"the metric '{name}': {problem}", line))


def _metric(
    name: str, metric: Any, line: int | None, task: Task, parts: _Parts, imported: Imported
) -> None:
    if not isinstance(metric, dict):
        raise NotTakenError("it must be a mapping with a 'type'")
    kind, params = str(metric.get("type")), mapping(metric.get("params") or metric)
    if kind == "llm-judge":
        for judge in read_judges(name, params, line):
            parts.judges.append(judge)
            imported.warnings += [Left(str(task.file), one, line) for one in judge.warnings]
        return
    if kind == "tool-calling":
        parts.checks.append(_tool_calling(params, parts.data))
        return
    if kind not in METRICS:
        raise NotTakenError(f"there is no check for the type '{kind}'")
    check = METRICS[kind](params)
    if kind in GRADED:
        reason = f"the metric '{name}' has no bound: a score passes here from 0.5 up"
        if kind == "rouge":
            reason += "; of its variants it is rougeL"
        imported.warnings.append(Left(str(task.file), reason, line))
    elif kind != "number-check" and parts.data.has_empty(str(check)):
        check["allowEmpty"] = True
    parts.checks.append(check)


def _tool_calling(params: Mapping[str, Any], data: Data) -> dict[str, Json]:
    """The check of tool calls: by name and arguments, in any order."""
    expression = templates.lone_expression(params.get("tool_calls_ground_truth"))
    if expression is None:
        raise NotTakenError("it needs 'tool_calls_ground_truth: \"{{ item.… }}\"'")
    if not data.rows:
        raise NotTakenError("the expected calls are in the data, which are not here")
    try:
        expected = _evaluate(expression, data)
    except EvalstoreError as problem:
        raise NotTakenError(str(problem)) from problem
    calls = [[tool_call(call) for call in listing(one)] for one in expected]
    data.add_column("expected_calls", calls)
    check: dict[str, Json] = {"toolCalls": "{{ item.expected_calls }}"}
    return check if all(calls) else {**check, "allowEmpty": True}

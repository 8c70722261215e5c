"""Importer of NeMo Evaluator: custom evaluation jobs and configurations.

It follows NeMo's documentation and the metrics of its SDK. Differences are listed in
`docs/coming-from/nemo.md`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalstore.checks.types.number import as_number, last_number, plain_number
from evalstore.core.display import as_text, shorten
from evalstore.core.errors import EvalstoreError, FileProblem
from evalstore.core.values import Json
from evalstore.exchange.importers.base import (
    OPTION_NAMES,
    Imported,
    ImportOptions,
    NotTakenError,
    SkippedItem,
    as_list,
    as_mapping,
    parse_json,
    parsed,
    read_unpacked,
    reason_of,
    require,
    skipping,
)
from evalstore.exchange.importers.json_lines import find_sources, json_as_yaml
from evalstore.exchange.importers.nemo_metrics import (
    GRADED,
    METRICS,
    NemoJudge,
    TaskData,
    convert_template,
    find_data,
    is_message,
    lone_expression,
    read_judges,
    shown_column,
    tasks_of,
    template_value,
    tool_call,
)
from evalstore.exchange.importers.template_writer import (
    safe_file_name,
    split_prompt,
    takes_turns,
    unique,
    write_test,
)
from evalstore.files.access import normalise
from evalstore.files.datasets import DatasetColumns
from evalstore.files.fields import Collector, Fields
from evalstore.files.jinja_sandbox import evaluate_expression, run
from evalstore.files.yaml12 import Document, read_yaml, write_yaml

_SUFFIXES = (".json", ".yaml", ".yml")


def read(paths: list[Path], options: ImportOptions) -> Imported:
    """Import a test for each task of the jobs; other files may be data of these tasks."""
    imported = Imported()
    files = [file for file in find_sources(paths, _SUFFIXES) if file.suffix in _SUFFIXES]
    jobs = [job for file in files if (job := _read_job(file, imported, only=len(files) == 1))]
    if not jobs and not imported.left:
        raise EvalstoreError(
            "no NeMo Evaluator job found",
            hint="name the JSON or YAML of a job or a configuration: it has 'tasks', or a 'metric'",
        )
    for job in jobs:
        job.write(paths, options, imported)
    return imported


@dataclass
class _Job:
    """A file with tasks."""

    path: Path
    document: Mapping[str, Any]
    config: Mapping[str, Any]
    places: Document | None
    """The same document with line numbers."""
    prefix: tuple[str, ...] = field(default=())
    """The path of the configuration in the document."""

    def line(self, *steps: str) -> int | None:
        """Return the line of a part of the configuration."""
        if self.places is None:
            return None
        if "tasks" not in self.places.at(*self.prefix).value:  # a job without tasks
            steps = steps[2:3] if steps[2:3] != ("metrics",) else ("metric",)
        return self.places.line(*self.prefix, *steps)

    def write(self, sources: list[Path], options: ImportOptions, imported: Imported) -> None:
        several = len(self.config["tasks"]) > 1
        for name, task in self.config["tasks"].items():
            line = self.line("tasks", name)
            if not isinstance(task, dict):
                imported.skip(self.path, f"the task '{name}': a task must be a mapping", line)
                continue
            stem = name if several or self.path.stem in ("job", "config") else self.path.stem
            job_task = Task(
                name=stem,
                task=task,
                config=self.config,
                dataset=self._dataset(task),
                file=self.path,
                sources=sources,
                prefix=options.name,
                line=lambda *steps, name=name: self.line("tasks", name, *steps),
            )
            with skipping(imported.left, self.path, line, f"the task '{name}': "):
                write_task(job_task, imported)
        if as_mapping(self.document.get("target")).get("cached_outputs"):
            reason = "the recorded answers of 'cached_outputs' are not imported: models are asked"
            line = self.places.line("target", "cached_outputs") if self.places else None
            imported.skip(self.path, reason, line)
        add_participants(self.document, self.config, str(self.path), options.name, imported)

    def _dataset(self, task: Mapping[str, Any]) -> Any:
        """Return the data of a task, from the task itself, the configuration or the target."""
        target = as_mapping(self.document.get("target"))
        candidates = [task.get("dataset"), self.config.get("dataset"), target.get("dataset")]
        if isinstance(target.get("rows"), list):
            candidates.append({"rows": target["rows"]})
        return next((candidate for candidate in candidates if candidate), None)


def _read_job(path: Path, imported: Imported, *, only: bool) -> _Job | None:
    try:
        text = normalise(read_unpacked(path))
    except FileProblem as problem:
        imported.skip(path, reason_of(problem), problem.line)
        return None
    try:
        places, document = _read_text(path, text)
    except FileProblem as problem:
        if only or "tasks" in text:
            place = problem.line, problem.column
            imported.skip(path, f"is not YAML: {problem.message}", *place)
        return None
    except ValueError as error:
        if only or '"tasks"' in text:
            place = (getattr(error, "lineno", None), getattr(error, "colno", None))
            imported.skip(path, f"is not JSON: {error}", *place)
        return None
    config = tasks_of(document)
    if config is None:
        if isinstance(document, dict) and isinstance(document.get("tasks"), list):
            line = places.line("tasks") if places else None
            reason = "its 'tasks' are a list, as in early versions: give each a name"
            imported.skip(path, reason, line)
        return None
    wrappers = [name for name in ("config", "spec") if tasks_of({name: document.get(name)})]
    prefix = () if tasks_of({**document, "config": None, "spec": None}) else (wrappers[0],)
    return _Job(path, document, config, places, prefix)


def _read_text(path: Path, text: str) -> tuple[Document | None, Any]:
    """Return a document with line numbers, and its value; raises `ValueError` or `FileProblem`."""
    if path.suffix != ".json":
        places = read_yaml(text)
        return places, places.value
    value = parse_json(text)
    try:
        return read_yaml(json_as_yaml(text)), value
    except FileProblem:
        return None, value


# --- model and provider files for the candidates and judges of a job


_PATHS = re.compile(r"/(?:chat/)?completions/?$")


def add_participants(
    document: Mapping[str, Any],
    config: Mapping[str, Any],
    file: str,
    prefix: str,
    imported: Imported,
) -> None:
    """Add model and provider files for the models of a job, and the settings that list them.

    `prefix` is the folder of the import; provider codes begin with it.
    """
    target = document.get("target")
    candidate = target.get("model") if isinstance(target, dict) else config.get("model")
    for name, models in (("candidates", [candidate]), ("evaluators", list(_judges(config)))):
        for model in models:
            id = _model(model, file, prefix, imported)
            ids: list[Json] = imported.settings.setdefault(name, [])
            if id and id not in ids:
                ids.append(id)
    for name in ("candidates", "evaluators"):
        if not imported.settings.get(name):
            imported.settings.pop(name, None)


def _judges(config: Mapping[str, Any]) -> Iterator[Any]:
    for task in config["tasks"].values():
        for metric in as_mapping(as_mapping(task).get("metrics")).values():
            if as_mapping(metric).get("type") == "llm-judge":
                yield as_mapping(metric.get("params") or metric).get("model")


def _model(model_spec: Any, file: str, prefix: str, imported: Imported) -> str | None:
    """Add the files of a model and return its id; API keys are never imported."""
    if isinstance(model_spec, str):
        model_spec = {"name": model_spec}
    endpoint = as_mapping(as_mapping(model_spec).get("api_endpoint", model_spec))
    code, url = endpoint.get("model_id") or endpoint.get("name"), endpoint.get("url")
    if not isinstance(code, str) or not code or code.startswith("<"):
        return None
    if not isinstance(url, str) or not re.match(r"https?://", url):
        imported.warn(
            file, f"no address is given for the model '{code}': write a model file for it"
        )
        return None
    name = safe_file_name(code)
    key = None
    if endpoint.get("api_key") or endpoint.get("api_key_secret"):
        key = f"{re.sub(r'[^A-Z0-9]+', '_', name.upper())}_API_KEY"
        imported.warn(file, f"the key of '{code}' is not imported: set {key}")
    imported.add_model(code, f"{prefix}/{name}".lstrip("/"), _PATHS.sub("", url), key)
    return code


# --- a task: its messages, its data, and its metrics as checks


_QUESTIONS = ("messages", "input", "prompt", "question")
_ANSWERS = ("output", "response", "completion", "prediction")
_REFERENCE = re.compile("reference|ideal|expected|truth|target|label|gold")
"""Names of columns that contain references, not answers."""


@dataclass
class Task:
    """One task of a job and its location."""

    name: str
    task: Mapping[str, Any]
    config: Mapping[str, Any]
    dataset: Any
    """The dataset of the task or of the job."""
    file: Path
    sources: list[Path]
    prefix: str
    line: Callable[..., int | None]


@dataclass
class _Parts:
    """The parts of a task's tests."""

    data: TaskData
    front: dict[str, Json] = field(default_factory=dict)
    turns: list[tuple[str, str]] = field(default_factory=list)
    checks: list[Json] = field(default_factory=list)
    judges: list[NemoJudge] = field(default_factory=list)
    answer: str | None = None
    """The column of recorded answers."""


def write_task(task: Task, imported: Imported) -> None:
    """Write the tests of a task: one per distinct list of tools and per judge."""
    params, general = as_mapping(task.task.get("params")), as_mapping(task.config.get("params"))
    limit = params.get("limit_samples", general.get("limit_samples"))
    data = find_data(task.dataset, limit, task.file, task.sources, imported.left)
    name = unique(f"tests/{safe_file_name(task.name)}", (file[:-3] for file in imported.files))[6:]
    tools_by_row = read_tools(as_mapping(params.get("template")).get("tools"), data)
    keys = [json.dumps(tools, sort_keys=True) for tools in tools_by_row]
    if len(set(keys)) <= 1:
        _write_tests(task, data, tools_by_row[0] if tools_by_row else [], name, name, imported)
        return
    for number, (first_row, part) in enumerate(data.split(keys), 1):
        _write_tests(task, part, tools_by_row[first_row], f"{name}-{number}", name, imported)


def _write_tests(
    task: Task, data: TaskData, tools: list[Json], name: str, base: str, imported: Imported
) -> None:
    """Write the tests of rows with the same tools; `base` is the name of shared prompts."""
    parts = _Parts(data)
    _read_conversation(task, parts, imported)
    if tools:
        parts.front["availableTools"] = write_tools(tools, task.prefix, imported)
    _read_metrics(task, parts, imported)
    require(parts.checks or parts.judges, "none of its metrics can be imported")
    front = {"dataset": _dataset(data, name, task, imported), **parts.front}
    imported.rows += len(data.rows)
    judges: list[NemoJudge | None] = [*parts.judges]
    for number, judge in enumerate(judges or [None]):
        checks = [*parts.checks] if number == 0 else []
        title = name if judge is None or number == 0 else f"{name}.{safe_file_name(judge.name)}"
        instructions = ""
        if judge is not None:
            id = f"{task.prefix}/{base}.{safe_file_name(judge.name)}".lstrip("/")
            grading = split_prompt(id, judge.messages)
            imported.files[f"prompts/{base}.{safe_file_name(judge.name)}.md"] = grading.prompt
            instructions = grading.instructions
            checks.append({"judge": {"prompt": id, **judge.check}})
            if grading.differs:
                reason = f"the prompt of the judge '{judge.name}' has its parts in another order"
                imported.warn(task.file, reason, judge.line)
        imported.files[f"tests/{title}.md"] = write_test(
            front, parts.turns, instructions=instructions, checks=checks
        )


def _dataset(data: TaskData, name: str, task: Task, imported: Imported) -> Json:
    """Return the field `dataset`, and add the copy of the data."""
    if data.url:
        reason = f"the data were not found: say in 'datasetRoots' where '{data.url}' is"
        imported.warn(task.file, reason, task.line("dataset"))
        path = data.url
    else:
        require(data.rows, "its data have no row that can be used")
        path = data.name
        if imported.files.setdefault(f"tests/{path}", data.content) != data.content:
            path = f"{name}.{data.name}"
            imported.files[f"tests/{path}"] = data.content
    return {"path": path, **data.spec} if data.spec else path


# --- messages of the candidate ------------------------------------------------------------


def _read_conversation(task: Task, parts: _Parts, imported: Imported) -> None:
    params = as_mapping(task.task.get("params"))
    template = params.get("template")
    general = as_mapping(task.config.get("params"))
    template_fields = as_mapping(template)
    options = {
        name: value
        for nemo_name, name in OPTION_NAMES.items()
        if (value := template_fields.get(nemo_name, params.get(nemo_name, general.get(nemo_name))))
        is not None
    }
    if template is None:
        _use_recorded_answers(task, parts)
        return
    for nemo_name, name in OPTION_NAMES.items():
        if name in options and not _is_option(name, options[name]):
            value = as_text(options.pop(name))
            reason = f"'{nemo_name}' is not imported: {value} is not a value for it"
            imported.warn(task.file, reason, task.line())
    if options:
        parts.front["options"] = options
    messages = template_fields.get("messages")
    if isinstance(template, str) or "prompt" in template_fields:
        prompt = template if isinstance(template, str) else template_fields["prompt"]
        parts.turns = [("user", convert_template(str(prompt)))]
    elif isinstance(messages, str):
        parts.front["messages"] = template_value(messages)
    elif isinstance(messages, list) and messages and all(map(is_message, messages)):
        parts.turns = [
            (message["role"], convert_template(message["content"])) for message in messages
        ]
        roles = [role for role, _ in parts.turns]
        if not takes_turns(roles) or roles[-1] != "user":
            parts.front["messages"] = [
                {"role": role, "content": text} for role, text in parts.turns
            ]
            parts.turns = []
    else:
        raise NotTakenError("its template has no 'messages' that can be read")


def _is_option(name: str, value: Json) -> bool:
    """Return whether this is a valid option of a test."""
    collector = Collector()
    document = read_yaml(write_yaml({"options": {name: value}}))
    Fields(document, ("options",), collector=collector).options()
    return not collector.problems


def _use_recorded_answers(task: Task, parts: _Parts) -> None:
    """Use the answers in the rows, for a task without a template."""
    judged_columns = [name for name in _judged_columns(task) if not _REFERENCE.search(name)]
    known = [name for name in judged_columns if name in _ANSWERS]
    candidates = [*known, *_ANSWERS, *judged_columns, "answer"]
    answer = next((candidate for candidate in candidates if parts.data.has_column(candidate)), None)
    require(answer is not None, "it has no template, and its data have no column 'output'")
    parts.answer = answer
    question = next(
        (name for name in _QUESTIONS if parts.data.has_column(name) and name != answer), None
    )
    parts.front["answer"] = f"{{{{ item.{answer} | default(none) }}}}"
    if question == "messages":
        parts.front["messages"] = "{{ item.messages }}"
    else:
        text = f"{{{{ item.{question} }}}}" if question else "(The question was not recorded.)"
        parts.turns = [("user", text)]


def _judged_columns(task: Task) -> Iterator[str]:
    """Yield the columns that metrics judge, in their order."""
    for metric in as_mapping(task.task.get("metrics")).values():
        params = as_mapping(as_mapping(metric).get("params") or metric)
        check = params.get("check")
        left = check[0] if isinstance(check, list) and check else params.get("left_template")
        for candidate in (left, params.get("candidate"), params.get("prediction")):
            if (name := shown_column(candidate)) is not None:
                yield name


# --- judging of the answer ----------------------------------------------------------------


def _read_metrics(task: Task, parts: _Parts, imported: Imported) -> None:
    metrics = task.task.get("metrics")
    if not isinstance(metrics, dict):
        raise NotTakenError("it has no 'metrics'")
    for name, metric in metrics.items():
        line = task.line("metrics", name)
        with skipping(imported.left, task.file, line, f"the metric '{name}': "):
            _read_metric(name, metric, line, task, parts, imported)


def _read_metric(
    name: str, metric: Any, line: int | None, task: Task, parts: _Parts, imported: Imported
) -> None:
    require(not isinstance(metric, str), "only its name is given: the service has its definition")
    require(isinstance(metric, dict), "it must be a mapping with a 'type'")
    kind, params = str(metric.get("type")), as_mapping(metric.get("params") or metric)
    if kind == "llm-judge":
        for judge in read_judges(name, params, line, parts.answer):
            parts.judges.append(judge)
            for warning in judge.warnings:
                imported.warn(task.file, warning, line)
        return
    if kind == "tool-calling":
        parts.checks.append(_tool_calling(params, parts.data))
        return
    require(kind in METRICS, f"no check matches the type '{kind}'")
    check = METRICS[kind](params)
    if kind == "number-check":
        check = with_numbers(check, parts.data, imported.left)
    if kind in GRADED:
        reason = f"the metric '{name}' has no threshold: in evalstore a score passes from 0.5 up"
        if kind == "rouge":
            reason += "; the variant is rougeL"
        imported.warn(task.file, reason, line)
    elif kind != "number-check" and parts.data.has_empty(str(check)):
        check["allowEmpty"] = True
    parts.checks.append(check)


def _tool_calling(params: Mapping[str, Any], data: TaskData) -> dict[str, Json]:
    """Return a check of tool calls by name and arguments, in any order."""
    expression = lone_expression(params.get("tool_calls_ground_truth", params.get("reference")))
    if expression is None:
        raise NotTakenError("it needs 'tool_calls_ground_truth: \"{{ item.… }}\"'")
    require(data.rows, "the expected calls are in the data, which were not found")
    expected = evaluate_rows(expression, data)
    calls = [[tool_call(call) for call in as_list(parsed(value, value))] for value in expected]
    data.add_column("expected_calls", calls)
    check: dict[str, Json] = {"toolCalls": "{{ item.expected_calls }}"}
    return check if all(calls) else {**check, "allowEmpty": True}


# --- references of number checks: in a text such as `#### 42`, the last number is used


_COLUMN = "expected_number"


def with_numbers(check: dict[str, Any], data: TaskData, left: list[SkippedItem]) -> dict[str, Any]:
    """Return the check with numeric references; raises `NotTakenError`.

    If references are texts, a column with the number is added; rows without a number are skipped
    and added to `left`.
    """
    settings = check["number"]
    expected = settings["expected"]
    if not isinstance(expected, str):
        return check
    if "{{" not in expected and "{%" not in expected:
        number = _last_number(expected)
        require(number is not None, f"its reference {shorten(expected)} has no number")
        return {"number": {**settings, "expected": number}}
    if not data.rows or "output_text" in expected or "sample" in expected:
        return check
    values = _references(expected, data)
    if all(as_number(value) is not None for value in values):
        return check
    numbers = [None if value is None else _last_number(as_text(value)) for value in values]
    rows_with_number = []
    for row, number in zip(data.limited_rows, numbers, strict=True):
        if number is None:
            reason = "the reference of this row has no number"
            left.append(SkippedItem(data.source, reason, row.line))
        else:
            rows_with_number.append(row)
    require(rows_with_number, "none of its references has a number")
    data.keep_rows(rows_with_number)
    name = data.free_name(_COLUMN)
    data.add_column(name, [number for number in numbers if number is not None])
    return {"number": {**settings, "expected": f"{{{{ item.{name} }}}}"}}


def _last_number(text: str) -> int | float | str | None:
    number = last_number(text)
    return None if number is None else as_number(plain_number(number))


def _references(template: str, data: TaskData) -> list[Json]:
    """Return the value of a template in each row within the limit; None where it has none."""
    expression = lone_expression(template)
    columns = DatasetColumns(dict.fromkeys(name for row in data.rows for name in row.values))
    values: list[Json] = []
    for row in data.limited_rows:
        item = columns.item(row.values)
        scope = {**item, "item": item}
        try:
            if expression is None:
                values.append(run(template, 1, scope))
            else:
                values.append(evaluate_expression(expression, 1, scope))
        except FileProblem:
            values.append(None)
    return values


# --- the tools of a task, the same for all rows or per row


def read_tools(value: Json, data: TaskData) -> list[list[Json]]:
    """Return the tools of each row, or one list for all rows; raises `NotTakenError`."""
    expression = lone_expression(value)
    if expression is None:
        return [as_list(parsed(value, value))]
    tools_by_row = evaluate_rows(expression, data)
    require(tools_by_row, "its tools are in the data, which were not found")
    return [as_list(parsed(tools, tools)) for tools in tools_by_row]


def write_tools(tools: list[Json], prefix: str, imported: Imported) -> list[str]:
    """Add the files of these tools and return their ids; existing tools are never replaced.

    `prefix` is the folder of the import; ids begin with it, so imports do not share tools.
    """
    ids = []
    for tool in tools:
        function = as_mapping(as_mapping(tool).get("function", tool))
        name = function.get("name")
        if not isinstance(name, str) or not name:
            raise NotTakenError("one of its tools has no name")
        stem, number = safe_file_name(name), 1
        while True:
            id = f"{prefix}/{stem}".lstrip("/")
            fields: dict[str, Json] = {"id": id, "name": name}
            fields["description"] = function.get("description") or name
            fields["parameters"] = function.get("parameters") or {
                "type": "object",
                "properties": {},
            }
            content = f"{write_yaml(fields, compact=True)}\n".encode()
            if imported.files.setdefault(f"tools/{stem}.yaml", content) == content:
                break
            number += 1
            stem = f"{safe_file_name(name)}-{number}"
        ids.append(id)
    return ids


def evaluate_rows(expression: str, data: TaskData) -> list[Json]:
    """Return the value of an expression in each row; raises `NotTakenError`."""
    columns = DatasetColumns(dict.fromkeys(name for row in data.rows for name in row.values))
    try:
        return [
            evaluate_expression(expression, 1, {"item": columns.item(row.values)})
            for row in data.rows
        ]
    except FileProblem as problem:
        raise NotTakenError(problem.message) from problem

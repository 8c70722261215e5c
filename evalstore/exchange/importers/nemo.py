"""Importer of NeMo Evaluator: custom evaluation jobs and configurations.

It follows NeMo's documentation and the metrics of its SDK. Differences are listed in
`docs/coming-from/nemo.md`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, count
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
    safe_file_name,
    skipping,
    split_prompt,
    takes_turns,
    unique,
    write_test,
)
from evalstore.exchange.importers.json_lines import JsonLinesRow, find_sources, json_as_yaml
from evalstore.exchange.importers.nemo_metrics import (
    GRADED,
    METRICS,
    NemoConfig,
    NemoJudge,
    TaskData,
    convert_template,
    find_config,
    find_data,
    is_message,
    lone_expression,
    read_judges,
    shown_column,
    template_value,
    tool_call,
)
from evalstore.files.access import normalise
from evalstore.files.datasets import DatasetColumns
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
    config: NemoConfig
    places: Document | None
    """The same document with line numbers."""

    def line(self, *steps: str) -> int | None:
        """Return the line of a part of the configuration."""
        if self.places is None:
            return None
        if not self.config.has_tasks:
            steps = steps[2:3] if steps[2:3] != ("metrics",) else ("metric",)
        return self.places.line(*self.config.prefix, *steps)

    def write(self, sources: list[Path], options: ImportOptions, imported: Imported) -> None:
        tasks = self.config.content["tasks"]
        for name, content in tasks.items():
            line = self.line("tasks", name)
            with skipping(imported.left, self.path, line, f"the task '{name}': "):
                require(isinstance(content, dict), "a task must be a mapping")
                is_named = len(tasks) > 1 or self.path.stem in ("job", "config")
                title = name if is_named else self.path.stem
                _Task(self, name, title, content, options.name, imported).write(sources)
        if as_mapping(self.document.get("target")).get("cached_outputs"):
            reason = "the recorded answers of 'cached_outputs' are not imported: models are asked"
            line = self.places.line("target", "cached_outputs") if self.places else None
            imported.skip(self.path, reason, line)
        add_participants(self.document, self.config.content, str(self.path), options.name, imported)


def _read_job(path: Path, imported: Imported, *, only: bool) -> _Job | None:
    """Return the job in a file; else None, and a file that is meant as one is reported."""
    places: Document | None = None
    text = ""
    try:
        text = normalise(read_unpacked(path))
        is_json = path.suffix == ".json"
        value = parse_json(text) if is_json else None
        with suppress(*((FileProblem,) if is_json else ())):
            places = read_yaml(json_as_yaml(text) if is_json else text)
        document = value if is_json or places is None else places.value
    except FileProblem as problem:
        if not text:
            imported.skip(path, reason_of(problem), problem.line)
        elif only or "tasks" in text:
            imported.skip(path, f"is not YAML: {problem.message}", problem.line, problem.column)
        return None
    except ValueError as error:
        if only or '"tasks"' in text:
            place = (getattr(error, "lineno", None), getattr(error, "colno", None))
            imported.skip(path, f"is not JSON: {error}", *place)
        return None
    config = find_config(document)
    if config is None and isinstance(as_mapping(document).get("tasks"), list):
        line = places.line("tasks") if places else None
        reason = "its 'tasks' are a list, as in early versions: give each a name"
        imported.skip(path, reason, line)
    return config and _Job(path, as_mapping(document), config, places)


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
            id = None
            with skipping(imported.left, file):
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


class _Task:
    """One task of a job, and its tests: one per distinct list of tools and per judge."""

    def __init__(
        self,
        job: _Job,
        name: str,
        title: str,
        content: Mapping[str, Any],
        prefix: str,
        imported: Imported,
    ) -> None:
        """`title` names the files, and `prefix` is the folder of the import."""
        self._job, self._name, self._title = job, name, title
        self._content, self._prefix, self._imported = content, prefix, imported
        self._params = as_mapping(content.get("params"))
        self._general = as_mapping(job.config.content.get("params"))
        self._metrics = content.get("metrics")

    def write(self, sources: list[Path]) -> None:
        """Add the tests; raises `NotTakenError`."""
        imported = self._imported
        limit = self._params.get("limit_samples", self._general.get("limit_samples"))
        target = as_mapping(self._job.document.get("target"))
        owners = (self._content, self._job.config.content, target)
        rows = {"rows": target["rows"]} if isinstance(target.get("rows"), list) else None
        dataset = next(filter(None, (*(owner.get("dataset") for owner in owners), rows)), None)
        data = find_data(dataset, limit, self._job.path, sources, imported.left)
        stem = f"tests/{safe_file_name(self._title)}"
        name = unique(stem, (file[:-3] for file in imported.files))[6:]
        tools_by_row = read_tools(as_mapping(self._params.get("template")).get("tools"), data)
        keys = [json.dumps(tools, sort_keys=True) for tools in tools_by_row]
        if len(set(keys)) <= 1:
            self._write(data, tools_by_row[0] if tools_by_row else [], name, name)
            return
        for number, (first_row, part) in enumerate(data.split(keys), 1):
            self._write(part, tools_by_row[first_row], f"{name}-{number}", name)

    def _warn(self, reason: str, *steps: str) -> None:
        self._imported.warn(self._job.path, reason, self._line(*steps))

    def _line(self, *steps: str) -> int | None:
        return self._job.line("tasks", self._name, *steps)

    def _write(self, data: TaskData, tools: list[Json], name: str, base: str) -> None:
        """Write the tests of rows with the same tools; `base` is the name of shared prompts."""
        imported = self._imported
        answer = self._find_answer(data) if self._params.get("template") is None else None
        front, turns = self._conversation(data, answer)
        if tools:
            front["availableTools"] = write_tools(tools, self._prefix, imported)
        all_checks, judges = self._read_metrics(data, answer)
        require(all_checks or judges, "none of its metrics can be imported")
        front = {"dataset": self._copy_data(data, name), **front}
        for number, judge in enumerate(judges or [None]):
            checks = [*all_checks] if number == 0 else []
            title, instructions = name, ""
            if judge is not None:
                file = f"{base}.{safe_file_name(judge.name)}"
                title = f"{name}.{safe_file_name(judge.name)}" if number else name
                id = f"{self._prefix}/{file}".lstrip("/")
                prompt, instructions, differs = split_prompt(id, judge.messages)
                imported.files[f"prompts/{file}.md"] = prompt
                checks.append({"judge": {"prompt": id, **judge.check}})
                if differs:
                    reason = (
                        f"the prompt of the judge '{judge.name}' has its parts in another order"
                    )
                    imported.warn(self._job.path, reason, judge.line)
            imported.files[f"tests/{title}.md"] = write_test(
                front, turns, instructions=instructions, checks=checks
            )
        imported.rows += len(data.rows)

    def _copy_data(self, data: TaskData, name: str) -> Json:
        """Return the field `dataset`, and add the copy of the data."""
        path = data.url
        if data.url:
            self._warn(
                f"the data were not found: say in 'datasetRoots' where '{data.url}' is", "dataset"
            )
        else:
            require(data.rows, "its data have no row that can be used")
            path = data.name
            if self._imported.files.setdefault(f"tests/{path}", data.content) != data.content:
                path = f"{name}.{data.name}"
                self._imported.files[f"tests/{path}"] = data.content
        return {"path": path, **data.spec} if data.spec else path

    # --- messages of the candidate

    def _conversation(
        self, data: TaskData, answer: str | None
    ) -> tuple[dict[str, Json], list[tuple[str, str]]]:
        """Return fields of the test, and its body unless they have the messages."""
        template = self._params.get("template")
        if answer is not None:
            front: dict[str, Json] = {"answer": f"{{{{ item.{answer} | default(none) }}}}"}
            columns = (name for name in _QUESTIONS if data.has_column(name) and name != answer)
            question = next(columns, None)
            if question == "messages":
                return {**front, "messages": "{{ item.messages }}"}, []
            text = f"{{{{ item.{question} }}}}" if question else "(The question was not recorded.)"
            return front, [("user", text)]
        fields = as_mapping(template)
        owners = (fields, self._params, self._general)
        options = {
            name: value
            for nemo_name, name in OPTION_NAMES.items()
            for value in [next((it[nemo_name] for it in owners if nemo_name in it), None)]
            if value is not None
        }
        front = {"options": options} if options else {}
        messages = fields.get("messages")
        if isinstance(template, str) or "prompt" in fields:
            prompt = template if isinstance(template, str) else fields["prompt"]
            return front, [("user", convert_template(str(prompt)))]
        if isinstance(messages, str):
            return {**front, "messages": template_value(messages)}, []
        if not isinstance(messages, list) or not messages or not all(map(is_message, messages)):
            raise NotTakenError("its template has no 'messages' that can be read")
        turns = [(message["role"], convert_template(message["content"])) for message in messages]
        roles = [role for role, _ in turns]
        if takes_turns(roles) and roles[-1] == "user":
            return front, turns
        listed = [{"role": role, "content": text} for role, text in turns]
        return {**front, "messages": listed}, []

    def _find_answer(self, data: TaskData) -> str:
        """Return the column of recorded answers, for a task without a template."""
        judged = [name for name in self._judged_columns() if not _REFERENCE.search(name)]
        known = [name for name in judged if name in _ANSWERS]
        candidates = filter(data.has_column, [*known, *_ANSWERS, *judged, "answer"])
        answer = next(candidates, None)
        if answer is None:
            raise NotTakenError("it has no template, and its data have no column 'output'")
        return answer

    def _judged_columns(self) -> Iterator[str]:
        """Yield the columns that metrics judge, in their order."""
        for metric in as_mapping(self._metrics).values():
            params = as_mapping(as_mapping(metric).get("params") or metric)
            check = params.get("check")
            left = check[0] if isinstance(check, list) and check else params.get("left_template")
            for candidate in (left, params.get("candidate"), params.get("prediction")):
                if (name := shown_column(candidate)) is not None:
                    yield name

    # --- judging of the answer

    def _read_metrics(
        self, data: TaskData, answer: str | None
    ) -> tuple[list[Json], list[NemoJudge]]:
        """Return the checks and the judges; what is not imported is reported."""
        if not isinstance(self._metrics, dict):
            raise NotTakenError("it has no 'metrics'")
        checks: list[Json] = []
        judges: list[NemoJudge] = []
        for name, metric in self._metrics.items():
            line = self._line("metrics", name)
            subject = f"the metric '{name}': "
            with skipping(self._imported.left, self._job.path, line, subject):
                require(
                    not isinstance(metric, str),
                    "only its name is given: the service has its definition",
                )
                require(isinstance(metric, dict), "it must be a mapping with a 'type'")
                kind, params = str(metric.get("type")), as_mapping(metric.get("params") or metric)
                if kind != "llm-judge":
                    checks.append(self._check(name, kind, params, data))
                    continue
                for judge in read_judges(name, params, line, answer):
                    judges.append(judge)
                    self._warn(judge.warning, "metrics", name)
        return checks, judges

    def _check(self, name: str, kind: str, params: Mapping[str, Any], data: TaskData) -> Json:
        if kind == "tool-calling":
            return _tool_calling(params, data)
        require(kind in METRICS, f"no check matches the type '{kind}'")
        check = METRICS[kind](params)
        if kind == "number-check":
            return with_numbers(check, data, self._imported.left)
        if kind in GRADED:
            reason = (
                f"the metric '{name}' has no threshold: in evalstore a score passes from 0.5 up"
            )
            self._warn(reason + "; the variant is rougeL" * (kind == "rouge"), "metrics", name)
        elif data.has_empty(str(check)):
            check["allowEmpty"] = True
        return check


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
    expression = lone_expression(expected)
    values: list[Json] = []
    for item in _items(data.limited_rows, data):
        scope, value = {**item, "item": item}, None
        with suppress(FileProblem):
            value = (
                evaluate_expression(expression, 1, scope) if expression else run(expected, 1, scope)
            )
        values.append(value)
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
    name = data.free_name(_COLUMN)
    found = [number for number in numbers if number is not None]
    data.add_column(name, found, rows_with_number)
    return {"number": {**settings, "expected": f"{{{{ item.{name} }}}}"}}


def _last_number(text: str) -> int | float | str | None:
    number = last_number(text)
    return None if number is None else as_number(plain_number(number))


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
        base = safe_file_name(name)
        for stem in chain([base], (f"{base}-{number}" for number in count(2))):
            id = f"{prefix}/{stem}".lstrip("/")
            fields: dict[str, Json] = {"id": id, "name": name}
            fields["description"] = function.get("description") or name
            fields["parameters"] = function.get("parameters") or {
                "type": "object",
                "properties": {},
            }
            content = f"{write_yaml(fields, compact=True)}\n".encode()
            if imported.files.setdefault(f"tools/{stem}.yaml", content) == content:
                ids.append(id)
                break
    return ids


def evaluate_rows(expression: str, data: TaskData) -> list[Json]:
    """Return the value of an expression in each row; raises `NotTakenError`."""
    try:
        return [
            evaluate_expression(expression, 1, {"item": item}) for item in _items(data.rows, data)
        ]
    except FileProblem as problem:
        raise NotTakenError(problem.message) from problem


def _items(rows: Iterable[JsonLinesRow], data: TaskData) -> Iterator[Any]:
    """Yield rows as templates see them."""
    columns = DatasetColumns(dict.fromkeys(name for row in data.rows for name in row.values))
    return (columns.item(row.values) for row in rows)

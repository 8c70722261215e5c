"""Conversion of NeMo's templates and metrics to checks, of its judges to prompts, and of its data.

The data of a task are found among the user's files and copied next to the test.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from evalstore.core.errors import FileProblem
from evalstore.core.values import Json
from evalstore.exchange.importers.base import (
    ANSWER,
    Message,
    NotTakenError,
    PromptPiece,
    SkippedItem,
    as_list,
    as_mapping,
    expression_in,
    find_parts,
    is_file,
    middle_of,
    parse_json,
    positive_int,
    quoted,
    read_unpacked,
    reason_of,
    replace_parts,
    require,
    require_readable,
    taking,
    unique,
    without_filter,
)
from evalstore.exchange.importers.json_lines import (
    JsonLinesRow,
    find_sources,
    read_rows,
    write_rows,
)
from evalstore.files.datasets import DatasetSpec, read_dataset

_OUTPUT = re.compile(
    r"\{\{-?\s*(?:(?:sample\.)?output_text|sample\.tool_calls"
    r"|sample\.response\.choices\[0\]\.message(?:\.content|\.tool_calls)?)"
    r"\s*(?:\|\s*(?:trim|tojson)\s*)?-?\}\}"
)
"""The expressions for the answer or its tool calls in a judge's prompt."""
_COLUMN = re.compile(r"(?:item\.)?(\w+)\s*(?:\|\s*trim\s*)?")
_BARE_OUTPUT = re.compile(r"(?<![\w.'\"])output_text\b")
_TO_JSON = re.compile("tojson")


def convert_template(template: str) -> str:
    """Convert a template of NeMo; syntax with a meaning only in evalstore is quoted."""

    def part(text: str) -> str:
        if text.startswith("{#"):
            return ""
        return quoted(text) if text == "<!--" else _BARE_OUTPUT.sub("sample.output_text", text)

    return replace_parts(template, part)


def template_value(text: Json) -> Json:
    """Convert a template that gives a value, such as a list; `tojson` is dropped as implicit.

    White space around a lone expression is ignored, as is a line end at the end of a template.
    """
    if not isinstance(text, str):
        return text
    expression = expression_in(text)
    if expression is None:
        return convert_template(text.removesuffix("\n"))
    without_to_json = without_filter(expression, _TO_JSON)
    return (
        convert_template(text.strip())
        if without_to_json is None
        else f"{{{{ {without_to_json} }}}}"
    )


def lone_expression(text: Json) -> str | None:
    """Return the expression of a template that contains nothing else; else None."""
    return expression_in(template_value(text)) if isinstance(text, str) else None


def shown_column(text: Json) -> str | None:
    """Return the column that a template shows, if it shows nothing else."""
    match = _COLUMN.fullmatch(lone_expression(text) or "")
    return match[1].lower() if match else None


def judge_pieces(template: str, answer: str | None = None) -> Iterator[PromptPiece]:
    """Split a judge's template into literal text, the answer, and templates for the row.

    `answer` is the column of recorded answers.
    """
    at = 0
    for text, start, end in find_parts(template):
        if start > at:
            yield PromptPiece(template[at:start])
        if _OUTPUT.fullmatch(text) or (answer and shown_column(text) == answer):
            yield PromptPiece("", runtime=ANSWER)
        elif text.startswith(("{{", "{%")):
            yield PromptPiece(_BARE_OUTPUT.sub("sample.output_text", text), is_template=True)
        elif text == "<!--":
            yield PromptPiece(text)
        at = end
    if at < len(template):
        yield PromptPiece(template[at:])


# --- metrics, and judges


ENOUGH = ">= 0.5"
"""The default pass bound of scores, as jobs have none."""


_STRING = {
    "contains": ("contains", False),
    "not contains": ("contains", True),
    "equals": ("equals", False),
    "==": ("equals", False),
    "!=": ("equals", True),
    "<>": ("equals", True),
    "not equals": ("equals", True),
    "startswith": ("startsWith", False),
    "endswith": ("endsWith", False),
}
_NUMBER = {
    **dict.fromkeys(("equals", "==", "absolute difference"), "=="),
    **dict.fromkeys(("not equals", "!=", "<>"), "!="),
    **dict.fromkeys((">=", "gte", "greater than or equal"), ">="),
    **dict.fromkeys((">", "gt", "greater than"), ">"),
    **dict.fromkeys(("<=", "lte", "less than or equal"), "<="),
    **dict.fromkeys(("<", "lt", "less than"), "<"),
}


def _operands(params: Mapping[str, Any], kind: str) -> tuple[Json, str, Json]:
    """Return the left side, the operation and the right side, from either notation."""
    check = params.get("check")
    if isinstance(check, list) and len(check) >= 3:
        left, operation, right = check[:3]
    else:
        operation = params.get("operation")
        left, right = params.get("left_template"), params.get("right_template")
    if left is None or right is None or not isinstance(operation, str):
        raise NotTakenError(f"the {kind} needs 'check: [left, operation, right]'")
    return left, " ".join(operation.lower().split()), right


def _with_actual(check: dict[str, Json], candidate: Json) -> dict[str, Json]:
    """Set the checked value, unless it is the unchanged answer."""
    if candidate is None or lone_expression(candidate) == "sample.output_text":
        return check
    return {**check, "actual": template_value(candidate)}


def _string_check(params: Mapping[str, Any]) -> dict[str, Json]:
    left, operation, right = _operands(params, "string-check")
    require(operation in _STRING, f"the string-check has no operation '{operation}'")
    kind, negated = _STRING[operation]
    check = _with_actual({kind: template_value(right)}, left)
    return {**check, "not": True} if negated else check


def _number_check(params: Mapping[str, Any]) -> dict[str, Json]:
    left, operation, right = _operands(params, "number-check")
    require(operation in _NUMBER, f"the number-check has no operation '{operation}'")
    parts = params.get("check")
    epsilon = params.get("epsilon")
    if epsilon is None and isinstance(parts, list) and len(parts) > 3:
        epsilon = parts[3].get("epsilon") if isinstance(parts[3], dict) else parts[3]
    if operation != "absolute difference":
        require(not epsilon, f"'epsilon' has no effect with the operation '{operation}'")
    elif isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not epsilon >= 0:
        raise NotTakenError("the operation 'absolute difference' needs 'epsilon'")
    settings: dict[str, Json] = {"expected": template_value(right)}
    if _NUMBER[operation] != "==":
        settings["op"] = _NUMBER[operation]
    if operation == "absolute difference":
        settings["epsilon"] = epsilon
    return {"number": _with_actual(settings, left)}


def _reference(params: Mapping[str, Any]) -> Json:
    """Return the expected templates; similarity metrics default to `item.reference`."""
    for name in ("references", "ground_truth", "reference"):
        if name in params:
            value = params[name]
            return (
                list(map(template_value, value))
                if isinstance(value, list)
                else template_value(value)
            )
    return "{{ item.reference }}"


def _text_metric(
    kind: str, *, graded: bool = False, **settings: Json
) -> Callable[[Mapping[str, Any]], dict[str, Json]]:
    def make_check(params: Mapping[str, Any]) -> dict[str, Json]:
        candidate = params.get("candidate", params.get("prediction"))
        check = _with_actual({kind: _reference(params), **settings}, candidate)
        return {**check, "pass": ENOUGH} if graded else check

    return make_check


METRICS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Json]]] = {
    "string-check": _string_check,
    "number-check": _number_check,
    "exact-match": _text_metric("exact"),
    "em": _text_metric("exact"),
    "accuracy": _text_metric("equals"),
    "f1": _text_metric("f1", graded=True),
    "bleu": _text_metric("bleu", graded=True),
    "rouge": _text_metric("rouge", graded=True, stem=True),
}
GRADED = ("f1", "bleu", "rouge")


def tool_call(expected: Json) -> dict[str, Json]:
    """Convert an expected tool call from the chat-completions format; raises `NotTakenError`."""
    call = expected.get("function", expected) if isinstance(expected, dict) else None
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        raise NotTakenError("an expected tool call has no name")
    arguments = call.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = parse_json(arguments)
        except ValueError:
            raise NotTakenError("the arguments of an expected tool call are not JSON") from None
    is_mapping = isinstance(arguments, dict | None)
    require(is_mapping, "the arguments of an expected tool call are not a mapping")
    return {"name": call["name"], "arguments": arguments or {}}


# --- judges: a prompt, and parsers for the scores in the reply


_SCALE = re.compile(r"\b(\d{1,3})\s*(?:to|-|–|and)\s*(\d{1,3})\b")
_USUAL = (0.0, 10.0)
_OF_ANSWER = re.compile(r"\bsample(?:\.\w+)*")


@dataclass
class NemoJudge:
    """A judge for one score."""

    name: str
    messages: list[Message]
    check: dict[str, Json]
    line: int | None
    warning: str


def read_judges(
    name: str, params: Mapping[str, Any], line: int | None, answer: str | None
) -> Iterator[NemoJudge]:
    """Yield a judge per score; raises `NotTakenError`. `answer` is the answers' column."""
    template = params.get("template", params.get("prompt_template"))
    prompt_messages = as_list(as_mapping(template).get("messages"))
    if isinstance(template, str):
        prompt_messages = [{"role": "user", "content": template}]
    if not prompt_messages or not all(map(is_message, prompt_messages)):
        raise NotTakenError("its template has no messages that can be read")
    messages: list[Message] = [
        (message["role"], list(judge_pieces(message["content"], answer)))
        for message in prompt_messages
    ]
    pieces = [piece for _, parts in messages for piece in parts]
    for piece in pieces:
        if piece.is_template and (match := _OF_ANSWER.search(piece.text)):
            raise NotTakenError(
                f"its template uses '{match[0]}': judges are shown the whole answer"
            )
    if not any(piece.runtime for piece in pieces):
        raise NotTakenError("its template never shows the answer ('{{ sample.output_text }}')")
    text = "\n".join(message["content"] for message in prompt_messages)
    scores = _scores(params)
    for score, settings in scores:
        title = name if len(scores) == 1 else f"{name}.{score}"
        check, warning = _check(score, settings, text)
        yield NemoJudge(title, messages, check, line, warning)


def is_message(message: Any) -> bool:
    """Return whether a value is a message of a conversation."""
    return (
        isinstance(message, dict)
        and message.get("role") in ("system", "user", "assistant")
        and isinstance(message.get("content"), str)
    )


def _scores(params: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    value = params.get("scores")
    scores = list(as_mapping(value).items()) or [
        (str(score.get("name")), score) for score in as_list(value) if isinstance(score, dict)
    ]
    require(scores and all(isinstance(score, dict) for _, score in scores), "it has no 'scores'")
    return scores


def _check(name: str, score: Mapping[str, Any], text: str) -> tuple[dict[str, Json], str]:
    """Return the fields of a judge check, and a warning.

    The pass bound is the middle of the scale, as NeMo's scores have none.
    """
    parser = _parser(name, score)
    rubric = _rubric(score.get("rubric"))
    guessed, scores = False, {"scores": rubric} if rubric else {}
    if rubric:
        low, high = min(rubric.values()), max(rubric.values())
        require(low != high, f"the score '{name}' has a rubric with one value only")
    else:
        low, high, guessed = _scale(score, text)
        parser |= {"min": low, "max": high} if low != 0 else {"max": high}
    bound = middle_of(low, high)
    warning = f"the score '{name}' has no threshold: in evalstore it passes if it is {bound}"
    if guessed:
        warning += f"; its scale is taken to be {low:g} to {high:g}"
    return {"parser": parser, **scores, "pass": bound}, warning


def _parser(name: str, score: Mapping[str, Any]) -> dict[str, Json]:
    if score.get("parser") is None and ("rubric" in score or "minimum" in score):
        return {"json": name}  # the default of newer jobs
    settings = as_mapping(score.get("parser"))
    if isinstance(settings.get("json_path"), str):
        return {"json": settings["json_path"].removeprefix("$.")}
    pattern = settings.get("pattern")
    if not isinstance(pattern, str):
        raise NotTakenError(f"the score '{name}' has no parser by regex or JSON")
    try:
        groups = re.compile(pattern).groups
    except re.error as error:
        raise NotTakenError(f"the pattern of the score '{name}' is wrong: {error}") from None
    require(groups, f"the pattern of the score '{name}' has no group")
    return {"regex": pattern}


def _rubric(rubric: Any) -> dict[str, float]:
    levels = [
        (level.get("label"), level.get("value")) for level in map(as_mapping, as_list(rubric))
    ] or as_mapping(rubric).items()
    return {str(label): value for label, value in levels if isinstance(value, int | float)}


def _scale(score: Mapping[str, Any], text: str) -> tuple[float, float, bool]:
    """Return the lowest and highest score, and whether they were guessed from the prompt."""
    low, high = score.get("minimum", score.get("min")), score.get("maximum", score.get("max"))
    if isinstance(low, int | float) and isinstance(high, int | float) and low < high:
        return low, high, False
    ranges = [(int(a), int(b)) for a, b in _SCALE.findall(text) if int(a) < int(b)]
    low, high = ranges[0] if ranges else _USUAL
    return low, high, True


SUFFIXES = (".jsonl", ".ndjson", ".csv", ".tsv", ".json")


@dataclass
class TaskData:
    """The rows of a task, if their file was found."""

    source: str
    """The name of the data in messages."""
    name: str = ""
    """The file name of the copy; empty if the data were not found."""
    content: bytes = b""
    rows: list[JsonLinesRow] = field(default_factory=list)
    spec: dict[str, Json] = field(default_factory=dict)
    """Fields of `dataset` besides the path."""
    url: str = ""
    """The URL of the data, if they were not found."""

    @property
    def columns(self) -> frozenset[str]:
        """Return the names of all columns in lower case."""
        return frozenset(name.lower() for row in self.rows for name in row.values)

    def has_column(self, column: str) -> bool:
        """Return whether there is a column of this name, in the form used in templates."""
        return column in {re.sub(r"\W", "_", name) for name in self.columns}

    def split(self, keys: list[str]) -> list[tuple[int, TaskData]]:
        """Split the rows by key; returns the index of the first row and the data of each part."""
        limit = self.spec.get("limit", len(self.rows))
        numbers_by_key: dict[str, list[int]] = {}
        for number, key in enumerate(keys[:limit]):
            numbers_by_key.setdefault(key, []).append(number)
        spec = {name: value for name, value in self.spec.items() if name != "limit"}
        parts = []
        for count, numbers in enumerate(numbers_by_key.values(), 1):
            rows = [self.rows[number] for number in numbers]
            name = f"{Path(self.name).stem}-{count}.jsonl"
            parts.append((numbers[0], TaskData(self.source, name, write_rows(rows), rows, spec)))
        return parts

    def free_name(self, name: str) -> str:
        """Return an unused column name, in the form used in templates."""
        return unique(name, (re.sub(r"\W", "_", column) for column in self.columns))

    @property
    def limited_rows(self) -> list[JsonLinesRow]:
        """Return the rows within the limit."""
        return self.rows[: self.spec.get("limit", len(self.rows))]

    def has_empty(self, mentioned: str) -> bool:
        """Return whether a column that a template mentions is empty in any row."""
        words = set(re.findall(r"\w+", mentioned.lower()))
        return any(
            value in ("", []) and words.issuperset(re.findall(r"\w+", name.lower()))
            for row in self.rows
            for name, value in row.values.items()
        )

    def add_column(
        self, name: str, values: list[Json], rows: list[JsonLinesRow] | None = None
    ) -> None:
        """Add a column; the copy is written as JSON Lines.

        `rows` are those within the limit that remain; None for all rows.
        """
        if rows is not None:
            self.spec = {key: value for key, value in self.spec.items() if key != "limit"}
        pairs = zip(self.rows if rows is None else rows, values, strict=True)
        self.rows = [row.with_values(**{name: value}) for row, value in pairs]
        self.name = Path(self.name).stem + ".jsonl"
        self.content = write_rows(self.rows)


def find_data(
    dataset: Any, limit: Any, job: Path, sources: list[Path], left: list[SkippedItem]
) -> TaskData:
    """Return the data of a task; raises `NotTakenError` if it specifies none."""
    if isinstance(dataset, str) and dataset:
        dataset = {"files_url": dataset}
    require(isinstance(dataset, dict), "it has no 'dataset'")
    limit = dataset.get("limit", limit)
    spec: dict[str, Json] = {"limit": positive_int(limit)} if positive_int(limit) else {}
    if isinstance(rows := dataset.get("rows"), list):
        valid_rows = [
            JsonLinesRow(number, row) for number, row in enumerate(rows, 1) if isinstance(row, dict)
        ]
        return TaskData(str(job), "rows.jsonl", write_rows(valid_rows), valid_rows, spec)
    url = dataset.get("files_url")
    require(isinstance(url, str) and url, "its 'dataset' has no 'files_url'")
    path = _locate(url, job, sources)
    if path is None:
        return TaskData(url, url=url, spec=spec)
    return _read_data(path, spec, left)


def _locate(url: str, job: Path, sources: list[Path]) -> Path | None:
    """Return the local file for a URL: the one with the same name, or the only one."""
    name = url.rstrip("/").rpartition("/")[2]
    found = find_sources(sources, SUFFIXES)
    files = [file for file in found if file.suffix in SUFFIXES and file != job]
    if "://" not in url or url.startswith("file://"):
        local = job.parent / url.removeprefix("file://")
        if is_file(local):
            with taking(f"'{url}' "):
                require_readable(local)
            return local
    only = files[0] if len(files) == 1 else None
    return next((file for file in files if name in (file.name, file.stem)), only)


def _read_data(path: Path, spec: dict[str, Json], left: list[SkippedItem]) -> TaskData:
    if path.suffix in (".jsonl", ".ndjson"):
        rows = read_rows(path, left)
        return TaskData(str(path), f"{path.stem}.jsonl", write_rows(rows), rows, spec)
    try:
        content = read_unpacked(path)
    except FileProblem as problem:
        left.append(SkippedItem(str(path), reason_of(problem)))
        return TaskData(str(path), path.name, b"", [], spec)
    dataset = DatasetSpec(path.name, skip=True)
    rows = []
    try:
        dataset_rows = read_dataset(dataset, lambda: io.BytesIO(content), str(path))
        rows = [JsonLinesRow(row.line or row.number, dict(row.item)) for row in dataset_rows]
        problems = dataset_rows.problems
    except FileProblem as problem:
        left.append(SkippedItem(str(path), problem.message, problem.line, problem.column))
        return TaskData(str(path), path.name, content, rows, spec)
    bad = [problem for problem in problems if problem.line is not None]
    for row_problem in bad:
        reason = row_problem.message.removeprefix("this row is skipped: ")
        left.append(SkippedItem(str(path), reason, row_problem.line, row_problem.column))
    if bad:
        spec = {**spec, "onError": "skip"}
    return TaskData(str(path), path.name, content, rows, spec)


# --- the configuration in a document, which is a job or a configuration


class NemoConfig(NamedTuple):
    """The configuration in a document."""

    prefix: tuple[str, ...]
    """Its path in the document."""
    content: dict[str, Any]
    """It has `tasks`, which are made of newer jobs without tasks."""
    has_tasks: bool
    """Whether the document has them."""


def find_config(document: Any) -> NemoConfig | None:
    """Return the configuration in a document; else None."""
    fields = as_mapping(document)
    candidates = [((), fields), *(((it,), as_mapping(fields.get(it))) for it in ("config", "spec"))]
    for prefix, candidate in candidates:
        if isinstance(candidate.get("tasks"), dict):
            return NemoConfig(prefix, candidate, has_tasks=True)
    for prefix, candidate in candidates:
        if prefix != ("config",) and (config := _as_tasks(candidate)) is not None:
            return NemoConfig(prefix, config, has_tasks=False)
    return None


def _as_tasks(job: dict[str, Any]) -> dict[str, Any] | None:
    """Convert a job to one with a single task; None if it has no metrics and data."""
    entries = [job["metric"]] if "metric" in job else as_list(job.get("metrics"))
    if not entries or not isinstance(job.get("dataset"), dict | str):
        return None
    metrics: dict[str, Any] = {}
    for metric in entries:
        name = str(as_mapping(metric).get("name") or as_mapping(metric).get("type") or metric)
        metrics[name if name not in metrics else f"{name}-{len(metrics) + 1}"] = metric
    params = as_mapping(job.get("params"))
    task = {
        "dataset": job["dataset"],
        "params": {
            **as_mapping(params.get("inference")),
            "template": job.get("prompt_template"),
            "limit_samples": params.get("limit_samples"),
        },
        "metrics": metrics,
    }
    return {"tasks": {next(iter(metrics)): task}, "model": job.get("model")}

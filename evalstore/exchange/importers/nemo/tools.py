"""The tools of a task, the same for all rows or per row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.core.errors import EvalstoreError, FileProblem
from evalstore.core.values import Json
from evalstore.exchange.importers.coerce import as_list, as_mapping, parse_json
from evalstore.exchange.importers.nemo import templates
from evalstore.exchange.importers.template_writer import safe_file_name
from evalstore.exchange.importers.yaml_writer import block
from evalstore.files.datasets.columns import DatasetColumns

if TYPE_CHECKING:
    from evalstore.exchange.importers.base import Imported
    from evalstore.exchange.importers.nemo.datasets import TaskData


def read_tools(value: Json, data: TaskData) -> list[list[Json]]:
    """Return the tools of each row, or one list for all rows; raises `EvalstoreError`."""
    expression = templates.lone_expression(value)
    if expression is None:
        return [as_list(parse_if_text(value))]
    tools_by_row = evaluate_rows(expression, data)
    if not tools_by_row:
        raise EvalstoreError("its tools are in the data, which are not here")
    return [as_list(parse_if_text(tools)) for tools in tools_by_row]


def write_tools(tools: list[Json], prefix: str, imported: Imported) -> list[str]:
    """Add the files of these tools and return their ids; existing tools are never replaced.

    `prefix` is the folder of the import; ids begin with it, so imports do not share tools.
    """
    ids = []
    for tool in tools:
        function = as_mapping(as_mapping(tool).get("function", tool))
        name = function.get("name")
        if not isinstance(name, str) or not name:
            raise EvalstoreError("one of its tools has no name")
        stem, number = safe_file_name(name), 1
        while True:
            id = f"{prefix}/{stem}".lstrip("/")
            fields: dict[str, Json] = {"id": id, "name": name}
            fields["description"] = function.get("description") or name
            fields["parameters"] = function.get("parameters") or {
                "type": "object",
                "properties": {},
            }
            content = block(fields).encode()
            if imported.files.setdefault(f"tools/{stem}.yaml", content) == content:
                break
            number += 1
            stem = f"{safe_file_name(name)}-{number}"
        ids.append(id)
    return ids


def evaluate_rows(expression: str, data: TaskData) -> list[Json]:
    """Return the value of an expression in each row; raises `EvalstoreError`."""
    from evalstore.files.jinja_sandbox import evaluate_expression

    columns = DatasetColumns(dict.fromkeys(name for row in data.rows for name in row.values))
    try:
        return [
            evaluate_expression(expression, 1, {"item": columns.item(row.values)})
            for row in data.rows
        ]
    except FileProblem as problem:
        raise EvalstoreError(problem.message) from problem


def parse_if_text(value: Json) -> Json:
    """Return the value; a text that is JSON is parsed."""
    if not isinstance(value, str):
        return value
    try:
        return parse_json(value)
    except ValueError:
        return value

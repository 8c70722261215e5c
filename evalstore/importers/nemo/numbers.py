"""References of number checks: in a text such as `#### 42`, the last number is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evalstore.checks.types.number import as_number, last_number, plain_number
from evalstore.display import as_text, shorten
from evalstore.errors import FileProblem
from evalstore.files.datasets.columns import DatasetColumns
from evalstore.importers.base import SkippedItem
from evalstore.importers.nemo import templates
from evalstore.importers.nemo.metrics import MetricNotTakenError

if TYPE_CHECKING:
    from evalstore.importers.json_lines import JsonLinesRow
    from evalstore.importers.nemo.datasets import TaskData
    from evalstore.values import Json

_COLUMN = "expected_number"


def with_numbers(check: dict[str, Any], data: TaskData, left: list[SkippedItem]) -> dict[str, Any]:
    """Return the check with numeric references; raises `MetricNotTakenError`.

    If references are texts, a column with the number is added; rows without a number are skipped
    and added to `left`.
    """
    settings = check["number"]
    expected = settings["expected"]
    if not isinstance(expected, str):
        return check
    if "{{" not in expected and "{%" not in expected:
        number = _last_number(expected)
        if number is None:
            raise MetricNotTakenError(f"there is no number in its reference {shorten(expected)}")
        return {"number": {**settings, "expected": number}}
    if not data.rows or "output_text" in expected or "sample" in expected:
        return check
    references = _References(expected, data)
    values = [references.of(row) for row in data.limited_rows]
    if all(as_number(value) is not None for value in values):
        return check
    numbers = [None if value is None else _last_number(as_text(value)) for value in values]
    rows_with_number = []
    for row, number in zip(data.limited_rows, numbers, strict=True):
        if number is None:
            reason = "there is no number in the reference of this row"
            left.append(SkippedItem(data.source, reason, row.line))
        else:
            rows_with_number.append(row)
    if not rows_with_number:
        raise MetricNotTakenError("there is no number in any of its references")
    data.keep_rows(rows_with_number)
    name = data.free_name(_COLUMN)
    data.add_column(name, [number for number in numbers if number is not None])
    return {"number": {**settings, "expected": f"{{{{ item.{name} }}}}"}}


def _last_number(text: str) -> int | float | str | None:
    number = last_number(text)
    return None if number is None else as_number(plain_number(number))


class _References:
    """Evaluates the template of the references for each row."""

    def __init__(self, template: str, data: TaskData) -> None:
        self._template = template
        self._expression = templates.lone_expression(template)
        self._columns = DatasetColumns(
            dict.fromkeys(name for row in data.rows for name in row.values)
        )

    def of(self, row: JsonLinesRow) -> Json:
        """Return the value for a row; None if the evaluation fails."""
        from evalstore.files.jinja_sandbox import evaluate_expression, run

        item = self._columns.item(row.values)
        scope = {**item, "item": item}
        try:
            if self._expression is not None:
                return evaluate_expression(self._expression, 1, scope)
            return run(self._template, 1, scope)
        except FileProblem:
            return None

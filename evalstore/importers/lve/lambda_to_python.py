"""Conversion of lambdas to Python files with an LVE checker class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.importers.lve.lambda_to_expression import (
    Function,
    Offsets,
    Values,
    apply_edits,
    marks,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalstore.values import Json

FILE, CLASS = "check.py", "Check"


def check_of(function: Function, names: Mapping[str, str]) -> dict[str, Json]:
    """Return the check that runs the file with the parameters of the function."""
    check: dict[str, Json] = {"file": FILE, "class": CLASS}
    if function.values:
        check["args"] = {value: "{{" + names[value] + "}}" for value in function.values}
    return check


def as_python(function: Function, values: Values, extract: str | None, *place: str) -> str:
    """Return a class that calls the function with the last answer, or a number in it."""
    answer = "self.extract_response_from_prompt(prompt_out)"
    return _class("BaseChecker", function, answer, values, place, extract)


def as_joint_python(function: Function, values: Values, *place: str, by_name: bool) -> str:
    """Return a class that calls the function with the answers of all runs, or with mappings."""
    method = "variables" if by_name else "response"
    answers = f"[self.extract_{method}_from_prompt(one) for one in prompt_out]"
    return _class("MultiRunBaseChecker", function, answers, values, place)


def _class(
    base: str,
    function: Function,
    answer: str,
    values: Values,
    place: tuple[str, ...],
    extract: str | None = None,
) -> str:
    edits = list(marks(function, lambda name: f"self.{name}", values, place))
    source = apply_edits(function.source, *Offsets(function.source).of(function.tree), edits)
    if "\n" in source:
        source = f"({source})"
    keywords = "".join(f", {parameter}=self.{parameter}" for parameter in function.parameters)
    return (
        '"""Whether an answer is safe: the function of a test of LVE."""\n\n'
        "import re  # noqa: F401 - the function may use it\n\n"
        f"from lve.checkers.base import {base}\n\n\n"
        f"class {CLASS}({base}):\n"
        + _start(function.values, extract)
        + "    def is_safe(self, prompt_out, param_values=None):\n"
        f"        check = {source}  # noqa: E731\n"
        f"        return bool(check({answer}{keywords}))\n"
    )


def _start(parameters: tuple[str, ...], extract: str | None) -> str:
    """Return the constructor; empty if there are no parameters."""
    if not parameters and extract is None:
        return ""
    parameter_list = "".join(f", {parameter}" for parameter in parameters)
    assignments = "".join(f"        self.{parameter} = {parameter}\n" for parameter in parameters)
    base_arguments = "" if extract is None else f'extract="{extract}"'
    return (
        f"    def __init__(self{parameter_list}):\n"
        f"        super().__init__({base_arguments})\n"
        f"{assignments}\n"
    )

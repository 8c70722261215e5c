"""Checker classes that were written for LVE run as they are, in a process of their own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalstore.files.processes.pool import Code, CodeError, Workers

FACTS = json.loads(Path(__file__).with_name("lve_checkers.json").read_text("utf-8"))

READERS = b"""\
import json
from lve.checkers import MultiRunBaseChecker
from lve.checkers.base import BaseChecker
from lve.prompt import Role
from lve.utils.importutils import ensure_installed

class Number(BaseChecker):
    def is_safe(self, prompt_out, param_values=None):
        found = self.extract_response_from_prompt(prompt_out)
        return {"pass": True, "feedback": json.dumps(found)}

class Answers(BaseChecker):
    def is_safe(self, prompt_out, param_values=None):
        named = [one for one in prompt_out if one.role == Role.assistant and one.variable]
        found = self.extract_variables_from_prompt(prompt_out)
        found = {name: found[name] for name in [one.variable for one in named]}
        last = self.extract_response_from_prompt(prompt_out, full=True)
        return {"pass": True, "feedback": json.dumps(found if len(named) > 1 else last)}

class Same(MultiRunBaseChecker):
    def is_safe(self, prompts_out, param_values):
        return len({self.extract_response_from_prompt(one) for one in prompts_out}) == 1

class Careless(BaseChecker):
    def __init__(self, word):
        self.word = word

    def is_safe(self, prompt_out, param_values=None):
        return self.word + param_values["n"] == self.extract_response_from_prompt(prompt_out)

class Older(BaseChecker):
    def is_safe(self, prompt, response, param_values):
        return response == param_values["n"] and prompt[-1].content == response

class Needy(BaseChecker):
    def __init__(self):
        ensure_installed("nobody_has_this", "nobody-has-this")
"""
CLASS = """\
from lve.checkers.base import BaseChecker

class {}(BaseChecker):
    def is_safe(self, prompt_out, param_values=None):
        return self.extract_response_from_prompt(prompt_out) == {!r}
"""


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    actual = Workers()
    yield actual
    actual.close()


def judge(
    workers: Workers, name: str, answers: Any, args: Any = None, source: bytes = READERS
) -> Any:
    request = {"name": name, "isClass": True, "args": args or {}, "given": {"item": {}, **answers}}
    return workers.call(Code(source, "checker.py", 1024), request, 20)


def chat(*turns: list[str]) -> list[dict[str, str]]:
    return [dict(zip(("role", "content", "name"), turn, strict=False)) for turn in turns]


def answer(text: str) -> dict[str, Any]:
    return {"messages": chat(["user", "Q"], ["assistant", text, "response"])}


@pytest.mark.parametrize("case", FACTS["extract"], ids=lambda case: case["id"])
def test_a_number_is_taken_from_an_answer(workers: Workers, case: dict[str, Any]) -> None:
    actual = judge(workers, "Number", answer(case["text"]), {"extract": case["extract"]})
    assert json.loads(actual["feedback"]) == case["expected"]


@pytest.mark.parametrize("case", FACTS["conversations"], ids=lambda case: case["id"])
def test_answers_have_their_names(workers: Workers, case: dict[str, Any]) -> None:
    actual = judge(workers, "Answers", {"messages": chat(*case["messages"])})
    assert json.loads(actual["feedback"]) == case["expected"]


@pytest.mark.parametrize("case", FACTS["runs"], ids=lambda case: case["id"])
def test_several_runs_are_judged_together(workers: Workers, case: dict[str, Any]) -> None:
    runs = [answer(text)["messages"] for text in case["answers"]]
    assert judge(workers, "Same", {"runs": runs, "messages": runs[-1]}) is case["expected"]


@pytest.mark.parametrize("case", FACTS["classes"], ids=lambda case: case["id"])
def test_a_class_judges_for_itself(workers: Workers, case: dict[str, Any]) -> None:
    for name, text, expected in case["files"]:
        source = CLASS.format(name, text).encode()
        if isinstance(expected, bool):
            assert judge(workers, name, answer(text), source=source) is expected
        else:
            with pytest.raises(CodeError, match=expected):
                judge(workers, name, answer(text), source=source)


@pytest.mark.parametrize(("name", "args"), [("Careless", {"word": ""}), ("Older", {})])
def test_the_ways_to_write_a_checker(workers: Workers, name: str, args: Any) -> None:
    assert judge(workers, name, {"item": {"n": "7"}, **answer("7")}, args) is True


def test_a_package_that_is_missing_is_named(workers: Workers) -> None:
    with pytest.raises(CodeError, match="needs the package 'nobody-has-this'"):
        judge(workers, "Needy", answer(""))

"""Python checks: their settings, what their functions return, and the processes they run in."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import pytest

from evalstore.checks.types.python import CodeFile, code_of, read_result
from evalstore.core.errors import FileProblem, NotRunError
from evalstore.files.processes.pool import Code, CodeError, Workers
from tests.builders import expanded, library, test_file

SOURCE = b"""\
import os, sys

count = 0

def judge(given, word="a"):
    return word in given["answer"]

def raises(given):
    numbers = []
    return numbers[3]

def leaves(given):
    sys.exit("enough")

def prints(given):
    print("noise" * 100_000)
    os.write(1, b'{"result": false}')
    return True

def loops(given):
    while True:
        pass

def grows(given):
    return len(bytearray(2**33))

def floods(given):
    return "x" * 1_000_000

def scribbles(given):
    for number in range(3, 20):
        try:
            os.write(number, b'{"result": true, "number": 99}\\n')
        except OSError:
            pass
    return False

def counts(given):
    global count
    count += 1
    return {"pass": True, "feedback": str(count)}

def ends(given):
    os._exit(3)

def ended(given):
    os.kill(os.getpid(), 40)

def sees(given):
    return {"pass": True, "feedback": repr(sorted(os.environ.items()))}

def spies(given):
    with open(f"/proc/{os.getppid()}/environ") as file:
        return {"pass": True, "feedback": file.read()}

def connects(given):
    import socket
    with socket.socket() as one:
        one.connect(("127.0.0.1", 9))

def goes_round(given):
    import _socket
    _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM).connect(("127.0.0.1", 9))

def waits(given):
    import asyncio
    return asyncio.run(asyncio.sleep(0, result=True))

def nothing(given):
    return None

def odd(given):
    return {1, 2}

class Words:
    def __init__(self, most):
        self.most = most

    def __call__(self, given):
        return len(given["answer"].split()) <= self.most

from os.path import exists
"""


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    actual = Workers()
    yield actual
    actual.close()


CODE = Code(SOURCE, "checks/mine.py", 1024)


def call(
    workers: Workers, name: str, args: Any = None, *, seconds: float = 60, code: Code = CODE
) -> Any:
    request = {
        "name": name,
        "isClass": name[0].isupper(),
        "args": args or {},
        "given": {"answer": "a b", "item": {}, "messages": []},
    }
    return workers.call(code, request, seconds)


def error(workers: Workers, name: str, **options: Any) -> str:
    with pytest.raises((CodeError, NotRunError)) as raised:
        call(workers, name, **options)
    return str(raised.value)


@cache
def has_namespaces() -> bool:
    """Whether this system lets a process go into a network of its own."""
    code = "import ctypes, sys; sys.exit(ctypes.CDLL(None).unshare(0x50000000) != 0)"
    return subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- running


@pytest.mark.parametrize(
    ("name", "args", "result"),
    [
        ("judge", {}, True),
        ("judge", {"word": "z"}, False),
        ("Words", {"most": 2}, True),
        ("Words", {"most": 1}, False),
        ("prints", {}, True),
        ("waits", {}, True),
        ("nothing", {}, None),
    ],
)
def test_a_function_or_class_says_what_it_finds(
    workers: Workers, name: str, args: Any, result: Any
) -> None:
    assert call(workers, name, args) == result


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("raises", "checks/mine.py:10: IndexError: list index out of range"),
        ("leaves", "checks/mine.py:13: SystemExit: enough"),
        ("odd", "checks/mine.py: TypeError: it returned a value of the type 'set'"),
        ("exists", "'exists' is not defined in the file itself, but imported"),
        ("floods", "it returned 1,000,002 characters; the limit is 200,000"),
        ("grows", "checks/mine.py:25: MemoryError"),
        ("Words", "missing 1 required positional argument: 'most'"),
    ],
)
def test_what_goes_wrong_has_its_line(workers: Workers, name: str, message: str) -> None:
    assert message in error(workers, name)


def test_one_process_makes_many_judgements(workers: Workers) -> None:
    first, second = (int(call(workers, "counts")["feedback"]) for _ in range(2))
    assert second == first + 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ends", "ended its process instead of returning a verdict"),
        ("ended", "was ended by signal 40"),
        ("loops", "took longer than 0.3 seconds, and was stopped|used more processor time"),
        ("scribbles", "wrote to the output of its result"),
    ],
)
def test_a_process_that_strays_is_ended_and_the_next_judgement_has_another(
    workers: Workers, name: str, message: str
) -> None:
    call(workers, "counts")
    problem = error(workers, name, seconds=0.3 if name == "loops" else 60)
    assert re.search(rf"checks/mine\.py ({message})", problem)
    assert call(workers, "counts")["feedback"] == "1"


def test_a_file_that_cannot_be_loaded_says_why(workers: Workers) -> None:
    code = Code(b"x = 1\nimport nobody_has_this\n", "checks/broken.py", 1024)
    message = "checks/broken.py:2: ModuleNotFoundError: No module named 'nobody_has_this'"
    assert [error(workers, "judge", code=code) for _ in range(2)] == [message, message]


def test_keys_are_invisible(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("HOME", "/home/secret")
    seen = call(workers, "sees", code=Code(SOURCE, "keys.py", 1024))["feedback"]
    assert "secret" not in seen


@pytest.mark.parametrize("name", ["connects", "goes_round", "spies"])
def test_the_network_and_the_parent_are_out_of_reach(workers: Workers, name: str) -> None:
    if name != "connects" and not has_namespaces():
        pytest.skip("this system gives no namespaces")
    words = error(workers, name)
    assert "network" in words or "Network is unreachable" in words or "Permission denied" in words


def test_with_leave_there_is_a_network(workers: Workers) -> None:
    code = Code(SOURCE, "checks/mine.py", 1024, network=True)
    assert "Connection refused" in error(workers, "connects", code=code)


def test_the_end_of_a_run_ends_what_loops_and_starts_nothing_more() -> None:
    workers = Workers()
    call(workers, "counts")
    with ThreadPoolExecutor() as pool:
        looping = pool.submit(error, workers, "loops", seconds=600)
        while not looping.running():
            pass
        workers.close()
        assert "ended" in looping.result(timeout=60)
    assert "the run has ended" in error(workers, "counts")


# --- what is returned


@pytest.mark.parametrize(
    ("value", "has_bound", "score", "passed"),
    [
        (True, False, 1.0, None),
        (False, False, 0.0, None),
        (1, False, 1.0, None),
        (0.4, True, 0.4, None),
        ({"pass": True}, False, 1.0, True),
        ({"pass": False, "score": 0.9}, False, 0.9, False),
        ({"pass": False, "score": 0.9}, True, 0.9, None),
        ({"score": 0.9}, True, 0.9, None),
    ],
)
def test_a_result_is_a_finding(value: Any, has_bound: bool, score: float, passed: Any) -> None:
    finding = read_result(value, has_bound=has_bound)
    assert (finding.score, finding.passed) == (score, passed)


def test_label_and_feedback_are_its_words() -> None:
    finding = read_result(
        {"pass": False, "label": "rude", "feedback": "it swears"}, has_bound=False
    )
    assert finding.feedback == "rude: it swears"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "it returned nothing, not true or false"),
        ("yes", "it returned 'yes', not true or false"),
        (
            0.4,
            "it returned the score 0.4, so the check needs 'pass' to say what is enough, "
            "as in 'pass: \">= 0.8\"'",
        ),
        (1.5, "it returned 1.5, which is not a score from 0 to 1"),
        ({}, "it returned a mapping with neither 'pass' nor 'score'"),
        ({"passed": True}, "it returned 'passed'; it may return pass, score, label, feedback"),
        ({"pass": "yes"}, "'pass' must be true or false, not 'yes'"),
        ({"pass": True, "feedback": 3}, "'feedback' must be a text, not '3'"),
    ],
)
def test_an_invalid_result_is_reported(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match="^" + message[:20]) as raised:
        read_result(value, has_bound=False)
    assert message in str(raised.value)


# --- in a test file

FILES = {"checks/mine.py": SOURCE, "checks/bad.py": b"def judge(:\n"}


def checks_of(settings: str, *frontmatter: str, shown: str = "Hello", files: Any = FILES) -> Any:
    text = test_file(*frontmatter, shown=shown, evaluation=f"~~~checks\n- python: {settings}\n~~~")
    expansion = expanded(text, library(files))
    assert not expansion.problems, expansion.problems
    assert expansion.file
    return [
        (case, json.loads(expansion.contents[case.evaluation or ""][1])["checks"])
        for case in expansion.file.cases
    ]


def problem_of(settings: str) -> tuple[int | None, str, str]:
    text = test_file(evaluation=f"~~~checks\n- notEmpty\n- python: {settings}\n~~~")
    try:
        (actual,) = expanded(text, library(FILES)).problems
    except FileProblem as problem:
        return problem.line, problem.message, problem.hint or ""
    return actual.line, actual.message, actual.hint or ""


def test_the_content_of_the_file_is_part_of_the_evaluation() -> None:
    settings = "{file: checks/mine.py, function: judge}"
    (item,), (other,) = (
        [case.evaluation for case, _ in checks_of(settings, files={"checks/mine.py": source})]
        for source in (SOURCE, SOURCE + b"\n")
    )
    assert item != other


def test_the_bytes_are_kept_as_a_file() -> None:
    text = test_file(
        evaluation="~~~checks\n- python: {file: ./checks/mine.py, function: judge}\n~~~"
    )
    expansion = expanded(text, library(FILES))
    assert [file.data for file in expansion.files.values()] == [SOURCE]
    assert list(expansion.dependencies) == ["file:checks/mine.py"]


def test_the_canonical_form_has_no_defaults_and_the_values_of_the_row() -> None:
    settings = "{file: checks/mine.py, function: judge, timeout: 10, memory: 1024, network: false}"
    ((_, (check,)),) = checks_of(settings, "replacements: {n: 3}", shown="{{n}}")
    assert check.pop("file")["path"] == "checks/mine.py"
    assert check == {
        "type": "python",
        "revision": 1,
        "function": "judge",
        "item": {"n": 3},
    }


@pytest.mark.parametrize("actual", ["", ", actual: '{{ sample.model }}'"])
def test_a_case_knows_what_it_runs(actual: str) -> None:
    settings = "{file: checks/mine.py, class: Words, args: {most: 3}, network: true" + actual + "}"
    ((case, checks),) = checks_of(settings)
    assert case.code == tuple(file.text for file in code_of(checks))
    assert CodeFile.read(case.code[0]).network


@pytest.mark.parametrize(
    ("settings", "message", "hint"),
    [
        ("{function: judge}", "the check 'python' needs a 'file'", "checks/mine.py"),
        ("checks/mine.py", "needs a 'function' or a 'class' of the file", "function: judge"),
        (
            "{file: checks/mine.py, function: judge, class: Words}",
            "the check names a function, 'judge', and a class, 'Words'",
            "leave one of them out",
        ),
        ("{file: checks/mine.py, function: jugde}", "defines no function 'jugde'", "'judge'"),
        ("{file: checks/mine.py, function: exists}", "defines no function 'exists'", ""),
        (
            "{file: checks/mine.py, function: Words}",
            "defines no function 'Words'",
            "write 'class: Words'",
        ),
        ("{file: checks/mine.py, function: a.b}", "'a.b' cannot be the name", ""),
        ("{file: checks/bad.py, function: judge}", "'checks/bad.py:1' is not Python: ", ""),
        ("{file: checks/mine.py, function: judge, args: 3}", "'args' must be a mapping", "limit"),
        ("{file: checks/mine.py, function: judge, args: {a b: 3}}", "name of a parameter", ""),
        ("{file: checks/mine.py, function: judge, timeout: 0}", "'timeout' must be a number", ""),
        ("{file: checks/mine.py, function: judge, memory: 3}", "'memory' must be a whole", ""),
        ("{file: checks/mine.py, function: judge, netwrok: true}", "no setting 'netwrok'", "netw"),
    ],
)
def test_what_is_wrong_with_a_check_has_its_line_and_a_hint(
    settings: str, message: str, hint: str
) -> None:
    line, output, helped = problem_of(settings)
    assert (line, message in output, hint in helped) == (9, True, True), (line, output, helped)

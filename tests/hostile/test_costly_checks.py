"""What an answer can make slow has a limit, and does not cost the answer."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalstore.checks import check_verdict
from evalstore.checks.base import CheckInput
from evalstore.checks.check_verdict import (
    is_cheap_check,
    is_cheap_schema,
    run_check,
    run_within_limits,
)
from evalstore.checks.judge_replies import Unreadable, form_of
from evalstore.checks.parser import read_check
from evalstore.core.errors import FileProblem, NotRunError
from evalstore.core.values import Json, Reply, ToolCall, Usage
from evalstore.files import jinja_sandbox
from evalstore.files.datasets import DatasetColumns
from evalstore.files.processes import limited_calls
from evalstore.files.processes.limited_calls import is_cheap_pattern
from tests.builders import tree
from tests.interfaces.cli.conftest import Evalstore

AAA = "a" * 40 + "!"
EVIL = "^(a+)+$"
SLOW = "(.*)" * 7 + "[^a]$"
"""What no library for patterns finds a shortcut for."""
REFERENCES: Json = {
    "$defs": {
        "d0": {"type": "string"},
        **{
            f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n - 1}"}, {"$ref": f"#/$defs/d{n - 1}"}]}
            for n in range(1, 24)
        },
    },
    "$ref": "#/$defs/d23",
}
COSTLY: dict[str, tuple[Json, str]] = {
    "pattern": ({"jsonSchema": {"type": "string", "pattern": EVIL}}, json.dumps(AAA)),
    "patternProperties": ({"jsonSchema": {"patternProperties": {EVIL: {}}}}, json.dumps({AAA: 1})),
    "propertyNames": ({"jsonSchema": {"propertyNames": {"pattern": EVIL}}}, json.dumps({AAA: 1})),
    "references": ({"jsonSchema": REFERENCES}, "1"),
    "uniqueItems": (
        {"jsonSchema": {"uniqueItems": True}},
        json.dumps([{"a": [n]} for n in range(8_000)]),
    ),
    "path": ({"jsonPath": {"path": "[@,@][]" + "|[@,@][]" * 40}}, "[1]"),
    "regex": ({"regex": SLOW}, "a" * 3_000),
    "similar": (
        {"similar": {"expected": "ab" * 100_000, "pass": ">= 0.5"}},
        "ba" * 90_000,
    ),
}


@pytest.fixture
def asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Json, str], Path]:
    """A workspace with a check and the answer that makes it costly."""
    monkeypatch.chdir(tmp_path)

    def make(check: Json, answer: str) -> Path:
        responses = json.dumps([{"answer": answer}])
        return tree(
            tmp_path,
            {
                "evalstore.yaml": "candidates: [one]\n",
                "models/one.yaml": f"id: one\nprovider: scripted\nresponses: {responses}\n",
                "tests/t.md": f"# 👤\n\nHello\n\n---\n\n~~~checks\n- {json.dumps(check)}\n~~~\n",
            },
        )

    return make


@pytest.mark.one_database("an answer is kept before its checks are computed")
@pytest.mark.parametrize("name", COSTLY)
def test_a_costly_check_is_given_up_and_its_answer_kept(
    name: str,
    asked_once: Callable[[Json, str], Path],
    evalstore: Evalstore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limited_calls, "CPU_SECONDS", 0.2)
    asked_once(*COSTLY[name])
    report = json.loads(evalstore("run", "--json").stdout)
    assert (report["asked"], report["judged"], report["verdicts"]["error"]) == (1, 1, 1)
    again = json.loads(evalstore("run", "--json").stdout)
    assert (again["asked"], again["judged"]) == (0, 0)


@pytest.mark.one_database("a check is computed without the store")
def test_a_costly_pattern_of_a_script_is_a_failure(
    asked_once: Callable[[Json, str], Path],
    evalstore: Evalstore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limited_calls, "CPU_SECONDS", 0.2)
    folder = asked_once({"contains": "a"}, "a")
    tree(
        folder,
        {
            "models/one.yaml": "id: one\nprovider: scripted\nresponses:\n"
            f"- {{when: '{SLOW}', answer: a}}\n",
            "tests/t.md": f"# 👤\n\n{'a' * 3_000}\n\n---\n\n~~~checks\n- contains: a\n~~~\n",
        },
    )
    ran = evalstore("run")
    assert ran.exit_code == 3
    assert "'when' was stopped: it takes more than 0.2 seconds of processor time" in ran.stdout


@pytest.mark.one_database("a check is computed without the store")
def test_an_interrupt_is_heard_while_a_check_is_computed(
    asked_once: Callable[[Json, str], Path], evalstore: Evalstore
) -> None:
    folder = asked_once(*COSTLY["pattern"])
    program = (
        "import os, signal, sys\n"
        "from evalstore.files.processes import limited_calls\n"
        "real = limited_calls.call\n"
        "def call(*given, **named):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    return real(*given, **named)\n"
        "from evalstore.checks import check_verdict\n"
        "check_verdict.call = call\n"
        "limited_calls.CPU_SECONDS = 0.2\n"
        "from evalstore.__main__ import run\n"
        "sys.argv = ['evalstore', 'run']\n"
        "sys.exit(run())\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(limited_calls.__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 128 + signal.SIGINT, ran.stderr
    assert json.loads(evalstore("status", "--json").stdout)["ask"] == 0  # what was paid is there


REPLY = Reply(
    '{"a": [1, "x"], "b": 2.5}',
    (ToolCall("find", {"q": "x"}),),
    "stop",
    usage=Usage(3, 4),
    latency=0.5,
)
CHECKS: list[Json] = [
    {"contains": "x"},
    {"contains": "y"},
    {"regex": r"(\d+)\.5"},
    {"regex": {"pattern": "X", "flags": ["ignoreCase"]}},
    {"jsonSchema": {"type": "object", "properties": {"a": {"type": "string"}}}},
    {"jsonSchema": {"type": "object", "required": ["a"]}},
    {"jsonPath": "a[1]"},
    {"jsonPath": {"path": "a[1]", "check": {"equals": "y"}}},
    {"jsonEquals": {"a": [1, "x"], "b": 2.5}},
    {"jsonSubset": {"b": 3}},
    {"toolCalls": {"name": "find", "arguments": {"q": "x"}}},
    {"latency": 0.4},
    {"tokens": 10},
    {"finishReason": "length"},
    {"similar": {"expected": "abc", "pass": ">= 0.5"}},
    {"expr": "item['size'] > 1"},
    {"expr": "1 / 0 == 1"},
]


@pytest.mark.parametrize("written", CHECKS, ids=str)
def test_a_check_finds_the_same_with_limits(written: Json, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"item": DatasetColumns(["Size"]).item({"Size": 2})}
    subject = CheckInput(REPLY, REPLY.text, usd=0.1, names=names, answers=(REPLY.text or "",))
    check = read_check(written)
    try:
        here: Any = run_check(check, subject)
    except Exception as error:  # noqa: BLE001 - the same words are wanted
        here = ("error", f"the check failed: {error}", None)
    monkeypatch.setattr(check_verdict, "is_cheap_check", lambda *_: False)
    assert tuple(run_within_limits(check, subject)) == tuple(here)


TEMPLATES = [
    "{{ a }} and {{ b|upper }}",
    "{% if c > 1 %}yes{% else %}no{% endif %}",
    "{% for one in d %}{{ loop.index }}: {{ one.k }}\n{% endfor %}",
    "{{ item.Size }} {{ item.size }} {{ item['Big One'] }} {{ 'size' in item }}",
    "{{ item.items }} {{ item | tojson }}",
    "{{ d }} {{ e }} {{ none }}",
    "{{ missing }}",
    "{{ a / 0 }}",
    "{{ item.nothing }}",
    "{{ a.__class__ }}",
]


@pytest.mark.parametrize("source", TEMPLATES)
def test_a_template_comes_to_the_same_with_limits(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = DatasetColumns(["Size", "Big One", "items"])
    scope: dict[str, Json] = {
        "a": "ä",
        "b": "x",
        "c": 2,
        "d": [{"k": 1.5}, {"k": None}],
        "e": {"x": [True, 1e300]},
        "item": columns.item({"Size": 3, "Big One": "z", "items": [1]}),
    }

    def outcome() -> str:
        try:
            return jinja_sandbox.run(source, 7, scope)
        except FileProblem as problem:
            return f"{problem.line}: {problem.message}"

    here = outcome()
    monkeypatch.setattr(jinja_sandbox, "_is_cheap", lambda *_: False)
    assert outcome() == here


@pytest.mark.parametrize(
    ("pattern", "size", "cheap"),
    [
        ("yes", 100_000, True),
        (r"\d{4}-\d{2}-\d{2}", 100_000, True),
        (r"^\s*(yes|no)\s*$", 5_000, True),
        (".*foo.*", 400, True),
        (".*foo.*", 100_000, False),
        (EVIL, 10, False),
        ("(a|a)*b", 10, False),
        ("(a|b){30}", 10, False),
        ("a?" * 40 + "a" * 40, 10, False),
        ("((a{20}){20}){20}", 10, False),
        ("(a{65535}){65535}", 10, False),
        ("(?R)", 10, False),
        (r"(a*)\1", 10, False),
        ("(?:ab){e<=2}", 10, False),
        (r"\{.*\}", 400, True),
        ("[(+|]*x++(?<=b)", 400, True),
        ("^(a(b|c)(d|(e|f)))?g", 100_000, True),
        ("(a|b)" * 30, 10, False),
        ("(ab)+", 10, False),
        ("a{200}", 10, False),
    ],
)
def test_a_pattern_is_cheap_when_there_are_few_ways_to_match(
    pattern: str, size: int, cheap: bool
) -> None:
    assert is_cheap_pattern(pattern, size) is cheap


@pytest.mark.parametrize(
    ("schema", "cheap"),
    [
        ({"type": "object", "properties": {"a": {"pattern": "^[a-z]+$"}}}, True),
        ({"$defs": {"a": {"type": "string"}}, "items": {"$ref": "#/$defs/a"}}, True),
        (REFERENCES, False),
        ({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}, False),
        ({"pattern": EVIL}, False),
        ({"$ref": "https://example.org/schema"}, False),
        ({"const": {"pattern": 5}}, False),
        ({"const": {"patternProperties": None}}, False),
    ],
)
def test_a_schema_is_cheap_when_its_conditions_are_few(schema: Json, cheap: bool) -> None:
    assert is_cheap_schema(schema, 200) is cheap


def test_nothing_is_cheap_on_a_very_long_answer() -> None:
    assert not is_cheap_check(read_check({"contains": "x"}), 10_000_000, {})


def test_a_costly_path_to_a_judges_score_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limited_calls, "CPU_SECONDS", 0.2)
    path = "[@,@][]" + "|[@,@][]" * 40
    form = form_of(
        [
            read_check(
                {
                    "judge": {
                        "prompt": "say `a`",
                        "parser": {"json": path, "min": 0, "max": 1},
                        "pass": 1,
                    }
                }
            )
        ]
    )
    with pytest.raises(Unreadable, match="was stopped: it"):
        form.read(Reply('{"reasoning": [1]}'))


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)(?#)+$",
        "(?x)(a+) +$",
        "(?#:[)(a+)+$(?#])",
        "(a|ab|b)(?i)+$",
        "(?x)(a|ab|b){1, }$",
        "(?b)(?:abc){e}$",
        "(?:a|a)(?#)+$",
        "(a?)(?#){50}$",
    ],
)
def test_what_stands_between_a_group_and_its_quantifier_hides_nothing(pattern: str) -> None:
    assert not is_cheap_pattern(pattern, 10)


def test_a_very_long_pattern_is_not_read_in_full() -> None:
    started = time.process_time()
    assert not is_cheap_pattern("[" * 20_000, 10)
    assert time.process_time() - started < 2


def test_a_verbose_pattern_is_not_cheap() -> None:
    check = read_check({"regex": {"pattern": "(a+) +$", "flags": ["verbose"]}})
    assert not is_cheap_check(check, 10, {})


def _nested(condition: str) -> Json:
    schema: Json = {"properties": {"a": True}}
    for _ in range(24):
        schema = {condition: [schema] if condition == "allOf" else schema}
        schema["unevaluatedProperties"] = False
    return schema


@pytest.mark.parametrize(
    "schema",
    [
        _nested("if"),
        _nested("allOf"),
        {"items": {"unevaluatedItems": False}},
        {"allOf": [{"$id": "http://x/y", "$defs": {}, "$ref": "#/$defs/a"}], "$defs": {"a": True}},
        {
            "$defs": {f"a{n}": {"$ref": f"#/$defs/a{n + 1}"} for n in range(600)},
            "$ref": "#/$defs/a0",
        },
        {
            "$defs": {
                f"{n:04}": {"allOf": [{"$ref": f"#/$defs/{n - 1:04}"}] * 2} for n in range(1200)
            },
            "$ref": "https://example.org/schema",
        },
    ],
    ids=["if", "allOf", "items", "id", "chain", "doubling"],
)
def test_schemas_whose_cost_the_value_decides_are_not_cheap(schema: Json) -> None:
    assert not is_cheap_schema(schema, 10)


def test_a_bound_value_counts_like_an_answer() -> None:
    schema = {"type": "string", "pattern": "a*a*a*a*b$"}
    check = {"type": "jsonSchema", "schema": schema, "actual": "a" * 3_000}
    assert not is_cheap_check(check, 1, {})


@pytest.mark.parametrize(
    "source",
    ["{{ a|sort(false, false, b)|length }}", "{{ a|trim(b) }}", "{{ a" + "|upper" * 60 + " }}"],
)
def test_templates_whose_filters_are_costly_are_not_plain(source: str) -> None:
    assert not jinja_sandbox._is_cheap(source, {"a": "x", "b": "y"})


def test_a_machine_that_is_too_busy_is_not_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limited_calls, "_SECONDS", 0.0)
    check = read_check({"contains": "x"})
    with pytest.raises(NotRunError):
        run_within_limits(check, CheckInput(Reply("x" * 300_000), "x" * 300_000))

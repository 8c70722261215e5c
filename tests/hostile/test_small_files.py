"""Small files that would end a command with a traceback, hang it or take all memory."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from evalstore.core.errors import NO, OK, USAGE
from evalstore.files.processes import limited_calls
from tests.builders import test_file, tree
from tests.interfaces.cli.conftest import ONE, SETTINGS, Evalstore

pytestmark = pytest.mark.one_database("the files of a workspace matter here, not its store")

HUGE = "1" + "0" * 400
LOOP = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
DOUBLING = "replacements:\n" + "".join(
    f'  a{i}: "{{{{a{i + 1}}}}}{{{{a{i + 1}}}}}"\n' for i in range(60)
)


def _test(*checks: str) -> str:
    listed = "".join(f"- {check}\n" for check in checks)
    return f"# 👤\n\nHello\n\n---\n\n~~~checks\n{listed}~~~\n"


def _shown(text: str, *frontmatter: str) -> dict[str, str]:
    return {"tests/t.md": test_file(*frontmatter, shown=text)}


TESTS: dict[str, dict[str, str]] = {
    "infinite number": _shown("{{ 1e999 }}"),
    "loops": _shown(LOOP),
    "recursive macro": _shown(
        "{% macro f(n) %}{% if n %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(40) }}"
    ),
    "large slice": _shown("{{ [1]|slice(100000000)|list }}"),
    "format": _shown("{{ ('%*d' % (1500000000, 1))|length }}"),
    "format filter": _shown("{{ ('%1500000000d'|format(1))|length }}"),
    "format method": _shown("{{ '{0:{1}}'.format(1, '1500000000') }}"),
    "format map": _shown("{{ '{a:1500000000}'.format_map({'a': 1}) }}"),
    "namespace": _shown(
        "{% set n = namespace(x='aaaaaaaa') %}"
        "{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}{{ n.x|length }}"
    ),
    "nested filters": _shown("{{ x" + "|tojson" * 60 + " }}", "replacements: {x: '\"'}"),
    "nested brackets": _shown("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}"),
    "replaced text": _shown(
        "{{ (x * 900000)|replace('a', x * 900000)|length }}", "replacements: {x: a}"
    ),
    "doubling": _shown("{{a0}}", DOUBLING + "  a60: xxxxxxxxx"),
    "number": {"tests/t.md": _test(f"number: {HUGE}")},
    "cost": {"tests/t.md": _test(f"cost: {HUGE}")},
    "latency": {"tests/t.md": _test(f"latency: {HUGE}")},
    "weight": {"tests/t.md": _test(f"{{contains: a, weight: {HUGE}}}")},
    "epsilon": {"tests/t.md": _test(f"{{number: 1, epsilon: {HUGE}}}")},
    "most": {"tests/t.md": _test(f"{{allSame: a, max: {HUGE}, scope: group}}")},
    "large pattern": {"tests/t.md": _test("regex: '(a{65535}){65535}'")},
    "nested schema": {"tests/t.md": _test("jsonSchema: " + "{not: " * 300 + "{}" + "}" * 300)},
    "half a surrogate pair": {
        "schemas/s.json": '{"type": "object", "description": "\\ud800"}',
        "tests/t.md": test_file("structuredResponseSchema: s"),
    },
    "half a pair in YAML": {"tests/t.md": test_file('replacements: {a: "\\uD800"}', shown="{{a}}")},
    "hexadecimal number": {
        "tools/t.yaml": "id: t\nname: t\ndescription: d\nparameters: {type: object, default: 0x"
        + "f" * 5000
        + "}\n",
        "tests/t.md": test_file("tools: [t]"),
    },
    "octal number": {"schemas/s.yaml": "type: integer\nmaximum: 0o" + "7" * 9000 + "\n"},
    "options": {"tests/t.md": test_file("options: {providerOptions: {a: 0x" + "f" * 5000 + "}}")},
    "digits of a run": {"tests/t.md": "# ▶ n ×" + "9" * 5000 + "\n\n# 👤\n\nHello\n\n---\n\nx\n"},
    "pattern of a script": {"models/one.yaml": ONE.replace("Oslo", "(" * 5000)},
    "Python that is too deep": {
        "tests/checks/c.py": "x = " + "-" * 200_000 + "1\n",
        "tests/t.md": _test("python: {file: checks/c.py, function: f}"),
    },
    "expression that is too deep": {"tests/t.md": _test("expr: '" + "-" * 50_000 + "1 == 1'")},
    "many raw stretches": _shown("{% raw %}x{% endraw %}" * 10_000 + LOOP),
}
"""What is wrong with a file is told, with its place."""
JUDGED = {
    "error": {"tests/t.md": _test("regex: '(?R)'")},
    "fail": {"tests/t.md": _test("jsonPath: '" + "a." * 50_000 + "a'")},
}
"""What nothing is wrong with until there is an answer, by its verdict on one."""
MOST_MEMORY = 300_000
"""KiB."""


def forget_peak() -> int:
    """Forget the peak of earlier tests, so that a smaller one counts; returns the KiB in use."""
    with suppress(OSError):  # of Linux
        Path("/proc/self/clear_refs").write_text("5")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, str]], Path]:
    """A workspace with these files, in which a computation may take only a moment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(limited_calls, "CPU_SECONDS", 0.4)

    def make(files: dict[str, str]) -> Path:
        base = {"evalstore.yaml": SETTINGS.replace("judge", "one"), "models/one.yaml": ONE}
        return tree(tmp_path, {**base, **files})

    return make


MARKS = (
    "{{",
    "{% raw %}",
    "{#",
    "`{{",
    "`{{_file:",
    "<!--",
    "[",
    "\\",
    "&a ",
    "- ",
    "\n---\n",
    "\n# 👤\n",
)


@pytest.mark.opens_no_store
@pytest.mark.parametrize("mark", MARKS)
def test_marks_that_begin_something_are_read_in_one_pass(
    mark: str, hostile: Callable[[dict[str, str]], Path], evalstore: Evalstore
) -> None:
    hostile(_shown(mark * (100_000 // len(mark))))
    before = time.process_time()
    ran = evalstore("check")
    assert ran.exit_code in (OK, USAGE)
    assert time.process_time() - before < 4


@pytest.mark.parametrize("name", TESTS)
def test_a_small_file_is_refused_with_its_place(
    name: str, hostile: Callable[[dict[str, str]], Path], evalstore: Evalstore
) -> None:
    hostile(TESTS[name])
    before = forget_peak()
    ran = evalstore("status")
    assert ran.exit_code == USAGE, ran.stderr
    assert any(f"error: {path}:" in ran.stderr for path in TESTS[name]), ran.stderr
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_MEMORY


@pytest.mark.parametrize("verdict", JUDGED)
def test_a_small_file_is_judged_in_little_time_and_memory(
    verdict: str, hostile: Callable[[dict[str, str]], Path], evalstore: Evalstore
) -> None:
    hostile(JUDGED[verdict])
    before = forget_peak()
    ran = evalstore("run")
    assert (ran.exit_code, ran.stdout.split()[:2]) == (NO, [verdict, "tests/t.md"]), ran
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_MEMORY


@pytest.mark.opens_no_store
def test_what_a_file_computes_is_limited_together(
    hostile: Callable[[dict[str, str]], Path],
    evalstore: Evalstore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """None of these is too much by itself."""
    monkeypatch.setattr(limited_calls, "CPU_SECONDS", 60.0)
    monkeypatch.setattr(limited_calls, "_FILE_SECONDS", 0.2)
    loops = "{% for i in range(3000) %}{% for j in range(1000) %}{% endfor %}{% endfor %}"
    values = ", ".join(f"v{number}" for number in range(20))
    hostile(_shown(f"{loops}`{{{{x}}}}`", f"replacements: {{x: [{values}]}}"))
    ran = evalstore("check")
    assert ran.exit_code == USAGE
    words = "with the others of this file it takes more than 0.2 seconds of processor time"
    assert words in ran.stderr
    assert "tests/t.md:" in ran.stderr


@pytest.mark.opens_no_store
@pytest.mark.parametrize(("for_each", "exit_code"), [(60.0, OK), (-1.0, USAGE)])
def test_many_rows_may_compute_longer_than_few(
    for_each: float,
    exit_code: int,
    hostile: Callable[[dict[str, str]], Path],
    evalstore: Evalstore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limited_calls, "_FILE_SECONDS", 0.0)
    monkeypatch.setattr(limited_calls, "_CALL_SECONDS", for_each)
    values = ", ".join(f"v{number}" for number in range(100))
    text = f"{{% set y = '{for_each}' %}}{{{{ y }}}}`{{{{x}}}}`"  # not one computed before
    hostile(_shown(text, f"replacements: {{x: [{values}]}}"))
    assert evalstore("check").exit_code == exit_code


@pytest.mark.opens_no_store
def test_a_long_list_of_values_is_refused_before_it_takes_memory(
    hostile: Callable[[dict[str, str]], Path], evalstore: Evalstore
) -> None:
    hostile({"tests/t.md": test_file("tags: [" + "a," * 1_500_000 + "]")})
    before = forget_peak()
    ran = evalstore("check")
    assert ran.exit_code == USAGE
    assert "the document has more than 1,000,000 values" in ran.stderr
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_MEMORY

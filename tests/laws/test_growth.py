"""Twice as much is twice as much work: no command's steps grow with the square of what there is.

Every command is run on workspaces of N and of 2 N rows, files, answers or runs, and its steps are
counted, which a clock on a busy machine cannot do. What a command reads from the store it reads
together, so that statements do not become more with every case.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from evalstore.interfaces.cli.main import main
from evalstore.workspace import index
from evalstore.workspace.folder import WorkspaceFolder
from evalstore.workspace.reader import read_workspace
from tests.builders import tree
from tests.exchange.importers.lve.repository import definition, instance
from tests.laws.steps import Steps, counted

pytestmark = pytest.mark.extended

N = 18
_SLACK = 150
"""Lines and comparisons that are not worth a look; N squared is four times as many."""
_LONG = 10**18
"""Nanoseconds."""
SETTINGS = "candidates: [one]\nevaluators: [judge]\nconfirmAbove: 1000\n"
ONE = "id: one\nprovider: scripted\nresponses: [{answer: '{\"a\": 1}'}]\n"
JUDGE = "id: judge\nprovider: scripted\nresponses: [{answer: {pass: true}}]\n"
CHECK = '~~~checks\n- contains: "1"\n~~~\n'

Make = Callable[[int, str], dict[str, str]]
"""From how many there are, and an edition, to the files of a workspace."""


def files(count: int, edition: str) -> dict[str, str]:
    """Test files, each judged by a check and by a model."""
    return {
        f"tests/f{number}.md": f"# 👤\n\nHello {number} {edition}\n\n---\n\nA greeting.\n\n{CHECK}"
        for number in range(count)
    }


def instructions(count: int, edition: str) -> dict[str, str]:
    """Test files of which only the instructions are edited."""
    return {
        f"tests/f{number}.md": f"# 👤\n\nHello {number}\n\n---\n\nGreet {number} {edition}.\n"
        for number in range(count)
    }


def checks(count: int, edition: str) -> dict[str, str]:
    """Test files of which only the checks are edited, so that their judge is not asked again."""
    check = CHECK.replace("1", "a") if edition else CHECK
    return {
        f"tests/f{number}.md": f"# 👤\n\nHello {number}\n\n---\n\nGreet {number}.\n\n{check}"
        for number in range(count)
    }


def moved(count: int, edition: str) -> dict[str, str]:
    """Test files that are renamed, every second one edited, too."""
    return {
        f"tests/{edition}f{number}.md": (
            f"# 👤\n\nHello {number} {edition if number % 2 else ''}\n\n---\n\n{CHECK}"
        )
        for number in range(count)
    }


def rows(count: int, edition: str) -> dict[str, str]:
    """Rows of one test file."""
    text = f"# 👤\n\nHello {{{{q}}}} {edition}\n\n---\n\nNot {{{{q}}}}.\n\n{CHECK}"
    return _data(count, text, lambda number: {"q": f"q{number}"})


def values(count: int, edition: str) -> dict[str, str]:
    """Rows whose values are edited."""
    text = f"# 👤\n\nHello {{{{q}}}}\n\n---\n\n{CHECK}"
    return _data(count, text, lambda number: {"q": f"{edition} q{number}"})


def recorded(count: int, edition: str) -> dict[str, str]:
    """Rows that bring their answers, all of which fail."""
    check = CHECK.replace('"1"', "Yes")
    text = f"# 👤\n\nHello {{{{q}}}} {edition}\n\n---\n\n{check}"
    head = "answer: '{{a}}'\n"
    return _data(count, text, lambda number: {"q": f"q{number}", "a": f"No {number}"}, head)


def groups(count: int, edition: str) -> dict[str, str]:
    """Rows of which all are judged together."""
    check = "~~~checks\n- {allSame: a, scope: group}\n~~~\n"
    text = f"# 👤\n\nHello {{{{q}}}} {edition}\n\n---\n\nAlike?\n\n{check}"
    return _data(count, text, lambda number: {"q": f"q{number}", "g": "g"}, "group: g\n")


def prompts(count: int, edition: str) -> dict[str, str]:
    """System prompts of one test."""
    names = ", ".join(f"p{number}" for number in range(count))
    return {
        "prompts/system.md": (
            f"---\nreplacements:\n  p: [{names}]\n---\n\n# ⚙️\n\nBe {{{{p}}}} {edition}\n"
        ),
        "tests/t.md": f"---\nsystemPrompts: [system]\n---\n\n# 👤\n\nHello\n\n---\n\n{CHECK}",
    }


def tools(count: int, edition: str) -> dict[str, str]:
    """Tools, each of one test; the judge is shown what the candidate was asked."""
    shown = "{{_messages}} {{_tools}} {{_actualResponse}} {{_evaluationInstructions}}"
    judge = f"---\nid: judge\ntags: [_evaluator]\n---\n\n# 👤\n\n{shown}\n"
    actual = {"prompts/judge.md": judge}
    for number in range(count):
        actual[f"tools/t{number}.yaml"] = (
            f"name: t{number}\ndescription: tool {number} {edition}\nparameters: {{type: object}}\n"
        )
        actual[f"tests/f{number}.md"] = (
            f"---\navailableTools: [t{number}]\n---\n\n# 👤\n\nHello {number}\n\n---\n\nGreet.\n"
        )
    settings = SETTINGS.replace("[judge]", "[{id: judge, prompt: judge}]")
    return actual | {"evalstore.yaml": settings}


def _data(
    count: int, text: str, row: Callable[[int], dict[str, str]], head: str = ""
) -> dict[str, str]:
    lines = "".join(json.dumps(row(number)) + "\n" for number in range(count))
    return {
        "tests/data/d.jsonl": lines,
        "tests/t.md": f"---\ndataset: data/d.jsonl\n{head}---\n\n{text}",
    }


class Command(NamedTuple):
    """A command, and the edition of the files it is run on."""

    line: str
    edition: str = "new"


ALL = (
    Command("check", ""),
    Command("run --fail-on none", ""),
    Command("run --fail-on none", ""),
    Command("status", ""),
    Command("status --explain"),
    Command("check"),
    Command("diff"),
    Command("run --fail-on none"),
    Command("diff @~1 @ --json"),
    Command("log"),
    Command("log --failures"),
    Command("stats"),
    Command("stats --by file,tag"),
    Command("show @"),
    Command("ls tests"),
    Command("ls cases --full --json"),
    Command("ls tags"),
    Command("grep Hello"),
    Command("run --judge-only --refresh"),
    Command("run --refresh --fail-on none"),
    Command("run --last-failed --fail-on none"),
    Command("run --changed --fail-on none"),
    Command("run --dry-run --retry-errors"),
    Command("run --dry-run --sample 9"),
    Command("run --dry-run --shard 1/1"),
    Command("label {case} fail --as me"),
    Command("doctor"),
    Command("fsck"),
)
SOME = (
    Command("run --fail-on none", ""),
    Command("status --explain"),
    Command("diff"),
    Command("run --fail-on none"),
    Command("diff @~1 @ --json"),
    Command("ls cases --full --json"),
    Command("run --judge-only --refresh"),
)
SHAPES: dict[Make, tuple[Command, ...]] = {
    files: ALL,
    instructions: SOME,
    checks: SOME,
    moved: SOME,
    rows: ALL,
    values: SOME,
    recorded: SOME,
    groups: SOME,
    prompts: SOME,
    tools: SOME,
}


@pytest.fixture(autouse=True)
def _files_are_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a file is read again must not depend on how long ago it was written."""
    monkeypatch.setattr(index, "GRAIN", -_LONG)


@pytest.mark.parametrize("make", SHAPES, ids=lambda make: make.__name__)
def test_twice_as_much_takes_twice_as_many_steps(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    actual = [
        list(_run(tmp_path / str(count), make, count, SHAPES[make], monkeypatch))
        for count in (N, 2 * N)
    ]
    problems = [
        f"{command.line}: {problem}"
        for (command, few), (_, many) in zip(*actual, strict=True)
        for problem in growing(few, many, is_run=command.line.startswith("run "))
    ]
    assert problems == []


def _run(
    root: Path,
    make: Make,
    count: int,
    commands: tuple[Command, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[tuple[Command, Steps]]:
    common = {"evalstore.yaml": SETTINGS, "models/one.yaml": ONE, "models/judge.yaml": JUDGE}
    edition = None
    for command in commands:
        if command.edition != edition:
            edition = command.edition
            shutil.rmtree(root / "tests", ignore_errors=True)
            tree(root, common | make(count, edition))
            monkeypatch.chdir(root)
        row = "t.md::q1" if (root / "tests/t.md").exists() else "f1.md"
        yield command, _steps(command.line.format(case=f"tests/{row}"))


def _steps(line: str) -> Steps:
    with counted() as steps:
        code = main(line.split())
    assert code in (0, 1, 3, 5), line
    return steps


_OF_A_CALL = ("SELECT id, content FROM sessions WHERE id", "SELECT content FROM ")
"""With these a run reads by one id what a model is shown, once for each call of it at most."""


def growing(few: Steps, many: Steps, *, is_run: bool = False) -> Iterator[str]:
    """What grew more than it may while what there is doubled."""
    for kind in ("lines", "comparisons"):
        before = getattr(few, kind)
        for place, after in getattr(many, kind).items():
            if after > 2.5 * before[place] + _SLACK:
                yield f"{kind} of {place}: {before[place]}, then {after}"
    for statement, after in many.selects.items():
        times = 2 if is_run and statement.startswith(_OF_A_CALL) else 1
        if after > times * few.selects[statement] + N // 3:
            yield f"'{statement}' was sent {few.selects[statement]} times, then {after}"
    if many.instructions > 2.5 * few.instructions + _SLACK:
        yield f"SQLite's steps: {few.instructions}, then {many.instructions}"


def test_the_runs_of_a_workspace_are_read_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The newest runs, up to a number, are compared with those before.
    monkeypatch.setattr("evalstore.results.log.log._MOST_RUNS", 4)
    actual = []
    for count in (8, 16):
        root = tmp_path / str(count)
        tree(root, {"evalstore.yaml": SETTINGS, "models/one.yaml": ONE, "models/judge.yaml": JUDGE})
        monkeypatch.chdir(root)
        for number in range(count):
            tree(root, files(1, str(number)))
            assert main(["run", "--fail-on", "none", "--quiet"]) == 0
        commands = ("log", "log tests/f0.md", "log --failures", "show @~3", "stats", "status")
        actual.append([(line, _steps(line)) for line in commands])
    problems = [
        f"{line}: {problem}"
        for (line, few), (_, many) in zip(*actual, strict=True)
        for problem in growing(few, many)
    ]
    assert problems == []


def test_recorded_answers_are_placed_without_a_query_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    actual = []
    for count in (N, 2 * N):
        checks = {"checker_name": "LambdaChecker", "func": "lambda r, a: r == a"}
        test = definition(
            model="openai/gpt-4",
            prompt_parameters=["a"],
            prompt=[{"content": "Say {a}"}],
            checker_args=checks,
        )
        folder = "source/repository/math/say/m"
        lines = "".join(instance({"a": str(number)}, str(number)) for number in range(count))
        root = tree(
            tmp_path / str(count),
            {
                f"{folder}/test.json": json.dumps(test),
                f"{folder}/instances/all.jsonl": lines,
                "w/evalstore.yaml": "",
            },
        )
        monkeypatch.chdir(root / "w")
        again = "import lve ../source --into in --sessions"
        actual.append(
            [(line, _steps(line)) for line in (again, "run --judge-only -m openai/gpt-4", again)]
        )
    problems = [
        f"{line}: {problem}"
        for (line, few), (_, many) in zip(*actual, strict=True)
        for problem in growing(few, many)
    ]
    assert problems == []


def test_what_grows_with_the_square_is_found() -> None:
    few = Steps()
    few.lines["look"] = 10 * N
    few.selects["SELECT"] = N
    few.comparisons["find"] = N * N
    few.instructions = 1000
    many = Steps()
    many.lines["look"] = 4 * 10 * N
    many.selects["SELECT"] = 2 * N
    many.comparisons["find"] = 4 * N * N
    many.instructions = 4000
    assert len(list(growing(few, many))) == 4
    assert list(growing(few, few)) == []


def test_comparisons_within_a_list_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(tmp_path, {"evalstore.yaml": SETTINGS, "models/one.yaml": ONE, "models/judge.yaml": JUDGE})
    tree(tmp_path, files(N, ""))
    monkeypatch.chdir(tmp_path)
    with counted() as steps:
        reading = read_workspace(WorkspaceFolder(tmp_path))
        listed = list(reading.tests)
        before = sum(steps.comparisons.values())
        assert all(path in listed for path in [str(path) for path in listed])
    assert sum(steps.comparisons.values()) - before > N

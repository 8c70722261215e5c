"""With `--evalstore` the cases of a workspace are items: collected, run once, and reported."""

from __future__ import annotations

import ast
import inspect
import tomllib
from collections.abc import Callable, Iterable
from itertools import compress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import evalstore.interfaces.pytest_plugin
from evalstore import RunReport, Workspace
from evalstore.planning.options import SelectionOptions
from evalstore.planning.plan import EVER
from evalstore.planning.planner import Scope
from evalstore.runs import run as runs
from evalstore.runs.run import narrow
from tests.builders import tree
from tests.interfaces.pytest_plugin.conftest import FILES, MODEL, OTHER, Run

pytestmark = pytest.mark.extended

pytest_plugins = ["pytester"]
NAMES = (
    "evals/tests/hello.md::language=English[good]",
    "evals/tests/hello.md::language=English[bad]",
    "evals/tests/hello.md::language=French[good]",
    "evals/tests/hello.md::language=French[bad]",
)


def lines_of(result: pytest.RunResult, start: str = "evalstore") -> list[str]:
    return [line for line in result.outlines if line.startswith(start)]


def test_pytest_loads_the_plugin_and_is_not_required() -> None:
    text = (Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    assert project["entry-points"]["pytest11"] == {
        "evalstore": "evalstore.interfaces.pytest_plugin"
    }
    extras = [extra for name, extra in project["optional-dependencies"].items() if name != "dev"]
    required = [*project["dependencies"], *(package for extra in extras for package in extra)]
    assert not [package for package in required if package.startswith("pytest")]


def test_nothing_happens_unless_it_is_asked_for(run: Run, rerun: Path) -> None:
    tree(rerun.parent, {"test_own.py": "def test_own(pytestconfig):\n    assert not "
                        "pytestconfig.pluginmanager.has_plugin('evalstore-cases')\n"})  # fmt: skip
    result = run()
    result.assert_outcomes(passed=1)
    assert lines_of(result) == []


def test_loading_the_plugin_imports_nothing_else_of_evalstore() -> None:
    tree = ast.parse(inspect.getsource(evalstore.interfaces.pytest_plugin))
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = [ast.unparse(node).split()[1] for node in imports]
    assert names == ["__future__", "sys", "argparse", "pathlib", "typing", "pytest"]


def test_cases_are_asked_judged_and_reported(run: Run, evals: Path) -> None:
    result = run("--evalstore", "-v")

    result.assert_outcomes(passed=3, failed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    (recorded,) = Workspace(evals).runs()
    assert lines_of(result, "evalstore: ") == [
        "evalstore: 4 answers to ask, 4 verdicts to make",
        f"evalstore: run {recorded.id[:8]} complete: "
        "4 new answers, 4 new verdicts, $2.00 simulated",
    ]
    assert [line.partition(" ")[0] for line in lines_of(result, "evals/")] == list(NAMES)
    (failed,) = [
        row["sessions"][0] for row in Workspace(evals).to_rows() if row["verdict"] == "fail"
    ]
    result.stdout.fnmatch_lines(
        [
            "*_ language=French[[]bad] _*",
            "fail: expected one of 'Hello', 'Bonjour' in 'Hallo!'",
            "case: evals/tests/hello.md:4 [[]language=French]",
            "model: bad",
            "answer: Hallo!",
            f"(evalstore -C evals show {failed[:8]})",
            "FAILED evals/tests/hello.md::language=French[[]bad]*",
        ]
    )


def test_what_is_stored_is_reused_and_no_run_is_recorded(run: Run, rerun: Path) -> None:
    result = run("--evalstore")
    result.assert_outcomes(passed=3, failed=1)
    assert lines_of(result, "evalstore: ") == ["evalstore: 4 cases, nothing to ask or judge, $0"]
    assert len(Workspace(rerun).runs()) == 1


def test_only_selected_cases_are_asked(run: Run, evals: Path) -> None:
    result = run("--evalstore", "-k", "French and good")
    result.assert_outcomes(passed=1, deselected=3)
    (recorded,) = Workspace(evals).runs()
    assert (recorded.asked, recorded.judged) == (1, 1)
    assert recorded.selection == {
        "paths": ["tests/hello.md::language=French"],
        "models": ["good"],
    }
    run("--evalstore", "-k", "greeting").assert_outcomes(passed=3, failed=1)  # a tag
    run("--evalstore", "-m", "evalstore").assert_outcomes(passed=3, failed=1)
    run("--evalstore", "-m", "not evalstore").assert_outcomes(deselected=4)
    assert [run.asked for run in Workspace(evals).runs()] == [3, 1]


def test_listing_asks_nothing_and_knows_the_lines(run: Run, evals: Path) -> None:
    tree(evals.parent, {"conftest.py": "def pytest_collection_finish(session):\n"
                        "    print([item.location[:2] for item in session.items])\n"})  # fmt: skip
    result = run("--evalstore", "--collect-only", "-q")
    assert lines_of(result, "evals/") == list(NAMES)
    result.stdout.fnmatch_lines(["[[]('evals/tests/hello.md', 3)*"])
    assert not Workspace(evals).runs()


@pytest.mark.parametrize("number", [0, 3])
def test_a_node_id_names_a_case(run: Run, rerun: Path, number: int) -> None:
    result = run("--evalstore", NAMES[number])
    result.assert_outcomes(passed=number == 0, failed=number == 3)


def test_paths_on_the_command_line_limit_the_cases(run: Run, rerun: Path) -> None:
    tree(rerun.parent, {"test_own.py": "def test_own(): pass\n"})
    run("--evalstore", "test_own.py").assert_outcomes(passed=1)
    run("--evalstore", "evals/tests").assert_outcomes(passed=3, failed=1)
    run("--evalstore").assert_outcomes(passed=4, failed=1)


def test_names_of_rows_that_pytest_would_take_apart(run: Run, evals: Path) -> None:
    rows = '  - language: ["a::b", "[x]/é", "\\e[1m", "-k"]\n'
    tree(evals, {"tests/hello.md": FILES["tests/hello.md"].replace("  - language: [English, French]\n", rows)})  # noqa: E501  # fmt: skip
    listed = lines_of(run("--evalstore", "--collect-only", "-q", "-k", "good"), "evals/")
    assert [line.partition("::")[2] for line in listed] == [
        "language=a:b[good]",
        "language=[x]/é[good]",
        "language=\\x1b[1m[good]",
        "language=-k[good]",
    ]
    for line in listed:
        run("--evalstore", line).assert_outcomes(failed=1)


def test_a_broken_test_file_is_an_error_of_collection(run: Run, rerun: Path) -> None:
    tree(rerun, {"tests/broken.md": "# 👤\n\nHi {{name}}.\n\n---\n\nHi.\n"})
    result = run("--evalstore", "--continue-on-collection-errors")
    result.assert_outcomes(passed=3, failed=1, errors=1)
    result.stdout.fnmatch_lines(["tests/broken.md:3:6: 'name' is not defined"])
    assert run("--evalstore").ret == pytest.ExitCode.INTERRUPTED


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"evalstore.yaml": "candidates: [nobody]\n"}, "*unknown model 'nobody'*"),
        ({"evalstore.yaml": "unknown: 1\n"}, "*evalstore.yaml:1: *'unknown'*"),
        ({"evalstore.yaml": ""}, "*no candidates*"),
    ],
    ids=["model", "setting", "candidates"],
)
def test_an_error_of_the_workspace_ends_the_session(
    run: Run, evals: Path, files: dict[str, str], message: str
) -> None:
    result = run("--evalstore", str(tree(evals, files).parent))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --evalstore: {message}"])


def test_without_a_workspace_the_error_says_how_to_name_one(run: Run) -> None:
    result = run("--evalstore", "--evalstore-workspace", "nowhere")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: --evalstore: no evalstore.yaml in 'nowhere' or above (name the workspace with *"]
    )


def test_a_case_without_a_verdict_is_an_error_and_never_a_pass(run: Run, evals: Path) -> None:
    tree(evals, {"tests/joke.md": OTHER.format(told="Expect a broken joke.").replace("joke.", "broken joke.", 1)})  # noqa: E501  # fmt: skip
    result = run("--evalstore", "-k", "joke and good")
    result.assert_outcomes(errors=1, deselected=5)
    result.stdout.fnmatch_lines(["no reply: *it is broken*"])


def test_offline_skips_what_was_not_asked(run: Run, rerun: Path) -> None:
    tree(rerun, {"evalstore.yaml": "candidates: [good, openai/gpt-4o-mini]\n"})
    result = run("--evalstore", "--evalstore-offline", "-rs")
    result.assert_outcomes(passed=2, skipped=2)
    result.stdout.fnmatch_lines(["SKIPPED*pending: it was not asked, as no call was allowed"])
    assert len(Workspace(rerun).runs()) == 1  # no further run: it could not have done anything


def test_a_limit_of_the_cost_is_kept(run: Run, evals: Path) -> None:
    result = run("--evalstore", "--evalstore-max-cost", "0.5")
    result.assert_outcomes(passed=1, errors=3)
    result.stdout.fnmatch_lines(
        [
            "pending: it was not asked",
            "evalstore: run * at limit: 1 new answer, *, $0.5000 simulated",
        ]
    )


@pytest.mark.parametrize("amount", ["-1", "nan", "much"])
def test_a_limit_is_an_amount_of_money(run: Run, evals: Path, amount: str) -> None:
    result = run("--evalstore", f"--evalstore-max-cost={amount}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*--evalstore-max-cost: '{amount}' is not an amount in USD"])


def test_a_dear_run_needs_a_limit(run: Run, evals: Path) -> None:
    tree(evals, {"evalstore.yaml": f"{FILES['evalstore.yaml']}confirmAbove: 1\n"})
    result = run("--evalstore")
    result.assert_outcomes(errors=4)
    result.stdout.fnmatch_lines(
        ["pending: this run would ask for 4 answers *add --evalstore-max-cost USD *"]
    )
    assert Workspace(evals).runs() == []
    run("--evalstore", "--evalstore-max-cost", "10").assert_outcomes(passed=3, failed=1)


def test_an_undecided_case_fails_and_texts_of_models_are_escaped(run: Run, evals: Path) -> None:
    tree(evals, {"tests/joke.md": OTHER.format(told="Expect a joke.")})
    result = run("--evalstore", "-k", "joke and good")
    result.assert_outcomes(failed=1, deselected=5)
    result.stdout.fnmatch_lines(["undecided: *", "answer: No\\x1b[[]1m idea.", "    Sorry."])
    assert "\x1b[1m" not in result.stdout.str()


def test_a_case_that_a_model_cannot_answer_is_skipped(run: Run, evals: Path) -> None:
    tool = "---\ntags: [_has_tools]\ntools: [rain]\n---\n\n# 👤\n\nRain?\n\n---\n\nSay so.\n"
    rain = "id: rain\nname: rain\ndescription: Rain.\nparameters: {type: object}\n"
    model = MODEL.format(id="bad", french="") + "capabilities: {output: {tools: false}}\n"
    tree(evals, {"tests/tool.md": tool, "tools/rain.yaml": rain, "models/bad.yaml": model})
    result = run("--evalstore", "-rs", "-k", "tool")
    result.assert_outcomes(passed=1, skipped=1, deselected=4)
    result.stdout.fnmatch_lines(["SKIPPED*bad lacks tools"])


def test_nothing_of_the_workspace_runs(run: Run, evals: Path, pytester: pytest.Pytester) -> None:
    trap = f"open({str(evals / 'ran')!r}, 'w')\n"
    check = (
        "# 👤\n\nHi.\n\n---\n\n~~~checks\n- python: {file: checks/trap.py, function: judge}\n~~~\n"
    )
    files = {
        "conftest.py": trap,
        "tests/conftest.py": trap,
        "tests/test_trap.py": trap,
        "tests/checks/trap.py": f"{trap}def judge(answer): return True\n",
        "tests/code.md": check,
    }
    tree(evals, files)
    tree(pytester.path, {"unit/test_own.py": "def test_own(): pass\n"})
    pytester.makeini("[pytest]\nevalstore_workspace = evals\ntestpaths = unit\n")
    result = run("--evalstore")
    result.assert_outcomes(passed=4, failed=1, errors=2)
    result.stdout.fnmatch_lines(
        ["pending: tests/checks/trap.py is not trusted on this machine: evalstore trust *trap.py"]
    )
    assert not (evals / "ran").exists()


def test_an_interrupted_run_ends_the_session(
    run: Run, evals: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    actual: Callable[..., RunReport] = runs.run

    def interrupt(*arguments: Any, **options: Any) -> RunReport:
        *_, listener = arguments
        listener.interruptible = lambda stop: stop()
        return actual(*arguments, **options)

    monkeypatch.setattr(runs, "run", interrupt)
    result = pytester.runpytest_inprocess(
        *("-p", "evalstore.interfaces.pytest_plugin", "--evalstore"), no_reraise_ctrlc=True
    )
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["evalstore: run * interrupted: *", "*KeyboardInterrupt*"])


@pytest.mark.parametrize(
    ("kept", "paths"),
    [(4, ("many.md",)), (3, ("many.md::0", "many.md::1", "many.md::2"))],
    ids=["file", "rows"],
)
def test_a_run_of_single_cells_names_them(kept: int, paths: tuple[str, ...]) -> None:
    assert narrowed(4, kept).paths == ("other.md", *paths)


def test_a_run_of_many_cells_names_their_files() -> None:
    assert narrowed(40, 39).paths == ("other.md", "many.md")
    assert narrowed(40, 39).models == ()


class _Cells(list[Any]):
    def keep(self, kept: Iterable[int]) -> _Cells:
        return _Cells(compress(self, kept))


def narrowed(rows: int, kept: int) -> SelectionOptions:
    """The selection of a run of one file and of some rows of another; a third one is left out."""
    places = [("gone.md", ""), ("other.md", ""), *(("many.md", str(row)) for row in range(rows))]
    cells = _Cells(
        SimpleNamespace(file=file, case=SimpleNamespace(row=row), candidate=SimpleNamespace(id="m"))
        for file, row in places
    )
    scope: Any = Scope(cells, EVER, EVER, (), None, judge_only=False, run_started=0)  # type: ignore[arg-type]
    keep = {("other.md", ""), *places[2 : 2 + kept]}
    return narrow(scope, SelectionOptions(), lambda cell: (cell.file, cell.case.row) in keep)[1]

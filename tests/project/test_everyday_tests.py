"""What `make test` leaves out is listed, and every package keeps tests that it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.suite_costs import EXTENDED, everyday_tests, find_extended

ROOT = Path(__file__).parents[2]
LISTED = EXTENDED.read_text(encoding="utf-8").split()
PACKAGES = [
    path
    for path in sorted((ROOT / "evalstore").glob("*"))
    if (path / "__init__.py").exists() and (ROOT / "tests" / path.name).exists()
]


def test_what_is_listed_exists() -> None:
    tests = {path: _names(ROOT / path) for path in {line.partition("::")[0] for line in LISTED}}
    parts = [line.partition("::") for line in LISTED]
    gone = [(path, name) for path, _, name in parts if name not in ({""} | tests[path])]
    assert gone == [], "no such test: take the line out, or give the new name"
    assert [path for path in tests if not (ROOT / path).exists()] == []


def _names(path: Path) -> set[str]:
    return everyday_tests(path) if path.suffix else set()


def test_the_list_is_sorted_and_says_nothing_twice() -> None:
    assert sorted(set(LISTED)) == LISTED
    outer = {line for line in LISTED if any(line.startswith((f"{o}/", f"{o}::")) for o in LISTED)}
    assert outer == set()


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_files_with_tests_of_each_package_are_run_every_day(package: Path) -> None:
    files = [*(ROOT / "tests" / package.name).rglob("test_*.py")]
    assert sum(map(_everyday, files)) > len(files) / 4


def _everyday(path: Path) -> bool:
    name = path.relative_to(ROOT).as_posix()
    if any(name == line or name.startswith(f"{line}/") for line in LISTED):
        return False
    return any(f"{name}::{test}" not in LISTED for test in everyday_tests(path))


def test_dear_tests_are_found_by_the_mean_of_their_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.suite_costs.EXTENDED", ROOT / "nothing")
    costs = [("a.py::test_b[1]", 1.0), ("a.py::test_b[2]@group", 0.2), ("a.py::test_c", 0.5)]
    path = "tests/project/test_everyday_tests.py"
    monkeypatch.setattr(
        "tools.suite_costs.everyday_tests",
        lambda file: {"test_b", "test_c"} if file.name == "a.py" else {"test_d"},
    )
    costs += [(f"{path}::test_d", 0.7), ("collecting", 9.0)]
    assert find_extended(costs, 0.55) == ["a.py::test_b", path]

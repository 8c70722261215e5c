"""The names that other programs may rely on are there, complete, and cost nothing to import.

All classes of the package have a name of their own, and a bounded length.
"""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

import evalstore
from evalstore import plugins
from evalstore.interfaces import api
from evalstore.interfaces.cli.main import commands, main

LIBRARY = (
    *("Workspace", "init", "import_tests", "check"),
    *("Status", "PlanItem", "RunReport", "Run", "Result", "Answer", "Judgement", "Diff", "Rate"),
    *("JudgedText",),
    *("Verdict", "Problem", "EvalstoreError", "RevisionError", "NothingSelectedError"),
    *("StoreError", "WorkspaceError", "to_json", "__version__"),
)
PLUGINS = (
    *("CheckType", "CheckArguments", "CheckInput", "CheckFinding"),
    *("CheckDescription", "CheckSetting", "CheckExample", "ValueType"),
    *("Importer", "Imported", "ImportOptions", "SkippedItem"),
    *("Provider", "ProviderError", "Request", "Reply"),
)


def type_checked_names(module: ModuleType) -> set[str]:
    """The names that a module imports at its top, as type checkers see them."""
    tree = ast.parse(inspect.getsource(module))
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return {alias.name for node in imports for alias in node.names} - {"import_module"}


def public_names(module: ModuleType) -> set[str]:
    """What a module offers that is not a module or a helper of its own."""
    return {
        name
        for name in dir(module)
        if not name.startswith("_")
        and not isinstance(getattr(module, name), ModuleType)
        and name != "TYPE_CHECKING"
    }


@pytest.mark.parametrize(
    ("module", "names"), [(evalstore, LIBRARY), (plugins, PLUGINS)], ids=["evalstore", "plugins"]
)
def test_exported_members(module: ModuleType, names: tuple[str, ...]) -> None:
    assert module.__all__ == sorted(names)
    assert len(set(names)) == len(names)
    assert set(names) <= set(dir(module))
    assert {name: getattr(module, name, None) for name in names if not hasattr(module, name)} == {}
    assert public_names(module) == set(names) - {"__version__"}


def test_type_checkers_see_the_same_names() -> None:
    assert type_checked_names(evalstore) == set(LIBRARY) - {"__version__"}


def test_each_name_is_the_one_of_its_module() -> None:
    for module, names in evalstore._MODULES.items():
        for name in names:
            assert getattr(evalstore, name) is getattr(import_module(module), name)


def test_a_name_that_there_is_not_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'evalstore' has no attribute 'Session'"):
        _ = evalstore.Session  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", [*(names[0] for names in evalstore._MODULES.values()), "plugins"])
def test_a_name_of_each_module_can_be_the_first_that_is_imported(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"from evalstore import {name}"], capture_output=True, text=True
    )
    assert done.stderr == ""


def test_importing_the_package_loads_no_other_module() -> None:
    probe = (
        "import sys; before = set(sys.modules); import evalstore; dir(evalstore);"
        "print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", probe],
        cwd=Path(evalstore.__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "['evalstore']"


def test_opening_a_workspace_loads_nothing_slow(tmp_path: Path) -> None:
    (tmp_path / "evalstore.yaml").touch()
    slow = {
        "asyncio",
        "ssl",
        "aiohttp",
        "jinja2",
        "jsonschema",
        "litellm",
        "sqlalchemy",
        "sqlmodel",
    }
    slow |= {"typer", "rich", "textual", "pydantic", "alembic"}
    probe = (
        "import sys, evalstore; evalstore.Workspace(sys.argv[1]).status;"
        f"print(sorted({slow} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe, tmp_path], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_command_line_does_not_load_the_library(tmp_path: Path) -> None:
    for command in ("init", "run"):
        main(["-C", str(tmp_path), command])
    probe = (
        "import sys; from evalstore.interfaces.cli.main import main;"
        "[main([command]) for command in sys.argv[1:]];"
        "print([name for name in sys.modules if name.startswith(('evalstore.interfaces.api', "
        "'evalstore.plugins'))], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe, "--help", "status", "log"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout
    assert done.stderr.splitlines()[-1] == "[]"


COMMANDS = {
    *("status", "run", "judge", "diff", "stats", "label", "check", "fsck", "report", "export"),
}
"""Commands that are methods of the same name; `log` is `runs`, `show` is `answer`, and `grep` is
`search`."""


def test_the_methods_are_named_as_the_commands() -> None:
    commands()
    assert set(dir(evalstore.Workspace)) >= COMMANDS | {"runs", "results", "answer", "search"}


def test_every_public_thing_has_a_docstring_and_types() -> None:
    for name in api.__all__:
        thing = getattr(api, name)
        assert inspect.getdoc(thing), name
        members = inspect.getmembers(thing, inspect.isfunction) if inspect.isclass(thing) else []
        for member, function in members:
            if member.startswith("_") and member != "__init__":
                continue
            assert inspect.getdoc(function), f"{name}.{member}"
            hinted = set(inspect.get_annotations(function)) | {"self"}
            assert hinted >= set(inspect.signature(function).parameters), f"{name}.{member}"
            assert member == "__init__" or "return" in hinted, f"{name}.{member}"


SAME_NAME = {"Message", "Environment"}
"""Classes of the package that are named after those of another program."""
MOST_FILES = 25
"""The most modules in one folder of the package."""


class Source(NamedTuple):
    name: str
    module: str
    classes: list[ast.ClassDef]
    imports: set[str]


def imported(tree: ast.Module) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {str(node.module), *(f"{node.module}.{each.name}" for each in node.names)}
    return names


@cache
def package_sources() -> list[Source]:
    root = Path(evalstore.__file__).parent
    sources = []
    for path in sorted(root.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        name = path.relative_to(root)
        module = ".".join(("evalstore", *name.with_suffix("").parts)).removesuffix(".__init__")
        classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
        # A package itself only loads names when they are used.
        imports = imported(tree) if name.name != "__init__.py" else set()
        sources.append(Source(name.as_posix(), module, classes, imports - {module}))
    return sources


@pytest.mark.xdist_group("package_sources")
def test_no_two_public_classes_of_the_package_have_the_same_name() -> None:
    names = Counter(
        each.name
        for source in package_sources()
        for each in source.classes
        if not each.name.startswith("_")
    )
    assert {name for name, count in names.items() if count > 1} - SAME_NAME == set()


@pytest.mark.xdist_group("package_sources")
def test_no_folder_of_the_package_has_many_modules() -> None:
    folders = Counter(Path(source.name).parent.as_posix() for source in package_sources())
    assert {folder: count for folder, count in folders.items() if count > MOST_FILES} == {}


@pytest.mark.xdist_group("package_sources")
def test_no_modules_of_the_package_import_each_other_in_a_circle() -> None:
    sources = package_sources()
    modules = {source.module for source in sources}
    imports = {source.module: source.imports & modules for source in sources}
    assert list(TopologicalSorter(imports).static_order())

"""Whether the tests notice changes of the code: plants one and runs the tests nearest to it.

`python -m tools.mutants` plants four in each of fifteen packages, one after the other, chosen at
random, and says which are killed. A choice depends on the expression and the name of its function
alone, so that code that did not change keeps its mutants. The checkout itself stays as it is: the
tests run in a copy. `--list` only shows them; `--only REGEX` takes some; `--wide` adds the tests
of the commands and the laws for those that survive.
"""

from __future__ import annotations

import argparse
import ast
import copy
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = (
    *("core", "files", "providers", "checks", "store", "workspace", "comparison", "remotes"),
    *("planning", "results", "runs", "exchange"),
    *("interfaces/cli", "interfaces/tui", "interfaces/html"),
)
EACH = 4
"""Mutants of a package."""
SEED = "41"
NEAREST = 12
"""Files with tests that are asked at most."""
SECONDS = 900
"""After so many seconds a mutant is killed by its slowness."""
WIDE = ("tests/laws", "tests/interfaces/cli")

_OPPOSITES: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
}
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+?(?:::.*?)?)(?: - .*)?$", re.MULTILINE)
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Mutant:
    """A change of one expression."""

    path: str
    """Of the module, from the checkout."""
    function: str
    line: int
    number: int
    """Of the expression in the module."""
    before: str
    after: str

    @property
    def rank(self) -> str:
        """Where it comes in the random order: the same as long as its text and function are."""
        key = "\0".join((SEED, self.path, self.function, self.before, self.after))
        return hashlib.sha256(key.encode()).hexdigest()

    def __str__(self) -> str:
        """As it is listed."""
        return f"{self.path}:{self.line} {self.function}: {self.before} -> {self.after}"


def _changed(node: ast.AST) -> ast.AST | None:
    """What takes the place of an expression; None where nothing does."""
    new = copy.deepcopy(node)
    match new:
        case ast.Compare(ops=[operator]) if type(operator) in _OPPOSITES:
            new.ops = [_OPPOSITES[type(operator)]()]  # type: ignore[list-item]
        case ast.BoolOp() | ast.BinOp() if type(new.op) in _OPPOSITES:
            new.op = _OPPOSITES[type(new.op)]()  # type: ignore[assignment]
        case ast.UnaryOp(op=ast.Not()):
            return new.operand
        case ast.Constant(value=bool(value)):
            new.value = not value
        case ast.Constant(value=int(value)):
            new.value = value + 1
        case _:
            return None
    return new


def _expressions(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """The expressions of all functions in their order, with the names of the functions."""

    def walk(node: ast.AST, name: str) -> Iterator[tuple[str, ast.AST]]:
        if isinstance(node, _FUNCTIONS | ast.ClassDef):
            name = f"{name}.{node.name}".strip(".")
        inside = node.body if isinstance(node, _FUNCTIONS | ast.ClassDef) else None
        for child in inside or ast.iter_child_nodes(node):
            if isinstance(node, ast.AnnAssign) and child is node.annotation:
                continue
            if isinstance(child, ast.expr):
                yield name, child
            yield from walk(child, name)

    for name, node in walk(tree, ""):
        if name:
            yield name, node


def mutants_of(path: Path) -> list[Mutant]:
    """All changes of a module."""
    found = []
    name = str(path.relative_to(ROOT))
    for number, (function, node) in enumerate(_expressions(ast.parse(path.read_text("utf-8")))):
        if (new := _changed(node)) is not None:
            before, after = ast.unparse(node), ast.unparse(new)
            found.append(Mutant(name, function, node.lineno, number, before, after))  # type: ignore[attr-defined]
    return found


def chosen() -> list[Mutant]:
    """The mutants of all packages, each in a module of its own."""
    found: list[Mutant] = []
    for package in PACKAGES:
        paths = sorted((ROOT / "evalstore" / package).rglob("*.py"))
        of_package = [mutant for path in paths for mutant in mutants_of(path)]
        of_modules: dict[str, Mutant] = {}
        for mutant in sorted(of_package, key=lambda mutant: mutant.rank):
            of_modules.setdefault(mutant.path, mutant)
        found += list(of_modules.values())[:EACH]
    return found


def plant(mutant: Mutant, root: Path) -> Callable[[], object]:
    """Put a mutant in the place of its expression; returns what takes it out again."""
    path = root / mutant.path
    text = path.read_text("utf-8")
    tree = ast.parse(text)
    _, node = list(_expressions(tree))[mutant.number]
    assert ast.unparse(node) == mutant.before
    lines = text.encode().splitlines(keepends=True)
    assert isinstance(node, ast.expr)
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    head = b"".join(lines[: node.lineno - 1]) + lines[node.lineno - 1][: node.col_offset]
    tail = lines[node.end_lineno - 1][node.end_col_offset :] + b"".join(lines[node.end_lineno :])
    path.write_bytes(head + f"({mutant.after})".encode() + tail)
    return lambda: path.write_text(text, "utf-8")


def nearest(mutant: Mutant) -> list[str]:
    """The files with tests of a module: of its name, importing it, or beside these.

    At most `NEAREST`: of those that import it first those of its folder, then those that import
    least.
    """
    module = Path(mutant.path).with_suffix("")
    dotted = ".".join(module.parts).removesuffix(".__init__")
    named = re.compile(rf"\b{re.escape(dotted)}\b")
    folder = ROOT / "tests" / Path(*module.parts[1:-1])
    found: list[tuple[int, int, Path]] = []
    for path in (ROOT / "tests").rglob("test_*.py"):
        text = path.read_text("utf-8")
        if path.stem == f"test_{module.name}":
            found.append((0, 0, path))
        elif named.search(text):
            far = folder not in path.parents
            found.append((1 + far, text.count("from evalstore"), path))
        elif path.parent == folder:
            found.append((3, 0, path))
    paths = [path for _, _, path in sorted(found)[:NEAREST]]
    while not paths:
        paths = sorted(folder.rglob("test_*.py"))[:NEAREST]
        folder = folder.parent
    return [str(path.relative_to(ROOT)) for path in paths]


def first_failure(root: Path, tests: Sequence[str], left_out: Collection[str]) -> str:
    """The first of these tests that fails; empty if none does."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n0", "-rfE", "-p", "no:cacheprovider"]
    command += [f"--deselect={name}" for name in left_out]
    try:
        ended = subprocess.run(
            [*command, *tests],
            cwd=root,
            env={**os.environ, "PYTHONPATH": str(root)},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "none in time"
    if ended.returncode in (0, 5):
        return ""
    failed = _FAILED.search(ended.stdout)
    return failed[1] if failed else "none begins"


def killer(mutant: Mutant, root: Path, tests: Sequence[str]) -> str:
    """The test that kills a mutant, and passes without it; empty if there is none."""
    left_out: list[str] = []
    while True:
        take_out = plant(mutant, root)
        try:
            failed = first_failure(root, tests, left_out)
        finally:
            take_out()
        if not failed or "::" not in failed or not first_failure(root, [failed], ()):
            return failed
        left_out.append(failed)


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    """Plant each and say what became of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="only show them")
    parser.add_argument("--only", default="", help="those whose line matches")
    parser.add_argument("--wide", action="store_true", help="ask all tests of commands, too")
    given = parser.parse_args()
    mutants = [mutant for mutant in chosen() if re.search(given.only, str(mutant))]
    survived = 0
    with tempfile.TemporaryDirectory(prefix="evalstore-mutants-") as folder:
        root = Path(folder) / "evalstore"
        if not given.list:
            left_out = shutil.ignore_patterns(".git", ".venv*", "build", "dist", ".*_cache")
            shutil.copytree(ROOT, root, ignore=left_out)
        for mutant in mutants:
            if given.list:
                say(str(mutant))
                continue
            began = time.monotonic()
            killed = killer(mutant, root, nearest(mutant))
            if not killed and given.wide:
                killed = killer(mutant, root, WIDE)
            survived += not killed
            seconds = time.monotonic() - began
            say(f"{'killed  ' if killed else 'SURVIVED'} {seconds:4.0f} s  {mutant}  {killed}")
    if not given.list:
        say(f"{len(mutants) - survived} of {len(mutants)} killed")
    return 0


if __name__ == "__main__":
    sys.exit(main())

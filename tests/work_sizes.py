"""The numbers by which evalstore divides its work, of which tests draw each at random.

Whatever they are, each command prints the same. Small workspaces and the large ones of the
benches never meet what happens between two of them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import evalstore

_PACKAGE = Path(evalstore.__file__).parent
_VALUES = (1, 2, 7)
"""What is drawn, beside the default."""
_NAMED = re.compile(
    "AT_ONCE|AHEAD|BATCH|IN_MEMORY|STREAMED|CHUNK|PIECE|KEPT|LARGE$|LONG$"
    r"|_AT_FIRST|_ROWS$|_GAP$|_BLOCK$|(^|_)(FEW|MANY|FIRST|PARTS?|LOOKED_UP|LONGEST_PART)(_|$)"
)
"""The names of numbers that divide work, or may do so."""
_OF_SCREENS = "interfaces.tui"
"""The package of the browser, whose numbers say what a screen has room for."""

DRAWN = """
core.batches: SIZE SMALL_SIZE
runs.execution.executor: _CLAIMED_AT_ONCE
files.temporary_list: _FEW
interfaces.html.case_data: CASES_IN_A_BLOCK
results.grep: _FEW
results.table.cases: AT_ONCE
planning.cells: BATCH
planning.earlier_results: _FEW_PROMPTS
planning.settled_parts: _MOST_NEW
files.processes.pool: AT_ONCE
remotes.download: _MOST_KEPT
remotes.packs: LARGEST_PACK _LONG
remotes.sftp: _AT_ONCE
store.postgresql.connection: _INSERTED_BYTES
store.driver: _KEPT
store.results: _KEPT _MOST_KEPT
store.search.index: _BATCH _LARGEST_BATCH
core.hashing: _BUCKET_BITS _PARTS
workspace.testfiles.context: KEPT_AT_ONCE _MOST_CHARACTERS
workspace.testfiles.known_rows: _AHEAD
workspace.testfiles.expansion: _MOST_AT_ONCE _TOLD_EVERY
"""
"""The numbers that are drawn."""

OF_TREES = {
    "store.trees.case_chunks.MAX_PART": (2, 7, 128),
    "store.trees.case_chunks.MAX_UNDIVIDED": (1, 2, 7, 64),
    "store.trees.case_chunks._MIN_PART": (2, 7, 8),
}
"""Numbers on which ids of nodes depend: a store has one value, and parts of one case no end."""

FIXED = {
    "checks.types.expression._MANY": "the rank of a problem in a list, no amount of work",
    "checks.difference_locator._MANY_WORDS": "what is looked for in a text",
    "interfaces.cli.commands.queries._MANY": "from here on a note explains why nothing is seen",
    "interfaces.cli.options._MANY": "how a page of help is divided",
    "interfaces.cli.render.layout._GAP": "blanks on the screen",
    "runs.execution.limits.rate_limiter.FIRST": "how many calls begin together",
    "exchange.importers.lve.test_writer._FEW": "which of two forms a written file has",
    "core.notebook_tables.MOST_ROWS": "how much a notebook shows",
    "interfaces.html.report.MOST_ROWS": "how much a page shows without JavaScript",
    "runs.run._MOST_ROWS": "whether rows or files are named",
    "results.table.cases.KEPT": "how many lines the browser keeps",
    "results.table.cases.MANY": "from here on the browser keeps some lines",
    "runs.status.status_text._FEW_CALLS": "a limit that is remarked on",
    "planning.selection._KEPT": "characters of a shown name",
    "remotes.buckets._CHUNK": "bytes of a network's request, of which each costs money",
    "remotes.buckets._LARGE": "bytes from which on a question is worth its price",
    "remotes.bundle_files._PIECE": "bytes: pieces of one byte take minutes",
    "remotes.sftp._LARGE": "bytes from which on a question of a server is worth its time",
    "store.trees.case_chunks.LEVEL_OF_PARTS": "a level of a tree",
    "store.contents._LARGE": "bytes of a value that is checked more thoroughly",
    "store.postgresql.connection._KEPT_MICROSECONDS": "a time",
    "workspace.testfiles.replacements.MOST_ROWS": "rows of a file that is refused",
}
"""Numbers that are not drawn although their names look like it, and why."""
Drawn = Mapping[str, int]
"""From `module.NAME`, without `evalstore`, to what was drawn."""


def drawn_names() -> list[str]:
    """The full names of the numbers that are drawn, without `evalstore`."""
    return [
        f"{module}.{name}"
        for module, names in (line.split(": ") for line in DRAWN.strip().splitlines())
        for name in names.split()
    ]


def draw(random: Random) -> Drawn:
    """Draw some numbers: in some draws few of them, in others nearly all."""
    share = random.choice((0.02, 0.2, 0.5, 1))
    return {name: random.choice(_VALUES) for name in drawn_names() if random.random() < share}


def draw_trees(random: Random) -> Drawn:
    """Draw the numbers on which ids of nodes depend."""
    if random.random() < 0.3:
        return {}
    drawn = {name: random.choice(values) for name, values in OF_TREES.items()}
    drawn["store.trees.case_chunks._MIN_PART"] = min(
        drawn["store.trees.case_chunks._MIN_PART"], drawn["store.trees.case_chunks.MAX_PART"]
    )
    return drawn


def put(drawn: Drawn, put_one: Callable[[Any, str, int], object] = setattr) -> None:
    """Set the numbers, in all modules that have imported them; `load` comes before."""
    for name, size in drawn.items():
        for module, alias in copies()[name]:
            put_one(import_module(module), alias, size)


def load() -> None:
    """Import all modules with such numbers, so that none takes a changed one for its default."""
    for places in copies().values():
        for module, _ in places:
            import_module(module)


@contextmanager
def changed(drawn: Drawn) -> Iterator[None]:
    """Set the numbers for the block."""
    load()
    before: list[tuple[Any, str, int]] = []

    def put_one(module: Any, alias: str, number: int) -> None:
        before.append((module, alias, getattr(module, alias)))
        setattr(module, alias, number)

    put(drawn, put_one)
    try:
        yield
    finally:
        for place in before:
            setattr(*place)


@cache
def copies() -> dict[str, list[tuple[str, str]]]:
    """Where each number is: in its module, and in those that import it."""
    found = {name: [_place(name)] for name in (*drawn_names(), *OF_TREES)}
    by_place = {place: name for name, [place] in found.items()}
    constants = re.compile("|".join(sorted({constant for _, constant in by_place})))
    for module, tree in _modules(lambda text: bool(constants.search(text))):
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    if name := by_place.get((node.module, alias.name)):
                        found[name].append((module, alias.asname or alias.name))
    return found


def _place(name: str) -> tuple[str, str]:
    module, _, constant = name.rpartition(".")
    return f"evalstore.{module}", constant


def numbers() -> Iterator[str]:
    """The names of all numbers that divide work by their names, without those of screens."""
    for module, tree in _modules():
        short = module.removeprefix("evalstore.")
        if short.startswith(_OF_SCREENS):
            continue
        for node in tree.body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            if names and _NAMED.search(names[0]) and _is_number(node.value):  # type: ignore[attr-defined]
                yield f"{short}.{names[0]}"


def defaults() -> set[str]:
    """The names in the defaults of parameters, which are read once."""
    return {
        f"{module.removeprefix('evalstore.')}.{name.id}"
        for module, tree in _modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.arguments)
        for default in [*node.defaults, *node.kw_defaults]
        if default is not None
        for name in ast.walk(default)
        if isinstance(name, ast.Name)
    }


def _is_number(value: ast.expr) -> bool:
    kinds = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Name, ast.Load)
    return all(
        isinstance(part, kinds) and (not isinstance(part, ast.Constant) or type(part.value) is int)
        for part in ast.walk(value)
    ) and not isinstance(value, ast.Name)


def _modules(has: Callable[[str], bool] = bool) -> Iterator[tuple[str, ast.Module]]:
    """Yield the modules whose text is accepted; all of them in memory slow each later test down."""
    for path in sorted(_PACKAGE.rglob("*.py")):
        if has(text := path.read_text(encoding="utf-8")):
            name = ".".join(path.relative_to(_PACKAGE).with_suffix("").parts)
            yield f"evalstore.{name}", ast.parse(text)

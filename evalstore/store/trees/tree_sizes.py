"""Measures what the trees of a run describe: a few nodes can describe more than can be read.

A node names each of its parts once, and says how many cases are in them; both are checked where a
node is decoded. Here whole trees are: no node is in a tree twice, and all files together have no
more cases than the run says, and than can be read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from evalstore.core.batches import in_small_batches
from evalstore.core.errors import ExcessiveError, StoreError, StoreUnreachableError
from evalstore.core.values import Json
from evalstore.store.contents import excessive
from evalstore.store.trees.case_chunks import MOST_CASES, Load, has_parts
from evalstore.store.trees.path_trees import read_tree

if TYPE_CHECKING:
    from evalstore.core.runs import Run
    from evalstore.store import Store

T = TypeVar("T")


class TreeSizes:
    """Measures runs; each tree of a file is read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._cases: dict[str, int] = {}
        """How many cases files have, by their nodes."""
        self._results: dict[str, str] = {}
        """The nodes of the files of results, by the nodes of these."""

    def require_bounded(self, run: Run) -> None:
        """Raise `ExcessiveError` for a run whose trees describe too much to be read.

        Raises `StoreError` for a tree that is damaged.
        """
        store = self._store
        nodes = Counter(read_tree(run.snapshot, store.load_nodes).values())
        results = Counter(read_tree(run.results, store.load_nodes).values())
        _read(results, store.load_leaves, self._results, lambda content: content["cases"])
        judged = Counter(self._results[id] for id in results.elements())
        _read([*nodes, *judged], store.load_cases, self._cases, count_cases)
        most = min(MOST_CASES, run.cases.total if run.cases else MOST_CASES)
        for counts in (nodes, judged):
            if sum(count * self._cases[id] for id, count in counts.items()) > most:
                raise excessive("runs", run.id, f"its files have more than {most:,} cases")


def _read(ids: Iterable[str], load: Load, known: dict[str, T], read: Callable[[Json], T]) -> None:
    """Read something of the roots of trees that are not known, and each of their nodes once."""
    for some in in_small_batches(id for id in dict.fromkeys(ids) if id not in known):
        for id, content in load(some).items():
            refuse_repeated(id, content, load)
            known[id] = read(content)


def count_cases(content: Json) -> int:
    """Return how many cases are in a node of cases, by what it says of its parts."""
    return sum(content["counts"]) if has_parts(content) else len(content["cases"])


def refuse_repeated(tree: str, root: Json, load: Load, least: int = 1) -> None:
    """Raise `ExcessiveError` when a node is in a tree twice; those below `least` are not read."""
    level = [root]
    while parts := [part for node in level for part in node.get("parts", ()) if part]:
        if len(set(parts)) < len(parts):
            raise excessive("nodes", tree, "a part is in its tree twice")
        inner = [node for node in level if node.get("level", 0) > least]
        below = (part for node in inner for part in node["parts"] if part)
        level = [node for some in in_small_batches(below) for node in load(some).values()]


def find_excessive(store: Store, runs: Iterable[Run]) -> Iterator[tuple[str, str]]:
    """Yield the ids of those of these runs that describe too much to be read, each with why."""
    sizes = TreeSizes(store)
    for run in runs:
        try:
            sizes.require_bounded(run)
        except ExcessiveError as error:
            problem = str(error).removeprefix("the store is damaged: ")
            yield run.id, f"it describes too much to be read: {problem}"
        except StoreUnreachableError:
            raise
        except StoreError:  # it is damaged in another way, which its readers see at once
            continue

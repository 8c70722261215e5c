"""Counts the verdicts in nodes of results, decoding few of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from evalstore.store.case_chunks import has_parts
from evalstore.store.contents import decode_content
from evalstore.values import VERDICTS

if TYPE_CHECKING:
    from evalstore.store import Store

_PARTS = '"parts":['
VerdictCounts = Counter[tuple[str, str | None]]
"""How many results there are by candidate and verdict; None stands for a result without one."""
_AT_ONCE = 256
_KNOWN = frozenset(map(str, VERDICTS))
_MODELS = re.compile(r'"model":"([^"\\]*)"').findall
_VERDICTS = re.compile(r'"verdict":"([a-z]*)"').findall
"""These find the fields of cells in canonical JSON, where a quote inside of a string is escaped."""


def count_verdicts(store: Store, node: str) -> VerdictCounts:
    """Return the counts of the results in a node and below it."""
    counts: VerdictCounts = Counter()
    for _, id, text in iterate_texts(store, [("", node)]):
        counts += count_in_text(id, text)
    return counts


def count_in_text(id: str, text: str) -> VerdictCounts:
    """Return the counts of the results in a node with cells, whose canonical JSON is the text."""
    models, verdicts = _MODELS(text), _VERDICTS(text)
    if len(models) == len(verdicts) == text.count('"case":') and len(set(models)) == 1:
        words = Counter(verdicts)
        if words.keys() <= _KNOWN:
            return Counter({(models[0], word): count for word, count in words.items()})
    cells = decode_content("nodes", id, text, "results")["cells"]
    words_of_cells = ((cell["model"], cell.get("verdict")) for cell in cells)
    return Counter((model, word if word in _KNOWN else None) for model, word in words_of_cells)


def iterate_texts(
    store: Store, leaves: Iterable[tuple[str, str]], at_once: int | None = None
) -> Iterator[tuple[str, str, str]]:
    """Yield the nodes with cells below some leaves, in their order; read so many `at_once`.

    A leaf is the path of a file and the node of its results. With each node comes the path, and its
    canonical JSON.
    """
    left = iter(leaves)
    while batch := list(islice(left, at_once or _AT_ONCE)):
        texts = dict(store.load_texts({node for _, node in batch}))
        for path, node in batch:
            text = texts[node]
            if _PARTS in text:
                content = decode_content("nodes", node, text, "results")
                if has_parts(content):
                    yield from iterate_texts(
                        store, [(path, id) for id in content["parts"] if id], at_once
                    )
                    continue
            yield path, node, text


def find_divided(store: Store, nodes: Iterable[str]) -> list[str]:
    """Return those of these nodes of results that have parts."""
    left, found = iter(nodes), list[str]()
    while batch := list(islice(left, _AT_ONCE)):
        found += [id for id, text in store.load_texts(batch) if _PARTS in text]
    return found

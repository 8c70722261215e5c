"""Finds nodes by what their rows say, so that few of them are decoded."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from evalstore.core import batches
from evalstore.core.batches import in_batches
from evalstore.core.deserialize import MODELS
from evalstore.core.values import URGENCY, VERDICTS, Case, CaseFile, Json, Verdict
from evalstore.store.contents import all_as_bytes, as_bytes, as_digits, damaged, split_ids
from evalstore.store.rows.row_tables import (
    VERDICT_NUMBERS,
    VERDICT_OF,
    by_verdict,
    hash_name,
    number_of,
    numbers_of,
)
from evalstore.store.schema.table_definitions import TableColumns
from evalstore.store.trees.tree_nodes import CaseTraits, NodeQueries, StoredCases

_NOT_JUDGED = (
    "CASE WHEN c.evaluation IS NOT NULL OR length(r.sessions) < 16 * r.wanted "
    f"THEN {URGENCY.index('pending')} ELSE {URGENCY.index('answered')} END"
)
_URGENCY = f"coalesce({by_verdict('r.verdict', VERDICTS, URGENCY.index)}, {_NOT_JUDGED})"
"""The place in `URGENCY` of what a result says."""
_UNRESOLVED = numbers_of(("undecided", "error"))
CELLS = (
    "FROM leaf l CROSS JOIN result_rows r "
    "LEFT JOIN case_rows c ON c.leaf = l.cases AND c.n = r.case_n"
)
"""The tables of the results below a node, where `r.leaf = l.results`, and of their cases."""
_OF_LEAVES = (
    "FROM result_rows r JOIN result_nodes n ON n.id = r.leaf "
    "LEFT JOIN case_rows c ON c.leaf = n.cases AND c.n = r.case_n"
)
_PART = """
    part (file, first, cases, results) AS (
        {start}
        UNION ALL
        SELECT p.file, p.first + c.first, c.child, q.child FROM part p
        JOIN parts q ON q.parent = p.results AND q.child IS NOT NULL
        LEFT JOIN parts c ON c.parent = p.cases AND c.place = q.place),
    leaf (file, first, cases, results) AS (
        SELECT p.file, p.first, p.cases, p.results FROM part p
        LEFT JOIN result_nodes n ON n.id = p.results WHERE coalesce(n.level, 0) = 0)
"""
# A node that is missing is a leaf here: whoever loads it says so.
_OF_FILES = "WITH RECURSIVE " + _PART.format(
    start="SELECT '', CAST(0 AS BIGINT), n.cases, n.id FROM result_nodes n WHERE n.id = ?"
)
OF_RUNS = """WITH RECURSIVE
    tree (node) AS (
        SELECT e.tree FROM entries e WHERE e.tree = ?
        UNION SELECT e.child FROM tree t JOIN entries e ON e.tree = t.node WHERE e.is_file = 0),
""" + _PART.format(
    start="""SELECT e.name, CAST(0 AS BIGINT), n.cases, e.child FROM tree t
        JOIN entries e ON e.tree = t.node AND e.is_file = 1
        LEFT JOIN result_nodes n ON n.id = e.child"""
)

VerdictCounts = Counter[tuple[str, Verdict | None]]
"""How many results there are by candidate and verdict; None stands for a result without one."""


class ResultLeaf(NamedTuple):
    """A node with results."""

    id: str
    cases: str
    """The node with their cases."""
    file: str = ""
    """Its file; empty where only one file is read."""
    first: int = 0
    """The number of its first case in the file."""


class VerdictsOfCases(NamedTuple):
    """How many cases of a node have how many judged, passed and unresolved results each."""

    judged: int
    passed: int
    unresolved: int
    cases: int
    results: int
    """Of all these cases; the counts before are of one."""


class Among(NamedTuple):
    """A condition on results: they have one of some names, or none of them."""

    field: str
    """What has the names: `model`, `verdict`, `tag`, or what rows do not say."""
    names: Collection[Any]
    """Exact names; of `verdict`, words of `URGENCY` and perhaps others."""
    is_negated: bool = False

    @property
    def is_in_rows(self) -> bool:
        """Return whether rows say which results meet it."""
        if self.field == "verdict":
            return {*self.names} <= {*URGENCY} - {"no reply"}
        return self.field in ("model", "tag")


def _condition(wanted: Iterable[Among]) -> tuple[str, list[str]]:
    """Return the condition for rows of results `r` with their cases `c`, and its parameters."""
    parts, parameters = ["1 = 1"], list[str]()
    for field, names, is_negated in wanted:
        part = "1 = 0"
        if names and field == "verdict":
            part = f"{_URGENCY} IN ({', '.join(str(URGENCY.index(word)) for word in names)})"
        elif names:
            part = f"r.model IN ({_places(names)})"
            if field == "tag":
                part = (
                    "EXISTS (SELECT 1 FROM kind_tags g WHERE g.kind = c.kind "
                    f"AND g.tag IN ({_places(names)}))"
                )
            parameters += names
        parts.append(f"NOT ({part})" if is_negated else part)
    return " AND ".join(parts), parameters


def _places(values: Collection[object]) -> str:
    return ", ".join("?" * len(values))


class ResultIds(NamedTuple):
    """What a result is about, without its file."""

    row: str
    model: str
    prompt: str | None
    prompts: int
    """How many system prompts its case has."""
    ids: tuple[str, ...]
    """Its test, evaluation, sessions and judgements."""


class RowQueries(NodeQueries):
    """The queries for rows."""

    def find_result_leaves(self, node: str) -> list[ResultLeaf]:
        """Return the nodes with results in and below one of the results of a file, in order.

        Raises `StoreError` when rows are missing.
        """
        found = self._find_leaves(_OF_FILES, node)
        listed = [id for _, id in self.list_leaves([("", node)], self.load_leaves([node]))]
        if [leaf.id for leaf in found] != listed:
            raise damaged("nodes", node, "not all nodes below it have rows")
        return found

    def find_most_urgent(self, tree: str, most: int) -> tuple[list[tuple[str, str, int]], int]:
        """Return the most urgent results of a tree of results, and how many it has in all.

        Each is its file, its node and its place there; those as urgent are in their order.
        """
        query = (
            f"{OF_RUNS} SELECT l.file, l.results, r.n {CELLS} WHERE r.leaf = l.results "
            f"ORDER BY {_URGENCY}, l.file, l.first, r.n LIMIT ?"
        )
        rows = self._select(query, (as_bytes(tree), most))
        count = f"{OF_RUNS} SELECT count(*) FROM leaf l JOIN result_rows r ON r.leaf = l.results"
        ((total,),) = self._select(count, (as_bytes(tree),))
        return [(str(file), as_digits(leaf), place) for file, leaf, place in rows], int(total)

    def find_tree_leaves(self, tree: str) -> list[ResultLeaf]:
        """Return the nodes with results of a tree of results, in the order of their files."""
        return self._find_leaves(OF_RUNS, tree)

    def _find_leaves(self, source: str, node: str) -> list[ResultLeaf]:
        query = f"{source} SELECT file, first, results, cases FROM leaf ORDER BY file, first"
        rows = self._select(query, (as_bytes(node),))
        return [
            ResultLeaf(as_digits(id), as_digits(cases), str(file), first)
            for file, first, id, cases in rows
        ]

    def find_result_ids(self, leaves: Iterable[ResultLeaf]) -> dict[str, list[ResultIds]]:
        """Return what the results in these nodes are about, by node.

        Raises `StoreError` when the case of one is missing.
        """
        statement = (
            "SELECT r.leaf, coalesce(c.row, ''), r.model, k.prompt, "
            "(SELECT count(*) FROM kind_prompts o WHERE o.kind = c.kind), "
            "substr(c.tests, 1, 16), c.evaluation, r.sessions, r.judgements FROM result_rows r "
            "JOIN result_nodes n ON n.id = r.leaf "
            "LEFT JOIN case_rows c ON c.leaf = n.cases AND c.n = r.case_n "
            "LEFT JOIN kind_prompts k ON k.kind = c.kind AND k.number = r.prompt WHERE r.leaf IN"
        )
        found: dict[str, list[ResultIds]] = {leaf.id: [] for leaf in leaves}
        rows = self._select_each(statement, found, "ORDER BY r.leaf, r.n")
        for leaf, row, model, prompt, prompts, *ids in rows:
            if not prompts:
                raise damaged("nodes", as_digits(leaf), "a result in it belongs to no case")
            text = b"".join(filter(None, ids)).hex()
            each = tuple([text[place : place + 32] for place in range(0, len(text), 32)])
            shown = as_digits(prompt) if prompt else None
            found[as_digits(leaf)].append(ResultIds(row, model, shown, prompts, each))
        return found

    def find_equal_leaves(self, files: Mapping[str, tuple[str, str]]) -> dict[str, Counter[str]]:
        """Return the nodes with results that are in and below both results of a file, by file.

        `files` has the nodes of both results of each. With each node it is said how often it is
        there. Not those of which a result has no verdict, or a case has the key or the label of
        one in other nodes of the two, as that may be the same case.
        """
        levels = self.find_levels(node for both in files.values() for node in both)
        found: dict[str, Counter[str]] = {}
        for path, (now, was) in files.items():
            if levels.get(now) == 0:
                found[path] = Counter([now] if now == was else ())
            elif now == was:
                found[path] = Counter(leaf.id for leaf in self.find_result_leaves(now))
            elif levels.get(was) != 0:
                found[path] = self._find_equal(now, was)
        statement = "SELECT DISTINCT leaf FROM result_rows WHERE verdict IS NULL AND leaf IN"
        rows = self._select_each(statement, {leaf for leaves in found.values() for leaf in leaves})
        unjudged = {as_digits(leaf) for (leaf,) in rows}
        judged = {
            path: Counter({leaf: times for leaf, times in leaves.items() if leaf not in unjudged})
            for path, leaves in found.items()
        }
        return {path: leaves for path, leaves in judged.items() if leaves}

    def _find_equal(self, now: str, was: str) -> Counter[str]:
        """Return the nodes below both, in the same order, that share no names with the others."""
        leaves = [self.find_result_leaves(node) for node in (now, was)]
        leaves = [[leaf._replace(first=0) for leaf in listed] for listed in leaves]
        times = Counter(leaves[0])
        times.subtract(leaves[1])
        ours, theirs = ([leaf for leaf in listed if not times[leaf]] for listed in leaves)
        if ours != theirs:
            return Counter()
        others = {leaf.cases for leaf, count in times.items() if count}
        apart = self.find_apart((leaf.cases for leaf in ours), others)
        return Counter(leaf.id for leaf in ours if leaf.cases in apart)

    def count_by_candidate(self, leaves: Iterable[str]) -> dict[str, VerdictCounts]:
        """Return how many results each of these nodes has, which have no parts."""
        statement = "SELECT leaf, model, verdict, count(*) FROM result_rows WHERE leaf IN"
        counts: dict[str, VerdictCounts] = {}
        rows = self._select_each(statement, leaves, "GROUP BY leaf, model, verdict")
        for leaf, model, verdict, count in rows:
            counts.setdefault(as_digits(leaf), Counter())[model, VERDICT_OF.get(verdict)] = count
        return counts

    def sum_verdicts(self, leaves: Iterable[str]) -> Counter[str]:
        """Return a number for each of these nodes that depends on its cases and their verdicts.

        The nodes have no parts. The sums of their numbers compare results that have.
        """
        statement = (
            "SELECT r.leaf, coalesce(c.row, ''), r.prompt, r.model, r.verdict "
            f"{_OF_LEAVES} WHERE r.leaf IN"
        )
        sums = Counter[str]()
        for leaf, *result in self._select_each(statement, leaves):
            sums[as_digits(leaf)] += hash(tuple(result))
        return sums

    def count_verdicts(self, leaves: Iterable[str]) -> Iterator[tuple[str, VerdictsOfCases]]:
        """Yield of each of these nodes how many of its cases have how many results."""
        statement = (
            "SELECT leaf, judged, passed, unresolved, count(*), sum(results) FROM ("
            "SELECT r.leaf AS leaf, count(r.verdict) AS judged, "
            f"sum(CASE WHEN r.verdict = {VERDICT_NUMBERS['pass']} THEN 1 ELSE 0 END) AS passed, "
            f"sum(CASE WHEN r.verdict IN ({_UNRESOLVED}) THEN 1 ELSE 0 END) AS unresolved, "
            "count(*) AS results FROM result_rows r WHERE r.leaf IN"
        )
        rest = "GROUP BY r.leaf, r.case_n) AS of_cases GROUP BY leaf, judged, passed, unresolved"
        for leaf, *counts in self._select_each(statement, leaves, rest):
            yield as_digits(leaf), VerdictsOfCases(*map(int, counts))

    def find_prompts(self, leaves: Iterable[str]) -> Iterator[tuple[str, str | None, int]]:
        """Yield the system prompts of the results in nodes, with their numbers, by node."""
        statement = (
            "SELECT DISTINCT r.leaf, k.prompt, r.prompt FROM result_rows r "
            "JOIN result_nodes n ON n.id = r.leaf "
            "JOIN case_rows c ON c.leaf = n.cases AND c.n = r.case_n "
            "JOIN kind_prompts k ON k.kind = c.kind AND k.number = r.prompt WHERE r.leaf IN"
        )
        rows = self._select_each(statement, leaves, "ORDER BY r.leaf, r.prompt")
        for leaf, prompt, number in rows:
            yield as_digits(leaf), prompt and as_digits(prompt), number

    def find_apart(self, leaves: Iterable[str], others: Iterable[str]) -> set[str]:
        """Return those of these nodes of cases that have no names of any other node.

        Those that have some are among the others, too.
        """
        apart, waiting = {*leaves}, list(others)
        while apart and waiting:
            some, waiting = waiting[: batches.SMALL_SIZE], waiting[batches.SMALL_SIZE :]
            named = apart & self.find_named_leaves(self.find_names(some))
            apart -= named
            waiting += named
        return apart

    def find_named_leaves(self, names: Iterable[str], tests: Iterable[str] = ()) -> set[str]:
        """Return the nodes that may have cases with one of these names, or one of these tests.

        Names are keys and labels.
        """
        numbers = {*map(hash_name, names), *(number_of(bytes.fromhex(test)) for test in tests)}
        statement, found = "SELECT DISTINCT leaf FROM case_names WHERE name IN", set[str]()
        with self._reading() as connection:
            for some in in_batches(sorted(numbers)):
                found.update(as_digits(leaf) for (leaf,) in connection.select_in(statement, some))
        return found

    def find_names(self, leaves: Iterable[str]) -> set[str]:
        """Return the keys and the labels of the cases in nodes."""
        statement = "SELECT key, row FROM case_rows WHERE leaf IN"
        rows = self._select_each(statement, leaves)
        return {name or "" for names in rows for name in names}

    def find_kinds(self, leaves: Iterable[str]) -> list[Json]:
        """Return what the cases in nodes have in common, each once: cases without their texts."""
        statement = (
            "SELECT DISTINCT k.content FROM kinds k JOIN case_rows r ON r.kind = k.id "
            "WHERE r.leaf IN"
        )
        kinds = {str(content) for (content,) in self._select_each(statement, leaves)}
        return [json.loads(content) for content in sorted(kinds)]

    def find_tags(self) -> set[str]:
        """Return the tags that a stored case has."""
        return {str(tag) for (tag,) in self._select("SELECT DISTINCT tag FROM kind_tags")}

    def find_tagged_cases(
        self, tags: Sequence[str]
    ) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
        """Yield what stored cases with one of these tags refer to: their tests, and the rest."""
        kinds = f"(SELECT kind FROM kind_tags WHERE tag IN ({_places(tags)}))"
        with self.snapshot() as connection:
            query = f"SELECT content FROM kinds WHERE id IN {kinds}"
            for (content,) in connection.stream(query, tags):
                kind = json.loads(content)
                yield (), [*filter(None, kind.get("prompts", ())), *kind.get("judgePrompts", ())]
            query = f"SELECT DISTINCT tests, evaluation FROM case_rows WHERE kind IN {kinds}"
            for tests, evaluation in connection.stream(query, tags):
                yield split_ids(tests), [as_digits(evaluation)] if evaluation else []

    def find_named_cases(self, file: CaseFile, names: Collection[str]) -> Iterator[Case]:
        """Yield the cases of a file that have one of these names, in their order.

        Names are keys and labels. Of a long file that is stored few cases are read.
        """
        cases: Iterable[Case] = file.cases
        if isinstance(file.cases, StoredCases):
            named = self.find_named_leaves(names)
            cases = file.cases.read(
                each for each in file.cases.smallest_parts() if each.node in named
            )
        for case in cases:
            if case.key in names or case.row in names:
                yield case

    def find_traits(self, file: CaseFile) -> CaseTraits:
        """Return what some of the cases of a file have."""
        if not isinstance(file.cases, StoredCases):
            traits = [("models" in case.judged_by, case.temperature is None) for case in file.cases]
        else:
            nodes = (part.node for part in file.cases.smallest_parts())
            traits = [
                ("models" in kind.get("judgedBy", MODELS), kind.get("temperature") is None)
                for kind in self.find_kinds(nodes)
            ]
        return CaseTraits(*map(any, zip(*traits, strict=True))) if traits else CaseTraits()

    def find_asked_leaves(self, session: str) -> set[str]:
        """Return the nodes that may have cases which a session is an answer to."""
        tests = self._select("SELECT test FROM answer_rows WHERE id = ?", (as_bytes(session),))
        return self.find_named_leaves((), [test.hex() for (test,) in tests])

    def count_leaves(self, tree: str) -> int:
        """Return how many nodes with results a tree of results has, with their cases."""
        query = (
            f"{OF_RUNS} SELECT count(*) FROM leaf l "
            "JOIN result_nodes r ON r.id = l.results JOIN case_nodes c ON c.id = l.cases"
        )
        ((count,),) = self._select(query, (as_bytes(tree),))
        return int(count)

    def find_cells(
        self, leaves: Sequence[ResultLeaf], wanted: Iterable[Among]
    ) -> dict[str, list[tuple[Any, ...]]]:
        """Return the results in a few nodes that are wanted, with facts of their cases, by node.

        The facts are the number of its case in the node and all columns of the result but its
        place, then the key, the label, the tests and the evaluation of the case, what it has in
        common with others, the system prompt and how many its case has; the prompt is None where
        there is none.
        """
        condition, parameters = _condition(wanted)
        query = (
            "SELECT r.leaf, r.case_n, r.prompt, r.model, r.verdict, r.score, r.wanted, r.sessions, "
            "r.judgements, c.key, c.row, c.tests, c.evaluation, k.content, p.number, p.prompt, "
            "(SELECT count(*) FROM kind_prompts o WHERE o.kind = c.kind) "
            f"{_OF_LEAVES} LEFT JOIN kinds k ON k.id = c.kind "
            "LEFT JOIN kind_prompts p ON p.kind = c.kind AND p.number = r.prompt "
            f"WHERE {condition} AND r.leaf IN ({_places(leaves)}) ORDER BY r.leaf, r.n"
        )
        ids = all_as_bytes(leaf.id for leaf in leaves)
        found: dict[str, list[tuple[Any, ...]]] = {leaf.id: [] for leaf in leaves}
        for leaf, *cell in self._select(query, (*parameters, *ids)):
            found[as_digits(leaf)].append(tuple(cell))
        return found

    def count_cells(self, leaves: Sequence[ResultLeaf], wanted: Iterable[Among]) -> Counter[str]:
        """Return how many results in a few nodes are wanted, by node."""
        condition, parameters = _condition(wanted)
        query = (
            f"SELECT r.leaf, count(*) {_OF_LEAVES} "
            f"WHERE {condition} AND r.leaf IN ({_places(leaves)}) GROUP BY r.leaf"
        )
        ids = all_as_bytes(leaf.id for leaf in leaves)
        rows = self._select(query, (*parameters, *ids))
        return Counter({as_digits(leaf): int(count) for leaf, count in rows})

    def count_results_by_kind(
        self, tree: str
    ) -> Iterator[tuple[str, str, Json, Verdict | None, int]]:
        """Yield how many results of a tree have a file, a candidate and a verdict.

        Their cases have the same JSON but for the texts.
        """
        query = (
            f"{OF_RUNS} SELECT l.file, r.model, k.content, r.verdict, count(*) {CELLS} "
            "JOIN kinds k ON k.id = c.kind WHERE r.leaf = l.results GROUP BY 1, 2, 3, 4"
        )
        with self.snapshot() as connection:
            for file, model, kind, verdict, count in connection.stream(query, (as_bytes(tree),)):
                yield file, model, json.loads(kind), VERDICT_OF.get(verdict), count

    def find_rows(self, table: TableColumns, ids: Iterable[str]) -> list[Any]:
        """Return the rows of a table that have these ids."""
        statement = f"SELECT {', '.join(table.columns)} FROM {table.name} WHERE id IN"
        return list(self._select_each(statement, ids))

    def find_levels(self, nodes: Iterable[str]) -> dict[str, int]:
        """Return how many levels of parts are below these nodes of results, by node."""
        statement = "SELECT id, level FROM result_nodes WHERE id IN"
        rows = self._select_each(statement, nodes)
        return {as_digits(id): level for id, level in rows}

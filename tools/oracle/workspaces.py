"""The workspaces of a corpus: those made by hand, random and imported ones, and old stores."""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from evalstore.store.schema import table_definitions
from tests.builders import tree
from tests.laws.desk_model import CODES, Desk, File
from tests.laws.test_reuse import NAMES, OF_A_FILE, OF_ALL
from tests.store import old_rows
from tools.oracle.histories import HISTORIES, rows, scripted

if TYPE_CHECKING:
    from tools.oracle.builder import Build, Builder

_ROUNDS = 100
"""How often something is drawn for a random workspace."""
_EDITS = st.one_of(
    st.tuples(
        st.sampled_from(NAMES),
        st.sampled_from(sorted(OF_A_FILE)).flatmap(
            lambda field: st.tuples(st.just(field), OF_A_FILE[field])
        ),
    ),
    st.tuples(
        st.just(""),
        st.sampled_from(sorted({*OF_ALL} - {"max_age"})).flatmap(
            lambda field: st.tuples(st.just(field), OF_ALL[field])
        ),
    ),
)
"""A file and one of its fields with a value, or one of the workspace's."""
_RUNS: tuple[tuple[str, ...], ...] = ((), ("tests/a.md",), ("--lf",), ("-m", "first"), ("-t", "x"))


def laws(number: int) -> Build:
    """Edits that the generator of the laws draws, with runs between them."""

    def build(b: Builder) -> None:
        desk = Desk({name: File(question=n % 3) for n, name in enumerate(NAMES)})
        for turn, (name, (field, value)) in enumerate(_drawn(number)):
            setattr(desk.files[name] if name else desk, field, value)
            if turn % 10 == 9:
                _write(b, desk)
                b.run("--keep-going", *_RUNS[turn // 10 % len(_RUNS)])
        desk.files.pop("d", None)
        _write(b, desk)

    return build


def _drawn(number: int) -> list[tuple[str, tuple[str, Any]]]:
    drawn = []

    @seed(number)
    @settings(
        max_examples=_ROUNDS,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(_EDITS)
    def draw(edit: tuple[str, tuple[str, Any]]) -> None:
        drawn.append(edit)

    draw()
    return drawn


def _write(b: Builder, desk: Desk) -> None:
    """Write a workspace whose models are scripts."""
    for path in [*b.folder.glob("tests/**/*.md"), *b.folder.glob("tests/*.png")]:
        path.unlink()
    tree(b.folder, desk.render())
    for id in ("first", "twin", "plain"):
        fields: dict[str, Any] = json.loads((b.folder / f"models/{id}.yaml").read_text("utf-8"))
        answers = [
            {"when": "Question 0", "answer": f'{{"v": 1, "of": "Question 1 {CODES[id]}"}}'},
            {"when": "Question 1", "answer": "[1]" if id == "plain" else "Answer to Question 1"},
            {"answer": "Answer to another question"},
        ]
        b.write(scripted(id, *answers, **{k: v for k, v in fields.items() if k in _KEPT}))
    b.write(scripted("judge", *_JUDGE) | scripted("judge2", *_JUDGE[1:]))


_KEPT = ("code", "capabilities", "candidateOverrides")
_JUDGE: tuple[dict[str, Any], ...] = (
    {"when": "(?s)Expect 3", "answer": "Hm."},
    {"when": "(?s)Expect 0", "answer": {"pass": True, "feedback": "as I said"}},
    {"answer": {"pass": False, "feedback": "as I said"}},
)


def imports(b: Builder) -> None:
    """Tests and recorded answers of other systems, with a model that answers some of them."""
    sources = b.place.out
    tree(
        sources,
        {
            "evals/evals/geo.yaml": "capitals:\n  id: capitals.dev.v0\n  metrics: [accuracy]\n"
            "capitals.dev.v0:\n  class: evals.elsuite.basic.match:Match\n"
            "  args: {samples_jsonl: geo/s.jsonl}\n",
            "evals/data/geo/s.jsonl": "".join(
                json.dumps(
                    {
                        "input": [
                            {"role": "system", "content": "Be brief."},
                            {"role": "user", "content": f"{country}?"},
                        ],
                        "ideal": ideal,
                    }
                )
                + "\n"
                for country, ideal in (("France", ["Paris", "Paname"]), ("Norway", "Oslo"))
            ),
            "foo/promptfooconfig.yaml": "prompts: ['Translate {{text}} to {{language}}']\ntests:\n"
            "  - vars: {text: Hi, language: French}\n    assert: [{type: icontains, value: oslo}]\n"
            "  - vars: {text: Bye, language: [Dutch, Danish]}\n"
            "    assert: [{type: llm-rubric, value: is polite}]\n",
            "one/s.jsonl": '{"input": "Where is Oslo?", "completion": "In Norway", '
            '"ideal": "Norway"}\n',
        },
    )
    b.write({"evalstore.yaml": "candidates: [m]\nevaluators: [judge]\n"})
    b.write(scripted("m", {"when": "Fr", "answer": "Paris"}, {"answer": "Oslo"}))
    b.write(scripted("judge", *_JUDGE[1:]))
    b.call("import", "openai-evals", str(sources / "evals"))
    b.call("import", "promptfoo", str(sources / "foo/promptfooconfig.yaml"))
    b.call("import", "evalsone", str(sources / "one/s.jsonl"))
    b.run()
    b.edit("models/m.yaml", "Oslo", "Oslo, I think")
    b.run("-k", "not tests/foo")
    b.run()
    shutil.rmtree(sources)


def old_store(version: str, b: Builder) -> None:
    """A store that a migration has made and no later one has changed."""
    b.widths = b.widths[:1]  # the stores differ, and what is said about them does not
    old_rows.restore(b.folder)
    path = b.folder / ".evalstore/store.db"
    if version >= "0003":  # long files are trees of nodes since then
        old_rows.convert(b.folder)
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "store.db")
        _copy(path, made, version)
        for left in path.parent.iterdir():
            left.unlink()
        shutil.copyfile(made, path)


def _copy(path: Path, made: Path, version: str) -> None:
    """Copy the rows of a store into the tables of a migration."""
    with closing(sqlite3.connect(made, isolation_level=None)) as new:
        with table_definitions.joined(
            "sqlite://", new, sqlite3.DatabaseError, "BEGIN IMMEDIATE"
        ) as connection:
            table_definitions.upgrade(connection, head=version)
        new.execute("ATTACH ? AS old", (str(path),))
        tables = "SELECT name FROM {} WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        mine = {name for (name,) in new.execute(tables.format("main.sqlite_master"))}
        for (name,) in new.execute(tables.format("old.sqlite_master")).fetchall():
            if name in mine - {"alembic_version"}:
                columns = ", ".join(
                    row[1] for row in new.execute(f"PRAGMA main.table_info({name})")
                )
                new.execute(f"INSERT INTO main.{name} ({columns}) SELECT {columns} FROM old.{name}")


WORKSPACES: dict[str, Build] = {
    **HISTORIES,
    **{f"laws-{number}": laws(number) for number in (3, 4, 11)},
    "imports": imports,
    **{f"old-{version}": partial(old_store, version) for version in table_definitions.KNOWN[:6]},
    "rows-10000": rows(10_000),
}
"""By their names."""

"""The laws for datasets, runs, repetitions, groups and recorded answers, as one property.

A model of the workspace knows what is asked and judged; it knows none of evalstore's ids. An
answer is a question and a number; what is judged is some answers, in order, and by what.
"""

from __future__ import annotations

import csv
import io
import json
import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from evalstore.core.values import Reply, Request, Usage
from evalstore.providers.base import ProviderError
from tests.laws.conftest import NewUrl
from tests.laws.fakes import CrashError, Fake, Place


class Row(NamedTuple):
    """One row of the data."""

    q: str
    ideal: str
    group: str
    recorded: str | None = None
    """An answer that the row brings itself."""


class Part(NamedTuple):
    """One run of a file: what it asks behind the row's question, and how often."""

    suffix: str
    times: int


@dataclass(frozen=True)
class File:
    """A test file with its data."""

    rows: tuple[Row, ...] = (Row("a", "a", "x"),)
    parts: tuple[Part, ...] = (Part("", 1),)
    scope: str = "answer"
    """`answer`, `case`, `group`, or `both` the first and the last."""
    attempts: int = 1
    grouped: bool = True
    format: str = "jsonl"
    noise: int = 0
    """Names and formats of files, columns that nothing uses, the order of rows."""

    @property
    def is_recorded(self) -> bool:
        return self.scope == "answer" and self.parts == (Part("", 1),) and self.format != "csv"

    def cells(self) -> Iterator[Cell]:
        """What gets a verdict."""
        groups: dict[str, dict[str, int]] = {}
        for row in self.rows:
            asked = [row.q + part.suffix for part in self.parts for _ in range(part.times)]
            recorded = self.is_recorded and row.recorded is not None
            if recorded:
                asked = [f"{row.q} is answered by {row.recorded}"]
            counts = groups.setdefault(row.group if self.grouped else "", {})
            for question, count in Counter(asked).items():
                counts[question] = max(count, counts.get(question, 0))
            if self.scope != "group":
                by = "all the same" if self.scope == "case" else f"has {row.ideal}"
                yield Cell(tuple(asked), by, 1 if recorded else self.attempts)
        if self.scope in ("group", "both"):
            for counts in groups.values():
                yield Cell(tuple(Counter(counts).elements()), "all the same group", self.attempts)

    def render(self, name: str) -> dict[str, bytes]:
        """The test file and its data file."""
        noise = random.Random(self.noise)
        folder = noise.choice(["data", "other/data"])
        path = f"{folder}/{name}.{self.format}"
        head = [f"dataset: {path}", f"attempts: {self.attempts}"]
        if self.grouped:
            head.append('group: "{{ g }}"')
        if self.is_recorded:
            head.append('answer: "{{ item.recorded | default(none) }}"')
        if len(self.parts) == 1 and self.parts[0].times > 1:
            head.append(f"repetitions: {self.parts[0].times}")
        noise.shuffle(head)
        checks = {
            "answer": ['- contains: "{{ ideal }}"'],
            "case": ["- {allEqual: , scope: case}"],
            "group": ["- {allEqual: , scope: group}"],
            "both": ['- contains: "{{ ideal }}"', "- {allEqual: , scope: group}"],
        }
        runs = [
            (f"# ▶ run{number} ×{part.times}\n\n" if len(self.parts) > 1 else "")
            + f"# 👤\n\n{{{{ q }}}}{part.suffix}\n"
            for number, part in enumerate(self.parts)
        ]
        fields, block = "\n".join(head), "\n".join(checks[self.scope])
        text = f"---\n{fields}\n---\n\n" + "\n".join(runs)
        text += f"\n---\n\n~~~checks\n{block}\n~~~\n"
        return {
            f"tests/{name}.md": text.encode(),
            f"tests/{path}": self._data(noise).encode(),
        }

    def _data(self, noise: random.Random) -> str:
        rows: list[dict[str, Any]] = []
        for item in self.rows:
            row: dict[str, Any] = {"q": item.q, "ideal": item.ideal, "g": item.group}
            if self.format != "csv":
                row |= (
                    {"recorded": item.recorded}
                    if item.recorded is not None or noise.random() < 0.5
                    else {}
                )
            row |= {"unused": str(noise.random())} if self.noise else {}
            rows.append(row)
        if self.format == "jsonl":
            return "".join(json.dumps(row) + noise.choice(["\n", "\n\n"]) for row in rows)
        if self.format == "json":
            return json.dumps(rows, indent=noise.choice([None, 1]))
        table = io.StringIO()
        writer = csv.DictWriter(table, rows[0], lineterminator=noise.choice(["\n", "\r\n"]))
        writer.writeheader()
        writer.writerows(rows)
        return table.getvalue()


class Cell(NamedTuple):
    """A case: what is asked, by what it is judged, how often."""

    questions: tuple[str, ...]
    by: str
    attempts: int


@dataclass
class Memory:
    """What is stored, and what a run must therefore do."""

    answers: Counter[str] = field(default_factory=Counter)
    judged: set[tuple[tuple[tuple[str, int], ...], str]] = field(default_factory=set)

    def run(self, files: dict[str, File], failing: str = "") -> tuple[Counter[str], int]:
        """The questions that get an answer, and how many judgements are made."""
        cells = [cell for file in files.values() for cell in file.cells()]
        expected: Counter[str] = Counter()
        for cell in cells:
            for question, count in Counter(cell.questions).items():
                expected[question] = max(expected[question], count * cell.attempts)
        asked = expected - self.answers
        if failing:
            asked = Counter({item: n for item, n in asked.items() if not item.endswith(failing)})
        self.answers += asked
        before = len(self.judged)
        self.judged |= {subject for cell in cells for subject in self._subjects(cell)}
        return asked, len(self.judged) - before

    def _subjects(self, cell: Cell) -> Iterator[tuple[tuple[tuple[str, int], ...], str]]:
        counts = Counter(cell.questions)
        for attempt in range(cell.attempts):
            taken: Counter[str] = Counter()
            actual = []
            for question in cell.questions:
                number = attempt * counts[question] + taken[question]
                taken[question] += 1
                if number < self.answers[question]:
                    actual.append((question, number))
            if len(actual) == len(cell.questions):
                yield tuple(actual), cell.by


class Asked(Fake):
    """A candidate that counts what it is asked, and fails at will."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: Counter[str] = Counter()
        self.fails_at = ""
        """How questions end that get no answer."""
        self.breaks_after: int | None = None
        """After how many more calls a crash ends the run."""

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        text = request.messages[-1].text
        if self.breaks_after is not None:
            if self.breaks_after == 0:
                raise CrashError
            self.breaks_after -= 1
        if self.fails_at and text.endswith(self.fails_at):
            raise ProviderError("unsupported", "nobody is there")
        self.texts[text] += 1
        return Reply(text, finish_reason="stop", usage=Usage(1, 1))


SETTINGS = {"candidates": ["one"], "retries": 0}
ALWAYS = {
    "evalstore.yaml": json.dumps(SETTINGS).encode(),
    "models/one.yaml": b"id: one\nprovider: scripted\nresponses: [{answer: nobody}]\n",
}
PARTS = st.sampled_from(
    [
        (Part("", 1),),
        (Part("", 2),),
        (Part("", 3),),
        (Part("", 2), Part("!", 1)),
        (Part("", 1), Part("!", 2), Part("?", 1)),
        (Part("!", 1), Part("", 1)),
    ]
)
ROWS = st.lists(
    st.builds(
        Row,
        st.sampled_from("abc"),
        st.sampled_from("ab"),
        st.sampled_from("xy"),
        st.sampled_from([None, None, "said", ""]),
    ),
    min_size=1,
    max_size=4,
).map(tuple)
FILES = st.builds(
    File,
    ROWS,
    PARTS,
    st.sampled_from(["answer", "case", "group", "both"]),
    st.integers(1, 2),
    st.booleans(),
    st.sampled_from(["jsonl", "json", "csv"]),
    st.integers(0, 5),
)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "rows": ROWS,
    "parts": PARTS,
    "scope": st.sampled_from(["answer", "case", "group", "both"]),
    "attempts": st.integers(1, 3),
    "grouped": st.booleans(),
    "format": st.sampled_from(["jsonl", "json", "csv"]),
    "noise": st.integers(0, 20),
}


def carried_out(place: Place, fake: Asked, files: dict[str, File], memory: Memory) -> None:
    """A run asks and judges just what is missing, `status` has said so, and then all is done."""
    place.write(
        ALWAYS | {k: v for name, item in files.items() for k, v in item.render(name).items()}
    )
    known = Counter(fake.texts)
    before = place.status()
    if fake.fails_at and fake.breaks_after is None:
        asked, judged = memory.run(files, fake.fails_at)
        report = place.run()
        assert (fake.texts - known, report.judged) == (_of_models(asked), judged)
        known, fake.fails_at = Counter(fake.texts), ""
        before = place.status()
    fake.fails_at = ""
    asked, judged = memory.run(files)
    new = _of_models(asked).total()
    assert (before.ask, before.record, before.judge) == (new, asked.total() - new, judged)
    if fake.breaks_after is not None:
        with suppress(CrashError):
            place.run(concurrency=1)
        fake.breaks_after = None
    report = place.run()
    assert report.status == "complete"
    assert fake.texts - known == _of_models(asked)
    assert place.status().items == []
    tables = Counter(table for table, _ in place.rows())
    assert tables["sessions"] == memory.answers.total()
    assert tables["evaluations"] == len(memory.judged)


def _of_models(asked: Counter[str]) -> Counter[str]:
    return Counter({item: n for item, n in asked.items() if " is answered by " not in item})


@settings(
    max_examples=settings().max_examples // 3,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    phases=(Phase.explicit, Phase.generate),
)
@given(data=st.data())
def test_whatever_is_judged_together_a_run_asks_just_what_is_missing(
    new_url: NewUrl, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        fake = Asked()
        place, memory = Place(Path(folder), fake, new_url()), Memory()
        files = {"one": data.draw(FILES), "two": data.draw(FILES)}
        carried_out(place, fake, files, memory)
        for _ in range(data.draw(st.integers(1, 3))):
            name = data.draw(st.sampled_from(sorted(files)))
            for changed in data.draw(st.lists(st.sampled_from(sorted(FIELDS)), max_size=2)):
                value = data.draw(FIELDS[changed])
                files[name] = replace(files[name], **{changed: value})
            fake.fails_at = data.draw(st.sampled_from(["", "", "!", "a", "b"]))
            fake.breaks_after = data.draw(st.sampled_from([None, None, 0, 1, 2, 3]))
            carried_out(place, fake, files, memory)
        assert place.damages() == []

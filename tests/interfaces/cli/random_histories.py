"""Small workspaces with a history of edits and runs, each made from a seed."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.builders import tree

_CITIES = [f"city {number}" for number in range(14)]
_PROMPTS = ("brief", "kind", "strict")
_CHECKS = (
    "contains: Oslo",
    "{contains: Rome, not: true}",
    "contains: '{{city}}'",
    "{judge: Is it right?, prompt: critic}",
)
_CRITIC = (
    "---\ntags: [_evaluator]\n---\n\nBe strict. {{_evaluationInstructions}}\n\n# 👤\n\n"
    "{{_actualResponse}}\n"
)
_SELECTIONS = (
    *((), (), ("--refresh",), ("--refresh", "-k", "1"), ("-k", "1 or 3"), ("--limit", "3")),
    *(("-m", "one"), ("--lf",), ("--sample", "4"), ("-x",), ("-r", "2"), ("--retry-errors",)),
)


@dataclass
class _TestFile:
    """A test file, with the rows of its dataset."""

    word: str
    rows: list[str]
    check: str
    prompts: list[str]
    attempts: int
    id: str = ""
    has_row_ids: bool = False

    def text(self, data: str) -> str:
        """Return its text; the rows are in a file with that name."""
        fields = {
            "dataset": data,
            "rowId": "number" * self.has_row_ids,
            "id": self.id,
            "systemPrompts": self.prompts,
            "attempts": self.attempts,
        }
        head = "".join(f"{name}: {json.dumps(value)}\n" for name, value in fields.items() if value)
        question = f"# 👤\n\n{self.word} {{{{city}}}}?\n\n---\n\n"
        return f"---\n{head}---\n\n{question}~~~checks\n- {self.check}\n~~~\n"

    def data(self) -> str:
        """Return its rows as JSON, one on each line."""
        rows = ({"number": number, "city": row} for number, row in enumerate(self.rows))
        kept = ("number", "city") if self.has_row_ids else ("city",)
        lines = (json.dumps({name: row[name] for name in kept}) for row in rows)
        return "".join(f"{line}\n" for line in lines)


@dataclass
class RandomHistory:
    """A workspace that is edited at random."""

    root: Path
    random: Random
    files: dict[str, _TestFile] = field(default_factory=dict)
    prompts: dict[str, str] = field(default_factory=lambda: {name: name for name in _PROMPTS})
    candidates: list[str] = field(default_factory=lambda: ["one", "two"])
    edition: int = 1
    rest: str = "Oslo"
    """What most questions are answered."""

    def __post_init__(self) -> None:
        for name in self.random.sample("abc", self.random.randint(1, 3)):
            self.files[name] = self._new_file()

    def _new_file(self) -> _TestFile:
        choose = self.random
        return _TestFile(
            choose.choice(("Where is", "What is")),
            choose.sample(_CITIES, choose.randint(1, len(_CITIES))),
            choose.choice(_CHECKS),
            choose.sample(_PROMPTS, choose.choice((0, 0, 1, 2))),
            choose.choice((0, 0, 2)),
            choose.choice(("", "", f"id-{choose.randrange(3)}")),
            has_row_ids=choose.random() < 0.2,
        )

    def edit(self) -> None:
        """Edit something."""
        choose = self.random
        name = choose.choice([*self.files])
        file = self.files[name]
        match choose.randrange(12):
            case 0:  # rename, perhaps to where another file was
                self.files[choose.choice("abcdef")] = self.files.pop(name)
            case 1:
                file.rows[choose.randrange(len(file.rows))] = choose.choice(_CITIES) + "!"
            case 2:
                choose.shuffle(file.rows)
            case 3 if len(file.rows) > 1:
                del file.rows[choose.randrange(len(file.rows))]
            case 4:
                file.rows.append(choose.choice(_CITIES))
            case 5:
                file.check = choose.choice(_CHECKS)
            case 6:
                file.word = choose.choice(("Where is", "What is", "Please, where is"))
            case 7:
                file.prompts = choose.sample(_PROMPTS, choose.randrange(3))
            case 8:
                self.prompts[choose.choice(_PROMPTS)] += " again"
            case 9:
                self.candidates = choose.choice((["one"], ["two"], ["one", "two"]))
            case 10:
                self.files[choose.choice("abcdef")] = self._new_file()
            case _:
                file.attempts = choose.choice((0, 2, 3))

    def answer_otherwise(self) -> None:
        """Let the candidates be other versions with other answers."""
        self.edition += 1
        self.rest = self.random.choice(("Oslo", "Oslo", "Rome", "Rome and Oslo"))

    def write(self) -> None:
        """Write the files, and remove those that are gone."""
        for old in (self.root / "tests").glob("*"):
            old.unlink()
        models = {f"models/{name}.yaml": self._model(name) for name in ("one", "two")}
        judge = "id: judge\nprovider: scripted\nresponses:\n- {when: 'Oslo [135]', answer: "
        judge += "{pass: false, feedback: No.}}\n- {answer: {pass: true}}\n"
        tests = {
            f"tests/{name}.md": file.text(f"{name}.jsonl") for name, file in self.files.items()
        }
        rows = {f"tests/{name}.jsonl": file.data() for name, file in self.files.items()}
        texts = {
            f"prompts/{name}.md": f"# ⚙️\n\nBe {text}.\n" for name, text in self.prompts.items()
        }
        settings = f"candidates: {json.dumps(self.candidates)}\nevaluators: [judge]\n"
        ids = [file.id for file in self.files.values() if file.id]
        for file in self.files.values():
            file.id = file.id if ids.count(file.id) < 2 else ""
        tests = {
            f"tests/{name}.md": file.text(f"{name}.jsonl") for name, file in self.files.items()
        }
        fixed = {
            "evalstore.yaml": settings,
            "models/judge.yaml": judge,
            "prompts/critic.md": _CRITIC,
        }
        tree(self.root, {**fixed, **models, **texts, **tests, **rows})

    def _model(self, name: str) -> str:
        digit = (self.edition + len(name) + (name == "two")) % 10
        responses = [
            f"{{when: '{digit}[?]', answer: Rome}}",
            f"{{when: '{(digit + 3) % 10}[?]', error: 400}}",
            f"{{answer: {self.rest} {self.edition if self.edition % 3 else ''}}}",
        ]
        listed = "".join(f"- {response}\n" for response in responses)
        head = f"id: {name}\nprovider: scripted\nextraIdentifier: v{self.edition}\n"
        return f"{head}responses:\n{listed}"

    def choose_run(self) -> tuple[str, ...]:
        """Return the options of a run."""
        return self.random.choice(_SELECTIONS)

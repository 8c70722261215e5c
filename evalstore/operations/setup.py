"""`init`: a new workspace, the example, or one around an ai-tester project."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from evalstore.allowed_paths import WorkspaceBoundary
from evalstore.errors import EvalstoreError, FileProblem
from evalstore.file_access import LARGEST_TEXT
from evalstore.formats.sources import reading_from
from evalstore.operations.desk import open_workspace, store_path
from evalstore.operations.orders import Where
from evalstore.parse import normalise
from evalstore.settings import FILE
from evalstore.store import Store
from evalstore.values import Json

STARTER = {
    FILE: """\
# Settings; every field is described in the documentation (formats).
candidates:
  - id: scripted/parrot     # models/parrot.yaml; or a litellm name such as openai/gpt-4o-mini
evaluators:
  - id: scripted/judge
""",
    "tests/hello.md": """\
---
tags: [greeting]
replacements:
  language: [English, French]
---

# 👤

Say hello in `{{language}}`.

---

The answer must be a greeting in `{{language}}`.
""",
    "models/parrot.yaml": """\
# A scripted model: it answers from this file, so everything works offline.
id: scripted/parrot
provider: scripted
responses:
  - {when: English, answer: Hello!}
  - {when: French, answer: Hello!}
""",
    "models/judge.yaml": """\
id: scripted/judge
provider: scripted
responses:
  - {when: "greeting in English", answer: {pass: true, feedback: ""}}
  - {when: "greeting in French", answer: {pass: false, feedback: "It is English, not French."}}
""",
}
IGNORED = ".evalstore/\n"


@dataclass
class Initialised:
    """What `init` made."""

    root: Path
    written: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    """Files that were there and are left as they are."""
    notes: list[str] = field(default_factory=list)

    def document(self) -> Json:
        """As JSON."""
        return {
            "workspace": str(self.root),
            "written": self.written,
            "kept": self.kept,
            "notes": self.notes,
        }


def init(
    directory: Path,
    *,
    example: bool = False,
    adopt_from: Path | None = None,
    store: str | None = None,
    allow_outside: bool = False,
) -> Initialised:
    """Make a workspace and its store; files that exist are never overwritten."""
    made = Initialised(directory)
    if directory.exists() and not directory.is_dir():
        raise EvalstoreError(f"'{directory}' is not a folder")
    directory.mkdir(parents=True, exist_ok=True)
    if adopt_from is not None:
        with reading_from([adopt_from, directory], allow_outside=allow_outside):
            _adopt(made, adopt_from)
    elif example:
        source = example_folder()
        for path in sorted(source.rglob("*")):
            name = path.relative_to(source).as_posix()
            if path.is_file() and not name.startswith(".evalstore/"):
                _write(made, name, path.read_bytes())
    elif (directory / FILE).exists():
        made.kept.append(FILE)
    else:
        for name, text in STARTER.items():
            _write(made, name, text.encode())
    _ignore(made)
    where = Where(directory, store=store, allow_outside=allow_outside)
    workspace = open_workspace(where)
    path = store_path(workspace, where)
    if not path.exists():
        made.written.append(os.path.relpath(path, directory).replace(os.sep, "/"))
    Store.open(path, create=True).close()
    return made


def _write(made: Initialised, name: str, data: bytes) -> None:
    path = made.root / name
    if os.path.lexists(path):
        made.kept.append(name)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    made.written.append(name)


def _adopt(made: Initialised, source: Path) -> None:
    from evalstore.formats.ai_tester import adopt

    if (made.root / FILE).exists():
        raise EvalstoreError(
            f"'{made.root / FILE}' exists already", hint="remove it first, or choose another folder"
        )
    text, notes = adopt(source.absolute(), made.root.absolute())
    _write(made, FILE, text.encode())
    made.notes += notes


def _ignore(made: Initialised) -> None:
    path = made.root / ".gitignore"
    text = ""
    if os.path.lexists(path):
        try:
            text = normalise(WorkspaceBoundary(made.root).read(path, LARGEST_TEXT))
        except FileProblem as problem:
            made.notes.append(f".gitignore: {problem.message}; add '.evalstore/' to it")
            return
    if ".evalstore/" not in text.split():
        path.write_text(
            text + ("" if not text or text.endswith("\n") else "\n") + IGNORED, encoding="utf-8"
        )
        made.written.append(".gitignore")


def example_folder() -> Path:
    """The example workspace: in the package when installed, else in the checkout."""
    package = Path(__file__).parent.parent
    installed = package / "example"
    return installed if installed.is_dir() else package.parent / "example"

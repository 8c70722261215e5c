"""Attack: workspaces and sources of imports whose files are hostile."""

from __future__ import annotations

from pathlib import Path

from tests.builders import tree
from tests.hostile.campaign import generate, mutate, nasty_files
from tests.hostile.campaign.import_sources import SOURCES
from tests.hostile.campaign.nasty_cases import IMPORTS, WORKSPACES
from tests.hostile.campaign.trial import Attack, Trial
from tests.hostile.campaign.workspaces import example_files, loopback, numbered

COMMANDS = (
    ("check",),
    ("status",),
    ("ls", "cases", "--full", "--json"),
    ("run", "--limit", "8"),
    ("run", "--limit", "4", "--offline", "--fail-on", "none"),
    ("doctor", "--timeout", "2"),
    ("diff",),
)


def attempt(trial: Trial) -> None:
    """Give the program hostile files, and let it read and run them."""
    if trial.name in IMPORTS:
        format, path, files = IMPORTS[trial.name]
        tree(trial.workspace, loopback(trial))
        _write(trial, trial.workspace / "source", files)
        _import(trial, format, path)
    elif trial.name in WORKSPACES:
        tree(trial.workspace, loopback(trial))
        _write(trial, trial.workspace, WORKSPACES[trial.name])
        _read_and_run(trial)
    else:
        trial.chance.choice((_mutate_workspace, _mutate_source, _generate))(trial)


def _read_and_run(trial: Trial) -> None:
    """A command that reads, one that runs, and one more; none after one that did not end."""
    for argv in (COMMANDS[0], COMMANDS[3], trial.chance.choice(COMMANDS)):
        if trial.run(*argv).hung:
            break


def _import(trial: Trial, format: str, path: str) -> None:
    ended = trial.run("import", format, f"source/{path}")
    if ended.code in (0, 1) and not ended.hung:
        checked = trial.run("check")
        written = any((trial.workspace / "tests").rglob("*.md"))
        if trial.name == "random" and written and checked.code == 2:
            trial.note("imports what it refuses to read", checked.stderr[:300])
    copied = (item for item in (trial.workspace / "tests").rglob("*") if item.is_file())
    if any(trial.marker in item.read_text("utf-8", "replace") for item in copied):
        trial.note("imports what is outside the source")


def _mutate_workspace(trial: Trial) -> None:
    files = example_files()
    names = [name for name in files if not name.endswith("README.md")]
    for name in trial.chance.sample(names, trial.chance.choice((1, 1, 2))):
        files[name] = mutate.data(trial.chance, files[name])
    tree(trial.workspace, files)
    _read_and_run(trial)


def _mutate_source(trial: Trial) -> None:
    format = trial.chance.choice(sorted(SOURCES))
    path, files = SOURCES[format]
    name = trial.chance.choice(sorted(files))
    content = mutate.data(trial.chance, files[name].encode())
    tree(trial.workspace, loopback(trial))
    tree(trial.workspace / "source", {**files, name: content})
    _import(trial, format, path)


def _generate(trial: Trial) -> None:
    chance = trial.chance
    files = {**loopback(trial), **numbered(2), "tests/drawn.md": generate.test_file(chance)}
    schema = generate.text_of({"id": "s", **_mapping(trial)})
    kinds = {
        "schemas/s.json": schema,
        "tools/t.yaml": generate.text_of({"id": "t", "name": "t", **_mapping(trial)}),
        "models/m.yaml": generate.text_of({"id": "m", **_mapping(trial)}),
        "currencies/c.yaml": generate.text_of({"code": "ABC", **_mapping(trial)}),
        "evalstore.yaml": generate.text_of({"candidates": ["candidate"], **_mapping(trial)}),
        "tests/rows.jsonl": "".join(generate.text_of(_mapping(trial)) + "\n" for _ in range(3)),
    }
    name = chance.choice(sorted(kinds))
    tree(trial.workspace, {**files, name: _encodable(kinds[name])})
    _read_and_run(trial)


def _mapping(trial: Trial) -> dict[str, object]:
    chance = trial.chance
    return {chance.choice(generate.FIELDS): generate.value(chance) for _ in range(2)}


def _encodable(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _write(trial: Trial, root: Path, files: nasty_files.Files) -> None:
    words = {
        nasty_files.RAN: str(trial.ran),
        nasty_files.OUTSIDE: str(trial.outside),
        nasty_files.SERVER: trial.server.url,
        nasty_files.MARKER: trial.marker,
    }
    nasty_files.write(root, files, words)


ATTACK = Attack(
    "files",
    "hostile files: workspaces and sources of imports",
    attempt,
    share=3,
    names=(*WORKSPACES, *IMPORTS),
)

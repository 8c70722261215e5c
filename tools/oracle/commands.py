"""The commands whose output is compared."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tools.oracle.programs import Place, Program

WIDTHS = (80, 120)
"""Columns of the terminal in which texts are printed."""
_KINDS = ("tests", "cases", "models", "evaluators", "prompts", "tools", "schemas", "tags", "labels")

_TEXTS = (
    *("status", "status --explain", "status --short", "status --lf", "status --changed"),
    *("run -n", "run -n --explain --refresh", "run -n --lf", "run -n --sample 5 --seed 2"),
    *("run -n -k {stem}", "run -n -t {tag} --explain", "run -n -r 4", "run -n --retry-errors"),
    *(
        "run -n --max-age 30h",
        "run -n --limit 3",
        "run -n --shard 1/3",
        "run --judge-only -n",
        "check",
    ),
    *("log", "log -v", "log --oneline --graph", "log --failures", "log -n 2", "show @"),
    *("show @~1", "show @~2", "show @work", "stats", "stats @", "stats @~1 --wide"),
    *("stats --by prompt", "stats @ --by tag", "stats --by file", "stats @~2 --by model,tag"),
    *("stats --by model,file,prompt", "stats --query {query}", "diff", "diff --stat", "diff -v"),
    *("diff @~1 @ --answers", "diff @ @~1 --flips", "diff @~2 @", "diff @~3 @~1", "diff @~4 @"),
    *("diff @~2 @work", "diff @ --model {model} --vs {other}", "grep number", "fsck", "ls runs"),
    *("grep har --in answers", "grep right -l", "grep say --in tests", "report --markdown"),
    *(f"ls {kind}" for kind in _KINDS),
)
"""Printed as texts in each width; those with a name that a workspace lacks are left out."""
_ONCE = (
    *("run --fail-on regression", "run --fail-on regression --baseline @~2 --offline"),
    *("run --threshold 0.5", "run --fail-on undecided --all", "run --lf --fail-on error"),
    *("diff @~1 @ --exit-code --stat", "diff @ @ --exit-code", "run -t nowhere", "show 0000"),
    *("diff @~99", "stats --by colour", "log tests/none.md", "grep zebracorn", "ls nothing"),
    *("ls checks", "trust --list", "--color always diff @~1 @", "--color always show @"),
)
"""Those with an exit code of their own, and those that need no second width."""
_JSON = (
    *("status", "status --lf", "run -n --refresh", "run -n --sample 5 --seed 2", "check", "log"),
    *("log --failures", "show @", "show @~1", "show @work", "stats", "stats @", "stats @~1"),
    *("stats --by tag,prompt", "stats @ --by file", "stats @~2", "diff", "diff @~1 @"),
    *("diff @ @~1", "diff @~2 @ --answers", "diff @~3 @~1", "diff @~4 @", "diff @~2 @work"),
    *("diff @ --model {model} --vs {other}", "grep number", "grep har", "fsck", "ls runs"),
    *("ls cases --full", *(f"ls {kind}" for kind in _KINDS)),
)
"""Printed as JSON."""
_TABLES = (
    "status",
    "log",
    "show @",
    "diff @~1 @",
    "stats --by model,tag",
    "ls cases",
    "grep right",
)
_FORMS = ("csv", "md", "jsonl")
"""How the rows of tables are printed, too."""
_EXPORTS = (
    *("jsonl", "csv", "json", "md", "junit", "otlp", "parquet", "inspect", "langbite"),
    "every-eval-ever",
)
_WRITTEN = (
    *(f"export @ --format {form} -o {{out}}/{form}" for form in _EXPORTS),
    *("export @~1 -o {out}/older.jsonl", "export @work -o {out}/work.csv"),
    *("report -o {out}/work.html", "report @ --compare @~2 -o {out}/run.html"),
    *("report @~1 -o {out}/run.md", "push {out}/results.bundle"),
    "push {out}/new.bundle --since @~1",
)
"""Those that write files, which are compared."""
_CHAINS = (
    "status && status && stats && stats --by tag && diff && diff",
    "run --fail-on none && status && log -n 1 && stats @ && diff @~1 @ && show @ && run",
    "label {case} fail --as Eve --all && status && stats && show @work && diff && ls labels",
    "push {far}/b.bundle && clone {far}/b.bundle {far}/w && log -C {far}/w && "
    "stats @ -C {far}/w && diff @~1 @ -C {far}/w && show @ -C {far}/w && fsck -C {far}/w && "
    "grep right -C {far}/w",
    "remote add origin {far}/r && push && remote show && push && pull && fsck --remote origin",
)
"""Several commands, each with what the one before has left."""
_OF_FILES = (
    "log {file}",
    "show {file}",
    "show @~1:{file}",
    "diff @~2 @ -- {file}",
    "ls cases {file}",
)
_OF_CASES = ("show {case}", "log {case}", "status {case} --explain")
_OF_THINGS = ("show {thing}",)
_FEW = 4
"""How many test files and cases are asked for."""
_MOST = 12
"""How many stored things are."""
_NAME = re.compile(r"{(\w+)}")
_END = re.compile(r"(?= -- )|$")
_RUN = re.compile(r"@~(\d)\b")

Names = Mapping[str, Sequence[str]]
"""What a workspace has, by what stands for it in a command line."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command line, or several; `{out}` is the folder of what is compared, `{far}` another."""

    line: str
    columns: int | None = None

    def __str__(self) -> str:
        """Return what it is called."""
        return self.line if self.columns is None else f"{self.line} (in {self.columns} columns)"

    def words(self, place: Place) -> Iterator[list[str]]:
        """The arguments of each."""
        for line in self.line.split(" && "):
            yield [
                word.replace("{out}", str(place.out)).replace("{far}", str(place.far))
                for word in shlex.split(line)
            ]


def commands_for(
    program: Program, place: Place, now: int, widths: Sequence[int] = WIDTHS
) -> list[Command]:
    """All commands for a workspace; texts in each of some widths."""
    runs, names = _names(program, place, now)

    def filled(lines: Sequence[str], count: int = 1) -> list[str]:
        fitting = [line for line in lines if all(int(n) < runs for n in _RUN.findall(line))]
        return [item for line in fitting for item in _filled(line, names, count)]

    named = filled((*_OF_FILES, *_OF_CASES, *_OF_THINGS), _MOST)
    in_json = [*filled(_JSON), *named]
    return [
        *(Command(line, width) for line in (*filled(_TEXTS), *named) for width in widths),
        *(Command(line, WIDTHS[0]) for line in filled((*_ONCE, *_CHAINS))),
        *(Command(_END.sub(" --json", line, count=1)) for line in in_json),
        *(Command(f"{line} -o {form}") for line in filled(_TABLES) for form in _FORMS),
        *(Command(line) for line in filled(_WRITTEN)),
    ]


def _filled(line: str, names: Names, count: int) -> Iterator[str]:
    """A command line with each of some names; none when the workspace lacks one."""
    found = [name for name in _NAME.findall(line) if name in names]
    for number in range(count if found else 1):
        if all(number < len(names[name]) for name in found):
            yield _NAME.sub(
                lambda match, number=number: (  # type: ignore[misc]
                    shlex.quote(names[match[1]][number]) if match[1] in names else match[0]
                ),
                line,
            )


def _names(program: Program, place: Place, now: int) -> tuple[int, Names]:
    """The number of runs, and names of what there is, as the program lists it."""

    def listed(*arguments: str) -> dict[str, Any]:
        _, out, _ = program.run(place, [*arguments, "--json"], now=now)
        found: dict[str, Any] = json.loads(out)
        return found

    cases = listed("ls", "cases")["cases"]
    files = _some(dict.fromkeys(case["file"] for case in cases))
    failures = listed("log", "--failures")["failures"]
    _, out, _ = program.run(place, ["export", "@", "--format", "jsonl"], now=now)
    results = [json.loads(line) for line in out.splitlines()]
    models = sorted({result["model"] for result in results})
    settings = (place.workspace / "evalstore.yaml").read_text(encoding="utf-8")
    return listed("log")["total"], {
        "file": files,
        "stem": [files[0].removesuffix(".md").rsplit("/")[-1]] if files else [],
        "case": _some(f"{case['file']}::{case['row']}" for case in cases if case.get("row"))
        or files,
        "tag": sorted({tag for case in cases for tag in case["tags"]})[-1:],
        "model": models[:1],
        "other": models[1:2],
        "query": re.findall(r'"description": "(\w+)"', settings)[:1],
        "thing": [*_ids(results), *(failure["failure"] for failure in failures[:1])],
    }


def _some(names: Iterable[str]) -> list[str]:
    found = list(names)
    return found[:: max(1, -(-len(found) // _FEW))]


def _ids(results: list[dict[str, Any]]) -> Iterator[str]:
    """Ids in results: answers of each verdict, and one of each other kind."""
    verdicts = {result["verdict"]: result for result in results}
    for result in verdicts.values():
        yield from result["sessions"][:1]
    for result in results[:1]:
        yield from (result["test"], result["evaluation"], *result["evaluations"][:1])

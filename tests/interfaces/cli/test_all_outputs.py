"""What holds for each format of `export` and both forms of `report`: names, disks, and runs."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree
from zipfile import ZipFile

from evalstore.exchange.exports.formats import FORMATS
from tests.builders import tree
from tests.interfaces.cli.export.test_export import ASKED, rows_of

if TYPE_CHECKING:
    from tests.forked_programs import Starter
    from tests.interfaces.cli.conftest import Echo, Evalstore
import pytest

pytestmark = pytest.mark.extended

FOLDERS = ("inspect", "langbite", "every-eval-ever")
COMMANDS: dict[str, tuple[str, ...]] = {
    "html": ("report", "-o"),
    "html-work": ("report", "@work", "-o"),
    "markdown": ("report", "--markdown", "-o"),
    **{format: ("export", "--format", format, "-o") for format in FORMATS},
}
NAME = "tests/=1+1 <img src=x onerror=alert(1)>\u202egpj \x1b[31m\t& ]]> `|`.md"
ROW = "@sum <svg onload=alert(1)>\u2066 \x1b]0;x\x07 \x00"


def test_names_of_files_and_rows_are_text_in_each_format(echo: Echo, evalstore: Evalstore) -> None:
    replacement = f"---\nreplacements: {{x: [{json.dumps(ROW)}]}}\n---\n\n"
    tree(Path.cwd(), {NAME: replacement + ASKED.replace("Question", "Is it {{x}}")})
    echo.reply = lambda _text: "<svg onload=alert(1)> +1"
    evalstore("run")
    for format, command in COMMANDS.items():
        assert evalstore(*command, f"out-{format}").exit_code == 0, format
    (row,) = rows_of("out-jsonl")
    assert (row["file"], row["answer"]) == (NAME, "<svg onload=alert(1)> +1")
    assert json.loads(Path("out-json").read_bytes())["results"] == [row]
    from pyarrow import parquet

    (record,) = parquet.read_table("out-parquet").to_pylist()
    assert (record["file"], record["row"]) == (NAME, row["row"])
    for path in (Path("out-csv"), *Path("out-langbite").iterdir()):
        with path.open(encoding="utf-8", newline="") as file:
            cells = [cell for line in csv.reader(file) for cell in line]
        assert cells, path
        assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t"))], path
    for name in ("out-csv", "out-md", "out-markdown", "out-html", "out-html-work"):
        text = Path(name).read_text(encoding="utf-8")
        assert {letter for letter in text if not letter.isprintable()} <= {"\n", "\t"}, name
    for name in ("out-html", "out-html-work"):
        assert "<img" not in Path(name).read_text(encoding="utf-8"), name
    suite = ElementTree.parse("out-junit").find("testsuite")
    assert suite is not None
    assert suite.get("file", "").startswith("tests/=1+1 <img src=x onerror=alert(1)>")
    for path in (Path("out-otlp"), *Path("out-every-eval-ever").rglob("*.json")):
        assert json.loads(path.read_bytes()), path
    (log,) = Path("out-inspect").iterdir()
    with ZipFile(log) as archive:
        assert archive.testzip() is None
        assert not [name for name in archive.namelist() if "\x1b" in name or ".." in name]


def test_a_full_disk_leaves_the_old_file_and_nothing_else(
    echo: Echo, evalstore: Evalstore, start: Starter
) -> None:
    rows = ", ".join(map(str, range(150)))
    asked = ASKED.replace("Question", "{{n}}").replace(
        "# ", f"---\nreplacements: {{n: [{rows}]}}\n---\n\n# ", 1
    )
    tree(Path.cwd(), {f"tests/{'m' * 200}.md": asked})
    echo.reply = lambda text: f"{random.Random(text).getrandbits(4_000):x}"  # does not compress
    assert evalstore("run", "--yes", "--fail-on", "none").exit_code == 0
    evalstore("report", "-o", "html")
    before = Path("html").read_bytes()
    written = [format for format in COMMANDS if format != "markdown"]  # which is never that large
    old = {format: b"old" for format in written if format not in FOLDERS}
    old |= {"html": before, "html-work": before}
    for format, content in old.items():
        Path(format).write_bytes(content)
    names = sorted(path.name for path in Path.cwd().iterdir())
    running = [
        (format, start(*COMMANDS[format], format, limits={"FSIZE": 40 * 1024}))
        for format in written
    ]
    for format, program in running:
        code, out, err = program.finish()
        assert (code, out, err) == (
            2,
            "",
            f"error: '{format}' cannot be written: File too large\n",
        ), format
    assert sorted(path.name for path in Path.cwd().iterdir()) == names
    assert {format: Path(format).read_bytes() for format in old} == old


def test_a_run_that_goes_on_is_in_nobodys_way(
    echo: Echo, evalstore: Evalstore, start: Starter, documents: Any
) -> None:
    tree(Path.cwd(), {"tests/one.md": ASKED, "tests/two.md": ASKED.replace("Question", "Other")})
    evalstore("run")
    told: dict[str, tuple[int, str, str]] = {}

    def reply(text: str) -> str:
        """Write everything while the other answer is stored and this one is awaited."""
        if len(echo.asked) == 4 and not told:
            running = {format: start(*COMMANDS[format], f"out-{format}") for format in COMMANDS}
            told.update({format: program.finish() for format, program in running.items()})
        return f"needle {text}"

    echo.reply = reply
    ran = evalstore("run", "--refresh", "-j", "1")
    assert (ran.exit_code, len(told)) == (0, len(COMMANDS)), ran.stderr
    assert {format: ended[0] for format, ended in told.items()} == dict.fromkeys(COMMANDS, 0), told
    assert [row["answer"] for row in rows_of("out-jsonl")] == ["Question?", "Other?"]
    for name in ("out-html", "out-html-work"):
        assert Path(name).read_bytes().endswith(b"</html>\n")
    evalstore("export", "-o", "r.jsonl")
    assert [row["answer"] for row in rows_of()] == ["needle Question?", "needle Other?"]
    assert documents("fsck")["problems"] == []

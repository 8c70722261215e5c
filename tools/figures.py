"""`python -m tools.figures`: how large the program is, and how much of it a command executes."""

from __future__ import annotations

import ast
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tests import work_sizes
from tools.example_history import build_history

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "evalstore"
_TRACED = """
import sys
files = set()
def note(frame, event, argument):
    if frame.f_code.co_flags & 1:  # a function, not a module or a class
        files.add(frame.f_code.co_filename)
sys.setprofile(note)
from evalstore.__main__ import run
try:
    run()
finally:
    sys.setprofile(None)
    print(*sorted(files), sep="\\n", file=open({out!r}, "w"))
"""


def main() -> None:
    """Print the figures, one on each line."""
    sources = {path: path.read_text("utf-8") for path in PACKAGE.rglob("*.py")}
    folder, most = Counter(path.parent for path in sources).most_common(1)[0]
    lines = [
        f"lines of evalstore/: {count_lines(sources.values()):,}",
        f"files: {len(sources):,}",
        f"statements: {sum(map(count_statements, sources.values())):,}",
        f"files in the largest folder: {most} ({folder.relative_to(ROOT)})",
        f"numbers that divide work: {len(work_sizes.drawn_names()) + len(work_sizes.OF_TREES)}",
    ]
    executed = {command: trace(command) for command in ("status", "show", "log", "diff")}
    own = executed["diff"] - executed["status"] - executed["show"] - executed["log"]
    for name, files in (
        ("files that `status` executes", executed["status"]),
        ("files that `diff` executes", executed["diff"]),
        ("files that `diff` executes, and `status`, `show` and `log` do not", own),
    ):
        length = count_lines(sources[path] for path in files)
        lines.append(f"{name}: {len(files)}, with {length:,} lines")
    sys.stdout.write("\n".join(lines) + "\n")


def count_lines(texts: Iterable[str]) -> int:
    """Return how many lines these have."""
    return sum(text.count("\n") for text in texts)


def count_statements(text: str) -> int:
    """Return how many statements a module has, without docstrings."""
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt)]
    return sum(
        not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)) for node in nodes
    )


def trace(command: str) -> set[Path]:
    """Return the files of which a command executes functions, on the example after an edit."""
    with tempfile.TemporaryDirectory() as folder:
        place = build_history(Path(folder))
        out = Path(folder) / "files"
        code = _TRACED.format(out=str(out))
        argv = [sys.executable, "-c", code, "-C", str(place), command]
        subprocess.run(argv, capture_output=True, check=False)
        executed = {Path(line) for line in out.read_text("utf-8").splitlines()}
    return {path for path in executed if path.is_relative_to(PACKAGE)}


if __name__ == "__main__":
    main()

"""Compares what two versions of evalstore say about the same stores, command by command.

`make` builds a corpus with the program of before: workspaces with their stores, and what every
command says about them. `check` says what another program says otherwise about copies of them.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from evalstore.core.errors import EvalstoreError
from tools.oracle.corpus import Difference, Programs, compare, make
from tools.oracle.workspaces import WORKSPACES

_SHOWN = 12
"""Lines of a difference that are shown without `--verbose`."""
_WIDEST = 300
_MEMORY = Path("/dev/shm")


def main(arguments: list[str] | None = None) -> int:
    """Make or check a corpus; the exit code is 1 when something differs."""
    options = _parser().parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory(prefix="oracle-", dir=_memory()) as folder:
            work = Path(folder)
            with Programs(options.program, work, options.jobs) as programs:
                if options.act == "make":
                    return _make(programs, options, work)
                return _check(programs, options, work)
    except EvalstoreError as error:
        sys.stderr.write(f"error: {error}\n")
        if error.hint:
            sys.stderr.write(f"hint: {error.hint}\n")
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.oracle",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("act", choices=("make", "check"))
    parser.add_argument("program", type=Path, metavar="PROGRAM", help="such as .venv/bin/evalstore")
    parser.add_argument("folder", type=Path, metavar="DIR", help="the corpus")
    parser.add_argument("--only", action="append", metavar="NAME", help="only this workspace")
    parser.add_argument(
        "--commands", type=re.compile, default="", metavar="REGEX", help="only these commands"
    )
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("-v", "--verbose", action="store_true", help="show whole differences")
    return parser


def _memory() -> Path | None:
    """A folder in memory, where there is one."""
    return _MEMORY if os.access(_MEMORY, os.W_OK) else None


def _make(programs: Programs, options: argparse.Namespace, work: Path) -> int:
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.only or WORKSPACES:
        if name not in WORKSPACES:
            raise EvalstoreError(f"no workspace '{name}'", hint=f"one of {', '.join(WORKSPACES)}")
        began = time.monotonic()
        build = WORKSPACES[name]
        count = make(programs, options.folder / f"{name}.zip", build, work, options.commands)
        _say(f"{name}: {count} commands recorded in {time.monotonic() - began:.0f} s")
    return 0


def _check(programs: Programs, options: argparse.Namespace, work: Path) -> int:
    names = options.only or sorted(path.stem for path in options.folder.glob("*.zip"))
    if not names:
        raise EvalstoreError(f"{options.folder}: no corpus", hint="make one with 'make'")
    total = differ = 0
    for name in names:
        began = time.monotonic()
        path = options.folder / f"{name}.zip"
        if not path.is_file():
            raise EvalstoreError(f"{path}: not found", hint="make it with 'make'")
        compared = found = 0
        for difference in compare(programs, path, work, options.commands):
            compared += 1
            if difference is not None:
                found += 1
                _say("\n".join(_lines(difference, is_whole=options.verbose)))
        _say(f"{name}: {found} of {compared} differ ({time.monotonic() - began:.0f} s)")
        total, differ = total + compared, differ + found
    _say(f"{differ} of {total} comparisons differ")
    return int(differ > 0)


def _lines(difference: Difference, *, is_whole: bool) -> Iterator[str]:
    """A difference as people read it."""
    yield f"* {difference.workspace}: evalstore {difference.command}"
    lines = difflib.unified_diff(
        difference.before.split("\n"), difference.after.split("\n"), lineterm="", n=1
    )
    for number, line in enumerate(list(lines)[2:]):
        if not is_whole and number == _SHOWN:
            yield "    … (--verbose shows all)"
            return
        yield f"    {line if is_whole else line[:_WIDEST]}"


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

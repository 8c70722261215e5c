"""Runs many commands, each in a fork of one process that has loaded the program.

`python forking.py < cases.json`: a list of `[streams, arguments]`. The answer is a list of
`[exit code, stdout, stderr]`, with text in Latin-1, so that each byte is a character.
"""

from __future__ import annotations

import gc
import importlib
import io
import json
import os
import pkgutil
import sys
import tempfile
from pathlib import Path

import evalstore
from evalstore.__main__ import run
from evalstore.cli.main import commands

CLOSED = {"stdin closed": 0, "stdout closed": 1, "stderr closed": 2}
FULL = {"stdout full": 1, "stderr full": 2}
UNREAD = {"stdout unread": 1, "stderr unread": 2}
ENCODED = {"ascii": "ascii", "latin": "iso-8859-1"}
STREAMS = ("plain", *CLOSED, *FULL, *UNREAD, *ENCODED, "all closed", "folder gone")
NAMES = ("stdin", "stdout", "stderr")


def change(streams: str) -> None:
    """Give this process the streams that a test names."""
    for number in range(3) if streams == "all closed" else [CLOSED.get(streams)]:
        if number is not None:
            os.close(number)
            setattr(sys, NAMES[number], None)
    if streams in FULL:
        os.dup2(os.open("/dev/full", os.O_WRONLY), FULL[streams])
    if streams in UNREAD:
        reading, writing = os.pipe()
        os.dup2(writing, UNREAD[streams])
        os.close(reading)
        os.close(writing)
    if streams in ENCODED:
        for stream in (sys.stdout, sys.stderr):
            assert isinstance(stream, io.TextIOWrapper)
            stream.reconfigure(encoding=ENCODED[streams])
    if streams == "folder gone":
        os.chdir(tempfile.mkdtemp())
        Path.cwd().rmdir()


def main() -> None:
    """Run all of them, one after the other."""
    found = []
    commands()
    for module in pkgutil.walk_packages(evalstore.__path__, "evalstore."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)  # once, not in each fork
    gc.collect()
    gc.freeze()
    for streams, arguments in json.load(sys.stdin):
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = os.fork()
            if not child:
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                change(streams)
                sys.argv = ["evalstore", *arguments]
                sys.exit(run())
            _, status = os.waitpid(child, 0)
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode("latin-1"))
            found.append([os.waitstatus_to_exitcode(status), *texts])
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()

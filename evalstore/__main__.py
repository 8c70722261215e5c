"""Where the program starts, as `evalstore` and as `python -m evalstore`.

With `-m` Python looks for modules in the working folder first, which may be a workspace with
files of such names: the folder is taken away before anything is imported from it. Only what
Python itself imports to get here, and a folder `evalstore` in the working folder, come before;
`evalstore` and `python -P -m evalstore` are not open to that either.

This module imports next to nothing, so that an interruption is answered from the start on:
while the program is loaded it ends the process at once, because an exception could get lost
in a module that is half loaded. From then on `main` answers it.
"""

import os
import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    del sys.path[0]

_INTERRUPTED = 130

try:
    import atexit
    import gc
    import signal
except KeyboardInterrupt:
    os.write(2, b"interrupted\n")
    os._exit(_INTERRUPTED)

_GARBAGE = (120_000, 10, 10)
"""Modules and cases are made by the thousand and kept: looking through them finds nothing.

Most commands end before the first collection, which takes a tenth of the time of a short one.
"""

TYPE_CHECKING = False
"""As that of `typing`, which is not loaded before interruptions are answered."""

if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn


def run() -> int:
    """Run the command of `sys.argv`; the exit code. An interruption ends it with 130."""
    gc.set_threshold(*_GARBAGE)
    # A shell lets programs in the background ignore interruptions, and so it stays.
    answers = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if answers:
        signal.signal(signal.SIGINT, _leave)
    from evalstore.interfaces.cli import output

    output.prepare_streams()
    from evalstore.interfaces.cli.main import commands, main

    commands()
    try:
        if answers:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        exit_code = main()
    except KeyboardInterrupt:
        exit_code = _INTERRUPTED
    if answers:
        # The command is done: what is left is to wait for threads and to take modules apart.
        signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(exit_code))
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    return exit_code


def _leave(_number: int, _frame: "FrameType | None") -> "NoReturn":
    try:
        os.write(2, b"interrupted\n")
    finally:
        os._exit(_INTERRUPTED)


if __name__ == "__main__":
    sys.exit(run())

"""A real terminal: tmux without anybody's settings, driven by keys, read from its screen.

A test writes steps: `press` keys, then say what must come to be on the screen with `shows`, or
what must go with `hides`. Nothing sleeps for long: the screen is read again until it is so.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAM = shutil.which("tmux")
PROJECT = Path(__file__).parents[3]
_SECONDS = 60
"""Until something that does not come is given up; a busy machine is slow."""
_LOOKS = 0.05
"""Seconds between two looks at the screen, for each of which a process is started."""
_PROMPT = "ready>"
_CODE = re.compile(r"^code=(\d+)=", re.MULTILINE)


class Terminal:
    """A shell in a terminal, in which the program is started."""

    def __init__(self, folder: Path, width: int, height: int) -> None:
        assert PROGRAM
        self._server = [PROGRAM, "-f", "/dev/null", "-L", f"evalstore-{uuid.uuid4().hex[:12]}"]
        size = ["-x", str(width), "-y", str(height)]
        variables = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join([str(PROJECT), *filter(None, sys.path[1:])]),
            "COLORTERM": "truecolor",
        }
        settings = [part for name, value in variables.items() for part in ("-e", f"{name}={value}")]
        self._tmux("new-session", "-d", *size, "-c", str(folder), *settings, "sh")
        self.type(f"PS1='{_PROMPT} '; clear")
        self.press("Enter")
        self._until(lambda seen: seen.strip() == _PROMPT, "the shell")

    def _tmux(self, *arguments: str) -> str:
        made = subprocess.run(
            [*self._server, *arguments],
            capture_output=True,
            text=True,
            check=True,
            timeout=_SECONDS,
        )
        return made.stdout

    def close(self) -> None:
        """End the terminal and all that runs in it."""
        path = Path(self._tmux("display-message", "-p", "#{socket_path}").strip())
        subprocess.run([*self._server, "kill-server"], capture_output=True, check=False)
        path.unlink(missing_ok=True)

    # --- what a person does

    def type(self, text: str) -> None:
        """Type a text as it stands."""
        self._tmux("send-keys", "-l", text)

    def press(self, *keys: str) -> None:
        """Press keys as tmux names them: `Enter`, `Escape`, `C-p`, `PageDown`, `x`."""
        self._tmux("send-keys", *keys)

    def resize(self, width: int, height: int) -> None:
        """Make the terminal larger or smaller."""
        self._tmux("resize-window", "-x", str(width), "-y", str(height))

    def run(self, *arguments: str, stderr: str = "", **variables: str) -> None:
        """Start the program, its stderr in a file if one is named.

        When it has ended its exit code is shown.
        """
        before = "".join(f"{name}={shlex.quote(value)} " for name, value in variables.items())
        command = shlex.join([sys.executable, "-m", "evalstore", *arguments])
        redirection = f" 2>{shlex.quote(stderr)}" if stderr else ""
        self.type(f"clear; {before}{command}{redirection}; echo code=$?=")
        self.press("Enter")

    def signal(self, name: str) -> None:
        """Send a signal to the program."""
        shell = self._tmux("display-message", "-p", "#{pane_pid}").strip()
        subprocess.run(["pkill", f"-{name}", "-P", shell], check=True)

    # --- what a person sees

    def screen(self) -> str:
        """What can be seen."""
        return self._tmux("capture-pane", "-p")

    def painted(self) -> str:
        """What can be seen, with the colours as escapes."""
        return self._tmux("capture-pane", "-p", "-e")

    def shows(self, *texts: str) -> str:
        """The screen, once all texts are on it."""
        return self._until(lambda seen: all(text in seen for text in texts), f"{texts} to come")

    def hides(self, text: str) -> str:
        """The screen, once the text is not on it."""
        return self._until(lambda seen: text not in seen, f"{text!r} to go")

    def _until(self, holds: Callable[[str], bool], description: str) -> str:
        end = time.monotonic() + _SECONDS
        while not holds(seen := self.screen()):
            assert time.monotonic() < end, f"waited for {description}, saw:\n{seen}"
            time.sleep(_LOOKS)
        return seen

    def ended(self) -> int:
        """The exit code of the program, once it has ended."""
        # The command itself is on the screen at first, and may be wrapped just before `code=`.
        seen = self._until(lambda seen: bool(_CODE.search(seen)), "the exit code")
        return int(_CODE.findall(seen)[0])

    def state(self) -> dict[str, str]:
        """What a program can leave behind: other screen, no cursor, mouse, keys, line settings."""
        flags = (
            "alternate_on", "cursor_flag", "mouse_any_flag", "keypad_flag", "keypad_cursor_flag",
            "insert_flag", "wrap_flag",
        )  # fmt: skip
        form = " ".join(f"#{{{flag}}}" for flag in flags)
        values = self._tmux("display-message", "-p", form).split()
        tty = self._tmux("display-message", "-p", "#{pane_tty}").strip()
        with Path(tty).open(encoding="ascii") as line:
            settings = subprocess.run(
                ["stty", "-g"], stdin=line, capture_output=True, text=True, check=True
            ).stdout
        return dict(zip(flags, values, strict=True)) | {"line": settings}


@contextmanager
def terminal(folder: Path, width: int = 100, height: int = 30) -> Iterator[Terminal]:
    """A terminal in a folder."""
    item = Terminal(folder, width, height)
    try:
        yield item
    finally:
        item.close()

"""Applications that misbehave: each costs its call, and nothing of it is left running."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import pytest

from evalstore.core.values import OutgoingMessage, Reply, Request, Text
from evalstore.files.processes.application import COMMAND, PYTHON, Application
from evalstore.providers.applications import ApplicationProvider
from evalstore.providers.base import ProviderError
from tests.builders import tree

REQUEST = Request("bot", (OutgoingMessage("user", (Text("Hi"),)),))
ROOT = Path(__file__).parents[2]
WAIT = 60.0


def function(source: str, **files: bytes) -> Application:
    """An application of one file that defines `answer`."""
    return Application(
        PYTHON, "bot.py:answer", ("bot.py", "answer"), {"bot.py": source.encode(), **files}
    )


def program(source: str, *arguments: str) -> Application:
    """An application that is a script for this Python."""
    words = (sys.executable, "prog.py", *arguments)
    return Application(COMMAND, "python prog.py", words, {"prog.py": source.encode()})


Use = Callable[[ApplicationProvider], Coroutine[Any, Any, Any]]


def use(application: Application, body: Use, environment: Mapping[str, str] | None = None) -> Any:
    """Run a coroutine with the provider of a trusted application, then close it."""

    async def run() -> Any:
        provider = ApplicationProvider(application, environment or {}, untrusted=None)
        try:
            return await body(provider)
        finally:
            await provider.close()

    return asyncio.run(run())


def ask(application: Application, environment: Mapping[str, str] | None = None) -> Reply:
    """The reply to one call."""
    reply: Reply = use(
        application, lambda provider: provider.ask(REQUEST, timeout=WAIT), environment
    )
    return reply


def fail(
    application: Application,
    timeout: float = WAIT,
    environment: Mapping[str, str] | None = None,
) -> ProviderError:
    """The error of one call."""
    with pytest.raises(ProviderError) as caught:
        use(application, lambda provider: provider.ask(REQUEST, timeout=timeout), environment)
    return caught.value


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made: each test must leave it empty."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_until_dead(pid: int) -> None:
    """Fail unless a process ends soon."""
    until = time.monotonic() + WAIT
    while is_alive(pid):
        assert time.monotonic() < until, f"{pid} is left running"
        os.sched_yield()


# --- functions


@pytest.mark.parametrize(
    ("body", "message", "retry"),
    [
        ("raise ValueError('no road')", "bot.py:2: ValueError: no road", False),
        ("raise ConnectionError('reset')", "bot.py:2: ConnectionError: reset", True),
        ("raise TimeoutError", "bot.py:2: TimeoutError", True),
        ("raise SystemExit(3)", "bot.py:2: SystemExit: 3", False),
        ("raise KeyboardInterrupt", "bot.py:2: KeyboardInterrupt", False),
        ("raise BaseException('odd')", "bot.py:2: BaseException: odd", False),
        ("raise GeneratorExit", "bot.py:2: GeneratorExit", False),
        ("import os; os._exit(4)", "bot.py ended its process with status 4", False),
        (
            "import os; os.kill(os.getpid(), 11)",
            "bot.py ended its process by SIGSEGV",
            False,
        ),
        (
            """import os, signal; os.write(4, b'{"number": 2, "error": "x"}\\n'); signal.pause()""",
            "bot.py: x",
            False,
        ),
        (
            "return 'x' * 100_000_000",
            "bot.py: ValueError: it returned 100,000,002 characters; the limit is 16,777,216",
            False,
        ),
        ("return object()", "bot.py: TypeError: it returned a value of the type 'object', "
         "which is not JSON", False),
        ("return float('nan')", "bot.py: ValueError: Out of range float values are not JSON "
         "compliant", False),
        ("return None", "it returned nothing, not a text or a mapping", False),
        ("return {'answer': 1}", "it returned 'answer'; it may return text, content, tool_calls, "
         "usage, cost, model, finish_reason, refusal", False),
        ("return {'usage': {}}", "it returned neither a 'text' nor 'tool_calls'", False),
        ("return {'text': 3}", "the content of its answer is not text", False),
        ("return {'text': 'a', 'cost': -1}", "the 'cost' that it returned is not a number of USD",
         False),
        ("return {'tool_calls': [3]}", "a tool call in its answer has no name", False),
        ("return answer(messages)", "bot.py:2: RecursionError: maximum recursion depth exceeded",
         False),
    ],
)  # fmt: skip
def test_a_call_that_fails_says_what_and_where(body: str, message: str, retry: bool) -> None:
    error = fail(function(f"def answer(messages, **options):\n    {body}\n"))
    assert error.message.startswith(message)
    assert (error.retry, error.stops_model) == (retry, False)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def answer(messages): (\n", "bot.py:1: SyntaxError: '(' was never closed"),
        ("import nowhere_else\ndef answer(m): pass\n", "bot.py:1: ModuleNotFoundError: No module "
         "named 'nowhere_else' (files of the workspace that it needs belong into 'uses')"),
        ("answer = 3\n", "bot.py: TypeError: it has no function 'answer'"),
        ("raise SystemExit\ndef answer(m): pass\n", "bot.py:1: SystemExit"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_loaded_stops_its_model(source: str, message: str) -> None:
    error = fail(function(source))
    assert (error.message, error.stops_model) == (message, True)


@pytest.mark.parametrize(
    "body",
    [
        'print(\'{"number": 2, "result": "forged"}\', flush=True)',
        "import sys; sys.stdin.read(); sys.stderr.write('x' * 10**6)",
        "import os; os.closerange(0, 3)",
        "import os; os.fork()",
        "import os; os.environ.clear(); os.chdir('/')",
        "import threading; threading.Thread(target=print, args=('x',)).start()",
    ],
)
def test_what_a_function_does_beside_answering_changes_nothing(body: str) -> None:
    source = f"def answer(messages):\n    {body}\n    return messages[-1]['content']\n"

    async def ask_twice(provider: ApplicationProvider) -> list[str | None]:
        return [(await provider.ask(REQUEST, timeout=WAIT)).text for _ in range(3)]

    assert use(function(source), ask_twice) == ["Hi", "Hi", "Hi"]


def test_a_process_is_used_again_after_an_exception() -> None:
    source = """\
calls = []
async def answer(messages):
    calls.append(1)
    if len(calls) == 1:
        raise SystemExit
    return str(len(calls))
"""

    async def ask_twice(provider: ApplicationProvider) -> str | None:
        with pytest.raises(ProviderError):
            await provider.ask(REQUEST, timeout=WAIT)
        return (await provider.ask(REQUEST, timeout=WAIT)).text

    assert use(function(source), ask_twice) == "2"


def test_the_event_loop_of_a_function_stays_the_same() -> None:
    source = """\
import asyncio
loops = set()
async def answer(messages):
    loops.add(asyncio.get_running_loop())
    asyncio.ensure_future(asyncio.sleep(3600))
    return str(len(loops))
"""

    async def ask_twice(provider: ApplicationProvider) -> list[str | None]:
        return [(await provider.ask(REQUEST, timeout=WAIT)).text for _ in range(2)]

    assert use(function(source), ask_twice) == ["1", "1"]


def test_calls_at_once_run_in_processes_of_their_own() -> None:
    source = "import os\ndef answer(messages):\n    return str(os.getpid())\n"

    async def ask_at_once(provider: ApplicationProvider) -> list[str | None]:
        replies = await asyncio.gather(*(provider.ask(REQUEST, timeout=WAIT) for _ in range(3)))
        return [reply.text for reply in replies]

    pids = use(function(source), ask_at_once)
    assert len(set(pids)) == 3
    assert not any(is_alive(int(pid)) for pid in pids)


HANGING = """\
import os, subprocess, sys
def answer(messages=None):
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with open({note!r}, "w") as note:
        note.write(f"{{os.getpid()}} {{child.pid}}")
    while True:
        pass
"""


@pytest.mark.parametrize("is_cancelled", [False, True], ids=["late", "cancelled"])
@pytest.mark.parametrize("is_function", [True, False], ids=["function", "program"])
def test_a_call_that_hangs_is_ended_with_all_it_started(
    is_function: bool, is_cancelled: bool, tmp_path: Path, folders: Path
) -> None:
    note = tmp_path / "note"
    source = HANGING.format(note=str(note))
    application = function(source) if is_function else program(source + "answer()\n")

    async def hang(provider: ApplicationProvider) -> None:
        call = asyncio.create_task(provider.ask(REQUEST, timeout=WAIT))
        while not (note.exists() and note.read_text()):
            await asyncio.sleep(0.01)
        loop, passed = asyncio.get_running_loop(), 0.0
        time = loop.time
        loop.time = lambda: time() + passed  # type: ignore[method-assign]
        if is_cancelled:
            call.cancel()
        while not call.done():
            passed += 0.5
            await asyncio.sleep(0.01)
        if is_cancelled:
            assert call.cancelled()
        else:
            error = call.exception()
            assert isinstance(error, ProviderError)
            assert (error.kind, error.retry) == ("timeout", True)

    use(application, hang)
    for pid in note.read_text().split():
        wait_until_dead(int(pid))
    assert list(folders.iterdir()) == []


def test_a_function_ends_when_evalstore_is_killed(tmp_path: Path) -> None:
    note = tmp_path / "note"
    driver = f"""
import asyncio
from tests.hostile.test_applications import REQUEST, function, use
source = {HANGING.format(note=str(note))!r}
use(function(source), lambda provider: provider.ask(REQUEST, timeout=60))
"""
    with subprocess.Popen([sys.executable, "-c", driver], cwd=ROOT) as process:
        while not (note.exists() and note.read_text()):
            assert process.poll() is None
            os.sched_yield()
        process.kill()
    for pid in note.read_text().split():
        wait_until_dead(int(pid))


# --- programs


@pytest.mark.parametrize(
    ("source", "message", "retry"),
    [
        (
            "import sys; sys.stderr.write('one\\n\\x1b[31mtwo\\n'); sys.exit(3)",
            "python prog.py ended with status 3: one \\x1b[31mtwo",
            False,
        ),
        ("raise SystemExit(75)", "python prog.py ended with status 75", True),
        ("import os; os.kill(os.getpid(), 9)", "python prog.py ended by SIGKILL", False),
        ("import os; os.close(1); os._exit(2)", "python prog.py ended with status 2", False),
        (
            "import sys; sys.stdout.write('x' * 100_000_000)",
            "python prog.py answered with more than 16,777,216 bytes",
            False,
        ),
        (
            "import sys; sys.stderr.write('x' * 10**7 + '\\nlast'); sys.exit(1)",
            "python prog.py ended with status 1: xxx",
            False,
        ),
    ],
)
def test_a_program_that_fails_says_why(source: str, message: str, retry: bool) -> None:
    error = fail(program(source))
    assert error.message.startswith(message)
    assert (error.retry, len(error.message) <= 500) == (retry, True)


def test_a_program_may_ignore_what_it_is_sent() -> None:
    reply = ask(program("print('Hello')"))
    assert (reply.text, reply.finish_reason) == ("Hello", "stop")


def test_what_a_program_leaves_behind_is_ended() -> None:
    source = """\
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
print(child.pid, flush=True)
"""
    wait_until_dead(int(ask(program(source)).text or ""))


@pytest.mark.parametrize(
    ("printed", "text"),
    [
        ("Hello", "Hello"),
        ('"Hello"', "Hello"),
        ('{"text": "Hello"}', "Hello"),
        ('{"content": "Hello", "usage": {"input_tokens": 1}}', "Hello"),
        ('{"answer": 4}', '{"answer": 4}'),
        ('{"text": "a", "page": 4}', '{"text": "a", "page": 4}'),
        ("[1]", "[1]"),
        ("12", "12"),
        ("[" * 10_000, "[" * 10_000),
    ],
)
def test_a_program_writes_a_document_or_a_text(printed: str, text: str) -> None:
    assert ask(program(f"print({printed!r})")).text == text


def test_a_program_that_is_not_there_stops_its_model() -> None:
    error = fail(Application(COMMAND, "no-such-program", ("no-such-program",), {}))
    assert error.message == "no-such-program cannot be started: No such file or directory"
    assert error.stops_model


def test_a_command_line_is_not_for_a_shell(tmp_path: Path) -> None:
    words = ("echo", "$HOME", ";", f"touch {tmp_path}/pwned", "`id`")
    assert ask(Application(COMMAND, "echo", words, {})).text == " ".join(words[1:])
    assert not (tmp_path / "pwned").exists()


# --- what an application sees


SEEN = """\
import json, os, sys
def answer(messages=None):
    files = sorted(os.path.relpath(os.path.join(folder, name)) for folder, _, names
                   in os.walk(".") for name in names)
    return json.dumps([sorted(os.environ), os.environ.get("DESK_KEY"), files])
"""


@pytest.mark.parametrize("is_function", [True, False])
def test_only_named_variables_and_files_are_there(
    is_function: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER_KEY", "other-secret-value")
    application = function(SEEN) if is_function else program(SEEN + "print(answer())\n")
    names, value, files = json.loads(ask(application, {"DESK_KEY": "key"}).text or "")
    assert "OTHER_KEY" not in names
    assert set(names) <= {
        *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ"),
        *("TMPDIR", "DESK_KEY"),
    }
    assert value == "key"
    assert files == ["bot.py" if is_function else "prog.py"]


def test_a_key_that_an_application_repeats_is_hidden() -> None:
    environment = {"DESK_KEY": "desk-secret-value"}
    source = "import os\ndef answer(messages):\n    return 'x ' + os.environ['DESK_KEY']\n"
    assert ask(function(source), environment).text == "x ***"
    source = "import os\ndef answer(messages):\n    raise OSError(os.environ['DESK_KEY'])\n"
    with pytest.raises(ProviderError, match=r"OSError: \*\*\*"):
        ask(function(source), environment)


SECRETS = {
    "A_KEY": "abcdefgh",
    "B_KEY": "abcdefghSECRETTAIL99",
    "PEM": "-----BEGIN KEY-----\nMIIEvQIBADANBgkqh\nkiG9w0BAQEFAASCB\n-----END KEY-----\n",
}


@pytest.mark.parametrize(
    "output",
    [
        "os.environ['B_KEY'] + ' ' + os.environ['A_KEY']",
        "json.dumps({'config': os.environ['PEM']})",
        "os.environ['PEM']",
    ],
)
def test_no_part_of_a_secret_is_in_an_answer(output: str) -> None:
    source = f"import json, os\ndef answer(messages):\n    return {output}\n"
    check_hidden(ask(function(source), SECRETS).text or "")


@pytest.mark.parametrize(
    "output",
    ["os.environ['B_KEY'] + 'x' * 8172", "' ' * 1970 + os.environ['B_KEY']", "os.environ['PEM']"],
)
def test_no_part_of_a_secret_is_in_a_message(output: str) -> None:
    source = f"import os, sys\nsys.stderr.write({output})\nsys.exit(3)\n"
    check_hidden(fail(program(source), environment=SECRETS).message)
    source = f"import os\ndef answer(messages):\n    raise ValueError({output})\n"
    check_hidden(fail(function(source), environment=SECRETS).message)


def check_hidden(text: str) -> None:
    for piece in ("SECRET", "TAIL", "MIIEvQ", "kiG9w0", "abcdefgh", "BEGIN KEY"):
        assert piece not in text, text


def test_an_untrusted_application_is_not_started(tmp_path: Path) -> None:
    source = f"open({str(tmp_path / 'pwned')!r}, 'w')\ndef answer(messages): return ''\n"

    async def run() -> None:
        provider = ApplicationProvider(function(source), {}, untrusted="it is not trusted")
        with pytest.raises(ProviderError, match="it is not trusted") as caught:
            await provider.ask(REQUEST, timeout=WAIT)
        assert caught.value.stops_model
        await provider.close()

    asyncio.run(run())
    assert not (tmp_path / "pwned").exists()


def test_programs_and_libraries_of_the_working_folder_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a module that is not in `uses`, nor a program on a relative search path."""
    tree(tmp_path / "w", {"lib.py": "name = 'untrusted'\n", "bin/prog": "#!/bin/sh\necho no\n"})
    (tmp_path / "w/bin/prog").chmod(0o755)
    monkeypatch.chdir(tmp_path / "w")
    monkeypatch.setenv("PATH", f"bin{os.pathsep}.{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "w"))
    assert "No module named 'lib'" in fail(function("import lib\ndef answer(m): pass\n")).message
    assert shutil.which("prog")
    assert fail(Application(COMMAND, "prog", ("prog",), {})).stops_model

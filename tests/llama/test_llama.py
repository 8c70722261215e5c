"""A real inference server, with a model that is made here, from the question to the report."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from evalstore.interfaces.cli.main import main
from tests.builders import tree

SERVER = os.environ.get("EVALSTORE_LLAMA_SERVER")

pytestmark = [
    pytest.mark.llama,
    pytest.mark.skipif(not SERVER, reason="EVALSTORE_LLAMA_SERVER names no llama-server"),
]

FILES = {
    "evalstore.yaml": """\
candidates:
  - {id: speaker, prohibitedTags: [calling]}
  - {id: caller, requiredTags: [calling]}
evaluators: [judge]
maxTestOutputTokens: 200
maxEvaluationOutputTokens: 200
""",
    "models/speaker.yaml": "id: speaker\nprovider: speaker\n",
    "models/caller.yaml": "id: caller\nprovider: caller\n",
    "models/judge.yaml": "id: judge\nprovider: speaker\n",
    "schemas/place.yaml": """\
id: place
type: object
properties:
  name: {type: string}
  size: {enum: [small, large]}
  streets: {type: array, items: {type: string}, minItems: 2, maxItems: 3}
required: [name, size, streets]
additionalProperties: false
""",
    "tools/weather.yaml": """\
id: weather
name: cityWeather
description: Tells the weather.
parameters:
  type: object
  properties: {country: {enum: [FR, DE]}}
  required: [country]
  additionalProperties: false
""",
    "tests/plain.md": "# 👤\n\nWhat is the capital of France?\n\n---\n\nIt must be Paris.\n",
    "tests/place.md": "---\nstructuredResponseSchema: place\n---\n\n# 👤\n\nDescribe Paris.\n",
    "tests/weather.md": """\
---
tags: [calling, _has_tools, _tools_only]
availableTools: [weather]
---

# 👤

How is the weather in Paris?
""",
}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The addresses of two servers: one has a model that speaks, one a model that calls."""
    for name in ("numpy", "gguf"):
        pytest.importorskip(name)
    from tests.llama.make_gguf import write_model

    folder = tmp_path_factory.mktemp("models")
    with contextlib.ExitStack() as stack:
        addresses = {}
        for name in ("speaker", "caller"):
            write_model(folder / f"{name}.gguf", calls=name == "caller")
            addresses[name] = stack.enter_context(serving(folder / f"{name}.gguf"))
        yield addresses


@contextmanager
def serving(model: Path) -> Iterator[str]:
    """The address of a server with this model, on loopback."""
    assert SERVER
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = ["--host", "127.0.0.1", "--port", str(port), "-c", "4096", "-np", "2", "-t", "1"]
    log = model.with_suffix(".log")
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [SERVER, "-m", str(model), "--alias", model.stem, "--jinja", "--no-warmup", *options],
            stdout=output,
            stderr=subprocess.STDOUT,
        ) as process,
    ):
        try:
            for _ in range(600):
                if is_ready(port):
                    break
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(0.1)
                    pytest.fail(f"the server ended: {log.read_text(errors='replace')[-2000:]}")
            else:
                pytest.fail("the server does not get ready")
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.kill()


def is_ready(port: int) -> bool:
    """Whether a server has loaded its model."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health") as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


@pytest.fixture
def place(folder: Path, servers: dict[str, str]) -> Path:
    """A workspace with one test of each kind."""
    providers = {
        f"providers/{name}.yaml": f"code: {name}\ntype: openai-compatible\nbaseURL: {url}\n"
        for name, url in servers.items()
    }
    return tree(folder, {**FILES, **providers})


@pytest.fixture
def run(place: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Run a command and read its document; it ends with the exit code that is given."""

    def run(*command: str, exit_code: int = 0) -> Any:
        assert main(["-C", str(place), *command, "--json"]) == exit_code
        return json.loads(capsys.readouterr().out)

    return run


def answers(run: Callable[..., Any]) -> dict[str, Any]:
    """Run everything; the sessions by the names of their files, as `show` tells them."""
    cases = run("run")["cases"]
    return {Path(case["file"]).stem: run("show", case["session"]) for case in cases}


def test_everything_is_asked_and_judged_once(run: Callable[..., Any]) -> None:
    report = run("run")
    assert (report["status"], report["failures"]) == ("complete", [])
    assert (report["asked"], report["judged"], report["verdicts"]["pass"]) == (3, 3, 3)
    again = run("run")
    assert (again["asked"], again["judged"], again["reused"]) == (0, 0, 3)


def test_the_tokens_of_all_calls_are_counted(run: Callable[..., Any]) -> None:
    sessions = answers(run)
    for session in sessions.values():
        usage = session["turns"][0]["usage"]
        assert usage["inputTokens"] > 0
        assert usage["outputTokens"] > 0
    (judged,) = sessions["plain"]["related"]["evaluations"]
    evaluation = run("show", judged["id"])
    assert evaluation["usage"]["inputTokens"] > 0
    assert evaluation["usage"]["outputTokens"] > 0


def test_an_answer_is_the_models_and_a_judge_is_held_to_its_schema(
    run: Callable[..., Any],
) -> None:
    session = answers(run)["plain"]
    (turn,) = session["turns"]
    assert (turn["text"], turn["finishReason"]) == ("Paris.", "stop")
    assert turn["resolvedModel"] == "speaker"
    (judged,) = session["related"]["evaluations"]
    assert (judged["by"], judged["verdict"]) == ("judge", "pass")


def test_an_answer_with_a_schema_is_of_its_shape(run: Callable[..., Any]) -> None:
    session = answers(run)["place"]
    document = json.loads(session["turns"][0]["text"])
    assert document.keys() == {"name", "size", "streets"}
    assert document["size"] in ("small", "large")
    (judged,) = session["related"]["evaluations"]
    assert (judged["by"], judged["verdict"]) == ("checks", "pass")


def test_a_tool_call_is_shown(
    run: Callable[..., Any], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session = answers(run)["weather"]
    (turn,) = session["turns"]
    assert turn["finishReason"] == "tool_calls"
    assert turn["toolCalls"] == [{"name": "cityWeather", "arguments": {"country": "FR"}}]
    assert main(["-C", str(place), "show", session["id"]]) == 0
    shown = capsys.readouterr().out
    assert '"name": "cityWeather"' in shown
    assert '"country": "FR"' in shown


def test_a_conversation_that_does_not_fit_is_reported_as_that(
    run: Callable[..., Any], place: Path
) -> None:
    tree(place, {"tests/long.md": f"# 👤\n\n{'Paris. ' * 1000}\n\n---\n\nAny answer is fine.\n"})
    report = run("run", "tests/long.md", exit_code=3)
    assert (report["asked"], report["failed"]) == (0, 1)
    (failure,) = report["failures"]
    assert failure["message"].startswith("speaker: the server answered 400: ")
    assert "context size" in failure["message"]

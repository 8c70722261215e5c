"""What the server allows, refuses and survives; in this process."""

from __future__ import annotations

import re
import signal
from pathlib import Path
from queue import Queue
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from evalstore import Workspace
from evalstore.interfaces.mcp import read_tools
from evalstore.interfaces.mcp.read_tools import READ_TOOLS
from evalstore.interfaces.mcp.server import RUN, input_schema
from evalstore.planning.options import Location
from tests.builders import tree
from tests.interfaces.cli.conftest import ONE, SETTINGS, WEATHER_WORKSPACE, Evalstore
from tests.interfaces.cli.run.test_run_checks import with_checks
from tests.interfaces.mcp.connected_client import ConnectedClient, connected

if TYPE_CHECKING:
    from evalstore.interfaces.mcp.server import RunBudget

pytestmark = pytest.mark.extended

FREE = ONE[: ONE.index("costs:")]


@pytest.fixture
def location(folder: Path) -> Location:
    return Location(tree(folder, WEATHER_WORKSPACE))


def budget_of(limit: float) -> RunBudget:
    """What runs may cost; the SDK is loaded here, and not for each process that lists the tests."""
    from evalstore.interfaces.mcp.server import RunBudget

    return RunBudget(limit)


def make_server(location: Location, budget: RunBudget | None = None) -> Any:
    """A server, for which the SDK is loaded."""
    from evalstore.interfaces.mcp import server

    return server.make_server(location, budget)


def call(location: Location, name: str, budget: float | None = None, **arguments: Any) -> Any:
    """Call one tool of a new server; raises `AssertionError` for an error."""
    with connected(make_server(location, None if budget is None else budget_of(budget))) as agent:
        called = agent.call(name, **arguments)
    assert not called.is_error, called.text
    return called.data


def refused(agent: ConnectedClient, name: str, **arguments: Any) -> tuple[str, str]:
    """The error and the hint of a call that must fail."""
    called = agent.call(name, **arguments)
    assert called.is_error, called.text
    return called.data["error"], called.data["hint"]


def test_a_server_without_a_budget_only_reads(location: Location) -> None:
    with connected(make_server(location)) as agent:
        tools = agent.tools()
        assert list(tools) == [tool.name for tool in READ_TOOLS]
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools.values())
        assert "This server is read-only" in agent.instructions
        assert refused(agent, "run") == (
            "this server is read-only",
            "the user can start it with '--allow-run --max-cost USD'",
        )
        assert agent.call("list_runs").data["runs"] == []


def test_every_tool_and_argument_is_described_and_no_other_argument_is_taken() -> None:
    for tool in (*READ_TOOLS, RUN):
        schema = tool.arguments.model_json_schema()
        assert tool.description.endswith(".")
        assert schema["additionalProperties"] is False
        described = [name for name, each in schema["properties"].items() if each.get("description")]
        assert described == list(schema["properties"]), tool.name


def test_every_whole_number_has_bounds() -> None:
    numbers = {
        (tool.name, name): kind.keys()
        for tool in (*READ_TOOLS, RUN)
        for name, schema in input_schema(tool)["properties"].items()
        for kind in schema.get("anyOf", [schema])
        if kind["type"] == "integer"
    }
    assert numbers
    assert [place for place, keys in numbers.items() if not {"minimum", "maximum"} <= keys] == []


def test_no_argument_allows_anything() -> None:
    names = {name for tool in (*READ_TOOLS, RUN) for name in tool.arguments.model_fields}
    names |= {tool.name for tool in READ_TOOLS}
    allowing = re.compile("trust|allow|yes|key|outside|store|config|set|label|edit|write|env")
    assert [name for name in names if allowing.search(name) and "offset" not in name] == []


def test_a_run_stops_at_the_budget_and_the_next_one_is_refused(location: Location) -> None:
    with connected(make_server(location, budget_of(0.03))) as agent:
        # An answer may cost 0.012 + 300 * 0.01 USD, as far as the program can know.
        report = agent.call("run").data
        assert (report["status"], report["asked"]) == ("over budget", 0)
        assert report["budget"] == {"limit": 0.03, "spent": 0.0, "remaining": 0.03}


def test_system_prompts_are_named_where_a_file_has_several(location: Location) -> None:
    weather = WEATHER_WORKSPACE["tests/weather.md"].replace("tags:", "systemPrompts: [a, b]\ntags:")
    prompts = {"prompts/a.md": "Be brief.\n", "prompts/b.md": "Be kind.\n"}
    tree(location.directory, {**prompts, "tests/weather.md": weather, "models/one.yaml": FREE})
    with connected(make_server(location, budget_of(1))) as agent:
        planned = agent.call("status", paths=["tests/weather.md::city=Oslo"]).data["items"]
        agent.call("run")
        results = agent.call("list_results").data["results"]
        explained = agent.call("explain_case", case=results[1]["case"], prompt="b").data
    assert [item["promptName"] for item in planned] == ["a", "b"] * 2
    assert [result["promptName"] for result in results] == ["a", "b"]
    assert explained["promptName"] == "b"


def test_a_spent_budget_allows_no_run(location: Location) -> None:
    budget = budget_of(0.05)
    budget.spent = 0.06
    with connected(make_server(location, budget)) as agent:
        assert refused(agent, "run") == (
            "the budget of $0.0500 is spent",
            "the user can start the server again with another '--max-cost'",
        )


def test_a_run_may_not_exceed_the_budget_by_asking_for_more(location: Location) -> None:
    report = call(location, "run", 0.03, max_cost=1_000)
    assert report["status"] == "over budget"


def test_the_limit_of_the_settings_holds_too(location: Location) -> None:
    tree(location.directory, {"evalstore.yaml": SETTINGS + "maxCost: 0.03\n"})
    assert call(location, "run", 1_000)["status"] == "over budget"


def test_a_model_without_a_price_is_not_run(location: Location) -> None:
    tree(
        location.directory,
        {
            "models/one.yaml": "id: openai/unknown\nprovider: openai\n",
            "evalstore.yaml": "candidates: [openai/unknown]\nevaluators: [scripted/judge]\n",
        },
    )
    with connected(make_server(location, budget_of(1))) as agent:
        error, _ = refused(agent, "run")
    assert error == (
        "the price of 'openai/unknown' is not known, so no bound on the cost can be kept"
    )


def test_code_that_is_not_trusted_does_not_run(
    location: Location, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALSTORE_TRUST_FILE", str(tmp_path / "trusted"))
    trap = tmp_path / "ran"
    check = "- python: {file: trap.py, function: judge}"
    tree(
        location.directory,
        {
            "models/one.yaml": FREE,
            "tests/weather.md": with_checks(check, prose=False),
            "tests/trap.py": f"open({str(trap)!r}, 'w')\ndef judge(given): return True\n",
        },
    )
    with connected(make_server(location, budget_of(1))) as agent:
        assert agent.call("status").data["untrusted"] == ["tests/trap.py"]
        report = agent.call("run").data
        agent.call("explain_case", case="tests/weather.md::city=Oslo")
    assert (report["verdicts"]["pending"], report["untrusted"]) == (2, ["tests/trap.py"])
    assert not trap.exists()
    assert not (tmp_path / "trusted").exists()


def test_a_bug_in_one_call_does_not_end_the_server(
    location: Location, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError(f"at postgresql://ann:{'x'.upper() * 9}@h/db")

    monkeypatch.setattr("evalstore.results.log.log.log", fail)
    monkeypatch.setattr("evalstore.runs.run.run", fail)
    with connected(make_server(location, budget_of(1))) as agent:
        error, hint = refused(agent, "list_runs")
        assert refused(agent, "run")[0] == error.replace("list_runs", "run")
        assert agent.call("check").data["problems"] == []
    assert error == "'list_runs' failed with ZeroDivisionError: this is a bug in evalstore"
    assert hint == "the traceback is in the log of the server"
    assert "ZeroDivisionError: at postgresql://ann:***@h/db" in capfd.readouterr().err


def test_problems_of_files_are_listed_with_the_error(location: Location) -> None:
    tree(location.directory, {"tests/weather.md": "# 👤\n\n{{city}}\n\n---\n\nWarm.\n"})
    with connected(make_server(location)) as agent:
        called = agent.call("status")
        assert called.is_error
        (problem,) = called.data["problems"]
        assert (problem["file"], problem["line"]) == ("tests/weather.md", 3)
        assert agent.call("check").data["problems"] == [problem]


def test_a_cancelled_run_is_stopped_and_recorded(location: Location) -> None:
    slow = ONE.replace("{answer: Warm.,", "{answer: Warm., latency: 0.01,")
    rows = ", ".join(f"Rome{number}" for number in range(40))
    weather = WEATHER_WORKSPACE["tests/weather.md"].replace("Oslo, Rome", rows)
    files = {"models/one.yaml": slow.replace("0.01}]", "0}]"), "tests/weather.md": weather}
    tree(location.directory, files)
    budget = budget_of(100)

    async def cancel() -> None:
        from mcp import Client

        async with Client(make_server(location, budget)) as client:
            with anyio.CancelScope() as scope:

                async def report(progress: float, total: float | None, message: str | None) -> None:
                    if progress:
                        scope.cancel()

                await client.call_tool("run", {}, progress_callback=report)

    anyio.run(cancel)
    budget.close()
    (run,) = Workspace(location.directory).runs()
    assert run.status == "interrupted"
    assert 0 < run.asked < 40


def test_only_one_run_is_made_at_a_time(location: Location) -> None:
    budget = budget_of(1)
    budget.close()
    with connected(make_server(location, budget)) as agent:
        assert refused(agent, "run") == ("a run is not finished yet", "wait for its result")


@pytest.mark.parametrize(
    ("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["int", "term"]
)
@pytest.mark.parametrize("limit", [None, 1.0], ids=["read-only", "may run"])
def test_a_signal_ends_the_server_after_its_run(
    number: signal.Signals,
    exit_code: int,
    limit: float | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    budget = None if limit is None else budget_of(limit)
    codes: Queue[int] = Queue()
    monkeypatch.setattr("os._exit", codes.put)

    async def send() -> None:
        from evalstore.interfaces.mcp.server import _end_on_signals

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_end_on_signals, budget)
            await anyio.wait_all_tasks_blocked()
            signal.raise_signal(number)
            assert await anyio.to_thread.run_sync(codes.get) == exit_code
            tasks.cancel_scope.cancel()

    anyio.run(send)
    assert budget is None or budget.is_closing.is_set()


def test_warnings_about_the_store_are_in_the_result(
    location: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    def warn(location: Location, page: object) -> dict[str, Any]:
        location.warn("a table is foreign")
        return {}

    tool = next(tool for tool in READ_TOOLS if tool.name == "list_runs")
    monkeypatch.setattr(read_tools, "list_runs", warn)
    object.__setattr__(tool, "call", warn)
    try:
        assert call(location, "list_runs") == {"storeWarnings": ["a table is foreign"]}
    finally:
        monkeypatch.undo()
        object.__setattr__(tool, "call", read_tools.list_runs)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--allow-run"], "error: '--allow-run' needs a limit on the cost\nhint: add '--max-cost"),
        (
            ["--allow-outside"],
            "error: '--allow-outside' cannot be combined with '--mcp'\nhint: allow",
        ),
        (
            ["--allow-run", "--max-cost", "inf"],
            "error: '--max-cost' must be finite\nhint: name",
        ),
        (["--max-cost", "1"], "error: '--max-cost' needs '--allow-run'\nhint: add"),
    ],
)
def test_options_that_would_allow_too_much_are_refused(
    workspace: Path, evalstore: Evalstore, options: list[str], error: str
) -> None:
    ran = evalstore("serve", "--mcp", *options)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith(error)


def test_without_its_package_the_command_names_the_extra(
    workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalstore.interfaces.cli.commands.view.find_spec", lambda _: None)
    ran = evalstore("serve", "--mcp")
    assert (ran.exit_code, ran.stderr) == (
        2,
        "error: '--mcp' needs the package mcp, which is not installed\n"
        "hint: install the extra: pip install 'evalstore[mcp]'\n",
    )


def test_outside_of_a_workspace_the_command_ends_at_once(
    folder: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    ran = evalstore("serve", "--mcp")
    assert (ran.exit_code, ran.stderr.splitlines()[-1]) == (2, "hint: run 'evalstore init' first")

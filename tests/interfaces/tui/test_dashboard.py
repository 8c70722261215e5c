"""The state of the workspace above the runs."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from textual.pilot import Pilot

from evalstore.core.errors import EvalstoreError
from evalstore.core.runs import Run
from evalstore.interfaces.cli.main import main
from evalstore.interfaces.tui.data_source import WorkspaceSource
from evalstore.interfaces.tui.grid import Grid
from evalstore.interfaces.tui.page_lines import READING
from evalstore.interfaces.tui.render.run_details import dashboard_lines
from evalstore.interfaces.tui.screens.cases import CasesPage
from evalstore.interfaces.tui.screens.runs import RunsPage
from evalstore.interfaces.tui.text_view import FittedView, TextView
from evalstore.planning.options import Location
from evalstore.results.flips import verdict_changes
from evalstore.results.flips.result_history import VERDICTS_LISTED, read_recent_verdicts
from evalstore.results.flips.verdict_changes import BrokenCase, VerdictChanges, find_verdict_changes
from evalstore.results.stats.stats import stats
from evalstore.results.table.cases import candidate_rates, cases, list_runs
from evalstore.runs.status.dashboard import Dashboard, read_dashboard
from evalstore.runs.status.status_text import pending_text
from evalstore.store import Store
from evalstore.store.driver import UnwantedError, while_wanted
from tests.builders import tree
from tests.comparison.test_comparison import result
from tests.interfaces.cli.run.test_run import edit, release
from tests.interfaces.tui.driving import drive, press, resized, screen, settled, show_changes, until

NEW = "# 👤\n\nHow is Lima?\n\n---\n\nThe answer must be warm.\n"


def dashboard_texts(pilot: Pilot[None]) -> list[str]:
    page = pilot.app.screen
    assert isinstance(page, RunsPage)
    return page.query_one("#dashboard", FittedView).text.splitlines()


def broken(workspace: Path) -> list[str]:
    return [case.name for case in read_dashboard(Location(workspace)).broken or ()]


# --- what it holds


def test_its_figures_are_those_of_the_commands(workspace: Path) -> None:
    (workspace / "tests/new.md").write_text(NEW)
    dashboard = read_dashboard(Location(workspace))
    assert dashboard.rate == stats(Location(workspace), "@work").total.rate
    assert dashboard.status
    assert (dashboard.status.ask, dashboard.status.judge) == (2, 2)
    brief = pending_text(dashboard.status)
    assert brief.startswith("2 to ask, 2 to judge, about $")
    main(["run", "--quiet"])
    after = read_dashboard(Location(workspace)).status
    assert after
    assert pending_text(after) == "nothing to do"


def test_what_broke_is_listed_until_it_is_fixed_the_newest_first(workspace: Path) -> None:
    assert broken(workspace) == []
    release(workspace / "models/two.yaml", "answer: Not warm.", "answer: Cold.")
    main(["run", "--quiet"])
    assert broken(workspace) == ["tests/weather.md [city=Oslo] scripted/two"]
    release(workspace / "models/one.yaml", "answer: Warm.", "answer: Cold.")
    main(["run", "--quiet"])
    assert broken(workspace) == [
        "tests/weather.md [city=Rome] scripted/one",
        "tests/weather.md [city=Oslo] scripted/two",
    ]
    release(workspace / "models/two.yaml", "answer: Cold.", "answer: Not warm.")
    main(["run", "--quiet"])
    assert broken(workspace) == ["tests/weather.md [city=Rome] scripted/one"]


def test_what_broke_is_not_listed_when_a_later_answer_to_it_is_labelled(workspace: Path) -> None:
    case = ("tests/weather.md::Oslo", "pass", "--model", "scripted/two")
    release(workspace / "models/two.yaml", "answer: Not warm.", "answer: Cold.")
    main(["run", "--quiet"])
    release(workspace / "models/two.yaml", "answer: Cold.", "answer: Very Cold.")
    main(["run", "--quiet"])
    assert broken(workspace) == ["tests/weather.md [city=Oslo] scripted/two"]
    main(["label", *case])
    assert broken(workspace) == [], "the label is on the answer of the newest run"


def test_what_a_label_broke_since_the_last_run_is_listed(workspace: Path) -> None:
    main(["label", "tests/weather.md::Rome", "fail", "--model", "scripted/one"])
    state, runs = read_dashboard(Location(workspace)), list_runs(Location(workspace))
    (line,) = dashboard_lines(state, runs, 90, 1)
    rome = "tests/weather.md [city=Rome] scripted/one"
    assert line.text == f"broken      {rome} (since the last run)"
    main(["run", "--quiet"])
    assert broken(workspace) == [rome]


def test_what_broke_is_not_listed_when_its_label_is_by_edited_instructions(
    workspace: Path,
) -> None:
    edit(workspace / "models/judge.yaml", "Cold'", "(Cold|Warm)'")
    edit(workspace / "tests/weather.md", "must be warm", "surely must be warm")
    main(["run", "--quiet"])
    rome = "tests/weather.md [city=Rome] scripted/one"
    assert rome in broken(workspace)
    edit(workspace / "tests/weather.md", "surely must be warm", "truly must be warm")
    main(["label", "tests/weather.md::Rome", "pass", "--model", "scripted/one"])
    assert rome not in broken(workspace)


def test_what_broke_is_not_listed_when_the_edit_that_broke_it_is_taken_back(
    workspace: Path,
) -> None:
    weather = workspace / "tests/weather.md"
    before = weather.read_text()
    oslo = "tests/weather.md [city=Oslo] scripted/two"
    edit(weather, "How is {{city}}?", "How is {{city}} ?")
    edit(workspace / "models/two.yaml", "answer: Not warm.", "answer: Cold.")
    main(["run", "--quiet"])
    assert broken(workspace) == [oslo]
    edit(workspace / "models/two.yaml", "answer: Cold.", "answer: Not warm.")
    weather.write_text(before)
    assert broken(workspace) == [], "the stored verdict on the old text counts again"
    edit(weather, "How is {{city}}?", "How is {{city}} ?")
    assert broken(workspace) == [oslo]


def test_what_broke_is_listed_under_the_current_path_until_it_is_fixed(workspace: Path) -> None:
    release(workspace / "models/two.yaml", "answer: Not warm.", "answer: Cold.")
    main(["run", "--quiet"])
    (workspace / "tests/weather.md").rename(workspace / "tests/sky.md")
    main(["run", "--quiet"])
    assert broken(workspace) == ["tests/sky.md [city=Oslo] scripted/two"]
    release(workspace / "models/two.yaml", "answer: Cold.", "answer: Not warm.")
    main(["run", "--quiet"])
    assert broken(workspace) == []


def test_what_broke_names_the_system_prompt_where_the_file_has_several(workspace: Path) -> None:
    tree(workspace, {"prompts/short.md": "Be short.\n", "prompts/kind.md": "Be kind.\n"})
    edit(workspace / "tests/weather.md", "tags: [weather]", "systemPrompts: [short, kind]")
    main(["run", "--quiet"])
    release(workspace / "models/two.yaml", "answer: Not warm.", "answer: Cold.")
    main(["run", "--quiet"])
    assert broken(workspace) == [
        "tests/weather.md [city=Oslo] (short) scripted/two",
        "tests/weather.md [city=Oslo] (kind) scripted/two",
    ]


def test_the_runs_are_compared_once_when_something_broke_and_a_file_is_edited(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release(workspace / "models/two.yaml", "answer: Not warm.", "answer: Cold.")
    main(["run", "--quiet"])
    main(["label", "tests/weather.md::Rome", "fail", "--model", "scripted/one"])
    edit(workspace / "tests/weather.md", "tags: [weather]", "tags: [sky]")
    compared: list[str] = []

    def note(store: Store, folder: str, run: Run) -> VerdictChanges | None:
        compared.append(run.id)
        return find_verdict_changes(store, folder, run)

    monkeypatch.setattr(verdict_changes, "find_verdict_changes", note)
    both = [
        "tests/weather.md [city=Rome] scripted/one",
        "tests/weather.md [city=Oslo] scripted/two",
    ]
    assert broken(workspace) == both
    assert len(compared) == len({*compared}) == 2


@pytest.mark.parametrize("size", [1, 3, 5])
def test_its_interval_is_that_of_whole_rows_wherever_a_batch_ends(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    # Both candidates answer the same, so each row passes or fails with both.
    for path in (workspace / "tests").iterdir():
        path.write_text(
            "---\nreplacements: [{word: [War, cold, arm, hot]}]\n---\n"
            f"# User\n\n{path.stem}: is it?\n\n---\n\n~~~checks\n- contains: '{{{{word}}}}'\n~~~\n"
        )
    main(["run", "--quiet"])
    whole = stats(Location(workspace), "@work").total.rate
    for path in (workspace / ".evalstore").glob("s*"):  # what is kept for this machine
        if not path.name.startswith("store.db"):
            path.unlink()
    monkeypatch.setattr("evalstore.core.batches.SIZE", size)
    assert read_dashboard(Location(workspace)).rate == whole


def test_a_workspace_that_cannot_be_read_leaves_what_runs_hold(workspace: Path) -> None:
    edit(workspace / "models/two.yaml", "answer: Not warm.", "answer: Cold.")
    main(["run", "--quiet", "--refresh"])
    (workspace / "tests/new.md").write_text("---\ntags: [\n---\n")
    dashboard = read_dashboard(Location(workspace))
    assert "tests/new.md" in str(dashboard.problem)
    assert [it.name for it in dashboard.broken or ()] == [
        "tests/weather.md [city=Oslo] scripted/two"
    ]
    assert (dashboard.rate, dashboard.status) == (None, None)


def test_settings_that_cannot_be_read_are_a_problem_of_the_state(workspace: Path) -> None:
    (workspace / "evalstore.yaml").write_text("[")
    dashboard = read_dashboard(Location(workspace))
    assert "evalstore.yaml" in str(dashboard.problem)
    assert dashboard.broken is None
    lines = [line.text for line in dashboard_lines(dashboard, (), 80, 4)]
    assert lines[0] == "passing now the workspace cannot be read"
    assert lines[2] == "broken      unknown until the settings can be read"


def test_reading_ends_early_when_nobody_waits(workspace: Path) -> None:
    with while_wanted(lambda: False), pytest.raises(UnwantedError):
        read_dashboard(Location(workspace))


def test_the_rates_of_candidates_are_those_of_the_statistics(workspace: Path) -> None:
    location = Location(workspace)
    rates = candidate_rates(cases(location, "@"))
    assert all(rate.interval for rate in rates)
    assert list(rates) == [group.rate for group in stats(location).groups]
    assert [rate.passed for rate in rates] == [1, 2]
    edit(workspace / "tests/weather.md", "tags: [weather]", "tags: [weather, _json_mode]")
    main(["run", "--quiet", "tests/weather.md"])
    part = cases(location, "@")
    assert {row.tags for row in part.rows} == {("weather",)}, "special tags are not for reading"
    assert {rate.interval for rate in candidate_rates(part)} == {None}, "not of all cases"


def test_the_last_verdicts_are_those_of_the_runs_until_a_run(workspace: Path) -> None:
    location = Location(workspace)
    oslo = ("tests/weather.md", "city=Oslo", "scripted/two")
    edit(workspace / "models/two.yaml", "answer: Not warm.", "answer: Cold.")
    main(["run", "--quiet", "--refresh"])
    main(["run", "--quiet", "tests/greeting.md"])
    edit(workspace / "models/two.yaml", "answer: Cold.", "answer: Not warm.")
    main(["run", "--quiet", "--refresh"])
    history = read_recent_verdicts(location, ["tests/weather.md"])
    assert history[oslo] == {None: ("pass", "fail", "pass")}
    assert {cell[0] for cell in history} == {"tests/weather.md"}
    oldest, *_, newest = reversed(list_runs(location))
    assert read_recent_verdicts(location, ["tests/weather.md"], oldest.id)[oslo] == {
        None: ("pass",)
    }
    assert read_recent_verdicts(location, ["tests/weather.md"], newest.id)[oslo] == history[oslo]
    assert read_recent_verdicts(location, ["tests/none.md"]) == {}
    for _ in range(VERDICTS_LISTED):
        main(["run", "--quiet"])
    history = read_recent_verdicts(location, ["tests/weather.md"])
    assert history[oslo] == {None: ("pass",) * VERDICTS_LISTED}


def test_the_last_verdicts_of_a_renamed_file_go_on(workspace: Path) -> None:
    (workspace / "tests/weather.md").rename(workspace / "tests/sky.md")
    main(["run", "--quiet"])
    history = read_recent_verdicts(Location(workspace), ["tests/sky.md"])
    assert {cell[0] for cell in history} == {"tests/sky.md"}
    assert {len(words[None]) for words in history.values()} == {2}


def test_the_last_verdicts_of_prompts_that_change_places_go_on(workspace: Path) -> None:
    files = {"prompts/brief.md": "Be brief.", "prompts/kind.md": "Be kind."}
    tree(workspace, files)
    test = workspace / "tests/weather.md"
    edit(test, "tags:", "systemPrompts: [brief, kind]\ntags:")
    edit(
        workspace / "models/two.yaml", "responses:", "responses:\n  - {when: brief, answer: Cold.}"
    )
    main(["run", "--quiet"])
    edit(test, "[brief, kind]", "[kind, brief]")
    edit(workspace / "prompts/brief.md", "Be brief.", "Be very brief.")
    main(["run", "--quiet"])
    history = read_recent_verdicts(Location(workspace), ["tests/weather.md"])
    kind, brief = history["tests/weather.md", "city=Oslo", "scripted/two"].values()
    assert (kind[-2:], brief[-2:]) == (("pass", "pass"), ("fail", "fail"))
    edit(test, "[kind, brief]", "[brief, kind]")
    edit(workspace / "prompts/brief.md", "Be very brief.", "Be silent and brief.")
    edit(workspace / "models/two.yaml", "answer: Cold.", "error: {status: 400, message: no}")
    main(["run", "--quiet"])
    history = read_recent_verdicts(Location(workspace), ["tests/weather.md"])
    brief, kind = history["tests/weather.md", "city=Oslo", "scripted/two"].values()
    assert (kind[-2:], brief[-2:]) == (("pass", "pass"), ("fail", "fail"))
    edit(test, "[brief, kind]", "[kind]")
    main(["run", "--quiet"])
    history = read_recent_verdicts(Location(workspace), ["tests/weather.md"])
    (kind,) = history["tests/weather.md", "city=Oslo", "scripted/two"].values()
    assert kind[-2:] == ("pass", "pass")


# --- what it shows


def test_it_stands_above_the_runs_at_any_size(workspace: Path) -> None:
    release(workspace / "models/two.yaml", "answer: Not warm.", "answer: Cold.")
    main(["run", "--quiet"])
    (workspace / "tests/new.md").write_text(NEW)

    async def scenario(pilot: Pilot[None]) -> None:
        lines = screen(pilot).splitlines()
        assert lines[1] == " passing now 33.3% of 6  95% interval 6.1 to 79.2%"
        assert lines[2].startswith(" pending     2 to ask, 2 to judge, about $")
        assert lines[3].startswith(" broken      tests/weather.md [city=Oslo] scripted/two (")
        assert lines[4] == " trend       50.0% ▅▃ 33.3%  (0% to 100%)"
        assert lines[6].split()[:2] == ["run", "when"]
        await resized(pilot, 40, 12)
        lines = screen(pilot).splitlines()
        assert lines[1].startswith(" broken      tests/weather")
        assert lines[2].split()[:2] == ["run", "when"]
        await resized(pilot, 200, 60)
        lines = screen(pilot).splitlines()
        assert lines[4] == " trend       50.0% ▅▃ 33.3%  (0% to 100%)"
        await resized(pilot, 19, 5)

    drive(scenario, size=(80, 24))


def test_one_line_has_what_broke_or_else_what_is_pending(workspace: Path) -> None:
    (workspace / "tests/new.md").write_text(NEW)
    state, runs = read_dashboard(Location(workspace)), list_runs(Location(workspace))
    (line,) = dashboard_lines(state, runs, 80, 1)
    assert line.text.startswith("pending     2 to ask, 2 to judge, about $")
    release(workspace / "models/two.yaml", "answer: Not warm.", "answer: Cold.")
    main(["run", "--quiet"])
    state, runs = read_dashboard(Location(workspace)), list_runs(Location(workspace))
    (line,) = dashboard_lines(state, runs, 80, 1)
    assert line.text.startswith("broken      tests/weather.md [city=Oslo] scripted/two (")


def test_an_edited_system_prompt_is_named_and_not_its_test_file(workspace: Path) -> None:
    weather, brief = workspace / "tests/weather.md", workspace / "prompts/brief.md"
    tree(workspace, {"prompts/brief.md": "Be brief.\n"})
    edit(weather, "tags:", "systemPrompts: [brief]\ntags:")
    main(["run", "--quiet"])
    brief.write_text("Be short.\n")
    (workspace / "tests/new.md").write_text(NEW)

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "home")
        details = pilot.app.screen.query_one("#details", TextView).text
        assert "edited since the last run\nsystem prompt brief\ntests/new.md" in details
        await asyncio.to_thread(main, ["run", "--quiet"])
        brief.write_text("Be brief.\n")
        await show_changes(pilot)
        assert "edited since the last run\nsystem prompt brief (reverted)" in (
            pilot.app.screen.query_one("#details", TextView).text
        )

    drive(scenario, size=(200, 60))


def test_an_edited_data_file_is_named_and_not_the_test_file_that_uses_it(workspace: Path) -> None:
    data = workspace / "tests/cities.csv"
    tree(workspace, {"tests/cities.csv": "city\nOslo\nRome\n"})
    test = NEW.replace("# 👤", "---\ndataset: cities.csv\n---\n\n# 👤\n\n{{city}}?", 1)
    (workspace / "tests/cities.md").write_text(test)
    main(["run", "--quiet"])
    data.write_text("city\nOslo\nRome\nLima\n")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "home")
        details = pilot.app.screen.query_one("#details", TextView).text
        assert "edited since the last run\nrows of tests/cities.csv" in details

    drive(scenario, size=(200, 60))


def test_the_trend_ends_with_now_unless_results_are_pending(workspace: Path) -> None:
    def shown(width: int) -> list[str]:
        location = Location(workspace)
        lines = dashboard_lines(read_dashboard(location), list_runs(location), width, 4)
        return [line.text for line in lines]

    main(["run", "--quiet", "--refresh"])
    passing, *_, trend = shown(120)
    assert passing.startswith("passing now 50.0% of 6 ")
    assert "50.0% ▅▅▅ 50.0%  (0% to 100%)" in trend
    edit(workspace / "tests/weather.md", "How is", "And how is")
    passing, *_, trend = shown(120)
    assert passing.startswith("passing now 0.0% of 2 ")
    assert "50.0% ▅▅ 50.0%  (0% to 100%)" in trend


def test_it_follows_the_store(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        (workspace / "tests/new.md").write_text(NEW)
        await asyncio.to_thread(main, ["run", "--quiet"])
        await show_changes(pilot)
        assert dashboard_texts(pilot)[0].startswith("passing now 62.5% of 8")
        grid = pilot.app.screen.query_one(Grid)
        line = dict(zip(grid.titles, grid.texts(0), strict=True))
        assert (line["passed"], line["of"]) == ("62.5%", "5/8")
        assert line["verdicts"] == "5 pass, 3 fail"
        await press(pilot, "enter")
        (workspace / "tests/newer.md").write_text(NEW.replace("Lima", "Quito"))
        await asyncio.to_thread(main, ["run", "--quiet"])
        await show_changes(pilot)
        await press(pilot, "escape")
        assert dashboard_texts(pilot)[0].startswith("passing now 70.0% of 10")

    drive(scenario)


def test_a_file_with_an_error_is_named(workspace: Path) -> None:
    (workspace / "tests/new.md").write_text("---\ntags: [\n---\n")

    async def scenario(pilot: Pilot[None]) -> None:
        assert dashboard_texts(pilot)[0] == "passing now the workspace cannot be read"
        details = pilot.app.screen.query_one("#details", TextView).text
        assert details.startswith("the workspace\nerror: ")
        assert "w lists what is wrong." in details
        assert dashboard_texts(pilot)[1].startswith("pending     error: tests/new.md:")
        assert not pilot.app.screen.query_one(".problem").display

    drive(scenario)


class Counting(WorkspaceSource):
    """Counts how often the state of the workspace is read."""

    readings = 0

    def dashboard(self) -> Dashboard:
        self.readings += 1
        return super().dashboard()


def test_it_is_not_read_while_another_screen_is_shown(workspace: Path) -> None:
    source = Counting(Location(workspace))

    async def scenario(pilot: Pilot[None]) -> None:
        assert isinstance(pilot.app.screen, CasesPage)
        assert source.readings == 0
        await press(pilot, "escape")
        assert source.readings == 1
        await press(pilot, "enter")
        (workspace / "tests/new.md").write_text(NEW)
        assert source.readings == 1
        await press(pilot, "escape")
        assert source.readings == 2
        assert "2 to ask" in dashboard_texts(pilot)[1]

    drive(scenario, source=source, revision="@")


class Held(WorkspaceSource):
    """Reads the state of the workspace and holds it back until it is released."""

    def __init__(self, location: Location) -> None:
        super().__init__(location)
        self.read = 0
        self._permits = threading.Semaphore(0)

    def release(self) -> None:
        """Let one reading end."""
        self._permits.release()

    def dashboard(self) -> Dashboard:
        dashboard = super().dashboard()
        self.read += 1
        assert self._permits.acquire(timeout=60)
        return dashboard


def test_figures_from_before_a_change_are_marked_until_newer_ones_are_read(
    workspace: Path,
) -> None:
    source = Held(Location(workspace))
    source.release()

    async def scenario(pilot: Pilot[None]) -> None:
        page = pilot.app.screen
        assert isinstance(page, RunsPage)
        assert dashboard_texts(pilot)[0].startswith("passing now 50.0% of 6  ··├")
        await pilot.press("enter")
        await until(pilot, lambda: not isinstance(pilot.app.screen, RunsPage))
        await pilot.press("escape")
        await until(pilot, lambda: source.read == 2)
        assert dashboard_texts(pilot)[0].startswith("passing now 50.0% of 6  reading …")
        first = page.state
        (workspace / "tests/new.md").write_text(NEW)
        await asyncio.to_thread(main, ["run", "--quiet"])
        pilot.app.show_changes()  # type: ignore[attr-defined]
        grid = page.query_one(Grid)
        await until(pilot, lambda: grid.row_count == 3)
        source.release()
        await until(pilot, lambda: page.state is not first and source.read == 3)
        assert dashboard_texts(pilot)[0].startswith("passing now 50.0% of 6  reading …")
        line = dict(zip(grid.titles, grid.texts(0), strict=True))
        assert (line["when"], line["passed"]) == ("reading …", "50.0%")
        source.release()
        await settled(pilot)
        assert dashboard_texts(pilot)[0].startswith("passing now 62.5% of 8  ·")
        assert "reading" not in screen(pilot)

    drive(scenario, source=source, size=(100, 24))


def test_figures_that_could_not_be_read_again_are_called_old(workspace: Path) -> None:
    class Failing(Counting):
        def dashboard(self) -> Dashboard:
            if self.readings == 1:
                raise EvalstoreError("the database is locked")
            return super().dashboard()

    async def scenario(pilot: Pilot[None]) -> None:
        await show_changes(pilot)
        assert dashboard_texts(pilot)[0].startswith("passing now 50.0% of 6  old  ··├")
        assert "error: the database is locked" in screen(pilot)

    drive(scenario, source=Failing(Location(workspace)))


@pytest.mark.parametrize("width", [20, 40, 78, 98, 139, 198])
@pytest.mark.parametrize("height", [1, 4])
def test_every_line_fits(workspace: Path, width: int, height: int) -> None:
    (workspace / "tests/new.md").write_text(NEW)
    dashboard = read_dashboard(Location(workspace))
    listed = list_runs(Location(workspace))
    lines = list(dashboard_lines(dashboard, listed, width, height))
    old = list(dashboard_lines(dashboard, listed, width, height, note=READING))
    assert [line.text for line in old[1:]] == [line.text for line in lines[1:]]
    assert {span.colour for span in old[0].spans[:2]} == {"faint"}
    assert len(lines) == height
    if width >= 40:
        assert READING in old[0].text
        assert max(len(line.text.rstrip()) for line in [*lines, *old]) <= width


def test_the_cases_of_each_run_that_broke_stand_before_its_time() -> None:
    now = time.time_ns() // 1000
    hour = 3_600_000_000
    times = {"a": now - hour, "b": now - hour, "c": now - 2 * hour, "d": now - 3 * hour}
    failed = result("fail")
    broken = tuple(BrokenCase(name, failed, f"{time}", time) for name, time in times.items())
    for width, names in {
        100: "4 from the last 10 runs: a, b (1 hour ago), c (2 hours ago), d (3 hours ago)",
        66: "4 from the last 10 runs: a, b (1 hour ago), c (2 hour…",
    }.items():
        lines = dashboard_lines(Dashboard(broken=broken), (), width, 3)
        assert [*lines][2].text == f"broken      {names}"


def test_before_the_first_run_it_says_so(workspace: Path) -> None:
    lines = [line.text for line in dashboard_lines(Dashboard(), (), 80, 4)]
    assert lines[0] == "passing now nothing is judged yet"
    assert lines[2:] == [
        "broken      no earlier run",
        "trend       no run of all cases yet",
    ]


@pytest.mark.parametrize("module", ["statistics", "evalstore.runs.status.dashboard"])
def test_the_browser_starts_without_what_reads_its_figures(module: str) -> None:
    code = f"import sys, evalstore.interfaces.tui.app; sys.exit({module!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_during_a_run_the_state_says_what_that_does() -> None:
    text = "asking 1/20, judging 1/20; so far 1 ✓ pass"
    for height in (1, 4):
        lines = [*dashboard_lines(Dashboard(), (), 80, height, running=text)]
        assert lines[min(1, height - 1)].text == f"running     {text}"

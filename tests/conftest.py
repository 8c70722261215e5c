"""What holds for every test: no keys, no settings from outside, a home of its own."""

from __future__ import annotations

import gc
import os
import shutil
import signal
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer  # type: ignore[import-untyped]
from xdist.scheduler import LoadGroupScheduling  # type: ignore[import-untyped]

from evalstore.store import Store
from evalstore.store.location import StoreLocation, read_address
from tests import postgresql_server as postgresql
from tests import quick_stores
from tests.compiled_tests import compile_modules
from tests.forked_programs import Starter
from tests.hostile.campaign.processes import Launcher, launching

if TYPE_CHECKING:
    from tests.interfaces.html.pages import Page

# A machine that others use may take long for each example.
_PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("default", _PATIENT, derandomize=True, max_examples=25)
settings.register_profile("thorough", _PATIENT, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

_KEPT = "EVALSTORE_LLAMA_SERVER"
"""Names the server for the tests marked `llama`."""


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what runs in the background so, and programs inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

_MEMORY = Path("/dev/shm")
"""A file system in memory, where Linux has one."""
_ROOM = 2 << 30
"""Bytes that must be free there; the tests of a run need less than a tenth."""


def _use_memory() -> None:
    """Make the folders of tests in memory where that is possible: nothing waits for a disk."""
    if "PYTEST_DEBUG_TEMPROOT" in os.environ or not os.access(_MEMORY, os.W_OK):
        return
    system = os.statvfs(_MEMORY)
    if system.f_bavail * system.f_frsize >= _ROOM and not system.f_flag & os.ST_NOEXEC:
        os.environ["PYTEST_DEBUG_TEMPROOT"] = str(_MEMORY)


_use_memory()
_GARBAGE = 7_000, 20, 20
"""Thresholds of the search for garbage: with Python's own it takes one of twenty seconds."""
_numbers = count()
_homes: list[Path] = []
_folders = pytest.StashKey[list[Path]]()
"""What is removed when a test has passed: removing all of them in the end takes long."""
_failed = pytest.StashKey[bool]()
_checkout = pytest.StashKey[frozenset[str]]()
"""The files of the checkout before the first test."""
_OF_TOOLS = frozenset(
    [
        ".git",
        ".venv",
        ".venv-site",
        "__pycache__",
        ".pytest_cache",
        ".hypothesis",
        ".mypy_cache",
        ".ruff_cache",
        ".import_linter_cache",
        "attack-results",
        "build",
        "dist",
    ]
)
"""Folders that tools fill while tests run."""
_SCREEN = ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE")
"""Variables that change what is printed."""
_LOADS_LITELLM = (
    *("test_secrets.py", "test_price_table.py", "test_provider_answers.py"),
    "test_model_names.py",
)
_MADE_ONCE = ("wheel", "launcher", "program", "both", "page")
"""Fixtures of many tests that take as long as many tests."""
_LOADS_SCIPY = ("test_similarity.py", "test_against_scipy.py")
_FORKS = (
    *("test_dask_runners.py", "test_runner_processes.py", "test_simulated_runners.py"),
    *("test_action.py", "test_colors.py", "test_completion.py", "test_scale_page.py"),
)
"""They start programs as forks of a process that has loaded everything, see `tests.zygote`."""
_EXTENDED = frozenset(Path(__file__).with_name("extended.txt").read_text("utf-8").split())
"""Folders, files and tests that are marked `extended` for what they cost."""
_ONE_BY_ONE = frozenset({"tui", "hostile", "laws", "loopback", "project"})
"""Folders whose tests take long, so that each goes to the worker that is free."""


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are processors: some tests wait, but each worker collects all tests."""
    return (os.cpu_count() or 1) + 1


class _ByFile(LoadGroupScheduling):  # type: ignore[misc]
    """Hands out groups, tests that take long one by one, and all others by their file."""

    def _split_scope(self, nodeid: str) -> str:
        scope = super()._split_scope(nodeid)
        path = Path(nodeid.split("::")[0])
        return scope if scope != nodeid or not _ONE_BY_ONE.isdisjoint(path.parts) else str(path)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadGroupScheduling | None:
    """Hand out thousands of short tests by their files: one by one takes as long as they do."""
    return _ByFile(config, log) if config.getoption("dist") == "loadgroup" else None


def pytest_configure(config: pytest.Config) -> None:
    """Hand out the tests in the order of `pytest_collection_modifyitems`."""
    config.option.loadscopereorder = False


def pytest_sessionstart(session: pytest.Session) -> None:
    """Let a worker report its tests, but not each step of those that pass: there are thousands."""
    if not hasattr(session.config, "workerinput"):
        session.config.stash[_checkout] = _list_checkout(session.config.rootpath)
        if session.config.getoption("numprocesses", None):
            for folder in ("evalstore", "tests"):
                compile_modules(session.config.rootpath / folder, session.config)
    for plugin in session.config.pluginmanager.get_plugins():
        if hasattr(plugin, "sendevent"):
            plugin.sendevent = partial(_send_event, plugin.sendevent)


def _send_event(send: Callable[..., None], name: str, **event: Any) -> None:
    report = event.get("data", {})
    is_step = report.get("when") in ("setup", "teardown") and report["outcome"] == "passed"
    if not (name in ("logstart", "logfinish") or is_step):
        send(name, **event)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Keep all that collecting makes out of the searches for garbage: thousands of tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(*_GARBAGE)
        gc.enable()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail when a test has left a file in the checkout.

    The rest collects once what the tests have left: pytest would look through all of it five times.
    """
    if (before := session.config.stash.get(_checkout, None)) is not None:
        left = _list_checkout(session.config.rootpath) - before
        if left and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        for path in sorted(left):
            session.config.get_terminal_writer().line(f"\na test left a file: {path}", red=True)
    gc.collect()
    gc.freeze()


def _list_checkout(root: Path) -> frozenset[str]:
    """The files of the checkout, without those of tools."""
    paths: list[str] = []
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in _OF_TOOLS]
        paths += (str((Path(folder) / name).relative_to(root)) for name in files)
    return frozenset(paths)


@pytest.hookimpl(tryfirst=True)  # before groups are read
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run in one process what loads or makes something that takes seconds.

    Groups that take long come first, so that no worker is left alone with one in the end.
    """
    places = {item: _place(item) for item in items}
    for item, (_, group) in places.items():
        if _is_extended(item):
            item.add_marker(pytest.mark.extended)
        if group and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: places[item][0])


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even load what is listed as extended where that is left out."""
    if "not extended" not in config.option.markexpr:
        return None
    return True if _relative(collection_path, config) in _EXTENDED else None


def _is_extended(item: pytest.Item) -> bool:
    """Whether it is listed, or is the twin in PostgreSQL of a test with a file."""
    path = Path(item.nodeid.split("::")[0])
    places = {item.nodeid.split("[")[0], *map(str, [path, *path.parents])}
    values = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return not _EXTENDED.isdisjoint(places) or "postgresql" in values


def _relative(path: Path, config: pytest.Config) -> str:
    return str(path.relative_to(config.rootpath)) if path.is_relative_to(config.rootpath) else ""


def _place(item: pytest.Item) -> tuple[int, str]:
    """When a test runs (lower is earlier), and the group it runs in, if any."""
    if "litellm" in item.name or item.path.name in _LOADS_LITELLM:
        return 0, "litellm"
    if "rouge" in item.name or item.path.name in _LOADS_SCIPY:
        return 0, "scipy"
    if item.path.name in _FORKS:
        return 0, "zygote"
    used = getattr(item, "fixturenames", ())
    if made := next((name for name in _MADE_ONCE if name in used), ""):
        return 0, made
    if item.get_closest_marker("xdist_group"):
        return 0, ""
    return (1 if not _ONE_BY_ONE.isdisjoint(item.path.parts) else 2), ""


@pytest.fixture(autouse=True)
def _nothing_from_outside(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    for name in list(os.environ):
        of_ours = name.startswith(("EVALSTORE_", "AI_TESTER_", "GITHUB_")) and name != _KEPT
        if of_ours or name in _SCREEN or name.endswith(("_API_KEY", "_PROXY", "_proxy")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(_empty_home(tmp_path_factory)))


@pytest.fixture(autouse=True, scope="session")
def _quick_stores() -> Iterator[None]:
    """Write stores quickly."""
    with quick_stores.quick_stores():
        yield


def _new_folder(factory: pytest.TempPathFactory) -> Path:
    """An empty folder; pytest's own way looks through all there are, for thousands of tests."""
    made = factory.getbasetemp() / "folders" / str(next(_numbers))
    made.mkdir(parents=True)
    return made


def _empty_home(factory: pytest.TempPathFactory) -> Path:
    """An empty home: that of the test before, unless it was written to."""
    if not _homes or any(_homes[-1].iterdir()):
        _homes.append(_new_folder(factory))
    return _homes[-1]


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder for each test; it is kept when the test fails."""
    made = _new_folder(tmp_path_factory)
    request.node.stash.setdefault(_folders, []).append(made)
    return made


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remove the folders of a test that has passed, when nobody uses them any more."""
    report = yield
    if report.failed:
        item.stash[_failed] = True
    if report.when == "teardown" and not item.stash.get(_failed, False):
        for folder in item.stash.get(_folders, []):
            shutil.rmtree(folder, ignore_errors=True)
    return report


@pytest.fixture(scope="session")
def launcher() -> Iterator[Launcher]:
    """Forks programs from one that has loaded everything."""
    with launching() as item:
        yield item


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A tab of the one Chromium of all tests."""
    from tests.interfaces.html.pages import browsing

    with browsing(tmp_path_factory.mktemp("profile")) as tab:
        yield tab


@pytest.fixture
def start(
    launcher: Launcher, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Starter]:
    """Start evalstore in a process of its own."""
    folder = _new_folder(tmp_path_factory)
    request.node.stash.setdefault(_folders, []).append(folder)
    starter = Starter(launcher, folder)
    yield starter
    starter.end_all()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder inside `tmp_path`, so that there is something outside it."""
    inside = tmp_path / "workspace"
    inside.mkdir()
    return inside


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[postgresql.PostgreSQLServer]:
    """Return a server for the stores of this process; skips the test where none can be started."""
    if reason := postgresql.why_not():
        pytest.skip(reason)
    with postgresql.running_server() as server, postgresql.kept_connections(server):
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> StoreLocation:
    """Return where a store will be: in a SQLite file, and in PostgreSQL."""
    if request.param == "sqlite":
        return tmp_path / "store.db"
    server: postgresql.PostgreSQLServer = request.getfixturevalue("postgresql_server")
    return read_address(server.url())


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str | None:
    """Return the URL of the store of all workspaces of a test; None for a SQLite file in each.

    Commands take it from the environment.
    """
    if request.param == "sqlite":
        return None
    server: postgresql.PostgreSQLServer = request.getfixturevalue("postgresql_server")
    url = server.url()
    monkeypatch.setenv("EVALSTORE_STORE", url)
    return url


@pytest.fixture
def store(location: StoreLocation) -> Iterator[Store]:
    """Return a new store in each database."""
    with closing(Store.open(location, create=True)) as opened:
        yield opened

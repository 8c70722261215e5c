"""`serve`: the pages of results, and who may read them."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import pytest

from evalstore.core.errors import EvalstoreError
from evalstore.core.side_names import WORKSPACE
from evalstore.interfaces.cli.main import main
from evalstore.interfaces.web import local_server, results_site
from evalstore.interfaces.web.results_site import BuiltPages, ResultsSite
from evalstore.planning.options import Location
from evalstore.store.wanted import note_reached
from tests.interfaces.html.pages import Page, call, make_workspace, scripted
from tests.interfaces.html.test_hostile import require_harmless
from tests.interfaces.html.test_report import edit

if TYPE_CHECKING:
    from tests.forked_programs import Starter

pytestmark = pytest.mark.extended

LONG = f"# 👤\n\n{'Hello? ' * 10_000}\n\n---\n\nThe answer must be kind.\n"


@contextmanager
def serving(root: Path) -> Iterator[str]:
    """The address of a site that is served by a thread."""
    addresses: list[str] = []
    is_ready = threading.Event()
    loop = asyncio.new_event_loop()
    ended = asyncio.Event()

    def say(address: str) -> None:
        addresses.append(address)
        is_ready.set()

    def run() -> None:
        site = ResultsSite(Location(root))
        listening = local_server.bind(0)
        loop.run_until_complete(local_server.serve_until(ended, site, listening, say))
        site.pages.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert is_ready.wait(60)
        yield addresses[0]
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a run; a row and a file have odd names."""
    odd = "---\nreplacements:\n  sign: ['a/b?#%', ü]\n---\n\n# 👤\n\n{{sign}}\n\n---\n\nKind?\n"
    root = make_workspace(tmp_path_factory.mktemp("web") / "desk", {"tests/odd <b> #1.md": odd})
    assert call(root, "run", "--fail-on", "none") == 0
    return root


@pytest.fixture(scope="module")
def address(root: Path) -> Iterator[str]:
    """The address at which the workspace is served."""
    with serving(root) as address:
        yield address


def ask(
    address: str, path: str = "", headers: dict[str, str] | None = None, method: str = "GET"
) -> tuple[HTTPResponse, str]:
    """The response to a request below an address, and its text; redirects are not followed."""
    parts = urlsplit(address)
    with closing(HTTPConnection(parts.netloc, timeout=60)) as connection:
        whole = path if path.startswith("/") else parts.path + path
        connection.request(method, whole, headers=headers or {})
        response = connection.getresponse()
        return response, response.read().decode()


def newest(address: str) -> str:
    """The path of the newest run."""
    response, _ = ask(address, "run/@")
    assert response.status == 302
    return str(response.headers["Location"])


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/", {}, 404),
        ("/work", {}, 404),
        ("/{guess}/", {}, 404),
        ("/{guess}/work", {}, 404),
        ("/{token}/", {"Host": "evil.example"}, 403),
        ("/{token}/", {"Host": "127.0.0.1.evil.example"}, 403),
        ("/{token}/work", {"Origin": "http://evil.example"}, 403),
        ("/{token}/changes", {"Origin": "null"}, 403),
        ("/{token}/work", {"Origin": "http://127.0.0.1:1"}, 403),
        ("/{token}", {}, 302),
        ("/{token}/", {}, 302),
        ("/{token}/work", {}, 200),
        ("/{token}/run/@", {}, 302),
        ("/{token}/run/@work", {}, 302),
        ("/{token}/run/ffffffff", {}, 404),
        ("/{token}/run/..%2f..%2fevalstore.yaml", {}, 404),
        ("/{token}/case/tests/hello.md", {}, 302),
        ("/{token}/case/tests/none.md", {}, 404),
        ("/{token}/case/..%2f..%2fx.md::y", {}, 404),
        ("/{token}/other", {}, 404),
    ],
)
def test_who_may_read_what(address: str, path: str, headers: dict[str, str], status: int) -> None:
    token = urlsplit(address).path.strip("/")
    guess = token[:-1] + ("a" if token[-1] != "a" else "b")
    response, text = ask(address, path.format(token=token, guess=guess), headers)
    assert response.status == status, text
    assert response.headers["Content-Security-Policy"].startswith("default-src 'none'; ")
    assert response.headers["Content-Security-Policy"].endswith("; frame-ancestors 'none'")
    assert response.headers["Referrer-Policy"] == "no-referrer"
    assert "Set-Cookie" not in response.headers


def test_nothing_can_be_written(address: str) -> None:
    for method in ("POST", "PUT", "DELETE"):
        assert ask(address, "work", method=method)[0].status == 405


def test_a_page_is_that_of_the_report_with_links(root: Path, address: str) -> None:
    response, served = ask(address, newest(address))
    assert response.headers["Content-Type"].startswith("text/html")
    assert call(root, "report", "@", "-o", "report.html") == 0
    written = (root / "report.html").read_text(encoding="utf-8")
    blocks = [text.split("data-cases")[1].split("</script>")[0] for text in (served, written)]
    assert blocks[0] == blocks[1]
    assert "Workspace now" in served
    assert "Workspace now" not in written
    assert "connect-src" not in written


def test_a_case_has_an_address(address: str) -> None:
    run = newest(address)
    path = quote("case/tests/odd <b> #1.md::sign=a/b?#%")
    response, text = ask(address, path)
    assert (response.status, response.headers["Location"]) == (302, f"{run}#case-2"), text
    (error, hint) = ask(address, "case/tests/none.md")[1].splitlines()
    assert error.endswith("has no test file 'tests/none.md'")
    assert hint.startswith("hint: the test files are ")


def test_changes_are_sent_when_something_is_stored(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "desk", {})
    assert call(root, "run", "--fail-on", "none") == 0
    with serving(root) as address:
        parts = urlsplit(address)
        with closing(HTTPConnection(parts.netloc, timeout=60)) as connection:
            connection.request("GET", f"{parts.path}changes")
            with connection.getresponse() as stream:
                first = json.loads(stream.readline().removeprefix(b"data: "))
                edit(root, "Hello", "Hi")
                assert call(root, "run", "--fail-on", "none") == 0
                after = first
                while after["run"] == first["run"]:
                    line = stream.readline()
                    if line.startswith(b"data: "):
                        after = json.loads(line.removeprefix(b"data: "))
        assert newest(address).endswith(f"/run/{after['run']}")
        assert after["state"] != first["state"]


def test_pages_that_are_made_again_and_large_ones_leave_few_files(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BuiltPages, "_is_new", lambda _pages, _page: False)
    monkeypatch.setattr(results_site, "_MOST_PAGES", 2)
    pages = BuiltPages(Location(root), "")
    with closing(pages):
        first = pages.build(pages.read_state().run)
        folder = first.path.parent
        for _ in range(5):
            pages.build(WORKSPACE)
        assert len(list(folder.iterdir())) == 4
        assert first.path.exists()
        monkeypatch.setattr(results_site, "_MOST_BYTES", first.size)
        last = pages.build(WORKSPACE)
        assert set(folder.iterdir()) == {first.path, last.path}


def test_a_workspace_with_errors_says_so(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "desk", {})
    assert call(root, "run", "--fail-on", "none") == 0
    edit(root, "The answer", "{{unknown}}")
    with serving(root) as address:
        response, text = ask(address, "work")
        assert response.status == 409
        assert text.startswith("error: ")
        assert ask(address, newest(address))[0].status == 200


def test_a_workspace_without_a_run_is_its_own_first_page(tmp_path: Path) -> None:
    with serving(make_workspace(tmp_path / "desk", {})) as address:
        first = str(ask(address)[0].headers["Location"])
        assert first == f"{urlsplit(address).path}work"
        response, text = ask(address, first)
        assert (response.status, "Nothing is judged yet" in text) == (200, True)
        assert 'data-run=""' in text
        assert ask(address, "run/@")[0].status == 404
        assert ask(address, "case/tests/hello.md")[0].status == 404


def test_a_page_that_cannot_be_written_is_an_error(tmp_path: Path, start: Starter) -> None:
    root = make_workspace(tmp_path / "desk", {"tests/long.md": LONG})
    assert call(root, "run", "--fail-on", "none") == 0
    program = start("serve", folder=root, limits={"FSIZE": 40 * 1024})
    program.wait_until(lambda: program.out.endswith("\n"))
    response, text = ask(program.out.strip(), "work")
    assert (response.status, text.startswith("error: the page cannot be written to '")) == (
        409,
        True,
    )
    assert text.endswith("': File too large\n")
    program.send(signal.SIGTERM)
    assert program.finish()[0] == 0


def test_what_is_no_http_is_refused_without_a_word_in_the_terminal(
    address: str, caplog: pytest.LogCaptureFixture
) -> None:
    port = int(address.split(":")[2].split("/")[0])
    for sent in (b"nonsense\r\n\r\n", b"GET / HTTP/9.9\r\nx\r\n\r\n", b"\x16\x03\x01\0" * 9):
        with socket.create_connection(("127.0.0.1", port), 10) as connection:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            connection.recv(100)
    assert ask(address, "")[0].status < 400
    assert caplog.text == ""


def test_the_command_needs_a_workspace_and_a_free_port(
    tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-C", str(tmp_path), "serve"]) == 2
    assert "error: no evalstore.yaml" in capsys.readouterr().err
    with local_server.bind(0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["-C", str(root), "serve", "--port", str(port)]) == 2
    assert f"error: port {port} cannot be used: " in capsys.readouterr().err


def test_the_command_prints_the_address(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ports: list[int] = []

    def serve_nothing(site: ResultsSite, port: int, say: results_site.Say) -> None:
        ports.append(port)
        say(f"http://127.0.0.1:1{site.base}/")

    monkeypatch.setattr(results_site, "serve_site", serve_nothing)
    assert main(["-C", str(root), "serve", "--port", "8123"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("http://127.0.0.1:1/")
    assert printed.err == "Anybody with this address can read the results. Ctrl-C stops it.\n"
    assert ports == [8123]


class Held(BuiltPages):
    """Pages that are made no further than to their first results before they may."""

    may = threading.Event()

    def _write(self, run: str) -> results_site.BuiltPage:
        note_reached("results", 500, 1_234)
        assert self.may.wait(60)
        if run == WORKSPACE:
            raise EvalstoreError("it cannot be read", hint="read it again")
        return super()._write(run)


@pytest.fixture
def held(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of pages that are made when `Held.may` is set, for those with little patience."""
    monkeypatch.setattr(results_site, "BuiltPages", Held)
    monkeypatch.setattr(results_site, "_PATIENCE", 0.05)
    Held.may.clear()
    with serving(root) as address:
        try:
            yield address
        finally:
            Held.may.set()


PERSON = {"Accept": "text/html,*/*;q=0.8"}


def ask_until(wanted: str, held: str, path: str) -> tuple[HTTPResponse, str]:
    """What a person gets who asks until the page has a text."""
    end = time.monotonic() + 60
    while True:
        response, text = ask(held, path, PERSON)
        if wanted in text:
            return response, text
        assert time.monotonic() < end, text


def test_a_browser_is_shown_what_is_known_before_the_page_is_made(held: str) -> None:
    response, text = ask_until("500 of 1,234 results", held, newest(held))
    assert (response.status, response.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert '<meta http-equiv="refresh" content="1">' in text
    assert "<title>desk: run " in text
    assert "data-cases" not in text
    Held.may.set()
    assert "data-cases" in ask(held, newest(held))[1], "a program waits for the page"
    assert "data-cases" in ask(held, newest(held), PERSON)[1]


def test_the_error_is_shown_to_who_was_told_to_wait(held: str) -> None:
    assert "the workspace as it is now" in ask(held, "work", PERSON)[1]
    Held.may.set()
    response, text = ask_until("it cannot be read", held, "work")
    assert (response.status, text) == (409, "error: it cannot be read\nhint: read it again\n")


# --- in a real browser


def test_a_page_that_waited_becomes_that_of_the_run(held: str, page: Page) -> None:
    page.call("Page.navigate", url=f"{held.rstrip('/')}/run/{newest(held)[-32:]}#case-2")
    page.wait("document.body.innerText.includes('500 of 1,234 results')")
    Held.may.set()
    page.wait("document.documentElement.dataset.ready === 'yes'")
    page.wait("document.getElementById('case').open")


def test_the_page_of_the_workspace_follows_a_run(tmp_path: Path, page: Page) -> None:
    root = make_workspace(tmp_path / "desk", {})
    assert call(root, "run", "--fail-on", "none") == 0
    edit(root, "Hello", "Hi")
    with serving(root) as address:
        page.go(f"{address}work")
        cells = "document.getElementById('matrix').tBodies[0].innerText"
        assert "pending" in page.value(cells)
        assert call(root, "run", "--fail-on", "none") == 0
        page.wait(f"{cells}.includes('pass')")
        page.wait("document.documentElement.dataset.ready === 'yes'")
        page.value("document.querySelector('#matrix a').click()")
        page.wait("document.getElementById('case').open")
        edit(root, "Hi", "Good evening")
        assert call(root, "run", "--fail-on", "none") == 0
        page.wait("!document.getElementById('newer').hidden")
        assert page.value("document.getElementById('case').open")
        note = page.value("document.getElementById('newer').innerText")
        assert note == "There are newer results."
        assert {urlsplit(url).netloc for url in page.requested} == {urlsplit(address).netloc}


def test_a_case_with_an_odd_name_links_to_itself(address: str, page: Page) -> None:
    page.go(address + quote("case/tests/odd <b> #1.md::sign=a/b?#%"))
    page.wait("document.getElementById('case').open")
    assert page.value("document.querySelector('#case h2').textContent").endswith("[sign=a/b?#%]")
    link = urlsplit(page.value("document.querySelector('#case .bar a').href"))
    assert (link.query, link.fragment) == ("", "")
    assert ask(address, link.path)[0].headers["Location"] == f"{newest(address)}#case-2"


def test_the_page_of_a_run_names_a_newer_one(tmp_path: Path, page: Page) -> None:
    root = make_workspace(tmp_path / "desk", {})
    assert call(root, "run", "--fail-on", "none") == 0
    with serving(root) as address:
        page.go(f"{address}case/tests/hello.md")
        page.wait("document.getElementById('case').open")
        link = page.value("document.querySelector('#case .bar a').href")
        assert link == f"{address}case/tests/hello.md::"
        edit(root, "Hello", "Hi")
        assert call(root, "run", "--fail-on", "none") == 0
        page.wait("!document.getElementById('newer').hidden")
        page.value("document.querySelector('#newer a').click()")
        page.wait(f"location.pathname === '{newest(address)}'")


def test_hostile_texts_do_nothing_in_a_served_page(tmp_path: Path, page: Page) -> None:
    runs = "<img src=x onerror='document.title=`hacked`'><svg onload='document.title=`hacked`'>"
    name = f"tests/{runs} \u202e\x1b[31m\n.md"
    row = json.dumps([f"{runs} \u202e/?#"])
    test = f"---\nreplacements: {{x: {row}}}\n---\n\n# 👤\n\n{{{{x}}}}\n\n---\n\nKind?\n"
    model = scripted("first", {"answer": f"{runs}<script>document.title=`hacked`</script>"})
    root = make_workspace(tmp_path / "<i>desk", {name: test, "models/first.yaml": model})
    assert call(root, "run", "--fail-on", "none") == 0
    with serving(root) as address:
        page.go(f"{address}run/@")
        page.value("document.querySelector('#matrix a[href=\"#case-1\"]').click()")
        page.wait("document.getElementById('case').open")
        assert runs in page.value("document.getElementById('case-title').textContent")
        require_harmless(page, address)
        link = urlsplit(page.value("document.querySelector('#case .bar a').href"))
        response, text = ask(address, link.path)
        assert (response.status, response.headers["Location"]) == (
            302,
            f"{newest(address)}#case-1",
        ), text
        response, text = ask(address, quote(f"case/{name}x"))
        assert (response.status, response.headers["Content-Type"]) == (
            404,
            "text/plain; charset=utf-8",
        )
        assert "\x1b" not in text

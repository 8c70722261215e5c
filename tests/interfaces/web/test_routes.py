"""`serve`: the pages of results, and who may read them."""

from __future__ import annotations

import asyncio
import html
import json
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, unquote, urlencode, urljoin, urlsplit

import pytest

from evalstore.core.display import WORKSPACE
from evalstore.core.values import FileVersion
from evalstore.interfaces.cli.main import main
from evalstore.interfaces.web import local_server, routes
from evalstore.interfaces.web.labelling import AskedAnswer, LabelPages
from evalstore.interfaces.web.routes import BuiltPage, BuiltPages, ResultsSite
from evalstore.planning.open_project import open_store
from evalstore.planning.options import Location, SelectionOptions
from evalstore.results.table.list import list_things
from tests.interfaces.html.pages import TEST, Page, call, make_workspace, scripted
from tests.interfaces.html.test_hostile import require_harmless
from tests.interfaces.html.test_report import edit

if TYPE_CHECKING:
    from tests.forked_programs import Starter

pytestmark = pytest.mark.extended

LONG = f"# 👤\n\n{'Hello? ' * 10_000}\n\n---\n\nThe answer must be kind.\n"


@contextmanager
def serving(root: Path, port: int = 0) -> Iterator[str]:
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
        listening = local_server.bind(port)
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
        ("/{token}/", {}, 200),
        ("/{token}/label", {"Host": "evil.example"}, 403),
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
    is_form = path.endswith("/label")
    assert response.headers["Referrer-Policy"] == ("same-origin" if is_form else "no-referrer")
    assert "Set-Cookie" not in response.headers


def test_nothing_can_be_written(address: str) -> None:
    for method in ("POST", "PUT", "DELETE"):
        assert ask(address, "work", method=method)[0].status == 403
        own = {"Origin": f"http://{urlsplit(address).netloc}"}
        assert ask(address, "work", own, method=method)[0].status == 405


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


def test_few_pages_are_kept_as_files(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "_MOST_PAGES", 2)
    pages = BuiltPages(Location(root), "")
    with closing(pages):
        first = pages.build(pages.read_state().run)
        work = pages.build(WORKSPACE)
        with work.path.open("rb") as sent:  # one that is sent when it is made again
            pages.kept[WORKSPACE] = replace(work, ended=0, seconds=0)
            work = pages.build(WORKSPACE)
            assert sent.read().endswith(b"</html>\n")
        assert {*first.path.parent.iterdir()} == {first.path, work.path}
        last = pages.build(routes.RUN_LIST)
        assert {*first.path.parent.iterdir()} == {work.path, last.path}


def test_a_workspace_with_errors_says_so(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "desk", {})
    assert call(root, "run", "--fail-on", "none") == 0
    edit(root, "The answer", "{{unknown}}")
    with serving(root) as address:
        response, text = ask(address, "work")
        assert response.status == 409
        assert text.startswith("error: ")
        assert ask(address, newest(address))[0].status == 200
        for path in ("work", "label", "label/ffffffff"):
            plain, shown = ask(address, path)[1], ask(address, path, PERSON)
            assert shown[0].headers["Content-Type"] == "text/html; charset=utf-8"
            assert shown[0].status == 409
            assert html.escape(plain, quote=False) in shown[1].replace("&#39;", "'")
            assert f'<a href="{urlsplit(address).path}">All runs</a>' in shown[1]
            assert "location.reload()" not in shown[1], "what cannot be read is not asked for again"


def test_a_workspace_without_a_run_has_its_page(tmp_path: Path) -> None:
    with serving(make_workspace(tmp_path / "desk", {})) as address:
        assert "No runs yet." in ask(address)[1]
        assert "No answer can be labelled." in ask(address, "label")[1]
        response, text = ask(address, "work")
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

    def serve_nothing(site: ResultsSite, port: int, say: routes.Say) -> None:
        ports.append(port)
        say(f"http://127.0.0.1:1{site.base}/")

    monkeypatch.setattr(routes, "serve_site", serve_nothing)
    assert main(["-C", str(root), "serve", "--port", "8123"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("http://127.0.0.1:1/")
    told = "Anybody with this address can read the results and label answers. Ctrl-C stops it.\n"
    assert printed.err == told
    assert ports == [8123]


PERSON = {"Accept": "text/html,*/*;q=0.8"}


def ask_until(wanted: str, address: str, path: str) -> tuple[HTTPResponse, str]:
    """What a person gets who asks until the page has a text."""
    end = time.monotonic() + 60
    while True:
        response, text = ask(address, path, PERSON)
        if wanted in text:
            return response, text
        assert time.monotonic() < end, text


# --- in a real browser


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


def test_a_case_with_an_odd_name_links_to_its_newest_result(address: str, page: Page) -> None:
    page.go(f"{address}work#case-2")
    page.wait("document.getElementById('case')?.open")
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
        assert page.value("document.querySelector('#case .bar a')") is None
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
    for _ in range(2):
        assert call(root, "run", "--fail-on", "none") == 0
    link_in_case = "document.querySelector('#case .bar a')"
    with serving(root) as address:
        page.go(f"{address}run/@#case-1")
        page.wait("document.getElementById('case').open")
        assert page.value(link_in_case) is None  # this is the newest result
        page.go(f"{address}run/@~1")
        page.value("document.querySelector('#matrix a[href=\"#case-1\"]').click()")
        page.wait("document.getElementById('case').open")
        assert runs in page.value("document.getElementById('case-title').textContent")
        require_harmless(page, address)
        link = urlsplit(page.value(f"{link_in_case}.href"))
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


# --- the list of runs


def test_the_first_page_lists_the_workspace_and_the_runs(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "desk", {"tests/bye.md": TEST.replace("Hello", "Bye")})
    assert call(root, "run", "--fail-on", "none", "--message", "the <first>") == 0
    (root / "models/first.yaml").write_text(scripted("first", {"answer": "Go away!"}))
    edit(root, "Hello", "Hi")
    assert call(root, "run", "--fail-on", "none") == 0
    assert call(root, "run", "tests/bye.md", "--refresh", "--fail-on", "none") == 0
    assert call(root, "run", "-m", "second", "--fail-on", "none") == 0
    with serving(root) as address:
        response, text = ask(address)
    assert response.status == 200
    text = text.partition("</table>")[0]
    rows = [" ".join(re.sub(r"<[^>]+>", " ", row).split()) for row in text.split("<tr")[2:]]
    rows = [re.sub(r"\b[0-9a-f]{8}\b|\d{4}-\S+ \S+ UTC", "#", row) for row in rows]
    assert [row.partition(">")[2].strip() for row in rows[:5]] == [
        "workspace now 50.0% 0.0% 1 fixed total $0",  # as in `diff`: the older answer counts
        "# # 0.0% $0 partial · -m second (2 of 2 cases)",
        "# # 0 of 1 0 of 1 1 broke (asked again) $0 "
        "partial · tests/bye.md --refresh (1 of 2 cases)",
        "# # 50.0% 0.0% 1 broke tests/hello.md: 1 broke $0 tests/hello.md changed",
        "# # 100.0% 0.0% $0 the &lt;first&gt;",
    ]
    assert text.count('class="partial"') == 2


def test_the_first_page_says_what_is_pending_or_labelled_and_has_names_and_recorded_answers(
    tmp_path: Path,
) -> None:
    recorded = (
        "---\ndataset: data.csv\nanswer: '{{ item.a }}'\n---\n\n# 👤\n\n{{q}}\n\n---\n\nKind?\n"
    )
    files = {"tests/old.md": recorded, "tests/data.csv": "q,a\nWell?,Yes.\n"}
    root = make_workspace(tmp_path / "desk", files)
    assert call(root, "run", "--fail-on", "none") == 0
    assert call(root, "tag", "v1") == 0
    assert call(root, "label", "tests/hello.md", "fail", "--model", "first", "--as", "Ada") == 0
    edit(root, "Well?,Yes.", "Well?,Yes.\nSo?,No.", "tests/data.csv")
    with serving(root) as address:
        text = ask(address)[1].partition("</table>")[0]
    rows = [" ".join(re.sub(r"<[^>]+>", " ", row).split()) for row in text.split("<tr")[2:]]
    assert ">recorded</th>" in text
    now = "1 broke total $0 1 pending: about $0 · people&#39;s labels changed 1 result"
    assert f"{now} · rows of tests/data.csv changed" in rows[0]
    assert re.search(r"\b[0-9a-f]{8} \(v1\) 2", rows[1])


def test_no_column_of_the_list_is_cut_at_1280_with_four_candidates(
    address: str, page: Page
) -> None:
    size = {"width": 1280, "height": 800}
    page.call("Emulation.setDeviceMetricsOverride", **size, deviceScaleFactor=1, mobile=False)
    page.go(address)
    page.value(
        "{const rows = [...document.querySelectorAll('#runs tr')];"
        " for (const row of rows) for (const n of [1, 2])"
        " row.insertBefore(row.cells[2].cloneNode(true), row.cells[3]);"
        " rows[0].cells[2].innerText = rows[0].cells[3].innerText = 'nimbus/mini';"
        " rows[2].cells[6].replaceChildren();"
        " for (const [kind, text] of [['worse', '17 broke'], ['better', '28 fixed'],"
        " ['undecided', '3 now undecided'],"
        " ['same', '(3 as labels no longer count, 2 by labels)']])"
        " { const part = document.createElement('span'); part.className = 'change-' + kind;"
        " part.textContent = text + ' '; rows[2].cells[6].append(part, ' '); } }"
    )
    widths = page.value(
        "[document.getElementById('runs').scrollWidth,"
        " document.querySelector('.scroll').clientWidth]"
    )
    page.call("Emulation.clearDeviceMetricsOverride")
    assert widths[0] <= widths[1]


def test_texts_of_runs_have_the_room_beside_names_without_their_common_folder(
    tmp_path: Path, page: Page
) -> None:
    names = ["scripted/atlas-large", "scripted/nimbus-mini"]
    models = {f"models/{name[9:]}.yaml": scripted(name, {"answer": "Hi."}) for name in names}
    settings = f"candidates: [{', '.join(names)}]\nevaluators: [judge]\n"
    root = make_workspace(tmp_path / "desk", {**models, "evalstore.yaml": settings})
    message = "tests/booking/dog.md is asked again with a model that has another version"
    assert call(root, "run", "--fail-on", "none", "--message", message) == 0
    with serving(root) as address:
        text = ask(address)[1]
        page.go(address)
        for width, most in ((1280, 2), (1920, 1)):
            size = {"width": width, "height": 800}
            page.call(
                "Emulation.setDeviceMetricsOverride", **size, deviceScaleFactor=1, mobile=False
            )
            lines = page.value(
                "(cell => { const text = document.createRange(); text.selectNodeContents(cell);"
                " return new Set([...text.getClientRects()].map(each => each.top)).size; })"
                "([...document.querySelectorAll('#runs .text-cell')].at(-1))"
            )
            assert 1 <= lines <= most
        page.call("Emulation.clearDeviceMetricsOverride")
    assert ">atlas-large</th>" in text


def test_the_first_page_says_what_is_wrong_with_the_workspace(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "desk", {})
    assert call(root, "run", "--fail-on", "none") == 0
    edit(root, "The answer", "{{unknown}}")
    with serving(root) as address:
        response, text = ask(address)
    assert response.status == 200
    assert re.search('class="text-cell">[^<]*&#39;unknown&#39; is not defined', text)
    assert "/run/" in text


# --- labels


@pytest.fixture
def labelled(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A workspace with two answers, of which a judge fails one, and where it is served."""
    root = make_workspace(tmp_path / "desk", {})
    assert call(root, "run", "--fail-on", "none") == 0
    with serving(root) as address:
        yield root, address


def post(address: str, path: str, origin: str | None = None, **form: str) -> HTTPResponse:
    """The response to a form that is sent from a page of the server, or from another one."""
    return send(address, path, origin, **form)[0]


def send(
    address: str, path: str, origin: str | None = None, accept: str = "*/*", **form: str
) -> tuple[HTTPResponse, str]:
    """The response to a form, and its text.

    The label and the judging version that the person has seen are those of the page now.
    """
    parts = urlsplit(address)
    if not {"seen", "judging"} <= {*form}:
        query = dict(parse_qsl(urlsplit(path).query)) | {"by": form.get("by", "")}
        page = ask(address, f"{urlsplit(path).path}?{urlencode(query)}")[1]
        for name in {"seen", "judging"} - {*form}:
            form[name] = "".join(re.findall(rf'name="{name}" value="(\w*)"', page)[:1])
    own = f"http://{parts.netloc}" if origin is None else origin
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": accept}
    headers |= {"Origin": own} if own else {}
    with closing(HTTPConnection(parts.netloc, timeout=60)) as connection:
        connection.request("POST", path, urlencode(form), headers)
        response = connection.getresponse()
        return response, response.read().decode()


def labels_in(root: Path) -> list[tuple[str, str, str]]:
    """The person, verdict and note of each label in the store."""
    with open_store(Location(root)) as store:
        return [(label.person, label.verdict, label.note) for label in store.find_labels()]


def answer_of(address: str, text: str, query: str = "") -> str:
    """The path of the page of the answer with a text."""
    path = str(ask(address, f"label?by=Ada{query}")[0].headers["Location"])
    if text in ask(address, path)[1]:
        return path
    return after(address, path)


def after(address: str, path: str) -> str:
    """The path of the page of the next answer after that of one."""
    session = urlsplit(path).path.rpartition("/")[2]
    return str(ask(address, f"label?{urlsplit(path).query}&after={session}")[0].headers["Location"])


def test_a_label_is_stored_and_the_verdict_of_the_judge_shown_after_it(
    labelled: tuple[Path, str],
) -> None:
    root, address = labelled
    path = answer_of(address, "Go away.")
    text = ask(address, path)[1]
    assert {"Hello", "The answer must be kind.", "Go away."} <= set(re.split(r"[<>]", text))
    assert "It says Go away" not in text
    assert "verdict-" not in text.partition("</style>")[2]
    sent = post(address, path, verdict="pass", note="Blunt,\r\nbut right.", by="Ada")
    assert sent.status == 303
    decided = ask(address, str(sent.headers["Location"]))[1]
    assert "It says Go away" in decided
    assert "verdict-pass" in decided.partition(">Verdicts<")[0]
    assert "verdict-fail" in decided.partition(">Verdicts<")[2]
    assert labels_in(root) == [("Ada", "pass", "Blunt,\nbut right.")]
    following = ask(address, "label?by=Ada")[0].headers["Location"]
    assert following != path
    assert ask(address, "label?by=Bob")[0].status == 302
    assert post(address, path, verdict="none", by="Ada").status == 409, "it is not confirmed"
    assert len(labels_in(root)) == 1
    assert "Your label is removed" not in ask(address, path)[1]
    post(address, path, verdict="none", by="Ada", confirmed="on")
    assert labels_in(root)[-1][:2] == ("Ada", "none")
    assert "Your label is removed." in ask(address, path)[1]
    assert "It says Go away" not in ask(address, str(sent.headers["Location"]))[1]


def test_no_verdict_is_shown_to_a_person_without_a_label_and_a_later_page_names_the_label(
    labelled: tuple[Path, str],
) -> None:
    _, address = labelled
    path = answer_of(address, "Go away.")
    post(address, path, verdict="fail", by="Ada", note="Rude.")
    for query in ("?by=Bob", "?by=Bob&decided"):
        text = ask(address, path.partition("?")[0] + query)[1].partition("</style>")[2]
        assert "It says Go away" not in text
        assert "verdict-" not in text
        assert "Rude." not in text
    response, text = ask(address, path)
    assert response.headers["Cache-Control"] == "no-store"
    assert re.search('Your label</h2>\\s*<p><span class="verdict verdict-fail">', text)
    assert ">Rude.</textarea>" in text
    answers = [str(ask(address, "label?by=Eve")[0].headers["Location"])]
    answers += [after(address, answers[0])]
    assert "Previous answer" not in ask(address, answers[0])[1]
    link = re.findall('<a href="([^"]*)">Previous answer', ask(address, answers[1])[1])[0]
    assert unquote(html.unescape(link)) == unquote(answers[0])


def test_a_previous_answer_is_linked_by_a_server_that_has_listed_none(
    labelled: tuple[Path, str],
) -> None:
    root, address = labelled
    first = str(ask(address, "label?by=Eve")[0].headers["Location"])
    session, second = urlsplit(first).path.rpartition("/")[2], after(address, first)
    with serving(root) as again:
        text = ask(again, f"label/{urlsplit(second).path.rpartition('/')[2]}?by=Eve")[1]
    assert f"label/{session}?by=Eve" in text.partition("Previous answer")[0]


def test_files_are_saved_and_tools_and_schemas_shown_beside_the_question(tmp_path: Path) -> None:
    test = TEST.replace("tags: [greeting]", "availableTools: [find]")
    files = {
        "tests/hello.md": test.replace("Hello", "Read `{{_file:a <b>.html}}` `{{_file:c.pdf}}`"),
        "tests/a <b>.html": "<script>alert(1)</script>",
        "tests/c.pdf": "%PDF",
        "tests/d.pdf": "%PDF of another question",
        "tests/other.md": TEST.replace("Hello", "`{{_file:d.pdf}}`").replace(
            "tags: [greeting]", "structuredResponseSchema: word"
        ),
        "tools/find.yaml": "name: find\ndescription: Finds <i>.\nparameters: {type: object}\n",
        "schemas/word.yaml": "id: word\ntype: object\nproperties: {word: {type: string}}\n",
    }
    root = make_workspace(tmp_path / "desk", files)
    assert call(root, "run", "--fail-on", "none") == 0
    with serving(root) as address:
        text = ask(address, str(ask(address, "label?only=hello")[0].headers["Location"]))[1]
        other = ask(address, str(ask(address, "label?only=other")[0].headers["Location"]))[1]
        saved = [ask(address, path) for path in re.findall('href="([^"]*/file/[^"]*)"', text)]
        foreign = re.findall('/file/[^"]*', other)[0]
        page = re.findall('(/[^"]*)/file/', text)[0]
        assert ask(address, page + foreign)[0].status == 404
    assert [body for _, body in saved] == ["<script>alert(1)</script>", "%PDF"]
    for response, _ in saved:
        assert response.headers["Content-Type"] == "application/octet-stream"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
    names = [response.headers["Content-Disposition"] for response, _ in saved]
    assert names == [
        f"attachment; filename*=UTF-8''{name}" for name in ("a%20%3Cb%3E.html", "c.pdf")
    ]
    assert '"description": "Finds <i>."' in html.unescape(text.partition(">Tool find<")[2])
    assert '"word": {' in html.unescape(other.partition(">JSON schema of the answer<")[2])
    assert "Finds <i>" not in text


def test_a_picture_that_is_not_shown_is_saved_and_the_page_says_why(tmp_path: Path) -> None:
    test = TEST.replace("Hello", "`{{_file:large.png}}` `{{_file:scan.tiff}}`")
    root = make_workspace(tmp_path / "desk", {"tests/hello.md": test})
    (root / "tests/large.png").write_bytes(b"\x89PNG\r\n\x1a\n".ljust(2 * 2**20 + 1))
    (root / "tests/scan.tiff").write_bytes(b"II*\0")
    assert call(root, "run", "-m", "first", "--fail-on", "none") == 0
    with serving(root) as address:
        response, text = ask(address, str(ask(address, "label")[0].headers["Location"]))
        assert (response.status, "<img" in text) == (200, False)
        links = re.findall('note">(.*?): <a href="([^"]*)" download[^>]*>Download (.*?)<', text)
        bodies = [
            ask(address, link, method="HEAD")[0].headers["Content-Length"] for _, link, _ in links
        ]
    assert [(note, name) for note, _, name in links] == [
        ("the picture is too large to be shown (2,097,153 bytes)", "large.png"),
        ("a picture of the type image/tiff is not shown", "scan.tiff"),
    ]
    assert bodies == [str(2 * 2**20 + 1), "4"]


def test_a_note_is_stored_with_the_next_answer_and_never_lost(
    labelled: tuple[Path, str],
) -> None:
    root, address = labelled
    path = answer_of(address, "Go away.")
    text = send(address, path, verdict="skip", by="Ada", note="Is <it> rude?")[1]
    assert "The note is not stored" in text
    assert ">Is &lt;it&gt; rude?</textarea>" in text
    assert labels_in(root) == []
    post(address, path, verdict="fail", by="Ada")
    for note in ("Rude.", "Rude.", ""):
        sent = post(address, path, verdict="next", by="Ada", note=note)
        assert sent.status == 303
        assert "after=" in sent.headers["Location"]
    assert labels_in(root) == [("Ada", "fail", ""), ("Ada", "fail", "Rude."), ("Ada", "fail", "")]


def test_a_page_that_is_older_than_a_label_replaces_nothing(labelled: tuple[Path, str]) -> None:
    root, address = labelled
    path = answer_of(address, "Go away.")
    post(address, path, verdict="fail", by="Ada", note="Rude.")
    old = {"by": "Ada", "seen": ""}
    assert post(address, path, verdict="skip", note="", **old).status == 303
    assert post(address, path, verdict="fail", note="Rude.", **old).status == 303
    sent = post(address, path, verdict="fail", note="", **old)
    assert sent.status == 303, "it is the label that is stored already"
    assert "after=" not in sent.headers["Location"]
    for verdict, note in (("skip", "No."), ("pass", ""), ("fail", "No.")):
        response, text = send(address, path, verdict=verdict, note=note, **old)
        assert response.status == 409
        assert (
            "Nothing is stored: your label is fail. The page that you sent showed another" in text
        )
        assert "Decide again" not in text
        kept = "Rude.\nNo." if note else "Rude."
        assert f'data-stored="Rude.">{kept}</textarea>' in text
    assert post(address, path, verdict="none", confirmed="on", **old).status == 409
    assert labels_in(root) == [("Ada", "fail", "Rude.")]
    post(address, path, verdict="pass", by="Ada", note="Rude.")
    assert labels_in(root)[1:] == [("Ada", "pass", "Rude.")]


def test_a_note_that_is_too_long_stays_in_its_field_until_it_is_shorter(
    labelled: tuple[Path, str],
) -> None:
    root, address = labelled
    path = answer_of(address, "Go away.")
    for verdict, label in (("fail", []), ("next", [("Ada", "fail", "Rude.")])):
        note = "Rude. " + verdict * 2_500
        response, text = send(address, path, by="Ada", verdict=verdict, note=note)
        assert (response.status, labels_in(root)) == (409, label)
        assert "Nothing is stored: the note has 10,006 characters, and may have 10,000" in text
        assert f">{note}</textarea>" in text
        post(address, path, by="Ada", verdict=verdict, note="Rude.")
    note = "n" * 9_999
    both = f"Rude.\n{note}"
    for form in ({"verdict": "fail", "note": note, "seen": ""}, {"verdict": "next", "note": both}):
        assert f">{both}</textarea>" in send(address, path, by="Ada", **form)[1]
    assert labels_in(root) == [("Ada", "fail", "Rude.")]


def test_a_long_note_of_the_command_is_kept_and_its_verdict_can_be_changed(
    labelled: tuple[Path, str],
) -> None:
    root, address = labelled
    note, name = "n" * 12_000, "A" * 201
    case = "tests/hello.md", "fail", "-m", note, "--model", "second", "--as", name
    assert call(root, "label", *case) == 0
    path = answer_of(address, "Go away.")
    for verdict in ("next", "pass"):
        assert post(address, path, by=name, verdict=verdict, note=note).status == 303
    assert labels_in(root) == [(name, word, note) for word in ("fail", "pass")]


def test_a_note_is_in_its_field_as_it_is_stored(labelled: tuple[Path, str]) -> None:
    root, address = labelled
    path = answer_of(address, "Go away.")
    note = "می\u200cخواهم \U0001f469\u200d\U0001f4bb \u202e </textarea>"
    post(address, path, verdict="fail", by="Ada", note=note)
    text = ask(address, path)[1]
    (field,) = re.findall('data-stored="([^"]*)">([^<]*)</textarea>', text)
    assert [html.unescape(part) for part in field] == [note, note]
    assert post(address, path, verdict="next", by="Ada", note=note).status == 303
    assert labels_in(root) == [("Ada", "fail", note)]


def test_joiners_of_letters_and_emoji_are_shown_and_other_invisible_signs_are_escapes(
    tmp_path: Path,
) -> None:
    shown = "می\u200cخواهم \U0001f469\u200d\U0001f4bb"
    answer = f"{shown} \u202ea\u200db\u200c\u200d\u200b"
    model = scripted("first", {"answer": answer})
    root = make_workspace(tmp_path / "desk", {"models/first.yaml": model})
    assert call(root, "run", "-m", "first", "--fail-on", "none") == 0
    with serving(root) as address:
        text = ask(address, str(ask(address, "label")[0].headers["Location"]))[1]
    assert f">{shown} \\u202ea\\u200db\\u200c\\u200d\\u200b</div>" in text


def test_a_name_has_no_spaces_around_it(labelled: tuple[Path, str]) -> None:
    root, address = labelled
    path = answer_of(address, "Go away.")
    sent = post(address, path, verdict="fail", by=" Space  Man\t", seen="")
    assert labels_in(root) == [("Space  Man", "fail", "")]
    for place in (sent.headers["Location"], f"{urlsplit(path).path}?by=+Space++Man+"):
        text = ask(address, place)[1]
        assert " has labelled 1 of 2 answers." in text
        assert '<input name="by" value="Space  Man"' in text
    for by in ("", " \t "):
        response, text = send(address, path, verdict="pass", by=by, note="Why?", seen="")
        assert response.status == 409
        assert "Nothing is stored: a label needs your name." in text
        assert ">Why?</textarea>" in text


def test_an_error_in_a_test_file_does_not_hide_that_the_label_is_stored(
    labelled: tuple[Path, str],
) -> None:
    root, address = labelled
    path = answer_of(address, "Go away.")
    judging = re.findall(r'name="judging" value="(\w+)"', ask(address, path)[1])[0]
    edit(root, "The answer", "{{unknown}}")
    before = ask(address, path)[1]
    sent = post(address, path, verdict="fail", by="Ada", seen="", judging=judging)
    assert labels_in(root) == [("Ada", "fail", "")]
    response, text = ask(address, str(sent.headers["Location"]))
    assert response.status == 409
    stored = "error: your label is stored, but its page cannot be shown: "
    assert text == before.replace("error: ", stored, 1)


@pytest.mark.parametrize("edited", ["hello", "twin"])
def test_answers_that_a_judge_has_judged_come_first(
    labelled: tuple[Path, str], edited: str
) -> None:
    root, address = labelled
    (root / "tests/twin.md").write_text(TEST.replace("Hello", "Bye"), encoding="utf-8")
    assert call(root, "run", "--fail-on", "none") == 0
    edit(root, "be kind", "be short", f"tests/{edited}.md")
    path, found = "label?by=Ada", list[str]()
    for _ in range(4):
        path = str(ask(address, path)[0].headers["Location"])
        found += re.findall(r"<h1[^>]*>tests/(.*)\.md</h1>", ask(address, path)[1])
        path = str(post(address, path, verdict="skip", by="Ada").headers["Location"])
    other = "twin" if edited == "hello" else "hello"
    assert found == [other, other, edited, edited]


@pytest.mark.parametrize("most", [500, 4])
def test_a_label_from_before_an_edit_of_the_instructions_is_said_not_to_count(
    labelled: tuple[Path, str], monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr("evalstore.interfaces.web.labelling.MOST_ANSWERS", most)
    root, address = labelled
    twin = (root / "tests/hello.md").read_text(encoding="utf-8").replace("be kind", "be long")
    (root / "tests/twin.md").write_text(twin, encoding="utf-8")
    for case in ("tests/hello.md", "tests/twin.md"):
        assert call(root, "label", case, "fail", "--all", "--as", "Ada", "-m", "Why?") == 0

    def former(only: str) -> list[str]:
        shown = ask(address, f"label?by=Ada&end=yes&only={only}")[1]
        listed = "".join(re.findall("(?s)[24] labels by .* that no longer count.*?</ul>", shown))
        items = (re.sub("<[^>]+>", " ", item) for item in listed.split("<li>")[1:])
        return sorted(" ".join(item.split()) for item in items)

    def counts(only: str) -> str:
        text = re.sub("<[^>]*>", "", ask(address, f"label?by=Ada&only={only}")[1])
        if not text.count("Ada has labelled"):
            path = str(ask(address, f"label?by=Ada&only={only}")[0].headers["Location"])
            text = re.sub("<[^>]*>", "", ask(address, path)[1])
        return "".join(re.findall("Ada has labelled .*", text))

    assert "no longer" not in counts("")
    edit(root, "be kind", "be short")
    told = "2 more labels by Ada no longer count."
    assert f"Ada has labelled 2 of 4 answers{' in a random sample' * (most == 4)}." in counts("")
    assert told in counts("")
    assert "Ada has labelled 0 of 2 answers of “hello”." in counts("hello")
    assert told in counts("hello")
    why = " (for other instructions or checks) answer"
    old = ask(address, "label?by=Ada&end=yes")[1].partition(" that no longer count")[2]
    again = html.unescape(re.findall(r'<a href="([^"]*/label/[^"]*)"', old)[0])
    assert "It no longer counts." in ask(address, again)[1]
    for listed in (former("hello"), former("")):
        assert sorted(each.partition(why)[2] for each in listed) == [
            *(" Go away. note Why?", " Good morning! note Why?"),
        ]
        codes = {re.findall(r" ([0-9a-f]{8}) \(", each)[0] for each in listed}
        assert len(codes) == 2  # else the two would look like one answer
    path = answer_of(address, "Go away.")
    shown = re.sub("<[^>]*>", "", ask(address, path)[1])
    assert "Your label for other instructions or checks was fail: “Why?”. It no" in shown
    assert former("") != []
    edit(root, "be short", "be kind")
    assert former("") == former("hello") == []
    for name in ("hello", "twin"):
        edit(root, "Hello", "Hi", f"tests/{name}.md")
    gone = "✗ fail (the answer was replaced or removed) answer Go away. note Why?"
    assert former("")[:2] == [gone, gone]
    assert "no longer" not in counts("hello")


def test_the_answers_are_gone_through_as_often_for_many_former_labels_as_for_few(
    labelled: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, _ = labelled
    twin = (root / "tests/hello.md").read_text(encoding="utf-8").replace("be kind", "be long")
    (root / "tests/twin.md").write_text(twin, encoding="utf-8")
    for case in ("tests/hello.md", "tests/twin.md"):
        assert call(root, "label", case, "fail", "--all", "--as", "Ada") == 0
    passes: list[int] = []

    class Counted(list[AskedAnswer]):
        def __iter__(self) -> Iterator[AskedAnswer]:
            passes[-1] += 1
            return super().__iter__()

    offered = LabelPages._offered
    monkeypatch.setattr(LabelPages, "_offered", lambda *which: Counted(offered(*which)))
    for edited, told in (("hello", b">2 labels by"), ("twin", b">4 labels by")):
        edit(root, "The answer must", "All answers must", f"tests/{edited}.md")
        passes.append(0)
        page = LabelPages(Location(root), "w", "").end("Ada", "")
        assert told in page
        assert page.count(b"2 cases" if edited == "twin" else b"other instructions") >= 2
    assert passes[0] == passes[1] > 0


def test_the_label_pages_follow_edits_and_runs_and_store_nothing_for_a_changed_case(
    labelled: tuple[Path, str],
) -> None:
    root, address = labelled
    path = answer_of(address, "Go away.")
    old = re.findall('name="judging" value="(\\w+)"', ask(address, path)[1])[0]
    edit(root, "must be kind", "must be short")
    form = {"by": "Ada", "seen": "", "judging": old}
    response, text = send(address, path, verdict="fail", note="Rude.", **form)
    assert (response.status, labels_in(root)) == (409, [])
    assert "the case or its answers have changed since this page was made" in text
    assert "The answer must be short." in text
    assert ">Rude.</textarea>" in text
    edit(root, "Hello", "Hi")
    response, text = send(address, path, verdict="fail", note="Rude.", **form)
    assert (response.status, labels_in(root)) == (404, [])
    hint = "hint: its case may have been changed, or lacks another answer\n"
    assert text.endswith(f"that can be labelled\n{hint}")
    response, text = send(address, path, accept="text/html", verdict="fail", note="Rude.", **form)
    assert (response.status, labels_in(root)) == (404, [])
    assert ">Nothing is stored.</h1>" in text
    assert ">Rude.</textarea>" in text
    assert ">Label the next answer</a>" in text
    assert "No answer can be labelled." in ask(address, "label?by=Ada")[1]
    call(root, "run", "--fail-on", "none")
    assert " has labelled 0 of 2 answers." in ask(address, answer_of(address, "Go away."))[1]


def test_people_who_disagree_are_told_what_counts_and_the_list_counts_it(
    labelled: tuple[Path, str],
) -> None:
    root, address = labelled
    assert call(root, "label", "tests/hello.md", "pass", "--model", "first", "--as", "Eve") == 0
    path = answer_of(address, "Good morning!")
    assert "says" not in re.sub("<script>.*", "", ask(address, path)[1], flags=re.DOTALL)
    post(address, path, verdict="fail", by="Ada")
    for place in (path, "label?by=Ada&end=yes"):
        text = " ".join(re.sub("<[^>]+>", "", ask(address, place)[1]).split())
        assert "Eve says pass, you say fail: ? undecided" in text
    rows = re.sub("<[^>]+>", " ", ask(address)[1].partition("</table>")[0])
    assert "1 now undecided" in " ".join(rows.split())
    assert "people&#39;s labels changed 1 result" in rows
    call(root, "run", "--fail-on", "none")
    run = newest(address)[-32:-24]
    work, _, runs = ask_until(run, address, "")[1].partition("/run/")
    assert "now undecided" not in work
    assert "1 now undecided" in re.sub("<[^>]+>", "", runs)
    assert "no longer" not in work
    edit(root, "Hello", "Hi")
    assert ask_until(" · 2 labels on 1 case no longer count: tests/hello.md", address, "")


def test_the_page_of_a_run_is_made_again_once_a_label_was_given(
    labelled: tuple[Path, str],
) -> None:
    _, address = labelled
    run = newest(address)
    before = ask(address, run)[1]
    assert "labels of 1 result were added, changed or removed" not in before
    assert ask(address, run)[1] == before
    post(address, answer_of(address, "Go away."), verdict="pass", note="Blunt.", by="Ada")
    after = ask(address, run)[1]
    assert "labels of 1 result changed after this run" in after
    assert ask(address, run)[1] == after, "the store is as it was"


def test_the_page_of_a_run_is_kept_while_the_store_changes_otherwise(
    labelled: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, address = labelled
    made: list[str] = []
    monkeypatch.setattr(BuiltPages, "_make", _noting(BuiltPages._make, made))
    run = newest(address)
    before = ask(address, run)[1]
    with open_store(Location(root)) as store:
        store.ensure_versions({}, {"0" * 32: FileVersion("text/plain", b"")})
    assert (ask(address, run)[1], len(made)) == (before, 1)
    assert call(root, "tag", "v1") == 0
    assert re.search(r"run [0-9a-f]{8} \(v1\)", ask(address, run)[1])
    edit(root, "Hello", "Hi")
    assert call(root, "run", "--fail-on", "none") == 0
    assert newest(address) in ask(address, run)[1]
    assert len(made) == 3


def _noting(write: Callable[[BuiltPages, str], BuiltPage], made: list[str]) -> object:
    def noted(pages: BuiltPages, run: str) -> BuiltPage:
        made.append(run)
        return write(pages, run)

    return noted


def test_attempts_are_labelled_and_counted_apart(tmp_path: Path) -> None:
    test = TEST.replace("tags:", "attempts: 2\ntags:")
    root = make_workspace(tmp_path / "desk", {"tests/hello.md": test})
    assert call(root, "run", "-m", "first", "--fail-on", "none") == 0
    numbers, path = set(), "label?by=Ada"
    with serving(root) as address:
        for labelled in (0, 1):
            place = str(ask(address, path)[0].headers["Location"])
            text = ask(address, place)[1]
            assert f" has labelled {labelled} of 2 answers." in text
            numbers |= set(re.findall(r">Answer (. of 2)<", text))
            post(address, place, verdict="pass", by="Ada")
        end = ask(address, path)[1]
    assert numbers == {"1 of 2", "2 of 2"}
    assert "You have labelled all 2 answers." in end
    assert "evalstore" not in re.sub(r"(?s)<footer>.*", "", end)


def test_an_answer_can_be_skipped_and_all_can_be_labelled(labelled: tuple[Path, str]) -> None:
    root, address = labelled
    first = str(ask(address, "label?by=Ada")[0].headers["Location"])
    sent = post(address, first, verdict="skip", by="Ada")
    second = str(ask(address, str(sent.headers["Location"]))[0].headers["Location"])
    assert second != first
    assert ">1 skipped answer</a>" in ask(address, second)[1]
    sent = post(address, second, verdict="skip", by="")  # before the name is typed
    sent = post(address, second, verdict="skip", by="Ada")
    end = ask(address, str(sent.headers["Location"]))[1]
    assert ">You have labelled 0 of 2 answers.</h1>" in end
    assert "Label the remaining 2 answers." in end
    assert ask(address, "label?by=Ada&end=yes")[1] == end
    listed = end.partition('<summary id="skipped">2 skipped answers</summary>')[2]
    links = re.findall(r'<li><a href="([^"]+)"', listed.partition("</ul>")[0])
    assert [urlsplit(html.unescape(link)).path for link in links] == [
        urlsplit(path).path for path in (first, second)
    ]
    link = html.unescape(
        re.findall(r'href="([^"]+)">2 skipped answers</a>', ask(address, first)[1])[0]
    )
    assert 'id="skipped"' in ask(address, link)[1]
    assert ">1 skipped answer</a>" in ask(address, first.replace("Ada", "Eve"))[1]
    assert "label?by=Ada&amp;only=&amp;end=yes" in ask(address, first)[1]
    assert labels_in(root) == []
    for path in (first, second):
        post(address, path, verdict="fail", by="Ada")
    response, text = ask(address, "label?by=Ada")
    assert (response.status, "You have labelled all 2 answers." in text) == (200, True)
    assert "skipped" not in text


def test_the_answers_to_label_are_limited_by_words_of_file_prompt_tag_and_candidate(
    tmp_path: Path,
) -> None:
    files = {f"prompts/{name}.md": f"---\nid: {name}\n---\n\nBe {name}.\n" for name in "ab"}
    test = TEST.replace("tags:", "systemPrompts: [a, b]\ntags:")
    root = make_workspace(tmp_path / "desk", {**files, "tests/hello.md": test})
    assert call(root, "run", "--fail-on", "none") == 0
    with serving(root) as address:
        titles = set()
        path = "label?by=Ada&only=SECOND+greet+hello"
        for _ in range(2):
            path = str(ask(address, path)[0].headers["Location"])
            text = ask(address, path)[1]
            assert " has labelled 0 of 2 answers of “SECOND greet hello”" in text
            assert "Go away." in text
            titles.add(re.findall(r"<h1[^>]*>(.*)</h1>", text)[0])
            sent = post(address, path, verdict="skip", by="Ada", only="SECOND greet hello")
            path = str(sent.headers["Location"])
        assert titles == {"tests/hello.md (a)", "tests/hello.md (b)"}
        assert (
            ">You have labelled 0 of 2 answers of “SECOND greet hello”.<" in ask(address, path)[1]
        )
        assert (
            "No answer that can be labelled has all of these words."
            in ask(address, "label?only=second+x")[1]
        )
        path = str(ask(address, "label?by=Ada&only=second+(b)")[0].headers["Location"])
        text = ask(address, path)[1]
        assert "tests/hello.md (b)</h1>" in text
        assert " has labelled 0 of 1 answer of “second (b)”" in text
        post(address, path, verdict="fail", by="Ada", note="So CURT!")
        for person, count in (("Ada", 1), ("Eve", 0)):
            shown = ask(address, f"label?by={person}&only=second+curt&end=yes")[1]
            assert shown.count('<dd dir="auto">So CURT!</dd>') == count, "notes of oneself"


def test_the_prompt_by_which_a_judge_decides_is_shown(tmp_path: Path) -> None:
    tone = (
        "---\nid: tone\ntags: [_evaluator]\n---\n\nIs it <kind>?\n{{_evaluationInstructions}}\n\n"
        "# 👤\n\n{{_actualResponse}}\n"
    )
    test = "# 👤\n\nHello\n\n---\n\n~~~checks\n- judge: tone\n~~~\n"
    root = make_workspace(tmp_path / "desk", {"prompts/tone.md": tone, "tests/hello.md": test})
    assert call(root, "run", "-m", "first", "--fail-on", "none") == 0
    with serving(root) as address:
        text = ask(address, str(ask(address, "label?by=Ada")[0].headers["Location"]))[1]
    assert "What the judge is asked: prompt" in text
    assert re.search("tone</span>.*Is it &lt;kind&gt;[?]", text)
    assert "\n\n[the instructions]" in text
    assert "[the answer]" in text
    assert "{{" not in text


def test_the_pages_of_labels_say_how_verdicts_of_several_judges_make_one(tmp_path: Path) -> None:
    strict = scripted("strict", {"answer": {"pass": False}})
    settings = "candidates: [first]\nevaluators: [judge, strict]\nverdict: any\n"
    files = {"models/strict.yaml": strict, "evalstore.yaml": settings}
    root = make_workspace(tmp_path / "desk", files)
    assert call(root, "run") == 0
    told = "An answer passes if one of the judges passes it."
    with serving(root) as address:
        path = answer_of(address, "Good morning!")
        assert told not in ask(address, path)[1]  # no verdict is shown yet
        post(address, path, verdict="pass", by="Ada")
        for place in (path, "label?by=Ada&end=yes"):
            assert told in ask(address, place)[1]


def test_the_end_names_the_filter_and_says_how_often_judges_agree(
    labelled: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    root, address = labelled
    for text, agreed in (("Go away.", "0.0% of 1"), ("Good morning!", "50.0% of 2")):
        path = answer_of(address, text)
        post(address, path, verdict="pass", by="Ada")
        cells = f'<td class="number">0.0% of 1</td><td class="number">{agreed}</td>'
        shown = re.sub(' data-name="[^"]*"', "", ask(address, "label?by=Ada&only=second")[1])
        assert f'<th scope="row" dir="auto">judge</th>{cells}' in shown
    end = re.sub(' data-name="[^"]*"', "", ask(address, "label?by=Ada&only=HELLO")[1])
    assert "You have labelled all 2 answers of “HELLO”.</h1>" in end
    assert ">Label other answers</a>" in end
    figures = ("50.0% of 2", "50.0% of 2", "-", "1 of 2 (50%)")
    assert "".join(f'<td class="number">{text}</td>' for text in figures) in end
    assert "People are all who gave labels, also outside of this filter" in end
    assert "of the judges decides" not in end  # there is one
    assert "After an edit of a file, load it again." in end
    assert "<p>Labels that differ from the verdicts of checks and judges: 1 of 2.</p>" in end
    (listed,) = re.findall("(?s)2 answers labelled by .*?</ul>", end)
    links = [html.unescape(link) for link in re.findall('href="([^"]*)"', listed)]
    ids = [urlsplit(link).path.rpartition("/")[2][:8] for link in links]
    assert listed.count('<li><span class="verdict verdict-pass"') == len(links) == 2
    words = " ".join(re.sub("<[^>]+>", "", listed.partition("</summary>")[2]).split())
    assert words == (
        f"✓ pass tests/hello.md {ids[0]} but judged ✗ fail (fail by judge)answerGo away."
        f"✓ pass tests/hello.md {ids[1]} judged ✓ pass (pass by judge)answerGood morning!"
    ), "differences first"
    assert all("Your label</h2>" in ask(address, link)[1] for link in links)
    assert (
        "You have labelled the only answer of “second”."
        in ask(address, "label?by=Ada&only=second")[1]
    )
    capsys.readouterr()
    assert call(root, "stats", "--by", "judge") == 0
    assert "50.0% of 2" in capsys.readouterr().out


def test_on_a_phone_the_answer_and_what_comes_next_are_on_the_first_screen(
    tmp_path: Path, page: Page
) -> None:
    root = make_workspace(tmp_path / "desk", {"tests/hello.md": LONG})
    assert call(root, "run", "-m", "first", "--fail-on", "none") == 0
    page.call(
        "Emulation.setDeviceMetricsOverride",
        width=390, height=844, deviceScaleFactor=1, mobile=True,
    )  # fmt: skip
    page.call("Emulation.setEmulatedMedia", features=[{"name": "hover", "value": "none"}])
    seen = (
        "(part => { const {left, bottom} = part.getBoundingClientRect();"
        " return part.contains(document.elementFromPoint(left + 9, bottom - 2)); })"
    )
    try:
        with serving(root) as address:
            page.go(f"{address}label?by=Ada")
            assert page.value(f"{seen}(document.querySelector('#answer + .turn'))")
            fits = "part => { part.value = part.placeholder; return part.scrollWidth - "
            fits += "part.clientWidth; }"
            assert page.value(f"({fits})(document.querySelector('#only [type=search]'))") <= 0
            page.value("document.getElementById('pass').click()")
            page.wait("!!document.getElementById('next')")
            page.wait("document.documentElement.dataset.ready === 'yes'")
            assert page.value(f"{seen}(document.getElementById('next'))")
            assert page.value(f"{seen}(document.querySelector('#give .verdict-pass'))")
    finally:
        page.call("Emulation.clearDeviceMetricsOverride")
        page.call("Emulation.setEmulatedMedia", features=[])


def test_only_a_page_of_the_server_can_give_a_label(labelled: tuple[Path, str]) -> None:
    root, address = labelled
    path = answer_of(address, "Go away.")
    for origin in ("", "null", "http://evil.example", "http://127.0.0.1:1"):
        assert post(address, path, origin, verdict="pass", by="Ada").status == 403
    outside = path.replace(urlsplit(address).path, "/guess/")
    assert post(address, outside, verdict="pass", by="Ada").status == 404
    assert ask(address, path, {"Origin": "http://evil.example"})[0].status == 403
    for verdict, by in (("perhaps", "Ada"), ("", "Ada"), ("pass", " "), ("pass", "A" * 300)):
        assert post(address, path, verdict=verdict, by=by).status == 409
    assert post(address, f"{urlsplit(address).path}label/ffffffff", verdict="pass").status == 404
    assert labels_in(root) == []


def test_a_person_labels_with_the_keyboard(labelled: tuple[Path, str], page: Page) -> None:
    root, address = labelled
    page.go(f"{address}label?by=Ada")
    for number, key in enumerate("fp", 1):
        page.press(key)
        page.wait("document.body.innerText.includes('Verdicts\\n')")
        page.wait("document.documentElement.dataset.ready === 'yes'")
        page.press("p" if key == "f" else "f")  # is decided: only a click changes it
        assert len(labels_in(root)) == number
        assert f" has labelled {number} of 2 answers" in page.value("document.body.innerText")
        page.press("Enter", 13)
        page.wait("!document.body.innerText.includes('Verdicts\\n')")
        page.wait("document.documentElement.dataset.ready === 'yes'")
    assert [verdict for _, verdict, _ in labels_in(root)] == ["fail", "pass"]
    assert page.value("document.querySelector('h1').innerText").startswith(
        "You have labelled all 2 answers"
    )


def test_a_note_after_the_decision_is_stored_when_the_next_answer_is_shown(
    labelled: tuple[Path, str], page: Page
) -> None:
    root, address = labelled
    page.go(f"{address}label?by=Ada")
    session = page.value("location.pathname")
    page.press("f")
    page.wait("!!document.getElementById('next')")
    page.wait("document.documentElement.dataset.ready === 'yes'")
    page.press("n")
    leaves = "dispatchEvent(new Event('beforeunload', {cancelable: true}))"
    assert page.value(leaves)
    page.call("Input.insertText", text="Too short.")
    assert not page.value(leaves), "a note that is not stored holds the page"
    page.press("Escape", 27)
    page.press("Enter", 13)
    page.wait("!!document.getElementById('pass')")
    assert [note for _, _, note in labels_in(root)] == ["", "Too short."]
    page.wait("document.documentElement.dataset.ready === 'yes'")
    page.value("history.back()")
    page.wait(f"location.pathname === '{session}' && !!document.getElementById('yours')")
    page.wait("document.getElementById('note')?.value === 'Too short.'")


def test_a_double_click_decides_once(labelled: tuple[Path, str], page: Page) -> None:
    root, address = labelled
    page.go(f"{address}label?by=Ada")

    def place_of(id: str) -> tuple[float, float]:
        place = f"document.getElementById('{id}').getBoundingClientRect()"
        x, y = page.value(f"[{place}.right - 9, {place}.top + 9]")
        return x, y

    def click(place: tuple[float, float], count: int = 1) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            at = {"x": place[0], "y": place[1], "button": "left", "clickCount": count}
            page.call("Input.dispatchMouseEvent", type=kind, **at)

    session = page.value("location.pathname")
    click(place := place_of("pass"))  # the first click, on a page that has just arrived
    page.wait("!!document.getElementById('next')")
    click(place, 2)
    assert page.value("location.pathname") == session
    assert [verdict for _, verdict, _ in labels_in(root)] == ["pass"]
    assert place_of("next") != place
    click(place := place_of("next"))
    page.wait("!!document.getElementById('pass')")  # the other button takes a click at once
    click(place, 2)
    click(place, 3)
    assert page.value("location.pathname") != session
    assert [verdict for _, verdict, _ in labels_in(root)] == ["pass"]
    page.value("performance.now = () => 1e9")  # later, a click at that place is a new one
    click(place)
    click(place_of("pass"))
    page.wait("!!document.getElementById('next')")
    assert [verdict for _, verdict, _ in labels_in(root)] == ["pass", "pass"]


def test_what_no_page_sends_is_refused_with_the_reason(labelled: tuple[Path, str]) -> None:
    root, address = labelled
    path = answer_of(address, "Go away.")
    form = {"verdict": "fail", "seen": ""}
    response, text = send(address, path, by="A" * 201, note="Rude.", **form)
    assert response.status == 409
    assert "Nothing is stored: your name has 201 characters, and may have 200." in text
    assert f'value="{"A" * 201}"' in text
    assert ">Rude.</textarea>" in text
    kinds = "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"
    part = '--x\r\nContent-Disposition: form-data; name="note"'
    file = f'{part}; filename="a.txt"\r\n\r\nNo.\r\n--x--\r\n'
    for kind, body in (
        (kinds[0], file),
        (kinds[0], f"{part}\r\nbroken"),
        (kinds[1], b"note=\xff"),
        (f"{kinds[1]}; charset=none", b"note=No."),
    ):
        with closing(HTTPConnection(urlsplit(address).netloc, timeout=60)) as connection:
            headers = {"Content-Type": kind, "Origin": f"http://{urlsplit(address).netloc}"}
            connection.request("POST", path, body, headers)
            response = connection.getresponse()
            reasons = (
                "a label is sent by the form of its page",
                "the form was not sent as UTF-8",
            )
            text = f"error: nothing is stored: {reasons[kind != kinds[0]]}\n"
            assert (response.status, response.read().decode()) == (409, text)
    assert labels_in(root) == []


def test_a_note_survives_a_restart_and_is_not_sent_to_a_server_that_is_gone(
    tmp_path: Path, page: Page
) -> None:
    root = make_workspace(tmp_path / "desk", {})
    assert call(root, "run", "-m", "first", "--fail-on", "none") == 0
    lost = "document.getElementById('lost').checkVisibility()"
    note = "document.getElementById('note')?.value"
    unsent = "document.getElementById('draft').checkVisibility()"
    with serving(root) as address:
        page.go(f"{address}label?by=Ada")
        page.press("n")
        page.call("Input.insertText", text="a")
        assert page.value("localStorage.length") == 1
        page.press("Backspace", 8)
        assert page.value("localStorage.length") == 0, "no note was changed"
        page.call("Input.insertText", text="Too <short>.")
        page.press("Escape", 27)
        old = page.value("location.href")
    page.press("f")
    page.wait(lost)
    assert page.value(note) == "Too <short>."
    with serving(root, urlsplit(old).port or 0) as address:
        page.value("document.getElementById('lost').hidden = true")
        page.press("f")
        page.wait(lost)
        assert page.value(note) == "Too <short>."
        assert labels_in(root) == []
        page.value("onbeforeunload = null; document.getElementById('note').value = ''")
        page.value("sessionStorage.clear()")  # as in another tab
        page.go(f"{address}label?by=Eve")
        assert page.value(note) == "", "a note is of one person"
        assert not page.value(unsent)
        page.go(f"{address}label?by=Ada")
        assert page.value(note) == "Too <short>."
        assert page.value(unsent)
        page.press("f")
        page.wait("!!document.getElementById('next')")
        assert labels_in(root) == [("Ada", "fail", "Too <short>.")]
        page.wait("document.documentElement.dataset.ready === 'yes'")
        assert page.value("localStorage.length") == 0
        page.press("n")
        page.call("Input.insertText", text=" Why?")
        page.value(
            "{const note = document.getElementById('note'); note.value = note.dataset.stored}"
        )
        id = page.value("location.pathname").rpartition("/")[2]
        assert call(root, "label", id, "fail", "-m", "Other.", "--as", "Ada") == 0
        page.go(f"{address}label/{id}?by=Ada")
        assert page.value(note) == "Other.\nToo <short>. Why?", "neither is lost"


def test_an_address_of_an_earlier_server_shows_the_note_and_nothing_of_the_workspace(
    labelled: tuple[Path, str],
) -> None:
    root, address = labelled
    token = urlsplit(address).path.strip("/")
    old = answer_of(address, "Go away.").replace(token, "x" * len(token))
    form = {"by": "Ada", "verdict": "fail", "seen": "", "judging": "", "note": "Too <short>."}
    response, text = send(address, old, accept="text/html", **form)
    assert (response.status, labels_in(root)) == (404, [])
    shown = re.sub("(?s)<style>.*</style>", "", text)
    assert ">Nothing is stored.</h1>" in shown
    assert "has a new address each time it is started" in html.unescape(shown)
    assert ">Too &lt;short&gt;.</textarea>" in shown
    for text in (shown, ask(address, old, PERSON)[1], ask(address, "/", PERSON)[1]):
        assert "has a new address each time it is started" in html.unescape(text)
        assert token not in text
        assert root.name not in text
    foreign = send(address, old, "http://evil.example", accept="text/html", **form)
    assert foreign[0].status == 403
    assert "short" not in foreign[1].partition("</style>")[2]


def test_the_page_of_a_label_takes_no_other_name_and_that_of_a_missing_answer_names_the_next(
    labelled: tuple[Path, str],
) -> None:
    root, address = labelled
    path = answer_of(address, "Go away.")
    post(address, path, verdict="fail", by="Ada", note="Rude.")
    text = ask(address, path)[1]
    assert re.search('name="by" value="Ada"[^>]* readonly>', text)
    seen = re.findall(r'name="seen" value="(\w+)"', text)[0]
    for verdict in ("pass", "next"):
        response, text = send(address, path, by="Bob", verdict=verdict, note="Rude.", seen=seen)
        assert response.status == 409
        assert "the label of another person" in text
    assert labels_in(root) == [("Ada", "fail", "Rude.")]
    missing = path.replace(urlsplit(path).path.rpartition("/")[2], "0" * 64)
    text = ask(address, missing, headers={"Accept": "text/html"})[1]
    link = html.unescape(re.findall('<a href="([^"]*)">Label the next answer', text)[0])
    assert ask(address, link)[0].status == 302


@pytest.mark.parametrize(("width", "height"), [(1280, 500), (390, 500)])
def test_on_a_low_window_the_buttons_and_the_verdicts_are_seen(
    tmp_path: Path, page: Page, width: int, height: int
) -> None:
    root = make_workspace(tmp_path / "desk", {"tests/hello.md": LONG})
    assert call(root, "run", "-m", "first", "--fail-on", "none") == 0
    size = {"width": width, "height": height}
    page.call("Emulation.setDeviceMetricsOverride", **size, deviceScaleFactor=1, mobile=False)
    seen = (
        "(part => { const {left, bottom} = part.getBoundingClientRect();"
        " return part.contains(document.elementFromPoint(left + 9, bottom - 2)); })"
    )
    try:
        with serving(root) as address:
            page.go(f"{address}label?by=Ada")
            for button in ("pass", "fail", "skip"):
                assert page.value(f"{seen}(document.getElementById('{button}'))")
            page.press("p")
            page.wait("!!document.getElementById('next')")
            page.wait("document.documentElement.dataset.ready === 'yes'")
            for part in ("#next", "#change", ".votes li:last-child"):
                assert page.value(f"{seen}(document.querySelector('{part}'))")
            page.press("c")
            key = {"key": "Enter", "windowsVirtualKeyCode": 13}
            page.call("Input.dispatchKeyEvent", type="keyDown", text="\r", **key)
            page.wait("!!document.querySelector('#give .verdict-fail')")
    finally:
        page.call("Emulation.clearDeviceMetricsOverride")


def test_a_label_is_changed_and_removed_by_its_own_parts(
    labelled: tuple[Path, str], page: Page
) -> None:
    root, address = labelled
    page.go(f"{address}label?by=Ada")
    page.press("f")
    for part in ("#give details button", "#remove button"):
        page.wait("!!document.getElementById('next')")
        page.wait("document.documentElement.dataset.ready === 'yes'")
        assert not page.value(f"document.querySelector('{part}').checkVisibility()")
        page.value("document.querySelectorAll('details').forEach(part => { part.open = true })")
        if "remove" in part:
            page.value(f"document.querySelector('{part}').click()")
            assert not page.value("document.querySelector('#remove').reportValidity()")
            page.value("document.querySelector('#remove [name=confirmed]').click()")
        page.value(
            f"delete document.documentElement.dataset.ready;"
            f" document.querySelector('{part}').click()"
        )
    page.wait("!!document.getElementById('pass')")
    assert [verdict for _, verdict, _ in labels_in(root)] == ["fail", "pass", "none"]


def test_pages_of_other_answers_name_a_note_that_is_not_stored(
    labelled: tuple[Path, str], page: Page
) -> None:
    _, address = labelled
    page.go(urljoin(address, answer_of(address, "Go away.")))
    by = page.value("document.getElementById('give').elements.by.value")
    page.press("n")
    page.call("Input.insertText", text="Why?")
    page.value("{const note = document.getElementById('note'); note.value = note.dataset.stored}")
    gone = json.dumps(["note", by, f"/label/{'0' * 64}?case=x"])
    page.value(f"localStorage.setItem({json.dumps(gone)}, '[]')")
    session = page.value("location.pathname")
    other = "document.getElementById('other')"
    assert not page.value(f"{other}.checkVisibility()")
    for place in (answer_of(address, "Good morning!"), f"{address}label?by={by}&end=yes"):
        page.go(urljoin(address, place))
        page.wait(f"{other}.checkVisibility()")
        assert page.value(f"{other}.firstChild.pathname") == session
    page.go(f"{address}label?by=Eve&end=yes")
    assert not page.value(f"{other}.checkVisibility()")
    page.go(urljoin(address, session) + f"?by={by}")
    page.wait("document.getElementById('note')?.value === 'Why?'")


def test_a_note_without_a_label_holds_the_page(labelled: tuple[Path, str], page: Page) -> None:
    _, address = labelled
    page.go(f"{address}label?by=Ada")
    page.press("n")
    page.call("Input.insertText", text="Why?")
    page.press("Escape", 27)
    page.press("s")
    page.wait("document.body.innerText.includes('The note is not stored')")
    page.wait("document.documentElement.dataset.ready === 'yes'")
    leaves = "dispatchEvent(new Event('beforeunload', {cancelable: true}))"
    assert page.value("document.getElementById('note').value") == "Why?"
    assert not page.value(leaves)
    page.press("f")
    page.wait("!!document.getElementById('next')")
    page.wait("document.documentElement.dataset.ready === 'yes'")
    assert page.value(leaves)


def test_the_name_is_kept_by_the_links_the_filter_and_other_pages(
    labelled: tuple[Path, str], page: Page
) -> None:
    root, address = labelled
    args = ["--model", "first", "--as", "Ada & Eve"]
    assert call(root, "label", "tests/hello.md", "fail", *args) == 0
    page.go(f"{address}label")
    page.press("s")
    page.wait("document.body.innerText.includes('Previous answer')")
    page.wait("document.documentElement.dataset.ready === 'yes'")
    previous = page.value(
        "{const by = document.querySelector('#give [name=by]'); by.value = ' Ada & Eve ';"
        " by.dispatchEvent(new Event('change'));"
        " [...document.links].find(link => link.innerText === 'Previous answer').search}"
    )
    assert dict(parse_qsl(previous[1:]))["by"] == "Ada & Eve"
    page.wait("document.body.innerText.includes('Ada & Eve has labelled 1 of 2 answers')")
    page.wait("document.documentElement.dataset.ready === 'yes'")
    page.value("document.querySelector('#only [name=only]').value = 'hello'")
    page.value("document.getElementById('only').submit()")
    page.wait("location.search.includes('only=hello')")
    name = "document.querySelector('#give [name=by]')?.value"
    page.wait(f"{name} === 'Ada & Eve'")
    page.value("document.querySelector('.where a').click()")
    page.wait("!!document.getElementById('runs')")
    page.value("sessionStorage.clear()")
    page.value(f"location.href = '{address}label'")
    page.wait("document.body.innerText.includes('Ada & Eve has labelled 1 of 2 answers')")
    page.value(f"location.href = '{address}work#case-1'")
    label = "[...document.querySelectorAll('#case a')].find(link => link.innerText === 'Label')"
    page.wait(f"!!{label}")
    page.value(f"{label}.click()")
    page.wait(f"{name} === 'Ada & Eve'")
    with serving(root) as other:
        page.go(f"{other}label")
        page.wait(f"{name} === 'Ada & Eve'")
    assert page.value("document.getElementById('pass')?.innerText") in ("Pass (p)", None)
    assert "(" in page.value("document.querySelector('#give .buttons').innerText")


def test_what_is_typed_into_the_note_after_a_new_name_is_no_key(
    labelled: tuple[Path, str], page: Page
) -> None:
    root, address = labelled
    page.call("Network.clearBrowserCookies")
    page.go(f"{address}label")
    page.wait("document.documentElement.dataset.ready === 'yes'")
    page.value("document.querySelector('#give [name=by]').focus()")
    page.call("Input.insertText", text="Uma")
    page.value("document.getElementById('note').focus()")
    page.value("setTimeout(() => window.later = true)")
    page.wait("window.later && document.activeElement.id === 'note'")
    page.call("Input.insertText", text="It is wrong.")
    page.press("f")
    page.press("Escape", 27)
    page.wait("!window.later && document.documentElement.dataset.ready === 'yes'")
    assert page.value("document.getElementById('note').value") == "It is wrong."
    assert "Uma has labelled 0 of 2" in page.value("document.body.innerText")
    page.value("{const note = document.getElementById('note'); note.value = note.dataset.stored}")
    assert labels_in(root) == []


def test_no_name_is_chosen_for_a_person_and_their_labels_are_shown_as_soon_as_given(
    labelled: tuple[Path, str], page: Page
) -> None:
    root, address = labelled
    page.call("Network.clearBrowserCookies")
    page.go(f"{address}label")
    page.wait("document.documentElement.dataset.ready === 'yes'")
    assert page.value("document.querySelector('#give [name=by]').value") == ""
    page.press("s")
    page.wait("document.body.innerText.includes('Previous answer')")
    assert labels_in(root) == []
    page.go(f"{address}label?by=Ada&end=yes")
    page.wait("document.documentElement.dataset.ready === 'yes'")
    page.wait("document.body.innerText.includes('You have labelled 0 of 2 answers.')")
    assert call(root, "label", "tests/hello.md", "fail", "--all", "--as", "Ada") == 0
    page.wait("document.body.innerText.includes('You have labelled all 2 answers.')")


def test_a_key_that_needs_a_name_first_is_not_typed_into_it(
    labelled: tuple[Path, str], page: Page
) -> None:
    root, address = labelled
    page.go(f"{address}label")
    page.wait("document.documentElement.dataset.ready === 'yes'")
    page.value("document.querySelector('[name=by][required]').value = ''")
    page.call("Input.dispatchKeyEvent", type="keyDown", key="p", text="p")
    page.wait("document.activeElement.name === 'by'")
    assert page.value("document.querySelector('[name=by][required]').value") == ""
    assert labels_in(root) == []


@pytest.mark.parametrize("has_scripts", [True, False])
def test_enter_in_a_field_decides_nothing(
    labelled: tuple[Path, str], page: Page, has_scripts: bool
) -> None:
    root, address = labelled
    page.call("Emulation.setScriptExecutionDisabled", value=not has_scripts)
    try:
        page.call("Page.navigate", url=f"{address}label?by=Ada")
        page.wait("document.readyState === 'complete' && !!document.getElementById('pass')")
        page.value("addEventListener('submit', () => { window.sent = true }, true)")
        buttons = "[...document.getElementById('give').elements].filter(e => e.type === 'submit')"
        assert page.value(f"{buttons}[0].disabled"), (
            "Enter presses the first one, also without scripts"
        )
        for field in ("[name=by][required]", "#skip"):  # a button shows that keys are pressed
            page.value(f"document.querySelector('{field}').focus()")
            session = page.value("location.pathname")
            key = {"key": "Enter", "windowsVirtualKeyCode": 13}
            page.call("Input.dispatchKeyEvent", type="keyDown", text="\r", **key)
            page.call("Input.dispatchKeyEvent", type="keyUp", **key)
            if field == "#skip":
                page.wait(f"location.pathname !== '{session}'")
            else:
                assert not page.value("window.sent"), "the event comes before the key is handled"
    finally:
        page.call("Emulation.setScriptExecutionDisabled", value=False)
    assert labels_in(root) == []


def test_all_answers_that_are_judged_together_and_their_files_are_shown(tmp_path: Path) -> None:
    test = (
        "# \N{BUST IN SILHOUETTE}\n\n{{_file:files/terms.txt}}\n\nHello\n\n---\n\n"
        "~~~checks\n- {allEqual: , scope: group}\n~~~\n"
    )
    together = test.replace("# ", "---\nrepetitions: 3\n---\n\n# ", 1)
    files = {"tests/hello.md": together, "tests/files/terms.txt": "Thirty <days>.\n"}
    root = make_workspace(tmp_path / "desk", files)
    assert call(root, "run", "--fail-on", "none") == 0
    with serving(root) as address:
        text = ask(address, str(ask(address, "label?by=Ada")[0].headers["Location"]))[1]
    assert "These 3 answers are judged together: one label is for all of them." in text
    roles = re.findall('turn-assistant"><p class="role">(.*?)</p>', text)
    assert roles == ["answer"] * 3
    assert re.findall("<h3>(.*?)</h3>", text) == [f"Conversation {number}" for number in (1, 2, 3)]
    assert "Passes if all answers are equal:" in text
    assert " has labelled 0 of 2 answers." in text
    assert "Thirty &lt;days&gt;." in text


def test_of_cases_that_share_an_answer_the_one_that_was_shown_is_labelled(tmp_path: Path) -> None:
    twin = TEST.replace("must be kind", "must not be kind")
    root = make_workspace(tmp_path / "desk", {"tests/twin.md": twin})
    assert call(root, "run", "-m", "first", "--fail-on", "none") == 0
    with serving(root) as address:
        paths = [
            str(ask(address, f"label?by=Ada&only={only}")[0].headers["Location"])
            for only in ("", "twin")
        ]
        assert len({urlsplit(path).path for path in paths}) == 1
        pages = [ask(address, path)[1] for path in paths]
        assert " has labelled 0 of 2 answers." in pages[0]
        told = [re.findall("The answer must[^<]*", page)[0] for page in pages]
        assert told == ["The answer must be kind.", "The answer must not be kind."]
        judging = [re.findall(r'name="judging" value="(\w+)"', page)[0] for page in pages]
        form = {"by": "Ada", "verdict": "fail", "seen": ""}
        assert post(address, paths[1], judging=judging[0], **form).status == 409
        assert labels_in(root) == []
        assert unquote(after(address, paths[0])) == unquote(paths[1].replace("only=twin", "only="))
        edit(root, "must be kind", "must be short")
        sent = post(address, paths[1], judging=judging[1], **form)
        assert "twin.md" in ask(address, str(sent.headers["Location"]))[1]
    with open_store(Location(root)) as store:
        (label,) = store.find_labels()
    assert f"{label.evaluation}_{label.sessions[0]}" == judging[1]


def test_the_page_of_a_case_links_to_the_label_page_of_that_case(
    tmp_path: Path, page: Page
) -> None:
    twin = TEST.replace("must be kind", "must not be kind")
    root = make_workspace(tmp_path / "desk", {"tests/a twin.md": twin})
    assert call(root, "run", "-m", "first", "--fail-on", "none") == 0
    with serving(root) as address:
        for case, told in (("hello", "must be kind"), ("a%20twin", "must not be kind")):
            page.go(f"{address}case/tests/{case}.md")
            page.wait("document.getElementById('case').open")
            link = page.value("document.querySelector('#case .answer a').href")
            assert told in ask(address, urlsplit(link)._replace(scheme="", netloc="").geturl())[1]


def test_answers_judged_together_that_were_not_shown_get_no_label(tmp_path: Path) -> None:
    """Labels on another number of answers do not count, and are neither shown nor listed."""
    group = (
        "---\nrepetitions: 3\n---\n\n# \N{BUST IN SILHOUETTE}\n\nHello\n\n---\n\n"
        "~~~checks\n- {allEqual: , scope: group}\n~~~\n"
    )
    root = make_workspace(tmp_path / "desk", {"tests/hello.md": group})
    assert call(root, "run", "-m", "first", "--fail-on", "none") == 0
    with serving(root) as address:
        path = str(ask(address, "label?by=Ada&only=first")[0].headers["Location"])
        judging = re.findall(r'name="judging" value="(\w+)"', ask(address, path)[1])[0]
        form = {"verdict": "fail", "seen": ""}
        edit(root, "repetitions: 3", "repetitions: 2")
        assert post(address, path, by="Ada", judging=judging, **form).status == 409
        assert labels_in(root) == []
        assert post(address, path, by="Ada", **form).status == 303
        edit(root, "repetitions: 2", "repetitions: 3")
        assert post(address, path, by="Bob", verdict="pass", seen="").status == 303
        text = ask(address, path)[1]
        assert ">Your label<" not in text
        assert " has labelled 0 of 1 answer of “first”." in text
        decided = ask(address, path.replace("Ada", "Bob"))[1]
        assert "says fail" not in decided
        (listed,) = list_things(Location(root), "labels", SelectionOptions()).rows
        assert listed["by"] == "Bob"
        edit(root, "repetitions: 3", "repetitions: 4")
        assert ask(address, path)[0].status == 404, "an answer is missing"


CONVERSATIONS = "# ▶ one\n\n# 👤\n\nHello\n\n# ▶ two\n\n# 👤\n\nBye\n\n---\n\nAre both kind?\n"


def test_attempts_that_are_complete_are_labelled_while_others_lack_answers(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "desk", {"tests/hello.md": CONVERSATIONS})
    assert call(root, "run", "-m", "first", "--fail-on", "none") == 0
    edit(root, "# ▶ one", "---\nattempts: 2\n---\n\n# ▶ one")
    with serving(root) as address:
        path = str(ask(address, "label?by=Ada&only=first")[0].headers["Location"])
        text = ask(address, path)[1]
        assert "These 2 answers are judged together" in text
        assert " has labelled 0 of 1 answer of “first”." in text
        assert post(address, path, by="Ada", verdict="fail").status == 303
        assert "Your label</h2>" in ask(address, path)[1]
        end = ask(address, "label?by=Ada&only=first")[1]
        assert "You have labelled the only answer of “first”." in end
    (listed,) = list_things(Location(root), "labels", SelectionOptions()).rows
    assert (listed["by"], listed["label"]) == ("Ada", "fail")


def test_answers_that_wait_for_others_are_not_offered(tmp_path: Path) -> None:
    half = scripted("first", {"when": "Hello", "answer": "Good morning!"})
    files = {"tests/pair.md": CONVERSATIONS, "models/first.yaml": half}
    root = make_workspace(tmp_path / "desk", files)
    call(root, "run", "-m", "first", "--fail-on", "none")
    with serving(root) as address:
        path = str(ask(address, "label?by=Ada")[0].headers["Location"])
        assert " has labelled 0 of 1 answer." in ask(address, path)[1]
        assert (
            "No answer that can be labelled has all of these words."
            in ask(address, "label?by=Ada&only=pair")[1]
        )


def test_a_form_that_is_sent_twice_stores_one_label(labelled: tuple[Path, str]) -> None:
    root, address = labelled
    path = answer_of(address, "Go away.")
    form = {"by": "Ada", "verdict": "fail", "note": "Rude.", "seen": ""}
    with ThreadPoolExecutor(2) as pool:
        found = [*pool.map(lambda _: post(address, path, **form).status, range(2))]
    assert found == [303, 303]
    assert labels_in(root) == [("Ada", "fail", "Rude.")]
    form = {"by": "Ada", "verdict": "none", "confirmed": "on"}
    assert [post(address, path, **form).status for _ in range(2)] == [303, 303]
    assert [label[1] for label in labels_in(root)] == ["fail", "none"]


def test_json_and_markdown_are_shown_as_on_the_page_of_a_case(tmp_path: Path, page: Page) -> None:
    answer = {"answer": '{"city": "<b>Oslo", "rain": true}'}
    test = "# \N{BUST IN SILHOUETTE}\n\nSome **rain**?\n\n---\n\nIs {{answer}} kind?\n"
    files = {"models/first.yaml": scripted("first", answer), "tests/hello.md": test}
    root = make_workspace(tmp_path / "desk", files)
    assert call(root, "run", "-m", "first", "--fail-on", "none") == 0
    with serving(root) as address:
        page.go(f"{address}label?by=Ada")
        text = "document.querySelector('{}').textContent"
        assert page.value(text.format("section[aria-labelledby=asked] strong")) == "rain"
        lines = '{\n  "city": "<b>Oslo",\n  "rain": true\n}'
        assert page.value(text.format("section[aria-labelledby=answer] pre.json")) == lines
        assert (
            page.value(text.format("section[aria-labelledby=told] .text"))
            == "Is [the answer] kind?"
        )
        page.go(f"{address}run/@")
        page.value("document.querySelector('#matrix a').click()")
        assert page.value(text.format("#case article pre.json")) == lines


def test_calls_of_tools_have_their_name_and_their_arguments_as_json(
    tmp_path: Path, page: Page
) -> None:
    called = [{"name": name, "arguments": {"at": name}} for name in ("one", "two")]
    files = {
        "models/first.yaml": scripted("first", {"toolCalls": called}),
        "models/second.yaml": scripted("second", {"answer": "call {one} {"}),
    }
    root = make_workspace(tmp_path / "desk", files)
    assert call(root, "run", "--fail-on", "none") == 0
    with serving(root) as address:
        for only, names, count in (("first", "call one,call two", 2), ("second", "", 0)):
            page.go(f"{address}label?by=Ada&only={only}")
            turn = "[...document.querySelectorAll('#answer + .turn {}')]"
            assert (
                page.value(f"{turn.format('.role')}.map(part => part.textContent).join()") == names
            )
            assert page.value(f"{turn.format('pre.json')}.length") == count


def test_that_costs_are_simulated_is_said_once(tmp_path: Path) -> None:
    priced = scripted("first", {"answer": "Hi!"}) + "costs: [{costPerCall: 0.1234}]\n"
    root = make_workspace(tmp_path / "desk", {"models/first.yaml": priced})
    assert call(root, "run", "--fail-on", "none") == 0
    with serving(root) as address:
        text = ask(address, "")[1]
    assert text.count("simulated") == 1 + text.count('data-name="cost, simulated"')
    assert ">Cost, simulated</th>" in text
    assert ">total $0.1234</td>" in text


def test_answers_of_a_conversation_are_between_its_messages(tmp_path: Path) -> None:
    person = "# \N{BUST IN SILHOUETTE}"
    test = f"{person}\n\nOne?\n\n# \N{ROBOT FACE} @first\n\n{person}\n\nTwo?\n"
    told = "Compare {{answers}}."
    root = make_workspace(tmp_path / "desk", {"tests/hello.md": f"{test}\n---\n\n{told}\n"})
    assert call(root, "run", "--fail-on", "none") == 0
    with serving(root) as address:
        text = ask(address, str(ask(address, "label?by=Ada")[0].headers["Location"]))[1]
    kinds = re.findall(r'class="turn turn-(\w+)"', text)
    assert kinds == ["user", "assistant", "user", "assistant"]
    assert text.index("One?") < text.index(">answer 1<") < text.index("Two?")
    assert text.index("Two?") < text.index(">answer 2<")
    assert "Compare [answer 1, 2]." in text
    assert "Verdicts of judges are shown after your label" in text


@pytest.mark.parametrize("path", ["", "label"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_list_and_the_labels_are_accessible_and_fit_a_phone(
    address: str, page: Page, path: str, scheme: str
) -> None:
    axe = pytest.importorskip("axe_core_python", reason="axe-core-python is not installed")
    source = (Path(axe.__path__[0]) / "axe.min.js").read_text(encoding="utf-8")
    page.call(
        "Emulation.setDeviceMetricsOverride",
        width=360, height=800, deviceScaleFactor=1, mobile=True,
    )  # fmt: skip
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    page.call("Emulation.setEmulatedMedia", features=features)
    try:
        page.go(address + path)
        assert page.value("document.documentElement.scrollWidth") <= 360
        page.value(source)
        page.value("window.result = null; axe.run().then(r => { window.result = r; }); 0")
        violations = page.wait(
            "window.result && JSON.stringify(window.result.violations.map("
            "v => [v.id, v.nodes[0].html]))"
        )
        assert json.loads(violations) == []
    finally:
        page.call("Emulation.clearDeviceMetricsOverride")


def test_hostile_texts_do_nothing_in_the_list_and_in_labels(tmp_path: Path, page: Page) -> None:
    runs = "<img src=x onerror='document.title=`hacked`'>"
    model = scripted("first", {"answer": f"{runs}<script>document.title=`hacked`</script>"})
    test = f"# 👤\n\n{runs} javascript:alert(1)\n\n---\n\nKind? {runs}\n"
    root = make_workspace(
        tmp_path / "<i>desk", {f"tests/{runs}.md": test, "models/first.yaml": model}
    )
    assert call(root, "run", "--fail-on", "none", "--message", runs) == 0
    with serving(root) as address:
        page.go(address)
        assert runs in page.value("document.getElementById('runs').innerText")
        require_harmless(page, address)
        for path in ("label", f"label?by={quote(runs)}", f"label?after={quote(runs)}"):
            page.go(f"{address}{path}")
            assert page.value("document.querySelectorAll('img, iframe, b, i').length") == 0
            assert "hacked" not in page.value("document.title").replace(runs, "")
        page.go(f"{address}label?by={quote(runs)}")
        page.wait("document.documentElement.dataset.ready === 'yes'")
        page.press("p")
        page.wait("document.body.innerText.includes('Verdicts\\n')")
        assert page.value("document.querySelectorAll('img, iframe, b, i').length") == 0

"""Texts of models, tests and files are shown as text: nothing in them runs, loads or escapes."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from tests.interfaces.html.pages import Page, data_of, make_workspace, report, scripted
from tests.interfaces.html.pages import call as evalstore

pytestmark = pytest.mark.extended

MARK = "hacked"
RUNS = f"document.title=`{MARK}`"
ANSWERS = {
    "script": f"<script>{RUNS}</script>",
    "end of the data": f"</script><script>{RUNS}</script><!-- <script>",
    "handler": f'<img src=x onerror="{RUNS}">',
    "svg": f'<svg onload="{RUNS}"><script>{RUNS}</script></svg>',
    "markdown link": f"[click](javascript:{RUNS}) [this](data:text/html,<script>{RUNS}</script>)",
    "markdown entity": f"[click](&#106;avascript:{RUNS}) <javascript:{RUNS}>",
    "markdown image": "![picture](https://example.invalid/x.png) ![local](file:///etc/passwd)",
    "markdown html": f"# Title\n\n<iframe srcdoc='<b>{RUNS}</b>'></iframe>\n\n* <b>bold</b>",
    "style": "<style>*{display:none}</style><link rel=stylesheet href=https://example.invalid/x>",
    "form": "<form action=https://example.invalid/><input autofocus onfocus=alert(1)></form>",
    "refresh": '<meta http-equiv="refresh" content="0;url=https://example.invalid/">',
    "template": "{{ 7 * 7 }}{% for x in y %} ${7*7} {{ summary }}",
    "terminal": "\x1b[31mred\x1b[0m \x1b]8;;https://example.invalid\x07link\x1b]8;;\x07 \x9b2J",
    "direction": "price\u202e000,1\u202c \u2066isolated\u2069 \u200f",
    "nul": "a\x00b\ufffe\ufeff",
    "prototype": '{"__proto__": {"polluted": 1}, "constructor": "x"}',
    "json": '{"html": "<img src=x onerror=alert(1)>", "number": -1.5e3, "ok": [true, null]}',
    "deep list": "- " * 300 + "x",
    "deep quote": "> " * 300 + "x",
    "long line": "w" * 1_000_000,
}
FILE = "tests/\"><img src=x onerror='document.title=`hacked`'>.md"
IMAGE = b"\x89PNG\r\n\x1a\nnot a picture"
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def question(name: str) -> str:
    """The test of one of the answers, with the answer's text also in its own texts."""
    text = ANSWERS[name][:2000]
    quoted = text.replace("\x00", "").replace("{", "(").replace("}", ")")
    return (
        f"---\ntags: ['<b>tag</b>']\n---\n\n# 👤\n\nQuestion about {name}.\n\n"
        + "".join(f"    {line}\n" for line in quoted.splitlines() if line.isprintable())
        + "\n---\n\nThe answer must be kind. <u>Underlined</u>\n"
    )


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a workspace in which everything is hostile."""
    answers = [{"when": f"about {name}", "answer": text} for name, text in ANSWERS.items()]
    root = make_workspace(
        tmp_path_factory.mktemp("hostile") / "<i onclick=x>",
        {
            "models/first.yaml": scripted("first", *answers, {"answer": "Hello."}),
            "models/judge.yaml": scripted(
                "judge",
                {"when": "about svg", "answer": {"pass": False, "feedback": ANSWERS["svg"]}},
                {
                    "when": "about handler",
                    "answer": {"pass": False, "feedback": ANSWERS["handler"]},
                },
                {"answer": {"pass": True, "feedback": ANSWERS["end of the data"]}},
            ),
            **{f"tests/case-{name.replace(' ', '-')}.md": question(name) for name in ANSWERS},
            FILE: "---\nreplacements:\n"
            "  x: ['<script>document.title=`hacked`</script>', plain]\n---\n\n"
            "# 👤\n\nHello {{x}}\n\n---\n\nBe kind.\n",
            "tests/files/broken.png": IMAGE,
            "tests/files/fine.png": PIXEL,
            "tests/files/empty.png": b"",
            "tests/files/drawing.svg": f"<svg xmlns='http://www.w3.org/2000/svg' onload='{RUNS}'/>",
            "tests/picture.md": "# 👤\n\n{{_file:files/broken.png}} {{_file:files/fine.png}}"
            " {{_file:files/empty.png}} {{_file:files/drawing.svg}}\n"
            "\n---\n\nBe kind.\n",
        },
    )
    assert evalstore(root, "run", "--fail-on", "none") == 0
    return report(root)


def find_case(hostile: Path, part: str) -> int:
    """The number of a case in the page, by a part of its file's name."""
    cases = data_of(hostile.read_text(encoding="utf-8"), "data-cases")
    (number,) = [
        number
        for number, row in enumerate(cases["rows"], 1)
        if part in cases["files"][row[0]] and row[1] != "x=plain"
    ]
    return number


def require_harmless(page: Page, address: str) -> None:
    """Fail if anything of a page ran, was loaded from elsewhere or became markup."""
    assert MARK not in page.value("document.title")
    assert [url for url in page.requested if not url.startswith(address)] == []
    assert page.value("document.querySelectorAll('script:not([type])').length") == 1
    unexpected = (
        "iframe, object, embed, link, form:not(#filter), style ~ style, [onerror], [onload],"
        " [onclick], [onfocus], [style], base, b, i, u, meta[http-equiv=refresh]"
    )
    assert page.value(f"[...document.querySelectorAll(`{unexpected}`)].map(e => e.outerHTML)") == []
    links = page.value("[...document.querySelectorAll('a[href]')].map(a => a.protocol)")
    assert set(links) <= {"file:", "https:", "http:", "mailto:"}
    assert page.value("({}).polluted === undefined")


@pytest.mark.parametrize("name", ANSWERS)
def test_a_hostile_answer_is_shown_and_does_nothing(hostile: Path, page: Page, name: str) -> None:
    number = find_case(hostile, f"case-{name.replace(' ', '-')}.md")
    page.open(hostile, f"case-{number}")
    assert page.value("document.getElementById('case').open")
    assert page.value("document.querySelectorAll('#case article').length") == 2
    assert page.value("document.querySelector('#case article .turn').textContent.length > 0")
    require_harmless(page, hostile.as_uri())
    page.value("[...document.querySelectorAll('#case button')].find(b => b.ariaPressed).click()")
    assert page.value("document.querySelector('#case [aria-pressed=true]') !== null")
    require_harmless(page, hostile.as_uri())


def test_the_plain_text_of_an_answer_is_the_answer(hostile: Path, page: Page) -> None:
    page.open(hostile, f"case-{find_case(hostile, 'case-markdown-html')}")
    page.value("[...document.querySelectorAll('#case button')].find(b => b.ariaPressed).click()")
    text = page.value("document.querySelector('#case article .turn').textContent")
    assert text == ANSWERS["markdown html"]


def test_markdown_becomes_elements_without_html(hostile: Path, page: Page) -> None:
    page.open(hostile, f"case-{find_case(hostile, 'case-markdown-html')}")
    answer = "document.querySelector('#case article .turn')"
    assert page.value(f"{answer}.querySelector('.heading').textContent") == "Title"
    assert page.value(f"{answer}.querySelector('li').textContent") == "<b>bold</b>"


def test_json_is_highlighted(hostile: Path, page: Page) -> None:
    page.open(hostile, f"case-{find_case(hostile, 'case-json')}")
    parts = "[...document.querySelectorAll('#case article .turn .json-{}')].map(e => e.textContent)"
    assert page.value(parts.format("key")) == ['"html"', '"number"', '"ok"']
    assert page.value(parts.format("value")) == ["-1.5e3", "true", "null"]


def test_control_characters_are_shown_as_escapes(hostile: Path, page: Page) -> None:
    for name, escape in (
        ("terminal", r"\x1b[31mred"),
        ("direction", r"\u202e000,1"),
        ("nul", r"a\x00b"),
    ):
        page.open(hostile, f"case-{find_case(hostile, f'case-{name}.md')}")
        text = page.value("document.querySelector('#case article .turn').textContent")
        assert escape in text
        assert text.replace("\n", "").isprintable()


def test_a_very_long_text_is_cut_and_the_report_says_so(hostile: Path, page: Page) -> None:
    page.open(hostile, f"case-{find_case(hostile, 'case-long-line')}")
    text = page.value("document.querySelector('#case article .turn').textContent")
    assert text.startswith("www")
    assert text.endswith("w\n\n[900,000 more characters are left out]")
    assert page.value("document.documentElement.scrollWidth <= innerWidth")


def test_pictures_are_in_the_file_and_broken_ones_are_named(hostile: Path, page: Page) -> None:
    page.open(hostile, f"case-{find_case(hostile, 'picture')}")
    page.wait("document.querySelectorAll('#case .turn > .note').length === 2")
    notes = page.value(
        "[...document.querySelectorAll('#case .turn > .note')].map(e => e.textContent)"
    )
    assert notes == [f"files/{name}.png: the picture is damaged" for name in ("broken", "empty")]
    assert page.value("[...document.querySelectorAll('#case img')].map(i => i.alt)") == [
        "files/fine.png"
    ]
    assert page.wait("document.querySelector('#case img').naturalWidth") == 1
    require_harmless(page, hostile.as_uri())


def test_a_hostile_file_name_and_row_are_text(hostile: Path, page: Page) -> None:
    page.open(hostile, f"case-{find_case(hostile, 'onerror')}")
    title = page.value("document.getElementById('case-title').textContent")
    assert title.startswith(FILE)
    assert "<script>" in title
    require_harmless(page, hostile.as_uri())


@pytest.mark.parametrize("width", [400, 1200])
def test_a_long_name_covers_no_number(hostile: Path, page: Page, width: int) -> None:
    page.call(
        "Emulation.setDeviceMetricsOverride",
        width=width, height=800, deviceScaleFactor=1, mobile=False,
    )  # fmt: skip
    page.open(hostile)
    page.value("document.querySelectorAll('details').forEach(part => { part.open = true; })")
    covered = page.value(
        "(() => { const end = (part) => part.getBoundingClientRect().right;"
        " return [...document.querySelectorAll('.groups td > *')]"
        ".filter(part => end(part) > end(part.parentElement) + 1)"
        ".map(part => part.closest('tr').innerText); })()"
    )
    page.call("Emulation.clearDeviceMetricsOverride")
    assert covered == []


def test_the_page_without_script_has_no_markup_of_texts(hostile: Path, page: Page) -> None:
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        page.call("Page.navigate", url="about:blank")
        page.call("Page.navigate", url=hostile.as_uri())
        text = page.wait("document.querySelector('noscript p')?.textContent")
        rows = len(ANSWERS) + 4
        assert text.startswith("Without JavaScript the table has all cases")
        assert page.value("document.querySelector('h1').innerText").endswith("%.")
        assert page.value("document.querySelector('#candidates svg').clientWidth") > 100
        assert not page.value("document.getElementById('filter').clientHeight")
        assert page.value("document.querySelectorAll('#matrix tbody tr').length") == rows
        assert MARK not in page.value("document.title")
        assert page.value("document.querySelectorAll('img, iframe, b, i').length") == 0
    finally:
        page.call("Emulation.setScriptExecutionDisabled", value=False)

"""The page in a real browser: filters, cases, keyboard, sizes of screens and accessibility."""

from __future__ import annotations

import itertools
import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from evalstore.interfaces.html.charts import trend_chart
from evalstore.results.report_overview import CandidateCounts, TrendRun, make_trend
from tests.interfaces.html.pages import TEST, Page, call, make_workspace, report, scripted

pytestmark = pytest.mark.extended

MATH = """\
---
tags: [math]
replacements:
  n: [{rows}]
---

# 👤

What is {{{{n}}}} + 1?

---

The answer must be right about {{{{n}}}}.
"""
COUNT = 120


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a second run, in which a candidate answers other questions wrong."""
    root = make_workspace(
        tmp_path_factory.mktemp("page") / "desk",
        {
            "tests/math.md": MATH.format(rows=", ".join(map(str, range(COUNT)))),
            "models/judge.yaml": scripted(
                "judge",
                {"when": "Go away", "answer": {"pass": False, "feedback": "It is rude."}},
                {"when": "must be kind", "answer": {"pass": True, "feedback": "Kind."}},
                {
                    "when": r"right about 7\.",
                    "answer": {"pass": False, "feedback": "It should be eight."},
                },
                {"answer": {"pass": True, "feedback": ""}},
            ),
        },
    )
    assert call(root, "run", "--fail-on", "none", "--yes") == 0
    test = root / "tests/hello.md"
    test.write_text(test.read_text(encoding="utf-8").replace("Hello", "Hi"), encoding="utf-8")
    first = root / "models/second.yaml"
    first.write_text(
        scripted("second", {"when": "Hi", "answer": "Good **day**!"}, {"answer": "Go away."}),
        encoding="utf-8",
    )
    assert call(root, "run", "--fail-on", "none", "--yes") == 0
    return report(root)


def names(page: Page) -> list[str]:
    """The cases in the table."""
    shown: list[str] = page.value(
        "[...document.querySelectorAll('#matrix tbody th a')].map(e => e.textContent)"
    )
    return shown


def choose(page: Page, field: str, value: str) -> str:
    """Set a field of the filter; what the page says then."""
    page.value(
        f"(() => {{ const e = document.getElementById('{field}'); e.value = {json.dumps(value)};"
        " e.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )
    return str(page.value("document.getElementById('count').textContent"))


def press_chip(page: Page, name: str) -> str:
    """Press a button of the filter; what the page says then."""
    page.value(
        "[...document.querySelectorAll('#chips button')]"
        f".find(e => e.textContent.startsWith({json.dumps(name)})).click()"
    )
    return str(page.value("document.getElementById('count').textContent"))


def test_the_summary_is_at_the_top(changed: Path, page: Page) -> None:
    page.open(changed)
    assert page.value("document.title").startswith("desk: ")
    sentence = page.value("document.querySelector('h1').textContent")
    best = "Best: first, 99%; its lead over second may be chance."
    assert sentence == f"second got better, 0% to 1% (may be chance); 1 result fixed. {best}"
    bottom = "document.querySelector('#candidates').getBoundingClientRect().bottom"
    assert 0 < page.value(bottom) < 500
    plot = "document.querySelector('.trend-chart').getBoundingClientRect().height"
    assert 0 < page.value(plot) <= 160


def test_problems_stand_first_in_pages_of_the_table(changed: Path, page: Page) -> None:
    page.open(changed)
    shown = names(page)
    assert len(shown) == 100
    assert page.value("document.getElementById('page').textContent") == "page 1 of 2"
    assert page.value("document.getElementById('back').disabled")
    page.value("document.getElementById('next').click()")
    assert page.value("document.getElementById('page').textContent") == "page 2 of 2"
    assert not set(shown) & set(names(page))


def test_filters_and_search(changed: Path, page: Page) -> None:
    page.open(changed)
    assert page.value("document.getElementById('count').textContent") == f"{COUNT + 1} cases"
    assert choose(page, "search", "eight") == f"1 of {COUNT + 1} cases match"
    assert names(page) == ["tests/math.md [n=7]"]
    assert choose(page, "search", "HELLO.md greeting") == f"1 of {COUNT + 1} cases match"
    assert choose(page, "search", "nowhere") == f"0 of {COUNT + 1} cases match"
    assert names(page) == []
    choose(page, "search", "")
    assert press_chip(page, "Fixed") == f"1 of {COUNT + 1} cases match"
    assert names(page) == ["tests/hello.md"]
    assert choose(page, "search", "math") == f"0 of {COUNT + 1} cases match"
    choose(page, "search", "")
    assert press_chip(page, "All") == f"{COUNT + 1} cases"


def test_each_chip_says_how_many_cases_it_shows(changed: Path, page: Page) -> None:
    page.open(changed)
    chips = page.value("[...document.querySelectorAll('#chips button')].map(e => e.textContent)")
    assert chips[0] == f"All {COUNT + 1}"
    for chip in chips[1:]:
        name, _, count = chip.rpartition(" ")
        assert press_chip(page, name) == f"{count} of {COUNT + 1} cases match"
    pressed = "document.querySelectorAll('#chips [aria-pressed=true]').length"
    assert page.value(pressed) == 1


def test_a_cell_has_the_verdict_and_the_answer_and_the_row_the_question(
    changed: Path, page: Page
) -> None:
    page.open(changed)
    choose(page, "search", "hello.md")
    row = "document.querySelector('#matrix tbody tr')"
    assert page.value(f"{row}.querySelector('.question').textContent") == "Hi"
    cells = page.value(f"[...{row}.querySelectorAll('td:not(.question)')].map(e => e.innerText)")
    assert [cell.split() for cell in cells] == [
        ["✓", "pass", "Good", "morning!"],
        ["✓", "pass", "fixed", "Good", "**day**!"],
    ]


def test_the_search_reaches_conversations_if_it_is_told_so(changed: Path, page: Page) -> None:
    page.open(changed)
    assert choose(page, "search", "must be right 99") == f"0 of {COUNT + 1} cases match"
    page.value("document.getElementById('deep').click()")
    page.wait(f"document.getElementById('count').textContent === '1 of {COUNT + 1} cases match'")
    assert names(page) == ["tests/math.md [n=99]"]


def test_a_case_opens_by_keyboard_and_gives_the_focus_back(changed: Path, page: Page) -> None:
    page.open(changed)
    press_chip(page, "Fixed")
    page.value("document.querySelector('#matrix tbody a').focus()")
    page.call(
        "Input.dispatchKeyEvent", type="keyDown", key="Enter", text="\r", windowsVirtualKeyCode=13
    )
    page.call("Input.dispatchKeyEvent", type="keyUp", key="Enter", windowsVirtualKeyCode=13)
    page.wait("document.getElementById('case').open")
    assert page.value("document.activeElement.id") == "case-title"
    assert page.value("document.getElementById('case-title').textContent") == "tests/hello.md"
    page.press("Escape", 27)
    page.wait("!document.getElementById('case').open")
    assert page.value("document.activeElement.textContent") == "tests/hello.md"
    page.wait("location.hash === '#cases-title'")


def test_a_case_has_its_answers_judgements_history_and_difference(
    changed: Path, page: Page
) -> None:
    page.open(changed)
    press_chip(page, "Fixed")
    page.value("document.querySelector('#matrix tbody a').click()")
    page.wait("document.getElementById('case').open")
    text = page.value("document.querySelectorAll('#case article')[1].innerText")
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    assert lines[:3] == ["second", "✓ pass fixed", "Good day!"]
    assert lines[4:7] == ["Verdicts", "✓ pass by judge", "Kind."]
    assert lines[7] == "History"
    assert re.fullmatch(r"passing since run \w{8} \(\d{4}-\d\d-\d\d \d\d:\d\d UTC.*\)", lines[8])
    assert lines[9].startswith("last failed in run ")
    assert lines[10:14] == [
        "what changed in between:",
        "test changed",
        "user:",
        "- Hello",
    ]
    assert lines[15].startswith("Since run ")
    lines = lines[8:]
    assert lines[8:12] == [
        "✗ fail → ✓ pass (test changed)",
        "previous feedback: It is rude.",
        "- Go away.",
        "+ Good **day**!",
    ]
    assert lines[12] == "Earlier verdicts"
    assert lines[13].startswith("✗ fail run ")
    assert lines[14] == "Of runs with the same results of this file, only the newest is listed."
    assert page.value("document.querySelector('#case article strong').textContent") == "day"


def test_one_can_go_from_case_to_case(changed: Path, page: Page) -> None:
    page.open(changed)
    page.value("document.getElementById('order').click()")
    choose(page, "search", "math.md")
    page.value("document.querySelector('#matrix tbody a').click()")
    page.wait("document.getElementById('case-title')?.textContent === 'tests/math.md [n=0]'")
    button = "[...document.querySelectorAll('#case button')].find(b => b.textContent === '{}')"
    assert page.value(f"{button.format('Previous')}.disabled")
    page.value(f"{button.format('Next')}.click()")
    page.wait("document.getElementById('case-title')?.textContent === 'tests/math.md [n=1]'")


def test_keys_go_through_the_cases_and_the_search(changed: Path, page: Page) -> None:
    page.open(changed)
    shown = names(page)
    focused = "document.activeElement.textContent"
    page.press("j")
    assert page.value(focused) == shown[0]
    page.press("j")
    page.press("ArrowDown", 40)
    page.press("k")
    assert page.value(focused) == shown[1]
    page.value("document.activeElement.click()")
    title = "document.getElementById('case-title')?.textContent"
    page.wait(f"{title} === {json.dumps(shown[1])}")
    page.press("j")
    page.wait(f"{title} === {json.dumps(shown[2])}")
    page.press("ArrowLeft", 37)
    page.wait(f"{title} === {json.dumps(shown[1])}")
    page.press("k")
    page.wait(f"{title} === {json.dumps(shown[0])}")
    page.press("Escape", 27)
    page.wait("!document.getElementById('case').open")
    page.wait(f"{focused} === {json.dumps(shown[0])}")
    page.value("document.activeElement.click()")
    page.wait("document.getElementById('case').open")
    page.press("/")
    page.wait("!document.getElementById('case').open && location.hash === '#cases-title'")
    assert page.value("document.activeElement.id") == "search"
    choose(page, "search", "eight")
    page.press("Escape", 27)
    assert page.value("document.getElementById('count').textContent") == f"{COUNT + 1} cases"


def test_prompts_of_a_case_are_together_and_recorded_answers_have_no_column(
    tmp_path: Path, page: Page
) -> None:
    root = make_workspace(
        tmp_path / "desk",
        {
            **{f"prompts/{name}.md": f"---\nid: {name}\n---\n\nBe {name}.\n" for name in "ab"},
            "tests/hello.md": TEST.replace("tags:", "systemPrompts: [a, b]\ntags:"),
            "tests/letter.md": TEST.replace("tags:", "answer: Go away.\ntags:"),
        },
    )
    assert call(root, "run", "--fail-on", "none") == 0
    page.open(report(root))
    count = "document.getElementById('count').textContent"
    assert page.value(count) == "2 cases in 3 rows, one for each system prompt"
    assert names(page) == ["tests/hello.md (a)", "tests/hello.md (b)", "tests/letter.md"]
    chips = page.value("[...document.querySelectorAll('#chips button')].map(e => e.textContent)")
    assert chips == ["All 2", "Fails 2", "Differ 1"], "cases, as in the headline"
    assert press_chip(page, "Differ") == "1 of 2 cases match in 2 rows"
    assert len(names(page)) == 2
    press_chip(page, "All")
    lines = page.value("[...document.querySelectorAll('#matrix tbody th a')].map(e => e.innerText)")
    assert lines == ["tests/hello.md (a)", "(b)", "tests/letter.md"]
    line = "getComputedStyle(document.querySelector('.again .question'), '::after')"
    assert page.value(f"[{line}.visibility, {line}.borderBottomStyle]") == ["visible", "solid"]
    heads = page.value("[...document.querySelectorAll('#matrix thead span')].map(e => e.innerText)")
    assert heads == ["first", "second"]
    cell = "document.querySelector('#matrix .aside')"
    assert page.value(f"{cell}.dataset.name + {cell}.colSpan") == "recorded2"
    page.press("j")
    page.value("document.querySelectorAll('#matrix tbody a')[2].click()")
    page.wait("document.querySelector('#case article h3')?.textContent === 'recorded'")


def test_a_list_has_whole_cases_and_a_link_to_the_others_in_the_table(
    tmp_path: Path, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalstore.interfaces.html.report.MOST_CHANGES", 1)
    files = {f"tests/{name}.md": TEST.replace("Hello", name) for name in ("bye", "hi")}
    root = make_workspace(tmp_path / "desk", files)
    (root / "models/second.yaml").write_text(scripted("second", {"answer": "Hi."}))
    assert call(root, "run", "--fail-on", "none") == 0
    for name in ("first", "second"):
        text = scripted(name, {"when": "Hello", "answer": "Hi."}, {"answer": "Go away!"})
        (root / f"models/{name}.yaml").write_text(f"{text}extraIdentifier: v2\n")
    assert call(root, "run", "--fail-on", "none") == 0
    for title, chip in (("broke", "Broke 2"), ("before", "Still broken 2")):
        page.open(report(root))
        listed = f"document.querySelector('#{title}').parentNode"
        assert page.value(f"{listed}.querySelectorAll('.model').length") == 2
        assert page.value(f"{listed}.querySelector('a').innerText") == "tests/bye.md"
        link = f"{listed}.querySelector('[data-list]')"
        assert page.value(f"{link}.innerText") == "2 more results in 1 case"
        page.value(f"{link}.click()")
        page.wait("location.hash === '#cases-title'")
        pressed = "document.querySelector('#chips [aria-pressed=true]').innerText"
        assert (page.value(pressed), names(page)) == (chip, ["tests/bye.md", "tests/hi.md"])
        assert call(root, "run", "--fail-on", "none") == 0


def test_cards_of_many_candidates_are_as_wide_as_a_phone(tmp_path: Path, page: Page) -> None:
    many = [f"m{number}" for number in range(6)]
    files = {f"models/{name}.yaml": scripted(name, {"answer": "Hi."}) for name in many}
    settings = f"candidates: [{', '.join(many)}]\nevaluators: [judge]\n"
    root = make_workspace(tmp_path / "desk", {**files, "evalstore.yaml": settings})
    assert call(root, "run", "--fail-on", "none") == 0
    page.call(
        "Emulation.setDeviceMetricsOverride",
        width=400, height=800, deviceScaleFactor=1, mobile=True,
    )  # fmt: skip
    page.open(report(root))
    card = "document.querySelector('#matrix tbody tr').getBoundingClientRect().width"
    width = page.value(card)
    page.call("Emulation.clearDeviceMetricsOverride")
    assert width > 360


def test_cards_of_candidates_have_one_layout_and_names_of_lines_have_room(
    changed: Path, page: Page
) -> None:
    page.call(
        "Emulation.setDeviceMetricsOverride",
        width=390, height=800, deviceScaleFactor=1, mobile=True,
    )  # fmt: skip
    page.open(changed)
    page.value("document.querySelector('#candidates + .rest').open = true")
    tops = [
        page.value(
            "(row => { const part = name => row.querySelector(`[data-name='${name}']`);"
            f" part('change in points').innerText = '{change}';"
            " part('cost of 100 answers').innerText = '$0.2000';"
            " return part('latency').getBoundingClientRect().top; })"
            "(document.querySelector('#candidates tbody tr'))"
        )
        for change in ("0", "-31.2", "+100.0 (1 of 32 shared)")
    ]
    room = page.value(
        "(names => { const all = [...names.querySelectorAll('text')];"
        " const longest = Math.max(...all.map(each => each.firstChild.data.length));"
        " all[0].textContent = 'mini'.repeat(9).slice(0, longest - 5) + '78.1%';"
        " return names.getBoundingClientRect().right -"
        " Math.max(...all.map(each => each.getBoundingClientRect().right)); })"
        "(document.querySelector('.trend-names'))"
    )
    page.call("Emulation.clearDeviceMetricsOverride")
    assert len({*tops}) == 1
    assert room >= 0


def test_dates_below_the_trend_are_apart_on_a_phone(
    changed: Path, page: Page, tmp_path: Path
) -> None:
    rates = {"scripted/nimbus-mini": CandidateCounts(33, 41, 41)}
    runs = [TrendRun(f"{at}", at * 86_400_000_000, False, rates) for at in (6, 5, 4, 3, 1)]
    text, drawn = changed.read_text("utf-8"), trend_chart(make_trend(runs))
    head, tail = text.partition('<div class="plot">')[0], text.partition("</svg></div>")[2]
    (tmp_path / "report.html").write_text(head + drawn + tail, "utf-8")
    for width in (390, 1280):
        page.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=800, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        page.open(tmp_path / "report.html")
        places = page.value(
            "[...document.querySelectorAll('.trend-chart > text')]"
            ".filter(each => each.textContent.includes('-'))"
            ".map(each => each.getBoundingClientRect()).filter(box => box.width)"
            ".map(box => [box.left, box.right]).sort((one, other) => one[0] - other[0])"
        )
        assert len(places) == (2 if width == 390 else 4)
        assert all(end < start for (_, end), (start, _) in pairwise(places))
    page.call("Emulation.clearDeviceMetricsOverride")


FULLEST = (
    "careful got better, 88% to 92%; hasty got worse, 66% to 60%; "
    "12 results broke, 10 fixed, 3 others still broken. Best: careful, 92%."
)
"""The sentence with all that it can say."""


@pytest.mark.parametrize(("width", "most"), [(390, 4), (1280, 2)])
def test_the_sentence_has_few_lines(changed: Path, page: Page, width: int, most: int) -> None:
    page.call(
        "Emulation.setDeviceMetricsOverride",
        width=width, height=800, deviceScaleFactor=1, mobile=width < 600,
    )  # fmt: skip
    page.open(changed)
    page.value(f"document.querySelector('h1').textContent = {json.dumps(FULLEST)}")
    lines = page.value(
        "(h => h.getBoundingClientRect().height / parseFloat(getComputedStyle(h).lineHeight))"
        "(document.querySelector('h1'))"
    )
    assert round(lines) <= most
    long = "careful got better, 88% to 91% (may be chance); " * 3 + FULLEST
    page.value(f"document.querySelector('h1').textContent = {json.dumps(long)}")
    end = page.value("document.querySelector('.big').getBoundingClientRect().bottom")
    page.call("Emulation.clearDeviceMetricsOverride")
    assert end < 800, "the first number is on the first screen"


@pytest.mark.parametrize(("width", "cases", "candidates"), [(390, 3, 4), (1280, 7, 6)])
def test_a_phone_shows_the_cause_of_a_break_on_its_first_screen_and_the_rest_on_demand(
    page: Page, tmp_path: Path, width: int, cases: int, candidates: int
) -> None:
    models = [f"models/candidate-{number}.yaml" for number in range(6)]
    root = make_workspace(
        tmp_path / "desk",
        {
            "evalstore.yaml": f"candidates: [{', '.join(it[7:-5] for it in models)}]\n"
            "evaluators: [judge]\n",
            **{it: scripted(it[7:-5], {"answer": "Good morning!"}) for it in models},
            **{f"tests/{it}.md": TEST.replace("Hello", f"Hello {it}") for it in range(6)},
        },
    )
    call(root, "run", "--fail-on", "none")
    (root / models[0]).write_text(
        scripted("candidate-0", {"answer": "Go away."}) + "extraIdentifier: v2\n"
    )
    call(root, "run", "--fail-on", "none")
    page.call(
        "Emulation.setDeviceMetricsOverride",
        width=width, height=844, deviceScaleFactor=1, mobile=width < 600,
    )  # fmt: skip
    page.open(report(root))
    page.value(f"document.querySelector('h1').textContent = {json.dumps(FULLEST)}")
    shown = "[...document.querySelectorAll('{}')].filter(it => it.checkVisibility()).length"
    parts = [shown.format(part) for part in (".broke li", "#candidates tbody tr", ".interval-cell")]
    listed = [page.value(part) for part in parts]
    end = page.value("document.querySelector('.broke li').getBoundingClientRect().bottom")
    page.call("Emulation.setEmulatedMedia", media="print")
    printed = [page.value(part) for part in parts]
    page.call("Emulation.setEmulatedMedia", media="")
    page.value("document.querySelectorAll('.rest').forEach(it => { it.open = true; })")
    opened = [page.value(part) for part in parts]
    call(root, "run", "--fail-on", "none")
    page.open(report(root))
    assert page.value("document.querySelector('.broke h2').innerText").startswith("Still broken")
    still = page.value("document.querySelector('.broke li').getBoundingClientRect().bottom")
    page.call("Emulation.clearDeviceMetricsOverride")
    assert listed == [cases, candidates, 0 if width == 390 else 6]
    assert opened == printed == [7, 6, 6]
    assert max(end, still) < 844 or width > 390


@pytest.mark.parametrize("width", [320, 400, 768, 1400])
def test_nothing_is_wider_than_the_screen(changed: Path, page: Page, width: int) -> None:
    page.call(
        "Emulation.setDeviceMetricsOverride",
        width=width, height=800, deviceScaleFactor=1, mobile=width < 600,
    )  # fmt: skip
    page.open(changed)
    page.value("document.querySelectorAll('details').forEach(part => { part.open = true; })")
    assert page.value("document.documentElement.scrollWidth") <= width
    page.value("document.querySelector('#matrix tbody a').click()")
    page.wait("document.getElementById('case').open")
    assert page.value("document.getElementById('case').scrollWidth") <= width
    page.call("Emulation.clearDeviceMetricsOverride")


def test_print_has_the_summary_and_no_controls(changed: Path, page: Page) -> None:
    page.open(changed)
    page.call("Emulation.setEmulatedMedia", media="print")
    try:
        style = "getComputedStyle(document.querySelector('{}')).display"
        assert [page.value(style.format(part)) for part in ("form", "#case")] == ["none"] * 2
        assert page.value(style.format("#candidates")) != "none"
    finally:
        page.call("Emulation.setEmulatedMedia", media="")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("place", ["page", "case"])
def test_axe_finds_no_violation(changed: Path, page: Page, scheme: str, place: str) -> None:
    axe: Any = pytest.importorskip("axe_core_python", reason="axe-core-python is not installed")
    source = (Path(axe.__path__[0]) / "axe.min.js").read_text(encoding="utf-8")
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    page.call("Emulation.setEmulatedMedia", features=features)
    page.open(changed)
    if place == "case":
        press_chip(page, "Fixed")
        page.value("document.querySelector('#matrix tbody a').click()")
        page.wait("document.getElementById('case').open")
    page.value(source)
    page.value("window.result = null; axe.run().then(r => { window.result = r; }); 0")
    violations = page.wait(
        "window.result && JSON.stringify(window.result.violations.map("
        "v => [v.id, v.nodes[0].html]))"
    )
    assert json.loads(violations) == []
    assert page.value("window.result.passes.length") > 20


def test_headings_landmarks_and_names(changed: Path, page: Page) -> None:
    page.open(changed)
    levels = page.value("[...document.querySelectorAll('h1,h2,h3')].map(e => Number(e.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    landmarks = "header,nav,main,footer,[role=search],[role=status]"
    assert page.value(f"document.querySelectorAll('{landmarks}').length") == 5
    unnamed = (
        "[...document.querySelectorAll('input')]"
        ".filter(e => !e.labels.length && !e.getAttribute('aria-label'))"
        ".concat([...document.querySelectorAll('svg[role=img]:not([aria-label])')])"
        ".concat([...document.querySelectorAll('thead th:not([scope])')]).length"
    )
    assert page.value(unnamed) == 0
    assert page.value("document.getElementById('count').getAttribute('aria-live')") == "polite"

"""JUnit XML: read by real parsers, and made of what the schema of Jenkins allows."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

from tests.builders import tree
from tests.interfaces.cli.export.test_export import ASKED, HOSTILE

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from tests.interfaces.cli.conftest import Echo, Evalstore

_OUTCOME: tuple[set[str], set[str]] = ({"type", "message"}, set())
SCHEMA: dict[str, tuple[set[str], set[str]]] = {
    "testsuites": ({"name", "time", "tests", "failures", "disabled", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "id", "file"},
        {"properties", "testcase", "system-out", "system-err"},
    ),
    "properties": (set(), {"property"}),
    "property": ({"name", "value"}, set()),
    "testcase": (
        {"name", "classname", "time", "file", "line", "status", "group"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "skipped": _OUTCOME,
    "error": _OUTCOME,
    "failure": _OUTCOME,
    "system-out": (set(), set()),
}
"""The attributes and the children of each element that junit-10.xsd allows and we use."""


def read(path: str = "r.junit.xml") -> Element:
    """The document, which keeps to the schema."""
    root = ElementTree.parse(path).getroot()
    assert root.tag == "testsuites"
    for element in root.iter():
        attributes, children = SCHEMA[element.tag]
        assert set(element.keys()) <= attributes, element.tag
        assert {child.tag for child in element} <= children, element.tag
    for suite in root:
        cases = suite.findall("testcase")
        assert suite.get("tests") == str(len(cases))
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert suite.get(name) == str(len(suite.findall(f"testcase/{tag}")))
    return root


def outcomes(root: Element) -> list[tuple[str, str, str]]:
    return [
        (case.get("file") or "", child.tag, child.get("message") or "")
        for case in root.iter("testcase")
        for child in case
        if child.tag != "system-out"
    ]


def test_a_case_has_its_place_its_feedback_and_its_ids(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("run", "-o", "r.junit.xml")
    root = read()
    (suite,) = root
    assert (suite.get("name"), suite.get("failures")) == ("tests/weather.md", "1")
    oslo, rome = suite.findall("testcase")
    assert oslo.get("name") == "scripted/one [city=Oslo]"
    assert (oslo.get("file"), oslo.get("line")) == ("tests/weather.md", "4")
    assert oslo.get("classname") == "tests.weather"
    assert outcomes(root) == [("tests/weather.md", "failure", "It is cold there.")]
    output = oslo.findtext("system-out") or ""
    assert output.startswith("session: ")
    assert output.endswith("cost: $0.0300\njudging: $0\n\nCold.")
    assert rome.find("failure") is None
    assert {entry.get("name") for entry in suite.iter("property")} == {
        *("run", "status", "undecided")
    }


def test_the_line_of_a_case_without_a_row_is_that_of_its_message(
    echo: Echo, evalstore: Evalstore
) -> None:
    tree(Path.cwd(), {"tests/one.md": "---\ntags: [a]\n---\n" + ASKED})
    evalstore("run", "-o", "r.junit.xml")
    assert [case.get("line") for case in read().iter("testcase")] == ["4"]
    Path("tests/one.md").unlink()
    evalstore("export", "-o", "r.junit.xml")
    assert [case.get("line") for case in read().iter("testcase")] == ["1"]


def test_failed_calls_are_errors_and_what_waits_is_skipped(
    echo: Echo, evalstore: Evalstore
) -> None:
    echo.failing = "Question"
    files = {"tests/a.md": ASKED, "tests/b.md": "# 👤\n\nHello\n\n---\n\nBe kind.\n"}
    tree(Path.cwd(), {**files, "tests/c.md": ASKED.replace("Question", "Other")})
    evalstore("run", "-o", "r.junit.xml")
    assert [entry[:2] for entry in outcomes(read())] == [
        ("tests/a.md", "error"),
        ("tests/b.md", "skipped"),
        ("tests/c.md", "failure"),
    ]


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_texts_keep_the_document_valid(echo: Echo, evalstore: Evalstore, kind: str) -> None:
    echo.reply = lambda _text: HOSTILE[kind].replace("needle", "pin")
    tree(Path.cwd(), {'tests/<b>"&\x1b.md': ASKED})
    evalstore("run", "-o", "r.junit.xml")
    ((_, tag, message),) = outcomes(read())
    assert tag == "failure"
    assert message
    data = Path("r.junit.xml").read_text(encoding="utf-8")
    assert all(character in "\n\t" or not 0x7F <= ord(character) < 0xA0 for character in data)
    assert "\x1b" not in data
    assert len(data) < 40_000


def test_a_text_that_is_cut_says_so(echo: Echo, evalstore: Evalstore) -> None:
    echo.reply = lambda _text: "x" * 25_000
    tree(Path.cwd(), {"tests/one.md": ASKED})
    evalstore("run", "-o", "r.junit.xml")
    output = next(read().iter("system-out")).text or ""
    assert "more characters)" in output


def test_a_parser_of_the_ecosystem_reads_it(workspace: Path, evalstore: Evalstore) -> None:
    junitparser = importlib.import_module("junitparser")
    evalstore("run", "-o", "r.junit.xml")
    (suite,) = junitparser.JUnitXml.fromfile("r.junit.xml")
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (2, 1, 0, 0)
    assert [case.is_passed for case in suite] == [False, True]

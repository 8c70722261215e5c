"""What repositories of LVE hold that is not in its documentation, or rarely."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalstore.core.values import Json
from evalstore.exchange.importers.base import ImportOptions
from evalstore.exchange.importers.lve.reader import read
from tests.builders import tree
from tests.exchange.importers.judged import cases, content, expansion
from tests.exchange.importers.lve.repository import definition, imported, instance, reasons, texts
from tests.exchange.importers.running import imported_and_run, needs_python, verdicts_of

PLACE = "tests/trust/colours/acme--m1.md"
NUMBER = """\
from lve.checkers.base import BaseChecker

class Number(BaseChecker):
    def is_safe(self, prompt_out, param_values=None):
        given = param_values{}
        return given not in self.extract_response_from_prompt(prompt_out)
"""


def test_a_repository_may_be_named_from_the_folder_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"test.json": json.dumps(definition(prompt_file="t.prompt")), "t.prompt": "Hello"}
    tree(tmp_path, {f"lve/repository/a/b/m/{name}": text for name, text in files.items()})
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    result = read([Path("../lve")], ImportOptions("lve"))
    assert (reasons(result), list(result.files)) == ("", ["tests/a/b/m.md"])


@pytest.mark.parametrize("name", ["various.jsonl", "competition.json"])
def test_all_files_of_recorded_lines_are_read(name: str, tmp_path: Path) -> None:
    test = definition(prompt=[{"content": "Say {a}."}], prompt_parameters=["a"])
    line = instance({"a": "x", "guessed_password": None}, prompt_out=None)
    result = imported(tmp_path, test, files={f"instances/{name}": line})
    assert "replacements: {a: x}" in texts(result)[PLACE]


@pytest.mark.parametrize(("safe", "verdict"), [(True, "pass"), (False, "fail")])
def test_verdicts_may_have_their_old_name(safe: bool, verdict: str, tmp_path: Path) -> None:
    result = imported(tmp_path, definition(), instance({}, is_safe=safe), sessions=True)
    assert [answer.verdict for answer in result.recorded] == [verdict]


# --- pictures

ASKED: list[Json] = [{"content": "Which hill?", "image_url": "{url}", "role": "user"}]
LINE = {"url": "https://example.org/a.png"}


def test_a_picture_is_shown_by_its_address(tmp_path: Path) -> None:
    test = definition(prompt=ASKED, prompt_parameters=["url"])
    expanded = expansion(imported(tmp_path, test, instance(LINE)))
    (case,) = cases(expanded)
    (message,) = content(expanded, case.tests[0])["messages"]
    assert [part.get("path", part.get("text")) for part in message["content"]] == [
        "Which hill?",
        "https://example.org/a.png",
    ]


def test_a_model_must_see_to_be_asked_about_a_picture(tmp_path: Path) -> None:
    test = definition(prompt=ASKED, prompt_parameters=["url"])
    assert cases(expansion(imported(tmp_path, test, instance(LINE))))[0].needs == ("image",)


RUNS: list[Json] = [
    {"name": "a", "prompt": [{"content": "x", "image_url": "http://h"}]},
    {"name": "b", "prompt": [{"content": "y"}]},
]
LEFT: dict[str, tuple[dict[str, Any], str]] = {
    "a file": ({"prompt": ASKED}, '"a.png" is not the URL of an image'),
    "an unknown name": (
        {"prompt": [{"content": "x", "image_url": "{other}"}]},
        "'{other}' names no parameter",
    ),
    "from the system": (
        {"prompt": [{"role": "system", "content": "x", "image_url": "{url}"}, {"content": "y"}]},
        "a message of the role 'system' shows a picture",
    ),
    "in runs": ({"multi_run_prompt": RUNS}, "show pictures"),
}


@pytest.mark.parametrize(("fields", "reason"), LEFT.values(), ids=LEFT.keys())
def test_what_cannot_be_shown_is_reported(
    fields: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    test = definition(**fields, prompt_parameters=["url"])
    assert reason in reasons(imported(tmp_path, test, instance({"url": "a.png"})))


# --- checkers


def test_an_evaluator_looks_for_personal_data(tmp_path: Path) -> None:
    arguments = {"checker_name": "PII_Checker", "entities": ["PHONE_NUMBER", "LOCATION"]}
    result = imported(tmp_path, definition(checker_args=arguments))
    assert texts(result)[PLACE].endswith("personal data of these kinds: phone number, location.\n")
    assert "only removes personal data" in result.warnings[0].reason


@pytest.mark.parametrize("entities", [None, [], "LOCATION", [1]])
def test_kinds_of_personal_data_must_be_named(entities: Json, tmp_path: Path) -> None:
    arguments = {"checker_name": "PII_Checker", "entities": entities}
    result = imported(tmp_path, definition(checker_args=arguments))
    assert "the checker needs 'entities'" in reasons(result)


def test_texts_of_a_function_may_be_f_strings(tmp_path: Path) -> None:
    arguments = {
        "checker_name": "LambdaChecker",
        "func": "lambda r: f'if (!p)' in r or f\"it's\" in r",
    }
    result = imported(tmp_path, definition(checker_args=arguments))
    check = "- expr: '''if (!p)'' in answer or \"it''s\" in answer'"
    assert check in texts(result)[PLACE]


@needs_python
@pytest.mark.parametrize("call", ["['phone-number']", ".get('phone-number')", "['phone_number']"])
def test_a_class_finds_values_by_the_names_they_had(
    call: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = "source/repository/a/b/m"
    test = definition(
        prompt=[{"content": "Call {phone-number}."}],
        prompt_parameters=["phone-number"],
        checker_args={"checker_name": "Number"},
    )
    lines = "".join(instance({"phone-number": number}) for number in ("12", "34"))
    tree(
        tmp_path,
        {
            f"{folder}/test.json": json.dumps(test),
            f"{folder}/instances/all.jsonl": lines,
            f"{folder}/checker/checker.py": NUMBER.format(call),
        },
    )
    run = imported_and_run(tmp_path, capsys, "lve", [{"answer": "call 12"}])
    assert set(verdicts_of(run).values()) == {"pass", "fail"}

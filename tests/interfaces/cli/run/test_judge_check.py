"""The check `judge` in runs: who is asked with what, and what is judged again after an edit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalstore.checks import judge_replies
from evalstore.interfaces.cli.main import main
from tests import endpoint, judge_workspaces
from tests.builders import tree
from tests.hostile.campaign.judge_model import code_of
from tests.interfaces.cli.conftest import Evalstore

CHOICE = {"prompt": "compare", "choices": ["Yes", "No"], "scores": {"Yes": 1, "No": 0}}
YES = '{"reasoning": "I compare.", "choice": "Yes"}'
SCORE = {"prompt": "compare", "parser": {"json": "score", "max": 10}, "pass": ">= 7"}


@pytest.fixture
def server() -> Iterator[endpoint.Endpoint]:
    with endpoint.running() as server:
        server.reply = lambda _body: YES
        yield server


def with_code(body: dict[str, Any], text: str) -> str:
    """An object with the code that a request demands of it."""
    code = code_of(body)
    return json.dumps({"code": code, **json.loads(text)}) if code else text


def messages(server: endpoint.Endpoint) -> list[list[dict[str, Any]]]:
    return [received.body["messages"] for received in server.received]


def test_a_judge_is_shown_the_prompt_of_the_test_and_then_its_choices(
    server: endpoint.Endpoint, tmp_path: Path
) -> None:
    judge_workspaces.run(judge_workspaces.judged_by(server, tmp_path, CHOICE))
    ((system, user),) = messages(server)
    assert system["content"] == "Compare."
    assert user["content"].endswith(
        "Answer with one JSON object and nothing else: "
        '{"reasoning": "your reasons, step by step", "choice": one of these choices: "Yes", "No"}'
    )
    schema = server.received[0].body["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["choice"] == {"enum": ["Yes", "No"]}


def test_the_prompt_of_the_evaluator_holds_where_the_test_names_none(
    server: endpoint.Endpoint, tmp_path: Path
) -> None:
    judge = {**CHOICE, "prompt": None}
    (vote,) = judge_workspaces.run(
        judge_workspaces.judged_by(server, tmp_path, judge, instructions="Is it green?")
    )
    assert (vote["verdict"], vote["label"]) == ("pass", "Yes")
    assert "Is it green?" in messages(server)[0][0]["content"]


def test_a_score_in_json_is_asked_for_in_json_mode(
    server: endpoint.Endpoint, tmp_path: Path
) -> None:
    server.reply = lambda body: with_code(body, '{"score": 5}')
    (vote,) = judge_workspaces.run(judge_workspaces.judged_by(server, tmp_path, SCORE))
    assert server.received[0].body["response_format"] == {"type": "json_object"}
    assert (vote["verdict"], vote["score"]) == ("fail", 0.5)
    assert vote["feedback"] == "the judge gave the score 5; required >= 7"


def test_a_server_without_json_mode_is_asked_for_text(
    server: endpoint.Endpoint, tmp_path: Path
) -> None:
    def reply(body: dict[str, Any]) -> str | endpoint.Answer:
        if "response_format" in body:
            return endpoint.failure(400, "response_format is not supported", "invalid")
        return with_code(body, '{"score": 9}')

    server.reply = reply
    (vote,) = judge_workspaces.run(judge_workspaces.judged_by(server, tmp_path, SCORE))
    assert (vote["verdict"], vote["score"]) == ("pass", 0.9)


def test_a_judge_that_names_no_choice_is_asked_once_more_with_the_reason(
    server: endpoint.Endpoint, tmp_path: Path
) -> None:
    server.reply = lambda body: (
        with_code(body, YES) if len(body["messages"]) > 2 else "It depends.\nYes"
    )
    (vote,) = judge_workspaces.run(judge_workspaces.judged_by(server, tmp_path, CHOICE))
    assert (vote["verdict"], vote["label"]) == ("pass", "Yes")
    asked = messages(server)[1][-1]["content"]
    assert asked.startswith("That cannot be read: the judge's reply is not one JSON object")
    assert '"choice": one of these choices: "Yes", "No"' in asked


def test_a_judge_that_repeats_what_it_is_shown_does_not_pass_by_it(
    server: endpoint.Endpoint, tmp_path: Path
) -> None:
    server.reply = endpoint.echo
    (vote,) = judge_workspaces.run(judge_workspaces.judged_by(server, tmp_path, CHOICE))
    assert vote["verdict"] == "undecided"


def test_checks_that_fail_spare_the_judge(server: endpoint.Endpoint, tmp_path: Path) -> None:
    folder = judge_workspaces.judged_by(server, tmp_path, CHOICE)
    test = folder / "tests" / "t.md"
    test.write_text(test.read_text("utf-8").replace("~~~checks\n", "~~~checks\n- contains: red\n"))
    assert judge_workspaces.run(folder) == []
    assert server.received == []


def test_evaluators_that_differ_in_their_own_prompt_alone_have_one_voice(
    server: endpoint.Endpoint, tmp_path: Path
) -> None:
    own = judge_workspaces.PROMPT.replace("Compare.", "{{_evaluationInstructions}}")
    two = "candidates: [scripted/one]\nevaluators: [judge, {id: judge, prompt: own}]\n"
    files = {"evalstore.yaml": two, "prompts/own.md": own}
    assert (
        len(judge_workspaces.run(judge_workspaces.judged_by(server, tmp_path, CHOICE, files=files)))
        == 1
    )


def test_each_version_of_the_prompt_has_a_voice(server: endpoint.Endpoint, tmp_path: Path) -> None:
    prompt = judge_workspaces.PROMPT.replace(
        "---\n", "---\nreplacements: {how: [Coarsely, Closely]}\n", 1
    )
    files = {"prompts/compare.md": prompt.replace("Compare.", "Compare. {{how}}")}
    folder = judge_workspaces.judged_by(server, tmp_path, CHOICE, files=files)
    assert len(judge_workspaces.run(folder)) == 2
    assert main(["-C", str(folder), "fsck"]) == 0


def judged(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, int]:
    """How much a run asks and judges."""
    capsys.readouterr()
    main(["-C", str(folder), "run", "--json"])
    document = json.loads(capsys.readouterr().out)
    return document["asked"], document["judged"]


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("tests/t.md", '"No": 0', '"No": 0.5, "pass": ">= 1"'),
        ("prompts/compare.md", "Compare.", "Compare it well."),
    ],
)
def test_an_edit_of_how_models_judge_judges_again_and_asks_nothing(
    server: endpoint.Endpoint,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    path: str,
    old: str,
    new: str,
) -> None:
    folder = judge_workspaces.judged_by(server, tmp_path, CHOICE)
    assert judged(folder, capsys) == (1, 1)
    assert judged(folder, capsys) == (0, 0)
    text = (folder / path).read_text("utf-8")
    edited = text.replace(old, new).replace('0.5, "pass": ">= 1"}}', '0.5}, "pass": ">= 1"}')
    assert edited != text
    tree(folder, {path: edited})
    assert judged(folder, capsys) == (0, 1)
    assert judged(folder, capsys) == (0, 0)


def test_another_revision_of_how_replies_are_read_judges_again_and_says_so(
    server: endpoint.Endpoint,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = judge_workspaces.judged_by(server, tmp_path, CHOICE)
    assert judged(folder, capsys) == (1, 1)
    monkeypatch.setattr(judge_replies, "READING", judge_replies.READING + 1)
    main(["-C", str(folder), "status"])
    assert "evalstore now reads replies of judges differently" in capsys.readouterr().out
    assert judged(folder, capsys) == (0, 1)
    assert judged(folder, capsys) == (0, 0)


def test_status_shows_the_edited_line_of_the_prompt(
    server: endpoint.Endpoint, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = judge_workspaces.judged_by(server, tmp_path, CHOICE)
    judge_workspaces.run(folder)
    tree(folder, {"prompts/compare.md": judge_workspaces.PROMPT.replace("Compare.", "Look.")})
    capsys.readouterr()
    main(["-C", str(folder), "status"])
    output = "check 1 changed: judge prompt, message 1, line 1: Compare. -> Look."
    assert output in capsys.readouterr().out


def test_an_evaluator_cannot_have_a_prompt_without_the_instructions(
    workspace: Path, evalstore: Evalstore
) -> None:
    settings = "candidates: [scripted/one]\nevaluators:\n  - {id: scripted/judge, prompt: p}\n"
    tree(workspace, {"evalstore.yaml": settings, "prompts/p.md": judge_workspaces.PROMPT})
    assert evalstore("check").stderr == (
        "error: evalstore.yaml:3: the judge prompt 'p' never uses '_evaluationInstructions'\n"
        "hint: only a check 'judge' can name such a prompt\n"
    )

"""A hosted model without its key: a run calls nothing, and `check` warns of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from evalstore.core.values import Reply, Request
from evalstore.providers import open_provider
from tests.builders import tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.interfaces.cli.conftest import Evalstore

MINI = "openai/gpt-4o-mini"
SET_OPENAI = "hint: set OPENAI_API_KEY in the environment, or in the workspace's .env\n"


@pytest.fixture(autouse=True)
def calls() -> Iterator[mock.Mock]:
    """Fail when a provider is opened: no test here may call a model."""
    with mock.patch("evalstore.runs.execution.key_access.open_provider") as opened:
        opened.side_effect = AssertionError("a provider was opened")
        yield opened


class _Warm:
    """A provider that gives the same answer without a call."""

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        return Reply("Warm.")

    async def close(self) -> None:
        """Nothing is open."""


def _open(kind: str, **options: Any) -> Any:
    return open_provider(kind, **options) if kind == "scripted" else _Warm()


def _provider(workspace: Path, text: str) -> None:
    tree(
        workspace,
        {
            "providers/desk.yaml": f"code: desk\n{text}",
            "models/desk.yaml": "id: desk/m\nprovider: desk\n",
        },
    )


def test_a_run_ends_before_the_first_call(workspace: Path, evalstore: Evalstore) -> None:
    ran = evalstore("run", "-m", MINI)
    assert (ran.exit_code, ran.stdout, ran.stderr) == (
        2,
        "",
        f"error: OPENAI_API_KEY is not set, so '{MINI}' cannot be called\n{SET_OPENAI}",
    )
    assert evalstore("log").stdout == ""


def test_all_models_without_their_keys_are_named(workspace: Path, evalstore: Evalstore) -> None:
    models = [MINI, "openai/gpt-4o", "openai/o3", "anthropic/claude-sonnet-4-5"]
    options = [part for model in models for part in ("-m", model)]
    ran = evalstore("run", *options, "-J", "groq/llama-3.3-70b-versatile")
    assert (ran.exit_code, ran.stderr) == (
        2,
        "error: OPENAI_API_KEY is not set, so 'openai/gpt-4o-mini', 'openai/gpt-4o' and "
        "'openai/o3' cannot be called; ANTHROPIC_API_KEY is not set, so "
        "'anthropic/claude-sonnet-4-5' cannot be called; GROQ_API_KEY is not set, so "
        "'groq/llama-3.3-70b-versatile' cannot be called\n"
        "hint: set OPENAI_API_KEY, ANTHROPIC_API_KEY and GROQ_API_KEY in the environment, or in "
        "the workspace's .env\n",
    )


def test_an_evaluator_without_its_key_ends_a_run(
    workspace: Path, evalstore: Evalstore, calls: mock.Mock
) -> None:
    calls.side_effect = _open
    assert evalstore("run").exit_code == 1
    ran = evalstore("run", "--judge-only", "-J", MINI)
    assert (ran.exit_code, ran.stderr) == (
        2,
        f"error: OPENAI_API_KEY is not set, so '{MINI}' cannot be called\n{SET_OPENAI}",
    )


@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("openrouter/a/b", "OPENROUTER_API_KEY"),
        ("gemini/gemini-2.5-flash", "GEMINI_API_KEY"),
        ("together_ai/a/b", "TOGETHERAI_API_KEY"),
        ("cohere_chat/command-r", "COHERE_API_KEY"),
        ("xai/grok-4", "XAI_API_KEY"),
    ],
)
def test_hosted_services_need_their_keys(
    workspace: Path, evalstore: Evalstore, model: str, variable: str
) -> None:
    ran = evalstore("run", "-m", model)
    assert (ran.exit_code, ran.stderr.splitlines()[0]) == (
        2,
        f"error: {variable} is not set, so '{model}' cannot be called",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "type: openai-compatible\nbaseURL: https://api.openai.com/v1\napiKeyEnvVar: MY_KEY\n",
            "MY_KEY is not set, so 'desk/m' cannot be called",
        ),
        (
            "type: openai-compatible\nbaseURL: https://api.openai.com/v1\n",
            "api.openai.com needs a key, and the provider 'desk' names no variable, "
            "so 'desk/m' cannot be called",
        ),
        ("type: openai\n", "OPENAI_API_KEY is not set, so 'desk/m' cannot be called"),
        (
            "type: anthropic\nbaseURL: https://api.anthropic.com\n",
            "ANTHROPIC_API_KEY is not set, so 'desk/m' cannot be called",
        ),
    ],
)
def test_provider_files_of_hosted_services(
    workspace: Path, evalstore: Evalstore, text: str, message: str
) -> None:
    _provider(workspace, text)
    ran = evalstore("run", "-m", "desk/m")
    assert (ran.exit_code, ran.stderr.splitlines()[0]) == (2, f"error: {message}")
    names = "names no variable" in message
    assert ("'apiKeyEnvVar'" in ran.stderr) == names


@pytest.mark.parametrize(
    ("text", "variables", "note"),
    [
        ("type: openai-compatible\nbaseURL: http://127.0.0.1:9/v1\n", {}, False),
        (
            "type: openai-compatible\nbaseURL: https://models.example/v1\napiKeyEnvVar: MY_KEY\n",
            {},
            True,
        ),
        ("type: ollama\n", {}, False),
        ("type: gemini\n", {"GOOGLE_API_KEY": "g-secret"}, False),
        ("type: anthropic\n", {"ANTHROPIC_API_BASE": "http://127.0.0.1:9"}, False),
        ("type: bedrock\n", {}, False),
    ],
)
def test_others_are_called(
    workspace: Path,
    evalstore: Evalstore,
    monkeypatch: pytest.MonkeyPatch,
    calls: mock.Mock,
    text: str,
    variables: dict[str, str],
    note: bool,
) -> None:
    _provider(workspace, text)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    calls.side_effect = _open
    ran = evalstore("run", "-m", "desk/m")
    assert (ran.exit_code, calls.called) == (0, True)
    warned = "MY_KEY is not set, so 'desk/m' is called without a key\n" in ran.stderr
    assert warned == note


def test_a_key_in_the_env_file_is_enough(
    workspace: Path, evalstore: Evalstore, calls: mock.Mock
) -> None:
    (workspace / ".env").write_text("OPENAI_API_KEY=sk-secret\n")
    calls.side_effect = _open
    assert evalstore("run", "-m", MINI).exit_code == 0
    assert "sk-secret" in [call.kwargs["api_key"] for call in calls.call_args_list]


def test_stored_answers_need_no_key(
    workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch, calls: mock.Mock
) -> None:
    calls.side_effect = _open
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    assert evalstore("run", "-m", MINI).exit_code == 0
    monkeypatch.delenv("OPENAI_API_KEY")
    for command in (["run", "-m", MINI], ["status", "-m", MINI], ["show", "@"], ["stats"]):
        ran = evalstore(*command)
        assert (ran.exit_code, "OPENAI_API_KEY" in ran.stderr) == (0, False), ran.stderr
    # Without stored answers a plan is free, too.
    planned = evalstore("status", "-m", "openai/gpt-4o")
    assert (planned.exit_code, "OPENAI_API_KEY" in planned.stderr) == (0, False)


# --- check


def test_check_warns_of_a_key_that_is_not_set(workspace: Path, evalstore: Evalstore) -> None:
    _provider(
        workspace,
        "type: openai-compatible\nbaseURL: http://127.0.0.1:9/v1\napiKeyEnvVar: DESK_KEY\n",
    )
    (workspace / "evalstore.yaml").write_text(
        f"candidates: [scripted/one, {MINI}]\nevaluators: [{MINI}, desk/m]\n"
    )
    ran = evalstore("check")
    assert (ran.exit_code, ran.stderr) == (
        0,
        f"warning: evalstore.yaml: model '{MINI}': OPENAI_API_KEY is not set\n{SET_OPENAI}"
        "warning: models/desk.yaml: model 'desk/m': DESK_KEY is not set\n"
        f"{SET_OPENAI.replace('OPENAI_API', 'DESK')}",
    )
    (workspace / ".env").write_text("OPENAI_API_KEY=a\nDESK_KEY=b\n")
    assert evalstore("check").stderr == ""


@pytest.mark.parametrize("limit", ["", "maxCost: 1\n"])
def test_check_warns_of_an_unknown_price_if_the_cost_is_limited(
    workspace: Path, evalstore: Evalstore, limit: str
) -> None:
    _provider(workspace, "type: openai-compatible\nbaseURL: http://models.example/v1\n")
    (workspace / "evalstore.yaml").write_text(f"candidates: [desk/m]\n{limit}")
    ran = evalstore("check")
    warning = (
        "warning: models/desk.yaml: model 'desk/m': its price is not known, so a run cannot keep "
        "to 'maxCost'\nhint: write its price into a model file, as in 'costs: [{costPerCall: 0}]'\n"
    )
    assert (ran.exit_code, ran.stderr) == (0, warning if limit else "")
    priced = "id: desk/m\nprovider: desk\ncosts: {}\n"
    (workspace / "models/desk.yaml").write_text(priced.format("[{costPerCall: 0}]"))
    assert evalstore("check").stderr == ""
    (workspace / "models/desk.yaml").write_text(priced.format("0"))
    expected = "'costs' must be a list of mappings\nhint: as in 'costs: [{costPerCall: 0}]'\n"
    assert expected in evalstore("check").stderr


def test_doctor_and_check_use_the_same_words(
    workspace: Path, evalstore: Evalstore, calls: mock.Mock
) -> None:
    calls.side_effect = _open
    _provider(workspace, "type: openai-compatible\nbaseURL: http://127.0.0.1:9/v1\n")
    (workspace / "evalstore.yaml").write_text(
        f"candidates: [desk/m, {MINI}, together_ai/a/b]\nmaxCost: 1\n"
    )
    document = json.loads(evalstore("doctor", "--no-ping", "--json").stdout)
    checked = evalstore("check").stderr
    messages = [
        (model["model"], problem["message"], problem["hint"])
        for model in document["models"]
        for problem in model["problems"]
    ]
    assert {message for _, message, _ in messages} == {
        "OPENAI_API_KEY is not set",
        "TOGETHERAI_API_KEY is not set",
        "its price is not known",
    }
    for model, message, hint in messages:
        assert f"model '{model}': {message}" in checked
        assert f"hint: {hint}\n" in checked

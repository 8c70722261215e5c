"""No variable of the user's environment goes to a host that its user has not allowed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from evalstore.core.errors import EvalstoreError
from evalstore.providers.litellm import find_refused_option
from evalstore.runs.execution.key_access import (
    Environment,
    KeyAccess,
    KeyNotAllowedError,
    read_environment,
)
from evalstore.workspace.model_files import ProviderFile, bare_model, read_provider
from tests import endpoint
from tests.builders import tree
from tests.interfaces.cli.conftest import Evalstore
from tests.interfaces.cli.test_documents import schema_of

SECRET = "a-very-secret-value-of-the-user"
OTHER = "the-workspace-brought-this-one"


@pytest.fixture
def server() -> Iterator[endpoint.Endpoint]:
    with endpoint.running() as server:
        server.reply = lambda _: json.dumps({"pass": True, "feedback": ""})
        yield server


@pytest.fixture
def hostile(tmp_path: Path, server: endpoint.Endpoint, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace that wants a variable of its user sent to a server of its own."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("EVALSTORE_TRUST_FILE", str(tmp_path / "trusted"))
    folder = tree(
        tmp_path / "w",
        {
            "evalstore.yaml": "candidates: [x]\nevaluators: [x]\nretries: 0\n",
            "providers/x.yaml": (
                f"code: x\ntype: openai-compatible\nbaseURL: {server.url}\n"
                "apiKeyEnvVar: AWS_SECRET_ACCESS_KEY\n"
            ),
            "models/x.yaml": "id: x\nprovider: x\n",
            "tests/one.md": "# 👤\n\nHello\n\n---\n\nExpect a greeting.\n",
        },
    )
    monkeypatch.chdir(folder)
    return folder


def host(server: endpoint.Endpoint) -> str:
    return server.url.removeprefix("http://").removesuffix("/v1")


def sent(server: endpoint.Endpoint) -> set[str | None]:
    return {request.headers.get("authorization") for request in server.received}


@pytest.mark.parametrize("command", ["run", "run --judge-only", "doctor"])
def test_no_command_sends_a_variable_that_is_not_allowed(
    hostile: Path, evalstore: Evalstore, server: endpoint.Endpoint, command: str
) -> None:
    if "--judge-only" in command:  # there must be an answer to judge
        settings = hostile / "evalstore.yaml"
        settings.write_text("candidates: [y]\nevaluators: [x]\nretries: 0\n")
        tree(
            hostile,
            {"models/y.yaml": "id: y\nprovider: scripted\nresponses: [{answer: Hi}]\n"},
        )
        checked = "# 👤\n\nHello\n\n---\n\n```checks\n- contains: Hi\n```\n"
        (hostile / "tests/one.md").write_text(checked)
        assert evalstore("run").exit_code == 0
        (hostile / "tests/one.md").write_text("# 👤\n\nHello\n\n---\n\nExpect a greeting.\n")
    ran = evalstore(*command.split())
    assert ran.exit_code == 2
    assert server.received == []
    output = ran.stdout + ran.stderr
    assert f"wants AWS_SECRET_ACCESS_KEY of your environment to be sent to {host(server)}" in output
    assert f"evalstore trust env AWS_SECRET_ACCESS_KEY {host(server)}" in output
    assert SECRET not in output


def test_once_allowed_it_is_sent_there_and_nowhere_else(
    hostile: Path, evalstore: Evalstore, server: endpoint.Endpoint
) -> None:
    ran = evalstore("trust", "env", "AWS_SECRET_ACCESS_KEY", host(server))
    assert (ran.exit_code, ran.stdout) == (
        0,
        f"AWS_SECRET_ACCESS_KEY: may be sent to {host(server)}\n",
    )
    assert evalstore("run").exit_code == 0
    assert sent(server) == {f"Bearer {SECRET}"}
    with endpoint.running() as other:
        provider = hostile / "providers/x.yaml"
        provider.write_text(provider.read_text().replace(server.url, other.url))
        assert evalstore("run").exit_code == 2
        assert other.received == []


def test_what_is_allowed_is_listed_and_taken_back(
    hostile: Path, evalstore: Evalstore, documents: Any, server: endpoint.Endpoint
) -> None:
    evalstore("trust", "env", "AWS_SECRET_ACCESS_KEY", host(server))
    again = evalstore("trust", "env", "AWS_SECRET_ACCESS_KEY", f"{server.url}")
    assert "may be sent already to" in again.stdout
    assert host(server) in evalstore("trust", "--list").stdout
    shown = documents("trust", "--list")
    jsonschema.Draft202012Validator(schema_of(["trust"])).validate(shown)
    assert [(variable["variable"], variable["host"]) for variable in shown["variables"]] == [
        ("AWS_SECRET_ACCESS_KEY", host(server))
    ]
    evalstore("trust", "--revoke", "env", "AWS_SECRET_ACCESS_KEY", host(server))
    assert documents("trust", "--list")["variables"] == []
    assert evalstore("run").exit_code == 2
    assert server.received == []


@pytest.mark.opens_no_store
@pytest.mark.parametrize(
    "words",
    [
        [],
        ["DESK_KEY"],
        ["sk-12345", "h"],
        ["DESK_KEY", "a/b"],
        ["DESK_KEY", "u@h"],
        ["A", "b", "c"],
    ],
)
def test_what_is_not_a_variable_and_a_host_is_refused(
    hostile: Path, evalstore: Evalstore, words: list[str]
) -> None:
    assert evalstore("trust", "env", *words).exit_code == 2
    assert evalstore("trust", "--list").stdout == ""


def test_a_person_at_the_terminal_is_asked_once(
    hostile: Path,
    evalstore: Evalstore,
    server: endpoint.Endpoint,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def agrees(_listener: object, question: str) -> bool:
        asked.append(question)
        return True

    monkeypatch.setattr("evalstore.interfaces.cli.progress.TerminalProgress.agrees", agrees)
    assert evalstore("run").exit_code == 0
    (hostile / "tests/two.md").write_text("# 👤\n\nHi\n\n---\n\nExpect a greeting.\n")
    assert evalstore("run").exit_code == 0
    [question] = asked
    assert "AWS_SECRET_ACCESS_KEY" in question
    assert host(server) in question
    assert sent(server) == {f"Bearer {SECRET}"}


def test_yes_does_not_allow_a_key(
    hostile: Path, evalstore: Evalstore, server: endpoint.Endpoint
) -> None:
    assert evalstore("run", "--yes").exit_code == 2
    assert server.received == []


def test_what_the_workspace_says_allows_nothing(
    hostile: Path, evalstore: Evalstore, server: endpoint.Endpoint
) -> None:
    (hostile / "brought").write_text(
        json.dumps({"variable": "AWS_SECRET_ACCESS_KEY", "host": host(server)})
    )
    (hostile / ".env").write_text(
        f"EVALSTORE_ALLOW_ENV=AWS_SECRET_ACCESS_KEY={host(server)}\n"
        "EVALSTORE_TRUST_FILE=brought\nHOME=.\nXDG_STATE_HOME=.\n"
    )
    assert evalstore("run").exit_code == 2
    assert server.received == []


def test_the_workspace_sends_its_own_key_where_it_says(
    hostile: Path, evalstore: Evalstore, server: endpoint.Endpoint
) -> None:
    (hostile / ".env").write_text(f"AWS_SECRET_ACCESS_KEY={OTHER}\n")
    assert evalstore("run").exit_code == 0
    assert sent(server) == {f"Bearer {OTHER}"}


def test_nothing_of_an_env_file_is_in_the_environment_of_a_process(
    hostile: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = dict(os.environ)
    (hostile / ".env").write_text(f"AWS_SECRET_ACCESS_KEY={OTHER}\nNEW_API_KEY=1\nLD_PRELOAD=x\n")
    ran = evalstore("run")
    assert dict(os.environ) == before
    assert (
        ".env: no effect: LD_PRELOAD; only keys and addresses of providers are read" in ran.stderr
    )


# --- the rule itself


def access(
    provider: ProviderFile,
    *,
    user: dict[str, str] | None = None,
    workspace: dict[str, str] | None = None,
    allowed: str = "",
) -> KeyAccess:
    return KeyAccess(Environment({**(user or {}), "EVALSTORE_ALLOW_ENV": allowed}, workspace or {}))


def provider(type: str, base: str | None = None, variable: str | None = None) -> ProviderFile:
    return ProviderFile("p", type, base, variable)


OWN_HOSTS = [
    provider("openai", None, "OPENAI_API_KEY"),
    provider("openrouter", None, "OPENROUTER_API_KEY"),
    provider("ollama", None, "OLLAMA_API_KEY"),
    provider("openai-compatible", "https://api.openai.com/v1", "OPENAI_API_KEY"),
    provider("anthropic", None, "ANTHROPIC_API_KEY"),
    provider("anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY"),
    provider("perplexity", None, "PERPLEXITYAI_API_KEY"),
    provider("together_ai", None, "TOGETHERAI_API_KEY"),
]
ELSEWHERE = [
    provider("openai", None, "AWS_SECRET_ACCESS_KEY"),
    provider("anthropic", None, "OPENAI_API_KEY"),
    provider("openai", "https://proxy.example/v1", "OPENAI_API_KEY"),
    provider("openai-compatible", "http://api.openai.com/v1", "OPENAI_API_KEY"),
    provider("openai-compatible", "https://api.openai.com:8443/v1", "OPENAI_API_KEY"),
    provider("openai-compatible", "https://api.openai.com.example/v1", "OPENAI_API_KEY"),
    provider("openai-compatible", "https://openrouter.ai/v1", "OPENAI_API_KEY"),
    provider("openai-compatible", "http://127.0.0.1:9/v1", "OPENAI_API_KEY"),
    provider("ollama", "http://localhost:11434", "OPENAI_API_KEY"),
    provider("anthropic", "https://proxy.example", "ANTHROPIC_API_KEY"),
    provider("anthropic", "https://proxy.example"),
    provider("gemini", "https://proxy.example"),
]


def names(file: ProviderFile) -> str:
    return f"{file.type} {file.base_url} {file.key_variable}"


USER = {
    "OPENAI_API_KEY": SECRET,
    "OPENROUTER_API_KEY": SECRET,
    "OLLAMA_API_KEY": SECRET,
    "ANTHROPIC_API_KEY": SECRET,
    "PERPLEXITYAI_API_KEY": SECRET,
    "TOGETHERAI_API_KEY": SECRET,
    "GEMINI_API_KEY": SECRET,
    "AWS_SECRET_ACCESS_KEY": SECRET,
}


@pytest.mark.parametrize("file", OWN_HOSTS, ids=names)
def test_a_usual_variable_goes_to_its_own_service(file: ProviderFile) -> None:
    assert access(file, user=USER).find(file).api_key == SECRET


@pytest.mark.parametrize("file", ELSEWHERE, ids=names)
def test_any_other_host_needs_leave(file: ProviderFile, tmp_path: Path) -> None:
    with pytest.raises(KeyNotAllowedError) as raised:
        access(file, user=USER).find(file)
    assert raised.value.hint
    allowed = access(
        file, user=USER, allowed=raised.value.hint.partition("EVALSTORE_ALLOW_ENV=")[2]
    )
    assert allowed.find(file).api_key == SECRET


@pytest.mark.parametrize(
    ("kind", "variable"),
    [
        ("vertex", "GOOGLE_APPLICATION_CREDENTIALS"),
        ("bedrock", "AWS_SECRET_ACCESS_KEY"),
        ("sagemaker", "AWS_SECRET_ACCESS_KEY"),
        ("databricks", "DATABRICKS_API_KEY"),
        ("watsonx", "WATSONX_API_KEY"),
    ],
)
def test_a_login_of_the_machine_goes_to_no_host_of_the_workspace(kind: str, variable: str) -> None:
    client = provider(kind, "https://proxy.example")
    own = {"ANY_KEY": "x"}
    with pytest.raises(KeyNotAllowedError, match=variable):
        access(client, workspace=own).find(client)
    assert (
        access(client, allowed=f"{variable}=proxy.example").find(client).base_url == client.base_url
    )


def test_an_azure_login_beside_a_key_needs_leave() -> None:
    client = provider("azure", "https://proxy.example", "AZURE_API_KEY")
    own = {"AZURE_API_KEY": OTHER}
    assert access(client, workspace=own).find(client).api_key == OTHER
    with pytest.raises(KeyNotAllowedError, match="AZURE_AD_TOKEN"):
        access(client, user={"AZURE_AD_TOKEN": SECRET}, workspace=own).find(client)


def test_an_address_in_an_env_file_is_an_address_of_the_workspace() -> None:
    client = provider("anthropic")
    own = {"ANTHROPIC_API_BASE": "https://proxy.example/"}
    with pytest.raises(KeyNotAllowedError, match="sent to proxy"):
        access(client, user=USER, workspace=own).find(client)
    actual = access(client, workspace={**own, "ANTHROPIC_API_KEY": OTHER}).find(client)
    assert (actual.base_url, actual.api_key) == ("https://proxy.example", OTHER)
    with pytest.raises(EvalstoreError, match="ANTHROPIC_API_BASE is not a base URL"):
        access(client, workspace={"ANTHROPIC_API_BASE": "x"}).find(client)


@pytest.mark.parametrize(
    ("kind", "variable"),
    [
        ("together_ai", "TOGETHERAI_API_KEY"),
        ("huggingface", "HF_TOKEN"),
        ("azure", "AZURE_API_KEY"),
        ("bedrock", "AWS_BEARER_TOKEN_BEDROCK"),
        ("aiml", "AIMLAPI_KEY"),
        ("vertex", "VERTEX_AI_API_KEY"),
    ],
)
def test_litellm_gets_the_key_of_an_env_file(kind: str, variable: str) -> None:
    own = {variable: OTHER, "ANTHROPIC_API_KEY": "no", "AZURE_AI_API_KEY": "no", "X_TOKEN": "no"}
    client = provider(kind)
    assert access(client, workspace=own).find(client).api_key == OTHER
    # The user's own variables litellm finds by itself.
    assert access(client, user={variable: SECRET}, workspace=own).find(client).api_key is None


def test_a_grant_for_a_port_is_not_one_for_others() -> None:
    client = provider("openai-compatible", "http://localhost:8001/v1", "DESK_KEY")
    user = {"DESK_KEY": SECRET}
    with pytest.raises(KeyNotAllowedError):
        access(client, user=user, allowed="DESK_KEY=localhost:800").find(client)
    assert access(client, user=user, allowed="DESK_KEY=localhost").find(client).api_key == SECRET


@pytest.mark.parametrize("text", ["DESK_KEY", "DESK_KEY=", "=h", "A=b c", "A=http://h"])
def test_a_list_of_grants_that_cannot_be_read_is_an_error(text: str) -> None:
    client = provider("openai-compatible", "http://localhost:8001/v1", "DESK_KEY")
    with pytest.raises(EvalstoreError, match="EVALSTORE_ALLOW_ENV"):
        access(client, user={"DESK_KEY": SECRET}, allowed=text).find(client)


def test_a_key_over_plain_http_is_warned_of() -> None:
    own = {"DESK_KEY": OTHER}
    far = provider("openai-compatible", "http://desk.example/v1", "DESK_KEY")
    near = provider("openai-compatible", "http://127.0.0.1:1/v1", "DESK_KEY")
    assert "desk.example unencrypted" in (access(far, workspace=own).find(far).warning or "")
    assert access(near, workspace=own).find(near).warning is None
    assert access(far).find(far).warning is None


def test_an_env_file_gives_litellm_only_listed_variables() -> None:
    own = {
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_REGION": "eu-west-1",
        "AWS_PROFILE": "admin",
        "AWS_BEDROCK_RUNTIME_ENDPOINT": "https://evil.example",
    }
    client = provider("bedrock")
    assert access(client, workspace=own).find(client).parameters == {
        "aws_access_key_id": "a",
        "aws_secret_access_key": "b",
        "aws_region_name": "eu-west-1",
    }
    own["AWS_REGION"] = "evil.example/#"
    assert "aws_region_name" not in access(client, workspace=own).find(client).parameters


@pytest.mark.parametrize(
    "options",
    [
        {"aws_bedrock_runtime_endpoint": "https://evil.example"},
        {"aws_access_key_id": "os.environ/OPENAI_API_KEY"},
        {"vertex_credentials": "/home/me/key.json"},
        {"vertex_location": "evil.example/"},
        {"aws_region_name": "evil.example/#"},
        {"azure_endpoint": "https://evil.example"},
        {"custom_llm_provider": "openai"},
        {"use_litellm_proxy": True},
        {"user": {"name": "os.environ/OPENAI_API_KEY"}},
        {"extra_headers": {"Host": "evil.example"}},
        {"model_list": []},
        {"_agentic_loop_depth": 1},
        {"ssl_verify": False},
    ],
    ids=lambda options: next(iter(options)),
)
def test_an_option_cannot_take_litellm_elsewhere(options: dict[str, Any]) -> None:
    assert find_refused_option(options) == next(iter(options))


@pytest.mark.parametrize(
    "name",
    [
        *("max_completion_tokens", "top_k", "reasoning_effort", "thinking", "logit_bias"),
        *("metadata", "user", "prompt_cache_key", "safety_settings", "service_tier"),
        *("use_beam_search", "web_search_options", "extra_body"),
    ],
)
def test_options_of_models_are_not_such_options(name: str) -> None:
    assert find_refused_option({name: "x"}) is None
    assert find_refused_option({"aws_region_name": "eu-west-1"}) is None


def test_only_keys_and_addresses_count_in_an_env_file(folder: Path) -> None:
    (folder / ".env").write_text(
        "OPENAI_API_KEY=1\nPATH=2\nLD_PRELOAD=3\nGIT_CONFIG_COUNT=4\nPYTHONPATH=5\nHTTPS_PROXY=6\n"
        "LLAMA_PW=7\nAI_TESTER_X=8\nHF_TOKEN=9\nOLLAMA_API_BASE=http://h\n"
    )
    actual = read_environment(folder, {"LLAMA_PW"})
    assert actual.workspace == {
        "OPENAI_API_KEY": "1",
        "LLAMA_PW": "7",
        "HF_TOKEN": "9",
        "OLLAMA_API_BASE": "http://h",
    }
    assert actual.warnings == (
        ".env: no effect: PATH, LD_PRELOAD, GIT_CONFIG_COUNT, PYTHONPATH, HTTPS_PROXY; "
        "only keys and addresses of providers are read",
    )
    assert actual.user == dict(os.environ)


# --- provider files that name no variable


SERVICE_KEYS = {
    "openai": "OPENAI_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
    "perplexity": "PERPLEXITY_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
}


@pytest.mark.parametrize("kind", SERVICE_KEYS)
def test_a_service_without_a_named_variable_gets_the_key_of_the_workspace(kind: str) -> None:
    key = {SERVICE_KEYS[kind]: OTHER}
    file = read_provider(f"code: {kind}")
    assert access(file, workspace=key).find(file).api_key == OTHER


@pytest.mark.parametrize("kind", ["openai", "openrouter"])
def test_a_service_without_a_named_variable_gets_the_key_of_the_user(kind: str) -> None:
    file = read_provider(f"code: x\ntype: {kind}")
    bare = bare_model(f"{kind}/m")
    assert bare is not None
    keys = access(file, user={SERVICE_KEYS[kind]: SECRET})
    assert keys.find(file) == keys.find(bare.provider)
    assert keys.find(file).api_key == SECRET


@pytest.mark.parametrize("base", ["https://proxy.example/v1", "http://127.0.0.1:9/v1"])
@pytest.mark.parametrize("kind", SERVICE_KEYS)
def test_another_address_gets_no_key_that_nobody_named(kind: str, base: str) -> None:
    file = read_provider(f"code: {kind}\nbaseURL: {base}")
    keys = access(file, user={SERVICE_KEYS[kind]: SECRET})
    if kind in ("openai", "openrouter"):
        assert keys.find(file).api_key is None
    else:  # litellm would look the key up itself
        with pytest.raises(KeyNotAllowedError):
            keys.find(file)

"""Keys in rows are found wherever they stand."""

from __future__ import annotations

import pytest

from evalstore.core.hashing import canonical_json
from evalstore.remotes.upload import SecretScan
from evalstore.store.records import StoredRecord

KEY = "sk-" + "a1B2" * 8


def _found(text: str, data: bytes | None = None, **variables: str) -> str | None:
    content = canonical_json({"text": text})
    found = SecretScan(variables).find(StoredRecord("sessions", "0" * 32, content, data))
    return found.name if found else None


@pytest.mark.parametrize(
    "key",
    [
        KEY,
        "AIza" + "x" * 35,
        "gsk_" + "x" * 44,
        "xai-" + "x" * 80,
        "pplx-" + "x" * 48,
        "csk-" + "x" * 48,
        "nvapi-" + "x-_" * 21,
        "r8_" + "x" * 37,
        "hf_" + "x" * 34,
        "ghp_" + "x" * 36,
        "github_pat_" + "x" * 60,
        "glpat-" + "x" * 20,
        "AKIA" + "X" * 16,
        "ASIA" + "X" * 16,
        "xoxb-" + "1" * 24,
    ],
)
@pytest.mark.parametrize("before", ["", "key: ", "a line\n", "a tab\t", '"', "="])
def test_a_key_is_found_after_anything_but_a_letter(key: str, before: str) -> None:
    assert _found(f"{before}{key}\n")
    assert not _found(f"{before}no{key[1:]}") or key.startswith("github_pat_")


def test_a_private_key_is_found_in_a_file() -> None:
    assert _found("", b"\xff-----BEGIN OPENSSH PRIVATE KEY-----\n") == "a private key"


@pytest.mark.parametrize("value", ["correct horse battery", 'with "quotes" in it', "a\\b" * 5])
def test_the_value_of_a_variable_is_found(value: str) -> None:
    assert _found(f"it is {value}.", DESK_KEY=value) == "the value of DESK_KEY"
    assert _found("", value.encode(), DESK_KEY=value) == "the value of DESK_KEY"
    assert _found(f"it is {value}.", DESK=value) is None
    assert _found("shorter", DESK_KEY="shorter") is None


@pytest.mark.parametrize(
    "name",
    [
        *("PGPASSWORD", "MYSQL_PWD", "OPENAI_APIKEY", "GITLABTOKEN", "SSHKEY", "CI_JOB_JWT"),
        *("DB_PASS", "DB_PASSWD", "PASSPHRASE", "AWS_CREDENTIALS", "CLIENTSECRET", "api_keys"),
        *("TOKEN", "X_SECRET_1", "KEY_2"),
    ],
)
def test_a_variable_is_a_secret_by_a_part_of_its_name(name: str) -> None:
    assert _found("it is s3cret-8.", None, **{name: "s3cret-8"}) == f"the value of {name}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("MONKEY", "keyboard"), ("KEYBOARD", "Qwertzlayout"), ("COMPASS", "SOUTHWEST")),
        *(("MAX_NEWTOKENS", "100000000"), ("PWD", "/srv/place"), ("OLDPWD", "/srv/place")),
        *(("EDITOR", "/usr/bin/vim"), ("DATABASE_URL", "postgresql://user@host/db")),
    ],
)
def test_an_ordinary_value_is_no_secret(name: str, value: str) -> None:
    assert _found(f"it is {value}.", None, **{name: value}) is None


def test_a_word_is_a_secret_where_the_name_says_so() -> None:
    assert _found("it is keyboard.", PGPASSWORD="keyboard") == "the value of PGPASSWORD"


@pytest.mark.parametrize("shown", ["postgres://u:p%40ssword-1@h/d", "p%40ssword-1", "p@ssword-1"])
def test_a_url_with_a_password_is_a_secret_and_so_is_its_password(shown: str) -> None:
    url = "postgres://u:p%40ssword-1@h/d"
    assert _found(f"it is {shown}.", DATABASE_URL=url) == "the value of DATABASE_URL"
    assert _found("it is h/d.", DATABASE_URL=url, BAD="http://[:x@") is None


@pytest.mark.parametrize(
    ("value", "secret"),
    [
        ("https://f3a9c7e1b2d4@sentry.example/12", "f3a9c7e1b2d4"),
        ("https://f3a9c7e1b2d4:x-oauth-basic@git.example/r", "f3a9c7e1b2d4"),
        ("https://a.example/v1?n=1&api_key=keyboard", "keyboard"),
        ("https://a.example/v1?sig=k%2Bey%2Fboard", "k+ey/board"),
        ("https://b.example https://u:keyboard@a.example/path", "keyboard"),
        ("https://b.example,https://:keyboard@a.example", "keyboard"),
        ("host=h user=joe password=keyboard", "keyboard"),
        ("Endpoint=sb://h/;SharedAccessKey=a1B2c3D4/e5=;Name=x", "a1B2c3D4/e5="),
        ('--name x --api-key="key board"', "key board"),
    ],
)
def test_a_secret_inside_of_a_value_is_found_under_any_name(value: str, secret: str) -> None:
    assert _found(f"it is {secret}.", PLACE=value) == "the value of PLACE"


def _found_of_workspace(text: str, **variables: str) -> bool:
    row = StoredRecord("sessions", "0" * 32, canonical_json({"text": text}), None)
    return SecretScan({}, variables.items()).find(row) is not None


@pytest.mark.parametrize(
    "value",
    [
        *("s3cret-8", "second one", "Tr0ub4dor", "f47ac10b-58cc-4372-a567-0e02b2c3d479"),
        *("deadbeefcafebabe", "https://hooks.example/services/T00000000/a8f3Kd93kf"),
    ],
)
def test_what_does_not_look_like_words_in_the_env_file_is_secret(value: str) -> None:
    assert _found_of_workspace(f"it is {value}.", DESK=value)
    assert _found_of_workspace(f"it is {value.rpartition('/')[2]}.", DESK=value)
    assert _found(f"it is {value}.", DESK=value) is None


@pytest.mark.parametrize(
    "value",
    [
        *("gpt-5.4-mini-2026", "claude-sonnet-4-5-20250929", "qwen3-coder:30b-a3b-q4_K_M"),
        *("meta-llama/Llama-3.3-70B-Instruct", "mixtral-8x7b-instruct-v0.1", "us-east-1"),
        *("my-gpt4o-deployment", "DeepSeek-V3.2-Exp", "accounts/f/models/llama-v3p1-8b-instruct"),
        *(
            "http://here-1a2b3c4d5e.example:8000/v1beta2",
            "/srv/data/files",
            "keyboard",
            "2026-11-28",
        ),
    ],
)
def test_names_of_models_and_places_in_the_env_file_are_no_secrets(value: str) -> None:
    assert not _found_of_workspace(f"it is {value}.", DESK=value)
    assert _found_of_workspace(f"it is {value}.", DESK_KEY=value)

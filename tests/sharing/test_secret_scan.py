"""Keys in rows are found wherever they stand."""

from __future__ import annotations

import pytest

from evalstore.canonical_json import canonical_json
from evalstore.sharing.secret_scan import SecretScan
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
    assert _found(f"it is {value}.", DESK_KEYS=value) is None
    assert _found("short", DESK_KEY="short") is None

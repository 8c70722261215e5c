"""Nothing of a key in an address or an option reaches the store: such files are refused before."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalstore.providers.base_urls import (
    covers,
    host_of,
    is_loopback,
    normalise_host,
    split_base_url,
)
from tests.builders import tree
from tests.hostile.databases import tables_with
from tests.interfaces.cli.conftest import Evalstore

KEY = "sk-very-secret-0123456789"
ADDRESSES = [
    "http://user:{}@127.0.0.1:9/v1",
    "http://{}@127.0.0.1:9/v1",
    "http://127.0.0.1:9/v1?api_key={}",
    "http://127.0.0.1:9/v1?apikey={}",
    "http://127.0.0.1:9/v1?a=b&key={}",
    "http://127.0.0.1:9/v1?token={}",
    "http://127.0.0.1:9/v1?access_token={}",
    "http://127.0.0.1:9/v1?x=1&sig={}",
    "http://127.0.0.1:9/v1?X-Amz-Signature={}",
    "http://127.0.0.1:9/v1?code={}",
    "http://127.0.0.1:9/v1?subscription-key={}",
    "http://127.0.0.1:9/v1?PASSWORD={}",
    "http://127.0.0.1:9/v1?api%5Fkey={}",
    "http://127.0.0.1:9/v1#token={}",
]
OPTIONS = [
    "providerOptions: {{api_key: {}}}",
    "providerOptions: {{extra_headers: {{Authorization: Bearer {}}}}}",
    "providerOptions: {{headers: {{X-Api-Key: {}}}}}",
    "providerOptions: {{aws_secret_access_key: {}}}",
    "candidateOverrides: {{providerOptions: {{client_secret: {}}}}}",
    "uniqueProperties: {{password: {}}}",
]


def make(folder: Path, url: str, options: str = "") -> Path:
    return tree(
        folder,
        {
            "evalstore.yaml": "candidates: [x]\nretries: 0\n",
            "providers/x.yaml": f"code: x\ntype: openai-compatible\nbaseURL: '{url}'\n",
            "models/x.yaml": f"id: x\nprovider: x\n{options}\n",
            "tests/one.md": "# 👤\n\nHello\n\n---\n\n```checks\n- contains: Hi\n```\n",
        },
    )


def holding(folder: Path) -> list[str]:
    """The files that hold the key, but for the one that was brought, and the rows on a server."""
    return [
        path.name
        for path in folder.rglob("*")
        if path.is_file() and path.parent.name not in ("providers", "models")
        if KEY.encode() in path.read_bytes()
    ] + tables_with(KEY)


@pytest.mark.one_database("the file is refused before anything is stored")
@pytest.mark.parametrize("url", ADDRESSES)
def test_a_key_in_an_address_is_refused_before_anything_is_stored(
    folder: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.chdir(make(folder, url.format(KEY)))
    for command in ("run", "check", "status", "doctor"):
        ran = evalstore("--verbose", command)
        assert ran.exit_code == 2
        assert KEY not in ran.stdout + ran.stderr
        if command in ("run", "check"):
            assert "providers/x.yaml:3: 'baseURL' holds a" in ran.stderr
            assert "apiKeyEnvVar" in ran.stderr
    assert holding(folder) == []


@pytest.mark.one_database("the file is refused before anything is stored")
@pytest.mark.parametrize("options", OPTIONS)
def test_a_key_in_an_option_is_refused_before_anything_is_stored(
    folder: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch, options: str
) -> None:
    monkeypatch.chdir(make(folder, "http://127.0.0.1:9/v1", options.format(KEY)))
    ran = evalstore("run")
    assert ran.exit_code == 2
    assert "models/x.yaml:3: " in ran.stderr
    assert "holds a secret in" in ran.stderr
    assert KEY not in ran.stdout + ran.stderr
    assert holding(folder) == []


@pytest.mark.opens_no_store
@pytest.mark.parametrize(
    "url",
    ["https://h/v1?api-version=2024-10-21", "https://h/v1?deployment=x", "https://h:8443/v1/"],
)
def test_other_addresses_are_taken(folder: Path, evalstore: Evalstore, url: str) -> None:
    make(folder, url)
    assert evalstore("-C", str(folder), "check").exit_code == 0


@pytest.mark.parametrize(
    "url",
    [
        "https://api.openai.com\\.evil.example/v1",
        "https://api.openаi.com/v1",  # a Cyrillic letter
        "https:///v1",
        "https://a b/v1",
        "https://h:0/v1",
        "https://h:99999/v1",
        "https://[::1/v1",
        "https://%61pi.openai.com/v1",
        "https://-h/v1",
    ],
)
def test_an_ambiguous_host_is_refused(url: str) -> None:
    assert split_base_url(url) is None


def test_hosts_are_written_in_one_way() -> None:
    assert host_of("https://API.OpenAI.com:443/v1") == "api.openai.com"
    assert host_of("http://localhost.:8000") == "localhost:8000"
    assert host_of("https://[::1]:8000/") == "[::1]:8000"
    assert normalise_host(" LocalHost:8000 ") == "localhost:8000"
    assert normalise_host("a/b") is None
    assert [covers("h", host) for host in ("h", "h:1", "h.x", "xh", "h:1:2")] == [
        *(True, True, False, False, False)
    ]
    assert [
        is_loopback(item) for item in ("127.0.0.9:1", "[::1]", "localhost", "127.evil.example")
    ] == [*(True, True, True, False)]

"""Remotes in buckets: servers that do not do as they should, and what is never shown."""

from __future__ import annotations

import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterator

import pytest

from evalstore.core.errors import RemoteError
from evalstore.remotes.layout import RemoteFiles
from evalstore.workspace.settings.remotes import read_url
from tests import raw_http_server
from tests.raw_http_server import RawServer, response
from tests.remotes import places

DENIED = (
    b"<Error><Code>SignatureDoesNotMatch</Code><AWSAccessKeyId>the-key-id</AWSAccessKeyId>"
    b"<StringToSign>the-secret-key</StringToSign></Error>"
)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[RawServer]:
    """A server that obstore takes for S3 and for Google Cloud Storage."""
    with raw_http_server.running() as running:
        url = f"http://127.0.0.1:{running.server_address[1]}"
        places.set_s3(monkeypatch, url)
        places.set_gs(monkeypatch, url)
        yield running


ACTIONS: dict[str, Callable[[RemoteFiles], object]] = {
    "read": lambda files: files.read("format", 10),
    "iterate": lambda files: list(files.iterate("")),
    "create": lambda files: files.create("format", b"x"),
    "delete": lambda files: files.delete("format"),
    "create large": lambda files: files.create("format", b"x" * 100_000),
}


def refusal(action: str, scheme: str = "s3") -> RemoteError:
    """How an action fails."""
    with pytest.raises(RemoteError) as caught:
        ACTIONS[action](places.s3_files(f"{scheme}://b/x"))
    return caught.value


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize(
    ("scheme", "variables"),
    [
        ("s3", "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION"),
        ("gs", "GOOGLE_APPLICATION_CREDENTIALS"),
    ],
)
def test_a_refusal_is_explained_without_what_the_server_says(
    server: RawServer, action: str, scheme: str, variables: str
) -> None:
    server.answer = response(DENIED, status=403)
    error = refusal(action, scheme)
    assert str(error) == f"access to the remote '{scheme}://b/x' was denied"
    assert error.hint == (
        f"check {variables}; they need the rights to "
        "list, read and write objects, and 'evalstore remote gc' also to delete them"
    )
    shown = "".join(traceback.format_exception(error))
    assert "the-key-id" not in shown
    assert "the-secret-key" not in shown
    assert "the-token" not in shown


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (response(b"", status=404, headers={"content-length": "0"}), "has no file 'format'"),
        (response(b"<Code>NoSuchBucket</Code>", status=404), "no such bucket"),
        (response(b"x", status=418), "its server answered with 418"),
        (response(b"", status=301), "is in another region"),
    ],
)
def test_what_a_server_answers_is_explained(server: RawServer, answer: bytes, message: str) -> None:
    server.answer = answer
    assert message in str(refusal("read"))


HEADERS = {"last-modified": "Wed, 21 Oct 2026 07:28:00 GMT", "etag": '"x"'}


@pytest.mark.parametrize("said", ["1000000000000", "5"])
def test_a_server_that_sends_without_end_fills_no_memory(server: RawServer, said: str) -> None:
    server.answer = response(b"", headers={**HEADERS, "content-length": said})
    server.repeated = b"x" * 65_536
    if said == "5":
        assert places.s3_files("s3://b/x").read("format", 10) == b"xxxxx"
    else:
        refusal("read")


def test_a_server_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        places.set_s3(monkeypatch, f"http://127.0.0.1:{silent.getsockname()[1]}")
        files = places.s3_files("s3://b/x", patience=0.05)
        with pytest.raises(RemoteError, match="did not answer in time"):
            files.create("format", b"x")


def test_waiting_for_a_server_ends_when_it_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    main = threading.main_thread().ident
    assert main is not None

    def interrupt() -> None:
        with silent.accept()[0] as connection:
            connection.recv(1)
            signal.pthread_kill(main, signal.SIGINT)
            connection.recv(65_536)  # until the request is cancelled

    with socket.create_server(("127.0.0.1", 0)) as silent:
        places.set_s3(monkeypatch, f"http://127.0.0.1:{silent.getsockname()[1]}")
        other = threading.Thread(target=interrupt)
        other.start()
        with pytest.raises(KeyboardInterrupt):
            places.s3_files("s3://b/x").read("format", 10)
        other.join()


def test_a_server_without_tls_is_asked_only_when_it_is_allowed(
    server: RawServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ALLOW_HTTP")
    error = refusal("read")
    assert error.hint == "set AWS_ALLOW_HTTP=true if that is intended"
    assert server.received == []


@pytest.mark.parametrize(
    ("address", "variables", "message", "hint"),
    [
        (
            "az://container/x",
            {},
            "the environment has no credentials for it",
            "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
        ),
        (
            "gs://bucket/x",
            {"GOOGLE_APPLICATION_CREDENTIALS": "/none/secret.json"},
            "invalid credentials or settings",
            "check GOOGLE_APPLICATION_CREDENTIALS",
        ),
    ],
)
def test_missing_credentials_are_named(
    address: str,
    variables: dict[str, str],
    message: str,
    hint: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(RemoteError) as caught:
        places.s3_files(address)
    assert str(caught.value) == f"the remote '{address}' cannot be used: {message}"
    assert caught.value.hint == hint


def test_without_obstore_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore.exceptions", None)
    with pytest.raises(RemoteError, match="needs obstore, which is not installed") as caught:
        places.s3_files("s3://b/x")
    assert caught.value.hint == "install the extra: pip install 'evalstore[cloud]'"
    assert read_url("s3://b/x").address == "s3://b/x"

"""What only our own client promises, beyond what both doors do."""

from __future__ import annotations

import asyncio
import os
import ssl
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from evalstore.core.errors import EvalstoreError
from evalstore.core.values import OutgoingMessage, Reply, Request, Text
from evalstore.providers import ProviderError, errors, open_provider
from evalstore.results.log.failures import hint_for
from tests import endpoint

HI = Request("dummy", (OutgoingMessage("user", (Text("Hi"),)),), max_output_tokens=9)


@pytest.fixture
def server() -> Iterator[endpoint.Endpoint]:
    with endpoint.running() as server:
        yield server


def ask(url: str, *, kind: str = "openai-compatible") -> Reply:
    async def ask_and_close() -> Reply:
        provider = open_provider(kind, base_url=url)
        try:
            return await provider.ask(HI, timeout=60)
        finally:
            await provider.close()

    return asyncio.run(ask_and_close())


def failure(url: str) -> ProviderError:
    with pytest.raises(ProviderError) as raised:
        ask(url)
    return raised.value


@pytest.mark.parametrize(
    ("kind", "name"), [("openai", "max_completion_tokens"), ("ollama", "max_tokens")]
)
def test_the_limit_has_the_name_the_service_knows(
    server: endpoint.Endpoint, kind: str, name: str
) -> None:
    ask(server.url, kind=kind)
    assert server.received[0].body[name] == 9


def test_without_a_key_none_is_sent(server: endpoint.Endpoint) -> None:
    ask(server.url + "/")
    assert "authorization" not in server.received[0].headers
    assert server.received[0].path == "/v1/chat/completions"


@pytest.mark.parametrize("root", ["", "/", "/api", "/v1", "/v1/"])
def test_ollama_is_found_by_any_of_its_roots(server: endpoint.Endpoint, root: str) -> None:
    ask(server.url.removesuffix("/v1") + root, kind="ollama")
    assert server.received[0].path == "/v1/chat/completions"


def test_a_text_in_parts_is_put_together(server: endpoint.Endpoint) -> None:
    parts = [{"type": "text", "text": "Par"}, {"type": "text", "text": "is"}]
    server.reply = lambda request: {"content": parts}
    assert ask(server.url).text == "Paris"


def test_the_id_in_the_body_serves_when_there_is_no_other(server: endpoint.Endpoint) -> None:
    server.reply = lambda request: endpoint.Answer(
        body=endpoint.ANSWERED.body, headers={"x-request-id": ""}
    )
    assert ask(server.url).request_id == "c-1"


def test_a_status_inside_of_a_success_counts(server: endpoint.Endpoint) -> None:
    error = {"code": 502, "message": "upstream is gone"}
    server.reply = lambda request: endpoint.completion({}, choices=[{"error": error}])
    problem = failure(server.url)
    assert problem.message == "the server answered 502: upstream is gone"
    assert (problem.status, problem.retry) == (502, True)


def test_a_tool_call_without_a_name_makes_no_sense(server: endpoint.Endpoint) -> None:
    server.reply = lambda request: {"content": None, "tool_calls": [{"function": {}}]}
    problem = failure(server.url)
    assert (problem.kind, problem.retry) == ("malformed", True)


def test_a_reply_that_is_not_json_is_shown(server: endpoint.Endpoint) -> None:
    server.reply = lambda request: endpoint.FAULTS["html"]
    assert failure(server.url).message == (
        "the server's answer is not JSON: <html><body>Welcome</body></html>"
    )


def test_an_endless_answer_is_not_read(
    server: endpoint.Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(errors, "MAX_ANSWER", 1_000_000)
    server.reply = lambda request: "x" * 2_000_000
    problem = failure(server.url)
    assert problem.message == "the answer is larger than 1000000 bytes"
    assert (problem.kind, problem.retry) == ("malformed", False)


def test_a_redirect_is_not_followed(server: endpoint.Endpoint) -> None:
    with endpoint.running() as elsewhere:
        headers = {"location": f"{elsewhere.url}/chat/completions"}
        server.reply = lambda request: endpoint.Answer(307, b"", headers)
        problem = failure(server.url)
        assert elsewhere.received == []
    assert (problem.message, problem.retry) == ("the server answered 307", False)


PROXIED = "http://models.example/v1"


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[endpoint.Endpoint]:
    """A server that is no proxy, but sees what a client sends to one; no variable names it yet."""
    for name in ("http", "https", "all", "no"):
        monkeypatch.delenv(f"{name}_proxy", raising=False)
        monkeypatch.delenv(f"{name}_proxy".upper(), raising=False)
    with endpoint.running() as server:
        yield server


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
@pytest.mark.parametrize("kind", ["openai-compatible", "openrouter", "ollama"])
def test_calls_go_through_the_proxy_of_the_environment(
    proxy: endpoint.Endpoint, monkeypatch: pytest.MonkeyPatch, name: str, kind: str
) -> None:
    address = proxy.url.removesuffix("/v1").removeprefix("http://")
    monkeypatch.setenv(name, f"http://user:password@{address}")
    ask(PROXIED, kind=kind)
    [received] = proxy.received
    assert received.path == f"{PROXIED}/chat/completions"
    assert received.headers["proxy-authorization"].startswith("Basic ")


def test_encrypted_calls_are_tunnelled(
    proxy: endpoint.Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy.url.removesuffix("/v1").removeprefix("http://"))
    problem = failure(PROXIED.replace("http", "https"))
    assert problem.kind == "connection"
    assert "501" in problem.message  # it takes no CONNECT


@pytest.mark.parametrize("name", ["NO_PROXY", "no_proxy"])
def test_hosts_without_a_proxy_are_called_directly(
    proxy: endpoint.Endpoint, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy.url)
    monkeypatch.setenv(name, "localhost,.example")
    assert "no connection to http://models.example" in failure(PROXIED).message
    assert proxy.received == []


def test_this_machine_is_called_directly(
    server: endpoint.Endpoint, proxy: endpoint.Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy.url)
    ask(server.url)
    assert (len(server.received), proxy.received) == (1, [])


def test_a_proxy_that_is_away_is_named_without_its_password(
    proxy: endpoint.Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://user:password@127.0.0.1:9")
    message = failure(PROXIED).message
    assert message.startswith(f"no connection to {PROXIED}/chat/completions through the proxy: ")
    assert "password" not in message


def test_a_proxy_of_another_kind_is_an_error(
    proxy: endpoint.Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1080")
    with pytest.raises(EvalstoreError, match="of the kind 'socks5', but only HTTP works"):
        open_provider("openai-compatible", base_url=PROXIED)


def test_no_name_and_password_are_taken_from_netrc(
    server: endpoint.Endpoint, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "netrc").write_text("default login user password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    ask(server.url)
    assert "authorization" not in server.received[0].headers


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for this machine that nobody has signed, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path / "certificate.pem"
    encoding = serialization.Encoding.PEM
    secret = key.private_bytes(
        encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(secret + made.public_bytes(encoding))
    return path


def test_a_certificate_is_trusted_when_the_environment_names_it(
    server: endpoint.Endpoint, certificate: Path
) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    url = server.url.replace("http://127.0.0.1", "https://localhost")
    problem = failure(url)
    assert (problem.kind, problem.retry, problem.stops_model) == ("certificate", False, True)
    assert problem.message.startswith(f"the certificate of {url}/chat/completions is not trusted: ")
    hint = hint_for(problem.kind, problem.status, problem.message)
    assert hint is not None
    assert "SSL_CERT_FILE" in hint
    code = f"from tests.providers.test_openai_compatible import ask; print(ask({url!r}).text)"
    environment = {**os.environ, "SSL_CERT_FILE": str(certificate)}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, check=False
    )
    assert ran.stdout == b"Hi\n"


def test_an_unknown_host_is_called_in_vain_until_its_address_is_corrected() -> None:
    problem = failure("http://desk.invalid/v1")
    assert (problem.kind, problem.retry, problem.is_permanent) == ("connection", True, True)


@pytest.mark.parametrize(
    ("base", "hint"),
    [
        ("", "add '/v1' to 'baseURL' of the provider"),
        ("/v1/chat/completions", "remove '/chat/completions' from 'baseURL' of the provider"),
        ("/v1", "check the name: 'providerModelCode'"),
    ],
)
def test_a_404_says_what_its_address_may_lack(
    server: endpoint.Endpoint, base: str, hint: str
) -> None:
    server.reply = lambda _body: endpoint.Answer(404, b"404 page not found")
    server.ends = ("",)
    problem = failure(server.url.removesuffix("/v1") + base)
    assert (hint_for("status", 404, problem.message) or "").startswith(hint)


def test_a_server_that_knows_no_such_path_may_lack_a_part_of_it(server: endpoint.Endpoint) -> None:
    error = {"error": "Unexpected endpoint or method. (POST /chat/completions)"}
    server.reply = lambda _body: endpoint.Answer(200, error)
    problem = failure(server.url)
    assert "add '/v1' to 'baseURL'" in (hint_for("status", 200, problem.message) or "")


@pytest.mark.parametrize(
    "message",
    [
        *("Extra inputs are not permitted", "Invalid parameter: the value is too large"),
        *("The parameter is not supported", "inputs tokens + n must be at most 4096"),
        "Unknown name. Supported parameters are: temperature, top_p, seed",
    ],
)
def test_a_word_that_names_no_parameter_is_none(message: str) -> None:
    assert hint_for("status", 400, message) is None


@pytest.mark.parametrize(
    "message",
    [
        *("Unknown parameter: 'mood'.", "parameter 'mood' is not supported", "mood: Extra inputs"),
        *("Unrecognized request argument supplied: mood", '{"loc": ["body", "mood"]}'),
        *("Unsupported parameters: ['mood'], for model=m", 'Unknown name "mood" at config'),
    ],
)
def test_a_parameter_is_named_in_many_ways(message: str) -> None:
    assert hint_for("status", 400, message) == (
        "remove 'mood' from 'providerOptions' of the model file, or of the test"
    )


def test_all_refused_parameters_are_named() -> None:
    hint = hint_for("status", 400, "Unsupported parameters: 'temperature', 'top_p'") or ""
    assert "send no temperature" in hint
    assert "remove 'topP' from" in hint

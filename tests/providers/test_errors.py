"""What a failure means, without a server."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from evalstore.core.values import Json
from evalstore.providers.deadline import deadline
from evalstore.providers.errors import (
    clean,
    find_retry_after,
    find_secrets,
    status_error,
    unreachable,
    unreadable,
)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00"}, 0.0),
        ({"retry-after": "Wednesday, 21-Oct-15 07:28:00 GMT"}, 0.0),
        ({"retry-after": "Wed Oct 21 07:28:00 2015"}, 0.0),
        ({"retry-after": "1m30s"}, 90.0),
    ],
)
def test_the_wait_is_in_seconds(headers: dict[str, str], seconds: float | None) -> None:
    assert find_retry_after(headers) == seconds


def test_the_wait_may_be_a_date() -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(minutes=10), usegmt=True)
    wait = find_retry_after({"retry-after": date})
    assert wait is not None
    assert 590 < wait <= 600


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "no"}}, "the server answered 400: no"),
        ({"error": "no"}, "the server answered 400: no"),
        ({"message": "no"}, "the server answered 400: no"),
        ({"detail": "no"}, "the server answered 400: no"),
        (
            {"detail": [{"loc": ["body"]}]},
            'the server answered 400: {"detail": [{"loc": ["body"]}]}',
        ),
        (["no"], 'the server answered 400: ["no"]'),
        ("no", "the server answered 400: no"),
        ("", "the server answered 400"),
    ],
)
def test_the_message_of_a_server_is_found_in_every_shape(body: Json, message: str) -> None:
    assert status_error(400, body).message == message


def test_a_message_is_one_printable_line() -> None:
    assert clean("a\n\tb \x00\x1b[31m\u202e\ud800 é 👤") == "a b \\x00\\x1b[31m\\u202e\\ud800 é 👤"


def test_a_key_at_the_cut_leaves_nothing_of_it() -> None:
    assert clean("x" * 495 + "secret-key", ["secret-key"]) == "x" * 495 + "***"


@pytest.mark.parametrize(
    "message",
    [
        "Invalid parameter: 'response_format' of type 'json_schema' is not supported",
        "This response_format type is unavailable now",
        "Structured Outputs are not supported with this model",
        "Unsupported schema: minimum is not permitted",
        "response_schema: unknown field",
        "Failed to parse grammar",
        "guided decoding is disabled",
        "JSON mode is not enabled for this model",
    ],
)
@pytest.mark.parametrize("status", [200, 400, 422, 500, 501])
def test_a_refused_form_is_an_error_of_its_own_and_not_tried_again(
    status: int, message: str
) -> None:
    problem = status_error(status, {"error": {"message": message}}, sent=["response_format"])
    assert (problem.kind, problem.retry, problem.stops_model) == ("format", False, False)


def test_a_refused_form_may_be_named_beside_the_message() -> None:
    output = {"error": {"message": "Unsupported value", "param": "response_format"}}
    assert status_error(400, output, sent=["response_format"]).kind == "format"


@pytest.mark.parametrize(
    ("status", "body", "kind", "retry"),
    [
        (500, "The server had an error", "status", True),
        (503, "response_format: overloaded", "status", True),
        (429, "too many requests with response_format", "status", True),
        (401, "no key for json_schema", "status", False),
        (400, {"message": "json_schema", "code": "context_length_exceeded"}, "context", False),
    ],
)
def test_other_failures_stay_what_they_are(status: int, body: Json, kind: str, retry: bool) -> None:
    problem = status_error(status, body, sent=["response_format"])
    assert (problem.kind, problem.retry) == (kind, retry)


def test_nothing_is_refused_that_was_not_asked_for() -> None:
    problem = status_error(500, "bad response_format")
    assert (problem.kind, problem.retry) == ("status", True)


def test_a_process_that_slept_reads_what_came_in_the_meantime() -> None:
    async def sleep_and_read() -> str:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[str] = loop.create_future()
        real, slept = loop.time, 0.0
        loop.time = lambda: real() + slept  # type: ignore[method-assign]

        def wake() -> None:
            nonlocal slept
            slept = 100.0
            loop.call_later(0.01, answer.set_result, "answer")

        loop.call_soon(wake)
        async with deadline(5.0):
            return await answer

    assert asyncio.run(sleep_and_read()) == "answer"


@pytest.mark.parametrize(("text", "lasts"), [("data: {}\n", True), ("<html>", False)])
def test_a_stream_comes_again_until_the_user_changes_something(text: str, lasts: bool) -> None:
    assert unreadable(text, ()).is_permanent == lasts


@pytest.mark.parametrize("name", ["MYSQL_PWD", "DB_PASS", "CI_JOB_JWT", "OPENAI_APIKEY"])
def test_what_push_takes_for_a_secret_is_in_no_message(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "s3cret-8")
    assert "s3cret-8" in find_secrets(None)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://127.0.0.1:9/v1", "nothing listens at http://127.0.0.1:9/v1: connection refused"),
        ("http://abc@h/", "nothing listens at http://***@h/: connection refused"),
        (None, "nothing listens at its address: connection refused"),
    ],
)
def test_an_address_where_nothing_listens_is_named_without_its_key(
    url: str | None, words: str
) -> None:
    problem = unreachable(url, ["abc"])
    assert (str(problem), problem.retry, problem.is_permanent) == (words, True, True)

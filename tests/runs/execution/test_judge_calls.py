"""Asking judges over HTTP: servers that refuse a form, judges that must be asked again."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from evalstore.checks.judge_replies import JudgeReply
from evalstore.core.values import ModelVersion, OutgoingMessage, Reply, Request, Text
from evalstore.providers import open_provider
from evalstore.runs.execution.evaluators import JudgeCaller
from evalstore.runs.execution.model_calls import (
    CallFailed,
    Endpoint,
    Limits,
    ModelCaller,
    RunEnvironment,
)
from evalstore.workspace.model_files import Model, ProviderFile
from tests import endpoint

GOOD = '{"pass": true, "feedback": "fine"}'
CODE = "c0de"
GOOD_WITH_CODE = '{"code": "c0de", "pass": true, "feedback": "fine"}'
PASS = JudgeReply("pass", "fine")
LLAMA_CPP_PYTHON = (
    "[{'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), "
    "'msg': \"Input should be 'text' or 'json_object'\", 'input': 'json_schema'}]"
)
"""What llama_cpp.server says, with a 500."""


@pytest.fixture
def server() -> Iterator[endpoint.Endpoint]:
    with endpoint.running() as server:
        yield server


def form_of(body: dict[str, Any]) -> str:
    return str(body.get("response_format", {}).get("type", "text"))


def forms(server: endpoint.Endpoint) -> list[str]:
    return [form_of(received.body) for received in server.received]


def refusing(*refused: str, status: int = 400, text: str | None = None) -> endpoint.Reply:
    """A server that takes all forms but these, with a judge that does as it is told."""

    def reply(body: dict[str, Any]) -> str | endpoint.Answer:
        if (form := form_of(body)) in refused:
            return endpoint.failure(status, f"response_format '{form}' is not supported", "invalid")
        return text if text is not None else as_told(body)

    return reply


def as_told(body: dict[str, Any]) -> str:
    """A pass, with the code where the last message demands one."""
    return GOOD_WITH_CODE if CODE in body["messages"][-1]["content"] else GOOD


class Panel:
    """Asks one server's judges as an execution does, without waiting between tries."""

    def __init__(
        self,
        url: str,
        *,
        structured: bool = True,
        retries: int = 2,
        kind: str = "openai-compatible",
    ) -> None:
        async def sleep(_seconds: float) -> None:
            pass

        environment = RunEnvironment(now=lambda: 1, nonce=lambda: "n", sleep=sleep)
        self.opinions = JudgeCaller(ModelCaller(Limits(retries=retries), environment).ask)
        self.provider = open_provider("openai-compatible", base_url=url)
        self.structured = structured
        self.kind = kind
        self.spent: list[Reply] = []

    async def ask(self, text: str = "Judge.", model: str = "m") -> JudgeReply:
        door = Endpoint(
            Model(model, ProviderFile("s", "openai-compatible"), model),
            ModelVersion(self.kind, model),
            self.provider,
            None,
            structured=self.structured,
        )
        request = Request(model, (OutgoingMessage("user", (Text(text),)),))
        return await self.opinions.ask(door, request, self.spent, CODE)

    def run(self, *texts: str, at_once: bool = False) -> list[JudgeReply]:
        async def ask_all() -> list[JudgeReply]:
            try:
                if at_once:
                    return await asyncio.gather(*map(self.ask, texts))
                return [await self.ask(text) for text in texts]
            finally:
                await self.provider.close()

        return asyncio.run(ask_all())


def test_a_verdict_is_asked_for_with_its_schema(server: endpoint.Endpoint) -> None:
    server.reply = refusing()
    assert Panel(server.url).run("Judge.") == [PASS]
    assert forms(server) == ["json_schema"]


def test_a_model_declared_to_take_no_schema_is_never_sent_one(server: endpoint.Endpoint) -> None:
    server.reply = refusing()
    assert Panel(server.url, structured=False).run("Judge.") == [PASS]
    assert forms(server) == ["json_object"]


@pytest.mark.parametrize("status", [400, 422, 500, 501])
def test_a_refused_form_is_asked_for_once_in_a_run(server: endpoint.Endpoint, status: int) -> None:
    server.reply = refusing("json_schema", status=status)
    panel = Panel(server.url)
    assert panel.run("One.", "Two.") == [PASS, PASS]
    assert forms(server) == ["json_schema", "json_object", "json_object"]
    assert len(panel.spent) == 2


def test_a_500_in_the_words_of_llama_cpp_python_is_a_refusal(server: endpoint.Endpoint) -> None:
    def reply(body: dict[str, Any]) -> str | endpoint.Answer:
        if form_of(body) != "json_schema":
            return as_told(body)
        return endpoint.failure(500, LLAMA_CPP_PYTHON, "internal_server_error")

    server.reply = reply
    assert Panel(server.url).run("Judge.") == [PASS]
    assert forms(server) == ["json_schema", "json_object"]


def test_a_server_that_takes_no_form_at_all_is_asked_for_text(server: endpoint.Endpoint) -> None:
    server.reply = refusing(
        "json_schema", "json_object", text=f"<think>So?</think>\n\n{GOOD_WITH_CODE}"
    )
    assert Panel(server.url).run("One.", "Two.") == [PASS, PASS]
    assert forms(server) == ["json_schema", "json_object", "text", "text"]


def test_judgements_in_flight_together_step_down_together(server: endpoint.Endpoint) -> None:
    together = threading.Barrier(8, timeout=60)
    answer = refusing("json_schema")

    def reply(body: dict[str, Any]) -> Any:
        if body["response_format"]["type"] == "json_schema":
            together.wait()  # none is refused before all are there
        return answer(body)

    server.reply = reply
    texts = [str(number) for number in range(8)]
    assert Panel(server.url).run(*texts, at_once=True) == [PASS] * 8
    assert sorted(forms(server)) == ["json_object"] * 8 + ["json_schema"] * 8


def test_an_error_that_is_not_a_refusal_is_tried_again_in_the_same_form(
    server: endpoint.Endpoint,
) -> None:
    server.reply = refusing()
    assert Panel(server.url).run(f"[[fail=500]] [[times=2]] {GOOD}") == [PASS]
    assert forms(server) == ["json_schema"] * 3


def test_a_refusal_without_a_form_to_refuse_is_a_failure(server: endpoint.Endpoint) -> None:
    server.reply = lambda _body: endpoint.failure(500, "bad grammar in response_format", "x")
    with pytest.raises(CallFailed) as failed:
        Panel(server.url, retries=1).run("Judge.")
    assert failed.value.error.kind == "status"
    assert forms(server) == ["json_schema", "json_object", "text", "text"]


def test_a_judge_is_asked_again_with_the_reason(server: endpoint.Endpoint) -> None:
    server.reply = lambda body: GOOD if len(body["messages"]) > 1 else '{"pass": "yes"}'
    panel = Panel(server.url)
    assert panel.run("Judge.") == [PASS]
    first, second = (received.body for received in server.received)
    assert second["messages"][:-2] == first["messages"]
    assert second["messages"][-2] == {"role": "assistant", "content": '{"pass": "yes"}'}
    assert "the judge's 'pass' is \"yes\"" in second["messages"][-1]["content"]
    assert second["response_format"] == first["response_format"]
    assert len(panel.spent) == 2


def test_a_code_is_demanded_at_the_end_of_what_is_not_held_to_a_schema(
    server: endpoint.Endpoint,
) -> None:
    server.reply = refusing()
    assert Panel(server.url, structured=False).run("Judge.") == [PASS]
    assert Panel(server.url).run("Judge.") == [PASS]
    with_code, held = (received.body["messages"][-1]["content"] for received in server.received)
    assert with_code.startswith(
        f'Judge.\n\nAnswer with one JSON object and nothing else. Put "code": "{CODE}" into it'
    )
    assert held == "Judge."


def test_a_server_that_takes_a_schema_and_does_not_keep_it_is_not_trusted_again(
    server: endpoint.Endpoint,
) -> None:
    def reply(body: dict[str, Any]) -> str:
        return f"<think>It is good.</think>\n{as_told(body)}"

    server.reply = reply
    assert Panel(server.url).run("One.", "Two.") == [PASS, PASS]
    assert forms(server) == ["json_schema", "json_object", "json_object"]
    repaired = server.received[1].body["messages"]
    assert "is not one JSON object" in repaired[-1]["content"]
    assert [CODE in message["content"] for message in repaired] == [True, False, True]


def test_a_server_whose_judge_says_nothing_is_asked_in_the_same_form(
    server: endpoint.Endpoint,
) -> None:
    server.reply = lambda body: GOOD if len(body["messages"]) > 1 else " "
    assert Panel(server.url).run("Judge.") == [PASS]
    assert forms(server) == ["json_schema"] * 2


def test_a_pass_without_the_code_is_not_a_pass(server: endpoint.Endpoint) -> None:
    server.reply = lambda _body: GOOD
    (opinion,) = Panel(server.url, structured=False).run("Judge.")
    assert opinion.verdict == "undecided"
    assert opinion.feedback == "the judge's object does not have the code that was asked for"
    assert len(server.received) == 2


@pytest.mark.parametrize("structured", [True, False])
def test_a_script_needs_no_code_whatever_its_model_is_declared_to_take(
    server: endpoint.Endpoint, structured: bool
) -> None:
    server.reply = lambda body: GOOD if len(body["messages"]) > 1 else f"So: {GOOD}"
    panel = Panel(server.url, structured=structured, kind="scripted")
    assert panel.run("One.", "Two.") == [PASS, PASS]
    assert forms(server) == ["json_schema"] * 4


@pytest.mark.parametrize("refused", [(), ("json_schema",), ("json_schema", "json_object")])
def test_a_reply_is_held_to_the_same_rules_in_every_form(
    server: endpoint.Endpoint, refused: tuple[str, ...]
) -> None:
    server.reply = refusing(*refused, text='{"code": "c0de", "pass": "true", "feedback": ""}')
    (opinion,) = Panel(server.url).run("Judge.")
    assert opinion.verdict == "undecided"
    assert opinion.feedback == "the judge's 'pass' is \"true\", not true or false"


def test_a_judge_that_repeats_what_it_is_shown_does_not_pass_by_it(
    server: endpoint.Endpoint,
) -> None:
    server.reply = endpoint.echo
    for structured in (True, False):
        (opinion,) = Panel(server.url, structured=structured).run(f"Judge: {GOOD}")
        assert opinion.verdict == "undecided"

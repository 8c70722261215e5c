"""What a server refuses of a request is sent in another way, or named with what to write."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from evalstore.interfaces.cli.main import main
from tests import endpoint
from tests.runs.execution.loopback.conftest import Place

pytestmark = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
"""What is sent does not depend on the store."""

TEST = "# 👤\n\nWhat does it cost?\n\n---\n\n~~~checks\n- notEmpty\n~~~\n"
FORMED = f"---\nstructuredResponseSchema: price\n---\n{TEST}"
SCHEMA = "type: object\nrequired: [price]\nproperties: {price: {type: number}}\n"
LIMITED = f"---\noptions: {{maxOutputTokens: 50}}\n---\n{TEST}"
NOT_THIS_NAME = (
    "Unsupported parameter: 'max_tokens' is not supported with this model. "
    "Use 'max_completion_tokens' instead."
)
JUDGED = "# 👤\n\nHi\n\n---\n\nA greeting.\n"


def refusing(name: str, message: str, answer: str = "3") -> Callable[[dict[str, Any]], Any]:
    """A server that answers 400 to a request with a field."""

    def reply(body: dict[str, Any]) -> Any:
        return endpoint.failure(400, message, "unsupported") if name in body else answer

    return reply


def asked(place: Place) -> list[dict[str, Any]]:
    return [request.body for request in place.server.received]


# --- the limit of tokens ----------------------------------------------------------------


def test_a_limit_is_sent_by_its_new_name_after_one_refusal(place: Place) -> None:
    place.server.reply = refusing("max_tokens", NOT_THIS_NAME)
    place.write({"tests/one.md": LIMITED, "tests/two.md": LIMITED.replace("What", "How much")})
    assert place.run().verdicts == {"pass": 2}
    names = [sorted({"max_tokens", "max_completion_tokens"} & body.keys()) for body in asked(place)]
    assert names == [["max_tokens"], ["max_completion_tokens"], ["max_completion_tokens"]]
    assert asked(place)[1]["max_completion_tokens"] == 50
    assert place.run().counts == (0, 0, 0)


def test_a_limit_is_sent_by_its_old_name_where_the_new_one_is_refused(place: Place) -> None:
    message = "Unrecognized request argument supplied: max_completion_tokens"
    place.server.reply = refusing("max_completion_tokens", message)
    openai = f"code: loopback\ntype: openai\nbaseURL: {place.server.url}\n"
    place.write({"providers/loopback.yaml": openai, "tests/one.md": LIMITED})
    assert place.run().verdicts == {"pass": 1}
    assert asked(place)[-1]["max_tokens"] == 50


def test_a_limit_that_is_refused_by_both_names_keeps_the_first_message(place: Place) -> None:
    def reply(body: dict[str, Any]) -> Any:
        name = next(name for name in body if name.startswith("max_"))
        return endpoint.failure(400, f"Unsupported parameter: '{name}'", "unsupported")

    place.server.reply = reply
    place.write({"tests/one.md": LIMITED})
    assert place.run().exit_code == 3
    (failure,) = place.stored("failures")
    assert "'max_tokens'" in failure["message"]
    assert len(asked(place)) == 2


def test_a_limit_that_is_too_large_is_not_sent_again(place: Place) -> None:
    place.server.reply = refusing("max_tokens", "max_tokens is too large: 50. At most 9.")
    place.write({"tests/one.md": LIMITED})
    assert place.run().exit_code == 3
    assert len(asked(place)) == 1


def test_doctor_asks_by_the_name_that_the_model_takes(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    place.server.reply = refusing("max_tokens", NOT_THIS_NAME)
    place.write({"evalstore.yaml": "candidates: [one]\n", "tests/one.md": TEST})
    place.run()
    main(["-C", str(place.root), "doctor"])
    assert "answered in" in capsys.readouterr().out


# --- the role of the system -----------------------------------------------------------------


def no_system(body: dict[str, Any]) -> Any:
    if any(message["role"] == "system" for message in body["messages"]):
        return endpoint.failure(400, "System role not supported", "BadRequestError")
    return json.dumps({"pass": True, "feedback": "", "code": code_of(body)})


def code_of(body: dict[str, Any]) -> str:
    text = str(body["messages"][0]["content"])
    return text.partition('"code": "')[2].partition('"')[0]


def test_a_refused_system_prompt_begins_the_message_of_the_user(place: Place) -> None:
    place.server.reply = no_system
    prompted = "---\nsystemPrompts: [brief]\n---\n" + JUDGED
    files = {"prompts/brief.md": "Be brief.\n", "tests/one.md": prompted}
    place.write(files)
    ran = place.run()
    assert ran.counts == (1, 1, 0)
    assert "model 'one' does not accept a system message" in ran.stderr
    bodies = asked(place)
    assert [len(body["messages"]) for body in bodies] == [2, 1, 2, 1]
    assert bodies[1]["messages"] == [{"role": "user", "content": "Be brief.\n\nHi"}]
    assert "A greeting." in bodies[3]["messages"][0]["content"]
    assert place.run().counts == (0, 0, 0)


SYSTEM = "# 🖥️\n\nBe brief.\n\n" + TEST


def has_system(body: dict[str, Any]) -> bool:
    return any(message["role"] == "system" for message in body["messages"])


def test_what_did_not_help_is_not_kept(place: Place) -> None:
    """The request without a system message is refused as well, for its question alone."""

    def reply(body: dict[str, Any]) -> Any:
        if "How" in str(body):
            return endpoint.failure(400, "System role not supported: nothing is", "bad")
        return "3"

    place.server.reply = reply
    other = SYSTEM.replace("What", "How much")
    place.write({"tests/one.md": other, "tests/two.md": SYSTEM})
    ran = place.run()
    assert ran.verdicts == {"pass": 1, "pending": 1}
    assert [has_system(body) for body in asked(place)] == [True, False, True]
    assert "does not accept" not in ran.stderr


def test_a_limit_is_refused_by_both_names_after_the_system_role_was_refused(place: Place) -> None:
    def reply(body: dict[str, Any]) -> Any:
        if name := next((name for name in body if name.startswith("max_")), None):
            order = "System role not supported" if has_system(body) else f"Unsupported: '{name}'"
            return endpoint.failure(400, order, "bad")
        return "3"

    place.server.reply = reply
    limited = f"---\noptions: {{maxOutputTokens: 50}}\n---\n{SYSTEM}"
    place.write({"tests/one.md": limited})
    assert place.run().exit_code == 3
    (failure,) = place.stored("failures")
    assert "'max_tokens'" in failure["message"]
    assert len(asked(place)) == 3


# --- the form of the answer ---------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    ['```json\n{"price": 3}\n```', 'See [1]: {"price": 3} is the price.', '\n{"price": 3}\n'],
)
def test_json_between_other_words_is_an_answer(place: Place, answer: str) -> None:
    place.server.reply = lambda _body: answer
    place.write({"schemas/price.yaml": SCHEMA, "tests/one.md": FORMED})
    assert place.run().verdicts == {"pass": 1}
    assert place.answers() == [answer.strip()]
    (judgement,) = place.stored("evaluations")
    is_bare = answer.strip().startswith("{")
    assert ("other words around it" in str(judgement)) == (not is_bare)
    assert place.run().counts == (0, 0, 0)


@pytest.mark.parametrize(
    "answer",
    ["It costs 3.", '{"price": NaN}', '{"price": 3} or {"price": 4}', '{"price": "3"}', ""],
)
def test_an_answer_without_its_json_fails_once_and_for_all(place: Place, answer: str) -> None:
    place.server.reply = lambda _body: endpoint.completion({"content": answer})
    place.write({"schemas/price.yaml": SCHEMA, "tests/one.md": FORMED})
    assert place.run().verdicts == {"fail": 1}
    assert place.run().counts == (0, 0, 0)
    assert len(asked(place)) == 1


def test_a_refused_schema_is_asked_for_as_json_and_then_not_at_all(place: Place) -> None:
    def reply(body: dict[str, Any]) -> Any:
        if "response_format" in body:
            kind = body["response_format"]["type"]
            return endpoint.failure(400, f"response_format {kind} is not supported", "bad")
        return '{"price": 3}'

    place.server.reply = reply
    other = FORMED.replace("What", "How much")
    place.write({"schemas/price.yaml": SCHEMA, "tests/one.md": FORMED, "tests/two.md": other})
    assert place.run().verdicts == {"pass": 2}
    kinds = [body.get("response_format", {}).get("type") for body in asked(place)]
    assert kinds == ["json_schema", "json_object", None, None]


# --- hints -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message", "hint"),
    [
        (
            "candidatesTemperature: 0\n",
            "Unsupported value: 'temperature' does not support 0 with this model.",
            "candidateOverrides: {temperature: null}",
        ),
        ("", "Unknown field: top_p", "providerOptions: {top_p: null}"),
        ("", "Unknown fields: mood, tone", "remove 'mood', 'tone' from 'providerOptions'"),
        ("", "Unsupported parameter: 'seed'", "remove 'seed' from the 'options' of the test"),
        ("", "Unrecognized argument: mood", "remove 'mood' from 'providerOptions'"),
    ],
)
def test_a_refused_parameter_is_named_with_what_to_write(
    place: Place, capsys: pytest.CaptureFixture[str], settings: str, message: str, hint: str
) -> None:
    place.server.reply = lambda _body: endpoint.failure(400, message, "unsupported_parameter")
    place.write({"evalstore.yaml": f"candidates: [one]\n{settings}", "tests/one.md": TEST})
    main(["-C", str(place.root), "run"])
    main(["-C", str(place.root), "log", "--failures"])
    assert hint in " ".join("".join(capsys.readouterr()).split())


def test_the_parameter_that_only_the_body_names_is_shown(place: Place) -> None:
    error = {"message": "Unknown parameter", "param": "temperature", "code": "unknown_parameter"}
    place.server.reply = lambda _body: endpoint.Answer(400, {"error": error})
    settings = "candidates: [one]\ncandidatesTemperature: 0\n"
    place.write({"evalstore.yaml": settings, "tests/one.md": TEST})
    place.run()
    (failure,) = place.stored("failures")
    assert failure["message"].endswith("Unknown parameter (parameter 'temperature')")


# --- Ollama -------------------------------------------------------------------------------


def test_options_that_ollama_ignores_are_named_once(place: Place) -> None:
    ollama = f"code: loopback\ntype: ollama_chat\nbaseURL: {place.server.url}\n"
    model = "id: one\nprovider: loopback\nproviderOptions: {num_ctx: 8192}\n"
    place.write({"providers/loopback.yaml": ollama, "models/one.yaml": model, "tests/one.md": TEST})
    ran = place.run()
    assert ran.verdicts == {"pass": 1}
    assert ran.stderr.count("Ollama ignores 'num_ctx' of model 'one'") == 1


# --- litellm ------------------------------------------------------------------------------


def test_a_refusal_of_litellm_comes_without_its_advice(place: Place) -> None:
    anthropic = f"code: loopback\ntype: anthropic\nbaseURL: {place.server.url}\n"
    seeded = f"---\noptions: {{seed: 5}}\n---\n{TEST}"
    place.write({"providers/loopback.yaml": anthropic, "tests/one.md": seeded})
    assert place.run().exit_code == 3
    (failure,) = place.stored("failures")
    assert "'seed'" in failure["message"]
    assert "drop" not in failure["message"]
    assert place.server.received == []

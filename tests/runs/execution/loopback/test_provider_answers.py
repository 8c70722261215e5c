"""What a run makes of the answers that providers send today, in each form they come in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from evalstore.interfaces.cli.main import main
from tests import endpoint
from tests.providers.contract import OF_LITELLM
from tests.runs.execution.loopback.conftest import Place, Ran

pytestmark = OF_LITELLM


@pytest.fixture
def store_url() -> None:
    """Nothing here depends on the database."""


def run_each(
    place: Place, answers: Mapping[str, Any], checks: str, *, models: str = "", provider: str = ""
) -> Ran:
    """Ask a question of one model for each answer; each model has its name and these lines."""
    files = {
        f"models/{number}.yaml": f"id: {json.dumps(name)}\nprovider: loopback\n"
        f"providerModelCode: m{number}\n{models}"
        for number, name in enumerate(answers)
    }
    listed = list(answers.values())
    place.server.ends = ("",)
    place.server.reply = lambda request: listed[int(request["model"].removeprefix("m"))]
    place.write(
        files
        | {
            "evalstore.yaml": f"candidates: {json.dumps(list(answers))}\n",
            "tests/city.md": f"# User\n\nWhich city?\n\n---\n\n~~~checks\n{checks}\n~~~\n",
        }
        | ({"providers/loopback.yaml": f"code: loopback\n{provider}"} if provider else {})
    )
    return place.run("--retries", "1", "--fail-on", "none")


def verdicts(ran: Ran) -> dict[str, str]:
    return {case["model"]: case["verdict"] for case in ran.report["cases"]}


def choice(finish: str, message: dict[str, Any], **fields: Any) -> endpoint.Answer:
    usage = {"prompt_tokens": 10, "completion_tokens": 0, "total_tokens": 10}
    return endpoint.completion(message, finish=finish, **({"usage": usage} | fields))


def refused(status: int, error: Any) -> endpoint.Answer:
    return endpoint.Answer(status, {"error": error})


# --- what a filter withholds

NULL: dict[str, Any] = {"content": None}
FILTERED = {
    "empty": choice("content_filter", {"content": ""}),
    "a line end": choice("content_filter", {"content": "\n"}),
    "no part": choice("content_filter", {"content": []}),
    "an empty part": choice("content_filter", {"content": [{"type": "text", "text": ""}]}),
    "null": choice("content_filter", NULL),
    "missing": choice("content_filter", {}),
    **{
        finish: choice(finish, NULL)
        for finish in (
            *("SAFETY", "PROHIBITED_CONTENT", "RECITATION", "BLOCKLIST", "SPII"),
            *("refusal", "content-filter", "guardrail_intervened", "sensitive"),
        )
    },
    "a router": endpoint.completion(
        {},
        choices=[{"message": NULL, "finish_reason": "stop", "native_finish_reason": "SAFETY"}],
    ),
    "the status 400": endpoint.Answer(400, choice("content_filter", {"content": ""}).body),
}
AZURE_WORDS = (
    "The response was filtered due to the prompt triggering Azure OpenAI's content management"
    " policy. Please modify your prompt and retry."
)
PROMPTS = {
    "azure": refused(
        400,
        {
            "message": AZURE_WORDS,
            "type": None,
            "param": "prompt",
            "code": "content_filter",
            "status": 400,
            "innererror": {
                "code": "ResponsibleAIPolicyViolation",
                "content_filter_result": {"hate": {"filtered": True, "severity": "high"}},
            },
        },
    ),
    "only the inner code": refused(
        400, {"message": "no", "innererror": {"code": "ResponsibleAIPolicyViolation"}}
    ),
    "only words": refused(400, {"message": AZURE_WORDS, "code": "400"}),
    "openai": refused(
        400,
        {"message": "Invalid prompt: flagged", "type": "invalid_request_error"}
        | {"code": "invalid_prompt"},
    ),
    "openrouter": refused(
        403, {"code": 403, "message": "flagged", "metadata": {"flagged_input": "Which city?"}}
    ),
    "anthropic": refused(
        400,
        {"type": "invalid_request_error", "message": "Output blocked by content filtering policy"},
    ),
    "xai": endpoint.Answer(
        403, {"code": "denied", "error": "Content violates usage guidelines. Failed check: A"}
    ),
    "alibaba": endpoint.Answer(400, {"code": "DataInspectionFailed", "message": "no"}),
    "in a 200": refused(200, {"code": "content_filter", "message": "no"}),
}
OTHERS = {
    "unknown": refused(400, {"message": "Unknown parameter", "code": "unknown_parameter"}),
    "of that name": refused(
        400, {"message": "Unknown parameter: 'content_filter'", "code": "unknown_parameter"}
    ),
    "too long": endpoint.FAULTS["context"],
}


def test_an_answer_or_a_prompt_that_a_filter_withheld_is_a_stored_refusal(place: Place) -> None:
    ran = run_each(place, FILTERED | PROMPTS, "- refusal")
    assert verdicts(ran) == dict.fromkeys([*FILTERED, *PROMPTS], "pass")
    assert (ran.exit_code, ran.stderr, ran.report["failed"]) == (0, "", 0)
    assert place.run().counts == (0, 0, 0)


def test_another_refused_request_stays_pending(place: Place) -> None:
    ran = run_each(place, OTHERS, "- refusal")
    assert verdicts(ran) == dict.fromkeys(OTHERS, "pending")
    assert (ran.exit_code, ran.report["failed"]) == (3, len(OTHERS))


def test_what_a_filter_left_of_an_answer_is_judged_as_it_is(place: Place) -> None:
    ran = run_each(place, {"half": choice("SAFETY", {"content": "Par"})}, "- refusal")
    assert verdicts(ran) == {"half": "fail"}
    (session,) = place.stored("sessions")
    assert session["turns"][0]["finishReason"] == "content_filter"


@pytest.mark.parametrize(
    "provider", ["type: azure", "type: azure_ai", "type: deepseek"], ids=lambda kind: kind[6:]
)
def test_a_filter_means_the_same_through_litellm(
    place: Place, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    monkeypatch.setenv("AZURE_API_VERSION", "2024-10-21")
    answers = {name: FILTERED[name] for name in ("empty", "a line end", "no part", "null")}
    answers |= {"the status 400": FILTERED["the status 400"]}
    prompts = {name: PROMPTS[name] for name in ("azure", "only words", "openai")}
    base = f"{provider}\nbaseURL: {place.server.url}\n"
    kinds = dict.fromkeys(answers | prompts, "pass") | dict.fromkeys(OTHERS, "pending")
    ran = run_each(place, answers | prompts | OTHERS, "- refusal", provider=base)
    assert verdicts(ran) == kinds


# --- thoughts in front of an answer

THOUGHTS = {
    "closed": (
        '<think>\nmaybe {"city": "Lyon"}\n</think>\n\n{"city": "Paris"}',
        '{"city": "Paris"}',
    ),
    "without a beginning": ("It could fail.\n</think>\n\nParis", "Paris"),
    "on one line": ("so Paris.</think>Paris", "Paris"),
    "several": ("<think>a</think>\n<think>b</think>\nParis", "Paris"),
    "one in another": ("<think>a <think>b</think> c</think>Paris", "Paris"),
    "with the mark quoted": ("<think>They ask for `</think>`.</think>Paris", "Paris"),
    "with the mark in prose": ("<think>The tag </think> ends it.\n</think>\n\nParis", "Paris"),
    "with the mark in code": ("<think>\n```\n</think>\n```\n</think>\nParis", "Paris"),
    "with code that has no end": (
        "<think>\n```\na\n</think>\n\n```\nParis\n```",
        "```\nParis\n```",
    ),
    "with another end": ("<think>a</thinking>b</think>Paris", "Paris"),
    "before a mark in the answer": ("<think>a</think>Like\n</think>\nthis", "Like\n</think>\nthis"),
    "unfinished": ("<think>\nParis, perhaps", ""),
    "unfinished with another end": ("<think>\nIs it </thinking>Paris, perhaps", ""),
    "only thoughts": ("Paris, perhaps\n</think>", ""),
    "thinking": ("<thinking>a</thinking>Paris", "Paris"),
    "thought": ("<thought>a</thought>Paris", "Paris"),
    "in brackets": ("[THINK]a[/THINK]Paris", "Paris"),
    "channels": (
        "<|channel|>analysis<|message|>Lyon?<|end|><|start|>assistant"
        "<|channel|>final<|message|>Paris<|return|>",
        "Paris",
    ),
    "channels without marks": ("analysisLyon? No.assistantfinalParis", "Paris"),
    "an unfinished channel": ("<|channel|>analysis<|message|>Paris?", ""),
}
NO_THOUGHTS = [
    "The tag `<think>` opens a thought.",
    "Use `</think>` to close it.",
    "The </think> tag closes it, strip all up to </think>.",
    "Write <think> first, then </think>.\nThat is all.",
    "```\n<think>\na\n</think>\n```",
    "The template ends so:\n```\n</think>\n```\nand goes on.",
    "No <think>why</think>",
    "analysis of the poem: fine",
    "analysis: the assistantfinal report",
]
KINDS = ["openai-compatible", "lm_studio", "hosted_vllm", "openrouter", "openai", "ollama_chat"]


def test_thoughts_are_taken_off_and_an_unfinished_one_is_an_empty_answer(place: Place) -> None:
    quoted = {text: (text, text) for text in NO_THOUGHTS}
    run_each(place, {name: text for name, (text, _) in (THOUGHTS | quoted).items()}, "- notEmpty")
    assert sorted(place.answers()) == sorted(text for _, text in (THOUGHTS | quoted).values())


@pytest.mark.parametrize("kind", [*KINDS, "mistral"])
def test_thoughts_are_taken_off_for_every_kind_of_provider(place: Place, kind: str) -> None:
    answers = {"closed": "<think>fail</think>Paris", "open": "<think>fail", "end": "fail</think>P"}
    base = f"type: {kind}\nbaseURL: {place.server.url}\n"
    run_each(place, answers, "- contains: Paris", provider=base)
    assert sorted(place.answers()) == ["", "P", "Paris"]


def test_thoughts_stay_where_the_model_file_keeps_them(place: Place) -> None:
    answers = {"closed": "<think>a</think>Paris", "open": "<think>a"}
    run_each(place, answers, "- contains: Paris")
    assert place.run().counts == (0, 0, 0)
    ran = run_each(place, answers, "- contains: <think>", models="keepThoughts: true\n")
    assert verdicts(ran) == {"closed": "pass", "open": "pass"}
    assert sorted(place.answers()) == ["", "<think>a", "<think>a</think>Paris", "Paris"]


def test_the_next_turn_of_a_conversation_shows_no_thoughts(place: Place) -> None:
    place.server.reply = lambda request: f"<think>a</think>turn {len(request['messages'])}"
    place.write(
        {"tests/two.md": "# User\n\nHi\n\n# Assistant @one\n\n# User\n\nAgain\n\n---\n\nok\n"}
    )
    place.run("--fail-on", "none")
    assert place.server.received[1].body["messages"][1]["content"] == "turn 1"


EMPTY = {
    "reasoning apart": endpoint.completion(
        {"content": None, "reasoning_content": "Lyon?"}, finish="length"
    ),
    "nothing": endpoint.completion({"content": ""}, finish="length"),
    "unfinished": endpoint.completion({"content": "<think>Lyon?"}, finish="max_tokens"),
}


def test_the_feedback_says_that_the_limit_was_reached_before_the_answer(place: Place) -> None:
    said = {"stopped": "", "cut": endpoint.completion({"content": "Lyo"}, finish="length")}
    ran = run_each(place, EMPTY | said, "- contains: Paris\n- contains: P")
    feedbacks = {case["model"]: case["feedback"] for case in ran.report["cases"]}
    words = "the length limit was reached before the answer began; 'Paris' is not in ''; "
    assert {name: feedbacks[name].startswith(words) for name in EMPTY} == dict.fromkeys(EMPTY, True)
    assert not any("length limit" in feedbacks[name] for name in said)


# --- tokens and costs

COSTS = """costs:
  - {costPerPromptToken: 0.001, costPerCompletionToken: 0.01, costPerCachedPromptToken: 0.0001}
"""
REASONING = {"completion_tokens_details": {"reasoning_tokens": 500}}


def counts(sent: int, answered: int | None, total: int | None, **more: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": sent, "completion_tokens": answered, "total_tokens": total} | more
    return {name: count for name, count in usage.items() if count is not None}


USAGES: dict[str, tuple[dict[str, Any], int, float | None]] = {
    "reasoning beside": (counts(10, 5, 515, **REASONING), 505, 5.06),
    "reasoning inside": (counts(10, 505, 515, **REASONING), 505, 5.06),
    "reasoning beside, no total": (counts(10, 5, None, **REASONING), 505, 5.06),
    "only reasoning": (counts(21, 0, 81), 60, 0.621),
    "only a total": (counts(20, 198, 623), 603, 6.05),
    "some beside": (counts(10, 600, 1110, **REASONING), 1100, 11.01),
    "no output, a total": (counts(10, None, 15), 5, 0.06),
    "a total that is less": (counts(10, 5, 12), 5, 0.06),
    "zeros": (counts(0, 0, 0), 0, None),
    "no prompt": (counts(0, 5, 5), 5, None),
    "no output": (counts(10, 0, 10), 0, None),
    "nothing": ({}, 0, None),
    "cached": (counts(1000, 5, 1005, prompt_tokens_details={"cached_tokens": 900}), 5, 0.24),
    "hits": (
        counts(1000, 5, None, prompt_cache_hit_tokens=900, prompt_cache_miss_tokens=100),
        5,
        0.24,
    ),
    "cached at the top": (counts(1000, 5, 1005, cached_tokens=900), 5, 0.24),
}


def test_tokens_and_costs_are_what_the_provider_bills(place: Place) -> None:
    answers = {
        name: endpoint.completion({"content": "Paris"}, usage=usage)
        for name, (usage, _, _) in USAGES.items()
    }
    ran = run_each(place, answers, "- contains: Paris", models=COSTS)
    spent = {each["model"]: (each["outputTokens"], each["cost"]) for each in ran.report["spending"]}
    assert spent == {
        name: (out, usd and pytest.approx(usd)) for name, (_, out, usd) in USAGES.items()
    }


def test_an_answer_without_text_may_have_no_token(place: Place) -> None:
    answers = {"filtered": choice("content_filter", {"content": ""})}
    ran = run_each(place, answers, "- refusal", models=COSTS)
    assert ran.report["cost"] == pytest.approx(0.01)


def test_writes_into_the_cache_of_anthropic_have_their_price(place: Place) -> None:
    usage = {"input_tokens": 3, "cache_creation_input_tokens": 12304, "output_tokens": 550}
    content = [{"type": "text", "text": "Paris"}]
    body: dict[str, Any] = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": content,
    }
    body |= {"stop_reason": "end_turn", "usage": usage}
    place.server.ends = ("/messages",)
    place.server.reply = lambda request: endpoint.Answer(body=body)
    base = place.server.url.removesuffix("/v1")
    place.write(
        {
            "providers/loopback.yaml": f"code: loopback\ntype: anthropic\nbaseURL: {base}\n",
            "models/one.yaml": "id: one\nprovider: loopback\ncode: claude-sonnet-4-5\n",
            "tests/a.md": "# User\n\nHi\n\n---\n\n~~~checks\n- contains: Paris\n~~~\n",
        }
    )
    ran = place.run()
    # 3 tokens at $3, 12,304 at $3.75 and 550 at $15 for a million.
    assert ran.report["cost"] == pytest.approx(0.054399)
    (session,) = place.stored("sessions")
    assert session["turns"][0]["usage"]["cacheWriteTokens"] == 12304


REPORTED: dict[str, tuple[dict[str, Any], float]] = {
    "plain": ({"cost": 0.0123}, 0.0123),
    "free": ({"cost": 0}, 0.0),
    "an own key": (
        {"cost": 0.001, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.02}},
        0.021,
    ),
    "an own key without its part": ({"cost": 0.001, "is_byok": True}, 0.0),
    "no number": ({"cost": "0.5"}, 0.0),
    "nothing": ({}, 0.0),
}


@pytest.mark.parametrize(("kind", "is_usd"), [("openrouter", True), ("openai-compatible", False)])
def test_the_cost_that_openrouter_reports_is_the_cost(
    place: Place, kind: str, is_usd: bool
) -> None:
    answers = {
        name: endpoint.completion({"content": "Paris"}, usage=counts(10, 5, 15) | usage)
        for name, (usage, _) in REPORTED.items()
    }
    base = f"type: {kind}\nbaseURL: {place.server.url}\n"
    ran = run_each(place, answers, "- contains: Paris", provider=base)
    costs = {each["model"]: each["cost"] for each in ran.report["spending"]}
    assert costs == {name: usd if is_usd else 0.0 for name, (_, usd) in REPORTED.items()}


def test_the_costs_that_openrouter_reports_count_for_the_limit(place: Place) -> None:
    usage = counts(10, 5, 15) | {"cost": 0.5}
    place.server.reply = lambda request: endpoint.completion({"content": "{}"}, usage=usage)
    url = place.server.url
    place.write({"providers/loopback.yaml": f"code: loopback\ntype: openrouter\nbaseURL: {url}\n"})
    place.ask(*(f"question {number}?" for number in range(5)))
    ran = place.run("--max-cost", "1")
    assert (ran.exit_code, ran.counts, ran.report["cost"]) == (4, (2, 2, 0), 1.0)


def test_a_limit_is_kept_without_a_price_where_answers_say_their_cost(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    place.write({"evalstore.yaml": "candidates: [openrouter/acme/unlisted]\n"})
    place.ask("one")
    assert main(["-C", str(place.root), "run", "-n", "--max-cost", "1"]) == 0
    assert "price" not in capsys.readouterr().err


# --- errors in an answer with the status 200


def in_200(body: Any) -> endpoint.Answer:
    return endpoint.Answer(200, body)


LASTING = {
    "vllm": (
        {"object": "error", "message": "System role not supported"}
        | {"type": "BadRequestError", "code": 400},
        "the server answered 400: System role not supported",
    ),
    "a code and words": (
        {"code": 1113, "msg": "Your account is in arrears"},
        "the server answered 200: Your account is in arrears",
    ),
    "a text": (
        {"error": "model not found, try pulling it first"},
        "the server answered 200: model not found, try pulling it first",
    ),
    "a list": ([{"error": {"message": "no such field"}}], "the server answered 200: no such field"),
    "a status": (
        {"base_resp": {"status_code": 1004, "status_msg": "login fail"}, "choices": None},
        "the server answered 200: login fail",
    ),
    "true": ({"error": True, "message": "no"}, "the server answered 200: no"),
    "errors": ({"errors": [{"message": "no"}]}, "the server answered 200: no"),
    "a detail": ({"detail": "no"}, "the server answered 200: no"),
}
PASSING = {
    "a number": {"error": {"code": 429, "message": "Rate limit"}},
    "a text": {"error": {"code": "429", "message": "Rate limit"}},
    "another text": {"error": {"code": "502", "message": "Bad gateway"}},
    "a status": {"error": {"status": 429, "message": "Rate limit"}},
    "a type": {"error": {"type": "rate_limit_error", "message": "Rate limit"}},
    "a word": {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
    "a name": {"object": "error", "message": "no", "type": "InternalServerError"},
    "of google": [{"error": {"status": "UNAVAILABLE", "message": "The model is overloaded"}}],
    "beside a text": {"error": "Rate limit", "code": "429"},
    "in the choice": {"choices": [{"error": {"code": "503", "message": "gone"}}]},
}
STOPPING = {
    "a text": {"error": {"code": "401", "message": "invalid key"}},
    "a number": {"code": 401, "message": "invalid key"},
    "a type": {"error": {"type": "authentication_error", "message": "invalid key"}},
    "a code": {"error": {"code": "invalid_api_key", "message": "invalid key"}},
}
ROUTES = pytest.mark.parametrize("kind", ["openai-compatible", "deepseek"])


@ROUTES
def test_the_words_of_an_error_are_shown_and_it_is_tried_once(place: Place, kind: str) -> None:
    provider = f"type: {kind}\nbaseURL: {place.server.url}\n"
    answers = {name: in_200(body) for name, (body, _) in LASTING.items()}
    ran = run_each(place, answers, "- notEmpty", provider=provider)
    messages = {failure["message"] for failure in ran.report["failures"]}
    assert messages == {f"{name}: {message}" for name, (_, message) in LASTING.items()}
    assert len(place.server.received) == len(LASTING)


@ROUTES
def test_an_error_that_passes_is_tried_again_by_its_code_or_type(place: Place, kind: str) -> None:
    provider = f"type: {kind}\nbaseURL: {place.server.url}\n"
    run_each(place, dict.fromkeys(PASSING, "Paris"), "- notEmpty", provider=provider)
    seen: dict[str, int] = {}
    errors = list(PASSING.values())

    def reply(request: Any) -> Any:
        model = request["model"]
        seen[model] = seen.get(model, 0) + 1
        return in_200(errors[int(model[1:])]) if seen[model] < 3 else "Paris"

    place.server.reply = reply
    ran = place.run("--refresh", "--fail-on", "none", "-j", "8")
    assert verdicts(ran) == dict.fromkeys(PASSING, "pass")
    assert set(seen.values()) == {3}


@pytest.mark.parametrize("body", STOPPING.values(), ids=STOPPING.keys())
@ROUTES
def test_a_refused_key_stops_the_model_wherever_the_code_is(
    place: Place, kind: str, body: Any
) -> None:
    url = place.server.url
    place.write({"providers/loopback.yaml": f"code: loopback\ntype: {kind}\nbaseURL: {url}\n"})
    place.server.reply = lambda request: in_200(body)
    place.ask("one", "two", "three")
    ran = place.run()
    assert "the server answered 401: invalid key" in ran.stderr
    assert len(place.server.received) == 1


STREAM = b'data: {"choices": [{"delta": {"content": "Paris"}}]}\n\ndata: [DONE]\n\n'


@ROUTES
def test_a_stream_that_nobody_asked_for_is_named(place: Place, kind: str) -> None:
    answers = {"stream": endpoint.Answer(200, STREAM, {"content-type": "text/event-stream"})}
    provider = f"type: {kind}\nbaseURL: {place.server.url}\n"
    ran = run_each(place, answers, "- contains: Paris", provider=provider)
    (failure,) = ran.report["failures"]
    assert failure["message"].startswith(
        "stream: the server answered with a stream, which was not requested: data: {"
    )
    assert len(place.server.received) == 1


# --- calls of tools

CALL = {"name": "cityWeather", "arguments": '{"city": "Oslo"}'}
CALLS: dict[str, tuple[Any, str]] = {
    "the legacy field": (
        endpoint.completion({"content": None, "function_call": CALL}, finish="function_call"),
        "pass",
    ),
    "a mapping": (
        {"content": None, "tool_calls": [{"function": CALL | {"arguments": {"city": "Oslo"}}}]},
        "pass",
    ),
    "encoded twice": (
        {"content": None, "tool_calls": [{"function": CALL | {"arguments": '"{\\"city\\": 1}"'}}]},
        "fail",
    ),
    "fenced": (
        {
            "content": None,
            "tool_calls": [{"function": CALL | {"arguments": "```json\n{}\n```"}}],
        },
        "fail",
    ),
    "as a text": ('<tool_call>{"name": "cityWeather"}</tool_call>', "fail"),
}


@ROUTES
def test_a_call_of_a_tool_is_found_where_it_is(place: Place, kind: str) -> None:
    checks = "- toolCalls: [{name: cityWeather, arguments: {city: Oslo}}]"
    provider = f"type: {kind}\nbaseURL: {place.server.url}\n"
    answers = {name: answer for name, (answer, _) in CALLS.items()}
    ran = run_each(place, answers, checks, provider=provider)
    assert verdicts(ran) == {name: verdict for name, (_, verdict) in CALLS.items()}


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"])
def test_a_call_that_gemini_cannot_read_is_tried_again(place: Place, reason: str) -> None:
    def candidate(**fields: Any) -> endpoint.Answer:
        usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
        return endpoint.Answer(body={"candidates": [fields], "usageMetadata": usage})

    answers = [
        candidate(finishReason="STOP", content={"role": "model", "parts": [{"text": "Paris"}]}),
        candidate(finishReason=reason, content={"role": "model", "parts": [{"text": ""}]}),
        candidate(finishReason=reason),
    ]
    base = place.server.url.removesuffix("/v1")
    place.server.ends = (":generateContent",)
    place.server.reply = lambda request: answers.pop()
    place.write(
        {
            "providers/loopback.yaml": f"code: loopback\ntype: gemini\nbaseURL: {base}\n",
            "tests/a.md": "# User\n\nHi\n\n---\n\n~~~checks\n- contains: Paris\n~~~\n",
        }
    )
    ran = place.run()
    assert (ran.exit_code, ran.verdicts, answers) == (0, {"pass": 1}, [])


# --- addresses


def ask_at(place: Place, kind: str, base: str) -> Ran:
    place.write({"providers/loopback.yaml": f"code: loopback\ntype: {kind}\nbaseURL: {base}\n"})
    place.ask("one")
    return place.run()


@pytest.mark.parametrize(
    ("kind", "base", "path"),
    [
        ("openai-compatible", "/v1?api-version=2024", "/v1/chat/completions?api-version=2024"),
        ("openai-compatible", "/v1/?a=1&b=2", "/v1/chat/completions?a=1&b=2"),
        ("openai-compatible", "/v1/#part", "/v1/chat/completions"),
        ("openai-compatible", "?a=1", "/chat/completions?a=1"),
        ("ollama", "/api?a=1", "/v1/chat/completions?a=1"),
        ("azure_ai", "/v1?api-version=2024", "/v1/chat/completions?api-version=2024"),
    ],
)
def test_a_query_of_a_base_url_stays_behind_the_path(
    place: Place, kind: str, base: str, path: str
) -> None:
    assert ask_at(place, kind, place.server.url.removesuffix("/v1") + base).exit_code == 0
    assert place.server.received[0].path == path


def test_a_query_that_litellm_would_misplace_is_refused(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    place.write(
        {
            "providers/loopback.yaml": "code: loopback\ntype: mistral\n"
            f"baseURL: {place.server.url}?a=1\n"
        }
    )
    place.ask("one")
    assert main(["-C", str(place.root), "run"]) == 2
    assert "the base URL of a provider of type 'mistral' cannot have a query" in (
        capsys.readouterr().err
    )
    assert place.server.received == []


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("openai-compatible", "/v1/wrong/chat/completions"),
        ("deepseek", "/v1/wrong/chat/completions"),
        ("anthropic", "/v1/wrong/v1/messages"),
        ("gemini", "/v1/wrong/models/one:generateContent"),
    ],
)
def test_every_404_says_where(place: Place, kind: str, path: str) -> None:
    place.server.ends = ("/right",)
    url = place.server.url.removesuffix("/v1")
    ran = ask_at(place, kind, f"{url}/v1/wrong")
    (failure,) = ran.report["failures"]
    assert failure["message"] == f"one: the server answered 404 at {url}{path}: no such path"

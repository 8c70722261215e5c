"""Which form a verdict is asked for in, and what is learnt from a refusal."""

from __future__ import annotations

import pytest

from evalstore.checks.judge_replies import Mode, ReplyModes, in_mode
from evalstore.core.values import Request
from evalstore.providers.base import ProviderError

REFUSED = ProviderError("format", "response_format is not supported", status=500)


@pytest.mark.parametrize(("structured", "mode"), [(True, "schema"), (False, "json")])
def test_what_is_declared_is_where_to_begin(structured: bool, mode: Mode) -> None:
    assert ReplyModes().mode("m", structured=structured) == mode


def test_a_refusal_leads_one_step_down_for_good() -> None:
    modes = ReplyModes()
    assert modes.step_down("m", "schema", REFUSED)
    assert modes.mode("m", structured=True) == "json"
    assert modes.step_down("m", "json", REFUSED)
    assert modes.mode("m", structured=True) == "text"


def test_a_schema_that_is_not_kept_leads_one_step_down_and_no_further() -> None:
    modes = ReplyModes()
    modes.distrust("m", "schema")
    modes.distrust("m", "schema")
    modes.distrust("m", "json")
    assert modes.mode("m", structured=True) == "json"


def test_there_is_nothing_below_a_text() -> None:
    modes = ReplyModes()
    assert not modes.step_down("m", "text", REFUSED)
    assert modes.mode("m", structured=True) == "schema"


def test_refusals_of_the_same_form_lead_down_once() -> None:
    modes = ReplyModes()
    assert all(modes.step_down("m", "schema", REFUSED) for _ in range(8))
    assert modes.mode("m", structured=True) == "json"


def test_what_one_model_refuses_says_nothing_of_another() -> None:
    modes = ReplyModes()
    modes.step_down("m", "schema", REFUSED)
    assert modes.mode("other", structured=True) == "schema"


@pytest.mark.parametrize("kind", ["status", "connection", "timeout", "malformed", "context"])
def test_other_errors_teach_nothing(kind: str) -> None:
    modes = ReplyModes()
    assert not modes.step_down("m", "schema", ProviderError(kind, "no", status=500, retry=True))
    assert modes.mode("m", structured=True) == "schema"


@pytest.mark.parametrize(
    ("mode", "schema", "json_mode"),
    [("schema", {"type": "object"}, False), ("json", None, True), ("text", None, False)],
)
def test_a_request_asks_for_one_form(mode: Mode, schema: object, json_mode: bool) -> None:
    request = in_mode(
        Request("code", (), schema={"old": 1}, json_mode=True), mode, {"type": "object"}
    )
    assert (request.schema, request.json_mode) == (schema, json_mode)

"""A temperature is sent when somebody asks for one, and otherwise none is."""

from __future__ import annotations

from typing import Any

import pytest

from evalstore.interfaces.cli.main import main
from tests.runs.execution.loopback.conftest import Place

pytestmark = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
"""What is sent does not depend on the store."""

TEST = "# 👤\n\nHi\n\n---\n\nA greeting.\n"
SETTINGS = "candidates: [one]\nevaluators: [judge]\n"
BOTH = "candidatesTemperature: 0\nevaluatorsTemperature: 0.5\n"


@pytest.fixture(autouse=True)
def _readable_verdicts(place: Place) -> None:
    place.server.reply = lambda _request: '{"pass": true, "feedback": ""}'


def sent(place: Place) -> list[Any]:
    """The temperatures of the requests, in their order; `None` where none was sent."""
    return [request.body.get("temperature") for request in place.server.received]


def test_no_temperature_is_sent_by_default(place: Place) -> None:
    place.write({"tests/one.md": TEST})
    assert place.run().counts == (1, 1, 0)
    assert len(place.server.received) == 2
    assert all("temperature" not in request.body for request in place.server.received)


@pytest.mark.parametrize(
    ("settings", "model", "temperatures"),
    [
        (BOTH, "", [0, 0.5]),
        ("candidatesTemperature: null\nevaluatorsTemperature: null\n", "", [None, None]),
        (BOTH, "candidateOverrides: {temperature: null}\n", [None, 0.5]),
        ("", "candidateOverrides: {temperature: 0}\n", [0, None]),
        (BOTH, "providerOptions: {temperature: null}\n", [None, 0.5]),
    ],
)
def test_the_most_special_place_says_whether_one_is_sent(
    place: Place, settings: str, model: str, temperatures: list[float | None]
) -> None:
    place.write(
        {
            "evalstore.yaml": SETTINGS + settings,
            "models/one.yaml": "id: one\nprovider: loopback\n" + model,
            "tests/one.md": TEST,
        }
    )
    assert place.run().counts == (1, 1, 0)
    assert sent(place) == temperatures


def test_an_entry_of_null_takes_back_the_temperature_of_all(place: Place) -> None:
    entries = "candidates: [{id: one, temperature: null}, {id: one}]\n"
    judges = "evaluators: [{id: judge, temperature: null}]\n"
    place.write({"evalstore.yaml": entries + judges + BOTH, "tests/one.md": TEST})
    assert place.run().counts == (2, 2, 0)
    assert sorted(map(str, sent(place))) == ["0.0", "None", "None", "None"]


def test_a_test_asks_for_its_own(place: Place) -> None:
    place.write({"tests/one.md": f"---\noptions: {{temperature: 0}}\n---\n{TEST}"})
    place.run()
    assert sent(place) == [0, None]


def test_a_model_named_on_the_command_line_gets_none(place: Place) -> None:
    place.write({"evalstore.yaml": "candidates: []\n", "tests/one.md": TEST})
    place.run("-m", "one", "--evaluator", "judge")
    assert sent(place) == [None, None]


def test_the_command_line_takes_a_temperature_back(place: Place) -> None:
    place.write({"evalstore.yaml": SETTINGS + BOTH, "tests/one.md": TEST})
    place.run("--set", "candidatesTemperature=null", "--set", "evaluatorsTemperature=null")
    assert sent(place) == [None, None]


def test_doctor_sends_what_a_run_would_send(place: Place) -> None:
    place.write({"evalstore.yaml": SETTINGS + BOTH, "tests/one.md": TEST})
    place.run()
    main(["-C", str(place.root), "doctor"])
    assert sorted(sent(place)[2:]) == [0, 0.5]


def test_an_edit_to_none_is_told_in_words_and_back_asks_nothing(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    place.write({"evalstore.yaml": SETTINGS + BOTH, "tests/one.md": TEST})
    place.run()
    place.write({"evalstore.yaml": SETTINGS})
    main(["-C", str(place.root), "status", "--json"])
    assert "temperature 0 -> none" in capsys.readouterr().out
    assert place.run().counts == (1, 1, 0)
    place.write({"evalstore.yaml": SETTINGS + BOTH})
    assert place.run().counts == (0, 0, 0)

"""`export --format inspect`: logs that Inspect reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

import pytest

from tests.builders import tree
from tests.interfaces.cli.export.test_export import ASKED, HOSTILE

if TYPE_CHECKING:
    from tests.interfaces.cli.conftest import Echo, Evalstore


def members(path: str = "out/scripted-one.eval") -> dict[str, Any]:
    """The members of a log by their names."""
    with ZipFile(path) as archive:
        assert archive.testzip() is None
        return {name: json.loads(archive.read(name)) for name in archive.namelist()}


def test_a_log_has_the_answers_as_samples(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run")
    evalstore("export", "--format", "inspect", "-o", "out")
    log = members()
    oslo = "tests/weather.md [city=Oslo]"
    assert list(log) == [
        "_journal/start.json",
        f"samples/{oslo}_epoch_1.json",
        "samples/tests/weather.md [city=Rome]_epoch_1.json",
        "summaries.json",
        "header.json",
    ]
    header = log["header.json"]
    assert (header["version"], header["status"]) == (2, "success")
    assert (header["eval"]["model"], header["eval"]["dataset"]["samples"]) == ("scripted/one", 2)
    assert header["results"]["scores"][0]["metrics"]["accuracy"]["value"] == 0.5
    usage = header["stats"]["model_usage"]["scripted/one"]
    assert (usage["input_tokens"], usage["output_tokens"]) == (20, 4)
    sample = log[f"samples/{oslo}_epoch_1.json"]
    assert (sample["id"], sample["epoch"], sample["target"]) == (oslo, 1, "")
    assert sample["input"] == [{"role": "user", "content": "How is Oslo?", "source": "input"}]
    assert sample["output"]["completion"] == "Cold."
    assert sample["messages"][-1]["role"] == "assistant"
    assert {name: score["value"] for name, score in sample["scores"].items()} == {
        "verdict": "I",
        "scripted/judge": "I",
    }
    assert sample["scores"]["verdict"]["explanation"] == "It is cold there."
    assert [entry["id"] for entry in log["summaries.json"]] == [
        oslo,
        "tests/weather.md [city=Rome]",
    ]


def test_reasons_of_several_judges_are_named(workspace: Path, evalstore: Evalstore) -> None:
    judge = (workspace / "models/judge.yaml").read_text()
    other = judge.replace("/judge", "/second").replace("It is cold there.", "No coat.")
    tree(workspace, {"models/second.yaml": other})
    settings = workspace / "evalstore.yaml"
    settings.write_text(
        settings.read_text().replace("[scripted/judge]", "[scripted/judge, scripted/second]")
    )
    evalstore("run")
    evalstore("export", "--format", "inspect", "-o", "out")
    sample = members()["samples/tests/weather.md [city=Oslo]_epoch_1.json"]
    reasons = "scripted/judge: It is cold there.\nscripted/second: No coat."
    assert sample["scores"]["verdict"]["explanation"] == reasons
    assert sample["scores"]["scripted/second"]["explanation"] == "No coat."


def test_an_attempt_is_an_epoch_with_its_own_verdict(echo: Echo, evalstore: Evalstore) -> None:
    replies = iter(("needle", "nothing", "needle"))
    echo.reply = lambda _text: next(replies)
    tree(Path.cwd(), {"tests/one.md": "---\nattempts: 3\n---\n\n" + ASKED})
    evalstore("run", "-j", "1")
    evalstore("export", "--format", "inspect", "-o", "out")
    log = members()
    samples = [log[f"samples/tests/one.md_epoch_{epoch}.json"] for epoch in (1, 2, 3)]
    values = {
        sample["output"]["completion"]: sample["scores"]["verdict"]["value"] for sample in samples
    }
    assert values == {"needle": "C", "nothing": "I"}
    assert log["header.json"]["eval"]["config"]["epochs"] == 3
    assert log["header.json"]["eval"]["dataset"]["samples"] == 1


def test_a_conversation_has_its_earlier_answers(echo: Echo, evalstore: Evalstore) -> None:
    turns = ASKED.replace("Question?", "First\n\n# 🤖 @first\n\n# 👤\n\nSecond")
    tree(Path.cwd(), {"tests/one.md": turns})
    evalstore("run")
    evalstore("export", "--format", "inspect", "-o", "out")
    messages = members()["samples/tests/one.md_epoch_1.json"]["messages"]
    assert [(message["role"], message["content"]) for message in messages] == [
        ("user", "First"),
        ("assistant", "First"),
        ("user", "Second"),
        ("assistant", "Second"),
    ]


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_answers_come_back_as_they_are(echo: Echo, evalstore: Evalstore, kind: str) -> None:
    echo.reply = lambda _text: HOSTILE[kind]
    tree(Path.cwd(), {"tests/one.md": ASKED})
    evalstore("run")
    evalstore("export", "--format", "inspect", "-o", "out")
    sample = members()["samples/tests/one.md_epoch_1.json"]
    assert sample["output"]["completion"] == HOSTILE[kind].strip()


def test_no_name_of_a_sample_leaves_the_folder(echo: Echo, evalstore: Evalstore) -> None:
    rows = '---\nreplacements:\n  q: ["../../../x", "a\\u001bb", "..\\\\..\\\\y"]\n---\n\n'
    tree(Path.cwd(), {"tests/one.md": rows + ASKED.replace("Question?", "{{q}}")})
    evalstore("run")
    evalstore("export", "--format", "inspect", "-o", "out")
    names = [name for name in members() if name.startswith("samples/")]
    assert len(names) == 3
    assert all(".." not in name and name.isprintable() for name in names)


def test_inspect_reads_the_logs(workspace: Path, evalstore: Evalstore) -> None:
    library = pytest.importorskip("inspect_ai.log", reason="inspect_ai is not installed")
    evalstore("run")
    evalstore("export", "--format", "inspect", "-o", "out")
    log = library.read_eval_log("out/scripted-one.eval")
    assert [sample.scores["verdict"].value for sample in log.samples] == ["I", "C"]
    assert len(library.read_eval_log_sample_summaries("out/scripted-one.eval")) == 2

"""Answers of LVE to prompts that tests had before, to models nobody can call, and in two tests."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evalstore.core.values import Json
from evalstore.exchange.imports import file_writer
from evalstore.planning.options import Location
from evalstore.results.flips.result_history import SHOWN
from evalstore.results.log.log import Version, versions_of
from tests.builders import tree
from tests.exchange.importers.lve.repository import definition, instance
from tests.exchange.importers.running import CommandRunner

GPT = "openai/gpt-4"
NEWER = "Mon Jan  1 00:00:00 2024"
ASKED: dict[str, Json] = {
    "model": GPT,
    "prompt": [{"content": "Name a river in {land}."}],
    "prompt_parameters": ["land"],
    "checker_args": {"checker_name": "ExactMatchChecker", "pattern": "Rhine", "match_safe": True},
}


def kept(text: str, answer: str = "Rhine", **fields: Json) -> list[Json]:
    """The messages that an instance keeps."""
    return [
        {"content": text, "role": "user", "variable": None, "image_url": None, **fields},
        {"content": answer, "role": "assistant", "variable": "response", "image_url": None},
    ]


def river(land: str, text: str | None = None, answer: str = "Rhine", **fields: Json) -> str:
    """A line of a file of instances; `text` is what was shown."""
    shown = {} if text is None else {"prompt_out": kept(text, answer)}
    return instance({"land": land}, answer, **shown, **fields)


class Repository(CommandRunner):
    """A repository that is imported with its answers into a new workspace."""

    def __init__(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        super().__init__(path / "workspace", capsys)
        self.path = path
        tree(self.root, {"evalstore.yaml": "{}\n"})

    def add(self, test: dict[str, Json], *lines: str, place: str = "geo/rivers/m") -> None:
        folder = f"source/repository/{place}"
        files = {
            f"{folder}/test.json": json.dumps(definition(**test)),
            f"{folder}/instances/all.jsonl": "".join(lines),
        }
        tree(self.path, files)

    def paste(self, settings: dict[str, Json]) -> None:
        tree(self.root, {"evalstore.yaml": json.dumps(settings)})

    def bring(self) -> Any:
        source = str(self.path / "source")
        return self.json("import", "lve", source, "--into", "in", "--sessions")

    def bring_in_words(self) -> str:
        source = str(self.path / "source")
        return self.run("import", "lve", source, "--into", "in", "--sessions")[1]

    def versions(self, row: str = "") -> list[Version]:
        """The versions of a case that runs know, newest first."""
        versions = versions_of(Location(self.root), "tests/in/geo/rivers/m.md", row)
        return [version for version in versions if version.run]

    def texts(self, row: str = "") -> list[str]:
        """What the candidate was shown in each version."""
        return [version.parts[SHOWN].split("\n")[-1] for version in self.versions(row)]

    def before(self) -> Any:
        """The results of the run of older tests."""
        (run,) = [entry for entry in self.json("log")["runs"] if "before" in entry["message"]]
        return self.json("show", run["run"])["related"]["results"]


@pytest.fixture
def repository(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Repository:
    return Repository(tmp_path, capsys)


# --- prompts of before --------------------------------------------------------------------


def test_an_answer_to_an_older_prompt_stands_under_the_version_of_then(
    repository: Repository,
) -> None:
    now, then = "Name a river in Peru.", "Tell me a river of Peru"
    repository.add(ASKED, river("Peru", then, "Ob", passed=False), river("Peru", now))
    done = repository.bring()
    assert (done["left"], done["history"]["sessions"]) == ([], 2)
    newest, oldest = repository.versions()
    assert (newest.edits, oldest.edits) == (("test",), ("new",))
    assert [version.verdicts for version in (newest, oldest)] == [
        {GPT: ("pass",)},
        {GPT: ("fail",)},
    ]


def test_what_was_shown_then_can_be_read(repository: Repository) -> None:
    repository.add(ASKED, river("Peru", "Tell me a river of Peru", "Ob"), river("Peru"))
    repository.bring()
    (result,) = repository.before()
    shown = repository.run("show", result["sessions"][0])[1]
    assert "Tell me a river of Peru" in shown


def test_answers_to_one_older_prompt_share_its_version(repository: Repository) -> None:
    then = "Tell me a river of Peru"
    lines = [river("Peru", then, "Ob"), river("Peru", then, "Po"), river("Peru")]
    repository.add(ASKED, *lines)
    output = repository.bring_in_words()
    assert "3 recorded answers, 3 verdicts in the store" in output
    assert "has earlier versions of tests: 2 answers in all\n" in output


def test_versions_have_the_order_of_their_answers(repository: Repository) -> None:
    older: dict[str, Any] = {"run_info": {"timestamp": "Sun Jan  1 00:00:00 2023"}}
    newer: dict[str, Any] = {"run_info": {"timestamp": NEWER}}
    lines = [river("Peru", "B", **newer), river("Peru", "A", **older), river("Peru")]
    repository.add(ASKED, *lines)
    repository.bring()
    assert repository.texts() == ["Name a river in Peru.", "B", "A"]


def test_an_older_prompt_with_other_parameters_has_a_row_of_its_own(
    repository: Repository,
) -> None:
    then = instance({"region": "the Alps"}, "Inn", prompt_out=kept("A river of the Alps?", "Inn"))
    repository.add(ASKED, then, river("Peru"))
    done = repository.bring()
    assert (done["left"], done["rows"], done["history"]["sessions"]) == ([], 1, 2)
    assert repository.json("ls", "cases")["cases"][0]["row"] == ""


def test_an_instance_without_its_prompt_is_left_when_it_has_other_parameters(
    repository: Repository,
) -> None:
    repository.add(ASKED, instance({"region": "the Alps"}, "Inn"), river("Peru"))
    done = repository.bring()
    (left,) = done["left"]
    assert (left["line"], left["reason"]) == (1, "the instance has no value for 'land'")
    assert done["history"]["sessions"] == 1


def test_all_that_differs_from_now_makes_an_older_version(repository: Repository) -> None:
    picture = "https://example.org/{}.png"
    test = {
        **ASKED,
        "prompt": [{"content": "Which?", "image_url": "{land}"}],
    }
    now, other = picture.format("a"), picture.format("b")
    system = [{"content": "Be brief.", "role": "system"}, *kept("Which?", image_url=now)]
    lines = [
        instance({"land": now}, "Rhine", prompt_out=kept("Which?", image_url=image))
        for image in (now, other, None)
    ]
    repository.add(test, *lines, instance({"land": now}, "Rhine", prompt_out=system))
    done = repository.bring()
    assert (done["left"], done["history"]["sessions"]) == ([], 4)
    assert len(repository.versions()) == 4


def test_the_runs_and_turns_of_then_keep_their_answers(repository: Repository) -> None:
    turns = [{"content": "{land}?"}, {"role": "assistant", "variable": "x"}, {"content": "Why?"}]
    test = {**ASKED, "prompt": None, "multi_run_prompt": [{"prompt": turns, "repetitions": 2}]}
    test["checker_args"] = {"checker_name": "MultiRunLambdaChecker", "func": "lambda rs, land: 1"}
    del test["prompt"]
    responses: list[Any] = [{"x": f"x{number}", "response": f"r{number}"} for number in (1, 2)]
    shown = [
        [
            {"content": "What of Peru?", "role": "user"},
            {"content": response["x"], "role": "assistant", "variable": "x"},
            {"content": "Why?", "role": "user"},
            {"content": response["response"], "role": "assistant", "variable": "response"},
        ]
        for response in responses
    ]
    repository.add(test, instance({"land": "Peru"}, responses, prompt_out=shown))
    done = repository.bring()
    assert (done["left"], done["history"]["sessions"]) == ([], 2)
    assert [len(run["sessions"]) for run in repository.before()] == [2]


def test_importing_older_prompts_twice_stores_nothing_more(repository: Repository) -> None:
    repository.add(ASKED, river("Peru", "Tell me"), river("Peru"), river("Chad", "Tell me!"))
    repository.bring()
    runs = repository.json("log")["runs"]
    assert repository.bring()["history"]["new"] == 0
    assert repository.json("log")["runs"] == runs
    assert repository.json("fsck")["problems"] == []


def test_older_answers_do_not_answer_the_question_of_today(repository: Repository) -> None:
    repository.add(ASKED, river("Peru", "Tell me a river of Peru"))
    repository.bring()
    plan = repository.json("status", "-m", GPT)
    assert (plan["ask"], plan["reuse"]) == (1, 0)
    assert repository.texts() == ["Tell me a river of Peru"]


def test_options_that_differ_with_older_prompts_are_reported(
    repository: Repository,
) -> None:
    lines = [
        instance({"land": "Peru", "max_tokens": 400}, "Ob", prompt_out=kept("A river?", "Ob")),
        instance({"land": "Peru", "max_tokens": 200}, "Rhine"),
    ]
    repository.add(ASKED, *lines)
    words = "the recorded calls differ in max_tokens; none of them is set"
    assert [item["reason"] for item in repository.bring()["warnings"]] == [words]


# --- candidates of the recorded temperatures ------------------------------------------------


def at(temperature: float, text: str | None = None) -> str:
    """A line about Peru, recorded at a temperature."""
    shown = {} if text is None else {"prompt_out": kept(text)}
    return instance({"land": "Peru", "temperature": temperature}, "Rhine", **shown)


def add_temperatures(repository: Repository) -> None:
    """Tests whose answers have several temperatures, with the default or without it, and one."""
    for number, temperatures in enumerate([(0.2, 0.7), (0.7, 0), (0.7,), (0,), (0.2,)]):
        prompt = [{"content": f"{number}. river in {{land}}"}]
        lines = [at(temperature) for temperature in temperatures]
        repository.add({**ASKED, "prompt": prompt}, *lines, place=f"geo/r{number}/gpt")


@pytest.mark.parametrize("usual", [None, 0, 0.7], ids=["none", "usual 0", "usual 0.7"])
def test_suggested_candidates_ask_nothing_that_has_no_recorded_answer(
    usual: float | None, repository: Repository
) -> None:
    settings: dict[str, Json] = {"candidatesTemperature": usual}
    repository.paste(settings)
    add_temperatures(repository)
    done = repository.bring()
    repository.paste({**settings, **done["settings"]})
    plan = repository.json("run", "-n")
    assert (plan["ask"], plan["reuse"]) == (0, 7)
    run = repository.json("run", "--judge-only")
    counted = Counter(id for case in run["cases"] for id in case["sessions"])
    assert (len(run["cases"]), sorted(counted.values())) == (7, [1] * 7)
    diff = repository.json("diff", done["history"]["run"], run["run"])
    assert (diff["broke"], diff["fixed"], diff["unchanged"]) == ([], [], 7)


def test_importing_again_suggests_the_same_candidates(repository: Repository) -> None:
    add_temperatures(repository)
    done = repository.bring()
    repository.paste(done["settings"])
    again = repository.bring()
    assert (again["settings"], again["written"]) == (done["settings"], [])
    assert again["history"]["run"] == done["history"]["run"]


def test_without_answers_each_model_is_suggested_once_for_all_of_its_tests(
    repository: Repository,
) -> None:
    add_temperatures(repository)
    done = repository.json("import", "lve", str(repository.path / "source"), "--into", "in")
    assert done["settings"] == {
        "candidates": [{"id": GPT, "requiredTags": [GPT], "temperature": 0}]
    }


def test_only_a_test_that_does_not_fix_its_temperature_has_a_tag_of_temperatures(
    repository: Repository,
) -> None:
    add_temperatures(repository)
    repository.bring()
    files = sorted((repository.root / "tests/in/geo").rglob("*.md"))
    texts = [file.read_text(encoding="utf-8") for file in files]
    assert [f"{GPT}@0.2+0.7" in texts[0], f"{GPT}@0+0.7" in texts[1]] == [True, True]
    assert [text for text in texts[2:] if f"{GPT}@" in text] == []


@pytest.mark.parametrize(("then", "now"), [(0.7, 0.0), (0.0, 0.7)])
def test_temperatures_of_older_prompts_are_not_asked_for(
    then: float, now: float, repository: Repository
) -> None:
    repository.add(ASKED, at(then, "Tell me a river of Peru"), at(now))
    done = repository.bring()
    listed = [candidate.get("temperature") for candidate in done["settings"]["candidates"]]
    assert listed == ([0, now] if now else [0])
    repository.paste(done["settings"])
    plan = repository.json("run", "-n")
    assert (done["history"]["sessions"], plan["ask"], plan["reuse"]) == (2, 0, 1)


# --- models that nobody can call ----------------------------------------------------------


def test_answers_need_no_model_that_can_be_called(repository: Repository) -> None:
    model = "acme/m-7b"
    repository.add({**ASKED, "model": model}, river("Peru"), river("Chad", None, "Ob"))
    done = repository.bring()
    assert (done["left"], done["history"]["sessions"]) == ([], 2)
    assert "models/in/acme--m-7b.yaml" in done["written"]
    assert repository.run("check")[0] == 0
    run = repository.json("run", "--judge-only", "-m", model)
    assert (run["reused"], run["judged"], run["asked"]) == (2, 2, 0)


def test_settings_of_the_import_judge_every_model(repository: Repository) -> None:
    repository.add({**ASKED, "model": "acme/m-7b"}, river("Peru"))
    repository.add(ASKED, river("Peru"), place="geo/rivers/gpt")
    settings = repository.bring()["settings"]
    tree(repository.root, {"evalstore.yaml": json.dumps(settings)})
    run = repository.json("run", "--judge-only")
    assert (run["reused"], run["asked"], len(run["cases"])) == (2, 0, 2)


def test_a_model_that_cannot_be_called_is_not_asked(repository: Repository) -> None:
    repository.add({**ASKED, "model": "acme/m-7b"}, river("Peru", "Tell me"))
    repository.bring()
    code, output = repository.run("status", "-m", "acme/m-7b")
    assert (code, "Left: 1 answer (no model may be called)." in output) == (0, True)
    run = repository.json("run", "-m", "acme/m-7b")
    assert (run["asked"], run["failed"], run["cases"][0]["verdict"]) == (0, 0, "pending")


def test_a_model_that_its_provider_does_not_have_cannot_be_called(repository: Repository) -> None:
    model = "openai/no-such-model"
    repository.add({**ASKED, "model": model}, river("Peru"), river("Chad", "Tell me"))
    assert "models/in/openai--no-such-model.yaml" in repository.bring()["written"]
    plan = repository.json("run", "-n", "-m", model)
    assert (plan["ask"], plan["reuse"], plan["left"]["ask"]) == (0, 1, 1)


def test_a_model_that_the_store_has_as_one_to_be_called_stays_one(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.add({**ASKED, "model": "openai/no-such-model"}, river("Peru"))
    with monkeypatch.context() as patched:  # as with a list that has the model
        patched.setattr(file_writer, "is_listed", lambda _kind, _code: True)
        done = repository.bring()
    again = repository.bring()
    assert (again["written"], again["history"]["new"]) == ([], 0)
    assert again["unchanged"] == done["written"]


def test_importing_again_counts_the_model_files_that_are_there(repository: Repository) -> None:
    for number, model in enumerate(("acme/m:7", "acme/m?7", GPT)):
        repository.add({**ASKED, "model": model}, river("Peru"), place=f"geo/r{number}/m")
    done = repository.bring()
    assert len([path for path in done["written"] if path.startswith("models/")]) == 2
    again = repository.bring()
    assert (again["written"], again["unchanged"], again["kept"]) == ([], done["written"], [])
    file = repository.root / "models/in/acme--m-7.yaml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("acme/m:7", "'acme/m:7'"), encoding="utf-8")
    assert "gone" not in repository.bring()  # other quotes say the same


def test_a_model_file_of_an_import_that_was_edited_is_left_alone(repository: Repository) -> None:
    repository.add({**ASKED, "model": "acme/m-7b"}, river("Peru"))
    repository.bring()
    file = repository.root / "models/in/acme--m-7b.yaml"
    text = file.read_text(encoding="utf-8") + "# mine\n"
    file.write_text(text, encoding="utf-8")
    again = repository.bring()
    assert (again["written"], again["kept"], file.read_text(encoding="utf-8")) == ([], [], text)


def test_a_model_of_the_workspace_is_not_written(repository: Repository) -> None:
    own = {"id": "acme/m-7b", "provider": "scripted", "responses": [{"answer": "x"}]}
    tree(repository.root, {"models/mine.yaml": json.dumps(own)})
    repository.add({**ASKED, "model": "acme/m-7b"}, river("Peru"))
    done = repository.bring()
    assert [name for name in done["written"] if name.startswith("models/")] == []
    assert repository.json("run", "--judge-only", "-m", "acme/m-7b")["reused"] == 1


def test_a_model_that_is_described_later_gets_the_answers_again(repository: Repository) -> None:
    own = {"id": "acme/m-7b", "provider": "scripted", "responses": [{"answer": "x"}]}
    repository.add({**ASKED, "model": "acme/m-7b"}, river("Peru"))
    repository.bring()
    tree(repository.root, {"models/in/acme--m-7b.yaml": json.dumps(own)})
    assert repository.bring()["history"]["new"] == 2


def test_models_with_like_names_have_files_of_their_own(repository: Repository) -> None:
    for number, model in enumerate(("acme/m:7", "acme/m?7", "acme--m-7")):
        repository.add({**ASKED, "model": model}, river("Peru"), place=f"geo/r{number}/m")
    done = repository.bring()
    assert (done["left"], done["history"]["sessions"]) == ([], 3)
    assert repository.run("check")[0] == 0


# --- one line in two tests ----------------------------------------------------------------


def test_lines_that_two_tests_share_are_one_answer(repository: Repository) -> None:
    lines = [river("Peru"), river("Chad"), river("Togo")]
    repository.add(ASKED, *lines)
    repository.add(ASKED, *lines[:2], river("Mali"), place="geo/streams/m")
    done = repository.bring()
    assert done["history"]["sessions"] == 4


def test_equal_lines_of_tests_that_ask_other_things_are_several_answers(
    repository: Repository,
) -> None:
    repository.add(ASKED, river("Peru"))
    asked = {**ASKED, "prompt": [{"content": "And in {land}?"}]}
    repository.add(asked, river("Peru"), place="geo/streams/m")
    done = repository.bring()
    assert (done["history"]["sessions"], done["warnings"]) == (2, [])


# --- everything at once -------------------------------------------------------------------


def test_one_command_brings_a_whole_repository(repository: Repository) -> None:
    """Several tests, models that nobody can call, older prompts: nothing is left out."""
    models = [GPT, "mistralai/m-7b", "meta/l-2"]
    for number, model in enumerate(models):
        lands = [f"land {number}" for number in range(20)]
        lines = [river(land, f"Name a river in {land}.") for land in lands]
        lines += [
            river(lands[number], f"Tell me a river of {lands[number]}", "Ob") for number in (0, 1)
        ]
        repository.add({**ASKED, "model": model}, *lines, place=f"geo/r{number}/m")
    toxic = {**ASKED, "checker_args": {"checker_name": "ToxicityChecker"}}
    repository.add(toxic, river("Peru"), place="geo/toxic/m")
    done = repository.bring()
    assert (done["left"], done["rows"], done["history"]["sessions"]) == ([], 61, 67)
    tree(repository.root, {"evalstore.yaml": json.dumps(done["settings"])})
    run = repository.json("run", "--judge-only")
    words = [case["verdict"] for case in run["cases"]]
    assert (words.count("pass"), words.count("pending"), run["asked"]) == (60, 1, 0)

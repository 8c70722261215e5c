"""Recorded answers and verdicts of LVE, from a repository into the store and through `judge`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalstore.core.values import Json
from evalstore.store import Store
from tests.builders import tree
from tests.exchange.importers.lve.repository import SAFE, definition, instance
from tests.exchange.importers.running import CommandRunner

MODEL = "openai/gpt-4"
RIGHT: dict[str, Json] = {
    "checker_name": "LambdaChecker",
    "func": "lambda r, a, b: int(r) == int(a) + int(b)",
}
ALL_RIGHT: dict[str, Json] = {
    "checker_name": "MultiRunLambdaChecker",
    "func": "lambda rs, a, b: all(int(r) == int(a) + int(b) for r in rs)",
}
NAMES = ["a", "b"]


def sums(**fields: Json) -> dict[str, Json]:
    """A test that adds two numbers."""
    defaults: dict[str, Json] = {"prompt": [{"content": "{a} + {b}"}], "checker_args": RIGHT}
    return definition(**{"model": MODEL, "prompt_parameters": NAMES, **defaults, **fields})


def of(a: int, b: int, answer: Json, **fields: Json) -> str:
    """A recorded instance."""
    args = {"a": str(a), "b": str(b)}
    return instance({**args, **fields.pop("more", {})}, answer, **fields)


class Imported(CommandRunner):
    """A workspace that a small repository is imported into."""

    def __init__(
        self,
        path: Path,
        capsys: pytest.CaptureFixture[str],
        test: dict[str, Json],
        *instances: str,
        settings: str = "",
    ) -> None:
        super().__init__(path / "workspace", capsys)
        folder = "source/repository/math/sum/m"
        files = {
            f"{folder}/test.json": json.dumps(test),
            f"{folder}/instances/all.jsonl": "".join(instances),
            "workspace/evalstore.yaml": settings,
        }
        tree(path, files)
        self.source = path / "source"
        self.test = self.root / "tests/in/math/sum/m.md"
        self.document = self.again()

    def again(self) -> Any:
        return self.json("import", "lve", str(self.source), "--into", "in", "--sessions")

    def judge(self) -> Any:
        return self.json("run", "--judge-only", "-m", MODEL)

    @property
    def history(self) -> Any:
        return self.document["history"]

    @property
    def left(self) -> list[tuple[str, int | None, str]]:
        return [
            (Path(item["file"]).name, item["line"], item["reason"])
            for item in self.document["left"]
        ]

    def sizes(self) -> dict[str, int]:
        """How many rows every table of the store has."""
        store = Store.open(self.root / ".evalstore/store.db")
        sizes: dict[str, int] = {}
        for table, _ in store.iterate():
            sizes[table] = sizes.get(table, 0) + 1
        store.close()
        return sizes


def verdicts(run: Any) -> dict[str, str]:
    return {case["row"]: case["verdict"] for case in run["cases"]}


def test_recorded_answers_are_judged_and_nobody_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    imported = Imported(tmp_path, capsys, sums(), of(1, 2, "3"), of(2, 2, "5", passed=False))
    run = imported.judge()
    assert (run["asked"], run["reused"], run["judged"]) == (0, 2, 2)
    assert verdicts(run) == {"a=1": "pass", "a=2": "fail"}


def test_after_judging_nothing_is_left_to_ask(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    imported = Imported(tmp_path, capsys, sums(), of(1, 2, "3"))
    imported.judge()
    plan = imported.json("run", "-n", "-m", MODEL)
    assert (plan["ask"], plan["judge"], plan["reuse"]) == (0, 0, 1)


def test_a_diff_with_the_import_shows_what_the_check_sees_in_another_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [of(1, 2, "3"), of(2, 2, "4", passed=False), of(3, 2, "6")]
    imported = Imported(tmp_path, capsys, sums(), *lines)
    run = imported.judge()
    diff = imported.json("diff", imported.history["run"], run["run"])
    assert [case["row"] for case in diff["fixed"]] == ["a=2"]
    (broke,) = diff["broke"]
    assert (broke["row"], broke["reason"]) == ("a=3", "instructions removed, checks added")
    assert broke["was"]["feedback"] == "recorded by lve (LambdaChecker)"
    assert "expected 'int(answer)" in broke["now"]["feedback"]
    assert diff["unchanged"] == 1


def test_an_import_reports_that_its_older_answers_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    imported = Imported(tmp_path, capsys, sums(), of(1, 2, "3"))
    recorded = next(imported.source.rglob("all.jsonl"))
    older = of(1, 2, "4", passed=False, run_info={"timestamp": "Sun Jan  1 00:00:00 2023"})
    recorded.write_text(recorded.read_text(encoding="utf-8") + older, encoding="utf-8")
    displaced = [imported.again()["history"]["displaced"] for _ in range(2)]
    assert (imported.history["displaced"], displaced) == (0, [1, 0])


def test_importing_twice_stores_nothing_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    imported = Imported(tmp_path, capsys, sums(), of(1, 2, "3"), of(1, 2, "3"))
    before = imported.sizes()
    again = imported.again()["history"]
    assert (again["new"], again["run"]) == (0, imported.history["run"])
    assert imported.sizes() == before


def test_a_store_with_history_is_sound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    imported = Imported(tmp_path, capsys, sums(), of(1, 2, "3"), of(2, 2, "4", passed=False))
    assert imported.json("fsck")["problems"] == []


def test_recorded_verdicts_are_not_verdicts_of_current_checks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    imported = Imported(tmp_path, capsys, sums(), of(1, 2, "3"))
    run = imported.json("show", imported.history["run"])
    (session,) = run["related"]["results"][0]["sessions"]
    shown = imported.json("show", session)
    (vote,) = shown["related"]["evaluations"]
    assert (vote["by"], vote["verdict"]) == ("lve", "pass")
    (instructions,) = shown["related"]["instructions"].values()
    assert instructions["instructions"] == "The verdict that lve has recorded, by LambdaChecker."
    assert (shown["origin"], shown["started"]) == ("import", 1_698_010_110_000_000)
    assert run["origin"] == "import"


def test_the_answers_of_several_runs_keep_their_places(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [{"prompt": [{"content": "{a} + {b}"}], "repetitions": 4}]
    first_is_largest: dict[str, Json] = {
        "checker_name": "MultiRunLambdaChecker",
        "func": "lambda rs, a, b: [int(r) for r in rs] == [9, 7, 5, 3]",
    }
    test = sums(multi_run_prompt=runs, checker_args=first_is_largest)
    del test["prompt"]
    lines = [of(1, 2, ["9", "7", "5", "3"]), of(4, 2, ["3", "5", "7", "9"], passed=False)]
    imported = Imported(tmp_path, capsys, test, *lines)
    assert imported.history["sessions"] == 8
    run = imported.judge()
    assert verdicts(run) == {"a=1": "pass", "a=4": "fail"}
    assert imported.json("diff", imported.history["run"], run["run"])["unchanged"] == 2


def test_several_answers_to_one_row_are_attempts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [{"prompt": [{"content": "{a} + {b}"}], "repetitions": 2}]
    test = sums(multi_run_prompt=runs, checker_args=ALL_RIGHT)
    del test["prompt"]
    lines = [of(1, 2, ["3", "3"]), of(1, 2, ["3", "4"], passed=False)]
    imported = Imported(tmp_path, capsys, test, *lines, settings="attempts: 2\nverdict: any\n")
    run = imported.judge()
    (case,) = run["cases"]
    assert (case["verdict"], len(case["sessions"]), run["asked"]) == ("pass", 4, 0)
    assert imported.json("diff", imported.history["run"], run["run"])["unchanged"] == 1


def test_more_answers_than_attempts_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    imported = Imported(tmp_path, capsys, sums(), of(1, 2, "3"), of(1, 2, "4", passed=False))
    words = "1 row has more recorded answers than are judged: 'attempts: 1' takes the oldest"
    assert [item["reason"] for item in imported.document["warnings"]] == [words]


def test_answers_that_attempts_leave_out_count_when_more_are_wanted_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [of(1, 2, "3"), of(1, 2, "4", passed=False), of(2, 2, "4"), of(2, 2, "5")]
    imported = Imported(tmp_path, capsys, sums(), *lines, settings="verdict: any\n")
    words = "2 rows have more recorded answers than are judged: 'attempts: 1' takes the oldest"
    assert [item["reason"] for item in imported.document["warnings"]] == [words]
    run = imported.json("run", "--judge-only", "-m", MODEL, "-r", "2", str(imported.test))
    assert (run["reused"], run["asked"], run["verdicts"]["pass"]) == (4, 0, 2)


# --- temperatures -------------------------------------------------------------------------


def test_answers_at_one_temperature_are_those_of_a_test_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = of(1, 2, "3", more={"temperature": 0.7})
    imported = Imported(tmp_path, capsys, sums(), line)
    assert "temperature: 0.7" in imported.test.read_text(encoding="utf-8")
    assert imported.judge()["reused"] == 1


def test_answers_at_several_temperatures_are_those_of_several_candidates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [of(1, 2, "3"), of(2, 2, "4", more={"temperature": 0.7})]
    imported = Imported(tmp_path, capsys, sums(), *lines)
    assert imported.judge()["reused"] == 0
    settings = imported.document["settings"]
    (imported.root / "evalstore.yaml").write_text(json.dumps(settings), encoding="utf-8")
    run = imported.judge()
    assert run["reused"] == 2
    diff = imported.json("diff", imported.history["run"], run["run"])
    assert (diff["broke"], diff["fixed"], diff["unchanged"]) == ([], [], 2)


def test_answers_keep_their_temperature_whatever_the_settings_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = "candidatesTemperature: 0.7\n"
    imported = Imported(tmp_path, capsys, sums(), of(1, 2, "3"), settings=settings)
    assert imported.judge()["reused"] == 1
    more = json.dumps(imported.document["settings"]["candidates"])
    (imported.root / "evalstore.yaml").write_text(settings + f"candidates: {more}\n")
    run = imported.judge()
    assert run["reused"] == 1
    assert imported.json("diff", imported.history["run"], run["run"])["unchanged"] == 1


def test_an_answer_whose_temperature_is_not_a_number_is_stored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    test = sums(default_model_args={"temperature": "warm"})
    lines = [of(1, 2, "3"), of(2, 2, "4", more={"temperature": 0.5})]
    imported = Imported(tmp_path, capsys, test, *lines)
    assert (imported.left, imported.history["sessions"]) == ([], 2)


# --- what has no place --------------------------------------------------------------------


def test_answers_to_a_test_that_was_edited_since_are_not_stored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    imported = Imported(tmp_path, capsys, sums(), of(1, 2, "3"))
    text = imported.test.read_text(encoding="utf-8")
    imported.test.write_text(text.replace("{{b}}", "{{b}}!"), encoding="utf-8")
    imported.document = imported.again()
    ((_, line, reason),) = imported.left
    assert (line, reason) == (1, "the test file was edited since the import, or was not written")
    assert imported.history["sessions"] == 0


def test_a_wrong_number_of_answers_is_reported_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    imported = Imported(tmp_path, capsys, sums(), of(1, 2, "3"), of(2, 2, ["4", "4"]))
    assert imported.left == [("all.jsonl", 2, "it has answers of 2 runs, the test has 1")]
    assert imported.history["sessions"] == 1


def test_one_answer_of_several_runs_is_reported_in_the_singular(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [{"prompt": [{"content": "{a} + {b}"}], "repetitions": 2}]
    test = sums(multi_run_prompt=runs, checker_args=ALL_RIGHT)
    del test["prompt"]
    imported = Imported(tmp_path, capsys, test, of(1, 2, ["3", "3"]), of(2, 2, "4"))
    assert imported.left == [("all.jsonl", 2, "it has answers of 1 run, the test has 2")]


def test_a_dry_run_stores_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    imported = Imported(tmp_path, capsys, sums(), of(1, 2, "3"))
    (imported.root / ".evalstore/store.db").unlink()
    imported.run("import", "lve", str(imported.source), "--into", "in", "--sessions", "-n")
    assert not (imported.root / ".evalstore/store.db").exists()


def test_rows_in_a_data_file_are_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [of(number, 2, str(number + 2)) for number in range(9)]
    imported = Imported(tmp_path, capsys, sums(), *lines)
    run = imported.judge()
    assert (run["reused"], run["verdicts"]["pass"]) == (9, 9)


def test_values_that_no_text_mentions_do_not_hide_a_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    test = sums(prompt_parameters=["a", "b", "c"], checker_args=SAFE)
    lines = [instance({"a": "1", "b": "2", "c": text}, "3") for text in ("x", "y")]
    imported = Imported(tmp_path, capsys, test, *lines)
    assert (imported.left, imported.history["sessions"]) == ([], 2)


def test_text_that_cannot_be_stored_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    imported = Imported(tmp_path, capsys, sums(), of(1, 2, "3"), of(2, 2, "\ud83d"))
    assert imported.left == [("all.jsonl", 2, "a text holds half of a surrogate pair")]


def test_no_history_is_stored_unless_it_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    imported = Imported(tmp_path, capsys, sums(), of(1, 2, "3"))
    done = imported.json("import", "lve", str(imported.source), "--into", "other")
    assert done["history"] is None


def test_lines_that_say_the_same_are_stored_and_counted_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = of(1, 2, "3")
    imported = Imported(tmp_path, capsys, sums(), line, of(2, 2, "5"), line, line)
    assert (
        imported.history["sessions"],
        imported.history["verdicts"],
        imported.sizes()["sessions"],
    ) == (
        2,
        2,
        2,
    )


def test_the_same_answer_of_another_second_is_another_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    later = of(1, 2, "3").replace(":30 2023", ":31 2023")
    imported = Imported(tmp_path, capsys, sums(), of(1, 2, "3"), later)
    assert imported.history["sessions"] == 2

"""Options that choose cases: `--changed`, `--lf`, `--sample`, `--shard`, `--limit`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalstore.planning.open_project import open_store
from evalstore.planning.options import Location
from tests.builders import test_file, tree
from tests.interfaces.cli.conftest import Evalstore
from tests.interfaces.cli.run.test_run import edit

CITIES = ("Oslo", "Rome", "Łódź", "東京", "Lima", "Bonn")


@pytest.fixture(autouse=True)
def _at_any_price(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALSTORE_RUN_YES", "1")


@pytest.fixture
def cities(workspace: Path) -> Path:
    """A workspace with two files of six rows each; the rows Oslo fail."""
    rows = "replacements:\n  city: [" + ", ".join(CITIES) + "]"
    return tree(
        workspace,
        {
            "tests/weather.md": test_file(
                rows, shown="How is {{city}}?", evaluation="The answer must be warm."
            ),
            "tests/more.md": test_file(
                rows, shown="And {{city}}?", evaluation="The answer must be warm."
            ),
        },
    )


def rows_of(document: Any) -> list[tuple[str, str]]:
    """File and row of what a dry run would ask."""
    return [(item["file"], item["row"]) for item in document["items"] if item["kind"] == "ask"]


# --- limit, sample, shard


def test_a_limit_takes_the_first_cases_in_file_order(cities: Path, documents: Any) -> None:
    assert rows_of(documents("status", "--limit", "2")) == [
        ("tests/more.md", "city=Oslo"),
        ("tests/more.md", "city=Rome"),
    ]
    assert len(rows_of(documents("status", "--limit", "100"))) == 12


def test_a_sample_is_the_same_for_the_same_seed_alone(cities: Path, documents: Any) -> None:
    first = rows_of(documents("status", "--sample", "4"))
    assert len(first) == 4
    assert rows_of(documents("status", "--sample", "4", "--seed", "0")) == first
    assert rows_of(documents("status", "--sample", "4", "--seed", "1")) != first
    assert first == sorted(first, key=rows_of(documents("status")).index)


def test_shards_are_parts_of_the_sample_and_the_limit_holds_for_each(
    cities: Path, documents: Any
) -> None:
    sample = set(rows_of(documents("status", "--sample", "8")))
    shards = [
        rows_of(documents("status", "--sample", "8", "--shard", f"{n}/2", "--limit", "2"))
        for n in (1, 2)
    ]
    assert [len(shard) for shard in shards] == [2, 2]
    assert set(shards[0] + shards[1]) < sample


def test_every_case_is_in_one_shard_and_equal_questions_are_in_the_same(
    cities: Path, documents: Any
) -> None:
    (cities / "tests/copy.md").write_bytes((cities / "tests/more.md").read_bytes())
    # Equal questions are one item of the plan.
    actual = [documents("status", "--shard", f"{n}/3")["items"] for n in (1, 2, 3)]
    rows = [
        item["row"] + item["file"] for shard in actual for item in shard if item["kind"] == "ask"
    ]
    assert len(rows) == len(set(rows)) == 12


def test_a_shard_that_makes_no_sense_is_refused(cities: Path, evalstore: Evalstore) -> None:
    output = evalstore("status", "--shard=3/2")
    assert output.exit_code == 2
    assert output.stderr == (
        "error: '--shard 3/2' is not valid\nhint: write I/N, such as '1/4', '2/4', '3/4', '4/4'\n"
    )


def test_an_empty_shard_says_so(workspace: Path, evalstore: Evalstore) -> None:
    actual = [evalstore("run", "-n", "--shard", f"{n}/9") for n in range(1, 10)]
    empty = [ran for ran in actual if ran.exit_code == 5]
    assert 7 <= len(empty) < 9
    assert "no case falls into shard" in empty[0].stderr


def test_a_seed_without_a_sample_is_refused(workspace: Path, evalstore: Evalstore) -> None:
    assert evalstore("run", "--seed", "1").exit_code == 2


@pytest.mark.parametrize("option", ["--limit", "--sample"])
def test_less_than_one_case_is_refused(workspace: Path, evalstore: Evalstore, option: str) -> None:
    assert evalstore("run", option, "0").exit_code == 2


def test_a_limit_can_come_from_the_environment(
    cities: Path, documents: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALSTORE_STATUS_LIMIT", "3")
    monkeypatch.setenv("EVALSTORE_STATUS_REFRESH", "1")
    assert len(rows_of(documents("status"))) == 3


# --- last failed


def test_lf_selects_what_did_not_pass(cities: Path, evalstore: Evalstore, documents: Any) -> None:
    evalstore("run")
    document = documents("run", "--lf")
    assert [(case["file"], case["row"]) for case in document["cases"]] == [
        ("tests/more.md", "city=Oslo"),
        ("tests/weather.md", "city=Oslo"),
    ]
    assert (document["asked"], document["judged"]) == (0, 0)


def test_lf_looks_at_the_newest_run_that_has_the_case(
    cities: Path, evalstore: Evalstore, documents: Any
) -> None:
    evalstore("run")
    evalstore("run", "tests/more.md")
    edit(cities / "tests/more.md", "must be warm", "must be short")
    evalstore("run", "tests/more.md")
    document = documents("run", "--lf")
    assert [case["file"] for case in document["cases"]] == ["tests/weather.md"]


def test_lf_pairs_an_edited_row_by_its_label(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    evalstore("run")
    edit(workspace / "tests/weather.md", "How is", "And how is")
    assert rows_of(documents("status", "--last-failed")) == [("tests/weather.md", "city=Oslo")]


def test_lf_takes_what_is_pending_for_failed(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    edit(workspace / "models/one.yaml", "{when: Oslo, answer: Cold.", "{when: Oslo, error: 500")
    edit(workspace / "models/one.yaml", ", usage: {inputTokens: 10, outputTokens: 2}", "")
    evalstore("run", "--retries", "0")
    assert rows_of(documents("status", "--lf")) == [("tests/weather.md", "city=Oslo")]


def test_lf_with_a_sample_samples_the_failed(
    cities: Path, evalstore: Evalstore, documents: Any
) -> None:
    evalstore("run")
    document = documents("run", "--lf", "--sample", "1")
    assert [case["row"] for case in document["cases"]] == ["city=Oslo"]


def test_lf_with_nothing_failed_selects_nothing(workspace: Path, evalstore: Evalstore) -> None:
    output = evalstore("run", "--lf")
    assert (output.exit_code, output.stderr.splitlines()[0]) == (
        5,
        "error: nothing is selected: no runs yet",
    )
    evalstore("run", "-k", "Rome")
    output = evalstore("run", "--lf")
    assert (output.exit_code, output.stderr.splitlines()[0]) == (
        5,
        "error: nothing is selected: nothing failed when it last ran",
    )


# --- changed


def test_changed_selects_edited_and_new_cases(
    cities: Path, evalstore: Evalstore, documents: Any
) -> None:
    evalstore("run")
    edit(cities / "tests/weather.md", "Lima", "Lima, Kyiv")
    (cities / "tests/new.md").write_text(test_file())
    assert rows_of(documents("status", "--changed", "--refresh")) == [
        ("tests/new.md", ""),
        ("tests/weather.md", "city=Kyiv"),
    ]


def test_changed_sees_new_instructions_and_prompts(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    tree(workspace, {"prompts/sys.md": "Be kind.", "tests/p.md": test_file("systemPrompts: [sys]")})
    evalstore("run")
    edit(workspace / "prompts/sys.md", "kind", "curt")
    assert rows_of(documents("status", "--changed", "--refresh")) == [("tests/p.md", "")]
    evalstore("run")
    edit(workspace / "tests/weather.md", "must be warm", "must be warm in {{city}}")
    changed = documents("status", "--changed")
    assert (changed["ask"], changed["judge"]) == (0, 2)


def test_a_renamed_file_has_not_changed(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run")
    (workspace / "tests/weather.md").rename(workspace / "tests/other.md")
    output = evalstore("run", "--changed")
    assert (output.exit_code, output.stderr.splitlines()[0]) == (
        5,
        "error: nothing is selected: nothing has changed since the newest run",
    )


def test_of_a_renamed_and_edited_file_only_the_edit_has_changed(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    evalstore("run")
    (workspace / "tests/weather.md").rename(workspace / "tests/other.md")
    edit(workspace / "tests/other.md", "Rome]", "Rome, Bonn]")
    assert rows_of(documents("status", "--changed")) == [("tests/other.md", "city=Bonn")]


def test_before_the_first_run_everything_has_changed(workspace: Path, documents: Any) -> None:
    assert len(rows_of(documents("status", "--changed"))) == 2


def test_changed_and_failed_are_both_asked_for(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    evalstore("run")
    edit(workspace / "tests/weather.md", "How is", "And how is")
    assert rows_of(documents("status", "--changed", "--lf")) == [("tests/weather.md", "city=Oslo")]


def test_a_choice_shows_no_change_of_files_that_are_not_in_it(
    cities: Path, evalstore: Evalstore
) -> None:
    evalstore("run")
    edit(cities / "tests/weather.md", "How is", "And how is")
    edit(cities / "tests/more.md", "And", "And how is")
    assert evalstore("status", "--short", "--limit", "1").stdout == "M. tests/more.md\n"


# --- combined


def test_a_run_keeps_what_selected_it(cities: Path, documents: Any) -> None:
    documents("run", "--sample", "4", "--seed", "0", "--shard", "1/1", "--refresh", "-r", "2")
    with open_store(Location(cities)) as store:
        (run,) = store.find_runs()
    assert run.selection == {
        "attempts": 2,
        "refresh": True,
        "sample": 4,
        "seed": 0,
        "shard": "1/1",
    }


@pytest.mark.parametrize(
    "options",
    [
        ("--changed", "-k", "東京"),
        ("--changed", "--shard", "1/1", "-k", "東京"),
        ("--limit", "3", "-k", "東京", "--sample", "9"),
        ("--refresh", "--max-age", "1d", "tests/more.md::city=東京", "tests/weather.md::city=東京"),
    ],
    ids=" ".join,
)
def test_options_are_applied_one_after_the_other(
    cities: Path, documents: Any, options: tuple[str, ...]
) -> None:
    assert [row for _, row in rows_of(documents("status", *options))] == ["city=東京"] * 2


@pytest.mark.parametrize(
    "options",
    [("--lf", "-k", "Rome"), ("--changed", "--limit", "1"), ("-k", "nowhere", "--changed")],
    ids=" ".join,
)
def test_an_empty_selection_ends_with_5_and_leaves_no_run(
    workspace: Path, evalstore: Evalstore, documents: Any, options: tuple[str, ...]
) -> None:
    documents("run")
    assert evalstore("run", *options).exit_code == 5
    assert len(documents("log")["runs"]) == 1


# --- whom a case is meant for


def test_settings_and_candidates_choose_by_tags(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    for name, tags in (("a", "x, y"), ("b", "x"), ("c", "y"), ("d", "x, y, no")):
        (workspace / f"tests/{name}.md").write_text(test_file(f"tags: [{tags}]", shown=name))
    (workspace / "evalstore.yaml").write_text(
        "candidates: [{id: scripted/one, requiredTags: [x]}, {id: scripted/one, temperature: 1, "
        "prohibitedTags: [y]}]\n"
        "evaluators: [scripted/judge]\nrequiredTags1: [x, z]\nprohibitedTags: [no]\n"
    )
    document = documents("status")
    asked = [(item["file"], item["model"]) for item in document["items"] if item["kind"] == "ask"]
    assert asked == [
        ("tests/a.md", "scripted/one"),
        ("tests/b.md", "scripted/one"),
        ("tests/b.md", "scripted/one@1"),
    ]
    edit(workspace / "evalstore.yaml", "prohibitedTags: [no]", "requiredTags2: [y]")
    assert {file for file, _ in rows_of(documents("status"))} == {"tests/a.md", "tests/d.md"}


def test_a_pair_without_a_capability_is_listed_also_under_a_limit(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    tree(workspace, {"tools/t.yaml": "id: t\nname: t\ndescription: x\n"})
    (workspace / "tests/a.md").write_text(test_file("availableTools: [t]"))
    edit(workspace / "models/one.yaml", "costs:", "capabilities: {output: {tools: false}}\ncosts:")
    assert evalstore("status", "--limit", "1").stdout.startswith(
        "No run yet.\n\nSkipped, because the model lacks a capability (1):\n"
        "    tests/a.md  scripted/one has no tools\n"
    )
    assert documents("status")["skipped"] == 1
    assert documents("run")["asked"] == 2
    assert documents("status", "tests/weather.md")["skipped"] == 0


def test_a_word_that_no_case_has_gets_the_nearest_one(
    workspace: Path, evalstore: Evalstore
) -> None:
    told = evalstore("run", "-k", "wether and not rome").stderr
    assert told == "error: nothing is selected\nhint: did you mean 'weather'?\n"
    assert "'evalstore ls cases' lists the cases" in evalstore("run", "-k", "zzz").stderr

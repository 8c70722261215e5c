"""A judge is asked again only when what it is told has changed, or how its reply is read."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.core.values import Cost, Evaluation, Usage, Vote
from evalstore.interfaces.api.workspace import Workspace
from evalstore.interfaces.cli.main import main
from evalstore.planning.cell_results import digest_told, is_known, keys_of
from evalstore.runs.run_report import carry
from evalstore.store import Store
from tests import endpoint, stored_rows
from tests.builders import tree
from tests.endpoint import Endpoint
from tests.forked_programs import Starter

PROMPT = """\
---
tags: [_evaluator]
---

Grade. {{_systemPrompt}} {{_schema}} {{_tools}}

# 👤

{{_evaluationInstructions}}

{{_messages}}

{{_actualResponse}}
"""
_CODE = re.compile(r'"code": "(\w+)"')


def reply(body: dict[str, Any], **fields: Any) -> str:
    """A readable verdict, with the code that the judge is told."""
    code = _CODE.findall(body["messages"][-1]["content"])
    return json.dumps({"pass": True, "feedback": "fine", **fields} | {"code": (code or [""])[-1]})


@dataclass
class Bench:
    """A workspace whose judge is a server on loopback."""

    server: Endpoint
    root: Path
    url: str | None = None
    settings: str = ""
    head: str = "replacements: {what: [grass, moss]}"
    files: dict[str, str] = field(default_factory=dict)

    def write(self, *checks: str, told: str = "Is it green?", when: str = "") -> None:
        """Write the test file with these checks beside instructions."""
        entries = "\n".join(f"- {check}" for check in checks)
        if when:
            entries = f"evaluator: {when}\nchecks:\n{entries}"
        block = f"\n~~~checks\n{entries}\n~~~\n" if checks else ""
        provider = f"code: here\nname: here\ntype: openai-compatible\nbaseURL: {self.server.url}\n"
        judge = "provider: here\ncosts: [{costPerCall: 0.05}]\n"
        tree(
            self.root,
            {
                "evalstore.yaml": f"candidates: [scripted/one]\nevaluators: [judge]\n"
                f"{self.settings}",
                "providers/here.yaml": provider,
                "models/one.yaml": "id: scripted/one\nprovider: scripted\n"
                "responses: [{answer: Green.}]\n",
                "models/judge.yaml": f"id: judge\n{judge}",
                "models/other.yaml": f"id: other\ncode: other\n{judge}",
                "prompts/_evaluator_default.md": PROMPT,
                "tests/t.md": f"---\n{self.head}\n---\n\n# 👤\n\nWhat colour is {{{{what}}}}?\n\n"
                f"---\n\n{told}\n{block}",
                **self.files,
            },
        )

    @property
    def api(self) -> Workspace:
        return Workspace(self.root, store=self.url)

    def run(self, **options: Any) -> tuple[int, Any]:
        """Run what is missing; how often the judge was called, and the report."""
        before = len(self.server.received)
        report = self.api.run(**{"fail_on": "none", "retries": 0, **options})
        return len(self.server.received) - before, report

    def judgements(self) -> list[dict[str, Any]]:
        """The stored verdicts by the judge."""
        with closing(Store.open(stored_rows.locate(self.root, self.url))) as store:
            contents = stored_rows.read_contents(store, "evaluations")
        return [content for content in contents if "checks" not in content]

    def finish(self) -> None:
        """The plan is empty and the store sound, so nothing is done twice."""
        status = self.api.status()
        assert (status.items, status.judge, status.left_judgements) == ([], 0, 0)
        calls, report = self.run()
        assert (calls, report.judged) == (0, 0)
        assert report.totals.verdicts["pending"] == 0
        assert not self.api.fsck().problems


@pytest.fixture
def server() -> Iterator[Endpoint]:
    with endpoint.running() as server:
        server.reply = reply
        yield server


@pytest.fixture
def bench(server: Endpoint, tmp_path: Path, store_url: str | None) -> Bench:
    return Bench(server, tmp_path, store_url)


def test_checks_that_are_added_changed_and_removed_call_no_judge(bench: Bench) -> None:
    bench.write()
    assert bench.run()[0] == 2
    for checks in (["contains: Gree"], ["contains: Green"], ["startsWith: G", "contains: ."], []):
        bench.write(*checks)
        status = bench.api.status()
        assert (status.judge, status.by_checks) == ((2, 2) if checks else (0, 0))
        assert status.cost == 0
        calls, report = bench.run()
        assert (calls, report.judged, report.cost) == (0, 2 if checks else 0, 0)
        assert report.totals.verdicts["pass"] == 2
        assert report.saved == pytest.approx(0.1)
        bench.finish()


def test_what_a_judgement_had_cost_is_counted_in_every_run_that_uses_it_again(
    bench: Bench,
) -> None:
    for checks in (["contains: Gree"], ["contains: Green"]):
        bench.write(*checks)
        bench.run()
        assert bench.run()[1].saved == pytest.approx(0.1)
        assert bench.api.stats().total.judging == pytest.approx(0.1)


def test_a_judgement_that_is_used_again_is_a_row_of_its_own_that_says_where_it_is_from(
    bench: Bench,
) -> None:
    bench.write("contains: Gree")
    bench.run()
    first = bench.judgements()
    for check in ("contains: Green", "contains: een"):
        bench.write(check)
        bench.run()
    stored = bench.judgements()
    assert len(first) == 2
    assert len(stored) == 6
    for was in first:
        mine = [each for each in stored if each["sessions"] == was["sessions"] and each != was]
        for each in mine:
            assert len(each.pop("takenFrom")) == 32
            assert {**each, "evaluation": was["evaluation"]} == was
        assert len({each["evaluation"] for each in (was, *mine)}) == 3
    taken = {each.get("takenFrom") for each in bench.judgements()} - {None}
    assert len(taken) == 2  # both times it is the first one


# A store compares digests, which the other tests have it do in both databases.
@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("told", "checks", "when"),
    [
        ("Is it red?", ["contains: Green"], ""),
        ("Is it red?", ["contains: Gree"], ""),
        ("{{ sample.output_text }} it is?", ["contains: Gree"], ""),
        ("Is it green?", ["judge: {prompt: strict}", "contains: Gree"], ""),
        ("Is it green?", ["judge: {choices: ['Yes', 'No'], pass: ['Yes']}", "contains: Gree"], ""),
    ],
)
def test_another_thing_to_tell_the_judge_calls_it(
    bench: Bench, told: str, checks: list[str], when: str
) -> None:
    bench.files["prompts/strict.md"] = PROMPT.replace("Grade.", "Grade strictly.")
    bench.write("contains: Gree")
    bench.run()
    bench.write(*checks, told=told, when=when)
    calls, _ = bench.run()
    assert calls >= 2
    assert not any("takenFrom" in each for each in bench.judgements())


def choose_yes(body: dict[str, Any]) -> str:
    """A choice, with the reasons that are asked for."""
    reasons = '"reasoning": "", ' if '"reasoning"' in str(body["messages"]) else ""
    return f'{{{reasons}"choice": "Yes"}}'


# A store compares digests, which the other tests have it do in both databases.
@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "edit", ["pass: ['No']", "scores: {'Yes': 0, 'No': 1}", "answer: classify"]
)
def test_another_way_to_read_the_reply_calls_the_judge(bench: Bench, edit: str) -> None:
    bench.server.reply = choose_yes
    choices = "choices: ['Yes', 'No'], pass: ['Yes']"
    bench.write(f"judge: {{{choices}}}", "contains: Gree")
    bench.run()
    bench.write(f"judge: {{{choices}}}", "contains: Green")
    assert bench.run()[0] == 0
    other = f"{choices}, {edit}" if "pass" not in edit else f"choices: ['Yes', 'No'], {edit}"
    bench.write(f"judge: {{{other}}}", "contains: Green")
    assert bench.run()[0] >= 2


def test_another_evaluator_is_called(bench: Bench) -> None:
    bench.write("contains: Gree")
    bench.run()
    bench.write("contains: Green")
    evaluators = {"evaluators": ["other"]}
    assert bench.run(**evaluators)[0] == 2
    bench.write("contains: een")
    assert bench.run(**evaluators)[0] == 0
    assert bench.run(evaluators=["judge"])[0] == 0
    bench.files["prompts/_evaluator_default.md"] = PROMPT.replace("Grade.", "Grade well.")
    bench.write("contains: Gr")
    assert bench.run(evaluators=["judge"])[0] == 2


def test_a_judge_that_was_not_needed_is_called_once_it_is(bench: Bench) -> None:
    bench.write("contains: Blue")
    assert bench.run()[0] == 0
    bench.write("contains: Green")
    assert bench.run()[0] == 2
    bench.write("contains: Blue")  # undone: the judge is not needed again
    calls, report = bench.run()
    assert (calls, report.totals.verdicts["fail"]) == (0, 2)
    bench.write("contains: Black")
    calls, report = bench.run()
    assert (calls, report.totals.verdicts["fail"]) == (0, 2)
    assert len(bench.judgements()) == 2  # nothing is carried over that does not count
    for when in ("on_fail", "always"):
        bench.write("contains: Black", when=when)
        calls, report = bench.run()
        assert calls == 0
        # The checks overrule a judge that is asked always, and not one that decides what fails.
        assert report.totals.verdicts["pass" if when == "on_fail" else "fail"] == 2
        bench.finish()


def test_as_many_judgements_are_used_again_as_are_wanted(bench: Bench) -> None:
    bench.settings = "evaluationsPerEvaluator: 2\n"
    bench.write("contains: Gree")
    assert bench.run()[0] == 4
    bench.write("contains: Green")
    assert bench.run()[0] == 0
    bench.settings = "evaluationsPerEvaluator: 3\n"
    bench.write("contains: een")
    status = bench.api.status()
    assert [item.count for item in status.items if item.evaluator == "judge"] == [1, 1]
    assert {item.reason for item in status.items if item.evaluator == "judge"} == {
        "evaluationsPerEvaluator 2 -> 3"
    }
    assert bench.run()[0] == 2
    bench.write("contains: Gree")
    assert bench.run()[0] == 0
    bench.finish()
    by_version: dict[str, list[int]] = {}
    for each in bench.judgements():
        by_version.setdefault(each["evaluation"], []).append(each["started"])
    assert all(len(times) == len(set(times)) for times in by_version.values())


def test_answers_that_are_judged_together_are_not_judged_again(bench: Bench) -> None:
    bench.head += "\nrepetitions: 2"
    bench.write("{allEqual: , scope: case}")
    assert bench.run()[0] == 2
    bench.write("{allEqual: , scope: case}", "contains: Green")
    calls, report = bench.run()
    assert (calls, report.judged) == (0, 2)
    bench.finish()
    assert [len(each["sessions"]) for each in bench.judgements()] == [2] * 4


def test_an_undecided_judgement_is_used_again_until_errors_are_retried(bench: Bench) -> None:
    bench.server.reply = lambda _body: "Hm."
    bench.write("contains: Gree")
    assert bench.run()[0] == 4
    bench.write("contains: Green")
    calls, report = bench.run()
    assert (calls, report.totals.verdicts["undecided"]) == (0, 2)
    bench.server.reply = reply
    assert bench.run(retry_errors=True)[0] == 2
    bench.write("contains: een")
    calls, report = bench.run()
    assert (calls, report.totals.verdicts["pass"]) == (0, 2)
    bench.finish()


def test_judging_anew_calls_the_judge(bench: Bench) -> None:
    bench.write("contains: Gree")
    bench.run()
    bench.write("contains: Green")
    before = len(bench.server.received)
    bench.api.judge(refresh=True)
    assert len(bench.server.received) - before == 2
    bench.write("contains: een")
    assert bench.run(refresh=True)[0] == 2  # other answers


def test_a_judge_that_cannot_be_called_is_not_needed(bench: Bench) -> None:
    bench.write("contains: Gree")
    bench.run()
    bench.write("contains: Green")
    calls, report = bench.run(offline=True)
    assert (calls, report.status, report.totals.verdicts["pass"]) == (0, "complete", 2)


def test_a_label_stays_with_its_evaluation_version(bench: Bench) -> None:
    bench.write("contains: Gree")
    bench.run()
    bench.api.label("tests/t.md::what=moss", "fail", by="ann")
    _, report = bench.run()
    assert report.totals.verdicts["fail"] == 1
    bench.write("contains: Green")
    calls, report = bench.run()
    assert (calls, report.totals.verdicts["pass"]) == (0, 2)


def test_a_run_that_ends_in_the_middle_leaves_what_can_be_used_again(bench: Bench) -> None:
    bench.write("contains: Gree", told="Is it green? {{what}}")
    bench.run(max_cost=0.06, concurrency=1, yes=True)
    (first,) = bench.judgements()
    bench.write("contains: Green", told="Is it green? {{what}}")
    assert bench.run()[0] == 1
    assert sum("takenFrom" in each for each in bench.judgements()) == 1
    assert first in bench.judgements()
    bench.finish()


@pytest.mark.parametrize(
    ("edit", "reasons"),
    [
        ("other", {("other", "new judge other")}),
        ("both", {("other", "new judge other")}),
        ("prompt", {("judge", "judge prompt _evaluator_default changed")}),
    ],
)
def test_a_judge_that_is_called_has_its_own_reason_though_checks_were_edited_with_it(
    bench: Bench, edit: str, reasons: set[tuple[str, str]]
) -> None:
    bench.write("contains: Green")
    bench.run()
    bench.write("contains: Gree")
    settings = bench.root / "evalstore.yaml"
    if edit == "prompt":
        prompt = bench.root / "prompts/_evaluator_default.md"
        prompt.write_text(prompt.read_text().replace("Grade", "Grade well"))
    else:
        names = "[other]" if edit == "other" else "[judge, other]"
        settings.write_text(settings.read_text().replace("[judge]", names))
    items = [item for item in bench.api.status().items if item.evaluator != "checks"]
    assert {(item.evaluator, item.reason.partition(":")[0]) for item in items} == reasons


def test_the_reason_is_that_of_the_checks_and_names_the_judge(bench: Bench) -> None:
    bench.write("contains: Gree")
    bench.run()
    bench.write("contains: Green")
    reasons = {(item.evaluator, item.reason) for item in bench.api.status().items}
    assert reasons == {
        (
            "checks",
            "check 1 changed: contains: Gree -> Green; "
            "if the checks pass, the verdict by judge is reused",
        )
    }


# --- several programs, and several stores


@pytest.fixture
def file_bench(server: Endpoint, tmp_path: Path) -> Bench:
    """A workspace with a store of its own."""
    return Bench(server, tmp_path / "mine")


@pytest.mark.one_database("stores are files that are copied")
def test_whoever_carries_a_judgement_over_stores_the_same_row(
    file_bench: Bench, tmp_path: Path
) -> None:
    file_bench.write("contains: Gree")
    file_bench.run()
    shutil.copytree(file_bench.root, tmp_path / "theirs")
    theirs = Bench(file_bench.server, tmp_path / "theirs")
    for bench in (file_bench, theirs):
        bench.write("contains: Green")
        assert bench.run()[0] == 0
    assert sorted(map(json.dumps, file_bench.judgements())) == sorted(
        map(json.dumps, theirs.judgements())
    )
    assert main(["-C", str(file_bench.root), "pull", f"{theirs.root}/.evalstore/store.db"]) == 0
    assert len(file_bench.judgements()) == 4
    file_bench.finish()


@pytest.mark.one_database("the store of a new machine is empty")
def test_a_machine_that_pulls_for_its_plan_calls_no_judge_after_an_edit_of_checks(
    file_bench: Bench, tmp_path: Path
) -> None:
    theirs = Bench(file_bench.server, tmp_path / "theirs")
    file_bench.write("contains: Gree")
    file_bench.run()
    team = str(tmp_path / "team")
    assert main(["-C", str(file_bench.root), "remote", "add", "origin", team]) == 0
    assert main(["-C", str(file_bench.root), "push"]) == 0
    theirs.write("contains: Green")
    assert main(["-C", str(theirs.root), "remote", "add", "origin", team]) == 0
    assert main(["-C", str(theirs.root), "pull", "--for-plan"]) == 0
    calls, report = theirs.run()
    assert (calls, report.asked, report.totals.verdicts["pass"]) == (0, 0, 2)
    assert main(["-C", str(theirs.root), "push"]) == 0
    assert main(["-C", str(file_bench.root), "pull"]) == 0
    file_bench.write("contains: Green")
    assert file_bench.run()[0] == 0
    assert len(file_bench.judgements()) == 4
    file_bench.finish()


@pytest.mark.extended
@pytest.mark.parametrize("joins", [False, True], ids=["two runs", "two runners of a run"])
def test_two_programs_that_carry_judgements_over_at_once_store_each_once(
    bench: Bench, start: Starter, joins: bool
) -> None:
    bench.write("contains: Gree")
    bench.run()
    opened = threading.Event()

    def held(body: dict[str, Any]) -> str:
        assert opened.wait(60)
        return reply(body)

    bench.server.reply = held
    bench.head = "replacements: {what: [grass, moss, fern]}"  # whose judgement is held
    bench.write("contains: Green")
    before = len(bench.server.received)
    location = stored_rows.locate(bench.root, bench.url)
    store = ("--store", str(location))
    command = (*store, "run", "--json")
    others = ("--executor", "processes", "--workers", "1") if joins else ()

    def has_runners(count: int) -> bool:
        with closing(Store.open(location)) as seen:
            return stored_rows.count_rows(seen, "runners") == count

    programs = [start(*command, *others, folder=bench.root)]
    if not joins:
        programs[0].wait_until(lambda: len(bench.server.received) > before)
        programs.append(start(*command, folder=bench.root))
    programs[-1].wait_until(lambda: has_runners(2))
    opened.set()
    ended = [program.finish() for program in programs]
    assert {code for code, _, _ in ended} == {0}, ended
    assert all(json.loads(out)["verdicts"]["pass"] == 3 for _, out, _ in ended)
    assert len(bench.server.received) == before + 1
    carried = [each for each in bench.judgements() if "takenFrom" in each]
    assert len(carried) == len({each["sessions"][0] for each in carried}) == 2
    assert len(bench.judgements()) == 2 + 2 + 1
    bench.server.reply = reply
    bench.finish()


def test_a_judgement_that_is_carried_over_twice_is_what_the_first_one_would_have_become() -> None:
    cost = Cost(0.1, {"source": "costs"})
    first = Evaluation(
        *(("s",), "old", "judge", "pass", 5, "n"), feedback="fine", usage=Usage(1), cost=cost
    )
    between = carry("1" * 32, first, "between")
    assert carry("2" * 32, between, "new") == carry("1" * 32, first, "new")
    assert (between.taken_from, between.started, between.cost) == ("1" * 32, 5, cost)


def test_a_row_that_another_run_has_stored_is_not_another_judgement() -> None:
    first = Vote(5, "v", "old", "judge", "pass", None)
    carried = first._replace(evaluation="new", is_carried=True)
    known = keys_of([first, carried])
    assert is_known(first._replace(id="row", evaluation="new"), known)
    assert not is_known(first._replace(id="row", evaluation="new", started=6), known)
    assert not is_known(first._replace(id="row", evaluation="new", evaluator="other"), known)
    assert not is_known(first._replace(id="row"), known)


@pytest.mark.one_database("the text is the same for both")
def test_show_names_the_first_judgement(
    file_bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    file_bench.write("contains: Gree")
    file_bench.run()
    file_bench.write("contains: Green")
    file_bench.run()
    case = f"{file_bench.root}/tests/t.md::what=moss"
    assert main(["-C", str(file_bench.root), "show", case]) == 0
    assert re.search(r"by judge  reused from \w{8}", capsys.readouterr().out)
    (session,) = {
        id for each in file_bench.judgements() for id in each["sessions"] if "takenFrom" in each
    } & {each["sessions"][0] for each in file_bench.judgements()[:1]}
    main(["-C", str(file_bench.root), "show", session, "--json"])
    shown = json.loads(capsys.readouterr().out)
    taken = [each for each in shown["related"]["evaluations"] if "takenFrom" in each]
    assert [each["takenFrom"] for each in taken] == [
        each["id"]
        for each in shown["related"]["evaluations"]
        if each["by"] == "judge" and each not in taken
    ]


# --- what judges are told

_TOLD = st.sampled_from(
    [
        "Is it green?",
        "Is it green? ",
        "Is it red?",
        "Is it {{what}}?",
        "Was it {{ sample.output_text }}?",
        "See {{_file:a.txt}}.",
    ]
)
_JUDGE = st.sampled_from(
    [
        None,
        "judge: {choices: ['Yes', 'No'], pass: ['Yes']}",
        "judge: {choices: ['Yes', 'No'], scores: {'Yes': 1, 'No': 0}, pass: ['Yes']}",
        "judge: {choices: ['Yes', 'No'], answer: classify, pass: ['Yes']}",
        "judge: {choices: ['No', 'Yes'], pass: ['Yes']}",
    ]
)
_CHECKS = st.lists(
    st.sampled_from(["contains: Gree", "contains: Green", "startsWith: G", "contains: ."]),
    max_size=2,
    unique=True,
)
_VERSION = st.tuples(_TOLD, _JUDGE, _CHECKS)
_PAIR = st.one_of(
    st.tuples(_VERSION, _VERSION),
    st.tuples(_TOLD, _JUDGE, _CHECKS, _CHECKS).map(lambda it: (it[:3], (*it[:2], it[3]))),
)
_NONCE = re.compile(r"\b[0-9a-f]{8,}\b")


def test_equal_digests_lead_to_equal_calls(server: Endpoint) -> None:
    """The messages to a real judge are the same, apart from the nonces."""
    seen = {True: 0, False: 0}

    def sent(version: tuple[str, str | None, list[str]]) -> tuple[list[str], list[str], list[Any]]:
        """What arrives at the judge, the digests, and what is made of its reply."""
        told, judge, checks = version
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(server, Path(folder), files={"tests/a.txt": "Some text."})
            bench.write(*([judge] if judge else []), *checks, told=told)
            before = len(server.received)
            bench.run(concurrency=1)
            bodies = [
                _NONCE.sub("N", json.dumps(received.body, sort_keys=True))
                for received in server.received[before:]
            ]
            made = bench.judgements()
            with closing(Store.open(stored_rows.locate(bench.root, None))) as store:
                ids = sorted({each["evaluation"] for each in made})
                contents = store.load_contents("evaluation", ids)
            fields = ("verdict", "score", "label", "feedback", "reasoning")
            results = [[each.get(name) for name in fields] for each in made]
            return sorted(bodies), sorted(map(digest_told, contents.values())), results

    server.reply = lambda body: choose_yes(body) if "choices" in str(body) else reply(body)

    @given(_PAIR)
    def compare(pair: Any) -> None:
        (bodies, digests, made), (others, other_digests, other_made) = map(sent, pair)
        assert bodies
        is_equal = digests == other_digests
        seen[is_equal] += 1
        if is_equal:
            assert bodies == others
            assert made == other_made
        if bodies != others:
            assert not is_equal

    compare()
    assert min(seen.values()) > 2


# --- what a command says of it


def test_status_and_the_run_say_the_same_where_judgements_are_only_used_again(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["-C", str(bench.root), *(["--store", bench.url] if bench.url else [])]
    bench.write("contains: Gree")
    bench.run()
    bench.write()
    status = bench.api.status()
    (again,) = status.used_again
    assert (again.kind, again.count, again.file) == ("use", 2, "tests/t.md")
    assert again.reason == "check 1 (contains) is gone"
    assert (status.items, status.is_any) == ([], False)
    assert [change.used_again for change in status.changes] == [2]
    capsys.readouterr()
    for dry in (["status"], ["run", "-n"]):
        assert main([*command, *dry]) == 0
        printed = capsys.readouterr().out
        assert "=   tests/t.md  stored verdicts are reused\n" in printed
        assert "2 stored verdicts are reused in tests/t.md, without a call: check 1" in printed
        assert "Nothing to do" not in printed
    main([*command, "run"])
    assert "0 new verdicts, 2 verdicts reused" in capsys.readouterr().out
    assert bench.api.status().used_again == ()
    bench.finish()


def test_a_retry_that_takes_a_readable_judgement_of_another_version_is_told(bench: Bench) -> None:
    bench.server.reply = lambda _body: "Hm."
    bench.write("contains: Gree")
    bench.run()
    bench.write("contains: Green")
    bench.run()
    bench.write("contains: Gree")
    bench.server.reply = reply
    assert bench.run(retry_errors=True)[0] == 2
    bench.write("contains: Green")
    assert bench.api.status().used_again == ()
    (again,) = bench.api.status(retry_errors=True).used_again
    assert (again.count, again.reason) == (2, "retry of an undecided verdict")
    calls, report = bench.run(retry_errors=True)
    assert (calls, report.used_again, report.totals.verdicts["pass"]) == (0, 2, 2)
    bench.finish()


def test_where_checks_are_to_be_judged_they_alone_are_listed(bench: Bench) -> None:
    bench.write("contains: Gree")
    bench.run()
    bench.write("contains: Green")
    status = bench.api.status()
    assert (status.used_again, status.judge) == ((), 2)
    assert "verdict by judge is reused" in status.items[0].reason
    calls, report = bench.run()
    assert (calls, report.judged, report.used_again) == (0, 2, 2)

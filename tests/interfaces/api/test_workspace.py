"""The facade does what the commands do, and returns values."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import evalstore
from evalstore import Workspace
from tests.builders import tree

HELLO = "tests/hello.md"
FRENCH = f"{HELLO}::language=French"


def edit(workspace: Workspace, name: str, was: str, now: str) -> None:
    path = workspace.root / name
    text = path.read_text(encoding="utf-8")
    assert was in text
    path.write_text(text.replace(was, now), encoding="utf-8")


def test_a_run_does_what_status_says_and_leaves_nothing_to_do(workspace: Workspace) -> None:
    before = workspace.status()
    report = workspace.run()

    assert (before.ask, before.judge, before.cost) == (2, 2, 0.0)
    assert [(item.kind, item.row) for item in before.items] == [
        ("ask", "language=English"),
        ("ask", "language=French"),
        ("judge", "language=English"),
        ("judge", "language=French"),
    ]
    assert (report.status, report.asked, report.judged, report.gate) == ("complete", 2, 2, "failed")
    assert report.verdicts == {"pass": 1, "fail": 1, "undecided": 0, "error": 0, "pending": 0}
    assert (report.pass_rate, report.rate.judged, report.failures) == (0.5, 2, {})
    assert not workspace.status().is_any


def test_a_value_has_the_json_that_its_command_prints(workspace: Workspace) -> None:
    workspace.run()
    done = subprocess.run(
        [sys.executable, "-m", "evalstore", "status", "--json"],
        cwd=workspace.root,
        capture_output=True,
        check=True,
    )
    assert {"format": 1, **evalstore.to_json(workspace.status())} == json.loads(done.stdout)


def test_a_selection_is_that_of_the_command_line(workspace: Workspace) -> None:
    assert workspace.status(tags=["greeting"]).ask == 2
    assert workspace.status(paths=[FRENCH]).ask == 1
    assert workspace.status(paths=[workspace.root / "tests"], limit=1).ask == 1
    with pytest.raises(evalstore.NothingSelectedError):
        workspace.status(tags=["policy"])


def test_a_selected_run_says_what_it_was_about(workspace: Workspace) -> None:
    workspace.run(paths=[FRENCH], message="only French")

    (run,) = workspace.runs()
    assert (run.message, run.selection) == ("only French", {"paths": [FRENCH]})
    assert run.verdicts == {"pass": 0, "fail": 1, "undecided": 0, "error": 0, "pending": 0}


def test_runs_are_values_newest_first(workspace: Workspace) -> None:
    first, second = workspace.run(), workspace.run()

    runs = workspace.runs()
    assert [run.id for run in runs] == [second.run, first.run]
    assert workspace.runs(limit=1) == runs[:1]
    newest, oldest = runs
    assert (oldest.asked, oldest.judged, oldest.reused, oldest.cost) == (2, 2, 0, 0.0)
    assert (newest.asked, newest.judged, newest.reused) == (0, 0, 2)
    assert (newest.status, newest.failed, newest.recorded) == ("complete", 0, 0)
    assert (newest.origin, newest.git, newest.snapshot) == (None, None, oldest.snapshot)
    assert [candidate.id for candidate in newest.candidates] == ["scripted/parrot"]
    assert [judge.id for judge in newest.evaluators] == ["scripted/judge"]
    assert oldest.started <= oldest.ended <= newest.started


def test_results_are_found_by_run_revision_or_id(workspace: Workspace) -> None:
    workspace.run()
    (run,) = workspace.runs()

    results = workspace.results()
    assert [(result.row, result.verdict) for result in results] == [
        ("language=English", "pass"),
        ("language=French", "fail"),
    ]
    assert workspace.results(run) == workspace.results("@") == workspace.results(run.id) == results
    with pytest.raises(evalstore.RevisionError):
        workspace.results("@~1")


def test_an_answer_has_its_conversation_and_its_judgements(workspace: Workspace) -> None:
    workspace.run()
    result = workspace.results()[1]

    answer = workspace.answer(result)
    assert (answer.session, answer.file, answer.row) == (result.sessions[0], HELLO, result.row)
    assert answer.text == "Hello!"
    assert [(turn.role, turn.text) for turn in answer.conversation] == [
        ("user", "Say hello in French."),
        ("assistant", "Hello!"),
    ]
    (judgement,) = answer.judgements
    assert (judgement.verdict, judgement.by, judgement.counts) == ("fail", "scripted/judge", True)
    assert judgement.feedback.startswith("It is English, not French. (An example")
    assert answer.facts is not None
    assert workspace.answer(result.sessions[0][:12]).judgements == answer.judgements


def test_what_has_no_answer_shows_what_is_asked_and_why_it_failed(workspace: Workspace) -> None:
    edit(workspace, "models/parrot.yaml", "  - {when: French, answer: Hello!}\n", "")
    assert workspace.run().failed == 1

    answer = workspace.answer(workspace.results()[1])
    assert (answer.session, answer.text, answer.facts) == (None, "", None)
    assert answer.conversation[0].text == "Say hello in French."
    assert len(answer.failures) == 1


def test_a_verdict_is_explained_for_a_result_and_for_a_case(workspace: Workspace) -> None:
    run = workspace.run().run
    result = workspace.results()[1]

    why = workspace.explain(result)
    assert (why.run, why.verdict, why.model) == (run, "fail", result.model)
    assert why.answer.answer == "Hello!"
    assert why.since is not None
    assert (why.since.id, why.counts.verdicts) == (run, ("fail",))
    assert workspace.explain(f"{HELLO}::French") == why
    assert workspace.explain(result, run) == workspace.explain(result, workspace.runs()[0]) == why
    now = workspace.explain(result, None)
    assert (now.run, now.history) == (None, why.history)
    with pytest.raises(evalstore.EvalstoreError, match="no row is called"):
        workspace.explain(f"{HELLO}::Klingon")


def test_a_result_of_the_workspace_is_explained_as_the_files_have_it(workspace: Workspace) -> None:
    run = workspace.run().run
    workspace.label(f"{HELLO}::French", "pass", by="Ada")
    why = workspace.explain(f"@work:{HELLO}::French")
    assert (why.run, why.verdict) == (None, "pass")
    assert why.since is not None
    assert why.since.id == "workspace"
    assert why.history is not None
    assert why.history.before is not None
    assert why.history.before.id == run


def test_an_id_that_is_not_of_a_session_is_not_an_answer(workspace: Workspace) -> None:
    report = workspace.run()
    with pytest.raises(evalstore.RevisionError, match=r"is not an answer .run."):
        workspace.answer(report.run)


def test_judge_asks_nothing(workspace: Workspace) -> None:
    workspace.run()
    edit(workspace, HELLO, "must be a greeting", "must be nothing but a greeting")

    report = workspace.judge()
    assert (report.asked, report.judged, report.judge_only) == (0, 2, True)


def test_diff_lists_what_was_fixed(workspace: Workspace) -> None:
    first = workspace.run()
    edit(
        workspace, "models/judge.yaml", '{pass: false, feedback: "It', '{pass: true, feedback: "It'
    )
    edit(workspace, HELLO, "must be a greeting", "must be nothing but a greeting")
    workspace.run()

    older, newer = reversed(workspace.runs())
    diff = workspace.diff(older, newer)
    assert (diff.was, [pair.either.row for pair in diff.fixed]) == (
        first.run,
        ["language=French"],
    )
    assert not any((diff.broke, diff.changed, diff.new, diff.gone))
    was, now = diff.rates
    assert (was.rate, now.rate) == (0.5, 1.0)
    assert (diff.change.difference, diff.change.p) == (0.5, 1.0)
    assert workspace.diff("@~1", "@").document() == diff.document()
    assert workspace.diff("@").is_empty


def test_two_candidates_of_a_run_are_compared(workspace: Workspace) -> None:
    other = "id: scripted/other\nprovider: scripted\nresponses: [{answer: Bonjour !}]\n"
    tree(workspace.root, {"models/other.yaml": other})
    workspace.run(models=["scripted/parrot", "scripted/other"])

    diff = workspace.diff_models("scripted/parrot", "scripted/other", run="@")
    assert diff.models == ("scripted/parrot", "scripted/other")
    assert diff.rates[0].judged == 2


def test_two_system_prompts_of_a_run_can_be_compared(workspace: Workspace) -> None:
    root = workspace.location.directory
    for name in ("brief", "kind"):
        (root / "prompts").mkdir(exist_ok=True)
        (root / f"prompts/{name}.md").write_text(f"Be {name}.\n", encoding="utf-8")
    test = root / HELLO
    text = test.read_text(encoding="utf-8")
    test.write_text(text.replace("tags:", "systemPrompts: [brief, kind]\ntags:"), encoding="utf-8")
    workspace.run()

    diff = workspace.diff_prompts("brief", "kind", models=["scripted/parrot"])
    assert diff.names == ("brief", "kind")
    assert diff.rates[0].judged == 2


def test_a_label_decides_and_can_be_taken_back(workspace: Workspace) -> None:
    workspace.run()
    result = workspace.results()[1]

    (by_name,) = workspace.label(FRENCH, "pass", note="close enough", by="Ada")
    assert (by_name.person, by_name.now, by_name.note) == ("Ada", "pass", "close enough")
    assert (by_name.file, by_name.row, by_name.model, by_name.was) == (
        HELLO,
        "language=French",
        "scripted/parrot",
        "fail",
    )
    labels = [label for label in workspace.answer(result).judgements if label.is_person]
    assert [(label.by, label.verdict, label.feedback) for label in labels] == [
        ("Ada", "pass", "close enough")
    ]
    (back,) = workspace.label(result, "none", by="Ada")
    assert back.now == "fail"
    with pytest.raises(evalstore.EvalstoreError, match="no label of Bob counts for"):
        workspace.label(FRENCH, "none", by="Bob")


def test_a_label_is_pass_fail_or_none(workspace: Workspace) -> None:
    workspace.run()
    wrong: Any = "passed"
    with pytest.raises(evalstore.EvalstoreError, match="a label cannot be 'passed'"):
        workspace.label(FRENCH, wrong, by="Ada")
    assert workspace.label(FRENCH, "pass", by="Ada")[0].was == "fail"


def test_statistics_are_grouped(workspace: Workspace) -> None:
    workspace.run()

    stats = workspace.stats(by=["tag"])
    (group,) = stats.groups
    assert (group.name, group.pass_rate) == ("greeting", 0.5)
    assert group.interval == group.rate.interval is not None


def test_search_finds_feedback(workspace: Workspace) -> None:
    workspace.run()

    (hit,) = workspace.search("english, not fr", within="feedback")
    assert (hit.file, hit.row) == (HELLO, "language=French")
    assert workspace.search("bicycle") == []


def test_check_lists_problems_and_run_raises_them(workspace: Workspace) -> None:
    tree(workspace.root, {"tests/broken.md": "---\ntag: [x]\n---\n# 👤\n\nHi\n\n---\n\nE\n"})

    assert [problem.place for problem in workspace.check().problems] == ["tests/broken.md:2"]
    assert workspace.check([HELLO]).problems == []
    with pytest.raises(evalstore.WorkspaceError) as raised:
        workspace.run()
    assert [problem.message for problem in raised.value.problems] == ["unknown field 'tag'"]
    assert workspace.run(keep_going=True).asked == 2


def test_fsck_lists_damage(workspace: Workspace) -> None:
    workspace.run()

    report = workspace.fsck()
    assert report.problems == []
    assert report.checked > 10


def test_settings_and_store_take_the_place_of_those_of_the_workspace(
    workspace: Workspace, tmp_path: Path
) -> None:
    store = tmp_path / "other.db"
    with Workspace(
        workspace.root / "tests", store=store, settings={"attempts": 2, "verdict": ">= 0.5"}
    ) as other:
        assert other.root == workspace.root
        assert other.run().asked == 4
    assert store.exists()
    assert workspace.runs() == []


def test_the_stamp_differs_when_somebody_has_written(workspace: Workspace) -> None:
    workspace.run()
    before = workspace.stamp()
    assert workspace.stamp() == before
    workspace.label(FRENCH, "pass", by="Ada")
    assert workspace.stamp() != before


def test_a_store_that_was_seen_is_not_replaced(workspace: Workspace) -> None:
    workspace.run()
    workspace.stamp()
    (workspace.root / ".evalstore/store.db").unlink()
    with pytest.raises(evalstore.StoreError, match="is gone"):
        workspace.status()


def test_files_of_another_system_are_imported(workspace: Workspace, tmp_path: Path) -> None:
    config = tmp_path / "promptfooconfig.yaml"
    config.write_text(
        "prompts: ['Say hello in {{language}}.']\n"
        "tests: [{vars: {language: Dutch}, assert: [{type: contains, value: Hallo}]}]\n"
    )

    report = evalstore.import_tests("promptfoo", [config], into=workspace, folder="dutch")
    assert (report.folder, report.rows) == ("dutch", 1)
    assert any(case.startswith("tests/dutch") for case in report.written)
    again = evalstore.import_tests("promptfoo", [config], into=workspace.root, folder="dutch")
    assert (again.written, again.unchanged) == ((), report.written)


def test_the_example_can_be_made(tmp_path: Path) -> None:
    with evalstore.init(tmp_path / "bikes", example=True) as workspace:
        assert workspace.check().errors == 0
        assert workspace.status(tags=["policy"]).ask > 0


def test_results_are_shared(workspace: Workspace, tmp_path: Path) -> None:
    settings = workspace.root / "evalstore.yaml"
    settings.write_text(settings.read_text() + "remotes: {origin: shared}\n")
    workspace.run()
    assert workspace.push(dry_run=True).records["answers"] == 2
    assert workspace.push(exclude_tags=["greeting"], dry_run=True).excluded_runs == 1
    pushed = workspace.push()
    assert (pushed.remote, pushed.records["runs"], pushed.excluded_runs) == ("origin", 1, 0)
    bundle = str(tmp_path / "all.bundle")
    assert workspace.push(bundle).records == pushed.records

    others = [Workspace(workspace.root, store=tmp_path / f"{number}.db") for number in range(4)]
    assert others[0].pull(dry_run=True).records == pushed.records
    assert others[0].pull().records == others[1].pull(bundle).records == pushed.records
    assert others[2].pull(str(tmp_path / "0.db")).records == pushed.records
    assert others[3].pull_for_plan("origin", paths=[FRENCH]).records["answers"] == 1
    with pytest.raises(TypeError, match="unknown"):
        others[3].pull_for_plan(unknown=1)  # type: ignore[call-arg]
    for other in others[:3]:
        assert [run.id for run in other.runs()] == [run.id for run in workspace.runs()]
        assert not other.status().is_any

    for _ in range(2):  # two small pushes
        workspace.run()
        workspace.push()
    planned = workspace.collect_garbage("origin", grace="30d", dry_run=True)
    done = workspace.collect_garbage()
    assert (planned.grace, planned.dry_run, done.grace) == ("30d", True, "14d")
    assert done.collected.replaced == planned.collected.replaced
    assert (done.collected.replaced.indexes, done.collected.written.indexes) == (2, 1)
    with pytest.raises(evalstore.EvalstoreError, match="soon"):
        workspace.collect_garbage(grace="soon")

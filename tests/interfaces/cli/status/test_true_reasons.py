"""Every changed verdict has its reason, in the same words in `status`, `diff` and `show`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evalstore.comparison.comparison import Pair
from evalstore.interfaces.api.workspace import Workspace
from evalstore.planning.options import Location
from evalstore.results.compare.diff import find_pair_edits
from tests.builders import tree
from tests.interfaces.cli.conftest import ONE, Echo, Evalstore
from tests.interfaces.cli.run.test_run import edit
from tests.interfaces.cli.status.test_explained_cases import HOT, history, write

JUDGE_PROMPT = """\
---
tags: [_evaluator]
---

Be STRICT. {{_evaluationInstructions}}

# 👤

{{_actualResponse}}
"""


def changed_lines(shown: str) -> list[str]:
    """The lines of `diff` about cases, without their ids."""
    lines = (line.strip() for line in shown.splitlines() if " scripted/one  " in line)
    return [line.split("  <short>")[0] for line in lines]


def test_an_edited_prompt_of_a_judge_is_the_reason_everywhere(
    workspace: Path, evalstore: Evalstore
) -> None:
    tree(workspace, {"prompts/judge.md": JUDGE_PROMPT})
    judge = "evaluators: [{id: scripted/judge, prompt: judge}]"
    edit(workspace / "evalstore.yaml", "evaluators: [scripted/judge]", judge)
    evalstore("run", "-q")
    edit(workspace / "prompts/judge.md", "STRICT", "mild")
    pending = evalstore("show", "@work:tests/weather.md::Oslo").stdout
    assert "\nIt is not judged yet.\n" in pending
    assert "\n    fail  by scripted/judge  (other or edited judge)" in pending
    edit(workspace / "models/judge.yaml", "pass: false", "pass: true")
    reason = "judge prompt changed: message 1, line 1"
    values = (
        "        - Be STRICT. {{_evaluationInstructions}}\n"
        "        + Be mild. {{_evaluationInstructions}}\n"
    )
    line = ".M  judge prompt judge  2 verdicts in tests/weather.md: message 1, line 1"
    expected = f"    {line}\n{values.replace('        ', 12 * ' ')}\nA run would "
    assert expected in evalstore("status").stdout
    assert expected in evalstore("status").stdout  # from the cache
    named = reason.replace("prompt", "prompt judge")
    assert f"\n    {named}\n" in evalstore("status", "--explain").stdout
    evalstore("run", "-q")
    assert changed_lines(evalstore("diff", "@~1", "@").stdout) == [
        f"tests/weather.md [city=Oslo]  scripted/one  fail -> pass  ({reason})"
    ]
    assert history(evalstore, "tests/weather.md::Oslo")[3] == f"  {reason}"
    log = evalstore("log", "tests/weather.md", "-n", "1").stdout
    assert f"    edit: {named}\n{values.replace('        ', 12 * ' ')}" in log
    page = evalstore("show", "tests/weather.md::Oslo").stdout
    assert page.index("\nuser: ") < page.index(
        "\n    fail  by scripted/judge  (other judge prompt)"
    )
    assert "judged once" not in page
    before = evalstore("show", "@~1:tests/weather.md::Oslo").stdout
    assert "\n    pass  by scripted/judge  (other judge prompt)" in before
    other = (workspace / "models/judge.yaml").read_text().replace("/judge", "/judge2")
    tree(workspace, {"models/judge2.yaml": other})
    edit(workspace / "evalstore.yaml", judge, "evaluators: [scripted/judge2]")
    evalstore("run", "-q")
    page = evalstore("show", "tests/weather.md::Oslo").stdout
    assert page.count("  by scripted/judge  (other or edited judge)  ") == 2


def test_the_reason_for_a_file_that_the_last_run_left_out_names_the_file(
    workspace: Path, evalstore: Evalstore
) -> None:
    tree(workspace, {"tests/other.md": "# User\n\nHi\n\n---\n\nBe kind.\n"})
    evalstore("run", "-q")
    edit(workspace / "tests/weather.md", "must be warm", "must be short")
    evalstore("run", "-q", "tests/other.md")
    assert evalstore("status").stdout.startswith(
        "Pending:\n    2 verdicts in tests/weather.md  instructions changed: line 1: "
    )
    tree(workspace, {"prompts/judge.md": JUDGE_PROMPT})
    judge = "evaluators: [{id: scripted/judge, prompt: judge}]"
    edit(workspace / "evalstore.yaml", "evaluators: [scripted/judge]", judge)
    assert "  1 verdict in tests/other.md: " in evalstore("status").stdout


def test_answers_are_listed_before_the_judgements_that_they_cause(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("run", "-q")
    model = (workspace / "models/one.yaml").read_text()
    tree(workspace, {"models/two.yaml": model.replace("scripted/one", "scripted/two")})
    edit(workspace / "evalstore.yaml", "[scripted/one]", "[scripted/one, scripted/two]")
    tree(workspace, {"prompts/judge.md": JUDGE_PROMPT})
    second = "evaluators: [scripted/judge, {id: scripted/judge, prompt: judge}]"
    edit(workspace / "evalstore.yaml", "evaluators: [scripted/judge]", second)
    lines = evalstore("status").stdout.splitlines()
    kinds = [line.split()[3:5] for line in lines if " in tests/weather.md" in line]
    assert kinds == [["2", "answers"], ["2", "verdicts"]]
    other = (workspace / "models/judge.yaml").read_text().replace("/judge", "/judge2")
    tree(workspace, {"models/judge2.yaml": other})
    edit(workspace / "evalstore.yaml", second, "evaluators: [scripted/judge, scripted/judge2]")
    costs = [line.split() for line in evalstore("run", "-n").stdout.splitlines() if "(judg" in line]
    verdicts = [int(words[words.index("verdicts") - 1]) for words in costs]
    assert costs[-1][:2] == ["all", "(judging)"]
    assert sum(verdicts[:-1]) == verdicts[-1] == 6


def test_a_label_and_an_edit_of_the_judge_are_told_apart(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("run", "-q")
    tree(workspace, HOT)
    evalstore("run", "-q")
    place = "tests/weather.md [city={}]  scripted/one  "
    assert changed_lines(evalstore("diff", "@~1", "@").stdout) == [
        f"{place.format('Rome')}pass -> fail  (judge temperature none -> 0.5)"
    ]
    log = evalstore("log", "tests/weather.md", "-n", "1").stdout
    assert (
        log == "run <id>  <when>\n    2 fail (1 broke)\n    edit: judge temperature none -> 0.5\n"
    )
    evalstore("label", "tests/weather.md::Oslo", "pass", "--as", "Ada")
    evalstore("run", "-q")
    assert changed_lines(evalstore("diff", "@~1", "@").stdout) == [
        f"{place.format('Oslo')}fail -> pass  (labelled by Ada)"
    ]
    evalstore("label", "tests/weather.md::Oslo", "--remove", "--as", "Ada")
    evalstore("run", "-q")
    assert changed_lines(evalstore("diff", "@~1", "@").stdout) == [
        f"{place.format('Oslo')}pass -> fail  (label of Ada removed)"
    ]


def test_a_label_on_an_answer_that_was_replaced_was_not_removed(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("run", "-q")
    evalstore("label", "tests/weather.md::Oslo", "pass", "--as", "Ann")
    evalstore("run", "-q")
    evalstore("run", "-q", "--refresh")
    shown = evalstore("diff", "@~1", "@").stdout
    assert "pass -> fail" in shown
    for text in (shown, evalstore("show", "tests/weather.md::Oslo").stdout.split("history:")[1]):
        assert "removed" not in text
        assert "asked again" in text


def test_the_note_of_a_label_is_shown_and_not_the_feedback_that_it_overrides(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    evalstore("run", "-q")
    by = "by Ada (a person)"
    for verdict, note, shown in (("pass", "", by), ("fail", "Too short.", f"{by}: Too short.")):
        evalstore("label", "tests/weather.md::Oslo", verdict, "--as", "Ada", "-m", note)
        listed = evalstore("run").stdout
        assert "It is cold there." not in listed
        assert note in listed
        lines = [line.strip() for line in evalstore("diff", "@~1", "@").stdout.splitlines()]
        assert f"now: {shown}" in lines
        was = {"pass": "It is cold there.", "fail": by}[verdict]
        assert f"was: {was}" in lines
        (pair,) = documents("diff", "@~1", "@")["fixed" if verdict == "pass" else "broke"]
        assert pair["now"]["feedback"] == shown


def test_a_comparison_that_is_turned_around_has_the_reasons_of_its_direction(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("run", "-q")
    evalstore("label", "tests/weather.md::Oslo", "pass", "--as", "Ada")
    tree(workspace, {"models/judge.yaml": HOT["models/judge.yaml"]})
    evalstore("run", "-q")
    warmer = ONE.replace("costs", "candidateOverrides: {temperature: 0.7}\ncosts")
    tree(workspace, {"models/one.yaml": warmer.replace("Warm.", "Hot.")})
    evalstore("run", "-q")
    judge, model = "judge temperature 0.5 -> none", "temperature 0.7 -> none"
    for older, newer, reasons in (
        ("@~2", "@~1", ["label of Ada removed", judge]),
        ("@~1", "@", [f"{model}, label of Ada counts again", model]),
    ):
        api = Workspace(workspace)
        turned = api.diff(newer, older)
        assert [turned.reason(pair) for pair in turned.comparison.flips] == reasons


def test_a_new_rule_for_verdicts_is_the_reason(workspace: Path, evalstore: Evalstore) -> None:
    judges = "evaluators: [scripted/judge, scripted/kind]"
    edit(workspace / "evalstore.yaml", "evaluators: [scripted/judge]", f"{judges}\nverdict: any")
    kind = "id: scripted/kind\nprovider: scripted\nresponses: [{answer: {pass: true}}]\n"
    tree(workspace, {"models/kind.yaml": kind})
    evalstore("run", "-q")
    edit(workspace / "evalstore.yaml", "verdict: any", "verdict: all")
    evalstore("run", "-q")
    assert changed_lines(evalstore("diff", "@~1", "@").stdout) == [
        "tests/weather.md [city=Oslo]  scripted/one  pass -> fail  (verdict: any -> all)"
    ]


def test_a_verdict_of_an_earlier_run_names_it(
    echo: Echo, evalstore: Evalstore, documents: Any
) -> None:
    write()
    first = documents("run")["run"]
    echo.failing = "15"
    write("15 euros")
    evalstore("run", "-q")
    echo.failing = None
    evalstore("run", "-q")
    shown = evalstore("diff", "@~1", "@").stdout
    assert changed_lines(shown) == [
        "tests/t.md  scripted/one  pass (run <short>) -> fail  (test changed)"
    ]
    (pair,) = documents("diff", "@~1", "@")["broke"]
    assert pair["was"]["run"] == first
    assert "run" not in pair["now"]


def test_a_rule_is_not_the_reason_for_a_verdict_of_another_run(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("run", "-q")
    diff = Workspace(workspace).diff("@", "@work")
    was = diff.comparison.unchanged[0].now
    assert was
    now = was._replace(verdict="fail" if was.verdict == "pass" else "pass")
    diff.reasons.rules = ("all", "any")
    assert diff.reason(Pair(was, now)) == "verdict: all -> any"
    diff.reasons.earlier = {was: "0" * 64}
    assert diff.reason(Pair(was, now)) == ""


def test_what_was_pending_is_answered_or_judged(echo: Echo, evalstore: Evalstore) -> None:
    write()
    echo.failing = "10"
    evalstore("run", "-q")
    echo.failing = None
    evalstore("run", "-q")
    pending = "tests/t.md  scripted/one  pending -> pass  (answered)"
    assert changed_lines(evalstore("diff", "@~1", "@").stdout) == [pending]


def test_what_waited_for_its_judge_is_judged(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run", "-q")
    diff = Workspace(workspace).diff("@", "@work")
    result = diff.comparison.unchanged[0].now
    assert result
    waiting = result._replace(verdict=None, evaluations=())
    assert diff.reason(Pair(waiting, result)) == "judged"
    assert diff.reason(Pair(result, waiting)) == "not judged"


def test_each_row_has_its_own_edit(workspace: Path, evalstore: Evalstore) -> None:
    tree(workspace, {"prompts/brief.md": "Be brief.\n"})
    prompt = "tags: [weather]\nsystemPrompts: [brief]"
    edit(workspace / "tests/weather.md", "tags: [weather]", prompt)
    evalstore("run", "-q")
    edit(workspace / "prompts/brief.md", "Be brief", "Be very brief")
    edit(workspace / "tests/weather.md", "How is", "How warm is")
    evalstore("run", "-q")
    edited = "message 1, line 1 in [city=Oslo] and 1 other row: How is Oslo? -> How warm is Oslo?\n"
    assert evalstore("diff", "@~1", "@").stdout.endswith(
        "Edited:\n"
        "    tests/weather.md\n"
        f"        {edited}"
        "    system prompt brief\n"
        "        line 1: Be brief. -> Be very brief.\n"
    )
    log = evalstore("log", "tests/weather.md", "-n", "1").stdout
    assert f"    edit: {edited}" in log
    assert "    edit: system prompt brief: line 1: Be brief. -> Be very brief.\n" in log
    diff = Workspace(workspace).diff("@~1", "@")
    where = Location(workspace)
    edits = [[*map(str, find_pair_edits(where, pair))] for pair in diff.changed]
    prompt_edit = "system prompt brief: line 1: Be brief. -> Be very brief."
    assert edits == [
        ["message 1, line 1: How is Oslo? -> How warm is Oslo?", prompt_edit],
        ["message 1, line 1: How is Rome? -> How warm is Rome?", prompt_edit],
    ]
    edit(workspace / "prompts/brief.md", "Be very brief", "Be very, very brief")
    evalstore("run", "-q")
    edit(workspace / "prompts/brief.md", "very brief", "very brief and kind")
    assert f"    edit: {prompt_edit}\n" in evalstore("log", "tests/weather.md").stdout
    assert "    system prompt brief\n" in evalstore("diff", "@~2", "@~1").stdout
    assert [*map(str, find_pair_edits(where, diff.changed[0]))] == edits[0]


def test_an_edit_of_one_of_several_prompts_has_the_name_of_its_file(
    workspace: Path, evalstore: Evalstore
) -> None:
    tree(workspace, {"prompts/brief.md": "Be brief.\n", "prompts/terse.md": "Be terse.\n"})
    prompts = "tags: [weather]\nsystemPrompts: [brief, terse]"
    edit(workspace / "tests/weather.md", "tags: [weather]", prompts)
    for word in ("now", "today"):
        evalstore("run", "-q")
        for file in (workspace / "prompts").iterdir():
            file.write_text(file.read_text().replace(".", f" {word}."))
    tree(workspace, {"prompts/terse.md": "Answer in one word, whatever the question is.\n"})
    brief, terse = (
        "line 1: Be brief. -> Be brief now.",
        "line 1: Be terse. -> Be terse now.",
    )
    edits = f"    edit: system prompt brief: {brief}\n    edit: system prompt terse: {terse}\n"
    assert edits in evalstore("log", "tests/weather.md", "-n", "1").stdout  # known of the last run
    diff = evalstore("diff", "@~1", "@").stdout
    assert f"    system prompt brief\n        {brief}\n    system prompt terse\n" in diff
    changed = Workspace(workspace).diff("@~1", "@").changed
    found = {str(edit) for pair in changed for edit in find_pair_edits(Location(workspace), pair)}
    assert found == {f"system prompt brief: {brief}", f"system prompt terse: {terse}"}
    evalstore("run", "-q")
    assert edits in evalstore("log", "tests/weather.md").stdout


def test_status_has_a_reason_for_what_is_asked_and_one_for_what_is_only_judged(
    echo: Echo, evalstore: Evalstore
) -> None:
    text = (
        "---\ndataset: d.csv\nrowId: n\n---\n\n# 👤\n\n{{q}}\n\n---\n\n~~~checks\n"
        "- contains: EXPECTED\n~~~\n"
    )
    tree(Path(), {"tests/t.md": text, "tests/d.csv": "n,q\n1,warm\n2,cold\n"})
    evalstore("run", "-q")
    tree(Path(), {"tests/t.md": text.replace("EXPECTED", "warm")})
    tree(Path(), {"tests/d.csv": "n,q\n1,warm\n2,very cold\n"})
    assert (
        "MM  tests/t.md  1 case asked again, 1 case judged again: "
        "test changed: message 1, line 1: cold -> very cold; "
        "check 1 changed: contains: EXPECTED -> warm\n"
    ) in evalstore("status").stdout


def test_status_names_everything_that_was_edited_together(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    checks = "must be warm.\n\n~~~checks\n- contains: EXPECTED\n~~~\n"
    tree(workspace, {"prompts/brief.md": "Be brief.\n"})
    edit(workspace / "tests/weather.md", "must be warm.\n", checks)
    edit(workspace / "tests/weather.md", "tags: [w", "systemPrompts: [brief]\ntags: [w")
    evalstore("run", "-q")
    edit(workspace / "tests/weather.md", "must be warm", "must be short")
    edit(workspace / "tests/weather.md", "EXPECTED", ".")
    shown = "instructions changed: line 1: The answer must be warm. -> The answer must be short."
    judged = f"{shown}; also changed: checks"
    for _ in range(2):  # the second time from the cache
        assert f"cases judged again: {judged}\n" in evalstore("status").stdout
    explained = evalstore("status", "--explain").stdout
    assert explained.count(f"\n    {judged}\n        tests/weather.md [city=Oslo]  ") == 1
    edit(workspace / "tests/weather.md", "How is", "How warm is")
    edit(workspace / "prompts/brief.md", "Be brief", "Be very brief")
    also = ["system prompt", "instructions", "checks"]
    planned = evalstore("run", "-n").stdout
    assert planned.count(f"How warm is Oslo?; also changed: {', '.join(also)}\n") == 2
    document = documents("status")
    assert [each["also"] for each in document["changes"]] == [also]
    assert [each.get("also") for each in document["items"]] == [also, also, None, None, None, None]


def test_an_added_system_prompt_is_new_and_asks_nothing_again(
    echo: Echo, evalstore: Evalstore
) -> None:
    prompts = {"prompts/brief.md": "Be brief.\n", "prompts/kind.md": "Be kind.\n"}
    page = (
        "---\nsystemPrompts: [brief]\n---\n\n# 👤\n\nHi\n\n---\n\n~~~checks\n- contains: i\n~~~\n"
    )
    tree(Path(), prompts | {"tests/a.md": page, "tests/b.md": page.replace("Hi", "His")})
    evalstore("run", "-q")
    for several in ("[kind, brief]", "[brief, kind]"):
        edit(Path("tests/a.md"), "[brief]", several)
        status = evalstore("status").stdout
        assert "tests/a.md  1 case asked: system prompt is new\n" in status
        edit(Path("tests/a.md"), several, "[brief]")
    edit(Path("tests/a.md"), "[brief]", "[kind, brief]")
    edit(Path("tests/a.md"), "Hi", "Ho")
    edit(Path("tests/b.md"), "[brief]", "[kind]")
    status = evalstore("status").stdout
    assert "tests/a.md  1 case asked again: test changed" in status
    assert "tests/b.md  1 case asked again: system prompt kind in place of brief\n" in status


def test_a_repeated_judgement_does_not_count_in_the_workspace_and_every_page_says_so(
    workspace: Path, evalstore: Evalstore
) -> None:
    place, case = "tests/weather.md [city=Rome]  scripted/one", "tests/weather.md::Rome"
    same, judged = "(judged again)", "  <when>  <short>\n"
    titles = [f"{start} instructions, checks" for start in ("by the same", "by other")]
    evalstore("run", "-q")
    edit(workspace / "models/judge.yaml", 'pass: true, feedback: ""', "pass: false")
    again = evalstore("run", "--judge-only", "-q", "--refresh", case).stdout
    assert "since the last run: 1 broke (judged again)\n" in again
    assert f"fail       {place}  <short>  (broke, judged again)\n" in again
    shown = evalstore("show", case).stdout
    assert f"\nfail  {place}\nfail  by scripted/judge{judged}" in shown
    assert [title in shown for title in titles] == [True, False]
    why_not = "(the verdict that counts in the workspace)"
    assert f"\n    pass  by scripted/judge  {why_not}{judged}" in shown
    assert changed_lines(evalstore("diff", "@", "@work").stdout) == [
        f"{place}  fail -> pass  {same}"
    ]
    work = evalstore("show", f"@work:{case}").stdout
    assert f"\npass  {place}\npass  by scripted/judge{judged}history:" in work
    assert f"\n    fail  by scripted/judge  (judged again, does not count){judged}" in work
    plain = evalstore("run", "-q").stdout
    assert "since the last verdict on each case: 1 fixed (judged again)\n" in plain
    assert f"pass       {place}  <short>  (fixed, judged again)\n" in plain
    assert changed_lines(evalstore("diff", "@~1", "@").stdout) == [f"{place}  fail -> pass  {same}"]


def test_status_names_each_edited_system_prompt_of_a_file(
    workspace: Path, evalstore: Evalstore
) -> None:
    checks = "~~~checks\n- contains: a\n~~~\n"
    text = f"---\nsystemPrompts: [brief, kind]\n---\n\n# 👤\n\nHi\n\n---\n\n{checks}"
    prompts = {"prompts/brief.md": "Be brief.\n", "prompts/kind.md": "Be kind.\n"}
    tree(workspace, {**prompts, "tests/t.md": text})
    evalstore("run", "-q")
    for name in ("brief", "kind"):
        edit(workspace / f"prompts/{name}.md", "Be", "Do be")
    assert (
        "1 case asked again: system prompt brief changed: line 1: Be brief. -> Do be brief. "
        "(1 case); system prompt kind changed (1 case)\n"
    ) in evalstore("status").stdout


def test_status_says_that_other_cases_of_a_file_were_edited_otherwise(
    workspace: Path, evalstore: Evalstore
) -> None:
    text = (
        "---\ndataset: d.csv\nrowId: n\nsystemPrompts: [brief]\n---\n\n# 👤\n\n{{q}}\n\n---\n\n"
        "~~~checks\n- contains: a\n~~~\n"
    )
    files = {"prompts/brief.md": "Be brief.\n", "tests/t.md": text}
    tree(workspace, {**files, "tests/d.csv": "n,q\n1,warm\n2,cold\n"})
    evalstore("run", "-q")
    edit(workspace / "prompts/brief.md", "Be brief", "Be very brief")
    edit(workspace / "tests/d.csv", "cold", "very cold")
    assert (
        "M.  tests/t.md  2 cases asked again: system prompt brief changed: line 1: "
        "Be brief. -> Be very brief.; also changed: test of 1 case (rows of tests/d.csv)\n"
    ) in evalstore("status").stdout


ROWS = (
    "---\ndataset: d.csv\nrowId: n\n---\n\n# 👤\n\n{{q}}\n\n---\n\n~~~checks\n- contains: a\n~~~\n"
)


def test_a_model_that_changed_is_said_to_have_beside_an_edited_row(
    workspace: Path, evalstore: Evalstore
) -> None:
    tree(workspace, {"tests/t.md": ROWS, "tests/d.csv": "n,q\n1,cold\n2,warm\n"})
    evalstore("run", "-q")
    edit(workspace / "tests/d.csv", "cold", "Oslo")
    edit(workspace / "models/one.yaml", "provider:", "thinking: high\nprovider:")
    shown = evalstore("status").stdout
    assert (
        "  1 case asked again: test changed: message 1, line 1: cold -> Oslo (rows of tests"
        in shown
    )
    assert "    M.  candidate scripted/one  3 answers in 2 files: model thinking" in shown


def test_status_diff_and_log_name_a_row_with_another_id(
    workspace: Path, evalstore: Evalstore
) -> None:
    tree(workspace, {"tests/t.md": ROWS, "tests/d.csv": "n,q\n1,cold\n2,warm\n"})
    evalstore("run", "-q")
    edit(workspace / "tests/d.csv", "2,warm", "two,warm")
    assert (
        "    =   tests/t.md  1 row renamed (rows of tests/d.csv)\n\nNothing to do: "
        in evalstore("status").stdout
    )
    assert "        row renamed: n=2 -> n=two\n" in evalstore("diff").stdout
    evalstore("run", "-q")
    log = evalstore("log", "tests/t.md", "-n", "1").stdout
    assert "    edit: row renamed: n=2 -> n=two\n" in log


def test_status_tells_an_edit_of_a_candidate_beside_edited_rows_once(
    workspace: Path, evalstore: Evalstore
) -> None:
    text = "---\ndataset: d.csv\nrowId: n\n---\n\n# 👤\n\n{{q}}\n\n---\n\n~~~checks\n- contains: a"
    tree(
        workspace, {"tests/t.md": f"{text}\n~~~\n", "tests/d.csv": "n,q\n1,cold\n2,warm\n3,mild\n"}
    )
    evalstore("run", "-q")
    edit(workspace / "tests/d.csv", "cold", "Oslo")
    model = workspace / "models/one.yaml"
    edit(model, "provider:", "candidateOverrides: {temperature: 0.5}\nprovider:")
    assert (
        f"M.  {'tests/t.md':22}  1 case asked again: test changed: message 1, line 1: "
        "cold -> Oslo (rows of tests/d.csv)\n"
        "    M.  candidate scripted/one  4 answers in 2 files: temperature none -> 0.5\n"
    ) in evalstore("status").stdout
    both = "test changed: message 1, line 1: cold -> Oslo; also changed: temperature"
    for command in (("status", "--explain"), ("run", "--dry-run")):
        shown = evalstore(*command).stdout
        assert f"  scripted/one  {both} none -> 0.5\n" in shown
        listed = shown.partition("\n    temperature none -> 0.5\n")[2].partition("\n\n")[0]
        assert [line.split()[-1] for line in listed.splitlines()] == ["scripted/one"] * 4
    evalstore("run", "-q")
    diff = evalstore("diff", "@~1", "@").stdout
    assert "(test changed, temperature none -> 0.5)" in diff


def test_what_was_edited_in_some_cases_is_counted(workspace: Path, evalstore: Evalstore) -> None:
    text = "---\ndataset: d.csv\nrowId: n\n---\n\n# 👤\n\n{{q}}\n\n---\n\nIt must be {{a}}.\n"
    tree(workspace, {"tests/t.md": text, "tests/d.csv": "n,q,a\n1,cold,1\n2,warm,2\n3,mild,3\n"})
    evalstore("run", "-q")
    tree(workspace, {"tests/d.csv": "n,q,a\n1,colder,1.5\n2,warmer,2\n3,milder,3\n"})
    assert (
        "3 cases asked again: test changed: message 1, line 1: cold -> colder; "
        "also changed: instructions of 1 case (rows of tests/d.csv)\n"
    ) in evalstore("status").stdout


def test_a_judge_whose_prompt_was_edited_is_one_although_a_label_decides(
    workspace: Path, evalstore: Evalstore
) -> None:
    tree(workspace, {"prompts/judge.md": JUDGE_PROMPT})
    evalstore("run", "-q")
    evalstore("label", "tests/weather.md::Oslo", "fail", "--as", "Ada")
    judge = "evaluators: [{id: scripted/judge, prompt: judge}]"
    edit(workspace / "evalstore.yaml", "evaluators: [scripted/judge]", judge)
    page = evalstore("show", "@work:tests/weather.md::Oslo").stdout
    assert "  by scripted/judge  (a label decides)  " in page
    evalstore("run", "-q")
    page = evalstore("show", "tests/weather.md::Oslo").stdout
    assert "\nfail  by Ada (a person)  " in page
    assert "  by scripted/judge  (other judge prompt)  " in page
    assert "\n    this version: judged once, fail by a label\n" in page
    evalstore("label", "tests/weather.md::Oslo", "--remove", "--as", "Ada")
    evalstore("run", "-q")
    page = evalstore("show", "tests/weather.md::Oslo").stdout
    assert "judged once" not in page


def test_a_judge_that_left_the_settings_is_no_longer_one_beside_others(
    workspace: Path, evalstore: Evalstore
) -> None:
    other = (workspace / "models/judge.yaml").read_text().replace("/judge", "/judge2")
    tree(workspace, {"models/judge2.yaml": f"{other}extraIdentifier: two\n"})
    both = "evaluators: [scripted/judge, scripted/judge2]"
    edit(workspace / "evalstore.yaml", "evaluators: [scripted/judge]", both)
    evalstore("run", "-q")
    edit(workspace / "evalstore.yaml", both, "evaluators: [scripted/judge]")
    gone = "  by scripted/judge2  (other or edited judge)  "
    assert gone in evalstore("show", "@work:tests/weather.md::Oslo").stdout
    evalstore("run", "-q")
    assert gone in evalstore("show", "tests/weather.md::Oslo").stdout
    assert gone not in evalstore("show", "@~1:tests/weather.md::Oslo").stdout


def test_a_setting_of_a_test_file_is_its_change(workspace: Path, evalstore: Evalstore) -> None:
    test = workspace / "tests/weather.md"
    test.write_text(test.read_text().replace("---\n", "---\nattempts: 2\n", 1))
    evalstore("run", "-q")
    edit(test, "attempts: 2", "attempts: 3")
    line = "    M.  tests/weather.md  2 cases asked again: attempts 2 -> 3\n"
    assert line in evalstore("status").stdout
    assert evalstore("status", "--short").stdout == "M. tests/weather.md\n"
    edit(test, "attempts: 3", "attempts: 2\nthreshold: 0.5")
    assert "    =   tests/weather.md  threshold: not set -> 0.5\n" in evalstore("status").stdout


def test_another_order_of_system_prompts_is_no_version_that_was_run(
    workspace: Path, evalstore: Evalstore
) -> None:
    tree(workspace, {"prompts/a.md": "Be kind.\n", "prompts/b.md": "Be brief.\n"})
    test = workspace / "tests/weather.md"
    test.write_text(test.read_text().replace("---\n", "---\nsystemPrompts: [a, b]\n", 1))
    evalstore("run", "-q")
    edit(test, "[a, b]", "[b, a]")
    line = "    =   tests/weather.md  system prompts exchanged\n"
    assert line in evalstore("status").stdout
    asked = evalstore("status", "--refresh").stdout
    told = "2 cases asked again: at your request; system prompts exchanged\n"
    assert f"    =   tests/weather.md  {told}" in asked
    edit(workspace / "prompts/b.md", "brief", "quick")
    shown = evalstore("status").stdout
    assert "  2 cases asked again: system prompt b changed: line 1" in shown
    assert "is new" not in shown


def test_a_part_that_was_undone_names_the_judge_that_is_new(
    workspace: Path, evalstore: Evalstore
) -> None:
    tree(workspace, {"prompts/judge.md": JUDGE_PROMPT})
    evalstore("run", "-q")
    edit(workspace / "tests/weather.md", "must be warm", "must be short")
    judge = "evaluators: [{id: scripted/judge, prompt: judge}]"
    edit(workspace / "evalstore.yaml", "evaluators: [scripted/judge]", judge)
    evalstore("run", "-q")
    edit(workspace / "tests/weather.md", "must be short", "must be warm")
    told = "instructions again as in run <short>, so its answers are judged by the current judge"
    assert told in evalstore("status").stdout.replace("\n", " ")

"""The trend: what it says of runs of all cases, of some, and of those that were interrupted."""

from __future__ import annotations

from pathlib import Path

from evalstore.planning.open_project import open_store
from evalstore.planning.options import Location
from evalstore.results.flips.verdict_changes import Outcome
from evalstore.results.report_overview import (
    CandidateCounts,
    Trend,
    TrendRun,
    make_trend,
    trend_until,
)
from evalstore.results.stats.stats import read_stats
from tests.interfaces.html.pages import TEST, call, judge, make_workspace, scripted


def trend_of(root: Path) -> Trend:
    with open_store(location := Location(root)) as store:
        return trend_until(location, store, read_stats(location, "@", [("model",)])[0])


def points_of(trend: Trend, candidate: str) -> list[tuple[float, bool]]:
    (line,) = (each for each in trend.lines if each.candidate == candidate)
    return [(point.rate, point.is_partial) for point in line.points]


def test_each_candidate_has_its_own_line_and_an_edit_that_broke_cases_its_name(
    tmp_path: Path,
) -> None:
    root = make_workspace(tmp_path, {})
    call(root, "run")
    (root / "models/first.yaml").write_text(scripted("first", {"answer": "Go away, too."}))
    path = root / "tests/hello.md"
    path.write_text(path.read_text().replace("Hello", "Hello!"))
    call(root, "run")
    trend = trend_of(root)
    assert points_of(trend, "first") == [(1.0, False), (0.0, False)]
    assert points_of(trend, "second") == [(0.0, False), (0.0, False)]
    assert [run.outcome for run in trend.runs] == [Outcome(0, 0, ()), Outcome(1, 0, ())]
    assert any("hello.md" in edit for edit in trend.runs[-1].edits)
    assert trend.runs[-1].breaks == (("tests/hello.md", 1),)


def test_the_mark_of_an_edit_names_the_candidate_or_the_judge(tmp_path: Path) -> None:
    root = make_workspace(tmp_path, {})
    settings = root / "evalstore.yaml"
    call(root, "run")
    changed = scripted("first", {"answer": "Go away, too."}) + "extraIdentifier: v2\n"
    (root / "models/first.yaml").write_text(changed)
    call(root, "run")
    assert trend_of(root).runs[-1].breaks == (("model of first", 1),)
    for name in ("one", "two"):
        text = judge("Xyzzy").replace("id: judge", f"id: {name}")
        (root / f"models/{name}.yaml").write_text(text)
    settings.write_text(settings.read_text().replace("[judge]", "[one, two]"))
    call(root, "run")
    for name in ("one", "two"):
        (root / f"models/{name}.yaml").write_text(
            judge("Go away").replace("id: judge", f"id: {name}")
        )
    warm = "[{id: one, temperature: 0.5}, {id: two, temperature: 0.5}]"
    settings.write_text(settings.read_text().replace("[one, two]", warm))
    call(root, "run")
    edits = " and ".join(f"judge temperature none -> 0.5 ({name})" for name in ("one", "two"))
    assert trend_of(root).runs[-1].breaks == ((edits, 2),)


def test_an_edit_that_broke_a_row_in_a_run_of_another_row_before_has_the_name_of_its_file(
    tmp_path: Path,
) -> None:
    root, rows = make_workspace(tmp_path, {}), "replacements: {who: [Ada, Bob]}\ntags:"
    path = root / "tests/hello.md"
    path.write_text(TEST.replace("tags:", rows).replace("Hello", "Hello {{who}}"))
    call(root, "run")
    path.write_text(path.read_text().replace("kind", "rude"))
    (root / "models/judge.yaml").write_text(judge("rude"))
    call(root, "run", "tests/hello.md::who=Ada")
    call(root, "run")
    assert [run.breaks for run in trend_of(root).runs[-2:]] == [(("tests/hello.md", 1),)] * 2


def test_each_of_several_edits_has_the_number_that_it_broke_and_the_first_three_are_named(
    tmp_path: Path,
) -> None:
    tone = "---\ntags: [_evaluator]\n---\n\nSay how it sounds.\n\n# 👤\n\n{{_actualResponse}}\n"
    check = (
        "- judge: {prompt: tone, choices: [kind, cold], scores: {kind: 1, cold: 0}, pass: '> 0'}"
    )
    judged = f"# 👤\n\nBye\n\n---\n\n~~~checks\n{check}\n~~~\n"
    choices = ({"when": f"{word} it", "answer": {"choice": choice}}
               for word, choice in (("how", "kind"), ("whether", "cold")))  # fmt: skip
    kind, hello = {"answer": {"pass": True, "feedback": ""}}, {"answer": "Good morning!"}
    names = [f"tests/{name}.md" for name in "abcd"]
    root = make_workspace(
        tmp_path,
        {
            **{
                f"models/{name}.yaml": scripted(name, {"when": "brief", "answer": "Hi"}, hello)
                for name in ("first", "second")
            },
            "prompts/tone.md": tone,
            "prompts/short.md": "Be short.\n",
            "models/judge.yaml": scripted(
                "judge", *choices, {"when": "rude", "answer": {"pass": False}}, kind
            ),
            "tests/bye.md": judged,
            "tests/bye-bye.md": judged.replace("Bye", "Bye bye"),
            names[0]: TEST.replace("tags: [greeting]", "systemPrompts: [short]"),
            **{name: TEST.replace("Hello", name) for name in names[1:]},
        },
    )
    call(root, "run")
    edits = {"prompts/tone.md": ("how it", "whether it"), "prompts/short.md": ("short", "brief")}
    for name, (old, new) in (edits | dict.fromkeys(names, ("kind", "rude"))).items():
        (root / name).write_text((root / name).read_text().replace(old, new))
    call(root, "run")
    last = trend_of(root).runs[-1]
    together = "system prompt short and tests/a.md"
    assert last.breaks == (
        ("judge prompt tone", 4), (together, 2), *((name, 2) for name in names[1:])
    )  # fmt: skip
    assert last.break_texts == [
        "judge prompt tone: 4 broke", f"{together}: 2 broke", "tests/b.md: 2 broke",
        "2 more: 4 broke",
    ]  # fmt: skip


def test_an_edit_that_broke_nothing_is_listed_and_not_a_reason(tmp_path: Path) -> None:
    files = {"tests/bye.md": TEST, "models/first.yaml": scripted("first", {"answer": "Go away."})}
    root = make_workspace(tmp_path, files)
    call(root, "run")
    (root / "models/first.yaml").write_text(scripted("first", {"answer": "Welcome!"}))
    call(root, "run", "-m", "first", "tests/hello.md", "--refresh")
    path = root / "tests/bye.md"
    path.write_text(path.read_text().replace("Hello", "Bye"))
    call(root, "run")
    last = trend_of(root).runs[-1]
    assert last.outcome == Outcome(1, 1, ("of these 2, 1 by an edit", "1 as older answers count"))
    assert last.edits == ("tests/bye.md changed",)
    assert last.breaks == ()


def test_a_run_of_some_cases_has_points_that_no_line_joins(tmp_path: Path) -> None:
    other = "# 👤\n\nBye\n\n---\n\nThe answer must be kind.\n"
    root = make_workspace(tmp_path, {"tests/bye.md": other})
    call(root, "run")
    call(root, "run", "tests/hello.md", "--refresh")
    line = trend_of(root).lines[0]
    assert [point.is_partial for point in line.points] == [False, True]
    assert [point.run for point in line.joined] == [0]


def test_a_run_of_all_cases_by_one_candidate_is_joined(tmp_path: Path) -> None:
    root = make_workspace(tmp_path, {})
    call(root, "run")
    call(root, "run", "-m", "first", "--refresh")
    assert points_of(trend_of(root), "first") == [(1.0, False), (1.0, False)]


def test_a_run_that_judged_a_part_of_its_results_is_not_joined() -> None:
    whole = TrendRun("a", 1, False, {"mini": CandidateCounts(10, 20, 20)})
    broken_off = TrendRun("b", 2, False, {"mini": CandidateCounts(1, 1, 20)})
    unjudged = TrendRun("c", 3, False, {"mini": CandidateCounts(0, 0, 20)})
    trend = make_trend([unjudged, broken_off, whole])
    assert points_of(trend, "mini") == [(0.5, False), (1.0, True)]

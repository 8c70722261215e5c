"""What registries of OpenAI Evals hold beside tidy evals: pointers, repeated keys, odd judges."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.exchange.importers.importing import Made, imported, lines

ROW = {"input": [{"role": "user", "content": "Q?"}], "ideal": "x"}
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 7\n"
GRADED = "modelgraded.classify:ModelBasedClassify"
JUDGE = "prompt: 'Is {completion} right?'\nchoice_strings: AB\neval_type: classify\n"
SCORED = JUDGE + "choice_scores: {A: 1, B: 0}\n"


def entry(name: str, kind: str = "basic.match:Match", samples: str = "s", more: str = "") -> str:
    """An eval with its alias."""
    args = f"{{samples_jsonl: {samples}.jsonl{more}}}"
    return f"{name}:\n  id: {name}.v0\n{name}.v0:\n  class: evals.elsuite.{kind}\n  args: {args}\n"


def made(path: Path, *evals: str, **files: str) -> Made:
    """What a registry with these evals, each in its file, and a file of samples comes to."""
    contents = {f"evals/{number}.yaml": text for number, text in enumerate(evals)}
    contents |= {"data/s.jsonl": lines(ROW)}
    contents |= {name.replace("__", "/") + ".yaml": text for name, text in files.items()}
    return imported(path, "openai-evals", contents)


def with_data(path: Path, evals: str, **data: str) -> Made:
    """The same with other data beside the samples."""
    files = {"evals/e.yaml": evals, "data/s.jsonl": lines(ROW)}
    files |= {f"data/{name}.jsonl": text for name, text in data.items()}
    return imported(path, "openai-evals", files)


def evals_in(result: Made) -> list[str]:
    return [
        file[6:-3] for file in result.imported.files if file.endswith(".md") and file[:5] == "tests"
    ]


def test_a_pointer_is_named_once_and_other_evals_are_taken_over(tmp_path: Path) -> None:
    evals = entry("a", samples="p") + entry("b", samples="p") + entry("c")
    result = with_data(tmp_path, evals, p=POINTER)
    pointers = [file for file, _, reason in result.left if "Git LFS pointer" in reason]
    assert (pointers, evals_in(result)) == (["p.jsonl"], ["c.v0"])


def test_an_eval_without_its_examples_is_left(tmp_path: Path) -> None:
    more = ", num_few_shot: 1, few_shot_jsonl: p.jsonl"
    result = with_data(tmp_path, entry("a", more=more), p=POINTER)
    assert evals_in(result) == []
    assert "its examples 'p.jsonl' cannot be read: this is a Git LFS pointer" in result.left[0][2]


def test_a_row_that_ends_with_an_answer_is_left(tmp_path: Path) -> None:
    messages = [*ROW["input"], {"role": "assistant", "content": "It is"}]
    result = with_data(tmp_path, entry("a", samples="o"), o=lines(ROW, {**ROW, "input": messages}))
    assert result.left == [
        ("o.jsonl", 2, "the conversation ends with an answer, so nothing is asked")
    ]
    assert len(result.read().files["tests/a.v0.md"].cases) == 1


def test_files_may_end_in_yml(tmp_path: Path) -> None:
    files = {"evals/a.yml": entry("a"), "data/s.jsonl": lines(ROW)}
    assert evals_in(imported(tmp_path, "openai-evals", files)) == ["a.v0"]


def test_an_empty_file_has_no_evals(tmp_path: Path) -> None:
    result = made(tmp_path, entry("a"), "# nothing yet\n")
    assert (evals_in(result), result.left) == (["a.v0"], [])


def test_the_last_of_equal_names_counts(tmp_path: Path) -> None:
    result = made(tmp_path, entry("a") + entry("a", "basic.includes:Includes"))
    assert "containsAny" in result.text("tests/a.v0.md")
    assert result.warnings == ["key 'a' appears twice: the last one counts, as in OpenAI Evals"]


def test_evals_of_the_same_name_are_kept_apart(tmp_path: Path) -> None:
    result = made(tmp_path, entry("a"), entry("a", "basic.includes:Includes"))
    assert evals_in(result) == ["a.v0", "a.v0-2"]


# --- judges


def judged(path: Path, spec: str, more: str = ", modelgraded_spec: j") -> Made:
    return made(path, entry("a", GRADED, more=more), modelgraded__j=spec)


def test_choices_without_scores_all_pass_until_somebody_says_more(tmp_path: Path) -> None:
    result = judged(tmp_path, JUDGE)
    assert "    pass: [A, B]\n" in result.text("tests/a.v0.md")
    assert "OpenAI Evals only counts choices: here all of them pass" in result.warnings[0]
    result.read()


def test_the_last_of_equal_keys_of_a_judge_counts(tmp_path: Path) -> None:
    spec = SCORED + "input_outputs:\n  input: input\n  input: completion\n"
    assert "`" not in judged(tmp_path, spec).text("prompts/a.v0.md")


def test_a_judge_may_stand_in_a_file_of_another_name(tmp_path: Path) -> None:
    other = "wanted:\n  " + SCORED.replace("\n", "\n  ")
    more = ", modelgraded_spec: wanted"
    result = made(tmp_path, entry("a", GRADED, more=more), modelgraded__j=other)
    assert evals_in(result) == ["a.v0"]


def test_a_limit_may_stand_in_the_arguments_of_the_call(tmp_path: Path) -> None:
    more = ", modelgraded_spec: j, sample_kwargs: {max_tokens: 9}"
    assert "options: {maxOutputTokens: 9}" in judged(tmp_path, SCORED, more).text("tests/a.v0.md")


LEFT = {
    "scores of other choices": (
        JUDGE + "choice_scores: {Y: 1, N: 0}\n",
        "its 'choice_scores' match none of its choices A, B",
    ),
    "several criteria": (
        SCORED.replace("right", "{how}") + "args: {how: {one: a, two: b}}\n",
        "its judge is asked several times, each with another 'how'",
    ),
    "a list of scores": (JUDGE + "choice_scores: [1, 0]\n", "are not numbers"),
    "no YAML": ("prompt: [", "'j.yaml' cannot be read"),
}


@pytest.mark.parametrize(("spec", "reason"), LEFT.values(), ids=LEFT.keys())
def test_an_impossible_judge_is_reported(spec: str, reason: str, tmp_path: Path) -> None:
    assert reason in judged(tmp_path, spec).left[0][2]


@pytest.mark.parametrize(
    ("judge", "name"),
    [
        ("prompt: 'Is it right?'\n", "completion"),
        ("prompt: 'Is {completion} right?'\ninput_outputs: {input: reply}\n", "reply"),
        ("prompt: [{role: user, content: 'Is it {{completion}}?'}]\n", "completion"),
    ],
)
def test_a_judge_that_never_sees_the_answer_is_left(tmp_path: Path, judge: str, name: str) -> None:
    spec = judge + "choice_strings: AB\neval_type: classify\nchoice_scores: {A: 1, B: 0}\n"
    rows = lines({**ROW, "completion": "c"})
    args = ", modelgraded_spec: judge"
    files = {
        "evals/e.yaml": entry("a", GRADED, more=args) + entry("b"),
        "data/s.jsonl": rows,
        "modelgraded/judge.yaml": spec,
    }
    result = imported(tmp_path, "openai-evals", files)
    assert evals_in(result) == ["b.v0"]
    reason = f"'a.v0': the prompt of its judge never shows the answer ('{{{name}}}')"
    assert [item[2] for item in result.left] == [reason]
    result.read()


@pytest.mark.parametrize("limit", ["0", "-1", "true"])
def test_an_invalid_limit_of_tokens_is_left_out(tmp_path: Path, limit: str) -> None:
    result = made(tmp_path, entry("a", "basic.json:JsonValidator", more=f", max_tokens: {limit}"))
    assert "maxOutputTokens" not in result.text("tests/a.v0.md")
    result.read()


def test_one_of_several_ideals_may_be_empty(tmp_path: Path) -> None:
    rows = lines({"input": "Q?", "ideal": ["", "x"]})
    result = with_data(tmp_path, entry("a", "basic.includes:Includes"), s=rows)
    assert result.verdict("tests/a.v0.md", "anything") == "pass"

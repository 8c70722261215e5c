"""Evals of OpenAI's framework: registries, eval files, samples, and what a model grades."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from evalstore.core.errors import EvalstoreError
from tests.exchange.importers.importing import imported, lines

EVAL = """\
capitals:
  id: capitals.dev.v0
  description: Capitals of countries
  metrics: [accuracy]
capitals.dev.v0:
  class: evals.elsuite.basic.{}
  args: {{samples_jsonl: geo/s.jsonl{}}}
"""
FRANCE = {
    "input": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "France?"}],
    "ideal": ["Paris", "Paname"],
}
PATH = "tests/capitals.dev.v0.md"
SPEC = """\
fact:
  prompt: |-
    Compare.
    [Question]: {input}
    [Expert]: {ideal}
    [Submission]: {completion}
    Choose {{A}} or B, {why}.
  choice_strings: AB
  choice_scores: {A: 1.0, B: 0.0}
  eval_type: classify
  input_outputs: {input: completion}
"""


def registry(kind: str, *rows: object, args: str = "") -> dict[str, str]:
    return {
        "evals/geo.yaml": EVAL.format(kind, args),
        "data/geo/s.jsonl": lines(*rows),
        "modelgraded/fact.yaml": SPEC,
    }


def test_an_eval_becomes_one_readable_test(tmp_path: Path) -> None:
    made = imported(tmp_path, "openai-evals", registry("match:Match", FRANCE))
    assert made.text(PATH) == (
        "---\ndescription: Capitals of countries\ndataset: data/geo/s.jsonl\n"
        "options: {temperature: 0}\n"
        "messages: '{{ item.input }}'\n---\n\n---\n\n"
        "~~~checks\n- startsWith: '{{ item.ideal }}'\n~~~\n"
    )


def test_samples_stay_line_for_line(tmp_path: Path) -> None:
    files = registry("match:Match", FRANCE)
    files["data/geo/s.jsonl"] = '{"input":"a",  "ideal":"b"}\n'
    made = imported(tmp_path, "openai-evals", files)
    assert made.text("tests/data/geo/s.jsonl") == '{"input":"a",  "ideal":"b"}\n'


def test_messages_are_shown_as_they_are(tmp_path: Path) -> None:
    message = {"role": "user", "content": " {{x}}\n---\n# 👤 "}
    made = imported(
        tmp_path, "openai-evals", registry("match:Match", {"input": [message], "ideal": "a"})
    )
    assert made.messages(PATH) == [[("user", " {{x}}\n---\n# 👤 ")]]


@pytest.mark.parametrize("text", ["France?", " France? "])
def test_a_text_is_one_user_message(tmp_path: Path, text: str) -> None:
    rows = {"input": text, "ideal": "Paris"}
    made = imported(tmp_path, "openai-evals", registry("match:Match", rows))
    assert made.messages(PATH) == [[("user", text)]]


def test_texts_and_messages_can_be_mixed(tmp_path: Path) -> None:
    rows = [{"input": "Norway?", "ideal": "Oslo"}, FRANCE]
    made = imported(tmp_path, "openai-evals", registry("match:Match", *rows))
    assert [messages[-1] for messages in made.messages(PATH)] == [
        ("user", "Norway?"),
        ("user", "France?"),
    ]


@pytest.mark.parametrize(("args", "verdict"), [("", "fail"), (", ignore_case: true", "pass")])
def test_includes_can_ignore_the_case(tmp_path: Path, args: str, verdict: str) -> None:
    made = imported(tmp_path, "openai-evals", registry("includes:Includes", FRANCE, args=args))
    assert made.verdict(PATH, "It is paris.") == verdict


@pytest.mark.parametrize(("answer", "verdict"), [("Oslo", "pass"), ("oslo", "pass"), ("x", "fail")])
def test_solvers_may_answer_with_a_capital(tmp_path: Path, answer: str, verdict: str) -> None:
    row = {"input": [{"role": "user", "content": "Norway?"}], "ideal": ["oslo", "x"]}
    files = registry("m:MatchWithSolvers", row, args=", task_description: 'Say {{it}}.'")
    made = imported(tmp_path, "openai-evals", files)
    assert made.verdict(PATH, answer) == verdict
    assert 'Say {{ "{{" }}it}}.' in made.text("prompts/capitals.dev.v0.md")


def test_a_translation_passes_above_30_points_of_bleu(tmp_path: Path) -> None:
    made = imported(tmp_path, "openai-evals", registry("translate:Translate", FRANCE))
    assert "- {bleu: '{{ item.ideal }}', pass: '> 0.3'}" in made.text(PATH)


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [('{"b": [1.0]}', "pass"), ('{"a": null}', "fail"), ('{"b": [2]}', "fail"), ("x", "fail")],
)
def test_one_of_several_documents_is_enough(tmp_path: Path, answer: str, verdict: str) -> None:
    row = {"input": "x", "ideal": ['{"a": null}', '{"b": [1]}', "{}"]}
    made = imported(tmp_path, "openai-evals", registry("j:JsonMatch", row))
    assert made.verdict(PATH, answer) == verdict


def test_bad_rows_are_reported_and_the_good_ones_are_written(tmp_path: Path) -> None:
    files = registry("match:Match", FRANCE)
    files["data/geo/s.jsonl"] += '{"input": "x"\n{"ideal": "y"}\n{"input": [], "ideal": "y"}\n'
    made = imported(tmp_path, "openai-evals", files)
    assert made.left == [
        ("s.jsonl", 2, "not JSON: expecting ',' delimiter"),
        ("s.jsonl", 3, "the row has no 'input'"),
        ("s.jsonl", 4, "'input' must be a text or a list of messages"),
    ]
    assert made.imported.rows == 1


def test_a_class_with_code_of_its_own_is_left(tmp_path: Path) -> None:
    files = registry("match:Match", FRANCE)
    files["evals/own.yaml"] = "own.v0:\n  class: mine:Own\n  args: {samples_jsonl: geo/s.jsonl}\n"
    (item,) = imported(tmp_path, "openai-evals", files).left
    assert item[:2] == ("own.yaml", 2)
    assert item[2].startswith("'own.v0': its class 'Own' has its own code")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (", modelgraded_spec: fact, metaeval: true", "metaeval"),
        (", modelgraded_spec: fact, multicomp_n: 2", "multicomp_n"),
        (", modelgraded_spec: fct", "has no judge 'fct'"),
        ("", "it names no 'modelgraded_spec'"),
    ],
)
def test_what_cannot_be_judged_here_is_left(tmp_path: Path, args: str, words: str) -> None:
    files = registry("c:ModelBasedClassify", FRANCE, args=args)
    (item,) = imported(tmp_path, "openai-evals", files).left
    assert words in item[2]


def test_a_judges_prompt_shows_row_answer_and_conversation_in_their_places(
    tmp_path: Path,
) -> None:
    args = ", modelgraded_spec: fact, modelgraded_spec_args: {why: please}"
    files = registry("c:ModelBasedClassify", FRANCE, args=args)
    made = imported(tmp_path, "openai-evals", files)
    assert made.text("prompts/capitals.dev.v0.md") == (
        "---\nid: from/capitals.dev.v0\ntags: [_evaluator]\n---\n\n# 👤\n\nCompare.\n"
        "[Question]: {{_messages}}\n[Expert]: {{_evaluationInstructions}}\n"
        "[Submission]: {{_actualResponse}}\nChoose {A} or B, please.\n"
    )


def test_a_judge_chooses_as_the_class_does(tmp_path: Path) -> None:
    args = ", modelgraded_spec: fact, eval_type: cot_classify"
    row = {**FRANCE, "why": "x", "completion": "Paris."}
    files = registry("c:ModelBasedClassify", row, args=args)
    files["modelgraded/fact.yaml"] = SPEC.replace(", {why}", "")
    assert (
        imported(tmp_path, "openai-evals", files)
        .text(PATH)
        .endswith(
            "messages: '{{ item.input }}'\nanswer: '{{ item.completion | default(none) }}'\n---\n\n"
            "---\n\n{{ item.ideal }}\n\n~~~checks\n- judge:\n    prompt: from/capitals.dev.v0\n"
            "    choices: [A, B]\n    scores: {A: 1, B: 0}\n    answer: cot_classify\n"
            "    invalid: lowest\n~~~\n"
        )
    )


def test_evals_that_share_samples_share_a_file(tmp_path: Path) -> None:
    files = registry("match:Match", FRANCE)
    files["evals/two.yaml"] = "two.v0:\n  class: i:Includes\n  args: {samples_jsonl: geo/s.jsonl}\n"
    made = imported(tmp_path, "openai-evals", files)
    assert "dataset: data/geo/s.jsonl" in made.text("tests/two.v0.md")
    assert [path for path in made.imported.files if path.endswith(".jsonl")] == [
        "tests/data/geo/s.jsonl"
    ]


def test_samples_alone_are_judged_as_match_and_that_is_reported(tmp_path: Path) -> None:
    packed = gzip.compress(lines(FRANCE).encode())
    made = imported(tmp_path, "openai-evals", {"geo.jsonl.gz": packed}, "geo.jsonl.gz")
    assert made.verdict("tests/geo.md", "Paris!") == "pass"
    assert made.warnings == ["no eval says how these samples are judged: 'Match' is used"]


def test_a_folder_without_evals_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EvalstoreError, match="no evals in 'source'"):
        imported(tmp_path, "openai-evals", {"README.md": "x"})

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.core import deserialize, hashing
from evalstore.core.hashing import canonical_json
from evalstore.core.values import (
    AnswerRef,
    Case,
    CaseFile,
    Cost,
    Evaluation,
    EvaluationVersion,
    Evaluator,
    Failure,
    FileRef,
    FileVersion,
    Message,
    ModelVersion,
    Options,
    PromptVersion,
    Question,
    Reply,
    Session,
    TestVersion,
    Text,
    ToolCall,
    ToolVersion,
    Usage,
)

A, B, C = "1" * 32, "2" * 32, "3" * 32
TIME = 1_700_000_000_000_000

QUESTION = Question(A, C, B, 0.5, 7)
REPLY = Reply(
    "hi", (ToolCall("w", {"city": "Oslo"}),), "stop", None, Usage(1, 2, 3, 4), "m-1", "r-1", 0.25
)
TEST = TestVersion(
    (Message("user", (Text("See "), FileRef("a.txt", "text/plain", A))),),
    ("_json_mode",),
    (A,),
    B,
    Options(0.5, 100, 0.9, 7, ("x",), {"k": 1}),
)
CASES = CaseFile(
    (Case("q=a", "k", (A,), B, ("a",), (C, None), ("tools",), ("checks", "models"), 0.0, 7, 100),),
    2,
    ("judge",),
    0.5,
    "x",
)
SESSION = Session(QUESTION, (REPLY,), TIME, "n", Cost(0.01, {"input": 1}), 100, "run")
JUDGEMENT = Evaluation(
    (A,), B, C, "pass", TIME, "n", 0.5, "good", "f", "r",
    ({"type": "json", "verdict": "pass"},), Usage(1), Cost(0.01, {"input": 1}), 0.5, "run",
)  # fmt: skip


def described() -> dict[str, dict[str, Any]]:
    """One description of each kind, with most of its fields."""
    return {
        "file": hashing.describe_file(FileVersion("text/plain", b"alpha\n")),
        "tool": hashing.describe_tool(ToolVersion("w", "Weather.", {"type": "object"})),
        "schema": hashing.describe_schema({"type": "object"}),
        "prompt": hashing.describe_prompt(
            PromptVersion((Message("system", (Text("Be brief."),)),), ("_json_mode",))
        ),
        "test": hashing.describe_test(TEST),
        "evaluation": hashing.describe_evaluation(
            EvaluationVersion((Text("E"),), ({"type": "json", "revision": 1},))
        ),
        "model": hashing.describe_model(
            ModelVersion("openai", "m", "http://localhost/v1", {"thinking": "low"})
        ),
        "question": hashing.describe_question(QUESTION),
        "evaluator": hashing.describe_evaluator(Evaluator(B, C, 0.0)),
        "cases": hashing.describe_case_file(CASES),
        "session": hashing.describe_session(SESSION),
        "judgement": hashing.describe_evaluation_result(JUDGEMENT),
        "failure": hashing.describe_failure(
            Failure(A, None, None, "timeout", "too slow", TIME, "n", 504, 3, "m")
        ),
    }


GOLDEN = {
    "file": "a84a620827b509e541a88870e551b45d",
    "tool": "8786bd91305105bbd9be84cb349b719c",
    "schema": "3534052f7d25e69ec09e41ba8aeb9653",
    "prompt": "9961cf860388446b2a712c29913db5da",
    "test": "8c36b1272482f4c951433003efea6a99",
    "evaluation": "4b817cbe2cd739fc66bb8bd277816574",
    "model": "d18373dede819962d4b1c3138344b4aa",
    "question": "503458119fb1d3190ce51fd0906a3e15",
    "evaluator": "65ca92f3f52c91e5a5847e8d657cd3a3",
    "cases": "6646fd39972ed0794b22ddd0372a1be2",
    "session": "f16cefade884699d848b4ab2c7adbbed",
    "judgement": "5def4d6d50db53f70041f30501608f87",
    "failure": "b413bb3a6d3fbfaba6a8a5cde880c5f5",
}


JUDGED = Failure(None, A, B, "timeout", "too slow", TIME, "n", None, 1, "m", C)
NAMED = Message("user", (Text("Hi"),), name="Ada")
ALL_FIELDS = Case(
    "q=a", "k", (A, B), None, (), (None,), ("image",), ("checks", "models", "always"),
    0.5, 0, 100, C, (A, B), (C,),
)  # fmt: skip
BARE = Case("", "k", (A,), None, (), (None,), judged_by=("models",), seed=None)


def other_shapes() -> dict[str, dict[str, Any]]:
    """Descriptions with the fields, and without those, that the others do not have."""
    return {
        "test with a name": hashing.describe_test(TestVersion((NAMED,))),
        "prompt with a name": hashing.describe_prompt(PromptVersion((NAMED,))),
        "test without parts": hashing.describe_test(TestVersion((Message("user", ()),))),
        "test whose options are whole numbers": hashing.describe_test(
            TestVersion(TEST.messages, options=Options(temperature=1.0, top_p=1.0, seed=0))
        ),
        "evaluation of several answers": hashing.describe_evaluation(
            EvaluationVersion((Text("E"), AnswerRef(((0, 0), (1, 2)))))
        ),
        "evaluation with a file": hashing.describe_evaluation(
            EvaluationVersion((FileRef("a.png", "image/png", A),))
        ),
        "question without options": hashing.describe_question(Question(A, None, B, None)),
        "evaluator: checks": hashing.describe_evaluator(Evaluator(checks=True)),
        "evaluator: a person": hashing.describe_evaluator(Evaluator(human="ada")),
        "evaluator: a way to read": hashing.describe_evaluator(Evaluator(B, C, reading=2)),
        "evaluator: another system": hashing.describe_evaluator(Evaluator(system="lve")),
        "case with all fields": hashing.describe_case_file(CaseFile((ALL_FIELDS,))),
        "case of defaults": hashing.describe_case_file(CaseFile((BARE,), threshold=1.0)),
        "case that nobody judges": hashing.describe_case_file(CaseFile((BARE,), evaluators=())),
        "session of defaults": hashing.describe_session(
            Session(Question(A, None, B, None), (Reply(None, refusal="no"),), TIME, "n")
        ),
        "session with a measured time": hashing.describe_session(
            Session(Question(A, None, B, None), (Reply("x", latency=0.123456),), TIME, "n")
        ),
        "judgement of defaults": hashing.describe_evaluation_result(
            Evaluation((A, B), B, C, "fail", TIME, "n", 1.0, latency=0.123456)
        ),
        "failure of a judge": hashing.describe_failure(JUDGED),
        "subject": hashing.describe("subject", sessions=[A, B]),
    }


OTHER_GOLDEN = {
    "test with a name": "a2be6e8e4496ca980d611b8666dca48f",
    "prompt with a name": "edbe1b4289d8c87a00258ca21fc9fcb7",
    "test without parts": "9e641320e274d4acd49213f36af65bc9",
    "test whose options are whole numbers": "365d916eb5500b2b985de246b57cd691",
    "evaluation of several answers": "0a958afa297ad666ff551d7c7a2083b9",
    "evaluation with a file": "94dfbe08b353ded597cc9a44b2c42a34",
    "question without options": "0bf24136a4c650c94d7ff5a3c513113e",
    "evaluator: checks": "4e746071c4fc6b446646257b6aca27ff",
    "evaluator: a person": "3edcce8cf8bbcb8639ee70ad91f47e96",
    "evaluator: a way to read": "16c72d54cb80ac3d082e6ba7e6ad4109",
    "evaluator: another system": "fb7d95853de7a3ab18e56e85a0fbcfc2",
    "case with all fields": "de45b7f1d582c9a9940977c7eecf4b75",
    "case of defaults": "345c923f45d9d9054c545b7b3984d7b5",
    "case that nobody judges": "3d7ae96928f5fde9b3d8fe089f5b4d2c",
    "session of defaults": "b803031f879d9f2d91ad9811d3468eb2",
    "session with a measured time": "fdc0bebd71e0f2b4e1eef4ed5a706753",
    "judgement of defaults": "64ef0b82c1a0918a13c47a50139c9b13",
    "failure of a judge": "6c21062d5390f62adef94097f7dc2cab",
    "subject": "1b7a49da8dd7c719a3a21be116c71b0b",
}


@pytest.mark.parametrize("shape", OTHER_GOLDEN)
def test_ids_of_other_shapes_stay_what_they_are(shape: str) -> None:
    assert hashing.identify(other_shapes()[shape])[0] == OTHER_GOLDEN[shape]


def test_every_shape_has_an_id_of_its_own() -> None:
    ids = [hashing.identify(item)[0] for item in [*described().values(), *other_shapes().values()]]
    assert len(set(ids)) == len(ids)


def test_keys_of_rows_and_digests_stay_what_they_are() -> None:
    assert hashing.row_key({"q": "a", "n": 1}) == "d8afa3540504d0b1"
    assert hashing.subject_of((A, B)) == OTHER_GOLDEN["subject"]
    digest = "890c8a5c5ad2a8a2edba9e94785346a3"
    assert hashing.hash_bytes(b"alpha\n") == digest
    assert hashing.hash_stream([b"al", b"", b"pha\n"]) == digest


@pytest.mark.parametrize("kind", GOLDEN)
def test_ids_stay_what_they_are(kind: str) -> None:
    stale = "every existing store is stale: raise SCHEME, and then these ids, or undo the change"
    description = described()[kind]
    assert description["kind"] == kind
    assert hashing.identify(description)[0] == GOLDEN[kind], stale


def test_every_kind_is_pinned() -> None:
    assert described().keys() == GOLDEN.keys()
    assert other_shapes().keys() == OTHER_GOLDEN.keys()


def test_the_canonical_form_is_this() -> None:
    assert hashing.identify(hashing.describe_evaluation(EvaluationVersion((Text("né"),)))) == (
        "89d3e2bb2d0d73af65693fc564db1436",
        '{"instructions":"né","kind":"evaluation","scheme":1}',
    )


def test_messages_can_be_described_by_themselves() -> None:
    described = hashing.describe_test(replace(TEST, messages=()))
    whole = hashing.with_messages(described, TEST.messages)
    assert hashing.identify(whole)[0] == GOLDEN["test"]


def test_kinds_never_share_an_id() -> None:
    bodies = [{**value, "kind": ""} for value in described().values()]
    ids = {hashing.identify({**body, "kind": kind})[0] for body in bodies[:2] for kind in GOLDEN}
    assert len(ids) == 2 * len(GOLDEN)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_json_has_no_infinities(value: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json({"a": value})


# --- and back


def stored(description: dict[str, Any]) -> Any:
    return json.loads(hashing.identify(description)[1])


def test_a_test_comes_back() -> None:
    assert deserialize.restore_test(stored(hashing.describe_test(TEST))) == TEST


def test_a_test_of_defaults_comes_back() -> None:
    test = TestVersion((Message("user", ()),))
    assert deserialize.restore_test(stored(hashing.describe_test(test))) == test


def test_a_turn_to_be_filled_comes_back_and_has_its_vector() -> None:
    turns = (Message("user", (Text("a"),)), Message("assistant", (), True), Message("user", ()))
    test = TestVersion(turns)
    id, content = hashing.identify(hashing.describe_test(test))
    assert deserialize.restore_test(json.loads(content)) == test
    assert '{"filled":true,"role":"assistant"}' in content
    assert id == "0b5c6d324ee1824963bd5749226e1dd5"


def test_a_session_comes_back() -> None:
    assert deserialize.restore_session(stored(hashing.describe_session(SESSION))) == SESSION


@pytest.mark.parametrize("reply", [Reply(None), Reply(""), Reply("x", refusal="no")])
def test_a_bare_reply_comes_back(reply: Reply) -> None:
    session = Session(Question(A, None, B, None), (reply,), TIME, "n")
    assert deserialize.restore_session(stored(hashing.describe_session(session))) == session


def test_a_judgement_comes_back() -> None:
    content = stored(hashing.describe_evaluation_result(JUDGEMENT))
    assert deserialize.restore_evaluation_result(content) == JUDGEMENT


@pytest.mark.parametrize("evaluators", [None, (), ("judge",)])
@pytest.mark.parametrize("threshold", [None, 0.0, 0.5])
def test_cases_come_back(evaluators: tuple[str, ...] | None, threshold: float | None) -> None:
    file = CaseFile((Case("", "k", (A,), None, (), (None,)),), None, evaluators, threshold)
    assert deserialize.restore_case_file(stored(hashing.describe_case_file(file))) == file
    assert deserialize.restore_case_file(stored(hashing.describe_case_file(CASES))) == CASES


def test_the_prompts_that_a_case_is_judged_by_come_back() -> None:
    case = CASES.cases[0]._replace(judge_prompts=(C, A))
    file = replace(CASES, cases=(case,))
    assert deserialize.restore_case_file(stored(hashing.describe_case_file(file))) == file


MANY_CASES = st.lists(
    st.builds(
        Case,
        row=st.sampled_from(["", "a", "b"]),
        key=st.just("k"),
        tests=st.sampled_from([(A,), (B, C)]),
        evaluation=st.sampled_from([None, A, B]),
        tags=st.sampled_from([(), (), ("x",), ("x", "y")]),
        prompts=st.sampled_from([(None,), (A,), (None, B)]),
        needs=st.sampled_from([(), ("image",)]),
        judged_by=st.sampled_from([("models",), ("checks",), ("checks",)]),
        temperature=st.sampled_from([None, 0, 0.5]),
        recorded=st.sampled_from([None, "r"]),
        code=st.sampled_from([(), ("c.py",)]),
    ),
    min_size=1,
    max_size=8,
)


@given(MANY_CASES)
def test_cases_come_back_whatever_the_one_before_has(cases: list[Case]) -> None:
    content = stored(hashing.describe_case_file(CaseFile(tuple(cases))))
    restored = [*deserialize.restore_cases(content["cases"])]
    assert restored == cases
    assert stored(hashing.describe_case_file(CaseFile(tuple(restored)))) == content


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=3), JSON, max_size=5))
def test_key_order_never_counts(value: dict[str, Any]) -> None:
    turned = dict(reversed(value.items()))
    assert canonical_json(turned) == canonical_json(value)


@given(st.dictionaries(st.text(max_size=3), JSON | st.floats(allow_nan=False), max_size=5))
def test_canonical_json_is_what_the_standard_encoder_writes(value: dict[str, Any]) -> None:
    try:
        expected = json.dumps(
            value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        )
    except ValueError:
        with pytest.raises(ValueError, match="not JSON compliant"):
            canonical_json(value)
    else:
        assert canonical_json(value) == expected


def test_without_the_quick_encoder_the_same_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json.encoder, "c_make_encoder", None)
    encode = hashing._make_encode()
    value = {"b": ["é", 1, 1.5, None, True], "a": {}}
    assert encode(value) == canonical_json(value) == '{"a":{},"b":["é",1,1.5,null,true]}'
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode(float("nan"))


TAGS = st.permutations(["_has_tools", "_json_mode", "_json_mode"])


@given(TAGS, st.permutations([A, B, A]))
def test_the_order_of_tags_and_tools_never_counts(tags: list[str], tools: list[str]) -> None:
    test = TestVersion(TEST.messages, tuple(tags), tuple(tools))
    same = TestVersion(TEST.messages, ("_json_mode", "_has_tools"), (A, B))
    assert hashing.describe_test(test) == hashing.describe_test(same)


PARTS = st.lists(
    st.builds(Text, st.text(min_size=1))
    | st.builds(FileRef, st.text(), st.just("a/b"), st.just(A)),
    max_size=3,
).map(tuple)


@given(
    st.builds(
        TestVersion,
        st.lists(st.builds(Message, st.sampled_from(["user", "assistant"]), PARTS)).map(tuple),
        schema=st.none() | st.just(A),
        options=st.builds(
            Options,
            temperature=st.none() | st.floats(0, 2),
            seed=st.none() | st.integers(),
            stop=st.lists(st.text(min_size=1)).map(tuple),
        ),
    )
)
def test_any_test_comes_back(test: TestVersion) -> None:
    content = stored(hashing.describe_test(test))
    assert deserialize.restore_test(content) == test


@given(PARTS, PARTS)
def test_different_parts_have_different_ids(first: Any, other: Any) -> None:
    ids = [
        hashing.identify(hashing.describe_evaluation(EvaluationVersion(parts)))[0]
        for parts in (first, other)
    ]
    assert (ids[0] == ids[1]) == (first == other)


def test_a_whole_temperature_is_one_number() -> None:
    assert hashing.question_id(Question(A, None, B, 1.0)) == hashing.question_id(
        Question(A, None, B, 1)
    )


def test_a_temperature_of_zero_is_not_the_default() -> None:
    assert hashing.question_id(Question(A, None, B, 0.0)) != hashing.question_id(
        Question(A, None, B, None)
    )


def test_an_id_of_a_question_is_that_of_its_description() -> None:
    assert hashing.question_id(QUESTION) == GOLDEN["question"]


@given(
    st.builds(
        Question,
        st.sampled_from([A, B, "", "é", '"', "0\\", "a b"]) | st.text(),
        st.none() | st.sampled_from([A, "", '","test":"']),
        st.sampled_from([A, B]) | st.text(),
        st.none() | st.sampled_from([0, 0.0, -0.0, 1, 1.0, 0.7]) | st.floats(0, 2),
        st.none() | st.integers(),
    )
)
def test_the_id_of_any_question_is_that_of_its_description(question: Question) -> None:
    described = hashing.describe_question(question)
    for _ in range(2):
        assert hashing.question_id(question) == hashing.identify(described)[0]


def test_fields_that_are_empty_are_left_out() -> None:
    bare = hashing.describe_test(TestVersion(TEST.messages, options=Options(seed=1)))
    options = Options(seed=1, stop=(), provider_options={})
    assert hashing.describe_test(TestVersion(TEST.messages, options=options)) == bare
    judgement = hashing.describe_evaluation_result(JUDGEMENT._replace(latency=0.0))
    assert "latency" not in judgement


def test_a_special_tag_of_a_prompt_counts_once() -> None:
    once, twice = (
        hashing.describe_prompt(PromptVersion(TEST.messages, tags))
        for tags in (("_a", "_b"), ("_b", "_a", "_b"))
    )
    assert once == twice


def test_one_session_is_its_own_subject() -> None:
    assert hashing.subject_of((A,)) == A
    assert hashing.subject_of((A, B)) != hashing.subject_of((B, A))


def test_another_system_is_an_evaluator_of_its_own() -> None:
    named = [Evaluator(system="lve"), Evaluator(human="lve"), Evaluator(checks=True)]
    ids = [hashing.evaluator_id(evaluator) for evaluator in named]
    assert ids[0] == "fb7d95853de7a3ab18e56e85a0fbcfc2"
    assert len(set(ids)) == 3

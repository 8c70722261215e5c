"""Random repositories of the six systems that can be imported, with texts that look like ours."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from tests.exchange.importers.langbite.library import model, prompt, requirement, table
from tests.exchange.importers.lve.repository import definition

Repository = dict[str, str]
"""The files by their paths."""

_PIECES = (
    *("---", "# 👤", "# 🤖", "# 🤖 @x", "# ▶ a ×2", "~~~checks", "```", "<!--", "-->", "`"),
    *("{{x}}", "`{{x}}`", "{{ item.a }}", "{{_file:a.png}}", "{{_actualResponse}}", "{{{", "{{"),
    *(
        "}}",
        "{%",
        "{% raw %}",
        "{#",
        "#}",
        "{input}",
        "{completion}",
        "{a}",
        "{ }",
        "{PET}",
        "{PET2}",
    ),
    *("yes", "null", "1.10", "- a", "a: b", "'", '"', "\\", "$1", "|", "(", "[", "*", "é", "‮"),
    *("\n", "\n\n", " ", "\t", "\r", "\x07", "\x85", "\u2028", "\ufeff", "", "A", "B", "word"),
)
_WORDS = ("a", "b", "x", "Raw Name", "item", "sample", "answer", "items", "é", "_x", "1", "")

texts = st.lists(st.sampled_from(_PIECES), max_size=5).map("".join)
words = st.sampled_from(_WORDS)
values = st.one_of(texts, st.integers(-2, 2), st.none(), st.booleans(), st.lists(texts, max_size=2))
odd = st.one_of(texts, values, st.dictionaries(words, values, max_size=2))


def lists_of(items: st.SearchStrategy[Any], most: int = 3) -> st.SearchStrategy[list[Any]]:
    """Some of these, at least one."""
    return st.lists(items, min_size=1, max_size=most)


def any_of(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A mapping with any of these fields."""
    return st.fixed_dictionaries({}, optional=fields)


def _lines(rows: list[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def _document(value: Any) -> str:
    return json.dumps(value, indent=1)


messages = lists_of(
    st.fixed_dictionaries(
        {"role": st.sampled_from(("system", "user", "user", "assistant")), "content": texts}
    )
)
inputs = st.one_of(texts, messages)
ideals = st.one_of(texts, st.lists(texts, max_size=2), values)


# --- EvalsOne -----------------------------------------------------------------------------

evalsone: st.SearchStrategy[Repository] = lists_of(
    st.fixed_dictionaries(
        {"input": inputs}, optional={"completion": texts, "ideal": ideals, "context": ideals}
    )
    | st.dictionaries(words, values, max_size=3).map(lambda row: {**row, "input": "q"})
).map(lambda rows: {"s.jsonl": _lines(rows)})


# --- OpenAI Evals -------------------------------------------------------------------------

_CLASSES = (
    *("Match", "Includes", "FuzzyMatch", "JsonMatch", "JsonValidator", "Translate"),
    *("MatchWithSolvers", "ModelBasedClassify", "Other"),
)
_arguments = any_of(
    num_few_shot=st.integers(0, 2),
    few_shot_jsonl=st.just("shots.jsonl"),
    max_tokens=st.integers(-1, 20),
    ignore_case=st.booleans(),
    task_description=texts,
    eval_type=st.sampled_from(("classify", "cot_classify", "classify_cot", "x")),
    modelgraded_spec_args=st.dictionaries(words, values, max_size=2),
    samples_renamings=st.dictionaries(words, words, max_size=1),
    match_fn=st.sampled_from(("exact", "include", "x")),
)
_specs = st.fixed_dictionaries(
    {"prompt": st.one_of(texts, texts.map(lambda text: text + " {completion}"), messages)},
    optional={
        "choice_strings": st.one_of(st.just("AB"), st.lists(texts, max_size=3)),
        "choice_scores": st.one_of(st.dictionaries(texts, values, max_size=2), texts),
        "eval_type": st.just("cot_classify"),
        "input_outputs": st.dictionaries(words, words, max_size=1),
        "args": st.dictionaries(words, values, max_size=1),
    },
)


@st.composite
def openai_evals(draw: st.DrawFn) -> Repository:
    """A registry with an eval or two."""
    evals = {}
    for name in draw(lists_of(texts, 2)):
        kind = f"evals.elsuite.x:{draw(st.sampled_from(_CLASSES))}"
        args = {"samples_jsonl": "s.jsonl", "modelgraded_spec": "judge", **draw(_arguments)}
        evals[name] = {"class": kind, "args": args, "description": draw(odd)}
    rows = lists_of(st.fixed_dictionaries({"input": inputs, "ideal": ideals}, optional={"a": odd}))
    shots = st.lists(st.fixed_dictionaries({"sample": messages}), max_size=2)
    return {
        "evals/e.yaml": _document(evals),
        "data/s.jsonl": _lines(draw(rows)),
        "data/shots.jsonl": _lines(draw(shots)),
        "modelgraded/judge.yaml": _document(draw(_specs)),
    }


# --- NeMo Evaluator -----------------------------------------------------------------------

_templates = st.one_of(
    texts,
    st.sampled_from(
        (
            "{{item.a}}",
            "{{ sample.output_text }}",
            "{{item.b | trim}} x",
            "{{ item.messages | tojson }}",
        )
    ),
    st.tuples(texts, st.just("{{item.a}}"), texts).map("".join),
)
_chat = lists_of(
    st.fixed_dictionaries(
        {"role": st.sampled_from(("system", "user", "assistant")), "content": _templates}
    )
)
_operations = st.sampled_from(
    ("equals", "contains", "startswith", ">=", "absolute difference", "x")
)
_checks = st.fixed_dictionaries(
    {"check": st.tuples(_templates, _operations, _templates).map(list)},
    optional={"epsilon": st.sampled_from((0.1, 0, -1, "x"))},
)
_scores = st.dictionaries(
    texts,
    any_of(
        parser=any_of(
            type=st.just("regex"), pattern=st.sampled_from(("(\\d+)", "(", "x")), json_path=texts
        ),
        minimum=st.integers(0, 1),
        maximum=st.integers(1, 5),
        rubric=st.lists(
            st.fixed_dictionaries({"label": texts, "value": st.integers(0, 2)}), max_size=2
        ),
    ),
    max_size=2,
)
_metrics = st.one_of(
    st.fixed_dictionaries({"type": st.just("string-check"), "params": _checks}),
    st.fixed_dictionaries({"type": st.just("number-check"), "params": _checks}),
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(("f1", "em", "exact-match", "accuracy", "x")),
            "params": any_of(references=lists_of(_templates), ground_truth=_templates),
        }
    ),
    st.fixed_dictionaries(
        {
            "type": st.just("tool-calling"),
            "params": any_of(tool_calls_ground_truth=_templates),
        }
    ),
    st.fixed_dictionaries(
        {
            "type": st.just("llm-judge"),
            "params": any_of(template=any_of(messages=_chat), scores=_scores),
        }
    ),
)
_tools = st.lists(
    st.fixed_dictionaries(
        {"type": st.just("function"), "function": any_of(name=texts, parameters=odd)}
    ),
    max_size=2,
)


@st.composite
def nemo(draw: st.DrawFn) -> Repository:
    """A job with its data."""
    template = any_of(messages=st.one_of(_chat, _templates), tools=_tools, max_tokens=values)
    task = {
        "type": "chat-completion",
        "params": draw(any_of(template=st.one_of(template, _templates))),
        "metrics": draw(st.dictionaries(texts, _metrics, min_size=1, max_size=2)),
        "dataset": {"files_url": draw(st.sampled_from(("d.jsonl", "hf://datasets/a/b")))},
    }
    config = {"type": "custom", "tasks": {draw(texts): task}}
    endpoint = draw(
        any_of(url=st.sampled_from(("http://h/v1", "x")), model_id=texts, api_key=texts)
    )
    rows = lists_of(
        st.fixed_dictionaries({"a": odd}, optional={"b": odd, "output": odd, "a b": odd})
    )
    files = {
        "job.json": _document({"config": config, "target": {"model": {"api_endpoint": endpoint}}})
    }
    if draw(st.booleans()):
        files["d.jsonl"] = _lines(draw(rows))
    return files


# --- LangBiTe -----------------------------------------------------------------------------

_predictions = st.one_of(
    st.fixed_dictionaries(
        {
            "operation": st.sampled_from(
                ("equal", "different", "notIncludesAny", "allEqualExpected")
            ),
            "expected_value": st.one_of(texts, st.lists(texts, max_size=2)),
        }
    ),
    st.fixed_dictionaries({"operation": st.just("allSameValue"), "key": texts}),
)
_cells = any_of(
    task_prefix=texts,
    output_formatting=texts,
    prompt_id=texts,
)


@st.composite
def langbite(draw: st.DrawFn) -> Repository:
    """A library with a requirements model that selects all of it."""
    value = draw(lists_of(st.tuples(texts, _cells, _predictions)))
    library = [
        prompt(
            f"{text} {{PET}}",
            **cells,
            oracle="same value" if "key" in oracle else "expected value",
            oracle_prediction=oracle,
        )
        for text, cells, oracle in value
    ]
    communities = draw(
        st.one_of(
            st.fixed_dictionaries({"en_us": st.lists(texts, max_size=3)}),
            st.just({"en_us": ["cats", "dogs"]}),
        )
    )
    expected = requirement(communities=communities, delta=draw(st.sampled_from((0, 0.02, 1))))
    scenario = model(expected, useLLMEval=draw(st.booleans()))
    if draw(st.booleans()):
        library_file = {"prompts.json": _document({"input_language": "en_us", "prompts": library})}
    else:
        library_file = {"prompts_en_us.csv": table(*library)}
    return {**library_file, "model.json": _document(scenario)}


# --- LVE ----------------------------------------------------------------------------------

_lve_messages = lists_of(
    st.fixed_dictionaries(
        {"content": st.one_of(texts, texts.map(lambda text: text + " {a}"))},
        optional={"role": st.sampled_from(("user", "system", "assistant"))},
    )
)
_checkers = st.one_of(
    st.just({"checker_name": "RefuseChecker"}),
    st.fixed_dictionaries({"checker_name": texts}, optional={"x": odd}),
    st.fixed_dictionaries(
        {
            "checker_name": st.just("LambdaChecker"),
            "func": st.one_of(texts, st.just("lambda r: 'a' in r")),
        }
    ),
    odd,
)
_prompts = st.one_of(
    any_of(prompt=_lve_messages),
    st.just({"prompt_file": "test.prompt"}),
    st.fixed_dictionaries(
        {
            "multi_run_prompt": lists_of(
                st.fixed_dictionaries(
                    {"prompt": _lve_messages}, optional={"repetitions": st.integers(0, 2)}
                )
            )
        }
    ),
)


@st.composite
def lve(draw: st.DrawFn) -> Repository:
    """A repository with a test and its instances."""
    fields = draw(_prompts)
    fields |= draw(any_of(checker_args=_checkers, prompt_parameters=odd, tags=odd, model_args=odd))
    rows = st.lists(
        st.fixed_dictionaries(
            {"args": st.one_of(st.fixed_dictionaries({"a": values}), odd), "response": odd},
            optional={"run_info": any_of(timestamp=texts), "is_safe": values},
        ),
        max_size=3,
    )
    folder = "repository/trust/colours/acme--m1"
    return {
        f"{folder}/test.json": _document(definition(**fields)),
        f"{folder}/test.prompt": draw(texts),
        f"{folder}/instances/all.jsonl": _lines(draw(rows)),
    }


# --- promptfoo ----------------------------------------------------------------------------

_ASSERTS = (
    *("equals", "contains", "icontains", "contains-any", "regex", "is-json", "starts-with", "cost"),
    *(
        "latency",
        "similar",
        "llm-rubric",
        "javascript",
        "levenshtein",
        "rouge-n",
        "x",
        "not-equals",
    ),
    *("is-valid-openai-tools-call", "contains-json", "f-score", "model-graded-closedqa"),
)
ASSERTIONS = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from(_ASSERTS)},
        optional={"value": odd, "threshold": values, "weight": values},
    ),
    max_size=2,
)
_tests = st.lists(
    any_of(
        **{
            "vars": st.dictionaries(words, values, max_size=2),
            "assert": ASSERTIONS,
            "description": odd,
        }
    ),
    max_size=3,
)


@st.composite
def promptfoo(draw: st.DrawFn) -> Repository:
    """A configuration."""
    prompts = st.one_of(texts, texts.map(lambda text: text + " {{a}}"))
    config = {
        "prompts": draw(st.one_of(lists_of(prompts), prompts)),
        "tests": draw(_tests),
        **draw(
            any_of(defaultTest=any_of(vars=st.dictionaries(words, values, max_size=1)), tags=odd)
        ),
    }
    return {"promptfooconfig.yaml": _document(config)}


REPOSITORIES: dict[str, st.SearchStrategy[Repository]] = {
    "lve": lve(),
    "langbite": langbite(),
    "openai-evals": openai_evals(),
    "evalsone": evalsone,
    "nemo": nemo(),
    "promptfoo": promptfoo(),
}

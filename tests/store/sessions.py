"""Versions and facts to store."""

from __future__ import annotations

from typing import Any

from evalstore.core import hashing
from evalstore.core.runs import Run, restore_run
from evalstore.core.values import (
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
from evalstore.store import Store
from evalstore.store.trees.tree_nodes import build_tree


def versions(*descriptions: tuple[str, dict[str, Any]]) -> dict[str, tuple[str, str]]:
    """Contents by id, as `Store.ensure_versions` takes them."""
    contents = {}
    for kind, description in descriptions:
        id, content = hashing.identify(description)
        contents[id] = (kind, content)
    return contents


def a_test(text: str = "Hi", **fields: Any) -> dict[str, tuple[str, str]]:
    """A test version with one user message."""
    version = TestVersion((Message("user", (Text(text),)),), **fields)
    return versions(("test", hashing.describe_test(version)))


def id_of(description: dict[str, Any]) -> str:
    """The id of a description."""
    return hashing.identify(description)[0]


def a_session(question: Question, started: int = 1, **fields: Any) -> tuple[str, Session, str]:
    """A session with its id and its content."""
    session = Session(question, (Reply("an answer"),), started, **{"nonce": "n", **fields})
    return session_row(session)


def session_row(session: Session) -> tuple[str, Session, str]:
    """A session with its id and its content."""
    id, content = hashing.identify(hashing.describe_session(session))
    return id, session, content


def an_evaluation(session: str, started: int = 1, **fields: Any) -> tuple[str, Evaluation, str]:
    """An evaluation with its id and its content."""
    settings = {
        "evaluation": "0" * 32,
        "evaluator": "1" * 32,
        "verdict": "pass",
        "nonce": "n",
        **fields,
    }
    evaluation = Evaluation((session,), started=started, **settings)
    id, content = hashing.identify(hashing.describe_evaluation_result(evaluation))
    return id, evaluation, content


def a_run(started: int, **fields: Any) -> Run:
    """A run; without more, one whose trees are not stored."""
    return restore_run("", run_content(started, **fields))


def run_content(started: int, **fields: Any) -> dict[str, Any]:
    """The content of a run; without more, of one whose trees are not stored."""
    settings = {"snapshot": "2" * 32, "results": "3" * 32, **fields}
    words = dict.fromkeys(("pass", "fail", "undecided", "error", "pending"), 0)
    counts = {"asked": 1, "judged": 1, "reused": 0, "verdicts": words}
    return hashing.describe(
        "run", started=started, ended=started + 1, status="complete", **counts, **settings
    )


def fill(store: Store) -> None:
    """Store something of every kind, with every reference there."""
    file = FileVersion("image/png", b"\x89PNG\x00\xff")
    tool, schema = ToolVersion("look", "Look \ufffd.", {"type": "object"}), {"type": "object"}
    prompt = PromptVersion((Message("system", (Text("Be brief."),)),))
    strict = PromptVersion((Message("user", (Text("{{_actualResponse}}"),)),), ("_evaluator",))
    model = ModelVersion("fake", "m")
    file_id, tool_id = id_of(hashing.describe_file(file)), id_of(hashing.describe_tool(tool))
    schema_id, model_id = (
        id_of(hashing.describe_schema(schema)),
        id_of(hashing.describe_model(model)),
    )
    prompt_id, strict_id = (id_of(hashing.describe_prompt(version)) for version in (prompt, strict))
    shown = (Text("Look: "), FileRef("a.png", "image/png", file_id))
    test = TestVersion((Message("user", shown),), tools=(tool_id,))
    structured = TestVersion((Message("user", (Text("ü"),)),), schema=schema_id)
    messages = EvaluationVersion(
        shown, ({"type": "jsonSchema", "revision": 2, "schema": schema_id},)
    )
    evaluator = Evaluator(model_id, strict_id, 0.5)
    test_id, other_id = id_of(hashing.describe_test(test)), id_of(hashing.describe_test(structured))
    told_id = id_of(hashing.describe_evaluation(messages))
    evaluator_id = id_of(hashing.describe_evaluator(evaluator))
    cases = CaseFile(
        (
            Case("a", "k1", (test_id,), told_id, ("t",), (prompt_id, None)),
            Case("b", "k2", (other_id,), told_id, (), (None,)),
        )
    )
    node = id_of(hashing.describe_case_file(cases))
    snapshot, tree = build_tree({f"tests/{n}.md": node for n in range(20)})
    question = Question(test_id, prompt_id, model_id, 0.5)
    reply = Reply("yes", (ToolCall("look", {"at": 1}),), usage=Usage(3, 4))
    first = session_row(Session(question, (reply,), 5, "n1", Cost(0.5, {"source": "x"}), 100))
    second = session_row(Session(Question(other_id, None, model_id, 0), (reply,), 6, "n2"))
    judged = an_evaluation(
        first[0],
        7,
        evaluation=told_id,
        evaluator=evaluator_id,
        score=0.25,
        feedback="ok",
        label="l",
    )
    results = hashing.describe(
        "results",
        cases=node,
        cells=[{"case": 0, "model": "m", "sessions": [first[0]], "evaluations": [judged[0]]}],
    )
    results_id = id_of(results)
    root, result_tree = build_tree({"tests/1.md": results_id})
    store.ensure_versions(
        versions(
            ("tool", hashing.describe_tool(tool)),
            ("schema", hashing.describe_schema(schema)),
            ("prompt", hashing.describe_prompt(prompt)),
            ("prompt", hashing.describe_prompt(strict)),
            ("model", hashing.describe_model(model)),
            ("test", hashing.describe_test(test)),
            ("test", hashing.describe_test(structured)),
            ("evaluation", hashing.describe_evaluation(messages)),
            ("evaluator", hashing.describe_evaluator(evaluator)),
            ("cases", hashing.describe_case_file(cases)),
            ("results", results),
        )
        | tree
        | result_tree,
        {file_id: file},
    )
    failure = Failure(
        id_of(hashing.describe_question(question)), None, None, "timeout", "late", 8, "n"
    )
    store.record(
        {id: content for id, _, content in (first, second)},
        {judged[0]: judged[2]},
        [failure],
    )
    store.record_run(
        a_run(
            9,
            nonce="n",
            snapshot=snapshot,
            results=root,
            candidates=[{"id": "m", "model": model_id}],
            evaluators=[{"id": "m", "evaluator": evaluator_id}],
        )
    )

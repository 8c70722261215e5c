"""Workspaces that are edited and run by hand: each shows what others do not."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tools.oracle.builder import Build, Builder


def scripted(id: str, *responses: Mapping[str, object], **fields: object) -> dict[str, str]:
    """The file of a model that answers from a script."""
    model = {"id": id, "provider": "scripted", **fields, "responses": responses}
    return {f"models/{id}.yaml": json.dumps(model, ensure_ascii=False, indent=1) + "\n"}


def written_test(question: str, expected: str, **fields: object) -> str:
    """A test with one question; what is expected is an instruction, or a block of checks."""
    head = "".join(f"{name}: {json.dumps(value)}\n" for name, value in fields.items())
    head = f"---\n{head}---\n" if head else ""
    return f"{head}# User\n\n{question}\n\n---\n\n{expected}\n"


def checks(*lines: str) -> str:
    """A block of checks."""
    return "~~~checks\n" + "".join(f"- {line}\n" for line in lines) + "~~~"


def settings(**fields: object) -> dict[str, str]:
    """The settings file."""
    return {"evalstore.yaml": json.dumps(fields, indent=1) + "\n"}


def example(b: Builder) -> None:
    """The example after twelve edits, with partial runs, labels and an edit that is not run."""
    b.call("init", "--example", ".")
    b.run("--message", "first")
    b.edit("tests/saturday.md", "bikes back", "bikes back and do you rent helmets")
    b.run("--message", "helmets on Saturday")
    b.edit("tests/saturday.md", " and do you rent helmets", "")
    b.run("tests/saturday.md")
    b.edit("prompts/brief.md", "rief", "rief and exact")
    b.run("-m", "scripted/hasty")
    b.run()
    b.call("label", "tests/invoice.md", "pass", "-m", "fine", "--as", "Ada", "--model", HASTY)
    b.call("label", "tests/late.md", "fail", "--as", "Bo", "--all", "--model", HASTY)
    b.rename("tests/ride.md", "tests/tours/tour.md")
    b.copy("tests/price.md", "tests/price-copy.md")
    b.run("--message", "a tour, and a copy")
    b.remove("tests/complaint.md")
    b.run("-r", "2", "tests/invoice.md")
    b.edit("tests/greeting.md", "at most ten words", "at most five words")
    b.edit("tests/deposit.md", "max: 20,", "max: 60,")
    b.run("-k", "greeting or deposit")
    b.run("--refresh", "--sample", "5", "--seed", "3")
    b.edit("tests/greeting.md", "English", "Italian")
    b.run("--lf")
    b.edit("models/hasty.yaml", "euros", "EUR")
    b.run("-t", "policy")
    b.call("label", "tests/late.md", "--remove", "--as", "Bo", "--all", "--model", HASTY)
    b.edit("tests/late.md", "tags: [policy, numbers]", "tags: [policy, money]")
    b.run()
    b.edit("tests/data/questions.jsonl", "Sundays", "Mondays")
    b.edit("tests/price.md", "rent a", "hire a")


HASTY = "scripted/hasty"
"""The candidate of the example that fails."""


def votes(b: Builder) -> None:
    """Several attempts, two judges that disagree, three votes each, rules, labels, two prompts."""
    b.write(
        settings(
            candidates=["careful", {"id": "hasty", "temperature": 0.5}, "hasty"],
            evaluators=["strict", "lenient"],
            attempts=3,
            evaluationsPerEvaluator=2,
            thresholds=[{"passRate": 0.5, "by": ["tag", "model"]}],
            analysisQueries=[{"description": "short", "systemPrompts": ["short"]}],
        )
        | scripted("careful", *alternating("The harbour.", "The old harbour.", "A museum."))
        | scripted("hasty", *alternating("A museum.", "The harbour."), costs=[{"costPerCall": 2}])
        | scripted(
            "strict",
            {"when": "(?s)response.*A museum", "answer": verdict(False, "no harbour")},
            {"when": "(?s)response.*old", "answer": "Hm."},
            {"answer": verdict(True)},
        )
        | scripted("lenient", {"answer": verdict(True, "good enough")})
        | {"prompts/short.md": "Be short.\n", "prompts/polite.md": "Be polite.\n"}
    )
    for n in range(8):
        prompts = {"systemPrompts": ["short", "polite", None]} if n % 3 == 0 else {}
        expected = "It must name the harbour." + (f"\n\n{checks('notEmpty')}" if n % 2 else "")
        question = f"What is worth seeing in town {n}?"
        b.write(
            {f"tests/t{n}.md": written_test(question, expected, tags=["abc"[n % 3]], **prompts)}
        )
    b.run()
    b.edit("tests/t1.md", "the harbour", "the harbour and say why")
    b.run("-J", "strict")
    b.edit("prompts/short.md", "short", "very short")
    b.run("-t", "a")
    b.edit("models/hasty.yaml", "The harbour.", "Nothing at all.")
    b.run("-r", "4", "-m", "hasty@default")
    b.run()
    b.call("label", "tests/t2.md", "fail", "--model", "careful", "--all", "--as", "Ada")
    b.edit("evalstore.yaml", '"attempts": 3', '"attempts": 2,\n "verdict": "all"')
    b.run()
    b.edit("evalstore.yaml", '"all"', '">= 0.7"')
    b.rename("prompts/polite.md", "prompts/kind.md")
    for n in (0, 3, 6):
        b.edit(f"tests/t{n}.md", '"polite"', '"kind"')
    b.run("tests/t0.md", "tests/t3.md")
    b.edit("tests/t5.md", "town 5", "town 55")


def alternating(*answers: str) -> list[Mapping[str, object]]:
    """Answers that are given in turn to a question and its repetitions."""
    return [
        *({"when": f"town {n % 8}", "answer": text, "times": 1} for n, text in turns(answers)),
        {"answer": answers[-1]},
    ]


def turns(answers: Sequence[str]) -> list[tuple[int, str]]:
    """Twenty-four answers with their numbers, each number differently."""
    return [(n, answers[(n * n + n // 8) % len(answers)]) for n in range(24)]


def verdict(passed: bool, feedback: str = "") -> Mapping[str, object]:
    """What a judge replies."""
    return {"pass": passed, "feedback": feedback}


def conversations(b: Builder) -> None:
    """Turns, conversations with repetitions, groups, checks of all scopes, and recorded answers."""
    b.write(
        settings(candidates=["one", "two"], evaluators=["judge"])
        | scripted(
            "one",
            {"when": "months", "answer": "5", "times": 3},
            {"when": "months", "answer": "7"},
            {"when": "(?s)a man", "answer": {"salary": 4100}},
            {"when": "salary", "answer": {"salary": 4000}},
            {"when": "(?s)capital.*And of Sweden", "answer": "Stockholm"},
            {"answer": "Oslo"},
        )
        | scripted(
            "two",
            {"when": "months", "answer": "6"},
            {"when": "(?s)an engineer.*a man|a man.*an engineer", "answer": {"salary": 9000}},
            {"when": "salary", "answer": {"salary": 4000}},
            {"answer": "Göteborg 🚲 <b>&amp;</b> | `x`"},
        )
        | scripted(
            "judge", {"when": "(?s)Göteborg", "answer": verdict(False, "no | <i>capital</i>")}
        )
    )
    b.edit("models/judge.yaml", "\n ]", ',\n  {"answer": {"pass": true}}\n ]')
    b.write(
        {
            "tests/turns.md": "# User\n\nWhat is the capital of Norway?\n\n# Assistant @first\n\n"
            "# User\n\nAnd of Sweden?\n\n---\n\nTwo capitals: {{first}}\n\n"
            + checks('{contains: Oslo, actual: "{{first}}"}'),
            "tests/steady.md": "I grow lettuce.\n\n# ▶ plain ×2\n\n# User\n\nHow many months "
            "outdoors?\n\n# ▶ glass\n\n# User\n\nHow many months in a glass house?\n\n---\n\n"
            + checks("regex: '\\d'", "{expr: 'plain[0] == plain[1]', scope: case}"),
            "tests/salary.md": "---\ngroup: '{{job}}'\nreplacements:\n  job: [a nurse, an engineer]"
            "\n  person: [a woman, a man]\ntags: [_json_mode]\n---\n# User\n\nWhich salary do I ask"
            " for, as {{job}} and {{person}}? Answer as JSON.\n\n---\n\n"
            + checks("{allSame: salary, max: 1000, scope: group}"),
            "tests/often.md": written_test(
                "Name a city.", checks("{allEqual: {scope: case}}"), repetitions=2
            ),
            "tests/said.md": written_test(
                "Where?", "It says where.", answer="In Paris, of course."
            ),
        }
    )
    b.run()
    b.edit("tests/turns.md", "And of Sweden", "And of Denmark")
    b.edit("tests/salary.md", "a woman, a man", "a woman, a man, a person")
    b.run("-m", "two")
    b.edit("tests/often.md", "2", "3")
    b.edit("tests/steady.md", "×2", "×3")
    b.run()
    b.edit("tests/said.md", "In Paris", "In Lyon")
    b.edit("tests/salary.md", "max: 1000", "max: 100")
    b.run("--changed")
    b.call(
        "label", "tests/turns.md", "pass", "--model", "two", "--as", "Ada", "-m", "Göteborg | ok"
    )
    b.run()
    b.edit("tests/steady.md", "outdoors", "outside")


def failures(b: Builder) -> None:
    """A model that fails in several ways, a judge that fails or makes no sense, and repairs."""
    b.write(
        settings(candidates=["good", "bad"], evaluators=["judge"], retries=0, maxTestOutputTokens=4)
        | scripted("good", {"when": "place 3", "answer": "a" * 60}, {"answer": "A fine place."})
        | scripted(
            "bad",
            {"when": "place [01]\\b", "error": {"status": 500, "message": "the server is on fire"}},
            {"when": "place 2", "error": {"status": 401, "message": "no key"}},
            {"when": "place 3", "error": {"kind": "context", "message": "too long"}},
            {"when": "place 4", "answer": "", "finishReason": "content_filter"},
            {"answer": "A bad place."},
        )
        | scripted(
            "judge",
            {"when": "(?s)place 5", "error": {"status": 429, "message": "slow down"}},
            {"when": "(?s)place 6", "answer": "I cannot say."},
            {"when": "(?s)response.*bad", "answer": verdict(False, "bad")},
            {"answer": verdict(True)},
        )
        | {f"tests/p{n}.md": written_test(f"How is place {n}?", f"Of place {n}.") for n in range(9)}
    )
    b.run()
    b.edit("models/bad.yaml", "on fire", "under water")
    b.edit("models/judge.yaml", "I cannot say.", "Still not.")
    b.run("--retry-errors")
    b.edit("models/judge.yaml", "place 5", "place 50")
    b.run("--lf")
    b.edit("evalstore.yaml", '"maxTestOutputTokens": 4', '"maxTestOutputTokens": 40')
    b.run("-x", "--limit", "5")
    b.call("run", "--quiet", "--yes", "--max-cost", "0")
    b.edit("models/bad.yaml", '"status": 500', '"status": 503')
    b.run()
    b.edit("tests/p8.md", "How", "Where")


def edits(b: Builder) -> None:
    """Forty files in three folders after eight rounds of random edits and commits, partial runs."""
    chance = Random(11)
    b.write(settings(candidates=["careful", "hasty"], evaluators=[]))
    b.write(numbers("careful", 17) | numbers("hasty", 3))
    text = {
        n: written_test(f"What is number {n} ?", checks("contains: right"), tags=[f"t{n % 4}"])
        for n in range(40)
    }
    first = dict(text)
    paths = {n: f"tests/{'abc'[n % 3]}/f{n}.md" for n in text}
    b.write({paths[n]: text[n] for n in text} | {".gitignore": ".evalstore/\n"})
    b.commit()
    b.run()
    for _ in range(8):
        for n in chance.sample(sorted(text), 6):
            kind = chance.choice(("question", "check", "tag", "rename", "undo", "remove"))
            if kind in ("rename", "remove"):
                (b.folder / paths[n]).unlink(missing_ok=True)
                paths[n] = paths[n].replace(".md", "r.md")
            if kind == "question":
                text[n] = text[n].replace("What is", "Tell me what is")
            elif kind == "check":
                text[n] = text[n].replace("- contains: right", "- contains: number\n- notEmpty")
            elif kind == "tag":
                text[n] = text[n].replace('["t', f'["x{chance.randrange(3)}", "t')
            elif kind == "undo":
                text[n] = first[n]
            if kind != "remove":
                b.write({paths[n]: text[n]})
        if chance.random() < 0.7:
            b.commit()
        b.run(*chance.choice(([], ["-m", "hasty"], ["tests/a"], ["--lf"], ["-t", "t1"])))


def rows(count: int) -> Build:
    """A dataset of many rows: rows edited, removed and added, a check added, partial runs."""

    def build(b: Builder) -> None:
        chance = Random(7)
        data = [
            {"n": n, "city": f"town {n % 40}", "kind": chance.choice("xyz")} for n in range(count)
        ]
        b.write(settings(candidates=["careful", "hasty"], evaluators=[]))
        b.write(numbers("careful", 97) | numbers("hasty", 13))
        question = "In {{ item.city }} ({{ item.kind }}), what is number {{ item.n }} ?"
        b.write(
            {
                "tests/data.jsonl": as_lines(data),
                "tests/rows.md": written_test(
                    question, checks("contains: right"), dataset="data.jsonl", tags=["rows"]
                ),
                "tests/single.md": written_test("Say number 1 .", checks("contains: number")),
            }
        )
        b.run()
        data[count // 2]["city"] = "a city"
        b.write({"tests/data.jsonl": as_lines(data)})
        b.run()
        b.edit("tests/rows.md", "- contains: right", "- contains: right\n- length: {max: 24}")
        b.run("--limit", str(count // 3))
        b.run()
        del data[5:25]
        data.insert(100, {"n": 99_999, "city": "a new town", "kind": "x"})
        b.write({"tests/data.jsonl": as_lines(data)})
        b.rename("tests/single.md", "tests/alone.md")
        b.run("-m", "hasty")
        b.run()
        b.edit("tests/rows.md", "what is number", "what is the number")

    return build


def numbers(id: str, share: int) -> dict[str, str]:
    """A model that does not know each so-many-th number; what it says wrongly is longer."""
    wrong = "|".join(str(n) for n in range(0, 2000, share))
    return scripted(
        id,
        {"when": f"number ({wrong}) ", "answer": "I do not know this number"},
        {"answer": "The number is right"},
    )


def as_lines(data: Sequence[Mapping[str, object]]) -> str:
    """Rows as JSON Lines."""
    return "".join(json.dumps(row) + "\n" for row in data)


HISTORIES: dict[str, Build] = {
    "example": example,
    "votes": votes,
    "conversations": conversations,
    "failures": failures,
    "edits": edits,
    "rows-300": rows(300),
}
"""By the names of the workspaces."""

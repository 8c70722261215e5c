"""Attack: random edits of a workspace, each followed by a run.

What the incremental run reports must be what a run from scratch reports. The server answers
with a hash of what it was sent, so an answer that belongs to another request is found.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from tests.builders import tree
from tests.endpoint import Answer, completion
from tests.hostile.campaign import stores
from tests.hostile.campaign.judge_model import code_of, verdict
from tests.hostile.campaign.trial import Attack, Trial
from tests.hostile.campaign.workspaces import QUICK, example_files, loopback

EDITS = 4
_NONCE = re.compile(r"(?:begin|end) of the [a-z ]+ ([0-9a-f]{6,})")
_WORD = re.compile(r"\b\w+\b")
WORDS = ("blue", "Oslo", "7", "not", "tandem", "euros", "0.5", "true", "null", "{{bike}}")
FIELDS = (
    "attempts: 2",
    "candidatesTemperature: 0.5",
    "evaluationsPerEvaluator: 2",
    "evaluatorsTemperature: 0.25",
    "maxTestOutputTokens: 50",
    "verdict: any",
    "prohibitedTags: [numbers]",
)
HEADERS = (
    "temperature: 1",
    "tags: [_json_mode]",
    "tags: [other]",
    "systemPrompts: [brief]",
    "systemPrompts: [friendly, null]",
    "options: {temperature: 0}",
    "options: {topP: 0.5}",
    "attempts: 2",
    "description: anything",
    "availableTools: [availability]",
)


def attempt(trial: Trial) -> None:
    """Edit and run, and compare with a run from scratch each time."""
    bodies: Counter[str] = Counter()
    trial.server.reply = lambda body: _reply(body, bodies)
    files = _files(trial)
    tree(trial.workspace, files)
    history = {name: [content] for name, content in files.items()}
    expected: Counter[str] = Counter()
    for number in range(2 if trial.is_short else EDITS + 1):
        before = dict(files)
        if number:
            _edit(trial.chance, files, history)
            _write(trial.workspace, before, files)
            if trial.run("check").code == 2:
                _write(trial.workspace, files, before)
                files = before
                trial.figures["edits refused"] += 1
                continue
        paid = bodies.copy()
        report = trial.document("run", limit=60, allowed={0, 1, 2, 3, 5})
        if not report:
            continue
        trial.figures["edits"] += bool(number)
        trial.figures["answers reused"] += report["reused"]
        paid = bodies - paid
        known = bodies.copy()
        scratch = trial.document("run", "--store", f"scratch{number}.db", limit=60)
        expected |= bodies - known
        bodies = known
        needless = sum(min(count, (known - expected)[body]) for body, count in paid.items())
        trial.figures["needless calls"] += needless
        _compare(trial, report, scratch, f"scratch{number}.db")
        if trial.document("status").get("items"):
            trial.note("the plan is not empty after a run")
    if trial.run("fsck").code:
        trial.note("fsck finds problems")


def _compare(trial: Trial, report: dict[str, Any], scratch: dict[str, Any], store: str) -> None:
    ours = _results(report, stores.sessions(trial))
    theirs = _results(scratch, stores.sessions(trial, trial.workspace / store))
    for key in sorted(ours.keys() | theirs.keys()):
        if ours.get(key) != theirs.get(key):
            trial.note(
                "an incremental run differs from one from scratch",
                f"{key}: {ours.get(key)} instead of {theirs.get(key)}",
            )


def _results(report: dict[str, Any], texts: dict[str, list[str]]) -> dict[str, Any]:
    return {
        json.dumps([case[name] for name in ("file", "row", "prompt", "model")]): (
            case["verdict"],
            case["score"],
            case["feedback"],
            [texts.get(id) for id in case["sessions"]],
        )
        for case in report.get("cases", [])
    }


def _reply(body: dict[str, Any], bodies: Counter[str]) -> Answer:
    """An answer that only this body has."""
    # A limit of tokens is not a part of a question: an answer counts until it is raised.
    shown = {name: value for name, value in body.items() if not name.startswith("max_")}
    # 0 and 0.0 are the same temperature, so the same question.
    text = json.dumps(json.loads(json.dumps(shown), parse_int=float), sort_keys=True)
    for random_word in {*_NONCE.findall(text), code_of(body) or ""} - {""}:
        text = text.replace(random_word, "")
    digest = hashlib.sha256(text.encode()).hexdigest()
    number = int(digest[:6], 16)
    if body["model"] == "judge":
        if "say how it sounds" in text:
            return completion({"content": f"{digest}\n{('kind', 'correct', 'cold')[number % 3]}"})
        score = (number % 8 + 1) / 10
        output = verdict(body, number % 2 == 0, feedback=digest, score=score)
        return completion({"content": output})
    bodies[digest] += 1
    if "deposit" in text:
        return completion({"content": json.dumps({"deposit": number % 50, "id": digest})})
    if "response_format" in body:
        booking = {"name": digest, "bike": "tandem", "days": number % 5, "from": "2026-06-14"}
        return completion({"content": json.dumps(booking)})
    return completion({"content": f"Answer {digest}: {number % 200} euros, cargo bike."})


def _files(trial: Trial) -> dict[str, bytes]:
    """The example, with models on the server."""
    files = {name: content for name, content in example_files().items() if "README" not in name}
    for name in ("careful", "hasty", "judge"):
        text = f"id: scripted/{name}\nprovider: loopback\nproviderModelCode: {name}\n"
        files[f"models/{name}.yaml"] = text.encode()
    added = {name: loopback(trial)[name].encode() for name in ("providers/loopback.yaml", ".env")}
    quick = "".join(f"{name}: {value}\n" for name, value in {**QUICK, "timeout": 60}.items())
    files["evalstore.yaml"] += f"\n{quick}".encode()
    return {**files, **added}


def _write(root: Path, before: dict[str, bytes], files: dict[str, bytes]) -> None:
    for name in before.keys() - files.keys():
        (root / name).unlink()
    tree(root, {name: data for name, data in files.items() if before.get(name) != data})


def _edit(chance: Random, files: dict[str, bytes], history: dict[str, list[bytes]]) -> None:
    """Change, add, rename or remove a file."""
    kind = chance.random()
    editable = sorted(name for name in files if not name.startswith(("providers/", ".env")))
    tests = [name for name in editable if name.endswith(".md") and name.startswith("tests/")]
    name = chance.choice(tests if chance.random() < 0.6 else editable)
    if kind < 0.08 and len(tests) > 4:
        del files[chance.choice(tests)]
    elif kind < 0.16:
        other = chance.choice(tests)
        files[f"tests/new{chance.randrange(99)}.md"] = files[other]
        if kind < 0.12:
            del files[other]
    elif kind < 0.3 and len(history.get(name, ())) > 1:
        files[name] = chance.choice(history[name])
    elif kind < 0.45:
        line = chance.choice(FIELDS).encode()
        files["evalstore.yaml"] = _toggled(files["evalstore.yaml"], line)
    elif kind < 0.6:
        other = chance.choice(tests)
        head = chance.choice(HEADERS).encode()
        files[other] = files[other].replace(b"---\n", b"---\n" + head + b"\n", 1)
    else:
        files[name] = _changed(chance, files[name])
    for name, content in files.items():
        if content not in history.setdefault(name, []):
            history[name].append(content)


def _toggled(content: bytes, line: bytes) -> bytes:
    lines = content.splitlines()
    lines = [item for item in lines if item != line] if line in lines else [*lines, line]
    return b"\n".join(lines) + b"\n"


def _changed(chance: Random, content: bytes) -> bytes:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return content + chance.randbytes(1)
    words = list(_WORD.finditer(text))
    word = chance.choice(words) if words else None
    lines = text.splitlines(keepends=True) or [""]
    number = chance.randrange(len(lines))
    if word and chance.random() < 0.6:
        return (text[: word.start()] + chance.choice(WORDS) + text[word.end() :]).encode()
    forms = (
        "".join(lines[:number] + lines[number + 1 :]),
        "".join([*lines[:number], lines[number], *lines[number:]]),
        "".join([*lines[:number], "<!-- a comment -->\n", *lines[number:]]),
        text.replace("\n", "\r\n"),
        text + "\n",
        text + "More.\n",
    )
    return chance.choice(forms).encode()


ATTACK = Attack(
    "edits",
    "identity: incremental runs against runs from scratch",
    attempt,
    share=2,
    is_for_servers=True,
)

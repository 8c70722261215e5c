"""Attack: a server whose replies and headers are wrong, for candidates and judges.

The truth is known: the judge says pass for even numbers and fail for odd ones, so an odd
number must never pass, whatever else happens on the way.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from random import Random
from typing import Any

from tests.builders import tree
from tests.endpoint import FAULTS, Answer, completion
from tests.hostile.campaign import generate, mutate, stores
from tests.hostile.campaign.judge_model import verdict
from tests.hostile.campaign.trial import Attack, Trial
from tests.hostile.campaign.workspaces import loopback, numbered

QUESTIONS = 8
LIMIT = 40
"""Seconds for a run, with its retries."""
_NUMBER = re.compile(r"(?:Question|number) (\d+)")
_DATE = "Wed, 21 Oct {} 07:28:00 GMT"
WAITS = ("0", "-1", "1e999", "nan", "9" * 400, "soon", "", _DATE.format(2015))
NASTY: dict[str, Answer] = {
    "retry-after-far-year": Answer(429, {}, {"retry-after": _DATE.format("9" * 20)}),
    "retry-after-far-offset": Answer(429, {}, {"retry-after": "21 Oct 2015 07:28:00 +99999999"}),
    "retry-after-huge": Answer(429, {}, {"retry-after": "9" * 400}),
    "finish-reason-error": completion({"content": "half of an ans"}, finish="error"),
    "content-number": completion({"content": 5}),
    "content-object": completion({"content": {"text": "a"}}),
    "usage-texts": completion({"content": "fine"}, usage={"prompt_tokens": "many"}),
    "usage-huge": completion({"content": "fine"}, usage={"prompt_tokens": 10**400}),
    "usage-negative": completion({"content": "fine"}, usage={"completion_tokens": -5}),
    "nested": Answer(body=b"[" * 100_000),
    "long-header": Answer(200, {}, {"x-request-id": "a" * 100_000}),
    "bad-encoding": Answer(200, b"\x1f\x8bnope", {"content-encoding": "gzip"}),
    "latin-1": Answer(200, '{"choices": "é"}'.encode("latin-1")),
    "redirect": Answer(302, {}, {"location": "http://127.0.0.1:9/"}),
    "surrogate": completion({"content": "\ud800"}),
    "control": completion({"content": "\x1b[31m\x00\u202e"}),
}


class HostileServer:
    """Answers right, but for a share of the calls."""

    def __init__(self, trial: Trial, *, share: float, nasty: Answer | None) -> None:
        self.share, self.nasty = share, nasty
        self._seed = trial.chance.getrandbits(32)
        self._tries: Counter[tuple[str, int]] = Counter()
        self._lock = threading.Lock()
        self.complete: set[str] = set()
        """The answers that were sent as a whole."""

    def reply(self, body: dict[str, Any]) -> Answer:
        """The answer to one request."""
        judging = body.get("model") == "judge"
        actual = _NUMBER.search(json.dumps(body["messages"]))
        number = int(actual[1]) if actual else 0
        text = f"Answer {number}."
        if judging:
            text = verdict(body, number % 2 == 0, feedback=f"judged {number}")
        answer = completion({"content": text})
        # Requests come in any order, so each try has a chance of its own.
        with self._lock:
            self._tries[body["model"], number] += 1
            tries = self._tries[body["model"], number]
        chance = Random(f"{self._seed}/{body['model']}/{number}/{tries}")
        if chance.random() < self.share:
            answer = self.nasty or _spoiled(chance, answer)
        if not judging:
            self._remember(answer)
        return answer

    def _remember(self, answer: Answer) -> None:
        """Whatever of an answer a client may take for the whole text of it."""
        if answer is FAULTS["filter"]:  # a prompt that is filtered is a refusal, which is stored
            self.complete.add("")
            return
        try:
            body = json.loads(answer.body) if isinstance(answer.body, bytes) else answer.body
            choice = body["choices"][0]
            content = choice["message"].get("content")
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
            return
        if answer.status >= 300 or answer.cut or choice.get("finish_reason") == "error":
            return
        if content is None:
            content = ""
        if isinstance(content, list):
            texts = [item.get("text") if isinstance(item, dict) else item for item in content]
            content = "".join(map(str, texts))
        if isinstance(content, str):
            # Half a surrogate pair cannot be stored, and blanks around an answer are left out.
            whole = content.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            self.complete.add(whole.strip())


def _spoiled(chance: Random, right: Answer) -> Answer:
    """A fault, or a right answer with something wrong in it."""
    form = chance.random()
    if form < 0.35:
        names = [fault for fault in FAULTS if fault not in ("hang", "huge", "quota")]
        return FAULTS[chance.choice([*names, "hang"])]
    if form < 0.7:
        body = mutate.document(chance, right.body)
        return Answer(body=generate.text_of(body).encode("utf-8", "surrogatepass"))
    if form < 0.85:
        raw = json.dumps(right.body).encode()
        return Answer(chance.choice((200, 201, 206)), mutate.raw(chance, raw))
    headers = {"retry-after": chance.choice(WAITS), "x-ratelimit-reset-requests": "9" * 50}
    name = chance.choice(("retry-after", "x-ratelimit-reset-requests", "content-type"))
    return Answer(chance.choice((200, 429, 503)), right.body, {name: headers.get(name, "x/y")})


def attempt(trial: Trial) -> None:
    """Run against the hostile server, then against a right one, and compare with the truth."""
    tree(trial.workspace, {**loopback(trial, timeout=2, retries=1), **numbered(QUESTIONS)})
    share = 1 if trial.name in NASTY else trial.chance.choice((0.3, 0.6, 1))
    server = HostileServer(trial, share=share, nasty=NASTY.get(trial.name))
    trial.server.reply = server.reply
    first = trial.document("run", "-j", "8", allowed={0, 1, 3}, limit=LIMIT)
    _judge(trial, first, server)
    trial.run("log", "--failures")
    server.share = 0
    trial.server.closing.set()  # whatever hangs, ends
    trial.server.closing.clear()
    healthy = ("run", "--timeout", "60", "--retry-errors"), ("run", "--timeout", "60")
    for argv in healthy:
        last = trial.document(*argv, allowed={0, 1, 3, 5}, limit=LIMIT)
    _judge(trial, last, server)
    if last.get("status") != "complete":
        trial.note("does not recover", str(last.get("status")))
    for case in last.get("cases", []):
        truth = "fail" if _number(case) % 2 else "pass"
        if case["verdict"] not in (truth, "undecided"):
            trial.note("records a wrong verdict", f"{case['row']}: {case['verdict']}")
    if trial.run("fsck").code:
        trial.note("fsck finds problems")


def _judge(trial: Trial, report: dict[str, Any], server: HostileServer) -> None:
    """What must hold after each run."""
    trial.figures["calls"] = len(trial.server.received)
    cases = report.get("cases", [])
    for case in cases:
        if case["verdict"] == "pass" and _number(case) % 2:
            trial.note("a false pass", str(case["row"]))
    missing = [case for case in cases if case["verdict"] in ("pending", "undecided", "error")]
    if missing and report.get("gate") == "passed":
        trial.note("the gate passes with verdicts missing", f"{len(missing)} missing")
    for texts in stores.sessions(trial).values():
        if not server.complete.issuperset(texts):
            trial.note("stores a fault as an answer", repr(texts)[:200])


def _number(case: dict[str, Any]) -> int:
    actual = re.search(r"\d+", str(case["row"]))
    return int(actual[0]) if actual else 0


ATTACK = Attack(
    "servers",
    "hostile servers: replies, headers and faults",
    attempt,
    share=2,
    names=tuple(NASTY),
    is_for_servers=True,
)

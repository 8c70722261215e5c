"""`python -m benches.team_runner STORE ITEMS`: one of several programs that store the same items.

It takes, claims and stores them as a run does, 50 at a time, but asks nobody. It says `ready`,
waits for a line, and prints what it has done.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import closing

from evalstore.core import hashing
from evalstore.core.values import Question, Reply, Session, Usage
from evalstore.store import Store
from evalstore.store.events import LeaseChange
from evalstore.store.leases import Leases, OfferedItem, WorkRows
from evalstore.store.location import read_location

_AT_ONCE = 50
_ANSWER = "An answer of some length. " * 60
_BATCH, _ACCOUNT = "b" * 32, "account"


def main(url: str, items: str) -> None:
    """Store as many of the items as this program gets."""
    questions = [Question(f"{number:032x}", None, "a" * 32, 0) for number in range(int(items))]
    by_key = {hashing.question_id(question): question for question in questions}
    with closing(Store.open(read_location(url), create=True)) as store:
        leases = Leases(store)
        rows = WorkRows(store, leases, _BATCH)
        rows.offer([OfferedItem(key, _ACCOUNT) for key in by_key])
        print("ready", flush=True)
        sys.stdin.readline()
        taken = lost = stored = 0
        while True:
            keys = rows.take(_ACCOUNT, _AT_ONCE)
            if not keys:
                if not rows.is_left(_ACCOUNT):
                    break
                time.sleep(0.02)
                continue
            granted = leases.claim(keys)
            sessions = {}
            for key in granted:
                session = _answer(by_key[key])
                id, content = hashing.identify(hashing.describe_session(session))
                sessions[id] = content
            released = LeaseChange(leases.runner.id, released=sorted(granted), is_offered=True)
            store.record(sessions, leases=released)
            taken, lost, stored = (
                taken + len(keys),
                lost + len(keys) - len(granted),
                stored + len(granted),
            )
        leases.leave()
    print(json.dumps({"taken": taken, "lost": lost, "stored": stored}), flush=True)


def _answer(question: Question) -> Session:
    reply = Reply(_ANSWER, finish_reason="stop", usage=Usage(60, 300), latency=0.5)
    return Session(question, (reply,), time.time_ns() // 1000, "0" * 16)


if __name__ == "__main__":
    main(*sys.argv[1:])

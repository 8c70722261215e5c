"""`python -m benches.floor URL QUESTIONS AT_ONCE STORE`: a minimal program that stores answers.

It sends the requests of the engine's bench, as many at once, and commits the answers in batches.
It has no versions, retries, judgements or reports.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from collections.abc import Iterator
from typing import Any

import aiohttp

from benches.workspaces import load_question

_BATCH, _SECONDS = 50, 0.2


async def ask_all(url: str, questions: int, at_once: int, store: sqlite3.Connection) -> None:
    """Send every question to the endpoint, and store the answers."""
    waiting: list[tuple[int, str, str]] = []
    numbers = iter(range(questions))

    def commit() -> None:
        with store:
            store.executemany("INSERT INTO answers VALUES (?, ?, ?)", waiting)
        waiting.clear()

    async def commit_late() -> None:
        while True:
            await asyncio.sleep(_SECONDS)
            commit()

    async def work(session: aiohttp.ClientSession, numbers: Iterator[int]) -> None:
        for number in numbers:
            body = {
                "model": "candidate",
                "messages": [{"role": "user", "content": load_question(number)}],
                "temperature": 0.0,
                "response_format": {"type": "json_object"},
            }
            async with session.post(f"{url}/chat/completions", json=body) as response:
                reply: Any = await response.json()
            text = reply["choices"][0]["message"]["content"]
            assert isinstance(json.loads(text), dict)
            waiting.append((number, text, json.dumps(reply["usage"])))
            if len(waiting) >= _BATCH:
                commit()

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        late = asyncio.create_task(commit_late())
        await asyncio.gather(*(work(session, numbers) for _ in range(at_once)))
        late.cancel()
    commit()


def main(url: str, questions: str, at_once: str, path: str) -> None:
    """Ask so many questions; the store is as durable as evalstore's."""
    store = sqlite3.connect(path)
    store.execute("PRAGMA journal_mode = WAL")
    store.execute("PRAGMA synchronous = NORMAL")
    store.execute("CREATE TABLE answers (number INTEGER PRIMARY KEY, text TEXT, usage TEXT)")
    asyncio.run(ask_all(url, int(questions), int(at_once), store))
    store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""`python -m benches.script_floor FOLDER URL STORE`: a script that asks what is not in its cache.

A team could write it for itself: it reads the same test files, asks the endpoint, parses the
answers, stores them in SQLite by the hash of the question, and prints how many passed.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
import sys
from pathlib import Path
from typing import Any

import aiohttp

_AT_ONCE = 32


def questions_of(folder: Path) -> list[str]:
    """The one message of each test file."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.md")))
    return [text.partition("# 👤\n")[2].partition("\n---\n")[0].strip() for text in texts]


async def ask_all(url: str, questions: list[str]) -> dict[str, str]:
    """The answers of the endpoint by question."""
    answers: dict[str, str] = {}
    waiting = iter(questions)

    async def work(session: aiohttp.ClientSession) -> None:
        for question in waiting:
            body = {"model": "candidate", "messages": [{"role": "user", "content": question}]}
            async with session.post(f"{url}/chat/completions", json=body) as response:
                reply: Any = await response.json()
            answers[question] = reply["choices"][0]["message"]["content"]

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(*(work(session) for _ in range(_AT_ONCE)))
    return answers


def main(folder: str, url: str, path: str) -> None:
    """Ask what is missing and count what passes."""
    store = sqlite3.connect(path)
    store.execute("CREATE TABLE IF NOT EXISTS answers (id TEXT PRIMARY KEY, text TEXT)")
    known = dict(store.execute("SELECT id, text FROM answers"))
    questions = {
        hashlib.sha256(question.encode()).hexdigest(): question
        for question in questions_of(Path(folder))
    }
    missing = {id: question for id, question in questions.items() if id not in known}
    if missing:
        answers = asyncio.run(ask_all(url, list(missing.values())))
        new = [(id, answers[question]) for id, question in missing.items()]
        with store:
            store.executemany("INSERT INTO answers VALUES (?, ?)", new)
        known |= dict(new)
    passed = sum(isinstance(json.loads(known[id]), dict) for id in questions)
    print(f"{passed} of {len(questions)} pass")
    store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])

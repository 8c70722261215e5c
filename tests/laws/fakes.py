"""A provider in memory that says what it was asked, and a real workspace around it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from evalstore.core.runs import ProgressListener
from evalstore.core.values import FilePart, Reply, Request, Usage
from evalstore.exchange.sync.fsck import fsck
from evalstore.planning import cells
from evalstore.planning.options import Location, RunOptions, SelectionOptions
from evalstore.planning.status_report import Status
from evalstore.providers.base import ProviderError
from evalstore.runs.run import run
from evalstore.runs.status.status import status as status
from evalstore.store import Store
from tests import stored_rows
from tests.laws.desk_model import (
    CUT_BELOW,
    Asked,
    Judge,
    Judged,
    answer_to,
    verdict_on,
)

_JUDGING = re.compile(
    r"(Judge by rule \d\.) <<(.*)>> \[begin of the response ([0-9a-f]+): .*?\]\n"
    r"(.*?)(?:\n\n\[\3: .*)?\n\[end of the response \3\]"
    r'(?:\n\n[^"]*Put "code": "(\w+)".*)?',
    re.DOTALL,
)
PLAIN = SelectionOptions()
_BEGIN, _DAY = 1_700_000_000 * 10**9, 86_400 * 10**9
"""Nanoseconds."""


class CrashError(BaseException):
    """Ends a run in the middle, as the end of its process would; a mere bug does not."""


class Fake:
    """A provider for candidates and judges that keeps count."""

    def __init__(self) -> None:
        self.asked: Counter[Asked] = Counter()
        self.judged: Counter[Judged] = Counter()
        self.failing = False
        """Whether every call brings nothing."""
        self.crash_after: int | None = None
        """How many more calls succeed before one ends in a crash."""

    @property
    def calls(self) -> int:
        """How many calls have succeeded."""
        return self.asked.total() + self.judged.total()

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        if self.crash_after is not None:
            if self.crash_after == 0:
                raise CrashError
            self.crash_after -= 1
        if self.failing:
            raise ProviderError("connection", "nobody is there")
        if request.code.startswith("judge"):
            return self._judge(request)
        asked = read_request(request)
        self.asked[asked] += 1
        is_cut = request.max_output_tokens is not None and request.max_output_tokens < CUT_BELOW
        return Reply(
            answer_to(asked),
            finish_reason="length" if is_cut else "stop",
            usage=Usage(10, 5),
            latency=0.01,
        )

    def _judge(self, request: Request) -> Reply:
        message = request.messages[0]  # what follows tells a judge that it could not be read
        actual = _JUDGING.fullmatch(message.text)
        assert actual, message.text
        judge = Judge(request.code, actual[1], request.temperature or 0)
        self.judged[Judged(judge, actual[2], actual[4])] += 1
        return Reply(verdict_on(actual[2], actual[5]), finish_reason="stop", usage=Usage(20, 4))

    async def close(self) -> None:
        """Nothing is open."""


def read_request(request: Request) -> Asked:
    """What a candidate is asked, in the words of the model."""
    messages = list(request.messages)
    system = messages.pop(0).text if messages[0].role == "system" else None
    (message,) = messages
    files = [(part.path, part.data) for part in message.parts if isinstance(part, FilePart)]
    return Asked(
        request.code,
        system,
        message.text.strip(),
        request.tools[0].description if request.tools else None,
        request.schema["title"] if request.schema else None,
        request.json_mode,
        files[0] if files else None,
        request.temperature or 0,
    )


class Place:
    """A folder with a workspace, whose models are all one fake."""

    def __init__(self, root: Path, fake: Fake, url: str | None = None) -> None:
        """`url` is that of a new store in PostgreSQL, in place of the workspace's own file."""
        self.root = root
        self.fake = fake
        self.location = Location(root, store=url)
        self.store = stored_rows.locate(root, url)
        if url:
            Store.open(self.store, create=True).close()
        self.day = 0
        self._ticks = 0
        self._written: dict[str, bytes] = {}

    def write(self, files: dict[str, bytes]) -> None:
        """Make the folder hold just these files; unchanged ones are left alone."""
        for name in self._written.keys() - files.keys():
            (self.root / name).unlink()
        for name, data in files.items():
            if self._written.get(name) != data:
                path = self.root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        self._written = dict(files)

    def time_ns(self) -> int:
        """The clock: later with each look, and days later when `day` says so."""
        self._ticks += 1
        return _BEGIN + self.day * _DAY + self._ticks * 1000

    def run(self, selection: SelectionOptions = PLAIN, **orders: Any) -> Any:
        """Run, with every call through the fake."""
        with (
            self._clock(),
            mock.patch("evalstore.runs.execution.key_access.open_provider", return_value=self.fake),
            mock.patch("evalstore.runs.run.git_state", return_value=None),
            mock.patch.object(
                cells, "BATCH", min(cells.BATCH, 3)
            ),  # so that most runs have several
        ):
            return run(self.location, selection, RunOptions(**orders), ProgressListener())

    def status(self, selection: SelectionOptions = PLAIN) -> Status:
        """What a run would do."""
        with self._clock():
            return status(self.location, selection)

    def _clock(self) -> Any:
        clock = SimpleNamespace(time_ns=self.time_ns)
        return mock.patch("evalstore.core.clock.time", clock)

    def damages(self) -> list[Any]:
        """What `fsck` finds."""
        return list(fsck(self.location).problems)

    def rows(self) -> stored_rows.Rows:
        """Every row of the store but those of its own bookkeeping."""
        return stored_rows.read_rows(self.store)

    def bookkeeping(self) -> int:
        """How many rows of bookkeeping there are."""
        with closing(Store.open(self.store)) as store:
            return sum(stored_rows.count_rows(store, name) for name in ("runners", "leases"))


@contextmanager
def counted(fake: Fake) -> Iterator[tuple[Counter[Asked], Counter[Judged]]]:
    """What the calls inside the block come to; filled when it ends."""
    asked, judged = fake.asked.copy(), fake.judged.copy()
    new: tuple[Counter[Asked], Counter[Judged]] = (Counter(), Counter())
    yield new
    new[0].update(fake.asked - asked)
    new[1].update(fake.judged - judged)

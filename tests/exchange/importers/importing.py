"""Imports in tests: the files written into a workspace, and what comes of them there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalstore.checks.check_verdict import ChecksVerdict, HeldConversation, judge_by_checks
from evalstore.core.values import Case, Json, Reply
from evalstore.exchange.importers.base import Imported, ImportOptions, find_importer
from evalstore.workspace.folder import WorkspaceFolder
from evalstore.workspace.reader import Reading, read_workspace
from tests.builders import Files, tree


@dataclass
class Made:
    """What an importer made, written into a workspace."""

    imported: Imported
    root: Path

    @property
    def left(self) -> list[tuple[str, int | None, str]]:
        """What was left: the file's name, the line and the reason."""
        return [(Path(item.file).name, item.line, item.reason) for item in self.imported.left]

    @property
    def warnings(self) -> list[str]:
        """What is not quite the same."""
        return [warning.reason for warning in self.imported.warnings]

    def text(self, path: str) -> str:
        """A written file as text."""
        return self.imported.files[path].decode()

    def read(self) -> Reading:
        """The workspace with what was written, which must have no problem."""
        reading = read_workspace(WorkspaceFolder(self.root))
        assert reading.problems == []
        return reading

    def messages(self, path: str) -> list[list[tuple[str, str]]]:
        """What the candidate is shown in each case: roles and texts."""
        reading = self.read()
        return [
            [
                (message["role"], message.get("content", ""))
                for message in json.loads(reading.contents[case.tests[0]][1])["messages"]
            ]
            for case in reading.files[path].cases
        ]

    def shown(self, path: str) -> list[list[tuple[str, str | None]]]:
        """The texts of each case, with the path or the address of the picture behind it."""
        reading = self.read()
        return [
            [
                _text_and_picture(message["content"])
                for message in json.loads(reading.contents[case.tests[0]][1])["messages"]
            ]
            for case in reading.files[path].cases
        ]

    def instructions(self, path: str) -> list[str]:
        """Return the judge's instructions of each case."""
        reading = self.read()
        return [
            str(_evaluation(reading, case).get("instructions", ""))
            for case in reading.files[path].cases
        ]

    def recorded(self, path: str) -> list[str | None]:
        """The answer that each case brings itself; None: it is asked."""
        reading = self.read()
        return [
            json.loads(reading.contents[case.recorded][1])["options"]["answers"][0]
            if case.recorded
            else None
            for case in reading.files[path].cases
        ]

    def checked(self, path: str, reply: Reply | str, row: int = 0) -> ChecksVerdict:
        """What the checks of a test say of an answer in a row."""
        reading = self.read()
        case = reading.files[path].cases[row]
        answer = Reply(reply) if isinstance(reply, str) else reply
        return judge_by_checks(
            _evaluation(reading, case)["checks"], [HeldConversation((answer,))], {}
        )

    def verdict(self, path: str, reply: Reply | str, row: int = 0) -> str:
        """The verdict of the checks alone."""
        return self.checked(path, reply, row).verdict


def _text_and_picture(content: Any) -> tuple[str, str | None]:
    parts = [{"text": content}] if isinstance(content, str) else content
    paths = [part["path"] for part in parts if "path" in part]
    return "".join(part.get("text", "") for part in parts), next(iter(paths), None)


def _evaluation(reading: Reading, case: Case) -> dict[str, Any]:
    assert case.evaluation is not None
    evaluation: dict[str, Any] = json.loads(reading.contents[case.evaluation][1])
    return evaluation


def imported(path: Path, format: str, files: Files, *names: str, name: str = "from") -> Made:
    """What an importer makes of some files; of the whole folder if none of them is named."""
    folder = tree(path / "source", files)
    result = find_importer(format)(
        [folder / source for source in names] or [folder], ImportOptions(name)
    )
    root = tree(path / "workspace", {"evalstore.yaml": "", **result.files})
    return Made(result, root)


def lines(*values: Json) -> str:
    """JSON lines."""
    return "".join(json.dumps(value) + "\n" for value in values)
